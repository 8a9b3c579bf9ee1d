/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/openb.h"

#include "replay/table.h"

#include <inttypes.h>
#include <string.h>

enum { CPU_MILLI_MAX = 1 << 30 };
#define MEM_MIB_MAX ((uint64_t)1 << 40)

enum { NODE_NAME, NODE_CPU, NODE_MEM, NODE_GPU, NODE_MODEL, NODE_COLUMNS };
static const char *const node_columns[NODE_COLUMNS] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};

enum { POD_NAME, POD_CPU, POD_MEM, POD_GPUS, POD_MILLI, POD_NEEDED, POD_SPEC = POD_NEEDED, POD_COLUMNS };
static const char *const pod_columns[POD_COLUMNS] = {"name",    "cpu_milli", "memory_mib",
                                                     "num_gpu", "gpu_milli", "gpu_spec"};

void bh_openb_fini(struct bh_openb *o)
{
    bh_vec_fini(&o->nodes);
    bh_vec_fini(&o->pods);
    bh_arena_fini(&o->arena);
    *o = (struct bh_openb){0};
}

int bh_openb_model(struct bh_openb *o, const char *name, size_t n)
{
    for (uint32_t i = 0; i < o->n_models; i++)
        if (strlen(o->models[i]) == n && memcmp(o->models[i], name, n) == 0)
            return (int)i;
    if (o->n_models == BH_OPENB_MODELS)
        return -1;
    o->models[o->n_models] = bh_arena_strn(&o->arena, name, n);
    return (int)o->n_models++;
}

static int read_model(struct bh_openb *o, const struct bh_table *t, uint32_t cell, struct bh_cell c,
                      uint32_t *ret, struct bh_err *err)
{
    int model = bh_openb_model(o, c.at, c.n);
    if (model < 0)
        return bh_table_fail(t, cell, err, "needs at most %d different models, '%.*s' is one more",
                             BH_OPENB_MODELS, (int)c.n, c.at);
    *ret = (uint32_t)model;
    return BH_OK;
}

/* The columns at[0..n) of the row as numbers. */
struct number {
    uint32_t cell;
    const char *name;
    uint64_t max;
};
static int read_numbers(const struct bh_table *t, const struct number *at, size_t n, uint64_t *ret,
                        struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; i < n && rc == BH_OK; i++)
        rc = bh_table_uint(t, at[i].cell, at[i].name, 0, at[i].max, &ret[i], err);
    return rc;
}

/* Rows until the end, each by `row`; `what` and `max` say how many there may be. */
typedef int (*row_fn)(struct bh_openb *o, const struct bh_table *t, const uint32_t *place,
                      struct bh_err *err);
static int read_rows(struct bh_openb *o, struct bh_table *t, const char *const *columns, size_t n_columns,
                     size_t n_needed, row_fn row, struct bh_err *err)
{
    uint32_t place[POD_COLUMNS];
    int rc = bh_table_next(t, err);
    if (rc == 0)
        return bh_fail(err, BH_INVALID, "%.120s:1:1: needs a row of names (%s, %s, ...), is empty", t->file,
                       columns[0], columns[1]);
    if (rc > 0)
        rc = bh_table_header(t, columns, n_columns, n_needed, place, err);
    while (rc >= 0 && (rc = bh_table_next(t, err)) > 0)
        rc = row(o, t, place, err);
    return rc;
}

static int read_node(struct bh_openb *o, const struct bh_table *t, const uint32_t *place, struct bh_err *err)
{
    const struct number numbers[] = {
        {place[NODE_CPU], "cpu_milli", CPU_MILLI_MAX},
        {place[NODE_MEM], "memory_mib", MEM_MIB_MAX},
        {place[NODE_GPU], "gpu", BH_OPENB_NODE_GPUS},
    };
    struct bh_openb_node node = {0};
    struct bh_cell name, model;
    uint64_t v[3] = {0};
    int rc = bh_table_name(t, place[NODE_NAME], "sn", &name, err);
    if (rc == BH_OK)
        rc = read_numbers(t, numbers, BH_COUNT_OF(numbers), v, err);
    if (rc == BH_OK && v[2])
        rc = bh_table_name(t, place[NODE_MODEL], "model", &model, err);
    if (rc == BH_OK && v[2])
        rc = read_model(o, t, place[NODE_MODEL], model, &node.model, err);
    if (rc == BH_OK && o->nodes.n == BH_OPENB_NODES)
        rc = bh_table_fail(t, 0, err, "needs at most %d nodes, this is one more", BH_OPENB_NODES);
    if (rc < 0)
        return rc;
    node.name = bh_arena_strn(&o->arena, name.at, name.n);
    node.cpu_milli = (uint32_t)v[0];
    node.mem_mib = v[1];
    node.n_gpus = (uint32_t)v[2];
    *bh_vec_push(&o->nodes) = node;
    return BH_OK;
}

int bh_openb_read_nodes(struct bh_openb *o, const char *file, const char *text, size_t n, struct bh_err *err)
{
    struct bh_table t;
    bh_table_open(&t, file, text, n, ',');
    int rc = read_rows(o, &t, node_columns, NODE_COLUMNS, NODE_COLUMNS, read_node, err);
    if (rc == BH_OK && bh_openb_gpus(o) == 0)
        return bh_fail(err, BH_INVALID,
                       "%.120s:%" PRIu32 ":1: needs a node with a GPU, has %zu nodes without", file, t.line,
                       o->nodes.n);
    return rc;
}

