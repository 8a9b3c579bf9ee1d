/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_free.c - the jobs whose end would start another, the fewest GPUs in all.
 *
 * Sets of running jobs are tried in the order of what they hold. On a small fleet that is every set. On a large one it
 * is those of jobs that stand where room is nearest to enough, or whose queue is in the way; and a first answer, put together
 * greedily for each place, bounds the search.
 */
#include "core/sched/whatif_search.h"

enum { CANDIDATES = 64, FEW = 14, PLACES = 16 };
#define BYTES_TRIED ((size_t)256 << 20) /* copies of a large fleet are dear: so much is copied, and no more */

struct candidate {
    uint64_t job, milli;
};

/* A set of candidates (bit i: the i-th), what it holds, and its highest member. */
struct set {
    uint64_t bits, milli;
    uint32_t last;
};

struct search {
    struct bh_whatif *w;
    const struct bh_sched *s;
    uint64_t job;
    const struct bh_shape *shape;
    struct candidate at[CANDIDATES]; /* ascending by what they hold */
    uint32_t n;
    bool all; /* nobody who runs was left out */
    BH_VEC(struct set) heap;
    uint64_t *ends; /* by hold, for bh_shadow_fits(): 0 is gone */
    uint64_t best[CANDIDATES];
    uint32_t n_best; /* 0: none yet */
    uint64_t best_milli;
    bool moves;
};

/* ---- candidates ---- */

static bool goes_first(const struct candidate *a, const struct candidate *b)
{
    return a->milli != b->milli ? a->milli < b->milli : a->job < b->job;
}

/* Keeps those that hold least, in order. */
static void nominate(struct search *f, const struct bh_gang *g)
{
    const struct candidate c = {g->id, bh_gang_milli(f->s, g)};
    uint32_t i = f->n;
    while (i && goes_first(&c, &f->at[i - 1]))
        i--;
    if (f->n == CANDIDATES)
        f->all = false;
    if (i == CANDIDATES)
        return;
    f->n += f->n < CANDIDATES;
    memmove(&f->at[i + 1], &f->at[i], (f->n - 1 - i) * sizeof(f->at[0]));
    f->at[i] = c;
}

/* A node (level BH_LEVEL_ANY) or a domain; BH_NONE: anywhere. */
struct place {
    uint32_t id, free;
    uint8_t level;
};

static bool stands_in(const struct search *f, const struct bh_gang *g, const struct place *p)
{
    const struct bh_shelf *shelf = bh_sched_shelf(f->s);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(f->s, h)->next) {
        const uint32_t node = shelf->holds.at[h].node;
        if (p->id == BH_NONE ||
            (p->level == BH_LEVEL_ANY ? node == p->id
                                      : bh_shelf_domain_of(shelf, node, (enum bh_level)p->level) == p->id))
            return true;
    }
    return false;
}

/* All that run in one of the places, or below the queue (BH_QUEUE_NONE: no queue). */
static void nominate_all(struct search *f, const struct place *places, uint32_t n, uint32_t queue)
{
    f->n = 0;
    f->all = true;
    for (size_t slot = 0; slot < bh_sched_slots(f->s); slot++) {
        const struct bh_gang *g = bh_sched_slot(f->s, slot);
        bool in = g->state == BH_GANG_RUNS && queue != BH_QUEUE_NONE &&
                  bh_queue_is_below(bh_sched_queues(f->s), g->queue, queue);
        for (uint32_t i = 0; i < n && !in && g->state == BH_GANG_RUNS; i++)
            in = stands_in(f, g, &places[i]);
        if (in)
            nominate(f, g);
        else
            f->all &= g->state != BH_GANG_RUNS;
    }
}

/* ---- trying a set ---- */

/* Remembers it if it is the best so far: less, or as much and nobody has to end. */
static void try_set(struct search *f, const struct set *set)
{
    struct bh_change changes[CANDIDATES];
    uint64_t jobs[CANDIDATES];
    uint32_t n = 0;
    struct bh_trial t;
    struct bh_err err;
    for (uint32_t i = 0; i < f->n; i++)
        if (set->bits >> i & 1) {
            changes[n] = (struct bh_change){.kind = BH_CHANGE_FREE, .job = f->at[i].job};
            jobs[n++] = f->at[i].job;
        }
    if (bh_trial_begin(f->w, changes, n, &t, &err) < 0)
        return;
    if (bh_trial_runs(&t, f->job)) {
        const bool moves = bh_trial_return(&t, f->s, jobs, n) && bh_trial_runs(&t, f->job);
        if (!f->n_best || set->milli < f->best_milli || (moves && !f->moves)) {
            memcpy(f->best, jobs, sizeof(jobs));
            f->n_best = n;
            f->best_milli = set->milli;
            f->moves = moves;
        }
    }
    bh_trial_end(&t);
}

/* ---- in ascending order ---- */

