/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/ledger_walk.h"

#include "base/test.h"
#include "base/units.h"
#include "gpu/abi/rm.h"

enum { CLIENT = 0xc1d00001, OTHER, DEVICE = 0x5c000001, GROUP, FIRST, SECOND, COPY };

static struct bh_ledger *filled(void)
{
    struct bh_ledger *l = bh_ledger_new(BH_GIB);
    (void)bh_ledger_client(l, 100, 7, CLIENT);
    (void)bh_ledger_client(l, 101, 7, CLIENT); /* a child has the file too */
    (void)bh_ledger_client(l, 100, 8, OTHER);
    bh_ledger_object(l, &(struct bh_ledger_object){.client = CLIENT, .parent = CLIENT, .object = DEVICE});
    bh_ledger_object(l, &(struct bh_ledger_object){
                            .client = CLIENT, .parent = DEVICE, .object = GROUP, .gpu = UINT32_MAX});
    bh_ledger_object(
        l, &(struct bh_ledger_object){
               .client = CLIENT, .parent = DEVICE, .object = FIRST, .gpu = UINT32_MAX, .bytes = 2 * BH_MIB});
    bh_ledger_object(
        l, &(struct bh_ledger_object){
               .client = CLIENT, .parent = GROUP, .object = SECOND, .gpu = UINT32_MAX, .bytes = 4 * BH_MIB});
    bh_ledger_dup(
        l, &(struct bh_ledger_object){.client = OTHER, .parent = OTHER, .object = COPY, .gpu = UINT32_MAX},
        CLIENT, FIRST);
    return l;
}

static uint64_t sum(const struct bh_ledger_pieces *pieces)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < pieces->n; i++)
        bytes += pieces->at[i].bytes;
    return bytes;
}

TEST(memory_below_an_object_is_found_at_every_depth)
{
    struct bh_ledger *l = filled();
    struct bh_ledger_pieces p = {0};
    bh_ledger_pieces_below(l, CLIENT, SECOND, &p);
    CHECK(p.n == 1 && p.at[0].object == SECOND && p.at[0].names == 1 && p.at[0].gpu == 0);
    bh_ledger_pieces_below(l, CLIENT, DEVICE, &p); /* behind what was there */
    CHECK(p.n == 3 && sum(&p) == 10 * BH_MIB);
    p.n = 0;
    bh_ledger_pieces_below(l, CLIENT, CLIENT, &p);
    CHECK(p.n == 2 && sum(&p) == 6 * BH_MIB);
    p.n = 0;
    bh_ledger_pieces_below(l, CLIENT, 0xbad, &p);
    bh_ledger_pieces_below(l, 0xbad, DEVICE, &p);
    CHECK_EQ(p.n, 0);
    bh_vec_fini(&p);
    bh_ledger_free(l);
}

TEST(two_names_are_one_block)
{
    struct bh_ledger *l = filled();
    struct bh_ledger_pieces p = {0};
    bh_ledger_pieces_below(l, CLIENT, FIRST, &p);
    bh_ledger_pieces_below(l, OTHER, COPY, &p);
    CHECK(p.n == 2 && p.at[0].block == p.at[1].block && p.at[0].names == 2);
    bh_vec_fini(&p);
    bh_ledger_free(l);
}

TEST(a_file_of_two_processes_is_walked_once)
{
    struct bh_ledger *l = filled();
    struct bh_ledger_pieces p = {0};
    bh_ledger_pieces_of_file(l, 7, &p);
    CHECK(p.n == 2 && sum(&p) == 6 * BH_MIB);
    p.n = 0;
    bh_ledger_pieces_of_file(l, 8, &p);
    CHECK(p.n == 1 && p.at[0].object == COPY);
    p.n = 0;
    bh_ledger_pieces_of_file(l, 9, &p);
    CHECK_EQ(p.n, 0);
    bh_vec_fini(&p);
    bh_ledger_free(l);
}

static size_t count_runs(const struct bh_ledger *l, uint32_t class)
{
    struct bh_ledger_runs r = {0};
    size_t n = 0;
    bh_ledger_runs(l, &r);
    for (size_t i = 0; i < r.n; i++)
        n += r.at[i].class == class;
    bh_vec_fini(&r);
    return n;
}

static void copy_op(void *arg, const struct bh_ledger_op *op)
{
    CHECK(bh_ledger_apply(arg, op));
}

