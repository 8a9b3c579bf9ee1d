/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "base/test.h"

static struct bh_arena arena;
static struct bh_cli cli;

static void begin(bool is_terminal, unsigned width, bool paint)
{
    bh_buf_fini(&cli.out);
    cli = (struct bh_cli){.is_terminal = is_terminal, .width = width, .paint_out = paint};
    bh_buf_init(&cli.out, 1u << 16);
}

static void fill(struct bh_table *t)
{
    static const char *const heads[] = {"JOB", "STATE", "WHY"};
    bh_table_init(t, &arena, heads, 3);
    bh_table_add(t, "J1");
    bh_table_paint(t, "running", BH_PAINT_GREEN);
    bh_table_add(t, NULL);
    bh_table_add(t, "J\x1b[1m");
    bh_table_add(t, "");
    bh_table_add(t, "a reason that is rather long, \xc3\xa9t cetera");
}

TEST(columns_are_as_wide_as_they_must_be)
{
    struct bh_table t;
    begin(false, 40, false);
    fill(&t);
    bh_table_write(&t, &cli, 1);
    CHECK_STR(bh_buf_text(&cli.out), " JOB       STATE    WHY\n"
                                     " J1        running  -\n"
                                     " J\\x1b[1m  -        a reason that is rather long, \xc3\xa9t cetera\n");
    bh_table_fini(&t);
}

TEST(a_terminal_gets_no_wider_line)
{
    struct bh_table t;
    begin(true, 40, true);
    fill(&t);
    bh_table_write(&t, &cli, 0);
    CHECK(strstr(bh_buf_text(&cli.out), "\x1b[32mrunning\x1b[0m  -\n"));
    CHECK(strstr(bh_buf_text(&cli.out), "  a reason that is r...\n"));
    bh_table_fini(&t);
}

TEST(amounts)
{
    const struct {
        const char *got, *want;
    } cases[] = {
        {bh_say_gpus(&arena, 0), "0 GPUs"},
        {bh_say_gpus(&arena, 500), "0.5 GPU"},
        {bh_say_gpus(&arena, 1000), "1 GPU"},
        {bh_say_gpus(&arena, 2500), "2.5 GPUs"},
        {bh_say_memory(&arena, 20480), "20 GiB"},
        {bh_say_memory(&arena, 0), "0 MiB"},
        {bh_say_memory(&arena, UINT64_MAX - 1), "16777216 TiB"},
        {bh_say_count(&arena, 12), "12"},
        {bh_say_time(&arena, 0), "1970-01-01 00:00:00Z"},
        {bh_say_time(&arena, UINT64_C(1763218862000)), "2025-11-15 15:01:02Z"},
        {bh_say_time(&arena, UINT64_MAX - 1), "never"},
        {bh_say_span(&arena, 999), "0s"},
        {bh_say_span(&arena, 59999), "59s"},
        {bh_say_span(&arena, 60000), "1m"},
        {bh_say_span(&arena, 3600000), "1h"},
        {bh_say_span(&arena, 7500000), "2h 5m"},
        {bh_say_span(&arena, 356400000), "4d 3h"},
        {bh_say_since(&arena, 5000, 9000), "0s"},
        {bh_say_fixed(&arena, 5400000000, 3600000000), "1.500"},
        {bh_say_fixed(&arena, 1, 3600000000), "0.000"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        CHECK_STR(cases[i].got, cases[i].want);
    CHECK(!bh_say_gpus(&arena, UINT64_MAX) && !bh_say_memory(&arena, UINT64_MAX) &&
          !bh_say_time(&arena, UINT64_MAX) && !bh_say_span(&arena, UINT64_MAX) &&
          !bh_say_count(&arena, UINT64_MAX));
}

TEST(facts_are_folded_for_eyes_only)
{
    begin(true, 40, false);
    bh_fact(&cli, "state", "one two three four five six seven eight");
    bh_fact(&cli, "nothing", NULL);
    bh_heading(&cli, "Head");
    CHECK_STR(bh_buf_text(&cli.out),
              "state      one two three four five six\n           seven eight\n\nHead\n");
    begin(false, 40, false);
    bh_fact(&cli, "state", "one two three four five six seven eight");
    CHECK_STR(bh_buf_text(&cli.out), "state      one two three four five six seven eight\n");
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
}

TEST_MAIN
