/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body_fuzz.c - every handler's body, and every query: the first byte says which, the rest is what was sent. What is
 * refused says why, in JSON that our own reader reads.
 */
#include "api/inside.h"

#include "base/json_read.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_problem(const struct bh_api_problem *p, int rc)
{
    struct bh_json_reader r;
    struct bh_buf out;
    assert(rc == BH_INVALID && p->err.code == BH_INVALID && p->err.msg[0]);
    bh_buf_init(&out, 1 << 16);
    bh_api_problem_json(&out, p);
    bh_json_read_init(&r, bh_buf_text(&out), out.n);
    assert(!out.full && bh_json_read_skip(&r) && bh_json_read_end(&r));
    bh_buf_fini(&out);
}

static void try_body(const struct bh_api_shape *shape, const char *text, size_t n)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_api_problem p = {0};
    void *in = bh_arena_alloc(&arena, shape->size);
    const int rc = bh_api_body_read(shape, text, n, &arena, in, &p);
    if (rc != 0)
        check_problem(&p, rc);
}

/* Lines `name=value`. */
static void try_query(const struct bh_api_shape *shape, const char *text, size_t n)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    char *copy = bh_arena_strn(&arena, text, n);
    void *in = bh_arena_alloc(&arena, shape->size);
    uint32_t seen = 0;
    for (char *at = copy, *end; at; at = end ? end + 1 : NULL) {
        struct bh_api_problem p = {0};
        if ((end = strchr(at, '\n')))
            *end = '\0';
        char *value = strchr(at, '=');
        if (!value)
            continue;
        *value++ = '\0';
        const int rc = bh_api_query_read(shape, at, value, &seen, &arena, in, &p);
        if (rc != 0)
            check_problem(&p, rc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    const struct bh_api_route *r = &bh_api_routes[data[0] % bh_api_route_count];
    if (r->body)
        try_body(r->body, (const char *)data + 1, n - 1);
    if (r->query)
        try_query(r->query, (const char *)data + 1, n - 1);
    return 0;
}
