/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_fuzz.c - any bytes are a hostile lease: tenants that ask for anything, in any order, with pointers that lead
 * anywhere, whose memory changes while it is looked at, who share files, fork, vanish in the middle of a call and win races;
 * a driver that answers oddly; system calls of the warden's that fail.
 *
 * After every step the driver holds no more than the cap and what was provably obtained behind the gate since it last
 * counted, the ledger never says less than the driver, the gate has written nowhere but where it read, and at the end
 * nothing is left: no bytes, no objects, no descriptors.
 */
#include "base/choice.h"
#include "warden/gate_bench_fixture.h"

#include <inttypes.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CLIENT = 0x7c1d0001,
    OBJECT = 0x5c000001,
    SUBDEVICE = 3,
    GROUP = 4,
    MEMORY = 6,
    STEPS_MAX = 400,
    QUEUE = 8,
    LAST_TICKS = 70 /* files that hold nothing are closed every 64 */
};
static const uint64_t cap = 64 * BH_MIB;

static struct {
    struct bh_choice c;
    uint32_t steps, last_ticks;
    uint8_t queue[QUEUE]; /* calls that are made next: a tenant that sets itself up */
    uint32_t n_queue, queue_tenant;
    uint32_t tenant; /* whose step it is */
    bool raced;      /* what runs in the tenant is not what was looked at */
    struct {
        uint64_t at, n;
    } seen[8]; /* what the gate has read for this call */
    size_t n_seen;
} run;

static uint32_t draw(uint32_t n)
{
    return bh_choose(&run.c, n);
}

static bool seldom(void)
{
    return draw(16) == 15;
}

/* For whoever looks into a finding: BH_GATE_TRACE is set. */
static bool is_traced(void)
{
    static int on = -1;
    on = on < 0 ? getenv("BH_GATE_TRACE") != NULL : on;
    return on;
}

__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
    va_list args;
    if (!is_traced())
        return;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
}

static void trace_sums(void)
{
    for (uint32_t g = 0; is_traced() && bench.ledger && g < BENCH_GPUS; g++) {
        const struct bh_ledger_sum s = bh_ledger_sum(bench.ledger, g);
        trace("    gpu %u: driver %" PRIu64 " KiB, unseen %" PRIu64 ", beyond %" PRIu64 "; held %" PRIu64
              ", overhead %" PRIu64 ", managed %" PRIu64 ", objects %" PRIu64 ", clients %" PRIu64 "\n",
              g, bench_taken(g) >> 10, bench.unseen[g] >> 10, bench.beyond[g] >> 10, s.held >> 10,
              s.overhead >> 10, s.managed >> 10, s.objects, s.clients);
    }
}

/* ---- what must hold ---- */

static void look(void)
{
    const uint64_t managed = bench_managed_of(0) - bench_managed_behind();
    const char *why = bench.ledger ? bh_ledger_check(bench.ledger) : NULL;
    bench_hang_up();
    if (why)
        bench_fail(why);
    for (uint32_t g = 0; bench.ledger && g < BENCH_GPUS; g++) {
        const struct bh_ledger_sum sum = bh_ledger_sum(bench.ledger, g);
        const uint64_t taken = bench_taken(g);
        if (taken + managed > bench.cap + bench.beyond[g])
            bench_fail("more than the cap was obtained through the gate");
        if (sum.used - sum.managed + bench.unseen[g] < taken)
            bench_fail("the ledger says less than the driver");
        if (sum.reserved)
            bench_fail("something stayed reserved after the call");
    }
}

