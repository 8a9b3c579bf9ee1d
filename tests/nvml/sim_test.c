/* SPDX-License-Identifier: Apache-2.0 */
/* sim_test.c - the stand-in library over a simulated node, family by family: values, statuses, refusals. */
#include "sim_test.h"

enum { GIB = 1 << 30, NO_ID = UINT32_MAX };
#define EIGHT  "H100-80GB-SXMx8"
#define DEV    nvml_device_t
#define OUT(T) (nvml_device_t, T *)

TEST(it_counts_who_started_it)
{
    struct sim s;
    unsigned n = 0;
    CHECK(sim_start(&s, EIGHT));
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &n), NVML_UNINITIALIZED);
    CHECK_EQ(NV(&s, nvmlDeviceGetName, (DEV, char *, unsigned), NULL, NULL, 0), NVML_UNINITIALIZED);
    CHECK_EQ(NV(&s, nvmlEventSetFree, (nvml_event_set_t), NULL), NVML_UNINITIALIZED);
    CHECK_EQ(NV(&s, nvmlShutdown, (void)), NVML_UNINITIALIZED);
    CHECK_EQ(NV(&s, nvmlInit_v2, (void)), NVML_OK);
    CHECK_EQ(NV(&s, nvmlInitWithFlags, (unsigned), 0), NVML_OK);
    CHECK_EQ(NV(&s, nvmlShutdown, (void)), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &n), NVML_OK);
    CHECK_EQ(n, 8);
    CHECK_EQ(NV(&s, nvmlShutdown, (void)), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &n), NVML_UNINITIALIZED);
    CHECK(dlsym(s.library, "bulkhead_simulated") != NULL);
    CHECK_STR(((const char *(*)(int))sim_symbol(&s, "nvmlErrorString"))(NVML_GPU_IS_LOST), "GPU is lost");
    CHECK_STR(((const char *(*)(int))sim_symbol(&s, "nvmlErrorString"))(12345), "Unknown Error");
    sim_stop(&s);
}

TEST(wrong_arguments_are_refused)
{
    struct sim s;
    char text[8];
    unsigned v = 0;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0), other = NULL;
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), NULL), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetHandleByIndex_v2, (unsigned, DEV *), 8, &other), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetHandleByIndex_v2, (unsigned, DEV *), 0, NULL), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetHandleByUUID, (const char *, DEV *), "GPU-none", &other), NVML_NOT_FOUND);
    CHECK_EQ(NV(&s, nvmlDeviceGetHandleBySerial, (const char *, DEV *), NULL, &other), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), NULL, &v), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), (DEV)(void *)text, &v), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, NULL), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetTemperature, (DEV, unsigned, unsigned *), gpu, 1, &v),
             NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetClockInfo, (DEV, unsigned, unsigned *), gpu, 4, &v), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetUUID, (DEV, char *, unsigned), gpu, text, sizeof(text)),
             NVML_INSUFFICIENT_SIZE);
    /* A version word that is not the struct's own size and number. */
    struct nvml_memory_v2 memory = {.version = 2};
    struct nvml_fabric_v3 fabric = {.version = 0x01000028};
    struct nvml_gi_profile_v2 profile = {.version = 0x02000099};
    struct nvml_processes_use use = {.version = 1};
    struct nvml_cc_settings settings = {.version = 1};
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), gpu, &memory), NVML_ARGUMENT_VERSION);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuFabricInfoV, OUT(void), gpu, &fabric), NVML_ARGUMENT_VERSION);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuInstanceProfileInfoV, (DEV, unsigned, void *), gpu, 0, &profile),
             NVML_ARGUMENT_VERSION);
    CHECK_EQ(NV(&s, nvmlDeviceGetProcessesUtilizationInfo, OUT(void), gpu, &use), NVML_ARGUMENT_VERSION);
    CHECK_EQ(NV(&s, nvmlSystemGetConfComputeSettings, (void *), &settings), NVML_ARGUMENT_VERSION);
    sim_stop(&s);
}

