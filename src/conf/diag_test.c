/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/diag.h"

#include "base/test.h"

TEST(errors_and_notes_in_order)
{
    struct bh_diags d = {0};
    bh_diag_note(&d, (struct bh_pos){1, 2, 3}, "n%d", 1);
    bh_diag_error(&d, (struct bh_pos){4, 5, 6}, "e%s", "1");
    bh_diag_note_once(&d, (struct bh_pos){0, 1, 1}, "n1");
    bh_diag_note_once(&d, (struct bh_pos){0, 1, 1}, "n2");
    bh_diag_note_once(&d, (struct bh_pos){0, 9, 9}, "n2");
    bh_diag_note_once(&d, (struct bh_pos){0, 1, 1}, "e1");
    CHECK_EQ(d.at.n, 4);
    CHECK_EQ(d.n_errors, 1);
    CHECK(!bh_diags_full(&d));
    CHECK(!d.cut);
    CHECK_STR(d.at.at[0].message, "n1");
    CHECK(d.at.at[1].is_error);
    CHECK_EQ(d.at.at[1].pos.file, 4);
    CHECK_STR(d.at.at[2].message, "n2");
    CHECK_STR(d.at.at[3].message, "e1");
    CHECK(!d.at.at[3].is_error);
    bh_diags_fini(&d);
    CHECK_EQ(d.at.n, 0);
}

TEST(a_flood_of_one_does_not_hide_the_other)
{
    struct bh_diags d = {0};
    for (int i = 0; i < 3 * BH_DIAGS_MAX; i++)
        bh_diag_note_once(&d, (struct bh_pos){0}, "note %d", i);
    CHECK(d.cut);
    CHECK_EQ(d.at.n, BH_DIAGS_MAX);
    for (int i = 0; i < 3 * BH_DIAGS_MAX; i++)
        bh_diag_error(&d, (struct bh_pos){0}, "error %d", i);
    CHECK_EQ(d.n_errors, BH_DIAGS_MAX);
    CHECK_EQ(d.at.n, 2 * BH_DIAGS_MAX);
    CHECK(bh_diags_full(&d));
    bh_diags_fini(&d);
}

TEST(a_long_message_is_cut)
{
    struct bh_diags d = {0};
    char text[4000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    bh_diag_error(&d, (struct bh_pos){0}, "%s", text);
    CHECK_EQ(strlen(d.at.at[0].message), 1023);
    bh_diags_fini(&d);
}

TEST_MAIN
