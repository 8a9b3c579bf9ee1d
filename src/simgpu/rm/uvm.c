/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uvm.c - the file of managed memory: registrations, ranges, and memory mapped into them.
 *
 * Mapping an allocation holds it: freed by its handle while mapped, it stays until the range goes. Managed memory is
 * taken when a GPU touches it, at its full size, and moves when another GPU does. Neither is in a process's count.
 * A range of addresses overlaps no other of its file and takes one mapping at a time, which may be shorter than it; the
 * next one takes its place.
 */
#include "simgpu/rm/state.h"

#include <errno.h>
#include <sys/mman.h>

#define ADDRESSES (UINT64_C(1) << 57)

/* --- ranges --- */

/* The first of the file's ranges that begins at base or later: a place in `external`. */
static size_t first_from(const struct sim_file *f, uint64_t base)
{
    size_t from = 0, to = f->external.n;
    while (from < to) {
        size_t at = from + (to - from) / 2;
        if (f->external.at[at]->base < base)
            from = at + 1;
        else
            to = at;
    }
    return from;
}

static struct sim_range *range_new(struct bh_sim_rm *rm, struct sim_file *f, uint64_t bytes)
{
    if (SIM_LIVE(rm, ranges) >= SIM_RANGES_MAX)
        return NULL;
    struct sim_range *r = bh_alloc(1, sizeof(*r));
    *r = (struct sim_range){.id = ++rm->last_range, .bytes = bytes, .file = f};
    SIM_PUT(rm, ranges, r);
    (void)bh_idmap_add(&rm->range_ids, r->id, r->slot);
    SIM_LINK(&f->ranges, r, next, prev);
    return r;
}

static void range_free(struct bh_sim_rm *rm, struct sim_range *r)
{
    if (r->block)
        bh_simrm_block_unmap(rm, r->block);
    if (r->external && r->file->external.n) { /* none: the file is closed, and all of them go */
        size_t at = first_from(r->file, r->base), after = --r->file->external.n - at;
        memmove(r->file->external.at + at, r->file->external.at + at + 1, after * sizeof(struct sim_range *));
    }
    (void)bh_idmap_remove(&rm->range_ids, r->id);
    SIM_UNLINK(&r->file->ranges, r, next, prev);
    SIM_DROP(rm, ranges, r);
}

static struct sim_range *range_at(const struct sim_file *f, uint64_t base)
{
    size_t at = first_from(f, base);
    return at < f->external.n && f->external.at[at]->base == base ? f->external.at[at] : NULL;
}

static struct sim_range *range_by_id(const struct bh_sim_rm *rm, const struct sim_file *f, uint64_t id)
{
    uint32_t slot = bh_idmap_find(&rm->range_ids, id);
    struct sim_range *r = slot == BH_IDMAP_NONE ? NULL : rm->ranges.at[slot];
    return r && r->file == f ? r : NULL;
}

int bh_sim_rm_map(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                  const struct bh_sim_map *map, uint64_t *ret_range)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    struct sim_range *r = NULL;
    int rc = 0;
    if (!f)
        return -EBADF;
    if (map->length == 0 || f->kind > BH_FILE_UVM)
        rc = -EINVAL;
    else if (f->kind == BH_FILE_UVM && (map->flags & MAP_TYPE) == MAP_PRIVATE)
        rc = -EINVAL; /* the UVM file takes shared mappings only */
    else if (f->kind == BH_FILE_UVM && !f->uvm_ready)
        rc = -EBADFD;
    else if (map->length > ADDRESSES || !(r = range_new(rm, f, map->length)))
        rc = -ENOMEM;
    if (r) {
        r->managed = f->kind == BH_FILE_UVM;
        *ret_range = r->id;
        bh_simrm_journal_file(rm, f, who->pid, BH_CALL_MAP, map);
    }
    return rc;
}

int bh_sim_rm_unmap(struct bh_sim_rm *rm, uint32_t file, uint64_t range)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    struct sim_range *r = f ? range_by_id(rm, f, range) : NULL;
    if (!f)
        return -EBADF;
    if (!r || r->external)
        return -EINVAL;
    range_free(rm, r);
    return 0;
}

int bh_sim_rm_touch(struct bh_sim_rm *rm, uint32_t file, uint64_t range, uint32_t gpu)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    struct sim_range *r = f ? range_by_id(rm, f, range) : NULL;
    if (!f)
        return -EBADF;
    if (!r || !r->managed || gpu >= rm->node.n_gpus || !f->uvm[gpu])
        return -EINVAL;
    if (rm->gpus[gpu].lost)
        return -EIO;
    if (r->block && r->block->place == f->uvm[gpu])
        return 0;
    struct sim_block *b = bh_simrm_block_new(rm, f->uvm[gpu], bh_simrm_round(r->bytes));
    if (!b)
        return -ENOMEM;
    bh_simrm_block_map(b);
    if (r->block)
        bh_simrm_block_unmap(rm, r->block);
    r->block = b;
    return 0;
}

