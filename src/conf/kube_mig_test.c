/* SPDX-License-Identifier: Apache-2.0 */
/* mig-parted layouts and which of them count. */
#include "conf/kube_fixture.h"

TEST(mig_parted_layouts)
{
    CHECK(load(
        (const char *const[]){
            "version: v1\n"
            "mig-configs:\n"
            "  all-disabled:\n"
            "  - {devices: all, mig-enabled: false}\n"
            "  balanced:\n" /* 5 */
            "  - devices: all\n"
            "    mig-enabled: true\n"
            "    mig-devices:\n"
            "      1g.18gb+me: 1\n" /* 9 */
            "      \"3g.71gb\": 1\n"
            "  two:\n"
            "  - {devices: [0], mig-enabled: true, mig-devices: [7g.141gb]}\n"
            "  - {device-filter: [\"0x233510DE\"], devices: [1], mig-enabled: true, mig-devices: {1g.18gb: 7}}\n"},
        1, "mig.yaml"));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 3);
    const struct bh_pool *p = pool("balanced");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MIG);
    CHECK_EQ(p->strategy, BH_STRATEGY_UNSET);
    CHECK(is_at(p->pos, 5, 3));
    CHECK(is_at(p->layout_pos, 9, 7));
    CHECK_EQ(p->layout.n, 2);
    CHECK_STR(p->layout.at[0].profile, "1g.18gb+me");
    CHECK_EQ(p->exposes.n, 2);
    CHECK_STR(p->exposes.at[0].s, "nvidia.com/mig-1g.18gb.me");
    CHECK_STR(p->exposes.at[1].s, "nvidia.com/mig-3g.71gb");
    CHECK_STR(p->resource, "nvidia.com/mig-1g.18gb.me");
    CHECK(pool("two/1") && pool("two/2"));
    CHECK_EQ(pool("two/2")->layout.at[0].count, 7);
}

TEST(mig_layouts_that_nodes_choose)
{
    static const char nodes[] =
        "kind: Node\nmetadata: {name: n1, labels: {nvidia.com/mig.config: c9, nvidia.com/mig.strategy: mixed,\n"
        "  nvidia.com/gpu.product: NVIDIA-H200}}\n"
        "---\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\n"
        "spec: {mig: {strategy: single}, devicePlugin: {config: {name: elsewhere, default: any}}}\n";
    static const char layouts[] =
        "kind: ConfigMap\nmetadata: {name: mig-parted, namespace: gpu-operator}\ndata:\n  config.yaml: |\n"
        "    version: v1\n    mig-configs:\n"
        "      c1: &e [{devices: all, mig-enabled: true, mig-devices: {1g.18gb: 7}}]\n"
        "      c2: *e\n      c3: *e\n      c4: *e\n      c5: *e\n      c6: *e\n      c7: *e\n      c8: *e\n"
        "      c9: [{devices: all, mig-enabled: true, mig-devices: {2g.35gb: 3}}]\n"; /* 15 */
    CHECK(load((const char *const[]){layouts, nodes}, 2, NULL));
    CHECK_EQ(policy.pools.n, 1);
    const struct bh_pool *p = pool("c9");
    CHECK(p);
    CHECK_STR(p->match.model.s, "H200-141GB");
    CHECK_EQ(p->strategy, BH_STRATEGY_SINGLE); /* the operator outranks the label */
    CHECK_STR(p->resource, "nvidia.com/gpu");
    CHECK(is_at(p->pos, 15, 7));
    CHECK_STR(p->object, "ConfigMap/gpu-operator/mig-parted#config.yaml");
    CHECK_EQ(diags.n_errors, 0);
    CHECK(diag_with("ConfigMap `elsewhere`"));

    CHECK(read1(layouts));
    CHECK_EQ(policy.pools.n, 0);
    const struct bh_diag *d = diag_with("none of these 9 MIG layouts is chosen");
    CHECK(d && !d->is_error);
    CHECK_EQ(d->pos.line, 7);
}

TEST(mig_shapes)
{
    CHECK(read1("mig-configs:\n"
                "  a: 5\n"
                "  b: [x, {mig-enabled: true, mig-devices: {1g.5gb: seven}}]\n"
                "  c: [{mig-enabled: true, mig-devices: [[]]}, {mig-enabled: true, mig-devices: word}]\n"));
    CHECK_EQ(diags.n_errors, 5);
    CHECK(is_at(diag_with("`a` must be a list")->pos, 2, 6));
    CHECK(is_at(diag_with("a device setting of `b`")->pos, 3, 7));
    CHECK(is_at(diag_with("`1g.5gb`")->pos, 3, 52));
    CHECK(diag_with("an item of `mig-devices`"));
    CHECK(diag_with("`mig-devices` must map"));
}

TEST_MAIN
