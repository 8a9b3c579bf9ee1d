/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants that take turns on a card of the model, and what can be told of each by the accounts. */
#include "governor/tally.h"

#include "core/govern/card_fixture.h"
#include "core/govern/culprit.h"

enum { SAMPLES = 96, HOG = 900, OTHER = 100, SETTLED_MS = 5000 };

static struct {
    struct world *world;
    struct bh_tally_card card;
    struct bh_tally tally;
    struct bh_governed leases[BH_TALLY_LEASES];
    int64_t done_ns[BH_TALLY_LEASES];
    struct bh_culprit_sample samples[BH_CULPRIT_SAMPLES];
    uint32_t looks;
} w;

static void begin(uint32_t n)
{
    memset(&w, 0, sizeof(w));
    w.world = world_new(0, 0);
    w.world->card.by_turns = true;
    for (uint32_t i = 0; i < n; i++)
        w.leases[i].id = world_add(w.world, CARD_SYNC, 100, 0)->asked.id;
    world_run(w.world, SETTLED_MS);
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        for (uint32_t r = 0; r < BH_CULPRIT_RESOURCES; r++)
            w.samples[s].level[r] = BH_CULPRIT_UNKNOWN;
        for (uint32_t i = 0; i < BH_TALLY_LEASES; i++)
            w.samples[s].at[i] =
                (struct bh_culprit_use){BH_CULPRIT_UNKNOWN, BH_CULPRIT_UNKNOWN, BH_CULPRIT_UNKNOWN};
    }
}

/* A step of the governor. Is an account closed? */
static bool step(uint32_t n)
{
    world_step(w.world);
    const uint32_t us = w.world->in.elapsed_us;
    bh_tally_begin(&w.card, us);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t done = w.world->card.at[w.world->at[i].on_card].done_ns;
        const struct bh_sense_got got = {.gpu_ns = (uint64_t)(done - w.done_ns[i])};
        w.done_ns[i] = done;
        bh_tally_add(&w.card, &w.leases[i], us, &w.world->out.at[i], &got);
    }
    return bh_tally_end(&w.card, (uint64_t)w.world->card.now_ns, false, &w.tally);
}

/* What the card's memory shows of it: the first one's use is high. */
static void take_sample(uint32_t s)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < w.tally.n; i++) {
        const uint32_t part = w.tally.at[i].gpu_permille;
        w.samples[s].at[i] = (struct bh_culprit_use){part, BH_CULPRIT_UNKNOWN, 1000};
        level += part * (i ? OTHER : HOG) / 1000;
    }
    w.samples[s].level[BH_CULPRIT_DRAM] = level;
}

/* Of n who share alike and of whom nobody ever leaves: how many are told apart. */
static uint32_t told_apart(uint32_t n, uint32_t *ret_looks_in_10_s)
{
    static struct bh_culprit_levels levels;
    const struct bh_culprit_in in = {.n_tenants = n, .n_samples = BH_CULPRIT_SAMPLES, .samples = w.samples};
    uint32_t told = 0;
    begin(n);
    const int64_t from_ns = w.world->card.now_ns;
    for (uint32_t s = 0; s < SAMPLES;) {
        if (!step(n))
            continue;
        w.looks++;
        if (!w.tally.fresh)
            take_sample(s++);
    }
    *ret_looks_in_10_s = (uint32_t)(w.looks * INT64_C(10000000000) / (w.world->card.now_ns - from_ns));
    bh_culprit_levels(&in, &levels);
    for (uint32_t i = 0; i < n; i++)
        told += levels.told_apart[BH_CULPRIT_DRAM][i];
    printf("# %u by turns: %u told apart, %u looks in 10 s\n", n, told, *ret_looks_in_10_s);
    world_free(w.world);
    return told;
}

/* Of three a fifth of a second has two turns of each, and they are not. */
TEST(few_are_told_apart_by_turns_that_do_not_fit)
{
    uint32_t looks;
    CHECK(told_apart(2, &looks) == 2 && looks >= 49);
    CHECK(told_apart(4, &looks) == 4 && looks >= 49);
    CHECK(told_apart(5, &looks) == 5 && looks >= 49);
}

TEST(many_are_told_apart_by_a_part_of_a_round_with_half_the_looks)
{
    uint32_t looks;
    for (uint32_t n = BH_TALLY_FEW + 1; n <= 16; n++)
        CHECK(told_apart(n, &looks) == n && looks <= 27);
}

TEST_MAIN
