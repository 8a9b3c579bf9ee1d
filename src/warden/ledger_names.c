/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_names.c - from the name of an object to its place, in constant time.
 *
 * Handles are chosen by tenants, so names are mixed with a seed that they cannot know before they pick a place. As
 * base/idmap.h, but the key is not kept a second time beside the object that has it.
 */
#include "warden/ledger_state.h"

enum { SLOT_MASK = (1 << LEDGER_SLOT_BITS) - 1 };

static uint64_t mix(const struct bh_ledger *l, uint32_t client, uint32_t handle)
{
    return bh_idmap_mix(((uint64_t)client << 32 | handle) ^ l->names.seed);
}

static size_t home(const struct bh_ledger *l, uint64_t mixed)
{
    return (size_t)mixed & (l->names.cap - 1);
}

/* From the other end of the mix than the home. */
static uint32_t tag(uint64_t mixed)
{
    return (uint32_t)(mixed >> 32) & ~(uint32_t)SLOT_MASK;
}

static const struct ledger_object *object_at(const struct bh_ledger *l, size_t place)
{
    return &l->objects.at[(l->names.slots[place] & SLOT_MASK) - 1];
}

/* Where it is, or the empty place where the search ends. */
static size_t probe(const struct bh_ledger *l, uint32_t client, uint32_t handle)
{
    const uint64_t mixed = mix(l, client, handle);
    size_t i = home(l, mixed);
    for (; l->names.slots[i]; i = (i + 1) & (l->names.cap - 1)) {
        if (((l->names.slots[i] ^ tag(mixed)) & ~(uint32_t)SLOT_MASK) != 0)
            continue;
        const struct ledger_object *o = object_at(l, i);
        if (o->client == client && o->handle == handle)
            break;
    }
    return i;
}

static void put(struct bh_ledger *l, uint32_t slot)
{
    const uint64_t mixed = mix(l, l->objects.at[slot].client, l->objects.at[slot].handle);
    size_t i = home(l, mixed);
    while (l->names.slots[i])
        i = (i + 1) & (l->names.cap - 1);
    l->names.slots[i] = tag(mixed) | (slot + 1);
}

static void grow(struct bh_ledger *l)
{
    const struct ledger_names old = l->names;
    l->names.cap = old.cap ? old.cap * 2 : 16;
    l->names.slots = bh_alloc(l->names.cap, sizeof(*l->names.slots));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            put(l, (old.slots[i] & SLOT_MASK) - 1);
    free(old.slots);
}

void ledger_name_add(struct bh_ledger *l, uint32_t slot)
{
    if ((l->names.n + 1) * 2 > l->names.cap)
        grow(l);
    put(l, slot);
    l->names.n++;
}

uint32_t ledger_name_find(const struct bh_ledger *l, uint32_t client, uint32_t handle)
{
    return l->names.cap ? (l->names.slots[probe(l, client, handle)] & SLOT_MASK) - 1 : LEDGER_NONE;
}

void ledger_name_remove(struct bh_ledger *l, uint32_t slot)
{
    uint32_t *slots = l->names.slots;
    const size_t mask = l->names.cap - 1;
    if (!l->names.cap)
        return;
    size_t hole = probe(l, l->objects.at[slot].client, l->objects.at[slot].handle);
    if (!slots[hole])
        return;
    /* Whoever was pushed past the hole moves back into it, so that no look-up stops short. */
    for (size_t i = (hole + 1) & mask; slots[i]; i = (i + 1) & mask) {
        const struct ledger_object *o = object_at(l, i);
        const size_t from_home = (i - home(l, mix(l, o->client, o->handle))) & mask;
        if (from_home >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole] = 0;
    l->names.n--;
}
