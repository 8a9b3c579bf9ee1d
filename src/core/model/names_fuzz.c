/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a pattern or is refused. What is handed out is within the maximum, is made
 * of name characters and is itself a pattern that means only itself; a refusal hands out
 * nothing and has a message.
 */
#include "base/str.h"
#include "core/model/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 300 };

static void must(bool e)
{
    if (!e)
        abort();
}

struct seen {
    size_t n;
    const char *last;
};

static void on_same(void *ctx, const char *name)
{
    struct seen *s = ctx;
    s->n++;
    must(strcmp(name, s->last) == 0);
}

static void on_node(void *ctx, const char *name)
{
    struct seen *s = ctx, one = {0, name};
    must(++s->n <= MAX && name[0]);
    for (const char *p = name; *p; p++)
        must(bh_is_alpha(*p) || bh_is_digit(*p) || *p == '-' || *p == '.' || *p == '_');
    must(bh_nodes_expand(name, 1, on_same, &one, NULL) == BH_OK && one.n == 1);
}

static void on_gpu(void *ctx, const char *node, uint32_t index)
{
    (void)index;
    on_node(ctx, node);
}

static void judge(int rc, const struct bh_err *err, const struct seen *s)
{
    if (rc == BH_OK)
        must(s->n > 0);
    else
        must((rc == BH_INVALID || rc == BH_TOO_LARGE) && err->code == rc && err->msg[0] && s->n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *pattern = bh_alloc(size + 1, 1);
    if (size)
        memcpy(pattern, data, size);
    struct bh_err err = {0};
    struct seen nodes = {0}, gpus = {0};
    int rc = bh_nodes_expand(pattern, MAX, on_node, &nodes, &err);
    judge(rc, &err, &nodes);
    int rc_gpus = bh_gpus_expand(pattern, MAX, on_gpu, &gpus, &err);
    judge(rc_gpus, &err, &gpus);
    must(rc || rc_gpus); /* a colon is in every GPU pattern and in no node pattern */
    free(pattern);
    return 0;
}
