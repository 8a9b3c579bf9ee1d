/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_run.h - runs a tool of the system with fixed arguments: no shell, a clean environment, a limit on its time.
 *
 * What it prints is kept: its own first words are the best error there is.
 */
#ifndef BH_HOST_NET_RUN_H
#define BH_HOST_NET_RUN_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { BH_RUN_WORDS_MAX = 32, BH_RUN_ENV_MAX = 32, BH_RUN_NETNS = 3 };
/* How a tool that runs with `netns` says that namespace. */
#define BH_RUN_NETNS_PATH "/proc/self/fd/3"

struct bh_run {
    const char *const *argv; /* NULL-terminated; argv[0] is absolute, or looked up in the system's folders */
    const char *const *env;  /* NULL-terminated, beside PATH and LC_ALL; NULL: nothing else */
    uint32_t uid, gid;       /* whose it is; 0: as the caller is */
    const char *input;       /* its standard input; NULL: none */
    int netns;               /* of a network namespace, given to it as descriptor BH_RUN_NETNS; -1: none */
    bool enter;              /* it runs inside of that */
    struct bh_buf *out;      /* what it printed; NULL: not wanted */
};

/* BH_NOT_FOUND: there is no such tool. BH_SYSTEM: it failed, with its first line. BH_BUSY: it took too long and was ended. */
int bh_run_tool(const struct bh_run *r, struct bh_err *err) BH_MUST_USE;

#endif
