/* SPDX-License-Identifier: Apache-2.0 */
/* owed_test.c - what happened is in the log once, however often a commit with it fails. */
#include "node/owed.h"

#include "base/test.h"
#include "store/audit_fixture.h"

static int64_t count(struct audit_fixture *f, const char *words)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "SELECT count(*) FROM audit_record WHERE body LIKE '%%%s%%'", words);
    return audit_fixture_number(f, text);
}

/* One transaction with all that is owed, which ends well or not. */
static int attempt(struct audit_fixture *f, struct bh_owed *o, uint64_t now_ms, bool commit)
{
    int rc = bh_store_begin(f->store, &f->err);
    if (rc == BH_OK)
        rc = bh_owed_write(o, f->audit, now_ms, &f->err);
    if (rc == BH_OK && commit)
        rc = bh_store_commit(f->store, &f->err);
    else
        bh_store_rollback(f->store);
    bh_owed_settle(o, rc == BH_OK && commit);
    return rc;
}

TEST(a_sign_in_whose_commit_failed)
{
    struct audit_fixture f;
    struct bh_owed o = {0};
    char name[] = "user:ada";
    const char *rules[] = {"BH-001"};
    const struct bh_audit_event e = {
        .event = BH_AUDIT_AUTH_SUCCESS, .sub = name, .rule_ids = rules, .n_rule_ids = 1};
    CHECK_EQ(audit_fixture_init(&f, 0), BH_OK);
    CHECK(!bh_owed_any(&o));
    CHECK(bh_owed_add(&o, &e, 1000));
    name[5] = 'X'; /* it has a copy */
    CHECK_EQ(attempt(&f, &o, 1000, false), BH_OK);
    CHECK(bh_owed_any(&o));
    CHECK_EQ(count(&f, "auth.success"), 0);
    CHECK_EQ(attempt(&f, &o, 5000, true), BH_OK);
    CHECK(!bh_owed_any(&o));
    CHECK_EQ(count(&f, "auth.success"), 1);
    CHECK_EQ(count(&f, "user:ada"), 1);
    CHECK_EQ(count(&f, "4000 ms before this record"), 1);
    CHECK_EQ(count(&f, "BH-001"), 1);
    CHECK_EQ(attempt(&f, &o, 6000, true), BH_OK);
    CHECK_EQ(count(&f, "auth.success"), 1);
    bh_owed_fini(&o);
    audit_fixture_fini(&f);
}

/* What came in while a transaction with others was open is not taken for a part of it. */
TEST(one_that_comes_meanwhile)
{
    struct audit_fixture f;
    struct bh_owed o = {0};
    const struct bh_audit_event a = {.event = BH_AUDIT_AUTH_SUCCESS, .sub = "user:ada"},
                                b = {.event = BH_AUDIT_AUTH_FAILURE, .src_addr = "192.0.2.1"};
    CHECK_EQ(audit_fixture_init(&f, 0), BH_OK);
    CHECK(bh_owed_add(&o, &a, 1));
    CHECK_EQ(bh_store_begin(f.store, &f.err), BH_OK);
    CHECK_EQ(bh_owed_write(&o, f.audit, 1, &f.err), BH_OK);
    CHECK_EQ(bh_owed_write(&o, f.audit, 1, &f.err), BH_OK); /* once, also when asked twice */
    CHECK(bh_owed_add(&o, &b, 1));
    CHECK_EQ(bh_store_commit(f.store, &f.err), BH_OK);
    bh_owed_settle(&o, true);
    CHECK_EQ(o.rows.n, 1);
    CHECK_EQ(attempt(&f, &o, 2, true), BH_OK);
    CHECK(count(&f, "auth.success") == 1 && count(&f, "auth.failure") == 1 &&
          count(&f, "before this record") == 0);
    bh_owed_fini(&o);
    audit_fixture_fini(&f);
}

TEST(more_than_can_be_kept)
{
    struct audit_fixture f;
    struct bh_owed o = {0};
    const struct bh_audit_event e = {.event = BH_AUDIT_AUTH_FAILURE, .src_addr = "192.0.2.1"};
    CHECK_EQ(audit_fixture_init(&f, 0), BH_OK);
    for (int i = 0; i < BH_OWED_MOST; i++)
        CHECK(bh_owed_add(&o, &e, 1));
    CHECK(!bh_owed_has_room(&o) && !bh_owed_add(&o, &e, 1) && !bh_owed_add(&o, &e, 1));
    CHECK_EQ(attempt(&f, &o, 1, false), BH_OK);
    CHECK_EQ(o.past, 2);
    CHECK_EQ(attempt(&f, &o, 1, true), BH_OK);
    CHECK(!bh_owed_any(&o) && bh_owed_has_room(&o));
    CHECK_EQ(count(&f, "auth.failure"), BH_OWED_MOST);
    CHECK_EQ(count(&f, "audit.sink-fail"), 1);
    CHECK_EQ(count(&f, "2 more sign-ins and refusals"), 1);
    bh_owed_fini(&o);
    audit_fixture_fini(&f);
}

TEST(who_is_counted_is_counted_once)
{
    struct bh_owed o = {0};
    struct bh_idmap met = {0};
    const struct bh_audit_event e = {.event = BH_AUDIT_AUTH_FAILURE};
    CHECK(bh_owed_meets(&o, &met, 7) && !bh_owed_meets(&o, &met, 7));
    for (int i = 0; i < BH_OWED_MOST; i++)
        CHECK(bh_owed_add(&o, &e, 1));
    CHECK(!bh_owed_meets(&o, &met, 7));
    CHECK(bh_owed_meets(&o, &met, 8) && !bh_owed_meets(&o, &met, 8) && !bh_owed_meets(&o, &met, 8));
    bh_owed_fini(&o);
    CHECK(bh_owed_meets(&o, &met, 8) && !bh_owed_meets(&o, &met, 8)); /* there is room: a record of it */
    CHECK(!bh_owed_meets(&o, &met, 7));
    bh_idmap_fini(&met);
}

TEST(it_is_said_once)
{
    struct bh_owed o = {0};
    CHECK(bh_owed_is_to_say(&o) && !bh_owed_is_to_say(&o) && !bh_owed_is_to_say(&o));
    CHECK_EQ(bh_owed_unsaid(&o), 2);
    CHECK_EQ(bh_owed_unsaid(&o), 0);
    CHECK(bh_owed_is_to_say(&o));
}

TEST_MAIN
