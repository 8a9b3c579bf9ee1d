/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

/* Two processes; writes the journal's text into out. */
static bool run(struct bh_buf *out)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct bh_recording r = {.driver = "580.159.04", .gpu = "NVIDIA H100", .what = "a test"};
    struct fx_tenant t = {0}, other = {0}, before;
    uint64_t bytes = BH_MIB, range, fence;
    uint32_t memory = 0, group = 0, channel = 0, event = 0, fb[257] = {0};
    bool ok = fx_tenant(rm, &fx_user, 0, &before) == RM_OK;
    bh_sim_rm_journal(rm, &r);
    ok = ok && fx_tenant(rm, &fx_user, 0, &t) == RM_OK;
    ok = ok && fx_memory(rm, &t, &bytes, &memory) == RM_OK && fx_channel(rm, &t, &group, &channel) == RM_OK;
    ok = ok && fx_tenant(rm, &fx_other, 0, &other) == RM_OK;
    ok = ok && fx_control(rm, t.file, t.who, t.client, t.device, RM_CTRL_FB_GET_INFO_V2, fb, 1028) != RM_OK;
    ok = ok && fx_make(rm, &before, before.device, RM_CLASS_EVENT, &event) == RM_OK;
    ok = ok && bh_sim_rm_submit(rm, t.file, t.client, channel, 5, &fence) == 0;
    ok = ok && bh_sim_rm_map(rm, t.file, t.who, &(struct bh_sim_map){4096, 3, 0x11}, &range) == 0;
    ok = ok && bh_sim_rm_ioctl(rm, t.file, t.who, RM_IOC(RM_XFER_CMD, 16), fb, 16, NULL, 0) < 0;
    ok = ok && fx_free(rm, t.file, t.who, t.client, memory) == RM_OK;
    bh_sim_rm_close(rm, t.file);
    bh_sim_rm_journal(rm, NULL);
    bh_sim_rm_close(rm, other.file);
    bh_sim_rm_free(rm);
    bh_recording_write(out, &r);
    bh_vec_fini(&r.calls);
    bh_arena_fini(&r.arena);
    return ok;
}

TEST(the_same_calls_give_the_same_bytes)
{
    struct bh_buf a, b;
    bh_buf_init(&a, 1 << 20);
    bh_buf_init(&b, 1 << 20);
    bool ok = run(&a) && run(&b), same = a.n > 0 && a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    CHECK(ok);
    CHECK(same);
}

TEST(calls_are_told_as_a_recording_tells_them)
{
    static const char *const lines[] = {
        "\nopen ctl\nctl alloc 48 class 41 new #1 in #0 params 0 flags 0\n",
        "\nctl alloc 48 class 80 new #2 in #1 params 56 flags 0\n",
        " class 40 new #4 in #2 params 128 flags 0 size 1048576 attr 0 attr2 0 mflags 0\n",
        "\nprocess 2\nopen ctl\n",
        "\nprocess 1\nctl control 32 command 20801303 on #2 params 1028 flags 0 status 33\n",
        " class 5 new #10 in #0 params 0 flags 0\n", /* below an object from before the journal */
        "\nmap ctl 4096 prot 3 flags 11\n",
        "\nctl escape d3 16 errno 22\n",
        "\nctl free 16 #4\nclose ctl\n",
    };
    struct bh_buf out;
    const char *missing = NULL;
    bh_buf_init(&out, 1 << 20);
    bool ok = run(&out);
    for (size_t i = 0; i < BH_COUNT_OF(lines); i++)
        if (!strstr(bh_buf_text(&out), lines[i]))
            missing = lines[i];
    if (missing)
        printf("# not there: %s# in: %s\n", missing, bh_buf_text(&out));
    bh_buf_fini(&out);
    CHECK(ok);
    CHECK(!missing);
}

TEST_MAIN
