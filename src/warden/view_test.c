/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant is told: its slice, its own processes, and of load nothing where that was asked for. */
#include "warden/view_fixture.h"

#include "base/test.h"
#include "base/units.h"

#include <inttypes.h>

static uint32_t fb(const struct bh_view_lease *l, uint32_t index, uint32_t heap, uint32_t value)
{
    const struct bh_view_control *row = bh_view_control(l->view, RM_CTRL_FB_GET_INFO_V2);
    struct rm_fb_info f = {.count = 1, .at = {{.index = index}}};
    struct bh_view_asked asked;
    if (!row || bh_view_ask(row, l, &f, &asked) != RM_OK)
        return UINT32_MAX;
    f.at[0].value = value;
    if (f.count == 2)
        f.at[1].value = heap;
    bh_view_answer(row, l, &asked, &f);
    return f.at[0].value;
}

enum { GIB_KIB = 1 << 20 };

TEST(the_slice_is_the_card)
{
    const uint32_t heap = 140u * GIB_KIB, total = 141u * GIB_KIB;
    struct bh_view_lease l = {.view = BH_VIEW_SLICE, .cap = 10 * BH_GIB, .used = 3 * BH_GIB};
    CHECK_EQ(fb(&l, RM_FB_TOTAL_RAM, heap, total), 10 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_RAM_SIZE, heap, total), 10 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_USABLE_RAM, heap, heap), 10 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_HEAP_SIZE, heap, heap), 10 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, 100u * GIB_KIB), 7 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_LARGEST_FREE, heap, 5 * GIB_KIB), 5 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_RESERVED_HEAP, heap, 12345), 0);
    CHECK_EQ(fb(&l, 0x0b, heap, 6144), 6144); /* the width of its bus */
    /* a byte counts as a KiB that is used; more than the cap is the cap */
    l.used = 1;
    CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, heap), 10 * GIB_KIB - 1);
    l.used = UINT64_MAX;
    CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, heap), 0);
}

TEST(what_the_card_has_free_shows_in_a_slice_and_not_in_private)
{
    const uint32_t heap = 140u * GIB_KIB;
    struct bh_view_lease l = {.view = BH_VIEW_SLICE, .cap = 100 * BH_GIB, .used = 3 * BH_GIB};
    CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, 20 * GIB_KIB), 20 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_BAR1_FREE, heap, 200u * GIB_KIB + 77), 200u * GIB_KIB + 77);
    l.view = BH_VIEW_PRIVATE;
    CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, 20 * GIB_KIB), 97 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_LARGEST_FREE, heap, 1), 97 * GIB_KIB);
    CHECK_EQ(fb(&l, RM_FB_BAR1_FREE, heap, 200u * GIB_KIB + 77), 256u * GIB_KIB); /* its size */
    CHECK_EQ(fb(&l, RM_FB_BAR1_FREE, heap, 0), 0);
}

TEST(a_cap_larger_than_the_card_is_the_card)
{
    static const uint32_t views[] = {BH_VIEW_SLICE, BH_VIEW_PRIVATE};
    const uint32_t heap = 140u * GIB_KIB, total = 141u * GIB_KIB;
    for (size_t i = 0; i < BH_COUNT_OF(views); i++) {
        struct bh_view_lease l = {.view = views[i], .cap = 500 * BH_GIB, .used = 40 * BH_GIB};
        CHECK_EQ(fb(&l, RM_FB_TOTAL_RAM, heap, total), total);
        CHECK_EQ(fb(&l, RM_FB_HEAP_SIZE, heap, heap), heap);
        CHECK_EQ(fb(&l, RM_FB_HEAP_FREE, heap, 100u * GIB_KIB), 100u * GIB_KIB);
    }
}

