/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_walk.c - the memory that would go if an object, or a file, went; and what runs on the cards. */
#include "warden/ledger_walk.h"

#include "warden/ledger_state.h"

/* What follows in a tree below top, children first met; LEDGER_NONE: that was all. No recursion: the shape of a tree is a
 * tenant's choice. */
static uint32_t next_in(const struct bh_ledger *l, uint32_t top, uint32_t at)
{
    if (l->objects.at[at].first != LEDGER_NONE)
        return l->objects.at[at].first;
    for (; at != top; at = l->objects.at[at].parent)
        if (l->objects.at[at].next != LEDGER_NONE)
            return l->objects.at[at].next;
    return LEDGER_NONE;
}

static void walk_tree(const struct bh_ledger *l, uint32_t top, struct bh_ledger_pieces *add)
{
    for (uint32_t at = top; at != LEDGER_NONE; at = next_in(l, top, at)) {
        const struct ledger_object *o = &l->objects.at[at];
        if (o->block == LEDGER_NONE || !o->named)
            continue;
        const struct ledger_block *b = &l->blocks.at[o->block];
        *bh_vec_push(add) = (struct bh_ledger_piece){.client = o->client,
                                                     .object = o->handle,
                                                     .gpu = b->gpu == LEDGER_ANYWHERE ? UINT32_MAX : b->gpu,
                                                     .names = b->refs,
                                                     .block = o->block,
                                                     .bytes = b->bytes};
    }
}

void bh_ledger_pieces_below(const struct bh_ledger *l, uint32_t client, uint32_t object,
                            struct bh_ledger_pieces *add)
{
    const uint32_t top = ledger_name_find(l, client, object);
    if (top != LEDGER_NONE)
        walk_tree(l, top, add);
}

void bh_ledger_pieces_of_file(const struct bh_ledger *l, uint64_t file, struct bh_ledger_pieces *add)
{
    const struct ledger_owners *files = &l->owners[LEDGER_FILE], *clients = &l->owners[LEDGER_CLIENT];
    const uint32_t slot = bh_idmap_find(&files->ids, file);
    if (slot == LEDGER_NONE)
        return;
    for (uint32_t c = files->pool.at[slot].first; c != LEDGER_NONE;
         c = l->claims.at[c].in[LEDGER_FILE].next) {
        const uint32_t client = l->claims.at[c].in[LEDGER_CLIENT].owner;
        bool again = false; /* two processes have it by this file */
        for (uint32_t k = files->pool.at[slot].first; k != c && !again;
             k = l->claims.at[k].in[LEDGER_FILE].next)
            again = l->claims.at[k].in[LEDGER_CLIENT].owner == client;
        if (!again)
            walk_tree(l, clients->pool.at[client].root, add);
    }
}

/* ---- what runs ---- */

bool bh_ledger_is_channel(uint32_t class)
{
    return ledger_is_channel(class);
}

uint64_t bh_ledger_runs_changed(const struct bh_ledger *l)
{
    return l->runs;
}

static void run_add(const struct bh_ledger *l, const struct ledger_object *o, struct bh_ledger_runs *add)
{
    const struct ledger_owners *clients = &l->owners[LEDGER_CLIENT];
    const uint32_t client = bh_idmap_find(&clients->ids, o->client);
    const uint32_t slot = client == LEDGER_NONE ? LEDGER_NONE : clients->pool.at[client].first;
    struct bh_ledger_run run = {.client = o->client,
                                .object = o->handle,
                                .class = o->class,
                                .gpu = o->gpu == LEDGER_ANYWHERE ? UINT32_MAX : o->gpu};
    if (slot != LEDGER_NONE) {
        const struct ledger_claim *claim = &l->claims.at[slot];
        run.pid = (uint32_t)l->owners[LEDGER_PROCESS].pool.at[claim->in[LEDGER_PROCESS].owner].key;
        run.file = l->owners[LEDGER_FILE].pool.at[claim->in[LEDGER_FILE].owner].key;
    }
    *bh_vec_push(add) = run;
}

void bh_ledger_runs(const struct bh_ledger *l, struct bh_ledger_runs *add)
{
    for (size_t i = 0; i < l->objects.n; i++) {
        const struct ledger_object *o = &l->objects.at[i];
        if (o->live && o->named && ledger_is_run(o->class))
            run_add(l, o, add);
    }
}
