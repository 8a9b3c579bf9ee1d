/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - the modes: points of a node for a request, and the GPUs that go with them. */
#include "core/sched/score.h"

#include "core/sched/mig.h"
#include "core/sched/score_inside.h"
#include "core/sched/wide.h"

/* The largest node of the published comparisons: what best-fit and the others are relative to. */
enum { NODE_CPU_MILLI = 128000, NODE_GPU_MILLI = 8000, POINTS = 100 };
/* Points that breaking into an empty domain costs. More than any fragment is worth, less than not to run. */
enum { SPOIL_LINK = 30, SPOIL_RACK = 15 };

const char *const bh_score_mode_names[BH_SCORE_MODES] = {"fgd",        "bestfit", "packing", "dotprod",
                                                         "clustering", "random",  "bulkhead"};

/* ---- which GPUs ---- */

static uint32_t first_of(uint32_t usable, uint32_t n)
{
    uint32_t taken = 0;
    for (; n; n--) {
        taken |= usable & -usable;
        usable &= usable - 1;
    }
    return taken;
}

/* Those with the least left, the first of equal ones. */
static uint32_t fullest_of(const struct bh_shelf_node *node, uint32_t usable, uint32_t n)
{
    uint32_t taken = 0;
    for (; n; n--) {
        uint32_t best = 0;
        for (uint32_t left = usable & ~taken; left; left &= left - 1) {
            const uint32_t g = (uint32_t)__builtin_ctz(left);
            if (!best || node->open[g] < node->open[__builtin_ctz(best)])
                best = 1u << g;
        }
        taken |= best;
    }
    return taken;
}

/* Whole GPUs of one NUMA node where one has enough, of the one that has the fewest to spare. */
static uint32_t near_of(const struct bh_shelf *s, const struct bh_shelf_node *node, uint32_t usable,
                        uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t left = usable, same; left; left &= ~same) {
        const uint8_t numa = s->gpus.at[node->first_gpu + (uint32_t)__builtin_ctz(left)].numa;
        same = 0;
        for (uint32_t i = left; i; i &= i - 1) {
            if (s->gpus.at[node->first_gpu + (uint32_t)__builtin_ctz(i)].numa == numa)
                same |= i & -i;
        }
        if (bh_bits(same) >= n && (!best || bh_bits(same) < bh_bits(best)))
            best = same;
    }
    return first_of(best ? best : usable, n);
}

/* ---- fragmentation gradient ---- */

static uint64_t fragments(struct bh_score *s, uint32_t id, const struct bh_shelf_node *node, bool afresh)
{
    if (!afresh && s->known[id].at == node->changed + 1)
        return s->known[id].weighted;
    const uint64_t weighted = bh_frag_of(&s->frag, node->model, node->cpu_free, node->open);
    if (!afresh) {
        s->known[id].at = node->changed + 1;
        s->known[id].weighted = weighted;
    }
    return weighted;
}

struct rating {
    struct bh_score *s;
    const struct bh_request *r;
    uint32_t id;
    const struct bh_shelf_node *node;
    uint32_t usable;
    bool afresh;
    uint32_t gpus; /* out: what to take */
};

static uint32_t rate_fgd_share(struct rating *a, uint64_t before, uint16_t *open, uint32_t cpu)
{
    uint32_t best = 0, seen = 0;
    uint16_t last = UINT16_MAX;
    for (uint32_t left = a->usable; left; left &= left - 1) {
        const uint32_t g = (uint32_t)__builtin_ctz(left);
        const uint16_t was = open[g];
        if (was == last)
            continue; /* as the one before */
        last = was;
        open[g] = (uint16_t)(was - a->r->gpu_milli);
        const uint32_t points =
            bh_frag_points(&a->s->frag, before, bh_frag_of(&a->s->frag, a->node->model, cpu, open));
        open[g] = was;
        if (!seen || points > best) {
            best = points;
            a->gpus = 1u << g;
        }
        seen = 1;
    }
    return best;
}

static uint32_t rate_fgd(struct rating *a)
{
    const struct bh_request *r = a->r;
    if (!a->node->n_gpus)
        return POINTS / 2; /* nothing there that could be broken up */
    const uint64_t before = fragments(a->s, a->id, a->node, a->afresh);
    const uint32_t cpu = a->node->cpu_free - r->cpu_milli;
    uint16_t open[BH_NODE_GPUS];
    memcpy(open, a->node->open, sizeof(open));
    if (r->form == BH_FORM_SHARE && r->n_gpus == 1)
        return rate_fgd_share(a, before, open, cpu);
    if (r->form == BH_FORM_WHOLE)
        a->gpus = first_of(a->usable, r->n_gpus);
    else if (r->form == BH_FORM_SHARE)
        a->gpus = fullest_of(a->node, a->usable, r->n_gpus);
    for (uint32_t left = a->gpus; left; left &= left - 1) {
        const uint32_t g = (uint32_t)__builtin_ctz(left);
        open[g] = (uint16_t)(open[g] - r->gpu_milli);
    }
    return bh_frag_points(&a->s->frag, before, bh_frag_of(&a->s->frag, a->node->model, cpu, open));
}

