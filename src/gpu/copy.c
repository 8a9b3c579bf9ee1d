/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/copy.h"

#include <string.h>

/* Where a struct has its texts and its readings; each run is without gaps. */
struct shape {
    size_t size, texts, n_texts, readings, n_readings;
};

#define RUN(T, first, last, E) ((offsetof(T, last) - offsetof(T, first)) / sizeof(E) + 1)
#define SHAPE(T, t0, t1, r0, r1)                                                \
    {sizeof(T), offsetof(T, t0), RUN(T, t0, t1, const char *), offsetof(T, r0), \
     RUN(T, r0, r1, struct bh_reading)}

static const struct shape of_snapshot =
    SHAPE(struct bh_gpu_snapshot, library, amdgpu, cc_environment, cc_devtools);
static const struct shape of_device =
    SHAPE(struct bh_gpu_device, trouble, memory_partitions, total_bytes, processes_seen);
static const struct shape of_instance = SHAPE(struct bh_gpu_instance, profile, uuid, gi_profile_id, ci_cap);
static const struct shape of_process = SHAPE(struct bh_gpu_process, kind, user, memory_bytes, memory_percent);
static const struct shape of_path = SHAPE(struct bh_gpu_path, ancestor, ancestor, read, nvlink);
static const struct shape of_link = {sizeof(struct bh_gpu_link), offsetof(struct bh_gpu_link, remote_pci), 1,
                                     0, 0};
static const struct shape of_switch = {sizeof(struct bh_gpu_switch), offsetof(struct bh_gpu_switch, pci),
                                       RUN(struct bh_gpu_switch, pci, bios, const char *), 0, 0};
static const struct shape of_text = {sizeof(const char *), 0, 1, 0, 0};

struct copier {
    struct bh_gpu_room *room; /* NULL: the heap */
    struct bh_arena *arena;   /* for texts on the heap */
    bool full;
};

static void *take(struct copier *c, size_t n)
{
    enum { ALIGN = 16 };
    if (!c->room)
        return bh_alloc(n, 1);
    size_t room = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (room < n || room > c->room->left) {
        c->full = true;
        return NULL;
    }
    void *at = c->room->at;
    c->room->at += room;
    c->room->left -= room;
    return at;
}

static void move_text(struct copier *c, char *at)
{
    const char *from, *to = NULL;
    memcpy(&from, at, sizeof(from));
    if (from && !c->room) {
        to = bh_arena_str(c->arena, from);
    } else if (from) {
        size_t n = strlen(from) + 1;
        char *copy = take(c, n);
        if (copy)
            memcpy(copy, from, n);
        to = copy;
    }
    memcpy(at, &to, sizeof(to));
}

/* The texts an item points at become its own. */
static void move_texts(struct copier *c, void *item, const struct shape *s)
{
    for (size_t i = 0; i < s->n_texts; i++)
        move_text(c, (char *)item + s->texts + i * sizeof(const char *));
    for (size_t i = 0; i < s->n_readings; i++)
        move_text(c, (char *)item + s->readings + i * sizeof(struct bh_reading) +
                         offsetof(struct bh_reading, why));
}

static void *copy_items(struct copier *c, const void *from, size_t n, const struct shape *s)
{
    char *at = n ? take(c, n * s->size) : NULL;
    if (!at)
        return NULL;
    memcpy(at, from, n * s->size);
    for (size_t i = 0; i < n; i++)
        move_texts(c, at + i * s->size, s);
    return at;
}

/* The copied vector still has the old items: they are replaced by copies. */
#define COPY_VEC(c, v, s) \
    ((v)->at = copy_items((c), (v)->at, (v)->n, (s)), (v)->n = (v)->cap = (v)->at ? (v)->n : 0)

bool bh_gpu_snapshot_copy(struct bh_gpu_snapshot *ret, const struct bh_gpu_snapshot *from,
                          struct bh_gpu_room *room)
{
    *ret = *from;
    ret->arena = (struct bh_arena){0};
    struct copier c = {room, &ret->arena, false};
    move_texts(&c, ret, &of_snapshot);
    COPY_VEC(&c, &ret->devices, &of_device);
    for (size_t i = 0; i < ret->devices.n; i++) {
        struct bh_gpu_device *d = &ret->devices.at[i];
        COPY_VEC(&c, &d->instances, &of_instance);
        COPY_VEC(&c, &d->processes, &of_process);
        COPY_VEC(&c, &d->up, &of_link);
    }
    COPY_VEC(&c, &ret->paths, &of_path);
    COPY_VEC(&c, &ret->switches, &of_switch);
    COPY_VEC(&c, &ret->notes, &of_text);
    return !c.full;
}

void bh_gpu_mark_dead(struct bh_gpu_device *d, const char *why)
{
    const struct bh_reading missing = {0, why};
    for (size_t i = 0; i < of_device.n_readings; i++)
        memcpy((char *)d + of_device.readings + i * sizeof(missing), &missing, sizeof(missing));
    d->alive = false;
}
