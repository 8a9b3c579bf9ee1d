/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - what the work writes, from a pipe into a file that does not grow without end.
 *
 * When half of the room is used the file becomes the part before (wire/stream.h), in the place of the one that was, and a new
 * one begins: the last half at least is always there, and the work never waits for a disk that is full or fails. What could
 * not be written is counted.
 */
#ifndef BH_KEEPER_OUTPUT_H
#define BH_KEEPER_OUTPUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_output {
    int from;         /* our end of the pipe; -1: closed */
    int folder, file; /* file -1: it could not be opened */
    const char *name;
    uint64_t room, written; /* for both files; in this one */
    uint64_t turn;          /* of the stream's bytes, where this one begins */
    uint64_t lost;
};

/* *ret_to: the work's end. The folder stays the caller's. */
int bh_output_open(struct bh_output *o, int folder, const char *name, uint64_t room, int *ret_to,
                   struct bh_err *err) BH_MUST_USE;
/* Takes some of what is there. False: the last one who could write is gone, or nothing is there now. */
bool bh_output_take(struct bh_output *o);
void bh_output_close(struct bh_output *o);

#endif
