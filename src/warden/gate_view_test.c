/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant that asks what the card is like, with a neighbour on it. */
#include "warden/gate_fixture.h"

enum { T_SUB = 0x5c000002, T_SHARED = 0x5c000003, NEIGHBOUR_CLIENT = 0xc1d00777 };
static const uint64_t cap = 64 * BH_MIB, neighbours = 512 * BH_MIB;
static pid_t neighbour;

static uint32_t control(int fd, uint32_t object, uint32_t command, void *params, size_t n)
{
    struct rm_control a = {.client = T_CLIENT,
                           .object = object,
                           .command = command,
                           .params = (uintptr_t)params,
                           .params_size = (uint32_t)n};
    const struct rm_control before = a;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(a)), &a) == 0);
    const uint32_t status = a.status;
    a.status = 0;
    HOLDS(memcmp(&a, &before, sizeof(a)) == 0); /* its own pointer and sizes, not ours */
    return status;
}

static int open_sub(void)
{
    uint32_t number = 0;
    int fd = tenant_open(T_CLIENT);
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_SUB, RM_CLASS_SUBDEVICE, &number, 0) == RM_OK);
    return fd;
}

struct memory {
    uint64_t total, size, free;
};

static struct memory memory_of(int fd)
{
    struct rm_fb_info f = {
        .count = 3,
        .at = {{.index = RM_FB_TOTAL_RAM}, {.index = RM_FB_HEAP_SIZE}, {.index = RM_FB_HEAP_FREE}}};
    HOLDS(control(fd, T_SUB, RM_CTRL_FB_GET_INFO_V2, &f, sizeof(f)) == RM_OK);
    HOLDS(f.count == 3 && f.at[3].index == 0 && f.at[3].value == 0);
    return (struct memory){(uint64_t)f.at[0].value << 10, (uint64_t)f.at[1].value << 10,
                           (uint64_t)f.at[2].value << 10};
}

static struct rm_pids pids;
static struct rm_pid_info info;
static struct rm_use_samples samples;

static bool lists(int fd, pid_t pid)
{
    pids = (struct rm_pids){.id = RM_CLASS_SUBDEVICE};
    HOLDS(control(fd, T_SUB, RM_CTRL_GPU_GET_PIDS, &pids, sizeof(pids)) == RM_OK);
    for (uint32_t i = 0; i < pids.count; i++)
        if (pids.pids[i] == (uint32_t)pid)
            return true;
    return false;
}

static uint64_t holds_of(int fd, pid_t pid)
{
    info = (struct rm_pid_info){.count = 2, .at = {{.pid = (uint32_t)pid}, {.pid = (uint32_t)getpid()}}};
    HOLDS(control(fd, T_SUB, RM_CTRL_GPU_GET_PID_INFO, &info, sizeof(info)) == RM_OK);
    HOLDS(info.at[0].pid == (uint32_t)pid && info.at[1].pid == (uint32_t)getpid());
    return info.at[0].own + info.at[0].shared_owned;
}

static bool seen_running(int fd, pid_t pid)
{
    memset(&samples, 0, sizeof(samples));
    HOLDS(control(fd, T_SUB, RM_CTRL_PERF_USE_SAMPLES, &samples, sizeof(samples)) == RM_OK);
    for (size_t i = 0; i < BH_COUNT_OF(samples.samples); i++)
        for (size_t e = 0; e < BH_COUNT_OF(samples.samples[i].engines); e++)
            if (samples.samples[i].engines[e].pid == (uint32_t)pid)
                return true;
    return false;
}

/* ---- a neighbour outside of the lease ---- */

