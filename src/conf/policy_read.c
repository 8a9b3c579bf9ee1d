/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_read.c - the policy language as tables, and the few keys that tables cannot say.
 *
 * What a name refers to is not looked up here: bh_policy_link does that once everything
 * is read. Positions below an element (slo.pos, mechanism_pos, ...) are those of the key.
 */
#include "base/str.h"
#include "base/units.h"
#include "conf/bind.h"
#include "conf/read.h"
#include "conf/stated.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT_MAX  UINT64_C(10000000000) /* ten million, in thousandths: no sum of them can overflow */
#define MEMORY_MAX (BH_GIB << 20)
enum {
    WEIGHT_MAX = 1000000,
    REPLICAS_MAX = 64000,
    LAYOUT_MAX = 64,
    GPU_INDEX_MAX = 1023,
    ASSIGNED_MAX = 1 << 20
};
enum { STATED_WORDS_MAX = 200 };

struct reader {
    struct bh_tree *t;
    struct bh_map tenants, pools, workloads, fabrics, classes; /* name -> line */
    uint32_t scanned;                                          /* comments were looked at down to this line */
    size_t assigned_left; /* a pattern of a few bytes can name millions */
};

/* ---- names ---- */

static void unique(struct bh_bind *b, struct bh_map *names, const struct bh_node *item, const char *kind,
                   const char *name)
{
    const struct bh_node *n = bh_node_get(item, "name");
    if (!name || !n)
        return;
    uint32_t first = bh_map_add(names, name, n->line);
    if (first != BH_MAP_NONE)
        bh_diag_error(b->d, bh_bind_pos(b, n),
                      "%s '%.63s' is declared twice: on line %" PRIu32 " and on line %" PRIu32, kind, name,
                      first, n->line);
}

/* ---- patterns ---- */

/* A pattern is checked whole before any name is handed out: 0 names asks only whether it can be read. */
static void read_nodes(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_pool *p = base;
    struct bh_err err;
    bh_bind_texts(b, key, v, &p->match.nodes);
    for (size_t i = 0; i < p->match.nodes.n; i++)
        if (bh_nodes_expand(p->match.nodes.at[i].s, 0, NULL, NULL, &err) == BH_INVALID)
            bh_bind_refuse(b, key, p->match.nodes.at[i].pos, err.msg);
}

static void read_fabric_gpus(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v,
                             void *base)
{
    struct bh_fabric *f = base;
    struct bh_err err;
    bh_bind_texts(b, key, v, &f->gpus);
    for (size_t i = 0; i < f->gpus.n; i++)
        if (bh_gpus_expand(f->gpus.at[i].s, 0, NULL, NULL, &err) == BH_INVALID)
            bh_bind_refuse(b, key, f->gpus.at[i].pos, err.msg);
}

struct assigning {
    struct bh_bind *b;
    struct bh_workload *w;
    struct bh_pos pos;
};

static void assign(void *ctx, const char *node, uint32_t index)
{
    const struct assigning *a = ctx;
    *bh_vec_push(&a->w->assigned) = (struct bh_assigned){bh_arena_str(a->b->arena, node), index, a->pos};
}

static void read_assigned(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct reader *r = b->ctx;
    struct assigning a = {.b = b, .w = base};
    bh_text_vec texts = {0};
    struct bh_err err;
    bh_bind_texts(b, key, v, &texts);
    for (size_t i = 0; i < texts.n; i++) {
        size_t before = a.w->assigned.n;
        a.pos = texts.at[i].pos;
        if (bh_gpus_expand(texts.at[i].s, r->assigned_left, assign, &a, &err) < 0)
            bh_bind_refuse(b, key, a.pos, err.msg);
        r->assigned_left -= a.w->assigned.n - before;
    }
    bh_vec_fini(&texts);
}

static void add_index(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v,
                      struct bh_pool *p)
{
    uint64_t index;
    if (bh_bind_uint(b, key, v, 0, GPU_INDEX_MAX, &index))
        *bh_vec_push(&p->match.gpus) = (uint32_t)index;
}

static void read_indices(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    if (v->kind != BH_NODE_SEQ) {
        add_index(b, key, v, base);
        return;
    }
    BH_EACH_ITEM (i, v) {
        add_index(b, key, i, base);
    }
}