/* ---- the others ---- */

static uint32_t idle_milli(const struct bh_shelf_node *node)
{
    uint32_t sum = 0;
    for (uint32_t g = 0; g < BH_NODE_GPUS; g++)
        sum += node->open[g];
    return sum;
}

static void take_fullest(struct rating *a)
{
    if (a->r->form != BH_FORM_CPU)
        a->gpus = fullest_of(a->node, a->usable, a->r->n_gpus);
}

static uint32_t rate_bestfit(struct rating *a)
{
    take_fullest(a);
    const int64_t cpu = (int64_t)a->node->cpu_free - a->r->cpu_milli;
    const int64_t gpu = (int64_t)idle_milli(a->node) - bh_request_milli(a->r);
    const int64_t of = (int64_t)NODE_CPU_MILLI * 2;
    const int64_t left = POINTS * of - POINTS * (cpu + gpu * (NODE_CPU_MILLI / NODE_GPU_MILLI));
    return left < 0 ? 0 : (uint32_t)(left / of);
}

static uint32_t rate_dotprod(struct rating *a)
{
    take_fullest(a);
    /* A node may have 2^32 thousandths of a processor, and so may a request: the product is of 64 bits, its sum of more. */
    const int64_t ratio = NODE_CPU_MILLI / NODE_GPU_MILLI;
    const bh_u128 dot = (bh_u128)a->node->cpu_free * a->r->cpu_milli +
                        (bh_u128)(ratio * ratio) * idle_milli(a->node) * bh_request_milli(a->r);
    const int64_t of = (int64_t)NODE_CPU_MILLI * NODE_CPU_MILLI * 2;
    return dot > (bh_u128)of ? 0 : (uint32_t)((POINTS * of - POINTS * (int64_t)dot) / of);
}

static uint32_t rate_packing(struct rating *a)
{
    take_fullest(a);
    if (a->r->form == BH_FORM_CPU)
        return 0;
    const uint32_t whole = a->node->n_whole;
    if (whole == a->node->n_gpus)
        return POINTS / 3 > 2 * whole ? POINTS / 3 - whole : whole;
    uint32_t taken_whole = 0, percent = 0;
    for (uint32_t left = a->gpus; left; left &= left - 1) {
        const uint32_t open = a->node->open[__builtin_ctz(left)];
        taken_whole += open == BH_GPU_MILLI;
        percent += open / 10;
    }
    if (taken_whole)
        return POINTS / 2 - taken_whole > POINTS / 3 ? POINTS / 2 - taken_whole : POINTS / 3;
    return percent / 10 < POINTS / 2 ? POINTS - percent / 10 : POINTS / 2;
}

static uint32_t rate_clustering(struct rating *a)
{
    enum { BAND = POINTS / 4 };
    take_fullest(a);
    if (a->r->form == BH_FORM_CPU)
        return 0;
    uint32_t sizes = 0;
    for (uint32_t i = 0; i <= BH_NODE_GPUS; i++)
        sizes += a->node->sizes[i] != 0;
    const uint32_t own = a->node->sizes[a->r->form == BH_FORM_WHOLE ? a->r->n_gpus : 0];
    const uint32_t idle = idle_milli(a->node);
    const uint32_t used = idle < NODE_GPU_MILLI ? BAND * (NODE_GPU_MILLI - idle) / NODE_GPU_MILLI : 0;
    return used + (own ? sizes == 1 ? 3 * BAND : 2 * BAND : sizes ? 0 : BAND);
}

static uint32_t rate_random(struct rating *a)
{
    (void)a; /* bh_score_spot() draws the GPUs */
    return 0;
}

/* A small job in an empty domain of many nodes spoils it for those that need it whole. */
static uint32_t spoil(const struct bh_shelf *s, const struct bh_request *r, const struct bh_shelf_node *node)
{
    uint32_t points = 0;
    for (uint32_t i = node->domain; i != BH_NONE; i = s->domains.at[i].parent) {
        const struct bh_shelf_domain *d = &s->domains.at[i];
        if (d->crowd.holds || d->level > BH_LEVEL_RACK)
            break;
        if (d->n_nodes > 1 && r->n_gpus < d->n_gpus)
            points += d->level == BH_LEVEL_LINK ? SPOIL_LINK : SPOIL_RACK;
    }
    return points;
}

