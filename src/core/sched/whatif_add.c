/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_add.c - the fewest GPUs whose coming would start a job; and if GPUs are not all that it lacks, the quotas on
 * its way as well.
 *
 * GPUs come in nodes, each like one that is there, of a model that the job takes, in one of the domains it could be
 * in or in a new one. A node has no more GPUs than the largest of that model has, or than one member needs. A few
 * GPUs are cut into nodes in every way; more of them into large nodes, or into nodes of one member; many are found by
 * halving.
 */
#include "core/sched/whatif_search.h"

enum {
    PLENTY = 16,
    EVERY_CUT = 8,
    EVERY = 24,
    OPTIONS = 192,
    DOMAINS = 8,
    RAISES = BH_RAISES_MAX,
    GPUS_MAX = 1 << 20
};
#define DEAR ((size_t)16 << 20) /* bytes of a copy: not many more of such are made */

/* A way to add: all but the number. */
struct option {
    struct bh_change node;
    uint32_t most; /* GPUs of one node */
    uint32_t unit; /* > 0: in nodes of just so many */
    bool plenty;   /* with processors and memory for others too */
};

struct additions {
    struct bh_whatif *w;
    const struct bh_sched *s;
    uint64_t job;
    const struct bh_shape *shape;
    struct bh_resources plenty; /* more than all need, even of one who may have a tenth of the fleet */
    struct bh_change raised[RAISES + EVERY_CUT]; /* first; then the nodes */
    size_t n_raised, n_cut;                      /* n_cut: lots of nodes behind them */
    struct option at[OPTIONS];
    uint32_t n;
};

static const struct bh_request *request_of(const struct additions *a, uint32_t role)
{
    return &bh_sched_shelf(a->s)->requests->at.at[a->shape->roles[role].class_];
}

/* ---- ways ---- */

/* Members of a role that so many GPUs hold at most, and one at least; all of it where it needs none. */
static uint64_t members_on(const struct additions *a, uint32_t role, uint32_t gpus)
{
    const struct bh_request *r = request_of(a, role);
    const uint64_t to_a_gpu = r->form == BH_FORM_SHARE ? (uint64_t)BH_GPU_MILLI / r->gpu_milli
                              : r->form == BH_FORM_MIG ? BH_MIG_SLICES_MAX
                                                       : 1;
    const uint64_t fit = r->n_gpus ? gpus * to_a_gpu / r->n_gpus : UINT64_MAX;
    const uint64_t some = fit ? fit : 1, min = a->shape->roles[role].min;
    return some < min ? some : min;
}

/*
 * What so many GPUs of a node need so that members fit onto it, as far as the one it is like has less. With plenty of it
 * others who come first fit there too, which may be what helps, or what hinders: both are tried. What is more than needed
 * is for trim() to see.
 */
static void demand(const struct additions *a, bool plenty, struct bh_change *c)
{
    const struct bh_shelf *s = bh_sched_shelf(a->s);
    const struct bh_shelf_node *like = &s->nodes.at[c->like];
    const uint32_t mib = like->n_gpus ? s->gpus.at[like->first_gpu].mib_all : 0;
    uint64_t cpu = 0, mem = 0;
    for (uint32_t i = 0; i < a->shape->n_roles; i++) {
        const struct bh_request *r = request_of(a, i);
        const uint64_t members = members_on(a, i, c->gpus);
        c->features |= r->features & ~like->features;
        if (r->pools && !(r->pools & (like->pools | c->pools)))
            c->pools |= r->pools & (~r->pools + 1); /* one of them is enough */
        cpu += r->cpu_milli * members;
        mem += r->mem_mib * members;
        c->gpu_mib = r->gpu_mib > mib && r->gpu_mib > c->gpu_mib ? r->gpu_mib : c->gpu_mib;
    }
    if (plenty) {
        cpu = cpu && a->plenty.at[BH_RES_CPU] > cpu ? a->plenty.at[BH_RES_CPU] : cpu;
        mem = mem && a->plenty.at[BH_RES_MEM] > mem ? a->plenty.at[BH_RES_MEM] : mem;
    }
    c->cpu_milli = cpu <= like->cpu_all ? 0 : cpu < UINT32_MAX ? cpu : UINT32_MAX;
    c->mem_mib = mem <= like->mem_all ? 0 : mem < BH_AMOUNT_MAX >> 16 ? mem : BH_AMOUNT_MAX >> 16;
}

