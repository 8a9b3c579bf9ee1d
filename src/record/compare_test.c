/* SPDX-License-Identifier: Apache-2.0 */
#include "record/compare.h"

#include "base/test.h"
#include "gpu/abi/rm.h"

/* Two sections; made anew for each test, which then plants its change. */
static struct bh_recording made(void)
{
    static const struct bh_call CALLS[] = {
        {.kind = BH_CALL_MARK, .text = "start"},
        {.kind = BH_CALL_OPEN},
        {.kind = BH_CALL_ESCAPE, .number = RM_CHECK_VERSION, .bytes = 72},
        {.kind = BH_CALL_ALLOC, .number = RM_ALLOC, .bytes = 48, .what = RM_CLASS_CLIENT, .object = 1},
        {.kind = BH_CALL_ALLOC,
         .number = RM_ALLOC,
         .bytes = 48,
         .what = RM_CLASS_DEVICE,
         .object = 2,
         .parent = 1},
        {.kind = BH_CALL_CONTROL,
         .number = RM_CONTROL,
         .bytes = 32,
         .what = 0x20800110,
         .object = 2,
         .params = 64},
        {.kind = BH_CALL_CONTROL,
         .number = RM_CONTROL,
         .bytes = 32,
         .what = 0x2080018e,
         .object = 2,
         .params = 8},
        {.kind = BH_CALL_MARK, .text = "memory"},
        {.kind = BH_CALL_ALLOC,
         .number = RM_ALLOC,
         .bytes = 48,
         .what = RM_CLASS_MEMORY_LOCAL,
         .object = 3,
         .parent = 2,
         .params = 128,
         .memory = true,
         .size = 2 << 20},
        {.kind = BH_CALL_UVM, .file = BH_FILE_UVM, .number = UVM_MAP_EXTERNAL, .times = 2},
        {.kind = BH_CALL_MAP, .file = BH_FILE_UVM, .size = 4096, .what = 3, .flags = 0x22},
        {.kind = BH_CALL_FREE, .number = RM_FREE, .bytes = 16, .object = 3},
    };
    struct bh_recording r = {.driver = "1", .gpu = "H200", .what = "a test"};
    for (size_t i = 0; i < BH_COUNT_OF(CALLS); i++)
        bh_recording_add(&r, &CALLS[i]);
    return r;
}
enum {
    AT_OPEN = 1,
    AT_VERSION,
    AT_CLIENT,
    AT_DEVICE,
    AT_CONTROL,
    AT_PIDS,
    AT_MARK,
    AT_MEMORY,
    AT_UVM,
    AT_MAP,
    AT_FREE
};

static void take_out(struct bh_recording *r, size_t at)
{
    memmove(&r->calls.at[at], &r->calls.at[at + 1], (r->calls.n - at - 1) * sizeof(struct bh_call));
    r->calls.n--;
}

static void put_in(struct bh_recording *r, size_t at, struct bh_call call)
{
    call.times = 1;
    (void)bh_vec_push(&r->calls);
    memmove(&r->calls.at[at + 1], &r->calls.at[at], (r->calls.n - at - 1) * sizeof(struct bh_call));
    r->calls.at[at] = call;
}

/* What is said about old and new; both are ended. */
static const char *said(struct bh_recording *old, struct bh_recording *new)
{
    static struct bh_buf b;
    struct bh_comparison c;
    bh_buf_fini(&b);
    bh_buf_init(&b, 1 << 20);
    bh_recording_compare(old, new, &c);
    bh_comparison_write(&b, &c);
    bh_comparison_fini(&c);
    bh_recording_fini(old);
    bh_recording_fini(new);
    return bh_buf_text(&b);
}

TEST(equal_recordings_have_no_changes)
{
    struct bh_recording a = made(), b = made(), empty[2] = {{.driver = "-"}, {.driver = "-"}};
    b.driver = "2"; /* who made them is no change of what was made */
    CHECK_STR(said(&a, &b), "");
    CHECK_STR(said(&empty[0], &empty[1]), "");
}

