/* SPDX-License-Identifier: Apache-2.0 */
/* survey.c - facts of the driver and of the kernel, put where the model has a place for them. */
#include "survey/survey.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "gpu/health.h"
#include "host/labels.h"

#include <inttypes.h>

enum { LABELS_MAX = 1 << 20, PROFILE_START_MAX = 15 };

/* Letters, digits, `.`, `_` and `-`, as the fleet file takes it. */
static bool is_name_char(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c) || (c && strchr("._-", c));
}

bool bh_survey_name_fits(const char *name)
{
    size_t good = 0;
    while (is_name_char(name[good]))
        good++;
    return good && !name[good] && good <= BH_SURVEY_NAME_MAX;
}

static void missing(struct bh_survey *x, const char *what, const char *why)
{
    *bh_vec_push(&x->unknown) =
        bh_arena_printf(&x->fleet.arena, "%s: not known: %s", what, why ? why : "no reason was given");
}

/* The host's name, made fit; where it is not as it was, that is said. */
static const char *host_name(struct bh_survey *x)
{
    const char *host = x->platform.hostname.text ? x->platform.hostname.text : "node";
    char *s = bh_arena_strn(&x->fleet.arena, host, strnlen(host, BH_SURVEY_NAME_MAX));
    for (char *c = s; *c; c++)
        if (!is_name_char(*c))
            *c = '-';
    if (!bh_str_eq(s, host))
        *bh_vec_push(&x->unknown) =
            "name: not the host's own, which a fleet file does not take; --name sets it";
    return s;
}

static uint8_t fact_of(struct bh_survey *x, const char *what, struct bh_platform_fact f)
{
    if (f.known == BH_KNOWN_NOT)
        missing(x, what, f.why);
    else if (f.known == BH_KNOWN_NO && f.why)
        *bh_vec_push(&x->unknown) = bh_arena_printf(&x->fleet.arena, "%s: false: %s", what, f.why);
    return f.known == BH_KNOWN_NOT ? BH_FACT_UNKNOWN : f.known == BH_KNOWN_YES ? BH_FACT_YES : BH_FACT_NO;
}

static uint8_t ecc_of(struct bh_survey *x)
{
    uint8_t all = x->s->devices.n ? BH_FACT_YES : BH_FACT_UNKNOWN;
    const char *why = "there is no GPU";
    for (size_t i = 0; i < x->s->devices.n; i++) {
        const struct bh_reading r = x->s->devices.at[i].ecc_mode;
        if (!r.why && r.v == 0)
            return BH_FACT_NO;
        if (r.why) {
            all = BH_FACT_UNKNOWN;
            why = r.why;
        }
    }
    if (all == BH_FACT_UNKNOWN)
        missing(x, "ecc", why);
    return all;
}

static void add_params(struct bh_survey *x, struct bh_fleet_node *n)
{
    /* Those that decide something about tenants; the driver has many more. */
    static const char *const wanted[] = {"RmProfilingAdminOnly", "CreateImexChannel0", "ImexChannelCount",
                                         "DeviceFileMode",       "ModifyDeviceFiles",  "RegistryDwords"};
    if (x->platform.params_why)
        missing(x, "params", x->platform.params_why);
    for (size_t w = 0; w < BH_COUNT_OF(wanted); w++)
        for (size_t i = 0; i < x->platform.params.n; i++)
            if (bh_str_eq(x->platform.params.at[i].key, wanted[w]) && *x->platform.params.at[i].value) {
                *bh_vec_push(&n->params) =
                    (struct bh_keyed){.key = wanted[w], .value = x->platform.params.at[i].value};
                break;
            }
}

static void set_label(struct bh_arena *a, struct bh_fleet_node *n, struct bh_span key, struct bh_span value)
{
    const char *text = bh_arena_strn(a, value.at, value.n);
    for (size_t i = 0; i < n->labels.n; i++)
        if (strlen(n->labels.at[i].key) == key.n && memcmp(n->labels.at[i].key, key.at, key.n) == 0) {
            n->labels.at[i].value = text; /* a later line wins, as in the discovery itself */
            return;
        }
    *bh_vec_push(&n->labels) = (struct bh_keyed){.key = bh_arena_strn(a, key.at, key.n), .value = text};
}

