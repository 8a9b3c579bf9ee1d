/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants put into calls: every form, nonsense, and arguments that change while they are looked at. */
#include "warden/gate_fixture.h"

static const uint64_t cap = 64 * BH_MIB;

/* A page that can be read and not written, and an address where nothing is. */
static void *read_only(void)
{
    return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void *const nowhere = (void *)16;

static void denied_calls(void)
{
    int fd = tenant_open(T_CLIENT);
    uint32_t a[8] = {T_CLIENT, T_DEV, T_MEM, RM_CLASS_MEMORY_LOCAL};
    struct rm_vid_heap h = {.client = T_CLIENT, .parent = T_DEV, .function = 6};
    struct rm_free f = {.client = T_CLIENT, .object = T_DEV};
    HOLDS(ioctl(fd, RM_IOC(RM_XFER_CMD, 16), a) < 0 && errno == EPERM);
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC_OBJECT, 20), a) < 0 && errno == EPERM);
    HOLDS(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'G', RM_FREE, sizeof(f)), &f) < 0 && errno == EPERM);
    HOLDS(ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) < 0 && errno == EPERM);
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, 47), a) < 0 && errno == EINVAL);
    HOLDS(ioctl(fd, RM_IOC(RM_FREE, 0), a) < 0 && errno == EINVAL);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, BH_MIB) == RM_OK); /* it goes on */
}

TEST(what_nests_or_evades_is_denied)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, denied_calls, &s), 0);
    CHECK_EQ(s.denied, 4);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static uint32_t third_party(void)
{
    return sim_alloc(tenant_open(T_CLIENT), T_CLIENT, T_DEV, T_MEM, RM_CLASS_THIRD_PARTY, NULL, 0);
}

static void tells_nobody(void)
{
    HOLDS(third_party() == RM_NOT_SUPPORTED); /* what CUDA takes for a driver without it */
}

static void tells_others(void)
{
    HOLDS(third_party() == RM_OK);
}

TEST(memory_is_not_made_known_to_other_devices)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, tells_nobody, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(sim_end());
}

TEST(memory_is_made_known_to_other_devices_where_that_was_allowed)
{
    struct bh_gate_stats s;
    sim_begin();
    lease_rdma = true;
    CHECK_EQ(lease(cap, tells_others, &s), 0);
    lease_rdma = false;
    CHECK(sim_end());
}

static void bad_pointers(void)
{
    int fd = tenant_open(T_CLIENT);
    struct rm_memory_params p = {.size = BH_MIB};
    struct rm_alloc a = {
        .client = T_CLIENT, .parent = T_DEV, .object = T_MEM, .class = RM_CLASS_MEMORY_LOCAL};
    static const uint32_t calls[] = {
        RM_IOC(RM_ALLOC, sizeof(struct rm_alloc)),    RM_IOC(RM_ALLOC, sizeof(struct rm_alloc_short)),
        RM_IOC(RM_FREE, sizeof(struct rm_free)),      RM_IOC(RM_ALLOC_MEMORY, sizeof(struct rm_alloc_memory)),
        RM_IOC(RM_DUP_OBJECT, sizeof(struct rm_dup)), RM_IOC(RM_VID_HEAP_CONTROL, sizeof(struct rm_vid_heap)),
    };
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        HOLDS(ioctl(fd, calls[i], nowhere) < 0 && errno == EFAULT);
        HOLDS(ioctl(fd, calls[i], NULL) < 0 && errno == EFAULT);
        HOLDS(ioctl(fd, calls[i], (void *)UINTPTR_MAX) < 0 && errno == EFAULT);
    }
    a.params = (uintptr_t)nowhere;
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0 && errno == EFAULT);
    a.params = (uintptr_t)&p;
    a.rights = (uintptr_t)nowhere;
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0 && errno == EFAULT);
    a.rights = 0;
    a.params_size = 64;
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 && a.status == RM_INVALID_PARAM_STRUCT);
    a.params_size = 0;
    a.params = 0;
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 && a.status == RM_INVALID_PARAM_STRUCT);
    HOLDS(sim_held().bytes == 0);
    /* The driver's answer cannot be written: it was carried out all the same, and is counted. */
    struct rm_alloc *ro = read_only();
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(*ro)), ro) < 0 || ro->status == 0);
    a.params = (uintptr_t)ro;
    HOLDS(ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a) == 0 || errno == EFAULT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 7, cap) == RM_OK);
}

