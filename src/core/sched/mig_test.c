/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/mig.h"

#include "base/choice.h"
#include "base/test.h"

static uint32_t profile_of(const struct bh_gpu_model *m, const char *name)
{
    return (uint32_t)(bh_mig_find(m, name) - m->profiles);
}

static void hold(const struct bh_gpu_model *m, struct bh_shelf_gpu *gpu, uint32_t profile, uint32_t start)
{
    bh_mig_cut(m, gpu, profile, start);
    gpu->mig_held |= bh_mig_mask(&m->profiles[profile], start);
    gpu->mig_compute = (uint8_t)(gpu->mig_compute + m->profiles[profile].compute_slices);
}

static void let_go(const struct bh_gpu_model *m, struct bh_shelf_gpu *gpu, uint32_t start)
{
    const struct bh_mig_profile *p = &m->profiles[gpu->mig_at[start] - 1];
    gpu->mig_held &= (uint16_t)~bh_mig_mask(p, start);
    gpu->mig_compute = (uint8_t)(gpu->mig_compute - p->compute_slices);
}

/* What bh_mig_fragment() relies on. */
TEST(starts_ascend_in_the_catalogue)
{
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        const struct bh_gpu_model *m = bh_catalog_at(i);
        for (uint32_t k = 0; k < m->n_profiles; k++) {
            for (uint32_t s = 1; s < m->profiles[k].n_starts; s++)
                CHECK(m->profiles[k].starts[s - 1] < m->profiles[k].starts[s]);
        }
    }
}

TEST(a_small_instance_leaves_room_for_a_large_one)
{
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    struct bh_shelf_gpu gpu = {0};
    struct bh_mig_place place;
    CHECK(bh_mig_best(m, &gpu, profile_of(m, "1g.10gb"), &place));
    CHECK(place.start >= 4); /* first fit would take 0, and no 4g could ever follow */
    hold(m, &gpu, profile_of(m, "1g.10gb"), place.start);
    CHECK(bh_mig_best(m, &gpu, profile_of(m, "4g.40gb"), &place));
    CHECK_EQ(place.start, 0);
    hold(m, &gpu, profile_of(m, "4g.40gb"), 0);
    CHECK(!bh_mig_best(m, &gpu, profile_of(m, "3g.40gb"), &place));
    CHECK(bh_mig_best(m, &gpu, profile_of(m, "2g.20gb"), &place));
}

TEST(fragments)
{
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    CHECK_EQ(bh_mig_fragment(m, 0, 0), 0);
    CHECK_EQ(bh_mig_fragment(m, 0xff, 7), 0);
    /* A slice in the middle of the lower half breaks what the last one does not. */
    CHECK(bh_mig_fragment(m, 1u << 1, 1) > bh_mig_fragment(m, 1u << 6, 1));
}

TEST(only_idle_instances_are_cut_anew)
{
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    const uint32_t one = profile_of(m, "1g.10gb"), three = profile_of(m, "3g.40gb");
    struct bh_shelf_gpu gpu = {0};
    struct bh_mig_place place;
    hold(m, &gpu, one, 0);
    hold(m, &gpu, one, 5);
    let_go(m, &gpu, 5);
    /* The idle one is used as it is, */
    CHECK(bh_mig_best(m, &gpu, one, &place));
    CHECK(!bh_mig_cut(m, &gpu, one, 5));
    /* or gives way; the held one does not. */
    CHECK(bh_mig_room(m, &gpu, three, 4));
    CHECK(!bh_mig_room(m, &gpu, three, 0));
    CHECK(bh_mig_cut(m, &gpu, three, 4));
    CHECK_EQ(gpu.mig_at[5], 0);
    CHECK_EQ(gpu.mig_at[4], three + 1);
    CHECK_EQ(gpu.mig_at[0], one + 1);
}

TEST(stale_cuts_are_no_cuts)
{
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    const uint32_t one = profile_of(m, "1g.10gb");
    struct bh_shelf_gpu gpu = {0};
    bh_mig_cut(m, &gpu, one, 6);
    gpu.mig_stale = 1;
    CHECK(bh_mig_cut(m, &gpu, one, 6));
    CHECK(!gpu.mig_stale);
    struct bh_mig_place place;
    CHECK(!bh_mig_best(m, &gpu, m->n_profiles, &place));
    CHECK(!bh_mig_room(m, &gpu, m->n_profiles, 0));
}

