/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_storm_fixture.h - random commands on a store, the same on any store that is in the same state.
 *
 * Sensible ones more often than not, so that leases get somewhere; the rest must be refused.
 */
#ifndef BH_STORE_STATE_STORM_FIXTURE_H
#define BH_STORE_STATE_STORM_FIXTURE_H

#include "base/choice.h"
#include "base/units.h"
#include "store/state_fixture.h"
#include "store/state_policy.h"
#include "store/state_token.h"

enum { STORM_CARDS = 3, STORM_COMMAND = 64 };
static const char *const storm_cards[STORM_CARDS] = {"GPU-0", "GPU-1", "GPU-2"};
static const char *const storm_keys[] = {"1g@0", "1g@1", "3g@4"};
static const char *const storm_tenants[] = {"red", "green", "blue"};

struct storm {
    struct bh_store *s;
    struct bh_choice c;
    uint64_t at_ms;
    struct bh_arena arena;
    struct bh_err err;
};

static inline int storm_found(struct storm *t)
{
    int rc = 0;
    for (uint32_t i = 0; i < STORM_CARDS && rc == 0; i++) {
        const struct bh_store_card card = {
            .uuid = storm_cards[i], .model = "H100", .index = i, .memory_mib = 8000};
        rc = bh_store_card_put(t->s, &card, &t->err);
    }
    /* the last card is cut */
    for (size_t i = 0; i < BH_COUNT_OF(storm_keys) && rc == 0; i++)
        rc =
            bh_store_slice_add(t->s, storm_cards[STORM_CARDS - 1], storm_keys[i], 1000, 2000, "", 1, &t->err);
    return rc;
}

static inline struct bh_slice_name storm_slice(struct storm *t)
{
    const char *gpu = storm_cards[bh_choose(&t->c, STORM_CARDS)];
    const char *key = storm_keys[bh_choose(&t->c, BH_COUNT_OF(storm_keys))];
    switch (bh_choose(&t->c, 4)) {
    case 0:
        return whole(gpu);
    case 1:
        return instance(storm_cards[STORM_CARDS - 1], key);
    case 2:
        return share_of(storm_cards[STORM_CARDS - 1], "", key);
    default:
        return share_of(gpu, "", "");
    }
}

/* A lease that lives, the later ones more often; id 0: none. */
static inline struct bh_store_lease storm_lease(struct storm *t)
{
    bh_store_leases all = {0};
    struct bh_store_lease found = {0};
    const struct bh_store_lease_filter live = {.states = bh_store_lease_live()};
    const struct bh_store_page page = {.limit = 12, .newest = true};
    if (bh_store_leases_list(t->s, &t->arena, &live, &page, &all, &t->err) == 0 && all.n)
        found = all.at[bh_choose(&t->c, (uint32_t)all.n)];
    bh_vec_fini(&all);
    return found;
}

static inline int storm_submit(struct storm *t)
{
    uint64_t job = 0, lease = 0;
    const char *tenant = storm_tenants[bh_choose(&t->c, BH_COUNT_OF(storm_tenants))];
    const struct bh_store_job j = a_job(tenant);
    int rc = bh_store_job_add(t->s, &j, &job, &t->err);
    const struct bh_store_lease l = {.job = job, .tenant = tenant, .mechanism = BH_MECH_GATE};
    if (rc == 0)
        rc = bh_store_lease_add(t->s, &l, t->at_ms, &lease, &t->err);
    if (rc == 0 && bh_choose(&t->c, 4))
        rc = bh_store_lease_step(t->s, lease, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT, t->at_ms, "", NULL,
                                 &t->err);
    return rc;
}

static inline int storm_grant(struct storm *t, const struct bh_store_lease *l)
{
    struct bh_store_grant g[2];
    const size_t n = 1 + bh_choose(&t->c, 2);
    for (size_t i = 0; i < n; i++)
        g[i] = (struct bh_store_grant){.slice = storm_slice(t),
                                       .milli = 100 * (1 + bh_choose(&t->c, 6)),
                                       .mib = 500 * (1 + bh_choose(&t->c, 6))};
    const enum bh_lease_cause cause = l->state == BH_LEASE_SUSPENDED ? BH_LEASE_BY_WAKE : BH_LEASE_BY_GRANT;
    return bh_store_lease_grant(t->s, l->id, cause, g, n, t->at_ms, "placed", &t->err);
}

