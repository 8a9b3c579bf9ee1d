/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes pods are bound to, as it shows in the pools they use. */
#include "conf/kube_fixture.h"

#include "base/buf.h"

static const char nodes[] =
    "kind: Node\nmetadata: {name: gpu-01, labels: {zone: a, kubernetes.io/hostname: gpu-01}}\n---\n"
    "kind: Node\nmetadata: {name: gpu-02, labels: {zone: a, disk: ssd}}\n---\n"
    "kind: Node\nmetadata: {name: gpu-03, labels: {zone: b}}\n";

/* The name of the pool that a pod with these words in its spec uses. */
static const char *used(const char *spec, bool with_nodes)
{
    static char text[1000];
    (void)snprintf(text, sizeof(text),
                   "kind: Pod\nmetadata: {name: p, namespace: t}\nspec: {%s containers: [{" GPU "}]}\n",
                   spec);
    if (!load((const char *const[]){text, nodes}, with_nodes ? 2 : 1, NULL))
        return "not YAML";
    return workload("p") && workload("p")->pool_name.s ? workload("p")->pool_name.s : "none";
}

#define TERMS(t)                                                                                        \
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" t \
    "]}}},"

TEST(by_name)
{
    CHECK_STR(used("", true), "cluster");
    CHECK_STR(used("nodeName: gpu-07,", false), "cluster@gpu-07");
    CHECK_EQ(pool("cluster@gpu-07")->match.nodes.n, 1);
    CHECK(is_at(pool("cluster@gpu-07")->match.pos, 3, 18));
    CHECK_STR(used("nodeSelector: {kubernetes.io/hostname: gpu-09, zone: x},", false), "cluster@gpu-09");
    CHECK_STR(
        used(TERMS("{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [b, a, b]}]}"),
             false),
        "cluster@a,b");
    CHECK_STR(used(TERMS("{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}"), false),
              "cluster@n1");
    /* what reads as a pattern is no node's name */
    CHECK_STR(used("nodeName: 'gpu-[1-9]',", false), "cluster");
    CHECK_STR(used("nodeName: 'a,b',", false), "cluster");
    CHECK_STR(used("nodeName: '',", false), "cluster");
}

TEST(by_labels_of_known_nodes)
{
    CHECK_STR(used("nodeSelector: {zone: a},", false), "cluster"); /* no Node documents */
    CHECK_STR(used("nodeSelector: {zone: a},", true), "cluster@gpu-01,gpu-02");
    CHECK_STR(used("nodeSelector: {zone: a, disk: ssd},", true), "cluster@gpu-02");
    CHECK_STR(used("nodeSelector: {zone: c},", true), "cluster");
    CHECK_STR(used(TERMS("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}"), true),
              "cluster@gpu-03");
    CHECK_STR(used(TERMS("{matchExpressions: [{key: disk, operator: Exists}]}"), true), "cluster@gpu-02");
    CHECK_STR(
        used(
            TERMS(
                "{matchExpressions: [{key: disk, operator: DoesNotExist}, {key: zone, operator: In, values: [a]}]}"),
            true),
        "cluster@gpu-01");
    /* alternatives add up; one that is open leaves all open */
    CHECK_STR(used(TERMS("{matchExpressions: [{key: zone, operator: In, values: [b]}]}, "
                         "{matchFields: [{key: metadata.name, operator: In, values: [gpu-01]}]}"),
                   true),
              "cluster@gpu-01,gpu-03");
    CHECK_STR(used(TERMS("{matchExpressions: [{key: zone, operator: In, values: [z]}]}, "
                         "{matchFields: [{key: metadata.name, operator: In, values: [gpu-01]}]}"),
                   true),
              "cluster");
    CHECK_STR(used("affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}},", true),
              "cluster");
    CHECK_STR(used(TERMS("5"), true), "cluster");
}

TEST(shapes)
{
    CHECK_STR(used("nodeSelector: [x], affinity: 5, nodeName: {},", true), "cluster");
    CHECK_EQ(diags.n_errors, 3);
}

TEST(many_nodes_have_a_short_name)
{
    struct bh_buf b BH_AUTO(bh_buf_fini);
    bh_buf_init(&b, 1 << 16);
    for (int i = 0; i < 100; i++)
        bh_buf_printf(&b, "kind: Node\nmetadata: {name: n%02d, labels: {gpu: yes}}\n---\n", i);
    CHECK(load((const char *const[]){bh_buf_text(&b),
                                     "kind: Pod\nmetadata: {name: p}\n"
                                     "spec: {nodeSelector: {gpu: yes}, containers: [{" GPU "}]}\n"},
               2, NULL));
    CHECK_STR(workload("p")->pool_name.s, "cluster@n00,n01,n02+97");
    CHECK_EQ(pool("cluster@n00,n01,n02+97")->match.nodes.n, 100);
    forget();
}

TEST_MAIN
