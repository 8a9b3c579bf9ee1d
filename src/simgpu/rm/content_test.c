/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/test.h"
#include "simgpu/rm/rm_fixture.h"

#include <errno.h>

TEST(bytes_are_kept_where_they_were_put)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = 4 * BH_MIB;
    uint32_t memory = 0;
    char in[200000], out[200000];
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)(i * 7);
    CHECK_EQ(bh_sim_rm_write(rm, t.file, t.client, memory, 1000, in, sizeof(in)), 0);
    CHECK_EQ(bh_sim_rm_read(rm, t.file, t.client, memory, 1000, out, sizeof(out)), 0);
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    CHECK_EQ(bh_sim_rm_read(rm, t.file, t.client, memory, 999, out, 1), 0);
    CHECK_EQ(out[0], 0);
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, 0, 0x5a, bytes), 0);
    CHECK_EQ(bh_sim_rm_held(rm).chunks, 0);
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, 0, 0x5a, bytes / 2), 0);
    CHECK_EQ(bh_sim_rm_held(rm).chunks, 0);
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, 10, 0x11, 2), 0);
    CHECK_EQ(bh_sim_rm_held(rm).chunks, 1);
    CHECK_EQ(bh_sim_rm_read(rm, t.file, t.client, memory, 9, out, 4), 0);
    CHECK(memcmp(out, "\x5a\x11\x11\x5a", 4) == 0);
    CHECK(!bh_sim_rm_check(rm));
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, 0, 0, bytes), 0);
    CHECK_EQ(bh_sim_rm_held(rm).chunks, 0);
    CHECK(!bh_sim_rm_check(rm));
    bh_sim_rm_free(rm);
}

TEST(nobody_reads_past_the_end_or_somebody_elses)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t, other;
    uint64_t bytes = 65536;
    uint32_t memory = 0, event = 0;
    char c;
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_tenant(rm, &fx_other, 0, &other), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    CHECK_EQ(fx_make(rm, &t, t.device, RM_CLASS_EVENT, &event), RM_OK);
    CHECK_EQ(bh_sim_rm_read(rm, t.file, t.client, memory, 65535, &c, 1), 0);
    CHECK_EQ(bh_sim_rm_read(rm, t.file, t.client, memory, 65536, &c, 1), -EFAULT);
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, UINT64_MAX, 1, 2), -EFAULT);
    CHECK_EQ(bh_sim_rm_fill(rm, t.file, t.client, memory, 1, 1, UINT64_MAX), -EFAULT);
    CHECK_EQ(bh_sim_rm_write(rm, t.file, t.client, event, 0, &c, 1), -EINVAL);
    CHECK_EQ(bh_sim_rm_read(rm, other.file, t.client, memory, 0, &c, 1), -EINVAL);
    CHECK_EQ(bh_sim_rm_read(rm, 99, t.client, memory, 0, &c, 1), -EBADF);
    bh_sim_rm_free(rm);
}

/* Against plain memory: whatever is written or filled, the same is read. */
TEST(contents_are_those_of_plain_memory)
{
    enum { UNIT = 65536, UNITS = 4, BYTES = UNITS * UNIT, STEPS = 600 };
    static uint8_t plain[BYTES], seen[BYTES], draws[STEPS * 12];
    struct bh_choice c = {draws, sizeof(draws)};
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant t;
    uint64_t bytes = BYTES;
    uint32_t memory = 0, wrong = 0, wholes = 0;
    bh_choice_fill(draws, sizeof(draws), 5);
    CHECK_EQ(fx_tenant(rm, &fx_user, 0, &t), RM_OK);
    CHECK_EQ(fx_memory(rm, &t, &bytes, &memory), RM_OK);
    for (int i = 0; i < STEPS; i++) {
        const uint32_t grain = bh_choose(&c, 2) ? UNIT : 1;
        const uint32_t at = bh_choose(&c, BYTES / grain) * grain;
        const uint32_t n = (bh_choose(&c, (BYTES - at) / grain) + 1) * grain;
        const uint8_t byte = (uint8_t)bh_choose(&c, 3);
        wholes += n == BYTES;
        memset(plain + at, byte, n);
        if (bh_choose(&c, 2))
            wrong += bh_sim_rm_write(rm, t.file, t.client, memory, at, plain + at, n) != 0;
        else
            wrong += bh_sim_rm_fill(rm, t.file, t.client, memory, at, byte, n) != 0;
        wrong += bh_sim_rm_read(rm, t.file, t.client, memory, 0, seen, sizeof(seen)) != 0;
        wrong += memcmp(plain, seen, sizeof(seen)) != 0 || bh_sim_rm_check(rm);
    }
    CHECK_EQ(wrong, 0);
    CHECK(wholes > 10);
    bh_sim_rm_close(rm, t.file);
    CHECK_EQ(bh_sim_rm_held(rm).chunks, 0);
    bh_sim_rm_free(rm);
}

