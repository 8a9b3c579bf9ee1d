/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - kernels become work on a stream's channel. */
#include "simgpu/cuda/internal.h"

/* A grid or block that no card takes. */
static bool fits(const unsigned grid[3], const unsigned block[3], unsigned shared)
{
    enum { THREADS_MAX = 1024, SHARED_MAX = 232448 };
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    return grid[0] && grid[1] && grid[2] && grid[1] <= 65535 && grid[2] <= 65535 && grid[0] <= INT32_MAX &&
           threads && threads <= THREADS_MAX && block[2] <= 64 && shared <= SHARED_MAX;
}

static int launch(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                  CUstream given, void **params, void **extra)
{
    CUcontext ctx;
    CUstream s;
    struct bh_cu_work work;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, given, &s);
    rc = rc ? rc : bh_cu_work_of(function, params, extra, &work);
    if (rc)
        return rc;
    if (!fits(grid, block, shared))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        bh_cu_capture_kernel(s->capture, work);
        return CUDA_SUCCESS;
    }
    return bh_cu_submit(s, work.ns, work.fault);
}

int cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    BH_CU_CALL();
    return launch(function, (const unsigned[]){gx, gy, gz}, (const unsigned[]){bx, by, bz}, shared, stream,
                  params, extra);
}

int cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    BH_CU_CALL();
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(function, config->grid, config->block, config->shared_bytes, config->stream, params, extra);
}

int cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params)
{
    BH_CU_CALL();
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

/* The caller is held up until it is the function's turn; the order is what counts. */
int cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
    BH_CU_CALL();
    CUcontext ctx;
    CUstream s;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, stream, &s);
    if (rc || !fn)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    rc = bh_cu_wait(s->ctx, s->channel, s->last);
    if (!rc)
        fn(arg);
    return rc;
}
