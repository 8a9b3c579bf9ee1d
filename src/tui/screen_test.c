/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/screen.h"

#include "base/test.h"

static const char *text_of(const struct bh_screen *s, bool sgr)
{
    static char text[4096];
    struct bh_buf b;
    bh_buf_init(&b, sizeof(text));
    bh_screen_text(s, sgr, &b);
    (void)snprintf(text, sizeof(text), "%s", bh_buf_text(&b));
    bh_buf_fini(&b);
    return text;
}

TEST(what_does_not_fit_is_cut)
{
    struct bh_screen s;
    bh_screen_init(&s, 2, 8);
    CHECK_EQ(bh_screen_put(&s, 0, 0, 4, BH_STYLE_PLAIN, "abcdef"), 4);
    CHECK_EQ(bh_screen_put(&s, 0, 6, 99, BH_STYLE_BAD, "xyz"), 8);
    CHECK_EQ(bh_screen_put(&s, 0, 50, 9, BH_STYLE_BAD, "nowhere"), 50);
    CHECK_EQ(bh_screen_put(&s, 9, 0, 9, BH_STYLE_BAD, "nowhere"), 0);
    CHECK_EQ(bh_screen_put(&s, 1, 0, 9, BH_STYLE_PLAIN, NULL), 0);
    CHECK_STR(text_of(&s, false), "abcd  xy\n\n");
    CHECK_STR(text_of(&s, true), "abcd  \x1b[0;31mxy\x1b[0m\n\n");
    bh_screen_dim(&s, 0, 1);
    CHECK_STR(text_of(&s, true), "\x1b[0;2mabcd  xy\x1b[0m\n\n");
    bh_screen_fini(&s);
}

TEST(what_comes_from_elsewhere_is_shown_and_not_obeyed)
{
    struct bh_screen s;
    bh_screen_init(&s, 1, 20);
    bh_screen_put(&s, 0, 0, 20, BH_STYLE_PLAIN, "a\x1b[2J\xc3\xa9\xff\xe4\xb8\xad\xe2\x96\x88\xe2\x96");
    CHECK_STR(text_of(&s, false), "a?[2J\xc3\xa9??\xe2\x96\x88??\n");
    bh_screen_fini(&s);
}

TEST(styles_as_letters)
{
    struct bh_screen s;
    struct bh_buf b;
    bh_screen_init(&s, 1, 4);
    bh_screen_put(&s, 0, 0, 2, BH_STYLE_HEAD, "ab");
    bh_screen_mark(&s, 0, 1, 9, BH_STYLE_MARK);
    bh_buf_init(&b, 100);
    bh_screen_styles(&s, &b);
    CHECK_STR(bh_buf_text(&b), "hmmm\n");
    bh_buf_fini(&b);
    bh_screen_fini(&s);
}

TEST(pictures)
{
    static const uint8_t values[] = {0, 50, 100, UINT8_MAX, 12};
    struct bh_picture p;
    CHECK_STR(bh_picture_bar(0, 100, 12, &p), "[          ]");
    CHECK_STR(bh_picture_bar(1, 100, 12, &p), "[|         ]");
    CHECK_STR(bh_picture_bar(50, 100, 12, &p), "[|||||     ]");
    CHECK_STR(bh_picture_bar(500, 100, 6, &p), "[||||]");
    CHECK_STR(bh_picture_bar(5, 0, 6, &p), "[    ]");
    CHECK_STR(bh_picture_bar(5, 9, 1, &p), "[]");
    CHECK_STR(bh_picture_line(values, 5, 9, true, &p), "_.# _");
    CHECK_STR(bh_picture_line(values, 5, 2, true, &p), " _");
    CHECK_STR(bh_picture_line(values, 3, 9, false, &p), "\u2581\u2584\u2588");
    CHECK_STR(bh_picture_line(values, 0, 9, false, &p), "");
}

TEST_MAIN
