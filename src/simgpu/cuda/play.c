/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.c - makes the calls that a recording shows, against a simulated node.
 *
 * A recording says which kind of file a call went to, not which of several open ones: an object's calls go to the file
 * its client was made on, everything else to the newest file of the kind. What a call without an object is about follows
 * from its neighbours: mapping follows the making of the object that is mapped, unmapping comes before its end. A
 * call that failed on the real card is made as well, and its answer not looked at. One that succeeded there must
 * succeed here where a context cannot be without it: a file, its memory, its channels.
 */
#include "simgpu/cuda/play.h"

#include "simgpu/cuda/internal.h"
#include "simgpu/rm/sched.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARG_MAX = 57344, FIRST_HANDLE = 0x5c000001 };
/* Commands whose parameters begin with the driver's name of a GPU, and those that tell it. */
enum { PROBED_IDS = 0x214, ATTACHED_IDS = 0x201, ATTACH = 0x215, ID_INFO = 0x202, ID_INFO_V2 = 0x205 };

struct player {
    struct bh_play *p;
    const struct bh_call *next, *end; /* what comes after the call */
    uint32_t nth, of;                 /* which of its repetitions */
    const char *driver;               /* whose recording it is */
};

/* The recording is of a Hopper card; the same objects have other classes a generation earlier. */
static const struct {
    uint32_t hopper, ampere;
} generations[] = {
    {RM_CLASS_CHANNEL_HOPPER, RM_CLASS_CHANNEL_AMPERE},
    {0xc661, RM_CLASS_USERMODE_AMPERE},
    {0xcbc0, 0xc6c0}, /* compute */
    {0xc8b5, 0xc6b5}, /* copies */
};

uint32_t bh_play_handle(void)
{
    static atomic_uint next = FIRST_HANDLE;
    return atomic_fetch_add(&next, 1);
}

uint32_t bh_play_class(bool ampere, uint32_t class)
{
    for (size_t i = 0; ampere && i < BH_COUNT_OF(generations); i++)
        if (generations[i].hopper == class)
            return generations[i].ampere;
    return class;
}

/* --- what was made --- */

static struct bh_play_object *object_at(const struct bh_play *p, uint32_t number)
{
    for (; number > 0 && p; p = p->base)
        if (number <= p->objects.n && p->objects.at[number - 1].handle)
            return &p->objects.at[number - 1];
    return NULL;
}

static void object_set(struct bh_play *p, uint32_t number, struct bh_play_object o)
{
    if (number == 0)
        return;
    while (p->objects.n < number)
        *bh_vec_push(&p->objects) = (struct bh_play_object){0};
    p->objects.at[number - 1] = o;
    p->last = number;
}

const struct bh_play_object *bh_play_find(const struct bh_play *p, uint32_t class, uint32_t client,
                                          uint32_t n)
{
    for (; p; p = p->base)
        for (size_t i = 0; i < p->objects.n; i++) {
            const struct bh_play_object *o = &p->objects.at[i];
            if (o->live && o->class == class && (client == 0 || o->client == client) && n-- == 0)
                return o;
        }
    return NULL;
}

int bh_play_file(const struct bh_play *p, enum bh_call_file kind)
{
    for (; p; p = p->base)
        for (size_t i = p->files.n; i-- > 0;)
            if (p->files.at[i].fd >= 0 && p->files.at[i].kind == kind)
                return p->files.at[i].fd;
    return -1;
}

static struct bh_play_file *file_of(const struct bh_play *p, int fd)
{
    for (; p; p = p->base)
        for (size_t i = 0; i < p->files.n; i++)
            if (p->files.at[i].fd == fd)
                return &p->files.at[i];
    return NULL;
}

/* The object whose end comes next; NULL: something else of this kind comes before it. */
static struct bh_play_object *ends_next(const struct player *y, enum bh_call_kind before, uint32_t number)
{
    for (const struct bh_call *c = y->next; c < y->end; c++) {
        if (c->kind == BH_CALL_FREE)
            return object_at(y->p, c->object);
        if (c->kind == before && c->number == number)
            return NULL;
    }
    return NULL;
}

/* Under which client, on which object, through which file. */
struct place {
    uint32_t client, handle;
    int fd, home; /* home: the client's own file */
};

