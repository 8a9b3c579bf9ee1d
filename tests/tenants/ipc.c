/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc.c - one tenant's memory in another of its processes, by handle and by descriptor.
 *
 * The child finds what the parent wrote and leaves its answer there.
 */
#include "tenant.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTION = 0x51, ANSWER = 0x17, BYTES = 8 * 1024 * 1024 };

static void hex_out(const void *from, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", ((const unsigned char *)from)[i]);
}

static unsigned nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) & 15;
}

/* Are all bytes there this one? */
static bool all(CUdeviceptr at, unsigned char want)
{
    unsigned char part[4096];
    bool same = true;
    for (uint64_t i = 0; i < BYTES; i += BYTES / 8) {
        MUST(cuMemcpyDtoH_v2, part, at + i, sizeof(part));
        for (size_t k = 0; k < sizeof(part); k++)
            same = same && part[k] == want;
    }
    return same;
}

static int child(const char *self, const char *how, const char *what)
{
    pid_t pid = fork();
    int status = 1;
    if (pid == 0) {
        execl(self, self, "ipc-child", how, what, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int by_handle(const struct tenant *t)
{
    CUipcMemHandle handle;
    char text[2 * sizeof(handle) + 1];
    CUdeviceptr at;
    MUST(cuMemAlloc_v2, &at, BYTES);
    MUST(cuMemsetD8_v2, at, QUESTION, BYTES);
    MUST(cuCtxSynchronize);
    MUST(cuIpcGetMemHandle, &handle, at);
    hex_out(&handle, sizeof(handle), text);
    const int rc = child(t->self, "handle", text);
    const bool answered = all(at, ANSWER);
    MUST(cuMemFree_v2, at);
    printf("handle child %d answer %s\n", rc, answered ? "yes" : "no");
    return rc || !answered;
}

static CUdeviceptr mapped(const struct tenant *t, CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, t->device}, CU_MEM_ACCESS_READWRITE};
    CUdeviceptr at;
    MUST(cuMemAddressReserve, &at, BYTES, 0, 0, 0);
    MUST(cuMemMap, at, BYTES, 0, handle, 0);
    MUST(cuMemSetAccess, at, BYTES, &access, 1);
    return at;
}

static int by_descriptor(const struct tenant *t)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FD,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}};
    CUmemGenericAllocationHandle handle;
    char text[16];
    int fd = -1;
    MUST(cuMemCreate, &handle, BYTES, &prop, 0);
    const CUdeviceptr at = mapped(t, handle);
    MUST(cuMemsetD8_v2, at, QUESTION, BYTES);
    MUST(cuCtxSynchronize);
    MUST(cuMemExportToShareableHandle, &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FD, 0);
    (void)fcntl(fd, F_SETFD, 0); /* the child inherits it */
    snprintf(text, sizeof(text), "%d", fd);
    const int rc = child(t->self, "descriptor", text);
    const bool answered = all(at, ANSWER);
    close(fd);
    MUST(cuMemUnmap, at, BYTES);
    MUST(cuMemRelease, handle);
    MUST(cuMemAddressFree, at, BYTES);
    printf("descriptor child %d answer %s\n", rc, answered ? "yes" : "no");
    return rc || !answered;
}

/* share SIZE: takes memory, says its handle for any process to open, and stays until its input ends. */
int tenant_share(const struct tenant *t, int n, char **args)
{
    CUipcMemHandle handle;
    char text[2 * sizeof(handle) + 1], byte;
    CUdeviceptr at;
    uint64_t bytes;
    (void)t;
    if (n != 1 || !tenant_size(args[0], &bytes) || bytes < BYTES)
        return 2;
    MUST(cuMemAlloc_v2, &at, bytes);
    MUST(cuMemsetD8_v2, at, QUESTION, BYTES);
    MUST(cuCtxSynchronize);
    MUST(cuIpcGetMemHandle, &handle, at);
    hex_out(&handle, sizeof(handle), text);
    printf("shared %s\n", text);
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    printf("answer %s\n", all(at, ANSWER) ? "yes" : "no");
    MUST(cuMemFree_v2, at);
    return 0;
}

static bool handle_of(const char *text, CUipcMemHandle *ret)
{
    if (strlen(text) != 2 * sizeof(*ret))
        return false;
    for (size_t i = 0; i < sizeof(*ret); i++)
        ret->reserved[i] = (char)(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
    return true;
}

/* borrow HANDLE PATH: opens what another process shares, answers in it, and fills the rest of the card. */
int tenant_borrow(const struct tenant *t, int n, char **args)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    if (n != 2 || !handle_of(args[0], &handle))
        return 2;
    MUST(cuIpcOpenMemHandle_v2, &at, handle, 1);
    printf("found %s\n", all(at, QUESTION) ? "yes" : "no");
    MUST(cuMemsetD8_v2, at, ANSWER, BYTES);
    MUST(cuCtxSynchronize);
    const int rc = tenant_fill(t, 1, args + 1);
    MUST(cuIpcCloseMemHandle, at);
    return rc;
}

int tenant_ipc(const struct tenant *t, int n, char **args)
{
    (void)n;
    (void)args;
    return by_handle(t) | by_descriptor(t);
}

int tenant_ipc_child(const struct tenant *t, int n, char **args)
{
    CUipcMemHandle handle;
    CUmemGenericAllocationHandle imported;
    CUdeviceptr at;
    uint64_t fd;
    const bool by_text = n == 2 && strcmp(args[0], "handle") == 0 && handle_of(args[1], &handle);
    if (by_text) {
        MUST(cuIpcOpenMemHandle_v2, &at, handle, 1);
    } else if (n == 2 && strcmp(args[0], "descriptor") == 0 && tenant_number(args[1], &fd)) {
        MUST(cuMemImportFromShareableHandle, &imported, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FD);
        at = mapped(t, imported);
    } else {
        return 2;
    }
    const bool found = all(at, QUESTION);
    MUST(cuMemsetD8_v2, at, ANSWER, BYTES);
    MUST(cuCtxSynchronize);
    if (by_text)
        MUST(cuIpcCloseMemHandle, at);
    return !found;
}
