/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_reclaim.h - may this work be started by evicting that work? As far as queues have a say in it.
 *
 * The taker starts and the victims, in the order given, are evicted, all together or not at all. Allowed if
 *
 *   a  no queue on the taker's path ends up above its fair share by more than it was: what it takes, it
 *      should have;
 *   b  the taker may start (bh_queue_may_start) when the victims are gone: limits, guarantees of others,
 *      and work that is not interruptible only within entitlements;
 *   c  each queue on a victim's side, from where the paths part down to the victim, is above its fair share
 *      when its turn comes, in something that the taker needs and the victim has; or above its entitlement,
 *      if the taker stays within the entitlements on its whole path;
 *   d  the taker's side does not become more saturated than the victim's, times a margin, unless it is
 *      within its entitlement;
 *   e  no victim is firm or inside a guarantee, and none that serves under an SLO goes for one that does not;
 *   f  a victim of the taker's own queue is of lower priority, and the two together let no queue grow
 *      beyond its entitlement.
 *
 * a to d are KAI's, a and c made stricter: at every level rather than one.
 *
 * No loop. As long as fair shares stay the same (an eviction changes what is used, not what is wanted) every
 * reclaim makes this pair of numbers smaller, the first one counting more (bh_queues_potential):
 *
 *   the sum over all queues and divided resources of what is used above the fair share,
 *   the same above the entitlement.
 *
 * For by a the first does not grow on the taker's path, and on a victim's side everything only falls. A
 * victim taken by the first half of c makes the first number fall, at the queue where the paths part. A
 * victim taken by the second half makes the second number fall there, while on the taker's path it does not
 * grow. Victims of the taker's own queue leave both as they are or lower, and raise the priority of what
 * runs. Integers cannot fall for ever. This holds for any tree, gangs of any size, and any number of
 * resources.
 */
#ifndef BH_CORE_SCHED_QUEUE_RECLAIM_H
#define BH_CORE_SCHED_QUEUE_RECLAIM_H

#include "core/sched/queue.h"

struct bh_victim {
    const struct bh_charge *charge;
    int32_t priority; /* in its queue */
};

/* On no: why, and which victim where it is one. Leaves the account as it was. */
bool bh_queue_may_reclaim(struct bh_queues *t, const struct bh_charge *taker, int32_t priority,
                          const struct bh_victim *victims, uint32_t n, struct bh_queue_reason *ret);

struct bh_potential {
    bh_u128 over_fair, over_entitled;
};
void bh_queues_potential(const struct bh_queues *t, struct bh_potential *ret);
int bh_potential_cmp(const struct bh_potential *a, const struct bh_potential *b);

#endif
