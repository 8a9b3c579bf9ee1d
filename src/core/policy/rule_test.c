/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/rule.h"

#include "base/test.h"

TEST(ids_are_found_however_they_are_typed)
{
    const struct bh_rule *r = bh_rule_find("BH-020");
    CHECK(r != NULL);
    CHECK_STR(r->id, "BH-020");
    CHECK(bh_rule_find("bh-20") == r);
    CHECK(bh_rule_find("bh020") == r);
    CHECK(bh_rule_find("20") == r);
    CHECK(bh_rule_find("BH-999") == NULL);
    CHECK(bh_rule_find("") == NULL);
    CHECK(bh_rule_find("BH-") == NULL);
    CHECK(bh_rule_find("BH-020x") == NULL);
    CHECK(bh_rule_find("99999999999999999999999") == NULL);
}

TEST(the_book_is_complete)
{
    CHECK_EQ(bh_rule_count(), 67);
    CHECK(bh_rule_at(bh_rule_count()) == NULL);
    for (size_t i = 0; i < bh_rule_count(); i++) {
        const struct bh_rule *r = bh_rule_at(i);
        CHECK(*r->title && *r->message && *r->why && *r->fix && *r->condition);
        CHECK(r->refs && r->controls);
        if (i)
            CHECK(strcmp(bh_rule_at(i - 1)->id, r->id) < 0);
        if (r->needs == BH_NEEDS_LIVE) {
            CHECK(!r->check && r->unchecked);
        } else {
            CHECK(r->check && r->fail_example && r->pass_example);
            CHECK(strstr(r->fail_example, "bulkhead: 1") && !strstr(r->fail_example, "#:"));
        }
        if (r->needs == BH_NEEDS_FLEET)
            CHECK(r->unchecked && *r->unchecked);
    }
}

TEST(what_cannot_be_waived_is_what_the_book_says)
{
    static const char *const unwaivable[] = {"BH-001", "BH-002", "BH-009", "BH-020",
                                             "BH-072", "BH-076", "BH-090"};
    size_t n = 0;
    for (size_t i = 0; i < bh_rule_count(); i++)
        n += bh_rule_at(i)->unwaivable;
    CHECK_EQ(n, sizeof(unwaivable) / sizeof(unwaivable[0]));
    for (size_t i = 0; i < n; i++)
        CHECK(bh_rule_find(unwaivable[i])->unwaivable);
}

TEST(severities_have_names)
{
    CHECK_STR(bh_severity_str(BH_SEV_ERROR), "error");
    CHECK_STR(bh_severity_str(BH_SEV_WARNING), "warning");
    CHECK_STR(bh_severity_str(BH_SEV_INFO), "info");
    CHECK_STR(bh_severity_str(77), "unknown");
}

TEST_MAIN
