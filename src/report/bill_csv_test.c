/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bill.h"

#include "base/test.h"

#define HOUR_MS UINT64_C(3600000)
#define NOV_MS  UINT64_C(1793491200000) /* 2026-11-01 */

static const struct bh_bill_prices prices = {"EUR", 2500000, 20000};

TEST(csv_to_the_last_digit)
{
    struct bh_arena a = {0};
    struct bh_buf out;
    struct bh_bill b = {.by = BH_BILL_BY_TENANT, .from_ms = 0, .to_ms = 86400001, .prices = &prices};
    const struct bh_bill_line red = {"red",          NULL, "ada", "GPU-0", "mig", 1500 * HOUR_MS + 1,
                                     1024 * HOUR_MS, 7,    3,     1};
    bh_bill_add(&b, &red);
    bh_buf_init(&out, 1 << 16);
    bh_bill_csv(&b, &a, &out);
    CHECK_STR(
        bh_buf_text(&out),
        "from,to,tenant,cost_center,user,gpu,mechanism,gpu_seconds,gib_seconds,lost_gpu_seconds,leases,"
        "milli_ms,mib_ms,currency,cost\n"
        "1970-01-01T00:00:00Z,1970-01-02T00:00:00.001Z,red,,all,all,all,5400.000001,3600.000,0.000007,3,"
        "5400000001,3686400000,EUR,3.770000\n");
    bh_buf_fini(&out);
    bh_buf_init(&out, 1 << 16);
    b.prices = NULL;
    bh_bill_csv(&b, &a, &out);
    CHECK(strstr(bh_buf_text(&out), ",5400000001,3686400000,,\n"));
    bh_buf_fini(&out);
    bh_bill_fini(&b);
    bh_arena_fini(&a);
}

TEST(a_name_is_no_formula_and_no_field_of_its_own)
{
    static const struct {
        const char *name, *field;
    } cases[] = {{NULL, ""},
                 {"red", "red"},
                 {"GPU-9f", "GPU-9f"},
                 {"mig:1g.10gb@0", "mig:1g.10gb@0"},
                 {"=1+\"2\",\n", "\"'=1+\"\"2\"\",\\x0a\""},
                 {"-x", "\"'-x\""},
                 {"@sum", "\"'@sum\""},
                 {"a b", "\"'a b\""}};
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++) {
        struct bh_buf out;
        bh_buf_init(&out, 4096);
        bh_csv_text(&out, cases[i].name);
        CHECK_STR(bh_buf_text(&out), cases[i].field);
        bh_buf_fini(&out);
    }
}

static size_t commas(const char *line)
{
    size_t n = 0;
    bool quoted = false;
    for (; *line && *line != '\n'; line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

TEST(focus_has_two_rows_for_each_line)
{
    struct bh_arena a = {0};
    struct bh_buf out;
    struct bh_err err;
    struct bh_bill b = {.by = BH_BILL_BY_GPU,
                        .from_ms = NOV_MS,
                        .to_ms = NOV_MS + UINT64_C(30) * 86400000,
                        .prices = &prices};
    *bh_vec_push(&b.lines) =
        (struct bh_bill_line){"red", "a \"b\"", NULL, "GPU-0", "mig", 428 * HOUR_MS, 2048 * HOUR_MS, 0, 1, 0};
    bh_buf_init(&out, 1 << 16);
    CHECK_EQ(bh_bill_focus(&b, "node-1", &a, &out, &err), 0);
    const char *head = bh_buf_text(&out), *time = strchr(head, '\n') + 1, *memory = strchr(time, '\n') + 1;
    CHECK_EQ(commas(head), 33);
    CHECK_EQ(commas(time), 33);
    CHECK_EQ(commas(memory), 33);
    CHECK(strstr(time,
                 "1.070000,node-1,node-1,EUR,2026-12-01T00:00:00Z,2026-11-01T00:00:00Z,Usage,,GPU time") ==
          time);
    CHECK(strstr(time, ",Usage-Based,2026-12-01T00:00:00Z,2026-11-01T00:00:00Z,0.428000000,GPU-Hours,"));
    CHECK(strstr(time, ",GPU-0,,GPU,Compute,Bulkhead GPU sharing,gpu-time,gpu-time,red,red,"));
    CHECK(strstr(time, "\"\"cost-center\"\": \"\"a \\\"\"b\\\"\"\"\""));
    CHECK(strstr(memory, "0.040000,node-1,") == memory);
    CHECK(strstr(memory, ",2.000000000,GiB-Hours,"));
    b.to_ms++; /* one millisecond of December */
    CHECK_EQ(bh_bill_focus(&b, "n", &a, &out, &err), BH_INVALID);
    b.to_ms = b.from_ms;
    CHECK_EQ(bh_bill_focus(&b, "n", &a, &out, &err), BH_INVALID);
    b.to_ms = b.from_ms + 1;
    b.prices = NULL;
    CHECK_EQ(bh_bill_focus(&b, "n", &a, &out, &err), BH_INVALID);
    CHECK(strstr(err.msg, "`prices`"));
    bh_buf_fini(&out);
    bh_bill_fini(&b);
    bh_arena_fini(&a);
}

TEST_MAIN
