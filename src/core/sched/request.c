/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - classes of equal requests: checked once, then known by a number. */
#include "core/sched/request.h"

#include "base/map.h"

#include <inttypes.h>
#include <stddef.h>

/* What a form fixes about the other fields. */
static const struct {
    const char *name;
    uint8_t gpus_min, gpus_max;
    uint16_t milli_min, milli_max;
    bool may_mib, one_model;
} forms[BH_FORMS] = {
    [BH_FORM_CPU] = {"no GPU", 0, 0, 0, 0, false, false},
    [BH_FORM_WHOLE] = {"whole GPUs", 1, BH_NODE_GPUS, BH_GPU_MILLI, BH_GPU_MILLI, false, false},
    [BH_FORM_SHARE] = {"shares", 1, BH_NODE_GPUS, 1, BH_GPU_MILLI - 1, true, false},
    [BH_FORM_MIG] = {"a MIG instance", 1, 1, 0, 0, false, true},
};

static int check(const struct bh_request *r, struct bh_err *err)
{
    if (r->form >= BH_FORMS || r->apart >= BH_APARTS || r->trust == UINT32_MAX)
        return bh_fail(err, BH_INVALID,
                       "a request of form %u, apart %u, trust domain %" PRIu32 ": there is none", r->form,
                       r->apart, r->trust);
    const char *name = forms[r->form].name;
    if (r->n_gpus < forms[r->form].gpus_min || r->n_gpus > forms[r->form].gpus_max)
        return bh_fail(err, BH_INVALID, "a request for %s takes %u to %u GPUs of a node, not %u", name,
                       forms[r->form].gpus_min, forms[r->form].gpus_max, r->n_gpus);
    if (r->gpu_milli < forms[r->form].milli_min || r->gpu_milli > forms[r->form].milli_max)
        return bh_fail(err, BH_INVALID, "a request for %s takes %u to %u thousandths of each, not %u", name,
                       forms[r->form].milli_min, forms[r->form].milli_max, r->gpu_milli);
    if (r->gpu_mib && !forms[r->form].may_mib)
        return bh_fail(err, BH_INVALID, "a request for %s says %" PRIu32 " MiB of GPU memory", name,
                       r->gpu_mib);
    if (forms[r->form].one_model ? !r->models || (r->models & (r->models - 1)) : r->mig_profile != 0)
        return bh_fail(err, BH_INVALID, "a MIG profile is of one model, and only a MIG instance has one");
    return 0;
}

/* Without what the compiler leaves between fields, so that equal requests are equal bytes. */
static struct bh_request plain(const struct bh_request *r)
{
    struct bh_request p;
    memset(&p, 0, sizeof(p));
#define COPY(field) p.field = r->field
    COPY(form), COPY(n_gpus), COPY(mig_profile), COPY(apart), COPY(mechanism), COPY(kinds), COPY(avoid);
    COPY(gpu_milli), COPY(gpu_mib), COPY(cpu_milli), COPY(mem_mib), COPY(models), COPY(features), COPY(pools);
    COPY(trust);
#undef COPY
    /* What decides nothing makes no class. */
    if (p.form != BH_FORM_SHARE)
        p.mechanism = 0;
    if (p.form == BH_FORM_CPU)
        p.models = 0, p.kinds = p.avoid = 0;
    return p;
}

static size_t slot_of(const struct bh_requests *t, const struct bh_request *p)
{
    size_t i = bh_hash((const char *)p, sizeof(*p)) & (t->n_slots - 1);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): what lies between the fields is 0, too */
    while (t->slots[i] && memcmp(&t->at.at[t->slots[i] - 1], p, sizeof(*p)) != 0)
        i = (i + 1) & (t->n_slots - 1);
    return i;
}

static void grow(struct bh_requests *t)
{
    free(t->slots);
    t->n_slots = t->n_slots ? t->n_slots * 2 : 64;
    t->slots = bh_alloc(t->n_slots, sizeof(*t->slots));
    for (size_t i = 0; i < t->at.n; i++)
        t->slots[slot_of(t, &t->at.at[i])] = (uint32_t)i + 1;
}

int bh_request_intern(struct bh_requests *t, const struct bh_request *r, uint32_t *ret_class,
                      struct bh_err *err)
{
    int rc = check(r, err);
    if (rc < 0)
        return rc;
    const struct bh_request p = plain(r);
    if ((t->at.n + 1) * 4 > t->n_slots * 3)
        grow(t);
    const size_t i = slot_of(t, &p);
    if (!t->slots[i]) {
        if (t->at.n == BH_CLASSES_MAX)
            return bh_fail(err, BH_TOO_LARGE, "more than %d different requests", BH_CLASSES_MAX);
        memcpy(bh_vec_push(&t->at), &p, sizeof(p));
        t->slots[i] = (uint32_t)t->at.n;
    }
    *ret_class = t->slots[i] - 1;
    return 0;
}

void bh_requests_fini(struct bh_requests *t)
{
    bh_vec_fini(&t->at);
    free(t->slots);
    t->slots = NULL;
    t->n_slots = 0;
}
