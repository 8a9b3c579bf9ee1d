/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/starter.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "core/model/vocab.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ROWS_MAX = BH_N_STARTER_WORK,
    MODEL_NAME_MAX = 63,
    MIN_CAP_GIB = 1,
    UNKNOWN_CAP_GIB = 4, /* a quarter of the smallest data-centre GPU that is still about */
};

/* One kind of work: who does it, on what, and where. */
struct row {
    enum bh_starter_work work;
    enum bh_mechanism mechanism; /* gate stands for a fraction that it backs */
    bool vm, outside;            /* outside: run by partners or customers */
    bool hard_slo, regulated;
    bool own_class; /* the built-in class does not take this combination */
    uint32_t first_node, n_nodes, first_gpu, n_gpus;
};

struct draft {
    const struct bh_starter *s;
    const struct bh_gpu_model *model;                /* NULL: not in the catalogue */
    const struct bh_mig_profile *slice, *vgpu_slice; /* NULL: no MIG */
    struct row rows[ROWS_MAX];
    size_t n;
    uint32_t total_nodes; /* what the rows take; may be more than there are */
    struct bh_buf *out;
};

static const struct {
    const char *name, *what;
} works[BH_N_STARTER_WORK] = {
    [BH_STARTER_TRAINING] = {"training", "long jobs that need GPUs for themselves"},
    [BH_STARTER_SERVING] = {"serving", "answers users and must not slow down"},
    [BH_STARTER_RESEARCH] = {"research", "notebooks and experiments that come and go"},
    [BH_STARTER_BATCH] = {"batch", "fills what is idle and gives it back at once"},
};

/* ---- deciding ---- */

/* The smallest slice, cut as often as it fits: the common case, and the easiest to change. */
static const struct bh_mig_profile *smallest_slice(const struct bh_gpu_model *m, bool gfx)
{
    for (size_t i = 0; m && i < m->n_profiles; i++) {
        if (m->profiles[i].media == BH_MEDIA_PLAIN && m->profiles[i].gfx == gfx)
            return &m->profiles[i];
    }
    return NULL;
}

/* The first kind carries the promise: serving where there is any, since that is what people promise for. */
static enum bh_starter_work leading_work(uint32_t work)
{
    if (work >> BH_STARTER_SERVING & 1)
        return BH_STARTER_SERVING;
    enum bh_starter_work w = BH_STARTER_TRAINING;
    while (!(work >> w & 1))
        w = (enum bh_starter_work)(w + 1);
    return w;
}

static void decide_mechanism(struct row *r, const struct draft *d)
{
    bool strong = r->outside || r->hard_slo || r->regulated;
    const struct bh_mig_profile *slice = r->vm ? d->vgpu_slice : d->slice;

    if (r->work == BH_STARTER_TRAINING)
        r->mechanism = BH_MECH_WHOLE;
    else if (r->work != BH_STARTER_SERVING && !strong)
        r->mechanism = BH_MECH_GATE;
    else if (!slice)
        r->mechanism = BH_MECH_WHOLE;
    else
        r->mechanism = r->vm ? BH_MECH_MIG_VGPU : BH_MECH_MIG;
    r->own_class = strong && (r->work == BH_STARTER_RESEARCH || r->work == BH_STARTER_BATCH);
}

static void add_row(struct draft *d, enum bh_starter_work work, bool leads)
{
    struct row *r = &d->rows[d->n++];
    *r = (struct row){.work = work};
    if (leads) {
        r->outside = d->s->who != BH_STARTER_TEAMS;
        r->hard_slo = d->s->promise == BH_STARTER_HARD_SLO;
        r->regulated = d->s->regimes != 0;
        r->vm = r->outside || r->regulated;
    }
    decide_mechanism(r, d);
}

static size_t tenant_count(const struct draft *d, const struct row *r)
{
    return r->outside && d->s->who == BH_STARTER_CUSTOMERS ? 2 : 1;
}

/* Part i of n when `total` is dealt out as evenly as it goes. */
static void deal(uint32_t total, uint32_t n, uint32_t i, uint32_t *ret_first, uint32_t *ret_n)
{
    *ret_first = (uint32_t)((uint64_t)total * i / n);
    *ret_n = (uint32_t)((uint64_t)total * (i + 1) / n) - *ret_first;
}

