/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/waits.h"

#include "base/mem.h"
#include "base/scratch.h"
#include "base/test.h"
#include "warden/child_fixture.h"
#include "warden/served_page_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>

TEST(what_the_kernels_functions_mean)
{
    CHECK_EQ(bh_waits_told('R', "0"), BH_WAITS_NOT);
    CHECK_EQ(bh_waits_told('R', "handle_userfault"), BH_WAITS_NOT);
    CHECK_EQ(bh_waits_told('S', "__skb_wait_for_more_packets"), BH_WAITS_NOT);
    CHECK_EQ(bh_waits_told('D', "handle_userfault"), BH_WAITS_TENANT);
    CHECK_EQ(bh_waits_told('D', "handle_userfault.isra.0"), BH_WAITS_TENANT);
    CHECK_EQ(bh_waits_told('S', "request_wait_answer"), BH_WAITS_TENANT);
    CHECK_EQ(bh_waits_told('D', "folio_wait_bit_common"), BH_WAITS_PAGE);
    CHECK_EQ(bh_waits_told('D', "wait_on_page_bit_common"), BH_WAITS_PAGE); /* 5.15 */
    CHECK_EQ(bh_waits_told('D', "process_vm_rw_core.constprop.0"), BH_WAITS_OTHERWISE);
    CHECK_EQ(bh_waits_told('D', "lock_next_vma"), BH_WAITS_OTHERWISE);
    CHECK_EQ(bh_waits_told('D', "0"), BH_WAITS_OTHERWISE); /* a kernel that does not tell */
    CHECK_EQ(bh_waits_told('?', ""), BH_WAITS_OTHERWISE);
}

TEST(kinds_of_file_systems_are_read_from_a_list_of_mounts)
{
    static const char text[] = "21 1 8:2 / / rw,relatime shared:1 master:2 - ext4 /dev/sda2 rw\n"
                               "22 21 0:5 / /a rw - 9p share rw\n"
                               "23 21 0:6 / /b rw - virtiofs share rw\n"
                               "24 21 0:7 / /c rw - fuse.sshfs host: rw\n"
                               "25 21 0:8 / /d rw shared:3 - fuseblk /dev/sdb rw\n"
                               "26 21 8:5 / /e rw - xfs /dev/sdc rw\n"
                               "27 21 0:9 / /f rw - nfs4 host:/f rw\n"
                               "28 21 0:10 / /g rw no end\n"
                               "29 21 nonsense\n";
    static const struct {
        uint32_t on_major, on_minor;
        bool found;
        enum bh_waits_page page;
    } files[] = {{8, 2, true, BH_PAGE_INNOCENT},
                 {0, 5, true, BH_PAGE_SERVED},
                 {0, 6, true, BH_PAGE_SERVED},
                 {0, 7, true, BH_PAGE_SERVED},
                 {0, 8, true, BH_PAGE_SERVED},
                 {8, 5, true, BH_PAGE_INNOCENT},
                 {0, 9, true, BH_PAGE_INNOCENT},
                 {0, 10, false, 0},
                 {0, 2, false, 0},
                 {8, 9, false, 0}};
    char place[BH_SCRATCH_SOCKET_PATH], path[BH_SCRATCH_SOCKET_PATH + 16];
    CHECK(bh_scratch_make(place, sizeof(place), "waits") && bh_scratch_put(place, "mountinfo", text));
    (void)snprintf(path, sizeof(path), "%s/mountinfo", place);
    for (size_t i = 0; i < BH_COUNT_OF(files); i++) {
        const struct bh_maps_file f = {
            .on_major = files[i].on_major, .on_minor = files[i].on_minor, .inode = 1};
        enum bh_waits_page page = BH_PAGE_UNKNOWN;
        CHECK_EQ(bh_waits_mounted(path, &f, &page), files[i].found);
        CHECK(!files[i].found || page == files[i].page);
    }
    const struct bh_maps_file any = {.on_major = 8, .on_minor = 2};
    CHECK(!bh_waits_mounted("/nowhere/mountinfo", &any, &(enum bh_waits_page){0}));
    CHECK(bh_scratch_remove(place));
}

/* ---- in the kernel ---- */

static struct {
    pid_t pid;
    uintptr_t page;
    _Atomic pid_t tid;
} asked;

static void *reads(void *arg)
{
    char to[8];
    const struct iovec local = {to, sizeof(to)}, remote = {(void *)asked.page, sizeof(to)};
    (void)arg;
    atomic_store(&asked.tid, (pid_t)syscall(SYS_gettid));
    (void)!process_vm_readv(asked.pid, &local, 1, &remote, 1, 0);
    return NULL;
}

static char folder[BH_SCRATCH_SOCKET_PATH];

enum way { BY_CALL, BY_CALL_SHARED, BY_FILE, BY_FILE_AHEAD };

static void *there_is(void *page)
{
    if (!page)
        fprintf(stderr, "# no such page here: %s\n", strerror(errno));
    return page;
}

static void *make(const void *arg)
{
    const enum way way = *(const enum way *)arg;
    if (way == BY_FILE || way == BY_FILE_AHEAD)
        return there_is(served_by_file(folder, way == BY_FILE_AHEAD));
    const int memory = way == BY_CALL_SHARED ? memfd_create("shared", MFD_CLOEXEC) : -1;
    return there_is(memory >= 0 && ftruncate(memory, SERVED_PAGE) < 0 ? NULL
                                                                      : served_by_fault(false, memory));
}

