/* SPDX-License-Identifier: Apache-2.0 */
/* audit_fixture.h - a scratch folder with a store and an audit log in it, a clock that goes by steps, and a random life. */
#ifndef BH_STORE_AUDIT_FIXTURE_H
#define BH_STORE_AUDIT_FIXTURE_H

#include "base/choice.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "store/audit.h"
#include "store/audit_verify.h"
#include "store/db_sql.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct audit_fixture {
    char folder[512], db[600], key[600];
    int64_t now_ns;
    struct bh_store *store;
    struct bh_audit *audit;
    struct bh_err err;
};

static inline int64_t audit_fixture_clock(void *arg)
{
    struct audit_fixture *f = arg;
    return f->now_ns += 1234567;
}

/* every_n: records between checkpoints; 0: as the log has it. */
static inline int audit_fixture_open(struct audit_fixture *f, uint32_t every_n)
{
    const struct bh_audit_options o = {.key_path = f->key,
                                       .component = "test",
                                       .version = "1",
                                       .checkpoint_records = every_n,
                                       .clock_ns = audit_fixture_clock,
                                       .clock_arg = f};
    int rc = f->store ? BH_OK : bh_store_open(f->db, NULL, &f->store, &f->err);
    return rc < 0 ? rc : bh_audit_open(f->store, &o, &f->audit, &f->err);
}

/* The folder and the names in it; nothing is opened. */
static inline bool audit_fixture_make(struct audit_fixture *f)
{
    *f = (struct audit_fixture){.now_ns = INT64_C(1700000000000000000)};
    if (!bh_scratch_make(f->folder, sizeof(f->folder), "audit"))
        return false;
    (void)snprintf(f->db, sizeof(f->db), "%s/bulkhead.db", f->folder);
    (void)snprintf(f->key, sizeof(f->key), "%s/audit.key", f->folder);
    return true;
}

static inline int audit_fixture_init(struct audit_fixture *f, uint32_t every_n)
{
    return audit_fixture_make(f) ? audit_fixture_open(f, every_n) : -1;
}

static inline void audit_fixture_close(struct audit_fixture *f)
{
    bh_audit_close(f->audit);
    bh_store_close(f->store);
    f->audit = NULL;
    f->store = NULL;
}

static inline void audit_fixture_fini(struct audit_fixture *f)
{
    audit_fixture_close(f);
    (void)bh_scratch_remove(f->folder);
}

static inline int audit_fixture_add(struct audit_fixture *f, const struct bh_audit_event *e)
{
    int rc = bh_store_begin(f->store, &f->err);
    if (rc < 0)
        return rc;
    rc = bh_audit_append(f->audit, e, &f->err);
    if (rc == BH_OK)
        return bh_store_commit(f->store, &f->err);
    bh_store_rollback(f->store);
    return rc;
}

/* A record of something, drawn. */
static inline int audit_fixture_any(struct audit_fixture *f, struct bh_choice *c)
{
    static const enum bh_audit_kind kinds[] = {BH_AUDIT_ALLOC_GRANT,   BH_AUDIT_ALLOC_DENY,
                                               BH_AUDIT_POLICY_CHANGE, BH_AUDIT_MIG_CREATE,
                                               BH_AUDIT_SCRUB_VERIFY,  BH_AUDIT_AUTH_FAILURE};
    static const char *const tenants[] = {NULL, "red", "blue", "gr\xc3\xbcn", "bad \xff bytes"};
    static const char *const texts[] = {NULL, "", "a\tb\n\"c\"\\", "\xe2\x82\xac and \x01", "plain"};
    static const char *const rules[] = {"BH-001", "BH-076"};
    const struct bh_audit_event e = {.event = kinds[bh_choose(c, 6)],
                                     .outcome = (enum bh_audit_outcome)bh_choose(c, 3),
                                     .sub = "user:ada",
                                     .has_uid = bh_choose(c, 2),
                                     .uid = bh_choose(c, 2000),
                                     .tenant = tenants[bh_choose(c, 5)],
                                     .object_type = "lease",
                                     .object_id = texts[bh_choose(c, 5)],
                                     .reason = texts[bh_choose(c, 5)],
                                     .rule_ids = rules,
                                     .n_rule_ids = bh_choose(c, 3)};
    return audit_fixture_add(f, &e);
}

static inline int audit_fixture_sql(struct audit_fixture *f, const char *text)
{
    return sqlite3_exec(bh_store_handle(f->store), text, NULL, NULL, NULL);
}

/* One number that a statement answers; -1: it failed. */
static inline int64_t audit_fixture_number(struct audit_fixture *f, const char *text)
{
    sqlite3_stmt *q = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(bh_store_handle(f->store), text, -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

/* What whoever has the file would do first. */
static inline int audit_fixture_unguard(struct audit_fixture *f)
{
    return audit_fixture_sql(
        f, "DROP TRIGGER audit_record_order; DROP TRIGGER audit_record_fixed; DROP TRIGGER audit_record_kept;"
           "DROP TRIGGER audit_checkpoint_order; DROP TRIGGER audit_checkpoint_fixed;"
           "DROP TRIGGER audit_checkpoint_kept; DROP TRIGGER audit_head_one; DROP TRIGGER audit_head_kept;"
           "DROP TRIGGER audit_head_forward");
}

/* Findings, kept. */
struct audit_findings {
    BH_VEC(struct bh_audit_finding) all;
};

static inline void audit_findings_add(void *arg, const struct bh_audit_finding *f)
{
    struct audit_findings *to = arg;
    *bh_vec_push(&to->all) = *f;
}

/* Is there one of this kind about this record? The guards' do not count where they are not asked for. */
static inline bool audit_findings_has(const struct audit_findings *f, enum bh_audit_wrong wrong, uint64_t seq)
{
    for (size_t i = 0; i < f->all.n; i++)
        if (f->all.at[i].wrong == wrong && f->all.at[i].seq == seq)
            return true;
    return false;
}

static inline size_t audit_findings_real(const struct audit_findings *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->all.n; i++)
        n += f->all.at[i].wrong != BH_WRONG_GUARD;
    return n;
}

#endif
