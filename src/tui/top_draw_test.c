/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/top_fixture.h"

static char shot[1 << 16], styles[1 << 16];

static const char *draw(const struct bh_top_data *d, const struct bh_top_state *s, uint64_t age_ms,
                        unsigned rows, unsigned cols)
{
    struct bh_screen out;
    struct bh_buf b;
    bh_screen_init(&out, rows, cols);
    bh_top_draw(d, s, age_ms, &out);
    bh_buf_init(&b, sizeof(shot));
    bh_screen_text(&out, false, &b);
    (void)snprintf(shot, sizeof(shot), "%s", bh_buf_text(&b));
    b.n = 0;
    bh_screen_styles(&out, &b);
    (void)snprintf(styles, sizeof(styles), "%s", bh_buf_text(&b));
    bh_buf_fini(&b);
    bh_screen_fini(&out);
    return shot;
}

static const char *line(unsigned n)
{
    static char one[400];
    const char *p = shot;
    while (n-- && p)
        p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    (void)snprintf(one, sizeof(one), "%.*s", p ? (int)strcspn(p, "\n") : 0, p ? p : "");
    return one;
}

TEST(sixteen_cards_on_a_small_screen)
{
    struct bh_top_data d = fix_data(16);
    const struct bh_top_state s = {.ascii = true};
    draw(&d, &s, 0, 24, 80);
    CHECK_STR(line(0), "bulkhead node-1 SIMULATED health ok policy 3                1970-01-01 02:46:40Z");
    CHECK_STR(line(1), "  0[||||||||||   ]  0%   0.0/79G ___      8[             ] 48%   7.8/79G ...");
    CHECK_STR(line(3), "  2[             ]  ?%     ?/79G         10[             ] 60%   9.7/79G ---");
    CHECK_STR(line(4), "  3[             ] 18%   2.9/79G quaran  11[             ] 66%  10.7/79G ===");
    CHECK_STR(line(9), "[1 Work 2] 2 GPUs 16  3 Slices 2  4 Tenants 2");
    CHECK_STR(line(10), "JOB   TENANT    STATE   GPUS    AGE REASON");
    CHECK_STR(line(11), "J1    red       running    2     1h runs");
    CHECK_STR(line(12), "J2    blue      waiting  0.5     1m no room: 1 GPU is needed, 0.25 are free");
    CHECK_STR(line(23), "F1?Help TabView /Filter sSort EntDescribe wWhy LLogs cCancel SpcFreeze qQuit");
    CHECK(strncmp(styles + 11 * 81, "mmmmmmmm", 8) == 0);
    bh_top_data_fini(&d);
}

TEST(a_wide_screen_has_two_lists)
{
    struct bh_top_data d = fix_data(8);
    const struct bh_top_state s = {.ascii = true};
    draw(&d, &s, 0, 60, 200);
    CHECK(strstr(line(6), "JOB   TENANT    STATE"));
    CHECK(strstr(line(6), "USER      NAME          REASON"));
    CHECK(strstr(line(6), "OF ITS QUOTA"));
    CHECK(strstr(line(7), "[||||||||||||||||||]"));
    CHECK(strstr(line(8), "nothing reserved"));
    bh_top_data_fini(&d);
}

TEST(each_view_and_what_is_read)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = {.ascii = true, .view = BH_TOP_GPUS};
    draw(&d, &s, 0, 24, 80);
    CHECK_STR(line(2), "GPU MODEL         STATE       UTIL      MEMORY POOL     PAST");
    CHECK_STR(line(6), "  3 H100 80GB HBM quarantined  18%     2.9/79G cards    ___");
    s.view = BH_TOP_SLICES;
    draw(&d, &s, 0, 24, 80);
    CHECK(strstr(shot, "quarantine"));
    CHECK(strstr(line(23), "pPause"));
    s.readonly = true;
    draw(&d, &s, 0, 24, 80);
    CHECK(!strstr(line(23), "pPause"));
    struct bh_buf text;
    bh_buf_init(&text, 1000);
    bh_buf_str(&text, "one\ntwo\nthree\n");
    s.text = &text;
    s.mode = BH_TOP_READING;
    s.text_at = 1;
    (void)snprintf(s.title, sizeof(s.title), "a title");
    draw(&d, &s, 0, 24, 80);
    CHECK_STR(line(1), "a title");
    CHECK_STR(line(2), "two");
    CHECK(strstr(line(23), "EscBack"));
    bh_buf_fini(&text);
    bh_top_data_fini(&d);
}

TEST(what_is_old_is_dim_and_dated)
{
    struct bh_top_data d = fix_data(2);
    struct bh_top_state s = {.ascii = true, .away = true, .message = "no daemon answers"};
    draw(&d, &s, 0, 24, 80);
    CHECK(strstr(line(0), "daemon away, as of 1970-01-01 02:46:40Z"));
    CHECK_STR(line(22), "no daemon answers");
    for (unsigned row = 1; row < 22; row++)
        CHECK(strspn(styles + row * 81, "d") == 80);
    s = (struct bh_top_state){.ascii = true};
    draw(&d, &s, 60000, 24, 80);
    CHECK(strstr(line(0), "old, as of"));
    draw(&d, &s, 1000, 24, 80);
    CHECK(!strstr(line(0), "old"));
    d.here = false;
    s.away = true;
    draw(&d, &s, 0, 24, 80);
    CHECK_STR(line(0), "bulkhead no daemon answers; trying on");
    bh_top_data_fini(&d);
}

TEST(any_size_can_be_drawn)
{
    struct bh_top_data d = fix_data(16);
    struct bh_top_state s = {0};
    for (unsigned rows = 1; rows < 70; rows += 3) {
        for (unsigned cols = 1; cols < 250; cols += 7) {
            for (unsigned v = 0; v < BH_TOP_VIEWS; v++) {
                s.view = (enum bh_top_view)v;
                draw(&d, &s, 0, rows, cols);
                CHECK(strlen(shot) >= rows);
            }
        }
    }
    CHECK_STR((draw(&d, &s, 0, 1, 20), line(0)), "too small: 40 x 8 at");
    d.gpus.gpus.n = d.jobs.jobs.n = d.quotas.quotas.n = 0;
    s.view = BH_TOP_WORK;
    CHECK(strstr(draw(&d, &s, 0, 24, 80), "no job runs or waits"));
    bh_top_data_fini(&d);
}

TEST_MAIN
