/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_test.c - cgroups of this machine, as root, and version 2's files on a folder that stands for a machine.
 *
 * Where nobody may make cgroups, or a controller is not there, a test says so and holds nothing. On a machine with version 1 the limits
 * of version 2 are written to plain files only; tests/guest runs this on one with version 2 alone.
 */
#include "host/cgroup.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "base/test.h"
#include "host/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- this machine ---- */

static char name[64]; /* of a group of this process */

/* False: it cannot be tried here, which was said. */
static bool here(struct bh_cgroups *c, unsigned needed)
{
    struct bh_err err;
    unsigned have = 0;
    (void)snprintf(name, sizeof(name), "bulkhead-test-%d/L1", (int)getpid());
    if (geteuid() != 0 || bh_cgroups_open("", c, &err) < 0) {
        printf("# skipped: %s\n", geteuid() ? "needs root" : err.msg);
        return false;
    }
    for (size_t i = 0; i < c->n; i++)
        have |= c->at[i].controllers;
    /* What a test before this one left when it failed. */
    (void)!bh_cgroup_kill(c, name, 10000, NULL);
    (void)!bh_cgroup_remove(c, name, NULL);
    const int rc = (have & needed) == needed ? bh_cgroup_make(c, name, &err) : BH_REFUSED;
    if (rc < 0) {
        printf("# skipped: %s\n", rc == BH_REFUSED ? "a controller is not mounted" : err.msg);
        bh_cgroups_close(c);
        return false;
    }
    return true;
}

/* With what is above it. */
static bool clean(struct bh_cgroups *c)
{
    struct bh_err err = {0};
    char above[64];
    memcpy(above, name, sizeof(above));
    *strchr(above, '/') = '\0';
    const bool ok = bh_cgroup_kill(c, name, 10000, &err) == BH_OK &&
                    bh_cgroup_remove(c, name, &err) == BH_OK && bh_cgroup_remove(c, above, &err) == BH_OK;
    if (!ok)
        printf("# %s\n", err.msg);
    bh_cgroups_close(c);
    return ok;
}

/* A child that is in the group, in all hierarchies, and does `work`; its process. */
static pid_t inside(const struct bh_cgroups *c, int (*work)(void))
{
    int joined[2];
    char byte;
    (void)fflush(stdout);
    if (pipe2(joined, O_CLOEXEC) < 0)
        abort();
    const pid_t pid = fork();
    if (pid == 0) {
        if (bh_cgroup_join(c, name, 0, NULL) < 0)
            _exit(99);
        close(joined[0]);
        close(joined[1]);
        _exit(work());
    }
    close(joined[1]);
    (void)!read(joined[0], &byte, 1); /* its end closes */
    close(joined[0]);
    return pid;
}

static int status_of(pid_t pid)
{
    int status = -1;
    (void)waitpid(pid, &status, 0);
    return status;
}

static int sleeps(void)
{
    while (pause() < 0) {
    }
    return 0;
}

static void ends(int number)
{
    _exit(number);
}

static int forks(void)
{
    int n = 0;
    for (; n < 64; n++) {
        const pid_t pid = fork();
        if (pid < 0)
            return errno == EAGAIN ? n : 98;
        if (pid == 0)
            _exit(sleeps());
    }
    return 97;
}

/* Whoever is killed has left two others. */
static int bomb(void)
{
    while (fork() < 0 ? poll(NULL, 0, 1) == 0 : 1) {
    }
    return 0;
}

static int eats(void)
{
    enum { PIECE = 1 << 20, PIECES = 256 };
    for (int i = 0; i < PIECES; i++)
        memset(bh_alloc(PIECE, 1), 1 + i, PIECE);
    return 0;
}

