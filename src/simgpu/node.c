/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - simulated machines by name.
 *
 * A scene says which GPUs and what is wrong with the machine; what a part is (its name, memory, links) is told once
 * per model; everything that differs from one machine to the next comes from the seed.
 */
#include "simgpu/node.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define DRIVER     "580.159.04"
#define OLD_DRIVER "535.183.01"
#define KERNEL     "6.8.0-60-generic"
#define TOOLKIT    "1.19.1"

enum { PARTS_MAX = 3, BOARD = 8, RESERVED_PART = 144, WORD_MAX = 64 };

/* ---- parts ---- */

/* What the driver shows of a model beyond the catalogue: names and sizes as nvidia-smi prints them. */
struct part {
    const char *model, *name;
    uint16_t device;
    uint16_t links, sm; /* links: to switches; sm: where the catalogue has none */
    uint32_t mib;       /* 0: the catalogue's nominal size */
    bool grace;         /* each GPU in a PCI domain of its own, directly at its processor */
    bool cluster;       /* its switches join several machines */
};

static const struct part parts[] = {
    {"A30", "NVIDIA A30", 0x20b7, .mib = 24576},
    {"A100-40GB", "NVIDIA A100-SXM4-40GB", 0x20b0, .links = 12, .mib = 40960},
    {"A100-80GB", "NVIDIA A100-SXM4-80GB", 0x20b2, .links = 12, .mib = 81920},
    {"H100-80GB-SXM", "NVIDIA H100 80GB HBM3", 0x2330, .links = 18, .mib = 81559},
    {"H100-80GB-PCIe", "NVIDIA H100 PCIe", 0x2331, .mib = 81559},
    {"H100-94GB-NVL", "NVIDIA H100 NVL", 0x2321, .mib = 95830},
    {"H200-141GB", "NVIDIA H200", 0x2335, .links = 18, .mib = 143771},
    {"GH200-96GB", "NVIDIA GH200 480GB", 0x2342, .mib = 97871, .grace = true},
    {"GH200-144GB", "NVIDIA GH200 144G HBM3e", 0x2348, .grace = true},
    {"B200-180GB", "NVIDIA B200", 0x2901, .links = 18, .mib = 183359},
    {"GB200-186GB", "NVIDIA GB200", 0x2941, .links = 18, .mib = 189471, .grace = true, .cluster = true},
    {"RTX-PRO-6000-Blackwell-96GB", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 0x2bb5, .mib = 97887},
    {"B300-269GB", "NVIDIA B300 SXM6 AC", 0x3182, .links = 18, .sm = 148, .mib = 275040},
    {"GB300-278GB", "NVIDIA GB300", 0x31c2, .links = 18, .sm = 152, .mib = 284208, .grace = true,
     .cluster = true},
    {"L40S", "NVIDIA L40S", 0x26b9, .mib = 46068},
    {"L40", "NVIDIA L40", 0x26b5, .mib = 46068},
    {"L4", "NVIDIA L4", 0x27b8, .mib = 23034},
    {"A10", "NVIDIA A10", 0x2236, .mib = 23028},
    {"A40", "NVIDIA A40", 0x2235, .mib = 46068},
    {"T4", "Tesla T4", 0x1eb8, .mib = 15360},
    {"V100-16GB", "Tesla V100-SXM2-16GB", 0x1db1, .mib = 16384},
    {"V100-32GB", "Tesla V100-SXM2-32GB", 0x1db5, .mib = 32768},
    {"RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation", 0x26b1, .mib = 49140},
};

static const struct {
    const char *arch, *vbios;
} vbioses[] = {
    {"Volta", "88.00.98.00.02"},           {"Turing", "90.04.96.00.02"},
    {"Ampere", "92.00.9E.00.03"},          {"Ada", "95.02.66.00.02"},
    {"Hopper", "96.00.99.00.01"},          {"Blackwell", "97.00.88.00.0B"},
    {"Blackwell Ultra", "97.10.2B.00.01"},
};

/* On real boards the order of sockets is not that of PCI addresses, and who takes one for the other goes wrong. */
static const uint8_t sockets[BOARD] = {2, 4, 3, 1, 7, 5, 8, 6};
static const uint8_t buses[BOARD] = {0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf};

/* ---- scenes ---- */

