/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth.h - traces of the published ones' shapes, drawn from a seed: what tests and first tries need.
 *
 * `openb,nodes=200,seed=7`: a shape and what is different from its defaults. The proportions (node types, sizes, spread
 * of durations and deadlines) are those of the public traces, rounded; the jobs are not theirs.
 */
#ifndef BH_REPLAY_SYNTH_H
#define BH_REPLAY_SYNTH_H

#include "base/err.h"
#include "replay/jobs.h"
#include "replay/openb.h"

#include <stdint.h>

enum bh_synth_shape { BH_SYNTH_OPENB, BH_SYNTH_CHRONUS, BH_SYNTH_GAVEL, BH_SYNTH_SHAPES };

struct bh_synth {
    uint8_t shape; /* enum bh_synth_shape */
    uint64_t seed;
    uint32_t nodes; /* openb */
    uint32_t pods;  /* openb; 0: as many as ask for about all the GPUs */
    uint32_t spec;  /* openb: per cent of the GPU pods that name models */
    uint32_t jobs, tenants;
    uint32_t gpus; /* for which the load is meant */
    uint32_t load; /* per cent of the GPUs that the jobs ask for while they arrive */
};

int bh_synth_parse(const char *s, struct bh_synth *ret, struct bh_err *err) BH_MUST_USE;
void bh_synth_openb(const struct bh_synth *y, struct bh_openb *ret);
void bh_synth_jobs(const struct bh_synth *y, struct bh_jobs *ret);

#endif
