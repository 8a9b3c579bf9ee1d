/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/mig_fixture.h"

static struct bh_mig_fixture f;
static struct bh_gpu_mig_result r;

#define APPLY(...)                                                                                           \
    bh_gpu_mig_apply(f.m, (const struct bh_gpu_mig_want[]){__VA_ARGS__},                                     \
                     sizeof((const struct bh_gpu_mig_want[]){__VA_ARGS__}) / sizeof(struct bh_gpu_mig_want), \
                     &r, &f.err)
#define AT(profile, start) ((struct bh_gpu_mig_want){profile, start})

static const char *now(void)
{
    static char words[256];
    bh_gpu_mig_words(&r.now, words, sizeof(words));
    return words;
}

TEST(from_nothing_to_a_layout)
{
    CHECK(bh_mig_fixture_open(&f, true));
    CHECK_EQ(APPLY(AT(MIG_3G, 4), AT(MIG_1G, 1), AT(MIG_1G, 0)), BH_OK);
    CHECK(r.n_created == 3 && r.n_kept == 0 && r.n_destroyed == 0 && r.is_known && !r.put_back);
    CHECK_STR(now(), "1g.5gb@0, 1g.5gb@1, 3g.20gb@4");
    CHECK(r.now.at[2].n_cis == 1 && r.now.at[2].cis[0].size == 3);
}

TEST(only_what_differs_is_touched)
{
    uint32_t kept = r.now.at[2].gi;
    CHECK_EQ(APPLY(AT(MIG_2G, 0), AT(MIG_3G, 4)), BH_OK);
    CHECK(r.n_kept == 1 && r.n_destroyed == 2 && r.n_created == 1);
    CHECK_STR(now(), "2g.10gb@0, 3g.20gb@4");
    CHECK_EQ(r.now.at[1].gi, kept);
    CHECK_EQ(APPLY(AT(MIG_2G, 0), AT(MIG_3G, 4)), BH_OK);
    CHECK(r.n_kept == 2 && r.n_destroyed == 0 && r.n_created == 0);
    CHECK_EQ(bh_gpu_mig_apply(f.m, NULL, 0, NULL, &f.err), BH_OK);
    CHECK_STR(bh_mig_fixture_words(&f), "none");
}

TEST(half_an_instance_is_finished)
{
    uint32_t gi;
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, AT(MIG_3G, 0), &gi, &f.err), BH_OK);
    CHECK_EQ(APPLY(AT(MIG_3G, 0)), BH_OK);
    CHECK(r.n_kept == 1 && r.n_created == 0 && r.now.at[0].n_cis == 1 && r.now.at[0].gi == gi);
}

TEST(refused_before_anything_is_touched)
{
    CHECK_EQ(APPLY(AT(MIG_4G, 0), AT(MIG_1G, 3)), BH_INVALID);
    CHECK_STR(f.err.msg,
              "the wanted layout of " MIG_UUID " has two instances on slice 3 (profiles 5 and 19)");
    CHECK_EQ(APPLY(AT(MIG_1G, 2), AT(MIG_1G, 2)), BH_INVALID);
    CHECK_EQ(APPLY(AT(MIG_1G, 7)), BH_INVALID);
    CHECK_STR(f.err.msg, "profile 19 cannot start at slice 7 of " MIG_UUID);
    CHECK_EQ(APPLY(AT(99, 0)), BH_INVALID);
    CHECK_STR(f.err.msg, MIG_UUID " has no MIG profile 99");
    f.set("pids", 10);
    CHECK_EQ(APPLY(AT(MIG_7G, 0)), BH_BUSY);
    CHECK_STR(f.err.msg,
              MIG_UUID " is in use by 10 processes (pid 4001, 4002, 4003, 4004, 4005, 4006, 4007, 4008, "
                       "...); stop them first");
    f.set("pids", 0);
    f.fail("processes", 0, NVML_NO_PERMISSION);
    CHECK_EQ(APPLY(AT(MIG_7G, 0)), BH_DENIED);
    CHECK_STR(f.err.msg,
              MIG_UUID " is left as it is: whether it is in use cannot be told: not permitted; try as root");
    f.fail("", 0, 0);
    f.set("pending", 0);
    CHECK_EQ(APPLY(AT(MIG_7G, 0)), BH_CONFLICT);
    CHECK_STR(f.err.msg,
              "MIG goes off on " MIG_UUID " at the next reset; until then its layout stays as it is");
    f.set("mode", 0);
    CHECK_EQ(APPLY(AT(MIG_7G, 0)), BH_CONFLICT);
    CHECK_STR(f.err.msg, "MIG is off on " MIG_UUID "; turn it on before cutting it");
    f.set("mode", 1);
    f.set("pending", 1);
    f.set("capable", 0);
    CHECK_EQ(APPLY(AT(MIG_7G, 0)), BH_REFUSED);
    f.set("capable", 1);
    CHECK_STR(bh_mig_fixture_words(&f), "3g.20gb@0");
}

