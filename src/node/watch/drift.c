/* SPDX-License-Identifier: Apache-2.0 */
/* drift.c - what was written down of the cards and of the driver against what is there. */
#include "node/watch/drift.h"

#include "base/str.h"
#include "node/decide.h"
#include "node/life.h"
#include "node/watch/health.h"

#include <stdio.h>
#include <string.h>

enum { FACTS_MAX = 4096, WORDS_MAX = 320, DAY_MS = 86400 * 1000 };

#define DRIVER_NOTE "driver"
/* How the reason starts that the daemon takes back by itself, once it was started on that driver. */
#define OTHER_DRIVER "the driver was changed"

static const char *note_of(struct bh_arena *a, const char *uuid)
{
    return bh_arena_printf(a, "facts/%s", uuid);
}

static int write_event(struct bh_daemon *d, enum bh_audit_kind kind, const char *type, const char *id,
                       const char *before, const char *after, const char *reason, struct bh_err *err)
{
    const struct bh_audit_event e = {.event = kind,
                                     .sub = "service:bulkheadd",
                                     .object_type = type,
                                     .object_id = id,
                                     .before = before,
                                     .after = after,
                                     .reason = reason};
    return bh_audit_append(d->audit, &e, err);
}

/* ---- the driver ---- */

/* What was cordoned because of the change: the daemon is started on the driver that is there, and it is tested again. */
static int write_uncordon(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_cards cards = {0};
    int rc = bh_store_cards_list(d->store, &arena, &cards, err);
    for (size_t i = 0; rc == BH_OK && i < cards.n; i++)
        if (cards.at[i].health == BH_CARD_SUSPECT && bh_str_starts(cards.at[i].health_why, OTHER_DRIVER))
            rc = bh_store_card_health(d->store, cards.at[i].uuid, BH_CARD_OK, bh_daemon_now(d), "", err);
    bh_vec_fini(&cards);
    bh_arena_fini(&arena);
    return rc;
}

static int write_driver(struct bh_daemon *d, const char *was, const char *is, struct bh_arena *arena,
                        struct bh_err *err)
{
    bool open;
    const char *said = bh_drift_exposure(arena, is, (int32_t)(bh_daemon_now(d) / DAY_MS), &open);
    int rc = bh_store_note_set_text(d->store, DRIVER_NOTE, is, err);
    if (rc == BH_OK && was) /* also where it is one that was tested before: much can be installed with it */
        rc = bh_store_note_remove(d->store, bh_arena_printf(arena, "canary/%s", is), err);
    if (rc == BH_OK && was)
        rc = write_event(d, BH_AUDIT_DRIVER_CHANGE, "driver", "nvidia", was, is,
                         bh_arena_printf(arena, "%s; it is tested with canaries before GPUs are shared",
                                         said ? said : "no bulletin speaks of this driver"),
                         err);
    return rc == BH_OK ? write_uncordon(d, err) : rc;
}

int bh_drift_driver(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    const char *is = d->silicon.snapshot.driver;
    int rc = bh_store_note_get(d->store, &arena, DRIVER_NOTE, &note, err);
    const char *was = rc == BH_OK ? note.value : NULL;
    if (rc == BH_NOT_FOUND)
        rc = BH_OK;
    if (rc == BH_OK && is) {
        const bool other = !was || !bh_str_eq(was, is);
        if (was && other)
            bh_daemon_say(d, "the driver is %s, was %s when the daemon last ran", is, was);
        rc = bh_life_begin(d, err);
        if (rc == BH_OK)
            rc = bh_life_end(d, other ? write_driver(d, was, is, &arena, err) : write_uncordon(d, err), err);
        d->health.other_driver = was && other;
    }
    bh_arena_fini(&arena);
    return rc;
}

