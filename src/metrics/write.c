/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - rows as text: who sees which, what is added up, and the two formats.
 *
 * A row that the caller does not see is left out, or becomes part of `_others`; what is beyond the cap becomes part of `_other`.
 * No tenant can have such a name (base/units.h, bh_name_valid).
 */
#include "base/str.h"
#include "metrics/metrics.h"

#include <inttypes.h>
#include <stdio.h>

static const char others[] = "_others", other[] = "_other";

/* ---- which rows ---- */

/* A sum of rows, with what named somebody replaced. */
struct fold {
    struct bh_metric_row row;
    struct bh_metric_spread spread;
};

struct shown {
    BH_VEC(struct bh_metric_row) rows;
    BH_VEC(struct fold) folds; /* as many as the labels that name nobody have values: few */
    uint64_t folded;
};

static void shown_fini(struct shown *s)
{
    bh_vec_fini(&s->rows);
    bh_vec_fini(&s->folds);
}

/* The next label of a family: *ret_n its length, *ret_names whether it names somebody. False: there is none left. */
static bool next_label(const char **at, const char **ret, size_t *ret_n, bool *ret_names)
{
    *at += strspn(*at, " ");
    if (!**at)
        return false;
    const size_t n = strcspn(*at, " ");
    *ret_names = (*at)[n - 1] == '*';
    *ret = *at;
    *ret_n = n - *ret_names;
    *at += n;
    return true;
}

static bool same_labels(const struct bh_metric_row *a, const struct bh_metric_row *b)
{
    for (size_t i = 0; i < BH_METRIC_LABELS; i++)
        if (!bh_str_eq(a->labels[i], b->labels[i]))
            return false;
    return true;
}

static struct fold *fold_of(struct shown *s, const struct bh_metric_row *key)
{
    for (size_t i = 0; i < s->folds.n; i++)
        if (same_labels(&s->folds.at[i].row, key))
            return &s->folds.at[i];
    struct fold *more = bh_vec_push(&s->folds);
    *more = (struct fold){.row = *key};
    more->row.value = 0;
    return more;
}

static void fold(struct shown *s, const struct bh_family *f, const struct bh_metric_row *row,
                 const char *name)
{
    struct bh_metric_row key = *row;
    const char *at = f->labels, *label;
    size_t n;
    bool names;
    for (size_t i = 0; next_label(&at, &label, &n, &names); i++)
        if (names && key.labels[i])
            key.labels[i] = name;
    struct fold *sum = fold_of(s, &key);
    sum->row.value += row->value;
    if (!row->spread)
        return;
    for (size_t i = 0; i < BH_COUNT_OF(sum->spread.at); i++)
        sum->spread.at[i] += row->spread->at[i];
    sum->spread.count += row->spread->count;
    sum->spread.sum += row->spread->sum;
}

static bool may_see(const struct bh_metrics_view *v, const struct bh_family *f,
                    const struct bh_metric_row *row)
{
    if (v->all || f->scope == BH_METRIC_PUBLIC)
        return true;
    return f->scope != BH_METRIC_NODE && row->owner && v->sees(v->arg, row->owner);
}

static void choose(const struct bh_metrics *m, size_t family, const struct bh_metrics_view *v,
                   struct shown *ret)
{
    const struct bh_family *f = &bh_families[family];
    for (size_t i = 0; i < m->rows[family].n; i++) {
        const struct bh_metric_row *row = &m->rows[family].at[i];
        if (!may_see(v, f, row)) {
            if (f->scope == BH_METRIC_TENANT && f->sums)
                fold(ret, f, row, others);
        } else if (ret->rows.n < f->cap) {
            *bh_vec_push(&ret->rows) = *row;
        } else {
            ret->folded++;
            if (f->sums)
                fold(ret, f, row, other);
        }
    }
}

/* ---- text ---- */

static void put_number(struct bh_buf *out, bool negative, uint64_t v, unsigned decimals)
{
    char frac[24];
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    if (negative)
        bh_buf_add(out, "-", 1);
    bh_buf_u64(out, v / one);
    uint64_t rest = v % one;
    if (rest == 0)
        return;
    size_t n = decimals;
    for (; rest % 10 == 0; n--)
        rest /= 10;
    frac[0] = '.';
    for (size_t i = n; i > 0; i--, rest /= 10)
        frac[i] = (char)('0' + rest % 10);
    bh_buf_add(out, frac, n + 1);
}

/* Bytes from here on that stand for themselves wherever they are. */
static size_t plain(const char *s)
{
    size_t n = 0;
    while (s[n] && (unsigned char)s[n] < 0x80 && s[n] != '\n' && s[n] != '\\' && s[n] != '"')
        n++;
    return n;
}

/* What is no UTF-8 would make the whole answer unreadable. */
static void put_escaped(struct bh_buf *out, const char *s, bool quotes)
{
    while (*s) {
        size_t n = plain(s);
        if (n == 0)
            n = bh_utf8_len((const unsigned char *)s);
        if (n == 0)
            bh_buf_str(out, "?");
        else if (*s == '\n')
            bh_buf_str(out, "\\n");
        else if (*s == '\\' || (*s == '"' && quotes))
            bh_buf_printf(out, "\\%c", *s);
        else
            bh_buf_add(out, s, n);
        s += n ? n : 1;
    }
}

