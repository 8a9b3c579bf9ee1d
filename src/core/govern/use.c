/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.c - samples of a sum to uses of each. See use.h for what is believed of them.
 *
 * A sample is of the time since the one before, and the driver says when it was taken, on the card's clock. Should that be another than
 * the turns are of, it is known only by when it was first there: after the driver was last asked; and it is held to be of BH_USE_WINDOW_NS.
 * So it is of the time after a mark that is older than both together. It says something of a process that had the card from the mark on.
 */
#include "core/govern/use_inside.h"

#include <string.h>

#define MS        BH_USE_MS
#define MARK_NS   (20 * MS)
#define SAMPLE_NS (140 * MS) /* no sample is of less */
#define SEEK_NS   (50 * MS)
#define CALM_NS   (500 * MS)
#define DOUBTS_NS (170 * MS) /* about as often as there is a sample */
#define FRESH_NS  (3000 * MS)
#define QUIET_NS  (1000 * MS)
#define SELDOM_NS (5000 * MS)
#define ALONE_NS  (100 * MS)
#define LONG_NS   (20 * MS)   /* no slice of tenants that fill theirs is longer, with up to ten of them */
#define AWAY_NS   (3000 * MS) /* without a turn: longer than others may be looked at, one after the other */
#define SECOND_NS (1100 * MS) /* and a step or so */
#define GAP_NS    (2000 * MS) /* what nobody asked for so long is no window any more */
#define DOUBT_NS  (10000 * MS)
#define LATER_NS  (5000 * MS)
#define AGAIN_NS  (20000 * MS) /* who works in bursts is not refuted in each, to be found resting after it */
#define CHANGE_NS UINT64_C(100000) /* of a turn is a change of the card, in which nobody works */

enum {
    SOON_MARKS = 3,
    LITTLE = 150,     /* permille: whatever it had to catch up with */
    FRUITLESS = 20,   /* asks: there are no samples here */
    FADES = 6,        /* one part of so many goes with each sample */
    UNLIKELY = 12,    /* samples: whatever one had to catch up with, it has */
    SMALL = 500,      /* who uses less may be beside one that is looked at */
    TURNS_MOST = 250, /* the same in long turns of such as use little: those are no visits */
    MUCH = 400,       /* permille of a span that one must have had */
    AT_WORK = 20,     /* permille, at least: what others used is not known to the last */
    JUMP = 200,
    ALIKE = 50, /* permille; measured: samples of one that does the same differ by 5 */
    FADE_MOST = 32,
};

void bh_use_init(struct bh_use *u)
{
    memset(u, 0, sizeof(*u));
}

void bh_use_ask_seldom(struct bh_use *u, bool seldom)
{
    u->seldom = seldom;
}

static struct bh_use_line *find(struct bh_use *u, uint32_t pid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].pid == pid)
            return &u->at[i];
    return NULL;
}

static const struct bh_use_turns *turns_of(const struct bh_use_look *look, uint32_t pid)
{
    for (size_t i = 0; i < look->n && i < BH_USE_PROCESSES; i++)
        if (look->at[i].pid == pid)
            return &look->at[i];
    return NULL;
}

static void note_turns(struct bh_use_line *line, const struct bh_use_turns *t)
{
    if (t->ns < line->had_ns || t->long_ns < line->long_ns) /* it was forgotten meanwhile, and began anew */
        *line = (struct bh_use_line){.pid = line->pid};
    line->had_ns = t->ns;
    line->long_ns = t->long_ns;
}

/* The record of turns forgets processes, and so does this; there is room for as many. */
static void follow(struct bh_use *u, const struct bh_use_look *look)
{
    for (size_t i = u->n; i-- > 0;)
        if (!turns_of(look, u->at[i].pid))
            u->at[i] = u->at[--u->n];
    u->turns = 0;
    for (size_t i = 0; i < look->n && i < BH_USE_PROCESSES; i++) {
        struct bh_use_line *line = find(u, look->at[i].pid);
        u->turns += look->at[i].turns;
        if (!line) {
            line = &u->at[u->n++];
            *line = (struct bh_use_line){.pid = look->at[i].pid};
            bh_use_review_anew(u, look->now_ns);
        }
        note_turns(line, &look->at[i]);
    }
}

