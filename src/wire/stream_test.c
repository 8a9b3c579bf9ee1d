/* SPDX-License-Identifier: Apache-2.0 */
/* stream_test.c - offsets hold whatever was dropped, and what was dropped is told. */
#include "wire/stream.h"

#include "base/scratch.h"
#include "base/test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX];

static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 100];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    CHECK(bh_scratch_put(folder, name, text));
}

static void drop(const char *name)
{
    CHECK_EQ(unlink(path_of(name)), 0);
}

/* `text dropped next end` */
static const char *got(uint64_t offset, size_t most)
{
    static char line[200];
    struct bh_stream_got g;
    struct bh_err err = {0};
    struct bh_buf b;
    bh_buf_init(&b, 1000);
    const int rc = bh_stream_read(folder, "out", offset, most, &b, &g, &err);
    (void)snprintf(line, sizeof(line), rc < 0 ? "! %s%llu%llu%d" : "'%s' %llu %llu %d",
                   rc < 0 ? err.msg : bh_buf_text(&b), (unsigned long long)g.dropped,
                   (unsigned long long)g.next, g.end);
    bh_buf_fini(&b);
    return line;
}

TEST(one_part)
{
    CHECK(bh_scratch_make(folder, sizeof(folder), "stream"));
    CHECK_STR(got(0, 10), "'' 0 0 1");
    put("out", "hello");
    CHECK_STR(got(0, 10), "'hello' 0 5 1");
    CHECK_STR(got(1, 2), "'el' 0 3 0");
    CHECK_STR(got(99, 2), "'' 0 99 1");
    put("out.1", "none of ours");
    put("out.to-x", "none of ours");
    put("err.to-40", "of another");
    CHECK_STR(got(0, 10), "'hello' 0 5 1");
    for (const char *const *n = (const char *const[]){"out", "out.1", "out.to-x", "err.to-40", NULL}; *n; n++)
        drop(*n);
    CHECK_EQ(rmdir(folder), 0);
    CHECK_STR(got(0, 10), "'' 0 0 1");
}

TEST(two_parts_and_what_was_before)
{
    struct bh_stream_mark mark = {0};
    CHECK(bh_scratch_make(folder, sizeof(folder), "stream"));
    /* 100 bytes were written before `out` began; the last 10 of these are there. */
    put("out.to-100", "0123456789");
    put("out.to-50", "older, and about to be removed");
    put("out", "abc");
    CHECK_STR(got(90, 100), "'0123456789' 0 100 0");
    CHECK_STR(got(95, 2), "'56' 0 97 0");
    CHECK_STR(got(100, 100), "'abc' 0 103 1");
    CHECK_STR(got(0, 100), "'0123456789' 90 100 0");
    CHECK(bh_stream_has_moved(folder, "out", &mark));
    /* Between two files: what was is all there is. */
    drop("out");
    CHECK_STR(got(100, 100), "'' 0 100 1");
    CHECK_STR(got(98, 100), "'89' 0 100 1");
    /* The older part is gone as a whole. */
    drop("out.to-100");
    put("out.to-100", "");
    put("out", "abc");
    CHECK_STR(got(7, 100), "'abc' 93 103 1");
    drop("out");
    drop("out.to-100");
    drop("out.to-50");
    CHECK_EQ(rmdir(folder), 0);
}

TEST(what_is_no_file)
{
    CHECK(bh_scratch_make(folder, sizeof(folder), "stream"));
    CHECK_EQ(mkdir(path_of("out"), 0700), 0);
    CHECK_STR(got(0, 10), "! the log cannot be read001");
    CHECK_EQ(rmdir(path_of("out")), 0);
    CHECK_EQ(symlink("/etc/hostname", path_of("out")), 0);
    CHECK(got(0, 10)[0] == '!');
    drop("out");
    CHECK_EQ(rmdir(folder), 0);
}

TEST_MAIN
