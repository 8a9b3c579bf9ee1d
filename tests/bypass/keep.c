/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - memory that stays after its name was given back: by a mapping, by a descriptor, or by a file on its way. */
#include "bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t say_kept(const char *what, uint64_t kept, int rc)
{
    bp_how("%s: %llu MiB kept, then %s", what, (unsigned long long)(kept / MIB), bp_result(rc));
    bp_got(kept);
    return kept;
}

/* One piece taken, mapped and given up again in some way: RM_OK, or what was refused. */
struct keeper {
    struct rm r, other;
    struct uvm u;
};
typedef int keep_fn(struct keeper *k);

/* As often as it goes. `mapper`: through whose client it is mapped. */
static int keep(const char *what, struct keeper *k, struct rm *mapper, keep_fn *one)
{
    uint64_t kept = 0;
    int rc = uvm_open(&k->u, mapper);
    if (rc != RM_OK)
        bp_cannot("no UVM file for it: %s", bp_result(rc));
    while (kept < BP_TIMES * bp.cap && (rc = one(k)) == RM_OK)
        kept += bp.piece;
    if (kept == 0)
        bp_cannot("%s: the first was refused: %s", what, bp_result(rc));
    (void)say_kept(what, kept, rc);
    return bp_hold();
}

static int map_and_free(struct keeper *k, uint64_t part)
{
    uint32_t memory;
    int rc = rm_take(&k->r, bp.piece, &memory);
    rc = rc ? rc : uvm_map_memory(&k->u, &k->r, memory, part);
    return rc ? rc : rm_free(&k->r, k->r.client, memory);
}

static int keep_all(struct keeper *k)
{
    return map_and_free(k, bp.piece);
}

static int keep_part(struct keeper *k)
{
    return map_and_free(k, 2 * MIB);
}

static int keep_closed(struct keeper *k)
{
    struct rm r;
    uint32_t memory;
    rm_must_open(&r);
    int rc = rm_take(&r, bp.piece, &memory);
    rc = rc ? rc : uvm_map_memory(&k->u, &r, memory, bp.piece);
    rm_close(&r);
    return rc;
}

static int keep_again(struct keeper *k)
{
    struct {
        uint64_t base, length;
        uint32_t status, pad;
    } gone = {.base = k->u.next, .length = bp.piece};
    uint32_t memory;
    int rc = rm_take(&k->r, bp.piece, &memory);
    rc = rc ? rc : uvm_map_memory(&k->u, &k->r, memory, bp.piece);
    rc = rc ? rc : uvm_map_memory(&k->u, &k->r, memory, bp.piece);
    rc = rc ? rc : uvm_call(k->u.fd, UVM_FREE, &gone);
    return rc ? rc : rm_free(&k->r, k->r.client, memory);
}

static int keep_dup(struct keeper *k)
{
    uint32_t memory, copy;
    int rc = rm_take(&k->r, bp.piece, &memory);
    rc = rc ? rc : rm_dup(&k->other, &copy, k->r.client, memory);
    rc = rc ? rc : uvm_map_memory(&k->u, &k->other, copy, bp.piece);
    rc = rc ? rc : rm_free(&k->other, k->other.client, copy);
    return rc ? rc : rm_free(&k->r, k->r.client, memory);
}

static int keep_by_uvm(const char *what, keep_fn *one)
{
    struct keeper k;
    rm_must_open(&k.r);
    return keep(what, &k, &k.r, one);
}

static int uvm_keep(void)
{
    return keep_by_uvm("mapped, then freed", keep_all);
}

/* The driver keeps all of it, whatever is mapped of it. */
static int uvm_keep_part(void)
{
    return keep_by_uvm("2 MiB of each mapped, then freed", keep_part);
}

/* Each time a client on files of its own, which are closed while UVM maps. */
static int uvm_keep_closed(void)
{
    return keep_by_uvm("mapped, then its control file closed", keep_closed);
}

/* Who maps again in the place of the old keeps none of it; who maps twice keeps one. */
static int uvm_keep_again(void)
{
    return keep_by_uvm("mapped twice, one unmapped, then freed", keep_again);
}

/* What is mapped is another name for it. */
static int uvm_keep_dup(void)
{
    struct keeper k;
    rm_must_open(&k.r);
    rm_must_open(&k.other);
    return keep("a duplicate mapped, then both freed", &k, &k.other, keep_dup);
}

