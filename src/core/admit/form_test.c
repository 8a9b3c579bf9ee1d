/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"
#include "core/govern/govern.h"

static struct fixture f;
static struct bh_admit *a;
static struct bh_admit_grant g;
static struct bh_admit_refusal why;

static void begin(void)
{
    lab(&f);
    a = lab_admit(&f, NULL);
}

static void end(void)
{
    bh_admit_free(a);
    fixture_fini(&f);
}

/* The code of the refusal, or BH_ADMIT_OK. */
static enum bh_admit_code ask_(struct bh_admit_ask ask)
{
    ask.tenant = ask.tenant ? ask.tenant : "research";
    ask.can = ask.can ? ask.can : BH_CAN_REQUEUE;
    ask.gang = true;
    g = (struct bh_admit_grant){.tier = 0};
    why = (struct bh_admit_refusal){.code = BH_ADMIT_OK};
    return bh_admit_job(a, &ask, &g, &why) ? BH_ADMIT_OK : why.code;
}
#define ASK(...) ask_((struct bh_admit_ask){__VA_ARGS__})

TEST(whole_gpus_are_one_member_of_a_part)
{
    begin();
    CHECK_EQ(ASK(.pool = "whole", .gpus = 2), BH_ADMIT_OK);
    const struct bh_gang_role_spec *r = &g.job.roles[0];
    CHECK_EQ(r->request.form, BH_FORM_WHOLE);
    CHECK_EQ(r->request.n_gpus, 2);
    CHECK_EQ(r->min, 1);
    CHECK_EQ(g.n_layers, 1);
    CHECK_EQ(g.layers[0].mechanism, BH_MECH_WHOLE);
    CHECK_EQ(g.weight, 0);
    CHECK_EQ(g.cap_bytes, 0);
    CHECK_EQ(g.view, BH_ADMIT_CARD);
    CHECK(g.shared[0] && g.bounded_by);
    CHECK_EQ(ASK(.pool = "whole", .gpus = 3), BH_ADMIT_SIZE);
    CHECK_EQ(ASK(.pool = "whole", .share_milli = 500), BH_ADMIT_FORM);
    CHECK_EQ(ASK(.pool = "whole", .profile = "1g.10gb"), BH_ADMIT_FORM);
    CHECK_EQ(ASK(.pool = "whole", .memory_bytes = 90 * BH_GIB), BH_ADMIT_MEMORY);
    CHECK(strstr(why.there, "80 GiB"));
    CHECK_EQ(ASK(.pool = "whole", .share_milli = 1000), BH_ADMIT_OK);
    end();
}

TEST(an_elastic_job_grows_by_members)
{
    begin();
    CHECK_EQ(ASK(.pool = "whole", .gpus = 1, .gpus_max = 2), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].request.n_gpus, 1);
    CHECK_EQ(g.job.roles[0].min, 1);
    CHECK_EQ(g.job.roles[0].max, 2);
    end();
}

TEST(the_smallest_instance_that_holds_it)
{
    begin();
    CHECK_EQ(ASK(.pool = "cut", .memory_bytes = 12 * BH_GIB), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].request.form, BH_FORM_MIG);
    CHECK_STR(g.layers[0].profile->name, "3g.40gb");
    CHECK_EQ(ASK(.pool = "cut"), BH_ADMIT_OK);
    CHECK_STR(g.layers[0].profile->name, "1g.10gb");
    CHECK_EQ(g.layers[0].mechanism, BH_MECH_MIG);
    CHECK_EQ(ASK(.pool = "cut", .gpus = 3, .profile = "1g.10gb", .own_mps = true), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].min, 3);
    CHECK_EQ(g.job.roles[0].request.n_gpus, 1);
    CHECK_EQ(g.n_layers, 2); /* a stack: the instance, and a server of its own in it */
    CHECK_EQ(g.layers[1].mechanism, BH_MECH_MPS);
    CHECK_EQ(ASK(.pool = "cut", .profile = "7g.80gb"), BH_ADMIT_PROFILE);
    CHECK_STR(why.rule->id, "BH-047");
    CHECK_EQ(ASK(.pool = "cut", .profile = "nonsense"), BH_ADMIT_PROFILE);
    CHECK_EQ(ASK(.pool = "cut", .memory_bytes = 70 * BH_GIB), BH_ADMIT_PROFILE);
    CHECK_EQ(ASK(.pool = "cut", .share_milli = 100), BH_ADMIT_FORM);
    end();
}