bool bh_use_wants_mark(const struct bh_use *u, uint64_t now_ns)
{
    return !u->mark_ns[u->mark] || now_ns >= u->mark_ns[u->mark] + MARK_NS;
}

void bh_use_watch(struct bh_use *u, const struct bh_use_look *look)
{
    const uint64_t last = u->mark_ns[u->mark];
    follow(u, look);
    u->seen_long |= look->held && look->now_ns > look->from_ns && look->now_ns - look->from_ns > LONG_NS;
    if (look->now_ns >= last && !bh_use_wants_mark(u, look->now_ns))
        return;
    if (look->now_ns < last) /* a clock that went back */
        memset(u->mark_ns, 0, sizeof(u->mark_ns));
    u->mark = (u->mark + 1) % BH_USE_MARKS;
    u->mark_ns[u->mark] = look->now_ns;
    u->mark_turns[u->mark] = u->turns;
    for (size_t i = 0; i < u->n; i++) {
        u->at[i].marks_ns[u->mark] = u->at[i].had_ns;
        u->at[i].marks_long_ns[u->mark] = u->at[i].long_ns;
    }
}

uint32_t bh_use_mark_before(const struct bh_use *u, uint64_t now_ns, uint64_t ns)
{
    for (uint32_t k = 0; k < BH_USE_MARKS; k++) {
        const uint32_t m = (u->mark + BH_USE_MARKS - k) % BH_USE_MARKS;
        if (!u->mark_ns[m])
            break;
        if (u->mark_ns[m] + ns <= now_ns)
            return m;
    }
    return BH_USE_MARKS;
}

/* What changes of the card took, at most this. */
static uint64_t changes(const struct bh_use *u, uint64_t turns_before, uint64_t span)
{
    const uint64_t ns = u->turns > turns_before ? (u->turns - turns_before) * CHANGE_NS : 0;
    return ns < span / 4 ? ns : span / 4;
}

static bool is_small(const struct bh_use_line *line)
{
    return line->known && line->permille < SMALL;
}

/* By what is believed, with nobody in its way; what it had is all that it can have worked. */
static uint64_t most_work(const struct bh_use_line *line, uint64_t had, uint64_t span)
{
    const uint64_t most = span / BH_USE_WHOLE * line->permille;
    return line->known && line->permille < BH_USE_WHOLE && most < had ? most : had;
}

/* It had the card at the beginning of that time, too: what came before was another's. */
static bool had_from(const struct bh_use *u, const struct bh_use_line *line, uint32_t m)
{
    uint32_t k = m;
    for (uint32_t i = 0; i < SOON_MARKS && k != u->mark; i++)
        k = (k + 1) % BH_USE_MARKS;
    return line->marks_ns[k] >= line->marks_ns[m] &&
           line->marks_ns[k] - line->marks_ns[m] >= (u->mark_ns[k] - u->mark_ns[m]) / BH_USE_WHOLE * MUCH;
}

/* Of such as use little, while another has the card: what they worked, and how long they can have rested on it. */
struct visits {
    uint64_t work_ns, rest_ns;
};

/* Had it the card since that mark, but for visits of such as use little? */
static bool was_alone(const struct bh_use *u, const struct bh_use_line *line, uint32_t m, uint64_t span,
                      struct visits *ret)
{
    uint64_t others = 0, in_long = 0;
    *ret = (struct visits){0};
    for (size_t i = 0; i < u->n; i++) {
        const uint64_t had = bh_use_since(&u->at[i], m);
        if (&u->at[i] == line)
            continue;
        if (is_small(&u->at[i])) {
            const uint64_t turns = bh_use_long_since(&u->at[i], m);
            ret->work_ns += most_work(&u->at[i], had, span);
            ret->rest_ns += turns / BH_USE_WHOLE * (BH_USE_WHOLE - u->at[i].permille);
            in_long += turns;
        } else {
            others += had;
        }
    }
    return others <= span / BH_USE_WHOLE * BH_USE_OTHERS && in_long <= span / BH_USE_WHOLE * TURNS_MOST &&
           bh_use_since(line, m) >= span / BH_USE_WHOLE * MUCH && had_from(u, line, m);
}

