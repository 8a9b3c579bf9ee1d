/* SPDX-License-Identifier: Apache-2.0 */
/* silicon.c - reads the machine, writes its cards down, and shows them. */
#include "node/silicon.h"

#include "base/str.h"
#include "gpu/copy.h"
#include "gpu/health.h"
#include "store/state_lease.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB_SHIFT = 20 };

static void forget(struct bh_silicon *s)
{
    if (!s->here)
        return;
    bh_survey_fini(&s->survey);
    bh_gpu_snapshot_fini(&s->snapshot);
    if (s->has_now)
        bh_gpu_snapshot_fini(&s->now);
    s->has_now = false;
    s->here = false;
}

int bh_silicon_read(struct bh_silicon *s, const char *node, struct bh_err *err)
{
    struct bh_gpu_snapshot now;
    const int rc = bh_gpu_read(&bh_gpu_machine_fleet, &now, err);
    if (rc < 0)
        return rc;
    forget(s);
    s->snapshot = now;
    bh_survey_make(&s->survey, &s->snapshot, node);
    s->here = true;
    return BH_OK;
}

static bool same_card(const struct bh_gpu_device *a, const struct bh_gpu_device *b)
{
    return a->alive == b->alive && a->index == b->index && a->uuid && b->uuid &&
           bh_str_eq(a->uuid, b->uuid) &&
           a->mig_mode.v == b->mig_mode.v; /* instances are ours to cut: bh_silicon_is_cut */
}

/* Shared with the worker, at the same address in both: the snapshot's pointers hold on either side. */
#define BOARD_BYTES ((size_t)64 << 20)

static void look_work(const void *arg, struct bh_worker_result *ret)
{
    struct bh_gpu_snapshot *board, seen;
    struct bh_err err = {0};
    const struct bh_silicon *s = arg;
    board = s->board;
    struct bh_gpu_room room = {(char *)(board + 1), BOARD_BYTES - sizeof(*board)};
    ret->code = bh_gpu_read(s->depth == BH_GPU_USERS   ? &bh_gpu_machine_users
                            : s->depth == BH_GPU_STATE ? &bh_gpu_machine_state
                                                       : &bh_gpu_machine_fleet,
                            &seen, &err);
    if (ret->code == BH_OK && !bh_gpu_snapshot_copy(board, &seen, &room))
        ret->code = bh_fail(&err, BH_TOO_LARGE, "the driver says too much about its GPUs");
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
}

int bh_silicon_look(struct bh_silicon *s, enum bh_gpu_depth depth, struct bh_err *err)
{
    if (!s->board) {
        void *at = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1, 0);
        if (at == MAP_FAILED)
            return bh_fail(err, BH_SYSTEM, "no memory to share with the process that reads the GPUs");
        s->board = at;
    }
    s->depth = depth;
    const int rc = bh_worker_start(look_work, s, &s->worker, err);
    if (rc == BH_OK)
        bh_worker_name(&s->worker, "the look at the GPUs");
    return rc;
}

/* Where links lead was not asked: as it was said last. */
static void keep_domains(struct bh_gpu_snapshot *seen, const struct bh_gpu_snapshot *before)
{
    for (size_t i = 0; i < seen->devices.n; i++)
        for (size_t k = 0; k < before->devices.n; k++) {
            struct bh_gpu_device *to = &seen->devices.at[i];
            const struct bh_gpu_device *from = &before->devices.at[k];
            if (to->uuid && from->uuid && from->domain && bh_str_eq(to->uuid, from->uuid))
                to->domain = bh_arena_str(&seen->arena, from->domain);
        }
}

int bh_silicon_looked(struct bh_silicon *s, bool *ret_moved, struct bh_err *err)
{
    struct bh_worker_result result;
    bh_worker_finish(&s->worker, &result);
    if (result.code < 0)
        return bh_fail(err, (enum bh_code)result.code, "%s", result.text);
    struct bh_gpu_snapshot seen;
    (void)bh_gpu_snapshot_copy(&seen, s->board, NULL);
    if (s->depth == BH_GPU_STATE)
        keep_domains(&seen, s->has_now ? &s->now : &s->snapshot);
    if (s->has_now)
        bh_gpu_snapshot_fini(&s->now);
    s->now = seen;
    s->has_now = true;
    *ret_moved = !s->here || s->now.devices.n != s->snapshot.devices.n;
    for (size_t i = 0; !*ret_moved && i < s->now.devices.n; i++)
        *ret_moved = !same_card(&s->now.devices.at[i], &s->snapshot.devices.at[i]);
    return BH_OK;
}

