/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_groups.h - the channel groups of a lease and the slices they were given. Of the link alone.
 *
 * A slice that is set before a group is first scheduled reads back and has no effect (measured): so it is set again for a
 * while after each sign of that, and once a second from then on. It is read before that, for a tenant may set its own: where
 * one has, or has tried to, for a while at each look. One that was given nothing is read as often, against what it had as it
 * came. Each such call is a tenth of a millisecond of a processor.
 */
#ifndef BH_WARDEN_LINK_GROUPS_H
#define BH_WARDEN_LINK_GROUPS_H

#include "warden/gate_inside.h"
#include "warden/ledger_walk.h"
#include "wire/govern.h"

enum {
    BH_GROUPS_FOUND_MAX = 16,
    BH_GROUPS_DEFAULT_US = 2000, /* what the driver gives (branch 580), where it was not read as it came */
};

struct bh_group {
    uint32_t client, object, gpu;
    uint64_t file;
    int64_t young_ms, set_ms;  /* young until then; when it was set last */
    int64_t looked_ms;         /* when it was read to see whether somebody else has set it */
    uint32_t own_us;           /* as it came; 0: not known */
    uint32_t set_us, reads_us; /* what it was given (0: nothing), and how that read back */
    uint32_t level;            /* interleave given, and one; 0: none */
    bool asked;                /* its tenant has asked for a slice once, as every context does */
};
struct bh_groups {
    struct bh_group *at;
    size_t n, cap;
    bool young;      /* one of them is */
    int64_t wary_ms; /* until then each is read at each look */
    bool inherited;  /* those that come now may have been set by another warden */
    struct {
        bool given;
        uint32_t slice_us, level;
    } orders[BH_LEDGER_GPUS];
};
/* A group had another slice than it was given. */
struct bh_groups_found {
    uint32_t gpu, slice_us;
};

void bh_groups_fini(struct bh_groups *g);
/* These are all there are; what is known of those that were there before is kept. */
void bh_groups_are(struct bh_groups *g, const struct bh_ledger_runs *runs, struct bh_gate *gate,
                   int64_t now_ms);
void bh_groups_order(struct bh_groups *g, struct bh_gate *gate, const struct bh_govern_slice *order,
                     int64_t now_ms);
uint32_t bh_groups_ordered(const struct bh_groups *g, uint32_t gpu); /* 0: nothing, or the driver's own */
/* Sets again or reads each; how many were found to be other than they should (those past the room are put back unsaid). */
size_t bh_groups_look(struct bh_groups *g, struct bh_gate *gate, int64_t now_ms,
                      struct bh_groups_found ret[BH_GROUPS_FOUND_MAX]);
/* Somebody has changed one or tried to. */
void bh_groups_beware(struct bh_groups *g, int64_t now_ms);
/* Nobody orders any more: the driver's own again. */
void bh_groups_let_go(struct bh_groups *g, struct bh_gate *gate);
void bh_groups_are_young(struct bh_groups *g, uint32_t client, uint32_t object, int64_t now_ms);
/* May its tenant ask for a slice (and not get it)? The vendor's library does so once for each context. */
bool bh_groups_may_ask(struct bh_groups *g, uint32_t client, uint32_t object);

#endif
