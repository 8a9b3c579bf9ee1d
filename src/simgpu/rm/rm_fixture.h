/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm_fixture.h - a small simulated node and a tenant on it, for tests.
 *
 * Calls go through bh_sim_rm_ioctl as they would from a process; each helper returns the resource manager's status.
 */
#ifndef BH_SIMGPU_RM_RM_FIXTURE_H
#define BH_SIMGPU_RM_RM_FIXTURE_H

#include "base/mem.h"
#include "base/units.h"
#include "gpu/abi/rm.h"
#include "simgpu/rm/rm.h"

#include <stdio.h>
#include <stdlib.h>

static const struct bh_sim_caller fx_user = {.pid = 100, .uid = 1000, .start = 10};
static const struct bh_sim_caller fx_other = {.pid = 200, .uid = 2000, .start = 20};
static const struct bh_sim_caller fx_admin = {.pid = 1, .uid = 0, .admin = true, .start = 1};

static inline struct bh_sim_node fx_node(const char *model, uint32_t n_gpus)
{
    struct bh_sim_node n = {.scene = "test", .seed = 7, .driver = "580.159.04", .n_gpus = n_gpus};
    for (uint32_t i = 0; i < n_gpus; i++) {
        struct bh_sim_gpu *g = &n.gpus[i];
        g->model = bh_catalog_find(model);
        if (!g->model)
            abort();
        (void)snprintf(g->name, sizeof(g->name), "NVIDIA %.50s", model);
        (void)snprintf(g->uuid, sizeof(g->uuid), "GPU-00000000-0000-0000-0000-0000000000%02x", i + 1);
        (void)snprintf(g->pci, sizeof(g->pci), "0000:%02x:00.0", (0x18 + i) & 0xff);
        g->device_id = 0x233010de;
        g->minor = i;
        g->total_bytes = (uint64_t)g->model->memory_mib << 20;
        g->reserved_bytes = 512 * BH_MIB;
        g->sm = g->model->total_sm;
        g->links = 18;
    }
    return n;
}

static inline struct bh_sim_rm *fx_new(const char *model, uint32_t n_gpus)
{
    struct bh_sim_node n = fx_node(model, n_gpus);
    return bh_sim_rm_new(&n);
}

static inline uint32_t fx_open(struct bh_sim_rm *rm, const struct bh_sim_caller *who)
{
    return (uint32_t)bh_sim_rm_open(rm, BH_FILE_CTL, 0, who);
}

/* The status; a call that fails as a system call gives its errno, negative, which is no status. */
static inline uint32_t fx_alloc(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                                uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class,
                                void *params, uint32_t n)
{
    struct rm_alloc a = {.client = client,
                         .parent = parent,
                         .object = *handle,
                         .class = class,
                         .params = (uint64_t)(uintptr_t)params,
                         .params_size = n};
    int rc = bh_sim_rm_ioctl(rm, file, who, RM_IOC(RM_ALLOC, sizeof(a)), &a, sizeof(a), params, n);
    *handle = a.object;
    return rc < 0 ? (uint32_t)rc : a.status;
}

static inline uint32_t fx_free(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                               uint32_t client, uint32_t object)
{
    struct rm_free f = {.client = client, .object = object};
    int rc = bh_sim_rm_ioctl(rm, file, who, RM_IOC(RM_FREE, sizeof(f)), &f, sizeof(f), NULL, 0);
    return rc < 0 ? (uint32_t)rc : f.status;
}

static inline uint32_t fx_control(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                                  uint32_t client, uint32_t object, uint32_t command, void *params,
                                  uint32_t n)
{
    struct rm_control c = {.client = client, .object = object, .command = command, .params_size = n};
    int rc = bh_sim_rm_ioctl(rm, file, who, RM_IOC(RM_CONTROL, sizeof(c)), &c, sizeof(c), params, n);
    return rc < 0 ? (uint32_t)rc : c.status;
}