static bool cheaper(const struct set *a, const struct set *b)
{
    return a->milli != b->milli ? a->milli < b->milli : a->bits < b->bits;
}

static void push(struct search *f, struct set set)
{
    (void)bh_vec_push(&f->heap);
    size_t i = f->heap.n - 1;
    for (; i && cheaper(&set, &f->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        f->heap.at[i] = f->heap.at[(i - 1) / 2];
    f->heap.at[i] = set;
}

static struct set pop(struct search *f)
{
    const struct set top = f->heap.at[0], last = f->heap.at[--f->heap.n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < f->heap.n && cheaper(&f->heap.at[child + 1], &f->heap.at[child]))
            child++;
        if (child >= f->heap.n || !cheaper(&f->heap.at[child], &last))
            break;
        f->heap.at[i] = f->heap.at[child];
        i = child;
    }
    f->heap.at[i] = last;
    return top;
}

/*
 * Every set comes once, after all that hold less: from one whose highest member is i follow the one with i + 1
 * added, and the one with i + 1 in the place of i. Ends after the first that does and its equals, among which there may
 * be one whose jobs can move. False: more was to be tried.
 */
static bool ascend(struct search *f, size_t sets_max)
{
    size_t tried = 0;
    f->heap.n = 0;
    if (f->n)
        push(f, (struct set){1, f->at[0].milli, 0});
    while (f->heap.n) {
        const struct set set = pop(f);
        if (f->n_best && (set.milli > f->best_milli || (set.milli == f->best_milli && f->moves)))
            return true;
        if (tried++ == sets_max)
            return false;
        try_set(f, &set);
        if (set.last + 1 == f->n)
            continue;
        const uint32_t i = set.last + 1;
        const uint64_t with = UINT64_C(1) << i, without = set.bits & ~(UINT64_C(1) << set.last);
        push(f, (struct set){set.bits | with, set.milli + f->at[i].milli, i});
        push(f, (struct set){without | with, set.milli - f->at[set.last].milli + f->at[i].milli, i});
    }
    return true;
}

/* ---- a first answer for a large fleet ---- */

static void set_ends(struct search *f, uint64_t job, uint64_t end_ms)
{
    const struct bh_gang *g = bh_sched_job(f->s, job);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = bh_sched_owner(f->s, h)->next)
        f->ends[h] = end_ms;
}

static bool fits(const struct search *f, uint32_t domain)
{
    return bh_shadow_fits(bh_sched_shelf(f->s), f->ends, f->shape, domain, 1);
}

/* Of the candidates, those that hold least until the gang fits; then each that is not needed stays. */
static void greedy(struct search *f, uint32_t domain)
{
    struct set set = {0};
    uint32_t n = 0;
    bool ok = false;
    for (; n < f->n && !ok; n++) {
        set_ends(f, f->at[n].job, 0);
        set.bits |= UINT64_C(1) << n;
        ok = fits(f, domain);
    }
    for (uint32_t i = n; ok && i-- > 0;) {
        set_ends(f, f->at[i].job, BH_NEVER_MS);
        if (fits(f, domain))
            set.bits &= ~(UINT64_C(1) << i);
        else
            set_ends(f, f->at[i].job, 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        set_ends(f, f->at[i].job, BH_NEVER_MS);
        set.milli += set.bits >> i & 1 ? f->at[i].milli : 0;
    }
    if (ok && (!f->n_best || set.milli < f->best_milli))
        try_set(f, &set);
}

static bool could_be(const struct search *f, uint32_t node)
{
    const struct bh_shelf_node *n = &bh_sched_shelf(f->s)->nodes.at[node];
    return n->health == BH_HEALTH_OK &&
           (f->shape->anywhere || (n->n_gpus && (f->shape->models >> n->model & 1)));
}

/* Nodes or domains where the gang could be: those that have most free already. */
static uint32_t best_places(const struct search *f, struct place *ret)
{
    const struct bh_shelf *s = bh_sched_shelf(f->s);
    const bool nodes = f->shape->within == BH_LEVEL_ANY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < (nodes ? s->nodes.n : s->domains.n); i++) {
        const struct place p = {i, nodes ? s->nodes.at[i].n_whole : s->domains.at[i].n_whole,
                                f->shape->within};
        uint32_t k = n;
        if (!(nodes ? could_be(f, i) : s->domains.at[i].level == f->shape->within))
            continue;
        while (k && ret[k - 1].free < p.free)
            k--;
        if (k == PLACES)
            continue;
        n += n < PLACES;
        memmove(&ret[k + 1], &ret[k], (n - 1 - k) * sizeof(*ret));
        ret[k] = p;
    }
    return n;
}