static uint64_t mapped_of(const struct sim_file *f)
{
    uint64_t bytes = 0;
    for (const struct sim_range *r = f->ranges; r; r = r->next)
        bytes += r->managed ? r->bytes : 0;
    return bytes;
}

int bh_sim_rm_what(const struct bh_sim_rm *rm, uint32_t file, struct bh_sim_what *ret)
{
    const struct sim_file *f = bh_simrm_file(rm, file);
    if (!f)
        return -EBADF;
    *ret = (struct bh_sim_what){.kind = f->kind, .minor = f->minor, .managed_bytes = mapped_of(f)};
    return 0;
}

uint64_t bh_sim_rm_mapped(const struct bh_sim_rm *rm, uint32_t pid)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < rm->files.n; i++)
        bytes += rm->files.at[i] && rm->files.at[i]->pid == pid ? mapped_of(rm->files.at[i]) : 0;
    return bytes;
}

/* --- calls --- */

static uint32_t get32(const uint8_t *arg, size_t at)
{
    uint32_t v;
    memcpy(&v, arg + at, sizeof(v));
    return v;
}

static uint64_t get64(const uint8_t *arg, size_t at)
{
    uint64_t v;
    memcpy(&v, arg + at, sizeof(v));
    return v;
}

static uint32_t digit(char c)
{
    return (uint32_t)(c >= 'a' ? c - 'a' + 10 : c - '0') & 15;
}

void bh_simrm_uuid(const struct bh_sim_gpu *gpu, uint8_t ret[16])
{
    size_t n = 0;
    memset(ret, 0, 16);
    for (const char *p = gpu->uuid + strlen("GPU-"); *p && n < 32; p++) {
        if (*p == '-')
            continue;
        ret[n / 2] = (uint8_t)((uint32_t)ret[n / 2] << 4 | digit(*p));
        n++;
    }
}

/* The card with these 16 bytes for a UUID; SIM_NONE: none. */
static uint32_t gpu_by_uuid(const struct bh_sim_rm *rm, const uint8_t *want)
{
    for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
        uint8_t bytes[16];
        bh_simrm_uuid(&rm->node.gpus[g], bytes);
        if (memcmp(bytes, want, sizeof(bytes)) == 0)
            return g;
    }
    return SIM_NONE;
}

static uint32_t initialize(struct sim_call *c, uint8_t *arg)
{
    (void)arg;
    if (c->file->uvm_ready)
        return RM_INVALID_STATE;
    c->file->uvm_ready = true;
    return RM_OK;
}

static void unregister(struct sim_file *f, uint32_t gpu)
{
    if (f->uvm[gpu])
        f->uvm[gpu]->pins--;
    f->uvm[gpu] = NULL;
}

static uint32_t register_gpu(struct sim_call *c, uint8_t *arg)
{
    enum { AT_CLIENT = 28 };
    uint32_t gpu = gpu_by_uuid(c->rm, arg);
    if (gpu == SIM_NONE)
        return RM_INVALID_DEVICE;
    if (c->rm->gpus[gpu].lost)
        return RM_GPU_IS_LOST;
    if (c->file->uvm[gpu])
        return RM_OK; /* once more is the same registration */
    struct sim_client *client = bh_simrm_client(c->rm, c->file, get32(arg, AT_CLIENT));
    struct sim_place *whole = c->rm->gpus[gpu].mig.on ? NULL : &c->rm->gpus[gpu].whole;
    struct sim_place *place = client ? bh_simrm_place(c->rm, client, gpu) : whole;
    if (!place)
        return RM_INVALID_STATE;
    c->file->uvm[gpu] = place;
    place->pins++;
    return RM_OK;
}

static uint32_t registered(struct sim_call *c, const uint8_t *arg, uint32_t *ret_gpu)
{
    *ret_gpu = gpu_by_uuid(c->rm, arg);
    if (*ret_gpu == SIM_NONE || !c->file->uvm[*ret_gpu])
        return RM_INVALID_DEVICE;
    return c->rm->gpus[*ret_gpu].lost ? RM_GPU_IS_LOST : RM_OK;
}

