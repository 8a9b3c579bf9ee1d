/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_fixture.h - a driver small enough to be right by inspection, and a gate that tells a ledger about it.
 *
 * Tenants make, duplicate and free; files close and processes die, and the ledger hears of that at once or late; grants
 * stay in flight while the driver is counted; the driver takes memory nobody asked for. After each step the ledger is
 * held against the truth. The same storm runs under a seed and under the fuzzer.
 */
#ifndef BH_WARDEN_LEDGER_FIXTURE_H
#define BH_WARDEN_LEDGER_FIXTURE_H

#include "base/choice.h"
#include "base/mem.h"
#include "warden/ledger.h"

#define STORM_UNIT UINT64_C(65536)
#define STORM_CAP  (64 * STORM_UNIT)
enum { GPUS = 2, PROCESSES = 4, FILES = 2, CLIENTS = 12, OBJECTS = 160, FLIGHTS = 4, LATE = 6, HANDLES = 40 };
enum { NOBODY = -1 };

struct storm_memory {
    uint64_t bytes;
    uint32_t gpu, refs;
};
struct storm_object {
    bool live;
    int client, parent, memory; /* parent NOBODY: the client's root; memory NOBODY: none */
    uint32_t handle, gpu;
};
struct storm_client {
    bool live;
    uint32_t handle, process, file;
    uint64_t implicit[GPUS]; /* what the driver took unasked */
};
struct storm_process {
    uint32_t pid;
    uint64_t managed, files[FILES];
};
struct storm_flight { /* reserved, not settled */
    bool live;
    int client, parent, object; /* object NOBODY: not made yet */
    uint32_t gpu;
    uint64_t bytes;
};

struct storm {
    struct bh_choice *c;
    struct bh_ledger *l;
    struct storm_process processes[PROCESSES];
    struct storm_client clients[CLIENTS];
    struct storm_object objects[OBJECTS];
    struct storm_memory memory[OBJECTS];
    struct storm_flight flights[FLIGHTS];
    struct {
        bool process;
        uint64_t id;
    } late[LATE]; /* ends the ledger has not heard of */
    size_t n_late;
    uint64_t late_managed;
    uint32_t names;                     /* handed out: pids, files, clients */
    uint64_t grown[GPUS], slack[GPUS];  /* since the last count: taken unasked; gone without RM_FREE */
    uint64_t untold[GPUS];              /* gone in the driver, still held in the ledger */
    uint64_t granted, refused, settled; /* that the storm did something */
    uint64_t digest;
    const char *why; /* the first thing that was wrong */
};

static inline void storm_want(struct storm *s, bool ok, const char *why)
{
    if (!ok && !s->why)
        s->why = why;
}

static inline uint64_t storm_named(const struct storm *s, uint32_t gpu) /* memory that was asked for */
{
    uint64_t sum = 0;
    for (int i = 0; i < OBJECTS; i++)
        if (s->memory[i].refs && s->memory[i].gpu == gpu)
            sum += s->memory[i].bytes;
    return sum;
}

static inline uint64_t storm_implicit(const struct storm *s, uint32_t gpu)
{
    uint64_t sum = 0;
    for (int i = 0; i < CLIENTS; i++)
        sum += s->clients[i].live ? s->clients[i].implicit[gpu] : 0;
    return sum;
}

static inline uint64_t storm_managed(const struct storm *s)
{
    uint64_t sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += s->processes[i].managed;
    return sum;
}

static inline uint64_t storm_in_flight(const struct storm *s, uint32_t gpu, bool made_only)
{
    uint64_t sum = 0;
    for (int i = 0; i < FLIGHTS; i++)
        if (s->flights[i].live && s->flights[i].gpu == gpu && (!made_only || s->flights[i].object != NOBODY))
            sum += s->flights[i].bytes;
    return sum;
}

