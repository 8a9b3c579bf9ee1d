/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - what a lease holds is never counted too low, whatever its tenants do with names.
 *
 * used = max(held, counted) + reserved + managed on each GPU, so overhead = max(0, counted - held). `counted` starts as
 * the driver's own count and is carried on until the next one:
 *  - a grant raises both held and counted;
 *  - RM_FREE, which the gate saw the driver do, lowers both;
 *  - the end of a file or process lowers held only. The news of it may come before or after the driver has acted, and
 *    before or after a count, so counted waits for the driver's next word.
 * Hence used is at least what the driver counts, less what the driver took unasked since the last count; and it is at
 * most that plus reserved, plus what ended without a count since. A grant that was in flight during a count is in both
 * counted and reserved, and too high by its size until the next count: never too low.
 *
 * Names are the tenant's choice. A name told again while it is in use (the driver would refuse it, so the first object is
 * gone unseen, or it was told twice) keeps the larger size where both can be the same memory, and both where not. A client
 * handle that two files claim is one client that ends with the last of them. What has no known GPU counts on each.
 */
#include "warden/ledger.h"

#include "warden/ledger_state.h"

static uint64_t held_on(const struct bh_ledger *l, uint32_t gpu)
{
    const struct ledger_gpu *g = &l->gpus[gpu], *any = &l->gpus[LEDGER_ANYWHERE];
    uint64_t own = ledger_sum(g->held, g->lost);
    return g == any ? own : ledger_sum(own, ledger_sum(any->held, any->lost));
}

static uint64_t used_on(const struct bh_ledger *l, uint32_t gpu)
{
    const struct ledger_gpu *g = &l->gpus[gpu];
    uint64_t held = held_on(l, gpu), most = held > g->counted ? held : g->counted;
    return ledger_sum(ledger_sum(most, g->reserved), l->managed_bytes);
}

/* After whatever may raise what is used there. */
void ledger_peak_note(struct bh_ledger *l, uint32_t gpu)
{
    uint32_t from = gpu == LEDGER_ANYWHERE ? 0 : gpu, to = gpu == LEDGER_ANYWHERE ? LEDGER_ANYWHERE : gpu + 1;
    for (uint32_t g = from; g < to; g++) {
        uint64_t used = used_on(l, g);
        if (l->gpus[g].seen && used > l->gpus[g].peak)
            l->gpus[g].peak = used;
    }
}

static void gpu_see(struct bh_ledger *l, uint32_t gpu)
{
    if (gpu == LEDGER_ANYWHERE || l->gpus[gpu].seen)
        return;
    l->gpus[gpu].seen = true;
    ledger_peak_note(l, gpu);
}

/* The driver made this much more. */
static void counted_raise(struct bh_ledger *l, uint32_t gpu, uint64_t bytes)
{
    uint32_t from = gpu == LEDGER_ANYWHERE ? 0 : gpu, to = gpu == LEDGER_ANYWHERE ? LEDGER_ANYWHERE : gpu + 1;
    for (uint32_t g = from; g < to; g++)
        l->gpus[g].counted = ledger_sum(l->gpus[g].counted, bytes);
}

static uint32_t block_new(struct bh_ledger *l, uint32_t gpu, uint64_t bytes, bool doubt)
{
    uint32_t slot = ledger_take(&l->blocks, bytes);
    uint64_t size = bytes < LEDGER_BLOCK_MAX ? bytes : LEDGER_BLOCK_MAX;
    l->blocks.at[slot] = (struct ledger_block){
        .bytes = size & LEDGER_BYTES_MASK, .refs = 1, .gpu = gpu & LEDGER_GPU_MASK, .doubt = doubt};
    l->gpus[gpu].held += size;
    counted_raise(l, gpu, size);
    ledger_peak_note(l, gpu);
    return slot;
}

