/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - a governor for the wardens of one lease whose share is held, looked for while others are heard.
 *
 * Wardens follow one another, and so do governors: a child looks for one, and what it finds goes to the warden that is there then.
 */
#ifndef BH_LAUNCH_SHARE_H
#define BH_LAUNCH_SHARE_H

#include "base/err.h"
#include "launch/child.h"
#include "wire/lease.h"

#include <stdbool.h>

struct bh_share_link {
    struct bh_child seeker; /* its descriptor is to be listened to; -1: nobody looks for one */
    int governor;           /* connection for the next warden; -1: none */
    uint32_t version;       /* that it takes; as in struct bh_lease_given */
    bool asked;             /* the warden did: its governor is gone */
    bool ungoverned;        /* and there is no other, which was said */
    bool refused;           /* or there is, and it does not take the lease, which was said */
    uint8_t mute;           /* so often was one found that says nothing */
    void (*tell)(void *arg, const char *line);
    void *arg;
};

/* To the warden: the connection that was found, or why there is none. It is not kept here: it would tell the governor that a warden
 * is there when there is none. */
void bh_share_give(struct bh_share_link *l, const struct bh_child *warden, const struct bh_err *why);
/* Has one looked for. May have to be started, which takes as long as the driver does. */
void bh_share_seek(struct bh_share_link *l, const struct bh_child *warden);
/* The warden said that its governor is gone, does not take it, or that it has one again. */
void bh_share_asked(struct bh_share_link *l, const struct bh_child *warden, const struct bh_lease_ask *ask);
/* Who looks for one has something to say. */
void bh_share_hear(struct bh_share_link *l, const struct bh_child *warden);
/* To a warden that has just been started, and waits for it: the tenant's calls do, too. */
void bh_share_give_soon(struct bh_share_link *l, const struct bh_child *warden);
void bh_share_end(struct bh_share_link *l);

#endif
