/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/mig_fixture.h"

static struct bh_mig_fixture f;

TEST(a_card_is_opened_with_its_own_right_or_to_read)
{
    const struct bh_gpu_mig_right other = {"GPU-other", "the test"}, nobody = {MIG_UUID, ""};
    struct bh_gpu_mig *m = NULL;
    CHECK(bh_mig_fixture_open(&f, true));
    CHECK_EQ(bh_gpu_mig_open(&m, MIG_UUID, &other, &f.err), BH_INVALID);
    CHECK_STR(f.err.msg, "the right that was shown is for 'GPU-other', not for " MIG_UUID);
    CHECK_EQ(bh_gpu_mig_open(&m, MIG_UUID, &nobody, &f.err), BH_INVALID);
    CHECK_EQ(bh_gpu_mig_open(&m, "GPU-none", NULL, &f.err), BH_NOT_FOUND);
    CHECK_STR(f.err.msg, "no GPU of this machine is GPU-none");
    CHECK(!m);
    bh_gpu_mig_close(NULL);
}

TEST(without_a_right_nothing_changes)
{
    struct bh_gpu_mig *m = NULL;
    struct bh_gpu_mig_want want = {MIG_1G, 0};
    uint32_t id;
    bool on = false;
    CHECK_EQ(bh_gpu_mig_open(&m, MIG_UUID, NULL, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_is_on(m, &on, &f.err), BH_OK);
    CHECK(on);
    CHECK_EQ(bh_gpu_mig_create_gi(m, want, &id, &f.err), BH_DENIED);
    CHECK_EQ(bh_gpu_mig_create_ci(m, 1, &id, &f.err), BH_DENIED);
    CHECK_EQ(bh_gpu_mig_destroy_gi(m, 1, &f.err), BH_DENIED);
    CHECK_EQ(bh_gpu_mig_destroy_ci(m, 1, 0, &f.err), BH_DENIED);
    CHECK_EQ(bh_gpu_mig_turn_on(m, 0, &f.err), BH_DENIED);
    CHECK_EQ(bh_gpu_mig_apply(m, &want, 1, NULL, &f.err), BH_DENIED);
    CHECK_STR(f.err.msg, "the layout of " MIG_UUID
                         " is not ours to change: it was opened without a right from its owner");
    CHECK_STR(bh_mig_fixture_words(&f), "none");
    bh_gpu_mig_close(m);
}

TEST(instances_come_and_go_in_order)
{
    uint32_t gi = 0, ci = 9;
    struct bh_gpu_mig_layout l;
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_3G, 4}, &gi, &f.err), BH_OK);
    CHECK_STR(bh_mig_fixture_words(&f), "3g.20gb@4 (no compute instance)");
    CHECK_EQ(bh_gpu_mig_create_ci(f.m, gi, &ci, &f.err), BH_OK);
    CHECK_EQ(ci, 0);
    CHECK_STR(bh_mig_fixture_words(&f), "3g.20gb@4");
    CHECK_EQ(bh_gpu_mig_read(f.m, &l, &f.err), BH_OK);
    CHECK(l.n == 1 && l.at[0].size == 4 && l.at[0].n_cis == 1 && l.at[0].cis[0].size == 3);
    CHECK_EQ(bh_gpu_mig_destroy_gi(f.m, gi, &f.err), BH_BUSY);
    CHECK_STR(f.err.msg, "removing GPU instance 1 on " MIG_UUID ": it is in use; stop what runs on it first");
    CHECK_EQ(bh_gpu_mig_destroy_ci(f.m, gi, 5, &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_gpu_mig_destroy_ci(f.m, gi, ci, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_destroy_gi(f.m, gi, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_destroy_gi(f.m, gi, &f.err), BH_NOT_FOUND);
    CHECK_STR(bh_mig_fixture_words(&f), "none");
}

TEST(the_widest_compute_profile_is_taken)
{
    uint32_t gi, ci;
    struct bh_gpu_mig_layout l;
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_1G_WIDE, 2}, &gi, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_create_ci(f.m, gi, &ci, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_read(f.m, &l, &f.err), BH_OK);
    CHECK_EQ(l.at[0].cis[0].profile_id, 7);
    f.set("clear", 0);
}

TEST(what_is_left)
{
    struct bh_gpu_mig_profile p[BH_GPU_MIG_PROFILES_MAX];
    size_t n = 0;
    uint32_t gi;
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_4G, 0}, &gi, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_profiles(f.m, p, &n, &f.err), BH_OK);
    CHECK_EQ(n, 6);
    CHECK(p[0].id == MIG_1G && p[0].room == 3 && p[2].id == MIG_3G && p[2].room == 1 && p[4].room == 0);
    CHECK_STR(p[2].name, "3g.20gb");
    CHECK(p[2].slices == 3 && p[2].sm == 42 && p[2].memory_mib == 19968);
    f.fail("gi_room", 0, NVML_NO_PERMISSION);
    CHECK_EQ(bh_gpu_mig_profiles(f.m, p, &n, &f.err), BH_DENIED);
    CHECK_STR(f.err.msg, "asking how much room is left on " MIG_UUID
                         ": not permitted; it takes root or the capability mig/config");
    f.fail("", 0, 0);
    f.set("clear", 0);
}

