/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - contents: copies and fills.
 *
 * The card's time goes to the stream as work; the bytes move when the call is made. A kernel has no effect on memory
 * here, so nobody can tell the difference. An address is the card's if a piece of memory is behind it, else the host's.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>

enum { STEP = 60 * 1024, HOST_BYTES_PER_NS = 25, DEVICE_BYTES_PER_NS = 1000 };

/* One end of a copy from here on: how many bytes in one piece, and whether the card has them. */
struct end {
    struct bh_cu_back back;
    bool device;
    uint64_t n;
};

static struct end end_at(uint64_t at, uint64_t n)
{
    struct end e = {.n = n};
    e.device = bh_cu_back_find(at, &e.back);
    if (e.device && e.back.base + e.back.size - at < n)
        e.n = e.back.base + e.back.size - at;
    return e;
}

/* Does the card know the whole stretch, and all of it have something behind it? Managed memory counts as used. */
static int device_check(CUcontext ctx, uint64_t at, uint64_t n)
{
    struct bh_cu_alloc a;
    if (!bh_cu_alloc_find(at, &a) || n > a.base + a.size - at)
        return CUDA_ERROR_INVALID_VALUE;
    if (a.what == BH_CU_MANAGED)
        return bh_cu_managed_touch(ctx, &a);
    for (uint64_t done = 0; a.what != BH_CU_PINNED && done < n;) {
        const struct end e = end_at(at + done, n - done);
        if (!e.device)
            return CUDA_ERROR_INVALID_VALUE;
        done += e.n;
    }
    return CUDA_SUCCESS;
}

static int read_in(const struct end *e, uint64_t at, void *to, uint64_t n)
{
    const struct bh_cu_mem *m = e->back.mem;
    return bh_sim_read(m->fd, m->client, m->handle, e->back.offset + at - e->back.base, to, n);
}

static int write_out(const struct end *e, uint64_t at, const void *from, uint64_t n)
{
    const struct bh_cu_mem *m = e->back.mem;
    return bh_sim_write(m->fd, m->client, m->handle, e->back.offset + at - e->back.base, from, n);
}

static int move(uint64_t to, uint64_t from, uint64_t n)
{
    char step[STEP];
    while (n > 0) {
        const struct end t = end_at(to, n), f = end_at(from, n);
        uint64_t part = t.n < f.n ? t.n : f.n;
        int rc = 0;
        if (t.device && f.device) {
            part = part < sizeof(step) ? part : sizeof(step);
            rc = read_in(&f, from, step, part);
            rc = rc < 0 ? rc : write_out(&t, to, step, part);
        } else if (t.device) {
            rc = write_out(&t, to, (const void *)(uintptr_t)from, part);
        } else if (f.device) {
            rc = read_in(&f, from, (void *)(uintptr_t)to, part);
        } else {
            memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, part);
        }
        if (rc < 0)
            return errno == EIO ? EIO : EFAULT;
        to += part;
        from += part;
        n -= part;
    }
    return 0;
}

/* What both ends are to the caller: a device's address, a host's, or whichever it turns out to be. */
enum side { HOST, DEVICE, EITHER };

static int copy(uint64_t to, enum side to_side, uint64_t from, enum side from_side, uint64_t n,
                CUstream given, bool wait)
{
    CUcontext ctx;
    CUstream s;
    struct bh_cu_alloc a;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, given, &s);
    if (rc || n == 0)
        return rc;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    if (to_side == DEVICE || (to_side == EITHER && bh_cu_alloc_find(to, &a)))
        rc = device_check(s->ctx, to, n);
    if (!rc && (from_side == DEVICE || (from_side == EITHER && bh_cu_alloc_find(from, &a))))
        rc = device_check(s->ctx, from, n);
    const bool inside = to_side == DEVICE && from_side == DEVICE;
    rc = rc ? rc : bh_cu_submit(s, n / (inside ? DEVICE_BYTES_PER_NS : HOST_BYTES_PER_NS), false);
    if (!rc && wait)
        rc = bh_cu_wait(s->ctx, s->channel, s->last);
    if (rc)
        return rc;
    const int error = move(to, from, n);
    return error == 0 ? CUDA_SUCCESS : bh_cu_fault(s->ctx, error);
}