/* ---- maps whose keys are the user's ---- */

static void add_layout(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_pool *p = base;
    uint64_t n;
    if (bh_bind_uint(b, key, v, 1, LAYOUT_MAX, &n))
        *bh_vec_push(&p->layout) =
            (struct bh_layout_item){bh_bind_text(b, key, key), (uint32_t)n, bh_bind_pos(b, key)};
}

static void read_layout(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    bh_bind_pairs(b, key, v, "a map from profiles to how many of each", add_layout, base);
}

static void add_resource(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_tenant *t = base;
    const char *text = bh_node_text(v);
    uint64_t milli;
    if (!text || bh_count_parse(text, &milli, NULL) < 0 || milli > COUNT_MAX)
        bh_bind_need(b, key, v, "a count like 4 or 0.5");
    else
        *bh_vec_push(&t->quota.resources) =
            (struct bh_amount){bh_bind_text(b, key, key), milli, bh_bind_pos(b, key)};
}

static void read_resources(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    bh_bind_pairs(b, key, v, "a map from resource names to counts", add_resource, base);
}

static void add_env(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    struct bh_workload *w = base;
    *bh_vec_push(&w->env) = bh_bind_keyed(b, key, v);
}

static void read_env(struct bh_bind *b, const struct bh_node *key, const struct bh_node *v, void *base)
{
    bh_bind_pairs(b, key, v, "a map from variables to values", add_env, base);
}

/* ---- what the comments beside a quota claim ---- */

static uint32_t last_line(const struct bh_node *n)
{
    uint32_t line = n->line;
    for (const struct bh_node *c = n->kind == BH_NODE_SCALAR ? NULL : n->u.first; c; c = c->next) {
        uint32_t l = last_line(c);
        line = l > line ? l : line;
    }
    return line;
}

/* Words of a comment, cut where a character ends. */
static const char *cut_words(struct bh_arena *a, const char *text)
{
    size_t n = strnlen(text, STATED_WORDS_MAX);
    if (text[n])
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    return bh_arena_strn(a, text, n);
}

/*
 * The quota's own lines and the comments directly above. Each line of the file is looked at once:
 * where several quotas share a line, its comment is the first one's.
 */
static void read_stated(struct bh_bind *b, struct bh_tenant *t, const struct bh_node *quota)
{
    struct reader *r = b->ctx;
    struct bh_comment c;
    uint32_t line = t->quota.pos.line, last = last_line(quota);
    while (line > r->scanned + 1 && bh_tree_comment_find(r->t, line - 1, &c) && c.alone)
        line--;
    if (line <= r->scanned)
        line = r->scanned + 1;
    for (; line <= last; line++) {
        struct bh_stated st = {.pos = {b->file, line, 0}};
        if (!bh_tree_comment_find(r->t, line, &c) || !bh_stated_read(c.text, &st))
            continue;
        st.pos.column = c.column;
        st.words = cut_words(b->arena, c.text);
        *bh_vec_push(&t->quota.stated) = st;
    }
    if (last > r->scanned)
        r->scanned = last;
}

/* ---- tenants ---- */

static const struct bh_field quota_fields[] = {
    {BH_FIELD("model", WORD, struct bh_tenant, quota.model), .of.words = &bh_words_quota_model,
     BH_HAS(struct bh_tenant, quota.has_model)},
    {BH_FIELD("gpus", COUNT, struct bh_tenant, quota.gpus_milli), .max = COUNT_MAX,
     BH_HAS(struct bh_tenant, quota.has_gpus)},
    {BH_FIELD("memory", SIZE, struct bh_tenant, quota.memory_bytes), .min = BH_MIB, .max = MEMORY_MAX},
    {BH_FIELD_FN("resources", read_resources)},
    {BH_FIELD("max", COUNT, struct bh_tenant, quota.max_milli), .max = COUNT_MAX,
     BH_HAS(struct bh_tenant, quota.has_max)},
    {BH_FIELD("weight", UINT, struct bh_tenant, quota.weight), .max = WEIGHT_MAX},
    {BH_FIELD("borrow", BOOL, struct bh_tenant, quota.borrow)},
};
BH_TABLE(quota_table, quota_fields);

