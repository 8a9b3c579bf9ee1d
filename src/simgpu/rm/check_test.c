/* SPDX-License-Identifier: Apache-2.0 */
/* Each invariant is broken by hand once and must be found: a check that cannot fail is none. */
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"
#include "simgpu/rm/state.h"

struct bench {
    struct bh_sim_rm *rm;
    struct fx_tenant t;
    uint32_t memory, group, channel;
};

static bool bench_make(struct bench *b)
{
    uint64_t bytes = BH_MIB;
    *b = (struct bench){.rm = fx_new("H100-80GB", 1)};
    return fx_tenant(b->rm, &fx_user, 0, &b->t) == RM_OK &&
           fx_memory(b->rm, &b->t, &bytes, &b->memory) == RM_OK &&
           fx_channel(b->rm, &b->t, &b->group, &b->channel) == RM_OK &&
           bh_sim_rm_write(b->rm, b->t.file, b->t.client, b->memory, 0, "x", 1) == 0 &&
           !bh_sim_rm_check(b->rm);
}

static struct sim_object *memory_of(const struct bench *b)
{
    return bh_simrm_object(b->rm, b->rm->clients.at[0], b->memory);
}

/* Adds one to a count, looks whether that is found with these words, takes it away again. */
static bool finds(struct bench *b, uint32_t *count, const char *words)
{
    ++*count;
    const char *why = bh_sim_rm_check(b->rm);
    bool found = why && strstr(why, words);
    --*count;
    if (!found)
        printf("# wanted '%s', got '%s'\n", words, why ? why : "nothing");
    return found && !bh_sim_rm_check(b->rm);
}

static bool finds64(struct bench *b, uint64_t *count, const char *words)
{
    ++*count;
    const char *why = bh_sim_rm_check(b->rm);
    bool found = why && strstr(why, words);
    --*count;
    if (!found)
        printf("# wanted '%s', got '%s'\n", words, why ? why : "nothing");
    return found && !bh_sim_rm_check(b->rm);
}

TEST(counts_that_are_off_by_one_are_found)
{
    struct bench b;
    CHECK(bench_make(&b));
    struct sim_object *o = memory_of(&b);
    CHECK(finds(&b, &b.rm->clients.at[0]->n_objects, "counts"));
    CHECK(finds(&b, &o->block->n_refs, "holders"));
    CHECK(finds(&b, &o->block->n_maps, "holders"));
    CHECK(finds(&b, &o->depth, "wrong place"));
    CHECK(finds(&b, &o->handle, "not found by its handle"));
    CHECK(finds(&b, &o->account->n_objects, "does not add up"));
    CHECK(finds(&b, &o->account->n_channels, "does not add up"));
    CHECK(finds64(&b, &o->account->private_bytes, "does not add up"));
    CHECK(finds64(&b, &o->account->owned_bytes, "does not add up"));
    CHECK(finds64(&b, &o->account->duped_bytes, "does not add up"));
    CHECK(finds(&b, &b.rm->gpus[0].n_objects, "objects"));
    CHECK(finds(&b, &b.rm->gpus[0].whole.pins, "pins"));
    CHECK(finds(&b, &b.rm->gpus[0].whole.n_groups, "groups or channels"));
    CHECK(finds(&b, &b.rm->gpus[0].whole.n_channels, "groups or channels"));
    CHECK(finds64(&b, &b.rm->gpus[0].whole.unowned_bytes, "pins"));
    CHECK(finds64(&b, &b.rm->gpus[0].whole.memory.free_bytes, "free are not"));
    CHECK(finds64(&b, &b.rm->n_residue, "pieces"));
    CHECK(finds(&b, &b.rm->n_full_chunks, "pieces"));
    CHECK(finds(&b, &b.rm->files.at[0]->id, "by its number"));
    bh_sim_rm_free(b.rm);
}

