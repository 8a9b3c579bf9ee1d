/* SPDX-License-Identifier: Apache-2.0 */
/* Random policies, fleets and asks: one answer each, always the same, nothing that lint refuses, nobody beside strangers. */
#include "core/admit/admit_fixture.h"

#include "base/str.h"

enum { ROUNDS = 800, ASKS = 12, SPOTS = 512 };

static const char *const names[] = {"a", "b", "c", "d", "e"}, *const pools[] = {"p0", "p1", "p2", "p3"},
                         *const machines[] = {"n0", "n1", "n2"},
                         *const models[] = {"H100-80GB", "H200", "H100-80GB", "H100-80GB", "L40S"},
                         *const sites[] = {NULL, NULL, NULL, "eu"}, *const fabrics[] = {NULL, "A", "B"},
                         *const parents[] = {NULL, NULL, "dept"}, *const domains[] = {"x", "y"};
static const char *const paths[][2] = {{"/data", NULL}, {"/etc", NULL}, {"/run/nvidia-mps/p1", NULL}};

static void random_tenants(struct fixture *f, struct bh_choice *c)
{
    for (uint32_t i = 0, n = 1 + bh_choose(c, BH_COUNT_OF(names)); i < n; i++) {
        struct bh_tenant *t =
            add_tenant(f, names[i], (enum bh_trust)(bh_choose(c, 12) ? 0 : bh_choose(c, 3)),
                       (enum bh_quota_model)bh_choose(c, BH_N_quota_model), bh_choose(c, 9) * 1000);
        if (t->trust != BH_TRUST_INTERNAL || !bh_choose(c, 6))
            t->domain = domains[bh_choose(c, 2)];
        t->quota.borrow = bh_choose(c, 2);
        t->quota.has_max = bh_choose(c, 2);
        t->quota.max_milli = t->quota.gpus_milli + bh_choose(c, 5) * 1000;
        t->priority.ceiling = (uint8_t)bh_choose(c, BH_N_priority);
        t->site = sites[bh_choose(c, BH_COUNT_OF(sites))];
        t->parent = i ? bh_choose(c, 3) ? parents[bh_choose(c, 3)] : names[bh_choose(c, i)] : NULL;
        if (!bh_choose(c, 4))
            *bh_vec_push(&t->drivers) = (struct bh_text){.s = bh_choose(c, 2) ? "580" : "570"};
        if (!bh_choose(c, 6))
            *bh_vec_push(&t->images) = (struct bh_text){.s = "good/*"};
        if (!bh_choose(c, 20))
            t->network.policy = BH_NET_OPEN;
    }
}

static void random_pools(struct fixture *f, struct bh_choice *c)
{
    static const uint8_t mechanisms[] = {BH_MECH_WHOLE, BH_MECH_MIG, BH_MECH_GATE, BH_MECH_MPS,
                                         BH_MECH_TIMESLICE};
    for (uint32_t i = 0, n = 1 + bh_choose(c, BH_COUNT_OF(pools)); i < n; i++) {
        const uint32_t m = mechanisms[bh_choose(c, BH_COUNT_OF(mechanisms))];
        struct bh_pool *p = add_pool(f, pools[i], (enum bh_mechanism)m,
                                     (enum bh_tier)bh_choose(c, m == BH_MECH_WHOLE ? BH_N_tier : 2),
                                     bh_choose(c, 4), 1 + bh_choose(c, 4),
                                     f->policy.tenants.at[bh_choose(c, (uint32_t)f->policy.tenants.n)].name,
                                     f->policy.tenants.at[bh_choose(c, (uint32_t)f->policy.tenants.n)].name);
        for (size_t k = 0; k < f->policy.tenants.n; k++)
            if (!bh_choose(c, 2))
                *bh_vec_push(&p->tenant_names) = (struct bh_text){.s = f->policy.tenants.at[k].name};
        p->pace = (uint8_t)bh_choose(c, BH_N_pace);
        p->oversubscribe = !bh_choose(c, 4);
        p->cap_memory_bytes /= 2;
        if (m == BH_MECH_MIG && bh_choose(c, 2))
            *bh_vec_push(&p->profiles) = (struct bh_text){.s = "1g.10gb"};
        if (!bh_choose(c, 8))
            p->cap_memory_bytes = 0;
        if (!bh_choose(c, 6))
            *bh_vec_push(&p->drivers) = (struct bh_text){.s = "580.1"};
    }
}

