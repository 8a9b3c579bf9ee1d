/* SPDX-License-Identifier: Apache-2.0 */
/* What containers ask for and can reach. */
#include "conf/kube_fixture.h"

TEST(every_field_of_its_containers)
{
    CHECK(read1(full_pod));
    const struct bh_workload *w = workload("web");
    CHECK(w);
    CHECK(w->privileged);
    CHECK_EQ(w->requests.n, 2);
    CHECK_STR(w->requests.at[0].resource, "nvidia.com/gpu");
    CHECK_EQ(w->requests.at[0].milli, 4000); /* the init container needs more than both together */
    CHECK(is_at(w->requests.at[0].pos, 34, 28));
    CHECK_STR(w->requests.at[1].resource, "nvidia.com/mig-1g.18gb");
    CHECK_EQ(w->gpus_milli, 4000);
    CHECK_STR(w->image.s, "web:1");
    CHECK(is_at(w->image.pos, 27, 16));
    CHECK_EQ(w->mounts.n, 2);
    CHECK_STR(w->mounts.at[0].s, "/data");
    CHECK_EQ(w->devices.n, 1);
    CHECK_STR(w->devices.at[0].s, "/tmp/nvidia-mps");
    CHECK(is_at(w->devices.at[0].pos, 20, 38));
    CHECK_EQ(w->env.n, 2);
    CHECK_STR(w->env.at[0].key, "CUDA_MEMSET_ON_ALLOC");
    CHECK_STR(w->env.at[0].value, "1");
    CHECK(is_at(w->env.at[0].pos, 29, 11));
    CHECK_STR(w->env.at[1].value, ""); /* from elsewhere: not known */
}

TEST(reaching_for_the_device_is_asking)
{
    static const char pod[] =
        "kind: Pod\nmetadata: {name: p, namespace: %s}\nspec: {containers: [{name: c,"
        "securityContext: {privileged: true}}], volumes: [{name: d, hostPath: {path: %s}}]}\n";
    char text[400];
    (void)snprintf(text, sizeof(text), pod, "team-a", "/dev/nvidia0");
    CHECK(read1(text));
    CHECK(tenant("team-a") && workload("p"));
    CHECK(workload("p")->privileged);
    CHECK_EQ(workload("p")->devices.n, 1);
    /* the platform's own pods do so by trade */
    (void)snprintf(text, sizeof(text), pod, "gpu-operator", "/dev/nvidia0");
    CHECK(read1(text));
    CHECK_EQ(policy.tenants.n + policy.workloads.n, 0);
    /* any pod of a tenant counts; all of /dev holds the GPUs too */
    (void)snprintf(
        text, sizeof(text),
        "kind: ResourceQuota\nmetadata: {name: q, namespace: team-a}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n---\n"
        "kind: Pod\nmetadata: {name: p, namespace: %s}\nspec: {volumes: [{hostPath: {path: %s}}]}\n",
        "team-a", "/dev");
    CHECK(read1(text));
    CHECK(workload("p"));
    CHECK_EQ(workload("p")->devices.n, 1);
}

TEST(sockets_of_mps_daemons_are_reached_for)
{
    static const char *const paths[] = {"/run/nvidia/mps", "/run/nvidia/mps/shm", "/run/nvidia",
                                        "/var/run/nvidia/mps/pipe", "/tmp/nvidia-mps"};
    char text[300];
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        (void)snprintf(
            text, sizeof(text),
            "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}], volumes: [{hostPath: {path: %s}}]}\n",
            paths[i]);
        CHECK(read1(text));
        CHECK(workload("p"));
        CHECK_STR(workload("p")->mounts.at[0].s, paths[i]);
        CHECK_STR(workload("p")->devices.at[0].s, paths[i]);
    }
}

TEST(requests_of_devices)
{
    CHECK(read1(POD("{resources: {limits: {nvidia.com/gpu: 500m}}}")));
    CHECK(diag_with("whole numbers"));
    CHECK_EQ(diags.n_errors, 0);
    CHECK_EQ(workload("p")->gpus_milli, 500);
    CHECK(read1(POD("{resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 2}}}")));
    CHECK(diag_with("differ"));
    CHECK(read1(
        POD("{resources: {limits: {nvidia.com/gpu: one}}}, {resources: {limits: {nvidia.com/gpu: [1]}}}")));
    CHECK_EQ(diags.n_errors, 2);
    CHECK(is_at(diags.at.at[0].pos, 3, 59));
    /* a network card and an amount of memory are no GPUs */
    CHECK(
        read1(POD("{resources: {limits: {nvidia.com/mlnx_rdma: 1, nvidia.com/gpumem: 3000, rdma/hca: 1}}}")));
    CHECK_EQ(policy.tenants.n, 0);
    /* a sidecar runs beside the others */
    CHECK(read1("kind: Pod\nmetadata: {name: p}\nspec: {initContainers: [{restartPolicy: Always, " GPU "}],"
                "containers: [{" GPU "}]}\n"));
    CHECK_EQ(workload("p")->gpus_milli, 2000);
    CHECK(read1(POD(
        "{resources: {limits: {nvidia.com/gpu: 18000000000000000}}}, {resources: {limits: {nvidia.com/gpu: "
        "18000000000000000}}}")));
    CHECK(workload("p")->gpus_milli == UINT64_MAX);
}

TEST_MAIN
