/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - the driver's files without the vendor's library.
 *
 * The calls are those that the warden's own counter and the recordings of the vendor's library show. On simulated
 * silicon a call is first made as the system call it would be, and goes to the simulated manager where nobody stood in
 * the way (simgpu/drv.h): who changes the arguments between the two plays the race that the kernel would lose.
 */
#include "bypass.h"

#include "simgpu/drv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    CTRL_GID_INFO = 0x2080014a,
    FIRST_NAME = 0x0b900000,
};

int dev_open(const char *path)
{
    return bp.sim ? bh_sim_open(path) : open(path, O_RDWR | O_CLOEXEC);
}

int dev_ioctl(int fd, uint32_t cmd, void *arg)
{
    int rc = bp.sim ? bh_sim_ioctl(fd, cmd, arg) : ioctl(fd, cmd, arg);
    return rc < 0 ? -errno : 0;
}

int dev_ioctl_turned(int seen, int fd, uint32_t cmd, void *arg)
{
    if (ioctl(seen, cmd, arg) == 0 || errno != ENOTTY)
        return -EPERM;
    return bh_sim_ioctl_direct(fd, cmd, arg) < 0 ? -errno : 0;
}

/* The real file wants the offset to be the address. */
void *dev_map(int fd, size_t n, int flags, uint64_t *ret_range)
{
    *ret_range = 0;
    if (bp.sim) {
        void *got = bh_sim_mmap(fd, n, PROT_READ | PROT_WRITE, flags, ret_range);
        return got == MAP_FAILED ? NULL : got;
    }
    const size_t unit = 2 * MIB;
    char *at = mmap(NULL, n + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    at += (unit - (uintptr_t)at % unit) % unit;
    void *got = mmap(at, n, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, (off_t)(uintptr_t)at);
    return got == MAP_FAILED ? NULL : got;
}

void *dev_map_turned(int seen, int fd, size_t n, uint64_t *ret_range)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MAP, .a = n, .b = PROT_READ | PROT_WRITE, .c = MAP_SHARED};
    if (mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, seen, 0) != MAP_FAILED || errno != ENODEV ||
        bh_sim_call(&msg, NULL, 0, fd, NULL) < 0)
        return NULL;
    *ret_range = msg.a;
    return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int dev_touch(int uvm, const uint8_t uuid[16], void *at, size_t n, uint64_t range)
{
    struct {
        uint64_t base, length;
        uint8_t to[16];
        uint32_t flags, pad;
        uint64_t semaphore;
        uint32_t payload;
        int32_t numa;
        uint64_t start, done;
        uint32_t status, pad2;
    } m = {.base = (uintptr_t)at, .length = n, .numa = -1};
    _Static_assert(sizeof(m) == 80, "UVM_MIGRATE has another size");
    if (bp.sim)
        return bh_sim_touch(uvm, range, 0) < 0 ? -errno : 0;
    memcpy(m.to, uuid, sizeof(m.to));
    return uvm_call(uvm, UVM_MIGRATE, &m);
}

/* ---- the resource manager ---- */

uint32_t rm_name(struct rm *r)
{
    if (r->last == 0)
        r->last = FIRST_NAME;
    return ++r->last;
}

int rm_control(struct rm *r, uint32_t object, uint32_t command, void *params, uint32_t n)
{
    struct rm_control a = {.client = r->client,
                           .object = object,
                           .command = command,
                           .params = (uintptr_t)params,
                           .params_size = n};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_CONTROL, sizeof(a)), &a);
    return rc < 0 ? rc : (int)a.status;
}

int rm_alloc(struct rm *r, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    struct rm_alloc a = {.client = r->client,
                         .parent = parent,
                         .object = *object,
                         .class = class,
                         .params = (uintptr_t)params};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a);
    if (rc == 0 && a.status == RM_OK)
        *object = a.object;
    return rc < 0 ? rc : (int)a.status;
}

int rm_free(struct rm *r, uint32_t client, uint32_t object)
{
    struct rm_free f = {.client = client, .object = object};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_FREE, sizeof(f)), &f);
    return rc < 0 ? rc : (int)f.status;
}

int rm_dup(struct rm *r, uint32_t *object, uint32_t source_client, uint32_t source)
{
    struct rm_dup d = {.client = r->client,
                       .parent = r->device,
                       .object = rm_name(r),
                       .source_client = source_client,
                       .source_object = source};
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d);
    *object = d.object;
    return rc < 0 ? rc : (int)d.status;
}

