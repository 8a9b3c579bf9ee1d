/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - what work wrote, as its keeper leaves it on disk: a stream of bytes of which the last part is kept.
 *
 * NAME is the newest part. The one before it is NAME.to-N, where N counts all bytes written before NAME began; there is at most
 * one of these that counts, the greatest. So an offset into the stream is the same for whoever reads, whatever was
 * dropped since, and a reader knows how much that was.
 */
#ifndef BH_WIRE_STREAM_H
#define BH_WIRE_STREAM_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_STREAM_NAME_MAX = 64 };

/* The name of the part before, where the newest one begins at `to`. */
void bh_stream_before(const char *name, uint64_t to, char ret[BH_STREAM_NAME_MAX]);
/* The other way: false: it is no such name. */
bool bh_stream_is_before(const char *file, const char *name, uint64_t *ret_to);

/* The newest part as it was: another is there once one of these differs. */
struct bh_stream_mark {
    uint64_t size;
    ino_t inode; /* 0: it was not there */
};
struct bh_stream_got {
    uint64_t dropped; /* bytes between what was asked for and the first that is still there */
    uint64_t next;    /* offset behind what was read */
    bool end;         /* nothing more is there now */
    struct bh_stream_mark mark;
};
/* At most so many bytes from an offset on, added to out. A folder or file that is not there has none. */
int bh_stream_read(const char *folder, const char *name, uint64_t offset, size_t most, struct bh_buf *out,
                   struct bh_stream_got *ret, struct bh_err *err) BH_MUST_USE;
/* Whether the newest part is another than it was. */
bool bh_stream_has_moved(const char *folder, const char *name, const struct bh_stream_mark *mark);

#endif
