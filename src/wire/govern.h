/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern.h - what the governor of a machine and those it serves say to each other.
 *
 * One SOCK_SEQPACKET connection each, one structure a message, `op` first. A warden joins with what its lease was promised,
 * names the processes of its lease and the channels they make and unmake, and is told slices to set. The governor pauses and
 * resumes by name, with no file of a tenant's. A warden hears from it at least every BH_GOVERN_BEAT_MS: one that is silent for
 * BH_GOVERN_SILENT_MS has stopped or hangs, and counts as lost. Whoever loses the other side undoes: a warden whose governor is
 * gone resumes its own channels, a governor whose warden is gone resumes that lease's. An operator's command asks for the list,
 * or for a pause.
 *
 * All are of one build but for a while after an upgrade: wardens and governors live on that were started before. So each
 * version from BH_GOVERN_WIRE_OLDEST on is spoken. A governor before 5 takes its own version and no other, and refuses the rest
 * (BH_CONFLICT): so lists, orders and joins are sent as of today, and where that is refused as of the version before, on another
 * connection each. What a warden and a governor say to each other, and orders, are since 3 what they are now. Rows are longer
 * since 4, and again since 5: who asks for a list is answered in its own version. BH_GOVERN_OWN is understood since 5: a governor
 * that does says so in the text of its answer to a warden that joins (BH_GOVERN_HEARS_OWN), where older ones have none.
 */
#ifndef BH_WIRE_GOVERN_H
#define BH_WIRE_GOVERN_H

#include <stddef.h>
#include <stdint.h>

enum {
    BH_GOVERN_WIRE_VERSION = 5,
    BH_GOVERN_WIRE_OLDEST = 3,
    BH_GOVERN_NAME = 64,
    BH_GOVERN_TEXT = 480,
    BH_GOVERN_NAMES = 64,      /* channels in one message */
    BH_GOVERN_SOME_PIDS = 128, /* processes in one message */
    BH_GOVERN_BEAT_MS = 200,
    BH_GOVERN_SILENT_MS = 1000,
};
#define BH_GOVERN_HEARS_OWN "own"
#define BH_GOVERN_SILENT                                                                                \
    "the governor does not answer; it may be stopped, or hang in the driver; where it is ended (pkill " \
    "-9 bulkhead-govern), another one begins"
#define BH_GOVERN_SOCKET_NAME "governor.sock" /* in the run folder */

enum bh_govern_op {
    /* from a warden */
    BH_GOVERN_JOIN = 1, /* bh_govern_join; answered by bh_govern_answer */
    BH_GOVERN_HAS,      /* bh_govern_channels: it has these, too */
    BH_GOVERN_LOST,     /* bh_govern_channels: it has these no longer; n 0: nothing of that client */
    BH_GOVERN_TAMPERED, /* bh_govern_tampered */
    /* to a warden */
    BH_GOVERN_SLICE, /* bh_govern_slice */
    BH_GOVERN_END, /* bh_govern_answer: its tenants run though they are paused; end the lease, the text says why */
    /* from an operator */
    /* bh_govern_order with lease 0; answered by bh_govern_row for each, bh_govern_pids, bh_govern_noise, bh_govern_answer */
    BH_GOVERN_LIST,
    BH_GOVERN_ORDER, /* bh_govern_order; answered by bh_govern_answer */
    /* to both */
    BH_GOVERN_ANSWER, /* bh_govern_answer; to a warden also without a question, as a sign of life */
    BH_GOVERN_ROW,    /* bh_govern_row */
    BH_GOVERN_NOISE,  /* bh_govern_noise */
    /* From a warden, when they have changed, and to an operator: bh_govern_pids. */
    BH_GOVERN_PIDS,
    /* From a warden: bh_govern_own, several times a second while its tenants say something. */
    BH_GOVERN_OWN,
};

struct bh_govern_join {
    uint32_t op, version;
    uint32_t root_pid;
    uint32_t weight;         /* 1 to 10000 */
    uint32_t cap_permille;   /* 0: none */
    uint32_t floor_permille; /* 0: none */
    uint32_t latency;        /* 1: of class latency */
    uint32_t zero;
    uint64_t lease;            /* 0: give it a number; else the one it had before the governor was lost */
    char name[BH_GOVERN_NAME]; /* for people; "" allowed */
};
struct bh_govern_answer {
    uint32_t op;
    int32_t code; /* 0, or an enum bh_code, and the text says why */
    uint64_t lease;
    char text[BH_GOVERN_TEXT];
};
struct bh_govern_channels {
    uint32_t op, gpu; /* gpu: the driver's number of it, as in the ledger */
    uint32_t pid, client;
    uint32_t n, names[BH_GOVERN_NAMES];
};
/* All processes of a lease that ever asked the driver for something, with channels or without, as one that is suspended, and
 * the dead while something of theirs is left: the card books time on whoever made a client, whoever uses it. Those of the
 * messages up to one without more. From a warden they take the place of those that it named before; lease is not read there. */
