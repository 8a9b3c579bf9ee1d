/* SPDX-License-Identifier: Apache-2.0 */
/* vacant.c - a snapshot read for one question; and the descriptors of all processes where the driver does not say. */
#include "node/mech/vacant.h"

#include "base/str.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAMED = 4, /* processes that are named, of however many */
    LOOK_MS = 500,
};
/* What is in use on a card that nobody is on: the driver's, beside its reserve. */
#define IDLE_BYTES (UINT64_C(256) * BH_MIB)
/* The context of whoever scrubs, and what is too small for its pieces. */
#define OWN_BYTES (UINT64_C(1) * BH_GIB)

/* ---- whoever has the node open ---- */

static bool has_open(const char *proc, const char *pid, uint64_t device)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s/fd", proc, pid);
    DIR *at = opendir(path);
    bool found = false;
    for (const struct dirent *e; at && !found && (e = readdir(at));) {
        struct stat st;
        found = e->d_name[0] != '.' && fstatat(dirfd(at), e->d_name, &st, 0) == 0 && S_ISCHR(st.st_mode) &&
                (uint64_t)st.st_rdev == device;
    }
    if (at)
        (void)closedir(at);
    return found;
}

static void name_of(const char *proc, const char *pid, char ret[32])
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s/comm", proc, pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, ret, 31) : 0;
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

/* It keeps the node open so that the driver stays loaded, and puts nothing on the card. Only root starts it under that path. */
static bool is_drivers_own(const char *proc, const char *pid)
{
    char path[512], exe[128] = "";
    (void)snprintf(path, sizeof(path), "%s/%s/exe", proc, pid);
    const ssize_t n = readlink(path, exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    return bh_str_eq(exe, "/usr/bin/nvidia-persistenced");
}

static void add_name(char *words, size_t size, size_t nth, const char *pid, const char *name)
{
    const size_t n = strlen(words);
    if (nth < NAMED)
        (void)snprintf(words + n, size - n, "%s%s (%s)", n ? ", " : "", pid, *name ? name : "unknown");
    else if (nth == NAMED)
        (void)snprintf(words + n, size - n, " and others");
}

size_t bh_vacant_holders(const char *proc, uint64_t device, char *words, size_t size)
{
    char self[24], name[32];
    size_t n = 0;
    DIR *at = opendir(proc);
    words[0] = '\0';
    (void)snprintf(self, sizeof(self), "%d", (int)getpid());
    for (const struct dirent *e; at && (e = readdir(at));) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || bh_str_eq(e->d_name, self) ||
            !has_open(proc, e->d_name, device) || is_drivers_own(proc, e->d_name))
            continue;
        name_of(proc, e->d_name, name);
        add_name(words, size, n++, e->d_name, name);
    }
    if (at)
        (void)closedir(at);
    return n;
}

/* ---- the driver's word ---- */

/* One that is on the card and on no instance can reach all of it. */
static bool is_there(const struct bh_gpu_process *p, const struct bh_gpu_instance *part)
{
    return !part || p->gi == BH_NO_ID || p->gi == part->gi;
}

static size_t list(const struct bh_gpu_device *gpu, const struct bh_gpu_instance *part, char *words,
                   size_t size)
{
    size_t n = 0;
    words[0] = '\0';
    for (size_t i = 0; i < gpu->processes.n; i++) {
        char pid[24];
        if (!is_there(&gpu->processes.at[i], part))
            continue;
        (void)snprintf(pid, sizeof(pid), "%u", gpu->processes.at[i].pid);
        add_name(words, size, n++, pid, gpu->processes.at[i].name ? gpu->processes.at[i].name : "");
    }
    return n;
}

/* Who is there, where the driver does not list them. */
static void judge_by_node(const struct bh_gpu_device *gpu, struct bh_vacant *ret)
{
    char path[64], who[160];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/dev/nvidia%d", gpu->minor);
    if (gpu->minor < 0 || stat(path, &st) < 0 || !S_ISCHR(st.st_mode)) {
        (void)snprintf(ret->words, sizeof(ret->words), "the driver does not say who is on it: %s",
                       gpu->processes_seen.why);
        return;
    }
    ret->vacant = bh_vacant_holders("/proc", (uint64_t)st.st_rdev, who, sizeof(who)) == 0;
    if (!ret->vacant)
        (void)snprintf(ret->words, sizeof(ret->words), "%s open in process %s", path, who);
}

