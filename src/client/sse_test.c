/* SPDX-License-Identifier: Apache-2.0 */
/* sse_test.c - events out of bytes, whatever the pieces. */
#include "client/sse.h"

#include "base/mem.h"
#include "base/test.h"

struct heard {
    char text[512];
    unsigned left; /* events that are wanted */
};

static bool on_event(void *ctx, const struct bh_client_event *e)
{
    struct heard *h = ctx;
    const size_t n = strlen(h->text);
    (void)snprintf(h->text + n, sizeof(h->text) - n, "[%s|%s|%s]", e->id, e->kind, e->data);
    return --h->left > 0;
}

static const char *hear(const char *text, size_t piece, unsigned wanted)
{
    static struct heard h;
    BH_AUTOFREE struct bh_sse *s = bh_alloc(1, sizeof(*s));
    const size_t n = strlen(text);
    h = (struct heard){.left = wanted};
    for (size_t at = 0; at < n; at += piece)
        if (!bh_sse_feed(s, text + at, n - at < piece ? n - at : piece, on_event, &h))
            break;
    return h.text;
}

TEST(events)
{
    static const char text[] =
        ":\n\nid: 7-1\nevent: job\ndata: {\"id\": \"J1\"}\n\n:beat\n\ndata:x\r\ndata: y\r\n\r\n"
        "event: nothing\n\nunknown: field\ndata\n\nid: 7-3\ndata: last\n";
    for (size_t piece = 1; piece < 40; piece++) {
        CHECK_STR(hear(text, piece, 9), "[7-1|job|{\"id\": \"J1\"}][7-1|message|x\ny][7-1|message|]");
        CHECK_STR(hear(text, piece, 1), "[7-1|job|{\"id\": \"J1\"}]");
    }
}

TEST(what_is_too_long_is_left_out)
{
    struct heard h = {.left = 9};
    BH_AUTOFREE struct bh_sse *s = bh_alloc(1, sizeof(*s));
    static char longer[BH_CLIENT_LINE_MAX * 2];
    memset(longer, 'x', sizeof(longer));
    memcpy(longer, "data: ", 6);
    CHECK(bh_sse_feed(s, longer, sizeof(longer), on_event, &h));
    CHECK(bh_sse_feed(s, "\ndata: ok\n\n", 11, on_event, &h));
    CHECK_STR(h.text, "[|message|ok]");
}

TEST_MAIN
