/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_ops.c - a ledger as a list of what was done to it, and back.
 *
 * What is done later on is told as the call that did it. What a ledger has become cannot be: an object may have lost its
 * name to another one, two may share memory. So a whole ledger is told as it lies in its pools, where a new ledger
 * gives out places in order: the n-th object told is in place n.
 */
#include "warden/ledger_state.h"

/* ---- doing ---- */

static bool do_client(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    (void)bh_ledger_client(l, op->pid, op->file, op->client); /* false also says that two claim it */
    return true;
}

static struct bh_ledger_object object_of(const struct bh_ledger_op *op)
{
    return (struct bh_ledger_object){.client = op->client,
                                     .parent = op->parent,
                                     .object = op->object,
                                     .class = op->class,
                                     .gpu = op->gpu,
                                     .bytes = op->bytes};
}

static bool do_object(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    const struct bh_ledger_object o = object_of(op);
    bh_ledger_object(l, &o);
    return true;
}

static bool do_dup(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    const struct bh_ledger_object o = object_of(op);
    bh_ledger_dup(l, &o, op->source_client, op->source);
    return true;
}

static bool do_drop(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    bh_ledger_drop(l, op->client, op->object);
    return true;
}

static bool do_file_closed(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    bh_ledger_file_closed(l, op->file);
    return true;
}

static bool do_process_gone(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    bh_ledger_process_gone(l, op->pid);
    return true;
}

/* It was granted then, with what was reserved besides; so it fits now. */
static bool do_map(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    return bh_ledger_map(l, op->pid, op->bytes);
}

static bool do_unmap(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    bh_ledger_unmap(l, op->pid, op->bytes);
    return true;
}

static bool do_counted(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    bh_ledger_counted(l, op->gpu, op->bytes);
    return true;
}

/* ---- what it had become ---- */

static bool has_client(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    if (ledger_name_find(l, op->client, op->client) != LEDGER_NONE ||
        ledger_live(&l->owners[LEDGER_CLIENT].pool) >= LEDGER_CLIENTS_MAX)
        return false;
    (void)ledger_client_get(l, op->client);
    return true;
}

/* Held by nobody yet: should that stay so, the check of the whole tells. */
static bool has_block(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    if (op->gpu > LEDGER_ANYWHERE || op->bytes > LEDGER_BLOCK_MAX || l->blocks.n >= LEDGER_OBJECTS_MAX)
        return false;
    const uint32_t slot = ledger_take(&l->blocks, bytes); /* may move the pool */
    l->blocks.at[slot] = (struct ledger_block){
        .bytes = op->bytes & LEDGER_BYTES_MASK, .gpu = op->gpu & LEDGER_GPU_MASK, .doubt = op->flags != 0};
    l->gpus[op->gpu].held += op->bytes;
    return true;
}

static bool has_object(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    const bool named = op->flags != 0;
    if (op->parent >= l->objects.n || l->objects.at[op->parent].client != op->client ||
        op->gpu > LEDGER_ANYWHERE || (op->source != LEDGER_NONE && op->source >= l->blocks.n) ||
        l->objects.n >= LEDGER_OBJECTS_MAX + LEDGER_CLIENTS_MAX ||
        (named && bh_ledger_has(l, op->client, op->object)))
        return false;
    if (op->source != LEDGER_NONE)
        l->blocks.at[op->source].refs++;
    (void)ledger_object_new(l, &(struct ledger_object){.client = op->client,
                                                       .handle = op->object,
                                                       .parent = op->parent,
                                                       .block = op->source,
                                                       .class = ledger_class(op->class) & LEDGER_CLASS_MASK,
                                                       .gpu = op->gpu & LEDGER_GPU_MASK,
                                                       .named = named});
    return true;
}

/* After everything that is held there. */
static bool has_gpu(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    if (op->gpu >= BH_LEDGER_GPUS)
        return false;
    l->gpus[op->gpu].seen = op->flags != 0;
    l->gpus[op->gpu].counted = op->bytes;
    l->gpus[op->gpu].peak = op->file;
    ledger_peak_note(l, op->gpu);
    return true;
}

static bool has_lost(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    if (op->gpu > LEDGER_ANYWHERE)
        return false;
    l->gpus[op->gpu].lost = op->bytes;
    ledger_peak_note(l, op->gpu);
    return true;
}

void bh_ledger_observe(struct bh_ledger *l, struct bh_ledger_log log)
{
    l->log = log;
}

bool bh_ledger_apply(struct bh_ledger *l, const struct bh_ledger_op *op)
{
    static const struct {
        bool (*fn)(struct bh_ledger *l, const struct bh_ledger_op *op);
        bool first;
    } ops[BH_LEDGER_OP_N_] = {
#define LEDGER_OP(name, fn, first) [BH_LEDGER_OP_##name] = {fn, first},
#include "warden/ledger_ops.def"
#undef LEDGER_OP
    };
    if (op->kind >= BH_LEDGER_OP_N_ || !ops[op->kind].fn || (ops[op->kind].first && l->begun))
        return false;
    l->begun = l->begun || !ops[op->kind].first;
    return ops[op->kind].fn(l, op);
}

/* ---- telling ---- */

static void tell(struct bh_ledger_log to, struct bh_ledger_op op)
{
    to.fn(to.arg, &op);
}