static uint32_t rate_bulkhead(struct rating *a)
{
    const uint32_t points = rate_fgd(a);
    if (a->r->form == BH_FORM_CPU)
        return points;
    const uint32_t less = spoil(a->s->shelf, a->r, a->node);
    return points > less ? points - less : 0;
}

/*
 * An instance: a GPU that is cut already before a whole one, the least broken up, then the fullest; of whole
 * ones, on the node that has the fewest of them.
 */
static uint32_t rate_mig(struct rating *a, uint8_t *ret_start)
{
    enum { USED_MIN = 40 };
    const struct bh_shelf *shelf = a->s->shelf;
    const struct bh_gpu_model *known = shelf->models[a->node->model].known;
    uint32_t best = 0;
    for (uint32_t left = a->usable; left; left &= left - 1) {
        const struct bh_shelf_gpu *gpu = &shelf->gpus.at[a->node->first_gpu + (uint32_t)__builtin_ctz(left)];
        struct bh_mig_place place;
        if (!bh_mig_best(known, gpu, a->r->mig_profile, &place))
            continue;
        uint32_t points = 2u * BH_NODE_GPUS - a->node->n_whole;
        if (gpu->mig_held) {
            const uint32_t less = 3 * place.growth + (uint32_t)known->compute_slices - gpu->mig_compute;
            points = POINTS - less > USED_MIN && less < POINTS ? POINTS - less : USED_MIN;
        }
        if (!a->gpus || points > best) {
            best = points;
            a->gpus = left & -left;
            *ret_start = place.start;
        }
    }
    return best;
}

static uint32_t (*const rates[BH_SCORE_MODES])(struct rating *a) = {
    [BH_SCORE_FGD] = rate_fgd,
    [BH_SCORE_BESTFIT] = rate_bestfit,
    [BH_SCORE_PACKING] = rate_packing,
    [BH_SCORE_DOTPROD] = rate_dotprod,
    [BH_SCORE_CLUSTERING] = rate_clustering,
    [BH_SCORE_RANDOM] = rate_random,
    [BH_SCORE_BULKHEAD] = rate_bulkhead,
};

static uint8_t rate(struct bh_score *s, const struct bh_request *r, uint32_t node, bool afresh)
{
    struct rating a = {.s = s, .r = r, .id = node, .node = &s->shelf->nodes.at[node], .afresh = afresh};
    uint8_t start;
    a.usable = bh_shelf_usable(s->shelf, r, node);
    if (!a.usable)
        return BH_SCORE_NONE;
    const bool mig = r->form == BH_FORM_MIG && s->mode != BH_SCORE_RANDOM;
    return (uint8_t)(1 + (mig ? rate_mig(&a, &start) : rates[s->mode](&a)));
}

uint8_t bh_score_node(struct bh_score *s, const struct bh_request *r, uint32_t node)
{
    return rate(s, r, node, false);
}

static bool gpus_alike(const struct bh_shelf *s, const struct bh_shelf_node *a, const struct bh_shelf_node *b)
{
    for (uint32_t i = 0; i < a->n_gpus; i++) {
        const struct bh_shelf_gpu *x = &s->gpus.at[a->first_gpu + i], *y = &s->gpus.at[b->first_gpu + i];
        if (x->mib_free != y->mib_free || x->use != y->use || x->mechanism != y->mechanism ||
            x->kinds != y->kinds || x->avoid != y->avoid)
            return false;
    }
    return true;
}

bool bh_score_alike(const struct bh_score *s, const struct bh_request *r, uint32_t a, uint32_t b)
{
    const struct bh_shelf_node *x = &s->shelf->nodes.at[a], *y = &s->shelf->nodes.at[b];
    if (x->cpu_free != y->cpu_free || x->model != y->model || x->n_gpus != y->n_gpus ||
        x->health != y->health || x->features != y->features || x->pools != y->pools ||
        x->holds_max != y->holds_max || memcmp(x->open, y->open, sizeof(x->open)) != 0)
        return false;
    if ((x->mem_free < r->mem_mib) != (y->mem_free < r->mem_mib) ||
        (x->holds_max && x->crowd.holds != y->crowd.holds))
        return false;
    if (s->mode == BH_SCORE_CLUSTERING && memcmp(x->sizes, y->sizes, sizeof(x->sizes)) != 0)
        return false;
    if (s->mode == BH_SCORE_BULKHEAD && spoil(s->shelf, r, x) != spoil(s->shelf, r, y))
        return false;
    return r->form == BH_FORM_SHARE ? gpus_alike(s->shelf, x, y) : r->form != BH_FORM_MIG;
}

