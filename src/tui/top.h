/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `bulkhead top`: what is known, where somebody looks, and what that is as a screen. Pure.
 *
 * Three parts that know nothing of each other's means: the data is answers of the daemon (top_fetch.c), the state is what keys
 * made of it (top_key.c), and both together are a screen (top_draw.c). Only cmd_top.c has a terminal and a daemon.
 */
#ifndef BH_TUI_TOP_H
#define BH_TUI_TOP_H

#include "base/arena.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "tui/screen.h"

enum { BH_TOP_PAST = 120, BH_TOP_COLUMNS = 10, BH_TOP_FILTER = 48 };

/* How busy a card was, at each look. */
struct bh_top_past {
    char uuid[96];
    uint8_t util[BH_TOP_PAST]; /* percent; UINT8_MAX: not known */
    unsigned n;
};

struct bh_top_data {
    bool here;      /* there was an answer at all */
    uint64_t at_ms; /* of the daemon's clock, when it was given */
    struct bh_a_status status;
    struct bh_a_gpus gpus;
    struct bh_a_quotas quotas;
    struct bh_a_jobs jobs;
    BH_VEC(struct bh_top_past) past;
};
void bh_top_data_fini(struct bh_top_data *d); /* the answers themselves are of an arena */
/* What was just read becomes a part of the past. */
void bh_top_remember(struct bh_top_data *d);

enum bh_top_view { BH_TOP_WORK, BH_TOP_GPUS, BH_TOP_SLICES, BH_TOP_TENANTS, BH_TOP_VIEWS };
enum bh_top_mode {
    BH_TOP_LIST,
    BH_TOP_FILTERING, /* letters go to the filter */
    BH_TOP_ASKING,    /* a command has to be confirmed */
    BH_TOP_READING,   /* a text over the list */
};

/* What a key asks for that is not only a matter of looking. */
enum bh_top_wish {
    BH_TOP_NOTHING,
    BH_TOP_QUIT,
    BH_TOP_REFRESH,
    BH_TOP_DESCRIBE,
    BH_TOP_WHY,
    BH_TOP_LOGS,
    BH_TOP_CANCEL,
    BH_TOP_PAUSE,
    BH_TOP_RESUME,
    BH_TOP_WISHES
};

struct bh_top_state {
    enum bh_top_view view;
    enum bh_top_mode mode;
    unsigned cursor[BH_TOP_VIEWS], sort[BH_TOP_VIEWS]; /* sort 0: as the daemon lists them, else column + 1 */
    char filter[BH_TOP_FILTER];
    bool readonly, ascii;
    bool frozen; /* nothing is asked for until it is let go */
    enum bh_top_wish asking;
    char asked[64];      /* of what */
    char message[200];   /* of the last command, or why the daemon does not answer; "": none */
    bool away;           /* the daemon does not answer */
    char title[80];      /* of the text that is read */
    struct bh_buf *text; /* lent */
    unsigned text_at;    /* its first line that is shown */
};

/* ---- rows ---- */

struct bh_top_cell {
    const char *text;
    uint64_t key; /* to sort by; UINT64_MAX where there is none: the text then */
    enum bh_style style;
};
struct bh_top_row {
    const char *id; /* what describe takes: `J17`, `L3`, `0`; NULL: nothing */
    struct bh_top_cell cells[BH_TOP_COLUMNS];
};
typedef BH_VEC(struct bh_top_row) bh_top_rows;

struct bh_top_column {
    const char *head;
    uint8_t width;    /* 0: all that is left */
    uint16_t from;    /* shown where the field is at least that wide */
    bool right, down; /* aligned to the right; sorted from the greatest */
};
extern const struct bh_top_column bh_top_columns[BH_TOP_VIEWS][BH_TOP_COLUMNS];
extern const char *const bh_top_view_names[BH_TOP_VIEWS];

/* Those that pass the filter, in order. now_ms: of the daemon. */
void bh_top_rows_make(const struct bh_top_data *d, const struct bh_top_state *s, enum bh_top_view view,
                      uint64_t now_ms, struct bh_arena *a, bh_top_rows *ret);

/* ---- the screen ---- */

/* age_ms: since the answer; what is older than a few looks is dimmed and dated. */
void bh_top_draw(const struct bh_top_data *d, const struct bh_top_state *s, uint64_t age_ms,
                 struct bh_screen *out);

/* ---- keys ---- */

enum bh_top_key {
    BH_KEY_UP = 0x110000, /* past every code point */
    BH_KEY_DOWN,
    BH_KEY_LEFT,
    BH_KEY_RIGHT,
    BH_KEY_PAGE_UP,
    BH_KEY_PAGE_DOWN,
    BH_KEY_HOME,
    BH_KEY_END,
    BH_KEY_ENTER,
    BH_KEY_ESCAPE,
    BH_KEY_BACKSPACE,
    BH_KEY_F1,
    BH_KEY_F10 = BH_KEY_F1 + 9,
};
/* What the key does to the state; what it wishes beyond that is returned, and of what in s->asked. rows: lines of the screen. */
enum bh_top_wish bh_top_key(struct bh_top_state *s, const struct bh_top_data *d, uint32_t key, unsigned rows);

/* Which keys there are, for the footer and for help; `when`: the footer of which modes shows it. */
struct bh_top_hint {
    const char *key, *says;
    uint8_t when;     /* bits 1 << enum bh_top_mode */
    uint8_t views;    /* bits 1 << enum bh_top_view; 0: all */
    bool does;        /* changes something: not there with --readonly */
    const char *help; /* a longer sentence */
};
extern const struct bh_top_hint bh_top_hints[];
extern const size_t bh_top_hint_count;
void bh_top_help(struct bh_buf *out, bool readonly);

#endif
