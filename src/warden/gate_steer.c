/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_steer.c - controls that pause, resume and weigh channels; and how a channel is made where its share is held.
 *
 * What is allowed is issued from the copy it was decided on. (A control that goes on is read again by the kernel, and a
 * second thread may have made one of these out of it: the governor sees in the card's own record who runs and who does not,
 * and pauses or resumes again what is not as it should be: governor/escape.h.)
 */
#include "warden/gate_steer.h"

#include "warden/gate_driver.h"

#include <errno.h>

enum steering {
    CHANNELS, /* pauses or resumes channels by name */
    SLICE,    /* of a group */
    NEVER,    /* no program is known to use it */
};

static const struct bh_gate_steered {
    uint32_t command, params;
    enum steering what;
    bool governed; /* only where a share is held */
} steered[] = {
    {RM_CTRL_FIFO_DISABLE_CHANNELS, sizeof(struct rm_disable_channels), CHANNELS, false},
    {RM_CTRL_GROUP_SET_TIMESLICE, sizeof(uint64_t), SLICE, true},
    {RM_CTRL_GROUP_SET_INTERLEAVE, sizeof(uint32_t), NEVER, true},
    {0xa06f0109, sizeof(uint32_t), NEVER, true}, /* the same of a channel */
    {0x0080170f, 0, NEVER, true},                /* slices and more, by channel */
    {0xa06c0110, 0, NEVER, true},                /* a group that nobody else may interrupt */
    {0xa06f0111, 0, NEVER, true},                /* whom the card looks at next */
    {0xa06f0112, 0, NEVER, true},                /* whether a channel is looked at */
    {0x00801705, 0, NEVER, false},               /* channels of anybody's begin to run */
    {0x00801711, 0, NEVER, false},               /* a whole engine stops, ... */
    {0x00801712, 0, NEVER, false},               /* ... and begins again */
    {0x00801714, 0, NEVER, false}, /* channels of anybody's are waited for until they are idle */
};

const struct bh_gate_steered *bh_gate_steered(struct bh_gate *g, const struct rm_control *call)
{
    if (g->link && call->command == RM_CTRL_GROUP_SCHEDULE)
        bh_link_scheduled(g->link, call->client, call->object);
    for (size_t i = 0; i < BH_COUNT_OF(steered); i++)
        if (steered[i].command == call->command && (g->link || !steered[i].governed))
            return &steered[i];
    return NULL;
}

static int answer(const struct bh_gate_call *c, uint64_t at, struct rm_control *call, uint32_t status)
{
    call->status = status;
    return bh_gate_store(c, at, call, sizeof(*call));
}

static int refuse(struct bh_gate *g, const struct bh_gate_call *c, uint64_t at, struct rm_control *call)
{
    g->stats->denied++;
    return answer(c, at, call, RM_INSUFFICIENT_PERMISSIONS);
}

static bool is_lease_s(const struct bh_gate *g, const struct rm_disable_channels *d)
{
    bool own = true;
    for (uint32_t i = 0; own && i < d->count; i++)
        own = bh_ledger_has(g->ledger, d->clients[i], d->clients[i]);
    return own;
}

static int channels(struct bh_gate *g, const struct bh_gate_call *c, uint64_t at, struct rm_control *call)
{
    struct rm_disable_channels d;
    struct rm_control own = *call;
    int rc = bh_gate_fetch(c, call->params, &d, sizeof(d));
    if (rc < 0)
        return rc;
    if (d.count > BH_COUNT_OF(d.clients))
        return answer(c, at, call, RM_INVALID_ARGUMENT);
    if (g->link)
        bh_link_tampered(g->link, bh_ledger_gpu_of(g->ledger, call->client, call->object), 0);
    if (g->link || !is_lease_s(g, &d))
        return refuse(g, c, at, call);
    own.params = (uintptr_t)&d;
    rc = bh_gate_carry_out(g, c, RM_CONTROL, sizeof(own), &own);
    return rc < 0 ? rc : answer(c, at, call, own.status);
}

static int slice(struct bh_gate *g, const struct bh_gate_call *c, uint64_t at, struct rm_control *call)
{
    uint64_t us;
    int rc = bh_gate_fetch(c, call->params, &us, sizeof(us));
    if (rc < 0)
        return rc;
    const uint32_t status = bh_link_slice_wanted(g->link, call->client, call->object, us);
    return status == RM_OK ? answer(c, at, call, status) : refuse(g, c, at, call);
}

int bh_gate_steer(struct bh_gate *g, struct bh_gate_call *c, uint64_t at, struct rm_control *call,
                  const struct bh_gate_steered *what)
{
    if (call->flags) /* they change what the parameters are */
        return answer(c, at, call, RM_NOT_SUPPORTED);
    if (what->what == NEVER) {
        if (g->link)
            bh_link_tampered(g->link, bh_ledger_gpu_of(g->ledger, call->client, call->object), 0);
        return refuse(g, c, at, call);
    }
    if (call->params_size != what->params)
        return answer(c, at, call, RM_INVALID_PARAM_STRUCT);
    return what->what == CHANNELS ? channels(g, c, at, call) : slice(g, c, at, call);
}

