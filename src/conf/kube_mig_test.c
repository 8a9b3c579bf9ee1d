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
    CHECK_EQ(diags.at.n, 1); /* nobody chose any */
    CHECK_EQ(policy.pools.n, 3);
    const struct bh_pool *p = pool("balanced");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MIG);
    CHECK_EQ(p->strategy, BH_STRATEGY_UNSET);
    CHECK(is_at(p->pos, 5, 3));
    CHECK(is_at(p->layout_pos, 9, 7));
    CHECK_EQ(p->layout.n, 2);
    CHECK_STR(p->layout.at[0].profile, "1g.18gb+me");
    CHECK_EQ(p->exposes.n, 0);
    CHECK(!p->any_tenant && !p->resource && !p->match.model.s);
    CHECK(pool("two/1") && pool("two/2"));
    CHECK_EQ(pool("two/2")->layout.at[0].count, 7);
    CHECK_STR(pool("two/2")->match.model.s, "H200-141GB");

    CHECK(read1(
        "mig-configs: {b: [{devices: all, mig-enabled: true, mig-devices: {1g.18gb+me: 1, 3g.71gb: 1}}]}\n---\n"
        "kind: Node\nmetadata: {name: n, labels: {nvidia.com/mig.config: b}}\n"));
    CHECK_EQ(diags.at.n, 0);
    p = pool("b");
    CHECK_EQ(p->exposes.n, 2);
    CHECK_STR(p->exposes.at[0].s, "nvidia.com/mig-1g.18gb.me");
    CHECK_STR(p->exposes.at[1].s, "nvidia.com/mig-3g.71gb");
    CHECK_STR(p->resource, "nvidia.com/mig-1g.18gb.me");
    CHECK(p->any_tenant);
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
    CHECK_EQ(policy.pools.n, 9);
    CHECK(!pool("c1")->any_tenant && !pool("c1")->match.model.s);
    const struct bh_pool *p = pool("c9");
    CHECK(p);
    CHECK(p->any_tenant);
    CHECK_STR(p->match.model.s, "H200-141GB");
    CHECK_EQ(p->strategy, BH_STRATEGY_SINGLE); /* the operator outranks the label */
    CHECK_STR(p->resource, "nvidia.com/gpu");
    CHECK(is_at(p->pos, 15, 7));
    CHECK_STR(p->object, "ConfigMap/gpu-operator/mig-parted#config.yaml");
    CHECK_EQ(diags.n_errors, 0);
    CHECK(diag_with("ConfigMap `elsewhere`"));

    CHECK(read1(layouts));
    CHECK_EQ(policy.pools.n, 9);
    CHECK(!pool("c9")->any_tenant && !pool("c9")->exposes.n);
    const struct bh_diag *d = diag_with("of the MIG layouts here (9) none is chosen");
    CHECK(d && !d->is_error);
    CHECK_EQ(d->pos.line, 7);

    CHECK(load(
        (const char *const[]){layouts,
                              "kind: Node\nmetadata: {name: n, labels: {nvidia.com/mig.config: nosuch}}\n"},
        2, NULL));
    d = diag_with("MIG layout `nosuch` is asked for");
    CHECK(d && !d->is_error && d->pos.file == 1);
    CHECK(read1("kind: Node\nmetadata: {name: n, labels: {nvidia.com/mig.config: nosuch}}\n"));
    CHECK_EQ(diags.at.n, 0); /* the configurations may be elsewhere */
}

static const char balanced[] =
    "mig-configs:\n"
    "  all-balanced:\n"
    "  - {device-filter: [\"0x20B010DE\", \"0x20B110DE\"], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2}}\n"
    "  - {device-filter: \"0x233010DE\", devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2}}\n"
    "  - {device-filter: [\"0x233510de\", \"0x233B10DE\"], devices: [0, 1], mig-enabled: true, mig-devices: {1g.18gb: 2}}\n"
    "  - {device-filter: [\"0x293510DE\"], devices: all, mig-enabled: true, mig-devices: {1g.23gb: 2}}\n"
    "  - {device-filter: [\"0x20B010DE\", \"0x233010DE\"], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 1}}\n";

static const char *model_of(const char *name)
{
    return !pool(name) ? "no pool" : pool(name)->match.model.s ? pool(name)->match.model.s : "any";
}

/* Read the layout as chosen by nodes of these products. */
static void choose(const char *a, const char *b)
{
    char text[400];
    (void)snprintf(
        text, sizeof(text),
        "kind: Node\nmetadata: {name: a, labels: {nvidia.com/mig.config: all-balanced, nvidia.com/gpu.product: %s}}\n"
        "---\n"
        "kind: Node\nmetadata: {name: b, labels: {nvidia.com/mig.config: all-balanced, nvidia.com/gpu.product: %s}}\n",
        a, b);
    (void)load((const char *const[]){balanced, text}, 2, NULL);
}

TEST(device_filters)
{
    choose("NVIDIA-H200", "NVIDIA-H200");
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.pools.n, 1);
    CHECK_STR(model_of("all-balanced"), "H200-141GB");
    CHECK_STR(pool("all-balanced")->layout.at[0].profile, "1g.18gb");
    choose("NVIDIA-H200", "NVIDIA-H100-80GB-HBM3");
    CHECK_EQ(policy.pools.n, 3);
    CHECK_STR(model_of("all-balanced/1"), "H100-80GB-SXM");
    CHECK_STR(model_of("all-balanced/2"), "H200-141GB");
    CHECK_STR(model_of("all-balanced/3"), "H100-80GB-SXM");
    choose("NVIDIA-H200", "NVIDIA-Unheard-Of"); /* anything may apply to what is not known */
    CHECK_EQ(policy.pools.n, 5);
    CHECK_STR(model_of("all-balanced/1"), "A100-40GB");
    CHECK_STR(model_of("all-balanced/4"), "any");
    CHECK_STR(model_of("all-balanced/5"), "any");
    CHECK(read1(balanced)); /* nobody chose it */
    CHECK_EQ(policy.pools.n, 5);
    CHECK_STR(model_of("all-balanced/3"), "H200-141GB");

    CHECK(read1(
        "mig-configs: {x: [{device-filter: [h100, \"0x2330\", [], \"0x233010DF\", \"0x2233010DE\"], mig-enabled: true, "
        "mig-devices: {1g.10gb: 1}}]}\n"));
    CHECK_EQ(diags.n_errors, 5);
    CHECK(diag_with("`device-filter` must be a PCI id"));
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
