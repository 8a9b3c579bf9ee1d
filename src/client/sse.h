/* SPDX-License-Identifier: Apache-2.0 */
/* sse.h - Server-Sent Events out of a stream of bytes: pure, fed piece by piece. */
#ifndef BH_CLIENT_SSE_H
#define BH_CLIENT_SSE_H

#include "client/client.h"

struct bh_sse {
    size_t n_line;
    bool too_long; /* the line is left out */
    char line[BH_CLIENT_LINE_MAX];
    char id[64], kind[32], data[BH_CLIENT_LINE_MAX];
    size_t n_data;
    bool has_data;
};

/* Calls fn for each event that is complete; false: fn wants no more. */
bool bh_sse_feed(struct bh_sse *s, const char *data, size_t n, bh_client_event_fn fn, void *ctx);

#endif
