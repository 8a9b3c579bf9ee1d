/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_lease.c - the steps of a lease, each with all that belongs to it.
 *
 * core/lease says where a cause leads. Here the slices and the usage are moved along, before the row or after it as the
 * triggers want it, in one transaction. Reading is in state_lease_read.c.
 */
#include "store/state_lease.h"

#include "store/state_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- adding and planning ---- */

static int plan_words(const struct bh_store_lease *l, const char **ret_mechanism, const char **ret_tier,
                      struct bh_err *err)
{
    const int rc = bh_state_word(&bh_words_mechanism, l->mechanism, "mechanism", ret_mechanism, err);
    return rc < 0 ? rc : bh_state_word(&bh_words_tier, l->tier, "tier", ret_tier, err);
}

/* ?2 to ?9 */
static void bind_plan(struct bh_sql *q, const struct bh_store_lease *l, const char *mechanism,
                      const char *tier)
{
    bh_sql_text(q, 2, bh_text_or_none(l->domain));
    bh_sql_text(q, 3, mechanism);
    bh_sql_text(q, 4, bh_text_or_none(l->stack));
    bh_sql_text(q, 5, tier);
    bh_sql_uint(q, 6, l->uid);
    bh_sql_uint(q, 7, l->gid);
    bh_sql_uint(q, 8, l->until_ms);
    bh_sql_text(q, 9, bh_text_or_none(l->detail));
}

int bh_store_lease_add(struct bh_store *s, const struct bh_store_lease *lease, uint64_t at_ms,
                       uint64_t *ret_id, struct bh_err *err)
{
    const char *mechanism, *tier;
    struct bh_sql q;
    int rc = plan_words(lease, &mechanism, &tier, err);
    if (rc == 0)
        rc = bh_sql_get(
            s,
            "INSERT INTO leases(job, domain, mechanism, stack, tier, uid, gid, until_ms, detail, tenant, user,"
            " pool, state, paused, created_ms, state_ms, cause, why)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'requested', 0, ?13, ?13, '', '')",
            &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, lease->job);
    bind_plan(&q, lease, mechanism, tier);
    bh_sql_text(&q, 10, lease->tenant);
    bh_sql_text(&q, 11, bh_text_or_none(lease->user));
    bh_sql_text(&q, 12, bh_text_or_none(lease->pool));
    bh_sql_uint(&q, 13, at_ms);
    rc = bh_sql_run(&q, NULL, err);
    if (rc < 0)
        return bh_wrap(err, rc, "a lease for job J%" PRIu64, lease->job);
    *ret_id = (uint64_t)bh_sql_last_id(&q);
    return 0;
}

int bh_store_lease_plan(struct bh_store *s, uint64_t id, const struct bh_store_lease *plan,
                        struct bh_err *err)
{
    const char *mechanism, *tier;
    struct bh_sql q;
    int rc = plan_words(plan, &mechanism, &tier, err);
    if (rc == 0)
        rc = bh_sql_get(s,
                        "UPDATE leases SET domain = ?2, mechanism = ?3, stack = ?4, tier = ?5, uid = ?6,"
                        " gid = ?7, until_ms = ?8, detail = ?9"
                        " WHERE id = ?1 AND state IN ('requested', 'admitted')",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bind_plan(&q, plan, mechanism, tier);
    return bh_state_one(&q, err, "lease L%" PRIu64 " that was given nothing yet", id);
}

static int set_one(struct bh_store *s, const char *text, uint64_t id, uint64_t number, const char *word,
                   struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    if (word)
        bh_sql_text(&q, 2, word);
    else
        bh_sql_uint(&q, 2, number);
    return bh_state_one(&q, err, "lease L%" PRIu64, id);
}

int bh_store_lease_pause(struct bh_store *s, uint64_t id, bool paused, struct bh_err *err)
{
    const int rc = set_one(s, "UPDATE leases SET paused = ?2 WHERE id = ?1", id, paused, NULL, err);
    if (rc == BH_INVALID)
        return bh_fail(err, BH_CONFLICT, "lease L%" PRIu64 " is not active", id);
    return rc;
}

int bh_store_lease_detail(struct bh_store *s, uint64_t id, const char *detail, struct bh_err *err)
{
    return set_one(s, "UPDATE leases SET detail = ?2 WHERE id = ?1", id, 0, bh_text_or_none(detail), err);
}

int bh_store_lease_until(struct bh_store *s, uint64_t id, uint64_t until_ms, struct bh_err *err)
{
    return set_one(s, "UPDATE leases SET until_ms = ?2 WHERE id = ?1", id, until_ms, NULL, err);
}

/* ---- steps ---- */

/* Why a compare-and-set changed nothing. */
static int not_so(struct bh_store *s, uint64_t id, enum bh_lease_state wanted, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT state FROM leases WHERE id = ?1", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    rc = bh_state_first(&q, err, "lease L%" PRIu64, id);
    if (rc == 0) {
        rc = bh_fail(err, BH_CONFLICT, "lease L%" PRIu64 " is %s, not %s", id, bh_sql_col_text(&q, 0, &arena),
                     bh_lease_state_str(wanted));
        bh_sql_done(&q);
    }
    bh_arena_fini(&arena);
    return rc;
}

/* Looked at first: what a step moves along must not be moved for a lease that is elsewhere. */
static int is_in(struct bh_store *s, uint64_t id, enum bh_lease_state from, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT 1 FROM leases WHERE id = ?1 AND state = ?2", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, id);
    bh_sql_text(&q, 2, bh_lease_state_str(from));
    rc = bh_sql_step(&q, err);
    if (rc > 0) {
        bh_sql_done(&q);
        return 0;
    }
    return rc < 0 ? rc : not_so(s, id, from, err);
}

struct step {
    uint64_t id;
    enum bh_lease_state from, to;
    enum bh_lease_cause cause;
    uint64_t at_ms;
    const char *why;
};

static int set_state(struct bh_store *s, const struct step *t, struct bh_err *err)
{
    uint64_t changed = 0;
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "UPDATE leases SET state = ?3, cause = ?4, state_ms = ?5, why = ?6,"
                        " paused = paused AND ?3 IN ('active', 'parking') WHERE id = ?1 AND state = ?2",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, t->id);
    bh_sql_text(&q, 2, bh_lease_state_str(t->from));
    bh_sql_text(&q, 3, bh_lease_state_str(t->to));
    bh_sql_text(&q, 4, bh_lease_cause_str(t->cause));
    bh_sql_uint(&q, 5, t->at_ms);
    bh_sql_text(&q, 6, bh_text_or_none(t->why));
    rc = bh_sql_run(&q, &changed, err);
    return rc == 0 && !changed ? not_so(s, t->id, t->from, err) : rc;
}

