/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - the rules, asked about one pool and one piece of work.
 *
 * No rule is written here again. Lint gets a small policy: the pool, its tenants (or only the one who asks), and the ask as a
 * workload. What it says about the pool and its tenants alone is found once; what it says about the work, for each ask.
 * Errors that nobody waived refuse.
 */
#include "core/admit/admit_inside.h"

#include "base/str.h"

/* A policy of one pool. Vectors that are made here are freed here; the rest belongs to the policy. */
struct shadow {
    struct bh_policy policy;
    struct bh_fleet fleet;
    struct bh_pool pool;
    struct bh_workload work;
    struct bh_report report;
    BH_VEC(struct bh_tenant) tenants;
    BH_VEC(uint32_t) tenant_of; /* ours -> the policy's */
    BH_VEC(uint32_t) members;
};

/* Vectors of equal elements are of different types, as a vector's type has no name: they are lent as bytes. */
#define LEND(to, from)                                                              \
    do {                                                                            \
        _Static_assert(sizeof(*(to)->at) == sizeof(*(from)->at), "unlike vectors"); \
        memcpy((to), (from), sizeof(*(to)));                                        \
    } while (0)

static const struct bh_part *part_of(const struct bh_admit *a, const struct bh_gpu_ref *g)
{
    return &a->parts.at[a->part_of[a->first_gpu[g->node] + g->gpu]];
}

/* The fabric that has most of the pool's GPUs; NULL: none is known. */
static const char *main_fabric(const struct bh_admit *a, const struct bh_pool *p)
{
    struct bh_map index = {0};
    BH_VEC(uint32_t) sizes = {0};
    const char *most = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < p->gpus.n; i++) {
        const char *fabric = part_of(a, &p->gpus.at[i])->fabric;
        uint32_t at = fabric ? bh_map_add(&index, fabric, (uint32_t)sizes.n) : 0;
        if (!fabric)
            continue;
        if (at == BH_MAP_NONE) {
            at = (uint32_t)sizes.n;
            *bh_vec_push(&sizes) = 0;
        }
        if (++sizes.at[at] > n) {
            n = sizes.at[at];
            most = fabric;
        }
    }
    bh_map_fini(&index);
    bh_vec_fini(&sizes);
    return most;
}

/* GPUs come machine by machine, so that the last one is nearly always the one. */
static uint32_t sample_machine(struct bh_admit_pool *to, const struct bh_fleet_node *n)
{
    for (size_t i = to->sample.n; i-- > 0;)
        if (bh_str_eq(to->sample.at[i].name, n->name))
            return (uint32_t)i;
    *bh_vec_push(&to->sample_nodes) = (uint32_t)to->sample.n;
    *bh_vec_push(&to->sample) = *n;
    return (uint32_t)to->sample.n - 1;
}

/*
 * What a rule about work asks of a fleet: which models the pool has, how many GPUs its largest fabric has, and whether one
 * is in no known fabric. So these GPUs stand for all.
 */
static void sample_pool(struct bh_admit *a, uint32_t pool)
{
    struct bh_admit_pool *to = &a->pools[pool];
    const struct bh_pool *p = &a->policy->pools.at[pool];
    const char *fabric = main_fabric(a, p);
    uint64_t seen = 0;
    bool unknown = false;
    for (size_t i = 0; i < p->gpus.n; i++) {
        const struct bh_gpu_ref *g = &p->gpus.at[i];
        const struct bh_part *part = part_of(a, g);
        const uint64_t bit = UINT64_C(1) << part->model;
        const bool lone = !part->fabric && !unknown;
        if (!lone && (seen & bit) && !(fabric && bh_str_eq(part->fabric, fabric)))
            continue;
        unknown |= lone;
        seen |= bit;
        *bh_vec_push(&to->sampled) =
            (struct bh_gpu_ref){sample_machine(to, &a->fleet->nodes.at[g->node]), g->gpu};
    }
}

