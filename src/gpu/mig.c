/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/mig_nvml.h"

#include "base/str.h"
#include "gpu/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { GPUS_MAX = 256, HANDLES = 64, NAMED_PIDS = 8, TEXT = 256, ASKED = 96, NAP_MS = 50 };

/* ---- saying what went wrong ---- */

static const struct {
    int status, code;
    const char *words;
} meanings[] = {
    {NVML_IN_USE, BH_BUSY, "it is in use; stop what runs on it first"},
    {NVML_INSUFFICIENT_RESOURCES, BH_QUOTA, "the GPU has no room left for it"},
    {NVML_NO_PERMISSION, BH_DENIED, "not permitted; it takes root or the capability mig/config"},
    {NVML_NOT_SUPPORTED, BH_REFUSED, "this GPU cannot do that"},
    {NVML_INVALID_ARGUMENT, BH_INVALID, "the driver knows no such profile, place or instance on this GPU"},
    {NVML_NOT_FOUND, BH_NOT_FOUND, "there is no such instance"},
    {NVML_FUNCTION_NOT_FOUND, BH_REFUSED, "this driver is too old for it"},
    {NVML_ARGUMENT_VERSION, BH_REFUSED, "this driver is too old for it"},
    {NVML_RESET_REQUIRED, BH_CONFLICT, "the GPU needs a reset first"},
    {NVML_GPU_IS_LOST, BH_SYSTEM, "the GPU is lost; reset it or reboot the node"},
};

int bh_gpu_mig_fail(const struct bh_gpu_mig *m, int status, struct bh_err *err, const char *doing_fmt, ...)
{
    char doing[120];
    va_list ap;
    va_start(ap, doing_fmt);
    (void)vsnprintf(doing, sizeof(doing), doing_fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < BH_COUNT_OF(meanings); i++)
        if (meanings[i].status == status)
            return bh_fail(err, (enum bh_code)meanings[i].code, "%s on %s: %s", doing, m->uuid,
                           meanings[i].words);
    return bh_fail(err, BH_SYSTEM, "%s on %s: the driver answered with error %d", doing, m->uuid, status);
}

int bh_gpu_mig_may(const struct bh_gpu_mig *m, struct bh_err *err)
{
    if (m->may_change)
        return BH_OK;
    return bh_fail(err, BH_DENIED,
                   "the layout of %s is not ours to change: it was opened without a right from its owner",
                   m->uuid);
}

void bh_gpu_mig_words(const struct bh_gpu_mig_layout *l, char *buf, size_t size)
{
    size_t at = 0;
    (void)snprintf(buf, size, "none");
    for (size_t i = 0; i < l->n && at < size; i++) {
        const struct bh_gpu_mig_part *p = &l->at[i];
        char unnamed[32];
        (void)snprintf(unnamed, sizeof(unnamed), "profile %" PRIu32, p->profile_id);
        int n =
            snprintf(buf + at, size - at, "%s%s@%" PRIu32 "%s", i ? ", " : "",
                     *p->profile ? p->profile : unnamed, p->start, p->n_cis ? "" : " (no compute instance)");
        at += n > 0 ? (size_t)n : size;
    }
}

/* ---- opening ---- */

/* By going through them: a library that finds a GPU by its UUID may find one of its MIG devices as well. */
static int find_gpu(struct bh_gpu_mig *m, struct bh_err *err)
{
    unsigned count = 0;
    int status = BH_NVML_CALL(m->n, count, &count);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "counting the GPUs");
    for (unsigned i = 0; i < count && i < GPUS_MAX; i++) {
        char uuid[TEXT] = {0};
        nvml_device_t h = NULL;
        if (BH_NVML_CALL(m->n, handle, i, &h) == NVML_OK && h &&
            BH_NVML_CALL(m->n, uuid, h, uuid, ASKED) == NVML_OK && bh_str_eq(uuid, m->uuid)) {
            m->gpu = h;
            return BH_OK;
        }
    }
    return bh_fail(err, BH_NOT_FOUND, "no GPU of this machine is %s", m->uuid);
}