uint8_t bh_score_afresh(struct bh_score *s, const struct bh_request *r, uint32_t node)
{
    return rate(s, r, node, true);
}

struct bh_spot bh_score_spot(struct bh_score *s, const struct bh_request *r, uint32_t node)
{
    struct rating a = {.s = s, .r = r, .id = node, .node = &s->shelf->nodes.at[node], .afresh = true};
    struct bh_spot spot = {.node = node};
    a.usable = bh_shelf_usable(s->shelf, r, node);
    if (r->form == BH_FORM_MIG) {
        rate_mig(&a, &spot.mig_start);
    } else if (r->form == BH_FORM_WHOLE) {
        a.gpus = s->mode == BH_SCORE_BULKHEAD ? near_of(s->shelf, a.node, a.usable, r->n_gpus)
                                              : first_of(a.usable, r->n_gpus);
    } else if (s->mode == BH_SCORE_RANDOM && r->form == BH_FORM_SHARE) {
        for (uint32_t n = r->n_gpus; n; n--) {
            uint32_t left = a.usable & ~a.gpus;
            for (uint32_t skip = bh_score_draw(s, bh_bits(left)); skip; skip--)
                left &= left - 1;
            a.gpus |= left & -left;
        }
    } else {
        rates[s->mode](&a);
    }
    spot.gpus = (uint16_t)a.gpus;
    return spot;
}

int32_t bh_score_price_milli(const struct bh_score *s, const struct bh_request *r, uint32_t model)
{
    return s->mode == BH_SCORE_BULKHEAD && r->form != BH_FORM_CPU && model < BH_MODELS_MAX
               ? s->price.price_milli[model]
               : 0;
}

/* ---- the object ---- */

struct bh_score *bh_score_new(enum bh_score_mode mode, const struct bh_shelf *shelf, uint64_t seed)
{
    struct bh_score *s = bh_alloc(1, sizeof(*s));
    s->mode = mode;
    s->shelf = shelf;
    s->state = seed;
    bh_frag_set(&s->frag, shelf->requests, NULL, 0);
    return s;
}

void bh_score_free(struct bh_score *s)
{
    if (!s)
        return;
    bh_frag_fini(&s->frag);
    free(s->known);
    free(s);
}

void bh_score_grow(struct bh_score *s)
{
    if (s->n_known >= s->shelf->nodes.n)
        return;
    free(s->known);
    s->n_known = s->shelf->nodes.n;
    s->known = bh_alloc(s->n_known, sizeof(*s->known));
}

void bh_score_set_typical(struct bh_score *s, const struct bh_typical *at, size_t n)
{
    bh_frag_set(&s->frag, s->shelf->requests, at, n);
    if (s->n_known)
        memset(s->known, 0, s->n_known * sizeof(*s->known));
    s->epoch++;
}

size_t bh_score_typical_count(const struct bh_score *s)
{
    return s->frag.n_kinds;
}

void bh_score_arrived(struct bh_score *s, uint32_t class_)
{
    bh_price_arrived(&s->price, s->shelf, &s->shelf->requests->at.at[class_]);
}

_Static_assert(sizeof(struct bh_price) <= sizeof(struct bh_score_memory) - sizeof(uint64_t),
               "memory of a score");

void bh_score_save(const struct bh_score *s, struct bh_score_memory *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->at[0] = s->state;
    memcpy(&ret->at[1], &s->price, sizeof(s->price));
}

void bh_score_restore(struct bh_score *s, const struct bh_score_memory *m)
{
    s->state = m->at[0];
    memcpy(&s->price, &m->at[1], sizeof(s->price));
}

struct bh_fragment bh_score_fragment(const struct bh_score *s)
{
    struct bh_fragment f = {0};
    uint64_t weighted = 0;
    for (size_t i = 0; i < s->shelf->nodes.n; i++) {
        const struct bh_shelf_node *node = &s->shelf->nodes.at[i];
        f.idle_milli += idle_milli(node);
        weighted += node->n_gpus ? bh_frag_of(&s->frag, node->model, node->cpu_free, node->open) : 0;
    }
    f.fragment_milli = s->frag.weight ? weighted / s->frag.weight : 0;
    return f;
}

enum bh_score_mode bh_score_mode(const struct bh_score *s)
{
    return s->mode;
}

uint64_t bh_score_epoch(const struct bh_score *s)
{
    return s->epoch;
}

/* splitmix64: small, and the same everywhere. */
uint32_t bh_score_draw(struct bh_score *s, uint32_t n)
{
    uint64_t z = s->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}
