/* SPDX-License-Identifier: Apache-2.0 */
/* promise_test.c - two policies, and every difference once. */
#include "node/promise.h"

#include "base/buf.h"
#include "base/test.h"
#include "conf/input.h"

#include <string.h>

#define TENANT(name, class, quota)                                             \
    "  - {name: " name ", class: " class ", costCenter: c, quota: {" quota     \
                                         "}, network: {policy: default-deny, " \
                                         "rdma: none}, storage: {quota: 1TiB}}\n"
#define HEAD "bulkhead: 1\ntenants:\n"

/* One line for each record: what, of whom, before and after. */
static int note(void *arg, const struct bh_audit_event *e, struct bh_err *err)
{
    (void)err;
    bh_buf_printf(arg, "%s %s %s: %s > %s; %s\n", bh_audit_names[e->event], e->object_id,
                  e->tenant ? e->tenant : "-", e->before ? e->before : "-", e->after ? e->after : "-",
                  e->reason ? e->reason : "-");
    return BH_OK;
}

static void load(struct bh_policy *p, const char *text)
{
    struct bh_diags diags = {0};
    bh_policy_load_text(p, text, strlen(text), NULL, &diags);
    bh_diags_fini(&diags);
}

static bool is_said(const char *from, const char *to, const char *want)
{
    struct bh_policy before, after;
    struct bh_buf said;
    bh_buf_init(&said, 8192);
    load(&after, to);
    if (from)
        load(&before, from);
    bool ok = bh_promise_changes(from ? &before : NULL, &after, note, &said, NULL) == BH_OK &&
              strcmp(bh_buf_text(&said), want) == 0;
    if (!ok)
        printf("# %s\n", bh_buf_text(&said));
    bh_policy_fini(&after);
    if (from)
        bh_policy_fini(&before);
    bh_buf_fini(&said);
    return ok;
}

static const char first[] = HEAD TENANT("a", "serving", "model: hard, gpus: 2") TENANT(
    "b", "research",
    "model: fairshare, gpus: 1.5, max: 4, weight: 200, borrow: true") "roles:\n  - {subject: \"user:ada\", role: tenant-admin, tenant: a}\n"
                                                                      "  - {subject: \"group:ops\", role: operator}\n";

TEST(the_first_policy)
{
    CHECK(is_said(NULL, first,
                  "tenant.create a a: - > serving; hard, 2 GPUs, weight 100\n"
                  "tenant.create b b: - > research; fairshare, 1.500 GPUs, at most 4, weight 200, borrows\n"
                  "rbac.grant user:ada a: - > tenant-admin; -\n"
                  "rbac.grant group:ops -: - > operator; -\n"));
}

TEST(the_same_again)
{
    CHECK(is_said(first, first, ""));
}

TEST(what_was_changed)
{
    static const char second[] = HEAD TENANT("a", "batch", "model: hard, gpus: 3")
        TENANT("c", "research",
               "model: hard, gpus: 1") "roles:\n  - {subject: \"user:ada\", role: tenant-user, tenant: a}\n"
                                       "  - {subject: \"group:ops\", role: operator}\n"
                                       "waivers:\n  - {rule: BH-050, scope: \"tenant:a\", reason: moved, "
                                       "approver: eve, expires: 2030-01-01}\n";
    CHECK(is_said(first, second,
                  "tenant.class-change a a: serving > batch; -\n"
                  "quota.set a a: hard, 2 GPUs, weight 100 > hard, 3 GPUs, weight 100; -\n"
                  "tenant.create c c: - > research; hard, 1 GPUs, weight 100\n"
                  "tenant.delete b b: research > -; -\n"
                  "rbac.grant user:ada a: - > tenant-user; -\n"
                  "rbac.revoke user:ada a: tenant-admin > -; -\n"
                  "policy.waiver tenant:a -: - > eve, until 2030-01-01; moved\n"));
}

