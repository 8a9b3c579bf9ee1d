/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_fixture.h - one control of any tenant, answered by a driver that tells all, and what must hold of what is left of it.
 *
 * The bytes decide: which control, which lease, what the tenant asks and what the driver has in it.
 */
#ifndef BH_WARDEN_VIEW_FIXTURE_H
#define BH_WARDEN_VIEW_FIXTURE_H

#include "base/choice.h"
#include "base/mem.h"
#include "gpu/abi/rm.h"
#include "warden/view.h"
#include "wire/lease.h"

#include <string.h>

enum { PLAY_PIDS = 12, PLAY_OWN = 4 }; /* processes 1 to 12 are on the card, the first four of them ours */

struct play {
    struct bh_choice *c;
    struct bh_view_lease lease;
    uint32_t pids[PLAY_OWN];
    uint32_t cap_kib, used_kib, heap, free; /* the last two: the card's */
    const char *why;
};

static inline uint32_t play_kib(struct bh_choice *c)
{
    static const uint32_t few[] = {0, 1, 1 << 10, 10 << 20, 80 << 20, 141 << 20, UINT32_MAX};
    return bh_choose(c, 4) ? few[bh_choose(c, BH_COUNT_OF(few))] : bh_choose(c, UINT32_MAX);
}

static inline void play_begin(struct play *p, struct bh_choice *c)
{
    *p = (struct play){.c = c};
    p->cap_kib = play_kib(c);
    p->used_kib = play_kib(c);
    p->heap = play_kib(c);
    p->free = p->heap ? bh_choose(c, p->heap) : 0;
    for (uint32_t i = 0; i < PLAY_OWN; i++)
        p->pids[i] = i + 1;
    p->lease = (struct bh_view_lease){.view = BH_VIEW_SLICE + bh_choose(c, 2),
                                      .cap = (uint64_t)p->cap_kib << 10,
                                      .used = (uint64_t)p->used_kib << 10,
                                      .pids = p->pids,
                                      .n_pids = bh_choose(c, PLAY_OWN + 1)};
}

static inline bool play_own(const struct play *p, uint32_t pid)
{
    return pid >= 1 && pid <= p->lease.n_pids;
}

static inline void play_holds(struct play *p, bool good, const char *what)
{
    if (!good && !p->why)
        p->why = what;
}

/* ---- memory ---- */

static inline uint32_t play_fb_value(const struct play *p, uint32_t index)
{
    switch (index) {
    case RM_FB_RAM_SIZE:
    case RM_FB_TOTAL_RAM:
        return p->heap > UINT32_MAX - 1000 ? UINT32_MAX : p->heap + 1000; /* some is the driver's own */
    case RM_FB_HEAP_SIZE:
    case RM_FB_MAPPABLE_HEAP:
    case RM_FB_USABLE_RAM:
        return p->heap;
    case RM_FB_HEAP_FREE:
    case RM_FB_LARGEST_FREE:
        return p->free;
    case RM_FB_RESERVED_HEAP:
    case RM_FB_TAX:
        return 1000;
    default:
        return index; /* nothing of a tenant's */
    }
}

static inline void play_fb_entry(struct play *p, uint32_t index, uint32_t value)
{
    const uint32_t size = p->heap < p->cap_kib ? p->heap : p->cap_kib;
    const uint32_t used = p->used_kib < size ? p->used_kib : size;
    switch (index) {
    case RM_FB_RAM_SIZE:
    case RM_FB_TOTAL_RAM:
    case RM_FB_USABLE_RAM:
        play_holds(p, value <= p->cap_kib && value >= size, "total is not the slice");
        break;
    case RM_FB_HEAP_SIZE:
    case RM_FB_MAPPABLE_HEAP:
        play_holds(p, value == size, "size is not the slice");
        break;
    case RM_FB_HEAP_FREE:
    case RM_FB_LARGEST_FREE:
        play_holds(p, value <= size - used, "more is free than is left");
        if (p->lease.view == BH_VIEW_PRIVATE || p->free >= size - used)
            play_holds(p, value == size - used, "used is not what the lease holds");
        else
            play_holds(p, value == p->free, "free is not the card's");
        break;
    case RM_FB_RESERVED_HEAP:
    case RM_FB_TAX:
        play_holds(p, value == 0, "something is kept back of a slice");
        break;
    default:
        break;
    }
}

static inline void play_fb(struct play *p, const struct bh_view_control *row)
{
    static const uint32_t indices[] = {
        RM_FB_TOTAL_RAM,     RM_FB_HEAP_SIZE,    RM_FB_HEAP_FREE,     RM_FB_RAM_SIZE,
        RM_FB_USABLE_RAM,    RM_FB_LARGEST_FREE, RM_FB_RESERVED_HEAP, 0x0b,
        RM_FB_MAPPABLE_HEAP, RM_FB_TAX,          UINT32_MAX};
    struct rm_fb_info f, before;
    struct bh_view_asked asked;
    memset(&f, 0, sizeof(f));
    f.count = bh_choose(p->c, 8) ? bh_choose(p->c, BH_VIEW_LIST_MAX + 1) : bh_choose(p->c, UINT32_MAX);
    for (size_t i = 0; i < BH_COUNT_OF(f.at); i++)
        f.at[i].index = indices[bh_choose(p->c, BH_COUNT_OF(indices))];
    before = f;
    if (bh_view_ask(row, &p->lease, &f, &asked) != RM_OK) {
        play_holds(p, before.count > BH_VIEW_LIST_MAX, "a good question was refused");
        return;
    }
    for (uint32_t i = 0; i < f.count && i < BH_COUNT_OF(f.at); i++)
        f.at[i].value = play_fb_value(p, f.at[i].index);
    bh_view_answer(row, &p->lease, &asked, &f);
    play_holds(p, f.count == before.count, "the list became another");
    for (uint32_t i = 0; i < f.count; i++) {
        play_holds(p, f.at[i].index == before.at[i].index, "the list became another");
        play_fb_entry(p, f.at[i].index, f.at[i].value);
    }
    for (size_t i = f.count; i < BH_COUNT_OF(f.at); i++)
        play_holds(p, f.at[i].value == 0, "more was told than asked");
}

