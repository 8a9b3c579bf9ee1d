/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/line_file.h"

#include "base/scratch.h"
#include "base/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LINE = 100, MOST = 1 << 20 };

static char folder[BH_SCRATCH_PATH], path[BH_SCRATCH_PATH + 8], line[LINE];

static bool begin(void)
{
    memset(line, 'x', LINE - 1);
    const bool made = bh_scratch_make(folder, sizeof(folder), "lines");
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    return made;
}

static int64_t bytes(void)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* As on a disk that is full after so many bytes. */
static void limit(rlim_t to)
{
    struct rlimit now;
    (void)getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = to;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &now);
}

TEST(what_was_added_is_there_whole)
{
    struct bh_line_file f;
    CHECK(begin());
    bh_line_file_open(&f, path, MOST);
    CHECK(f.open);
    for (int i = 0; i < 99; i++)
        bh_line_file_add(&f, line);
    bh_line_file_close(&f);
    CHECK(!f.open);
    CHECK_EQ(bytes(), 99 * LINE);
    CHECK(bh_scratch_remove(folder));
}

TEST(a_full_disk_ends_it_with_a_whole_line)
{
    struct bh_line_file f;
    CHECK(begin());
    limit(54321);
    bh_line_file_open(&f, path, MOST);
    for (int i = 0; i < 2000; i++)
        bh_line_file_add(&f, line);
    const bool was_open = f.open;
    bh_line_file_close(&f);
    limit(RLIM_INFINITY);
    CHECK(!was_open);
    CHECK_EQ(bytes(), 54300);
    CHECK(bh_scratch_remove(folder));
}

TEST(it_has_a_bound)
{
    struct bh_line_file f;
    CHECK(begin());
    bh_line_file_open(&f, path, 20000);
    for (int i = 0; i < 2000; i++)
        bh_line_file_add(&f, line);
    CHECK(!f.open);
    CHECK(bytes() > 20000 && bytes() < 30000);
    CHECK(bh_scratch_remove(folder));
}

TEST(nobodys_file_is_written_over_and_nobody_else_writes_to_it)
{
    struct bh_line_file f, again;
    struct stat st;
    CHECK(begin());
    const mode_t was = umask(0);
    bh_line_file_open(&f, path, MOST);
    umask(was);
    bh_line_file_open(&again, path, MOST);
    const bool second = again.open;
    bh_line_file_add(&again, line); /* as if it were open */
    bh_line_file_close(&again);
    bh_line_file_close(&f);
    CHECK(!second);
    CHECK_EQ(bytes(), 0);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(bh_scratch_remove(folder));
}

TEST_MAIN
