/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/waits.h"

#include "base/test.h"
#include "warden/served_page_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>

TEST(what_the_kernels_functions_mean)
{
    CHECK_EQ(bh_waits_told('R', "0"), BH_WAITS_NOT);
    CHECK_EQ(bh_waits_told('R', "handle_userfault"), BH_WAITS_NOT);
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

static char folder[] = "/tmp/bulkhead-waits-XXXXXX";

enum way { BY_CALL, BY_CALL_SHARED, BY_FILE, BY_FILE_AHEAD };

static void *make(enum way way)
{
    if (way == BY_FILE || way == BY_FILE_AHEAD)
        return served_by_file(folder, way == BY_FILE_AHEAD);
    const int memory = way == BY_CALL_SHARED ? memfd_create("shared", MFD_CLOEXEC) : -1;
    return memory >= 0 && ftruncate(memory, SERVED_PAGE) < 0 ? NULL : served_by_fault(false, memory);
}

/* What a thread that reads such a page is said to wait for; nothing where no such page can be made here. */
static void seen(enum way way, enum bh_waits wanted, enum bh_waits_page wanted_page)
{
    enum bh_waits waits = BH_WAITS_NOT;
    pthread_t thread;
    int told[2];
    void *page = NULL;
    CHECK_EQ(pipe(told), 0);
    asked.pid = fork();
    if (asked.pid == 0) {
        page = make(way);
        if (!page)
            fprintf(stderr, "# no such page here: %s\n", strerror(errno));
        (void)!write(told[1], &page, sizeof(page));
        for (;;)
            (void)pause();
    }
    CHECK_EQ(read(told[0], &page, sizeof(page)), (ssize_t)sizeof(page));
    close(told[0]);
    close(told[1]);
    if (page) {
        asked.page = (uintptr_t)page;
        atomic_store(&asked.tid, 0);
        CHECK_EQ(pthread_create(&thread, NULL, reads, NULL), 0);
        for (int i = 0; i < 5000; i++) {
            waits = atomic_load(&asked.tid) ? bh_waits_for(asked.tid) : BH_WAITS_NOT;
            if (waits == wanted)
                break;
            (void)usleep(1000);
        }
        CHECK_EQ(waits, wanted);
        CHECK_EQ(bh_waits_page(asked.tid, (uint32_t)asked.pid), wanted_page);
    }
    CHECK(kill(asked.pid, SIGKILL) == 0 && waitpid(asked.pid, NULL, 0) == asked.pid);
    if (page)
        CHECK_EQ(pthread_join(thread, NULL), 0);
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
    CHECK(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        seen(ways[i].way, ways[i].waits, ways[i].page);
    CHECK_EQ(rmdir(folder), 0);
}

/* A page of a file on such a file system, which is hidden afterwards where that is wanted. NULL: it cannot be mounted here. */
static void *page_on(const char *type, const char *options, bool hidden)
{
    char name[64];
    if (type && (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                 mount("none", folder, type, 0, options) < 0))
        return NULL;
    (void)snprintf(name, sizeof(name), "%s/page", folder);
    void *page = MAP_FAILED;
    if (!type) {
        page = served_by_file(folder, false);
    } else {
        const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, SERVED_PAGE) < 0)
            return NULL;
        page = mmap(NULL, SERVED_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
    }
    return page == MAP_FAILED || (hidden && umount2(folder, MNT_DETACH) < 0) ? NULL : page;
}

/* Layers and memory are on no disk of their own, and nobody serves them. */
TEST(only_file_systems_that_a_process_serves_count_as_such)
{
    char upper[] = "/tmp/bulkhead-upper-XXXXXX", work[] = "/tmp/bulkhead-work-XXXXXX", layers[128], made[64];
    CHECK(snprintf(folder, sizeof(folder), "/tmp/bulkhead-waits-XXXXXX") > 0 && mkdtemp(folder) &&
          mkdtemp(upper) && mkdtemp(work));
    (void)snprintf(layers, sizeof(layers), "lowerdir=/usr/lib,upperdir=%s,workdir=%s", upper, work);
    const struct {
        const char *type, *options;
        bool hidden;
        enum bh_waits_page wanted;
    } ways[] = {{"tmpfs", "", false, BH_PAGE_INNOCENT},
                {"overlay", layers, false, BH_PAGE_INNOCENT},
                {NULL, NULL, false, BH_PAGE_SERVED},
                {NULL, NULL, true, BH_PAGE_SERVED}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int told[2];
        void *page = NULL;
        CHECK_EQ(pipe(told), 0);
        pid_t pid = fork();
        if (pid == 0) {
            page = page_on(ways[i].type, ways[i].options, ways[i].hidden);
            if (!page)
                fprintf(stderr, "# no such page here: %s\n", strerror(errno));
            (void)!write(told[1], &page, sizeof(page));
            for (;;)
                (void)pause();
        }
        CHECK_EQ(read(told[0], &page, sizeof(page)), (ssize_t)sizeof(page));
        if (page)
            CHECK_EQ(bh_waits_page_at((uint32_t)pid, (uintptr_t)page), ways[i].wanted);
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        close(told[0]);
        close(told[1]);
    }
    (void)snprintf(made, sizeof(made), "%s/page", upper);
    (void)unlink(made);
    (void)snprintf(made, sizeof(made), "%s/work", work);
    (void)rmdir(made);
    CHECK(rmdir(folder) == 0 && rmdir(upper) == 0 && rmdir(work) == 0);
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
