/* SPDX-License-Identifier: Apache-2.0 */
/* audit_test.c - what is written, when, by which key; and that nothing is when the transaction is not. */
#include "store/audit.h"

#include "base/str.h"
#include "base/test.h"
#include "store/audit_db.h"
#include "store/audit_fixture.h"

#include <sys/stat.h>

/* Verifies it all; what was found is printed. */
static bool is_sound(struct audit_fixture *f, struct bh_audit_verifier *ret)
{
    struct audit_findings found = {0};
    struct bh_audit_verifier v = {.found = audit_findings_add, .arg = &found};
    int rc = bh_audit_db_verify(f->store, &v, &f->err);
    if (rc < 0)
        printf("# %s\n", f->err.msg);
    for (size_t i = 0; i < found.all.n; i++)
        printf("# record %" PRIu64 ": %s: %s\n", found.all.at[i].seq, bh_audit_wrongs[found.all.at[i].wrong],
               found.all.at[i].text);
    bh_audit_verify_fini(&v);
    if (ret)
        *ret = v;
    const bool ok = rc == BH_OK && found.all.n == 0;
    bh_vec_fini(&found.all);
    return ok;
}

static const struct bh_audit_event grant = {
    .event = BH_AUDIT_ALLOC_GRANT, .sub = "user:ada", .tenant = "red"};

TEST(a_log_begins_with_its_key_and_a_checkpoint)
{
    struct audit_fixture f;
    struct bh_audit_verifier v;
    struct stat st;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK(stat(f.key, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.records, 3); /* the key, the checkpoint, audit.start */
    CHECK_EQ(v.checkpoints, 1);
    CHECK_EQ(v.signed_size, 2);
    CHECK(bh_audit_key_eq(&v.key, bh_audit_current_key(f.audit)));
    CHECK(bh_str_starts(v.origin, "bulkhead.dev/audit/"));
    audit_fixture_fini(&f);
}

TEST(it_goes_on_after_a_restart_and_after_a_kill)
{
    struct audit_fixture f;
    struct bh_audit_verifier v;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK_EQ(bh_audit_stop(f.audit, &f.err), 0);
    audit_fixture_close(&f);
    CHECK_EQ(audit_fixture_open(&f, 0), 0);
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    audit_fixture_close(&f); /* without a stop */
    CHECK_EQ(audit_fixture_open(&f, 0), 0);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.records, 9);
    CHECK_EQ(v.signed_size, 6);
    CHECK_EQ(v.keys, 1);
    audit_fixture_fini(&f);
}

