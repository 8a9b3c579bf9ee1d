/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_files.h - small files that others read while we write: whole, on disk, or not there. */
#ifndef BH_HOST_BUNDLE_FILES_H
#define BH_HOST_BUNDLE_FILES_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* Written beside it, synced and put in its place; `at` is an open folder, `name` has no slash. */
int bh_file_put(int at, const char *name, const char *text, size_t n, mode_t mode,
                struct bh_err *err) BH_MUST_USE;
/* Opens a folder that no symbolic link stands for. mode not 0: made with it where there is none (its parent must be there). */
int bh_folder_open(const char *path, mode_t mode, int *ret_fd, struct bh_err *err) BH_MUST_USE;
/* errno as a code of ours, with the path. */
int bh_file_fail(const char *path, int error, struct bh_err *err);

#endif
