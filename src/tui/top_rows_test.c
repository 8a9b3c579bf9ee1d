/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/top_fixture.h"

static bh_top_rows rows;
static struct bh_arena arena;

static void make(const struct bh_top_data *d, const struct bh_top_state *s, enum bh_top_view v)
{
    bh_top_rows_make(d, s, v, FIX_NOW_MS, &arena, &rows);
}

TEST(rows_of_each_view)
{
    struct bh_top_data d = fix_data(8);
    const struct bh_top_state s = {.ascii = true};
    make(&d, &s, BH_TOP_WORK);
    CHECK_EQ(rows.n, 2);
    CHECK_STR(rows.at[1].id, "J2");
    CHECK_STR(rows.at[1].cells[3].text, "0.5");
    CHECK_STR(rows.at[1].cells[4].text, "1m");
    CHECK_STR(rows.at[1].cells[8].text, "no room: 1 GPU is needed, 0.25 are free");
    CHECK_EQ(rows.at[1].cells[2].style, BH_STYLE_WARN);
    make(&d, &s, BH_TOP_GPUS);
    CHECK_EQ(rows.n, 8);
    CHECK_STR(rows.at[2].cells[3].text, "-");
    CHECK_STR(rows.at[2].cells[4].text, "?/79G");
    CHECK_STR(rows.at[4].cells[1].text, "H100 80GB HBM3");
    CHECK_STR(rows.at[5].cells[9].text, "...");
    CHECK_EQ(rows.at[3].cells[2].style, BH_STYLE_BAD);
    make(&d, &s, BH_TOP_SLICES);
    CHECK_EQ(rows.n, 2);
    CHECK_STR(rows.at[0].id, "L3");
    CHECK_STR(rows.at[1].id, "0"); /* nobody's: its card */
    CHECK_STR(rows.at[1].cells[8].text, "the canary was there");
    make(&d, &s, BH_TOP_TENANTS);
    CHECK_EQ(rows.n, 2);
    CHECK(rows.at[0].id == NULL);
    CHECK_STR(rows.at[1].cells[7].text, "nothing reserved");
    bh_top_data_fini(&d);
}

TEST(filtered_and_sorted)
{
    struct bh_top_data d = fix_data(8);
    struct bh_top_state s = {.filter = "BLUE"};
    make(&d, &s, BH_TOP_WORK);
    CHECK_EQ(rows.n, 1);
    CHECK_STR(rows.at[0].id, "J2");
    s = (struct bh_top_state){
        .sort = {[BH_TOP_WORK] = 2, [BH_TOP_GPUS] = 4}}; /* tenant; use, the greatest first */
    make(&d, &s, BH_TOP_WORK);
    CHECK_STR(rows.at[0].id, "J2");
    make(&d, &s, BH_TOP_GPUS);
    CHECK_STR(rows.at[0].id, "7");
    CHECK_STR(rows.at[7].id, "2"); /* the one that is not known */
    bh_top_data_fini(&d);
}

TEST(the_past_is_kept_to_its_length)
{
    struct bh_top_data d = fix_data(1);
    for (int i = 0; i < 2 * BH_TOP_PAST; i++) {
        fix_gpu[0].util_percent = (uint64_t)i % 101;
        bh_top_remember(&d);
    }
    CHECK_EQ(d.past.n, 1);
    CHECK_EQ(d.past.at[0].n, BH_TOP_PAST);
    CHECK_EQ(d.past.at[0].util[BH_TOP_PAST - 1], (2 * BH_TOP_PAST - 1) % 101);
    bh_top_data_fini(&d);
    bh_vec_fini(&rows);
    bh_arena_fini(&arena);
}

TEST_MAIN