static struct place place_of(const struct bh_play *p, uint32_t number, const struct bh_call *c)
{
    const struct bh_play_object *o = object_at(p, number);
    if (!o)
        o = bh_play_find(p, RM_CLASS_CLIENT, 0, 0);
    struct place at = {.client = o ? o->client : 0,
                       .handle = o ? o->handle : 0,
                       .fd = o ? o->fd : bh_play_file(p, (enum bh_call_file)c->file)};
    at.home = at.fd;
    if (c->file == BH_FILE_GPU && bh_play_file(p, BH_FILE_GPU) >= 0)
        at.fd = bh_play_file(p, BH_FILE_GPU);
    return at;
}

/* --- files --- */

static int play_open(const struct player *y, const struct bh_call *c)
{
    static const char *const paths[] = {
        [BH_FILE_CTL] = "/dev/nvidiactl",
        [BH_FILE_UVM] = "/dev/nvidia-uvm",
        [BH_FILE_UVM_TOOLS] = "/dev/nvidia-uvm-tools",
        [BH_FILE_MODESET] = "/dev/nvidia-modeset",
    };
    char path[32];
    if (c->file == BH_FILE_GPU)
        snprintf(path, sizeof(path), "/dev/nvidia%u", y->p->gpu);
    else if (c->file < BH_COUNT_OF(paths) && paths[c->file])
        snprintf(path, sizeof(path), "%s", paths[c->file]);
    else
        return 0; /* a capability's file: there are none without MIG */
    int fd = bh_sim_open(path);
    if (fd < 0)
        return c->error ? 0 : bh_cu_from_errno(errno);
    *bh_vec_push(&y->p->files) = (struct bh_play_file){.fd = fd, .kind = c->file};
    return 0;
}

static void file_close(struct bh_play *p, struct bh_play_file *f)
{
    for (size_t i = 0; i < p->maps.n; i++)
        if (p->maps.at[i].fd == f->fd)
            p->maps.at[i].fd = -1;
    close(f->fd);
    f->fd = -1;
}

/*
 * The newest one on which no client lives. An event's file is closed twice, before and after the event is given
 * back: the first is a duplicate, and there are none here.
 */
static int play_close(const struct player *y, const struct bh_call *c)
{
    struct bh_play *p = y->p;
    if (y->next < y->end && y->next->kind == BH_CALL_ESCAPE && y->next->number == RM_FREE_OS_EVENT)
        return 0;
    for (size_t i = p->files.n; i-- > 0;) {
        if (p->files.at[i].fd < 0 || p->files.at[i].kind != c->file || p->files.at[i].owner)
            continue;
        file_close(p, &p->files.at[i]);
        break;
    }
    return 0;
}

static int play_map(const struct player *y, const struct bh_call *c)
{
    int fd = bh_play_file(y->p, (enum bh_call_file)c->file);
    struct bh_play_map m = {.fd = fd, .size = c->size};
    if (fd < 0 || c->error || c->size == 0)
        return 0;
    m.at = bh_sim_mmap(fd, m.size, (int)c->what, (int)c->flags, &m.range);
    if (m.at == MAP_FAILED)
        return bh_cu_from_errno(errno);
    *bh_vec_push(&y->p->maps) = m;
    return 0;
}

/* --- objects --- */

/* What a class must know to mean the right silicon. The rest of its parameters stays zero. */
static void fill_alloc(const struct bh_play *p, const struct bh_call *c, uint8_t *params)
{
    const struct rm_device_params device = {.device = p->gpu};
    const struct rm_memory_params memory = {
        .flags = c->mflags, .attr = c->attr, .attr2 = c->attr2, .size = c->size, .numa_node = -1};
    if (c->memory)
        memcpy(params, &memory, sizeof(memory));
    else if (c->what == RM_CLASS_DEVICE)
        memcpy(params, &device, sizeof(device));
}

static int rm_alloc(struct place at, struct rm_alloc *a)
{
    a->client = at.client;
    a->parent = at.handle;
    return bh_sim_ioctl(at.fd, RM_IOC(RM_ALLOC, sizeof(*a)), a) < 0 ? bh_cu_from_errno(errno) : 0;
}

