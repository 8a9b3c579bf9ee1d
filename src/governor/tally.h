/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - what each lease had of one card over a fifth of a second, gathered from the steps in it.
 *
 * The counters of a card, which need half of that (gpu/pressure.h), are compared with it (noise.h). While leases compete, and for a while
 * after, an account is closed that often; where one works alone, once a second: it tells most about a neighbour to have seen the
 * card without it. Nothing is gathered while nobody works.
 *
 * A look at the counters takes 4 ms, and where many take turns the card is busy with those. Then it is looked at less often, but not
 * for longer: what tells them apart is that not everybody had a turn, which is so in a part of a round and not in a whole one. After each
 * account comes a gap, and at its end a look from which the next one begins. What leases say themselves counts in gaps as well.
 *
 * An account ends with the first step after its time. By slices steps are up to an eighth of a second apart, where nobody may be
 * paused a quarter, and it is up to that much longer.
 */
#ifndef BH_GOVERNOR_TALLY_H
#define BH_GOVERNOR_TALLY_H

#include "core/govern/culprit.h"
#include "core/govern/govern.h"
#include "governor/sense.h"
#include "governor/state.h"

enum { BH_TALLY_LEASES = BH_CULPRIT_TENANTS };
enum {
    BH_TALLY_FEW = 5,  /* so many who take turns are looked at without a gap */
    BH_TALLY_GAPS = 7, /* of different length, so that accounts do not meet the same part of a round again */
};
#define BH_TALLY_NS      (UINT64_C(200) * 1000 * 1000)
#define BH_TALLY_MANY_NS (UINT64_C(150) * 1000 * 1000)
/* The shortest gap, and by how much each is longer than the one before. */
#define BH_TALLY_GAP_NS   (UINT64_C(500) * 1000 * 1000)
#define BH_TALLY_MORE_NS  (UINT64_C(35) * 1000 * 1000)
#define BH_TALLY_ALONE_NS (UINT64_C(1000) * 1000 * 1000)
/* Where nobody is paused what each uses is not told apart, and a look at the counters costs more than all the rest. */
#define BH_TALLY_SELDOM_NS (UINT64_C(5000) * 1000 * 1000)
#define BH_TALLY_LINGER_NS (UINT64_C(5000) * 1000 * 1000)

struct bh_tally_line {
    uint64_t lease;
    char name[BH_GOVERN_NAME];
    uint32_t gpu_permille;    /* of the interval, or BH_CULPRIT_UNKNOWN */
    uint32_t held_permille;   /* of the last second, with the gaps it left; BH_CULPRIT_UNKNOWN: not seen */
    uint32_t target_permille; /* on average */
    uint32_t cap_permille;    /* 0: none */
    /* Mean length of its turns, where they ended because its work did and not its slice; 0: they did not, or were few. */
    uint32_t turn_ns;
    bool asks_little;        /* its target follows its use, so that the two say nothing of each other */
    bool active;             /* it had work, as far as can be told, most of the time */
    uint32_t there_permille; /* of the interval, in which it was there and not paused */
    uint32_t works_permille; /* and had work as well, as far as can be told */
    uint64_t gpu_us;         /* had in the interval; 0 where gpu_permille is not known */
    /* By its own word, up to the end of the interval; of a lease with work on this card alone. */
    bool tells;
    uint64_t own_done, own_lines;
    uint32_t own_p99_us; /* UINT32_MAX: none */
};
struct bh_tally {
    uint64_t at_ns; /* its end */
    bool fresh;     /* nothing was gathered before it: what the counters say is of another time */
    bool gap;       /* nobody is told apart by it */
    bool left_out;  /* somebody had no place in it */
    uint32_t n;
    struct bh_tally_line at[BH_TALLY_LEASES];
};

/* One lease's sums within the interval. */
struct bh_tally_sum {
    uint64_t lease;
    uint64_t gpu_ns, turn_ns, turns, target, there_us, works_us, active_us;
    uint32_t slice_us, held_permille, cap_permille;
    bool known, asks_little;
    bool tells;
    uint64_t own_done, own_lines;
    uint32_t own_p99_us;
    char name[BH_GOVERN_NAME];
};
struct bh_tally_card { /* zeroed: nothing yet */
    uint64_t competed_ns, elapsed_us;
    bool going;
    bool used; /* somebody had work in this interval */
    bool left_out;
    bool gap;                  /* this interval is one */
    uint32_t active, heavy, n; /* heavy: of those who work, who takes turns */
    uint32_t crowd, gaps;      /* the most of these in this interval; how many gaps there were */
    struct bh_tally_sum at[BH_TALLY_LEASES];
};

/* A step: its beginning, each lease that took part, its end. */
void bh_tally_begin(struct bh_tally_card *c, uint32_t elapsed_us);
void bh_tally_add(struct bh_tally_card *c, const struct bh_governed *l, uint32_t elapsed_us,
                  const struct bh_govern_told *told, const struct bh_sense_got *got);
/* Is an interval over that somebody wants to know of? seldom: by slices alone. */
bool bh_tally_end(struct bh_tally_card *c, uint64_t now_ns, bool seldom, struct bh_tally *ret);

#endif
