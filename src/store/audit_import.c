/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_import.c - reads an export: a table of keys, a table of lines by the keys they have, and a verifier behind it.
 *
 * The file may be anybody's. A key twice, one too many or too few, and the line is none.
 */
#include "store/audit_export.h"

#include "base/json_read.h"
#include "base/str.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PROOF_MAX = 128 };

struct line {
    unsigned has; /* bit i: keys[i] was there */
    uint64_t audit, checkpoint, consistency, cut, end, size;
    struct bh_hash chain, cut_chain, hash;
    struct bh_hash list[PROOF_MAX]; /* proof, or cut_edge: no line has both */
    size_t n_list;
    char kind[8], origin[BH_NOTE_NAME_MAX], tenant[BH_AUDIT_TEXT_MAX + 1], note[BH_NOTE_MAX + 1];
    const char *body; /* in the text */
    size_t n_body;
};

/* ---- one line ---- */

enum value { NUMBER, HASH, HASHES, TEXT, RAW };
#define AT(m)   offsetof(struct line, m)
#define ROOM(m) sizeof(((struct line *)0)->m)
static const struct {
    const char *name;
    enum value value;
    size_t at, room;
} keys[] = {
    {"audit", NUMBER, AT(audit), 0},
    {"chain", HASH, AT(chain), 0},
    {"checkpoint", NUMBER, AT(checkpoint), 0},
    {"consistency", NUMBER, AT(consistency), 0},
    {"cut", NUMBER, AT(cut), 0},
    {"cut_chain", HASH, AT(cut_chain), 0},
    {"cut_edge", HASHES, 0, 0},
    {"end", NUMBER, AT(end), 0},
    {"hash", HASH, AT(hash), 0},
    {"kind", TEXT, AT(kind), ROOM(kind)},
    {"note", TEXT, AT(note), ROOM(note)},
    {"origin", TEXT, AT(origin), ROOM(origin)},
    {"proof", HASHES, 0, 0},
    {"record", RAW, 0, 0},
    {"size", NUMBER, AT(size), 0},
    {"tenant", TEXT, AT(tenant), ROOM(tenant)},
};
enum {
    AUDIT = 1 << 0,
    CHAIN = 1 << 1,
    CHECKPOINT = 1 << 2,
    CONSISTENCY = 1 << 3,
    CUT = 1 << 4 | 1 << 5 | 1 << 6,
    END = 1 << 7,
    HASH_KEY = 1 << 8,
    KIND = 1 << 9,
    NOTE = 1 << 10,
    ORIGIN = 1 << 11,
    PROOF = 1 << 12,
    RECORD = 1 << 13,
    SIZE = 1 << 14,
    TENANT = 1 << 15,
};

static bool read_hash(struct bh_json_reader *r, struct bh_hash *ret)
{
    char hex[BH_HASH_HEX];
    return bh_json_read_str(r, hex, sizeof(hex)) && strlen(hex) == BH_HASH_HEX - 1 && bh_hash_parse(hex, ret);
}

static bool read_hashes(struct bh_json_reader *r, struct line *l)
{
    if (!bh_json_read_open(r, '['))
        return false;
    while (bh_json_read_item(r))
        if (l->n_list == PROOF_MAX || !read_hash(r, &l->list[l->n_list++]))
            return false;
    return !r->wrong;
}

/* The bytes of a value as they stand there. */
static bool read_raw(struct bh_json_reader *r, struct line *l)
{
    if (bh_json_read_peek(r) != '{')
        return false;
    l->body = r->at;
    if (!bh_json_read_skip(r))
        return false;
    l->n_body = (size_t)(r->at - l->body);
    return true;
}

static bool read_value(struct bh_json_reader *r, struct line *l, size_t k)
{
    char *at = (char *)l + keys[k].at;
    uint64_t v;
    struct bh_hash h;
    switch (keys[k].value) {
    case NUMBER:
        if (!bh_json_read_u64(r, &v) || v >> 53)
            return false;
        memcpy(at, &v, sizeof(v));
        return true;
    case HASH:
        if (!read_hash(r, &h))
            return false;
        memcpy(at, &h, sizeof(h));
        return true;
    case HASHES:
        return read_hashes(r, l);
    case TEXT:
        return bh_json_read_str(r, at, keys[k].room);
    case RAW:
        return read_raw(r, l);
    }
    return false;
}

static bool read_line(const char *text, size_t n, struct line *l)
{
    struct bh_json_reader r;
    char key[16];
    bh_json_read_init(&r, text, n);
    if (!bh_json_read_open(&r, '{'))
        return false;
    while (bh_json_read_member(&r, key, sizeof(key))) {
        size_t k = 0;
        while (k < BH_COUNT_OF(keys) && !bh_str_eq(keys[k].name, key))
            k++;
        if (k == BH_COUNT_OF(keys) || l->has & 1u << k || !read_value(&r, l, k))
            return false;
        l->has |= 1u << k;
    }
    return bh_json_read_end(&r);
}