static bool lists(const struct bh_cgroups *c, size_t n)
{
    struct bh_cgroup_pids pids = {0};
    for (int i = 0; i < 1000; i++) {
        if (bh_cgroup_list(c, name, &pids, NULL) == BH_OK && pids.n == n)
            break;
        (void)poll(NULL, 0, 10);
    }
    const bool ok = pids.n == n;
    bh_vec_fini(&pids);
    return ok;
}

TEST(made_joined_listed_killed_removed)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_FREEZER))
        return;
    struct bh_arena arena = {0};
    struct bh_cgroup_names names = {0};
    struct bh_err err;
    CHECK_EQ(bh_cgroup_make(&c, name, &err), BH_OK);
    CHECK(lists(&c, 0));
    const pid_t a = inside(&c, sleeps), b = inside(&c, sleeps);
    CHECK(lists(&c, 2));
    CHECK_EQ(bh_cgroup_remove(&c, name, &err), BH_BUSY);
    CHECK(!bh_cgroup_is_gone(&c, name));
    char above[64];
    memcpy(above, name, sizeof(above));
    *strchr(above, '/') = '\0';
    CHECK_EQ(bh_cgroup_below(&c, above, &arena, &names, &err), BH_OK);
    CHECK_EQ(names.n, 1);
    CHECK_STR(names.at[0], "L1");
    CHECK_EQ(bh_cgroup_signal(&c, name, SIGTERM, &err), BH_OK);
    CHECK_EQ(status_of(a), SIGTERM);
    CHECK_EQ(status_of(b), SIGTERM);
    CHECK(lists(&c, 0));
    CHECK(clean(&c));
    CHECK_EQ(bh_cgroups_open("", &c, &err), BH_OK);
    CHECK(bh_cgroup_is_gone(&c, name));
    CHECK_EQ(bh_cgroup_kill(&c, name, 0, &err), BH_OK); /* nothing is there */
    CHECK_EQ(bh_cgroup_remove(&c, name, &err), BH_OK);
    bh_cgroups_close(&c);
    bh_vec_fini(&names);
    bh_arena_fini(&arena);
}

TEST(frozen_does_nothing_and_is_killed)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_FREEZER))
        return;
    struct bh_err err;
    int status;
    /* Who has a handler for a signal must run to hear it; with none it ends a frozen process of version 2 as well. */
    (void)signal(SIGTERM, ends);
    const pid_t pid = inside(&c, sleeps);
    (void)signal(SIGTERM, SIG_DFL);
    CHECK(lists(&c, 1));
    CHECK_EQ(bh_cgroup_freeze(&c, name, true, &err), BH_OK);
    CHECK_EQ(kill(pid, SIGTERM), 0);
    (void)poll(NULL, 0, 50);
    CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
    CHECK_EQ(bh_cgroup_kill(&c, name, 10000, &err), BH_OK);
    CHECK(WIFSIGNALED(status_of(pid)));
    CHECK(clean(&c));
}

TEST(pids_are_limited)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_PIDS))
        return;
    struct bh_err err;
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.pids = 5}, &err), BH_OK);
    CHECK_EQ(WEXITSTATUS(status_of(inside(&c, forks))), 4);
    CHECK(clean(&c));
}

TEST(a_fork_bomb_is_emptied)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_PIDS | BH_CGROUP_FREEZER))
        return;
    struct bh_err err;
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.pids = 200}, &err), BH_OK);
    const pid_t pid = inside(&c, bomb);
    CHECK(lists(&c, 200));
    CHECK_EQ(bh_cgroup_kill(&c, name, 30000, &err), BH_OK);
    CHECK(WIFSIGNALED(status_of(pid)));
    CHECK(lists(&c, 0));
    CHECK(clean(&c));
}