static const struct bh_field slo_fields[] = {
    {BH_FIELD("kind", WORD, struct bh_tenant, slo.kind), .of.words = &bh_words_slo_kind, .required = true},
    {BH_FIELD("metric", TEXT, struct bh_tenant, slo.metric)},
    {BH_FIELD("target", TEXT, struct bh_tenant, slo.target)},
};
BH_TABLE(slo_table, slo_fields);

static const struct bh_field share_fields[] = {
    {BH_FIELD("target", SHARE, struct bh_tenant, share.target_ppm),
     BH_HAS(struct bh_tenant, share.has_target)},
    {BH_FIELD("underContention", TEXT, struct bh_tenant, share.under_contention)},
};
BH_TABLE(share_table, share_fields);

static const struct bh_field priority_fields[] = {
    {BH_FIELD("ceiling", WORD, struct bh_tenant, priority.ceiling), .of.words = &bh_words_priority},
    {BH_FIELD("budget", DURATION, struct bh_tenant, priority.budget_ms),
     BH_HAS(struct bh_tenant, priority.has_budget)},
};
BH_TABLE(priority_table, priority_fields);

static const struct bh_field network_fields[] = {
    {BH_FIELD("policy", WORD, struct bh_tenant, network.policy), .of.words = &bh_words_net_policy},
    {BH_FIELD("rdma", WORD, struct bh_tenant, network.rdma), .of.words = &bh_words_rdma},
};
BH_TABLE(network_table, network_fields);

static const struct bh_field storage_fields[] = {
    {BH_FIELD("quota", SIZE, struct bh_tenant, storage.quota_bytes), .min = BH_MIB, .max = BH_GIB << 30},
};
BH_TABLE(storage_table, storage_fields);

/* Shorter would move memory to and fro; longer than a month is never. */
static const struct bh_field idle_fields[] = {
    {BH_FIELD("sleepAfter", DURATION, struct bh_tenant, idle.sleep_after_ms), .min = 1000,
     .max = UINT64_C(31) * 86400 * 1000},
};
BH_TABLE(idle_table, idle_fields);

/* Less could not even start a program; more is no limit. */
#define BANDWIDTH(T)                                                                           \
    {                                                                                          \
        {BH_FIELD("network", SIZE, T, bandwidth.network), .min = BH_MIB, .max = BH_GIB << 10}, \
        {BH_FIELD("disk", SIZE, T, bandwidth.disk), .min = BH_MIB, .max = BH_GIB << 10},       \
    }
static const struct bh_field tenant_bandwidth_fields[] = BANDWIDTH(struct bh_tenant);
BH_TABLE(tenant_bandwidth_table, tenant_bandwidth_fields);
static const struct bh_field class_bandwidth_fields[] = BANDWIDTH(struct bh_class);
BH_TABLE(class_bandwidth_table, class_bandwidth_fields);

static const struct bh_field tenant_fields[] = {
    {BH_FIELD("name", NAME, struct bh_tenant, name), .required = true},
    {BH_FIELD("trust", WORD, struct bh_tenant, trust), .of.words = &bh_words_trust},
    {BH_FIELD("domain", TEXT, struct bh_tenant, domain)},
    {BH_FIELD("parent", TEXT, struct bh_tenant, parent), BH_POS(struct bh_tenant, parent_pos)},
    {BH_FIELD("class", TEXT, struct bh_tenant, class_name), BH_POS(struct bh_tenant, class_pos)},
    {BH_FIELD("operatorUntrusted", BOOL, struct bh_tenant, operator_untrusted)},
    {BH_FIELD("regulated", WORDS, struct bh_tenant, regimes), .of.words = &bh_words_regime},
    {BH_FIELD("drivers", TEXTS, struct bh_tenant, drivers)},
    {BH_FIELD("site", TEXT, struct bh_tenant, site)},
    {BH_FIELD("costCenter", TEXT, struct bh_tenant, cost_center)},
    {BH_FIELD_MAP("quota", &quota_table), BH_POS(struct bh_tenant, quota.pos)},
    {BH_FIELD_MAP("slo", &slo_table), BH_POS(struct bh_tenant, slo.pos)},
    {BH_FIELD_MAP("share", &share_table), BH_POS(struct bh_tenant, share.pos)},
    {BH_FIELD_MAP("priority", &priority_table), BH_POS(struct bh_tenant, priority.pos)},
    {BH_FIELD_MAP("network", &network_table), BH_POS(struct bh_tenant, network.pos)},
    {BH_FIELD_MAP("storage", &storage_table), BH_POS(struct bh_tenant, storage.pos)},
    {BH_FIELD_MAP("idle", &idle_table), BH_POS(struct bh_tenant, idle.pos)},
    {BH_FIELD_MAP("bandwidth", &tenant_bandwidth_table), BH_POS(struct bh_tenant, bandwidth.pos)},
    {BH_FIELD("images", TEXTS, struct bh_tenant, images)},
};
BH_TABLE(tenant_table, tenant_fields);

