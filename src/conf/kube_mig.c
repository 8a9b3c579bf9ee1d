/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_mig.c - mig-parted configuration: how the GPUs of a node are cut, and the names pods see.
 *
 * The shipped file holds dozens of named layouts of which a cluster uses a few. Those count
 * that a Node's `nvidia.com/mig.config` label or the operator's default names. Where nothing
 * names any, a file of at most eight is taken to be written for this cluster and all count;
 * of a longer one none does, and a note says so.
 *
 * A device filter names PCI ids, from which no model is guessed; a pool's model is that of the
 * nodes which chose the layout, when all of them agree.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"

#include <stdio.h>

enum { UNCHOSEN_MAX = 8, INSTANCES_MAX = 1024, LAYOUT_MAX = 64 };

void bh_kube_choose_mig(struct bh_kube *k, const char *config, const char *product)
{
    const struct bh_gpu_model *model = product ? bh_catalog_find(product) : NULL;
    struct bh_kube_choice choice = {.model = model ? model->name : NULL};
    uint32_t known = bh_map_add(&k->choice_by_config, bh_kube_keep(k, config), (uint32_t)k->choices.n);
    if (known == BH_MAP_NONE)
        *bh_vec_push(&k->choices) = choice;
    else if (!bh_str_eq(k->choices.at[known].model, choice.model))
        k->choices.at[known].model = NULL;
}

static void add_layout(struct bh_kube *k, const struct bh_kube_place *at, struct bh_pool *pool,
                       const char *profile, uint64_t count, const struct bh_node *where)
{
    if (pool->layout.n == LAYOUT_MAX) {
        bh_diag_note_once(k->d, bh_kube_pos(at, where),
                          "more than %d profiles in one layout; the rest is passed over", LAYOUT_MAX);
        return;
    }
    for (size_t i = 0; i < pool->layout.n; i++)
        if (strcmp(pool->layout.at[i].profile, profile) == 0) {
            pool->layout.at[i].count += (uint32_t)count;
            return;
        }
    *bh_vec_push(&pool->layout) =
        (struct bh_layout_item){bh_kube_keep(k, profile), (uint32_t)count, bh_kube_pos(at, where)};
}

/* A map from profile to how many, or a list of profiles. */
static void read_devices(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *devices,
                         struct bh_pool *pool)
{
    if (devices->kind == BH_NODE_MAP) {
        BH_EACH_PAIR (key, value, devices) {
            const char *profile = bh_node_text(key);
            uint64_t count = 0;
            if (profile && *profile && bh_kube_number(k, at, value, profile, INSTANCES_MAX, &count) && count)
                add_layout(k, at, pool, profile, count, key);
        }
    } else if (devices->kind == BH_NODE_SEQ) {
        BH_EACH_ITEM (item, devices) {
            const char *profile = bh_node_text(item);
            if (profile && *profile)
                add_layout(k, at, pool, profile, 1, item);
            else
                bh_diag_error(k->d, bh_kube_pos(at, item),
                              "an item of `mig-devices` must be a profile's name");
        }
    } else if (!bh_node_is_null(devices)) {
        bh_diag_error(k->d, bh_kube_pos(at, devices), "`mig-devices` must map profiles to how many of each");
    }
}

/* `1g.10gb+me` is exposed as `nvidia.com/mig-1g.10gb.me`; the single strategy calls every slice a GPU. */
static void expose_layout(struct bh_kube *k, uint32_t index)
{
    size_t n = k->p->pools.at[index].layout.n;
    for (size_t i = 0; i < n; i++) {
        const struct bh_layout_item item = k->p->pools.at[index].layout.at[i];
        char name[BH_KUBE_NAME_MAX + 1];
        if (k->strategy == BH_STRATEGY_SINGLE) {
            bh_kube_expose(k, index, "nvidia.com/gpu", item.pos);
            return;
        }
        (void)snprintf(name, sizeof(name), "nvidia.com/mig-%s", item.profile);
        for (char *p = name; *p; p++)
            if (*p == '+')
                *p = '.';
        bh_kube_expose(k, index, name, item.pos);
    }
}

