/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - the library's own client of the kernel driver.
 *
 * Memory and process lists come through the driver's control file, as with the vendor's library: whoever stands at
 * that boundary may answer them otherwise than the card would. A failure there is the call's failure; the view of the
 * node never takes its place.
 */
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <errno.h>
#include <unistd.h>

/* Handles are the client's to choose; the GPU's number stands in the low bits. */
enum { DEVICE = 0x5d000000, SUBDEVICE = 0x5d010000, PARTITION = 0x5d020000, SHARED = 0x5d030000 };

static struct {
    int fd;
    uint64_t cookie; /* of fd: the program may have closed it, and the number be another file's */
    pid_t pid;       /* who opened it: a child has a client of its own */
    uint32_t client; /* 0: none */
    bool has_gpu[BH_NV_GPUS], has_shared[BH_NV_GPUS];
} own = {.fd = -1};

int bh_nv_status_of_errno(int error)
{
    switch (error) {
    case ENODEV:
    case ENXIO:
        return NVML_GPU_IS_LOST;
    case EPERM:
    case EACCES:
        return NVML_NO_PERMISSION;
    case ENOMEM:
        return NVML_MEMORY;
    default:
        return NVML_UNKNOWN;
    }
}

static int status_of_rm(uint32_t status)
{
    static const struct {
        uint32_t rm;
        int nvml;
    } known[] = {
        {RM_OK, NVML_OK},
        {RM_GPU_IS_LOST, NVML_GPU_IS_LOST},
        {RM_CARD_NOT_PRESENT, NVML_GPU_IS_LOST},
        {RM_INSUFFICIENT_PERMISSIONS, NVML_NO_PERMISSION},
        {RM_NOT_SUPPORTED, NVML_NOT_SUPPORTED},
        {RM_NO_MEMORY, NVML_MEMORY},
        {RM_INSUFFICIENT_RESOURCES, NVML_INSUFFICIENT_RESOURCES},
        {RM_OBJECT_NOT_FOUND, NVML_NOT_FOUND},
        {RM_STATE_IN_USE, NVML_IN_USE},
    };
    for (size_t i = 0; i < BH_COUNT_OF(known); i++)
        if (known[i].rm == status)
            return known[i].nvml;
    return NVML_UNKNOWN;
}

static void forget(void)
{
    if (own.fd >= 0 && bh_sim_socket_cookie(own.fd) == own.cookie)
        (void)close(own.fd);
    own.fd = -1;
    own.client = 0;
    memset(own.has_gpu, 0, sizeof(own.has_gpu));
    memset(own.has_shared, 0, sizeof(own.has_shared));
}

/* A file whose other end is gone is of no use to the next call either. */
static int failed(void)
{
    int status = bh_nv_status_of_errno(errno);
    forget();
    return status;
}

/* The size of the parameters stays 0, as the vendor's library leaves it: the class says it. */
static int alloc(uint32_t client, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    struct rm_alloc a = {.client = client,
                         .parent = parent,
                         .object = *object,
                         .class = class,
                         .params = (uint64_t)(uintptr_t)params};
    if (bh_sim_ioctl(own.fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0)
        return failed();
    *object = a.object;
    return status_of_rm(a.status);
}

static void free_client(uint32_t client)
{
    struct rm_free f = {.client = client, .object = client};
    if (own.fd >= 0)
        (void)bh_sim_ioctl(own.fd, RM_IOC(RM_FREE, sizeof(f)), &f);
}

/* The objects go at once; those of a closed file go when the driver comes to it. */
void bh_nv_client_close(void)
{
    if (own.client && own.pid == getpid())
        free_client(own.client);
    forget();
}

static int new_client(uint32_t *ret)
{
    *ret = 0;
    if (own.fd < 0) {
        own.fd = bh_sim_open("/dev/nvidiactl");
        own.cookie = bh_sim_socket_cookie(own.fd);
    }
    own.pid = getpid();
    return own.fd < 0 ? bh_nv_status_of_errno(errno) : alloc(0, 0, ret, RM_CLASS_CLIENT, NULL);
}

static int add_gpu(uint32_t client, uint32_t gpu)
{
    struct rm_device_params device = {.device = gpu};
    uint32_t number = 0, d = DEVICE | gpu, s = SUBDEVICE | gpu;
    int status = alloc(client, client, &d, RM_CLASS_DEVICE, &device);
    return status == NVML_OK ? alloc(client, d, &s, RM_CLASS_SUBDEVICE, &number) : status;
}

static int control(uint32_t client, uint32_t object, uint32_t command, void *params, uint32_t n_params)
{
    struct rm_control k = {.client = client,
                           .object = object,
                           .command = command,
                           .params = (uint64_t)(uintptr_t)params,
                           .params_size = n_params};
    return bh_sim_ioctl(own.fd, RM_IOC(RM_CONTROL, sizeof(k)), &k) < 0 ? failed() : status_of_rm(k.status);
}

/* A subscription to an instance holds for its whole client, so each such question has a client of its own. */
static int control_in(uint32_t gpu, uint32_t gi, uint32_t command, void *params, uint32_t n_params)
{
    struct rm_partition_params partition = {.gi = gi};
    uint32_t client, p = PARTITION | gpu;
    int status = new_client(&client);
    if (status != NVML_OK)
        return status;
    status = add_gpu(client, gpu);
    if (status == NVML_OK)
        status = alloc(client, SUBDEVICE | gpu, &p, RM_CLASS_SMC_PARTITION, &partition);
    if (status == NVML_OK)
        status = control(client, SUBDEVICE | gpu, command, params, n_params);
    free_client(client);
    return status;
}

/* This process's own client, with its objects on the GPU. */
static int begin(uint32_t gpu)
{
    int status = NVML_OK;
    if (own.pid != getpid())
        forget();
    if (!own.client)
        status = new_client(&own.client);
    if (status == NVML_OK && !own.has_gpu[gpu]) {
        status = add_gpu(own.client, gpu);
        own.has_gpu[gpu] = status == NVML_OK;
    }
    return status;
}

int bh_nv_control(uint32_t gpu, uint32_t gi, uint32_t command, void *params, uint32_t n_params)
{
    if (gi != BH_NV_NO_ID) {
        if (own.pid != getpid())
            forget();
        return control_in(gpu, gi, command, params, n_params);
    }
    int status = begin(gpu);
    return status == NVML_OK ? control(own.client, SUBDEVICE | gpu, command, params, n_params) : status;
}

/* The page itself is not simulated: what it would show is in the view of the node. */
int bh_nv_poll(struct bh_nv_call *c)
{
    const uint32_t gpu = c->gpu->index;
    uint64_t which = 0;
    uint32_t shared = SHARED | gpu;
    c->status = begin(gpu);
    if (c->status == NVML_OK && !own.has_shared[gpu]) {
        c->status = alloc(own.client, SUBDEVICE | gpu, &shared, RM_CLASS_SHARED_DATA, &which);
        own.has_shared[gpu] = c->status == NVML_OK;
    }
    which = UINT64_MAX;
    if (c->status == NVML_OK)
        c->status = control(own.client, shared, RM_CTRL_SHARED_DATA_POLL, &which, sizeof(which));
    return c->status;
}
