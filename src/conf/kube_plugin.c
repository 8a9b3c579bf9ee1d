/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_plugin.c - the NVIDIA device plugin's configuration: what is shared, and under which name pods see it.
 *
 * It is found in the values of a ConfigMap, in a ClusterPolicy of the GPU Operator, or as a
 * file of its own. A literal block's lines are lines of the file, so findings point into it;
 * a text that was quoted or folded has lost its lines, and findings point to its key.
 *
 * One pool per shared resource of each configuration. Of a ConfigMap with several, those count
 * that a Node's `nvidia.com/device-plugin.config` label or the operator's default names; where
 * nothing names any, all do, for a label is all it takes to choose one.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"

enum { REPLICAS_MAX = 1 << 20, MEMORY_GB_MAX = 1 << 20 };

/* ---- pools ---- */

struct bh_pool *bh_kube_add_pool(struct bh_kube *k, const char *name, const char *object, struct bh_pos pos)
{
    uint32_t index = (uint32_t)k->p->pools.n;
    struct bh_pool *pool = bh_policy_add_pool(k->p);
    pool->source = BH_SOURCE_KUBERNETES;
    pool->pos = pos;
    pool->mechanism_pos = pos;
    pool->object = object;
    pool->tier = BH_TIER_CONTAINER;
    pool->any_tenant = true;
    pool->name = bh_kube_keep(k, name);
    /* two ConfigMaps of one name, in two namespaces: the pool's own number tells them apart */
    for (unsigned n = index + 1; bh_map_add(&k->pool_names, pool->name, index) != BH_MAP_NONE; n++)
        pool->name = bh_arena_printf(&k->p->arena, "%.*s~%u", BH_KUBE_TEXT_MAX, name, n);
    return pool;
}

void bh_kube_expose(struct bh_kube *k, uint32_t pool, const char *resource, struct bh_pos pos)
{
    struct bh_pool *p = &k->p->pools.at[pool];
    const char *kept = bh_kube_keep(k, resource);
    *bh_vec_push(&p->exposes) = (struct bh_text){kept, pos};
    if (!p->resource) {
        p->resource = kept;
        p->resource_pos = pos;
    }
    bh_map_add(&k->exposed, kept, pool);
}

/* ---- time-slicing and MPS ---- */

/* One `timeSlicing` or `mps` section. */
struct sharing {
    const struct bh_kube_config *config;
    const struct bh_node *section;
    struct bh_pos pos;        /* of the pools: the data key, or `sharing` in a bare file */
    struct bh_pos rename_pos; /* of renameByDefault; line 0: not written */
    struct bh_pos fail_pos;
    uint8_t mechanism, fail;
    bool rename_by_default;
    bool many; /* several resources in the configuration: names tell them apart */
};

/* The plugin puts its own domain before a bare name. */
static const char *full_name(struct bh_kube *k, const char *name)
{
    if (strncmp(name, "nvidia.com/", 11) == 0)
        return name;
    return bh_arena_printf(&k->arena, "nvidia.com/%.*s", BH_KUBE_NAME_MAX, name);
}

static const char *seen_name(struct bh_kube *k, const struct sharing *s, const char *name,
                             const struct bh_node *rename)
{
    if (rename && *rename->u.text)
        return full_name(k, rename->u.text);
    if (s->rename_by_default)
        return bh_arena_printf(&k->arena, "%.*s.shared", BH_KUBE_NAME_MAX, name);
    return name;
}

static void set_mps_caps(struct bh_pool *pool, uint64_t memory_gb)
{
    pool->caps_by_plugin = true;
    pool->cap_compute_ppm = 1000000 / (pool->replicas ? pool->replicas : 1);
    pool->cap_memory_bytes = memory_gb * UINT64_C(1000000000);
    pool->caps_pos = pool->pos;
}

