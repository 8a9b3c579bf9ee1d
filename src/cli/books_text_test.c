/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/books_text.h"

#include "cli/answer_fixture.h"

#define CHARGE(tenant, cc, mechanism, amounts)                                              \
    "{\"tenant\": \"" tenant "\", \"cost_center\": " cc ", \"user\": null, \"gpu\": null, " \
    "\"mechanism\": \"" mechanism "\", \"first_ms\": 1000, \"lost_milli_ms\": 0, " amounts "}"
#define ROW_1 \
    CHARGE("red", "\"cc-1\"", "mig", "\"milli_ms\": 3600000000, \"mib_ms\": 36864000000, \"leases\": 1")
#define ROW_2 CHARGE("red", "\"cc-1\"", "whole", "\"milli_ms\": 1800000000, \"mib_ms\": 0, \"leases\": 2")
#define ROW_3 CHARGE("blue", "null", "whole", "\"milli_ms\": 1, \"mib_ms\": 1, \"leases\": 1")
#define USAGE(prices, cards)                                                                          \
    "{\"from_ms\": 0, \"to_ms\": 86400000, \"complete_from_ms\": null, \"usage\": [" ROW_1 ", " ROW_2 \
    ", " ROW_3 "], \"prices\": " prices ", \"cards\": [" cards "]}"

TEST(usage_by_tenant)
{
    struct bh_a_usage u;
    must_read(USAGE("null", ""), &bh_a_usage_shape, &u);
    begin(true);
    bh_usage_text(&cli, &arena, &u, BH_BILL_BY_TENANT);
    CHECK_STR(shown(), "from 1970-01-01 00:00:00Z to 1970-01-02 00:00:00Z; what was granted, used or not\n"
                       "TENANT    GPU HOURS  GiB HOURS  LOST   LEASES\n"
                       "red       1.500      10.000     0.000  3\n"
                       "blue      0.000      0.000      0.000  1\n"
                       "together  1.500      10.000     0.000  4\n");
}

TEST(a_bill_that_is_not_whole_says_so)
{
    struct bh_a_usage u;
    must_read(USAGE("null", ""), &bh_a_usage_shape, &u);
    CHECK(!bh_usage_missing(&arena, &u));
    u.complete_from_ms = 3600000;
    begin(true);
    bh_usage_text(&cli, &arena, &u, BH_BILL_BY_TENANT);
    CHECK(strstr(shown(),
                 "used or not\nnot whole: of jobs that were over before 1970-01-01 01:00:00Z records were "
                 "dropped (audit.history of the policy)\nTENANT"));
    u.from_ms = 3600000;
    CHECK(!bh_usage_missing(&arena, &u));
}

TEST(usage_with_prices_and_stranded_cards)
{
    struct bh_a_usage u;
    must_read(
        USAGE(
            "{\"currency\": \"EUR\", \"gpu_hour_micro\": 2000000, \"memory_gib_hour_micro\": 100000}",
            "{\"gpu\": \"GPU-0\", \"index\": 0, \"memory_mib\": 81920, \"milli_ms\": 7, "
            "\"stranded_milli_ms\": 1800000000, \"stranded_mib_ms\": 0}, {\"gpu\": \"GPU-1\", \"index\": 1, "
            "\"memory_mib\": 81920, \"milli_ms\": 7, \"stranded_milli_ms\": 0, \"stranded_mib_ms\": 0}"),
        &bh_a_usage_shape, &u);
    begin(true);
    bh_usage_text(&cli, &arena, &u, BH_BILL_BY_BOTH);
    CHECK(strstr(shown(), "TENANT    MECHANISM  GPU HOURS  GiB HOURS  LOST   LEASES  EUR\n"
                          "red       mig        1.000      10.000     0.000  1       3.000000\n"));
    CHECK(strstr(shown(), "together  all        1.500      10.000     0.000  4       4.000000\n"));
    CHECK(strstr(shown(), "0 GPU-0"));
    CHECK(!strstr(shown(), "1 GPU-1"));
    CHECK(strstr(shown(), "0.500"));
}

TEST(hints_follow_what_is_known_now)
{
    static const struct bh_a_quota quota = {
        .tenant = "red", .guaranteed_milli = 1000, .used_milli = 1000, .waiting_jobs = 2};
    static const struct bh_a_lease lease = {.id = "L1", .tenant = "red"};
    struct bh_a_usage u;
    must_read(USAGE("null", ""), &bh_a_usage_shape, &u);
    begin(false);
    bh_usage_hints(&cli, &arena, &u, &(struct bh_a_quotas){.quotas = {&quota, 1}},
                   &(struct bh_a_leases){.leases = {&lease, 1}});
    CHECK(strstr(shown(), "red has 1 GPUs reserved and was given 0.062 of them"));
    CHECK(strstr(shown(), "red needs more: 2 jobs"));
    CHECK(strstr(shown(), "Of 1 of 1 active lease it is unknown"));
    begin(false);
    bh_usage_hints(&cli, &arena, &u, &(struct bh_a_quotas){0}, &(struct bh_a_leases){0});
    CHECK_STR(shown(), "");
}

