/* SPDX-License-Identifier: Apache-2.0 */
/* top_key.c - what keys do, as htop and vi have taught people; and the table that footer and help are made from. */
#include "tui/top.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define IN(MODE)   (1u << BH_TOP_##MODE)
#define LOOK(VIEW) (1u << BH_TOP_##VIEW)

const struct bh_top_hint bh_top_hints[] = {
    {"F1?", "Help", IN(LIST), 0, false, "this text"},
    {"Tab", "View", IN(LIST), 0, false, "the next view; 1 to 4, left and right (h, l) as well"},
    {"/", "Filter", IN(LIST), 0, false, "only rows with this text; Esc shows all again (F4)"},
    {"s", "Sort", IN(LIST), 0, false, "by the next column (F6)"},
    {"Ent", "Describe", IN(LIST), LOOK(WORK) | LOOK(SLICES) | LOOK(GPUS), false,
     "all that is known of it (d)"},
    {"w", "Why", IN(LIST), LOOK(WORK), false, "why it waits, and what would start it"},
    {"L", "Logs", IN(LIST), LOOK(WORK), false, "what the job wrote"},
    {"p", "Pause", IN(LIST), LOOK(SLICES), true, "halt the lease where it is; P lets it go on"},
    {"c", "Cancel", IN(LIST), LOOK(WORK), true, "the job is wanted no more (F9)"},
    {"Spc", "Freeze", IN(LIST), 0, false, "nothing moves until it is pressed again"},
    {"q", "Quit", IN(LIST), 0, false, "leave (F10)"},
    {"Ent", "Keep", IN(FILTERING), 0, false, NULL},
    {"Esc", "Show all", IN(FILTERING), 0, false, NULL},
    {"y", "Yes", IN(ASKING), 0, false, NULL},
    {"n", "No", IN(ASKING), 0, false, NULL},
    {"jk", "Scroll", IN(READING), 0, false, NULL},
    {"Esc", "Back", IN(READING), 0, false, NULL},
};
const size_t bh_top_hint_count = BH_COUNT_OF(bh_top_hints);

void bh_top_help(struct bh_buf *out, bool readonly)
{
    for (size_t i = 0; i < bh_top_hint_count; i++) {
        const struct bh_top_hint *h = &bh_top_hints[i];
        if (h->help && !(readonly && h->does))
            bh_buf_printf(out, "  %-5s %-9s %s\n", h->key, h->says, h->help);
    }
    bh_buf_str(out, "  jk    Move      down and up, as the arrows do; g and G: first and last\n"
                    "  :     Command   the name of a view: work, gpus, slices or tenants\n\n"
                    "GRANTED is what was given away of a card, UTIL what the driver says it computes.\n"
                    "What is dim is old: the daemon has not confirmed it.\n");
}

/* ---- the row under the cursor ---- */

static size_t count_rows(const struct bh_top_data *d, const struct bh_top_state *s, char id[64])
{
    struct bh_arena arena = {0};
    bh_top_rows rows = {0};
    bh_top_rows_make(d, s, s->view, d->at_ms, &arena, &rows);
    const unsigned at = s->cursor[s->view];
    id[0] = '\0';
    if (at < rows.n && rows.at[at].id)
        (void)snprintf(id, 64, "%s", rows.at[at].id);
    const size_t n = rows.n;
    bh_vec_fini(&rows);
    bh_arena_fini(&arena);
    return n;
}

static void move_to(struct bh_top_state *s, size_t n, int64_t to)
{
    const int64_t last = n ? (int64_t)n - 1 : 0;
    s->cursor[s->view] = (unsigned)(to < 0 ? 0 : to > last ? last : to);
}

/* ---- modes ---- */

static enum bh_top_wish key_filtering(struct bh_top_state *s, uint32_t key)
{
    const size_t n = strlen(s->filter);
    if (key == BH_KEY_ENTER) {
        /* `:gpus` is a view */
        for (unsigned v = 0; s->filter[0] == ':' && v < BH_TOP_VIEWS; v++) {
            if (strcasecmp(s->filter + 1, bh_top_view_names[v]) == 0)
                s->view = (enum bh_top_view)v;
        }
        if (s->filter[0] == ':')
            s->filter[0] = '\0';
        s->mode = BH_TOP_LIST;
    } else if (key == BH_KEY_ESCAPE) {
        s->filter[0] = '\0';
        s->mode = BH_TOP_LIST;
    } else if (key == BH_KEY_BACKSPACE && n) {
        s->filter[n - 1] = '\0';
    } else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(s->filter)) {
        s->filter[n] = (char)key;
        s->filter[n + 1] = '\0';
    }
    s->cursor[s->view] = 0;
    return BH_TOP_NOTHING;
}

static enum bh_top_wish key_asking(struct bh_top_state *s, uint32_t key)
{
    s->mode = BH_TOP_LIST;
    return key == 'y' || key == 'Y' ? s->asking : BH_TOP_NOTHING;
}

static enum bh_top_wish key_reading(struct bh_top_state *s, uint32_t key, unsigned rows)
{
    const unsigned page = rows > 4 ? rows - 4 : 1;
    unsigned lines = 0;
    for (const char *p = s->text ? bh_buf_text(s->text) : ""; *p; p++)
        lines += *p == '\n';
    const unsigned last = lines > page ? lines - page : 0;
    int64_t to = s->text_at;
    switch (key) {
    case BH_KEY_UP:
    case 'k':
        to--;
        break;
    case BH_KEY_DOWN:
    case 'j':
        to++;
        break;
    case BH_KEY_PAGE_UP:
        to -= page;
        break;
    case BH_KEY_PAGE_DOWN:
    case ' ':
        to += page;
        break;
    case BH_KEY_HOME:
    case 'g':
        to = 0;
        break;
    case BH_KEY_END:
    case 'G':
        to = last;
        break;
    case BH_KEY_ESCAPE:
    case BH_KEY_ENTER:
    case 'q':
        s->mode = BH_TOP_LIST;
        return BH_TOP_NOTHING;
    default:
        break;
    }
    s->text_at = (unsigned)(to < 0 ? 0 : to > last ? last : to);
    return BH_TOP_NOTHING;
}

