/* SPDX-License-Identifier: Apache-2.0 */
/* Who may pause, resume and weigh which channels; and channels whose parameters lie anywhere. */
#include "warden/link_fixture.h"

enum { NEIGHBOUR = 0xc1d00777, N_GROUP = 0x5c000070, N_CHANNEL };

static struct bh_gate_stats stats;
static struct bh_err err;

static uint32_t set_running(int fd, uint32_t client, uint32_t channel, bool running)
{
    struct rm_disable_channels d = {.disable = !running, .count = 1};
    d.clients[0] = client;
    d.channels[0] = channel;
    return tenant_control(fd, T_SUB, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d));
}

/* Somebody with a channel, in no lease: in this process. */
static int neighbour(void)
{
    struct rm_device_params device = {0};
    uint8_t group[20] = {0};
    const int fd = bh_sim_open("/dev/nvidiactl");
    if (sim_alloc(fd, NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, RM_CLASS_CLIENT, NULL, 0) != RM_OK ||
        sim_alloc(fd, NEIGHBOUR, NEIGHBOUR, T_DEV, RM_CLASS_DEVICE, &device, 0) != RM_OK ||
        sim_alloc(fd, NEIGHBOUR, T_DEV, N_GROUP, RM_CLASS_CHANNEL_GROUP, group, 0) != RM_OK ||
        sim_alloc(fd, NEIGHBOUR, N_GROUP, N_CHANNEL, RM_CLASS_CHANNEL_HOPPER, NULL, 0) != RM_OK)
        abort();
    return fd;
}

/* Controls that no program is known to use: the first of them about everybody's work, the others about one's own. */
static bool are_refused(int fd, size_t n)
{
    static const uint32_t commands[] = {0x00801705, 0x00801711, 0x00801712, 0x00801714,
                                        0xa06c0110, 0xa06f0111, 0xa06f0112};
    uint64_t params[4] = {0};
    bool all = n <= BH_COUNT_OF(commands);
    for (size_t i = 0; all && i < n; i++)
        all = tenant_control(fd, T_GROUP, commands[i], params, sizeof(params)) == RM_INSUFFICIENT_PERMISSIONS;
    return all;
}

/* ---- without a share ---- */

static void touches_its_own_only(void)
{
    const int fd = tenant_group();
    struct rm_disable_channels d = {.disable = 1, .count = 2};
    HOLDS(set_running(fd, T_CLIENT, T_CHANNEL, false) == RM_OK);
    HOLDS(set_running(fd, T_CLIENT, T_CHANNEL, true) == RM_OK);
    HOLDS(set_running(fd, NEIGHBOUR, N_CHANNEL, false) == RM_INSUFFICIENT_PERMISSIONS);
    d.clients[0] = T_CLIENT;
    d.channels[0] = T_CHANNEL;
    d.clients[1] = NEIGHBOUR;
    d.channels[1] = N_CHANNEL;
    HOLDS(tenant_control(fd, T_SUB, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)) ==
          RM_INSUFFICIENT_PERMISSIONS);
    d.count = 65;
    HOLDS(tenant_control(fd, T_SUB, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)) == RM_INVALID_ARGUMENT);
    HOLDS(tenant_control(fd, T_SUB, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, 8) == RM_INVALID_PARAM_STRUCT);
    /* a whole engine is nobody's */
    HOLDS(are_refused(fd, 4));
    /* its slices are its own */
    uint64_t us = 5000;
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)) == RM_OK);
    HOLDS(tenant_slice(fd) == 5000);
}

TEST(a_neighbours_channels_are_nobodys)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    const int fd = neighbour();
    CHECK_EQ(lease(BH_GIB, touches_its_own_only, &stats), 0);
    CHECK_EQ(stats.denied, 6);
    close(fd);
    CHECK(holds_nothing_soon() && sim_end());
}

/* ---- with one ---- */

static void may_touch_nothing(void)
{
    const int fd = tenant_group();
    uint64_t us = 9000;
    uint32_t level = 2;
    HOLDS(set_running(fd, T_CLIENT, T_CHANNEL, true) == RM_INSUFFICIENT_PERMISSIONS);
    HOLDS(set_running(fd, T_CLIENT, T_CHANNEL, false) == RM_INSUFFICIENT_PERMISSIONS);
    HOLDS(set_running(fd, NEIGHBOUR, N_CHANNEL, false) == RM_INSUFFICIENT_PERMISSIONS);
    const uint64_t before = tenant_slice(fd);
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)) ==
          RM_OK); /* as CUDA does */
    HOLDS(tenant_slice(fd) == before);
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SET_TIMESLICE, &us, sizeof(us)) ==
          RM_INSUFFICIENT_PERMISSIONS);
    HOLDS(tenant_control(fd, T_GROUP, RM_CTRL_GROUP_SET_INTERLEAVE, &level, sizeof(level)) ==
          RM_INSUFFICIENT_PERMISSIONS);
    HOLDS(tenant_slice(fd) == before);
    HOLDS(are_refused(fd, 7));
}

