/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_cards.c - GPUs, their slices, and the leases that have them.
 *
 * How busy or full a card is tells of whoever is on it: such a row is the tenant's who has all of it, and nobody's where several
 * have it. What the driver does not say is not there.
 */
#include "base/str.h"
#include "base/units.h"
#include "core/ledger/strand.h"
#include "core/sched/request.h"
#include "node/life.h"
#include "node/meter.h"

#include <stdio.h>

/* A share of an instance is written down as a part of the instance. */
uint32_t bh_node_slice_milli(const bh_store_slices *all, const struct bh_store_slice *s)
{
    if (s->name.kind != BH_SLICE_SHARE || !*s->name.base)
        return s->milli;
    for (size_t i = 0; i < all->n; i++) {
        const struct bh_slice_name *name = &all->at[i].name;
        if (name->kind == BH_SLICE_MIG && bh_str_eq(name->gpu, s->name.gpu) &&
            bh_str_eq(name->key, s->name.base))
            return s->milli * all->at[i].milli / 1000;
    }
    return s->milli;
}

/* What is known of one card. */
struct card {
    const struct bh_gpu_device *placed; /* as it was when the daemon started, and the scheduler counts it */
    const struct bh_gpu_device *now; /* as it was last seen; NULL: it was not, and nothing is known of it */
    const struct bh_store_card *row; /* NULL: not in the books */
    const char *index;
    uint64_t used_milli, used_mib, quarantined_milli, quarantined;
    const char *tenant, *lease; /* that have all of what is in use; NULL: nobody, or several */
    bool shared;
};

struct cards {
    struct bh_daemon *d;
    struct bh_metrics *out;
    struct bh_arena arena;
    bh_store_cards rows;
    BH_VEC(struct card) at;
    size_t last; /* that was asked for */
    uint64_t alive, idle, fragmented, cordoned, failed, quarantined, no_memory, no_compute; /* thousandths */
};

static struct card *card_of(struct cards *c, const char *uuid)
{
    /* Slices are listed card by card. */
    for (size_t k = 0; k < c->at.n; k++) {
        const size_t i = (c->last + k) % c->at.n;
        if (bh_str_eq(c->at.at[i].placed->uuid, uuid)) {
            c->last = i;
            return &c->at.at[i];
        }
    }
    return NULL;
}

static const char *lease_text(struct cards *c, uint64_t lease)
{
    return bh_arena_printf(&c->arena, "L%llu", (unsigned long long)lease);
}

/* One that fell off the bus has no name any more. */
static const struct bh_gpu_device *seen_now(const struct bh_silicon *s, const char *uuid)
{
    const struct bh_gpu_snapshot *from = s->has_now ? &s->now : &s->snapshot;
    for (size_t i = 0; i < from->devices.n; i++)
        if (from->devices.at[i].alive && bh_str_eq(from->devices.at[i].uuid, uuid))
            return &from->devices.at[i];
    return NULL;
}

static void find_cards(struct cards *c)
{
    const struct bh_silicon *s = &c->d->silicon;
    for (size_t i = 0; s->here && i < s->snapshot.devices.n; i++) {
        const struct bh_gpu_device *dev = &s->snapshot.devices.at[i];
        if (!dev->uuid)
            continue;
        struct card *card = bh_vec_push(&c->at);
        *card = (struct card){.placed = dev,
                              .now = seen_now(s, dev->uuid),
                              .index = bh_arena_printf(&c->arena, "%u", dev->index)};
        for (size_t k = 0; k < c->rows.n; k++)
            if (bh_str_eq(c->rows.at[k].uuid, dev->uuid))
                card->row = &c->rows.at[k];
    }
}

/* ---- slices ---- */

