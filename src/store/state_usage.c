/* SPDX-License-Identifier: Apache-2.0 */
/* state_usage.c - intervals: opened and closed by the steps of leases, listed and added up for people. */
#include "store/state_usage.h"

#include "core/ledger/strand.h"
#include "store/state_inside.h"

#include <string.h>

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

#define USAGE_FROM " FROM usage u JOIN leases l ON l.id = u.lease JOIN cards c ON c.uuid = u.gpu WHERE "
/* The attempt had to make room. */
#define LOST                                                                                              \
    "EXISTS (SELECT 1 FROM lease_history h WHERE h.lease = u.lease AND h.new = 'draining' AND h.cause = " \
    "'evict')"
#define USAGE_COLUMNS                                                                                 \
    "SELECT u.id, u.gpu, u.kind, u.key, u.base, u.lease, u.grant_id, u.tenant, u.mechanism, u.milli," \
    " u.mib, u.from_ms, u.to_ms, l.job, l.user, " LOST USAGE_FROM
/*
 * ?1 and ?2 are the page's, ?3 the lease or 0, ?4 the tenant or null, ?5 and ?6 the time, ?7 the last id of a list. A text that is for
 * one tenant begins with ONE_TENANT, by which an index finds its rows: what it costs is then up to that tenant's own records.
 */
#define USAGE_OF   " AND (?3 = 0 OR u.lease = ?3) AND (?4 IS NULL OR u.tenant = ?4)"
#define ONE_TENANT "u.tenant = ?4 AND "
#define USAGE_IN   " AND u.id <= ?7 AND (u.to_ms IS NULL OR u.to_ms > ?5 OR u.from_ms >= ?5) AND u.from_ms < ?6"

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
                                   .to_ms = bh_sql_col_uint(q, 12),
                                   .job = bh_sql_col_uint(q, 13),
                                   .user = bh_sql_col_text(q, 14, arena),
                                   .lost = bh_sql_col_uint(q, 15) != 0};
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
    static const char *const texts[3][2] = {
        {USAGE_COLUMNS "u.id > ?1" USAGE_OF USAGE_IN " ORDER BY u.id LIMIT ?2",
         USAGE_COLUMNS "u.id < ?1" USAGE_OF USAGE_IN " ORDER BY u.id DESC LIMIT ?2"},
        {USAGE_COLUMNS "u.lease = ?3 AND u.id > ?1" USAGE_OF USAGE_IN " ORDER BY u.id LIMIT ?2",
         USAGE_COLUMNS "u.lease = ?3 AND u.id < ?1" USAGE_OF USAGE_IN " ORDER BY u.id DESC LIMIT ?2"},
        {USAGE_COLUMNS ONE_TENANT "u.id > ?1" USAGE_OF USAGE_IN " ORDER BY u.id LIMIT ?2",
         USAGE_COLUMNS ONE_TENANT "u.id < ?1" USAGE_OF USAGE_IN " ORDER BY u.id DESC LIMIT ?2"}};
    const unsigned by = !filter ? 0 : filter->lease ? 1 : filter->tenant ? 2 : 0;
    struct bh_sql q;
    int rc = bh_sql_get(s, texts[by][page && page->newest], &q, err);
    if (rc < 0)
        return rc;
    bh_state_page(&q, 1, 2, page);
    bind_filter(&q, filter);
    bh_sql_uint(&q, 7, filter && filter->upto ? filter->upto : INT64_MAX);
    bh_state_rows(&q, arena, ret, read_usage, rc, err);
    return rc;
}

