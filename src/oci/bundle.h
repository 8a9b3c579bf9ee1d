/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.h - files of somebody else's bundle, as this machine has them. */
#ifndef BH_OCI_BUNDLE_H
#define BH_OCI_BUNDLE_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* A plain file, NUL-terminated, the caller frees it. *ret_mode (may be NULL): its mode. */
int bh_oci_read_file(const char *path, size_t max, char **ret, size_t *ret_n, struct bh_err *err) BH_MUST_USE;
int bh_oci_read_config(const char *bundle, char **ret, size_t *ret_n, mode_t *ret_mode,
                       struct bh_err *err) BH_MUST_USE;

#endif
