/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

void bh_gpu_snapshot_fini(struct bh_gpu_snapshot *s)
{
    for (size_t i = 0; i < s->devices.n; i++) {
        bh_vec_fini(&s->devices.at[i].instances);
        bh_vec_fini(&s->devices.at[i].processes);
        bh_vec_fini(&s->devices.at[i].up);
    }
    bh_vec_fini(&s->devices);
    bh_vec_fini(&s->paths);
    bh_vec_fini(&s->notes);
    bh_arena_fini(&s->arena);
}

void bh_gpu_note(struct bh_gpu_snapshot *s, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < s->notes.n; i++)
        if (bh_str_eq(s->notes.at[i], text))
            return;
    *bh_vec_push(&s->notes) = bh_arena_str(&s->arena, text);
}

int bh_gpu_read(const struct bh_gpu_backend *b, struct bh_gpu_snapshot *ret, struct bh_err *err)
{
    void *self;
    *ret = (struct bh_gpu_snapshot){0};
    int rc = b->open(&self, err);
    if (rc < 0)
        return rc;
    rc = b->snapshot(self, ret, err);
    b->close(self);
    if (rc < 0) {
        bh_gpu_snapshot_fini(ret);
        *ret = (struct bh_gpu_snapshot){0};
    }
    return rc;
}