#define ALSO(approver, day) \
    "  - {rule: BH-050, scope: \"tenant:a\", reason: moved, approver: " approver ", expires: " day "}\n"
#define WAIVER(approver, day) "waivers:\n" ALSO(approver, day)
#define ONE                   HEAD TENANT("a", "serving", "model: hard, gpus: 2")

TEST(a_waiver_that_lasts_longer_and_one_that_is_gone)
{
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01"), ONE WAIVER("eve", "2036-01-01"),
                  "policy.waiver tenant:a -: eve, until 2030-01-01 > eve, until 2036-01-01; moved\n"));
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01"), ONE,
                  "policy.waiver tenant:a -: eve, until 2030-01-01 > -; moved\n"));
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01"), ONE WAIVER("eve", "2030-01-01"), ""));
    /* two of the same rule and scope: one comes, one of them goes, or one is put in the place of both */
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01"), ONE WAIVER("eve", "2030-01-01") ALSO("bob", "2040-01-01"),
                  "policy.waiver tenant:a -: - > bob, until 2040-01-01; moved\n"));
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01") ALSO("bob", "2040-01-01"), ONE WAIVER("eve", "2030-01-01"),
                  "policy.waiver tenant:a -: bob, until 2040-01-01 > -; moved\n"));
    CHECK(is_said(ONE WAIVER("eve", "2030-01-01") ALSO("bob", "2040-01-01"), ONE WAIVER("eve", "2031-01-01"),
                  "policy.waiver tenant:a -: eve, until 2030-01-01 > eve, until 2031-01-01; moved\n"
                  "policy.waiver tenant:a -: bob, until 2040-01-01 > -; moved\n"));
}

TEST(a_quota_by_the_name_of_a_resource)
{
#define QUOTA(r) HEAD TENANT("a", "serving", "model: hard, gpus: 2, resources: {" r "}")
    CHECK(is_said(QUOTA("nvidia.com/gpu: 1"), QUOTA("nvidia.com/gpu: 2"),
                  "quota.set a a: hard, 2 GPUs, nvidia.com/gpu 1, weight 100 > hard, 2 GPUs, nvidia.com/gpu "
                  "2, weight 100; -\n"));
    CHECK(is_said(QUOTA("a/x: 1, b/y: 2"), QUOTA("b/y: 2, a/x: 1"), ""));
}

TEST(what_a_tenant_agreed_to)
{
#define AGREED(more, rdma)                                                                               \
    HEAD "  - {name: a, class: serving, costCenter: c, quota: {model: hard, gpus: 2}" more ", network: " \
         "{policy: default-deny, rdma: " rdma "}, storage: {quota: 1TiB}}\n"
    CHECK(is_said(AGREED("", "none"), AGREED(", domain: chat, trust: partner", "none"),
                  "policy.change a a: domain internal, trust internal > domain chat, trust partner; -\n"));
    CHECK(is_said(AGREED(", priority: {ceiling: normal}", "none"),
                  AGREED(", priority: {ceiling: high}", "none"),
                  "policy.change a a: priority up to normal > priority up to high; -\n"));
    CHECK(is_said(AGREED("", "none"), AGREED(", idle: {sleepAfter: 30m}", "open"),
                  "policy.change a a: network default-deny, rdma none, sleeps after no time > network "
                  "default-deny, rdma open, sleeps after 30m; -\n"));
}

static int refuse(void *arg, const struct bh_audit_event *e, struct bh_err *err)
{
    (void)e;
    ++*(int *)arg;
    return bh_fail(err, BH_SYSTEM, "no room");
}

TEST(a_log_that_takes_nothing)
{
    struct bh_policy p;
    struct bh_err err;
    int asked = 0;
    load(&p, first);
    CHECK_EQ(bh_promise_changes(NULL, &p, refuse, &asked, &err), BH_SYSTEM);
    CHECK_EQ(asked, 1);
    bh_policy_fini(&p);
}

TEST_MAIN
