/* SPDX-License-Identifier: Apache-2.0 */
/* top_rows.c - answers of the daemon as rows of a list: filtered and sorted. */
#include "tui/top.h"

#include "base/str.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LAST {NULL, 0, 0, false, false}

const char *const bh_top_view_names[BH_TOP_VIEWS] = {
    [BH_TOP_WORK] = "Work", [BH_TOP_GPUS] = "GPUs", [BH_TOP_SLICES] = "Slices", [BH_TOP_TENANTS] = "Tenants"};

const struct bh_top_column bh_top_columns[BH_TOP_VIEWS][BH_TOP_COLUMNS] = {
    [BH_TOP_WORK] = {{"JOB", 6, 0, false, false},
                     {"TENANT", 10, 0, false, false},
                     {"STATE", 8, 0, false, false},
                     {"GPUS", 5, 0, true, true},
                     {"AGE", 7, 0, true, true},
                     {"USER", 10, 100, false, false},
                     {"PRIORITY", 9, 120, false, false},
                     {"NAME", 14, 110, false, false},
                     {"REASON", 0, 0, false, false},
                     LAST},
    [BH_TOP_GPUS] = {{"GPU", 4, 0, true, false},
                     {"MODEL", 14, 0, false, false},
                     {"STATE", 12, 0, false, false},
                     {"UTIL", 5, 0, true, true},
                     {"MEMORY", 12, 0, true, true},
                     {"POOL", 9, 70, false, false},
                     {"TEMP", 5, 100, true, true},
                     {"POWER", 6, 100, true, true},
                     {"SHARED AS", 20, 110, false, false},
                     {"PAST", 0, 0, false, false}},
    [BH_TOP_SLICES] = {{"GPU", 4, 0, true, false},
                       {"KIND", 6, 0, false, false},
                       {"STATE", 12, 0, false, false},
                       {"SHARE", 6, 0, true, true},
                       {"MEMORY", 10, 0, true, true},
                       {"TENANT", 10, 0, false, false},
                       {"LEASE", 7, 0, false, false},
                       {"SINCE", 7, 0, true, true},
                       {"WHAT", 0, 0, false, false},
                       LAST},
    [BH_TOP_TENANTS] = {{"TENANT", 12, 0, false, false},
                        {"USED", 6, 0, true, true},
                        {"QUOTA", 6, 0, true, true},
                        {"MOST", 5, 0, true, true},
                        {"BORROWED", 9, 46, true, true},
                        {"WAITING", 8, 52, true, true},
                        {"MODEL", 10, 70, false, false},
                        {"OF ITS QUOTA", 0, 0, false, false},
                        LAST},
};

/* ---- cells ---- */

static struct bh_top_cell text_cell(const char *text, enum bh_style style)
{
    return (struct bh_top_cell){text && *text ? text : "-", UINT64_MAX, style};
}

static struct bh_top_cell number_cell(const char *text, uint64_t key)
{
    return (struct bh_top_cell){text ? text : "-", key == BH_ANSWER_UNKNOWN ? 0 : key, BH_STYLE_PLAIN};
}

/* `0.5`, `2`: GPUs. */
static struct bh_top_cell gpus_cell(struct bh_arena *a, uint64_t milli)
{
    if (milli == BH_ANSWER_UNKNOWN)
        return text_cell(NULL, BH_STYLE_DIM);
    const char *text = milli % 1000 == 0 ? bh_arena_printf(a, "%" PRIu64, milli / 1000)
                       : milli % 100 == 0
                           ? bh_arena_printf(a, "%" PRIu64 ".%" PRIu64, milli / 1000, milli % 1000 / 100)
                           : bh_arena_printf(a, "%" PRIu64 ".%02" PRIu64, milli / 1000, milli % 1000 / 10);
    return number_cell(text, milli);
}

static enum bh_style style_of(const char *state)
{
    static const struct {
        const char *word;
        enum bh_style style;
    } styles[] = {{"running", BH_STYLE_GOOD},  {"waiting", BH_STYLE_WARN},  {"ok", BH_STYLE_GOOD},
                  {"owned", BH_STYLE_GOOD},    {"free", BH_STYLE_DIM},      {"dirty", BH_STYLE_WARN},
                  {"cordoned", BH_STYLE_WARN}, {"draining", BH_STYLE_WARN}, {"quarantined", BH_STYLE_BAD},
                  {"lost", BH_STYLE_BAD}};
    for (size_t i = 0; i < BH_COUNT_OF(styles); i++) {
        if (bh_str_eq(styles[i].word, state))
            return styles[i].style;
    }
    return BH_STYLE_PLAIN;
}

/* ---- rows ---- */

