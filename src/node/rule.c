/* SPDX-License-Identifier: Apache-2.0 */
/* rule.c - from the text of a policy to what the daemon decides by. */
#include "node/rule.h"

#include "base/str.h"
#include "conf/input.h"
#include "core/policy/report.h"
#include "node/note.h"
#include "store/state_policy.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

enum { DAY_MS = 86400 * 1000, MIB_SHIFT = 20 };

/* What this daemon can set up today. What is missing is refused with words rather than promised. */
enum {
    EXCLUSIVE = 1u << BH_MECH_WHOLE | 1u << BH_MECH_MIG,
    SHARED = 1u << BH_MECH_TIMESLICE | 1u << BH_MECH_GATE | 1u << BH_MECH_FRACTIONAL,
};

void bh_rule_fini(struct bh_rule_book *b)
{
    if (b->memo)
        bh_memo_fini(b->memo);
    free(b->memo);
    bh_admit_free(b->admit);
    if (b->policy)
        bh_policy_fini(b->policy);
    free(b->policy);
    *b = (struct bh_rule_book){0};
}

static void say(struct bh_api_diff *to, const char *sentence)
{
    *bh_vec_push(&to->findings) = sentence;
    to->errors++;
}

static void say_diags(struct bh_diags *d, struct bh_arena *arena, struct bh_api_diff *to)
{
    bh_diags_sort(d);
    for (size_t i = 0; i < d->at.n; i++)
        if (d->at.at[i].is_error)
            say(to, bh_arena_printf(arena, "line %u, column %u: %s", d->at.at[i].pos.line,
                                    d->at.at[i].pos.column, d->at.at[i].message));
}

static void say_report(const struct bh_report *r, struct bh_arena *arena, struct bh_api_diff *to)
{
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct bh_finding *f = &r->findings.at[i];
        if (f->rule->severity == BH_SEV_ERROR && !f->waived)
            say(to, bh_arena_printf(arena, "%s, line %u, %s: %s %s", f->rule->id, f->pos.line, f->subject,
                                    f->message, f->fix ? f->fix : ""));
    }
}

int bh_rule_read(const struct bh_daemon *d, const char *text, size_t n, struct bh_arena *arena,
                 struct bh_rule_book *ret, struct bh_api_diff *ret_findings, struct bh_err *err)
{
    const struct bh_fleet *fleet = bh_silicon_fleet(&d->silicon);
    const struct bh_admit_config config = {.today = (int32_t)(d->last_ms / DAY_MS),
                                           .tiers = 1u << BH_TIER_PROCESS |
                                                    (d->tier.runtime ? 1u << BH_TIER_CONTAINER : 0u),
                                           .mechanisms = EXCLUSIVE | (d->shares ? SHARED : 0u) |
                                                         (d->shares && *d->mps ? 1u << BH_MECH_MPS : 0u)};
    struct bh_diags diags = {0};
    struct bh_report report = {0};
    int rc = BH_OK;
    *ret = (struct bh_rule_book){0};
    ret->policy = bh_alloc(1, sizeof(*ret->policy));
    bh_policy_load_text(ret->policy, text, n, fleet, &diags);
    say_diags(&diags, arena, ret_findings);
    bh_diags_fini(&diags);
    if (ret_findings->errors == 0) {
        bh_lint(ret->policy, fleet, config.today, &report);
        say_report(&report, arena, ret_findings);
        bh_report_fini(&report);
    }
    if (ret_findings->errors)
        rc = bh_fail(err, BH_REFUSED, "the policy has %llu mistakes; the first: %s",
                     (unsigned long long)ret_findings->errors, ret_findings->findings.at[0]);
    else
        rc = bh_admit_new(ret->policy, fleet, &config, d->book.admit, &ret->admit, err);
    if (rc < 0)
        bh_rule_fini(ret);
    return rc;
}