TEST(a_gpu_is_who_the_node_says)
{
    struct sim s;
    CHECK(sim_init(&s, EIGHT));
    for (uint32_t i = 0; i < s.node.n_gpus; i++) {
        const struct bh_sim_gpu *g = &s.node.gpus[i];
        struct nvml_pci_info pci = {0};
        char text[96];
        unsigned v = 99;
        DEV gpu = sim_gpu(&s, i), same = NULL;
        CHECK_EQ(NV(&s, nvmlDeviceGetName, (DEV, char *, unsigned), gpu, text, 96), NVML_OK);
        CHECK_STR(text, g->name);
        CHECK_EQ(NV(&s, nvmlDeviceGetSerial, (DEV, char *, unsigned), gpu, text, 96), NVML_OK);
        CHECK_STR(text, g->serial);
        CHECK_EQ(NV(&s, nvmlDeviceGetHandleBySerial, (const char *, DEV *), text, &same), NVML_OK);
        CHECK(same == gpu);
        CHECK_EQ(NV(&s, nvmlDeviceGetVbiosVersion, (DEV, char *, unsigned), gpu, text, 96), NVML_OK);
        CHECK_STR(text, g->vbios);
        CHECK_EQ(NV(&s, nvmlDeviceGetUUID, (DEV, char *, unsigned), gpu, text, 96), NVML_OK);
        CHECK_STR(text, g->uuid);
        same = NULL;
        CHECK_EQ(NV(&s, nvmlDeviceGetHandleByUUID, (const char *, DEV *), text, &same), NVML_OK);
        CHECK(same == gpu);
        CHECK_EQ(NV(&s, nvmlDeviceGetPciInfo_v3, OUT(void), gpu, &pci), NVML_OK);
        (void)snprintf(text, sizeof(text), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
        CHECK_STR(text, g->pci);
        CHECK_EQ(pci.device_id, g->device_id);
        same = NULL;
        CHECK_EQ(NV(&s, nvmlDeviceGetHandleByPciBusId_v2, (const char *, DEV *), pci.bus_id, &same), NVML_OK);
        CHECK(same == gpu);
        CHECK_EQ(NV(&s, nvmlDeviceGetMinorNumber, OUT(unsigned), gpu, &v), NVML_OK);
        CHECK_EQ(v, g->minor);
        CHECK_EQ(NV(&s, nvmlDeviceGetModuleId, OUT(unsigned), gpu, &v), NVML_OK);
        CHECK_EQ(v, g->module_id);
        CHECK_EQ(NV(&s, nvmlDeviceGetIndex, OUT(unsigned), gpu, &v), NVML_OK);
        CHECK_EQ(v, i);
        unsigned long set[4] = {9, 9, 9, 9};
        CHECK_EQ(
            NV(&s, nvmlDeviceGetMemoryAffinity, (DEV, unsigned, unsigned long *, unsigned), gpu, 4, set, 0),
            NVML_OK);
        CHECK_EQ(set[0], 1L << g->numa);
        CHECK_EQ(set[1] | set[2] | set[3], 0);
    }
    sim_stop(&s);
}

TEST(a_model_has_its_generation)
{
    static const struct {
        const char *scene;
        int major, minor;
        unsigned architecture, cores;
    } cases[] = {{"H200-141GB", 9, 0, 9, 128}, {"A100-40GB", 8, 0, 7, 64}, {"L40S", 8, 9, 8, 128},
                 {"T4", 7, 5, 6, 64},          {"V100-32GB", 7, 0, 5, 64}, {"B200-180GB", 10, 0, 10, 128}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sim s;
        int major = 0, minor = 0;
        unsigned v = 0;
        CHECK(sim_init(&s, cases[i].scene));
        DEV gpu = sim_gpu(&s, 0);
        CHECK_EQ(NV(&s, nvmlDeviceGetCudaComputeCapability, (DEV, int *, int *), gpu, &major, &minor),
                 NVML_OK);
        CHECK_EQ(major, cases[i].major);
        CHECK_EQ(minor, cases[i].minor);
        CHECK_EQ(NV(&s, nvmlDeviceGetArchitecture, OUT(unsigned), gpu, &v), NVML_OK);
        CHECK_EQ(v, cases[i].architecture);
        CHECK_EQ(NV(&s, nvmlDeviceGetNumGpuCores, OUT(unsigned), gpu, &v), NVML_OK);
        CHECK_EQ(v, s.node.gpus[0].sm * cases[i].cores);
        sim_stop(&s);
    }
}

TEST(the_system_says_its_versions)
{
    struct sim s;
    char text[80];
    int cuda = 0;
    struct nvml_cc_state cc = {7, 7, 7};
    struct nvml_cc_settings settings = {.version = NVML_CC_SETTINGS_V1, .cc_feature = 7};
    CHECK(sim_init(&s, EIGHT));
    CHECK_EQ(NV(&s, nvmlSystemGetDriverVersion, (char *, unsigned), text, 80), NVML_OK);
    CHECK_STR(text, s.node.driver);
    CHECK_EQ(NV(&s, nvmlSystemGetDriverVersion, (char *, unsigned), text, 3), NVML_INSUFFICIENT_SIZE);
    CHECK_EQ(NV(&s, nvmlSystemGetNVMLVersion, (char *, unsigned), text, 80), NVML_OK);
    CHECK(strstr(text, s.node.driver) != NULL);
    CHECK_EQ(NV(&s, nvmlSystemGetCudaDriverVersion_v2, (int *), &cuda), NVML_OK);
    CHECK(cuda >= 11000);
    CHECK_EQ(NV(&s, nvmlSystemGetConfComputeState, (void *), &cc), NVML_OK);
    CHECK_EQ(cc.cc_feature, 0);
    CHECK_EQ(NV(&s, nvmlSystemGetConfComputeSettings, (void *), &settings), NVML_OK);
    CHECK_EQ(settings.cc_feature, 0);
    sim_stop(&s);
}

TEST(memory_is_the_drivers_count)
{
    struct sim s;
    struct nvml_memory_v2 before = {.version = NVML_MEMORY_V2}, with = before, after = before;
    struct nvml_memory old = {0}, bar1 = {0};
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 1);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), gpu, &before), NVML_OK);
    CHECK_EQ(before.total >> 20, s.node.gpus[1].total_bytes >> 20);
    CHECK_EQ(before.reserved >> 20, s.node.gpus[1].reserved_bytes >> 20);
    CHECK_EQ(before.used, 0);
    CHECK_EQ(before.free + before.used + before.reserved, before.total);
    struct tenant t = tenant_start(1, NO_ID, NO_ID, GIB);
    CHECK_EQ(t.status, RM_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), gpu, &with), NVML_OK);
    CHECK(with.used >= GIB && with.used < 2L * GIB);
    CHECK_EQ(with.free + with.used, before.free);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &old), NVML_OK);
    CHECK_EQ(old.used, with.used + with.reserved);
    CHECK_EQ(old.total, old.free + old.used);
    tenant_end(&t);
    /* The manager sees the hang-up a moment later. */
    for (int i = 0; i < 500 && after.free != before.free; i++) {
        (void)usleep(2000);
        CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), gpu, &after), NVML_OK);
    }
    CHECK_EQ(after.free, before.free);
    CHECK_EQ(NV(&s, nvmlDeviceGetBAR1MemoryInfo, OUT(void), gpu, &bar1), NVML_OK);
    CHECK(bar1.total >= before.total && bar1.free + bar1.used == bar1.total);
    sim_stop(&s);
}

