/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a workload uses, and who is in it. */
#include "conf/kube_fixture.h"

#include "base/buf.h"

#define ON(name, ns, spec)                                                                         \
    "kind: Pod\nmetadata: {name: " name ", namespace: " ns "}\nspec: {" spec " containers: [{" GPU \
    "}]}\n---\n"
#define KATA "runtimeClassName: kata-qemu,"

static const char *tenants_of(const char *name)
{
    static char text[200];
    const struct bh_pool *p = pool(name);
    size_t n = 0;
    if (!p)
        return "no such pool";
    text[0] = '\0';
    for (size_t i = 0; i < p->tenant_names.n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", p->tenant_names.at[i].s);
    return p->any_tenant ? "any" : text;
}

TEST(pods_use_the_pool_that_exposes_their_name)
{
    CHECK(load((const char *const[]){time_slicing, POD("{" GPU "}")}, 2, NULL));
    CHECK_EQ(policy.pools.n, 1);
    CHECK_STR(workload("p")->pool_name.s, "time-slicing-config");
    CHECK_EQ(workload("p")->pool_name.pos.file, 1);
    CHECK_STR(tenants_of("time-slicing-config"), "any");

    CHECK(read1(POD("{resources: {limits: {nvidia.com/gpu.shared: 1}}}")));
    CHECK_EQ(policy.pools.n, 0);
    CHECK(!workload("p")->pool_name.s);
    CHECK(diag_with("`nvidia.com/gpu.shared` is asked for"));
}

TEST(virtual_machines_are_a_part_of_their_own)
{
    CHECK(read1(ON("a", "acme", KATA) ON("b", "globex", KATA) ON(
        "c", "lab",
        "") "kind: ResourceQuota\nmetadata: {name: q, namespace: idle}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n"));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 2);
    CHECK_STR(tenants_of("cluster-vm"), "acme globex");
    CHECK_STR(tenants_of("cluster"), "lab idle");
    const struct bh_pool *p = pool("cluster-vm");
    CHECK_EQ(p->tier, BH_TIER_VM);
    CHECK_EQ(p->mechanism, BH_MECH_WHOLE);
    CHECK_STR(p->copy_of, "cluster");
    CHECK_STR(p->resource, "nvidia.com/gpu");
    CHECK_EQ(p->exposes.n, 1);
    CHECK_EQ(pool("cluster")->tier, BH_TIER_CONTAINER);
    CHECK(!pool("cluster")->copy_of);
    CHECK_STR(workload("a")->pool_name.s, "cluster-vm");
    CHECK_STR(workload("c")->pool_name.s, "cluster");

    /* a namespace with both kinds of pods is in both */
    CHECK(read1(ON("a", "acme", KATA) ON("b", "acme", "")));
    CHECK_STR(tenants_of("cluster"), "any");
    CHECK_STR(tenants_of("cluster-vm"), "acme");
}

TEST(a_pool_of_pods_alone_that_all_left_is_renamed)
{
    CHECK(read1(ON("a", "acme", KATA) ON("b", "globex", KATA)));
    CHECK_EQ(policy.pools.n, 1);
    CHECK_STR(tenants_of("cluster-vm"), "acme globex");
    CHECK(!pool("cluster-vm")->copy_of);
    CHECK_STR(workload("b")->pool_name.s, "cluster-vm");
    CHECK(read1(ON("a", "acme", KATA) ON("b", "globex", "nodeName: n1,")));
    CHECK_EQ(policy.pools.n, 2);
    CHECK_STR(tenants_of("cluster-vm"), "acme");
    CHECK_STR(tenants_of("cluster@n1"), "globex");
    CHECK_STR(pool("cluster@n1")->copy_of, "cluster-vm");
}

TEST(nodes_part_those_who_stay_on_them)
{
    CHECK(read1(ON("a", "acme", "nodeName: n1,")
                    ON("a2", "acme", "nodeSelector: {kubernetes.io/hostname: n2},")
                        ON("b", "globex", "nodeName: n3,") ON("b2", "globex", "")
                            ON("c", "lab", "nodeName: n1," KATA) ON("d", "ops", "nodeName: n1,")));
    CHECK_EQ(diags.at.n, 0);
    CHECK_STR(tenants_of("cluster@n1,n2"), "acme");
    CHECK_EQ(pool("cluster@n1,n2")->match.nodes.n, 2);
    CHECK_STR(pool("cluster@n1,n2")->match.nodes.at[1].s, "n2");
    CHECK_STR(tenants_of("cluster@n1"), "ops");
    CHECK_STR(tenants_of("cluster-vm@n1"), "lab");
    CHECK_STR(tenants_of("cluster"), "globex"); /* one of its pods may be anywhere */
    CHECK_STR(workload("a2")->pool_name.s, "cluster@n1,n2");
    CHECK_STR(workload("b")->pool_name.s, "cluster");
}

TEST(shared_gpus_behind_a_virtual_machine)
{
    CHECK(load((const char *const[]){time_slicing, ON("a", "acme", KATA)}, 2, NULL));
    CHECK_EQ(policy.pools.n, 2);
    CHECK_STR(tenants_of("time-slicing-config"), ""); /* its settings are still judged */
    const struct bh_pool *p = pool("time-slicing-config-vm");
    CHECK(p);
    CHECK_EQ(p->tier, BH_TIER_VM);
    CHECK_EQ(p->mechanism, BH_MECH_TIMESLICE);
    CHECK_EQ(p->replicas, 4);
    CHECK_EQ(p->fail_requests_greater_than_one, BH_FACT_UNKNOWN);
    CHECK_STR(p->copy_of, "time-slicing-config");
    CHECK_STR(tenants_of("time-slicing-config-vm"), "acme");

    CHECK(read1("kind: Pod\nmetadata: {name: m, namespace: t}\nspec: {runtimeClassName: kata,\n"
                "  containers: [{resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}]}\n"));
    CHECK_EQ(policy.pools.n, 1);
    CHECK_STR(tenants_of("mig-vm"), "t");
    CHECK_EQ(pool("mig-vm")->mechanism, BH_MECH_MIG);
}

TEST(many_parts_stay_within_bounds)
{
    struct bh_buf b BH_AUTO(bh_buf_fini);
    bh_buf_init(&b, 1 << 22);
    for (int i = 0; i < 2000; i++)
        bh_buf_printf(
            &b,
            "kind: Pod\nmetadata: {name: p%d, namespace: n%d}\nspec: {nodeName: h%d, containers: [{resources: "
            "{limits: {nvidia.com/mig-%dg.1gb: 1}}}]}\n---\n",
            i, i, i, i);
    CHECK(read1(bh_buf_text(&b)));
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(policy.pools.n, 2000);
    CHECK(diag_with("too many pools, namespaces and resources"));
    forget();
}

TEST_MAIN
