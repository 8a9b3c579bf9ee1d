/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/tally.h"

#include <string.h>

enum {
    WHOLE = 1000,
    FEW_TURNS = 8,
    OWN_PERMILLE = 750, /* of its slice: turns that are shorter were given back, not taken away */
};

void bh_tally_begin(struct bh_tally_card *c, uint32_t elapsed_us)
{
    c->elapsed_us += elapsed_us;
    c->active = c->heavy = 0;
}

static struct bh_tally_sum *sum_of(struct bh_tally_card *c, const struct bh_governed *l)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].lease == l->id)
            return &c->at[i];
    if (c->n == BH_TALLY_LEASES)
        return NULL;
    struct bh_tally_sum *s = &c->at[c->n++];
    *s = (struct bh_tally_sum){.lease = l->id, .slice_us = UINT32_MAX, .held_permille = BH_CULPRIT_UNKNOWN};
    memcpy(s->name, l->name, sizeof(s->name));
    return s;
}

/* What it does on two cards is not said by card. */
static bool is_on_one_card(const struct bh_governed *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->seats.n; i++)
        n += l->seats.at[i].channels.n > 0;
    return n <= 1;
}

void bh_tally_add(struct bh_tally_card *c, const struct bh_governed *l, uint32_t elapsed_us,
                  const struct bh_govern_told *told, const struct bh_sense_got *got)
{
    struct bh_tally_sum *s = sum_of(c, l);
    c->active += told->active;
    c->heavy += told->active && !told->light && !l->latency;
    c->used |= told->active;
    if (!s) {
        c->left_out = true;
        return;
    }
    if (got->gpu_ns != BH_GOVERN_NO_SAMPLE) {
        s->known = true;
        s->gpu_ns += got->gpu_ns;
        s->turns += got->turns;
        s->turn_ns += got->turn_ns;
    }
    s->slice_us = told->slice_us < s->slice_us ? told->slice_us : s->slice_us;
    s->held_permille = told->seen ? told->held_permille : BH_CULPRIT_UNKNOWN;
    s->cap_permille = l->cap_permille;
    s->tells = l->own.at_ns && is_on_one_card(l);
    s->own_done = l->own.done;
    s->own_lines = l->own.lines;
    s->own_p99_us = l->own.at_ns ? l->own.last.p99_us : UINT32_MAX;
    s->target += (uint64_t)told->target_permille * elapsed_us;
    s->asks_little |= told->light || l->latency;
    s->active_us += told->active ? elapsed_us : 0;
    /* Copies are no turns: one that only copies looks as if it had no work. It is there as long as nobody pauses it. */
    s->there_us += told->paused ? 0 : elapsed_us;
    s->works_us += told->active && !told->paused ? elapsed_us : 0;
}

static void close_line(const struct bh_tally_card *c, const struct bh_tally_sum *s, struct bh_tally_line *ret)
{
    const uint64_t gpu = s->gpu_ns / c->elapsed_us; /* ns of us: permille */
    const uint64_t turn_ns = s->turns >= FEW_TURNS ? s->turn_ns / s->turns : 0;
    *ret = (struct bh_tally_line){.lease = s->lease,
                                  .gpu_permille = BH_CULPRIT_UNKNOWN,
                                  .held_permille = s->held_permille,
                                  .target_permille = (uint32_t)(s->target / c->elapsed_us),
                                  .cap_permille = s->cap_permille,
                                  .asks_little = s->asks_little,
                                  .active = s->active_us * 2 >= c->elapsed_us,
                                  .there_permille = (uint32_t)(s->there_us * WHOLE / c->elapsed_us),
                                  .works_permille = (uint32_t)(s->works_us * WHOLE / c->elapsed_us),
                                  .gpu_us = s->known ? s->gpu_ns / 1000 : 0,
                                  .tells = s->tells,
                                  .own_done = s->own_done,
                                  .own_lines = s->own_lines,
                                  .own_p99_us = s->own_p99_us};
    memcpy(ret->name, s->name, sizeof(ret->name));
    if (s->known)
        ret->gpu_permille = gpu > WHOLE ? WHOLE : (uint32_t)gpu;
    if (turn_ns < (uint64_t)s->slice_us * OWN_PERMILLE)
        ret->turn_ns = (uint32_t)turn_ns;
}

static uint64_t interval_ns(const struct bh_tally_card *c, bool often)
{
    if (!often)
        return BH_TALLY_ALONE_NS;
    if (c->crowd <= BH_TALLY_FEW)
        return BH_TALLY_NS;
    return c->gap ? BH_TALLY_GAP_NS + c->gaps % BH_TALLY_GAPS * BH_TALLY_MORE_NS : BH_TALLY_MANY_NS;
}

bool bh_tally_end(struct bh_tally_card *c, uint64_t now_ns, bool seldom, struct bh_tally *ret)
{
    c->crowd = c->heavy > c->crowd ? c->heavy : c->crowd; /* one that rests for a step is still there */
    if (c->active >= 2)
        c->competed_ns = now_ns;
    const bool often = c->competed_ns && now_ns - c->competed_ns <= BH_TALLY_LINGER_NS;
    if (c->elapsed_us * 1000 < (seldom ? BH_TALLY_SELDOM_NS : interval_ns(c, often)))
        return false;
    const bool wanted = often || c->used;
    if (wanted) {
        ret->at_ns = now_ns;
        ret->fresh = !c->going;
        ret->gap = c->gap;
        ret->left_out = c->left_out;
        ret->n = c->n;
        for (uint32_t i = 0; i < c->n; i++)
            close_line(c, &c->at[i], &ret->at[i]);
    }
    c->going = wanted;
    c->gap = wanted && often && !seldom && !ret->fresh && !ret->gap && c->crowd > BH_TALLY_FEW;
    c->gaps += c->gap;
    c->elapsed_us = 0;
    c->left_out = c->used = false;
    c->n = c->crowd = 0;
    return wanted;
}
