/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - soft limits go up to the hard ones, in children of this process: a hard one does not come back. */
#include "host/limits.h"

#include "base/mem.h"
#include "base/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    __rlimit_resource_t which;
    rlim_t soft, hard;
} cases[] = {
    {RLIMIT_NOFILE, 40, 100},
    {RLIMIT_FSIZE, 1 << 20, 2 << 20},
    {RLIMIT_AS, (rlim_t)1 << 46, (rlim_t)1 << 47}, /* sanitizers take much of it */
    {RLIMIT_CPU, 1000, 2000},
};

static int raised(size_t i)
{
    const struct rlimit low = {cases[i].soft, cases[i].hard};
    struct rlimit now;
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        if (setrlimit(cases[i].which, &low) < 0)
            _exit(1);
        bh_limits_raise();
        _exit(getrlimit(cases[i].which, &now) == 0 && now.rlim_cur >= cases[i].hard &&
                      now.rlim_max >= cases[i].hard
                  ? 0
                  : 2);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(soft_limits_go_up)
{
    for (size_t i = 0; i < BH_COUNT_OF(cases); i++)
        CHECK_EQ(raised(i), 0);
}

/* What is higher already is not lowered. */
TEST(twice_is_as_once)
{
    struct rlimit once, twice;
    bh_limits_raise();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &once), 0);
    bh_limits_raise();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &twice), 0);
    CHECK(once.rlim_cur == twice.rlim_cur && once.rlim_max == twice.rlim_max);
}

/* Whoever is started by one who raised its own gets what that one had. */
TEST(files_go_up_and_a_childs_come_down)
{
    struct rlimit low, now = {0};
    bh_limits_lower_files(); /* nothing was raised: nothing happens */
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &low), 0);
    low.rlim_cur = 77;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    bh_limits_raise_files();
    bh_limits_raise_files();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    CHECK(now.rlim_cur == low.rlim_max && now.rlim_max == low.rlim_max);
    bh_limits_lower_files();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    CHECK(now.rlim_cur == 77 && now.rlim_max == low.rlim_max);
}

TEST_MAIN
