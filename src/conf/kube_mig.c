/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_mig.c - mig-parted configuration: how the GPUs of a node are cut, and the names pods see.
 *
 * The shipped file holds dozens of named layouts of which a cluster uses a few: those that a
 * Node's `nvidia.com/mig.config` label or the operator's default names. Every layout becomes a
 * pool, so that one which does not fit is found before a node asks for it; but only a chosen one
 * has tenants and names that pods see.
 *
 * A device filter names PCI ids. An entry whose filter leaves out all models of the nodes that
 * chose the layout cuts nothing and gives no pool. A pool's model is the one that is left of the
 * filter and of those nodes; where several are left it is open.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"

#include <stdio.h>

enum { INSTANCES_MAX = 1024, LAYOUT_MAX = 64, VENDOR_NVIDIA = 0x10de };

/* ---- models ---- */

static uint64_t model_bit(const struct bh_gpu_model *m)
{
    return UINT64_C(1) << (m - bh_catalog_at(0));
}

/* The name of the one model in a set; NULL: there are several, or none. */
static const char *only_model(uint64_t models)
{
    bool one = models && !(models & (models - 1));
    return one ? bh_catalog_at((size_t)__builtin_ctzll(models))->name : NULL;
}

void bh_kube_choose_mig(struct bh_kube *k, const char *config, const char *product, struct bh_pos pos)
{
    const struct bh_gpu_model *model = product ? bh_catalog_find(product) : NULL;
    const char *name = bh_kube_keep(k, config);
    uint32_t i = bh_map_add(&k->choice_by_config, name, (uint32_t)k->choices.n);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)k->choices.n;
        *bh_vec_push(&k->choices) = (struct bh_kube_choice){.config = name, .pos = pos};
    }
    if (model)
        k->choices.at[i].models |= model_bit(model);
    else
        k->choices.at[i].any_model = true;
}

void bh_kube_note_unknown_layouts(struct bh_kube *k)
{
    bool any = false;
    for (size_t i = 0; i < k->configs.n; i++)
        any = any || bh_node_get(k->configs.at[i].root, "mig-configs");
    for (size_t i = 0; any && i < k->choices.n; i++)
        if (!k->choices.at[i].known)
            bh_diag_note_once(k->d, k->choices.at[i].pos,
                              "MIG layout `%.100s` is asked for, but no configuration among the files has it",
                              k->choices.at[i].config);
}

