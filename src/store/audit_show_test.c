/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audit_show.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_audit_record sample(void)
{
    static const char *const rules[] = {"BH-003", "BH-004"};
    return (struct bh_audit_record){.is = {.event = BH_AUDIT_ALLOC_DENY,
                                           .outcome = BH_AUDIT_DENIED,
                                           .sub = "user:ada",
                                           .has_uid = true,
                                           .uid = 1000,
                                           .idp = "unix",
                                           .tenant = "red",
                                           .object_type = "job",
                                           .object_id = "J17",
                                           .reason = "no room",
                                           .rule_ids = rules,
                                           .n_rule_ids = 2},
                                    .seq = 42,
                                    .utc_ns = INT64_C(1785585600123456789)};
}

TEST(a_line_says_who_and_what)
{
    const struct bh_audit_record r = sample();
    struct bh_buf b;
    bh_buf_init(&b, 4096);
    bh_audit_line_add(&b, &r);
    CHECK_STR(
        bh_buf_text(&b),
        "2026-08-01 12:00:00.123Z  #42  alloc.deny  denied  user:ada (uid 1000) by unix  tenant red  job J17"
        "  BH-003,BH-004  no room\n");
    bh_buf_fini(&b);
}

TEST(what_a_stranger_wrote_does_not_move_the_cursor)
{
    struct bh_audit_record r = {
        .is = {.event = BH_AUDIT_AUTH_FAILURE, .reason = "\x1b[2J\nroot\x7f\xc2\x9b \xc3\xbc \xff"}};
    struct bh_buf b;
    bh_buf_init(&b, 4096);
    bh_audit_line_add(&b, &r);
    CHECK(strstr(bh_buf_text(&b), "  nobody  ?[2J?root?? \xc3\xbc ?\n"));
    bh_buf_fini(&b);
}

TEST(filters)
{
    const struct bh_audit_record r = sample();
    const struct {
        struct bh_audit_filter f;
        bool matches;
    } cases[] = {
        {{0}, true},
        {{.tenant = "red"}, true},
        {{.tenant = "re"}, false},
        {{.event = "alloc.*"}, true},
        {{.event = "alloc"}, false},
        {{.actor = "user:*"}, true},
        {{.actor = "1000"}, true},
        {{.actor = "100"}, false},
        {{.since_ms = INT64_C(1785585600123)}, true},
        {{.since_ms = INT64_C(1785585600124)}, false},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        CHECK_EQ(bh_audit_matches(&cases[i].f, &r), cases[i].matches);
    const struct bh_audit_record nobody = {.is = {.uid = 1000}};
    const struct bh_audit_filter by_uid = {.actor = "1000"}, by_tenant = {.tenant = "red"};
    CHECK(!bh_audit_matches(&by_uid, &nobody) && !bh_audit_matches(&by_tenant, &nobody));
}

TEST_MAIN
