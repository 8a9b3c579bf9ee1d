/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_save.c - the state as bytes, and back.
 *
 * Arrays as they are in memory, one after the other, with their lengths; nothing is converted, so that a restart
 * costs about what copying costs. A sum over the sizes of all records stands in front: another build does not read what
 * this one wrote. What can be made from the rest (indexes, heaps, trees of matches) is not written.
 */
#include "core/sched/sched_inside.h"

#include <inttypes.h>

#define MAGIC UINT64_C(0x3153484353484242)

_Static_assert(sizeof(struct bh_line) % 8 == 0, "lines are written one by one and read as an array");

struct header {
    uint64_t magic, layout, n, check;
};

/* What is not in a vector. */
struct scalars {
    struct bh_sched_config config;
    struct bh_score_memory score;
    uint32_t known[BH_MODELS_MAX]; /* place in the catalogue plus one */
    struct {
        uint64_t all, used;
    } milli[BH_MODELS_MAX];
    uint32_t n_models, free_hold, n_taken, log_cap, first_root;
    uint64_t milli_used, milli_all, epoch, log_head;
    struct bh_resources total;
    uint64_t sampled_ms;
    bool sampled;
    uint32_t free_gang, free_left, free_line, n_parked, n_movable;
    uint64_t clock, now_ms, digest, search, round;
    uint64_t gain[BH_MODELS_MAX + 1];
    struct bh_sched_stats stats;
};

static uint64_t layout(void)
{
    static const size_t sizes[] = {
        sizeof(struct scalars),      sizeof(struct bh_request),      sizeof(struct bh_shelf_node),
        sizeof(struct bh_shelf_gpu), sizeof(struct bh_shelf_domain), sizeof(struct bh_hold),
        sizeof(struct bh_queue),     sizeof(struct bh_shape),        sizeof(struct bh_gang),
        sizeof(struct bh_owner),     sizeof(struct bh_line),         sizeof(struct bh_room),
        sizeof(struct bh_decision),  sizeof(struct bh_left),         sizeof(struct bh_brief)};
    uint64_t sum = BH_SCHED_EVENTS;
    for (size_t i = 0; i < BH_COUNT_OF(sizes); i++)
        sum = bh_idmap_mix(sum ^ sizes[i]);
    return sum;
}