/* ---- what lines do ---- */

static int wrong_line(const struct bh_audit_import *im, struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_INVALID, "line %" PRIu64 ": %s", im->line, what);
}

static int begin(struct bh_audit_import *im, const struct line *l, const struct bh_merkle *cut,
                 struct bh_err *err)
{
    if (im->begun || l->audit != 1)
        return wrong_line(im, err, "a head of version 1 stands at the beginning, and only there");
    im->begun = true;
    im->size = l->size;
    int rc = bh_audit_verify_begin(im->v, l->origin, cut, &l->cut_chain, err);
    return rc;
}

static int on_whole(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    struct bh_merkle cut;
    if (!bh_str_eq(l->kind, "whole") || !bh_merkle_load(&cut, l->cut, l->list, l->n_list * BH_HASH_BYTES))
        return wrong_line(im, err, "a head whose parts do not fit");
    return begin(im, l, &cut, err);
}

static int on_part(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    static const struct bh_merkle none;
    if (!bh_str_eq(l->kind, "part"))
        return wrong_line(im, err, "a head whose parts do not fit");
    im->is_part = true;
    free(im->tenant);
    im->tenant = bh_alloc(strlen(l->tenant) + 1, 1);
    memcpy(im->tenant, l->tenant, strlen(l->tenant));
    return begin(im, l, &none, err);
}

static int on_checkpoint(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    const size_t n = strlen(l->note);
    if (!im->is_part) {
        bh_audit_verify_checkpoint(im->v, l->checkpoint, l->note, n);
        return BH_OK;
    }
    if (im->has_checkpoint)
        return wrong_line(im, err, "a part has one checkpoint");
    int rc = bh_checkpoint_parse(l->note, n, &im->checkpoint, err);
    if (rc < 0)
        return rc;
    if (im->checkpoint.size != l->checkpoint || l->checkpoint != im->size ||
        !bh_str_eq(im->checkpoint.origin, im->v->origin))
        return wrong_line(im, err, "the checkpoint is of another log or size");
    im->has_checkpoint = true;
    im->note = bh_alloc(n + 1, 1);
    memcpy(im->note, l->note, n);
    return BH_OK;
}

static int on_consistency(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    if (!im->is_part || !im->has_checkpoint || im->from)
        return wrong_line(im, err, "a proof of consistency stands behind the checkpoint of a part, once");
    im->from = l->consistency;
    for (size_t i = 0; i < l->n_list; i++)
        *bh_vec_push(&im->consistency) = l->list[i];
    return BH_OK;
}

static bool is_of_key(const struct bh_audit_record *r)
{
    return r->is.event == BH_AUDIT_AUDIT_KEY || r->is.event == BH_AUDIT_AUDIT_KEY_CHANGE;
}

/* A record of a part: real by its proof, or, where it names a key, by that key's signature. */
static void check_proved(struct bh_audit_import *im, const struct line *l, const struct bh_audit_row *row,
                         const struct bh_audit_record *r)
{
    struct bh_audit_verifier *v = im->v;
    struct bh_hash is;
    bh_audit_hash(row->body, row->n_body, &is);
    if (!bh_hash_eq(&is, &row->hash)) {
        bh_audit_verify_say(v, row->seq, BH_WRONG_EDITED, "its bytes do not have the hash that was recorded");
        return;
    }
    const bool of_key = is_of_key(r);
    if (row->seq <= im->last_seq)
        bh_audit_verify_say(v, row->seq, BH_WRONG_ORDER, "it comes after record %" PRIu64, im->last_seq);
    im->last_seq = row->seq;
    if (!of_key && !bh_str_eq(row->tenant, im->tenant))
        bh_audit_verify_say(v, row->seq, BH_WRONG_ORDER, "it is not of the tenant '%.60s'", im->tenant);
    if (!(l->has & PROOF) ? !of_key
                          : !bh_merkle_inclusion_check(&is, row->seq - 1, im->size, l->list, l->n_list,
                                                       &im->checkpoint.root))
        bh_audit_verify_say(v, row->seq, BH_WRONG_UNPROVED, "no proof that it is in the log that was signed");
    if (of_key)
        bh_audit_verify_key(v, r);
    v->records++;
}

static int on_record(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_audit_record r;
    struct bh_audit_row row = {
        .seq = im->v->edge.n + 1, .event = "", .body = l->body, .n_body = l->n_body, .hash = l->hash};
    int rc = BH_OK;
    if (im->is_part ? !im->has_checkpoint : (l->has & PROOF) != 0)
        return wrong_line(im, err, "a record where none can stand");
    const bool good = bh_audit_decode(l->body, l->n_body, &arena, &r, err) == BH_OK;
    if (good) {
        row.seq = r.seq;
        row.event = bh_audit_names[r.is.event];
        row.tenant = r.is.tenant;
        row.at_ms = r.utc_ns / INT64_C(1000000);
    }
    if (!im->is_part)
        bh_audit_verify_row(im->v, &row);
    else if (good)
        check_proved(im, l, &row, &r);
    else
        bh_audit_verify_say(im->v, 0, BH_WRONG_NO_RECORD, "line %" PRIu64 " holds no record", im->line);
    if (good && im->row)
        rc = im->row(im->arg, &row, err);
    bh_arena_fini(&arena);
    return rc;
}

