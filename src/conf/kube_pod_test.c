/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and what makes them. */
#include "conf/kube_fixture.h"

TEST(every_field_of_a_pod)
{
    CHECK(read1(full_pod));
    CHECK_EQ(diags.at.n, 0);
    CHECK_EQ(policy.tenants.n, 1);
    const struct bh_tenant *t = tenant("team-a");
    CHECK(t);
    CHECK_STR(t->object, "Deployment/team-a/web");
    CHECK_EQ(t->quota.pos.line, 0);
    CHECK_EQ(t->network.policy, BH_NET_UNSET); /* no network policy at all: the files do not speak of it */
    const struct bh_workload *w = workload("web");
    CHECK(w);
    CHECK_STR(w->object, "Deployment/team-a/web");
    CHECK_STR(w->tenant_name.s, "team-a");
    CHECK(is_at(w->pos, 1, 1));
    CHECK(w->host_pid && w->host_ipc && w->host_network && w->gang);
    CHECK(w->has_tier);
    CHECK_EQ(w->tier, BH_TIER_VM);
    CHECK(w->has_priority);
    CHECK_EQ(w->priority, BH_PRIORITY_HIGH);
    CHECK_EQ(w->pods, 3);
    CHECK_STR(w->pool_name.s, "cluster-vm");
    const struct bh_pool *p = pool("cluster-vm");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_WHOLE);
    CHECK_EQ(p->tenant_names.n, 1);
    CHECK(is_at(p->pos, 34, 28));
    p = pool("mig-vm");
    CHECK(p);
    CHECK_EQ(p->mechanism, BH_MECH_MIG);
    CHECK_STR(p->exposes.at[0].s, "nvidia.com/mig-1g.18gb");
}

TEST(every_kind_of_controller)
{
    static const char *const kinds[] = {"ReplicaSet", "StatefulSet", "DaemonSet", "Job",
                                        "ReplicationController"};
    char text[512];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "kind: %s\nmetadata: {name: x}\nspec: {template: {spec: {containers: [{" GPU "}]}}}\n",
                       kinds[i]);
        CHECK(read1(text));
        CHECK_EQ(diags.at.n, 0);
        CHECK(workload("x"));
        CHECK(workload("x")->gang);
        CHECK_EQ(workload("x")->gpus_milli, 1000);
    }
    CHECK(
        read1("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n"
              "spec: {schedule: '* * * * *', jobTemplate: {spec: {parallelism: 3, completionMode: Indexed,\n"
              "  template: {spec: {containers: [{" GPU "}]}}}}}\n"));
    CHECK(workload("x"));
    CHECK_EQ(workload("x")->gpus_milli, 3000);
    CHECK(!workload("x")->gang);
    CHECK(is_at(workload("x")->gang_pos, 4, 65));
    CHECK(
        read1("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {tasks: []}\n"));
    CHECK_EQ(policy.workloads.n, 0);
    CHECK(diag_with("kind `Job` of batch.volcano.sh is not understood"));
}

TEST(pods_at_once)
{
    static const struct {
        const char *kind, *spec;
        uint64_t pods;
    } cases[] = {
        {"Deployment", "", 1},
        {"Deployment", "replicas: 0,", 0},
        {"StatefulSet", "replicas: 5,", 5},
        {"DaemonSet", "", 0},
        {"Job", "", 1},
        {"Job", "parallelism: 10, completions: 100,", 10},
        {"Job", "parallelism: 10, completions: 4,", 4},
    };
    char text[400];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "kind: %s\nmetadata: {name: x}\nspec: {%s template: {spec: {containers: [{" GPU
                       "}]}}}\n",
                       cases[i].kind, cases[i].spec);
        CHECK(read1(text));
        CHECK_EQ(diags.at.n, 0);
        CHECK_EQ(workload("x")->pods, cases[i].pods);
        CHECK_EQ(workload("x")->requests.at[0].milli, 1000);
    }
    CHECK(read1(POD("{" GPU "}")));
    CHECK_EQ(workload("p")->pods, 1);
    /* a ReplicaSet of a Deployment is counted with that */
    CHECK(read1("kind: ReplicaSet\nmetadata: {name: x, ownerReferences: [{kind: Deployment, name: y}]}\n"
                "spec: {replicas: 3, template: {spec: {containers: [{" GPU "}]}}}\n"));
    CHECK_EQ(workload("x")->pods, 0);
}