/* Rows that trust each other share `nodes` from `first` on: by node, else by GPU. Returns how many. */
static uint32_t place_rows(struct draft *d, size_t first_row, uint32_t first, uint32_t nodes)
{
    uint32_t k = (uint32_t)(d->n - first_row), gpus = d->s->gpus_per_node;
    bool by_gpu = nodes < k && gpus >= k;

    if (nodes < k && !by_gpu)
        nodes = k;
    for (uint32_t i = 0; i < k; i++) {
        struct row *r = &d->rows[first_row + i];
        deal(by_gpu ? gpus : nodes, k, i, by_gpu ? &r->first_gpu : &r->first_node,
             by_gpu ? &r->n_gpus : &r->n_nodes);
        if (by_gpu)
            r->n_nodes = nodes;
        else
            r->n_gpus = gpus;
        r->first_node += first;
    }
    return nodes;
}

/* Those who do not trust each other never share a node: outsiders stand first, on nodes of their own. */
static void place(struct draft *d)
{
    struct row *lead = &d->rows[0];
    size_t outside = lead->outside ? 1 : 0;
    uint32_t taken = 0, nodes = d->s->nodes, gpus = d->s->gpus_per_node;

    if (outside) {
        /* Whole GPUs are handed out whole: everybody needs at least that. */
        uint32_t least = lead->mechanism == BH_MECH_WHOLE && gpus < tenant_count(d, lead) ? 2 : 1;
        taken = nodes / (uint32_t)d->n > least ? nodes / (uint32_t)d->n : least;
        lead->n_nodes = taken;
        lead->n_gpus = gpus;
    }
    if (outside < d->n)
        taken += place_rows(d, outside, taken, nodes > taken ? nodes - taken : 1);
    d->total_nodes = taken;
}

/* ---- writing ---- */

static const char *node_names(const struct draft *d, uint32_t first, uint32_t n, char *text, size_t size)
{
    int width = d->total_nodes > 999 ? 4 : d->total_nodes > 99 ? 3 : 2;
    if (n == 1)
        (void)snprintf(text, size, "gpu-%0*" PRIu32, width, first + 1);
    else
        (void)snprintf(text, size, "gpu-[%0*" PRIu32 "-%0*" PRIu32 "]", width, first + 1, width, first + n);
    return text;
}

static const char *tenant_name(const struct draft *d, const struct row *r, size_t i, char *text, size_t size)
{
    if (!r->outside)
        (void)snprintf(text, size, "%s-team", works[r->work].name);
    else
        (void)snprintf(text, size, "%s-%c", d->s->who == BH_STARTER_CUSTOMERS ? "customer" : "partner",
                       (char)('a' + i));
    return text;
}

static const char *class_of(const struct row *r)
{
    return r->own_class ? "guaranteed" : works[r->work].name;
}

static bool is_shared_by_turns(const struct row *r)
{
    return r->mechanism == BH_MECH_GATE;
}

/* A remark is made where a reader meets the line first, and not again. */
static const char *remark(bool first, const char *text)
{
    return first ? text : "";
}

static void write_head(const struct draft *d)
{
    char names[48];
    struct bh_buf *o = d->out;
    bh_buf_str(o, "# A Bulkhead policy: who shares the GPUs, on which silicon, behind which wall,\n"
                  "# and what they were promised.\n"
                  "# Change the names and numbers to yours, then ask what it means:\n"
                  "#   bulkhead lint FILE            are the promises ones the silicon can keep?\n"
                  "#   bulkhead plan FILE            what would keep each promise at the least cost?\n"
                  "#   bulkhead explain BH-020       why a rule exists, and how to satisfy it\n");
    if (!d->model)
        bh_buf_str(o, "#\n# The catalogue does not know this GPU model:\n"
                      "# nothing is assumed about how it can be partitioned.\n");
    if (d->total_nodes > d->s->nodes) {
        bh_buf_printf(
            o,
            "#\n# NOT YET POSSIBLE as it stands: this takes %" PRIu32 " nodes and there are %" PRIu32
            ". Work of people who do not trust\n"
            "# each other never shares a node, and every kind of work needs GPUs of its own. Missing: %s.\n"
            "# Add nodes, or take out a pool and its tenant below.\n",
            d->total_nodes, d->s->nodes,
            node_names(d, d->s->nodes, d->total_nodes - d->s->nodes, names, sizeof(names)));
    }
    bh_buf_str(o, "\nbulkhead: 1 # the version of this language\n\n");
}

