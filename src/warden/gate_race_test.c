/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that change everything while calls are in flight: every structure, its parameters, the file behind a number, and
 * who is there at all. What the gate carries out itself cannot be raced: the cap holds at every moment and nobody is
 * ended for it. What runs in the tenant can be: then the tenant is ended.
 */
#include "base/choice.h"
#include "warden/gate_fixture.h"

static const uint64_t cap = 64 * BH_MIB;
enum { MOST, OVER, CALLS, ROUNDS = 600, ROUNDS_MOST = 100 * ROUNDS, CALLERS = 2, NAMES = 6 };

/* What the callers ask with and the others write to. */
static union {
    struct rm_alloc alloc;
    struct rm_alloc_short alloc_short;
    struct rm_alloc_memory memory;
    struct rm_vid_heap heap;
    struct rm_free free;
    struct rm_dup dup;
    uint32_t words[64];
} asked[CALLERS];
static struct rm_memory_params asked_params[CALLERS];
static int driver_fd, other_fd, racing_fd;

static void note_most(void)
{
    const uint64_t now = sim_held().bytes;
    uint64_t most = __atomic_load_n(&shared->number[MOST], __ATOMIC_SEQ_CST);
    while (now > most && !__atomic_compare_exchange_n(&shared->number[MOST], &most, now, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
}

static bool is_over(void)
{
    return __atomic_load_n(&shared->number[OVER], __ATOMIC_SEQ_CST) != 0;
}

/* ---- who writes ---- */

/* Values that mean something, in every place where the gate looks. Plain stores, as a hostile thread would. */
__attribute__((no_sanitize("thread"))) static void *flips_values(void *arg)
{
    static const uint32_t values[] = {
        0,          1,    7,          T_CLIENT, T_CLIENT + 1,           T_DEV,
        T_MEM,      0x40, 0xc2,       0x3f,     RM_HEAP_FREE,           RM_HEAP_ALLOC_SIZE,
        2 * BH_MIB, 128,  UINT32_MAX, 1U << 25, RM_MEMORY_FLAG_VIRTUAL, 0x80000000};
    const size_t who = (size_t)(uintptr_t)arg;
    volatile uint32_t *words = asked[who].words, *params = (volatile uint32_t *)(void *)&asked_params[who];
    for (uint32_t i = 0; !is_over(); i++) {
        const uint32_t value = values[i % BH_COUNT_OF(values)];
        const size_t at = i * 7 % 16;
        /* not the class, nor a function: what would run in the tenant is for another test */
        if (at != 2 && at != 3)
            words[at] = value;
        params[i * 5 % (sizeof(struct rm_memory_params) / 4)] = value;
    }
    return NULL;
}

/* Another file under the number, from one moment to the next. */
static void *flips_files(void *arg)
{
    (void)arg;
    while (!is_over()) {
        HOLDS(dup2(other_fd, racing_fd) == racing_fd);
        HOLDS(dup2(driver_fd, racing_fd) == racing_fd);
    }
    return NULL;
}

/* ---- who asks ---- */

__attribute__((no_sanitize("thread"))) static uint32_t fill(size_t who, uint32_t kind, uint32_t object)
{
    asked_params[who] = (struct rm_memory_params){.size = 4 * BH_MIB};
    switch (kind) {
    case 0:
        asked[who].alloc = (struct rm_alloc){.client = T_CLIENT,
                                             .parent = T_DEV,
                                             .object = object,
                                             .class = RM_CLASS_MEMORY_LOCAL,
                                             .params = (uintptr_t)&asked_params[who]};
        return RM_IOC(RM_ALLOC, sizeof(struct rm_alloc));
    case 1:
        asked[who].alloc_short = (struct rm_alloc_short){.client = T_CLIENT,
                                                         .parent = T_DEV,
                                                         .object = object,
                                                         .class = RM_CLASS_MEMORY_PHYSICAL,
                                                         .params = (uintptr_t)&asked_params[who]};
        return RM_IOC(RM_ALLOC, sizeof(struct rm_alloc_short));
    case 2:
        asked[who].memory = (struct rm_alloc_memory){.client = T_CLIENT,
                                                     .parent = T_DEV,
                                                     .object = object,
                                                     .class = RM_CLASS_MEMORY_LOCAL,
                                                     .limit = 4 * BH_MIB - 1,
                                                     .fd = -1};
        return RM_IOC(RM_ALLOC_MEMORY, sizeof(struct rm_alloc_memory));
    case 3:
        asked[who].heap = (struct rm_vid_heap){.client = T_CLIENT,
                                               .parent = T_DEV,
                                               .function = RM_HEAP_ALLOC_SIZE,
                                               .memory = object,
                                               .size = 4 * BH_MIB};
        return RM_IOC(RM_VID_HEAP_CONTROL, sizeof(struct rm_vid_heap));
    case 4:
        asked[who].dup = (struct rm_dup){.client = T_CLIENT,
                                         .parent = T_DEV,
                                         .object = object,
                                         .source_client = T_CLIENT,
                                         .source_object = T_MEM + 1};
        return RM_IOC(RM_DUP_OBJECT, sizeof(struct rm_dup));
    default:
        asked[who].free = (struct rm_free){.client = T_CLIENT, .object = object};
        return RM_IOC(RM_FREE, sizeof(struct rm_free));
    }
}

/* Also where those who flip have all the processors: until something was obtained. */
static bool is_enough(int rounds)
{
    return rounds >= ROUNDS_MOST ||
           (rounds >= ROUNDS && __atomic_load_n(&shared->number[MOST], __ATOMIC_SEQ_CST) > 0);
}

/* Calls as the kernel makes them, and no more: what the gate does not answer is not taken any further. */
static void *asks(void *arg)
{
    const size_t who = (size_t)(uintptr_t)arg;
    uint8_t bytes[ROUNDS * 2];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), 77 + who);
    for (int i = 0; !is_enough(i); i++) {
        const uint32_t kind = bh_choose(&c, 8), object = T_MEM + (uint32_t)who * NAMES + bh_choose(&c, NAMES);
        const uint32_t cmd = fill(who, kind, object);
        (void)ioctl(racing_fd, cmd, &asked[who]);
        (void)__atomic_fetch_add(&shared->number[CALLS], 1, __ATOMIC_SEQ_CST);
        if (i % 8 == 0)
            note_most();
        if (i % 32 == 0)
            (void)usleep(200); /* who flips is to come in between, on a machine with few processors too */
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*fn)(void *), size_t who)
{
    HOLDS(pthread_create(thread, NULL, fn, (void *)(uintptr_t)who) == 0);
}

