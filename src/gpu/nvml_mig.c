/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_mig.c - the MIG instances of one GPU, with their places.
 *
 * GPU instances are listed profile by profile, which gives place and profile and may need root; MIG devices
 * are what a tenant opens. The two lists are joined by the instance's number. Reads only.
 */
#include "base/str.h"
#include "base/sysfile.h"
#include "gpu/caps.h"
#include "gpu/nvml.h"
#include "gpu/text.h"

enum { TEXT = 256, ASKED = 96, LIST = 64, DEVICES_MAX = 64, CAPS_MAX = 1 << 20 };

struct reader {
    const struct bh_nvml *n;
    nvml_device_t gpu;
    struct bh_gpu_snapshot *s;
    struct bh_gpu_device *d;
};

/* `MIG 1g.18gb`, `NVIDIA H200 MIG 1g.18gb`: what stands behind the last `MIG `; the whole text without one. */
const char *bh_nvml_profile_name(struct bh_arena *a, const char *text, size_t size)
{
    size_t n = strnlen(text, size), from = 0;
    for (size_t i = 0; i + 4 <= n; i++)
        if (memcmp(text + i, "MIG ", 4) == 0)
            from = i + 4;
    return bh_gpu_text(a, text + from, n - from);
}

static struct bh_gpu_instance *find_gi(struct bh_gpu_device *d, uint32_t gi, uint32_t ci)
{
    for (size_t i = 0; i < d->instances.n; i++)
        if (d->instances.at[i].gi == gi && d->instances.at[i].ci == ci)
            return &d->instances.at[i];
    return NULL;
}

static struct bh_gpu_instance *add(struct reader *r, uint32_t gi, const char *why)
{
    struct bh_gpu_instance *i = bh_vec_push(&r->d->instances);
    struct bh_reading missing = {0, why};
    *i = (struct bh_gpu_instance){.gi = gi,
                                  .ci = BH_NO_ID,
                                  .gi_profile_id = missing,
                                  .start = missing,
                                  .size = missing,
                                  .total_bytes = missing,
                                  .used_bytes = missing,
                                  .sm = missing,
                                  .gi_cap = missing,
                                  .ci_cap = missing};
    return i;
}

static int add_instances(struct reader *r, const struct nvml_gi_profile_v2 *p)
{
    /* Room for more than any GPU holds; a library that says more than that is not believed. */
    nvml_gpu_instance_t list[LIST] = {0};
    unsigned count = LIST;
    int bad = NVML_OK, status = BH_NVML_CALL(r->n, gi_list, r->gpu, p->id, list, &count);
    for (unsigned i = 0; status == NVML_OK && i < count && i < LIST && list[i]; i++) {
        struct nvml_gpu_instance_info info;
        struct bh_nvml_room room;
        int got = BH_NVML_FILL(r->n, gi_info, &room, &info,
                               offsetof(struct nvml_gpu_instance_info, placement.size), list[i]);
        bad = bad == NVML_OK ? got : bad;
        if (got != NVML_OK || find_gi(r->d, info.id, BH_NO_ID))
            continue;
        struct bh_gpu_instance *at = add(r, info.id, "no compute instance is made in it");
        at->profile = bh_nvml_profile_name(&r->s->arena, p->name, sizeof(p->name));
        at->gi_profile_id = (struct bh_reading){info.profile_id, NULL};
        at->start = (struct bh_reading){info.placement.start, NULL};
        at->size = (struct bh_reading){info.placement.size, NULL};
        at->total_bytes = (struct bh_reading){p->memory_mb << 20, NULL};
        at->sm = (struct bh_reading){p->multiprocessor_count, NULL};
    }
    return status == NVML_OK ? bad : status;
}

/* Profiles are numbered from 0; those this GPU lacks are refused one by one. Returns why the list is not whole. */
static const char *list_instances(struct reader *r)
{
    int bad = r->n->api.gi_info ? NVML_OK : NVML_FUNCTION_NOT_FOUND;
    for (unsigned i = 0; r->n->api.gi_info && i < NVML_GI_PROFILES_MAX; i++) {
        struct nvml_gi_profile_v2 p = {.version = NVML_GI_PROFILE_V2};
        int status = BH_NVML_CALL(r->n, gi_profile, r->gpu, i, &p);
        if (status == NVML_OK)
            status = add_instances(r, &p);
        else if (bh_nvml_lacks(status))
            status = NVML_OK;
        bad = bad == NVML_OK ? status : bad;
    }
    return bad == NVML_OK ? NULL : bh_nvml_why(&r->s->arena, bad);
}

/* Several compute instances may stand in one GPU instance: each gets a line of its own. */
static struct bh_gpu_instance *join(struct reader *r, uint32_t gi, uint32_t ci, const char *why)
{
    struct bh_gpu_instance *at = find_gi(r->d, gi, BH_NO_ID);
    if (!at) {
        struct bh_gpu_instance twin = {.gi = BH_NO_ID};
        for (size_t i = 0; i < r->d->instances.n; i++)
            if (r->d->instances.at[i].gi == gi)
                twin = r->d->instances.at[i];
        at = add(r, gi, why ? why : "the driver lists no such GPU instance");
        if (twin.gi == gi)
            *at = twin;
    }
    at->ci = ci;
    return at;
}