/* The order of the three words is the same in every form; what follows is not. */
TEST(processes_in_every_form)
{
    static const struct {
        const char *name;
        size_t stride;
    } forms[] = {{"nvmlDeviceGetComputeRunningProcesses_v3", 24},
                 {"nvmlDeviceGetComputeRunningProcesses_v2", 24},
                 {"nvmlDeviceGetComputeRunningProcesses", 16}};
    struct sim s;
    unsigned n = 5;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    struct nvml_process_info room[4];
    CHECK_EQ(NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &n, NULL),
             NVML_INVALID_ARGUMENT);
    n = 4;
    CHECK_EQ(NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &n, room),
             NVML_OK);
    CHECK_EQ(n, 0);
    struct tenant t = tenant_start(0, NO_ID, NO_ID, GIB);
    CHECK_EQ(t.status, RM_OK);
    for (size_t i = 0; i < 3; i++) {
        int (*list)(DEV, unsigned *, void *) =
            (int (*)(DEV, unsigned *, void *))sim_symbol(&s, forms[i].name);
        memset(room, 0xee, sizeof(room));
        n = 0;
        CHECK_EQ(list(gpu, &n, NULL), NVML_INSUFFICIENT_SIZE);
        CHECK_EQ(n, 1);
        n = 4;
        CHECK_EQ(list(gpu, &n, room), NVML_OK);
        CHECK_EQ(n, 1);
        CHECK_EQ(room[0].pid, getpid());
        CHECK(room[0].used_memory >= GIB && room[0].used_memory < 2L * GIB);
        CHECK_EQ(((uint8_t *)room)[forms[i].stride], 0xee);
        if (forms[i].stride == 24)
            CHECK(room[0].gi == NO_ID && room[0].ci == NO_ID);
    }
    n = 4;
    CHECK_EQ(NV(&s, nvmlDeviceGetGraphicsRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &n, room),
             NVML_OK);
    CHECK_EQ(n, 0);
    n = 4;
    CHECK_EQ(NV(&s, nvmlDeviceGetMPSComputeRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &n, room),
             NVML_OK);
    CHECK_EQ(n, 0);
    n = 4; /* the other GPUs have none */
    CHECK_EQ(
        NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), sim_gpu(&s, 1), &n, room),
        NVML_OK);
    CHECK_EQ(n, 0);
    tenant_end(&t);
    sim_stop(&s);
}

