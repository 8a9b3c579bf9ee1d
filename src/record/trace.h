/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - runs a command and records what it asks the NVIDIA driver for.
 *
 * The command, its threads and its children run under ptrace; a seccomp filter stops them only at the few
 * system calls that can concern a device file, so the rest runs at full speed. Nothing in the command is
 * changed, no library is preloaded. What a process closes by ending is not seen. 32-bit programs are not
 * looked into.
 */
#ifndef BH_RECORD_TRACE_H
#define BH_RECORD_TRACE_H

#include "record/record.h"

/*
 * Runs argv (looked up in PATH) to its end and fills *ret, which the caller ends with bh_recording_fini also
 * on failure to record. dev is where device files are: "/dev". *ret_status: the command's exit status, or 128
 * plus the signal that ended it. Processes that outlive the command are followed to their end too. The caller
 * must have no other children meanwhile: they would be waited for as well.
 */
int bh_record_run(const char *dev, char *const argv[], struct bh_recording *ret, int *ret_status,
                  struct bh_err *err) BH_MUST_USE;

#endif
