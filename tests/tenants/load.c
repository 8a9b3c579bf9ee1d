/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the driver library and a context, and small things that every verb needs. */
#include "tenant.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cuda cuda;

/*
 * `spin` does a fixed amount of work that takes about `ns` nanoseconds on a Hopper card that runs alone: a chain of
 * multiplications that wait for each other, 64 to a round. It does not look at a clock, so that a share of the card
 * shows in how long it takes. `fault` writes where nothing is.
 */
#define FMA2  "fma.rn.f32 %a, %a, %b, %b;\n fma.rn.f32 %a, %a, %b, %b;\n"
#define FMA8  FMA2 FMA2 FMA2 FMA2
#define FMA64 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8
static const char ptx[] = ".version 7.0\n"
                          ".target sm_80\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 ns)\n"
                          "{\n"
                          " .reg .u64 %n;\n"
                          " .reg .f32 %a, %b;\n"
                          " .reg .pred %p;\n"
                          " ld.param.u64 %n, [ns];\n"
                          " shr.u64 %n, %n, 7;\n"
                          " cvt.rn.f32.u64 %b, %n;\n"
                          " mov.f32 %a, 0f3F800000;\n"
                          "again:\n" FMA64 " setp.eq.u64 %p, %n, 0;\n"
                          " @%p bra done;\n"
                          " sub.u64 %n, %n, 1;\n"
                          " bra again;\n"
                          "done:\n"
                          " setp.eq.f32 %p, %a, 0f00000001;\n" /* never, but nobody can know that */
                          " @%p trap;\n"
                          " ret;\n"
                          "}\n"
                          ".visible .entry fault()\n"
                          "{\n"
                          " .reg .u64 %at;\n"
                          " .reg .u32 %v;\n"
                          " mov.u64 %at, 8;\n"
                          " mov.u32 %v, 1;\n"
                          " st.global.u32 [%at], %v;\n"
                          " ret;\n"
                          "}\n";

const char *tenant_error(int rc)
{
    const char *name = NULL;
    return cuda.cuGetErrorName && cuda.cuGetErrorName(rc, &name) == 0 && name ? name : "unknown";
}

void tenant_must(int rc, const char *call)
{
    if (rc == CUDA_SUCCESS)
        return;
    fflush(stdout);
    fprintf(stderr, "tenant: %s: %d %s\n", call, rc, tenant_error(rc));
    exit(1);
}

static void load(void)
{
    const char *missing = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "tenant: %s\n", dlerror());
        exit(1);
    }
#define FIND(name)                                            \
    cuda.name = (__typeof__(cuda.name))dlsym(library, #name); \
    missing = cuda.name ? missing : #name;
    TENANT_CALLS(FIND)
#undef FIND
    if (missing) {
        fprintf(stderr, "tenant: libcuda.so.1 has no %s\n", missing);
        exit(1);
    }
}

void tenant_open(struct tenant *t, int ordinal)
{
    load();
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &t->device, ordinal);
    MUST(cuDeviceGetAttribute, &t->sms, CU_ATTR_MULTIPROCESSOR_COUNT, t->device);
    MUST(cuDevicePrimaryCtxRetain, &t->ctx, t->device);
    MUST(cuCtxSetCurrent, t->ctx);
    MUST(cuModuleLoadData, &t->module, ptx);
    MUST(cuModuleGetFunction, &t->spin, t->module, "spin");
    MUST(cuModuleGetFunction, &t->fault, t->module, "fault");
}

int tenant_spin(const struct tenant *t, uint64_t ns, CUstream stream)
{
    void *params[] = {&ns};
    return cuda.cuLaunchKernel(t->spin, (unsigned)t->sms, 1, 1, 128, 1, 1, 0, stream, params, NULL);
}

bool tenant_number(const char *text, uint64_t *ret)
{
    uint64_t n = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > UINT64_MAX / 10 - 1)
            return false;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *ret = n;
    return true;
}

bool tenant_size(const char *text, uint64_t *ret)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"KiB", 1024}, {"MiB", MIB}, {"GiB", GIB}};
    char digits[24];
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (!tenant_number(digits, ret))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(text + n, units[i].unit) == 0 && *ret <= UINT64_MAX / units[i].bytes) {
            *ret *= units[i].bytes;
            return true;
        }
    return text[n] == '\0';
}

uint64_t tenant_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* splitmix64 */
uint64_t tenant_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
