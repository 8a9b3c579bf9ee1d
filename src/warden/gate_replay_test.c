/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What real programs asked of a real driver, asked again through the gate.
 *
 * A tenant with the real filter plays each recording (simgpu/cuda/play.h): what the filter sends goes through the gate,
 * the rest goes to the simulated driver as it is. With room enough every answer is the card's. With too little the only
 * other answer is "no memory", and what the driver holds never passes the cap.
 */
#include "gpu/abi/rm.h"
#include "record/decode.h"
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/play.h"
#include "simgpu/cuda/replay_fixture.h"
#include "warden/gate_fixture.h"

enum { FILES = 1024, MOST = 0, AT_REST, COMPARED, APART, STOPPED };

/* ---- what the tenant saw ---- */

static struct {
    struct bh_recording seen;
    struct bh_objects objects;
    struct {
        uint8_t kind, gpu;
    } files[FILES];
    bool on;
} tenant;

int __real_bh_sim_open(const char *path);
int __wrap_bh_sim_open(const char *path);
int __real_bh_sim_ioctl(int fd, uint32_t cmd, void *arg);
int __wrap_bh_sim_ioctl(int fd, uint32_t cmd, void *arg);
void *__real_bh_sim_mmap(int fd, size_t length, int prot, int flags, uint64_t *ret_range);
void *__wrap_bh_sim_mmap(int fd, size_t length, int prot, int flags, uint64_t *ret_range);

static void saw(const struct bh_call *c)
{
    if (tenant.on)
        bh_recording_add(&tenant.seen, c);
}

int __wrap_bh_sim_open(const char *path)
{
    int fd = __real_bh_sim_open(path);
    if (fd < 0 || fd >= FILES || !bh_call_file("/dev", path, &tenant.files[fd].kind, &tenant.files[fd].gpu))
        return fd;
    saw(&(struct bh_call){
        .kind = BH_CALL_OPEN, .file = tenant.files[fd].kind, .gpu = tenant.files[fd].gpu, .times = 1});
    return fd;
}

static bool read_own(void *ctx, uint64_t address, void *to, size_t n)
{
    (void)ctx;
    if (!address)
        return false;
    memcpy(to, (const void *)(uintptr_t)address, n);
    return true;
}

static void note_most(void)
{
    const uint64_t now = sim_held().bytes;
    if (now > shared->number[MOST])
        shared->number[MOST] = now;
}

int __wrap_bh_sim_ioctl(int fd, uint32_t cmd, void *arg)
{
    int rc = __real_bh_sim_ioctl(fd, cmd, arg);
    const int error = rc < 0 ? errno : 0;
    if (tenant.on && fd >= 0 && fd < FILES) {
        const struct bh_ioctl in = {.file = tenant.files[fd].kind,
                                    .gpu = tenant.files[fd].gpu,
                                    .cmd = cmd,
                                    .bytes = arg,
                                    .n = bh_ioctl_bytes(tenant.files[fd].kind, cmd),
                                    .error = error,
                                    .read = read_own};
        struct bh_call call;
        bh_ioctl_decode(&tenant.objects, &in, &call);
        saw(&call);
        note_most();
    }
    errno = error;
    return rc;
}

void *__wrap_bh_sim_mmap(int fd, size_t length, int prot, int flags, uint64_t *ret_range)
{
    void *at = __real_bh_sim_mmap(fd, length, prot, flags, ret_range);
    const int error = errno;
    if (at != MAP_FAILED && fd >= 0 && fd < FILES)
        saw(&(struct bh_call){.kind = BH_CALL_MAP,
                              .file = tenant.files[fd].kind,
                              .gpu = tenant.files[fd].gpu,
                              .size = length,
                              .what = (uint32_t)prot,
                              .flags = (uint32_t)flags,
                              .times = 1});
    errno = error;
    return at;
}

/* ---- the tenant ---- */

static const char *played_name;
static size_t played_calls; /* of the recording; what another process did is left out */

static void seen_path(char ret[100])
{
    (void)snprintf(ret, 100, "%s/sysroot/seen", sim_folder);
}

