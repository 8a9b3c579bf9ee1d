/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver's files, and its count: the same code asks the real one. */
#include "warden/driver.h"

#include "base/units.h"
#include "simgpu/serve/serve_fixture.h"

#include <sys/mman.h>

TEST(files_are_told_apart)
{
    static const struct {
        const char *path;
        uint8_t kind;
        uint32_t gpu;
    } files[] = {{"/dev/nvidiactl", BH_FILE_CTL, 0},
                 {"/dev/nvidia0", BH_FILE_GPU, 0},
                 {"/dev/nvidia-uvm", BH_FILE_UVM, 0}};
    int pair[2];
    sim_begin();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd = bh_sim_open(files[i].path);
        const struct bh_driver_file f = bh_driver_simulated.identify(fd);
        CHECK_EQ(f.kind, files[i].kind);
        CHECK(f.kind != BH_FILE_GPU || f.gpu == files[i].gpu);
        close(fd);
    }
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(bh_driver_simulated.identify(pair[0]).kind, BH_FILE_OTHER);
    CHECK_EQ(bh_driver_simulated.identify(STDIN_FILENO).kind, BH_FILE_OTHER);
    CHECK_EQ(bh_driver_simulated.identify(-1).kind, BH_FILE_OTHER);
    close(pair[0]);
    close(pair[1]);
    CHECK(sim_end());
}

TEST(counts_what_processes_hold)
{
    enum { PIDS = 450 }; /* more than go into one question */
    static uint32_t pids[PIDS];
    uint64_t bytes[BH_SIM_GPUS_MAX];
    struct bh_err err;
    char version[32];
    void *self;
    size_t n;
    sim_begin();
    CHECK_EQ(bh_driver_simulated.check(version, &err), BH_OK);
    CHECK(strncmp(version, "580.", 4) == 0);
    CHECK_EQ(bh_driver_simulated.open(&self, &n, &err), BH_OK);
    CHECK(n >= 1 && n <= BH_SIM_GPUS_MAX);
    int fd = bh_sim_open("/dev/nvidiactl");
    struct rm_device_params device = {0};
    struct rm_memory_params memory = {.size = 6 * BH_MIB};
    CHECK_EQ(sim_alloc(fd, SIM_CLIENT, SIM_CLIENT, SIM_CLIENT, RM_CLASS_CLIENT, NULL, 0), RM_OK);
    CHECK_EQ(sim_alloc(fd, SIM_CLIENT, SIM_CLIENT, SIM_DEV, RM_CLASS_DEVICE, &device, 0), RM_OK);
    CHECK_EQ(sim_alloc(fd, SIM_CLIENT, SIM_DEV, SIM_MEM, RM_CLASS_MEMORY_LOCAL, &memory, 0), RM_OK);
    for (uint32_t i = 0; i < PIDS; i++)
        pids[i] = 4000000 + i;
    pids[PIDS - 1] = (uint32_t)getpid();
    CHECK_EQ(bh_driver_simulated.count(self, pids, PIDS, bytes, n, &err), BH_OK);
    CHECK_EQ(bytes[0], 6 * BH_MIB);
    CHECK_EQ(bh_driver_simulated.count(self, pids, PIDS - 1, bytes, n, &err), BH_OK);
    CHECK_EQ(bytes[0], 0);
    close(fd);
    bh_driver_simulated.close(self);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

static uint64_t fence_of(int fd)
{
    uint64_t done = UINT64_MAX;
    (void)bh_sim_fence(fd, SIM_CLIENT, SIM_CHAN, &done);
    return done;
}

/* By name, from a client of the driver's own, with no file of the tenant's. */
TEST(channels_are_paused_and_resumed_by_name)
{
    enum { N = 130 }; /* more than go into one call */
    static struct bh_driver_channel names[N];
    struct bh_err err;
    uint64_t fence;
    void *self;
    size_t n;
    sim_begin();
    CHECK_EQ(bh_driver_simulated.open(&self, &n, &err), BH_OK);
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    for (uint32_t i = 0; i < N; i++)
        names[i] = (struct bh_driver_channel){0xdead0000 + i, SIM_CHAN}; /* gone, but for two */
    names[3] = (struct bh_driver_channel){SIM_CLIENT, 0x4711};
    names[N - 1] = (struct bh_driver_channel){SIM_CLIENT, SIM_CHAN};
    CHECK_EQ(bh_driver_simulated.set_running(self, 0, names, N, false), RM_OK);
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, 1000, &fence), 0);
    (void)usleep(20000);
    CHECK(fence_of(fd) < fence);
    CHECK_EQ(bh_driver_simulated.set_running(self, 0, names, N, true), RM_OK);
    CHECK_EQ(bh_sim_wait(fd, SIM_CLIENT, SIM_CHAN, fence), 0);
    CHECK_EQ(bh_driver_simulated.set_running(self, 0, NULL, 0, true), RM_OK);
    CHECK_EQ(bh_driver_simulated.set_running(self, 31, names, N, true), RM_INVALID_DEVICE);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "gpu 0 lost"), 0);
    CHECK_EQ(bh_driver_simulated.set_running(self, 0, names, N, true), RM_GPU_IS_LOST);
    close(fd);
    bh_driver_simulated.close(self);
    CHECK(sim_end());
}

