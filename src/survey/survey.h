/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey.h - this machine as a fleet of one node: what its driver and its kernel say, in the model that rules, planner and
 * scheduler judge. What could not be had is unknown, and a remark says why, so that nobody takes silence for a no.
 */
#ifndef BH_SURVEY_SURVEY_H
#define BH_SURVEY_SURVEY_H

#include "conf/fleet_write.h"
#include "gpu/gpu.h"
#include "host/platform.h"

/* A fabric's name is the node's with a domain behind it, and both must be ones that the fleet file takes. */
enum { BH_SURVEY_NAME_MAX = 200 };

struct bh_survey {
    const struct bh_gpu_snapshot *s; /* borrowed: its texts are the fleet's */
    struct bh_platform platform;
    struct bh_fleet fleet;
    bh_remarks head, unknown; /* about all of it; what is not known, and why */
};

/* May a node be called so: letters, digits, `.`, `_` and `-`? */
bool bh_survey_name_fits(const char *name);
/* name NULL: the host's, made fit. */
void bh_survey_make(struct bh_survey *ret, const struct bh_gpu_snapshot *s, const char *name);
void bh_survey_fini(struct bh_survey *x);

#endif
