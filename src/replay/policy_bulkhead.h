/* SPDX-License-Identifier: Apache-2.0 */
/* policy_bulkhead.h - the scheduler as a policy of the timeline: a queue for each tenant, its share for its own. */
#ifndef BH_REPLAY_POLICY_BULKHEAD_H
#define BH_REPLAY_POLICY_BULKHEAD_H

#include "replay/timeline.h"

extern const struct bh_timeline_policy bh_policy_bulkhead;

#endif
