/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - answers of HTTP/1.1 servers, one state at a time. */
#include "client/http.h"

#include "base/str.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

void bh_http_init(struct bh_http *h)
{
    *h = (struct bh_http){.next_offset = UINT64_MAX};
}

static int wrong(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_INVALID, "the answer is not HTTP: %s", what);
}

/* ---- lines ---- */

static int status_line(struct bh_http *h, struct bh_err *err)
{
    uint64_t status;
    char digits[4] = "";
    if (!bh_str_starts(h->line, "HTTP/1.1 ") && !bh_str_starts(h->line, "HTTP/1.0 "))
        return wrong(err, "no status line");
    (void)snprintf(digits, sizeof(digits), "%.3s", h->line + 9);
    if (bh_uint_parse(digits, 999, &status, NULL) < 0 || status < 100 || (h->line[12] && h->line[12] != ' '))
        return wrong(err, "no status");
    h->status = (int)status;
    h->close = h->line[7] == '0';
    h->part = BH_HTTP_HEADERS;
    return 0;
}

static int set_length(struct bh_http *h, const char *value, struct bh_err *err)
{
    uint64_t n;
    if (bh_uint_parse(value, INT64_MAX, &n, NULL) < 0 || (h->has_length && n != h->length))
        return wrong(err, "a length that is none");
    h->has_length = true;
    h->length = n;
    return 0;
}

static int header(struct bh_http *h, struct bh_err *err)
{
    char *colon = strchr(h->line, ':');
    if (!colon || colon == h->line || ++h->headers > BH_HTTP_HEADERS_MAX)
        return wrong(err, "a header that is none, or too many");
    *colon = '\0';
    char *value = colon + 1, *end = value + strlen(value);
    while (bh_is_space(*value))
        value++;
    while (end > value && bh_is_space(end[-1]))
        *--end = '\0';
    if (bh_str_eq_nocase(h->line, "content-length"))
        return set_length(h, value, err);
    if (bh_str_eq_nocase(h->line, "transfer-encoding")) {
        if (!bh_str_eq_nocase(value, "chunked"))
            return wrong(err, "an encoding that is not known");
        h->chunked = true;
    } else if (bh_str_eq_nocase(h->line, "connection"))
        h->close |= bh_str_eq_nocase(value, "close");
    else if (bh_str_eq_nocase(h->line, "content-type"))
        (void)snprintf(h->type, sizeof(h->type), "%.63s", value);
    else if (bh_str_eq_nocase(h->line, "bulkhead-next-offset")) {
        if (bh_uint_parse(value, INT64_MAX, &h->next_offset, NULL) < 0)
            return wrong(err, "an offset that is none");
    } else if (bh_str_eq_nocase(h->line, "bulkhead-dropped")) {
        if (bh_uint_parse(value, INT64_MAX, &h->dropped, NULL) < 0)
            return wrong(err, "a number of bytes that is none");
    } else if (bh_str_eq_nocase(h->line, "retry-after")) {
        if (bh_uint_parse(value, INT64_MAX, &h->retry_s, NULL) < 0)
            h->retry_s = 0; /* a date: as if nothing were said */
    } else if (bh_str_eq_nocase(h->line, "bulkhead-ended"))
        h->ended = bh_str_eq(value, "true");
    return 0;
}

/* The empty line behind the headers: how long is what follows? */
static int head_over(struct bh_http *h, struct bh_err *err)
{
    if (h->status < 200) { /* 100 Continue and its like: another head follows */
        bh_http_init(h);
        return 0;
    }
    if (h->chunked && h->has_length)
        return wrong(err, "two lengths");
    h->left = h->length;
    if (h->status == 204 || h->status == 304)
        h->part = BH_HTTP_DONE;
    else if (h->chunked)
        h->part = BH_HTTP_SIZE;
    else if (h->has_length)
        h->part = h->length ? BH_HTTP_BODY : BH_HTTP_DONE;
    else {
        h->part = BH_HTTP_TO_END;
        h->close = true;
    }
    return 0;
}

static int chunk_size(struct bh_http *h, struct bh_err *err)
{
    uint64_t n = 0;
    const char *at = h->line;
    for (; *at && *at != ';' && *at != ' '; at++) {
        const char c = bh_to_lower(*at);
        if ((!bh_is_digit(c) && (c < 'a' || c > 'f')) || n > UINT64_C(1) << 56)
            return wrong(err, "a chunk without a size");
        n = n << 4 | (uint64_t)(bh_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    if (at == h->line)
        return wrong(err, "a chunk without a size");
    h->left = n;
    h->part = n ? BH_HTTP_CHUNK : BH_HTTP_TRAILER;
    return 0;
}

static int line_over(struct bh_http *h, struct bh_err *err)
{
    if (h->n_line && h->line[h->n_line - 1] == '\r')
        h->n_line--;
    h->line[h->n_line] = '\0';
    if (strlen(h->line) != h->n_line)
        return wrong(err, "a NUL in its head");
    const bool empty = h->n_line == 0;
    h->n_line = 0;
    switch (h->part) {
    case BH_HTTP_STATUS:
        return status_line(h, err);
    case BH_HTTP_HEADERS:
        return empty ? head_over(h, err) : header(h, err);
    case BH_HTTP_SIZE:
        return chunk_size(h, err);
    case BH_HTTP_CRLF:
        h->part = BH_HTTP_SIZE;
        return empty ? 0 : wrong(err, "a chunk that is longer than it said");
    default: /* a trailer says nothing that is needed */
        if (empty)
            h->part = BH_HTTP_DONE;
        else if (++h->headers > BH_HTTP_HEADERS_MAX)
            return wrong(err, "too many trailers");
        return 0;
    }
}

/* ---- bytes ---- */

static int take_line(struct bh_http *h, const char *data, size_t n, size_t *used, struct bh_err *err)
{
    while (*used < n) {
        const char c = data[(*used)++];
        if (c == '\n')
            return line_over(h, err);
        if (h->n_line == sizeof(h->line) - 1)
            return wrong(err, "a line without end");
        h->line[h->n_line++] = c;
    }
    return 0;
}

static int take_body(struct bh_http *h, const char *data, size_t n, size_t *used, bh_http_body_fn fn,
                     void *ctx, struct bh_err *err)
{
    size_t take = n - *used;
    if (h->part != BH_HTTP_TO_END && take > h->left)
        take = (size_t)h->left;
    const int rc = take ? fn(ctx, data + *used, take, err) : 0;
    *used += take;
    if (h->part == BH_HTTP_TO_END)
        return rc;
    h->left -= take;
    if (h->left == 0)
        h->part = h->part == BH_HTTP_CHUNK ? BH_HTTP_CRLF : BH_HTTP_DONE;
    return rc;
}

int bh_http_feed(struct bh_http *h, const char *data, size_t n, size_t *ret_used, bh_http_body_fn fn,
                 void *ctx, struct bh_err *err)
{
    size_t used = 0;
    int rc = 0;
    while (rc == 0 && used < n && h->part != BH_HTTP_DONE) {
        if (h->part == BH_HTTP_BODY || h->part == BH_HTTP_TO_END || h->part == BH_HTTP_CHUNK)
            rc = take_body(h, data, n, &used, fn, ctx, err);
        else
            rc = take_line(h, data, n, &used, err);
    }
    *ret_used = used;
    return rc;
}

int bh_http_end(struct bh_http *h, struct bh_err *err)
{
    if (h->part == BH_HTTP_TO_END)
        h->part = BH_HTTP_DONE;
    return h->part == BH_HTTP_DONE ? 0 : wrong(err, "it ends in the middle");
}
