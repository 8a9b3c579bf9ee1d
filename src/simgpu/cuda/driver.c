/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - the calls that memory takes, in the shape in which the recording shows them.
 *
 * A piece of memory is an object of the resource manager, given an address by the UVM file: a range is made there and the
 * object mapped into it. Unmapping frees the range, the last user frees the object. Class, flags and attributes are those
 * that the recording has for the way in which the memory is asked for. Plain memory is also made known for access by
 * third parties (0x503c0104), before it is mapped.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>

enum { THIRD_PARTY = 0x503c, REGISTER_MEMORY = 0x503c0104, UNREGISTER_MEMORY = 0x503c0105 };

/* Where the recording shows each way of obtaining memory. */
static const char *const marks[BH_CU_SHAPE_N_] = {
    [BH_CU_SHAPE_PLAIN] = "alloc-64m",    [BH_CU_SHAPE_VMM] = "vmm",
    [BH_CU_SHAPE_POOL] = "pool",          [BH_CU_SHAPE_ARRAY] = "array",
    [BH_CU_SHAPE_GRAPH] = "graph-memory", [BH_CU_SHAPE_HOST] = "host",
};

static const struct bh_call *shape_of(enum bh_cu_shape shape)
{
    static const struct bh_call fallback = {.what = RM_CLASS_MEMORY_LOCAL};
    const struct bh_recording *r = bh_cu_recording();
    size_t first, n;
    const bool host = shape == BH_CU_SHAPE_HOST;
    if (!bh_recording_section(r, marks[shape], &first, &n))
        return &fallback;
    for (size_t i = first; i < first + n; i++) {
        const struct bh_call *c = &r->calls.at[i];
        if (host ? c->kind == BH_CALL_MEMORY : c->kind == BH_CALL_ALLOC && c->what == RM_CLASS_MEMORY_LOCAL)
            return c;
    }
    return &fallback;
}

static struct bh_cu_mem *mem_of(CUcontext ctx, enum bh_cu_shape shape, uint32_t handle, uint64_t bytes)
{
    struct bh_cu_mem *m = bh_alloc(1, sizeof(*m));
    *m = (struct bh_cu_mem){.shape = shape,
                            .device = ctx->device,
                            .fd = ctx->fd,
                            .uvm = ctx->uvm,
                            .client = ctx->client,
                            .parent = ctx->parent,
                            .handle = handle,
                            .bytes = bytes,
                            .refs = 1};
    pthread_mutex_lock(&cu.lock);
    m->next = cu.mems;
    m->self = &cu.mems;
    if (m->next)
        m->next->self = &m->next;
    cu.mems = m;
    pthread_mutex_unlock(&cu.lock);
    return m;
}

static int control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params, uint32_t size)
{
    struct rm_control c = {.client = client,
                           .object = object,
                           .command = command,
                           .params = (uint64_t)(uintptr_t)params,
                           .params_size = size};
    if (bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c) < 0)
        return bh_cu_from_errno(errno);
    return bh_cu_from_status(c.status);
}

int bh_cu_control(CUcontext ctx, uint32_t object, uint32_t command, void *params, uint32_t size)
{
    return control(ctx->fd, ctx->client, object, command, params, size);
}

/* An object in the shape in which the recording has it. */
static int object_new(int fd, uint32_t client, uint32_t parent, enum bh_cu_shape shape, uint64_t bytes,
                      uint32_t *ret)
{
    const struct bh_call *like = shape_of(shape);
    struct rm_memory_params params = {.flags = like->mflags,
                                      .attr = like->attr,
                                      .attr2 = like->attr2,
                                      .size = bytes,
                                      .alignment = BH_CU_PAGE,
                                      .numa_node = -1};
    struct rm_alloc a = {.client = client,
                         .parent = parent,
                         .object = bh_play_handle(),
                         .class = like->what,
                         .params = (uint64_t)(uintptr_t)&params,
                         .params_size = like->params,
                         .flags = like->flags};
    if (bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0)
        return bh_cu_from_errno(errno);
    if (a.status)
        return bh_cu_from_status(a.status);
    *ret = a.object;
    return 0;
}

int bh_cu_mem_new(CUcontext ctx, enum bh_cu_shape shape, uint64_t bytes, struct bh_cu_mem **ret)
{
    const struct bh_play_object *third = bh_play_find(&ctx->play, THIRD_PARTY, ctx->client, 0);
    uint32_t object = 0;
    int rc = object_new(ctx->fd, ctx->client, ctx->parent, shape, bytes, &object);
    if (rc)
        return rc;
    *ret = mem_of(ctx, shape, object, bytes);
    if (shape == BH_CU_SHAPE_PLAIN && third)
        (*ret)->third_party = third->handle;
    return 0;
}

int bh_cu_mem_obtain_again(struct bh_cu_mem *mem)
{
    return object_new(mem->fd, mem->client, mem->parent, mem->shape, mem->bytes, &mem->handle);
}

int bh_cu_mem_take_back(struct bh_cu_mem *mem)
{
    struct rm_free f = {.client = mem->client, .object = mem->handle};
    if (bh_sim_ioctl(mem->fd, RM_IOC(RM_FREE, sizeof(f)), &f) < 0)
        return bh_cu_from_errno(errno);
    return bh_cu_from_status(f.status);
}

