/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_frag.c - fragments: idle GPU that typical work cannot use.
 *
 * Seen by one kind of work, all that is idle on a node is a fragment when the kind cannot run there (it needs
 * no GPU, another model, more processors, more GPUs of its size); else only GPUs with less left than it needs.
 * A node's fragments are the mean over all kinds, by how often they come ("Beware of Fragmentation", USENIX
 * ATC 2023). Here everything stays multiplied by the sum of weights, so that nothing is rounded.
 */
#include "core/sched/score_inside.h"

enum { COVERED_PERCENT = 95, WEIGHT_MAX = 1 << 24 };

/*
 * Points are 100 / (1 + exp(-fall / 1 GPU)), rounded down. So s points take a fall of ln(s / (100 - s)) GPUs:
 * here for 50 to 99, in 1e-9 GPU, rounded up. Below 50 the same with the other sign.
 */
static const int64_t fall_of_points[50] = {
    0,          40005335,   80042708,   120144312,  160342651,  200670696,  241162057,  281851153,
    322773393,  363965378,  405465109,  447312219,  489548226,  532216814,  575364145,  619039209,
    663294218,  708185058,  753771803,  800119301,  847297861,  895384048,  944461609,  994622576,
    1045968556, 1098612289, 1152679510, 1208311206, 1265666374, 1324925415, 1386294362, 1450010176,
    1516347490, 1585627264, 1658228077, 1734601056, 1815289967, 1900958762, 1992430165, 2090741097,
    2197224578, 2313634930, 2442347036, 2586689345, 2751535314, 2944438980, 3178053831, 3476098690,
    3891820299, 4595119851};

struct kind {
    const struct bh_request *r;
    uint64_t count;
    size_t order; /* of its first appearance: ties are stable */
};

static bool same_kind(const struct bh_request *a, const struct bh_request *b)
{
    return a->cpu_milli == b->cpu_milli && a->gpu_milli == b->gpu_milli && a->n_gpus == b->n_gpus &&
           a->models == b->models && a->form == b->form;
}

static int by_kind(const void *x, const void *y)
{
    const struct kind *p = x, *q = y;
    const struct bh_request *a = p->r, *b = q->r;
#define ORDER(field)          \
    if (a->field != b->field) \
    return a->field < b->field ? -1 : 1
    ORDER(cpu_milli);
    ORDER(gpu_milli);
    ORDER(n_gpus);
    ORDER(models);
    ORDER(form);
#undef ORDER
    return p->order < q->order ? -1 : p->order > q->order;
}

