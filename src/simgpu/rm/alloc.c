/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - making objects: what each kind needs, takes and gives back.
 *
 * Parameters come from a tenant. They are copied, never pointed into, and their size is checked against the class.
 */
#include "simgpu/rm/state.h"

#define ON_NOTHING   0u
#define ON_ROOT      (1u << SIM_ROOT)
#define ON_DEVICE    (1u << SIM_DEVICE)
#define ON_SUBDEVICE (1u << SIM_SUBDEVICE)
#define ON_GROUP     (1u << SIM_GROUP)
#define ON_PARTITION (1u << SIM_PARTITION)
#define ON_GPU       (ON_DEVICE | ON_SUBDEVICE)
#define ON_ENGINE    (ON_GPU | ON_GROUP | 1u << SIM_CHANNEL)
#define ON_ANY       ((1u << SIM_KINDS) - 1)

static const struct sim_class CLASSES[] = {
#define CLASS(number, parents, params, kind) {number, parents, params, kind},
#include "simgpu/rm/classes.def"
#undef CLASS
};

void bh_simrm_classes_init(struct bh_sim_rm *rm)
{
    for (uint32_t i = 0; i < BH_COUNT_OF(CLASSES); i++)
        (void)bh_idmap_add(&rm->classes, CLASSES[i].class, i);
}

const struct sim_class *bh_simrm_class(const struct bh_sim_rm *rm, uint32_t class)
{
    uint32_t i = bh_idmap_find(&rm->classes, class);
    return i == BH_IDMAP_NONE ? NULL : &CLASSES[i];
}

/* A word of the parameters; 0 where none came. */
static uint32_t word_at(const struct sim_call *c, size_t at)
{
    uint32_t v = 0;
    if (c->n_params >= at + sizeof(v))
        memcpy(&v, c->params + at, sizeof(v));
    return v;
}

/* --- what kinds set up --- */

/* Video memory for an object. *bytes: as asked, then as given. */
static uint32_t take_memory(struct bh_sim_rm *rm, struct sim_object *o, uint64_t *bytes)
{
    struct sim_place *place = bh_simrm_place(rm, o->client, o->gpu);
    uint64_t given = bh_simrm_round(*bytes);
    if (!*bytes)
        return RM_INVALID_ARGUMENT;
    if (!place)
        return RM_INVALID_STATE;
    struct sim_block *b = given ? bh_simrm_block_new(rm, place, given) : NULL;
    if (!b)
        return RM_NO_MEMORY;
    bh_simrm_block_hold(b, o);
    *bytes = given;
    return RM_OK;
}

/* Asked for by name: these are what the node's failing allocations are about. */
static uint32_t take_asked(struct bh_sim_rm *rm, struct sim_object *o, uint64_t *bytes)
{
    return bh_simrm_fault_memory(rm) ? RM_NO_MEMORY : take_memory(rm, o, bytes);
}

static bool is_video(uint32_t attr, uint32_t flags)
{
    return !(attr & RM_ATTR_LOCATION) && !(flags & RM_MEMORY_FLAG_VIRTUAL);
}

static uint32_t setup_memory(struct sim_call *c, struct sim_object *o)
{
    struct rm_memory_params p;
    if (c->n_params != sizeof(p))
        return RM_INVALID_PARAM_STRUCT;
    memcpy(&p, c->params, sizeof(p));
    uint32_t status = is_video(p.attr, p.flags) ? take_asked(c->rm, o, &p.size) : RM_OK;
    memcpy(c->params, &p, sizeof(p));
    return status;
}

static uint32_t setup_vaspace(struct sim_call *c, struct sim_object *o)
{
    uint64_t bytes = SIM_VASPACE_BYTES;
    return take_memory(c->rm, o, &bytes);
}

static void group_make(struct bh_sim_rm *rm, struct sim_object *o, struct sim_place *place)
{
    o->place = place;
    o->group = ++rm->last_name;
    bh_sim_group_add(place->sched, o->group);
    SIM_LINK(&o->account->groups, o, group_next, group_prev);
    place->n_groups++;
    place->pins++;
}

