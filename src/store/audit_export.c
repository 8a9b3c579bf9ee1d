/* SPDX-License-Identifier: Apache-2.0 */
/* audit_export.c - writes the lines; the tree for the proofs of a part is made on the way through the log. */
#include "store/audit_export.h"

#include "base/str.h"
#include "store/audit_db.h"

#include <inttypes.h>
#include <string.h>

struct exporting {
    const struct bh_audit_export_options *o;
    bh_audit_line_fn line;
    void *arg;
    struct bh_audit_exported done;
    struct bh_audit_head head;
    struct bh_buf out;
    /* of a part */
    struct bh_merkle_tree tree;
    bh_hash_vec proof;
};

static int put_line(struct exporting *x, struct bh_err *err)
{
    bh_buf_str(&x->out, "}\n");
    if (x->out.full)
        return bh_fail(err, BH_TOO_LARGE, "a line of the export is too long");
    int rc = x->line(x->arg, x->out.at, x->out.n, err);
    x->out.n = 0;
    return rc;
}

static void add_hash(struct bh_buf *out, const struct bh_hash *h)
{
    char hex[BH_HASH_HEX];
    bh_buf_printf(out, "\"%s\"", bh_hash_hex(h, hex));
}

static void add_hashes(struct bh_buf *out, const struct bh_hash *h, size_t n)
{
    bh_buf_str(out, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            bh_buf_str(out, ",");
        add_hash(out, &h[i]);
    }
    bh_buf_str(out, "]");
}

static int put_checkpoint(void *arg, uint64_t size, const char *note, struct bh_err *err)
{
    struct exporting *x = arg;
    bh_buf_printf(&x->out, "{\"checkpoint\":%" PRIu64 ",\"note\":", size);
    bh_audit_quote(&x->out, note);
    return put_line(x, err);
}

/* ---- whole ---- */

static int put_head(void *arg, const struct bh_audit_head *h, struct bh_err *err)
{
    struct exporting *x = arg;
    x->head = *h;
    bh_buf_printf(&x->out, "{\"audit\":1,\"cut\":%" PRIu64 ",\"cut_chain\":", h->cut.n);
    add_hash(&x->out, &h->cut_chain);
    bh_buf_str(&x->out, ",\"cut_edge\":");
    add_hashes(&x->out, h->cut.peak, bh_merkle_peaks(&h->cut));
    bh_buf_str(&x->out, ",\"kind\":\"whole\",\"origin\":");
    bh_audit_quote(&x->out, h->origin);
    bh_buf_printf(&x->out, ",\"size\":%" PRIu64, h->edge.n);
    return put_line(x, err);
}

static int put_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct exporting *x = arg;
    bh_buf_str(&x->out, "{\"hash\":");
    add_hash(&x->out, &row->hash);
    bh_buf_str(&x->out, ",\"record\":");
    bh_buf_add(&x->out, row->body, row->n_body);
    x->done.records++;
    return put_line(x, err);
}

static int export_whole(struct bh_store *s, struct exporting *x, struct bh_err *err)
{
    const struct bh_audit_reader reader = {
        .arg = x, .begin = put_head, .row = put_row, .checkpoint = put_checkpoint};
    int rc = bh_audit_db_read(s, &reader, err);
    if (rc < 0)
        return rc;
    x->done.size = x->head.edge.n;
    x->done.unsigned_tail = x->head.edge.n - x->head.signed_size;
    bh_buf_str(&x->out, "{\"chain\":");
    add_hash(&x->out, &x->head.chain);
    bh_buf_printf(&x->out, ",\"end\":%" PRIu64, x->head.edge.n);
    return put_line(x, err);
}

/* ---- part ---- */

static int take_head(void *arg, const struct bh_audit_head *h, struct bh_err *err)
{
    struct exporting *x = arg;
    (void)err;
    x->head = *h;
    bh_merkle_tree_init(&x->tree, &h->cut);
    return 0;
}

static int take_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct exporting *x = arg;
    if (row->seq <= x->head.cut.n)
        return 0;
    if (row->seq != x->tree.n + 1)
        return bh_fail(err, BH_REFUSED, "record %" PRIu64 " is missing; see bulkhead audit verify",
                       x->tree.n + 1);
    bh_merkle_tree_add(&x->tree, &row->hash);
    return 0;
}

