/* SPDX-License-Identifier: Apache-2.0 */
#include "host/bundle_files.h"

#include "base/scratch.h"
#include "base/test.h"

TEST(a_file_is_replaced_whole)
{
    char at[BH_SCRATCH_PATH];
    struct bh_err err = {0};
    struct stat st;
    int fd = -1;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    CHECK_EQ(bh_folder_open(at, 0, &fd, &err), BH_OK);
    CHECK_EQ(bh_file_put(fd, "a", "first", 5, 0644, &err), BH_OK);
    /* what a crash left beside it is in nobody's way */
    CHECK(bh_scratch_put(at, ".a.new", "half"));
    CHECK_EQ(bh_file_put(fd, "a", "second", 6, 0600, &err), BH_OK);
    char *text = bh_scratch_get(at, "a");
    CHECK_STR(text, "second");
    free(text);
    CHECK(fstatat(fd, "a", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(fstatat(fd, ".a.new", &st, 0) < 0);
    close(fd);
    bh_scratch_remove(at);
}

TEST(names_are_names)
{
    char at[BH_SCRATCH_PATH], long_name[300];
    struct bh_err err = {0};
    int fd = -1;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    CHECK_EQ(bh_folder_open(at, 0, &fd, &err), BH_OK);
    CHECK_EQ(bh_file_put(fd, "../a", "x", 1, 0644, &err), BH_INVALID);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CHECK_EQ(bh_file_put(fd, long_name, "x", 1, 0644, &err), BH_INVALID);
    close(fd);
    bh_scratch_remove(at);
}

TEST(folders)
{
    char at[BH_SCRATCH_PATH], below[BH_SCRATCH_PATH + 16], deep[BH_SCRATCH_PATH + 32];
    struct bh_err err = {0};
    struct stat st;
    int fd = -1;
    CHECK(bh_scratch_make(at, sizeof(at), "bundle"));
    (void)snprintf(below, sizeof(below), "%s/b", at);
    (void)snprintf(deep, sizeof(deep), "%s/none/c", at);
    CHECK_EQ(bh_folder_open(below, 0, &fd, &err), BH_NOT_FOUND);
    (void)umask(077);
    CHECK_EQ(bh_folder_open(below, 0711, &fd, &err), BH_OK);
    CHECK(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0711); /* whatever the umask says */
    close(fd);
    CHECK_EQ(bh_folder_open(below, 0755, &fd, &err), BH_OK);
    CHECK(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0711); /* one that is there stays as it is */
    close(fd);
    CHECK_EQ(bh_folder_open(deep, 0755, &fd, &err), BH_NOT_FOUND);
    /* a link in its place is none */
    (void)snprintf(deep, sizeof(deep), "%s/link", at);
    CHECK(symlink(below, deep) == 0);
    CHECK(bh_folder_open(deep, 0755, &fd, &err) < 0);
    bh_scratch_remove(at);
}

TEST_MAIN
