/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handles.c - which pointers are live objects of this library.
 *
 * A program may hand in a stream it destroyed long ago. The vendor's library mostly answers with an error, so this one
 * always does: a handle is looked up here before it is followed. Open addressing; a removed entry leaves a mark.
 */
#include "simgpu/cuda/internal.h"

struct slot {
    uintptr_t at; /* 0: never used; GONE: was */
    enum bh_cu_kind kind;
};
enum { GONE = 1 };

static struct slot *slots;
static size_t n_used, cap; /* n_used counts removed ones too */

static size_t place_of(uintptr_t at, size_t of)
{
    return (size_t)((uint64_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 24) & (of - 1);
}

static struct slot *find(uintptr_t at)
{
    for (size_t i = cap ? place_of(at, cap) : 0; cap && slots[i].at; i = (i + 1) & (cap - 1))
        if (slots[i].at == at)
            return &slots[i];
    return NULL;
}

static void grow(void)
{
    struct slot *old = slots;
    const size_t n = cap;
    size_t live = 0;
    for (size_t i = 0; i < n; i++)
        live += old[i].at > GONE;
    cap = 64;
    while (cap < live * 4)
        cap *= 2;
    slots = bh_alloc(cap, sizeof(*slots));
    n_used = live;
    for (size_t i = 0; i < n; i++) {
        if (old[i].at <= GONE)
            continue;
        size_t to = place_of(old[i].at, cap);
        while (slots[to].at)
            to = (to + 1) & (cap - 1);
        slots[to] = old[i];
    }
    free(old);
}

void bh_cu_handle_add(enum bh_cu_kind kind, const void *at)
{
    pthread_mutex_lock(&cu.lock);
    if ((n_used + 1) * 2 > cap)
        grow();
    size_t to = place_of((uintptr_t)at, cap);
    while (slots[to].at)
        to = (to + 1) & (cap - 1);
    slots[to] = (struct slot){(uintptr_t)at, kind};
    n_used++;
    pthread_mutex_unlock(&cu.lock);
}

bool bh_cu_handle_remove(enum bh_cu_kind kind, const void *at)
{
    pthread_mutex_lock(&cu.lock);
    struct slot *s = (uintptr_t)at > GONE ? find((uintptr_t)at) : NULL;
    bool ok = s && s->kind == kind;
    if (ok)
        s->at = GONE;
    pthread_mutex_unlock(&cu.lock);
    return ok;
}

bool bh_cu_handle_ok(enum bh_cu_kind kind, const void *at)
{
    pthread_mutex_lock(&cu.lock);
    const struct slot *s = (uintptr_t)at > GONE ? find((uintptr_t)at) : NULL;
    bool ok = s && s->kind == kind;
    pthread_mutex_unlock(&cu.lock);
    return ok;
}

void *bh_cu_handle_next(enum bh_cu_kind kind, size_t *place)
{
    void *found = NULL;
    pthread_mutex_lock(&cu.lock);
    while (!found && *place < cap) {
        const struct slot *s = &slots[(*place)++];
        if (s->at > GONE && s->kind == kind)
            found = (void *)s->at;
    }
    pthread_mutex_unlock(&cu.lock);
    return found;
}