TEST(processes_have_a_load)
{
    typedef int use_call(DEV, struct nvml_process_sample *, unsigned *, unsigned long long);
    struct sim s;
    struct nvml_process_sample samples[8] = {0};
    unsigned n = 8;
    CHECK(sim_init(&s, "H200-141GB"));
    use_call *use = (use_call *)sim_symbol(&s, "nvmlDeviceGetProcessUtilization");
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(use(gpu, samples, &n, 0), NVML_NOT_FOUND);
    struct tenant t = tenant_start(0, NO_ID, NO_ID, GIB);
    CHECK_EQ(t.status, RM_OK);
    n = 0;
    CHECK_EQ(use(gpu, NULL, &n, 0), NVML_INSUFFICIENT_SIZE);
    CHECK_EQ(n, 1);
    n = 8;
    CHECK_EQ(use(gpu, samples, &n, 0), NVML_OK);
    CHECK_EQ(n, 1);
    CHECK_EQ(samples[0].pid, getpid());
    CHECK_EQ(samples[0].sm, 0); /* it has run nothing */
    CHECK(samples[0].timestamp_us > UINT64_C(1600000000) * 1000000);
    n = 8;
    CHECK_EQ(use(gpu, samples, &n, UINT64_MAX), NVML_NOT_FOUND);
    struct nvml_process_use one[8] = {0};
    struct nvml_processes_use all = {.version = NVML_PROC_USE_V1, .count = 8, .list = one};
    CHECK_EQ(NV(&s, nvmlDeviceGetProcessesUtilizationInfo, OUT(void), gpu, &all), NVML_OK);
    CHECK_EQ(all.count, 1);
    CHECK_EQ(one[0].pid, getpid());
    CHECK_EQ(one[0].sm, 0);
    /* An hour of work: whenever it is looked at, the engine has been busy. */
    CHECK_EQ(tenant_run(&t, UINT64_C(3600) * 1000000000), 0);
    (void)usleep(5000);
    all.count = 8;
    CHECK_EQ(NV(&s, nvmlDeviceGetProcessesUtilizationInfo, OUT(void), gpu, &all), NVML_OK);
    CHECK(one[0].sm > 0 && one[0].sm <= 100);
    tenant_end(&t);
    sim_stop(&s);
}

