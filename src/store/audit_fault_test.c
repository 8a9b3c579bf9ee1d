/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_fault_test.c - changes and their records on a disk that fails at each call in turn, and loses power.
 *
 * Afterwards: whatever was acknowledged is there, a change is there exactly when its record is, and the log holds.
 */
#include "base/test.h"
#include "store/audit_db.h"
#include "store/audit_fixture.h"
#include "store/db_disk_fixture.h"
#include "store/state.h"

enum { CHANGES = 9, BEFORE = 2, CALLS_MAX = 400 };

struct trial {
    struct audit_fixture f;
    struct disk disk;
    bool acknowledged[CHANGES];
};

static int open_log(struct trial *t)
{
    const struct bh_store_options o = {.vfs = "audit-disk"};
    int rc = bh_store_open(t->f.db, &o, &t->f.store, &t->f.err);
    return rc < 0 ? rc : audit_fixture_open(&t->f, 4); /* checkpoints fall among the changes */
}

/* The change and its record, in one transaction. */
static int change(struct trial *t, int i)
{
    char id[24];
    struct bh_err *err = &t->f.err;
    (void)snprintf(id, sizeof(id), "change%d", i);
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT, .object_type = "change", .object_id = id};
    int rc = bh_store_begin(t->f.store, err);
    if (rc < 0)
        return rc;
    rc = bh_store_note_set_text(t->f.store, id, "made", err);
    if (rc == BH_OK)
        rc = bh_audit_append(t->f.audit, &e, err);
    if (rc == BH_OK)
        return bh_store_commit(t->f.store, err);
    bh_store_rollback(t->f.store);
    return rc;
}

static const char *judge(struct trial *t)
{
    struct bh_audit_verifier v = {0};
    if (bh_audit_db_verify(t->f.store, &v, &t->f.err) < 0)
        return "the log cannot be read";
    bh_audit_verify_fini(&v);
    if (v.findings)
        return "the log does not hold";
    for (int i = 0; i < CHANGES; i++) {
        char text[160];
        (void)snprintf(text, sizeof(text), "SELECT count(*) FROM notes WHERE key = 'change%d'", i);
        const bool made = audit_fixture_number(&t->f, text) == 1;
        (void)snprintf(text, sizeof(text),
                       "SELECT count(*) FROM audit_record WHERE body LIKE '%%\"id\":\"change%d\"%%'", i);
        if (audit_fixture_number(&t->f, text) != made)
            return "a change without its record, or a record without its change";
        if (t->acknowledged[i] && !made)
            return "what was acknowledged is gone";
    }
    return NULL;
}

/* NULL, or what went wrong; *ret_hit: the fault came. */
static const char *try(struct trial *t, enum disk_fault fault, uint64_t after, bool *ret_hit)
{
    if (open_log(t) < 0)
        return "it does not open";
    for (int i = 0; i < CHANGES; i++) {
        if (i == BEFORE)
            disk_plan(&t->disk, fault, after, false);
        t->acknowledged[i] = change(t, i) == BH_OK;
    }
    *ret_hit = t->disk.hit;
    audit_fixture_close(&t->f);
    disk_restart(&t->disk);
    disk_plan(&t->disk, DISK_FINE, 0, false);
    if (open_log(t) < 0)
        return "it does not open again";
    return judge(t);
}

TEST(a_change_and_its_record_live_or_die_together)
{
    static const enum disk_fault faults[] = {DISK_IOERR, DISK_TORN, DISK_FULL, DISK_NO_SYNC, DISK_OUTAGE};
    struct trial *t = bh_alloc(1, sizeof(*t));
    unsigned hits = 0;
    for (size_t k = 0; k < BH_COUNT_OF(faults); k++) {
        bool hit = true;
        for (uint64_t after = 0; hit && after < CALLS_MAX; after += 3) {
            *t = (struct trial){0};
            CHECK(audit_fixture_make(&t->f));
            disk_init(&t->disk, "audit-disk", after + 1);
            const char *why = try(t, faults[k], after, &hit);
            if (why)
                printf("# fault %d after %" PRIu64 " calls: %s (%s)\n", faults[k], after, why, t->f.err.msg);
            audit_fixture_fini(&t->f);
            disk_fini(&t->disk);
            CHECK(why == NULL);
            hits += hit;
        }
    }
    printf("# %u faults\n", hits);
    CHECK(hits > 50);
    free(t);
}

TEST_MAIN