/* Its tenant has not been told the name yet. */
static inline bool storm_flying(const struct storm *s, int object)
{
    for (int i = 0; i < FLIGHTS; i++)
        if (s->flights[i].live && s->flights[i].object == object)
            return true;
    return false;
}

static inline int storm_pick_object(struct storm *s)
{
    int from = (int)bh_choose(s->c, OBJECTS);
    for (int i = 0; i < OBJECTS; i++)
        if (s->objects[(from + i) % OBJECTS].live && !storm_flying(s, (from + i) % OBJECTS))
            return (from + i) % OBJECTS;
    return NOBODY;
}

static inline int storm_pick_client(struct storm *s)
{
    int from = (int)bh_choose(s->c, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        if (s->clients[(from + i) % CLIENTS].live)
            return (from + i) % CLIENTS;
    return NOBODY;
}

static inline uint32_t storm_handle(const struct storm *s, int client, int object)
{
    return object == NOBODY ? s->clients[client].handle : s->objects[object].handle;
}

/* The driver: names are used again as soon as they are free. NOBODY: no room, or the name drawn is taken. */
static inline int storm_make(struct storm *s, int client, int parent, uint32_t gpu, int memory)
{
    uint32_t handle = 1 + bh_choose(s->c, HANDLES);
    int slot = NOBODY;
    for (int i = 0; i < OBJECTS; i++) {
        if (!s->objects[i].live)
            slot = i;
        else if (s->objects[i].client == client && s->objects[i].handle == handle)
            return NOBODY;
    }
    if (slot == NOBODY)
        return NOBODY;
    s->objects[slot] = (struct storm_object){
        .live = true, .client = client, .parent = parent, .memory = memory, .handle = handle, .gpu = gpu};
    if (memory != NOBODY)
        s->memory[memory].refs++;
    return slot;
}

static inline void storm_unmake(struct storm *s, int object, bool freed)
{
    struct storm_object *o = &s->objects[object];
    o->live = false;
    if (o->memory == NOBODY || --s->memory[o->memory].refs)
        return;
    const struct storm_memory *m = &s->memory[o->memory];
    if (!freed || s->n_late) {
        s->slack[m->gpu] += m->bytes;
        s->untold[m->gpu] += m->bytes;
    }
}

static inline void storm_unmake_client(struct storm *s, int client, bool freed)
{
    for (int i = 0; i < OBJECTS; i++)
        if (s->objects[i].live && s->objects[i].client == client)
            storm_unmake(s, i, freed);
    for (uint32_t g = 0; g < GPUS; g++)
        s->slack[g] += s->clients[client].implicit[g];
    s->clients[client].live = false;
}

static inline void storm_tell(struct storm *s, int object, uint64_t bytes)
{
    const struct storm_object *o = &s->objects[object];
    bh_ledger_object(s->l, &(struct bh_ledger_object){.client = s->clients[o->client].handle,
                                                      .parent = storm_handle(s, o->client, o->parent),
                                                      .object = o->handle,
                                                      .gpu = o->gpu,
                                                      .bytes = bytes,
                                                      .reserved = bytes});
}

static inline int storm_make_memory(struct storm *s, const struct storm_flight *f)
{
    int memory = 0;
    while (memory < OBJECTS && s->memory[memory].refs)
        memory++;
    if (memory == OBJECTS)
        return NOBODY;
    s->memory[memory] = (struct storm_memory){.bytes = f->bytes, .gpu = f->gpu};
    return storm_make(s, f->client, f->parent, f->gpu, memory);
}

static inline void storm_settle(struct storm *s, struct storm_flight *f)
{
    f->live = false;
    if (f->object == NOBODY)
        f->object = storm_make_memory(s, f);
    if (f->object == NOBODY) {
        bh_ledger_give_back(s->l, f->gpu, f->bytes);
        return;
    }
    s->settled++;
    storm_tell(s, f->object, f->bytes);
}

/* A client's calls are answered before anything of it ends: the gate does one thing at a time for each. */
static inline void storm_land(struct storm *s, int client)
{
    for (int i = 0; i < FLIGHTS; i++)
        if (s->flights[i].live && s->flights[i].client == client)
            storm_settle(s, &s->flights[i]);
}

static inline void storm_step_client(struct storm *s)
{
    uint32_t p = bh_choose(s->c, PROCESSES), f = bh_choose(s->c, FILES);
    for (int i = 0; i < CLIENTS; i++) {
        if (s->clients[i].live)
            continue;
        s->clients[i] =
            (struct storm_client){.live = true, .handle = 0xc1d00000 + s->names++, .process = p, .file = f};
        storm_want(
            s, bh_ledger_client(s->l, s->processes[p].pid, s->processes[p].files[f], s->clients[i].handle),
            "a new client was refused");
        return;
    }
}

static inline void storm_step_device(struct storm *s)
{
    int client = storm_pick_client(s);
    int object = client == NOBODY ? NOBODY : storm_make(s, client, NOBODY, bh_choose(s->c, GPUS), NOBODY);
    if (object != NOBODY)
        storm_tell(s, object, 0);
}

static inline void storm_step_alloc(struct storm *s)
{
    int parent = storm_pick_object(s), slot = 0;
    if (parent == NOBODY)
        return;
    uint32_t how = bh_choose(s->c, 8), gpu = s->objects[parent].gpu;
    struct storm_flight f = {true, s->objects[parent].client, parent, NOBODY, gpu, 0};
    f.bytes = STORM_UNIT * (1 + bh_choose(s->c, 16));
    bool fits = bh_ledger_reserve(s->l, gpu, f.bytes);
    uint64_t used = bh_ledger_sum(s->l, gpu).used;
    if (!fits) {
        storm_want(s, used + f.bytes > STORM_CAP, "a refusal where there was room");
        s->refused++;
        return;
    }
    s->granted++;
    storm_want(s, used <= STORM_CAP, "a grant past the cap");
    while (slot < FLIGHTS && s->flights[slot].live)
        slot++;
    if (how == 0) {
        bh_ledger_give_back(s->l, gpu, f.bytes); /* the driver had no room */
    } else if (how < 5 || slot == FLIGHTS) {
        storm_settle(s, &f);
    } else {
        if (how == 7)
            f.object = storm_make_memory(s, &f); /* made, and the news of it is still on its way */
        s->flights[slot] = f;
    }
}

static inline void storm_step_settle(struct storm *s)
{
    struct storm_flight *f = &s->flights[bh_choose(s->c, FLIGHTS)];
    if (f->live)
        storm_settle(s, f);
}

static inline void storm_step_dup(struct storm *s)
{
    int client = storm_pick_client(s), from = storm_pick_object(s);
    if (client == NOBODY)
        return;
    uint32_t gpu = from == NOBODY ? 0 : s->objects[from].gpu;
    int memory = from == NOBODY ? NOBODY : s->objects[from].memory;
    int object = storm_make(s, client, NOBODY, gpu, memory);
    if (object == NOBODY)
        return;
    struct bh_ledger_object o = {.client = s->clients[client].handle,
                                 .parent = s->clients[client].handle,
                                 .object = s->objects[object].handle,
                                 .gpu = UINT32_MAX};
    if (from == NOBODY)
        bh_ledger_dup(s->l, &o, 0xdead, 1); /* from outside */
    else
        bh_ledger_dup(s->l, &o, s->clients[s->objects[from].client].handle, s->objects[from].handle);
}

static inline bool storm_below(const struct storm *s, int object, int top)
{
    while (object != NOBODY && object != top)
        object = s->objects[object].parent;
    return object == top;
}

static inline void storm_step_free(struct storm *s)
{
    int top = storm_pick_object(s);
    bool dead[OBJECTS];
    if (top == NOBODY)
        return;
    uint32_t client = s->clients[s->objects[top].client].handle;
    storm_land(s, s->objects[top].client);
    for (int i = 0; i < OBJECTS; i++)
        dead[i] = s->objects[i].live && storm_below(s, i, top);
    for (int i = 0; i < OBJECTS; i++)
        if (dead[i])
            storm_unmake(s, i, true);
    bh_ledger_drop(s->l, client, s->objects[top].handle);
    if (bh_choose(s->c, 4) == 0)
        bh_ledger_drop(s->l, client, s->objects[top].handle); /* twice */
}

static inline void storm_step_free_client(struct storm *s)
{
    int client = storm_pick_client(s);
    if (client == NOBODY)
        return;
    storm_land(s, client);
    storm_unmake_client(s, client, true);
    bh_ledger_drop(s->l, s->clients[client].handle, s->clients[client].handle);
}

static inline void storm_hear(struct storm *s)
{
    for (size_t i = 0; i < s->n_late; i++) {
        if (s->late[i].process)
            bh_ledger_process_gone(s->l, (uint32_t)s->late[i].id);
        else
            bh_ledger_file_closed(s->l, s->late[i].id);
    }
    s->n_late = 0;
    s->late_managed = 0;
    memset(s->untold, 0, sizeof(s->untold));
}

static inline void storm_end_of(struct storm *s, bool process, uint64_t id)
{
    s->late[s->n_late].process = process;
    s->late[s->n_late++].id = id;
    if (s->n_late == LATE || bh_choose(s->c, 2))
        storm_hear(s);
}

static inline void storm_step_close(struct storm *s)
{
    uint32_t p = bh_choose(s->c, PROCESSES), f = bh_choose(s->c, FILES);
    for (int i = 0; i < CLIENTS; i++)
        if (s->clients[i].live && s->clients[i].process == p && s->clients[i].file == f) {
            storm_land(s, i);
            storm_unmake_client(s, i, false);
        }
    uint64_t file = s->processes[p].files[f];
    s->processes[p].files[f] = UINT64_C(1) << 40 | s->names++;
    storm_end_of(s, false, file);
}

static inline void storm_kill(struct storm *s, uint32_t p)
{
    for (int i = 0; i < CLIENTS; i++)
        if (s->clients[i].live && s->clients[i].process == p) {
            storm_land(s, i);
            storm_unmake_client(s, i, false);
        }
    uint32_t pid = s->processes[p].pid;
    s->late_managed += s->processes[p].managed;
    s->processes[p] = (struct storm_process){.pid = 1 + s->names++};
    for (int f = 0; f < FILES; f++)
        s->processes[p].files[f] = UINT64_C(1) << 40 | s->names++;
    storm_end_of(s, true, pid);
}

static inline void storm_step_kill(struct storm *s)
{
    storm_kill(s, bh_choose(s->c, PROCESSES));
}

static inline void storm_step_implicit(struct storm *s)
{
    int client = storm_pick_client(s);
    uint32_t gpu = bh_choose(s->c, GPUS);
    uint64_t bytes = STORM_UNIT / 16 * bh_choose(s->c, 16);
    if (client == NOBODY)
        return;
    uint64_t *now = &s->clients[client].implicit[gpu];
    s->grown[gpu] += bytes > *now ? bytes - *now : 0;
    s->slack[gpu] += bytes < *now ? *now - bytes : 0;
    *now = bytes;
}

static inline void storm_step_managed(struct storm *s)
{
    struct storm_process *p = &s->processes[bh_choose(s->c, PROCESSES)];
    uint64_t bytes = STORM_UNIT * (1 + bh_choose(s->c, 8));
    if (bh_choose(s->c, 2)) {
        if (bh_ledger_map(s->l, p->pid, bytes))
            p->managed += bytes;
    } else {
        bh_ledger_unmap(s->l, p->pid, bytes);
        p->managed -= bytes < p->managed ? bytes : p->managed;
    }
}

/* What must hold at any time. */
static inline void storm_check(struct storm *s)
{
    storm_want(s, !bh_ledger_check(s->l), bh_ledger_check(s->l));
    for (uint32_t g = 0; g < GPUS; g++) {
        struct bh_ledger_sum sum = bh_ledger_sum(s->l, g);
        uint64_t named = storm_named(s, g), truth = named + storm_implicit(s, g), managed = storm_managed(s);
        s->digest = (s->digest ^ sum.used ^ sum.held << 1 ^ sum.peak << 2) * UINT64_C(0x100000001b3);
        if (!sum.used && !sum.peak)
            continue; /* not seen yet */
        storm_want(s, named + managed <= STORM_CAP, "more was granted than the cap");
        storm_want(s, sum.reserved == storm_in_flight(s, g, false), "reservations do not add up");
        storm_want(s, sum.managed == managed + s->late_managed, "managed memory does not add up");
        storm_want(s, sum.used + s->grown[g] >= truth + managed, "less used than is held");
        storm_want(s, sum.used <= truth + sum.reserved + sum.managed + s->slack[g], "more used than is held");
        storm_want(s, sum.held + sum.reserved >= named, "less held than was granted");
    }
}

static inline void storm_step_count(struct storm *s)
{
    for (uint32_t g = 0; g < GPUS; g++) {
        uint64_t named = storm_named(s, g), implicit = storm_implicit(s, g);
        bh_ledger_counted(s->l, g, named + implicit);
        s->grown[g] = 0;
        s->slack[g] = s->untold[g] + storm_in_flight(s, g, true);
        struct bh_ledger_sum sum = bh_ledger_sum(s->l, g);
        if (s->n_late || storm_in_flight(s, g, true))
            continue;
        storm_want(s, sum.held == named, "held is not what the driver has");
        storm_want(s, sum.overhead == implicit, "overhead is not what the driver took unasked");
        storm_want(s, sum.used == named + implicit + sum.reserved + sum.managed, "used is not what is used");
    }
}

static inline void storm_step(struct storm *s)
{
    static void (*const steps[])(struct storm *) = {
        storm_step_client,   storm_step_client,      storm_step_device,
        storm_step_device,   storm_step_alloc,       storm_step_alloc,
        storm_step_alloc,    storm_step_alloc,       storm_step_alloc,
        storm_step_alloc,    storm_step_settle,      storm_step_settle,
        storm_step_dup,      storm_step_dup,         storm_step_free,
        storm_step_free,     storm_step_free_client, storm_step_close,
        storm_step_implicit, storm_step_implicit,    storm_hear,
        storm_step_managed,  storm_step_count,       storm_step_count,
        storm_step_kill,
    };
    steps[bh_choose(s->c, sizeof(steps) / sizeof(steps[0]))](s);
    storm_check(s);
}

static inline void storm_init(struct storm *s, struct bh_choice *c, uint64_t seed)
{
    memset(s, 0, sizeof(*s));
    s->c = c;
    s->l = bh_ledger_new(STORM_CAP);
    bh_ledger_seed(s->l, seed);
    for (uint32_t p = 0; p < PROCESSES; p++) {
        s->processes[p].pid = 1 + s->names++;
        for (int f = 0; f < FILES; f++)
            s->processes[p].files[f] = UINT64_C(1) << 40 | s->names++;
    }
}

/* Everybody dies; nothing may be left. */
static inline const char *storm_end(struct storm *s)
{
    for (uint32_t p = 0; p < PROCESSES; p++)
        storm_kill(s, p);
    storm_hear(s);
    storm_step_count(s);
    storm_check(s);
    for (uint32_t g = 0; g < GPUS; g++) {
        struct bh_ledger_sum sum = bh_ledger_sum(s->l, g);
        storm_want(
            s, !(sum.held | sum.reserved | sum.managed | sum.overhead | sum.used | sum.objects | sum.clients),
            "something is left at the end");
    }
    bh_ledger_free(s->l);
    return s->why;
}

#endif
