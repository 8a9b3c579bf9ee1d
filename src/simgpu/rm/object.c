/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - clients and the trees below them.
 *
 * A tree is freed from its leaves up, without recursion: its shape is a tenant's choice.
 */
#include "simgpu/rm/state.h"

/* The driver gives clients handles of this form, and objects others. */
enum { FIRST_HANDLE = 0x5c000001 };
#define FIRST_CLIENT UINT32_C(0xc1d00000)

static uint64_t key_of(const struct sim_client *client, uint32_t handle)
{
    return (uint64_t)(client->slot + 1) << 32 | handle;
}

/*
 * In the driver a client belongs to the file it was made on, and RM_REGISTER_FD ties a process's other files to it by
 * descriptor number. A number means nothing here (the call may come through a supervisor's duplicate), so files
 * opened by one process count as tied to each other. A process is its pid and when it began, and its user when it
 * opened them; one that is not known is tied to nobody.
 */
bool bh_simrm_may_use(const struct sim_file *file, const struct sim_client *client)
{
    const struct sim_file *own = client->file;
    return own == file || (own->pid != 0 && own->start != 0 && own->pid == file->pid &&
                           own->start == file->start && own->uid == file->uid);
}

struct sim_client *bh_simrm_client_any(const struct bh_sim_rm *rm, uint32_t handle)
{
    uint32_t slot = bh_idmap_find(&rm->client_handles, handle);
    return slot == BH_IDMAP_NONE ? NULL : rm->clients.at[slot];
}

struct sim_client *bh_simrm_client(const struct bh_sim_rm *rm, const struct sim_file *file, uint32_t handle)
{
    struct sim_client *client = bh_simrm_client_any(rm, handle);
    return client && bh_simrm_may_use(file, client) ? client : NULL;
}

struct sim_object *bh_simrm_object(const struct bh_sim_rm *rm, const struct sim_client *client,
                                   uint32_t handle)
{
    uint32_t slot = bh_idmap_find(&rm->object_handles, key_of(client, handle));
    return slot == BH_IDMAP_NONE ? NULL : rm->objects.at[slot];
}

static struct sim_object *object_new(struct bh_sim_rm *rm, struct sim_client *client,
                                     const struct sim_class *class, uint32_t handle)
{
    struct sim_object *o = bh_alloc(1, sizeof(*o));
    *o = (struct sim_object){.handle = handle, .gpu = SIM_NONE, .class = class, .client = client};
    SIM_PUT(rm, objects, o);
    (void)bh_idmap_add(&rm->object_handles, key_of(client, handle), o->slot);
    client->n_objects++;
    return o;
}

uint32_t bh_simrm_client_add(struct sim_call *c, const struct sim_class *class, uint32_t *handle)
{
    struct bh_sim_rm *rm = c->rm;
    uint32_t name = *handle;
    if (SIM_LIVE(rm, clients) >= SIM_CLIENTS_MAX || SIM_LIVE(rm, objects) >= SIM_OBJECTS_MAX)
        return RM_INSUFFICIENT_RESOURCES;
    if (name && bh_simrm_client_any(rm, name))
        return RM_INSERT_DUPLICATE_NAME;
    while (!name || bh_simrm_client_any(rm, name))
        name = FIRST_CLIENT + rm->n_clients_named++;
    struct sim_client *client = bh_alloc(1, sizeof(*client));
    *client = (struct sim_client){
        .handle = name, .pid = c->who->pid, .uid = c->who->uid, .next_handle = FIRST_HANDLE, .file = c->file};
    SIM_PUT(rm, clients, client);
    (void)bh_idmap_add(&rm->client_handles, name, client->slot);
    SIM_LINK(&c->file->clients, client, next, prev);
    client->root = object_new(rm, client, class, name);
    *handle = name;
    return RM_OK;
}

uint32_t bh_simrm_object_add(struct bh_sim_rm *rm, struct sim_object *parent, const struct sim_class *class,
                             uint32_t gpu, uint32_t *handle, struct sim_object **ret)
{
    struct sim_client *client = parent->client;
    if (parent->depth + 1 >= SIM_DEPTH_MAX || SIM_LIVE(rm, objects) >= SIM_OBJECTS_MAX)
        return RM_INSUFFICIENT_RESOURCES;
    if (*handle && bh_simrm_object(rm, client, *handle))
        return RM_INSERT_DUPLICATE_NAME;
    while (!*handle || bh_simrm_object(rm, client, *handle))
        *handle = client->next_handle++;
    struct sim_object *o = object_new(rm, client, class, *handle);
    o->depth = parent->depth + 1;
    o->parent = parent;
    o->gpu = gpu;
    SIM_LINK(&parent->first, o, next, prev);
    if (gpu != SIM_NONE) {
        rm->gpus[gpu].n_objects++;
        o->account = bh_simrm_account(rm, client, gpu);
    }
    *ret = o;
    return RM_OK;
}

static void leaf_free(struct bh_sim_rm *rm, struct sim_object *o)
{
    bh_simrm_kind_fini(rm, o);
    if (o->parent)
        SIM_UNLINK(&o->parent->first, o, next, prev);
    if (o->gpu != SIM_NONE) {
        rm->gpus[o->gpu].n_objects--;
        bh_simrm_account_drop(rm, o->account);
    }
    (void)bh_idmap_remove(&rm->object_handles, key_of(o->client, o->handle));
    o->client->n_objects--;
    SIM_DROP(rm, objects, o);
}

void bh_simrm_object_free(struct bh_sim_rm *rm, struct sim_object *object)
{
    for (struct sim_object *o = object;;) {
        while (o->first)
            o = o->first;
        struct sim_object *up = o->parent;
        bool last = o == object;
        leaf_free(rm, o);
        if (last)
            return;
        o = up;
    }
}

void bh_simrm_client_free(struct bh_sim_rm *rm, struct sim_client *client)
{
    bh_simrm_object_free(rm, client->root);
    SIM_UNLINK(&client->file->clients, client, next, prev);
    (void)bh_idmap_remove(&rm->client_handles, client->handle);
    bh_vec_fini(&client->partitions);
    SIM_DROP(rm, clients, client);
}
