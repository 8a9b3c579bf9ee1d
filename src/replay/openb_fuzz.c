/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a list of nodes, and a list of pods: reading them ends with a list or with a complaint that names a line,
 * and a list that was read can be written and read again as the same.
 */
#include "replay/openb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char some_node[] = "sn,cpu_milli,memory_mib,gpu,model\nn,64000,1000,8,G2\n";

typedef int (*read_fn)(struct bh_openb *o, const char *file, const char *text, size_t n, struct bh_err *err);
typedef void (*write_fn)(const struct bh_openb *o, struct bh_buf *out);

static void start(struct bh_openb *o, bool with_node)
{
    *o = (struct bh_openb){0};
    if (with_node && bh_openb_read_nodes(o, "n", some_node, sizeof(some_node) - 1, NULL) < 0)
        abort();
}

static void try(read_fn read, write_fn write, bool with_node, const char *text, size_t n)
{
    struct bh_openb a BH_AUTO(bh_openb_fini), b BH_AUTO(bh_openb_fini);
    struct bh_buf first BH_AUTO(bh_buf_fini), second BH_AUTO(bh_buf_fini);
    struct bh_err err = {0};
    start(&a, with_node);
    start(&b, with_node);
    bh_buf_init(&first, 64 << 20);
    bh_buf_init(&second, 64 << 20);
    const int rc = read(&a, "f.csv", text, n, &err);
    if (rc < 0) {
        if (rc != (int)err.code || strncmp(err.msg, "f.csv:", 6) != 0)
            abort();
        return;
    }
    write(&a, &first);
    if (read(&b, "again", bh_buf_text(&first), first.n, &err) < 0)
        abort();
    write(&b, &second);
    if (first.n != second.n || memcmp(bh_buf_text(&first), bh_buf_text(&second), first.n) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try(bh_openb_read_nodes, bh_openb_write_nodes, false, (const char *)data, size);
    try(bh_openb_read_pods, bh_openb_write_pods, true, (const char *)data, size);
    return 0;
}
