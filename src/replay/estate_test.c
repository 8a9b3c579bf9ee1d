/* SPDX-License-Identifier: Apache-2.0 */
/* estate_test.c - small policies and fleets as files have them, and whether the scheduler holds what they say. */
#include "replay/estate.h"

#include "base/str.h"
#include "base/test.h"
#include "conf/read_fixture.h"
#include "replay/timeline.h"

#include <string.h>

struct plot {
    struct bh_read_fixture policy, fleet;
    struct bh_estate g;
    struct bh_err err;
    int rc;
};

static void plot_open(struct plot *p, const char *policy, const char *fleet)
{
    bh_unresolved_vec problems = {0};
    *p = (struct plot){0};
    CHECK_STR(bh_read_fixture_read(&p->fleet, fleet, strlen(fleet), true), "");
    CHECK_STR(bh_read_fixture_read(&p->policy, policy, strlen(policy), false), "");
    bh_policy_link(&p->policy.policy, &p->fleet.fleet, &problems);
    CHECK_EQ(problems.n, 0);
    bh_vec_fini(&problems);
    p->rc = bh_estate_make(&p->g, &p->policy.policy, &p->fleet.fleet, &p->err);
}

static void plot_close(struct plot *p)
{
    bh_estate_fini(&p->g);
    bh_read_fixture_fini(&p->policy);
    bh_read_fixture_fini(&p->fleet);
}

/* One that is not there has nothing, which no check below expects. */
static const struct bh_estate_tenant *tenant(const struct plot *p, const char *name)
{
    static const struct bh_estate_tenant none = {.queue = 1, .apart = BH_APARTS};
    for (size_t i = 0; i < p->g.tenants.n; i++)
        if (bh_str_eq(p->g.tenants.at[i].name, name))
            return &p->g.tenants.at[i];
    return &none;
}

#define GPUS4(model)                                                                                  \
    "    gpus: [{index: 0, model: " model "}, {index: 1, model: " model "}, {index: 2, model: " model \
    "}, {index: 3, model: " model "}]\n"
#define TWO_NODES                                                                \
    "bulkhead: 1\nnodes:\n"                                                      \
    "  - name: n1\n    kernel: n1\n    site: here\n    driver: 580.1.2\n" GPUS4( \
        "H200") "  - name: n2\n    kernel: n2\n    site: there\n    driver: 570.1.2\n" GPUS4("H200")

TEST(quotas_become_queues)
{
    struct plot p;
    plot_open(
        &p,
        "bulkhead: 1\n"
        "tenants:\n"
        "  - {name: firm, quota: {model: hard, gpus: 2, max: 2}}\n"
        "  - {name: a, parent: house, quota: {model: fairshare, gpus: 2, max: 5, borrow: true, weight: 300}}\n"
        "  - {name: b, parent: house, quota: {model: fairshare, gpus: 1, borrow: false}}\n"
        "  - {name: unused, quota: {model: fairshare, gpus: 1}}\n"
        "pools:\n"
        "  - {name: all, match: {model: H200}, mechanism: whole, tier: container, tenants: [firm, a, b]}\n",
        TWO_NODES);
    CHECK_EQ(p.rc, BH_OK);
    CHECK_EQ(p.g.gpus, 8);
    CHECK_EQ(p.g.tenants.n, 3); /* who has no pool runs nothing */
    CHECK_EQ(tenant(&p, "firm")->most, 2);
    CHECK_EQ(tenant(&p, "a")->most, 5);
    CHECK_EQ(tenant(&p, "b")->most, 1);
    CHECK_EQ(tenant(&p, "a")->promised_milli, 2000);
    const struct bh_estate_queue *a = &p.g.queues.at[tenant(&p, "a")->queue - 1];
    CHECK_EQ(a->config.weight, 300);
    CHECK_EQ(a->config.deserved.at[BH_RES_GPU], 2000);
    CHECK_EQ(a->parent, p.g.queues.at[tenant(&p, "b")->queue - 1].parent);
    CHECK(a->parent != BH_QUEUE_ROOT);
    plot_close(&p);
}

TEST(drivers_and_sites_bind)
{
    struct plot p;
    plot_open(
        &p,
        "bulkhead: 1\n"
        "tenants:\n"
        "  - {name: new, drivers: [\"580\"], quota: {model: fairshare, gpus: 8}}\n"
        "  - {name: far, site: there, quota: {model: fairshare, gpus: 8}}\n"
        "  - {name: any, quota: {model: fairshare, gpus: 8}}\n"
        "pools:\n"
        "  - {name: all, match: {model: H200}, mechanism: whole, tier: container, tenants: [new, far, any]}\n",
        TWO_NODES);
    CHECK_EQ(p.rc, BH_OK);
    CHECK_EQ(tenant(&p, "new")->gpus, 4);
    CHECK_EQ(tenant(&p, "far")->gpus, 4);
    CHECK_EQ(tenant(&p, "any")->gpus, 8);
    CHECK_EQ(tenant(&p, "new")->pools & tenant(&p, "far")->pools, 0);
    plot_close(&p);
}

