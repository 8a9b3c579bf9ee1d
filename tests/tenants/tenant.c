/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.c - a test tenant: one program that does to a GPU what tenants do, one verb a run.
 *
 *     tenant [--device N] info
 *     tenant [--device N] hold SIZE [SECONDS]       takes memory, says `ready`, stays
 *     tenant [--device N] fill PATH [LIMIT]         takes memory in one way until there is none
 *     tenant [--device N] churn STEPS SEED          memory, kernels and copies at random, contents checked
 *     tenant [--device N] cycle COUNT LIMIT [SEED]  allocate and free close below a limit; refusals are counted
 *     tenant [--device N] spin SECONDS WORK_US [FILE]   fixed work as fast as it goes; says how many units a second. SECONDS
 *                                                   0: until its input ends, and for each line of that how many so far.
 *                                                   FILE: tells $BULKHEAD_PROBE, of each unit as much as FILE has
 *     tenant [--device N] residue plant|scan SIZE   leaves a mark in memory; looks for it, and for anything else
 *     tenant [--device N] share SIZE | borrow HANDLE PATH   memory that one process lends to any other
 *     tenant [--device N] graph | ipc | fault
 */
#include "tenant.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CANARY UINT32_C(0xb01cead5)

static int info(const struct tenant *t, int n, char **args)
{
    char name[96], pci[32];
    size_t total, left, all;
    CUuuid uuid;
    int version, count;
    (void)n;
    (void)args;
    MUST(cuDriverGetVersion, &version);
    MUST(cuDeviceGetCount, &count);
    MUST(cuDeviceGetName, name, sizeof(name), t->device);
    MUST(cuDeviceGetPCIBusId, pci, sizeof(pci), t->device);
    MUST(cuDeviceGetUuid_v2, &uuid, t->device);
    MUST(cuDeviceTotalMem_v2, &total, t->device);
    MUST(cuMemGetInfo_v2, &left, &all);
    printf("devices %d\nname %s\npci %s\nuuid ", count, name, pci);
    for (size_t i = 0; i < sizeof(uuid.bytes); i++)
        printf("%02x", (unsigned char)uuid.bytes[i]);
    printf("\ncuda %d\ntotal %zu\nfree %zu\nsm %d\n", version, total, left, t->sms);
    return left > all || all == 0;
}

static int hold(const struct tenant *t, int n, char **args)
{
    uint64_t bytes, seconds = UINT32_MAX;
    CUdeviceptr at;
    (void)t;
    if (n < 1 || n > 2 || !tenant_size(args[0], &bytes) || (n == 2 && !tenant_number(args[1], &seconds)))
        return 2;
    if (bytes)
        MUST(cuMemAlloc_v2, &at, bytes);
    printf("ready\n");
    fflush(stdout);
    for (; seconds > 0; seconds--)
        sleep(1);
    if (bytes)
        MUST(cuMemFree_v2, at);
    return 0;
}

/* What was done by its own word: a unit counts as much as the file has. */
static void tell(const char *path, uint64_t units)
{
    static int at = -1;
    const char *probe = getenv("BULKHEAD_PROBE");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char words[32];
    uint64_t each = 0;
    FILE *f = fopen(path, "re");
    if (f && fgets(words, sizeof(words), f))
        (void)tenant_number(words, &each);
    if (f)
        (void)fclose(f);
    if (at < 0)
        at = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (each == 0 || !probe)
        return;
    const int n = snprintf(words, sizeof(words), "done %llu", (unsigned long long)(each * units));
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", probe);
    (void)sendto(at, words, (size_t)n, 0, (const struct sockaddr *)&to, sizeof(to));
}

/* Whoever started it asks by a line how far it is, and ends it by closing. */
static bool is_wanted(uint64_t units)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[16];
    if (poll(&in, 1, 0) <= 0)
        return true;
    if (read(in.fd, line, sizeof(line)) <= 0)
        return false;
    printf("so far %llu\n", (unsigned long long)units);
    fflush(stdout);
    return true;
}

