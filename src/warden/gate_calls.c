/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_calls.c - the calls that can obtain video memory, carried out for the tenant.
 *
 * Each is read once, decided on that copy, issued from that copy, and only then written back: what another thread does to
 * the tenant's memory meanwhile changes nothing but what the tenant reads. Pointers that the tenant put into a
 * structure are replaced by our own before the driver sees it, and put back afterwards.
 */
#include "warden/gate_inside.h"

#include "gpu/abi/rm.h"
#include "warden/gate_driver.h"
#include "warden/gate_steer.h"
#include "warden/ledger_walk.h"

#include <errno.h>
#include <unistd.h>

enum class_kind { DEVICE, MEMORY, PLAIN };

static const struct class_row {
    uint32_t class, params;
    enum class_kind kind;
} classes[] = {
#define CLASS(number, params, kind) {number, params, kind},
#include "warden/gate_classes.def"
#undef CLASS
};

static const struct class_row *class_row(uint32_t class)
{
    for (size_t i = 0; i < BH_COUNT_OF(classes); i++)
        if (classes[i].class == class)
            return &classes[i];
    return NULL;
}

/* Of the classes of memory, which can be on the card at all. */
static bool is_local(uint32_t class)
{
    return class == RM_CLASS_MEMORY_LOCAL || class == RM_CLASS_MEMORY_LOCAL_PRIVILEGED ||
           class == RM_CLASS_MEMORY_EXTENDED || class == RM_CLASS_MEMORY_PHYSICAL;
}

static bool is_video(uint32_t class, uint32_t attr, uint32_t flags)
{
    return is_local(class) && !(attr & RM_ATTR_LOCATION) && !(flags & RM_MEMORY_FLAG_VIRTUAL);
}

/* Where it goes would be the driver's choice, and nobody is known to leave it that: it is not made. */
static bool is_anywhere(uint32_t class, uint32_t attr, uint32_t flags)
{
    return is_local(class) && (attr & RM_ATTR_LOCATION) == RM_ATTR_LOCATION &&
           !(flags & RM_MEMORY_FLAG_VIRTUAL);
}