static void group_end(struct sim_object *o)
{
    o->account->gone_busy_ns += bh_sim_group_busy_ns(o->place->sched, o->group);
    o->account->gone_turns += bh_sim_group_turns(o->place->sched, o->group);
    bh_sim_group_remove(o->place->sched, o->group);
    SIM_UNLINK(&o->account->groups, o, group_next, group_prev);
    o->place->n_groups--;
    o->place->pins--;
}

static uint32_t setup_group(struct sim_call *c, struct sim_object *o)
{
    uint64_t bytes = SIM_GROUP_BYTES;
    uint32_t status = take_memory(c->rm, o, &bytes);
    if (status == RM_OK)
        group_make(c->rm, o, o->block->place);
    return status;
}

static uint32_t setup_channel(struct sim_call *c, struct sim_object *o)
{
    const struct sim_object *group = o->parent->class->kind == SIM_GROUP ? o->parent : NULL;
    uint64_t bytes = SIM_CHANNEL_BYTES;
    uint32_t status = take_memory(c->rm, o, &bytes);
    if (status != RM_OK)
        return status;
    if (group) {
        o->place = group->place;
        o->group = group->group;
    } else {
        group_make(c->rm, o, o->block->place);
    }
    o->channel = ++c->rm->last_name;
    o->lost_at = c->rm->gpus[o->gpu].times_lost;
    bh_sim_channel_add(o->place->sched, o->group, o->channel);
    o->account->n_channels++;
    o->place->n_channels++;
    o->place->pins++;
    return RM_OK;
}

static void end_channel(struct bh_sim_rm *rm, struct sim_object *o)
{
    (void)rm;
    bh_sim_channel_remove(o->place->sched, o->channel);
    o->account->n_channels--;
    o->place->n_channels--;
    o->place->pins--;
    if (o->parent->class->kind != SIM_GROUP)
        group_end(o);
}

static void end_group(struct bh_sim_rm *rm, struct sim_object *o)
{
    (void)rm;
    group_end(o);
}

/*
 * The driver also wants the descriptor of the instance's capability file in the parameters. A descriptor number
 * means nothing here, so naming the instance is enough.
 */
static uint32_t setup_partition(struct sim_call *c, struct sim_object *o)
{
    struct sim_gpu *g = &c->rm->gpus[o->gpu];
    uint32_t gi = word_at(c, offsetof(struct rm_partition_params, gi));
    if (!g->mig.on)
        return RM_NOT_SUPPORTED;
    if (bh_simrm_partition(o->client, o->gpu))
        return RM_STATE_IN_USE;
    for (size_t i = 0; i < BH_SIM_GIS_MAX; i++) {
        if (!g->gis[i].made || g->gis[i].gi != gi)
            continue;
        o->place = &g->gis[i];
        o->gi = gi;
        o->ci = SIM_NONE;
        o->place->pins++;
        *bh_vec_push(&o->client->partitions) = o;
        return RM_OK;
    }
    return RM_INVALID_ARGUMENT;
}

static void end_partition(struct bh_sim_rm *rm, struct sim_object *o)
{
    (void)rm;
    size_t i = 0;
    while (o->client->partitions.at[i] != o)
        i++;
    o->client->partitions.at[i] = o->client->partitions.at[--o->client->partitions.n];
    o->place->pins--;
}

static uint32_t setup_exec(struct sim_call *c, struct sim_object *o)
{
    struct sim_object *partition = bh_simrm_partition(o->client, o->gpu);
    struct bh_sim_ci *ci = partition ? bh_sim_ci_find(&c->rm->gpus[o->gpu].mig, partition->gi,
                                                      word_at(c, offsetof(struct rm_partition_params, gi)))
                                     : NULL;
    if (!partition)
        return RM_INVALID_STATE;
    if (partition->ci != SIM_NONE)
        return RM_STATE_IN_USE;
    if (!ci)
        return RM_INVALID_ARGUMENT;
    o->place = partition->place;
    o->gi = partition->gi;
    o->ci = partition->ci = ci->id;
    o->place->pins++;
    ci->users++;
    return RM_OK;
}

