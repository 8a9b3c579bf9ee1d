/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig_apply.c - from the layout that is to the one that is wanted, all of it or none of it.
 *
 * Everything that can be known beforehand is checked before the first change. What is then refused by the
 * driver is undone: what was made goes, what was there comes back at its place. Where even that fails, the
 * message says what stands there now, because somebody has to take over from it.
 */
#include "gpu/mig_nvml.h"

#include <inttypes.h>
#include <stdio.h>

enum { PLACES = 64 };

struct change {
    struct bh_gpu_mig *m;
    struct bh_gpu_mig_layout found;
    struct bh_gpu_mig_want want[BH_GPU_MIG_PARTS_MAX]; /* in the order of their places */
    size_t n_want;
    struct bh_gpu_mig_result *result;
};

static bool is_wanted(const struct change *c, const struct bh_gpu_mig_part *p)
{
    for (size_t i = 0; i < c->n_want; i++)
        if (c->want[i].profile_id == p->profile_id && c->want[i].start == p->start)
            return true;
    return false;
}

static const struct bh_gpu_mig_part *find_part(const struct bh_gpu_mig_layout *l, uint32_t profile_id,
                                               uint32_t start)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].profile_id == profile_id && l->at[i].start == start)
            return &l->at[i];
    return NULL;
}

/* ---- before anything is touched ---- */

static int size_at(const struct change *c, struct bh_gpu_mig_want w, uint32_t *ret, struct bh_err *err)
{
    struct nvml_placement places[PLACES] = {0};
    struct nvml_gi_profile_v2 p;
    unsigned n = PLACES;
    if (!bh_gpu_mig_profile(c->m, w.profile_id, &p))
        return bh_fail(err, BH_INVALID, "%s has no MIG profile %" PRIu32, c->m->uuid, w.profile_id);
    int status = BH_NVML_CALL(c->m->n, gi_places, c->m->gpu, w.profile_id, places, &n);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(c->m, status, err, "asking where profile %" PRIu32 " may stand", w.profile_id);
    for (unsigned i = 0; i < n && i < PLACES; i++)
        if (places[i].start == w.start && places[i].size) {
            *ret = places[i].size;
            return BH_OK;
        }
    return bh_fail(err, BH_INVALID, "profile %" PRIu32 " cannot start at slice %" PRIu32 " of %s",
                   w.profile_id, w.start, c->m->uuid);
}

/* Sorted by place; each must end before the next starts. */
static int check_want(struct change *c, const struct bh_gpu_mig_want *want, size_t n, struct bh_err *err)
{
    if (n > BH_GPU_MIG_PARTS_MAX)
        return bh_fail(err, BH_INVALID, "%zu MIG instances are wanted on %s; there are never more than %d", n,
                       c->m->uuid, BH_GPU_MIG_PARTS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t at = c->n_want++;
        for (; at > 0 && c->want[at - 1].start > want[i].start; at--)
            c->want[at] = c->want[at - 1];
        c->want[at] = want[i];
    }
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = 0;
        int rc = size_at(c, c->want[i], &size, err);
        if (rc < 0)
            return rc;
        if (i && c->want[i].start < end)
            return bh_fail(err, BH_INVALID,
                           "the wanted layout of %s has two instances on slice %" PRIu32 " (profiles %" PRIu32
                           " and %" PRIu32 ")",
                           c->m->uuid, c->want[i].start, c->want[i - 1].profile_id, c->want[i].profile_id);
        end = c->want[i].start + size;
    }
    return BH_OK;
}

