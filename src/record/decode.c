/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c - which bytes of which structure say what.
 *
 * Only shapes leave this file: sizes, classes, commands, flags, statuses. A structure of another size than
 * the one that is known (another driver's) is kept as what its number and size say, and no more.
 */
#include "record/decode.h"

#include "base/str.h"
#include "base/units.h"
#include "gpu/abi/rm.h"

#include <stdio.h>

/* --- objects --- */

void bh_objects_fini(struct bh_objects *o)
{
    free(o->slots);
    *o = (struct bh_objects){0};
}

static struct bh_object_slot *slot_of(struct bh_object_slot *slots, size_t cap, uint32_t client,
                                      uint32_t handle)
{
    uint64_t key = (uint64_t)client << 32 | handle;
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (cap - 1);
    while (slots[i].used && (slots[i].client != client || slots[i].handle != handle))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static void objects_grow(struct bh_objects *o)
{
    size_t cap = o->cap ? o->cap * 2 : 256;
    struct bh_object_slot *slots = bh_alloc(cap, sizeof(*slots));
    for (size_t i = 0; i < o->cap; i++)
        if (o->slots[i].used)
            *slot_of(slots, cap, o->slots[i].client, o->slots[i].handle) = o->slots[i];
    free(o->slots);
    o->slots = slots;
    o->cap = cap;
}

static const struct bh_object_slot *object_find(const struct bh_objects *o, uint32_t client, uint32_t handle)
{
    static const struct bh_object_slot NONE;
    return o->cap ? slot_of(o->slots, o->cap, client, handle) : &NONE;
}
static uint32_t object_number(const struct bh_objects *o, uint32_t client, uint32_t handle)
{
    return object_find(o, client, handle)->number;
}

static uint32_t object_add(struct bh_objects *o, uint32_t client, uint32_t handle, uint32_t class)
{
    if ((o->n + 1) * 2 > o->cap)
        objects_grow(o);
    struct bh_object_slot *s = slot_of(o->slots, o->cap, client, handle);
    o->n += !s->used;
    *s = (struct bh_object_slot){client, handle, ++o->made, class, true};
    return s->number;
}

/* A slot stays where it is, so that those behind it are still found. A client takes all of its objects
 * along. */
static void object_drop(struct bh_objects *o, uint32_t client, uint32_t handle)
{
    for (size_t i = 0; client == handle && i < o->cap; i++)
        if (o->slots[i].client == client)
            o->slots[i].number = 0;
    if (o->cap)
        slot_of(o->slots, o->cap, client, handle)->number = 0;
}

/* --- the control and GPU files --- */

/*
 * Classes of memory whose params are struct rm_memory_params. CUDA leaves the size of the params at 0 where
 * the driver knows it from the class; 0x70 has another structure as well, so there the size must say which it
 * is.
 */
static bool has_memory_params(uint32_t class, uint32_t params_size)
{
    static const uint32_t CLASSES[] = {
        RM_CLASS_MEMORY_SYSTEM,   RM_CLASS_MEMORY_LOCAL_PRIVILEGED, RM_CLASS_MEMORY_LOCAL,
        RM_CLASS_MEMORY_EXTENDED, RM_CLASS_MEMORY_VIRTUAL,          RM_CLASS_MEMORY_PHYSICAL,
        RM_CLASS_VIRTUAL_RANGE,
    };
    bool by_class = params_size == 0 && class != RM_CLASS_MEMORY_VIRTUAL;
    for (size_t i = 0; i < BH_COUNT_OF(CLASSES); i++)
        if (CLASSES[i] == class)
            return by_class || params_size == sizeof(struct rm_memory_params);
    return false;
}

/* A root names itself: it is its own client. */
static uint32_t made(struct bh_objects *o, uint32_t client, uint32_t object, uint32_t class, uint32_t status)
{
    bool root = class == RM_CLASS_ROOT || class == RM_CLASS_CLIENT;
    return status == RM_OK ? object_add(o, root ? object : client, object, class) : 0;
}

static void decode_alloc(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_alloc a = {0};
    if (ret->bytes == sizeof(struct rm_alloc_short)) {
        struct rm_alloc_short s;
        memcpy(&s, in->bytes, sizeof(s));
        a = (struct rm_alloc){.client = s.client,
                              .parent = s.parent,
                              .object = s.object,
                              .class = s.class,
                              .params = s.params,
                              .params_size = s.params_size,
                              .status = s.status};
    } else {
        memcpy(&a, in->bytes, sizeof(a));
    }
    struct rm_memory_params m;
    ret->kind = BH_CALL_ALLOC;
    ret->what = a.class;
    ret->params = a.params_size;
    ret->flags = a.flags;
    ret->status = a.status;
    ret->parent = object_number(o, a.client, a.parent);
    if (!in->error)
        ret->object = made(o, a.client, a.object, a.class, a.status);
    if (has_memory_params(a.class, a.params_size) && a.params && in->read(in->ctx, a.params, &m, sizeof(m))) {
        ret->memory = true;
        ret->size = m.size;
        ret->attr = m.attr;
        ret->attr2 = m.attr2;
        ret->mflags = m.flags;
    }
}

static void decode_control(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_control c;
    memcpy(&c, in->bytes, sizeof(c));
    ret->kind = BH_CALL_CONTROL;
    ret->what = c.command;
    ret->params = c.params_size;
    ret->flags = c.flags;
    ret->status = c.status;
    ret->object = object_number(o, c.client, c.object);
}

static void decode_free(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_free f;
    memcpy(&f, in->bytes, sizeof(f));
    ret->kind = BH_CALL_FREE;
    ret->status = f.status;
    ret->object = object_number(o, f.client, f.object);
    if (!in->error && f.status == RM_OK)
        object_drop(o, f.client, f.object);
}

static void decode_dup(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_dup d;
    memcpy(&d, in->bytes, sizeof(d));
    struct bh_object_slot source = *object_find(o, d.source_client, d.source_object);
    ret->kind = BH_CALL_DUP;
    ret->what = source.number ? source.class : 0;
    ret->source = source.number;
    ret->flags = d.flags;
    ret->status = d.status;
    ret->parent = object_number(o, d.client, d.parent);
    if (!in->error && d.status == RM_OK)
        ret->object = object_add(o, d.client, d.object, ret->what);
}

static void decode_heap(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_vid_heap h;
    memcpy(&h, in->bytes, sizeof(h));
    ret->kind = BH_CALL_HEAP;
    ret->what = h.function;
    ret->status = h.status;
    ret->parent = object_number(o, h.client, h.parent);
    bool done = !in->error && h.status == RM_OK;
    if (h.function == RM_HEAP_ALLOC_SIZE) {
        ret->memory = true;
        ret->size = h.size;
        ret->attr = h.attr;
        ret->attr2 = h.attr2;
        ret->mflags = h.flags;
        ret->object = done ? object_add(o, h.client, h.memory, RM_CLASS_MEMORY_LOCAL) : 0;
    } else if (h.function == RM_HEAP_FREE) {
        ret->object = object_number(o, h.client, h.memory);
        if (done)
            object_drop(o, h.client, h.memory);
    }
}

static void decode_memory(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    struct rm_alloc_memory a;
    memcpy(&a, in->bytes, sizeof(a));
    ret->kind = BH_CALL_MEMORY;
    ret->what = a.class;
    ret->flags = a.flags;
    ret->status = a.status;
    ret->memory = true;
    ret->size = a.limit + 1;
    ret->parent = object_number(o, a.client, a.parent);
    if (!in->error)
        ret->object = made(o, a.client, a.object, a.class, a.status);
}

static const struct {
    uint32_t number, bytes;
    void (*decode)(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret);
} NUMBERS[] = {
    {RM_ALLOC, sizeof(struct rm_alloc), decode_alloc},
    {RM_ALLOC, sizeof(struct rm_alloc_short), decode_alloc},
    {RM_CONTROL, sizeof(struct rm_control), decode_control},
    {RM_FREE, sizeof(struct rm_free), decode_free},
    {RM_DUP_OBJECT, sizeof(struct rm_dup), decode_dup},
    {RM_VID_HEAP_CONTROL, sizeof(struct rm_vid_heap), decode_heap},
    {RM_ALLOC_MEMORY, sizeof(struct rm_alloc_memory), decode_memory},
};

/* Structures without a shape of their own that carry a status all the same. */
static const struct {
    uint32_t number, bytes, status;
} ESCAPES[] = {
    {RM_MAP_MEMORY, sizeof(struct rm_map_memory), offsetof(struct rm_map_memory, status)},
    {RM_SHARE, 24, 20},
    {RM_UNMAP_MEMORY, 32, 24},
    {0x5e /* update of a mapping's address */, 40, 32},
    {RM_ALLOC_OS_EVENT, 16, 12},
    {RM_FREE_OS_EVENT, 16, 12},
};

static uint32_t u32_at(const struct bh_ioctl *in, size_t at)
{
    uint32_t v;
    memcpy(&v, (const char *)in->bytes + at, sizeof(v));
    return v;
}

static void decode_rm(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    ret->kind = BH_CALL_ESCAPE;
    ret->number = RM_IOC_NUMBER(in->cmd);
    ret->bytes = RM_IOC_SIZE(in->cmd);
    if (in->n < ret->bytes)
        return;
    for (size_t i = 0; i < BH_COUNT_OF(NUMBERS); i++) {
        if (NUMBERS[i].number == ret->number && NUMBERS[i].bytes == ret->bytes) {
            NUMBERS[i].decode(o, in, ret);
            break;
        }
    }
    for (size_t i = 0; i < BH_COUNT_OF(ESCAPES); i++)
        if (ESCAPES[i].number == ret->number && ESCAPES[i].bytes == ret->bytes)
            ret->status = u32_at(in, ESCAPES[i].status);
}

/* --- the UVM files: plain numbers; where their structures keep the status --- */

static const struct {
    uint32_t number, status;
} UVM[] = {
#define UVM_CALL(name, number, bytes, status) {number, status},
#include "gpu/abi/uvm.def"
#undef UVM_CALL
};

static bool uvm_status(uint8_t file, uint32_t cmd, size_t *ret)
{
    for (size_t i = 0; file == BH_FILE_UVM && i < BH_COUNT_OF(UVM); i++) {
        if (UVM[i].number == cmd) {
            *ret = UVM[i].status;
            return true;
        }
    }
    return false;
}

static bool is_uvm(uint8_t file)
{
    return file == BH_FILE_UVM || file == BH_FILE_UVM_TOOLS;
}

size_t bh_ioctl_bytes(uint8_t file, uint32_t cmd)
{
    size_t at;
    if (is_uvm(file))
        return uvm_status(file, cmd, &at) ? at + sizeof(uint32_t) : 0;
    return RM_IOC_SIZE(cmd);
}

void bh_ioctl_decode(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret)
{
    size_t at;
    *ret = (struct bh_call){.file = in->file, .gpu = in->gpu, .error = in->error, .times = 1};
    if (is_uvm(in->file)) {
        ret->kind = BH_CALL_UVM;
        ret->number = in->cmd;
        if (uvm_status(in->file, in->cmd, &at) && in->n >= at + sizeof(uint32_t))
            ret->status = u32_at(in, at);
    } else {
        decode_rm(o, in, ret);
    }
    if (in->error) /* what stands in the structure was not written by the driver */
        ret->status = 0;
}

/* --- files --- */

bool bh_call_file(const char *dev, const char *path, uint8_t *ret_file, uint8_t *ret_gpu)
{
    static const struct {
        const char *name;
        enum bh_call_file file;
    } NAMES[] = {
        {"nvidiactl", BH_FILE_CTL},
        {"nvidia-uvm", BH_FILE_UVM},
        {"nvidia-uvm-tools", BH_FILE_UVM_TOOLS},
        {"nvidia-modeset", BH_FILE_MODESET},
    };
    size_t n = strlen(dev);
    uint64_t minor;
    if (!bh_str_starts(path, dev) || path[n] != '/' || !bh_str_starts(path + n + 1, "nvidia"))
        return false;
    const char *name = path + n + 1;
    *ret_gpu = 0;
    *ret_file = bh_str_starts(name, "nvidia-caps/") ? BH_FILE_CAP : BH_FILE_OTHER;
    for (size_t i = 0; i < BH_COUNT_OF(NAMES); i++)
        if (strcmp(name, NAMES[i].name) == 0)
            *ret_file = (uint8_t)NAMES[i].file;
    if (bh_uint_parse(name + strlen("nvidia"), UINT8_MAX, &minor, NULL) == BH_OK) {
        *ret_file = BH_FILE_GPU;
        *ret_gpu = (uint8_t)minor;
    }
    return true;
}