TEST(refusals_are_sentences)
{
    uint32_t gi;
    static const struct {
        int status, rc;
        const char *words;
    } table[] = {
        {NVML_INSUFFICIENT_RESOURCES, BH_QUOTA, "the GPU has no room left for it"},
        {NVML_IN_USE, BH_BUSY, "it is in use; stop what runs on it first"},
        {NVML_NOT_SUPPORTED, BH_REFUSED, "this GPU cannot do that"},
        {NVML_GPU_IS_LOST, BH_SYSTEM, "the GPU is lost; reset it or reboot the node"},
        {777, BH_SYSTEM, "the driver answered with error 777"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        f.fail("gi_create", 0, table[i].status);
        CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_1G, 0}, &gi, &f.err), table[i].rc);
        CHECK(strstr(f.err.msg, table[i].words) && strstr(f.err.msg, "making 1g.5gb@0 on " MIG_UUID));
    }
    f.fail("", 0, 0);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){77, 0}, &gi, &f.err), BH_INVALID);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_3G, 3}, &gi, &f.err), BH_INVALID);
    CHECK_STR(f.err.msg, "profile 9 cannot start at slice 3 of " MIG_UUID);
    f.fail("gi_list", 0, NVML_NO_PERMISSION);
    CHECK_STR(bh_mig_fixture_words(&f), "listing the MIG instances on " MIG_UUID
                                        ": not permitted; it takes root or the capability mig/config");
    f.fail("", 0, 0);
}

TEST(what_cannot_be_looked_at_does_not_stay)
{
    uint32_t gi, ci;
    f.fail("gi_info", 0, -NVML_UNKNOWN);
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_1G, 0}, &gi, &f.err), BH_SYSTEM);
    CHECK_STR(bh_mig_fixture_words(&f), "none");
    CHECK_EQ(bh_gpu_mig_create_gi(f.m, (struct bh_gpu_mig_want){MIG_1G, 0}, &gi, &f.err), BH_OK);
    f.fail("ci_info", 0, -NVML_UNKNOWN);
    CHECK_EQ(bh_gpu_mig_create_ci(f.m, gi, &ci, &f.err), BH_SYSTEM);
    CHECK_STR(bh_mig_fixture_words(&f), "1g.5gb@0 (no compute instance)");
    CHECK_EQ(bh_gpu_mig_destroy_gi(f.m, gi, &f.err), BH_OK);
}

static void turn_off(void)
{
    f.set("mode", 0);
    f.set("pending", 0);
}

TEST(the_mode)
{
    bool on = false;
    turn_off();
    CHECK_EQ(bh_gpu_mig_is_on(f.m, &on, &f.err), BH_OK);
    CHECK(!on);
    f.set("pids", 2);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_BUSY);
    CHECK_STR(f.err.msg, MIG_UUID " is in use by 2 processes (pid 4001, 4002); stop them first");
    f.set("pids", 0);
    f.set("activation", NVML_RESET_REQUIRED);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 60000, &f.err), BH_CONFLICT); /* nobody waits for a reset */
    CHECK_STR(f.err.msg, "MIG goes on on " MIG_UUID " at the next reset");
    CHECK_EQ(bh_gpu_mig_is_on(f.m, &on, &f.err), BH_CONFLICT);
    f.set("activation", 0);
    /* one that waits, of whomever, is tried again */
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_is_on(f.m, &on, &f.err), BH_OK);
    CHECK(on);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_OK); /* as it is */
    f.set("pending", 0);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_CONFLICT);
    CHECK_STR(f.err.msg,
              "MIG goes off on " MIG_UUID " at the next reset; until then its layout stays as it is");
    turn_off();
    f.set("stuck", 1);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_SYSTEM);
    CHECK_STR(f.err.msg, "the driver says that MIG went on on " MIG_UUID ", and it did not");
    f.set("stuck", 0);
    f.set("capable", 0);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_REFUSED);
    CHECK_STR(f.err.msg, MIG_UUID " cannot be cut: the GPU has no MIG");
    f.set("capable", 1);
}

/* A monitor looks at the card, or the one who sets up the lease beside this one. */
TEST(who_has_it_open_for_a_moment)
{
    bool on = false;
    turn_off();
    f.set("open", 3);
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 0, &f.err), BH_CONFLICT);
    CHECK_STR(f.err.msg, "MIG goes on on " MIG_UUID
                         " at the next reset: somebody has it open now, if only to read it; stop them first");
    CHECK_EQ(bh_gpu_mig_turn_on(f.m, 60000, &f.err), BH_OK);
    CHECK_EQ(bh_gpu_mig_is_on(f.m, &on, &f.err), BH_OK);
    CHECK(on);
    bh_mig_fixture_close(&f);
}

TEST_MAIN
