/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/read_fixture.h"

#include "base/test.h"
#include "base/units.h"

static bool sees_acme(void *arg, const char *tenant)
{
    (void)arg;
    return bh_str_eq(tenant, "acme");
}
static const struct bh_metrics_view everything = {.all = true}, acme = {.sees = sees_acme};

static const char *written(struct bh_buf *out, const struct bh_metrics *m, const struct bh_metrics_view *v,
                           enum bh_metrics_format f)
{
    bh_buf_init(out, BH_METRICS_TEXT_MAX);
    bh_metrics_write(m, v, f, out);
    return bh_buf_text(out);
}

static void gather(struct bh_metrics *m)
{
    struct bh_metric_spread wait = {0};
    bh_metric_spread_add(&wait, 2500);
    bh_metrics_add(m, BH_METRIC_BUILD, NULL, 1, BH_LABELS("0.1.0", NULL, "lab", "true"));
    bh_metrics_add(m, BH_METRIC_SCRUBS, NULL, 4, BH_LABELS("whole", "clean"));
    bh_metrics_add(m, BH_METRIC_T_GPU_SECONDS, "acme", 1500000, BH_LABELS("acme", "whole"));
    bh_metrics_add(m, BH_METRIC_T_GPU_SECONDS, "rival", 2000001, BH_LABELS("rival", "whole"));
    bh_metrics_add(m, BH_METRIC_T_GPU_SECONDS, "third", 40, BH_LABELS("third", "whole"));
    bh_metrics_add(m, BH_METRIC_T_OLDEST, "rival", 7000, BH_LABELS("rival"));
    bh_metrics_add_spread(m, BH_METRIC_T_WAIT, "rival", &wait, BH_LABELS("rival"));
    bh_metrics_add_spread(m, BH_METRIC_T_WAIT, "third", &wait, BH_LABELS("third"));
    bh_metrics_add(m, BH_METRIC_L_TARGET, "rival", 250, BH_LABELS("L7", "rival", "4"));
    bh_metrics_add(m, BH_METRIC_L_TARGET, "acme", 250, BH_LABELS("L8", "acme", "4"));
    bh_metrics_add(m, BH_METRIC_D_SBE, NULL, 3,
                   BH_LABELS("0", "GPU-1", "nvidia0", "NVIDIA \"H100\"\\x\ny", "lab", NULL, NULL));
}

TEST(open_metrics)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    BH_AUTO(bh_buf_fini) struct bh_buf out;
    gather(&m);
    CHECK_STR(
        written(&out, &m, &everything, BH_METRICS_OPEN),
        "# HELP bulkhead_build This daemon, the driver it runs on, and whether its silicon is simulated\n"
        "# TYPE bulkhead_build info\n"
        "bulkhead_build_info{version=\"0.1.0\",node=\"lab\",simulated=\"true\"} 1\n"
        "# HELP bulkhead_scrubs Verdicts on slices that somebody left: clean, found (something of it was still there), "
        "unknown\n"
        "# TYPE bulkhead_scrubs counter\n"
        "bulkhead_scrubs_total{kind=\"whole\",verdict=\"clean\"} 4\n"
        "# HELP bulkhead_tenant_oldest_wait_seconds How long the job has waited that waits longest; 0 where none waits\n"
        "# TYPE bulkhead_tenant_oldest_wait_seconds gauge\n"
        "# UNIT bulkhead_tenant_oldest_wait_seconds seconds\n"
        "bulkhead_tenant_oldest_wait_seconds{tenant=\"rival\"} 7\n"
        "# HELP bulkhead_tenant_queue_wait_seconds How long jobs waited before they were given what they asked for\n"
        "# TYPE bulkhead_tenant_queue_wait_seconds histogram\n"
        "# UNIT bulkhead_tenant_queue_wait_seconds seconds\n"
#define WAIT(t)                                                                      \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"1.0\"} 0\n"     \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"5.0\"} 1\n"     \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"15.0\"} 1\n"    \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"60.0\"} 1\n"    \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"300.0\"} 1\n"   \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"900.0\"} 1\n"   \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"3600.0\"} 1\n"  \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"14400.0\"} 1\n" \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"86400.0\"} 1\n" \
    "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"" t "\",le=\"+Inf\"} 1\n"    \
    "bulkhead_tenant_queue_wait_seconds_count{tenant=\"" t "\"} 1\n"                 \
    "bulkhead_tenant_queue_wait_seconds_sum{tenant=\"" t "\"} 2.5\n"
        WAIT("rival") WAIT(
            "third") "# HELP bulkhead_tenant_gpu_seconds GPU time that a tenant was charged for, exactly as the ledger has it\n"
                     "# TYPE bulkhead_tenant_gpu_seconds counter\n"
                     "# UNIT bulkhead_tenant_gpu_seconds seconds\n"
                     "bulkhead_tenant_gpu_seconds_total{tenant=\"acme\",mechanism=\"whole\"} 1.5\n"
                     "bulkhead_tenant_gpu_seconds_total{tenant=\"rival\",mechanism=\"whole\"} 2.000001\n"
                     "bulkhead_tenant_gpu_seconds_total{tenant=\"third\",mechanism=\"whole\"} 0.00004\n"
                     "# HELP bulkhead_lease_share_target_ratio Part of a GPU's time that the governor means a lease to have now\n"
                     "# TYPE bulkhead_lease_share_target_ratio gauge\n"
                     "# UNIT bulkhead_lease_share_target_ratio ratio\n"
                     "bulkhead_lease_share_target_ratio{lease=\"L7\",tenant=\"rival\",gpu=\"4\"} 0.25\n"
                     "bulkhead_lease_share_target_ratio{lease=\"L8\",tenant=\"acme\",gpu=\"4\"} 0.25\n"
                     "# HELP DCGM_FI_DEV_ECC_SBE_AGG_TOTAL Corrected ECC errors since the GPU was made\n"
                     "# TYPE DCGM_FI_DEV_ECC_SBE_AGG_TOTAL unknown\n"
                     "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA "
                     "\\\"H100\\\"\\\\x\\ny\",Hostname=\"lab\"} 3\n"
                     "# EOF\n");
}

