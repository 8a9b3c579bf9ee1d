/* SPDX-License-Identifier: Apache-2.0 */
/* audit_db.c - merges records and checkpoints into one stream, and feeds a verifier with it. */
#include "store/audit_db.h"

#include "store/db_sql.h"

#include <inttypes.h>
#include <string.h>

struct merge {
    struct bh_store *store;
    const struct bh_audit_reader *to;
    struct bh_arena arena;
    uint64_t size; /* of the next checkpoint; 0: no more */
    const char *note;
};

static int next_checkpoint(struct merge *m, uint64_t from, struct bh_err *err)
{
    bh_arena_fini(&m->arena);
    m->arena = (struct bh_arena){0};
    m->size = 0;
    m->note = "";
    int rc = bh_audit_checkpoint_find(m->store, from, false, &m->arena, &m->size, &m->note, err);
    if (rc == BH_OK && !m->note)
        m->note = "";
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* The checkpoints that come before record `seq`. */
static int pass_checkpoints(struct merge *m, uint64_t seq, struct bh_err *err)
{
    int rc = BH_OK;
    while (rc == BH_OK && m->size && m->size < seq) {
        if (m->to->checkpoint)
            rc = m->to->checkpoint(m->to->arg, m->size, m->note, err);
        if (rc == BH_OK)
            rc = next_checkpoint(m, m->size + 1, err);
    }
    return rc;
}

static int pass_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct merge *m = arg;
    int rc = pass_checkpoints(m, row->seq, err);
    return rc == BH_OK && m->to->row ? m->to->row(m->to->arg, row, err) : rc;
}

static int read_all(struct bh_store *s, const struct bh_audit_reader *reader, struct bh_err *err)
{
    struct merge m = {.store = s, .to = reader};
    static const char SQL_BELOW[] = "SELECT (SELECT count(*) FROM audit_record WHERE seq < 1) + "
                                    "(SELECT count(*) FROM audit_checkpoint WHERE size < 1)";
    struct bh_audit_head head;
    struct bh_sql q;
    int rc = bh_audit_head_load(s, &head, err);
    if (rc == BH_OK && reader->begin)
        rc = reader->begin(reader->arg, &head, err);
    if (rc == BH_OK)
        rc = bh_sql_get(s, SQL_BELOW, &q, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sql_step(&q, err);
    if (rc < 0)
        return rc;
    const bool below = bh_sql_col_int(&q, 0) != 0;
    bh_sql_done(&q);
    if (below)
        return bh_fail(err, BH_REFUSED,
                       "the audit log has a record or a checkpoint numbered below 1: it was put there");
    rc = next_checkpoint(&m, 0, err);
    const struct bh_audit_range all = {.last = UINT64_MAX};
    if (rc == BH_OK)
        rc = bh_audit_rows(s, &all, pass_row, &m, err);
    if (rc == BH_OK)
        rc = pass_checkpoints(&m, UINT64_MAX, err);
    bh_arena_fini(&m.arena);
    return rc;
}

int bh_audit_db_read(struct bh_store *s, const struct bh_audit_reader *reader, struct bh_err *err)
{
    sqlite3 *db = bh_store_handle(s);
    /* one moment for all of it; inside a transaction it is one already */
    const bool own = sqlite3_get_autocommit(db);
    const int code = own ? sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) : SQLITE_OK;
    if (code != SQLITE_OK)
        return bh_sql_fail(s, code, err);
    int rc = read_all(s, reader, err);
    if (own)
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* ---- verifying ---- */

struct feeding {
    struct bh_audit_verifier *v;
    struct bh_audit_head head;
};

static int feed_begin(void *arg, const struct bh_audit_head *head, struct bh_err *err)
{
    struct feeding *f = arg;
    f->head = *head;
    return bh_audit_verify_begin(f->v, head->origin, &head->cut, &head->cut_chain, err);
}

static int feed_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct feeding *f = arg;
    (void)err;
    bh_audit_verify_row(f->v, row);
    return 0;
}