TEST(a_changed_member_is_named)
{
    struct bh_recording a = made(), b = made();
    b.calls.at[AT_CONTROL].params = 72;
    CHECK_STR(said(&a, &b), "control 20800110: params 64 -> 72 bytes (1 call in start)\n");

    a = made(), b = made();
    b.calls.at[AT_MEMORY].bytes = 56;
    CHECK_STR(said(&a, &b), "class 40: structure 48 -> 56 bytes (1 call in memory)\n");

    a = made(), b = made();
    b.calls.at[AT_CONTROL].status = RM_NOT_SUPPORTED;
    b.calls.at[AT_OPEN].error = 13;
    CHECK_STR(said(&a, &b), "open ctl: errno 0 -> 13 (1 call in start)\n"
                            "control 20800110: status 0 -> 56 (1 call in start)\n");

    a = made(), b = made();
    b.calls.at[AT_MEMORY].size = 4 << 20;
    b.calls.at[AT_MEMORY].attr = 0x10;
    b.calls.at[AT_MEMORY].attr2 = 0x20;
    b.calls.at[AT_MEMORY].mflags = 0x30;
    b.calls.at[AT_MEMORY].flags = 0x40;
    CHECK_STR(said(&a, &b), "class 40: flags 0 -> 40 (1 call in memory)\n"
                            "class 40: size 2097152 -> 4194304 bytes (1 call in memory)\n"
                            "class 40: attr 0 -> 10 (1 call in memory)\n"
                            "class 40: attr2 0 -> 20 (1 call in memory)\n"
                            "class 40: memory flags 0 -> 30 (1 call in memory)\n");

    a = made(), b = made();
    b.calls.at[AT_MAP].what = 1;
    b.calls.at[AT_UVM].times = 5;
    b.calls.at[AT_CONTROL].file = BH_FILE_GPU;
    CHECK_STR(said(&a, &b), "map uvm: protection 3 -> 1 (1 call in memory)\n"
                            "control 20800110: file ctl -> gpu (1 call in start)\n"
                            "uvm call 33: times 2 -> 5 (5 calls in memory)\n");

    a = made(), b = made();
    b.calls.at[AT_CONTROL].object = 1;
    b.calls.at[AT_MEMORY].parent = 0;
    CHECK_STR(said(&a, &b), "class 40: parent class 80 -> none (1 call in memory)\n"
                            "control 20800110: object class 80 -> class 41 (1 call in start)\n");
}

TEST(new_and_gone_topics_are_told_from_more_and_less)
{
    struct bh_recording a = made(), b = made();
    take_out(&b, AT_PIDS);
    put_in(&b, AT_CLIENT, (struct bh_call){.kind = BH_CALL_ALLOC, .bytes = 48, .what = 0xc9b5, .object = 9});
    CHECK_STR(said(&a, &b), "class c9b5: new (1 call in start)\n"
                            "control 2080018e: no longer used (1 call in start)\n");

    a = made(), b = made();
    put_in(&b, AT_MEMORY, b.calls.at[AT_CONTROL]); /* in the other section */
    CHECK_STR(said(&a, &b), "control 20800110: used more often (1 call in memory)\n");

    a = made(), b = made();
    put_in(&a, AT_MEMORY, b.calls.at[AT_CONTROL]);
    CHECK_STR(said(&a, &b), "control 20800110: used less often (1 call in memory)\n");
}

/* One object more at the start gives every later one another number; that is no change of what is done
 * with them. */
TEST(objects_count_as_what_they_are)
{
    struct bh_recording a = made(), b = made();
    for (size_t i = AT_DEVICE; i < b.calls.n; i++) {
        struct bh_call *c = &b.calls.at[i];
        c->object += c->object > 1;
        c->parent += c->parent > 1;
    }
    put_in(&b, AT_DEVICE,
           (struct bh_call){.kind = BH_CALL_ALLOC, .bytes = 48, .what = 5, .object = 2, .parent = 1});
    CHECK_STR(said(&a, &b), "class 5: new (1 call in start)\n");
}

TEST(another_object_of_the_same_class_is_seen_when_nothing_else_changed)
{
    struct bh_recording a = made(), b = made();
    struct bh_call second = {
        .kind = BH_CALL_ALLOC, .bytes = 48, .what = RM_CLASS_DEVICE, .object = 9, .parent = 1};
    put_in(&a, AT_CONTROL, second);
    put_in(&b, AT_CONTROL, second);
    b.calls.at[AT_CONTROL + 1].object = 9;
    CHECK_STR(said(&a, &b), "control 20800110: made on another object of the same class (1 call in start)\n");
}

TEST(a_call_that_moved_is_not_two_changes)
{
    struct bh_recording a = made(), b = made();
    struct bh_call call = b.calls.at[AT_VERSION];
    take_out(&b, AT_VERSION);
    put_in(&b, AT_PIDS, call);
    CHECK_STR(said(&a, &b), "escape d2: made in another place (1 call in start)\n");
}

TEST(sections_come_and_go)
{
    struct bh_recording a = made(), b = made();
    b.calls.at[AT_MARK].text = "pools";
    CHECK_STR(said(&a, &b), "section memory: gone (4 calls)\nsection pools: new (4 calls)\n");

    a = made(), b = made(); /* the second of the same name is compared with the second */
    a.calls.at[AT_MARK].text = b.calls.at[AT_MARK].text = "start";
    b.calls.at[AT_MEMORY].bytes = 56;
    CHECK_STR(said(&a, &b), "class 40: structure 48 -> 56 bytes (1 call in start (2))\n");
}