/* GPUs of one node in two pools, of tenants that do not trust each other: one kernel, so never at once. */
TEST(parts_of_a_node_are_one_kernel)
{
    struct plot p;
    plot_open(
        &p,
        "bulkhead: 1\n"
        "tenants:\n"
        "  - {name: a, domain: da, quota: {model: fairshare, gpus: 2}}\n"
        "  - {name: b, domain: db, quota: {model: fairshare, gpus: 2}}\n"
        "pools:\n"
        "  - {name: low, match: {nodes: n1, gpus: [0, 1]}, mechanism: whole, tier: container, tenants: [a]}\n"
        "  - {name: high, match: {nodes: n1, gpus: [2, 3]}, mechanism: whole, tier: container, tenants: [b]}\n",
        TWO_NODES);
    CHECK_EQ(p.rc, BH_OK);
    CHECK_EQ(p.g.nodes.n, 2);
    CHECK_EQ(p.g.left_out, 4);
    CHECK_EQ(p.g.nodes.at[0].link, p.g.nodes.at[1].link);
    CHECK_EQ(tenant(&p, "a")->apart, BH_APART_LINK);
    CHECK(tenant(&p, "a")->trust != tenant(&p, "b")->trust);

    static const struct bh_job both[] = {
        {.tenant = 0, .gpus = 1, .submit_s = 0, .duration_s = 100, .deadline_s = BH_JOB_NO_DEADLINE},
        {.tenant = 1, .gpus = 1, .submit_s = 0, .duration_s = 100, .deadline_s = BH_JOB_NO_DEADLINE}};
    struct bh_jobs jobs = {0};
    struct bh_timeline_result r;
    const struct bh_timeline_setup setup = {.gpus = p.g.gpus, .estate = &p.g};
    for (size_t i = 0; i < BH_COUNT_OF(both); i++)
        *bh_vec_push(&jobs.at) = both[i];
    *bh_vec_push(&jobs.tenants) = "a";
    *bh_vec_push(&jobs.tenants) = "stranger";
    CHECK_EQ(bh_estate_adopt(&p.g, &jobs), 1);
    CHECK_STR(jobs.tenants.at[1], "b");
    CHECK_EQ(bh_timeline_run(&jobs, &setup, bh_timeline_find("bulkhead"), &r, &p.err), BH_OK);
    CHECK_EQ(r.makespan_s, 200); /* one after the other, though two GPUs are free */
    bh_timeline_result_fini(&r);
    CHECK_EQ(bh_timeline_run(&jobs, &setup, bh_timeline_find("fifo"), &r, &p.err), BH_OK);
    CHECK_EQ(r.makespan_s, 100);
    bh_timeline_result_fini(&r);
    bh_jobs_fini(&jobs);
    plot_close(&p);
}

/* In virtual machines they have kernels of their own. */
TEST(kernels_of_their_own_share_a_node)
{
    struct plot p;
    plot_open(&p,
              "bulkhead: 1\n"
              "tenants:\n"
              "  - {name: a, domain: da, quota: {model: fairshare, gpus: 2}}\n"
              "  - {name: b, domain: db, quota: {model: fairshare, gpus: 2}}\n"
              "pools:\n"
              "  - {name: vms, match: {nodes: n1}, mechanism: whole, tier: vm, tenants: [a, b]}\n",
              TWO_NODES);
    CHECK_EQ(p.rc, BH_OK);
    CHECK_EQ(p.g.nodes.n, 1);
    CHECK_EQ(tenant(&p, "a")->apart, BH_APART_GPU);
    plot_close(&p);
}

TEST(nobody_gets_anything)
{
    struct plot p;
    plot_open(&p,
              "bulkhead: 1\n"
              "tenants:\n"
              "  - {name: a, site: nowhere, quota: {model: fairshare, gpus: 2}}\n"
              "pools:\n"
              "  - {name: all, match: {model: H200}, mechanism: whole, tier: container, tenants: [a]}\n",
              TWO_NODES);
    CHECK_EQ(p.rc, BH_INVALID);
    CHECK_STR(p.err.msg, "the pools of the policy leave no tenant a GPU of this fleet");
    plot_close(&p);
}

TEST_MAIN