static void random_fleet(struct fixture *f, struct bh_choice *c)
{
    for (uint32_t i = 0, n = 1 + bh_choose(c, BH_COUNT_OF(machines)); i < n; i++) {
        struct bh_fleet_node *x =
            fixture_node(f, machines[i], models[bh_choose(c, BH_COUNT_OF(models))], 1 + bh_choose(c, 8));
        x->site = sites[bh_choose(c, BH_COUNT_OF(sites))];
        x->driver = bh_choose(c, 4) ? "580.1" : NULL;
        x->iommu = x->acs = BH_FACT_YES;
        const char *fabric = fabrics[bh_choose(c, BH_COUNT_OF(fabrics))];
        for (size_t k = 0; k < x->gpus.n; k++)
            x->gpus.at[k].fabric = fabric;
    }
}

/* Each tenant has pools of its own, and all of them want the same machines. */
static void random_strangers(struct fixture *f, struct bh_choice *c)
{
    static const uint8_t mechanisms[] = {BH_MECH_WHOLE, BH_MECH_WHOLE, BH_MECH_MIG, BH_MECH_GATE,
                                         BH_MECH_MPS};
    for (uint32_t i = 0; i < BH_COUNT_OF(pools); i++) {
        struct bh_tenant *t = add_tenant(f, names[i], bh_choose(c, 2) ? BH_TRUST_INTERNAL : BH_TRUST_PARTNER,
                                         BH_QUOTA_HARD, 2000 + bh_choose(c, 3) * 1000);
        t->domain = t->trust == BH_TRUST_INTERNAL && bh_choose(c, 2) ? "internal" : domains[bh_choose(c, 2)];
        const uint8_t m = mechanisms[bh_choose(c, BH_COUNT_OF(mechanisms))];
        struct bh_pool *p = add_pool(f, pools[i], (enum bh_mechanism)m,
                                     m == BH_MECH_WHOLE && bh_choose(c, 2) ? BH_TIER_VM : BH_TIER_CONTAINER,
                                     bh_choose(c, 2), 1 + bh_choose(c, 3), names[i], NULL);
        p->cap_memory_bytes /= 2;
    }
}

static void random_world(struct fixture *f, uint64_t seed)
{
    uint8_t bytes[512];
    bh_choice_fill(bytes, sizeof(bytes), seed);
    struct bh_choice c = {bytes, sizeof(bytes)};
    fixture_init(f);
    if (seed % 2) {
        random_strangers(f, &c);
    } else {
        random_tenants(f, &c);
        random_pools(f, &c);
    }
    random_fleet(f, &c);
}

static struct bh_admit_ask random_ask(struct bh_choice *c, const struct bh_policy *p, uint64_t id)
{
    struct bh_admit_ask a = {
        .id = id,
        .name = "asked",
        .tenant = bh_choose(c, 20) ? p->tenants.at[bh_choose(c, (uint32_t)p->tenants.n)].name : "stranger",
        .pool = !bh_choose(c, 3) ? pools[bh_choose(c, BH_COUNT_OF(pools))] : NULL,
        .gpus = bh_choose(c, 2) ? 0 : bh_choose(c, 5),
        .share_milli = bh_choose(c, 4) ? 0 : bh_choose(c, 7) * 50,
        .memory_bytes = bh_choose(c, 3) ? 0 : bh_choose(c, 20) * 5 * BH_GIB,
        .profile = bh_choose(c, 8) ? NULL : "1g.10gb",
        .gpus_max = bh_choose(c, 4) ? 0 : bh_choose(c, 8),
        .has_tier = !bh_choose(c, 5),
        .tier = (uint8_t)bh_choose(c, BH_N_tier),
        .has_priority = !bh_choose(c, 5),
        .priority = (uint8_t)bh_choose(c, BH_N_priority),
        .pace = (uint8_t)bh_choose(c, BH_N_pace),
        .can = (uint8_t)bh_choose(c, 8),
        .checkpointable = (uint8_t)bh_choose(c, 3),
        .gang = bh_choose(c, 5) != 0,
        .needs_nvlink = !bh_choose(c, 8),
        .allow_span = !bh_choose(c, 3),
        .privileged = !bh_choose(c, 10),
        .image = bh_choose(c, 3) ? "good/x" : NULL,
        .mounts = bh_choose(c, 5) ? NULL : paths[bh_choose(c, 3)]};
    return a;
}

