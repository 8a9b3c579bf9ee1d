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

/*
 * Open files alone, up to the hard limit, for a process that starts others: what these get is what it had itself. A program that keeps
 * descriptors in a set of 1024 (select) does not bear more.
 */
void bh_limits_raise_files(void);
/* In a child, before it becomes another program: as it was before. Where nothing was raised it does nothing. */
void bh_limits_lower_files(void);

#endif
