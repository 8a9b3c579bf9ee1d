/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the reader of answers, and the shapes of all that verbs ask for. */
#include "cli/answer.h"

#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* What BH_ROWS is made of, whatever its rows are. */
struct rows {
    const void *at;
    size_t n;
};

struct reading {
    struct bh_json_reader json;
    struct bh_arena *arena;
    struct bh_err *err; /* of the first field that was wrong */
};

static bool wrong(struct reading *r, const char *field, const char *what)
{
    if (!r->json.wrong)
        (void)bh_fail(r->err, BH_SYSTEM, "the daemon's answer is not understood: '%s' %s", field, what);
    else
        (void)bh_fail(r->err, BH_SYSTEM, "the daemon's answer is not understood: '%s': %s", field,
                      r->json.wrong);
    return false;
}

/* What it decodes to is never longer than what is written. */
static bool read_text(struct reading *r, const char **ret)
{
    struct bh_json_reader one;
    const char *raw;
    size_t n;
    if (bh_json_read_peek(&r->json) != '"' || !bh_json_read_raw(&r->json, &raw, &n))
        return false;
    char *text = bh_arena_alloc(r->arena, n + 1);
    bh_json_read_init(&one, raw, n);
    if (!bh_json_read_str(&one, text, n + 1)) {
        r->json.wrong = one.wrong; /* a NUL */
        return false;
    }
    *ret = text;
    return true;
}

/* The largest stands for one that is not known, and is nobody's. */
static bool read_number(struct reading *r, uint64_t *ret)
{
    return bh_json_read_peek(&r->json) == '0' && bh_json_read_u64(&r->json, ret) && *ret != BH_ANSWER_UNKNOWN;
}

static bool read_object(struct reading *r, const struct bh_answer_shape *shape, void *ret);

/* Rows gather in memory of their own, since how many there are shows only at the end. */
static bool read_list(struct reading *r, size_t size, const struct bh_answer_shape *of, struct rows *ret)
{
    size_t n = 0, cap = 0;
    char *at = NULL;
    bool ok = bh_json_read_peek(&r->json) == '[' && bh_json_read_open(&r->json, '[');
    while (ok && bh_json_read_item(&r->json)) {
        if (n == cap)
            at = bh_grow_(at, &cap, n + 1, size);
        memset(at + n * size, 0, size);
        if (of)
            ok = read_object(r, of, at + n * size);
        else {
            const char *text = NULL;
            ok = read_text(r, &text);
            memcpy(at + n * size, &text, sizeof(text));
        }
        n++;
    }
    ok = ok && !r->json.wrong;
    if (ok && n) {
        void *kept = bh_arena_alloc(r->arena, n * size);
        memcpy(kept, at, n * size);
        *ret = (struct rows){kept, n};
    }
    free(at);
    return ok;
}

static bool read_value(struct reading *r, const struct bh_answer_field *f, void *to)
{
    struct rows rows = {NULL, 0};
    bool ok = false;
    switch (f->kind) {
    case BH_ANSWER_TEXT:
        return read_text(r, to);
    case BH_ANSWER_U64:
        return read_number(r, to);
    case BH_ANSWER_BOOL:
        return bh_json_read_bool(&r->json, to);
    case BH_ANSWER_TEXTS:
    case BH_ANSWER_MANY:
        ok = read_list(r, f->of ? f->of->size : sizeof(const char *), f->of, &rows);
        memcpy(to, &rows, sizeof(rows));
        return ok;
    case BH_ANSWER_ONE:
        break;
    }
    void *one = bh_arena_alloc(r->arena, f->of->size);
    ok = read_object(r, f->of, one);
    memcpy(to, &one, sizeof(one));
    return ok;
}

static void set_unknown(const struct bh_answer_shape *shape, char *ret)
{
    const uint64_t unknown = BH_ANSWER_UNKNOWN;
    for (size_t i = 0; i < shape->n; i++)
        if (shape->fields[i].kind == BH_ANSWER_U64)
            memcpy(ret + shape->fields[i].at, &unknown, sizeof(unknown));
}

