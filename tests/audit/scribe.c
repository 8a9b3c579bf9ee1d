/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scribe.c - writes audit logs for the tests that drive the command: scribe FOLDER ACT...
 *
 *   add TENANT EVENT N   N records, by user:ada (uid 1000), of a tenant or of nobody (-)
 *   checkpoint, rotate, stop
 *   prune                drops what is older than now, up to the last checkpoint
 *   doom                 a transaction with a change and a record that cannot be written, and an attempt to commit it
 *   hold                 says `holding`, and goes on when its input ends: a daemon that lives
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "store/audit.h"
#include "store/db_sql.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct scribe {
    struct bh_store *store;
    struct bh_audit *audit;
    struct bh_err err;
    char **words; /* left */
};

static const struct bh_audit_event who = {.sub = "user:root", .has_uid = true};

static int add_one(struct scribe *s, const struct bh_audit_event *e)
{
    int rc = bh_store_begin(s->store, &s->err);
    if (rc == BH_OK)
        rc = bh_audit_append(s->audit, e, &s->err);
    if (rc == BH_OK)
        return bh_store_commit(s->store, &s->err);
    bh_store_rollback(s->store);
    return rc;
}

static int do_add(struct scribe *s)
{
    static const char *const rules[] = {"BH-003"};
    uint64_t n = 0;
    for (int i = 0; i < 3; i++)
        if (!s->words[i])
            return bh_fail(&s->err, BH_USAGE, "add TENANT EVENT N");
    const struct bh_audit_event e = {.event = bh_audit_kind_find(s->words[1]),
                                     .sub = "user:ada",
                                     .has_uid = true,
                                     .uid = 1000,
                                     .tenant = bh_str_eq(s->words[0], "-") ? NULL : s->words[0],
                                     .object_type = "lease",
                                     .object_id = "L1",
                                     .rule_ids = rules,
                                     .n_rule_ids = 1};
    int rc = bh_uint_parse(s->words[2], 100000, &n, &s->err);
    s->words += 3;
    for (uint64_t i = 0; rc == BH_OK && i < n; i++)
        rc = add_one(s, &e);
    return rc;
}

static int do_checkpoint(struct scribe *s)
{
    return bh_audit_checkpoint(s->audit, &s->err);
}

static int do_rotate(struct scribe *s)
{
    return bh_audit_rotate(s->audit, &who, &s->err);
}

static int do_stop(struct scribe *s)
{
    return bh_audit_stop(s->audit, &s->err);
}

static int do_prune(struct scribe *s)
{
    uint64_t dropped;
    return bh_audit_prune(s->audit, INT64_MAX, &who, &dropped, &s->err);
}

static int do_doom(struct scribe *s)
{
    const struct bh_audit_event e = {.event = BH_AUDIT_EVENTS};
    int rc = bh_store_begin(s->store, &s->err);
    if (rc < 0)
        return rc;
    (void)sqlite3_exec(bh_store_handle(s->store), "INSERT INTO notes(key, value) VALUES ('doomed', x'01')",
                       NULL, NULL, NULL);
    if (bh_audit_append(s->audit, &e, &s->err) == BH_OK)
        return bh_fail(&s->err, BH_SYSTEM, "it was written");
    return bh_store_commit(s->store, &s->err) < 0 ? BH_OK : bh_fail(&s->err, BH_SYSTEM, "it was committed");
}

static int do_hold(struct scribe *s)
{
    (void)s;
    (void)puts("holding");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    return BH_OK;
}

static const struct {
    const char *word;
    int (*act)(struct scribe *s);
} acts[] = {{"add", do_add},   {"checkpoint", do_checkpoint}, {"rotate", do_rotate},
            {"stop", do_stop}, {"prune", do_prune},           {"doom", do_doom},
            {"hold", do_hold}};

static int act(struct scribe *s)
{
    int rc = BH_OK;
    while (rc == BH_OK && *s->words) {
        size_t i = 0;
        while (i < BH_COUNT_OF(acts) && !bh_str_eq(acts[i].word, *s->words))
            i++;
        if (i == BH_COUNT_OF(acts))
            return bh_fail(&s->err, BH_USAGE, "no act '%s'", *s->words);
        s->words++;
        rc = acts[i].act(s);
    }
    return rc;
}

int main(int argc, char **argv)
{
    char db[4096], key[4096];
    struct scribe s = {.words = argv + 2};
    if (argc < 2)
        return 2;
    (void)snprintf(db, sizeof(db), "%s/bulkhead.db", argv[1]);
    (void)snprintf(key, sizeof(key), "%s/audit.key", argv[1]);
    const struct bh_audit_options o = {
        .key_path = key, .component = "scribe", .version = "1", .checkpoint_records = 16};
    int rc = bh_store_open(db, NULL, &s.store, &s.err);
    if (rc == BH_OK)
        rc = bh_audit_open(s.store, &o, &s.audit, &s.err);
    if (rc == BH_OK)
        rc = act(&s);
    bh_audit_close(s.audit);
    bh_store_close(s.store);
    if (rc < 0)
        (void)fprintf(stderr, "scribe: %s\n", s.err.msg);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
