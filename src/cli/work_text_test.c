/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/work_text.h"

#include "cli/answer_fixture.h"

TEST(jobs)
{
    struct bh_a_jobs j;
    must_read("{\"jobs\": [" FIX_JOB("J1", "running", "\"train\"", "null", "null", "null") "," FIX_JOB(
                  "J12", "waiting", "null", "\"too few GPUs are free, and this goes on\"", "null",
                  "null") "," FIX_JOB("J3", "ended", "\"x\\u001b[2J\"", "null", "\"exited\"",
                                      "3") "], \"next\": null, "
                                           "\"others\": 2}",
              &bh_a_jobs_shape, &j);
    begin(true);
    bh_jobs_text(&cli, &arena, &j, NOW_MS, NULL);
    CHECK_STR(shown(), "JOB  TENANT  USER  NAME      ASKS             STATE     FOR  WHY\n"
                       "J1   red     ada   train     0.5 GPU, 20 GiB  running   2m   -\n"
                       "J12  red     ada   -         0.5 GPU, 20 GiB  waiting   2m   too few GPUs are...\n"
                       "J3   red     ada   x\\x1b[2J  0.5 GPU, 20 GiB  exited 3  2m   -\n"
                       "others: 2 jobs\n");
}

TEST(no_jobs)
{
    struct bh_a_jobs j;
    must_read("{\"jobs\": [], \"next\": null, \"others\": null}", &bh_a_jobs_shape, &j);
    begin(false);
    bh_jobs_text(&cli, &arena, &j, NOW_MS, NULL);
    CHECK_STR(shown(), "no jobs\n");
}

TEST(leases)
{
    struct bh_a_leases l;
    must_read("{\"leases\": [" FIX_LEASE("L1", "J1", "active", FIX_LIVE) "," FIX_LEASE(
                  "L20", "J2", "draining", "null") "], \"next\": null, \"others\": null}",
              &bh_a_leases_shape, &l);
    begin(true);
    bh_leases_text(&cli, &arena, &l, NOW_MS, NULL);
    CHECK_STR(shown(), "LEASE  JOB  TENANT  USER  STATE     FOR  ISOLATION               USES\n"
                       "L1     J1   red     ada   active    2m   timeslice 50%, process  48%, 4.14 GiB\n"
                       "L20    J2   red     ada   draining  2m   timeslice 50%, process  -\n");
}

/* Nothing is marked the first time; after that what is new or in another state is. */
TEST(a_watch_marks_what_changed)
{
    struct bh_seen seen = {0};
    struct bh_a_jobs j;
    must_read("{\"jobs\": [" FIX_JOB("J1", "waiting", "null", "null", "null", "null") "]}", &bh_a_jobs_shape,
              &j);
    for (int i = 0; i < 2; i++) {
        begin(false);
        bh_jobs_text(&cli, &arena, &j, NOW_MS, &seen);
        CHECK(!strchr(shown(), '*'));
    }
    must_read("{\"jobs\": [" FIX_JOB("J1", "running", "null", "null", "null", "null") "," FIX_JOB(
                  "J2", "waiting", "null", "null", "null", "null") "]}",
              &bh_a_jobs_shape, &j);
    begin(false);
    bh_jobs_text(&cli, &arena, &j, NOW_MS, &seen);
    CHECK(strstr(shown(), "running*") && strstr(shown(), "waiting*"));
    begin(false);
    bh_jobs_text(&cli, &arena, &j, NOW_MS, &seen);
    CHECK(!strchr(shown(), '*'));
    bh_seen_fini(&seen);
}

TEST(why_one_waits)
{
    struct bh_a_why w;
    must_read(FIX_WHY, &bh_a_why_shape, &w);
    begin(false);
    bh_job_why_text(&cli, &arena, "J5", &w, NOW_MS);
    CHECK_STR(shown(), "J5  no room\n"
                       "  why      it needs 1 GPU, and none is free\n"
                       "  needs    1 GPU, 0 GPUs free\n"
                       "  ahead    2 come before it\n"
                       "  until    1970-01-01 03:46:40Z, in 1h\n"
                       "  held by  J1 of red: 0.5 GPU, 1h more\n"
                       "           J2 of red: 0.5 GPU, for how long is not known\n"
                       "           others: 1 job with 2 GPUs\n"
                       "  helps    wait (in 1h)\n"
                       "           end J1\n");
}

TEST(what_was_asked_for)
{
    static const struct {
        struct bh_a_job job;
        const char *words;
    } cases[] = {{{.gpus = 1, .milli = 1000}, "1 GPU"},
                 {{.gpus = 4, .milli = 1000}, "4 GPUs"},
                 {{.gpus = 2, .milli = 250, .memory_mib = 10240}, "2 x 0.25 GPU, 10 GiB"},
                 {{.gpus = 1, .milli = 1000, .profile = "1g.10gb"}, "1g.10gb"},
                 {{.gpus = 3, .milli = 1000, .profile = "1g.10gb"}, "3 x 1g.10gb"}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        CHECK_STR(bh_say_asked(&arena, &cases[i].job), cases[i].words);
}

TEST(states_in_words)
{
    const struct bh_a_live paused = {.state = "paused"}, running = {.state = "running"};
    const struct bh_a_lease l = {.state = "active", .live = &paused},
                            still = {.state = "active", .paused = true},
                            runs = {.state = "active", .live = &running},
                            gone = {.state = "released", .paused = true};
    const struct bh_a_job
        killed = {.state = "ended", .end = "killed", .status = BH_ANSWER_UNKNOWN, .signal = 9},
        lost = {.state = "ended", .end = "lost", .status = BH_ANSWER_UNKNOWN, .signal = BH_ANSWER_UNKNOWN};
    CHECK_STR(bh_say_lease_state(&l), "paused");
    CHECK_STR(bh_say_lease_state(&still), "paused");
    CHECK_STR(bh_say_lease_state(&runs), "active");
    CHECK_STR(bh_say_lease_state(&gone), "released");
    CHECK_STR(bh_say_job_state(&arena, &killed), "killed by 9");
    CHECK_STR(bh_say_job_state(&arena, &lost), "lost");
    CHECK(bh_state_paint("lost") == BH_PAINT_RED && bh_state_paint("waiting") == BH_PAINT_YELLOW &&
          bh_state_paint("ok") == BH_PAINT_GREEN && bh_state_paint("?") == BH_PAINT_PLAIN);
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
}

TEST_MAIN
