/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/catalog.h"

#include "base/choice.h"
#include "base/test.h"
#include "core/model/tables.h"

static const char *name_of(const char *asked)
{
    const struct bh_gpu_model *m = bh_catalog_find(asked);

    return m ? m->name : "none";
}

static const char *profile_of(const char *model, const char *asked)
{
    const struct bh_mig_profile *p = bh_mig_find(bh_catalog_find(model), asked);

    return p ? p->name : "none";
}

/* ---- models ---- */

TEST(models_are_found_by_name_and_by_the_start_of_it)
{
    CHECK_STR(name_of("H200-141GB"), "H200-141GB");
    CHECK_STR(name_of("h200"), "H200-141GB");
    CHECK_STR(name_of("H100"), "H100-80GB-SXM");
    CHECK_STR(name_of("H100-94GB"), "H100-94GB-NVL");
    CHECK_STR(name_of("H100 80"), "H100-80GB-SXM");
    CHECK_STR(name_of("a100_80gb"), "A100-80GB");
    CHECK_STR(name_of("A100"), "A100-40GB");
    CHECK_STR(name_of("A100-SXM4"), "A100-40GB");
    CHECK_STR(name_of("V100"), "V100-16GB");
    CHECK_STR(name_of("  rtx--pro 6000 "), "RTX-PRO-6000-Blackwell-96GB");
    CHECK_STR(name_of("rtx-6000-ada"), "RTX 6000 Ada");
}

TEST(a_name_that_is_one_model_is_not_the_start_of_another)
{
    CHECK_STR(name_of("A10"), "A10");
    CHECK_STR(name_of("L4"), "L4");
    CHECK_STR(name_of("L40"), "L40");
    CHECK_STR(name_of("L40S"), "L40S");
    CHECK_STR(name_of("H20"), "none");
    CHECK_STR(name_of("H1"), "none");
    CHECK(!bh_catalog_matches("L40", bh_catalog_find("L40S")));
    CHECK(!bh_catalog_matches("A10", bh_catalog_find("A100")));
    CHECK(!bh_catalog_matches("H20", bh_catalog_find("H200")));
    CHECK(bh_catalog_matches("H100", bh_catalog_find("H100-80GB-PCIe")));
    CHECK(bh_catalog_matches("NVIDIA H100", bh_catalog_find("H100-94GB-NVL")));
    CHECK(!bh_catalog_matches("H100 PCIe", bh_catalog_find("H100-80GB-SXM")));
    CHECK(!bh_catalog_matches("H100", bh_catalog_find("GH200")));
    CHECK(!bh_catalog_matches("", bh_catalog_find("H100")));
}

