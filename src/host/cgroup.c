/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.c - the cgroups of leases, in every hierarchy at once.
 *
 * On a machine with both versions a lease has a folder in version 2 as well: it holds no controller there, but cgroup.kill works.
 * Hierarchies without a controller of ours are looked at only when a group is listed, emptied or removed: container runtimes use
 * them too, and one that was killed leaves its folders.
 */
#include "host/cgroup.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/cgroup_file.h"
#include "host/cgroup_parse.h"
#include "host/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FOLDER_MODE = 0755,
    PERIOD_US = 100000, /* of a processor's time */
};

/* ---- hierarchies ---- */

static void take_mount(struct bh_cgroups *c, const char *root, const struct bh_cgroup_mount *m)
{
    char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s%s", root, m->path);
    const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    unsigned own = m->controllers, seen = 0;
    for (size_t i = 0; i < c->n; i++)
        seen |= c->at[i].unified == m->unified ? c->at[i].controllers : 0;
    /* Mounted somewhere else as well; or hidden below a later mount, or not for us. */
    if (fd < 0 || c->n == BH_CGROUP_HIERARCHIES || (own && (own & seen) == own) || (m->unified && seen)) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (m->unified) {
        BH_AUTOFREE char *words = bh_cgroup_read_at(fd, "cgroup.controllers");
        own = (words ? bh_cgroup_controllers(words) : 0) | BH_CGROUP_FREEZER;
    }
    c->at[c->n++] = (struct bh_cgroup_hierarchy){.fd = fd, .controllers = own, .unified = m->unified};
}

int bh_cgroups_open(const char *root, struct bh_cgroups *ret, struct bh_err *err)
{
    char path[PATH_MAX];
    struct bh_cgroup_mount m;
    unsigned one = 0;
    size_t pos = 0;
    *ret = (struct bh_cgroups){.root = root};
    (void)snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    BH_AUTOFREE char *text = bh_cgroup_read_at(AT_FDCWD, path);
    if (!text)
        return bh_fail(err, BH_SYSTEM, "'%.200s': %s", path, strerrordesc_np(errno));
    while (bh_cgroup_next_mount(text, &pos, &m))
        take_mount(ret, root, &m);
    for (size_t i = 0; i < ret->n; i++)
        one |= ret->at[i].unified ? 0 : ret->at[i].controllers;
    /* Where version 1 holds devices or freezes, version 2 need not. */
    for (size_t i = 0; i < ret->n; i++)
        if (ret->at[i].unified && !(one & BH_CGROUP_DEVICES))
            ret->at[i].controllers |= BH_CGROUP_DEVICES;
    return ret->n ? BH_OK
                  : bh_fail(err, BH_NOT_FOUND,
                            "no cgroup hierarchy is mounted: mount cgroup2 on /sys/fs/cgroup");
}

void bh_cgroups_close(struct bh_cgroups *c)
{
    for (size_t i = 0; i < c->n; i++)
        close(c->at[i].fd);
    c->n = 0;
}

/* Ours to make folders in. */
static bool is_used(const struct bh_cgroup_hierarchy *h)
{
    return h->unified || h->controllers;
}

/* ---- making ---- */

/* Version 1: a new group has no processors and no memory nodes, and nobody can join it. */
static int inherit_cpuset(const struct bh_cgroup_hierarchy *h, const char *above, const char *name)
{
    static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
    for (size_t i = 0; i < BH_COUNT_OF(files); i++) {
        BH_AUTOFREE char *have = bh_cgroup_get(h, name, files[i]), *from = bh_cgroup_get(h, above, files[i]);
        if (!have || !from)
            return ENOENT;
        const int error = have[strspn(have, " \n")] ? 0 : bh_cgroup_set(h, name, files[i], from);
        if (error)
            return error;
    }
    return 0;
}

/* Version 2: those below `name` may have limits. One that cannot be had is missed when a limit of its is set. */
static void hand_down(const struct bh_cgroup_hierarchy *h, const char *name)
{
    static const char *const words[] = {"+memory", "+pids", "+cpu", "+cpuset", "+io"};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        (void)bh_cgroup_set(h, name, "cgroup.subtree_control", words[i]);
}

static int make_one(const struct bh_cgroup_hierarchy *h, const char *above, const char *name)
{
    if (h->unified)
        hand_down(h, above);
    if (mkdirat(h->fd, name, FOLDER_MODE) < 0 && errno != EEXIST)
        return errno;
    return !h->unified && h->controllers & BH_CGROUP_CPUSET ? inherit_cpuset(h, above, name) : 0;
}

