/* SPDX-License-Identifier: Apache-2.0 */
/* output_test.c - what was written is there, the last half of it always, and no more than there is room for. */
#include "keeper/output.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"
#include "wire/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder_path[PATH_MAX];

static int folder(void)
{
    return bh_scratch_make(folder_path, sizeof(folder_path), "output")
               ? open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
               : -1;
}

static void remove_folder(int fd)
{
    (void)unlinkat(fd, "out", 0);
    (void)unlinkat(fd, "out", AT_REMOVEDIR);
    close(fd);
    (void)rmdir(folder_path);
}

static size_t text_of(int dir, const char *name, char *ret, size_t size)
{
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : 0;
    ret[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

TEST(short_output_is_whole)
{
    struct bh_output o;
    struct bh_err err;
    char text[100];
    int to = -1;
    const int dir = folder();
    CHECK_EQ(bh_output_open(&o, dir, "out", 1 << 20, &to, &err), BH_OK);
    CHECK(!bh_output_take(&o)); /* nothing yet */
    CHECK(o.from >= 0);
    CHECK_EQ(write(to, "hello\n", 6), 6);
    CHECK(bh_output_take(&o));
    CHECK(!bh_output_take(&o));
    close(to);
    CHECK(!bh_output_take(&o));
    CHECK_EQ(o.from, -1);
    CHECK_EQ(text_of(dir, "out", text, sizeof(text)), 6);
    CHECK_STR(text, "hello\n");
    CHECK_EQ(o.lost, 0);
    bh_output_close(&o);
    remove_folder(dir);
}

TEST(long_output_keeps_its_end)
{
    enum { ROOM = 100, LINES = 1000 };
    struct bh_output o;
    struct bh_err err;
    char text[ROOM + 1], line[16], before[BH_STREAM_NAME_MAX];
    int to = -1;
    const int dir = folder();
    uint64_t sum = 0, dropped = 0;
    struct bh_stream_got got = {0};
    struct bh_buf all;
    bh_buf_init(&all, 1000);
    CHECK_EQ(bh_output_open(&o, dir, "out", ROOM, &to, &err), BH_OK);
    for (int i = 0; i < LINES; i++) {
        const int n = snprintf(line, sizeof(line), "%d\n", i);
        CHECK_EQ(write(to, line, (size_t)n), n);
        while (bh_output_take(&o)) {
        }
        CHECK(text_of(dir, "out", text, sizeof(text)) <= ROOM / 2);
        sum += (uint64_t)n;
    }
    close(to);
    /* Whoever reads from the beginning is told how much is no longer there. */
    while (!got.end) {
        CHECK_EQ(bh_stream_read(folder_path, "out", got.next, ROOM, &all, &got, &err), BH_OK);
        dropped += got.dropped;
    }
    CHECK(all.n >= ROOM / 2 && all.n <= ROOM);
    CHECK(dropped > 0 && dropped + all.n == sum && got.next == sum);
    CHECK_STR(bh_buf_text(&all) + all.n - 8, "998\n999\n");
    bh_buf_fini(&all);
    bh_output_close(&o);
    bh_stream_before("out", o.turn, before);
    CHECK_EQ(unlinkat(dir, before, 0), 0);
    remove_folder(dir); /* nothing else is in it */
    CHECK(access(folder_path, F_OK) < 0);
}

TEST(what_cannot_be_written_is_counted)
{
    struct bh_output o;
    struct bh_err err;
    int to = -1;
    const int dir = folder();
    CHECK_EQ(bh_output_open(&o, dir, "out", 10, &to, &err), BH_OK);
    /* A folder in the place of the next file. */
    CHECK_EQ(unlinkat(dir, "out", 0), 0);
    CHECK_EQ(mkdirat(dir, "out", 0700), 0);
    CHECK_EQ(mkdirat(dir, "out.to-5", 0700), 0);
    CHECK_EQ(mkdirat(dir, "out.to-5/x", 0700), 0);
    CHECK_EQ(write(to, "12345678", 8), 8);
    while (bh_output_take(&o)) {
    }
    CHECK_EQ(o.lost, 8);
    close(to);
    bh_output_close(&o);
    (void)unlinkat(dir, "out.to-5/x", AT_REMOVEDIR);
    (void)unlinkat(dir, "out.to-5", AT_REMOVEDIR);
    remove_folder(dir);
}

TEST_MAIN