static void read_resource(struct bh_kube *k, const struct sharing *s, const struct bh_node *item)
{
    static const char *const known[] = {"name", "replicas", "rename", "memoryGB", "devices", NULL};
    const struct bh_kube_place *at = &s->config->place;
    uint64_t replicas = 0, memory_gb = 0;

    if (item->kind != BH_NODE_MAP) {
        bh_diag_error(k->d, bh_kube_pos(at, item),
                      "a shared resource must be a map with `name` and `replicas`");
        return;
    }
    bh_kube_note_unknown(k, at, item, known, "shared resource");
    const struct bh_node *name = bh_kube_child(k, at, item, "name", BH_NODE_SCALAR);
    const struct bh_node *rename = bh_kube_child(k, at, item, "rename", BH_NODE_SCALAR);
    const struct bh_node *memory = bh_node_get(item, "memoryGB");
    if (!name || !*name->u.text) {
        bh_diag_error(k->d, bh_kube_pos(at, item), "a shared resource without a `name`");
        return;
    }
    if (!bh_kube_uint(k, at, item, "replicas", REPLICAS_MAX, &replicas) ||
        !bh_kube_uint(k, at, item, "memoryGB", MEMORY_GB_MAX, &memory_gb))
        return;

    const char *full = full_name(k, name->u.text), *slash = strrchr(full, '/');
    const char *pool_name = s->config->name;
    if (s->many)
        pool_name = bh_arena_printf(&k->arena, "%s/%.*s", pool_name, BH_KUBE_NAME_MAX, slash + 1);
    struct bh_pos name_pos = bh_kube_pos(at, name);
    if (rename && *rename->u.text)
        name_pos = bh_kube_pos(at, rename);
    else if (s->rename_pos.line)
        name_pos = s->rename_pos;
    struct bh_pool *pool = bh_kube_add_pool(k, pool_name, s->config->object, s->pos);
    pool->mechanism = s->mechanism;
    pool->replicas = (uint32_t)replicas;
    pool->fail_requests_greater_than_one = s->fail;
    pool->fail_pos = s->fail_pos;
    if (s->mechanism == BH_MECH_MPS)
        set_mps_caps(pool, memory_gb);
    else if (memory)
        bh_diag_note_once(k->d, bh_kube_pos(at, memory),
                          "`memoryGB` under `timeSlicing` bounds nothing: time slices "
                          "have no memory limit");
    bh_kube_expose(k, (uint32_t)(k->p->pools.n - 1), seen_name(k, s, full, rename), name_pos);
}

static size_t count_resources(const struct bh_node *section)
{
    const struct bh_node *list =
        section && section->kind == BH_NODE_MAP ? bh_node_get(section, "resources") : NULL;
    return list && list->kind == BH_NODE_SEQ ? list->n : 0;
}

/* -1: not written, or not a boolean (which is said). */
static int read_switch(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *map,
                       const char *key)
{
    const struct bh_node *n = bh_kube_child(k, at, map, key, BH_NODE_SCALAR);
    int value = bh_node_bool(n);
    if (n && value < 0)
        bh_diag_error(k->d, bh_kube_pos(at, n), "`%s` must be true or false", key);
    return value;
}

static struct bh_pos key_pos(const struct bh_kube_place *at, const struct bh_node *map, const char *key)
{
    BH_EACH_PAIR (n, value, map)
        if (bh_str_eq(bh_node_text(n), key))
            return bh_kube_pos(at, n);
    return (struct bh_pos){0};
}