int bh_store_usage_upto(struct bh_store *s, const struct bh_store_usage_filter *filter, uint64_t after,
                        uint64_t most, uint64_t *ret, struct bh_err *err)
{
    const char *tenant = filter ? filter->tenant : NULL;
    struct bh_sql q;
    int rc =
        bh_sql_get(s,
                   tenant ? "SELECT id FROM usage WHERE id > ?1 AND tenant = ?3 ORDER BY id LIMIT 1 OFFSET ?2"
                          : "SELECT id FROM usage WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2",
                   &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, after);
    bh_sql_uint(&q, 2, most - 1);
    if (tenant)
        bh_sql_text(&q, 3, tenant);
    rc = bh_sql_step(&q, err);
    if (rc < 0)
        return rc;
    *ret = rc > 0 ? bh_sql_col_uint(&q, 0) : 0;
    bh_sql_done(&q);
    return 0;
}

/* ---- sums ---- */

/* What of an interval lies inside. */
#define CLIPPED_FROM "max(u.from_ms, ?5)"
#define CLIPPED_TO   "min(coalesce(u.to_ms, ?6), ?6)"
#define INSIDE       "(u.to_ms IS NULL OR u.to_ms > ?5) AND u.from_ms < ?6"

static int read_sum(struct bh_sql *q, struct bh_arena *arena, struct bh_store_usage_sum *ret,
                    struct bh_err *err)
{
    uint8_t mechanism = 0;
    const int rc =
        bh_state_value(&bh_words_mechanism, bh_sql_col_text(q, 2, arena), "mechanism", &mechanism, err);
    *ret = (struct bh_store_usage_sum){.tenant = bh_sql_col_text(q, 0, arena),
                                       .of = bh_sql_col_text(q, 1, arena),
                                       .mechanism = mechanism,
                                       .milli_ms = bh_sql_col_uint(q, 3),
                                       .mib_ms = bh_sql_col_uint(q, 4),
                                       .lost_milli_ms = bh_sql_col_uint(q, 5),
                                       .leases = bh_sql_col_uint(q, 6),
                                       .first_ms = bh_sql_col_uint(q, 7)};
    return rc;
}

/*
 * One pass over the intervals alone: neither leases nor cards are looked up for each, but for its user. Those that had to make
 * room are few, and found first.
 */
#define GPU_MS "u.milli * (" CLIPPED_TO " - " CLIPPED_FROM ")"
#define LOST_OF_ALL \
    "u.lease IN (SELECT h.lease FROM lease_history h WHERE h.new = 'draining' AND h.cause = 'evict')"
/* Who asks for one tenant pays for that one's leases alone. */
#define LOST_OF_ONE \
    "EXISTS (SELECT 1 FROM lease_history h WHERE h.lease = u.lease AND h.new = 'draining' AND h.cause = 'evict')"
#define SUMS_BY(whose, lost, what, also)                                                                   \
    "SELECT u.tenant, " what ", u.mechanism, sum(" GPU_MS "), sum(u.mib * (" CLIPPED_TO " - " CLIPPED_FROM \
    ")), sum(iif(" lost ", " GPU_MS ", 0)), count(DISTINCT u.lease), min(" CLIPPED_FROM                    \
    ") FROM usage u" also " WHERE " whose INSIDE USAGE_OF " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"

static int in_time(const struct bh_store_usage_filter *f, struct bh_err *err)
{
    if (!f || !f->to_ms || f->to_ms < f->from_ms)
        return bh_fail(err, BH_INVALID, "usage is added up from one time to a later one");
    return 0;
}

int bh_store_usage_sum(struct bh_store *s, struct bh_arena *arena, const struct bh_store_usage_filter *filter,
                       enum bh_store_usage_by by, bh_store_usage_sums *ret, struct bh_err *err)
{
#define SUMS(whose, lost)                                                                     \
    {[BH_USAGE_OF_TENANT] = SUMS_BY(whose, lost, "''", ""),                                   \
     [BH_USAGE_OF_USER] = SUMS_BY(whose, lost, "l.user", " JOIN leases l ON l.id = u.lease"), \
     [BH_USAGE_OF_GPU] = SUMS_BY(whose, lost, "u.gpu", "")}
    static const char *const texts[2][BH_USAGE_OFS] = {SUMS("", LOST_OF_ALL), SUMS(ONE_TENANT, LOST_OF_ONE)};
#undef SUMS
    struct bh_sql q;
    int rc = in_time(filter, err);
    if (rc == 0)
        rc = bh_sql_get(s, texts[filter->tenant != NULL][by], &q, err);
    if (rc < 0)
        return rc;
    bind_filter(&q, filter);
    bh_state_rows(&q, arena, ret, read_sum, rc, err);
    return rc;
}