static void add_member(struct shadow *s, const struct bh_admit *a, uint32_t tenant)
{
    const uint32_t i = (uint32_t)s->tenants.n;
    *bh_vec_push(&s->tenants) = a->policy->tenants.at[tenant];
    *bh_vec_push(&s->tenant_of) = tenant;
    *bh_vec_push(&s->members) = i;
    (void)bh_map_add(&s->policy.tenant_by_name, s->tenants.at[i].name, i);
}

/* Only the pool's samples of the fleet. */
static void take_sample(struct shadow *s, const struct bh_admit_pool *sample)
{
    LEND(&s->pool.gpus, &sample->sampled);
    LEND(&s->pool.nodes, &sample->sample_nodes);
    LEND(&s->fleet.nodes, &sample->sample);
    for (uint32_t i = 0; i < s->fleet.nodes.n; i++)
        (void)bh_map_add(&s->fleet.by_name, s->fleet.nodes.at[i].name, i);
}

/* tenant BH_NONE: all of the pool's. */
static void shadow_init(struct shadow *s, const struct bh_admit *a, uint32_t pool, uint32_t tenant,
                        uint8_t tier)
{
    const struct bh_pool *p = &a->policy->pools.at[pool];
    *s = (struct shadow){.policy = *a->policy, .pool = *p};
    memset(&s->policy.tenant_by_name, 0, sizeof(s->policy.tenant_by_name));
    memset(&s->policy.pool_by_name, 0, sizeof(s->policy.pool_by_name));
    if (tenant == BH_NONE)
        for (size_t i = 0; i < p->tenants.n; i++)
            add_member(s, a, p->tenants.at[i]);
    else
        add_member(s, a, tenant);
    s->pool.tier = tier;
    LEND(&s->pool.tenants, &s->members);
    LEND(&s->policy.tenants, &s->tenants);
    (void)bh_map_add(&s->policy.pool_by_name, p->name, 0);
    memset(&s->policy.workloads, 0, sizeof(s->policy.workloads));
}

static void shadow_fini(struct shadow *s)
{
    bh_report_fini(&s->report);
    bh_map_fini(&s->policy.tenant_by_name);
    bh_map_fini(&s->policy.pool_by_name);
    bh_map_fini(&s->fleet.by_name);
    bh_vec_fini(&s->tenants);
    bh_vec_fini(&s->tenant_of);
    bh_vec_fini(&s->members);
    bh_vec_fini(&s->work.mounts);
    bh_vec_fini(&s->work.devices);
    bh_vec_fini(&s->work.env);
}

static void shadow_lint(struct shadow *s, const struct bh_admit *a, const struct bh_fleet *fleet)
{
    s->policy.pools.at = &s->pool;
    s->policy.pools.n = 1;
    bh_lint(&s->policy, fleet, a->config.today, &s->report);
}

static bool refuses(const struct bh_finding *f)
{
    return f->rule->severity == BH_SEV_ERROR && !f->waived;
}

/* A list of approved images is there to be kept: what lint only warns of when it reads, admission does not let in. */
static bool refuses_work(const struct bh_finding *f)
{
    return refuses(f) || (!f->waived && bh_str_eq(f->rule->id, "BH-081"));
}

/* ---- whatever is asked ---- */

/* `tenant:acme` -> the policy's index, or BH_NONE. */
static uint32_t subject_tenant(const struct bh_admit *a, const char *subject)
{
    static const char kind[] = "tenant:";
    if (!bh_str_starts(subject, kind))
        return BH_NONE;
    const uint32_t t = bh_map_find(&a->policy->tenant_by_name, subject + strlen(kind));
    return t == BH_MAP_NONE ? BH_NONE : t;
}

static void stand(struct bh_admit *a, uint32_t pool)
{
    struct shadow s;
    shadow_init(&s, a, pool, BH_NONE, a->policy->pools.at[pool].tier);
    shadow_lint(&s, a, a->fleet);
    for (size_t i = 0; i < s.report.findings.n; i++) {
        const struct bh_finding *f = &s.report.findings.at[i];
        const uint32_t tenant = subject_tenant(a, f->subject);
        if (!refuses(f) || (tenant == BH_NONE && !bh_str_starts(f->subject, "pool:")))
            continue;
        *bh_vec_push(&a->pools[pool].standing) =
            (struct bh_standing){tenant, f->rule, bh_arena_str(&a->arena, f->message),
                                 f->fix ? bh_arena_str(&a->arena, f->fix) : NULL};
    }
    shadow_fini(&s);
}

