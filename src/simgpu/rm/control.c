/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - RM_CONTROL: a table of commands, and the few whose answer is computed.
 *
 * The computed ones are those on which memory caps, time slices and pauses stand.
 */
#include "simgpu/rm/state.h"

#define ON_ROOT      SIM_ROOT
#define ON_DEVICE    SIM_DEVICE
#define ON_SUBDEVICE SIM_SUBDEVICE
#define ON_GROUP     SIM_GROUP
#define ON_CHANNEL   SIM_CHANNEL
#define ON_PLAIN     SIM_PLAIN

static void put32(struct sim_call *c, size_t at, uint32_t v)
{
    memcpy(c->params + at, &v, sizeof(v));
}

static uint32_t get32(const struct sim_call *c, size_t at)
{
    uint32_t v;
    memcpy(&v, c->params + at, sizeof(v));
    return v;
}

/* --- cards --- */

static uint32_t attached_ids(struct sim_call *c)
{
    enum { IDS = 32 };
    for (uint32_t i = 0; i < IDS; i++)
        put32(c, i * sizeof(uint32_t),
              i < c->rm->node.n_gpus ? bh_simrm_gpu_id(&c->rm->node.gpus[i]) : SIM_NONE);
    return RM_OK;
}

/* flags, device, subdevice, [a name,] SLI, board, instance, NUMA node */
static uint32_t tell_id(struct sim_call *c, size_t rest_at)
{
    uint32_t id = get32(c, 0);
    for (uint32_t i = 0; i < c->rm->node.n_gpus; i++) {
        if (bh_simrm_gpu_id(&c->rm->node.gpus[i]) != id)
            continue;
        const uint32_t head[] = {0, i, 0}, rest[] = {0, id, i, (uint32_t)c->rm->node.gpus[i].numa};
        memcpy(c->params + sizeof(id), head, sizeof(head));
        memcpy(c->params + rest_at, rest, sizeof(rest));
        return RM_OK;
    }
    return RM_INVALID_ARGUMENT;
}

static uint32_t id_info(struct sim_call *c)
{
    return tell_id(c, 16);
}

static uint32_t id_info_long(struct sim_call *c)
{
    return tell_id(c, 24);
}

static uint32_t name(struct sim_call *c)
{
    enum { AT = 4, LENGTH = 64 };
    memset(c->params + AT, 0, c->n_params - AT);
    memcpy(c->params + AT, c->rm->node.gpus[c->object->gpu].name, LENGTH);
    return RM_OK;
}

/* As text, or as its 16 bytes. */
static uint32_t uuid(struct sim_call *c)
{
    enum { AT_FLAGS = 4, AT_LENGTH = 8, AT = 12, FORMAT = 3, BINARY = 2 };
    const struct bh_sim_gpu *g = &c->rm->node.gpus[c->object->gpu];
    uint8_t bytes[16];
    size_t n = strlen(g->uuid) + 1;
    if ((get32(c, AT_FLAGS) & FORMAT) == BINARY) {
        bh_simrm_uuid(g, bytes);
        n = sizeof(bytes);
        memcpy(c->params + AT, bytes, n);
    } else {
        memcpy(c->params + AT, g->uuid, n);
    }
    put32(c, AT_LENGTH, (uint32_t)n);
    return RM_OK;
}

/* --- memory --- */

enum { WINDOW_LEAST_KIB = 1 << 18, WINDOW_USED_KIB = 2 << 10 };

static uint32_t kib(uint64_t bytes)
{
    return (uint32_t)(bytes >> 10);
}

/* The processor's window: the next power of two above the card's memory. */
static uint32_t window(const struct bh_sim_gpu *g)
{
    uint32_t size = WINDOW_LEAST_KIB;
    while (size < kib(g->total_bytes) && size <= UINT32_MAX / 2)
        size *= 2;
    return size;
}

/* What is not counted here is 0. */
static uint32_t fb_value(const struct bh_sim_gpu *g, const struct sim_place *p, uint32_t index)
{
    uint64_t total = p && p->instance ? p->memory.total_bytes : g->total_bytes;
    switch (index) {
    case RM_FB_BAR1_SIZE:
        return window(g);
    case RM_FB_BAR1_FREE: /* a little of it is always used */
    case RM_FB_BAR1_LARGEST_FREE:
        return window(g) - WINDOW_USED_KIB;
    case RM_FB_RAM_SIZE:
    case RM_FB_TOTAL_RAM:
        return kib(total);
    case RM_FB_MAPPABLE_HEAP:
    case RM_FB_USABLE_RAM:
    case RM_FB_HEAP_SIZE:
        return p ? kib(p->memory.total_bytes) : 0;
    case RM_FB_LARGEST_FREE:
        return p ? kib(bh_extents_largest(&p->memory)) : 0;
    case RM_FB_HEAP_FREE:
        return p ? kib(p->memory.free_bytes) : 0;
    default:
        return 0;
    }
}

