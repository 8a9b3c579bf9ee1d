/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - keepers (wire/keeper.h) as the daemon starts, finds, orders and outlives them.
 *
 * Nothing here waits for long: starting and watching give a descriptor for the caller's loop. A keeper belongs to no
 * session and is no child of its starter's; whoever comes after a crash finds it by its lease.
 */
#ifndef BH_LAUNCH_KEEPER_H
#define BH_LAUNCH_KEEPER_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a lease is kept. */
struct bh_keeper_place {
    const char *folder;  /* STATE/leases/17 */
    const char *run_dir; /* RUN/leases: root's, mode 0711 where tenants attach */
    uint64_t lease;
};

/* Its program is found by bh_keeper_program (launch/warden.h). */

/* Writes the spec into the folder, which is made if need be. The same spec again: BH_OK. BH_CONFLICT: another one is there. It is not
 * on the disk yet: whoever serves others does not wait for that. */
int bh_keeper_prepare(const struct bh_keeper_place *at, const struct bh_keeper_spec *spec,
                      struct bh_err *err) BH_MUST_USE;
/* For the keeper itself, before it syncs the folder with the first file of its own: what it was told, and that there is such a folder. */
int bh_keeper_settle(const struct bh_keeper_place *at, int folder, struct bh_err *err) BH_MUST_USE;
/*
 * Starts a keeper for the spec in the folder. *ret_fd is readable when it keeps or has given up; then bh_keeper_started says
 * which and closes it. BH_CONFLICT there: another one keeps this lease, or it has been begun before; bh_keeper_look tells
 * which.
 */
int bh_keeper_start(const char *program, const struct bh_keeper_place *at, int *ret_fd,
                    struct bh_err *err) BH_MUST_USE;
int bh_keeper_started(int fd, struct bh_err *err) BH_MUST_USE;

enum bh_keeper_found {
    BH_KEEPER_NEVER, /* no keeper, and the work has not begun: one may be started */
    BH_KEEPER_LIVES, /* pid and pidfd are its own */
    BH_KEEPER_ENDED, /* `end` is what came of it */
    /* No keeper and no end: it was killed, or the machine was. Empty the cgroup (bh_cgroup_kill), then bh_keeper_vanish; the
     * work must not be begun again under this lease. */
    BH_KEEPER_LOST,
};
struct bh_keeper_look {
    enum bh_keeper_found found;
    pid_t pid;
    int pidfd; /* the caller's to close; -1: none */
    struct bh_keeper_end end;
};
/* What there is of a lease. BH_INVALID: it has ended, and its end record cannot be read; it says why, and is for a person to look at.
 * Any other failure: that is not known now (no descriptor, no memory); ask again. */
int bh_keeper_look(const struct bh_keeper_place *at, struct bh_keeper_look *ret,
                   struct bh_err *err) BH_MUST_USE;

/*
 * No keeper begins the work of this lease from now on, also one that was started a moment ago and has no lock yet; whoever has begun
 * already goes on, and the look that follows sees it. Until this returned BH_OK one may still begin.
 */
int bh_keeper_fence(const struct bh_keeper_place *at, struct bh_err *err) BH_MUST_USE;

/* BH_NOT_FOUND: nobody keeps it. BH_BUSY: the keeper does not answer. BH_DENIED: not for this user. */
int bh_keeper_order(const struct bh_keeper_place *at, const struct bh_keeper_order *order,
                    struct bh_keeper_status *ret, struct bh_err *err) BH_MUST_USE;
/* WATCH; or, with three descriptors (NULL: none), ATTACH. The first answer was waited for; *ret_fd brings the others. */
int bh_keeper_watch(const struct bh_keeper_place *at, const int *stdio, int *ret_fd,
                    struct bh_keeper_status *ret, struct bh_err *err) BH_MUST_USE;
/* The next status from a watched connection. BH_BUSY: nothing yet; BH_NOT_FOUND: the keeper is gone. */
int bh_keeper_next(int fd, struct bh_keeper_status *ret, struct bh_err *err) BH_MUST_USE;

/* ---- the keeper's own side ---- */

/* Takes the lock for as long as this process lives; the descriptor is to stay open, and no other one of that file may be closed
 * here. BH_CONFLICT: somebody has it. */
int bh_keeper_lock(const struct bh_keeper_place *at, int *ret_fd, struct bh_err *err) BH_MUST_USE;
/* Listens where orders come in. What a dead one left there is replaced: the lock is held. */
int bh_keeper_listen(const struct bh_keeper_place *at, bool for_all, int *ret_fd,
                     struct bh_err *err) BH_MUST_USE;
/* Nobody finds it any more: the socket and the lock's file go, the lock itself with the process. For the keeper at its end, and
 * for the daemon where there is none. */
void bh_keeper_vanish(const struct bh_keeper_place *at);

#endif