static bool is_sought(const struct bh_use *u, uint64_t now_ns)
{
    const uint32_t m = bh_use_mark_before(u, now_ns, ALONE_NS);
    struct visits visits;
    if (m == BH_USE_MARKS || u->fruitless > FRUITLESS)
        return false;
    for (size_t i = 0; i < u->n; i++)
        if ((!u->at[i].known || u->at[i].doubt) &&
            was_alone(u, &u->at[i], m, now_ns - u->mark_ns[m], &visits))
            return true;
    return false;
}

/* Some came into doubt by the sum, not longer ago than that. */
static bool doubts_the_sum(const struct bh_use *u, uint64_t now_ns, uint64_t ns)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].by_sum && u->at[i].doubt && now_ns < u->at[i].doubt_at_ns + ns)
            return true;
    return false;
}

/* They may be out of it by the next sample, before somebody has to wait for a look. */
static bool is_fresh_doubt(const struct bh_use *u, uint64_t now_ns)
{
    return !u->seldom && u->fruitless <= FRUITLESS && doubts_the_sum(u, now_ns, FRESH_NS);
}

/* There are turns in which one may well rest, or something is missing. */
static bool is_often(const struct bh_use *u)
{
    return !u->seldom && (u->seen_long || u->blame.empty_ns > 0);
}

bool bh_use_is_due(const struct bh_use *u, const struct bh_use_look *look)
{
    if (!u->asked || look->now_ns < u->asked_ns)
        return true;
    const uint64_t gap = look->now_ns - u->asked_ns;
    if (gap >= (u->seldom ? SELDOM_NS : QUIET_NS) || (gap >= CALM_NS && is_often(u)))
        return true;
    if (gap >= DOUBTS_NS && is_fresh_doubt(u, look->now_ns))
        return true;
    return gap >= SEEK_NS && is_sought(u, look->now_ns);
}

/* ---- what is believed ---- */

/* What was compared was by another belief: it begins anew with the next sample. */
static void begin(struct bh_use *u)
{
    u->begun = false;
    bh_use_blame_forget(u);
}

static void believe(struct bh_use *u, struct bh_use_line *line, uint32_t permille)
{
    const uint32_t off = permille > line->rough ? permille - line->rough : line->rough - permille;
    const bool same = line->known && !line->doubt && off < JUMP;
    line->rough = same ? (3 * line->rough + permille) / 4 : permille;
    line->permille = line->rough >= BH_USE_FULL ? BH_USE_WHOLE : line->rough;
    line->known = true;
    line->doubt = line->seen = false;
    if (same)
        return;
    line->beside = line->besides = 0;
    begin(u);
}

void bh_use_give_up(struct bh_use *u, struct bh_use_line *line, uint64_t now_ns)
{
    line->known = line->seen = line->by_sum = false;
    line->doubt = true;
    line->doubt_at_ns = now_ns;
    begin(u);
}

/* It came into doubt with those of whom it is known what all of them work. */
static bool is_of_newest(const struct bh_use *u, const struct bh_use_line *line)
{
    return line->by_sum && line->doubt_at_ns == u->doubted_ns;
}

/* Were two or more of those seen who came into doubt together, and all of them work as much as all do by the sum? One could be chance. */
static bool are_alike(const struct bh_use *u)
{
    uint32_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        if (!is_of_newest(u, line) || line->doubt || !line->known)
            continue;
        if (line->rough < SMALL || line->rough >= u->doubted + ALIKE || line->rough + ALIKE <= u->doubted)
            return false;
        n++;
    }
    return n >= 2;
}

/* Do those who were seen since work more now than when they came into doubt? If by themselves they would have used more of that time
 * than all did, yes. What all of them came into doubt for is over, then: they loaded, say. */
