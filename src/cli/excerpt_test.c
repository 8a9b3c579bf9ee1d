/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"
#include "base/test.h"
#include "cli/excerpt.h"

#include <sys/stat.h>
#include <unistd.h>

/* The excerpt of one place in a file with this text. */
static void excerpt(const char *text, uint32_t line, uint32_t column, unsigned width, char *ret, size_t n)
{
    char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8];
    const char *files[1] = {path};
    struct bh_input in = {0};
    struct bh_excerpts e;
    struct bh_buf b;
    const bool done = bh_scratch_make(folder, sizeof(folder), "excerpt") &&
                      bh_scratch_put(folder, "p", text) && bh_scratch_path(path, sizeof(path), folder, "p");
    in.files.at = files;
    in.files.n = 1;
    bh_buf_init(&b, 1 << 16);
    bh_excerpts_init(&e, &in);
    bh_excerpt_add(&e, (struct bh_pos){0, line, column}, width, &b);
    (void)snprintf(ret, n, "%s", done ? bh_buf_text(&b) : "?");
    bh_excerpts_fini(&e);
    bh_buf_fini(&b);
    (void)bh_scratch_remove(folder);
}

#define CHECK_EXCERPT(text, line, column, want)              \
    do {                                                     \
        char got_[512];                                      \
        excerpt(text, line, column, 80, got_, sizeof(got_)); \
        CHECK_STR(got_, want);                               \
    } while (0)

TEST(the_caret_stands_under_the_place)
{
    CHECK_EXCERPT("a: 1\n  slo: x\n", 2, 3, "       2 |   slo: x\n         |   ^\n");
    CHECK_EXCERPT("a: 1", 1, 1, "       1 | a: 1\n         | ^\n");
    CHECK_EXCERPT("\tx\r\n", 1, 2, "       1 |  x\n         |  ^\n");
    CHECK_EXCERPT("\xc3\xa4\xc3\xb6: y\n", 1, 5, "       1 | \xc3\xa4\xc3\xb6: y\n         |     ^\n");
}

TEST(a_line_that_is_not_there_has_no_excerpt)
{
    CHECK_EXCERPT("a\n", 9, 1, "");
    CHECK_EXCERPT("a\n", 0, 1, "");
    CHECK_EXCERPT("", 1, 1, "       1 | \n         | ^\n");
}

TEST(a_long_line_shows_the_part_that_matters)
{
    char text[700], got[512];
    memset(text, 'x', sizeof(text));
    text[600] = '!';
    text[699] = '\0';
    excerpt(text, 1, 601, 80, got, sizeof(got));
    char *mark = strchr(got, '!'), *line2 = strchr(got, '\n');
    CHECK(mark && line2 && strlen(got) < 250);
    CHECK_EQ(mark - got, strchr(line2, '^') - (line2 + 1));
}

TEST(control_sequences_in_the_file_are_shown)
{
    CHECK_EXCERPT("\x1b[2J\n", 1, 1, "       1 | \\x1b[2J\n         | ^\n");
}

TEST(pipes_and_lost_files_are_passed_over)
{
    char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8];
    const char *files[2] = {path, "-"};
    struct bh_input in = {0};
    struct bh_excerpts e;
    struct bh_buf b;
    CHECK(bh_scratch_make(folder, sizeof(folder), "excerpt"));
    CHECK(bh_scratch_path(path, sizeof(path), folder, "pipe") && mkfifo(path, 0600) == 0);
    in.files.at = files;
    in.files.n = 2;
    bh_buf_init(&b, 1 << 10);
    bh_excerpts_init(&e, &in);
    bh_excerpt_add(&e, (struct bh_pos){0, 1, 1}, 80, &b);
    bh_excerpt_add(&e, (struct bh_pos){1, 1, 1}, 80, &b);
    bh_excerpt_add(&e, (struct bh_pos){7, 1, 1}, 80, &b);
    size_t n = b.n;
    bh_excerpts_fini(&e);
    bh_buf_fini(&b);
    CHECK_EQ(n, 0);
    CHECK(bh_scratch_remove(folder));
}

TEST_MAIN
