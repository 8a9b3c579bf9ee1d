/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_cuda.c - what CUDA's own calls take in this process: run it with the gate and without, and compare.
 *
 *     gate_cuda serve     a context; then, for each line of input, one line of samples in nanoseconds
 *                             launch N   N empty kernels, in lots of 1000: each lot's time over its kernels
 *                             alloc N    N times cuMemAlloc of 2 MiB; `free N` the cuMemFree that followed each
 *     gate_cuda start     cuInit and a context, and how long that took
 *     gate_cuda crowd N   N processes that do this at once, and how long until the last of them had its context
 *
 * The same binary on a real GPU and on simulated silicon. tools/h200-gate compiles and runs it; nothing here judges.
 */
#include "gpu/abi/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOT = 1000, ALLOCS_MAX = 100000, CROWD_MAX = 512 };
#define PIECE (UINT64_C(2) << 20)

#define CALLS(X)                \
    X(cuInit)                   \
    X(cuDeviceGet)              \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxSetCurrent)          \
    X(cuCtxSynchronize)         \
    X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
} cuda;

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty()\n{\n ret;\n}\n";

static void must(int rc, const char *call)
{
    if (rc == CUDA_SUCCESS)
        return;
    fprintf(stderr, "gate_cuda: %s: %d\n", call, rc);
    exit(1);
}
#define MUST(name, ...) must(cuda.name(__VA_ARGS__), #name)

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void context(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUdevice device;
    CUcontext ctx;
    if (!library) {
        fprintf(stderr, "gate_cuda: %s\n", dlerror());
        exit(1);
    }
#define FIND(name)                                            \
    cuda.name = (__typeof__(cuda.name))dlsym(library, #name); \
    must(cuda.name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, #name);
    CALLS(FIND)
#undef FIND
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &device, 0);
    MUST(cuDevicePrimaryCtxRetain, &ctx, device);
    MUST(cuCtxSetCurrent, ctx);
}

static void launch(CUfunction empty, unsigned n)
{
    printf("launch");
    for (unsigned done = 0; done < n; done += LOT) {
        const uint64_t from = now_ns();
        for (unsigned i = 0; i < LOT; i++)
            MUST(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        MUST(cuCtxSynchronize);
        printf(" %.1f", (double)(now_ns() - from) / LOT);
    }
    printf("\n");
}

static void alloc(unsigned n)
{
    static uint32_t took[2][ALLOCS_MAX];
    CUdeviceptr at;
    n = n < ALLOCS_MAX ? n : ALLOCS_MAX;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t a = now_ns();
        MUST(cuMemAlloc_v2, &at, PIECE);
        const uint64_t b = now_ns();
        MUST(cuMemFree_v2, at);
        took[0][i] = (uint32_t)(b - a);
        took[1][i] = (uint32_t)(now_ns() - b);
    }
    for (int k = 0; k < 2; k++) {
        printf(k ? "free" : "alloc");
        for (unsigned i = 0; i < n; i++)
            printf(" %u", took[k][i]);
        printf("\n");
    }
}

static unsigned number(const char *text)
{
    unsigned n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (unsigned)(*text - '0');
    return n;
}

static int serve(void)
{
    CUmodule module;
    CUfunction empty;
    char line[64];
    context();
    MUST(cuModuleLoadData, &module, ptx);
    MUST(cuModuleGetFunction, &empty, module, "empty");
    printf("ready\n");
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "launch ", 7) == 0)
            launch(empty, number(line + 7));
        else if (strncmp(line, "alloc ", 6) == 0)
            alloc(number(line + 6));
        else
            return 2;
        (void)fflush(stdout);
    }
    return 0;
}

static int start(void)
{
    const uint64_t from = now_ns();
    context();
    printf("start %llu\n", (unsigned long long)(now_ns() - from));
    return 0;
}

/* A byte for each that has its context; they stay until the last one has. */
static void one_of_crowd(int go, int say, int stay)
{
    char byte;
    if (read(go, &byte, 1) != 0) /* the end of it is the signal */
        _exit(1);
    context();
    if (write(say, "x", 1) != 1 || read(stay, &byte, 1) != 0)
        _exit(1);
    _exit(0);
}

static int crowd(unsigned n)
{
    static pid_t pids[CROWD_MAX];
    int go[2], say[2], stay[2], status, failed = 0;
    unsigned up = 0;
    char byte;
    n = n < CROWD_MAX ? n : CROWD_MAX;
    if (pipe(go) < 0 || pipe(say) < 0 || pipe(stay) < 0)
        return 1;
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(go[1]);
            close(say[0]);
            close(stay[1]);
            one_of_crowd(go[0], say[1], stay[0]);
        }
        failed += pids[i] < 0;
    }
    close(say[1]);
    const uint64_t from = now_ns();
    close(go[1]);
    while (up < n && read(say[0], &byte, 1) == 1)
        up++;
    const uint64_t all = now_ns();
    close(stay[1]);
    for (unsigned i = 0; i < n; i++)
        failed += pids[i] > 0 && (waitpid(pids[i], &status, 0) < 0 || status != 0);
    printf("up %u\nfailed %d\nall %llu\nend %llu\n", up, failed, (unsigned long long)(all - from),
           (unsigned long long)(now_ns() - from));
    return failed != 0 || up != n;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc == 2 && strcmp(argv[1], "start") == 0)
        return start();
    if (argc == 3 && strcmp(argv[1], "crowd") == 0)
        return crowd(number(argv[2]));
    fprintf(stderr, "usage: gate_cuda serve | start | crowd N\n");
    return 2;
}
