/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/driver_rm.h"

#include "base/test.h"

#include <errno.h>

TEST(only_branches_that_were_recorded_are_known)
{
    static const char *const unknown[] = {"575.57.08", "590.10", "5800.1", "58", "", "garbage", ".580"};
    struct bh_err err;
    CHECK_EQ(bh_driver_rm_known("580.159.04", &err), BH_OK);
    CHECK_EQ(bh_driver_rm_known("580", &err), BH_OK);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        CHECK_EQ(bh_driver_rm_known(unknown[i], &err), BH_REFUSED);
    CHECK(strstr(err.msg, ".580"));
    CHECK(strstr(err.msg, "whole GPUs and MIG instances work without it"));
}

static int no_file(const char *path)
{
    (void)path;
    errno = ENOENT;
    return -1;
}

static int no_call(int fd, uint32_t cmd, void *arg)
{
    (void)fd;
    (void)cmd;
    (void)arg;
    errno = EIO;
    return -1;
}

TEST(a_driver_that_does_not_answer_is_named)
{
    struct bh_err err;
    void *self;
    size_t n;
    CHECK_EQ(bh_driver_rm_open(&(struct bh_driver_files){.open = no_file, .ioctl = no_call}, &self, &n, &err),
             BH_SYSTEM);
    CHECK_STR(err.msg,
              "the driver's count of memory cannot be read: /dev/nvidiactl: No such file or directory");
}

TEST_MAIN