TEST(a_transaction_that_is_rolled_back_leaves_no_record)
{
    struct audit_fixture f;
    CHECK_EQ(audit_fixture_init(&f, 4), 0);
    const int64_t before = audit_fixture_number(&f, "SELECT count(*) FROM audit_record");
    for (int i = 0; i < 10; i++) { /* checkpoints would be due in between */
        CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
        for (int k = 0; k < 5; k++)
            CHECK_EQ(bh_audit_append(f.audit, &grant, &f.err), 0);
        bh_store_rollback(f.store);
    }
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM audit_record"), before);
    CHECK(is_sound(&f, NULL));
    /* and in part: the outer record stays, the inner goes */
    CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
    CHECK_EQ(bh_audit_append(f.audit, &grant, &f.err), 0);
    CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
    CHECK_EQ(bh_audit_append(f.audit, &grant, &f.err), 0);
    bh_store_rollback(f.store);
    CHECK_EQ(bh_store_commit(f.store, &f.err), 0);
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM audit_record"), before + 1);
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

/* The change that a record tells of, here a note, and what becomes of it when the record cannot be written. */
static bool change(struct audit_fixture *f)
{
    return audit_fixture_sql(f, "INSERT OR REPLACE INTO notes(key, value) VALUES ('changed', x'01')") ==
           SQLITE_OK;
}

TEST(what_cannot_be_recorded_does_not_happen)
{
    struct audit_fixture f;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK_EQ(audit_fixture_sql(&f, "CREATE TEMP TRIGGER full BEFORE INSERT ON main.audit_record "
                                   "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"),
             SQLITE_OK);
    CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
    CHECK(change(&f));
    CHECK(bh_audit_append(f.audit, &grant, &f.err) < 0);
    CHECK(strstr(f.err.msg, "the disk is full"));
    /* a caller that goes on as if nothing had been */
    struct bh_sql q;
    CHECK_EQ(bh_sql_get(f.store, "INSERT INTO notes(key, value) VALUES ('later', x'01')", &q, &f.err), 0);
    CHECK(bh_sql_run(&q, NULL, &f.err) < 0);
    CHECK(bh_store_commit(f.store, &f.err) < 0);
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM notes WHERE key IN ('changed', 'later')"), 0);
    /* nested: the outermost transaction does not commit either */
    CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
    CHECK(change(&f));
    CHECK_EQ(bh_store_begin(f.store, &f.err), 0);
    CHECK(bh_audit_append(f.audit, &grant, &f.err) < 0);
    CHECK(bh_store_commit(f.store, &f.err) < 0);
    CHECK(bh_store_commit(f.store, &f.err) < 0);
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM notes WHERE key = 'changed'"), 0);
    /* and when it can be again, all is well */
    CHECK_EQ(audit_fixture_sql(&f, "DROP TRIGGER temp.full"), SQLITE_OK);
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

TEST(a_record_needs_a_transaction_and_an_event_of_ours)
{
    struct audit_fixture f;
    struct bh_audit_event e = grant;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK_EQ(bh_audit_append(f.audit, &e, &f.err), BH_INVALID);
    e.event = BH_AUDIT_AUDIT_CHECKPOINT;
    CHECK_EQ(audit_fixture_add(&f, &e), BH_INVALID);
    e.event = BH_AUDIT_EVENTS;
    CHECK_EQ(audit_fixture_add(&f, &e), BH_INVALID);
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

TEST(only_optional_classes_that_went_well_are_left_out)
{
    static const char *const all[] = {"alloc", "audit", "read", "Heartbeat", "auth"};
    struct audit_fixture f;
    struct bh_audit_event e = {.event = BH_AUDIT_READ_API};
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_READ_API, BH_AUDIT_SUCCESS));
    bh_audit_set_exclude(f.audit, true, all, 5);
    CHECK(!bh_audit_keeps(f.audit, BH_AUDIT_READ_API, BH_AUDIT_SUCCESS));
    CHECK(!bh_audit_keeps(f.audit, BH_AUDIT_HEARTBEAT_TICK, BH_AUDIT_SUCCESS));
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_LIST_API, BH_AUDIT_SUCCESS));
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_ALLOC_GRANT, BH_AUDIT_SUCCESS));
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_AUTH_SUCCESS, BH_AUDIT_SUCCESS));
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_READ_API, BH_AUDIT_DENIED));
    const int64_t before = audit_fixture_number(&f, "SELECT count(*) FROM audit_record");
    CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM audit_record"), before);
    e.outcome = BH_AUDIT_DENIED;
    CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(audit_fixture_number(&f, "SELECT count(*) FROM audit_record"), before + 1);
    /* a policy that turns the log off turns off what may be */
    bh_audit_set_exclude(f.audit, false, NULL, 0);
    CHECK(!bh_audit_keeps(f.audit, BH_AUDIT_LIST_API, BH_AUDIT_SUCCESS));
    CHECK(bh_audit_keeps(f.audit, BH_AUDIT_POLICY_CHANGE, BH_AUDIT_SUCCESS));
    audit_fixture_fini(&f);
}

TEST(checkpoints_come_by_number_and_by_time)
{
    struct audit_fixture f;
    struct bh_audit_verifier v;
    uint64_t wait;
    CHECK_EQ(audit_fixture_init(&f, 10), 0);
    for (int i = 0; i < 35; i++)
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.checkpoints, 4); /* 2, 13, 24, 35 */
    CHECK_EQ(v.signed_size, 35);
    CHECK(v.records - v.signed_size < 10);
    CHECK_EQ(bh_audit_tick(f.audit, &wait, &f.err), 0);
    CHECK(wait > 0 && wait <= BH_AUDIT_CHECKPOINT_MS);
    f.now_ns += INT64_C(1000000) * BH_AUDIT_CHECKPOINT_MS;
    CHECK_EQ(bh_audit_tick(f.audit, &wait, &f.err), 0);
    CHECK(wait == UINT64_MAX);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.checkpoints, 5);
    CHECK_EQ(v.signed_size, v.records);
    /* nothing new: none, however late it is */
    f.now_ns += INT64_C(1000000) * BH_AUDIT_CHECKPOINT_MS * 10;
    CHECK_EQ(bh_audit_tick(f.audit, &wait, &f.err), 0);
    CHECK_EQ(bh_audit_checkpoint(f.audit, &f.err), 0);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.checkpoints, 5);
    /* a clock that was set back does not put one off, and shows */
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    f.now_ns -= INT64_C(86400000000000);
    CHECK_EQ(bh_audit_tick(f.audit, &wait, &f.err), 0);
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.checkpoints, 6);
    CHECK_EQ(v.backwards, 1);
    audit_fixture_fini(&f);
}

