/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - everything that must hold between two calls, counted anew from the ground.
 *
 * Nothing here trusts a sum that the manager keeps: trees are walked, references followed, bytes added up, and the
 * result compared with what is kept. The first thing that does not hold is told.
 */
#include "simgpu/rm/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct tally { /* of a place */
    uint64_t bytes, unowned;
    uint32_t pins, groups, channels;
};

struct check {
    const struct bh_sim_rm *rm;
    struct sim_account *accounts; /* by slot: counted */
    struct tally tallies[BH_SIM_GPUS_MAX][1 + BH_SIM_GIS_MAX];
    uint32_t ci_users[BH_SIM_GPUS_MAX][BH_SIM_GIS_MAX][BH_SIM_CIS_MAX];
    uint32_t gpu_objects[BH_SIM_GPUS_MAX];
    struct bh_idmap seen; /* blocks, by address */
    BH_VEC(const struct sim_block *) blocks;
    BH_VEC(uint32_t) maps; /* of blocks: counted */
    char why[200];
};

static bool no(struct check *k, const char *fmt, ...) BH_PRINTF(2, 3);
static bool no(struct check *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(k->why, sizeof(k->why), fmt, ap);
    va_end(ap);
    return false;
}

static struct tally *tally_of(struct check *k, const struct sim_place *p)
{
    const struct sim_gpu *g = &k->rm->gpus[p->gpu];
    return &k->tallies[p->gpu][p == &g->whole ? 0 : 1 + (p - g->gis)];
}

static uint32_t block_index(struct check *k, const struct sim_block *b)
{
    uint64_t key = (uint64_t)(uintptr_t)b;
    if (bh_idmap_add(&k->seen, key, (uint32_t)k->blocks.n)) {
        *bh_vec_push(&k->blocks) = b;
        *bh_vec_push(&k->maps) = 0;
    }
    return bh_idmap_find(&k->seen, key);
}

/* --- trees --- */

static bool check_kind(struct check *k, const struct sim_object *o)
{
    enum sim_kind kind = o->class->kind;
    bool placed = kind == SIM_GROUP || kind == SIM_CHANNEL || kind == SIM_PARTITION || kind == SIM_EXEC;
    if (placed != (o->place != NULL))
        return no(k, "object %x has %s place", o->handle, placed ? "no" : "a");
    if (o->account)
        k->accounts[o->account->slot].n_objects++;
    if (o->block)
        (void)block_index(k, o->block);
    if (!placed)
        return true;
    struct tally *t = tally_of(k, o->place);
    bool makes_group = kind == SIM_GROUP || (kind == SIM_CHANNEL && o->parent->class->kind != SIM_GROUP);
    t->pins += 1u + (makes_group && kind == SIM_CHANNEL);
    t->groups += makes_group;
    t->channels += kind == SIM_CHANNEL;
    k->accounts[o->account->slot].n_channels += kind == SIM_CHANNEL;
    if (kind == SIM_EXEC)
        k->ci_users[o->gpu][o->place - k->rm->gpus[o->gpu].gis][o->ci % BH_SIM_CIS_MAX]++;
    if (makes_group && !bh_sim_group_slice(o->place->sched, o->group))
        return no(k, "the scheduler does not know the group of object %x", o->handle);
    return true;
}

static bool check_object(struct check *k, const struct sim_client *c, const struct sim_object *o)
{
    if (o->client != c || bh_simrm_object(k->rm, c, o->handle) != o)
        return no(k, "object %x of client %x is not found by its handle", o->handle, c->handle);
    if (o->parent ? o->depth != o->parent->depth + 1 : o != c->root)
        return no(k, "object %x of client %x hangs in the wrong place", o->handle, c->handle);
    if ((o->gpu == SIM_NONE) != (o->account == NULL))
        return no(k, "object %x of client %x is charged to the wrong account", o->handle, c->handle);
    if (o->gpu != SIM_NONE)
        k->gpu_objects[o->gpu]++;
    return check_kind(k, o);
}

/* Depth first, without recursion. */
static bool check_tree(struct check *k, const struct sim_client *c, uint64_t *n_objects)
{
    uint32_t n = 0;
    const struct sim_object *o = c->root;
    while (o) {
        n++;
        if (!check_object(k, c, o))
            return false;
        if (o->first) {
            if (o->first->parent != o || o->first->prev)
                return no(k, "the children of object %x of client %x are torn", o->handle, c->handle);
            o = o->first;
            continue;
        }
        while (o && !o->next)
            o = o->parent;
        if (o && o->next->prev != o)
            return no(k, "the siblings of object %x of client %x are torn", o->handle, c->handle);
        o = o ? o->next : NULL;
    }
    *n_objects += n;
    return n == c->n_objects ? true
                             : no(k, "client %x has %u objects and counts %u", c->handle, n, c->n_objects);
}

