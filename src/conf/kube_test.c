/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering documents, and what is not understood. */
#include "conf/kube_fixture.h"

#include "base/buf.h"
#include "base/choice.h"

TEST(lists_are_unpacked)
{
    CHECK(read1("kind: List\napiVersion: v1\nitems:\n"
                "- kind: ResourceQuota\n" /* 4 */
                "  metadata: {name: q}\n"
                "  spec: {hard: {requests.nvidia.com/gpu: 3}}\n"
                "# two GPUs for the next one\n"
                "- kind: NamespaceList\n"
                "  items:\n"
                "  - kind: Namespace\n" /* 10 */
                "    metadata: {name: default, labels: {bulkhead.dev/trust: partner}}\n"
                "- 5\n"));
    CHECK_EQ(policy.tenants.n, 1);
    const struct bh_tenant *t = tenant("default");
    CHECK(t);
    CHECK(is_at(t->pos, 10, 5));
    CHECK(is_at(t->quota.pos, 4, 3));
    CHECK_EQ(t->trust, BH_TRUST_PARTNER);
    CHECK_EQ(t->quota.stated.n, 0);
    CHECK_EQ(diags.n_errors, 1);
    CHECK(is_at(diags.at.at[0].pos, 12, 3));
}

TEST(unknown_things_are_named_once)
{
    CHECK(read1("kind: Service\nmetadata: {name: s}\n---\nkind: PyTorchJob\nmetadata: {name: a}\n---\n"
                "kind: PyTorchJob\nmetadata: {name: b}\n---\n"
                "kind: Pod\nmetadata: {name: p}\nspec: {colour: red, containers: [{" GPU
                ", flavour: sweet},{flavour: 1}]}\n"
                "---\nhello\n---\na: b\n"));
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(diags.at.n, 5);
    CHECK(is_at(diag_with("kind `PyTorchJob`")->pos, 4, 1));
    CHECK(diag_with("`colour` in a pod spec"));
    CHECK(diag_with("`flavour` in a container"));
    CHECK(diag_with("that is no object"));
    CHECK(diag_with("without a `kind`"));
}

TEST(kinds_are_told_apart_by_their_group)
{
    CHECK(read1("apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s}\nspec: {}\n---\n"
                "apiVersion: v1\nkind: Service\nmetadata: {name: t}\n---\n"
                "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: k}\n---\n"
                "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: n}\n---\n"
                "apiVersion: v1\nkind: Deployment\nmetadata: {name: d}\n---\n"
                "apiVersion: x.org/v1\nkind: AllowList\nmetadata: {name: a}\n"));
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(diags.at.n, 4);
    CHECK(is_at(diag_with("kind `Service` of serving.knative.dev is not understood and is passed over")->pos,
                1, 1));
    CHECK(diag_with("kind `ClusterPolicy` of kyverno.io"));
    CHECK(diag_with("kind `Deployment` is not understood"));
    CHECK(diag_with("kind `AllowList` of x.org"));
}

TEST(pods_of_an_unknown_kind_are_said_to_be_unjudged)
{
    CHECK(read1(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\n"
        "spec: {template: {spec: {containers: [{securityContext: {privileged: true}, " GPU "}]}}}\n---\n"
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
        "spec: {}\n---\napiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: k}\n"
        "spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [5, {" GPU "}]}}}}}\n---\n"
        "apiVersion: x.org/v1\nkind: Agent\nspec: {initContainers: [{securityContext: {privileged: true}}]}\n"));
    CHECK_EQ(diags.at.n, 3);
    CHECK(diag_with(
        "kind `Rollout` of argoproj.io is not understood and is passed over; it makes privileged pods that ask "
        "for GPUs, which are not judged"));
    CHECK(diag_with(
        "kind `PyTorchJob` of kubeflow.org is not understood and is passed over; it makes pods that ask for GPUs, "
        "which are not judged"));
    CHECK(diag_with(
        "kind `Agent` of x.org is not understood and is passed over; it makes privileged pods, which"));
}

