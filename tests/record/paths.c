/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.c - one process that walks every way to obtain memory and to run work on a GPU, for bulkhead-record.
 *
 *     paths              everything, each part behind a mark
 *     paths mps-client   start, one allocation, launches, end
 *     paths ipc-import H the second process of the IPC part; H is the handle's bytes in hexadecimal
 *
 * The driver library is loaded at run time and its few prototypes are written out here: no CUDA header is
 * needed. A call that fails is printed with its number and the walk goes on, so that one missing feature does
 * not cost the rest.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK 0xb01c3eadul
#define MIB  ((size_t)1 << 20)

enum {
    DEVICE_LOCATION = 1,
    PINNED = 1,
    READ_WRITE = 3,
    ATTACH_GLOBAL = 1,
    FORMAT_FLOAT = 0x20,
    NON_BLOCKING = 1,
    LAZY_PEER = 1,
    LIMIT_HEAP = 2,
    IPC_BYTES = 64,
};

struct location {
    int type, id;
};
struct allocation { /* CUmemAllocationProp */
    int type, handles;
    struct location location;
    void *security;
    unsigned char flags[8];
};
struct pool { /* CUmemPoolProps */
    int type, handles;
    struct location location;
    void *security;
    size_t max;
    unsigned short usage;
    unsigned char reserved[54];
};
struct access {
    struct location location;
    int flags;
};
struct array {
    size_t width, height;
    int format;
    unsigned channels;
};
struct array3d {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};
struct kernel_node {
    void *function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel, *context;
};
struct alloc_node {
    struct pool pool;
    const struct access *access;
    size_t n_access, bytes;
    uint64_t at;
};
struct ipc {
    char bytes[IPC_BYTES];
};
_Static_assert(sizeof(struct allocation) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(struct pool) == 88, "CUmemPoolProps");
_Static_assert(sizeof(struct kernel_node) == 72, "CUDA_KERNEL_NODE_PARAMS_v2");
_Static_assert(sizeof(struct alloc_node) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");

static const char PTX[] = ".version 7.0\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".visible .entry nothing()\n"
                          "{\n"
                          "    ret;\n"
                          "}\n"
                          ".visible .entry spin(.param .u64 ns)\n"
                          "{\n"
                          "    .reg .u64 %t<3>;\n"
                          "    .reg .pred %p;\n"
                          "    ld.param.u64 %t0, [ns];\n"
                          "    mov.u64 %t1, %globaltimer;\n"
                          "    add.u64 %t1, %t1, %t0;\n"
                          "again:\n"
                          "    mov.u64 %t2, %globaltimer;\n"
                          "    setp.lt.u64 %p, %t2, %t1;\n"
                          "    @%p bra again;\n"
                          "    ret;\n"
                          "}\n";

static void *library;
static int failures;
static const char *part = "";

static void mark(const char *name)
{
    part = name;
    (void)ioctl(-1, MARK, name);
}

/* The name as given, or without its version. */
static void *find(const char *name)
{
    char plain[64];
    size_t n = strlen(name);
    void *at = dlsym(library, name);
    if (at || n < 4 || n >= sizeof(plain) || strncmp(name + n - 3, "_v", 2) != 0)
        return at;
    memcpy(plain, name, n - 3);
    plain[n - 3] = '\0';
    return dlsym(library, plain);
}

static int check(const char *name, int rc)
{
    if (rc) {
        fprintf(stderr, "%s: %s: %d\n", part, name, rc);
        failures++;
    }
    return rc;
}

#define CALL(name, types, ...) \
    (find(#name) ? check(#name, ((int(*) types)find(#name))(__VA_ARGS__)) : check(#name " is missing", -1))

struct walk {
    int device;
    void *context, *module, *nothing, *spin;
};

static int start(struct walk *w)
{
    mark("start");
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "paths: %s\n", dlerror());
        return -1;
    }
    if (CALL(cuInit, (unsigned), 0) || CALL(cuDeviceGet, (int *, int), &w->device, 0) ||
        CALL(cuDevicePrimaryCtxRetain, (void **, int), &w->context, w->device))
        return -1;
    return CALL(cuCtxSetCurrent, (void *), w->context);
}

static void plain(const char *name, size_t bytes, int n)
{
    uint64_t at[4] = {0};
    mark(name);
    for (int i = 0; i < n; i++)
        CALL(cuMemAlloc_v2, (uint64_t *, size_t), &at[i], bytes);
    char freeing[64];
    snprintf(freeing, sizeof(freeing), "free%s", strchr(name, '-'));
    mark(freeing);
    for (int i = 0; i < n; i++)
        CALL(cuMemFree_v2, (uint64_t), at[i]);
}

static void info(void)
{
    size_t left, total;
    mark("info");
    CALL(cuMemGetInfo_v2, (size_t *, size_t *), &left, &total);
}

static void pitch(void)
{
    uint64_t at = 0;
    size_t width;
    mark("pitch");
    if (!CALL(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned), &at, &width, 5000, 1000,
              4))
        CALL(cuMemFree_v2, (uint64_t), at);
}

