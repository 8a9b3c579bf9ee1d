/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/own.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

static struct bh_own own;
static struct bh_own_sum sum;

static void say(uint64_t now_ms, const char *text)
{
    bh_own_take(&own, now_ms, text, strlen(text));
}

TEST(what_is_done_becomes_a_rate_after_a_second)
{
    bh_own_init(&own, 10000);
    CHECK(!bh_own_sum(&own, 10000, &sum));
    say(10000, "done 128\n");
    CHECK(bh_own_sum(&own, 10500, &sum) && !sum.has_rate);
    for (uint64_t ms = 10100; ms <= 12000; ms += 100)
        say(ms, "done 128\n");
    CHECK(bh_own_sum(&own, 12000, &sum) && sum.has_rate);
    CHECK_EQ(sum.rate_milli, 21 * 128 * 1000 / 2);
    CHECK(sum.done == 21 * 128 && sum.lines == 21 && sum.garbage == 0);
    CHECK_EQ(sum.p50_us, BH_OWN_NONE);
}

TEST(the_rate_follows_the_last_seconds_and_ends)
{
    bh_own_init(&own, 0);
    for (uint64_t ms = 0; ms < 20000; ms += 50)
        say(ms, ms < 10000 ? "done 10\n" : "done 5\n");
    CHECK(bh_own_sum(&own, 20000, &sum));
    CHECK(sum.rate_milli >= 95000 && sum.rate_milli <= 105000);
    CHECK(bh_own_sum(&own, 24000, &sum) && sum.rate_milli < 40000);
    CHECK(!bh_own_sum(&own, 26000, &sum) && !sum.has_rate);
    CHECK_EQ(sum.done, 200 * 10 + 200 * 5); /* ever */
    say(100000, "done 7\n");                /* after a silence it begins anew */
    say(101000, "done 7\n");
    CHECK(bh_own_sum(&own, 101000, &sum));
    CHECK_EQ(sum.rate_milli, 14000);
}

TEST(latencies_have_a_median_and_a_tail)
{
    bh_own_init(&own, 0);
    for (int i = 0; i < 98; i++)
        say(10, "latency 412us\n");
    say(10, "latency 3ms\nlatency 3000000ns\n");
    CHECK(bh_own_sum(&own, 20, &sum));
    CHECK_EQ(sum.n_latencies, 100);
    CHECK(sum.p50_us >= 400 && sum.p50_us <= 424);
    CHECK(sum.p99_us >= 2900 && sum.p99_us <= 3100);
    CHECK(!sum.has_rate);
}

TEST(small_ones_are_exact_and_the_largest_has_a_place)
{
    static const struct {
        const char *text;
        uint32_t least, most;
    } at[] = {{"latency 0us\n", 0, 0},
              {"latency 499ns\n", 0, 0},
              {"latency 500ns\n", 1, 1},
              {"latency 15us\n", 15, 15},
              {"latency 31us\n", 31, 31},
              {"latency 4294967295us\n", 4100000000, UINT32_MAX - 1},
              {"latency 4294s\n", 4100000000, UINT32_MAX - 1}};
    for (size_t i = 0; i < BH_COUNT_OF(at); i++) {
        bh_own_init(&own, 0);
        say(0, at[i].text);
        CHECK(bh_own_sum(&own, 0, &sum));
        CHECK(sum.p50_us >= at[i].least && sum.p50_us <= at[i].most);
    }
}

TEST(what_is_not_a_line_of_ours_is_counted_and_nothing_else)
{
    static const char *const odd[] = {"\n",
                                      "done\n",
                                      "done \n",
                                      "done -1\n",
                                      "done 1.5\n",
                                      "done  1\n",
                                      " done 1\n",
                                      "done 1 \n",
                                      "DONE 1\n",
                                      "done 1\r\n",
                                      "done 0x10\n",
                                      "done 1000000000001\n",
                                      "latency 5\n",
                                      "latency us\n",
                                      "latency 5m\n",
                                      "latency 5uss\n",
                                      "rate 5\n",
                                      "latency 4295s\n",
                                      "done 18446744073709551617\n",
                                      "done 000000000000000000000000000000000000000000001\n"};
    bh_own_init(&own, 0);
    for (size_t i = 0; i < BH_COUNT_OF(odd); i++)
        say(0, odd[i]);
    CHECK(!bh_own_sum(&own, 0, &sum));
    CHECK(sum.garbage == BH_COUNT_OF(odd) && sum.done == 0 && sum.n_latencies == 0);
    bh_own_take(&own, 0, "done 3\0\ndone 4\n", 15);
    CHECK(bh_own_sum(&own, 0, &sum));
    CHECK(sum.garbage == BH_COUNT_OF(odd) + 1 && sum.done == 4);
}

TEST(sums_end_at_their_bounds)
{
    bh_own_init(&own, 0);
    for (int i = 0; i < 1000; i++)
        say(0, "done 1000000000000\n");
    CHECK(bh_own_sum(&own, 2000, &sum) && sum.has_rate);
    CHECK(sum.done == 1000 * BH_OWN_MOST && sum.rate_milli == BH_OWN_MOST * 500);
    for (uint64_t slot = 4; slot < 14; slot++)
        say(slot * BH_OWN_SLOT_MS, "done 1000000000000\n");
    CHECK(bh_own_sum(&own, 6999, &sum));
    CHECK(sum.rate_milli >= BH_OWN_MOST * 1990 && sum.rate_milli <= BH_OWN_MOST * 2010);
}

TEST_MAIN
