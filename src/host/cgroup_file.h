/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_file.h - the files of a cgroup in one hierarchy. Inside of host/cgroup. */
#ifndef BH_HOST_CGROUP_FILE_H
#define BH_HOST_CGROUP_FILE_H

#include "host/cgroup.h"

/* The text below a folder, which the caller frees; NULL: errno says why not. */
char *bh_cgroup_read_at(int dir, const char *path);
/* Of a group; the same. */
char *bh_cgroup_get(const struct bh_cgroup_hierarchy *h, const char *name, const char *file);
/* 0, or what errno said. */
int bh_cgroup_set(const struct bh_cgroup_hierarchy *h, const char *name, const char *file, const char *text);

const struct bh_cgroup_hierarchy *bh_cgroup_holder(const struct bh_cgroups *c, unsigned controller);
int bh_cgroup_check_name(const char *name, struct bh_err *err) BH_MUST_USE;
int bh_cgroup_fail(struct bh_err *err, int error, const char *name, const char *what);

#endif