TEST(older_format)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    BH_AUTO(bh_buf_fini) struct bh_buf out;
    bh_metrics_add(&m, BH_METRIC_BUILD, NULL, 1, BH_LABELS("0.1.0", "1", "lab", "false"));
    bh_metrics_add(&m, BH_METRIC_AUDIT_RECORDS, NULL, 4, BH_NO_LABELS);
    bh_metrics_add(&m, BH_METRIC_D_SBE, NULL, 3, BH_LABELS("0", NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK_STR(
        written(&out, &m, &everything, BH_METRICS_PROMETHEUS),
        "# HELP bulkhead_build_info This daemon, the driver it runs on, and whether its silicon is simulated\n"
        "# TYPE bulkhead_build_info gauge\n"
        "bulkhead_build_info{version=\"0.1.0\",driver=\"1\",node=\"lab\",simulated=\"false\"} 1\n"
        "# HELP DCGM_FI_DEV_ECC_SBE_AGG_TOTAL Corrected ECC errors since the GPU was made\n"
        "# TYPE DCGM_FI_DEV_ECC_SBE_AGG_TOTAL untyped\n"
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL{gpu=\"0\"} 3\n"
        "# HELP bulkhead_audit_records_total Records of the audit log\n"
        "# TYPE bulkhead_audit_records_total counter\n"
        "bulkhead_audit_records_total 4\n");
}

/* Neighbours have no names, what cannot be added up of them is not there, and what is the node's is not shown. */
TEST(a_tenant_sees_itself)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    BH_AUTO(bh_buf_fini) struct bh_buf out;
    BH_AUTO(read_fini) struct read_text r = {0};
    gather(&m);
    bh_metrics_add(&m, BH_METRIC_T_WAITING, "rival", 2, BH_LABELS("rival", "room"));
    bh_metrics_add(&m, BH_METRIC_T_WAITING, "third", 1, BH_LABELS("third", "turn"));
    const char *text = written(&out, &m, &acme, BH_METRICS_OPEN);
    CHECK(read_all(&r, text, true));
    CHECK(!strstr(text, "rival") && !strstr(text, "third") && !strstr(text, "scrubs") &&
          !strstr(text, "DCGM"));
    CHECK(!strstr(text, "oldest_wait") && !strstr(text, "queue_wait"));
    CHECK_STR(read_value(&r, "bulkhead_tenant_gpu_seconds_total{tenant=\"acme\",mechanism=\"whole\"}"),
              "1.5");
    CHECK_STR(read_value(&r, "bulkhead_tenant_waiting_jobs{tenant=\"_others\",reason=\"_others\"}"), "3");
    CHECK(read_value(&r, "bulkhead_lease_share_target_ratio{lease=\"L8\",tenant=\"acme\",gpu=\"4\"}") !=
          NULL);
    CHECK_EQ(r.samples.n, 4);
}

TEST(beyond_the_cap)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    BH_AUTO(bh_buf_fini) struct bh_buf out;
    BH_AUTO(read_fini) struct read_text r = {0};
    const uint32_t cap = bh_families[BH_METRIC_T_LEASES].cap;
    char name[32];
    for (uint32_t i = 0; i < cap + 10; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        bh_metrics_add(&m, BH_METRIC_T_LEASES, name, 2, BH_LABELS(name));
        bh_metrics_add(&m, BH_METRIC_T_OLDEST, name, 2, BH_LABELS(name));
    }
    CHECK(read_all(&r, written(&out, &m, &everything, BH_METRICS_OPEN), true));
    CHECK_STR(read_value(&r, "bulkhead_tenant_leases{tenant=\"_other\"}"), "20");
    CHECK(read_value(&r, "bulkhead_tenant_oldest_wait_seconds{tenant=\"_other\"}") == NULL);
    CHECK_STR(read_value(&r, "bulkhead_metrics_folded_rows{family=\"bulkhead_tenant_leases\"}"), "10");
    CHECK_STR(read_value(&r, "bulkhead_metrics_folded_rows{family=\"bulkhead_tenant_oldest_wait_seconds\"}"),
              "10");
    CHECK_EQ(r.samples.n, (size_t)cap + 1 + cap + 2);
}