TEST(product_names_and_node_labels_are_understood)
{
    CHECK_STR(name_of("NVIDIA H100 80GB HBM3"), "H100-80GB-SXM");
    CHECK_STR(name_of("NVIDIA-H100-80GB-HBM3"), "H100-80GB-SXM");
    CHECK_STR(name_of("NVIDIA H100 PCIe"), "H100-80GB-PCIe");
    CHECK_STR(name_of("NVIDIA H100 NVL"), "H100-94GB-NVL");
    CHECK_STR(name_of("NVIDIA A100-SXM4-80GB"), "A100-80GB");
    CHECK_STR(name_of("NVIDIA A100 80GB PCIe"), "A100-80GB");
    CHECK_STR(name_of("NVIDIA A100-PCIE-40GB"), "A100-40GB");
    CHECK_STR(name_of("NVIDIA H200"), "H200-141GB");
    CHECK_STR(name_of("NVIDIA A30"), "A30");
    CHECK_STR(name_of("NVIDIA GH200 480GB"), "GH200-96GB");
    CHECK_STR(name_of("NVIDIA B200"), "B200-180GB");
    CHECK_STR(name_of("Tesla V100-SXM2-32GB"), "V100-32GB");
    CHECK_STR(name_of("NVIDIA Tesla T4"), "T4");
    CHECK_STR(name_of("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "RTX-PRO-6000-Blackwell-96GB");
    CHECK_STR(name_of("NVIDIA-A100-SXM4-40GB-SHARED"), "A100-40GB");
    CHECK_STR(name_of("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"), "A100-80GB");
    CHECK_STR(name_of("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED"), "H100-80GB-SXM");
}

TEST(what_is_no_model_is_unknown)
{
    char longest[4000];

    CHECK_STR(name_of(""), "none");
    CHECK_STR(name_of(" - "), "none");
    CHECK_STR(name_of("NVIDIA"), "none");
    CHECK_STR(name_of("nvidia tesla"), "none");
    CHECK_STR(name_of("NVIDIAH100"), "none");
    CHECK_STR(name_of("MI300X"), "none");
    CHECK_STR(name_of("H200-141GB-extra"), "none");
    CHECK_STR(name_of(" mig shared"), "none");
    CHECK_STR(name_of("\xff\xfe"), "none");
    memset(longest, 'H', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CHECK_STR(name_of(longest), "none");
    memset(longest, '-', sizeof(longest) - 5);
    memcpy(longest + sizeof(longest) - 5, "H200", 5);
    CHECK_STR(name_of(longest), "H200-141GB");
}

TEST(every_name_of_a_model_finds_it)
{
    CHECK_EQ(bh_catalog_count(), 23);
    for (size_t i = 0; i < bh_catalog_count(); i++) {
        CHECK(bh_catalog_find(bh_catalog_at(i)->name) == bh_catalog_at(i));
        CHECK(bh_catalog_matches(bh_catalog_at(i)->name, bh_catalog_at(i)));
        CHECK_EQ(bh_model_names[i].model, i);
    }
    for (size_t i = 0; i < bh_model_name_count; i++)
        CHECK(bh_catalog_find(bh_model_names[i].folded) == bh_catalog_at(bh_model_names[i].model));
}

TEST(facts_of_models)
{
    const struct bh_gpu_model *h200 = bh_catalog_find("H200"), *b300 = bh_catalog_find("B300");

    CHECK_EQ(h200->memory_mib, 141 * 1024);
    CHECK_EQ(h200->total_sm, 132);
    CHECK_STR(h200->arch, "Hopper");
    CHECK(bh_model_has_mig(h200));
    CHECK(!bh_model_has_mig(bh_catalog_find("L40S")));
    CHECK_EQ(bh_catalog_find("L40S")->n_profiles, 0);
    CHECK_EQ(b300->memory_mib, 0);
    CHECK_EQ(bh_mig_find(b300, "7g.269gb")->sm, 0);
}

/* ---- profiles ---- */

TEST(profiles_are_found_by_name)
{
    const struct bh_mig_profile *p = bh_mig_find(bh_catalog_find("H200"), "1g.18gb");

    CHECK(p);
    CHECK_EQ(p->memory_mib, 16384);
    CHECK_EQ(p->sm, 16);
    CHECK_EQ(p->gi_profile_id, 19);
    CHECK_EQ(p->max_instances, 7);
    CHECK_EQ(p->n_starts, 7);
    for (size_t i = 0; i < bh_catalog_count(); i++)
        for (size_t k = 0; k < bh_catalog_at(i)->n_profiles; k++)
            CHECK(bh_mig_find(bh_catalog_at(i), bh_catalog_at(i)->profiles[k].name) ==
                  &bh_catalog_at(i)->profiles[k]);
}

TEST(the_same_id_means_another_profile_on_another_part)
{
    CHECK_EQ(bh_mig_find(bh_catalog_find("A100"), "2g.10gb")->gi_profile_id, 14);
    CHECK_EQ(bh_mig_find(bh_catalog_find("A30"), "1g.6gb")->gi_profile_id, 14);
}

TEST(driver_spellings_of_a_profile)
{
    CHECK_STR(profile_of("A100-80GB", "3g.39gb"), "3g.40gb");
    CHECK_STR(profile_of("A100-80GB", "3G.40GB"), "3g.40gb");
    CHECK_STR(profile_of("GB200", "1g.24gb"), "1g.23gb");
    CHECK_STR(profile_of("GB200", "3g.95gb"), "3g.93gb");
    CHECK_STR(profile_of("GB200", "7g.189gb"), "7g.186gb");
    CHECK_STR(profile_of("H200", "1g.18gb.me"), "1g.18gb+me");
    CHECK_STR(profile_of("RTX PRO 6000", "1g.24gb.me.all"), "1g.24gb+me.all");
    CHECK_STR(profile_of("RTX PRO 6000", "1g.24gb-me"), "1g.24gb-me");
    CHECK_STR(profile_of("RTX PRO 6000", "2g.48gb.gfx"), "2g.48gb+gfx");
    CHECK_STR(profile_of("A100-80GB", "1c.3g.40gb"), "3g.40gb");
    CHECK_STR(profile_of("A100-80GB", "7c.7g.80gb"), "7g.80gb");
}

TEST(another_parts_profile_is_no_spelling)
{
    CHECK_STR(profile_of("H200", "1g.20gb"), "none");
    CHECK_STR(profile_of("H200", "1g.10gb"), "none");
    CHECK_STR(profile_of("H200", "3g.40gb"), "none");
    CHECK_STR(profile_of("A100-40GB", "1g.6gb"), "none");
    CHECK_STR(profile_of("H100", "2g.10gb"), "none");
    CHECK_STR(profile_of("H200", "3g.71gb+me"), "none");
    CHECK_STR(profile_of("L40S", "1g.18gb"), "none");
    CHECK_STR(profile_of("A100-80GB", "7g.83gb"), "7g.80gb");
    CHECK_STR(profile_of("A100-80GB", "7g.84gb"), "none");
}

TEST(hostile_profile_names)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "1g",
                                      "g.18gb",
                                      "1g.gb",
                                      "1g.18",
                                      "1g.18gb ",
                                      "1g.18gb+",
                                      "1g.18gb+me+me",
                                      "1g.18gb+mee",
                                      "0c.1g.18gb",
                                      "2c.1g.18gb",
                                      "c.1g.18gb",
                                      "1c.1c.1g.18gb",
                                      "-1g.18gb",
                                      "1g.18gb-me",
                                      "1g.99999999999gb",
                                      "4294967297g.18gb",
                                      "1g.18gb\xff",
                                      "1g.18gb+gfx",
                                      "1.18gb",
                                      "1g18gb"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (strcmp(profile_of("H200", bad[i]), "none") != 0)
            printf("# accepted: '%s'\n", bad[i]);
        CHECK_STR(profile_of("H200", bad[i]), "none");
    }
}

TEST(smallest_profile_and_what_it_wastes)
{
    const struct bh_gpu_model *h200 = bh_catalog_find("H200");
    struct bh_mig_fit f = bh_mig_smallest(h200, 16384, NULL, 0);

    CHECK_STR(f.profile->name, "1g.18gb");
    CHECK_EQ(f.waste_mib, 0);
    f = bh_mig_smallest(h200, 16385, NULL, 0);
    CHECK_STR(f.profile->name, "1g.35gb"); /* 2g.35gb has as much memory and takes more of the compute */
    CHECK_EQ(f.waste_mib, 33280 - 16385);
    f = bh_mig_smallest(h200, 18 * 1024, NULL, 0); /* the name says 18, the instance has 16 GiB */
    CHECK_STR(f.profile->name, "1g.35gb");
    CHECK(!bh_mig_smallest(h200, 143361, NULL, 0).profile);
    CHECK(!bh_mig_smallest(h200, UINT64_MAX, NULL, 0).profile);
    CHECK(!bh_mig_smallest(h200, UINT64_C(1) << 32, NULL, 0).profile);
    CHECK(!bh_mig_smallest(bh_catalog_find("L4"), 1, NULL, 0).profile);
}

TEST(smallest_among_the_allowed)
{
    const struct bh_gpu_model *h200 = bh_catalog_find("H200");
    const char *only_large[] = {"2g.35gb", "3g.71gb"}, *media[] = {"1g.18gb.me"}, *unknown[] = {"1g.5gb"};
    const char *either[] = {"1g.18gb+me", "1g.18gb"};

    CHECK_STR(bh_mig_smallest(h200, 100, only_large, 2).profile->name, "2g.35gb");
    CHECK_STR(bh_mig_smallest(h200, 40000, only_large, 2).profile->name, "3g.71gb");
    CHECK(!bh_mig_smallest(h200, 80000, only_large, 2).profile);
    CHECK_STR(bh_mig_smallest(h200, 100, media, 1).profile->name, "1g.18gb+me");
    CHECK(!bh_mig_smallest(h200, 100, unknown, 1).profile);
    CHECK_STR(bh_mig_smallest(h200, 100, either, 2).profile->name, "1g.18gb");
}

TEST(sizes_nobody_published_are_passed_over)
{
    const char *half[] = {"3g.90gb"};

    CHECK(!bh_mig_smallest(bh_catalog_find("B200"), 60000, NULL, 0).profile);
    CHECK(!bh_mig_smallest(bh_catalog_find("B200"), 100, half, 1).profile);
    CHECK(!bh_mig_smallest(bh_catalog_find("B300"), 0, NULL, 0).profile);
}

/* ---- layouts ---- */

enum { TEXT_INSTANCES_MAX = 24 };

struct layout {
    const struct bh_gpu_model *m;
    struct bh_mig_instance want[TEXT_INSTANCES_MAX];
    size_t n;
};

/* `3g.71gb@4 1g.18gb`; a profile that is not there has none. */
static struct layout layout_of(const char *model, const char *text)
{
    struct layout l = {.m = bh_catalog_find(model)};

    while (*text && l.n < TEXT_INSTANCES_MAX) {
        size_t n = strcspn(text, " ");
        char item[32] = {0}, *at;

        memcpy(item, text, n < sizeof(item) ? n : sizeof(item) - 1);
        at = strchr(item, '@');
        if (at)
            *at = '\0';
        l.want[l.n].start = at ? (int8_t)(at[1] - '0') : -1;
        l.want[l.n++].profile = bh_mig_find(l.m, item);
        text += n + (text[n] == ' ');
    }
    return l;
}

static bool fits(const char *model, const char *text)
{
    struct layout l = layout_of(model, text);

    return bh_mig_layout_fits(l.m, l.want, l.n, NULL, NULL);
}

static struct bh_mig_conflict conflict_of(const char *model, const char *text)
{
    struct layout l = layout_of(model, text);
    struct bh_mig_conflict c = {.reason = "fits"};

    (void)bh_mig_layout_fits(l.m, l.want, l.n, NULL, &c);
    return c;
}

TEST(layouts_that_fit)
{
    CHECK(fits("H200", ""));
    CHECK(fits("H200", "7g.141gb"));
    CHECK(fits("H200", "1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb"));
    CHECK(fits("H200", "3g.71gb 3g.71gb"));
    CHECK(fits("H200", "3g.71gb 4g.71gb"));
    CHECK(fits("H200", "3g.71gb 2g.35gb 2g.35gb"));
    CHECK(fits("H200", "1g.18gb 2g.35gb 4g.71gb"));
    CHECK(fits("H200", "1g.35gb 1g.35gb 1g.35gb 1g.35gb"));
    CHECK(fits("H200", "1g.18gb@0 3g.71gb@4"));
    CHECK(fits("H200", "1g.18gb+me 1g.18gb"));
    CHECK(fits("A30", "2g.12gb 1g.6gb+me 1g.6gb"));
    CHECK(fits("RTX PRO 6000", "2g.48gb 1g.24gb 1g.24gb+gfx"));
    CHECK(fits("RTX PRO 6000", "1g.24gb+me.all 1g.24gb-me 2g.48gb-me"));
}

TEST(starts_are_given_back)
{
    struct layout l = layout_of("H200", "1g.18gb 3g.71gb@0 2g.35gb");
    uint8_t starts[3];

    CHECK(bh_mig_layout_fits(l.m, l.want, l.n, starts, NULL));
    CHECK_EQ(starts[0], 6);
    CHECK_EQ(starts[1], 0);
    CHECK_EQ(starts[2], 4);
}

TEST(two_that_overlap_are_named_with_their_slices)
{
    struct bh_mig_conflict c = conflict_of("H200", "3g.71gb@4 1g.18gb@0 2g.35gb@4");

    CHECK_STR(c.reason, "overlap");
    CHECK_EQ(c.a, 0);
    CHECK_EQ(c.b, 2);
    CHECK_EQ(c.slices, 0x30);
    c = conflict_of("H200", "4g.71gb 4g.71gb");
    CHECK_STR(c.reason, "overlap");
    CHECK_EQ(c.slices, 0x0f);
    c = conflict_of("H200", "1g.18gb 7g.141gb");
    CHECK_STR(c.reason, "overlap");
    CHECK_EQ(c.slices, 0x01);
}

TEST(more_than_fits_names_the_first_without_room)
{
    struct bh_mig_conflict c = conflict_of("H200", "3g.71gb 3g.71gb 1g.18gb 1g.18gb");

    CHECK_STR(c.reason, "full");
    CHECK_EQ(c.a, 0);
    CHECK_EQ(c.b, 2);
    CHECK_EQ(c.slices, 0x01);
    c = conflict_of("H200", "1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb 1g.18gb");
    CHECK_STR(c.reason, "full");
    CHECK_EQ(c.b, 7);
    c = conflict_of("H200", "1g.35gb 1g.35gb 1g.35gb 1g.35gb 1g.18gb");
    CHECK_STR(c.reason, "full");
    CHECK_EQ(c.b, 4);
}

TEST(placements_that_do_not_exist)
{
    struct bh_mig_conflict c = conflict_of("H200", "1g.18gb 3g.71gb@2");

    CHECK_STR(c.reason, "start");
    CHECK_EQ(c.a, 1);
    CHECK_EQ(c.b, 1);
    CHECK_EQ(c.slices, 0);
    CHECK_STR(conflict_of("H200", "1g.18gb@7").reason, "start");
    CHECK_STR(conflict_of("H200", "3g.40gb").reason, "start"); /* no such profile */
}

TEST(a_profile_of_another_model_has_no_place)
{
    struct bh_mig_instance w = {bh_mig_find(bh_catalog_find("H100"), "1g.10gb"), -1};
    struct bh_mig_conflict c = {.a = 9};

    CHECK(!bh_mig_layout_fits(bh_catalog_find("H200"), &w, 1, NULL, &c));
    CHECK_STR(c.reason, "start");
    CHECK(!bh_mig_layout_fits(bh_catalog_find("L40S"), &w, 1, NULL, &c));
    CHECK_STR(c.reason, "start");
    CHECK(bh_mig_layout_fits(bh_catalog_find("L40S"), &w, 0, NULL, &c));
}

/* On the parts known today the placements alone keep these limits; a future part need not. */
TEST(limits_that_no_placement_shows)
{
    static const struct bh_mig_profile profiles[] = {
        {.name = "2g.10gb",
         .compute_slices = 2,
         .max_instances = 4,
         .placement_size = 1,
         .n_starts = 4,
         .starts = {0, 1, 2, 3}},
        {.name = "1g.10gb",
         .compute_slices = 1,
         .max_instances = 1,
         .placement_size = 1,
         .n_starts = 4,
         .starts = {0, 1, 2, 3}},
    };
    static const struct bh_gpu_model m = {
        .name = "made up", .compute_slices = 5, .memory_slices = 4, .n_profiles = 2, .profiles = profiles};
    const struct bh_mig_instance wide = {&profiles[0], -1}, once = {&profiles[1], -1};
    struct bh_mig_instance want[3] = {wide, wide, once};
    struct bh_mig_conflict c = {.a = 9};

    CHECK(bh_mig_layout_fits(&m, want, 3, NULL, &c));
    want[2] = wide;
    CHECK(!bh_mig_layout_fits(&m, want, 3, NULL, &c));
    CHECK_STR(c.reason, "full");
    CHECK_EQ(c.a, 2);
    CHECK_EQ(c.b, 2);
    CHECK_EQ(c.slices, 0);
    want[0] = want[2] = once;
    CHECK(!bh_mig_layout_fits(&m, want, 3, NULL, &c));
    CHECK_STR(c.reason, "full");
    CHECK_EQ(c.b, 2);
}

TEST(media_engines_are_not_handed_out_twice)
{
    struct bh_mig_conflict c = conflict_of("H200", "1g.18gb+me 1g.18gb 1g.18gb+me");

    CHECK_STR(c.reason, "media");
    CHECK_EQ(c.a, 0);
    CHECK_EQ(c.b, 2);
    CHECK_STR(conflict_of("A30", "1g.6gb+me 2g.12gb+me").reason, "media");
    CHECK_STR(conflict_of("RTX PRO 6000", "1g.24gb+me.all 1g.24gb").reason, "media");
    CHECK_STR(conflict_of("RTX PRO 6000", "1g.24gb+gfx 1g.24gb+me.all").reason, "media");
    CHECK_STR(conflict_of("RTX PRO 6000", "1g.24gb+me.all 1g.24gb+me").reason, "media");
    CHECK_STR(conflict_of("RTX PRO 6000", "1g.24gb+me.all 2g.48gb+me.all").reason, "media");
}

TEST(a_very_long_list_is_refused_by_its_beginning)
{
    enum { MANY = 100000 };
    struct bh_mig_instance *want = calloc(MANY, sizeof(*want));
    bool *keep = calloc(MANY, sizeof(*keep));
    struct bh_mig_conflict c = {.a = 0};
    const struct bh_gpu_model *m = bh_catalog_find("H200");
    bool fit;
    size_t kept;

    for (size_t i = 0; i < MANY; i++)
        want[i] = (struct bh_mig_instance){bh_mig_find(m, "1g.18gb"), -1};
    fit = bh_mig_layout_fits(m, want, MANY, NULL, &c);
    kept = bh_mig_layout_trim(m, want, MANY, keep);
    fit = fit || !keep[6] || keep[7];
    free(want);
    free(keep);
    CHECK(!fit);
    CHECK_EQ(c.b, 7);
    CHECK_EQ(kept, 7);
}

TEST(trim_keeps_the_most_and_the_earliest)
{
    struct layout l = layout_of("H200", "7g.141gb 1g.18gb 3g.71gb 1g.18gb 3g.71gb");
    bool keep[5];

    CHECK_EQ(bh_mig_layout_trim(l.m, l.want, l.n, keep), 3);
    CHECK(!keep[0] && keep[1] && keep[2] && keep[3] && !keep[4]);
    l = layout_of("H200", "3g.71gb 3g.71gb 1g.18gb");
    CHECK_EQ(bh_mig_layout_trim(l.m, l.want, l.n, keep), 2);
    CHECK(keep[0] && keep[1] && !keep[2]);
    l = layout_of("H200", "3g.71gb@2 3g.40gb");
    CHECK_EQ(bh_mig_layout_trim(l.m, l.want, l.n, keep), 0);
    CHECK(!keep[0] && !keep[1]);
    CHECK_EQ(bh_mig_layout_trim(l.m, l.want, 0, keep), 0);
}

/* ---- against brute force ---- */

/* Do these starts make a layout? Says nothing about how to find them. */
static bool legal(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                  const uint8_t *starts)
{
    unsigned taken[BH_MIG_SLICES_MAX] = {0}, compute = 0, me = 0, me_all = 0, no_me = 0;

    for (size_t i = 0; i < n; i++) {
        const struct bh_mig_profile *p = want[i].profile;
        bool known_start = false;
        unsigned same = 0;

        for (size_t s = 0; s < p->n_starts; s++)
            known_start = known_start || p->starts[s] == starts[i];
        if (!known_start || (want[i].start >= 0 && (uint8_t)want[i].start != starts[i]))
            return false;
        for (unsigned k = starts[i]; k < (unsigned)starts[i] + p->placement_size; k++)
            if (k >= m->memory_slices || taken[k]++)
                return false;
        for (size_t j = 0; j < n; j++)
            same += want[j].profile == p;
        if (same > p->max_instances)
            return false;
        compute += p->compute_slices;
        me += p->media == BH_MEDIA_ME;
        me_all += p->media == BH_MEDIA_ME_ALL;
        no_me += p->media == BH_MEDIA_NO_ME;
    }
    return compute <= m->compute_slices && me + me_all <= 1 && (me_all == 0 || me_all + no_me == n);
}

/* Every combination of starts, legal or not. */
static bool brute_force_fits(const struct bh_gpu_model *m, const struct bh_mig_instance *want, size_t n,
                             size_t i, uint8_t *starts)
{
    if (i == n)
        return legal(m, want, n, starts);
    for (size_t s = 0; s < want[i].profile->n_starts; s++) {
        starts[i] = want[i].profile->starts[s];
        if (brute_force_fits(m, want, n, i + 1, starts))
            return true;
    }
    return false;
}

static size_t draw_layout(struct bh_choice *c, const struct bh_gpu_model *m, struct bh_mig_instance *want,
                          uint32_t max)
{
    size_t n = bh_choose(c, max + 1);
    uint32_t kinds = 1 + bh_choose(c, m->n_profiles); /* few kinds: more of the layouts fit */

    for (size_t i = 0; i < n; i++) {
        want[i].profile = &m->profiles[bh_choose(c, kinds)];
        want[i].start = -1;
        if (bh_choose(c, 3) == 0)
            want[i].start = (int8_t)want[i].profile->starts[bh_choose(c, want[i].profile->n_starts)];
        if (bh_choose(c, 40) == 0)
            want[i].start = (int8_t)bh_choose(c, BH_MIG_SLICES_MAX);
    }
    return n;
}

static bool conflict_makes_sense(const struct bh_gpu_model *m, size_t n, const struct bh_mig_conflict *c)
{
    bool single = strcmp(c->reason, "start") == 0, pair = strcmp(c->reason, "overlap") == 0;
    bool media = strcmp(c->reason, "media") == 0, full = strcmp(c->reason, "full") == 0;

    if (c->b >= n || c->a > c->b || c->slices >> m->memory_slices)
        return false;
    if (single)
        return c->a == c->b && !c->slices;
    if (pair)
        return c->a < c->b && c->slices;
    return media ? c->a < c->b && !c->slices : full && (c->a < c->b) == (c->slices != 0);
}

TEST(layouts_agree_with_brute_force)
{
    unsigned n_fit = 0, n_not = 0;

    for (uint64_t seed = 1; seed <= 800; seed++)
        for (size_t k = 0; k < bh_catalog_count(); k++) {
            const struct bh_gpu_model *m = bh_catalog_at(k);
            uint8_t bytes[64], starts[8] = {0}, oracle[8];
            struct bh_choice c = {bytes, sizeof(bytes)};
            struct bh_mig_instance want[8];
            struct bh_mig_conflict why = {.reason = ""};
            size_t n;
            bool fit, expected;

            if (!bh_model_has_mig(m))
                continue;
            bh_choice_fill(bytes, sizeof(bytes), seed * 100 + k);
            n = draw_layout(&c, m, want, 5);
            fit = bh_mig_layout_fits(m, want, n, starts, &why);
            expected = brute_force_fits(m, want, n, 0, oracle);
            if (fit != expected)
                printf("# seed %" PRIu64 " on %s\n", seed, m->name);
            CHECK_EQ(fit, expected);
            CHECK(fit ? legal(m, want, n, starts) : conflict_makes_sense(m, n, &why));
            n_fit += fit;
            n_not += !fit;
        }
    CHECK(n_fit > 1000 && n_not > 1000);
}

TEST(trim_agrees_with_brute_force)
{
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (size_t k = 0; k < bh_catalog_count(); k++) {
            const struct bh_gpu_model *m = bh_catalog_at(k);
            uint8_t bytes[64], starts[8];
            struct bh_choice c = {bytes, sizeof(bytes)};
            struct bh_mig_instance want[5], part[5];
            bool keep[5];
            size_t n, kept, n_part = 0, best = 0;

            if (!bh_model_has_mig(m))
                continue;
            bh_choice_fill(bytes, sizeof(bytes), seed * 100 + k);
            n = draw_layout(&c, m, want, 5);
            kept = bh_mig_layout_trim(m, want, n, keep);
            for (size_t i = 0; i < n; i++)
                if (keep[i])
                    part[n_part++] = want[i];
            CHECK_EQ(n_part, kept);
            CHECK(brute_force_fits(m, part, n_part, 0, starts));
            for (unsigned set = 0; set < 1U << n; set++) {
                size_t size = 0;

                for (size_t i = 0; i < n; i++)
                    if (set >> i & 1)
                        part[size++] = want[i];
                if (size > best && brute_force_fits(m, part, size, 0, starts))
                    best = size;
            }
            if (kept != best)
                printf("# seed %" PRIu64 " on %s\n", seed, m->name);
            CHECK_EQ(kept, best);
        }
}

/* The largest lists a file can make of one model stay cheap: every profile as often as the driver makes it. */
TEST(the_whole_catalogue_at_once_is_searched_quickly)
{
    for (size_t k = 0; k < bh_catalog_count(); k++) {
        const struct bh_gpu_model *m = bh_catalog_at(k);
        struct bh_mig_instance want[128];
        bool keep[128];
        size_t n = 0;

        for (size_t i = 0; i < m->n_profiles; i++)
            for (unsigned j = 0; j < m->profiles[m->n_profiles - 1 - i].max_instances; j++)
                want[n++] = (struct bh_mig_instance){&m->profiles[m->n_profiles - 1 - i], -1};
        CHECK_EQ(bh_mig_layout_trim(m, want, n, keep), bh_model_has_mig(m) ? m->compute_slices : 0);
        n = 0;
        for (size_t i = 0; i < m->n_profiles; i++)
            for (size_t s = 0; s < m->profiles[i].n_starts; s++)
                want[n++] = (struct bh_mig_instance){&m->profiles[i], (int8_t)m->profiles[i].starts[s]};
        CHECK_EQ(bh_mig_layout_trim(m, want, n, keep), bh_model_has_mig(m) ? m->compute_slices : 0);
    }
}

TEST(models_by_their_pci_device_id)
{
    CHECK_STR(bh_catalog_by_device(0x2330)->name, "H100-80GB-SXM");
    CHECK_STR(bh_catalog_by_device(0x2335)->name, "H200-141GB");
    CHECK(bh_catalog_by_device(0x233b) == bh_catalog_by_device(0x2335));
    CHECK(!bh_catalog_by_device(0) && !bh_catalog_by_device(0xffff));
    CHECK(bh_model_has_devices(bh_catalog_find("A30")));
    CHECK(!bh_model_has_devices(bh_catalog_find("T4")));
    for (size_t i = 1; i < bh_model_device_count; i++)
        CHECK(bh_model_devices[i - 1].device < bh_model_devices[i].device);
}

TEST(built_in_classes_are_the_four_of_the_requirements)
{
    static const char *const names[] = {"training", "serving", "research", "batch"};

    CHECK_EQ(bh_builtin_class_count, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_STR(bh_builtin_classes[i].name, names[i]);
        CHECK(bh_builtin_classes[i].built_in && bh_builtin_classes[i].mechanisms &&
              bh_builtin_classes[i].tiers);
    }
    CHECK_EQ(bh_builtin_classes[0].mechanisms, 1U << BH_MECH_WHOLE);
    CHECK_EQ(bh_builtin_classes[0].quotas, 1U << BH_QUOTA_HARD | 1U << BH_QUOTA_PRIORITY);
    CHECK_EQ(bh_builtin_classes[1].quotas, 1U << BH_QUOTA_HARD);
    CHECK_EQ(bh_builtin_classes[1].slos, 0);
    CHECK_EQ(bh_builtin_classes[2].slos, 1U << BH_SLO_NONE | 1U << BH_SLO_SOFT);
    CHECK(bh_builtin_classes[3].mechanisms & 1U << BH_MECH_TIMESLICE);
    for (size_t i = 0; i < 4; i++)
        CHECK(!(bh_builtin_classes[i].tiers & 1U << BH_TIER_PROCESS));
}

TEST_MAIN