/* What GPU feature discovery told the cluster, so that lint can hold it against the silicon. */
static void add_labels(struct bh_survey *x, struct bh_fleet_node *n)
{
    BH_AUTOFREE char *text = NULL;
    struct bh_span key, value;
    struct bh_err err;
    size_t pos = 0, bad = 0;
    int rc = bh_sysfile_read(BH_LABELS_GFD, LABELS_MAX, &text, NULL, &err);
    *bh_vec_push(&x->unknown) =
        "operator, vgpuManager, site: no file of this machine tells them; add them by hand";
    if (rc < 0) {
        missing(x, "labels",
                rc == BH_NOT_FOUND ? "no labels of GPU feature discovery on this machine; add them by hand"
                                   : err.msg);
        return;
    }
    while (bh_labels_next(text, &pos, &key, &value, &bad))
        set_label(&x->fleet.arena, n, key, value);
    if (bad)
        *bh_vec_push(&x->unknown) =
            bh_arena_printf(&x->fleet.arena, "labels: %zu %s of " BH_LABELS_GFD " left out: no label", bad,
                            bad == 1 ? "line" : "lines");
}

/* The fleet file has no place for how an AMD GPU is cut; a comment keeps it. */
static void remark_partition(struct bh_survey *x, const struct bh_gpu_device *d)
{
    if (d->compute_partition || d->memory_partition || !d->isolation.why)
        *bh_vec_push(&x->unknown) = bh_arena_printf(
            &x->fleet.arena,
            "GPU %" PRIu32 ": compute partition %s, memory partition %s, isolation %s: not judged", d->index,
            d->compute_partition ? d->compute_partition : "unknown",
            d->memory_partition ? d->memory_partition : "unknown", bh_gpu_isolation_word(d));
}

static void add_instances(struct bh_survey *x, const struct bh_gpu_device *d, struct bh_gpu *g)
{
    for (size_t i = 0; i < d->instances.n; i++) {
        const struct bh_gpu_instance *at = &d->instances.at[i];
        /* Compute instances of one GPU instance are one partition. */
        if (!at->profile || (i && d->instances.at[i - 1].gi == at->gi))
            continue;
        bool placed = !at->start.why && at->start.v <= PROFILE_START_MAX;
        *bh_vec_push(&g->instances) =
            (struct bh_found_instance){.profile = at->profile,
                                       .known = d->model ? bh_mig_find(d->model, at->profile) : NULL,
                                       .start = placed ? (int8_t)at->start.v : -1};
    }
    if (d->mig_mode.why && d->model && bh_model_has_mig(d->model))
        missing(x, bh_arena_printf(&x->fleet.arena, "mig of GPU %" PRIu32, d->index), d->mig_mode.why);
}

/* Domains are numbered on each node; the node's name keeps those of two nodes apart. */
static const char *fabric_of(struct bh_survey *x, const struct bh_gpu_device *d, const char *node)
{
    if (d->fabric_key)
        return d->fabric_key;
    return d->domain ? bh_arena_printf(&x->fleet.arena, "%s-%s", node, d->domain) : NULL;
}

/* A uuid that a GPU before it bears too names neither. */
static const char *uuid_of(struct bh_survey *x, const struct bh_gpu_device *d)
{
    for (const struct bh_gpu_device *e = x->s->devices.at; e < d; e++)
        if (d->uuid && bh_str_eq(e->uuid, d->uuid)) {
            missing(x, bh_arena_printf(&x->fleet.arena, "uuid of GPU %" PRIu32, d->index),
                    "the driver gives it to two GPUs");
            return NULL;
        }
    return d->uuid;
}