static void add_option(struct additions *a, struct option o, uint32_t domain, uint8_t level)
{
    const struct bh_shelf_node *like = &bh_sched_shelf(a->s)->nodes.at[o.node.like];
    const bool lacks = a->plenty.at[BH_RES_CPU] > like->cpu_all || a->plenty.at[BH_RES_MEM] > like->mem_all;
    const uint32_t units[] = {0, request_of(a, 0)->n_gpus};
    o.node.domain = domain;
    o.node.level = level;
    for (uint32_t i = 0; i < 4 && a->n < OPTIONS; i++) {
        o.unit = units[i / 2];
        o.plenty = i % 2;
        if ((i < 2 || o.unit) && (!o.plenty || lacks))
            a->at[a->n++] = o;
    }
}

/*
 * Where the job could be itself; and on a small fleet everywhere else, since it may be another that stands in the way
 * and would go there.
 */
static void add_places(struct additions *a, const struct option *o)
{
    const struct bh_shelf *s = bh_sched_shelf(a->s);
    const uint8_t slice = a->shape->roles[0].slice ? a->shape->roles[0].slice_level : BH_LEVEL_ANY;
    const uint8_t level = a->shape->within != BH_LEVEL_ANY ? a->shape->within : slice;
    const bool small = s->domains.n <= DOMAINS;
    for (int own = 1; own >= !small; own--) {
        uint32_t n = 0;
        if ((level == BH_LEVEL_ANY) == own)
            add_option(a, *o, BH_NONE, 0);
        for (uint32_t d = 0; d < s->domains.n && n < DOMAINS; d++)
            if ((s->domains.at[d].level == level) == own) {
                add_option(a, *o, d, level);
                n++;
            }
        for (uint8_t l = 0; l < BH_LEVEL_ANY; l++)
            if (own ? l == level : l != level && l <= BH_LEVEL_RACK)
                add_option(a, *o, BH_CHANGE_NEW_DOMAIN, l);
    }
}

/* The node of this model with most GPUs; then any, which lends the rest. */
static uint32_t like_of(const struct additions *a, uint32_t model)
{
    const struct bh_shelf *s = bh_sched_shelf(a->s);
    uint32_t like = BH_NONE;
    for (uint32_t i = 0; i < s->nodes.n; i++)
        if (s->nodes.at[i].model == model &&
            (like == BH_NONE || s->nodes.at[i].n_gpus > s->nodes.at[like].n_gpus))
            like = i;
    return like;
}

static void add_models(struct additions *a)
{
    const struct bh_shelf *s = bh_sched_shelf(a->s);
    uint8_t largest = 1;
    uint64_t models = UINT64_MAX;
    for (uint32_t i = 0; i < a->shape->n_roles; i++) {
        const struct bh_request *r = request_of(a, i);
        largest = r->n_gpus > largest ? r->n_gpus : largest;
        models &= r->form != BH_FORM_CPU && r->models ? r->models : UINT64_MAX;
    }
    for (uint32_t m = 0; m < s->n_models && s->nodes.n; m++) {
        const uint32_t like = like_of(a, m);
        struct option o = {.node = {.kind = BH_CHANGE_ADD, .model = m, .like = like == BH_NONE ? 0 : like}};
        if (!(models >> m & 1))
            continue;
        o.most = like == BH_NONE ? largest : s->nodes.at[like].n_gpus;
        o.most = o.most < largest ? largest : o.most;
        add_places(a, &o);
    }
}