static void begin(enum bh_lease_view view)
{
    int ready[2];
    char byte;
    sim_begin();
    lease_view = view;
    if (pipe(ready) < 0)
        abort();
    neighbour = fork_quiet();
    if (neighbour == 0) {
        struct rm_device_params device = {0};
        struct rm_memory_params p = {.size = neighbours};
        int fd = bh_sim_open("/dev/nvidiactl");
        const uint32_t c = NEIGHBOUR_CLIENT;
        if (fd >= 0 && sim_alloc(fd, c, c, c, RM_CLASS_CLIENT, NULL, 0) == RM_OK &&
            sim_alloc(fd, c, c, T_DEV, RM_CLASS_DEVICE, &device, 0) == RM_OK &&
            sim_alloc(fd, c, T_DEV, T_MEM, RM_CLASS_MEMORY_LOCAL, &p, 0) == RM_OK)
            (void)!write(ready[1], "x", 1);
        (void)pause();
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        abort();
    close(ready[0]);
}

static bool end(void)
{
    lease_view = BH_VIEW_CARD;
    (void)kill(neighbour, SIGKILL);
    (void)waitpid(neighbour, NULL, 0);
    return holds_nothing_soon() && sim_end();
}

/* ---- the views ---- */

static void in_a_slice(void)
{
    int fd = open_sub();
    struct memory m = memory_of(fd);
    HOLDS(m.total == cap && m.size == cap && m.free == cap);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 24 * BH_MIB) == RM_OK);
    m = memory_of(fd);
    HOLDS(m.total == cap && m.free == cap - 24 * BH_MIB);
    HOLDS(lists(fd, getpid()) && !lists(fd, neighbour) && pids.count == 1);
    HOLDS(holds_of(fd, neighbour) == 0 && info.at[0].result == RM_OK);
    HOLDS(info.at[1].own + info.at[1].shared_owned == 24 * BH_MIB);
    HOLDS(seen_running(fd, getpid()) && !seen_running(fd, neighbour));
    /* a child of its own is told of, and counts in the same sums */
    int mine[2];
    char byte;
    HOLDS(pipe(mine) == 0);
    pid_t child = fork();
    if (child == 0) {
        int its = tenant_open(T_CLIENT + 1);
        HOLDS(tenant_take(its, T_CLIENT + 1, T_MEM, 16 * BH_MIB) == RM_OK);
        HOLDS(write(mine[1], "x", 1) == 1);
        (void)pause();
    }
    HOLDS(read(mine[0], &byte, 1) == 1);
    HOLDS(memory_of(fd).free == cap - 40 * BH_MIB);
    HOLDS(lists(fd, child) && pids.count == 2 && holds_of(fd, child) == 16 * BH_MIB);
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    for (int i = 0; i < 2000 && memory_of(fd).free != cap; i++)
        (void)usleep(1000);
    HOLDS(memory_of(fd).free == cap && !lists(fd, child));
    uint64_t mask = 1;
    HOLDS(sim_alloc(fd, T_CLIENT, T_SUB, T_SHARED, RM_CLASS_SHARED_DATA, &mask, 0) == RM_OK);
    HOLDS(control(fd, T_SHARED, RM_CTRL_SHARED_DATA_POLL, &mask, sizeof(mask)) == RM_OK);
}

TEST(a_slice_is_all_there_is)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_SLICE);
    const int status = lease(cap, in_a_slice, &s);
    CHECK_STR(s.why_killed, "");
    CHECK_EQ(status, 0);
    CHECK_EQ(s.killed, 0);
    CHECK(end());
}

static void on_the_card(void)
{
    int fd = open_sub();
    const struct memory m = memory_of(fd);
    HOLDS(m.total > 100 * BH_GIB && m.size - m.free == neighbours);
    HOLDS(lists(fd, neighbour) && holds_of(fd, neighbour) == neighbours && seen_running(fd, neighbour));
}

TEST(the_card_is_all_there_is)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_CARD);
    CHECK_EQ(lease(cap, on_the_card, &s), 0);
    CHECK(end());
}

/* The driver would translate some of the numbers and leave the others as they are. */
static void in_numbers_of_its_own(void)
{
    const int before = open_sub();
    int status;
    HOLDS(!lists(before, neighbour));
    HOLDS(unshare(CLONE_NEWPID) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
        HOLDS(control(before, T_SUB, RM_CTRL_GPU_GET_PIDS, &pids, sizeof(pids)) == RM_NOT_SUPPORTED);
        HOLDS(control(before, T_SUB, RM_CTRL_GPU_GET_PID_INFO, &info, sizeof(info)) == RM_NOT_SUPPORTED);
        HOLDS(control(before, T_SUB, RM_CTRL_PERF_USE_SAMPLES, &samples, sizeof(samples)) ==
              RM_NOT_SUPPORTED);
        HOLDS(memory_of(before).total == cap);
        _exit(0);
    }
    HOLDS(waitpid(pid, &status, 0) == pid && status == 0);
}

TEST(with_numbers_of_its_own_it_is_told_of_nobody)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_SLICE);
    CHECK_EQ(lease(cap, in_numbers_of_its_own, &s), 0);
    CHECK(end());
}

static void in_private(void)
{
    static const struct {
        uint32_t command, params;
    } withheld[] = {{0x2080852e, 528}, {0x2080a612, 11680}, {0x2080a618, 8620}, {0x20802096, 55888}},
      needed[] = {{0x20809064, 520}, {0x2080a084, 4}, {0x2080200a, 8}, {0x2080014a, 268}};
    static uint8_t params[55888];
    int fd = open_sub();
    const struct memory m = memory_of(fd);
    HOLDS(m.total == cap && m.free == cap);
    HOLDS(!lists(fd, neighbour) && holds_of(fd, neighbour) == 0);
    for (size_t i = 0; i < BH_COUNT_OF(withheld); i++)
        HOLDS(control(fd, T_SUB, withheld[i].command, params, withheld[i].params) == RM_NOT_SUPPORTED);
    for (size_t i = 0; i < BH_COUNT_OF(needed); i++)
        HOLDS(control(fd, T_SUB, needed[i].command, params, needed[i].params) == RM_OK);
    uint64_t mask = 1;
    HOLDS(sim_alloc(fd, T_CLIENT, T_SUB, T_SHARED, RM_CLASS_SHARED_DATA, &mask, 0) == RM_OK);
    HOLDS(control(fd, T_SHARED, RM_CTRL_SHARED_DATA_POLL, &mask, sizeof(mask)) == RM_NOT_SUPPORTED);
}