static void arrays(void)
{
    struct array a = {4096, 1024, FORMAT_FLOAT, 1};
    struct array3d b = {256, 256, 64, FORMAT_FLOAT, 1, 0};
    void *array = NULL;
    mark("array");
    if (!CALL(cuArrayCreate_v2, (void **, const struct array *), &array, &a))
        CALL(cuArrayDestroy, (void *), array);
    mark("array3d");
    if (!CALL(cuArray3DCreate_v2, (void **, const struct array3d *), &array, &b))
        CALL(cuArrayDestroy, (void *), array);
}

static void vmm(const struct walk *w)
{
    struct allocation prop = {.type = PINNED, .location = {DEVICE_LOCATION, w->device}};
    struct access access = {prop.location, READ_WRITE};
    size_t bytes = 32 * MIB;
    uint64_t at = 0, handle = 0;
    mark("vmm");
    if (CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &at, bytes, 0,
             0, 0))
        return;
    if (!CALL(cuMemCreate, (uint64_t *, size_t, const struct allocation *, unsigned long long), &handle,
              bytes, &prop, 0)) {
        CALL(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long), at, bytes, 0, handle, 0);
        CALL(cuMemSetAccess, (uint64_t, size_t, const struct access *, size_t), at, bytes, &access, 1);
        mark("vmm-release");
        CALL(cuMemRelease, (uint64_t), handle);
        CALL(cuMemUnmap, (uint64_t, size_t), at, bytes);
    }
    CALL(cuMemAddressFree, (uint64_t, size_t), at, bytes);
}

static void pools(const struct walk *w)
{
    struct pool props = {.type = PINNED, .location = {DEVICE_LOCATION, w->device}};
    uint64_t at = 0;
    void *pool = NULL;
    mark("pool");
    if (!CALL(cuMemAllocAsync, (uint64_t *, size_t, void *), &at, 8 * MIB, NULL))
        CALL(cuMemFreeAsync, (uint64_t, void *), at, NULL);
    CALL(cuStreamSynchronize, (void *), NULL);
    mark("own-pool");
    if (CALL(cuMemPoolCreate, (void **, const struct pool *), &pool, &props))
        return;
    if (!CALL(cuMemAllocFromPoolAsync, (uint64_t *, size_t, void *, void *), &at, 8 * MIB, pool, NULL))
        CALL(cuMemFreeAsync, (uint64_t, void *), at, NULL);
    CALL(cuStreamSynchronize, (void *), NULL);
    CALL(cuMemPoolDestroy, (void *), pool);
}

static void managed(void)
{
    uint64_t at = 0;
    mark("managed");
    if (CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &at, 16 * MIB, ATTACH_GLOBAL))
        return;
    CALL(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), at, 1, 16 * MIB);
    CALL(cuCtxSynchronize, (void));
    mark("managed-free");
    CALL(cuMemFree_v2, (uint64_t), at);
}

static void host(void)
{
    void *at = NULL;
    mark("host");
    if (!CALL(cuMemAllocHost_v2, (void **, size_t), &at, 4 * MIB))
        CALL(cuMemFreeHost, (void *), at);
    at = aligned_alloc(4096, 4 * MIB);
    if (!at)
        return;
    memset(at, 0, 4 * MIB);
    mark("register");
    if (!CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), at, 4 * MIB, 0))
        CALL(cuMemHostUnregister, (void *), at);
    free(at);
}

static void launch(void *function, void **params)
{
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
          void **),
         function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static void kernels(struct walk *w)
{
    uint64_t ns = 1000000;
    void *params[] = {&ns};
    mark("module");
    if (CALL(cuModuleLoadData, (void **, const void *), &w->module, PTX))
        return;
    CALL(cuModuleGetFunction, (void **, void *, const char *), &w->nothing, w->module, "nothing");
    CALL(cuModuleGetFunction, (void **, void *, const char *), &w->spin, w->module, "spin");
    mark("launch");
    for (int i = 0; i < 100; i++)
        launch(w->nothing, NULL);
    CALL(cuCtxSynchronize, (void));
    mark("spin");
    launch(w->spin, params);
    CALL(cuCtxSynchronize, (void));
}

static void streams(void)
{
    void *stream = NULL, *event = NULL;
    mark("stream");
    if (!CALL(cuStreamCreate, (void **, unsigned), &stream, NON_BLOCKING))
        CALL(cuStreamDestroy_v2, (void *), stream);
    mark("event");
    if (CALL(cuEventCreate, (void **, unsigned), &event, 0))
        return;
    CALL(cuEventRecord, (void *, void *), event, NULL);
    CALL(cuEventSynchronize, (void *), event);
    CALL(cuEventDestroy_v2, (void *), event);
}

