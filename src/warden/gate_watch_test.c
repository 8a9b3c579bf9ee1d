/* SPDX-License-Identifier: Apache-2.0 */
/* What gets past the calls: seen in the driver's count, counted, and ended when it is too much. */
#include "warden/gate_fixture.h"
#include "warden/gate_inside.h"
#include "warden/thread.h"

#include <sched.h>

static const uint64_t cap = 64 * BH_MIB;

/* As one that found a hole would: no system call that the gate could see. */
static uint32_t take_behind(int fd, uint32_t client, uint32_t object, uint64_t bytes)
{
    struct rm_memory_params p = {.size = bytes};
    struct rm_alloc a = {.client = client,
                         .parent = T_DEV,
                         .object = object,
                         .class = RM_CLASS_MEMORY_LOCAL,
                         .params = (uintptr_t)&p};
    return bh_sim_ioctl_direct(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 ? a.status : UINT32_MAX;
}

static void until_killed(void)
{
    for (;;)
        (void)pause();
}

/* It would fit. But who has one way past the gate has it for more, and can hide what it took. */
static void little_behind(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 20 * BH_MIB) == RM_OK);
    HOLDS(take_behind(fd, T_CLIENT, T_MEM, 8 * BH_MIB) == RM_OK);
    until_killed();
}

TEST(memory_that_was_not_granted_ends_a_lease_below_its_cap)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, little_behind, &s), 128 + SIGKILL);
    CHECK_EQ(s.killed, 1);
    CHECK(s.checks > 0);
    CHECK_STR(s.why_killed,
              "8 MiB on GPU 0 were obtained behind the gate, by a call changed after it was let through");
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* Named and gone again within a tick, with the memory mapped elsewhere: looked at before the name goes. */
static void hidden_at_once(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(take_behind(fd, T_CLIENT, T_MEM, 64 << 10) == RM_OK); /* the least there is */
    (void)tenant_free(fd, T_CLIENT, T_DEV);
    until_killed();
}

TEST(memory_that_was_not_granted_is_not_hidden)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, hidden_at_once, &s), 128 + SIGKILL);
    CHECK_EQ(s.killed, 1);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* A child with memory that it was granted, which lives as long as this one. */
static void keep_a_child(void)
{
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int own = tenant_open(T_CLIENT + 1);
        HOLDS(tenant_take(own, T_CLIENT + 1, T_MEM, 20 * BH_MIB) == RM_OK);
        shared->number[0] = 1;
        until_killed();
    }
    while (shared->number[0] == 0)
        (void)usleep(500);
}

/* Its names go with the file, and nobody else in the lease has done anything. */
static void closed_at_once(void)
{
    keep_a_child();
    int fd = tenant_open(T_CLIENT);
    HOLDS(take_behind(fd, T_CLIENT, T_MEM, 64 << 10) == RM_OK);
    close(fd);
    until_killed();
}

/* The same by one that ends, where the lease goes on. */
static void ended_at_once(void)
{
    keep_a_child();
    pid_t child = fork();
    if (child == 0) {
        int fd = tenant_open(T_CLIENT);
        HOLDS(take_behind(fd, T_CLIENT, T_MEM, 64 << 10) == RM_OK);
        _exit(0);
    }
    HOLDS(waitpid(child, NULL, 0) == child);
    until_killed();
}

