/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - NVLinks, the fabric behind them, and how two GPUs reach each other.
 *
 * Every link of a simulated card ends at a switch. GPUs of one switch group reach each other over them, unless one
 * is cut into instances: MIG and peer access exclude each other.
 */
#include "simgpu/nvml/api.h"

#include <stdio.h>
#include <string.h>

enum { SWITCHES = 4, GROUPS_PER_DOMAIN = 4, FIRST_BUS = 5 };
/* What the library says of a path that does not work, and of levels in common. */
enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 5, P2P_LAST = 4 };
enum { LEVEL_INTERNAL = 0, LEVEL_NODE = 40, LEVEL_SYSTEM = 50 };

/* A card without NVLink does not know the question; one with it knows how many it has. */
static int link_of(const struct bh_nv_call *c, unsigned link)
{
    if (c->status != NVML_OK)
        return c->status;
    return c->gpu->links == 0 ? NVML_NOT_SUPPORTED : link < c->gpu->links ? NVML_OK : NVML_INVALID_ARGUMENT;
}

static bool is_up(const struct bh_sim_gpu_view *gpu, unsigned link)
{
    return !(gpu->links_down >> link & 1);
}

API(nvmlDeviceGetNvLinkState, nvml_device_t device, unsigned link, unsigned *up)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, up != NULL);
    int status = link_of(&c, link);
    if (status == NVML_OK)
        *up = is_up(c.gpu, link);
    return status;
}

/* The other end of a link that is down is not known. */
static int remote_of(const struct bh_nv_call *c, unsigned link)
{
    int status = link_of(c, link);
    return status == NVML_OK && !is_up(c->gpu, link) ? (int)NVML_NOT_SUPPORTED : status;
}

API(nvmlDeviceGetNvLinkRemoteDeviceType, nvml_device_t device, unsigned link, unsigned *type)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, type != NULL);
    int status = remote_of(&c, link);
    if (status == NVML_OK)
        *type = NVML_REMOTE_SWITCH;
    return status;
}

static int remote_pci(const char *function, nvml_device_t device, unsigned link, struct nvml_pci_info *pci)
{
    BH_NV_CALL c = bh_nv_enter_device(function, device, BH_NV_WHOLE, pci != NULL);
    int status = remote_of(&c, link);
    if (status != NVML_OK)
        return status;
    char address[32];
    uint32_t group = c.gpu->switch_group;
    (void)snprintf(address, sizeof(address), "%04x:%02x:00.0", group / GROUPS_PER_DOMAIN,
                   FIRST_BUS + group % GROUPS_PER_DOMAIN * SWITCHES + link % SWITCHES);
    bool is_hopper = !c.model || bh_nv_capability(c.model) >= 90;
    bh_nv_pci(address, is_hopper ? 0x22a310de : 0x1af110de, pci);
    return NVML_OK;
}

API(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvml_device_t device, unsigned link, struct nvml_pci_info *pci)
{
    return remote_pci(__func__, device, link, pci);
}

API(nvmlDeviceGetNvLinkRemotePciInfo, nvml_device_t device, unsigned link, struct nvml_pci_info *pci)
{
    return remote_pci(__func__, device, link, pci);
}

/* 0 peer access, 1 system memory, 2 and 3 atomics on either, 4 the old bridge for graphics, 5 a valid link. */
API(nvmlDeviceGetNvLinkCapability, nvml_device_t device, unsigned link, unsigned capability, unsigned *has)
{
    static const unsigned capabilities[] = {1, 1, 1, 1, 0, 1};
    BH_NV_CALL c =
        bh_nv_enter_device(__func__, device, BH_NV_WHOLE, has && capability < BH_COUNT_OF(capabilities));
    int status = link_of(&c, link);
    if (status == NVML_OK)
        *has = capabilities[capability];
    return status;
}

API(nvmlDeviceGetNvLinkVersion, nvml_device_t device, unsigned link, unsigned *version)
{
    static const struct {
        uint32_t capability, version;
    } generations[] = {{100, 5}, {90, 4}, {80, 3}, {70, 2}};
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, version != NULL);
    int status = link_of(&c, link);
    if (status != NVML_OK)
        return status;
    uint32_t capability = c.model ? bh_nv_capability(c.model) : 0;
    for (size_t i = 0; i < BH_COUNT_OF(generations); i++)
        if (capability >= generations[i].capability) {
            *version = generations[i].version;
            return NVML_OK;
        }
    return NVML_NOT_SUPPORTED;
}

static unsigned level_of(const struct bh_sim_gpu_view *a, const struct bh_sim_gpu_view *b)
{
    return a->index == b->index                 ? LEVEL_INTERNAL
           : a->numa >= 0 && a->numa == b->numa ? LEVEL_NODE
                                                : LEVEL_SYSTEM;
}

