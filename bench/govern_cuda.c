/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern_cuda.c - fixed work for a shared card, and how much of it gets done: the ground truth for shares and latency.
 *
 *     govern_cuda KIND SECONDS [UNIT_US [EVERY_MS]]
 *         long        kernels of UNIT_US (8000), four in flight
 *         lean        the same with an eighth of the threads: there is less to save when it has to give way
 *         short       kernels of 50 us, two hundred in flight
 *         sync        a kernel of 200 us and a wait for it, over and over
 *         graph       a graph of twenty kernels of 50 us, replayed
 *         persistent  one kernel that does not end; its units are counted by itself
 *         bandwidth   a copy of 1 GiB on the card
 *         pcie        copies of 64 MiB from the host and to it, both at once
 *         small       a kernel of 200 us every 5 ms; how long each took is printed
 *         tiny        the same on an eighth of the processors: there is room for it beside others
 *         serve       a kernel of 2.5 ms every 10 ms
 *         seldom      a kernel of UNIT_US every 50 ms
 *         steps       a kernel of 2.5 ms, a wait for it, and 7.5 ms of something else
 *         rests       a kernel of 10 ms, a wait for it, and 30 ms of something else
 *         loads       as `small` for 8 s, and then as `long`
 *         idle        a context and nothing else
 *         check       kernels of UNIT_US whose results are compared with what arithmetic says, bit by bit
 *         check-graph the same, a graph of twenty kernels of 50 us, replayed
 *         check-whole the same, one kernel for all of the time
 *
 * It prints `ready`, waits for a byte on its input, then prints `at MS UNITS` every EVERY_MS (100) and `took NS` for
 * each kernel of those that come one by one at the end. A unit is a fixed number of multiplications on every processor of the card; no clock is
 * looked at inside, so that a share of the card shows in how long it takes. Nothing here judges.
 *
 * What is checked goes on from where the kernel before it ended, and no step of it can be undone or left out without a trace: one result at
 * the end is that of everything before. It prints `compared N` and `wrong N`. Its kernels write to the host's memory every ten microseconds
 * or so, and a thread looks at that all the time: where nothing comes for a millisecond it prints at the end `gap FROM TO`, in nanoseconds
 * of the machine's clock. So it shows when work stands still, in the middle of a kernel too.
 *
 * Where $BULKHEAD_PROBE is set it says the same there every 100 ms: what was done, and how long small kernels took.
 */
#include "gpu/abi/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CALLS(X)                   \
    X(cuInit)                      \
    X(cuDeviceGet)                 \
    X(cuDeviceGetAttribute)        \
    X(cuDevicePrimaryCtxRetain)    \
    X(cuCtxSetCurrent)             \
    X(cuCtxSynchronize)            \
    X(cuStreamCreate)              \
    X(cuStreamSynchronize)         \
    X(cuStreamBeginCapture_v2)     \
    X(cuStreamEndCapture)          \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch)               \
    X(cuMemAlloc_v2)               \
    X(cuMemHostAlloc)              \
    X(cuMemcpyDtoD_v2)             \
    X(cuMemcpyDtoH_v2)             \
    X(cuMemcpyDtoHAsync_v2)        \
    X(cuMemcpyHtoDAsync_v2) X(cuMemcpyHtoD_v2) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
} cuda;

/* With every thread a card can hold, 64 multiplications each take about this long: a round. The number of processors is that of a
 * Hopper card and not asked for: under MPS a client is told of fewer, and its unit would be less work. */
enum {
    ROUND_NS = 560,
    LEAN_ROUND_NS = 138,
    MIX_ROUND_NS = 2 * ROUND_NS, /* half as many whole numbers are multiplied at a time */
    THREADS = 256,
    SMS = 132,
    BLOCKS_PER_SM = 8,
    MIB = 1 << 20,
    EVERY_NS = 100000000
};