static void tell_block(struct bh_ledger_log to, const struct ledger_block *b)
{
    tell(to, (struct bh_ledger_op){
                 .kind = BH_LEDGER_OP_HAS_BLOCK, .gpu = b->gpu, .flags = b->doubt, .bytes = b->bytes});
}

/* How many of each were told. */
struct told {
    uint32_t blocks, objects;
};

/* What more than one object holds; what one alone does is told with it, so that nothing need be remembered. */
static void tell_shared(struct bh_ledger *l, struct bh_ledger_log to, struct told *n)
{
    for (size_t i = 0; i < l->blocks.n; i++) {
        struct ledger_block *b = &l->blocks.at[i];
        if (b->refs < 2)
            continue;
        b->ordinal = n->blocks++ & LEDGER_ORDINAL_MASK;
        tell_block(to, b);
    }
}

/* Its block, as the one that is told may be named. */
static uint32_t block_told(const struct bh_ledger *l, struct bh_ledger_log to, const struct ledger_object *o,
                           struct told *n)
{
    if (o->block == LEDGER_NONE)
        return LEDGER_NONE;
    if (l->blocks.at[o->block].refs > 1)
        return (uint32_t)l->blocks.at[o->block].ordinal;
    tell_block(to, &l->blocks.at[o->block]);
    return n->blocks++;
}

static void tell_object(const struct bh_ledger *l, struct bh_ledger_log to, const struct ledger_object *o,
                        struct told *n)
{
    n->objects++;
    if (o->parent == LEDGER_NONE) {
        tell(to, (struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_CLIENT, .client = o->client});
        return;
    }
    const uint32_t block = block_told(l, to, o, n);
    tell(to, (struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_OBJECT,
                                   .client = o->client,
                                   .object = o->handle,
                                   .parent = l->objects.at[o->parent].prev, /* lent */
                                   .source = block,
                                   .class = o->class,
                                   .gpu = o->gpu,
                                   .flags = o->named});
}

/*
 * Parents before what is below them. What is below one names it by its ordinal, which takes the place of `prev` meanwhile;
 * what was there goes to its first child, where nothing is, for nobody is before it.
 */
static void tell_tree(struct bh_ledger *l, struct bh_ledger_log to, uint32_t root, struct told *n)
{
    struct ledger_object *at = l->objects.at;
    for (uint32_t slot = root;;) {
        tell_object(l, to, &at[slot], n);
        if (at[slot].first != LEDGER_NONE) {
            at[at[slot].first].prev = at[slot].prev;
            at[slot].prev = n->objects - 1;
            slot = at[slot].first;
            continue;
        }
        while (slot != root && at[slot].next == LEDGER_NONE) {
            slot = at[slot].parent;
            at[slot].prev = at[at[slot].first].prev;
            at[at[slot].first].prev = LEDGER_NONE;
        }
        if (slot == root)
            return;
        slot = at[slot].next;
    }
}

static void tell_claims(const struct bh_ledger *l, struct bh_ledger_log to)
{
    for (size_t i = 0; i < l->claims.n; i++) {
        const struct ledger_claim *c = &l->claims.at[i];
        if (!c->live)
            continue;
        tell(to, (struct bh_ledger_op){
                     .kind = BH_LEDGER_OP_CLIENT,
                     .pid = (uint32_t)l->owners[LEDGER_PROCESS].pool.at[c->in[LEDGER_PROCESS].owner].key,
                     .file = l->owners[LEDGER_FILE].pool.at[c->in[LEDGER_FILE].owner].key,
                     .client = (uint32_t)l->owners[LEDGER_CLIENT].pool.at[c->in[LEDGER_CLIENT].owner].key});
    }
}

static void tell_gpus(const struct bh_ledger *l, struct bh_ledger_log to)
{
    for (uint32_t g = 0; g <= LEDGER_ANYWHERE; g++) {
        const struct ledger_gpu *gpu = &l->gpus[g];
        if (gpu->lost)
            tell(to, (struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_LOST, .gpu = g, .bytes = gpu->lost});
        if (g != LEDGER_ANYWHERE && (gpu->seen || gpu->counted || gpu->peak))
            tell(to, (struct bh_ledger_op){.kind = BH_LEDGER_OP_HAS_GPU,
                                           .gpu = g,
                                           .flags = gpu->seen,
                                           .bytes = gpu->counted,
                                           .file = gpu->peak});
    }
}

void bh_ledger_snapshot(struct bh_ledger *l, struct bh_ledger_log to)
{
    const struct ledger_owners *clients = &l->owners[LEDGER_CLIENT], *processes = &l->owners[LEDGER_PROCESS];
    struct told n = {0};
    tell_shared(l, to, &n);
    for (size_t i = 0; i < clients->pool.n; i++)
        if (clients->pool.at[i].live)
            tell_tree(l, to, clients->pool.at[i].root, &n);
    tell_claims(l, to);
    for (size_t i = 0; i < processes->pool.n; i++)
        if (processes->pool.at[i].live && processes->pool.at[i].managed_bytes)
            tell(to, (struct bh_ledger_op){.kind = BH_LEDGER_OP_MAP,
                                           .pid = (uint32_t)processes->pool.at[i].key,
                                           .bytes = processes->pool.at[i].managed_bytes});
    tell_gpus(l, to);
}
