/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - managed memory: mappings of the UVM file, made and stretched in every way there is. */
#include "bypass.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct managed {
    struct rm r;
    struct uvm u;
    int flags;
};

static void open_managed(struct managed *m)
{
    rm_must_open(&m->r);
    m->flags = MAP_SHARED;
    int rc = uvm_open(&m->u, &m->r);
    if (rc != RM_OK)
        bp_cannot("no UVM file: %s", bp_result(rc));
}

static int take_managed(void *arg, uint64_t bytes)
{
    struct managed *m = arg;
    uint64_t range;
    void *at = dev_map(m->u.fd, bytes, m->flags, &range);
    if (!at)
        return -errno;
    return dev_touch(m->u.fd, m->u.uuid, at, bytes, range);
}

static int managed(void)
{
    struct managed m;
    open_managed(&m);
    (void)bp_fill("managed memory", take_managed, &m);
    return bp_hold();
}

/* Both kinds share one cap. */
static int managed_and_plain(void)
{
    struct managed m;
    open_managed(&m);
    bp_got(bp_fill_up(&m.r));
    uint64_t got = 0;
    int rc = 0;
    while (got < bp.cap && (rc = take_managed(&m, bp.piece)) == 0)
        got += bp.piece;
    bp_how("the cap in plain memory, then %llu MiB managed, then %s", (unsigned long long)(got / MIB),
           bp_result(rc));
    return bp_hold();
}

static int managed_private(void)
{
    struct managed m;
    open_managed(&m);
    bp_got(bp_fill_up(&m.r));
    m.flags = MAP_PRIVATE;
    uint64_t got = 0;
    int rc = 0;
    while (got < bp.cap && (rc = take_managed(&m, bp.piece)) == 0)
        got += bp.piece;
    bp_how("the cap in plain memory, then mapped MAP_PRIVATE: %llu MiB, then %s",
           (unsigned long long)(got / MIB), bp_result(rc));
    return bp_hold();
}

/* Closed while mapped: the mapping keeps the file, and the number is free. */
static int managed_closed(void)
{
    uint64_t got = 0;
    int rc = 0;
    while (got < BP_TIMES * bp.cap) {
        struct managed m;
        open_managed(&m);
        rc = take_managed(&m, bp.piece);
        close(m.u.fd);
        rm_close(&m.r);
        if (rc != 0)
            break;
        got += bp.piece;
    }
    bp_how("mapped and its file closed, over and over: %llu MiB, then %s", (unsigned long long)(got / MIB),
           bp_result(rc));
    bp_got(got);
    return bp_hold();
}

static int remap(void)
{
    struct managed m;
    uint64_t range;
    open_managed(&m);
    void *at = dev_map(m.u.fd, bp.piece, MAP_SHARED, &range);
    if (!at)
        bp_cannot("no managed memory at all: %s", strerror(errno));
    void *larger = mremap(at, bp.piece, BP_TIMES * bp.cap, MREMAP_MAYMOVE);
    bp_how("mremap to three caps: %s", larger == MAP_FAILED ? strerrorname_np(errno) : "granted");
    if (larger != MAP_FAILED)
        bp_how("on the GPU: %s", bp_result(dev_touch(m.u.fd, m.u.uuid, larger, BP_TIMES * bp.cap, range)));
    void *twice = mremap(at, 0, bp.piece, MREMAP_MAYMOVE);
    bp_how("mremap of nothing to a second place: %s",
           twice == MAP_FAILED ? strerrorname_np(errno) : "granted");
    if (twice != MAP_FAILED)
        bp_how("on the GPU: %s", bp_result(dev_touch(m.u.fd, m.u.uuid, twice, bp.piece, range)));
    return bp_hold();
}

static int map_fixed(void)
{
    struct managed m;
    uint64_t got = 0;
    int rc = 0;
    open_managed(&m);
    const size_t unit = 2 * MIB;
    char *at = mmap(NULL, bp.piece + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        bp_cannot("no addresses");
    at += (unit - (uintptr_t)at % unit) % unit;
    while (got < BP_TIMES * bp.cap) {
        /* Over the one before: that goes, so a cap is never full of it. */
        void *p =
            mmap(at, bp.piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m.u.fd, (off_t)(uintptr_t)at);
        rc = p == MAP_FAILED ? -errno : dev_touch(m.u.fd, m.u.uuid, p, bp.piece, 0);
        if (rc != 0)
            break;
        got += bp.piece;
    }
    bp_how("mapped in the same place over and over: %llu MiB, then %s", (unsigned long long)(got / MIB),
           bp_result(rc));
    bp_got(got > bp.piece ? bp.piece : got);
    return bp_hold();
}

/* mmap2 of 32 bits takes pages for an offset; its result has 32 bits. */
static int compat_map(void)
{
#ifdef __x86_64__
    struct managed m;
    open_managed(&m);
    enum { MMAP2 = 192 };
    long rc;
    __asm__ volatile("push %%rbp\n\t"
                     "mov %%r8, %%rbp\n\t"
                     "int $0x80\n\t"
                     "pop %%rbp"
                     : "=a"(rc)
                     : "a"(MMAP2), "b"(0x40000000L), "c"(2 * MIB), "d"(PROT_READ | PROT_WRITE),
                       "S"(MAP_SHARED | MAP_FIXED), "D"(m.u.fd), "r"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    bp_expect("mmap2 by int 0x80", (int)rc, -ENOSYS);
    rc = syscall(0x40000000 + SYS_mmap, NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, m.u.fd, 0);
    bp_expect("mmap by x32's number", rc < 0 ? -errno : 0, -ENOSYS);
    return bp_hold();
#else
    bp_cannot("another architecture");
#endif
}

const struct bp_attempt bp_maps[] = {
    {"managed", managed, BP_RAW, "managed memory by mmap"},
    {"managed-and-plain", managed_and_plain, BP_RAW, "managed beside plain memory"},
    {"managed-private", managed_private, BP_RAW, "MAP_PRIVATE of the UVM file"},
    {"managed-closed", managed_closed, BP_RAW, "mapped, then the UVM file closed"},
    {"mremap", remap, BP_RAW | BP_REAL, "simulated silicon's mappings are not the kernel's"},
    {"map-fixed", map_fixed, BP_RAW | BP_REAL, "simulated silicon's mappings are not the kernel's"},
    {"compat-mmap", compat_map, BP_RAW, "mmap by another architecture's call"},
    {0},
};