/* Everybody has been gone for some ticks. */
static void nothing_left(void)
{
    const struct bh_ledger *l = bench.ledger;
    for (uint32_t g = 0; g < BENCH_GPUS; g++) {
        const struct bh_ledger_sum s = bh_ledger_sum(l, g);
        /* the warden's own two clients stay, for what it looks at after it was freed */
        if (s.held | s.reserved | s.objects | s.overhead || s.clients > 2)
            bench_fail("the ledger holds something when everybody is gone");
        if (s.managed && !atomic_load(&fault->hits))
            bench_fail("managed memory is left when everybody is gone");
    }
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    DIR *d = __real_opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

/* ---- the tenant's memory, watched ---- */

static bool is_inside(uint64_t at, size_t n)
{
    const uint64_t first = (uintptr_t)bench.memory, all = BENCH_PAGES * BENCH_PAGE;
    return at >= first && n <= all && at - first <= all - n;
}

/* Another thread writes, just after the gate has read. */
static void has_read(pid_t pid, const struct iovec *piece, const void *got)
{
    (void)got;
    if (pid != (pid_t)bench.notif.pid)
        bench_fail("somebody else's memory was read");
    if (run.n_seen < BH_COUNT_OF(run.seen)) {
        run.seen[run.n_seen].at = (uintptr_t)piece->iov_base;
        run.seen[run.n_seen++].n = piece->iov_len;
    }
    if (seldom() && is_inside((uintptr_t)piece->iov_base, piece->iov_len)) {
        ((uint8_t *)piece->iov_base)[draw((uint32_t)piece->iov_len)] ^= (uint8_t)(1U << draw(8));
        run.raced = true;
    }
}

static void will_write(pid_t pid, const struct iovec *local, const struct iovec *remote, unsigned long n)
{
    if (pid != (pid_t)bench.notif.pid)
        bench_fail("somebody else's memory was written to");
    for (unsigned long i = 0; i < n; i++) {
        const uint64_t at = (uintptr_t)remote[i].iov_base;
        bool seen = false;
        for (size_t k = 0; k < run.n_seen; k++)
            seen = seen || (at >= run.seen[k].at && remote[i].iov_len <= run.seen[k].n &&
                            at - run.seen[k].at <= run.seen[k].n - remote[i].iov_len);
        if (!seen)
            bench_fail("the gate writes where it did not read");
        for (size_t w = 0; w + sizeof(uint64_t) <= local[i].iov_len; w += 4) {
            uint64_t word;
            memcpy(&word, (const uint8_t *)local[i].iov_base + w, sizeof(word));
            for (size_t k = 0; k < BH_COUNT_OF(bench.ours); k++)
                if (bench.ours[k] && word == bench.ours[k])
                    bench_fail("an address of the warden's goes to the tenant");
        }
    }
}

/* Mostly a good place for n bytes; seldom one at the edge of, or beyond, what is there. */
static uint64_t place(size_t n)
{
    const uint64_t first = (uintptr_t)bench.memory;
    if (!seldom())
        return first + 256 * draw(8) + (draw(8) ? 0 : draw(64));
    switch (draw(8)) {
    case 0:
        return first + BENCH_PAGE - n; /* up to the hole */
    case 1:
        return first + BENCH_PAGE - n / 2; /* into it */
    case 2:
        return first + BENCH_PAGE + 64;
    case 3:
        return first + 2 * BENCH_PAGE + 64; /* can be read and not written */
    case 4:
        return 0;
    case 5:
        return UINT64_MAX - draw(300);
    case 6:
        return first + BENCH_PAGES * BENCH_PAGE - n;
    default:
        return first + 3 * BENCH_PAGE - n / 2; /* from where it cannot be written to where it can */
    }
}

static void put(uint64_t at, const void *bytes, size_t n)
{
    if (is_inside(at, n))
        memcpy((void *)(uintptr_t)at, bytes, n);
}

/* ---- calls ---- */

struct call {
    uint32_t cmd;
    union {
        struct rm_alloc alloc;
        struct rm_alloc_short alloc_short;
        struct rm_free free;
        struct rm_dup dup;
        struct rm_alloc_memory memory;
        struct rm_vid_heap heap;
        uint8_t bytes[256];
    } u;
    uint8_t params[256];
    size_t n, n_params;
};

/* Mostly the tenant's own. */
static uint32_t a_client(void)
{
    return CLIENT + (draw(4) ? run.tenant % 3 : draw(3));
}

static uint32_t an_object(void)
{
    return seldom() ? draw(2) ? 0 : a_client() : OBJECT + draw(12);
}

static uint32_t a_device(void)
{
    return seldom() ? an_object() : OBJECT + draw(2);
}

static uint64_t a_size(void)
{
    static const uint64_t sizes[] = {0,           1,           BH_MIB / 16, BH_MIB,           2 * BH_MIB - 1,
                                     2 * BH_MIB,  3 * BH_MIB,  8 * BH_MIB,  16 * BH_MIB,      31 * BH_MIB,
                                     32 * BH_MIB, 64 * BH_MIB, 65 * BH_MIB, UINT64_C(1) << 40};
    static const uint64_t absurd[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2 * BH_MIB + 1,
                                      UINT64_C(1) << 63};
    return seldom() ? absurd[draw(BH_COUNT_OF(absurd))] : sizes[draw(BH_COUNT_OF(sizes))];
}

static void make_alloc(struct call *k, uint32_t parent, uint32_t object, uint32_t class, size_t n_params)
{
    k->n_params = n_params;
    k->u.alloc = (struct rm_alloc){.client = a_client(), .parent = parent, .object = object, .class = class};
    k->n = sizeof(k->u.alloc);
    k->cmd = RM_IOC(RM_ALLOC, k->n);
    if (n_params)
        k->u.alloc.params = place(n_params);
    if (seldom())
        k->u.alloc.params_size = draw(3) ? (uint32_t)n_params : draw(200);
    if (seldom())
        k->u.alloc.rights = place(4);
    if (draw(8) == 7) { /* the short form */
        const struct rm_alloc a = k->u.alloc;
        k->u.alloc_short = (struct rm_alloc_short){.client = a.client,
                                                   .parent = a.parent,
                                                   .object = a.object,
                                                   .class = a.class,
                                                   .params = a.params,
                                                   .params_size = a.params_size};
        k->n = sizeof(k->u.alloc_short);
        k->cmd = RM_IOC(RM_ALLOC, k->n);
    }
}

static void make_client(struct call *k)
{
    const uint32_t client = a_client();
    make_alloc(k, client, client, draw(8) ? RM_CLASS_CLIENT : RM_CLASS_ROOT, 0);
    k->u.alloc.client = client;
}

static void make_device(struct call *k)
{
    const struct rm_device_params p = {.device = seldom() ? draw(40) : draw(BENCH_GPUS)};
    make_alloc(k, 0, a_device(), RM_CLASS_DEVICE, sizeof(p));
    k->u.alloc.parent = seldom() ? an_object() : k->u.alloc.client;
    memcpy(k->params, &p, sizeof(p));
}

static void make_memory(struct call *k)
{
    static const uint32_t kinds[] = {RM_CLASS_MEMORY_LOCAL,    RM_CLASS_MEMORY_LOCAL,
                                     RM_CLASS_MEMORY_PHYSICAL, RM_CLASS_MEMORY_LOCAL_PRIVILEGED,
                                     RM_CLASS_MEMORY_EXTENDED, RM_CLASS_MEMORY_SYSTEM,
                                     RM_CLASS_VIRTUAL_RANGE,   RM_CLASS_MEMORY_VIRTUAL};
    const struct rm_memory_params p = {
        .size = a_size(), .attr = draw(6) ? 0 : draw(4) << 25, .flags = draw(6) ? 0 : RM_MEMORY_FLAG_VIRTUAL};
    make_alloc(k, a_device(), an_object(), kinds[draw(BH_COUNT_OF(kinds))], sizeof(p));
    memcpy(k->params, &p, sizeof(p));
}

static void make_small(struct call *k)
{
    static const struct {
        uint32_t class, n;
    } kinds[] = {{RM_CLASS_SUBDEVICE, 4},      {RM_CLASS_VASPACE, 48},
                 {RM_CLASS_CHANNEL_GROUP, 20}, {RM_CLASS_CHANNEL_HOPPER, 64},
                 {RM_CLASS_CONTEXT_SHARE, 12}, {RM_CLASS_EVENT, 0},
                 {RM_CLASS_MEMORY_OS, 0},      {0xfffffff0, 16}};
    const uint32_t i = draw(BH_COUNT_OF(kinds));
    const uint32_t parent =
        kinds[i].class == RM_CLASS_CHANNEL_HOPPER && draw(4) ? OBJECT + GROUP : a_device();
    make_alloc(k, parent, an_object(), kinds[i].class, kinds[i].n);
}

static void make_heap(struct call *k)
{
    static const uint32_t functions[] = {RM_HEAP_ALLOC_SIZE, RM_HEAP_ALLOC_SIZE, RM_HEAP_FREE, 6, 14, 19, 5};
    k->u.heap = (struct rm_vid_heap){.client = a_client(),
                                     .parent = a_device(),
                                     .function = functions[draw(BH_COUNT_OF(functions))],
                                     .memory = an_object(),
                                     .size = a_size(),
                                     .attr = draw(6) ? 0 : draw(4) << 25,
                                     .flags = draw(6) ? 0 : RM_MEMORY_FLAG_VIRTUAL};
    k->n = sizeof(k->u.heap);
    k->cmd = RM_IOC(RM_VID_HEAP_CONTROL, k->n);
}

static void make_alloc_memory(struct call *k)
{
    static const uint32_t kinds[] = {RM_CLASS_MEMORY_LOCAL, RM_CLASS_MEMORY_LOCAL, RM_CLASS_MEMORY_OS,
                                     RM_CLASS_MEMORY_SYSTEM, RM_CLASS_DEVICE};
    k->u.memory = (struct rm_alloc_memory){.client = a_client(),
                                           .parent = a_device(),
                                           .object = an_object(),
                                           .class = kinds[draw(BH_COUNT_OF(kinds))],
                                           .limit = a_size() - 1,
                                           .fd = (int32_t)draw(9) - 1};
    k->n = sizeof(k->u.memory);
    k->cmd = RM_IOC(RM_ALLOC_MEMORY, k->n);
}

static void make_free(struct call *k)
{
    k->u.free = (struct rm_free){.client = a_client(), .object = an_object()};
    if (seldom())
        k->u.free.object = k->u.free.client;
    k->n = sizeof(k->u.free);
    k->cmd = RM_IOC(RM_FREE, k->n);
}

static void make_dup(struct call *k)
{
    k->u.dup = (struct rm_dup){.client = a_client(),
                               .parent = a_device(),
                               .object = an_object(),
                               .source_client = a_client(),
                               .source_object = an_object()};
    k->n = sizeof(k->u.dup);
    k->cmd = RM_IOC(RM_DUP_OBJECT, k->n);
}

static void make_anything(struct call *k)
{
    static const uint32_t numbers[] = {RM_ALLOC,    RM_FREE,         RM_DUP_OBJECT,  RM_VID_HEAP_CONTROL,
                                       RM_XFER_CMD, RM_ALLOC_OBJECT, RM_ALLOC_MEMORY};
    k->n = draw(sizeof(k->u.bytes));
    for (size_t i = 0; i < k->n; i++)
        k->u.bytes[i] = (uint8_t)draw(256);
    k->cmd = RM_IOC(numbers[draw(BH_COUNT_OF(numbers))], k->n);
    if (draw(2))
        k->cmd ^= 1U << draw(32);
}

static void (*const makers[])(struct call *) = {make_client,       make_device, make_memory, make_memory,
                                                make_memory,       make_small,  make_heap,   make_free,
                                                make_alloc_memory, make_free,   make_dup,    make_anything};

/* ---- what runs in the tenant ---- */

static void ioctl_runs(void)
{
    const struct seccomp_data *d = &bench.notif.data;
    const uint32_t cmd = (uint32_t)d->args[1], n = RM_IOC_SIZE(cmd);
    const struct bench_file *f = bench_at(bench.caller, (int)d->args[0]);
    _Alignas(8) uint8_t arg[1 << 14], params[BENCH_PAGE];
    uint64_t at, before[BENCH_GPUS];
    if (!f || f->kind == BH_FILE_UVM || !is_inside(d->args[2], n))
        return;
    memcpy(arg, (void *)(uintptr_t)d->args[2], n);
    const size_t n_params = bench_params(cmd, arg, &at);
    if (n_params && (!is_inside(at, n_params) || n_params > sizeof(params)))
        return;
    if (n_params)
        memcpy(params, (void *)(uintptr_t)at, n_params);
    const struct bh_sim_caller who = {.pid = (uint32_t)bench.tenants[bench.caller].pid};
    for (uint32_t g = 0; g < BENCH_GPUS; g++)
        before[g] = bench_taken(g);
    (void)bh_sim_rm_ioctl(bench.rm, f->file, &who, cmd, arg, n, n_params ? params : NULL, n_params);
    /* What runs there takes memory that is counted later; only one that was changed may lead past the cap. */
    for (uint32_t g = 0; g < BENCH_GPUS; g++) {
        const uint64_t more = bench_taken(g) > before[g] ? bench_taken(g) - before[g] : 0;
        bench.unseen[g] += more;
        bench.beyond[g] += run.raced ? more : 0;
    }
    memcpy((void *)(uintptr_t)d->args[2], arg, n);
}

static void mmap_runs(void)
{
    const struct seccomp_data *d = &bench.notif.data;
    const struct bench_file *f = bench_at(bench.caller, (int)d->args[4]);
    if (f && !seldom()) /* it may fail there too */
        (void)bench_map(bench.tenants[bench.caller].pid, f, d->args[1], false);
}

/* Another thread has changed what will run: into the most it could gain. */
static void race(void)
{
    const struct rm_memory_params p = {.size = 16 * BH_MIB};
    const uint64_t arg = bench.notif.data.args[2];
    struct rm_alloc a;
    if (!is_inside(arg, sizeof(a)) || RM_IOC_SIZE(bench.notif.data.args[1]) != sizeof(a))
        return;
    memcpy(&a, (void *)(uintptr_t)arg, sizeof(a));
    a.class = RM_CLASS_MEMORY_LOCAL;
    a.parent = OBJECT;
    a.params_size = 0;
    a.params = (uintptr_t)bench.memory + 3 * BENCH_PAGE;
    put(a.params, &p, sizeof(p));
    put(arg, &a, sizeof(a));
    run.raced = true;
}

static void answered(int32_t error, bool goes_on)
{
    trace("    answered %d%s\n", error, goes_on ? ", goes on" : "");
    if (error > 0)
        bench_fail("an answer that is no error");
    if (goes_on && seldom())
        race();
    if (goes_on && bench.notif.data.nr == SYS_ioctl)
        ioctl_runs();
    else if (goes_on)
        mmap_runs();
    run.raced = false;
}

/* ---- steps ---- */

/* One that was not there begins with a file. */
static uint32_t a_tenant(void)
{
    const uint32_t t = draw(4) ? run.tenant : draw(BENCH_TENANTS);
    if (!bench_lives(t)) {
        bench_start(t);
        (void)bench_give(t, BENCH_FIRST_FD, BH_FILE_CTL, 0);
    }
    return run.tenant = t;
}

static int a_number(void)
{
    return BENCH_FIRST_FD + (draw(3) ? 0 : (int)draw(seldom() ? BENCH_FDS + 1 : 3));
}

static enum bench_next asks(uint32_t tenant, long nr, const uint64_t args[6])
{
    static uint64_t id;
    bench.notif =
        (struct seccomp_notif){.id = ++id, .pid = (uint32_t)bench.tenants[tenant].pid, .data.nr = (int)nr};
    memcpy(bench.notif.data.args, args, sizeof(bench.notif.data.args));
    bench.caller = tenant;
    bench.vanishes = seldom() && seldom() ? 1 + draw(2) : STAYS;
    run.n_seen = 0;
    run.raced = false;
    return BENCH_CALLS;
}

static enum bench_next calls_with(uint32_t tenant, int fd, void (*make)(struct call *))
{
    static struct call k;
    k = (struct call){0};
    run.tenant = tenant;
    make(&k);
    const uint64_t arg = place(k.n);
    if (k.n_params)
        put(k.u.alloc.params, k.params, k.n_params); /* both forms have it in the same place */
    put(arg, &k.u, k.n);
    const uint32_t *w = (const uint32_t *)(const void *)k.u.bytes;
    trace("    tenant %u fd %d cmd %x: %x %x %x %x at %" PRIx64 "\n", tenant, fd, k.cmd, w[0], w[1], w[2],
          w[3], arg);
    return asks(tenant, SYS_ioctl, (const uint64_t[6]){(uint64_t)fd, k.cmd, arg});
}

static enum bench_next step_call(void)
{
    const uint32_t tenant = a_tenant();
    const int fd = a_number();
    return calls_with(tenant, fd, makers[draw(BH_COUNT_OF(makers))]);
}

static enum bench_next step_map(void)
{
    const uint32_t tenant = a_tenant();
    return asks(tenant, SYS_mmap, (const uint64_t[6]){0, a_size(), 3, MAP_SHARED, (uint64_t)a_number()});
}

/* A file, a client and a device, as a program begins; then memory. */
static enum bench_next step_set_up(void)
{
    static const uint8_t calls[] = {0, 1, 2, 2}; /* of makers */
    run.queue_tenant = draw(BENCH_TENANTS);
    if (!bench_lives(run.queue_tenant))
        bench_start(run.queue_tenant);
    (void)bench_give(run.queue_tenant, BENCH_FIRST_FD, BH_FILE_CTL, 0);
    memcpy(run.queue, calls, sizeof(calls));
    run.n_queue = sizeof(calls);
    return BENCH_NOTHING;
}

static enum bench_next step_open(void)
{
    static const uint8_t kinds[] = {BH_FILE_CTL, BH_FILE_GPU, BH_FILE_UVM, BH_FILE_UVM};
    const uint32_t tenant = a_tenant();
    const uint8_t kind = kinds[draw(BH_COUNT_OF(kinds))];
    const int fd = a_number();
    uint64_t init[2] = {0};
    if (!bench_give(tenant, fd, kind, draw(BENCH_GPUS)) || kind != BH_FILE_UVM)
        return BENCH_NOTHING;
    const struct bench_file *f = bench_at(tenant, fd);
    const struct bh_sim_caller who = {.pid = (uint32_t)bench.tenants[tenant].pid};
    if (f)
        (void)bh_sim_rm_ioctl(bench.rm, f->file, &who, UVM_INITIALIZE, init, sizeof(init), NULL, 0);
    return BENCH_NOTHING;
}

static enum bench_next step_close(void)
{
    const uint32_t tenant = a_tenant();
    (void)bench_tell(tenant, ORDER_CLOSE, a_number(), 0, -1);
    bench_hang_up();
    return BENCH_NOTHING;
}

static enum bench_next step_dup(void)
{
    const uint32_t tenant = a_tenant();
    const int from = a_number();
    (void)bench_tell(tenant, ORDER_DUP, from, a_number(), -1);
    bench_hang_up();
    return BENCH_NOTHING;
}

/* A file of one tenant's in another's hands. */
static enum bench_next step_pass(void)
{
    const uint32_t from = a_tenant(), to = a_tenant();
    int own = (int)__real_syscall(SYS_pidfd_getfd, bench.tenants[from].pidfd, a_number(), 0);
    if (own >= 0) {
        (void)bench_tell(to, ORDER_PUT, a_number(), 0, own);
        close(own);
    }
    bench_hang_up();
    return BENCH_NOTHING;
}

static enum bench_next step_fork(void)
{
    const uint32_t parent = a_tenant(), child = draw(BENCH_TENANTS);
    if (!bench_lives(child))
        bench_fork(parent, child);
    return BENCH_NOTHING;
}

static enum bench_next step_end(void)
{
    bench_kill(draw(BENCH_TENANTS));
    return BENCH_NOTHING;
}

static enum bench_next step_tick(void)
{
    bench_tick();
    return BENCH_NOTHING;
}

static enum bench_next step_unmap(void)
{
    bench_unmap(draw(BENCH_RANGES));
    return BENCH_NOTHING;
}

/* Obtained without the gate, as by a race that was won. */
static enum bench_next step_behind(void)
{
    bench.caller = a_tenant();
    const struct bench_file *f = bench_at(bench.caller, a_number());
    struct rm_memory_params p = {.size = a_size()};
    uint64_t before[BENCH_GPUS];
    const struct bh_sim_caller who = {.pid = (uint32_t)bench.tenants[bench.caller].pid};
    uint32_t object = an_object();
    if (!f || p.size > 16 * BH_MIB)
        return BENCH_NOTHING;
    for (uint32_t g = 0; g < BENCH_GPUS; g++)
        before[g] = bench_taken(g);
    if (f->kind == BH_FILE_UVM)
        (void)bench_map(bench.tenants[bench.caller].pid, f, p.size, true);
    else
        (void)fx_alloc(bench.rm, f->file, &who, a_client(), OBJECT, &object, RM_CLASS_MEMORY_LOCAL, &p,
                       sizeof(p));
    bench_behind(before);
    return BENCH_NOTHING;
}

static enum bench_next step_odd(void)
{
    bench.odd = draw(ODD_WAYS);
    return BENCH_NOTHING;
}

static enum bench_next step_fault(void)
{
    static const int errors[] = {EMFILE, EPERM, ENOMEM, ESRCH, EFAULT};
    const uint32_t call = 1 + draw(FAULT_CALLS - 1);
    fault_order(1U << call, draw(4), 1 + draw(3), errors[draw(BH_COUNT_OF(errors))]);
    return BENCH_NOTHING;
}

/* Nobody is left, time goes by, and then there is nothing left either. */
static enum bench_next ends(void)
{
    for (uint32_t i = 0; i < BENCH_TENANTS; i++)
        bench_kill(i);
    if (run.last_ticks++ < LAST_TICKS)
        return step_tick();
    nothing_left();
    return BENCH_OVER;
}

static enum bench_next next(void)
{
    static enum bench_next (*const steps[])(void) = {
        step_call, step_call,  step_call, step_call, step_call, step_call, step_call,   step_call,
        step_map,  step_map,   step_tick, step_tick, step_open, step_open, step_close,  step_set_up,
        step_dup,  step_unmap, step_pass, step_fork, step_end,  step_odd,  step_behind, step_fault,
    };
    look();
    trace_sums();
    if ((!run.c.left && !run.n_queue) || run.steps++ == STEPS_MAX || run.last_ticks)
        return ends();
    if (run.n_queue && bench_lives(run.queue_tenant)) {
        const uint8_t made = run.queue[0];
        memmove(run.queue, run.queue + 1, --run.n_queue);
        return calls_with(run.queue_tenant, BENCH_FIRST_FD, makers[made]);
    }
    run.n_queue = 0;
    const uint32_t step = draw(BH_COUNT_OF(steps));
    trace("%u: kind %u\n", run.steps, step);
    return steps[step]();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_gate_stats stats;
    const size_t open_before = open_descriptors();
    memset(&run, 0, sizeof(run));
    run.c = (struct bh_choice){data, size};
    bench_begin(cap);
    bench.next = next;
    bench.answered = answered;
    fault_watch.read = has_read;
    fault_watch.write = will_write;
    const char *why = bench_serve(&stats);
    fault->pid = 0;
    if (!why && open_descriptors() != open_before)
        why = "descriptors are left open";
    if (!why)
        return 0;
    (void)fprintf(stderr, "step %u: %s\n", run.steps, why);
    abort();
}
