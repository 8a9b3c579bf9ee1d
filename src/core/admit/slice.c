/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c - from a place that the scheduler gave to the slices of GPUs that it is. */
#include "core/admit/admit_inside.h"
#include "core/sched/mig.h"

#include <inttypes.h>
#include <stdio.h>

size_t bh_admit_slices(const struct bh_admit *a, const struct bh_request *request, const struct bh_spot *spot,
                       struct bh_admit_slice ret[BH_NODE_GPUS])
{
    static const uint8_t kinds[BH_FORMS] = {
        [BH_FORM_WHOLE] = BH_SLICE_WHOLE, [BH_FORM_SHARE] = BH_SLICE_SHARE, [BH_FORM_MIG] = BH_SLICE_MIG};
    const struct bh_part *part = &a->parts.at[spot->node];
    const struct bh_gpu_model *m = a->models.at[part->model].known;
    size_t n = 0;
    for (uint32_t i = 0; request->form != BH_FORM_CPU && i < part->n_gpus; i++) {
        if (!(spot->gpus >> i & 1))
            continue;
        struct bh_admit_slice *s = &ret[n++];
        *s =
            (struct bh_admit_slice){.gpu = bh_admit_gpu(a, spot->node, i),
                                    .kind = kinds[request->form],
                                    .milli = request->gpu_milli,
                                    .mib = request->form == BH_FORM_WHOLE ? part->gpu_mib : request->gpu_mib};
        if (request->form == BH_FORM_MIG) {
            s->profile = &m->profiles[request->mig_profile];
            s->mig_start = spot->mig_start;
            s->milli = bh_mig_milli(m, request->mig_profile);
            s->mib = s->profile->memory_mib;
        }
    }
    return n;
}

const char *bh_admit_slice_key(const struct bh_admit_slice *s, struct bh_slice_text *ret)
{
    static const char *const words[BH_SLICE_KINDS] = {"whole", "mig", "share"};
    if (s->kind == BH_SLICE_MIG)
        (void)snprintf(ret->s, sizeof(ret->s), "mig:%s@%u", s->profile->name, s->mig_start);
    else
        (void)snprintf(ret->s, sizeof(ret->s), "%s", words[s->kind]);
    return ret->s;
}
