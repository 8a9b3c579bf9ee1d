/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - suspending another process: nothing here can do it, and says so. */
#include "simgpu/cuda/internal.h"

#define REFUSE(name, type)               \
    int name(int pid, type at)           \
    {                                    \
        (void)pid;                       \
        (void)at;                        \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }

REFUSE(cuCheckpointProcessLock, void *)
REFUSE(cuCheckpointProcessUnlock, void *)
REFUSE(cuCheckpointProcessCheckpoint, void *)
REFUSE(cuCheckpointProcessRestore, void *)
REFUSE(cuCheckpointProcessGetState, int *)
REFUSE(cuCheckpointProcessGetRestoreThreadId, int *)