static void count_slice(struct cards *c, struct card *card, const bh_store_slices *all,
                        const struct bh_store_slice *s)
{
    const struct bh_life *run = s->lease ? bh_life_of_lease(c->d, s->lease) : NULL;
    const uint32_t milli = bh_node_slice_milli(all, s);
    if (s->state == BH_SLICE_FREE)
        return;
    card->used_milli += milli;
    card->used_mib += s->mib;
    if (s->state == BH_SLICE_QUARANTINED) {
        card->quarantined++;
        card->quarantined_milli += milli;
        card->shared = true; /* whose it was is nobody's business */
        return;
    }
    const char *lease = lease_text(c, s->lease);
    if (!run || (card->tenant && !bh_str_eq(card->tenant, run->tenant)))
        card->shared = true;
    else if (card->lease && !bh_str_eq(card->lease, lease))
        card->lease = "";
    else
        card->lease = lease;
    if (run)
        card->tenant = run->tenant;
    if (!run || s->state != BH_SLICE_OWNED)
        return;
    const char *const *labels = BH_LABELS(lease, run->tenant, card->index,
                                          *s->name.key ? s->name.key : bh_slice_kind_str(s->name.kind));
    bh_metrics_add(c->out, BH_METRIC_L_GRANTED, run->tenant, milli, labels);
    bh_metrics_add(c->out, BH_METRIC_L_MEMORY_GRANTED, run->tenant, (int64_t)(s->mib * BH_MIB), labels);
}

static void put_slices(struct cards *c, const bh_store_slices *slices)
{
    uint64_t n[BH_SLICE_KINDS][BH_SLICE_STATES] = {{0}};
    for (size_t i = 0; i < slices->n; i++) {
        struct card *card = card_of(c, slices->at[i].name.gpu);
        n[slices->at[i].name.kind][slices->at[i].state]++;
        if (card)
            count_slice(c, card, slices, &slices->at[i]);
    }
    for (unsigned k = 0; k < BH_SLICE_KINDS; k++)
        for (unsigned s = 0; s < BH_SLICE_STATES; s++)
            bh_metrics_add(c->out, BH_METRIC_SLICES, NULL, (int64_t)n[k][s],
                           BH_LABELS(bh_slice_kind_str((enum bh_slice_kind)k),
                                     bh_slice_state_str((enum bh_slice_state)s)));
}

/* ---- cards ---- */

static void reading(struct cards *c, const struct card *card, enum bh_metric family, struct bh_reading r,
                    uint64_t per)
{
    const struct bh_gpu_device *dev = card->now;
    const char *tenant = card->shared ? NULL : card->tenant;
    const char *lease = tenant && card->lease && *card->lease ? card->lease : NULL;
    char device[32];
    if (r.why)
        return;
    (void)snprintf(device, sizeof(device), "nvidia%d", dev->minor);
    bh_metrics_add(c->out, family, tenant, (int64_t)(r.v / per),
                   BH_LABELS(card->index, dev->uuid, dev->minor < 0 ? NULL : device,
                             dev->name ? dev->name : NULL, c->d->node, tenant, lease));
}

static void put_readings(struct cards *c, const struct card *card)
{
    const struct bh_gpu_device *dev = card->now;
    const struct {
        enum bh_metric family;
        struct bh_reading value;
        uint64_t per;
    } rows[] = {{BH_METRIC_D_UTIL, dev->util_percent, 1},
                {BH_METRIC_D_MEM_UTIL, dev->memory_util_percent, 1},
                {BH_METRIC_D_FB_USED, dev->used_bytes, BH_MIB},
                {BH_METRIC_D_FB_FREE, dev->free_bytes, BH_MIB},
                {BH_METRIC_D_TEMP, dev->temperature_c, 1},
                {BH_METRIC_D_POWER, dev->power_mw, 1},
                {BH_METRIC_D_SM, dev->sm_mhz, 1},
                {BH_METRIC_D_MEM, dev->memory_mhz, 1},
                {BH_METRIC_D_SBE, dev->ecc_corrected, 1},
                {BH_METRIC_D_DBE, dev->ecc_uncorrected, 1},
                {BH_METRIC_D_DBE_NOW, dev->ecc_uncorrected_now, 1},
                {BH_METRIC_D_REMAP, dev->remap_failed, 1}};
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++)
        reading(c, card, rows[i].family, rows[i].value, rows[i].per);
}

static void put_instances(struct cards *c, const struct card *card)
{
    for (size_t i = 0; i < card->now->instances.n; i++) {
        const struct bh_gpu_instance *g = &card->now->instances.at[i];
        if (i && card->now->instances.at[i - 1].gi == g->gi)
            continue; /* another compute instance of the same memory */
        const char *const *labels =
            BH_LABELS(card->index, card->now->uuid, bh_arena_printf(&c->arena, "%u", g->gi), g->profile);
        if (!g->total_bytes.why)
            bh_metrics_add(c->out, BH_METRIC_M_TOTAL, NULL, (int64_t)g->total_bytes.v, labels);
        if (!g->used_bytes.why)
            bh_metrics_add(c->out, BH_METRIC_M_USED, NULL, (int64_t)g->used_bytes.v, labels);
    }
}

