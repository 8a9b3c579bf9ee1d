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

/* Compute instances of a layout, all together. */
static size_t cis_of(const struct bh_gpu_mig_layout *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->at[i].n_cis;
    return n;
}

static bool is_there(const char *words)
{
    struct bh_gpu_mig_layout l;
    char is[256];
    if (bh_gpu_mig_read(f.m, &l, &f.err) < 0)
        return false;
    bh_gpu_mig_words(&l, is, sizeof(is));
    return strcmp(is, words) == 0 && cis_of(&l) == l.n;
}

/*
 * Every call of a change may be the one that fails, once, at any time. Either the change is made, or what was found
 * stands again; and what is said of it is true.
 */
static void fail_each(const char *call, int status)
{
    static const char was[] = "1g.5gb@0, 1g.5gb@1, 3g.20gb@4", want[] = "2g.10gb@0, 2g.10gb@2, 3g.20gb@4";
    for (int step = 0;; step++) {
        f.set("clear", 0);
        f.fail("", 0, 0);
        CHECK_EQ(APPLY(AT(MIG_1G, 0), AT(MIG_1G, 1), AT(MIG_3G, 4)), BH_OK);
        f.fail(call, step, -status);
        int rc = APPLY(AT(MIG_2G, 0), AT(MIG_2G, 2), AT(MIG_3G, 4));
        bool unmet = f.left() != 0, made = r.n_created == 2;
        f.fail("", 0, 0);
        if (rc != BH_OK && made) {
            CHECK(!r.put_back && !r.is_known);
            CHECK(strncmp(f.err.msg, "the change was made, its result cannot be read: ", 48) == 0);
        } else if (rc != BH_OK) {
            bool untouched = !strstr(f.err.msg, "put back");
            CHECK(r.n_destroyed == 0 && r.n_created == 0 && r.put_back == !untouched);
            CHECK(r.is_known && strcmp(now(), was) == 0);
        }
        CHECK(is_there(made ? want : was));
        if (bh_test_failed || unmet) {
            if (bh_test_failed)
                printf("# %s %d at call %d: %d %s\n", call, status, step, rc, f.err.msg);
            CHECK(step > 0 && rc == BH_OK); /* it was met, and the last try was without it */
            return;
        }
    }
}

TEST(a_failure_of_any_call_at_any_time)
{
    static const char *const calls[] = {"mig_mode", "processes", "gi_profile", "gi_places",  "gi_list",
                                        "gi_info",  "gi_create", "gi_destroy", "ci_profile", "ci_list",
                                        "ci_info",  "ci_create", "ci_destroy"};
    static const int statuses[] = {NVML_UNKNOWN, NVML_GPU_IS_LOST, NVML_NO_PERMISSION, NVML_IN_USE};
    for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
        for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
            fail_each(calls[c], statuses[i]);
}

/* A list that is not whole must not be taken for the layout, or what it lacks would be removed as new. */
TEST(what_cannot_be_listed_is_left_alone)
{
    f.set("clear", 0);
    f.fail("", 0, 0);
    CHECK_EQ(APPLY(AT(MIG_1G, 0), AT(MIG_3G, 4)), BH_OK);
    f.fail("gi_profile", 0, NVML_UNKNOWN);
    CHECK_EQ(APPLY(AT(MIG_1G, 0)), BH_SYSTEM);
    CHECK(!r.is_known && r.n_destroyed == 0);
    f.fail("", 0, 0);
    CHECK(is_there("1g.5gb@0, 3g.20gb@4"));
    f.fail("ci_profile", 0, NVML_UNKNOWN);
    CHECK_EQ(APPLY(AT(MIG_1G, 0)), BH_SYSTEM);
    f.fail("mps", 0, NVML_UNKNOWN); /* a list of processes that fails is none that is empty */
    CHECK_EQ(APPLY(AT(MIG_1G, 0)), BH_DENIED);
    CHECK(strstr(f.err.msg, "whether it is in use cannot be told: the driver answered with error 999"));
    f.fail("", 0, 0);
    CHECK(is_there("1g.5gb@0, 3g.20gb@4"));
}

/* Compute instances of one slice in the GPU instance of this profile. */
static bool make_behind_our_back(unsigned profile, int n_cis)
{
    int (*make)(void *, unsigned, void **);
    int (*list)(void *, unsigned, void **, unsigned *);
    void *at = dlsym(f.library, "nvmlGpuInstanceCreateComputeInstance"), *handles[8], *made;
    unsigned n = 8;
    memcpy(&make, &at, sizeof(at));
    at = dlsym(f.library, "nvmlDeviceGetGpuInstances");
    memcpy(&list, &at, sizeof(at));
    bool good = list(NULL, profile, handles, &n) == 0 && n == 1;
    for (int i = 0; good && i < n_cis; i++)
        good = make(handles[0], 0, &made) == 0;
    return good;
}

/* A wanted instance has one compute instance over all of it, and one that is cut further is put right. */
TEST(an_instance_cut_further_is_made_whole)
{
    uint32_t gi;
    f.set("clear", 0);
    f.fail("", 0, 0);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, AT(MIG_3G, 0), &gi, &f.err), BH_OK);
    CHECK(make_behind_our_back(MIG_3G, 1));
    f.fail("ci_create", 0, -NVML_INSUFFICIENT_RESOURCES); /* and comes back as it was when that fails */
    CHECK_EQ(APPLY(AT(MIG_3G, 0)), BH_QUOTA);
    CHECK(r.put_back && r.now.at[0].gi == gi && r.now.at[0].n_cis == 1 && r.now.at[0].cis[0].size == 1);
    CHECK_EQ(APPLY(AT(MIG_3G, 0)), BH_OK);
    CHECK(r.n_kept == 1 && r.n_created == 0 && r.n_destroyed == 0);
    CHECK(r.now.n == 1 && r.now.at[0].gi == gi && r.now.at[0].n_cis == 1 && r.now.at[0].cis[0].size == 3);
}

TEST(several_compute_instances_come_back_as_they_were)
{
    struct bh_gpu_mig_layout was;
    uint32_t gi;
    f.set("clear", 0);
    f.fail("", 0, 0);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, AT(MIG_3G, 0), &gi, &f.err), BH_OK);
    CHECK(make_behind_our_back(MIG_3G, 3));
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
