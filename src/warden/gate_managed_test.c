/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: counted while it is mapped, and between the answer and the mapping, by however many threads. */
#include "warden/gate_fixture.h"
#include "warden/gate_inside.h"
#include "warden/thread.h"

#include <sched.h>

static const uint64_t cap = 64 * BH_MIB;

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

static uint64_t number(size_t i)
{
    return __atomic_load_n(&shared->number[i], __ATOMIC_SEQ_CST);
}

#ifndef __SANITIZE_THREAD__ /* gcc 13's ends a program in which several threads have such children */
enum { MAPPERS = 40, MAPPER_MIB = 1, STACK = 64 << 10 };
static pthread_barrier_t mappers;

static int until_told(void *arg)
{
    const struct timespec some = {.tv_nsec = 1000000};
    (void)arg;
    (void)__atomic_fetch_add(&shared->number[0], 1, __ATOMIC_SEQ_CST);
    while (!number(1) && !shared->line) /* or who would tell has failed */
        (void)syscall(SYS_nanosleep, &some, NULL);
    return 0;
}

static void *asks_and_maps(void *arg)
{
    const int uvm = *(int *)arg;
    char *stack = bh_alloc(1, STACK);     /* now: who works for long after it asked is taken to have mapped */
    (void)pthread_barrier_wait(&mappers); /* sanitizers know of no thread that begins after such a child */
    ask_to_map(uvm, MAPPER_MIB * BH_MIB);
    /* Nobody can interrupt it while this child lives: as in a call that waits for a lock. */
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
#endif

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

enum { RUNNING_MAPPERS = 300, LOOKS_A_TICK = 128 };
static uint64_t times_mapped;

static int64_t counts_mapped(uint32_t pid, const int *files, size_t n)
{
    times_mapped += shared->number[1] == 1;
    return bh_driver_simulated.mapped(pid, files, n);
}

/* Of one that runs nobody can say whether it is about to map. It leaves the processors to whoever has something to do. */
static void *asks_and_runs(void *arg)
{
    ask_to_map(*(int *)arg, 4096);
    (void)__atomic_fetch_add(&shared->number[0], 1, __ATOMIC_SEQ_CST);
    (void)sched_setscheduler(0, SCHED_IDLE,
                             &(struct sched_param){0}); /* the last call: it must not hold a lock */
    for (;;)
        continue;
    return NULL;
}

static void runs_many(void)
{
    pthread_t thread;
    pthread_attr_t small;
    int fd = tenant_open(T_CLIENT), status;
    const pid_t child = fork();
    if (child == 0) {
        int uvm = uvm_open();
        HOLDS(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
        for (int i = 0; i < RUNNING_MAPPERS; i++)
            HOLDS(pthread_create(&thread, &small, asks_and_runs, &uvm) == 0);
        until_killed();
    }
    while (number(0) < RUNNING_MAPPERS)
        (void)usleep(1000);
    shared->number[1] = 1;
    (void)usleep(GIVEN_UP_US);
    shared->number[1] = 2;
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
}

TEST(a_tick_takes_no_longer_beside_many_threads_that_may_map)
{
    struct bh_gate_stats s;
    struct bh_driver driver = bh_driver_simulated;
    driver.maps_in_mmap = true;
    driver.mapped = counts_mapped;
    lease_driver = &driver;
    looks_at_threads = times_mapped = 0;
    sim_begin();
    const int rc = lease(cap, runs_many, &s);
    lease_driver = NULL;
    printf("# %" PRIu64 " looks in %" PRIu64 " ticks beside %d threads\n", looks_at_threads, times_mapped,
           RUNNING_MAPPERS);
    CHECK_STR(s.why_killed, "");
    CHECK_EQ(rc, 0);
    CHECK(times_mapped > 2 && looks_at_threads > 0);
    CHECK(looks_at_threads <= (times_mapped + 1) * LOOKS_A_TICK);
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

static void map_another_file(void)
{
    const int memory = memfd_create("another", MFD_CLOEXEC);
    HOLDS(ftruncate(memory, 4096) == 0 &&
          mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) != MAP_FAILED);
}

/* What was let through was of another file then. The gate has never heard of this one. */
static void maps_long_after(void)
{
    const int uvm = uvm_open();
    map_another_file();
    (void)usleep(GIVEN_UP_US);
    map_now(uvm, 3 * cap);
    until_killed();
}

TEST(a_mapping_let_through_long_ago_may_become_another)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, maps_long_after, &s), 128 + SIGKILL);
    CHECK_STR(s.why_killed,
              "more managed memory is mapped than the cap of 64 MiB allows: it was mapped behind the gate");
    CHECK(sim_end());
}

static uint64_t looks_at_mappings;
static bool other_stops;

static int64_t counts_looks(uint32_t pid, const int *files, size_t n)
{
    looks_at_mappings++;
    return bh_driver_simulated.mapped(pid, files, n);
}

static void one_may_linger(void)
{
    const pid_t child = fork();
    if (child == 0) {
        map_another_file();
        (void)(other_stops && raise(SIGSTOP));
        until_killed();
    }
    (void)usleep(GIVEN_UP_US);
    HOLDS(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

/* One that is stopped may still be about to map; one that waits for something else is not. */
TEST(who_may_be_about_to_map_is_looked_at_each_time)
{
    struct bh_driver driver = bh_driver_simulated;
    driver.mapped = counts_looks;
    for (int stops = 0; stops < 2; stops++) {
        struct bh_gate_stats s;
        other_stops = stops;
        looks_at_mappings = 0;
        lease_driver = &driver;
        sim_begin();
        const int rc = lease(cap, one_may_linger, &s);
        lease_driver = NULL;
        printf("# %s: %llu looks at mappings, %llu counts\n", stops ? "stopped" : "waits",
               (unsigned long long)looks_at_mappings, (unsigned long long)s.checks);
        CHECK_EQ(rc, 0);
        CHECK_STR(s.why_killed, "");
        CHECK(stops ? looks_at_mappings * 2 >= s.checks : looks_at_mappings * 2 < s.checks);
        CHECK(sim_end());
    }
}

TEST_MAIN
