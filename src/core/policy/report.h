/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what the rules found.
 *
 * A finding is per rule and subject, in file order. `pos` is where the subject is
 * declared; `cause` is the line that made the rule speak, where there is one.
 * A rule that the given files cannot answer is unchecked: neither found nor passed.
 */
#ifndef BH_CORE_POLICY_REPORT_H
#define BH_CORE_POLICY_REPORT_H

#include "core/model/policy.h"
#include "core/policy/rule.h"

struct bh_finding {
    const struct bh_rule *rule;
    const char *subject; /* `tenant:acme`, `pool:dev`, `workload:train`, `node:gpu-01`, `gpu:gpu-01:3`, ... */
    struct bh_pos pos;
    struct bh_pos cause; /* line 0: the subject itself */
    const char *message;
    const char *fix;
    const char *object; /* `ResourceQuota/team-a/gpu`; NULL for a policy */
    bool waived;
    const char *waived_by; /* approver; NULL when not waived */
    uint32_t order;        /* in which it was found: ties in position stay in rule order */
};

struct bh_unchecked {
    const struct bh_rule *rule;
    const char *reason;
};

struct bh_report {
    struct bh_arena arena;
    BH_VEC(struct bh_finding) findings;
    BH_VEC(struct bh_unchecked) unchecked;
    uint32_t n_errors, n_warnings, n_infos, n_waived; /* waived ones are counted only there */
};

void bh_report_fini(struct bh_report *r);

/*
 * Judge a linked policy. today: days since 1970, given so that the same files give the same
 * report. fleet NULL: rules that need hardware facts are unchecked.
 */
void bh_lint(const struct bh_policy *p, const struct bh_fleet *fleet, int32_t today, struct bh_report *ret);

#endif