static uint64_t host(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

int cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    BH_CU_CALL();
    return copy(to, EITHER, from, EITHER, bytes, NULL, true);
}

int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BH_CU_CALL();
    return copy(to, EITHER, from, EITHER, bytes, stream, false);
}

int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    BH_CU_CALL();
    return copy(to, DEVICE, host(from), HOST, bytes, NULL, true);
}
BH_CU_ALIAS(cuMemcpyHtoD, cuMemcpyHtoD_v2);

int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    BH_CU_CALL();
    return copy(host(to), HOST, from, DEVICE, bytes, NULL, true);
}
BH_CU_ALIAS(cuMemcpyDtoH, cuMemcpyDtoH_v2);

int cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    BH_CU_CALL();
    return copy(to, DEVICE, from, DEVICE, bytes, NULL, false);
}
BH_CU_ALIAS(cuMemcpyDtoD, cuMemcpyDtoD_v2);

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    BH_CU_CALL();
    return copy(to, DEVICE, host(from), HOST, bytes, stream, false);
}
BH_CU_ALIAS(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);

int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BH_CU_CALL();
    return copy(host(to), HOST, from, DEVICE, bytes, stream, false);
}
BH_CU_ALIAS(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);

int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BH_CU_CALL();
    return copy(to, DEVICE, from, DEVICE, bytes, stream, false);
}
BH_CU_ALIAS(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2);

/* --- fills --- */

/* `width` bytes of value, again and again. */
static void pattern(char *to, uint64_t n, uint32_t value, size_t width)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = (char)(value >> i % width * 8 & 0xff);
}

static int fill_bytes(uint64_t at, uint64_t n, uint32_t value, size_t width)
{
    char step[STEP];
    char first[4];
    pattern(first, sizeof(first), value, width);
    const bool even = first[0] == first[1] && first[0] == first[2] && first[0] == first[3];
    if (!even)
        pattern(step, sizeof(step), value, width);
    while (n > 0) {
        const struct end e = end_at(at, n);
        uint64_t part = e.n;
        int rc = 0;
        if (!e.device) {
            pattern((char *)(uintptr_t)at, part, value, width);
        } else if (even) {
            rc = bh_sim_fill(e.back.mem->fd, e.back.mem->client, e.back.mem->handle,
                             e.back.offset + at - e.back.base, (uint8_t)first[0], part);
        } else {
            part = part < sizeof(step) ? part : sizeof(step);
            rc = write_out(&e, at, step, part);
        }
        if (rc < 0)
            return errno == EIO ? EIO : EFAULT;
        at += part;
        n -= part;
    }
    return 0;
}

static int fill(uint64_t at, uint32_t value, size_t width, size_t n, CUstream given)
{
    CUcontext ctx;
    CUstream s;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, given, &s);
    if (rc || n == 0)
        return rc;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (at % width || n > SIZE_MAX / width)
        return CUDA_ERROR_INVALID_VALUE;
    rc = device_check(s->ctx, at, n * width);
    rc = rc ? rc : bh_cu_submit(s, n * width / DEVICE_BYTES_PER_NS, false);
    if (rc)
        return rc;
    const int error = fill_bytes(at, n * width, value, width);
    return error == 0 ? CUDA_SUCCESS : bh_cu_fault(s->ctx, error);
}

int cuMemsetD8_v2(CUdeviceptr at, uint8_t value, size_t n)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, NULL);
}
BH_CU_ALIAS(cuMemsetD8, cuMemsetD8_v2);

int cuMemsetD16_v2(CUdeviceptr at, uint16_t value, size_t n)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, NULL);
}
BH_CU_ALIAS(cuMemsetD16, cuMemsetD16_v2);

int cuMemsetD32_v2(CUdeviceptr at, uint32_t value, size_t n)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, NULL);
}
BH_CU_ALIAS(cuMemsetD32, cuMemsetD32_v2);

int cuMemsetD8Async(CUdeviceptr at, uint8_t value, size_t n, CUstream stream)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, stream);
}

int cuMemsetD16Async(CUdeviceptr at, uint16_t value, size_t n, CUstream stream)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, stream);
}

int cuMemsetD32Async(CUdeviceptr at, uint32_t value, size_t n, CUstream stream)
{
    BH_CU_CALL();
    return fill(at, value, sizeof(value), n, stream);
}
