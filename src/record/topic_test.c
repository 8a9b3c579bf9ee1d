/* SPDX-License-Identifier: Apache-2.0 */
#include "record/topic.h"

#include "base/test.h"

static struct bh_recording made(void)
{
    static const struct bh_call CALLS[] = {
        {.kind = BH_CALL_OPEN, .file = BH_FILE_CTL},
        {.kind = BH_CALL_MARK, .text = "start"},
        {.kind = BH_CALL_ALLOC, .what = 0x40, .bytes = 48, .size = 1, .memory = true},
        {.kind = BH_CALL_CONTROL, .what = 0x20801303, .status = 0x56, .times = 3},
        {.kind = BH_CALL_CONTROL, .what = 0x20801303, .times = 2},
        {.kind = BH_CALL_ALLOC, .what = 0x40, .bytes = 48, .size = 2, .memory = true},
        {.kind = BH_CALL_PROCESS, .what = 2},
        {.kind = BH_CALL_ESCAPE, .number = 0xd2},
        {.kind = BH_CALL_UVM, .file = BH_FILE_UVM, .number = 37},
        {.kind = BH_CALL_UVM, .file = BH_FILE_UVM_TOOLS, .number = 37, .error = 1},
        {.kind = BH_CALL_FREE, .object = 3},
        {.kind = BH_CALL_DUP, .what = 0x40},
        {.kind = BH_CALL_HEAP, .what = 2},
        {.kind = BH_CALL_MEMORY, .what = 0x71},
        {.kind = BH_CALL_MAP, .file = BH_FILE_UVM, .what = 3},
        {.kind = BH_CALL_MARK, .text = "end"},
        {.kind = BH_CALL_CLOSE, .file = BH_FILE_GPU, .gpu = 4},
    };
    struct bh_recording r = {.driver = "580.1", .gpu = "H200", .what = "a test"};
    for (size_t i = 0; i < BH_COUNT_OF(CALLS); i++)
        bh_recording_add(&r, &CALLS[i]);
    return r;
}

TEST(a_summary_counts_topics_by_section)
{
    struct bh_recording r = made();
    struct bh_buf b;
    bh_buf_init(&b, 1 << 16);
    CHECK(bh_recording_summary(&b, &r, NULL));
    CHECK_STR(bh_buf_text(&b), "H200, driver 580.1: a test\n"
                               "(before the first mark): 1 call\n"
                               "       1  open ctl\n"
                               "start: 15 calls\n"
                               "       1  map uvm\n"
                               "       1  escape d2\n"
                               "       2  class 40\n"
                               "       5  control 20801303 (3 failed)\n"
                               "       1  free\n"
                               "       1  dup of class 40\n"
                               "       1  heap function 2\n"
                               "       1  uvm call 37\n"
                               "       1  uvm-tools call 37 (1 failed)\n"
                               "       1  memory of class 71\n"
                               "end: 1 call\n"
                               "       1  close gpu\n");
    bh_buf_fini(&b);
    bh_recording_fini(&r);
}

TEST(one_section_can_be_asked_for)
{
    struct bh_recording r = made();
    struct bh_buf b;
    bh_buf_init(&b, 1 << 16);
    CHECK(bh_recording_summary(&b, &r, "end"));
    CHECK_STR(bh_buf_text(&b), "end: 1 call\n       1  close gpu\n");
    CHECK(!bh_recording_summary(&b, &r, "middle"));
    bh_buf_fini(&b);
    bh_recording_fini(&r);
}

TEST(topics_are_ordered)
{
    struct bh_call a = {.kind = BH_CALL_CONTROL, .what = 1}, b = {.kind = BH_CALL_CONTROL, .what = 2},
                   c = {.kind = BH_CALL_CONTROL, .what = 1, .file = BH_FILE_GPU, .params = 9},
                   d = {.kind = BH_CALL_UVM, .file = BH_FILE_UVM};
    struct bh_topic ta = bh_topic_of(&a), tb = bh_topic_of(&b), tc = bh_topic_of(&c), td = bh_topic_of(&d);
    CHECK(bh_topic_cmp(&ta, &tb) < 0 && bh_topic_cmp(&tb, &ta) > 0);
    CHECK_EQ(bh_topic_cmp(&ta, &tc), 0); /* whichever file it was made on */
    CHECK(bh_topic_cmp(&tb, &td) < 0 && bh_topic_cmp(&td, &tb) > 0);
}

TEST(marks_and_processes_have_no_topic)
{
    struct bh_call mark = {.kind = BH_CALL_MARK, .text = "a"}, process = {.kind = BH_CALL_PROCESS, .what = 2},
                   close = {.kind = BH_CALL_CLOSE};
    CHECK(!bh_call_has_topic(&mark) && !bh_call_has_topic(&process) && bh_call_has_topic(&close));
}

TEST_MAIN
