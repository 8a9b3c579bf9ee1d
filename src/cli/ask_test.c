/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "base/test.h"
#include "cli/ask.h"

static int is_yes_or_no(const char *answer, struct bh_err *err)
{
    if (bh_str_eq(answer, "yes") || bh_str_eq(answer, "no"))
        return BH_OK;
    return bh_fail(err, BH_USAGE, "'%.20s' is neither", answer);
}

static const struct bh_question question = {"Sure?", "(yes or no)", "no", is_yes_or_no};
static char answer[BH_ANSWER_MAX], said[4096];

static int ask(const char *typed, size_t n)
{
    FILE *in = fmemopen((void *)(uintptr_t)typed, n, "r"), *talk = fmemopen(said, sizeof(said), "w");
    answer[0] = '\0';
    int rc = bh_ask(in, talk, false, &question, 2, 4, answer, NULL);
    fclose(in);
    fclose(talk);
    return rc;
}

TEST(an_answer_is_taken_without_its_blanks)
{
    CHECK_EQ(ask("  yes \r\n", 8), 0);
    CHECK_STR(answer, "yes");
    CHECK_STR(said, "2/4 Sure? (yes or no) [no] ");
}

TEST(an_empty_line_is_the_default)
{
    CHECK_EQ(ask("\n", 1), 0);
    CHECK_STR(answer, "no");
}

TEST(a_wrong_answer_is_asked_again)
{
    CHECK_EQ(ask("ys\nno", 5), 0);
    CHECK_STR(answer, "no");
    CHECK(strstr(said, "'ys' is neither\n2/4 Sure?"));
}

TEST(the_end_of_the_input_is_no_answer)
{
    CHECK_EQ(ask("maybe\n", 6), BH_USAGE);
    CHECK_STR(answer, "");
}

TEST(what_was_typed_is_shown_harmless)
{
    CHECK_EQ(ask("\x1b[2J\nyes\n", 9), 0);
    CHECK(!strchr(said, '\x1b'));
}

TEST(a_line_too_long_is_refused_whole)
{
    char typed[600];
    memset(typed, 'y', sizeof(typed));
    (void)snprintf(typed + 590, sizeof(typed) - 590, "\nno\n");
    CHECK_EQ(ask(typed, strlen(typed)), 0);
    CHECK_STR(answer, "no");
    CHECK(strstr(said, "longer than 255 characters"));
}

TEST(only_a_yes_is_one)
{
    static const struct {
        const char *typed;
        int rc;
    } cases[] = {{"y\n", BH_OK},       {" YES \n", BH_OK},     {"\n", BH_REFUSED},
                 {"no\n", BH_REFUSED}, {"yess\n", BH_REFUSED}, {"", BH_REFUSED}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char typed[16], asked[64] = "";
        (void)snprintf(typed, sizeof(typed), "%s", cases[i].typed);
        FILE *in = *typed ? fmemopen(typed, strlen(typed), "r") : fopen("/dev/null", "re");
        FILE *talk = fmemopen(asked, sizeof(asked), "w");
        CHECK(in && talk);
        CHECK_EQ(bh_confirm(in, talk, true, "Do it?", NULL), cases[i].rc);
        fclose(in);
        fclose(talk);
        CHECK_STR(asked, "Do it? [y/N] ");
    }
    struct bh_err err;
    CHECK_EQ(bh_confirm(stdin, stdout, false, "Do it?", &err), BH_USAGE);
    CHECK(strstr(err.msg, "--yes"));
}

TEST_MAIN
