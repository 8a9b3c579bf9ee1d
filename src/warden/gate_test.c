/* SPDX-License-Identifier: Apache-2.0 */
/* A lease from beginning to end: real system call filters, real processes, simulated silicon. */
#include "warden/gate_fixture.h"
#include "warden/served_page_fixture.h"

static const uint64_t cap = 64 * BH_MIB;

static void holds_the_cap(void)
{
    struct rm_memory_params p = {.size = 48 * BH_MIB + 1};
    int fd = tenant_open(T_CLIENT);
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_MEM, RM_CLASS_MEMORY_LOCAL, &p, sizeof(p)) == RM_OK);
    HOLDS(p.size == 50 * BH_MIB); /* what the driver made of it came back */
    p.size = 16 * BH_MIB;
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_MEM + 1, RM_CLASS_MEMORY_LOCAL, &p, 0) == RM_NO_MEMORY);
    HOLDS(p.size == 16 * BH_MIB);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 14 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 2, 1) == RM_NO_MEMORY);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 2, 50 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 3, 1) == RM_NO_MEMORY);
    /* a device's end is the end of what is below it */
    HOLDS(tenant_free(fd, T_CLIENT, T_DEV) == RM_OK);
    struct rm_device_params device = {0};
    HOLDS(sim_alloc(fd, T_CLIENT, T_CLIENT, T_DEV, RM_CLASS_DEVICE, &device, 0) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
}

TEST(memory_up_to_the_cap_and_no_byte_more)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, holds_the_cap, &s), 0);
    CHECK_EQ(s.refused_memory, 3);
    CHECK_EQ(s.peak_bytes, cap);
    CHECK_EQ(s.killed, 0);
    CHECK_STR(s.why_killed, "");
    CHECK(s.continued >= 1); /* the client */
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void cycles(void)
{
    int fd = tenant_open(T_CLIENT);
    for (int i = 0; i < 500; i++) {
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 38 * BH_MIB) == RM_OK);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    }
}

TEST(cycles_below_the_cap_are_never_refused)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, cycles, &s), 0);
    CHECK_EQ(s.refused_memory, 0);
    CHECK(sim_end());
}

static void dups(void)
{
    int fd = tenant_open(T_CLIENT), other = tenant_open(T_CLIENT + 1);
    struct rm_dup d = {.client = T_CLIENT + 1,
                       .parent = T_DEV,
                       .object = T_MEM,
                       .source_client = T_CLIENT,
                       .source_object = T_MEM};
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 40 * BH_MIB) == RM_OK);
    HOLDS(bh_sim_ioctl(other, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) == 0 && d.status == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 24 * BH_MIB) == RM_OK);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM + 1) == RM_OK);
    /* the second name keeps it */
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 26 * BH_MIB) == RM_NO_MEMORY);
    HOLDS(tenant_free(other, T_CLIENT + 1, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, cap) == RM_OK);
}

TEST(a_second_name_counts_nothing_and_keeps_everything)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, dups, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void closes(void)
{
    for (uint32_t i = 0; i < 20; i++) {
        int fd = tenant_open(T_CLIENT + i);
        HOLDS(tenant_take(fd, T_CLIENT + i, T_MEM, cap) == RM_OK);
        int second = dup(fd);
        close(fd);
        HOLDS(tenant_take(second, T_CLIENT + i, T_MEM + 1, BH_MIB) == RM_NO_MEMORY); /* still open */
        close(second);
    }
    /* Nobody asks for anything, and yet what was closed is closed: the gate keeps no file open. */
    for (int i = 0; i < 2000 && (sim_held().files > 2 || sim_held().bytes); i++)
        (void)usleep(1000);
    HOLDS(sim_held().files <= 2 && sim_held().bytes == 0);
}

TEST(closing_a_file_gives_back_what_was_made_on_it)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, closes, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(sim_end());
}

/* A child that takes all there is, says so, and waits for its end. */
static pid_t greedy_child(uint32_t client)
{
    pid_t child = fork();
    if (child == 0) {
        int fd = tenant_open(client);
        HOLDS(tenant_take(fd, client, T_MEM, cap) == RM_OK);
        shared->number[0]++;
        for (;;)
            (void)pause();
    }
    return child;
}

/* The number of a file that was known goes to another known one, whose own number is closed. */
static void moves(void)
{
    int a = tenant_open(T_CLIENT), b = tenant_open(T_CLIENT + 1);
    HOLDS(tenant_take(b, T_CLIENT + 1, T_MEM, BH_MIB) == RM_OK);
    HOLDS(dup2(b, a) == a && close(b) == 0);
    for (int i = 0; i < 30; i++) /* ticks go by */
        (void)usleep(1000);
    HOLDS(tenant_take(a, T_CLIENT + 1, T_MEM + 1, BH_MIB) == RM_OK);
    HOLDS(tenant_free(a, T_CLIENT + 1, T_MEM) == RM_OK);
}

TEST(a_file_under_another_number_is_the_same_file)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, moves, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void kills(void)
{
    int fd = tenant_open(T_CLIENT);
    for (uint64_t i = 1; i <= 10; i++) {
        pid_t child = greedy_child(T_CLIENT + (uint32_t)i);
        while (shared->number[0] < i && !shared->line)
            (void)usleep(500);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, BH_MIB) == RM_NO_MEMORY);
        (void)kill(child, SIGKILL);
        HOLDS(waitpid(child, NULL, 0) == child);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
        HOLDS(tenant_free(fd, T_CLIENT, T_MEM) == RM_OK);
    }
}

