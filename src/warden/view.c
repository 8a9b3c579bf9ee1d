/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - the driver's answers, cut down to a slice.
 *
 * The tenant's numbers are not trusted: counts are bounded before anything is looked up by them.
 */
#include "warden/view.h"

#include "base/mem.h"
#include "gpu/abi/rm.h"
#include "wire/lease.h"

#include <string.h>

#define EXACT UINT32_C(0xffffffff)
#define GROUP UINT32_C(0xffffff00)
#define OLDER UINT32_C(0xffff8000)
#define CLASS UINT32_C(0xffff0000)

static const struct bh_view_control controls[] = {
#define CONTROL(command, mask, params, from, what) {command, mask, params, BH_VIEW_##from, BH_VIEW_##what},
#include "warden/view_controls.def"
#undef CONTROL
};

/* No process has this number: the kernel gives none above 2^22. */
static const uint32_t nobody = INT32_MAX;

const struct bh_view_control *bh_view_control(uint32_t view, uint32_t command)
{
    for (size_t i = 0; i < BH_COUNT_OF(controls); i++)
        if ((command & controls[i].mask) == controls[i].command && view >= controls[i].from)
            return controls[i].what == BH_VIEW_PASS ? NULL : &controls[i];
    return NULL;
}

static bool is_own(const struct bh_view_lease *l, uint32_t pid)
{
    for (size_t i = 0; i < l->n_pids; i++)
        if (l->pids[i] == pid)
            return true;
    return false;
}

/* ---- memory ---- */

enum fb_kind {
    TOTAL,   /* at most the cap */
    SIZE,    /* at most what of the card can be given out, and the cap */
    FREE,    /* what is left of that */
    NOTHING, /* 0: a slice has none */
    WINDOW,  /* the processor's window, which all share: coarsely in PRIVATE */
};

static const struct {
    uint32_t index;
    enum fb_kind kind;
} fb_rows[] = {
    {RM_FB_RAM_SIZE, TOTAL},        {RM_FB_TOTAL_RAM, TOTAL},          {RM_FB_USABLE_RAM, TOTAL},
    {RM_FB_PROTECTED_TOTAL, TOTAL}, {RM_FB_HEAP_SIZE, SIZE},           {RM_FB_MAPPABLE_HEAP, SIZE},
    {RM_FB_HEAP_FREE, FREE},        {RM_FB_LARGEST_FREE, FREE},        {RM_FB_PROTECTED_FREE, FREE},
    {RM_FB_TAX, NOTHING},           {RM_FB_RESERVED_HEAP, NOTHING},    {RM_FB_LARGEST_FREE_BASE, NOTHING},
    {RM_FB_BAR1_FREE, WINDOW},      {RM_FB_BAR1_LARGEST_FREE, WINDOW},
};

static bool fb_kind(uint32_t index, enum fb_kind *ret)
{
    for (size_t i = 0; i < BH_COUNT_OF(fb_rows); i++)
        if (fb_rows[i].index == index) {
            *ret = fb_rows[i].kind;
            return true;
        }
    return false;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t kib(uint64_t bytes)
{
    return bytes >> 10 > UINT32_MAX ? UINT32_MAX : (uint32_t)(bytes >> 10);
}

static uint32_t kib_up(uint64_t bytes)
{
    return kib(bytes > UINT64_MAX - 1023 ? bytes : bytes + 1023);
}

/* A window is a power of two: what is free of it, rounded up to one, is all of it until half of it is gone. */
static uint32_t coarse(uint32_t v)
{
    uint32_t p = 1;
    while (p < v && p < UINT32_C(1) << 31)
        p <<= 1;
    return v ? p : 0;
}

/* How much of the card can be given out at all is needed to say what is free, and is asked for beside it. */
static uint32_t fb_ask(struct rm_fb_info *f, struct bh_view_asked *ret)
{
    enum fb_kind kind;
    bool needed = false;
    ret->count = f->count;
    if (f->count > BH_VIEW_LIST_MAX)
        return RM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < f->count; i++)
        needed = needed || (fb_kind(f->at[i].index, &kind) && kind == FREE);
    if (needed) {
        f->at[f->count].index = RM_FB_HEAP_SIZE;
        f->at[f->count++].value = 0;
        ret->added = true;
    }
    return RM_OK;
}

