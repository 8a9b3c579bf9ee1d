/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_slice.c - slices: named, taken, left, judged.
 *
 * What may follow what is the schema's business; here it is only asked for, and its refusal is told with the slice's name.
 */
#include "store/state_slice.h"

#include "store/state_inside.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
    [BH_SLICE_WHOLE] = "whole", [BH_SLICE_MIG] = "mig", [BH_SLICE_SHARE] = "share"};
static const char *const states[] = {[BH_SLICE_FREE] = "free",
                                     [BH_SLICE_OWNED] = "owned",
                                     [BH_SLICE_DIRTY] = "dirty",
                                     [BH_SLICE_QUARANTINED] = "quarantined"};
const struct bh_words bh_words_slice_kind = {kinds, BH_COUNT_OF(kinds)};
const struct bh_words bh_words_slice_state = {states, BH_COUNT_OF(states)};

const char *bh_slice_kind_str(enum bh_slice_kind k)
{
    return kinds[k];
}

const char *bh_slice_state_str(enum bh_slice_state s)
{
    return states[s];
}

/* ---- names ---- */

const char *bh_slice_format(const struct bh_slice_name *name, struct bh_slice_text *t)
{
    const char *gpu = bh_text_or_none(name->gpu), *key = bh_text_or_none(name->key),
               *base = bh_text_or_none(name->base);
    if (name->kind == BH_SLICE_WHOLE)
        (void)snprintf(t->s, sizeof(t->s), "card '%s'", gpu);
    else if (name->kind == BH_SLICE_MIG)
        (void)snprintf(t->s, sizeof(t->s), "instance '%s' of '%s'", key, gpu);
    else if (!base[0])
        (void)snprintf(t->s, sizeof(t->s), "share '%s' of '%s'", key, gpu);
    else
        (void)snprintf(t->s, sizeof(t->s), "share '%s' of instance '%s' of '%s'", key, base, gpu);
    return t->s;
}

void bh_state_bind_name(struct bh_sql *q, int at, const struct bh_slice_name *name)
{
    bh_sql_text(q, at, name->gpu);
    bh_sql_text(q, at + 1, (unsigned)name->kind < BH_SLICE_KINDS ? kinds[name->kind] : NULL);
    bh_sql_text(q, at + 2, bh_text_or_none(name->key));
    bh_sql_text(q, at + 3, bh_text_or_none(name->base));
}

int bh_state_col_name(struct bh_sql *q, int at, struct bh_arena *arena, struct bh_slice_name *ret,
                      struct bh_err *err)
{
    uint8_t kind = 0;
    const int rc =
        bh_state_value(&bh_words_slice_kind, bh_sql_col_text(q, at + 1, arena), "kind of slice", &kind, err);
    ret->gpu = bh_sql_col_text(q, at, arena);
    ret->kind = (enum bh_slice_kind)kind;
    ret->key = bh_sql_col_text(q, at + 2, arena);
    ret->base = bh_sql_col_text(q, at + 3, arena);
    return rc;
}

/* ---- instances ---- */

int bh_store_slice_add(struct bh_store *s, const char *gpu, const char *key, uint32_t milli, uint32_t mib,
                       const char *device, uint64_t at_ms, struct bh_err *err)
{
    const struct bh_slice_name name = {gpu, BH_SLICE_MIG, key, ""};
    struct bh_slice_text t;
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, since_ms)"
                        " VALUES (?1, ?2, ?3, ?4, ?8, ?5, ?6, 'free', ?7)",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, &name);
    bh_sql_uint(&q, 5, mib);
    bh_sql_text(&q, 6, bh_text_or_none(device));
    bh_sql_uint(&q, 7, at_ms);
    bh_sql_uint(&q, 8, milli);
    rc = bh_sql_run(&q, NULL, err);
    return rc < 0 ? bh_wrap(err, rc, "%s", bh_slice_format(&name, &t)) : 0;
}

int bh_store_slice_remove(struct bh_store *s, const char *gpu, const char *key, struct bh_err *err)
{
    const struct bh_slice_name name = {gpu, BH_SLICE_MIG, key, ""};
    struct bh_slice_text t;
    struct bh_sql q;
    int rc = bh_sql_get(s, "DELETE FROM slices WHERE gpu = ?1 AND kind = 'mig' AND key = ?2", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, gpu);
    bh_sql_text(&q, 2, key);
    rc = bh_state_one(&q, err, "%s", bh_slice_format(&name, &t));
    return rc == BH_CONFLICT ? bh_wrap(err, rc, "%s", t.s) : rc;
}

/* ---- as a lease's steps move them ---- */

static const char take_row[] = "UPDATE slices SET state = 'owned', lease = ?5, grant_id = ?6, since_ms = ?7"
                               " WHERE gpu = ?1 AND kind = ?2 AND key = ?3 AND base = ?4 AND state = 'free'";
static const char take_share[] =
    "INSERT INTO slices(gpu, kind, key, base, milli, mib, device, state, lease, grant_id, since_ms)"
    " VALUES (?1, ?2, ?3, ?4, ?8, ?9, '', 'owned', ?5, ?6, ?7)";