TEST(memory_is_limited)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_MEMORY))
        return;
    struct bh_err err;
    uint64_t killed = 0, peak = 0;
    struct bh_keeper_limits limits = {.memory_bytes = 128 << 20};
    CHECK_EQ(bh_cgroup_limit(&c, name, &limits, &err), BH_OK);
    limits.memory_bytes = 64 << 20;
    CHECK_EQ(bh_cgroup_limit(&c, name, &limits, &err), BH_OK); /* less */
    CHECK_EQ(status_of(inside(&c, eats)), SIGKILL);
    CHECK(bh_cgroup_out_of_memory(&c, name, &killed));
    CHECK_EQ(killed, 1);
    CHECK(bh_cgroup_memory_peak(&c, name, &peak));
    CHECK(peak > 32 << 20 && peak <= 64 << 20);
    uint64_t cpu_ns = 0;
    CHECK(bh_cgroup_cpu_ns(&c, name, &cpu_ns) && cpu_ns > 0); /* touching that took its time */
    limits.memory_bytes = 1 << 30;
    CHECK_EQ(bh_cgroup_limit(&c, name, &limits, &err), BH_OK); /* more */
    CHECK_EQ(status_of(inside(&c, eats)), 0);
    CHECK(clean(&c));
}

static bool says(const struct bh_cgroups *c, unsigned controller, const char *file, const char *text)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, controller);
    BH_AUTOFREE char *have = h ? bh_cgroup_get(h, name, file) : NULL;
    if (have)
        have[strcspn(have, "\n")] = '\0';
    if (!have || !bh_str_eq(have, text))
        printf("# %s: %s, not %s\n", file, have ? have : "(none)", text);
    return have && bh_str_eq(have, text);
}

TEST(time_and_place_are_limited)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_CPU | BH_CGROUP_CPUSET))
        return;
    struct bh_err err;
    const struct bh_keeper_limits limits = {.cpu_milli = 1500, .cpus = "0", .nodes = "0"};
    CHECK_EQ(bh_cgroup_limit(&c, name, &limits, &err), BH_OK);
    const bool unified = bh_cgroup_holder(&c, BH_CGROUP_CPU)->unified;
    CHECK(unified ? says(&c, BH_CGROUP_CPU, "cpu.max", "150000 100000")
                  : says(&c, BH_CGROUP_CPU, "cpu.cfs_quota_us", "150000"));
    CHECK(says(&c, BH_CGROUP_CPUSET, "cpuset.cpus", "0"));
    CHECK(says(&c, BH_CGROUP_CPUSET, "cpuset.mems", "0"));
    const struct bh_keeper_limits wrong = {.cpus = "900000"};
    CHECK(bh_cgroup_limit(&c, name, &wrong, &err) < 0);
    CHECK(clean(&c));
}

/* ---- devices ---- */

static int opens(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 ? 0 : errno;
}

enum { KMSG = 11, MEM = 1, NEW = 3 }; /* minors of the kernel's own major 1 */

static char nodes[PATH_MAX];

static const char *node_of(unsigned minor_, char *path)
{
    (void)snprintf(path, PATH_MAX, "%.4000s-%u", nodes, minor_);
    return path;
}

static int opens_node(unsigned minor_)
{
    char path[PATH_MAX];
    return opens(node_of(minor_, path));
}

/* A bit for each that is as it should be: null and the lease's own open, others and mknod refused. A driver need not be there: the
 * cgroup is asked first. */
static int tries_devices(void)
{
    char path[PATH_MAX];
    return (opens("/dev/null") == 0 ? 1 : 0) | (opens_node(KMSG) != EPERM ? 2 : 0) |
           (opens_node(MEM) == EPERM ? 4 : 0) |
           (mknod(node_of(NEW, path), S_IFCHR | 0600, makedev(1, 3)) < 0 && errno == EPERM ? 8 : 0);
}

static const struct bh_keeper_device kmsg = {1, KMSG};
static const struct bh_keeper_limits only_kmsg = {.devices_held = true, .devices = &kmsg, .n_devices = 1};

