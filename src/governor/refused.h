/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused.h - connections that are not served: those that were answered at the door, until they hang up, and those that cannot be
 * taken at all.
 *
 * One that is closed over words that nobody read takes the answer with it. So what they say is read and counts for nothing. There are
 * few places: who comes when all are taken has that of the one that has been there longest.
 */
#ifndef BH_GOVERNOR_REFUSED_H
#define BH_GOVERNOR_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

enum { BH_REFUSED_PLACES = 32 };

struct bh_refused {
    int epoll;      /* borrowed */
    uint32_t first; /* of the numbers of their events */
    uint32_t next;
    int spare; /* a descriptor for one who comes when there is none left; -1: that is gone, too */
    int fds[BH_REFUSED_PLACES]; /* -1: none */
};

void bh_refused_init(struct bh_refused *r, int epoll, uint32_t first);
void bh_refused_fini(struct bh_refused *r);
/* One that was answered; taken over. */
void bh_refused_add(struct bh_refused *r, int fd);
/* accept() had no descriptor left. Whoever waits longest at the door is sent away: there he would wake the governor for ever. false:
 * nobody was. */
bool bh_refused_send_away(struct bh_refused *r, int listener);
/* It said something, or has hung up. */
void bh_refused_hear(struct bh_refused *r, uint32_t place);

#endif
