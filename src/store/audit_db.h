/* SPDX-License-Identifier: Apache-2.0 */
/* audit_db.h - an audit log in its database, read from the first row to the last as it was at one moment. */
#ifndef BH_STORE_AUDIT_DB_H
#define BH_STORE_AUDIT_DB_H

#include "store/audit_verify.h"

/* What whoever reads a log is given, in its order. Each may be NULL; one that answers something else than 0 ends the reading. */
struct bh_audit_reader {
    void *arg;
    int (*begin)(void *arg, const struct bh_audit_head *head, struct bh_err *err);
    int (*row)(void *arg, const struct bh_audit_row *row, struct bh_err *err);
    int (*checkpoint)(void *arg, uint64_t size, const char *note, struct bh_err *err);
};

/* Also while a daemon writes to it. */
int bh_audit_db_read(struct bh_store *s, const struct bh_audit_reader *reader,
                     struct bh_err *err) BH_MUST_USE;
/* Whole: guards, records, checkpoints, head. 0 whatever is found: see v->findings. */
int bh_audit_db_verify(struct bh_store *s, struct bh_audit_verifier *v, struct bh_err *err) BH_MUST_USE;

#endif