static void everything_changes(void)
{
    pthread_t asking[CALLERS], flipping[CALLERS], files;
    int pair[2];
    driver_fd = tenant_open(T_CLIENT);
    HOLDS(pipe(pair) == 0);
    other_fd = pair[0];
    racing_fd = dup(driver_fd);
    start(&files, flips_files, 0);
    for (size_t i = 0; i < CALLERS; i++) {
        start(&flipping[i], flips_values, i);
        start(&asking[i], asks, i);
    }
    for (size_t i = 0; i < CALLERS; i++)
        HOLDS(pthread_join(asking[i], NULL) == 0);
    __atomic_store_n(&shared->number[OVER], 1, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < CALLERS; i++)
        HOLDS(pthread_join(flipping[i], NULL) == 0);
    HOLDS(pthread_join(files, NULL) == 0);
    note_most();
    /* and the gate still knows what there is: the rest of the cap, and no more */
    HOLDS(tenant_free(driver_fd, T_CLIENT, T_DEV) == RM_OK);
    struct rm_device_params device = {0};
    HOLDS(sim_alloc(driver_fd, T_CLIENT, T_CLIENT, T_DEV, RM_CLASS_DEVICE, &device, 0) == RM_OK);
    HOLDS(tenant_take(driver_fd, T_CLIENT, T_MEM, cap) == RM_OK);
    HOLDS(tenant_take(driver_fd, T_CLIENT, T_MEM + 1, 1) == RM_NO_MEMORY);
}

TEST(what_the_gate_carries_out_cannot_be_raced)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, everything_changes, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(shared->number[CALLS] >= CALLERS * ROUNDS);
    CHECK(shared->number[MOST] > 0 && shared->number[MOST] <= cap);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- what runs in the tenant ---- */

__attribute__((no_sanitize("thread"))) static void *flips_classes(void *arg)
{
    static const uint32_t classes[] = {RM_CLASS_EVENT, RM_CLASS_MEMORY_LOCAL, RM_CLASS_CHANNEL_HOPPER,
                                       RM_CLASS_MEMORY_VIRTUAL, RM_CLASS_MEMORY_LOCAL};
    volatile uint32_t *class = &asked[0].alloc.class;
    (void)arg;
    for (uint32_t i = 0; !is_over(); i++)
        *class = classes[i % BH_COUNT_OF(classes)];
    return NULL;
}

/* Processes that come, race and go; the file is everybody's. */
static void hordes(void)
{
    pthread_t thread;
    driver_fd = tenant_open(T_CLIENT);
    for (uint32_t round = 0;; round++) {
        pid_t child = fork();
        if (child == 0) {
            start(&thread, flips_classes, 0);
            for (uint32_t i = 0; i < 40; i++) {
                const uint32_t cmd = fill(0, 0, T_MEM + round * 64 + i);
                (void)bh_sim_ioctl(driver_fd, cmd, &asked[0].alloc);
            }
            _exit(0);
        }
        HOLDS(waitpid(child, NULL, 0) == child);
        note_most();
    }
}

TEST(what_runs_in_the_tenant_and_is_raced_ends_it)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, hordes, &s), 128 + SIGKILL);
    CHECK(s.killed >= 1);
    CHECK(s.why_killed[0] != '\0');
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST_MAIN
