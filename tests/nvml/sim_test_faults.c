/* SPDX-License-Identifier: Apache-2.0 */
/* sim_test_faults.c - the stand-in library when something is broken or not allowed, and under processes and threads. */
#include "sim_test.h"

#include <pthread.h>

enum { NO_ID = UINT32_MAX };
#define EIGHT  "H100-80GB-SXMx8"
#define DEV    nvml_device_t
#define OUT(T) (nvml_device_t, T *)

TEST(a_lost_gpu_answers_nothing_else)
{
    struct sim s;
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
    struct nvml_pci_info pci;
    struct nvml_event_data event;
    unsigned v = 0, n = 0;
    int activation;
    char text[96];
    nvml_event_set_t set = NULL;
    nvml_gpu_instance_t gi = NULL;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 3), well = sim_gpu(&s, 4), same = NULL;
    CHECK_EQ(NV(&s, nvmlDeviceGetUUID, (DEV, char *, unsigned), gpu, text, 96), NVML_OK);
    CHECK_EQ(NV(&s, nvmlEventSetCreate, (nvml_event_set_t *), &set), NVML_OK);
    CHECK_EQ(sim_break("gpu 3 lost"), 0);
    const int got[] = {
        NV(&s, nvmlDeviceGetHandleByIndex_v2, (unsigned, DEV *), 3, &same),
        NV(&s, nvmlDeviceGetHandleByUUID, (const char *, DEV *), text, &same),
        NV(&s, nvmlDeviceGetName, (DEV, char *, unsigned), gpu, text, 96),
        NV(&s, nvmlDeviceGetUUID, (DEV, char *, unsigned), gpu, text, 96),
        NV(&s, nvmlDeviceGetPciInfo_v3, OUT(void), gpu, &pci),
        NV(&s, nvmlDeviceGetMinorNumber, OUT(unsigned), gpu, &v),
        NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), gpu, &memory),
        NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &n, NULL),
        NV(&s, nvmlDeviceGetProcessUtilization, (DEV, void *, unsigned *, unsigned long long), gpu, NULL, &n,
           0),
        NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, &v),
        NV(&s, nvmlDeviceGetEccMode, (DEV, unsigned *, unsigned *), gpu, &v, &v),
        NV(&s, nvmlDeviceGetMigMode, (DEV, unsigned *, unsigned *), gpu, &v, &v),
        NV(&s, nvmlDeviceSetMigMode, (DEV, unsigned, int *), gpu, 1, &activation),
        NV(&s, nvmlDeviceCreateGpuInstance, (DEV, unsigned, nvml_gpu_instance_t *), gpu, 19, &gi),
        NV(&s, nvmlDeviceGetNvLinkState, (DEV, unsigned, unsigned *), gpu, 0, &v),
        NV(&s, nvmlDeviceGetTopologyCommonAncestor, (DEV, DEV, unsigned *), well, gpu, &v),
        NV(&s, nvmlDeviceGetP2PStatus, (DEV, DEV, unsigned, unsigned *), gpu, well, 0, &v),
        NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), gpu, 8, set),
    };
    for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++)
        CHECK_EQ(got[i], NVML_GPU_IS_LOST);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo_v2, OUT(void), well, &memory), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &v), NVML_OK);
    CHECK_EQ(v, 8);
    /* Who waits for it learns why, then that it is gone. */
    CHECK_EQ(sim_break("mend"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), gpu, 8, set),
             NVML_OK);
    CHECK_EQ(sim_break("gpu 3 lost"), 0);
    int status = NVML_OK;
    for (int i = 0; i < 8 && status == NVML_OK; i++)
        status = NV(&s, nvmlEventSetWait_v2, (nvml_event_set_t, void *, unsigned), set, &event, 1000);
    CHECK_EQ(status, NVML_GPU_IS_LOST);
    CHECK_EQ(NV(&s, nvmlEventSetFree, (nvml_event_set_t), set), NVML_OK);
    sim_stop(&s);
}

TEST(a_call_fails_on_request)
{
    struct sim s;
    struct nvml_memory memory;
    unsigned v = 0;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(sim_break("library fail 15 in nvmlDeviceGetMemoryInfo"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_GPU_IS_LOST);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, &v), NVML_OK);
    CHECK_EQ(sim_break("library fail 999 in *"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, &v), NVML_UNKNOWN);
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &v), NVML_UNKNOWN);
    CHECK_EQ(NV(&s, nvmlInit_v2, (void)), NVML_UNKNOWN);
    CHECK_EQ(sim_break("mend"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_OK);
    sim_stop(&s);
}

