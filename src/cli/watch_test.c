/* SPDX-License-Identifier: Apache-2.0 */
/* watch_test.c - screens; that they follow the daemon's events: tests/cli/remote.py. */
#include "cli/watch.h"

#include "base/test.h"

static struct bh_buf out;

static const char *frame(const char *text, unsigned rows, bool dim)
{
    bh_buf_fini(&out);
    bh_buf_init(&out, 1 << 16);
    bh_watch_frame(&out, "now", text, rows, dim);
    return bh_buf_text(&out);
}

#define END "\x1b[K\n"

TEST(lines_are_written_over_and_what_is_left_is_cleared)
{
    CHECK_STR(frame("one\ntwo\n", 24, false), "\x1b[Hnow" END "one" END "two" END "\x1b[J");
    CHECK_STR(frame("", 24, false), "\x1b[Hnow" END "\x1b[J");
    CHECK_STR(frame("no end", 24, false), "\x1b[Hnow" END "no end" END "\x1b[J");
}

TEST(no_more_than_fits)
{
    CHECK_STR(frame("one\ntwo\nthree\nfour\n", 5, false),
              "\x1b[Hnow" END "one" END "two" END "and 2 more lines" END "\x1b[J");
    CHECK_STR(frame("one\ntwo\nthree\n", 5, false), "\x1b[Hnow" END "one" END "two" END "three" END "\x1b[J");
    CHECK_STR(frame("one\ntwo\n", 1, false), "\x1b[Hnow" END "and 2 more lines" END "\x1b[J");
}

TEST(words_of_lists)
{
    uint64_t n;
    CHECK_EQ(bh_watch_words(NULL, "", NULL, &n, NULL), 0);
    CHECK_EQ(n, 200);
    CHECK_EQ(bh_watch_words("5", NULL, "json", &n, NULL), 0);
    CHECK_EQ(n, 5);
    CHECK_EQ(bh_watch_words("0", NULL, NULL, &n, NULL), BH_USAGE);
    CHECK_EQ(bh_watch_words("x", NULL, NULL, &n, NULL), BH_USAGE);
    CHECK_EQ(bh_watch_words("9999999", NULL, NULL, &n, NULL), BH_USAGE);
    CHECK_EQ(bh_watch_words(NULL, "", "json", &n, NULL), BH_USAGE);
}

TEST(what_is_old_is_dim)
{
    CHECK_STR(frame("one\n", 24, true), "\x1b[Hnow" END "\x1b[2mone\x1b[0m" END "\x1b[J");
    bh_buf_fini(&out);
}

TEST_MAIN