/* Four units under way, then a wait: what fills a card without queueing for ever. */
static int spin(const struct tenant *t, int n, char **args)
{
    enum { AHEAD = 4 };
    uint64_t seconds, work_us, units = 0;
    if (n < 2 || n > 3 || !tenant_number(args[0], &seconds) || !tenant_number(args[1], &work_us))
        return 2;
    tenant_must(tenant_spin(t, work_us * 1000, NULL), "cuLaunchKernel"); /* the first one loads the code */
    MUST(cuCtxSynchronize);
    printf("ready\n");
    fflush(stdout);
    const uint64_t start = tenant_now_ns(), end = start + seconds * UINT64_C(1000000000);
    while (seconds ? tenant_now_ns() < end : is_wanted(units)) {
        for (int i = 0; i < AHEAD; i++)
            tenant_must(tenant_spin(t, work_us * 1000, NULL), "cuLaunchKernel");
        MUST(cuCtxSynchronize);
        units += AHEAD;
        if (n == 3)
            tell(args[2], AHEAD);
    }
    const double took = (double)(tenant_now_ns() - start) / 1e9;
    printf("units %llu\nseconds %.3f\nrate %.2f\n", (unsigned long long)units, took, (double)units / took);
    return 0;
}

static int residue(const struct tenant *t, int n, char **args)
{
    enum { WORDS = 1 << 18 };
    uint64_t bytes, canaries = 0, others = 0;
    CUdeviceptr at;
    (void)t;
    if (n != 2 || !tenant_size(args[1], &bytes) || bytes < MIB)
        return 2;
    MUST(cuMemAlloc_v2, &at, bytes);
    if (strcmp(args[0], "plant") == 0) {
        MUST(cuMemsetD32_v2, at, CANARY, bytes / sizeof(CANARY));
        MUST(cuCtxSynchronize);
        printf("planted %llu\n", (unsigned long long)bytes);
        fflush(stdout);
        _exit(0); /* nothing is given back by hand */
    }
    uint32_t *words = calloc(WORDS, sizeof(*words));
    if (!words || strcmp(args[0], "scan") != 0) {
        free(words);
        return 2;
    }
    for (uint64_t done = 0; done < bytes; done += WORDS * sizeof(*words)) {
        const uint64_t left = bytes - done,
                       part = left < WORDS * sizeof(*words) ? left : WORDS * sizeof(*words);
        MUST(cuMemcpyDtoH_v2, words, at + done, part);
        for (uint64_t i = 0; i < part / sizeof(*words); i++) {
            canaries += words[i] == CANARY;
            others += words[i] != CANARY && words[i] != 0;
        }
    }
    free(words);
    printf("scanned %llu\ncanaries %llu\nothers %llu\n", (unsigned long long)bytes,
           (unsigned long long)canaries, (unsigned long long)others);
    return canaries != 0;
}

/* A context that met a fault answers with it until it ends; a new process is not touched by it. */
static int fault(const struct tenant *t, int n, char **args)
{
    CUdeviceptr at;
    (void)n;
    (void)args;
    MUST(cuLaunchKernel, t->fault, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    const int first = cuda.cuCtxSynchronize(), second = cuda.cuMemAlloc_v2(&at, MIB);
    printf("first %d %s\nsecond %d %s\n", first, tenant_error(first), second, tenant_error(second));
    return first != CUDA_ERROR_ILLEGAL_ADDRESS || second != first;
}

static const struct {
    const char *name;
    int (*run)(const struct tenant *t, int n, char **args);
} verbs[] = {
    {"info", info},          {"hold", hold},
    {"fill", tenant_fill},   {"churn", tenant_churn},
    {"spin", spin},          {"residue", residue},
    {"graph", tenant_graph}, {"ipc", tenant_ipc},
    {"fault", fault},        {"ipc-child", tenant_ipc_child},
    {"lend", tenant_lend},   {"cycle", tenant_cycle},
    {"share", tenant_share}, {"borrow", tenant_borrow},
};

int main(int argc, char **argv)
{
    struct tenant t = {.self = "/proc/self/exe"};
    uint64_t device = 0;
    int at = 1;
    if (argc > 3 && strcmp(argv[1], "--device") == 0) {
        if (!tenant_number(argv[2], &device) || device > 63)
            return 2;
        at = 3;
    }
    for (size_t i = 0; argc > at && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, argv[at]) != 0)
            continue;
        tenant_open(&t, (int)device);
        const int rc = verbs[i].run(&t, argc - at - 1, argv + at + 1);
        if (rc == 2)
            fprintf(stderr, "tenant: wrong words after '%s'\n", argv[at]);
        return rc;
    }
    fprintf(stderr,
            "usage: tenant [--device N] info|hold|fill|churn|cycle|spin|residue|graph|ipc|fault ...\n");
    return 2;
}