TEST(health_is_what_was_broken)
{
    struct sim s;
    unsigned v = 0, pending = 9, corrected = 9, uncorrected = 9, failed = 9;
    unsigned long long bits = 0, errors = 99;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetEccMode, (DEV, unsigned *, unsigned *), gpu, &v, &pending), NVML_OK);
    CHECK(v == 1 && pending == 1);
    CHECK_EQ(NV(&s, nvmlDeviceGetTotalEccErrors, (DEV, unsigned, unsigned, unsigned long long *), gpu, 1, 0,
                &errors),
             NVML_OK);
    CHECK_EQ(errors, 0);
    CHECK_EQ(sim_break("gpu 0 ecc 2"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetTotalEccErrors, (DEV, unsigned, unsigned, unsigned long long *), gpu, 1, 0,
                &errors),
             NVML_OK);
    CHECK_EQ(errors, 2);
    CHECK_EQ(NV(&s, nvmlDeviceGetRemappedRows, (DEV, unsigned *, unsigned *, unsigned *, unsigned *), gpu,
                &corrected, &uncorrected, &pending, &failed),
             NVML_OK);
    CHECK_EQ(corrected, 0);
    CHECK_EQ(failed, 0);
    CHECK_EQ(sim_break("gpu 0 hot 95"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetTemperature, (DEV, unsigned, unsigned *), gpu, 0, &v), NVML_OK);
    CHECK_EQ(v, 95);
    CHECK_EQ(NV(&s, nvmlDeviceGetTemperature, (DEV, unsigned, unsigned *), sim_gpu(&s, 1), 0, &v), NVML_OK);
    CHECK(v < 90);
    CHECK_EQ(sim_break("gpu 1 throttle power"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetCurrentClocksEventReasons, OUT(unsigned long long), sim_gpu(&s, 1), &bits),
             NVML_OK);
    CHECK(bits & ~1ULL);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, &v), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetEnforcedPowerLimit, OUT(unsigned), gpu, &pending), NVML_OK);
    CHECK(v > 0 && v <= pending);
    struct nvml_field fields[2] = {{.id = NVML_FIELD_POWER_NOW}, {.id = 1}};
    CHECK_EQ(NV(&s, nvmlDeviceGetFieldValues, (DEV, int, void *), gpu, 2, fields), NVML_OK);
    CHECK(fields[0].status == NVML_OK && fields[0].type == NVML_VALUE_UINT && fields[0].value.u32 == v);
    CHECK_EQ(fields[1].status, NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetFieldValues, (DEV, int, void *), gpu, 0, fields), NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetClockInfo, (DEV, unsigned, unsigned *), gpu, NVML_CLOCK_SM, &v), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetClockInfo, (DEV, unsigned, unsigned *), gpu, NVML_CLOCK_MEMORY, &v),
             NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetClockInfo, (DEV, unsigned, unsigned *), gpu, 3, &v), NVML_NOT_SUPPORTED);
    struct nvml_utilization use = {999, 999};
    CHECK_EQ(NV(&s, nvmlDeviceGetUtilizationRates, OUT(void), gpu, &use), NVML_OK);
    CHECK(use.gpu <= 100 && use.memory <= 100);
    sim_stop(&s);
}

TEST(links_go_to_switches)
{
    struct sim s;
    unsigned v = 99;
    struct nvml_pci_info a = {0}, b = {0};
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 2), next = sim_gpu(&s, 3);
    unsigned links = s.node.gpus[2].links;
    CHECK_EQ(links, 18);
    for (unsigned i = 0; i < links; i++) {
        CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkState, (DEV, unsigned, unsigned *), gpu, i, &v), NVML_OK);
        CHECK_EQ(v, 1);
        CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkRemoteDeviceType, (DEV, unsigned, unsigned *), gpu, i, &v),
                 NVML_OK);
        CHECK_EQ(v, NVML_REMOTE_SWITCH);
        CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkRemotePciInfo_v2, (DEV, unsigned, void *), gpu, i, &a), NVML_OK);
        CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkRemotePciInfo_v2, (DEV, unsigned, void *), next, i, &b), NVML_OK);
        CHECK_STR(a.bus_id, b.bus_id); /* behind the same switches */
    }
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkState, (DEV, unsigned, unsigned *), gpu, links, &v),
             NVML_INVALID_ARGUMENT);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkVersion, (DEV, unsigned, unsigned *), gpu, 0, &v), NVML_OK);
    CHECK_EQ(v, 4);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkCapability, (DEV, unsigned, unsigned, unsigned *), gpu, 0, 0, &v),
             NVML_OK);
    CHECK_EQ(v, 1);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkCapability, (DEV, unsigned, unsigned, unsigned *), gpu, 0, 6, &v),
             NVML_INVALID_ARGUMENT);
    CHECK_EQ(sim_break("gpu 2 link 4 down"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkState, (DEV, unsigned, unsigned *), gpu, 4, &v), NVML_OK);
    CHECK_EQ(v, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkRemotePciInfo_v2, (DEV, unsigned, void *), gpu, 4, &a),
             NVML_NOT_SUPPORTED);
    sim_stop(&s);
}

