/* SPDX-License-Identifier: Apache-2.0 */
/* state_usage.c - intervals: opened and closed by the steps of leases, listed and added up for people. */
#include "store/state_usage.h"

#include "store/state_inside.h"

/*
 * For what the lease has and nobody pays for yet. A clock that went back would make two intervals of one grant overlap:
 * the later one begins where the earlier ended.
 */
int bh_usage_open(struct bh_store *s, uint64_t lease, uint64_t at_ms, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(
        s,
        "INSERT INTO usage(lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms)"
        " SELECT l.id, g.id, l.tenant, g.gpu, g.kind, g.key, g.base, l.mechanism,"
        " iif(g.base = '', g.milli, g.milli * (SELECT b.milli FROM slices b"
        " WHERE b.gpu = g.gpu AND b.kind = 'mig' AND b.key = g.base) / 1000), g.mib,"
        " max(?2, coalesce((SELECT max(to_ms) FROM usage p WHERE p.lease = l.id AND p.grant_id = g.id), 0))"
        " FROM leases l JOIN slices s ON s.lease = l.id JOIN grants g ON g.id = s.grant_id"
        " WHERE l.id = ?1 AND s.state IN ('owned', 'dirty')"
        " AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.grant_id = g.id AND u.to_ms IS NULL)",
        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, lease);
    bh_sql_uint(&q, 2, at_ms);
    return bh_sql_run(&q, NULL, err);
}

int bh_usage_close(struct bh_store *s, uint64_t lease, uint64_t grant, uint64_t at_ms, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s,
                              "UPDATE usage SET to_ms = max(from_ms, ?3)"
                              " WHERE lease = ?1 AND to_ms IS NULL AND (?2 = 0 OR grant_id = ?2)",
                              &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, lease);
    bh_sql_uint(&q, 2, grant);
    bh_sql_uint(&q, 3, at_ms);
    return bh_sql_run(&q, NULL, err);
}

/* ---- reading ---- */

#define USAGE_COLUMNS                                                                                 \
    "SELECT id, gpu, kind, key, base, lease, grant_id, tenant, mechanism, milli, mib, from_ms, to_ms" \
    " FROM usage WHERE "
/* ?1 and ?2 are the page's, ?3 the lease or 0, ?4 the tenant or null, ?5 and ?6 the time. */
#define USAGE_OF " AND (?3 = 0 OR lease = ?3) AND (?4 IS NULL OR tenant = ?4)"
#define USAGE_IN " AND (to_ms IS NULL OR to_ms > ?5 OR from_ms >= ?5) AND from_ms < ?6"

static int read_usage(struct bh_sql *q, struct bh_arena *arena, struct bh_store_usage *ret,
                      struct bh_err *err)
{
    uint8_t mechanism = 0;
    struct bh_slice_name name = {0};
    int rc = bh_state_col_name(q, 1, arena, &name, err);
    if (rc == 0)
        rc = bh_state_value(&bh_words_mechanism, bh_sql_col_text(q, 8, arena), "mechanism", &mechanism, err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_store_usage){.id = bh_sql_col_uint(q, 0),
                                   .lease = bh_sql_col_uint(q, 5),
                                   .grant = bh_sql_col_uint(q, 6),
                                   .tenant = bh_sql_col_text(q, 7, arena),
                                   .slice = name,
                                   .mechanism = mechanism,
                                   .milli = (uint32_t)bh_sql_col_uint(q, 9),
                                   .mib = (uint32_t)bh_sql_col_uint(q, 10),
                                   .from_ms = bh_sql_col_uint(q, 11),
                                   .to_ms = bh_sql_col_uint(q, 12)};
    return 0;
}

static void bind_filter(struct bh_sql *q, const struct bh_store_usage_filter *f)
{
    static const struct bh_store_usage_filter any = {0};
    const struct bh_store_usage_filter *o = f ? f : &any;
    bh_sql_uint(q, 3, o->lease);
    bh_sql_text(q, 4, o->tenant);
    bh_sql_uint(q, 5, o->from_ms);
    bh_sql_uint(q, 6, o->to_ms ? o->to_ms : INT64_MAX);
}

int bh_store_usage_list(struct bh_store *s, struct bh_arena *arena,
                        const struct bh_store_usage_filter *filter, const struct bh_store_page *page,
                        bh_store_usages *ret, struct bh_err *err)
{
    static const char *const texts[2][2] = {
        {USAGE_COLUMNS "id > ?1" USAGE_OF USAGE_IN " ORDER BY id LIMIT ?2",
         USAGE_COLUMNS "id < ?1" USAGE_OF USAGE_IN " ORDER BY id DESC LIMIT ?2"},
        {USAGE_COLUMNS "lease = ?3 AND id > ?1" USAGE_OF USAGE_IN " ORDER BY id LIMIT ?2",
         USAGE_COLUMNS "lease = ?3 AND id < ?1" USAGE_OF USAGE_IN " ORDER BY id DESC LIMIT ?2"}};
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[filter && filter->lease][page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    bind_filter(&q, filter);
    bh_state_rows(&q, arena, ret, read_usage, rc, err);
    return rc;
}

/* What of an interval lies inside. */
#define CLIPPED "(min(coalesce(to_ms, ?6), ?6) - max(from_ms, ?5))"

static int read_sum(struct bh_sql *q, struct bh_arena *arena, struct bh_store_usage_sum *ret,
                    struct bh_err *err)
{
    uint8_t mechanism = 0;
    const int rc =
        bh_state_value(&bh_words_mechanism, bh_sql_col_text(q, 1, arena), "mechanism", &mechanism, err);
    *ret = (struct bh_store_usage_sum){.tenant = bh_sql_col_text(q, 0, arena),
                                       .mechanism = mechanism,
                                       .milli_ms = bh_sql_col_uint(q, 2),
                                       .mib_ms = bh_sql_col_uint(q, 3),
                                       .leases = bh_sql_col_uint(q, 4)};
    return rc;
}

int bh_store_usage_sum(struct bh_store *s, struct bh_arena *arena, const struct bh_store_usage_filter *filter,
                       bh_store_usage_sums *ret, struct bh_err *err)
{
    struct bh_sql q;
    if (!filter || !filter->to_ms || filter->to_ms < filter->from_ms)
        return bh_fail(err, BH_INVALID, "usage is added up from one time to a later one");
    int rc = bh_sql_get(s,
                        "SELECT tenant, mechanism, sum(milli * " CLIPPED "), sum(mib * " CLIPPED "),"
                        " count(DISTINCT lease) FROM usage WHERE (to_ms IS NULL OR to_ms > ?5)"
                        " AND from_ms < ?6" USAGE_OF " GROUP BY tenant, mechanism ORDER BY tenant, mechanism",
                        &q, err);
    if (rc < 0)
        return rc;
    bind_filter(&q, filter);
    bh_state_rows(&q, arena, ret, read_sum, rc, err);
    return rc;
}