static void read_section(struct bh_kube *k, struct sharing *s, const struct bh_node *sharing, const char *key)
{
    static const char *const known[] = {"renameByDefault", "failRequestsGreaterThanOne", "resources", NULL};
    const struct bh_kube_place *at = &s->config->place;
    const struct bh_node *section = bh_kube_child(k, at, sharing, key, BH_NODE_MAP);
    if (!section)
        return;
    bh_kube_note_unknown(k, at, section, known,
                         s->mechanism == BH_MECH_MPS ? "mps section" : "timeSlicing section");
    s->rename_by_default = read_switch(k, at, section, "renameByDefault") == 1;
    s->rename_pos = key_pos(at, section, "renameByDefault");
    s->fail_pos = key_pos(at, section, "failRequestsGreaterThanOne");
    if (!s->fail_pos.line)
        s->fail_pos = key_pos(at, sharing, key);
    bool fails = read_switch(k, at, section, "failRequestsGreaterThanOne") == 1;
    /* under MPS the plugin refuses such requests whatever is written */
    s->fail = fails || s->mechanism == BH_MECH_MPS ? BH_FACT_YES : BH_FACT_NO;

    const struct bh_node *list = bh_kube_child(k, at, section, "resources", BH_NODE_SEQ);
    if (list)
        BH_EACH_ITEM (item, list)
            read_resource(k, s, item);
}

static void read_plugin(struct bh_kube *k, const struct bh_kube_config *c)
{
    static const char *const known[] = {"version", "flags", "sharing", "resources", "imex", "health", NULL};
    static const char *const sharing_known[] = {"timeSlicing", "mps", NULL};
    const struct bh_node *sharing = bh_kube_child(k, &c->place, c->root, "sharing", BH_NODE_MAP);
    bh_kube_note_unknown(k, &c->place, c->root, known, "device plugin configuration");
    if (!sharing)
        return;
    bh_kube_note_unknown(k, &c->place, sharing, sharing_known, "sharing section");
    struct sharing s = {
        .config = c,
        .pos = c->pos.line ? c->pos : key_pos(&c->place, c->root, "sharing"),
        .many = count_resources(bh_node_get(sharing, "timeSlicing")) +
                    count_resources(bh_node_get(sharing, "mps")) >
                1,
    };
    s.mechanism = BH_MECH_TIMESLICE;
    read_section(k, &s, sharing, "timeSlicing");
    s.mechanism = BH_MECH_MPS;
    read_section(k, &s, sharing, "mps");
}

/* ---- finding configurations ---- */

static void set_strategy(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *n)
{
    static const char *const words[] = {"none", "single", "mixed"};
    const char *text = bh_node_text(n);
    size_t i = 0;
    if (!text || bh_node_is_null(n))
        return;
    while (i < BH_COUNT_OF(words) && strcmp(text, words[i]) != 0)
        i++;
    if (i == BH_COUNT_OF(words))
        bh_diag_error(k->d, bh_kube_pos(at, n), "the MIG strategy must be none, single or mixed");
    else if (k->strategy == BH_STRATEGY_UNSET && i > 0)
        k->strategy = i == 1 ? BH_STRATEGY_SINGLE : BH_STRATEGY_MIXED;
}

/* Nothing else writes these words, so a text with one of them is meant to be a configuration. */
static bool must_be_config(const struct bh_node *value)
{
    static const char *const marks[] = {"timeSlicing", "mig-configs", "renameByDefault", "migStrategy"};
    for (size_t i = 0; i < BH_COUNT_OF(marks); i++)
        if (strstr(value->u.text, marks[i]))
            return true;
    return false;
}

static bool is_config(const struct bh_node *root)
{
    return root->kind == BH_NODE_MAP && (bh_node_get(root, "sharing") || bh_node_get(root, "mig-configs") ||
                                         bh_node_path(root, "flags", "migStrategy", NULL));
}

/*
 * How positions inside the text become positions in the file. A literal block keeps its lines
 * and loses its indentation, which is measured on its first line that is not blank.
 */
