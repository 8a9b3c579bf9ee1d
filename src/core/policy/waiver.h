/* SPDX-License-Identifier: Apache-2.0 */
/* waiver.h - which findings somebody signed for. Private to core/policy. */
#ifndef BH_CORE_POLICY_WAIVER_H
#define BH_CORE_POLICY_WAIVER_H

#include "core/policy/lint.h"

/* BH-090 and BH-091 look at waivers and run after they were applied. */
bool bh_rule_is_about_waivers(const struct bh_rule *r);
/* Is the waiver in force, and if not, why not? */
enum bh_waiver_state {
    BH_WAIVER_VALID,
    BH_WAIVER_FORBIDDEN, /* its rule cannot be waived */
    BH_WAIVER_UNSIGNED,  /* no approver */
    BH_WAIVER_BOUNDLESS, /* no scope */
    BH_WAIVER_ENDLESS,   /* no expiry */
    BH_WAIVER_EXPIRED,
    BH_WAIVER_NO_RULE, /* names a rule that does not exist */
};
enum bh_waiver_state bh_waiver_state(const struct bh_waiver *w, int32_t today);
void bh_waivers_apply(struct bh_lint *l);

#endif