void bh_vacant_judge(const struct bh_gpu_device *gpu, const struct bh_gpu_instance *part,
                     struct bh_vacant *ret)
{
    const struct bh_reading total = part ? part->total_bytes : gpu->total_bytes;
    const struct bh_reading used = part ? part->used_bytes : gpu->used_bytes;
    char who[160];
    *ret = (struct bh_vacant){0};
    if (total.why || used.why || used.v > total.v) {
        (void)snprintf(ret->words, sizeof(ret->words), "the driver does not say how much of it is in use: %s",
                       total.why  ? total.why
                       : used.why ? used.why
                                  : "more than there is");
        return;
    }
    /* An older driver counts its reserve as used; then that is not known apart, and counts as somebody's. */
    const uint64_t reserved = part || gpu->reserved_bytes.why ? 0 : gpu->reserved_bytes.v;
    ret->usable_bytes = total.v - (reserved < total.v ? reserved : 0);
    ret->free_bytes = ret->usable_bytes > used.v ? ret->usable_bytes - used.v : 0;
    const bool listed = !gpu->processes_seen.why;
    if (!listed)
        judge_by_node(gpu, ret);
    else if (list(gpu, part, who, sizeof(who)))
        (void)snprintf(ret->words, sizeof(ret->words), "process %s is on it", who);
    else
        ret->vacant = true;
    if (ret->vacant && used.v > IDLE_BYTES + (gpu->reserved_bytes.why && !part ? OWN_BYTES : 0)) {
        ret->vacant = false;
        (void)snprintf(ret->words, sizeof(ret->words),
                       "%llu MiB of it are in use, and the driver names nobody",
                       (unsigned long long)(used.v / BH_MIB));
    }
}

static void look_once(const char *uuid, struct bh_vacant *ret)
{
    struct bh_gpu_snapshot now;
    struct bh_err err;
    *ret = (struct bh_vacant){0};
    if (bh_gpu_read_here(&bh_gpu_nvml, &now, &err) < 0) {
        (void)snprintf(ret->words, sizeof(ret->words), "%.200s", err.msg);
        return;
    }
    (void)snprintf(ret->words, sizeof(ret->words), "the driver does not name %.90s", uuid);
    for (size_t i = 0; i < now.devices.n; i++) {
        const struct bh_gpu_device *g = &now.devices.at[i];
        if (g->uuid && bh_str_eq(g->uuid, uuid))
            bh_vacant_judge(g, NULL, ret);
        for (size_t k = 0; k < g->instances.n; k++)
            if (g->instances.at[k].uuid && bh_str_eq(g->instances.at[k].uuid, uuid))
                bh_vacant_judge(g, &g->instances.at[k], ret);
    }
    bh_gpu_snapshot_fini(&now);
}

static uint64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void bh_vacant_look(const char *uuid, unsigned patience_ms, struct bh_vacant *ret)
{
    const uint64_t end = clock_ms() + patience_ms;
    for (;;) {
        look_once(uuid, ret);
        if (ret->vacant || clock_ms() >= end)
            return;
        (void)poll(NULL, 0, LOOK_MS);
    }
}

bool bh_vacant_covered(const struct bh_vacant *before, uint64_t looked_bytes, char *words, size_t size)
{
    const uint64_t all = before->usable_bytes ? before->usable_bytes : 1;
    const uint64_t looked = looked_bytes < all ? looked_bytes : all;
    /* In thousandths: 141 GiB times a thousand fit many times. */
    const uint64_t permille = looked / BH_MIB * 1000 / (all / BH_MIB ? all / BH_MIB : 1);
    const bool enough = looked + OWN_BYTES >= before->free_bytes;
    (void)snprintf(words, size, "%llu.%llu %% of the %llu MiB that can be used%s",
                   (unsigned long long)(permille / 10), (unsigned long long)(permille % 10),
                   (unsigned long long)(all / BH_MIB),
                   enough ? "" : " were to be had, and nobody is said to have the rest");
    return enough;
}