TEST(bad_pointers_fault_and_take_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, bad_pointers, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

static void absurd(void)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2 * BH_MIB, UINT64_C(1) << 63,
                                     cap + 1};
    int fd = tenant_open(T_CLIENT);
    for (size_t i = 0; i < BH_COUNT_OF(sizes); i++)
        HOLDS(tenant_take(fd, T_CLIENT, T_MEM, sizes[i]) == RM_NO_MEMORY);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 0) == RM_INVALID_ARGUMENT); /* the driver's own answer */
    HOLDS(tenant_take(fd, T_CLIENT + 5, T_MEM, BH_MIB) == RM_INVALID_OBJECT_PARENT); /* nobody's client */
    struct rm_memory_params p = {.size = BH_MIB};
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV + 9, T_MEM, RM_CLASS_MEMORY_LOCAL, &p, 0) ==
          RM_INVALID_OBJECT_PARENT);
    struct rm_device_params device = {.device = 4000000000u};
    HOLDS(sim_alloc(fd, T_CLIENT, T_CLIENT, T_DEV + 1, RM_CLASS_DEVICE, &device, 0) == RM_INVALID_DEVICE);
    HOLDS(tenant_free(fd, T_CLIENT, T_MEM + 77) == RM_OK); /* as the card answered */
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 2 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, 2 * BH_MIB) == RM_INSERT_DUPLICATE_NAME);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 1, cap - 2 * BH_MIB) == RM_OK); /* none of that was charged */
}

TEST(absurd_numbers_charge_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, absurd, &s), 0);
    CHECK_EQ(s.peak_bytes, cap);
    CHECK(sim_end());
}

static void every_form(void)
{
    int fd = tenant_open(T_CLIENT);
    struct rm_memory_params p = {.size = 8 * BH_MIB};
    struct rm_alloc_short s = {.client = T_CLIENT,
                               .parent = T_DEV,
                               .object = T_MEM,
                               .class = RM_CLASS_MEMORY_PHYSICAL,
                               .params = (uintptr_t)&p,
                               .params_size = sizeof(p)};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(s)), &s) == 0 && s.status == RM_OK);
    HOLDS(s.params == (uintptr_t)&p); /* its own pointer, not ours */
    struct rm_vid_heap h = {.client = T_CLIENT,
                            .parent = T_DEV,
                            .function = RM_HEAP_ALLOC_SIZE,
                            .memory = T_MEM + 1,
                            .size = 16 * BH_MIB};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) == 0 && h.status == RM_OK);
    struct rm_alloc_memory m = {.client = T_CLIENT,
                                .parent = T_DEV,
                                .object = T_MEM + 2,
                                .class = RM_CLASS_MEMORY_LOCAL,
                                .limit = 32 * BH_MIB - 1,
                                .fd = 7};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) == 0 && m.status == RM_OK && m.fd == 7);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 3, 10 * BH_MIB) == RM_NO_MEMORY);
    h.memory = T_MEM + 4;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) == 0 && h.status == RM_NO_MEMORY);
    m.object = T_MEM + 4;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) == 0 && m.status == RM_NO_MEMORY);
    m.limit = UINT64_MAX;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) == 0 && m.status == RM_INVALID_LIMIT);
    /* what is not video memory is not charged */
    p = (struct rm_memory_params){.size = cap * 4, .attr = 1 << 25};
    HOLDS(sim_alloc(fd, T_CLIENT, T_DEV, T_MEM + 5, RM_CLASS_MEMORY_SYSTEM, &p, 0) == RM_OK);
    m = (struct rm_alloc_memory){.client = T_CLIENT,
                                 .parent = T_DEV,
                                 .object = T_MEM + 6,
                                 .class = RM_CLASS_MEMORY_OS,
                                 .limit = cap * 4 - 1};
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC_MEMORY, sizeof(m)), &m) == 0 && m.status == RM_OK);
    h.function = RM_HEAP_FREE;
    h.memory = T_MEM + 1;
    HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h) == 0 && h.status == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 3, 24 * BH_MIB) == RM_OK);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM + 8, 1) == RM_NO_MEMORY);
}

