/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_test_mig.c - every placement of every model through the stand-in library, as the catalogue has them; compute
 * instances, slices as devices, and what goes on in them.
 */
#include "core/model/catalog.h"
#include "sim_test.h"

enum { NO_ID = UINT32_MAX, MIB = 1 << 20 };
#define DEV nvml_device_t
#define GI  nvml_gpu_instance_t
#define CI  nvml_compute_instance_t

static int mig_on(const struct sim *s, DEV gpu, unsigned mode, int *activation)
{
    return NV(s, nvmlDeviceSetMigMode, (DEV, unsigned, int *), gpu, mode, activation);
}

static int gi_create(const struct sim *s, DEV gpu, unsigned profile, uint32_t start, uint32_t size, GI *ret)
{
    struct nvml_placement at = {start, size};
    return NV(s, nvmlDeviceCreateGpuInstanceWithPlacement, (DEV, unsigned, const void *, GI *), gpu, profile,
              &at, ret);
}

static int gi_destroy(const struct sim *s, GI gi)
{
    return NV(s, nvmlGpuInstanceDestroy, (GI), gi);
}

static int ci_create(const struct sim *s, GI gi, unsigned profile, CI *ret)
{
    return NV(s, nvmlGpuInstanceCreateComputeInstance, (GI, unsigned, CI *), gi, profile, ret);
}

static int ci_destroy(const struct sim *s, CI ci)
{
    return NV(s, nvmlComputeInstanceDestroy, (CI), ci);
}

static unsigned gi_count(const struct sim *s, DEV gpu, unsigned profile)
{
    GI list[16];
    unsigned n = 99;
    return NV(s, nvmlDeviceGetGpuInstances, (DEV, unsigned, GI *, unsigned *), gpu, profile, list, &n) ==
                   NVML_OK
               ? n
               : 99;
}

/* The number of the profile that takes all of an instance. */
static unsigned whole_ci(const struct bh_mig_profile *p)
{
    static const unsigned by_slices[] = {99, 0, 1, 2, 3, 99, 6, 4, 5};
    bool is_wide = p->compute_slices == 1 && p->memory_slices == 2 && p->placement_size == 2;
    return is_wide ? 7 : by_slices[p->compute_slices];
}

static const struct bh_mig_profile *profile_of(const struct bh_gpu_model *m, uint32_t id)
{
    for (size_t i = 0; i < m->n_profiles; i++)
        if (m->profiles[i].gi_profile_id == id)
            return &m->profiles[i];
    return NULL;
}

/* Asked one by one, the library describes just the profiles of the catalogue. */
static void check_profiles(const struct sim *s, DEV gpu, const struct bh_gpu_model *m)
{
    size_t seen = 0;
    for (unsigned i = 0; i < NVML_GI_PROFILES_MAX; i++) {
        struct nvml_gi_profile_v1 v1 = {0};
        struct nvml_gi_profile_v2 v2 = {.version = NVML_GI_PROFILE_V2};
        struct nvml_gi_profile_v3 v3 = {.version = NVML_GI_PROFILE_V3}, by_id = v3;
        int status = NV(s, nvmlDeviceGetGpuInstanceProfileInfoV, (DEV, unsigned, void *), gpu, i, &v2);
        CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceProfileInfoV, (DEV, unsigned, void *), gpu, i, &v3), status);
        CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceProfileInfo, (DEV, unsigned, void *), gpu, i, &v1), status);
        if (status != NVML_OK) {
            CHECK_EQ(status, NVML_NOT_SUPPORTED);
            continue;
        }
        const struct bh_mig_profile *p = profile_of(m, v2.id);
        CHECK(p != NULL);
        seen++;
        CHECK(strncmp(v2.name, "MIG ", 4) == 0);
        CHECK_STR(v2.name + 4, p->name);
        CHECK_EQ(v2.slice_count, p->compute_slices);
        CHECK_EQ(v2.instance_count, p->max_instances);
        if (p->sm)
            CHECK_EQ(v2.multiprocessor_count, p->sm);
        if (p->memory_mib)
            CHECK_EQ(v2.memory_mb, p->memory_mib);
        CHECK(v2.memory_mb > 0);
        CHECK(v1.id == v2.id && v1.slice_count == v2.slice_count && v1.ofa_count == v2.ofa_count);
        CHECK(v3.id == v2.id && v3.slice_count == v2.slice_count && v3.ofa_count == v2.ofa_count);
        CHECK(v1.memory_mb == v2.memory_mb && v3.memory_mb == v2.memory_mb);
        CHECK_STR(v3.name, v2.name);
        CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceProfileInfoByIdV, (DEV, unsigned, void *), gpu, v2.id, &by_id),
                 NVML_OK);
        CHECK(memcmp(&by_id, &v3, sizeof(v3)) == 0);
    }
    CHECK_EQ(seen, m->n_profiles);
}