static void write_slo(const struct draft *d, const struct row *r)
{
    struct bh_buf *o = d->out;
    /* A target share is promised to whoever shares, and to the kind of work that was asked about. */
    bool asked = r == &d->rows[0] || is_shared_by_turns(r);
    bool soft = !r->hard_slo && asked && d->s->promise != BH_STARTER_NOTHING;
    if (r->hard_slo)
        bh_buf_str(o, "    slo: {kind: hard, metric: p99, target: 100ms} # a guarantee: "
                      "only silicon of its own can keep it\n");
    else if (soft)
        bh_buf_str(o, "    slo: {kind: soft, metric: share} # a target, "
                      "with what happens under contention said below\n");
    else
        bh_buf_str(o, "    slo: {kind: none} # nothing is promised; `soft` or `hard` would be a promise\n");
    if (soft || is_shared_by_turns(r))
        bh_buf_str(o, "    share: {target: 25%, "
                      "underContention: \"proportional to weight; the newest work waits\"}\n");
}

static void write_quota(const struct draft *d, const struct row *r, bool first)
{
    /* The pool's capacity, dealt out evenly: never more than is there, and whole GPUs stay whole. */
    uint64_t total = (uint64_t)r->n_nodes * r->n_gpus, n = tenant_count(d, r);
    uint64_t milli = r->mechanism == BH_MECH_WHOLE ? total / n * 1000 : total * 1000 / n;
    struct bh_unit_text text;
    const char *gpus = bh_count_format(milli, &text);

    bh_buf_str(d->out, remark(first, "    # gpus: guaranteed, counted in whole GPUs; "
                                     "max: never more, even when others are idle.\n"));
    if (!is_shared_by_turns(r))
        bh_buf_printf(d->out, "    quota: {model: hard, gpus: %s, max: %s} # held for it alone, never lent\n",
                      gpus, gpus);
    else if (r->work == BH_STARTER_BATCH)
        bh_buf_printf(d->out,
                      "    quota: {model: priority, gpus: %s, max: %s, weight: 50} # in order of priority\n",
                      gpus, gpus);
    else
        bh_buf_printf(
            d->out,
            "    quota: {model: fairshare, gpus: %s, max: %s, weight: 100} # idle capacity goes round\n",
            gpus, gpus);
}

static void write_regimes(const struct draft *d)
{
    const char *comma = "";
    bh_buf_str(d->out, "    regulated: [");
    for (int i = 0; i < BH_N_regime; i++) {
        if (d->s->regimes >> i & 1) {
            bh_buf_printf(d->out, "%s%s", comma, bh_word(regime, i));
            comma = ", ";
        }
    }
    bh_buf_str(d->out, "] # needs a whole GPU or a MIG-backed vGPU, and longer audit records\n");
}

static const char *priority_of(const struct row *r)
{
    if (r->work == BH_STARTER_SERVING || r->hard_slo)
        return "high";
    return r->work == BH_STARTER_BATCH ? "low" : "normal";
}

static void write_trust(const struct draft *d, const struct row *r)
{
    const char *text = "internal # your own people; all internal tenants trust each other";
    if (r->outside && d->s->who == BH_STARTER_PARTNERS)
        text = "partner # known, and not yours: shares no kernel with anybody else";
    else if (r->outside)
        text = "external # customers distrust each other: no shared kernel, MIG at least";
    bh_buf_printf(d->out, "    trust: %s\n", text);
}

static void write_tenant(const struct draft *d, const struct row *r, size_t i, unsigned serial)
{
    char name[32];
    struct bh_buf *o = d->out;
    bool first = serial == 0;
    bh_buf_printf(o, "  - name: %s # %s\n", tenant_name(d, r, i, name, sizeof(name)), works[r->work].what);
    write_trust(d, r);
    bh_buf_printf(o, "    class: %s%s\n", class_of(r),
                  remark(first, " # which mechanisms, quota models and tiers fit together for it"));
    if (r->regulated)
        write_regimes(d);
    bh_buf_printf(o, "    costCenter: cc-%u%s\n", 1001 + serial,
                  remark(first, " # who pays; without it usage cannot be charged"));
    write_quota(d, r, first);
    write_slo(d, r);
    bh_buf_printf(o, "    priority: {ceiling: %s}%s\n", priority_of(r),
                  remark(first, " # the highest that its work may ask for"));
    bh_buf_printf(o, "    network: {policy: default-deny, rdma: none}%s\n",
                  remark(first, " # no traffic between tenants unless allowed"));
    bh_buf_printf(o, "    storage: {quota: 2TiB}%s\n",
                  remark(first, " # so that nobody fills the disks of all"));
    bh_buf_printf(o, "    images: [\"registry.example/%s/*\"]%s\n\n", name,
                  remark(first, " # what may run on the GPUs; put your registry here"));
}

static void write_tenants(const struct draft *d)
{
    unsigned serial = 0;
    bh_buf_str(d->out, "# Who shares. A tenant is a team, a partner or a customer.\ntenants:\n");
    for (size_t i = 0; i < d->n; i++) {
        for (size_t k = 0; k < tenant_count(d, &d->rows[i]); k++)
            write_tenant(d, &d->rows[i], k, serial++);
    }
}