API(nvmlDeviceGetTopologyCommonAncestor, nvml_device_t device, nvml_device_t other, unsigned *level)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, level != NULL);
    const struct bh_sim_gpu_view *b;
    if (c.status == NVML_OK)
        c.status = bh_nv_peer(other, &b);
    if (c.status == NVML_OK)
        *level = level_of(c.gpu, b);
    return c.status;
}

API(nvmlDeviceGetTopologyNearestGpus, nvml_device_t device, unsigned level, unsigned *count,
    nvml_device_t *list)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, count && (list || *count == 0));
    unsigned n = 0;
    for (uint32_t i = 0; c.status == NVML_OK && i < c.node->n_gpus; i++) {
        const struct bh_sim_gpu_view *b;
        if (i == c.gpu->index || bh_nv_peer_at(i, &b) != NVML_OK || level_of(c.gpu, b) != level)
            continue;
        if (list && n < *count)
            list[n] = bh_nv_device(i);
        n++;
    }
    if (c.status == NVML_OK)
        *count = list && n > *count ? *count : n;
    return c.status;
}

static bool any_up(const struct bh_sim_gpu_view *gpu)
{
    for (unsigned i = 0; i < gpu->links && i < BH_SIM_VIEW_LINKS; i++)
        if (is_up(gpu, i))
            return true;
    return false;
}

/* A fabric that is still being set up carries nothing yet. */
static bool fabric_works(const struct bh_sim_gpu_view *gpu)
{
    return gpu->fabric_state == 0 || gpu->fabric_state == UINT32_MAX ||
           gpu->fabric_state == NVML_FABRIC_COMPLETED;
}

static bool over_nvlink(const struct bh_sim_gpu_view *a, const struct bh_sim_gpu_view *b)
{
    return any_up(a) && any_up(b) && a->switch_group == b->switch_group && fabric_works(a) && fabric_works(b);
}

/* what: 0 read, 1 write, 2 NVLink, 3 atomics, 4 PCIe. Atomics go over NVLink only. */
API(nvmlDeviceGetP2PStatus, nvml_device_t device, nvml_device_t other, unsigned what, unsigned *status)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, status && what <= P2P_LAST);
    const struct bh_sim_gpu_view *b;
    if (c.status == NVML_OK)
        c.status = bh_nv_peer(other, &b);
    if (c.status != NVML_OK)
        return c.status;
    bool is_cut = c.gpu->mig_on == 1 || b->mig_on == 1;
    bool needs_nvlink = what == NVML_P2P_NVLINK || what == 3;
    *status = is_cut || (needs_nvlink && !over_nvlink(c.gpu, b)) ? P2P_NOT_SUPPORTED : P2P_OK;
    return NVML_OK;
}

static int fabric_of(struct bh_nv_call *c, struct nvml_fabric_v3 *ret)
{
    if (c->status != NVML_OK)
        return c->status;
    if (c->gpu->links == 0 || c->gpu->fabric_state == UINT32_MAX)
        return NVML_NOT_SUPPORTED;
    *ret = (struct nvml_fabric_v3){.version = NVML_FABRIC_V3,
                                   .clique_id = c->gpu->clique,
                                   .state = (uint8_t)c->gpu->fabric_state,
                                   .health_mask = c->gpu->fabric_health};
    memcpy(ret->cluster_uuid, c->gpu->cluster, sizeof(ret->cluster_uuid));
    /* In sum: 0 not told, 1 healthy, 2 not. In the mask two bits each say 1 for bad, and four say 1 for right. */
    bool is_bad = (ret->health_mask >> 8 & 15) > 1;
    for (unsigned shift = 0; shift < 8; shift += 2)
        is_bad = is_bad || (ret->health_mask >> shift & 3) == 1;
    ret->health_summary = ret->health_mask == 0 ? 0 : is_bad ? 2 : 1;
    return NVML_OK;
}

API(nvmlDeviceGetGpuFabricInfo, nvml_device_t device, struct nvml_fabric_v1 *info)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, info != NULL);
    struct nvml_fabric_v3 f;
    int status = fabric_of(&c, &f);
    if (status != NVML_OK)
        return status;
    *info = (struct nvml_fabric_v1){.status = f.status, .clique_id = f.clique_id, .state = f.state};
    memcpy(info->cluster_uuid, f.cluster_uuid, sizeof(info->cluster_uuid));
    return NVML_OK;
}

/* The second form is the head of the third: the version word says how much there is room for. */
API(nvmlDeviceGetGpuFabricInfoV, nvml_device_t device, void *info)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, info != NULL);
    struct nvml_fabric_v3 f;
    uint32_t version;
    if (c.status != NVML_OK)
        return c.status;
    memcpy(&version, info, sizeof(version));
    if (version != NVML_FABRIC_V2 && version != NVML_FABRIC_V3)
        return NVML_ARGUMENT_VERSION;
    int status = fabric_of(&c, &f);
    f.version = version;
    if (status == NVML_OK)
        memcpy(info, &f, version & 0xffffff);
    return status;
}
