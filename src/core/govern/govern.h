/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern.h - the controller of one shared card: what tenants were promised and what they got in, what to do
 * out.
 *
 * Called every few milliseconds (seldomer where nobody competes or slices hold: pace.h) with the time that passed and
 * with what the sensors say of each tenant; answers with a time slice, an interleave level and paused-or-running for
 * each, to hold until the next call. It reads no clock, makes no call and allocates nothing after bh_govern_new(): the
 * same inputs give the same outputs, bit by bit.
 *
 * Four ways of sharing, chosen at each step and said in the output:
 *   free     nobody competes: the driver's own slices, nobody paused.
 *   slices   busy tenants that fill their slices: slices in proportion, long enough that switching costs
 *            under 3 %, trimmed by what was measured.
 *   turns    one tenant at a time, the others paused, each for its part of the time. For caps (a duty cycle)
 *            and for tenants that synchronize often: they give up a slice before it ends, so that slices say
 *            nothing to them.
 *   latency  a tenant of class latency is there: batch runs in slices too short to wait for. Several batch
 *            tenants take turns, since short slices among them would only be switches. The slices widen when
 *            a latency tenant takes more than its share.
 *
 * What is paused is seen again only when it runs, so an idle tenant is never paused: its share is lent to
 * the others by being left out, and it is there at once when it comes back. An operator's own pause is not
 * the controller's business: leave such a tenant out of the input.
 *
 * Where the sensors see who has the card and not whether it works, a tenant in doubt that has its turn keeps
 * it until that is known, 0.65 s at most, and pays for it later; light tenants wait for that, too. If it
 * rests it is light from then on, and the rest is lent.
 *
 * A share is time on the card. A tenant that holds a turn is charged for the gaps it leaves in it too, as
 * they are nobody else's: so a synchronizing tenant with a share of 30 % reaches 30 % of the rate it has
 * alone.
 */
#ifndef BH_CORE_GOVERN_GOVERN_H
#define BH_CORE_GOVERN_GOVERN_H

#include "base/err.h"

#include <stdint.h>

enum {
    BH_GOVERN_TENANTS = 128,
    BH_GOVERN_ELAPSED_MAX_US = 10000000,
    BH_GOVERN_FEW = 3, /* that compete: so many may well stay in slices */
};
enum bh_govern_class { BH_GOVERN_BATCH, BH_GOVERN_LATENCY };
enum bh_govern_state { BH_GOVERN_UNKNOWN, BH_GOVERN_IDLE, BH_GOVERN_BUSY };
enum bh_govern_mode {
    BH_GOVERN_FREE,
    BH_GOVERN_SLICES,
    BH_GOVERN_TURNS,
    BH_GOVERN_BESIDE_LATENCY,
    BH_GOVERN_MODES
};
/* No sample since the last step. The next one covers all the time since the one before. */
#define BH_GOVERN_NO_SAMPLE UINT64_MAX

/* What the card and the actuators cost, and how fine to work. All have defaults; see fields.c. */
struct bh_govern_config {
    uint32_t switch_us;     /* what changing from one busy tenant to another costs */
    uint32_t loss_permille; /* of the card that switching may cost while slices alone are used */
    uint32_t
        round_max_us; /* no longer than this between two slices of one tenant, whatever switching costs */
    uint32_t default_slice_us; /* the driver's own: with one holder at a time, and when we let go */
    uint32_t slice_min_us;
    uint32_t slice_max_us;
    uint32_t short_slice_us;   /* batch beside a latency tenant */
    uint32_t latency_slice_us; /* the latency tenant's own */
    uint32_t turn_us;          /* mean length of a turn, at least: pausing costs processor time */
    uint32_t calm_turn_us;     /* the same beside a latency tenant, where the card is empty during a change */
    uint32_t lead_us;          /* a turn changes when the next one is behind by this much */
    uint32_t idle_us;          /* a holder without work for this long gives up its turn */
    uint32_t away_us;          /* another tenant without work for this long is idle */
    uint32_t stale_us;         /* without a sample for this long the sensors are blind */
    uint32_t lag_us;           /* samples may be this old; the effect of a pause too */
    uint32_t default_level;    /* interleave level where nothing asks for another: 0 low, 1 medium, 2 high */
    /* 1: shares by the length of slices and nothing else. Nobody is ever paused and least is asked of the driver; who does not fill
     * its slices has what it has, and neither caps nor the class latency are held: do not give any. */
    uint32_t slices_only;
};
void bh_govern_config_default(struct bh_govern_config *ret);

struct bh_govern_asked {
    uint64_t id;             /* not 0, unique */
    uint32_t weight;         /* 1 to 10000 */
    uint32_t cap_permille;   /* 0: none */
    uint32_t floor_permille; /* of the card, while it has work for it; a cap is stronger */
    uint8_t latency;         /* enum bh_govern_class */
    uint8_t state;           /* enum bh_govern_state, since the last step */
    uint64_t gpu_ns;         /* delivered since its last sample, or BH_GOVERN_NO_SAMPLE */
    uint8_t doubt; /* gpu_ns may hold rests: only when it has the card alone for long can that be told */
};
struct bh_govern_in {
    uint32_t elapsed_us; /* since the last step; 1 to BH_GOVERN_ELAPSED_MAX_US */
    uint32_t n;
    uint32_t unused_permille; /* of the card, by nobody, of late; 0: not known */
    struct bh_govern_asked at[BH_GOVERN_TENANTS];
};

struct bh_govern_told {
    uint64_t id;
    uint32_t slice_us;
    uint8_t level;
    uint8_t paused;
    uint8_t active;  /* has work, as far as can be told */
    uint8_t light;   /* uses so little that it runs beside the others, never in turns */
    uint8_t seen;    /* its sensors answer; else held and delivered say nothing */
    uint8_t escaped; /* got much of the card while it should have been paused: the actuator does not hold */
    uint32_t target_permille;
    uint32_t delivered_permille; /* GPU time over the last second */
    uint32_t held_permille;      /* the same with the gaps it left in its own turns */
    uint32_t corrections;        /* how often feedback changed its slice, or it was paused; counts on */
};
struct bh_govern_out {
    uint8_t mode;      /* enum bh_govern_mode */
    uint8_t turns;     /* turns are taken */
    uint8_t open_loop; /* somebody's sensors are blind: shares are set, not checked */
    /* Order of the pauses and resumes of this step: else resume first, so that the card stays busy. */
    uint8_t pause_first;
    /* Nobody takes turns, and nothing was changed for a second; of more than a few that share by slices: nothing but those for three, in
     * which nobody was paused or far short of its share. The next step may be later. */
    uint8_t settled;
    uint32_t n; /* same order as in the input */
    struct bh_govern_told at[BH_GOVERN_TENANTS];
};
/* What `bulkhead top` calls error: held less target, in permille. */
static inline int32_t bh_govern_error(const struct bh_govern_told *t)
{
    return t->seen ? (int32_t)t->held_permille - (int32_t)t->target_permille : 0;
}

struct bh_govern;
/* NULL config: the defaults. */
int bh_govern_new(const struct bh_govern_config *config, struct bh_govern **ret,
                  struct bh_err *err) BH_MUST_USE;
void bh_govern_free(struct bh_govern *g);
/* A refused input (too many, a doubled id, a number out of range) changes nothing, neither g nor *out. */
int bh_govern_step(struct bh_govern *g, const struct bh_govern_in *in, struct bh_govern_out *out,
                   struct bh_err *err) BH_MUST_USE;

#endif
