/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_verify_test.c - random logs, and everything that somebody with the file could do to them.
 *
 * The guards are dropped first; that alone is a finding, which never counts here. A failing case prints its seed.
 */
#include "store/audit_verify.h"

#include "base/str.h"
#include "base/test.h"
#include "store/audit_db.h"
#include "store/audit_fixture.h"
#include "store/audit_keyfile.h"

static bool verify_with(struct audit_fixture *f, struct audit_findings *found, struct bh_audit_verifier *v)
{
    bh_vec_fini(&found->all);
    v->found = audit_findings_add;
    v->arg = found;
    const int rc = bh_audit_db_verify(f->store, v, &f->err);
    bh_audit_verify_fini(v);
    return rc == BH_OK;
}

static bool verify(struct audit_fixture *f, struct audit_findings *found)
{
    struct bh_audit_verifier v = {0};
    return verify_with(f, found, &v);
}

static void show(const struct audit_findings *found)
{
    for (size_t i = 0; i < found->all.n; i++)
        printf("# record %" PRIu64 ": %s: %s\n", found->all.at[i].seq,
               bh_audit_wrongs[found->all.at[i].wrong], found->all.at[i].text);
}

/* A life with restarts, new keys and retention. */
static bool live(struct audit_fixture *f, uint64_t seed, unsigned steps)
{
    uint8_t bytes[4096];
    struct bh_choice c = {bytes, sizeof(bytes)};
    const struct bh_audit_event who = {.sub = "user:root"};
    uint64_t dropped;
    bh_choice_fill(bytes, sizeof(bytes), seed);
    const uint32_t every = 2 + bh_choose(&c, 9);
    if (audit_fixture_init(f, every) < 0)
        return false;
    for (unsigned i = 0; i < steps; i++) {
        int rc = BH_OK;
        switch (bh_choose(&c, 16)) {
        case 0:
            rc = bh_audit_checkpoint(f->audit, &f->err);
            break;
        case 1:
            rc = bh_audit_rotate(f->audit, &who, &f->err);
            break;
        case 2:
            rc = bh_audit_prune(f->audit, f->now_ns / 1000000 - 10, &who, &dropped, &f->err);
            break;
        case 3:
            audit_fixture_close(f);
            rc = audit_fixture_open(f, every);
            break;
        default:
            rc = audit_fixture_any(f, &c);
            break;
        }
        if (rc < 0) {
            printf("# seed %" PRIu64 ": %s\n", seed, f->err.msg);
            return false;
        }
    }
    return true;
}

TEST(random_logs_hold)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct audit_fixture f;
        struct audit_findings found = {0};
        CHECK(live(&f, seed, 60));
        CHECK(verify(&f, &found));
        show(&found);
        CHECK_EQ(found.all.n, 0);
        audit_fixture_fini(&f);
    }
}

/* ---- any bit ---- */

static const struct {
    const char *get, *set; /* of row ?1: the bytes of a column, and other bytes ?2 in their place */
    const char *rows;      /* which rows there are */
} columns[] = {
#define COLUMN(table, id, column, kind)                                          \
    {"SELECT CAST(" column " AS BLOB) FROM " table " WHERE " id " = ?1",         \
     "UPDATE " table " SET " column " = CAST(?2 AS " kind ") WHERE " id " = ?1", \
     "SELECT " id " FROM " table " WHERE " column " IS NOT NULL ORDER BY " id}
    COLUMN("audit_record", "seq", "body", "TEXT"),      COLUMN("audit_record", "seq", "hash", "BLOB"),
    COLUMN("audit_record", "seq", "event", "TEXT"),     COLUMN("audit_record", "seq", "tenant", "TEXT"),
    COLUMN("audit_record", "seq", "at_ms", "INTEGER"),  COLUMN("audit_record", "seq", "seq", "INTEGER"),
    COLUMN("audit_checkpoint", "size", "note", "TEXT"), COLUMN("audit_checkpoint", "size", "size", "INTEGER"),
    COLUMN("audit_head", "id", "origin", "TEXT"),       COLUMN("audit_head", "id", "size", "INTEGER"),
    COLUMN("audit_head", "id", "chain", "BLOB"),        COLUMN("audit_head", "id", "edge", "BLOB"),
    COLUMN("audit_head", "id", "signed", "INTEGER"),    COLUMN("audit_head", "id", "signed_ms", "INTEGER"),
    COLUMN("audit_head", "id", "cut", "INTEGER"),       COLUMN("audit_head", "id", "cut_chain", "BLOB"),
    COLUMN("audit_head", "id", "cut_edge", "BLOB"),
#undef COLUMN
};

