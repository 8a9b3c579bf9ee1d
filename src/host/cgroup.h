/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h - one cgroup for each lease: made, limited, joined, emptied and removed, on version 1, version 2 and both at once.
 *
 * A name (`bulkhead/L17`) stands for a folder in every hierarchy that is mounted. Each step can be done again. What is asked for
 * and cannot be held is an error; a hierarchy that nobody asks anything of need not be there.
 */
#ifndef BH_HOST_CGROUP_H
#define BH_HOST_CGROUP_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_CGROUP_HIERARCHIES = 16, BH_CGROUP_NAME_MAX = 128 };

enum bh_cgroup_controller {
    BH_CGROUP_MEMORY = 1,
    BH_CGROUP_PIDS = 2,
    BH_CGROUP_CPU = 4,
    BH_CGROUP_CPUSET = 8,
    BH_CGROUP_DEVICES = 16, /* version 2: by a program (BPF_CGROUP_DEVICE) */
    BH_CGROUP_FREEZER = 32, /* version 2: of every group */
    BH_CGROUP_IO = 64,      /* version 1: blkio */
};

struct bh_cgroup_hierarchy {
    int fd;               /* its root folder */
    unsigned controllers; /* of enum bh_cgroup_controller */
    bool unified;
};
struct bh_cgroups {
    struct bh_cgroup_hierarchy at[BH_CGROUP_HIERARCHIES];
    size_t n;
    const char *root; /* what they were opened with */
};

/* The hierarchies that are mounted. root: "" for this machine, or a folder that stands for one (kept by the caller).
 * BH_NOT_FOUND: none. */
int bh_cgroups_open(const char *root, struct bh_cgroups *ret, struct bh_err *err) BH_MUST_USE;
void bh_cgroups_close(struct bh_cgroups *c);

/* `a/b`: relative, each part of [A-Za-z0-9_.-] and none beginning with a dot. */
bool bh_cgroup_name_valid(const char *name);

/* In every hierarchy, and what is above it. */
int bh_cgroup_make(const struct bh_cgroups *c, const char *name, struct bh_err *err) BH_MUST_USE;
/* BH_REFUSED: this machine cannot hold one of them, and which. */
int bh_cgroup_limit(const struct bh_cgroups *c, const char *name, const struct bh_keeper_limits *limits,
                    struct bh_err *err) BH_MUST_USE;
/* pid 0: the caller. */
int bh_cgroup_join(const struct bh_cgroups *c, const char *name, pid_t pid, struct bh_err *err) BH_MUST_USE;

struct bh_cgroup_pids {
    pid_t *at;
    size_t n, cap;
};
/* Who is in it, or in one below it, in any hierarchy; each once, ascending. None where there is no such group. */
int bh_cgroup_list(const struct bh_cgroups *c, const char *name, struct bh_cgroup_pids *ret,
                   struct bh_err *err) BH_MUST_USE;
/* To each of them, once; who forks meanwhile may be missed. */
int bh_cgroup_signal(const struct bh_cgroups *c, const char *name, int signal,
                     struct bh_err *err) BH_MUST_USE;
/* BH_REFUSED: no freezer. Asks for it; that all are frozen is not waited for. */
int bh_cgroup_freeze(const struct bh_cgroups *c, const char *name, bool frozen,
                     struct bh_err *err) BH_MUST_USE;
/* Ends all of them, also those who fork as fast as they can. BH_BUSY: some are left (they hang in a driver), and how many. */
int bh_cgroup_kill(const struct bh_cgroups *c, const char *name, unsigned patience_ms,
                   struct bh_err *err) BH_MUST_USE;
/* With those below it. BH_OK where there is none; BH_BUSY: somebody is inside. */
int bh_cgroup_remove(const struct bh_cgroups *c, const char *name, struct bh_err *err) BH_MUST_USE;
/* Known to be in no hierarchy. */
bool bh_cgroup_is_gone(const struct bh_cgroups *c, const char *name);

/* What the kernel counted. false: it does not say. */
bool bh_cgroup_memory_peak(const struct bh_cgroups *c, const char *name, uint64_t *ret_bytes);
/* Processor time of all that were ever in it. */
bool bh_cgroup_cpu_ns(const struct bh_cgroups *c, const char *name, uint64_t *ret_ns);
bool bh_cgroup_out_of_memory(const struct bh_cgroups *c, const char *name, uint64_t *ret_killed);

struct bh_cgroup_names {
    const char **at;
    size_t n, cap;
};
/* The names of the groups right below `name` in any hierarchy, each once; in the arena (the array itself is bh_vec_fini'ed). */
int bh_cgroup_below(const struct bh_cgroups *c, const char *name, struct bh_arena *arena,
                    struct bh_cgroup_names *ret, struct bh_err *err) BH_MUST_USE;

#endif