/* Why an UPDATE that looks for a free one found none. */
static int not_free(struct bh_store *s, const struct bh_slice_name *name, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_slice found;
    int rc = bh_store_slice_get(s, &arena, name, &found, err);
    if (rc == 0 && found.lease)
        rc = bh_fail(err, BH_CONFLICT, "it is %s, by lease L%llu", states[found.state],
                     (unsigned long long)found.lease);
    else if (rc == 0)
        rc = bh_fail(err, BH_CONFLICT, "it is %s", states[found.state]);
    bh_arena_fini(&arena);
    return rc;
}

int bh_slices_take(struct bh_store *s, uint64_t lease, uint64_t grant, const struct bh_slice_name *name,
                   uint32_t milli, uint32_t mib, uint64_t at_ms, struct bh_err *err)
{
    const bool share = name->kind == BH_SLICE_SHARE;
    uint64_t changed = 0;
    struct bh_sql q;
    int rc = bh_sql_get(s, share ? take_share : take_row, &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    bh_sql_uint(&q, 5, lease);
    bh_sql_uint(&q, 6, grant);
    bh_sql_uint(&q, 7, at_ms);
    if (share) {
        bh_sql_uint(&q, 8, milli);
        bh_sql_uint(&q, 9, mib);
    }
    rc = bh_sql_run(&q, &changed, err);
    return rc == 0 && !changed ? not_free(s, name, err) : rc;
}

static int move_of_lease(struct bh_store *s, const char *text, uint64_t lease, uint64_t at_ms,
                         const char *why, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, lease);
    bh_sql_uint(&q, 2, at_ms);
    if (why)
        bh_sql_text(&q, 3, why);
    return bh_sql_run(&q, NULL, err);
}

#define BECOMES_DIRTY "state = 'dirty', why = '', dirtied = (SELECT coalesce(max(id), 0) FROM scrubs)"

int bh_slices_leave(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err)
{
    return move_of_lease(
        s, "UPDATE slices SET " BECOMES_DIRTY ", since_ms = ?2 WHERE lease = ?1 AND state = 'owned'", lease,
        at_ms, NULL, err);
}

int bh_slices_retry(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err)
{
    return move_of_lease(
        s, "UPDATE slices SET " BECOMES_DIRTY ", since_ms = ?2 WHERE lease = ?1 AND state = 'quarantined'",
        lease, at_ms, NULL, err);
}

int bh_slices_quarantine(struct bh_store *s, uint64_t lease, uint64_t at_ms, const char *why,
                         struct bh_err *err)
{
    return move_of_lease(s,
                         "UPDATE slices SET state = 'quarantined', why = ?3, since_ms = ?2"
                         " WHERE lease = ?1 AND state IN ('owned', 'dirty')",
                         lease, at_ms, why && why[0] ? why : "no reason was given", err);
}

/* ---- one by one ---- */

static int move_one(struct bh_store *s, const char *text, const struct bh_slice_name *name, uint64_t at_ms,
                    const char *why, uint64_t lease, const char *must_be, struct bh_err *err)
{
    struct bh_slice_text t;
    uint64_t changed = 0;
    struct bh_sql q;
    int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    bh_sql_uint(&q, 5, at_ms);
    if (why)
        bh_sql_text(&q, 6, why);
    if (lease)
        bh_sql_uint(&q, 6, lease);
    rc = bh_sql_run(&q, &changed, err);
    if (rc == 0 && !changed) {
        rc = not_free(s, name, err);
        if (rc == BH_CONFLICT)
            return bh_wrap(err, rc, "%s must be %s", bh_slice_format(name, &t), must_be);
    }
    return rc < 0 ? bh_wrap(err, rc, "%s", bh_slice_format(name, &t)) : 0;
}

#define OF_NAME " WHERE gpu = ?1 AND kind = ?2 AND key = ?3 AND base = ?4"

int bh_store_slice_quarantine(struct bh_store *s, const struct bh_slice_name *name, uint64_t at_ms,
                              const char *why, struct bh_err *err)
{
    return move_one(
        s, "UPDATE slices SET state = 'quarantined', why = ?6, since_ms = ?5" OF_NAME " AND state = 'free'",
        name, at_ms, why && why[0] ? why : "no reason was given", 0, "free", err);
}

int bh_store_slice_retry(struct bh_store *s, const struct bh_slice_name *name, uint64_t at_ms,
                         struct bh_err *err)
{
    return move_one(s,
                    "UPDATE slices SET " BECOMES_DIRTY ", since_ms = ?5" OF_NAME
                    " AND state = 'quarantined' AND lease IS NULL",
                    name, at_ms, NULL, 0, "quarantined, and no lease's", err);
}

int bh_store_slice_leave(struct bh_store *s, const struct bh_slice_name *name, uint64_t lease, uint64_t at_ms,
                         struct bh_err *err)
{
    return move_one(s,
                    "UPDATE slices SET " BECOMES_DIRTY ", since_ms = ?5" OF_NAME
                    " AND owner = ?6 AND (SELECT state FROM leases WHERE id = ?6) IN ('parking', 'draining')",
                    name, at_ms, NULL, lease, "owned by a lease that is parking or draining", err);
}

