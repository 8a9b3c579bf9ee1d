/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, quotas and the network between them. */
#include "conf/kube_fixture.h"

TEST(quota_makes_a_tenant)
{
    CHECK(read1("# Limits team-a to five GPUs.\n"                   /* 1 */
                "apiVersion: v1\n"                                  /* 2 */
                "kind: ResourceQuota\n"                             /* 3 */
                "metadata:\n"                                       /* 4 */
                "  name: gpu-quota\n"                               /* 5 */
                "  namespace: team-a\n"                             /* 6 */
                "  annotations: {description: At most 4 GPUs}\n"    /* 7 */
                "spec:\n"                                           /* 8 */
                "  hard:\n"                                         /* 9 */
                "    requests.nvidia.com/gpu: \"1\"   # two GPUs\n" /* 10 */
                "    limits.nvidia.com/mig-1g.18gb: 7\n"            /* 11 */
                "    requests.cpu: 10\n"));                         /* 12 */
    CHECK_EQ(diags.at.n, 1);                                        /* of the key on line 11 */
    CHECK_EQ(policy.tenants.n, 1);
    const struct bh_tenant *t = tenant("team-a");
    CHECK(t);
    CHECK_EQ(t->source, BH_SOURCE_KUBERNETES);
    CHECK_STR(t->object, "ResourceQuota/team-a/gpu-quota");
    CHECK_STR(t->domain, "internal");
    CHECK(!t->class_name);
    CHECK_EQ(t->trust, BH_TRUST_INTERNAL);
    CHECK(is_at(t->pos, 2, 1));
    CHECK(is_at(t->quota.pos, 2, 1));
    CHECK(t->quota.has_gpus && t->quota.has_model);
    CHECK_EQ(t->quota.model, BH_QUOTA_HARD);
    CHECK_EQ(t->quota.gpus_milli, 1000);
    CHECK_EQ(t->quota.resources.n, 1);
    CHECK_STR(t->quota.resources.at[0].resource, "nvidia.com/gpu");
    CHECK(is_at(t->quota.resources.at[0].pos, 10, 5));
    CHECK_EQ(t->quota.stated.n, 3);
    CHECK_EQ(t->quota.stated.at[0].milli, 4000);
    CHECK(is_at(t->quota.stated.at[0].pos, 7, 30));
    CHECK_EQ(t->quota.stated.at[1].milli, 5000);
    CHECK(is_at(t->quota.stated.at[1].pos, 1, 1));
    CHECK_EQ(t->quota.stated.at[2].milli, 2000);
    CHECK(is_at(t->quota.stated.at[2].pos, 10, 36));
    CHECK_EQ(t->network.policy, BH_NET_UNSET);
}

TEST(only_requests_bound_devices)
{
    CHECK(read1("kind: ResourceQuota\nmetadata: {name: q, namespace: a}\n"
                "spec: {hard: {limits.nvidia.com/gpu: 4}}\n---\n" /* 3 */
                "kind: ResourceQuota\nmetadata: {name: q, namespace: b, annotations: {note: 5 GPUs}}\n"
                "spec: {hard: {nvidia.com/gpu: 4}}\n")); /* 7 */
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(diags.at.n, 2);
    const struct bh_diag *d = diag_with("`limits.nvidia.com/gpu` bounds nothing");
    CHECK(d && strstr(d->message, "write `requests.nvidia.com/gpu`"));
    CHECK(is_at(d->pos, 3, 15));
    CHECK(is_at(diag_with("`nvidia.com/gpu` bounds nothing")->pos, 7, 15));
    CHECK(tenant("a") && tenant("b"));
    CHECK_EQ(tenant("a")->quota.resources.n + tenant("b")->quota.resources.n + tenant("b")->quota.stated.n,
             0);
    CHECK(!tenant("a")->quota.pos.line && !tenant("b")->quota.pos.line && !tenant("b")->quota.has_gpus);
}

TEST(annotations_that_speak_of_gpus)
{
    CHECK(read1(
        "kind: ResourceQuota\nmetadata:\n  name: q\n  annotations:\n"
        "    note: max 8 GPUs\n" /* 5 */
        "    example.com/limit: twenty-four GPU max\n"
        "    other: max 8\n"
        "    kubectl.kubernetes.io/last-applied-configuration: '{\"requests.nvidia.com/gpu\": \"2 gpus\"}'\n"
        "    a/description: at least 2 GPUs, at most 4\n"
        "spec: {hard: {requests.nvidia.com/gpu: 4}}\n"));
    const struct bh_quota *q = &tenant("default")->quota;
    CHECK_EQ(q->stated.n, 3);
    CHECK_EQ(q->stated.at[0].milli, 8000);
    CHECK(is_at(q->stated.at[0].pos, 5, 11));
    CHECK_EQ(q->stated.at[1].milli, 24000);
    CHECK_EQ(q->stated.at[2].milli, 2000);
    CHECK_EQ(q->stated.at[2].n_also, 1);
    CHECK_EQ(q->stated.at[2].also[0], 4000);
    CHECK_STR(q->stated.at[2].words, "at least 2 GPUs, at most 4");
}