/* freed: the driver was seen doing it just now. */
static void block_release(struct bh_ledger *l, uint32_t slot, bool freed)
{
    struct ledger_block *b = &l->blocks.at[slot];
    struct ledger_gpu *g = &l->gpus[b->gpu];
    if (--b->refs)
        return;
    g->held -= b->bytes;
    /* where memory of no known GPU lay is not known, so no GPU's count can be lowered for it */
    if (freed && !b->doubt && b->gpu != LEDGER_ANYWHERE)
        g->counted = ledger_less(g->counted, b->bytes);
    ledger_give(&l->blocks, slot, bytes);
}

/* Held for good, or until nobody is left: there is no room to remember whose it is. */
static void lose(struct bh_ledger *l, uint32_t gpu, uint64_t bytes)
{
    l->gpus[gpu].lost = ledger_sum(l->gpus[gpu].lost, bytes);
    counted_raise(l, gpu, bytes);
    ledger_peak_note(l, gpu);
}

/* parent LEDGER_NONE: a root. */
uint32_t ledger_object_new(struct bh_ledger *l, const struct ledger_object *like)
{
    uint32_t slot = ledger_take(&l->objects, next);
    struct ledger_object *o = &l->objects.at[slot];
    *o = *like;
    o->live = true;
    o->first = o->next = o->prev = LEDGER_NONE;
    l->runs += o->named && ledger_is_run(o->class);
    if (o->named)
        ledger_name_add(l, slot);
    if (o->parent == LEDGER_NONE)
        return slot;
    struct ledger_object *parent = &l->objects.at[o->parent];
    o->next = parent->first;
    if (o->next != LEDGER_NONE)
        l->objects.at[o->next].prev = slot;
    parent->first = slot;
    return slot;
}

static void leaf_free(struct bh_ledger *l, uint32_t slot, bool freed)
{
    struct ledger_object *o = &l->objects.at[slot];
    if (o->block != LEDGER_NONE)
        block_release(l, o->block, freed);
    if (o->next != LEDGER_NONE)
        l->objects.at[o->next].prev = o->prev;
    if (o->prev != LEDGER_NONE)
        l->objects.at[o->prev].next = o->next;
    else if (o->parent != LEDGER_NONE)
        l->objects.at[o->parent].first = o->next;
    if (o->named)
        ledger_name_remove(l, slot);
    l->runs += ledger_is_run(o->class);
    o->live = false;
    ledger_give(&l->objects, slot, next);
}

/* From the leaves up, without recursion: the shape of a tree is a tenant's choice. */
static void tree_free(struct bh_ledger *l, uint32_t top, bool freed)
{
    for (uint32_t slot = top;;) {
        while (l->objects.at[slot].first != LEDGER_NONE)
            slot = l->objects.at[slot].first;
        uint32_t up = l->objects.at[slot].parent;
        leaf_free(l, slot, freed);
        if (slot == top)
            return;
        slot = up;
    }
}

static uint32_t owner_find(const struct bh_ledger *l, enum ledger_list kind, uint64_t key)
{
    return bh_idmap_find(&l->owners[kind].ids, key);
}

static uint32_t owner_get(struct bh_ledger *l, enum ledger_list kind, uint64_t key)
{
    struct ledger_owners *owners = &l->owners[kind];
    uint32_t slot = owner_find(l, kind, key);
    if (slot != LEDGER_NONE)
        return slot;
    slot = ledger_take(&owners->pool, first);
    owners->pool.at[slot] =
        (struct ledger_owner){.key = key, .first = LEDGER_NONE, .root = LEDGER_NONE, .live = true};
    (void)bh_idmap_add(&owners->ids, key, slot);
    return slot;
}

static void owner_forget(struct bh_ledger *l, enum ledger_list kind, uint32_t slot)
{
    struct ledger_owners *owners = &l->owners[kind];
    (void)bh_idmap_remove(&owners->ids, owners->pool.at[slot].key);
    owners->pool.at[slot].live = false;
    ledger_give(&owners->pool, slot, first);
}

