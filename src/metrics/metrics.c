/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - the table of families, and rows as they are gathered. */
#include "metrics/metrics.h"

#define BH_METRIC_SUMS_SUM   true
#define BH_METRIC_SUMS_APART false
const struct bh_family bh_families[BH_METRICS] = {
#define FAMILY(id, n, ty, u, sc, su, d, c, l, h)     \
    [BH_METRIC_##id] = {.name = (n),                 \
                        .unit = (u),                 \
                        .labels = (l),               \
                        .help = (h),                 \
                        .type = BH_METRIC_##ty,      \
                        .scope = BH_METRIC_##sc,     \
                        .sums = BH_METRIC_SUMS_##su, \
                        .decimals = (d),             \
                        .cap = (c)},
#include "metrics/families.def"
#undef FAMILY
};

/* From what nobody notices to what somebody complains about. */
const uint64_t bh_metric_bounds_ms[BH_METRIC_BUCKETS] = {1000,   5000,    15000,    60000,   300000,
                                                         900000, 3600000, 14400000, 86400000};

void bh_metric_spread_add(struct bh_metric_spread *s, uint64_t ms)
{
    bh_metric_spread_add_many(s, ms, 1, ms);
}

void bh_metric_spread_add_many(struct bh_metric_spread *s, uint64_t upto_ms, uint64_t n, uint64_t sum_ms)
{
    size_t i = 0;
    while (i < BH_METRIC_BUCKETS && upto_ms > bh_metric_bounds_ms[i])
        i++;
    s->at[i] += n;
    s->count += n;
    s->sum += sum_ms;
}

void bh_metrics_fini(struct bh_metrics *m)
{
    for (size_t i = 0; i < BH_METRICS; i++)
        bh_vec_fini(&m->rows[i]);
    bh_arena_fini(&m->arena);
}

static size_t label_count(const struct bh_family *f)
{
    size_t n = *f->labels != '\0';
    for (const char *at = f->labels; *at; at++)
        n += *at == ' ';
    return n;
}

static struct bh_metric_row *add(struct bh_metrics *m, enum bh_metric family, const char *owner,
                                 const char *const *labels)
{
    const size_t n = label_count(&bh_families[family]);
    struct bh_metric_row *row = bh_vec_push(&m->rows[family]);
    *row = (struct bh_metric_row){.owner = owner ? bh_arena_str(&m->arena, owner) : NULL};
    for (size_t i = 0; i < n; i++)
        row->labels[i] = labels[i] ? bh_arena_str(&m->arena, labels[i]) : NULL;
    return row;
}

void bh_metrics_add(struct bh_metrics *m, enum bh_metric family, const char *owner, int64_t value,
                    const char *const *labels)
{
    add(m, family, owner, labels)->value = value;
}

void bh_metrics_add_spread(struct bh_metrics *m, enum bh_metric family, const char *owner,
                           const struct bh_metric_spread *spread, const char *const *labels)
{
    struct bh_metric_spread *copy = bh_arena_alloc(&m->arena, sizeof(*copy));
    *copy = *spread;
    add(m, family, owner, labels)->spread = copy;
}
