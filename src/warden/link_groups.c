/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_groups.c - slices of a lease's channel groups: set, looked at, put back, let go.
 *
 * By the tenant's own file, of which the warden has a duplicate, and with the tenant's own rights: they suffice.
 */
#include "warden/link_groups.h"

#include "gpu/abi/rm.h"
#include "warden/rights.h"

#include <errno.h>

enum { YOUNG_MS = 1000, AGAIN_MS = 1000, WARY_MS = 10000, SLACK_US = 100 };

static const struct bh_remote_file *file_of(const struct bh_gate *gate, uint64_t id)
{
    for (size_t i = 0; id && i < gate->remote.files.n; i++)
        if (gate->remote.files.at[i].id == id)
            return &gate->remote.files.at[i];
    return NULL;
}

/* True: the driver has done it. */
static bool control(struct bh_gate *gate, const struct bh_group *at, uint32_t command, void *params,
                    uint32_t n)
{
    const struct bh_remote_file *f = file_of(gate, at->file);
    struct rm_control a = {.client = at->client,
                           .object = at->object,
                           .command = command,
                           .params = (uintptr_t)params,
                           .params_size = n};
    struct bh_rights rights;
    if (!f || f->uid == (uid_t)-1 || bh_rights_lay_down(&gate->rights, f->uid, false, &rights) < 0)
        return false;
    const int rc = gate->driver->ioctl(f->fd, RM_IOC(RM_CONTROL, sizeof(a)), &a);
    bh_rights_take_up(&rights);
    return rc == 0 && a.status == RM_OK;
}

static bool read_slice(struct bh_gate *gate, const struct bh_group *at, uint32_t *ret)
{
    uint64_t us = 0;
    if (!control(gate, at, RM_CTRL_GROUP_GET_TIMESLICE, &us, sizeof(us)))
        return false;
    *ret = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
    return true;
}

static void set_slice(struct bh_gate *gate, struct bh_group *at, uint32_t slice_us, int64_t now_ms)
{
    uint64_t us = slice_us;
    if (!control(gate, at, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)))
        return;
    gate->stats->slices_set++;
    at->set_us = slice_us;
    at->set_ms = now_ms;
    /* It may be rounded. Each time: one who changes it just now makes himself what it reads as, but not for long. */
    if (!read_slice(gate, at, &at->reads_us))
        at->reads_us = slice_us;
}

static void set_level(struct bh_gate *gate, struct bh_group *at, uint32_t level)
{
    uint32_t v = level;
    if (at->level != level + 1 && control(gate, at, RM_CTRL_GROUP_SET_INTERLEAVE, &v, sizeof(v)))
        at->level = level + 1;
}

static uint32_t own_slice(const struct bh_group *at)
{
    return at->own_us ? at->own_us : BH_GROUPS_DEFAULT_US;
}

/*
 * What was given reads as it did then; unless a tenant was quicker even then, which is seen where it is so long that no driver
 * has rounded it. Its own may be rounded once it was set.
 */
static bool is_another(const struct bh_group *at, uint32_t us)
{
    const uint32_t own_us = at->own_us, slack_us = own_us / 10;
    if (at->set_us)
        return us != at->reads_us || us > at->set_us + at->set_us / 10 + SLACK_US;
    return own_us && (us < own_us - slack_us || us > own_us + slack_us);
}

/* anew: it has another slice than it should. Else its own, where that is known and nothing was ever set, needs no setting. */
static void apply(struct bh_groups *g, struct bh_gate *gate, struct bh_group *at, bool anew, int64_t now_ms)
{
    const uint32_t slice_us = g->orders[at->gpu].slice_us; /* 0 also where there is no order */
    if (slice_us || at->set_us || !at->own_us || anew)
        set_slice(gate, at, slice_us ? slice_us : own_slice(at), now_ms);
    if (g->orders[at->gpu].given)
        set_level(gate, at, g->orders[at->gpu].level);
}

static struct bh_group *find(const struct bh_groups *g, uint32_t client, uint32_t object)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].client == client && g->at[i].object == object)
            return &g->at[i];
    return NULL;
}

void bh_groups_fini(struct bh_groups *g)
{
    bh_vec_fini(g);
}

