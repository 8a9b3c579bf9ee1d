/* SPDX-License-Identifier: Apache-2.0 */
/* durable.h - small files that are whole after a crash, or not there. */
#ifndef BH_LAUNCH_DURABLE_H
#define BH_LAUNCH_DURABLE_H

#include "base/err.h"

#include <stddef.h>

/* `name` in the folder, mode 0600: written beside it, synced, put in its place, and the folder synced. */
int bh_durable_write(int folder, const char *name, const char *text, size_t n,
                     struct bh_err *err) BH_MUST_USE;
/* The same without waiting for the disk: whole after the end of a process, and after that of the machine once somebody has synced it. */
int bh_durable_place(int folder, const char *name, const char *text, size_t n,
                     struct bh_err *err) BH_MUST_USE;
/* As bh_durable_write, where nothing of that name is there yet. BH_CONFLICT: something is, and stays as it is. */
int bh_durable_create(int folder, const char *name, const char *text, size_t n,
                      struct bh_err *err) BH_MUST_USE;
/* All of it, NUL-terminated, the caller frees it. BH_NOT_FOUND; BH_TOO_LARGE past max. */
int bh_durable_read(int folder, const char *name, size_t max, char **ret, size_t *ret_n,
                    struct bh_err *err) BH_MUST_USE;

#endif