TEST(pods_that_have_nothing_to_do_with_gpus)
{
    static const char quota[] =
        "kind: ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n";
    CHECK(
        load((const char *const[]){quota,
                                   "kind: Deployment\nmetadata: {name: web, namespace: shop}\n"
                                   "spec: {template: {spec: {hostPID: true, initContainers: [{name: sysctl, "
                                   "securityContext: {privileged: true}}], containers: [{name: web}]}}}\n"},
             2, NULL));
    CHECK_EQ(diags.at.n, 0);
    CHECK(tenant("shop"));
    CHECK_EQ(policy.workloads.n, 0);
}

TEST(gangs)
{
    static const char *const ganged[] = {
        "metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {",
        "metadata: {name: j, annotations: {scheduling.k8s.io/group-name: g}}\nspec: {",
        "metadata: {name: j}\nspec: {S",
    };
    char text[512];
    for (size_t i = 0; i < 3; i++) {
        bool by_scheduler = i == 2;
        (void)snprintf(text, sizeof(text),
                       "kind: Job\n%.*s parallelism: 8, completionMode: Indexed, completions: 8,"
                       "template: {spec: {%s containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}}}\n",
                       (int)(strlen(ganged[i]) - by_scheduler), ganged[i],
                       by_scheduler ? "schedulerName: volcano," : "");
        CHECK(read1(text));
        CHECK_EQ(diags.at.n, 0);
        CHECK(workload("j")->gang);
        CHECK_EQ(workload("j")->gpus_milli, 16000);
    }
    /* pods of a work queue do not wait for each other */
    CHECK(read1("kind: Job\nmetadata: {name: j}\n"
                "spec: {parallelism: 8, template: {spec: {containers: [{" GPU "}]}}}\n"));
    CHECK(workload("j")->gang);
    CHECK_EQ(workload("j")->gpus_milli, 1000);
}

TEST(priorities)
{
    static const struct {
        const char *name;
        int priority;
    } cases[] = {
        {"system-node-critical", BH_PRIORITY_CRITICAL},
        {"prod-high", BH_PRIORITY_HIGH},
        {"critical", BH_PRIORITY_HIGH},
        {"low", BH_PRIORITY_LOW},
        {"low-latency", BH_PRIORITY_NORMAL},
        {"spare", BH_PRIORITY_LOW},
        {"top", BH_PRIORITY_HIGH},
        {"big", BH_PRIORITY_NORMAL},
        {"flow", BH_PRIORITY_NORMAL},
    };
    char text[600];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "kind: PriorityClass\nmetadata: {name: spare}\nvalue: -5\n---\n"
                       "kind: PriorityClass\nmetadata: {name: big}\nvalue: 1000000\n---\n"
                       "kind: PriorityClass\nmetadata: {name: top}\nvalue: 1500000\nglobalDefault: %s\n---\n"
                       "kind: Pod\nmetadata: {name: p}\nspec: {priorityClassName: %s, containers: [{" GPU
                       "}]}\n",
                       i % 2 ? "false" : "true", cases[i].name);
        CHECK(read1(text));
        CHECK_EQ(diags.at.n, 0);
        CHECK(workload("p")->has_priority);
        CHECK_EQ(workload("p")->priority, cases[i].priority);
    }
    CHECK(read1("kind: PriorityClass\nmetadata: {name: d-high}\nvalue: 5\nglobalDefault: true\n---\n" POD(
        "{" GPU "}")));
    CHECK(workload("p")->has_priority);
    CHECK_EQ(workload("p")->priority, BH_PRIORITY_HIGH);
    CHECK(read1(POD("{" GPU "}")));
    CHECK(!workload("p")->has_priority);
    CHECK_EQ(workload("p")->priority, BH_PRIORITY_NORMAL);
    CHECK(read1("kind: PriorityClass\nmetadata: {name: d}\nvalue: much\n"));
    CHECK_EQ(diags.n_errors, 1);
}

TEST(runtime_classes)
{
    static const struct {
        const char *handler;
        int tier;
    } cases[] = {
        {"runsc", BH_TIER_SANDBOX},
        {"gvisor", BH_TIER_SANDBOX},
        {"kata-qemu", BH_TIER_VM},
        {"kata-qemu-snp", BH_TIER_CVM},
        {"kata-qemu-nvidia-gpu-tdx", BH_TIER_CVM},
        {"nvidia", BH_TIER_CONTAINER},
    };
    char text[300];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "kind: Pod\nmetadata: {name: p}\nspec: {runtimeClassName: %s, containers: [{" GPU
                       "}]}\n",
                       cases[i].handler);
        CHECK(read1(text));
        CHECK(workload("p")->has_tier);
        CHECK_EQ(workload("p")->tier, cases[i].tier);
    }
    CHECK(read1(POD("{" GPU "}")));
    CHECK(!workload("p")->has_tier);
}

TEST_MAIN
