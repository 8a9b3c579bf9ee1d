/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wardens that are killed, each followed by another one: the tenant gets what it would have got, and no byte more.
 *
 * Killed before and after every single call that a warden makes to the driver, one run for each; and at moments picked at
 * random, also while they take over.
 */
#include "warden/gate_fixture.h"

#include "base/choice.h"
#include "warden/served_page_fixture.h"

static const uint64_t cap = 64 * BH_MIB;
enum { OWN = 0xaa000001 }; /* a tenant's client; not of those that the driver gives to a warden */

static struct {
    volatile uint64_t calls;   /* made to the driver, by all wardens */
    volatile uint64_t kill_at; /* the number of the call; 0: none */
    volatile bool kill_after;
    volatile bool ready; /* one of them was */
    volatile uint32_t killed;
    struct bh_gate_stats stats;
    char why[sizeof(((struct bh_err *)NULL)->msg)];
} *wardens;

/* ---- wardens ---- */

static int deadly_ioctl(int fd, uint32_t cmd, void *arg)
{
    const bool now = ++wardens->calls == wardens->kill_at;
    if (now && !wardens->kill_after)
        (void)raise(SIGKILL);
    int rc = bh_driver_simulated.ioctl(fd, cmd, arg);
    if (now)
        (void)raise(SIGKILL);
    return rc;
}

static void now_ready(void *arg)
{
    (void)arg;
    wardens->ready = true;
}

static pid_t start_warden(const struct bh_gate_config *config)
{
    struct bh_err err = {0};
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = bh_gate_serve(config, &wardens->stats, &err);
    memcpy(wardens->why, err.msg, sizeof(wardens->why));
    _exit(rc < 0);
}

struct plan {
    uint32_t kills; /* at random, so many; 0: as the driver's calls say */
    uint64_t seed;
    uint32_t tick_ms; /* 0: 5 */
};

/* Before the next kill: mostly soon, so that a warden that takes over is hit too. */
static useconds_t moment(struct bh_choice *c)
{
    static const uint32_t up_to[] = {300, 1000, 3000, 10000, 10000, 30000};
    return bh_choose(c, up_to[bh_choose(c, BH_COUNT_OF(up_to))]);
}

/* One warden after the other until one comes to the end. How many were killed, or -1: one failed. */
static int serve_in_turn(struct bh_gate_config *config, const struct plan *plan)
{
    uint8_t bytes[4096];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), plan->seed);
    for (int killed = 0;; killed++) {
        int status;
        pid_t warden = start_warden(config);
        if ((uint32_t)killed < plan->kills) {
            (void)usleep(moment(&c));
            (void)kill(warden, SIGKILL);
        }
        if (waitpid(warden, &status, 0) != warden)
            return -1;
        if (WIFEXITED(status)) {
            if (WEXITSTATUS(status) != 0)
                printf("# warden %d: %s\n", killed, wardens->why);
            return WEXITSTATUS(status) == 0 ? killed : -1;
        }
        wardens->killed++;
        /* As a launcher has it: one that was killed before it was ready may not have begun its journal. */
        config->adopted = wardens->ready;
    }
}

