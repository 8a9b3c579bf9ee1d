/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_test.h - a simulated node in a process of its own, and the stand-in library over it, loaded as any program would.
 *
 * BH_SIM_NVML: where the library was built.
 */
#ifndef BH_TESTS_NVML_SIM_TEST_H
#define BH_TESTS_NVML_SIM_TEST_H

#include "base/scratch.h"
#include "base/test.h"
#include "gpu/abi/nvml.h"
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"
#include "simgpu/serve/serve.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct sim {
    struct bh_sim_node node;
    char folder[96];
    pid_t server;
    void *library;
};

static inline void sim_ready_(void *arg)
{
    int fd;
    memcpy(&fd, arg, sizeof(fd));
    if (write(fd, "", 1) == 1)
        close(fd);
}

static inline void sim_serve_(const struct sim *s, int fd)
{
    struct bh_err err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct bh_sim_serve how = {.node = &s->node, .folder = s->folder, .ready = sim_ready_, .arg = &fd};
    int rc = bh_sim_serve(&how, &err);
    if (rc < 0)
        fprintf(stderr, "# %s\n", err.msg);
    _exit(rc < 0);
}

static inline void sim_stop(struct sim *s)
{
    if (s->library)
        (void)dlclose(s->library);
    if (s->server > 0) {
        (void)kill(s->server, SIGTERM);
        (void)waitpid(s->server, NULL, 0);
    }
    if (s->folder[0])
        (void)bh_scratch_remove(s->folder);
    *s = (struct sim){0};
}

/* The library is loaded and not started. */
static inline bool sim_start(struct sim *s, const char *scene)
{
    struct bh_err err = {0};
    char byte;
    int ends[2];
    *s = (struct sim){0};
    if (bh_sim_node_make(&s->node, scene, 1, &err) < 0 || pipe(ends) < 0) {
        printf("# %s: %s\n", scene, err.msg);
        return false;
    }
    if (!bh_scratch_make(s->folder, sizeof(s->folder), "nvml") || chmod(s->folder, 0755) < 0)
        return false;
    (void)fflush(stdout);
    s->server = fork();
    if (s->server == 0) {
        close(ends[0]);
        sim_serve_(s, ends[1]);
    }
    close(ends[1]);
    bool ready = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (!ready || setenv("BULKHEAD_SIM", s->folder, 1) < 0)
        return false;
    s->library = dlopen(BH_SIM_NVML, RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        printf("# %s\n", dlerror());
    return s->library != NULL;
}

static inline void *sim_symbol(const struct sim *s, const char *name)
{
    void *at = dlsym(s->library, name);
    if (!at) {
        printf("Bail out! %s is not in the library\n", name);
        exit(1);
    }
    return at;
}
/* NV(s, nvmlDeviceGetCount_v2, (unsigned *), &n): a status. */
#define NV(s, name, types, ...) (((int(*) types)sim_symbol((s), #name))(__VA_ARGS__))

static inline bool sim_init(struct sim *s, const char *scene)
{
    return sim_start(s, scene) && NV(s, nvmlInit_v2, (void)) == NVML_OK;
}

/* Break or mend something, in words. */
static inline int sim_break(const char *words)
{
    char body[512];
    struct bh_sim_msg msg = {.op = BH_SIM_OP_BREAK, .n_body = (uint32_t)strlen(words)};
    memcpy(body, words, strlen(words));
    return bh_sim_call(&msg, body, sizeof(body), -1, NULL);
}

static inline nvml_device_t sim_gpu(const struct sim *s, unsigned index)
{
    nvml_device_t device = NULL;
    (void)NV(s, nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml_device_t *), index, &device);
    return device;
}

/* A process that has a context on a GPU: a client, memory and a group of channels. */
struct tenant {
    int fd;
    uint32_t client, status; /* status: of the first call that failed */
};

static inline void tenant_alloc(struct tenant *t, uint32_t parent, uint32_t *object, uint32_t class,
                                void *params, uint32_t n)
{
    struct rm_alloc a = {.client = t->client,
                         .parent = parent,
                         .object = *object,
                         .class = class,
                         .params = (uint64_t)(uintptr_t)params,
                         .params_size = n};
    if (t->status != RM_OK)
        return;
    t->status = bh_sim_ioctl(t->fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0 ? (uint32_t)errno + 1000 : a.status;
    *object = a.object;
}

enum { TENANT_GROUP = 0x102, TENANT_CHANNEL = 0x103 };

/* gi UINT32_MAX: on the whole card. */
static inline struct tenant tenant_start(uint32_t gpu, uint32_t gi, uint32_t ci, uint64_t bytes)
{
    enum { DEVICE = 0x100, SUBDEVICE, MEMORY = 0x104, PARTITION, EXEC };
    struct tenant t = {.fd = bh_sim_open("/dev/nvidiactl")};
    uint32_t none = 0, device = DEVICE, subdevice = SUBDEVICE, group = TENANT_GROUP, memory = MEMORY;
    uint32_t partition = PARTITION, exec = EXEC, channel = TENANT_CHANNEL, group_params[5] = {0};
    struct rm_device_params where = {.device = gpu};
    struct rm_partition_params slice = {.gi = gi}, part = {.gi = ci};
    struct rm_memory_params size = {.size = bytes};
    tenant_alloc(&t, 0, &t.client, RM_CLASS_CLIENT, NULL, 0);
    tenant_alloc(&t, t.client, &device, RM_CLASS_DEVICE, &where, sizeof(where));
    tenant_alloc(&t, device, &subdevice, RM_CLASS_SUBDEVICE, &none, sizeof(none));
    if (gi != UINT32_MAX) {
        tenant_alloc(&t, subdevice, &partition, RM_CLASS_SMC_PARTITION, &slice, sizeof(slice));
        tenant_alloc(&t, partition, &exec, RM_CLASS_SMC_EXEC, &part, sizeof(part));
    }
    tenant_alloc(&t, device, &group, RM_CLASS_CHANNEL_GROUP, group_params, sizeof(group_params));
    tenant_alloc(&t, group, &channel, RM_CLASS_CHANNEL_HOPPER, NULL, 0);
    tenant_alloc(&t, device, &memory, RM_CLASS_MEMORY_LOCAL, &size, sizeof(size));
    return t;
}

/* Keeps the engine busy for so long. */
static inline int tenant_run(struct tenant *t, uint64_t work_ns)
{
    uint8_t enable[3] = {1, 0, 0};
    uint64_t fence;
    struct rm_control k = {.client = t->client,
                           .object = TENANT_GROUP,
                           .command = RM_CTRL_GROUP_SCHEDULE,
                           .params = (uint64_t)(uintptr_t)enable,
                           .params_size = sizeof(enable)};
    if (bh_sim_ioctl(t->fd, RM_IOC(RM_CONTROL, sizeof(k)), &k) < 0 || k.status != RM_OK)
        return -1;
    return bh_sim_doorbell(t->fd, t->client, TENANT_CHANNEL, work_ns, &fence);
}

static inline void tenant_end(struct tenant *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

#endif
