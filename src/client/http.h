/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - reads an HTTP/1.1 answer, byte by byte as it comes: the head, then a body of a stated length, in chunks, or up to
 * the end. Pure: what it is fed, it judges; it never asks for more. Anything that is not clearly HTTP is an error.
 */
#ifndef BH_CLIENT_HTTP_H
#define BH_CLIENT_HTTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_HTTP_LINE_MAX = 8192, BH_HTTP_HEADERS_MAX = 64 };

enum bh_http_part {
    BH_HTTP_STATUS,
    BH_HTTP_HEADERS,
    BH_HTTP_BODY,    /* `left` bytes of it */
    BH_HTTP_TO_END,  /* all that comes */
    BH_HTTP_SIZE,    /* of the next chunk */
    BH_HTTP_CHUNK,   /* `left` bytes of it */
    BH_HTTP_CRLF,    /* behind a chunk */
    BH_HTTP_TRAILER, /* behind the last */
    BH_HTTP_DONE,
};

struct bh_http {
    enum bh_http_part part;
    int status;
    bool close; /* the connection ends with it */
    bool chunked, has_length;
    uint64_t length, left;
    uint32_t headers;
    char type[64];
    uint64_t next_offset; /* UINT64_MAX: not said */
    bool ended;
    uint64_t dropped;
    uint64_t retry_s; /* Retry-After; 0: not said */
    size_t n_line;
    char line[BH_HTTP_LINE_MAX];
};

/* Gets the body as it comes. Not 0: stop, and bh_http_feed() returns it. */
typedef int (*bh_http_body_fn)(void *ctx, const char *data, size_t n, struct bh_err *err);

void bh_http_init(struct bh_http *h);
/* Takes up to n bytes; *ret_used of them were of this answer. BH_INVALID: not HTTP. Done when h->part says so. */
int bh_http_feed(struct bh_http *h, const char *data, size_t n, size_t *ret_used, bh_http_body_fn fn,
                 void *ctx, struct bh_err *err) BH_MUST_USE;
/* The other side closed. BH_INVALID: in the middle of it. */
int bh_http_end(struct bh_http *h, struct bh_err *err) BH_MUST_USE;

#endif
