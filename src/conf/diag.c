/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/diag.h"

#include <stdarg.h>
#include <stdio.h>

void bh_diags_fini(struct bh_diags *d)
{
    bh_vec_fini(&d->at);
    bh_arena_fini(&d->arena);
    *d = (struct bh_diags){0};
}

bool bh_diags_full(struct bh_diags *d)
{
    d->cut |= d->n_errors >= BH_DIAGS_MAX;
    return d->n_errors >= BH_DIAGS_MAX;
}

static bool said(const struct bh_diags *d, const char *message)
{
    for (size_t i = 0; i < d->at.n; i++)
        if (!d->at.at[i].is_error && strcmp(d->at.at[i].message, message) == 0)
            return true;
    return false;
}

enum how { AS_ERROR, AS_NOTE, AS_NOTE_ONCE };

/* Errors and notes are capped apart, so that a flood of one never hides the other. */
BH_PRINTF(4, 0)
static void put(struct bh_diags *d, enum how how, struct bh_pos pos, const char *fmt, va_list ap)
{
    char text[1024];
    size_t n_kind = how == AS_ERROR ? d->n_errors : d->at.n - d->n_errors;
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    if (n_kind >= BH_DIAGS_MAX) {
        d->cut = true;
        return;
    }
    if (how == AS_NOTE_ONCE && said(d, text))
        return;
    *bh_vec_push(&d->at) = (struct bh_diag){pos, how == AS_ERROR, bh_arena_str(&d->arena, text)};
    d->n_errors += how == AS_ERROR;
}

void bh_diag_error(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put(d, AS_ERROR, pos, fmt, ap);
    va_end(ap);
}

void bh_diag_note(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put(d, AS_NOTE, pos, fmt, ap);
    va_end(ap);
}

void bh_diag_note_once(struct bh_diags *d, struct bh_pos pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put(d, AS_NOTE_ONCE, pos, fmt, ap);
    va_end(ap);
}

static int by_place(const void *pa, const void *pb)
{
    const struct bh_diag *a = pa, *b = pb;
    if (a->pos.file != b->pos.file)
        return a->pos.file < b->pos.file ? -1 : 1;
    if (a->pos.line != b->pos.line)
        return a->pos.line < b->pos.line ? -1 : 1;
    if (a->pos.column != b->pos.column)
        return a->pos.column < b->pos.column ? -1 : 1;
    return strcmp(a->message, b->message);
}

void bh_diags_sort(struct bh_diags *d)
{
    if (d->at.n)
        qsort(d->at.at, d->at.n, sizeof(*d->at.at), by_place);
}