/* ---- cards ---- */

static int read_card(struct bh_sql *q, struct bh_arena *arena, struct bh_store_usage_card *ret,
                     struct bh_err *err)
{
    (void)err;
    *ret = (struct bh_store_usage_card){.gpu = bh_sql_col_text(q, 0, arena),
                                        .index = (uint32_t)bh_sql_col_uint(q, 1),
                                        .memory_mib = (uint32_t)bh_sql_col_uint(q, 2)};
    return 0;
}

static struct bh_store_usage_card *card_of(bh_store_usage_cards *cards, size_t from, const char *gpu)
{
    for (size_t i = from; i < cards->n; i++) {
        if (strcmp(cards->at[i].gpu, gpu) == 0)
            return &cards->at[i];
    }
    return NULL; /* the schema does not let a grant name a card that is not there */
}

/* Through the time of one card after another: what begins and what ends, in order. */
static int through(struct bh_store *s, const struct bh_store_usage_filter *f, bh_store_usage_cards *cards,
                   size_t first, struct bh_err *err)
{
    struct bh_store_usage_card *card = NULL;
    struct bh_strand strand = {0};
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "WITH held AS (SELECT u.gpu AS gpu, u.milli AS milli,"
                        " iif(u.kind = 'whole', c.memory_mib, u.mib) AS mib, " CLIPPED_FROM
                        " AS a, " CLIPPED_TO " AS b" USAGE_FROM INSIDE USAGE_OF ")"
                        " SELECT gpu, a, milli, mib FROM held UNION ALL SELECT gpu, b, -milli, -mib FROM held"
                        " ORDER BY 1, 2",
                        &q, err);
    if (rc < 0)
        return rc;
    bind_filter(&q, f);
    while ((rc = bh_sql_step(&q, err)) > 0) {
        const char *gpu = (const char *)sqlite3_column_text(q.stmt, 0);
        const uint64_t at_ms = bh_sql_col_uint(&q, 1);
        if (!card || strcmp(card->gpu, gpu) != 0) {
            card = card_of(cards, first, gpu);
            if (!card) {
                bh_sql_done(&q);
                return bh_fail(err, BH_SYSTEM, "usage of a card that is not there");
            }
            strand = (struct bh_strand){.card_mib = card->memory_mib, .at_ms = at_ms};
        }
        card->milli_ms += (uint64_t)strand.milli * (at_ms - strand.at_ms);
        bh_strand_step(&strand, at_ms, bh_sql_col_int(&q, 2), bh_sql_col_int(&q, 3));
        card->stranded_milli_ms = (uint64_t)strand.milli_ms;
        card->stranded_mib_ms = (uint64_t)strand.mib_ms;
    }
    return rc;
}

int bh_store_usage_cards_list(struct bh_store *s, struct bh_arena *arena,
                              const struct bh_store_usage_filter *filter, bh_store_usage_cards *ret,
                              struct bh_err *err)
{
    const size_t first = ret->n;
    struct bh_sql q;
    int rc = in_time(filter, err);
    if (rc == 0)
        rc = bh_sql_get(s, "SELECT uuid, number, memory_mib FROM cards ORDER BY number, uuid", &q, err);
    if (rc < 0)
        return rc;
    bh_state_rows(&q, arena, ret, read_card, rc, err);
    const struct bh_store_usage_filter when = {.from_ms = filter->from_ms, .to_ms = filter->to_ms};
    return rc < 0 ? rc : through(s, &when, ret, first, err);
}