/* ---- processes ---- */

static inline void play_pids(struct play *p, const struct bh_view_control *row)
{
    static struct rm_pids q;
    struct bh_view_asked asked;
    memset(&q, 0, sizeof(q));
    play_holds(p, bh_view_ask(row, &p->lease, &q, &asked) == RM_OK, "a good question was refused");
    q.count = bh_choose(p->c, 8) ? bh_choose(p->c, PLAY_PIDS + 1) : bh_choose(p->c, UINT32_MAX);
    uint32_t own = 0;
    for (uint32_t i = 0; i < BH_COUNT_OF(q.pids); i++) {
        q.pids[i] = 1 + bh_choose(p->c, PLAY_PIDS);
        own += i < q.count && play_own(p, q.pids[i]);
    }
    bh_view_answer(row, &p->lease, &asked, &q);
    play_holds(p, q.count == own, "one's own are not all there");
    for (uint32_t i = 0; i < BH_COUNT_OF(q.pids); i++)
        play_holds(p, i < q.count ? play_own(p, q.pids[i]) : q.pids[i] == 0, "another's process is told");
}

static inline void play_pid_info(struct play *p, const struct bh_view_control *row)
{
    static struct rm_pid_info q, before;
    struct bh_view_asked asked;
    memset(&q, 0, sizeof(q));
    q.count = bh_choose(p->c, 8) ? bh_choose(p->c, BH_VIEW_PID_INFO_MAX + 1) : bh_choose(p->c, UINT32_MAX);
    for (size_t i = 0; i < BH_COUNT_OF(q.at); i++)
        q.at[i].pid = bh_choose(p->c, PLAY_PIDS + 2);
    before = q;
    if (bh_view_ask(row, &p->lease, &q, &asked) != RM_OK) {
        play_holds(p, before.count > BH_VIEW_PID_INFO_MAX, "a good question was refused");
        return;
    }
    for (uint32_t i = 0; i < q.count; i++)
        q.at[i].own = q.at[i].pid >= 1 && q.at[i].pid <= PLAY_PIDS ? q.at[i].pid * 100u : 0;
    bh_view_answer(row, &p->lease, &asked, &q);
    play_holds(p, q.count == before.count, "the list became another");
    for (uint32_t i = 0; i < q.count; i++) {
        const uint32_t pid = before.at[i].pid;
        play_holds(p, q.at[i].pid == pid, "the list became another");
        play_holds(p, q.at[i].own == (play_own(p, pid) ? pid * 100u : 0), "another's memory is told");
    }
}

static inline void play_samples(struct play *p, const struct bh_view_control *row)
{
    static struct rm_use_samples s;
    struct bh_view_asked asked;
    memset(&s, 0, sizeof(s));
    play_holds(p, bh_view_ask(row, &p->lease, &s, &asked) == RM_OK, "a good question was refused");
    for (size_t i = 0; i < BH_COUNT_OF(s.samples); i++) {
        s.samples[i].at = bh_choose(p->c, 3);
        for (size_t e = 0; s.samples[i].at && e < BH_COUNT_OF(s.samples[i].engines); e++) {
            struct rm_engine_use *use = &s.samples[i].engines[e];
            *use = (struct rm_engine_use){
                .use = 50, .pid = 1 + bh_choose(p->c, PLAY_PIDS), .guest_name = "x", .process = 7};
        }
    }
    bh_view_answer(row, &p->lease, &asked, &s);
    for (size_t i = 0; i < BH_COUNT_OF(s.samples); i++)
        for (size_t e = 0; s.samples[i].at && e < BH_COUNT_OF(s.samples[i].engines); e++) {
            const struct rm_engine_use *use = &s.samples[i].engines[e];
            const bool own = play_own(p, use->pid);
            play_holds(p, own || use->pid == UINT32_MAX, "another's process is told");
            play_holds(p, use->use == (own ? 50 : 0) && use->process == 0, "another's load is told");
            play_holds(p, own || use->guest_name[0] == '\0', "another's name is told");
        }
}

/* What does not hold; NULL: all does. */
static inline const char *play_control(struct bh_choice *c)
{
    static const struct {
        uint32_t command;
        void (*fn)(struct play *p, const struct bh_view_control *row);
    } kinds[] = {{RM_CTRL_FB_GET_INFO_V2, play_fb},
                 {RM_CTRL_FB_GET_INFO, play_fb},
                 {RM_CTRL_GPU_GET_PIDS, play_pids},
                 {RM_CTRL_GPU_GET_PID_INFO, play_pid_info},
                 {RM_CTRL_PERF_USE_SAMPLES, play_samples}};
    struct play p;
    play_begin(&p, c);
    const size_t kind = bh_choose(c, BH_COUNT_OF(kinds));
    const struct bh_view_control *row = bh_view_control(p.lease.view, kinds[kind].command);
    if (!row)
        return "a control is not answered";
    if (row->what != BH_VIEW_WITHHOLD)
        kinds[kind].fn(&p, row);
    return p.why;
}

#endif