TEST(intervals_as_they_are)
{
    struct bh_a_usage_records r;
    must_read(
        "{\"records\": [{\"seq\": 3, \"tenant\": \"red\", \"cost_center\": null, \"user\": \"ada\", \"job\": \"J1\", "
        "\"lease\": \"L2\", \"gpu\": \"GPU-0\", \"kind\": \"mig\", \"key\": \"mig:1g.10gb@0\", \"mechanism\": \"mig\", "
        "\"milli\": 142, \"mib\": 9728, \"from_ms\": 5, \"to_ms\": null, \"lost\": true}], \"next\": null}",
        &bh_a_usage_records_shape, &r);
    begin(false);
    bh_usage_raw_head(&cli.out);
    bh_usage_raw(&cli.out, &r);
    CHECK_STR(shown(),
              "seq,tenant,cost_center,user,job,lease,gpu,kind,key,mechanism,milli,mib,from_ms,to_ms,lost\n"
              "3,red,,ada,J1,L2,GPU-0,mig,mig:1g.10gb@0,mig,142,9728,5,,1\n");
    CHECK_EQ(r.next, BH_ANSWER_UNKNOWN);
}

TEST(what_a_policy_changes_for_whom)
{
    struct bh_a_diff d;
    must_read(
        "{\"version\": 3, \"errors\": 1, \"changes\": [{\"tenant\": \"red\", \"what\": \"quota.gpus\", \"before\": "
        "\"2\", \"after\": \"4\", \"effect\": null}, {\"tenant\": null, \"what\": \"pool dev\", \"before\": \"4 GPUs\", "
        "\"after\": null, \"effect\": \"2 leases end\"}, {\"tenant\": \"red\", \"what\": \"class\", \"before\": null, "
        "\"after\": \"serving\", \"effect\": null}], \"findings\": [\"BH-020: a promise that cannot be kept\"]}",
        &bh_a_diff_shape, &d);
    begin(true);
    bh_diff_text(&cli, &arena, &d, "policy.yaml");
    CHECK_STR(shown(), "policy.yaml against version 3: 3 changes for 1 tenant\n"
                       "\n"
                       "red\n"
                       "  WHAT        BEFORE  AFTER    EFFECT\n"
                       "  quota.gpus  2       4        -\n"
                       "  class       -       serving  -\n"
                       "\n"
                       "for everybody\n"
                       "  WHAT      BEFORE  AFTER  EFFECT\n"
                       "  pool dev  4 GPUs  -      2 leases end\n"
                       "\n"
                       "Found\n"
                       "  BH-020: a promise that cannot be kept\n"
                       "1 of these keeps it from being applied\n");
}

TEST(nothing_changes)
{
    const struct bh_a_diff d = {.version = 0};
    begin(false);
    bh_diff_text(&cli, &arena, &d, "p\x1b.yaml");
    CHECK_STR(shown(), "p\\x1b.yaml: 0 changes for 0 tenants\n");
}

TEST(tokens)
{
    struct bh_a_tokens t;
    must_read(
        "{\"tokens\": [{\"id\": \"T1\", \"subject\": \"user:ada\", \"role\": \"tenant-user\", \"tenant\": \"red\", "
        "\"created_ms\": 1000, \"expires_ms\": 10060000, \"revoked_ms\": null}, {\"id\": \"T2\", \"subject\": "
        "\"service:ci\", \"role\": \"viewer\", \"tenant\": null, \"created_ms\": 1000, \"expires_ms\": 2000, "
        "\"revoked_ms\": null}, {\"id\": \"T3\", \"subject\": \"service:ci\", \"role\": \"viewer\", \"tenant\": null, "
        "\"created_ms\": 1000, \"expires_ms\": null, \"revoked_ms\": 5000}]}",
        &bh_a_tokens_shape, &t);
    begin(false);
    bh_tokens_text(&cli, &arena, &t, NOW_MS);
    CHECK_STR(shown(),
              "TOKEN  SUBJECT     ROLE         TENANT  CREATED               STATE\n"
              "T1     user:ada    tenant-user  red     1970-01-01 00:00:01Z  holds 1m\n"
              "T2     service:ci  viewer       -       1970-01-01 00:00:01Z  expired 1970-01-01 00:00:02Z\n"
              "T3     service:ci  viewer       -       1970-01-01 00:00:01Z  revoked 1970-01-01 00:00:05Z\n");
    const struct bh_a_tokens none = {0};
    begin(false);
    bh_tokens_text(&cli, &arena, &none, NOW_MS);
    CHECK_STR(shown(), "no tokens\n");
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
}

TEST_MAIN