/* What a thread that reads such a page is said to wait for; nothing where no such page can be made here. */
static void seen(enum way way, enum bh_waits wanted, enum bh_waits_page wanted_page)
{
    enum bh_waits waits = BH_WAITS_NOT;
    enum bh_waits_page page = BH_PAGE_UNKNOWN;
    pthread_t thread;
    struct child c;
    CHECK(child_start(make, &way, &c));
    asked.pid = c.pid;
    asked.page = (uintptr_t)c.made;
    atomic_store(&asked.tid, 0);
    if (c.made) {
        CHECK_EQ(pthread_create(&thread, NULL, reads, NULL), 0);
        for (int i = 0; i < 5000; i++) {
            waits = atomic_load(&asked.tid) ? bh_waits_for(asked.tid) : BH_WAITS_NOT;
            if (waits == wanted)
                break;
            (void)usleep(1000);
        }
        page = bh_waits_page(asked.tid, (uint32_t)asked.pid);
    }
    /* First it goes, whatever was seen: who reads it waits for that. */
    const bool ended = child_end(&c);
    if (c.made) {
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(waits, wanted);
        CHECK_EQ(page, wanted_page);
    }
    CHECK(ended);
}

TEST(pages_that_a_process_fills_in_are_told_from_others)
{
    static const struct {
        enum way way;
        enum bh_waits waits;
        enum bh_waits_page page; /* memory that is not there is the swap's, if it is not for something else */
    } ways[] = {{BY_CALL, BH_WAITS_TENANT, BH_PAGE_INNOCENT},
                {BY_CALL_SHARED, BH_WAITS_TENANT, BH_PAGE_INNOCENT},
                {BY_FILE, BH_WAITS_TENANT, BH_PAGE_SERVED},
                {BY_FILE_AHEAD, BH_WAITS_PAGE, BH_PAGE_SERVED}};
    CHECK(bh_scratch_make(folder, sizeof(folder), "waits"));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        seen(ways[i].way, ways[i].waits, ways[i].page);
    CHECK_EQ(rmdir(folder), 0);
}

struct place {
    const char *type, *options;
    bool hidden;
    enum bh_waits_page wanted;
};

/* A page of a file on such a file system, which is hidden afterwards where that is wanted. NULL: it cannot be mounted here. */
static void *page_on(const void *arg)
{
    const struct place *p = arg;
    char name[2 * BH_SCRATCH_SOCKET_PATH];
    if (p->type && (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("none", folder, p->type, 0, p->options) < 0))
        return there_is(NULL);
    (void)snprintf(name, sizeof(name), "%s/page", folder);
    void *page = MAP_FAILED;
    if (!p->type) {
        page = served_by_file(folder, false);
    } else {
        const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, SERVED_PAGE) < 0)
            return there_is(NULL);
        page = mmap(NULL, SERVED_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
    }
    return there_is(page == MAP_FAILED || (p->hidden && umount2(folder, MNT_DETACH) < 0) ? NULL : page);
}

/* Layers and memory are on no disk of their own, and nobody serves them. */
TEST(only_file_systems_that_a_process_serves_count_as_such)
{
    char upper[BH_SCRATCH_SOCKET_PATH], work[BH_SCRATCH_SOCKET_PATH], layers[3 * BH_SCRATCH_SOCKET_PATH],
        made[2 * BH_SCRATCH_SOCKET_PATH];
    CHECK(bh_scratch_make(folder, sizeof(folder), "waits") &&
          bh_scratch_make(upper, sizeof(upper), "upper") && bh_scratch_make(work, sizeof(work), "work"));
    (void)snprintf(layers, sizeof(layers), "lowerdir=/usr/lib,upperdir=%s,workdir=%s", upper, work);
    const struct place places[] = {{"tmpfs", "", false, BH_PAGE_INNOCENT},
                                   {"overlay", layers, false, BH_PAGE_INNOCENT},
                                   {NULL, NULL, false, BH_PAGE_SERVED},
                                   {NULL, NULL, true, BH_PAGE_SERVED}};
    enum bh_waits_page seen_there[BH_COUNT_OF(places)];
    bool good = true;
    for (size_t i = 0; i < BH_COUNT_OF(places); i++) {
        struct child c;
        good = child_start(page_on, &places[i], &c) && good;
        seen_there[i] = c.made ? bh_waits_page_at((uint32_t)c.pid, (uintptr_t)c.made) : places[i].wanted;
        good = child_end(&c) && good;
    }
    (void)snprintf(made, sizeof(made), "%s/page", upper);
    (void)unlink(made);
    (void)snprintf(made, sizeof(made), "%s/work", work);
    (void)rmdir(made);
    CHECK(rmdir(folder) == 0 && rmdir(upper) == 0 && rmdir(work) == 0 && good);
    for (size_t i = 0; i < BH_COUNT_OF(places); i++)
        CHECK_EQ(seen_there[i], places[i].wanted);
}

static void *sleeps(void *arg)
{
    atomic_store(&asked.tid, (pid_t)syscall(SYS_gettid));
    (void)!read(*(int *)arg, &(char){0}, 1);
    return NULL;
}

TEST(who_reads_nobodys_memory_waits_for_something_else)
{
    pthread_t thread;
    int told[2];
    CHECK_EQ(pipe(told), 0);
    atomic_store(&asked.tid, 0);
    CHECK_EQ(pthread_create(&thread, NULL, sleeps, &told[0]), 0);
    for (int i = 0; i < 5000 && (!asked.tid || bh_waits_for(asked.tid) == BH_WAITS_NOT); i++)
        (void)usleep(1000);
    CHECK_EQ(bh_waits_for(asked.tid), BH_WAITS_OTHERWISE);
    CHECK_EQ(bh_waits_page(asked.tid, (uint32_t)getpid()), BH_PAGE_UNKNOWN);
    close(told[1]);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(told[0]);
    CHECK_EQ(bh_waits_for((pid_t)syscall(SYS_gettid)), BH_WAITS_NOT);
}

TEST_MAIN
