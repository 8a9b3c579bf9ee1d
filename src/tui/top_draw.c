/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_draw.c - data and state as a screen.
 *
 *     title: the node, what it is, how it is, how old this is
 *     meters: one for each card, in as many columns as it takes to leave room for a list
 *     views, and the chosen one's list; beside it a second one where the screen is wide
 *     a line for what was said last, and the keys that do something here
 */
#include "tui/top.h"

#include "base/str.h"
#include "cli/table.h"

#include <inttypes.h>
#include <string.h>

enum {
    STALE_MS = 3500,
    METER_ROWS = 8,   /* at most: what is left is for the list */
    METER_LEAST = 36, /* columns */
    WIDE = 150,       /* from here on two lists */
    SECOND_PERCENT = 40,
    SMALL_ROWS = 8,
    SMALL_COLS = 40,
};

/* ---- title ---- */

static void draw_title(const struct bh_top_data *d, const struct bh_top_state *s, uint64_t age_ms,
                       struct bh_arena *a, struct bh_screen *out)
{
    const struct bh_a_status *st = &d->status;
    unsigned col = bh_screen_put(out, 0, 0, out->cols, BH_STYLE_TITLE, "bulkhead ");
    if (!d->here) {
        bh_screen_put(out, 0, col, out->cols, BH_STYLE_WARN,
                      s->away ? "no daemon answers; trying on" : "asking the daemon");
        return;
    }
    col = bh_screen_put(out, 0, col, 24, BH_STYLE_TITLE, st->node);
    if (st->simulated)
        col = bh_screen_put(out, 0, col + 1, out->cols, BH_STYLE_WARN, "SIMULATED");
    col =
        bh_screen_put(out, 0, col + 1, out->cols, bh_str_eq(st->health, "ok") ? BH_STYLE_GOOD : BH_STYLE_BAD,
                      bh_arena_printf(a, "health %s", st->health));
    const char *when = bh_say_time(a, d->at_ms);
    if (s->away || age_ms > STALE_MS)
        when = bh_arena_printf(a, "%s %s", s->away ? "daemon away, as of" : "old, as of", when);
    else if (s->frozen)
        when = bh_arena_printf(a, "frozen %s", when);
    const unsigned n = (unsigned)strlen(when);
    const char *policy = bh_arena_printf(a, "policy %" PRIu64, st->policy_version);
    if (col + 2 + strlen(policy) + n <= out->cols) /* what it is of is worth more than how it is ruled */
        col = bh_screen_put(out, 0, col + 1, out->cols, BH_STYLE_PLAIN, policy);
    if (col + 1 + n <= out->cols)
        bh_screen_put(out, 0, out->cols - n, n,
                      s->away || age_ms > STALE_MS || s->frozen ? BH_STYLE_WARN : BH_STYLE_DIM, when);
}

/* ---- meters ---- */

static uint64_t granted(const struct bh_a_gpu *g)
{
    uint64_t milli = g->others ? g->others->milli : 0;
    for (size_t i = 0; i < g->slices.n; i++) {
        if (!bh_str_eq(g->slices.at[i].state, "free"))
            milli += g->slices.at[i].milli;
    }
    return milli < 1000 ? milli : 1000;
}

/* ` 0[|||||     ] 77% 12.3/79G ok`: what is given away as a bar, what it computes as a number. */
static void draw_meter(const struct bh_top_data *d, const struct bh_a_gpu *g, const struct bh_top_state *s,
                       unsigned row, unsigned col, unsigned width, struct bh_arena *a, struct bh_screen *out)
{
    struct bh_picture p;
    const bool ok = bh_str_eq(g->state, "ok");
    const char *util =
        g->util_percent == BH_ANSWER_UNKNOWN ? "  ?%" : bh_arena_printf(a, "%3" PRIu64 "%%", g->util_percent);
    const char *memory = g->used_mib == BH_ANSWER_UNKNOWN
                             ? bh_arena_printf(a, "    ?/%" PRIu64 "G", g->memory_mib / 1024)
                             : bh_arena_printf(a, "%3" PRIu64 ".%" PRIu64 "/%" PRIu64 "G", g->used_mib / 1024,
                                               g->used_mib % 1024 * 10 / 1024, g->memory_mib / 1024);
    const unsigned bar = width < 50 ? width - 25 : width < 80 ? width - 32 : 40;
    unsigned at = bh_screen_put(out, row, col, 3, BH_STYLE_HEAD, bh_arena_printf(a, "%3" PRIu64, g->index));
    at = bh_screen_put(out, row, at, bar, ok ? BH_STYLE_ACCENT : BH_STYLE_DIM,
                       bh_picture_bar(granted(g), 1000, bar, &p));
    at = bh_screen_put(out, row, at, 5, BH_STYLE_PLAIN, util);
    at = bh_screen_put(out, row, at + 1, 10, BH_STYLE_PLAIN, memory);
    if (!ok) {
        bh_screen_put(out, row, at + 1, col + width - at - 2, BH_STYLE_BAD, g->state);
        return;
    }
    for (size_t i = 0; g->uuid && i < d->past.n && at + 2 < col + width; i++) {
        const struct bh_top_past *past = &d->past.at[i];
        if (bh_str_eq(past->uuid, g->uuid))
            bh_screen_put(out, row, at + 1, col + width - at - 2, BH_STYLE_GOOD,
                          bh_picture_line(past->util, past->n, col + width - at - 2, s->ascii, &p));
    }
}