static void only_listens(struct governed *g)
{
    union said m;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    uint64_t n = 0;
    while (hear_link(g->governor, &m))
        n += m.op == BH_GOVERN_TAMPERED ? m.tampered.times : 0;
    PLAYS(n == 12);
}

TEST(a_lease_with_a_share_cannot_steer_itself)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    const int fd = neighbour();
    CHECK_EQ(governed_lease(may_touch_nothing, only_listens, &stats, &err), 0);
    CHECK(stats.denied == 12 && stats.tampered == 12);
    close(fd);
    CHECK(holds_nothing_soon() && sim_end());
}

/* ---- channels ---- */

static void makes_too_many(void)
{
    const int fd = tenant_group();
    uint32_t n = 2, status = RM_OK;
    while (status == RM_OK && n < 2 * BH_LINK_CHANNELS)
        status = sim_alloc(fd, T_CLIENT, T_GROUP, 0x5d000000 + n++, RM_CLASS_CHANNEL_HOPPER, NULL, 0);
    HOLDS(status == RM_INSUFFICIENT_RESOURCES && n == BH_LINK_CHANNELS + 1);
    /* nor where nobody could say on which card */
    HOLDS(sim_alloc(fd, T_CLIENT, 0x5cffffff, 0x5c000040, RM_CLASS_CHANNEL_HOPPER, NULL, 0) ==
          RM_INVALID_OBJECT_PARENT);
    tenant_await(1);
    HOLDS(tenant_free(fd, T_CLIENT, T_CHANNEL) == RM_OK);
    HOLDS(sim_alloc(fd, T_CLIENT, T_GROUP, T_CHANNEL, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK);
}

static void hears_of_no_more(struct governed *g)
{
    union said m;
    uint32_t n = 0;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    while (hear_link(g->governor, &m)) {
        n += m.op == BH_GOVERN_HAS ? m.channels.n : 0;
        n -= m.op == BH_GOVERN_LOST ? m.channels.n : 0;
        PLAYS(n <= BH_LINK_CHANNELS);
        if (n == BH_LINK_CHANNELS)
            shared->number[0] = 1;
    }
    PLAYS(shared->number[0] == 1);
}

TEST(a_lease_has_no_more_channels_than_can_be_paused)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(makes_too_many, hears_of_no_more, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

static uint32_t short_alloc(int fd, uint32_t object, const void *params)
{
    struct rm_alloc_short a = {.client = T_CLIENT,
                               .parent = T_GROUP,
                               .object = object,
                               .class = RM_CLASS_CHANNEL_HOPPER,
                               .params = (uintptr_t)params};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0);
    HOLDS(a.params == (uintptr_t)params);
    return a.status;
}

static void makes_them_anyhow(void)
{
    enum { PAGE = 4096, PARAMS = 368 };
    const int fd = tenant_group();
    char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(two != MAP_FAILED && munmap(two + PAGE, PAGE) == 0);
    memset(two, 0, PAGE);
    /* the last bytes before nothing */
    HOLDS(sim_alloc(fd, T_CLIENT, T_GROUP, 0x5c000030, RM_CLASS_CHANNEL_HOPPER, two + PAGE - PARAMS, 0) ==
          RM_OK);
    HOLDS(short_alloc(fd, 0x5c000031, two) == RM_OK);
    HOLDS(short_alloc(fd, 0x5c000032, NULL) == RM_OK);
    /* a name that is taken, and parameters that are nowhere */
    HOLDS(short_alloc(fd, 0x5c000032, NULL) == RM_INSERT_DUPLICATE_NAME);
    HOLDS(sim_alloc(fd, T_CLIENT, T_GROUP, 0x5c000033, RM_CLASS_CHANNEL_HOPPER, two + PAGE, 0) ==
              UINT32_MAX &&
          errno == EFAULT);
    shared->number[1] = 1;
    tenant_await(1);
}

static void hears_of_five(struct governed *g)
{
    union said m;
    uint32_t n = 0;
    PLAYS(hear_link(g->governor, &m));
    answer_join(g->governor, 0, "");
    while (n < 5 && hear_op(g->governor, BH_GOVERN_HAS, &m))
        n += m.channels.n;
    PLAYS(n == 5);
    shared->number[0] = 1;
    while (hear_link(g->governor, &m))
        PLAYS(m.op != BH_GOVERN_HAS);
}

TEST(channels_are_known_however_they_are_made)
{
    lease_view = BH_VIEW_SLICE;
    sim_begin();
    CHECK_EQ(governed_lease(makes_them_anyhow, hears_of_five, &stats, &err), 0);
    CHECK(holds_nothing_soon() && sim_end());
}

TEST_MAIN
