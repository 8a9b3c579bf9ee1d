/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - what the driver's library shows of a card: counted where the simulation counts, made up where it cannot.
 *
 * Counted: memory, processes, busy time, instances, faults. Made up from the load: temperature, power, clocks, and the
 * utilisation of memory, which is half that of the engine.
 */
#include "base/str.h"
#include "base/units.h"
#include "gpu/abi/nvml.h"
#include "simgpu/rm/state.h"

#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)

enum { HOT_C = 90, COOL_C = 31, FABRIC_HEALTHY = 0x1aa, FABRIC_DEGRADED = 0x1a9 };
enum { THROTTLE_IDLE = 0x1, THROTTLE_HOT = 0x20 };

/* What data sheets say of the families; the first that a model's name starts with. */
static const struct {
    const char *start;
    uint32_t watt, sm_mhz, memory_mhz;
} FAMILIES[] = {
    {"A30", 165, 1440, 1215},   {"A100", 400, 1410, 1593},   {"H100-PCIe", 350, 1755, 1593},
    {"H100", 700, 1980, 2619},  {"H200", 700, 1980, 3201},   {"GH200", 900, 1980, 2619},
    {"B200", 1000, 1965, 3996}, {"GB200", 1200, 2062, 3996}, {"B300", 1100, 1920, 3996},
    {"L40", 350, 2520, 9001},   {"L4", 72, 2040, 6251},      {"", 300, 1500, 1500},
};

static uint32_t utilization(const struct bh_sim_rm *rm, const struct sim_gpu *s)
{
    uint64_t from = rm->now_ns > SECOND_NS ? rm->now_ns - SECOND_NS : 0;
    struct sim_sample base = {0};
    for (uint32_t i = 0; i < SIM_SAMPLES && i < s->n_samples; i++)
        if (s->samples[i].ns <= from && s->samples[i].ns >= base.ns)
            base = s->samples[i];
    uint64_t busy = bh_sim_sched_busy_ns(s->whole.sched) - base.busy_ns, span = rm->now_ns - base.ns;
    return span ? (uint32_t)(busy * 100 / span) : 0;
}

/* Whoever has memory or channels here; a program that only looks has neither and is not shown. */
bool bh_simrm_is_shown(const struct sim_account *a)
{
    return a->private_bytes || a->owned_bytes || a->duped_bytes || a->n_channels;
}

static struct bh_sim_busy busy_of(const struct sim_account *a)
{
    struct bh_sim_busy b = {.pid = a->pid, .ns = a->gone_busy_ns, .turns = a->gone_turns};
    for (const struct sim_object *o = a->groups; o; o = o->group_next) {
        b.ns += bh_sim_group_busy_ns(o->place->sched, o->group);
        b.turns += bh_sim_group_turns(o->place->sched, o->group);
        b.on |= bh_sim_group_runs(o->place->sched, o->group);
    }
    return b;
}

/* A process has an account for each instance it is on: one line for all of them. */
size_t bh_sim_rm_busy(const struct bh_sim_rm *rm, uint32_t gpu, struct bh_sim_busy *ret, size_t max,
                      uint64_t *ret_now_ns)
{
    size_t n = 0;
    *ret_now_ns = rm->now_ns;
    const struct sim_account *a = gpu < rm->node.n_gpus ? rm->gpus[gpu].accounts : NULL;
    for (; a; a = a->next) {
        const struct bh_sim_busy b = busy_of(a);
        size_t i = 0;
        while (i < n && ret[i].pid != b.pid)
            i++;
        if (!a->n_channels || (i == n && n == max))
            continue;
        if (i == n)
            ret[n++] = (struct bh_sim_busy){.pid = b.pid};
        ret[i].ns += b.ns;
        ret[i].turns += b.turns;
        ret[i].on |= b.on;
    }
    return n;
}

static void show_processes(const struct sim_gpu *s, struct bh_sim_gpu_view *v)
{
    for (const struct sim_account *a = s->accounts; a && v->n_processes < BH_SIM_VIEW_PROCESSES;
         a = a->next) {
        if (!bh_simrm_is_shown(a))
            continue;
        v->processes[v->n_processes++] = (struct bh_sim_process_view){
            .pid = a->pid,
            .gi = a->gi,
            .ci = a->ci,
            .bytes = a->private_bytes + a->owned_bytes,
            .busy_ns = busy_of(a).ns,
        };
    }
}

static void show_instances(const struct sim_gpu *s, struct bh_sim_gpu_view *v)
{
    for (size_t i = 0; i < BH_SIM_GIS_MAX && v->n_gis < BH_SIM_VIEW_GIS; i++) {
        const struct bh_sim_gi *gi = &s->mig.gis[i];
        if (!gi->made)
            continue;
        struct bh_sim_gi_view *g = &v->gis[v->n_gis++];
        *g = (struct bh_sim_gi_view){.id = gi->id,
                                     .profile_id = gi->profile->gi_profile_id,
                                     .start = gi->start,
                                     .size = gi->profile->placement_size,
                                     .total_bytes = gi->total_bytes,
                                     .used_bytes = gi->used_bytes};
        for (size_t j = 0; j < BH_SIM_CIS_MAX; j++) {
            const struct bh_sim_ci *ci = &gi->cis[j];
            if (!ci->made)
                continue;
            struct bh_sim_ci_view *c = &g->cis[g->n_cis++];
            *c = (struct bh_sim_ci_view){.id = ci->id, .slices = ci->slices, .start = ci->start};
            memcpy(c->uuid, ci->uuid, sizeof(c->uuid));
        }
    }
}