enum scene_id {
    H200,
    H100X8,
    H200X8,
    A100X8,
    A30X4,
    B200X8,
    MIXED,
    TWO_DOMAINS,
    GB200X4,
    MIG,
    PARTLY_MIG,
    MANY,
    NONE,
    DRIFTED,
    DEAD,
    FAILING,
    SLOW,
    OLD,
    N_SCENES,
};

struct recipe {
    struct {
        const char *model;
        uint8_t n;
    } gpus[PARTS_MAX];
    const char *driver, *label; /* NULL: the usual driver, the name of the first GPU */
    uint32_t slow_ms, fail_every;
    uint8_t mig, mig_from; /* how many have MIG on, from which on */
    uint8_t dead, domain;  /* 1 + which is lost; GPUs in a fabric domain, 0: all */
};

const struct bh_sim_scene bh_sim_scenes[] = {
    [H200] = {"h200", "one H200"},
    [H100X8] = {"h100x8", "eight H100 behind NVSwitches"},
    [H200X8] = {"h200x8", "eight H200 behind NVSwitches"},
    [A100X8] = {"a100x8", "eight A100 80 GB behind NVSwitches"},
    [A30X4] = {"a30x4", "four A30, PCIe only"},
    [B200X8] = {"b200x8", "eight B200 behind NVSwitches"},
    [MIXED] = {"mixed", "two H100 PCIe, two A30 and an L40S"},
    [TWO_DOMAINS] = {"two-domains", "eight H200 in two fabric domains of four"},
    [GB200X4] = {"gb200x4", "four GB200 of a fabric that joins several machines"},
    [MIG] = {"mig", "four A100 80 GB with MIG on, not cut yet"},
    [PARTLY_MIG] = {"partly-mig", "eight H100, the last of them with MIG on"},
    [MANY] = {"many", "64 H100"},
    [NONE] = {"none", "a machine with the driver and no GPU"},
    [DRIFTED] = {"drifted", "broken: the node's labels speak of other GPUs, and of no MIG"},
    [DEAD] = {"dead", "broken: GPU 5 of eight H100 has fallen off the bus"},
    [FAILING] = {"failing", "broken: every tenth allocation fails"},
    [SLOW] = {"slow", "broken: every call takes 5 ms"},
    [OLD] = {"old-driver", "broken: a driver of the 535 branch"},
    [N_SCENES] = {NULL, NULL},
};

static const struct recipe recipes[N_SCENES] = {
    [H200] = {.gpus = {{"H200-141GB", 1}}},
    [H100X8] = {.gpus = {{"H100-80GB-SXM", 8}}},
    [H200X8] = {.gpus = {{"H200-141GB", 8}}},
    [A100X8] = {.gpus = {{"A100-80GB", 8}}},
    [A30X4] = {.gpus = {{"A30", 4}}},
    [B200X8] = {.gpus = {{"B200-180GB", 8}}},
    [MIXED] = {.gpus = {{"H100-80GB-PCIe", 2}, {"A30", 2}, {"L40S", 1}}},
    [TWO_DOMAINS] = {.gpus = {{"H200-141GB", 8}}, .domain = 4},
    [GB200X4] = {.gpus = {{"GB200-186GB", 4}}},
    [MIG] = {.gpus = {{"A100-80GB", 4}}, .mig = 4},
    [PARTLY_MIG] = {.gpus = {{"H100-80GB-SXM", 8}}, .mig = 1, .mig_from = 7},
    [MANY] = {.gpus = {{"H100-80GB-SXM", 64}}},
    [NONE] = {.gpus = {{NULL, 0}}},
    [DRIFTED] = {.gpus = {{"A100-80GB", 4}}, .mig = 2, .label = "NVIDIA L40S"},
    [DEAD] = {.gpus = {{"H100-80GB-SXM", 8}}, .dead = 1 + 5},
    [FAILING] = {.gpus = {{"H100-80GB-SXM", 8}}, .fail_every = 10},
    [SLOW] = {.gpus = {{"H100-80GB-SXM", 8}}, .slow_ms = 5},
    [OLD] = {.gpus = {{"H100-80GB-SXM", 8}}, .driver = OLD_DRIVER},
};

/* ---- numbers from the seed ---- */

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *d)
{
    uint64_t z = (d->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Two scenes with the same seed are two machines, so the name goes in as well. */
static struct dice dice_of(const char *scene, uint64_t seed)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *c = scene; *c; c++)
        h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    struct dice d = {seed};
    d.state = roll(&d) ^ h;
    return d;
}

