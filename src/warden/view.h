/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - what a tenant is told of the card: its slice as the whole of it, and its own processes.
 *
 * Pure: a control's parameters go in as the driver answered them and come out as the tenant sees them. Which controls, is
 * in view_controls.def.
 *
 * Memory: total is the cap, or the card where that is less. Free is what is left of it; in SLICE never more than the card
 * has free, in PRIVATE without regard to the card, for what the neighbours hold would show. Whoever subtracts gets what the
 * lease holds by its ledger (and in SLICE on a card that was promised twice, also what is missing of the promise).
 *
 * What is not closed. A call that goes on is read again by the kernel: a tenant whose second thread changes it after it
 * was looked at sees what any process on the card sees. The page that the driver shares with every client (class 0xde) can
 * be mapped by a program written for that; it shows the card's free memory at all times, and load while anybody asks for
 * it to be kept up to date. Files below /proc and /sys are not looked at. How long things take tells of neighbours too.
 * So this is for programs that ask in the plain way, which is all of the vendor's.
 *
 * A tenant in a pid namespace of its own (every container) is told of no processes at all, not even of its own: their
 * numbers there are the driver's to know, and it does not translate all that it tells.
 */
#ifndef BH_WARDEN_VIEW_H
#define BH_WARDEN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_view_what {
    BH_VIEW_FB,
    BH_VIEW_FB_LIST,
    BH_VIEW_PIDS,
    BH_VIEW_PID_INFO,
    BH_VIEW_SAMPLES,
    BH_VIEW_WITHHOLD,
    BH_VIEW_PASS,
};

enum { BH_VIEW_PARAMS_MAX = 55888, BH_VIEW_LIST_MAX = 126, BH_VIEW_PID_INFO_MAX = 200 };

struct bh_view_control {
    uint32_t command, mask;
    uint32_t params; /* bytes; 0: any */
    uint8_t from, what;
};

struct bh_view_lease {
    uint32_t view;      /* enum bh_lease_view of wire/lease.h */
    uint64_t cap, used; /* bytes, on the GPU that is asked about */
    const uint32_t *pids;
    size_t n_pids;
};

/* What bh_view_ask changed of the question, to be put back. */
struct bh_view_asked {
    uint32_t count;
    bool added; /* something to the list */
    uint32_t pids[BH_VIEW_PID_INFO_MAX];
};

/* NULL: it goes through untouched. Never a row that says PASS. */
const struct bh_view_control *bh_view_control(uint32_t view, uint32_t command);

/* What the driver is to be asked in place of what the tenant asked; params has the row's bytes (of FB_LIST: struct
 * rm_fb_info, made of the list). RM_OK, or the status to answer with unasked. */
uint32_t bh_view_ask(const struct bh_view_control *c, const struct bh_view_lease *l, void *params,
                     struct bh_view_asked *ret);
/* What the driver left in the parameters, as the tenant sees it. Also where it failed: it may have come half way. */
void bh_view_answer(const struct bh_view_control *c, const struct bh_view_lease *l,
                    const struct bh_view_asked *asked, void *params);

#endif
