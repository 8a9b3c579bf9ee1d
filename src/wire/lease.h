/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - what a launcher and the warden of one lease say to each other.
 *
 * One SOCK_SEQPACKET connection, one structure a message, in this order: the launcher sends bh_lease_start with its three
 * descriptors, the warden answers with bh_lease_answer and, when the last process of the lease is gone, with
 * bh_lease_end. A connection that closes without an end is a warden that died. Both are of one build but for a lease
 * from before an upgrade: its launcher lives on, and the warden that it starts when one dies is today's. So each version from
 * BH_LEASE_OLDEST on is taken, and answered in the same way. Since 5 there are BH_LEASE_RDMA and BH_LEASE_HAS_PROBE.
 *
 * A lease whose share is held (weight not 0) has a connection to the governor (wire/govern.h) as well. The launcher keeps
 * none of it, for its end tells the governor that the warden is gone: a bh_lease_given follows each bh_lease_start, and
 * each bh_lease_ask of a warden whose governor is gone.
 */
#ifndef BH_WIRE_LEASE_H
#define BH_WIRE_LEASE_H

#include "wire/govern.h"

#include <stdint.h>

enum {
    BH_LEASE_VERSION = 5,
    BH_LEASE_OLDEST = 4,
    BH_LEASE_SOCKET = 3, /* the warden's end of the connection */
    BH_LEASE_TEXT = 480, /* as long as a message of struct bh_err */
};

enum bh_lease_fd {
    BH_LEASE_LISTENER,
    BH_LEASE_ROOT,    /* pidfd of the first process */
    BH_LEASE_JOURNAL, /* memfd: what the gate knows, for the warden after this one (warden/journal.h) */
    BH_LEASE_FDS
};

/* What the tenant is shown of the card. */
enum bh_lease_view {
    BH_VIEW_CARD,  /* all that the driver tells; controls are not looked at */
    BH_VIEW_SLICE, /* its share as the whole card, and its own processes only */
    BH_VIEW_PRIVATE, /* also nothing that tells of a neighbour's load: utilisation, power, clocks, temperature */
};

enum bh_lease_flags {
    BH_LEASE_ENDS_WITH_LAUNCHER = 1, /* the root is ended when the launcher is gone before it */
    BH_LEASE_RDMA = 2,               /* other devices may be told of its memory */
    BH_LEASE_HAS_PROBE = 4,          /* a byte with a socket follows: where its processes say what they do */
};

/* What of a card's time it was promised; as struct bh_govern_join has it. */
struct bh_lease_share {
    uint32_t weight; /* 0: nothing is held */
    uint32_t cap_permille, floor_permille, latency;
    char name[BH_GOVERN_NAME];
};

struct bh_lease_start {
    uint32_t version, root_pid;
    uint64_t cap_bytes; /* for each GPU */
    uint32_t tick_ms;   /* 0: the gate's own */
    uint32_t view;      /* enum bh_lease_view */
    uint32_t adopted;   /* 1: another warden served this lease before, the journal says how far it came */
    uint32_t flags;     /* enum bh_lease_flags */
    uint32_t
        uid; /* adopted: the user that the first warden was; a tenant may have become another one since */
    uint32_t zero;
    struct bh_lease_share share;
};

enum bh_lease_asks {
    BH_LEASE_ASK_GONE,    /* the governor is; is there another one? */
    BH_LEASE_ASK_REFUSED, /* there is one, and it does not take the lease (code); is there another one? */
    BH_LEASE_ASK_JOINED, /* nothing is asked: the one that was given holds its share; only after a given with a version */
};
/* From the warden, while it serves. Told from an end by its size. (Launchers from before an upgrade take each for the first.) */
struct bh_lease_ask {
    uint32_t what; /* enum bh_lease_asks */
    int32_t code;
};
/* From the launcher, with a descriptor where the code is 0. */
struct bh_lease_given {
    int32_t code;
    uint32_t
        version; /* of wire/govern.h that this governor takes; UINT32_MAX: it did not say; 0: who sends this is older */
    char text[BH_LEASE_TEXT];
};

struct bh_lease_answer {
    int32_t code; /* 0: ready; else an enum bh_code, and the text says why */
    uint32_t uid; /* the warden's */
    char text[BH_LEASE_TEXT];
};

struct bh_lease_end {
    int32_t code; /* 0: the lease is over; else the gate could not go on, and the text says why */
    uint32_t zero;
    uint64_t seen, emulated, continued, refused_memory, denied, checks, killed, peak_bytes;
    uint64_t no_room;     /* calls that failed because the warden could open no more files */
    char why_killed[160]; /* "": nobody was */
    char text[BH_LEASE_TEXT];
    /* Of a lease whose share was held: what the warden itself did about it. */
    uint64_t slices_set, tampered, governors; /* governors: how many it had, one after the other */
};

#endif
