/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/share.h"

#include "base/test.h"

static struct bh_lease_share got;
static struct bh_err err;

static int reads(struct bh_share_words w)
{
    if (!w.command)
        w.command = "python";
    return bh_share_read(&w, &got, &err);
}

TEST(nothing_asked_is_nothing_held)
{
    CHECK_EQ(reads((struct bh_share_words){0}), BH_OK);
    CHECK_EQ(got.weight, 0);
    CHECK_EQ(reads((struct bh_share_words){.name = "x"}), BH_USAGE);
}

TEST(each_of_them_makes_it_a_share)
{
    CHECK_EQ(reads((struct bh_share_words){.share = "300"}), BH_OK);
    CHECK(got.weight == 300 && got.cap_permille == 0 && got.floor_permille == 0 && got.latency == 0);
    CHECK_EQ(reads((struct bh_share_words){.cap = "25%"}), BH_OK);
    CHECK(got.weight == BH_SHARE_WEIGHT && got.cap_permille == 250);
    CHECK_EQ(reads((struct bh_share_words){.floor = "0.1%"}), BH_OK);
    CHECK(got.weight == BH_SHARE_WEIGHT && got.floor_permille == 1);
    CHECK_EQ(reads((struct bh_share_words){.latency = ""}), BH_OK);
    CHECK(got.weight == BH_SHARE_WEIGHT && got.latency == 1);
    CHECK_EQ(reads((struct bh_share_words){.cap = "100%", .floor = "100%"}), BH_OK);
    CHECK(got.cap_permille == 1000 && got.floor_permille == 1000);
}

