/* SPDX-License-Identifier: Apache-2.0 */
/* mig_test.c - every placement of every model in the catalogue, and what a card refuses. */
#include "simgpu/rm/mig.h"

#include "base/mem.h"
#include "base/test.h"
#include "base/units.h"
#include "gpu/abi/nvml.h"

enum { SEED = 7, LAYOUTS_MAX = 40000 };

static const struct bh_gpu_model *model(const char *name)
{
    const struct bh_gpu_model *m = bh_catalog_find(name);
    if (!m)
        abort();
    return m;
}

static struct bh_sim_mig card(const struct bh_gpu_model *m)
{
    struct bh_sim_mig c;
    bh_sim_mig_init(&c, m, SEED);
    (void)bh_sim_mig_set_mode(&c, true, false);
    return c;
}

static uint32_t profile_id(const struct bh_gpu_model *m, const char *name)
{
    const struct bh_mig_profile *p = bh_mig_find(m, name);
    return p ? p->gi_profile_id : UINT32_MAX;
}

static bool is_empty(const struct bh_sim_mig *c)
{
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++)
        if (c->gis[i].made)
            return false;
    return true;
}

/* One profile on an empty card: it can be made where the catalogue says and nowhere else. */
static const char *try_profile(const struct bh_gpu_model *m, const struct bh_mig_profile *p)
{
    struct bh_sim_mig c = card(m);
    uint32_t id;
    for (int start = 0; start < BH_MIG_SLICES_MAX + 300; start++) {
        bool listed = memchr(p->starts, start, p->n_starts) != NULL && start < BH_MIG_SLICES_MAX;
        int status = bh_sim_gi_create(&c, p->gi_profile_id, start, &id);
        if (status != (listed ? NVML_OK : NVML_INVALID_ARGUMENT))
            return "another list of starts than the catalogue's";
        if (!listed)
            continue;
        const struct bh_sim_gi *g = bh_sim_gi_find(&c, id);
        if (!g || g->id != id || id < 1 || id >= 15 || g->start != (uint32_t)start || g->profile != p)
            return "not what was asked for";
        if (!g->total_bytes || (m->memory_mib && g->total_bytes > (uint64_t)m->memory_mib * BH_MIB))
            return "memory of no instance of this card";
        if (bh_sim_gi_destroy(&c, id) != NVML_OK || !is_empty(&c))
            return "something is left";
    }
    if (bh_sim_gi_create(&c, p->gi_profile_id, -1, &id) != NVML_OK ||
        bh_sim_gi_find(&c, id)->start != p->starts[0])
        return "not in the first place";
    return NULL;
}

TEST(every_placement_of_every_profile_of_every_model)
{
    size_t placements = 0;
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        const struct bh_gpu_model *m = bh_catalog_at(i);
        for (size_t p = 0; p < m->n_profiles; p++) {
            const char *wrong = try_profile(m, &m->profiles[p]);
            if (wrong)
                printf("# %s %s: %s\n", m->name, m->profiles[p].name, wrong);
            CHECK(!wrong);
            placements += m->profiles[p].n_starts;
        }
    }
    CHECK(placements > 300);
}

/* The walk through all layouts of a model: instances are added in every order of place and profile. */
struct walk {
    const struct bh_gpu_model *m;
    struct bh_sim_mig c;
    struct bh_mig_instance have[BH_MIG_INSTANCES_MAX];
    size_t n, depth, seen;
    const char *wrong;
};

/* How many more can really be made; they are taken away again. */
static uint32_t count_more(struct bh_sim_mig *c, uint32_t id)
{
    uint32_t n = 0, made[BH_SIM_GIS_MAX];
    while (n < BH_SIM_GIS_MAX && bh_sim_gi_create(c, id, -1, &made[n]) == NVML_OK)
        n++;
    for (uint32_t i = 0; i < n; i++)
        (void)bh_sim_gi_destroy(c, made[i]);
    return n;
}

static void walk_from(struct walk *w, size_t first);

static void walk_into(struct walk *w, size_t at, const struct bh_mig_profile *p, int start)
{
    struct bh_mig_conflict why;
    uint32_t id;
    w->have[w->n] = (struct bh_mig_instance){p, (int8_t)start};
    bool fits = bh_mig_layout_fits(w->m, w->have, w->n + 1, NULL, &why);
    int status = bh_sim_gi_create(&w->c, p->gi_profile_id, start, &id);
    if (status != (fits ? NVML_OK : NVML_INSUFFICIENT_RESOURCES))
        w->wrong = "the card and the catalogue do not agree";
    if (!fits || w->wrong)
        return;
    w->n++;
    if (w->n < w->depth)
        walk_from(w, at);
    w->n--;
    if (!w->wrong && bh_sim_gi_destroy(&w->c, id) != NVML_OK)
        w->wrong = "cannot be taken away again";
}

