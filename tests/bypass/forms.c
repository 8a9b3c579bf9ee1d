/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c - every shape in which the driver can be asked for memory without the vendor's library. */
#include "bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the ordinary ones ---- */

static int raw(void)
{
    struct rm r;
    rm_must_open(&r);
    (void)bp_fill_rm("RM_ALLOC, 48 bytes", &r);
    return bp_hold();
}

static int take_short(void *arg, uint64_t bytes)
{
    struct rm *r = arg;
    struct rm_memory_params p = rm_memory(bytes);
    struct rm_alloc_short a = {.client = r->client,
                               .parent = r->device,
                               .object = rm_name(r),
                               .class = RM_CLASS_MEMORY_LOCAL,
                               .params = (uintptr_t)&p,
                               .params_size = sizeof(p)};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a);
    return rc < 0 ? rc : (int)a.status;
}

static int raw_short(void)
{
    struct rm r;
    rm_must_open(&r);
    (void)bp_fill("RM_ALLOC, 32 bytes", take_short, &r);
    return bp_hold();
}

/* On the GPU's own file, which the driver takes as well. */
static int raw_gpu_file(void)
{
    struct rm r, other;
    rm_must_open(&r);
    other = r;
    other.ctl = r.gpu;
    (void)bp_fill_rm("RM_ALLOC on the GPU's file", &other);
    return bp_hold();
}

static int take_alloc_memory(void *arg, uint64_t bytes)
{
    struct rm *r = arg;
    struct rm_alloc_memory a = {.client = r->client,
                                .parent = r->device,
                                .object = rm_name(r),
                                .class = RM_CLASS_MEMORY_LOCAL,
                                .limit = bytes - 1,
                                .fd = -1};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_ALLOC_MEMORY, sizeof(a)), &a);
    return rc < 0 ? rc : (int)a.status;
}

/* The real driver may know only other classes here: then the way does not exist, which is as good. */
static int raw_alloc_memory(void)
{
    struct rm r;
    rm_must_open(&r);
    int rc = take_alloc_memory(&r, bp.piece);
    bp_how("RM_ALLOC_MEMORY: %s", bp_result(rc));
    if (rc == RM_OK)
        (void)bp_fill("RM_ALLOC_MEMORY", take_alloc_memory, &r);
    return bp_hold();
}

struct heap {
    struct rm *r;
    uint32_t function;
};

static int take_heap(void *arg, uint64_t bytes)
{
    const struct heap *h = arg;
    const struct rm_memory_params p = rm_memory(bytes);
    struct rm_vid_heap a = {.client = h->r->client,
                            .parent = h->r->device,
                            .function = h->function,
                            .owner = h->r->client,
                            .memory = rm_name(h->r),
                            .flags = p.flags,
                            .attr = p.attr,
                            .attr2 = p.attr2,
                            .size = bytes};
    memcpy(a.pad3, &p.alignment, sizeof(p.alignment)); /* follows the size */
    int rc = dev_ioctl(h->r->ctl, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(a)), &a);
    return rc < 0 ? rc : (int)a.status;
}

/* Those that are known to obtain memory, and all others up to where the driver's numbers end. */
static int raw_heap(void)
{
    enum { NUMBERS = 40 };
    struct rm r;
    rm_must_open(&r);
    for (uint32_t f = 0; f < NUMBERS; f++) {
        struct heap h = {&r, f};
        uint64_t got = 0;
        int rc = f == RM_HEAP_FREE ? RM_NOT_SUPPORTED : take_heap(&h, bp.piece);
        for (; rc == RM_OK && got < BP_TIMES * bp.cap; rc = take_heap(&h, bp.piece))
            got += bp.piece;
        if (got)
            bp_how("function %u: %llu MiB, then %s", f, (unsigned long long)(got / MIB), bp_result(rc));
    }
    return bp_hold();
}

static int raw_alloc_object(void)
{
    struct rm r;
    rm_must_open(&r);
    uint32_t a[5] = {r.client, r.device, rm_name(&r), RM_CLASS_MEMORY_LOCAL, 0};
    bp_expect("RM_ALLOC_OBJECT", dev_ioctl(r.ctl, RM_IOC(RM_ALLOC_OBJECT, sizeof(a)), a), -EPERM);
    bp_expect("RM_ALLOC_OBJECT on the GPU's file", dev_ioctl(r.gpu, RM_IOC(RM_ALLOC_OBJECT, sizeof(a)), a),
              -EPERM);
    return bp_hold();
}

/* ---- odd commands ---- */

static int ask_with(struct rm *r, uint32_t cmd)
{
    struct rm_memory_params p = rm_memory(bp.piece);
    struct {
        struct rm_alloc a;
        uint8_t behind[4096];
    } room = {.a = {.client = r->client,
                    .parent = r->device,
                    .object = rm_name(r),
                    .class = RM_CLASS_MEMORY_LOCAL,
                    .params = (uintptr_t)&p}};
    int rc = dev_ioctl(r->ctl, cmd, &room);
    return rc < 0 ? rc : (int)room.a.status;
}

