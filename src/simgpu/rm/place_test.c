/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "gpu/abi/nvml.h"
#include "simgpu/rm/rm_fixture.h"

static struct bh_sim_rm *cut_node(void)
{
    struct bh_sim_node n = fx_node("H100-80GB", 1);
    n.gpus[0].mig = true;
    return bh_sim_rm_new(&n);
}

static int order(struct bh_sim_rm *rm, struct bh_sim_mig_order *o)
{
    return bh_sim_rm_mig(rm, &fx_admin, o);
}

static uint32_t profile_id(const char *name)
{
    const struct bh_mig_profile *p = bh_mig_find(bh_catalog_find("H100-80GB"), name);
    return p ? p->gi_profile_id : UINT32_MAX;
}

/* A tenant on an instance and its one compute instance. */
static uint32_t join(struct bh_sim_rm *rm, const struct bh_sim_caller *who, uint32_t gi, uint32_t ci,
                     struct fx_tenant *t, uint32_t *partition)
{
    struct rm_partition_params p = {.gi = gi}, q = {.gi = ci};
    uint32_t exec = 0, status = fx_tenant(rm, who, 0, t);
    *partition = 0;
    if (status == RM_OK)
        status = fx_alloc(rm, t->file, who, t->client, t->subdevice, partition, RM_CLASS_SMC_PARTITION, &p,
                          sizeof(p));
    if (status == RM_OK)
        status = fx_alloc(rm, t->file, who, t->client, t->subdevice, &exec, 0xc638, &q, sizeof(q));
    return status;
}

TEST(orders_need_root_and_a_card)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_sim_mig_order o = {.verb = BH_SIM_MIG_MODE, .profile_id = 1};
    CHECK_EQ(bh_sim_rm_mig(rm, &fx_user, &o), NVML_NO_PERMISSION);
    o.gpu = 1;
    CHECK_EQ(order(rm, &o), NVML_INVALID_ARGUMENT);
    o = (struct bh_sim_mig_order){.verb = 99};
    CHECK_EQ(order(rm, &o), NVML_INVALID_ARGUMENT);
    CHECK_EQ(bh_sim_rm_break(rm, "gpu 0 lost", NULL), BH_OK);
    o = (struct bh_sim_mig_order){.verb = BH_SIM_MIG_MODE, .profile_id = 1};
    CHECK_EQ(order(rm, &o), NVML_GPU_IS_LOST);
    bh_sim_rm_free(rm);
}

TEST(the_mode_waits_for_whoever_uses_the_card)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_sim_mig_order o = {.verb = BH_SIM_MIG_MODE, .profile_id = 1};
    struct bh_sim_gpu_view v;
    struct fx_tenant t;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    (void)order(rm, &o);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(!v.mig_on && v.mig_pending);
    bh_sim_rm_close(rm, t.file);
    CHECK_EQ(order(rm, &o), NVML_OK);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.mig_on && v.util_percent == UINT32_MAX);
    bh_sim_rm_free(rm);
}

