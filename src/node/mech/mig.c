/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.c - instances of MIG: cut where the scheduler said, kept for the next one, cut anew where another shape is needed.
 *
 * The store's rows say what is to be there. A place is granted to one lease, so whatever stands in it that is not the wanted
 * instance is nobody's, and may go; the driver refuses to take away one that is in use. Nothing beside the place is touched, so
 * that leases of one card can be set up at the same time while others work.
 */
#include "node/mech/inside.h"

#include "base/str.h"
#include "base/units.h"
#include "gpu/mig.h"
#include "node/life.h"
#include "node/note.h"

#include <stdio.h>
#include <string.h>

enum {
    PATIENCE_MS = 5000
}; /* our own looks at a card, and those of leases that are set up beside this one, are shorter */
static const char prefix[] = "mig:";

/* ---- names ---- */

/* `mig:3g.71gb@4` */
static bool split(const char *key, char profile[32], uint8_t *ret_start)
{
    const char *at = strrchr(key, '@');
    uint64_t start;
    if (!bh_str_starts(key, prefix) || !at || (size_t)(at - key) >= sizeof(prefix) - 1 + 32 ||
        bh_uint_parse(at + 1, UINT8_MAX, &start, NULL) < 0)
        return false;
    const size_t n = (size_t)(at - key) - (sizeof(prefix) - 1);
    (void)snprintf(profile, 32, "%.*s", (int)n, key + sizeof(prefix) - 1);
    *ret_start = (uint8_t)start;
    return true;
}

bool bh_mech_start_of(const char *key, uint8_t *ret_start)
{
    char profile[32];
    return split(key, profile, ret_start);
}

int bh_mech_cut_of(const struct bh_daemon *d, const struct bh_slice_name *name, struct bh_mech_cut *ret,
                   struct bh_err *err)
{
    const struct bh_gpu_device *gpu = bh_silicon_device(&d->silicon, name->gpu);
    char word[32];
    uint8_t start = 0;
    const struct bh_mig_profile *p =
        gpu && gpu->model && split(name->key, word, &start) ? bh_mig_find(gpu->model, word) : NULL;
    if (!p)
        return bh_fail(err, BH_NOT_FOUND,
                       "%s of %s: this machine has no such GPU, or the GPU no such profile", name->key,
                       name->gpu);
    *ret = (struct bh_mech_cut){.profile_id = p->gi_profile_id, .start = start, .size = p->placement_size};
    (void)snprintf(ret->gpu, sizeof(ret->gpu), "%s", name->gpu);
    (void)snprintf(ret->key, sizeof(ret->key), "%s", name->key);
    return BH_OK;
}

