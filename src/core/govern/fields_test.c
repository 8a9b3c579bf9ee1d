/* SPDX-License-Identifier: Apache-2.0 */
/* fields_test.c - every number of a struct is in its table once, at its own place, and bounds are held. */
#include "core/govern/fields.h"

#include "base/test.h"
#include "core/govern/govern.h"

static const struct {
    const struct bh_fields *fields;
    size_t numbers; /* that the struct has, without arrays */
} tables[] = {
    {&bh_govern_config_fields, sizeof(struct bh_govern_config) / sizeof(uint32_t)},
    {&bh_govern_in_fields, 3},
    {&bh_govern_asked_fields, 8},
    {&bh_govern_out_fields, 6},
    {&bh_govern_told_fields, 12},
};

TEST(no_field_is_forgotten_or_covers_another)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        const struct bh_fields *fs = tables[t].fields;
        CHECK_EQ(fs->n, tables[t].numbers);
        for (size_t i = 1; i < fs->n; i++)
            CHECK(fs->at[i].offset >= fs->at[i - 1].offset + fs->at[i - 1].size);
    }
}

TEST(what_is_put_is_got)
{
    struct bh_govern_told told = {0};
    for (size_t i = 0; i < bh_govern_told_fields.n; i++)
        bh_field_put(&bh_govern_told_fields.at[i], &told, i % 2);
    for (size_t i = 0; i < bh_govern_told_fields.n; i++)
        CHECK_EQ(bh_field_get(&bh_govern_told_fields.at[i], &told), i % 2);
    CHECK_EQ(told.slice_us, 1);
}

TEST(bounds_are_held)
{
    struct bh_govern_config c;
    struct bh_err err;
    bh_govern_config_default(&c);
    CHECK_EQ(bh_fields_check(&bh_govern_config_fields, &c, &err), 0);
    c.turn_us = 0;
    CHECK_EQ(bh_fields_check(&bh_govern_config_fields, &c, &err), BH_INVALID);
    CHECK_STR(err.msg, "turn_us is 0, not from 2000 to 1000000");
}

TEST_MAIN