TEST(processes_share_one_cap_and_a_killed_one_leaves_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, kills, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

enum { RACERS = 8 };

static void races(void)
{
    int status;
    pid_t children[RACERS];
    for (uint32_t i = 0; i < RACERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int fd = tenant_open(T_CLIENT + i);
            (void)fd;
            (void)__atomic_fetch_add(&shared->number[1], 1, __ATOMIC_SEQ_CST);
            while (shared->number[2] == 0)
                (void)usleep(100);
            for (uint32_t k = 0; k < 16; k++)
                if (tenant_take(fd, T_CLIENT + i, T_MEM + k, 2 * BH_MIB) == RM_OK)
                    (void)__atomic_fetch_add(&shared->number[3], 2 * BH_MIB, __ATOMIC_SEQ_CST);
            (void)__atomic_fetch_add(&shared->number[4], 1, __ATOMIC_SEQ_CST);
            while (shared->number[4] < RACERS && !shared->line) /* nobody gives back before all have taken */
                (void)usleep(100);
            _exit(0);
        }
    }
    while (shared->number[1] < RACERS && !shared->line)
        (void)usleep(500);
    shared->number[2] = 1;
    for (size_t i = 0; i < RACERS; i++)
        HOLDS(waitpid(children[i], &status, 0) == children[i] && status == 0);
    HOLDS(shared->number[3] == cap);
}

TEST(processes_that_race_get_the_cap_together)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, races, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK_EQ(s.refused_memory, RACERS * 16 - 32);
    CHECK_EQ(s.peak_bytes, cap);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void signals_the_warden(void)
{
    int fd = tenant_open(T_CLIENT);
    HOLDS(kill(shared->warden, SIGTERM) == 0 && kill(shared->warden, SIGINT) == 0);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, BH_MIB) == RM_OK);
}

TEST(a_signal_does_not_end_it_while_there_is_a_tenant)
{
    struct bh_gate_stats s;
    sigset_t both, before;
    int caught;
    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGTERM);
    (void)sigaddset(&both, SIGINT);
    sim_begin();
    /* Held back here too, or the test would end when the gate has. */
    (void)pthread_sigmask(SIG_BLOCK, &both, &before);
    CHECK_EQ(lease(cap, signals_the_warden, &s), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sigwait(&both, &caught), 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK(sim_end());
}

static void touches_nothing(void)
{
    int pair[2], flag = 1, n = 0;
    HOLDS(pipe(pair) == 0);
    HOLDS(ioctl(pair[0], FIONREAD, &n) == 0 && ioctl(pair[0], FIONBIO, &flag) == 0);
    /* numbers of the driver's, but of other files: they behave as ever */
    HOLDS(ioctl(pair[0], _IOC(_IOC_READ, 'd', RM_ALLOC, 8), &n) < 0 && errno == ENOTTY);
    HOLDS(ioctl(pair[0], RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)), &n) < 0 && errno == ENOTTY);
    HOLDS(ioctl(9999, _IOC(_IOC_READ, 'd', RM_ALLOC, 8), &n) < 0 && errno == EBADF);
    FILE *f = tmpfile();
    HOLDS(f && ftruncate(fileno(f), 8192) == 0);
    char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    HOLDS(at != MAP_FAILED);
    at[4096] = 1;
}

TEST(a_tenant_without_a_gpu_notices_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, touches_nothing, &s), 0);
    CHECK_EQ(s.denied, 0);
    CHECK_EQ(s.peak_bytes, 0);
    CHECK(sim_end());
}

/* A file of its own file system, which never answers whoever closes it. The gate must not: a child takes and frees meanwhile,
 * and what it holds is counted. */
static char folder[] = "/tmp/bulkhead-gate-XXXXXX";

static void maps_what_it_serves(void)
{
    served_keeps_closing = true;
    const int file = served_file(folder, false);
    if (file < 0) {
        fprintf(stderr, "# no such file here: %s\n", strerror(errno));
        shared->number[0] = 1;
        return;
    }
    HOLDS(mmap(NULL, SERVED_PAGE, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED);
    int n = 0;
    HOLDS(ioctl(file, RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)), &n) < 0 && errno == ENOTTY);
    pid_t child = fork();
    if (child == 0) {
        int fd = tenant_open(T_CLIENT);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, 1) == RM_NO_MEMORY);
        shared->number[1] = 1;
        (void)kill(served_by, SIGKILL);
        (void)kill(getppid(), SIGKILL);
        (void)kill(getpid(), SIGKILL);
    }
    for (;;)
        (void)pause();
}

TEST(a_file_that_never_closes_keeps_nobody)
{
    struct bh_gate_stats s;
    CHECK(mkdtemp(folder) != NULL);
    sim_begin();
    const int rc = lease(cap, maps_what_it_serves, &s);
    CHECK(shared->number[0] || rc == 128 + SIGKILL);
    CHECK(shared->number[0] || shared->number[1] == 1);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
    CHECK_EQ(rmdir(folder), 0);
}

TEST(without_a_driver_it_says_why)
{
    struct bh_gate_stats s;
    struct bh_err err = {0};
    const struct bh_gate_config config = {
        .listener = -1, .root = -1, .cap_bytes = cap, .driver = &bh_driver_simulated};
    (void)unsetenv("BULKHEAD_SIM");
    CHECK_EQ(bh_gate_serve(&config, &s, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "/dev/nvidiactl"));
}

TEST_MAIN