static void owner_forget_idle(struct bh_ledger *l, enum ledger_list kind, uint32_t slot)
{
    const struct ledger_owner *o = &l->owners[kind].pool.at[slot];
    if (o->first == LEDGER_NONE && !o->managed_bytes)
        owner_forget(l, kind, slot);
}

static void claim_add(struct bh_ledger *l, const uint32_t owners[LEDGER_LISTS])
{
    uint32_t slot = ledger_take(&l->claims, in[0].next);
    struct ledger_claim *c = &l->claims.at[slot];
    c->live = true;
    for (int k = 0; k < LEDGER_LISTS; k++) {
        struct ledger_owner *o = &l->owners[k].pool.at[owners[k]];
        c->in[k].owner = owners[k];
        c->in[k].prev = LEDGER_NONE;
        c->in[k].next = o->first;
        if (o->first != LEDGER_NONE)
            l->claims.at[o->first].in[k].prev = slot;
        o->first = slot;
    }
}

/* The client stays, maybe without a claim: see client_end. */
static void claim_remove(struct bh_ledger *l, uint32_t slot)
{
    struct ledger_claim *c = &l->claims.at[slot];
    for (int k = 0; k < LEDGER_LISTS; k++) {
        if (c->in[k].next != LEDGER_NONE)
            l->claims.at[c->in[k].next].in[k].prev = c->in[k].prev;
        if (c->in[k].prev != LEDGER_NONE)
            l->claims.at[c->in[k].prev].in[k].next = c->in[k].next;
        else
            l->owners[k].pool.at[c->in[k].owner].first = c->in[k].next;
    }
    owner_forget_idle(l, LEDGER_FILE, c->in[LEDGER_FILE].owner);
    owner_forget_idle(l, LEDGER_PROCESS, c->in[LEDGER_PROCESS].owner);
    c->live = false;
    ledger_give(&l->claims, slot, in[0].next);
}

static bool client_room(const struct bh_ledger *l)
{
    return ledger_live(&l->owners[LEDGER_CLIENT].pool) < LEDGER_CLIENTS_MAX;
}

static bool process_room(const struct bh_ledger *l, uint32_t pid)
{
    return owner_find(l, LEDGER_PROCESS, pid) != LEDGER_NONE ||
           ledger_live(&l->owners[LEDGER_PROCESS].pool) < LEDGER_CLIENTS_MAX;
}

/* Every client has a root in the pool, which is no object of anybody's. */
static size_t n_objects(const struct bh_ledger *l)
{
    return ledger_live(&l->objects) - ledger_live(&l->owners[LEDGER_CLIENT].pool);
}

uint32_t ledger_client_get(struct bh_ledger *l, uint32_t handle)
{
    uint32_t slot = owner_find(l, LEDGER_CLIENT, handle);
    if (slot != LEDGER_NONE)
        return slot;
    slot = owner_get(l, LEDGER_CLIENT, handle);
    struct ledger_object root = {.client = handle,
                                 .handle = handle,
                                 .parent = LEDGER_NONE,
                                 .block = LEDGER_NONE,
                                 .gpu = LEDGER_ANYWHERE,
                                 .named = true};
    l->owners[LEDGER_CLIENT].pool.at[slot].root = ledger_object_new(l, &root);
    return slot;
}

static void client_end(struct bh_ledger *l, uint32_t slot, bool freed)
{
    const struct ledger_owner *client = &l->owners[LEDGER_CLIENT].pool.at[slot];
    while (client->first != LEDGER_NONE)
        claim_remove(l, client->first);
    tree_free(l, client->root, freed);
    owner_forget(l, LEDGER_CLIENT, slot);
}

/*
 * Nobody is left whom the ledger knows: what still stands was told of clients that nobody claimed. Should it still
 * be there, `counted` goes on saying so.
 */
static void sweep(struct bh_ledger *l)
{
    if (ledger_live(&l->claims) || ledger_live(&l->owners[LEDGER_PROCESS].pool))
        return;
    for (uint32_t i = 0; ledger_live(&l->owners[LEDGER_CLIENT].pool); i++)
        if (l->owners[LEDGER_CLIENT].pool.at[i].live)
            client_end(l, i, false);
    for (uint32_t g = 0; g <= LEDGER_ANYWHERE; g++)
        l->gpus[g].lost = 0;
}