TEST(broken_shapes_are_errors)
{
    CHECK(read1(
        "kind: Pod\nmetadata: []\nspec: {containers: {}, volumes: x}\n"
        "---\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [5, {resources: 7}, {resources: {limits: []}},\n"
        "  {env: x, securityContext: x, volumeMounts: x}]}\n"
        "---\nkind: Deployment\nmetadata: {name: d}\nspec: {template: []}\n"
        "---\nkind: ResourceQuota\nmetadata: {name: d}\nspec: {hard: 5}\n"
        "---\nkind: ResourceQuota\nmetadata: {name: d}\nspec: {hard: {nvidia.com/gpu: lots, nvidia.com/x: {}}}\n"
        "---\nkind: ConfigMap\nmetadata: {name: d}\ndata: []\n"
        "---\nkind: List\nitems: {}\n"
        "---\nkind: Pod\nmetadata: {name: q}\nspec:\n"));
    CHECK_EQ(diags.n_errors, 15);
    CHECK(is_at(diag_with("`containers` must be a list, not a map")->pos, 3, 20));
    CHECK(is_at(diag_with("`resources` must be a map, not a single value")->pos, 7, 36));
    CHECK(diag_with("a container must be a map"));
    CHECK(diag_with("`template` must be a map, not a list"));
    CHECK(diag_with("`hard` must be a map, not a single value"));
}

TEST(an_empty_cluster_is_empty)
{
    CHECK(read1(""));
    CHECK_EQ(policy.tenants.n + policy.pools.n + policy.workloads.n + diags.at.n, 0);
    bh_kube_free(NULL);
    forget();
}

TEST(kept_text_is_bounded)
{
    struct bh_buf b BH_AUTO(bh_buf_fini);
    bh_buf_init(&b, 1 << 22);
    bh_buf_str(&b, "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - image: &x \"");
    for (int i = 0; i < 20000; i++)
        bh_buf_str(&b, "0123456789");
    bh_buf_str(&b, "\"\n    " GPU "\n    env:\n");
    for (int i = 0; i < 3; i++)
        bh_buf_str(&b, "    - {name: E, value: *x}\n");
    CHECK(read1(bh_buf_text(&b)));
    CHECK_EQ(workload("p")->env.n, 3);
    CHECK_EQ(strlen(workload("p")->env.at[2].value), 256);
    CHECK_EQ(strlen(workload("p")->image.s), 1024);
    CHECK(policy.arena.total_bytes < 100000);
}

TEST(any_mix_of_known_words)
{
    static const char *const words[] = {
        "kind: ",
        "Pod",
        "ResourceQuota",
        "ConfigMap",
        "spec: ",
        "hard: ",
        "data: ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "nvidia.com/gpu: ",
        "1",
        "containers: ",
        "resources: ",
        "limits: ",
        "metadata: ",
        "name: ",
        "x",
        "\n",
        "---\n",
        "items: ",
        "List",
        "|\n  ",
        "sharing: ",
        "timeSlicing: ",
        "mig-configs: ",
        "&a ",
        "*a",
        "template: ",
        "Job",
    };
    uint8_t bytes[64];
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_tree_error why;
        struct bh_buf b;
        bh_buf_init(&b, 4096);
        while (c.left)
            bh_buf_str(&b, words[bh_choose(&c, sizeof(words) / sizeof(words[0]))]);
        forget();
        if (bh_tree_parse(&trees[0], bh_buf_text(&b), b.n, &why) == 0) {
            bh_tree_fini(&trees[0]);
            CHECK(read1(bh_buf_text(&b)));
            size_t n = diags.at.n, pools = policy.pools.n;
            CHECK(read1(bh_buf_text(&b)));
            CHECK_EQ(diags.at.n, n);
            CHECK_EQ(policy.pools.n, pools);
        }
        bh_buf_fini(&b);
    }
    forget();
}

TEST_MAIN
