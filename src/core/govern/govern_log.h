/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern_log.h - what went into a step and what came out, as one line of text that reads back.
 *
 * A log is one settings line and then one line a step:
 *   govern 4 200 22 250000 ...
 *   step 5000 1 0 0 0 0 0 0 1 | 7 30 0 0 0 2 5000000 0 > 7 2000 1 0 1 0 1 0 1000 1000 1000 0
 * elapsed and count and what was unused, mode and flags and count, then each tenant: what was asked, what was told. Numbers
 * stand in the order of the tables in fields.c. Feeding the inputs of a log to a fresh controller gives its
 * outputs again, so a complaint about shares can be looked into on another machine.
 */
#ifndef BH_CORE_GOVERN_GOVERN_LOG_H
#define BH_CORE_GOVERN_GOVERN_LOG_H

#include "core/govern/govern.h"

#include <stddef.h>

/* A line with all tenants and the widest numbers fits. */
enum { BH_GOVERN_LINE_MAX = 64 * 1024 };

/* Written with a NUL and no newline; BH_TOO_LARGE when it does not fit. */
int bh_govern_log_config(const struct bh_govern_config *config, char *line, size_t size,
                         struct bh_err *err) BH_MUST_USE;
int bh_govern_log_step(const struct bh_govern_in *in, const struct bh_govern_out *out, char *line,
                       size_t size, struct bh_err *err) BH_MUST_USE;
/* Only what the writers write is read: one form for one meaning. */
int bh_govern_log_read_config(const char *line, struct bh_govern_config *ret, struct bh_err *err) BH_MUST_USE;
int bh_govern_log_read_step(const char *line, struct bh_govern_in *ret_in, struct bh_govern_out *ret_out,
                            struct bh_err *err) BH_MUST_USE;
/* One step of a log again: BH_CONFLICT when the controller now says something else than the line. */
int bh_govern_log_replay(struct bh_govern *g, const char *line, struct bh_err *err) BH_MUST_USE;

#endif