/* ---- how many ---- */

/* One lot more behind those that are there. A second lot goes into the domain that the first one makes. */
static void lot(struct additions *a, const struct option *o, uint32_t nodes, uint32_t gpus)
{
    struct bh_change *c = &a->raised[a->n_raised + a->n_cut];
    *c = o->node;
    c->nodes = nodes;
    c->gpus = gpus;
    demand(a, o->plenty, c);
    if (a->n_cut++ && o->node.domain == BH_CHANGE_NEW_DOMAIN)
        c->domain = (uint32_t)bh_sched_shelf(a->s)->domains.n;
}

static bool tried(struct additions *a)
{
    return bh_whatif_starts(a->w, a->raised, a->n_raised + a->n_cut, a->job);
}

/* Equal nodes, and what is left over. */
static void lay(struct additions *a, const struct option *o, uint32_t gpus)
{
    const uint32_t each = o->unit ? o->unit : o->most;
    a->n_cut = 0;
    if (gpus / each)
        lot(a, o, gpus / each, each);
    if (gpus % each)
        lot(a, o, 1, gpus % each);
}

static bool works(struct additions *a, const struct option *o, uint32_t gpus)
{
    if (o->unit && gpus % o->unit)
        return false;
    lay(a, o, gpus);
    return tried(a);
}

/* In every way, the largest nodes first. */
static bool works_cut(struct additions *a, const struct option *o, uint32_t left, uint32_t largest)
{
    if (!left)
        return tried(a);
    for (uint32_t gpus = left < largest ? left : largest; gpus; gpus--) {
        const size_t n = a->n_cut;
        lot(a, o, 1, gpus);
        if (works_cut(a, o, left - gpus, gpus))
            return true;
        a->n_cut = n;
    }
    return false;
}

static bool works_small(struct additions *a, const struct option *o, uint32_t gpus)
{
    if (gpus > EVERY_CUT)
        return works(a, o, gpus);
    a->n_cut = 0;
    return !o->unit && works_cut(a, o, gpus, o->most); /* all in nodes of one member is one of the ways */
}

/* All that everybody asks for, each on nodes of its own, and all that is kept: more than that cannot help. */
static uint32_t enough(const struct additions *a)
{
    const struct bh_queue *root = bh_queue_get(bh_sched_queues(a->s), BH_QUEUE_ROOT);
    const uint64_t pending = bh_pending_below(a->s, BH_QUEUE_ROOT, BH_RES_GPU) / BH_GPU_MILLI;
    const uint64_t kept = root->held.at[BH_RES_GPU] / BH_GPU_MILLI;
    const uint64_t gpus = 2 * pending + kept + EVERY + BH_NODE_GPUS;
    return (uint32_t)(gpus < GPUS_MAX ? gpus : GPUS_MAX);
}

/* Fewer than *ret_gpus, which it becomes; false: no. */
static bool fewest_of(struct additions *a, const struct option *o, uint32_t *ret_gpus)
{
    const uint32_t step = o->unit ? o->unit : 1;
    uint32_t low = EVERY / step + 1, high = (*ret_gpus - 1) / step;
    if (low > high || !works(a, o, high * step))
        return false;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (works(a, o, middle * step))
            high = middle;
        else
            low = middle + 1;
    }
    *ret_gpus = low * step;
    return true;
}

/* A node without GPUs, for what needs none. */
static bool without_gpus(struct additions *a, struct bh_remedy *ret)
{
    struct bh_change *c = &a->raised[a->n_raised];
    for (uint32_t i = 0; i < a->shape->n_roles; i++)
        if (request_of(a, i)->form != BH_FORM_CPU)
            return false;
    if (!bh_sched_shelf(a->s)->nodes.n)
        return false;
    *c = (struct bh_change){.kind = BH_CHANGE_ADD, .nodes = 1, .domain = BH_NONE};
    demand(a, true, c);
    if (!bh_whatif_starts(a->w, a->raised, a->n_raised + 1, a->job))
        return false;
    a->n_cut = 1;
    *bh_vec_push(&ret->steps) = *c;
    return true;
}