/* Memory, processes and load are asked of the driver: what fails there fails here, whatever the node could show. */
TEST(a_failing_driver_is_not_passed_over)
{
    struct sim s;
    struct nvml_memory memory;
    unsigned v = 0;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(sim_break("calls fail 56 every 1"), 0); /* not supported */
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetComputeRunningProcesses_v3, (DEV, unsigned *, void *), gpu, &v, NULL),
             NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetPowerUsage, OUT(unsigned), gpu, &v), NVML_NOT_SUPPORTED);
    CHECK_EQ(NV(&s, nvmlDeviceGetMinorNumber, OUT(unsigned), gpu, &v), NVML_OK);
    CHECK_EQ(sim_break("mend"), 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_OK);
    sim_stop(&s);
}

TEST(events_of_who_was_registered)
{
    typedef int wait_call(nvml_event_set_t, struct nvml_event_data *, unsigned);
    struct sim s;
    struct nvml_event_data e = {0};
    nvml_event_set_t set = NULL;
    unsigned long long types = 0;
    CHECK(sim_init(&s, EIGHT));
    wait_call *wait_for = (wait_call *)sim_symbol(&s, "nvmlEventSetWait_v2");
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlEventSetCreate, (nvml_event_set_t *), &set), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetSupportedEventTypes, OUT(unsigned long long), gpu, &types), NVML_OK);
    CHECK_EQ(types, NVML_EVENT_XID | NVML_EVENT_ECC_DOUBLE);
    CHECK_EQ(sim_break("gpu 0 xid 31"), 0); /* before anybody asked */
    CHECK_EQ(NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), gpu,
                NVML_EVENT_XID, set),
             NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), gpu, 1, set),
             NVML_NOT_SUPPORTED);
    CHECK_EQ(wait_for(set, &e, 0), NVML_TIMEOUT);
    CHECK_EQ(wait_for(set, &e, 30), NVML_TIMEOUT);
    CHECK_EQ(sim_break("gpu 1 xid 31"), 0); /* another GPU */
    CHECK_EQ(sim_break("gpu 0 ecc 1"), 0);  /* perhaps with an Xid of its own, never as memory errors */
    CHECK_EQ(sim_break("gpu 0 xid 43"), 0);
    int status = NVML_OK;
    do {
        status = wait_for(set, &e, 1000);
        CHECK_EQ(status, NVML_OK);
        CHECK(e.device == gpu);
        CHECK_EQ(e.type, NVML_EVENT_XID);
    } while (e.data != 43);
    CHECK_EQ(e.gi, NO_ID);
    CHECK_EQ(wait_for(set, &e, 0), NVML_TIMEOUT);
    DEV second = sim_gpu(&s, 1);
    CHECK_EQ(NV(&s, nvmlDeviceRegisterEvents, (DEV, unsigned long long, nvml_event_set_t), second,
                NVML_EVENT_ECC_DOUBLE, set),
             NVML_OK);
    CHECK_EQ(sim_break("gpu 1 ecc 3"), 0);
    CHECK_EQ(wait_for(set, &e, 1000), NVML_OK);
    CHECK(e.device == second);
    CHECK_EQ(e.type, NVML_EVENT_ECC_DOUBLE);
    CHECK_EQ(NV(&s, nvmlEventSetFree, (nvml_event_set_t), set), NVML_OK);
    CHECK_EQ(NV(&s, nvmlEventSetFree, (nvml_event_set_t), set), NVML_INVALID_ARGUMENT);
    CHECK_EQ(wait_for(set, &e, 0), NVML_INVALID_ARGUMENT);
    sim_stop(&s);
}

TEST(the_driver_goes_away)
{
    struct sim s;
    struct nvml_memory memory;
    unsigned v = 0;
    CHECK(sim_init(&s, EIGHT));
    DEV gpu = sim_gpu(&s, 0);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_OK);
    CHECK_EQ(kill(s.server, SIGKILL), 0);
    CHECK_EQ(waitpid(s.server, NULL, 0), s.server);
    s.server = 0;
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory), NVML_GPU_IS_LOST);
    CHECK_EQ(NV(&s, nvmlDeviceGetCount_v2, (unsigned *), &v), NVML_UNKNOWN);
    CHECK_EQ(NV(&s, nvmlInit_v2, (void)), NVML_DRIVER_NOT_LOADED);
    CHECK_EQ(NV(&s, nvmlShutdown, (void)), NVML_OK);
    sim_stop(&s);
}