static void claims_end(struct bh_ledger *l, enum ledger_list kind, uint64_t key)
{
    for (uint32_t slot; (slot = owner_find(l, kind, key)) != LEDGER_NONE;) {
        uint32_t claim = l->owners[kind].pool.at[slot].first;
        uint32_t client = l->claims.at[claim].in[LEDGER_CLIENT].owner;
        claim_remove(l, claim);
        if (l->owners[LEDGER_CLIENT].pool.at[client].first == LEDGER_NONE)
            client_end(l, client, false);
    }
    sweep(l);
}

struct bh_ledger *bh_ledger_new(uint64_t cap_bytes)
{
    struct bh_ledger *l = bh_alloc(1, sizeof(*l));
    l->cap_bytes = cap_bytes;
    return l;
}

void bh_ledger_seed(struct bh_ledger *l, uint64_t seed)
{
    if (!ledger_live(
            &l->objects)) /* files are the warden's numbers and pids the kernel's: no tenant picks them */
        l->names.seed = l->owners[LEDGER_CLIENT].ids.seed = seed;
}

void bh_ledger_free(struct bh_ledger *l)
{
    if (!l)
        return;
    free(l->names.slots);
    for (int k = 0; k < LEDGER_LISTS; k++) {
        bh_idmap_fini(&l->owners[k].ids);
        bh_vec_fini(&l->owners[k].pool);
    }
    bh_vec_fini(&l->objects);
    bh_vec_fini(&l->blocks);
    bh_vec_fini(&l->claims);
    free(l);
}

static bool fits(const struct bh_ledger *l, uint64_t used, uint64_t bytes)
{
    return used <= l->cap_bytes && bytes <= l->cap_bytes - used;
}

static bool refuse(struct bh_ledger *l, bool full)
{
    l->refused++;
    l->full += full;
    return false;
}

bool bh_ledger_reserve(struct bh_ledger *l, uint32_t gpu, uint64_t bytes)
{
    if (n_objects(l) >= LEDGER_OBJECTS_MAX || !client_room(l))
        return refuse(l, true);
    if (gpu >= BH_LEDGER_GPUS)
        return refuse(l, false);
    gpu_see(l, gpu);
    if (bytes && !fits(l, used_on(l, gpu), bytes))
        return refuse(l, false);
    l->gpus[gpu].reserved += bytes;
    ledger_peak_note(l, gpu);
    return true;
}

void bh_ledger_give_back(struct bh_ledger *l, uint32_t gpu, uint64_t bytes)
{
    if (gpu < BH_LEDGER_GPUS)
        l->gpus[gpu].reserved = ledger_less(l->gpus[gpu].reserved, bytes);
}

bool bh_ledger_client(struct bh_ledger *l, uint32_t pid, uint64_t file, uint32_t client)
{
    bool claimed = false, same_file = false;
    uint32_t slot = owner_find(l, LEDGER_CLIENT, client);
    uint32_t claim = slot == LEDGER_NONE ? LEDGER_NONE : l->owners[LEDGER_CLIENT].pool.at[slot].first;
    for (; claim != LEDGER_NONE; claim = l->claims.at[claim].in[LEDGER_CLIENT].next) {
        const struct ledger_claim *c = &l->claims.at[claim];
        bool here = l->owners[LEDGER_FILE].pool.at[c->in[LEDGER_FILE].owner].key == file;
        if (here && l->owners[LEDGER_PROCESS].pool.at[c->in[LEDGER_PROCESS].owner].key == pid)
            return true;
        claimed = true;
        same_file = same_file || here;
    }
    if ((slot == LEDGER_NONE && !client_room(l)) || !process_room(l, pid) ||
        ledger_live(&l->claims) >= LEDGER_CLIENTS_MAX)
        return refuse(l, true);
    claim_add(l, (uint32_t[LEDGER_LISTS]){[LEDGER_CLIENT] = ledger_client_get(l, client),
                                          [LEDGER_FILE] = owner_get(l, LEDGER_FILE, file),
                                          [LEDGER_PROCESS] = owner_get(l, LEDGER_PROCESS, pid)});
    ledger_tell(
        l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_CLIENT, .pid = pid, .file = file, .client = client});
    return !claimed || same_file;
}