TEST(spreads_beyond_the_cap)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    BH_AUTO(bh_buf_fini) struct bh_buf out;
    BH_AUTO(read_fini) struct read_text r = {0};
    struct bh_metric_spread wait = {0};
    char name[32];
    bh_metric_spread_add(&wait, 2500);
    for (uint32_t i = 0; i < bh_families[BH_METRIC_T_WAIT].cap + 3; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        bh_metrics_add_spread(&m, BH_METRIC_T_WAIT, name, &wait, BH_LABELS(name));
    }
    CHECK(read_all(&r, written(&out, &m, &everything, BH_METRICS_OPEN), true));
    CHECK_STR(read_value(&r, "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"_other\",le=\"1.0\"}"), "0");
    CHECK_STR(read_value(&r, "bulkhead_tenant_queue_wait_seconds_bucket{tenant=\"_other\",le=\"5.0\"}"), "3");
    CHECK_STR(read_value(&r, "bulkhead_tenant_queue_wait_seconds_count{tenant=\"_other\"}"), "3");
    CHECK_STR(read_value(&r, "bulkhead_tenant_queue_wait_seconds_sum{tenant=\"_other\"}"), "7.5");
}

TEST(values_and_bytes)
{
    static const struct {
        int64_t value;
        const char *want;
    } cases[] = {{0, "0"},
                 {-1, "-0.001"},
                 {-1500, "-1.5"},
                 {1000, "1"},
                 {1001, "1.001"},
                 {INT64_MIN, "-9223372036854775.808"},
                 {INT64_MAX, "9223372036854775.807"}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
        BH_AUTO(bh_buf_fini) struct bh_buf out;
        BH_AUTO(read_fini) struct read_text r = {0};
        bh_metrics_add(&m, BH_METRIC_T_QUOTA, "a", cases[i].value,
                       BH_LABELS("\xff"
                                 "a\xc3\xa4\"\\\n"));
        CHECK(read_all(&r, written(&out, &m, &everything, BH_METRICS_OPEN), true));
        CHECK_EQ(r.samples.n, 1);
        CHECK_STR(r.samples.at[0].value, cases[i].want);
        CHECK_STR(r.samples.at[0].values[0], "?a\xc3\xa4\"\\\n");
    }
}

/* Whatever is gathered, by whoever it is asked: both formats are read back, and nothing is lost of what can be added up. */
TEST(random_rows_are_read_back)
{
    uint64_t seed = 88172645463325252u;
#define DRAW(n) (seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17, seed % (n))
    for (int round = 0; round < 60; round++) {
        BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
        uint64_t leases = 0;
        const size_t n = DRAW(600);
        for (size_t i = 0; i < n; i++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "t%zu", i);
            const char *tenant = i == 0 ? "acme" : name;
            const uint64_t v = DRAW(1000);
            leases += v;
            bh_metrics_add(&m, BH_METRIC_T_LEASES, tenant, (int64_t)v, BH_LABELS(tenant));
            bh_metrics_add(&m, BH_METRIC_T_WAITING, tenant, 1, BH_LABELS(tenant, DRAW(2) ? "room" : "turn"));
            bh_metrics_add(&m, BH_METRIC_L_GRANTED, tenant, 1, BH_LABELS(name, tenant, "1", "whole"));
        }
        for (int k = 0; k < 4; k++) {
            BH_AUTO(bh_buf_fini) struct bh_buf out;
            BH_AUTO(read_fini) struct read_text r = {0};
            uint64_t told = 0, v;
            const char *text = written(&out, &m, k & 1 ? &acme : &everything,
                                       k & 2 ? BH_METRICS_PROMETHEUS : BH_METRICS_OPEN);
            CHECK(read_all(&r, text, !(k & 2)));
            for (size_t i = 0; i < r.samples.n; i++)
                if (bh_str_eq(r.samples.at[i].name, "bulkhead_tenant_leases")) {
                    CHECK_EQ(bh_uint_parse(r.samples.at[i].value, UINT64_MAX, &v, NULL), 0);
                    told += v;
                }
            CHECK_EQ(told, leases);
        }
    }
}

TEST(what_is_asked_for)
{
    CHECK_EQ(bh_metrics_format(NULL), BH_METRICS_PROMETHEUS);
    CHECK_EQ(bh_metrics_format("*/*"), BH_METRICS_PROMETHEUS);
    CHECK_EQ(bh_metrics_format("text/plain;version=0.0.4"), BH_METRICS_PROMETHEUS);
    CHECK_EQ(bh_metrics_format(
                 "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
                 "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
             BH_METRICS_OPEN);
    CHECK(strstr(bh_metrics_content_type(BH_METRICS_OPEN), "openmetrics"));
    CHECK(strstr(bh_metrics_content_type(BH_METRICS_PROMETHEUS), "0.0.4"));
}

TEST_MAIN
