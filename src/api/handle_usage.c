/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_usage.c - who had what: sums for a bill, and the intervals that they are the sums of.
 *
 * Who sees some tenants is told of those and of nobody else: a sum over all others, of any time that somebody likes to ask for,
 * says to the millisecond when a neighbour began and ended. Cards and what is stranded on them are for those who see
 * everything.
 */
#include "api/handle.h"
#include "base/str.h"
#include "store/state_history.h"
#include "store/state_usage.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Nobody had anything yet of the time that has not come: what is counted ends now at the latest, and the answer says so. */
static int time_of(const struct bh_api_core *core, struct bh_api_req *q, struct bh_store_usage_filter *ret)
{
    const struct bh_q_usage *in = q->in;
    const uint64_t now_ms = core->view->now_ms, to_ms = in->to_ms && in->to_ms < now_ms ? in->to_ms : now_ms;
    if (in->to_ms && in->from_ms > in->to_ms)
        return bh_api_refuse(&q->problem, BH_INVALID, "'from_ms' is after 'to_ms'");
    *ret = (struct bh_store_usage_filter){
        .tenant = in->tenant, .from_ms = in->from_ms, .to_ms = to_ms > in->from_ms ? to_ms : in->from_ms};
    return 0;
}

/* As the policy in force has it; NULL: it has none, or no such tenant any more. */
static const char *cost_center(const struct bh_api_core *core, const char *tenant)
{
    const struct bh_policy *p = core->view->policy;
    for (size_t i = 0; p && i < p->tenants.n; i++) {
        if (bh_str_eq(p->tenants.at[i].name, tenant))
            return p->tenants.at[i].cost_center;
    }
    return NULL;
}

/* ---- sums ---- */

static void row_json(struct bh_json *j, const struct bh_api_core *core, enum bh_store_usage_by by,
                     const struct bh_store_usage_sum *s)
{
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "tenant", s->tenant);
    bh_json_key_str(j, "cost_center", cost_center(core, s->tenant));
    bh_json_key_str(j, "user", by == BH_USAGE_OF_USER ? s->of : NULL);
    bh_json_key_str(j, "gpu", by == BH_USAGE_OF_GPU ? s->of : NULL);
    bh_json_key_str(j, "mechanism", bh_word(mechanism, s->mechanism));
    bh_json_key_u64(j, "first_ms", s->first_ms);
    bh_json_key_u64(j, "milli_ms", s->milli_ms);
    bh_json_key_u64(j, "mib_ms", s->mib_ms);
    bh_json_key_u64(j, "lost_milli_ms", s->lost_milli_ms);
    bh_json_key_u64(j, "leases", s->leases);
    bh_json_close(j, '}');
}

static void sums_json(const struct bh_api_core *core, struct bh_api_req *q, enum bh_store_usage_by by,
                      const bh_store_usage_sums *sums)
{
    struct bh_json *j = &q->json;
    bh_json_key(j, "usage");
    bh_json_open(j, '[');
    for (size_t i = 0; i < sums->n; i++) {
        if (bh_api_sees(q, sums->at[i].tenant))
            row_json(j, core, by, &sums->at[i]);
    }
    bh_json_close(j, ']');
}

static void prices_json(struct bh_json *j, const struct bh_policy *p)
{
    bh_json_key(j, "prices");
    if (!p || !p->prices.pos.line) {
        bh_json_str(j, NULL);
        return;
    }
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "currency", p->prices.currency);
    bh_json_key_u64(j, "gpu_hour_micro", p->prices.gpu_hour_micro);
    bh_json_key_u64(j, "memory_gib_hour_micro", p->prices.memory_gib_hour_micro);
    bh_json_close(j, '}');
}