int bh_gpu_mig_open(struct bh_gpu_mig **ret, const char *uuid, const struct bh_gpu_mig_right *right,
                    struct bh_err *err)
{
    if (strlen(uuid) >= sizeof((*ret)->uuid))
        return bh_fail(err, BH_INVALID, "'%.40s...' is no GPU's UUID", uuid);
    if (right && (!bh_str_eq(right->uuid, uuid) || !right->holder || !*right->holder))
        return bh_fail(err, BH_INVALID, "the right that was shown is for '%.80s', not for %s", right->uuid,
                       uuid);
    struct bh_gpu_mig *m = bh_alloc(1, sizeof(*m));
    memcpy(m->uuid, uuid, strlen(uuid) + 1);
    m->may_change = right != NULL;
    int rc = bh_nvml_open(&m->n, err);
    if (rc == BH_OK)
        rc = find_gpu(m, err);
    if (rc == BH_OK)
        *ret = m;
    else
        bh_gpu_mig_close(m);
    return rc;
}

void bh_gpu_mig_close(struct bh_gpu_mig *m)
{
    if (m && m->n)
        bh_nvml_close(m->n);
    free(m);
}

/* ---- reading ---- */

static int mode_of(const struct bh_gpu_mig *m, bool *ret_now, bool *ret_pending, struct bh_err *err)
{
    unsigned now = 0, pending = 0;
    int status = BH_NVML_CALL(m->n, mig_mode, m->gpu, &now, &pending);
    if (status == NVML_NOT_SUPPORTED)
        return bh_fail(err, BH_REFUSED, "%s cannot be cut: the GPU has no MIG", m->uuid);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "asking for the MIG mode");
    *ret_now = now == 1;
    *ret_pending = pending == 1;
    return BH_OK;
}

int bh_gpu_mig_is_on(const struct bh_gpu_mig *m, bool *ret, struct bh_err *err)
{
    bool now = false, pending = false;
    int rc = mode_of(m, &now, &pending, err);
    if (rc < 0)
        return rc;
    if (now != pending)
        return bh_fail(err, BH_CONFLICT,
                       "MIG goes %s on %s at the next reset; until then its layout stays as it is",
                       pending ? "on" : "off", m->uuid);
    *ret = now;
    return BH_OK;
}

/*
 * The i-th profile of the GPU, or of a GPU instance. Those it lacks are refused one by one: has is then false. Any other
 * refusal is a failure, or a layout would be taken for shorter than it is.
 */
static int gi_profile(const struct bh_gpu_mig *m, unsigned i, struct nvml_gi_profile_v2 *ret, bool *ret_has)
{
    *ret = (struct nvml_gi_profile_v2){.version = NVML_GI_PROFILE_V2};
    int status = BH_NVML_CALL(m->n, gi_profile, m->gpu, i, ret);
    *ret_has = status == NVML_OK;
    return bh_nvml_lacks(status) ? (int)NVML_OK : status;
}

static int ci_profile(const struct bh_gpu_mig *m, nvml_gpu_instance_t gi, unsigned i,
                      struct nvml_ci_profile_v2 *ret, bool *ret_has)
{
    *ret = (struct nvml_ci_profile_v2){.version = NVML_CI_PROFILE_V2};
    int status = BH_NVML_CALL(m->n, ci_profile, gi, i, 0, ret);
    *ret_has = status == NVML_OK;
    return bh_nvml_lacks(status) ? (int)NVML_OK : status;
}

static int gi_info(const struct bh_gpu_mig *m, nvml_gpu_instance_t gi, struct nvml_gpu_instance_info *ret)
{
    struct bh_nvml_room room;
    return BH_NVML_FILL(m->n, gi_info, &room, ret, offsetof(struct nvml_gpu_instance_info, placement.size),
                        gi);
}

static int ci_info(const struct bh_gpu_mig *m, nvml_compute_instance_t ci,
                   struct nvml_compute_instance_info *ret)
{
    struct bh_nvml_room room;
    return BH_NVML_FILL(m->n, ci_info, &room, ret,
                        offsetof(struct nvml_compute_instance_info, placement.size), ci);
}

