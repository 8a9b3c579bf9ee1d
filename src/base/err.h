/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - how failures travel.
 *
 * A function that can fail returns 0 or a negative enum bh_code and takes a
 * struct bh_err * as its last parameter. The struct lives in the caller's
 * frame: reporting a failure never allocates and never fails. Pass NULL when
 * the message is not wanted. On success *err is untouched.
 */
#ifndef BH_BASE_ERR_H
#define BH_BASE_ERR_H

#define BH_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define BH_MUST_USE     __attribute__((warn_unused_result))

enum bh_code {
    BH_OK = 0,
    BH_CODE_BASE_ = -1000,
#define BH_ERR(code, str, http, exit_) BH_##code,
#include "base/errors.def"
#undef BH_ERR
};

struct bh_err {
    enum bh_code code;
    char msg[480];
};

/* Record a failure and return its code, so callers write `return bh_fail(...)`. */
int bh_fail(struct bh_err *err, enum bh_code code, const char *fmt, ...) BH_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* it sees one file at a time, and must know what comes back */
#define bh_fail(err, code, ...) ((void)(bh_fail)(err, code, __VA_ARGS__), (int)(code))
#endif

/* Prefix "context: " to a failure already in err; returns rc. */
int bh_wrap(struct bh_err *err, int rc, const char *fmt, ...) BH_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define bh_wrap(err, rc, ...)                        \
    __extension__({                                  \
        const int wrapped_ = (rc);                   \
        (void)(bh_wrap)(err, wrapped_, __VA_ARGS__); \
        wrapped_;                                    \
    })
#endif

const char *bh_code_str(int code);
int bh_code_http(int code);
int bh_code_exit(int code);

#endif
