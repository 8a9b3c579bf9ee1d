/* SPDX-License-Identifier: Apache-2.0 */
/* http_test.c - answers that are right, wrong and cut short, whole and byte by byte. */
#include "client/http.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/test.h"

static int collect(void *ctx, const char *data, size_t n, struct bh_err *err)
{
    (void)err;
    bh_buf_add(ctx, data, n);
    return 0;
}

/* The body, or `!` and what is wrong. */
static const char *read_all(const char *text, size_t piece, struct bh_http *h)
{
    static char out[512];
    struct bh_err err = {0};
    struct bh_buf body;
    size_t at = 0, used;
    const size_t n = strlen(text);
    int rc = 0;
    bh_buf_init(&body, sizeof(out) - 1);
    bh_http_init(h);
    while (rc == 0 && at < n && h->part != BH_HTTP_DONE) {
        rc = bh_http_feed(h, text + at, n - at < piece ? n - at : piece, &used, collect, &body, &err);
        at += used;
    }
    if (rc == 0)
        rc = bh_http_end(h, &err);
    (void)snprintf(out, sizeof(out), "%s%s", rc < 0 ? "!" : "", rc < 0 ? err.msg : bh_buf_text(&body));
    bh_buf_fini(&body);
    return out;
}

#define OK "HTTP/1.1 200 OK\r\n"

TEST(bodies)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {OK "Content-Length: 5\r\n\r\nhello", "hello"},
        {OK "content-length:5 \r\n\r\nhello and more", "hello"},
        {"HTTP/1.1 200\nContent-Length: 2\n\nhi", "hi"},
        {OK "Content-Length: 0\r\n\r\n", ""},
        {OK "\r\nto the end", "to the end"},
        {"HTTP/1.0 200 OK\r\n\r\nold", "old"},
        {"HTTP/1.1 204 No Content\r\n\r\n", ""},
        {"HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", "x"},
        {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n", "hello!"},
        {OK "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", "0123456789"},
        {OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "hello"},
        {"nonsense\r\n\r\n", "!the answer is not HTTP: no status line"},
        {"HTTP/2 200\r\n\r\n", "!the answer is not HTTP: no status line"},
        {"HTTP/1.1 20\r\n\r\n", "!the answer is not HTTP: no status"},
        {"HTTP/1.1 099 x\r\n\r\n", "!the answer is not HTTP: no status"},
        {"HTTP/1.1 2000\r\n\r\n", "!the answer is not HTTP: no status"},
        {OK "no colon\r\n\r\n", "!the answer is not HTTP: a header that is none, or too many"},
        {OK "Content-Length: 5x\r\n\r\n", "!the answer is not HTTP: a length that is none"},
        {OK "Content-Length: 99999999999999999999\r\n\r\n", "!the answer is not HTTP: a length that is none"},
        {OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
         "!the answer is not HTTP: a length that is none"},
        {OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "!the answer is not HTTP: two lengths"},
        {OK "Transfer-Encoding: gzip\r\n\r\n", "!the answer is not HTTP: an encoding that is not known"},
        {OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "!the answer is not HTTP: a chunk without a size"},
        {OK "Transfer-Encoding: chunked\r\n\r\n\r\n", "!the answer is not HTTP: a chunk without a size"},
        {OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
         "!the answer is not HTTP: a chunk without a size"},
        {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n",
         "!the answer is not HTTP: a chunk that is longer than it said"},
        {"", "!the answer is not HTTP: it ends in the middle"},
        {OK "Content-Length: 5\r\n\r\nhell", "!the answer is not HTTP: it ends in the middle"},
        {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
         "!the answer is not HTTP: it ends in the middle"},
    };
    struct bh_http h;
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        for (size_t piece = 1; piece < 64; piece = piece * 3 + 1)
            CHECK_STR(read_all(cases[i].text, piece, &h), cases[i].want);
}

TEST(headers)
{
    struct bh_http h;
    CHECK_STR(
        read_all(
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: Close\r\n"
            "Bulkhead-Next-Offset: 17\r\nBulkhead-Dropped: 9\r\nBulkhead-Ended: true\r\nContent-Length: 0\r\n\r\n",
            5, &h),
        "");
    CHECK(h.status == 404 && h.close && h.next_offset == 17 && h.dropped == 9 && h.ended);
    CHECK_STR(h.type, "application/json");
    CHECK_STR(read_all(OK "Content-Length: 0\r\n\r\n", 5, &h), "");
    CHECK(!h.close && h.next_offset == UINT64_MAX && !h.dropped && !h.ended);
}

TEST(heads_have_an_end)
{
    struct bh_http h;
    struct bh_buf b;
    bh_buf_init(&b, 1 << 20);
    bh_buf_str(&b, OK "A: ");
    for (size_t i = 0; i < BH_HTTP_LINE_MAX; i++)
        bh_buf_str(&b, "x");
    CHECK_STR(read_all(bh_buf_text(&b), 1000, &h), "!the answer is not HTTP: a line without end");
    b.n = 0;
    bh_buf_str(&b, OK);
    for (size_t i = 0; i <= BH_HTTP_HEADERS_MAX; i++)
        bh_buf_str(&b, "A: b\r\n");
    CHECK_STR(read_all(bh_buf_text(&b), 1000, &h),
              "!the answer is not HTTP: a header that is none, or too many");
    bh_buf_fini(&b);
}

TEST_MAIN
