/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - amounts as people write them, and back.
 *
 * Everything becomes an integer in one unit: sizes in bytes, shares in parts per
 * million, durations in milliseconds, counts in thousandths, money in millionths,
 * dates in days since 1970-01-01 (proleptic Gregorian, UTC), instants in seconds.
 * What does not fit, or would be rounded, is refused; nothing is guessed. (One exception: `0.1GiB`
 * is no whole number of bytes, and what is less than a byte is dropped.)
 */
#ifndef BH_BASE_UNITS_H
#define BH_BASE_UNITS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH_MIB (UINT64_C(1) << 20)
#define BH_GIB (UINT64_C(1) << 30)

/* `20GiB`, `512MiB`, `2TiB`, `80GB` (powers of ten); at most three decimals. A bare number is refused. */
int bh_size_parse(const char *s, uint64_t *ret_bytes, struct bh_err *err) BH_MUST_USE;
/* Kubernetes quantities: `1`, `500m`, `16Gi`, `2e3`, `0.5`; in thousandths. */
int bh_quantity_parse(const char *s, uint64_t *ret_milli, struct bh_err *err) BH_MUST_USE;
/* `25%` or `0.25`; 0 to 100 %. */
int bh_share_parse(const char *s, uint32_t *ret_ppm, struct bh_err *err) BH_MUST_USE;
/* `50ms 2s 10m 4h 7d` */
int bh_duration_parse(const char *s, uint64_t *ret_ms, struct bh_err *err) BH_MUST_USE;
/* `4`, `0.5`, `1.125`: at most three decimals, not negative; in thousandths. */
int bh_count_parse(const char *s, uint64_t *ret_milli, struct bh_err *err) BH_MUST_USE;
/* A whole number from 0 to max. */
int bh_uint_parse(const char *s, uint64_t max, uint64_t *ret, struct bh_err *err) BH_MUST_USE;
/* `2.50`: at most six decimals; in millionths. */
int bh_money_parse(const char *s, uint64_t *ret_micro, struct bh_err *err) BH_MUST_USE;
/* `2026-12-31`, or an instant `2026-12-31T23:59:59Z` (its day). */
int bh_date_parse(const char *s, int32_t *ret_day, struct bh_err *err) BH_MUST_USE;
/* `2026-12-01T00:00:00Z` or a date (its midnight); in seconds since 1970. */
int bh_instant_parse(const char *s, int64_t *ret_s, struct bh_err *err) BH_MUST_USE;
/* `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?` */
bool bh_name_valid(const char *s);

/* Each writes into buf and returns it. */
struct bh_unit_text {
    char s[40];
};
const char *bh_size_format(uint64_t bytes, struct bh_unit_text *t);  /* `20 GiB`, `16.5 GiB`, `512 MiB` */
const char *bh_share_format(uint32_t ppm, struct bh_unit_text *t);   /* `25%`, `12.1%` */
const char *bh_count_format(uint64_t milli, struct bh_unit_text *t); /* `4`, `0.5` */
const char *bh_duration_format(uint64_t ms, struct bh_unit_text *t); /* `50ms`, `7d` */
const char *bh_date_format(int32_t day, struct bh_unit_text *t);     /* `2026-12-31` */

#endif
