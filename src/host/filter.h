/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - which system calls of a tenant go to the gate, which are refused, and which it keeps.
 *
 * Only what can obtain video memory, and what could get around that: ioctls whose low eight bits are one of the driver's
 * allocating numbers (the driver looks at nothing else), shared mappings of a file, calls of another architecture, io_uring,
 * and reaching into another process. Everything else runs at full speed. The filter is inherited by fork and exec.
 */
#ifndef BH_HOST_FILTER_H
#define BH_HOST_FILTER_H

#include "base/err.h"

#include <linux/filter.h>
#include <stddef.h>

enum { BH_FILTER_MAX = 160 };

/* The program, and how many instructions it has. */
size_t bh_filter_build(struct sock_filter ret[BH_FILTER_MAX]);
/* Puts it on the calling thread (before exec, single-threaded). The listener is close-on-exec. */
int bh_filter_install(int *ret_listener, struct bh_err *err) BH_MUST_USE;

#endif