TEST(memory_that_was_not_granted_is_not_hidden_by_closing_a_file)
{
    static tenant_fn *const ways[] = {closed_at_once, ended_at_once};
    for (size_t i = 0; i < BH_COUNT_OF(ways); i++) {
        struct bh_gate_stats s;
        sim_begin();
        CHECK_EQ(lease(cap, ways[i], &s), 128 + SIGKILL);
        CHECK(s.killed >= 1);
        CHECK(strstr(s.why_killed, "were obtained behind the gate"));
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
}

/* A file that nobody has is kept until it was counted; what it holds is not kept from anybody. */
static void closes_and_takes_again(void)
{
    int other = tenant_open(T_CLIENT + 1);
    for (uint32_t i = 0; i < 20; i++) {
        int fd = tenant_open(T_CLIENT);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
        close(fd);
        HOLDS(tenant_take(other, T_CLIENT + 1, T_MEM, cap) == RM_OK);
        HOLDS(tenant_free(other, T_CLIENT + 1, T_MEM) == RM_OK);
    }
}

TEST(what_a_closed_file_held_can_be_had_at_once)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, closes_and_takes_again, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK_EQ(s.refused_memory, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST(ticks_that_take_long_come_less_often_but_not_while_there_is_doubt)
{
    enum { MS = 1000000 };
    CHECK_EQ(bh_gate_pace_ms(20, 0, false), 20);
    CHECK_EQ(bh_gate_pace_ms(20, 8 * MS / 10, false), 20);
    CHECK_EQ(bh_gate_pace_ms(20, 8 * MS / 10 + 1, false), 40);
    CHECK_EQ(bh_gate_pace_ms(20, 2 * MS, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, UINT64_C(100000) * MS, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, UINT64_C(100000) * MS, true), 10);
    CHECK_EQ(bh_gate_pace_ms(1, 0, true), 1);
}

static void much_behind(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
    HOLDS(take_behind(fd, T_CLIENT, T_MEM + 1, 40 * BH_MIB) == RM_OK);
    until_killed();
}

TEST(a_tenant_with_more_than_its_cap_is_ended)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, much_behind, &s), 128 + SIGKILL);
    CHECK_EQ(s.killed, 1);
    CHECK_STR(s.why_killed,
              "the driver counts 104 MiB on GPU 0, more than the cap of 64 MiB: memory was obtained "
              "behind the gate");
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* The one who took it ends; a child that asked for nothing holds the file. */
static void left_with_a_child(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 48 * BH_MIB) == RM_OK);
    if (fork() == 0) {
        shared->number[0] = 1;
        while (shared->number[1] == 0)
            (void)usleep(500);
        _exit(0);
    }
    while (shared->number[0] == 0)
        (void)usleep(500);
    _exit(0);
}

static void outlived(void)
{
    pid_t child = fork();
    if (child == 0)
        left_with_a_child();
    HOLDS(waitpid(child, NULL, 0) == child);
    int fd = tenant_open(T_CLIENT + 1);
    HOLDS(tenant_take(fd, T_CLIENT + 1, T_MEM, 16 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT + 1, T_MEM + 1, 2 * BH_MIB) == RM_NO_MEMORY);
    shared->number[1] = 1;
    for (int i = 0; i < 2000 && sim_held().bytes > 16 * BH_MIB; i++)
        (void)usleep(1000);
    HOLDS(tenant_take(fd, T_CLIENT + 1, T_MEM + 1, 48 * BH_MIB) == RM_OK);
}

TEST(what_a_child_keeps_open_is_counted_after_its_parent)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, outlived, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* Too much, held by a child that the gate never heard of. */
static void hidden(void)
{
    int fd = tenant_open(T_CLIENT);
    pid_t child = fork();
    if (child == 0)
        until_killed();
    HOLDS(take_behind(fd, T_CLIENT, T_MEM, 2 * cap) == RM_OK);
    until_killed();
}

TEST(nobody_of_a_lease_that_is_ended_is_left)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, hidden, &s), 128 + SIGKILL);
    CHECK_EQ(s.killed, 2);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- managed memory ---- */

static int uvm_open(void)
{
    uint64_t init[2] = {0};
    int fd = bh_sim_open("/dev/nvidia-uvm");
    HOLDS(fd >= 0);
    HOLDS(bh_sim_ioctl(fd, UVM_INITIALIZE, init) == 0);
    return fd;
}

static void managed(void)
{
    uint64_t range[3];
    void *at[3];
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    at[0] = bh_sim_mmap(uvm, 40 * BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range[0]);
    HOLDS(at[0] != MAP_FAILED);
    HOLDS(bh_sim_mmap(uvm, 30 * BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range[1]) == MAP_FAILED);
    HOLDS(errno == ENOMEM);
    HOLDS(bh_sim_mmap(uvm, SIZE_MAX - 5, PROT_READ | PROT_WRITE, MAP_SHARED, &range[1]) == MAP_FAILED);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 26 * BH_MIB) == RM_NO_MEMORY); /* one cap for both */
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 24 * BH_MIB) == RM_OK);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(bh_sim_munmap(uvm, at[0], 40 * BH_MIB, range[0]) == 0);
    /* credited when it was seen to be gone */
    uint32_t status = RM_NO_MEMORY;
    for (int i = 0; i < 2000 && status == RM_NO_MEMORY; i++) {
        status = tenant_take(fd, T_CLIENT, T_MEM, cap);
        (void)usleep(1000);
    }
    HOLDS(status == RM_OK);
}

