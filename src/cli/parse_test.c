/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/test.h"
#include "cli/cli.h"

enum { OPT_FLEET, OPT_OUTPUT, OPT_RUNS, OPT_FORCE };
static const char *const formats[] = {"text", "json", NULL};
static const char *const runs[] = {"training", "serving", NULL};
static const struct bh_opt opts[] = {
    [OPT_FLEET] = {"fleet", 'f', BH_OPT_FILE, "FILE", NULL, "x"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", formats, "x"},
    [OPT_RUNS] = {"runs", 0, BH_OPT_WORDS, "WORDS", runs, "x"},
    [OPT_FORCE] = {"force", 0, BH_OPT_FLAG, NULL, NULL, "x"},
    {0},
};
static const struct bh_cmd cmd = {
    .name = "judge", .operands = "FILE", .min_operands = 1, .max_operands = 2, .opts = opts};

static struct bh_cli cli;
static struct bh_err err;

/* Parse the words of a line. */
static int parse(const char *line, bool stop)
{
    static char copy[256];
    static char *argv[16];
    int argc = 0;
    (void)snprintf(copy, sizeof(copy), "judge %s", line);
    for (char *s = copy; *s && argc < 15;) {
        argv[argc++] = s;
        s += strcspn(s, " ");
        while (*s == ' ')
            *s++ = '\0';
    }
    argv[argc] = NULL;
    cli = (struct bh_cli){0};
    err = (struct bh_err){0};
    return bh_cli_parse(&cli, &cmd, argc, argv, stop, &err);
}

TEST(options_and_operands_may_mix)
{
    CHECK_EQ(parse("a.yaml --fleet f.yaml -ojson b.yaml --force", false), 0);
    CHECK_STR(cli.value[OPT_FLEET], "f.yaml");
    CHECK_STR(cli.value[OPT_OUTPUT], "json");
    CHECK_STR(cli.value[OPT_FORCE], "");
    CHECK(cli.value[OPT_RUNS] == NULL);
    CHECK_EQ(cli.n_operands, 2);
    CHECK_STR(cli.operands[1], "b.yaml");
}

TEST(a_dash_is_an_operand_and_two_end_the_options)
{
    CHECK_EQ(parse("- -- --fleet", false), 0);
    CHECK_STR(cli.operands[0], "-");
    CHECK_STR(cli.operands[1], "--fleet");
}

TEST(common_options_are_known_everywhere)
{
    CHECK_EQ(parse("--color=never a", false), 0);
    CHECK_STR(cli.color, "never");
    CHECK_EQ(parse("-h", false), 0);
    CHECK(cli.want_help);
}

TEST(a_slip_is_answered_with_the_right_word)
{
    CHECK(parse("a --feet x", false) < 0);
    CHECK_STR(err.msg, "no option '--feet'; did you mean '--fleet'?");
    CHECK(parse("a --flet=x", false) < 0);
    CHECK_STR(err.msg, "no option '--flet'; did you mean '--fleet'?");
    CHECK(parse("a -o jsn", false) < 0);
    CHECK_STR(err.msg, "--output: 'jsn' is not one of text, json; did you mean 'json'?");
    CHECK(parse("a --zzzzzzzz", false) < 0);
    CHECK_STR(err.msg, "no option '--zzzzzzzz'; see bulkhead judge --help");
    CHECK(parse("a -z", false) < 0);
    CHECK_STR(err.msg, "no option '-z'; see bulkhead judge --help");
    CHECK_EQ(err.code, BH_USAGE);
}

TEST(values_are_asked_for)
{
    CHECK(parse("a --fleet", false) < 0);
    CHECK_STR(err.msg, "option '--fleet' needs a FILE");
    CHECK(parse("a -o", false) < 0);
    CHECK_STR(err.msg, "option '-o' needs a FORMAT");
    CHECK(parse("a --force=1", false) < 0);
    CHECK_STR(err.msg, "option '--force' takes no value");
}

TEST(lists_are_checked_word_by_word)
{
    CHECK_EQ(parse("a --runs training,serving", false), 0);
    CHECK(parse("a --runs training,sering", false) < 0);
    CHECK_STR(err.msg, "--runs: 'sering' is not one of training, serving; did you mean 'serving'?");
    CHECK(parse("a --runs training,", false) < 0);
    CHECK(parse("a --runs ,", false) < 0);
}

TEST(operands_are_counted)
{
    CHECK(parse("", false) < 0);
    CHECK_STR(err.msg, "judge needs FILE; see bulkhead judge --help");
    CHECK(parse("a b c", false) < 0);
    CHECK_STR(err.msg, "judge: 'c' is one word too many; see bulkhead judge --help");
}

TEST(what_follows_the_first_operand_can_be_left_alone)
{
    CHECK_EQ(parse("-o json verb --unknown -x", true), 0);
    CHECK_EQ(cli.n_operands, 3);
    CHECK_STR(cli.operands[0], "verb");
}

TEST_MAIN
