/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - the tenant's filter as an OCI seccomp profile, for whoever starts containers.
 *
 * A runtime builds the filter from it through libseccomp and sends the listener to a socket (linux.seccomp of the OCI
 * runtime specification). libseccomp ends the thread that makes a call of an architecture which is not in the list, so
 * 32-bit and x32 programs end by SIGSYS in a container, where below `bulkhead run` they get ENOSYS.
 */
#ifndef BH_HOST_PROFILE_H
#define BH_HOST_PROFILE_H

#include "base/buf.h"
#include "host/filter.h"

#include <stdbool.h>

enum { BH_PROFILE_VERSION = 1, BH_PROFILE_NAME_MAX = 64 };

/* What the listener's metadata says: which rules the sender's filter has, and the name it was made for. */
struct bh_profile_mark {
    unsigned flags; /* enum bh_filter_flags */
    char name[BH_PROFILE_NAME_MAX];
};

/* Ends with a newline. name: letters, digits, `.`, `_` and `-`; "": none. */
void bh_profile_write(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                      const char *listener_path, struct bh_buf *out);
/* For a container of ours, with what no tenant needs of the kernel refused as well; listener_path NULL: its card is its own, and
 * there is no gate. */
void bh_profile_container(const struct bh_filter_arch *arch, const struct bh_profile_mark *mark,
                          const char *listener_path, struct bh_buf *out);
/* Is it a name that a mark can carry? "" is. */
bool bh_profile_name_valid(const char *name);
/* BH_REFUSED: the metadata is not one that bh_profile_write wrote, or of another version. */
int bh_profile_read_mark(const char *metadata, struct bh_profile_mark *ret, struct bh_err *err) BH_MUST_USE;

#endif