TEST(managed_memory_counts_at_its_full_size_while_it_is_mapped)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, managed, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* What a thread does that is between the answer and the mapping: the gate's part, and later the node's. */
static void ask_to_map(int uvm, uint64_t bytes)
{
    HOLDS(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, uvm, 0) == MAP_FAILED && errno == ENODEV);
}

static void map_now(int uvm, uint64_t bytes)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MAP, .a = bytes, .b = 3, .c = MAP_SHARED};
    HOLDS(bh_sim_call(&msg, NULL, 0, uvm, NULL) == 0);
}

static bool can_map(int uvm, uint64_t bytes)
{
    uint64_t range;
    void *at = bh_sim_mmap(uvm, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, &range);
    HOLDS(at != MAP_FAILED || errno == ENOMEM);
    return at != MAP_FAILED && bh_sim_munmap(uvm, at, bytes, range) == 0;
}

enum { GIVEN_UP_US = 1000000 }; /* long after the gate has looked at all mappings, also at its slow pace */

/* It waits for something else first, and is believed to have mapped nothing. */
static void maps_late(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    ask_to_map(uvm, 40 * BH_MIB);
    (void)usleep(GIVEN_UP_US);
    map_now(uvm, 40 * BH_MIB);
    HOLDS(!can_map(uvm, 30 * BH_MIB));
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 26 * BH_MIB) == RM_NO_MEMORY);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 24 * BH_MIB) == RM_OK);
}

/* It does not get on, and another one asks. */
static void maps_when_it_can(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open(), status;
    const pid_t child = fork();
    if (child == 0) {
        int own = uvm_open();
        ask_to_map(own, 40 * BH_MIB);
        (void)raise(SIGSTOP);
        map_now(own, 40 * BH_MIB);
        shared->number[0] = 1;
        until_killed();
    }
    HOLDS(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    (void)usleep(GIVEN_UP_US);
    HOLDS(!can_map(uvm, 30 * BH_MIB));
    HOLDS(kill(child, SIGCONT) == 0);
    while (!shared->number[0])
        (void)usleep(1000);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 24 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 1) == RM_NO_MEMORY);
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

/* What was granted is had by others once it is known not to be mapped: its thread is busy with something else. */
static void never_maps(void)
{
    int uvm = uvm_open(), status;
    const pid_t child = fork();
    if (child == 0) {
        ask_to_map(uvm_open(), 40 * BH_MIB);
        shared->number[0] = 1;
        for (;;)
            ;
    }
    while (!shared->number[0])
        (void)usleep(1000);
    while (!can_map(uvm, 30 * BH_MIB))
        (void)usleep(1000);
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

TEST(whoever_is_slow_to_map_what_it_was_granted_has_it_still)
{
    static tenant_fn *const ways[] = {maps_late, maps_when_it_can, never_maps};
    for (size_t i = 0; i < BH_COUNT_OF(ways); i++) {
        struct bh_gate_stats s;
        sim_begin();
        CHECK_EQ(lease(cap, ways[i], &s), 0);
        CHECK_STR(s.why_killed, "");
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
}

/* ---- many threads, and threads that are at something else ---- */

enum { MAPPERS = 40, MAPPER_MIB = 1, STACK = 64 << 10 };
static pthread_barrier_t mappers;

static uint64_t number(size_t i)
{
    return __atomic_load_n(&shared->number[i], __ATOMIC_SEQ_CST);
}

static int until_told(void *arg)
{
    const struct timespec some = {.tv_nsec = 1000000};
    (void)arg;
    (void)__atomic_fetch_add(&shared->number[0], 1, __ATOMIC_SEQ_CST);
    while (!number(1))
        (void)syscall(SYS_nanosleep, &some, NULL);
    return 0;
}

static void *asks_and_maps(void *arg)
{
    const int uvm = *(int *)arg;
    (void)pthread_barrier_wait(&mappers); /* sanitizers know of no thread that begins after such a child */
    ask_to_map(uvm, MAPPER_MIB * BH_MIB);
    /* Nobody can interrupt it while this child lives: as in a call that waits for a lock. */
    char *stack = bh_alloc(1, STACK);
    HOLDS(clone(until_told, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) > 0);
    map_now(uvm, MAPPER_MIB * BH_MIB);
    (void)__atomic_fetch_add(&shared->number[2], 1, __ATOMIC_SEQ_CST);
    until_killed();
    return NULL;
}

/* More threads between the answer and the mapping than were ever thought of. */
static void maps_by_many(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    HOLDS(pthread_barrier_init(&mappers, NULL, MAPPERS) == 0);
    for (int i = 0; i < MAPPERS; i++)
        HOLDS(pthread_create(&thread, NULL, asks_and_maps, &uvm) == 0);
    while (number(0) < MAPPERS)
        (void)usleep(1000);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 24 * BH_MIB) == RM_OK); /* all that is left */
    for (int i = 0; i < 20; i++)
        HOLDS(!can_map(uvm, BH_MIB));
    __atomic_store_n(&shared->number[1], 1, __ATOMIC_SEQ_CST);
    while (number(2) < MAPPERS)
        (void)usleep(1000);
    HOLDS(!can_map(uvm, BH_MIB));
}

