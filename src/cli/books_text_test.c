/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/books_text.h"

#include "cli/answer_fixture.h"

#define USAGE                                                                                                             \
    "{\"from_ms\": 0, \"to_ms\": 86400000, \"usage\": [{\"tenant\": \"red\", \"mechanism\": \"mig\", \"milli_ms\": "      \
    "3600000000, \"mib_ms\": 36864000000, \"leases\": 1}, {\"tenant\": \"red\", \"mechanism\": \"whole\", \"milli_ms\": " \
    "1800000000, \"mib_ms\": 0, \"leases\": 2}, {\"tenant\": \"blue\", \"mechanism\": \"whole\", \"milli_ms\": 1, "       \
    "\"mib_ms\": 1, \"leases\": 1}], \"others\": {\"milli_ms\": 3600000000, \"mib_ms\": 0, \"leases\": 1}}"

TEST(usage_by_tenant)
{
    struct bh_a_usage u;
    must_read(USAGE, &bh_a_usage_shape, &u);
    begin(true);
    bh_usage_text(&cli, &arena, &u, BH_USAGE_BY_TENANT);
    CHECK_STR(shown(), "from 1970-01-01 00:00:00Z to 1970-01-02 00:00:00Z; what was granted, used or not\n"
                       "TENANT    MECHANISM  GPU HOURS  GiB HOURS  LEASES\n"
                       "red       all        1.500      10.000     3\n"
                       "blue      all        0.000      0.000      1\n"
                       "others    all        1.000      0.000      1\n"
                       "together  all        2.500      10.000     5\n");
}

TEST(usage_by_mechanism_and_as_csv)
{
    struct bh_a_usage u;
    must_read(USAGE, &bh_a_usage_shape, &u);
    begin(false);
    bh_usage_csv(&cli, &arena, &u, BH_USAGE_BY_MECHANISM);
    CHECK_STR(shown(),
              "from,to,tenant,mechanism,gpu_hours,gib_hours,leases,milli_ms,mib_ms\n"
              "1970-01-01 00:00:00Z,1970-01-02 00:00:00Z,all,mig,1.000,10.000,1,3600000000,36864000000\n"
              "1970-01-01 00:00:00Z,1970-01-02 00:00:00Z,all,whole,0.500,0.000,3,1800000001,1\n"
              "1970-01-01 00:00:00Z,1970-01-02 00:00:00Z,others,all,1.000,0.000,1,3600000000,0\n");
    begin(false);
    bh_usage_csv(&cli, &arena, &u, BH_USAGE_BY_BOTH);
    CHECK(strstr(shown(), ",red,mig,1.000,10.000,1,3600000000,36864000000\n"));
    /* A name that no policy has must not become a formula, or a field of its own. */
    const struct bh_a_usage_row row = {.tenant = "=1+\"2\",\n", .mechanism = "-x"};
    const struct bh_a_usage odd = {.usage = {&row, 1}};
    begin(false);
    bh_usage_csv(&cli, &arena, &odd, BH_USAGE_BY_BOTH);
    CHECK(strstr(shown(), ",\"'=1+\"\"2\"\",\\x0a\",\"'-x\",0.000,"));
}

TEST(sums_do_not_run_over)
{
    const struct bh_a_usage_row rows[] = {{.tenant = "a", .mechanism = "x", .milli_ms = UINT64_MAX - 1},
                                          {.tenant = "a", .mechanism = "y", .milli_ms = UINT64_MAX - 1}};
    const struct bh_a_usage u = {.usage = {rows, 2}};
    begin(false);
    bh_usage_csv(&cli, &arena, &u, BH_USAGE_BY_TENANT);
    CHECK(strstr(shown(), ",18446744073709551614,0\n"));
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
