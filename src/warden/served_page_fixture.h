/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served_page_fixture.h - pages that never come: by userfaultfd, or in a file whose file system is a child of whoever asks.
 *
 * Each gives an address of the calling process that whoever reads it from outside waits for, or NULL where this machine
 * does not let it be made (the reason is in errno).
 */
#ifndef BH_WARDEN_SERVED_PAGE_FIXTURE_H
#define BH_WARDEN_SERVED_PAGE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SERVED_PAGE = 4096 };

/* Who closes its file waits, too, also by its end: until whoever serves it is ended. */
static bool served_keeps_closing;
static pid_t served_by; /* who serves the last one; ends with the thread that made it */
static int served_faults =
    -1; /* userfaultfd of the last one: who waits for it is read there, and may be answered */
/* Where not NULL, of memory that is shared with whoever serves: how often it was asked for a page. Who asked by then waits
 * even if it is told to end. */
static volatile uint64_t *served_asked;

/* By the system call, or by the device, which is root's. */
static inline int served_open(bool by_device)
{
#ifdef USERFAULTFD_IOC_NEW /* 6.1 */
    if (by_device) {
        const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        const int fd = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
        if (device >= 0)
            close(device);
        return fd;
    }
#endif
    return by_device ? -1 : (int)syscall(SYS_userfaultfd, O_CLOEXEC);
}

/* memory: a shared file without a disk below it; -1: memory of its own. */
static inline void *served_by_fault(bool by_device, int memory)
{
    struct uffdio_api api = {.api = UFFD_API};
    const int fd = served_faults = served_open(by_device);
    void *page = mmap(NULL, SERVED_PAGE, PROT_READ | PROT_WRITE,
                      memory < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, memory, 0);
    struct uffdio_register reg = {.range = {(uintptr_t)page, SERVED_PAGE},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    return fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 ||
                   ioctl(fd, UFFDIO_REGISTER, &reg) < 0
               ? NULL
               : page;
}

/* ---- a file system ---- */

struct served_answer {
    struct fuse_out_header head;
    union {
        struct fuse_init_out init;
        struct fuse_entry_out entry;
        struct fuse_open_out open;
        struct fuse_attr_out attr;
    } as;
};

static inline struct fuse_attr served_attr(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644,
                              .size = 2 * SERVED_PAGE,
                              .nlink = 1};
}

/* One file, of which everything is known but what is in it. False: this one is not answered. */
static inline bool served_reply(const struct fuse_in_header *asked, bool ahead, struct served_answer *a)
{
    enum { FILE_NODE = 2, SECONDS = 1000, READ_MAX = 1 << 17 };
    size_t n = 0;
    *a = (struct served_answer){.head.unique = asked->unique};
    switch (asked->opcode) {
    case FUSE_INIT:
        a->as.init = (struct fuse_init_out){.major = 7,
                                            .minor = 31,
                                            .max_write = READ_MAX,
                                            .max_readahead = READ_MAX,
                                            .max_background = 12,
                                            .flags = ahead ? FUSE_ASYNC_READ : 0};
        n = sizeof(a->as.init);
        break;
    case FUSE_LOOKUP:
        a->as.entry = (struct fuse_entry_out){.nodeid = FILE_NODE,
                                              .entry_valid = SECONDS,
                                              .attr_valid = SECONDS,
                                              .attr = served_attr(FILE_NODE)};
        n = sizeof(a->as.entry);
        break;
    case FUSE_GETATTR:
        a->as.attr = (struct fuse_attr_out){.attr_valid = SECONDS, .attr = served_attr(asked->nodeid)};
        n = sizeof(a->as.attr);
        break;
    case FUSE_OPEN:
        n = sizeof(a->as.open);
        break;
    case FUSE_FLUSH:
        if (served_keeps_closing)
            return false;
        break;
    case FUSE_READ:
        if (served_asked)
            ++*served_asked;
        return false;
    case FUSE_FORGET:
        return false;
    default:
        a->head.error = -ENOSYS;
    }
    a->head.len = (uint32_t)(sizeof(a->head) + n);
    return true;
}

static inline void served_serve(int fuse, bool ahead)
{
    static union {
        struct fuse_in_header head;
        char room[1 << 18];
    } asked;
    struct served_answer answer;
    for (;;) {
        if (read(fuse, &asked, sizeof(asked)) < 0 && errno != EINTR)
            _exit(0);
        if (served_reply(&asked.head, ahead, &answer))
            (void)!write(fuse, &answer, answer.head.len);
    }
}

/* folder: an empty one; the mount is seen by this process and its children alone. ahead: pages are asked for ahead, as those
 * of a disk are. The file, or -1. */
static inline int served_file(const char *folder, bool ahead)
{
    char options[96], name[256];
    const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    (void)snprintf(name, sizeof(name), "%s/page", folder);
    if (fuse < 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("served", folder, "fuse", 0, options) < 0)
        return -1;
    served_by = fork();
    if (served_by == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        served_serve(fuse, ahead);
    }
    /* With this open its own end would wait for an answer that nobody gives, and keep all that it has. */
    close(fuse);
    return open(name, O_RDONLY | O_CLOEXEC);
}

static inline void *served_by_file(const char *folder, bool ahead)
{
    const int file = served_file(folder, ahead);
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, SERVED_PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    return page == MAP_FAILED ? NULL : page;
}

#endif
