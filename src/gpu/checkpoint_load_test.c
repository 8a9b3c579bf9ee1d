/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_load_test.c - libraries that are not there, are too old, or are of another kind than the node. */
#include "gpu/checkpoint.h"

#include "base/test.h"

static int ask(const char *library, struct bh_err *err)
{
    enum cuda_process_state now;
    *err = (struct bh_err){0};
    return setenv("BULKHEAD_CUDA", library, 1) == 0 ? bh_checkpoint_state(1, &now, err) : BH_SYSTEM;
}

TEST(no_library)
{
    const uint32_t pid = 1;
    struct bh_err err;
    CHECK_EQ(ask("/nonexistent/libcuda.so.1", &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "/nonexistent/libcuda.so.1"));
    CHECK(strstr(err.msg, "BULKHEAD_CUDA"));
    CHECK_EQ(bh_checkpoint_suspend(&pid, 1, NULL, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_checkpoint_restore(&pid, 1, NULL, &err), BH_NOT_FOUND);
}

/* Any library without the calls stands for a driver from before them. */
TEST(an_old_library)
{
    struct bh_err err;
    CHECK_EQ(ask("libc.so.6", &err), BH_REFUSED);
    CHECK(strstr(err.msg, "cuCheckpointProcessGetState"));
    CHECK(strstr(err.msg, "R570"));
    CHECK(strstr(err.msg, "simulated") == NULL);
    CHECK_EQ(setenv("BULKHEAD_SIM", "nowhere", 1), 0);
    CHECK_EQ(ask("libc.so.6", &err), BH_REFUSED);
    CHECK(strstr(err.msg, "simulated: ") == err.msg);
    CHECK_EQ(unsetenv("BULKHEAD_SIM"), 0);
}

TEST_MAIN
