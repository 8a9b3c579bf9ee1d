/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - what a reader has to say about a file: all errors at once, and notes.
 *
 * An error means the file does not say what the language allows; nothing of it is
 * used. A note means something was passed over (an object or field we do not
 * understand, a model the catalogue does not have) and the reading went on.
 */
#ifndef BH_CONF_DIAG_H
#define BH_CONF_DIAG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/model/pos.h"

#include <stdbool.h>

struct bh_diag {
    struct bh_pos pos;
    bool is_error; /* else a note */
    const char *message;
};

struct bh_diags {
    struct bh_arena arena;
    BH_VEC(struct bh_diag) at;
    size_t n_errors;
    bool cut; /* more than BH_DIAGS_MAX errors: the rest was dropped, and that is said */
};

enum { BH_DIAGS_MAX = 1000 };

void bh_diags_fini(struct bh_diags *d);
/* No further error will be kept: a reader may stop looking for words. Marks the list as cut. */
bool bh_diags_full(struct bh_diags *d);
void bh_diag_error(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...) BH_PRINTF(3, 4);
void bh_diag_note(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...) BH_PRINTF(3, 4);
/* A note said once however often it is given (same text): for unknown kinds and fields. */
void bh_diag_note_once(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...) BH_PRINTF(3, 4);

/* Into the order of the text: by file, line and column. */
void bh_diags_sort(struct bh_diags *d);

#endif
