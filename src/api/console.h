/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console.h - the files of the console (web/), which are a part of the program.
 *
 * They hold nothing that is not public, so whoever reaches the door may have them; what they show, they ask the API for with the
 * token of whoever looks. They are kept compressed and are sent so: every browser takes gzip.
 */
#ifndef BH_API_CONSOLE_H
#define BH_API_CONSOLE_H

#include <stddef.h>

struct bh_console_file {
    const char *path, *type;
    const char *etag; /* with its quotes */
    const unsigned char *at;
    size_t n;
};
extern const struct bh_console_file bh_console_files[]; /* written by tools/embed */
extern const size_t bh_console_file_count;

/* NULL: there is no such file, or it is not asked for with GET or HEAD. */
const struct bh_console_file *bh_console_find(const char *method, const char *path);

struct MHD_Connection;
/* Queues the file, or 304 where the caller has it; negative: the library could not. */
int bh_console_answer(struct MHD_Connection *mhd, const struct bh_console_file *f);

#endif