/* Of one that is lost the domain is not known; that it is lost is told. */
static bool is_out_of_domain(const struct card *card)
{
    return card->now && card->placed->domain && !bh_str_eq(card->placed->domain, card->now->domain);
}

static bool is_failed(const struct card *card)
{
    return !card->now || (card->row && card->row->health != BH_CARD_OK);
}

static bool is_cordoned(const struct card *card)
{
    return card->row && card->row->cordoned_ms;
}

/* Where what is not in use counts. Beside memory that is all in use nobody can be given compute, and a crumb of it is nobody's either:
 * two of 3g leave a seventh of a card and no memory, seven of 1g a few thousandths. As bh_strand has it. */
static uint64_t *home_of_idle(struct cards *c, const struct card *card, uint64_t idle)
{
    const uint64_t mib = card->placed->total_bytes.why ? 0 : card->placed->total_bytes.v / BH_MIB;
    const uint64_t left = mib > card->used_mib ? mib - card->used_mib : 0;
    if (is_failed(card))
        return &c->failed;
    if (is_cordoned(card))
        return &c->cordoned;
    if (card->used_milli && mib && left * BH_STRAND_PART < mib)
        return &c->no_memory;
    if (card->used_milli && idle * BH_STRAND_PART < BH_GPU_MILLI)
        return &c->no_compute;
    return &c->idle;
}

static void put_card(struct cards *c, const struct card *card)
{
    const char *const *labels = BH_LABELS(card->index, card->placed->uuid);
    const uint64_t used = card->used_milli < BH_GPU_MILLI ? card->used_milli : BH_GPU_MILLI,
                   idle = BH_GPU_MILLI - used;
    uint64_t *home = home_of_idle(c, card, idle);
    bh_metrics_add(c->out, BH_METRIC_G_GRANTED, NULL,
                   (int64_t)(used > card->quarantined_milli ? used - card->quarantined_milli : 0), labels);
    bh_metrics_add(c->out, BH_METRIC_G_CORDONED, NULL, is_cordoned(card), labels);
    bh_metrics_add(c->out, BH_METRIC_G_QUARANTINED, NULL, (int64_t)card->quarantined, labels);
    bh_metrics_add(c->out, BH_METRIC_G_FAILED, NULL, is_failed(card), labels);
    if (card->now && card->placed->domain)
        bh_metrics_add(c->out, BH_METRIC_G_FABRIC, NULL, is_out_of_domain(card),
                       BH_LABELS(card->index, card->placed->uuid, card->placed->domain,
                                 card->now->domain ? card->now->domain : "none"));
    if (card->now) {
        put_readings(c, card);
        put_instances(c, card);
    }
    c->quarantined += card->quarantined_milli;
    *home += idle;
    c->fragmented += home == &c->idle && used ? idle : 0;
    c->alive += card->now ? BH_GPU_MILLI : 0;
}

static void put_sums(struct cards *c)
{
    const struct {
        const char *why;
        uint64_t milli;
    } stranded[] = {{"cordoned", c->cordoned},
                    {"failed", c->failed},
                    {"quarantined", c->quarantined},
                    {"memory", c->no_memory},
                    {"compute", c->no_compute}};
    bh_metrics_add(c->out, BH_METRIC_GPUS_ALL, NULL, (int64_t)c->alive, BH_NO_LABELS);
    bh_metrics_add(c->out, BH_METRIC_GPUS_IDLE, NULL, (int64_t)c->idle, BH_NO_LABELS);
    bh_metrics_add(c->out, BH_METRIC_GPUS_FRAGMENTED, NULL, (int64_t)c->fragmented, BH_NO_LABELS);
    for (size_t i = 0; i < BH_COUNT_OF(stranded); i++)
        bh_metrics_add(c->out, BH_METRIC_GPUS_STRANDED, NULL, (int64_t)stranded[i].milli,
                       BH_LABELS(stranded[i].why));
}

/* ---- leases ---- */

