/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Digits with an optional fraction, scaled by 10^decimals. *s moves past what was
 * read. False: no digit, too many decimals, or too large.
 */
static bool scan_decimal(const char **s, unsigned decimals, uint64_t *ret)
{
    const char *p = *s;
    uint64_t v = 0;
    if (!bh_is_digit(*p))
        return false;
    for (; bh_is_digit(*p); p++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    unsigned left = decimals;
    if (*p == '.') {
        p++;
        if (!bh_is_digit(*p))
            return false;
        for (; bh_is_digit(*p); p++) {
            if (left == 0) {
                if (*p != '0')
                    return false;
                continue;
            }
            left--;
            if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
                return false;
        }
    }
    for (; left; left--)
        if (__builtin_mul_overflow(v, 10u, &v))
            return false;
    *s = p;
    *ret = v;
    return true;
}

struct suffix {
    const char *name;
    uint64_t factor;
};

static const struct suffix *suffix_find(const struct suffix *t, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(t[i].name, s) == 0)
            return &t[i];
    return NULL;
}

/* thousandths of a unit of `factor`, in whole parts; *ret_rest says that less than one part was left over. */
static bool scale(uint64_t milli, uint64_t factor, uint64_t *ret, bool *ret_rest)
{
    uint64_t fraction = milli % 1000 * factor; /* factor stays below 2^54 */
    *ret_rest = fraction % 1000 != 0;
    return !__builtin_mul_overflow(milli / 1000, factor, ret) &&
           !__builtin_add_overflow(*ret, fraction / 1000, ret);
}

int bh_size_parse(const char *s, uint64_t *ret_bytes, struct bh_err *err)
{
    static const struct suffix units[] = {
        {"MiB", BH_MIB},  {"GiB", BH_GIB},     {"TiB", BH_GIB << 10},
        {"MB", 1000000u}, {"GB", 1000000000u}, {"TB", UINT64_C(1000000000000)},
    };
    const char *p = s;
    uint64_t milli, v;
    bool rest;
    const struct suffix *u;
    if (!scan_decimal(&p, 3, &milli) || !(u = suffix_find(units, sizeof(units) / sizeof(units[0]), p)))
        return bh_fail(err, BH_INVALID,
                       "'%.60s' is not a size; write it like 20GiB (MiB, GiB, TiB, MB, GB, TB)", s);
    if (!scale(milli, u->factor, &v, &rest))
        return bh_fail(err, BH_INVALID, "'%.60s' is too large a size", s);
    *ret_bytes = v; /* 0.1GiB is no whole number of bytes; less than one byte is dropped */
    return BH_OK;
}

int bh_quantity_parse(const char *s, uint64_t *ret_milli, struct bh_err *err)
{
    static const struct suffix units[] = {
        {"", 1},
        {"k", 1000},
        {"M", 1000000},
        {"G", 1000000000},
        {"T", UINT64_C(1000000000000)},
        {"P", UINT64_C(1000000000000000)},
        {"Ki", UINT64_C(1) << 10},
        {"Mi", UINT64_C(1) << 20},
        {"Gi", UINT64_C(1) << 30},
        {"Ti", UINT64_C(1) << 40},
        {"Pi", UINT64_C(1) << 50},
    };
    const char *p = s;
    uint64_t v, exp = 0;
    if (!scan_decimal(&p, 3, &v))
        return bh_fail(err, BH_INVALID, "'%.60s' is not a quantity", s);
    if ((*p == 'e' || *p == 'E') && bh_is_digit(p[1 + (p[1] == '+')])) {
        for (p += 1 + (p[1] == '+'); bh_is_digit(*p) && exp < 100; p++)
            exp = exp * 10 + (uint64_t)(*p - '0');
        if (*p)
            return bh_fail(err, BH_INVALID, "'%.60s' is not a quantity; nothing may follow its exponent", s);
        for (; exp; exp--)
            if (__builtin_mul_overflow(v, 10u, &v))
                return bh_fail(err, BH_INVALID, "'%.60s' is too large a quantity", s);
    }
    if (strcmp(p, "m") == 0) {
        if (v % 1000)
            return bh_fail(err, BH_INVALID, "quantity '%.60s' is finer than a thousandth", s);
        *ret_milli = v / 1000;
        return BH_OK;
    }
    const struct suffix *u = suffix_find(units, sizeof(units) / sizeof(units[0]), p);
    if (!u)
        return bh_fail(err, BH_INVALID, "'%.60s' is not a quantity; '%.20s' is no known suffix", s, p);
    if (__builtin_mul_overflow(v, u->factor, &v))
        return bh_fail(err, BH_INVALID, "'%.60s' is too large a quantity", s);
    *ret_milli = v;
    return BH_OK;
}

