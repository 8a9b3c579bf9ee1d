/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - paths of a command line into an input, with everything that is wrong said on standard error. */
#ifndef BH_CLI_LOAD_H
#define BH_CLI_LOAD_H

#include "cli/cli.h"
#include "conf/input.h"

/*
 * BH_EXIT_OK, or the exit status to end with: an unreadable path, a text that does not parse,
 * and files with nothing in them to judge are all 2. Mistakes in files that a folder holds are
 * said and the rest may be judged; in->n_set_aside tells, and the end is still 2. The caller
 * frees *in either way.
 */
int bh_cli_load(struct bh_cli *cli, struct bh_input *in, const char *fleet) BH_MUST_USE;
/* `FILE:LINE:COLUMN: note: message` for each note, on standard error. */
void bh_cli_say_notes(const struct bh_cli *cli, const struct bh_input *in);
/* `FILE:LINE:COLUMN: `, as much of it as there is. */
void bh_text_place(struct bh_buf *b, const struct bh_input *in, struct bh_pos pos);

#endif
