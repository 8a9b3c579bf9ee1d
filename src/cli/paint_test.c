/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/test.h"
#include "cli/paint.h"

#define CHECK_TEXT(call, want)                                     \
    do {                                                           \
        struct bh_buf b;                                           \
        bh_buf_init(&b, 1 << 16);                                  \
        call;                                                      \
        char got_[512];                                            \
        (void)snprintf(got_, sizeof(got_), "%s", bh_buf_text(&b)); \
        bh_buf_fini(&b);                                           \
        CHECK_STR(got_, want);                                     \
    } while (0)

TEST(colour_is_wanted_only_where_it_can_be_seen)
{
    CHECK(bh_paint_wanted(NULL, true, NULL, "xterm"));
    CHECK(bh_paint_wanted("auto", true, "", "xterm"));
    CHECK(!bh_paint_wanted(NULL, false, NULL, "xterm"));
    CHECK(!bh_paint_wanted(NULL, true, "1", "xterm"));
    CHECK(!bh_paint_wanted(NULL, true, NULL, "dumb"));
    CHECK(!bh_paint_wanted(NULL, true, NULL, NULL));
    CHECK(bh_paint_wanted("always", false, "1", "dumb"));
    CHECK(!bh_paint_wanted("never", true, NULL, "xterm"));
}

TEST(no_terminal_is_a_hundred_columns)
{
    CHECK_EQ(bh_paint_width(-1), 100);
}

TEST(control_sequences_are_shown_not_obeyed)
{
    CHECK_TEXT(bh_text_add(&b, "a\x1b[2Jb\r\n"), "a\\x1b[2Jb\\x0d\\x0a");
    CHECK_TEXT(bh_text_add(&b, "\xc2\x9b"
                               "31m"),
               "\\xc2\\x9b31m");
    CHECK_TEXT(bh_text_add(&b, "\x7f"), "\\x7f");
    /* what turns or hides the text around it: right-to-left override, zero width space, byte order mark, tags */
    CHECK_TEXT(bh_text_add(&b, "a\xe2\x80\xae"
                               "b\xe2\x80\x8b\xef\xbb\xbf"),
               "a\\u202eb\\u200b\\ufeff");
    CHECK_TEXT(bh_text_add(&b, "\xe2\x81\xa6\xf3\xa0\x81\x81\xc2\xad"), "\\u2066\\ue0041\\u00ad");
    CHECK_TEXT(bh_text_add(&b, "B\xc3\xbcro \xe2\x80\xa6 \xf0\x9f\x9a\xa2"),
               "B\xc3\xbcro \xe2\x80\xa6 \xf0\x9f\x9a\xa2");
    CHECK_TEXT(bh_text_add(&b, "\xc3"), "\\xc3");
    CHECK_TEXT(bh_text_add(&b, "\xed\xa0\x80"), "\\xed\\xa0\\x80");
    CHECK_TEXT(bh_text_add(&b, "\xf8\x88"), "\\xf8\\x88");
}

/* Whatever the bytes, nothing a terminal acts on comes out. */
TEST(any_bytes_come_out_harmless)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint8_t bytes[48];
        char text[49] = "";
        struct bh_buf b;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (size_t i = 0; i < sizeof(bytes); i++)
            text[i] = (char)(bytes[i] ? bytes[i] : 1);
        bh_buf_init(&b, 1 << 12);
        bh_text_add(&b, text);
        bool clean = true;
        for (size_t i = 0; i < b.n; i++) {
            unsigned char c = (unsigned char)b.at[i];
            clean &= c >= 0x20 && c != 0x7f && !(c == 0xc2 && (unsigned char)b.at[i + 1] < 0xa0);
        }
        bh_buf_fini(&b);
        if (!clean)
            printf("# seed %" PRIu64 "\n", seed);
        CHECK(clean);
    }
}

TEST(paint_wraps_the_text)
{
    CHECK_TEXT(bh_paint_add(&b, true, BH_PAINT_RED, "error"), "\x1b[1;31merror\x1b[0m");
    CHECK_TEXT(bh_paint_add(&b, false, BH_PAINT_RED, "error"), "error");
    CHECK_TEXT(bh_paint_add(&b, true, BH_PAINT_PLAIN, "x"), "x");
}

TEST(lines_are_filled_and_indented)
{
    CHECK_TEXT(bh_text_wrap(&b, "one two three four", 0, 2, 9), "one two\n  three\n  four\n");
    CHECK_TEXT(bh_text_wrap(&b, "  spaced \n out ", 0, 0, 40), "spaced out\n");
    CHECK_TEXT(bh_text_wrap(&b, "averyveryverylongword x", 4, 4, 10), "averyveryverylongword\n    x\n");
    CHECK_TEXT(bh_text_wrap(&b, "", 0, 0, 40), "\n");
    CHECK_TEXT(bh_text_wrap(&b, "\xc3\xa4\xc3\xa4 \xc3\xb6", 0, 0, 4), "\xc3\xa4\xc3\xa4 \xc3\xb6\n");
}

TEST(blocks_keep_their_lines)
{
    CHECK_TEXT(bh_text_block(&b, "a:\n  b\n\nc", 2), "  a:\n    b\n\n  c\n");
    CHECK_TEXT(bh_text_block(&b, "", 2), "");
}

TEST(shell_words_read_back_the_same)
{
    CHECK_TEXT(bh_text_shell(&b, "policy.yaml"), "policy.yaml");
    CHECK_TEXT(bh_text_shell(&b, "a b"), "'a b'");
    CHECK_TEXT(bh_text_shell(&b, "it's"), "'it'\\''s'");
    CHECK_TEXT(bh_text_shell(&b, "'"), "''\\'''");
    CHECK_TEXT(bh_text_shell(&b, ""), "''");
    CHECK_TEXT(bh_text_shell(&b, "$(x)"), "'$(x)'");
}

TEST_MAIN
