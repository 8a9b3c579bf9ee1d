/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/ledger_walk.h"

#include "base/test.h"
#include "base/units.h"

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

TEST_MAIN
