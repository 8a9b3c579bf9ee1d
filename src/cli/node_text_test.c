/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/node_text.h"

#include "cli/answer_fixture.h"

#define USE(name)                                                                               \
    "{\"tenant\": \"" name                                                                      \
    "\", \"class\": \"research\", \"quota_milli\": 2000, \"max_milli\": null, \"waiting\": 7, " \
    "\"running\": 1, \"leases\": 1, \"milli\": 500, \"memory_mib\": 40960}"
#define OTHERS \
    "{\"tenants\": 2, \"waiting\": 1, \"running\": 2, \"leases\": 3, \"milli\": 1500, \"memory_mib\": 1024}"
#define QUOTA(name, guaranteed, max, borrow)                                                 \
    "{\"tenant\": \"" name "\", \"model\": \"fairshare\", \"guaranteed_milli\": " guaranteed \
    ", \"max_milli\": " max ", \"weight\": 100, \"may_borrow\": " borrow                     \
    ", \"used_milli\": 2500, \"borrowed_milli\": 500, \"waiting_jobs\": 1}"

/* One screen answers who holds what, what waits and why, what is wrong; no line is wider than 80. */
TEST(the_screen)
{
    struct bh_a_status status;
    struct bh_a_gpus gpus;
    struct bh_a_leases leases;
    struct bh_a_jobs waits;
    struct bh_a_doctor doctor;
    must_read(
        "{\"node\": \"gpu-01\", \"version\": \"0.1.0\", \"driver\": \"580.1\", \"simulated\": true, \"now_ms\": "
        "10000000, \"started_ms\": 2800000, \"policy_version\": 3, \"health\": \"warn\", \"gpus\": 1, \"tenants\": "
        "[" USE("red") "], \"others\": " OTHERS
                       ", \"you\": {\"principal\": \"user:ada\", \"roles\": [{\"role\": "
                       "\"viewer\", \"tenant\": null}, {\"role\": \"viewer\", \"tenant\": null}, "
                       "{\"role\": \"tenant-admin\", \"tenant\": \"red\"}]}}",
        &bh_a_status_shape, &status);
    must_read("{\"gpus\": [" FIX_GPU "], \"others\": 3}", &bh_a_gpus_shape, &gpus);
    must_read("{\"leases\": [" FIX_LEASE("L1", "J1", "active", FIX_LIVE) "]}", &bh_a_leases_shape, &leases);
    must_read("{\"jobs\": [" FIX_JOB("J12", "waiting", "null", "\"it needs 1 GPU, and none is free\"", "null",
                                     "null") "]}",
              &bh_a_jobs_shape, &waits);
    must_read(
        "{\"health\": \"warn\", \"checks\": [{\"layer\": \"store\", \"state\": \"ok\", \"sentence\": \"sound\", "
        "\"mend\": null}, {\"layer\": \"gpu\", \"state\": \"warn\", \"sentence\": \"one is warm\", \"mend\": \"cool "
        "it\"}]}",
        &bh_a_doctor_shape, &doctor);
    const struct bh_status_parts parts = {
        .status = &status, .gpus = &gpus, .leases = &leases, .waits = &waits, .doctor = &doctor};
    begin(true);
    bh_status_text(&cli, &arena, &parts);
    CHECK_STR(shown(), "node       gpu-01, 1 GPU, simulated, driver 580.1\n"
                       "daemon     0.1.0, up 2h, policy 3\n"
                       "health     warn\n"
                       "you        user:ada: viewer, tenant-admin of red\n"
                       "\n"
                       "GPUs\n"
                       "  GPU  MODEL  STATE  MEMORY USED         WHO\n"
                       "  0    H100   ok     4.14 GiB of 80 GiB  red ada J1 0.5 GPU, quarantined: 0.5...\n"
                       "  others: 3 GPUs\n"
                       "\n"
                       "Tenants\n"
                       "  TENANT      CLASS     USES      MEMORY  OWN     LIMIT  RUNNING  WAITING\n"
                       "  red         research  0.5 GPU   40 GiB  2 GPUs  -      1        7\n"
                       "  others (2)  -         1.5 GPUs  1 GiB   -       -      2        1\n"
                       "\n"
                       "Waiting\n"
                       "  JOB  TENANT  USER  ASKS             FOR  WHY\n"
                       "  J12  red     ada   0.5 GPU, 20 GiB  16m  it needs 1 GPU, and none is free\n"
                       "  and 6 more: bulkhead ps --state waiting\n"
                       "\n"
                       "Wrong\n"
                       "  warn  gpu: one is warm; mend: cool it\n");
}

