/* SPDX-License-Identifier: Apache-2.0 */
/* handle_jobs.c - jobs: the list, one with its attempts, submitting and cancelling. */
#include "api/pager.h"

#include "base/str.h"
#include "core/sched/job.h"

#include <pwd.h>

enum { NAME_BUF = 16384 };

static void ending_json(struct bh_json *j, const struct bh_store_job *b)
{
    const bool exited = b->end == BH_JOB_END_EXITED, killed = b->end == BH_JOB_END_KILLED;
    bh_json_key_str(j, "end", b->end == BH_JOB_END_NONE ? NULL : bh_job_end_str(b->end));
    bh_json_key(j, "status");
    if (exited)
        bh_json_i64(j, b->status);
    else
        bh_json_str(j, NULL);
    bh_json_key(j, "signal");
    if (killed)
        bh_json_i64(j, b->signal);
    else
        bh_json_str(j, NULL);
}

/* Of one that waits what it waits for now; of others how they came into their state. */
static const char *why_of(const struct bh_api_core *core, const struct bh_store_job *b)
{
    const char *now = b->state == BH_JOB_WAITING ? core->ops->waits(core->ops->self, b->id) : NULL;
    return now ? now : b->why;
}

static void job_json(struct bh_json *j, const struct bh_api_core *core, const struct bh_store_job *b)
{
    bh_json_open(j, '{');
    bh_api_key_id(j, "id", 'J', b->id);
    bh_json_key_str(j, "tenant", b->tenant);
    bh_json_key_str(j, "user", b->user);
    bh_api_key_text(j, "name", b->name);
    bh_api_key_text(j, "pool", b->pool);
    bh_json_key_str(j, "state", bh_job_state_str(b->state));
    bh_api_key_text(j, "why", why_of(core, b));
    ending_json(j, b);
    bh_json_key_u64(j, "gpus", b->gpus);
    bh_json_key_u64(j, "milli", b->milli);
    bh_json_key_u64(j, "memory_mib", b->memory_mib);
    bh_api_key_text(j, "profile", b->profile);
    bh_json_key_str(j, "tier", bh_word(tier, b->tier));
    bh_json_key_str(j, "priority", bh_word(priority, b->priority));
    bh_json_key_bool(j, "can_pause", b->can & BH_CAN_PAUSE);
    bh_json_key_bool(j, "can_suspend", b->can & BH_CAN_SUSPEND);
    bh_json_key_bool(j, "can_requeue", b->can & BH_CAN_REQUEUE);
    bh_json_key_bool(j, "firm", b->firm);
    bh_json_key_i64(j, "order", b->order);
    bh_api_key_known(j, "duration_ms", b->duration_ms ? b->duration_ms : UINT64_MAX);
    bh_api_key_known(j, "deadline_ms", b->deadline_ms ? b->deadline_ms : UINT64_MAX);
    bh_json_key_u64(j, "submit_ms", b->submit_ms);
    bh_json_key_u64(j, "state_ms", b->state_ms);
    bh_json_close(j, '}');
}

/* ---- the list ---- */

static int count_jobs(struct bh_api_core *core, const void *filter, const char *tenant, uint64_t *ret,
                      struct bh_err *err)
{
    struct bh_store_job_filter f = *(const struct bh_store_job_filter *)filter;
    f.tenant = tenant;
    f.user = NULL; /* whose they are is not said of others */
    return bh_store_jobs_count(core->store, &f, ret, err);
}

