/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_processes.c - who uses a GPU.
 *
 * Drivers have written entries of 24, 32 and 16 bytes under one name. The size is therefore found out: the
 * one under which every pid is a process of this machine, else the one under which every pid could be one.
 */
#include "base/sysfile.h"
#include "gpu/nvml.h"
#include "gpu/text.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SPARE = 8, TRIES = 4, ENTRIES_MAX = 1 << 16, STRIDE_MAX = 32, SMALL = 16, PID_MAX = 1 << 22 };
enum { SAMPLE_BYTES = sizeof(struct nvml_process_sample), GUARD = 0xa5 };

typedef int (*list_call)(nvml_device_t, unsigned *, void *);

static uint32_t pid_at(const uint8_t *entry)
{
    uint32_t pid;
    memcpy(&pid, entry, sizeof(pid));
    return pid;
}

static bool is_process(uint32_t pid)
{
    char path[48];
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    return pid && pid <= PID_MAX && bh_sysfile_exists(path);
}

static bool may_be_process(uint32_t pid)
{
    return pid && pid <= PID_MAX;
}

static size_t stride_of(const uint8_t *entries, unsigned n)
{
    static const size_t strides[] = {sizeof(struct nvml_process_info), STRIDE_MAX, SMALL};
    static bool (*const tests[])(uint32_t) = {is_process, may_be_process};
    for (size_t t = 0; t < BH_COUNT_OF(tests); t++)
        for (size_t s = 0; s < BH_COUNT_OF(strides); s++) {
            unsigned good = 0;
            while (good < n && tests[t](pid_at(entries + good * strides[s])))
                good++;
            if (good == n)
                return strides[s];
        }
    return 0;
}

static const char *command_of(struct bh_arena *a, uint32_t pid)
{
    char path[48], text[64];
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
    return bh_sysfile_line(path, text, sizeof(text), NULL) == BH_OK ? bh_gpu_text(a, text, sizeof(text))
                                                                    : NULL;
}

static const char *user_of(struct bh_arena *a, uint32_t pid)
{
    char below[48], path[BH_SYSPATH_MAX], room[4096];
    struct stat st;
    struct passwd entry, *found = NULL;
    (void)snprintf(below, sizeof(below), "/proc/%" PRIu32, pid);
    if (!bh_syspath(path, below) || stat(path, &st) < 0)
        return NULL;
    if (getpwuid_r(st.st_uid, &entry, room, sizeof(room), &found) == 0 && found)
        return bh_gpu_text(a, found->pw_name, strlen(found->pw_name));
    return bh_arena_printf(a, "%u", (unsigned)st.st_uid);
}

static void add(struct bh_arena *a, struct bh_gpu_device *d, const uint8_t *entry, size_t stride,
                const char *kind)
{
    struct nvml_process_info info = {.gi = BH_NO_ID, .ci = BH_NO_ID};
    memcpy(&info, entry, stride < sizeof(info) ? stride : sizeof(info));
    struct bh_gpu_process *p = bh_vec_push(&d->processes);
    *p = (struct bh_gpu_process){.pid = info.pid, .gi = info.gi, .ci = info.ci, .kind = kind};
    p->memory_bytes = info.used_memory == UINT64_MAX ? (struct bh_reading){0, "the driver has no value"}
                                                     : (struct bh_reading){info.used_memory, NULL};
    p->name = command_of(a, info.pid);
    p->user = user_of(a, info.pid);
}

/* Counts, makes room for a few more, and fills; processes come and go meanwhile, so a few tries. */
static int fill(list_call call, nvml_device_t h, uint8_t **ret, unsigned *ret_n)
{
    unsigned n = 0;
    int status = call ? call(h, &n, NULL) : (int)NVML_FUNCTION_NOT_FOUND;
    for (int i = 0; i < TRIES; i++) {
        if ((status == NVML_OK || status == NVML_INSUFFICIENT_SIZE) && n > ENTRIES_MAX)
            return NVML_INSUFFICIENT_SIZE; /* no machine has so many */
        if (status != NVML_INSUFFICIENT_SIZE && (status != NVML_OK || n == 0 || *ret))
            break;
        unsigned room = n + SPARE;
        free(*ret);
        *ret = bh_alloc(room, STRIDE_MAX);
        n = room;
        status = call(h, &n, *ret);
        if (status == NVML_OK && n > room)
            return NVML_INSUFFICIENT_SIZE; /* it says it wrote more than it was given */
    }
    *ret_n = status == NVML_OK && *ret ? n : 0;
    return status;
}

struct list {
    list_call call;
    const char *name, *kind;
    bool optional; /* a GPU or a driver may have no such list at all, and then has none of that kind */
};