/* The partition it narrowed may be gone already, or be another one by now. */
static void end_exec(struct bh_sim_rm *rm, struct sim_object *o)
{
    struct sim_object *partition = bh_simrm_partition(o->client, o->gpu);
    if (partition && partition->place == o->place && partition->ci == o->ci)
        partition->ci = SIM_NONE;
    bh_sim_ci_find(&rm->gpus[o->gpu].mig, o->gi, o->ci)->users--;
    o->place->pins--;
}

static uint32_t setup_absent(struct sim_call *c, struct sim_object *o)
{
    (void)c;
    (void)o;
    return RM_NOT_SUPPORTED;
}

static const struct {
    uint32_t (*setup)(struct sim_call *c, struct sim_object *o);
    void (*end)(struct bh_sim_rm *rm, struct sim_object *o); /* only of what has a place */
} KINDS[SIM_KINDS] = {
    [SIM_MEMORY] = {setup_memory, NULL},
    [SIM_VASPACE] = {setup_vaspace, NULL},
    [SIM_GROUP] = {setup_group, end_group},
    [SIM_CHANNEL] = {setup_channel, end_channel},
    [SIM_PARTITION] = {setup_partition, end_partition},
    [SIM_EXEC] = {setup_exec, end_exec},
    [SIM_ABSENT] = {setup_absent, NULL},
};

void bh_simrm_kind_fini(struct bh_sim_rm *rm, struct sim_object *object)
{
    if (object->place)
        KINDS[object->class->kind].end(rm, object);
    if (object->block)
        bh_simrm_block_release(rm, object);
}

/* --- the calls --- */

/* Which GPU an object is on: a device says so, the others are on their parent's. */
static uint32_t gpu_of(const struct sim_call *c, const struct sim_class *class,
                       const struct sim_object *parent)
{
    return class->kind == SIM_DEVICE ? word_at(c, offsetof(struct rm_device_params, device)) : parent->gpu;
}

/* An object below `parent_handle` of c->client, not set up. */
static uint32_t make_bare(struct sim_call *c, const struct sim_class *class, uint32_t parent_handle,
                          uint32_t *handle, struct sim_object **ret)
{
    struct sim_object *parent = bh_simrm_object(c->rm, c->client, parent_handle);
    if (!parent || !(class->parents & 1u << parent->class->kind))
        return RM_INVALID_OBJECT_PARENT;
    uint32_t gpu = gpu_of(c, class, parent);
    if ((class->kind == SIM_DEVICE || gpu != SIM_NONE) && gpu >= c->rm->node.n_gpus)
        return RM_INVALID_DEVICE;
    if (gpu != SIM_NONE && c->rm->gpus[gpu].lost)
        return RM_GPU_IS_LOST;
    uint32_t made = *handle, status = bh_simrm_object_add(c->rm, parent, class, gpu, &made, ret);
    if (status == RM_OK)
        *handle = made;
    return status;
}

static uint32_t make(struct sim_call *c, uint32_t client, uint32_t class_number, uint32_t parent,
                     uint32_t *handle)
{
    const struct sim_class *class = bh_simrm_class(c->rm, class_number);
    struct sim_object *o;
    uint32_t asked = *handle;
    if (class && class->kind == SIM_ROOT)
        return bh_simrm_client_add(c, class, handle);
    c->client = bh_simrm_client(c->rm, c->file, client);
    if (!c->client)
        return RM_INVALID_CLIENT;
    if (!class)
        return RM_INVALID_CLASS;
    if (class->params >= 0 && c->n_params && c->n_params != (size_t)class->params)
        return RM_INVALID_PARAM_STRUCT;
    uint32_t status = make_bare(c, class, parent, handle, &o);
    if (status == RM_OK && KINDS[class->kind].setup)
        status = KINDS[class->kind].setup(c, o);
    else
        return status;
    if (status != RM_OK) {
        bh_simrm_object_free(c->rm, o);
        *handle = asked;
    }
    return status;
}

/* A program may leave the size at 0 where the driver knows it from the class; then the bytes came all the same. */
static bool size_fits(const struct sim_call *c, uint32_t said)
{
    return said == c->n_params || said == 0;
}