TEST(what_runs_is_found_and_its_changes_are_seen)
{
    struct bh_ledger *l = filled(), *copy = bh_ledger_new(BH_GIB);
    struct bh_ledger_runs r = {0};
    const uint64_t before = bh_ledger_runs_changed(l);
    bh_ledger_runs(l, &r);
    CHECK_EQ(r.n, 0);
    bh_ledger_object(l, &(struct bh_ledger_object){.client = CLIENT,
                                                   .parent = DEVICE,
                                                   .object = 0x77,
                                                   .class = RM_CLASS_CHANNEL_GROUP,
                                                   .gpu = UINT32_MAX});
    for (uint32_t i = 0; i < 2; i++)
        bh_ledger_object(l, &(struct bh_ledger_object){.client = CLIENT,
                                                       .parent = 0x77,
                                                       .object = 0x78 + i,
                                                       .class = RM_CLASS_CHANNEL_HOPPER,
                                                       .gpu = UINT32_MAX});
    CHECK(bh_ledger_runs_changed(l) != before);
    bh_ledger_runs(l, &r);
    CHECK_EQ(r.n, 3);
    for (size_t i = 0; i < r.n; i++)
        CHECK(r.at[i].client == CLIENT && r.at[i].gpu == 0 && r.at[i].file == 7 &&
              (r.at[i].pid == 100 || r.at[i].pid == 101));
    /* as the next warden finds it */
    bh_ledger_snapshot(l, (struct bh_ledger_log){copy_op, copy});
    CHECK_EQ(count_runs(copy, RM_CLASS_CHANNEL_HOPPER), 2);
    CHECK_EQ(count_runs(copy, RM_CLASS_CHANNEL_GROUP), 1);
    const uint64_t full = bh_ledger_runs_changed(l);
    bh_ledger_drop(l, CLIENT, FIRST);
    CHECK_EQ(bh_ledger_runs_changed(l), full); /* memory only */
    bh_ledger_drop(l, CLIENT, 0x79);
    CHECK(bh_ledger_runs_changed(l) != full && count_runs(l, RM_CLASS_CHANNEL_HOPPER) == 1);
    bh_ledger_drop(l, CLIENT, DEVICE);
    CHECK_EQ(count_runs(l, RM_CLASS_CHANNEL_HOPPER) + count_runs(l, RM_CLASS_CHANNEL_GROUP), 0);
    bh_vec_fini(&r);
    bh_ledger_free(copy);
    bh_ledger_free(l);
}

TEST(a_name_told_again_as_a_channel_is_one)
{
    struct bh_ledger *l = filled();
    const struct bh_ledger_object o = {.client = CLIENT,
                                       .parent = DEVICE,
                                       .object = GROUP,
                                       .class = RM_CLASS_CHANNEL_GROUP,
                                       .gpu = UINT32_MAX};
    const uint64_t before = bh_ledger_runs_changed(l);
    bh_ledger_object(l, &o);
    CHECK(bh_ledger_runs_changed(l) != before && count_runs(l, RM_CLASS_CHANNEL_GROUP) == 1);
    bh_ledger_free(l);
}

TEST(a_class_that_no_driver_has_is_not_the_one_it_ends_with)
{
    struct bh_ledger *l = filled();
    bh_ledger_object(l, &(struct bh_ledger_object){.client = CLIENT,
                                                   .parent = DEVICE,
                                                   .object = 0x77,
                                                   .class = 1 << 24 | RM_CLASS_CHANNEL_HOPPER,
                                                   .gpu = UINT32_MAX});
    CHECK(bh_ledger_has(l, CLIENT, 0x77));
    CHECK_EQ(count_runs(l, RM_CLASS_CHANNEL_HOPPER), 0);
    bh_ledger_free(l);
}

TEST(channels_of_every_generation)
{
    static const uint32_t are[] = {0xc36f, 0xc46f, 0xc56f, 0xc86f, 0xc96f, 0xca6f},
                          are_not[] = {0, RM_CLASS_CHANNEL_GROUP, RM_CLASS_MEMORY_LOCAL, 0xc86f006f};
    for (size_t i = 0; i < BH_COUNT_OF(are); i++)
        CHECK(bh_ledger_is_channel(are[i]));
    for (size_t i = 0; i < BH_COUNT_OF(are_not); i++)
        CHECK(!bh_ledger_is_channel(are_not[i]));
}

TEST_MAIN
