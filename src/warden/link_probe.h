/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_probe.h - where a lease's processes say what they do (core/govern/own.h): the reading end. Of the link alone.
 *
 * Anybody of the lease may send anything there, as fast as it likes: datagrams, of one or more lines each. It is read a few times a
 * second, so much at a time and no more, and never waited for; what does not fit waits, and then whoever sends does. What is read
 * is numbers after that, and bytes go nowhere. A lease that sends descriptors is not heard any more (wire/dgram.h).
 */
#ifndef BH_WARDEN_LINK_PROBE_H
#define BH_WARDEN_LINK_PROBE_H

#include "core/govern/own.h"
#include "wire/govern.h"

enum {
    BH_LINK_PROBE_MS = 100,
    BH_LINK_PROBE_BYTES = 16 << 10, /* at a time */
    BH_LINK_PROBE_LONGEST = 1024,   /* of a datagram; a longer one counts as one line that is garbage */
    BH_LINK_PROBE_DATAGRAMS = 256   /* at a time */
};

struct bh_link_probe {
    int fd;             /* -1: none */
    bool hot;           /* something was said of late: it is read by the clock */
    bool is_deaf;       /* it has what must not be taken out, or is no socket */
    int64_t read_ms;    /* when it was last */
    struct bh_own *own; /* NULL: nothing was ever said */
};

/* Takes it over, until this process ends: a close could be the last one, and take long. */
void bh_link_probe_init(struct bh_link_probe *p, int fd);
void bh_link_probe_fini(struct bh_link_probe *p);
/* It is readable, or was. True: it is read by the clock from now on, and need not be listened to. */
bool bh_link_probe_wake(struct bh_link_probe *p);
/* By the clock. True: *ret is to be told. One that is not hot afterwards is to be listened to again. */
bool bh_link_probe_read(struct bh_link_probe *p, int64_t now_ms, struct bh_govern_own *ret);

#endif