/* What the driver makes of a size: pieces of 64 KiB below 2 MiB, of 2 MiB from there on. */
static uint64_t rounded(uint64_t bytes)
{
    const uint64_t unit = bytes < 2 * BH_MIB ? BH_MIB / 16 : 2 * BH_MIB;
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

/* ---- objects ---- */

/* The driver has made an object for this client, so the client is this file's. */
void bh_gate_note_object(struct bh_gate *g, struct bh_gate_call *c, const struct bh_ledger_object *o)
{
    (void)bh_ledger_client(g->ledger, c->process->pid, c->file.id, o->client);
    bh_ledger_object(g->ledger, o);
    g->remote.files.at[c->file.index].used = true;
    c->made.client = o->client;
    c->made.object = o->object;
}

/*
 * A name is about to go. What calls that were let through have taken shows in the driver's count only while it has a
 * name, and names that are not known here cannot be followed: so the count comes first. False: the lease was ended.
 */
static bool free_begin(struct bh_gate *g, const struct bh_gate_call *c, uint32_t client, uint32_t object)
{
    if (bh_proof_is_own(client))
        return false;
    const bool one = bh_proof_before(&g->proof, c->file.fd, client, object);
    /* 0 is no name: it asks the driver for one. */
    return one || client == 0 || object == 0 || bh_gate_look_behind(g);
}

/* The driver was asked to free it. Its memory is credited when it is proved to be gone (warden/proof.h). */
static void note_freed(struct bh_gate *g, uint32_t client, uint32_t object, bool freed)
{
    if (freed)
        bh_ledger_drop(g->ledger, client, object);
    else
        bh_proof_cancel(&g->proof);
}

static uint32_t free_object(struct bh_gate *g, const struct bh_gate_call *c, uint32_t client, uint32_t object)
{
    struct rm_free f = {.client = client, .object = object};
    (void)bh_proof_before(&g->proof, c->file.fd, client, object);
    int rc = bh_gate_issue(g, c, RM_FREE, sizeof(f), &f);
    note_freed(g, client, object, rc == 0 && f.status == RM_OK);
    return rc < 0 ? RM_INVALID_STATE : f.status;
}

void bh_gate_undo(struct bh_gate *g, struct bh_gate_call *c)
{
    if (c->made.object)
        (void)free_object(g, c, c->made.client, c->made.object);
}

/* ---- memory, in whichever structure it was asked for ---- */

struct grant {
    uint32_t client, parent, class;
    uint32_t gpu;
    uint64_t reserved;
};

/* RM_OK, or the status to answer with: the driver's own, as on a card that is full. */
static uint32_t grant_begin(struct bh_gate *g, struct grant *m, uint64_t bytes)
{
    m->gpu = bh_ledger_gpu_of(g->ledger, m->client, m->parent);
    if (m->gpu == UINT32_MAX)
        return RM_INVALID_OBJECT_PARENT; /* made behind the gate, or not at all: nobody knows whose cap to take it from */
    m->reserved = rounded(bytes);
    if (bh_gate_reserve(g, m->gpu, m->reserved))
        return RM_OK;
    m->reserved = 0;
    return RM_NO_MEMORY;
}

static void grant_cancel(struct bh_gate *g, const struct grant *m)
{
    if (m->reserved)
        bh_ledger_give_back(g->ledger, m->gpu, m->reserved);
}

/* The driver gave `bytes` as `object`. Where that is more than was asked for and does not fit, it is taken back. */
static uint32_t grant_end(struct bh_gate *g, struct bh_gate_call *c, struct grant *m, uint32_t object,
                          uint64_t bytes)
{
    const uint64_t more = bytes > m->reserved ? bytes - m->reserved : 0;
    const bool fits = more == 0 || bh_gate_reserve(g, m->gpu, more);
    m->reserved += fits ? more : 0;
    /* Also what does not fit is held until it is proved to be gone. */
    bh_gate_note_object(g, c,
                        &(struct bh_ledger_object){.client = m->client,
                                                   .parent = m->parent,
                                                   .object = object,
                                                   .class = m->class,
                                                   .gpu = m->gpu,
                                                   .bytes = bytes,
                                                   .reserved = m->reserved});
    if (!fits)
        (void)free_object(g, c, m->client, object);
    return fits ? RM_OK : RM_NO_MEMORY;
}

/* ---- RM_ALLOC ---- */

/* Both forms: they start alike, and differ in where the rest is. */
struct alloc {
    union {
        struct rm_alloc l;
        struct rm_alloc_short s;
    } u;
    struct rm_alloc was; /* as it was read */
    size_t size;
    uint64_t params, rights; /* the tenant's pointers */
    const struct class_row *row;
    uint32_t rights_mask;
    const void *at_hand; /* its parameters, where they were read together with it; NULL: not */
};

enum { SPAN_MAX = 2048 };

static uint32_t *alloc_status(struct alloc *a)
{
    return a->size == sizeof(a->u.l) ? &a->u.l.status : &a->u.s.status;
}

static uint32_t alloc_params_size(const struct alloc *a)
{
    return a->size == sizeof(a->u.l) ? a->u.l.params_size : a->u.s.params_size;
}

/* The tenant's own pointers go back into it. */
static void alloc_restore(struct alloc *a)
{
    a->u.s.params = a->params;
    if (a->size == sizeof(a->u.l))
        a->u.l.rights = a->rights;
}

static int alloc_refuse(const struct bh_gate_call *c, uint64_t arg, struct alloc *a, uint32_t status)
{
    *alloc_status(a) = status;
    alloc_restore(a);
    return bh_gate_store(c, arg, &a->u, a->size);
}

/*
 * Parameters lie on the caller's stack like the structure itself, at the same distance each time. So what is between is read
 * along, once; that they lie there is seen in the copy.
 */
static int alloc_fetch(const struct bh_gate_call *c, uint64_t arg, struct alloc *a, uint8_t span[SPAN_MAX])
{
    const int64_t apart = c->process->params_apart;
    const uint64_t params = arg + (uint64_t)apart, from = apart < 0 ? params : arg;
    const size_t n = apart < 0 ? (size_t)-apart + a->size : (size_t)apart + sizeof(struct rm_memory_params);
    if (apart == 0 || n > SPAN_MAX || bh_gate_fetch(c, from, span, n) < 0)
        return bh_gate_fetch(c, arg, &a->u, a->size);
    memcpy(&a->u, span + (arg - from), a->size);
    if (a->u.s.params == params)
        a->at_hand = span + (params - from);
    return 0;
}

/* Those of memory alone: of the others there is one now and then. */
static void note_apart(const struct bh_gate_call *c, uint64_t arg, const struct alloc *a)
{
    const uint64_t up = a->params - arg, down = arg - a->params;
    if (a->row->params == sizeof(struct rm_memory_params))
        c->process->params_apart = up >= a->size && up < SPAN_MAX ? (int32_t)up
                                   : down >= sizeof(struct rm_memory_params) && down < SPAN_MAX
                                       ? -(int32_t)down
                                       : 0;
}

/* Copies what its pointers lead to and puts ours in their place. */
static int alloc_take(struct bh_gate *g, const struct bh_gate_call *c, uint64_t arg, struct alloc *a)
{
    int rc = 0;
    _Static_assert(sizeof(g->params) >= sizeof(struct rm_memory_params), "the parameters do not fit");
    a->params = a->u.s.params;
    if (a->params && a->at_hand && a->row->params <= sizeof(struct rm_memory_params))
        memcpy(g->params, a->at_hand, a->row->params);
    else if (a->params)
        rc = bh_gate_fetch(c, a->params, g->params, a->row->params);
    if (a->params) {
        note_apart(c, arg, a);
        a->u.s.params = (uintptr_t)g->params;
    }
    if (rc == 0 && a->size == sizeof(a->u.l) && a->u.l.rights) {
        a->rights = a->u.l.rights;
        rc = bh_gate_fetch(c, a->rights, &a->rights_mask, sizeof(a->rights_mask));
        a->u.l.rights = (uintptr_t)&a->rights_mask;
    }
    return rc;
}

/* Parameters and structure go back as the driver left them; what it left as it was is there already. */
static int alloc_finish(struct bh_gate *g, const struct bh_gate_call *c, uint64_t arg, struct alloc *a)
{
    alloc_restore(a);
    const struct bh_remote_piece pieces[] = {{a->params, g->params, a->row->params}, {arg, &a->u, a->size}};
    const size_t first = a->params ? 0 : 1, last = memcmp(&a->u, &a->was, a->size) ? 2 : 1;
    return bh_gate_store_all(c, pieces + first, last - first);
}

/* A card may be full of what this lease has freed or closed and the warden still has: then that goes first. */
static int alloc_obtain(struct bh_gate *g, const struct bh_gate_call *c, struct alloc *a,
                        const struct rm_memory_params *p)
{
    const struct alloc asked = *a;
    /* Without asking whether anybody waits: if not, it is found out when the answer is written, and undone. */
    int rc = bh_gate_issue(g, c, RM_ALLOC, a->size, &a->u);
    if (rc < 0 || *alloc_status(a) != RM_NO_MEMORY)
        return rc;
    const bool closed = bh_gate_close_lost(g, false);
    if (!bh_proof_settle(&g->proof) && !closed)
        return rc;
    a->u = asked.u;
    if (a->params)
        memcpy(g->params, p, sizeof(*p));
    return bh_gate_carry_out(g, c, RM_ALLOC, a->size, &a->u);
}

static int alloc_memory_class(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct alloc *a)
{
    struct rm_memory_params p = {0};
    struct grant m = {.client = a->u.s.client, .parent = a->u.s.parent, .class = a->u.s.class};
    if (a->params)
        memcpy(&p, g->params, sizeof(p));
    if (a->params && is_anywhere(m.class, p.attr, p.flags))
        return alloc_refuse(c, arg, a, RM_INVALID_ARGUMENT);
    const bool video = a->params && is_video(m.class, p.attr, p.flags);
    uint32_t status = video ? grant_begin(g, &m, p.size) : RM_OK;
    if (status != RM_OK)
        return alloc_refuse(c, arg, a, status);
    int rc = alloc_obtain(g, c, a, &p);
    if (rc < 0 || *alloc_status(a) != RM_OK) {
        grant_cancel(g, &m);
        return rc < 0 ? rc : alloc_finish(g, c, arg, a);
    }
    memcpy(&p, g->params, sizeof(p));
    if (video)
        status = grant_end(g, c, &m, a->u.s.object, p.size);
    else
        bh_gate_note_object(g, c,
                            &(struct bh_ledger_object){.client = m.client,
                                                       .parent = m.parent,
                                                       .object = a->u.s.object,
                                                       .class = m.class,
                                                       .gpu = UINT32_MAX});
    return status == RM_OK ? alloc_finish(g, c, arg, a) : alloc_refuse(c, arg, a, status);
}

static int alloc_plain(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct alloc *a)
{
    struct bh_ledger_object o = {
        .client = a->u.s.client, .parent = a->u.s.parent, .class = a->u.s.class, .gpu = UINT32_MAX};
    struct rm_device_params device = {0};
    if (a->params && a->row->kind == DEVICE)
        memcpy(&device, g->params, sizeof(device));
    if (a->row->kind == DEVICE)
        o.gpu = device.device;
    /* What cannot be counted is not given out. */
    if (a->row->kind == DEVICE && !g->driver->counts(g->counter, o.gpu))
        return alloc_refuse(c, arg, a, o.gpu < g->n_gpus ? RM_GPU_IS_LOST : RM_INVALID_DEVICE);
    int rc = bh_gate_carry_out(g, c, RM_ALLOC, a->size, &a->u);
    if (rc < 0)
        return rc;
    if (*alloc_status(a) == RM_OK) {
        o.object = a->u.s.object;
        bh_gate_note_object(g, c, &o);
        if (o.class == RM_CLASS_CHANNEL_GROUP)
            bh_link_look(g->link); /* what slice it has is read before its tenant hears of it */
    }
    return alloc_finish(g, c, arg, a);
}

static int do_alloc(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size)
{
    uint8_t span[SPAN_MAX];
    struct alloc a = {.size = size};
    int rc = alloc_fetch(c, arg, &a, span);
    if (rc < 0)
        return rc;
    memcpy(&a.was, &a.u, size);
    a.params = a.u.s.params;
    a.rights = size == sizeof(a.u.l) ? a.u.l.rights : 0;
    a.row = class_row(a.u.s.class);
    if (bh_proof_is_own(a.u.s.client))
        return alloc_refuse(c, arg, &a, RM_INVALID_CLIENT);
    /* Who has one registers all that it obtains there, and takes it back when it frees: two more calls for each. CUDA does
     * without, where the driver says that there is no such thing. No wall: one who races another class with it has it. */
    if (a.u.s.class == RM_CLASS_THIRD_PARTY && !g->config->rdma)
        return alloc_refuse(c, arg, &a, RM_NOT_SUPPORTED);
    if (!a.row && g->link && bh_ledger_is_channel(a.u.s.class))
        return bh_gate_channel(g, c, arg, &a.u, size);
    if (!a.row) {
        /* A client whose name the tenant picks: it may be that of one who has ended just now. */
        if (a.u.s.object && (a.u.s.class == RM_CLASS_CLIENT || a.u.s.class == RM_CLASS_ROOT))
            (void)bh_gate_close_lost(g, true);
        return BH_GATE_CONTINUE;
    }
    if (alloc_params_size(&a) && alloc_params_size(&a) != a.row->params)
        return alloc_refuse(c, arg, &a, RM_INVALID_PARAM_STRUCT);
    rc = alloc_take(g, c, arg, &a);
    if (rc < 0)
        return rc;
    return a.row->kind == MEMORY ? alloc_memory_class(g, c, arg, &a) : alloc_plain(g, c, arg, &a);
}

/* ---- the other calls ---- */

static int do_alloc_memory(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size)
{
    struct rm_alloc_memory a;
    int rc = bh_gate_fetch(c, arg, &a, size);
    if (rc < 0)
        return rc;
    const struct class_row *row = class_row(a.class);
    if (!row || row->kind != MEMORY || !is_local(a.class))
        return BH_GATE_CONTINUE; /* its pages, or its descriptor, are the tenant's */
    const int32_t fd = a.fd;
    struct grant m = {.client = a.client, .parent = a.parent, .class = a.class};
    a.status = bh_proof_is_own(a.client) ? RM_INVALID_CLIENT
               : a.limit == UINT64_MAX   ? RM_INVALID_LIMIT
                                         : grant_begin(g, &m, a.limit + 1);
    if (a.status != RM_OK)
        return bh_gate_store(c, arg, &a, size);
    a.fd = -1;
    rc = bh_gate_carry_out(g, c, RM_ALLOC_MEMORY, size, &a);
    a.fd = fd;
    if (rc == 0 && a.status == RM_OK)
        a.status = grant_end(g, c, &m, a.object, a.limit + 1);
    else
        grant_cancel(g, &m);
    return rc < 0 ? rc : bh_gate_store(c, arg, &a, size);
}

static int do_free(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size)
{
    struct rm_free f;
    int rc = bh_gate_fetch(c, arg, &f, size);
    if (rc < 0)
        return rc;
    const struct rm_free was = f;
    if (!free_begin(g, c, f.client, f.object))
        return -EPERM;
    rc = bh_gate_carry_out(g, c, RM_FREE, size, &f);
    note_freed(g, f.client, f.object, rc == 0 && f.status == RM_OK);
    /* Mostly it says RM_OK before and after. */
    return rc < 0 || memcmp(&f, &was, size) == 0 ? rc : bh_gate_store(c, arg, &f, size);
}

/* Below what the gate has not seen being made nothing is made: it could be freed together with that, unseen as well. */
static bool is_known(const struct bh_gate *g, uint32_t client, uint32_t object)
{
    return object == client || bh_ledger_has(g->ledger, client, object);
}

/*
 * Memory of somebody outside of this lease is charged there, and would be counted here when its owner lets go. What is
 * no memory may be had: a client of MPS has a channel group of its server's.
 */
static bool is_foreign_memory(struct bh_gate *g, const struct bh_gate_call *c, const struct rm_dup *d)
{
    const struct bh_ledger_piece piece = {
        .client = d->client, .object = d->object, .gpu = bh_ledger_gpu_of(g->ledger, d->client, d->parent)};
    return !bh_ledger_has(g->ledger, d->source_client, d->source_client) && piece.gpu != UINT32_MAX &&
           bh_proof_is_memory(&g->proof, c->file.fd, &piece);
}

static void note_dup(struct bh_gate *g, struct bh_gate_call *c, struct rm_dup *d)
{
    const struct bh_ledger_object o = {
        .client = d->client, .parent = d->parent, .object = d->object, .gpu = UINT32_MAX};
    (void)bh_ledger_client(g->ledger, c->process->pid, c->file.id, d->client);
    g->remote.files.at[c->file.index].used = true;
    if (is_foreign_memory(g, c, d)) {
        (void)free_object(g, c, d->client, d->object);
        g->stats->denied++;
        d->status = RM_INSUFFICIENT_PERMISSIONS;
        return;
    }
    bh_ledger_dup(g->ledger, &o, d->source_client, d->source_object);
    c->made.client = d->client;
    c->made.object = d->object;
}

static int do_dup(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size)
{
    struct rm_dup d;
    int rc = bh_gate_fetch(c, arg, &d, size);
    if (rc < 0)
        return rc;
    if (bh_proof_is_own(d.client) || bh_proof_is_own(d.source_client))
        d.status = RM_INVALID_CLIENT;
    else if (!is_known(g, d.client, d.parent))
        d.status = RM_INVALID_OBJECT_PARENT;
    else
        rc = bh_gate_carry_out(g, c, RM_DUP_OBJECT, size, &d);
    if (rc < 0)
        return rc;
    if (d.status == RM_OK)
        note_dup(g, c, &d);
    return bh_gate_store(c, arg, &d, size);
}

static int heap_alloc(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct rm_vid_heap *h)
{
    struct grant m = {.client = h->client, .parent = h->parent, .class = RM_CLASS_MEMORY_LOCAL};
    const bool video = is_video(m.class, h->attr, h->flags);
    h->status = bh_proof_is_own(m.client)                 ? RM_INVALID_CLIENT
                : is_anywhere(m.class, h->attr, h->flags) ? RM_INVALID_ARGUMENT
                : video                                   ? grant_begin(g, &m, h->size)
                                                          : RM_OK;
    if (h->status != RM_OK)
        return bh_gate_store(c, arg, h, sizeof(*h));
    int rc = bh_gate_carry_out(g, c, RM_VID_HEAP_CONTROL, sizeof(*h), h);
    if (rc == 0 && h->status == RM_OK && video)
        h->status = grant_end(g, c, &m, h->memory, h->size);
    else
        grant_cancel(g, &m);
    return rc < 0 ? rc : bh_gate_store(c, arg, h, sizeof(*h));
}

static int heap_free(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct rm_vid_heap *h)
{
    if (!free_begin(g, c, h->client, h->memory))
        return -EPERM;
    int rc = bh_gate_carry_out(g, c, RM_VID_HEAP_CONTROL, sizeof(*h), h);
    note_freed(g, h->client, h->memory, rc == 0 && h->status == RM_OK);
    return rc < 0 ? rc : bh_gate_store(c, arg, h, sizeof(*h));
}

static int heap_deny(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct rm_vid_heap *h)
{
    (void)c;
    (void)arg;
    (void)h;
    g->stats->denied++;
    return -EPERM;
}

static int do_heap(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size)
{
    /* Three more functions obtain memory, by shapes that no program is known to use; the rest asks questions. */
    enum { TILED = 6, SIZE_RANGE = 14, HARDWARE = 19 };
    static const struct {
        uint32_t function;
        int (*fn)(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, struct rm_vid_heap *h);
    } functions[] = {{RM_HEAP_ALLOC_SIZE, heap_alloc},
                     {RM_HEAP_FREE, heap_free},
                     {SIZE_RANGE, heap_deny},
                     {TILED, heap_deny},
                     {HARDWARE, heap_deny}};
    struct rm_vid_heap h;
    int rc = bh_gate_fetch(c, arg, &h, size);
    for (size_t i = 0; rc == 0 && i < BH_COUNT_OF(functions); i++)
        if (functions[i].function == h.function)
            return functions[i].fn(g, c, arg, &h);
    return rc < 0 ? rc : BH_GATE_CONTINUE;
}

/* ---- which call it is ---- */

typedef int call_fn(struct bh_gate *g, struct bh_gate_call *c, uint64_t arg, size_t size);

static const struct {
    uint32_t number, size; /* size 0: any */
    call_fn *fn;           /* NULL: denied */
} calls[] = {
    {RM_ALLOC, sizeof(struct rm_alloc), do_alloc},
    {RM_ALLOC, sizeof(struct rm_alloc_short), do_alloc},
    {RM_FREE, sizeof(struct rm_free), do_free},
    {RM_ALLOC_MEMORY, sizeof(struct rm_alloc_memory), do_alloc_memory},
    {RM_DUP_OBJECT, sizeof(struct rm_dup), do_dup},
    {RM_VID_HEAP_CONTROL, sizeof(struct rm_vid_heap), do_heap},
    {RM_ALLOC_OBJECT, 0, NULL}, /* an older way, which nothing uses */
    {RM_XFER_CMD, 0, NULL},     /* another command behind a pointer */
};

static bool is_rm(uint8_t kind)
{
    return kind == BH_FILE_CTL || kind == BH_FILE_GPU;
}

/*
 * On a file that takes no such calls. One in the very form of the driver's is not let through: the number could be
 * another file's by the time the call runs. (In another form it may be another driver's own; what would come of it is
 * seen in the driver's count.)
 */
static int elsewhere(uint32_t cmd)
{
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++)
        if (calls[i].size && cmd == RM_IOC(calls[i].number, calls[i].size))
            return -ENOTTY;
    return BH_GATE_CONTINUE;
}