static bool is_key_event(const char *event)
{
    return bh_str_eq(event, bh_audit_names[BH_AUDIT_AUDIT_KEY]) ||
           bh_str_eq(event, bh_audit_names[BH_AUDIT_AUDIT_KEY_CHANGE]);
}

static int put_proved(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct exporting *x = arg;
    if (row->seq > x->done.size || (!is_key_event(row->event) && !bh_str_eq(row->tenant, x->o->tenant)))
        return 0;
    if (row->seq <= x->head.cut.n)
        return put_row(arg, row, err); /* of a key, kept: its own signature holds it */
    if (!bh_merkle_inclusion(&x->tree, row->seq - 1, x->done.size, &x->proof))
        return bh_fail(err, BH_REFUSED, "record %" PRIu64 " cannot be proved", row->seq);
    bh_buf_str(&x->out, "{\"hash\":");
    add_hash(&x->out, &row->hash);
    bh_buf_str(&x->out, ",\"proof\":");
    add_hashes(&x->out, x->proof.at, x->proof.n);
    bh_buf_str(&x->out, ",\"record\":");
    bh_buf_add(&x->out, row->body, row->n_body);
    x->done.records++;
    return put_line(x, err);
}

static int put_consistency(struct exporting *x, struct bh_err *err)
{
    struct bh_checkpoint from;
    if (!x->o->from_note)
        return BH_OK;
    int rc = bh_checkpoint_parse(x->o->from_note, x->o->n_from_note, &from, err);
    if (rc < 0)
        return rc;
    if (!bh_merkle_consistency(&x->tree, from.size, x->done.size, &x->proof))
        return bh_fail(err, BH_REFUSED,
                       "no proof from the checkpoint of %" PRIu64 " records to that of %" PRIu64
                       ": it is newer than the log's own, or older than the records that are left",
                       from.size, x->done.size);
    bh_buf_printf(&x->out, "{\"consistency\":%" PRIu64 ",\"proof\":", from.size);
    add_hashes(&x->out, x->proof.at, x->proof.n);
    return put_line(x, err);
}

static int put_part_head(struct bh_store *s, struct exporting *x, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const char *note;
    int rc = bh_audit_checkpoint_find(s, x->tree.n, true, &arena, &x->done.size, &note, err);
    if (rc == BH_OK) {
        x->done.unsigned_tail = x->tree.n - x->done.size;
        bh_buf_str(&x->out, "{\"audit\":1,\"kind\":\"part\",\"origin\":");
        bh_audit_quote(&x->out, x->head.origin);
        bh_buf_printf(&x->out, ",\"size\":%" PRIu64 ",\"tenant\":", x->done.size);
        bh_audit_quote(&x->out, x->o->tenant);
        rc = put_line(x, err);
    }
    if (rc == BH_OK)
        rc = put_checkpoint(x, x->done.size, note, err);
    if (rc == BH_OK)
        rc = put_consistency(x, err);
    bh_arena_fini(&arena);
    return rc;
}

static int export_part(struct bh_store *s, struct exporting *x, struct bh_err *err)
{
    const struct bh_audit_reader first = {.arg = x, .begin = take_head, .row = take_row};
    const struct bh_audit_reader second = {.arg = x, .row = put_proved};
    int rc = bh_audit_db_read(s, &first, err);
    if (rc == BH_OK)
        rc = put_part_head(s, x, err);
    /* records that came meanwhile stand behind the checkpoint, and are not asked for */
    if (rc == BH_OK)
        rc = bh_audit_db_read(s, &second, err);
    if (rc == BH_OK) {
        bh_buf_printf(&x->out, "{\"end\":%" PRIu64, x->done.records);
        rc = put_line(x, err);
    }
    return rc;
}

int bh_audit_export(struct bh_store *s, const struct bh_audit_export_options *o, bh_audit_line_fn line,
                    void *arg, struct bh_audit_exported *ret, struct bh_err *err)
{
    struct exporting x = {.o = o, .line = line, .arg = arg};
    bh_buf_init(&x.out, BH_AUDIT_LINE_MAX);
    int rc = o->tenant ? export_part(s, &x, err) : export_whole(s, &x, err);
    if (rc == BH_OK)
        *ret = x.done;
    bh_buf_fini(&x.out);
    bh_vec_fini(&x.proof);
    bh_merkle_tree_fini(&x.tree);
    return rc;
}
