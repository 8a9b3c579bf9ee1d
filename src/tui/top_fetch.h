/* SPDX-License-Identifier: Apache-2.0 */
/* top_fetch.h - what `bulkhead top` asks of the daemon, and what it has done. */
#ifndef BH_TUI_TOP_FETCH_H
#define BH_TUI_TOP_FETCH_H

#include "cli/remote.h"
#include "tui/top.h"

/* Two answers live at a time: the one that is shown, and the one that is being read. */
struct bh_top_source {
    struct bh_remote remote;
    struct bh_arena shown;
};
int bh_top_source_init(struct bh_top_source *s, struct bh_err *err) BH_MUST_USE;
void bh_top_source_fini(struct bh_top_source *s);

/* All of it, or nothing changes in d. */
int bh_top_fetch(struct bh_top_source *s, struct bh_top_data *d, struct bh_err *err) BH_MUST_USE;
/* A command of the screen; its sentence is for s->message. */
int bh_top_do(struct bh_top_source *s, enum bh_top_wish wish, const char *id, struct bh_err *err) BH_MUST_USE;

/* What `bulkhead WORDS` prints, as its own process. argv ends with NULL. */
int bh_top_read(const char *const *argv, struct bh_buf *ret, struct bh_err *err) BH_MUST_USE;

#endif
