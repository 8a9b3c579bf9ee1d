/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - numbers for Prometheus: gathered as rows of a table of families, written as OpenMetrics 1.0 or as the older
 * Prometheus text format, for one who may see some of them.
 *
 * Whoever gathers says whose a row is and nothing about who asks; what is shown to whom, how rows beyond a family's cap are
 * added up and how neighbours become one nameless row is decided here, from the family's line in families.def.
 *
 * A row has a value for each label of its family. Strings are copied.
 */
#ifndef BH_METRICS_METRICS_H
#define BH_METRICS_METRICS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_metric {
#define FAMILY(id, ...) BH_METRIC_##id,
#include "metrics/families.def"
#undef FAMILY
    BH_METRICS
};

enum bh_metric_type {
    BH_METRIC_GAUGE,
    BH_METRIC_COUNTER,
    BH_METRIC_HISTOGRAM,
    BH_METRIC_SUMMARY, /* count and sum alone */
    BH_METRIC_INFO,
    BH_METRIC_UNKNOWN,
    BH_METRIC_TYPES
};
enum bh_metric_scope {
    BH_METRIC_PUBLIC,
    BH_METRIC_NODE,
    BH_METRIC_OWNER,
    BH_METRIC_TENANT,
};

enum { BH_METRIC_LABELS = 7, BH_METRIC_BUCKETS = 9, BH_METRICS_TEXT_MAX = 32 << 20 };
/* Upper bounds in milliseconds; one more for what is above. */
extern const uint64_t bh_metric_bounds_ms[BH_METRIC_BUCKETS];

struct bh_family {
    const char *name, *unit, *labels, *help;
    enum bh_metric_type type;
    enum bh_metric_scope scope;
    bool sums;
    uint8_t decimals;
    uint32_t cap;
};
extern const struct bh_family bh_families[BH_METRICS];

/* Of a histogram (count is the sum of `at`) or a summary (count alone). sum: in the family's decimals. */
struct bh_metric_spread {
    uint64_t at[BH_METRIC_BUCKETS + 1];
    uint64_t count, sum;
};
void bh_metric_spread_add(struct bh_metric_spread *s, uint64_t ms);
/* So many of them, none above upto_ms, and all in the bucket that has that. */
void bh_metric_spread_add_many(struct bh_metric_spread *s, uint64_t upto_ms, uint64_t n, uint64_t sum_ms);

struct bh_metric_row {
    const char *owner; /* tenant; NULL: nobody's, or several's */
    const char *labels[BH_METRIC_LABELS];
    int64_t value;
    const struct bh_metric_spread *spread; /* NULL: a plain value */
};

struct bh_metrics {
    struct bh_arena arena;
    BH_VEC(struct bh_metric_row) rows[BH_METRICS];
};
void bh_metrics_fini(struct bh_metrics *m); /* a zeroed struct is an empty one */
/* Label values in the family's order, as many as it has; NULL: this row has none, and it is left out. */
void bh_metrics_add(struct bh_metrics *m, enum bh_metric family, const char *owner, int64_t value,
                    const char *const *labels);
void bh_metrics_add_spread(struct bh_metrics *m, enum bh_metric family, const char *owner,
                           const struct bh_metric_spread *spread, const char *const *labels);
#define BH_LABELS(...)    \
    (const char *const[]) \
    {                     \
        __VA_ARGS__       \
    }
#define BH_NO_LABELS ((const char *const[1]){NULL})

/* Who asks. */
struct bh_metrics_view {
    bool all;                                    /* sees every tenant */
    bool (*sees)(void *arg, const char *tenant); /* asked where all is false */
    void *arg;
};

enum bh_metrics_format { BH_METRICS_OPEN, BH_METRICS_PROMETHEUS };
/* By a header Accept; NULL or nothing that is understood: Prometheus' own, which every scraper reads. */
enum bh_metrics_format bh_metrics_format(const char *accept);
const char *bh_metrics_content_type(enum bh_metrics_format f);
void bh_metrics_write(const struct bh_metrics *m, const struct bh_metrics_view *view,
                      enum bh_metrics_format format, struct bh_buf *out);

#endif