static uint32_t fb_info(struct sim_call *c)
{
    enum { INDICES = 0x40 };
    struct rm_fb_info f;
    uint32_t gpu = c->object->gpu;
    const struct sim_place *p = bh_simrm_place(c->rm, c->client, gpu);
    memcpy(&f, c->params, sizeof(f));
    if (f.count > BH_COUNT_OF(f.at))
        return RM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < f.count; i++) {
        if (f.at[i].index >= INDICES)
            return RM_INVALID_ARGUMENT;
        f.at[i].value = fb_value(&c->rm->node.gpus[gpu], p, f.at[i].index);
    }
    memcpy(c->params, &f, sizeof(f));
    return RM_OK;
}

/* Processes, each once; with a class other than the subdevice's only those that have channels. */
static uint32_t pids(struct sim_call *c)
{
    struct rm_pids p;
    struct bh_idmap seen = {0};
    memcpy(&p, c->params, sizeof(p));
    if (p.id_type != 0)
        return RM_INVALID_ARGUMENT;
    p.count = 0;
    const struct sim_account *a = c->rm->gpus[c->object->gpu].accounts;
    for (; a && p.count < BH_COUNT_OF(p.pids); a = a->next)
        if ((p.id == RM_CLASS_SUBDEVICE || a->n_channels) && bh_idmap_add(&seen, a->pid, 0))
            p.pids[p.count++] = a->pid;
    bh_idmap_fini(&seen);
    memcpy(c->params, &p, sizeof(p));
    return RM_OK;
}

static uint32_t pid_info(struct sim_call *c)
{
    struct rm_pid_info p;
    struct bh_idmap rows = {0}; /* the first row of each process */
    memcpy(&p, c->params, sizeof(p));
    if (p.count == 0 || p.count > BH_COUNT_OF(p.at))
        return RM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < p.count; i++) {
        uint32_t pid = p.at[i].pid, index = p.at[i].index;
        memset(&p.at[i], 0, sizeof(p.at[i]));
        p.at[i].pid = pid;
        p.at[i].ci = p.at[i].gi = SIM_NONE;
        p.at[i].index = index;
        (void)bh_idmap_add(&rows, pid, i);
    }
    for (const struct sim_account *a = c->rm->gpus[c->object->gpu].accounts; a; a = a->next) {
        uint32_t i = bh_idmap_find(&rows, a->pid);
        if (i == BH_IDMAP_NONE)
            continue;
        p.at[i].own += a->private_bytes;
        p.at[i].shared_owned += a->owned_bytes;
        p.at[i].shared_duped += a->duped_bytes;
        p.at[i].gi = a->gi != SIM_NONE ? a->gi : p.at[i].gi;
        p.at[i].ci = a->ci != SIM_NONE ? a->ci : p.at[i].ci;
    }
    for (uint32_t i = 0; i < p.count; i++) { /* asked for twice, told twice */
        uint32_t index = p.at[i].index;
        p.at[i] = p.at[bh_idmap_find(&rows, p.at[i].pid)];
        p.at[i].index = index;
        p.at[i].result = index == 0 ? RM_OK : RM_INVALID_ARGUMENT;
    }
    bh_idmap_fini(&rows);
    memcpy(c->params, &p, sizeof(p));
    return RM_OK;
}

/* Who uses the card, one a sample: first on the engine that computes, then, when all samples have one, on the memory's.
 * How much is not made up here. */
static uint32_t use_samples(struct sim_call *c)
{
    enum { MEMORY, COMPUTE };
    struct rm_use_samples s = {.bytes = sizeof(s.samples)};
    uint32_t n = 0;
    s.type = c->params[0];
    for (size_t i = 0; i < BH_COUNT_OF(s.samples); i++)
        for (size_t e = 0; e < BH_COUNT_OF(s.samples[i].engines); e++)
            s.samples[i].engines[e].pid = s.samples[i].engines[e].guest_pid = SIM_NONE;
    const struct sim_account *a = c->rm->gpus[c->object->gpu].accounts;
    for (; a && n < 2 * BH_COUNT_OF(s.samples); a = a->next) {
        const size_t at = n % BH_COUNT_OF(s.samples);
        if (!bh_simrm_is_shown(a))
            continue;
        s.samples[at].at = c->rm->now_ns / 1000 + 1; /* 0 would be an empty place */
        s.samples[at].engines[n++ < BH_COUNT_OF(s.samples) ? COMPUTE : MEMORY].pid = a->pid;
    }
    s.count = n < BH_COUNT_OF(s.samples) ? n : (uint32_t)BH_COUNT_OF(s.samples);
    s.tracker = s.count % BH_COUNT_OF(s.samples);
    memcpy(c->params, &s, sizeof(s));
    return RM_OK;
}

