/* SPDX-License-Identifier: Apache-2.0 */
/* state_totals.c - the tail of the books, each table by the index that its order is. */
#include "store/state_totals.h"

#include "core/lease/lease.h"
#include "store/state_inside.h"

int bh_store_tail_now(struct bh_store *s, uint64_t now_ms, struct bh_store_tail *ret, struct bh_err *err)
{
    struct bh_sql q;
    if (bh_store_in_transaction(s))
        return bh_fail(err, BH_BUSY, "the books are being written");
    int rc = bh_sql_get(s,
                        "SELECT coalesce((SELECT max(id) FROM lease_history), 0),"
                        " coalesce((SELECT max(id) FROM scrubs), 0)",
                        &q, err);
    if (rc == 0)
        rc = bh_state_first(&q, err, "the books are empty");
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_tail){
        .steps = bh_sql_col_uint(&q, 0), .scrubs = bh_sql_col_uint(&q, 1), .closed_ms = now_ms};
    bh_sql_done(&q);
    return 0;
}

static int read_turn(struct bh_sql *q, struct bh_arena *arena, struct bh_store_turn *ret, struct bh_err *err)
{
    const uint64_t created = bh_sql_col_uint(q, 3), at = bh_sql_col_uint(q, 4);
    (void)err;
    *ret = (struct bh_store_turn){.id = bh_sql_col_uint(q, 0),
                                  .tenant = bh_sql_col_text(q, 1, arena),
                                  .evicted = bh_sql_col_int(q, 2) != 0,
                                  .waited_ms = at > created ? at - created : 0};
    return 0;
}

int bh_store_tail_turns(struct bh_store *s, struct bh_arena *arena, const struct bh_store_tail *from,
                        const struct bh_store_tail *to, bh_store_turns *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "SELECT h.id, l.tenant, h.cause = ?3, l.created_ms, h.at_ms FROM lease_history h"
                        " JOIN leases l ON l.id = h.lease WHERE h.id > ?1 AND h.id <= ?2"
                        " AND h.cause IN (?3, ?4) ORDER BY h.id",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, from->steps);
    bh_sql_uint(&q, 2, to->steps);
    bh_sql_text(&q, 3, bh_lease_cause_str(BH_LEASE_BY_EVICT));
    bh_sql_text(&q, 4, bh_lease_cause_str(BH_LEASE_BY_GRANT));
    bh_state_rows(&q, arena, ret, read_turn, rc, err);
    return rc;
}

static int read_gone_turn(struct bh_sql *q, struct bh_arena *arena, struct bh_store_gone_turn *ret,
                          struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_gone_turn){.tenant = bh_sql_col_text(q, 0, arena),
                                       .evicted = bh_sql_col_int(q, 1) != 0,
                                       .upto_ms = bh_sql_col_uint(q, 2),
                                       .n = bh_sql_col_uint(q, 3),
                                       .waited_ms = bh_sql_col_uint(q, 4)};
    return 0;
}

int bh_store_gone_turns_list(struct bh_store *s, struct bh_arena *arena, bh_store_gone_turns *ret,
                             struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT tenant, cause = ?1, upto_ms, n, waited_ms FROM gone_turns", &q, err);
    if (rc < 0)
        return rc;
    bh_sql_text(&q, 1, bh_lease_cause_str(BH_LEASE_BY_EVICT));
    bh_state_rows(&q, arena, ret, read_gone_turn, rc, err);
    return rc;
}

/* Kind, verdict and how many. */
static int add_scrubs(struct bh_sql *q, uint64_t ret[BH_SLICE_KINDS][BH_SCRUB_VERDICTS], struct bh_err *err)
{
    struct bh_arena arena = {0};
    int rc;
    while ((rc = bh_sql_step(q, err)) > 0) {
        uint8_t kind = 0, verdict = 0;
        rc = bh_state_value(&bh_words_slice_kind, bh_sql_col_text(q, 0, &arena), "kind", &kind, err);
        if (rc == 0)
            rc = bh_state_value(&bh_words_scrub_verdict, bh_sql_col_text(q, 1, &arena), "verdict", &verdict,
                                err);
        if (rc < 0) {
            bh_sql_done(q);
            break;
        }
        ret[kind][verdict] += bh_sql_col_uint(q, 2);
    }
    bh_arena_fini(&arena);
    return rc;
}

