/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_export.h - an audit log as a file that verifies by itself: JSON, one object a line.
 *
 * Whole: a head, every record with its hash, each checkpoint after the last record it covers, and an end line, so that a
 * file that was cut is noticed. Part (one tenant's): the last checkpoint, then that tenant's records and those that
 * name the log's keys, each with the proof that it is in the tree that the checkpoint signs; nobody else's records are
 * in it. A part shows that what is there is real. That nothing of the tenant's was left out only the whole log can show.
 *
 *   {"audit":1,"cut":0,"cut_chain":HEX,"cut_edge":[],"kind":"whole","origin":NAME,"size":N}
 *   {"hash":HEX,"record":{...}}              the record's bytes as they were hashed
 *   {"checkpoint":N,"note":TEXT}
 *   {"chain":HEX,"end":N}
 *
 *   {"audit":1,"kind":"part","origin":NAME,"size":N,"tenant":NAME}
 *   {"checkpoint":N,"note":TEXT}
 *   {"consistency":M,"proof":[HEX...]}       when an older checkpoint was given: its M records are the first of these N
 *   {"hash":HEX,"proof":[HEX...],"record":{...}}
 *   {"end":K}                                records above
 */
#ifndef BH_STORE_AUDIT_EXPORT_H
#define BH_STORE_AUDIT_EXPORT_H

#include "store/audit_verify.h"

enum { BH_AUDIT_LINE_MAX = BH_AUDIT_BODY_MAX + 16384 };

/* One line with its newline; 0, or a failure that ends the export. */
typedef int (*bh_audit_line_fn)(void *arg, const char *text, size_t n, struct bh_err *err);

struct bh_audit_export_options {
    const char *tenant;    /* NULL: whole */
    const char *from_note; /* an older checkpoint for the reader of a part to go on from; NULL: none */
    size_t n_from_note;
};
struct bh_audit_exported {
    uint64_t records, size; /* written; records that the export covers */
    uint64_t unsigned_tail; /* records after the last checkpoint: in a whole export, left out of a part */
};

int bh_audit_export(struct bh_store *s, const struct bh_audit_export_options *o, bh_audit_line_fn line,
                    void *arg, struct bh_audit_exported *ret, struct bh_err *err) BH_MUST_USE;

/* ---- reading one ---- */

struct bh_audit_import {
    struct bh_audit_verifier *v; /* everything that is wrong goes here */
    int (*row)(void *arg, const struct bh_audit_row *row,
               struct bh_err *err); /* each record that is one; NULL: not wanted */
    void *arg;
    /* on the way */
    char *tenant; /* of a part */
    bool begun, is_part, ended, has_checkpoint;
    uint64_t line, size, last_seq;
    struct bh_checkpoint checkpoint;
    char *note;
    uint64_t from;
    bh_hash_vec consistency;
};

/* One line, without its newline. BH_INVALID: it is no line of an export, and the rest cannot be understood. */
int bh_audit_import_line(struct bh_audit_import *im, const char *text, size_t n,
                         struct bh_err *err) BH_MUST_USE;
/* After the last line; a missing end is a finding. BH_INVALID: there was not even a head. */
int bh_audit_import_end(struct bh_audit_import *im, struct bh_err *err) BH_MUST_USE;
void bh_audit_import_fini(struct bh_audit_import *im);

#endif
