/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig_apply.c - from the layout that is to the one that is wanted, all of it or none of it.
 *
 * Everything that can be known beforehand is checked before the first change. What is then refused by the
 * driver is undone: what this change made goes, and nothing else; what was there comes back at its place. Whether it
 * did is looked at. Where it did not, the message says what stands there now, because somebody has to take over
 * from it.
 */
#include "gpu/mig_nvml.h"

#include <inttypes.h>
#include <stdio.h>

struct change {
    struct bh_gpu_mig *m;
    struct bh_gpu_mig_layout found;
    struct bh_gpu_mig_want want[BH_GPU_MIG_PARTS_MAX]; /* in the order of their places */
    size_t n_want;
    uint32_t made[BH_GPU_MIG_PARTS_MAX]; /* GPU instances of ours */
    size_t n_made;
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
        struct nvml_placement place;
        struct nvml_gi_profile_v2 p;
        int rc = bh_gpu_mig_place(c->m, c->want[i], &place, &p, err);
        if (rc < 0)
            return rc;
        if (i && c->want[i].start < end)
            return bh_fail(err, BH_INVALID,
                           "the wanted layout of %s has two instances on slice %" PRIu32 " (profiles %" PRIu32
                           " and %" PRIu32 ")",
                           c->m->uuid, c->want[i].start, c->want[i - 1].profile_id, c->want[i].profile_id);
        end = place.start + place.size;
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

static int remove_cis(struct change *c, const struct bh_gpu_mig_part *p, struct bh_err *err)
{
    int rc = BH_OK;
    for (uint32_t i = 0; rc == BH_OK && i < p->n_cis; i++)
        rc = bh_gpu_mig_destroy_ci(c->m, p->gi, p->cis[i].id, err);
    return rc;
}

static int remove_part(struct change *c, const struct bh_gpu_mig_part *p, struct bh_err *err)
{
    int rc = remove_cis(c, p, err);
    return rc < 0 ? rc : bh_gpu_mig_destroy_gi(c->m, p->gi, err);
}

/* One compute instance over all of it. */
static bool is_whole(const struct bh_gpu_mig_part *p)
{
    return p->n_cis == 1 && p->cis[0].profile_id == p->whole_ci;
}

static int make_part(struct change *c, struct bh_gpu_mig_want w, struct bh_err *err)
{
    uint32_t gi, ci;
    const struct bh_gpu_mig_part *there = find_part(&c->found, w.profile_id, w.start);
    if (there) {
        /* one that was left without, or cut further, is finished as it is wanted */
        bool whole = is_whole(there);
        int rc = whole ? BH_OK : remove_cis(c, there, err);
        if (rc == BH_OK && !whole)
            rc = bh_gpu_mig_create_ci(c->m, there->gi, &ci, err);
        c->result->n_kept += rc == BH_OK;
        return rc;
    }
    int rc = bh_gpu_mig_create_gi(c->m, w, &gi, err);
    if (rc < 0)
        return rc;
    c->made[c->n_made++] = gi;
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

static bool is_made(const struct change *c, uint32_t gi)
{
    for (size_t i = 0; i < c->n_made; i++)
        if (c->made[i] == gi)
            return true;
    return false;
}

static bool has_ci(const struct bh_gpu_mig_part *p, const struct bh_gpu_mig_ci *ci)
{
    for (uint32_t i = 0; i < p->n_cis; i++)
        if (p->cis[i].profile_id == ci->profile_id && p->cis[i].start == ci->start &&
            p->cis[i].size == ci->size)
            return true;
    return false;
}

/* Our GPU instances go, and our compute instances in those that were there. */
static int clear_made(struct change *c, struct bh_err *err)
{
    struct bh_gpu_mig_layout now;
    int rc = bh_gpu_mig_read(c->m, &now, err);
    for (size_t i = 0; rc == BH_OK && i < now.n; i++) {
        const struct bh_gpu_mig_part *p = &now.at[i], *was = find_part(&c->found, p->profile_id, p->start);
        if (is_made(c, p->gi))
            rc = remove_part(c, p, err);
        else if (was && was->gi == p->gi && !is_whole(was))
            for (uint32_t k = 0; rc == BH_OK && k < p->n_cis; k++)
                if (!has_ci(was, &p->cis[k]))
                    rc = bh_gpu_mig_destroy_ci(c->m, p->gi, p->cis[k].id, err);
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
    for (uint32_t i = 0; rc == BH_OK && i < was->n_cis; i++)
        if (!now || !has_ci(now, &was->cis[i]))
            rc = bh_gpu_mig_restore_ci(c->m, gi, &was->cis[i], err);
    return rc;
}

static bool is_same(const struct bh_gpu_mig_layout *a, const struct bh_gpu_mig_layout *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        const struct bh_gpu_mig_part *p = &a->at[i], *q = find_part(b, p->profile_id, p->start);
        same = q && q->n_cis == p->n_cis;
        for (uint32_t k = 0; same && k < p->n_cis; k++)
            same = has_ci(q, &p->cis[k]);
    }
    return same;
}

static int put_back(struct change *c, struct bh_err *err)
{
    struct bh_gpu_mig_layout now;
    int rc = clear_made(c, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_read(c->m, &now, err);
    for (size_t i = 0; rc == BH_OK && i < c->found.n; i++)
        rc = restore_part(c, &c->found.at[i],
                          find_part(&now, c->found.at[i].profile_id, c->found.at[i].start), err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_read(c->m, &now, err);
    if (rc == BH_OK && !is_same(&now, &c->found))
        rc = bh_fail(err, BH_CONFLICT, "somebody else changes it too");
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
    return rc < 0 ? bh_wrap(err, rc, "the change was made, its result cannot be read") : BH_OK;
}
