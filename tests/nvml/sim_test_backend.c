/* SPDX-License-Identifier: Apache-2.0 */
/* sim_test_backend.c - the product's own reader of GPUs, over the stand-in library, over simulated nodes. */
#include "gpu/gpu.h"
#include "sim_test.h"

static int read_node(const struct sim *s, struct bh_gpu_snapshot *ret, struct bh_err *err)
{
    char root[160];
    (void)snprintf(root, sizeof(root), "%s/sysroot", s->folder);
    if (setenv("BULKHEAD_NVML", BH_SIM_NVML, 1) < 0 || setenv("BULKHEAD_SYSROOT", root, 1) < 0)
        return BH_SYSTEM;
    return bh_gpu_read(&bh_gpu_nvml, ret, err);
}

static void check_device(const struct bh_gpu_device *d, const struct bh_sim_gpu *g)
{
    CHECK(d->alive);
    CHECK_STR(d->name, g->name);
    CHECK_STR(d->uuid, g->uuid);
    CHECK_STR(d->serial, g->serial);
    CHECK_STR(d->pci, g->pci);
    CHECK_STR(d->vbios, g->vbios);
    CHECK(d->model == g->model);
    CHECK_EQ(d->minor, g->minor);
    CHECK_EQ(d->module_id, (int32_t)g->module_id);
    CHECK_EQ(d->numa, g->numa);
    CHECK(!d->total_bytes.why && !d->free_bytes.why && !d->processes_seen.why && !d->temperature_c.why);
    CHECK_EQ(d->total_bytes.v >> 20, g->total_bytes >> 20);
    CHECK_EQ(d->up.n, g->links);
    CHECK_EQ(d->processes.n, 0);
}

TEST(every_model_as_the_node_has_it)
{
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        struct sim s;
        struct bh_gpu_snapshot snap = {0};
        struct bh_err err = {0};
        char scene[64];
        (void)snprintf(scene, sizeof(scene), "%sx2", bh_catalog_at(i)->name);
        CHECK(sim_start(&s, scene));
        CHECK_EQ(read_node(&s, &snap, &err), BH_OK);
        CHECK(snap.simulated);
        CHECK_STR(snap.driver, s.node.driver);
        CHECK_EQ(snap.devices.n, 2);
        for (size_t k = 0; k < 2; k++)
            check_device(&snap.devices.at[k], &s.node.gpus[k]);
        if (bh_test_failed)
            printf("# on %s\n", scene);
        CHECK_EQ(snap.paths.n, 1);
        bh_gpu_snapshot_fini(&snap);
        sim_stop(&s);
        CHECK(!bh_test_failed);
    }
}

/* Healthy, mixed and broken ones alike: as many GPUs as there are, and the dead ones marked. */
TEST(every_scene_can_be_read)
{
    for (const struct bh_sim_scene *scene = bh_sim_scenes; scene->name; scene++) {
        struct sim s;
        struct bh_gpu_snapshot snap = {0};
        struct bh_err err = {0};
        CHECK(sim_start(&s, scene->name));
        int rc = read_node(&s, &snap, &err);
        if (rc < 0)
            printf("# %s: %s\n", scene->name, err.msg);
        CHECK_EQ(rc, BH_OK);
        CHECK_EQ(snap.devices.n, s.node.n_gpus);
        for (size_t i = 0; i < snap.devices.n; i++)
            if (snap.devices.at[i].alive == s.node.gpus[i].dead) {
                printf("# %s: GPU %zu\n", scene->name, i);
                CHECK(false);
            }
        bh_gpu_snapshot_fini(&snap);
        sim_stop(&s);
    }
}

TEST(sixty_four_and_none)
{
    struct sim s;
    struct bh_gpu_snapshot snap = {0};
    struct bh_err err = {0};
    CHECK(sim_start(&s, "H100-80GB-SXMx64"));
    CHECK_EQ(read_node(&s, &snap, &err), BH_OK);
    CHECK_EQ(snap.devices.n, 64);
    CHECK_STR(snap.devices.at[63].uuid, s.node.gpus[63].uuid);
    bh_gpu_snapshot_fini(&snap);
    sim_stop(&s);
    CHECK(sim_start(&s, "none"));
    CHECK_EQ(read_node(&s, &snap, &err), BH_OK);
    CHECK_EQ(snap.devices.n, 0);
    bh_gpu_snapshot_fini(&snap);
    sim_stop(&s);
}

