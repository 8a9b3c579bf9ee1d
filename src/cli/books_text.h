/* SPDX-License-Identifier: Apache-2.0 */
/* books_text.h - what was used, what a policy would change, and tokens, for people and for spreadsheets. */
#ifndef BH_CLI_BOOKS_TEXT_H
#define BH_CLI_BOOKS_TEXT_H

#include "cli/answer.h"
#include "cli/table.h"

enum bh_usage_by { BH_USAGE_BY_TENANT, BH_USAGE_BY_MECHANISM, BH_USAGE_BY_BOTH };
/* Rows of the same tenant, or mechanism, added up; in the order in which they first came. */
void bh_usage_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_usage_by by);
/* A line of names, then a line each; exact amounts in milli_ms and mib_ms. */
void bh_usage_csv(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_usage_by by);

void bh_diff_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_diff *d, const char *file);
void bh_tokens_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tokens *t, uint64_t now_ms);

#endif
