/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/own.h"

#include "base/mem.h"

#include <string.h>

enum { SUB_BITS = 4, SUB = 1 << SUB_BITS, RATE_MS = 1000 };

static uint64_t capped_sum(uint64_t a, uint64_t b, uint64_t most)
{
    return b > most || a > most - b ? most : a + b;
}

/* ---- latencies by their size ---- */

static uint32_t bucket_of(uint32_t us)
{
    uint32_t top = SUB_BITS;
    if (us < SUB)
        return us;
    while (us >> top >> 1)
        top++;
    return (top - SUB_BITS) * SUB + (us >> (top - SUB_BITS));
}

/* The middle of it. */
static uint32_t value_of(uint32_t bucket)
{
    if (bucket < 2 * SUB)
        return bucket;
    const uint32_t shift = bucket / SUB - 1;
    return ((bucket % SUB + SUB) << shift) + (1u << shift >> 1);
}

/* ---- the window ---- */

static void move(struct bh_own *o, uint64_t now_ms)
{
    const uint64_t slot = now_ms / BH_OWN_SLOT_MS;
    if (slot <= o->slot)
        return;
    const uint64_t by = slot - o->slot < BH_OWN_SLOTS ? slot - o->slot : BH_OWN_SLOTS;
    for (uint64_t i = 0; i < by; i++)
        memset(&o->at[(slot - i) % BH_OWN_SLOTS], 0, sizeof(o->at[0]));
    o->slot = slot;
}

void bh_own_init(struct bh_own *o, uint64_t now_ms)
{
    memset(o, 0, sizeof(*o));
    o->slot = now_ms / BH_OWN_SLOT_MS;
}

static void hear(struct bh_own *o, uint64_t now_ms)
{
    if (!o->is_heard)
        o->since_ms = now_ms;
    o->is_heard = true;
}

/* ---- lines ---- */

/* Digits, all of them. */
static bool read_number(const char **at, const char *end, uint64_t *ret)
{
    const char *from = *at;
    uint64_t v = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        v = v * 10 + (uint64_t)(**at - '0');
        if (v > BH_OWN_MOST)
            return false;
    }
    *ret = v;
    return *at > from;
}

static bool skip(const char **at, const char *end, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool read_latency(const char **at, const char *end, uint32_t *ret_us)
{
    static const struct {
        const char *unit;
        uint32_t times, parts; /* of a microsecond */
    } units[] = {{"ns", 1, 1000}, {"us", 1, 1}, {"ms", 1000, 1}, {"s", 1000000, 1}};
    uint64_t v;
    if (!read_number(at, end, &v))
        return false;
    for (size_t i = 0; i < BH_COUNT_OF(units); i++)
        if (skip(at, end, units[i].unit)) {
            const uint64_t us = (v * units[i].times + units[i].parts / 2) / units[i].parts;
            *ret_us = (uint32_t)us;
            return *at == end && us <= UINT32_MAX;
        }
    return false;
}

static bool read_line(struct bh_own *o, uint64_t now_ms)
{
    const char *at = o->line, *end = o->line + o->n;
    struct bh_own_slot *slot = &o->at[o->slot % BH_OWN_SLOTS];
    uint64_t units;
    uint32_t us;
    if (o->is_over)
        return false;
    if (skip(&at, end, "done ")) {
        if (!read_number(&at, end, &units) || at != end)
            return false;
        slot->done = capped_sum(slot->done, units, BH_OWN_MOST);
        slot->lines += slot->lines < UINT32_MAX;
        o->done = capped_sum(o->done, units, BH_OWN_TOTAL);
        o->lines = capped_sum(o->lines, 1, BH_OWN_TOTAL);
    } else if (skip(&at, end, "latency ")) {
        if (!read_latency(&at, end, &us))
            return false;
        uint16_t *count = &slot->took[bucket_of(us)];
        *count = (uint16_t)(*count + (*count < UINT16_MAX));
    } else {
        return false;
    }
    hear(o, now_ms);
    return true;
}

void bh_own_take(struct bh_own *o, uint64_t now_ms, const void *bytes, size_t n)
{
    const char *text = bytes;
    move(o, now_ms);
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n') {
            o->is_over |= o->n == BH_OWN_LINE;
            if (!o->is_over)
                o->line[o->n++] = text[i];
            continue;
        }
        if (!read_line(o, now_ms))
            o->garbage = capped_sum(o->garbage, 1, BH_OWN_TOTAL);
        o->n = 0;
        o->is_over = false;
    }
}

/* ---- what comes of it ---- */

static uint32_t percentile(const uint32_t *counts, uint32_t n, uint32_t permille)
{
    const uint64_t rank = ((uint64_t)n * permille + 999) / 1000;
    uint64_t seen = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < BH_OWN_BUCKETS && seen < rank; i++) {
        seen += counts[i];
        at = i;
    }
    return n ? value_of(at) : BH_OWN_NONE;
}

bool bh_own_sum(struct bh_own *o, uint64_t now_ms, struct bh_own_sum *ret)
{
    uint32_t counts[BH_OWN_BUCKETS] = {0};
    uint64_t done = 0, lines = 0;
    *ret = (struct bh_own_sum){.done = o->done, .lines = o->lines, .garbage = o->garbage};
    move(o, now_ms);
    for (uint32_t s = 0; s < BH_OWN_SLOTS; s++) {
        done += o->at[s].done;
        lines += o->at[s].lines;
        for (uint32_t i = 0; i < BH_OWN_BUCKETS; i++) {
            counts[i] += o->at[s].took[i];
            ret->n_latencies += o->at[s].took[i];
        }
    }
    ret->p50_us = percentile(counts, ret->n_latencies, 500);
    ret->p99_us = percentile(counts, ret->n_latencies, 990);
    o->is_heard = lines || ret->n_latencies;
    const uint64_t first = o->slot + 1 > BH_OWN_SLOTS ? (o->slot + 1 - BH_OWN_SLOTS) * BH_OWN_SLOT_MS : 0;
    const uint64_t from = o->since_ms > first ? o->since_ms : first;
    const uint64_t ms = now_ms > from ? now_ms - from : 0;
    ret->has_rate = lines && ms >= RATE_MS;
    ret->rate_milli = ret->has_rate ? done * 1000000 / ms : 0; /* 10 slots: below 2^64 */
    return o->is_heard;
}
