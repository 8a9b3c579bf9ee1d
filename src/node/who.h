/* SPDX-License-Identifier: Apache-2.0 */
/*
 * who.h - a process that the driver sees on a card: whose it is, by what it cannot choose itself, and what is to be done about it.
 *
 * Its cgroup says which lease it belongs to; a tenant cannot leave that. Everything else (its name, its environment, who
 * may look at it) is its own to say and decides nothing.
 */
#ifndef BH_NODE_WHO_H
#define BH_NODE_WHO_H

#include <stdbool.h>
#include <stdint.h>

struct bh_who {
    uint64_t began;  /* ticks since the machine started: with its number, one process for good */
    uint64_t lease;  /* whose cgroup it is in; 0: none */
    uint64_t server; /* of MPS, likewise */
    uint32_t uid;
    bool root; /* in every respect */
    bool ours; /* root's, and one of this system's programs */
    char name[32];
};
/* proc: `/proc`, or what stands for it. cgroup: below which the leases' are. False: it is gone, or cannot be told. */
bool bh_who_read(const char *proc, uint32_t pid, const char *cgroup, struct bh_who *ret);

/* What is known when it is judged. */
struct bh_who_case {
    bool here;        /* it belongs to a lease, or a server of one, that has something of this card */
    bool ours;        /* scrubs, measures or keeps */
    bool of_lease;    /* it belongs to a lease, be it one without this card or one that is over */
    bool root;        /* the machine's operator runs it */
    bool was_there;   /* before this daemon started */
    bool given;       /* something of the card is somebody's, or is being cleared */
    bool reachable;   /* its number means the same process to the driver and to us */
    bool seen_before; /* at the look before this one, too */
};
enum bh_who_act {
    BH_WHO_FINE,
    BH_WHO_WAIT,  /* one more look: it may be on its way out */
    BH_WHO_LEAVE, /* not ours to stop: nobody gets the card, and a person is told */
    BH_WHO_STOP,
    BH_WHO_ACTS
};
enum bh_who_act bh_who_judge(const struct bh_who_case *c);

#endif