TEST(every_form_of_asking_is_charged)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, every_form, &s), 0);
    CHECK_EQ(s.peak_bytes, cap);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- vanishing ---- */

static void *takes_and_frees(void *arg)
{
    const int fd = *(const int *)arg;
    for (uint32_t i = 0;; i++) {
        (void)tenant_take(fd, T_CLIENT, T_MEM + i % 4, 2 * BH_MIB);
        (void)tenant_free(fd, T_CLIENT, T_MEM + i % 4);
    }
    return NULL;
}

static void vanishes(void)
{
    for (useconds_t i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            int fd = tenant_open(T_CLIENT);
            pthread_t threads[2];
            for (size_t k = 0; k < 2; k++)
                HOLDS(pthread_create(&threads[k], NULL, takes_and_frees, &fd) == 0);
            (void)usleep(i * 150);
            _exit(0); /* in the middle of calls */
        }
        if (i % 2)
            (void)usleep(i * 100), (void)kill(child, SIGKILL);
        HOLDS(waitpid(child, NULL, 0) == child);
    }
    int fd = tenant_open(T_CLIENT);
    HOLDS(tenant_take(fd, T_CLIENT, T_MEM, cap) == RM_OK);
}

TEST(processes_that_vanish_in_a_call_leave_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, vanishes, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- racing ---- */

static struct {
    struct rm_alloc call;
    struct rm_memory_params params;
} raced;

/* The bytes flip while the gate looks at them; plain stores, as a hostile thread would. */
__attribute__((no_sanitize("thread"))) static void *flips(void *arg)
{
    volatile struct rm_alloc *a = &raced.call;
    volatile struct rm_memory_params *p = &raced.params;
    (void)arg;
    while (shared->number[0] == 0) {
        p->size = cap * 8;
        p->attr = 1 << 25;
        a->params_size = 7;
        p->size = BH_MIB;
        p->attr = 0;
        a->params_size = 0;
    }
    return NULL;
}

static void racing(void)
{
    pthread_t thread;
    int fd = tenant_open(T_CLIENT);
    HOLDS(pthread_create(&thread, NULL, flips, NULL) == 0);
    for (uint32_t i = 0; i < 2000; i++) {
        raced.call.client = T_CLIENT;
        raced.call.parent = T_DEV;
        raced.call.object = T_MEM + i % 8;
        raced.call.class = RM_CLASS_MEMORY_LOCAL;
        raced.call.params = (uintptr_t)&raced.params;
        (void)ioctl(fd, RM_IOC(RM_ALLOC, sizeof(raced.call)), &raced.call);
        const uint64_t held = sim_held().bytes;
        if (held > shared->number[1])
            shared->number[1] = held;
        (void)tenant_free(fd, T_CLIENT, T_MEM + i % 8);
    }
    shared->number[0] = 1;
    HOLDS(pthread_join(thread, NULL) == 0);
}

TEST(arguments_that_change_during_the_call_gain_nothing)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, racing, &s), 0);
    CHECK(shared->number[1] <= cap);
    CHECK(shared->number[1] > 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* ---- another thread's descriptors ---- */

static void *has_its_own(void *arg)
{
    enum { MORE = 10 };
    const int fd = *(const int *)arg;
    HOLDS(unshare(CLONE_FILES) == 0);
    /*
     * The gate sweeps by the first thread's descriptors, and does not find this file there: from the next tick on its names are
     * unknown to it, and are refused as such; the first of them, too, if the tick comes that soon. What they stand for stays charged
     * all the same.
     */
    uint32_t taken = RM_INVALID_OBJECT_PARENT, client = T_CLIENT + MORE;
    for (int i = 0; i < 100 && taken == RM_INVALID_OBJECT_PARENT; i++) {
        int ctl = tenant_open(++client); /* the name of the one before may not be free yet */
        HOLDS(dup2(ctl, fd) == fd);
        HOLDS(close(ctl) == 0);
        taken = tenant_take(fd, client, T_MEM, cap);
    }
    HOLDS(taken == RM_OK);
    for (uint32_t i = 1; i <= MORE; i++) {
        const uint32_t said[] = {tenant_take(fd, client, T_MEM + 1, BH_MIB),
                                 tenant_take(tenant_open(T_CLIENT + i), T_CLIENT + i, T_MEM + 1, BH_MIB)};
        for (size_t k = 0; k < BH_COUNT_OF(said); k++)
            HOLDS(said[k] == RM_NO_MEMORY || said[k] == RM_INVALID_OBJECT_PARENT);
        HOLDS(sim_held().bytes == cap);
        (void)usleep(5000);
    }
    return NULL;
}

static void own_descriptors(void)
{
    pthread_t thread;
    int pair[2];
    HOLDS(pipe(pair) == 0);
    HOLDS(pthread_create(&thread, NULL, has_its_own, &pair[0]) == 0);
    HOLDS(pthread_join(thread, NULL) == 0);
    HOLDS(tenant_take(pair[0], T_CLIENT, T_MEM + 1, BH_MIB) == UINT32_MAX); /* here it is a pipe */
}

TEST(a_thread_with_descriptors_of_its_own_is_held_too)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, own_descriptors, &s), 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

