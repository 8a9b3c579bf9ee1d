/* SPDX-License-Identifier: Apache-2.0 */
/* state_tally.c - the past added up once, the present each time. */
#include "store/state_tally.h"

#include "core/model/vocab.h"
#include "store/state_inside.h"

#include <stdlib.h>
#include <string.h>

void bh_store_tally_fini(struct bh_store_tally *t)
{
    bh_vec_fini(&t->sums);
    bh_arena_fini(&t->arena);
    *t = (struct bh_store_tally){0};
}

/* Few have anything at all, and most rows are of whoever had the one before. */
static struct bh_store_usage_sum *sum_of(bh_store_usage_sums *sums, size_t first, size_t *last,
                                         struct bh_arena *arena, const char *tenant, uint8_t mechanism)
{
    for (size_t i = *last < sums->n ? *last : first, k = first; k <= sums->n; i = k++)
        if (i < sums->n && sums->at[i].mechanism == mechanism && strcmp(sums->at[i].tenant, tenant) == 0) {
            *last = i;
            return &sums->at[i];
        }
    *last = sums->n;
    struct bh_store_usage_sum *more = bh_vec_push(sums);
    *more = (struct bh_store_usage_sum){
        .tenant = bh_arena_str(arena, tenant), .of = "", .mechanism = mechanism, .first_ms = UINT64_MAX};
    return more;
}

/* Tenant, mechanism, both products, whether it is lost, whether it is the first of its lease, its beginning. */
static int add_rows(struct bh_sql *q, struct bh_arena *arena, bh_store_usage_sums *sums, size_t first,
                    struct bh_err *err)
{
    size_t last = first;
    int rc;
    while ((rc = bh_sql_step(q, err)) > 0) {
        uint8_t mechanism = 0;
        rc = bh_state_value(&bh_words_mechanism, (const char *)sqlite3_column_text(q->stmt, 1), "mechanism",
                            &mechanism, err);
        if (rc < 0) {
            bh_sql_done(q);
            return rc;
        }
        struct bh_store_usage_sum *sum =
            sum_of(sums, first, &last, arena, (const char *)sqlite3_column_text(q->stmt, 0), mechanism);
        const uint64_t milli_ms = bh_sql_col_uint(q, 2), from_ms = bh_sql_col_uint(q, 6);
        sum->milli_ms += milli_ms;
        sum->mib_ms += bh_sql_col_uint(q, 3);
        sum->lost_milli_ms += bh_sql_col_uint(q, 4) ? milli_ms : 0;
        sum->leases += bh_sql_col_uint(q, 5);
        sum->first_ms = from_ms < sum->first_ms ? from_ms : sum->first_ms;
    }
    return rc;
}

#define HAD_TO_GO "h.new = 'draining' AND h.cause = 'evict'"
/* A lease is counted where it first has something; ?2 is where an interval ends that has not ended. */
#define ROWS(end)                                                                                          \
    "SELECT u.tenant, u.mechanism, u.milli * (" end " - u.from_ms), u.mib * (" end " - u.from_ms),"        \
    " EXISTS (SELECT 1 FROM lease_history h WHERE h.lease = u.lease AND " HAD_TO_GO "),"                   \
    " NOT EXISTS (SELECT 1 FROM usage p WHERE p.lease = u.lease AND p.id < u.id), u.from_ms FROM usage u " \
    "INDEXED BY "

static int add(struct bh_store *s, const char *text, uint64_t from_ms, uint64_t to_ms, struct bh_arena *arena,
               bh_store_usage_sums *sums, size_t first, struct bh_err *err)
{
    struct bh_sql q;
    const int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, from_ms);
    bh_sql_uint(&q, 2, to_ms);
    return add_rows(&q, arena, sums, first, err);
}

