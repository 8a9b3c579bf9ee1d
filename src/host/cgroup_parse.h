/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_parse.h - the text of cgroup files, and the program that stands for a list of devices. Pure: nothing is opened. */
#ifndef BH_HOST_CGROUP_PARSE_H
#define BH_HOST_CGROUP_PARSE_H

#include "host/cgroup.h"

#include <linux/bpf.h>
#include <linux/limits.h>

struct bh_cgroup_mount {
    char path[PATH_MAX];
    unsigned controllers; /* version 1: those of its options; version 2: 0, its cgroup.controllers says */
    bool unified;
};
/* The next cgroup mount in the text of /proc/PID/mountinfo at or after *pos; moves *pos behind it. False: no more. */
bool bh_cgroup_next_mount(const char *text, size_t *pos, struct bh_cgroup_mount *ret);
/* `memory pids cpu`, `rw,cpu,cpuacct`: those that are known here. */
unsigned bh_cgroup_controllers(const char *words);
/* The number on the line `key N`. */
bool bh_cgroup_field(const char *text, const char *key, uint64_t *ret);

/* What every lease may open, before its own. */
extern const struct bh_keeper_device bh_cgroup_devices[];
extern const size_t bh_cgroup_n_devices;

/* Version 2: true for opening those of bh_cgroup_devices and of `limits`, false for all else and for making device files. The
 * caller frees *ret; how many instructions. */
size_t bh_cgroup_device_program(const struct bh_keeper_limits *limits, struct bpf_insn **ret);

/* Version 1: a line of devices.allow. */
struct bh_cgroup_rule {
    char text[40];
};
const char *bh_cgroup_device_rule(const struct bh_keeper_device *d, struct bh_cgroup_rule *ret);

#endif