static inline int storm_step(struct storm *t, const struct bh_store_lease *l)
{
    const enum bh_lease_cause cause = (enum bh_lease_cause)bh_choose(&t->c, BH_LEASE_CAUSES);
    const bool stale = bh_choose(&t->c, 12) == 0;
    const enum bh_lease_state from =
        stale ? (enum bh_lease_state)bh_choose(&t->c, BH_LEASE_STATES) : l->state;
    return bh_store_lease_step(t->s, l->id, from, cause, t->at_ms, "storm", NULL, &t->err);
}

/* What it has or left: judge it, leave it, or give it another size. */
static inline int storm_slices(struct storm *t, const struct bh_store_lease *l)
{
    bh_store_slices all = {0};
    int rc = bh_store_slices_list(t->s, &t->arena, NULL, l->id, &all, &t->err);
    if (rc == 0 && all.n) {
        const struct bh_store_slice *sl = &all.at[bh_choose(&t->c, (uint32_t)all.n)];
        const struct bh_store_scrub v = {.lease = l->id,
                                         .slice = sl->name,
                                         .verdict = bh_choose(&t->c, 4) ? BH_SCRUB_CLEAN : BH_SCRUB_FOUND,
                                         .total_bytes = 1,
                                         .at_ms = t->at_ms};
        if (sl->state == BH_SLICE_OWNED && bh_choose(&t->c, 2))
            rc = bh_store_lease_resize(t->s, l->id, &sl->name, 100 * bh_choose(&t->c, 11), 500, t->at_ms,
                                       &t->err);
        else if (sl->state == BH_SLICE_OWNED)
            rc = bh_store_slice_leave(t->s, &sl->name, l->id, t->at_ms, &t->err);
        else
            rc = bh_store_scrub_add(t->s, &v, NULL, &t->err);
        /* A lease that has left its last slice is parked no later than that (state_slice.h). */
        if (rc == 0 && l->state == BH_LEASE_PARKING && all.n == 1 && sl->state == BH_SLICE_DIRTY &&
            v.verdict == BH_SCRUB_CLEAN)
            rc = bh_store_lease_step(t->s, l->id, BH_LEASE_PARKING, BH_LEASE_BY_PARKED, t->at_ms, "", NULL,
                                     &t->err);
    }
    bh_vec_fini(&all);
    return rc;
}

static inline int storm_sundry(struct storm *t)
{
    uint64_t id;
    const struct bh_slice_name slice = storm_slice(t);
    const struct bh_store_scrub v = {.slice = slice, .verdict = BH_SCRUB_CLEAN, .at_ms = t->at_ms};
    const struct bh_store_policy p = {.text = "tenants: []", .n = 11, .who = "op", .at_ms = t->at_ms};
    struct bh_store_token k = {.subject = "op", .role = "operator", .created_ms = 1};
    memcpy(k.sha256, &t->at_ms, sizeof(t->at_ms));
    switch (bh_choose(&t->c, 9)) {
    case 0:
        return bh_store_slice_quarantine(t->s, &slice, t->at_ms, "xid", &t->err);
    case 1:
        return bh_store_slice_retry(t->s, &slice, t->at_ms, &t->err);
    case 2:
        return bh_store_scrub_add(t->s, &v, &id, &t->err);
    case 3:
        return bh_store_note_set_text(t->s, "boot", storm_keys[bh_choose(&t->c, 3)], &t->err);
    case 4:
        return bh_store_policy_apply(t->s, &p, &id, &t->err);
    case 5:
        return bh_store_token_add(t->s, &k, &id, &t->err);
    case 6:
        return bh_store_slice_remove(t->s, storm_cards[STORM_CARDS - 1], storm_keys[bh_choose(&t->c, 3)],
                                     &t->err);
    case 7:
        return bh_store_slice_add(t->s, storm_cards[STORM_CARDS - 1], storm_keys[bh_choose(&t->c, 3)], 1000,
                                  2000, "", t->at_ms, &t->err);
    default:
        return bh_store_card_cordon(t->s, storm_cards[bh_choose(&t->c, STORM_CARDS)], t->at_ms, "op", "hot",
                                    &t->err);
    }
}

