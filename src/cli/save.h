/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - a whole file or none. */
#ifndef BH_CLI_SAVE_H
#define BH_CLI_SAVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Without replace a path that exists is BH_CONFLICT, and what is there stays as it is. */
int bh_file_save(const char *path, const char *text, size_t n, bool replace, struct bh_err *err) BH_MUST_USE;

#endif