static void write_seen(void)
{
    struct bh_buf text;
    char path[100];
    seen_path(path);
    bh_buf_init(&text, BH_RECORDING_BYTES_MAX);
    tenant.seen.driver = tenant.seen.gpu = tenant.seen.what = "-";
    bh_recording_write(&text, &tenant.seen);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    HOLDS(fd >= 0 && write(fd, bh_buf_text(&text), text.n) == (ssize_t)text.n);
    close(fd);
    bh_buf_fini(&text);
}

static void plays(void)
{
    char path[512];
    struct bh_play p = {.gi = UINT32_MAX, .ci = UINT32_MAX};
    struct bh_sim_gpu_view view;
    (void)snprintf(path, sizeof(path), BH_RECORDINGS "/%s", played_name);
    struct bh_recording r = read_recording(path);
    HOLDS(bh_sim_view(0, &view) == 0);
    bh_cu_uuid(view.uuid, p.uuid);
    tenant.on = true;
    shared->number[STOPPED] = (uint64_t)bh_play_calls(&p, &r, 0, played_calls);
    tenant.on = false;
    write_seen();
    /* It rests, with all it has, until the driver was counted. */
    shared->number[AT_REST] = 1;
    while (shared->number[COMPARED] < 3)
        (void)usleep(1000);
    bh_play_fini(&p);
    bh_recording_fini(&r);
}

/* ---- the gate's count, looked at ---- */

static struct bh_ledger *ledger;
struct bh_ledger *__real_bh_ledger_new(uint64_t cap_bytes);
struct bh_ledger *__wrap_bh_ledger_new(uint64_t cap_bytes);
struct bh_ledger *__wrap_bh_ledger_new(uint64_t cap_bytes)
{
    return ledger = __real_bh_ledger_new(cap_bytes);
}

/* How far the ledger is from the driver, before it is told, while the tenant rests. */
static int counts(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                  struct bh_err *err)
{
    const struct bh_ledger_sum s = bh_ledger_sum(ledger, 0);
    const uint64_t said = s.used - s.reserved - s.managed;
    const bool rests = shared->number[AT_REST];
    int rc = bh_driver_simulated.count(self, pids, n_pids, bytes, n_gpus, err);
    if (rc == BH_OK && rests && n_pids > 1) {
        const uint64_t apart = said > bytes[0] ? said - bytes[0] : bytes[0] - said;
        if (apart > shared->number[APART])
            shared->number[APART] = apart;
        shared->number[COMPARED]++;
    }
    return rc;
}

/* ---- tests ---- */

/* The calls of the first process, up to another's, or to what stands on an object that another process made: an MPS client
 * takes its context from the server, and there is none here. */
static size_t own_calls(const struct bh_recording *r)
{
    for (size_t i = 1; i < r->calls.n; i++) {
        const struct bh_call *c = &r->calls.at[i];
        if (c->kind == BH_CALL_PROCESS || (c->kind == BH_CALL_DUP && c->source == 0))
            return i;
    }
    return r->calls.n;
}

struct outcome {
    struct bh_recording recorded, seen;
    struct bh_gate_stats stats;
    int rc;
};

static struct outcome through_the_gate(const char *name, uint64_t cap)
{
    static struct bh_driver driver;
    struct outcome o = {0};
    char path[512];
    (void)snprintf(path, sizeof(path), BH_RECORDINGS "/%s", name);
    o.recorded = read_recording(path);
    o.recorded.calls.n = own_calls(&o.recorded);
    played_name = name;
    played_calls = o.recorded.calls.n;
    driver = bh_driver_simulated;
    driver.count = counts;
    lease_driver = &driver;
    sim_begin();
    lease_rdma = true; /* as it was recorded, below no gate */
    o.rc = lease(cap, plays, &o.stats);
    seen_path(path);
    o.seen = read_recording(path);
    (void)unlink(path);
    return o;
}

static bool ends_well(struct outcome *o)
{
    bh_recording_fini(&o->recorded);
    bh_recording_fini(&o->seen);
    const bool nothing = holds_nothing_soon();
    return sim_end() && nothing;
}