/* Nothing written where it does not belong, and every word that was promised is there. */
static bool one_answer(bool admitted, const struct bh_admit_grant *g, const struct bh_admit_refusal *why)
{
    if (!admitted)
        return g->job.id == 0 && why->code > BH_ADMIT_OK && why->code < BH_ADMIT_CODES && *why->what &&
               *why->needed && *why->there && *why->next && (why->code != BH_ADMIT_RULE || why->rule);
    const struct bh_gang_role_spec *r = &g->job.roles[0];
    return why->code == BH_ADMIT_CODES && g->job.id && g->shared[0] && g->bounded_by && g->n_layers &&
           r->min && r->max >= r->min && (g->cap_bytes || g->weight == 0) && g->floor_permille <= 1000;
}

/* The ask, written into the policy itself. */
static void write_work(struct fixture *f, const struct bh_admit *a, const struct bh_admit_ask *ask,
                       const struct bh_admit_grant *g)
{
    struct bh_workload *w = fixture_workload(f, ask->name, ask->tenant);
    const struct bh_gang_role_spec *r = &g->job.roles[0];
    w->pool_name.s = a->policy->pools.at[g->pool].name;
    w->pace = ask->pace;
    w->has_priority = ask->has_priority;
    w->priority = ask->priority;
    w->gang = ask->gang;
    w->allow_span = ask->allow_span;
    w->needs_nvlink = ask->needs_nvlink;
    w->privileged = ask->privileged;
    w->checkpointable = ask->checkpointable;
    w->gpus_milli =
        (uint64_t)r->min * r->request.n_gpus * (r->request.gpu_milli ? r->request.gpu_milli : 1000);
    w->memory_bytes = ask->memory_bytes;
    w->image.s = ask->image;
    for (const char *const *p = ask->mounts; p && *p; p++)
        *bh_vec_push(&w->mounts) = (struct bh_text){.s = *p};
}

/* Lint, given all of the policy, has no error against the work or against its pool. */
static bool lint_agrees(uint64_t seed, const struct bh_admit *a, const struct bh_admit_ask *ask,
                        const struct bh_admit_grant *g)
{
    struct fixture f;
    struct bh_report report = {.n_errors = 0};
    char pool[32];
    bool good = true;
    random_world(&f, seed);
    f.policy.pools.at[g->pool].tier = g->tier;
    write_work(&f, a, ask, g);
    (void)fixture_link(&f);
    bh_lint(&f.policy, &f.fleet, TODAY, &report);
    (void)snprintf(pool, sizeof(pool), "pool:%s", f.policy.pools.at[g->pool].name);
    for (size_t i = 0; good && i < report.findings.n; i++) {
        const struct bh_finding *x = &report.findings.at[i];
        const bool about = bh_str_eq(x->subject, "workload:asked") || bh_str_eq(x->subject, pool);
        /* Two pools on one kernel that need different drivers: of those only one finds a place, which placing sees to. */
        good = !about || x->rule->severity != BH_SEV_ERROR || bh_str_eq(x->rule->id, "BH-050");
        if (!good)
            printf("# %s %s: %s\n", x->rule->id, x->subject, x->message);
    }
    bh_report_fini(&report);
    fixture_fini(&f);
    return good;
}

struct placed {
    uint32_t tenant, pool;
    uint8_t tier, mechanism;
    struct bh_admit_slice slice;
};

static bool in_pool(const struct bh_admit *a, uint32_t pool, struct bh_gpu_ref gpu)
{
    const struct bh_pool *p = &a->policy->pools.at[pool];
    for (size_t i = 0; i < p->gpus.n; i++)
        if (p->gpus.at[i].node == gpu.node && p->gpus.at[i].gpu == gpu.gpu)
            return true;
    return false;
}

/* Said from the policy alone, not from what the scheduler was told. */
static bool may_meet(const struct bh_admit *a, const struct placed *x, const struct placed *y)
{
    const struct bh_tenant *t = &a->policy->tenants.at[x->tenant], *u = &a->policy->tenants.at[y->tenant];
    const bool same_machine = x->slice.gpu.node == y->slice.gpu.node,
               same_gpu = same_machine && x->slice.gpu.gpu == y->slice.gpu.gpu;
    if (same_gpu && x->slice.kind != y->slice.kind)
        return false;
    if (same_gpu && x->slice.kind == BH_SLICE_WHOLE)
        return false;
    if (same_gpu && x->mechanism != y->mechanism)
        return false;
    if (same_gpu && x->mechanism == BH_MECH_MPS && (x->pool != y->pool || !bh_str_eq(t->domain, u->domain)))
        return false;
    const bool shares_kernel = x->tier < BH_TIER_VM || y->tier < BH_TIER_VM;
    return !(bh_tenants_distrust(t, u) && same_machine &&
             (shares_kernel ? x->tier < BH_TIER_VM && y->tier < BH_TIER_VM : same_gpu));
}

