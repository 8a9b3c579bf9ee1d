/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - what a thread of the warden waits for: its state, the kernel's function that it sleeps in, and the page. */
#include "warden/waits.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "warden/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECES_MAX = 4 };

void bh_waits_head(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

enum bh_waits bh_waits_told(char state, const char *function)
{
    /* Pages that are read one by one from a file system of a process are waited for in its own function, those that are read
     * ahead as those of a disk. Names of one kernel may be followed by a dot and more in another. */
    static const char *const tenants[] = {"handle_userfault", "request_wait_answer", "fuse_"};
    static const char *const pages[] = {"folio_",      "__folio_", "wait_on_page_bit",
                                        "__lock_page", "swap_",    "do_swap_page"};
    if (state == 'R')
        return BH_WAITS_NOT;
    for (size_t i = 0; i < BH_COUNT_OF(tenants); i++)
        if (bh_str_starts(function, tenants[i]))
            return BH_WAITS_TENANT;
    for (size_t i = 0; i < BH_COUNT_OF(pages); i++)
        if (bh_str_starts(function, pages[i]))
            return BH_WAITS_PAGE;
    return BH_WAITS_OTHERWISE;
}

enum bh_waits bh_waits_for(pid_t tid)
{
    char path[48], stat[128], function[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    bh_waits_head(path, stat, sizeof(stat));
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", (int)tid);
    bh_waits_head(path, function, sizeof(function));
    const char *end = strrchr(stat, ')'); /* of its name */
    return bh_waits_told(end && end[1] == ' ' ? end[2] : '?', function);
}

/* ---- the page ---- */

/* `NUMBER ARGUMENT ...`, of which four are wanted: the pieces of the other process are its third and their number. */
static bool read_call(pid_t tid, uint64_t *ret_pieces, uint64_t *ret_n)
{
    char path[48], text[256], *at = text;
    uint64_t word[6] = {0};
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
    bh_waits_head(path, text, sizeof(text));
    for (size_t i = 0; i < BH_COUNT_OF(word); i++) {
        const char *digits = at;
        const unsigned base = digits[0] == '0' && digits[1] == 'x' ? 16 : 10;
        for (at += base == 16 ? 2 : 0; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
            word[i] = word[i] * base + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
        if (at == digits || *at++ != ' ')
            return false;
    }
    *ret_pieces = word[4];
    *ret_n = word[5];
    return word[0] == SYS_process_vm_readv || word[0] == SYS_process_vm_writev;
}

/* The kernel's own files without a name: memory that processes share, which comes back from where memory is put. */
static bool is_memory(const struct bh_maps_file *f)
{
    struct stat st;
    const int fd = (int)syscall(SYS_memfd_create, "bulkhead", MFD_CLOEXEC);
    const bool is =
        fd >= 0 && fstat(fd, &st) == 0 && f->on_major == major(st.st_dev) && f->on_minor == minor(st.st_dev);
    if (fd >= 0)
        close(fd);
    return is;
}

static enum bh_waits_page page_at(uint32_t whose, uint64_t at)
{
    struct bh_maps_file f;
    const int rc = bh_maps_file_at(whose, at, &f);
    if (rc == -ENOENT)
        return BH_PAGE_INNOCENT; /* nothing is there: nobody waits for that for long */
    if (rc < 0)
        return BH_PAGE_UNKNOWN;
    return f.inode && f.on_major == 0 && !is_memory(&f) ? BH_PAGE_SERVED : BH_PAGE_INNOCENT;
}

enum bh_waits_page bh_waits_page(pid_t tid, uint32_t whose)
{
    uint64_t pieces, n;
    struct iovec piece[PIECES_MAX];
    if (!read_call(tid, &pieces, &n) || n == 0 || n > PIECES_MAX)
        return BH_PAGE_UNKNOWN;
    /* By the kernel, as the thread may have gone on, and where this was lies something else. */
    const struct iovec to = {piece, n * sizeof(piece[0])};
    const struct iovec from = {(void *)(uintptr_t)pieces, to.iov_len}; /* NOLINT(performance-no-int-to-ptr) */
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)to.iov_len)
        return BH_PAGE_UNKNOWN;
    enum bh_waits_page all = BH_PAGE_INNOCENT;
    for (size_t i = 0; i < n && all == BH_PAGE_INNOCENT; i++) {
        const uint64_t first = (uintptr_t)piece[i].iov_base;
        all = page_at(whose, first);
        if (all == BH_PAGE_INNOCENT && piece[i].iov_len)
            all = page_at(whose, first + piece[i].iov_len - 1);
    }
    return all;
}
