/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - how much of certain files a process has mapped, from /proc/PID/maps. */
#ifndef BH_WARDEN_MAPS_H
#define BH_WARDEN_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Bytes mapped, shared, of one of the n files, or of any file whose path ends in `suffix` (a file may be closed while it is
 * mapped, and a folder in layers may show another inode than the file has). Negative errno: it cannot be read;
 * -ESRCH: the process is ending.
 */
int64_t bh_maps_bytes(uint32_t pid, const struct stat *files, size_t n, const char *suffix);
/* The same as an older kernel lets it be done: also what is not shared counts. */
int64_t bh_maps_read_bytes(uint32_t pid, const struct stat *files, size_t n, const char *suffix);
/* The same of a text: whole lines only. */
uint64_t bh_maps_text_bytes(const char *text, size_t n_text, const struct stat *files, size_t n,
                            const char *suffix);

/* The file that is mapped at an address; inode 0: none, it is memory. -ENOENT: nothing is there; another negative errno: it
 * cannot be told. */
struct bh_maps_file {
    uint64_t inode, on_major, on_minor;
};
int bh_maps_file_at(uint32_t pid, uint64_t at, struct bh_maps_file *ret);
/* The same as an older kernel lets it be done. */
int bh_maps_read_file_at(uint32_t pid, uint64_t at, struct bh_maps_file *ret);

#endif
