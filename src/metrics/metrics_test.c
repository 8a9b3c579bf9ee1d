/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"

#include "base/str.h"
#include "base/test.h"

static bool is_name(const char *s)
{
    for (; *s; s++)
        if (!bh_is_alpha(*s) && !bh_is_digit(*s) && *s != '_')
            return false;
    return true;
}

/* What a scraper, and somebody who knows the conventions, expects of a name. */
TEST(families_are_well_named)
{
    for (size_t i = 0; i < BH_METRICS; i++) {
        const struct bh_family *f = &bh_families[i];
        const bool dcgm = bh_str_starts(f->name, "DCGM_FI_DEV_");
        CHECK(f->name && is_name(f->name) && (dcgm || bh_str_starts(f->name, "bulkhead_")));
        CHECK(f->help && *f->help && !bh_str_ends(f->help, "."));
        CHECK(!bh_str_ends(f->name, "_total") && !bh_str_ends(f->name, "_info"));
        CHECK(f->cap > 0 && f->cap <= 4096 && f->decimals <= 9);
        if (*f->unit)
            CHECK(bh_str_ends(f->name, f->unit));
        for (size_t k = 0; k < i; k++)
            CHECK(!bh_str_eq(f->name, bh_families[k].name));
        /* A gauge whose name is another family's with _count would be read as part of it. */
        CHECK(!bh_str_ends(f->name, "_count") && !bh_str_ends(f->name, "_sum") &&
              !bh_str_ends(f->name, "_bucket"));
    }
}

TEST(labels_of_families)
{
    for (size_t i = 0; i < BH_METRICS; i++) {
        const struct bh_family *f = &bh_families[i];
        size_t n = *f->labels != '\0';
        for (const char *at = f->labels; *at; at++) {
            CHECK(bh_is_alpha(*at) || *at == '_' || *at == '*' || *at == ' ');
            n += *at == ' ';
        }
        CHECK(n <= BH_METRIC_LABELS && !strstr(f->labels, "  ") && !bh_str_ends(f->labels, " "));
        if (f->scope == BH_METRIC_TENANT)
            CHECK(bh_str_starts(f->labels, "tenant*"));
        if (f->scope == BH_METRIC_OWNER) /* whose it is, is to be seen in the row */
            CHECK(strstr(f->labels, "tenant*") != NULL);
        if (f->scope == BH_METRIC_PUBLIC || f->scope == BH_METRIC_NODE)
            CHECK(strstr(f->labels, "tenant") == NULL);
    }
}

TEST(spread_counts)
{
    struct bh_metric_spread s = {0};
    bh_metric_spread_add(&s, 0);
    bh_metric_spread_add(&s, 1000);
    bh_metric_spread_add(&s, 1001);
    bh_metric_spread_add(&s, UINT64_C(86400001));
    CHECK_EQ(s.at[0], 2);
    CHECK_EQ(s.at[1], 1);
    CHECK_EQ(s.at[BH_METRIC_BUCKETS], 1);
    CHECK_EQ(s.count, 4);
    CHECK_EQ(s.sum, 86402002);
    for (size_t i = 1; i < BH_METRIC_BUCKETS; i++)
        CHECK(bh_metric_bounds_ms[i] > bh_metric_bounds_ms[i - 1] && bh_metric_bounds_ms[i] % 1000 == 0);
}

TEST(rows_are_copies)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    char tenant[] = "acme";
    struct bh_metric_spread s = {.count = 1, .sum = 5, .at = {1}};
    bh_metrics_add(&m, BH_METRIC_T_LEASES, tenant, 3, BH_LABELS(tenant));
    bh_metrics_add_spread(&m, BH_METRIC_T_WAIT, tenant, &s, BH_LABELS(tenant));
    tenant[0] = 'X';
    s.count = 9;
    CHECK_STR(m.rows[BH_METRIC_T_LEASES].at[0].labels[0], "acme");
    CHECK_STR(m.rows[BH_METRIC_T_LEASES].at[0].owner, "acme");
    CHECK_EQ(m.rows[BH_METRIC_T_LEASES].at[0].value, 3);
    CHECK_EQ(m.rows[BH_METRIC_T_WAIT].at[0].spread->count, 1);
}

TEST_MAIN