/* Which card, and which number it has. */
static int first_card(struct rm *r, struct rm_id_info *info, uint32_t *ret_minor)
{
    struct rm_card cards[RM_CARDS];
    struct rm_probed_ids probed;
    memset(cards, 0, sizeof(cards));
    memset(&probed, 0xff, sizeof(probed));
    int rc = dev_ioctl(r->ctl, RM_IOC(RM_CARD_INFO, sizeof(cards)), cards);
    if (rc == 0)
        rc = rm_control(r, r->client, RM_CTRL_PROBED_IDS, &probed, sizeof(probed));
    if (rc != 0)
        return rc;
    for (size_t k = 0; k < RM_CARDS; k++)
        if (cards[k].valid && cards[k].id == probed.ids[0]) {
            *info = (struct rm_id_info){.id = cards[k].id};
            *ret_minor = cards[k].minor;
            return rm_control(r, r->client, RM_CTRL_ID_INFO, info, sizeof(*info));
        }
    return -ENODEV;
}

static int open_card(struct rm *r, const struct rm_id_info *info, uint32_t minor)
{
    char path[32];
    struct rm_attach_ids attach;
    (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
    r->gpu = dev_open(path);
    if (r->gpu < 0)
        return -errno;
    int rc = dev_ioctl(r->gpu, RM_IOC(RM_REGISTER_FD, sizeof(r->ctl)), &r->ctl);
    memset(&attach, 0xff, sizeof(attach));
    attach.ids[0] = info->id;
    return rc < 0 ? rc : rm_control(r, r->client, RM_CTRL_ATTACH_IDS, &attach, sizeof(attach));
}

int rm_open(struct rm *r)
{
    struct rm_id_info info = {0};
    struct rm_device_params device = {0};
    uint32_t minor = 0, number = 0;
    *r = (struct rm){.gpu = -1};
    r->ctl = dev_open("/dev/nvidiactl");
    if (r->ctl < 0)
        return -errno;
    int rc = rm_alloc(r, 0, &r->client, RM_CLASS_CLIENT, NULL);
    rc = rc ? rc : first_card(r, &info, &minor);
    rc = rc ? rc : open_card(r, &info, minor);
    device.device = info.device;
    device.client_share = r->client;
    r->device = rm_name(r);
    r->subdevice = rm_name(r);
    rc = rc ? rc : rm_alloc(r, r->client, &r->device, RM_CLASS_DEVICE, &device);
    rc = rc ? rc : rm_alloc(r, r->device, &r->subdevice, RM_CLASS_SUBDEVICE, &number);
    if (rc != 0)
        rm_close(r);
    return rc;
}

void rm_must_open(struct rm *r)
{
    int rc = rm_open(r);
    if (rc != 0)
        bp_cannot("no client of the driver: %s", bp_result(rc));
}

void rm_close(struct rm *r)
{
    if (r->gpu >= 0)
        close(r->gpu);
    if (r->ctl >= 0)
        close(r->ctl);
    r->gpu = r->ctl = -1;
}

struct rm_memory_params rm_memory(uint64_t bytes)
{
    enum { SOMEBODY = 0x62687465 }; /* any name of an owner but none */
    return (struct rm_memory_params){.owner = SOMEBODY,
                                     .flags = 0x1c101,
                                     .attr = 0x11800000,
                                     .attr2 = 0x100005,
                                     .size = bytes,
                                     .alignment = 2 * MIB};
}

int rm_take(struct rm *r, uint64_t bytes, uint32_t *ret_object)
{
    struct rm_memory_params p = rm_memory(bytes);
    uint32_t object = rm_name(r);
    int rc = rm_alloc(r, r->device, &object, RM_CLASS_MEMORY_LOCAL, &p);
    if (ret_object)
        *ret_object = object;
    return rc;
}

int rm_uuid(struct rm *r, uint8_t uuid[16])
{
    enum { BINARY = 2 };
    struct {
        uint32_t index, flags, length;
        uint8_t data[256];
    } p = {.flags = BINARY};
    _Static_assert(sizeof(p) == 268, "the card's name has another size");
    int rc = rm_control(r, r->subdevice, CTRL_GID_INFO, &p, sizeof(p));
    memcpy(uuid, p.data, 16);
    return rc;
}

int rm_free_bytes(struct rm *r, uint64_t *ret)
{
    struct rm_fb_info p = {.count = 1};
    p.at[0].index = RM_FB_HEAP_FREE;
    int rc = rm_control(r, r->subdevice, RM_CTRL_FB_GET_INFO_V2, &p, sizeof(p));
    *ret = (uint64_t)p.at[0].value << 10;
    return rc;
}

/* ---- UVM ---- */

static size_t status_at(uint32_t number)
{
    switch (number) {
#define UVM_CALL(name, n, bytes, status) \
    case n:                              \
        return status;
#include "gpu/abi/uvm.def"
#undef UVM_CALL
    default:
        return 0;
    }
}

int uvm_call(int fd, uint32_t number, void *arg)
{
    uint32_t status;
    int rc = dev_ioctl(fd, number, arg);
    memcpy(&status, (const char *)arg + status_at(number), sizeof(status));
    return rc < 0 ? rc : (int)status;
}

/* Page faults on, and owned by somebody else than the resource manager: what the UVM file takes. */
static int make_space(struct rm *r, uint32_t *ret)
{
    enum { OWNED_OUTSIDE = 1 << 3, FAULTS = 1 << 6 };
    struct {
        uint32_t index, flags;
        uint64_t size, start, limit;
        uint32_t big_page, pad;
        uint64_t base;
    } p = {.flags = OWNED_OUTSIDE | FAULTS, .size = UINT64_C(0x1fffffb000000), .base = 0x1000};
    _Static_assert(sizeof(p) == 48, "the address space has another size");
    *ret = rm_name(r);
    return rm_alloc(r, r->device, ret, RM_CLASS_VASPACE, &p);
}

int uvm_open(struct uvm *u, struct rm *r)
{
    struct {
        uint64_t flags;
        uint32_t status, pad;
    } begin = {0};
    struct {
        uint8_t uuid[16];
        uint32_t numa_on;
        int32_t numa, ctl;
        uint32_t client, partition, status;
    } gpu = {.numa = -1, .ctl = r->ctl, .client = r->client};
    struct {
        uint8_t uuid[16];
        int32_t ctl;
        uint32_t client, space, status;
    } space = {.ctl = r->ctl, .client = r->client};
    struct {
        int32_t fd;
        uint32_t status;
    } own = {0};
    _Static_assert(sizeof(own) == 8 && sizeof(begin) == 16 && sizeof(gpu) == 40 && sizeof(space) == 32,
                   "UVM is laid out otherwise");
    *u = (struct uvm){.next = UINT64_C(0x200000000000)};
    int rc = rm_uuid(r, u->uuid);
    memcpy(gpu.uuid, u->uuid, sizeof(gpu.uuid));
    memcpy(space.uuid, u->uuid, sizeof(space.uuid));
    u->fd = dev_open("/dev/nvidia-uvm");
    const int beside =
        dev_open("/dev/nvidia-uvm"); /* stays open: with it goes what ties the first to this process */
    if (u->fd < 0 || beside < 0)
        return -errno;
    rc = rc ? rc : make_space(r, &space.space);
    rc = rc ? rc : uvm_call(u->fd, UVM_INITIALIZE, &begin);
    own.fd = u->fd;
    rc = rc ? rc : uvm_call(beside, UVM_MM_INITIALIZE, &own);
    rc = rc ? rc : uvm_call(u->fd, UVM_REGISTER_GPU, &gpu);
    return rc ? rc : uvm_call(u->fd, UVM_REGISTER_GPU_VASPACE, &space);
}

int uvm_range(struct uvm *u, const struct rm *r, uint64_t bytes, struct uvm_map *ret)
{
    enum { READ_WRITE_ATOMIC = 1 };
    struct {
        uint64_t base, length;
        uint32_t status, pad;
    } range = {.base = u->next, .length = bytes};
    _Static_assert(sizeof(range) == 24 && sizeof(*ret) == 9264, "UVM is laid out otherwise");
    *ret = (struct uvm_map){.base = u->next, .length = bytes, .n = 1, .ctl = r->ctl, .client = r->client};
    memcpy(ret->gpus[0].uuid, u->uuid, sizeof(u->uuid));
    ret->gpus[0].mapping = READ_WRITE_ATOMIC;
    u->next += (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    return uvm_call(u->fd, UVM_CREATE_EXTERNAL_RANGE, &range);
}

int uvm_map_memory(struct uvm *u, const struct rm *r, uint32_t memory, uint64_t bytes)
{
    struct uvm_map map;
    int rc = uvm_range(u, r, bytes, &map);
    map.memory = memory;
    return rc ? rc : uvm_call(u->fd, UVM_MAP_EXTERNAL, &map);
}