static bool as_on_the_card(const char *name, size_t at_least, const struct known *known)
{
    struct outcome o = through_the_gate(name, UINT64_C(120) << 30);
    bool good = replays_as(name, &o.recorded, &o.seen, at_least, known);
    if (o.rc != 0 || o.stats.killed || shared->number[STOPPED]) {
        printf("# %s: exit %d, stopped with %" PRIu64 "\n", name, o.rc, (uint64_t)shared->number[STOPPED]);
        good = false;
    }
    printf("# %s: %" PRIu64 " seen by the gate, %" PRIu64 " emulated, peak %" PRIu64
           " MiB, ledger and driver %" PRIu64 " KiB apart\n",
           name, o.stats.seen, o.stats.emulated, o.stats.peak_bytes >> 20,
           (uint64_t)shared->number[APART] >> 10);
    if (shared->number[APART] > 2 * BH_MIB || o.stats.refused_memory || o.stats.denied) {
        printf("# %s: %s\n", name, o.stats.why_killed);
        good = false;
    }
    return ends_well(&o) && good;
}

static const struct known none[] = {{0}};
/* On the UVM file, which is none of the gate's: the player maps what was made last, where CUDA mapped a pool's or array's
 * memory in two pieces. */
static const struct known pieces[] = {
    {BH_CALL_UVM, 0, RM_OK, RM_INVALID_ARGUMENT, 3}, {BH_CALL_UVM, 0, RM_OK, RM_OBJECT_NOT_FOUND, 2}, {0}};
/* Versions of the board's stored objects: the real card lacks three of those it is asked for, by a name in the params. */
static const struct known inforom[] = {{BH_CALL_CONTROL, 0x2080014b, RM_OBJECT_NOT_FOUND, RM_OK, 3}, {0}};

TEST(nvidia_smi_is_answered_as_on_the_card)
{
    CHECK(as_on_the_card("smi-memory.rec", 40, none));
    CHECK(as_on_the_card("smi-list.rec", 40, none));
    CHECK(as_on_the_card("smi-pmon.rec", 40, none));
    CHECK(as_on_the_card("smi.rec", 80, inforom));
    CHECK(as_on_the_card("smi-busy.rec", 80, inforom));
}

TEST(pytorch_is_answered_as_on_the_card)
{
    CHECK(as_on_the_card("torch.rec", 700, none));
}

TEST(every_way_to_obtain_memory_is_answered_as_on_the_card)
{
    CHECK(as_on_the_card("paths.rec", 600, pieces));
}

TEST(an_mps_client_is_answered_as_on_the_card_until_it_needs_the_server)
{
    CHECK(as_on_the_card("mps-client.rec", 100, none));
}

/* All that was asked for was answered as on the card, up to one refusal: no memory, and there it ended. */
static bool ends_in_no_memory(const struct outcome *o)
{
    size_t i = 0, k = 0;
    uint32_t di = 0, dk = 0;
    const struct bh_call *a, *b, *last = NULL, *wanted = NULL;
    for (;;) {
        b = replay_next(&o->seen, &k, &dk);
        if (!b)
            break;
        a = replay_next(&o->recorded, &i, &di);
        if (!a || (last && last->status != wanted->status))
            return false; /* more than one differs */
        last = b;
        wanted = a;
    }
    if (!last || wanted->status == last->status)
        return false;
    replay_tell("stopped at", i, wanted, last);
    return last->status == RM_NO_MEMORY && wanted->status == RM_OK && last->kind == wanted->kind;
}

TEST(too_little_is_no_memory_and_nothing_else)
{
    static const char *const names[] = {"torch.rec", "paths.rec"};
    static const uint64_t caps[] = {1, 8, 32, 100, 300, 500};
    for (size_t n = 0; n < BH_COUNT_OF(names); n++)
        for (size_t i = 0; i < BH_COUNT_OF(caps); i++) {
            struct outcome o = through_the_gate(names[n], caps[i] * BH_MIB);
            CHECK_EQ(o.rc, 0);
            CHECK_EQ(o.stats.killed, 0);
            CHECK(shared->number[STOPPED] != 0 && o.stats.refused_memory > 0);
            CHECK(ends_in_no_memory(&o));
            CHECK(o.stats.peak_bytes <= caps[i] * BH_MIB);
            CHECK(shared->number[APART] <= 2 * BH_MIB);
            CHECK(ends_well(&o));
        }
}

TEST_MAIN