/* A slice is a device with a name, memory and an id of its own. */
static void check_slice(const struct sim *s, DEV gpu, const struct bh_mig_profile *p, uint32_t gi_id)
{
    DEV slice = NULL, parent = NULL, same = NULL;
    char text[96], uuid[96];
    unsigned v = 99;
    struct nvml_attributes a = {0};
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
    CHECK_EQ(NV(s, nvmlDeviceGetMigDeviceHandleByIndex, (DEV, unsigned, DEV *), gpu, 0, &slice), NVML_OK);
    CHECK_EQ(NV(s, nvmlDeviceGetMigDeviceHandleByIndex, (DEV, unsigned, DEV *), gpu, 1, &same),
             NVML_NOT_FOUND);
    CHECK_EQ(NV(s, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (DEV, DEV *), slice, &parent), NVML_OK);
    CHECK(parent == gpu);
    CHECK_EQ(NV(s, nvmlDeviceIsMigDeviceHandle, (DEV, unsigned *), slice, &v), NVML_OK);
    CHECK_EQ(v, 1);
    CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceId, (DEV, unsigned *), slice, &v), NVML_OK);
    CHECK_EQ(v, gi_id);
    CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceId, (DEV, unsigned *), gpu, &v), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(s, nvmlDeviceGetName, (DEV, char *, unsigned), slice, text, 96), NVML_OK);
    CHECK(strstr(text, p->name) != NULL && strstr(text, " MIG ") != NULL);
    CHECK_EQ(NV(s, nvmlDeviceGetUUID, (DEV, char *, unsigned), slice, uuid, 96), NVML_OK);
    CHECK(strncmp(uuid, "MIG-", 4) == 0);
    CHECK_EQ(NV(s, nvmlDeviceGetHandleByUUID, (const char *, DEV *), uuid, &same), NVML_OK);
    CHECK(same == slice);
    CHECK_EQ(NV(s, nvmlDeviceGetAttributes_v2, (DEV, void *), slice, &a), NVML_OK);
    CHECK_EQ(a.gi_slices, p->compute_slices);
    CHECK_EQ(a.ci_slices, p->compute_slices);
    if (p->sm)
        CHECK_EQ(a.multiprocessor_count, p->sm);
    CHECK_EQ(NV(s, nvmlDeviceGetMemoryInfo_v2, (DEV, void *), slice, &memory), NVML_OK);
    CHECK_EQ(memory.total / MIB, a.memory_mb);
    if (p->memory_mib)
        CHECK_EQ(a.memory_mb, p->memory_mib);
    CHECK_EQ(memory.used, 0);
    CHECK_EQ(NV(s, nvmlDeviceGetPowerUsage, (DEV, unsigned *), slice, &v), NVML_NOT_SUPPORTED);
}

/* Made, seen, used, and taken away again. */
static void check_place(const struct sim *s, DEV gpu, const struct bh_mig_profile *p, uint32_t start)
{
    GI gi = NULL, twin = NULL, same = NULL;
    CI ci = NULL, list[8];
    unsigned n = 99;
    struct nvml_gpu_instance_info info = {0};
    struct nvml_compute_instance_info ci_info = {0};
    CHECK_EQ(gi_create(s, gpu, p->gi_profile_id, start, p->placement_size, &gi), NVML_OK);
    CHECK_EQ(gi_create(s, gpu, p->gi_profile_id, start, p->placement_size, &twin),
             NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(NV(s, nvmlGpuInstanceGetInfo, (GI, void *), gi, &info), NVML_OK);
    CHECK(info.device == gpu);
    CHECK_EQ(info.profile_id, p->gi_profile_id);
    CHECK_EQ(info.placement.start, start);
    CHECK_EQ(info.placement.size, p->placement_size);
    CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceById, (DEV, unsigned, GI *), gpu, info.id, &same), NVML_OK);
    CHECK(same == gi);
    CHECK_EQ(gi_count(s, gpu, p->gi_profile_id), 1);
    CHECK_EQ(ci_create(s, gi, whole_ci(p), &ci), NVML_OK);
    CHECK_EQ(NV(s, nvmlComputeInstanceGetInfo_v2, (CI, void *), ci, &ci_info), NVML_OK);
    CHECK(ci_info.device == gpu && ci_info.gi == gi);
    CHECK_EQ(ci_info.profile_id, whole_ci(p));
    CHECK_EQ(ci_info.placement.size, p->compute_slices);
    CHECK_EQ(NV(s, nvmlGpuInstanceGetComputeInstances, (GI, unsigned, CI *, unsigned *), gi, whole_ci(p),
                list, &n),
             NVML_OK);
    CHECK(n == 1 && list[0] == ci);
    check_slice(s, gpu, p, info.id);
    CHECK(!bh_test_failed);
    CHECK_EQ(gi_destroy(s, gi), NVML_IN_USE);
    CHECK_EQ(ci_destroy(s, ci), NVML_OK);
    CHECK_EQ(ci_destroy(s, ci), NVML_INVALID_ARGUMENT);
    CHECK_EQ(gi_destroy(s, gi), NVML_OK);
    CHECK_EQ(gi_destroy(s, gi), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(s, nvmlGpuInstanceGetInfo, (GI, void *), gi, &info), NVML_INVALID_ARGUMENT);
    CHECK_EQ(gi_count(s, gpu, p->gi_profile_id), 0);
}