TEST(who_has_the_card_is_told)
{
    struct bh_driver_busy busy[4];
    struct bh_err err;
    uint64_t fence, now = 0, later = 0;
    void *self;
    size_t n;
    sim_begin();
    CHECK_EQ(bh_driver_simulated.open(&self, &n, &err), BH_OK);
    CHECK_EQ(bh_driver_simulated.watch_busy(self, 0, &err), BH_OK);
    CHECK_EQ(bh_driver_simulated.watch_busy(self, 31, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_driver_simulated.busy(self, 0, busy, 4, &now), 0);
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, 2000000, &fence), 0);
    CHECK_EQ(bh_sim_wait(fd, SIM_CLIENT, SIM_CHAN, fence), 0);
    CHECK_EQ(bh_driver_simulated.busy(self, 0, busy, 4, &now), 1);
    CHECK(busy[0].pid == (uint32_t)getpid() && !busy[0].on && busy[0].turns == 1);
    CHECK(busy[0].ns == 2000000 && busy[0].use_permille == 1000 && now >= 2000000);
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, for_ever, &fence), 0);
    (void)usleep(1000);
    CHECK_EQ(bh_driver_simulated.busy(self, 0, busy, 4, &later), 1);
    CHECK(later > now && busy[0].on && busy[0].ns > 2000000 && busy[0].ns <= later);
    CHECK_EQ(bh_driver_simulated.busy(self, 0, NULL, 0, &later), 1);
    close(fd);
    bh_driver_simulated.close(self);
    CHECK(sim_end());
    CHECK_EQ(bh_driver_simulated.busy(NULL, 0, busy, 4, &now), 0);
}

TEST(managed_memory_is_what_is_mapped)
{
    uint64_t init[2] = {0}, range;
    sim_begin();
    int uvm = bh_sim_open("/dev/nvidia-uvm");
    CHECK_EQ(bh_sim_ioctl(uvm, UVM_INITIALIZE, init), 0);
    CHECK_EQ(bh_driver_simulated.mapped((uint32_t)getpid(), &uvm, 1), 0);
    void *at = bh_sim_mmap(uvm, 5 * BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range);
    CHECK(at != MAP_FAILED);
    CHECK_EQ(bh_driver_simulated.mapped((uint32_t)getpid(), &uvm, 1), (int64_t)(5 * BH_MIB));
    CHECK_EQ(bh_sim_munmap(uvm, at, 5 * BH_MIB, range), 0);
    CHECK_EQ(bh_driver_simulated.mapped((uint32_t)getpid(), &uvm, 1), 0);
    close(uvm);
    CHECK(sim_end());
}

TEST(a_node_that_is_gone_is_said)
{
    struct bh_err err;
    char version[32];
    (void)setenv("BULKHEAD_SIM", "nowhere", 1);
    CHECK(bh_driver_here() == &bh_driver_simulated);
    CHECK_EQ(bh_driver_simulated.check(version, &err), BH_NOT_FOUND);
    (void)unsetenv("BULKHEAD_SIM");
    CHECK(bh_driver_here() == &bh_driver_nvidia);
}

TEST_MAIN