/* ---- channels ---- */

/* How long the parameters are differs from one release of the branch to the next, and programs leave it at 0: so as much as
 * there may be is read, and of that only what the driver changed goes back. */
static int take_params(struct bh_gate *g, const struct bh_gate_call *c, uint64_t from, size_t *ret_n)
{
    enum { PAGE = 4096 };
    const size_t page = PAGE - (size_t)(from % PAGE);
    memset(g->params, 0, sizeof(g->params));
    *ret_n = sizeof(g->params);
    int rc = bh_gate_fetch(c, from, g->params, *ret_n);
    if (rc == -EFAULT && page < *ret_n) {
        *ret_n = page; /* it may be the last one */
        rc = bh_gate_fetch(c, from, g->params, *ret_n);
    }
    return rc;
}

struct channel_call {
    struct rm_alloc l;
    bool is_long;
    uint64_t params, rights;
    uint32_t rights_mask;
};

/* The call as it goes back: the tenant's own pointers, and the status. */
static size_t put_back(struct channel_call *a, void *call, uint32_t status)
{
    struct rm_alloc *l = call;
    struct rm_alloc_short *s = call;
    s->object = a->l.object;
    s->params = a->params;
    if (!a->is_long) {
        s->status = status;
        return sizeof(*s);
    }
    l->rights = a->rights;
    l->status = status;
    return sizeof(*l);
}

static int carry_out(struct bh_gate *g, struct bh_gate_call *c, struct channel_call *a, size_t n)
{
    int rc = 0;
    if (a->params)
        a->l.params = (uintptr_t)g->params;
    if (a->rights) {
        rc = bh_gate_fetch(c, a->rights, &a->rights_mask, sizeof(a->rights_mask));
        a->l.rights = (uintptr_t)&a->rights_mask;
    }
    if (rc == 0 && a->l.params_size > n)
        return -EFAULT;
    return rc < 0 ? rc : bh_gate_carry_out(g, c, RM_ALLOC, sizeof(a->l), &a->l);
}

/* RM_OK, or why not: nobody could pause it. */
static uint32_t may_be_made(const struct bh_gate *g, const struct rm_alloc *l)
{
    const uint32_t gpu = bh_ledger_gpu_of(g->ledger, l->client, l->parent);
    if (gpu == UINT32_MAX)
        return RM_INVALID_OBJECT_PARENT; /* made behind the gate, or not at all */
    return bh_link_has_room(g->link, gpu) ? RM_OK : RM_INSUFFICIENT_RESOURCES;
}

/* The governor hears of it before its tenant does. False: there was no room for it here, and it is gone again. */
static bool note_channel(struct bh_gate *g, struct bh_gate_call *c, const struct rm_alloc *l)
{
    bh_gate_note_object(g, c,
                        &(struct bh_ledger_object){.client = l->client,
                                                   .parent = l->parent,
                                                   .object = l->object,
                                                   .class = l->class,
                                                   .gpu = UINT32_MAX});
    const bool known = bh_ledger_has(g->ledger, l->client, l->object);
    if (!known) {
        bh_gate_undo(g, c);
        c->made.object = 0;
    }
    bh_link_look(g->link);
    return known;
}

int bh_gate_channel(struct bh_gate *g, struct bh_gate_call *c, uint64_t at, void *call, size_t size)
{
    uint8_t before[BH_GATE_PARAMS_MAX];
    struct channel_call a = {.is_long = size == sizeof(struct rm_alloc)};
    const struct rm_alloc_short *s = call;
    size_t n = 0, first = 0;
    if (a.is_long)
        memcpy(&a.l, call, sizeof(a.l));
    else
        a.l = (struct rm_alloc){s->client, s->parent,      s->object, s->class, s->params,
                                0,         s->params_size, 0,         0,        0};
    a.params = a.l.params;
    a.rights = a.l.rights;
    const uint32_t status = may_be_made(g, &a.l);
    if (status != RM_OK)
        return bh_gate_store(c, at, call, put_back(&a, call, status));
    int rc = a.params ? take_params(g, c, a.params, &n) : 0;
    if (rc < 0)
        return rc;
    memcpy(before, g->params, n);
    rc = carry_out(g, c, &a, n);
    if (rc < 0)
        return rc;
    if (a.l.status == RM_OK && !note_channel(g, c, &a.l))
        return bh_gate_store(c, at, call, put_back(&a, call, RM_INSUFFICIENT_RESOURCES));
    while (first < n && before[first] == g->params[first])
        first++;
    while (n > first && before[n - 1] == g->params[n - 1])
        n--;
    const struct bh_remote_piece pieces[] = {{at, call, put_back(&a, call, a.l.status)},
                                             {a.params + first, g->params + first, n - first}};
    return bh_gate_store_all(c, pieces, n > first ? 2 : 1);
}