/* Every step of a change may be the one that is refused once; what was found must stand again each time. */
TEST(a_failure_at_any_step_is_undone)
{
    static const char *const calls[] = {"ci_destroy", "gi_destroy", "gi_create", "ci_create"};
    for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
        for (int step = 0; step < 2; step++) {
            f.set("clear", 0);
            f.fail("", 0, 0);
            CHECK_EQ(APPLY(AT(MIG_1G, 0), AT(MIG_1G, 1), AT(MIG_3G, 4)), BH_OK);
            f.fail(calls[c], step, -NVML_IN_USE);
            CHECK_EQ(APPLY(AT(MIG_2G, 0), AT(MIG_2G, 2), AT(MIG_3G, 4)), BH_BUSY);
            CHECK(r.put_back && r.is_known && r.n_created == 0 && r.n_destroyed == 0);
            CHECK_STR(now(), "1g.5gb@0, 1g.5gb@1, 3g.20gb@4");
            CHECK(strstr(f.err.msg, "it is in use") &&
                  strstr(f.err.msg, "; the layout found was put back: 1g.5gb@0, 1g.5gb@1, 3g.20gb@4"));
            for (size_t i = 0; i < r.now.n; i++)
                CHECK_EQ(r.now.at[i].n_cis, 1);
        }
}

TEST(several_compute_instances_come_back_as_they_were)
{
    struct bh_gpu_mig_layout was;
    uint32_t gi;
    f.set("clear", 0);
    f.fail("", 0, 0);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, AT(MIG_3G, 0), &gi, &f.err), BH_OK);
    /* three of one slice, made behind our back */
    int (*make)(void *, unsigned, void **);
    int (*list)(void *, unsigned, void **, unsigned *);
    void *at = dlsym(f.library, "nvmlGpuInstanceCreateComputeInstance"), *handles[8], *made;
    unsigned n = 8;
    memcpy(&make, &at, sizeof(at));
    at = dlsym(f.library, "nvmlDeviceGetGpuInstances");
    memcpy(&list, &at, sizeof(at));
    CHECK_EQ(list(NULL, MIG_3G, handles, &n), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(make(handles[0], 0, &made), 0);
    CHECK_EQ(bh_gpu_mig_read(f.m, &was, &f.err), BH_OK);
    CHECK_EQ(was.at[0].n_cis, 3);
    f.fail("gi_create", 0, -NVML_INSUFFICIENT_RESOURCES);
    CHECK_EQ(APPLY(AT(MIG_4G, 0)), BH_QUOTA);
    CHECK(r.put_back && r.now.n == 1 && r.now.at[0].n_cis == 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(r.now.at[0].cis[i].start == was.at[0].cis[i].start && r.now.at[0].cis[i].size == 1);
}

TEST(where_it_cannot_be_undone_it_says_what_is_there)
{
    f.set("clear", 0);
    f.fail("", 0, 0);
    CHECK_EQ(APPLY(AT(MIG_1G, 0), AT(MIG_3G, 4)), BH_OK);
    f.fail("gi_create", 0, NVML_INSUFFICIENT_RESOURCES); /* and never again */
    CHECK_EQ(APPLY(AT(MIG_2G, 0), AT(MIG_3G, 4)), BH_QUOTA);
    CHECK(!r.put_back && r.is_known);
    CHECK_STR(now(), "3g.20gb@4");
    CHECK(strstr(f.err.msg, "making 2g.10gb@0 on ") &&
          strstr(f.err.msg, "the layout found could not be put back (") &&
          strstr(f.err.msg, "there is now: 3g.20gb@4"));
    bh_mig_fixture_close(&f);
}

TEST_MAIN