/* ---- making ---- */

static void gpu_address(struct bh_sim_gpu *g, const struct part *p, uint32_t i, uint32_t n)
{
    uint32_t domain = p->grace ? 8 + i % 2 + i / 2 * 16 : 0;
    uint32_t bus = p->grace     ? 1
                   : n <= BOARD ? buses[i]
                                : 4 * i + 3; /* three buses above each: ports and a switch */
    (void)snprintf(g->pci, sizeof(g->pci), "%04" PRIx32 ":%02" PRIx32 ":00.0", domain & 0xffff, bus & 0xff);
}

static void gpu_names(struct bh_sim_gpu *g, uint32_t i, struct dice *d)
{
    uint64_t a = roll(d), b = roll(d), c = roll(d);
    (void)snprintf(g->uuid, sizeof(g->uuid),
                   "GPU-%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, a >> 32,
                   a >> 16 & 0xffff, a & 0xfff, 0x8000 | (b >> 48 & 0x3fff), b & UINT64_C(0xffffffffffff));
    (void)snprintf(g->serial, sizeof(g->serial), "165%08" PRIu64 "%02" PRIu32, c % 100000000, i);
    for (size_t v = 0; v < BH_COUNT_OF(vbioses); v++)
        if (bh_str_eq(vbioses[v].arch, g->model->arch))
            (void)snprintf(g->vbios, sizeof(g->vbios), "%s", vbioses[v].vbios);
}

static void gpu_fill(struct bh_sim_gpu *g, const struct part *p, uint32_t i, uint32_t n, struct dice *d)
{
    g->model = bh_catalog_find(p->model);
    uint64_t mib = p->mib ? p->mib : g->model->memory_mib;
    (void)snprintf(g->name, sizeof(g->name), "%s", p->name);
    gpu_address(g, p, i, n);
    gpu_names(g, i, d);
    g->device_id = (uint32_t)p->device << 16 | 0x10de;
    g->minor = i;
    g->numa = i >= (n + 1) / 2;
    g->total_bytes = mib * BH_MIB;
    g->reserved_bytes = mib / RESERVED_PART * BH_MIB; /* some 570 MiB of an H100 */
    g->sm = p->sm ? p->sm : g->model->total_sm;
    g->links = p->links;
    g->module_id = p->links ? i / BOARD * BOARD + sockets[i % BOARD] : UINT32_MAX;
    g->switch_group = p->links ? 1 + i / BOARD : 0;
}

static const struct part *part_of(const struct bh_gpu_model *model)
{
    for (size_t i = 0; i < BH_COUNT_OF(parts); i++)
        if (bh_catalog_find(parts[i].model) == model)
            return &parts[i];
    return NULL;
}

/* GPUs with the same id and clique reach each other over NVLink, also those of other machines. */
static void join_fabric(struct bh_sim_node *node, const struct recipe *r, struct dice *d)
{
    uint8_t cluster[16] = {0};
    for (uint32_t i = 0; i < node->n_gpus; i++) {
        struct bh_sim_gpu *g = &node->gpus[i];
        const struct part *p = part_of(g->model);
        if (!r->domain && !p->cluster)
            continue;
        if (i == 0 || (r->domain && i % r->domain == 0))
            for (size_t b = 0; b < sizeof(cluster); b++)
                cluster[b] = (uint8_t)roll(d);
        if (r->domain)
            g->switch_group = 1 + i / r->domain;
        g->clique = r->domain ? g->switch_group : 32766;
        memcpy(g->cluster, cluster, sizeof(cluster));
    }
}

static void host_name(struct bh_sim_node *node)
{
    (void)snprintf(node->hostname, sizeof(node->hostname), "sim-%s", node->scene);
    for (char *c = node->hostname; *c; c++)
        *c = *c == ' ' ? '-' : bh_to_lower(*c);
}

