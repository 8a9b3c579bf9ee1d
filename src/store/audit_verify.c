/* SPDX-License-Identifier: Apache-2.0 */
/* audit_verify.c - the walk along a log. It trusts hashes only where it computed them, and says which did not fit. */
#include "store/audit_verify.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

const char *const bh_audit_wrongs[BH_AUDIT_WRONGS] = {
#define BH_AUDIT_WRONG(id, word) [BH_WRONG_##id] = word,
#include "store/audit_wrong.def"
#undef BH_AUDIT_WRONG
};

void bh_audit_verify_say(struct bh_audit_verifier *v, uint64_t seq, enum bh_audit_wrong wrong,
                         const char *fmt, ...)
{
    struct bh_audit_finding f = {.seq = seq, .wrong = wrong};
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f.text, sizeof(f.text), fmt, ap);
    va_end(ap);
    v->findings++;
    if (v->found)
        v->found(v->arg, &f);
}
#define say bh_audit_verify_say

int bh_audit_verify_begin(struct bh_audit_verifier *v, const char *origin, const struct bh_merkle *cut,
                          const struct bh_hash *cut_chain, struct bh_err *err)
{
    (void)snprintf(v->origin, sizeof(v->origin), "%s", origin);
    v->edge = v->cut = *cut;
    v->chain = v->cut_chain = *cut_chain;
    v->first = cut->n + 1;
    if (!v->saved_note)
        return BH_OK;
    int rc = bh_checkpoint_parse(v->saved_note, v->n_saved_note, &v->saved, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the checkpoint that was saved");
    v->saved_size = v->saved.size;
    if (!bh_str_eq(v->saved.origin, v->origin))
        say(v, 0, BH_WRONG_FORGED, "the saved checkpoint is of the log '%s', this one says it is '%s'",
            v->saved.origin, v->origin);
    return BH_OK;
}

void bh_audit_verify_fini(struct bh_audit_verifier *v)
{
    bh_vec_fini(&v->all_keys);
}

/* ---- keys ---- */

/* Does `by` sign that r's key is in force from r on? */
static bool vouches(const struct bh_audit_key *by, const struct bh_audit_key *key,
                    const struct bh_audit_record *r)
{
    uint8_t signature[BH_SIGNATURE_BYTES];
    const char *text = r->signature ? r->signature : "";
    struct bh_buf said;
    if (bh_base64_parse(text, strlen(text), signature, sizeof(signature)) != BH_SIGNATURE_BYTES)
        return false;
    bh_buf_init(&said, 1024);
    bh_audit_key_statement(key, r->seq, &r->prev, &said);
    const bool ok = bh_sign_check(by->public, said.at, said.n, signature);
    bh_buf_fini(&said);
    return ok;
}

void bh_audit_verify_key(struct bh_audit_verifier *v, const struct bh_audit_record *r)
{
    struct bh_audit_key key;
    const bool first = r->is.event == BH_AUDIT_AUDIT_KEY;
    if (!r->is.after || bh_audit_key_parse(r->is.after, strlen(r->is.after), &key, NULL) < 0 ||
        !bh_str_eq(key.name, v->origin)) {
        say(v, r->seq, BH_WRONG_KEY, "it names no key of the log '%s'", v->origin);
        return;
    }
    const bool is_trusted = v->trusted && bh_audit_key_eq(v->trusted, &key);
    if (first && (v->keys || r->seq != 1))
        say(v, r->seq, BH_WRONG_KEY, "a first key where the log had one already");
    else if (!first && v->keys == 0)
        say(v, r->seq, BH_WRONG_KEY, "a new key, and the one before it is not here");
    else if (!vouches(first ? &key : &v->key, &key, r) && !is_trusted)
        say(v, r->seq, BH_WRONG_KEY, "the key %08" PRIx32 " is not vouched for by %s", key.id,
            first ? "itself" : "the key before it");
    v->trusted_seen = v->trusted_seen || is_trusted;
    v->key = key;
    v->keys++;
    *bh_vec_push(&v->all_keys) = key;
}

bool bh_audit_verify_signed(const struct bh_audit_verifier *v, const struct bh_checkpoint *c,
                            const char *note)
{
    for (size_t i = 0; i < v->all_keys.n; i++)
        if (bh_checkpoint_signed_by(c, note, &v->all_keys.at[i]))
            return true;
    return false;
}

/* ---- records ---- */

/* A checkpoint that was recorded must follow at once. */
static void check_owed(struct bh_audit_verifier *v, uint64_t size)
{
    if (v->owes && v->owes != size)
        say(v, v->owes, BH_WRONG_NO_CHECKPOINT, "its checkpoint, of %" PRIu64 " records, is not there",
            v->owes);
    v->owes = 0;
}

static void check_columns(struct bh_audit_verifier *v, const struct bh_audit_row *row,
                          const struct bh_audit_record *r)
{
    const char *tenant = r->is.tenant;
    if (!bh_str_eq(row->event, bh_audit_names[r->is.event]))
        say(v, row->seq, BH_WRONG_COLUMN, "the column 'event' says '%.60s', the record '%s'", row->event,
            bh_audit_names[r->is.event]);
    if (!bh_str_eq(row->tenant, tenant))
        say(v, row->seq, BH_WRONG_COLUMN, "the column 'tenant' says '%.60s', the record '%.60s'",
            row->tenant ? row->tenant : "", tenant ? tenant : "");
    if (row->at_ms != r->utc_ns / NS_PER_MS)
        say(v, row->seq, BH_WRONG_COLUMN, "the column 'at_ms' says %" PRId64 ", the record %" PRId64,
            row->at_ms, r->utc_ns / NS_PER_MS);
}

/* The bytes against their hash, and what they say against where they lie. False: there is nothing to go on from. */
static bool check_body(struct bh_audit_verifier *v, const struct bh_audit_row *row, struct bh_arena *arena,
                       struct bh_audit_record *ret)
{
    struct bh_hash is;
    struct bh_err err;
    char a[BH_HASH_HEX], b[BH_HASH_HEX];
    bh_audit_hash(row->body, row->n_body, &is);
    const bool same = bh_hash_eq(&is, &row->hash);
    if (!same)
        say(v, row->seq, BH_WRONG_EDITED, "its bytes have the hash %s, %s was recorded", bh_hash_hex(&is, a),
            bh_hash_hex(&row->hash, b));
    if (bh_audit_decode(row->body, row->n_body, arena, ret, &err) < 0) {
        if (same)
            say(v, row->seq, BH_WRONG_NO_RECORD, "%s", err.msg);
        return false;
    }
    if (same && ret->seq != row->seq)
        say(v, row->seq, BH_WRONG_ORDER, "in its place stands record %" PRIu64, ret->seq);
    if (same)
        check_columns(v, row, ret);
    return same;
}

/* Its place: the walk goes on from where it says it is. */
static bool check_place(struct bh_audit_verifier *v, const struct bh_audit_row *row)
{
    const uint64_t next = v->edge.n + 1;
    if (row->seq == next)
        return true;
    if (row->seq > next && row->seq == next + 1)
        say(v, next, BH_WRONG_MISSING, "it is not there: record %" PRIu64 " follows record %" PRIu64,
            row->seq, next - 1);
    else if (row->seq > next)
        say(v, next, BH_WRONG_MISSING, "records %" PRIu64 " to %" PRIu64 " are not there", next,
            row->seq - 1);
    else
        say(v, row->seq, BH_WRONG_ORDER, "it comes after record %" PRIu64, next - 1);
    v->torn = true;
    v->edge.n = row->seq - 1; /* only counts from here on */
    return false;
}

static void check_saved(struct bh_audit_verifier *v)
{
    struct bh_hash root;
    char a[BH_HASH_HEX], b[BH_HASH_HEX];
    if (!v->saved_note || v->edge.n != v->saved.size || v->torn)
        return;
    bh_merkle_root(&v->edge, &root);
    v->saved_held = bh_hash_eq(&root, &v->saved.root);
    if (!v->saved_held)
        say(v, v->edge.n, BH_WRONG_ROOT,
            "records 1 to %" PRIu64
            " have the root %s, the saved checkpoint says %s: the log is not the one it was made from",
            v->edge.n, bh_hash_hex(&root, a), bh_hash_hex(&v->saved.root, b));
}

static bool is_of_key(const struct bh_audit_record *r)
{
    return r->is.event == BH_AUDIT_AUDIT_KEY || r->is.event == BH_AUDIT_AUDIT_KEY_CHANGE;
}

static void look_into(struct bh_audit_verifier *v, const struct bh_audit_record *r)
{
    if (is_of_key(r))
        bh_audit_verify_key(v, r);
    if (r->is.event == BH_AUDIT_AUDIT_CHECKPOINT)
        v->owes = r->seq, v->checkpoint_ns = r->utc_ns;
    if (r->utc_ns < v->newest_ns)
        v->backwards++;
    v->newest_ns = r->utc_ns;
}

void bh_audit_verify_row(struct bh_audit_verifier *v, const struct bh_audit_row *row)
{
    struct bh_arena arena = {0};
    struct bh_audit_record r;
    check_owed(v, 0);
    if (row->odd)
        say(v, row->seq, BH_WRONG_COLUMN, "a column is not of the kind that it was made for");
    const bool whole = check_body(v, row, &arena, &r);
    if (whole && v->records == 0 && row->seq && row->seq <= v->cut.n && is_of_key(&r)) {
        bh_audit_verify_key(v, &r); /* kept from what was dropped: its own signature is all that holds it */
        bh_arena_fini(&arena);
        return;
    }
    const bool in_place = check_place(v, row);
    if (whole && in_place && !bh_hash_eq(&r.prev, &v->chain))
        say(v, row->seq, BH_WRONG_CHAIN,
            "it does not follow from record %" PRIu64 ": one of the two was put there or re-made",
            row->seq - 1);
    if (whole)
        v->chain = r.prev; /* where they differ, one finding is enough */
    bh_audit_chain(&v->chain, &row->hash, &v->chain);
    if (v->torn)
        v->edge.n++;
    else
        bh_merkle_add(&v->edge, &row->hash);
    v->records++;
    if (whole)
        look_into(v, &r);
    check_saved(v);
    bh_arena_fini(&arena);
}

/* ---- checkpoints ---- */

static void check_root(struct bh_audit_verifier *v, const struct bh_checkpoint *c)
{
    struct bh_hash root;
    char a[BH_HASH_HEX], b[BH_HASH_HEX];
    bh_merkle_root(&v->edge, &root);
    if (bh_hash_eq(&root, &c->root))
        v->signed_size = c->size;
    else
        say(v, c->size, BH_WRONG_ROOT,
            "records up to %" PRIu64 " have the root %s, %s was signed: a record after %" PRIu64
            " was re-made",
            c->size, bh_hash_hex(&root, a), bh_hash_hex(&c->root, b), v->signed_size);
}

void bh_audit_verify_checkpoint(struct bh_audit_verifier *v, uint64_t size, const char *note, size_t n)
{
    struct bh_checkpoint c;
    struct bh_err err;
    if (bh_checkpoint_parse(note, n, &c, &err) < 0 || c.size != size || !bh_str_eq(c.origin, v->origin)) {
        say(v, size, BH_WRONG_NO_CHECKPOINT, "what stands for its checkpoint is none of this log and size");
        check_owed(v, size);
        return;
    }
    v->checkpoints++;
    if (v->saved_note && v->saved.size == size && size <= v->cut.n)
        v->saved_held =
            bh_hash_eq(&c.root, &v->saved.root); /* what it covers is gone; this is what is left to compare */
    if (size > v->edge.n) {
        say(v, size, BH_WRONG_TRUNCATED, "%" PRIu64 " records were signed, the last one here is %" PRIu64,
            size, v->edge.n);
        return;
    }
    if (size < v->cut.n || v->edge.n == v->cut.n)
        v->owes = 0; /* dropped, and its record with it */
    else
        check_owed(v, size);
    if (v->keys == 0 || !bh_checkpoint_signed_by(&c, note, &v->key))
        say(v, size, BH_WRONG_FORGED, "its checkpoint is not signed by the key of the log (%08" PRIx32 ")",
            v->key.id);
    else if (size == v->edge.n && !v->torn)
        check_root(v, &c);
}

/* ---- the end ---- */

void bh_audit_verify_trust(struct bh_audit_verifier *v)
{
    if (v->keys == 0)
        say(v, 0, BH_WRONG_KEY, "the log names no key");
    if (v->trusted && !v->trusted_seen)
        say(v, 0, BH_WRONG_KEY, "the key that was given, %08" PRIx32 " of '%s', is none of this log",
            v->trusted->id, v->trusted->name);
    if (v->saved_note && !bh_audit_verify_signed(v, &v->saved, v->saved_note))
        say(v, 0, BH_WRONG_FORGED, "the saved checkpoint is not signed by a key of this log");
}

void bh_audit_verify_end(struct bh_audit_verifier *v, uint64_t end_n, const struct bh_hash *end_chain)
{
    const uint64_t last = v->edge.n;
    check_owed(v, 0);
    bh_audit_verify_trust(v);
    if (end_n > last)
        say(v, last + 1, BH_WRONG_TRUNCATED,
            "the log says that it ends with record %" PRIu64 ", the last one here is %" PRIu64, end_n, last);
    else if (end_n < last)
        say(v, end_n + 1, BH_WRONG_HEAD,
            "the log says that it ends with record %" PRIu64 ", and goes on to %" PRIu64, end_n, last);
    else if (!bh_hash_eq(end_chain, &v->chain))
        say(v, last, BH_WRONG_HEAD, "the chain does not end as the log says");
    if (v->saved_note && v->saved.size > last)
        say(v, last + 1, BH_WRONG_TRUNCATED,
            "the saved checkpoint covers %" PRIu64 " records, the last one here is %" PRIu64, v->saved.size,
            last);
    else if (v->saved_note && !v->saved_held && v->saved.size <= v->cut.n)
        say(v, v->saved.size, BH_WRONG_ROOT,
            "the saved checkpoint is not among those of this log, and its records were dropped");
}