int bh_silicon_looked_who(struct bh_silicon *s, struct bh_gpu_snapshot *ret, bool *ret_odd,
                          struct bh_err *err)
{
    struct bh_worker_result result;
    const struct bh_gpu_snapshot *known = s->has_now ? &s->now : &s->snapshot;
    bh_worker_finish(&s->worker, &result);
    if (result.code < 0)
        return bh_fail(err, (enum bh_code)result.code, "%s", result.text);
    (void)bh_gpu_snapshot_copy(ret, s->board, NULL);
    bool odd = ret->devices.n != known->devices.n || !ret->driver != !known->driver ||
               (ret->driver && !bh_str_eq(ret->driver, known->driver));
    for (size_t i = 0; !odd && i < ret->devices.n; i++) {
        const struct bh_gpu_device *a = &ret->devices.at[i], *b = &known->devices.at[i];
        odd = !a->alive || !b->alive || a->index != b->index || !a->uuid != !b->uuid ||
              (a->uuid && !bh_str_eq(a->uuid, b->uuid));
    }
    *ret_odd = odd;
    return BH_OK;
}

void bh_silicon_fini(struct bh_silicon *s)
{
    forget(s);
    bh_worker_kill(&s->worker);
    if (s->board)
        (void)munmap(s->board, BOARD_BYTES);
    bh_vec_fini(&s->rows);
    bh_vec_fini(&s->switches);
    bh_arena_fini(&s->arena);
}

const struct bh_fleet *bh_silicon_fleet(const struct bh_silicon *s)
{
    return s->here ? &s->survey.fleet : NULL;
}

void bh_silicon_is_cut(struct bh_silicon *s, const char *uuid)
{
    for (size_t i = 0; s->here && i < s->snapshot.devices.n; i++)
        if (s->snapshot.devices.at[i].uuid && bh_str_eq(s->snapshot.devices.at[i].uuid, uuid)) {
            s->snapshot.devices.at[i].mig_mode.v = 1;
            s->snapshot.devices.at[i].mig_mode.why = NULL;
        }
}

const struct bh_gpu_device *bh_silicon_device(const struct bh_silicon *s, const char *uuid)
{
    for (size_t i = 0; s->here && i < s->snapshot.devices.n; i++)
        if (s->snapshot.devices.at[i].uuid && bh_str_eq(s->snapshot.devices.at[i].uuid, uuid))
            return &s->snapshot.devices.at[i];
    return NULL;
}

bool bh_silicon_ref(const struct bh_silicon *s, const char *uuid, struct bh_gpu_ref *ret)
{
    const struct bh_fleet_node *n = s->here ? &s->survey.fleet.nodes.at[0] : NULL;
    for (size_t i = 0; n && i < n->gpus.n; i++)
        if (n->gpus.at[i].uuid && bh_str_eq(n->gpus.at[i].uuid, uuid)) {
            *ret = (struct bh_gpu_ref){.node = 0, .gpu = (uint32_t)i};
            return true;
        }
    return false;
}

const char *bh_silicon_uuid(const struct bh_silicon *s, struct bh_gpu_ref ref)
{
    const struct bh_fleet *f = bh_silicon_fleet(s);
    return f && ref.node < f->nodes.n && ref.gpu < f->nodes.at[ref.node].gpus.n
               ? f->nodes.at[ref.node].gpus.at[ref.gpu].uuid
               : NULL;
}

static uint32_t mib_of(struct bh_reading bytes)
{
    return bytes.why ? 0 : (uint32_t)(bytes.v >> MIB_SHIFT);
}

int bh_silicon_record(const struct bh_silicon *s, struct bh_store *store, uint64_t now_ms, struct bh_err *err)
{
    for (size_t i = 0; s->here && i < s->snapshot.devices.n; i++) {
        const struct bh_gpu_device *d = &s->snapshot.devices.at[i];
        const struct bh_store_card card = {.uuid = d->uuid,
                                           .model = d->model  ? d->model->name
                                                    : d->name ? d->name
                                                              : "unknown",
                                           .index = d->index,
                                           .memory_mib = mib_of(d->total_bytes),
                                           .seen_ms = now_ms};
        if (!d->alive || !d->uuid)
            continue;
        const int rc = bh_store_card_put(store, &card, err);
        if (rc < 0 &&
            rc != BH_CONFLICT) /* less memory than was given away: drift.c keeps it from the next one */
            return rc;
    }
    return BH_OK;
}

/* ---- rows for the API ---- */

static const char *pool_of(const struct bh_policy *p, uint32_t gpu)
{
    for (size_t i = 0; p && i < p->pools.n; i++)
        for (size_t k = 0; k < p->pools.at[i].gpus.n; k++)
            if (p->pools.at[i].gpus.at[k].gpu == gpu)
                return p->pools.at[i].name;
    return NULL;
}

static uint64_t value_of(struct bh_reading r)
{
    return r.why ? UINT64_MAX : r.v;
}

/* What the store says of all cards at once: a question for each, of all its slices, would be a thousand rows. */
struct written {
    bh_store_cards cards;
    bh_store_slices kept;
    bh_store_shared_cards shared;
};