static int make(struct bh_sim_node *ret, const struct recipe *r, const char *scene, uint64_t seed,
                struct bh_err *err)
{
    struct dice d = dice_of(scene, seed);
    uint32_t n = 0;
    memset(ret, 0, sizeof(*ret));
    (void)snprintf(ret->scene, sizeof(ret->scene), "%s", scene);
    host_name(ret);
    ret->seed = seed;
    (void)snprintf(ret->driver, sizeof(ret->driver), "%s", r->driver ? r->driver : DRIVER);
    (void)snprintf(ret->kernel, sizeof(ret->kernel), KERNEL);
    (void)snprintf(ret->toolkit, sizeof(ret->toolkit), TOOLKIT);
    ret->iommu = ret->acs = ret->secure_boot = true;
    ret->slow_ms = r->slow_ms;
    ret->fail_every = r->fail_every;
    for (size_t k = 0; k < PARTS_MAX; k++)
        ret->n_gpus += r->gpus[k].n;
    for (size_t k = 0; k < PARTS_MAX && r->gpus[k].n; k++) {
        const struct bh_gpu_model *model = bh_catalog_find(r->gpus[k].model);
        const struct part *p = model ? part_of(model) : NULL;
        if (!p)
            return bh_fail(err, BH_INVALID, "there is no simulated %s", r->gpus[k].model);
        for (uint32_t i = 0; i < r->gpus[k].n; i++, n++)
            gpu_fill(&ret->gpus[n], p, n, ret->n_gpus, &d);
    }
    join_fabric(ret, r, &d);
    for (uint32_t i = 0; i < r->mig; i++)
        ret->gpus[r->mig_from + i].mig = true;
    if (r->dead)
        ret->gpus[r->dead - 1].dead = true;
    (void)snprintf(ret->product_label, sizeof(ret->product_label), "%s",
                   r->label ? r->label : ret->gpus[0].name);
    return BH_OK;
}

/* `A30-24GBx4`: a model and how many. BH_NOT_FOUND: no such model. */
static int make_model(struct bh_sim_node *ret, const char *scene, uint64_t seed, struct bh_err *err)
{
    char model[WORD_MAX + 1], name[sizeof(ret->scene)];
    size_t len = strlen(scene), digits = 0;
    uint64_t n = 1;
    while (digits < len && bh_is_digit(scene[len - 1 - digits]))
        digits++;
    bool counted = digits && len > digits + 1 && bh_to_lower(scene[len - 1 - digits]) == 'x';
    if (counted)
        len -= digits + 1;
    if (len > WORD_MAX)
        return BH_NOT_FOUND;
    (void)snprintf(model, sizeof(model), "%.*s", (int)len, scene);
    const struct bh_gpu_model *m = *model ? bh_catalog_find(model) : NULL;
    if (!m)
        return BH_NOT_FOUND;
    if (counted && (bh_uint_parse(scene + len + 1, BH_SIM_GPUS_MAX, &n, NULL) < 0 || n == 0))
        return bh_fail(err, BH_INVALID, "'%.80s': a simulated node has 1 to %d GPUs", scene, BH_SIM_GPUS_MAX);
    struct recipe r = {.gpus = {{m->name, (uint8_t)n}}};
    (void)snprintf(name, sizeof(name), "%sx%u", m->name, (unsigned)n);
    return make(ret, &r, name, seed, err);
}

static int fail_unknown(const char *scene, struct bh_err *err)
{
    BH_VEC(const char *) names = {0};
    for (size_t i = 0; bh_sim_scenes[i].name; i++)
        *bh_vec_push(&names) = bh_sim_scenes[i].name;
    for (size_t i = 0; i < bh_catalog_count(); i++)
        *bh_vec_push(&names) = bh_catalog_at(i)->name;
    const char *nearest = bh_str_nearest(scene, names.at, names.n);
    int rc =
        nearest ? bh_fail(err, BH_NOT_FOUND, "no simulated node '%.80s'; did you mean '%s'?", scene, nearest)
                : bh_fail(err, BH_NOT_FOUND,
                          "no simulated node '%.80s'; a scene such as '%s', or a model and how many: 'A30x4'",
                          scene, bh_sim_scenes[H100X8].name);
    bh_vec_fini(&names);
    return rc;
}

int bh_sim_node_make(struct bh_sim_node *ret, const char *scene, uint64_t seed, struct bh_err *err)
{
    for (size_t i = 0; i < N_SCENES; i++)
        if (bh_str_eq(bh_sim_scenes[i].name, scene))
            return make(ret, &recipes[i], scene, seed, err);
    int rc = make_model(ret, scene, seed, err);
    return rc == BH_NOT_FOUND ? fail_unknown(scene, err) : rc;
}
