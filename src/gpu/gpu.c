/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "base/str.h"
#include "base/sysfile.h"

#include <stdarg.h>
#include <stdio.h>

/* Where simgpu/tree.c marks the files of a simulated machine. */
#define MARK "/.bulkhead-simulated"

/* The devices from the n-th on go. */
static void drop_devices(struct bh_gpu_snapshot *s, size_t n)
{
    for (; s->devices.n > n; s->devices.n--) {
        struct bh_gpu_device *d = &s->devices.at[s->devices.n - 1];
        bh_vec_fini(&d->instances);
        bh_vec_fini(&d->processes);
        bh_vec_fini(&d->up);
    }
}

void bh_gpu_snapshot_fini(struct bh_gpu_snapshot *s)
{
    drop_devices(s, 0);
    bh_vec_fini(&s->devices);
    bh_vec_fini(&s->paths);
    bh_vec_fini(&s->switches);
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

bool bh_gpu_expects_simulated(void)
{
    const char *node = secure_getenv("BULKHEAD_SIM");
    return (node && *node) || (*bh_sysroot() && bh_sysfile_exists(MARK));
}

int bh_gpu_fail_simulated(int rc, struct bh_err *err)
{
    if (!err || bh_str_starts(err->msg, BH_GPU_SIMULATED))
        return rc;
    struct bh_err plain = *err;
    return bh_fail(err, plain.code, BH_GPU_SIMULATED "%s", plain.msg);
}

int bh_gpu_read_here(const struct bh_gpu_backend *b, struct bh_gpu_snapshot *ret, struct bh_err *err)
{
    const struct bh_reading unasked = {0, "no NVIDIA driver was asked"};
    struct bh_err why = {0};
    void *self;
    *ret = (struct bh_gpu_snapshot){
        .depth = (uint8_t)b->depth, .cc_environment = unasked, .cc_feature = unasked, .cc_devtools = unasked};
    int rc = b->open(&self, &why);
    if (rc == BH_OK) {
        rc = b->snapshot(self, ret, &why);
        b->close(self);
    }
    if (rc == BH_OK)
        return BH_OK;
    bh_gpu_snapshot_fini(ret);
    *ret = (struct bh_gpu_snapshot){.simulated = bh_str_starts(why.msg, BH_GPU_SIMULATED)};
    return bh_fail(err, why.code, "%s", why.msg);
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

/* What a maker added before it failed is not to be trusted; what it noted stays. */
static void drop_since(struct bh_gpu_snapshot *s, const struct bh_gpu_snapshot *before)
{
    drop_devices(s, before->devices.n);
    struct bh_gpu_snapshot now = *s;
    *s = *before;
    s->arena = now.arena;
    s->devices = now.devices;
    s->paths = now.paths;
    s->paths.n = before->paths.n;
    s->notes = now.notes;
}

/* A maker that fails is a note where another can be read, and the failure where none can. */
static int take_machine(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    struct machine *m = self;
    struct bh_err first = {0};
    bool any = false;
    for (size_t i = 0; i < N_MAKERS; i++) {
        const struct bh_gpu_snapshot before = *s;
        struct bh_err why = m->why[i];
        bool is_open = why.code == BH_OK;
        if (is_open && makers[i]->snapshot(m->self[i], s, &why) == BH_OK) {
            any = true;
            continue;
        }
        drop_since(s, &before);
        if (is_open || why.code != BH_NOT_FOUND)
            bh_gpu_note(s, "%s", why.msg);
        /* that one is not there at all says least */
        if (first.code == BH_OK || (first.code == BH_NOT_FOUND && why.code != BH_NOT_FOUND))
            first = why;
    }
    return any ? BH_OK : bh_fail(err, first.code, "%s", first.msg);
}

const struct bh_gpu_backend bh_gpu_machine = {open_machine, take_machine, close_machine, BH_GPU_ALL},
                            bh_gpu_machine_fleet = {open_machine, take_machine, close_machine, BH_GPU_FLEET},
                            bh_gpu_machine_state = {open_machine, take_machine, close_machine, BH_GPU_STATE},
                            bh_gpu_machine_users = {open_machine, take_machine, close_machine, BH_GPU_USERS};