int bh_simrm_alloc(struct sim_call *c, void *arg, size_t n)
{
    struct rm_alloc_short a; /* the long form starts with the same words */
    uint32_t said;
    memcpy(&a, arg, sizeof(a));
    memcpy(&said,
           (char *)arg + (n == sizeof(a) ? offsetof(struct rm_alloc_short, params_size)
                                         : offsetof(struct rm_alloc, params_size)),
           sizeof(said));
    uint32_t status =
        size_fits(c, said) ? make(c, a.client, a.class, a.parent, &a.object) : RM_INVALID_PARAM_STRUCT;
    memcpy((char *)arg + offsetof(struct rm_alloc, object), &a.object, sizeof(a.object));
    return (int)status;
}

int bh_simrm_alloc_object(struct sim_call *c, void *arg, size_t n)
{
    uint32_t a[5]; /* client, parent, object, class, status */
    (void)n;
    memcpy(a, arg, sizeof(a));
    uint32_t status = make(c, a[0], a[3], a[1], &a[2]);
    memcpy(arg, a, sizeof(a));
    return (int)status;
}

/* Memory without rm_memory_params: an object, and when its class may be video memory, bytes. */
static uint32_t make_memory(struct sim_call *c, uint32_t client, uint32_t class_number, uint32_t parent,
                            uint32_t *handle, uint64_t *bytes)
{
    const struct sim_class *class = bh_simrm_class(c->rm, class_number);
    struct sim_object *o;
    uint32_t asked = *handle;
    c->client = bh_simrm_client(c->rm, c->file, client);
    if (!c->client)
        return RM_INVALID_CLIENT;
    uint32_t status = make_bare(c, class, parent, handle, &o);
    if (status == RM_OK && class->kind == SIM_MEMORY)
        status = take_asked(c->rm, o, bytes);
    else
        return status;
    if (status != RM_OK) {
        bh_simrm_object_free(c->rm, o);
        *handle = asked;
    }
    return status;
}

int bh_simrm_alloc_memory(struct sim_call *c, void *arg, size_t n)
{
    struct rm_alloc_memory a;
    (void)n;
    memcpy(&a, arg, sizeof(a));
    const struct sim_class *class = bh_simrm_class(c->rm, a.class);
    bool memory = class && (class->kind == SIM_MEMORY || a.class == RM_CLASS_MEMORY_SYSTEM ||
                            a.class == RM_CLASS_MEMORY_OS || a.class == RM_CLASS_MEMORY_VIRTUAL);
    uint64_t bytes = a.limit + 1;
    if (!memory)
        return RM_INVALID_CLASS;
    if (!bytes)
        return RM_INVALID_LIMIT;
    uint32_t status = make_memory(c, a.client, a.class, a.parent, &a.object, &bytes);
    if (status == RM_OK)
        a.limit = bytes - 1;
    memcpy(arg, &a, sizeof(a));
    return (int)status;
}

static uint32_t heap_alloc(struct sim_call *c, struct rm_vid_heap *h)
{
    uint32_t class = RM_CLASS_MEMORY_LOCAL;
    if (h->flags & RM_MEMORY_FLAG_VIRTUAL)
        class = RM_CLASS_MEMORY_VIRTUAL;
    else if (h->attr & RM_ATTR_LOCATION)
        class = RM_CLASS_MEMORY_SYSTEM;
    return make_memory(c, h->client, class, h->parent, &h->memory, &h->size);
}

static uint32_t heap_free(struct sim_call *c, struct rm_vid_heap *h)
{
    struct sim_object *o = bh_simrm_object(c->rm, c->client, h->memory);
    if (!o || (o->class->kind != SIM_MEMORY && o->class->kind != SIM_PLAIN))
        return RM_OBJECT_NOT_FOUND;
    bh_simrm_object_free(c->rm, o);
    return RM_OK;
}

static uint32_t heap_info(struct sim_call *c, struct rm_vid_heap *h)
{
    struct sim_object *parent = bh_simrm_object(c->rm, c->client, h->parent);
    if (!parent || parent->gpu == SIM_NONE)
        return RM_INVALID_OBJECT_PARENT;
    struct sim_place *p = bh_simrm_place(c->rm, c->client, parent->gpu);
    h->total = p ? p->memory.total_bytes : 0;
    h->free = p ? p->memory.free_bytes : 0;
    return RM_OK;
}