static void put_label(struct bh_buf *out, bool first, const char *name, size_t n, const char *value)
{
    bh_buf_str(out, first ? "{" : ",");
    bh_buf_add(out, name, n);
    bh_buf_str(out, "=\"");
    put_escaped(out, value, true);
    bh_buf_str(out, "\"");
}

/* le NULL: none. */
static void put_name(struct bh_buf *out, const struct bh_family *f, const char *suffix,
                     const struct bh_metric_row *row, const char *le)
{
    const char *at = f->labels, *label;
    bool first = true, names;
    size_t n;
    bh_buf_str(out, f->name);
    bh_buf_str(out, suffix);
    for (size_t i = 0; next_label(&at, &label, &n, &names); i++) {
        if (!row->labels[i])
            continue;
        put_label(out, first, label, n, row->labels[i]);
        first = false;
    }
    if (le) {
        put_label(out, first, "le", 2, le);
        first = false;
    }
    bh_buf_str(out, first ? " " : "} ");
}

static void put_spread(struct bh_buf *out, const struct bh_family *f, const struct bh_metric_row *row,
                       const struct bh_metric_spread *s)
{
    uint64_t below = 0;
    for (size_t i = 0; f->type == BH_METRIC_HISTOGRAM && i <= BH_METRIC_BUCKETS; i++) {
        char le[24] = "+Inf";
        if (i < BH_METRIC_BUCKETS) /* all are whole seconds */
            (void)snprintf(le, sizeof(le), "%" PRIu64 ".0", bh_metric_bounds_ms[i] / 1000);
        below += s->at[i];
        put_name(out, f, "_bucket", row, le);
        bh_buf_printf(out, "%" PRIu64 "\n", below);
    }
    put_name(out, f, "_count", row, NULL);
    bh_buf_printf(out, "%" PRIu64 "\n", s->count);
    put_name(out, f, "_sum", row, NULL);
    put_number(out, false, s->sum, f->decimals);
    bh_buf_str(out, "\n");
}

/* What the samples of a type are called beside their family. */
static const char *suffix_of(const struct bh_family *f)
{
    return f->type == BH_METRIC_COUNTER ? "_total" : f->type == BH_METRIC_INFO ? "_info" : "";
}

static void put_row(struct bh_buf *out, const struct bh_family *f, const struct bh_metric_row *row,
                    const struct bh_metric_spread *spread)
{
    const uint64_t size = row->value < 0 ? -(uint64_t)row->value : (uint64_t)row->value;
    if (row->spread) {
        put_spread(out, f, row, spread);
        return;
    }
    put_name(out, f, suffix_of(f), row, NULL);
    put_number(out, row->value < 0, size, f->decimals);
    bh_buf_str(out, "\n");
}

static void put_head(struct bh_buf *out, const struct bh_family *f, enum bh_metrics_format format)
{
    /* The older format knows fewer types, and names a family as its samples are named. */
    static const char *const words[BH_METRIC_TYPES][2] = {
        [BH_METRIC_GAUGE] = {"gauge", "gauge"},
        [BH_METRIC_COUNTER] = {"counter", "counter"},
        [BH_METRIC_HISTOGRAM] = {"histogram", "histogram"},
        [BH_METRIC_SUMMARY] = {"summary", "summary"},
        [BH_METRIC_INFO] = {"info", "gauge"},
        [BH_METRIC_UNKNOWN] = {"unknown", "untyped"},
    };
    const bool open = format == BH_METRICS_OPEN;
    const char *suffix = open ? "" : suffix_of(f);
    bh_buf_printf(out, "# HELP %s%s ", f->name, suffix);
    put_escaped(out, f->help, open);
    bh_buf_printf(out, "\n# TYPE %s%s %s\n", f->name, suffix, words[f->type][!open]);
    if (open && *f->unit)
        bh_buf_printf(out, "# UNIT %s %s\n", f->name, f->unit);
}

static void put_family(struct bh_buf *out, size_t family, const struct shown *s,
                       enum bh_metrics_format format)
{
    const struct bh_family *f = &bh_families[family];
    if (s->rows.n + s->folds.n == 0)
        return;
    put_head(out, f, format);
    for (size_t i = 0; i < s->rows.n; i++)
        put_row(out, f, &s->rows.at[i], s->rows.at[i].spread);
    for (size_t i = 0; i < s->folds.n; i++)
        put_row(out, f, &s->folds.at[i].row, &s->folds.at[i].spread);
}

enum bh_metrics_format bh_metrics_format(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text") ? BH_METRICS_OPEN : BH_METRICS_PROMETHEUS;
}

const char *bh_metrics_content_type(enum bh_metrics_format f)
{
    return f == BH_METRICS_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                : "text/plain; version=0.0.4; charset=utf-8";
}

void bh_metrics_write(const struct bh_metrics *m, const struct bh_metrics_view *view,
                      enum bh_metrics_format format, struct bh_buf *out)
{
    struct shown cut = {0}; /* families that were */
    for (size_t i = 0; i < BH_METRICS; i++) {
        struct shown s = {0};
        if (i == BH_METRIC_FOLDED)
            continue;
        choose(m, i, view, &s);
        put_family(out, i, &s, format);
        if (s.folded && view->all)
            *bh_vec_push(&cut.rows) =
                (struct bh_metric_row){.labels = {bh_families[i].name}, .value = (int64_t)s.folded};
        shown_fini(&s);
    }
    put_family(out, BH_METRIC_FOLDED, &cut, format);
    shown_fini(&cut);
    if (format == BH_METRICS_OPEN)
        bh_buf_str(out, "# EOF\n");
}
