/* SPDX-License-Identifier: Apache-2.0 */
#include "base/idmap.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/test.h"

TEST(an_empty_map_answers)
{
    struct bh_idmap m = {0};
    CHECK_EQ(bh_idmap_find(&m, 7), BH_IDMAP_NONE);
    CHECK(!bh_idmap_remove(&m, 7));
    bh_idmap_fini(&m);
}

TEST(a_key_is_kept_once)
{
    struct bh_idmap m = {.seed = 3};
    CHECK(bh_idmap_add(&m, 0, 5) && !bh_idmap_add(&m, 0, 6));
    CHECK_EQ(bh_idmap_find(&m, 0), 5);
    CHECK(bh_idmap_remove(&m, 0) && !bh_idmap_remove(&m, 0));
    CHECK_EQ(bh_idmap_find(&m, 0), BH_IDMAP_NONE);
    CHECK_EQ(m.n, 0);
    bh_idmap_fini(&m);
}

/* Against a plain array over a small space of keys, where removals leave many holes. */
TEST(it_agrees_with_an_array)
{
    enum { KEYS = 200, STEPS = 20000 };
    uint32_t truth[KEYS];
    uint8_t *bytes = bh_alloc(STEPS * 3, 1);
    struct bh_choice c = {bytes, STEPS * 3};
    struct bh_idmap m = {.seed = 11};
    bool same = true;
    memset(truth, 0xff, sizeof(truth));
    bh_choice_fill(bytes, STEPS * 3, 42);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t k = bh_choose(&c, KEYS);
        if (bh_choose(&c, 2)) {
            same = same && bh_idmap_add(&m, (uint64_t)k << 32, i) == (truth[k] == BH_IDMAP_NONE);
            truth[k] = truth[k] == BH_IDMAP_NONE ? i : truth[k];
        } else {
            same = same && bh_idmap_remove(&m, (uint64_t)k << 32) == (truth[k] != BH_IDMAP_NONE);
            truth[k] = BH_IDMAP_NONE;
        }
        same = same && bh_idmap_find(&m, (uint64_t)k << 32) == truth[k];
    }
    size_t n = 0;
    for (uint32_t k = 0; k < KEYS; k++) {
        same = same && bh_idmap_find(&m, (uint64_t)k << 32) == truth[k];
        n += truth[k] != BH_IDMAP_NONE;
    }
    free(bytes);
    size_t left = m.n;
    bh_idmap_fini(&m);
    CHECK(same);
    CHECK_EQ(left, n);
}

TEST_MAIN