TEST(many_threads_that_are_slow_to_map_have_it_still)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, maps_by_many, &s), 0);
    CHECK_STR(s.why_killed, "");
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static struct {
    int uvm, gone[2];
    bool spins;
} other;

static uint64_t own_cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Maps all there is and unmaps it, which nobody sees; then it is at something else, and makes no call that the gate sees. */
static void *maps_and_unmaps(void *arg)
{
    enum {
        LONGER_MS = 30
    }; /* than any call that maps takes; what the kernel has summed up is some milliseconds old */
    uint64_t range;
    (void)arg;
    const uint64_t from = own_cpu_ms();
    void *at = bh_sim_mmap(other.uvm, cap, PROT_READ | PROT_WRITE, MAP_SHARED, &range);
    HOLDS(at != MAP_FAILED && bh_sim_munmap(other.uvm, at, cap, range) == 0);
    while (other.spins && own_cpu_ms() - from < LONGER_MS)
        continue;
    __atomic_store_n(&shared->number[0], (uint64_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    while (other.spins && !number(1))
        continue;
    (void)!read(other.gone[0], &(char){0}, 1);
    return NULL;
}

static bool waits(uint64_t tid)
{
    struct bh_thread_seen seen;
    bh_thread_look((uint32_t)getpid(), (uint32_t)tid, &seen);
    return seen.state == 'S';
}

/* What one thread gave back another one takes at once. */
static void frees_and_takes_at_once(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT);
    other.uvm = uvm_open();
    for (int i = 0; i < 20; i++) {
        HOLDS(pipe(other.gone) == 0);
        shared->number[0] = shared->number[1] = 0;
        HOLDS(pthread_create(&thread, NULL, maps_and_unmaps, NULL) == 0);
        while (!number(0) || (!other.spins && !waits(number(0))))
            (void)usleep(100);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
        __atomic_store_n(&shared->number[1], 1, __ATOMIC_SEQ_CST);
        close(other.gone[1]);
        HOLDS(pthread_join(thread, NULL) == 0);
        close(other.gone[0]);
    }
}

TEST(what_one_thread_unmapped_another_has_at_once)
{
    /* One that waits is at something else, where the call itself maps. */
    struct bh_driver driver = bh_driver_simulated;
    driver.maps_in_mmap = true;
    for (int spins = 0; spins < 2; spins++) {
        struct bh_gate_stats s;
        other.spins = spins;
        lease_driver = spins ? NULL : &driver;
        sim_begin();
        const int rc = lease(cap, frees_and_takes_at_once, &s);
        lease_driver = NULL;
        CHECK_EQ(rc, 0);
        CHECK_EQ(s.refused_memory, 0);
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
}

enum { IDLE_MAPPERS = 64 * 6, MORE_MAPS = 40 };

/* One that was granted a mapping once, and does nothing since. */
static void *asks_and_waits(void *arg)
{
    ask_to_map(*(int *)arg, 4096);
    (void)__atomic_fetch_add(&shared->number[0], 1, __ATOMIC_SEQ_CST);
    until_killed();
    return NULL;
}

static void maps_beside_many(void)
{
    pthread_t thread;
    pthread_attr_t small;
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    HOLDS(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
    for (int i = 0; i < IDLE_MAPPERS; i++)
        HOLDS(pthread_create(&thread, &small, asks_and_waits, &uvm) == 0);
    while (number(0) < IDLE_MAPPERS)
        (void)usleep(1000);
    while (tenant_take(fd, T_CLIENT, T_MEM, cap) != RM_OK) /* until all are known to map nothing */
        (void)usleep(1000);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    shared->number[1] = 1;
    for (int i = 0; i < MORE_MAPS; i++)
        ask_to_map(uvm, 4096);
    shared->number[1] = 2;
}

static uint64_t looks_at_threads;

/* The kernel's part of a look, counted while one maps beside many. */
void __real_bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret);
void __wrap_bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret);
void __wrap_bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret)
{
    looks_at_threads += shared->number[1] == 1;
    __real_bh_thread_look(pid, tid, ret);
}

