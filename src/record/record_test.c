/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include "base/test.h"
#include "gpu/abi/rm.h"

#include <stdio.h>

/* Every kind of line, every optional part at least once. */
static const char BODY[] =
    "bulkhead-recording 1\n"
    "driver 580.159.04\n"
    "gpu NVIDIA H200\n"
    "what one process, every way to obtain memory\n"
    "mark start\n"
    "open ctl\n"
    "open gpu12 errno 13\n"
    "ctl escape d2 72\n"
    "ctl alloc 48 class 41 new #1 in #0 params 0 flags 0\n"
    "ctl alloc 48 class 40 new #9 in #3 params 128 flags 0 size 67108864 attr 11000000 attr2 0 mflags 1c101\n"
    "ctl alloc 32 class 2080 new #0 in #1 params 4 flags 0 status 22\n"
    "ctl control 32 command 20801303 on #4 params 1028 flags 0\n"
    "ctl control 32 command 20800110 on #4 params 64 flags 0 status 56 errno 5 times 3\n"
    "gpu0 free 16 #9\n"
    "ctl dup 28 class 40 new #12 in #3 from #9 flags 0\n"
    "ctl heap 184 function 2 new #13 in #3 size 2097152 attr 0 attr2 0 mflags 0\n"
    "ctl heap 184 function 3 new #13 in #3\n"
    "ctl memory 56 class 71 new #14 in #3 flags 10 size 4096\n"
    "mark alloc 64m\n"
    "process 2\n"
    "uvm call 805306369\n"
    "uvm-tools call 56\n"
    "modeset escape 0 16\n"
    "cap escape 1 8\n"
    "other escape 2 9\n"
    "map uvm 18446744073709551615 prot 3 flags 22\n"
    "close ctl times 4294967295\n";

/* BODY's head with one line behind it, and the right last line: whatever is refused is refused for the
 * line. */
static int parse_line(const char *line, struct bh_recording *ret, struct bh_err *err)
{
    struct bh_buf b;
    uint32_t sum = UINT32_C(0x811c9dc5);
    bh_buf_init(&b, 1 << 16);
    bh_buf_printf(&b, "bulkhead-recording 1\ndriver -\ngpu -\nwhat -\n%s\n", line);
    for (size_t i = 0; i < b.n; i++)
        sum = (sum ^ (unsigned char)b.at[i]) * UINT32_C(0x01000193);
    bh_buf_printf(&b, "end 5 %08x\n", sum);
    int rc = bh_recording_parse("f", b.at, b.n, ret, err);
    bh_buf_fini(&b);
    return rc;
}

static bool sealed(struct bh_buf *ret)
{
    struct bh_recording r;
    struct bh_err err = {0};
    bh_buf_init(ret, 1 << 20);
    bh_buf_str(ret, BODY);
    bh_buf_str(ret, "end 27 00000000\n");
    /* The refusal says what the last line should be. */
    if (bh_recording_parse("f", ret->at, ret->n, &r, &err) == BH_OK)
        return false;
    const char *at = strstr(err.msg, "\"end ");
    if (!at)
        return false;
    bh_buf_fini(ret);
    bh_buf_init(ret, 1 << 20);
    bh_buf_printf(ret, "%s%.15s\n", BODY, at + 1);
    return true;
}

TEST(what_is_read_is_written_back_byte_for_byte)
{
    struct bh_buf text, again;
    struct bh_recording r;
    struct bh_err err;
    CHECK(sealed(&text));
    CHECK_EQ(bh_recording_parse("f", text.at, text.n, &r, &err), BH_OK);
    bh_buf_init(&again, 1 << 20);
    bh_recording_write(&again, &r);
    CHECK_STR(bh_buf_text(&again), bh_buf_text(&text));
    bh_recording_fini(&r);
    bh_buf_fini(&text);
    bh_buf_fini(&again);
}

