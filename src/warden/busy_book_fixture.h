/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_book_fixture.h - records as the card makes them, and records as nobody should, with what must hold after each.
 */
#ifndef BH_WARDEN_BUSY_BOOK_FIXTURE_H
#define BH_WARDEN_BUSY_BOOK_FIXTURE_H

#include "base/choice.h"
#include "base/mem.h"
#include "warden/busy_book.h"

#include <string.h>

/* The measured card: two busy tenants have turns of 2.18 ms, with 85 us between them. */
#define TURN_NS   UINT64_C(2180000)
#define CHANGE_NS UINT64_C(85000)
#define BEGAN_NS  UINT64_C(1794740358458342944)

struct book_tape {
    uint64_t now_ns;
    uint16_t seq;
};

static inline struct rm_switch_record tape_record(struct book_tape *t, uint8_t tag, uint32_t pid)
{
    return (struct rm_switch_record){.type = RM_RECORD_SWITCH,
                                     .tag = tag,
                                     .seq = t->seq++,
                                     .pid = pid,
                                     .gi = 0xff,
                                     .ci = 0xff,
                                     .at_ns = t->now_ns / 32 * 32};
}

static inline void tape_add(struct book_tape *t, struct bh_busy_book *b, uint8_t tag, uint32_t pid)
{
    const struct rm_switch_record r = tape_record(t, tag, pid);
    bh_busy_book_add(b, &r, UINT64_MAX);
}

/* A turn of so long, and the change after it. */
static inline void tape_turn(struct book_tape *t, struct bh_busy_book *b, uint32_t pid, uint64_t ns)
{
    tape_add(t, b, RM_TURN_BEGINS, pid);
    t->now_ns += ns;
    tape_add(t, b, RM_TURN_ENDS, pid);
    t->now_ns += CHANGE_NS;
}

static inline struct bh_driver_busy book_of(const struct bh_busy_book *b, uint32_t pid)
{
    struct bh_driver_busy busy = {.pid = pid};
    for (size_t i = 0; i < b->n; i++)
        if (b->at[i].busy.pid == pid)
            busy = b->at[i].busy;
    busy.on = b->held && b->pid == pid;
    return busy;
}

/* What must hold whatever was read: NULL, or a sentence. */
static inline const char *book_wrong(const struct bh_busy_book *b, const struct bh_busy_book *before,
                                     uint64_t first_ns)
{
    static struct bh_driver_busy all[BH_BUSY_PIDS];
    uint64_t sum = 0;
    size_t on = 0;
    const size_t n = b->n, told = bh_busy_book_tell(b, all, BH_BUSY_PIDS);
    if (n > BH_BUSY_PIDS || told != (b->known ? n : 0))
        return "more processes than there is room for, or not as many as are told";
    for (size_t i = 0; i < n; i++) {
        const struct bh_driver_busy now = book_of(b, b->at[i].busy.pid), was = book_of(before, now.pid);
        if (now.cut_ns > now.ns || now.cut > now.turns)
            return "more was cut than there was";
        if (b->at[i].long_ns > now.ns)
            return "more in long turns than in all";
        if (n < BH_BUSY_PIDS && before->n <= n && (now.ns < was.ns || now.turns < was.turns))
            return "a time fell";
        if (__builtin_add_overflow(sum, now.ns, &sum))
            return "times that overflow";
        on += i < told && all[i].on;
        for (size_t k = 0; k < i; k++)
            if (b->at[k].busy.pid == now.pid)
                return "a process twice";
    }
    if (on != (size_t)(b->known && b->held))
        return "not one has the card";
    if (b->until_ns < before->until_ns)
        return "the line of time went back";
    return sum > b->until_ns - first_ns ? "more time was given out than passed" : NULL;
}

/* Reads whatever the bytes say. */
static inline const char *play_book(struct bh_choice *c)
{
    static struct bh_busy_book book, before;
    struct book_tape tape = {.now_ns = BEGAN_NS};
    const char *why = NULL;
    bh_busy_book_init(&book);
    book.until_ns = BEGAN_NS;
    while (c->left && !why) {
        static const uint32_t steps[] = {0, 32, 85000, 2180000, 300000000};
        struct rm_switch_record r = tape_record(&tape, (uint8_t)(RM_TURN_BEGINS + bh_choose(c, 2)),
                                                bh_choose(c, 4) ? bh_choose(c, 6) : bh_choose(c, 1000));
        tape.now_ns += steps[bh_choose(c, BH_COUNT_OF(steps))];
        before = book;
        switch (bh_choose(c, 16)) {
        case 0:
            bh_busy_book_look(&book, tape.now_ns);
            break;
        case 1:
            bh_busy_book_look(&book, tape.now_ns + ((uint64_t)bh_choose(c, 256) << 32)); /* and old ones go */
            break;
        case 2:
            bh_busy_book_lose(&book);
            break;
        case 3:
            for (size_t i = 0; i < sizeof(r); i++)
                ((uint8_t *)&r)[i] = (uint8_t)bh_choose(c, 256);
            bh_busy_book_add(&book, &r, tape.now_ns + 1000000);
            break;
        case 4:
            r.pid = UINT32_MAX;
            bh_busy_book_add(&book, &r, UINT64_MAX);
            break;
        default:
            bh_busy_book_add(&book, &r, UINT64_MAX);
        }
        why = book_wrong(&book, &before, BEGAN_NS);
    }
    return why;
}

#endif