static void write_match(const struct draft *d, const struct row *r)
{
    char names[48];
    bh_buf_printf(d->out, "    match: {model: \"%s\", nodes: \"%s\"",
                  d->model ? d->model->name : d->s->model_name,
                  node_names(d, r->first_node, r->n_nodes, names, sizeof(names)));
    if (r->n_gpus < d->s->gpus_per_node) {
        for (uint32_t i = 0; i < r->n_gpus; i++)
            bh_buf_printf(d->out, "%s%" PRIu32, i ? ", " : ", gpus: [", r->first_gpu + i);
        bh_buf_str(d->out, "]");
    }
    bh_buf_printf(d->out, "}%s\n",
                  remark(r == &d->rows[0], " # which GPUs belong to it; give your node names"));
}

static void write_slices(struct bh_buf *o, const struct bh_mig_profile *p)
{
    bh_buf_printf(o,
                  "    strategy: single # every instance alike\n"
                  "    profiles: [%s] # what may be cut\n"
                  "    layout: {%s: %u} # cut on each GPU; must fit together, and lint proves it\n",
                  p->name, p->name, (unsigned)p->max_instances);
}

static void write_caps(const struct draft *d)
{
    uint64_t gib = d->model && d->model->memory_mib ? d->model->memory_mib / 4 / 1024 : UNKNOWN_CAP_GIB;
    bh_buf_printf(d->out,
                  "    backing: gate # what holds the fraction: memory is capped at the kernel boundary\n"
                  "    caps: {memory: %" PRIu64 "GiB, compute: 25%%} # for each workload\n"
                  "    resource: nvidia.com/gpu.shared # not nvidia.com/gpu: a share must not look whole\n"
                  "    failRequestsGreaterThanOne: true # asking twice of the same GPU would buy nothing\n",
                  gib < MIN_CAP_GIB ? MIN_CAP_GIB : gib);
}

static void write_mechanism(const struct draft *d, const struct row *r)
{
    struct bh_buf *o = d->out;
    switch (r->mechanism) {
    case BH_MECH_WHOLE:
        bh_buf_str(o, "    mechanism: whole # the GPU belongs to one tenant at a time\n");
        break;
    case BH_MECH_MIG:
        bh_buf_str(o, "    mechanism: mig # hardware partitions: own SMs, L2 and memory\n");
        write_slices(o, d->slice);
        break;
    case BH_MECH_MIG_VGPU:
        bh_buf_str(o, "    mechanism: mig-vgpu # hardware partitions, each handed to a virtual machine\n");
        write_slices(o, d->vgpu_slice);
        break;
    default:
        bh_buf_str(o, "    mechanism: fractional # a part of a GPU: a unit of packing, never a boundary\n");
        write_caps(d);
        break;
    }
    bh_buf_printf(o, "    tier: %s\n",
                  r->vm ? "vm # a kernel of its own for each tenant"
                        : "container # fine among tenants that trust each other");
}

static void write_pools(const struct draft *d)
{
    char name[32];
    struct bh_buf *o = d->out;
    bh_buf_str(o, "# On which silicon and behind which wall.\npools:\n");
    for (size_t i = 0; i < d->n; i++) {
        const struct row *r = &d->rows[i];
        bh_buf_printf(o, "  - name: %s\n", works[r->work].name);
        write_match(d, r);
        write_mechanism(d, r);
        bh_buf_str(o, "    tenants: [");
        for (size_t k = 0; k < tenant_count(d, r); k++)
            bh_buf_printf(o, "%s%s", k ? ", " : "", tenant_name(d, r, k, name, sizeof(name)));
        bh_buf_printf(o, "]\n    duration: %s%s\n\n", r->work == BH_STARTER_RESEARCH ? "bursty" : "long",
                      remark(i == 0, " # long and bursty work get in each other's way: one kind to a pool"));
    }
}

static void write_class(const struct draft *d)
{
    const struct row *r = &d->rows[0];
    if (!r->own_class)
        return;
    bh_buf_printf(d->out,
                  "# A class of your own: the built-in %s class does not take this combination.\n"
                  "classes:\n"
                  "  - {name: guaranteed, mechanism: [%s], quota: hard, tier: [%s]}\n\n",
                  works[r->work].name, bh_word(mechanism, r->mechanism), r->vm ? "vm" : "container");
}