/* Pages of this process that the card may reach. */
int bh_cu_mem_host(CUcontext ctx, uint64_t at, uint64_t bytes, struct bh_cu_mem **ret)
{
    const struct bh_call *like = shape_of(BH_CU_SHAPE_HOST);
    int gpu = bh_play_file(&ctx->play, BH_FILE_GPU);
    struct rm_alloc_memory m = {.client = ctx->client,
                                .parent = ctx->parent,
                                .object = bh_play_handle(),
                                .class = RM_CLASS_MEMORY_OS,
                                .flags = like->flags,
                                .memory = at,
                                .limit = bytes - 1,
                                .fd = -1};
    if (bh_sim_ioctl(gpu < 0 ? ctx->fd : gpu, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) < 0)
        return bh_cu_from_errno(errno);
    if (m.status)
        return bh_cu_from_status(m.status);
    *ret = mem_of(ctx, BH_CU_SHAPE_HOST, m.object, bytes);
    return 0;
}

int bh_cu_mem_dup(CUcontext ctx, uint32_t source_client, uint32_t source_object, uint64_t bytes,
                  struct bh_cu_mem **ret)
{
    struct rm_dup d = {.client = ctx->client,
                       .parent = ctx->parent,
                       .object = bh_play_handle(),
                       .source_client = source_client,
                       .source_object = source_object};
    if (bh_sim_ioctl(ctx->fd, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) < 0)
        return bh_cu_from_errno(errno);
    if (d.status)
        return d.status == RM_INSUFFICIENT_PERMISSIONS ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_VALUE;
    *ret = mem_of(ctx, BH_CU_SHAPE_N_, d.object, bytes);
    return 0;
}

void bh_cu_mem_get(struct bh_cu_mem *mem)
{
    pthread_mutex_lock(&cu.lock);
    mem->refs++;
    pthread_mutex_unlock(&cu.lock);
}

/* What the driver says to a free is not looked at: after a fault there may be nothing left to free. */
void bh_cu_mem_put(struct bh_cu_mem *mem)
{
    pthread_mutex_lock(&cu.lock);
    const bool last = --mem->refs == 0;
    if (last) {
        *mem->self = mem->next;
        if (mem->next)
            mem->next->self = mem->self;
    }
    pthread_mutex_unlock(&cu.lock);
    if (!last)
        return;
    (void)bh_cu_mem_take_back(mem);
    free(mem);
}

static int uvm_result(int rc)
{
    return rc < 0 ? bh_cu_from_errno(-rc) : bh_cu_from_status((uint32_t)rc);
}

int bh_cu_uvm(int uvm, uint32_t number, uint64_t at, uint64_t size)
{
    return uvm_result(bh_uvm(uvm, number, &(struct bh_uvm_call){.base = at, .length = size, .ctl = -1}));
}

int bh_cu_map_into(uint64_t at, uint64_t size, const struct bh_cu_mem *mem, uint64_t offset)
{
    return uvm_result(bh_uvm(mem->uvm, UVM_MAP_EXTERNAL,
                             &(struct bh_uvm_call){.base = at,
                                                   .length = size,
                                                   .offset = offset,
                                                   .uuid = mem->device->play.uuid,
                                                   .ctl = mem->fd,
                                                   .client = mem->client,
                                                   .object = mem->handle}));
}

void bh_cu_unmap_from(uint64_t at, uint64_t size, const struct bh_cu_mem *mem)
{
    (void)bh_uvm(
        mem->uvm, UVM_UNMAP_EXTERNAL,
        &(struct bh_uvm_call){.base = at, .length = size, .uuid = mem->device->play.uuid, .ctl = -1});
}

void bh_cu_mem_known(const struct bh_cu_mem *mem, bool known)
{
    uint64_t params[4] = {0}; /* the caller's pages are zero here: nobody looks at them */
    if (mem->third_party)
        (void)control(mem->fd, mem->client, mem->third_party, known ? REGISTER_MEMORY : UNREGISTER_MEMORY,
                      params, known ? sizeof(params) : sizeof(uint32_t));
}

int bh_cu_map(uint64_t at, uint64_t size, struct bh_cu_mem *mem, uint64_t offset)
{
    bh_cu_mem_known(mem, true);
    int rc = bh_cu_uvm(mem->uvm, UVM_CREATE_EXTERNAL_RANGE, at, size);
    if (rc)
        return rc;
    rc = bh_cu_map_into(at, size, mem, offset);
    if (rc) {
        (void)bh_cu_uvm(mem->uvm, UVM_FREE, at, size);
        return rc;
    }
    bh_cu_mem_get(mem);
    bh_cu_back_add(at, size, mem, offset);
    return 0;
}

bool bh_cu_unmap(uint64_t at, uint64_t size)
{
    struct bh_cu_back back;
    bool any = false;
    while (bh_cu_back_take(at, size, &back)) {
        struct bh_cu_mem *mem = back.mem;
        bh_cu_mem_known(mem, false);
        (void)bh_cu_uvm(mem->uvm, UVM_FREE, back.base, back.size);
        bh_cu_mem_put(mem);
        any = true;
    }
    return any;
}
