/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_host.h - this machine as the root of a container that brings none: which of its folders are shown.
 *
 * The root itself is a folder of the bundle with nothing in it but places to mount on, because a process cannot be given
 * `/` for a root of its own. Links stay links (/bin is one on most machines).
 */
#ifndef BH_HOST_BUNDLE_HOST_H
#define BH_HOST_BUNDLE_HOST_H

#include <stdbool.h>
#include <stddef.h>

#define BH_HOST_ROOTFS "rootfs"
enum { BH_HOST_FOLDERS = 9 };
extern const char *const bh_host_folders[BH_HOST_FOLDERS];

/* Is it a folder here, and not a link to one? */
bool bh_host_folder_is_mounted(size_t i);
/* Does the kernel count swap? Where it does not, a limit on it is refused by the runtime. */
bool bh_host_counts_swap(void);

#endif
