/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/start.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

/* As launchers of version 4 send it, byte by byte: this must not change with the structure. */
static const unsigned char version_4[] = {
    4,    0,    0, 0,                /* version */
    0x39, 0x30, 0, 0,                /* root_pid 12345 */
    0,    0,    0, 0x80, 2, 0, 0, 0, /* cap_bytes 10 GiB */
    7,    0,    0, 0,                /* tick_ms */
    1,    0,    0, 0,                /* view: slice */
    1,    0,    0, 0,                /* adopted */
    1,    0,    0, 0,                /* flags: it ends with its launcher */
    0xe8, 3,    0, 0,                /* uid 1000 */
    0,    0,    0, 0,                /* zero */
    100,  0,    0, 0,                /* weight */
    100,  0,    0, 0,                /* cap_permille */
    50,   0,    0, 0,                /* floor_permille */
    1,    0,    0, 0,                /* latency */
    'i',  't',                       /* name, and zeros up to its 64 */
};
enum { BYTES_4 = 120, ADOPTED = 24, FLAGS = 28 };

static struct bh_lease_start read_4(unsigned char adopted, unsigned char flags)
{
    unsigned char bytes[sizeof(struct bh_lease_start)] = {0};
    struct bh_lease_start ret;
    memcpy(bytes, version_4, sizeof(version_4));
    bytes[ADOPTED] = adopted;
    bytes[FLAGS] = flags;
    memcpy(&ret, bytes, sizeof(ret));
    return ret;
}

TEST(a_lease_from_before_an_upgrade_goes_on)
{
    struct bh_err err;
    struct bh_lease_start s = read_4(1, 1);
    CHECK_EQ(sizeof(s), BYTES_4); /* a launcher sends as many, and the warden reads no other number */
    CHECK_EQ(bh_start_take(&s, &err), BH_OK);
    CHECK(s.version == BH_LEASE_VERSION && s.root_pid == 12345 && s.cap_bytes == UINT64_C(10) << 30);
    CHECK(s.tick_ms == 7 && s.view == BH_VIEW_SLICE && s.adopted == 1 && s.uid == 1000);
    CHECK(s.share.weight == 100 && s.share.cap_permille == 100 && s.share.floor_permille == 50);
    CHECK(s.share.latency == 1 && strcmp(s.share.name, "it") == 0);
    /* what it was allowed when it began it still is, and nothing more comes along */
    CHECK_EQ(s.flags, BH_LEASE_ENDS_WITH_LAUNCHER | BH_LEASE_RDMA);
    s = read_4(1, 0xff);
    CHECK_EQ(bh_start_take(&s, &err), BH_OK);
    CHECK(!(s.flags & BH_LEASE_HAS_PROBE));
    /* one that begins is asked as today */
    s = read_4(0, 1);
    CHECK_EQ(bh_start_take(&s, &err), BH_OK);
    CHECK_EQ(s.flags, BH_LEASE_ENDS_WITH_LAUNCHER);
}

TEST(todays_are_as_they_are)
{
    static const uint32_t all = BH_LEASE_ENDS_WITH_LAUNCHER | BH_LEASE_HAS_PROBE;
    struct bh_err err;
    struct bh_lease_start s = {.version = BH_LEASE_VERSION, .adopted = 1, .flags = all};
    CHECK_EQ(bh_start_take(&s, &err), BH_OK);
    CHECK(s.flags == all && s.version == BH_LEASE_VERSION);
}

TEST(versions_that_are_not_spoken)
{
    static const uint32_t versions[] = {0, 3, BH_LEASE_VERSION + 1, UINT32_MAX};
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(versions); i++) {
        struct bh_lease_start s = {.version = versions[i]};
        CHECK_EQ(bh_start_take(&s, &err), BH_CONFLICT);
    }
}

TEST_MAIN