static void run_graph(void *graph, int times)
{
    void *exec = NULL;
    if (!CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &exec, graph, 0)) {
        for (int i = 0; i < times; i++)
            CALL(cuGraphLaunch, (void *, void *), exec, NULL);
        CALL(cuCtxSynchronize, (void));
        CALL(cuGraphExecDestroy, (void *), exec);
    }
    CALL(cuGraphDestroy, (void *), graph);
}

static void graphs(const struct walk *w)
{
    struct kernel_node k = {.function = w->nothing, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    struct alloc_node a = {.pool = {.type = PINNED, .location = {DEVICE_LOCATION, w->device}},
                           .bytes = 8 * MIB};
    struct access access = {a.pool.location, READ_WRITE};
    void *graph = NULL, *node[3] = {NULL};
    mark("graph");
    if (w->nothing && !CALL(cuGraphCreate, (void **, unsigned), &graph, 0)) {
        for (int i = 0; i < 3; i++)
            CALL(cuGraphAddKernelNode_v2,
                 (void **, void *, const void *const *, size_t, const struct kernel_node *), &node[i], graph,
                 i ? (const void *const *)&node[i - 1] : NULL, i > 0, &k);
        run_graph(graph, 10);
    }
    mark("graph-memory");
    a.access = &access;
    a.n_access = 1;
    if (CALL(cuGraphCreate, (void **, unsigned), &graph, 0))
        return;
    if (!CALL(cuGraphAddMemAllocNode, (void **, void *, const void *const *, size_t, struct alloc_node *),
              &node[0], graph, NULL, 0, &a))
        CALL(cuGraphAddMemFreeNode, (void **, void *, const void *const *, size_t, uint64_t), &node[1], graph,
             (const void *const *)&node[0], 1, a.at);
    run_graph(graph, 2);
}

static void ipc(const char *self)
{
    struct ipc handle;
    char text[2 * IPC_BYTES + 1];
    uint64_t at = 0;
    mark("ipc-export");
    if (CALL(cuMemAlloc_v2, (uint64_t *, size_t), &at, 2 * MIB))
        return;
    if (!CALL(cuIpcGetMemHandle, (struct ipc *, uint64_t), &handle, at)) {
        for (int i = 0; i < IPC_BYTES; i++)
            snprintf(text + 2 * i, 3, "%02x", (unsigned)(unsigned char)handle.bytes[i]);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            execl(self, self, "ipc-import", text, (char *)NULL);
            _exit(127);
        }
        int status = 0;
        if (child > 0 && (waitpid(child, &status, 0) != child || status))
            check("the importing process", status);
    }
    mark("ipc-end");
    CALL(cuMemFree_v2, (uint64_t), at);
}

static unsigned nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static int ipc_import(const char *text)
{
    struct walk w = {0};
    struct ipc handle;
    uint64_t at = 0;
    if (strlen(text) != 2 * IPC_BYTES || start(&w))
        return 1;
    for (int i = 0; i < IPC_BYTES; i++)
        handle.bytes[i] = (char)(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
    mark("ipc-import");
    if (!CALL(cuIpcOpenMemHandle_v2, (uint64_t *, struct ipc, unsigned), &at, handle, LAZY_PEER))
        CALL(cuIpcCloseMemHandle, (uint64_t), at);
    mark("ipc-import-end");
    CALL(cuDevicePrimaryCtxRelease_v2, (int), w.device);
    return failures != 0;
}

static void contexts(const struct walk *w)
{
    void *second = NULL;
    mark("second-context");
    if (!CALL(cuCtxCreate_v2, (void **, unsigned, int), &second, 0, w->device)) {
        mark("second-context-end");
        CALL(cuCtxDestroy_v2, (void *), second);
    }
    CALL(cuCtxSetCurrent, (void *), w->context);
    mark("heap-limit");
    CALL(cuCtxSetLimit, (int, size_t), LIMIT_HEAP, 64 * MIB);
}

static void end(const struct walk *w)
{
    mark("end");
    if (w->module)
        CALL(cuModuleUnload, (void *), w->module);
    CALL(cuDevicePrimaryCtxRelease_v2, (int), w->device);
}

int main(int argc, char **argv)
{
    struct walk w = {0};
    if (argc == 3 && strcmp(argv[1], "ipc-import") == 0)
        return ipc_import(argv[2]);
    int short_walk = argc == 2 && strcmp(argv[1], "mps-client") == 0;
    if (argc > 1 && !short_walk) {
        fprintf(stderr, "usage: paths [mps-client | ipc-import HANDLE]\n");
        return 2;
    }
    if (start(&w))
        return 1;
    info();
    if (!short_walk)
        plain("alloc-64m", 64 * MIB, 1);
    plain("alloc-2m", 2 * MIB, 1);
    if (!short_walk) {
        plain("alloc-small", 4096, 2);
        pitch();
        arrays();
        vmm(&w);
        pools(&w);
        managed();
        host();
    }
    kernels(&w);
    if (!short_walk) {
        streams();
        graphs(&w);
        ipc("/proc/self/exe");
        contexts(&w);
    }
    end(&w);
    fprintf(stderr, "paths: %d calls failed\n", failures);
    return failures != 0;
}
