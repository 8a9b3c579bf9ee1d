/* SPDX-License-Identifier: Apache-2.0 */
/* use_samples.c - samples of use, put in order of their times. */
#include "core/govern/use.h"

#include <string.h>

/* Of a full list the oldest goes. */
static void insert(struct bh_use_samples *to, const struct bh_use_sample *s)
{
    uint32_t i = to->n_timed;
    while (i > 0 && to->at[i - 1].to_ns > s->to_ns)
        i--;
    if (to->n_timed < BH_USE_TIMED) {
        memmove(&to->at[i + 1], &to->at[i], (to->n_timed - i) * sizeof(*s));
        to->at[i] = *s;
        to->n_timed++;
    } else if (i > 0) {
        memmove(&to->at[0], &to->at[1], (i - 1) * sizeof(*s));
        to->at[i - 1] = *s;
    }
}

void bh_use_samples_add(struct bh_use_samples *to, uint64_t at_ns, uint32_t permille)
{
    insert(to, &(struct bh_use_sample){.to_ns = at_ns, .permille = permille});
    to->n++;
    to->sum += permille;
    to->mean = to->sum / to->n;
    to->last = to->at[to->n_timed - 1].permille;
}

/* What is before the first of a full list is not known: it is of no time. */
void bh_use_samples_follow(struct bh_use_samples *s, uint64_t before_ns)
{
    for (uint32_t i = 0; i < s->n_timed; i++)
        s->at[i].from_ns = i > 0 ? s->at[i - 1].to_ns : s->n == s->n_timed ? before_ns : s->at[i].to_ns;
}
