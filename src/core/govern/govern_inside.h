/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern_inside.h - what the parts of the controller share; nobody else includes it.
 *
 * A step goes through them in this order:
 *   sense    who has work, how much each got               (sense.c; lend.c: who runs beside the others)
 *   charge   the time that passed, to whoever held it       (turns.c)
 *   divide   targets                                        (govern.c, fair.c)
 *   choose   the way of sharing                             (govern.c)
 *   slices, turns, latency: the decision                    (slices.c, turns.c, latency.c)
 * Times are nanoseconds, shares parts per million.
 */
#ifndef BH_CORE_GOVERN_GOVERN_INSIDE_H
#define BH_CORE_GOVERN_GOVERN_INSIDE_H

#include "core/govern/fair.h"
#include "core/govern/govern.h"
#include "core/govern/use.h"

#include <stdbool.h>

enum { BH_WINDOW_PARTS = 20, BH_TRIM_ONE = 1024 };
#define BH_WINDOW_PART_NS INT64_C(50000000)
#define BH_US             INT64_C(1000)
#define BH_MS             INT64_C(1000000)

/* Time over the last second, in parts of 50 ms. */
struct bh_window {
    int64_t part[BH_WINDOW_PARTS], sum;
};

struct bh_member {
    uint64_t id;
    uint32_t weight, cap_ppm, floor_ppm;
    bool latency;

    /* sense */
    bool seen, active, returned, has_sample, doubt;
    int64_t sample_ns, span_ns; /* this step's sample and the time it covers */
    int64_t unseen_ns, idle_ns, away_ns, age_ns;
    uint32_t fast_ppm; /* smoothed over a tenth of a second */
    struct bh_window gpu, held;

    /* what it uses when nothing is in its way; learnt in its turns */
    bool alone_known, light, dry;
    uint32_t alone_ppm;
    uint32_t turn_least_ppm; /* of a step in its turn */
    uint32_t dry_turns;      /* in a row */
    int64_t turn_gpu_ns, turn_free_ns;
    int64_t unlearnt_ns;        /* held since it was learnt: what is old is not relied on */
    int64_t light_ns, probe_ns; /* beside others; so long until it is given a turn to be seen alone */

    uint32_t target_ppm;

    /* lend */
    bool beside;       /* it runs beside the others though it uses more than a light one */
    uint32_t fair_ppm; /* its share if all who have work wanted all of theirs */
    uint32_t had_ppm;  /* of the card, in its turns before */
    uint32_t beside_n; /* so many others were there then */
    int64_t steady_ns; /* it uses a part of the card for so long; below 0: not to be tried until then */
    int64_t beside_ns, back_ns;

    /* turns */
    bool in_turns, paused, gated;
    uint32_t price_ppm; /* in this turn it is charged by GPU time at this rate; 0: by the clock */
    int64_t credit_ns;  /* beside turns: what it owes those who take them; held or capped, its own account */
    int64_t paused_ns, escape_ns;
    int64_t waited_ns; /* paused for others' turns since its own; what it had beside turns does not count */
    int64_t owed_ns;   /* of a long turn in doubt, beyond what credit may fall to; paid back by and by */
    bool certain;      /* its samples are known to hold no rests, since just now */
    int64_t doubt_wait_ns, doubt_next; /* until doubt has its turn again, and how long to wait then */
    bool turns_first;                  /* it has been made to wait for what turns tell of all */

    /* slices */
    uint32_t slice_us;
    int32_t trim;
    uint32_t trims;    /* in a row, without the error going away */
    uint32_t restless; /* trims since there was a rest */
    int64_t last_error;
    int64_t unfilled_ns;  /* for so long it is known not to fill its slices */
    int64_t unfilled_try; /* how long to believe that the next time */
    int64_t sum_ns;       /* got since the sums were cleared */
    int64_t burn_ns;      /* the same, whatever was corrected meanwhile */

    uint32_t corrections;
};

struct bh_govern {
    struct bh_govern_config config;
    uint32_t n;
    struct bh_member at[2 * BH_GOVERN_TENANTS]; /* room for as many who leave while as many come */
    struct bh_fair asked[BH_GOVERN_TENANTS], share[BH_GOVERN_TENANTS];
    uint32_t n_asked;

    int64_t step_ns;
    uint32_t unused_ppm; /* of the card, by nobody, of late, as far as is known */
    struct bh_window time;
    struct bh_window latency; /* GPU time of that class, also of those who have left since */
    uint32_t part;            /* of the windows, being filled */
    int64_t part_ns;          /* since it began */

