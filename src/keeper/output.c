/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - a pipe, and two files for each of its names. */
#include "keeper/output.h"

#include "wire/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0600, PIECE = 64 << 10 };

static void open_file(struct bh_output *o)
{
    o->file = openat(o->folder, o->name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    o->written = 0;
}

/* The newest part becomes the one before, whose name says where the next begins; the one before that goes. */
static void rotate(struct bh_output *o)
{
    char before[BH_STREAM_NAME_MAX], older[BH_STREAM_NAME_MAX];
    bh_stream_before(o->name, o->turn, older);
    bh_stream_before(o->name, o->turn + o->written, before);
    if (o->file >= 0)
        close(o->file);
    if (renameat(o->folder, o->name, o->folder, before) == 0) {
        o->turn += o->written;
        (void)unlinkat(o->folder, older, 0);
    } else {
        o->lost += o->written; /* what comes takes its place */
    }
    open_file(o);
}

int bh_output_open(struct bh_output *o, int folder, const char *name, uint64_t room, int *ret_to,
                   struct bh_err *err)
{
    int pair[2];
    *o = (struct bh_output){.from = -1, .folder = folder, .file = -1, .name = name, .room = room};
    if (pipe2(pair, O_CLOEXEC) < 0)
        return bh_fail(err, BH_SYSTEM, "pipe: %s", strerrordesc_np(errno));
    open_file(o);
    if (o->file < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
        const int rc = bh_fail(err, BH_SYSTEM, "'%.200s': %s", name, strerrordesc_np(errno));
        close(pair[0]);
        close(pair[1]);
        bh_output_close(o);
        return rc;
    }
    o->from = pair[0];
    *ret_to = pair[1];
    return BH_OK;
}

/* A disk that is full may have room again later. */
static void put(struct bh_output *o, const char *at, size_t n)
{
    while (n > 0) {
        if (o->file < 0)
            open_file(o);
        const ssize_t done = o->file >= 0 ? write(o->file, at, n) : -1;
        if (done <= 0) {
            o->lost += n;
            return;
        }
        at += done;
        n -= (size_t)done;
        o->written += (uint64_t)done;
        if (o->written >= o->room / 2)
            rotate(o);
    }
}

bool bh_output_take(struct bh_output *o)
{
    char piece[PIECE];
    const size_t half = o->room / 2;
    /* No more than the file still takes, so that no file is longer than half. */
    const size_t left = o->written < half ? (size_t)(half - o->written) : 1;
    const ssize_t n = o->from >= 0 ? read(o->from, piece, left < PIECE ? left : PIECE) : -1;
    if (n > 0) {
        put(o, piece, (size_t)n);
        return true;
    }
    if (n == 0) {
        close(o->from);
        o->from = -1;
    }
    return false;
}

void bh_output_close(struct bh_output *o)
{
    if (o->from >= 0)
        close(o->from);
    if (o->file >= 0)
        close(o->file);
    o->from = o->file = -1;
}