void bh_groups_are(struct bh_groups *g, const struct bh_ledger_runs *runs, struct bh_gate *gate,
                   int64_t now_ms)
{
    struct bh_groups now = *g;
    now.at = NULL;
    now.n = now.cap = 0;
    now.young = false;
    for (size_t i = 0; i < runs->n; i++) {
        const struct bh_ledger_run *r = &runs->at[i];
        if (r->class != RM_CLASS_CHANNEL_GROUP || r->gpu >= BH_LEDGER_GPUS)
            continue;
        const struct bh_group *old = find(g, r->client, r->object);
        struct bh_group at = {
            .client = r->client, .object = r->object, .gpu = r->gpu, .young_ms = now_ms + YOUNG_MS};
        if (old && old->gpu == r->gpu)
            at = *old;
        at.file = r->file;
        if (!old && !g->inherited) /* now: later it may be what its tenant has made of it */
            (void)read_slice(gate, &at, &at.own_us);
        /* What an inherited one has may be another warden's or its tenant's: it is not asked, and set. */
        if (!old)
            apply(&now, gate, &at, false, now_ms);
        now.young = now.young || at.young_ms > now_ms;
        *bh_vec_push(&now) = at;
    }
    bh_vec_fini(g);
    *g = now;
}

void bh_groups_order(struct bh_groups *g, struct bh_gate *gate, const struct bh_govern_slice *order,
                     int64_t now_ms)
{
    if (order->gpu >= BH_LEDGER_GPUS)
        return;
    g->orders[order->gpu].given = true;
    g->orders[order->gpu].slice_us = order->slice_us;
    g->orders[order->gpu].level = order->level;
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].gpu == order->gpu)
            apply(g, gate, &g->at[i], false, now_ms);
}

uint32_t bh_groups_ordered(const struct bh_groups *g, uint32_t gpu)
{
    return gpu < BH_LEDGER_GPUS && g->orders[gpu].given ? g->orders[gpu].slice_us : 0;
}

size_t bh_groups_look(struct bh_groups *g, struct bh_gate *gate, int64_t now_ms,
                      struct bh_groups_found ret[BH_GROUPS_FOUND_MAX])
{
    size_t n = 0;
    g->young = false;
    for (size_t i = 0; i < g->n; i++) {
        struct bh_group *at = &g->at[i];
        uint32_t us;
        const bool young = at->young_ms > now_ms;
        g->young = g->young || young;
        const bool due = young || now_ms < g->wary_ms || now_ms - at->looked_ms >= AGAIN_MS ||
                         (at->set_us && now_ms - at->set_ms >= AGAIN_MS);
        if (!due)
            continue;
        at->looked_ms = now_ms;
        if ((at->set_us || at->own_us) && read_slice(gate, at, &us) && is_another(at, us)) {
            if (n < BH_GROUPS_FOUND_MAX)
                ret[n++] = (struct bh_groups_found){at->gpu, us};
            bh_groups_beware(g, now_ms);
            apply(g, gate, at, true, now_ms);
        } else if (young || now_ms - at->set_ms >= AGAIN_MS) {
            apply(g, gate, at, false, now_ms);
        }
    }
    return n;
}

void bh_groups_beware(struct bh_groups *g, int64_t now_ms)
{
    g->wary_ms = now_ms + WARY_MS;
}

void bh_groups_let_go(struct bh_groups *g, struct bh_gate *gate)
{
    memset(g->orders, 0, sizeof(g->orders));
    for (size_t i = 0; i < g->n; i++) {
        struct bh_group *at = &g->at[i];
        if (!at->set_us)
            continue;
        set_slice(gate, at, own_slice(at), 0);
    }
}

void bh_groups_are_young(struct bh_groups *g, uint32_t client, uint32_t object, int64_t now_ms)
{
    struct bh_group *at = find(g, client, object);
    if (!at)
        return;
    at->young_ms = now_ms + YOUNG_MS;
    g->young = true;
}

bool bh_groups_may_ask(struct bh_groups *g, uint32_t client, uint32_t object)
{
    struct bh_group *at = find(g, client, object);
    const bool may = at && !at->asked;
    if (may)
        at->asked = true;
    return may;
}
