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
#include <stdlib.h>
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
    /* An answer of the simulated driver, in whose place a real one has the kernel's. No tenant is asked over a socket. */
    static const char answer[] = "__skb_wait_for_more_packets";
    if (state == 'R' || bh_str_starts(function, answer))
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

/* `36 35 98:0 /from /where options optional-fields - TYPE source options`; false: it is none of that device. */
static bool type_in(char *line, const struct bh_maps_file *f, const char **ret)
{
    uint64_t on_major, on_minor;
    char *save = NULL, *word = strtok_r(line, " ", &save);
    for (int i = 0; word && i < 2; i++)
        word = strtok_r(NULL, " ", &save);
    char *minor_at = word ? strchr(word, ':') : NULL;
    if (!minor_at)
        return false;
    *minor_at++ = '\0';
    if (bh_uint_parse(word, UINT32_MAX, &on_major, NULL) < 0 ||
        bh_uint_parse(minor_at, UINT32_MAX, &on_minor, NULL) < 0 || on_major != f->on_major ||
        on_minor != f->on_minor)
        return false;
    while (word && !bh_str_eq(word, "-"))
        word = strtok_r(NULL, " ", &save);
    *ret = word ? strtok_r(NULL, " ", &save) : NULL;
    return *ret != NULL;
}

bool bh_waits_mounted(const char *mountinfo, const struct bh_maps_file *f, enum bh_waits_page *ret)
{
    static const char *const served[] = {"fuse", "9p", "virtiofs"}; /* fuse.NAME and fuseblk, too */
    char *line = NULL;
    const char *type = NULL;
    size_t size = 0;
    bool found = false;
    FILE *all = fopen(mountinfo, "re");
    while (all && !found && getline(&line, &size, all) > 0)
        found = type_in(line, f, &type);
    *ret = BH_PAGE_INNOCENT;
    for (size_t i = 0; found && i < BH_COUNT_OF(served); i++)
        if (bh_str_starts(type, served[i]))
            *ret = BH_PAGE_SERVED;
    if (all)
        (void)fclose(all);
    free(line);
    return found;
}

/* By its kind. Layers, memory and others have no disk of their own either; but what is mounted nowhere that can be seen, and is on
 * no disk, may have been hidden. */
static enum bh_waits_page whose_file(uint32_t whose, const struct bh_maps_file *f)
{
    char path[48];
    enum bh_waits_page page;
    (void)snprintf(path, sizeof(path), "/proc/%u/mountinfo", whose);
    if (bh_waits_mounted(path, f, &page) || bh_waits_mounted("/proc/self/mountinfo", f, &page))
        return page;
    return f->on_major == 0 && !is_memory(f) ? BH_PAGE_SERVED : BH_PAGE_INNOCENT;
}

enum bh_waits_page bh_waits_page_at(uint32_t whose, uint64_t at)
{
    struct bh_maps_file f;
    const int rc = bh_maps_file_at(whose, at, &f);
    if (rc == -ENOENT)
        return BH_PAGE_INNOCENT; /* nothing is there: nobody waits for that for long */
    if (rc < 0)
        return BH_PAGE_UNKNOWN;
    return f.inode ? whose_file(whose, &f) : BH_PAGE_INNOCENT;
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
        all = bh_waits_page_at(whose, first);
        if (all == BH_PAGE_INNOCENT && piece[i].iov_len)
            all = bh_waits_page_at(whose, first + piece[i].iov_len - 1);
    }
    return all;
}