/* A tenant of a MIG instance subscribes to it as soon as it has a subdevice: to the GPU's part, then within it. */
static int subscribe(const struct bh_play *p, const struct bh_play_object *subdevice)
{
    enum { EXEC_PARTITION = 0xc638 };
    const struct place at = {.client = subdevice->client, .handle = subdevice->handle, .fd = subdevice->fd};
    struct rm_partition_params gi = {.gi = p->gi}, ci = {.gi = p->ci};
    struct rm_alloc a = {.object = bh_play_handle(),
                         .class = RM_CLASS_SMC_PARTITION,
                         .params = (uint64_t)(uintptr_t)&gi,
                         .params_size = sizeof(gi)};
    struct rm_alloc b = {.object = bh_play_handle(),
                         .class = EXEC_PARTITION,
                         .params = (uint64_t)(uintptr_t)&ci,
                         .params_size = sizeof(ci)};
    int rc = rm_alloc(at, &a);
    rc = rc ? rc : bh_cu_from_status(a.status);
    rc = rc ? rc : rm_alloc((struct place){.client = at.client, .handle = a.object, .fd = at.fd}, &b);
    return rc ? rc : bh_cu_from_status(b.status);
}

/* Is there no context without it? A lesser object that could not be made is left out. */
static int must_have(uint32_t class, uint32_t status)
{
    static const uint32_t classes[] = {
        RM_CLASS_ROOT,          RM_CLASS_CLIENT,         RM_CLASS_DEVICE,
        RM_CLASS_SUBDEVICE,     RM_CLASS_VASPACE,        RM_CLASS_MEMORY_LOCAL,
        RM_CLASS_CHANNEL_GROUP, RM_CLASS_CHANNEL_AMPERE, RM_CLASS_CHANNEL_HOPPER,
    };
    bool needed = status == RM_NO_MEMORY || status == RM_INSUFFICIENT_RESOURCES || status == RM_GPU_IS_LOST;
    for (size_t i = 0; i < BH_COUNT_OF(classes); i++)
        needed = needed || classes[i] == class;
    return needed ? bh_cu_from_status(status) : 0;
}

static int play_alloc(const struct player *y, const struct bh_call *c)
{
    struct bh_play *p = y->p;
    _Alignas(8) uint8_t params[ARG_MAX] = {0};
    const bool root = c->what == RM_CLASS_CLIENT || c->what == RM_CLASS_ROOT;
    const struct place at =
        root ? (struct place){.fd = bh_play_file(p, BH_FILE_CTL), .home = bh_play_file(p, BH_FILE_CTL)}
             : place_of(p, c->parent, c);
    struct rm_alloc a = {.object = root ? 0 : bh_play_handle(),
                         .class = bh_play_class(p->ampere, c->what),
                         .params = root ? 0 : (uint64_t)(uintptr_t)params,
                         .params_size = c->params < ARG_MAX ? c->params : ARG_MAX,
                         .flags = c->flags};
    fill_alloc(p, c, params);
    int rc = rm_alloc(at, &a);
    if (c->status || c->error)
        return 0;
    if (rc || a.status)
        return rc ? rc : must_have(a.class, a.status);
    const struct bh_play_object o = {.handle = a.object,
                                     .client = root ? a.object : at.client,
                                     .class = a.class,
                                     .fd = at.home,
                                     .live = true,
                                     .size = c->size};
    if (root && file_of(p, at.fd))
        file_of(p, at.fd)->owner = true;
    object_set(p, c->object, o);
    return a.class == RM_CLASS_SUBDEVICE && p->gi != UINT32_MAX ? subscribe(p, &o) : 0;
}

/* Parameters whose contents decide the answer. */
static void fill_control(const struct bh_play *p, const struct bh_call *c, uint8_t *params)
{
    const uint64_t slice = BH_SIM_SLICE_DEFAULT_US;
    if (c->what == ID_INFO || c->what == ID_INFO_V2 || c->what == ATTACH)
        memcpy(params, &p->gpu_id, sizeof(p->gpu_id));
    else if (c->what == RM_CTRL_GROUP_SET_TIMESLICE)
        memcpy(params, &slice, sizeof(slice));
    else if (c->what == RM_CTRL_GROUP_SCHEDULE)
        params[0] = 1;
    else if (c->what == RM_CTRL_GPU_GET_PID_INFO && c->params == sizeof(struct rm_pid_info)) {
        const uint32_t one = 1, pid = (uint32_t)getpid();
        memcpy(params + offsetof(struct rm_pid_info, count), &one, sizeof(one));
        memcpy(params + offsetof(struct rm_pid_info, at[0].pid), &pid, sizeof(pid));
    } else if (c->what == RM_CTRL_FB_GET_INFO_V2 && c->params == sizeof(struct rm_fb_info)) {
        const struct rm_fb_info size = {.count = 1, .at = {{.index = RM_FB_HEAP_SIZE}}};
        memcpy(params, &size, sizeof(size));
    }
}