static int take_step(struct bh_store *s, const struct step *t, struct bh_err *err)
{
    int rc = is_in(s, t->id, t->from, err);
    if (rc == 0 && bh_lease_is_charged(t->from) && !bh_lease_is_charged(t->to))
        rc = bh_usage_close(s, t->id, 0, t->at_ms, err);
    if (rc == 0 && t->to == BH_LEASE_SCRUBBING)
        rc = bh_slices_leave(s, t->id, t->at_ms, err);
    if (rc == 0 && t->to == BH_LEASE_QUARANTINED)
        rc = bh_slices_quarantine(s, t->id, t->at_ms, t->why, err);
    if (rc == 0 && bh_lease_is_charged(t->to) && !bh_lease_is_charged(t->from))
        rc = bh_usage_open(s, t->id, t->at_ms, err);
    if (rc == 0)
        rc = set_state(s, t, err);
    if (rc == 0 && t->from == BH_LEASE_QUARANTINED)
        rc = bh_slices_retry(s, t->id, t->at_ms, err);
    return rc;
}

int bh_store_lease_step(struct bh_store *s, uint64_t id, enum bh_lease_state from, enum bh_lease_cause cause,
                        uint64_t at_ms, const char *why, enum bh_lease_state *ret_to, struct bh_err *err)
{
    struct step t = {.id = id, .from = from, .cause = cause, .at_ms = at_ms, .why = why};
    if (cause == BH_LEASE_BY_GRANT || cause == BH_LEASE_BY_WAKE)
        return bh_fail(err, BH_INVALID, "slices are given by bh_store_lease_grant");
    int rc = bh_lease_step(from, cause, &t.to, err);
    if (rc == 0)
        rc = bh_store_begin(s, err);
    if (rc < 0)
        return bh_wrap(err, rc, "lease L%" PRIu64, id);
    rc = take_step(s, &t, err);
    if (rc < 0)
        (void)bh_wrap(err, rc, "lease L%" PRIu64 " by '%s'", id, bh_lease_cause_str(cause));
    rc = bh_state_end(s, rc, err);
    if (rc == 0 && ret_to)
        *ret_to = t.to;
    return rc;
}

/* ---- giving slices ---- */

static int insert_grant(struct bh_store *s, uint64_t lease, const struct bh_slice_name *name, uint32_t milli,
                        uint32_t mib, uint64_t *ret_id, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "INSERT INTO grants(gpu, kind, key, base, lease, milli, mib)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, name);
    bh_sql_uint(&q, 5, lease);
    bh_sql_uint(&q, 6, milli);
    bh_sql_uint(&q, 7, mib);
    rc = bh_sql_run(&q, NULL, err);
    if (rc == 0)
        *ret_id = (uint64_t)bh_sql_last_id(&q);
    return rc;
}