/* Each set of (profile, start) once: only what comes later in the list of all of them is added. */
static void walk_from(struct walk *w, size_t first)
{
    size_t at = 0;
    w->seen++;
    for (size_t p = 0; p < w->m->n_profiles && !w->wrong; p++) {
        const struct bh_mig_profile *profile = &w->m->profiles[p];
        if (bh_sim_gi_room(&w->c, profile->gi_profile_id) != count_more(&w->c, profile->gi_profile_id))
            w->wrong = "another room than there is";
        for (size_t s = 0; s < profile->n_starts && !w->wrong && w->seen < LAYOUTS_MAX; s++, at++)
            if (at >= first)
                walk_into(w, at + 1, profile, profile->starts[s]);
    }
}

/* Cut alike, whatever they are called. */
static bool alike(const struct bh_gpu_model *a, const struct bh_gpu_model *b)
{
    bool same = a->compute_slices == b->compute_slices && a->memory_slices == b->memory_slices &&
                a->n_profiles == b->n_profiles;
    for (size_t i = 0; same && i < a->n_profiles; i++) {
        const struct bh_mig_profile *p = &a->profiles[i], *q = &b->profiles[i];
        same = p->gi_profile_id == q->gi_profile_id && p->placement_size == q->placement_size &&
               p->compute_slices == q->compute_slices && p->max_instances == q->max_instances &&
               p->media == q->media && p->n_starts == q->n_starts &&
               memcmp(p->starts, q->starts, p->n_starts) == 0;
    }
    return same;
}

/* All layouts of one model of each kind; all pairs of every model. */
TEST(all_layouts_agree_with_the_catalogue)
{
    size_t whole = 0;
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        struct walk w = {.m = bh_catalog_at(i), .depth = BH_MIG_INSTANCES_MAX};
        for (size_t j = 0; j < i; j++)
            if (alike(w.m, bh_catalog_at(j)))
                w.depth = 2;
        if (!bh_model_has_mig(w.m))
            continue;
        w.c = card(w.m);
        walk_from(&w, 0);
        if (w.wrong || w.seen >= LAYOUTS_MAX)
            printf("# %s: %s after %zu layouts\n", w.m->name, w.wrong ? w.wrong : "not done", w.seen);
        CHECK(!w.wrong);
        CHECK(w.seen > 20 && w.seen < LAYOUTS_MAX);
        CHECK(is_empty(&w.c));
        whole += w.depth > 2;
    }
    CHECK(whole >= 3);
}

TEST(no_more_of_one_profile_than_the_driver_makes)
{
    for (size_t i = 0; i < bh_catalog_count(); i++)
        for (size_t p = 0; p < bh_catalog_at(i)->n_profiles; p++) {
            const struct bh_mig_profile *profile = &bh_catalog_at(i)->profiles[p];
            struct bh_sim_mig c = card(bh_catalog_at(i));
            CHECK_EQ(bh_sim_gi_room(&c, profile->gi_profile_id), profile->max_instances);
            CHECK_EQ(count_more(&c, profile->gi_profile_id), profile->max_instances);
        }
}