static void add_jobs(const struct bh_top_data *d, uint64_t now_ms, struct bh_arena *a, bh_top_rows *ret)
{
    for (size_t i = 0; i < d->jobs.jobs.n; i++) {
        const struct bh_a_job *j = &d->jobs.jobs.at[i];
        const bool waits = bh_str_eq(j->state, "waiting");
        const uint64_t age = now_ms > j->state_ms ? now_ms - j->state_ms : 0;
        *bh_vec_push(ret) = (struct bh_top_row){
            .id = j->id,
            .cells = {text_cell(j->id, BH_STYLE_PLAIN), text_cell(j->tenant, BH_STYLE_PLAIN),
                      text_cell(j->state, style_of(j->state)), gpus_cell(a, j->gpus * j->milli),
                      number_cell(bh_say_span(a, age), age), text_cell(j->user, BH_STYLE_PLAIN),
                      text_cell(j->priority, BH_STYLE_PLAIN), text_cell(j->name, BH_STYLE_PLAIN),
                      text_cell(j->why, waits ? BH_STYLE_PLAIN : BH_STYLE_DIM)}};
    }
}

static const struct bh_top_past *past_of(const struct bh_top_data *d, const char *uuid)
{
    for (size_t i = 0; uuid && i < d->past.n; i++) {
        if (bh_str_eq(d->past.at[i].uuid, uuid))
            return &d->past.at[i];
    }
    return NULL;
}

/* The vendor's name is on every card of a list. */
static const char *short_model(const char *model)
{
    static const char prefix[] = "NVIDIA ";
    return model && bh_str_starts(model, prefix) ? model + sizeof(prefix) - 1 : model;
}

static void add_gpus(const struct bh_top_data *d, const struct bh_top_state *s, struct bh_arena *a,
                     bh_top_rows *ret)
{
    for (size_t i = 0; i < d->gpus.gpus.n; i++) {
        const struct bh_a_gpu *g = &d->gpus.gpus.at[i];
        const struct bh_top_past *past = past_of(d, g->uuid);
        struct bh_picture p;
        const char *util = g->util_percent == BH_ANSWER_UNKNOWN
                               ? NULL
                               : bh_arena_printf(a, "%" PRIu64 "%%", g->util_percent);
        const char *memory =
            g->used_mib == BH_ANSWER_UNKNOWN
                ? bh_arena_printf(a, "?/%" PRIu64 "G", g->memory_mib / 1024)
                : bh_arena_printf(a, "%" PRIu64 ".%" PRIu64 "/%" PRIu64 "G", g->used_mib / 1024,
                                  g->used_mib % 1024 * 10 / 1024, g->memory_mib / 1024);
        const char *temp = g->temperature_c == BH_ANSWER_UNKNOWN
                               ? NULL
                               : bh_arena_printf(a, "%" PRIu64 "C", g->temperature_c);
        const char *power =
            g->power_mw == BH_ANSWER_UNKNOWN ? NULL : bh_arena_printf(a, "%" PRIu64 "W", g->power_mw / 1000);
        const char *name = bh_arena_printf(a, "%" PRIu64, g->index);
        *bh_vec_push(ret) = (struct bh_top_row){
            .id = name,
            .cells = {number_cell(name, g->index), text_cell(short_model(g->model), BH_STYLE_PLAIN),
                      text_cell(g->state, style_of(g->state)), number_cell(util, g->util_percent),
                      number_cell(memory, g->used_mib), text_cell(g->pool, BH_STYLE_PLAIN),
                      number_cell(temp, g->temperature_c), number_cell(power, g->power_mw),
                      text_cell(g->layout, BH_STYLE_PLAIN),
                      text_cell(past ? bh_arena_str(a, bh_picture_line(past->util, past->n, BH_TOP_PAST / 2,
                                                                       s->ascii, &p))
                                     : g->reason,
                                BH_STYLE_ACCENT)}};
    }
}

static void add_slices(const struct bh_top_data *d, uint64_t now_ms, struct bh_arena *a, bh_top_rows *ret)
{
    for (size_t i = 0; i < d->gpus.gpus.n; i++) {
        const struct bh_a_gpu *g = &d->gpus.gpus.at[i];
        const char *name = bh_arena_printf(a, "%" PRIu64, g->index);
        for (size_t k = 0; k < g->slices.n; k++) {
            const struct bh_a_slice *x = &g->slices.at[k];
            const uint64_t age = now_ms > x->since_ms ? now_ms - x->since_ms : 0;
            if (bh_str_eq(x->kind, "whole") && bh_str_eq(x->state, "free"))
                continue; /* a card of which nothing is cut is no slice */
            *bh_vec_push(ret) = (struct bh_top_row){
                .id = x->lease ? x->lease : name,
                .cells = {number_cell(name, g->index), text_cell(x->kind, BH_STYLE_PLAIN),
                          text_cell(x->state, style_of(x->state)), gpus_cell(a, x->milli),
                          number_cell(bh_say_memory(a, x->memory_mib), x->memory_mib),
                          text_cell(x->tenant, BH_STYLE_PLAIN), text_cell(x->lease, BH_STYLE_PLAIN),
                          number_cell(bh_say_span(a, age), age),
                          text_cell(x->why ? x->why : x->key, BH_STYLE_PLAIN)}};
        }
    }
}

