/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/test.h"
#include "core/sched/score_inside.h"
#include "core/sched/shelf_fixture.h"

static struct bh_requests requests;

static uint32_t class_of(uint32_t cpu, uint32_t n, uint32_t milli, uint64_t models)
{
    struct bh_request r = {.form = BH_FORM_CPU, .cpu_milli = cpu, .models = models};
    uint32_t id;
    if (n) {
        r.form = milli == 1000 ? BH_FORM_WHOLE : BH_FORM_SHARE;
        r.n_gpus = (uint8_t)n;
        r.gpu_milli = (uint16_t)milli;
    }
    world_must(bh_request_intern(&requests, &r, &id, NULL));
    return id;
}

/* By hand: seen by each kind, all is a fragment where it cannot run, else what is too small for it. */
TEST(fragments_of_a_node)
{
    struct bh_frag f = {0};
    const struct bh_typical at[] = {{class_of(1000, 1, 1000, 0), 20}, {class_of(1000, 1, 500, 0), 20},
                                    {class_of(9000, 1, 200, 0), 30},  {class_of(1000, 1, 200, 2), 40},
                                    {class_of(1000, 0, 0, 0), 50},    {class_of(1000, 2, 1000, 0), 60}};
    bh_frag_set(&f, &requests, at, BH_COUNT_OF(at));
    CHECK_EQ(f.n_kinds, 6);
    CHECK_EQ(f.weight, 220);
    uint16_t open[BH_NODE_GPUS] = {1000, 600, 300, 0};
    /* whole: 900 too small; half: 300; much processor: cannot; other model: cannot; none; two whole: cannot */
    const uint64_t want = 20 * 900 + 20 * 300 + (30 + 40 + 50 + 60) * 1900;
    CHECK_EQ(bh_frag_of(&f, 0, 8000, open), want);
    CHECK_EQ(bh_frag_of(&f, 1, 8000, open), want - 40 * 1900);
    CHECK_EQ(bh_frag_of(&f, 0, 9000, open), want - 30 * 1900);
    bh_frag_fini(&f);
    bh_requests_fini(&requests);
}

/* Many sizes at once, worked out one by one beside it: what a compiler makes of the short way must be the same. */
TEST(fragments_for_many_sizes)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        static uint8_t bytes[256];
        struct bh_typical at[24];
        struct bh_frag f = {0};
        uint16_t open[BH_NODE_GPUS];
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        for (uint32_t i = 0; i < BH_COUNT_OF(at); i++)
            at[i] =
                (struct bh_typical){class_of(1000 * bh_choose(&c, 8), 1 + bh_choose(&c, 3), 40 * (1 + i), 0),
                                    1 + bh_choose(&c, 9)};
        for (uint32_t g = 0; g < BH_NODE_GPUS; g++)
            open[g] = (uint16_t)(bh_choose(&c, 3) ? bh_choose(&c, 101) * 10 : 1000);
        bh_frag_set(&f, &requests, at, BH_COUNT_OF(at));
        uint64_t want = 0;
        for (uint32_t k = f.first[0]; k < f.first[1]; k++) {
            uint64_t all = 0, large = 0, n = 0;
            for (uint32_t g = 0; g < BH_NODE_GPUS; g++) {
                all += open[g];
                large += open[g] >= f.millis[f.kinds[k].milli] ? open[g] : 0;
                n += open[g] >= f.millis[f.kinds[k].milli];
            }
            const bool runs = f.kinds[k].cpu_milli <= 4000 && n >= f.kinds[k].n_gpus;
            want += f.kinds[k].weight * (all - (runs ? large : 0));
        }
        CHECK_EQ(bh_frag_of(&f, 0, 4000, open), want);
        bh_frag_fini(&f);
        bh_requests_fini(&requests);
    }
}

TEST(the_most_frequent_are_typical)
{
    struct bh_frag f = {0};
    struct bh_typical at[101];
    /* 94 of one, 6 of six others, one of which is there twice under different memory. */
    at[0] = (struct bh_typical){class_of(1, 1, 1000, 0), 94};
    for (uint32_t i = 1; i < 6; i++)
        at[i] = (struct bh_typical){class_of(1 + i, 1, 1000, 0), 1};
    struct bh_request twin = requests.at.at[at[3].class_];
    twin.mem_mib = 77;
    twin.trust = 3;
    world_must(bh_request_intern(&requests, &twin, &at[6].class_, NULL));
    at[6].count = 1;
    bh_frag_set(&f, &requests, at, 7);
    CHECK_EQ(f.n_kinds, 2); /* 94, and the one that came twice */
    CHECK_EQ(f.weight, 96);
    CHECK_EQ(f.kinds[1].cpu_milli, 4);
    bh_frag_set(&f, &requests, NULL, 0);
    CHECK_EQ(f.n_kinds, 0);
    bh_frag_fini(&f);
    bh_requests_fini(&requests);
}

/* The exponential, by its series. */
static double exp_of(double x)
{
    double term = 1, sum = 1;
    for (int i = 1; i < 20; i++) {
        term *= x / 1024 / i;
        sum += term;
    }
    for (int i = 0; i < 10; i++)
        sum *= sum;
    return sum;
}

/* Integers only, yet the points of the published formula. */
TEST(points_are_those_of_the_sigmoid)
{
    static const uint32_t counts[] = {1, 7, 8152, 3000000000u};
    for (size_t k = 0; k < BH_COUNT_OF(counts); k++) {
        struct bh_frag f = {0};
        const struct bh_typical at = {class_of(0, 1, 1000, 0), counts[k]};
        bh_frag_set(&f, &requests, &at, 1);
        for (int milli = -16000; milli <= 16000; milli += 7) {
            const double exact = 100 / (1 + exp_of(-milli / 1000.0));
            const uint64_t high = (uint64_t)16000 * f.weight, low = (uint64_t)(16000 - milli) * f.weight;
            const uint32_t want = exact >= 99 ? 99 : (uint32_t)exact;
            CHECK_EQ(bh_frag_points(&f, high, low), want);
        }
        CHECK_EQ(bh_frag_points(&f, 5, 5), 50);
        bh_frag_fini(&f);
        bh_requests_fini(&requests);
    }
}

TEST(instances_are_not_typical_work)
{
    struct bh_frag f = {0};
    const struct bh_request r = {.form = BH_FORM_MIG, .n_gpus = 1, .models = 1};
    struct bh_typical at = {0, 5};
    world_must(bh_request_intern(&requests, &r, &at.class_, NULL));
    bh_frag_set(&f, &requests, &at, 1);
    CHECK_EQ(f.n_kinds, 0);
    bh_frag_fini(&f);
    bh_requests_fini(&requests);
}

TEST_MAIN
