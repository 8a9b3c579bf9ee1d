/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a lease and the governor of the machine (wire/govern.h). Of the gate alone.
 *
 * Tells the governor which channels the lease's processes have, sets the slices it orders, and looks whether they are still
 * what was set. The governor pauses by name and needs nobody for it; so whoever has lost it resumes first of all. The gate
 * never waits for a governor: what cannot be sent now is told later, and one that says nothing for BH_GOVERN_SILENT_MS counts
 * as gone.
 */
#ifndef BH_WARDEN_LINK_H
#define BH_WARDEN_LINK_H

#include "base/err.h"
#include "wire/lease.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_gate;
struct bh_link;

/* Channels of a lease on one GPU, while its share is held: pausing takes a call for each 64. A context of the vendor's library
 * has about 20; BH_STATE_CHANNELS of the governor is twice this. */
enum { BH_LINK_CHANNELS = 2048 };

struct bh_link_config {
    struct bh_lease_share share;
    int governor;     /* connection, the link's from bh_link_new on; -1: none could be had yet */
    uint32_t version; /* as the launcher gave it: struct bh_lease_given */
    int probe;        /* where its processes say what they do, left open (link_probe.h); -1: nowhere */
    int launcher;     /* who is asked for another one (bh_lease_ask); -1: nobody. Borrowed */
};

/*
 * A lease that begins is joined here, and what the governor says against it is the failure. One that goes on is resumed,
 * for the warden before may have died while it was paused, and joins when it can. Where it fails, the governor's connection
 * is closed.
 */
int bh_link_new(struct bh_gate *g, const struct bh_link_config *config, struct bh_link **ret,
                struct bh_err *err) BH_MUST_USE;
void bh_link_free(struct bh_link *l);    /* NULL: nothing */
int bh_link_fd(const struct bh_link *l); /* readable: bh_link_serve has something to do */
void bh_link_serve(struct bh_link *l);
/* The ledger may have changed. Costs a comparison where it has not. NULL: nothing. */
void bh_link_look(struct bh_link *l);

/* Processes of the lease have come or gone. NULL: nothing. */
void bh_link_pids_changed(struct bh_link *l);
/* May it have another channel on that GPU? */
bool bh_link_has_room(const struct bh_link *l, uint32_t gpu);
/* A tenant wants another slice for a group of its own: what to answer (enum rm_status), without having done it. */
uint32_t bh_link_slice_wanted(struct bh_link *l, uint32_t client, uint32_t group, uint64_t slice_us);
/* It tried to get at what the governor holds. */
void bh_link_tampered(struct bh_link *l, uint32_t gpu, uint32_t found_us);
/* A group is about to be scheduled: slices set before that have no effect. */
void bh_link_scheduled(struct bh_link *l, uint32_t client, uint32_t group);

#endif
