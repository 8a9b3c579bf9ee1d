/* SPDX-License-Identifier: Apache-2.0 */
/* govern_log_test.c - a log reads back, says where it is broken, and replays bit by bit. */
#include "core/govern/govern_log.h"

#include "core/govern/card_fixture.h"

static char line[BH_GOVERN_LINE_MAX], again[BH_GOVERN_LINE_MAX];

TEST(settings_read_back)
{
    struct bh_govern_config a, b;
    struct bh_err err;
    bh_govern_config_default(&a);
    a.lag_us = 12345;
    CHECK_EQ(bh_govern_log_config(&a, line, sizeof(line), &err), 0);
    CHECK(strncmp(line, "govern 4 200 22 250000 2000 ", 28) == 0);
    memset(&b, 0xff, sizeof(b));
    CHECK_EQ(bh_govern_log_read_config(line, &b, &err), 0);
    CHECK_EQ(memcmp(&a, &b, sizeof(a)), 0);
}

TEST(a_step_reads_back)
{
    struct bh_govern_in in = {.elapsed_us = 5000, .n = 1, .unused_permille = 12}, in2 = {0};
    struct bh_govern_out out = {.mode = 2, .turns = 1, .n = 1}, out2 = {0};
    struct bh_err err;
    in.at[0] = (struct bh_govern_asked){7, 30, 250, 0, 0, 2, BH_GOVERN_NO_SAMPLE, 1};
    out.at[0] =
        (struct bh_govern_told){.id = 7, .slice_us = 2000, .level = 1, .paused = 1, .target_permille = 250};
    CHECK_EQ(bh_govern_log_step(&in, &out, line, sizeof(line), &err), 0);
    CHECK_STR(
        line,
        "step 5000 1 12 2 1 0 0 0 1 | 7 30 250 0 0 2 18446744073709551615 1 > 7 2000 1 1 0 0 0 0 250 0 0 0");
    CHECK_EQ(bh_govern_log_read_step(line, &in2, &out2, &err), 0);
    CHECK_EQ(bh_govern_log_step(&in2, &out2, again, sizeof(again), &err), 0);
    CHECK_STR(again, line);
    CHECK_EQ(bh_govern_log_step(&in, &out, line, 40, &err), BH_TOO_LARGE);
    CHECK_EQ(bh_govern_log_step(&in, &out, line, 0, &err), BH_TOO_LARGE);
    out.n = 2;
    CHECK_EQ(bh_govern_log_step(&in, &out, line, sizeof(line), &err), BH_INVALID);
}

TEST(all_tenants_and_the_widest_numbers_fit)
{
    struct bh_govern_in *in = bh_alloc(1, sizeof(*in));
    struct bh_govern_out *out = bh_alloc(1, sizeof(*out));
    memset(in, 0xff, sizeof(*in));
    memset(out, 0xff, sizeof(*out));
    in->n = out->n = BH_GOVERN_TENANTS;
    const int rc = bh_govern_log_step(in, out, line, sizeof(line), NULL);
    free(in);
    free(out);
    CHECK_EQ(rc, 0);
}

TEST(broken_lines_are_refused_with_the_place)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "column 1: no \"step\""},
        {"step 5000", "column 10: n is not a number"},
        {"step 05000 0 0 0 0 0 0 0 0", "column 5: elapsed_us is not a number"},
        {"step 0 0 0 0 0 0 0 0 0", "column 5: elapsed_us is out of range"},
        {"step 5000 129 0 0 0 0 0 0 0", "column 10: n is out of range"},
        {"step 5000 0 1001 0 0 0 0 0 0", "column 12: unused_permille is out of range"},
        {"step 5000 0 0 9 0 0 0 0 0", "column 14: mode is out of range"},
        {"step 5000 0 0 0 0 0 0 0 1", "an input for 0 and an output for 1"},
        {"step 5000 1 0 0 0 0 0 0 1", "column 26: no \" |\""},
        {"step 5000 0 0 0 0 0 0 0 0 ", "column 26: more than belongs here"},
        {"step 18446744073709551616 0 0 0 0 0 0 0 0", "column 5: elapsed_us is not a number"},
        {"step 5000 1 0 0 0 0 0 0 1 | 7 1 0 0 0 0 0 0 > 8 1 0 0 0 0 0 0 0 0 0 0",
         "tenant 7 was told 8's part"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        struct bh_govern_in in = {0};
        struct bh_govern_out out = {0};
        struct bh_err err = {0};
        CHECK_EQ(bh_govern_log_read_step(rows[i].text, &in, &out, &err), BH_INVALID);
        CHECK_STR(err.msg, rows[i].why);
    }
}

/* Five seconds of a lively card, written and replayed by a controller that saw nothing but the log. */
TEST(a_log_replays_bit_by_bit)
{
    struct world *w = world_new(50, 1);
    struct bh_govern *second = NULL;
    struct bh_govern_config config;
    struct bh_err err = {0};
    int rc = 0, lines = 0;

    bh_govern_config_default(&config);
    config.lag_us += STEP_US;
    rc = bh_govern_new(&config, &second, &err);
    (void)world_add(w, CARD_LONG, 70, 0);
    (void)world_add(w, CARD_SYNC, 30, 0);
    for (; rc == 0 && lines < 1000; lines++) {
        if (lines == 200)
            (void)world_add(w, CARD_SPORADIC, 10, 0);
        if (lines == 500)
            world_add(w, CARD_SPORADIC, 10, 0)->asked.latency = BH_GOVERN_LATENCY;
        if (lines == 700)
            world_remove(w, 0);
        world_step(w);
        rc = bh_govern_log_step(&w->in, &w->out, line, sizeof(line), &err);
        if (rc == 0)
            rc = bh_govern_log_replay(second, line, &err);
    }
    bh_govern_free(second);
    world_free(w);
    CHECK_STR(err.msg, "");
    CHECK_EQ(rc, 0);
    CHECK_EQ(lines, 1000);
}

TEST(a_replay_that_differs_says_where)
{
    struct bh_govern *g = NULL;
    struct bh_err err = {0};
    CHECK_EQ(bh_govern_new(NULL, &g, NULL), 0);
    const int rc = bh_govern_log_replay(
        g, "step 5000 1 0 0 0 0 0 0 1 | 7 30 0 0 0 2 5000000 0 > 7 1999 1 0 1 0 1 0 1000 1000 1000 0", &err);
    bh_govern_free(g);
    CHECK_EQ(rc, BH_CONFLICT);
    CHECK_STR(err.msg, "tenant 7: slice_us was 1999 and is 2000");
}

TEST_MAIN
