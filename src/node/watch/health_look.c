/* SPDX-License-Identifier: Apache-2.0 */
/* health_look.c - what the driver shows of its cards, for errors that nobody heard; the way back; what doctor is told. */
#include "node/watch/health.h"

#include "base/str.h"
#include "gpu/health.h"
#include "node/decide.h"
#include "node/watch/drift.h"
#include "node/watch/health_inside.h"

#include <stdio.h>
#include <string.h>

enum { STRIKES = 2 };

/* ---- what is seen ---- */

static uint32_t strike(struct bh_daemon *d, const char *uuid, bool again)
{
    struct bh_node_health *h = &d->health;
    size_t i = 0;
    while (i < h->strikes.n && !bh_str_eq(h->strikes.at[i].uuid, uuid))
        i++;
    if (i == h->strikes.n) {
        struct bh_health_strike *s = bh_vec_push(&h->strikes);
        *s = (struct bh_health_strike){0};
        (void)snprintf(s->uuid, sizeof(s->uuid), "%s", uuid);
    }
    h->strikes.at[i].times = again ? h->strikes.at[i].times + 1 : 0;
    return h->strikes.at[i].times;
}

static void judge(struct bh_daemon *d, const char *uuid, uint32_t index, enum bh_reach reach,
                  const char *what)
{
    struct bh_arena arena = {0};
    struct bh_store_card card;
    struct bh_err err;
    const uint32_t times = strike(d, uuid, reach == BH_REACH_ALL);
    const enum bh_card_health least = reach == BH_REACH_ALL ? BH_CARD_BAD : BH_CARD_SUSPECT;
    if (reach < BH_REACH_CARD || (reach == BH_REACH_ALL && times < STRIKES) ||
        bh_store_card_get(d->store, &arena, uuid, &card, &err) < 0 || card.health >= least) {
        bh_arena_fini(&arena);
        return;
    }
    struct bh_vigil_word w = {
        .kind = BH_VIGIL_EVENT,
        .event = {.gpu = index,
                  .kind = reach == BH_REACH_ALL ? BH_GPU_EVENT_LOST : BH_GPU_EVENT_MEMORY,
                  .reach = (uint8_t)reach,
                  .gi = BH_NO_ID,
                  .ci = BH_NO_ID}};
    (void)snprintf(w.event.uuid, sizeof(w.event.uuid), "%s", uuid);
    (void)snprintf(w.event.text, sizeof(w.event.text), "GPU %u: %.280s", index, what);
    bh_health_add(d, &w);
    bh_arena_fini(&arena);
}

static const struct bh_gpu_device *device_at(const struct bh_gpu_snapshot *s, const char *uuid)
{
    for (size_t i = 0; i < s->devices.n; i++)
        if (s->devices.at[i].uuid && bh_str_eq(s->devices.at[i].uuid, uuid))
            return &s->devices.at[i];
    return NULL;
}

/* One that is lost may not say its name: it stands where it stood. */
static const struct bh_gpu_device *same_place(const struct bh_gpu_snapshot *s, uint32_t index)
{
    for (size_t i = 0; i < s->devices.n; i++)
        if (!s->devices.at[i].uuid && s->devices.at[i].index == index)
            return &s->devices.at[i];
    return NULL;
}

void bh_health_looked(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    const struct bh_gpu_snapshot *was = &d->silicon.snapshot, *now = &d->silicon.now;
    for (size_t i = 0; d->silicon.has_now && !d->broken_until_ms && i < was->devices.n; i++) {
        const struct bh_gpu_device *card = &was->devices.at[i];
        if (!card->uuid)
            continue;
        const struct bh_gpu_device *seen = device_at(now, card->uuid);
        seen = seen ? seen : same_place(now, card->index);
        const char *what = seen ? bh_gpu_trouble(&arena, seen) : NULL;
        judge(d, card->uuid, card->index, seen ? bh_gpu_reach(seen) : BH_REACH_ALL,
              what ? what : "the driver does not show it any more");
    }
    bh_arena_fini(&arena);
    if (d->silicon.has_now && !d->broken_until_ms)
        bh_drift_look(d, now);
    bh_health_tick(d);
    bh_checks_stale(d);
}

/* ---- the way back ---- */

int bh_health_write_well(struct bh_daemon *d, const char *uuid, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_card card;
    struct bh_gpu_snapshot now;
    int rc = bh_store_card_get(d->store, &arena, uuid, &card, err);
    if (rc < 0 || card.health == BH_CARD_OK) {
        bh_arena_fini(&arena);
        return rc;
    }
    /* The last look may be older than what was done about it. */
    rc = bh_gpu_read(&bh_gpu_machine, &now, err);
    if (rc < 0) {
        bh_arena_fini(&arena);
        return bh_wrap(err, rc, "GPU %u cannot be looked at", card.index);
    }
    const struct bh_gpu_device *seen = device_at(&now, uuid);
    const char *trouble = seen ? bh_gpu_trouble(&arena, seen) : "the driver does not show it";
    if (!seen || bh_gpu_reach(seen) >= BH_REACH_CARD)
        rc = bh_fail(err, BH_REFUSED, "GPU %u is still not well: %s", card.index,
                     trouble ? trouble : "it does not answer");
    if (rc == BH_OK)
        rc = bh_drift_write_accept(d, seen, err);
    if (rc == BH_OK)
        rc = bh_store_card_health(d->store, uuid, BH_CARD_OK, bh_daemon_now(d), "", err);
    (void)strike(d, uuid, false);
    bh_gpu_snapshot_fini(&now);
    bh_arena_fini(&arena);
    return rc;
}

int bh_health_write_suspect(struct bh_daemon *d, const char *uuid, enum bh_audit_kind event, const char *why,
                            struct bh_err *err)
{
    const struct bh_audit_event a = {.event = event,
                                     .sub = "service:bulkheadd",
                                     .object_type = "gpu",
                                     .object_id = uuid,
                                     .before = bh_card_health_str(BH_CARD_OK),
                                     .after = bh_card_health_str(BH_CARD_SUSPECT),
                                     .reason = why};
    const int rc = bh_store_card_health(d->store, uuid, BH_CARD_SUSPECT, bh_daemon_now(d), why, err);
    return rc == BH_OK ? bh_audit_append(d->audit, &a, err) : rc;
}