static uint32_t unregister_gpu(struct sim_call *c, uint8_t *arg)
{
    uint32_t gpu = gpu_by_uuid(c->rm, arg);
    if (gpu == SIM_NONE || !c->file->uvm[gpu])
        return RM_INVALID_DEVICE;
    unregister(c->file, gpu);
    return RM_OK;
}

static uint32_t on_gpu(struct sim_call *c, uint8_t *arg)
{
    uint32_t gpu;
    return registered(c, arg, &gpu);
}

/* A client's object of one kind is handed over by handles; nothing is kept of it. */
static uint32_t hand_over(struct sim_call *c, const uint8_t *arg, enum sim_kind kind)
{
    enum { AT_CLIENT = 20, AT_OBJECT = 24 };
    uint32_t gpu, status = registered(c, arg, &gpu);
    if (status != RM_OK)
        return status;
    c->client = bh_simrm_client(c->rm, c->file, get32(arg, AT_CLIENT));
    if (!c->client)
        return RM_INVALID_CLIENT;
    struct sim_object *o = bh_simrm_object(c->rm, c->client, get32(arg, AT_OBJECT));
    return o && o->class->kind == kind && o->gpu == gpu ? RM_OK : RM_OBJECT_NOT_FOUND;
}

static uint32_t register_vaspace(struct sim_call *c, uint8_t *arg)
{
    return hand_over(c, arg, SIM_VASPACE);
}

static uint32_t register_channel(struct sim_call *c, uint8_t *arg)
{
    return hand_over(c, arg, SIM_CHANNEL);
}

static uint32_t create_external(struct sim_call *c, uint8_t *arg)
{
    uint64_t base = get64(arg, 0), bytes = get64(arg, 8);
    if (!bytes || base > ADDRESSES || bytes > ADDRESSES - base)
        return RM_INVALID_ARGUMENT;
    struct sim_file *f = c->file;
    size_t at = first_from(f, base);
    if ((at < f->external.n && f->external.at[at]->base - base < bytes) ||
        (at > 0 && base - f->external.at[at - 1]->base < f->external.at[at - 1]->bytes))
        return RM_STATE_IN_USE;
    struct sim_range *r = range_new(c->rm, f, bytes);
    if (!r)
        return RM_INSUFFICIENT_RESOURCES;
    r->base = base;
    r->external = true;
    (void)bh_vec_push(&f->external);
    memmove(f->external.at + at + 1, f->external.at + at,
            (f->external.n - 1 - at) * sizeof(struct sim_range *));
    f->external.at[at] = r;
    return RM_OK;
}

static uint32_t map_external(struct sim_call *c, uint8_t *arg)
{
    enum { AT_CLIENT = 9252, AT_MEMORY = 9256 };
    struct sim_range *r = range_at(c->file, get64(arg, 0));
    c->client = bh_simrm_client(c->rm, c->file, get32(arg, AT_CLIENT));
    if (!c->client)
        return RM_INVALID_CLIENT;
    struct sim_object *o = bh_simrm_object(c->rm, c->client, get32(arg, AT_MEMORY));
    if (!o || (o->class->kind != SIM_MEMORY && o->class->kind != SIM_PLAIN))
        return RM_OBJECT_NOT_FOUND;
    const uint64_t bytes = get64(arg, 8), offset = get64(arg, 16);
    if (!r || bytes > r->bytes ||
        (o->block && (offset > o->block->bytes || bytes > o->block->bytes - offset)))
        return RM_INVALID_ARGUMENT;
    if (o->gpu != SIM_NONE && c->rm->gpus[o->gpu].lost)
        return RM_GPU_IS_LOST;
    if (!o->block)
        return RM_OK; /* memory of the machine */
    bh_simrm_block_map(o->block);
    if (r->block)
        bh_simrm_block_unmap(c->rm, r->block);
    r->block = o->block;
    return RM_OK;
}

/* Only the mapping goes; the range stays. */
static uint32_t unmap_external(struct sim_call *c, uint8_t *arg)
{
    struct sim_range *r = range_at(c->file, get64(arg, 0));
    if (!r)
        return RM_OBJECT_NOT_FOUND;
    if (r->block)
        bh_simrm_block_unmap(c->rm, r->block);
    r->block = NULL;
    return RM_OK;
}

static uint32_t free_range(struct sim_call *c, uint8_t *arg)
{
    struct sim_range *r = range_at(c->file, get64(arg, 0));
    if (!r)
        return RM_OBJECT_NOT_FOUND;
    range_free(c->rm, r);
    return RM_OK;
}

static uint32_t accepted(struct sim_call *c, uint8_t *arg)
{
    (void)c;
    (void)arg;
    return RM_OK;
}

