/* SPDX-License-Identifier: Apache-2.0 */
/* mech.c - the steps of a lease's setting up, whichever mechanism they are of. */
#include "base/units.h"
#include "node/mech/inside.h"

#include <stdio.h>

int bh_mech_next(struct bh_daemon *d, struct bh_life *run, struct bh_mech_step *ret, struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_grants grants = {0};
    *ret = (struct bh_mech_step){0};
    int rc = bh_store_lease_grants(d->store, &arena, run->lease, &grants, err);
    if (rc == BH_OK)
        rc = bh_mech_mig_next(d, &grants, &ret->cut, err);
    if (rc == BH_NOT_FOUND)
        rc = bh_mech_mps_next(d, run, &grants, &ret->server, err);
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
    return rc;
}

void bh_mech_work(const void *step, struct bh_worker_result *ret)
{
    const struct bh_mech_step *s = step;
    if (s->server.number)
        bh_mech_mps_work(&s->server, ret);
    else
        bh_mech_mig_work(&s->cut, ret);
}

int bh_mech_made(struct bh_daemon *d, struct bh_life *run, const struct bh_worker_result *result,
                 struct bh_err *err)
{
    struct bh_mech_step step;
    if (result->code < 0)
        return bh_fail(err, (enum bh_code)result->code, "%s", result->text);
    const int rc = bh_mech_next(d, run, &step, err);
    if (rc < 0)
        return rc == BH_NOT_FOUND ? BH_OK : rc; /* another lease's worker was as fast */
    return step.server.number ? bh_mech_mps_made(d, &step.server, err)
                              : bh_mech_mig_made(d, &step.cut, result->text, err);
}

int bh_mech_gift(struct bh_daemon *d, const struct bh_life *run, const bh_store_grants *grants,
                 struct bh_arena *arena, struct bh_mech_gift *ret, struct bh_err *err)
{
    int rc = BH_OK;
    *ret = (struct bh_mech_gift){.visible = ""};
    for (size_t i = 0; rc == BH_OK && i < grants->n; i++) {
        const struct bh_slice_name *name = &grants->at[i].slice;
        const char *device = name->gpu;
        if (name->kind == BH_SLICE_MIG)
            rc = bh_mech_mig_gift(d, name, ret, &device, err);
        ret->visible = bh_arena_printf(arena, "%s%s%s", ret->visible, *ret->visible ? "," : "", device);
    }
    return rc == BH_OK ? bh_mech_mps_gift(d, run, grants, arena, ret, err) : rc;
}

void bh_mech_restore(struct bh_daemon *d)
{
    bh_mech_mig_restore(d);
    bh_mech_mps_restore(d);
}

/* ---- words ---- */

static const char *layer(const struct bh_admit_layer *l, struct bh_arena *arena)
{
    const char *text = bh_word(mechanism, l->mechanism);
    if (l->profile)
        return bh_arena_printf(arena, "%s %s", text, l->profile->name);
    if (l->milli)
        text = bh_arena_printf(arena, "%s %u.%u %%", text, l->milli / 10, l->milli % 10);
    if (l->memory_bytes)
        text = bh_arena_printf(arena, "%s %llu MiB", text, (unsigned long long)(l->memory_bytes / BH_MIB));
    return text;
}

const char *bh_mech_stack(const struct bh_admit_grant *grant, struct bh_arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < grant->n_layers; i++)
        text = bh_arena_printf(arena, "%s%s%s", text, i ? " + " : "", layer(&grant->layers[i], arena));
    return text;
}
