/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/maps.h"

#include "base/test.h"
#include "warden/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t of(const char *text)
{
    const struct stat file = {.st_dev = makedev(0x05, 0x1a), .st_ino = 77};
    return bh_maps_text_bytes(text, strlen(text), &file, 1, "/nvidia-uvm");
}

TEST(counts_by_inode_or_by_name)
{
    CHECK_EQ(of("7f0000000000-7f0000200000 rw-s 00000000 05:1a 77     /dev/anything\n"), 0x200000);
    CHECK_EQ(of("7f0000000000-7f0000200000 rw-s 00000000 00:05 9      /dev/nvidia-uvm\n"), 0x200000);
    CHECK_EQ(of("7f0000000000-7f0000200000 rw-s 00000000 05:1a 78     /dev/nvidia-uvm-tools\n"), 0);
    CHECK_EQ(
        of("1000-2000 r--p 00000000 05:1a 77 \n5000-8000 rw-s 7f00 05:1a 77 /x (deleted)\n9000-a000 rw-p 0 00:00 0 \n"),
        0x4000);
}

TEST(what_is_no_line_counts_nothing)
{
    static const char *const bad[] = {
        "",
        "\n\n",
        "7f0000000000-7f0000200000 rw-s 00000000 05:1a 77     /dev/nvidia-uvm", /* not whole */
        "2000-1000 rw-s 00000000 05:1a 77 /dev/nvidia-uvm\n",
        "x-y rw-s 00000000 05:1a 77 /dev/nvidia-uvm\n",
        "1000-2000 rw-s\n",
        "1000-fffffffffffffffffff rw-s 00000000 05:1a 77 /dev/nvidia-uvm\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(of(bad[i]), 0);
}

TEST(sees_this_process)
{
    enum { PAGES = 5, LINES = 3000 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    FILE *f = tmpfile();
    CHECK(f && ftruncate(fileno(f), (off_t)(PAGES * page)) == 0 && fstat(fileno(f), &st) == 0);
    /* enough lines for several pieces */
    char *many = mmap(NULL, LINES * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(many != MAP_FAILED);
    for (size_t i = 0; i < LINES; i += 2)
        CHECK_EQ(mprotect(many + i * page, page, PROT_NONE), 0);
    CHECK_EQ(bh_maps_bytes((uint32_t)getpid(), &st, 1, "/nvidia-uvm"), 0);
    void *at = mmap(NULL, PAGES * page, PROT_READ, MAP_SHARED, fileno(f), 0);
    CHECK(at != MAP_FAILED);
    CHECK_EQ(bh_maps_bytes((uint32_t)getpid(), &st, 1, "/nvidia-uvm"), (int64_t)(PAGES * page));
    CHECK_EQ(munmap((char *)at + page, page), 0);
    CHECK_EQ(bh_maps_bytes((uint32_t)getpid(), &st, 1, "/nvidia-uvm"), (int64_t)((PAGES - 1) * page));
    CHECK_EQ(bh_maps_read_bytes((uint32_t)getpid(), &st, 1, "/nvidia-uvm"), (int64_t)((PAGES - 1) * page));
    /* by its name alone; it has none any more */
    CHECK_EQ(bh_maps_bytes((uint32_t)getpid(), NULL, 0, " (deleted)"), (int64_t)((PAGES - 1) * page));
    CHECK_EQ(bh_maps_bytes(UINT32_MAX, &st, 1, "/nvidia-uvm"), -ENOENT);
    CHECK_EQ(munmap(many, LINES * page), 0);
    (void)fclose(f);
}

static void *stays(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

/* A thread that has begun to end has let go of its memory, as far as it can be asked: 0 is no answer. */
TEST(sees_a_process_without_its_first_thread)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int file = memfd_create("maps", MFD_CLOEXEC);
    struct stat st;
    pthread_t thread;
    siginfo_t ended;
    CHECK(ftruncate(file, (off_t)page) == 0 && fstat(file, &st) == 0);
    void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, file, 0); /* the child has it, too */
    CHECK(at != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
        if (pthread_create(&thread, NULL, stays, NULL) != 0)
            _exit(1);
        (void)syscall(SYS_exit, 0); /* the first thread alone */
    }
    const uint32_t pid = (uint32_t)child;
    for (int i = 0; i < 5000 && bh_thread_living(pid) == pid; i++)
        (void)usleep(1000);
    const int64_t asked = bh_maps_bytes(pid, &st, 1, "/nvidia-uvm"),
                  read = bh_maps_read_bytes(pid, &st, 1, "/nvidia-uvm");
    CHECK(kill(child, SIGKILL) == 0 && waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) == 0);
    CHECK_EQ(bh_maps_bytes(pid, &st, 1, "/nvidia-uvm"), -ESRCH);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(asked, (int64_t)page);
    CHECK_EQ(read, (int64_t)page);
    CHECK_EQ(munmap(at, page), 0);
    close(file);
}

TEST(tells_which_file_is_mapped_at_an_address)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint32_t self = (uint32_t)getpid();
    struct stat st;
    FILE *f = tmpfile();
    CHECK(f && ftruncate(fileno(f), (off_t)(3 * page)) == 0 && fstat(fileno(f), &st) == 0);
    char *at = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    void *none = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && none != MAP_FAILED && munmap(at + page, page) == 0);
    for (int old = 0; old < 2; old++) {
        int (*file_at)(uint32_t, uint64_t, struct bh_maps_file *) =
            old ? bh_maps_read_file_at : bh_maps_file_at;
        struct bh_maps_file found;
        CHECK_EQ(file_at(self, (uintptr_t)at + 2 * page + 5, &found), 0);
        CHECK_EQ(found.inode, st.st_ino);
        CHECK(found.on_major == major(st.st_dev) && found.on_minor == minor(st.st_dev));
        CHECK_EQ(file_at(self, (uintptr_t)none, &found), 0);
        CHECK_EQ(found.inode, 0);
        CHECK_EQ(file_at(self, (uintptr_t)at + page, &found), -ENOENT);
        CHECK_EQ(file_at(UINT32_MAX, (uintptr_t)at, &found), -ENOENT);
    }
    CHECK(munmap(at, page) == 0 && munmap(at + 2 * page, page) == 0 && munmap(none, page) == 0);
    (void)fclose(f);
}

TEST_MAIN
