/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/table.h"

#include "base/mem.h"
#include "base/test.h"

static struct bh_table opened(const char *text)
{
    struct bh_table t;
    bh_table_open(&t, "t.csv", text, strlen(text), ',');
    return t;
}

TEST(rows_and_cells)
{
    struct bh_table t = opened("a,b\r\n\n,x,\nlast");
    struct bh_err err;
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(t.n_cells, 2);
    CHECK(bh_cell_eq(bh_table_cell(&t, 1), "b"));
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(t.line, 3);
    CHECK_EQ(t.n_cells, 3);
    CHECK_EQ(bh_table_cell(&t, 0).n, 0);
    CHECK(bh_cell_eq(bh_table_cell(&t, 1), "x"));
    CHECK_EQ(bh_table_cell(&t, 9).n, 0);
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK(bh_cell_eq(bh_table_cell(&t, 0), "last"));
    CHECK_EQ(bh_table_next(&t, &err), 0);
    CHECK_EQ(bh_table_next(&t, &err), 0);
}

TEST(a_header_finds_columns_by_name)
{
    static const char *const names[] = {"b", "a", "maybe"};
    struct bh_table t = opened("a,other,b\n");
    uint32_t place[3];
    struct bh_err err;
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(bh_table_header(&t, names, 3, 2, place, &err), BH_OK);
    CHECK_EQ(place[0], 2);
    CHECK_EQ(place[1], 0);
    CHECK_EQ(place[2], BH_TABLE_NOWHERE);
    CHECK_EQ(bh_table_header(&t, names, 3, 3, place, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:1: needs a row of names with a column 'maybe', begins with 'a'");
    t = opened("a,b,a\n");
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(bh_table_header(&t, names, 2, 2, place, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:5: needs each column once, has 'a' again");
}

TEST(numbers_say_where_they_are_wrong)
{
    static const char *const wrong[] = {
        "x", "-1", "1.5", "11", "2", "", " 5", "5 ", "99999999999999999999999", "+5"};
    struct bh_err err;
    uint64_t v = 77;
    for (size_t i = 0; i < BH_COUNT_OF(wrong); i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "1,%s", wrong[i]);
        struct bh_table t = opened(text);
        CHECK_EQ(bh_table_next(&t, &err), 1);
        CHECK_EQ(bh_table_uint(&t, 1, "gpus", 3, 10, &v, &err), BH_INVALID);
        CHECK(strstr(err.msg, "t.csv:1:3: gpus needs a whole number from 3 to 10, is '") == err.msg);
        CHECK_EQ(v, 77);
    }
    struct bh_table t = opened("10");
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(bh_table_uint(&t, 0, "gpus", 3, 10, &v, &err), BH_OK);
    CHECK_EQ(v, 10);
    CHECK_EQ(bh_table_uint(&t, 1, "gpus", 3, 10, &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:3: needs a cell for gpus, the row ends here");
}

TEST(seconds_drop_what_is_less)
{
    struct bh_table t = opened("251674.999999,7,1e3,100.5");
    struct bh_err err;
    uint64_t v;
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(bh_table_seconds(&t, 0, "arrival", 1000000, &v, &err), BH_OK);
    CHECK_EQ(v, 251674);
    CHECK_EQ(bh_table_seconds(&t, 1, "arrival", 8, &v, &err), BH_OK);
    CHECK_EQ(v, 7);
    CHECK_EQ(bh_table_seconds(&t, 2, "arrival", 8, &v, &err), BH_INVALID);
    CHECK_EQ(bh_table_seconds(&t, 3, "arrival", 100, &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:21: arrival needs seconds such as 251674.000000, below 100, is '100.5'");
}

TEST(names_are_printable)
{
    struct bh_table t = opened("ok name,\x1b[31m,");
    struct bh_cell c;
    struct bh_err err;
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(bh_table_name(&t, 0, "sn", &c, &err), BH_OK);
    CHECK(bh_cell_eq(c, "ok name"));
    CHECK_EQ(bh_table_name(&t, 1, "sn", &c, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:9: sn needs 1 to 256 printable characters, is '?[31m'");
    CHECK_EQ(bh_table_name(&t, 2, "sn", &c, &err), BH_INVALID);
}

TEST(bounds_are_said)
{
    struct bh_err err;
    char *text = bh_alloc(BH_TABLE_LINE_BYTES + 3, 1);
    memset(text, 'a', BH_TABLE_LINE_BYTES + 1);
    struct bh_table t = opened(text);
    CHECK_EQ(bh_table_next(&t, &err), BH_INVALID);
    CHECK_STR(err.msg, "t.csv:1:1: needs a line of at most 8192 bytes, has 8193");
    memset(text, ',', BH_TABLE_CELLS);
    text[BH_TABLE_CELLS - 1] = '\0';
    t = opened(text);
    CHECK_EQ(bh_table_next(&t, &err), 1);
    CHECK_EQ(t.n_cells, BH_TABLE_CELLS);
    text[BH_TABLE_CELLS - 1] = ',';
    text[BH_TABLE_CELLS] = '\0';
    t = opened(text);
    CHECK_EQ(bh_table_next(&t, &err), BH_INVALID);
    CHECK(strstr(err.msg, "needs at most 32 cells, has more"));
    free(text);
}

TEST_MAIN