TEST(namespace_labels_speak_of_trust)
{
    CHECK(read1("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: acme}\n"
                "spec: {hard: {requests.nvidia.com/gpu: 2}}\n"
                "---\n"
                "apiVersion: v1\nkind: Namespace\n" /* 6 */
                "metadata:\n"
                "  name: acme\n"
                "  labels: {bulkhead.dev/trust: external, bulkhead.dev/class: serving}\n" /* 10 */
                "  annotations: {bulkhead.dev/cost-center: cc-7}\n"
                "---\n"
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: plain}\n"
                "---\n"
                "apiVersion: v1\nkind: Namespace\n" /* 17 */
                "metadata: {name: globex, labels: {bulkhead.dev/trust: partner, bulkhead.dev/domain: g}}\n"));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.tenants.n, 2); /* `plain` has nothing to do with GPUs */
    const struct bh_tenant *a = tenant("acme"), *g = tenant("globex");
    CHECK(a && g);
    CHECK_EQ(a->trust, BH_TRUST_EXTERNAL);
    CHECK_STR(a->domain, "acme");
    CHECK_STR(a->class_name, "serving");
    CHECK(is_at(a->class_pos, 10, 62));
    CHECK_STR(a->cost_center, "cc-7");
    CHECK_STR(a->object, "Namespace/acme");
    CHECK(is_at(a->pos, 6, 1));
    CHECK(is_at(a->quota.pos, 1, 1));
    CHECK_EQ(g->trust, BH_TRUST_PARTNER);
    CHECK_STR(g->domain, "g");
    CHECK(is_at(g->pos, 17, 1));
    CHECK_EQ(g->quota.pos.line, 0);

    CHECK(read1("kind: Namespace\nmetadata: {name: a, labels: {bulkhead.dev/trust: friendly}}\n"));
    CHECK_EQ(diags.n_errors, 1);
    CHECK(is_at(diags.at.at[0].pos, 2, 50));
}

TEST(stricter_of_two_quotas_and_scopes)
{
    CHECK(read1(
        "kind: ResourceQuota\nmetadata: {name: a, namespace: t}\nspec: {hard: {requests.nvidia.com/gpu: 8}}\n"
        "---\n"
        "kind: ResourceQuota\nmetadata: {name: b, namespace: t}\n"
        "spec: {hard: {requests.nvidia.com/gpu: 2, requests.amd.com/gpu: 1}}\n" /* 7 */
        "---\n"
        "kind: ResourceQuota\nmetadata: {name: c, namespace: t}\n" /* 9 */
        "spec: {hard: {requests.nvidia.com/gpu: 1}, scopes: [BestEffort]}\n"
        "---\n"
        "kind: ResourceQuota\nmetadata: {name: d, namespace: t}\n"
        "spec:\n"
        "  hard: {requests.nvidia.com/gpu: 1}\n"
        "  scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}\n"
        "---\n"
        "kind: ResourceQuota\nmetadata: {name: only, namespace: scoped}\n"
        "spec: {hard: {requests.nvidia.com/gpu: 1}, scopes: [Terminating]}\n"));
    const struct bh_tenant *t = tenant("t");
    CHECK(t);
    CHECK_EQ(t->quota.gpus_milli, 2000);
    CHECK_EQ(t->quota.resources.n, 2);
    CHECK(is_at(t->quota.resources.at[0].pos, 7, 15));
    CHECK(is_at(t->quota.pos, 1, 1));
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(diags.at.n, 3);
    const struct bh_diag *d = diag_with("ResourceQuota t/c has scopes");
    CHECK(d && is_at(d->pos, 9, 1));
    CHECK(diag_with("ResourceQuota t/d has scopes"));
    t = tenant("scoped");
    CHECK(t);
    CHECK_EQ(t->quota.pos.line, 0);
    CHECK(!t->quota.has_gpus);
}