/* As many as the catalogue says, and not one more. */
static void check_full(const struct sim *s, DEV gpu, const struct bh_mig_profile *p)
{
    GI all[16], more = NULL;
    unsigned room = 99;
    for (unsigned i = 0; i <= p->max_instances; i++) {
        CHECK_EQ(NV(s, nvmlDeviceGetGpuInstanceRemainingCapacity, (DEV, unsigned, unsigned *), gpu,
                    p->gi_profile_id, &room),
                 NVML_OK);
        CHECK_EQ(room, p->max_instances - i);
        if (i < p->max_instances)
            CHECK_EQ(
                NV(s, nvmlDeviceCreateGpuInstance, (DEV, unsigned, GI *), gpu, p->gi_profile_id, &all[i]),
                NVML_OK);
    }
    CHECK_EQ(NV(s, nvmlDeviceCreateGpuInstance, (DEV, unsigned, GI *), gpu, p->gi_profile_id, &more),
             NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(gi_count(s, gpu, p->gi_profile_id), p->max_instances);
    for (unsigned i = 0; i < p->max_instances; i++)
        CHECK_EQ(gi_destroy(s, all[i]), NVML_OK);
}

static void check_profile(const struct sim *s, DEV gpu, const struct bh_mig_profile *p)
{
    struct nvml_placement places[BH_MIG_STARTS_MAX];
    unsigned n = 0;
    GI gi = NULL;
    CHECK_EQ(NV(s, nvmlDeviceGetGpuInstancePossiblePlacements_v2, (DEV, unsigned, void *, unsigned *), gpu,
                p->gi_profile_id, NULL, &n),
             NVML_OK);
    CHECK_EQ(n, p->n_starts);
    CHECK_EQ(NV(s, nvmlDeviceGetGpuInstancePossiblePlacements_v2, (DEV, unsigned, void *, unsigned *), gpu,
                p->gi_profile_id, places, &n),
             NVML_OK);
    for (uint32_t at = 0; at < BH_MIG_SLICES_MAX; at++) {
        bool offered = false;
        for (unsigned i = 0; i < n; i++)
            offered = offered || (places[i].start == at && places[i].size == p->placement_size);
        bool listed = memchr(p->starts, (int)at, p->n_starts) != NULL;
        CHECK_EQ(offered, listed);
        if (listed)
            check_place(s, gpu, p, at);
        else
            CHECK_EQ(gi_create(s, gpu, p->gi_profile_id, at, p->placement_size, &gi), NVML_INVALID_ARGUMENT);
        CHECK(!bh_test_failed);
    }
    CHECK_EQ(gi_create(s, gpu, p->gi_profile_id, p->starts[0], p->placement_size + 1u, &gi),
             NVML_INVALID_ARGUMENT);
    check_full(s, gpu, p);
}

TEST(every_placement_of_every_model)
{
    size_t models = 0;
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        const struct bh_gpu_model *m = bh_catalog_at(i);
        struct sim s;
        int activation = -1;
        if (!bh_model_has_mig(m))
            continue;
        models++;
        CHECK(sim_init(&s, m->name));
        DEV gpu = sim_gpu(&s, 0);
        GI gi = NULL;
        check_profiles(&s, gpu, m);
        CHECK(!bh_test_failed);
        CHECK_EQ(gi_create(&s, gpu, m->profiles[0].gi_profile_id, 0, 1, &gi), NVML_NOT_SUPPORTED);
        CHECK_EQ(mig_on(&s, gpu, 1, &activation), NVML_OK);
        CHECK_EQ(activation, NVML_OK);
        for (size_t k = 0; k < m->n_profiles; k++) {
            check_profile(&s, gpu, &m->profiles[k]);
            if (bh_test_failed)
                printf("# on %s: %s\n", m->name, m->profiles[k].name);
            CHECK(!bh_test_failed);
        }
        CHECK_EQ(mig_on(&s, gpu, 0, &activation), NVML_OK);
        CHECK_EQ(activation, NVML_OK);
        sim_stop(&s);
    }
    CHECK(models >= 14);
}

