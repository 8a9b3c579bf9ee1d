/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state.h"

#include "store/state_fixture.h"
#include "store/state_inside.h"

TEST(notes_are_kept_replaced_listed_and_removed)
{
    struct fix f;
    struct bh_store_note note;
    bh_store_notes all = {0};
    fix_init(&f);
    CHECK_EQ(bh_store_note_get(f.s, &f.arena, "boot", &note, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_note_set_text(f.s, "boot", "one", &f.err), 0);
    CHECK_EQ(bh_store_note_set(f.s, "mig/GPU-1", "a\0b", 3, &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "mig/GPU-2", "", &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "mih", "x", &f.err), 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "boot", "two", &f.err), 0);
    CHECK_EQ(bh_store_note_get(f.s, &f.arena, "boot", &note, &f.err), 0);
    CHECK_STR(note.value, "two");
    CHECK_EQ(bh_store_notes_list(f.s, &f.arena, "mig/", &all, &f.err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_STR(all.at[0].key, "mig/GPU-1");
    CHECK_EQ(all.at[0].n, 3);
    CHECK_EQ(memcmp(all.at[0].value, "a\0b", 4), 0);
    CHECK_EQ(all.at[1].n, 0);
    CHECK_EQ(bh_store_note_remove(f.s, "boot", &f.err), 0);
    CHECK_EQ(bh_store_note_remove(f.s, "boot", &f.err), 0);
    CHECK_EQ(bh_store_note_get(f.s, &f.arena, "boot", &note, &f.err), BH_NOT_FOUND);
    all.n = 0;
    CHECK_EQ(bh_store_notes_list(f.s, &f.arena, "", &all, &f.err), 0);
    CHECK_EQ(all.n, 3);
    bh_vec_fini(&all);
    fix_fini(&f);
}

TEST(words_that_are_none_are_refused_both_ways)
{
    struct bh_err err = {0};
    const char *word;
    uint8_t value = 77;
    CHECK_EQ(bh_state_word(&bh_words_tier, 99, "tier", &word, &err), BH_INVALID);
    CHECK_STR(err.msg, "99 is no tier");
    CHECK_EQ(bh_state_value(&bh_words_tier, "cloud", "tier", &value, &err), BH_REFUSED);
    CHECK_EQ(bh_state_value(&bh_words_tier, NULL, "tier", &value, &err), BH_REFUSED);
    CHECK_EQ(value, 77);
    CHECK_EQ(bh_state_value(&bh_words_tier, "vm", "tier", &value, &err), 0);
    CHECK_EQ(value, BH_TIER_VM);
}

TEST_MAIN