/* Answers that are kept. */
static void keep_answer(struct bh_play *p, const struct bh_call *c, const uint8_t *params)
{
    const size_t id_at = p->gpu * sizeof(uint32_t);
    uint32_t kib;
    if ((c->what == PROBED_IDS || c->what == ATTACHED_IDS) && id_at + sizeof(uint32_t) <= c->params)
        memcpy(&p->gpu_id, params + id_at, sizeof(p->gpu_id));
    if (c->what == RM_CTRL_FB_GET_INFO_V2 && c->params == sizeof(struct rm_fb_info)) {
        memcpy(&kib, params + offsetof(struct rm_fb_info, at[0].value), sizeof(kib));
        p->total_bytes = (uint64_t)kib << 10;
    }
}

static int play_control(const struct player *y, const struct bh_call *c)
{
    struct bh_play *p = y->p;
    _Alignas(8) uint8_t params[ARG_MAX] = {0};
    const struct place at = place_of(p, c->object, c);
    struct rm_control k = {.client = at.client,
                           .object = at.handle,
                           .command = c->what,
                           .flags = c->flags,
                           .params = c->params ? (uint64_t)(uintptr_t)params : 0,
                           .params_size = c->params < ARG_MAX ? c->params : ARG_MAX};
    fill_control(p, c, params);
    if (bh_sim_ioctl(at.fd, RM_IOC(RM_CONTROL, sizeof(k)), &k) == 0 && k.status == RM_OK)
        keep_answer(p, c, params);
    return k.status == RM_GPU_IS_LOST ? bh_cu_from_status(k.status) : 0;
}

/* A client takes all of its objects along, and its file is free to be closed. */
static void forget(struct bh_play *p, uint32_t client, uint32_t handle)
{
    for (size_t i = 0; i < p->objects.n; i++) {
        struct bh_play_object *o = &p->objects.at[i];
        if (o->client != client || (o->handle != handle && client != handle))
            continue;
        o->live = false;
        if (client == handle && file_of(p, o->fd))
            file_of(p, o->fd)->owner = false;
    }
}

/* Number 0 is an object that the recorder did not see being made: one that is not there is freed in its place. */
static int play_free(const struct player *y, const struct bh_call *c)
{
    const struct bh_play_object *o = object_at(y->p, c->object);
    struct place at = place_of(y->p, 0, c);
    if (c->object && (!o || !o->live))
        return 0;
    if (o)
        at = (struct place){.client = o->client, .handle = o->handle, .fd = o->fd};
    struct rm_free f = {.client = at.client, .object = o ? at.handle : bh_play_handle()};
    (void)bh_sim_ioctl(at.fd, RM_IOC(RM_FREE, sizeof(f)), &f);
    forget(y->p, f.client, f.object);
    return 0;
}

static int play_dup(const struct player *y, const struct bh_call *c)
{
    const struct place at = place_of(y->p, c->parent, c);
    const struct bh_play_object *from = object_at(y->p, c->source);
    if (!from)
        return 0;
    struct rm_dup d = {.client = at.client,
                       .parent = at.handle,
                       .object = bh_play_handle(),
                       .source_client = from->client,
                       .source_object = from->handle,
                       .flags = c->flags};
    if (bh_sim_ioctl(at.fd, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) < 0 || d.status)
        return 0;
    object_set(y->p, c->object,
               (struct bh_play_object){.handle = d.object,
                                       .client = at.client,
                                       .class = from->class,
                                       .fd = at.home,
                                       .live = true,
                                       .size = from->size});
    return 0;
}

static int play_heap(const struct player *y, const struct bh_call *c)
{
    const struct place at = place_of(y->p, c->parent, c);
    const struct bh_play_object *freed = object_at(y->p, c->object);
    struct rm_vid_heap h = {.client = at.client,
                            .parent = at.handle,
                            .function = c->what,
                            .flags = c->mflags,
                            .attr = c->attr,
                            .attr2 = c->attr2,
                            .size = c->size,
                            .memory = c->what == RM_HEAP_FREE && freed ? freed->handle : bh_play_handle()};
    if (bh_sim_ioctl(at.fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) < 0)
        return c->error ? 0 : bh_cu_from_errno(errno);
    if (h.status || c->status)
        return c->status ? 0 : bh_cu_from_status(h.status);
    if (c->what == RM_HEAP_FREE)
        forget(y->p, at.client, h.memory);
    else
        object_set(y->p, c->object,
                   (struct bh_play_object){.handle = h.memory,
                                           .client = at.client,
                                           .fd = at.home,
                                           .live = true,
                                           .class = RM_CLASS_MEMORY_LOCAL,
                                           .size = c->size});
    return 0;
}

