/* SPDX-License-Identifier: Apache-2.0 */
/* room_test.c - each bound holds at its edge, and is named. */
#include "node/room.h"

#include "base/test.h"

#include <string.h>

static struct bh_err err;

static bool refused(int rc, int code, const char *words)
{
    return rc == code && strstr(err.msg, words) != NULL;
}

TEST(the_bounds)
{
    const struct bh_room r = bh_room_of(BH_ROOM_WAITING);
    CHECK(r.waiting == 20000 && r.tenant_waiting == 15000 && r.user_waiting == 5000);
    /* Ten thousand of one tenant are nothing unusual. */
    struct bh_store_load now = {.user_waiting = 4999, .tenant_waiting = 10000, .waiting = 10000};
    CHECK_EQ(bh_room_check(&r, &now, 1000, false, &err), BH_OK);
    now.user_waiting = 5000;
    CHECK(refused(bh_room_check(&r, &now, 1000, false, &err), BH_QUOTA, "5000 jobs of yours"));
    CHECK_EQ(bh_room_check(&r, &now, 1000, true, &err), BH_OK);
    now = (struct bh_store_load){.tenant_waiting = 15000, .waiting = 15000};
    CHECK(refused(bh_room_check(&r, &now, 1000, true, &err), BH_QUOTA, "15000 jobs of this tenant"));
    now = (struct bh_store_load){.waiting = 20000};
    CHECK(refused(bh_room_check(&r, &now, 1000, true, &err), BH_QUOTA, "20000 jobs may wait on this node"));
    now.waiting--;
    CHECK_EQ(bh_room_check(&r, &now, 1000, true, &err), BH_OK);
}

TEST(the_bytes)
{
    const struct bh_room r = bh_room_of(BH_ROOM_WAITING);
    struct bh_store_load now = {0};
    CHECK_EQ(bh_room_check(&r, &now, 128 << 10, false, &err), BH_OK);
    CHECK(refused(bh_room_check(&r, &now, (128 << 10) + 1, true, &err), BH_TOO_LARGE, "128 KiB"));
    now.tenant_bytes = (128 << 20) - (128 << 10);
    CHECK_EQ(bh_room_check(&r, &now, 128 << 10, false, &err), BH_OK);
    now.tenant_bytes++;
    CHECK(refused(bh_room_check(&r, &now, 128 << 10, true, &err), BH_QUOTA, "no more than 128 MiB"));
}

TEST_MAIN