TEST(comments_belong_to_their_document)
{
    CHECK(read1(
        "kind: ResourceQuota\nmetadata: {name: a, namespace: a}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n"
        "# these are three GPUs\n" /* 4: directly below */
        "---\n"
        "# nine GPUs\n" /* 6: separated from the object by a blank line */
        "\n"
        "# seven GPUs\n"
        "kind: ResourceQuota\nmetadata: {name: b, namespace: b}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n"));
    const struct bh_tenant *a = tenant("a"), *b = tenant("b");
    CHECK(a && b);
    CHECK_EQ(a->quota.stated.n, 1);
    CHECK_EQ(a->quota.stated.at[0].milli, 3000);
    CHECK(is_at(a->quota.stated.at[0].pos, 4, 1));
    CHECK_EQ(b->quota.stated.n, 1);
    CHECK_EQ(b->quota.stated.at[0].milli, 7000);
    CHECK_STR(b->quota.stated.at[0].words, "seven GPUs");
}

static int network_of(const char *spec)
{
    char text[600];
    (void)snprintf(
        text, sizeof(text),
        "kind: ResourceQuota\nmetadata: {name: q, namespace: t}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n---\n"
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: n, namespace: t}\nspec: %s\n",
        spec);
    return load((const char *const[]){text, POD("{name: c}")}, 2, NULL) && tenant("t")
               ? tenant("t")->network.policy
               : -1;
}

TEST(silence_about_the_network_is_no_answer)
{
    static const char policy_of_a[] =
        "kind: NetworkPolicy\nmetadata: {name: n, namespace: a}\nspec: {podSelector: {}}\n";
    static const char cilium[] =
        "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: c, namespace: t}\n";
    static const char calico[] =
        "apiVersion: projectcalico.org/v3\nkind: NetworkPolicy\nmetadata: {name: c, namespace: t}\n"
        "spec: {selector: all()}\n";
    static const char quota[] = "kind: ResourceQuota\nmetadata: {name: q, namespace: t}\n"
                                "spec: {hard: {requests.nvidia.com/gpu: 1}}\n";
    CHECK(read1(POD("{" GPU "}"))); /* pods and no network policy anywhere */
    CHECK_EQ(tenant("t")->network.policy, BH_NET_UNSET);
    CHECK(load((const char *const[]){quota, policy_of_a}, 2, NULL)); /* no pods of that namespace */
    CHECK_EQ(tenant("t")->network.policy, BH_NET_UNSET);
    CHECK(load((const char *const[]){POD("{" GPU "}"), policy_of_a}, 2, NULL));
    CHECK_EQ(tenant("t")->network.policy, BH_NET_OPEN);
    CHECK(load((const char *const[]){POD("{" GPU "}"), policy_of_a, cilium}, 3, NULL));
    CHECK_EQ(tenant("t")->network.policy, BH_NET_UNSET);
    CHECK(diag_with("kind `CiliumNetworkPolicy` of cilium.io is not understood"));
    CHECK(load((const char *const[]){POD("{" GPU "}"), policy_of_a, calico}, 3, NULL));
    CHECK_EQ(tenant("t")->network.policy, BH_NET_UNSET);
    CHECK(diag_with("kind `NetworkPolicy` of projectcalico.org is not understood"));
}

TEST(network_policies)
{
    CHECK_EQ(network_of("{podSelector: {}, policyTypes: [Ingress, Egress]}"), BH_NET_DEFAULT_DENY);
    CHECK(is_at(tenant("t")->network.pos, 5, 1));
    CHECK_EQ(network_of("{podSelector: {}}"), BH_NET_DEFAULT_DENY);
    CHECK_EQ(network_of("{podSelector: {}, ingress: []}"), BH_NET_DEFAULT_DENY);
    CHECK_EQ(network_of("{podSelector: {}, policyTypes: [Egress]}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {matchExpressions: [{key: a, operator: Exists}]}}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {}, ingress: [{}]}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}"), BH_NET_OPEN);
    CHECK_EQ(network_of("{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"), BH_NET_DEFAULT_DENY);
    CHECK_EQ(network_of("{podSelector: {}}\n---\nkind: NetworkPolicy\nmetadata: {name: m, namespace: t}\n"
                        "spec: {podSelector: {}, ingress: [{}]}"),
             BH_NET_OPEN);
    CHECK(is_at(tenant("t")->network.pos, 10, 1));
    CHECK_EQ(network_of("{podSelector: {}}\n---\nkind: NetworkPolicy\nmetadata: {name: m, namespace: t}\n"
                        "spec: {podSelector: {}}"),
             BH_NET_DEFAULT_DENY);
    CHECK(is_at(tenant("t")->network.pos, 5, 1));
    CHECK_EQ(network_of("{podSelector: [], colour: red}"), BH_NET_DEFAULT_DENY);
    CHECK_EQ(diags.n_errors, 1);
    CHECK(diag_with("`colour` in a NetworkPolicy spec"));
}

TEST_MAIN
