/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/governor.h"

#include "launch/governor_fixture.h"

#include <sys/stat.h>

TEST(run_folders_of_others)
{
    int fd = -1;
    begin_folder();
    CHECK_EQ(chmod(folder, 0777), 0);
    CHECK_EQ(bh_governor_reach(&fd, &err), BH_DENIED);
    CHECK_EQ(chmod(folder, 0755), 0);
    (void)setenv("BULKHEAD_RUN_DIR", "here", 1);
    CHECK_EQ(bh_governor_reach(&fd, &err), BH_USAGE);
    CHECK(fd == -1 && access("here", F_OK) < 0);
    end();
}

/* Whether its program is beside this one or not: without a driver it does not serve. */
TEST(one_that_does_not_start_leaves_nothing)
{
    int fd = -1;
    begin_folder();
    (void)setenv("BULKHEAD_SYSROOT", folder, 1);
    CHECK_EQ(bh_governor_reach(&fd, &err), BH_NOT_FOUND);
    CHECK_EQ(fd, -1);
    CHECK(err.msg[0] != '\0' && access(path, F_OK) < 0);
    /* looked for by a child, it is the same */
    struct bh_child seeker;
    uint32_t version = 0;
    CHECK_EQ(bh_governor_seek(&seeker, &err), BH_OK);
    CHECK_EQ(bh_governor_found(&seeker, &fd, &version, &err), BH_NOT_FOUND);
    CHECK(fd == -1 && seeker.pid == 0 && err.msg[0] != '\0');
    (void)unsetenv("BULKHEAD_SYSROOT");
    end();
}

TEST_MAIN
