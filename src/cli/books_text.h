/* SPDX-License-Identifier: Apache-2.0 */
/* books_text.h - what was used, what a policy would change, and tokens, for people and for spreadsheets. */
#ifndef BH_CLI_BOOKS_TEXT_H
#define BH_CLI_BOOKS_TEXT_H

#include "cli/answer.h"
#include "cli/table.h"

/* The answer as lines of a bill; bh_bill_fini() when it was used. */
void bh_usage_bill(const struct bh_a_usage *u, enum bh_bill_by by, struct bh_bill *ret);
/* That records of that time were dropped, in words; NULL: none were. */
const char *bh_usage_missing(struct bh_arena *a, const struct bh_a_usage *u);
void bh_usage_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_bill_by by);
/* What somebody should look at: reservations that idle, tenants that need more. Of an answer with rows of every tenant. */
void bh_usage_hints(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u,
                    const struct bh_a_quotas *q, const struct bh_a_leases *l);
/* The intervals themselves, page after page. */
void bh_usage_raw_head(struct bh_buf *out);
void bh_usage_raw(struct bh_buf *out, const struct bh_a_usage_records *r);

void bh_diff_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_diff *d, const char *file);
void bh_tokens_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tokens *t, uint64_t now_ms);

#endif
