/* SPDX-License-Identifier: Apache-2.0 */
/* state_bill.c - a bill made, measured before it is, and carried from process to process. */
#include "store/state_bill.h"

#include "store/state_history.h"
#include "store/state_inside.h"

#include <string.h>

void bh_store_bill_ask_fini(struct bh_store_bill_ask *ask)
{
    bh_vec_fini(&ask->tenants);
}

void bh_store_bill_fini(struct bh_store_bill *bill)
{
    bh_vec_fini(&bill->sums);
    bh_vec_fini(&bill->cards);
    bh_store_tally_fini(&bill->tally);
}

/* ---- how much there is to read ---- */

static int count(struct bh_store *s, const char *text, const char *tenant, uint64_t from_ms, uint64_t most,
                 uint64_t *sum, struct bh_err *err)
{
    struct bh_sql q;
    int rc = bh_sql_get(s, text, &q, err);
    if (rc < 0)
        return rc;
    bh_sql_uint(&q, 1, most + 1);
    if (tenant)
        bh_sql_text(&q, 2, tenant);
    else
        bh_sql_uint(&q, 2, from_ms);
    rc = bh_state_first(&q, err, "number of intervals");
    if (rc < 0)
        return rc;
    *sum += bh_sql_col_uint(&q, 0);
    bh_sql_done(&q);
    return 0;
}

/* An index alone answers each: no row is looked at. */
int bh_store_bill_rows(struct bh_store *s, const struct bh_store_bill_ask *ask,
                       const struct bh_store_tally *tally, uint64_t most, uint64_t *ret, struct bh_err *err)
{
    const bool anew = !tally || tally->drops != bh_store_drops(s);
    uint64_t sum = 0;
    int rc = 0;
    if (ask->past)
        rc = count(s, "SELECT count(*) FROM (SELECT 1 FROM usage WHERE to_ms >= ?2 LIMIT ?1)", NULL,
                   anew ? 0 : tally->closed_ms, most, &sum, err);
    else if (ask->all || ask->cards)
        rc = count(s, "SELECT count(*) FROM (SELECT 1 FROM usage WHERE ?2 = 0 LIMIT ?1)", NULL, 0, most, &sum,
                   err);
    else
        for (size_t i = 0; rc == 0 && i < ask->tenants.n && sum <= most; i++)
            rc = count(s, "SELECT count(*) FROM (SELECT 1 FROM usage WHERE tenant = ?2 LIMIT ?1)",
                       ask->tenants.at[i], 0, most, &sum, err);
    if (rc == 0)
        *ret = sum;
    return rc;
}

/* ---- the bill ---- */

static int add_up(struct bh_store *s, struct bh_arena *arena, const struct bh_store_bill_ask *ask,
                  struct bh_store_tally *tally, bh_store_usage_sums *ret, struct bh_err *err)
{
    struct bh_store_usage_filter f = {.from_ms = ask->from_ms, .to_ms = ask->to_ms};
    int rc = 0;
    if (ask->past)
        return bh_store_tally_sum(s, arena, tally, ask->to_ms, ret, err);
    if (ask->all)
        return bh_store_usage_sum(s, arena, &f, ask->by, ret, err);
    /* Of each, one after the other: nothing of anybody else is read. */
    for (size_t i = 0; rc == 0 && i < ask->tenants.n; i++) {
        f.tenant = ask->tenants.at[i];
        rc = bh_store_usage_sum(s, arena, &f, ask->by, ret, err);
    }
    return rc;
}

int bh_store_bill_make(struct bh_store *s, struct bh_arena *arena, const struct bh_store_bill_ask *ask,
                       struct bh_store_tally *tally, struct bh_store_bill *ret, struct bh_err *err)
{
    const struct bh_store_usage_filter when = {.from_ms = ask->from_ms, .to_ms = ask->to_ms};
    struct bh_store_bill b = {.from_ms = ask->from_ms, .to_ms = ask->to_ms};
    int rc = add_up(s, arena, ask, tally, &b.sums, err);
    if (rc == 0 && ask->cards)
        rc = bh_store_usage_cards_list(s, arena, &when, &b.cards, err);
    if (rc == 0)
        rc = bh_store_history_whole_from(s, &b.whole_from_ms, err);
    if (rc < 0)
        bh_store_bill_fini(&b);
    else
        *ret = b;
    return rc;
}

/* ---- as bytes ---- */

static void put(struct bh_buf *out, uint64_t v)
{
    bh_buf_add(out, (const char *)&v, sizeof(v));
}

static void put_text(struct bh_buf *out, const char *s)
{
    put(out, strlen(s));
    bh_buf_str(out, s);
}

static void put_sums(struct bh_buf *out, const bh_store_usage_sums *sums)
{
    put(out, sums->n);
    for (size_t i = 0; i < sums->n; i++) {
        const struct bh_store_usage_sum *s = &sums->at[i];
        put_text(out, s->tenant);
        put_text(out, s->of);
        put(out, s->mechanism);
        put(out, s->milli_ms);
        put(out, s->mib_ms);
        put(out, s->lost_milli_ms);
        put(out, s->leases);
        put(out, s->first_ms);
    }
}