/* One command; what it answers. */
static inline int storm_command(struct storm *t)
{
    const uint32_t what = bh_choose(&t->c, 16);
    if (what < 3)
        return storm_submit(t);
    if (what == 15)
        return storm_sundry(t);
    const struct bh_store_lease l = storm_lease(t);
    if (!l.id)
        return storm_submit(t);
    if (l.state == BH_LEASE_ADMITTED || (l.state == BH_LEASE_SUSPENDED && what < 8))
        return storm_grant(t, &l);
    return what < 9 ? storm_step(t, &l) : storm_slices(t, &l);
}

/* A command as a daemon would give it: the next step of some lease, so that many of them run for a while. */
static inline int storm_forward(struct storm *t)
{
    static const uint8_t usual[BH_LEASE_STATES] = {
        [BH_LEASE_REQUESTED] = BH_LEASE_BY_ADMIT, [BH_LEASE_PREPARING] = BH_LEASE_BY_READY,
        [BH_LEASE_DRAINING] = BH_LEASE_BY_EMPTY,  [BH_LEASE_FAILED] = BH_LEASE_BY_EMPTY,
        [BH_LEASE_SCRUBBING] = BH_LEASE_BY_CLEAN, [BH_LEASE_QUARANTINED] = BH_LEASE_BY_RETRY};
    static const uint8_t ways[] = {BH_LEASE_BY_END, BH_LEASE_BY_EVICT, BH_LEASE_BY_PARK};
    const struct bh_store_lease l = storm_lease(t);
    if (!l.id || bh_choose(&t->c, 6) == 0)
        return storm_submit(t);
    if (l.state == BH_LEASE_ADMITTED || l.state == BH_LEASE_SUSPENDED)
        return storm_grant(t, &l);
    if (l.state == BH_LEASE_PARKING || bh_choose(&t->c, 2))
        return storm_slices(t, &l);
    const uint8_t cause = l.state == BH_LEASE_ACTIVE ? ways[bh_choose(&t->c, 3)] : usual[l.state];
    return bh_store_lease_step(t->s, l.id, l.state, (enum bh_lease_cause)cause, t->at_ms, "", NULL, &t->err);
}

/* Looked at and not computed from the books of usage: thousandths of cards that tenants pay for at this moment. */
static inline uint64_t storm_given(struct bh_store *s)
{
    return (uint64_t)number(s,
                            "SELECT coalesce(sum(s.milli * coalesce(b.milli, 1000) / 1000), 0) FROM slices s"
                            " JOIN leases l ON l.id = s.lease JOIN lease_states t ON t.word = l.state"
                            " LEFT JOIN slices b ON s.base <> '' AND b.gpu = s.gpu AND b.kind = 'mig'"
                            " AND b.key = s.base WHERE t.charged AND s.state IN ('owned', 'dirty')");
}

/* Everything in the store, as one number. */
static inline uint64_t storm_digest(struct bh_store *s)
{
    static const char *const tables[] = {
        "SELECT * FROM jobs",   "SELECT * FROM leases",   "SELECT * FROM lease_history",
        "SELECT * FROM grants", "SELECT * FROM slices",   "SELECT * FROM scrubs",
        "SELECT * FROM usage",  "SELECT * FROM policies", "SELECT * FROM tokens",
        "SELECT * FROM cards",  "SELECT * FROM notes",    "SELECT * FROM sqlite_sequence ORDER BY name"};
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < BH_COUNT_OF(tables); i++) {
        sqlite3_stmt *stmt = NULL;
        if (sqlite3_prepare_v2(bh_store_handle(s), tables[i], -1, &stmt, NULL) != SQLITE_OK)
            return 0;
        int code;
        while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
            for (int k = 0; k < sqlite3_column_count(stmt); k++) {
                const uint8_t *p = sqlite3_column_blob(stmt, k);
                for (int b = 0; b < sqlite3_column_bytes(stmt, k); b++)
                    h = (h ^ p[b]) * UINT64_C(0x100000001b3);
                h = (h ^ 0x1f) * UINT64_C(0x100000001b3);
            }
        }
        sqlite3_finalize(stmt);
        if (code != SQLITE_DONE)
            return 0;
        h = (h ^ 0x1e) * UINT64_C(0x100000001b3);
    }
    return h;
}

#endif