TEST(in_private_nothing_tells_of_load)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_PRIVATE);
    CHECK_EQ(lease(cap, in_private, &s), 0);
    CHECK(end());
}

/* ---- other forms, and nonsense ---- */

static void in_the_older_form(void)
{
    int fd = open_sub();
    struct {
        uint32_t index, value;
    } pairs[] = {{RM_FB_HEAP_FREE, 0}, {RM_FB_TOTAL_RAM, 0}, {77, 55}};
    struct rm_fb_info_list list = {.count = 2, .list = (uintptr_t)pairs};
    HOLDS(control(fd, T_SUB, RM_CTRL_FB_GET_INFO, &list, sizeof(list)) == RM_OK);
    HOLDS(pairs[0].value == cap >> 10 && pairs[1].value == cap >> 10);
    HOLDS(pairs[2].index == 77 && pairs[2].value == 55 && list.list == (uintptr_t)pairs);
    list.count = 0;
    HOLDS(control(fd, T_SUB, RM_CTRL_FB_GET_INFO, &list, sizeof(list)) == RM_OK);
    list.count = 127;
    HOLDS(control(fd, T_SUB, RM_CTRL_FB_GET_INFO, &list, sizeof(list)) == RM_INVALID_ARGUMENT);
}

TEST(the_older_form_tells_no_more)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_SLICE);
    CHECK_EQ(lease(cap, in_the_older_form, &s), 0);
    CHECK(end());
}

static void nonsense(void)
{
    int fd = open_sub(), ends[2];
    struct rm_fb_info f = {.count = 1, .at = {{.index = RM_FB_HEAP_FREE}}};
    struct rm_fb_info_list list = {.count = 1, .list = 16};
    struct rm_control a = {.client = T_CLIENT,
                           .object = T_SUB,
                           .command = RM_CTRL_FB_GET_INFO_V2,
                           .params = 16,
                           .params_size = sizeof(f)};
    const uint32_t cmd = RM_IOC(RM_CONTROL, sizeof(a));
    HOLDS(ioctl(fd, cmd, &a) < 0 && errno == EFAULT); /* its parameters are nowhere */
    a.command = RM_CTRL_FB_GET_INFO;
    a.params = (uintptr_t)&list;
    a.params_size = sizeof(list);
    HOLDS(ioctl(fd, cmd, &a) < 0 && errno == EFAULT); /* so is its list */
    a.command = RM_CTRL_FB_GET_INFO_V2;
    a.params = (uintptr_t)&f;
    a.params_size = sizeof(f) - 4;
    HOLDS(ioctl(fd, cmd, &a) == 0 && a.status == RM_INVALID_PARAM_STRUCT);
    a.params_size = sizeof(f);
    a.flags = 4;
    HOLDS(ioctl(fd, cmd, &a) == 0 && a.status == RM_NOT_SUPPORTED);
    a.flags = 0;
    a.object = 0x1234;
    HOLDS(ioctl(fd, cmd, &a) == 0 && a.status == RM_OBJECT_NOT_FOUND); /* the driver's own answer */
    a.object = T_SUB;
    f.count = UINT32_MAX;
    HOLDS(ioctl(fd, cmd, &a) == 0 && a.status == RM_INVALID_ARGUMENT);
    f.count = 1;
    HOLDS(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'G', RM_CONTROL, sizeof(a)), &a) < 0 && errno == EPERM);
    /* What is not ours goes on: to nobody here, for a socket knows no such call. */
    HOLDS(ioctl(fd, RM_IOC(RM_CONTROL, 31), &a) < 0 && errno == ENOTTY);
    HOLDS(ioctl(fd, cmd, (void *)16) < 0 && errno == ENOTTY);
    HOLDS(pipe(ends) == 0 && ioctl(ends[0], cmd, &a) < 0 && errno == ENOTTY);
    HOLDS(ioctl(-1, cmd, &a) < 0 && errno == EBADF);
    HOLDS(ioctl(fd, cmd, &a) == 0 && a.status == RM_OK && f.at[0].value == cap >> 10); /* it goes on */
}

TEST(nonsense_gains_nothing)
{
    struct bh_gate_stats s;
    begin(BH_VIEW_SLICE);
    CHECK_EQ(lease(cap, nonsense, &s), 0);
    CHECK_EQ(s.denied, 1);
    CHECK(end());
}

TEST_MAIN