/* Memory that the process brings along, or the older way to ask for some. */
static int play_memory(const struct player *y, const struct bh_call *c)
{
    const struct place at = place_of(y->p, c->parent, c);
    struct rm_alloc_memory m = {.client = at.client,
                                .parent = at.handle,
                                .object = bh_play_handle(),
                                .class = c->what,
                                .flags = c->flags,
                                .limit = c->size ? c->size - 1 : 0,
                                .fd = -1};
    if (bh_sim_ioctl(at.fd, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) < 0)
        return c->error ? 0 : bh_cu_from_errno(errno);
    if (m.status || c->status)
        return c->status ? 0 : bh_cu_from_status(m.status);
    object_set(y->p, c->object,
               (struct bh_play_object){.handle = m.object,
                                       .client = at.client,
                                       .class = c->what,
                                       .fd = at.home,
                                       .live = true,
                                       .size = c->size});
    return 0;
}

/* --- the rest --- */

/* Numbers of which the recording knows only the size. A mapping is of the object just made, its end of one that ends. */
static int play_escape(const struct player *y, const struct bh_call *c)
{
    _Alignas(8) uint8_t arg[ARG_MAX] = {0};
    struct bh_play *p = y->p;
    const struct bh_play_object *o =
        c->number == RM_UNMAP_MEMORY ? ends_next(y, BH_CALL_ESCAPE, c->number) : object_at(p, p->last);
    const struct place at = place_of(p, 0, c);
    const struct bh_play_object *device = bh_play_find(p, RM_CLASS_DEVICE, at.client, 0);
    struct rm_map_memory m = {.client = at.client,
                              .device = device ? device->handle : 0,
                              .memory = o ? o->handle : 0,
                              .fd = bh_play_file(p, BH_FILE_CTL)};
    int fd = c->number < RM_CARD_INFO ? at.fd : bh_play_file(p, (enum bh_call_file)c->file);
    if (fd < 0 || c->bytes > ARG_MAX)
        return 0;
    for (const struct bh_call *n = y->next; c->number == RM_MAP_MEMORY && n < y->end; n++)
        if (n->kind == BH_CALL_MAP) {
            m.length = n->size;
            break;
        }
    if (c->number == RM_REGISTER_FD)
        memcpy(arg, &m.fd, sizeof(m.fd));
    else if (c->number == RM_CHECK_VERSION) /* two words, then the version */
        (void)snprintf((char *)arg + 8, c->bytes - 8, "%s", y->driver);
    else if (c->number < RM_CARD_INFO || c->number == RM_ALLOC_OS_EVENT || c->number == RM_FREE_OS_EVENT)
        memcpy(arg, &m, c->bytes < sizeof(m) ? c->bytes : sizeof(m));
    (void)bh_sim_ioctl(fd, RM_IOC(c->number, c->bytes), arg);
    return 0;
}

/* Which range a call is about. */
static struct bh_uvm_call uvm_about(const struct player *y, const struct bh_call *c)
{
    struct bh_play *p = y->p;
    struct bh_play_object *o = object_at(p, p->last);
    struct bh_uvm_call w = {
        .uuid = p->uuid, .ctl = bh_play_file(p, BH_FILE_CTL), .client = place_of(p, 0, c).client};
    const struct bh_play_object *channel, *space;
    if (c->number == UVM_CREATE_EXTERNAL_RANGE && o && o->size) {
        o->at = o->at ? o->at : bh_cu_va_take(o->size, 0);
        w.base = o->at;
        w.length = o->size;
    } else if (c->number == UVM_MAP_EXTERNAL && o) {
        w.base = o->at;
        w.length = o->size;
        w.client = o->client;
        w.object = o->handle;
    } else if (c->number == UVM_ALLOC_SEMAPHORE_POOL || c->number == UVM_MAP_DYNAMIC_PARALLELISM) {
        w.base = bh_cu_va_take(BH_CU_PAGE, 0);
        w.length = BH_CU_PAGE;
        *bh_vec_push(&p->loose) = (struct bh_play_range){w.base, w.length};
    } else if (c->number == UVM_REGISTER_GPU_VASPACE && (space = bh_play_find(p, RM_CLASS_VASPACE, 0, 0))) {
        w.object = space->handle;
        w.client = space->client;
    } else if (c->number == UVM_REGISTER_CHANNEL) {
        channel = bh_play_find(p, bh_play_class(p->ampere, RM_CLASS_CHANNEL_HOPPER), 0, p->channels++);
        w.object = channel ? channel->handle : 0;
        w.client = channel ? channel->client : w.client;
    }
    return w;
}