static int check(struct change *c, const struct bh_gpu_mig_want *want, size_t n, struct bh_err *err)
{
    bool on;
    int rc = bh_gpu_mig_may(c->m, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_is_on(c->m, &on, err);
    if (rc == BH_OK && !on)
        rc = bh_fail(err, BH_CONFLICT, "MIG is off on %s; turn it on before cutting it", c->m->uuid);
    if (rc == BH_OK)
        rc = check_want(c, want, n, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_idle(c->m, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_read(c->m, &c->found, err);
    return rc;
}

/* ---- the change ---- */

static int remove_part(struct change *c, const struct bh_gpu_mig_part *p, struct bh_err *err)
{
    for (uint32_t i = 0; i < p->n_cis; i++) {
        int rc = bh_gpu_mig_destroy_ci(c->m, p->gi, p->cis[i].id, err);
        if (rc < 0)
            return rc;
    }
    return bh_gpu_mig_destroy_gi(c->m, p->gi, err);
}

static int make_part(struct change *c, struct bh_gpu_mig_want w, struct bh_err *err)
{
    uint32_t gi, ci;
    const struct bh_gpu_mig_part *there = find_part(&c->found, w.profile_id, w.start);
    if (there && there->n_cis) {
        c->result->n_kept++;
        return BH_OK;
    }
    /* a GPU instance without a compute instance was left by something that broke off: it is finished */
    if (there) {
        int rc = bh_gpu_mig_create_ci(c->m, there->gi, &ci, err);
        c->result->n_kept += rc == BH_OK;
        return rc;
    }
    int rc = bh_gpu_mig_create_gi(c->m, w, &gi, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_create_ci(c->m, gi, &ci, err);
    c->result->n_created += rc == BH_OK;
    return rc;
}

static int change(struct change *c, struct bh_err *err)
{
    for (size_t i = 0; i < c->found.n; i++) {
        if (is_wanted(c, &c->found.at[i]))
            continue;
        int rc = remove_part(c, &c->found.at[i], err);
        if (rc < 0)
            return rc;
        c->result->n_destroyed++;
    }
    for (size_t i = 0; i < c->n_want; i++) {
        int rc = make_part(c, c->want[i], err);
        if (rc < 0)
            return rc;
    }
    return BH_OK;
}

/* ---- the way back ---- */

/* What stands there and was not found goes, with compute instances that were not there. */
static int clear_new(struct change *c, struct bh_err *err)
{
    struct bh_gpu_mig_layout now;
    int rc = bh_gpu_mig_read(c->m, &now, err);
    for (size_t i = 0; rc == BH_OK && i < now.n; i++) {
        const struct bh_gpu_mig_part *was = find_part(&c->found, now.at[i].profile_id, now.at[i].start);
        if (!was)
            rc = remove_part(c, &now.at[i], err);
        for (uint32_t k = 0; rc == BH_OK && was && !was->n_cis && k < now.at[i].n_cis; k++)
            rc = bh_gpu_mig_destroy_ci(c->m, now.at[i].gi, now.at[i].cis[k].id, err);
    }
    return rc;
}

static int restore_part(struct change *c, const struct bh_gpu_mig_part *was,
                        const struct bh_gpu_mig_part *now, struct bh_err *err)
{
    uint32_t gi = now ? now->gi : 0;
    int rc =
        now ? BH_OK
            : bh_gpu_mig_create_gi(c->m, (struct bh_gpu_mig_want){was->profile_id, was->start}, &gi, err);
    for (uint32_t i = 0; rc == BH_OK && i < was->n_cis; i++) {
        bool there = false;
        for (uint32_t k = 0; now && k < now->n_cis; k++)
            there |=
                now->cis[k].profile_id == was->cis[i].profile_id && now->cis[k].start == was->cis[i].start;
        if (!there)
            rc = bh_gpu_mig_restore_ci(c->m, gi, &was->cis[i], err);
    }
    return rc;
}

static int put_back(struct change *c, struct bh_err *err)
{
    struct bh_gpu_mig_layout now;
    int rc = clear_new(c, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_read(c->m, &now, err);
    for (size_t i = 0; rc == BH_OK && i < c->found.n; i++)
        rc = restore_part(c, &c->found.at[i],
                          find_part(&now, c->found.at[i].profile_id, c->found.at[i].start), err);
    return rc;
}

/* The first failure stays the message; what became of the GPU is added to it. */
static int fail_after(struct change *c, int rc, const struct bh_err *first, struct bh_err *err)
{
    struct bh_err second = {0};
    struct bh_gpu_mig_result *r = c->result;
    char now[200] = "";
    r->put_back = put_back(c, &second) == BH_OK;
    r->is_known = bh_gpu_mig_read(c->m, &r->now, NULL) == BH_OK;
    r->n_kept = r->n_destroyed = r->n_created = 0;
    if (r->is_known)
        bh_gpu_mig_words(&r->now, now, sizeof(now));
    if (r->put_back)
        return bh_fail(err, (enum bh_code)rc, "%s; the layout found was put back: %s", first->msg, now);
    return bh_fail(err, (enum bh_code)rc,
                   "%.160s; the layout found could not be put back (%.80s): there is now: %s", first->msg,
                   second.msg, r->is_known ? now : "what cannot be read");
}

int bh_gpu_mig_apply(struct bh_gpu_mig *m, const struct bh_gpu_mig_want *want, size_t n,
                     struct bh_gpu_mig_result *ret, struct bh_err *err)
{
    struct bh_gpu_mig_result result = {0};
    struct bh_err first = {0};
    struct change c = {.m = m, .result = ret ? ret : &result};
    *c.result = (struct bh_gpu_mig_result){0};
    int rc = check(&c, want, n, err);
    if (rc < 0) {
        c.result->is_known = bh_gpu_mig_read(m, &c.result->now, NULL) == BH_OK;
        return rc;
    }
    rc = change(&c, &first);
    if (rc < 0)
        return fail_after(&c, rc, &first, err);
    rc = bh_gpu_mig_read(m, &c.result->now, err);
    c.result->is_known = rc == BH_OK;
    return rc;
}
