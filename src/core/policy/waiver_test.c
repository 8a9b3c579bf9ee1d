/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/waiver.h"

#include "base/test.h"
#include "core/policy/lint_fixture.h"

enum { TODAY = 20000 };

static void waive(struct world *w, const char *rule, const char *scope, const char *approver, int32_t expires)
{
    *bh_vec_push(&w->policy.waivers) = (struct bh_waiver){.pos = next_line(w),
                                                          .rule = rule,
                                                          .scope = scope,
                                                          .approver = approver,
                                                          .has_expiry = expires != 0,
                                                          .expires_day = expires};
}

/* Two tenants without a cost centre: two BH-082 to waive. */
static void two_without_cost_center(struct world *w)
{
    world_init(w);
    add_tenant(w, "a", BH_TRUST_INTERNAL)->cost_center = NULL;
    add_tenant(w, "b", BH_TRUST_INTERNAL)->cost_center = NULL;
}

TEST(a_valid_waiver_waives_its_scope_only)
{
    struct world w;
    two_without_cost_center(&w);
    waive(&w, "BH-082", "tenant:a", "jane", TODAY);
    judge(&w, NULL, TODAY);
    CHECK(finding(&w, "BH-082", "tenant:a")->waived);
    CHECK_STR(finding(&w, "BH-082", "tenant:a")->waived_by, "jane");
    CHECK(!finding(&w, "BH-082", "tenant:b")->waived);
    CHECK_EQ(w.report.n_waived, 1);
    CHECK_EQ(w.report.n_warnings, 1);
    world_fini(&w);
}

TEST(a_scope_may_be_a_pattern_but_not_missing)
{
    struct world w;
    two_without_cost_center(&w);
    waive(&w, "bh-82", "tenant:*", "jane", TODAY + 1);
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.n_waived, 2);
    world_fini(&w);

    two_without_cost_center(&w);
    waive(&w, "BH-082", NULL, "jane", TODAY + 1);
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.n_waived, 0);
    CHECK(finding(&w, "BH-090", "waiver:BH-082") != NULL);
    world_fini(&w);
}

TEST(expired_yesterday_waives_nothing_and_is_said)
{
    struct world w;
    two_without_cost_center(&w);
    waive(&w, "BH-082", "tenant:a", "jane", TODAY - 1);
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.n_waived, 0);
    CHECK(finding(&w, "BH-091", "waiver:BH-082") != NULL);
    world_fini(&w);
}

TEST(unsigned_endless_and_forbidden_are_errors_and_waive_nothing)
{
    struct world w;
    two_without_cost_center(&w);
    waive(&w, "BH-082", "tenant:a", NULL, TODAY + 1);
    waive(&w, "BH-082", "tenant:a", "jane", 0);
    waive(&w, "BH-001", "*", "jane", TODAY + 1);
    judge(&w, NULL, TODAY);
    CHECK_EQ(w.report.n_waived, 0);
    CHECK_EQ(w.report.n_errors, 3);
    CHECK(finding(&w, "BH-090", "waiver:BH-082@tenant:a") != NULL);
    CHECK(finding(&w, "BH-090", "waiver:BH-001") != NULL);
    CHECK(finding(&w, "BH-091", "waiver:BH-001") == NULL);
    world_fini(&w);
}

TEST(one_that_matches_nothing_is_said_unless_its_rule_was_not_checked)
{
    struct world w;
    two_without_cost_center(&w);
    waive(&w, "BH-082", "tenant:nobody", "jane", TODAY + 1);
    waive(&w, "BH-056", "pool:serving", "jane", TODAY + 1); /* needs a fleet */
    waive(&w, "BH-998", "*", "jane", TODAY + 1);
    judge(&w, NULL, TODAY);
    CHECK(finding(&w, "BH-091", "waiver:BH-082") != NULL);
    CHECK(finding(&w, "BH-091", "waiver:BH-056") == NULL);
    CHECK(finding(&w, "BH-091", "waiver:BH-998") != NULL);
    world_fini(&w);
}

TEST_MAIN