/* The shapes are nested only so deep, so the recursion is. */
static bool read_object(struct reading *r, const struct bh_answer_shape *shape, void *ret)
{
    char key[32]; /* a longer one is cut, and longer than any field's name even so */
    uint64_t seen = 0;
    set_unknown(shape, ret);
    if (bh_json_read_peek(&r->json) != '{' || !bh_json_read_open(&r->json, '{'))
        return wrong(r, "it", "is not an object");
    while (bh_json_read_member(&r->json, key, sizeof(key))) {
        size_t i = 0;
        while (i < shape->n && !bh_str_eq(shape->fields[i].name, key))
            i++;
        const struct bh_answer_field *f = &shape->fields[i];
        const bool is_null = bh_json_read_peek(&r->json) == 'n';
        if (i == shape->n || (is_null && f->maybe)) {
            if (!bh_json_read_skip(&r->json))
                return wrong(r, key, "");
            continue;
        }
        r->err->code = BH_OK;
        if (!read_value(r, f, (char *)ret + f->at))
            return r->err->code ? false : wrong(r, key, "is of another kind");
        seen |= UINT64_C(1) << i;
    }
    if (r->json.wrong)
        return wrong(r, "it", "");
    for (size_t i = 0; i < shape->n; i++)
        if (!shape->fields[i].maybe && !(seen >> i & 1))
            return wrong(r, shape->fields[i].name, "is missing");
    return true;
}

int bh_answer_read(struct bh_arena *arena, const char *text, size_t n, const struct bh_answer_shape *shape,
                   void *ret, struct bh_err *err)
{
    struct bh_err own = {0};
    struct reading r = {.arena = arena, .err = err ? err : &own};
    memset(ret, 0, shape->size);
    bh_json_read_init(&r.json, text, n);
    if (!read_object(&r, shape, ret))
        return BH_SYSTEM;
    if (!bh_json_read_end(&r.json)) {
        (void)wrong(&r, "it", "");
        return BH_SYSTEM;
    }
    return BH_OK;
}

/* ---- shapes: T is the struct that a shape fills ---- */

#define TEXT(m)         {#m, offsetof(T, m), BH_ANSWER_TEXT, false, NULL}
#define MAYBE_TEXT(m)   {#m, offsetof(T, m), BH_ANSWER_TEXT, true, NULL}
#define U64(m)          {#m, offsetof(T, m), BH_ANSWER_U64, false, NULL}
#define MAYBE_U64(m)    {#m, offsetof(T, m), BH_ANSWER_U64, true, NULL}
#define BOOL(m)         {#m, offsetof(T, m), BH_ANSWER_BOOL, false, NULL}
#define TEXTS(m)        {#m, offsetof(T, m), BH_ANSWER_TEXTS, false, NULL}
#define ONE(m, s)       {#m, offsetof(T, m), BH_ANSWER_ONE, false, &(s)}
#define MAYBE_ONE(m, s) {#m, offsetof(T, m), BH_ANSWER_ONE, true, &(s)}
#define MANY(m, s)      {#m, offsetof(T, m), BH_ANSWER_MANY, false, &(s)}
/* Of a daemon that is older: none. */
#define MAYBE_MANY(m, s) {#m, offsetof(T, m), BH_ANSWER_MANY, true, &(s)}
#define SHAPE(name, ...)                                                 \
    static const struct bh_answer_field name##_fields[] = {__VA_ARGS__}; \
    const struct bh_answer_shape name##_shape = {name##_fields, BH_COUNT_OF(name##_fields), sizeof(T)}
#define LOCAL_SHAPE(name, ...)                                           \
    static const struct bh_answer_field name##_fields[] = {__VA_ARGS__}; \
    static const struct bh_answer_shape name##_shape = {name##_fields, BH_COUNT_OF(name##_fields), sizeof(T)}

#define T struct bh_a_use
LOCAL_SHAPE(bh_a_use, TEXT(tenant), MAYBE_TEXT(class), MAYBE_U64(quota_milli), MAYBE_U64(max_milli),
            U64(waiting), U64(running), U64(leases), U64(milli), U64(memory_mib));