/* Not on: memory of the machine that a GPU pages by itself. */
static uint32_t pageable(struct sim_call *c, uint8_t *arg)
{
    (void)c;
    arg[0] = 0;
    return RM_OK;
}

enum { BARE = 0, NEEDS_INIT = 1 };
static const struct {
    uint32_t number, needs;
    uint32_t (*call)(struct sim_call *c, uint8_t *arg);
} ROWS[] = {
    {UVM_INITIALIZE, BARE, initialize},
    {UVM_MM_INITIALIZE, BARE, accepted},
    {UVM_CREATE_RANGE_GROUP, NEEDS_INIT, accepted},
    {UVM_DESTROY_RANGE_GROUP, NEEDS_INIT, accepted},
    {UVM_REGISTER_GPU_VASPACE, NEEDS_INIT, register_vaspace},
    {UVM_UNREGISTER_GPU_VASPACE, NEEDS_INIT, on_gpu},
    {UVM_REGISTER_CHANNEL, NEEDS_INIT, register_channel},
    {UVM_UNREGISTER_CHANNEL, NEEDS_INIT, on_gpu},
    {UVM_ENABLE_PEER_ACCESS, NEEDS_INIT, on_gpu},
    {UVM_DISABLE_PEER_ACCESS, NEEDS_INIT, on_gpu},
    {UVM_SET_RANGE_GROUP, NEEDS_INIT, accepted},
    {UVM_MAP_EXTERNAL, NEEDS_INIT, map_external},
    {UVM_FREE, NEEDS_INIT, free_range},
    {UVM_REGISTER_GPU, NEEDS_INIT, register_gpu},
    {UVM_UNREGISTER_GPU, NEEDS_INIT, unregister_gpu},
    {UVM_PAGEABLE_MEM_ACCESS, NEEDS_INIT, pageable},
    {UVM_SET_PREFERRED_LOCATION, NEEDS_INIT, accepted},
    {UVM_UNSET_PREFERRED_LOCATION, NEEDS_INIT, accepted},
    {UVM_ENABLE_READ_DUPLICATION, NEEDS_INIT, accepted},
    {UVM_DISABLE_READ_DUPLICATION, NEEDS_INIT, accepted},
    {UVM_SET_ACCESSED_BY, NEEDS_INIT, accepted},
    {UVM_UNSET_ACCESSED_BY, NEEDS_INIT, accepted},
    {UVM_MIGRATE, NEEDS_INIT, accepted},
    {UVM_MAP_DYNAMIC_PARALLELISM, NEEDS_INIT, create_external},
    {UVM_UNMAP_EXTERNAL, NEEDS_INIT, unmap_external},
    {UVM_ALLOC_SEMAPHORE_POOL, NEEDS_INIT, create_external},
    {UVM_PAGEABLE_MEM_ACCESS_ON_GPU, NEEDS_INIT, accepted},
    {UVM_VALIDATE_VA_RANGE, NEEDS_INIT, accepted},
    {UVM_CREATE_EXTERNAL_RANGE, NEEDS_INIT, create_external},
};

/* Where a call's structure ends, and where its status stands. */
static void layout(uint32_t number, size_t *ret_bytes, size_t *ret_status_at)
{
    switch (number) {
#define UVM_CALL(name, n, bytes, status) \
    case n:                              \
        *ret_bytes = (bytes);            \
        *ret_status_at = (status);       \
        break;
#include "gpu/abi/uvm.def"
#undef UVM_CALL
    default:
        *ret_bytes = *ret_status_at = 0;
    }
}

int bh_simrm_uvm(struct sim_call *c, uint32_t number, void *arg, size_t n)
{
    if (number == UVM_DEINITIALIZE)
        return 0;
    size_t bytes, status_at;
    layout(number, &bytes, &status_at);
    for (size_t i = 0; i < BH_COUNT_OF(ROWS); i++) {
        if (ROWS[i].number != number)
            continue;
        if (n < bytes)
            return -EFAULT; /* the kernel could not copy it in */
        uint32_t status = RM_INVALID_STATE;
        if (ROWS[i].needs == BARE || c->file->uvm_ready)
            status = ROWS[i].call(c, arg);
        memcpy((uint8_t *)arg + status_at, &status, sizeof(status));
        return 0;
    }
    return -EINVAL;
}

void bh_simrm_uvm_close(struct bh_sim_rm *rm, struct sim_file *file)
{
    bh_vec_fini(&file->external);
    for (struct sim_range *r = file->ranges, *next; r; r = next) {
        next = r->next;
        range_free(rm, r);
    }
    for (uint32_t g = 0; g < rm->node.n_gpus; g++)
        unregister(file, g);
}