TEST(a_new_key_is_vouched_for_by_the_old)
{
    struct audit_fixture f;
    struct bh_audit_verifier v;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    const struct bh_audit_key first = *bh_audit_current_key(f.audit);
    const struct bh_audit_event who = {.sub = "user:root", .reason = "yearly"};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
        CHECK_EQ(bh_audit_rotate(f.audit, &who, &f.err), 0);
    }
    CHECK(!bh_audit_key_eq(&first, bh_audit_current_key(f.audit)));
    CHECK(is_sound(&f, &v));
    CHECK_EQ(v.keys, 4);
    audit_fixture_close(&f);
    CHECK_EQ(audit_fixture_open(&f, 0), 0);
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

TEST(a_rotation_cut_off_after_its_commit_is_finished_at_the_next_start)
{
    struct audit_fixture f;
    char beside[700], old[700];
    const struct bh_audit_event who = {.sub = "user:root"};
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    (void)snprintf(old, sizeof(old), "%s/old", f.folder);
    (void)snprintf(beside, sizeof(beside), "%s.new", f.key);
    CHECK(link(f.key, old) == 0);
    CHECK_EQ(bh_audit_rotate(f.audit, &who, &f.err), 0);
    const struct bh_audit_key now = *bh_audit_current_key(f.audit);
    audit_fixture_close(&f);
    CHECK(rename(f.key, beside) == 0 && rename(old, f.key) == 0); /* as it was before the move */
    CHECK_EQ(audit_fixture_open(&f, 0), 0);
    CHECK(bh_audit_key_eq(&now, bh_audit_current_key(f.audit)));
    CHECK(access(beside, F_OK) < 0);
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

TEST(a_key_that_is_gone_stops_the_start_or_leaves_a_mark)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    audit_fixture_close(&f);
    CHECK(unlink(f.key) == 0);
    CHECK_EQ(audit_fixture_open(&f, 0), BH_REFUSED);
    CHECK(strstr(f.err.msg, "backup"));
    const struct bh_audit_options o = {
        .key_path = f.key, .replace_lost_key = true, .clock_ns = audit_fixture_clock, .clock_arg = &f};
    CHECK_EQ(bh_audit_open(f.store, &o, &f.audit, &f.err), 0);
    struct bh_audit_verifier v = {.found = audit_findings_add, .arg = &found};
    CHECK_EQ(bh_audit_db_verify(f.store, &v, &f.err), 0);
    bh_audit_verify_fini(&v);
    CHECK_EQ(found.all.n, 1);
    CHECK(audit_findings_has(&found, BH_WRONG_KEY, 5));
    bh_vec_fini(&found.all);
    /* whoever knows the new key by another way may say so */
    const struct bh_audit_key now = *bh_audit_current_key(f.audit);
    struct bh_audit_verifier trusting = {.trusted = &now};
    CHECK_EQ(bh_audit_db_verify(f.store, &trusting, &f.err), 0);
    bh_audit_verify_fini(&trusting);
    CHECK_EQ(trusting.findings, 0);
    audit_fixture_fini(&f);
}