TEST(links_that_are_torn_are_found)
{
    struct bench b;
    uint64_t bytes = BH_MIB;
    uint32_t copy = 0, extra = 0;
    CHECK(bench_make(&b));
    CHECK_EQ(fx_memory(b.rm, &b.t, &bytes, &extra), RM_OK);
    CHECK_EQ(fx_dup(b.rm, b.t.file, b.t.who, b.t.client, b.t.device, &copy, b.t.client, b.memory), RM_OK);
    struct sim_client *client = b.rm->clients.at[0];
    struct sim_object *o = memory_of(&b), *dup = bh_simrm_object(b.rm, client, copy), *next = o->next;
    CHECK(finds64(&b, &o->block->bytes, "not its place's"));
    struct sim_chunk *chunk = o->block->chunks;
    chunk->key += 1000;
    CHECK(strstr(bh_sim_rm_check(b.rm), "memory that is gone"));
    chunk->key -= 1000;
    dup->ref_prev = NULL;
    CHECK(strstr(bh_sim_rm_check(b.rm), "holders"));
    dup->ref_prev = o;
    next->prev = NULL;
    CHECK(strstr(bh_sim_rm_check(b.rm), "siblings"));
    next->prev = o;
    o->place = &b.rm->gpus[0].whole;
    CHECK(strstr(bh_sim_rm_check(b.rm), "has a place"));
    o->place = NULL;
    client->file = NULL;
    CHECK(strstr(bh_sim_rm_check(b.rm), "not its file's"));
    client->file = b.rm->files.at[0];
    CHECK(bh_idmap_add(&b.rm->client_handles, 1, 0));
    CHECK(strstr(bh_sim_rm_check(b.rm), "names of what is gone"));
    CHECK(bh_idmap_remove(&b.rm->client_handles, 1));
    b.rm->files.at[0]->clients = NULL;
    CHECK(strstr(bh_sim_rm_check(b.rm), "nobody owns"));
    b.rm->files.at[0]->clients = client;
    CHECK(!bh_sim_rm_check(b.rm));
    bh_sim_rm_free(b.rm);
}

TEST(instances_that_lie_are_found)
{
    struct bh_sim_node n = fx_node("H100-80GB", 1);
    n.gpus[0].mig = true;
    struct bench b = {.rm = bh_sim_rm_new(&n)};
    struct bh_sim_mig_order o = {.verb = BH_SIM_MIG_GI_CREATE, .start = -1};
    o.profile_id = bh_mig_find(n.gpus[0].model, "1g.10gb")->gi_profile_id;
    CHECK_EQ(bh_sim_rm_mig(b.rm, &fx_admin, &o), 0);
    o.verb = BH_SIM_MIG_CI_CREATE;
    o.profile_id = 1;
    CHECK_EQ(bh_sim_rm_mig(b.rm, &fx_admin, &o), 0);
    CHECK(!bh_sim_rm_check(b.rm));
    struct sim_gpu *g = &b.rm->gpus[0];
    CHECK(finds64(&b, &bh_sim_gi_find(&g->mig, o.gi)->used_bytes, "shows other memory"));
    CHECK(finds(&b, &bh_sim_ci_find(&g->mig, o.gi, o.ci)->users, "users of a compute instance"));
    g->mig.on = false;
    CHECK(strstr(bh_sim_rm_check(b.rm), "no instance"));
    g->mig.on = true;
    bh_sim_rm_free(b.rm);
}

TEST(memory_with_two_owners_is_found)
{
    struct bench b;
    uint64_t bytes = BH_MIB;
    uint32_t second = 0;
    CHECK(bench_make(&b));
    CHECK_EQ(fx_memory(b.rm, &b.t, &bytes, &second), RM_OK);
    struct sim_block *block = bh_simrm_object(b.rm, b.rm->clients.at[0], second)->block;
    uint64_t base = block->base;
    block->base = memory_of(&b)->block->base;
    CHECK(strstr(bh_sim_rm_check(b.rm), "two owners"));
    block->base = base;
    CHECK(!bh_sim_rm_check(b.rm));
    bh_sim_rm_free(b.rm);
}

TEST(an_object_that_nobody_reaches_is_found)
{
    struct bench b;
    CHECK(bench_make(&b));
    struct sim_object *o = memory_of(&b), *device = o->parent;
    struct sim_object *first = device->first;
    device->first = first->next;
    device->first->prev = NULL;
    CHECK(bh_sim_rm_check(b.rm) != NULL);
    device->first->prev = first;
    CHECK(strstr(bh_sim_rm_check(b.rm), "torn"));
    device->first = first;
    CHECK(!bh_sim_rm_check(b.rm));
    bh_sim_rm_free(b.rm);
}

TEST(a_group_the_scheduler_lost_is_found)
{
    struct bench b;
    CHECK(bench_make(&b));
    struct sim_object *g = bh_simrm_object(b.rm, b.rm->clients.at[0], b.group);
    CHECK(finds64(&b, &g->group, "the scheduler does not know"));
    bh_sim_rm_free(b.rm);
}

TEST_MAIN
