/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - looking things up in a fleet. Filling one is its reader's work. */
#include "core/model/fleet.h"

#include "base/str.h"

static void node_fini(struct bh_fleet_node *n)
{
    for (size_t i = 0; i < n->gpus.n; i++)
        bh_vec_fini(&n->gpus.at[i].instances);
    bh_vec_fini(&n->gpus);
    bh_vec_fini(&n->params);
    bh_vec_fini(&n->labels);
}

void bh_fleet_fini(struct bh_fleet *f)
{
    for (size_t i = 0; i < f->nodes.n; i++)
        node_fini(&f->nodes.at[i]);
    bh_vec_fini(&f->nodes);
    bh_map_fini(&f->by_name);
    bh_arena_fini(&f->arena);
}

const struct bh_fleet_node *bh_fleet_find(const struct bh_fleet *f, const char *name)
{
    uint32_t i = bh_map_find(&f->by_name, name);
    return i == BH_MAP_NONE ? NULL : &f->nodes.at[i];
}

/* GPUs are nearly always listed by index without a gap, so the place is tried before the search. */
const struct bh_gpu *bh_fleet_node_gpu(const struct bh_fleet_node *n, uint32_t index)
{
    if (index < n->gpus.n && n->gpus.at[index].index == index)
        return &n->gpus.at[index];
    for (size_t i = 0; i < n->gpus.n; i++)
        if (n->gpus.at[i].index == index)
            return &n->gpus.at[i];
    return NULL;
}

const char *bh_keyed_find(const struct bh_keyed *at, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (bh_str_eq(at[i].key, key))
            return at[i].value;
    return NULL;
}