TEST(a_card_without_nvlink_does_not_know_it)
{
    struct sim s;
    unsigned v = 99;
    struct nvml_fabric_v2 fabric = {.version = NVML_FABRIC_V2};
    CHECK(sim_init(&s, "L40Sx2"));
    DEV a = sim_gpu(&s, 0), b = sim_gpu(&s, 1);
    CHECK_EQ(NV(&s, nvmlDeviceGetNvLinkState, (DEV, unsigned, unsigned *), a, 0, &v), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuFabricInfoV, OUT(void), a, &fabric), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetP2PStatus, (DEV, DEV, unsigned, unsigned *), a, b, NVML_P2P_NVLINK, &v),
             NVML_OK);
    CHECK_EQ(v, 5);
    CHECK_EQ(NV(&s, nvmlDeviceGetMigMode, (DEV, unsigned *, unsigned *), a, &v, &v), NVML_NOT_SUPPORTED);
    int activation = 0;
    CHECK_EQ(NV(&s, nvmlDeviceSetMigMode, (DEV, unsigned, int *), a, 1, &activation), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetMaxMigDeviceCount, OUT(unsigned), a, &v), NVML_OK);
    CHECK_EQ(v, 0);
    sim_stop(&s);
}

TEST(paths_between_gpus)
{
    struct sim s;
    unsigned v = 99, n = 0;
    DEV list[8];
    CHECK(sim_init(&s, EIGHT));
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = 0; k < 8; k++) {
            bool near = s.node.gpus[i].numa == s.node.gpus[k].numa;
            CHECK_EQ(NV(&s, nvmlDeviceGetTopologyCommonAncestor, (DEV, DEV, unsigned *), sim_gpu(&s, i),
                        sim_gpu(&s, k), &v),
                     NVML_OK);
            CHECK_EQ(v, i == k ? 0 : near ? 40 : 50);
            n += i == 0 && k != 0 && near;
        }
    CHECK_EQ(NV(&s, nvmlDeviceGetP2PStatus, (DEV, DEV, unsigned, unsigned *), sim_gpu(&s, 0), sim_gpu(&s, 7),
                NVML_P2P_NVLINK, &v),
             NVML_OK);
    CHECK_EQ(v, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetP2PStatus, (DEV, DEV, unsigned, unsigned *), sim_gpu(&s, 0), sim_gpu(&s, 7),
                5, &v),
             NVML_INVALID_ARGUMENT);
    unsigned count = 0;
    CHECK_EQ(NV(&s, nvmlDeviceGetTopologyNearestGpus, (DEV, unsigned, unsigned *, DEV *), sim_gpu(&s, 0), 40,
                &count, NULL),
             NVML_OK);
    CHECK_EQ(count, n);
    CHECK_EQ(NV(&s, nvmlDeviceGetTopologyNearestGpus, (DEV, unsigned, unsigned *, DEV *), sim_gpu(&s, 0), 40,
                &count, list),
             NVML_OK);
    CHECK_EQ(count, n);
    for (unsigned i = 0; i < count; i++)
        CHECK(list[i] != sim_gpu(&s, 0));
    sim_stop(&s);
}