/* A whole card and an instance are as large as they are, whatever the caller thought. */
static int real_size(struct bh_store *s, const struct bh_slice_name *name, uint32_t *milli, uint32_t *mib,
                     struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_slice found;
    const int rc = bh_store_slice_get(s, &arena, name, &found, err);
    if (rc == 0) {
        *milli = found.milli;
        *mib = found.mib;
    }
    bh_arena_fini(&arena);
    return rc;
}

static int give(struct bh_store *s, uint64_t lease, const struct bh_store_grant *g, uint64_t at_ms,
                struct bh_err *err)
{
    char key[128];
    struct bh_slice_text t;
    struct bh_slice_name name = g->slice;
    uint32_t milli = g->milli, mib = g->mib;
    uint64_t id = 0;
    int rc = 0;
    if (name.kind == BH_SLICE_SHARE) {
        const char *base = bh_text_or_none(name.base);
        (void)snprintf(key, sizeof(key), "L%" PRIu64 "%s%s", lease, base[0] ? "." : "", base);
        name.key = key;
    } else {
        rc = real_size(s, &name, &milli, &mib, err);
    }
    if (rc == 0)
        rc = insert_grant(s, lease, &name, milli, mib, &id, err);
    if (rc == 0)
        rc = bh_slices_take(s, lease, id, &name, milli, mib, at_ms, err);
    return rc < 0 ? bh_wrap(err, rc, "%s", bh_slice_format(&name, &t)) : 0;
}

int bh_store_lease_grant(struct bh_store *s, uint64_t id, enum bh_lease_cause cause,
                         const struct bh_store_grant *grants, size_t n, uint64_t at_ms, const char *why,
                         struct bh_err *err)
{
    struct step t = {.id = id, .from = BH_LEASE_ADMITTED, .cause = cause, .at_ms = at_ms, .why = why};
    if (cause == BH_LEASE_BY_WAKE)
        t.from = BH_LEASE_SUSPENDED;
    else if (cause != BH_LEASE_BY_GRANT)
        return bh_fail(err, BH_INVALID, "slices are given by 'grant' or 'wake'");
    int rc = bh_lease_step(t.from, cause, &t.to, err);
    if (rc == 0)
        rc = bh_store_begin(s, err);
    if (rc < 0)
        return rc;
    rc = is_in(s, id, t.from, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = give(s, id, &grants[i], at_ms, err);
    if (rc == 0)
        rc = take_step(s, &t, err);
    if (rc < 0)
        (void)bh_wrap(err, rc, "lease L%" PRIu64 " by '%s'", id, bh_lease_cause_str(cause));
    return bh_state_end(s, rc, err);
}

/* ---- another size ---- */

static int resize(struct bh_store *s, const char *text, uint64_t id, const struct bh_slice_name *share,
                  uint32_t milli, uint32_t mib, struct bh_err *err)
{
    struct bh_slice_text t;
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_state_bind_name(&q, 1, share);
    bh_sql_uint(&q, 5, id);
    bh_sql_uint(&q, 6, milli);
    bh_sql_uint(&q, 7, mib);
    return bh_state_one(&q, err, "%s that is the lease's own", bh_slice_format(share, &t));
}

#define SHARE " WHERE gpu = ?1 AND kind = ?2 AND key = ?3 AND base = ?4 AND kind = 'share'"

int bh_store_lease_resize(struct bh_store *s, uint64_t id, const struct bh_slice_name *share, uint32_t milli,
                          uint32_t mib, uint64_t at_ms, struct bh_err *err)
{
    struct bh_lease_facts facts;
    uint64_t grant = 0;
    int rc = bh_store_begin(s, err);
    if (rc < 0)
        return rc;
    rc = bh_store_lease_facts(s, id, &facts, err);
    if (rc == 0)
        rc = bh_slice_grant(s, share, &grant, err);
    if (rc == 0)
        rc = bh_usage_close(s, id, grant, at_ms, err);
    if (rc == 0)
        rc = resize(s, "UPDATE grants SET milli = ?6, mib = ?7" SHARE " AND lease = ?5 AND proved IS NULL",
                    id, share, milli, mib, err);
    if (rc == 0)
        rc = resize(s, "UPDATE slices SET milli = ?6, mib = ?7" SHARE " AND owner = ?5", id, share, milli,
                    mib, err);
    if (rc == 0 && facts.usage_open)
        rc = bh_usage_open(s, id, at_ms, err);
    if (rc < 0)
        (void)bh_wrap(err, rc, "lease L%" PRIu64, id);
    return bh_state_end(s, rc, err);
}
