/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - whole files and folders of them, for readers. */
#ifndef BH_CONF_FILE_H
#define BH_CONF_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The text of a file, or of standard input for `-`; NUL-terminated, the caller frees it.
 * More than max bytes are refused without reading on.
 */
int bh_file_read(const char *path, size_t max, char **ret_text, size_t *ret_n,
                 struct bh_err *err) BH_MUST_USE;

bool bh_file_is_folder(const char *path);

/* A file of a folder. odd: why it cannot be read, by its name it should (`a link to nowhere`); NULL: it can. */
struct bh_listed {
    const char *path, *odd;
};
typedef BH_VEC(struct bh_listed) bh_listed_vec;
/*
 * Append every .yaml, .yml, .json and .conf file below a folder, sorted by name within each
 * folder, folders and files together. Hidden ones are passed over; a folder that links lead
 * to again is read once. Paths are kept in *a.
 */
int bh_file_list(struct bh_arena *a, const char *folder, bh_listed_vec *ret, struct bh_err *err) BH_MUST_USE;

#endif