/* All that was admitted, in one scheduler: where it ends up. */
static bool placed_well(const struct bh_admit *a, const struct bh_admit_grant *grants, size_t n)
{
    struct placed at[SPOTS];
    size_t n_at = 0, n_decisions;
    struct bh_sched *s = lab_sched(a);
    bool good = s != NULL;
    for (size_t i = 0; good && i < n; i++)
        good = lab_submit(s, &grants[i]) == 0;
    const struct bh_decision *d = good ? bh_sched_decide(s, 2, 0, &n_decisions) : NULL;
    if (good) {
        size_t refused;
        (void)bh_sched_refusals(s, &refused);
        good = refused == 0;
    }
    for (size_t i = 0; good && i < n_decisions; i++) {
        const struct bh_admit_grant *g = &grants[d[i].job - 1];
        const struct bh_place *places = bh_sched_places(s, &d[i]);
        for (uint32_t k = 0;
             good && (d[i].kind == BH_DECIDE_START || d[i].kind == BH_DECIDE_GROW) && k < d[i].n_places;
             k++) {
            struct bh_admit_slice slices[BH_NODE_GPUS];
            const size_t m = bh_admit_slices(a, &g->job.roles[0].request, &places[k].spot, slices);
            good = m == g->job.roles[0].request.n_gpus && n_at + m <= SPOTS;
            for (size_t j = 0; good && j < m; j++) {
                at[n_at++] = (struct placed){g->tenant, g->pool, g->tier, g->mechanism, slices[j]};
                good = in_pool(a, g->pool, slices[j].gpu);
            }
        }
    }
    for (size_t i = 0; good && i < n_at; i++)
        for (size_t k = 0; good && k < i; k++)
            good = may_meet(a, &at[i], &at[k]);
    bh_sched_free(s);
    return good;
}

static size_t admitted, refused, codes[BH_ADMIT_CODES];

static bool round_of(uint64_t seed)
{
    uint8_t bytes[1024];
    bh_choice_fill(bytes, sizeof(bytes), seed ^ UINT64_C(0x5eed));
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct fixture f;
    random_world(&f, seed);
    struct bh_admit *a = lab_admit(&f, NULL), *twin = lab_admit(&f, a);
    struct bh_admit_grant grants[ASKS];
    size_t n = 0;
    bool good = a && twin && bh_admit_same_ground(a, twin);
    for (uint32_t i = 0; good && i < ASKS; i++) {
        struct bh_admit_ask ask = random_ask(&c, &f.policy, n + 1);
        struct bh_admit_grant g = {.tier = 0}, again = {.tier = 0};
        struct bh_admit_refusal why = {.code = BH_ADMIT_CODES}, why_again = {.code = BH_ADMIT_CODES};
        const bool yes = bh_admit_job(a, &ask, &g, &why);
        good = one_answer(yes, &g, &why) && bh_admit_job(twin, &ask, &again, &why_again) == yes &&
               why.code == why_again.code && bh_str_eq(why.what, why_again.what) &&
               memcmp(&g.job, &again.job, sizeof(g.job)) == 0 && g.cap_bytes == again.cap_bytes;
        if (!good)
            printf("# ask %u: %d %s\n", i, yes, why.what);
        if (good && yes)
            good = lint_agrees(seed, a, &ask, &g);
        if (good && yes)
            grants[n++] = g;
        admitted += yes;
        refused += !yes;
        codes[yes ? BH_ADMIT_OK : why.code]++;
    }
    good = good && placed_well(a, grants, n);
    bh_admit_free(twin);
    bh_admit_free(a);
    fixture_fini(&f);
    return good;
}

TEST(any_ask_gets_one_answer_that_lint_agrees_with_and_a_place_beside_no_stranger)
{
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        const bool good = round_of(seed);
        if (!good)
            printf("# seed %" PRIu64 "\n", seed);
        CHECK(good);
    }
    printf("# %zu admitted, %zu refused\n", admitted, refused);
    CHECK(admitted > ROUNDS && refused > ROUNDS);
    /* Every kind of refusal but that of a machine that cannot do something was met. */
    for (int i = 0; i < BH_ADMIT_CODES; i++) {
        if (!codes[i] && i != BH_ADMIT_NOT_HERE)
            printf("# never: %s\n", bh_admit_code_str((enum bh_admit_code)i));
        CHECK(codes[i] || i == BH_ADMIT_NOT_HERE);
    }
}

TEST_MAIN
