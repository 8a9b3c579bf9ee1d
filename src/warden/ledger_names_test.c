/* SPDX-License-Identifier: Apache-2.0 */
/* Every name finds its object and no other, however many there are and whatever went meanwhile. */
#include "base/test.h"
#include "warden/ledger_state.h"

enum { N = 3000, STEPS = 40000 };

static struct bh_ledger *with_objects(uint32_t n, uint64_t seed)
{
    struct bh_ledger *l = bh_ledger_new(1);
    bh_ledger_seed(l, seed);
    for (uint32_t i = 0; i < n; i++)
        *bh_vec_push(&l->objects) = (struct ledger_object){.client = i % 7, .handle = i / 7};
    return l;
}

TEST(an_empty_one_finds_nothing)
{
    struct bh_ledger *l = with_objects(1, 0);
    CHECK_EQ(ledger_name_find(l, 0, 0), LEDGER_NONE);
    ledger_name_remove(l, 0);
    CHECK_EQ(l->names.n, 0);
    ledger_name_add(l, 0);
    CHECK_EQ(ledger_name_find(l, 0, 0), 0);
    CHECK_EQ(ledger_name_find(l, 0, 1), LEDGER_NONE);
    CHECK_EQ(ledger_name_find(l, 1, 0), LEDGER_NONE);
    ledger_name_remove(l, 0);
    ledger_name_remove(l, 0);
    CHECK_EQ(l->names.n, 0);
    bh_ledger_free(l);
}

static size_t wrong(const struct bh_ledger *l, const bool *in)
{
    size_t n = 0;
    for (uint32_t i = 0; i < N; i++)
        n += ledger_name_find(l, i % 7, i / 7) != (in[i] ? i : LEDGER_NONE);
    return n;
}

TEST(what_went_is_gone_and_all_else_is_found)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct bh_ledger *l = with_objects(N, seed);
        bool in[N] = {0};
        uint64_t r = seed + 1;
        size_t n = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            r = bh_idmap_mix(r);
            const uint32_t i = (uint32_t)(r % N);
            if (in[i])
                ledger_name_remove(l, i);
            else
                ledger_name_add(l, i);
            n = in[i] ? n - 1 : n + 1;
            in[i] = !in[i];
            CHECK_EQ(l->names.n, n);
            if (step % 1000 == 0)
                CHECK_EQ(wrong(l, in), 0);
        }
        CHECK_EQ(wrong(l, in), 0);
        CHECK(l->names.cap >= 2 * n && l->names.cap <= 4 * N);
        bh_ledger_free(l);
    }
}

/* Most share a place with others before there is much room, and the last object that can be has the largest number. */
TEST(the_last_object_that_can_be_is_found)
{
    const uint32_t last = LEDGER_OBJECTS_MAX + LEDGER_CLIENTS_MAX - 1;
    struct bh_ledger *l = with_objects(last + 1, 9);
    ledger_name_add(l, last);
    ledger_name_add(l, 5);
    CHECK_EQ(ledger_name_find(l, last % 7, last / 7), last);
    CHECK_EQ(ledger_name_find(l, 5, 0), 5);
    ledger_name_remove(l, last);
    CHECK_EQ(ledger_name_find(l, last % 7, last / 7), LEDGER_NONE);
    CHECK_EQ(ledger_name_find(l, 5, 0), 5);
    bh_ledger_free(l);
}

TEST_MAIN
