/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_ops_fixture.h - are two ledgers the same, as far as what is told of one can make another? */
#ifndef BH_WARDEN_LEDGER_OPS_FIXTURE_H
#define BH_WARDEN_LEDGER_OPS_FIXTURE_H

#include "warden/ledger_state.h"

#include <stdlib.h>

static inline bool ops_same(const struct bh_ledger *a, const struct ledger_object *o,
                            const struct bh_ledger *b, const struct ledger_object *p)
{
    if (o->gpu != p->gpu || o->class != p->class || (o->block == LEDGER_NONE) != (p->block == LEDGER_NONE))
        return false;
    if (o->block == LEDGER_NONE)
        return true;
    const struct ledger_block *m = &a->blocks.at[o->block], *n = &b->blocks.at[p->block];
    return m->bytes == n->bytes && m->refs == n->refs && m->gpu == n->gpu && m->doubt == n->doubt;
}

/* Blocks of objects that have lost their names are among them, and mostly they. */
static inline size_t ops_doubted(const struct bh_ledger *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->blocks.n; i++)
        n += l->blocks.at[i].refs && l->blocks.at[i].doubt;
    return n;
}

static inline size_t ops_named(const struct bh_ledger *a, const struct bh_ledger *b)
{
    size_t same = 0;
    for (size_t i = 0; i < a->objects.n; i++) {
        const struct ledger_object *o = &a->objects.at[i];
        const uint32_t there = o->live && o->named ? ledger_name_find(b, o->client, o->handle) : LEDGER_NONE;
        same += there != LEDGER_NONE && ops_same(a, o, b, &b->objects.at[there]);
    }
    return same;
}

/* NULL: they are. What is reserved, the peak and what was refused are not told. */
static inline const char *ops_differ(const struct bh_ledger *a, const struct bh_ledger *b)
{
    if (a->cap_bytes != b->cap_bytes || a->managed_bytes != b->managed_bytes)
        return "managed memory differs";
    for (uint32_t g = 0; g <= LEDGER_ANYWHERE; g++)
        if (a->gpus[g].held != b->gpus[g].held || a->gpus[g].lost != b->gpus[g].lost ||
            a->gpus[g].counted != b->gpus[g].counted)
            return "a GPU differs";
    for (int k = 0; k < LEDGER_LISTS; k++)
        if (ledger_live(&a->owners[k].pool) != ledger_live(&b->owners[k].pool))
            return "owners differ";
    if (ledger_live(&a->objects) != ledger_live(&b->objects) ||
        ledger_live(&a->blocks) != ledger_live(&b->blocks) ||
        ledger_live(&a->claims) != ledger_live(&b->claims) || a->names.n != b->names.n)
        return "objects, blocks or claims differ";
    if (ops_doubted(a) != ops_doubted(b))
        return "what is in doubt differs";
    return ops_named(a, b) == a->names.n ? NULL : "names differ";
}

static inline void ops_apply(void *arg, const struct bh_ledger_op *op)
{
    if (!bh_ledger_apply(arg, op))
        abort();
}

/* As it is now, from what is told of it at once. */
static inline struct bh_ledger *ops_copy(struct bh_ledger *l)
{
    struct bh_ledger *copy = bh_ledger_new(l->cap_bytes);
    bh_ledger_snapshot(l, (struct bh_ledger_log){ops_apply, copy});
    return copy;
}

#endif