/* Parts of an instance: their profiles, names and places. */
TEST(compute_instances_share_a_gpu_instance)
{
    struct {
        struct nvml_ci_profile_v2 v2;
        uint32_t behind;
    } second = {{.version = NVML_CI_PROFILE_V2}, 77};
    struct nvml_ci_profile_v3 v3 = {.version = NVML_CI_PROFILE_V3};
    struct sim s;
    struct nvml_ci_profile_v1 v1 = {0};
    struct nvml_placement at = {1, 2};
    int activation;
    unsigned room = 99;
    char text[96];
    GI gi = NULL;
    CI one = NULL, two = NULL, more = NULL;
    DEV slice = NULL;
    CHECK(sim_init(&s, "A100-40GB"));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(mig_on(&s, gpu, 1, &activation), NVML_OK);
    CHECK_EQ(gi_create(&s, gpu, 9, 4, 4, &gi), NVML_OK);
#define CI_PROFILE(version, i, p)                                                                          \
    NV(&s, nvmlGpuInstanceGetComputeInstanceProfileInfo##version, (GI, unsigned, unsigned, void *), gi, i, \
       0, p)
    CHECK_EQ(CI_PROFILE(, 1, &v1), NVML_OK);
    CHECK(v1.id == 1 && v1.slice_count == 2 && v1.multiprocessor_count == 28 && v1.instance_count == 1);
    CHECK_EQ(CI_PROFILE(V, 0, &v3), NVML_OK);
    CHECK_STR(v3.name, "MIG 1c.3g.20gb");
    CHECK_EQ(CI_PROFILE(V, 2, &second.v2), NVML_OK);
    CHECK_STR(second.v2.name, "MIG 3g.20gb");
    CHECK_EQ(second.behind, 77);
    second.v2.version++;
    CHECK_EQ(CI_PROFILE(V, 2, &second.v2), NVML_ARGUMENT_VERSION);
    CHECK_EQ(CI_PROFILE(, 4, &v1), NVML_NOT_SUPPORTED);
    CHECK_EQ(CI_PROFILE(, 7, &v1), NVML_NOT_SUPPORTED);
    CHECK_EQ(CI_PROFILE(, 8, &v1), NVML_INVALID_ARGUMENT);
    CHECK_EQ(ci_create(&s, gi, 0, &one), NVML_OK);
    CHECK_EQ(
        NV(&s, nvmlGpuInstanceGetComputeInstanceRemainingCapacity, (GI, unsigned, unsigned *), gi, 0, &room),
        NVML_OK);
    CHECK_EQ(room, 2);
    CHECK_EQ(NV(&s, nvmlGpuInstanceCreateComputeInstanceWithPlacement, (GI, unsigned, const void *, CI *), gi,
                1, &at, &two),
             NVML_OK);
    CHECK_EQ(ci_create(&s, gi, 0, &more), NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(NV(&s, nvmlDeviceGetMigDeviceHandleByIndex, (DEV, unsigned, DEV *), gpu, 1, &slice), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetName, (DEV, char *, unsigned), slice, text, 96), NVML_OK);
    CHECK(strstr(text, "MIG 2c.3g.20gb") != NULL);
    CHECK_EQ(ci_destroy(&s, one), NVML_OK);
    at.start = 2; /* taken */
    at.size = 1;
    CHECK_EQ(NV(&s, nvmlGpuInstanceCreateComputeInstanceWithPlacement, (GI, unsigned, const void *, CI *), gi,
                0, &at, &more),
             NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(
        NV(&s, nvmlGpuInstanceGetComputeInstanceRemainingCapacity, (GI, unsigned, unsigned *), gi, 0, &room),
        NVML_OK);
    CHECK_EQ(room, 1); /* what was made in the wrong place is gone */
    sim_stop(&s);
}

/* Two slices and who is in which; the card as a whole adds them up. */
TEST(tenants_in_slices)
{
    struct sim s;
    struct nvml_gpu_instance_info info[2];
    struct nvml_process_info process[4];
    struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2};
    struct nvml_utilization use;
    DEV slice[2] = {NULL, NULL};
    int activation;
    unsigned n, v = 0;
    CHECK(sim_init(&s, "A100-40GBx2"));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(mig_on(&s, gpu, 1, &activation), NVML_OK);
    for (unsigned i = 0; i < 2; i++) {
        GI gi = NULL;
        CI ci = NULL;
        CHECK_EQ(gi_create(&s, gpu, 9, 4 * i, 4, &gi), NVML_OK);
        CHECK_EQ(ci_create(&s, gi, 2, &ci), NVML_OK);
        CHECK_EQ(NV(&s, nvmlGpuInstanceGetInfo, (GI, void *), gi, &info[i]), NVML_OK);
    }
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(NV(&s, nvmlDeviceGetMigDeviceHandleByIndex, (DEV, unsigned, DEV *), gpu, i, &slice[i]),
                 NVML_OK);
    struct tenant t = tenant_start(0, info[1].id, 0, 512 * MIB);
    CHECK_EQ(t.status, RM_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, (DEV, void *), slice[0], &m), NVML_OK);
    CHECK_EQ(m.used, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, (DEV, void *), slice[1], &m), NVML_OK);
    CHECK(m.used >= 512 * MIB);
    uint64_t used = m.used;
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, (DEV, void *), gpu, &m), NVML_OK);
    CHECK_EQ(m.used, used);
    CHECK_EQ(m.total >> 20, s.node.gpus[0].total_bytes >> 20);
    CHECK_EQ(m.free + m.used + m.reserved, m.total);
