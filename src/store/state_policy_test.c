/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_policy.h"

#include "store/state_fixture.h"

TEST(one_policy_is_in_force_and_all_are_kept)
{
    struct fix f;
    struct bh_store_policy p = {
        .text = "v1", .n = 2, .sha256 = {1}, .who = "ada", .why = "first", .at_ms = 5};
    bh_store_policies all = {0};
    const struct bh_store_page newest = {.newest = true};
    uint64_t first = 0, second = 0;
    fix_init(&f);
    CHECK_EQ(bh_store_policy_get(f.s, &f.arena, 0, &p, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_policy_apply(f.s, &p, &first, &f.err), 0);
    p.text = "v2 \xc3\xa4";
    p.sha256[0] = 2;
    CHECK_EQ(bh_store_policy_apply(f.s, &p, &second, &f.err), 0);
    p.text = NULL;
    CHECK_EQ(bh_store_policy_apply(f.s, &p, &second, &f.err), BH_INVALID);
    CHECK_EQ(bh_store_policy_get(f.s, &f.arena, 0, &p, &f.err), 0);
    CHECK_EQ(p.id, second);
    CHECK_STR(p.text, "v2 \xc3\xa4");
    CHECK_EQ(p.n, 5);
    CHECK_EQ(p.sha256[0], 2);
    CHECK(p.active);
    CHECK_EQ(bh_store_policy_get(f.s, &f.arena, first, &p, &f.err), 0);
    CHECK(!p.active);
    CHECK_STR(p.who, "ada");
    CHECK_EQ(bh_store_policy_get(f.s, &f.arena, 99, &p, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_policies_list(f.s, &f.arena, &newest, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_EQ(all.at[0].id, second);
    CHECK(all.at[0].text == NULL);
    CHECK_EQ(all.at[0].n, 5);
    CHECK_EQ(bh_store_policies_list(f.s, &f.arena, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 4);
    CHECK_EQ(all.at[2].id, first);
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST_MAIN