TEST(the_fields_stand_where_they_should)
{
    struct bh_buf text;
    struct bh_recording r;
    struct bh_err err;
    CHECK(sealed(&text));
    CHECK_EQ(bh_recording_parse("f", text.at, text.n, &r, &err), BH_OK);
    CHECK_STR(r.driver, "580.159.04");
    CHECK_STR(r.gpu, "NVIDIA H200");
    CHECK_EQ(r.calls.n, 23);
    const struct bh_call *open = &r.calls.at[2], *memory = &r.calls.at[5], *control = &r.calls.at[8];
    CHECK(open->kind == BH_CALL_OPEN && open->file == BH_FILE_GPU && open->gpu == 12 && open->error == 13);
    CHECK(memory->kind == BH_CALL_ALLOC && memory->number == RM_ALLOC && memory->memory);
    CHECK(memory->what == 0x40 && memory->object == 9 && memory->parent == 3 && memory->params == 128);
    CHECK(memory->size == 64 << 20 && memory->attr == 0x11000000 && memory->mflags == 0x1c101);
    CHECK(control->what == 0x20800110 && control->status == 0x56 && control->error == 5);
    CHECK_EQ(control->times, 3);
    CHECK_EQ(r.calls.at[16].number, UVM_INITIALIZE);
    CHECK(r.calls.at[21].size == UINT64_MAX && r.calls.at[21].what == 3 && r.calls.at[21].flags == 0x22);
    CHECK_EQ(r.calls.at[22].times, UINT32_MAX);
    bh_recording_fini(&r);
    bh_buf_fini(&text);
}

TEST(a_changed_byte_anywhere_is_refused)
{
    struct bh_buf text;
    CHECK(sealed(&text));
    for (size_t i = 0; i < text.n; i++) {
        struct bh_recording r;
        struct bh_err err = {0};
        for (int bit = 0; bit < 8; bit++) {
            text.at[i] ^= (char)(1 << bit);
            int rc = bh_recording_parse("kept.rec", text.at, text.n, &r, &err);
            text.at[i] ^= (char)(1 << bit);
            CHECK(rc < 0);
            CHECK(strncmp(err.msg, "kept.rec:", 9) == 0);
        }
    }
    bh_buf_fini(&text);
}

TEST(a_cut_anywhere_is_refused)
{
    struct bh_buf text;
    CHECK(sealed(&text));
    for (size_t n = 0; n < text.n; n++) {
        struct bh_recording r;
        CHECK(bh_recording_parse("f", text.at, n, &r, NULL) < 0);
    }
    bh_buf_fini(&text);
}