static bool among_many(struct search *f, size_t sets_max)
{
    const struct bh_gang *g = bh_sched_job(f->s, f->job);
    const struct bh_line *line = bh_sched_line(f->s, g);
    const struct place anywhere = {BH_NONE, 0, BH_LEVEL_ANY};
    const size_t holds = bh_sched_shelf(f->s)->holds.n;
    struct place places[PLACES];
    const uint32_t n = best_places(f, places);
    f->ends = bh_alloc(holds + 1, sizeof(*f->ends));
    for (size_t i = 0; i < holds; i++)
        f->ends[i] = BH_NEVER_MS;
    for (uint32_t i = 0; i < n; i++) {
        nominate_all(f, &places[i], 1, BH_QUEUE_NONE);
        greedy(f, f->shape->within == BH_LEVEL_ANY ? BH_NONE : places[i].id);
    }
    if (f->shape->within == BH_LEVEL_ANY) {
        nominate_all(f, &anywhere, 1, BH_QUEUE_NONE);
        greedy(f, BH_NONE);
    }
    free(f->ends);
    nominate_all(f, places, n, line && line->stuck == BH_STUCK_QUOTA ? line->why.queue : g->queue);
    return ascend(f, sets_max) && f->all;
}

bool bh_remedy_free(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                    const struct bh_remedy_config *c, struct bh_remedy *ret)
{
    const struct place anywhere = {BH_NONE, 0, BH_LEVEL_ANY};
    struct search f = {.w = w, .s = s, .job = job, .shape = bh_sched_shape(s, bh_sched_job(s, job))};
    const size_t dear = BYTES_TRIED / (w->saved.n + 1), sets_max = c->sets_max < dear ? c->sets_max : dear;
    nominate_all(&f, &anywhere, 1, BH_QUEUE_NONE);
    const bool few = f.all && f.n <= FEW;
    const bool least = few ? ascend(&f, sets_max) : among_many(&f, sets_max);
    bh_vec_fini(&f.heap);
    if (!f.n_best)
        return false;
    for (uint32_t i = 0; i < f.n_best; i++)
        *bh_vec_push(&ret->steps) = (struct bh_change){.kind = f.moves ? BH_CHANGE_MOVE : BH_CHANGE_FREE,
                                                       .job = f.best[i],
                                                       .milli = bh_gang_milli(s, bh_sched_job(s, f.best[i]))};
    ret->kind = f.moves ? BH_CHANGE_MOVE : BH_CHANGE_FREE;
    ret->cost = f.best_milli;
    ret->least = least;
    return true;
}

/* ---- whoever it takes ---- */

/* Everybody but the job itself ends: who runs, and who waits before it. */
static void end_all(const struct bh_sched *s, uint64_t job, bh_changes *steps)
{
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state != BH_GANG_FREE && g->id != job)
            *bh_vec_push(steps) =
                (struct bh_change){.kind = BH_CHANGE_FREE, .job = g->id, .milli = bh_gang_milli(s, g)};
    }
}

/* Who is not needed stays: in halves first, then one by one. */
static bool put_back(struct bh_whatif *w, uint64_t job, bh_changes *steps, size_t tries)
{
    bh_changes less = {0};
    for (size_t chunk = (steps->n + 1) / 2; chunk; chunk = chunk > 1 ? (chunk + 1) / 2 : 0) {
        for (size_t at = 0; at < steps->n;) {
            const size_t out = steps->n - at < chunk ? steps->n - at : chunk;
            less.n = 0;
            if (!tries--) {
                bh_vec_fini(&less);
                return false;
            }
            for (size_t i = 0; i < steps->n; i++)
                if (i < at || i >= at + out)
                    *bh_vec_push(&less) = steps->at[i];
            if (!bh_whatif_starts(w, less.at, less.n, job)) {
                at += out;
                continue;
            }
            if (less.n)
                memcpy(steps->at, less.at, less.n * sizeof(*less.at));
            steps->n = less.n;
        }
    }
    bh_vec_fini(&less);
    return true;
}

bool bh_remedy_clear(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                     const struct bh_change *with, size_t n_with, const struct bh_remedy_config *c,
                     struct bh_remedy *ret)
{
    const size_t dear = BYTES_TRIED / (w->saved.n + 1), tries = c->sets_max < dear ? c->sets_max : dear;
    bh_changes steps = {0};
    for (size_t i = 0; i < n_with; i++)
        *bh_vec_push(&steps) = with[i];
    end_all(s, job, &steps);
    if (!tries || !bh_whatif_starts(w, steps.at, steps.n, job) || !put_back(w, job, &steps, tries) ||
        steps.n > CANDIDATES) {
        bh_vec_fini(&steps);
        return false;
    }
    ret->cost = 0;
    for (size_t i = 0; i < steps.n; i++) {
        *bh_vec_push(&ret->steps) = steps.at[i];
        ret->cost += steps.at[i].kind == BH_CHANGE_FREE ? steps.at[i].milli : 0;
    }
    bh_vec_fini(&steps);
    ret->kind = BH_CHANGE_FREE;
    ret->least = false;
    return true;
}
