/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h - one engine that runs channel groups in turns, as the hardware's runlist does.
 *
 * Pure: time is what the caller says it is. A group runs for its slice, then the next runnable one does; a change
 * of group costs switch_ns of nothing. A group whose work is done gives its turn back at once. Groups of a higher
 * interleave level come round more often: a round of the low ones, with every medium one after each, and every high
 * one after each of those. A slice set before the group was first scheduled is kept, read back, and has no effect
 * (the driver does the same); until then its work waits. Channels that are disabled stop at once, in the middle of a
 * kernel, and lose nothing.
 */
#ifndef BH_SIMGPU_RM_SCHED_H
#define BH_SIMGPU_RM_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct bh_sim_sched;

enum { BH_SIM_SLICE_DEFAULT_US = 2000, BH_SIM_SWITCH_NS = 170000 };

struct bh_sim_sched *bh_sim_sched_new(uint64_t switch_ns);
void bh_sim_sched_free(struct bh_sim_sched *s);

/* Ids are the caller's, unique, never 0. */
void bh_sim_group_add(struct bh_sim_sched *s, uint64_t group);
void bh_sim_group_remove(struct bh_sim_sched *s, uint64_t group); /* its channels and their work go with it */
void bh_sim_group_schedule(struct bh_sim_sched *s, uint64_t group);
bool bh_sim_group_set_slice(struct bh_sim_sched *s, uint64_t group,
                            uint64_t us); /* false: 0, or no such group */
uint64_t bh_sim_group_slice(const struct bh_sim_sched *s, uint64_t group);
bool bh_sim_group_set_level(struct bh_sim_sched *s, uint64_t group, uint32_t level); /* 0 to 2 */
void bh_sim_channel_add(struct bh_sim_sched *s, uint64_t group, uint64_t channel);
void bh_sim_channel_remove(struct bh_sim_sched *s, uint64_t channel);
void bh_sim_channel_enable(struct bh_sim_sched *s, uint64_t channel, bool on);
/* Work runs in order within a channel. Returns its fence: larger than every fence before it on this channel. */
uint64_t bh_sim_submit(struct bh_sim_sched *s, uint64_t channel, uint64_t work_ns);
uint64_t bh_sim_fence_done(const struct bh_sim_sched *s, uint64_t channel); /* the last fence that is done */

void bh_sim_sched_advance(struct bh_sim_sched *s, uint64_t now_ns); /* never backwards */
/*
 * When the next piece of work is done if nothing changes; UINT64_MAX: nothing runs. With very many groups on several
 * levels it may be an earlier time, later than now, before which nothing is done: ask again then.
 */
uint64_t bh_sim_sched_next(const struct bh_sim_sched *s);
uint64_t bh_sim_group_busy_ns(const struct bh_sim_sched *s, uint64_t group); /* GPU time it had, ever */
uint64_t bh_sim_group_turns(const struct bh_sim_sched *s, uint64_t group); /* how often it was switched to */
bool bh_sim_group_runs(const struct bh_sim_sched *s, uint64_t group);      /* it is its turn now */
uint64_t bh_sim_sched_busy_ns(const struct bh_sim_sched *s);               /* of all groups, also gone ones */

#endif