static void *add_tenant(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_tenant *t = bh_policy_add_tenant(base);
    t->pos = pos;
    return t;
}

static void tenant_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    struct bh_tenant *t = base;
    unique(b, &r->tenants, item, "tenant", t->name);
    const struct bh_node *quota = bh_node_get(item, "quota");
    if (!quota || quota->kind != BH_NODE_MAP)
        return;
    if (t->quota.has_max && t->quota.has_gpus && t->quota.max_milli < t->quota.gpus_milli) {
        struct bh_unit_text max, gpus;
        bh_diag_error(b->d, bh_bind_pos(b, bh_node_get(quota, "max")),
                      "`max` of `quota` of tenant '%.63s' is %s, below the %s it is guaranteed",
                      t->name ? t->name : "", bh_count_format(t->quota.max_milli, &max),
                      bh_count_format(t->quota.gpus_milli, &gpus));
    }
    read_stated(b, t, quota);
}

static const struct bh_each each_tenant = {"tenant", &tenant_table, add_tenant, tenant_done};

/* ---- pools ---- */

static const struct bh_field match_fields[] = {
    {BH_FIELD("model", PLACED, struct bh_pool, match.model)},
    {BH_FIELD_FN("nodes", read_nodes)},
    {BH_FIELD_FN("gpus", read_indices)},
    {BH_FIELD("fabric", PLACED, struct bh_pool, match.fabric)},
};
BH_TABLE(match_table, match_fields);

static const struct bh_field caps_fields[] = {
    {BH_FIELD("memory", SIZE, struct bh_pool, cap_memory_bytes), .min = BH_MIB, .max = MEMORY_MAX},
    {BH_FIELD("compute", SHARE, struct bh_pool, cap_compute_ppm), .min = 1},
};
BH_TABLE(caps_table, caps_fields);

#define BIT(word) (UINT32_C(1) << (word))
#define MECHANISMS                                                                                           \
    (BIT(BH_MECH_WHOLE) | BIT(BH_MECH_MIG) | BIT(BH_MECH_MPS) | BIT(BH_MECH_TIMESLICE) | BIT(BH_MECH_VGPU) | \
     BIT(BH_MECH_MIG_VGPU) | BIT(BH_MECH_FRACTIONAL))
#define BACKINGS (BIT(BH_MECH_MIG) | BIT(BH_MECH_MPS) | BIT(BH_MECH_TIMESLICE) | BIT(BH_MECH_GATE))