void bh_admit_stand(struct bh_admit *a)
{
    for (uint32_t i = 0; i < a->policy->pools.n; i++) {
        sample_pool(a, i);
        stand(a, i);
    }
}

/* ---- one piece of work ---- */

/* Texts as the model has them; pools that they name come along, for a rule looks for them. */
static void add_paths(struct shadow *s, const struct bh_admit *a, const char *const *from, bh_text_vec *to)
{
    for (; from && *from; from++) {
        *bh_vec_push(to) = (struct bh_text){.s = *from};
        for (const char *p = *from; *p;) {
            char name[64];
            const size_t n = strcspn(p, "/");
            if (n && n < sizeof(name)) {
                memcpy(name, p, n);
                name[n] = '\0';
                const uint32_t other = bh_map_find(&a->policy->pool_by_name, name);
                if (other != BH_MAP_NONE)
                    (void)bh_map_add(&s->policy.pool_by_name, a->policy->pools.at[other].name, 1);
            }
            p += n + (p[n] == '/');
        }
    }
}

static void fill_work(struct shadow *s, const struct bh_admit *a, const struct bh_admit_ask *ask,
                      uint8_t tier, uint64_t gpus_milli)
{
    struct bh_workload *w = &s->work;
    *w = (struct bh_workload){.name = ask->name ? ask->name : "job",
                              .tenant_name = {.s = ask->tenant},
                              .pool_name = {.s = s->pool.name},
                              .source = BH_SOURCE_POLICY,
                              .pace = ask->pace,
                              .priority = ask->priority,
                              .has_priority = ask->has_priority,
                              .tier = tier,
                              .has_tier = ask->has_tier,
                              .gang = ask->gang,
                              .allow_span = ask->allow_span,
                              .needs_nvlink = ask->needs_nvlink,
                              .privileged = ask->privileged,
                              .host_pid = ask->host_pid,
                              .host_ipc = ask->host_ipc,
                              .host_network = ask->host_network,
                              .checkpointable = ask->checkpointable,
                              .gpus_milli = gpus_milli,
                              .memory_bytes = ask->memory_bytes,
                              .has_deadline = ask->deadline_ms != 0,
                              .deadline_s = (int64_t)(ask->deadline_ms / 1000),
                              .image = {.s = ask->image}};
    add_paths(s, a, ask->mounts, &w->mounts);
    add_paths(s, a, ask->devices, &w->devices);
    for (size_t i = 0; i < ask->n_env; i++)
        *bh_vec_push(&w->env) = ask->env[i];
}

bool bh_admit_judge(const struct bh_admit *a, uint32_t tenant, uint32_t pool, uint8_t tier,
                    const struct bh_admit_ask *ask, uint64_t gpus_milli, struct bh_arena *arena,
                    struct bh_standing *ret)
{
    struct shadow s;
    bool refused = false;
    /* Behind another tier than the pool's its own words are judged anew. */
    const bool stronger = tier != a->policy->pools.at[pool].tier;
    shadow_init(&s, a, pool, tenant, tier);
    take_sample(&s, &a->pools[pool]);
    fill_work(&s, a, ask, tier, gpus_milli);
    s.policy.workloads.at = &s.work;
    s.policy.workloads.n = 1;
    shadow_lint(&s, a, &s.fleet);
    for (size_t i = 0; !refused && i < s.report.findings.n; i++) {
        const struct bh_finding *f = &s.report.findings.at[i];
        refused = bh_str_starts(f->subject, "workload:")
                      ? refuses_work(f)
                      : stronger && refuses(f) &&
                            (bh_str_starts(f->subject, "pool:") || bh_str_starts(f->subject, "tenant:"));
        if (refused)
            *ret = (struct bh_standing){tenant, f->rule, bh_arena_str(arena, f->message),
                                        f->fix ? bh_arena_str(arena, f->fix) : NULL};
    }
    shadow_fini(&s);
    return refused;
}
