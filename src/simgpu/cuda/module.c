/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c - images and the kernels in them.
 *
 * What a kernel computes is not simulated, only how long it takes (internal.h says how its name tells). Of an image
 * that is PTX text the entry points are known, so a name that is not there is refused as the vendor's library would.
 */
#include "simgpu/cuda/internal.h"

#include "base/str.h"

#include <fcntl.h>
#include <unistd.h>

enum { NAME_MAX_ = 256 };

struct CUfunc_st {
    CUmodule module;
    char name[NAME_MAX_];
    uint64_t ns;
    bool spin, fault;
};

struct CUmod_st {
    CUcontext ctx;
    char *text; /* NULL: an image that is not text */
    BH_VEC(CUfunction) functions;
};

/* --- names --- */

uint64_t bh_cu_kernel_ns(const char *name)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    const char *last = strrchr(name, '_');
    uint64_t n = 0;
    if (!last || !bh_is_digit(last[1]))
        return BH_CU_KERNEL_NS;
    for (last++; bh_is_digit(*last) && n < UINT32_MAX; last++)
        n = n * 10 + (uint64_t)(*last - '0');
    for (size_t i = 0; i < BH_COUNT_OF(units); i++)
        if (strcmp(last, units[i].unit) == 0)
            return n * units[i].ns;
    return BH_CU_KERNEL_NS;
}

static bool word_char(char c)
{
    return bh_is_alpha(c) || bh_is_digit(c) || c == '_' || c == '$';
}

/* `.entry name` somewhere in the text. */
static bool has_entry(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = text; (p = strstr(p, ".entry")) != NULL;) {
        p += strlen(".entry");
        while (bh_is_space(*p))
            p++;
        if (strncmp(p, name, n) == 0 && !word_char(p[n]))
            return true;
    }
    return false;
}

static bool is_text(const char *image)
{
    return bh_is_space(*image) || *image == '.' || *image == '/';
}

/* --- modules --- */

int cuModuleLoadData(CUmodule *ret, const void *image)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || !image)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    CUmodule m = bh_alloc(1, sizeof(*m));
    m->ctx = ctx;
    if (is_text(image)) {
        const size_t n = strlen(image);
        m->text = bh_alloc(n + 1, 1);
        memcpy(m->text, image, n);
    }
    bh_cu_handle_add(BH_CU_MODULE, m);
    *ret = m;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuModuleLoadFatBinary, cuModuleLoadData);

int cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned n, int *options, void **values)
{
    BH_CU_CALL();
    (void)n; /* how to compile what is not compiled */
    (void)options;
    (void)values;
    return cuModuleLoadData(ret, image);
}

int cuModuleLoad(CUmodule *ret, const char *path)
{
    BH_CU_CALL();
    enum { IMAGE_MAX = 64 << 20 };
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    struct {
        char *at;
        size_t n, cap;
    } image = {0};
    ssize_t got = 1;
    while (got > 0 && image.n < IMAGE_MAX) {
        image.at = image.n + 4097 <= image.cap ? image.at
                                               : bh_grow_(image.at, &image.cap, image.n + 4097, sizeof(char));
        got = read(fd, image.at + image.n, 4096);
        image.n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    image.at[image.n] = '\0';
    int rc = got == 0 && image.n ? cuModuleLoadData(ret, image.at) : CUDA_ERROR_INVALID_IMAGE;
    free(image.at);
    return rc;
}

int cuModuleUnload(CUmodule module)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_remove(BH_CU_MODULE, module))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < module->functions.n; i++) {
        bh_cu_handle_remove(BH_CU_FUNCTION, module->functions.at[i]);
        free(module->functions.at[i]);
    }
    bh_vec_fini(&module->functions);
    free(module->text);
    free(module);
    return CUDA_SUCCESS;
}

int cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret || !name)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_handle_ok(BH_CU_MODULE, module))
        return CUDA_ERROR_INVALID_HANDLE;
    if (*name == '\0' || strlen(name) >= NAME_MAX_ || (module->text && !has_entry(module->text, name)))
        return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&cu.lock);
    CUfunction f = NULL;
    for (size_t i = 0; i < module->functions.n && !f; i++)
        f = strcmp(module->functions.at[i]->name, name) == 0 ? module->functions.at[i] : NULL;
    const bool fresh = !f;
    if (fresh) {
        f = bh_alloc(1, sizeof(*f));
        *f = (struct CUfunc_st){.module = module,
                                .ns = bh_cu_kernel_ns(name),
                                .spin = strcmp(name, "spin") == 0,
                                .fault = strcmp(name, "fault") == 0};
        memcpy(f->name, name, strlen(name) + 1);
        *bh_vec_push(&module->functions) = f;
    }
    pthread_mutex_unlock(&cu.lock);
    if (fresh)
        bh_cu_handle_add(BH_CU_FUNCTION, f);
    *ret = f;
    return CUDA_SUCCESS;
}

