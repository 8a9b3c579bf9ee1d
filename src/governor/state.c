/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - leases and their channels.
 *
 * A client's handle is the driver's own choice and nobody else's, so a channel is known by client and name alone; on which
 * GPU and by which process it was made is what was told with it.
 */
#include "governor/state.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

#define OWN_OLD_NS (UINT64_C(2000) * 1000 * 1000)
enum { WEIGHT_MAX = 10000, WHOLE_PERMILLE = 1000, NUMBERS = 1 << 22 /* past every process's */ };

/* ---- leases ---- */

static void free_seat(struct bh_seat *s)
{
    bh_vec_fini(&s->channels);
    bh_vec_fini(&s->pids);
    bh_vec_fini(&s->all);
}

static void free_lease(struct bh_governed *l)
{
    for (size_t i = 0; i < l->seats.n; i++)
        free_seat(&l->seats.at[i]);
    bh_vec_fini(&l->seats);
    bh_vec_fini(&l->pids);
    bh_vec_fini(&l->coming);
    free(l);
}

void bh_state_fini(struct bh_state *s)
{
    for (size_t i = 0; i < s->n; i++)
        free_lease(s->at[i]);
    s->n = 0;
}

struct bh_governed *bh_state_known(const struct bh_state *s, uint64_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i]->id == id)
            return s->at[i];
    return NULL;
}

struct bh_governed *bh_state_find(const struct bh_state *s, uint64_t id)
{
    struct bh_governed *l = bh_state_known(s, id);
    return l && l->server != BH_STATE_NOBODY ? l : NULL;
}

int bh_state_meant(const struct bh_state *s, const struct bh_govern_order *o, struct bh_governed **ret,
                   struct bh_err *err)
{
    struct bh_governed *found = o->lease ? bh_state_find(s, o->lease) : NULL;
    if (o->lease && !found)
        return bh_fail(err, BH_NOT_FOUND,
                       "no lease %" PRIu64 " shares a GPU here; bulkhead shares lists them", o->lease);
    for (size_t i = 0; !o->lease && i < s->n; i++) {
        struct bh_governed *l = s->at[i];
        if (l->server == BH_STATE_NOBODY || !o->name[0] || !bh_str_eq(l->name, o->name))
            continue;
        if (found)
            return bh_fail(err, BH_CONFLICT,
                           "leases %" PRIu64 " and %" PRIu64 " are both named '%s'; say which by number",
                           found->id, l->id, o->name);
        found = l;
    }
    if (!found)
        return bh_fail(err, BH_NOT_FOUND, "no lease named '%s' shares a GPU here; bulkhead shares lists them",
                       o->name);
    *ret = found;
    return BH_OK;
}

/* Names are shown on terminals. */
static bool is_text(const char *s, size_t size)
{
    const size_t n = strnlen(s, size);
    for (size_t i = 0; i < n;) {
        const size_t len = bh_utf8_len((const unsigned char *)s + i);
        if (n == size || !len || (unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
        i += len;
    }
    return n < size;
}

static int check_join(const struct bh_govern_join *j, struct bh_err *err)
{
    if (!j->root_pid || j->zero)
        return bh_fail(err, BH_INVALID, "a lease without a first process");
    if (!j->weight || j->weight > WEIGHT_MAX)
        return bh_fail(err, BH_INVALID, "a share of %u, not from 1 to %d", j->weight, WEIGHT_MAX);
    if (j->cap_permille > WHOLE_PERMILLE || j->floor_permille > WHOLE_PERMILLE)
        return bh_fail(err, BH_INVALID, "a cap of %u or a floor of %u permille: more than the card",
                       j->cap_permille, j->floor_permille);
    if (j->latency > 1)
        return bh_fail(err, BH_INVALID, "a class of latency %u, not 0 or 1", j->latency);
    if (!is_text(j->name, sizeof(j->name)))
        return bh_fail(err, BH_INVALID, "a name that is no line of text");
    return BH_OK;
}

static uint64_t free_number(const struct bh_state *s, uint64_t wanted)
{
    uint64_t id = wanted;
    for (uint64_t next = NUMBERS; bh_state_known(s, id); next++)
        id = next;
    return id;
}

static void remove_at(struct bh_state *s, size_t i)
{
    free_lease(s->at[i]);
    memmove(&s->at[i], &s->at[i + 1], (--s->n - i) * sizeof(s->at[0]));
}

static bool make_room(struct bh_state *s)
{
    for (size_t i = 0; s->n == BH_STATE_LEASES && i < s->n; i++)
        if (s->at[i]->server == BH_STATE_NOBODY)
            remove_at(s, i);
    return s->n < BH_STATE_LEASES;
}

int bh_state_join(struct bh_state *s, const struct bh_govern_join *j, int server, struct bh_governed **ret,
                  struct bh_err *err)
{
    int rc = check_join(j, err);
    if (rc < 0)
        return rc;
    struct bh_governed *l = j->lease ? bh_state_known(s, j->lease) : NULL;
    const bool is_its = l && l->root_pid == j->root_pid;
    if (is_its && l->server != BH_STATE_NOBODY)
        return bh_fail(err, BH_BUSY, "somebody else speaks for lease %" PRIu64, l->id);
    if (!is_its) {
        if (!make_room(s))
            return bh_fail(err, BH_BUSY, "%d leases share the GPUs of this machine already", BH_STATE_LEASES);
        l = bh_alloc(1, sizeof(*l));
        l->id = free_number(s, j->lease ? j->lease : j->root_pid);
        s->at[s->n++] = l;
    }
    l->server = server;
    l->again = j->lease != 0;
    l->root_pid = j->root_pid;
    l->weight = j->weight;
    l->cap_permille = j->cap_permille;
    l->floor_permille = j->floor_permille;
    l->latency = j->latency;
    memcpy(l->name, j->name, sizeof(l->name));
    *ret = l;
    return BH_OK;
}

void bh_state_leave(struct bh_governed *l, uint64_t now_ns)
{
    l->server = BH_STATE_NOBODY;
    l->left_ns = now_ns;
    l->own.last = (struct bh_govern_own){.p50_us = UINT32_MAX, .p99_us = UINT32_MAX};
    l->own.joined = false;
    l->pids.n = l->coming.n = 0;
    for (size_t i = 0; i < l->seats.n; i++) {
        struct bh_seat *seat = &l->seats.at[i];
        seat->channels.n = 0;
        seat->pids_stale = seat->all_stale = true;
        seat->slice_us = seat->level_1 = 0; /* a warden that comes has set nothing */
    }
}

void bh_state_forget(struct bh_state *s, uint64_t before_ns)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->at[i]->server == BH_STATE_NOBODY && s->at[i]->left_ns < before_ns)
            remove_at(s, i);
}

