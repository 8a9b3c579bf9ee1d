/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_map.c - a Slurm cluster's GPU settings as tenants, pools and what a job can reach.
 *
 * slurm.conf names no tenants (accounts live in the accounting database), so there is one,
 * `slurm-users`: whoever may submit. It has a quota only where limits are enforced and GPUs
 * are counted; the amounts are in the database, so the quota's resources say which names
 * can be bounded, with an amount of 0. Without ConstrainDevices in cgroup.conf a job can open any GPU of
 * its node, which is put before the rules as a job that does; without a cgroup.conf nobody knows.
 *
 * Each GRES name and type is a pool: gpu a whole device (or a MIG slice), shard a share of one
 * without any limit, mps a share whose thread percentage Slurm sets and whose memory it does not.
 */
#include "conf/slurm_cluster.h"

#include "base/str.h"

static const char tenant_name[] = "slurm-users";

static struct bh_pos first_of(const struct bh_slurm *s, enum bh_slurm_kind kind)
{
    for (size_t i = 0; i < s->files.n; i++)
        if (s->files.at[i].kind == kind)
            return s->files.at[i].first;
    return (struct bh_pos){0};
}

/* The first line of slurm.conf, or of whatever there is. */
static struct bh_pos first_line(const struct bh_slurm *s)
{
    struct bh_pos pos = first_of(s, BH_SLURM_CONF);
    return pos.line ? pos : s->files.at[0].first;
}

/* ---- the tenant ---- */

static void set_model(const struct bh_slurm *s, bool limited, struct bh_quota *q)
{
    const struct bh_slurm_pair *priority = bh_slurm_global(s, "prioritytype");
    const struct bh_slurm_pair *fair = bh_slurm_global(s, "priorityweightfairshare");
    const struct bh_slurm_pair *preempt = bh_slurm_global(s, "preempttype");
    q->has_model = true;
    if (limited)
        q->model = BH_QUOTA_HARD;
    else if (bh_slurm_has(priority, "priority/multifactor") && fair && strcmp(fair->value, "0") != 0)
        q->model = BH_QUOTA_FAIRSHARE;
    else if (preempt && !bh_slurm_has(preempt, "preempt/none"))
        q->model = BH_QUOTA_PRIORITY;
    else
        q->has_model = false;
}

static void read_quota(struct bh_slurm *s, struct bh_quota *q)
{
    const struct bh_slurm_pair *enforce = bh_slurm_global(s, "accountingstorageenforce");
    const struct bh_slurm_pair *tres = bh_slurm_global(s, "accountingstoragetres");
    bool limited =
        bh_slurm_has(enforce, "limits") || bh_slurm_has(enforce, "safe") || bh_slurm_has(enforce, "all");

    set_model(s, limited, q);
    if (!limited || !bh_slurm_has(tres, "gres/gpu"))
        return;
    q->pos = enforce->pos;
    static const char *const names[] = {"gres/gpu", "gres/shard", "gres/mps"};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++)
        if (bh_slurm_has(tres, names[i]))
            *bh_vec_push(&q->resources) = (struct bh_amount){names[i], 0, tres->pos};
}

static void add_tenant(struct bh_slurm *s)
{
    const struct bh_slurm_pair *types = bh_slurm_global(s, "grestypes");
    struct bh_tenant *t = bh_policy_add_tenant(s->p);
    t->source = BH_SOURCE_SLURM;
    t->name = tenant_name;
    t->domain = "internal";
    t->trust = BH_TRUST_INTERNAL;
    t->class_name = NULL;
    t->object = "slurm.conf";
    t->pos = types ? types->pos : first_line(s);
    read_quota(s, &t->quota);
}

/* ---- pools ---- */

/* How many shards (or MPS shares) one GPU is cut into. 0: the files do not say. */
static uint64_t per_gpu(const struct bh_slurm *s, const char *name)
{
    const struct bh_slurm_gres *node = NULL;
    uint64_t gpus = 0, parts = 0;
    for (size_t i = 0; i < s->lines.n; i++)
        if (s->lines.at[i].files && s->lines.at[i].count && strcmp(s->lines.at[i].name, name) == 0)
            return s->lines.at[i].count / s->lines.at[i].files;
    /* spread over the GPUs of its node; the first node that has any stands for all */
    for (size_t i = 0; i < s->nodes.n && !node; i++)
        node = strcmp(s->nodes.at[i].name, name) == 0 ? &s->nodes.at[i] : NULL;
    for (size_t i = 0; i < s->nodes.n && node; i++) {
        const struct bh_slurm_gres *n = &s->nodes.at[i];
        if (n->pos.file != node->pos.file || n->pos.line != node->pos.line)
            continue;
        gpus += strcmp(n->name, "gpu") == 0 ? n->count : 0;
        parts += strcmp(n->name, name) == 0 ? n->count : 0;
    }
    return gpus ? parts / gpus : 0;
}

struct pools {
    struct bh_map seen;   /* pool names */
    uint64_t shards, mps; /* of one GPU */
};

static void set_mechanism(struct bh_slurm *s, const struct pools *all, const struct bh_slurm_gres *g,
                          struct bh_pool *pool)
{
    if (strcmp(g->name, "gpu") == 0) {
        pool->mechanism = g->mig ? BH_MECH_MIG : BH_MECH_WHOLE;
        if (g->profile)
            *bh_vec_push(&pool->profiles) = (struct bh_text){bh_arena_str(&s->p->arena, g->profile), g->pos};
        if (g->model) {
            pool->match.model = (struct bh_text){bh_arena_str(&s->p->arena, g->model), g->pos};
            pool->match.pos = g->pos;
        }
        return;
    }
    bool mps = strcmp(g->name, "mps") == 0;
    pool->mechanism = mps ? BH_MECH_MPS : BH_MECH_TIMESLICE;
    pool->replicas = (uint32_t)(mps ? all->mps : all->shards);
    if (mps) {
        /* what a job of one share gets; one that asks for more gets as many times that */
        pool->cap_compute_ppm = pool->replicas ? 1000000 / pool->replicas : 1000000;
        pool->cap_compute_ppm += pool->cap_compute_ppm == 0;
        pool->caps_pos = g->pos;
    }
}