#define PROCESSES(of) \
    NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), of, &n, process)
    n = 4;
    CHECK_EQ(PROCESSES(slice[0]), NVML_OK);
    CHECK_EQ(n, 0);
    n = 4;
    CHECK_EQ(PROCESSES(slice[1]), NVML_OK);
    CHECK_EQ(n, 1);
    CHECK(process[0].pid == (uint32_t)getpid() && process[0].gi == info[1].id && process[0].ci == 0);
    n = 4;
    CHECK_EQ(PROCESSES(gpu), NVML_OK);
    CHECK(n == 1 && process[0].gi == info[1].id);
    /* A card that is cut has no load as a whole, no peers, and slices have no events. */
    nvml_event_set_t set = NULL;
    CHECK_EQ(NV(&s, nvmlDeviceGetUtilizationRates, (DEV, void *), gpu, &use), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetProcessUtilization, (DEV, void *, unsigned *, unsigned long long), gpu, NULL,
                &n, 0),
             NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetP2PStatus, (DEV, DEV, unsigned, unsigned *), gpu, sim_gpu(&s, 1), 0, &v),
             NVML_OK);
    CHECK_EQ(v, 5);
    CHECK_EQ(NV(&s, nvmlEventSetCreate, (nvml_event_set_t *), &set), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), slice[0], 8, set),
             NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlEventSetFree, (nvml_event_set_t), set), NVML_OK);
    tenant_end(&t);
    sim_stop(&s);
}

TEST(the_mode_waits_for_whoever_uses_the_card)
{
    struct sim s;
    struct nvml_memory memory;
    int activation = -1;
    unsigned now = 9, pending = 9;
    CHECK(sim_init(&s, "A100-40GB"));
    DEV gpu = sim_gpu(&s, 0);
    /* The library has objects of its own on the card by now. */
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, (DEV, void *), gpu, &memory), NVML_OK);
    struct tenant t = tenant_start(0, NO_ID, NO_ID, MIB);
    CHECK_EQ(t.status, RM_OK);
    CHECK_EQ(mig_on(&s, gpu, 1, &activation), NVML_OK);
    CHECK_EQ(activation, NVML_IN_USE);
    CHECK_EQ(NV(&s, nvmlDeviceGetMigMode, (DEV, unsigned *, unsigned *), gpu, &now, &pending), NVML_OK);
    CHECK(now == 0 && pending == 1);
    tenant_end(&t);
    for (int i = 0; i < 500 && activation != NVML_OK; i++) {
        (void)usleep(2000);
        CHECK_EQ(mig_on(&s, gpu, 1, &activation), NVML_OK);
    }
    CHECK_EQ(activation, NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetMaxMigDeviceCount, (DEV, unsigned *), gpu, &now), NVML_OK);
    CHECK_EQ(now, 7);
    sim_stop(&s);
}

TEST_MAIN
