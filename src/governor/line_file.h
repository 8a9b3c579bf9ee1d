/* SPDX-License-Identifier: Apache-2.0 */
/* line_file.h - a file of whole lines, up to a bound: also where a disk is full it ends with the last one that fits. */
#ifndef BH_GOVERNOR_LINE_FILE_H
#define BH_GOVERNOR_LINE_FILE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_line_file { /* zeroed: none */
    bool open;
    int fd;
    int64_t size, max;
    struct bh_buf waiting;
};

/* Nobody's file is written over, and nobody else may write to this one. Where it cannot be made there is none. */
void bh_line_file_open(struct bh_line_file *f, const char *path, int64_t max);
void bh_line_file_add(struct bh_line_file *f, const char *line);
void bh_line_file_close(struct bh_line_file *f);

#endif
