/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* In brackets: an analyser has a macro of that name. */
int(bh_fail)(struct bh_err *err, enum bh_code code, const char *fmt, ...)
{
    va_list ap;

    if (err) {
        err->code = code;
        va_start(ap, fmt);
        (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
    }
    return code;
}

int(bh_wrap)(struct bh_err *err, int rc, const char *fmt, ...)
{
    char old[sizeof(err->msg)];
    va_list ap;
    int n;

    if (!err)
        return rc;
    memcpy(old, err->msg, sizeof(old));
    va_start(ap, fmt);
    n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(err->msg))
        return rc;
    /* a long chain is cut at the end, never overrun */
    if (snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", old) < 0)
        err->msg[n] = '\0';
    return rc;
}

static const struct {
    const char *str;
    int http, exit;
} codes[] = {
#define BH_ERR(code, str, http, exit_) {str, http, exit_},
#include "base/errors.def"
#undef BH_ERR
};

static const int n_codes = (int)(sizeof(codes) / sizeof(codes[0]));

/* An unknown code is treated as the internal failure. */
static int row(int code)
{
    bool known = code > BH_CODE_BASE_ && code <= BH_CODE_BASE_ + n_codes;
    return (known ? code : BH_SYSTEM) - BH_CODE_BASE_ - 1;
}

const char *bh_code_str(int code)
{
    return code == BH_OK ? "ok" : codes[row(code)].str;
}

int bh_code_http(int code)
{
    return code == BH_OK ? 200 : codes[row(code)].http;
}

int bh_code_exit(int code)
{
    return code == BH_OK ? 0 : codes[row(code)].exit;
}