static void add_gpus(struct bh_survey *x, struct bh_fleet_node *n)
{
    for (size_t i = 0; i < x->s->devices.n; i++) {
        const struct bh_gpu_device *d = &x->s->devices.at[i];
        if (!d->alive || (!d->model && !d->name)) {
            *bh_vec_push(&x->unknown) =
                bh_arena_printf(&x->fleet.arena, "GPU %" PRIu32 " is left out: %s", d->index,
                                d->trouble ? d->trouble : "the driver does not say what it is");
            continue;
        }
        struct bh_gpu *g = bh_vec_push(&n->gpus);
        *g = (struct bh_gpu){.uuid = uuid_of(x, d),
                             .model_name = d->model ? d->model->name : d->name,
                             .model = d->model,
                             .fabric = fabric_of(x, d, n->name),
                             .index = d->index,
                             .memory_mib = d->total_bytes.why ? 0 : (uint32_t)(d->total_bytes.v / BH_MIB),
                             .numa = d->numa};
        if (!d->mig_mode.why)
            g->mig_enabled = d->mig_mode.v ? BH_FACT_YES : BH_FACT_NO;
        add_instances(x, d, g);
        remark_partition(x, d);
    }
}

static void add_head(struct bh_survey *x)
{
    struct bh_arena *a = &x->fleet.arena;
    const struct bh_platform *p = &x->platform;
    if (x->s->simulated)
        *bh_vec_push(&x->head) = bh_arena_printf(a, "simulated: the GPUs are those of %s, and not real",
                                                 x->s->library ? x->s->library : bh_sysroot());
    if (p->root)
        *bh_vec_push(&x->head) =
            bh_arena_printf(a, "simulated: the machine's own facts were read below %s", p->root);
    *bh_vec_push(&x->head) = "Written by `bulkhead fleet export`. Facts that are left out are unknown.";
    *bh_vec_push(&x->head) = bh_arena_printf(
        a, "kernel %s, lockdown %s, cgroup %s", p->kernel.text ? p->kernel.text : "unknown",
        p->lockdown.text ? p->lockdown.text : "unknown", p->cgroup.text ? p->cgroup.text : "unknown");
}

void bh_survey_make(struct bh_survey *x, const struct bh_gpu_snapshot *s, const char *name)
{
    BH_VEC(const char *) pci = {0};
    *x = (struct bh_survey){.s = s};
    struct bh_fleet_node *n = bh_vec_push(&x->fleet.nodes);
    /* one whose address is not known counts: nobody looked at its way */
    for (size_t i = 0; i < s->devices.n; i++)
        *bh_vec_push(&pci) = s->devices.at[i].pci;
    bh_platform_read(&x->platform, pci.at, pci.n);
    bh_vec_fini(&pci);
    add_head(x);
    *n = (struct bh_fleet_node){.name = name ? name : host_name(x)};
    n->kernel = n->name;
    (void)bh_map_add(&x->fleet.by_name, n->name, 0);
    n->driver = x->s->driver ? x->s->driver : x->platform.driver.text;
    if (!n->driver)
        missing(x, "driver", x->platform.driver.why);
    if (x->s->driver && x->platform.driver.text && !bh_str_eq(x->s->driver, x->platform.driver.text))
        *bh_vec_push(&x->unknown) =
            bh_arena_printf(&x->fleet.arena, "the library says driver %s, the kernel module %s", x->s->driver,
                            x->platform.driver.text);
    n->toolkit = x->platform.toolkit.text;
    if (!n->toolkit)
        missing(x, "toolkit", x->platform.toolkit.why);
    add_labels(x, n);
    n->iommu = fact_of(x, "iommu", x->platform.iommu);
    n->acs = fact_of(x, "acs", x->platform.acs);
    n->secure_boot = fact_of(x, "secureBoot", x->platform.secure_boot);
    n->ecc = ecc_of(x);
    add_params(x, n);
    add_gpus(x, n);
}

void bh_survey_fini(struct bh_survey *x)
{
    bh_fleet_fini(&x->fleet);
    bh_vec_fini(&x->head);
    bh_vec_fini(&x->unknown);
    bh_platform_fini(&x->platform);
}