static bool pick_row(struct audit_fixture *f, const char *text, struct bh_choice *c, int64_t *ret)
{
    sqlite3_stmt *q = NULL;
    BH_VEC(int64_t) ids = {0};
    if (sqlite3_prepare_v2(bh_store_handle(f->store), text, -1, &q, NULL) != SQLITE_OK)
        return false;
    while (sqlite3_step(q) == SQLITE_ROW)
        *bh_vec_push(&ids) = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    const bool any = ids.n > 0;
    if (any)
        *ret = ids.at[bh_choose(c, (uint32_t)ids.n)];
    bh_vec_fini(&ids);
    return any;
}

/* One bit, in one column of one row. False: there was nothing to change, or the change made no difference. */
static bool flip(struct audit_fixture *f, struct bh_choice *c, size_t *ret_column, int64_t *ret_row)
{
    const size_t k = bh_choose(c, BH_COUNT_OF(columns));
    sqlite3 *db = bh_store_handle(f->store);
    sqlite3_stmt *q = NULL;
    uint8_t bytes[8192];
    bool done = false;
    *ret_column = k;
    if (!pick_row(f, columns[k].rows, c, ret_row) ||
        sqlite3_prepare_v2(db, columns[k].get, -1, &q, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_int64(q, 1, *ret_row);
    if (sqlite3_step(q) != SQLITE_ROW || sqlite3_column_bytes(q, 0) == 0 ||
        sqlite3_column_bytes(q, 0) > 8192) {
        sqlite3_finalize(q);
        return false;
    }
    const int n = sqlite3_column_bytes(q, 0);
    memcpy(bytes, sqlite3_column_blob(q, 0), (size_t)n);
    sqlite3_finalize(q);
    bytes[bh_choose(c, (uint32_t)n)] ^= (uint8_t)(1u << bh_choose(c, 8));
    if (sqlite3_prepare_v2(db, columns[k].set, -1, &q, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_int64(q, 1, *ret_row);
    sqlite3_bind_blob(q, 2, bytes, n, SQLITE_STATIC);
    done = sqlite3_step(q) == SQLITE_DONE && sqlite3_changes(db) == 1;
    sqlite3_finalize(q);
    return done;
}

/* What the tables hold, as one hash: a number written in another way is no change. */
static void fingerprint(struct audit_fixture *f, struct bh_hash *ret)
{
    static const char text[] =
        "SELECT group_concat(x, '/') FROM (SELECT quote(seq)||quote(at_ms)||quote(event)||quote(tenant)||quote(CAST(body AS "
        "BLOB))||quote(hash) AS x FROM audit_record UNION ALL SELECT quote(size)||quote(CAST(note AS BLOB)) FROM audit_checkpoint "
        "UNION ALL SELECT quote(CAST(origin AS BLOB))||quote(size)||quote(chain)||quote(edge)||quote(signed)||quote(signed_ms)||"
        "quote(cut)||quote(cut_chain)||quote(cut_edge) FROM audit_head)";
    sqlite3_stmt *q = NULL;
    memset(ret, 0, sizeof(*ret));
    if (sqlite3_prepare_v2(bh_store_handle(f->store), text, -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        bh_hash_plain(sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), ret);
    sqlite3_finalize(q);
}

static bool try_flips(struct audit_fixture *f, uint64_t seed, unsigned n, unsigned *ret_done)
{
    struct audit_findings found = {0};
    struct bh_hash before, after;
    fingerprint(f, &before);
    for (unsigned i = 0; i < n; i++) {
        uint8_t bytes[64];
        struct bh_choice c = {bytes, sizeof(bytes)};
        size_t column = 0;
        int64_t row = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed * 100000 + i);
        if (audit_fixture_sql(f, "SAVEPOINT flip") != SQLITE_OK)
            return false;
        const bool flipped = flip(f, &c, &column, &row);
        fingerprint(f, &after);
        if (flipped && !bh_hash_eq(&before, &after)) {
            ++*ret_done;
            if (!verify(f, &found) || audit_findings_real(&found) == 0) {
                printf("# seed %" PRIu64 " flip %u not found: row %" PRId64 ", %s\n", seed, i, row,
                       columns[column].set);
                return false;
            }
        }
        if (audit_fixture_sql(f, "ROLLBACK TO flip; RELEASE flip") != SQLITE_OK)
            return false;
    }
    bh_vec_fini(&found.all);
    return true;
}

TEST(any_bit_of_any_row_is_found)
{
    unsigned done = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct audit_fixture f;
        CHECK(live(&f, seed, 40));
        CHECK_EQ(audit_fixture_unguard(&f), SQLITE_OK);
        CHECK_EQ(audit_fixture_sql(&f, "PRAGMA ignore_check_constraints = ON"), SQLITE_OK);
        CHECK(try_flips(&f, seed, 120, &done));
        audit_fixture_fini(&f);
    }
    printf("# %u flips\n", done);
    CHECK(done > 400);
}

/* ---- what somebody would do on purpose ---- */

/* Ten records and a checkpoint after every five: 1 key, 2 checkpoint, 3 start, then records. */
static bool plain_log(struct audit_fixture *f, unsigned records)
{
    const struct bh_audit_event e = {
        .event = BH_AUDIT_ALLOC_GRANT, .sub = "user:ada", .tenant = "red", .reason = "first"};
    if (audit_fixture_init(f, 5) < 0)
        return false;
    for (unsigned i = 0; i < records; i++)
        if (audit_fixture_add(f, &e) < 0)
            return false;
    return audit_fixture_unguard(f) == SQLITE_OK;
}

TEST(an_edited_record_is_named)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    CHECK(plain_log(&f, 20));
    CHECK_EQ(audit_fixture_sql(
                 &f, "UPDATE audit_record SET body = replace(body, 'user:ada', 'user:eve') WHERE seq = 9"),
             SQLITE_OK);
    CHECK(verify(&f, &found));
    CHECK_EQ(audit_findings_real(&found), 1);
    CHECK(audit_findings_has(&found, BH_WRONG_EDITED, 9));
    CHECK(audit_findings_has(&found, BH_WRONG_GUARD, 0));
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST(a_deleted_record_is_named)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    CHECK(plain_log(&f, 20));
    CHECK_EQ(audit_fixture_sql(&f, "DELETE FROM audit_record WHERE seq = 9"), SQLITE_OK);
    CHECK(verify(&f, &found));
    CHECK_EQ(audit_findings_real(&found), 1);
    CHECK(audit_findings_has(&found, BH_WRONG_MISSING, 9));
    /* and closing the gap helps nobody */
    CHECK_EQ(audit_fixture_sql(&f, "UPDATE audit_record SET seq = -seq WHERE seq > 9;"
                                   "UPDATE audit_record SET seq = -seq - 1 WHERE seq < 0"),
             SQLITE_OK);
    CHECK(verify(&f, &found));
    CHECK(audit_findings_has(&found, BH_WRONG_ORDER, 9));
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST(records_that_changed_places_are_named)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    CHECK(plain_log(&f, 20));
    CHECK_EQ(audit_fixture_sql(
                 &f,
                 "UPDATE audit_record SET seq = 1000 WHERE seq = 10; UPDATE audit_record SET seq = 10 WHERE "
                 "seq = 11; UPDATE audit_record SET seq = 11 WHERE seq = 1000"),
             SQLITE_OK);
    CHECK(verify(&f, &found));
    CHECK(audit_findings_has(&found, BH_WRONG_ORDER, 10));
    CHECK(audit_findings_has(&found, BH_WRONG_ORDER, 11));
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST(a_record_put_in_front_or_behind_is_found)
{
    static const char *const places[] = {"0", "-5", "100"};
    for (size_t i = 0; i < BH_COUNT_OF(places); i++) {
        struct audit_fixture f;
        struct audit_findings found = {0};
        char text[200];
        CHECK(plain_log(&f, 6));
        (void)snprintf(
            text, sizeof(text),
            "INSERT INTO audit_record SELECT %s, at_ms, event, tenant, body, hash FROM audit_record WHERE seq = 4",
            places[i]);
        CHECK_EQ(audit_fixture_sql(&f, text), SQLITE_OK);
        CHECK(verify(&f, &found));
        CHECK(audit_findings_real(&found) > 0);
        bh_vec_fini(&found.all);
        audit_fixture_fini(&f);
    }
}

/* ---- rewriting: everything is made again from record `from` on, as far as that goes without the key ---- */

struct remake {
    struct audit_fixture *f;
    struct bh_audit_head head;
    uint64_t from;
    const struct bh_audit_secret *key; /* signs checkpoints again; NULL: they stay as they are */
};

static int remake_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct remake *m = arg;
    struct bh_arena arena = {0};
    struct bh_audit_record r;
    struct bh_hash hash = row->hash;
    int rc = BH_OK;
    if (row->seq >= m->from) {
        struct bh_buf body;
        sqlite3_stmt *q = NULL;
        bh_buf_init(&body, BH_AUDIT_BODY_MAX);
        rc = bh_audit_decode(row->body, row->n_body, &arena, &r, err);
        if (rc == BH_OK) {
            r.prev = m->head.chain;
            if (row->seq == m->from)
                r.is.reason = "rewritten";
            rc = bh_audit_encode(&r, &body, err);
        }
        if (rc == BH_OK) {
            bh_audit_hash(body.at, body.n, &hash);
            sqlite3_prepare_v2(bh_store_handle(m->f->store),
                               "UPDATE audit_record SET body = ?2, hash = ?3 WHERE seq = ?1", -1, &q, NULL);
            sqlite3_bind_int64(q, 1, (int64_t)row->seq);
            sqlite3_bind_text(q, 2, body.at, (int)body.n, SQLITE_STATIC);
            sqlite3_bind_blob(q, 3, hash.at, 32, SQLITE_STATIC);
            rc = sqlite3_step(q) == SQLITE_DONE ? BH_OK : BH_SYSTEM;
            sqlite3_finalize(q);
        }
        bh_buf_fini(&body);
    }
    bh_audit_chain(&m->head.chain, &hash, &m->head.chain);
    bh_merkle_add(&m->head.edge, &hash);
    bh_arena_fini(&arena);
    return rc;
}

static int remake_checkpoint(void *arg, uint64_t size, const char *note, struct bh_err *err)
{
    struct remake *m = arg;
    struct bh_buf text;
    struct bh_hash root;
    sqlite3_stmt *q = NULL;
    (void)note;
    if (!m->key || size < m->from)
        return 0;
    bh_buf_init(&text, BH_NOTE_MAX);
    bh_merkle_root(&m->head.edge, &root);
    bh_checkpoint_text(m->head.origin, size, &root, &text);
    int rc = bh_checkpoint_sign(&text, text.n, &m->key->key, &m->key->secret, err);
    sqlite3_prepare_v2(bh_store_handle(m->f->store), "UPDATE audit_checkpoint SET note = ?2 WHERE size = ?1",
                       -1, &q, NULL);
    sqlite3_bind_int64(q, 1, (int64_t)size);
    sqlite3_bind_text(q, 2, text.at, (int)text.n, SQLITE_STATIC);
    if (sqlite3_step(q) != SQLITE_DONE)
        rc = BH_SYSTEM;
    sqlite3_finalize(q);
    bh_buf_fini(&text);
    return rc;
}

static bool remake(struct audit_fixture *f, uint64_t from, const struct bh_audit_secret *key)
{
    struct remake m = {.f = f, .from = from, .key = key};
    struct bh_audit_head head;
    const struct bh_audit_reader reader = {.arg = &m, .row = remake_row, .checkpoint = remake_checkpoint};
    if (bh_audit_head_load(f->store, &head, &f->err) < 0)
        return false;
    memcpy(m.head.origin, head.origin, sizeof(head.origin));
    /* the reading must not be in a transaction that it rolls back */
    if (audit_fixture_sql(f, "BEGIN") != SQLITE_OK || bh_audit_db_read(f->store, &reader, &f->err) < 0)
        return false;
    m.head.signed_size = head.signed_size;
    m.head.signed_ms = head.signed_ms;
    return bh_audit_head_save(f->store, &m.head, &f->err) == BH_OK &&
           audit_fixture_sql(f, "COMMIT") == SQLITE_OK;
}

TEST(a_log_made_again_without_the_key_is_found_at_the_next_checkpoint)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct bh_audit_secret forger;
    CHECK(plain_log(&f, 20));
    CHECK(remake(&f, 10, NULL));
    CHECK(verify(&f, &found));
    CHECK(audit_findings_has(&found, BH_WRONG_ROOT, 14)); /* records 9 to 14 lie under it */
    CHECK(!audit_findings_has(&found, BH_WRONG_ROOT, 8));
    CHECK(!audit_findings_has(&found, BH_WRONG_CHAIN, 11)); /* the chain alone shows nothing */
    /* with a key of their own */
    CHECK_EQ(bh_sign_key_new(&forger.secret, &f.err), 0);
    CHECK_EQ(
        bh_audit_key_make(bh_audit_current_key(f.audit)->name, forger.secret.public, &forger.key, &f.err), 0);
    CHECK(remake(&f, 10, &forger));
    CHECK(verify(&f, &found));
    CHECK(audit_findings_has(&found, BH_WRONG_FORGED, 14));
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

/* The newest checkpoint, as somebody would have kept it. */
static bool save_checkpoint(struct audit_fixture *f, struct bh_arena *arena, const char **ret)
{
    uint64_t size;
    return bh_audit_checkpoint_find(f->store, UINT64_MAX, true, arena, &size, ret, &f->err) == BH_OK;
}

static bool verify_saved(struct audit_fixture *f, const char *note, struct audit_findings *found)
{
    struct bh_audit_verifier v = {.saved_note = note, .n_saved_note = strlen(note)};
    return verify_with(f, found, &v) && (found->all.n > 9 || v.saved_held);
}

TEST(whoever_has_the_key_is_found_by_a_checkpoint_kept_elsewhere)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct bh_arena arena = {0};
    struct bh_audit_secret stolen;
    const char *note;
    CHECK(plain_log(&f, 20));
    CHECK(save_checkpoint(&f, &arena, &note));
    CHECK(verify_saved(&f, note, &found));
    CHECK_EQ(audit_findings_real(&found), 0);
    CHECK_EQ(bh_audit_keyfile_load(f.key, &stolen, &f.err), 0);
    CHECK(remake(&f, 10, &stolen));
    CHECK(verify(&f, &found));
    CHECK_EQ(audit_findings_real(&found), 0); /* alone nothing shows: it is what the key says */
    CHECK(!verify_saved(&f, note, &found) || audit_findings_real(&found) > 0);
    CHECK(audit_findings_has(&found, BH_WRONG_ROOT, 26));
    bh_arena_fini(&arena);
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

static bool cut_after(struct audit_fixture *f, uint64_t last, bool checkpoints, bool head)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "DELETE FROM audit_record WHERE seq > %" PRIu64, last);
    bool ok = audit_fixture_sql(f, text) == SQLITE_OK;
    (void)snprintf(text, sizeof(text), "DELETE FROM audit_checkpoint WHERE size > %" PRIu64, last);
    ok = ok && (!checkpoints || audit_fixture_sql(f, text) == SQLITE_OK);
    ok = ok &&
         (!checkpoints ||
          audit_fixture_sql(
              f, "UPDATE audit_head SET signed = (SELECT max(size) FROM audit_checkpoint), signed_ms = "
                 "(SELECT at_ms FROM audit_record WHERE seq = (SELECT max(size) FROM audit_checkpoint))") ==
              SQLITE_OK);
    return ok && (!head || remake(f, UINT64_MAX, NULL));
}

