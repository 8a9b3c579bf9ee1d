/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_row.c - what samples in a row of a full card tell.
 *
 * Whoever had some of that time cannot have rested for more of it than is missing. So much is known before the sum tells, which is of the
 * time before as well; and without that anybody is looked at, when all the others wait and can show nothing. (Changes of the card are
 * work to the samples: with 640 of them a second they said 988.)
 */
#include "core/govern/use_inside.h"

enum {
    NEARLY_FULL = 900, /* permille: below that it may be chance which samples are of which turns */
    FULL_CARD = 950,   /* permille; measured: 960 to 995 */
    SHARED = 600,      /* permille of a span that one may have had where several did */
    CHANGED = 40,      /* permille: what is had in 200 changes a second */
    SEEN = 30,         /* permille of a span: less may not have been in a sample */
    ROW_MOST = 4,      /* samples; what is older fades */
};

void bh_use_row_forget(struct bh_use *u)
{
    u->row = (struct bh_use_row){0};
    for (size_t i = 0; i < u->n; i++)
        u->at[i].row_ns = u->at[i].row_long_ns = 0;
}

static void fade(struct bh_use *u)
{
    u->row.samples /= 2;
    u->row.ns /= 2;
    u->row.used_ns /= 2;
    for (size_t i = 0; i < u->n; i++) {
        u->at[i].row_ns /= 2;
        u->at[i].row_long_ns /= 2;
    }
}

void bh_use_row_watch(struct bh_use *u, const struct bh_use_samples *s, uint64_t span)
{
    const bool full = s->mean >= FULL_CARD;
    if (u->row.full != full)
        bh_use_row_forget(u);
    u->row.full = full;
    if (u->row.samples >= ROW_MOST)
        fade(u);
    u->row.samples += s->n;
    u->row.ns += span;
    u->row.used_ns += span / BH_USE_WHOLE * s->mean;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const uint64_t had = line->had_ns - line->taken_ns, in_long = line->long_ns - line->taken_long_ns;
        line->row_ns += had < span ? had : span;
        line->row_long_ns += in_long < span ? in_long : span;
    }
}

static bool is_full_of_several(const struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].row_ns > u->row.ns / BH_USE_WHOLE * SHARED)
            return false;
    return u->row.full && u->row.samples >= 2;
}

bool bh_use_works_in_full(const struct bh_use *u, const struct bh_use_line *line)
{
    return is_full_of_several(u) && line->row_ns >= u->row.ns / BH_USE_WHOLE * SEEN;
}

/*
 * The newest sample may have ended a window ago: what one had since then is in none, so it counts as far as it had as much before. Else
 * one that rested in a turn just now would be refuted by samples of the time before it.
 */
static uint64_t surely(const struct bh_use *u, uint64_t all, uint64_t newest)
{
    const uint64_t before = bh_use_less(all, newest), seen_ns = bh_use_less(u->row.ns, BH_USE_WINDOW_NS);
    const uint64_t as_before =
        seen_ns < BH_USE_MS ? 0 : before * (u->row.ns / BH_USE_MS) / (seen_ns / BH_USE_MS);
    return all < as_before ? all : as_before;
}

/* For so long it would have rested if it were as believed: in its turns, and in what it had beyond what it uses. (Where it is known what
 * it has beside busy ones, that tells of the latter.) */
static uint64_t believed_rest(const struct bh_use *u, const struct bh_use_line *line, uint32_t mark)
{
    if (!line->known || line->refuted)
        return 0;
    const uint64_t had = surely(u, line->row_ns, bh_use_since(line, mark));
    const uint64_t in_long = surely(u, line->row_long_ns, bh_use_long_since(line, mark));
    const uint64_t in_turns = in_long / BH_USE_WHOLE * (BH_USE_WHOLE - line->permille);
    const uint64_t most = u->row.ns / BH_USE_WHOLE * (line->permille + CHANGED);
    const uint64_t beyond = line->besides < BH_USE_FEW ? bh_use_less(had, most) : 0;
    return in_turns > beyond ? in_turns : beyond;
}

/* What they were seen to use was by what was believed of their visitors, and that was wrong. */
static void forget_visited(struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++)
        u->at[i].known = u->at[i].known && !u->at[i].visited;
}

/* One of whom more is believed was seen while it loaded, say, and so were the others, whose error may be smaller: a share that is no more
 * than what one is believed to use would never be told by the sum. */
bool bh_use_refute(struct bh_use *u, uint64_t now_ns)
{
    const uint64_t rested = bh_use_less(u->row.ns, u->row.used_ns), slack = u->row.ns / BH_USE_WHOLE * SEEN;
    const uint32_t mark = bh_use_mark_before(u, now_ns, BH_USE_WINDOW_NS);
    const bool enough = mark != BH_USE_MARKS && u->row.samples >= 2 &&
                        u->row.used_ns >= u->row.ns / BH_USE_WHOLE * NEARLY_FULL;
    bool wrong = false;
    for (size_t i = 0; i < u->n && enough; i++)
        wrong |= believed_rest(u, &u->at[i], mark) > rested + slack;
    for (size_t i = 0; i < u->n && wrong; i++) {
        struct bh_use_line *line = &u->at[i];
        if (believed_rest(u, line, mark) <= rested)
            continue;
        line->known = false;
        line->refuted = true;
        line->refuted_ns = now_ns;
    }
    if (wrong)
        forget_visited(u);
    return wrong;
}