    enum bh_govern_mode mode;
    bool turns;       /* turns were taken in the step that just ended */
    int64_t still_ns; /* for so long nobody was told anything new */
    uint64_t told;    /* a digest of what they were told */

    /* turns: holder 0 is nobody, for the part of the time that caps leave empty */
    uint64_t holder;
    int64_t held_ns, held_before_ns, settle_ns, empty_credit_ns;
    int64_t apart_ns; /* since turns were last taken */

    /* slices and latency */
    int64_t sum_span_ns, look_ns;
    int64_t burn_got_ns, burn_span_ns; /* what they had together, whatever was corrected meanwhile */
    uint64_t crowd;                    /* a digest of who competes by slices */
    bool many;                         /* more than a few do */
    uint32_t batch_slice_us;
    int64_t gone_ns;              /* what those of the class had who left since the sums began */
    int64_t kept_ns;              /* for so long what was found of the class is kept */
    int64_t much_ns;              /* for so long they surely use too much to be excused */
    int64_t lost_ns;              /* for so long much of the card was changes */
    int64_t retry_ns, retry_next; /* until light ones are seen in turns again */
};

static inline int64_t bh_part(int64_t whole, uint32_t ppm)
{
    return whole / BH_FAIR_WHOLE * ppm + whole % BH_FAIR_WHOLE * ppm / BH_FAIR_WHOLE;
}
static inline uint32_t bh_ppm(int64_t part, int64_t whole)
{
    if (part <= 0 || whole <= 0)
        return 0;
    /* both are below 2^43, so this does not overflow */
    return (uint32_t)(part >= whole ? BH_FAIR_WHOLE : part * BH_FAIR_WHOLE / whole);
}
static inline int64_t bh_between(int64_t v, int64_t low, int64_t high)
{
    if (v < low)
        return low;
    return v > high ? high : v;
}
/* A batch tenant that competes for the whole of its share. */
static inline bool bh_is_heavy(const struct bh_member *m)
{
    return m->active && !m->latency && !m->light;
}

#define BH_LIGHT_PPM (BH_USE_LIGHT * 1000u)
/* What it may use and run beside the others all the same; 0: as any other. */
uint32_t bh_lend_most(const struct bh_member *m);
/* What each may have by its weight and its cap. */
void bh_lend_shares(struct bh_govern *g);
void bh_lend_watch(const struct bh_govern *g, struct bh_member *m);

/* Less than this is not worth half a second of the card to know whether it is used: a share of a hundredth would pay a minute for it. */
#define BH_LOOK_LEAST_PPM 50000u
/* It is in doubt and is to be seen alone. */
static inline bool bh_is_looked_at(const struct bh_member *m)
{
    return m->doubt && m->doubt_wait_ns == 0 && m->target_ppm >= BH_LOOK_LEAST_PPM;
}
/* Where three and more are in doubt, who has not waited so yet is not looked at for a while; but for the one that has the card, which
 * tells soonest. */
void bh_sense_turns_first(struct bh_govern *g);
/* It was: for a while that has to do. */
void bh_sense_looked(struct bh_member *m);

void bh_sense(struct bh_govern *g, const struct bh_govern_in *in);
void bh_sense_join(struct bh_member *m, const struct bh_govern_asked *a);
/* What it could use now if it got all it asked for. */
uint32_t bh_sense_demand(const struct bh_member *m);
/* It runs beside the others and would use more than it is due: it is paused while it is over that. */
bool bh_is_held(const struct bh_member *m);
void bh_window_add(const struct bh_govern *g, struct bh_window *w, int64_t ns);

void bh_turns_charge(struct bh_govern *g);
void bh_turns_begin(struct bh_govern *g);
void bh_turns_decide(struct bh_govern *g);
/* Those who take no turns and have a cap, or need more than they are due: paused while they are over it. */
void bh_turns_gate(struct bh_govern *g);

void bh_slices_begin(struct bh_govern *g);
void bh_slices_decide(struct bh_govern *g);
bool bh_slices_hold(const struct bh_govern *g);
/* Of one that is not given its share by the length of its slice. If it is held, or uses a part of the card, it has work for more than a
 * short one. */
uint32_t bh_slice_beside(const struct bh_govern *g, const struct bh_member *m);

/* One of the class is on the card, or was a moment ago. */
bool bh_latency_is_here(const struct bh_govern *g);
void bh_latency_note(struct bh_govern *g); /* at the end of each step */
void bh_latency_begin(struct bh_govern *g);
void bh_latency_decide(struct bh_govern *g);

#endif
