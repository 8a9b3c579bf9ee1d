/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - physical video memory: who has which piece, and for whom it counts.
 *
 * Sizes are rounded up to 64 KiB below 2 MiB and to 2 MiB from there on; what comes back in `size` is what is charged.
 * A piece that one object refers to is private; with more references (duplicates, mappings through UVM) the
 * oldest object owns it and the others have it duplicated. When the owner goes first, the next oldest owns it, so the
 * owners' bytes always add up to what is taken. Managed memory, and memory that only a mapping still holds, is in
 * no process's count: the driver's own counters have the same gap.
 */
#include "simgpu/rm/state.h"

uint64_t bh_simrm_round(uint64_t bytes)
{
    uint64_t unit = bytes < SIM_LARGE ? SIM_UNIT : SIM_LARGE;
    return bytes > UINT64_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

static void place_charge(struct sim_place *p)
{
    if (p->instance)
        p->instance->used_bytes = p->memory.total_bytes - p->memory.free_bytes;
}

struct sim_block *bh_simrm_block_new(struct bh_sim_rm *rm, struct sim_place *place, uint64_t bytes)
{
    uint64_t base;
    if (!bh_extents_take(&place->memory, bytes, &base))
        return NULL;
    struct sim_block *b = bh_alloc(1, sizeof(*b));
    *b = (struct sim_block){.place = place, .base = base, .bytes = bytes};
    place->pins++;
    place->unowned_bytes += bytes;
    place_charge(place);
    bh_simrm_content_adopt(rm, b);
    return b;
}

static void block_drop(struct bh_sim_rm *rm, struct sim_block *b)
{
    bh_simrm_content_free(rm, b);
    bh_extents_give(&b->place->memory, b->base, b->bytes);
    b->place->pins--;
    b->place->unowned_bytes -= b->bytes;
    place_charge(b->place);
    free(b);
}

/* Adds (or takes away) the block where its bytes count: with its owner, or with nobody. Duplicates count apart. */
static void owner_count(struct sim_block *b, bool add)
{
    uint64_t by = add ? b->bytes : -b->bytes; /* unsigned arithmetic wraps back */
    if (!bh_simrm_block_counts(b))
        b->place->unowned_bytes += by;
    else if (b->n_refs + b->n_maps > 1)
        b->first->account->owned_bytes += by;
    else
        b->first->account->private_bytes += by;
}

void bh_simrm_block_hold(struct sim_block *b, struct sim_object *object)
{
    owner_count(b, false);
    object->block = b;
    object->ref_prev = b->last;
    *(b->last ? &b->last->ref_next : &b->first) = object;
    b->last = object;
    b->n_refs++;
    owner_count(b, true);
    if (b->first != object)
        object->account->duped_bytes += b->bytes;
}

void bh_simrm_block_release(struct bh_sim_rm *rm, struct sim_object *object)
{
    struct sim_block *b = object->block;
    struct sim_object *no_longer_duped = b->first == object ? object->ref_next : object;
    owner_count(b, false);
    if (no_longer_duped)
        no_longer_duped->account->duped_bytes -= b->bytes;
    *(object->ref_prev ? &object->ref_prev->ref_next : &b->first) = object->ref_next;
    *(object->ref_next ? &object->ref_next->ref_prev : &b->last) = object->ref_prev;
    object->block = NULL;
    object->ref_next = object->ref_prev = NULL;
    b->n_refs--;
    owner_count(b, true);
    if (!b->n_refs && !b->n_maps)
        block_drop(rm, b);
}

void bh_simrm_block_map(struct sim_block *b)
{
    owner_count(b, false);
    b->n_maps++;
    owner_count(b, true);
}

void bh_simrm_block_unmap(struct bh_sim_rm *rm, struct sim_block *b)
{
    owner_count(b, false);
    b->n_maps--;
    owner_count(b, true);
    if (!b->n_refs && !b->n_maps)
        block_drop(rm, b);
}

struct sim_account *bh_simrm_account(struct bh_sim_rm *rm, const struct sim_client *client, uint32_t gpu)
{
    const struct sim_object *partition = bh_simrm_partition(client, gpu);
    uint32_t gi = partition ? partition->gi : SIM_NONE, ci = partition ? partition->ci : SIM_NONE;
    uint64_t key = (uint64_t)client->pid << 32 | gpu << 16 | (gi & 0xff) << 8 | (ci & 0xff);
    uint32_t slot = bh_idmap_find(&rm->account_keys, key);
    struct sim_account *a = slot == BH_IDMAP_NONE ? NULL : rm->accounts.at[slot];
    if (!a) {
        a = bh_alloc(1, sizeof(*a));
        *a = (struct sim_account){.key = key, .pid = client->pid, .gpu = gpu, .gi = gi, .ci = ci};
        SIM_PUT(rm, accounts, a);
        (void)bh_idmap_add(&rm->account_keys, key, a->slot);
        SIM_LINK(&rm->gpus[gpu].accounts, a, next, prev);
    }
    a->n_objects++;
    return a;
}

void bh_simrm_account_drop(struct bh_sim_rm *rm, struct sim_account *a)
{
    if (--a->n_objects)
        return;
    SIM_UNLINK(&rm->gpus[a->gpu].accounts, a, next, prev);
    (void)bh_idmap_remove(&rm->account_keys, a->key);
    SIM_DROP(rm, accounts, a);
}
