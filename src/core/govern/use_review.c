/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_review.c - a look at one of whom nothing is in doubt, where those who take turns leave some of the card empty.
 *
 * Either much of it is, and that is believed of them: two wrong beliefs can explain the sum as well as two right ones, and then nothing
 * else would ever tell; if one is wrong, the sum tells of the other. Or it is so little that the sum puts up with it, as it must with busy
 * ones that come to nine tenths: it may be all that one with a small share leaves of its turns. Or much is empty and nobody is believed to
 * rest but light ones, who are on the card while another does. Seldom and seldomer, if all is as believed.
 */
#include "core/govern/use_inside.h"

#define MUCH_NS (5000 * BH_USE_MS)
#define SOME_NS (20000 * BH_USE_MS)
#define MOST_NS (160000 * BH_USE_MS)

enum {
    MUCH_EMPTY = 700, /* permille used, or less */
    SOME_EMPTY = 60,  /* permille of the time held: more is missing of what is believed */
    CROWD = 4,        /* of more, each leaves so little that it is not worth the others' wait */
};

void bh_use_review_anew(struct bh_use *u, uint64_t now_ns)
{
    if (u->much.due_ns && now_ns >= u->renewed_ns && now_ns - u->renewed_ns < MOST_NS)
        return;
    u->much.due_ns = MUCH_NS;
    u->some.due_ns = SOME_NS;
    u->blame.next_ns = u->blame.wait_ns = 0;
    u->renewed_ns = now_ns;
}

static bool had_some(const struct bh_use *u, const struct bh_use_line *line)
{
    return line->row_ns >= u->row.ns / BH_USE_WHOLE * BH_USE_SUSPECT;
}

/* Those who compete: in a crowd nobody has much. */
static uint32_t count(const struct bh_use *u)
{
    uint32_t n = 0;
    for (size_t i = 0; i < u->n; i++)
        n += u->at[i].row_ns >= u->row.ns / BH_USE_WHOLE * BH_USE_SUSPECT / 2 && !bh_use_is_light(&u->at[i]);
    return n;
}

static bool is_visited(const struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        if (!line->known && !had_some(u, line) && line->row_ns > u->row.ns / BH_USE_WHOLE * BH_USE_OTHERS &&
            line->row_long_ns < line->row_ns / 2)
            return true;
    }
    return false;
}

static bool any_doubt(const struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].doubt)
            return true;
    return false;
}

bool bh_use_may_look(const struct bh_use *u)
{
    return !any_doubt(u) && !is_visited(u);
}

void bh_use_look_at(struct bh_use *u, struct bh_use_line *line, uint64_t now_ns)
{
    line->was_known = line->known;
    bh_use_give_up(u, line, now_ns);
    line->reviewed_ns = now_ns;
}

static bool rests(const struct bh_use_line *line)
{
    return line->known && line->permille < BH_USE_WHOLE;
}

/* Of those of whom that is believed, who was looked at for this longest ago; NULL: nobody. */
static struct bh_use_line *who_rests(struct bh_use *u)
{
    struct bh_use_line *next = NULL;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        if (rests(line) && !bh_use_is_light(line) && had_some(u, line) &&
            (!next || line->reviewed_ns < next->reviewed_ns))
            next = line;
    }
    return next;
}

/* Of those of whom it is not believed, who was looked at for this longest ago, and of several who had least; NULL: nobody. */
static struct bh_use_line *who_may_rest(struct bh_use *u)
{
    struct bh_use_line *next = NULL;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const bool may = !rests(line) && had_some(u, line);
        const bool before = !next || line->reviewed_ns < next->reviewed_ns ||
                            (line->reviewed_ns == next->reviewed_ns && line->time_ns < next->time_ns);
        if (may && before)
            next = line;
    }
    return next;
}

static bool is_due(struct bh_use_empty *e, bool empty, uint64_t span)
{
    e->ns = empty ? e->ns + span : bh_use_less(e->ns, span);
    return e->ns >= e->due_ns;
}

static void put_off(struct bh_use_empty *e)
{
    e->ns = 0;
    e->due_ns = e->due_ns < MOST_NS / 2 ? 2 * e->due_ns : MOST_NS;
}

void bh_use_review(struct bh_use *u, const struct bh_use_samples *s, uint64_t span, uint64_t now_ns)
{
    const uint64_t missing_us = bh_use_less(u->low_us, u->used_us);
    const uint32_t n = count(u);
    const bool empty = n >= 2 && s->mean < MUCH_EMPTY,
               less = n >= 2 && n <= CROWD && missing_us > u->held_us / BH_USE_WHOLE * SOME_EMPTY;
    const bool much = is_due(&u->much, empty, span), some = is_due(&u->some, empty || less, span);
    if ((!much && !some) || !bh_use_may_look(u))
        return;
    struct bh_use_line *line = much ? who_rests(u) : who_may_rest(u);
    put_off(much ? &u->much : &u->some);
    if (line)
        bh_use_look_at(u, line, now_ns);
}
