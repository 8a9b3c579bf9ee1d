/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - limits that whoever started this process set for something else.
 *
 * A shell's ulimit is meant for the command. A process that serves others by the hundred would fail them by it: it holds a
 * file for each of theirs, and the time it takes is theirs.
 */
#ifndef BH_HOST_LIMITS_H
#define BH_HOST_LIMITS_H

/* Open files, size of files, address space and processor time: as much as this process may have. What it may not raise
 * stays as it is. */
void bh_limits_raise(void);

#endif