int bh_rule_load(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_policy row;
    struct bh_rule_book book;
    struct bh_api_diff findings = {0};
    int rc = bh_store_policy_get(d->store, &arena, 0, &row, err);
    if (rc == BH_OK)
        rc = bh_rule_read(d, row.text, row.n, &arena, &book, &findings, err);
    else if (rc == BH_NOT_FOUND) {
        bh_arena_fini(&arena);
        return BH_OK;
    }
    if (rc == BH_OK) {
        bh_rule_fini(&d->book);
        d->book = book;
        d->book.version = row.id;
    }
    bh_vec_fini(&findings.findings);
    bh_arena_fini(&arena);
    return rc;
}

static int note_change(struct bh_daemon *d, const struct bh_store_policy *row, uint64_t from, uint64_t to,
                       struct bh_err *err)
{
    char after[24], before[24];
    (void)snprintf(after, sizeof(after), "%llu", (unsigned long long)to);
    (void)snprintf(before, sizeof(before), "%llu", (unsigned long long)from);
    const struct bh_audit_event event = {.event = BH_AUDIT_POLICY_CHANGE,
                                         .sub = row->who,
                                         .object_type = "policy",
                                         .object_id = after,
                                         .before = before,
                                         .after = after,
                                         .reason = *row->why ? row->why : NULL};
    return bh_audit_append(d->audit, &event, err);
}

int bh_rule_store(struct bh_daemon *d, const char *who, const char *reason, const char *text, size_t n,
                  uint64_t *ret_version, struct bh_err *err)
{
    struct bh_store_policy row = {
        .text = text, .n = n, .who = who, .why = reason ? reason : "", .at_ms = bh_daemon_now(d)};
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, n, row.sha256) < 0)
        return bh_fail(err, BH_SYSTEM, "SHA-256 is not to be had");
    /* As the store has it: at the start none is in force yet, and what is on disk was. */
    struct bh_arena arena = {0};
    struct bh_store_policy old = {0};
    int rc = bh_store_policy_get(d->store, &arena, 0, &old, err);
    const bool had = rc == BH_OK;
    if (had || rc == BH_NOT_FOUND)
        rc = bh_store_policy_apply(d->store, &row, ret_version, err);
    if (rc == BH_OK)
        rc = note_change(d, &row, old.id, *ret_version, err);
    if (rc == BH_OK)
        rc = bh_note_policy(d, who, had ? &old : NULL, text, n, err);
    bh_arena_fini(&arena);
    return rc;
}

/* ---- what would change ---- */

static const char *amount(struct bh_arena *a, uint64_t v)
{
    return v == UINT64_MAX ? "no bound" : bh_arena_printf(a, "%llu", (unsigned long long)v);
}

static void diff_row(const struct bh_admit_change *c, struct bh_arena *a, struct bh_api_diff *ret)
{
    struct bh_api_diff_row *row = bh_vec_push(&ret->rows);
    *row = (struct bh_api_diff_row){.tenant = c->tenant ? bh_arena_str(a, c->tenant) : NULL,
                                    .what = bh_admit_change_str((enum bh_admit_change_kind)c->kind)};
    if (c->field)
        row->what = bh_arena_printf(a, "%s %s", row->what, c->field);
    if (c->pool)
        row->what = bh_arena_printf(a, "%s of pool %s", row->what, c->pool);
    row->before = c->from_text ? bh_arena_str(a, c->from_text) : amount(a, c->from);
    row->after = c->to_text ? bh_arena_str(a, c->to_text) : amount(a, c->to);
    if (c->kind == BH_CHANGED_WORK)
        row->effect = bh_arena_printf(a, "J%llu would not be admitted any more: %s",
                                      (unsigned long long)c->job, c->why.what);
    else if (c->worse)
        row->effect = "less than before";
}