int bh_share_parse(const char *s, uint32_t *ret_ppm, struct bh_err *err)
{
    const char *p = s;
    uint64_t v;
    size_t n = strlen(s);
    bool percent = n && s[n - 1] == '%';
    if (!scan_decimal(&p, percent ? 4 : 6, &v) || strcmp(p, percent ? "%" : "") != 0)
        return bh_fail(err, BH_INVALID, "'%.60s' is not a share; write it like 25%% or 0.25", s);
    if (v > 1000000)
        return bh_fail(err, BH_INVALID, "share '%.60s' is more than 100%%", s);
    *ret_ppm = (uint32_t)v;
    return BH_OK;
}

int bh_duration_parse(const char *s, uint64_t *ret_ms, struct bh_err *err)
{
    static const struct suffix units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
    };
    const char *p = s;
    uint64_t milli, v;
    bool rest;
    const struct suffix *u;
    if (!scan_decimal(&p, 3, &milli) || !(u = suffix_find(units, sizeof(units) / sizeof(units[0]), p)))
        return bh_fail(err, BH_INVALID, "'%.60s' is not a duration; write it like 50ms, 2s, 10m, 4h or 7d",
                       s);
    if (!scale(milli, u->factor, &v, &rest))
        return bh_fail(err, BH_INVALID, "'%.60s' is too long a duration", s);
    if (rest)
        return bh_fail(err, BH_INVALID, "duration '%.60s' is finer than a millisecond", s);
    *ret_ms = v;
    return BH_OK;
}

static int decimal_only(const char *s, unsigned decimals, const char *what, uint64_t *ret, struct bh_err *err)
{
    const char *p = s;
    uint64_t v;
    if (!scan_decimal(&p, decimals, &v) || *p)
        return bh_fail(err, BH_INVALID, "'%.60s' is not %s", s, what);
    *ret = v;
    return BH_OK;
}

int bh_count_parse(const char *s, uint64_t *ret_milli, struct bh_err *err)
{
    return decimal_only(s, 3, "a count; write it like 4 or 0.5 (at most three decimals)", ret_milli, err);
}

int bh_money_parse(const char *s, uint64_t *ret_micro, struct bh_err *err)
{
    return decimal_only(s, 6, "a price; write it like 2.50", ret_micro, err);
}

int bh_uint_parse(const char *s, uint64_t max, uint64_t *ret, struct bh_err *err)
{
    uint64_t v = 0;
    int rc = decimal_only(s, 0, "a whole number", &v, err);
    if (rc)
        return rc;
    if (v > max || strchr(s, '.'))
        return bh_fail(err, BH_INVALID, "'%.60s' is not a whole number from 0 to %" PRIu64, s, max);
    *ret = v;
    return BH_OK;
}

static bool scan_fixed(const char **s, unsigned digits, char end, int *ret)
{
    int v = 0;
    for (unsigned i = 0; i < digits; i++) {
        if (!bh_is_digit(**s))
            return false;
        v = v * 10 + (*(*s)++ - '0');
    }
    if (end && *(*s)++ != end)
        return false;
    *ret = v;
    return true;
}

