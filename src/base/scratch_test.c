/* SPDX-License-Identifier: Apache-2.0 */
/* scratch_test.c - a folder is there, is told from others, and goes with the process that made it. */
#include "base/scratch.h"

#include "base/test.h"

#include <sys/wait.h>

static char folder[BH_SCRATCH_PATH];

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(made_filled_and_removed)
{
    char path[BH_SCRATCH_PATH * 2];
    struct stat st;
    CHECK(bh_scratch_make(folder, sizeof(folder), "scratch"));
    CHECK(strstr(folder, "/bh-scratch-") && stat(folder, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0700);
    CHECK(bh_scratch_put(folder, "a/b/c", "one") && bh_scratch_put(folder, "/a/d", "two"));
    CHECK(bh_scratch_put_bytes(folder, "e", "x\0y", 3));
    CHECK(bh_scratch_path(path, sizeof(path), folder, "e") && stat(path, &st) == 0 && st.st_size == 3);
    char *text = bh_scratch_get(folder, "a/d");
    CHECK_STR(text, "two");
    free(text);
    CHECK(!bh_scratch_get(folder, "f") && !bh_scratch_put(folder, "e/f", ""));
    CHECK(bh_scratch_path(path, sizeof(path), folder, "out") && symlink("..", path) == 0);
    CHECK(bh_scratch_remove(folder) && !is_there(folder));
}

TEST(a_path_is_never_cut)
{
    char path[BH_SCRATCH_PATH];
    CHECK(bh_scratch_make(folder, sizeof(folder), "scratch"));
    const size_t whole = strlen(folder) + 1;
    for (size_t n = 1; n < whole; n++)
        CHECK(!bh_scratch_make(path, n, "scratch") && !bh_scratch_path(path, n, folder, ""));
    CHECK(bh_scratch_make(path, whole, "scratch") && bh_scratch_remove(path));
    CHECK(bh_scratch_path(path, whole + 1, folder, "") && bh_scratch_remove(folder));
}

TEST(it_stands_for_the_machine)
{
    CHECK(bh_scratch_root(folder, sizeof(folder), "scratch"));
    CHECK_STR(getenv("BULKHEAD_SYSROOT"), folder);
    CHECK(unsetenv("BULKHEAD_SYSROOT") == 0 && bh_scratch_remove(folder));
}

/* The child forgets to remove its own; its parent's is none of its business. */
TEST(each_process_takes_its_own_along)
{
    int ends[2], status;
    CHECK(bh_scratch_make(folder, sizeof(folder), "scratch") && pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char mine[BH_SCRATCH_PATH] = "";
        const bool made = bh_scratch_make(mine, sizeof(mine), "scratch") && bh_scratch_put(mine, "a/b", "c");
        exit(made && write(ends[1], mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
    }
    char of_child[BH_SCRATCH_PATH] = "";
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_EQ(read(ends[0], of_child, sizeof(of_child)), sizeof(of_child));
    CHECK(strstr(of_child, "/bh-scratch-") && !is_there(of_child) && is_there(folder));
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK(bh_scratch_remove(folder) && !is_there(folder));
}

TEST_MAIN
