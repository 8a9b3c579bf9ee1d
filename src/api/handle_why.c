/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_why.c - why a job waits, what would start it, and what would be if.
 *
 * Who holds what a job waits for is told by name only of tenants that the caller may see; the rest is one line of totals. A
 * remedy that touches somebody else's work says so and not whose.
 */
#include "api/handle.h"

#include "base/str.h"

static void holders_json(struct bh_json *j, const struct bh_api_req *q, const struct bh_api_why *w)
{
    uint64_t jobs = 0, milli = 0;
    bh_json_key(j, "holders");
    bh_json_open(j, '[');
    for (size_t i = 0; i < w->holders.n; i++) {
        const struct bh_api_holder *h = &w->holders.at[i];
        if (!bh_api_sees(q, h->tenant)) {
            jobs++;
            milli += h->milli;
            continue;
        }
        bh_json_open_flat(j, '{');
        bh_api_key_id(j, "job", 'J', h->job);
        bh_json_key_str(j, "tenant", h->tenant);
        bh_json_key_u64(j, "milli", h->milli);
        bh_api_key_known(j, "end_ms", h->end_ms ? h->end_ms : UINT64_MAX);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_json_key(j, "others");
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "jobs", jobs);
    bh_json_key_u64(j, "milli", milli);
    bh_json_close(j, '}');
}

static void remedies_json(struct bh_json *j, const struct bh_api_req *q, const struct bh_api_why *w)
{
    bh_json_key(j, "remedies");
    bh_json_open(j, '[');
    for (size_t i = 0; i < w->remedies.n; i++) {
        const struct bh_api_remedy *r = &w->remedies.at[i];
        const bool open = !r->tenant || bh_api_sees(q, r->tenant);
        bh_json_open(j, '{');
        bh_json_key_str(j, "kind", r->kind);
        bh_json_key_str(j, "sentence", open ? r->sentence : "others would have to give something up");
        bh_json_key_str(j, "tenant", open ? r->tenant : NULL);
        bh_json_key_bool(j, "touches_others", !open);
        bh_json_key_u64(j, "milli", r->milli);
        bh_api_key_known(j, "at_ms", r->at_ms ? r->at_ms : UINT64_MAX);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void why_json(struct bh_api_req *q, const struct bh_api_why *w)
{
    struct bh_json *j = &q->json;
    bh_json_open(j, '{');
    bh_json_key_str(j, "tier", w->tier);
    bh_json_key_str(j, "sentence", w->sentence);
    bh_json_key_bool(j, "starts", w->starts);
    bh_json_key_u64(j, "need_milli", w->need_milli);
    bh_json_key_u64(j, "free_milli", w->free_milli);
    bh_json_key_u64(j, "ahead", w->ahead);
    bh_api_key_known(j, "until_ms", w->until_ms ? w->until_ms : UINT64_MAX);
    holders_json(j, q, w);
    remedies_json(j, q, w);
    bh_json_close(j, '}');
}

int bh_h_why_show(struct bh_api_req *q, int rc, const struct bh_api_why *w, const struct bh_err *err)
{
    if (rc == 0)
        why_json(q, w);
    return rc < 0 ? bh_api_fail(q, rc, err) : rc;
}

int bh_h_why(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_api_why w = {0};
    struct bh_store_job b;
    struct bh_err err;
    int rc = bh_h_job_get(core, q, &b);
    if (rc < 0 || (rc = bh_api_check(q, b.tenant, NULL)) < 0)
        return rc;
    rc = bh_h_why_show(q, core->ops->why(core->ops->self, &q->caller, b.id, q->ticket, &q->arena, &w, &err),
                       &w, &err);
    bh_vec_fini(&w.holders);
    bh_vec_fini(&w.remedies);
    return rc;
}

/* ---- what if ---- */

static int job_of(struct bh_api_core *core, struct bh_api_req *q, uint64_t id)
{
    struct bh_store_job b;
    struct bh_err err;
    const int rc = bh_store_job_get(core->store, &q->arena, id, &b, &err);
    if (rc < 0 && rc != BH_NOT_FOUND)
        return bh_api_fail(q, rc, &err);
    if (rc < 0 || !bh_api_sees(q, b.tenant))
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is no job 'J%llu'", (unsigned long long)id);
    return bh_api_check(q, b.tenant, NULL);
}

/* One's own jobs may be thought away by anybody; what belongs to all is for those who answer for all. */
static int change_of(struct bh_api_core *core, struct bh_api_req *q, const struct bh_b_change *in,
                     struct bh_api_change *ret)
{
    *ret = (struct bh_api_change){.job = in->job,
                                  .tenant = in->tenant,
                                  .gpus_milli = in->gpus_milli,
                                  .count = in->count,
                                  .model = in->model};
    if (bh_str_eq(in->kind, "end-job")) {
        ret->kind = BH_API_CHANGE_END_JOB;
        return in->job ? job_of(core, q, in->job)
                       : bh_api_refuse(&q->problem, BH_INVALID, "a change 'end-job' needs the field 'job'");
    }
    if (!bh_api_may(&q->caller, BH_ROLE_BIT(OPERATOR), NULL)) {
        bh_api_hint(&q->problem, "operator", NULL, "leave the change out, or ask an operator");
        return bh_api_refuse(&q->problem, BH_DENIED, "a change '%s' is for operators to think of", in->kind);
    }
    ret->kind = bh_str_eq(in->kind, "quota") ? BH_API_CHANGE_QUOTA : BH_API_CHANGE_GPUS;
    if (ret->kind == BH_API_CHANGE_QUOTA && !in->tenant)
        return bh_api_refuse(&q->problem, BH_INVALID, "a change 'quota' needs the field 'tenant'");
    if (ret->kind == BH_API_CHANGE_GPUS && !in->count)
        return bh_api_refuse(&q->problem, BH_INVALID, "a change 'gpus' needs the field 'count'");
    return 0;
}

int bh_h_whatif(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_whatif *in = q->in;
    const struct bh_b_change *from = in->changes.at;
    struct bh_api_change *changes = bh_arena_alloc(&q->arena, (in->changes.n + 1) * sizeof(*changes));
    struct bh_err err;
    int rc;
    if (!in->job == !in->submit)
        return bh_api_refuse(&q->problem, BH_INVALID, "either 'job' or 'submit' says what is to start");
    if ((rc = in->job ? job_of(core, q, in->job) : bh_h_submit_check(core, q, in->submit)) < 0)
        return rc;
    for (size_t i = 0; i < in->changes.n; i++)
        if ((rc = change_of(core, q, &from[i], &changes[i])) < 0)
            return rc;
    const struct bh_api_whatif what = {
        .job = in->job, .submit = in->submit, .changes = changes, .n_changes = in->changes.n};
    rc = core->ops->what_if(core->ops->self, &q->caller, &what, q->ticket, &err);
    return rc < 0 ? bh_api_fail(q, rc, &err) : rc;
}