TEST(an_instance_has_its_own_memory)
{
    struct bh_sim_rm *rm = cut_node();
    struct bh_sim_mig_order gi = {
        .verb = BH_SIM_MIG_GI_CREATE, .profile_id = profile_id("1g.10gb"), .start = -1};
    struct bh_sim_mig_order ci = {.verb = BH_SIM_MIG_CI_CREATE, .profile_id = 1};
    struct fx_tenant t, bare;
    struct bh_sim_gpu_view v;
    uint64_t bytes = BH_GIB;
    uint32_t partition = 0, memory = 0, n = 0, group = 0, channel = 0, fb[257] = {1, 0x08};
    CHECK_EQ(order(rm, &gi), NVML_OK);
    ci.gi = gi.gi;
    CHECK_EQ(order(rm, &ci), NVML_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &bare), RM_OK);
    CHECK_EQ(fx_memory(rm, &bare, &bytes, &memory), RM_INVALID_STATE); /* belongs to no instance */
    CHECK_EQ(join(rm, &fx_user, gi.gi, ci.ci, &t, &partition), RM_OK);
    for (; fx_memory(rm, &t, &bytes, &memory) == RM_OK && n < 80; memory = 0)
        n++;
    CHECK(n >= 9 && n <= 10);
    CHECK(bh_sim_rm_view_gpu(rm, 0, &v));
    CHECK(v.n_gis == 1 && v.gis[0].n_cis == 1);
    CHECK_EQ(v.gis[0].used_bytes, n * BH_GIB);
    CHECK_EQ(v.used_bytes, n * BH_GIB);
    CHECK(v.n_processes == 1 && v.processes[0].gi == gi.gi && v.processes[0].ci == ci.ci);
    CHECK_EQ(fx_control(rm, t.file, t.who, t.client, t.subdevice, RM_CTRL_FB_GET_INFO_V2, fb, sizeof(fb)),
             RM_OK);
    CHECK(fb[2] >= 9u << 20 && fb[2] <= 10u << 20);
    CHECK_EQ(fx_channel(rm, &t, &group, &channel), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    /* it cannot go while somebody is on it */
    gi.verb = BH_SIM_MIG_GI_DESTROY;
    ci.verb = BH_SIM_MIG_CI_DESTROY;
    CHECK(order(rm, &gi) != NVML_OK);
    CHECK(order(rm, &ci) != NVML_OK);
    bh_sim_rm_close(rm, t.file);
    CHECK_EQ(order(rm, &ci), NVML_OK);
    CHECK_EQ(order(rm, &gi), NVML_OK);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_close(rm, bare.file);
    CHECK(fx_nothing_held(rm));
    bh_sim_rm_free(rm);
}

TEST(instances_do_not_see_each_other)
{
    struct bh_sim_rm *rm = cut_node();
    struct bh_sim_mig_order a = {
        .verb = BH_SIM_MIG_GI_CREATE, .profile_id = profile_id("3g.40gb"), .start = -1};
    struct bh_sim_mig_order b = a, ci = {.verb = BH_SIM_MIG_CI_CREATE, .profile_id = 3};
    struct fx_tenant s, t;
    uint64_t bytes = BH_GIB;
    uint32_t p = 0, q = 0, memory = 0, copy = 0, again = 0;
    struct rm_partition_params second = {0};
    CHECK_EQ(order(rm, &a), NVML_OK);
    CHECK_EQ(order(rm, &b), NVML_OK);
    CHECK(a.gi != b.gi);
    ci.gi = a.gi;
    CHECK_EQ(order(rm, &ci), NVML_OK);
    uint32_t first = ci.ci;
    ci.gi = b.gi;
    CHECK_EQ(order(rm, &ci), NVML_OK);
    CHECK_EQ(join(rm, &fx_user, a.gi, first, &s, &p), RM_OK);
    CHECK_EQ(join(rm, &fx_user, b.gi, ci.ci, &t, &q), RM_OK);
    CHECK_EQ(fx_memory(rm, &s, &bytes, &memory), RM_OK);
    CHECK_EQ(fx_dup(rm, t.file, t.who, t.client, t.device, &copy, s.client, memory),
             RM_INSUFFICIENT_PERMISSIONS);
    second.gi = b.gi;
    CHECK_EQ(fx_alloc(rm, s.file, s.who, s.client, s.subdevice, &again, RM_CLASS_SMC_PARTITION, &second, 16),
             RM_STATE_IN_USE);
    /* the partition goes before the compute instance that narrowed it */
    CHECK_EQ(fx_free(rm, s.file, s.who, s.client, p), RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(fx_alloc(rm, s.file, s.who, s.client, s.subdevice, &again, RM_CLASS_SMC_PARTITION, &second, 16),
             RM_OK);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_close(rm, s.file);
    bh_sim_rm_close(rm, t.file);
    CHECK(fx_nothing_held(rm) && !bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST_MAIN