static bool are_held(const struct bh_cgroups *c)
{
    static const unsigned minors[] = {KMSG, MEM, NEW};
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];
    bool made = true;
    (void)snprintf(nodes, sizeof(nodes), "%s/bh-cgroup-node-%d", base ? base : P_tmpdir, (int)getpid());
    for (size_t i = 0; i < 2; i++)
        made &= mknod(node_of(minors[i], path), S_IFCHR | 0600, makedev(1, minors[i])) == 0;
    const int got = made ? WEXITSTATUS(status_of(inside(c, tries_devices))) : 0;
    for (size_t i = 0; i < BH_COUNT_OF(minors); i++)
        (void)unlink(node_of(minors[i], path));
    if (!made)
        printf("# skipped: no device files can be made here\n");
    else if (got != 15)
        printf("# of null, own, other and mknod: %#x\n", (unsigned)got);
    return !made || got == 15;
}

TEST(devices_are_held)
{
    struct bh_cgroups c;
    if (!here(&c, BH_CGROUP_DEVICES))
        return;
    struct bh_err err;
    CHECK_EQ(bh_cgroup_limit(&c, name, &only_kmsg, &err), BH_OK);
    CHECK_EQ(bh_cgroup_limit(&c, name, &only_kmsg, &err), BH_OK);
    CHECK(are_held(&c));
    CHECK(clean(&c));
}

/* As on a machine where version 1 does not hold devices. */
TEST(devices_of_version_2_are_held)
{
    struct bh_cgroups c;
    bool unified = false;
    if (!here(&c, 0))
        return;
    struct bh_err err;
    for (size_t i = 0; i < c.n; i++) {
        c.at[i].controllers &= ~(unsigned)BH_CGROUP_DEVICES;
        c.at[i].controllers |= c.at[i].unified ? BH_CGROUP_DEVICES : 0;
        unified |= c.at[i].unified;
    }
    if (unified) {
        CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.devices_held = true}, &err), BH_OK);
        CHECK_EQ(bh_cgroup_limit(&c, name, &only_kmsg, &err), BH_OK); /* takes the place of the first */
        CHECK(are_held(&c));
    } else {
        printf("# skipped: no cgroup2 is mounted\n");
    }
    CHECK(clean(&c));
}

/* ---- version 2, on plain files ---- */

static char root[PATH_MAX];

static void file(const char *path, const char *text)
{
    if (!bh_scratch_put(root, path, text))
        abort();
}

static void make_version_2(const char *controllers)
{
    if (!bh_scratch_make(root, sizeof(root), "cgroup"))
        abort();
    file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    file("/sys/fs/cgroup/cgroup.controllers", controllers);
    static const char *const files[] = {"memory.max",  "memory.swap.max", "pids.max",    "cpu.max",
                                        "io.max",      "cpuset.cpus",     "cpuset.mems", "cgroup.procs",
                                        "cgroup.kill", "cgroup.freeze",   "memory.peak", "memory.events",
                                        "cpu.stat"};
    for (size_t i = 0; i < BH_COUNT_OF(files); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup/bulkhead/L1/%s", files[i]);
        file(path, bh_str_eq(files[i], "memory.peak")     ? "4096\n"
                   : bh_str_eq(files[i], "cpu.stat")      ? "usage_usec 1500\nuser_usec 1000\n"
                   : bh_str_eq(files[i], "memory.events") ? "low 0\noom 2\noom_kill 1\n"
                                                          : "");
    }
    file("/sys/fs/cgroup/cgroup.subtree_control", "");
    file("/sys/fs/cgroup/bulkhead/cgroup.subtree_control", "");
    (void)snprintf(name, sizeof(name), "bulkhead/L1");
}

/* The last word that was written for those below; these are no files of a kernel, which would add them up. */
static bool handed_down(const char *word)
{
    char path[sizeof(root) + 64], text[64] = "";
    (void)snprintf(path, sizeof(path), "%s/sys/fs/cgroup/bulkhead/cgroup.subtree_control", root);
    FILE *f = fopen(path, "r");
    const bool ok = f && fgets(text, sizeof(text), f) && strncmp(text, word, strlen(word)) == 0;
    if (f)
        (void)fclose(f);
    return ok;
}