static int feed_checkpoint(void *arg, uint64_t size, const char *note, struct bh_err *err)
{
    struct feeding *f = arg;
    (void)err;
    bh_audit_verify_checkpoint(f->v, size, note, strlen(note));
    return 0;
}

static void say_lines(struct bh_audit_verifier *v, char *lines)
{
    for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        *end = '\0';
        bh_audit_verify_say(v, 0, BH_WRONG_GUARD, "%s", lines);
    }
}

/* What else the head holds, which the daemon goes on from. */
static void check_head(const struct feeding *f)
{
    struct bh_audit_verifier *v = f->v;
    const struct bh_audit_head *h = &f->head;
    if (v->torn || h->edge.n != v->edge.n)
        return; /* said already */
    if (memcmp(h->edge.peak, v->edge.peak, bh_merkle_peaks(&h->edge) * BH_HASH_BYTES) != 0)
        bh_audit_verify_say(v, 0, BH_WRONG_HEAD, "the head's edge of the tree is not that of the records");
    if (v->findings == 0 && h->signed_size != v->signed_size)
        bh_audit_verify_say(v, 0, BH_WRONG_HEAD,
                            "the head says that %" PRIu64
                            " records are signed, the last checkpoint covers %" PRIu64,
                            h->signed_size, v->signed_size);
    if (v->findings == 0 && v->checkpoint_ns && h->signed_ms != v->checkpoint_ns / INT64_C(1000000))
        bh_audit_verify_say(v, 0, BH_WRONG_HEAD,
                            "the head gives another time for the last checkpoint than its record");
}

/* A head that cannot be read, or none above records: what is wrong, and nothing to hold them against. */
static int check_readable(struct bh_store *s, struct bh_audit_verifier *v, bool *ret, struct bh_err *err)
{
    struct bh_audit_head head;
    struct bh_err why;
    struct bh_sql q;
    int rc = bh_audit_head_load(s, &head, &why);
    *ret = rc == BH_OK;
    if (rc == BH_NOT_FOUND) {
        rc = bh_sql_get(s, "SELECT count(*) FROM audit_record", &q, err);
        if (rc == BH_OK)
            rc = bh_sql_step(&q, err);
        if (rc < 0)
            return rc;
        const bool any = bh_sql_col_int(&q, 0) > 0;
        bh_sql_done(&q);
        if (!any)
            return bh_fail(err, BH_NOT_FOUND, "%s", why.msg);
        rc = BH_INVALID;
    }
    if (rc != BH_INVALID)
        return rc < 0 ? bh_fail(err, why.code, "%s", why.msg) : BH_OK;
    bh_audit_verify_say(v, 0, BH_WRONG_HEAD, "%s", why.msg);
    return BH_OK;
}

static int verify_rows(struct bh_store *s, struct bh_audit_verifier *v, struct bh_err *err)
{
    struct feeding f = {.v = v};
    const struct bh_audit_reader reader = {
        .arg = &f, .begin = feed_begin, .row = feed_row, .checkpoint = feed_checkpoint};
    struct bh_err why;
    int rc = bh_audit_db_read(s, &reader, &why);
    if (rc == BH_REFUSED) {
        bh_audit_verify_say(v, 0, BH_WRONG_ORDER, "%s", why.msg);
        return BH_OK;
    }
    if (rc < 0)
        return bh_fail(err, why.code, "%s", why.msg);
    bh_audit_verify_end(v, f.head.edge.n, &f.head.chain);
    check_head(&f);
    return BH_OK;
}

int bh_audit_db_verify(struct bh_store *s, struct bh_audit_verifier *v, struct bh_err *err)
{
    struct bh_buf words;
    bool readable = false;
    bh_buf_init(&words, 1 << 16);
    int rc = bh_audit_schema_check(s, &words, err);
    if (rc == BH_OK)
        rc = check_readable(s, v, &readable, err);
    if (rc == BH_OK && readable)
        rc = verify_rows(s, v, err);
    if (rc == BH_OK && words.n)
        say_lines(v, words.at);
    bh_buf_fini(&words);
    return rc;
}
