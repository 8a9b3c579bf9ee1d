/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - GPU time that fades: what somebody used lately, exact at any moment, with no ticks.
 *
 * Usage halves every half-life, and grows while something runs. Between two changes of what runs the rate r
 * is constant, and the differential equation has a closed solution: with d = 2^(-dt / half-life) and the
 * level w = r * half-life / ln 2 at which a rate for ever would settle,
 *
 *     usage(t + dt) = w + (usage(t) - w) * d
 *
 * So an account is brought up to date only when its rate changes or somebody asks, a step split in two gives
 * the same as the step, and looking does not change it. (Slurm's decay is a first order approximation applied
 * at every tick, and what it gives depends on when the ticks came.)
 *
 * Exactness. d has 64 bits behind the point and is off by less than 2^-60 (usage.c counts the roundings, the
 * test compares with a series in 128 bits). One step is off by less than (usage + w + 1) * 2^-60; errors fade
 * like usage does, so n steps are off by less than n times that.
 *
 * The unit is a millionth of a GPU second: thousandths of a GPU times milliseconds, which needs no
 * conversion. Amounts from 2^63 on (292,000 GPU years) are held at 2^63.
 */
#ifndef BH_CORE_SCHED_USAGE_H
#define BH_CORE_SCHED_USAGE_H

#include <stdint.h>

#define BH_USAGE_MAX (UINT64_C(1) << 63)

struct bh_usage {
    uint64_t whole, part; /* the value at at_ms; part in 2^-64 */
    uint64_t rate_milli;  /* runs since then */
    uint64_t at_ms;
};

/*
 * 2^(-dt / half_life) = *ret_factor * 2^(-64 - shift), where a factor of 0 stands for 2^64. half_life_ms is
 * not 0. *ret_shift is at most 128, which stands for nothing left.
 */
void bh_decay(uint64_t dt_ms, uint64_t half_life_ms, uint64_t *ret_factor, unsigned *ret_shift);

/* A half-life of 0 means that nothing fades. A time before the last one counts as the last one. */
void bh_usage_settle(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms);
uint64_t bh_usage_at(const struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms);
/* What runs from now on is more or less by this much. */
void bh_usage_faster(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t more_milli);
void bh_usage_slower(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t less_milli);
/* An amount at once: a fee, or what is given back of one (never below 0). */
void bh_usage_add(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t amount);
void bh_usage_give(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t amount);

/* What is left of an amount after dt. */
uint64_t bh_usage_faded(uint64_t amount, uint64_t half_life_ms, uint64_t dt_ms);
/* The level that a rate settles at: half_life / ln 2 times the rate. */
uint64_t bh_usage_level(uint64_t rate_milli, uint64_t half_life_ms);

#endif