/* A checkpoint kept elsewhere against the one of the part. */
static void check_saved_part(struct bh_audit_import *im)
{
    struct bh_audit_verifier *v = im->v;
    if (!v->saved_note)
        return;
    if (v->saved.size > im->size)
        bh_audit_verify_say(v, 0, BH_WRONG_UNPROVED,
                            "the saved checkpoint is newer than this part: export again");
    else if (v->saved.size != im->size && im->from != v->saved.size)
        bh_audit_verify_say(v, 0, BH_WRONG_UNPROVED,
                            "nothing here leads from the saved checkpoint of %" PRIu64
                            " records to this part: export again with --from",
                            v->saved.size);
    else if (!bh_merkle_consistency_check(v->saved.size, &v->saved.root, im->size, &im->checkpoint.root,
                                          im->consistency.at,
                                          v->saved.size == im->size ? 0 : im->consistency.n))
        bh_audit_verify_say(v, 0, BH_WRONG_ROOT,
                            "the log that was signed does not begin with that of the saved checkpoint");
    else
        v->saved_held = true;
}

static void end_part(struct bh_audit_import *im, const struct line *l)
{
    struct bh_audit_verifier *v = im->v;
    if (l->end != v->records)
        bh_audit_verify_say(v, 0, BH_WRONG_TRUNCATED,
                            "%" PRIu64 " records were exported, %" PRIu64 " are here", l->end, v->records);
    bh_audit_verify_trust(v);
    if (v->keys == 0 || !bh_checkpoint_signed_by(&im->checkpoint, im->note, &v->key)) {
        bh_audit_verify_say(v, im->size, BH_WRONG_FORGED,
                            "its checkpoint is not signed by the key of the log");
    } else {
        v->checkpoints = 1;
        v->signed_size = im->size;
    }
    check_saved_part(im);
}

static int on_end(struct bh_audit_import *im, const struct line *l, struct bh_err *err)
{
    if (im->is_part != !(l->has & CHAIN) || (im->is_part && !im->has_checkpoint))
        return wrong_line(im, err, "the end of another kind of export");
    im->ended = true;
    if (im->is_part) {
        end_part(im, l);
        return BH_OK;
    }
    if (im->size != l->end)
        bh_audit_verify_say(im->v, 0, BH_WRONG_HEAD, "the head says %" PRIu64 " records, the end %" PRIu64,
                            im->size, l->end);
    bh_audit_verify_end(im->v, l->end, &l->chain);
    return BH_OK;
}

static const struct {
    unsigned has;
    int (*act)(struct bh_audit_import *im, const struct line *l, struct bh_err *err);
} lines[] = {
    {AUDIT | CUT | KIND | ORIGIN | SIZE, on_whole},
    {AUDIT | KIND | ORIGIN | SIZE | TENANT, on_part},
    {HASH_KEY | RECORD, on_record},
    {HASH_KEY | PROOF | RECORD, on_record},
    {CHECKPOINT | NOTE, on_checkpoint},
    {CONSISTENCY | PROOF, on_consistency},
    {CHAIN | END, on_end},
    {END, on_end},
};

int bh_audit_import_line(struct bh_audit_import *im, const char *text, size_t n, struct bh_err *err)
{
    BH_AUTOFREE struct line *l = bh_alloc(1, sizeof(*l));
    im->line++;
    if (!read_line(text, n, l))
        return wrong_line(im, err, "no line of an audit export");
    if (im->ended)
        return wrong_line(im, err, "something stands behind the end");
    if (!im->begun && !(l->has & AUDIT))
        return wrong_line(im, err,
                          "the head is missing: this is no audit export, or not the beginning of one");
    for (size_t i = 0; i < BH_COUNT_OF(lines); i++)
        if (lines[i].has == l->has)
            return lines[i].act(im, l, err);
    return wrong_line(im, err, "keys that do not go together");
}

int bh_audit_import_end(struct bh_audit_import *im, struct bh_err *err)
{
    if (!im->begun)
        return bh_fail(err, BH_INVALID, "the file is empty");
    if (!im->ended) {
        bh_audit_verify_say(im->v, 0, BH_WRONG_TRUNCATED,
                            "the file has no end line: something was cut off after line %" PRIu64, im->line);
        bh_audit_verify_trust(im->v);
    }
    return BH_OK;
}

void bh_audit_import_fini(struct bh_audit_import *im)
{
    free(im->tenant);
    free(im->note);
    bh_vec_fini(&im->consistency);
}