/* ---- reading ---- */

int bh_slice_grant(struct bh_store *s, const struct bh_slice_name *name, uint64_t *ret, struct bh_err *err)
{
    struct bh_slice_text t;
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT grant_id FROM slices" OF_NAME, &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    rc = bh_state_first(&q, err, "%s", bh_slice_format(name, &t));
    if (rc < 0)
        return rc;
    *ret = bh_sql_col_uint(&q, 0);
    bh_sql_done(&q);
    return 0;
}

#define SLICE_COLUMNS                                                                          \
    "SELECT id, gpu, kind, key, base, milli, mib, device, state, owner, lease, since_ms, why," \
    " (SELECT tenant FROM leases l WHERE l.id = slices.lease) FROM slices"

static int read_slice(struct bh_sql *q, struct bh_arena *arena, struct bh_store_slice *ret,
                      struct bh_err *err)
{
    uint8_t state = 0;
    struct bh_slice_name name = {0};
    int rc = bh_state_col_name(q, 1, arena, &name, err);
    if (rc == 0)
        rc = bh_state_value(&bh_words_slice_state, bh_sql_col_text(q, 8, arena), "state of a slice", &state,
                            err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_slice){.id = bh_sql_col_uint(q, 0),
                                   .name = name,
                                   .milli = (uint32_t)bh_sql_col_uint(q, 5),
                                   .mib = (uint32_t)bh_sql_col_uint(q, 6),
                                   .device = bh_sql_col_text(q, 7, arena),
                                   .state = (enum bh_slice_state)state,
                                   .owner = bh_sql_col_uint(q, 9),
                                   .lease = bh_sql_col_uint(q, 10),
                                   .since_ms = bh_sql_col_uint(q, 11),
                                   .why = bh_sql_col_text(q, 12, arena),
                                   .tenant = bh_sql_col_text(q, 13, arena)};
    return 0;
}

int bh_store_slice_get(struct bh_store *s, struct bh_arena *arena, const struct bh_slice_name *name,
                       struct bh_store_slice *ret, struct bh_err *err)
{
    struct bh_slice_text t;
    struct bh_sql q;
    int rc = bh_sql_get(s, SLICE_COLUMNS OF_NAME, &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    rc = bh_state_first(&q, err, "%s", bh_slice_format(name, &t));
    if (rc < 0)
        return rc;
    rc = read_slice(&q, arena, ret, err);
    bh_sql_done(&q);
    return rc;
}

int bh_store_slices_list(struct bh_store *s, struct bh_arena *arena, const char *gpu, uint64_t lease,
                         bh_store_slices *ret, struct bh_err *err)
{
    static const char all[] = SLICE_COLUMNS " ORDER BY gpu, kind DESC, key";
    static const char of_gpu[] = SLICE_COLUMNS " WHERE gpu = ?1 ORDER BY gpu, kind DESC, key";
    static const char of_lease[] =
        SLICE_COLUMNS " WHERE lease = ?2 AND (?1 IS NULL OR gpu = ?1) ORDER BY gpu, kind DESC, key";
    struct bh_sql q;
    int rc = bh_sql_get(s, lease ? of_lease : gpu ? of_gpu : all, &q, err);
    if (rc < 0)
        return rc;
    if (gpu || lease)
        bh_sql_text(&q, 1, gpu);
    if (lease)
        bh_sql_uint(&q, 2, lease);
    bh_state_rows(&q, arena, ret, read_slice, rc, err);
    return rc;
}

int bh_store_slices_quarantined(struct bh_store *s, struct bh_arena *arena, bh_store_slices *ret,
                                struct bh_err *err)
{
    struct bh_sql q;
    int rc =
        bh_sql_get(s, SLICE_COLUMNS " WHERE state = 'quarantined' ORDER BY gpu, kind DESC, key", &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_slice, rc, err);
    return rc;
}

/* ---- sums ---- */

static int read_held(struct bh_sql *q, struct bh_arena *arena, struct bh_store_held *ret, struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_held){
        .tenant = bh_sql_col_text(q, 0, arena), .milli = bh_sql_col_uint(q, 1), .mib = bh_sql_col_uint(q, 2)};
    return 0;
}

int bh_store_held_list(struct bh_store *s, struct bh_arena *arena, bh_store_helds *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT tenant, milli, mib FROM tenant_held ORDER BY tenant", &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_held, rc, err);
    return rc;
}

static int read_shared_card(struct bh_sql *q, struct bh_arena *arena, struct bh_store_shared_card *ret,
                            struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_shared_card){.gpu = bh_sql_col_text(q, 0, arena), .n = bh_sql_col_uint(q, 1)};
    return 0;
}

int bh_store_shared_cards_list(struct bh_store *s, struct bh_arena *arena, bh_store_shared_cards *ret,
                               struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT gpu, count(*) FROM slices WHERE kind = 'share' GROUP BY gpu", &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_shared_card, rc, err);
    return rc;
}