static inline uint32_t fx_dup(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                              uint32_t client, uint32_t parent, uint32_t *handle, uint32_t source_client,
                              uint32_t source)
{
    struct rm_dup d = {.client = client,
                       .parent = parent,
                       .object = *handle,
                       .source_client = source_client,
                       .source_object = source};
    int rc = bh_sim_rm_ioctl(rm, file, who, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d, sizeof(d), NULL, 0);
    *handle = d.object;
    return rc < 0 ? (uint32_t)rc : d.status;
}

/* object: the client itself for all it has. */
static inline uint32_t fx_share(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                                uint32_t client, uint32_t object, uint32_t with, uint8_t action)
{
    struct rm_share s = {.client = client,
                         .object = object,
                         .target = with,
                         .rights = RM_RIGHT_DUP,
                         .type = RM_SHARE_CLIENT,
                         .action = action};
    int rc = bh_sim_rm_ioctl(rm, file, who, RM_IOC(RM_SHARE, sizeof(s)), &s, sizeof(s), NULL, 0);
    return rc < 0 ? (uint32_t)rc : s.status;
}

/* A process with a client, a device and a subdevice on one card. */
struct fx_tenant {
    const struct bh_sim_caller *who;
    uint32_t file, client, device, subdevice;
};

static inline uint32_t fx_tenant(struct bh_sim_rm *rm, const struct bh_sim_caller *who, uint32_t gpu,
                                 struct fx_tenant *ret)
{
    uint32_t device_params[14] = {gpu}, zero = 0;
    *ret = (struct fx_tenant){.who = who, .file = fx_open(rm, who)};
    uint32_t status = fx_alloc(rm, ret->file, who, 0, 0, &ret->client, RM_CLASS_CLIENT, NULL, 0);
    if (status == RM_OK)
        status = fx_alloc(rm, ret->file, who, ret->client, ret->client, &ret->device, RM_CLASS_DEVICE,
                          device_params, sizeof(device_params));
    if (status == RM_OK)
        status = fx_alloc(rm, ret->file, who, ret->client, ret->device, &ret->subdevice, RM_CLASS_SUBDEVICE,
                          &zero, sizeof(zero));
    return status;
}

static inline uint32_t fx_make(struct bh_sim_rm *rm, const struct fx_tenant *t, uint32_t parent,
                               uint32_t class, uint32_t *handle)
{
    return fx_alloc(rm, t->file, t->who, t->client, parent, handle, class, NULL, 0);
}

/* Video memory; *bytes comes back as given. */
static inline uint32_t fx_memory(struct bh_sim_rm *rm, const struct fx_tenant *t, uint64_t *bytes,
                                 uint32_t *handle)
{
    struct rm_memory_params p = {.size = *bytes};
    uint32_t status =
        fx_alloc(rm, t->file, t->who, t->client, t->device, handle, RM_CLASS_MEMORY_LOCAL, &p, sizeof(p));
    *bytes = p.size;
    return status;
}

/* A scheduled group with one channel. */
static inline uint32_t fx_channel(struct bh_sim_rm *rm, const struct fx_tenant *t, uint32_t *group,
                                  uint32_t *channel)
{
    uint8_t enable[3] = {1};
    uint32_t status = fx_make(rm, t, t->device, RM_CLASS_CHANNEL_GROUP, group);
    if (status == RM_OK)
        status = fx_make(rm, t, *group, RM_CLASS_CHANNEL_HOPPER, channel);
    if (status == RM_OK)
        status = fx_control(rm, t->file, t->who, t->client, *group, RM_CTRL_GROUP_SCHEDULE, enable,
                            sizeof(enable));
    return status;
}

static inline bool fx_nothing_held(const struct bh_sim_rm *rm)
{
    struct bh_sim_held h = bh_sim_rm_held(rm);
    return !(h.files | h.clients | h.objects | h.bytes | h.groups | h.channels | h.ranges | h.chunks);
}

#endif