static int next_owner_sees(const char *fault)
{
    struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
    struct fx_tenant a = {0}, b;
    uint64_t bytes = BH_MIB;
    uint32_t memory = 0, mine = 0;
    char secret[7] = "secret", seen[7] = {0};
    bool ok = !fault || bh_sim_rm_break(rm, fault, NULL) == BH_OK;
    ok = ok && fx_tenant(rm, &fx_user, 0, &a) == RM_OK && fx_memory(rm, &a, &bytes, &memory) == RM_OK;
    ok = ok && bh_sim_rm_write(rm, a.file, a.client, memory, 70000, secret, sizeof(secret)) == 0;
    bh_sim_rm_close(rm, a.file);
    ok = ok && fx_nothing_held(rm) && !bh_sim_rm_check(rm);
    ok = ok && fx_tenant(rm, &fx_other, 0, &b) == RM_OK && fx_memory(rm, &b, &bytes, &mine) == RM_OK;
    ok = ok && bh_sim_rm_read(rm, b.file, b.client, mine, 70000, seen, sizeof(seen)) == 0 &&
         !bh_sim_rm_check(rm);
    bh_sim_rm_free(rm);
    return !ok ? -1 : memcmp(secret, seen, sizeof(seen)) == 0;
}

TEST(freed_memory_is_scrubbed_unless_that_is_broken)
{
    CHECK_EQ(next_owner_sees(NULL), 0);
    CHECK_EQ(next_owner_sees("scrub off"), 1);
}

/* What one filled from end to end, but for one byte, as the next owner of a part of it reads it. */
TEST(so_is_memory_that_was_filled)
{
    for (int broken = 0; broken < 2; broken++) {
        struct bh_sim_rm *rm = fx_new("H100-80GB", 1);
        struct fx_tenant a, b;
        uint64_t bytes = BH_MIB, half = BH_MIB / 2;
        uint32_t memory = 0, mine = 0;
        char seen[3];
        CHECK(!broken || bh_sim_rm_break(rm, "scrub off", NULL) == BH_OK);
        CHECK_EQ(fx_tenant(rm, &fx_user, 0, &a), RM_OK);
        CHECK_EQ(fx_memory(rm, &a, &bytes, &memory), RM_OK);
        CHECK_EQ(bh_sim_rm_fill(rm, a.file, a.client, memory, 0, 'x', bytes), 0);
        CHECK_EQ(bh_sim_rm_fill(rm, a.file, a.client, memory, 70001, 'y', 1), 0);
        bh_sim_rm_close(rm, a.file);
        CHECK(fx_nothing_held(rm) && !bh_sim_rm_check(rm));
        CHECK_EQ(fx_tenant(rm, &fx_other, 0, &b), RM_OK);
        CHECK_EQ(fx_memory(rm, &b, &half, &mine), RM_OK);
        CHECK_EQ(bh_sim_rm_read(rm, b.file, b.client, mine, 70000, seen, sizeof(seen)), 0);
        CHECK(memcmp(seen, broken ? "xyx" : "\0\0\0", sizeof(seen)) == 0);
        CHECK(!bh_sim_rm_check(rm));
        bh_sim_rm_free(rm);
    }
}

TEST_MAIN
