/* SPDX-License-Identifier: Apache-2.0 */
/* link_join.h - in which version a governor is asked to take a lease, and when the next one is looked for. */
#ifndef BH_WARDEN_LINK_JOIN_H
#define BH_WARDEN_LINK_JOIN_H

#include "wire/lease.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_link_join {
    uint32_t version;  /* of the next join */
    uint32_t silences; /* governors in a row that never said anything */
    uint32_t
        refusals; /* those in a row that did not take this lease, and why the last one did not; 0: no such one */
    int32_t refused;
    bool hears_news; /* the launcher wants to know when there is one again, ... */
    bool news;       /* ... and was asked for one */
};

void bh_link_join_init(struct bh_link_join *j, uint32_t given_version);
/* What the launcher says of the next one: struct bh_lease_given. */
void bh_link_join_given(struct bh_link_join *j, uint32_t version);
/* One from before an upgrade takes its own version alone: the next time it is asked in an older one. Else it was refused. */
void bh_link_join_refused(struct bh_link_join *j, int32_t code);
void bh_link_join_taken(struct bh_link_join *j);
/* What the launcher is asked, and not before so long after the last time. */
struct bh_lease_ask bh_link_join_ask(const struct bh_link_join *j);
int64_t bh_link_join_pause_ms(const struct bh_link_join *j);

#endif