int bh_gpu_mig_place(const struct bh_gpu_mig *m, struct bh_gpu_mig_want want, struct nvml_placement *ret,
                     struct nvml_gi_profile_v2 *ret_profile, struct bh_err *err)
{
    struct nvml_placement places[HANDLES] = {0};
    unsigned n = HANDLES;
    bool has = false;
    int status = NVML_OK;
    for (unsigned i = 0; status == NVML_OK && i < NVML_GI_PROFILES_MAX; i++) {
        status = gi_profile(m, i, ret_profile, &has);
        has = has && ret_profile->id == want.profile_id;
        if (has)
            break;
    }
    if (status == NVML_OK && !has)
        return bh_fail(err, BH_INVALID, "%s has no MIG profile %" PRIu32, m->uuid, want.profile_id);
    if (status == NVML_OK)
        status = BH_NVML_CALL(m->n, gi_places, m->gpu, want.profile_id, places, &n);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "asking where profile %" PRIu32 " may stand", want.profile_id);
    for (unsigned i = 0; i < n && i < HANDLES; i++)
        if (places[i].start == want.start && places[i].size) {
            *ret = places[i];
            return BH_OK;
        }
    return bh_fail(err, BH_INVALID, "profile %" PRIu32 " cannot start at slice %" PRIu32 " of %s",
                   want.profile_id, want.start, m->uuid);
}

static void name_profile(char buf[32], const struct nvml_gi_profile_v2 *p)
{
    struct bh_arena a = {0};
    const char *name = bh_nvml_profile_name(&a, p->name, sizeof(p->name));
    (void)snprintf(buf, 32, "%s", name ? name : "");
    bh_arena_fini(&a);
}

/*
 * Compute instances are listed profile by profile, as GPU instances are. The profile over all slices of the instance is
 * noted on the way; of several, the one with most multiprocessors, which is the default of an instance with more memory
 * than its slices.
 */
static int read_cis(const struct bh_gpu_mig *m, nvml_gpu_instance_t gi, uint32_t slices,
                    struct bh_gpu_mig_part *part)
{
    uint32_t most = 0;
    part->whole_ci = UINT32_MAX;
    for (unsigned i = 0; i < NVML_CI_PROFILES_MAX; i++) {
        struct nvml_ci_profile_v2 p;
        nvml_compute_instance_t list[HANDLES] = {0};
        unsigned count = HANDLES;
        bool has;
        int status = ci_profile(m, gi, i, &p, &has);
        if (status == NVML_OK && !has)
            continue;
        if (status == NVML_OK)
            status = BH_NVML_CALL(m->n, ci_list, gi, p.id, list, &count);
        if (status != NVML_OK)
            return status;
        if (p.slice_count == slices && (part->whole_ci == UINT32_MAX || p.multiprocessor_count > most)) {
            part->whole_ci = p.id;
            most = p.multiprocessor_count;
        }
        for (unsigned k = 0; k < count && k < HANDLES && list[k]; k++) {
            struct nvml_compute_instance_info info;
            status = ci_info(m, list[k], &info);
            if (status != NVML_OK || part->n_cis == BH_GPU_MIG_CIS_MAX)
                return status != NVML_OK ? status : (int)NVML_INSUFFICIENT_SIZE;
            part->cis[part->n_cis++] =
                (struct bh_gpu_mig_ci){info.id, info.profile_id, info.placement.start, info.placement.size};
        }
    }
    return NVML_OK;
}

static int read_parts(const struct bh_gpu_mig *m, const struct nvml_gi_profile_v2 *p,
                      struct bh_gpu_mig_layout *l)
{
    nvml_gpu_instance_t list[HANDLES] = {0};
    unsigned count = HANDLES;
    int status = BH_NVML_CALL(m->n, gi_list, m->gpu, p->id, list, &count);
    for (unsigned i = 0; status == NVML_OK && i < count && i < HANDLES && list[i]; i++) {
        struct nvml_gpu_instance_info info;
        status = gi_info(m, list[i], &info);
        if (status == NVML_OK && l->n == BH_GPU_MIG_PARTS_MAX)
            status = NVML_INSUFFICIENT_SIZE;
        if (status != NVML_OK)
            break;
        struct bh_gpu_mig_part *part = &l->at[l->n++];
        *part = (struct bh_gpu_mig_part){.gi = info.id,
                                         .profile_id = info.profile_id,
                                         .start = info.placement.start,
                                         .size = info.placement.size};
        name_profile(part->profile, p);
        status = read_cis(m, list[i], p->slice_count, part);
    }
    return status;
}