TEST(a_cut_tail_is_found_as_far_as_it_can_be)
{
    static const struct {
        uint64_t last;
        bool checkpoints, head, found, found_with_saved;
    } cases[] = {
        {27, false, false, true, true}, /* the head still knows */
        {25, false, true, true, true},  /* the last checkpoint still knows */
        {24, true, false, true, true},  /* the head again */
        {27, true, true, false, false}, /* after every checkpoint there is: nobody can know */
        {20, true, true, false, true},  /* back to an older one: only who kept the newer */
        {24, true, true, false, true},
    };
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct audit_fixture f;
        struct audit_findings found = {0};
        struct bh_arena arena = {0};
        const char *note;
        CHECK(plain_log(&f, 22)); /* checkpoints 2, 8, 14, 20, 26; records up to 28 */
        CHECK_EQ(audit_fixture_number(&f, "SELECT max(seq) FROM audit_record"), 29);
        CHECK(save_checkpoint(&f, &arena, &note));
        CHECK(cut_after(&f, cases[i].last, cases[i].checkpoints, cases[i].head));
        CHECK(verify(&f, &found));
        if ((audit_findings_real(&found) > 0) != cases[i].found)
            printf("# case %zu\n", i), show(&found);
        CHECK_EQ(audit_findings_real(&found) > 0, cases[i].found);
        (void)verify_saved(&f, note, &found);
        CHECK_EQ(audit_findings_real(&found) > 0, cases[i].found_with_saved);
        bh_arena_fini(&arena);
        bh_vec_fini(&found.all);
        audit_fixture_fini(&f);
    }
}