static const struct bh_field pool_fields[] = {
    {BH_FIELD("name", NAME, struct bh_pool, name), .required = true},
    {BH_FIELD_MAP("match", &match_table), BH_POS(struct bh_pool, match.pos)},
    {BH_FIELD("mechanism", WORD, struct bh_pool, mechanism), .of.words = &bh_words_mechanism,
     .allow = MECHANISMS, .required = true, BH_POS(struct bh_pool, mechanism_pos)},
    {BH_FIELD("backing", WORD, struct bh_pool, backing), .of.words = &bh_words_mechanism, .allow = BACKINGS},
    {BH_FIELD("strategy", WORD, struct bh_pool, strategy), .of.words = &bh_words_strategy},
    {BH_FIELD("profiles", TEXTS, struct bh_pool, profiles)},
    {BH_FIELD_FN("layout", read_layout), BH_POS(struct bh_pool, layout_pos)},
    {BH_FIELD("tier", WORD, struct bh_pool, tier), .of.words = &bh_words_tier,
     BH_POS(struct bh_pool, tier_pos)},
    {BH_FIELD("tenants", TEXTS, struct bh_pool, tenant_names)},
    {BH_FIELD("replicas", UINT, struct bh_pool, replicas), .min = 1, .max = REPLICAS_MAX},
    {BH_FIELD_MAP("caps", &caps_table), BH_POS(struct bh_pool, caps_pos)},
    {BH_FIELD("oversubscribe", BOOL, struct bh_pool, oversubscribe)},
    {BH_FIELD("resource", TEXT, struct bh_pool, resource), BH_POS(struct bh_pool, resource_pos)},
    {BH_FIELD("failRequestsGreaterThanOne", FACT, struct bh_pool, fail_requests_greater_than_one),
     BH_POS(struct bh_pool, fail_pos)},
    {BH_FIELD("duration", WORD, struct bh_pool, pace), .of.words = &bh_words_pace},
    {BH_FIELD("drivers", TEXTS, struct bh_pool, drivers)},
    {BH_FIELD("claims", WORDS, struct bh_pool, claims), .of.words = &bh_words_claim},
    {BH_FIELD("description", TEXT, struct bh_pool, description), BH_POS(struct bh_pool, description_pos)},
};
BH_TABLE(pool_table, pool_fields);

static void *add_pool(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_pool *p = bh_policy_add_pool(base);
    p->pos = pos;
    return p;
}

/* Keys that speak for some mechanisms only. They are passed over elsewhere, which their writer should hear. */
static void note_idle_keys(struct bh_bind *b, const struct bh_node *item, const struct bh_pool *p)
{
    static const struct {
        const char *key, *only;
        uint32_t mechanisms;
    } table[] = {
        {"backing", "fractional", BIT(BH_MECH_FRACTIONAL)},
        {"strategy", "mig and mig-vgpu", BIT(BH_MECH_MIG) | BIT(BH_MECH_MIG_VGPU)},
        {"profiles", "mig and mig-vgpu", BIT(BH_MECH_MIG) | BIT(BH_MECH_MIG_VGPU)},
        {"layout", "mig and mig-vgpu", BIT(BH_MECH_MIG) | BIT(BH_MECH_MIG_VGPU)},
        {"replicas", "timeslice", BIT(BH_MECH_TIMESLICE)},
    };
    enum bh_mechanism effective = bh_pool_effective(p);
    for (size_t i = 0; i < BH_COUNT_OF(table) && p->mechanism != BH_MECH_UNSET; i++) {
        const struct bh_node *n = bh_node_get(item, table[i].key);
        if (bh_node_is_null(n) || (table[i].mechanisms & (BIT(p->mechanism) | BIT(effective))))
            continue;
        bh_diag_note(b->d, bh_bind_pos(b, n),
                     "`%s` of pool '%.63s' is passed over: it speaks for %s, not for %s", table[i].key,
                     p->name ? p->name : "", table[i].only, bh_word(mechanism, p->mechanism));
    }
}

static void pool_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    const struct bh_pool *p = base;
    unique(b, &r->pools, item, "pool", p->name);
    note_idle_keys(b, item, p);
    if (p->match.model.s && !bh_catalog_find(p->match.model.s))
        bh_diag_note_once(b->d, p->match.model.pos,
                          "`%.60s` is not in the GPU catalogue; nothing is assumed about its partitions",
                          p->match.model.s);
}

static const struct bh_each each_pool = {"pool", &pool_table, add_pool, pool_done};

/* ---- fabric ---- */

static const struct bh_field fabric_fields[] = {
    {BH_FIELD("name", LABEL, struct bh_fabric, name), .required = true},
    {BH_FIELD("kind", WORD, struct bh_fabric, kind), .of.words = &bh_words_fabric_kind},
    {BH_FIELD("mode", WORD, struct bh_fabric, mode), .of.words = &bh_words_fabric_mode},
    {BH_FIELD_FN("gpus", read_fabric_gpus)},
    {BH_FIELD("tenant", PLACED, struct bh_fabric, tenant)},
};
BH_TABLE(fabric_table, fabric_fields);