#undef T

#define T struct bh_a_others
LOCAL_SHAPE(bh_a_others, U64(tenants), U64(waiting), U64(running), U64(leases), U64(milli), U64(memory_mib));
#undef T

#define T struct bh_a_grant
LOCAL_SHAPE(bh_a_grant, TEXT(role), MAYBE_TEXT(tenant));
#undef T

#define T struct bh_a_you
LOCAL_SHAPE(bh_a_you, TEXT(principal), MANY(roles, bh_a_grant_shape));
#undef T

#define T struct bh_a_status
SHAPE(bh_a_status, TEXT(node), TEXT(version), MAYBE_TEXT(driver), TEXT(health), BOOL(simulated), U64(now_ms),
      U64(started_ms), U64(policy_version), U64(gpus), MANY(tenants, bh_a_use_shape),
      MAYBE_ONE(others, bh_a_others_shape), ONE(you, bh_a_you_shape));
#undef T

#define T struct bh_a_tenants
SHAPE(bh_a_tenants, MANY(tenants, bh_a_use_shape), MAYBE_ONE(others, bh_a_others_shape));
#undef T

#define T struct bh_a_quota
LOCAL_SHAPE(bh_a_quota, TEXT(tenant), MAYBE_TEXT(model), MAYBE_U64(guaranteed_milli), MAYBE_U64(max_milli),
            U64(weight), U64(used_milli), U64(borrowed_milli), U64(waiting_jobs), BOOL(may_borrow));
#undef T

#define T struct bh_a_quotas
SHAPE(bh_a_quotas, MANY(quotas, bh_a_quota_shape));
#undef T

#define T struct bh_a_pool
LOCAL_SHAPE(bh_a_pool, TEXT(pool), TEXT(mechanism), TEXT(tier), BOOL(shared));
#undef T

#define T struct bh_a_tenant
SHAPE(bh_a_tenant, ONE(use, bh_a_use_shape), ONE(quota, bh_a_quota_shape), TEXT(trust), MAYBE_TEXT(domain),
      MAYBE_TEXT(cost_center), MANY(pools, bh_a_pool_shape));
#undef T

#define T struct bh_a_check
LOCAL_SHAPE(bh_a_check, TEXT(layer), TEXT(state), TEXT(sentence), MAYBE_TEXT(mend));
#undef T

#define T struct bh_a_doctor
SHAPE(bh_a_doctor, TEXT(health), MANY(checks, bh_a_check_shape));
#undef T

#define T struct bh_a_slice
LOCAL_SHAPE(bh_a_slice, TEXT(kind), MAYBE_TEXT(key), TEXT(state), MAYBE_TEXT(lease), MAYBE_TEXT(tenant),
            MAYBE_TEXT(why), U64(milli), U64(memory_mib), U64(since_ms));
#undef T

#define T struct bh_a_gpu_others
LOCAL_SHAPE(bh_a_gpu_others, U64(slices), U64(milli), U64(memory_mib));
#undef T

#define T struct bh_a_gpu
SHAPE(bh_a_gpu, U64(index), U64(memory_mib), MAYBE_U64(used_mib), MAYBE_U64(util_percent),
      MAYBE_U64(temperature_c), MAYBE_U64(power_mw), MAYBE_TEXT(uuid), MAYBE_TEXT(model), MAYBE_TEXT(pci),
      MAYBE_TEXT(pool), TEXT(state), MAYBE_TEXT(reason), MAYBE_TEXT(health), MAYBE_TEXT(layout),
      MAYBE_TEXT(vbios), MAYBE_TEXT(gsp), MAYBE_TEXT(inforom), MANY(slices, bh_a_slice_shape),
      MAYBE_ONE(others, bh_a_gpu_others_shape));
#undef T

#define T struct bh_a_switch
LOCAL_SHAPE(bh_a_switch, TEXT(pci), MAYBE_TEXT(firmware));
#undef T