/* Where an object goes. */
struct place {
    uint32_t parent, gpu;
    bool room;
};

static struct place place_of(struct bh_ledger *l, const struct bh_ledger_object *o)
{
    bool known = owner_find(l, LEDGER_CLIENT, o->client) != LEDGER_NONE;
    struct place p = {.parent = LEDGER_NONE, .gpu = o->gpu};
    p.room = (known || client_room(l)) && n_objects(l) < LEDGER_OBJECTS_MAX;
    if (known || p.room) {
        uint32_t client = ledger_client_get(l, o->client);
        p.parent = ledger_name_find(l, o->client, o->parent);
        if (p.parent == LEDGER_NONE)
            p.parent = l->owners[LEDGER_CLIENT].pool.at[client].root;
        if (o->gpu == UINT32_MAX)
            p.gpu = l->objects.at[p.parent].gpu;
    }
    if (p.gpu > LEDGER_ANYWHERE)
        p.gpu = LEDGER_ANYWHERE;
    gpu_see(l, p.gpu);
    bh_ledger_give_back(l, p.gpu, o->reserved);
    return p;
}

/* The name is in use, and it may be the same object: it then keeps the larger size. */
static bool told_again(struct bh_ledger *l, uint32_t old, const struct place *p, uint64_t bytes)
{
    struct ledger_object *o = &l->objects.at[old];
    if (o->parent != p->parent || o->gpu != p->gpu)
        return false;
    if (o->block == LEDGER_NONE) {
        o->block = bytes ? block_new(l, p->gpu, bytes, true) : LEDGER_NONE;
        return true;
    }
    struct ledger_block *b = &l->blocks.at[o->block];
    if (b->refs > 1 || b->gpu != p->gpu)
        return false;
    uint64_t size = bytes < LEDGER_BLOCK_MAX ? bytes : LEDGER_BLOCK_MAX;
    l->gpus[p->gpu].held += ledger_less(size, b->bytes);
    b->bytes = (size > b->bytes ? size : b->bytes) & LEDGER_BYTES_MASK;
    b->doubt = true;
    counted_raise(l, p->gpu, size);
    ledger_peak_note(l, p->gpu);
    return true;
}

/* block: a reference that now is this object's. */
static void object_put(struct bh_ledger *l, const struct bh_ledger_object *o, const struct place *p,
                       uint32_t block)
{
    uint32_t old = ledger_name_find(l, o->client, o->object);
    bool root = old != LEDGER_NONE && l->objects.at[old].parent == LEDGER_NONE;
    struct ledger_object like = {.client = o->client,
                                 .handle = o->object,
                                 .parent = p->parent,
                                 .block = block,
                                 .class = ledger_class(o->class) & LEDGER_CLASS_MASK,
                                 .gpu = p->gpu & LEDGER_GPU_MASK,
                                 .named = !root};
    if (old == LEDGER_NONE || root) {
        (void)ledger_object_new(l, &like);
        return;
    }
    /* The driver has made the new one, so the name is its. Whether the old one is still there is not known. */
    ledger_name_remove(l, old);
    l->objects.at[old].named = false;
    l->runs += ledger_is_run(l->objects.at[old].class);
    if (l->objects.at[old].block != LEDGER_NONE)
        l->blocks.at[l->objects.at[old].block].doubt = true;
    (void)ledger_object_new(l, &like);
    if (l->objects.at[old].block == LEDGER_NONE && l->objects.at[old].first == LEDGER_NONE)
        leaf_free(l, old, false);
}