#define FMA2  "fma.rn.f32 %a, %a, %b, %c;\n fma.rn.f32 %a, %a, %b, %c;\n"
#define FMA8  FMA2 FMA2 FMA2 FMA2
#define FMA64 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8 FMA8
/* A step is x = A x + C, on the card and in mixed() below. */
#define MIX_A     1664525
#define MIX_C     1013904223
#define WORDS_(x) #x
#define WORDS(x)  WORDS_(x)
#define MIX1      "mad.lo.u32 %x, %x, " WORDS(MIX_A) ", " WORDS(MIX_C) ";\n"
#define MIX2      MIX1 MIX1
#define MIX8      MIX2 MIX2 MIX2 MIX2
#define MIX64     MIX8 MIX8 MIX8 MIX8 MIX8 MIX8 MIX8 MIX8
static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    /* out[thread] = what came of `rounds` rounds */
    ".visible .entry work(.param .u32 rounds, .param .u64 out)\n{\n"
    " .reg .u32 %n, %t, %d, %g;\n .reg .u64 %o, %i;\n .reg .f32 %a, %b, %c;\n .reg .pred %p;\n"
    " ld.param.u32 %n, [rounds];\n ld.param.u64 %o, [out];\n"
    " mov.u32 %t, %tid.x;\n mov.u32 %d, %ntid.x;\n mov.u32 %g, %ctaid.x;\n mad.lo.u32 %t, %d, %g, %t;\n"
    " cvt.rn.f32.u32 %a, %t;\n mov.f32 %b, 0f3F7FF000;\n mov.f32 %c, 0f3DCCCCCD;\n"
    "again:\n" FMA64 " sub.u32 %n, %n, 1;\n setp.ne.u32 %p, %n, 0;\n @%p bra again;\n"
    " mul.wide.u32 %i, %t, 4;\n add.u64 %o, %o, %i;\n st.global.f32 [%o], %a;\n ret;\n}\n"
    /* state[thread] goes so many rounds on. A thread of every 16th block writes its clock to *beat every 8 rounds: the oldest block of
     * a processor runs ahead of the others and ends long before them */
    ".visible .entry mix(.param .u32 rounds, .param .u64 state, .param .u64 beat)\n{\n"
    " .reg .u32 %n, %t, %d, %g, %k, %x;\n .reg .u64 %o, %i, %h, %w;\n .reg .pred %p, %q, %r;\n"
    " ld.param.u32 %n, [rounds];\n ld.param.u64 %o, [state];\n ld.param.u64 %h, [beat];\n"
    " mov.u32 %t, %tid.x;\n mov.u32 %d, %ntid.x;\n mov.u32 %g, %ctaid.x;\n mad.lo.u32 %t, %d, %g, %t;\n"
    " and.b32 %k, %t, 4095;\n setp.eq.u32 %q, %k, 0;\n"
    " mul.wide.u32 %i, %t, 4;\n add.u64 %o, %o, %i;\n ld.global.u32 %x, [%o];\n"
    "again:\n" MIX64 " sub.u32 %n, %n, 1;\n and.b32 %k, %n, 7;\n setp.eq.and.u32 %r, %k, 0, %q;\n"
    " @%r mov.u64 %w, %clock64;\n @%r st.volatile.global.u64 [%h], %w;\n setp.ne.u32 %p, %n, 0;\n @%p bra again;\n"
    " st.global.u32 [%o], %x;\n ret;\n}\n"
    /* until *stop is set: each block adds one to *done every `rounds` rounds */
    ".visible .entry forever(.param .u32 rounds, .param .u64 stop, .param .u64 done)\n{\n"
    " .reg .u32 %n, %m, %t, %s;\n .reg .u64 %o, %d;\n .reg .f32 %a, %b, %c;\n .reg .pred %p, %q;\n"
    " ld.param.u32 %m, [rounds];\n ld.param.u64 %o, [stop];\n ld.param.u64 %d, [done];\n"
    " mov.u32 %t, %tid.x;\n setp.eq.u32 %q, %t, 0;\n"
    " mov.f32 %a, 0f3F800000;\n mov.f32 %b, 0f3F7FF000;\n mov.f32 %c, 0f3DCCCCCD;\n"
    "unit:\n mov.u32 %n, %m;\n"
    "again:\n" FMA64 " sub.u32 %n, %n, 1;\n setp.ne.u32 %p, %n, 0;\n @%p bra again;\n"
    " @%q red.global.add.u64 [%d], 1;\n"
    " ld.volatile.global.u32 %s, [%o];\n setp.eq.u32 %p, %s, 0;\n @%p bra unit;\n"
    " setp.eq.f32 %p, %a, 0f00000001;\n @%p trap;\n ret;\n}\n";