/* Runs f in a child as nobody; the number of checks that failed there, or -1. */
static int as_nobody(int (*f)(const struct sim *s), const struct sim *s)
{
    enum { NOBODY = 65534 };
    int state = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ? 99 : f(s));
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* Whoever may not change the cut may still read what a card shows of itself. */
static int what_nobody_may(const struct sim *s)
{
    struct nvml_memory memory;
    struct nvml_gi_profile_v2 profile = {.version = NVML_GI_PROFILE_V2};
    struct nvml_placement at[8];
    nvml_gpu_instance_t gi[16];
    unsigned n = 8, v = 0;
    int activation = 0, bad = 0;
    DEV gpu = sim_gpu(s, 0);
    bad += NV(s, nvmlDeviceGetMemoryInfo, OUT(void), sim_gpu(s, 1), &memory) != NVML_OK;
    bad += NV(s, nvmlDeviceGetMigMode, (DEV, unsigned *, unsigned *), gpu, &v, &v) != NVML_OK;
    bad += NV(s, nvmlDeviceGetGpuInstanceProfileInfoV, (DEV, unsigned, void *), gpu, 0, &profile) != NVML_OK;
    bad += NV(s, nvmlDeviceSetMigMode, (DEV, unsigned, int *), gpu, 0, &activation) != NVML_NO_PERMISSION;
    bad += NV(s, nvmlDeviceGetGpuInstances, (DEV, unsigned, nvml_gpu_instance_t *, unsigned *), gpu, 19, gi,
              &n) != NVML_NO_PERMISSION;
    bad += NV(s, nvmlDeviceGetGpuInstanceById, (DEV, unsigned, nvml_gpu_instance_t *), gpu, 1, gi) !=
           NVML_NO_PERMISSION;
    bad += NV(s, nvmlDeviceGetGpuInstancePossiblePlacements_v2, (DEV, unsigned, void *, unsigned *), gpu, 19,
              at, &n) != NVML_NO_PERMISSION;
    bad += NV(s, nvmlDeviceGetGpuInstanceRemainingCapacity, (DEV, unsigned, unsigned *), gpu, 19, &n) !=
           NVML_NO_PERMISSION;
    bad += NV(s, nvmlDeviceCreateGpuInstance, (DEV, unsigned, nvml_gpu_instance_t *), gpu, 19, gi) !=
           NVML_NO_PERMISSION;
    return bad;
}

TEST(only_some_may_see_and_change_the_cut)
{
    struct sim s;
    int activation = -1;
    nvml_gpu_instance_t gi = NULL;
    CHECK(sim_init(&s, "A100-40GBx2"));
    CHECK_EQ(NV(&s, nvmlDeviceSetMigMode, (DEV, unsigned, int *), sim_gpu(&s, 0), 1, &activation), NVML_OK);
    CHECK_EQ(activation, NVML_OK);
    CHECK_EQ(
        NV(&s, nvmlDeviceCreateGpuInstance, (DEV, unsigned, nvml_gpu_instance_t *), sim_gpu(&s, 0), 19, &gi),
        NVML_OK);
    if (geteuid() == 0)
        CHECK_EQ(as_nobody(what_nobody_may, &s), 0);
    else
        printf("# not root: only the owner's side was looked at\n");
    sim_stop(&s);
}

static int in_child(const struct sim *s)
{
    struct nvml_memory memory;
    return NV(s, nvmlDeviceGetMemoryInfo, OUT(void), sim_gpu(s, 0), &memory);
}

TEST(a_child_goes_on_with_it)
{
    struct sim s;
    struct nvml_memory memory;
    int state = -1;
    CHECK(sim_init(&s, EIGHT));
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), sim_gpu(&s, 0), &memory), NVML_OK);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child(&s));
    CHECK(child > 0 && waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state));
    CHECK_EQ(WEXITSTATUS(state), NVML_OK);
    CHECK_EQ(NV(&s, nvmlDeviceGetMemoryInfo, OUT(void), sim_gpu(&s, 0), &memory), NVML_OK);
    sim_stop(&s);
}

static void *many_calls(void *arg)
{
    const struct sim *s = arg;
    uintptr_t bad = 0;
    for (unsigned i = 0; i < 50; i++) {
        char text[96];
        struct nvml_memory memory = {0};
        DEV gpu = sim_gpu(s, i % 8);
        bad += NV(s, nvmlDeviceGetUUID, (DEV, char *, unsigned), gpu, text, 96) != NVML_OK ||
               strcmp(text, s->node.gpus[i % 8].uuid) != 0;
        bad += NV(s, nvmlDeviceGetMemoryInfo, OUT(void), gpu, &memory) != NVML_OK ||
               memory.total >> 20 != s->node.gpus[i % 8].total_bytes >> 20;
    }
    return (void *)bad;
}

TEST(threads_do_not_mix_answers)
{
    enum { THREADS = 4 };
    struct sim s;
    pthread_t threads[THREADS];
    CHECK(sim_init(&s, EIGHT));
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, many_calls, &s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *bad = &s;
        CHECK_EQ(pthread_join(threads[i], &bad), 0);
        CHECK(bad == NULL);
    }
    sim_stop(&s);
}

TEST_MAIN