TEST(the_fabric_in_three_forms)
{
    struct sim s;
    struct nvml_fabric_v1 v1 = {.state = 77};
    struct {
        struct nvml_fabric_v2 v2;
        uint32_t behind;
    } second = {{.version = NVML_FABRIC_V2}, 0xeeeeeeee};
    struct nvml_fabric_v3 v3 = {.version = NVML_FABRIC_V3};
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuFabricInfoV, OUT(void), gpu, &v3), NVML_OK);
    CHECK_EQ(v3.state, NVML_FABRIC_COMPLETED);
    CHECK(memcmp(v3.cluster_uuid, s.node.gpus[0].cluster, 16) == 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuFabricInfoV, OUT(void), gpu, &second.v2), NVML_OK);
    CHECK_EQ(second.v2.version, NVML_FABRIC_V2);
    CHECK_EQ(second.v2.health_mask, v3.health_mask);
    CHECK_EQ(second.behind, 0xeeeeeeee);
    CHECK_EQ(NV(&s, nvmlDeviceGetGpuFabricInfo, OUT(void), gpu, &v1), NVML_OK);
    CHECK_EQ(v1.state, NVML_FABRIC_COMPLETED);
    CHECK_EQ(v1.clique_id, v3.clique_id);
    sim_stop(&s);
}

TEST(counters_between_two_samples)
{
    struct sim s;
    static struct nvml_gpm_metrics m;
    struct nvml_gpm_support can = {.version = NVML_GPM_VERSION};
    nvml_gpm_sample_t a, b;
    unsigned v = 0;
    CHECK(sim_init(&s, EIGHT));
    nvml_device_t gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlGpmQueryDeviceSupport, OUT(void), gpu, &can), NVML_OK);
    CHECK_EQ(can.supported, 1);
    can.version = 9;
    CHECK_EQ(NV(&s, nvmlGpmQueryDeviceSupport, OUT(void), gpu, &can), NVML_ARGUMENT_VERSION);
    CHECK_EQ(NV(&s, nvmlGpmSampleAlloc, (nvml_gpm_sample_t *), &a), NVML_OK);
    CHECK_EQ(NV(&s, nvmlGpmSampleAlloc, (nvml_gpm_sample_t *), &b), NVML_OK);
    m = (struct nvml_gpm_metrics){.version = NVML_GPM_VERSION, .count = 3, .from = a, .to = b};
    m.at[0].id = NVML_GPM_SM_UTIL;
    m.at[1].id = NVML_GPM_DRAM_UTIL;
    m.at[2].id = NVML_GPM_PCIE_RX;
    CHECK_EQ(NV(&s, nvmlGpmMetricsGet, (void *), &m), NVML_INVALID_ARGUMENT); /* nothing in them yet */
    CHECK_EQ(NV(&s, nvmlGpmSampleGet, (DEV, nvml_gpm_sample_t), gpu, a), NVML_OK);
    CHECK_EQ(NV(&s, nvmlGpmSampleGet, (DEV, nvml_gpm_sample_t), gpu, b), NVML_OK);
    CHECK_EQ(NV(&s, nvmlGpmMetricsGet, (void *), &m), NVML_OK);
    CHECK_EQ(m.at[0].status, NVML_OK);
    CHECK(m.at[0].value >= 0 && m.at[0].value <= 100);
    CHECK_EQ(m.at[1].status, NVML_OK);
    CHECK_EQ(m.at[2].status, NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlGpmSampleFree, (nvml_gpm_sample_t), a), NVML_OK);
    CHECK_EQ(NV(&s, nvmlGpmSampleFree, (nvml_gpm_sample_t), b), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetPcieThroughput, (DEV, unsigned, unsigned *), gpu, 0, &v),
             NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetMaxPcieLinkGeneration, OUT(unsigned), gpu, &v), NVML_OK);
    CHECK_EQ(v, 5);
    CHECK_EQ(NV(&s, nvmlDeviceGetMaxPcieLinkWidth, OUT(unsigned), gpu, &v), NVML_OK);
    CHECK_EQ(v, 16);
    sim_stop(&s);
}

TEST_MAIN
