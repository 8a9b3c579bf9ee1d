/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"
#include "base/test.h"
#include "cli/save.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8];

static const char *content(void)
{
    static char got[64];
    char *text = bh_scratch_get(folder, "p.yaml");
    (void)snprintf(got, sizeof(got), "%s", text ? text : "(none)");
    free(text);
    return got;
}

TEST(a_new_file_is_written_whole)
{
    CHECK(bh_scratch_make(folder, sizeof(folder), "save"));
    (void)snprintf(path, sizeof(path), "%s/p.yaml", folder);
    CHECK_EQ(bh_file_save(path, "one\n", 4, false, NULL), 0);
    CHECK_STR(content(), "one\n");
}

TEST(what_is_there_stays)
{
    CHECK_EQ(bh_file_save(path, "two\n", 4, false, NULL), BH_CONFLICT);
    CHECK_STR(content(), "one\n");
}

TEST(replace_replaces)
{
    CHECK_EQ(bh_file_save(path, "two\n", 4, true, NULL), 0);
    CHECK_STR(content(), "two\n");
    char beside[sizeof(path) + 8];
    struct stat st;
    (void)snprintf(beside, sizeof(beside), "%s.new", path);
    CHECK(stat(beside, &st) < 0);
}

TEST(a_dangling_link_is_not_followed)
{
    char link[sizeof(path)];
    (void)snprintf(link, sizeof(link), "%s/link", folder);
    CHECK_EQ(symlink("nowhere", link), 0);
    int rc = bh_file_save(link, "x", 1, false, NULL);
    unlink(link);
    CHECK_EQ(rc, BH_CONFLICT);
}

TEST(folders_and_lost_folders_are_refused)
{
    CHECK_EQ(bh_file_save(folder, "x", 1, false, NULL), BH_CONFLICT);
    CHECK_EQ(bh_file_save(folder, "x", 1, true, NULL), BH_CONFLICT);
    CHECK_EQ(bh_file_save("/nonexistent/p.yaml", "x", 1, false, NULL), BH_SYSTEM);
    CHECK_EQ(bh_file_save("/nonexistent/p.yaml", "x", 1, true, NULL), BH_SYSTEM);
}

TEST(the_folder_is_left_clean)
{
    unlink(path);
    CHECK_EQ(rmdir(folder), 0);
}

TEST_MAIN