static bool overlap(uint32_t a, uint32_t a_size, uint32_t b, uint32_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* ---- which there are ---- */

static struct bh_made_cut *known(struct bh_daemon *d, const char *gpu, const char *key)
{
    for (size_t i = 0; i < d->cuts.n; i++)
        if (bh_str_eq(d->cuts.at[i].gpu, gpu) && bh_str_eq(d->cuts.at[i].key, key))
            return &d->cuts.at[i];
    return NULL;
}

static void forget(struct bh_daemon *d, const char *gpu, const char *key)
{
    struct bh_made_cut *at = known(d, gpu, key);
    if (at)
        *at = d->cuts.at[--d->cuts.n];
}

/* ---- rows ---- */

/* What is free and stands in the way is cut no more. What is not free is refused by the grant that follows. */
static int clear_rows(struct bh_daemon *d, const struct bh_mech_cut *c, struct bh_arena *arena,
                      bool *ret_there, struct bh_err *err)
{
    bh_store_slices rows = {0};
    int rc = bh_store_slices_list(d->store, arena, c->gpu, 0, &rows, err);
    *ret_there = false;
    for (size_t i = 0; rc == BH_OK && i < rows.n; i++) {
        const struct bh_store_slice *s = &rows.at[i];
        struct bh_mech_cut other;
        if (s->name.kind != BH_SLICE_MIG)
            continue;
        if (bh_str_eq(s->name.key, c->key)) {
            *ret_there = true;
            continue;
        }
        rc = bh_mech_cut_of(d, &s->name, &other, err);
        if (rc < 0 || !overlap(c->start, c->size, other.start, other.size))
            continue;
        rc = bh_store_slice_remove(d->store, c->gpu, s->name.key, err);
        if (rc == BH_OK)
            rc = bh_note_mig(d, BH_AUDIT_MIG_DESTROY, c->gpu, s->name.key,
                             "another shape is needed in its place", err);
        forget(d, c->gpu, s->name.key);
    }
    bh_vec_fini(&rows);
    return rc;
}

/* The worker that cuts it switches MIG on where it is off. */
static int note_new(struct bh_daemon *d, const struct bh_slice_name *name, struct bh_err *err)
{
    const struct bh_gpu_device *gpu = bh_silicon_device(&d->silicon, name->gpu);
    bool known_on = gpu && !gpu->mig_mode.why && gpu->mig_mode.v;
    for (size_t i = 0; !known_on && i < d->cuts.n; i++)
        known_on = bh_str_eq(d->cuts.at[i].gpu, name->gpu);
    const int rc = known_on
                       ? BH_OK
                       : bh_note_mig(d, BH_AUDIT_MIG_MODE, name->gpu, "on", "an instance is to be cut", err);
    return rc == BH_OK ? bh_note_mig(d, BH_AUDIT_MIG_CREATE, name->gpu, name->key, "for a lease", err) : rc;
}

int bh_mech_name(struct bh_daemon *d, const struct bh_admit_slice *slice, struct bh_arena *arena,
                 struct bh_slice_name *ret, struct bh_err *err)
{
    struct bh_slice_text key;
    struct bh_mech_cut cut;
    bool there;
    *ret = (struct bh_slice_name){.gpu = bh_silicon_uuid(&d->silicon, slice->gpu),
                                  .kind = (enum bh_slice_kind)slice->kind,
                                  .key = "",
                                  .base = ""};
    if (slice->kind != BH_SLICE_MIG)
        return BH_OK;
    ret->key = bh_arena_str(arena, bh_admit_slice_key(slice, &key));
    int rc = bh_mech_cut_of(d, ret, &cut, err);
    if (rc == BH_OK)
        rc = clear_rows(d, &cut, arena, &there, err);
    if (rc == BH_OK && !there)
        rc = bh_store_slice_add(d->store, ret->gpu, ret->key, slice->milli, slice->mib, "", bh_daemon_now(d),
                                err);
    if (rc == BH_OK && !there)
        rc = note_new(d, ret, err);
    return rc;
}

/* ---- the card, in a worker ---- */

static int remove_part(struct bh_gpu_mig *m, const struct bh_gpu_mig_part *p, struct bh_err *err)
{
    int rc = BH_OK;
    for (uint32_t i = 0; rc == BH_OK && i < p->n_cis; i++)
        rc = bh_gpu_mig_destroy_ci(m, p->gi, p->cis[i].id, err);
    return rc == BH_OK ? bh_gpu_mig_destroy_gi(m, p->gi, err) : rc;
}

/* One that was made and not finished has no compute instance yet. */
static int make_part(struct bh_gpu_mig *m, const struct bh_mech_cut *c, struct bh_err *err)
{
    struct bh_gpu_mig_layout now;
    const struct bh_gpu_mig_part *mine = NULL;
    const struct bh_gpu_mig_want want = {.profile_id = c->profile_id, .start = c->start};
    uint32_t gi = 0, ci;
    int rc = bh_gpu_mig_read(m, &now, err);
    for (size_t i = 0; rc == BH_OK && i < now.n; i++) {
        const struct bh_gpu_mig_part *p = &now.at[i];
        if (!overlap(p->start, p->size, c->start, c->size))
            continue;
        if (p->profile_id == c->profile_id && p->start == c->start)
            mine = p;
        else
            rc = remove_part(m, p, err);
    }
    if (rc == BH_OK && mine)
        gi = mine->gi;
    else if (rc == BH_OK)
        rc = bh_gpu_mig_create_gi(m, want, &gi, err);
    if (rc == BH_OK && !(mine && mine->n_cis))
        rc = bh_gpu_mig_create_ci(m, gi, &ci, err);
    return rc;
}

static int cut(const struct bh_mech_cut *c, struct bh_err *err)
{
    struct bh_gpu_mig_right right = {.holder = "bulkheadd"};
    struct bh_gpu_mig *m;
    (void)snprintf(right.uuid, sizeof(right.uuid), "%s", c->gpu);
    int rc = bh_gpu_mig_open(&m, c->gpu, &right, err);
    if (rc < 0)
        return rc;
    rc = bh_gpu_mig_turn_on(m, PATIENCE_MS, err);
    if (rc == BH_OK)
        rc = make_part(m, c, err);
    bh_gpu_mig_close(m);
    return rc;
}

/* The instance in a snapshot; NULL: it is not there, or no device. */
static const struct bh_gpu_instance *find(const struct bh_gpu_snapshot *s, const struct bh_mech_cut *c)
{
    for (size_t i = 0; i < s->devices.n; i++) {
        const struct bh_gpu_device *g = &s->devices.at[i];
        for (size_t k = 0; g->uuid && bh_str_eq(g->uuid, c->gpu) && k < g->instances.n; k++) {
            const struct bh_gpu_instance *x = &g->instances.at[k];
            if (x->uuid && !x->start.why && !x->gi_profile_id.why && x->start.v == c->start &&
                x->gi_profile_id.v == c->profile_id)
                return x;
        }
    }
    return NULL;
}

static struct bh_mech_device device_of(const struct bh_gpu_instance *x)
{
    struct bh_mech_device ret = {.gi_cap = x->gi_cap.why ? BH_NO_ID : (uint32_t)x->gi_cap.v,
                                 .ci_cap = x->ci_cap.why ? BH_NO_ID : (uint32_t)x->ci_cap.v};
    (void)snprintf(ret.uuid, sizeof(ret.uuid), "%s", x->uuid);
    return ret;
}

int bh_mech_cut_here(const struct bh_mech_cut *c, struct bh_mech_device *ret, struct bh_err *err)
{
    struct bh_gpu_snapshot now;
    int rc = cut(c, err);
    if (rc == BH_OK)
        rc = bh_gpu_read_here(&bh_gpu_nvml, &now, err);
    if (rc < 0)
        return rc;
    const struct bh_gpu_instance *x = find(&now, c);
    if (x)
        *ret = device_of(x);
    else
        rc = bh_fail(err, BH_SYSTEM, "%s was cut on %s, and the driver does not name it", c->key, c->gpu);
    bh_gpu_snapshot_fini(&now);
    return rc;
}

static void take(struct bh_daemon *d, const struct bh_mech_cut *c, const struct bh_mech_device *device)
{
    struct bh_made_cut *at = known(d, c->gpu, c->key);
    if (!at)
        at = bh_vec_push(&d->cuts);
    *at = (struct bh_made_cut){.gi_cap = device->gi_cap, .ci_cap = device->ci_cap};
    (void)snprintf(at->gpu, sizeof(at->gpu), "%s", c->gpu);
    (void)snprintf(at->key, sizeof(at->key), "%s", c->key);
    (void)snprintf(at->uuid, sizeof(at->uuid), "%s", device->uuid);
    d->look_deep = true; /* whoever makes trouble there is known by its instance */
}

void bh_mech_look(struct bh_daemon *d)
{
    for (size_t i = d->cuts.n; d->silicon.has_now && i-- > 0;) {
        const struct bh_slice_name name = {.gpu = d->cuts.at[i].gpu, .key = d->cuts.at[i].key};
        struct bh_mech_cut c;
        struct bh_err err;
        const struct bh_gpu_instance *x =
            bh_mech_cut_of(d, &name, &c, &err) == BH_OK ? find(&d->silicon.now, &c) : NULL;
        if (x && bh_str_eq(x->uuid, d->cuts.at[i].uuid))
            continue;
        bh_daemon_say(d, "%s of %s is not there any more, and nobody asked for that", name.key, name.gpu);
        d->cuts.at[i] = d->cuts.at[--d->cuts.n];
    }
}

/* ---- at the start ---- */

static void restore_work(const void *arg, struct bh_worker_result *ret)
{
    struct bh_err err = {0};
    ret->code = cut(arg, &err);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
}

/* Waited for: nobody is served yet. */
static void restore_one(struct bh_daemon *d, const struct bh_mech_cut *c, const struct bh_gpu_snapshot *now)
{
    struct bh_worker_result result = {0};
    struct bh_worker worker;
    struct bh_err err;
    if (find(now, c))
        return;
    if (bh_worker_start(restore_work, c, &worker, &err) < 0) {
        bh_daemon_say(d, "%s of %s: %s", c->key, c->gpu, err.msg);
        return;
    }
    bh_worker_wait(&worker, &result);
    if (result.code == BH_OK) {
        int rc = bh_life_begin(d, &err);
        if (rc == BH_OK)
            rc = bh_life_end(
                d, bh_note_mig(d, BH_AUDIT_MIG_CREATE, c->gpu, c->key, "it was gone and is cut again", &err),
                &err);
        if (rc < 0)
            bh_daemon_say(d, "that %s was cut again could not be recorded: %s", c->key, err.msg);
    }
    bh_daemon_say(
        d, result.code < 0 ? "%s of %s is gone and cannot be cut again: %s" : "%s of %s was cut again%s",
        c->key, c->gpu, result.code < 0 ? result.text : "");
}

static void learn(struct bh_daemon *d, const bh_store_slices *rows)
{
    struct bh_gpu_snapshot now;
    struct bh_err err;
    if (bh_gpu_read(&bh_gpu_machine, &now, &err) < 0) {
        bh_daemon_say(d, "instances of MIG are not known: %s", err.msg);
        return;
    }
    for (size_t i = 0; i < rows->n; i++) {
        struct bh_mech_cut c;
        const struct bh_gpu_instance *x =
            rows->at[i].name.kind == BH_SLICE_MIG && bh_mech_cut_of(d, &rows->at[i].name, &c, &err) == BH_OK
                ? find(&now, &c)
                : NULL;
        const struct bh_mech_device device = x ? device_of(x) : (struct bh_mech_device){0};
        if (x)
            take(d, &c, &device);
    }
    bh_gpu_snapshot_fini(&now);
}

void bh_mech_mig_restore(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    bh_store_slices rows = {0};
    struct bh_err err;
    size_t n = 0;
    int rc = bh_store_slices_list(d->store, &arena, NULL, 0, &rows, &err);
    if (rc < 0)
        bh_daemon_say(d, "instances of MIG are not known: %s", err.msg);
    for (size_t i = 0; rc == BH_OK && i < rows.n; i++) {
        struct bh_mech_cut c;
        if (rows.at[i].name.kind != BH_SLICE_MIG)
            continue;
        n++;
        if (bh_mech_cut_of(d, &rows.at[i].name, &c, &err) < 0)
            bh_daemon_say(d, "%s", err.msg);
        else
            restore_one(d, &c, &d->silicon.snapshot);
    }
    if (rc == BH_OK && n)
        learn(d, &rows);
    bh_vec_fini(&rows);
    bh_arena_fini(&arena);
}

/* ---- steps ---- */

int bh_mech_mig_next(struct bh_daemon *d, const bh_store_grants *grants, struct bh_mech_cut *ret,
                     struct bh_err *err)
{
    for (size_t i = 0; i < grants->n; i++)
        if (grants->at[i].slice.kind == BH_SLICE_MIG &&
            !known(d, grants->at[i].slice.gpu, grants->at[i].slice.key))
            return bh_mech_cut_of(d, &grants->at[i].slice, ret, err);
    return bh_fail(err, BH_NOT_FOUND, "every instance is cut");
}

/* `MIG-... 12 13`: its name, and the minors of its two capability nodes. */
void bh_mech_mig_work(const struct bh_mech_cut *c, struct bh_worker_result *ret)
{
    struct bh_mech_device device;
    struct bh_err err = {0};
    ret->code = bh_mech_cut_here(c, &device, &err);
    if (ret->code < 0)
        (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
    else
        (void)snprintf(ret->text, sizeof(ret->text), "%s %u %u", device.uuid, device.gi_cap, device.ci_cap);
}

int bh_mech_mig_made(struct bh_daemon *d, const struct bh_mech_cut *c, const char *said, struct bh_err *err)
{
    struct bh_mech_device device = {0};
    char gi[16] = "", ci[16] = "";
    uint64_t gi_cap, ci_cap;
    const size_t n = strcspn(said, " "), m = said[n] ? strcspn(said + n + 1, " ") : 0;
    (void)snprintf(device.uuid, sizeof(device.uuid), "%.*s", (int)n, said);
    (void)snprintf(gi, sizeof(gi), "%.*s", (int)m, said[n] ? said + n + 1 : "");
    if (said[n] && said[n + 1 + m])
        (void)snprintf(ci, sizeof(ci), "%s", said + n + 2 + m);
    if (n >= sizeof(device.uuid) || bh_uint_parse(gi, UINT32_MAX, &gi_cap, err) < 0 ||
        bh_uint_parse(ci, UINT32_MAX, &ci_cap, err) < 0)
        return bh_fail(err, BH_SYSTEM, "the one who cut %s said nothing that can be read", c->key);
    device.gi_cap = (uint32_t)gi_cap;
    device.ci_cap = (uint32_t)ci_cap;
    take(d, c, &device);
    bh_silicon_is_cut(&d->silicon, c->gpu);
    return BH_OK;
}

int bh_mech_mig_gift(struct bh_daemon *d, const struct bh_slice_name *name, struct bh_mech_gift *gift,
                     const char **ret_name, struct bh_err *err)
{
    const struct bh_made_cut *at = known(d, name->gpu, name->key);
    if (!at)
        return bh_fail(err, BH_NOT_FOUND, "%s of %s is not cut", name->key, name->gpu);
    const uint32_t caps[] = {at->gi_cap, at->ci_cap};
    for (size_t i = 0; i < BH_COUNT_OF(caps); i++)
        if (caps[i] != BH_NO_ID && gift->n_caps < BH_COUNT_OF(gift->caps))
            gift->caps[gift->n_caps++] = caps[i];
    *ret_name = at->uuid;
    return BH_OK;
}
