/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_check.c - everything the ledger relies on, added up again from nothing. Slow; for tests and self-tests. */
#include "warden/ledger_state.h"

/* Sibling links of one object, and that its parent is an object of the same client. */
static const char *check_links(const struct bh_ledger *l, uint32_t slot)
{
    const struct ledger_object *o = &l->objects.at[slot], *at = l->objects.at;
    if (o->gpu > LEDGER_ANYWHERE)
        return "an object on a GPU that cannot be";
    if (o->named && ledger_name_find(l, o->client, o->handle) != slot)
        return "an object that its name does not find";
    if (o->parent == LEDGER_NONE) {
        uint32_t client = bh_idmap_find(&l->owners[LEDGER_CLIENT].ids, o->client);
        return client == LEDGER_NONE || l->owners[LEDGER_CLIENT].pool.at[client].root != slot
                   ? "a root without a client"
                   : NULL;
    }
    if (!at[o->parent].live || at[o->parent].client != o->client)
        return "an object below another client's";
    if (o->prev == LEDGER_NONE ? at[o->parent].first != slot : at[o->prev].next != slot)
        return "a sibling that is not linked";
    if (o->next != LEDGER_NONE && (at[o->next].prev != slot || at[o->next].parent != o->parent))
        return "siblings of different parents";
    return NULL;
}

/* Objects of the tree below a root, or more than n when it has a loop. */
static size_t tree_count(const struct bh_ledger *l, uint32_t root, size_t n)
{
    const struct ledger_object *at = l->objects.at;
    size_t seen = 1;
    for (uint32_t slot = root; seen <= n;) {
        if (at[slot].first != LEDGER_NONE) {
            slot = at[slot].first;
        } else {
            while (slot != root && at[slot].next == LEDGER_NONE)
                slot = at[slot].parent;
            if (slot == root)
                return seen;
            slot = at[slot].next;
        }
        seen++;
    }
    return seen;
}

static const char *check_objects(const struct bh_ledger *l, uint32_t *refs)
{
    size_t live = 0, named = 0;
    for (uint32_t i = 0; i < l->objects.n; i++) {
        const struct ledger_object *o = &l->objects.at[i];
        if (!o->live)
            continue;
        live++;
        named += o->named;
        const char *why = check_links(l, i);
        if (why)
            return why;
        if (o->block != LEDGER_NONE && (o->block >= l->blocks.n || !l->blocks.at[o->block].refs))
            return "an object of memory that is gone";
        if (o->block != LEDGER_NONE)
            refs[o->block]++;
    }
    if (live != ledger_live(&l->objects) || named != l->names.n)
        return "objects that do not add up";
    return NULL;
}

static const char *check_blocks(const struct bh_ledger *l, const uint32_t *refs)
{
    uint64_t held[BH_LEDGER_GPUS + 1] = {0};
    size_t live = 0;
    for (size_t i = 0; i < l->blocks.n; i++) {
        const struct ledger_block *b = &l->blocks.at[i];
        if (b->refs != refs[i])
            return "memory whose objects do not add up";
        live += b->refs > 0;
        if (b->refs)
            held[b->gpu] += b->bytes;
    }
    if (live != ledger_live(&l->blocks))
        return "memory that does not add up";
    for (uint32_t g = 0; g <= LEDGER_ANYWHERE; g++)
        if (held[g] != l->gpus[g].held)
            return "a GPU whose memory does not add up";
    return NULL;
}

/* One way to group the claims. */
static const char *check_owners(const struct bh_ledger *l, enum ledger_list kind)
{
    const struct ledger_owners *owners = &l->owners[kind];
    size_t live = 0, claims = 0;
    for (uint32_t i = 0; i < owners->pool.n; i++) {
        const struct ledger_owner *o = &owners->pool.at[i];
        if (!o->live)
            continue;
        live++;
        if (bh_idmap_find(&owners->ids, o->key) != i)
            return "an owner that its key does not find";
        if (kind != LEDGER_CLIENT && o->first == LEDGER_NONE && !o->managed_bytes)
            return "an owner of nothing";
        for (uint32_t c = o->first, prev = LEDGER_NONE; c != LEDGER_NONE;
             prev = c, c = l->claims.at[c].in[kind].next, claims++)
            if (!l->claims.at[c].live || l->claims.at[c].in[kind].owner != i ||
                l->claims.at[c].in[kind].prev != prev)
                return "a claim in a list of somebody else";
    }
    if (live != ledger_live(&owners->pool) || live != owners->ids.n || claims != ledger_live(&l->claims))
        return "owners that do not add up";
    return NULL;
}

static const char *check_clients(const struct bh_ledger *l)
{
    size_t reached = 0, live = ledger_live(&l->objects);
    const struct ledger_owners *clients = &l->owners[LEDGER_CLIENT];
    for (size_t i = 0; i < clients->pool.n; i++) {
        const struct ledger_owner *c = &clients->pool.at[i];
        if (!c->live)
            continue;
        if (c->root >= l->objects.n || !l->objects.at[c->root].live ||
            l->objects.at[c->root].parent != LEDGER_NONE || l->objects.at[c->root].client != c->key)
            return "a client without a root";
        reached += tree_count(l, c->root, live);
    }
    return reached != live ? "objects that no client reaches" : NULL;
}

static const char *check_sums(const struct bh_ledger *l)
{
    uint64_t managed = 0;
    const struct ledger_owners *processes = &l->owners[LEDGER_PROCESS];
    for (size_t i = 0; i < processes->pool.n; i++)
        managed += processes->pool.at[i].live ? processes->pool.at[i].managed_bytes : 0;
    if (managed != l->managed_bytes || managed > l->cap_bytes)
        return "managed memory that does not add up";
    for (uint32_t g = 0; g < BH_LEDGER_GPUS; g++) {
        struct bh_ledger_sum s = bh_ledger_sum(l, g);
        if (s.peak < s.used)
            return "a peak below what is used";
    }
    return l->full > l->refused ? "more refusals for want of room than refusals" : NULL;
}

const char *bh_ledger_check(const struct bh_ledger *l)
{
    BH_AUTOFREE uint32_t *refs = bh_alloc(l->blocks.n + 1, sizeof(*refs));
    const char *why = check_objects(l, refs);
    if (!why)
        why = check_blocks(l, refs);
    for (int k = 0; k < LEDGER_LISTS && !why; k++)
        why = check_owners(l, (enum ledger_list)k);
    if (!why)
        why = check_clients(l);
    return why ? why : check_sums(l);
}
