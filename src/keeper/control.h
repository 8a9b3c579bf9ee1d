/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - who is connected to a keeper, and what they want (wire/keeper.h).
 *
 * Root and the keeper's own user may do everything; the work's user may look, send signals and attach.
 */
#ifndef BH_KEEPER_CONTROL_H
#define BH_KEEPER_CONTROL_H

#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_CONTROL_MAX = 64 }; /* connections; the oldest that only watches goes for one more */

struct bh_control_peer {
    int fd;
    uid_t uid;
    bool watches, attached;
    uint64_t number; /* a later one's is higher */
};

struct bh_control {
    int epoll, listener;
    uid_t owner; /* of the work */
    struct bh_control_peer *at;
    size_t n, cap;
    uint64_t last;
    /* Carries an order out and says how things are, code and text included. The descriptors (of an ATTACH: three) are the
     * callee's. */
    void (*order)(void *arg, const struct bh_keeper_order *order, const int *fds,
                  struct bh_keeper_status *ret);
    void (*left)(void *arg); /* whoever was attached has gone */
    void *arg;
};

/* From now on the listener is in `epoll`. */
int bh_control_open(struct bh_control *c, struct bh_err *err) BH_MUST_USE;
/* Looks at everything that is there. */
void bh_control_hear(struct bh_control *c);
/* To all who watch. */
void bh_control_tell(struct bh_control *c, const struct bh_keeper_status *status);
void bh_control_close(struct bh_control *c);

#endif