static struct bh_kube_place inner_place(const struct bh_kube_object *o, const struct bh_node *key,
                                        const struct bh_node *value)
{
    struct bh_kube_place outer = bh_kube_place_of(o), at = outer;
    const char *inner = value->u.text, *line;
    uint32_t skipped = 0;
    size_t n, blanks = 0, own_blanks = 0;

    at.fixed = bh_kube_pos(&outer, key);
    line = bh_kube_line(o->tree, value->line, &n);
    /* an alias bears the place of its `*`, and what it stands for is elsewhere */
    if (!value->literal || !line || !memchr(line, '|', n))
        return at;
    while (*inner == '\n') {
        inner++;
        skipped++;
    }
    line = bh_kube_line(o->tree, value->line + 1 + skipped, &n);
    if (!line)
        return at;
    while (blanks < n && line[blanks] == ' ')
        blanks++;
    while (inner[own_blanks] == ' ')
        own_blanks++;
    at.add_line = value->line;
    at.add_column = blanks > own_blanks ? (uint32_t)(blanks - own_blanks) : 0;
    at.fixed = (struct bh_pos){0};
    return at;
}

static bool may_read(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *value)
{
    if (value->n > BH_KUBE_DATA_MAX)
        return false; /* the API server takes no ConfigMap of this size */
    if (value->n > BH_KUBE_INNER_MAX - k->inner_bytes) {
        bh_diag_note_once(k->d, bh_kube_pos(at, value),
                          "the ConfigMaps hold more than %d MiB; the rest is passed over",
                          BH_KUBE_INNER_MAX >> 20);
        return false;
    }
    k->inner_bytes += value->n;
    return true;
}

/* The configuration that a ConfigMap's value is, or NULL. */
static const struct bh_node *parse_value(struct bh_kube *k, const struct bh_kube_object *o,
                                         const struct bh_node *key, const struct bh_node *value,
                                         struct bh_kube_place *ret_place)
{
    struct bh_kube_place outer = bh_kube_place_of(o);
    struct bh_tree_error error;

    if (value->kind != BH_NODE_SCALAR) {
        if (is_config(value))
            bh_diag_error(k->d, bh_kube_pos(&outer, value),
                          "a value of a ConfigMap is a text: write `%.100s: |` and "
                          "the configuration below it",
                          bh_node_text(key) ? bh_node_text(key) : "key");
        return NULL;
    }
    if (!may_read(k, &outer, value))
        return NULL;
    bool must = must_be_config(value);
    if (!must && !strstr(value->u.text, "sharing"))
        return NULL;
    struct bh_tree *t = bh_alloc(1, sizeof(*t));
    *ret_place = inner_place(o, key, value);
    if (bh_tree_parse(t, value->u.text, value->n, &error) < 0) {
        struct bh_node where = {.line = error.line, .column = error.column};
        if (must)
            bh_diag_error(k->d, bh_kube_pos(ret_place, &where), "the configuration in `%.100s`: %s",
                          bh_node_text(key), error.message);
        free(t);
        return NULL;
    }
    *bh_vec_push(&k->inner) = t;
    return t->docs.n > 0 && is_config(t->docs.at[0]) ? t->docs.at[0] : NULL;
}

static void find_in_data(struct bh_kube *k, const struct bh_kube_object *o, const struct bh_node *data)
{
    struct bh_kube_place outer = bh_kube_place_of(o);
    const char *path = bh_kube_object_path(k, o);
    size_t first = k->configs.n;
    BH_EACH_PAIR (key, value, data) {
        const char *name = bh_node_text(key);
        struct bh_kube_place at;
        const struct bh_node *root = name ? parse_value(k, o, key, value, &at) : NULL;
        if (!root)
            continue;
        *bh_vec_push(&k->configs) = (struct bh_kube_config){
            .root = root,
            .place = at,
            .pos = bh_kube_pos(&outer, key),
            .key = bh_arena_strn(&k->arena, name, strnlen(name, BH_KUBE_NAME_MAX)),
            .map = path,
            .object = bh_arena_printf(&k->p->arena, "%s#%.*s", path, BH_KUBE_NAME_MAX, name),
        };
    }
    /* one configuration needs no key to tell it from another */
    for (size_t i = first; i < k->configs.n; i++)
        k->configs.at[i].name = k->configs.n - first == 1
                                    ? o->name
                                    : bh_arena_printf(&k->arena, "%s/%s", o->name, k->configs.at[i].key);
}