/* A small piece is named, and a large one is mapped: the name changes during the call. Or the file does. */
static int keep_by_race(const char *what, bool file)
{
    struct rm r;
    struct uvm u;
    uint32_t small, large;
    rm_must_open(&r);
    int rc = uvm_open(&u, &r);
    if (rc != RM_OK || (rc = rm_take(&r, 2 * MIB, &small)) != RM_OK)
        bp_cannot("no UVM file for it: %s", bp_result(rc));
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), turning = fcntl(nothing, F_DUPFD_CLOEXEC, 100);
    unsigned tried = 0, mapped = 0;
    for (; tried < BP_TIMES * BP_PIECES; tried++) {
        struct uvm_map map;
        if ((rc = rm_take(&r, bp.piece, &large)) != RM_OK || (rc = uvm_range(&u, &r, 2 * MIB, &map)) != RM_OK)
            break;
        struct bp_flip f = {.fd = -1, .word32 = &map.memory, .values = {small, large}};
        map.memory = small;
        if (file) {
            f = (struct bp_flip){.fd = turning, .files = {nothing, u.fd}};
            map.memory = large;
        }
        bp_flip_begin(&f);
        for (int i = 0; i < 64; i++)
            mapped += uvm_call(file ? turning : u.fd, UVM_MAP_EXTERNAL, &map) == RM_OK;
        bp_flip_end(&f);
        if ((rc = rm_free(&r, r.client, large)) != RM_OK)
            break;
    }
    bp_how("%s: %u pieces, %u times mapped, each freed; then %s", what, tried, mapped, bp_result(rc));
    return bp_hold();
}

static int uvm_keep_name_race(void)
{
    return keep_by_race("the name changes while it is mapped", false);
}

static int uvm_keep_fd_race(void)
{
    return keep_by_race("the descriptor changes to the UVM file while it is mapped", true);
}

/* ---- descriptors that hold memory ---- */

/* An open control file becomes the carrier of an object. */
static int export_to_file(struct rm *r, uint32_t memory)
{
    enum { EXPORT = 0x3d05, RM_OBJECT = 1 };
    struct {
        uint32_t type, device, parent, object;
        int32_t fd;
        uint32_t flags;
    } p = {RM_OBJECT, r->device, r->device, memory, dev_open("/dev/nvidiactl"), 0};
    return p.fd < 0 ? -errno : rm_control(r, r->client, EXPORT, &p, sizeof(p));
}

/* Both layouts that the branch had: with and without the kind of mapping. */
static int export_dmabuf(struct rm *r, uint32_t memory)
{
    enum { HANDLES = 128 };
    struct {
        int32_t fd;
        uint32_t client, all, n, index;
        uint64_t bytes;
        uint8_t mapping, can_mmap;
        uint32_t handles[HANDLES];
        uint64_t offsets[HANDLES], sizes[HANDLES];
        uint32_t status;
    } p = {.fd = -1,
           .client = r->client,
           .all = 1,
           .n = 1,
           .bytes = bp.piece,
           .handles = {memory},
           .sizes = {bp.piece}};
    struct {
        int32_t fd;
        uint32_t client, all, n, index;
        uint64_t bytes;
        uint32_t handles[HANDLES];
        uint64_t offsets[HANDLES], sizes[HANDLES];
        uint32_t status;
    } old = {.fd = -1,
             .client = r->client,
             .all = 1,
             .n = 1,
             .bytes = bp.piece,
             .handles = {memory},
             .sizes = {bp.piece}};
    _Static_assert(sizeof(p) == 2608 && sizeof(old) == 2600, "the export has another size");
    int rc = dev_ioctl(r->gpu, RM_IOC(RM_EXPORT_DMABUF, sizeof(p)), &p);
    if (rc != -EINVAL)
        return rc < 0 ? rc : (int)p.status;
    rc = dev_ioctl(r->gpu, RM_IOC(RM_EXPORT_DMABUF, sizeof(old)), &old);
    return rc < 0 ? rc : (int)old.status;
}