TEST(what_cannot_be_is_refused)
{
    static const struct bh_share_words wrong[] = {{.share = "0"},
                                                  {.share = "10001"},
                                                  {.share = "30%"},
                                                  {.share = ""},
                                                  {.cap = "0%"},
                                                  {.cap = "100.1%"},
                                                  {.cap = "1.25%"},
                                                  {.cap = "x"},
                                                  {.floor = "-1%"},
                                                  {.cap = "20%", .floor = "20.1%"},
                                                  {.share = "1", .name = ""},
                                                  {.share = "1", .name = "4711"},
                                                  {.share = "1", .name = "two words"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(reads(wrong[i]), BH_INVALID);
}

/* 1 was all of it, and no cap at all. */
TEST(a_part_has_its_sign)
{
    static const struct {
        const char *text, *says;
    } bare[] = {{"1", "has a % sign: 1%, not '1'"},
                {"25", "has a % sign: 25%, not '25'"},
                {"100", "has a % sign: 100%, not '100'"},
                {"0.5", "has a % sign: 50.0% or 0.5%, not '0.5'"},
                {"0.25", "has a % sign: 25.0%, not '0.25'"},
                {"0.001", "has a % sign: 0.1%, not '0.001'"},
                {"101", "has a % sign: 25%, not '101'"},
                {"", "has a % sign: 25%, not ''"},
                {"25 %", "from 0.1% to 100%, at most one decimal, not '25 %'"}};
    for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
        CHECK_EQ(reads((struct bh_share_words){.cap = bare[i].text}), BH_INVALID);
        CHECK(strstr(err.msg, "--cap: ") && strstr(err.msg, bare[i].says));
        CHECK_EQ(reads((struct bh_share_words){.floor = bare[i].text}), BH_INVALID);
        CHECK(strstr(err.msg, "--floor: ") && strstr(err.msg, bare[i].says));
    }
}

TEST(a_name_is_given_or_the_commands)
{
    CHECK_EQ(reads((struct bh_share_words){.share = "1", .name = "a-1"}), BH_OK);
    CHECK_STR(got.name, "a-1");
    CHECK_EQ(reads((struct bh_share_words){.share = "1", .command = "/opt/my\x1b thing"}), BH_OK);
    CHECK_STR(got.name, "my??thing");
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK_EQ(reads((struct bh_share_words){.share = "1", .command = longer}), BH_OK);
    CHECK_EQ(strlen(got.name), BH_GOVERN_NAME - 1);
}

TEST(numbers_and_words)
{
    struct bh_share_text t;
    CHECK_STR(bh_share_permille(297, false, &t), "29.7%");
    CHECK_STR(bh_share_permille(297, true, &t), "+29.7%");
    CHECK_STR(bh_share_permille(-4, true, &t), "-0.4%");
    CHECK_STR(bh_share_permille(0, true, &t), "0.0%");
    (void)bh_share_permille(INT32_MIN, true, &t);
    CHECK_STR(bh_share_state(BH_GOVERN_SHOWN_SUSPENDED), "suspended");
    CHECK_STR(bh_share_state(99), "?");
    CHECK_STR(bh_share_mode(1), "slices");
    CHECK_STR(bh_share_mode(99), "?");
}

TEST(processes_that_are_not_shown_are_dots)
{
    struct bh_govern_row r = {.root_pid = 7};
    char t[96];
    bh_share_pids(&r, t, sizeof(t));
    CHECK_STR(t, "7");
    r.n_pids = 2;
    r.pids[0] = 41;
    r.pids[1] = 42;
    bh_share_pids(&r, t, sizeof(t));
    CHECK_STR(t, "41,42");
    for (uint32_t i = 0; i < 16; i++)
        r.pids[i] = 10 + i;
    r.n_pids = 16;
    bh_share_pids(&r, t, sizeof(t));
    CHECK_STR(t, "10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25");
    r.n_pids = 17;
    bh_share_pids(&r, t, sizeof(t));
    CHECK_STR(t, "10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,...");
    for (uint32_t i = 0; i < 16; i++)
        r.pids[i] = UINT32_MAX;
    for (size_t size = 16; size <= sizeof(t); size++) {
        bh_share_pids(&r, t, size);
        CHECK(strlen(t) < size && strcmp(t + strlen(t) - 4, ",...") == 0);
    }
}

static const char *floors(const struct bh_govern_row *at, size_t n)
{
    static char text[400];
    struct bh_buf out;
    bh_buf_init(&out, sizeof(text) - 1);
    bh_share_floors_text(&out, at, n);
    (void)snprintf(text, sizeof(text), "%s", bh_buf_text(&out));
    bh_buf_fini(&out);
    return text;
}

TEST(floors_that_do_not_fit_are_said)
{
    struct bh_govern_row at[] = {
        {.gpu = 0, .floor_permille = 900},          {.gpu = 0, .floor_permille = 100},
        {.gpu = 3, .floor_permille = 505},          {.gpu = 3, .floor_permille = 500},
        {.gpu = UINT32_MAX, .floor_permille = 900}, {.gpu = UINT32_MAX, .floor_permille = 900}};
    CHECK_STR(floors(at, 0), "");
    CHECK_STR(floors(at, 3), "");
    CHECK_STR(
        floors(at, 6),
        "GPU 3: the floors come to 100.5% of it; while all of them have work each is cut in proportion\n");
    at[3].state = BH_GOVERN_SHOWN_PAUSED;
    CHECK_STR(floors(at, 6), "");
    at[2] = (struct bh_govern_row){.gpu = 0}; /* a third one, without: for it nothing is left */
    CHECK_STR(floors(at, 3),
              "GPU 0: the floors come to 100.0% of it; while all of them have work who has none gets "
              "next to nothing\n");
    at[1].floor_permille = 200;
    CHECK_STR(floors(at, 3),
              "GPU 0: the floors come to 110.0% of it; while all of them have work each is cut in "
              "proportion, and who has none gets next to nothing\n");
}

TEST(its_own_word_in_words)
{
    struct bh_govern_row r = {
        .lease = 7, .own_rate_milli = UINT64_MAX, .own_p50_us = UINT32_MAX, .own_p99_us = UINT32_MAX};
    struct bh_buf out;
    bh_buf_init(&out, 1000);
    CHECK(!bh_share_says(&r));
    r.own_garbage = 3;
    CHECK(bh_share_says(&r));
    bh_share_own_text(&out, &r);
    (void)snprintf(r.name, sizeof(r.name), "%s", "serve");
    r.own_garbage = 0;
    r.own_rate_milli = 812400;
    bh_share_own_text(&out, &r);
    r.own_p50_us = 230;
    r.own_p99_us = 412;
    bh_share_own_text(&out, &r);
    CHECK_STR(bh_buf_text(&out),
              "lease 7: 3 of its lines not understood, and ignored\n"
              "lease 7 (serve): own rate 812.400 a second\n"
              "lease 7 (serve): own rate 812.400 a second, own p50 230 us, own p99 412 us\n");
    bh_buf_fini(&out);
}

TEST_MAIN
