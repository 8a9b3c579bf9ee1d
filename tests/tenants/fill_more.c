/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_more.c - memory that comes without an allocation of one's own.
 *
 * A program's variables, what kernels may allocate or use as a stack, and memory that another process of the same
 * tenant took and handed over. What a lender hands over by descriptor stays when the lender is gone.
 */
#include "fill.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD "\n.version 7.0\n.target sm_80\n.address_size 64\n"

static const char empty_ptx[] = HEAD ".visible .entry empty()\n{\n ret;\n}\n";
/* The heap has its place from the first kernel on that may allocate. */
static const char heap_ptx[] = HEAD ".extern .func (.param .b64 ret) malloc (.param .b64 bytes);\n"
                                    ".visible .entry heap()\n"
                                    "{\n"
                                    " .reg .b64 %n, %at;\n"
                                    " .reg .b32 %v;\n"
                                    " .reg .pred %p;\n"
                                    " mov.b64 %n, 1024;\n"
                                    " {\n"
                                    " .param .b64 size;\n"
                                    " .param .b64 place;\n"
                                    " st.param.b64 [size], %n;\n"
                                    " call.uni (place), malloc, (size);\n"
                                    " ld.param.b64 %at, [place];\n"
                                    " }\n"
                                    " setp.eq.s64 %p, %at, 0;\n"
                                    " @%p bra none;\n"
                                    " mov.b32 %v, 1;\n"
                                    " st.b32 [%at], %v;\n"
                                    "none:\n"
                                    " ret;\n"
                                    "}\n";

static int run_once(const char *ptx, const char *name)
{
    CUmodule module;
    CUfunction function;
    int rc = cuda.cuModuleLoadData(&module, ptx);
    rc = rc ? rc : cuda.cuModuleGetFunction(&function, module, name);
    rc = rc ? rc : cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    return rc ? rc : cuda.cuCtxSynchronize();
}

/* A variable has its place once it is asked for. */
int fill_by_module(struct fill *f, uint64_t bytes)
{
    char ptx[200];
    CUmodule module;
    CUdeviceptr at;
    size_t size;
    (void)f;
    (void)snprintf(ptx, sizeof(ptx), HEAD ".visible .global .align 16 .b8 room[%llu];\n",
                   (unsigned long long)bytes);
    int rc = cuda.cuModuleLoadData(&module, ptx);
    return rc ? rc : cuda.cuModuleGetGlobal_v2(&at, &size, module, "room");
}

/* A limit is a context's and holds from its first kernel on, so each piece has a context of its own. */
int fill_by_heap(struct fill *f, uint64_t bytes)
{
    CUcontext ctx;
    int rc = cuda.cuCtxCreate_v2(&ctx, 0, f->t->device);
    rc = rc ? rc : cuda.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
    return rc ? rc : run_once(heap_ptx, "heap");
}

/* Every thread that a card can have at once has a stack. */
int fill_by_stack(struct fill *f, uint64_t bytes)
{
    int threads = 0;
    CUcontext ctx;
    int rc = cuda.cuDeviceGetAttribute(&threads, CU_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, f->t->device);
    rc = rc ? rc : cuda.cuCtxCreate_v2(&ctx, 0, f->t->device);
    rc = rc ? rc : cuda.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes / (uint64_t)f->t->sms / (uint64_t)threads);
    return rc ? rc : run_once(empty_ptx, "empty");
}

/* ---- what another process lends ---- */

struct loan {
    int rc; /* of the lender's taking it */
    CUipcMemHandle handle;
};

static bool loan_send(int to, const struct loan *loan, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct loan copy = *loan;
    struct iovec text = {&copy, sizeof(copy)};
    struct msghdr m = {.msg_iov = &text, .msg_iovlen = 1};
    if (fd >= 0) {
        control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
    }
    return sendmsg(to, &m, 0) == (ssize_t)sizeof(copy);
}