static uint32_t fb_value(const struct bh_view_lease *l, enum fb_kind kind, uint32_t size, uint32_t real)
{
    const uint32_t cap = kib(l->cap), used = least(size, kib_up(l->used));
    switch (kind) {
    case TOTAL:
    case SIZE:
        return least(real, cap);
    case FREE:
        return l->view == BH_VIEW_PRIVATE ? size - used : least(real, size - used);
    case NOTHING:
        return 0;
    case WINDOW:
        return l->view == BH_VIEW_PRIVATE ? coarse(real) : real;
    }
    return 0;
}

static void fb_answer(const struct bh_view_lease *l, const struct bh_view_asked *asked, struct rm_fb_info *f)
{
    const uint32_t size = least(kib(l->cap), asked->added ? f->at[asked->count].value : UINT32_MAX);
    enum fb_kind kind;
    for (uint32_t i = 0; i < asked->count; i++)
        if (fb_kind(f->at[i].index, &kind))
            /* a card without protected memory says 0 to both */
            f->at[i].value = f->at[i].index == RM_FB_PROTECTED_FREE && f->at[i].value == 0
                                 ? 0
                                 : fb_value(l, kind, size, f->at[i].value);
    if (asked->added)
        memset(&f->at[asked->count], 0, sizeof(f->at[0]));
    f->count = asked->count;
}

/* ---- processes ---- */

static void pids_answer(const struct bh_view_lease *l, struct rm_pids *p)
{
    const uint32_t n = least(p->count, BH_COUNT_OF(p->pids));
    p->count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_own(l, p->pids[i]))
            p->pids[p->count++] = p->pids[i];
    memset(p->pids + p->count, 0, sizeof(p->pids) - p->count * sizeof(p->pids[0]));
}

/* The driver itself says what there is of a process that is not there. */
static uint32_t pid_info_ask(const struct bh_view_lease *l, struct rm_pid_info *p, struct bh_view_asked *ret)
{
    ret->count = p->count;
    if (p->count > BH_COUNT_OF(p->at))
        return RM_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < p->count; i++) {
        ret->pids[i] = p->at[i].pid;
        if (!is_own(l, p->at[i].pid))
            p->at[i].pid = nobody;
    }
    return RM_OK;
}

static void pid_info_answer(const struct bh_view_asked *asked, struct rm_pid_info *p)
{
    for (uint32_t i = 0; i < asked->count; i++)
        p->at[i].pid = asked->pids[i];
    p->count = asked->count;
}

/* A place in the ring stays where it is, with nobody on that engine. */
static void samples_answer(const struct bh_view_lease *l, struct rm_use_samples *s)
{
    static const struct rm_engine_use none = {.pid = UINT32_MAX, .guest_pid = UINT32_MAX};
    for (size_t i = 0; i < BH_COUNT_OF(s->samples); i++)
        for (size_t e = 0; e < BH_COUNT_OF(s->samples[i].engines); e++) {
            struct rm_engine_use *use = &s->samples[i].engines[e];
            if (!is_own(l, use->pid) && (s->samples[i].at || use->pid))
                *use = none;  /* an empty place stays empty */
            use->process = 0; /* an address in the kernel */
        }
}

/* ---- the whole ---- */

_Static_assert(sizeof(struct rm_use_samples) == BH_VIEW_PARAMS_MAX, "the parameters do not fit");
_Static_assert(BH_COUNT_OF(((struct rm_fb_info *)0)->at) > BH_VIEW_LIST_MAX, "no room for one more");
_Static_assert(BH_COUNT_OF(((struct rm_pid_info *)0)->at) == BH_VIEW_PID_INFO_MAX,
               "another number of processes");

uint32_t bh_view_ask(const struct bh_view_control *c, const struct bh_view_lease *l, void *params,
                     struct bh_view_asked *ret)
{
    ret->count = 0;
    ret->added = false;
    switch (c->what) {
    case BH_VIEW_FB:
    case BH_VIEW_FB_LIST:
        return fb_ask(params, ret);
    case BH_VIEW_PID_INFO:
        return pid_info_ask(l, params, ret);
    case BH_VIEW_WITHHOLD:
        return RM_NOT_SUPPORTED;
    default:
        return RM_OK;
    }
}

void bh_view_answer(const struct bh_view_control *c, const struct bh_view_lease *l,
                    const struct bh_view_asked *asked, void *params)
{
    switch (c->what) {
    case BH_VIEW_FB:
    case BH_VIEW_FB_LIST:
        fb_answer(l, asked, params);
        break;
    case BH_VIEW_PIDS:
        pids_answer(l, params);
        break;
    case BH_VIEW_PID_INFO:
        pid_info_answer(asked, params);
        break;
    case BH_VIEW_SAMPLES:
        samples_answer(l, params);
        break;
    default:
        break;
    }
}