void bh_store_bill_ask_put(struct bh_buf *out, const struct bh_store_bill_ask *ask)
{
    put(out, ask->from_ms);
    put(out, ask->to_ms);
    put(out, (uint64_t)ask->by);
    put(out, ask->all);
    put(out, ask->cards);
    put(out, ask->past);
    put(out, ask->drops);
    put(out, ask->tenants.n);
    for (size_t i = 0; i < ask->tenants.n; i++)
        put_text(out, ask->tenants.at[i]);
}

void bh_store_bill_put(struct bh_buf *out, const struct bh_store_bill *bill)
{
    put(out, bill->from_ms);
    put(out, bill->to_ms);
    put(out, bill->whole_from_ms);
    put_sums(out, &bill->sums);
    put(out, bill->cards.n);
    for (size_t i = 0; i < bill->cards.n; i++) {
        const struct bh_store_usage_card *c = &bill->cards.at[i];
        put_text(out, c->gpu);
        put(out, c->index);
        put(out, c->memory_mib);
        put(out, c->milli_ms);
        put(out, c->stranded_milli_ms);
        put(out, c->stranded_mib_ms);
    }
    put_sums(out, &bill->tally.sums);
    put(out, bill->tally.closed_ms);
    put(out, bill->tally.steps);
    put(out, bill->tally.drops);
}

/* Past the end, or past what a number may be, all that follows is 0. */
struct taking {
    const char *at;
    size_t left;
    bool bad;
};

static uint64_t take(struct taking *t, uint64_t most)
{
    uint64_t v = 0;
    t->bad = t->bad || t->left < sizeof(v);
    if (t->bad)
        return 0;
    memcpy(&v, t->at, sizeof(v));
    t->at += sizeof(v);
    t->left -= sizeof(v);
    t->bad = v > most;
    return t->bad ? 0 : v;
}

static const char *take_text(struct taking *t, struct bh_arena *arena)
{
    const size_t n = (size_t)take(t, t->left);
    t->bad = t->bad || n > t->left || memchr(t->at, '\0', n);
    if (t->bad)
        return "";
    const char *s = bh_arena_strn(arena, t->at, n);
    t->at += n;
    t->left -= n;
    return s;
}

static void take_sums(struct taking *t, struct bh_arena *arena, bh_store_usage_sums *ret)
{
    for (uint64_t n = take(t, t->left); n && !t->bad; n--) {
        struct bh_store_usage_sum *s = bh_vec_push(ret);
        s->tenant = take_text(t, arena);
        s->of = take_text(t, arena);
        s->mechanism = (uint8_t)take(t, bh_words_mechanism.n - 1);
        s->milli_ms = take(t, UINT64_MAX);
        s->mib_ms = take(t, UINT64_MAX);
        s->lost_milli_ms = take(t, UINT64_MAX);
        s->leases = take(t, UINT64_MAX);
        s->first_ms = take(t, UINT64_MAX);
    }
}

static int whole(const struct taking *t, struct bh_err *err)
{
    return t->bad || t->left ? bh_fail(err, BH_INVALID, "a bill came in pieces") : 0;
}

int bh_store_bill_ask_get(const char *bytes, size_t n, struct bh_arena *arena, struct bh_store_bill_ask *ret,
                          struct bh_err *err)
{
    struct taking t = {.at = bytes, .left = n};
    struct bh_store_bill_ask ask = {.from_ms = take(&t, UINT64_MAX)};
    ask.to_ms = take(&t, UINT64_MAX);
    ask.by = (enum bh_store_usage_by)take(&t, BH_USAGE_OFS - 1);
    ask.all = take(&t, 1) != 0;
    ask.cards = take(&t, 1) != 0;
    ask.past = take(&t, 1) != 0;
    ask.drops = take(&t, UINT64_MAX);
    for (uint64_t left = take(&t, t.left); left && !t.bad; left--)
        *bh_vec_push(&ask.tenants) = take_text(&t, arena);
    const int rc = whole(&t, err);
    if (rc < 0)
        bh_store_bill_ask_fini(&ask);
    else
        *ret = ask;
    return rc;
}

int bh_store_bill_get(const char *bytes, size_t n, struct bh_arena *arena, struct bh_store_bill *ret,
                      struct bh_err *err)
{
    struct taking t = {.at = bytes, .left = n};
    struct bh_store_bill b = {.from_ms = take(&t, UINT64_MAX)};
    b.to_ms = take(&t, UINT64_MAX);
    b.whole_from_ms = take(&t, UINT64_MAX);
    take_sums(&t, arena, &b.sums);
    for (uint64_t left = take(&t, t.left); left && !t.bad; left--) {
        struct bh_store_usage_card *c = bh_vec_push(&b.cards);
        c->gpu = take_text(&t, arena);
        c->index = (uint32_t)take(&t, UINT32_MAX);
        c->memory_mib = (uint32_t)take(&t, UINT32_MAX);
        c->milli_ms = take(&t, UINT64_MAX);
        c->stranded_milli_ms = take(&t, UINT64_MAX);
        c->stranded_mib_ms = take(&t, UINT64_MAX);
    }
    take_sums(&t, &b.tally.arena, &b.tally.sums);
    b.tally.closed_ms = take(&t, UINT64_MAX);
    b.tally.steps = take(&t, UINT64_MAX);
    b.tally.drops = take(&t, UINT64_MAX);
    const int rc = whole(&t, err);
    if (rc < 0)
        bh_store_bill_fini(&b);
    else
        *ret = b;
    return rc;
}