/* `0x233010DE`: the device in the upper half, the vendor in the lower. False: it is no such id. */
static bool device_id(const char *text, uint16_t *ret)
{
    uint32_t id = 0;
    size_t n = 0;
    if (text[0] != '0' || bh_to_lower(text[1]) != 'x')
        return false;
    for (text += 2; *text && n <= 8; text++, n++) {
        char c = bh_to_lower(*text);
        if (!bh_is_digit(c) && (c < 'a' || c > 'f'))
            return false;
        id = id << 4 | (uint32_t)(bh_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    *ret = (uint16_t)(id >> 16);
    return n == 8 && (id & 0xffff) == VENDOR_NVIDIA;
}

static void filter_add(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *n,
                       uint64_t *models)
{
    const char *text = bh_node_text(n);
    uint16_t device;
    if (!text || !device_id(text, &device)) {
        bh_diag_error(k->d, bh_kube_pos(at, n),
                      "`device-filter` must be a PCI id like `0x233010DE`, or a list of them");
        return;
    }
    const struct bh_gpu_model *m = bh_catalog_by_device(device);
    if (m)
        *models |= model_bit(m);
}

/* A filter of one id or of several. False: there is none. */
static bool read_filter(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *entry,
                        uint64_t *ret_models)
{
    const struct bh_node *filter = bh_node_get(entry, "device-filter");
    *ret_models = 0;
    if (!filter || (filter->kind == BH_NODE_SCALAR && (bh_node_is_null(filter) || filter->n == 0)))
        return false;
    if (filter->kind == BH_NODE_SEQ)
        BH_EACH_ITEM (item, filter)
            filter_add(k, at, item, ret_models);
    else
        filter_add(k, at, filter, ret_models);
    return filter->kind != BH_NODE_SEQ || filter->n > 0;
}

/* ---- layouts ---- */

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
    const struct bh_kube_choice *choice; /* NULL: nobody asks for it */
    const char *name;
    struct bh_pos pos;
};

/* Whether an entry cuts any GPU of the nodes that chose the layout, and if so of which one model. */
static bool entry_applies(struct bh_kube *k, const struct layout *l, const struct bh_node *entry,
                          const char **ret_model)
{
    const struct bh_kube_choice *c = l->choice;
    bool chosen = c && !c->any_model;
    uint64_t of_filter, of_nodes = chosen ? c->models : 0, unlisted = 0;
    bool filtered = read_filter(k, &l->config->place, entry, &of_filter);

    *ret_model = only_model(filtered ? of_filter : of_nodes);
    if (!filtered || !chosen)
        return true;
    /* a model whose ids are not known may be among those of any filter */
    for (size_t i = 0; i < bh_catalog_count(); i++)
        if (!bh_model_has_devices(bh_catalog_at(i)))
            unlisted |= UINT64_C(1) << i;
    uint64_t left = of_nodes & (of_filter | unlisted);
    *ret_model = only_model(left);
    return left != 0;
}

static void read_entry(struct bh_kube *k, const struct layout *l, const struct bh_node *entry,
                       const char *pool_name, const char *model)
{
    const struct bh_kube_place *at = &l->config->place;
    struct bh_pool *pool = bh_kube_add_pool(k, pool_name, l->config->object, l->pos);
    const struct bh_node *devices = bh_node_get(entry, "mig-devices");
    pool->mechanism = BH_MECH_MIG;
    pool->strategy = k->strategy;
    pool->layout_pos = bh_kube_pos(at, devices);
    pool->any_tenant = l->choice != NULL;
    if (model) {
        pool->match.model = (struct bh_text){model, l->pos};
        pool->match.pos = l->pos;
    }
    read_devices(k, at, devices, pool);
    if (l->choice)
        expose_layout(k, (uint32_t)(k->p->pools.n - 1));
}

/* Say what is wrong with the shape of an entry; true when it cuts GPUs that are there. */
static bool check_entry(struct bh_kube *k, const struct layout *l, const struct bh_node *entry,
                        const char **ret_model)
{
    static const char *const known[] = {"device-filter", "devices", "mig-enabled", "mig-devices", NULL};
    const struct bh_kube_place *at = &l->config->place;
    if (entry->kind != BH_NODE_MAP) {
        bh_diag_error(k->d, bh_kube_pos(at, entry), "a device setting of `%.100s` must be a map", l->name);
        return false;
    }
    bh_kube_note_unknown(k, at, entry, known, "mig-parted configuration");
    return cuts(entry) && entry_applies(k, l, entry, ret_model);
}

struct cut {
    const struct bh_node *entry;
    const char *model;
};

static void read_layout(struct bh_kube *k, const struct layout *l, const struct bh_node *entries)
{
    BH_VEC(struct cut) cut = {0};
    const char *model;
    if (entries->kind != BH_NODE_SEQ) {
        bh_diag_error(k->d, bh_kube_pos(&l->config->place, entries),
                      "`%.100s` must be a list of device settings", l->name);
        return;
    }
    BH_EACH_ITEM (entry, entries)
        if (check_entry(k, l, entry, &model))
            *bh_vec_push(&cut) = (struct cut){entry, model};
    for (size_t i = 0; i < cut.n; i++)
        read_entry(k, l, cut.at[i].entry,
                   cut.n == 1 ? l->name : bh_arena_printf(&k->arena, "%s/%zu", l->name, i + 1),
                   cut.at[i].model);
    bh_vec_fini(&cut);
}

void bh_kube_read_mig(struct bh_kube *k, const struct bh_kube_config *c)
{
    const struct bh_node *configs = bh_kube_child(k, &c->place, c->root, "mig-configs", BH_NODE_MAP);
    size_t n_pools = k->p->pools.n;
    bool any = false;
    if (!configs)
        return;
    BH_EACH_PAIR (key, value, configs) {
        const char *name = bh_node_text(key);
        uint32_t choice = bh_map_find(&k->choice_by_config, name);
        struct layout l = {.config = c, .pos = bh_kube_pos(&c->place, key)};
        if (choice != BH_MAP_NONE) {
            l.choice = &k->choices.at[choice];
            k->choices.at[choice].known = any = true;
        }
        l.name = bh_arena_strn(&k->arena, name, strnlen(name, BH_KUBE_NAME_MAX));
        read_layout(k, &l, value);
    }
    if (!any && k->p->pools.n > n_pools)
        bh_diag_note(
            k->d, bh_kube_pos(&c->place, configs),
            "of the MIG layouts here (%u) none is chosen by a Node's `nvidia.com/mig.config` label, so they are "
            "only checked for fitting; add the Node documents to judge who uses them",
            configs->n);
}
