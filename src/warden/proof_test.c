/* SPDX-License-Identifier: Apache-2.0 */
/* proof_test.c - tenants that free a name and keep the memory. */
#include "warden/proof.h"

#include "warden/gate_fixture.h"

enum { BASE_SHIFT = 40 };
#define CAP  BH_GIB
#define HALF (512 * BH_MIB)
#define MORE (640 * BH_MIB) /* does not fit beside HALF */

/* ---- a tenant's part ---- */

struct range {
    uint64_t base, bytes;
    uint32_t status, pad;
};

/* at: which of several ranges. */
static uint64_t base_of(uint32_t at)
{
    return (UINT64_C(1) << BASE_SHIFT) + at * BH_GIB;
}

static void map_at(int uvm, uint32_t at, uint32_t client, uint32_t memory, uint64_t bytes)
{
    struct range r = {.base = base_of(at), .bytes = bytes};
    uint8_t m[9264] = {0};
    HOLDS(bh_sim_ioctl(uvm, UVM_CREATE_EXTERNAL_RANGE, &r) == 0 && r.status == RM_OK);
    memcpy(m, &r, 16);
    memcpy(m + 9252, &client, sizeof(client));
    memcpy(m + 9256, &memory, sizeof(memory));
    HOLDS(bh_sim_ioctl(uvm, UVM_MAP_EXTERNAL, m) == 0 && memcmp(m + 9260, "\0\0\0\0", 4) == 0);
}

static void map(int uvm, uint32_t client, uint32_t memory, uint64_t bytes)
{
    map_at(uvm, 0, client, memory, bytes);
}

static void unmap_at(int uvm, uint32_t at)
{
    struct range r = {.base = base_of(at)};
    HOLDS(bh_sim_ioctl(uvm, UVM_FREE, &r) == 0 && r.status == RM_OK);
}

static void unmap(int uvm)
{
    unmap_at(uvm, 0);
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
    while (__atomic_load_n(&shared->number[0], __ATOMIC_SEQ_CST) == 0)
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
    __atomic_store_n(&shared->number[0], 1, __ATOMIC_SEQ_CST);
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

/* Another free, which fails, changes nothing for those before it. */
static void fail_to_free_another(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    uint32_t n = 0;
    for (; n < 64 && tenant_take(fd, T_CLIENT, T_MEM, 60 * BH_MIB) == RM_OK; n++) {
        map_at(uvm, n, T_CLIENT, T_MEM, 60 * BH_MIB);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
        HOLDS(tenant_free(fd, 0xdead0001, 0xdead0001) != RM_OK);
    }
    HOLDS(n == CAP / (60 * BH_MIB));
}

/* What many let go of at once is all there again for the next who asks. */
static void let_go_of_many(void)
{
    enum { N = 256 };
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    for (uint32_t i = 0; i < N; i++) {
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM + i, CAP / N) == RM_OK);
        map_at(uvm, i, T_CLIENT, T_MEM + i, CAP / N);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM + i) == RM_OK);
    }
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_NO_MEMORY);
    for (uint32_t i = 0; i < N; i++)
        unmap_at(uvm, i);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, HALF) == RM_OK);
}

/* The ledger's own two clients are nobody else's. */
static void use_the_wardens_name(void)
{
    static const uint32_t names[] = {BH_PROOF_FRESH, BH_PROOF_KEPT};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        struct rm_device_params device = {0};
        struct rm_free f = {.client = names[i], .object = names[i]};
        int fd = bh_sim_open("/dev/nvidiactl");
        HOLDS(fd >= 0);
        HOLDS(sim_alloc(fd, names[i], names[i], T_DEV, RM_CLASS_DEVICE, &device, 0) == RM_INVALID_CLIENT);
        HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_FREE, sizeof(f)), &f) < 0 && errno == EPERM);
    }
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

TEST(a_free_that_fails_gives_nothing_up)
{
    holds(fail_to_free_another);
}

TEST(nobody_has_the_wardens_clients)
{
    holds(use_the_wardens_name);
}

/* ---- from outside of the lease ---- */

enum { OUTSIDE = 0xbb000001 };
static int outside_ready[2];

static pid_t lend_from_outside(void)
{
    pid_t pid = fork_quiet();
    if (pid)
        return pid;
    struct rm_share s = {.client = OUTSIDE, .object = OUTSIDE, .rights = RM_RIGHT_DUP, .type = RM_SHARE_ALL};
    int fd = tenant_open(OUTSIDE);
    if (tenant_take(fd, OUTSIDE, T_MEM, HALF) == RM_OK &&
        bh_sim_ioctl(fd, RM_IOC(RM_SHARE, sizeof(s)), &s) == 0 && s.status == RM_OK)
        (void)!write(outside_ready[1], "x", 1);
    (void)pause();
    _exit(1);
}

static void borrow(void)
{
    char byte;
    int fd = tenant_open(T_CLIENT);
    struct rm_dup d = {.client = T_CLIENT,
                       .parent = T_DEV,
                       .object = T_MEM,
                       .source_client = OUTSIDE,
                       .source_object = T_MEM};
    HOLDS(read(outside_ready[0], &byte, 1) == 1);
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) == 0);
    HOLDS(d.status == RM_INSUFFICIENT_PERMISSIONS);
    d.parent = T_DEV + 1; /* which nobody has made */
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) == 0 &&
          d.status == RM_INVALID_OBJECT_PARENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, CAP) == RM_OK);
}

TEST(memory_of_somebody_else_is_not_had)
{
    struct bh_gate_stats stats;
    sim_begin();
    if (!shared)
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(pipe(outside_ready), 0);
    const pid_t lender = lend_from_outside();
    CHECK_EQ(lease(CAP, borrow, &stats), 0);
    CHECK(stats.killed == 0 && stats.denied == 1);
    CHECK(kill(lender, SIGKILL) == 0 && waitpid(lender, NULL, 0) == lender);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST(what_is_gone_is_credited)
{
    holds(let_go_of_many);
    holds(free_often);
    holds(free_one_of_two_names);
}

TEST_MAIN