static void *add_fabric(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_policy *p = base;
    struct bh_fabric *f = bh_vec_push(&p->fabrics);
    *f = (struct bh_fabric){.pos = pos};
    return f;
}

static void fabric_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    unique(b, &r->fabrics, item, "fabric", ((const struct bh_fabric *)base)->name);
}

static const struct bh_each each_fabric = {"fabric", &fabric_table, add_fabric, fabric_done};

/* ---- workloads ---- */

static const struct bh_field workload_fields[] = {
    {BH_FIELD("name", NAME, struct bh_workload, name), .required = true},
    {BH_FIELD("tenant", PLACED, struct bh_workload, tenant_name), .required = true},
    {BH_FIELD("pool", PLACED, struct bh_workload, pool_name)},
    {BH_FIELD("gpus", COUNT, struct bh_workload, gpus_milli), .max = COUNT_MAX},
    {BH_FIELD("gang", BOOL, struct bh_workload, gang), BH_POS(struct bh_workload, gang_pos)},
    {BH_FIELD("memory", SIZE, struct bh_workload, memory_bytes), .min = BH_MIB, .max = MEMORY_MAX},
    {BH_FIELD("needsNvlink", BOOL, struct bh_workload, needs_nvlink)},
    {BH_FIELD("allowSpan", BOOL, struct bh_workload, allow_span)},
    {BH_FIELD("checkpointable", FACT, struct bh_workload, checkpointable)},
    {BH_FIELD("duration", WORD, struct bh_workload, pace), .of.words = &bh_words_pace},
    {BH_FIELD("priority", WORD, struct bh_workload, priority), .of.words = &bh_words_priority,
     BH_HAS(struct bh_workload, has_priority)},
    {BH_FIELD("deadline", INSTANT, struct bh_workload, deadline_s), BH_HAS(struct bh_workload, has_deadline)},
    {BH_FIELD("image", PLACED, struct bh_workload, image)},
    {BH_FIELD("privileged", BOOL, struct bh_workload, privileged)},
    {BH_FIELD("hostPID", BOOL, struct bh_workload, host_pid)},
    {BH_FIELD("mounts", TEXTS, struct bh_workload, mounts)},
    {BH_FIELD("devices", TEXTS, struct bh_workload, devices)},
    {BH_FIELD_FN("assigned", read_assigned)},
    {BH_FIELD_FN("env", read_env)},
};
BH_TABLE(workload_table, workload_fields);

static void *add_workload(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_workload *w = bh_policy_add_workload(base);
    w->pos = pos;
    return w;
}

static void workload_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    unique(b, &r->workloads, item, "workload", ((const struct bh_workload *)base)->name);
}

static const struct bh_each each_workload = {"workload", &workload_table, add_workload, workload_done};

/* ---- classes, roles, waivers ---- */

static const struct bh_field class_fields[] = {
    {BH_FIELD("name", NAME, struct bh_class, name), .required = true},
    {BH_FIELD("mechanism", WORDS, struct bh_class, mechanisms), .of.words = &bh_words_mechanism},
    {BH_FIELD("quota", WORDS, struct bh_class, quotas), .of.words = &bh_words_quota_model},
    {BH_FIELD("tier", WORDS, struct bh_class, tiers), .of.words = &bh_words_tier},
    {BH_FIELD("slo", WORDS, struct bh_class, slos), .of.words = &bh_words_slo_kind},
    {BH_FIELD_MAP("bandwidth", &class_bandwidth_table), BH_POS(struct bh_class, bandwidth.pos)},
};
BH_TABLE(class_table, class_fields);

static void *add_class(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_policy *p = base;
    struct bh_class *c = bh_vec_push(&p->classes);
    *c = (struct bh_class){.pos = pos};
    return c;
}

static void class_done(struct bh_bind *b, const struct bh_node *item, void *base)
{
    struct reader *r = b->ctx;
    unique(b, &r->classes, item, "class", ((const struct bh_class *)base)->name);
}

static const struct bh_each each_class = {"class", &class_table, add_class, class_done};