struct bh_admit_ask bh_rule_ask(const struct bh_store_job *job)
{
    return (struct bh_admit_ask){.id = job->id,
                                 .name = *job->name ? job->name : NULL,
                                 .tenant = job->tenant,
                                 .pool = *job->pool ? job->pool : NULL,
                                 .user = job->uid,
                                 .gpus = job->gpus,
                                 .share_milli = job->milli == BH_GPU_MILLI ? 0 : job->milli,
                                 .memory_bytes = (uint64_t)job->memory_mib << MIB_SHIFT,
                                 .profile = *job->profile ? job->profile : NULL,
                                 .has_tier = true,
                                 .tier = job->tier,
                                 .has_priority = true,
                                 .priority = job->priority,
                                 .can = job->can,
                                 .submit_ms = job->submit_ms,
                                 .duration_ms = job->duration_ms,
                                 .deadline_ms = job->deadline_ms,
                                 .runs = job->state == BH_JOB_RUNNING,
                                 .gang = job->gpus > 1,
                                 .image = *job->image ? job->image : NULL};
}

int bh_rule_diff(const struct bh_daemon *d, const struct bh_rule_book *to, struct bh_arena *arena,
                 struct bh_api_diff *ret, struct bh_err *err)
{
    const struct bh_store_job_filter filter = {.states = 1u << BH_JOB_WAITING | 1u << BH_JOB_RUNNING,
                                               .brief = true};
    const struct bh_store_page page = {.limit = BH_STORE_PAGE_MAX};
    bh_store_jobs jobs = {0};
    BH_VEC(struct bh_admit_ask) live = {0};
    bh_admit_changes changes = {0};
    int rc = bh_store_jobs_list(d->store, arena, &filter, &page, &jobs, err);
    for (size_t i = 0; rc == BH_OK && i < jobs.n; i++)
        *bh_vec_push(&live) = bh_rule_ask(&jobs.at[i]);
    ret->version = d->book.version;
    if (rc == BH_OK && d->book.admit)
        bh_admit_diff(d->book.admit, to->admit, live.at, live.n, &changes);
    for (size_t i = 0; i < changes.n; i++)
        diff_row(&changes.at[i], arena, ret);
    for (size_t i = 0; rc == BH_OK && !d->book.admit && i < to->policy->tenants.n; i++)
        *bh_vec_push(&ret->rows) =
            (struct bh_api_diff_row){.tenant = bh_arena_str(arena, to->policy->tenants.at[i].name),
                                     .what = bh_admit_change_str(BH_CHANGED_TENANT_ADDED)};
    bh_vec_fini(&changes);
    bh_vec_fini(&live);
    bh_vec_fini(&jobs);
    return rc;
}

bool bh_rule_judge(struct bh_rule_book *b, const struct bh_admit_ask *ask, struct bh_gang_spec *ret_job,
                   struct bh_terms *ret, struct bh_admit_grant *ret_grant, struct bh_admit_refusal *why)
{
    if (!b->memo) {
        b->memo = bh_alloc(1, sizeof(*b->memo));
        bh_memo_init(b->memo, b->admit, b->policy);
    }
    if (!bh_memo_judge(b->memo, ask, ret_grant, why))
        return false;
    *ret_job = ret_grant->job;
    *ret = (struct bh_terms){.request = ret_grant->job.roles[0].request,
                             .members = ret_grant->job.roles[0].min,
                             .cap_bytes = ret_grant->cap_bytes,
                             .weight = ret_grant->weight,
                             .cap_permille = ret_grant->cap_permille,
                             .floor_permille = ret_grant->floor_permille,
                             .latency = (uint8_t)ret_grant->latency,
                             .view = ret_grant->view,
                             .mechanism = ret_grant->mechanism,
                             .tier = ret_grant->tier};
    return true;
}

bool bh_terms_same(const struct bh_terms *a, const struct bh_terms *b)
{
    const struct bh_request *p = &a->request, *q = &b->request;
    return p->form == q->form && p->n_gpus == q->n_gpus && p->mig_profile == q->mig_profile &&
           p->gpu_milli == q->gpu_milli && p->gpu_mib == q->gpu_mib && a->members == b->members &&
           a->cap_bytes == b->cap_bytes && a->weight == b->weight && a->cap_permille == b->cap_permille &&
           a->floor_permille == b->floor_permille && a->latency == b->latency && a->view == b->view &&
           a->mechanism == b->mechanism && a->tier == b->tier;
}
