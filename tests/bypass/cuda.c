/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - through the vendor's library, loaded in every way that a preloaded library would not see. */
#include "bypass.h"

#include "gpu/abi/cuda.h"
#include "gpu/abi/rm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS(X)                \
    X(cuInit)                   \
    X(cuDeviceGet)              \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxSetCurrent)          \
    X(cuMemAlloc_v2)            \
    X(cuMemAllocManaged)        \
    X(cuMemPrefetchAsync_v2)    \
    X(cuCtxSynchronize) X(cuMemCreate) X(cuMemRelease) X(cuMemExportToShareableHandle) X(cuDeviceGetAttribute)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
    CUdevice device;
    CUcontext ctx;
} cu;

static void must(int rc, const char *what)
{
    if (rc != CUDA_SUCCESS)
        bp_cannot("%s: CUDA error %d", what, rc);
}

static void start(void *library)
{
    if (!library)
        bp_cannot("no libcuda: %s", dlerror());
#define LOAD(name)                                                          \
    if (!(cu.name = (__typeof__(cu.name))(uintptr_t)dlsym(library, #name))) \
        bp_cannot("libcuda has no " #name);
    CALLS(LOAD)
#undef LOAD
    must(cu.cuInit(0), "cuInit");
    must(cu.cuDeviceGet(&cu.device, 0), "cuDeviceGet");
    must(cu.cuDevicePrimaryCtxRetain(&cu.ctx, cu.device), "a context");
    must(cu.cuCtxSetCurrent(cu.ctx), "cuCtxSetCurrent");
}

static int status_of(int rc)
{
    return rc == CUDA_ERROR_OUT_OF_MEMORY ? RM_NO_MEMORY : rc;
}

static int take_plain(void *arg, uint64_t bytes)
{
    CUdeviceptr at;
    (void)arg;
    return status_of(cu.cuMemAlloc_v2(&at, bytes));
}

static int fill_by(const char *how, void *library)
{
    start(library);
    (void)bp_fill(how, take_plain, NULL);
    return bp_hold();
}

static int plain(void)
{
    return fill_by("cuMemAlloc", dlopen("libcuda.so.1", RTLD_NOW));
}

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
    return __has_feature(address_sanitizer);
#else
    return false;
#endif
}

static int in_namespace(void)
{
    if (sanitized())
        bp_cannot("a sanitizer's library does not load twice");
    return fill_by("dlmopen", dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
}

/* ---- a copy under another name ---- */

/* Where the library is: found by a child, since whoever has it loaded would not load it again. */
static void find_library(char *path, size_t n)
{
    int said[2];
    if (pipe(said) < 0)
        bp_cannot("no pipe");
    pid_t child = fork();
    if (child == 0) {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY);
        void *symbol = library ? dlsym(library, "cuInit") : NULL;
        Dl_info info;
        if (symbol && dladdr(symbol, &info))
            (void)!write(said[1], info.dli_fname, strlen(info.dli_fname));
        _exit(0);
    }
    close(said[1]);
    ssize_t got = read(said[0], path, n - 1);
    (void)waitpid(child, NULL, 0);
    if (got <= 0)
        bp_cannot("libcuda.so.1 is not to be found");
    path[got] = '\0';
}

static int copy_library(void)
{
    char path[1024];
    struct stat st;
    find_library(path, sizeof(path));
    int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("other", 0);
    if (from < 0 || to < 0 || fstat(from, &st) < 0)
        bp_cannot("%s: %s", path, strerror(errno));
    for (off_t at = 0; at < st.st_size;)
        if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
            bp_cannot("copying libcuda: %s", strerror(errno));
    close(from);
    return to;
}

static int private_copy(void)
{
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", copy_library());
    return fill_by("a private copy of libcuda in memory",
                   dlopen(path, sanitized() ? RTLD_NOW : RTLD_NOW | RTLD_DEEPBIND));
}

/* ---- games with the loader ---- */

static const char *cap_text(void)
{
    static char text[24];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bp.cap);
    return text;
}

/* Simulated silicon is found by the environment; nothing else stays in it. */
static char **bare_environment(char *room[8])
{
    static const char *const kept[] = {"BULKHEAD_SIM", "LD_LIBRARY_PATH", "ASAN_OPTIONS"};
    static char lines[COUNT(kept)][1024];
    size_t n = 0;
    for (size_t i = 0; bp.sim && i < COUNT(kept); i++) {
        const char *value = getenv(kept[i]);
        if (!value)
            continue;
        (void)snprintf(lines[i], sizeof(lines[i]), "%s=%s", kept[i], value);
        room[n++] = lines[i];
    }
    room[n] = NULL;
    return room;
}

static int clear_environment(void)
{
    char *env[8];
    bp_how("environment cleared%s", bp.sim ? " but for what simulated silicon is found by" : "");
    execle(bp.self, bp.self, "cuda", cap_text(), (char *)NULL, bare_environment(env));
    bp_cannot("exec: %s", strerror(errno));
}

static int loaded_by(const char *variable)
{
    char path[64];
    if (sanitized())
        bp_cannot("a sanitizer's library must come first");
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), copy_library());
    (void)setenv(variable, path, 1);
    (void)setenv("LD_BIND_NOW", "1", 1);
    bp_how("%s names another libcuda", variable);
    execl(bp.self, bp.self, "cuda", cap_text(), (char *)NULL);
    bp_cannot("exec: %s", strerror(errno));
}

