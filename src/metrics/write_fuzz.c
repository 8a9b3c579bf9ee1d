/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_fuzz.c - rows made from bytes: lines `family tenant label label ...` of numbers and texts. Whatever they say, both formats
 * are read back, and a tenant's own scrape names no other.
 */
#include "metrics/read_fixture.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool sees_me(void *arg, const char *tenant)
{
    (void)arg;
    return bh_str_eq(tenant, "me");
}

static size_t labels_of(const struct bh_family *f)
{
    size_t n = *f->labels != '\0';
    for (const char *at = f->labels; *at; at++)
        n += *at == ' ';
    return n;
}

/* What would be the same series twice is not gathered: that is the gatherer's promise. */
static bool is_new(struct bh_arena *arena, struct bh_map *seen, size_t family, const char *const *labels,
                   size_t n)
{
    char *key = bh_arena_printf(arena, "%zu", family);
    for (size_t i = 0; i < n; i++)
        key = bh_arena_printf(arena, "%s\1%s", key, labels[i] ? labels[i] : "\2");
    return bh_map_add(seen, key, 0) == BH_MAP_NONE;
}

static void take_line(struct bh_metrics *m, struct bh_arena *arena, struct bh_map *seen, char *line)
{
    const char *labels[BH_METRIC_LABELS] = {NULL};
    const size_t family = (unsigned char)line[0] % BH_METRICS;
    const struct bh_family *f = &bh_families[family];
    const size_t n = labels_of(f);
    char *rest = line + 1;
    for (size_t i = 0; i < n && rest; i++) {
        char *next = strchr(rest, '\t');
        if (next)
            *next++ = '\0';
        /* bytes that are no text become `?`, so that two of them may be one series: left to the tests of single rows */
        for (char *c = rest; *c; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        labels[i] = *rest ? rest : NULL;
        rest = next;
    }
    if (family == BH_METRIC_FOLDED || (f->scope == BH_METRIC_TENANT && !labels[0]) ||
        !is_new(arena, seen, family, labels, n))
        return;
    for (size_t i = 0; i < n; i++)
        if (labels[i] && labels[i][0] == '_') /* no name begins so */
            return;
    const char *owner = f->scope == BH_METRIC_TENANT ? labels[0] : labels[1];
    struct bh_metric_spread s = {.at = {strlen(line)}, .count = strlen(line), .sum = 7};
    if (f->type == BH_METRIC_HISTOGRAM || f->type == BH_METRIC_SUMMARY)
        bh_metrics_add_spread(m, (enum bh_metric)family, owner, &s, labels);
    else
        bh_metrics_add(m, (enum bh_metric)family, owner, (int64_t)bh_hash(line, strlen(line)), labels);
}

static void check(const struct bh_metrics *m, const struct bh_metrics_view *v, enum bh_metrics_format format)
{
    struct read_text r = {0};
    struct bh_buf out;
    bh_buf_init(&out, BH_METRICS_TEXT_MAX);
    bh_metrics_write(m, v, format, &out);
    const bool sound = read_all(&r, bh_buf_text(&out), format == BH_METRICS_OPEN);
    if (!sound)
        fprintf(stderr, "%s\n", r.why);
    assert(sound && !out.full);
    for (size_t i = 0; !v->all && i < r.samples.n; i++)
        for (size_t k = 0; k < r.samples.at[i].n_labels; k++)
            if (bh_str_eq(r.samples.at[i].keys[k], "tenant") &&
                bh_str_starts(r.samples.at[i].name, "bulkhead_tenant_"))
                assert(bh_str_eq(r.samples.at[i].values[k], "me") ||
                       bh_str_eq(r.samples.at[i].values[k], "_others"));
    bh_buf_fini(&out);
    read_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct bh_metrics_view views[] = {{.all = true}, {.sees = sees_me}};
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    BH_AUTO(bh_map_fini) struct bh_map seen = {0};
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    char *text = bh_arena_strn(&arena, (const char *)data, n);
    for (char *end; text; text = end) {
        if ((end = strchr(text, '\n')))
            *end++ = '\0';
        if (*text)
            take_line(&m, &arena, &seen, text);
    }
    for (size_t i = 0; i < BH_COUNT_OF(views); i++) {
        check(&m, &views[i], BH_METRICS_OPEN);
        check(&m, &views[i], BH_METRICS_PROMETHEUS);
    }
    return 0;
}
