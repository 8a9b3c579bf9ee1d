/* SPDX-License-Identifier: Apache-2.0 */
#include "core/admit/admit_fixture.h"

static struct fixture f;
static struct bh_admit *a;
static struct bh_admit_grant g;
static struct bh_admit_refusal why;

static void end(void)
{
    bh_admit_free(a);
    fixture_fini(&f);
}

/* The rule that refuses it, `ok` where it is admitted, else the code's word. */
static const char *ask_(struct bh_admit_ask ask)
{
    ask.tenant = ask.tenant ? ask.tenant : "research";
    if (bh_admit_job(a, &ask, &g, &why))
        return "ok";
    return why.rule ? why.rule->id : bh_admit_code_str(why.code);
}
#define ASK(...) ask_((struct bh_admit_ask){__VA_ARGS__})

static const char *const etc[] = {"/etc", NULL}, *const data[] = {"/data/mine", NULL};
static const char *const own_pipe[] = {"/run/bulkhead/nvidia-mps/mps", NULL},
                         *const other_pipe[] = {"/run/bulkhead/nvidia-mps/whole", NULL};
static const char *const device[] = {"/dev/nvidia3", NULL};

TEST(the_rules_about_work_refuse_it)
{
    lab(&f);
    *bh_vec_push(&f.policy.tenants.at[0].images) = (struct bh_text){.s = "registry.example/research/*"};
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.image = "registry.example/research/x:1"), "ok");
    CHECK_STR(ASK(.image = "elsewhere/x:1"), "BH-081");
    CHECK_STR(ASK(.gpus = 0), "BH-081"); /* no image at all */
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .privileged = true), "BH-072");
    CHECK(strstr(why.what, "privileged"));
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .host_pid = true), "BH-072");
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .mounts = etc), "BH-072");
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .mounts = data), "ok");
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .devices = device), "BH-072");
    CHECK_STR(ASK(.image = "registry.example/research/x:1", .gpus = 2), "BH-039"); /* not a gang */
    end();
}

TEST(the_pipe_of_another_pool_is_foreign)
{
    lab(&f);
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.pool = "mps", .mounts = own_pipe), "ok");
    CHECK_STR(ASK(.pool = "mps", .mounts = other_pipe), "BH-072");
    CHECK_STR(ASK(.pool = "whole", .mounts = own_pipe), "BH-072");
    end();
}

TEST(nvlink_is_not_asked_of_instances)
{
    lab(&f);
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.pool = "cut", .needs_nvlink = true), "BH-042");
    CHECK_STR(ASK(.pool = "whole", .needs_nvlink = true), "ok");
    end();
}

TEST(work_that_cannot_resume_does_not_borrow)
{
    lab(&f);
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.checkpointable = BH_FACT_NO, .can = BH_CAN_REQUEUE), "BH-025");
    CHECK_STR(ASK(.checkpointable = BH_FACT_YES, .can = BH_CAN_REQUEUE), "ok");
    end();
}

TEST(what_is_wrong_with_a_pool_stands_against_everybody_in_it)
{
    lab(&f);
    f.policy.pools.at[2].cap_memory_bytes = 0; /* BH-034 */
    f.policy.pools.at[3].tenant_names.at[0].s = "ops";
    *bh_vec_push(&f.policy.pools.at[3].tenant_names) = (struct bh_text){.s = "guest"};
    struct bh_tenant *t = add_tenant(&f, "guest", BH_TRUST_PARTNER, BH_QUOTA_HARD, 1000);
    t->domain = "guest";
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.pool = "shares", .memory_bytes = BH_GIB), "BH-034");
    CHECK_STR(ASK(.tenant = "ops", .pool = "mps"), "BH-001"); /* with whom it must not share a kernel */
    CHECK_STR(ASK(.tenant = "guest"), "BH-001");
    CHECK_STR(ASK(.pool = "whole"), "ok");
    end();
}

TEST(what_is_wrong_with_a_tenant_stands_against_it_alone_and_only_there)
{
    lab(&f);
    f.policy.tenants.at[1].slo.kind = BH_SLO_HARD;
    f.policy.tenants.at[1].quota.model = BH_QUOTA_HARD;
    a = lab_admit(&f, NULL);
    CHECK_STR(ASK(.tenant = "ops", .pool = "shares"), "BH-020");
    CHECK_STR(ASK(.tenant = "ops", .pool = "whole"), "ok");
    CHECK_STR(ASK(.tenant = "research", .pool = "shares"), "ok");
    end();
}

TEST(a_waiver_lets_it_in_until_it_ends)
{
    for (int32_t day = TODAY - 1; day <= TODAY; day++) {
        lab(&f);
        f.policy.tenants.at[1].network.policy = BH_NET_OPEN; /* BH-073 */
        *bh_vec_push(&f.policy.waivers) = (struct bh_waiver){.rule = "BH-073",
                                                             .scope = "tenant:ops",
                                                             .approver = "jane@example.org",
                                                             .reason = "r",
                                                             .has_expiry = true,
                                                             .expires_day = day};
        a = lab_admit(&f, NULL);
        CHECK_STR(ASK(.tenant = "ops", .pool = "whole"), day < TODAY ? "BH-073" : "ok");
        end();
    }
}

TEST_MAIN
