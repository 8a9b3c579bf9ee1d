/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_ops_fixture.h - are two ledgers the same, as far as what is told of one can make another? */
#ifndef BH_WARDEN_LEDGER_OPS_FIXTURE_H
#define BH_WARDEN_LEDGER_OPS_FIXTURE_H

#include "warden/ledger_state.h"

static inline size_t ops_named(const struct bh_ledger *a, const struct bh_ledger *b)
{
    size_t same = 0;
    for (size_t i = 0; i < a->objects.n; i++) {
        const struct ledger_object *o = &a->objects.at[i];
        same += o->live && o->named && bh_ledger_has(b, o->client, o->handle) &&
                bh_ledger_gpu_of(a, o->client, o->handle) == bh_ledger_gpu_of(b, o->client, o->handle);
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
    return ops_named(a, b) == a->names.n ? NULL : "names differ";
}

#endif