TEST(files_of_version_2)
{
    struct bh_cgroups c;
    struct bh_err err;
    uint64_t v = 0;
    make_version_2("cpuset cpu io memory pids\n");
    CHECK_EQ(bh_cgroups_open(root, &c, &err), BH_OK);
    CHECK_EQ(c.n, 1);
    CHECK(c.at[0].unified);
    CHECK_EQ(bh_cgroup_make(&c, name, &err), BH_OK);
    const struct bh_keeper_limits limits = {.memory_bytes = 1 << 30,
                                            .pids = 7,
                                            .cpu_milli = 2500,
                                            .cpus = "0-3",
                                            .nodes = "0",
                                            .disk_bytes_per_s = 5 << 20};
    file("/sys/block/vda/dev", "254:0\n");
    file("/sys/block/vda/device/x", "");
    CHECK_EQ(bh_cgroup_limit(&c, name, &limits, &err), BH_OK);
    CHECK(handed_down("+io"));
    CHECK(says(&c, BH_CGROUP_IO, "io.max", "254:0 rbps=5242880 wbps=5242880"));
    CHECK(says(&c, BH_CGROUP_MEMORY, "memory.max", "1073741824"));
    CHECK(says(&c, BH_CGROUP_MEMORY, "memory.swap.max", "0"));
    CHECK(says(&c, BH_CGROUP_PIDS, "pids.max", "7"));
    CHECK(says(&c, BH_CGROUP_CPU, "cpu.max", "250000 100000"));
    CHECK(says(&c, BH_CGROUP_CPUSET, "cpuset.cpus", "0-3"));
    CHECK(says(&c, BH_CGROUP_CPUSET, "cpuset.mems", "0"));
    CHECK_EQ(bh_cgroup_freeze(&c, name, true, &err), BH_OK);
    CHECK(says(&c, BH_CGROUP_FREEZER, "cgroup.freeze", "1"));
    CHECK_EQ(bh_cgroup_join(&c, name, 4321, &err), BH_OK);
    CHECK(says(&c, BH_CGROUP_FREEZER, "cgroup.procs", "4321"));
    CHECK(bh_cgroup_memory_peak(&c, name, &v));
    CHECK_EQ(v, 4096);
    CHECK(bh_cgroup_out_of_memory(&c, name, &v));
    CHECK_EQ(v, 1);
    CHECK(bh_cgroup_cpu_ns(&c, name, &v));
    CHECK_EQ(v, 1500000);
    bh_cgroups_close(&c);
    CHECK(bh_scratch_remove(root));
}

TEST(what_cannot_be_held_is_refused)
{
    struct bh_cgroups c;
    struct bh_err err;
    make_version_2("cpu\n");
    CHECK_EQ(bh_cgroups_open(root, &c, &err), BH_OK);
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.memory_bytes = 1}, &err), BH_REFUSED);
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.pids = 1}, &err), BH_REFUSED);
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.disk_bytes_per_s = 1}, &err), BH_REFUSED);
    CHECK_EQ(bh_cgroup_limit(&c, name, &(struct bh_keeper_limits){.cpus = "0"}, &err), BH_REFUSED);
    CHECK_EQ(bh_cgroup_limit(&c, "bulkhead/L2", &(struct bh_keeper_limits){.cpu_milli = 10}, &err),
             BH_REFUSED);
    CHECK_EQ(bh_cgroup_limit(&c, "../L2", &(struct bh_keeper_limits){0}, &err), BH_INVALID);
    bh_cgroups_close(&c);
    file("/proc/self/mountinfo", "30 23 0:26 / / rw - ext4 none rw\n");
    CHECK_EQ(bh_cgroups_open(root, &c, &err), BH_NOT_FOUND);
    CHECK(bh_scratch_remove(root));
}

TEST_MAIN