TEST(what_is_old_goes_up_to_a_checkpoint_and_the_rest_still_verifies)
{
    struct audit_fixture f;
    struct bh_audit_verifier v;
    uint64_t dropped = 7;
    const struct bh_audit_event who = {.sub = "service:bulkheadd", .reason = "retention 365d"};
    CHECK_EQ(audit_fixture_init(&f, 5), 0);
    CHECK_EQ(bh_audit_prune(f.audit, 0, &who, &dropped, &f.err), 0);
    CHECK_EQ(dropped, 0);
    for (int i = 0; i < 17; i++)
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK_EQ(bh_audit_rotate(f.audit, &who, &f.err), 0);
    const int64_t between_ms = f.now_ns / 1000000;
    f.now_ns += INT64_C(60000000000);
    for (int i = 0; i < 13; i++)
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK_EQ(bh_audit_prune(f.audit, between_ms + 1000, &who, &dropped, &f.err), 0);
    CHECK(dropped > 15);
    CHECK(is_sound(&f, &v));
    CHECK(v.cut.n > dropped); /* the records of the two keys stay */
    CHECK_EQ(v.keys, 2);
    CHECK_EQ(audit_fixture_number(
                 &f, "SELECT count(*) FROM audit_record WHERE seq <= (SELECT cut FROM audit_head)"),
             2);
    /* and it goes on, and goes again */
    for (int i = 0; i < 13; i++)
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK_EQ(bh_audit_prune(f.audit, INT64_MAX, &who, &dropped, &f.err), 0);
    CHECK(dropped > 10);
    audit_fixture_close(&f);
    CHECK_EQ(audit_fixture_open(&f, 5), 0);
    CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK(is_sound(&f, &v));
    audit_fixture_fini(&f);
}

TEST(nothing_is_dropped_from_a_log_that_does_not_hold)
{
    struct audit_fixture f;
    uint64_t dropped = 0;
    const struct bh_audit_event who = {.sub = "x"};
    CHECK_EQ(audit_fixture_init(&f, 5), 0);
    for (int i = 0; i < 17; i++)
        CHECK_EQ(audit_fixture_add(&f, &grant), 0);
    CHECK_EQ(audit_fixture_unguard(&f), SQLITE_OK);
    CHECK_EQ(audit_fixture_sql(&f, "UPDATE audit_record SET hash = zeroblob(32) WHERE seq = 4"), SQLITE_OK);
    CHECK_EQ(bh_audit_prune(f.audit, INT64_MAX, &who, &dropped, &f.err), BH_REFUSED);
    CHECK_EQ(audit_fixture_number(&f, "SELECT cut FROM audit_head"), 0);
    CHECK_EQ(audit_fixture_sql(&f, "DELETE FROM audit_record WHERE seq = 4"), SQLITE_OK);
    CHECK_EQ(bh_audit_prune(f.audit, INT64_MAX, &who, &dropped, &f.err), BH_REFUSED);
    audit_fixture_fini(&f);
}

TEST(the_tables_take_no_change)
{
    static const char *const refused[] = {
        "UPDATE audit_record SET body = 'x' WHERE seq = 1",
        "UPDATE audit_record SET seq = 99 WHERE seq = 3",
        "DELETE FROM audit_record WHERE seq = 3",
        "DELETE FROM audit_record",
        "INSERT OR REPLACE INTO audit_record SELECT seq, at_ms, event, tenant, 'x', hash FROM audit_record WHERE seq = 2",
        "INSERT INTO audit_record SELECT 99, at_ms, event, tenant, body, hash FROM audit_record WHERE seq = 2",
        "UPDATE audit_checkpoint SET note = ''",
        "DELETE FROM audit_checkpoint",
        "INSERT OR REPLACE INTO audit_checkpoint VALUES (2, 'x')",
        "DELETE FROM audit_head",
        "INSERT OR REPLACE INTO audit_head SELECT * FROM audit_head",
        "UPDATE audit_head SET size = 1",
        "UPDATE audit_head SET size = size + 1",
        "UPDATE audit_head SET chain = zeroblob(32)",
        "UPDATE audit_head SET origin = 'another'",
        "UPDATE audit_head SET signed = signed - 1",
        "UPDATE audit_head SET signed = size",
        "UPDATE audit_head SET cut = 3",
    };
    struct audit_fixture f;
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    for (size_t i = 0; i < BH_COUNT_OF(refused); i++) {
        const int code = audit_fixture_sql(&f, refused[i]);
        if (code == SQLITE_OK)
            printf("# taken: %s\n", refused[i]);
        CHECK(code != SQLITE_OK);
    }
    CHECK(is_sound(&f, NULL));
    audit_fixture_fini(&f);
}

TEST_MAIN
