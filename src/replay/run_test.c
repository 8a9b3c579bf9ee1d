/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/run.h"

#include "base/test.h"
#include "replay/clock.h"
#include "replay/synth.h"

static void fleet(struct bh_openb *o, uint32_t nodes, uint32_t pods, uint32_t spec)
{
    bh_synth_openb(
        &(struct bh_synth){.shape = BH_SYNTH_OPENB, .seed = 11, .nodes = nodes, .pods = pods, .spec = spec},
        o);
}

static uint64_t asked(const struct bh_openb *o, const uint32_t *order, size_t n)
{
    uint64_t milli = 0;
    for (size_t i = 0; i < n; i++)
        milli += (uint64_t)o->pods.at[order[i]].gpu_milli * o->pods.at[order[i]].n_gpus;
    return milli;
}

TEST(arrivals_begin_with_the_whole_list)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_err err;
    size_t n, n_again;
    fleet(&o, 40, 0, 0);
    BH_AUTOFREE uint32_t *order = NULL;
    BH_AUTOFREE uint32_t *again = NULL;
    BH_AUTOFREE uint32_t *other = NULL;
    BH_AUTOFREE uint32_t *seen = bh_alloc(o.pods.n, sizeof(*seen));
    CHECK_EQ(bh_run_arrivals(&o, 42, &order, &n, &err), BH_OK);
    CHECK(n > o.pods.n);
    for (size_t i = 0; i < o.pods.n; i++)
        seen[order[i]]++;
    for (size_t i = 0; i < o.pods.n; i++)
        CHECK_EQ(seen[i], 1);
    const uint64_t most = bh_openb_gpus(&o) * 1300;
    CHECK(asked(&o, order, n) <= most + 7000); /* an 8-GPU pod is compared by one GPU */
    CHECK(asked(&o, order, n) + 8000 > most);
    CHECK_EQ(bh_run_arrivals(&o, 42, &again, &n_again, &err), BH_OK);
    CHECK_EQ(n, n_again);
    CHECK(memcmp(order, again, n * sizeof(*order)) == 0);
    CHECK_EQ(bh_run_arrivals(&o, 43, &other, &n_again, &err), BH_OK);
    CHECK(memcmp(order, other, o.pods.n * sizeof(*order)) != 0);
}

TEST(a_list_that_asks_for_too_much_is_cut)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    BH_AUTOFREE uint32_t *order = NULL;
    struct bh_err err;
    size_t n;
    fleet(&o, 5, 500, 0);
    CHECK(bh_openb_demand_milli(&o) > bh_openb_gpus(&o) * 1300);
    CHECK_EQ(bh_run_arrivals(&o, 1, &order, &n, &err), BH_OK);
    CHECK(n < o.pods.n + 50);
    CHECK(asked(&o, order, n) <= bh_openb_gpus(&o) * 1300 + 7000);
}

TEST(every_policy_decides_alike_by_index_and_by_full_scan)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    struct bh_err err;
    fleet(&o, 60, 0, 25);
    for (int mode = 0; mode < BH_SCORE_MODES; mode++) {
        struct bh_run_result fast, slow;
        CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){(enum bh_score_mode)mode, 42, false}, &fast, &err),
                 BH_OK);
        CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){(enum bh_score_mode)mode, 42, true}, &slow, &err),
                 BH_OK);
        CHECK(fast.digest == slow.digest);
        CHECK_EQ(fast.placed, slow.placed);
        CHECK_EQ(fast.at[100].ratio_ppm, slow.at[100].ratio_ppm);
    }
}

TEST(figures_hold_together)
{
    struct bh_openb o BH_AUTO(bh_openb_fini);
    BH_AUTOFREE uint32_t *order = NULL;
    struct bh_run_result fgd, worse, spread;
    struct bh_err err;
    size_t n;
    fleet(&o, 80, 0, 0);
    CHECK_EQ(bh_run_arrivals(&o, 7, &order, &n, &err), BH_OK);
    CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){BH_SCORE_FGD, 7, false}, &fgd, &err), BH_OK);
    CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){BH_SCORE_RANDOM, 7, false}, &worse, &err), BH_OK);
    CHECK_EQ(bh_run_openb(&o, &(struct bh_run_setup){BH_SCORE_FGD, 8, false}, &spread, &err), BH_OK);
    CHECK_EQ(fgd.placed + fgd.failed, n);
    CHECK(fgd.at[100].allocated_ppm > worse.at[100].allocated_ppm);
    CHECK(fgd.digest != spread.digest);
    uint64_t arrivals = 0;
    for (size_t i = 0; i <= BH_ARRIVE_PERCENT; i++) {
        const struct bh_run_point *p = &fgd.at[i];
        arrivals += p->arrivals;
        CHECK(p->allocated_ppm <= 1000000 && p->ratio_ppm <= 1000000 &&
              p->fragment_ppm <= 1000000 - p->allocated_ppm + 1000);
        CHECK(p->allocated_ppm <= (i + 1) * 10000); /* no more than was asked for */
    }
    CHECK(arrivals <= n && arrivals + 20 > n); /* the last may round past the end */
    CHECK(fgd.p50_ns <= fgd.p99_ns && fgd.p99_ns <= fgd.max_ns);
}

TEST(percentiles)
{
    uint64_t v[] = {5, 1, 4, 2, 3};
    bh_sort_values(v, 5);
    CHECK_EQ(bh_percentile(v, 5, 1), 1);
    CHECK_EQ(bh_percentile(v, 5, 50), 3);
    CHECK_EQ(bh_percentile(v, 5, 99), 5);
    CHECK_EQ(bh_percentile(v, 5, 100), 5);
    CHECK_EQ(bh_percentile(v, 0, 50), 0);
}

TEST_MAIN