static int by_place(const void *a, const void *b)
{
    const struct bh_gpu_mig_part *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

int bh_gpu_mig_read(const struct bh_gpu_mig *m, struct bh_gpu_mig_layout *ret, struct bh_err *err)
{
    struct bh_gpu_mig_layout l = {0};
    bool on;
    int rc = bh_gpu_mig_is_on(m, &on, err), status = NVML_OK;
    if (rc < 0)
        return rc;
    for (unsigned i = 0; on && status == NVML_OK && i < NVML_GI_PROFILES_MAX; i++) {
        struct nvml_gi_profile_v2 p;
        bool has;
        status = gi_profile(m, i, &p, &has);
        if (status == NVML_OK && has)
            status = read_parts(m, &p, &l);
    }
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "listing the MIG instances");
    rc = bh_nvml_fits(m->n, err);
    if (rc < 0)
        return rc;
    if (l.n)
        qsort(l.at, l.n, sizeof(*l.at), by_place);
    *ret = l;
    return BH_OK;
}

int bh_gpu_mig_profiles(const struct bh_gpu_mig *m, struct bh_gpu_mig_profile ret[BH_GPU_MIG_PROFILES_MAX],
                        size_t *ret_n, struct bh_err *err)
{
    size_t n = 0;
    bool on;
    int rc = bh_gpu_mig_is_on(m, &on, err);
    for (unsigned i = 0; rc == BH_OK && i < NVML_GI_PROFILES_MAX && n < BH_GPU_MIG_PROFILES_MAX; i++) {
        struct nvml_gi_profile_v2 p;
        unsigned room = 0;
        bool has;
        int status = gi_profile(m, i, &p, &has);
        if (status == NVML_OK && !has)
            continue;
        if (status == NVML_OK && on)
            status = BH_NVML_CALL(m->n, gi_room, m->gpu, p.id, &room);
        if (status != NVML_OK)
            return bh_gpu_mig_fail(m, status, err, "asking how much room is left");
        ret[n] = (struct bh_gpu_mig_profile){.id = p.id,
                                             .slices = p.slice_count,
                                             .sm = p.multiprocessor_count,
                                             .room = room,
                                             .memory_mib = p.memory_mb};
        name_profile(ret[n++].name, &p);
    }
    if (rc == BH_OK)
        *ret_n = n;
    return rc;
}

int bh_gpu_mig_idle(const struct bh_gpu_mig *m, struct bh_err *err)
{
    struct bh_arena a = {0};
    struct bh_gpu_device d = {0};
    char pids[160] = "";
    size_t at = 0;
    int rc = BH_OK;
    bh_nvml_read_processes(m->n, m->gpu, &a, &d);
    for (size_t i = 0; i < d.processes.n && i < NAMED_PIDS; i++)
        at += (size_t)snprintf(pids + at, sizeof(pids) - at, "%s%" PRIu32, i ? ", " : "",
                               d.processes.at[i].pid);
    if (d.processes_seen.why)
        rc = bh_fail(err, BH_DENIED, "%s is left as it is: whether it is in use cannot be told: %s", m->uuid,
                     d.processes_seen.why);
    else if (d.processes.n)
        rc = bh_fail(err, BH_BUSY, "%s is in use by %zu %s (pid %s%s); stop %s first", m->uuid, d.processes.n,
                     d.processes.n == 1 ? "process" : "processes", pids,
                     d.processes.n > NAMED_PIDS ? ", ..." : "", d.processes.n == 1 ? "it" : "them");
    bh_vec_fini(&d.processes);
    bh_arena_fini(&a);
    return rc;
}

/* ---- changing, one step at a time ---- */

/* *ret_activation: why it is not on yet. */
static int ask_for_mig(struct bh_gpu_mig *m, int *ret_activation, struct bh_err *err)
{
    bool on = false;
    int rc = bh_gpu_mig_idle(m, err);
    if (rc < 0)
        return rc;
    int status = BH_NVML_CALL(m->n, set_mig_mode, m->gpu, true, ret_activation);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "turning MIG on");
    if (*ret_activation != NVML_OK)
        return bh_fail(err, BH_CONFLICT, "MIG goes on on %s at the next reset%s", m->uuid,
                       *ret_activation == NVML_IN_USE
                           ? ": somebody has it open now, if only to read it; stop them first"
                           : "");
    rc = bh_gpu_mig_is_on(m, &on, err);
    if (rc == BH_OK && !on)
        rc = bh_fail(err, BH_SYSTEM, "the driver says that MIG went on on %s, and it did not", m->uuid);
    return rc;
}

