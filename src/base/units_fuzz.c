/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is an amount or is refused. An amount that was read is written and read
 * again without change, nothing is written on failure, and a refusal has a message.
 */
#include "base/mem.h"
#include "base/units.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNTOUCHED = 0x5a5a5a5a };

static void must(bool e)
{
    if (!e)
        abort();
}

static void refused(int rc, const struct bh_err *err, bool untouched)
{
    must(rc == BH_INVALID && err->code == BH_INVALID && err->msg[0] && untouched);
}

static void try_amounts(const char *s)
{
    static int (*const parsers[])(const char *, uint64_t *, struct bh_err *) = {
        bh_size_parse, bh_quantity_parse, bh_duration_parse, bh_count_parse, bh_money_parse,
    };
    for (size_t i = 0; i < BH_COUNT_OF(parsers); i++) {
        struct bh_err err = {0};
        uint64_t v = UNTOUCHED;
        int rc = parsers[i](s, &v, &err);
        if (rc)
            refused(rc, &err, v == UNTOUCHED);
    }
}

static void try_round_trips(const char *s)
{
    struct bh_err err = {0};
    struct bh_unit_text t;
    uint64_t v = UNTOUCHED, again;
    if (bh_count_parse(s, &v, &err) == BH_OK)
        must(bh_count_parse(bh_count_format(v, &t), &again, NULL) == BH_OK && again == v);
    if (bh_duration_parse(s, &v, &err) == BH_OK && v <= UINT64_MAX / 1000)
        must(bh_duration_parse(bh_duration_format(v, &t), &again, NULL) == BH_OK && again == v);
    if (bh_size_parse(s, &v, &err) == BH_OK)
        must(strlen(bh_size_format(v, &t)) < sizeof(t.s));
    if (bh_uint_parse(s, 1000, &v, &err) == BH_OK)
        must(v <= 1000);
}

static void try_shares_and_dates(const char *s)
{
    struct bh_err err = {0};
    struct bh_unit_text t;
    uint32_t ppm = UNTOUCHED;
    int32_t day = UNTOUCHED, again;
    int64_t at = UNTOUCHED;
    int rc = bh_share_parse(s, &ppm, &err);
    if (rc)
        refused(rc, &err, ppm == UNTOUCHED);
    else
        must(ppm <= 1000000 && strlen(bh_share_format(ppm, &t)) < sizeof(t.s));
    rc = bh_date_parse(s, &day, &err);
    must(rc == bh_instant_parse(s, &at, &err));
    if (rc) {
        refused(rc, &err, day == UNTOUCHED && at == UNTOUCHED);
        return;
    }
    must(at - (int64_t)day * 86400 >= 0 && at - (int64_t)day * 86400 < 86400);
    must(bh_date_parse(bh_date_format(day, &t), &again, NULL) == BH_OK && again == day);
    must(strncmp(t.s, s, 10) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = bh_alloc(size + 1, 1);
    if (size)
        memcpy(s, data, size);
    try_amounts(s);
    try_round_trips(s);
    try_shares_and_dates(s);
    must(!bh_name_valid(s) || strlen(s) <= 63);
    free(s);
    return 0;
}