TEST(each_malformed_line_is_refused_with_its_number)
{
    static const struct {
        const char *line, *why;
    } BAD[] = {
        {"", "words stand apart by one blank"},
        {"open  ctl", "words stand apart by one blank"},
        {"open ctl ", "words stand apart by one blank"},
        {"open", "is no file"},
        {"open disk", "\"disk\" is no file"},
        {"open gpu", "\"gpu\" is no file"},
        {"open gpu256", "is no file"},
        {"open gpu01", "is no file"},
        {"ctl", "\"the end of the line\" is no call"},
        {"ctl open", "\"open\" is no call"},
        {"ctl alloc", "the value of \"the call\" is missing"},
        {"ctl alloc 48 class", "the value of \"class\" is missing"},
        {"ctl alloc 48 klass 41", "\"class\" should stand where \"klass\" does"},
        {"ctl alloc 48 class 4X new #1 in #0 params 0 flags 0", "\"4X\" is no hexadecimal number"},
        {"ctl alloc 48 class 041 new #1 in #0 params 0 flags 0", "\"041\" is no hexadecimal number"},
        {"ctl alloc 48 class AB new #1 in #0 params 0 flags 0", "\"AB\" is no hexadecimal number"},
        {"ctl alloc 4a class 41 new #1 in #0 params 0 flags 0", "\"4a\" is no decimal number"},
        {"ctl alloc 4294967296 class 41 new #1 in #0 params 0 flags 0", "is no decimal number"},
        {"ctl alloc 48 class 41 new 1 in #0 params 0 flags 0", "\"1\" is no # and a number"},
        {"ctl alloc 48 class 40 new #1 in #0 params 0 flags 0 size 1", "\"attr\" should stand"},
        {"ctl control 32 command 1 on #0 params 0 flags 0 size 1 attr 0 attr2 0 mflags 0",
         "\"size\" should not be there"},
        {"ctl memory 56 class 71 new #1 in #0 flags 0", "\"size\" is missing"},
        {"ctl escape d2 72 status 0", "\"status\" is not written when it says nothing"},
        {"ctl escape d2 72 errno 0", "\"errno\" is not written when it says nothing"},
        {"ctl escape d2 72 errno 2147483648", "is no decimal number"},
        {"ctl escape d2 72 times 1", "\"times\" is not written when it says nothing"},
        {"ctl escape d2 72 errno 5 status 5", "\"status\" should not be there"},
        {"map uvm 18446744073709551616 prot 3 flags 22", "is no decimal number"},
        {"process 0", "is no process"},
        {"process x", "is no process"},
        {"mark ", "is empty or has blanks around it"},
        {"mark a ", "is empty or has blanks around it"},
        {"mark caf\xc3\xa9", "byte 9 is not printable ASCII"},
        {"open\tctl", "byte 5 is not printable ASCII"},
        {"end 4", "cut or changed"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(BAD); i++) {
        struct bh_recording r;
        struct bh_err err = {0};
        int rc = parse_line(BAD[i].line, &r, &err);
        if (rc >= 0 || strncmp(err.msg, "f:5: ", 5) != 0 || !strstr(err.msg, BAD[i].why))
            printf("# '%s': %s\n", BAD[i].line, err.msg);
        CHECK_EQ(rc, BH_INVALID);
        CHECK(strncmp(err.msg, "f:5: ", 5) == 0);
        CHECK(strstr(err.msg, BAD[i].why));
    }
}

TEST(heads_are_looked_at_too)
{
    static const struct {
        const char *text, *why;
    } BAD[] = {
        {"", "f:1: the recording ends"},
        {"bulkhead-recording 2\n", "f:1: no recording"},
        {"bulkhead-recording 1\ndriver\n", "f:2: the line should start with \"driver\""},
        {"bulkhead-recording 1\ndriver 1\nGPU x\n", "f:3: the line should start with \"gpu\""},
        {"bulkhead-recording 1\ndriver 1\ngpu x\nwhat ", "f:4: the line does not end"},
    };
    for (size_t i = 0; i < BH_COUNT_OF(BAD); i++) {
        struct bh_recording r;
        struct bh_err err = {0};
        CHECK(bh_recording_parse("f", BAD[i].text, strlen(BAD[i].text), &r, &err) < 0);
        CHECK(strstr(err.msg, BAD[i].why));
    }
}

TEST(long_lines_and_texts_are_refused)
{
    char line[400];
    struct bh_recording r;
    struct bh_err err = {0};
    memset(line, 'a', sizeof(line));
    memcpy(line, "mark ", 5);
    line[5 + BH_RECORDING_TEXT_MAX + 1] = '\0';
    CHECK_EQ(parse_line(line, &r, &err), BH_TOO_LARGE);
    line[5 + BH_RECORDING_TEXT_MAX] = '\0';
    CHECK_EQ(parse_line(line, &r, &err), BH_OK);
    bh_recording_fini(&r);
    memset(line, 'a', sizeof(line));
    line[399] = '\0';
    CHECK_EQ(parse_line(line, &r, &err), BH_TOO_LARGE);
}

TEST(a_line_said_twice_must_say_times)
{
    struct bh_recording r;
    struct bh_err err = {0};
    CHECK_EQ(parse_line("open ctl\nopen ctl", &r, &err), BH_INVALID);
    CHECK_STR(err.msg, "f:6: the line before says the same: it should carry \"times\"");
    CHECK_EQ(parse_line("open ctl\nopen ctl times 2", &r, &err), BH_INVALID);
    CHECK(strstr(err.msg, "the line before says the same"));
}

TEST(equal_calls_are_counted_and_marks_are_not)
{
    struct bh_recording r = {.driver = "1", .gpu = "-", .what = "-"};
    struct bh_call open = {.kind = BH_CALL_OPEN}, mark = {.kind = BH_CALL_MARK, .text = "a"};
    struct bh_buf b;
    bh_recording_add(&r, &mark);
    bh_recording_add(&r, &mark);
    bh_recording_add(&r, &open);
    bh_recording_add(&r, &open);
    open.error = 2;
    bh_recording_add(&r, &open);
    CHECK_EQ(r.calls.n, 4);
    CHECK_EQ(r.calls.at[2].times, 2);
    CHECK_EQ(r.calls.at[3].times, 1);
    open.times = UINT32_MAX;
    bh_recording_add(&r, &open);
    CHECK_EQ(r.calls.at[3].times, UINT32_MAX);
    bh_buf_init(&b, 4096);
    bh_call_write(&b, &r.calls.at[2]);
    CHECK_STR(bh_buf_text(&b), "open ctl times 2");
    bh_buf_fini(&b);
    bh_recording_fini(&r);
}

/* Anything that a program or a machine may say becomes a text that can be read again. */
TEST(texts_are_made_fit_to_print)
{
    struct bh_arena arena = {0};
    char big[600];
    CHECK_STR(bh_recording_text(&arena, "  NVIDIA H200 \t"), "NVIDIA H200 ?");
    CHECK_STR(bh_recording_text(&arena, "a\nend 1"), "a?end 1");
    CHECK_STR(bh_recording_text(&arena, " \n "), "-");
    memset(big, 'x', sizeof(big));
    big[599] = '\0';
    CHECK_EQ(strlen(bh_recording_text(&arena, big)), BH_RECORDING_TEXT_MAX);
    bh_arena_fini(&arena);
}

TEST(sections_end_at_the_next_mark)
{
    struct bh_buf text;
    struct bh_recording r;
    size_t first = 0, n = 0;
    CHECK(sealed(&text));
    CHECK_EQ(bh_recording_parse("f", text.at, text.n, &r, NULL), BH_OK);
    CHECK(bh_recording_section(&r, "start", &first, &n));
    CHECK(first == 1 && n == 13);
    CHECK(bh_recording_section(&r, "alloc 64m", &first, &n));
    CHECK(first == 15 && n == 8);
    CHECK(!bh_recording_section(&r, "alloc", &first, &n));
    bh_recording_fini(&r);
    bh_buf_fini(&text);
}

/* A pair of calls that differ in any one member is not the same; `times` alone does not count. */
TEST(same_looks_at_every_member)
{
    const struct bh_call base = {.kind = BH_CALL_ALLOC, .text = "t", .times = 1};
    struct bh_call c[] = {base, base, base, base, base, base, base, base, base, base,
                          base, base, base, base, base, base, base, base, base};
    c[0].kind = BH_CALL_DUP, c[1].file = 1, c[2].gpu = 1, c[3].number = 1, c[4].bytes = 1, c[5].what = 1;
    c[6].object = 1, c[7].parent = 1, c[8].source = 1, c[9].params = 1, c[10].flags = 1, c[11].status = 1;
    c[12].error = 1, c[13].memory = true, c[14].size = 1, c[15].attr = 1, c[16].attr2 = 1, c[17].mflags = 1;
    c[18].text = "u";
    for (size_t i = 0; i < BH_COUNT_OF(c); i++)
        CHECK(!bh_call_same(&base, &c[i]));
    struct bh_call times = base;
    times.times = 9;
    CHECK(bh_call_same(&base, &times));
}

TEST_MAIN
