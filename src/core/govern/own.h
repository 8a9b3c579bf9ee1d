/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.h - what a tenant says of its own work: lines of text in, a rate and latencies of the last seconds out.
 *
 *     done 128        so many units of work more are done, whatever a unit is
 *     latency 412us   one request took so long: ns, us, ms or s
 *
 * Each line stands alone. One that is anything else is counted and has no other effect, and nothing that is sent makes this take
 * more memory or more time than its bytes. Whoever sends may lie: these numbers are shown, and compared with what the
 * same tenant said before (worth.h). They are no input of the controller.
 */
#ifndef BH_CORE_GOVERN_OWN_H
#define BH_CORE_GOVERN_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_OWN_LINE = 48, /* no line is longer */
    BH_OWN_SLOTS = 10,
    BH_OWN_SLOT_MS = 500,
    BH_OWN_WINDOW_MS = BH_OWN_SLOTS * BH_OWN_SLOT_MS,
    BH_OWN_BUCKETS = 464, /* of latencies: exact up to 16 us, then 16 for each doubling, up to 2^32 us */
};
#define BH_OWN_MOST  UINT64_C(1000000000000)       /* in one line, and in one slot */
#define BH_OWN_TOTAL UINT64_C(1000000000000000000) /* ever */
#define BH_OWN_NONE  UINT32_MAX

struct bh_own_slot {
    uint64_t done;
    uint32_t lines; /* of done */
    uint16_t took[BH_OWN_BUCKETS];
};
struct bh_own {
    char line[BH_OWN_LINE];
    uint32_t n;                    /* of it, so far */
    bool is_over;                  /* it is too long already */
    uint64_t slot;                 /* number of the newest, by the clock */
    uint64_t since_ms;             /* the first line after a silence */
    bool is_heard;                 /* something is in the window */
    uint64_t done, lines, garbage; /* ever; lines: of done */
    struct bh_own_slot at[BH_OWN_SLOTS];
};

struct bh_own_sum {
    uint64_t done, lines, garbage; /* ever */
    bool has_rate;                 /* it says what is done, for a second at least */
    uint64_t rate_milli;           /* thousandths of a unit a second, over the window */
    uint32_t n_latencies;          /* in the window */
    uint32_t p50_us, p99_us;       /* within a thirtieth; BH_OWN_NONE: it says none */
};

void bh_own_init(struct bh_own *o, uint64_t now_ms);
/* Bytes that came, of any number of lines and parts of lines. Time does not run backwards. */
void bh_own_take(struct bh_own *o, uint64_t now_ms, const void *bytes, size_t n);
/* false: nothing was said in the window. */
bool bh_own_sum(struct bh_own *o, uint64_t now_ms, struct bh_own_sum *ret);

#endif