static bool check_files(struct check *k)
{
    const struct bh_sim_rm *rm = k->rm;
    uint64_t n_files = 0, n_clients = 0, n_objects = 0, n_ranges = 0;
    for (size_t i = 0; i < rm->files.n; i++) {
        const struct sim_file *f = rm->files.at[i];
        if (!f)
            continue;
        n_files++;
        if (bh_simrm_file(rm, f->id) != f)
            return no(k, "file %u is not found by its number", f->id);
        for (const struct sim_client *c = f->clients; c; c = c->next, n_clients++) {
            if (c->file != f || bh_simrm_client_any(rm, c->handle) != c)
                return no(k, "client %x is not its file's", c->handle);
            if (!check_tree(k, c, &n_objects))
                return false;
        }
        for (const struct sim_range *r = f->ranges; r; r = r->next, n_ranges++) {
            if (r->file != f)
                return no(k, "range %" PRIu64 " is not its file's", r->id);
            uint32_t block = r->block ? block_index(k, r->block) : SIM_NONE;
            if (r->block)
                k->maps.at[block]++;
        }
        for (uint32_t g = 0; g < rm->node.n_gpus; g++)
            if (f->uvm[g])
                tally_of(k, f->uvm[g])->pins++;
    }
    if (n_files != SIM_LIVE(rm, files) || n_clients != SIM_LIVE(rm, clients) ||
        n_objects != SIM_LIVE(rm, objects) || n_ranges != SIM_LIVE(rm, ranges))
        return no(k, "files, clients, objects or ranges are kept that nobody owns");
    if (rm->file_ids.n != n_files || rm->client_handles.n != n_clients || rm->object_handles.n != n_objects ||
        rm->range_ids.n != n_ranges)
        return no(k, "a map has names of what is gone");
    return true;
}

/* --- memory --- */

static int by_address(const void *a, const void *b)
{
    const struct sim_block *x = *(const struct sim_block *const *)a, *y = *(const struct sim_block *const *)b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->base < y->base ? -1 : x->base > y->base;
}

static bool check_block(struct check *k, const struct sim_block *b, uint32_t maps)
{
    uint32_t refs = 0;
    const struct sim_object *last = NULL;
    for (const struct sim_object *o = b->first; o; last = o, o = o->ref_next, refs++) {
        struct sim_account *a = &k->accounts[o->account->slot];
        if (o->block != b || o->ref_prev != last)
            return no(k, "the holders of memory at %" PRIx64 " are torn", b->base);
        if (!bh_simrm_block_counts(b))
            continue;
        uint64_t *where = o != b->first               ? &a->duped_bytes
                          : b->n_refs + b->n_maps > 1 ? &a->owned_bytes
                                                      : &a->private_bytes;
        *where += b->bytes;
    }
    if (refs != b->n_refs || last != b->last || maps != b->n_maps || refs + maps == 0)
        return no(k, "memory at %" PRIx64 " counts %u holders and %u maps; it has %u and %u", b->base,
                  b->n_refs, b->n_maps, refs, maps);
    if (b->bytes == 0 || b->bytes % SIM_UNIT || b->base < b->place->memory.base ||
        b->base + b->bytes > b->place->memory.base + b->place->memory.total_bytes)
        return no(k, "memory at %" PRIx64 " is not its place's", b->base);
    struct tally *t = tally_of(k, b->place);
    t->bytes += b->bytes;
    t->unowned += bh_simrm_block_counts(b) ? 0 : b->bytes;
    t->pins++;
    return true;
}

static bool check_blocks(struct check *k)
{
    for (size_t i = 0; i < k->blocks.n; i++)
        if (!check_block(k, k->blocks.at[i], k->maps.at[i]))
            return false;
    if (k->blocks.n)
        qsort(k->blocks.at, k->blocks.n, sizeof(k->blocks.at[0]), by_address);
    for (size_t i = 1; i < k->blocks.n; i++) {
        const struct sim_block *a = k->blocks.at[i - 1], *b = k->blocks.at[i];
        if (a->place == b->place && a->base + a->bytes > b->base)
            return no(k, "memory at %" PRIx64 " has two owners", b->base);
    }
    return true;
}

