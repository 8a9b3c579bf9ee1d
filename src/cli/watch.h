/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - a list that is shown again when something changes.
 *
 * The daemon says that something changed, and the list is asked for anew: never oftener than a few times a second, and now and
 * then without a word, so that ages go on. On a terminal each line is written over the one before, so nothing flickers; what
 * the daemon no longer confirms is dimmed and dated. In a pipe a list follows the other.
 */
#ifndef BH_CLI_WATCH_H
#define BH_CLI_WATCH_H

#include "cli/remote.h"

/* Writes the list into cli->out. */
typedef int (*bh_watch_draw)(void *ctx, struct bh_cli *cli, struct bh_remote *r, struct bh_err *err);

/* What lists take: --limit (NULL: the default), --watch, --output. */
int bh_watch_words(const char *limit, const char *watch, const char *output, uint64_t *ret_limit,
                   struct bh_err *err) BH_MUST_USE;

/* Until a signal ends the process, or nobody reads any more. Returns the exit status. */
int bh_watch(struct bh_cli *cli, struct bh_remote *r, bh_watch_draw draw, void *ctx);

/*
 * One screen of `rows` lines: the head, then as much of the text as fits, each line to its end. Pure.
 * dim: the text is old.
 */
void bh_watch_frame(struct bh_buf *out, const char *head, const char *text, unsigned rows, bool dim);

#endif
