/* SPDX-License-Identifier: Apache-2.0 */
/* scenario_file.c - tables of what may stand in a scenario, and the walk through one. */
#include "cli/scenario_file.h"

#include "conf/bind.h"

enum { NODE_GPUS = 16, NODES_MAX = 20000, MEMBERS_MAX = 4096, WEIGHT_MAX = 65535, PRIORITY_MAX = 1000000 };
#define AMOUNT_MAX (UINT64_C(1) << 40) /* thousandths */

static const struct bh_field node_fields[] = {
    {BH_FIELD("name", LABEL, struct bh_scenario_node, name), .required = true},
    {BH_FIELD("model", TEXT, struct bh_scenario_node, model), .required = true},
    {BH_FIELD("gpus", UINT, struct bh_scenario_node, gpus), .required = true, .max = NODE_GPUS},
    {BH_FIELD("count", UINT, struct bh_scenario_node, count), .min = 1, .max = NODES_MAX},
    {BH_FIELD("rack", LABEL, struct bh_scenario_node, rack)},
    {BH_FIELD("link", LABEL, struct bh_scenario_node, link)},
    {BH_FIELD("cpu", COUNT, struct bh_scenario_node, cpu_milli), .max = UINT32_MAX},
    {BH_FIELD("memory", SIZE, struct bh_scenario_node, memory_bytes)},
};
BH_TABLE(node_table, node_fields);

static const struct bh_field queue_fields[] = {
    {BH_FIELD("name", LABEL, struct bh_scenario_queue, name), .required = true},
    {BH_FIELD("parent", LABEL, struct bh_scenario_queue, parent)},
    {BH_FIELD("guarantee", COUNT, struct bh_scenario_queue, guarantee_milli), .max = AMOUNT_MAX},
    {BH_FIELD("deserved", COUNT, struct bh_scenario_queue, deserved_milli), .max = AMOUNT_MAX,
     BH_HAS(struct bh_scenario_queue, has_deserved)},
    {BH_FIELD("limit", COUNT, struct bh_scenario_queue, limit_milli), .max = AMOUNT_MAX,
     BH_HAS(struct bh_scenario_queue, has_limit)},
    {BH_FIELD("weight", UINT, struct bh_scenario_queue, weight), .max = WEIGHT_MAX},
    {BH_FIELD("serves", BOOL, struct bh_scenario_queue, serves)},
};
BH_TABLE(queue_table, queue_fields);

static const struct bh_field job_fields[] = {
    {BH_FIELD("name", LABEL, struct bh_scenario_job, name), .required = true},
    {BH_FIELD("queue", LABEL, struct bh_scenario_job, queue), .required = true},
    {BH_FIELD("gpus", UINT, struct bh_scenario_job, gpus), .max = NODE_GPUS},
    {BH_FIELD("share", COUNT, struct bh_scenario_job, share_milli), .max = 999},
    {BH_FIELD("members", UINT, struct bh_scenario_job, members), .min = 1, .max = MEMBERS_MAX},
    {BH_FIELD("within", LABEL, struct bh_scenario_job, within)},
    {BH_FIELD("model", TEXT, struct bh_scenario_job, model)},
    {BH_FIELD("tenant", LABEL, struct bh_scenario_job, tenant)},
    {BH_FIELD("alone", BOOL, struct bh_scenario_job, alone)},
    {BH_FIELD("cpu", COUNT, struct bh_scenario_job, cpu_milli), .max = UINT32_MAX},
    {BH_FIELD("memory", SIZE, struct bh_scenario_job, memory_bytes)},
    {BH_FIELD("priority", INT, struct bh_scenario_job, priority), .max = PRIORITY_MAX},
    {BH_FIELD("firm", BOOL, struct bh_scenario_job, firm)},
    {BH_FIELD("submitted", DURATION, struct bh_scenario_job, submitted_ms)},
    {BH_FIELD("runtime", DURATION, struct bh_scenario_job, runtime_ms)},
    {BH_FIELD("minRuntime", DURATION, struct bh_scenario_job, min_runtime_ms)},
};
BH_TABLE(job_table, job_fields);

static void *add_node(struct bh_bind *b, void *base, struct bh_pos pos)
{
    struct bh_scenario_file *s = base;
    (void)b;
    struct bh_scenario_node *n = bh_vec_push(&s->nodes);
    *n = (struct bh_scenario_node){.pos = pos, .count = 1};
    return n;
}

static void *add_queue(struct bh_bind *b, void *base, struct bh_pos pos)
{
    struct bh_scenario_file *s = base;
    (void)b;
    struct bh_scenario_queue *q = bh_vec_push(&s->queues);
    *q = (struct bh_scenario_queue){.pos = pos, .weight = 1};
    return q;
}

static void *add_job(struct bh_bind *b, void *base, struct bh_pos pos)
{
    struct bh_scenario_file *s = base;
    (void)b;
    struct bh_scenario_job *j = bh_vec_push(&s->jobs);
    *j = (struct bh_scenario_job){.pos = pos, .members = 1};
    return j;
}

static const struct bh_each each_node = {"node", &node_table, add_node, NULL};
static const struct bh_each each_queue = {"queue", &queue_table, add_queue, NULL};
static const struct bh_each each_job = {"job", &job_table, add_job, NULL};

static const struct bh_field fields[] = {
    {BH_FIELD_FN("bulkhead", bh_bind_version)},
    {BH_FIELD("now", DURATION, struct bh_scenario_file, now_ms)},
    {BH_FIELD_EACH("nodes", &each_node), .required = true},
    {BH_FIELD_EACH("queues", &each_queue), .required = true},
    {BH_FIELD_EACH("jobs", &each_job), .required = true},
};
BH_TABLE(table, fields);

void bh_scenario_file_read(const char *text, size_t n, struct bh_scenario_file *ret)
{
    struct bh_tree tree = {0};
    struct bh_tree_error where;
    struct bh_bind b = {.arena = &ret->arena, .d = &ret->diags};
    if (bh_tree_parse(&tree, text, n, &where) < 0) {
        bh_diag_error(&ret->diags, (struct bh_pos){.line = where.line, .column = where.column}, "%s",
                      where.message);
        return;
    }
    const struct bh_node *root = bh_bind_root(&b, &tree, "scenario");
    if (root)
        bh_bind_map(&b, &table, root, ret);
    bh_tree_fini(&tree);
}

void bh_scenario_file_fini(struct bh_scenario_file *f)
{
    bh_vec_fini(&f->nodes);
    bh_vec_fini(&f->queues);
    bh_vec_fini(&f->jobs);
    bh_diags_fini(&f->diags);
    bh_arena_fini(&f->arena);
}