static bool fewest(struct additions *a, struct bh_remedy *ret)
{
    uint32_t gpus = enough(a) + 1;
    const struct option *best = NULL;
    bool could[OPTIONS] = {false};
    if (without_gpus(a, ret))
        return true;
    for (uint32_t i = 0; i < a->n; i++) {
        lay(a, &a->at[i], gpus - 1);
        could[i] = bh_whatif_alone(a->w, a->s, a->raised, a->n_raised + a->n_cut, a->job);
    }
    for (uint32_t n = 1; n <= EVERY && !best; n++)
        for (uint32_t i = 0; i < a->n && !best; i++)
            if (could[i] && works_small(a, &a->at[i], n)) {
                best = &a->at[i];
                gpus = n;
            }
    for (uint32_t i = 0; i < a->n && gpus > EVERY; i++)
        if (could[i] && fewest_of(a, &a->at[i], &gpus))
            best = &a->at[i];
    if (!best)
        return false;
    if (gpus > EVERY)
        lay(a, best, gpus);
    for (size_t i = 0; i < a->n_cut; i++)
        *bh_vec_push(&ret->steps) = a->raised[a->n_raised + i];
    ret->cost = gpus;
    return true;
}

/* Does it start with this value? If not, it is as before. */
static bool is_enough(struct additions *a, const bh_changes *steps, uint64_t *value, uint64_t try_)
{
    const uint64_t was = *value;
    *value = try_;
    if (bh_whatif_starts(a->w, steps->at, steps->n, a->job))
        return true;
    *value = was;
    return false;
}

/* None of it, or the least above what the node it is like has. */
static void shrink(struct additions *a, const bh_changes *steps, uint64_t *value, uint64_t has)
{
    if (!*value || is_enough(a, steps, value, 0))
        return;
    while (has + 1 < *value && a->w->saved.n < DEAR) {
        const uint64_t middle = has + (*value - has) / 2;
        if (!is_enough(a, steps, value, middle))
            has = middle;
    }
}

/* New nodes differ from the one they are like only as far as the job needs it: all of that is said. */
static void trim(struct additions *a, bh_changes *steps)
{
    const struct bh_shelf *s = bh_sched_shelf(a->s);
    for (size_t i = 0; i < steps->n; i++) {
        struct bh_change *c = &steps->at[i];
        if (c->kind != BH_CHANGE_ADD)
            continue;
        const struct bh_shelf_node *like = &s->nodes.at[c->like];
        shrink(a, steps, &c->cpu_milli, like->cpu_all);
        shrink(a, steps, &c->mem_mib, like->mem_all);
        shrink(a, steps, &c->gpu_mib, like->n_gpus ? s->gpus.at[like->first_gpu].mib_all : 0);
        if (c->features)
            (void)is_enough(a, steps, &c->features, 0);
        if (c->pools)
            (void)is_enough(a, steps, &c->pools, 0);
    }
}

/* ---- quotas on the way ---- */