struct bh_govern_pids {
    uint32_t op, n;
    uint64_t lease;
    uint32_t more; /* 1: the next message goes on */
    uint32_t zero;
    uint32_t pids[BH_GOVERN_SOME_PIDS];
};
struct bh_govern_tampered {
    uint32_t op, gpu;          /* gpu UINT32_MAX: it is not known */
    uint32_t found_us, set_us; /* the slice that a group had, and the one it was given; the last time */
    uint32_t times, zero;      /* since it was last told */
};
/* What the lease's processes say of their own work (core/govern/own.h), read and added up by its warden. */
struct bh_govern_own {
    uint32_t op, has_rate;
    uint64_t done, lines, garbage; /* since that warden began */
    uint64_t rate_milli;
    uint32_t p50_us, p99_us; /* UINT32_MAX: it says no latencies */
};
struct bh_govern_slice {
    uint32_t op, gpu;
    uint32_t slice_us; /* 0: the driver's own */
    uint32_t level;    /* interleave: 0 low, 1 medium, 2 high */
};

enum bh_govern_what {
    BH_GOVERN_PAUSE = 1, /* until it is resumed, whatever the shares say */
    BH_GOVERN_RESUME,
    /* Its memory is about to leave the card: hands off its channels, and its share is the others'. Until SUSPENDED comes on the
     * same connection it ends with that, and what was before is put back. One at a time on a connection: another is refused
     * (BH_BUSY). */
    BH_GOVERN_SUSPEND,
    BH_GOVERN_SUSPENDED, /* it has left, and that lasts */
};
struct bh_govern_order {
    uint32_t op, version;
    uint64_t lease; /* 0: the one of that name */
    uint32_t what;  /* enum bh_govern_what */
    uint32_t zero;
    char name[BH_GOVERN_NAME];
};

/* A lease on a card. One without channels yet has one row, with gpu UINT32_MAX. */
struct bh_govern_row {
    uint32_t op, gpu;
    uint64_t lease;
    char name[BH_GOVERN_NAME];
    uint32_t root_pid, uid;
    uint32_t weight, cap_permille, floor_permille, latency;
    uint32_t state; /* enum bh_govern_shown */
    uint32_t mode;  /* of the card: enum bh_govern_mode of core/govern */
    uint32_t target_permille, delivered_permille, held_permille;
    int32_t error_permille;
    uint32_t slice_us, level;
    uint32_t corrections, tampered, pauses;
    uint32_t seen;             /* its sensors answer */
    uint64_t busy_ns;          /* GPU time since it joined */
    uint32_t n_pids, pids[16]; /* its processes with channels, the first of them; version 3 ends here */
    /* What it uses while it holds the card; PCIe: while it is there. UINT32_MAX: no counter, or not told apart from others'. */
    uint32_t sm_permille, dram_permille, pcie_permille;
    uint32_t power_permille;   /* what it draws, of the card's limit */
    uint32_t lowered_permille; /* clocks were lowered for power or heat, of that time */
    /* What its processes say themselves, over the last seconds and on all its GPUs. */
    uint64_t own_rate_milli;         /* UINT64_MAX: nothing */
    uint32_t own_p50_us, own_p99_us; /* UINT32_MAX: nothing */
    uint64_t own_garbage;            /* lines that are none */
};
static inline size_t bh_govern_row_bytes(uint32_t version)
{
    enum { VERSION_3 = 232 }; /* with what it is rounded up by */
    return version < 4   ? VERSION_3
           : version < 5 ? offsetof(struct bh_govern_row, own_rate_milli)
                         : sizeof(struct bh_govern_row);
}
_Static_assert(offsetof(struct bh_govern_row, sm_permille) == 228 &&
                   offsetof(struct bh_govern_row, own_rate_milli) == 248,
               "a row of version 3 is the begin of one of version 4, and that of one of 5");
/* Who slowed whom on a card, and what of that cannot be told: a line for people, one message each. */
struct bh_govern_noise {
    uint32_t op, gpu;
    char text[BH_GOVERN_TEXT];
};
enum bh_govern_shown {
    BH_GOVERN_SHOWN_RUNS,
    BH_GOVERN_SHOWN_IDLE,
    BH_GOVERN_SHOWN_TURN,
    BH_GOVERN_SHOWN_PAUSED,
    BH_GOVERN_SHOWN_SUSPENDED
};

#endif
