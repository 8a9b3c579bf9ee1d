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
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < s->notes.n; i++)
        if (bh_str_eq(s->notes.at[i], text))
            return;
    *bh_vec_push(&s->notes) = bh_arena_str(&s->arena, text);
}

int bh_gpu_read_here(const struct bh_gpu_backend *b, struct bh_gpu_snapshot *ret, struct bh_err *err)
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

/* ---- the whole machine: each maker's backend, one after the other ---- */

static const struct bh_gpu_backend *const makers[] = {&bh_gpu_nvml, &bh_gpu_amd};
enum { N_MAKERS = BH_COUNT_OF(makers) };

struct machine {
    void *self[N_MAKERS];
    struct bh_err why[N_MAKERS]; /* code BH_OK: it was opened */
};

static void close_machine(void *self)
{
    struct machine *m = self;
    for (size_t i = 0; i < N_MAKERS; i++)
        if (m->why[i].code == BH_OK)
            makers[i]->close(m->self[i]);
    free(m);
}

/* A maker that is not there is nothing to speak of, as long as another is. */
static int open_machine(void **ret_self, struct bh_err *err)
{
    struct machine *m = bh_alloc(1, sizeof(*m));
    bool any = false;
    for (size_t i = 0; i < N_MAKERS; i++)
        any |= makers[i]->open(&m->self[i], &m->why[i]) == BH_OK;
    if (!any) {
        int rc = bh_fail(err, m->why[0].code, "%s", m->why[0].msg);
        free(m);
        return rc;
    }
    *ret_self = m;
    return BH_OK;
}

/* What a maker added before it failed is not to be trusted. */
static void drop_from(struct bh_gpu_snapshot *s, size_t n_devices, size_t n_paths)
{
    for (; s->devices.n > n_devices; s->devices.n--) {
        struct bh_gpu_device *d = &s->devices.at[s->devices.n - 1];
        bh_vec_fini(&d->instances);
        bh_vec_fini(&d->processes);
        bh_vec_fini(&d->up);
    }
    s->paths.n = n_paths;
}

/* A maker that fails is a note where another can be read, and the failure where none can. */
static int take_machine(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    struct machine *m = self;
    struct bh_err first = {0};
    bool any = false;
    for (size_t i = 0; i < N_MAKERS; i++) {
        size_t n_devices = s->devices.n, n_paths = s->paths.n;
        struct bh_err why = m->why[i];
        if (why.code == BH_OK && makers[i]->snapshot(m->self[i], s, &why) == BH_OK) {
            any = true;
            continue;
        }
        drop_from(s, n_devices, n_paths);
        if (why.code == BH_NOT_FOUND)
            continue;
        bh_gpu_note(s, "%s", why.msg);
        first = first.code == BH_OK ? why : first;
    }
    return any ? BH_OK : bh_fail(err, first.code, "%s", first.msg);
}

const struct bh_gpu_backend bh_gpu_machine = {open_machine, take_machine, close_machine};