/* A caller who may see little gets the rest of the screen. */
TEST(the_screen_without_what_may_not_be_seen)
{
    const struct bh_a_you you = {.principal = "user:eve"};
    const struct bh_a_status status = {.node = "n", .version = "0", .health = "ok", .now_ms = 5, .you = &you};
    const struct bh_status_parts parts = {.status = &status};
    begin(false);
    bh_status_text(&cli, &arena, &parts);
    CHECK(strstr(shown(), "you        user:eve: no role\n"));
    CHECK(!strstr(shown(), "GPUs\n  GPU") && !strstr(shown(), "Waiting") && !strstr(shown(), "Wrong"));
}

TEST(tenants)
{
    struct bh_a_tenants t;
    must_read("{\"tenants\": [" USE("red") "], \"others\": " OTHERS "}", &bh_a_tenants_shape, &t);
    begin(true);
    bh_tenants_text(&cli, &arena, &t);
    CHECK_STR(shown(), "TENANT      CLASS     USES      MEMORY  OWN     LIMIT  RUNNING  WAITING\n"
                       "red         research  0.5 GPU   40 GiB  2 GPUs  -      1        7\n"
                       "others (2)  -         1.5 GPUs  1 GiB   -       -      2        1\n");
}

TEST(one_tenant)
{
    struct bh_a_tenant t;
    must_read(
        "{\"use\": " USE("red") ", \"quota\": " QUOTA(
            "red", "2000", "null",
            "true") ", \"trust\": \"internal\", "
                    "\"domain\": null, \"cost_center\": \"cc-1\", \"pools\": [{\"pool\": \"dev\", \"mechanism\": \"timeslice\", "
                    "\"tier\": \"process\", \"shared\": true}]}",
        &bh_a_tenant_shape, &t);
    begin(false);
    bh_tenant_text(&cli, &arena, &t);
    CHECK_STR(shown(), "tenant     red\n"
                       "class      research\n"
                       "trust      internal\n"
                       "costs to   cc-1\n"
                       "uses       0.5 GPU, 40 GiB, in 1 lease\n"
                       "guaranteed 2 GPUs\n"
                       "limit      none\n"
                       "borrowed   0.5 GPU\n"
                       "jobs       1 running, 7 waiting\n"
                       "\n"
                       "Pools\n"
                       "  POOL  MECHANISM  TIER     WITH OTHERS\n"
                       "  dev   timeslice  process  yes\n");
}

TEST(quotas)
{
    struct bh_a_quotas q;
    must_read("{\"quotas\": [" QUOTA("red", "4000", "8000", "true") ", " QUOTA(
                  "blue", "null", "null", "true") ", " QUOTA("green", "2000", "null", "false") "]}",
              &bh_a_quotas_shape, &q);
    begin(true);
    CHECK(bh_quotas_text(&cli, &arena, &q, NULL));
    CHECK_STR(shown(), "TENANT  GUARANTEED  USED      BORROWED  FREE OWN  LIMIT       WEIGHT  WAITING\n"
                       "red     4 GPUs      2.5 GPUs  0.5 GPU   1.5 GPUs  8 GPUs      100     1 job\n"
                       "blue    nothing     2.5 GPUs  0.5 GPU   0 GPUs    none        100     1 job\n"
                       "green   2 GPUs      2.5 GPUs  0.5 GPU   0 GPUs    guaranteed  100     1 job\n");
    begin(false);
    CHECK(bh_quotas_text(&cli, &arena, &q, "blue"));
    CHECK(strstr(shown(), "blue") && !strstr(shown(), "red"));
    begin(false);
    CHECK(!bh_quotas_text(&cli, &arena, &q, "none"));
    CHECK_STR(shown(), "");
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
}

TEST_MAIN
