/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_show.h - which records are asked for, and one as a line for people: when, what, how it went, who, whose, why.
 *
 * Records hold what strangers wrote; in a line, what could move a terminal's cursor becomes a question mark.
 */
#ifndef BH_STORE_AUDIT_SHOW_H
#define BH_STORE_AUDIT_SHOW_H

#include "store/audit_record.h"

struct bh_audit_filter {
    const char *tenant; /* all: NULL */
    const char *event;  /* a pattern: `alloc.*` */
    const char *actor;  /* a pattern for who (`user:a*`), or a user id */
    int64_t since_ms;   /* since 1970; 0: from the beginning */
};
bool bh_audit_matches(const struct bh_audit_filter *f, const struct bh_audit_record *r);

/* With its newline. */
void bh_audit_line_add(struct bh_buf *out, const struct bh_audit_record *r);

#endif