int bh_simrm_heap(struct sim_call *c, void *arg, size_t n)
{
    enum { HEAP_INFO = 5 };
    struct rm_vid_heap h;
    uint32_t status = RM_NOT_SUPPORTED;
    (void)n;
    memcpy(&h, arg, sizeof(h));
    c->client = bh_simrm_client(c->rm, c->file, h.client);
    if (!c->client)
        return RM_INVALID_CLIENT;
    if (h.function == RM_HEAP_FREE)
        return (int)heap_free(c, &h);
    if (h.function == RM_HEAP_ALLOC_SIZE)
        status = heap_alloc(c, &h);
    if (h.function == HEAP_INFO || status == RM_OK)
        status = heap_info(c, &h);
    memcpy(arg, &h, sizeof(h));
    return (int)status;
}

/* --- handing on --- */

int bh_simrm_share(struct sim_call *c, void *arg, size_t n)
{
    struct rm_share s;
    (void)n;
    memcpy(&s, arg, sizeof(s));
    c->client = bh_simrm_client(c->rm, c->file, s.client);
    struct sim_object *o = c->client ? bh_simrm_object(c->rm, c->client, s.object) : NULL;
    if (!o)
        return c->client ? RM_OBJECT_NOT_FOUND : RM_INVALID_CLIENT;
    if (s.type >= RM_SHARE_TYPES)
        return RM_INVALID_ARGUMENT;
    o->share = s.action & RM_SHARE_REVOKE ? 0 : s.type;
    o->share_with = s.target;
    return RM_OK;
}

static bool is_shared(const struct sim_call *c, const struct sim_object *o)
{
    return o->share == RM_SHARE_ALL || (o->share == RM_SHARE_CLIENT && o->share_with == c->client->handle) ||
           (o->share == RM_SHARE_PID && o->share_with == c->client->pid);
}

/*
 * Who may duplicate somebody's object: its own process, and whoever the owner named with RM_SHARE, for the object or
 * for the whole client. Being the same user is not enough, nor is being root (measured on 580).
 */
static bool may_dup(const struct sim_call *c, const struct sim_object *source)
{
    const struct sim_client *owner = source->client;
    return owner == c->client || bh_simrm_may_use(c->file, owner) || owner->pid == c->client->pid ||
           is_shared(c, source) || is_shared(c, owner->root);
}

static uint32_t dup_object(struct sim_call *c, struct rm_dup *d)
{
    c->client = bh_simrm_client(c->rm, c->file, d->client);
    struct sim_client *owner = bh_simrm_client_any(c->rm, d->source_client);
    struct sim_object *source = owner ? bh_simrm_object(c->rm, owner, d->source_object) : NULL;
    struct sim_object *parent = c->client ? bh_simrm_object(c->rm, c->client, d->parent) : NULL, *o;
    if (!c->client || !owner)
        return RM_INVALID_CLIENT;
    if (!source)
        return RM_OBJECT_NOT_FOUND;
    if (!may_dup(c, source))
        return RM_INSUFFICIENT_PERMISSIONS;
    if (source->class->kind != SIM_MEMORY && source->class->kind != SIM_PLAIN)
        return RM_NOT_SUPPORTED;
    if (!parent || !(source->class->parents & 1u << parent->class->kind))
        return RM_INVALID_OBJECT_PARENT;
    if (source->gpu != SIM_NONE && c->rm->gpus[source->gpu].lost)
        return RM_GPU_IS_LOST;
    /* Memory of one instance is none of another's. */
    if (source->block && bh_simrm_place(c->rm, c->client, source->gpu) != source->block->place)
        return RM_INSUFFICIENT_PERMISSIONS;
    uint32_t made = d->object,
             status = bh_simrm_object_add(c->rm, parent, source->class, source->gpu, &made, &o);
    if (status != RM_OK)
        return status;
    d->object = made;
    if (source->block)
        bh_simrm_block_hold(source->block, o);
    return RM_OK;
}

int bh_simrm_dup(struct sim_call *c, void *arg, size_t n)
{
    struct rm_dup d;
    (void)n;
    memcpy(&d, arg, sizeof(d));
    uint32_t status = dup_object(c, &d);
    memcpy(arg, &d, sizeof(d));
    return (int)status;
}
