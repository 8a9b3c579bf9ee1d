/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_inside.h - what the files of the shelf share with each other and with nobody else. */
#ifndef BH_CORE_SCHED_FLEET_INSIDE_H
#define BH_CORE_SCHED_FLEET_INSIDE_H

#include "core/sched/fleet.h"

/* At which places a request refuses another trust domain. */
enum { BH_STRICT_GPU = 1, BH_STRICT_NODE = 2, BH_STRICT_LINK = 4 };
extern const uint8_t bh_strict_of[BH_APARTS];

/* trust BH_TRUST_MIXED: one that gets on with everybody. No request is; the index asks for it. */
static inline bool bh_crowd_takes(const struct bh_crowd *c, uint32_t trust, bool strict)
{
    return !c->holds || c->trust == trust || (!strict && !c->strict) || trust == BH_TRUST_MIXED;
}

/* What trust alone says of a request on a node. */
enum bh_welcome {
    BH_WELCOME_NO,
    BH_WELCOME_YES, /* and it makes no difference between the node's GPUs */
    BH_WELCOME_LOOK /* on some of its GPUs, maybe */
};
static inline enum bh_welcome bh_shelf_welcome(const struct bh_shelf *s, const struct bh_request *r,
                                               const struct bh_shelf_node *n)
{
    const uint8_t strict = bh_strict_of[r->apart];
    if (!bh_crowd_takes(&n->crowd, r->trust, strict & BH_STRICT_NODE))
        return BH_WELCOME_NO;
    if (r->form == BH_FORM_CPU)
        return BH_WELCOME_YES;
    if (n->link != BH_NONE &&
        !bh_crowd_takes(&s->domains.at[n->link].crowd, r->trust, strict & BH_STRICT_LINK))
        return BH_WELCOME_NO;
    /* Whole GPUs are idle ones, whoever has the others. */
    if (r->form == BH_FORM_WHOLE || !n->crowd.holds || n->crowd.trust == r->trust)
        return BH_WELCOME_YES;
    return BH_WELCOME_LOOK;
}
void bh_crowd_join(struct bh_crowd *c, uint32_t trust, bool strict);
/* False: the rest may be of one trust domain now, and the caller has to look. */
bool bh_crowd_leave(struct bh_crowd *c, bool strict);

/* Append a node to the change log. */
void bh_shelf_touch(struct bh_shelf *s, uint32_t node);
/* A node's counts of whole GPUs changed: bring the domains above it up to date. */
void bh_shelf_domains_count(struct bh_shelf *s, uint32_t node, uint32_t old_whole, uint32_t old_gone);
void bh_shelf_domains_add(struct bh_shelf *s, uint32_t node);
/* A GPU hold came to the node (join) or left it: crowds of the domains above. */
void bh_shelf_domains_crowd(struct bh_shelf *s, uint32_t node, const struct bh_request *r, bool join);

#endif
