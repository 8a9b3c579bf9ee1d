/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - who shares the cards of this machine: leases, where they have channels, and which of these are paused.
 *
 * Plain data with its bounds; nothing here reaches a driver, a socket or a clock. What is paused is written down at the
 * channel itself, before the driver is asked and until it is certain again, so that whoever lets go knows what to undo.
 */
#ifndef BH_GOVERNOR_STATE_H
#define BH_GOVERNOR_STATE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/govern/govern.h"
#include "warden/driver.h"
#include "wire/govern.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BH_STATE_LEASES = BH_GOVERN_TENANTS,
    BH_STATE_GPUS = 32,       /* as the ledger of a lease */
    BH_STATE_CHANNELS = 4096, /* of a lease on one GPU: no card has more, and wardens refuse long before */
    BH_STATE_PIDS = 1 << 16,  /* of a lease; those beyond are not seen */
    BH_STATE_NOBODY = -1
};

enum bh_channel_run {
    BH_CHANNEL_RUNS,
    BH_CHANNEL_PAUSED,
    BH_CHANNEL_UNSURE, /* the driver was asked and failed: either way */
};
struct bh_channel {
    struct bh_driver_channel name;
    uint32_t pid;
    uint8_t run; /* enum bh_channel_run */
};

/* A lease on one GPU. It stays when its last channel goes: its numbers are still asked for. */
struct bh_seat {
    uint32_t gpu;
    BH_VEC(struct bh_channel) channels; /* in the order of their names */
    BH_VEC(uint32_t) pids;              /* whose they are, each once; see bh_seat_pids() */
    bool pids_stale;
    BH_VEC(uint32_t) all; /* and the lease's; see bh_seat_all_pids() */
    bool all_stale;
    struct bh_govern_told told;   /* by the last step that it took part in */
    uint32_t slice_us, level_1;   /* its warden was told; level plus one; both 0: the driver's own */
    uint32_t corrections, pauses; /* since it joined */
    uint64_t busy_ns;
    /* A call that fails is made again later and later. */
    uint32_t failures; /* in a row */
    bool failed_running;
    uint64_t retry_ns; /* not before */
    /* What the card says of it, against what is written down here. */
    uint64_t looked_ns,
        looked_busy_ns;  /* when it was last looked whether it runs, and what it had had by then */
    uint32_t paused_us;  /* all of it is paused for so long */
    uint32_t escaped_us; /* and had the card in spite of it, for so long */
};

/* What its processes say of their own work. Shown, and compared with itself; no share follows it. */
struct bh_state_own {
    uint64_t at_ns; /* when its warden last told; 0: it never said anything */
    bool joined;    /* a warden has told since it came: what it says is more than it said before */
    uint64_t done, lines;
    struct bh_govern_own last;
};

enum bh_hold {
    BH_HOLD_NONE,
    BH_HOLD_PAUSED,    /* by an operator */
    BH_HOLD_SUSPENDED, /* its memory leaves the card: hands off */
    BH_HOLD_AWAY,      /* that has left; what else of it comes to the card shares it as ever */
    BH_HOLDS
};

struct bh_governed {
    uint64_t id;
    int server;       /* who speaks for it: the caller's number, or BH_STATE_NOBODY */
    uint64_t left_ns; /* nobody does since then */
    uint32_t root_pid, uid;
    uint32_t weight, cap_permille, floor_permille, latency;
    uint32_t tampered;
    uint8_t hold; /* enum bh_hold */
    char name[BH_GOVERN_NAME];
    bool again; /* it had a governor before: nobody knows what that one, or somebody after it, has paused */
    struct bh_state_own own;
    BH_VEC(struct bh_seat) seats;
    BH_VEC(uint32_t) pids, coming; /* its processes, and a list of them that is not yet complete */
};

struct bh_state { /* zeroed: nobody */
    struct bh_governed *at[BH_STATE_LEASES];
    size_t n;
};

void bh_state_fini(struct bh_state *s);
/* One with somebody to speak for it. NULL: there is none. */
struct bh_governed *bh_state_find(const struct bh_state *s, uint64_t id);
/* Also one whose warden is gone and that may come back. */
struct bh_governed *bh_state_known(const struct bh_state *s, uint64_t id);
/* The lease an order means: by number, else by name. BH_NOT_FOUND; BH_CONFLICT where several have that name. */
int bh_state_meant(const struct bh_state *s, const struct bh_govern_order *o, struct bh_governed **ret,
                   struct bh_err *err) BH_MUST_USE;
/*
 * A lease comes, or comes back with the number it had: what was ordered for it and what it used are still there, if it was
 * not away for long. BH_INVALID: no such promise; BH_BUSY: no room, or somebody else speaks for that lease.
 * A new one has the number of its first process, one from another governor the number it had there; where that is taken
 * by another lease it gets a new one.
 */
int bh_state_join(struct bh_state *s, const struct bh_govern_join *j, int server, struct bh_governed **ret,
                  struct bh_err *err) BH_MUST_USE;
/* Nobody speaks for it any more. Its channels are forgotten: resume them before. */
void bh_state_leave(struct bh_governed *l, uint64_t now_ns);
/* Forgets those that left before that time. */
void bh_state_forget(struct bh_state *s, uint64_t before_ns);

/* The names are this lease's on that GPU; they run, where it had no governor before. BH_INVALID: an impossible message;
 * BH_TOO_LARGE. */
int bh_state_has(struct bh_governed *l, const struct bh_govern_channels *m, struct bh_err *err) BH_MUST_USE;
/* The message is one that may be sent: a known GPU, not more names than it has room for. */
int bh_state_lost_check(const struct bh_govern_channels *m, struct bh_err *err) BH_MUST_USE;
/* Is this one of those that a message takes away? By client and name alone, which the driver gives to one of all GPUs. */
bool bh_state_is_lost(const struct bh_govern_channels *m, const struct bh_channel *c);
void bh_state_lost(struct bh_governed *l, const struct bh_govern_channels *m);

/* These are its processes. BH_INVALID: an impossible message. */
int bh_state_pids(struct bh_governed *l, const struct bh_govern_pids *m, struct bh_err *err) BH_MUST_USE;

/* Its warden tells what they say. One that comes back goes on counting where it was, and another one begins at zero: so the first
 * that one tells counts for nothing, and is where it begins. */
void bh_state_own(struct bh_governed *l, const struct bh_govern_own *m, uint64_t now_ns);
/* Do they still say something? */
bool bh_state_says(const struct bh_governed *l, uint64_t now_ns);

struct bh_seat *bh_seat_find(const struct bh_governed *l, uint32_t gpu);               /* or NULL */
struct bh_channel *bh_seat_channel(const struct bh_seat *s, struct bh_driver_channel); /* or NULL */
const uint32_t *bh_seat_pids(struct bh_seat *s, size_t *ret_n); /* who has channels there, in order */
/* On whom the card may book what the lease has there: all its processes, in order. */
const uint32_t *bh_seat_all_pids(const struct bh_governed *l, struct bh_seat *s, size_t *ret_n);
void bh_seat_unsure(struct bh_seat *s); /* whether its channels run is to be made certain */
/* NULL, or what is wrong with it. */
const char *bh_state_check(const struct bh_state *s);

#endif
