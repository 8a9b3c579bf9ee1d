/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/stated.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/test.h"

static int64_t scan(const char *text)
{
    uint64_t milli = 0;
    return bh_stated_scan(text, &milli, 1) ? (int64_t)milli : -1;
}

TEST(numbers_that_count_devices)
{
    CHECK_EQ(scan("limits to five GPUs"), 5000);
    CHECK_EQ(scan("This quota limits the namespace to five"), 5000);
    CHECK_EQ(scan("limits the whole research team to 5"), 5000);
    CHECK_EQ(scan("the quota of the whole research team is 5"), -1);
    CHECK_EQ(scan("limited to 5"), 5000);
    CHECK_EQ(scan("at most eight"), 8000);
    CHECK_EQ(scan("max. 3"), 3000);
    CHECK_EQ(scan("Up to 8."), 8000);
    CHECK_EQ(scan("guaranteed: 4 whole H100 GPUs"), 4000);
    CHECK_EQ(scan("0.5 GPU for each of them"), 500);
    CHECK_EQ(scan("1.125 gpus"), 1125);
    CHECK_EQ(scan("4x GPU"), 4000);
    CHECK_EQ(scan("a five-GPU allowance"), 5000);
    CHECK_EQ(scan("7 MIG slices"), 7000);
    CHECK_EQ(scan("(six) cards"), 6000);
    CHECK_EQ(scan("zero devices"), 0);
    CHECK_EQ(scan("no more than **2** replicas"), 2000);
}

TEST(numbers_in_words)
{
    CHECK_EQ(scan("twenty GPUs"), 20000);
    CHECK_EQ(scan("twenty-five GPUs"), 25000);
    CHECK_EQ(scan("Forty Two GPUs"), 42000);
    CHECK_EQ(scan("one hundred GPUs"), 100000);
    CHECK_EQ(scan("a hundred GPUs"), 100000);
    CHECK_EQ(scan("nineteen instances"), 19000);
}

TEST(every_such_number_is_found_in_order)
{
    static const struct {
        const char *text;
        size_t n;
        uint64_t milli[3];
    } cases[] = {
        {"at least 2 GPUs, at most 4", 2, {2000, 4000}},
        {"8-GPU nodes; 16 GPUs in total", 2, {8000, 16000}},
        {"twenty five GPUs", 1, {25000}},
        {"Up to 7 MIG slices and 2 whole GPUs.", 2, {7000, 2000}},
        {"two dozen GPUs or a dozen cards", 2, {24000, 12000}},
        {"1 GPU, 2 GPUs, 3 GPUs, 4 GPUs", 3, {1000, 2000, 3000}},
        {"1.5x of last year's 2 GPUs", 0, {0}},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        uint64_t milli[3];
        CHECK_EQ(bh_stated_scan(cases[i].text, milli, 3), cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++)
            CHECK_EQ(milli[k], cases[i].milli[k]);
    }
    struct bh_stated st = {0};
    CHECK(bh_stated_read("8-GPU nodes; 16 GPUs in total", &st));
    CHECK_EQ(st.milli, 8000);
    CHECK_EQ(st.n_also, 1);
    CHECK_EQ(st.also[0], 16000);
    CHECK(!bh_stated_read("no number of GPUs", &st));
    CHECK(bh_stated_read("1 GPU 2 GPU 3 GPU 4 GPU 5 GPU 6 GPU 7 GPU 8 GPU 9 GPU", &st));
    CHECK_EQ(st.n_also, BH_STATED_ALSO_MAX);
}

TEST(years)
{
    CHECK_EQ(scan("Q3 2026 GPU budget"), -1);
    CHECK_EQ(scan("2026 GPU budget: 8 GPUs"), 8000);
    CHECK_EQ(scan("GPU quota for 2026"), -1);
    CHECK_EQ(scan("quota March 2026 GPU plan"), -1);
    CHECK_EQ(scan("at most 2000 GPUs"), 2000000);
    CHECK_EQ(scan("3000 GPUs"), 3000000);
    CHECK_EQ(scan("two thousand GPUs"), -1);
}

TEST(the_first_such_number_wins)
{
    CHECK_EQ(scan("8 GPUs, later 16 GPUs"), 8000);
    CHECK_EQ(scan("50% of the time, at most 2 GPUs"), 2000);
    CHECK_EQ(scan("for 3 teams: 6 GPUs"), 6000);
}

TEST(other_numbers_are_not_taken)
{
    static const char *const none[] = {
        "",
        "   ",
        "GPUs",
        "limit of 20 GiB of GPU memory",
        "limit 80GB per GPU",
        "p99 within 50ms on the GPU",
        "max 50 ms",
        "max 30 days",
        "up to 50% of the GPU",
        "quota agreed 2026-12-31 for GPU use",
        "GPU driver 580 allowed",
        "needs driver 580.159.03 on GPUs",
        "1g.18gb slices",
        "profile 3g.71gb instances",
        "200 GPU hours",
        "8 GPU-hours a week",
        "two teams share the GPUs",
        "20 per GPU",
        "see issue 12 for the GPU plan",
        "#12 GPU",
        "-5 GPUs",
        "$4 GPU",
        "1234567890123456789012345678901234567890 GPUs",
        "each one gets a GPU",
        "It is 5. GPUs are shared.",
        "a cap. 5 rules",
        "v2 GPU",
        "max 12 pods",
    };
    for (size_t i = 0; i < BH_COUNT_OF(none); i++) {
        if (scan(none[i]) != -1)
            printf("# taken for a count: %s\n", none[i]);
        CHECK_EQ(scan(none[i]), -1);
    }
}

TEST(any_text_ends)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        static const char *const parts[] = {"5", " ",       "gpu", "max",  ".",  "twenty",
                                            "-", "hundred", "per", "GiB",  "%",  "(",
                                            "x", "\n",      "one", "\xff", "0.", "limit"};
        uint8_t bytes[64];
        char text[512] = "";
        size_t n = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        while (c.left) {
            const char *p = parts[bh_choose(&c, BH_COUNT_OF(parts))];
            memcpy(text + n, p, strlen(p) + 1);
            n += strlen(p);
        }
        uint64_t milli = UINT64_MAX;
        if (bh_stated_scan(text, &milli, 1))
            CHECK(milli <= UINT64_C(1000000000000));
        else
            CHECK(milli == UINT64_MAX);
    }
}

TEST_MAIN