/* The driver looks at the low eight bits alone. */
static int raw_type(void)
{
    struct rm r;
    rm_must_open(&r);
    for (uint32_t type = 0; type <= UINT8_MAX; type++) {
        const uint32_t cmd = (RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)) & ~UINT32_C(0xff00)) | type << 8;
        int rc = type == 'F' ? -EPERM : ask_with(&r, cmd);
        if (rc != -EPERM)
            bp_bad("type 0x%02x: %s", type, bp_result(rc));
    }
    bp_how("255 other type bytes: EPERM");
    for (uint32_t direction = 0; direction < 4; direction++)
        bp_how("direction %u: %s", direction,
               bp_result(
                   ask_with(&r, (RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)) & 0x3fffffff) | direction << 30)));
    (void)bp_fill_rm("then as it should be", &r);
    return bp_hold();
}

static int raw_sizes(void)
{
    struct rm r;
    rm_must_open(&r);
    for (uint32_t size = 0; size < 4096; size++) {
        int rc;
        if (size == sizeof(struct rm_alloc) || size == sizeof(struct rm_alloc_short))
            continue;
        rc = ask_with(&r, RM_IOC(RM_ALLOC, size));
        if (rc == RM_OK)
            bp_bad("RM_ALLOC of %u bytes was granted", size);
        if (size == 0 || size == 4095)
            bp_how("RM_ALLOC of %u bytes: %s", size, bp_result(rc));
    }
    (void)bp_fill_rm("then as it should be", &r);
    return bp_hold();
}

static int raw_nested(void)
{
    struct rm r;
    rm_must_open(&r);
    struct rm_memory_params p = rm_memory(bp.piece);
    struct rm_alloc a = {.client = r.client,
                         .parent = r.device,
                         .object = rm_name(&r),
                         .class = RM_CLASS_MEMORY_LOCAL,
                         .params = (uintptr_t)&p};
    struct {
        uint32_t number, size;
        uint64_t at;
    } x = {RM_ALLOC, sizeof(a), (uintptr_t)&a};
    bp_expect("RM_XFER_CMD around RM_ALLOC", dev_ioctl(r.ctl, RM_IOC(RM_XFER_CMD, sizeof(x)), &x), -EPERM);
    bp_expect("the same on the GPU's file", dev_ioctl(r.gpu, RM_IOC(RM_XFER_CMD, sizeof(x)), &x), -EPERM);
    bp_expect("with type 0", dev_ioctl(r.ctl, RM_IOC(RM_XFER_CMD, sizeof(x)) & ~UINT32_C(0xff00), &x),
              -EPERM);
    return bp_hold();
}

/* ---- odd contents ---- */

static int raw_overflow(void)
{
    static const uint64_t sizes[] = {
        UINT64_MAX,         UINT64_MAX - 1,    UINT64_MAX - 64 * 1024 + 1, UINT64_MAX - 2 * MIB + 1,
        UINT64_MAX / 2 + 1, UINT64_C(1) << 62, (UINT64_C(1) << 32) + 1,    0};
    struct rm r;
    rm_must_open(&r);
    uint64_t before = bp_fill_up(&r);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct rm_alloc_memory a = {.client = r.client,
                                    .parent = r.device,
                                    .object = rm_name(&r),
                                    .class = RM_CLASS_MEMORY_LOCAL,
                                    .limit = sizes[i],
                                    .fd = -1};
        struct heap h = {&r, RM_HEAP_ALLOC_SIZE};
        int by_alloc = rm_take(&r, sizes[i], NULL), by_heap = take_heap(&h, sizes[i]);
        int by_memory = dev_ioctl(r.ctl, RM_IOC(RM_ALLOC_MEMORY, sizeof(a)), &a);
        by_memory = by_memory < 0 ? by_memory : (int)a.status;
        if (by_alloc == RM_OK || by_heap == RM_OK || (by_memory == RM_OK && sizes[i] >= 2 * MIB))
            bp_bad("%llu bytes were granted", (unsigned long long)sizes[i]);
    }
    bp_how("%llu MiB, then sizes from 2^64-1 to 0 by three calls: refused",
           (unsigned long long)(before / MIB));
    bp_got(before);
    return bp_hold();
}

/* Where memory is, is two bits: 0 video, 1 and 2 the machine's, 3 anywhere. And memory of addresses only has a flag. */
static int raw_elsewhere(void)
{
    struct rm r;
    rm_must_open(&r);
    const uint64_t before = bp_fill_up(&r);
    bp_got(before);
    for (uint32_t where = 1; where < 8; where++) {
        struct rm_memory_params p = rm_memory(bp.piece);
        uint64_t got = 0;
        int rc = RM_OK;
        p.attr |= (where & 3) << 25;
        p.flags |= where & 4 ? RM_MEMORY_FLAG_VIRTUAL : 0;
        while (rc == RM_OK && got < bp.cap) {
            struct rm_memory_params copy = p;
            uint32_t object = rm_name(&r);
            rc = rm_alloc(&r, r.device, &object, RM_CLASS_MEMORY_LOCAL, &copy);
            got += rc == RM_OK ? bp.piece : 0;
        }
        bp_how("location %u%s: %llu MiB, then %s", where & 3, where & 4 ? ", addresses" : "",
               (unsigned long long)(got / MIB), bp_result(rc));
    }
    return bp_hold();
}