/* Whatever stands on any model must be a layout the catalogue accepts; and what it accepts must be possible. */
TEST(against_the_exact_search)
{
    static uint8_t bytes[4096];
    uint32_t placed = 0, refused = 0;
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        const struct bh_gpu_model *m = bh_catalog_at(i);
        bh_choice_fill(bytes, sizeof(bytes), i + 1);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_shelf_gpu gpu = {0};
        for (int step = 0; m->n_profiles && step < 200; step++) {
            struct bh_mig_instance there[BH_MIG_INSTANCES_MAX + 1];
            uint8_t starts[BH_MIG_INSTANCES_MAX + 1];
            size_t n = 0;
            for (uint32_t s = 0; s < BH_MIG_SLICES_MAX; s++) {
                if (gpu.mig_at[s] && gpu.mig_held >> s & 1)
                    there[n++] = (struct bh_mig_instance){&m->profiles[gpu.mig_at[s] - 1], (int8_t)s};
            }
            CHECK(bh_mig_layout_fits(m, there, n, starts, NULL));
            if (n && bh_choose(&c, 3) == 0) {
                let_go(m, &gpu, (uint32_t)there[bh_choose(&c, (uint32_t)n)].start);
                continue;
            }
            const uint32_t profile = bh_choose(&c, m->n_profiles);
            struct bh_mig_place place;
            there[n] = (struct bh_mig_instance){&m->profiles[profile], -1};
            const bool can = bh_mig_layout_fits(m, there, n + 1, starts, NULL);
            CHECK_EQ(bh_mig_best(m, &gpu, profile, &place), can);
            if (can)
                hold(m, &gpu, profile, place.start);
            placed += can;
            refused += !can;
        }
    }
    CHECK(placed > 100 && refused > 100);
}

/* Instances of mixed sizes come and go: how many compute slices were handed out in all. */
static uint32_t handed_out(bool first_fit, uint64_t seed)
{
    enum { GPUS = 16, STEPS = 2000 };
    static uint8_t bytes[STEPS * 4];
    static struct bh_shelf_gpu gpus[GPUS];
    static const char *const names[] = {"1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb"};
    const struct bh_gpu_model *m = bh_catalog_find("H100");
    struct {
        uint32_t gpu, start;
    } live[GPUS * 8];
    uint32_t n_live = 0, ok = 0;
    memset(gpus, 0, sizeof(gpus));
    bh_choice_fill(bytes, sizeof(bytes), seed);
    struct bh_choice c = {bytes, sizeof(bytes)};
    for (int step = 0; step < STEPS; step++) {
        const uint32_t what = bh_choose(&c, 16), who = bh_choose(&c, 256),
                       profile = profile_of(m, names[what % 5]);
        if (what >= 10 && n_live) {
            const uint32_t k = who % n_live;
            let_go(m, &gpus[live[k].gpu], live[k].start);
            live[k] = live[--n_live];
            continue;
        }
        uint32_t best = GPUS, best_cost = UINT32_MAX, start = 0;
        for (uint32_t g = 0; g < GPUS && (best == GPUS || !first_fit); g++) {
            struct bh_mig_place place;
            if (!bh_mig_best(m, &gpus[g], profile, &place))
                continue;
            for (uint32_t s = 0; first_fit && s < m->profiles[profile].n_starts; s++) {
                place.start = m->profiles[profile].starts[s];
                if (bh_mig_room(m, &gpus[g], profile, place.start))
                    break;
            }
            const uint32_t cost = place.growth * 16 + m->compute_slices - gpus[g].mig_compute;
            if (best == GPUS || cost < best_cost)
                best = g, best_cost = cost, start = place.start;
        }
        if (best == GPUS)
            continue;
        hold(m, &gpus[best], profile, start);
        live[n_live].gpu = best;
        live[n_live++].start = start;
        ok += m->profiles[profile].compute_slices;
    }
    return ok;
}

TEST(by_geometry_more_is_handed_out_than_by_first_fit)
{
    uint32_t ours = 0, first = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        ours += handed_out(false, seed);
        first += handed_out(true, seed);
    }
    printf("# slices by geometry %" PRIu32 ", by first fit %" PRIu32 "\n", ours, first);
    CHECK(ours > first);
}

TEST_MAIN