/* Returns the row behind them. */
static unsigned draw_meters(const struct bh_top_data *d, const struct bh_top_state *s, unsigned row,
                            unsigned most, struct bh_arena *a, struct bh_screen *out)
{
    const size_t n = d->gpus.gpus.n;
    const unsigned fit = out->cols / METER_LEAST ? out->cols / METER_LEAST : 1;
    unsigned columns = 1;
    while (columns < fit && (n + columns - 1) / columns > most)
        columns++;
    if (columns == 1 && n > 4 && fit > 1)
        columns = 2;
    const unsigned lines = (unsigned)((n + columns - 1) / columns), shown = lines < most ? lines : most;
    for (size_t i = 0; i < n; i++) {
        const unsigned line = (unsigned)i % (lines ? lines : 1), column = (unsigned)i / (lines ? lines : 1);
        if (line < shown)
            draw_meter(d, &d->gpus.gpus.at[i], s, row + line, column * (out->cols / columns),
                       out->cols / columns, a, out);
    }
    if (lines > shown && shown)
        bh_screen_put(out, row + shown - 1, out->cols - 16, 16, BH_STYLE_WARN,
                      bh_arena_printf(a, "and %zu more", n - (size_t)shown * columns));
    return row + shown;
}

/* ---- lists ---- */

struct field {
    unsigned row, col, rows, cols;
};

static unsigned column_width(const struct bh_top_column *c, unsigned left, unsigned field_cols)
{
    if (field_cols < c->from)
        return 0;
    return c->width ? c->width : left;
}

static void draw_cells(const struct bh_top_column *columns, const struct bh_top_row *row, unsigned at_row,
                       const struct field *f, unsigned sort, struct bh_screen *out)
{
    unsigned col = f->col;
    const unsigned end = f->col + f->cols;
    for (unsigned i = 0; i < BH_TOP_COLUMNS && columns[i].head && col < end; i++) {
        const unsigned width = column_width(&columns[i], end - col, f->cols);
        const char *text = row ? row->cells[i].text : columns[i].head;
        if (!width)
            continue;
        const enum bh_style style = row             ? row->cells[i].style
                                    : i + 1 == sort ? BH_STYLE_ACCENT
                                                    : BH_STYLE_HEAD;
        const unsigned n = (unsigned)(text ? bh_text_width(text) : 0),
                       shown = width < end - col ? width : end - col;
        const unsigned pad = columns[i].right && n + 1 <= shown ? shown - 1 - n : 0;
        bh_screen_put(out, at_row, col + pad, shown - pad - (columns[i].width && shown > pad ? 1 : 0), style,
                      text);
        col += width;
    }
}

static void draw_list(const struct bh_top_data *d, const struct bh_top_state *s, enum bh_top_view view,
                      bool chosen, const struct field *f, struct bh_arena *a, struct bh_screen *out)
{
    bh_top_rows rows = {0};
    if (f->rows < 2)
        return;
    bh_top_rows_make(d, s, view, d->at_ms, a, &rows);
    draw_cells(bh_top_columns[view], NULL, f->row, f, s->sort[view], out);
    const unsigned room = f->rows - 1, cursor = s->cursor[view] < rows.n ? s->cursor[view]
                                                : rows.n                 ? (unsigned)rows.n - 1
                                                                         : 0;
    const unsigned first = cursor >= room ? cursor - room + 1 : 0;
    for (unsigned i = 0; i < room && first + i < rows.n; i++) {
        draw_cells(bh_top_columns[view], &rows.at[first + i], f->row + 1 + i, f, 0, out);
        if (chosen && first + i == cursor)
            bh_screen_mark(out, f->row + 1 + i, f->col, f->cols, BH_STYLE_MARK);
    }
    if (!rows.n)
        bh_screen_put(out, f->row + 1, f->col, f->cols, BH_STYLE_DIM,
                      s->filter[0]             ? "nothing matches the filter"
                      : view == BH_TOP_WORK    ? "no job runs or waits"
                      : view == BH_TOP_SLICES  ? "nothing is given away"
                      : view == BH_TOP_TENANTS ? "no tenants"
                                               : "no GPUs");
    bh_vec_fini(&rows);
}

