/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_domain.c - the fabric above the nodes: counters on the path, and the smallest domain that fits. */
#include "core/sched/fleet_inside.h"

int bh_shelf_add_domain(struct bh_shelf *s, enum bh_level level, uint32_t parent, uint32_t *ret_domain,
                        struct bh_err *err)
{
    if (level >= BH_LEVELS || (parent != BH_NONE && parent >= s->domains.n))
        return bh_fail(err, BH_INVALID, "a fabric domain of level %d below domain %u: there is none",
                       (int)level, parent);
    if (parent != BH_NONE && s->domains.at[parent].level <= level)
        return bh_fail(err, BH_INVALID, "a fabric domain of level %d cannot be below one of level %d",
                       (int)level, s->domains.at[parent].level);
    const uint32_t id = (uint32_t)s->domains.n;
    struct bh_shelf_domain *d = bh_vec_push(&s->domains);
    *d = (struct bh_shelf_domain){.parent = parent,
                                  .first_child = BH_NONE,
                                  .next = BH_NONE,
                                  .first_node = BH_NONE,
                                  .level = (uint8_t)level};
    uint32_t *head = parent == BH_NONE ? &s->first_root : &s->domains.at[parent].first_child;
    d->next = *head;
    *head = id;
    s->epoch++;
    *ret_domain = id;
    return 0;
}

uint32_t bh_shelf_domain_next(const struct bh_shelf *s, uint32_t top, uint32_t at, bool down)
{
    const struct bh_shelf_domain *all = s->domains.at;
    if (down && all[at].first_child != BH_NONE)
        return all[at].first_child;
    while (at != top) {
        if (all[at].next != BH_NONE)
            return all[at].next;
        at = all[at].parent;
        if (at == BH_NONE)
            return BH_NONE;
    }
    return BH_NONE;
}

static void touch_below(struct bh_shelf *s, uint32_t domain)
{
    for (uint32_t d = domain; d != BH_NONE; d = bh_shelf_domain_next(s, domain, d, true)) {
        for (uint32_t n = s->domains.at[d].first_node; n != BH_NONE; n = s->nodes.at[n].next)
            bh_shelf_touch(s, n);
    }
}

void bh_shelf_domains_add(struct bh_shelf *s, uint32_t node)
{
    struct bh_shelf_node *n = &s->nodes.at[node];
    if (n->domain == BH_NONE)
        return;
    n->next = s->domains.at[n->domain].first_node;
    s->domains.at[n->domain].first_node = node;
    for (uint32_t i = n->domain; i != BH_NONE; i = s->domains.at[i].parent) {
        struct bh_shelf_domain *d = &s->domains.at[i];
        d->n_nodes++;
        d->n_gpus += n->n_gpus;
        d->n_whole += n->n_whole;
        d->by_whole[n->n_whole]++;
        if (n->n_gpus)
            d->models |= UINT64_C(1) << n->model;
    }
}

void bh_shelf_domains_count(struct bh_shelf *s, uint32_t node, uint32_t old_whole, uint32_t old_gone)
{
    const struct bh_shelf_node *n = &s->nodes.at[node];
    if (n->n_whole == old_whole && n->n_gone == old_gone)
        return;
    for (uint32_t i = n->domain; i != BH_NONE; i = s->domains.at[i].parent) {
        struct bh_shelf_domain *d = &s->domains.at[i];
        d->n_whole += (uint32_t)n->n_whole - old_whole;
        d->n_gone += (uint32_t)n->n_gone - old_gone;
        d->by_whole[old_whole]--;
        d->by_whole[n->n_whole]++;
    }
}

/* Somebody left a domain of several trust domains: are the others of one? */
static void look_again(struct bh_shelf *s, struct bh_shelf_domain *d)
{
    bool first = true;
    for (uint32_t n = d->first_node; n != BH_NONE; n = s->nodes.at[n].next) {
        for (uint32_t h = s->nodes.at[n].first_hold; h != BH_NONE; h = s->holds.at[h].next) {
            const struct bh_request *r = &s->requests->at.at[s->holds.at[h].class_];
            if (r->form == BH_FORM_CPU)
                continue;
            if (!first && r->trust != d->crowd.trust) {
                d->crowd.trust = BH_TRUST_MIXED;
                return;
            }
            d->crowd.trust = r->trust;
            first = false;
        }
    }
}

/* Nodes beside it see a change only when the domain becomes used or unused, or takes others than before. */
void bh_shelf_domains_crowd(struct bh_shelf *s, uint32_t node, const struct bh_request *r, bool join)
{
    for (uint32_t i = s->nodes.at[node].domain; i != BH_NONE; i = s->domains.at[i].parent) {
        struct bh_shelf_domain *d = &s->domains.at[i];
        const struct bh_crowd old = d->crowd;
        if (d->level != BH_LEVEL_LINK)
            d->crowd.holds += join ? 1 : UINT32_MAX;
        else if (join)
            bh_crowd_join(&d->crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_LINK);
        else if (!bh_crowd_leave(&d->crowd, bh_strict_of[r->apart] & BH_STRICT_LINK))
            look_again(s, d);
        const bool used = !old.holds != !d->crowd.holds;
        const bool takes = old.trust != d->crowd.trust || !old.strict != !d->crowd.strict;
        if (d->level == BH_LEVEL_LINK ? used || takes : d->level == BH_LEVEL_RACK && used)
            touch_below(s, i);
    }
}

uint32_t bh_shelf_domain_pieces(const struct bh_shelf *s, uint32_t domain, uint32_t per_node)
{
    const struct bh_shelf_domain *d = &s->domains.at[domain];
    uint32_t pieces = 0;
    for (uint32_t k = per_node; per_node && k <= BH_NODE_GPUS; k++)
        pieces += d->by_whole[k] * (k / per_node);
    return pieces;
}

uint32_t bh_shelf_smallest_domain(const struct bh_shelf *s, enum bh_level lowest, enum bh_level highest,
                                  uint64_t models, uint32_t per_node, uint32_t n)
{
    uint32_t best = BH_NONE;
    for (uint32_t root = s->first_root; root != BH_NONE; root = s->domains.at[root].next) {
        for (uint32_t at = root, next; at != BH_NONE; at = next) {
            const struct bh_shelf_domain *d = &s->domains.at[at];
            const bool fits = (!models || (d->models & models)) && d->n_whole >= (uint64_t)per_node * n &&
                              bh_shelf_domain_pieces(s, at, per_node) >= n;
            /* What does not fit as a whole has nothing below that fits. */
            next = bh_shelf_domain_next(s, root, at, fits && d->level > lowest);
            if (!fits || d->level < lowest || d->level > highest)
                continue;
            const struct bh_shelf_domain *b = best == BH_NONE ? NULL : &s->domains.at[best];
            if (!b || d->level < b->level ||
                (d->level == b->level &&
                 (d->n_whole < b->n_whole || (d->n_whole == b->n_whole && at < best))))
                best = at;
        }
    }
    return best;
}

uint32_t bh_shelf_domain_of(const struct bh_shelf *s, uint32_t node, enum bh_level level)
{
    uint32_t d = s->nodes.at[node].domain;
    while (d != BH_NONE && s->domains.at[d].level < level)
        d = s->domains.at[d].parent;
    return d != BH_NONE && s->domains.at[d].level == level ? d : BH_NONE;
}