static bool is_over(const struct bh_use *u)
{
    uint64_t work_us = 0;
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        if (is_of_newest(u, line) && !line->doubt && line->known)
            work_us += line->had_then_us * line->rough / BH_USE_WHOLE;
    }
    return work_us > u->used_then_us + u->used_then_us / 8;
}

static void end_doubts(struct bh_use *u)
{
    const bool over = is_over(u);
    for (size_t i = 0; i < u->n; i++)
        if (over && is_of_newest(u, &u->at[i]))
            u->at[i].doubt = false;
    if (!u->doubted || !are_alike(u))
        return;
    for (size_t i = 0; i < u->n; i++)
        if (is_of_newest(u, &u->at[i]) && u->at[i].doubt)
            believe(u, &u->at[i], u->doubted);
    u->doubted = 0;
}

/* The sample is of less time than was looked at. If turns in which visitors rested fell into it, they may be all that is missing: some
 * times in a row, that is, for who visits one that rests stays on the card, too. */
static bool may_be_theirs(const struct visits *v, uint32_t permille)
{
    const uint64_t missing = SAMPLE_NS / BH_USE_WHOLE * bh_use_less(BH_USE_WHOLE, permille);
    return v->rest_ns > 0 && missing <= v->rest_ns + SAMPLE_NS / BH_USE_WHOLE * ALIKE;
}

/* A mark before the newest sample's time. What loads is not to be believed sooner where samples are short. */
static uint32_t mark_of(const struct bh_use *u, const struct bh_use_samples *s, uint64_t now_ns)
{
    const uint64_t gap = bh_use_less(now_ns, u->asked_before_ns);
    const uint64_t from_ns = s->n_timed ? s->at[s->n_timed - 1].from_ns : now_ns;
    uint64_t ago = BH_USE_WINDOW_NS + (gap < BH_USE_WINDOW_NS ? gap : BH_USE_WINDOW_NS);
    if (from_ns + ago < now_ns && now_ns - from_ns < 2 * BH_USE_WINDOW_NS)
        ago = now_ns - from_ns;
    return bh_use_mark_before(u, now_ns, ago);
}

/* A sample that is of one process. */
static void see_alone(struct bh_use *u, const struct bh_use_samples *s, uint64_t now_ns)
{
    const uint32_t m = mark_of(u, s, now_ns), permille = s->last;
    if (m == BH_USE_MARKS)
        return;
    const uint64_t span = now_ns - u->mark_ns[m], used = span / BH_USE_WHOLE * permille;
    const uint64_t lost = changes(u, u->mark_turns[m], span);
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        struct visits visits;
        if (!was_alone(u, line, m, span, &visits))
            continue;
        line->theirs = line->theirs < BH_USE_FEW && may_be_theirs(&visits, permille) ? line->theirs + 1 : 0;
        if (line->theirs > 0)
            continue;
        const uint64_t own = bh_use_less(used, visits.work_ns), all = bh_use_since(line, m);
        const uint64_t had = all - (lost < all / 2 ? lost : all / 2);
        const uint32_t seen =
            own >= had || had < BH_USE_WHOLE ? BH_USE_WHOLE : (uint32_t)(own / (had / BH_USE_WHOLE));
        /* What it could not do while it was paused comes first: of one that rests the next sample tells. */
        if (!line->known && !line->seen && seen >= LITTLE && seen < BH_USE_FULL)
            line->seen = true;
        else { /* who does nothing at all is not given the card again */
            believe(u, line, lost && seen < AT_WORK ? AT_WORK : seen);
            line->visited = visits.work_ns > 0;
        }
    }
    end_doubts(u);
}

/* ---- whether it can be true ---- */

