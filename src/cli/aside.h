/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside.h - what is said on stderr while a command runs that has it too.
 *
 * A command can fill a pipe that nobody empties. Whoever waits there to say a line follows no governor and no warden meanwhile, so lines
 * wait here instead.
 */
#ifndef BH_CLI_ASIDE_H
#define BH_CLI_ASIDE_H

#include "base/buf.h"

struct bh_aside { /* zeroed: nothing was said yet */
    struct bh_buf waiting;
};

/* As much of it as there is room for now, after what waited. Beyond 64 KiB it is forgotten. */
void bh_aside_say(struct bh_aside *a, const char *line);
/* The command is gone: the rest, however long that takes. */
void bh_aside_end(struct bh_aside *a);

#endif
