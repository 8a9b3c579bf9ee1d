/* SPDX-License-Identifier: Apache-2.0 */
/* What gets past the calls: seen in the driver's count, counted, and ended when it is too much. */
#include "warden/gate_fixture.h"
#include "warden/gate_inside.h"
#include "warden/thread.h"

#include <dirent.h>
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
    CHECK_EQ(bh_gate_pace_ms(20, 0, false, false), 20);
    CHECK_EQ(bh_gate_pace_ms(20, MS / 10, false, false), 20);
    CHECK_EQ(bh_gate_pace_ms(20, MS / 10 + 1, false, false), 40);
    CHECK_EQ(bh_gate_pace_ms(20, MS, false, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, UINT64_C(100000) * MS, false, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, UINT64_C(100000) * MS, false, true), 10);
    CHECK_EQ(bh_gate_pace_ms(1, 0, false, true), 1);
}

/* What a call that was let through long ago takes is found as soon as what one takes now. */
TEST(the_driver_is_asked_as_often_where_nobody_calls)
{
    CHECK_EQ(bh_gate_pace_ms(20, 0, true, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, UINT64_C(100000) * 1000000, true, false), 60);
    CHECK_EQ(bh_gate_pace_ms(20, 0, true, true), 10);
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

/* All processes of the machine are looked through for who else has a lease's files: by then it has ended. */
static enum { UNWATCHED, NOT_LOOKED, LOOKED_BEFORE, LOOKED_AFTER } looked;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    if (looked == NOT_LOOKED && strcmp(path, "/proc") == 0) {
        looked = LOOKED_BEFORE;
        for (int i = 0; i < 3000 && looked == LOOKED_BEFORE; i++) {
            looked = kill((pid_t)shared->number[0], 0) < 0 ? LOOKED_AFTER : LOOKED_BEFORE;
            (void)usleep(1000);
        }
    }
    return __real_opendir(path);
}

static void much_behind_by_name(void)
{
    shared->number[0] = (uint64_t)getpid();
    much_behind();
}

TEST(who_is_known_is_ended_before_the_others_are_looked_for)
{
    struct bh_gate_stats s;
    sim_begin();
    looked = NOT_LOOKED;
    const int rc = lease(cap, much_behind_by_name, &s);
    const unsigned when = looked;
    looked = UNWATCHED;
    CHECK_EQ(rc, 128 + SIGKILL);
    CHECK_EQ(when, LOOKED_AFTER);
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
