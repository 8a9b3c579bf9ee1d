/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - columns as wide as they must be, and numbers with their units. */
#include "cli/table.h"

#include "base/units.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { GAP = 2, FACT_WIDTH = 11, ELLIPSIS = 3 };

void bh_table_init(struct bh_table *t, struct bh_arena *arena, const char *const *heads, size_t n_columns)
{
    *t = (struct bh_table){.arena = arena, .heads = heads, .n_columns = n_columns};
}

void bh_table_fini(struct bh_table *t)
{
    bh_vec_fini(&t->cells);
}

void bh_table_paint(struct bh_table *t, const char *text, enum bh_paint paint)
{
    struct bh_buf b;
    bh_buf_init(&b, 1u << 16);
    bh_text_add(&b, text && *text ? text : "-");
    *bh_vec_push(&t->cells) = (struct bh_cell){bh_arena_str(t->arena, bh_buf_text(&b)), paint};
    bh_buf_fini(&b);
}

void bh_table_add(struct bh_table *t, const char *text)
{
    bh_table_paint(t, text, BH_PAINT_PLAIN);
}

/* As much of it as `most` columns hold; whole characters only. */
static const char *cut(struct bh_arena *a, const char *text, size_t most)
{
    size_t n = 0, columns = 0;
    if (bh_text_width(text) <= most)
        return text;
    for (; text[n]; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && columns++ == most - ELLIPSIS)
            break;
    return bh_arena_printf(a, "%.*s...", (int)n, text);
}

static void write_row(const struct bh_table *t, struct bh_cli *cli, const struct bh_cell *row,
                      const size_t *widths, unsigned indent)
{
    size_t at = indent;
    bh_text_blanks(&cli->out, indent);
    for (size_t k = 0; k < t->n_columns; k++) {
        const char *text = row[k].text;
        const bool last = k + 1 == t->n_columns;
        if (last && cli->is_terminal && at + 2 * ELLIPSIS < cli->width)
            text = cut(t->arena, text, cli->width - at);
        bh_paint_add(&cli->out, cli->paint_out, row[k].paint, text);
        if (!last)
            bh_text_blanks(&cli->out, widths[k] - bh_text_width(text) + GAP);
        at += widths[k] + GAP;
    }
    bh_buf_str(&cli->out, "\n");
}

void bh_table_write(const struct bh_table *t, struct bh_cli *cli, unsigned indent)
{
    assert(t->n_columns);
    BH_AUTOFREE size_t *widths = bh_alloc(t->n_columns, sizeof(*widths));
    BH_AUTOFREE struct bh_cell *heads = bh_alloc(t->n_columns, sizeof(*heads));
    for (size_t k = 0; k < t->n_columns; k++) {
        heads[k] = (struct bh_cell){t->heads[k], BH_PAINT_BOLD};
        widths[k] = bh_text_width(t->heads[k]);
    }
    for (size_t i = 0; i < t->cells.n; i++) {
        const size_t w = bh_text_width(t->cells.at[i].text), k = i % t->n_columns;
        widths[k] = w > widths[k] ? w : widths[k];
    }
    write_row(t, cli, heads, widths, indent);
    for (size_t i = 0; i + t->n_columns <= t->cells.n; i += t->n_columns)
        write_row(t, cli, &t->cells.at[i], widths, indent);
}

void bh_fact(struct bh_cli *cli, const char *head, const char *text)
{
    if (!text || !*text)
        return;
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_DIM, head);
    bh_text_blanks(&cli->out, strlen(head) < FACT_WIDTH ? FACT_WIDTH - strlen(head) : 1);
    if (cli->is_terminal)
        bh_text_wrap(&cli->out, text, FACT_WIDTH, FACT_WIDTH, cli->width);
    else {
        bh_text_add(&cli->out, text);
        bh_buf_str(&cli->out, "\n");
    }
}

void bh_heading(struct bh_cli *cli, const char *text)
{
    bh_buf_str(&cli->out, "\n");
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, text);
    bh_buf_str(&cli->out, "\n");
}

/* ---- amounts ---- */

const char *bh_say_gpus(struct bh_arena *a, uint64_t milli)
{
    struct bh_unit_text t;
    if (milli == UINT64_MAX)
        return NULL;
    return bh_arena_printf(a, "%s GPU%s", bh_count_format(milli, &t), milli > 0 && milli <= 1000 ? "" : "s");
}

const char *bh_say_memory(struct bh_arena *a, uint64_t mib)
{
    struct bh_unit_text t;
    if (mib == UINT64_MAX)
        return NULL;
    return bh_arena_str(a, bh_size_format(mib < UINT64_MAX / BH_MIB ? mib * BH_MIB : UINT64_MAX, &t));
}

const char *bh_say_count(struct bh_arena *a, uint64_t n)
{
    return n == UINT64_MAX ? NULL : bh_arena_printf(a, "%" PRIu64, n);
}

const char *bh_say_time(struct bh_arena *a, uint64_t ms)
{
    const uint64_t s = ms / 1000, day = s / 86400;
    struct bh_unit_text t;
    if (ms == UINT64_MAX)
        return NULL;
    if (day > 2932896) /* the year 9999 is over */
        return "never";
    return bh_arena_printf(a, "%s %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "Z",
                           bh_date_format((int32_t)day, &t), s / 3600 % 24, s / 60 % 60, s % 60);
}

const char *bh_say_span(struct bh_arena *a, uint64_t ms)
{
    static const struct {
        uint64_t s;
        char unit, below;
        uint64_t below_s;
    } units[] = {{86400, 'd', 'h', 3600}, {3600, 'h', 'm', 60}, {60, 'm', 0, 1}, {1, 's', 0, 1}};
    const uint64_t s = ms / 1000;
    size_t i = 0;
    if (ms == UINT64_MAX)
        return NULL;
    while (i + 1 < BH_COUNT_OF(units) && s < units[i].s)
        i++;
    const uint64_t rest = s % units[i].s / units[i].below_s;
    if (units[i].below && rest)
        return bh_arena_printf(a, "%" PRIu64 "%c %" PRIu64 "%c", s / units[i].s, units[i].unit, rest,
                               units[i].below);
    return bh_arena_printf(a, "%" PRIu64 "%c", s / units[i].s, units[i].unit);
}

const char *bh_say_since(struct bh_arena *a, uint64_t now_ms, uint64_t at_ms)
{
    return bh_say_span(a, at_ms != UINT64_MAX && now_ms > at_ms ? now_ms - at_ms : 0);
}

const char *bh_say_fixed(struct bh_arena *a, uint64_t v, uint64_t scale)
{
    const uint64_t whole = v / scale, rest = v % scale;
    /* scale is at most 3.6e9 * 1024, so a thousand of it fits */
    return bh_arena_printf(a, "%" PRIu64 ".%03" PRIu64, whole, rest * 1000 / scale);
}