/* Work that the policy can show: checked exactly as admission would check it. */
static void write_workloads(const struct draft *d)
{
    char name[32];
    bool any = false;
    for (size_t i = 0; i < d->n; i++) {
        const struct row *r = &d->rows[i];
        if (r->work != BH_STARTER_TRAINING)
            continue;
        if (!any)
            bh_buf_str(d->out,
                       "# Optional: work to be checked exactly as admission would check it.\nworkloads:\n");
        any = true;
        bh_buf_printf(
            d->out,
            "  - name: example-training\n"
            "    tenant: %s\n"
            "    pool: training\n"
            "    gpus: %" PRIu32 "\n"
            "    gang: true # all of its GPUs or none: never a part held while waiting for the rest\n"
            "    checkpointable: true # may be interrupted and resumed\n"
            "    duration: long\n"
            "    image: registry.example/%s/train:1\n\n",
            tenant_name(d, r, 0, name, sizeof(name)), r->n_gpus, name);
    }
}

/* Six years for HIPAA, thirty months for FedRAMP, a year and a little for everybody else. */
static unsigned retention_days(uint32_t regimes)
{
    if (regimes >> BH_REGIME_HIPAA & 1)
        return 2192;
    return regimes >> BH_REGIME_FEDRAMP & 1 ? 915 : 400;
}

static void write_rest(const struct draft *d)
{
    char name[32];
    bh_buf_str(d->out,
               "# Who may do what. Nobody is operator and tenant at once.\n"
               "roles:\n"
               "  - {subject: \"group:platform\", role: operator} # changes pools, quotas and this file\n"
               "  - {subject: \"group:audit\", role: auditor} # reads everything, changes nothing\n");
    for (size_t i = 0; i < tenant_count(d, &d->rows[0]); i++) {
        (void)tenant_name(d, &d->rows[0], i, name, sizeof(name));
        bh_buf_printf(d->out, "  - {subject: \"group:%s\", role: tenant-admin, tenant: %s}\n", name, name);
    }
    bh_buf_printf(d->out,
                  "\n# What is recorded, and for how long.\n"
                  "audit: {enabled: true, retention: %ud}\n",
                  retention_days(d->s->regimes));
}

/* The name goes between quotes in a file: only what a product name is made of. */
static bool is_model_name(const char *s)
{
    size_t n = 0;
    if (!s || !*s)
        return false;
    for (; s[n]; n++) {
        if (n >= MODEL_NAME_MAX || !(bh_is_alpha(s[n]) || bh_is_digit(s[n]) || (n && strchr(" -_.+", s[n]))))
            return false;
    }
    return true;
}

static int check_answers(const struct bh_starter *s, struct bh_err *err)
{
    if (s->who > BH_STARTER_CUSTOMERS || s->promise > BH_STARTER_HARD_SLO || s->regimes >> BH_N_regime)
        return bh_fail(err, BH_INVALID, "an answer is not one of those offered");
    if (!s->work || s->work >> BH_N_STARTER_WORK)
        return bh_fail(err, BH_INVALID, "name at least one of training, serving, research, batch");
    if (!is_model_name(s->model_name))
        return bh_fail(err, BH_INVALID, "a GPU model is named by letters, digits, blanks and dashes");
    if (!s->nodes || s->nodes > BH_STARTER_NODES_MAX)
        return bh_fail(err, BH_INVALID, "from 1 to %d nodes", BH_STARTER_NODES_MAX);
    if (!s->gpus_per_node || s->gpus_per_node > BH_STARTER_GPUS_MAX)
        return bh_fail(err, BH_INVALID, "from 1 to %d GPUs on a node", BH_STARTER_GPUS_MAX);
    return BH_OK;
}

int bh_starter_write(const struct bh_starter *answers, struct bh_buf *out, struct bh_err *err)
{
    int rc = check_answers(answers, err);
    if (rc < 0)
        return rc;
    struct draft d = {.s = answers, .model = bh_catalog_find(answers->model_name), .out = out};
    d.slice = smallest_slice(d.model, false);
    /* Where a model has graphics profiles, only those carry a vGPU. */
    d.vgpu_slice = smallest_slice(d.model, true) ? smallest_slice(d.model, true) : d.slice;
    enum bh_starter_work lead = leading_work(answers->work);
    add_row(&d, lead, true);
    for (int w = 0; w < BH_N_STARTER_WORK; w++) {
        if (w != (int)lead && answers->work >> w & 1)
            add_row(&d, (enum bh_starter_work)w, false);
    }
    place(&d);
    write_head(&d);
    write_tenants(&d);
    write_pools(&d);
    write_class(&d);
    write_workloads(&d);
    write_rest(&d);
    return out->full ? bh_fail(err, BH_TOO_LARGE, "the policy does not fit into %zu bytes", out->max) : BH_OK;
}