/* `deploy/time-slicing.yaml` gives `time-slicing`. */
static const char *file_stem(struct bh_kube *k, uint32_t file)
{
    for (size_t i = 0; i < k->files.n; i++) {
        const char *path = k->files.at[i].path, *slash = strrchr(path, '/');
        if (k->files.at[i].file != file)
            continue;
        path = slash ? slash + 1 : path;
        const char *dot = strrchr(path, '.');
        return dot && dot > path ? bh_arena_strn(&k->arena, path, (size_t)(dot - path)) : path;
    }
    return "device-plugin";
}

/* A key of a device-plugin ConfigMap that a node, or the operator for all others, asks for. */
static void choose_plugin(struct bh_kube *k, const char *key, struct bh_pos pos)
{
    const char *name = bh_kube_keep(k, key);
    if (bh_map_add(&k->plugin_choices, name, (uint32_t)k->plugin_asked.n) == BH_MAP_NONE)
        *bh_vec_push(&k->plugin_asked) = (struct bh_text){name, pos};
}

/* What the operator passes on: the strategy, the default layout, and which ConfigMap it means. */
static void read_cluster_policy(struct bh_kube *k, const struct bh_kube_object *o)
{
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *config = bh_node_path(o->root, "spec", "devicePlugin", "config", "name", NULL);
    const char *layout = bh_node_text(bh_node_path(o->root, "spec", "migManager", "config", "default", NULL));
    const char *name = bh_node_text(config);

    set_strategy(k, &at, bh_node_path(o->root, "spec", "mig", "strategy", NULL));
    if (layout && *layout)
        bh_kube_choose_mig(k, layout, NULL, bh_kube_pos(&at, o->root));
    const struct bh_node *chosen = bh_node_path(o->root, "spec", "devicePlugin", "config", "default", NULL);
    if (bh_node_text(chosen) && chosen->n > 0)
        choose_plugin(k, chosen->u.text, bh_kube_pos(&at, chosen));
    if (!name || !*name)
        return;
    for (size_t i = 0; i < k->objects.n; i++)
        if (strcmp(k->objects.at[i].kind, "ConfigMap") == 0 && strcmp(k->objects.at[i].name, name) == 0)
            return;
    bh_diag_note_once(k->d, bh_kube_pos(&at, config),
                      "ConfigMap `%.100s` of the ClusterPolicy is not among the files; "
                      "what it shares is not judged",
                      name);
}

static void read_node(struct bh_kube *k, const struct bh_kube_object *o)
{
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *metadata = bh_node_get(o->root, "metadata"), *n = NULL;
    const char *config = bh_kube_annotation(metadata, "nvidia.com/mig.config", &n);
    if (config && *config)
        bh_kube_choose_mig(k, config, bh_kube_annotation(metadata, "nvidia.com/gpu.product", NULL),
                           bh_kube_pos(&at, n));
    if (bh_kube_annotation(metadata, "nvidia.com/mig.strategy", &n))
        set_strategy(k, &at, n);
    config = bh_kube_annotation(metadata, "nvidia.com/device-plugin.config", &n);
    if (config && *config)
        choose_plugin(k, config, bh_kube_pos(&at, n));
}

static void name_bare_files(struct bh_kube *k)
{
    for (size_t i = 0; i < k->configs.n; i++) {
        struct bh_kube_config *c = &k->configs.at[i];
        c->name = file_stem(k, c->place.file);
        c->object = bh_arena_printf(&k->p->arena, "file/%s", c->name);
    }
}