/* doubt: it may be memory that is counted already. */
static void object_settle(struct bh_ledger *l, const struct bh_ledger_object *o, const struct place *p,
                          uint64_t bytes, bool doubt)
{
    uint32_t old = ledger_name_find(l, o->client, o->object);
    if (!p->room)
        lose(l, p->gpu, bytes);
    else if (old == LEDGER_NONE || !told_again(l, old, p, bytes))
        object_put(l, o, p, bytes ? block_new(l, p->gpu, bytes, doubt) : LEDGER_NONE);
    else if (l->objects.at[old].class != ledger_class(o->class)) {
        l->runs += ledger_is_run(o->class) || ledger_is_run(l->objects.at[old].class);
        l->objects.at[old].class = ledger_class(o->class) & LEDGER_CLASS_MASK;
    }
}

static struct bh_ledger_op op_of(enum bh_ledger_op_kind kind, const struct bh_ledger_object *o)
{
    return (struct bh_ledger_op){.kind = kind,
                                 .client = o->client,
                                 .parent = o->parent,
                                 .object = o->object,
                                 .class = o->class,
                                 .gpu = o->gpu,
                                 .bytes = o->bytes};
}

void bh_ledger_object(struct bh_ledger *l, const struct bh_ledger_object *o)
{
    const struct bh_ledger_op op = op_of(BH_LEDGER_OP_OBJECT, o);
    struct place p = place_of(l, o);
    object_settle(l, o, &p, o->bytes, false);
    ledger_tell(l, &op);
}

void bh_ledger_dup(struct bh_ledger *l, const struct bh_ledger_object *o, uint32_t source_client,
                   uint32_t source)
{
    /* before place_of makes the new object's client, which may bear the name of a client outside of this lease */
    bool ours = owner_find(l, LEDGER_CLIENT, source_client) != LEDGER_NONE;
    uint32_t from = ledger_name_find(l, source_client, source),
             old = ledger_name_find(l, o->client, o->object);
    uint32_t block = from == LEDGER_NONE ? LEDGER_NONE : l->objects.at[from].block;
    struct bh_ledger_op op = op_of(BH_LEDGER_OP_DUP, o);
    struct place p = place_of(l, o);
    op.source_client = source_client;
    op.source = source;
    ledger_tell(l, &op);
    if (p.gpu == LEDGER_ANYWHERE && from != LEDGER_NONE)
        p.gpu = l->objects.at[from].gpu;
    if (block == LEDGER_NONE) {
        object_settle(l, o, &p, ours ? o->bytes : 0, true);
    } else if (!p.room) {
        lose(l, l->blocks.at[block].gpu, l->blocks.at[block].bytes);
    } else if (old == LEDGER_NONE || l->objects.at[old].block != block ||
               l->objects.at[old].parent != p.parent) {
        l->blocks.at[block].refs++;
        object_put(l, o, &p, block);
    }
}

void bh_ledger_drop(struct bh_ledger *l, uint32_t client, uint32_t object)
{
    uint32_t slot = ledger_name_find(l, client, object);
    if (slot == LEDGER_NONE)
        return;
    if (l->objects.at[slot].parent == LEDGER_NONE)
        client_end(l, owner_find(l, LEDGER_CLIENT, client), true);
    else
        tree_free(l, slot, true);
    ledger_tell(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_DROP, .client = client, .object = object});
}

void bh_ledger_file_closed(struct bh_ledger *l, uint64_t file)
{
    claims_end(l, LEDGER_FILE, file);
    ledger_tell(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_FILE_CLOSED, .file = file});
}

static void managed_lower(struct bh_ledger *l, uint32_t pid, uint64_t bytes)
{
    uint32_t slot = owner_find(l, LEDGER_PROCESS, pid);
    if (slot == LEDGER_NONE)
        return;
    struct ledger_owner *o = &l->owners[LEDGER_PROCESS].pool.at[slot];
    uint64_t less = bytes < o->managed_bytes ? bytes : o->managed_bytes;
    o->managed_bytes -= less;
    l->managed_bytes -= less;
    owner_forget_idle(l, LEDGER_PROCESS, slot);
}