/* --- turns --- */

/* Enabling starts the group. Disabling is answered with success and stops nothing: so it is on the card. */
static uint32_t group_schedule(struct sim_call *c)
{
    if (c->params[0])
        bh_sim_group_schedule(c->object->place->sched, c->object->group);
    return RM_OK;
}

static uint32_t channel_schedule(struct sim_call *c)
{
    return group_schedule(c);
}

static uint32_t group_set_slice(struct sim_call *c)
{
    uint64_t us;
    memcpy(&us, c->params, sizeof(us));
    return bh_sim_group_set_slice(c->object->place->sched, c->object->group, us) ? RM_OK
                                                                                 : RM_INVALID_ARGUMENT;
}

static uint32_t group_get_slice(struct sim_call *c)
{
    uint64_t us = bh_sim_group_slice(c->object->place->sched, c->object->group);
    memcpy(c->params, &us, sizeof(us));
    return RM_OK;
}

static uint32_t group_set_level(struct sim_call *c)
{
    uint32_t level = get32(c, 0);
    if (!bh_sim_group_set_level(c->object->place->sched, c->object->group, level))
        return RM_INVALID_ARGUMENT;
    c->object->level = level;
    return RM_OK;
}

static uint32_t group_get_level(struct sim_call *c)
{
    put32(c, 0, c->object->level);
    return RM_OK;
}

/* All or none; and anybody's: the card asks neither whose they are nor who it is that asks (measured on an H200). */
static uint32_t disable_channels(struct sim_call *c)
{
    struct rm_disable_channels d;
    struct sim_object *channels[BH_COUNT_OF(d.channels)];
    memcpy(&d, c->params, sizeof(d));
    if (d.count > BH_COUNT_OF(d.channels))
        return RM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < d.count; i++) {
        struct sim_client *client = bh_simrm_client_any(c->rm, d.clients[i]);
        if (!client)
            return RM_INVALID_CLIENT;
        channels[i] = bh_simrm_object(c->rm, client, d.channels[i]);
        if (!channels[i] || channels[i]->class->kind != SIM_CHANNEL || channels[i]->gpu != c->object->gpu)
            return RM_OBJECT_NOT_FOUND;
    }
    for (uint32_t i = 0; i < d.count; i++)
        if (!bh_simrm_channel_dead(c->rm, channels[i]))
            bh_sim_channel_enable(channels[i]->place->sched, channels[i]->channel, !d.disable);
    return RM_OK;
}

/* --- the table --- */

#define ANYONE false
#define ADMIN  true

static const struct sim_command COMMANDS[] = {
#define HANDLED(command, params, on, who, handler) {command, params, on, who, RM_OK, handler},
#define CANNED(command, params, on, who, status)   {command, params, on, who, status, NULL},
#include "simgpu/rm/controls.def"
#undef HANDLED
#undef CANNED
};

void bh_simrm_commands_init(struct bh_sim_rm *rm)
{
    for (uint32_t i = 0; i < BH_COUNT_OF(COMMANDS); i++)
        (void)bh_idmap_add(&rm->commands, COMMANDS[i].command, i);
}

const struct sim_command *bh_simrm_command(const struct bh_sim_rm *rm, uint32_t command)
{
    uint32_t i = bh_idmap_find(&rm->commands, command);
    return i == BH_IDMAP_NONE ? NULL : &COMMANDS[i];
}

int bh_simrm_control(struct sim_call *c, void *arg, size_t n)
{
    struct rm_control a;
    (void)n;
    memcpy(&a, arg, sizeof(a));
    const struct sim_command *row = bh_simrm_command(c->rm, a.command);
    c->client = bh_simrm_client(c->rm, c->file, a.client);
    if (!c->client)
        return RM_INVALID_CLIENT;
    c->object = bh_simrm_object(c->rm, c->client, a.object);
    if (!c->object)
        return RM_OBJECT_NOT_FOUND;
    if (!row)
        return RM_INVALID_COMMAND;
    if (row->on != c->object->class->kind)
        return RM_INVALID_OBJECT_HANDLE;
    if (a.params_size != c->n_params || (row->params >= 0 && c->n_params != (size_t)row->params))
        return RM_INVALID_PARAM_STRUCT;
    if (row->admin && !c->who->admin)
        return RM_INSUFFICIENT_PERMISSIONS;
    if (c->object->gpu != SIM_NONE && c->rm->gpus[c->object->gpu].lost)
        return RM_GPU_IS_LOST;
    return (int)(row->handle ? row->handle(c) : row->status);
}
