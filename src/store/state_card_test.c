/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(a_card_is_found_again_with_what_is_known_of_it)
{
    struct fix f;
    struct bh_store_card card = {
        .uuid = GPU_A, .model = "H200", .index = 5, .memory_mib = 1000, .seen_ms = 9};
    bh_store_cards all = {0};
    fix_init(&f);
    CHECK_EQ(bh_store_card_cordon(f.s, GPU_A, 50, "op", "hot", &f.err), 0);
    CHECK_EQ(bh_store_card_health(f.s, GPU_A, BH_CARD_SUSPECT, 60, "xid 79", &f.err), 0);
    CHECK_EQ(bh_store_card_put(f.s, &card, &f.err), 0);
    CHECK_EQ(bh_store_card_get(f.s, &f.arena, GPU_A, &card, &f.err), 0);
    CHECK_STR(card.model, "H200");
    CHECK_EQ(card.index, 5);
    CHECK_EQ(card.cordoned_ms, 50);
    CHECK_STR(card.cordon_by, "op");
    CHECK_STR(card.cordon_why, "hot");
    CHECK_EQ(card.health, BH_CARD_SUSPECT);
    CHECK_EQ(card.health_ms, 60);
    CHECK_STR(card.health_why, "xid 79");
    CHECK_EQ(bh_store_card_uncordon(f.s, GPU_A, &f.err), 0);
    CHECK_EQ(bh_store_card_get(f.s, &f.arena, GPU_A, &card, &f.err), 0);
    CHECK_EQ(card.cordoned_ms, 0);
    /* its whole slice is as large as it is */
    CHECK_EQ(number(f.s, "SELECT mib FROM slices WHERE gpu = 'GPU-aaaa'"), 1000);
    CHECK_EQ(bh_store_cards_list(f.s, &f.arena, &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_STR(all.at[0].uuid, GPU_B);
    CHECK_STR(all.at[1].uuid, GPU_A);
    CHECK_STR(bh_card_health_str(BH_CARD_BAD), "bad");
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST(what_cannot_be_is_refused)
{
    struct fix f;
    struct bh_store_card card = {.uuid = GPU_B, .model = "", .memory_mib = 10};
    fix_init(&f);
    CHECK_EQ(bh_store_card_cordon(f.s, "GPU-x", 1, "", "", &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_card_uncordon(f.s, "GPU-x", &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_card_health(f.s, "GPU-x", BH_CARD_OK, 1, "", &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_card_health(f.s, GPU_A, BH_CARD_HEALTHS, 1, "", &f.err), BH_INVALID);
    CHECK_EQ(bh_store_card_get(f.s, &f.arena, "GPU-x", &card, &f.err), BH_NOT_FOUND);
    CHECK(fix_active(&f, "red", share_of(GPU_B, "", ""), 100, 5000));
    card = (struct bh_store_card){.uuid = GPU_B, .memory_mib = 10};
    CHECK_EQ(bh_store_card_put(f.s, &card, &f.err), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "card 'GPU-bbbb': shares that are given"));
    card.uuid = "";
    CHECK_EQ(bh_store_card_put(f.s, &card, &f.err), BH_INVALID);
    card.uuid = NULL;
    CHECK(bh_store_card_put(f.s, &card, &f.err) < 0);
    fix_fini(&f);
}

TEST_MAIN