/* Of leases that had to make room since: what they had before that is lost as well, and was added up as if it were not. */
static int lose(struct bh_store *s, struct bh_store_tally *t, struct bh_err *err)
{
    size_t last = 0;
    struct bh_sql q;
    int rc = bh_sql_get(s,
                        "SELECT u.tenant, u.mechanism, u.milli * (u.to_ms - u.from_ms) FROM usage u"
                        " WHERE u.to_ms < ?2 AND u.lease IN (SELECT h.lease FROM lease_history h NOT INDEXED"
                        " WHERE h.id > ?1 AND " HAD_TO_GO ")",
                        &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, t->steps);
    bh_sql_uint(&q, 2, t->closed_ms);
    while ((rc = bh_sql_step(&q, err)) > 0) {
        uint8_t mechanism = 0;
        rc = bh_state_value(&bh_words_mechanism, (const char *)sqlite3_column_text(q.stmt, 1), "mechanism",
                            &mechanism, err);
        if (rc < 0) {
            bh_sql_done(&q);
            return rc;
        }
        sum_of(&t->sums, 0, &last, &t->arena, (const char *)sqlite3_column_text(q.stmt, 0), mechanism)
            ->lost_milli_ms += bh_sql_col_uint(&q, 2);
    }
    return rc;
}

static int last_step(struct bh_store *s, uint64_t *ret, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, "SELECT coalesce(max(id), 0) FROM lease_history", &q, err);
    if (rc == 0)
        rc = bh_state_first(&q, err, "the books are empty");
    if (rc < 0)
        return rc;
    *ret = bh_sql_col_uint(&q, 0);
    bh_sql_done(&q);
    return 0;
}

/* Up to now, exclusive: what is closed from now on is not closed before. */
static int catch_up(struct bh_store *s, struct bh_store_tally *t, uint64_t now_ms, struct bh_err *err)
{
    uint64_t steps = 0;
    int rc = last_step(s, &steps, err);
    if (rc == 0 && t->closed_ms && steps != t->steps)
        rc = lose(s, t, err);
    if (rc == 0)
        rc = add(s, ROWS("u.to_ms") "usage_closed WHERE u.to_ms >= ?1 AND u.to_ms < ?2", t->closed_ms, now_ms,
                 &t->arena, &t->sums, 0, err);
    t->closed_ms = now_ms;
    t->steps = steps;
    return rc;
}

static int in_order(const void *a, const void *b)
{
    const struct bh_store_usage_sum *x = a, *y = b;
    const int by_tenant = strcmp(x->tenant, y->tenant);
    return by_tenant ? by_tenant : strcmp(bh_word(mechanism, x->mechanism), bh_word(mechanism, y->mechanism));
}

/* The past as it is added up, and what is not yet over. */
static int put_together(struct bh_store *s, struct bh_arena *arena, const struct bh_store_tally *t,
                        uint64_t now_ms, bh_store_usage_sums *ret, struct bh_err *err)
{
    const size_t first = ret->n;
    for (size_t i = 0; i < t->sums.n; i++) {
        struct bh_store_usage_sum *sum = bh_vec_push(ret);
        *sum = t->sums.at[i];
        sum->tenant = bh_arena_str(arena, sum->tenant);
    }
    int rc = add(s, ROWS("min(u.to_ms, ?2)") "usage_closed WHERE u.to_ms >= ?1 AND u.from_ms < ?2",
                 t->closed_ms, now_ms, arena, ret, first, err);
    if (rc == 0)
        rc = add(s,
                 ROWS("?2") "usage_open_of_lease WHERE u.to_ms IS NULL AND u.from_ms < ?2 AND ?1 IS NOT NULL",
                 t->closed_ms, now_ms, arena, ret, first, err);
    if (rc == 0 && ret->n > first)
        qsort(ret->at + first, ret->n - first, sizeof(*ret->at), in_order);
    if (rc < 0)
        ret->n = first;
    return rc;
}

int bh_store_tally_sum(struct bh_store *s, struct bh_arena *arena, struct bh_store_tally *t, uint64_t now_ms,
                       bh_store_usage_sums *ret, struct bh_err *err)
{
    const struct bh_store_usage_filter all = {.to_ms = now_ms};
    if (t->drops != bh_store_drops(s))
        bh_store_tally_fini(t);
    t->drops = bh_store_drops(s);
    /* What is being written may be undone, and is not to be remembered. */
    if (bh_store_in_transaction(s) || now_ms < t->closed_ms)
        return bh_store_usage_sum(s, arena, &all, BH_USAGE_OF_TENANT, ret, err);
    int rc = catch_up(s, t, now_ms, err);
    if (rc == 0)
        rc = put_together(s, arena, t, now_ms, ret, err);
    if (rc < 0)
        bh_store_tally_fini(t); /* it may have half of something; the next one begins anew */
    return rc;
}