/* The tenant's exit status, or -1. */
static int lease_in_turn(tenant_fn *fn, const struct plan *plan, int *ret_killed)
{
    static struct bh_driver driver;
    struct leased l;
    int status;
    driver = bh_driver_simulated;
    driver.ioctl = deadly_ioctl;
    const int journal = memfd_create("journal", MFD_CLOEXEC);
    if (journal < 0 || !lease_begin(fn, &l))
        return -1;
    struct bh_gate_config config = {.listener = l.listener,
                                    .root = l.root,
                                    .root_pid = (uint32_t)l.tenant,
                                    .cap_bytes = cap,
                                    .tick_ms = plan->tick_ms ? plan->tick_ms : 5,
                                    .journal = journal,
                                    .driver = &driver,
                                    .ready = now_ready};
    *ret_killed = serve_in_turn(&config, plan);
    close(l.listener);
    close(l.root);
    close(journal);
    if (*ret_killed < 0)
        (void)kill(l.launcher, SIGKILL);
    if (waitpid(l.launcher, &status, 0) != l.launcher || *ret_killed < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void wardens_begin(void)
{
    if (!wardens)
        wardens = mmap(NULL, sizeof(*wardens), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(wardens, 0, sizeof(*wardens));
    sim_begin();
}

/* ---- killed at every call to the driver ---- */

/* To the last byte, so that anything charged twice, or forgotten, is seen. */
static void exact(void)
{
    struct rm_vid_heap heap = {
        .client = OWN, .parent = T_DEV, .function = RM_HEAP_ALLOC_SIZE, .size = 4 * BH_MIB};
    int fd = tenant_open(OWN), other = tenant_open(OWN + 1);
    struct rm_dup d = {
        .client = OWN + 1, .parent = T_DEV, .object = T_MEM, .source_client = OWN, .source_object = T_MEM};
    HOLDS(tenant_take(fd, OWN, T_MEM, 40 * BH_MIB) == RM_OK);
    HOLDS(bh_sim_ioctl(other, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) == 0 && d.status == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, 24 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 2, 1) == RM_NO_MEMORY);
    /* a name that is taken stays what it was */
    HOLDS(tenant_free(fd, OWN, T_MEM + 1) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM, 2 * BH_MIB) == RM_INSERT_DUPLICATE_NAME);
    HOLDS(tenant_free(fd, OWN, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM, 26 * BH_MIB) == RM_NO_MEMORY);
    HOLDS(tenant_free(other, OWN + 1, T_MEM) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM, cap) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, 1) == RM_NO_MEMORY);
    HOLDS(tenant_free(fd, OWN, T_MEM) == RM_OK);
    heap.memory = T_MEM + 5;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(heap)), &heap) == 0 && heap.status == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM, 60 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, 1) == RM_NO_MEMORY);
    heap.function = RM_HEAP_FREE;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(heap)), &heap) == 0 && heap.status == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, 4 * BH_MIB) == RM_OK);
    HOLDS(tenant_free(fd, OWN, OWN) == RM_OK);
    HOLDS(tenant_take(other, OWN + 1, T_MEM, cap) == RM_OK);
    HOLDS(tenant_take(other, OWN + 1, T_MEM + 1, 1) == RM_NO_MEMORY);
}

static void killed_at_every_call(bool after)
{
    uint64_t calls = UINT64_MAX;
    for (uint64_t at = 0; at <= calls; at++) {
        int killed;
        wardens_begin();
        wardens->kill_at = at;
        wardens->kill_after = after;
        int rc = lease_in_turn(exact, &(struct plan){0}, &killed);
        if (rc != 0 || shared->line)
            printf("# killed %s call %" PRIu64 ": tenant failed in line %d\n", after ? "after" : "before", at,
                   shared->line);
        CHECK_EQ(rc, 0);
        CHECK_EQ(killed, at > 0);
        CHECK_EQ(wardens->stats.killed, 0);
        CHECK_EQ(wardens->stats.peak_bytes, cap);
        if (at == 0)
            calls = wardens->calls;
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
    printf("# %" PRIu64 " calls\n", calls);
    CHECK(calls > 15);
}

TEST(a_warden_killed_before_any_call_to_the_driver_is_not_missed)
{
    killed_at_every_call(false);
}

TEST(a_warden_killed_after_any_call_to_the_driver_is_not_missed)
{
    killed_at_every_call(true);
}

/* The driver chooses the name: what was made and not told stays charged, and goes with its client. */
static void unnamed(void)
{
    int fd = tenant_open(OWN);
    for (int i = 0; i < 4; i++) {
        struct rm_memory_params p = {.size = 10 * BH_MIB};
        struct rm_alloc a = {
            .client = OWN, .parent = T_DEV, .class = RM_CLASS_MEMORY_LOCAL, .params = (uintptr_t)&p};
        HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 && a.status == RM_OK && a.object != 0);
        HOLDS(tenant_free(fd, OWN, a.object) == RM_OK);
    }
    HOLDS(tenant_take(fd, OWN, T_MEM, 50 * BH_MIB) == RM_OK);
    HOLDS(tenant_free(fd, OWN, OWN) == RM_OK);
    fd = tenant_open(OWN);
    HOLDS(tenant_take(fd, OWN, T_MEM, cap) == RM_OK);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, 1) == RM_NO_MEMORY);
}