/* Another thread may make another call of it yet. */
static void note_continued(struct bh_gate *g, const struct bh_gate_call *c)
{
    g->remote.files.at[c->file.index].used = true;
}

int bh_gate_ioctl(struct bh_gate *g, struct bh_gate_call *c, uint32_t cmd, uint64_t arg)
{
    bool known = false;
    if (!is_rm(c->file.what.kind))
        return elsewhere(cmd);
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        if (calls[i].number != RM_IOC_NUMBER(cmd))
            continue;
        known = true;
        if (!calls[i].fn || (cmd & 0xff00) != (RM_IOC(0, 0) & 0xff00)) {
            g->stats->denied++;
            return -EPERM;
        }
        if (calls[i].size == RM_IOC_SIZE(cmd)) {
            const int rc = calls[i].fn(g, c, arg, calls[i].size);
            if (rc == BH_GATE_CONTINUE)
                note_continued(g, c);
            return rc;
        }
    }
    return known ? -EINVAL : BH_GATE_CONTINUE; /* the driver says the same of a size that it does not know */
}

int bh_gate_mmap(struct bh_gate *g, struct bh_gate_call *c, uint64_t length)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (length == 0)
        return BH_GATE_CONTINUE; /* which the kernel refuses */
    if (c->file.what.kind != BH_FILE_UVM)
        return bh_gate_let_map(g, c->process, c->tid) ? BH_GATE_CONTINUE : -ENOMEM;
    if (length > UINT64_MAX - page)
        return -ENOMEM;
    return bh_gate_map(g, c, (length + page - 1) / page * page) ? BH_GATE_CONTINUE : -ENOMEM;
}