TEST(a_checkpoint_that_is_gone_is_missed)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    CHECK(plain_log(&f, 20));
    CHECK_EQ(audit_fixture_sql(&f, "DELETE FROM audit_checkpoint WHERE size = 14"), SQLITE_OK);
    CHECK(verify(&f, &found));
    CHECK_EQ(audit_findings_real(&found), 1);
    CHECK(audit_findings_has(&found, BH_WRONG_NO_CHECKPOINT, 14));
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST(a_key_is_held_against_the_one_that_was_given)
{
    struct audit_fixture f, other;
    struct audit_findings found = {0};
    const struct bh_audit_event who = {.sub = "user:root"};
    CHECK_EQ(audit_fixture_init(&f, 0), 0);
    CHECK_EQ(audit_fixture_init(&other, 0), 0);
    const struct bh_audit_key first = *bh_audit_current_key(f.audit),
                              strange = *bh_audit_current_key(other.audit);
    CHECK_EQ(bh_audit_rotate(f.audit, &who, &f.err), 0);
    const struct bh_audit_key second = *bh_audit_current_key(f.audit);
    const struct {
        const struct bh_audit_key *key;
        size_t findings;
    } cases[] = {{&first, 0}, {&second, 0}, {&strange, 1}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_audit_verifier v = {.trusted = cases[i].key};
        CHECK(verify_with(&f, &found, &v));
        CHECK_EQ(found.all.n, cases[i].findings);
        CHECK(cases[i].findings == 0 || audit_findings_has(&found, BH_WRONG_KEY, 0));
    }
    /* a checkpoint of another log */
    struct bh_arena arena = {0};
    const char *note;
    CHECK(save_checkpoint(&other, &arena, &note));
    CHECK(!verify_saved(&f, note, &found) || found.all.n > 0);
    CHECK(audit_findings_has(&found, BH_WRONG_FORGED, 0));
    struct bh_audit_verifier nonsense = {.saved_note = "no note", .n_saved_note = 7};
    CHECK(!verify_with(&f, &found, &nonsense));
    CHECK_EQ(f.err.code, BH_INVALID);
    bh_arena_fini(&arena);
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
    audit_fixture_fini(&other);
}