/* Every quota on the way that is less than what is asked for there, and kept there for others, becomes that. */
size_t bh_remedy_raises(const struct bh_sched *s, uint64_t job, struct bh_change *ret)
{
    const struct bh_queues *t = bh_sched_queues(s);
    const struct bh_gang *g = bh_sched_job(s, job);
    const struct bh_shape *shape = bh_sched_shape(s, g);
    size_t n = 0;
    for (uint32_t i = g->queue; i != BH_QUEUE_ROOT; i = bh_queue_get(t, i)->parent) {
        const struct bh_queue *q = bh_queue_get(t, i);
        for (uint32_t r = 0; r < BH_RES_COUNT; r++) {
            const uint64_t need = q->held.at[r] + bh_pending_below(s, i, (enum bh_res)r);
            struct bh_change c = {.kind = BH_CHANGE_QUOTA, .queue = i, .res = (enum bh_res)r, .to = need};
            if (!shape->least.at[r] || n + 3 > RAISES)
                continue;
            c.part = BH_PART_LIMIT;
            c.from = q->config.limit.at[r];
            if (c.from < need)
                ret[n++] = c;
            c.part = BH_PART_DESERVED;
            c.from = q->config.deserved.at[r];
            if (c.from < need) /* ANY is more */
                ret[n++] = c;
        }
        if (q->config.share_max_ppm < BH_SHARE_WHOLE && n < RAISES)
            ret[n++] = (struct bh_change){.kind = BH_CHANGE_QUOTA,
                                          .queue = i,
                                          .part = BH_PART_SHARE_MAX,
                                          .from = q->config.share_max_ppm,
                                          .to = BH_SHARE_WHOLE};
    }
    return n;
}

/* A raise of several: as little as will do while the others stay. */
static void lower(struct additions *a, bh_changes *steps, size_t i)
{
    uint64_t low = steps->at[i].from + 1, high = steps->at[i].to;
    while (low < high) {
        steps->at[i].to = low + (high - low) / 2;
        if (bh_whatif_starts(a->w, steps->at, steps->n, a->job))
            high = steps->at[i].to;
        else
            low = steps->at[i].to + 1;
    }
    steps->at[i].to = low;
}

/* Without a raise that is not needed, and none more than needed. */
static void weed(struct additions *a, struct bh_remedy *ret)
{
    bh_changes steps = {0};
    for (size_t i = 0; i < a->n_raised; i++)
        *bh_vec_push(&steps) = a->raised[i];
    for (size_t i = 0; i < ret->steps.n; i++)
        *bh_vec_push(&steps) = ret->steps.at[i];
    for (size_t i = a->n_raised; i-- > 0;) {
        const struct bh_change out = steps.at[i];
        memmove(&steps.at[i], &steps.at[i + 1], (steps.n - 1 - i) * sizeof(*steps.at));
        steps.n--;
        if (bh_whatif_starts(a->w, steps.at, steps.n, a->job))
            continue;
        (void)bh_vec_push(&steps);
        memmove(&steps.at[i + 1], &steps.at[i], (steps.n - 1 - i) * sizeof(*steps.at));
        steps.at[i] = out;
        lower(a, &steps, i);
    }
    bh_vec_fini(&ret->steps);
    ret->steps.at = steps.at;
    ret->steps.n = steps.n;
    ret->steps.cap = steps.cap;
}

bool bh_remedy_add(struct bh_whatif *w, const struct bh_sched *s, uint64_t job, struct bh_remedy *ret)
{
    struct additions a = {.w = w, .s = s, .job = job, .shape = bh_sched_shape(s, bh_sched_job(s, job))};
    for (uint32_t r = 0; r < BH_RES_COUNT; r++)
        a.plenty.at[r] = PLENTY * (bh_queue_get(bh_sched_queues(s), BH_QUEUE_ROOT)->used.at[r] +
                                   bh_pending_below(s, BH_QUEUE_ROOT, (enum bh_res)r));
    add_models(&a);
    ret->kind = BH_CHANGE_ADD;
    if (fewest(&a, ret)) {
        trim(&a, &ret->steps);
        ret->least = ret->cost <= EVERY_CUT;
        return true;
    }
    a.n_raised = bh_remedy_raises(s, job, a.raised);
    if (a.n_raised) {
        if (bh_whatif_starts(w, a.raised, a.n_raised, job)) {
            weed(&a, ret);
            ret->kind = BH_CHANGE_QUOTA;
            return true;
        }
        if (fewest(&a, ret)) {
            weed(&a, ret);
            trim(&a, &ret->steps);
            return true;
        }
    }
    ret->kind = BH_CHANGE_NONE;
    return false;
}
