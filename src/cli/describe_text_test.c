/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/describe_text.h"

#include "cli/answer_fixture.h"

TEST(a_job_that_waits)
{
    struct bh_a_job_detail d;
    struct bh_a_why why;
    must_read("{\"job\": " FIX_JOB("J5", "waiting", "\"train\"", "\"waits\"", "null",
                                   "null") ", \"argv\": [\"python\", \"a "
                                           "b.py\"], \"cwd\": \"/x\", \"image\": null, \"leases\": []}",
              &bh_a_job_detail_shape, &d);
    must_read(FIX_WHY, &bh_a_why_shape, &why);
    begin(false);
    bh_describe_job(&cli, &arena, &d, &why, NULL, 0, NOW_MS);
    CHECK_STR(shown(), "job        J5  train\n"
                       "of         red, user ada\n"
                       "state      waiting for 2m: waits\n"
                       "asks       0.5 GPU, 20 GiB\n"
                       "pool       dev\n"
                       "tier       process\n"
                       "priority   normal\n"
                       "interrupt  may be paused, started again to make room\n"
                       "takes      at most 2h 5m\n"
                       "command    python 'a b.py'\n"
                       "in         /x\n"
                       "submitted  1970-01-01 02:30:00Z\n"
                       "\n"
                       "Why it waits\n"
                       "J5  no room\n"
                       "  why      it needs 1 GPU, and none is free\n"
                       "  needs    1 GPU, 0 GPUs free\n"
                       "  ahead    2 come before it\n"
                       "  until    1970-01-01 03:46:40Z, in 1h\n"
                       "  held by  J1 of red: 0.5 GPU, 1h more\n"
                       "           J2 of red: 0.5 GPU, for how long is not known\n"
                       "           others: 1 job with 2 GPUs\n"
                       "  helps    wait (in 1h)\n"
                       "           end J1\n"
                       "\n"
                       "History\n"
                       "  WHEN                  WHAT  STATE      WHY\n"
                       "  1970-01-01 02:30:00Z  J5    submitted  -\n");
}

TEST(a_job_that_ended_and_its_attempt)
{
    struct bh_a_job_detail d;
    struct bh_a_lease_detail l;
    must_read("{\"job\": " FIX_JOB("J1", "ended", "null", "null", "\"exited\"",
                                   "0") ", \"argv\": [], \"cwd\": null, "
                                        "\"image\": null, \"leases\": [" FIX_LEASE("L1", "J1", "released",
                                                                                   "null") "]}",
              &bh_a_job_detail_shape, &d);
    must_read(FIX_LEASE_DETAIL, &bh_a_lease_detail_shape, &l);
    begin(false);
    bh_describe_job(&cli, &arena, &d, NULL, &l, 1, NOW_MS);
    /* by time, whoever told it */
    const char *history = strstr(shown(), "History\n");
    CHECK(history);
    CHECK_STR(history, "History\n"
                       "  WHEN                  WHAT  STATE        WHY\n"
                       "  1970-01-01 00:00:01Z  L1    requested    -\n"
                       "  1970-01-01 00:00:02Z  L1    admitted     admit: within its quota\n"
                       "  1970-01-01 00:00:03Z  L1    scrub clean  GPU-0: 1 GiB of 2 GiB probed, overwrite\n"
                       "  1970-01-01 00:00:09Z  L1    active       ready\n"
                       "  1970-01-01 02:30:00Z  J1    submitted    -\n"
                       "  1970-01-01 02:44:40Z  J1    exited 0     -\n");
}

TEST(a_lease)
{
    struct bh_a_lease_detail l;
    must_read(FIX_LEASE_DETAIL, &bh_a_lease_detail_shape, &l);
    begin(true);
    bh_describe_lease(&cli, &arena, &l, NOW_MS);
    CHECK_STR(shown(), "lease      L1, of job J1\n"
                       "of         red, user ada\n"
                       "state      active for 2m: set up\n"
                       "pool       dev\n"
                       "isolation  timeslice 50%, process\n"
                       "uses now   48% of the time, 4.14 GiB of memory; 1 allocation refused\n"
                       "\n"
                       "Given\n"
                       "  GPU    SLICE  TIME     MEMORY  PROVED CLEAN\n"
                       "  GPU-0  share  0.5 GPU  40 GiB  yes\n"
                       "\n"
                       "Stays shared with others\n"
                       "  SMs, in turns\n"
                       "  host kernel\n"
                       "\n"
                       "History\n"
                       "  WHEN                  WHAT  STATE        WHY\n"
                       "  1970-01-01 00:00:01Z  L1    requested    -\n"
                       "  1970-01-01 00:00:02Z  L1    admitted     admit: within its quota\n"
                       "  1970-01-01 00:00:03Z  L1    scrub clean  GPU-0: 1 GiB of 2 GiB probed, over...\n"
                       "  1970-01-01 00:00:09Z  L1    active       ready\n");
}

TEST(a_gpu)
{
    struct bh_a_records r;
    struct bh_a_gpu g;
    must_read(FIX_GPU, &bh_a_gpu_shape, &g);
    must_read(
        "{\"records\": [{\"seq\": 2, \"at_ms\": 8000000, \"event\": \"gpu.cordon\", \"outcome\": \"done\", \"who\": "
        "\"user:root\", \"object_id\": \"GPU-0\", \"reason\": \"fan\"}, {\"seq\": 1, \"at_ms\": 1, \"event\": \"x\", "
        "\"outcome\": \"done\", \"who\": null, \"object_id\": \"GPU-1\", \"reason\": null}], \"next\": null}",
        &bh_a_records_shape, &r);
    begin(false);
    bh_describe_gpu(&cli, &arena, &g, NULL, 0, &r, NOW_MS);
    CHECK_STR(shown(),
              "GPU        0  GPU-0\n"
              "model      H100\n"
              "PCI        18:00.0\n"
              "pool       dev\n"
              "state      ok\n"
              "layout     shared\n"
              "memory     4.14 GiB used of 80 GiB\n"
              "busy       77% of the time with a kernel on it\n"
              "warm       55 C\n"
              "power      300 W\n"
              "\n"
              "Slices\n"
              "  SLICE    STATE        TIME     MEMORY  TENANT  LEASE  FOR     WHY\n"
              "  share    owned        0.5 GPU  40 GiB  red     L1     2m      -\n"
              "  share b  quarantined  0.5 GPU  40 GiB  -       -      2h 46m  the canary was there\n"
              "\n"
              "History\n"
              "  WHEN                  WHAT       STATE       WHY\n"
              "  1970-01-01 02:13:20Z  user:root  gpu.cordon  fan\n");
    begin(false);
    bh_describe_gpu(&cli, &arena, &g, NULL, 0, NULL, NOW_MS);
    CHECK(strstr(shown(), "History\n  nothing yet\n"));
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
}

TEST_MAIN