static struct {
    CUstream stream;
    CUfunction work, forever, mix;
    CUdeviceptr out;
    unsigned blocks, round_ns;
    uint64_t from, next, every, end, units;
    int probe; /* -1: nobody listens */
    uint64_t said, say_next;
    unsigned n_took; /* since it was last said */
    uint32_t took[64];
} run = {.probe = -1};

static void must(int rc, const char *call)
{
    if (rc == CUDA_SUCCESS)
        return;
    fprintf(stderr, "govern_cuda: %s: %d\n", call, rc);
    exit(1);
}
#define MUST(name, ...) must(cuda.name(__VA_ARGS__), #name)

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* How wide its kernels are: blocks on every processor, and what a round takes then. */
static const struct width {
    const char *kind; /* NULL: every other */
    unsigned blocks, round_ns;
} widths[] = {{"lean", SMS, LEAN_ROUND_NS},
              {"tiny", SMS / 8, LEAN_ROUND_NS},
              {"check", SMS *BLOCKS_PER_SM, MIX_ROUND_NS},
              {"check-graph", SMS *BLOCKS_PER_SM, MIX_ROUND_NS},
              {"check-whole", SMS *BLOCKS_PER_SM, MIX_ROUND_NS},
              {NULL, SMS *BLOCKS_PER_SM, ROUND_NS}};

static void context(const char *kind)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    if (!library) {
        fprintf(stderr, "govern_cuda: %s\n", dlerror());
        exit(1);
    }
#define FIND(name)                                            \
    cuda.name = (__typeof__(cuda.name))dlsym(library, #name); \
    must(cuda.name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, #name);
    CALLS(FIND)
#undef FIND
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &device, 0);
    MUST(cuDevicePrimaryCtxRetain, &ctx, device);
    MUST(cuCtxSetCurrent, ctx);
    MUST(cuStreamCreate, &run.stream, 1);
    MUST(cuModuleLoadData, &module, ptx);
    MUST(cuModuleGetFunction, &run.work, module, "work");
    MUST(cuModuleGetFunction, &run.forever, module, "forever");
    MUST(cuModuleGetFunction, &run.mix, module, "mix");
    const struct width *w = widths;
    while (w->kind && strcmp(w->kind, kind) != 0)
        w++;
    run.blocks = w->blocks;
    run.round_ns = w->round_ns;
    MUST(cuMemAlloc_v2, &run.out, (size_t)run.blocks * THREADS * 4);
}

/* One datagram for all of it, which never waits: what does not fit is not said. */
static void say(uint64_t units)
{
    char text[1024]; /* no more is taken */
    size_t n = 0;
    if (run.probe >= 0 && units > run.said)
        n += (size_t)snprintf(text, sizeof(text), "done %llu\n", (unsigned long long)(units - run.said));
    for (unsigned i = 0; run.probe >= 0 && i < run.n_took && n + 24 <= sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "latency %uns\n", run.took[i]);
    if (n == 0 || send(run.probe, text, n, MSG_DONTWAIT) == (ssize_t)n)
        run.said = units;
    run.n_took = 0;
}

/* path: NULL: nobody listens. */
static int probe_socket(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || snprintf(to.sun_path, sizeof(to.sun_path), "%s", path) >= (int)sizeof(to.sun_path) ||
        connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        return -1;
    return fd;
}