static bool loan_receive(int from, struct loan *loan, int *ret_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec text = {loan, sizeof(*loan)};
    struct msghdr m = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    *ret_fd = -1;
    if (recvmsg(from, &m, 0) != (ssize_t)sizeof(*loan))
        return false;
    if (m.msg_controllen && control.head.cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(&control.head), sizeof(*ret_fd));
    return true;
}

/* lend handle|descriptor SOCKET BYTES: takes memory, hands it over, and goes when the other one closes its end. */
int tenant_lend(const struct tenant *t, int n, char **args)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FD,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}};
    struct loan loan = {0};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at;
    uint64_t to, bytes;
    int fd = -1;
    char byte;
    if (n != 3 || !tenant_number(args[1], &to) || !tenant_number(args[2], &bytes))
        return 2;
    if (strcmp(args[0], "handle") == 0) {
        loan.rc = cuda.cuMemAlloc_v2(&at, bytes);
        loan.rc = loan.rc ? loan.rc : cuda.cuIpcGetMemHandle(&loan.handle, at);
    } else {
        loan.rc = cuda.cuMemCreate(&memory, bytes, &prop, 0);
        loan.rc = loan.rc ? loan.rc : cuda.cuMemExportToShareableHandle(&fd, memory, prop.handle_types, 0);
    }
    return !loan_send((int)to, &loan, fd) || read((int)to, &byte, 1) != 0;
}

/* Starts a lender. It stays as long as *ret_end is open. A lender that has no room for its context lends nothing. */
static int borrow(const char *kind, uint64_t bytes, struct loan *loan, int *ret_fd, int *ret_end)
{
    char end[16], size[24];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC); /* the next lender is not to keep it open */
    (void)snprintf(end, sizeof(end), "%d", ends[1]);
    (void)snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        execl("/proc/self/exe", "tenant", "lend", kind, end, size, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *ret_end = ends[0];
    if (pid > 0 && loan_receive(ends[0], loan, ret_fd))
        return loan->rc;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int fill_by_ipc(struct fill *f, uint64_t bytes)
{
    struct loan loan;
    CUdeviceptr at;
    int fd = -1, end = -1;
    (void)f;
    int rc = borrow("handle", bytes, &loan, &fd, &end);
    return rc ? rc : cuda.cuIpcOpenMemHandle_v2(&at, loan.handle, 1);
}

int fill_by_import(struct fill *f, uint64_t bytes)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, f->t->device}, CU_MEM_ACCESS_READWRITE};
    CUmemGenericAllocationHandle memory;
    struct loan loan;
    CUdeviceptr at;
    int fd = -1, end = -1;
    int rc = borrow("descriptor", bytes, &loan, &fd, &end);
    rc = rc ? rc
            : cuda.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FD);
    rc = rc ? rc : cuda.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    rc = rc ? rc : cuda.cuMemMap(at, bytes, 0, memory, 0);
    rc = rc ? rc : cuda.cuMemSetAccess(at, bytes, &access, 1);
    close(fd);
    close(end); /* from here on it is this process's alone */
    return rc;
}

/* The same descriptor as if it came from a graphics library. */
int fill_by_external(struct fill *f, uint64_t bytes)
{
    struct {
        int type, pad;
        int fd, pad2;
        void *name;
        uint64_t size;
        unsigned flags, reserved[16];
    } what = {.type = 1, .size = bytes};
    struct {
        uint64_t offset, size;
        unsigned flags, reserved[16];
    } part = {.size = bytes};
    int (*import)(void **, const void *);
    int (*map)(CUdeviceptr *, void *, const void *);
    struct loan loan;
    CUdeviceptr at;
    void *memory;
    int fd = -1, end = -1;
    (void)f;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    import = (__typeof__(import))dlsym(library, "cuImportExternalMemory");
    map = (__typeof__(map))dlsym(library, "cuExternalMemoryGetMappedBuffer");
    if (!import || !map)
        return CUDA_ERROR_NOT_SUPPORTED;
    int rc = borrow("descriptor", bytes, &loan, &fd, &end);
    what.fd = fd;
    rc = rc ? rc : import(&memory, &what);
    rc = rc ? rc : map(&at, memory, &part);
    close(end);
    return rc;
}