TEST(which_controls_are_whose)
{
    static const struct {
        uint32_t command;
        int slice, private; /* enum bh_view_what; -1: untouched */
    } rows[] = {
        {0x20801303, BH_VIEW_FB, BH_VIEW_FB},
        {0x20801301, BH_VIEW_FB_LIST, BH_VIEW_FB_LIST},
        {0x2080018d, BH_VIEW_PIDS, BH_VIEW_PIDS},
        {0x2080018e, BH_VIEW_PID_INFO, BH_VIEW_PID_INFO},
        {0x20802096, BH_VIEW_SAMPLES, BH_VIEW_WITHHOLD},
        {0x2080016e, BH_VIEW_WITHHOLD, BH_VIEW_WITHHOLD},
        {0x00000b04, BH_VIEW_WITHHOLD, BH_VIEW_WITHHOLD},
        {0x00de0001, -1, BH_VIEW_WITHHOLD},
        {0x2080852e, -1, BH_VIEW_WITHHOLD},
        {0x2080a612, -1, BH_VIEW_WITHHOLD},
        {0x2080a618, -1, BH_VIEW_WITHHOLD},
        {0x20802068, -1, BH_VIEW_WITHHOLD},
        {0x20801819, -1, BH_VIEW_WITHHOLD},
        {0x2080ffff, -1, BH_VIEW_WITHHOLD}, /* of an unpublished group */
        {0x20810110, -1, BH_VIEW_WITHHOLD},
        {0x2080014a, -1, -1},
        {0x503c0104, -1, -1}, /* one with each allocation */
        {0xa06c0101, -1, -1},
        {0x00000214, -1, -1},
        {0x00800292, -1, -1},
    };
    for (size_t i = 0; i < BH_COUNT_OF(rows); i++) {
        const struct bh_view_control *s = bh_view_control(BH_VIEW_SLICE, rows[i].command),
                                     *p = bh_view_control(BH_VIEW_PRIVATE, rows[i].command);
        CHECK(!bh_view_control(BH_VIEW_CARD, rows[i].command));
        CHECK_EQ(s ? s->what : -1, rows[i].slice);
        CHECK_EQ(p ? p->what : -1, rows[i].private);
    }
}

/* What CUDA and PyTorch were recorded to make (data/recordings), less what is answered: a program must start in each view. */
TEST(nothing_that_cuda_needs_is_withheld)
{
    static const uint32_t made[] = {
        0x101,      0x13a,      0x1f0,      0x201,      0x202,      0x205,      0x214,      0x215,
        0x21b,      0x279,      0x27b,      0x288,      0x289,      0xa04,      0xd01,      0xd04,
        0x800280,   0x800289,   0x800292,   0x801307,   0x801402,   0x80170d,   0x801909,   0x20800102,
        0x20800110, 0x20800111, 0x20800119, 0x2080012f, 0x20800131, 0x20800145, 0x20800146, 0x2080014a,
        0x20800170, 0x20800195, 0x208001a3, 0x20800406, 0x20801201, 0x20801210, 0x20801218, 0x2080121b,
        0x20801227, 0x2080122a, 0x2080122b, 0x20801230, 0x20801701, 0x20801801, 0x20801803, 0x20801823,
        0x2080182a, 0x2080182b, 0x2080200a, 0x2080220c, 0x20802210, 0x20802a0a, 0x20803002, 0x20803601,
        0x20803801, 0x20808159, 0x20808162, 0x20809001, 0x20809009, 0x20809038, 0x20809064, 0x2080a026,
        0x2080a084, 0x20810108, 0x503c0102, 0x503c0104, 0x503c0105, 0x83de0309, 0x906f0101, 0x90e60102,
        0xa06c0101, 0xa06c0103, 0xa06c0105, 0xa06f0103, 0xc36f0108, 0xcb330101};
    for (size_t i = 0; i < BH_COUNT_OF(made); i++)
        CHECK(!bh_view_control(BH_VIEW_PRIVATE, made[i]));
    CHECK(bh_view_control(BH_VIEW_PRIVATE, RM_CTRL_FB_GET_INFO_V2)->what == BH_VIEW_FB);
}

TEST(a_list_that_is_too_long_is_refused)
{
    const struct bh_view_lease l = {.view = BH_VIEW_SLICE, .cap = BH_GIB};
    static struct rm_fb_info f;
    static struct rm_pid_info p;
    struct bh_view_asked asked;
    f.count = BH_VIEW_LIST_MAX + 1;
    CHECK_EQ(bh_view_ask(bh_view_control(l.view, 0x20801303), &l, &f, &asked), RM_INVALID_ARGUMENT);
    f.count = UINT32_MAX;
    CHECK_EQ(bh_view_ask(bh_view_control(l.view, 0x20801301), &l, &f, &asked), RM_INVALID_ARGUMENT);
    p.count = BH_VIEW_PID_INFO_MAX + 1;
    CHECK_EQ(bh_view_ask(bh_view_control(l.view, 0x2080018e), &l, &p, &asked), RM_INVALID_ARGUMENT);
}

TEST(no_number_above_the_slice_and_nobody_elses_process)
{
    enum { BYTES = 4000, SEEDS = 4000 };
    static uint8_t bytes[BYTES];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        const char *why = play_control(&c);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
}

TEST_MAIN