/* ` 1 Work 12 ` ...: how many there are of each; the chosen one stands out. */
static void draw_views(const struct bh_top_data *d, const struct bh_top_state *s, unsigned row,
                       struct bh_arena *a, struct bh_screen *out)
{
    unsigned col = 0;
    for (unsigned v = 0; v < BH_TOP_VIEWS; v++) {
        bh_top_rows rows = {0};
        bh_top_rows_make(d, s, (enum bh_top_view)v, d->at_ms, a, &rows);
        const bool chosen = v == s->view;
        col = bh_screen_put(
            out, row, col, out->cols, chosen ? BH_STYLE_ACCENT : BH_STYLE_DIM,
            bh_arena_printf(a, chosen ? "[%u %s %zu]" : " %u %s %zu ", v + 1, bh_top_view_names[v], rows.n));
        bh_vec_fini(&rows);
    }
    if (s->sort[s->view])
        col = bh_screen_put(out, row, col + 1, out->cols, BH_STYLE_PLAIN,
                            bh_arena_printf(a, "by %s", bh_top_columns[s->view][s->sort[s->view] - 1].head));
    if (s->filter[0] || s->mode == BH_TOP_FILTERING)
        bh_screen_put(out, row, col + 1, out->cols, BH_STYLE_WARN,
                      bh_arena_printf(a, "%s%s%s", s->filter[0] == ':' ? "" : "/", s->filter,
                                      s->mode == BH_TOP_FILTERING ? "_" : ""));
}

static void draw_text(const struct bh_top_state *s, const struct field *f, struct bh_screen *out)
{
    const char *line = s->text ? bh_buf_text(s->text) : "";
    bh_screen_put(out, f->row, f->col, f->cols, BH_STYLE_TITLE, s->title);
    for (unsigned skip = s->text_at; skip && *line; skip--) {
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : line + strlen(line);
    }
    for (unsigned i = 1; i < f->rows && *line; i++) {
        char text[512];
        const size_t n = strcspn(line, "\n"), kept = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
        memcpy(text, line, kept);
        text[kept] = '\0';
        bh_screen_put(out, f->row + i, f->col, f->cols, BH_STYLE_PLAIN, text);
        line += n + (line[n] == '\n');
    }
}

/* ---- the end ---- */

static void draw_footer(const struct bh_top_state *s, struct bh_arena *a, struct bh_screen *out)
{
    static const char *const words[BH_TOP_WISHES] = {
        [BH_TOP_CANCEL] = "Cancel", [BH_TOP_PAUSE] = "Pause", [BH_TOP_RESUME] = "Resume"};
    const unsigned last = out->rows - 1;
    unsigned col = 0;
    for (size_t i = 0; i < bh_top_hint_count; i++) {
        const struct bh_top_hint *h = &bh_top_hints[i];
        if (!(h->when >> s->mode & 1) || (h->views && !(h->views >> s->view & 1)) || (h->does && s->readonly))
            continue;
        if (col + strlen(h->key) + strlen(h->says) + 1 > out->cols)
            break;
        col = bh_screen_put(out, last, col, out->cols, BH_STYLE_KEY, h->key);
        col = bh_screen_put(out, last, col, out->cols, BH_STYLE_PLAIN, h->says) + 1;
    }
    if (s->mode == BH_TOP_ASKING && words[s->asking])
        bh_screen_put(out, last - 1, 0, out->cols, BH_STYLE_WARN,
                      bh_arena_printf(a, "%s %s? y or n", words[s->asking], s->asked));
    else if (s->message[0])
        bh_screen_put(out, last - 1, 0, out->cols, s->away ? BH_STYLE_BAD : BH_STYLE_WARN, s->message);
}

static void draw_body(const struct bh_top_data *d, const struct bh_top_state *s, unsigned row,
                      struct bh_arena *a, struct bh_screen *out)
{
    struct field f = {row, 0, out->rows - 2 > row ? out->rows - 2 - row : 0, out->cols};
    if (s->mode == BH_TOP_READING) {
        draw_text(s, &f, out);
        return;
    }
    draw_views(d, s, row, a, out);
    f.row++;
    f.rows = f.rows ? f.rows - 1 : 0;
    if (out->cols >= WIDE) {
        struct field second = f;
        second.cols = out->cols * SECOND_PERCENT / 100;
        second.col = out->cols - second.cols;
        f.cols = second.col - 2;
        draw_list(d, s, s->view == BH_TOP_TENANTS ? BH_TOP_SLICES : BH_TOP_TENANTS, false, &second, a, out);
    }
    draw_list(d, s, s->view, true, &f, a, out);
}

void bh_top_draw(const struct bh_top_data *d, const struct bh_top_state *s, uint64_t age_ms,
                 struct bh_screen *out)
{
    struct bh_arena a = {0};
    if (out->rows < SMALL_ROWS || out->cols < SMALL_COLS) {
        bh_screen_put(out, 0, 0, out->cols, BH_STYLE_WARN, "too small: 40 x 8 at least");
        return;
    }
    draw_title(d, s, age_ms, &a, out);
    unsigned row = 1;
    if (d->here) {
        /* The list of GPUs says the same, and more. */
        if (s->view != BH_TOP_GPUS && s->mode != BH_TOP_READING)
            row = draw_meters(d, s, row, out->rows < 20 ? 2 : METER_ROWS, &a, out);
        draw_body(d, s, row, &a, out);
        if (s->away || age_ms > STALE_MS)
            bh_screen_dim(out, 1, out->rows - 2);
    } else if (s->mode == BH_TOP_READING) {
        draw_body(d, s, row, &a, out);
    }
    draw_footer(s, &a, out);
    bh_arena_fini(&a);
}