/* Four sums side by side: as fast as reading. */
static uint64_t check_of(const unsigned char *at, size_t n)
{
    uint64_t sum[4] = {n, 1, 2, 3}, word;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (size_t k = 0; k < 4; k++) {
            memcpy(&word, at + i + 8 * k, sizeof(word));
            sum[k] = (sum[k] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            sum[k] ^= sum[k] >> 29;
        }
    }
    for (; i < n; i++)
        sum[0] = (sum[0] ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return bh_idmap_mix(sum[0] ^ bh_idmap_mix(sum[1] ^ bh_idmap_mix(sum[2] ^ bh_idmap_mix(sum[3]))));
}

/* ---- writing ---- */

static void put(struct bh_sched_bytes *b, const void *at, size_t n)
{
    const size_t padded = (n + 7) / 8 * 8;
    if (b->cap < b->n + padded)
        b->at = bh_grow_(b->at, &b->cap, b->n + padded, 1);
    if (n)
        memcpy(b->at + b->n, at, n);
    memset(b->at + b->n + n, 0, padded - n);
    b->n += padded;
}

static void put_array(struct bh_sched_bytes *b, const void *at, size_t n, size_t size)
{
    const uint64_t count = n;
    put(b, &count, sizeof(count));
    put(b, at, n * size);
}
#define put_vec(b, v) put_array((b), (v)->at, (v)->n, sizeof(*(v)->at))

static void fill_shelf(const struct bh_shelf *f, struct scalars *c)
{
    c->n_models = f->n_models;
    for (uint32_t m = 0; m < f->n_models; m++) {
        c->milli[m].all = f->models[m].milli_all;
        c->milli[m].used = f->models[m].milli_used;
        for (size_t i = 0; f->models[m].known && i < bh_catalog_count(); i++)
            c->known[m] = bh_catalog_at(i) == f->models[m].known ? (uint32_t)i + 1 : c->known[m];
    }
    c->free_hold = f->free_hold;
    c->n_taken = f->n_taken;
    c->log_cap = f->log_cap;
    c->first_root = f->first_root;
    c->milli_used = f->milli_used;
    c->milli_all = f->milli_all;
    c->epoch = f->epoch;
    c->log_head = f->log_head;
}

static void fill(const struct bh_sched *s, struct scalars *c)
{
    memset(c, 0, sizeof(*c));
    c->config = s->config;
    bh_score_save(s->score, &c->score);
    fill_shelf(&s->shelf, c);
    c->total = s->queues.total;
    c->sampled_ms = s->queues.sampled_ms;
    c->sampled = s->queues.sampled;
    c->free_gang = s->free_gang;
    c->free_left = s->free_left;
    c->free_line = s->free_line;
    c->n_parked = s->n_parked;
    c->n_movable = s->n_movable;
    c->clock = s->clock;
    c->now_ms = s->now_ms;
    c->digest = s->digest;
    c->search = s->search;
    c->round = s->round;
    memcpy(c->gain, s->gain, sizeof(c->gain));
    c->stats = s->stats;
}

/* Where the lines' heaps are in memory is nobody's business. */
static void put_lines(struct bh_sched_bytes *b, const struct bh_sched *s)
{
    const uint64_t count = s->lines.n;
    put(b, &count, sizeof(count));
    for (size_t i = 0; i < s->lines.n; i++) {
        struct bh_line l = s->lines.at[i];
        memset(&l.heap, 0, sizeof(l.heap));
        put(b, &l, sizeof(l));
    }
}

void bh_sched_save(struct bh_sched *s, struct bh_sched_bytes *ret)
{
    struct header h = {.magic = MAGIC, .layout = layout()};
    struct scalars c;
    bh_sched_settle(s);
    fill(s, &c);
    *ret = (struct bh_sched_bytes){0};
    put(ret, &h, sizeof(h));
    put(ret, &c, sizeof(c));
    put_vec(ret, &s->requests.at);
    put_vec(ret, &s->shelf.nodes);
    put_vec(ret, &s->shelf.gpus);
    put_vec(ret, &s->shelf.domains);
    put_vec(ret, &s->shelf.holds);
    put_array(ret, s->shelf.log, s->shelf.log_cap, sizeof(*s->shelf.log));
    put_vec(ret, &s->queues.at);
    put_array(ret, s->queues.dirty, s->queues.at.n, 1);
#define BH_SCHED_VEC(name) put_vec(ret, &s->name);
    BH_SCHED_VECS
#undef BH_SCHED_VEC
    put_lines(ret, s);
    h.n = ret->n;
    h.check = check_of(ret->at + sizeof(h), ret->n - sizeof(h));
    memcpy(ret->at, &h, sizeof(h));
}

/* ---- reading ---- */

struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static void get(struct reader *r, void *ret, size_t n)
{
    const size_t padded = (n + 7) / 8 * 8;
    if (r->bad || padded < n || padded > r->left) {
        r->bad = true;
        return;
    }
    if (n)
        memcpy(ret, r->at, n);
    r->at += padded;
    r->left -= padded;
}

/* A new array of what comes next; *ret_n of them. */
static void *get_array(struct reader *r, size_t size, size_t *ret_n, size_t *ret_cap)
{
    uint64_t n = 0;
    get(r, &n, sizeof(n));
    if (r->bad || n > r->left / size) {
        r->bad = true;
        return NULL;
    }
    *ret_cap = 0;
    void *at = bh_grow_(NULL, ret_cap, (size_t)n + 1, size);
    get(r, at, (size_t)n * size);
    *ret_n = (size_t)n;
    return at;
}
#define get_vec(r, v) (free((v)->at), (v)->at = get_array((r), sizeof(*(v)->at), &(v)->n, &(v)->cap))

static void restore_models(struct bh_sched *s, const struct scalars *c)
{
    s->shelf.n_models = c->n_models;
    for (uint32_t m = 0; m < c->n_models && m < BH_MODELS_MAX; m++) {
        s->shelf.models[m] =
            (struct bh_shelf_model){.milli_all = c->milli[m].all, .milli_used = c->milli[m].used};
        if (c->known[m])
            s->shelf.models[m].known = bh_catalog_at(c->known[m] - 1);
    }
}

static void restore_shelf(struct bh_sched *s, const struct scalars *c, struct reader *r)
{
    struct bh_shelf *f = &s->shelf;
    size_t n = 0, cap;
    get_vec(r, &f->nodes);
    get_vec(r, &f->gpus);
    get_vec(r, &f->domains);
    get_vec(r, &f->holds);
    f->log = get_array(r, sizeof(*f->log), &n, &cap);
    f->log_cap = c->log_cap;
    r->bad |= n != c->log_cap;
    f->free_hold = c->free_hold;
    f->n_taken = c->n_taken;
    f->first_root = c->first_root;
    f->milli_used = c->milli_used;
    f->milli_all = c->milli_all;
    f->epoch = c->epoch;
    f->log_head = c->log_head;
}

static void restore_requests(struct bh_sched *s, struct reader *r)
{
    BH_VEC(struct bh_request) at = {0};
    get_vec(r, &at);
    for (size_t i = 0; !r->bad && i < at.n; i++) {
        uint32_t id;
        r->bad = bh_request_intern(&s->requests, &at.at[i], &id, NULL) < 0 || id != i;
    }
    bh_vec_fini(&at);
}

/* The tree is built as it was, for the memory that goes with it; then every queue is as it was. */
static void restore_queues(struct bh_sched *s, const struct scalars *c, struct reader *r)
{
    BH_VEC(struct bh_queue) at = {0};
    size_t n = 0, cap;
    get_vec(r, &at);
    uint8_t *dirty = get_array(r, 1, &n, &cap);
    r->bad |= n != at.n || !at.n;
    for (size_t i = 1; !r->bad && i < at.n; i++) {
        uint32_t id;
        r->bad = bh_queues_add(&s->queues, at.at[i].parent, &at.at[i].config, &id, NULL) < 0;
    }
    if (!r->bad) {
        memcpy(s->queues.at.at, at.at, at.n * sizeof(*at.at));
        memcpy(s->queues.dirty, dirty, n);
    }
    s->queues.total = c->total;
    s->queues.sampled_ms = c->sampled_ms;
    s->queues.sampled = c->sampled;
    free(dirty);
    bh_vec_fini(&at);
}

static void restore_jobs(struct bh_sched *s, const struct scalars *c, struct reader *r)
{
#define BH_SCHED_VEC(name) get_vec(r, &s->name);
    BH_SCHED_VECS
#undef BH_SCHED_VEC
    get_vec(r, &s->lines);
    s->free_gang = c->free_gang;
    s->free_left = c->free_left;
    s->free_line = c->free_line;
    s->n_parked = c->n_parked;
    s->n_movable = c->n_movable;
    s->clock = c->clock;
    s->now_ms = c->now_ms;
    s->digest = c->digest;
    s->search = c->search;
    s->round = c->round;
    memcpy(s->gain, c->gain, sizeof(s->gain));
    s->stats = c->stats;
    s->queues_changed = false;
    if (r->bad)
        return;
    bh_score_restore(s->score, &c->score);
    bh_score_set_typical(s->score, s->typical.at, s->typical.n);
    bh_models_measure(s);
    bh_jobs_index(s);
    bh_order_lay(s);
    bh_sched_room(s);
}

int bh_sched_load(const void *at, size_t n, struct bh_sched **ret, struct bh_err *err)
{
    struct reader r = {at, n, false};
    struct header h = {0};
    struct scalars c;
    get(&r, &h, sizeof(h));
    if (r.bad || h.magic != MAGIC || h.n != n)
        return bh_fail(err, BH_INVALID, "not the state of a scheduler, or cut short");
    if (h.layout != layout())
        return bh_fail(err, BH_INVALID, "the state of a scheduler of another build");
    if (h.check != check_of(r.at, r.left))
        return bh_fail(err, BH_INVALID, "the state of a scheduler, damaged");
    get(&r, &c, sizeof(c));
    if (r.bad)
        return bh_fail(err, BH_INVALID, "the state of a scheduler, too short");
    struct bh_sched *s = bh_sched_new(&c.config);
    restore_models(s, &c);
    restore_requests(s, &r);
    restore_shelf(s, &c, &r);
    restore_queues(s, &c, &r);
    restore_jobs(s, &c, &r);
    if (r.bad) {
        bh_sched_free(s);
        return bh_fail(err, BH_INVALID, "the state of a scheduler, inconsistent");
    }
    *ret = s;
    return 0;
}