static bool check_accounts(struct check *k)
{
    uint64_t n = 0;
    for (uint32_t g = 0; g < k->rm->node.n_gpus; g++) {
        for (const struct sim_account *a = k->rm->gpus[g].accounts; a; a = a->next, n++) {
            const struct sim_account *c = &k->accounts[a->slot];
            if (a->gpu != g || c->private_bytes != a->private_bytes || c->owned_bytes != a->owned_bytes ||
                c->duped_bytes != a->duped_bytes || c->n_objects != a->n_objects ||
                c->n_channels != a->n_channels)
                return no(k, "the account of process %u on GPU %u does not add up", a->pid, g);
        }
        if (k->gpu_objects[g] != k->rm->gpus[g].n_objects)
            return no(k, "GPU %u counts %u objects and has %u", g, k->rm->gpus[g].n_objects,
                      k->gpu_objects[g]);
    }
    return n == SIM_LIVE(k->rm, accounts) ? true : no(k, "accounts are kept that no GPU has");
}

static bool check_place(struct check *k, const struct sim_place *p)
{
    const struct tally *t = tally_of(k, p);
    uint64_t free_bytes = 0, at = 0, base, bytes;
    while (bh_extents_next(&p->memory, &at, &base, &bytes))
        free_bytes += bytes;
    if (free_bytes != p->memory.free_bytes || free_bytes + t->bytes != p->memory.total_bytes)
        return no(k, "GPU %u instance %d: %" PRIu64 " bytes held and %" PRIu64 " free are not %" PRIu64,
                  p->gpu, (int)p->gi, t->bytes, free_bytes, p->memory.total_bytes);
    if (t->unowned != p->unowned_bytes || t->pins != p->pins)
        return no(k, "GPU %u instance %d: %u pins counted, %u kept", p->gpu, (int)p->gi, t->pins, p->pins);
    if (t->groups != p->n_groups || t->channels != p->n_channels)
        return no(k, "GPU %u instance %d: groups or channels are lost", p->gpu, (int)p->gi);
    if (p->instance && (p->instance->used_bytes != t->bytes || p->instance->id != p->gi))
        return no(k, "GPU %u instance %d shows other memory than is held", p->gpu, (int)p->gi);
    return true;
}

static bool check_places(struct check *k)
{
    for (uint32_t g = 0; g < k->rm->node.n_gpus; g++) {
        const struct sim_gpu *s = &k->rm->gpus[g];
        if (!check_place(k, &s->whole))
            return false;
        for (size_t i = 0; i < BH_SIM_GIS_MAX; i++) {
            if (s->gis[i].made != s->mig.gis[i].made || (s->gis[i].made && !s->mig.on))
                return no(k, "GPU %u has a place that is no instance, or the other way round", g);
            if (s->gis[i].made && !check_place(k, &s->gis[i]))
                return false;
            for (size_t j = 0; s->gis[i].made && j < BH_SIM_CIS_MAX; j++) {
                const struct bh_sim_ci *ci = &s->mig.gis[i].cis[j];
                if (ci->made && ci->users != k->ci_users[g][i][ci->id % BH_SIM_CIS_MAX])
                    return no(k, "GPU %u: users of a compute instance are lost", g);
            }
        }
    }
    return true;
}

static bool check_content(struct check *k)
{
    const struct bh_sim_rm *rm = k->rm;
    uint64_t n = 0, full = 0, residue = 0;
    for (size_t i = 0; i < rm->chunks.n; i++) {
        const struct sim_chunk *c = rm->chunks.at[i];
        if (!c)
            continue;
        const struct sim_block *b = c->block;
        n++;
        full += c->bytes != NULL;
        residue += !b;
        uint64_t first = b ? (uint64_t)b->place->gpu << 48 | b->base / SIM_UNIT : 0;
        if (b && (bh_idmap_find(&k->seen, (uint64_t)(uintptr_t)b) == BH_IDMAP_NONE || c->key < first ||
                  c->key >= first + b->bytes / SIM_UNIT))
            return no(k, "contents are kept of memory that is gone");
    }
    if (n != rm->chunk_keys.n || full != rm->n_full_chunks || residue != rm->n_residue)
        return no(k, "pieces of contents are lost");
    return true;
}

const char *bh_sim_rm_check(const struct bh_sim_rm *rm)
{
    static _Thread_local char why[sizeof(((struct check *)NULL)->why)];
    struct check *k = bh_alloc(1, sizeof(*k));
    k->rm = rm;
    k->accounts = bh_alloc(rm->accounts.n + 1, sizeof(*k->accounts));
    bool sound =
        check_files(k) && check_blocks(k) && check_accounts(k) && check_places(k) && check_content(k);
    memcpy(why, k->why, sizeof(why));
    bh_idmap_fini(&k->seen);
    bh_vec_fini(&k->blocks);
    bh_vec_fini(&k->maps);
    free(k->accounts);
    free(k);
    return sound ? NULL : why;
}