/* Beside the ordinary class, all that may be memory. Each with the parameters of memory. */
static int raw_classes(void)
{
    static const uint32_t classes[] = {0x3e, 0x3f, 0x42, 0xc2, 0x70, 0x71, 0xf3,
                                       0xf8, 0xf9, 0xfa, 0xfb, 0xfd, 0xe0};
    struct rm r;
    rm_must_open(&r);
    const uint64_t before = bp_fill_up(&r);
    bp_got(before);
    for (size_t i = 0; i < COUNT(classes); i++) {
        int rc = RM_OK;
        unsigned n = 0;
        for (; rc == RM_OK && n < BP_PIECES; n += rc == RM_OK) {
            struct rm_memory_params p = rm_memory(bp.piece);
            uint32_t object = rm_name(&r);
            rc = rm_alloc(&r, r.device, &object, classes[i], &p);
        }
        bp_how("class 0x%x: %u, then %s", classes[i], n, bp_result(rc));
    }
    return bp_hold();
}

/* The size of the parameters is said wrongly, or they are not there. */
static int raw_params(void)
{
    struct rm r;
    rm_must_open(&r);
    const uint64_t before = bp_fill_up(&r);
    bp_got(before);
    for (uint32_t size = 1; size < 512; size++) {
        struct rm_memory_params p[4] = {rm_memory(bp.piece)};
        struct rm_alloc a = {.client = r.client,
                             .parent = r.device,
                             .object = rm_name(&r),
                             .class = RM_CLASS_MEMORY_LOCAL,
                             .params = (uintptr_t)p,
                             .params_size = size};
        int rc = dev_ioctl(r.ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a);
        if (rc == 0 && a.status == RM_OK)
            bp_bad("parameters of %u bytes were granted memory beyond the cap", size);
    }
    uint32_t object = rm_name(&r);
    int rc = rm_alloc(&r, r.device, &object, RM_CLASS_MEMORY_LOCAL, NULL);
    bp_how("parameters of 1 to 511 bytes: refused; none: %s", bp_result(rc));
    return bp_hold();
}

/* ---- odd descriptors ---- */

static int odd_files(void)
{
    struct rm r;
    rm_must_open(&r);
    const int caps = dev_open("/dev/nvidia-caps/nvidia-cap1"), tools = dev_open("/dev/nvidia-uvm-tools");
    const struct {
        const char *what;
        int fd;
    } files[] = {
        {"a memfd", memfd_create("x", MFD_CLOEXEC)},
        {"/dev/null", open("/dev/null", O_RDWR | O_CLOEXEC)},
        {"O_PATH", open("/dev/null", O_PATH | O_CLOEXEC)},
        {"a folder", open("/", O_RDONLY | O_CLOEXEC)},
        {"closed", 1000},
        {"-1", -1},
        {"nvidia-cap", caps},
        {"nvidia-uvm-tools", tools},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        struct rm other = r;
        other.ctl = files[i].fd;
        int rc = rm_take(&other, bp.piece, NULL);
        if (rc == RM_OK)
            bp_bad("%s: granted", files[i].what);
        bp_how("%s: %s", files[i].what, bp_result(rc));
    }
    (void)bp_fill_rm("then as it should be", &r);
    return bp_hold();
}

const struct bp_attempt bp_forms[] = {
    {"raw", raw, BP_RAW, "ioctls without the vendor's library"},
    {"raw-short", raw_short, BP_RAW, "the short form of RM_ALLOC"},
    {"raw-gpu-file", raw_gpu_file, BP_RAW, "RM_ALLOC on the GPU's file"},
    {"raw-alloc-memory", raw_alloc_memory, BP_RAW, "RM_ALLOC_MEMORY"},
    {"raw-heap", raw_heap, BP_RAW, "all functions of RM_VID_HEAP_CONTROL"},
    {"raw-alloc-object", raw_alloc_object, BP_RAW, "RM_ALLOC_OBJECT"},
    {"raw-type", raw_type, BP_RAW, "every other type byte in the command"},
    {"raw-sizes", raw_sizes, BP_RAW, "every other size in the command"},
    {"raw-nested", raw_nested, BP_RAW, "RM_XFER_CMD around RM_ALLOC"},
    {"raw-overflow", raw_overflow, BP_RAW, "sizes that overflow, and 0"},
    {"raw-elsewhere", raw_elsewhere, BP_RAW, "memory said to be elsewhere, or addresses only"},
    {"raw-classes", raw_classes, BP_RAW, "other classes of memory"},
    {"raw-params", raw_params, BP_RAW, "parameters of another size, or none"},
    {"odd-files", odd_files, BP_RAW, "memfd, O_PATH, closed and other descriptors"},
    {0},
};