/* ---- the list ---- */

static unsigned columns_of(enum bh_top_view v)
{
    unsigned n = 0;
    while (n < BH_TOP_COLUMNS && bh_top_columns[v][n].head)
        n++;
    return n;
}

static bool key_moves(struct bh_top_state *s, size_t n, uint32_t key, unsigned rows)
{
    const int64_t at = s->cursor[s->view], page = rows > 6 ? rows - 6 : 1;
    switch (key) {
    case BH_KEY_UP:
    case 'k':
        move_to(s, n, at - 1);
        return true;
    case BH_KEY_DOWN:
    case 'j':
        move_to(s, n, at + 1);
        return true;
    case BH_KEY_PAGE_UP:
        move_to(s, n, at - page);
        return true;
    case BH_KEY_PAGE_DOWN:
        move_to(s, n, at + page);
        return true;
    case BH_KEY_HOME:
    case 'g':
        move_to(s, n, 0);
        return true;
    case BH_KEY_END:
    case 'G':
        move_to(s, n, INT32_MAX);
        return true;
    default:
        return false;
    }
}

static bool key_turns(struct bh_top_state *s, uint32_t key)
{
    const unsigned v = s->view;
    if (key >= '1' && key < '1' + BH_TOP_VIEWS)
        s->view = (enum bh_top_view)(key - '1');
    else if (key == '\t' || key == BH_KEY_RIGHT || key == 'l')
        s->view = (enum bh_top_view)((v + 1) % BH_TOP_VIEWS);
    else if (key == BH_KEY_LEFT || key == 'h')
        s->view = (enum bh_top_view)((v + BH_TOP_VIEWS - 1) % BH_TOP_VIEWS);
    else if (key == 's' || key == BH_KEY_F1 + 5)
        s->sort[v] = (s->sort[v] + 1) % (columns_of(s->view) + 1);
    else if (key == '/' || key == ':' || key == BH_KEY_F1 + 3) {
        s->mode = BH_TOP_FILTERING;
        (void)snprintf(s->filter, sizeof(s->filter), "%s", key == ':' ? ":" : "");
    } else if (key == BH_KEY_ESCAPE)
        s->filter[0] = '\0';
    else
        return false;
    return true;
}

/* A question about what the cursor is on, or a command that is asked back first. */
static enum bh_top_wish wish_of(struct bh_top_state *s, uint32_t key, const char *id)
{
    static const struct {
        uint32_t key;
        enum bh_top_wish wish;
        char letter; /* of the ids that it is for; 0: any */
        bool does;
    } wishes[] = {{BH_KEY_ENTER, BH_TOP_DESCRIBE, 0, false},
                  {'d', BH_TOP_DESCRIBE, 0, false},
                  {'w', BH_TOP_WHY, 'J', false},
                  {'L', BH_TOP_LOGS, 'J', false},
                  {'c', BH_TOP_CANCEL, 'J', true},
                  {BH_KEY_F1 + 8, BH_TOP_CANCEL, 'J', true},
                  {'p', BH_TOP_PAUSE, 'L', true},
                  {'P', BH_TOP_RESUME, 'L', true}};
    for (size_t i = 0; i < BH_COUNT_OF(wishes); i++) {
        if (wishes[i].key != key)
            continue;
        if (!*id || (wishes[i].letter && *id != wishes[i].letter))
            return BH_TOP_NOTHING;
        if (wishes[i].does && s->readonly) {
            (void)snprintf(s->message, sizeof(s->message), "nothing is changed: this is --readonly");
            return BH_TOP_NOTHING;
        }
        (void)snprintf(s->asked, sizeof(s->asked), "%s", id);
        s->asking = wishes[i].wish;
        if (!wishes[i].does)
            return wishes[i].wish;
        s->mode = BH_TOP_ASKING;
    }
    return BH_TOP_NOTHING;
}

static enum bh_top_wish key_list(struct bh_top_state *s, const struct bh_top_data *d, uint32_t key,
                                 unsigned rows)
{
    char id[64];
    s->message[0] = '\0';
    if (key == 'q' || key == BH_KEY_F10)
        return BH_TOP_QUIT;
    if (key == ' ') {
        s->frozen = !s->frozen;
        return BH_TOP_REFRESH;
    }
    if (key == '?' || key == BH_KEY_F1) {
        (void)snprintf(s->title, sizeof(s->title), "Help");
        s->text_at = 0;
        s->mode = BH_TOP_READING;
        s->text->n = 0;
        bh_top_help(s->text, s->readonly);
        return BH_TOP_NOTHING;
    }
    const size_t n = count_rows(d, s, id);
    if (key_moves(s, n, key, rows) || key_turns(s, key))
        return BH_TOP_NOTHING;
    return wish_of(s, key, id);
}

enum bh_top_wish bh_top_key(struct bh_top_state *s, const struct bh_top_data *d, uint32_t key, unsigned rows)
{
    switch (s->mode) {
    case BH_TOP_FILTERING:
        return key_filtering(s, key);
    case BH_TOP_ASKING:
        return key_asking(s, key);
    case BH_TOP_READING:
        return key_reading(s, key, rows);
    default:
        return key_list(s, d, key, rows);
    }
}
