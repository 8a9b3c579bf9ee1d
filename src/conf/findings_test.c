/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "conf/findings_fixture.h"

TEST(counts_are_summed_over_units)
{
    struct bh_findings_fixture x;
    struct bh_findings_sum sum;
    bh_findings_fixture_init(&x);
    bh_findings_sum(&x.findings, &sum);
    CHECK_EQ(sum.errors, 1);
    CHECK_EQ(sum.warnings, 1);
    CHECK_EQ(sum.infos, 0);
    CHECK_EQ(sum.waived, 1);
}

TEST(unchecked_rules_are_named_once)
{
    struct bh_findings_fixture x;
    bh_unchecked_vec v = {0};
    bh_findings_fixture_init(&x);
    bh_findings_unchecked(&x.findings, &v);
    size_t n = v.n;
    const char *first = v.at[0].rule->id, *second = v.at[1].rule->id;
    bh_vec_fini(&v);
    CHECK_EQ(n, 2);
    CHECK_STR(first, "BH-007");
    CHECK_STR(second, "BH-056");
}

TEST(the_same_rule_with_another_reason_stays)
{
    struct bh_findings_fixture x;
    bh_unchecked_vec v = {0};
    bh_findings_fixture_init(&x);
    x.unchecked[1][0].reason = "another reason";
    bh_findings_unchecked(&x.findings, &v);
    size_t n = v.n;
    bh_vec_fini(&v);
    CHECK_EQ(n, 3);
}

TEST(where_is_the_cause_when_there_is_one)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK_EQ(bh_finding_where(&x.first[0]).line, 22);
    CHECK_EQ(bh_finding_where(&x.first[1]).line, 30);
}

TEST(a_file_that_is_not_there_has_no_name)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK_STR(bh_input_file(&x.in, 1), "-");
    CHECK_STR(bh_input_file(&x.in, 2), "");
    CHECK_STR(bh_input_file(&x.in, UINT32_MAX), "");
}

TEST_MAIN