TEST(a_checkpoint_from_before_the_retention_is_among_those_that_stay)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct bh_arena arena = {0};
    const char *note;
    uint64_t dropped;
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT, .sub = "user:ada"};
    CHECK_EQ(audit_fixture_init(&f, 5), 0);
    for (int i = 0; i < 7; i++)
        CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK(save_checkpoint(&f, &arena, &note));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(bh_audit_prune(f.audit, INT64_MAX, &e, &dropped, &f.err), 0);
    CHECK(dropped > 20);
    CHECK(verify_saved(&f, note, &found));
    show(&found);
    CHECK_EQ(found.all.n, 0);
    bh_arena_fini(&arena);
    audit_fixture_fini(&f);
}

TEST(each_guard_that_is_gone_or_changed_is_named)
{
    static const char *const harm[] = {
        "DROP TRIGGER audit_record_fixed", "DROP INDEX audit_record_tenant",
        "CREATE TRIGGER audit_extra AFTER INSERT ON audit_record BEGIN SELECT 1; END",
        "DROP TRIGGER audit_head_kept; CREATE TRIGGER audit_head_kept BEFORE DELETE ON audit_head BEGIN SELECT 1; END"};
    for (size_t i = 0; i < BH_COUNT_OF(harm); i++) {
        struct audit_fixture f;
        struct audit_findings found = {0};
        CHECK_EQ(audit_fixture_init(&f, 0), 0);
        CHECK_EQ(audit_fixture_sql(&f, harm[i]), SQLITE_OK);
        CHECK(verify(&f, &found));
        CHECK_EQ(found.all.n, 1);
        CHECK(audit_findings_has(&found, BH_WRONG_GUARD, 0));
        bh_vec_fini(&found.all);
        audit_fixture_fini(&f);
    }
}

TEST_MAIN
