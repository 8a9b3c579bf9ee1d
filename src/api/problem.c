/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - failures as JSON: {"error": {"code", "message", "needed", "had", "next"}}. */
#include "api/problem.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

int bh_api_refuse(struct bh_api_problem *p, enum bh_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->err.code = code;
    (void)vsnprintf(p->err.msg, sizeof(p->err.msg), fmt, ap);
    va_end(ap);
    return code;
}

void bh_api_hint(struct bh_api_problem *p, const char *needed, const char *had, const char *next)
{
    (void)snprintf(p->needed, sizeof(p->needed), "%s", needed ? needed : "");
    (void)snprintf(p->had, sizeof(p->had), "%s", had ? had : "");
    (void)snprintf(p->next, sizeof(p->next), "%s", next ? next : "");
}

int bh_api_problem_http(const struct bh_api_problem *p)
{
    return p->http ? p->http : bh_code_http(p->err.code);
}

void bh_api_problem_json(struct bh_buf *out, const struct bh_api_problem *p)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key(&j, "error");
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "code", bh_code_str(p->err.code));
    bh_json_key_str(&j, "message", p->err.msg);
    if (p->needed[0])
        bh_json_key_str(&j, "needed", p->needed);
    if (p->had[0])
        bh_json_key_str(&j, "had", p->had);
    if (p->next[0])
        bh_json_key_str(&j, "next", p->next);
    bh_json_close(&j, '}');
    bh_json_close(&j, '}');
}