/* Where parameters lay the last time is remembered; what counts is where they are. */
static void moves_its_parameters(void)
{
    enum { PAGE = 4096, PLACES = 7 };
    static const int places[PLACES] = {600, 600, 904, 6 * PAGE, 600, -704, -704};
    const int fd = tenant_open(T_CLIENT);
    char *at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(at != MAP_FAILED);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct rm_alloc *a = (void *)(at + 2 * PAGE);
        struct rm_memory_params *p = (void *)(at + 2 * PAGE + places[i]);
        memset(at, 0xff, 16 * PAGE); /* what is beside them is nothing that could be taken */
        *p = (struct rm_memory_params){.size = (i + 1) * 2 * BH_MIB};
        *a = (struct rm_alloc){.client = T_CLIENT,
                               .parent = T_DEV,
                               .object = T_MEM + i,
                               .class = RM_CLASS_MEMORY_LOCAL,
                               .params = (uintptr_t)p};
        HOLDS(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(*a)), a) == 0 && a->status == RM_OK);
        HOLDS(a->params == (uintptr_t)p && p->size == (i + 1) * 2 * BH_MIB);
    }
    HOLDS(sim_held().bytes == (uint64_t)PLACES * (PLACES + 1) * BH_MIB);
    /* Where they would be is nothing now: the structure is at the end of what there is, and has none. */
    struct rm_alloc *last = (void *)(at + 3 * PAGE - sizeof(*last));
    HOLDS(munmap(at, 2 * PAGE) == 0 && munmap(at + 3 * PAGE, 13 * PAGE) == 0);
    for (int i = 0; i < 2; i++) {
        *last = (struct rm_alloc){
            .client = T_CLIENT, .parent = T_DEV, .object = 0x5c0000f0, .class = RM_CLASS_EVENT};
        (void)bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(*last)), last);
        HOLDS(sim_held().bytes == (uint64_t)PLACES * (PLACES + 1) * BH_MIB);
    }
}

TEST(parameters_are_taken_from_where_they_are)
{
    struct bh_gate_stats s;
    sim_begin();
    CHECK_EQ(lease(cap, moves_its_parameters, &s), 0);
    CHECK_EQ(s.killed, 0);
    CHECK(holds_nothing_soon());
    CHECK(sim_end());
}

TEST_MAIN