TEST(the_same_change_in_many_places_is_one_line)
{
    struct bh_recording a = {.driver = "1"}, b = {.driver = "2"};
    for (int i = 0; i < 5; i++) {
        char name[32];
        struct bh_call mark = {.kind = BH_CALL_MARK, .text = name},
                       call = {.kind = BH_CALL_CONTROL, .bytes = 32, .what = 0x20801303, .params = 1028};
        snprintf(name, sizeof(name), "part-%d", i);
        bh_recording_add(&a, &mark);
        bh_recording_add(&b, &mark);
        for (int k = 0; k < 3; k++) {
            struct bh_call between = {.kind = BH_CALL_ESCAPE, .number = 0xc8, .bytes = (uint32_t)k};
            call.params = 1028;
            bh_recording_add(&a, &call);
            bh_recording_add(&a, &between);
            call.params = 1032;
            bh_recording_add(&b, &call);
            bh_recording_add(&b, &between);
        }
    }
    CHECK_STR(said(&a, &b),
              "control 20801303: params 1028 -> 1032 bytes (15 calls in part-0 and 4 more sections)\n");
}

/* Past the bound the order is no longer looked at, yet what changed is still told, in one line. */
TEST(sections_with_nothing_in_common_are_bounded)
{
    struct bh_recording a = {.driver = "1"}, b = {.driver = "2"};
    for (uint32_t i = 0; i < 3000; i++) {
        struct bh_call call = {.kind = BH_CALL_CONTROL, .bytes = 32, .what = i % 7, .params = i};
        bh_recording_add(&a, &call);
        call.flags = 1;
        bh_recording_add(&b, &call);
    }
    struct bh_comparison c;
    bh_recording_compare(&a, &b, &c);
    CHECK_EQ(c.changes.n, 7);
    for (size_t i = 0; i < c.changes.n; i++) {
        CHECK_EQ(c.changes.at[i].kind, BH_CHANGE_FIELD);
        CHECK(c.changes.at[i].from == 0 && c.changes.at[i].to == 1);
        CHECK(c.changes.at[i].calls == 428 || c.changes.at[i].calls == 429);
    }
    bh_comparison_fini(&c);
    bh_recording_fini(&a);
    bh_recording_fini(&b);
}

/* The algorithm against all pairs of short texts: what is left over is what a longest common part leaves. */
static size_t longest(const char *a, const char *b)
{
    if (!*a || !*b)
        return 0;
    if (*a == *b)
        return 1 + longest(a + 1, b + 1);
    size_t x = longest(a + 1, b), y = longest(a, b + 1);
    return x > y ? x : y;
}

static struct bh_recording letters(char text[8], unsigned n, unsigned code)
{
    struct bh_recording r = {.driver = "-"};
    for (unsigned i = 0; i < n; i++, code /= 3) {
        text[i] = (char)('a' + code % 3);
        struct bh_call call = {.kind = BH_CALL_ESCAPE, .number = (uint32_t)text[i], .times = 1};
        *bh_vec_push(&r.calls) = call; /* not counted together: each letter is a call */
    }
    text[n] = '\0';
    return r;
}

TEST(what_is_common_is_as_long_as_it_can_be)
{
    for (unsigned x = 0; x < 3 * 3 * 3 * 3; x++) {
        for (unsigned y = 0; y < 3 * 3 * 3 * 3 * 3; y++) {
            char ta[8], tb[8];
            struct bh_recording a = letters(ta, 4, x), b = letters(tb, 5, y);
            struct bh_comparison c;
            uint64_t gone = 0, come = 0, moved = 0;
            bh_recording_compare(&a, &b, &c);
            for (size_t i = 0; i < c.changes.n; i++) {
                const struct bh_change *h = &c.changes.at[i];
                bool less = h->kind == BH_CHANGE_LESS || h->kind == BH_CHANGE_TOPIC_GONE;
                bool more = h->kind == BH_CHANGE_MORE || h->kind == BH_CHANGE_TOPIC_NEW;
                CHECK(less || more || h->kind == BH_CHANGE_ORDER);
                *(less ? &gone : more ? &come : &moved) += h->calls;
            }
            bh_comparison_fini(&c);
            bh_recording_fini(&a);
            bh_recording_fini(&b);
            CHECK_EQ(4 - gone - moved, longest(ta, tb));
            CHECK_EQ(5 - come - moved, longest(ta, tb));
        }
    }
}

TEST_MAIN
