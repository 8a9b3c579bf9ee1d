/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/table.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 40, MICRO = 1000000 };

void bh_table_open(struct bh_table *t, const char *file, const char *text, size_t n, char separator)
{
    *t = (struct bh_table){.file = file, .separator = separator, .next = text, .end = text + n, .row = text};
}

static size_t column_of(const struct bh_table *t, uint32_t cell)
{
    if (t->n_cells == 0)
        return 1;
    if (cell < t->n_cells)
        return (size_t)(t->cell[cell].at - t->row) + 1;
    const struct bh_cell *last = &t->cell[t->n_cells - 1];
    return (size_t)(last->at + last->n - t->row) + 1;
}

int bh_table_fail(const struct bh_table *t, uint32_t cell, struct bh_err *err, const char *fmt, ...)
{
    char words[320];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    return bh_fail(err, BH_INVALID, "%.120s:%" PRIu32 ":%zu: %s", t->file, t->line, column_of(t, cell),
                   words);
}

/* Split [at, at + n) into cells. */
static int split(struct bh_table *t, const char *at, size_t n, struct bh_err *err)
{
    const char *end = at + n;
    t->row = at;
    t->n_cells = 0;
    for (;;) {
        const char *stop = memchr(at, t->separator, (size_t)(end - at));
        const char *to = stop ? stop : end;
        if (t->n_cells == BH_TABLE_CELLS)
            return bh_table_fail(t, t->n_cells, err, "needs at most %d cells, has more", BH_TABLE_CELLS);
        t->cell[t->n_cells++] = (struct bh_cell){at, (size_t)(to - at)};
        if (!stop)
            return 1;
        at = stop + 1;
    }
}

int bh_table_next(struct bh_table *t, struct bh_err *err)
{
    while (t->next < t->end) {
        const char *at = t->next, *stop = memchr(at, '\n', (size_t)(t->end - at));
        size_t n = (size_t)((stop ? stop : t->end) - at);
        t->next = stop ? stop + 1 : t->end;
        if (t->line == UINT32_MAX)
            return bh_table_fail(t, 0, err, "needs fewer lines");
        t->line++;
        if (n && at[n - 1] == '\r')
            n--;
        if (n == 0)
            continue;
        t->n_cells = 0;
        if (n > BH_TABLE_LINE_BYTES)
            return bh_table_fail(t, 0, err, "needs a line of at most %d bytes, has %zu", BH_TABLE_LINE_BYTES,
                                 n);
        return split(t, at, n, err);
    }
    return 0;
}

bool bh_cell_eq(struct bh_cell c, const char *s)
{
    return strlen(s) == c.n && memcmp(c.at, s, c.n) == 0;
}

struct bh_cell bh_table_cell(const struct bh_table *t, uint32_t cell)
{
    return cell < t->n_cells ? t->cell[cell] : (struct bh_cell){"", 0};
}

/* What stands in a cell, for a complaint: nothing that could act on a terminal, and not much of it. */
static const char *shown(struct bh_cell c, char ret[SHOWN + 4])
{
    size_t n = 0;
    for (; n < c.n && n < SHOWN; n++)
        ret[n] = c.at[n] >= ' ' && c.at[n] <= '~' ? c.at[n] : '?';
    memcpy(ret + n, c.n > SHOWN ? "..." : "", c.n > SHOWN ? 4 : 1);
    return ret;
}

int bh_table_header(struct bh_table *t, const char *const *names, size_t n, size_t n_needed,
                    uint32_t *ret_place, struct bh_err *err)
{
    for (size_t i = 0; i < n; i++) {
        ret_place[i] = BH_TABLE_NOWHERE;
        for (uint32_t c = 0; c < t->n_cells; c++) {
            if (!bh_cell_eq(t->cell[c], names[i]))
                continue;
            if (ret_place[i] != BH_TABLE_NOWHERE)
                return bh_table_fail(t, c, err, "needs each column once, has '%s' again", names[i]);
            ret_place[i] = c;
        }
        if (i < n_needed && ret_place[i] == BH_TABLE_NOWHERE) {
            char first[SHOWN + 4];
            return bh_table_fail(t, 0, err, "needs a row of names with a column '%s', begins with '%s'",
                                 names[i], shown(bh_table_cell(t, 0), first));
        }
    }
    return BH_OK;
}

/* A short cell as a string; false: it is empty, too long or has a NUL in it. */
static bool as_string(struct bh_cell c, char ret[SHOWN])
{
    if (c.n == 0 || c.n >= SHOWN || memchr(c.at, '\0', c.n))
        return false;
    memcpy(ret, c.at, c.n);
    ret[c.n] = '\0';
    return true;
}

int bh_table_uint(const struct bh_table *t, uint32_t cell, const char *name, uint64_t min, uint64_t max,
                  uint64_t *ret, struct bh_err *err)
{
    struct bh_cell c = bh_table_cell(t, cell);
    char text[SHOWN + 4], digits[SHOWN];
    uint64_t v;
    if (cell >= t->n_cells)
        return bh_table_fail(t, cell, err, "needs a cell for %s, the row ends here", name);
    if (as_string(c, digits) && bh_uint_parse(digits, max, &v, NULL) == BH_OK && v >= min) {
        *ret = v;
        return BH_OK;
    }
    return bh_table_fail(t, cell, err, "%s needs a whole number from %" PRIu64 " to %" PRIu64 ", is '%s'",
                         name, min, max, shown(c, text));
}

int bh_table_seconds(const struct bh_table *t, uint32_t cell, const char *name, uint64_t max, uint64_t *ret,
                     struct bh_err *err)
{
    struct bh_cell c = bh_table_cell(t, cell);
    char text[SHOWN + 4], decimal[SHOWN];
    uint64_t micro;
    if (as_string(c, decimal) && bh_money_parse(decimal, &micro, NULL) == BH_OK && micro / MICRO < max) {
        *ret = micro / MICRO;
        return BH_OK;
    }
    return bh_table_fail(t, cell, err, "%s needs seconds such as 251674.000000, below %" PRIu64 ", is '%s'",
                         name, max, shown(c, text));
}

int bh_table_name(const struct bh_table *t, uint32_t cell, const char *name, struct bh_cell *ret,
                  struct bh_err *err)
{
    struct bh_cell c = bh_table_cell(t, cell);
    char text[SHOWN + 4];
    bool fits = c.n > 0 && c.n <= BH_TABLE_CELL_BYTES;
    for (size_t i = 0; i < c.n && fits; i++)
        fits = c.at[i] >= ' ' && c.at[i] <= '~';
    if (!fits)
        return bh_table_fail(t, cell, err, "%s needs 1 to %d printable characters, is '%s'", name,
                             BH_TABLE_CELL_BYTES, shown(c, text));
    *ret = c;
    return BH_OK;
}