static void add_tenants(const struct bh_top_data *d, struct bh_arena *a, bh_top_rows *ret)
{
    enum { BAR = 20 };
    for (size_t i = 0; i < d->quotas.quotas.n; i++) {
        const struct bh_a_quota *q = &d->quotas.quotas.at[i];
        struct bh_picture p;
        const bool reserved = q->guaranteed_milli != BH_ANSWER_UNKNOWN && q->guaranteed_milli;
        const char *bar = reserved
                              ? bh_arena_str(a, bh_picture_bar(q->used_milli, q->guaranteed_milli, BAR, &p))
                              : "nothing reserved";
        struct bh_top_cell waiting = number_cell(bh_say_count(a, q->waiting_jobs), q->waiting_jobs);
        waiting.style = q->waiting_jobs ? BH_STYLE_WARN : BH_STYLE_PLAIN;
        struct bh_top_cell borrowed = gpus_cell(a, q->borrowed_milli);
        borrowed.style = q->borrowed_milli ? BH_STYLE_WARN : BH_STYLE_PLAIN;
        *bh_vec_push(ret) =
            (struct bh_top_row){.cells = {text_cell(q->tenant, BH_STYLE_PLAIN), gpus_cell(a, q->used_milli),
                                          gpus_cell(a, q->guaranteed_milli), gpus_cell(a, q->max_milli),
                                          borrowed, waiting, text_cell(q->model, BH_STYLE_PLAIN),
                                          text_cell(bar, reserved ? BH_STYLE_ACCENT : BH_STYLE_DIM)}};
    }
}

/* ---- filter and order ---- */

static bool passes(const struct bh_top_row *row, const char *filter)
{
    if (!*filter)
        return true;
    for (size_t i = 0; i < BH_TOP_COLUMNS; i++) {
        if (row->cells[i].text && strcasestr(row->cells[i].text, filter))
            return true;
    }
    return false;
}

struct order {
    unsigned column;
    bool down;
};

static int compare(const void *pa, const void *pb, void *arg)
{
    const struct order *o = arg;
    const struct bh_top_row *a = pa, *b = pb;
    const struct bh_top_cell *x = &a->cells[o->column], *y = &b->cells[o->column];
    int c = x->key == UINT64_MAX || y->key == UINT64_MAX ? strcmp(x->text, y->text)
                                                         : (x->key > y->key) - (x->key < y->key);
    c = o->down ? -c : c;
    return c ? c : strcmp(a->cells[0].text, b->cells[0].text);
}

void bh_top_rows_make(const struct bh_top_data *d, const struct bh_top_state *s, enum bh_top_view view,
                      uint64_t now_ms, struct bh_arena *a, bh_top_rows *ret)
{
    size_t kept = 0;
    ret->n = 0;
    if (view == BH_TOP_WORK)
        add_jobs(d, now_ms, a, ret);
    else if (view == BH_TOP_GPUS)
        add_gpus(d, s, a, ret);
    else if (view == BH_TOP_SLICES)
        add_slices(d, now_ms, a, ret);
    else
        add_tenants(d, a, ret);
    for (size_t i = 0; i < ret->n; i++) {
        if (passes(&ret->at[i], s->filter))
            ret->at[kept++] = ret->at[i];
    }
    ret->n = kept;
    if (s->sort[view] && kept) {
        const unsigned column = s->sort[view] - 1;
        struct order o = {column, bh_top_columns[view][column].down};
        qsort_r(ret->at, kept, sizeof(*ret->at), compare, &o);
    }
}

/* ---- the past ---- */

void bh_top_data_fini(struct bh_top_data *d)
{
    bh_vec_fini(&d->past);
}

void bh_top_remember(struct bh_top_data *d)
{
    for (size_t i = 0; i < d->gpus.gpus.n; i++) {
        const struct bh_a_gpu *g = &d->gpus.gpus.at[i];
        struct bh_top_past *p = NULL;
        if (!g->uuid || strlen(g->uuid) >= sizeof(p->uuid))
            continue;
        for (size_t k = 0; !p && k < d->past.n; k++)
            p = bh_str_eq(d->past.at[k].uuid, g->uuid) ? &d->past.at[k] : NULL;
        if (!p) {
            p = bh_vec_push(&d->past);
            *p = (struct bh_top_past){0};
            memcpy(p->uuid, g->uuid, strlen(g->uuid) + 1);
        }
        if (p->n == BH_TOP_PAST) {
            memmove(p->util, p->util + 1, BH_TOP_PAST - 1);
            p->n--;
        }
        p->util[p->n++] = g->util_percent <= 100 ? (uint8_t)g->util_percent : UINT8_MAX;
    }
}