static void read_list(const struct bh_nvml *nvml, nvml_device_t h, struct bh_arena *a,
                      struct bh_gpu_device *d, const struct list *l)
{
    BH_AUTOFREE uint8_t *entries = NULL;
    unsigned n = 0;
    bh_gpu_asking(l->name);
    int status = bh_nvml_hear(nvml, fill(l->call, h, &entries, &n));
    bool has_none = l->optional && (status == NVML_NOT_SUPPORTED || status == NVML_FUNCTION_NOT_FOUND);
    size_t stride = n ? stride_of(entries, n) : 0;
    if (n && !stride)
        d->processes_seen = (struct bh_reading){0, "the driver lists processes in an unknown layout"};
    else if (status == NVML_INSUFFICIENT_SIZE)
        d->processes_seen = (struct bh_reading){0, "the driver's process count makes no sense"};
    else if (status != NVML_OK && !has_none)
        d->processes_seen = bh_nvml_reading(a, status, 0);
    for (unsigned i = 0; stride && i < n; i++)
        add(a, d, entries + i * stride, stride, l->kind);
}

/* ---- how busy each keeps it ---- */

static bool is_untouched(const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != GUARD)
            return false;
    return true;
}

/* The newest sample of each process; the driver keeps some seconds of them. */
static void note_samples(struct bh_gpu_device *d, const uint8_t *samples, unsigned n)
{
    for (size_t k = 0; k < d->processes.n; k++) {
        struct bh_gpu_process *p = &d->processes.at[k];
        struct nvml_process_sample s, newest = {0};
        for (unsigned i = 0; i < n; i++) {
            memcpy(&s, samples + (size_t)i * SAMPLE_BYTES, sizeof(s));
            if (s.pid == p->pid && s.timestamp_us >= newest.timestamp_us)
                newest = s;
        }
        if (!newest.pid)
            continue;
        bool sane = newest.sm <= 100 && newest.memory <= 100;
        const char *why = sane ? NULL : "the driver's answer makes no sense";
        p->sm_percent = (struct bh_reading){sane ? newest.sm : 0, why};
        p->memory_percent = (struct bh_reading){sane ? newest.memory : 0, why};
    }
}

/* Asks with room for one more than it was told; what is behind the room must stay as it was. */
static int ask_use(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_device *d)
{
    unsigned count = 0;
    int status = BH_NVML_CALL(n, process_use, h, NULL, &count, 0);
    for (int i = 0; i < TRIES && status == NVML_INSUFFICIENT_SIZE && count && count <= ENTRIES_MAX; i++) {
        unsigned room = count + SPARE;
        size_t bytes = (size_t)room * SAMPLE_BYTES;
        BH_AUTOFREE uint8_t *samples = bh_alloc(bytes + SAMPLE_BYTES, 1);
        memset(samples, GUARD, bytes + SAMPLE_BYTES);
        count = room;
        status = BH_NVML_CALL(n, process_use, h, (struct nvml_process_sample *)samples, &count, 0);
        if (!is_untouched(samples + bytes, SAMPLE_BYTES))
            n->heard->misfit = (struct bh_nvml_misfit){n->names.process_use, SAMPLE_BYTES, false};
        else if (status == NVML_OK && count <= room)
            note_samples(d, samples, count);
    }
    return status;
}

static void read_use(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a, struct bh_gpu_device *d)
{
    struct bh_reading missing = {0, "the driver has no value"};
    bool cut = !d->mig_mode.why && d->mig_mode.v == 1;
    if (!d->processes.n)
        return;
    if (cut)
        missing.why = "the driver does not measure it while MIG is on";
    for (size_t i = 0; i < d->processes.n; i++)
        d->processes.at[i].sm_percent = d->processes.at[i].memory_percent = missing;
    int status = cut ? (int)NVML_OK : ask_use(n, h, d);
    /* not found: no process has been measured yet */
    if (status == NVML_OK || status == NVML_NOT_FOUND || status == NVML_INSUFFICIENT_SIZE)
        return;
    missing = bh_nvml_reading(a, status, 0);
    for (size_t i = 0; i < d->processes.n; i++)
        d->processes.at[i].sm_percent = d->processes.at[i].memory_percent = missing;
}

void bh_nvml_read_users(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a, struct bh_gpu_device *d)
{
    const struct list lists[] = {
        {n->api.compute_processes, n->names.compute_processes, "compute", false},
        {n->api.graphics_processes, n->names.graphics_processes, "graphics", true},
        {n->api.mps_processes, n->names.mps_processes, "mps", true},
    };
    for (size_t i = 0; i < BH_COUNT_OF(lists); i++)
        read_list(n, h, a, d, &lists[i]);
    d->processes_seen.v = d->processes_seen.why ? 0 : d->processes.n;
}

void bh_nvml_read_processes(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                            struct bh_gpu_device *d)
{
    bh_nvml_read_users(n, h, a, d);
    read_use(n, h, a, d);
}