/* The time is up, or not; and what was done so far, now and then. */
static bool going(uint64_t units)
{
    const uint64_t now = now_ns();
    run.units = units;
    if (now >= run.next) {
        printf("at %llu %llu\n", (unsigned long long)((now - run.from) / 1000000), (unsigned long long)units);
        (void)fflush(stdout);
        run.next += run.every;
    }
    if (now >= run.say_next) {
        say(units);
        run.say_next += EVERY_NS;
    }
    return now < run.end;
}

/* ---- results that are compared ---- */

enum { MIX_STEPS = 64, COMPARED_EVERY = 64 };
static struct {
    uint64_t *beat; /* NULL: nothing is compared */
    uint32_t *results;
    uint64_t steps; /* that each thread has made */
    unsigned compared, wrong, waits;
} checked;

/* What becomes of x by so many steps is a x + c. */
struct line {
    uint32_t a, c;
};

static struct line mixed(uint64_t steps)
{
    struct line done = {1, 0}, next = {MIX_A, MIX_C};
    for (; steps; steps /= 2) {
        if (steps % 2)
            done = (struct line){next.a * done.a, next.a * done.c + next.c};
        next = (struct line){next.a * next.a, next.a * next.c + next.c};
    }
    return done;
}

static void compare(void)
{
    const struct line l = mixed(checked.steps);
    const uint32_t threads = run.blocks * THREADS;
    uint32_t same = 0;
    MUST(cuMemcpyDtoH_v2, checked.results, run.out, threads * sizeof(*checked.results));
    while (same < threads && checked.results[same] == l.a * same + l.c)
        same++;
    checked.compared++;
    checked.wrong += same < threads;
}

/* Each thread begins with its number. */
static void check_begin(void)
{
    const uint32_t threads = run.blocks * THREADS;
    void *memory;
    checked.results = malloc(threads * sizeof(*checked.results));
    if (!checked.results)
        exit(1);
    for (uint32_t i = 0; i < threads; i++)
        checked.results[i] = i;
    MUST(cuMemcpyHtoD_v2, run.out, checked.results, threads * sizeof(*checked.results));
    MUST(cuMemHostAlloc, &memory, 4096, 0);
    checked.beat = memory; /* the card knows it by the same address */
    *checked.beat = 0;
}

static void check_end(void)
{
    compare();
    printf("compared %u\nwrong %u\n", checked.compared, checked.wrong);
    free(checked.results);
}

/* ---- work ---- */

static void launch(uint32_t us)
{
    uint32_t rounds = (uint32_t)((uint64_t)us * 1000 / run.round_ns);
    void *params[] = {&rounds, &run.out, &checked.beat};
    rounds = rounds ? rounds : 1;
    MUST(cuLaunchKernel, checked.beat ? run.mix : run.work, run.blocks, 1, 1, THREADS, 1, 1, 0, run.stream,
         params, NULL);
    checked.steps += (uint64_t)rounds * MIX_STEPS;
}

/* Now and then it is seen what came of it: the card rests for that. */
static void wait_for_all(void)
{
    MUST(cuStreamSynchronize, run.stream);
    if (checked.beat && ++checked.waits % COMPARED_EVERY == 0)
        compare();
}

static void kernels(uint32_t us, unsigned in_flight)
{
    do {
        for (unsigned i = 0; i < in_flight; i++)
            launch(us);
        wait_for_all();
    } while (going(run.units + in_flight));
}

static void graph(void)
{
    enum { NODES = 20, EACH_US = 50, RELAXED = 2 };
    CUgraph made;
    CUgraphExec ready;
    const uint64_t before = checked.steps;
    MUST(cuStreamBeginCapture_v2, run.stream, RELAXED);
    for (unsigned i = 0; i < NODES; i++)
        launch(EACH_US);
    MUST(cuStreamEndCapture, run.stream, &made);
    MUST(cuGraphInstantiateWithFlags, &ready, made, 0);
    const uint64_t each = checked.steps - before;
    checked.steps = before; /* those were written down, and not made */
    do {
        for (unsigned i = 0; i < 10; i++) {
            MUST(cuGraphLaunch, ready, run.stream);
            checked.steps += each;
        }
        wait_for_all();
    } while (going(run.units + 10));
}