int bh_cgroup_make(const struct bh_cgroups *c, const char *name, struct bh_err *err)
{
    int rc = bh_cgroup_check_name(name, err);
    for (size_t i = 0; rc == BH_OK && i < c->n; i++) {
        char above[BH_CGROUP_NAME_MAX] = ".", part[BH_CGROUP_NAME_MAX];
        for (const char *end = name; is_used(&c->at[i]) && rc == BH_OK && *end;) {
            end += *end == '/';
            end += strcspn(end, "/");
            memcpy(part, name, (size_t)(end - name));
            part[end - name] = '\0';
            const int error = make_one(&c->at[i], above, part);
            if (error)
                rc = bh_cgroup_fail(err, error, part, "making it");
            memcpy(above, part, sizeof(above));
        }
    }
    return rc;
}

/* ---- limits ---- */

static int no_controller(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_REFUSED,
                   "this machine cannot hold %s: no cgroup controller for it is mounted or handed down",
                   what);
}

static int put(const struct bh_cgroup_hierarchy *h, const char *name, const char *file, const char *value,
               struct bh_err *err)
{
    char what[200];
    const int error = bh_cgroup_set(h, name, file, value);
    (void)snprintf(what, sizeof(what), "%s to %.100s", file, value);
    if (error == ENOENT)
        return no_controller(err, what);
    return error ? bh_cgroup_fail(err, error, name, what) : BH_OK;
}

static int limit_memory(const struct bh_cgroups *c, const char *name, uint64_t bytes, struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_MEMORY);
    char value[24];
    if (!h)
        return no_controller(err, "memory");
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)bytes);
    int rc = BH_OK;
    if (h->unified) {
        rc = put(h, name, "memory.max", value, err);
        /* Not there without swap. */
        const int error = rc < 0 ? 0 : bh_cgroup_set(h, name, "memory.swap.max", "0");
        return error && error != ENOENT ? bh_cgroup_fail(err, error, name, "memory.swap.max") : rc;
    }
    /* Memory may not be more than memory and swap: raised, the other one goes first. */
    static const char both[] = "memory.memsw.limit_in_bytes", one[] = "memory.limit_in_bytes";
    const bool first = bh_cgroup_set(h, name, one, value) == 0;
    const int error = bh_cgroup_set(h, name, both, value);
    if (error && error != ENOENT)
        return bh_cgroup_fail(err, error, name, both);
    return first ? rc : put(h, name, one, value, err);
}

static int limit_pids(const struct bh_cgroups *c, const char *name, uint64_t pids, struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_PIDS);
    char value[24];
    (void)snprintf(value, sizeof(value), "%llu", (unsigned long long)pids);
    return h ? put(h, name, "pids.max", value, err) : no_controller(err, "the number of processes");
}

static int limit_cpu(const struct bh_cgroups *c, const char *name, uint32_t milli, struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_CPU);
    const unsigned long long quota = (unsigned long long)milli * (PERIOD_US / 1000);
    char value[48], period[24];
    if (!h)
        return no_controller(err, "processor time");
    (void)snprintf(period, sizeof(period), "%d", PERIOD_US);
    if (h->unified) {
        (void)snprintf(value, sizeof(value), "%llu %s", quota, period);
        return put(h, name, "cpu.max", value, err);
    }
    (void)snprintf(value, sizeof(value), "%llu", quota);
    const int rc = put(h, name, "cpu.cfs_period_us", period, err);
    return rc < 0 ? rc : put(h, name, "cpu.cfs_quota_us", value, err);
}

static int limit_cpuset(const struct bh_cgroups *c, const char *name, const char *file, const char *value,
                        struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_CPUSET);
    return h ? put(h, name, file, value, err) : no_controller(err, "a place on the machine");
}

/* One that was pulled out meanwhile has no speed. */
static int put_disk(const struct bh_cgroup_hierarchy *h, const char *name, const char *file,
                    const char *value, struct bh_err *err)
{
    return bh_cgroup_set(h, name, file, value) == ENODEV ? BH_OK : put(h, name, file, value, err);
}

static int limit_disk(const struct bh_cgroup_hierarchy *h, const char *name, const struct bh_disk *disk,
                      uint64_t bytes_per_s, struct bh_err *err)
{
    const unsigned long long rate = bytes_per_s;
    char value[96];
    if (h->unified) {
        (void)snprintf(value, sizeof(value), "%u:%u rbps=%llu wbps=%llu", disk->major, disk->minor, rate,
                       rate);
        return put_disk(h, name, "io.max", value, err);
    }
    (void)snprintf(value, sizeof(value), "%u:%u %llu", disk->major, disk->minor, rate);
    const int rc = put_disk(h, name, "blkio.throttle.read_bps_device", value, err);
    return rc < 0 ? rc : put_disk(h, name, "blkio.throttle.write_bps_device", value, err);
}