/* There are no variables in a kernel that is a duration. */
int cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *ret_bytes, CUmodule module, const char *name)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    (void)ret;
    (void)ret_bytes;
    if (rc || !name)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return bh_cu_handle_ok(BH_CU_MODULE, module) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}
BH_CU_ALIAS(cuModuleGetGlobal, cuModuleGetGlobal_v2);

int cuModuleGetLoadingMode(int *ret)
{
    BH_CU_CALL();
    enum { LAZY = 2 };
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = LAZY;
    return CUDA_SUCCESS;
}

/* A library is a module that belongs to no context in particular, and its kernels are functions. */
int cuLibraryLoadData(CUlibrary *ret, const void *code, int *jit, void **jit_values, unsigned n_jit,
                      int *options, void **values, unsigned n)
{
    BH_CU_CALL();
    (void)jit;
    (void)jit_values;
    (void)n_jit;
    (void)options;
    (void)values;
    (void)n;
    return cuModuleLoadData((CUmodule *)ret, code);
}

int cuLibraryUnload(CUlibrary library)
{
    BH_CU_CALL();
    return cuModuleUnload((CUmodule)library);
}

int cuLibraryGetKernel(CUkernel *ret, CUlibrary library, const char *name)
{
    BH_CU_CALL();
    return cuModuleGetFunction((CUfunction *)ret, (CUmodule)library, name);
}

int cuLibraryGetModule(CUmodule *ret, CUlibrary library)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_handle_ok(BH_CU_MODULE, library))
        return CUDA_ERROR_INVALID_HANDLE;
    *ret = (CUmodule)library;
    return CUDA_SUCCESS;
}

static int find(CUfunction function)
{
    int rc = bh_cu_enter();
    return rc ? rc : bh_cu_handle_ok(BH_CU_FUNCTION, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int cuKernelGetFunction(CUfunction *ret, CUkernel kernel)
{
    BH_CU_CALL();
    int rc = find((CUfunction)kernel);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

/* --- functions --- */

int cuFuncGetAttribute(int *ret, int attribute, CUfunction function)
{
    BH_CU_CALL();
    enum { MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY };
    int rc = find(function);
    if (rc || !ret || attribute < 0 || attribute > 15)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const int version = function->module->ctx->device->ampere ? 80 : 90;
    const int values[16] = {[MAX_THREADS] = 1024, [REGISTERS] = 32, [PTX] = version, [BINARY] = version};
    *ret = values[attribute];
    return CUDA_SUCCESS;
}

int cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    BH_CU_CALL();
    int rc = find(function);
    return rc ? rc : attribute < 0 || attribute > 15 || value < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int cuFuncSetCacheConfig(CUfunction function, int config)
{
    BH_CU_CALL();
    int rc = find(function);
    return rc ? rc : config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int cuFuncGetModule(CUmodule *ret, CUfunction function)
{
    BH_CU_CALL();
    int rc = find(function);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = function->module;
    return CUDA_SUCCESS;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, CUfunction function, int block, size_t shared)
{
    BH_CU_CALL();
    int rc = find(function);
    (void)shared;
    if (rc || !ret || block <= 0 || block > 1024)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const int fit = 2048 / block;
    *ret = fit > 32 ? 32 : fit;
    return CUDA_SUCCESS;
}

/* The first parameter, if it was given in either way. */
static bool first_parameter(void **params, void **extra, uint64_t *ret)
{
    const void *from = params ? params[0] : NULL;
    for (size_t i = 0; !from && extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
        from = extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER ? extra[i + 1] : NULL;
    if (from)
        memcpy(ret, from, sizeof(*ret));
    return from;
}

int bh_cu_work_of(CUfunction function, void **params, void **extra, struct bh_cu_work *ret)
{
    int rc = find(function);
    if (rc)
        return rc;
    *ret = (struct bh_cu_work){.ns = function->ns, .fault = function->fault};
    if (function->spin && !first_parameter(params, extra, &ret->ns))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