/* ---- channels ---- */

static int compare(struct bh_driver_channel a, struct bh_driver_channel b)
{
    if (a.client != b.client)
        return a.client < b.client ? -1 : 1;
    return (a.channel > b.channel) - (a.channel < b.channel);
}

/* Where it is, or where it would stand. */
static size_t place(const struct bh_seat *s, struct bh_driver_channel name)
{
    size_t low = 0, high = s->channels.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (compare(s->channels.at[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct bh_channel *bh_seat_channel(const struct bh_seat *s, struct bh_driver_channel name)
{
    const size_t i = place(s, name);
    return i < s->channels.n && compare(s->channels.at[i].name, name) == 0 ? &s->channels.at[i] : NULL;
}

struct bh_seat *bh_seat_find(const struct bh_governed *l, uint32_t gpu)
{
    for (size_t i = 0; i < l->seats.n; i++)
        if (l->seats.at[i].gpu == gpu)
            return &l->seats.at[i];
    return NULL;
}

/* One that is there already keeps what is known of it: it may be paused. */
static void add_channel(struct bh_seat *s, struct bh_driver_channel name, uint32_t pid, bool unsure)
{
    const size_t i = place(s, name);
    struct bh_channel *at = bh_seat_channel(s, name);
    if (!at) {
        (void)bh_vec_push(&s->channels);
        at = &s->channels.at[i];
        memmove(at + 1, at, (s->channels.n - 1 - i) * sizeof(*at));
        *at = (struct bh_channel){.name = name, .run = unsure ? BH_CHANNEL_UNSURE : BH_CHANNEL_RUNS};
    }
    at->pid = pid;
    s->pids_stale = s->all_stale = true;
}

int bh_state_lost_check(const struct bh_govern_channels *m, struct bh_err *err)
{
    if (m->gpu >= BH_STATE_GPUS || m->n > BH_GOVERN_NAMES)
        return bh_fail(err, BH_INVALID, "%u channels on GPU %u: there is no such message", m->n, m->gpu);
    return BH_OK;
}

int bh_state_has(struct bh_governed *l, const struct bh_govern_channels *m, struct bh_err *err)
{
    const int rc = bh_state_lost_check(m, err);
    if (rc < 0)
        return rc;
    if (!m->n || !m->pid)
        return bh_fail(err, BH_INVALID, "no channels, or nobody's");
    struct bh_seat *s = bh_seat_find(l, m->gpu);
    if (!s) {
        s = bh_vec_push(&l->seats);
        *s = (struct bh_seat){.gpu = m->gpu};
    }
    size_t more = 0;
    for (uint32_t i = 0; i < m->n; i++)
        more += !bh_seat_channel(s, (struct bh_driver_channel){m->client, m->names[i]});
    if (s->channels.n + more > BH_STATE_CHANNELS)
        return bh_fail(err, BH_TOO_LARGE, "more than %d channels on GPU %u", BH_STATE_CHANNELS, m->gpu);
    for (uint32_t i = 0; i < m->n; i++)
        add_channel(s, (struct bh_driver_channel){m->client, m->names[i]}, m->pid, l->again);
    return BH_OK;
}

bool bh_state_is_lost(const struct bh_govern_channels *m, const struct bh_channel *c)
{
    bool named = m->n == 0;
    for (uint32_t i = 0; !named && i < m->n; i++)
        named = m->names[i] == c->name.channel;
    return named && c->name.client == m->client;
}

void bh_state_lost(struct bh_governed *l, const struct bh_govern_channels *m)
{
    for (size_t i = 0; i < l->seats.n; i++) {
        struct bh_seat *s = &l->seats.at[i];
        size_t kept = 0;
        for (size_t k = 0; k < s->channels.n; k++)
            if (!bh_state_is_lost(m, &s->channels.at[k]))
                s->channels.at[kept++] = s->channels.at[k];
        if (kept < s->channels.n)
            s->pids_stale = s->all_stale = true;
        s->channels.n = kept;
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* In order, each once; how many are left. */
static size_t tidy(uint32_t *at, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(at, n, sizeof(at[0]), by_number);
    for (size_t i = 0; i < n; i++)
        if (!kept || at[kept - 1] != at[i])
            at[kept++] = at[i];
    return kept;
}

const uint32_t *bh_seat_pids(struct bh_seat *s, size_t *ret_n)
{
    if (s->pids_stale) {
        s->pids.n = 0;
        for (size_t i = 0; i < s->channels.n; i++)
            *bh_vec_push(&s->pids) = s->channels.at[i].pid;
        s->pids.n = tidy(s->pids.at, s->pids.n);
        s->pids_stale = false;
    }
    *ret_n = s->pids.n;
    return s->pids.at;
}

const uint32_t *bh_seat_all_pids(const struct bh_governed *l, struct bh_seat *s, size_t *ret_n)
{
    if (s->all_stale) {
        size_t n;
        const uint32_t *own = bh_seat_pids(s, &n);
        s->all.n = 0;
        for (size_t i = 0; i < n; i++)
            *bh_vec_push(&s->all) = own[i];
        for (size_t i = 0; i < l->pids.n; i++)
            *bh_vec_push(&s->all) = l->pids.at[i];
        s->all.n = tidy(s->all.at, s->all.n);
        s->all_stale = false;
    }
    *ret_n = s->all.n;
    return s->all.at;
}

int bh_state_pids(struct bh_governed *l, const struct bh_govern_pids *m, struct bh_err *err)
{
    if (m->more > 1 || m->zero || m->n > BH_GOVERN_SOME_PIDS)
        return bh_fail(err, BH_INVALID, "%u processes: there is no such message", m->n);
    for (uint32_t i = 0; i < m->n && l->coming.n < BH_STATE_PIDS; i++)
        *bh_vec_push(&l->coming) = m->pids[i];
    if (m->more)
        return BH_OK;
    l->pids.n = 0;
    for (size_t i = 0; i < l->coming.n; i++)
        *bh_vec_push(&l->pids) = l->coming.at[i];
    l->coming.n = 0;
    for (size_t i = 0; i < l->seats.n; i++)
        l->seats.at[i].all_stale = true;
    return BH_OK;
}

void bh_seat_unsure(struct bh_seat *s)
{
    for (size_t i = 0; i < s->channels.n; i++)
        s->channels.at[i].run = BH_CHANNEL_UNSURE;
}

/* ---- what holds ---- */

static const char *check_seat(const struct bh_seat *s)
{
    if (s->gpu >= BH_STATE_GPUS || s->channels.n > BH_STATE_CHANNELS)
        return "a seat past its bounds";
    for (size_t i = 1; i < s->channels.n; i++)
        if (compare(s->channels.at[i - 1].name, s->channels.at[i].name) >= 0)
            return "channels out of order, or twice";
    return NULL;
}

const char *bh_state_check(const struct bh_state *s)
{
    const char *why = NULL;
    for (size_t i = 0; !why && i < s->n; i++) {
        const struct bh_governed *l = s->at[i];
        if (!l->id || bh_state_known(s, l->id) != l)
            why = "two leases of one number, or one without";
        for (size_t k = 0; !why && k < l->seats.n; k++) {
            why = check_seat(&l->seats.at[k]);
            if (!why && bh_seat_find(l, l->seats.at[k].gpu) != &l->seats.at[k])
                why = "two seats on one GPU";
            if (!why && l->server == BH_STATE_NOBODY && l->seats.at[k].channels.n)
                why = "channels that nobody speaks for";
        }
    }
    return why;
}

/* ---- their own word ---- */

static uint64_t more(uint64_t total, uint64_t before, uint64_t now)
{
    const uint64_t by = now >= before ? now - before : now;
    return total > UINT64_MAX - by ? UINT64_MAX : total + by;
}

void bh_state_own(struct bh_governed *l, const struct bh_govern_own *m, uint64_t now_ns)
{
    struct bh_state_own *o = &l->own;
    if (o->joined) {
        o->done = more(o->done, o->last.done, m->done);
        o->lines = more(o->lines, o->last.lines, m->lines);
    }
    o->joined = true;
    o->last = *m;
    o->at_ns = now_ns;
}

bool bh_state_says(const struct bh_governed *l, uint64_t now_ns)
{
    return l->own.at_ns && now_ns - l->own.at_ns < OWN_OLD_NS;
}
