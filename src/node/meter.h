/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - what metrics are made of that is nowhere else: sums over the books that are kept up to date by their tail, what
 * the governor and the driver last said of leases, and what happened to this daemon itself.
 */
#ifndef BH_NODE_METER_H
#define BH_NODE_METER_H

#include "base/map.h"
#include "metrics/metrics.h"
#include "node/worker.h"
#include "store/state_totals.h"

#include <systemd/sd-event.h>

struct bh_daemon;
struct bh_life;
struct bh_keeper_end;

enum bh_refusal { BH_REFUSAL_MEMORY, BH_REFUSAL_DENIED, BH_REFUSAL_KILLED, BH_REFUSALS };

/* Of a tenant, whether or not the policy still has it. */
struct bh_meter_tenant {
    const char *name;
    struct bh_metric_spread wait;
    uint64_t preemptions;
    uint64_t refusals[BH_REFUSALS]; /* since the start */
};

/* A lease on a card, as the governor last said. */
struct bh_meter_share {
    uint64_t lease, busy_ns;
    uint32_t gpu, target_permille, delivered_permille, missing_permille, corrections, tampered;
    bool seen; /* its sensors answer */
};

/* Memory of a card that the driver books on processes of a lease. */
struct bh_meter_memory {
    uint64_t lease, bytes;
    uint32_t gpu;
};

struct bh_meter {
    struct bh_arena arena;
    struct bh_store_tail tail; /* how far the books were read */
    BH_VEC(struct bh_meter_tenant) tenants;
    struct bh_map by_name; /* to places in tenants */
    bh_store_useds used;   /* closed before tail.closed_ms */
    struct bh_map by_used; /* to places in used */
    uint64_t scrubs[BH_SLICE_KINDS][BH_SCRUB_VERDICTS];
    BH_VEC(struct bh_meter_share) shares;
    BH_VEC(struct bh_meter_memory) memory;
    uint64_t looked_ms; /* a card last answered; 0: only at the start */
    uint64_t audit_failures, store_failures;
    struct bh_metric_spread cycle; /* sum in microseconds */
    uint64_t longest_us;
    struct bh_worker worker; /* that asks the governor */
    sd_event_source *source;
    void *board; /* on which it writes; NULL: none has asked yet */
};

/* Reads the books once. What cannot be read is read with the next scrape. */
void bh_meter_start(struct bh_daemon *d);
void bh_meter_fini(struct bh_meter *m);
/* Reads what was added to the books. Inside a transaction: nothing, for now. */
int bh_meter_read(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
struct bh_meter_tenant *bh_meter_tenant(struct bh_meter *m, const char *name);

/* The governor is asked, in a worker. */
void bh_meter_look(struct bh_daemon *d);
/* There is a new snapshot: only after a look that did not fail. False: no card answered, and what is known is as old as before. */
bool bh_meter_looked(struct bh_daemon *d);
/* A lease ended, and its keeper said how. */
void bh_meter_ended(struct bh_daemon *d, const struct bh_life *run, const struct bh_keeper_end *end);
/* A cycle took so long. */
void bh_meter_cycle(struct bh_meter *m, uint64_t us);

/* ---- metrics.c ---- */

/* The seam's callback: everything, whoever asks. */
void bh_node_metrics(void *self, struct bh_metrics *ret);
/* metrics_cards.c: GPUs, their slices, and leases. */
int bh_node_metrics_cards(struct bh_daemon *d, const bh_store_slices *slices, struct bh_metrics *ret,
                          struct bh_err *err) BH_MUST_USE;
/* What of a card a slice is, in thousandths. */
uint32_t bh_node_slice_milli(const bh_store_slices *all, const struct bh_store_slice *s);

#endif
