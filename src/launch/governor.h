/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor.h - the governor of this machine's cards as others reach it (wire/govern.h): one is started where nobody listens.
 */
#ifndef BH_LAUNCH_GOVERNOR_H
#define BH_LAUNCH_GOVERNOR_H

#include "base/err.h"
#include "launch/child.h"
#include "wire/govern.h"

#include <stddef.h>
#include <stdint.h>

enum { BH_GOVERNOR_MS = 5000 }; /* how long an answer may take */

/* The run folder: where its socket is, and what else is of the leases. */
const char *bh_governor_folder(void);

/* A connection. BH_NOT_FOUND: there is no governor, so nothing is governed; BH_DENIED: this is not root, or that is not
 * root's governor; BH_BUSY: it does not answer. */
int bh_governor_connect(int *ret_fd, struct bh_err *err) BH_MUST_USE;
/* The same, and starts one where there is none; several who want that start one. May take as long as the driver does, and
 * one that was started is a child of this process. */
int bh_governor_reach(int *ret_fd, struct bh_err *err) BH_MUST_USE;
/* The same in a child, for one who has others to listen to: its connection is readable when it has something to say. */
int bh_governor_seek(struct bh_child *ret, struct bh_err *err) BH_MUST_USE;
/* What it says, waited for. It is forgotten in any case. version: as in struct bh_lease_given. */
int bh_governor_found(struct bh_child *c, int *ret_fd, uint32_t *ret_version, struct bh_err *err) BH_MUST_USE;

/* Which version it takes; UINT32_MAX: nobody says so in time. */
uint32_t bh_governor_speaks(void);

struct bh_governor_rows {
    struct bh_govern_row *at;
    size_t n, cap;
};
/* A process of a lease, with channels or without. */
struct bh_governor_pid {
    uint64_t lease;
    uint32_t pid;
};
struct bh_governor_pids {
    struct bh_governor_pid *at;
    size_t n, cap;
};
struct bh_governor_noise {
    struct bh_govern_noise *at;
    size_t n, cap;
};
/* What the governor says of every lease on every card; what was there stays in front. */
struct bh_governor_all {
    struct bh_governor_rows rows;
    struct bh_governor_pids pids;
    struct bh_governor_noise noise; /* who slows whom */
    uint32_t version;               /* that it answers in */
    bool older; /* it is from before an upgrade: what it cannot tell is UINT32_MAX, or UINT64_MAX */
};
void bh_governor_all_fini(struct bh_governor_all *a);
/* All that it says, within that time. */
int bh_governor_list(struct bh_governor_all *add, int patience_ms, struct bh_err *err) BH_MUST_USE;
/* What it says of one lease, by number or name. BH_NOT_FOUND, or BH_CONFLICT where several bear that name. */
int bh_governor_find(const char *lease, struct bh_governor_all *add, struct bh_err *err) BH_MUST_USE;

int bh_governor_order(uint64_t lease, enum bh_govern_what what, struct bh_err *err) BH_MUST_USE;
/* By number or name. */
int bh_governor_order_by(const char *lease, enum bh_govern_what what, struct bh_err *err) BH_MUST_USE;
/* BH_GOVERN_SUSPEND: lasts for as long as the connection does, or for good once it is kept. */
int bh_governor_hold(uint64_t lease, int *ret_fd, uint32_t *ret_version, struct bh_err *err) BH_MUST_USE;
int bh_governor_keep(int fd, uint32_t version, uint64_t lease, struct bh_err *err) BH_MUST_USE;

#endif