static bool leap(int y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

static int month_days(int y, int m)
{
    static const signed char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return m == 2 && leap(y) ? 29 : days[m - 1];
}

/* Days since 1970-01-01; the year is counted from March so that the leap day comes last. */
static int32_t day_number(int y, int m, int d)
{
    int yy = m <= 2 ? y - 1 : y;
    int era = yy / 400, yoe = yy - era * 400;
    int doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool scan_day(const char **s, int32_t *ret)
{
    int y, m, d;
    if (!scan_fixed(s, 4, '-', &y) || !scan_fixed(s, 2, '-', &m) || !scan_fixed(s, 2, 0, &d) || y < 1 ||
        m < 1 || m > 12 || d < 1 || d > month_days(y, m))
        return false;
    *ret = day_number(y, m, d);
    return true;
}

int bh_instant_parse(const char *s, int64_t *ret_s, struct bh_err *err)
{
    const char *p = s;
    int32_t day;
    int h = 0, m = 0, sec = 0;
    bool ok = scan_day(&p, &day);
    if (ok && *p) {
        ok = (*p == 'T' || *p == ' ') && (p++, scan_fixed(&p, 2, ':', &h)) && scan_fixed(&p, 2, ':', &m) &&
             scan_fixed(&p, 2, 'Z', &sec) && !*p && h < 24 && m < 60 && sec < 60;
    }
    if (!ok)
        return bh_fail(err, BH_INVALID,
                       "'%.60s' is not a date; write it like 2026-12-31 or 2026-12-31T23:59:59Z", s);
    *ret_s = (int64_t)day * 86400 + h * 3600 + m * 60 + sec;
    return BH_OK;
}

int bh_date_parse(const char *s, int32_t *ret_day, struct bh_err *err)
{
    int64_t t;
    int rc = bh_instant_parse(s, &t, err);
    if (rc)
        return rc;
    *ret_day = (int32_t)(t >= 0 ? t / 86400 : (t - 86399) / 86400);
    return BH_OK;
}

bool bh_name_valid(const char *s)
{
    size_t n = strlen(s);
    if (n < 1 || n > 63 || s[0] == '-' || s[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!bh_is_lower(s[i]) && !bh_is_digit(s[i]) && s[i] != '-')
            return false;
    return true;
}

/* v/scale with up to `decimals` decimals, zeros at the end dropped, then the unit. */
static void put_decimal(struct bh_unit_text *t, uint64_t v, uint64_t scale, unsigned decimals,
                        const char *unit)
{
    uint64_t whole = v / scale, rest = v % scale, frac = 0, ten = 1;
    for (unsigned i = 0; i < decimals; i++) {
        rest *= 10;
        frac = frac * 10 + rest / scale;
        rest %= scale;
        ten *= 10;
    }
    if (rest >= scale - rest && ++frac == ten) {
        whole++;
        frac = 0;
    }
    while (decimals && frac % 10 == 0) {
        frac /= 10;
        decimals--;
    }
    if (decimals)
        (void)snprintf(t->s, sizeof(t->s), "%" PRIu64 ".%0*" PRIu64 "%s", whole, (int)decimals, frac, unit);
    else
        (void)snprintf(t->s, sizeof(t->s), "%" PRIu64 "%s", whole, unit);
}

const char *bh_size_format(uint64_t bytes, struct bh_unit_text *t)
{
    if (bytes >= BH_GIB << 10)
        put_decimal(t, bytes, BH_GIB << 10, 2, " TiB");
    else if (bytes >= BH_GIB)
        put_decimal(t, bytes, BH_GIB, 2, " GiB");
    else
        put_decimal(t, bytes, BH_MIB, 2, " MiB");
    return t->s;
}

const char *bh_share_format(uint32_t ppm, struct bh_unit_text *t)
{
    put_decimal(t, ppm, 10000, 1, "%");
    return t->s;
}

const char *bh_count_format(uint64_t milli, struct bh_unit_text *t)
{
    put_decimal(t, milli, 1000, 3, "");
    return t->s;
}

const char *bh_duration_format(uint64_t ms, struct bh_unit_text *t)
{
    static const struct suffix units[] = {
        {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(units[0]) && (ms == 0 || ms % units[i].factor != 0))
        i++;
    put_decimal(t, ms, units[i].factor, 0, units[i].name);
    return t->s;
}

const char *bh_date_format(int32_t day, struct bh_unit_text *t)
{
    int64_t z = (int64_t)day + 719468; /* wider than day, whose last values would not fit */
    int era = (int)((z >= 0 ? z : z - 146096) / 146097), doe = (int)(z - (int64_t)era * 146097);
    int yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    int d = doy - (153 * mp + 2) / 5 + 1, m = mp < 10 ? mp + 3 : mp - 9;
    (void)snprintf(t->s, sizeof(t->s), "%04d-%02d-%02d", yoe + era * 400 + (m <= 2), m, d);
    return t->s;
}