int bh_store_tail_scrubs(struct bh_store *s, const struct bh_store_tail *from, const struct bh_store_tail *to,
                         uint64_t ret[BH_SLICE_KINDS][BH_SCRUB_VERDICTS], struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s,
                              "SELECT kind, verdict, count(*) FROM scrubs WHERE id > ?1 AND id <= ?2"
                              " GROUP BY kind, verdict",
                              &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, from->scrubs);
    bh_sql_uint(&q, 2, to->scrubs);
    return add_scrubs(&q, ret, err);
}

int bh_store_gone_scrubs(struct bh_store *s, uint64_t ret[BH_SLICE_KINDS][BH_SCRUB_VERDICTS],
                         struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, "SELECT kind, verdict, n FROM gone_scrubs", &q, err);
    return rc < 0 ? rc : add_scrubs(&q, ret, err);
}

/* ---- usage ---- */

#define INSTANCE "CASE u.kind WHEN 'mig' THEN u.key ELSE u.base END"

static int read_used(struct bh_sql *q, struct bh_arena *arena, struct bh_store_used *ret, struct bh_err *err)
{
    uint8_t mechanism = 0;
    const int rc =
        bh_state_value(&bh_words_mechanism, bh_sql_col_text(q, 1, arena), "mechanism", &mechanism, err);
    *ret = (struct bh_store_used){.tenant = bh_sql_col_text(q, 0, arena),
                                  .mechanism = mechanism,
                                  .gpu = bh_sql_col_text(q, 2, arena),
                                  .instance = bh_sql_col_text(q, 3, arena),
                                  .milli_ms = bh_sql_col_uint(q, 4),
                                  .mib_ms = bh_sql_col_uint(q, 5)};
    return rc;
}

int bh_store_tail_used(struct bh_store *s, struct bh_arena *arena, uint64_t from_ms, uint64_t to_ms,
                       bh_store_useds *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc =
        bh_sql_get(s,
                   "SELECT u.tenant, u.mechanism, u.gpu, " INSTANCE ", sum(u.milli * (u.to_ms - u.from_ms)),"
                   " sum(u.mib * (u.to_ms - u.from_ms)) FROM usage u INDEXED BY usage_closed"
                   " WHERE u.to_ms >= ?1 AND u.to_ms < ?2 GROUP BY 1, 2, 3, 4",
                   &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, from_ms);
    bh_sql_uint(&q, 2, to_ms);
    bh_state_rows(&q, arena, ret, read_used, rc, err);
    return rc;
}

int bh_store_gone_used(struct bh_store *s, struct bh_arena *arena, bh_store_useds *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc =
        bh_sql_get(s, "SELECT tenant, mechanism, gpu, instance, milli_ms, mib_ms FROM gone_usage", &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_used, rc, err);
    return rc;
}

static int read_using(struct bh_sql *q, struct bh_arena *arena, struct bh_store_using *ret,
                      struct bh_err *err)
{
    *ret = (struct bh_store_using){.lease = bh_sql_col_uint(q, 6), .before_milli_ms = bh_sql_col_uint(q, 7)};
    return read_used(q, arena, &ret->used, err);
}

int bh_store_usage_open(struct bh_store *s, struct bh_arena *arena, uint64_t now_ms, bh_store_usings *ret,
                        struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(
        s,
        "SELECT u.tenant, u.mechanism, u.gpu, " INSTANCE ", u.milli * max(0, ?1 - u.from_ms),"
        " u.mib * max(0, ?1 - u.from_ms), u.lease,"
        " coalesce((SELECT sum(p.milli * (p.to_ms - p.from_ms)) FROM usage p WHERE p.lease = u.lease"
        " AND p.grant_id = u.grant_id AND p.to_ms IS NOT NULL), 0)"
        " FROM usage u INDEXED BY usage_open_of_lease WHERE u.to_ms IS NULL ORDER BY u.lease",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, now_ms);
    bh_state_rows(&q, arena, ret, read_using, rc, err);
    return rc;
}