/* Who runs beside busy ones has the card to work only, so that tells of a change too small for the sum. */
static void see_beside(struct bh_use *u, struct bh_use_line *line, uint64_t span, uint64_t now_ns)
{
    const uint64_t all = line->had_ns - line->taken_ns, in_long = line->long_ns - line->taken_long_ns;
    const uint32_t rate = (uint32_t)((all > in_long ? all - in_long : 0) / (span / BH_USE_WHOLE + 1));
    bool busy = false;
    if (line->known && line->permille < AT_WORK && rate >= AT_WORK / 4)
        line->permille = line->rough = AT_WORK; /* who rests makes no short visits */
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *other = &u->at[i];
        if (other == line || other->had_ns - other->taken_ns < span / FADES)
            continue;
        if (!other->known || other->permille < BH_USE_WHOLE)
            return;
        busy = true;
    }
    if (!busy || !is_small(line) || span < 2 * BH_USE_WINDOW_NS || in_long > all / 2) /* it took turns */
        return;
    if (line->besides < BH_USE_FEW) { /* it may have been paused at first */
        line->besides++;
        line->beside = rate > line->beside ? rate : line->beside;
    } else if (rate > line->beside + line->beside * 3 / 10 + 15) {
        bh_use_give_up(u, line, now_ns);
    } else {
        line->beside = (7 * line->beside + rate) / 8;
    }
}

/* Had it so much of what is compared that it may be the reason? */
static bool is_suspect(const struct bh_use *u, const struct bh_use_line *line)
{
    return line->time_ns / 1000 >= u->held_us / BH_USE_WHOLE * BH_USE_SUSPECT;
}

/* Of one that had little it is not worth waiting for: nobody may look at it for long. */
static bool in_doubt(const struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].doubt && is_suspect(u, &u->at[i]))
            return true;
    return false;
}

/* What the suspects worked of their time, in all, by what is believed of the others; last: by the newest sample, if that says less. The
 * sum is still of the time before, in part. */
static uint32_t used_by_suspects(const struct bh_use *u, uint32_t last)
{
    const uint64_t now_us = u->held_us / BH_USE_WHOLE * last,
                   used_us = u->used_us < now_us ? u->used_us : now_us;
    uint64_t had = 0, others = u->low_us;
    for (size_t i = 0; i < u->n; i++) {
        const struct bh_use_line *line = &u->at[i];
        const uint64_t us = line->time_ns / 1000, low = line->known ? us * line->permille / BH_USE_WHOLE : us;
        if (!is_suspect(u, line))
            continue;
        had += us;
        others -= low < others ? low : others;
    }
    const uint64_t used = bh_use_less(used_us, others);
    return had == 0 ? 0 : used >= had ? BH_USE_WHOLE : (uint32_t)(used * BH_USE_WHOLE / had);
}

/* If it rested, more would be missing than is. Of one that had little that is not known so well. */
static bool must_work(const struct bh_use *u, const struct bh_use_line *line, uint64_t missing_us)
{
    const uint64_t had_us = line->time_ns / 1000;
    return had_us >= u->held_us / BH_USE_WHOLE * BH_USE_SUSPECT / 2 && missing_us < had_us / 2;
}

static void trust_full(struct bh_use *u)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].by_sum && bh_use_works_in_full(u, &u->at[i]))
            u->at[i].doubt = false;
}

/* The sum fits again. Whoever is in doubt for another reason stays so. Of those who use little all that they had may have been work. */
static void clear_doubts(struct bh_use *u)
{
    uint64_t most_us = u->low_us;
    for (size_t i = 0; i < u->n; i++)
        if (is_small(&u->at[i]))
            most_us += u->at[i].time_ns / 1000 * (BH_USE_WHOLE - u->at[i].permille) / BH_USE_WHOLE;
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].by_sum && must_work(u, &u->at[i], bh_use_less(most_us, u->used_us)))
            u->at[i].doubt = false;
}

static void start(struct bh_use *u)
{
    u->begun = true;
    u->samples = 0;
    u->used_us = u->low_us = u->high_us = u->likely_us = u->held_us = 0;
    u->unlikely = 0;
    for (size_t i = 0; i < u->n; i++)
        u->at[i].time_ns = 0;
}

/* last: the newest sample, with what changes of the card took. Where that one is as it should be, what was missing is over: of somebody
 * who came, and had the card to load. */
