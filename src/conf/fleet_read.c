/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_read.c - the fleet file: what hardware there is and how it is set up.
 *
 * A model or a profile that the catalogue does not know is kept as written. What the
 * file does not say stays unknown; nothing is filled in but a kernel id, which is the
 * node's name where none is given.
 */
#include "base/units.h"
#include "conf/bind.h"
#include "conf/read.h"

#include <inttypes.h>

enum { GPU_INDEX_MAX = 1023, NUMA_MAX = 1023 };

struct reader {
    struct bh_fleet *f;
    struct bh_map uuids;   /* -> line */
    const char *last_name; /* most nodes bear one model: it is looked up once */
    const struct bh_gpu_model *last_model;
};

/* ---- GPUs ---- */

static void add_instance(struct bh_bind *b, const struct bh_node *key, const struct bh_node *n,
                         struct bh_gpu *g)
{
    const char *text = bh_node_text(n), *at = text ? strchr(text, '@') : NULL;
    struct bh_found_instance found = {.start = -1, .pos = bh_bind_pos(b, n)};
    uint64_t start;
    bool ok = text && *text && at != text;
    if (ok && at) {
        ok = bh_uint_parse(at + 1, BH_MIG_SLICES_MAX - 1, &start, NULL) == 0;
        found.start = ok ? (int8_t)start : -1;
    }
    if (!ok) {
        bh_bind_need(b, key, n, "instances like 1g.18gb@0, the slice behind the `@` from 0 to %d",
                     BH_MIG_SLICES_MAX - 1);
        return;
    }
    found.profile = bh_arena_strn(b->arena, text, at ? (size_t)(at - text) : n->n);
    *bh_vec_push(&g->instances) = found;
}

static void read_instances(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    if (v->kind != BH_NODE_SEQ) {
        bh_bind_need(b, key, v, "a list of instances like 1g.18gb@0");
        return;
    }
    BH_EACH_ITEM (i, v) {
        add_instance(b, key, i, base);
    }
}

static const struct bh_field mig_fields[] = {
    {BH_FIELD("enabled", FACT, struct bh_gpu, mig_enabled)},
    {BH_FIELD_FN("instances", read_instances)},
};
BH_TABLE(mig_table, mig_fields);

static const struct bh_field gpu_fields[] = {
    {BH_FIELD("index", UINT, struct bh_gpu, index), .max = GPU_INDEX_MAX, .required = true},
    {BH_FIELD("uuid", TEXT, struct bh_gpu, uuid)},
    {BH_FIELD("model", TEXT, struct bh_gpu, model_name), .required = true},
    {BH_FIELD("numa", INT, struct bh_gpu, numa), .max = NUMA_MAX},
    {BH_FIELD("fabric", TEXT, struct bh_gpu, fabric)},
    {BH_FIELD_MAP("mig", &mig_table)},
};
BH_TABLE(gpu_table, gpu_fields);

static void *add_gpu(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_fleet_node *n = base;
    struct bh_gpu *g = bh_vec_push(&n->gpus);
    *g = (struct bh_gpu){.pos = pos, .numa = -1};
    return g;
}

static const struct bh_gpu_model *model_of(struct bh_bind *b, const struct bh_node *item, const char *name)
{
    struct reader *r = b->ctx;
    if (r->last_name && strcmp(r->last_name, name) == 0)
        return r->last_model;
    r->last_name = name;
    r->last_model = bh_catalog_find(name);
    if (!r->last_model)
        bh_diag_note_once(b->d, bh_bind_pos(b, bh_node_get(item, "model")),
                          "`%.60s` is not in the GPU catalogue; nothing is assumed about its partitions",
                          name);
    return r->last_model;
}

static void gpu_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    struct bh_gpu *g = base;
    if (g->model_name)
        g->model = model_of(b, item, g->model_name);
    for (size_t i = 0; g->model && i < g->instances.n; i++)
        g->instances.at[i].known = bh_mig_find(g->model, g->instances.at[i].profile);
    uint32_t first = g->uuid ? bh_map_add(&r->uuids, g->uuid, g->pos.line) : BH_MAP_NONE;
    if (first != BH_MAP_NONE)
        bh_diag_error(b->d, bh_bind_pos(b, bh_node_get(item, "uuid")),
                      "GPU '%.80s' is listed twice: on line %" PRIu32 " and on line %" PRIu32, g->uuid, first,
                      g->pos.line);
}