TEST(media_engines_are_given_once)
{
    const struct bh_gpu_model *m = model("RTX-PRO-6000-Blackwell-96GB");
    struct bh_sim_mig c = card(m);
    uint32_t id;
    CHECK_EQ(bh_sim_gi_create(&c, profile_id(m, "1g.24gb+me.all"), 0, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_create(&c, profile_id(m, "1g.24gb"), -1, &id), NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(bh_sim_gi_room(&c, profile_id(m, "1g.24gb")), 0);
    CHECK_EQ(bh_sim_gi_room(&c, profile_id(m, "1g.24gb-me")), 3);
    CHECK_EQ(bh_sim_gi_create(&c, profile_id(m, "1g.24gb-me"), -1, &id), NVML_OK);
    m = model("A100-80GB");
    c = card(m);
    CHECK_EQ(bh_sim_gi_create(&c, 20, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_create(&c, 20, -1, &id), NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(bh_sim_gi_room(&c, 19), 6);
}

TEST(order_matters_when_the_card_chooses)
{
    struct bh_sim_mig c = card(model("A100-80GB"));
    uint32_t id;
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_find(&c, id)->start, 0);
    CHECK_EQ(bh_sim_gi_create(&c, 5, -1, &id), NVML_INSUFFICIENT_RESOURCES); /* 4g stands at 0 only */
    CHECK_EQ(bh_sim_gi_create(&c, 9, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_find(&c, id)->start, 4);
    CHECK_EQ(bh_sim_gi_create(&c, 9, 4, &id), NVML_INSUFFICIENT_RESOURCES);
}

TEST(the_mode_waits_for_an_idle_card)
{
    struct bh_sim_mig c;
    uint32_t id;
    bh_sim_mig_init(&c, model("H100-80GB-SXM"), SEED);
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_NOT_SUPPORTED);
    CHECK_EQ(bh_sim_gi_room(&c, 19), 0);
    CHECK_EQ(bh_sim_mig_set_mode(&c, true, true), NVML_OK);
    CHECK(!c.on && c.pending);
    CHECK_EQ(bh_sim_mig_set_mode(&c, true, false), NVML_OK);
    CHECK(c.on && c.pending);
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_mig_set_mode(&c, false, false), NVML_OK);
    CHECK(c.on && !c.pending); /* an instance is a use */
    CHECK_EQ(bh_sim_gi_destroy(&c, id), NVML_OK);
    CHECK_EQ(bh_sim_mig_set_mode(&c, false, false), NVML_OK);
    CHECK(!c.on && !c.pending);
    bh_sim_mig_init(&c, model("L40S"), SEED);
    CHECK_EQ(bh_sim_mig_set_mode(&c, true, false), NVML_NOT_SUPPORTED);
    CHECK(!c.on && !c.pending);
}

TEST(what_is_not_there)
{
    struct bh_sim_mig c = card(model("A30"));
    uint32_t id;
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_INVALID_ARGUMENT); /* of the seven-slice parts */
    CHECK_EQ(bh_sim_gi_room(&c, 19), 0);
    CHECK_EQ(bh_sim_gi_destroy(&c, 3), NVML_NOT_FOUND);
    CHECK_EQ(bh_sim_gi_destroy(&c, UINT32_MAX), NVML_NOT_FOUND);
    CHECK_EQ(bh_sim_ci_create(&c, 3, 1, &id), NVML_NOT_FOUND);
    CHECK_EQ(bh_sim_ci_destroy(&c, 3, 0), NVML_NOT_FOUND);
    CHECK(!bh_sim_gi_find(&c, 16) && !bh_sim_ci_find(&c, 0, 0));
    CHECK_EQ(bh_sim_gi_create(&c, 14, -1, &id), NVML_OK);
    CHECK(!bh_sim_ci_find(&c, id, 0) && !bh_sim_ci_find(&c, id, 99));
    CHECK_EQ(bh_sim_ci_destroy(&c, id, 0), NVML_NOT_FOUND);
}

TEST(compute_instances_share_the_slices_of_their_instance)
{
    struct bh_sim_mig c = card(model("H200-141GB"));
    uint32_t gi, a, b, ci;
    CHECK_EQ(bh_sim_gi_create(&c, 9, 4, &gi), NVML_OK); /* 3g.71gb */
    CHECK_EQ(bh_sim_ci_create(&c, gi, 0, &ci), NVML_INVALID_ARGUMENT);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 4, &ci), NVML_INVALID_ARGUMENT);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 1, &a), NVML_OK);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 2, &b), NVML_OK);
    CHECK_EQ(a, 0);
    CHECK_EQ(b, 1);
    CHECK_EQ(bh_sim_ci_find(&c, gi, b)->start, 1);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 1, &ci), NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(bh_sim_ci_destroy(&c, gi, a), NVML_OK);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 2, &ci), NVML_INSUFFICIENT_RESOURCES); /* one slice is free */
    CHECK_EQ(bh_sim_ci_create(&c, gi, 1, &ci), NVML_OK);
    CHECK_EQ(ci, 0); /* the id again */
    CHECK_EQ(bh_sim_ci_find(&c, gi, ci)->start, 0);
    CHECK(strncmp(bh_sim_ci_find(&c, gi, ci)->uuid, "MIG-", 4) == 0);
    CHECK_EQ(strlen(bh_sim_ci_find(&c, gi, ci)->uuid), 40);
    CHECK_EQ(bh_sim_gi_create(&c, 0, -1, &gi), NVML_INSUFFICIENT_RESOURCES);
    struct bh_sim_mig whole = card(model("H200-141GB"));
    CHECK_EQ(bh_sim_gi_create(&whole, 0, -1, &gi), NVML_OK);
    for (uint32_t i = 0; i < 7; i++)
        CHECK_EQ(bh_sim_ci_create(&whole, gi, 1, &ci), NVML_OK);
    CHECK_EQ(bh_sim_ci_create(&whole, gi, 1, &ci), NVML_INSUFFICIENT_RESOURCES);
}