static void compare(struct bh_use *u, uint32_t last, uint64_t now_ns)
{
    const uint64_t off = u->held_us / BH_USE_WHOLE * BH_USE_OFF, now_us = u->held_us / BH_USE_WHOLE * last;
    const bool less = u->used_us + off < u->low_us && now_us + off < u->low_us;
    const bool more = u->used_us > u->high_us + off || u->unlikely >= UNLIKELY;
    const bool fits = u->used_us + off >= u->low_us;
    if (!fits && !less && doubts_the_sum(u, now_ns, DOUBT_NS)) {
        start(u);
        return;
    }
    if (u->samples < BH_USE_FEW)
        return;
    if (fits)
        clear_doubts(u);
    if (in_doubt(u) || !(less || more))
        return;
    u->doubted = less ? used_by_suspects(u, last) : 0;
    u->doubted_ns = now_ns;
    u->used_then_us = u->used_us;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const bool may = less || (line->known && line->permille < BH_USE_WHOLE),
                   suspect = may && is_suspect(u, line);
        const bool look = suspect && !bh_use_works_in_full(u, line); /* no look would tell more */
        line->had_then_us = line->time_ns / 1000;
        if (look)
            bh_use_give_up(u, line, now_ns);
        else if (more && (suspect || is_small(line)))
            line->known = false;
        line->by_sum = look || (line->by_sum && line->doubt);
    }
    bh_use_blame_forget(u);
    start(u);
}

static void fade(struct bh_use *u, uint32_t n)
{
    for (uint32_t k = 0; k < n && k < FADE_MOST; k++) {
        u->used_us -= u->used_us / FADES;
        u->low_us -= u->low_us / FADES;
        u->high_us -= u->high_us / FADES;
        u->likely_us -= u->likely_us / FADES;
        u->held_us -= u->held_us / FADES;
        for (size_t i = 0; i < u->n; i++)
            u->at[i].time_ns -= u->at[i].time_ns / FADES;
    }
}

static uint32_t with_changes(uint32_t permille, uint64_t lost, uint64_t span)
{
    const uint32_t all = permille + (uint32_t)(lost * BH_USE_WHOLE / span);
    return all < BH_USE_WHOLE ? all : BH_USE_WHOLE;
}

/* If it is as believed and has nothing to catch up with: so long it rested in its turns. Others wait for it in short ones. */
static uint64_t resting_of(const struct bh_use_line *line, uint64_t had)
{
    const uint64_t all = line->long_ns - line->taken_long_ns, in_long = all < had ? all : had;
    return line->known ? in_long / BH_USE_WHOLE * (BH_USE_WHOLE - line->permille) : 0;
}

static void add_up(struct bh_use *u, const struct bh_use_samples *s, uint64_t span, uint64_t lost)
{
    fade(u, s->n);
    u->used_us += span / 1000 * s->mean / BH_USE_WHOLE;
    u->used_us += lost / 1000;
    u->high_us += lost / 1000;
    u->likely_us += lost / 1000;
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const uint64_t all = line->had_ns - line->taken_ns, had = all < span ? all : span;
        line->time_ns += had;
        u->held_us += had / 1000;
        u->high_us +=
            most_work(line, had, span) * 5 / 4 < had ? most_work(line, had, span) * 5 / 4000 : had / 1000;
        u->low_us += line->known ? had / 1000 * line->permille / BH_USE_WHOLE : had / 1000;
        u->likely_us += (had - resting_of(line, had)) / 1000;
    }
    u->samples = s->n < BH_USE_FEW - u->samples ? u->samples + s->n : BH_USE_FEW;
    u->unlikely = u->used_us > u->likely_us + u->held_us / BH_USE_WHOLE * BH_USE_OFF ? u->unlikely + s->n : 0;
}

static void take_marks(struct bh_use *u, uint64_t now_ns)
{
    u->taken_ns = now_ns;
    u->taken_turns = u->turns;
    for (size_t i = 0; i < u->n; i++) {
        u->at[i].taken_ns = u->at[i].had_ns;
        u->at[i].taken_long_ns = u->at[i].long_ns;
    }
}