int bh_gpu_mig_turn_on(struct bh_gpu_mig *m, uint32_t patience_ms, struct bh_err *err)
{
    static const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    int rc = bh_gpu_mig_may(m, err);
    for (uint32_t waited_ms = 0; rc == BH_OK; waited_ms += NAP_MS) {
        bool now = false, pending = false;
        int activation = NVML_OK;
        rc = mode_of(m, &now, &pending, err);
        if (rc < 0 || (now && pending))
            return rc;
        if (now)
            return bh_gpu_mig_is_on(m, &now, err); /* it goes off, and that is somebody's wish */
        rc = ask_for_mig(m, &activation, err);
        if (activation != NVML_IN_USE || waited_ms >= patience_ms)
            return rc;
        rc = BH_OK;
        (void)nanosleep(&nap, NULL);
    }
    return rc;
}

/* The handle of a GPU instance; NULL and a status where there is none. */
static nvml_gpu_instance_t gi_handle(const struct bh_gpu_mig *m, uint32_t gi,
                                     struct nvml_gi_profile_v2 *ret_profile, int *ret_status)
{
    int status = NVML_OK;
    for (unsigned i = 0; status == NVML_OK && i < NVML_GI_PROFILES_MAX; i++) {
        nvml_gpu_instance_t list[HANDLES] = {0};
        unsigned count = 0;
        bool has;
        status = gi_profile(m, i, ret_profile, &has);
        if (status == NVML_OK && has) {
            count = HANDLES;
            status = BH_NVML_CALL(m->n, gi_list, m->gpu, ret_profile->id, list, &count);
        }
        for (unsigned k = 0; status == NVML_OK && k < count && k < HANDLES && list[k]; k++) {
            struct nvml_gpu_instance_info info;
            status = gi_info(m, list[k], &info);
            if (status == NVML_OK && info.id == gi) {
                *ret_status = NVML_OK;
                return list[k];
            }
        }
    }
    *ret_status = status == NVML_OK ? (int)NVML_NOT_FOUND : status;
    return NULL;
}

int bh_gpu_mig_create_gi(struct bh_gpu_mig *m, struct bh_gpu_mig_want want, uint32_t *ret_gi,
                         struct bh_err *err)
{
    struct nvml_placement place;
    struct nvml_gi_profile_v2 p;
    struct nvml_gpu_instance_info info = {0};
    nvml_gpu_instance_t made = NULL;
    bool left = false;
    int rc = bh_gpu_mig_may(m, err);
    if (rc == BH_OK)
        rc = bh_gpu_mig_place(m, want, &place, &p, err);
    if (rc < 0)
        return rc;
    int status = BH_NVML_CALL(m->n, gi_create, m->gpu, want.profile_id, &place, &made);
    if (status == NVML_OK && (status = gi_info(m, made, &info)) != NVML_OK)
        left = BH_NVML_CALL(m->n, gi_destroy, made) != NVML_OK;
    char name[32];
    name_profile(name, &p);
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "making %s@%" PRIu32 "%s", *name ? name : "a GPU instance",
                               want.start, left ? " (which stayed behind)" : "");
    *ret_gi = info.id;
    return BH_OK;
}

/* What became of a compute instance: its id, or a sentence. One that cannot be looked at goes again. */
static int made_ci(struct bh_gpu_mig *m, uint32_t gi, int status, nvml_compute_instance_t made,
                   uint32_t *ret_ci, struct bh_err *err)
{
    struct nvml_compute_instance_info info = {0};
    bool left = false;
    if (status == NVML_OK && (status = ci_info(m, made, &info)) != NVML_OK)
        left = BH_NVML_CALL(m->n, ci_destroy, made) != NVML_OK;
    if (status != NVML_OK)
        return bh_gpu_mig_fail(m, status, err, "making a compute instance in GPU instance %" PRIu32 "%s", gi,
                               left ? " (which stayed behind)" : "");
    *ret_ci = info.id;
    return BH_OK;
}