static void add_pool(struct bh_slurm *s, struct pools *all, const struct bh_slurm_gres *g, const char *object)
{
    const char *name = g->type ? bh_arena_printf(&s->p->arena, "%s:%.200s", g->name, g->type)
                               : bh_arena_str(&s->p->arena, g->name);
    if (bh_map_add(&all->seen, name, 0) != BH_MAP_NONE)
        return;
    struct bh_pool *pool = bh_policy_add_pool(s->p);
    pool->source = BH_SOURCE_SLURM;
    pool->pos = pool->mechanism_pos = pool->resource_pos = g->pos;
    pool->name = name;
    pool->object = object;
    pool->tier = BH_TIER_PROCESS; /* a job is a process of its user on the node's own kernel */
    pool->any_tenant = true;
    pool->resource = bh_arena_printf(&s->p->arena, "gres/%s", g->name);
    *bh_vec_push(&pool->exposes) = (struct bh_text){pool->resource, g->pos};
    set_mechanism(s, all, g, pool);
}

/* A line of gres.conf knows more than the count in slurm.conf, so it is the one that names the pool. */
static void add_pools(struct bh_slurm *s)
{
    struct pools all = {.shards = per_gpu(s, "shard"), .mps = per_gpu(s, "mps")};
    struct bh_map names = {0};
    for (size_t i = 0; i < s->lines.n; i++) {
        add_pool(s, &all, &s->lines.at[i], "gres.conf");
        bh_map_add(&names, s->lines.at[i].name, 0);
    }
    for (size_t i = 0; i < s->nodes.n; i++)
        if (bh_map_find(&names, s->nodes.at[i].name) == BH_MAP_NONE)
            add_pool(s, &all, &s->nodes.at[i], "slurm.conf");
    bh_map_fini(&all.seen);
    bh_map_fini(&names);
}

/* ---- what a job can reach ---- */

static void add_job(struct bh_slurm *s, struct bh_pos pos, const char *object)
{
    struct bh_workload *w = bh_policy_add_workload(s->p);
    w->source = BH_SOURCE_SLURM;
    w->pos = pos;
    w->name = "any-job";
    w->object = object;
    w->tenant_name = (struct bh_text){tenant_name, pos};
    w->gang = true; /* a job starts with all of its devices or not at all */
    w->checkpointable = BH_FACT_UNKNOWN;
    *bh_vec_push(&w->devices) = (struct bh_text){"/dev/nvidia*", pos};
}

static void read_constraint(struct bh_slurm *s)
{
    const struct bh_slurm_pair *constrain = bh_slurm_global(s, "constraindevices");
    const struct bh_slurm_pair *task = bh_slurm_global(s, "taskplugin");
    struct bh_pos cgroup = first_of(s, BH_SLURM_CGROUP);

    if (!constrain && !cgroup.line) {
        bh_diag_note(s->d, first_line(s),
                     "cgroup.conf was not given: whether jobs can open other jobs' GPUs was not checked");
    } else if (!constrain) {
        add_job(s, cgroup, "cgroup.conf");
    } else if (!bh_str_eq_nocase(constrain->value, "yes")) {
        add_job(s, constrain->pos, "cgroup.conf");
    } else if (task && !bh_slurm_has(task, "task/cgroup") && !bh_slurm_has(task, "cgroup")) {
        bh_diag_note(s->d, task->pos, "ConstrainDevices holds only with TaskPlugin=task/cgroup");
        add_job(s, task->pos, "slurm.conf");
    }
}

/* ---- the whole ---- */

static void check_settings(struct bh_slurm *s)
{
    const struct bh_slurm_pair *types = bh_slurm_global(s, "grestypes");
    const struct bh_slurm_pair *track = bh_slurm_global(s, "proctracktype");
    const struct bh_slurm_pair *select = bh_slurm_global(s, "selecttype");
    for (size_t i = 0; i < s->nodes.n; i++)
        if (!bh_slurm_has(types, s->nodes.at[i].name))
            bh_diag_note_once(s->d, s->nodes.at[i].pos,
                              "GRES `%s` is not among the GresTypes, so Slurm does not "
                              "schedule it",
                              s->nodes.at[i].name);
    if (track && !bh_slurm_has(track, "proctrack/cgroup"))
        bh_diag_note(s->d, track->pos, "with %.60s a job can leave processes behind that still hold a GPU",
                     track->value);
    if (select && bh_slurm_has(select, "select/linear"))
        bh_diag_note(s->d, select->pos, "select/linear gives whole nodes: a job gets every GPU of its node");
}

void bh_slurm_finish(struct bh_slurm *s)
{
    bh_slurm_read_gres(s);
    const struct bh_slurm_pair *types = bh_slurm_global(s, "grestypes");
    bool gpus = s->lines.n || s->nodes.n || bh_slurm_has(types, "gpu") || bh_slurm_has(types, "shard") ||
                bh_slurm_has(types, "mps");
    if (!gpus || !s->files.n)
        return;
    add_tenant(s);
    add_pools(s);
    read_constraint(s);
    check_settings(s);
    bh_slurm_check_counts(s);
}
