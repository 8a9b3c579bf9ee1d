/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - the vendor's library, loaded at run time, and what is done with it. */
#include "scrub/card.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS(X)                \
    X(cuInit)                   \
    X(cuDeviceGetCount)         \
    X(cuDeviceGet)              \
    X(cuDeviceGetUuid_v2)       \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxSetCurrent)          \
    X(cuCtxSynchronize)         \
    X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemsetD8_v2) X(cuMemcpyDtoH_v2)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
} cuda;

enum { PROBE = 64 };

static int load(struct bh_err *err)
{
    const char *named = getenv("BULKHEAD_CUDA");
    const char *path = named && *named ? named : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return bh_fail(err, BH_NOT_FOUND, "%s", dlerror());
    const struct {
        const char *name;
        void *to;
    } calls[] = {
#define ENTRY(name) {#name, &cuda.name},
        CALLS(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        void *at = dlsym(library, calls[i].name);
        if (!at)
            return bh_fail(err, BH_REFUSED, "%.200s has no %s", path, calls[i].name);
        memcpy(calls[i].to, &at, sizeof(at));
    }
    return BH_OK;
}

static int failed(struct bh_err *err, const char *call, int result)
{
    return bh_fail(err, BH_SYSTEM, "%s: CUDA error %d", call, result);
}

/* `GPU-6f1c...` as the library's sixteen bytes are spelt. */
static bool bears(CUdevice device, const char *uuid)
{
    CUuuid id;
    char text[64];
    unsigned char b[16];
    if (cuda.cuDeviceGetUuid_v2(&id, device) != CUDA_SUCCESS)
        return false;
    memcpy(b, &id, sizeof(b));
    (void)snprintf(text, sizeof(text), "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
    const char *dash = strchr(uuid, '-');
    return dash && strcmp(dash + 1, text) == 0;
}

static int find(const char *uuid, CUdevice *ret, struct bh_err *err)
{
    int n = 0;
    const int rc = cuda.cuDeviceGetCount(&n);
    if (rc != CUDA_SUCCESS)
        return failed(err, "cuDeviceGetCount", rc);
    for (int i = 0; i < n; i++)
        if (cuda.cuDeviceGet(ret, i) == CUDA_SUCCESS && bears(*ret, uuid))
            return BH_OK;
    return bh_fail(err, BH_NOT_FOUND, "none of %d GPUs is %.90s", n, uuid);
}

int bh_scrub_open(const char *uuid, struct bh_scrub_card *ret, struct bh_err *err)
{
    CUdevice device;
    CUcontext context;
    size_t left = 0, total = 0;
    *ret = (struct bh_scrub_card){0};
    /* The others may be full, and are nobody's business here. */
    int rc = setenv("CUDA_VISIBLE_DEVICES", uuid, 1) < 0 ? bh_fail(err, BH_SYSTEM, "no room for a variable")
                                                         : load(err);
    if (rc < 0)
        return rc;
    int result = cuda.cuInit(0);
    if (result != CUDA_SUCCESS)
        return failed(err, "cuInit", result);
    rc = find(uuid, &device, err);
    if (rc < 0)
        return rc;
    result = cuda.cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS)
        result = cuda.cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS)
        result = cuda.cuMemGetInfo_v2(&left, &total);
    ret->total_bytes = total;
    return result == CUDA_SUCCESS ? BH_OK : failed(err, "a context", result);
}

void bh_scrub_take(struct bh_scrub_card *c, uint64_t most)
{
    for (uint64_t bytes = UINT64_C(4) << 30; bytes >= BH_SCRUB_PAGE; bytes /= 2)
        for (;;) {
            struct bh_scrub_piece p = {.bytes = bytes};
            if (c->held_bytes + bytes > most || cuda.cuMemAlloc_v2(&p.at, bytes) != CUDA_SUCCESS)
                break;
            *bh_vec_push(&c->pieces) = p;
            c->held_bytes += bytes;
        }
}

static int fill_one(const struct bh_scrub_piece *p, uint8_t byte, struct bh_err *err)
{
    int result = cuda.cuMemsetD8_v2(p->at, byte, p->bytes);
    if (result == CUDA_SUCCESS)
        result = cuda.cuCtxSynchronize();
    return result == CUDA_SUCCESS ? BH_OK : failed(err, "writing the card's memory", result);
}

int bh_scrub_fill(const struct bh_scrub_card *c, uint8_t byte, struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < c->pieces.n; i++)
        rc = fill_one(&c->pieces.at[i], byte, err);
    return rc;
}

/* Where in a page is looked: not always at its beginning, which something may have written first. */
static uint64_t offset_in(uint64_t page)
{
    return page * UINT64_C(0x9e3779b97f4a7c15) % (BH_SCRUB_PAGE / PROBE) * PROBE;
}

/* all: every byte must be that one, else not all of them may be. */
static int look(const struct bh_scrub_piece *p, uint8_t byte, bool all, struct bh_scrub_seen *seen,
                struct bh_err *err)
{
    uint8_t bytes[PROBE];
    for (uint64_t at = 0; at < p->bytes; at += BH_SCRUB_PAGE) {
        const int result = cuda.cuMemcpyDtoH_v2(bytes, p->at + at + offset_in(seen->pages), sizeof(bytes));
        if (result != CUDA_SUCCESS)
            return failed(err, "reading the card's memory", result);
        size_t same = 0;
        for (size_t k = 0; k < sizeof(bytes); k++)
            same += bytes[k] == byte;
        seen->wrong += all ? same < sizeof(bytes) : same == sizeof(bytes);
        seen->pages++;
    }
    return BH_OK;
}

int bh_scrub_wash(const struct bh_scrub_card *c, uint8_t canary, bool overwrite, struct bh_scrub_seen *ret,
                  struct bh_err *err)
{
    int rc = BH_OK;
    *ret = (struct bh_scrub_seen){0};
    for (size_t i = 0; rc == BH_OK && i < c->pieces.n; i++) {
        rc = fill_one(&c->pieces.at[i], canary, err);
        if (rc == BH_OK && overwrite)
            rc = fill_one(&c->pieces.at[i], 0, err);
        if (rc == BH_OK)
            rc = look(&c->pieces.at[i], 0, true, ret, err);
    }
    return rc;
}

int bh_scrub_search(const struct bh_scrub_card *c, uint8_t byte, struct bh_scrub_seen *ret,
                    struct bh_err *err)
{
    int rc = BH_OK;
    *ret = (struct bh_scrub_seen){0};
    for (size_t i = 0; rc == BH_OK && i < c->pieces.n; i++)
        rc = look(&c->pieces.at[i], byte, false, ret, err);
    return rc;
}
