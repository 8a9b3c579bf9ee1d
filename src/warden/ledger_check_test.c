/* SPDX-License-Identifier: Apache-2.0 */
/* The check finds what is planted: each row breaks one thing in a ledger that was whole. */
#include "base/test.h"
#include "warden/ledger_state.h"

static uint32_t slot_of(const struct bh_ledger *l, uint32_t client, uint32_t handle)
{
    return ledger_name_find(l, client, handle);
}

/* Two clients (1 and 2); in the first a device 10 with memory 11 and 12, duplicated as 20 in the second. */
static struct bh_ledger *whole(void)
{
    struct bh_ledger *l = bh_ledger_new(1000);
    bool ok = bh_ledger_client(l, 1, 1, 1) && bh_ledger_client(l, 2, 2, 2) && bh_ledger_map(l, 2, 7);
    for (uint32_t i = 10; ok && i < 13; i++)
        bh_ledger_object(l,
                         &(struct bh_ledger_object){
                             .client = 1, .parent = i == 10 ? 1 : 10, .object = i, .bytes = i == 10 ? 0 : i});
    bh_ledger_dup(l, &(struct bh_ledger_object){.client = 2, .parent = 2, .object = 20}, 1, 11);
    bh_ledger_object(l, &(struct bh_ledger_object){.client = 2, .parent = 2, .object = 21});
    bh_ledger_drop(l, 2, 21);
    return l;
}

static struct ledger_object *at(struct bh_ledger *l, uint32_t client, uint32_t handle)
{
    return &l->objects.at[slot_of(l, client, handle)];
}

static struct ledger_owner *owner(struct bh_ledger *l, enum ledger_list kind, uint64_t key)
{
    return &l->owners[kind].pool.at[bh_idmap_find(&l->owners[kind].ids, key)];
}

static void bad_gpu(struct bh_ledger *l)
{
    at(l, 1, 11)->gpu = LEDGER_ANYWHERE + 1;
}
static void bad_name(struct bh_ledger *l)
{
    at(l, 1, 11)->handle = 99;
}
static void bad_root(struct bh_ledger *l)
{
    at(l, 1, 11)->parent = LEDGER_NONE;
}
static void bad_parent(struct bh_ledger *l)
{
    at(l, 1, 11)->parent = slot_of(l, 2, 2);
}
static void bad_first(struct bh_ledger *l)
{
    at(l, 2, 20)->prev = slot_of(l, 2, 2);
}
static void bad_siblings(struct bh_ledger *l)
{
    at(l, 1, 11)->next = slot_of(l, 1, 10);
}
static void bad_memory(struct bh_ledger *l)
{
    at(l, 1, 11)->block = 77;
}
static void bad_objects(struct bh_ledger *l)
{
    l->names.n++;
}
static void bad_refs(struct bh_ledger *l)
{
    l->blocks.at[at(l, 1, 11)->block].refs++;
}
static void bad_blocks(struct bh_ledger *l)
{
    l->blocks.n_free++;
}
static void bad_held(struct bh_ledger *l)
{
    l->gpus[0].held++;
}
static void bad_key(struct bh_ledger *l)
{
    owner(l, LEDGER_FILE, 1)->key = 99;
}
static void bad_idle(struct bh_ledger *l)
{
    owner(l, LEDGER_FILE, 1)->first = LEDGER_NONE;
}
static void bad_claim(struct bh_ledger *l)
{
    l->claims.at[0].in[LEDGER_PROCESS].owner++;
}
static void bad_owners(struct bh_ledger *l)
{
    owner(l, LEDGER_CLIENT, 1)->first = LEDGER_NONE;
}
static void bad_client(struct bh_ledger *l)
{
    uint32_t root = slot_of(l, 2, 2);
    bh_ledger_drop(l, 2, 20);
    ledger_name_remove(l, root);
    l->objects.at[root].live = false;
    ledger_give(&l->objects, root, next);
}
static void bad_managed(struct bh_ledger *l)
{
    l->managed_bytes++;
}
static void bad_peak(struct bh_ledger *l)
{
    l->gpus[0].peak = 1;
}
static void bad_refusals(struct bh_ledger *l)
{
    l->full++;
}
static void bad_loop(struct bh_ledger *l)
{
    /* two objects that are each other's only child hang from no root */
    struct ledger_object *device = at(l, 1, 10), *root = at(l, 1, 1), *leaf = at(l, 1, 11);
    uint32_t device_slot = slot_of(l, 1, 10), leaf_slot = slot_of(l, 1, 11);
    bh_ledger_drop(l, 1, 12);
    root->first = LEDGER_NONE;
    device->parent = leaf_slot;
    leaf->first = device_slot;
}

TEST(the_check_finds_what_is_planted)
{
    static const struct {
        void (*plant)(struct bh_ledger *);
        const char *found;
    } rows[] = {
        {bad_gpu, "an object on a GPU that cannot be"},
        {bad_name, "an object that its name does not find"},
        {bad_root, "a root without a client"},
        {bad_parent, "an object below another client's"},
        {bad_first, "a sibling that is not linked"},
        {bad_siblings, "siblings of different parents"},
        {bad_memory, "an object of memory that is gone"},
        {bad_objects, "objects that do not add up"},
        {bad_refs, "memory whose objects do not add up"},
        {bad_blocks, "memory that does not add up"},
        {bad_held, "a GPU whose memory does not add up"},
        {bad_key, "an owner that its key does not find"},
        {bad_idle, "an owner of nothing"},
        {bad_claim, "a claim in a list of somebody else"},
        {bad_owners, "owners that do not add up"},
        {bad_client, "a client without a root"},
        {bad_managed, "managed memory that does not add up"},
        {bad_peak, "a peak below what is used"},
        {bad_refusals, "more refusals for want of room than refusals"},
        {bad_loop, "objects that no client reaches"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        struct bh_ledger *l = whole();
        const char *before = bh_ledger_check(l);
        rows[i].plant(l);
        const char *after = bh_ledger_check(l);
        bh_ledger_free(l);
        CHECK_STR(before ? before : "whole", "whole");
        CHECK_STR(after, rows[i].found);
    }
}

TEST_MAIN