#define T struct bh_a_gpus
SHAPE(bh_a_gpus, MANY(gpus, bh_a_gpu_shape), MAYBE_MANY(switches, bh_a_switch_shape), MAYBE_U64(others));
#undef T

#define T struct bh_a_live
LOCAL_SHAPE(bh_a_live, TEXT(state), U64(compute_ppm), U64(memory_mib), U64(refused));
#undef T

#define T struct bh_a_lease
LOCAL_SHAPE(bh_a_lease, TEXT(id), TEXT(job), TEXT(tenant), TEXT(user), MAYBE_TEXT(pool), TEXT(state),
            MAYBE_TEXT(cause), MAYBE_TEXT(why), TEXT(mechanism), MAYBE_TEXT(stack), TEXT(tier), BOOL(paused),
            U64(created_ms), U64(state_ms), MAYBE_U64(until_ms), MAYBE_ONE(live, bh_a_live_shape));
#undef T

#define T struct bh_a_leases
SHAPE(bh_a_leases, MANY(leases, bh_a_lease_shape), MAYBE_TEXT(next), MAYBE_U64(others));
#undef T

#define T struct bh_a_granted
LOCAL_SHAPE(bh_a_granted, TEXT(gpu), TEXT(kind), MAYBE_TEXT(key), U64(milli), U64(memory_mib),
            BOOL(proved_clean));
#undef T

#define T struct bh_a_step
LOCAL_SHAPE(bh_a_step, U64(at_ms), MAYBE_TEXT(from), TEXT(to), MAYBE_TEXT(cause), MAYBE_TEXT(why));
#undef T

#define T struct bh_a_scrub
LOCAL_SHAPE(bh_a_scrub, U64(at_ms), U64(probed_bytes), U64(total_bytes), TEXT(gpu), TEXT(verdict),
            MAYBE_TEXT(method), MAYBE_TEXT(words));
#undef T

#define T struct bh_a_lease_detail
SHAPE(bh_a_lease_detail, ONE(lease, bh_a_lease_shape), MAYBE_TEXT(stays_shared),
      MANY(slices, bh_a_granted_shape), MANY(history, bh_a_step_shape), MANY(scrubs, bh_a_scrub_shape));
#undef T

#define T struct bh_a_job
LOCAL_SHAPE(bh_a_job, TEXT(id), TEXT(tenant), TEXT(user), MAYBE_TEXT(name), MAYBE_TEXT(pool), TEXT(state),
            MAYBE_TEXT(why), MAYBE_TEXT(end), MAYBE_TEXT(profile), TEXT(tier), TEXT(priority),
            MAYBE_U64(status), MAYBE_U64(signal), U64(gpus), U64(milli), U64(memory_mib),
            MAYBE_U64(duration_ms), MAYBE_U64(deadline_ms), U64(submit_ms), U64(state_ms), BOOL(can_pause),
            BOOL(can_suspend), BOOL(can_requeue), BOOL(firm));
#undef T

#define T struct bh_a_jobs
SHAPE(bh_a_jobs, MANY(jobs, bh_a_job_shape), MAYBE_TEXT(next), MAYBE_U64(others));
#undef T

#define T struct bh_a_job_detail
SHAPE(bh_a_job_detail, ONE(job, bh_a_job_shape), TEXTS(argv), MAYBE_TEXT(cwd), MAYBE_TEXT(image),
      MANY(leases, bh_a_lease_shape));
#undef T

#define T struct bh_a_holder
LOCAL_SHAPE(bh_a_holder, TEXT(job), TEXT(tenant), U64(milli), MAYBE_U64(end_ms));
#undef T

#define T struct bh_a_why_others
LOCAL_SHAPE(bh_a_why_others, U64(jobs), U64(milli));
#undef T

#define T struct bh_a_remedy
LOCAL_SHAPE(bh_a_remedy, TEXT(kind), TEXT(sentence), MAYBE_TEXT(tenant), BOOL(touches_others), U64(milli),
            MAYBE_U64(at_ms));