static const char *layout_of(struct bh_arena *a, const struct bh_gpu_device *d, const struct written *w)
{
    if (!d->mig_mode.why && d->mig_mode.v)
        return bh_arena_printf(a, "mig, %zu instances", d->instances.n);
    for (size_t i = 0; d->uuid && i < w->shared.n; i++)
        if (bh_str_eq(w->shared.at[i].gpu, d->uuid))
            return bh_arena_printf(a, "shared by %llu", (unsigned long long)w->shared.at[i].n);
    return "whole";
}

static void state_of(struct bh_api_gpu *row, const struct bh_gpu_device *d, const struct bh_store_card *card,
                     const struct written *w)
{
    row->state = "ok";
    for (size_t i = 0; card && i < w->kept.n; i++)
        if (bh_str_eq(w->kept.at[i].name.gpu, card->uuid)) {
            row->state = "quarantined";
            row->reason = w->kept.at[i].why;
        }
    if (card && card->cordoned_ms && !row->reason) {
        row->state = "cordoned";
        row->reason = card->cordon_why;
    }
    if (card && card->health != BH_CARD_OK) {
        row->state =
            card->health == BH_CARD_BAD || bh_str_eq(row->state, "quarantined") ? "quarantined" : "cordoned";
        row->reason = card->health_why;
    }
    if (!d->alive) {
        row->state = "lost";
        row->reason = card && card->health == BH_CARD_BAD ? card->health_why : d->trouble;
    }
}

/* What was written down about it stands before what the driver says now: it is why nobody gets it. */
static const char *health_of(struct bh_arena *a, const struct bh_gpu_device *d,
                             const struct bh_store_card *card)
{
    if (card && card->health != BH_CARD_OK)
        return bh_arena_printf(a, "%s: %s", bh_card_health_str(card->health), card->health_why);
    return bh_gpu_trouble(a, d);
}

static void add_row(struct bh_silicon *s, const struct bh_policy *policy, const struct written *w,
                    const struct bh_gpu_device *d)
{
    const struct bh_store_card *card = NULL;
    /* How the cards reach each other is what it was when the fleet was made, by which everything is decided. */
    const struct bh_gpu_device *first = d->uuid ? bh_silicon_device(s, d->uuid) : NULL;
    for (size_t i = 0; d->uuid && i < w->cards.n; i++)
        if (bh_str_eq(w->cards.at[i].uuid, d->uuid))
            card = &w->cards.at[i];
    struct bh_gpu_ref ref = {.gpu = BH_NONE};
    if (d->uuid)
        (void)bh_silicon_ref(s, d->uuid, &ref);
    struct bh_api_gpu *row = bh_vec_push(&s->rows);
    *row = (struct bh_api_gpu){.index = d->index,
                               .uuid = d->uuid,
                               .model = d->model ? d->model->name : d->name,
                               .pci = d->pci,
                               .pool = pool_of(policy, ref.gpu),
                               .health = health_of(&s->arena, d, card),
                               .fabric = first ? first->domain : NULL,
                               .numa = d->numa < 0 ? UINT64_MAX : (uint64_t)d->numa,
                               .layout = layout_of(&s->arena, d, w),
                               .vbios = d->vbios,
                               .gsp = d->gsp,
                               .inforom = d->inforom,
                               .memory_mib = mib_of(d->total_bytes),
                               .used_mib = d->used_bytes.why ? UINT64_MAX : d->used_bytes.v >> MIB_SHIFT,
                               .util_percent = value_of(d->util_percent),
                               .temperature_c = value_of(d->temperature_c),
                               .power_mw = value_of(d->power_mw)};
    state_of(row, d, card, w);
}

int bh_silicon_rows(struct bh_silicon *s, struct bh_store *store, const struct bh_policy *policy,
                    struct bh_err *err)
{
    struct written w = {0};
    bh_arena_fini(&s->arena);
    s->rows.n = 0;
    int rc = bh_store_cards_list(store, &s->arena, &w.cards, err);
    if (rc == BH_OK)
        rc = bh_store_slices_quarantined(store, &s->arena, &w.kept, err);
    if (rc == BH_OK)
        rc = bh_store_shared_cards_list(store, &s->arena, &w.shared, err);
    const struct bh_gpu_snapshot *from = s->has_now ? &s->now : &s->snapshot;
    for (size_t i = 0; rc == BH_OK && s->here && i < from->devices.n; i++)
        add_row(s, policy, &w, &from->devices.at[i]);
    s->switches.n = 0;
    for (size_t i = 0; s->here && i < from->switches.n; i++)
        *bh_vec_push(&s->switches) =
            (struct bh_api_switch){from->switches.at[i].pci, from->switches.at[i].bios};
    bh_vec_fini(&w.cards);
    bh_vec_fini(&w.kept);
    bh_vec_fini(&w.shared);
    return rc;
}
