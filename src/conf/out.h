/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - judgements as text that programs read: JSON and SARIF 2.1.0.
 *
 * The same findings give the same bytes: no clock, no machine name, no address is
 * written. Keys keep their order; later releases add keys after those that are there.
 * The caller looks at out->full once at the end.
 */
#ifndef BH_CONF_OUT_H
#define BH_CONF_OUT_H

#include "base/buf.h"
#include "base/json.h"
#include "conf/input.h"
#include "core/policy/plan.h"
#include "core/policy/report.h"

/* What one run of lint found: everything is borrowed. */
struct bh_findings {
    const struct bh_input *in;
    const struct bh_report *reports; /* one for each unit of `in`, in that order */
    const char *version;             /* of the program */
};

struct bh_findings_sum {
    uint64_t errors, warnings, infos, waived;
};

typedef BH_VEC(struct bh_unchecked) bh_unchecked_vec;

void bh_findings_sum(const struct bh_findings *f, struct bh_findings_sum *ret);
/* What some unit could not answer, each rule and reason once, in the order of first mention. */
void bh_findings_unchecked(const struct bh_findings *f, bh_unchecked_vec *ret);
/* The line that made the rule speak, else the subject's own. */
struct bh_pos bh_finding_where(const struct bh_finding *f);
/* The path of a position's file as it was given. */
const char *bh_input_file(const struct bh_input *in, uint32_t file);

void bh_findings_json(struct bh_buf *out, const struct bh_findings *f);
void bh_findings_sarif(struct bh_buf *out, const struct bh_findings *f);

/* A NULL-terminated list of words on one line. */
void bh_json_key_words(struct bh_json *j, const char *key, const char *const *words);

struct bh_plan_out {
    const struct bh_plan *plan;
    const struct bh_policy *policy;
    const char *label; /* the policy's path */
    const char *fleet; /* the fleet's path; NULL: none was given */
};
size_t bh_plan_impossible(const struct bh_plan *p); /* tenants whose promise nothing keeps */
void bh_plan_json(struct bh_buf *out, const struct bh_plan_out *p);

#endif