static const struct bh_each each_gpu = {"GPU", &gpu_table, add_gpu, gpu_done};

/* ---- nodes ---- */

static void add_param(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_fleet_node *n = base;
    *bh_vec_push(&n->params) = bh_bind_keyed(b, key, v);
}

static void read_params(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    bh_bind_pairs(b, key, v, "a map from driver parameters to values", add_param, base);
}

static void add_label(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_fleet_node *n = base;
    *bh_vec_push(&n->labels) = bh_bind_keyed(b, key, v);
}

static void read_labels(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    bh_bind_pairs(b, key, v, "a map from labels to values", add_label, base);
}

static const struct bh_field node_fields[] = {
    {BH_FIELD("name", LABEL, struct bh_fleet_node, name), .required = true},
    {BH_FIELD("kernel", TEXT, struct bh_fleet_node, kernel)},
    {BH_FIELD("site", TEXT, struct bh_fleet_node, site)},
    {BH_FIELD("driver", TEXT, struct bh_fleet_node, driver)},
    {BH_FIELD("toolkit", TEXT, struct bh_fleet_node, toolkit)},
    {BH_FIELD("operator", TEXT, struct bh_fleet_node, operator_)},
    {BH_FIELD("vgpuManager", TEXT, struct bh_fleet_node, vgpu_manager)},
    {BH_FIELD("iommu", FACT, struct bh_fleet_node, iommu)},
    {BH_FIELD("acs", FACT, struct bh_fleet_node, acs)},
    {BH_FIELD("secureBoot", FACT, struct bh_fleet_node, secure_boot)},
    {BH_FIELD("ecc", FACT, struct bh_fleet_node, ecc)},
    {BH_FIELD_FN("params", read_params)},
    {BH_FIELD_FN("labels", read_labels)},
    {BH_FIELD_EACH("gpus", &each_gpu)},
};
BH_TABLE(node_table, node_fields);

static void *add_node(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_fleet *f = base;
    struct bh_fleet_node *n = bh_vec_push(&f->nodes);
    *n = (struct bh_fleet_node){.pos = pos};
    return n;
}

static void refuse_twin_gpus(struct bh_bind *b, const struct bh_fleet_node *n)
{
    uint64_t seen[(GPU_INDEX_MAX + 1) / 64] = {0};
    for (size_t i = 0; i < n->gpus.n; i++) {
        const struct bh_gpu *g = &n->gpus.at[i], *first = n->gpus.at;
        uint64_t bit = UINT64_C(1) << g->index % 64;
        if (!(seen[g->index / 64] & bit)) {
            seen[g->index / 64] |= bit;
            continue;
        }
        while (first->index != g->index)
            first++;
        bh_diag_error(b->d, g->pos,
                      "GPU %" PRIu32 " of node '%.63s' is listed twice: on line %" PRIu32
                      " and on line %" PRIu32,
                      g->index, n->name ? n->name : "", first->pos.line, g->pos.line);
    }
}

static void node_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    struct bh_fleet_node *n = base;
    uint32_t index = (uint32_t)(r->f->nodes.n - 1);
    uint32_t first = n->name ? bh_map_add(&r->f->by_name, n->name, index) : BH_MAP_NONE;
    if (first != BH_MAP_NONE) {
        const struct bh_node *name = bh_node_get(item, "name");
        bh_diag_error(b->d, bh_bind_pos(b, name),
                      "node '%.63s' is listed twice: on line %" PRIu32 " and on line %" PRIu32, n->name,
                      r->f->nodes.at[first].pos.line, name->line);
    }
    if (!n->kernel)
        n->kernel = n->name ? n->name : "";
    refuse_twin_gpus(b, n);
}

static const struct bh_each each_node = {"node", &node_table, add_node, node_done};

static const struct bh_field fleet_fields[] = {
    {BH_FIELD_FN("bulkhead", bh_bind_version)},
    {BH_FIELD_EACH("nodes", &each_node), .required = true},
};
BH_TABLE(fleet_table, fleet_fields);

void bh_fleet_read(struct bh_fleet *f, struct bh_tree *t, uint32_t file, struct bh_diags *d)
{
    struct reader r = {.f = f};
    struct bh_bind b = {.arena = &f->arena, .d = d, .file = file, .ctx = &r};
    const struct bh_node *root = bh_bind_root(&b, t, "fleet file");
    if (root)
        bh_bind_map(&b, &fleet_table, root, f);
    bh_map_fini(&r.uuids);
}
