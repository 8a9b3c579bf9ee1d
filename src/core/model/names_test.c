/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/choice.h"
#include "base/test.h"
#include "core/model/policy.h"

static void join(void *ctx, const char *name)
{
    bh_buf_printf(ctx, "%s ", name);
}

static void join_gpu(void *ctx, const char *node, uint32_t index)
{
    bh_buf_printf(ctx, "%s:%u ", node, index);
}

static void count(void *ctx, const char *name)
{
    (void)name;
    *(size_t *)ctx += 1;
}

static void count_gpu(void *ctx, const char *node, uint32_t index)
{
    (void)node;
    (void)index;
    *(size_t *)ctx += 1;
}

struct row {
    const char *pattern, *names; /* each name followed by a blank; NULL: refused */
};

static bool rows_hold(const struct row *rows, size_t n, bool gpus)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        struct bh_buf out BH_AUTO(bh_buf_fini);
        struct bh_err err = {0};
        bh_buf_init(&out, 1 << 16);
        int rc = gpus ? bh_gpus_expand(rows[i].pattern, 1000, join_gpu, &out, &err)
                      : bh_nodes_expand(rows[i].pattern, 1000, join, &out, &err);
        const char *got = rc ? NULL : bh_buf_text(&out);
        bool same = !got || !rows[i].names ? got == rows[i].names : strcmp(got, rows[i].names) == 0;
        if (rc && (rc != BH_INVALID || out.n || !err.msg[0]))
            same = false; /* a refused pattern hands out nothing and says why */
        if (!same)
            printf("# '%s' gives '%s' (%s)\n", rows[i].pattern, got ? got : "a refusal", err.msg);
        good &= same;
    }
    return good;
}

TEST(node_patterns)
{
    static const struct row rows[] = {
        {"gpu-01", "gpu-01 "},
        {"gpu-[01-04]", "gpu-01 gpu-02 gpu-03 gpu-04 "},
        {"gpu-[1,3]", "gpu-1 gpu-3 "},
        {"gpu-[1-2,7]x", "gpu-1x gpu-2x gpu-7x "},
        {"gpu-[1, 3-4]", "gpu-1 gpu-3 gpu-4 "},
        {"a,b", "a b "},
        {"a, b", "a b "},
        {"a[1-2],b,c[07]", "a1 a2 b c07 "},
        {"[1-3]", "1 2 3 "},
        {"[8-11]", "8 9 10 11 "},
        {"n[08-11]", "n08 n09 n10 n11 "},
        {"n[098-101]", "n098 n099 n100 n101 "},
        {"n[98-101]", "n98 n99 n100 n101 "},
        {"n[000]", "n000 "},
        {"n[0-0]", "n0 "},
        {"n[5-5]", "n5 "},
        {"Node_1.example", "Node_1.example "},
        {"rack-[1-2].gpu.example", "rack-1.gpu.example rack-2.gpu.example "},
        {"a,a", "a a "},
        {"n[000000000000000001-000000000000000002]", "n000000000000000001 n000000000000000002 "},
    };
    CHECK(rows_hold(rows, BH_COUNT_OF(rows), false));
}

TEST(malformed_node_patterns_are_refused)
{
    static const char *const bad[] = {
        "",
        ",",
        "a,",
        ",a",
        "a,,b",
        "a, ",
        "gpu-[",
        "gpu-]",
        "gpu-[]",
        "gpu-[1",
        "gpu-1]",
        "gpu-[1]]",
        "gpu-[[1]]",
        "gpu-[1-[2]]",
        "a[1]b[2]",
        "a[1][2]",
        "gpu-[4-1]",
        "gpu-[1-]",
        "gpu-[-1]",
        "gpu-[-]",
        "gpu-[1--2]",
        "gpu-[1-2-3]",
        "gpu-[1,]",
        "gpu-[,1]",
        "gpu-[a-b]",
        "gpu-[1 2]",
        "gpu-[ 1]",
        "gpu-[001-10]",
        "gpu-[1-010]",
        "gpu 1",
        "gpu-*",
        "gpu-?",
        "gpu/1",
        "gpu-1:0",
        "\xff",
        "\x1b[31m",
        "gpu-[1-9999999999999999999]",
        "gpu-[99999999999999999999999999999999999]",
        "gpu-[0x1-0x2]",
        "gpu-[1.5]",
    };
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        struct row row = {bad[i], NULL};
        CHECK(rows_hold(&row, 1, false));
    }
}