static int preload(void)
{
    return loaded_by("LD_PRELOAD");
}

static int audit(void)
{
    return loaded_by("LD_AUDIT");
}

/* ---- what the library can do that keeps memory elsewhere ---- */

static int take_managed(void *arg, uint64_t bytes)
{
    const CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, cu.device};
    CUdeviceptr at;
    (void)arg;
    int rc = cu.cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL);
    rc = rc ? rc : cu.cuMemPrefetchAsync_v2(at, bytes, where, 0, NULL);
    return status_of(rc ? rc : cu.cuCtxSynchronize());
}

static int cuda_managed(void)
{
    start(dlopen("libcuda.so.1", RTLD_NOW));
    (void)bp_fill("cuMemAllocManaged", take_managed, NULL);
    return bp_hold();
}

/* A handle that others can open, exported to a descriptor and released: the descriptor has it. */
static int take_exported(void *arg, uint64_t bytes)
{
    enum { POSIX_FD = 1 };
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .handle_types = POSIX_FD,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, cu.device}};
    CUmemGenericAllocationHandle handle;
    int fd;
    (void)arg;
    int rc = cu.cuMemCreate(&handle, bytes, &prop, 0);
    if (rc)
        return status_of(rc);
    rc = cu.cuMemExportToShareableHandle(&fd, handle, POSIX_FD, 0);
    (void)cu.cuMemRelease(handle);
    return status_of(rc);
}

static int cuda_export(void)
{
    start(dlopen("libcuda.so.1", RTLD_NOW));
    (void)bp_fill("cuMemCreate, exported to a descriptor, released", take_exported, NULL);
    return bp_hold();
}

/*
 * The library maps through the UVM file what it takes. Its own ioctl is this one, so the name of what it took is known
 * here, and is freed behind its back: the mapping, and with it the memory, stays.
 */
static struct {
    int fd;
    uint32_t client, object;
} taken;

#ifndef __SANITIZE_ADDRESS__ /* which has an ioctl of its own */
int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    const int rc = (int)syscall(SYS_ioctl, fd, request, arg);
    if (rc == 0 && (uint32_t)request == RM_IOC(RM_ALLOC, sizeof(struct rm_alloc))) {
        const struct rm_alloc *a = arg;
        if (a->status == RM_OK && a->class == RM_CLASS_MEMORY_LOCAL) {
            taken.fd = fd;
            taken.client = a->client;
            taken.object = a->object;
        }
    }
    return rc;
}
#endif

static int take_and_free_name(void *arg, uint64_t bytes)
{
    CUdeviceptr at;
    taken.object = 0;
    (void)arg;
    int rc = cu.cuMemAlloc_v2(&at, bytes);
    if (rc)
        return status_of(rc);
    struct rm_free f = {.client = taken.client, .object = taken.object};
    if (taken.object == 0 || syscall(SYS_ioctl, taken.fd, RM_IOC(RM_FREE, sizeof(f)), &f) < 0 ||
        f.status != RM_OK)
        bp_cannot("the library's own name for its memory was not found");
    return RM_OK;
}

static int cuda_keep(void)
{
    start(dlopen("libcuda.so.1", RTLD_NOW));
    (void)bp_fill("cuMemAlloc, its handle freed while the library maps it", take_and_free_name, NULL);
    return bp_hold();
}

/* Ordinary memory of the machine that the GPU may page by itself: it moves to the card when it is prefetched. */
static int take_pageable(void *arg, uint64_t bytes)
{
    const CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, cu.device};
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)arg;
    if (at == MAP_FAILED)
        return -errno;
    memset(at, 1, bytes);
    int rc = cu.cuMemPrefetchAsync_v2((uintptr_t)at, bytes, where, 0, NULL);
    return status_of(rc ? rc : cu.cuCtxSynchronize());
}

static int cuda_pageable(void)
{
    enum { PAGEABLE_MEMORY_ACCESS = 88 };
    int can = 0;
    start(dlopen("libcuda.so.1", RTLD_NOW));
    must(cu.cuDeviceGetAttribute(&can, PAGEABLE_MEMORY_ACCESS, cu.device), "an attribute");
    bp_how("pageable memory on the GPU: %s", can ? "on" : "off");
    if (can)
        (void)bp_fill("the machine's own memory, moved to the card", take_pageable, NULL);
    return bp_hold();
}

const struct bp_attempt bp_cuda[] = {
    {"cuda", plain, 0, "the vendor's library as any program uses it"},
    {"env-cleared", clear_environment, 0, "the environment cleared"},
    {"dlmopen", in_namespace, 0, "the library in a namespace of its own"},
    {"private-copy", private_copy, 0, "a private copy of the library in memory"},
    {"preload", preload, 0, "LD_PRELOAD"},
    {"audit", audit, 0, "LD_AUDIT"},
    {"cuda-managed", cuda_managed, 0, "managed memory through the library"},
    {"cuda-export", cuda_export, BP_REAL, "simulated silicon frees what a descriptor would keep"},
    {"cuda-keep", cuda_keep, BP_REAL, "simulated silicon's library makes no system call of its own"},
    {"cuda-pageable", cuda_pageable, BP_REAL, "simulated silicon pages nothing"},
    {0},
};