/* The daemon was started on another one: what it knows of this one is nothing. */
static void see_driver(struct bh_daemon *d, const struct bh_gpu_snapshot *now)
{
    const char *was = d->silicon.snapshot.driver, *is = now->driver;
    char why[WORDS_MAX];
    struct bh_err err;
    if (!was || !is || bh_str_eq(was, is) || bh_str_eq(d->health.driver_seen, is))
        return;
    (void)snprintf(why, sizeof(why),
                   OTHER_DRIVER " to %.60s while the daemon ran on %.60s: restart bulkheadd, work goes on",
                   is, was);
    int rc = bh_life_begin(d, &err);
    if (rc < 0) {
        bh_decide_later(d, &err);
        return;
    }
    rc = write_event(d, BH_AUDIT_VERSION_DRIFT, "driver", "nvidia", was, is, why, &err);
    for (size_t i = 0; rc == BH_OK && i < d->silicon.snapshot.devices.n; i++) {
        const char *uuid = d->silicon.snapshot.devices.at[i].uuid;
        struct bh_arena arena = {0};
        struct bh_store_card card;
        if (uuid && bh_store_card_get(d->store, &arena, uuid, &card, &err) == BH_OK &&
            card.health == BH_CARD_OK)
            rc = bh_store_card_health(d->store, uuid, BH_CARD_SUSPECT, bh_daemon_now(d), why, &err);
        bh_arena_fini(&arena);
    }
    rc = bh_life_end(d, rc, &err);
    if (rc < 0) {
        bh_decide_later(d, &err);
        return;
    }
    bh_daemon_say(d, "%s", why);
    (void)snprintf(d->health.driver_seen, sizeof(d->health.driver_seen), "%s", is);
    for (size_t i = 0; i < d->silicon.snapshot.devices.n; i++)
        if (d->silicon.snapshot.devices.at[i].uuid)
            bh_decide_health(d, d->silicon.snapshot.devices.at[i].uuid);
}

/* ---- the cards ---- */

static int write_facts(struct bh_daemon *d, const struct bh_gpu_device *now, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_buf facts;
    bh_buf_init(&facts, FACTS_MAX);
    bh_drift_write(&facts, now);
    const int rc = bh_store_note_set_text(d->store, note_of(&arena, now->uuid), bh_buf_text(&facts), err);
    bh_buf_fini(&facts);
    bh_arena_fini(&arena);
    return rc;
}

int bh_drift_write_accept(struct bh_daemon *d, const struct bh_gpu_device *now, struct bh_err *err)
{
    return write_facts(d, now, err);
}

struct seen {
    const struct bh_gpu_device *now;
    const char *shape, *firmware; /* "": as it was */
    bool is_new, well;
};

static int write_seen(struct bh_daemon *d, const struct seen *s, struct bh_err *err)
{
    char why[WORDS_MAX + 80];
    int rc = BH_OK;
    if (*s->firmware)
        rc = write_event(d, BH_AUDIT_FIRMWARE_CHANGE, "gpu", s->now->uuid, NULL, NULL, s->firmware, err);
    if (rc == BH_OK && *s->shape && s->well) {
        (void)snprintf(why, sizeof(why), "it is not as it was: %.*s; accept that with: bulkhead resume %u",
                       WORDS_MAX, s->shape, s->now->index);
        bh_daemon_say(d, "GPU %u: %s", s->now->index, why);
        rc = bh_health_write_suspect(d, s->now->uuid, BH_AUDIT_VERSION_DRIFT, why, err);
    }
    /* What stands against the card must stay to be seen: it is kept until somebody accepts it. */
    if (rc == BH_OK && !*s->shape)
        rc = write_facts(d, s->now, err);
    return rc;
}