#undef T

#define T struct bh_a_why
SHAPE(bh_a_why, MAYBE_TEXT(tier), MAYBE_TEXT(sentence), BOOL(starts), U64(need_milli), U64(free_milli),
      U64(ahead), MAYBE_U64(until_ms), MANY(holders, bh_a_holder_shape), ONE(others, bh_a_why_others_shape),
      MANY(remedies, bh_a_remedy_shape));
#undef T

#define T struct bh_a_policy
SHAPE(bh_a_policy, U64(version), U64(at_ms), TEXT(sha256), MAYBE_TEXT(who), MAYBE_TEXT(why), TEXT(text));
#undef T

#define T struct bh_a_change
LOCAL_SHAPE(bh_a_change, MAYBE_TEXT(tenant), TEXT(what), MAYBE_TEXT(before), MAYBE_TEXT(after),
            MAYBE_TEXT(effect));
#undef T

#define T struct bh_a_diff
SHAPE(bh_a_diff, U64(version), U64(errors), MANY(changes, bh_a_change_shape), TEXTS(findings));
#undef T

#define T struct bh_bill_line
LOCAL_SHAPE(bh_a_charge, TEXT(tenant), MAYBE_TEXT(cost_center), MAYBE_TEXT(user), MAYBE_TEXT(gpu),
            TEXT(mechanism), U64(first_ms), U64(milli_ms), U64(mib_ms), U64(lost_milli_ms), U64(leases));
#undef T

#define T struct bh_bill_prices
LOCAL_SHAPE(bh_a_prices, MAYBE_TEXT(currency), U64(gpu_hour_micro), U64(memory_gib_hour_micro));
#undef T

#define T struct bh_a_card_use
LOCAL_SHAPE(bh_a_card_use, TEXT(gpu), U64(index), U64(memory_mib), U64(milli_ms), U64(stranded_milli_ms),
            U64(stranded_mib_ms));
#undef T

#define T struct bh_a_usage
SHAPE(bh_a_usage, U64(from_ms), U64(to_ms), MAYBE_U64(complete_from_ms), MANY(usage, bh_a_charge_shape),
      MAYBE_ONE(prices, bh_a_prices_shape), MANY(cards, bh_a_card_use_shape));
#undef T

#define T struct bh_a_usage_record
LOCAL_SHAPE(bh_a_usage_record, U64(seq), TEXT(tenant), MAYBE_TEXT(cost_center), TEXT(user), TEXT(job),
            TEXT(lease), TEXT(gpu), TEXT(kind), MAYBE_TEXT(key), TEXT(mechanism), U64(milli), U64(mib),
            U64(from_ms), MAYBE_U64(to_ms), BOOL(lost));
#undef T

#define T struct bh_a_usage_records
SHAPE(bh_a_usage_records, MANY(records, bh_a_usage_record_shape), MAYBE_U64(next));
#undef T

#define T struct bh_a_record
LOCAL_SHAPE(bh_a_record, U64(at_ms), TEXT(event), TEXT(outcome), MAYBE_TEXT(who), MAYBE_TEXT(object_id),
            MAYBE_TEXT(reason));
#undef T

#define T struct bh_a_records
SHAPE(bh_a_records, MANY(records, bh_a_record_shape));
#undef T

#define T struct bh_a_token
LOCAL_SHAPE(bh_a_token, TEXT(id), TEXT(subject), TEXT(role), MAYBE_TEXT(tenant), U64(created_ms),
            MAYBE_U64(expires_ms), MAYBE_U64(revoked_ms));
#undef T

#define T struct bh_a_tokens
SHAPE(bh_a_tokens, MANY(tokens, bh_a_token_shape));
#undef T

#define T struct bh_a_made
SHAPE(bh_a_made, MAYBE_TEXT(id));
#undef T

#define T struct bh_a_token_made
SHAPE(bh_a_token_made, TEXT(id), TEXT(token));
#undef T

#define T struct bh_a_applied
SHAPE(bh_a_applied, U64(version));
#undef T