TEST(eight_in_one_domain_with_a_tenant_and_a_dead_one)
{
    struct sim s;
    struct bh_gpu_snapshot snap = {0};
    struct bh_err err = {0};
    CHECK(sim_start(&s, "H100-80GB-SXMx8"));
    struct tenant t = tenant_start(2, UINT32_MAX, UINT32_MAX, 1 << 30);
    CHECK_EQ(t.status, RM_OK);
    CHECK_EQ(sim_break("gpu 5 lost"), 0);
    CHECK_EQ(read_node(&s, &snap, &err), BH_OK);
    CHECK_EQ(snap.devices.n, 8);
    for (size_t i = 0; i < 8; i++)
        if (i != 5)
            CHECK_STR(snap.devices.at[i].domain, "nvl-0");
    CHECK(!snap.devices.at[5].alive);
    CHECK_EQ(snap.devices.at[2].processes.n, 1);
    CHECK_EQ(snap.devices.at[2].processes.at[0].pid, getpid());
    CHECK_STR(snap.devices.at[2].processes.at[0].kind, "compute");
    CHECK(snap.devices.at[2].processes.at[0].memory_bytes.v >= 1 << 30);
    bh_gpu_snapshot_fini(&snap);
    tenant_end(&t);
    sim_stop(&s);
}

TEST(a_cut_card_with_its_instances)
{
    struct sim s;
    struct bh_gpu_snapshot snap = {0};
    struct bh_err err = {0};
    int activation;
    nvml_gpu_instance_t gi = NULL;
    nvml_compute_instance_t ci = NULL;
    const struct nvml_placement at = {4, 4};
    CHECK(sim_init(&s, "A100-40GBx2"));
    nvml_device_t gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlDeviceSetMigMode, (nvml_device_t, unsigned, int *), gpu, 1, &activation), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceCreateGpuInstanceWithPlacement,
                (nvml_device_t, unsigned, const void *, nvml_gpu_instance_t *), gpu, 9, &at, &gi),
             NVML_OK);
    CHECK_EQ(NV(&s, nvmlGpuInstanceCreateComputeInstance,
                (nvml_gpu_instance_t, unsigned, nvml_compute_instance_t *), gi, 2, &ci),
             NVML_OK);
    CHECK_EQ(read_node(&s, &snap, &err), BH_OK);
    const struct bh_gpu_device *d = &snap.devices.at[0];
    CHECK_EQ(d->mig_mode.v, 1);
    CHECK_EQ(d->instances.n, 1);
    CHECK_STR(d->instances.at[0].profile, "3g.20gb");
    CHECK_EQ(d->instances.at[0].gi_profile_id.v, 9);
    CHECK_EQ(d->instances.at[0].start.v, 4);
    CHECK_EQ(d->instances.at[0].size.v, 4);
    CHECK_EQ(d->instances.at[0].total_bytes.v >> 20, 20091);
    CHECK_EQ(d->instances.at[0].sm.v, 42);
    CHECK(d->instances.at[0].uuid && strncmp(d->instances.at[0].uuid, "MIG-", 4) == 0);
    CHECK_EQ(snap.devices.at[1].mig_mode.v, 0);
    bh_gpu_snapshot_fini(&snap);
    sim_stop(&s);
}

TEST(no_node_is_no_driver)
{
    struct sim s;
    struct bh_gpu_snapshot snap = {0};
    struct bh_err err = {0};
    CHECK(sim_start(&s, "T4"));
    CHECK_EQ(unsetenv("BULKHEAD_SIM"), 0);
    CHECK_EQ(read_node(&s, &snap, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "not loaded") != NULL);
    sim_stop(&s);
}

TEST_MAIN