TEST(a_share_has_a_cap_a_weight_and_a_slice_to_see)
{
    begin();
    CHECK_EQ(ASK(.pool = "shares"), BH_ADMIT_OK);
    const struct bh_request *r = &g.job.roles[0].request;
    CHECK_EQ(r->form, BH_FORM_SHARE);
    CHECK_EQ(r->gpu_milli, 250); /* the pool's */
    CHECK_EQ(r->gpu_mib, 20 * 1024);
    CHECK_EQ(g.mechanism, BH_MECH_GATE);
    CHECK_EQ(g.cap_bytes, 20 * BH_GIB);
    CHECK_EQ(g.weight, 250);
    CHECK_EQ(g.cap_permille, 250);
    CHECK_EQ(g.latency, BH_GOVERN_BATCH);
    CHECK_EQ(g.view, BH_ADMIT_SLICE);
    CHECK_EQ(ASK(.pool = "shares", .share_milli = 100, .memory_bytes = BH_GIB, .gpus = 2), BH_ADMIT_OK);
    CHECK_EQ(r->gpu_milli, 100);
    CHECK_EQ(r->n_gpus, 2);
    CHECK_EQ(g.cap_bytes, BH_GIB);
    CHECK_EQ(ASK(.pool = "shares", .share_milli = 300), BH_ADMIT_SHARE);
    CHECK(strstr(why.there, "0.25"));
    CHECK_EQ(ASK(.pool = "shares", .memory_bytes = 21 * BH_GIB), BH_ADMIT_MEMORY);
    CHECK_EQ(ASK(.pool = "shares", .profile = "1g.10gb"), BH_ADMIT_FORM);
    end();
}

TEST(mps_is_held_by_its_server_not_by_the_gate)
{
    begin();
    CHECK_EQ(ASK(.pool = "mps"), BH_ADMIT_OK);
    CHECK_EQ(g.n_layers, 1);
    CHECK_EQ(g.layers[0].mechanism, BH_MECH_MPS);
    CHECK_EQ(g.layers[0].milli, 250);
    CHECK_EQ(g.layers[0].memory_bytes, 20 * BH_GIB);
    CHECK_EQ(g.weight, 0);
    CHECK(g.job.roles[0].request.mechanism >= BH_N_mechanism); /* a server for each pool */
    end();
}

TEST(time_slices_stand_under_the_gate)
{
    lab(&f);
    f.policy.pools.at[2].mechanism = BH_MECH_TIMESLICE;
    f.policy.pools.at[2].backing = BH_MECH_UNSET;
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.pool = "shares", .memory_bytes = BH_GIB), BH_ADMIT_OK);
    CHECK_EQ(g.n_layers, 2);
    CHECK_EQ(g.layers[0].mechanism, BH_MECH_TIMESLICE);
    CHECK_EQ(g.layers[1].mechanism, BH_MECH_GATE);
    CHECK_EQ(g.layers[1].memory_bytes, BH_GIB);
    end();
}

TEST(a_promised_share_is_a_floor_and_serving_is_latency)
{
    lab(&f);
    struct bh_tenant *t = &f.policy.tenants.at[0];
    t->class_name = "serving";
    t->slo.kind = BH_SLO_SOFT;
    t->share.has_target = true;
    t->share.target_ppm = 100000;
    t->share.under_contention = "proportional";
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.pool = "shares"), BH_ADMIT_OK);
    CHECK_EQ(g.floor_permille, 100);
    CHECK_EQ(g.latency, BH_GOVERN_LATENCY);
    end();
}

TEST(who_comes_from_outside_keeps_the_machine_and_sees_nobody)
{
    lab(&f);
    struct bh_tenant *t = add_tenant(&f, "acme", BH_TRUST_EXTERNAL, BH_QUOTA_HARD, 2000);
    t->domain = "acme";
    struct bh_pool *p = add_pool(&f, "alone", BH_MECH_MIG, BH_TIER_CONTAINER, 0, 2, "acme", NULL);
    *bh_vec_push(&p->profiles) = (struct bh_text){.s = "1g.10gb"};
    (void)add_pool(&f, "vm", BH_MECH_WHOLE, BH_TIER_VM, 0, 2, "acme", NULL);
    a = lab_admit(&f, NULL);
    CHECK_EQ(ASK(.tenant = "acme", .pool = "alone"), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].request.apart, BH_APART_LINK);
    CHECK(g.job.roles[0].request.trust != 0);
    CHECK_EQ(g.view, BH_ADMIT_PRIVATE);
    CHECK_EQ(ASK(.tenant = "acme", .pool = "vm"), BH_ADMIT_OK);
    CHECK_EQ(g.job.roles[0].request.apart, BH_APART_GPU);
    CHECK_EQ(g.view, BH_ADMIT_CARD);
    end();
}

TEST(long_and_bursty_work_are_apart)
{
    begin();
    CHECK_EQ(ASK(.pool = "shares", .pace = BH_PACE_LONG), BH_ADMIT_OK);
    const struct bh_request r = g.job.roles[0].request;
    CHECK_EQ(ASK(.pool = "shares", .pace = BH_PACE_BURSTY), BH_ADMIT_OK);
    CHECK(r.kinds & g.job.roles[0].request.avoid);
    CHECK(r.avoid & g.job.roles[0].request.kinds);
    end();
}

TEST_MAIN