static void look_at(struct bh_daemon *d, const struct bh_gpu_device *now)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    struct bh_store_card card;
    struct bh_buf shape, firmware;
    struct bh_err err;
    bh_buf_init(&shape, WORDS_MAX);
    bh_buf_init(&firmware, WORDS_MAX);
    int rc = bh_store_card_get(d->store, &arena, now->uuid, &card, &err);
    const bool known = rc == BH_OK;
    rc = known ? bh_store_note_get(d->store, &arena, note_of(&arena, now->uuid), &note, &err) : rc;
    if (rc == BH_OK)
        bh_drift_compare(note.value, now, d->health.other_driver, &shape, &firmware);
    const struct seen s = {.now = now,
                           .shape = bh_buf_text(&shape),
                           .firmware = bh_buf_text(&firmware),
                           .is_new = rc == BH_NOT_FOUND,
                           .well = known && card.health == BH_CARD_OK};
    /* A difference that is known already, and firmware that stays as it was, need no writing. */
    const bool news = known && (s.is_new || (*s.shape && s.well) || (*s.firmware && !*s.shape));
    if (news) {
        rc = bh_life_begin(d, &err);
        if (rc == BH_OK)
            rc = bh_life_end(d, write_seen(d, &s, &err), &err);
        if (rc < 0)
            bh_decide_later(d, &err);
        else if (*s.shape)
            bh_decide_health(d, now->uuid);
    }
    bh_buf_fini(&shape);
    bh_buf_fini(&firmware);
    bh_arena_fini(&arena);
}

/* ---- switches ---- */

static int write_switch(struct bh_daemon *d, const struct bh_gpu_switch *now, const char *was,
                        struct bh_err *err)
{
    struct bh_arena arena = {0};
    int rc =
        was ? write_event(d, BH_AUDIT_FIRMWARE_CHANGE, "nvswitch", now->pci, was, now->bios,
                          bh_arena_printf(&arena, "NVSwitch firmware is %s, was %s", now->bios, was), err)
            : BH_OK;
    if (rc == BH_OK)
        rc = bh_store_note_set_text(d->store, bh_arena_printf(&arena, "switch/%s", now->pci), now->bios, err);
    bh_arena_fini(&arena);
    return rc;
}

/* What the driver does not say is no change. One that is gone is seen by the links of the cards. */
static void look_at_switch(struct bh_daemon *d, const struct bh_gpu_switch *now)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    struct bh_err err;
    int rc = bh_store_note_get(d->store, &arena, bh_arena_printf(&arena, "switch/%s", now->pci), &note, &err);
    const char *was = rc == BH_OK ? bh_arena_strn(&arena, note.value, note.n) : NULL;
    if (rc == BH_NOT_FOUND || (was && !bh_str_eq(was, now->bios))) {
        rc = bh_life_begin(d, &err);
        if (rc == BH_OK)
            rc = bh_life_end(d, write_switch(d, now, was, &err), &err);
    }
    if (rc < 0)
        bh_decide_later(d, &err);
    bh_arena_fini(&arena);
}

void bh_drift_look(struct bh_daemon *d, const struct bh_gpu_snapshot *now)
{
    see_driver(d, now);
    for (size_t i = 0; !d->broken_until_ms && i < now->switches.n; i++)
        if (now->switches.at[i].bios)
            look_at_switch(d, &now->switches.at[i]);
    for (size_t i = 0; !d->broken_until_ms && i < now->devices.n; i++)
        if (now->devices.at[i].alive && now->devices.at[i].uuid)
            look_at(d, &now->devices.at[i]);
    d->health.other_driver = false; /* what it says of them is written down now */
}

/* ---- cards that came or went while no daemon ran ---- */

void bh_drift_start(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    bh_store_cards cards = {0};
    struct bh_err err;
    const int rc = bh_store_cards_list(d->store, &arena, &cards, &err);
    for (size_t i = 0; rc == BH_OK && i < cards.n; i++)
        if (!bh_silicon_device(&d->silicon, cards.at[i].uuid))
            bh_daemon_say(
                d,
                "%s (%s, GPU %u) was here and is not: nothing of it is given away; if it is gone for good and the "
                "policy counts on it: bulkhead policy apply FILE",
                cards.at[i].uuid, cards.at[i].model, cards.at[i].index);
    bh_vec_fini(&cards);
    bh_arena_fini(&arena);
    bh_drift_look(d, &d->silicon.snapshot);
}