TEST(what_nobody_can_name_stays_charged_until_its_client_is_gone)
{
    for (uint64_t at = 1; at <= 12; at++) {
        int killed;
        wardens_begin();
        wardens->kill_at = at;
        wardens->kill_after = true;
        CHECK_EQ(lease_in_turn(unnamed, &(struct plan){0}, &killed), 0);
        CHECK_EQ(killed, 1);
        CHECK_EQ(wardens->stats.killed, 0);
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
}

/* ---- killed at any moment ---- */

static void churn(void)
{
    int fd = tenant_open(OWN);
    for (uint32_t i = 0; i < 300; i++) {
        HOLDS(tenant_take(fd, OWN, T_MEM, 38 * BH_MIB) == RM_OK);
        HOLDS(tenant_take(fd, OWN, T_MEM + 1, 26 * BH_MIB) == RM_OK);
        HOLDS(tenant_take(fd, OWN, T_MEM + 2, 1) == RM_NO_MEMORY);
        HOLDS(tenant_free(fd, OWN, T_MEM) == RM_OK);
        HOLDS(tenant_free(fd, OWN, T_MEM + 1) == RM_OK);
    }
    close(fd);
}

/* Children with their own files, and one that only inherits. */
static void family(void)
{
    int fd = tenant_open(OWN), status;
    HOLDS(tenant_take(fd, OWN, T_MEM, 24 * BH_MIB) == RM_OK);
    for (uint32_t round = 0; round < 10; round++) {
        pid_t children[4];
        for (uint32_t i = 0; i < BH_COUNT_OF(children); i++) {
            children[i] = fork();
            if (children[i] == 0) {
                int own = tenant_open(OWN + 1 + i);
                for (int k = 0; k < 10; k++) {
                    HOLDS(tenant_take(own, OWN + 1 + i, T_MEM, 10 * BH_MIB) == RM_OK);
                    if (k < 9)
                        HOLDS(tenant_free(own, OWN + 1 + i, T_MEM) == RM_OK);
                }
                _exit(0);
            }
        }
        for (uint32_t i = 0; i < BH_COUNT_OF(children); i++)
            HOLDS(waitpid(children[i], &status, 0) == children[i] && status == 0);
        HOLDS(tenant_take(fd, OWN, T_MEM + 1, 40 * BH_MIB) == RM_OK);
        HOLDS(tenant_take(fd, OWN, T_MEM + 2, 1) == RM_NO_MEMORY);
        HOLDS(tenant_free(fd, OWN, T_MEM + 1) == RM_OK);
    }
    close(fd);
}

/* Files that come and go under the same numbers. */
static void reopen(void)
{
    for (uint32_t i = 0; i < 60; i++) {
        int fd = tenant_open(OWN);
        HOLDS(tenant_take(fd, OWN, T_MEM, cap) == RM_OK);
        HOLDS(tenant_take(fd, OWN, T_MEM + 1, 1) == RM_NO_MEMORY);
        close(fd);
    }
}

static void managed(void)
{
    uint64_t init[2] = {0}, range[2];
    int fd = tenant_open(OWN), uvm = bh_sim_open("/dev/nvidia-uvm");
    HOLDS(uvm >= 0 && bh_sim_ioctl(uvm, UVM_INITIALIZE, init) == 0);
    for (uint32_t i = 0; i < 60; i++) {
        void *at = bh_sim_mmap(uvm, 40 * BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range[0]);
        HOLDS(at != MAP_FAILED);
        HOLDS(bh_sim_mmap(uvm, 30 * BH_MIB, PROT_READ | PROT_WRITE, MAP_SHARED, &range[1]) == MAP_FAILED);
        HOLDS(tenant_take(fd, OWN, T_MEM, 24 * BH_MIB) == RM_OK);
        HOLDS(tenant_take(fd, OWN, T_MEM + 1, 1) == RM_NO_MEMORY);
        HOLDS(bh_sim_munmap(uvm, at, 40 * BH_MIB, range[0]) == 0);
        HOLDS(tenant_free(fd, OWN, T_MEM) == RM_OK);
    }
    close(uvm);
    close(fd);
}

enum { ENOUGH = 5 }; /* wardens, of each tenant */
static tenant_fn *again;

/* However fast it is, and however late those come who kill. */
static void until_enough_were_killed(void)
{
    do
        again();
    while (wardens->killed < ENOUGH);
}

static void killed_at_random(tenant_fn *fn, uint32_t kills)
{
    static uint64_t seed = 1;
    int all = 0;
    again = fn;
    for (int round = 0; round < 3; round++, seed++) {
        int killed;
        wardens_begin();
        int rc =
            lease_in_turn(until_enough_were_killed, &(struct plan){.kills = kills, .seed = seed}, &killed);
        if (rc != 0 || shared->line)
            printf("# seed %" PRIu64 ": tenant failed in line %d\n", seed, shared->line);
        CHECK_STR(wardens->stats.why_killed, "");
        CHECK_EQ(wardens->stats.killed, 0);
        CHECK_EQ(rc, 0);
        CHECK(wardens->stats.peak_bytes <= cap);
        CHECK(killed >= ENOUGH);
        all += killed;
        CHECK(holds_nothing_soon());
        CHECK(sim_end());
    }
    printf("# %d wardens killed\n", all);
}

TEST(wardens_killed_while_a_tenant_allocates_are_not_missed)
{
    killed_at_random(churn, 60);
}

TEST(wardens_killed_while_processes_come_and_go_are_not_missed)
{
    killed_at_random(family, 60);
}

TEST(wardens_killed_while_files_come_and_go_are_not_missed)
{
    killed_at_random(reopen, 40);
}

TEST(wardens_killed_while_managed_memory_is_mapped_are_not_missed)
{
    killed_at_random(managed, 40);
}

/* A file that nobody has is known by its memory alone, and the journal is written anew meanwhile. */
static void loses_a_file(void)
{
    int fd = tenant_open(OWN), other = tenant_open(OWN + 1);
    HOLDS(tenant_take(fd, OWN, T_MEM, 48 * BH_MIB) == RM_OK);
    HOLDS(dup2(other, fd) == fd);
    for (int i = 0; i < 600; i++) {
        HOLDS(tenant_take(fd, OWN + 1, T_MEM, 2 * BH_MIB) == RM_OK);
        HOLDS(tenant_free(fd, OWN + 1, T_MEM) == RM_OK);
    }
    HOLDS(tenant_take(fd, OWN + 1, T_MEM, cap) == RM_OK);
}

TEST(a_lost_file_is_not_charged_for_good)
{
    const struct plan plan = {.tick_ms = 60000};
    int killed = 0;
    wardens_begin();
    wardens->kill_at = 1100;
    CHECK_EQ(lease_in_turn(loses_a_file, &plan, &killed), 0);
    CHECK_EQ(killed, 1);
    CHECK_EQ(wardens->stats.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- processes whose first thread shows nothing ---- */

static char folder[BH_SCRATCH_SOCKET_PATH];
static int go_on[2];

enum { NOT_HERE, SERVER, ENDING, ASKED }; /* of shared->number: ENDING: who it is about */

/* A file of a file system that does not answer. The process that makes it must not be the one that ends: whoever serves the file
 * would end with it. */
static bool makes_a_slow_file(int *ret)
{
    served_keeps_closing = true;
    served_asked = &shared->number[ASKED];
    *ret = served_file(folder, false);
    if (*ret < 0)
        fprintf(stderr, "# no such file here: %s\n", strerror(errno));
    shared->number[NOT_HERE] = *ret < 0;
    shared->number[SERVER] = (uint64_t)served_by;
    return *ret >= 0;
}

static void answers_no_more(void)
{
    HOLDS(shared->number[NOT_HERE] || kill((pid_t)shared->number[SERVER], SIGKILL) == 0);
}

static int takes_its_own(void)
{
    int own = tenant_open(OWN + 1);
    HOLDS(tenant_take(own, OWN + 1, T_MEM, 40 * BH_MIB) == RM_OK);
    shared->number[ENDING] = (uint64_t)getpid();
    return own;
}

/* Its files are closed one after the other, and the first takes long. */
static void ends_slowly(void)
{
    int file, status;
    (void)makes_a_slow_file(&file);
    pid_t child = fork();
    if (child == 0) {
        (void)takes_its_own();
        _exit(0);
    }
    HOLDS(waitpid(child, &status, 0) == child && status == 0);
    _exit(0);
}

static void *waits_for_a_page(void *arg)
{
    char byte;
    return read(*(const int *)arg, &byte, 1) < 0 ? arg : NULL;
}

/* All of it was told to end, and one of its threads does not come to it. */
static void ends_but_for_a_thread(void)
{
    int file, status;
    pthread_t thread;
    const bool made = makes_a_slow_file(&file);
    pid_t child = fork();
    if (child == 0) {
        HOLDS(!made || pthread_create(&thread, NULL, waits_for_a_page, &file) == 0);
        while (made && !shared->number[ASKED])
            (void)usleep(1000);
        (void)takes_its_own();
        _exit(0);
    }
    HOLDS(waitpid(child, &status, 0) == child && status == 0);
    _exit(0);
}

static void *takes_more(void *arg)
{
    char byte;
    const int own = *(const int *)arg;
    HOLDS(read(go_on[0], &byte, 1) == 1);
    /* Another warden, and the same file: where one thread's files can be reached at all (PIDFD_THREAD, 6.9). */
    const bool reached = syscall(SYS_pidfd_open, getpid(), O_EXCL) >= 0;
    HOLDS(tenant_take(own, OWN + 1, T_MEM + 1, 2 * BH_MIB) == RM_OK || !reached);
    _exit(0);
}

static void goes_on_without_its_first_thread(void)
{
    static int own;
    pthread_t thread;
    own = takes_its_own();
    HOLDS(pthread_create(&thread, NULL, takes_more, &own) == 0);
    (void)syscall(SYS_exit, 0);
}

static void lets_go_on(void)
{
    HOLDS(write(go_on[1], "x", 1) == 1);
}

static tenant_fn *ends, *lets_end;

static void loses_a_child(void)
{
    char path[64], to[8];
    int fd = tenant_open(OWN), status;
    pid_t child = fork();
    if (child == 0)
        ends();
    while (!shared->number[ENDING] && !shared->line)
        (void)usleep(1000);
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)shared->number[ENDING], STDERR_FILENO);
    while (readlink(path, to, sizeof(to)) >= 0)
        (void)usleep(1000);
    /* The warden looks again at who has what, and is followed by another. */
    if (!shared->number[NOT_HERE])
        HOLDS(tenant_take(fd, OWN, T_MEM, 60 * BH_MIB) == RM_NO_MEMORY);
    wardens->kill_at = wardens->calls + 1;
    HOLDS(tenant_take(fd, OWN, T_MEM, 2 * BH_MIB) == RM_OK && wardens->killed == 1);
    lets_end();
    HOLDS(waitpid(child, &status, 0) == child && status == 0);
    HOLDS(tenant_take(fd, OWN, T_MEM + 1, cap - 2 * BH_MIB) == RM_OK);
}

static void lost_with_a_warden(tenant_fn *child_ends, tenant_fn *let)
{
    const struct plan plan = {.tick_ms = 60000};
    int killed = 0;
    ends = child_ends;
    lets_end = let;
    CHECK(bh_scratch_make(folder, sizeof(folder), "adopt"));
    CHECK_EQ(pipe(go_on), 0);
    wardens_begin();
    CHECK_EQ(lease_in_turn(loses_a_child, &plan, &killed), 0);
    CHECK_EQ(killed, 1);
    CHECK_EQ(wardens->stats.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
    CHECK_EQ(rmdir(folder), 0);
    close(go_on[0]);
    close(go_on[1]);
}

/* A process that is ending has its files until it has ended, which takes as long as the slowest of them to close. */
TEST(one_that_was_ending_is_not_charged_for_good)
{
    lost_with_a_warden(ends_slowly, answers_no_more);
}

/* Files are closed by the last thread that ends. What is kept by those to come, and given up for lost, would be found shared, and
 * the next warden could not prove any more that it is gone. */
TEST(one_whose_first_thread_ended_before_the_others_is_not_charged_for_good)
{
    lost_with_a_warden(ends_but_for_a_thread, answers_no_more);
}

TEST(one_whose_first_thread_is_gone_keeps_its_files_under_the_next_warden)
{
    lost_with_a_warden(goes_on_without_its_first_thread, lets_go_on);
}

TEST_MAIN