void bh_kube_find_configs(struct bh_kube *k)
{
    name_bare_files(k); /* so far there are no others */
    for (size_t i = 0; i < k->objects.n; i++) {
        const struct bh_kube_object *o = &k->objects.at[i];
        struct bh_kube_place at = bh_kube_place_of(o);
        const struct bh_node *data = NULL;
        if (strcmp(o->kind, "ConfigMap") == 0)
            data = bh_kube_child(k, &at, o->root, "data", BH_NODE_MAP);
        else if (strcmp(o->kind, "ClusterPolicy") == 0)
            data = bh_node_path(o->root, "spec", "devicePlugin", "config", "data", NULL);
        if (data && data->kind == BH_NODE_MAP)
            find_in_data(k, o, data);
    }
    /* what the plugin itself is told outranks what the operator says, and that a node's label */
    for (size_t i = 0; i < k->configs.n; i++)
        set_strategy(k, &k->configs.at[i].place,
                     bh_node_path(k->configs.at[i].root, "flags", "migStrategy", NULL));
    for (size_t i = 0; i < k->objects.n; i++)
        if (strcmp(k->objects.at[i].kind, "ClusterPolicy") == 0)
            read_cluster_policy(k, &k->objects.at[i]);
    for (size_t i = 0; i < k->objects.n; i++)
        if (strcmp(k->objects.at[i].kind, "Node") == 0)
            read_node(k, &k->objects.at[i]);
}

static bool is_mig(const struct bh_kube_config *c)
{
    return bh_node_get(c->root, "mig-configs") != NULL;
}

static bool is_chosen(const struct bh_kube *k, const struct bh_kube_config *c)
{
    return c->key && bh_map_find(&k->plugin_choices, c->key) != BH_MAP_NONE;
}

/* Where nodes ask for some keys of a ConfigMap, the others are not in use. Configurations of one map are neighbours. */
static void drop_unchosen(struct bh_kube *k)
{
    for (size_t i = 0, end; i < k->configs.n; i = end) {
        struct bh_kube_config *c = k->configs.at;
        bool any = false;
        for (end = i; end < k->configs.n && c[end].map == c[i].map; end++)
            any = any || (!is_mig(&c[end]) && is_chosen(k, &c[end]));
        for (size_t n = i; c[i].map && any && n < end; n++) {
            c[n].idle = !is_mig(&c[n]) && !is_chosen(k, &c[n]);
            if (c[n].idle)
                bh_diag_note(k->d, c[n].pos, "`%.100s` is chosen by no Node, so it is not judged", c[n].key);
        }
    }
}

/* A label that leads nowhere leaves the plugin without a configuration, which is worth knowing. */
static void note_unknown_keys(struct bh_kube *k)
{
    struct bh_map keys = {0};
    bool any = false;
    for (size_t i = 0; i < k->configs.n; i++)
        if (k->configs.at[i].key && !is_mig(&k->configs.at[i])) {
            bh_map_add(&keys, k->configs.at[i].key, 0);
            any = true;
        }
    for (size_t i = 0; any && i < k->plugin_asked.n; i++)
        if (bh_map_find(&keys, k->plugin_asked.at[i].s) == BH_MAP_NONE)
            bh_diag_note_once(
                k->d, k->plugin_asked.at[i].pos,
                "device plugin configuration `%.100s` is asked for, but no ConfigMap among the files "
                "has it",
                k->plugin_asked.at[i].s);
    bh_map_fini(&keys);
}

void bh_kube_read_configs(struct bh_kube *k)
{
    drop_unchosen(k);
    for (size_t i = 0; i < k->configs.n; i++)
        if (!is_mig(&k->configs.at[i]) && !k->configs.at[i].idle)
            read_plugin(k, &k->configs.at[i]);
    for (size_t i = 0; i < k->configs.n; i++)
        if (is_mig(&k->configs.at[i]))
            bh_kube_read_mig(k, &k->configs.at[i]);
    note_unknown_keys(k);
    bh_kube_note_unknown_layouts(k);
}