/* What one thread counts is not what the kernel did: after a pause the oldest block runs ahead of the others. */
static void persistent(uint32_t us)
{
    CUdeviceptr stop, done; /* both on the card: a kernel that reads the host's memory is slow to give way */
    CUstream beside;
    void *memory;
    uint32_t rounds = us * 1000 / run.round_ns;
    MUST(cuMemHostAlloc, &memory, 4096, 0);
    uint64_t *const here = memory;
    *here = 0;
    MUST(cuMemAlloc_v2, &stop, sizeof(*here));
    MUST(cuMemAlloc_v2, &done, sizeof(*here));
    MUST(cuMemcpyHtoD_v2, stop, here, sizeof(*here));
    MUST(cuMemcpyHtoD_v2, done, here, sizeof(*here));
    MUST(cuStreamCreate, &beside, 1);
    void *params[] = {&rounds, &stop, &done};
    MUST(cuLaunchKernel, run.forever, run.blocks, 1, 1, THREADS, 1, 1, 0, run.stream, params, NULL);
    do {
        usleep(5000);
        MUST(cuMemcpyDtoHAsync_v2, here, done, sizeof(*here), beside);
        MUST(cuStreamSynchronize, beside);
    } while (going(*here / run.blocks));
    *here = 1;
    MUST(cuMemcpyHtoDAsync_v2, stop, here, sizeof(*here), beside);
    wait_for_all();
}

/* A unit is a fixed number of rounds, a few milliseconds long; two are in flight, so that the card is never without. */
static void copies(size_t bytes, bool across)
{
    CUdeviceptr a, b;
    CUstream back;
    void *host, *home;
    MUST(cuMemAlloc_v2, &a, bytes);
    MUST(cuMemAlloc_v2, &b, bytes);
    MUST(cuMemHostAlloc, &host, across ? bytes : 4096, 0);
    MUST(cuMemHostAlloc, &home, across ? bytes : 4096, 0);
    MUST(cuStreamCreate, &back, 1);
    do {
        if (across) {
            MUST(cuMemcpyHtoDAsync_v2, a, host, bytes, run.stream);
            MUST(cuMemcpyDtoHAsync_v2, home, b, bytes, back);
            MUST(cuStreamSynchronize, back);
            wait_for_all();
        } else {
            MUST(cuMemcpyDtoD_v2, b, a, bytes);
            MUST(cuCtxSynchronize);
        }
    } while (going(run.units + 1));
}