static void cards_json(struct bh_json *j, const bh_store_usage_cards *cards)
{
    bh_json_key(j, "cards");
    bh_json_open(j, '[');
    for (size_t i = 0; i < cards->n; i++) {
        const struct bh_store_usage_card *c = &cards->at[i];
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "gpu", c->gpu);
        bh_json_key_u64(j, "index", c->index);
        bh_json_key_u64(j, "memory_mib", c->memory_mib);
        bh_json_key_u64(j, "milli_ms", c->milli_ms);
        bh_json_key_u64(j, "stranded_milli_ms", c->stranded_milli_ms);
        bh_json_key_u64(j, "stranded_mib_ms", c->stranded_mib_ms);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static enum bh_store_usage_by by_of(const char *word)
{
    return bh_str_eq(word, "user")  ? BH_USAGE_OF_USER
           : bh_str_eq(word, "gpu") ? BH_USAGE_OF_GPU
                                    : BH_USAGE_OF_TENANT;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Of all, or of each tenant that the caller sees: nothing of anybody else is read. Of one that is not to be seen as of one that is
 * not there.
 */
static void whose(const struct bh_api_req *q, const char *tenant, struct bh_store_bill_ask *ask)
{
    BH_VEC(const char *) names = {0};
    ask->all = !tenant && bh_api_sees_all(q);
    if (tenant && bh_api_sees(q, tenant))
        *bh_vec_push(&ask->tenants) = tenant;
    for (size_t i = 0; !tenant && !ask->all && i < q->caller.n_grants; i++)
        *bh_vec_push(&names) = q->caller.grants[i].tenant;
    if (names.n)
        qsort(names.at, names.n, sizeof(*names.at), by_name);
    for (size_t i = 0; i < names.n; i++)
        if (i == 0 || !bh_str_eq(names.at[i], names.at[i - 1])) /* somebody may have two roles in one */
            *bh_vec_push(&ask->tenants) = names.at[i];
    bh_vec_fini(&names);
}

/* What a caller may take at once of a processor; whoever sees everything was told by the policy to look after it all. */
enum { PURSE_MS = 1000, PURSE_OF_ALL_MS = 10000, RETRY_MAX_MS = 3600000 };

static uint64_t clock_ms(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* All of everybody up to now: the question of every screen, and the dearest one. */
static bool asks_for_all(const struct bh_api_req *q)
{
    const struct bh_q_usage *in = q->in;
    return by_of(in->by) == BH_USAGE_OF_TENANT && !in->tenant && !in->from_ms && !in->to_ms &&
           bh_api_sees_all(q);
}

/* What one caller takes of a processor is counted; who took too much comes later. */
struct turn {
    uint64_t now_ms, began_ms;
};

static int begin_turn(struct bh_api_core *core, struct bh_api_req *q, struct turn *ret, struct bh_err *err)
{
    uint64_t wait_ms;
    *ret = (struct turn){clock_ms(CLOCK_MONOTONIC), clock_ms(CLOCK_THREAD_CPUTIME_ID)};
    if (bh_toll_may(&core->sums, q->caller.principal, bh_api_sees_all(q) ? PURSE_OF_ALL_MS : PURSE_MS,
                    ret->now_ms, &wait_ms))
        return 0;
    q->problem.retry_s = wait_ms < RETRY_MAX_MS ? (uint32_t)(wait_ms / 1000 + 1) : RETRY_MAX_MS / 1000;
    return bh_fail(err, BH_BUSY,
                   "you asked for more of the books of usage than there is time for; ask again in %u s",
                   q->problem.retry_s);
}

static void end_turn(struct bh_api_core *core, const struct bh_api_req *q, const struct turn *t)
{
    bh_toll_pay(&core->sums, q->caller.principal, clock_ms(CLOCK_THREAD_CPUTIME_ID) - t->began_ms, t->now_ms);
}

/* ---- a moment ago ---- */

enum { RECENT_MS = 250 };

void bh_api_forget_recent(struct bh_api_recent *r)
{
    bh_vec_fini(&r->sums);
    bh_arena_fini(&r->arena);
    *r = (struct bh_api_recent){0};
}

/* What is true up to a time stays so: usage is never closed at one that was seen. The answer says which time that is. */
static bool take_recent(const struct bh_api_recent *r, struct bh_store_usage_filter *f,
                        bh_store_usage_sums *ret)
{
    if (!r->at_ms || r->to_ms > f->to_ms || clock_ms(CLOCK_MONOTONIC) - r->at_ms >= RECENT_MS)
        return false;
    f->to_ms = r->to_ms;
    for (size_t i = 0; i < r->sums.n; i++)
        *bh_vec_push(ret) = r->sums.at[i];
    return true;
}

static void keep_recent(struct bh_api_recent *r, const struct bh_store_usage_filter *f,
                        const bh_store_usage_sums *sums)
{
    bh_api_forget_recent(r);
    for (size_t i = 0; i < sums->n; i++) {
        struct bh_store_usage_sum *s = bh_vec_push(&r->sums);
        *s = sums->at[i];
        s->tenant = bh_arena_str(&r->arena, s->tenant);
        s->of = bh_arena_str(&r->arena, s->of);
    }
    r->at_ms = clock_ms(CLOCK_MONOTONIC);
    r->to_ms = f->to_ms;
}

/* ---- the bill ---- */

/* More than so many intervals are added up elsewhere (ops->bill): to begin a process takes as long as to add up some thousands. */
enum { ROWS_AT_ONCE = 10000 };

static void bill_json(const struct bh_api_core *core, struct bh_api_req *q, const struct bh_store_bill *bill)
{
    const struct bh_q_usage *in = q->in;
    const bool known = bill->whole_from_ms && (!in->tenant || bh_api_sees(q, in->tenant));
    bh_json_open(&q->json, '{');
    bh_json_key_u64(&q->json, "from_ms", bill->from_ms);
    bh_json_key_u64(&q->json, "to_ms", bill->to_ms);
    bh_api_key_known(&q->json, "complete_from_ms", known ? bill->whole_from_ms : UINT64_MAX);
    sums_json(core, q, by_of(in->by), &bill->sums);
    prices_json(&q->json, core->view->policy);
    cards_json(&q->json, &bill->cards);
    bh_json_close(&q->json, '}');
}

/* At once, or BH_API_LATER. */
static int make_bill(struct bh_api_core *core, struct bh_api_req *q, const struct bh_store_bill_ask *ask,
                     struct bh_store_bill *ret, struct bh_err *err)
{
    uint64_t rows = 0;
    int rc =
        core->ops->bill ? bh_store_bill_rows(core->store, ask, &core->tally, ROWS_AT_ONCE, &rows, err) : 0;
    if (rc < 0)
        return rc;
    if (rows <= ROWS_AT_ONCE)
        return bh_store_bill_make(core->store, &q->arena, ask, &core->tally, ret, err);
    rc = core->ops->bill(core->ops->self, &q->caller, ask, q->ticket, err);
    q->bill = rc == BH_API_LATER;
    return rc;
}

static int make_bill_in_turn(struct bh_api_core *core, struct bh_api_req *q,
                             const struct bh_store_usage_filter *f, struct bh_store_bill *ret,
                             struct bh_err *err)
{
    struct bh_store_bill_ask ask = {
        .from_ms = f->from_ms, .to_ms = f->to_ms, .by = by_of(((const struct bh_q_usage *)q->in)->by)};
    struct turn turn;
    int rc = begin_turn(core, q, &turn, err);
    if (rc < 0)
        return rc;
    whose(q, f->tenant, &ask);
    if (ask.all || ask.tenants.n) { /* of nobody, nothing is read */
        ask.cards = ask.by == BH_USAGE_OF_GPU && bh_api_sees_all(q);
        ask.past = asks_for_all(q) &&
                   !bh_store_in_transaction(core->store); /* it may be undone, or drop something */
        ask.drops = bh_store_drops(core->store);
        rc = make_bill(core, q, &ask, ret, err);
    }
    bh_store_bill_ask_fini(&ask);
    end_turn(core, q, &turn);
    return rc;
}

/* What was added up elsewhere of the past need not be added up here. What was dropped since is in it, and makes it worthless. */
static void keep_tally(struct bh_api_core *core, struct bh_store_bill *bill)
{
    const uint64_t drops = bh_store_drops(core->store);
    if (!bill->tally.closed_ms || bill->tally.drops != drops ||
        (core->tally.drops == drops && core->tally.closed_ms >= bill->tally.closed_ms))
        return;
    bh_store_tally_fini(&core->tally);
    core->tally = bill->tally;
    bill->tally = (struct bh_store_tally){0};
}

int bh_h_usage(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_store_usage_filter f = {0};
    struct bh_store_bill bill = {0};
    struct bh_err err;
    int rc = time_of(core, q, &f);
    if (rc < 0)
        return rc;
    const bool all = asks_for_all(q);
    if (f.from_ms < f.to_ms && !(all && take_recent(&core->recent, &f, &bill.sums))) {
        rc = make_bill_in_turn(core, q, &f, &bill, &err);
        if (rc == 0 && all)
            keep_recent(&core->recent, &f, &bill.sums);
    } else if (!f.tenant || bh_api_sees(q, f.tenant)) {
        rc = bh_store_history_whole_from(core->store, &bill.whole_from_ms, &err);
    }
    bill.from_ms = f.from_ms;
    bill.to_ms = f.to_ms; /* of what was added up a moment ago, too */
    if (rc == 0)
        bill_json(core, q, &bill);
    bh_store_bill_fini(&bill);
    return rc < 0 ? bh_api_fail(q, rc, &err) : rc;
}

int bh_h_usage_show(struct bh_api_core *core, struct bh_api_req *q, int rc, struct bh_store_bill *bill,
                    uint64_t took_ms, const struct bh_err *err)
{
    bh_toll_pay(&core->sums, q->caller.principal, took_ms, clock_ms(CLOCK_MONOTONIC));
    if (rc < 0)
        return bh_api_fail(q, rc, err);
    keep_tally(core, bill);
    bill_json(core, q, bill);
    return bh_api_fits(q);
}

void bh_h_usage_gone(struct bh_api_core *core, struct bh_api_req *q)
{
    const uint64_t took_ms = core->ops->bill_gone(core->ops->self, q->ticket);
    bh_toll_pay(&core->sums, q->caller.principal, took_ms, clock_ms(CLOCK_MONOTONIC));
    (void)bh_api_refuse(&q->problem, BH_BUSY, "nobody waited for it any more");
    bh_api_req_fail(q);
}

/* ---- intervals ---- */

static void record_json(struct bh_json *j, const struct bh_api_core *core, const struct bh_store_usage *u)
{
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "seq", u->id);
    bh_json_key_str(j, "tenant", u->tenant);
    bh_json_key_str(j, "cost_center", cost_center(core, u->tenant));
    bh_json_key_str(j, "user", u->user);
    bh_api_key_id(j, "job", 'J', u->job);
    bh_api_key_id(j, "lease", 'L', u->lease);
    bh_json_key_str(j, "gpu", u->slice.gpu);
    bh_json_key_str(j, "kind", bh_slice_kind_str(u->slice.kind));
    bh_api_key_text(j, "key", u->slice.key);
    bh_json_key_str(j, "mechanism", bh_word(mechanism, u->mechanism));
    bh_json_key_u64(j, "milli", u->milli);
    bh_json_key_u64(j, "mib", u->mib);
    bh_json_key_u64(j, "from_ms", u->from_ms);
    bh_api_key_known(j, "to_ms", u->to_ms ? u->to_ms : UINT64_MAX);
    bh_json_key_bool(j, "lost", u->lost);
    bh_json_close(j, '}');
}

/* What is looked at for one question, whether it is to be shown or not. */
enum { PAGES_MAX = 20, LOOKED_MAX = PAGES_MAX * BH_API_LIST_MAX };

struct showing {
    const struct bh_api_core *core;
    struct bh_api_req *q;
    uint64_t left, last, next; /* last: the one that was written last */
};

/* False: there was more than the caller wants. */
static bool show_page(struct showing *s, const bh_store_usages *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct bh_store_usage *u = &rows->at[i];
        if (!bh_api_sees(s->q, u->tenant))
            continue;
        if (!s->left) {
            s->next = s->last;
            return false;
        }
        record_json(&s->q->json, s->core, u);
        s->last = u->id;
        s->left--;
    }
    return true;
}

/*
 * Those that the caller may see, page after page, until `limit` of them are written or enough intervals were looked at: who sees
 * some tenants of many, or asks for the last day of years, goes on from there with another question, and the daemon with other
 * callers. A page at a time is in memory.
 */
static int records_json(struct bh_api_core *core, struct bh_api_req *q, struct bh_store_usage_filter *f,
                        uint64_t *ret_next, struct bh_err *err)
{
    const struct bh_q_usage *in = q->in;
    const uint64_t limit = in->limit ? in->limit : BH_STORE_PAGE;
    struct bh_store_page page = {.after = in->after, .limit = BH_API_LIST_MAX};
    struct showing s = {.core = core, .q = q, .left = limit, .last = in->after, .next = UINT64_MAX};
    bool more = true;
    int rc = bh_store_usage_upto(core->store, f, in->after, LOOKED_MAX, &f->upto, err);
    if (rc < 0)
        return rc;
    for (unsigned looked = 0; more && looked < PAGES_MAX; looked++) {
        struct bh_arena arena = {0};
        bh_store_usages rows = {0};
        rc = bh_store_usage_list(core->store, &arena, f, &page, &rows, err);
        more = rc == 0 && show_page(&s, &rows) && rows.n == page.limit;
        if (more)
            page.after = rows.at[rows.n - 1].id;
        bh_vec_fini(&rows);
        bh_arena_fini(&arena);
        if (rc < 0)
            return rc;
    }
    *ret_next = more ? page.after : s.next == UINT64_MAX && f->upto ? f->upto : s.next;
    return 0;
}

int bh_h_usage_records(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_store_usage_filter f = {0};
    uint64_t next = UINT64_MAX;
    struct turn turn;
    struct bh_err err;
    int rc = time_of(core, q, &f);
    if (rc < 0)
        return rc;
    rc = begin_turn(core, q, &turn, &err); /* to find few of many takes as long as to add them up */
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    if (!f.tenant)
        f.tenant = bh_api_only_tenant(q);
    /* How long it takes to find nothing to show would tell how much a neighbour had. */
    const bool sees = !f.tenant || bh_api_sees(q, f.tenant);
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "records");
    bh_json_open(&q->json, '[');
    if (sees)
        rc = records_json(core, q, &f, &next, &err);
    end_turn(core, q, &turn);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    bh_json_close(&q->json, ']');
    bh_api_key_known(&q->json, "next", next);
    bh_json_close(&q->json, '}');
    return 0;
}