TEST(refusals_say_what_is_wrong)
{
    static const struct row rows[] = {
        {"gpu-[4-1]", "'gpu-[4-1]': a range runs backwards"},
        {"a[[1]]", "'a[[1]]': brackets do not nest"},
        {"a[1]b[2]", "'a[1]b[2]': only one pair of brackets is allowed in a name"},
        {"a[1", "'a[1': a bracket is not closed"},
        {"a1]", "'a1]': a bracket closes that was not opened"},
        {"a[]", "'a[]': a number or a range like 1-4 is needed"},
        {"a[1-]", "'a[1-]': a range has no end"},
        {"a[001-10]", "'a[001-10]': both ends of a range must be padded alike"},
        {"a[1,]", "'a[1,]': a comma has nothing behind it"},
        {"a b", "'a b': a node name takes letters, digits, '-', '.' and '_'"},
        {"", "'': a name is empty"},
        {"a[1-9999999999999999999]", "'a[1-9999999999999999999]': a number is too long"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        struct bh_err err;
        size_t n = 0;
        CHECK_EQ(bh_nodes_expand(rows[i].pattern, 100, count, &n, &err), BH_INVALID);
        CHECK_STR(err.msg, rows[i].names);
    }
}

TEST(the_maximum_costs_nothing_to_keep)
{
    static const char *const large[] = {
        "gpu-[1-99999999999]",
        "gpu-[1-999999999999999999]",
        "a[1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,"
        "1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,"
        "1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,"
        "1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999,"
        "1-999999999999999999,1-999999999999999999,1-999999999999999999,1-999999999999999999]",
        "gpu-[0-1000]",
        "a[1-500],b[1-501]",
    };
    for (size_t i = 0; i < BH_COUNT_OF(large); i++) {
        struct bh_err err;
        size_t n = 0;
        CHECK_EQ(bh_nodes_expand(large[i], 1000, count, &n, &err), BH_TOO_LARGE);
        CHECK(strstr(err.msg, "more than 1000") != NULL);
        CHECK_EQ(n, 0);
    }
    struct bh_err err;
    size_t n = 0;
    CHECK_EQ(bh_nodes_expand("gpu-[1-1000]", 1000, count, &n, &err), BH_OK);
    CHECK_EQ(n, 1000);
    CHECK_EQ(bh_nodes_expand("gpu-[1-99999999999]", 10, count, &n, &err), BH_TOO_LARGE);
    CHECK_STR(err.msg, "'gpu-[1-99999999999]' names 99999999999 nodes, more than 10");
    /* a maximum of none checks a pattern and hands out nothing */
    CHECK_EQ(bh_nodes_expand("a", 0, NULL, NULL, NULL), BH_TOO_LARGE);
    CHECK_EQ(bh_nodes_expand("a[", 0, NULL, NULL, NULL), BH_INVALID);
    CHECK_EQ(bh_gpus_expand("a:0", 0, NULL, NULL, NULL), BH_TOO_LARGE);
    CHECK_EQ(bh_gpus_expand("a", 0, NULL, NULL, NULL), BH_INVALID);
}

TEST(names_have_a_longest)
{
    char pattern[400];
    size_t n = 0;
    memset(pattern, 'a', sizeof(pattern));
    pattern[253] = '\0';
    CHECK_EQ(bh_nodes_expand(pattern, 10, count, &n, NULL), BH_OK);
    pattern[253] = 'a';
    pattern[254] = '\0';
    CHECK_EQ(bh_nodes_expand(pattern, 10, count, &n, NULL), BH_INVALID);
    memcpy(pattern + 246, "[1-2]xx", 8);
    CHECK_EQ(bh_nodes_expand(pattern, 10, count, &n, NULL), BH_INVALID);
    CHECK_EQ(n, 1);
}

TEST(gpu_patterns)
{
    static const struct row rows[] = {
        {"gpu-01:1", "gpu-01:1 "},
        {"gpu-01:0-3", "gpu-01:0 gpu-01:1 gpu-01:2 gpu-01:3 "},
        {"gpu-[01-02]:0,2-3", "gpu-01:0 gpu-01:2 gpu-01:3 gpu-02:0 gpu-02:2 gpu-02:3 "},
        {"a,b:7", "a:7 b:7 "},
        {"a:4294967295", "a:4294967295 "},
        {"a", NULL},
        {":0", NULL},
        {"a:", NULL},
        {"a:b", NULL},
        {"a:0-", NULL},
        {"a:3-0", NULL},
        {"a:0,b:1", NULL},
        {"a:0:1", NULL},
        {"a:[0-3]", NULL},
        {"a:4294967296", NULL},
        {"a[1:2]:3", NULL},
        {"a[0]]:3", NULL},
        {"a:0 1", NULL},
        {"a:-1", NULL},
        {"", NULL},
    };
    CHECK(rows_hold(rows, BH_COUNT_OF(rows), true));
}

TEST(gpu_patterns_are_bounded_as_a_whole)
{
    struct bh_err err;
    size_t n = 0;
    CHECK_EQ(bh_gpus_expand("gpu-[1-100]:0-7", 800, count_gpu, &n, &err), BH_OK);
    CHECK_EQ(n, 800);
    CHECK_EQ(bh_gpus_expand("gpu-[1-100]:0-7", 799, count_gpu, &n, &err), BH_TOO_LARGE);
    CHECK_STR(err.msg, "'gpu-[1-100]:0-7' names 800 GPUs, more than 799");
    CHECK_EQ(bh_gpus_expand("g[1-999999999999999999]:0-4294967295", 999, count_gpu, &n, &err), BH_TOO_LARGE);
    CHECK_EQ(n, 800);
}

/* A pattern made from known names gives those names back. */
TEST(patterns_made_from_names_give_the_names)
{
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_buf pattern BH_AUTO(bh_buf_fini), expected BH_AUTO(bh_buf_fini), got BH_AUTO(bh_buf_fini);
        bh_choice_fill(bytes, sizeof(bytes), seed);
        bh_buf_init(&pattern, 4096);
        bh_buf_init(&expected, 1 << 16);
        bh_buf_init(&got, 1 << 16);
        for (uint32_t piece = 0, n = 1 + bh_choose(&c, 3); piece < n; piece++) {
            const char *tail = bh_choose(&c, 2) ? ".x" : "";
            bh_buf_printf(&pattern, "%sn%u-[", piece ? "," : "", piece);
            for (uint32_t k = 0, ranges = 1 + bh_choose(&c, 3); k < ranges; k++) {
                int width = (int)bh_choose(&c, 5);
                uint32_t lo = bh_choose(&c, 120), hi = lo + bh_choose(&c, 12);
                int digits = snprintf(NULL, 0, "%0*u", width, lo);
                bh_buf_printf(&pattern, "%s%0*u", k ? "," : "", width, lo);
                if (hi > lo || bh_choose(&c, 2))
                    bh_buf_printf(&pattern, "-%0*u", digits, hi);
                for (uint32_t i = lo; i <= hi; i++)
                    bh_buf_printf(&expected, "n%u-%0*u%s ", piece, digits, i, tail);
            }
            bh_buf_printf(&pattern, "]%s", tail);
        }
        struct bh_err err = {0};
        if (bh_nodes_expand(bh_buf_text(&pattern), 1000, join, &got, &err))
            CHECK_STR(bh_buf_text(&pattern), err.msg);
        CHECK_STR(bh_buf_text(&got), bh_buf_text(&expected));
    }
}

TEST_MAIN