/* The range of the object that ends next; repeated or without such an object, one that has none behind it. */
static struct bh_uvm_call uvm_end(const struct player *y)
{
    struct bh_play *p = y->p;
    struct bh_play_object *o = y->nth + 1 < y->of ? NULL : ends_next(y, BH_CALL_UVM, UVM_FREE);
    struct bh_play_range r = {0};
    if (o && o->at) {
        r = (struct bh_play_range){o->at, o->size};
        o->at = 0;
    } else if (p->loose.n) {
        r = p->loose.at[--p->loose.n];
    }
    if (r.at)
        bh_cu_va_give(r.at, r.size);
    return (struct bh_uvm_call){.base = r.at, .length = r.size, .ctl = -1};
}

/* A process may have several: one in a library that only looks at GPUs, one in a library that uses them. A recording
 * does not tell them apart; what is about memory or channels goes to the one that knows the GPU. */
static int uvm_file(const struct bh_play *p, uint32_t number)
{
    bool starts = number == UVM_INITIALIZE || number == UVM_MM_INITIALIZE || number == UVM_REGISTER_GPU;
    for (const struct bh_play *q = p; q && !starts; q = q->base)
        for (size_t i = q->files.n; i-- > 0;)
            if (q->files.at[i].fd >= 0 && q->files.at[i].has_gpu)
                return q->files.at[i].fd;
    return bh_play_file(p, BH_FILE_UVM);
}

static int play_uvm(const struct player *y, const struct bh_call *c)
{
    int fd = uvm_file(y->p, c->number);
    if (fd < 0)
        return 0;
    if (c->number == UVM_REGISTER_GPU)
        file_of(y->p, fd)->has_gpu = true;
    const struct bh_uvm_call w = c->number == UVM_FREE ? uvm_end(y) : uvm_about(y, c);
    int rc = bh_uvm(fd, c->number, &w);
    if (rc == RM_GPU_IS_LOST)
        return bh_cu_from_status(RM_GPU_IS_LOST);
    return 0;
}

static int (*const players[])(const struct player *, const struct bh_call *) = {
    [BH_CALL_OPEN] = play_open,     [BH_CALL_CLOSE] = play_close,   [BH_CALL_MAP] = play_map,
    [BH_CALL_ESCAPE] = play_escape, [BH_CALL_ALLOC] = play_alloc,   [BH_CALL_CONTROL] = play_control,
    [BH_CALL_FREE] = play_free,     [BH_CALL_DUP] = play_dup,       [BH_CALL_HEAP] = play_heap,
    [BH_CALL_UVM] = play_uvm,       [BH_CALL_MEMORY] = play_memory,
};

int bh_play_calls(struct bh_play *p, const struct bh_recording *r, size_t first, size_t n)
{
    struct player y = {.p = p, .end = r->calls.at + first + n, .driver = r->driver};
    for (const struct bh_call *c = r->calls.at + first; c < y.end; c++) {
        if (c->kind == BH_CALL_PROCESS)
            break; /* what somebody else did meanwhile */
        if (c->kind >= BH_COUNT_OF(players) || !players[c->kind])
            continue;
        y.next = c + 1;
        y.of = c->times ? c->times : 1;
        for (y.nth = 0; y.nth < y.of; y.nth++) {
            int rc = players[c->kind](&y, c);
            if (rc)
                return rc;
        }
    }
    return 0;
}

void bh_play_fini(struct bh_play *p)
{
    for (size_t i = 0; i < p->maps.n; i++)
        if (p->maps.at[i].fd >= 0)
            (void)bh_sim_munmap(p->maps.at[i].fd, p->maps.at[i].at, p->maps.at[i].size, p->maps.at[i].range);
        else
            munmap(p->maps.at[i].at, p->maps.at[i].size);
    for (size_t i = 0; i < p->files.n; i++)
        if (p->files.at[i].fd >= 0)
            close(p->files.at[i].fd);
    for (size_t i = 0; i < p->objects.n; i++)
        if (p->objects.at[i].at)
            bh_cu_va_give(p->objects.at[i].at, p->objects.at[i].size);
    bh_vec_fini(&p->maps);
    bh_vec_fini(&p->files);
    bh_vec_fini(&p->objects);
    bh_vec_fini(&p->loose);
}
