/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - a whole file or none. */
#ifndef BH_CLI_SAVE_H
#define BH_CLI_SAVE_H

#include "base/err.h"
#include "cli/cli.h"

#include <stdbool.h>
#include <stddef.h>

/* Without replace a path that exists is BH_CONFLICT, and what is there stays as it is. */
int bh_file_save(const char *path, const char *text, size_t n, bool replace, struct bh_err *err) BH_MUST_USE;

/*
 * A verb's result: to standard output (path NULL or `-`), else saved, said, and followed by the next command:
 * `next` and the file's name, quoted for a shell.
 */
int bh_cli_save(struct bh_cli *cli, const char *path, const struct bh_buf *text, bool replace,
                const char *next, struct bh_err *err) BH_MUST_USE;

#endif