static int by_count(const void *x, const void *y)
{
    const struct kind *a = x, *b = y;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Kinds in the order of how often, cut where enough are covered; returns how many, and their sum. */
static size_t most_frequent(struct kind *at, size_t n, uint64_t *ret_sum)
{
    size_t kinds = 0, keep = 0;
    uint64_t all = 0, sum = 0;
    qsort(at, n, sizeof(*at), by_kind);
    for (size_t i = 0; i < n; i++) {
        all += at[i].count;
        if (kinds && same_kind(at[kinds - 1].r, at[i].r))
            at[kinds - 1].count += at[i].count;
        else
            at[kinds++] = at[i];
    }
    qsort(at, kinds, sizeof(*at), by_count);
    while (keep < kinds && keep < BH_TYPICAL_MAX && sum * 100 < all * COVERED_PERCENT)
        sum += at[keep++].count;
    *ret_sum = sum;
    return keep;
}

static uint16_t milli_index(struct bh_frag *f, uint16_t milli)
{
    uint32_t i = 0;
    while (i < f->n_millis && f->millis[i] < milli)
        i++;
    return (uint16_t)i;
}

static void add_milli(struct bh_frag *f, uint16_t milli)
{
    const uint32_t i = milli_index(f, milli);
    if (i < f->n_millis && f->millis[i] == milli)
        return;
    memmove(&f->millis[i + 1], &f->millis[i], (f->n_millis - i) * sizeof(f->millis[0]));
    f->millis[i] = milli;
    f->n_millis++;
}

static void set_steps(struct bh_frag *f)
{
    for (int s = 0; s < 100; s++) {
        /* Thousandths of a GPU times weight, from 1e-9 GPU; rounded up on both sides of zero. */
        const int64_t fall = s >= 50 ? fall_of_points[s - 50]
                             : s     ? -fall_of_points[50 - s]
                                     : INT64_MIN / WEIGHT_MAX;
        const int64_t scaled = fall * (int64_t)f->weight;
        f->steps[s] = scaled / 1000000 + (scaled > 0 && scaled % 1000000 != 0);
    }
}

void bh_frag_fini(struct bh_frag *f)
{
    free(f->kinds);
    memset(f, 0, sizeof(*f));
}

void bh_frag_set(struct bh_frag *f, const struct bh_requests *requests, const struct bh_typical *at, size_t n)
{
    struct kind *kinds = bh_alloc(n + 1, sizeof(*kinds));
    size_t m = 0;
    uint64_t sum;
    bh_frag_fini(f);
    for (size_t i = 0; i < n; i++) {
        const struct bh_request *r = &requests->at.at[at[i].class_];
        if (r->form != BH_FORM_MIG && at[i].count) /* instances are judged by their geometry */
            kinds[m++] = (struct kind){.r = r, .count = at[i].count, .order = i};
    }
    const size_t keep = most_frequent(kinds, m, &sum);
    f->n_kinds = (uint32_t)keep;
    f->kinds = bh_alloc(keep * BH_MODELS_MAX + 1, sizeof(*f->kinds));
    for (size_t i = 0; i < keep; i++) {
        if (sum > WEIGHT_MAX)
            kinds[i].count = kinds[i].count * (WEIGHT_MAX / 2) / sum + 1;
        f->weight += (uint32_t)kinds[i].count;
        if (kinds[i].r->form != BH_FORM_CPU)
            add_milli(f, kinds[i].r->gpu_milli);
    }
    uint32_t to = 0;
    for (uint32_t model = 0; model < BH_MODELS_MAX; model++) {
        for (size_t i = 0; i < keep; i++) {
            const struct bh_request *r = kinds[i].r;
            if (r->form != BH_FORM_CPU && bh_request_takes(r, model))
                f->kinds[to++] = (struct bh_kind){.cpu_milli = r->cpu_milli,
                                                  .weight = (uint32_t)kinds[i].count,
                                                  .milli = milli_index(f, r->gpu_milli),
                                                  .n_gpus = r->n_gpus};
        }
        f->first[model + 1] = to;
    }
    set_steps(f);
    free(kinds);
}

uint64_t bh_frag_of(const struct bh_frag *f, uint32_t model, uint32_t cpu_free, const uint16_t *open)
{
    uint16_t high[BH_MILLIS_MAX], count[BH_MILLIS_MAX];
    uint32_t total = 0;
    uint64_t useful = 0;
    for (uint32_t g = 0; g < BH_NODE_GPUS; g++)
        total += open[g];
    for (uint32_t i = 0; i < f->n_millis; i++) {
        const uint16_t milli = f->millis[i];
        uint32_t sum = 0, n = 0; /* in 16 bits gcc 12 -O3 gets them wrong */
        for (uint32_t g = 0; g < BH_NODE_GPUS; g++) {
            sum += open[g] >= milli ? open[g] : 0;
            n += open[g] >= milli;
        }
        high[i] = (uint16_t)sum;
        count[i] = (uint16_t)n;
    }
    for (uint32_t k = f->first[model]; k < f->first[model + 1]; k++) {
        const struct bh_kind *kind = &f->kinds[k];
        const bool runs = (cpu_free >= kind->cpu_milli) & (count[kind->milli] >= kind->n_gpus);
        useful += runs ? (uint64_t)kind->weight * high[kind->milli] : 0;
    }
    return (uint64_t)f->weight * total - useful;
}

uint32_t bh_frag_points(const struct bh_frag *f, uint64_t before, uint64_t after)
{
    const int64_t fall = (int64_t)before - (int64_t)after;
    uint32_t low = 0, high = 99;
    if (!f->weight)
        return 50; /* nothing to keep room for */
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (fall >= f->steps[middle])
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
