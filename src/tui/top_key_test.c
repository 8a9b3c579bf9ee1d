/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/top_fixture.h"

static struct bh_buf text;
static struct bh_top_state fresh(void)
{
    bh_buf_fini(&text);
    bh_buf_init(&text, 1 << 16);
    return (struct bh_top_state){.text = &text};
}

TEST(moving_stays_within_the_list)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = fresh();
    static const struct {
        uint32_t key;
        unsigned at;
    } steps[] = {{BH_KEY_UP, 0},       {'j', 1}, {BH_KEY_DOWN, 1}, {'g', 0}, {'G', 1}, {BH_KEY_PAGE_UP, 0},
                 {BH_KEY_PAGE_DOWN, 1}};
    for (size_t i = 0; i < BH_COUNT_OF(steps); i++) {
        CHECK_EQ(bh_top_key(&s, &d, steps[i].key, 24), BH_TOP_NOTHING);
        CHECK_EQ(s.cursor[BH_TOP_WORK], steps[i].at);
    }
    CHECK_EQ(bh_top_key(&s, &d, '\t', 24), BH_TOP_NOTHING);
    CHECK_EQ(s.view, BH_TOP_GPUS);
    (void)bh_top_key(&s, &d, 'h', 24);
    (void)bh_top_key(&s, &d, BH_KEY_LEFT, 24);
    CHECK_EQ(s.view, BH_TOP_TENANTS);
    (void)bh_top_key(&s, &d, '3', 24);
    CHECK_EQ(s.view, BH_TOP_SLICES);
    bh_top_data_fini(&d);
}

TEST(a_filter_is_typed_and_taken_back)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = fresh();
    for (const char *p = "/quit"; *p; p++) /* q is a letter here */
        CHECK_EQ(bh_top_key(&s, &d, (uint32_t)*p, 24), BH_TOP_NOTHING);
    CHECK_STR(s.filter, "quit");
    (void)bh_top_key(&s, &d, BH_KEY_BACKSPACE, 24);
    CHECK_STR(s.filter, "qui");
    (void)bh_top_key(&s, &d, BH_KEY_ENTER, 24);
    CHECK_EQ(s.mode, BH_TOP_LIST);
    CHECK_STR(s.filter, "qui");
    (void)bh_top_key(&s, &d, BH_KEY_ESCAPE, 24);
    CHECK_STR(s.filter, "");
    for (int i = 0; i < 2 * BH_TOP_FILTER; i++)
        (void)bh_top_key(&s, &d, i ? 'x' : '/', 24);
    CHECK_EQ(strlen(s.filter), BH_TOP_FILTER - 1);
    (void)bh_top_key(&s, &d, BH_KEY_ESCAPE, 24);
    for (const char *p = ":tenants"; *p; p++)
        (void)bh_top_key(&s, &d, (uint32_t)*p, 24);
    (void)bh_top_key(&s, &d, BH_KEY_ENTER, 24);
    CHECK_EQ(s.view, BH_TOP_TENANTS);
    CHECK_STR(s.filter, "");
    bh_top_data_fini(&d);
}

TEST(commands_are_asked_back_and_readonly_has_none)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = fresh();
    CHECK_EQ(bh_top_key(&s, &d, 'c', 24), BH_TOP_NOTHING);
    CHECK_EQ(s.mode, BH_TOP_ASKING);
    CHECK_EQ(bh_top_key(&s, &d, 'q', 24), BH_TOP_NOTHING); /* anything but yes is no */
    CHECK_EQ(bh_top_key(&s, &d, 'c', 24), BH_TOP_NOTHING);
    CHECK_EQ(bh_top_key(&s, &d, 'y', 24), BH_TOP_CANCEL);
    CHECK_STR(s.asked, "J1");
    CHECK_EQ(bh_top_key(&s, &d, 'p', 24), BH_TOP_NOTHING); /* a job is no lease */
    CHECK_EQ(s.mode, BH_TOP_LIST);
    s.view = BH_TOP_SLICES;
    (void)bh_top_key(&s, &d, 'P', 24);
    CHECK_EQ(bh_top_key(&s, &d, 'y', 24), BH_TOP_RESUME);
    CHECK_STR(s.asked, "L3");
    s.readonly = true;
    CHECK_EQ(bh_top_key(&s, &d, 'p', 24), BH_TOP_NOTHING);
    CHECK_EQ(s.mode, BH_TOP_LIST);
    CHECK(strstr(s.message, "--readonly"));
    CHECK_EQ(bh_top_key(&s, &d, BH_KEY_ENTER, 24), BH_TOP_DESCRIBE);
    s.view = BH_TOP_WORK;
    CHECK_EQ(bh_top_key(&s, &d, 'w', 24), BH_TOP_WHY);
    CHECK_EQ(bh_top_key(&s, &d, 'L', 24), BH_TOP_LOGS);
    CHECK_EQ(bh_top_key(&s, &d, BH_KEY_F1 + 9, 24), BH_TOP_QUIT);
    bh_top_data_fini(&d);
}

TEST(help_sorting_and_freezing)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = fresh();
    (void)bh_top_key(&s, &d, '?', 24);
    CHECK_EQ(s.mode, BH_TOP_READING);
    CHECK(strstr(bh_buf_text(&text), "Cancel"));
    (void)bh_top_key(&s, &d, 'G', 10);
    CHECK(s.text_at > 0);
    (void)bh_top_key(&s, &d, BH_KEY_HOME, 10);
    CHECK_EQ(s.text_at, 0);
    CHECK_EQ(bh_top_key(&s, &d, 'q', 24), BH_TOP_NOTHING); /* leaves the text, not the screen */
    CHECK_EQ(s.mode, BH_TOP_LIST);
    s.readonly = true;
    (void)bh_top_key(&s, &d, BH_KEY_F1, 24);
    CHECK(!strstr(bh_buf_text(&text), "Cancel"));
    (void)bh_top_key(&s, &d, BH_KEY_ESCAPE, 24);
    for (unsigned i = 1; i <= 9; i++) {
        (void)bh_top_key(&s, &d, 's', 24);
        CHECK_EQ(s.sort[BH_TOP_WORK], i);
    }
    (void)bh_top_key(&s, &d, 's', 24);
    CHECK_EQ(s.sort[BH_TOP_WORK], 0);
    CHECK_EQ(bh_top_key(&s, &d, ' ', 24), BH_TOP_REFRESH);
    CHECK(s.frozen);
    bh_top_data_fini(&d);
    bh_buf_fini(&text);
}

TEST_MAIN