/* With 64 * k threads that are known each call of another one looked at all of them. */
TEST(mapping_takes_no_longer_beside_many_threads)
{
    struct bh_gate_stats s;
    looks_at_threads = 0;
    sim_begin();
    CHECK_EQ(lease(cap, maps_beside_many, &s), 0);
    printf("# %" PRIu64 " looks for %d calls beside %d threads\n", looks_at_threads, MORE_MAPS, IDLE_MAPPERS);
    CHECK(looks_at_threads > 0 && looks_at_threads < MORE_MAPS * IDLE_MAPPERS / 2);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* As one whose mmap has gigabytes to unmap first: it runs, for longer than it would take to ask. */
static void *asks_runs_and_maps(void *arg)
{
    enum { LONGER_MS = 60 };
    (void)arg;
    ask_to_map(other.uvm, cap);
    const uint64_t from = own_cpu_ms();
    while (own_cpu_ms() - from < LONGER_MS)
        continue;
    __atomic_store_n(&shared->number[0], 1, __ATOMIC_SEQ_CST);
    while (!number(1))
        continue;
    map_now(other.uvm, cap);
    return NULL;
}

static void takes_what_another_is_about_to_map(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT);
    other.uvm = uvm_open();
    HOLDS(pthread_create(&thread, NULL, asks_runs_and_maps, NULL) == 0);
    while (!number(0))
        (void)usleep(100);
    for (int i = 0; i < 5; i++)
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 2 * BH_MIB) == RM_NO_MEMORY);
    __atomic_store_n(&shared->number[1], 1, __ATOMIC_SEQ_CST);
    HOLDS(pthread_join(thread, NULL) == 0);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 2 * BH_MIB) == RM_NO_MEMORY);
}

TEST(one_that_takes_long_to_map_has_it_still)
{
    struct bh_gate_stats s;
    struct bh_driver driver = bh_driver_simulated;
    driver.maps_in_mmap = true;
    lease_driver = &driver;
    sim_begin();
    const int rc = lease(cap, takes_what_another_is_about_to_map, &s);
    lease_driver = NULL;
    CHECK_EQ(rc, 0);
    CHECK_STR(s.why_killed, "");
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void maps_behind(void)
{
    int fd = tenant_open(T_CLIENT), uvm = uvm_open();
    uint64_t range;
    HOLDS(fd >= 0 && bh_sim_mmap(uvm, BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range) != MAP_FAILED);
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MAP, .a = 3 * cap, .b = 3, .c = MAP_SHARED};
    HOLDS(bh_sim_call(&msg, NULL, 0, uvm, NULL) == 0);
    until_killed();
}