static int read_mig_device(struct reader *r, nvml_device_t h, const char *why)
{
    struct bh_arena *a = &r->s->arena;
    unsigned gi = 0, ci = 0;
    int status = BH_NVML_CALL(r->n, gi_id, h, &gi);
    if (status == NVML_OK)
        status = BH_NVML_CALL(r->n, ci_id, h, &ci);
    if (status != NVML_OK || find_gi(r->d, gi, ci))
        return status;
    struct bh_gpu_instance *at = join(r, gi, ci, why);
    char text[TEXT] = {0}, uuid[TEXT] = {0};
    status = BH_NVML_CALL(r->n, name, h, text, ASKED);
    if (status == NVML_OK && !at->profile)
        at->profile = bh_nvml_profile_name(a, text, sizeof(text));
    status = BH_NVML_CALL(r->n, uuid, h, uuid, ASKED);
    at->uuid = bh_nvml_text(a, status, uuid, sizeof(uuid));
    struct bh_gpu_device own = {0};
    bh_nvml_read_memory(r->n, h, a, &own);
    if (!own.total_bytes.why)
        at->total_bytes = own.total_bytes;
    at->used_bytes = own.used_bytes;
    struct nvml_attributes attributes;
    struct bh_nvml_room room;
    status = BH_NVML_FILL(r->n, attributes, &room, &attributes,
                          offsetof(struct nvml_attributes, multiprocessor_count), h);
    if (status == NVML_OK)
        at->sm = (struct bh_reading){attributes.multiprocessor_count, NULL};
    return NVML_OK;
}

/* A place without a device is refused; why: what is known of the instances. Returns why the list is not whole. */
static const char *read_mig_devices(struct reader *r, const char *why)
{
    unsigned max = 0;
    int bad, status = BH_NVML_CALL(r->n, mig_max, r->gpu, &max);
    bad = status;
    for (unsigned i = 0; status == NVML_OK && i < max && i < DEVICES_MAX; i++) {
        nvml_device_t h = NULL;
        int got = BH_NVML_CALL(r->n, mig_handle, r->gpu, i, &h);
        if (got == NVML_OK && h)
            got = read_mig_device(r, h, why);
        else if (bh_nvml_lacks(got))
            got = NVML_OK;
        bad = bad == NVML_OK ? got : bad;
    }
    return bad == NVML_OK ? NULL : bh_nvml_why(&r->s->arena, bad);
}

static struct bh_reading cap_of(const char *minors, int32_t gpu_minor, uint32_t gi, uint32_t ci)
{
    uint32_t v;
    if (gpu_minor >= 0 && ((minors && bh_caps_find(minors, (uint32_t)gpu_minor, gi, ci, &v)) ||
                           (!minors && bh_caps_number((uint32_t)gpu_minor, gi, ci, &v))))
        return (struct bh_reading){v, NULL};
    return (struct bh_reading){0, gpu_minor < 0 ? "the GPU's minor number is not known"
                                                : "not in the driver's list"};
}

static void read_caps(struct bh_gpu_device *d)
{
    BH_AUTOFREE char *minors = NULL;
    if (bh_sysfile_read("/proc/driver/nvidia-caps/mig-minors", CAPS_MAX, &minors, NULL, NULL) < 0)
        minors = NULL;
    for (size_t i = 0; i < d->instances.n; i++) {
        struct bh_gpu_instance *at = &d->instances.at[i];
        at->gi_cap = cap_of(minors, d->minor, at->gi, UINT32_MAX);
        if (at->ci != BH_NO_ID)
            at->ci_cap = cap_of(minors, d->minor, at->gi, at->ci);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct bh_gpu_instance *x = a, *y = b;
    if (x->start.v != y->start.v)
        return x->start.v < y->start.v ? -1 : 1;
    if (x->gi != y->gi)
        return x->gi < y->gi ? -1 : 1;
    return x->ci < y->ci ? -1 : x->ci > y->ci;
}

void bh_nvml_read_mig(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                      struct bh_gpu_device *d)
{
    struct reader r = {n, h, s, d};
    unsigned now = 0, pending = 0;
    int status = BH_NVML_CALL(n, mig_mode, h, &now, &pending);
    d->mig_mode = bh_nvml_reading(&s->arena, status, now);
    d->mig_pending = bh_nvml_reading(&s->arena, status, pending);
    d->instances_seen = (struct bh_reading){0, bh_nvml_lacks(status) ? NULL : d->mig_mode.why};
    if (status != NVML_OK || now != 1)
        return;
    const char *why = list_instances(&r);
    if (why)
        bh_gpu_note(s, "where the MIG instances of GPU %u lie is not known: %s", d->index, why);
    const char *no_devices = read_mig_devices(&r, why);
    if (no_devices)
        bh_gpu_note(s, "the MIG devices of GPU %u are not known: %s", d->index, no_devices);
    why = no_devices ? no_devices : why;
    d->instances_seen = (struct bh_reading){why ? 0 : d->instances.n, why};
    read_caps(d);
    if (d->instances.n)
        qsort(d->instances.at, d->instances.n, sizeof(*d->instances.at), by_place);
}