int bh_gpu_mig_create_ci(struct bh_gpu_mig *m, uint32_t gi, uint32_t *ret_ci, struct bh_err *err)
{
    struct nvml_gi_profile_v2 p;
    struct bh_gpu_mig_part part = {0};
    nvml_compute_instance_t made = NULL;
    int status, rc = bh_gpu_mig_may(m, err);
    if (rc < 0)
        return rc;
    nvml_gpu_instance_t h = gi_handle(m, gi, &p, &status);
    if (h)
        status = read_cis(m, h, p.slice_count, &part);
    if (status == NVML_OK && part.whole_ci == UINT32_MAX)
        return bh_fail(err, BH_REFUSED, "GPU instance %" PRIu32 " of %s has no compute profile for all of it",
                       gi, m->uuid);
    if (status == NVML_OK)
        status = BH_NVML_CALL(m->n, ci_create, h, part.whole_ci, &made);
    return made_ci(m, gi, status, made, ret_ci, err);
}

int bh_gpu_mig_restore_ci(struct bh_gpu_mig *m, uint32_t gi, const struct bh_gpu_mig_ci *as,
                          struct bh_err *err)
{
    struct nvml_gi_profile_v2 p;
    const struct nvml_placement place = {as->start, as->size};
    nvml_compute_instance_t made = NULL;
    uint32_t id;
    int status;
    nvml_gpu_instance_t h = gi_handle(m, gi, &p, &status);
    if (h)
        status = BH_NVML_CALL(m->n, ci_create_at, h, as->profile_id, &place, &made);
    if (h && status == NVML_FUNCTION_NOT_FOUND)
        status = BH_NVML_CALL(m->n, ci_create, h, as->profile_id, &made);
    return made_ci(m, gi, status, made, &id, err);
}

/* The handle of a compute instance; NULL and a status where there is none. */
static nvml_compute_instance_t ci_handle(const struct bh_gpu_mig *m, nvml_gpu_instance_t gi, uint32_t ci,
                                         int *ret_status)
{
    int status = NVML_OK;
    for (unsigned i = 0; status == NVML_OK && i < NVML_CI_PROFILES_MAX; i++) {
        struct nvml_ci_profile_v2 p;
        nvml_compute_instance_t list[HANDLES] = {0};
        unsigned count = 0;
        bool has;
        status = ci_profile(m, gi, i, &p, &has);
        if (status == NVML_OK && has) {
            count = HANDLES;
            status = BH_NVML_CALL(m->n, ci_list, gi, p.id, list, &count);
        }
        for (unsigned k = 0; status == NVML_OK && k < count && k < HANDLES && list[k]; k++) {
            struct nvml_compute_instance_info info;
            status = ci_info(m, list[k], &info);
            if (status == NVML_OK && info.id == ci) {
                *ret_status = NVML_OK;
                return list[k];
            }
        }
    }
    *ret_status = status == NVML_OK ? (int)NVML_NOT_FOUND : status;
    return NULL;
}

int bh_gpu_mig_destroy_ci(struct bh_gpu_mig *m, uint32_t gi, uint32_t ci, struct bh_err *err)
{
    struct nvml_gi_profile_v2 p;
    int status, rc = bh_gpu_mig_may(m, err);
    if (rc < 0)
        return rc;
    nvml_gpu_instance_t h = gi_handle(m, gi, &p, &status);
    nvml_compute_instance_t c = h ? ci_handle(m, h, ci, &status) : NULL;
    if (c)
        status = BH_NVML_CALL(m->n, ci_destroy, c);
    if (status == NVML_OK)
        return BH_OK;
    return bh_gpu_mig_fail(m, status, err, "removing compute instance %" PRIu32 " of GPU instance %" PRIu32,
                           ci, gi);
}

int bh_gpu_mig_destroy_gi(struct bh_gpu_mig *m, uint32_t gi, struct bh_err *err)
{
    struct nvml_gi_profile_v2 p;
    int status, rc = bh_gpu_mig_may(m, err);
    if (rc < 0)
        return rc;
    nvml_gpu_instance_t h = gi_handle(m, gi, &p, &status);
    if (h)
        status = BH_NVML_CALL(m->n, gi_destroy, h);
    return status == NVML_OK ? BH_OK : bh_gpu_mig_fail(m, status, err, "removing GPU instance %" PRIu32, gi);
}