static int list_jobs(struct bh_api_core *core, struct bh_api_req *q, const struct bh_store_job_filter *f,
                     struct bh_pager *p, struct bh_err *err)
{
    for (bh_pager_init(p, q); p->more;) {
        bh_store_jobs rows = {0};
        const int rc = bh_store_jobs_list(core->store, &q->arena, f, &p->page, &rows, err);
        bh_pager_got(p, rows.n);
        for (size_t i = 0; rc == 0 && i < rows.n; i++)
            if (bh_pager_shows(p, rows.at[i].id, rows.at[i].tenant))
                job_json(&q->json, core, &rows.at[i]);
        bh_vec_fini(&rows);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* `live`: those that have not ended. */
static int job_states(struct bh_api_req *q, uint32_t *ret)
{
    const struct bh_q_list *in = q->in;
    const int state = in->state ? bh_job_state_find(in->state) : 0;
    if (state < 0)
        return bh_api_refuse(&q->problem, BH_INVALID, "'%.40s' is no state of a job", in->state);
    *ret = in->state ? UINT32_C(1) << state : 0;
    if (!in->live)
        return 0;
    const uint32_t live = UINT32_C(1) << BH_JOB_WAITING | UINT32_C(1) << BH_JOB_RUNNING;
    if (in->state && !(*ret & live))
        return bh_api_refuse(&q->problem, BH_INVALID, "a job that is live has not ended");
    *ret = in->state ? *ret : live;
    return 0;
}

int bh_h_jobs(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_list *in = q->in;
    struct bh_store_job_filter f = {
        .tenant = in->tenant ? in->tenant : bh_api_only_tenant(q), .user = in->user, .brief = true};
    struct bh_pager p;
    uint64_t hidden = 0;
    struct bh_err err;
    int rc = job_states(q, &f.states);
    if (rc < 0)
        return rc;
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "jobs");
    bh_json_open(&q->json, '[');
    rc = list_jobs(core, q, &f, &p, &err);
    if (rc == 0 && !bh_api_sees_all(q))
        rc = bh_pager_hidden(core, q, count_jobs, &f, &hidden, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    bh_pager_close(&p, &q->json, 'J', hidden);
    return 0;
}

/* ---- one ---- */

int bh_h_job_get(struct bh_api_core *core, struct bh_api_req *q, struct bh_store_job *ret)
{
    struct bh_err err;
    uint64_t id;
    if (!bh_api_id_parse(q->param, 'J', &id))
        return bh_api_not_there(q, "job");
    const int rc = bh_store_job_get(core->store, &q->arena, id, ret, &err);
    if (rc < 0 && rc != BH_NOT_FOUND)
        return bh_api_fail(q, rc, &err);
    return rc < 0 || !bh_api_sees(q, ret->tenant) ? bh_api_not_there(q, "job") : 0;
}

/* A command line may carry secrets: it is for its owner and for who runs the tenant or the node. */
static bool may_read_command(const struct bh_api_req *q, const struct bh_store_job *b)
{
    return bh_api_may(&q->caller, BH_ROLE_BIT(OPERATOR) | BH_ROLE_BIT(TENANT_ADMIN), b->tenant) ||
           (bh_api_may(&q->caller, BH_ROLE_BIT(TENANT_USER), b->tenant) &&
            bh_str_eq(b->user, q->caller.user));
}

int bh_h_job(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_store_page page = {.limit = BH_API_LIST_MAX};
    struct bh_json *j = &q->json;
    bh_store_leases leases = {0};
    struct bh_store_job b;
    struct bh_err err;
    int rc = bh_h_job_get(core, q, &b);
    if (rc < 0)
        return rc;
    const struct bh_store_lease_filter f = {.job = b.id};
    rc = bh_store_leases_list(core->store, &q->arena, &f, &page, &leases, &err);
    const bool open = may_read_command(q, &b);
    bh_json_open(j, '{');
    bh_json_key(j, "job");
    job_json(j, core, &b);
    bh_json_key(j, "argv");
    bh_json_open(j, '[');
    for (size_t i = 0; open && b.argv && b.argv[i]; i++)
        bh_json_str(j, b.argv[i]);
    bh_json_close(j, ']');
    bh_api_key_text(j, "cwd", open ? b.cwd : NULL);
    bh_api_key_text(j, "image", b.image);
    bh_json_key(j, "leases");
    bh_json_open(j, '[');
    for (size_t i = 0; rc == 0 && i < leases.n; i++)
        rc = bh_h_lease_json(q, core, &leases.at[i], &err);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
    bh_vec_fini(&leases);
    return rc < 0 ? bh_api_fail(q, rc, &err) : 0;
}

/* ---- commands ---- */

/* As whom it runs: who came over the unix socket, or the account of the token's user. */
static void run_as(const struct bh_api_caller *c, struct bh_api_submit *s)
{
    BH_AUTOFREE char *buf = bh_alloc(1, NAME_BUF);
    struct passwd pw, *found = NULL;
    s->uid = c->uid;
    s->gid = c->gid;
    if (c->token && bh_str_starts(c->principal, "user:") &&
        getpwnam_r(c->user, &pw, buf, NAME_BUF, &found) == 0 && found) {
        s->uid = found->pw_uid;
        s->gid = found->pw_gid;
    }
}

static int check_env(struct bh_api_req *q, const struct bh_api_submit *s)
{
    for (size_t i = 0; i < s->env.n; i++)
        if (s->env.at[i][0] == '=' || !strchr(s->env.at[i], '='))
            return bh_api_refuse(&q->problem, BH_INVALID, "field 'env': item %zu is not NAME=VALUE", i + 1);
    return 0;
}

int bh_h_submit_check(struct bh_api_core *core, struct bh_api_req *q, struct bh_api_submit *s)
{
    const struct bh_policy *p = core->view->policy;
    if (!bh_api_sees(q, s->tenant) || !p || bh_map_find(&p->tenant_by_name, s->tenant) == BH_MAP_NONE)
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is no tenant '%s'", s->tenant);
    int rc = bh_api_check(q, s->tenant, NULL);
    if (rc < 0 || (rc = check_env(q, s)) < 0)
        return rc;
    if (!s->argv.n || !s->argv.at[0][0])
        return bh_api_refuse(&q->problem, BH_INVALID, "field 'argv' names no command");
    if (s->cwd && s->cwd[0] != '/')
        return bh_api_refuse(&q->problem, BH_INVALID, "field 'cwd' is not an absolute path");
    run_as(&q->caller, s);
    return 0;
}

int bh_h_submit(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_api_submit *s = q->in;
    struct bh_err err;
    uint64_t id = 0;
    int rc = bh_h_submit_check(core, q, s);
    if (rc < 0)
        return rc;
    s->key = q->key;
    rc = core->ops->submit(core->ops->self, &q->caller, s, q->ticket, &id, &err);
    return bh_api_command(q, rc, 'J', id, &err);
}

int bh_h_cancel(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_reason *in = q->in;
    struct bh_store_job b;
    struct bh_err err;
    int rc = bh_h_job_get(core, q, &b);
    if (rc < 0 || (rc = bh_api_check(q, b.tenant, b.user)) < 0)
        return rc;
    rc = core->ops->cancel(core->ops->self, &q->caller, b.id, in->reason, q->ticket, &err);
    return bh_api_command(q, rc, 'J', b.id, &err);
}