static int keep_by(const char *what, int (*export_)(struct rm *r, uint32_t memory))
{
    struct rm r;
    uint64_t kept = 0;
    uint32_t memory;
    int rc = RM_OK, exported = RM_OK;
    rm_must_open(&r);
    while (kept < BP_TIMES * bp.cap) {
        if ((rc = rm_take(&r, bp.piece, &memory)) != RM_OK || (exported = export_(&r, memory)) != RM_OK ||
            (rc = rm_free(&r, r.client, memory)) != RM_OK)
            break;
        kept += bp.piece;
    }
    if (kept == 0 && exported != RM_OK) /* the way does not exist, or is shut */
        bp_how("%s: %s", what, bp_result(exported));
    else if (kept == 0)
        bp_cannot("%s: the first was refused: %s", what, bp_result(rc));
    else
        (void)say_kept(what, kept, exported != RM_OK ? exported : rc);
    return bp_hold();
}

static int export_keep(void)
{
    return keep_by("exported to a file, then freed", export_to_file);
}

static int dmabuf_keep(void)
{
    return keep_by("exported as a dma-buf, then freed", export_dmabuf);
}

/* ---- a file that nobody has ---- */

/* The next process is this number's; false: that cannot be had in a reasonable time. */
static bool take_number(pid_t want, pid_t *ret)
{
    enum { TRIES = 1 << 17 };
    int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < TRIES; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%d", want - 1);
        if (last >= 0)
            (void)!write(last, text, (size_t)n); /* root alone may; the others go around */
        pid_t pid = fork();
        if (pid == 0) {
            if (getpid() == want)
                bp_until_told();
            _exit(0);
        }
        if (pid == want) {
            *ret = pid;
            return true;
        }
        if (pid < 0)
            return false;
        (void)waitpid(pid, NULL, 0);
    }
    return false;
}

/*
 * A process fills the cap, sends its files to itself without anybody receiving them, and ends. Then its number is given to
 * somebody else, and the driver's count of that number looks like a stranger's.
 */
static int parked(void)
{
    int ends[2], said[2];
    uint64_t held = 0;
    pid_t again = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0 || pipe(said) < 0)
        bp_cannot("sockets: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        struct rm r;
        rm_must_open(&r);
        held = bp_fill_up(&r);
        if (bp_send_fd(ends[0], r.ctl, &held, sizeof(held)) < 0 ||
            bp_send_fd(ends[0], r.gpu, &held, sizeof(held)) < 0)
            _exit(1);
        (void)!write(said[1], &held, sizeof(held));
        _exit(0);
    }
    if (read(said[0], &held, sizeof(held)) != (ssize_t)sizeof(held))
        bp_cannot("the first process took nothing");
    (void)waitpid(child, NULL, 0);
    (void)usleep(200000);
    struct rm r;
    rm_must_open(&r);
    int rc = rm_take(&r, bp.piece, NULL);
    bp_how("%llu MiB in files nobody has, their process gone; more: %s", (unsigned long long)(held / MIB),
           bp_result(rc));
    if (rc == RM_OK)
        held += bp.piece;
    if (!take_number(child, &again))
        bp_cannot("its process number does not come around");
    (void)usleep(100000);
    while (held < BP_TIMES * bp.cap && (rc = rm_take(&r, bp.piece, NULL)) == RM_OK)
        held += bp.piece;
    bp_how("its number given to somebody else: %llu MiB in all, then %s", (unsigned long long)(held / MIB),
           bp_result(rc));
    bp_got(held);
    return bp_hold();
}

const struct bp_attempt bp_keep[] = {
    {"uvm-keep", uvm_keep, BP_RAW, "mapped through UVM, then the name freed"},
    {"uvm-keep-part", uvm_keep_part, BP_RAW, "a part mapped through UVM, then the name freed"},
    {"uvm-keep-closed", uvm_keep_closed, BP_RAW, "mapped through UVM, then the control file closed"},
    {"uvm-keep-again", uvm_keep_again, BP_RAW, "mapped twice through UVM, unmapped once, then freed"},
    {"uvm-keep-dup", uvm_keep_dup, BP_RAW, "a duplicate mapped through UVM, then all names freed"},
    {"uvm-keep-name-race", uvm_keep_name_race, BP_RAW, "the name changes while UVM maps, then it is freed"},
    {"uvm-keep-fd-race", uvm_keep_fd_race, BP_RAW, "the descriptor changes while UVM maps, then it is freed"},
    {"export-keep", export_keep, BP_RAW | BP_REAL, "simulated silicon exports no objects"},
    {"dmabuf-keep", dmabuf_keep, BP_RAW | BP_REAL, "simulated silicon has no dma-buf"},
    {"parked", parked, BP_RAW, "files on their way, and a process number used again"},
    {0},
};