/* What one did before it left says nothing of what it does when it comes back; and no doubt is for ever. */
static void forget(struct bh_use *u, const struct bh_use_look *look)
{
    for (size_t i = 0; i < u->n; i++) {
        struct bh_use_line *line = &u->at[i];
        const struct bh_use_turns *t = turns_of(look, line->pid);
        const bool away = t && look->now_ns > t->heard_ns && look->now_ns - t->heard_ns > AWAY_NS;
        const uint64_t since = bh_use_less(look->now_ns, line->refuted_ns);
        const bool over = look->now_ns < line->doubt_at_ns || look->now_ns - line->doubt_at_ns >= DOUBT_NS;
        if (line->doubt && over && line->doubt_at_ns == line->reviewed_ns && line->was_known) {
            line->known = true; /* nobody looked, and nothing spoke against what was believed */
            begin(u);
        }
        line->known = line->known && !away;
        line->refuted = line->refuted && !away && since < AGAIN_NS;
        line->doubt = line->doubt && !away && !over;
        if (line->refuted && !line->known && !line->doubt && !u->row.full && since > LATER_NS)
            bh_use_give_up(u, line, look->now_ns); /* it may have caught up with something, and rest now */
    }
}

/* Answers may come twice a second; who rests may do so for some tenths of one. */
static void note_unused(struct bh_use *u, const struct bh_use_samples *s, uint64_t now_ns, uint64_t span)
{
    const uint32_t last = BH_USE_WHOLE - (s->mean < BH_USE_WHOLE ? s->mean : BH_USE_WHOLE);
    const uint64_t before = span + u->unused.span_ns <= SECOND_NS ? u->unused.span_ns : 0;
    u->unused.permille =
        before ? (uint32_t)((last * span + u->unused.last * before) / (span + before)) : last;
    u->unused.last = last;
    u->unused.at_ns = now_ns;
    u->unused.span_ns = span;
}

void bh_use_take(struct bh_use *u, const struct bh_use_look *look, const struct bh_use_samples *s)
{
    const uint64_t now = look->now_ns;
    follow(u, look);
    u->asked_before_ns = u->asked ? u->asked_ns : now;
    u->asked = true;
    u->asked_ns = now;
    u->seen_long = false;
    u->fruitless = s->n ? 0 : u->fruitless + (u->fruitless <= FRUITLESS);
    forget(u, look);
    if (s->n == 0)
        return;
    const uint64_t span = bh_use_less(now, u->taken_ns);
    note_unused(u, s, now, span);
    const uint64_t lost = changes(u, u->taken_turns, span);
    const bool follows = span > 0 && span <= GAP_NS;
    if (follows)
        bh_use_row_watch(u, s, span);
    else
        bh_use_row_forget(u);
    trust_full(u);
    if (bh_use_refute(u, now))
        begin(u);
    if (u->begun && follows) {
        add_up(u, s, span, lost);
        for (size_t i = 0; i < u->n; i++)
            see_beside(u, &u->at[i], span, now);
        compare(u, with_changes(s->last, lost, span), now);
    } else {
        start(u);
    }
    if (follows) {
        bh_use_blame_add(u, s, now);
        bh_use_review(u, s, span, now);
        bh_use_blame(u, span, now);
    } else {
        bh_use_blame_forget(u);
    }
    take_marks(u, now);
    see_alone(u, s, now);
}

static const struct bh_use_line *look_up(const struct bh_use *u, uint32_t pid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].pid == pid)
            return &u->at[i];
    return NULL;
}

uint32_t bh_use_permille(const struct bh_use *u, uint32_t pid)
{
    const struct bh_use_line *line = look_up(u, pid);
    return line && line->known ? line->permille : BH_USE_UNKNOWN;
}

bool bh_use_doubt(const struct bh_use *u, uint32_t pid)
{
    const struct bh_use_line *line = look_up(u, pid);
    return line && line->doubt;
}

uint32_t bh_use_unused(const struct bh_use *u, uint64_t now_ns)
{
    const bool known = u->unused.at_ns && bh_use_less(now_ns, u->unused.at_ns) <= GAP_NS;
    return known && u->unused.permille ? u->unused.permille : known;
}
