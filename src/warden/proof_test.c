/* SPDX-License-Identifier: Apache-2.0 */
/* proof_test.c - tenants that free a name and keep the memory. */
#include "warden/proof.h"

#include "warden/gate_fixture.h"

enum { BASE_SHIFT = 40 };
#define CAP  BH_GIB
#define HALF (512 * BH_MIB)
#define MORE (640 * BH_MIB) /* does not fit beside HALF */

/* ---- a tenant's part ---- */

static int uvm_open(void)
{
    struct {
        uint64_t flags;
        uint32_t status, pad;
    } init = {0};
    int fd = bh_sim_open("/dev/nvidia-uvm");
    HOLDS(fd >= 0);
    HOLDS(bh_sim_ioctl(fd, UVM_INITIALIZE, &init) == 0 && init.status == RM_OK);
    return fd;
}

struct range {
    uint64_t base, bytes;
    uint32_t status, pad;
};

static void map(int uvm, uint32_t client, uint32_t memory, uint64_t bytes)
{
    struct range r = {.base = UINT64_C(1) << BASE_SHIFT, .bytes = bytes};
    uint8_t m[9264] = {0};
    HOLDS(bh_sim_ioctl(uvm, UVM_CREATE_EXTERNAL_RANGE, &r) == 0 && r.status == RM_OK);
    memcpy(m, &r, 16);
    memcpy(m + 9252, &client, sizeof(client));
    memcpy(m + 9256, &memory, sizeof(memory));
    HOLDS(bh_sim_ioctl(uvm, UVM_MAP_EXTERNAL, m) == 0 && memcmp(m + 9260, "\0\0\0\0", 4) == 0);
}

static void unmap(int uvm)
{
    struct range r = {.base = UINT64_C(1) << BASE_SHIFT};
    HOLDS(bh_sim_ioctl(uvm, UVM_FREE, &r) == 0 && r.status == RM_OK);
}

/* ---- what it tries ---- */

/* What is mapped stays charged when its handle is freed, and is credited when it is mapped no more. */
static void free_the_handle(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM, HALF);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, MORE) == RM_NO_MEMORY);
    unmap(uvm);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, MORE) == RM_OK);
}

static void free_the_device(void)
{
    int fd = tenant_open(T_CLIENT), other = tenant_open(T_CLIENT + 1), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF / 2) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM + 1, HALF);
    HOLDS(tenant_free(fd, T_CLIENT, T_DEV) == RM_OK);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, MORE) == RM_NO_MEMORY);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, HALF) == RM_OK); /* the other one was credited */
    unmap(uvm);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM + 1, HALF) == RM_OK);
}

static void free_the_client(void)
{
    int fd = tenant_open(T_CLIENT), other = tenant_open(T_CLIENT + 1), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM, HALF);
    HOLDS(tenant_free(fd, T_CLIENT, T_CLIENT) == RM_OK);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, MORE) == RM_NO_MEMORY);
    unmap(uvm);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, MORE) == RM_OK);
}

static void close_the_file(void)
{
    int fd = tenant_open(T_CLIENT), other = tenant_open(T_CLIENT + 1), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM, HALF);
    close(fd);
    for (int i = 0; i < 20; i++) {
        HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, MORE) == RM_NO_MEMORY);
        (void)usleep(2000);
    }
    unmap(uvm);
    HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, MORE) == RM_OK);
}

/* Who made the memory ends; a child has the file through which it is mapped. */
static void die_and_leave_it_to_a_child(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM, HALF);
    const pid_t maker = getpid();
    if (fork() > 0)
        _exit(0);
    close(fd);
    while (getppid() == maker)
        (void)usleep(1000);
    fd = tenant_open(T_CLIENT + 1);
    for (int i = 0; i < 20; i++) {
        HOLDS(tenant_take(fd, T_CLIENT + 1, T_MEM, MORE) == RM_NO_MEMORY);
        (void)usleep(2000);
    }
    unmap(uvm);
    HOLDS(tenant_take(fd, T_CLIENT + 1, T_MEM, MORE) == RM_OK);
}

/* Nobody may be asked to share with the warden who takes it back all the time. */
static void *revoke_all(void *arg)
{
    const int *fd = arg;
    struct rm_share s = {
        .client = T_CLIENT, .object = T_CLIENT, .type = RM_SHARE_CLIENT, .action = RM_SHARE_REVOKE};
    while (shared->number[0] == 0)
        (void)bh_sim_ioctl(*fd, RM_IOC(RM_SHARE, sizeof(s)), &s);
    return NULL;
}

static void take_the_right_back(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    map(uvm, T_CLIENT, T_MEM, HALF);
    HOLDS(pthread_create(&thread, NULL, revoke_all, &fd) == 0);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, MORE) == RM_NO_MEMORY);
    shared->number[0] = 1;
    HOLDS(pthread_join(thread, NULL) == 0);
}

/* Sizes that the driver rounds, names used again, and the other way to free: all of it comes back. */
static void free_often(void)
{
    int fd = tenant_open(T_CLIENT);
    for (uint32_t i = 0; i < 300; i++) {
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF + i * 4096) == RM_OK);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 4096 * (i + 1)) == RM_OK);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) ==
              RM_OK); /* the driver does not mind a name that is not there */
        struct rm_vid_heap h = {
            .client = T_CLIENT, .parent = T_DEV, .function = RM_HEAP_FREE, .memory = T_MEM + 1};
        HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) == 0 && h.status == RM_OK);
    }
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, CAP - 8 * BH_MIB) == RM_OK);
}

/* Two names: the first to go leaves the charge with the second. */
static void free_one_of_two_names(void)
{
    int fd = tenant_open(T_CLIENT);
    struct rm_dup d = {.client = T_CLIENT,
                       .parent = T_DEV,
                       .object = T_MEM + 1,
                       .source_client = T_CLIENT,
                       .source_object = T_MEM};
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) == 0 && d.status == RM_OK);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 2, MORE) == RM_NO_MEMORY);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM + 1) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 2, MORE) == RM_OK);
}

static void holds(tenant_fn *fn)
{
    struct bh_gate_stats stats;
    sim_begin();
    CHECK_EQ(lease(CAP, fn, &stats), 0);
    CHECK_EQ(shared->line, 0);
    CHECK_EQ(stats.killed, 0);
    CHECK(stats.peak_bytes <= CAP);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST(a_freed_handle_whose_memory_is_mapped_stays_charged)
{
    holds(free_the_handle);
}

TEST(so_does_what_is_below_a_freed_object)
{
    holds(free_the_device);
    holds(free_the_client);
}

TEST(so_does_what_was_made_on_a_file_that_is_closed)
{
    holds(close_the_file);
}

TEST(so_does_what_a_process_leaves_behind)
{
    holds(die_and_leave_it_to_a_child);
}

TEST(a_tenant_that_takes_the_right_back_gains_nothing)
{
    holds(take_the_right_back);
}

TEST(what_is_gone_is_credited)
{
    holds(free_often);
    holds(free_one_of_two_names);
}

TEST_MAIN