TEST(compute_instances_go_first_and_users_before_them)
{
    struct bh_sim_mig c = card(model("A100-80GB"));
    uint32_t gi, ci;
    CHECK_EQ(bh_sim_gi_create(&c, 14, -1, &gi), NVML_OK);
    CHECK_EQ(bh_sim_ci_create(&c, gi, 2, &ci), NVML_OK);
    CHECK_EQ(bh_sim_gi_destroy(&c, gi), NVML_IN_USE);
    bh_sim_ci_find(&c, gi, ci)->users = 1;
    CHECK_EQ(bh_sim_ci_destroy(&c, gi, ci), NVML_IN_USE);
    bh_sim_ci_find(&c, gi, ci)->users = 0;
    CHECK_EQ(bh_sim_ci_destroy(&c, gi, ci), NVML_OK);
    bh_sim_gi_find(&c, gi)->used_bytes = 1;
    CHECK_EQ(bh_sim_gi_destroy(&c, gi), NVML_IN_USE);
    bh_sim_gi_find(&c, gi)->used_bytes = 0;
    CHECK_EQ(bh_sim_gi_destroy(&c, gi), NVML_OK);
    CHECK(is_empty(&c));
}

TEST(ids_come_from_size_and_place)
{
    struct bh_sim_mig c = card(model("A100-80GB"));
    uint32_t id;
    CHECK_EQ(bh_sim_gi_create(&c, 5, 0, &id), NVML_OK);
    CHECK_EQ(id, 1);
    CHECK_EQ(bh_sim_gi_create(&c, 14, 4, &id), NVML_OK);
    CHECK_EQ(id, 5);
    CHECK_EQ(bh_sim_gi_create(&c, 19, 6, &id), NVML_OK);
    CHECK_EQ(id, 13);
    c = card(model("A30"));
    CHECK_EQ(bh_sim_gi_create(&c, 0, 0, &id), NVML_OK);
    CHECK_EQ(id, 1);
}

TEST(memory_is_the_published_one_or_a_part)
{
    struct bh_sim_mig c = card(model("H200-141GB"));
    uint32_t id;
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_find(&c, id)->total_bytes, 16384 * BH_MIB);
    c = card(model("B200-180GB")); /* 184320 MiB, halves not published: 184320 / 2 less a thirty-second */
    CHECK_EQ(bh_sim_gi_create(&c, 9, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_find(&c, id)->total_bytes, 89280 * BH_MIB);
    c = card(model("B300-269GB")); /* nothing published: 34 thousand million bytes */
    CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &id), NVML_OK);
    CHECK_EQ(bh_sim_gi_find(&c, id)->total_bytes, 32424 * BH_MIB);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(no_uuid_comes_twice)
{
    enum { CARDS = 2, MADE = 10000 };
    static char seen[CARDS * MADE][48];
    uint32_t gi, ci;
    for (uint64_t k = 0; k < CARDS; k++) {
        struct bh_sim_mig c;
        bh_sim_mig_init(&c, model("H100"), SEED + k * 1000003);
        (void)bh_sim_mig_set_mode(&c, true, false);
        for (size_t i = 0; i < MADE; i++) {
            CHECK_EQ(bh_sim_gi_create(&c, 19, -1, &gi), NVML_OK);
            CHECK_EQ(gi, 7);
            CHECK_EQ(bh_sim_ci_create(&c, gi, 1, &ci), NVML_OK);
            memcpy(seen[k * MADE + i], bh_sim_ci_find(&c, gi, ci)->uuid, 48);
            CHECK_EQ(bh_sim_ci_destroy(&c, gi, ci), NVML_OK);
            CHECK_EQ(bh_sim_gi_destroy(&c, gi), NVML_OK);
        }
    }
    qsort(seen, BH_COUNT_OF(seen), sizeof(seen[0]), by_text);
    for (size_t i = 1; i < BH_COUNT_OF(seen); i++)
        CHECK(strcmp(seen[i - 1], seen[i]) != 0);
}

TEST_MAIN