static void show_state(const struct bh_sim_rm *rm, uint32_t gpu, struct bh_sim_gpu_view *v)
{
    const struct bh_sim_gpu *g = &rm->node.gpus[gpu];
    const struct sim_gpu *s = &rm->gpus[gpu];
    size_t f = 0;
    while (!bh_str_starts(g->model->name, FAMILIES[f].start))
        f++;
    uint32_t busy = utilization(rm, s);
    v->util_percent =
        s->mig.on ? UINT32_MAX : busy; /* the driver has no such number for a card that is cut */
    v->memory_util_percent = s->mig.on ? UINT32_MAX : busy / 2;
    v->temperature_c = s->hot_c ? s->hot_c : COOL_C + busy * 35 / 100;
    v->power_limit_mw = FAMILIES[f].watt * 1000;
    v->power_mw = v->power_limit_mw / 10 + v->power_limit_mw / 100 * busy * 8 / 10;
    v->sm_mhz = busy ? FAMILIES[f].sm_mhz : FAMILIES[f].sm_mhz / 4;
    v->memory_mhz = FAMILIES[f].memory_mhz;
    v->throttle = s->throttle | (s->hot_c >= HOT_C ? THROTTLE_HOT : 0) | (busy ? 0 : THROTTLE_IDLE);
    v->ecc_on = 1;
    v->ecc_uncorrected = v->ecc_uncorrected_now = s->ecc_uncorrected;
    v->remapped_rows = s->remapped_rows;
    v->remap_pending = s->remap_pending;
    v->mig_capable = bh_model_has_mig(g->model);
    v->mig_on = s->mig.on;
    v->mig_pending = s->mig.pending;
    v->links_down = s->links_down;
    v->fabric_state = g->links ? NVML_FABRIC_COMPLETED : 0;
    v->fabric_health = !g->links ? 0 : s->links_down ? FABRIC_DEGRADED : FABRIC_HEALTHY;
}

bool bh_sim_rm_view_gpu(struct bh_sim_rm *rm, uint32_t gpu, struct bh_sim_gpu_view *ret)
{
    if (gpu >= rm->node.n_gpus)
        return false;
    const struct bh_sim_gpu *g = &rm->node.gpus[gpu];
    const struct sim_gpu *s = &rm->gpus[gpu];
    memset(ret, 0, sizeof(*ret));
    ret->index = gpu;
    ret->minor = g->minor;
    ret->module_id = g->module_id;
    ret->device_id = g->device_id;
    ret->numa = g->numa;
    ret->lost = s->lost;
    (void)snprintf(ret->model, sizeof(ret->model), "%s", g->model->name);
    memcpy(ret->name, g->name, sizeof(ret->name));
    memcpy(ret->uuid, g->uuid, sizeof(ret->uuid));
    memcpy(ret->serial, g->serial, sizeof(ret->serial));
    memcpy(ret->pci, g->pci, sizeof(ret->pci));
    memcpy(ret->vbios, g->vbios, sizeof(ret->vbios));
    ret->total_bytes = g->total_bytes;
    ret->reserved_bytes = g->reserved_bytes;
    ret->used_bytes = s->whole.memory.total_bytes - s->whole.memory.free_bytes;
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        ret->used_bytes += s->gis[i].memory.total_bytes - s->gis[i].memory.free_bytes;
    ret->sm = g->sm;
    ret->links = g->links;
    ret->switch_group = g->switch_group;
    ret->clique = g->clique;
    memcpy(ret->cluster, g->cluster, sizeof(ret->cluster));
    ret->now_ns = rm->now_ns;
    show_state(rm, gpu, ret);
    show_instances(s, ret);
    show_processes(s, ret);
    return true;
}

/* The newest CUDA that a branch of the driver knows. */
static uint32_t cuda_of(const char *driver)
{
    static const struct {
        uint32_t branch, cuda;
    } BRANCHES[] = {{580, 13000}, {575, 12090}, {570, 12080}, {565, 12070}, {560, 12060},
                    {555, 12050}, {550, 12040}, {545, 12030}, {535, 12020}, {530, 12010},
                    {525, 12000}, {515, 11070}, {510, 11060}, {470, 11040}, {0, 11000}};
    char head[8] = {0};
    uint64_t branch = 0;
    size_t n = strcspn(driver, "."), i = 0;
    memcpy(head, driver, n < sizeof(head) ? n : sizeof(head) - 1);
    if (bh_uint_parse(head, 99999, &branch, NULL) < 0)
        branch = 0;
    while (branch < BRANCHES[i].branch)
        i++;
    return BRANCHES[i].cuda;
}

void bh_sim_rm_view_node(struct bh_sim_rm *rm, struct bh_sim_node_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->n_gpus = rm->node.n_gpus;
    memcpy(ret->scene, rm->node.scene, sizeof(ret->scene));
    memcpy(ret->hostname, rm->node.hostname, sizeof(ret->hostname));
    memcpy(ret->driver, rm->driver, sizeof(ret->driver));
    ret->cuda = cuda_of(rm->driver);
    char nvml[40];
    (void)snprintf(nvml, sizeof(nvml), "%u.%s", ret->cuda / 1000, rm->driver);
    (void)memccpy(ret->nvml, nvml, '\0', sizeof(ret->nvml) - 1);
    ret->fail_status = rm->library_status;
    memcpy(ret->fail_call, rm->library_call, sizeof(ret->fail_call));
}
