/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"
#include "base/units.h"

enum { REFUSED = -1 };

/* Each parser as text -> number, REFUSED when it refuses, so that a table can hold the cases. */
static int64_t size_of(const char *s)
{
    uint64_t v;
    return bh_size_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t quantity_of(const char *s)
{
    uint64_t v;
    return bh_quantity_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t share_of(const char *s)
{
    uint32_t v;
    return bh_share_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t duration_of(const char *s)
{
    uint64_t v;
    return bh_duration_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t count_of(const char *s)
{
    uint64_t v;
    return bh_count_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t money_of(const char *s)
{
    uint64_t v;
    return bh_money_parse(s, &v, NULL) ? REFUSED : (int64_t)v;
}

static int64_t uint_of(const char *s)
{
    uint64_t v;
    return bh_uint_parse(s, 100, &v, NULL) ? REFUSED : (int64_t)v;
}

/* A day before 1970 is negative and could look refused; those have tests of their own. */
static int64_t date_of(const char *s)
{
    int32_t v;
    return bh_date_parse(s, &v, NULL) ? REFUSED : v;
}

static int64_t instant_of(const char *s)
{
    int64_t v;
    return bh_instant_parse(s, &v, NULL) ? REFUSED : v;
}

struct row {
    const char *s;
    int64_t value;
};

static bool rows_hold(int64_t (*parse)(const char *), const struct row *rows, size_t n)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        int64_t got = parse(rows[i].s);
        if (got != rows[i].value) {
            printf("# '%s' gives %" PRId64 ", expected %" PRId64 "\n", rows[i].s, got, rows[i].value);
            good = false;
        }
    }
    return good;
}

TEST(sizes)
{
    static const struct row rows[] = {
        {"20GiB", 20LL << 30},
        {"512MiB", 512LL << 20},
        {"2TiB", 2LL << 40},
        {"80GB", 80000000000},
        {"1MB", 1000000},
        {"1TB", 1000000000000},
        {"0GiB", 0},
        {"16.5GiB", 33LL << 29},
        {"0.125MiB", 131072},
        {"0.1GiB", 107374182},
        {"1.000000GiB", 1LL << 30},
        {"000000000000000000000000001MiB", 1 << 20},
        {"8388607TiB", 8388607LL << 40},
        {"20", REFUSED},
        {"", REFUSED},
        {"GiB", REFUSED},
        {"20 GiB", REFUSED},
        {"20gib", REFUSED},
        {"20Gi", REFUSED},
        {"20GiBs", REFUSED},
        {"-1GiB", REFUSED},
        {"+1GiB", REFUSED},
        {" 1GiB", REFUSED},
        {"1.GiB", REFUSED},
        {".5GiB", REFUSED},
        {"1.0001GiB", REFUSED},
        {"1e3GiB", REFUSED},
        {"0x10GiB", REFUSED},
        {"16777216TiB", REFUSED},
        {"18446744073709551616MiB", REFUSED},
        {"99999999999999999999999999999999999999MB", REFUSED},
    };
    CHECK(rows_hold(size_of, rows, BH_COUNT_OF(rows)));
}

TEST(largest_size)
{
    uint64_t v = 7;
    struct bh_err err;
    CHECK_EQ(bh_size_parse("16777215TiB", &v, &err), BH_OK);
    CHECK(v == UINT64_C(16777215) << 40);
    v = 7;
    CHECK_EQ(bh_size_parse("16777216TiB", &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "'16777216TiB' is too large a size");
    CHECK_EQ(v, 7); /* nothing is written on failure */
}

TEST(quantities)
{
    static const struct row rows[] = {
        {"1", 1000},
        {"500m", 500},
        {"0.5", 500},
        {"8", 8000},
        {"2e3", 2000000},
        {"2E3", 2000000},
        {"2e+3", 2000000},
        {"1.5e1", 15000},
        {"0e99", 0},
        {"16Gi", (16LL << 30) * 1000},
        {"1Ki", 1024000},
        {"100Ti", (100LL << 40) * 1000},
        {"1P", 1000000000000000000},
        {"1k", 1000000},
        {"1.5G", 1500000000000},
        {"", REFUSED},
        {"m", REFUSED},
        {"1.5m", REFUSED},
        {"1e", REFUSED},
        {"1e-3", REFUSED},
        {"1e3Ki", REFUSED},
        {"1e3m", REFUSED},
        {"1e99", REFUSED},
        {"1e99999999999999999999", REFUSED},
        {"1K", REFUSED},
        {"1gi", REFUSED},
        {"-1", REFUSED},
        {"1 ", REFUSED},
        {"nan", REFUSED},
        {"100P", REFUSED},
        {"18446744073709551615", REFUSED},
    };
    CHECK(rows_hold(quantity_of, rows, BH_COUNT_OF(rows)));
}

TEST(shares)
{
    static const struct row rows[] = {
        {"25%", 250000},
        {"0.25", 250000},
        {"100%", 1000000},
        {"1", 1000000},
        {"0", 0},
        {"0%", 0},
        {"12.5%", 125000},
        {"0.0001%", 1},
        {"0.000001", 1},
        {"101%", REFUSED},
        {"1.000001", REFUSED},
        {"25", REFUSED},
        {"", REFUSED},
        {"%", REFUSED},
        {"25%%", REFUSED},
        {"-1%", REFUSED},
        {"0.00001%", REFUSED},
        {"25 %", REFUSED},
        {"0.25x", REFUSED},
    };
    CHECK(rows_hold(share_of, rows, BH_COUNT_OF(rows)));
}

TEST(durations)
{
    static const struct row rows[] = {
        {"50ms", 50},
        {"2s", 2000},
        {"10m", 600000},
        {"4h", 14400000},
        {"7d", 604800000},
        {"1.5s", 1500},
        {"0.5h", 1800000},
        {"365d", 31536000000},
        {"0s", 0},
        {"0.001s", 1},
        {"1.5ms", REFUSED},
        {"10", REFUSED},
        {"", REFUSED},
        {"ms", REFUSED},
        {"1w", REFUSED},
        {"1h30m", REFUSED},
        {"-1s", REFUSED},
        {"999999999999d", REFUSED},
        {"18446744073709551615d", REFUSED},
    };
    CHECK(rows_hold(duration_of, rows, BH_COUNT_OF(rows)));
}

TEST(counts_money_and_whole_numbers)
{
    static const struct row counts[] = {
        {"4", 4000},
        {"0.5", 500},
        {"1.125", 1125},
        {"0", 0},
        {"1.1250", 1125},
        {"1.1255", REFUSED},
        {"four", REFUSED},
        {"", REFUSED},
        {"-4", REFUSED},
        {"4 ", REFUSED},
        {"18446744073709552", REFUSED},
    };
    static const struct row money[] = {
        {"2.50", 2500000},      {"0.02", 20000},   {"0.000001", 1},
        {"0.0000001", REFUSED}, {"2,50", REFUSED}, {"$2", REFUSED},
    };
    static const struct row whole[] = {
        {"0", 0},         {"100", 100},
        {"007", 7},       {"101", REFUSED},
        {"1.0", REFUSED}, {"1.5", REFUSED},
        {"1.", REFUSED},  {"", REFUSED},
        {"-0", REFUSED},  {"99999999999999999999", REFUSED},
        {"0x1", REFUSED}, {"1e1", REFUSED},
    };
    CHECK(rows_hold(count_of, counts, BH_COUNT_OF(counts)));
    CHECK(rows_hold(money_of, money, BH_COUNT_OF(money)));
    CHECK(rows_hold(uint_of, whole, BH_COUNT_OF(whole)));
    uint64_t v;
    CHECK_EQ(bh_uint_parse("18446744073709551615", UINT64_MAX, &v, NULL), BH_OK);
    CHECK(v == UINT64_MAX);
}

TEST(dates_and_instants)
{
    static const struct row dates[] = {
        {"1970-01-01", 0},
        {"1970-01-02", 1},
        {"2000-02-29", 11016},
        {"2026-12-31", 20818},
        {"2026-12-31T23:59:59Z", 20818},
        {"2026-12-31 00:00:00Z", 20818},
        {"9999-12-31", 2932896},
        {"2026-02-29", REFUSED},
        {"1900-02-29", REFUSED},
        {"2100-02-29", REFUSED},
        {"2026-04-31", REFUSED},
        {"2026-00-10", REFUSED},
        {"2026-13-10", REFUSED},
        {"2026-01-00", REFUSED},
        {"0000-01-01", REFUSED},
        {"2026-1-1", REFUSED},
        {"26-01-01", REFUSED},
        {"12026-01-01", REFUSED},
        {"2026-12-3", REFUSED},
        {"2026-12-", REFUSED},
        {"2026", REFUSED},
        {"", REFUSED},
        {"2026-12-31T", REFUSED},
        {"2026-12-31T23:59:59", REFUSED},
        {"2026-12-31T24:00:00Z", REFUSED},
        {"2026-12-31T23:60:00Z", REFUSED},
        {"2026-12-31T23:59:60Z", REFUSED},
        {"2026-12-31T23:59:59Zx", REFUSED},
        {"2026-12-31T23:59:59+01:00", REFUSED},
        {"-026-12-31", REFUSED},
    };
    static const struct row instants[] = {
        {"1970-01-01T00:00:01Z", 1},
        {"2026-12-01T00:00:00Z", 1796083200},
        {"2026-12-01", 1796083200},
        {"2038-01-19T03:14:08Z", 2147483648},
    };
    CHECK(rows_hold(date_of, dates, BH_COUNT_OF(dates)));
    CHECK(rows_hold(instant_of, instants, BH_COUNT_OF(instants)));
}

TEST(days_before_1970)
{
    int32_t day;
    int64_t s;
    CHECK_EQ(bh_date_parse("1969-12-31", &day, NULL), BH_OK);
    CHECK_EQ(day, -1);
    CHECK_EQ(bh_date_parse("1969-12-31T23:59:59Z", &day, NULL), BH_OK);
    CHECK_EQ(day, -1);
    CHECK_EQ(bh_instant_parse("1969-12-31T23:59:59Z", &s, NULL), BH_OK);
    CHECK_EQ(s, -1);
    CHECK_EQ(bh_date_parse("0001-01-01", &day, NULL), BH_OK);
    CHECK_EQ(day, -719162);
}

/* Counting days one by one is the calendar; the formulas must agree with it from 1900 to 2200. */
TEST(every_day_goes_to_text_and_back)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int32_t day = -25567; /* 1900-01-01 */
    for (int y = 1900; y <= 2200; y++) {
        bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
        for (int m = 1; m <= 12; m++)
            for (int d = 1; d <= lengths[m - 1] + (m == 2 && leap); d++, day++) {
                struct bh_unit_text t;
                char text[40];
                int32_t parsed;
                (void)snprintf(text, sizeof(text), "%04d-%02d-%02d", y, m, d);
                CHECK_STR(bh_date_format(day, &t), text);
                CHECK_EQ(bh_date_parse(text, &parsed, NULL), BH_OK);
                CHECK_EQ(parsed, day);
            }
    }
    CHECK_EQ(day, 84371); /* 2201-01-01 */
}

TEST(any_day_can_be_written)
{
    struct bh_unit_text t;
    CHECK_STR(bh_date_format(INT32_MAX, &t), "5881580-07-11");
    CHECK(strlen(bh_date_format(INT32_MIN, &t)) < sizeof(t.s));
}

TEST(names)
{
    char name[66];
    memset(name, 'a', sizeof(name));
    name[63] = '\0';
    CHECK(bh_name_valid(name));
    name[63] = 'a';
    name[64] = '\0';
    CHECK(!bh_name_valid(name));
    static const char *const good[] = {"a", "0", "a-b", "a--b", "team-a1", "7g"};
    static const char *const bad[] = {
        "", "-", "-a", "a-", "A", "a_b", "a.b", "a b", "caf\xc3\xa9", "a\n", "*",
    };
    for (size_t i = 0; i < BH_COUNT_OF(good); i++)
        CHECK(bh_name_valid(good[i]));
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        CHECK(!bh_name_valid(bad[i]));
}

TEST(formats)
{
    struct bh_unit_text t;
    CHECK_STR(bh_size_format(20 * BH_GIB, &t), "20 GiB");
    CHECK_STR(bh_size_format(33 * BH_GIB / 2, &t), "16.5 GiB");
    CHECK_STR(bh_size_format(512 * BH_MIB, &t), "512 MiB");
    CHECK_STR(bh_size_format(2048 * BH_GIB, &t), "2 TiB");
    CHECK_STR(bh_size_format(0, &t), "0 MiB");
    CHECK_STR(bh_size_format(UINT64_MAX, &t), "16777216 TiB");
    CHECK_STR(bh_share_format(250000, &t), "25%");
    CHECK_STR(bh_share_format(121234, &t), "12.1%");
    CHECK_STR(bh_share_format(0, &t), "0%");
    CHECK_STR(bh_share_format(1000000, &t), "100%");
    CHECK_STR(bh_share_format(UINT32_MAX, &t), "429496.7%");
    CHECK_STR(bh_count_format(4000, &t), "4");
    CHECK_STR(bh_count_format(500, &t), "0.5");
    CHECK_STR(bh_count_format(1125, &t), "1.125");
    CHECK_STR(bh_count_format(UINT64_MAX, &t), "18446744073709551.615");
    CHECK_STR(bh_duration_format(50, &t), "50ms");
    CHECK_STR(bh_duration_format(604800000, &t), "7d");
    CHECK_STR(bh_duration_format(5400000, &t), "90m");
    CHECK_STR(bh_duration_format(0, &t), "0ms");
    CHECK_STR(bh_duration_format(UINT64_MAX, &t), "18446744073709551615ms");
}

/* What is written exactly reads back as the same amount, and is then written the same way. */
TEST(written_amounts_read_back)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint8_t bytes[16];
        struct bh_unit_text t;
        uint64_t v, draw;
        uint32_t ppm;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        memcpy(&draw, bytes, sizeof(draw));
        draw >>= bytes[8] % 64;
        CHECK_EQ(bh_count_parse(bh_count_format(draw, &t), &v, NULL), BH_OK);
        CHECK(v == draw);
        uint64_t whole_ms = draw >> 10; /* a duration is read in thousandths first */
        CHECK_EQ(bh_duration_parse(bh_duration_format(whole_ms, &t), &v, NULL), BH_OK);
        CHECK(v == whole_ms);
        uint32_t tenths = (uint32_t)(draw % 1001) * 1000;
        CHECK_EQ(bh_share_parse(bh_share_format(tenths, &t), &ppm, NULL), BH_OK);
        CHECK_EQ(ppm, tenths);
        int32_t day = (int32_t)(draw % 3652059) - 719162, back;
        CHECK_EQ(bh_date_parse(bh_date_format(day, &t), &back, NULL), BH_OK);
        CHECK_EQ(back, day);
    }
}

/* A size is shown with two decimals: read back it is within half of the last one, and then stays. */
TEST(written_sizes_read_back_close)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        uint8_t bytes[16];
        struct bh_unit_text t, again;
        uint64_t v, draw;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        memcpy(&draw, bytes, sizeof(draw));
        draw >>= 8 + bytes[8] % 40;
        char *space = strchr(bh_size_format(draw, &t), ' ');
        CHECK(space != NULL);
        memmove(space, space + 1, strlen(space));
        CHECK_EQ(bh_size_parse(t.s, &v, NULL), BH_OK);
        uint64_t unit = draw >= BH_GIB << 10 ? BH_GIB << 10 : draw >= BH_GIB ? BH_GIB : BH_MIB;
        uint64_t off = v > draw ? v - draw : draw - v;
        CHECK(off <= unit / 200 + 1);
        (void)bh_size_format(v, &again);
        space = strchr(again.s, ' ');
        memmove(space, space + 1, strlen(space));
        if (v >= unit) /* 1023.999 MiB is shown as 1024 MiB and comes back as 1 GiB */
            continue;
        CHECK_STR(again.s, t.s);
    }
}

TEST(messages_name_what_was_written)
{
    struct bh_err err;
    uint64_t v;
    uint32_t ppm;
    CHECK_EQ(bh_size_parse("20", &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "'20' is not a size; write it like 20GiB (MiB, GiB, TiB, MB, GB, TB)");
    CHECK_EQ(bh_share_parse("150%", &ppm, &err), BH_INVALID);
    CHECK_STR(err.msg, "share '150%' is more than 100%");
    CHECK_EQ(bh_duration_parse("1.5ms", &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "duration '1.5ms' is finer than a millisecond");
    CHECK_EQ(bh_quantity_parse("1Qi", &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "'1Qi' is not a quantity; 'Qi' is no known suffix");
    CHECK_EQ(bh_uint_parse("101", 100, &v, &err), BH_INVALID);
    CHECK_STR(err.msg, "'101' is not a whole number from 0 to 100");
}

TEST_MAIN