static bool cuts(const struct bh_node *entry)
{
    const struct bh_node *devices = bh_node_get(entry, "mig-devices");
    return bh_node_bool(bh_node_get(entry, "mig-enabled")) == 1 && devices && devices->n > 0;
}

struct layout {
    const struct bh_kube_config *config;
    const char *name, *model;
    struct bh_pos pos;
};

static void read_entry(struct bh_kube *k, const struct layout *l, const struct bh_node *entry,
                       const char *pool_name)
{
    const struct bh_kube_place *at = &l->config->place;
    struct bh_pool *pool = bh_kube_add_pool(k, pool_name, l->config->object, l->pos);
    const struct bh_node *devices = bh_node_get(entry, "mig-devices");
    pool->mechanism = BH_MECH_MIG;
    pool->strategy = k->strategy;
    pool->layout_pos = bh_kube_pos(at, devices);
    if (l->model) {
        pool->match.model = (struct bh_text){l->model, l->pos};
        pool->match.pos = l->pos;
    }
    read_devices(k, at, devices, pool);
    expose_layout(k, (uint32_t)(k->p->pools.n - 1));
}

static void read_layout(struct bh_kube *k, const struct layout *l, const struct bh_node *entries)
{
    static const char *const known[] = {"device-filter", "devices", "mig-enabled", "mig-devices", NULL};
    const struct bh_kube_place *at = &l->config->place;
    size_t n_cuts = 0, n = 0;
    if (entries->kind != BH_NODE_SEQ) {
        bh_diag_error(k->d, bh_kube_pos(at, entries), "`%.100s` must be a list of device settings", l->name);
        return;
    }
    BH_EACH_ITEM (entry, entries)
        n_cuts += entry->kind == BH_NODE_MAP && cuts(entry);
    BH_EACH_ITEM (entry, entries) {
        if (entry->kind != BH_NODE_MAP) {
            bh_diag_error(k->d, bh_kube_pos(at, entry), "a device setting of `%.100s` must be a map",
                          l->name);
            continue;
        }
        bh_kube_note_unknown(k, at, entry, known, "mig-parted configuration");
        if (cuts(entry))
            read_entry(k, l, entry,
                       n_cuts == 1 ? l->name : bh_arena_printf(&k->arena, "%s/%zu", l->name, ++n));
    }
}

void bh_kube_read_mig(struct bh_kube *k, const struct bh_kube_config *c)
{
    const struct bh_node *configs = bh_kube_child(k, &c->place, c->root, "mig-configs", BH_NODE_MAP);
    bool any = false;
    if (!configs)
        return;
    BH_EACH_PAIR (key, value, configs)
        any = any || bh_map_find(&k->choice_by_config, bh_node_text(key)) != BH_MAP_NONE;
    if (!any && configs->n > UNCHOSEN_MAX) {
        bh_diag_note(k->d, bh_kube_pos(&c->place, configs),
                     "none of these %u MIG layouts is chosen by a Node's "
                     "`nvidia.com/mig.config` label, so none is judged; add the Node documents",
                     configs->n);
        return;
    }
    BH_EACH_PAIR (key, value, configs) {
        const char *name = bh_node_text(key);
        uint32_t choice = bh_map_find(&k->choice_by_config, name);
        struct layout l = {.config = c, .pos = bh_kube_pos(&c->place, key)};
        if (any && choice == BH_MAP_NONE)
            continue;
        l.name = bh_arena_strn(&k->arena, name, strnlen(name, BH_KUBE_NAME_MAX));
        l.model = choice == BH_MAP_NONE ? NULL : k->choices.at[choice].model;
        read_layout(k, &l, value);
    }
}
