/* SPDX-License-Identifier: Apache-2.0 */
/* sse.c - fields and empty lines of an event stream. What is longer than any event of ours is left out. */
#include "client/sse.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static void field(struct bh_sse *s)
{
    char *colon = strchr(s->line, ':'), *value;
    if (colon == s->line)
        return; /* a comment: the sign of life */
    value = colon ? colon + 1 : s->line + s->n_line;
    if (colon)
        *colon = '\0';
    if (*value == ' ')
        value++;
    if (bh_str_eq(s->line, "id"))
        (void)snprintf(s->id, sizeof(s->id), "%.63s", value);
    else if (bh_str_eq(s->line, "event"))
        (void)snprintf(s->kind, sizeof(s->kind), "%.31s", value);
    else if (bh_str_eq(s->line, "data")) {
        const size_t n = strlen(value), room = sizeof(s->data) - 1 - s->n_data;
        if (s->has_data && room)
            s->data[s->n_data++] = '\n';
        const size_t take = n < sizeof(s->data) - 1 - s->n_data ? n : sizeof(s->data) - 1 - s->n_data;
        memcpy(s->data + s->n_data, value, take);
        s->n_data += take;
        s->data[s->n_data] = '\0';
        s->has_data = true;
    }
}

/* An empty line: the event is complete. One without data is none. */
static bool dispatch(struct bh_sse *s, bh_client_event_fn fn, void *ctx)
{
    const struct bh_client_event e = {.id = s->id, .kind = s->kind[0] ? s->kind : "message", .data = s->data};
    const bool on = !s->has_data || fn(ctx, &e);
    s->kind[0] = s->data[0] = '\0';
    s->n_data = 0;
    s->has_data = false;
    return on;
}

bool bh_sse_feed(struct bh_sse *s, const char *data, size_t n, bh_client_event_fn fn, void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] != '\n') {
            if (s->n_line < sizeof(s->line) - 1 && data[i])
                s->line[s->n_line++] = data[i];
            else
                s->too_long = true;
            continue;
        }
        if (s->n_line && s->line[s->n_line - 1] == '\r')
            s->n_line--;
        s->line[s->n_line] = '\0';
        const bool empty = s->n_line == 0 && !s->too_long;
        if (!empty && !s->too_long)
            field(s);
        s->n_line = 0;
        s->too_long = false;
        if (empty && !dispatch(s, fn, ctx))
            return false;
    }
    return true;
}
