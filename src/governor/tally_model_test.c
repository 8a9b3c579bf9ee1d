/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants that take turns on a card of the model, and what can be told of each by the accounts. */
#include "governor/tally.h"

#include "base/str.h"
#include "core/govern/card_fixture.h"
#include "core/govern/culprit.h"
#include "governor/noise.h"

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

static bool is_near(uint32_t permille, uint32_t right)
{
    return permille + 20 >= right && permille <= right + 20;
}

/* Of n who share alike and of whom nobody ever leaves: how many are told apart. 0: somebody's level is wrong. */
static uint32_t told_apart(uint32_t n, uint32_t *ret_looks_in_10_s)
{
    static struct bh_culprit_levels levels;
    const struct bh_culprit_in in = {.n_tenants = n, .n_samples = BH_CULPRIT_SAMPLES, .samples = w.samples};
    uint32_t told = 0;
    bool right = true;
    begin(n);
    const int64_t from_ns = w.world->card.now_ns;
    for (uint32_t s = 0; s < SAMPLES;) {
        if (!step(n))
            continue;
        w.looks++;
        if (!w.tally.fresh && !w.tally.gap)
            take_sample(s++);
    }
    *ret_looks_in_10_s = (uint32_t)(w.looks * INT64_C(10000000000) / (w.world->card.now_ns - from_ns));
    bh_culprit_levels(&in, &levels);
    for (uint32_t i = 0; i < n; i++) {
        right &= is_near(levels.at[BH_CULPRIT_DRAM][i], i ? OTHER : HOG);
        told += levels.told_apart[BH_CULPRIT_DRAM][i];
    }
    printf("# %u by turns: %u told apart, %u looks in 10 s\n", n, told, *ret_looks_in_10_s);
    world_free(w.world);
    return right ? told : 0;
}

TEST(few_are_told_apart_by_turns_that_do_not_fit)
{
    uint32_t looks;
    for (uint32_t n = 2; n <= BH_TALLY_FEW;
         n += n == 2 ? 2 : 1) /* of three a fifth of a second has two turns of each */
        CHECK(told_apart(n, &looks) == n && looks <= 60);
}

/* From thirteen on the parts of a round differ so little that one or two are in doubt, depending on when it begins. */
TEST(many_are_told_apart_by_a_part_of_a_round_with_half_the_looks)
{
    enum { ALL = 12, MOST = 16, DOUBTED = 2 };
    uint32_t looks;
    for (uint32_t n = BH_TALLY_FEW + 1; n <= MOST; n++)
        CHECK(told_apart(n, &looks) + (n > ALL ? DOUBTED : 0) >= n && looks <= 27);
}

/* Eight by turns of 32 ms after one was alone for a minute, of which it says every so often how many milliseconds of the card it had. */
static const char *said_in_turns(uint32_t every_ms)
{
    enum { ALONE_MS = 60000, ALL_MS = 240000, TURN_MS = 32, READ_MS = 100, MS_NS = 1000000 };
    static struct bh_buf out;
    struct bh_noise *noise = bh_noise_new();
    struct bh_noise_look look;
    uint64_t worked_ms = 0, told = 0, lines = 0;
    memset(&w, 0, sizeof(w));
    bh_noise_look_none(&look, "none here");
    for (uint32_t i = 0; i < 8; i++)
        w.leases[i].id = i + 1;
    for (uint32_t ms = STEP_US / 1000; ms <= ALL_MS; ms += STEP_US / 1000) {
        const bool alone = ms <= ALONE_MS;
        const uint32_t holder = alone ? 0 : ms / TURN_MS % 8;
        worked_ms += holder ? 0 : STEP_US / 1000;
        if (ms % every_ms == 0) {
            told = worked_ms;
            lines++;
        }
        if (ms % READ_MS == 0 && lines > w.leases[0].own.lines) {
            w.leases[0].own.at_ns = (uint64_t)ms * MS_NS;
            w.leases[0].own.done = told;
            w.leases[0].own.lines = lines;
        }
        bh_tally_begin(&w.card, STEP_US);
        for (uint32_t i = 0; i < 8; i++) {
            const struct bh_govern_told to = {.slice_us = 2000, .active = !alone || i == 0, .seen = 1};
            const struct bh_sense_got got = {.gpu_ns = i == holder ? STEP_US * UINT64_C(1000) : 0};
            bh_tally_add(&w.card, &w.leases[i], STEP_US, &to, &got);
        }
        if (bh_tally_end(&w.card, UINT64_C(1000) * MS_NS + (uint64_t)ms * MS_NS, false, &w.tally))
            bh_noise_add(noise, &w.tally, &look);
    }
    bh_buf_fini(&out);
    bh_buf_init(&out, 16384);
    (void)bh_noise_judge(noise, (struct bh_noise_uses[BH_TALLY_LEASES]){0});
    bh_noise_report(noise, &out);
    bh_noise_free(noise);
    return bh_buf_text(&out);
}

/* A turn does the work that it does alone, to within two in a hundred. */
static bool is_said_right(const char *said)
{
    static const char *const right[] = {" 98 %", " 99 %", " 100 %", " 101 %", " 102 %"};
    static const char begins[] = "a turn does";
    const char *at = strstr(said, begins);
    bool found = false;
    for (size_t i = 0; at && i < BH_COUNT_OF(right); i++)
        found |= bh_str_starts(at + strlen(begins), right[i]);
    return found;
}

TEST(what_is_said_in_a_gap_counts)
{
    CHECK(is_said_right(said_in_turns(100)));
    CHECK(is_said_right(said_in_turns(200)));
    CHECK(is_said_right(said_in_turns(400)));
    CHECK(is_said_right(said_in_turns(800)));
    CHECK(is_said_right(said_in_turns(1600)));
}

TEST_MAIN
