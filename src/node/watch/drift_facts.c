/* SPDX-License-Identifier: Apache-2.0 */
/* drift_facts.c - the facts of a card that stay as they are, as text, and what is different. Pure. */
#include "node/watch/drift.h"

#include "base/str.h"
#include "base/units.h"
#include "core/model/advisory.h"

#include <inttypes.h>
#include <string.h>

enum { MIB_SHIFT = 20, NEAR_PERCENT = 2 };

static const char *number(struct bh_arena *a, struct bh_reading r, unsigned shift)
{
    return r.why ? NULL : bh_arena_printf(a, "%" PRIu64, r.v >> shift);
}

static const char *model_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->model ? d->model->name : d->name;
}

static const char *memory_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    return number(a, d->total_bytes, MIB_SHIFT);
}

static const char *pci_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->pci;
}

static const char *links_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    return number(a, d->links, 0);
}

static const char *fabric_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->fabric_key;
}

static const char *ecc_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->ecc_mode.why ? NULL : d->ecc_mode.v ? "on" : "off";
}

static const char *vbios_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->vbios;
}

static const char *gsp_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->gsp;
}

static const char *inforom_of(struct bh_arena *a, const struct bh_gpu_device *d)
{
    (void)a;
    return d->inforom;
}

/* Whether it is cut is not here: the daemon cuts cards itself, and looks after its instances (mech/mig.c). */
static const struct {
    const char *key, *words;
    const char *(*get)(struct bh_arena *a, const struct bh_gpu_device *d);
    bool firmware, near; /* near: a number that may be a little different */
} facts[] = {
    {"model", "model", model_of, false, false},
    {"memory_mib", "memory in MiB", memory_of, false, true},
    {"pci", "place on the PCI bus", pci_of, false, false},
    {"links", "links to other GPUs", links_of, false, false},
    {"fabric", "NVLink fabric", fabric_of, false, false},
    {"ecc", "ECC", ecc_of, false, false},
    {"vbios", "VBIOS", vbios_of, true, false},
    {"gsp", "GSP firmware", gsp_of, true, false},
    {"inforom", "InfoROM", inforom_of, true, false},
};

void bh_drift_write(struct bh_buf *out, const struct bh_gpu_device *d)
{
    struct bh_arena a = {0};
    for (size_t i = 0; i < BH_COUNT_OF(facts); i++) {
        const char *v = facts[i].get(&a, d);
        if (v && !strchr(v, '\n'))
            bh_buf_printf(out, "%s=%s\n", facts[i].key, v);
    }
    bh_arena_fini(&a);
}

/* What stands behind `key=` at the beginning of a line; NULL: nothing does. */
static const char *value_of(struct bh_arena *a, const char *text, const char *key)
{
    const size_t n = strlen(key);
    while (text && *text) {
        if (strncmp(text, key, n) == 0 && text[n] == '=')
            return bh_arena_printf(a, "%.*s", (int)strcspn(text + n + 1, "\n"), text + n + 1);
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

static bool is_near(const char *a, const char *b)
{
    uint64_t x, y;
    if (bh_uint_parse(a, UINT32_MAX, &x, NULL) < 0 || bh_uint_parse(b, UINT32_MAX, &y, NULL) < 0)
        return false;
    const uint64_t apart = x > y ? x - y : y - x;
    return apart * 100 <= (x > y ? x : y) * NEAR_PERCENT;
}

void bh_drift_compare(const char *before, const struct bh_gpu_device *now, bool other_driver,
                      struct bh_buf *ret_shape, struct bh_buf *ret_firmware)
{
    struct bh_arena a = {0};
    for (size_t i = 0; i < BH_COUNT_OF(facts); i++) {
        const char *was = value_of(&a, before, facts[i].key), *is = facts[i].get(&a, now);
        struct bh_buf *to = facts[i].firmware ? ret_firmware : ret_shape;
        if (!was || !is || bh_str_eq(was, is) || (facts[i].near && (other_driver || is_near(was, is))))
            continue;
        bh_buf_printf(to, "%s%s is %s, was %s", to->n ? "; " : "", facts[i].words, is, was);
    }
    bh_arena_fini(&a);
}

const char *bh_drift_exposure(struct bh_arena *a, const char *driver, int32_t day, bool *ret_open)
{
    struct bh_exposure e;
    *ret_open = false;
    if (bh_advisory_check("nvidia-driver", driver, day, &e, NULL) < 0)
        return NULL;
    *ret_open = e.n_open || e.unpatched_branch;
    if (!e.n_open)
        return bh_arena_printf(a, "driver %s: no published fix is missing%s", driver,
                               e.unpatched_branch ? ", and its branch gets no more" : "");
    return bh_arena_printf(
        a, "driver %s: %zu %s open, the worst %s (%u.%u); %s, the oldest fix for %" PRId32 " days", driver,
        e.n_open, e.n_open == 1 ? "advisory" : "advisories", e.worst->worst_cve, e.worst->cvss_tenths / 10u,
        e.worst->cvss_tenths % 10u,
        e.fix_version ? bh_arena_printf(a, "all are fixed in %s", e.fix_version) : "no version has all fixes",
        day - e.oldest->published_day);
}
