/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_fuzz.c - answers of any kind, whole and in pieces. The first byte says how large the pieces are: what comes of it
 * must not depend on that. The body is read as events too.
 */
#include "base/mem.h"
#include "client/http.h"
#include "client/sse.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
    struct bh_buf body;
    struct bh_sse sse;
    size_t events;
};

static bool on_event(void *ctx, const struct bh_client_event *e)
{
    struct seen *s = ctx;
    assert(strlen(e->id) < 64 && e->kind[0] && strlen(e->data) < BH_CLIENT_LINE_MAX);
    s->events++;
    return true;
}

static int on_body(void *ctx, const char *data, size_t n, struct bh_err *err)
{
    struct seen *s = ctx;
    (void)err;
    bh_buf_add(&s->body, data, n);
    return bh_sse_feed(&s->sse, data, n, on_event, s) ? 0 : 1;
}

static int run(const char *data, size_t n, size_t piece, struct bh_http *h, struct seen *s)
{
    size_t at = 0, used = 1;
    int rc = 0;
    bh_http_init(h);
    while (rc == 0 && at < n && used && h->part != BH_HTTP_DONE) {
        const size_t give = n - at < piece ? n - at : piece;
        rc = bh_http_feed(h, data + at, give, &used, on_body, s, NULL);
        assert(used <= give);
        at += used;
    }
    return rc == 0 && h->part != BH_HTTP_DONE ? bh_http_end(h, NULL) : rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    struct bh_http *h = bh_alloc(2, sizeof(*h));
    struct seen *s = bh_alloc(2, sizeof(*s));
    bh_buf_init(&s[0].body, 1 << 20);
    bh_buf_init(&s[1].body, 1 << 20);
    const int whole = run((const char *)data + 1, n - 1, n, &h[0], &s[0]);
    const int parts = run((const char *)data + 1, n - 1, (size_t)data[0] % 17 + 1, &h[1], &s[1]);
    assert(whole == parts && h[0].status == h[1].status && s[0].events == s[1].events);
    assert(s[0].body.n == s[1].body.n &&
           (!s[0].body.n || memcmp(s[0].body.at, s[1].body.at, s[0].body.n) == 0));
    assert(whole != 0 || (h[0].status >= 200 && h[0].part == BH_HTTP_DONE));
    bh_buf_fini(&s[0].body);
    bh_buf_fini(&s[1].body);
    free(s);
    free(h);
    return 0;
}
