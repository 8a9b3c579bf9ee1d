/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_why.h - the quota model of a tenant, and the sentence that says why a choice was made.
 *
 * Each text is one sentence in the arena, built from the finished choice; nothing here decides between
 * candidates.
 */
#ifndef BH_CORE_POLICY_PLAN_WHY_H
#define BH_CORE_POLICY_PLAN_WHY_H

#include "core/policy/plan.h"
#include "core/policy/plan_case.h"

enum bh_quota_model bh_tenant_quota(const struct bh_tenant *t);
const char *bh_plan_why(struct bh_arena *a, const struct bh_case *c, const struct bh_tenant_plan *p);
/* The same sentence, with a word about a tenant that needs another driver. */
const char *bh_plan_why_driver(struct bh_arena *a, const char *why, const struct bh_tenant *other);

#endif