static void put_shares(struct cards *c)
{
    for (size_t i = 0; i < c->d->meter.shares.n; i++) {
        const struct bh_meter_share *s = &c->d->meter.shares.at[i];
        const struct bh_life *run = bh_life_of_lease(c->d, s->lease);
        if (!run)
            continue;
        const char *const *labels =
            BH_LABELS(lease_text(c, s->lease), run->tenant, bh_arena_printf(&c->arena, "%u", s->gpu));
        bh_metrics_add(c->out, BH_METRIC_L_TARGET, run->tenant, s->target_permille, labels);
        bh_metrics_add(c->out, BH_METRIC_L_CORRECTIONS, run->tenant, s->corrections, labels);
        bh_metrics_add(c->out, BH_METRIC_L_TAMPERED, run->tenant, s->tampered, labels);
        if (!s->seen)
            continue;
        bh_metrics_add(c->out, BH_METRIC_L_DELIVERED, run->tenant, s->delivered_permille, labels);
        bh_metrics_add(c->out, BH_METRIC_L_MISSING, run->tenant, s->missing_permille, labels);
        bh_metrics_add(c->out, BH_METRIC_L_BUSY, run->tenant, (int64_t)s->busy_ns, labels);
    }
}

static void put_leases(struct cards *c)
{
    for (size_t i = 0; i < c->d->meter.memory.n; i++) {
        const struct bh_meter_memory *m = &c->d->meter.memory.at[i];
        const struct bh_life *run = bh_life_of_lease(c->d, m->lease);
        if (run)
            bh_metrics_add(
                c->out, BH_METRIC_L_MEMORY_USED, run->tenant, (int64_t)m->bytes,
                BH_LABELS(lease_text(c, m->lease), run->tenant, bh_arena_printf(&c->arena, "%u", m->gpu)));
    }
    for (size_t i = 0; i < c->d->runs.n; i++) {
        const struct bh_life *run = c->d->runs.at[i];
        if (run->state == BH_LEASE_ACTIVE && run->terms.cap_bytes)
            bh_metrics_add(c->out, BH_METRIC_L_MEMORY_LIMIT, run->tenant, (int64_t)run->terms.cap_bytes,
                           BH_LABELS(lease_text(c, run->lease), run->tenant));
    }
}

/* One row for each lease whose cards have a domain; slices of one lease need not stand together. */
static void put_fabric(struct cards *c, const bh_store_slices *slices)
{
    struct bh_idmap seen = {0};
    BH_VEC(struct {
        uint64_t lease;
        bool wrong;
    })
    at = {0};
    for (size_t i = 0; i < slices->n; i++) {
        const struct bh_store_slice *s = &slices->at[i];
        const struct card *card = s->state == BH_SLICE_OWNED ? card_of(c, s->name.gpu) : NULL;
        if (!card || !card->placed->domain)
            continue;
        uint32_t k = bh_idmap_find(&seen, s->lease);
        if (k == BH_IDMAP_NONE) {
            k = (uint32_t)at.n;
            (void)bh_idmap_add(&seen, s->lease, k);
            (void)bh_vec_push(&at);
            at.at[k].lease = s->lease;
            at.at[k].wrong = false;
        }
        at.at[k].wrong |= is_out_of_domain(card);
    }
    for (size_t i = 0; i < at.n; i++) {
        const struct bh_life *run = bh_life_of_lease(c->d, at.at[i].lease);
        if (run)
            bh_metrics_add(c->out, BH_METRIC_L_FABRIC, run->tenant, at.at[i].wrong,
                           BH_LABELS(lease_text(c, run->lease), run->tenant));
    }
    bh_vec_fini(&at);
    bh_idmap_fini(&seen);
}

int bh_node_metrics_cards(struct bh_daemon *d, const bh_store_slices *slices, struct bh_metrics *ret,
                          struct bh_err *err)
{
    struct cards c = {.d = d, .out = ret};
    const int rc = bh_store_cards_list(d->store, &c.arena, &c.rows, err);
    if (rc == BH_OK) {
        find_cards(&c);
        put_slices(&c, slices);
        for (size_t i = 0; i < c.at.n; i++)
            put_card(&c, &c.at.at[i]);
        put_sums(&c);
        put_shares(&c);
        put_leases(&c);
        put_fabric(&c, slices);
    }
    bh_vec_fini(&c.at);
    bh_vec_fini(&c.rows);
    bh_arena_fini(&c.arena);
    return rc;
}
