/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps.h - NVIDIA's Multi-Process Service: one control daemon for each group of work that trusts itself, and how it is spoken to.
 *
 * The control daemon (nvidia-cuda-mps-control) starts servers for its clients, all as one user: a client of another user waits
 * until the clients of the first are gone. So each has a user, a folder of pipes and a folder of logs of its own. It is run in the
 * foreground by a keeper; orders are lines on the standard input of a second call of the same program.
 */
#ifndef BH_HOST_MPS_H
#define BH_HOST_MPS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_MPS_SERVERS_MAX = 64, BH_MPS_GPUS_MAX = 16 };

struct bh_mps {
    const char *program; /* absolute */
    const char *pipes, *logs;
    uint32_t uid, gid;
};

/* Where the program is: BULKHEAD_MPS_CONTROL, or the system's. BH_NOT_FOUND. */
int bh_mps_find(char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
/* Its two folders, for its user alone. */
int bh_mps_folders(const struct bh_mps *m, struct bh_err *err) BH_MUST_USE;
/* A folder that has files and no folders, away with what is in it. None: nothing. */
void bh_mps_remove(const char *folder);

/* What a client is told in its environment; NULL-terminated. thread_percent 0 and mib 0: no limit. A client may lower what the server
 * holds it to, and no more. */
struct bh_mps_share {
    uint32_t thread_percent;
    uint64_t mib[BH_MPS_GPUS_MAX]; /* of each GPU that it sees */
    size_t n_gpus;
};
const char *const *bh_mps_client_env(const struct bh_mps *m, const struct bh_mps_share *share,
                                     struct bh_arena *arena);

/* One line to the control daemon; what it answered is added to out (NULL: not wanted). BH_SYSTEM: it does not answer. */
int bh_mps_order(const struct bh_mps *m, const char *line, struct bh_buf *out,
                 struct bh_err *err) BH_MUST_USE;
/* Until it answers, for so long. */
int bh_mps_wait(const struct bh_mps *m, unsigned patience_ms, struct bh_err *err) BH_MUST_USE;
/* What no client of it may exceed. */
int bh_mps_limit(const struct bh_mps *m, const struct bh_mps_share *most, struct bh_err *err) BH_MUST_USE;
/* The numbers in an answer of `get_server_list`: one on each line. Returns how many; more than max are left out. */
size_t bh_mps_parse_servers(const char *text, pid_t *ret, size_t max);

#endif