void bh_ledger_process_gone(struct bh_ledger *l, uint32_t pid)
{
    managed_lower(l, pid, UINT64_MAX);
    claims_end(l, LEDGER_PROCESS, pid);
    ledger_tell(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_PROCESS_GONE, .pid = pid});
}

bool bh_ledger_map(struct bh_ledger *l, uint32_t pid, uint64_t bytes)
{
    bool room = fits(l, l->managed_bytes, bytes);
    if (!bytes)
        return true;
    if (!process_room(l, pid))
        return refuse(l, true);
    for (uint32_t g = 0; g < BH_LEDGER_GPUS && room; g++)
        room = !l->gpus[g].seen || fits(l, used_on(l, g), bytes);
    if (!room)
        return refuse(l, false);
    uint32_t slot = owner_get(l, LEDGER_PROCESS, pid); /* may move the pool */
    l->owners[LEDGER_PROCESS].pool.at[slot].managed_bytes += bytes;
    l->managed_bytes += bytes;
    ledger_peak_note(l, LEDGER_ANYWHERE);
    ledger_tell(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_MAP, .pid = pid, .bytes = bytes});
    return true;
}

void bh_ledger_unmap(struct bh_ledger *l, uint32_t pid, uint64_t bytes)
{
    managed_lower(l, pid, bytes);
    ledger_tell(l, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_UNMAP, .pid = pid, .bytes = bytes});
}

void bh_ledger_counted(struct bh_ledger *l, uint32_t gpu, uint64_t driver_bytes)
{
    if (gpu >= BH_LEDGER_GPUS)
        return;
    if (!l->gpus[gpu].seen || l->gpus[gpu].counted != driver_bytes)
        ledger_tell(l,
                    &(struct bh_ledger_op){.kind = BH_LEDGER_OP_COUNTED, .gpu = gpu, .bytes = driver_bytes});
    gpu_see(l, gpu);
    l->gpus[gpu].counted = driver_bytes;
    ledger_peak_note(l, gpu);
}

struct bh_ledger_sum bh_ledger_sum(const struct bh_ledger *l, uint32_t gpu)
{
    struct bh_ledger_sum s = {.cap = l->cap_bytes, .refused = l->refused, .full = l->full};
    const struct ledger_gpu *g = &l->gpus[gpu < BH_LEDGER_GPUS ? gpu : LEDGER_ANYWHERE];
    s.objects = n_objects(l);
    s.clients = ledger_live(&l->owners[LEDGER_CLIENT].pool);
    if (gpu >= BH_LEDGER_GPUS)
        s.held = s.used = held_on(l, LEDGER_ANYWHERE);
    if (gpu >= BH_LEDGER_GPUS || !g->seen)
        return s;
    s.held = held_on(l, gpu);
    s.reserved = g->reserved;
    s.managed = l->managed_bytes;
    s.overhead = ledger_less(g->counted, s.held);
    s.used = used_on(l, gpu);
    s.peak = g->peak;
    return s;
}

uint32_t bh_ledger_gpu_of(const struct bh_ledger *l, uint32_t client, uint32_t object)
{
    uint32_t slot = ledger_name_find(l, client, object);
    uint32_t gpu = slot == LEDGER_NONE ? LEDGER_ANYWHERE : l->objects.at[slot].gpu;
    return gpu == LEDGER_ANYWHERE ? UINT32_MAX : gpu;
}

bool bh_ledger_has(const struct bh_ledger *l, uint32_t client, uint32_t object)
{
    return ledger_name_find(l, client, object) != LEDGER_NONE;
}

uint64_t bh_ledger_managed(const struct bh_ledger *l, uint32_t pid)
{
    const uint32_t slot = owner_find(l, LEDGER_PROCESS, pid);
    return slot == LEDGER_NONE ? 0 : l->owners[LEDGER_PROCESS].pool.at[slot].managed_bytes;
}