TEST(mapping_behind_the_gate_is_ended)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, maps_behind, &s), 128 + SIGKILL);
    CHECK_STR(s.why_killed,
              "more managed memory is mapped than the cap of 64 MiB allows: it was mapped behind the gate");
    CHECK(sim_end());
}

/* ---- calls that run in the tenant ---- */

static struct rm_alloc raced;
static struct rm_memory_params raced_params = {.size = 16 * BH_MIB};

__attribute__((no_sanitize("thread"))) static void *flips(void *arg)
{
    volatile struct rm_alloc *a = &raced;
    (void)arg;
    for (;;) {
        a->class = RM_CLASS_EVENT; /* let through */
        a->class = RM_CLASS_MEMORY_LOCAL;
    }
    return NULL;
}

/* Looked at as an event, carried out as memory. */
static void wins_races(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT);
    HOLDS(pthread_create(&thread, NULL, flips, NULL) == 0);
    for (uint32_t i = 0;; i++) {
        raced.client = T_CLIENT;
        raced.parent = T_DEV;
        raced.object = T_MEM + i;
        raced.params = (uintptr_t)&raced_params;
        (void)bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(raced)), &raced);
        if (i % 64 == 63)
            (void)usleep(1000);
    }
}

TEST(races_that_are_won_end_the_tenant)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, wins_races, &s), 128 + SIGKILL);
    CHECK(s.killed >= 1);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* What the driver takes for channels is in nobody's count: it neither counts against the cap nor looks like a theft. */
static void full_and_with_channels(void)
{
    int fd = tenant_open(T_CLIENT);
    uint32_t group[5] = {0};
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, SIM_TSG, RM_CLASS_CHANNEL_GROUP, group, 0) == RM_OK);
    HOLDS(sim_alloc(fd, T_CLIENT, SIM_TSG, SIM_CHAN, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK);
    uint32_t n = 0;
    while (tenant_take(fd, T_CLIENT, T_MEM + n, 2 * BH_MIB) == RM_OK)
        n++;
    HOLDS(n == 32);
    HOLDS(sim_alloc(fd, T_CLIENT, SIM_TSG, SIM_CHAN + 1, RM_CLASS_CHANNEL_HOPPER, NULL, 0) == RM_OK);
    for (int i = 0; i < 50; i++)
        (void)usleep(1000);
}

TEST(channels_are_not_memory)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, full_and_with_channels, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* The warden has no processor between reading the mappings and asking where the thread is. */
static int64_t mapped_late(uint32_t pid, const int *files, size_t n)
{
    const int64_t now = bh_driver_simulated.mapped(pid, files, n);
    if (shared->number[1] == 1 && now == 0) { /* has asked, has not mapped: its thread runs now */
        shared->number[1] = 2;
        for (int i = 0; i < 2000 && shared->number[1] != 3; i++)
            (void)usleep(1000);
        (void)usleep(20000); /* it waits for something else by now */
    }
    return now;
}

static void maps_while_the_warden_looks(void)
{
    int fd = tenant_open(T_CLIENT), status;
    HOLDS(uvm_open() >= 0);
    const pid_t child = fork();
    if (child == 0) {
        int own = uvm_open();
        ask_to_map(own, 40 * BH_MIB);
        (void)raise(SIGSTOP); /* as one on the run queue that gets no processor */
        map_now(own, 40 * BH_MIB);
        shared->number[1] = 3;
        until_killed();
    }
    HOLDS(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    (void)usleep(100000); /* longer than anybody is waited for */
    shared->number[1] = 1;
    while (shared->number[1] != 2)
        (void)usleep(100);
    HOLDS(kill(child, SIGCONT) == 0);
    while (shared->number[1] != 3)
        (void)usleep(100);
    (void)usleep(25000);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 40 * BH_MIB) == RM_NO_MEMORY);
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

TEST(whoever_maps_while_it_is_looked_at_is_counted)
{
    struct bh_gate_stats s;
    struct bh_driver driver = bh_driver_simulated;
    driver.mapped = mapped_late;
    lease_driver = &driver;
    sim_begin();
    const int rc = lease(cap, maps_while_the_warden_looks, &s);
    lease_driver = NULL;
    CHECK_EQ(rc, 0);
    CHECK_STR(s.why_killed, "");
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST_MAIN
