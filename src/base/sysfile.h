/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysfile.h - small files the kernel or the distribution keeps: /proc, /sys, /var/lib.
 *
 * Paths are absolute and are looked up below the folder that BULKHEAD_SYSROOT names, so that a test or a
 * support bundle can stand for a machine. Reading never waits: a pipe or a device in a file's place is refused.
 */
#ifndef BH_BASE_SYSFILE_H
#define BH_BASE_SYSFILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { BH_SYSPATH_MAX = 1024 };

/* The folder BULKHEAD_SYSROOT names; "" when it is not set. */
const char *bh_sysroot(void);
/* `path` below the root into buf; false: too long. */
bool bh_syspath(char buf[BH_SYSPATH_MAX], const char *path);
bool bh_sysfile_exists(const char *path);
/*
 * The bytes of a file, NUL-terminated, the caller frees them; *ret_n (may be NULL) without the NUL.
 * BH_NOT_FOUND, BH_DENIED, BH_TOO_LARGE past max bytes, else BH_SYSTEM.
 */
int bh_sysfile_read(const char *path, size_t max, char **ret, size_t *ret_n, struct bh_err *err) BH_MUST_USE;
/* The first line without blanks around it, cut to size. */
int bh_sysfile_line(const char *path, char *buf, size_t size, struct bh_err *err) BH_MUST_USE;

#endif
