/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_book.c - turns to times. See busy_book.h for what holds whatever the records say.
 *
 * The driver writes the end of a turn under the name of its process, or under none where the channel is gone by the time it
 * is looked up. Records come in order; an end without a beginning, or the other way round, is a gap.
 */
#include "warden/busy_book.h"

#include "base/mem.h"

void bh_busy_book_init(struct bh_busy_book *b)
{
    *b = (struct bh_busy_book){0};
}

static uint32_t named(uint32_t pid)
{
    return pid == UINT32_MAX ? BH_BUSY_OTHERS : pid;
}

static struct bh_busy_line *find(struct bh_busy_book *b, uint32_t pid)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->at[i].busy.pid == pid)
            return &b->at[i];
    return NULL;
}

/* In a full book whoever was silent longest makes room; who has the card was not. */
static struct bh_busy_line *line_of(struct bh_busy_book *b, uint32_t pid)
{
    struct bh_busy_line *line = find(b, pid);
    if (line)
        return line;
    line = &b->at[0];
    if (b->n < BH_BUSY_PIDS)
        line = &b->at[b->n++];
    else
        for (size_t i = 1; i < b->n; i++)
            line = b->at[i].heard_ns < line->heard_ns ? &b->at[i] : line;
    *line = (struct bh_busy_line){.busy = {.pid = pid, .use_permille = BH_DRIVER_USE_UNKNOWN}};
    return line;
}

/* The time up to at_ns is given out: to whoever has the card, or to nobody. */
static void pass(struct bh_busy_book *b, uint64_t at_ns, bool to_holder)
{
    if (at_ns <= b->until_ns)
        return;
    if (to_holder) {
        struct bh_busy_line *line = line_of(b, b->pid);
        line->busy.ns += at_ns - b->until_ns;
        if (at_ns - b->from > BH_BUSY_LONG_NS) /* that it is one is known only now, or it was before */
            line->long_ns += at_ns - (b->until_ns - b->from > BH_BUSY_LONG_NS ? b->until_ns : b->from);
        line->heard_ns = at_ns;
    }
    b->until_ns = at_ns;
}

static void begins(struct bh_busy_book *b, uint32_t pid, uint64_t at_ns)
{
    pass(b, at_ns, false); /* also where somebody has it still: when that ended is not known */
    if (b->ended.known && b->ended.pid != pid && at_ns - b->ended.at_ns <= BH_BUSY_CUT_NS) {
        struct bh_busy_line *before = line_of(b, b->ended.pid);
        before->busy.cut++;
        before->busy.cut_ns += b->ended.ns;
    }
    struct bh_busy_line *line = line_of(b, pid);
    line->busy.turns++;
    line->heard_ns = at_ns;
    b->ended.known = false;
    b->known = b->held = true;
    b->pid = pid;
    b->from = at_ns;
}

static void ends(struct bh_busy_book *b, uint32_t pid, uint64_t at_ns)
{
    const bool known = b->held && (b->pid == pid || pid == BH_BUSY_OTHERS);
    pass(b, at_ns, known);
    b->ended.known = known;
    b->ended.pid = b->pid;
    b->ended.at_ns = at_ns;
    b->ended.ns = at_ns - b->from;
    b->known = true;
    b->held = false;
}

void bh_busy_book_lose(struct bh_busy_book *b)
{
    b->lost++;
    b->known = b->held = b->ended.known = false;
}

void bh_busy_book_add(struct bh_busy_book *b, const struct rm_switch_record *r, uint64_t latest_ns)
{
    if (r->type != RM_RECORD_SWITCH)
        return;
    if (b->begun && r->seq != b->next_seq)
        bh_busy_book_lose(b);
    b->begun = true;
    b->next_seq = (uint16_t)(r->seq + 1);
    if (r->at_ns > latest_ns) {
        bh_busy_book_lose(b);
        return;
    }
    const uint64_t at_ns = r->at_ns > b->until_ns ? r->at_ns : b->until_ns;
    if (r->tag == RM_TURN_BEGINS)
        begins(b, named(r->pid), at_ns);
    else if (r->tag == RM_TURN_ENDS)
        ends(b, named(r->pid), at_ns);
}

/* The last one moves into the gap. Who has the card was heard of just now. */
static void forget(struct bh_busy_book *b, uint64_t now_ns)
{
    for (size_t i = b->n; i-- > 0;)
        if (now_ns > b->at[i].heard_ns && now_ns - b->at[i].heard_ns > BH_BUSY_FORGET_NS)
            b->at[i] = b->at[--b->n];
}

void bh_busy_book_look(struct bh_busy_book *b, uint64_t now_ns)
{
    if (b->held && now_ns > BH_BUSY_SETTLE_NS)
        pass(b, now_ns - BH_BUSY_SETTLE_NS, true);
    forget(b, now_ns);
}

size_t bh_busy_book_tell(const struct bh_busy_book *b, struct bh_driver_busy *ret, size_t max)
{
    if (!b->known)
        return 0;
    for (size_t i = 0; i < b->n && i < max; i++) {
        ret[i] = b->at[i].busy;
        ret[i].on = b->held && b->pid == ret[i].pid;
    }
    return b->n;
}