static const struct bh_field role_fields[] = {
    {BH_FIELD("subject", TEXT, struct bh_role_binding, subject), .required = true},
    {BH_FIELD("role", WORD, struct bh_role_binding, role), .of.words = &bh_words_role, .required = true},
    {BH_FIELD("tenant", PLACED, struct bh_role_binding, tenant)},
};
BH_TABLE(role_table, role_fields);

static void *add_role(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_policy *p = base;
    struct bh_role_binding *r = bh_vec_push(&p->roles);
    *r = (struct bh_role_binding){.pos = pos};
    return r;
}

static const struct bh_each each_role = {"role", &role_table, add_role, NULL};

/* A waiver without approver or expiry is the rules' business (BH-090), not the language's. */
static const struct bh_field waiver_fields[] = {
    {BH_FIELD("rule", TEXT, struct bh_waiver, rule), .required = true},
    {BH_FIELD("scope", TEXT, struct bh_waiver, scope)},
    {BH_FIELD("approver", TEXT, struct bh_waiver, approver)},
    {BH_FIELD("expires", DATE, struct bh_waiver, expires_day), BH_HAS(struct bh_waiver, has_expiry)},
    {BH_FIELD("reason", TEXT, struct bh_waiver, reason)},
};
BH_TABLE(waiver_table, waiver_fields);

static void *add_waiver(struct bh_bind *b, void *base, struct bh_pos pos)
{
    (void)b;
    struct bh_policy *p = base;
    struct bh_waiver *w = bh_vec_push(&p->waivers);
    *w = (struct bh_waiver){.pos = pos};
    return w;
}

static const struct bh_each each_waiver = {"waiver", &waiver_table, add_waiver, NULL};

/* ---- the file ---- */

static const struct bh_field price_fields[] = {
    {BH_FIELD("gpuHour", MONEY, struct bh_policy, prices.gpu_hour_micro)},
    {BH_FIELD("memoryGiBHour", MONEY, struct bh_policy, prices.memory_gib_hour_micro)},
    {BH_FIELD("currency", TEXT, struct bh_policy, prices.currency)},
    {BH_FIELD("borrowed", SHARE, struct bh_policy, prices.borrowed_ppm)},
};
BH_TABLE(price_table, price_fields);

static const struct bh_field audit_fields[] = {
    {BH_FIELD("enabled", BOOL, struct bh_policy, audit.enabled)},
    {BH_FIELD("retention", DURATION, struct bh_policy, audit.retention_ms)},
    {BH_FIELD("history", DURATION, struct bh_policy, audit.history_ms)},
    {BH_FIELD("exclude", TEXTS, struct bh_policy, audit.exclude)},
};
BH_TABLE(audit_table, audit_fields);

static const struct bh_field policy_fields[] = {
    {BH_FIELD_FN("bulkhead", bh_bind_version)},
    {BH_FIELD_EACH("tenants", &each_tenant)},
    {BH_FIELD_EACH("pools", &each_pool)},
    {BH_FIELD_EACH("fabric", &each_fabric)},
    {BH_FIELD_EACH("workloads", &each_workload)},
    {BH_FIELD_EACH("classes", &each_class)},
    {BH_FIELD_MAP("prices", &price_table), BH_POS(struct bh_policy, prices.pos)},
    {BH_FIELD_EACH("roles", &each_role)},
    {BH_FIELD_MAP("audit", &audit_table), BH_POS(struct bh_policy, audit.pos)},
    {BH_FIELD_EACH("waivers", &each_waiver)},
};
BH_TABLE(policy_table, policy_fields);

void bh_policy_read(struct bh_policy *p, struct bh_tree *t, uint32_t file, struct bh_diags *d)
{
    struct reader r = {.t = t, .assigned_left = ASSIGNED_MAX};
    struct bh_bind b = {.arena = &p->arena, .d = d, .file = file, .ctx = &r};
    const struct bh_node *root = bh_bind_root(&b, t, "policy");
    if (root)
        bh_bind_map(&b, &policy_table, root, p);
    bh_map_fini(&r.tenants);
    bh_map_fini(&r.pools);
    bh_map_fini(&r.workloads);
    bh_map_fini(&r.fabrics);
    bh_map_fini(&r.classes);
}