/* by_clock: the next one is due so long after the last one was; else after the last one was done. */
static void paced(uint32_t unit_us, uint32_t every_us, bool by_clock)
{
    enum { MAX = 100000 };
    static uint32_t took[MAX];
    unsigned n = 0;
    uint64_t due = run.from;
    do {
        const uint64_t from = now_ns();
        launch(unit_us);
        wait_for_all();
        const uint64_t to = now_ns();
        if (n < MAX)
            took[n++] = (uint32_t)(to - from);
        if (run.n_took < sizeof(run.took) / sizeof(run.took[0]))
            run.took[run.n_took++] = (uint32_t)(to - from);
        due = by_clock ? due + UINT64_C(1000) * every_us : to + UINT64_C(1000) * (every_us - unit_us);
        due = due > to ? due : to;
        const struct timespec at = {.tv_sec = (time_t)(due / 1000000000),
                                    .tv_nsec = (long)(due % 1000000000)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    } while (going(n));
    for (unsigned i = 0; i < n; i++)
        printf("took %u\n", took[i]);
}

/* ---- when it stands still ---- */

enum { GAPS_MAX = 4096, STILL_NS = 1000000 };
static struct {
    pthread_t watcher;
    atomic_bool over;
    unsigned n;
    uint64_t from[GAPS_MAX], to[GAPS_MAX];
} gaps;

static void *watch(void *unused)
{
    const volatile uint64_t *const beat = checked.beat;
    uint64_t last = 0, at = 0;
    while (!atomic_load(&gaps.over)) {
        const uint64_t beats = *beat, now = now_ns();
        if (beats == last)
            continue;
        if (last && now - at > STILL_NS && gaps.n < GAPS_MAX) {
            gaps.from[gaps.n] = at;
            gaps.to[gaps.n++] = now;
        }
        last = beats;
        at = now;
    }
    return unused;
}

static void watch_begin(void)
{
    if (pthread_create(&gaps.watcher, NULL, watch, NULL) != 0)
        exit(1);
}

static void watch_end(void)
{
    atomic_store(&gaps.over, true);
    (void)pthread_join(gaps.watcher, NULL);
    for (unsigned i = 0; i < gaps.n; i++)
        printf("gap %llu %llu\n", (unsigned long long)gaps.from[i], (unsigned long long)gaps.to[i]);
}

/* Work is for later: first it loads what it works on. */
static void loads(uint32_t us)
{
    const uint64_t end = run.end, loaded = run.from + 8 * UINT64_C(1000000000);
    run.end = loaded < end ? loaded : end;
    paced(200, 5000, true);
    run.end = end;
    kernels(us, 4);
}

static unsigned number(const char *text)
{
    unsigned n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (unsigned)(*text - '0');
    return n;
}

static int work(const char *kind, unsigned unit_us)
{
    if (strcmp(kind, "long") == 0 || strcmp(kind, "lean") == 0)
        kernels(unit_us, 4);
    else if (strcmp(kind, "short") == 0)
        kernels(50, 200);
    else if (strcmp(kind, "sync") == 0)
        kernels(200, 1);
    else if (strcmp(kind, "graph") == 0)
        graph();
    else if (strcmp(kind, "persistent") == 0)
        persistent(unit_us);
    else if (strcmp(kind, "bandwidth") == 0)
        copies((size_t)1024 * MIB, false);
    else if (strcmp(kind, "pcie") == 0)
        copies((size_t)64 * MIB, true);
    else if (strcmp(kind, "small") == 0 || strcmp(kind, "tiny") == 0)
        paced(200, 5000, true);
    else if (strcmp(kind, "serve") == 0)
        paced(2500, 10000, true);
    else if (strcmp(kind, "seldom") == 0)
        paced(unit_us, 50000, true);
    else if (strcmp(kind, "steps") == 0)
        paced(2500, 10000, false);
    else if (strcmp(kind, "rests") == 0)
        paced(10000, 40000, false);
    else if (strcmp(kind, "loads") == 0)
        loads(unit_us);
    else if (strcmp(kind, "check") == 0)
        kernels(unit_us, 4);
    else if (strcmp(kind, "check-graph") == 0)
        graph();
    else if (strcmp(kind, "check-whole") == 0)
        kernels((uint32_t)((run.end - run.from) / 1000), 1);
    else if (strcmp(kind, "idle") == 0)
        while (going(0))
            usleep(10000);
    else
        return 2;
    return 0;
}

int main(int argc, char **argv)
{
    char byte;
    if (argc < 3 || argc > 5)
        return 2;
    run.every = argc > 4 ? UINT64_C(1000000) * number(argv[4]) : EVERY_NS;
    if (run.every == 0)
        return 2;
    const bool checks = strncmp(argv[1], "check", 5) == 0;
    context(argv[1]);
    if (checks) {
        check_begin();
        watch_begin();
    }
    launch(50); /* what is made at the first launch is made */
    wait_for_all();
    printf("ready\n");
    (void)fflush(stdout);
    if (read(STDIN_FILENO, &byte, 1) < 0)
        return 1;
    run.probe = probe_socket(getenv("BULKHEAD_PROBE"));
    run.from = run.next = run.say_next = now_ns();
    run.end = run.from + UINT64_C(1000000000) * number(argv[2]);
    const int rc = work(argv[1], argc > 3 ? number(argv[3]) : 8000);
    if (checks) {
        watch_end();
        check_end();
    }
    printf("end %llu %llu\n", (unsigned long long)((now_ns() - run.from) / 1000000),
           (unsigned long long)run.units);
    return rc;
}