/* Reading and writing each disk of the machine. */
static int limit_disks(const struct bh_cgroups *c, const char *name, uint64_t bytes_per_s, struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_IO);
    bh_disks disks = {0};
    if (!h)
        return no_controller(err, "the speed of disks");
    int rc = bh_disks_list(c->root, &disks, err);
    for (size_t i = 0; rc == BH_OK && i < disks.n; i++)
        rc = limit_disk(h, name, &disks.at[i], bytes_per_s, err);
    bh_vec_fini(&disks);
    return rc;
}

/* The group keeps the program for as long as it is there; without a flag another one takes its place. */
static int attach_program(const struct bh_cgroup_hierarchy *h, const char *name,
                          const struct bh_keeper_limits *limits, struct bh_err *err)
{
    BH_AUTOFREE struct bpf_insn *program = NULL;
    const size_t n = bh_cgroup_device_program(limits, &program);
    union bpf_attr attr = {0};
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insn_cnt = (uint32_t)n;
    attr.insns = (uintptr_t)program;
    attr.license = (uintptr_t)"Apache-2.0";
    const int loaded = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
    if (loaded < 0)
        return bh_cgroup_fail(err, errno, name, "loading the program for its devices");
    const int group = openat(h->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    union bpf_attr to = {0};
    to.target_fd = (uint32_t)group;
    to.attach_bpf_fd = (uint32_t)loaded;
    to.attach_type = BPF_CGROUP_DEVICE;
    const bool ok = group >= 0 && syscall(SYS_bpf, BPF_PROG_ATTACH, &to, sizeof(to)) == 0;
    const int error = errno;
    if (group >= 0)
        close(group);
    close(loaded);
    return ok ? BH_OK : bh_cgroup_fail(err, error, name, "attaching the program for its devices");
}

static int limit_devices(const struct bh_cgroups *c, const char *name, const struct bh_keeper_limits *limits,
                         struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_DEVICES);
    struct bh_cgroup_rule rule;
    if (!h)
        return no_controller(err, "devices");
    if (h->unified)
        return attach_program(h, name, limits, err);
    /* Everything first: as long as the group allows by default, what it denies stays denied, whatever is allowed later. */
    int rc = put(h, name, "devices.deny", "a", err);
    for (size_t i = 0; rc == BH_OK && i < bh_cgroup_n_devices; i++)
        rc = put(h, name, "devices.allow", bh_cgroup_device_rule(&bh_cgroup_devices[i], &rule), err);
    for (size_t i = 0; rc == BH_OK && i < limits->n_devices; i++)
        rc = put(h, name, "devices.allow", bh_cgroup_device_rule(&limits->devices[i], &rule), err);
    return rc;
}

int bh_cgroup_limit(const struct bh_cgroups *c, const char *name, const struct bh_keeper_limits *limits,
                    struct bh_err *err)
{
    int rc = bh_cgroup_check_name(name, err);
    if (rc == BH_OK && limits->memory_bytes)
        rc = limit_memory(c, name, limits->memory_bytes, err);
    if (rc == BH_OK && limits->pids)
        rc = limit_pids(c, name, limits->pids, err);
    if (rc == BH_OK && limits->cpu_milli)
        rc = limit_cpu(c, name, limits->cpu_milli, err);
    if (rc == BH_OK && limits->cpus)
        rc = limit_cpuset(c, name, "cpuset.cpus", limits->cpus, err);
    if (rc == BH_OK && limits->nodes)
        rc = limit_cpuset(c, name, "cpuset.mems", limits->nodes, err);
    if (rc == BH_OK && limits->disk_bytes_per_s)
        rc = limit_disks(c, name, limits->disk_bytes_per_s, err);
    if (rc == BH_OK && limits->devices_held)
        rc = limit_devices(c, name, limits, err);
    return rc;
}

int bh_cgroup_join(const struct bh_cgroups *c, const char *name, pid_t pid, struct bh_err *err)
{
    int rc = bh_cgroup_check_name(name, err);
    char value[16];
    (void)snprintf(value, sizeof(value), "%d", (int)pid);
    for (size_t i = 0; rc == BH_OK && i < c->n; i++) {
        const int error = is_used(&c->at[i]) ? bh_cgroup_set(&c->at[i], name, "cgroup.procs", value) : 0;
        if (error)
            rc = bh_cgroup_fail(err, error, name, "joining it");
    }
    return rc;
}