/* `V100M16|V100M32` as a mask. */
static int read_spec(struct bh_openb *o, const struct bh_table *t, uint32_t cell, uint64_t *ret,
                     struct bh_err *err)
{
    struct bh_cell spec = bh_table_cell(t, cell);
    *ret = 0;
    if (cell == BH_TABLE_NOWHERE || spec.n == 0)
        return BH_OK;
    int rc = bh_table_name(t, cell, "gpu_spec", &spec, err);
    while (rc == BH_OK && spec.n) {
        const char *bar = memchr(spec.at, '|', spec.n);
        struct bh_cell one = {spec.at, bar ? (size_t)(bar - spec.at) : spec.n};
        uint32_t model = 0;
        if (one.n == 0)
            return bh_table_fail(t, cell, err, "gpu_spec needs a model between bars, has none");
        rc = read_model(o, t, cell, one, &model, err);
        if (rc == BH_OK)
            *ret |= UINT64_C(1) << model;
        spec = (struct bh_cell){one.at + one.n + (bar != NULL), spec.n - one.n - (bar != NULL)};
    }
    return rc;
}

static int check_gpus(const struct bh_table *t, const uint32_t *place, uint64_t n_gpus, uint64_t milli,
                      struct bh_err *err)
{
    if (n_gpus == 0 && milli)
        return bh_table_fail(t, place[POD_MILLI], err,
                             "gpu_milli needs 0 without GPUs (num_gpu), is '%" PRIu64 "'", milli);
    if (n_gpus && milli == 0)
        return bh_table_fail(t, place[POD_MILLI], err,
                             "gpu_milli needs 1 to 1000 with GPUs (num_gpu), is '0'");
    return BH_OK;
}

static int read_pod(struct bh_openb *o, const struct bh_table *t, const uint32_t *place, struct bh_err *err)
{
    const struct number numbers[] = {
        {place[POD_CPU], "cpu_milli", CPU_MILLI_MAX},
        {place[POD_MEM], "memory_mib", MEM_MIB_MAX},
        {place[POD_GPUS], "num_gpu", BH_OPENB_NODE_GPUS},
        {place[POD_MILLI], "gpu_milli", 1000},
    };
    struct bh_openb_pod pod = {0};
    struct bh_cell name;
    uint64_t v[4] = {0};
    int rc = bh_table_name(t, place[POD_NAME], "name", &name, err);
    if (rc == BH_OK)
        rc = read_numbers(t, numbers, BH_COUNT_OF(numbers), v, err);
    if (rc == BH_OK)
        rc = check_gpus(t, place, v[2], v[3], err);
    if (rc == BH_OK)
        rc = read_spec(o, t, place[POD_SPEC], &pod.models, err);
    if (rc == BH_OK && o->pods.n == BH_OPENB_PODS)
        rc = bh_table_fail(t, 0, err, "needs at most %d pods, this is one more", BH_OPENB_PODS);
    if (rc < 0)
        return rc;
    pod.name = bh_arena_strn(&o->arena, name.at, name.n);
    pod.cpu_milli = (uint32_t)v[0];
    pod.mem_mib = v[1];
    pod.n_gpus = (uint8_t)v[2];
    pod.gpu_milli = (uint16_t)v[3];
    *bh_vec_push(&o->pods) = pod;
    return BH_OK;
}

int bh_openb_read_pods(struct bh_openb *o, const char *file, const char *text, size_t n, struct bh_err *err)
{
    struct bh_table t;
    bh_table_open(&t, file, text, n, ',');
    int rc = read_rows(o, &t, pod_columns, POD_COLUMNS, POD_NEEDED, read_pod, err);
    if (rc == BH_OK && bh_openb_demand_milli(o) == 0)
        return bh_fail(err, BH_INVALID,
                       "%.120s:%" PRIu32 ":1: needs a pod that asks for a GPU, has %zu that do not", file,
                       t.line, o->pods.n);
    return rc;
}

uint64_t bh_openb_gpus(const struct bh_openb *o)
{
    uint64_t n = 0;
    for (size_t i = 0; i < o->nodes.n; i++)
        n += o->nodes.at[i].n_gpus;
    return n;
}

uint64_t bh_openb_demand_milli(const struct bh_openb *o)
{
    uint64_t milli = 0;
    for (size_t i = 0; i < o->pods.n; i++)
        milli += (uint64_t)o->pods.at[i].gpu_milli * o->pods.at[i].n_gpus;
    return milli;
}

void bh_openb_write_nodes(const struct bh_openb *o, struct bh_buf *out)
{
    bh_buf_str(out, "sn,cpu_milli,memory_mib,gpu,model\n");
    for (size_t i = 0; i < o->nodes.n; i++) {
        const struct bh_openb_node *x = &o->nodes.at[i];
        bh_buf_printf(out, "%s,%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%s\n", x->name, x->cpu_milli, x->mem_mib,
                      x->n_gpus, x->n_gpus ? o->models[x->model] : "");
    }
}

void bh_openb_write_pods(const struct bh_openb *o, struct bh_buf *out)
{
    bh_buf_str(out, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n");
    for (size_t i = 0; i < o->pods.n; i++) {
        const struct bh_openb_pod *p = &o->pods.at[i];
        const char *bar = "";
        bh_buf_printf(out, "%s,%" PRIu32 ",%" PRIu64 ",%d,%d,", p->name, p->cpu_milli, p->mem_mib, p->n_gpus,
                      p->gpu_milli);
        for (uint32_t m = 0; m < o->n_models; m++)
            if (p->models >> m & 1) {
                bh_buf_printf(out, "%s%s", bar, o->models[m]);
                bar = "|";
            }
        bh_buf_str(out, "\n");
    }
}
