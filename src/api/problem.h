/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - why a request was not done: what a struct bh_err says, and for people what was needed, what was there and
 * what to do next. Its text form is the body of every answer that is not 2xx.
 */
#ifndef BH_API_PROBLEM_H
#define BH_API_PROBLEM_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct bh_api_problem {
    struct bh_err err;
    int http;                              /* 0: what the code stands for */
    uint32_t retry_s;                      /* 0: not said */
    char needed[240], had[240], next[240]; /* "": not said */
};

/* Fills it and returns the code, so that callers write `return bh_api_refuse(...)`. */
int bh_api_refuse(struct bh_api_problem *p, enum bh_code code, const char *fmt, ...) BH_PRINTF(3, 4);
/* The rest of it, each may be NULL; cut where it is too long. */
void bh_api_hint(struct bh_api_problem *p, const char *needed, const char *had, const char *next);
int bh_api_problem_http(const struct bh_api_problem *p);
void bh_api_problem_json(struct bh_buf *out, const struct bh_api_problem *p);

#endif
