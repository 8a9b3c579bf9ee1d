/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/rm/extent.h"

#include "base/choice.h"
#include "base/test.h"

TEST(the_lowest_range_that_fits_is_taken)
{
    struct bh_extents e;
    uint64_t a, b, c, d;
    bh_extents_init(&e, 100, 50);
    CHECK(bh_extents_take(&e, 10, &a) && bh_extents_take(&e, 10, &b) && bh_extents_take(&e, 10, &c));
    CHECK_EQ(a, 100);
    CHECK_EQ(b, 110);
    CHECK_EQ(c, 120);
    bh_extents_give(&e, a, 10);
    CHECK_EQ(e.free_bytes, 30);
    CHECK_EQ(bh_extents_largest(&e), 20);
    CHECK(bh_extents_take(&e, 15, &d));
    CHECK_EQ(d, 130);
    CHECK(bh_extents_take(&e, 5, &d));
    CHECK_EQ(d, 100);
    CHECK(!bh_extents_take(&e, 6, &d) && !bh_extents_take(&e, 0, &d));
    bh_extents_fini(&e);
}

TEST(neighbours_grow_together)
{
    struct bh_extents e;
    uint64_t a, b, c, at = 0, base, bytes;
    bh_extents_init(&e, 0, 30);
    CHECK(bh_extents_take(&e, 10, &a) && bh_extents_take(&e, 10, &b) && bh_extents_take(&e, 10, &c));
    CHECK_EQ(bh_extents_largest(&e), 0);
    bh_extents_give(&e, a, 10);
    bh_extents_give(&e, c, 10);
    bh_extents_give(&e, b, 10);
    CHECK(bh_extents_next(&e, &at, &base, &bytes));
    CHECK_EQ(base, 0);
    CHECK_EQ(bytes, 30);
    CHECK(!bh_extents_next(&e, &at, &base, &bytes));
    bh_extents_fini(&e);
}

/* Against an array of bytes: the address is the first fit, and the free ranges are the array's. */
TEST(it_agrees_with_an_array)
{
    enum { SIZE = 256, STEPS = 6000 };
    static uint8_t used[SIZE], draws[STEPS * 3];
    struct bh_choice c = {draws, sizeof(draws)};
    struct bh_extents e;
    bool same = true;
    memset(used, 0, sizeof(used));
    bh_choice_fill(draws, sizeof(draws), 9);
    bh_extents_init(&e, 0, SIZE);
    for (uint8_t id = 1; c.left;) {
        uint32_t want = 1 + bh_choose(&c, 20), at = bh_choose(&c, SIZE), first = SIZE;
        if (bh_choose(&c, 2)) {
            for (uint32_t i = 0, run = 0; i < SIZE && first == SIZE; i++) {
                run = used[i] ? 0 : run + 1;
                first = run == want ? i + 1 - want : SIZE;
            }
            uint64_t got = SIZE;
            same = same && bh_extents_take(&e, want, &got) == (first < SIZE) && got == first;
            if (first < SIZE)
                memset(used + first, id, want);
            id = (uint8_t)(id == 255 ? 1 : id + 1);
        } else if (used[at]) {
            uint32_t lo = at, hi = at;
            while (lo && used[lo - 1] == used[at])
                lo--;
            while (hi < SIZE && used[hi] == used[at])
                hi++;
            memset(used + lo, 0, hi - lo);
            bh_extents_give(&e, lo, hi - lo);
        }
        uint64_t n_free = 0, next = 0, base, bytes;
        while (bh_extents_next(&e, &next, &base, &bytes)) {
            for (uint64_t i = base; i < base + bytes; i++)
                same = same && !used[i];
            n_free += bytes;
            same = same && (base + bytes == SIZE || used[base + bytes]);
        }
        same = same && n_free == e.free_bytes;
    }
    bh_extents_fini(&e);
    CHECK(same);
}

TEST_MAIN
