/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that is played: its memory is a file, and what it answers is said by each test. */
#include "warden/driver_busy.h"

#include "base/mem.h"
#include "base/test.h"
#include "warden/use_book_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { A = 4242, B = 4243, MS = 1000000, RING_SIZE = 8192, CLIENT = 7, SUBDEVICE = 8, NAME = 100 };

static struct {
    uint32_t fail; /* this class or command answers with status */
    uint32_t status;
    uint32_t objects, gets, flushes, asks, times;
    int files[4], n_files;
    bool clock;
    uint64_t behind_ns; /* by so much its answers are, against the records */
    int64_t fast_ppm;   /* our own clock, against the card's */
    uint64_t slept_ns;  /* and so long it stood still */
    struct rm_event_buffer_head *head;
    struct rm_switch_record *ring;
    struct book_tape tape;
    struct rm_use_samples samples;
} card;

static void *memory_of(int fd, size_t n)
{
    if (ftruncate(fd, (off_t)n) < 0)
        return NULL;
    void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int play_open(const char *path)
{
    if (strcmp(path, "/dev/nvidiactl") != 0 || card.n_files == 4) {
        errno = ENOENT;
        return -1;
    }
    return card.files[card.n_files++] = memfd_create("ring", MFD_CLOEXEC);
}

static uint32_t play_alloc(const struct rm_alloc *a)
{
    struct rm_event_buffer_params p;
    if (a->class == card.fail)
        return card.status;
    card.objects |= 1U << (a->object - NAME);
    if (a->class != RM_CLASS_EVENT_BUFFER)
        return RM_OK;
    memcpy(&p, (void *)(uintptr_t)a->params, sizeof(p));
    return p.record_size == 32 && p.record_count == RING_SIZE && p.subdevice == SUBDEVICE &&
                   p.header == NAME && p.records == NAME + 1
               ? RM_OK
               : RM_INVALID_ARGUMENT;
}

static uint32_t play_control(const struct rm_control *a)
{
    void *params = (void *)(uintptr_t)a->params;
    struct rm_event_buffer_get get;
    card.asks += a->command == RM_CTRL_PERF_USE_SAMPLES;
    if (a->command == card.fail)
        return card.status;
    switch (a->command) {
    case RM_CTRL_GR_BIND_SWITCHES:
        return a->object == SUBDEVICE && ((struct rm_bind_switches *)params)->record_size == 24
                   ? RM_OK
                   : RM_INVALID_STATE;
    case RM_CTRL_EVENT_BUFFER_ENABLE:
        return ((struct rm_event_buffer_enable *)params)->keep == RM_KEEP_OLDEST ? RM_OK : RM_INVALID_STATE;
    case RM_CTRL_TIMER_GET_TIME:
        card.times++;
        *(uint64_t *)params = card.tape.now_ns - card.behind_ns;
        return card.clock ? RM_OK : RM_NOT_SUPPORTED;
    case RM_CTRL_PERF_USE_SAMPLES:
        if (a->object != SUBDEVICE || a->params_size != 55888 ||
            ((struct rm_use_samples *)params)->type != RM_SAMPLES_USE ||
            ((struct rm_use_samples *)params)->bytes != sizeof(card.samples.samples))
            return RM_INVALID_ARGUMENT;
        memcpy(params, &card.samples, sizeof(card.samples));
        return RM_OK;
    case RM_CTRL_EVENT_BUFFER_GET:
        memcpy(&get, params, sizeof(get));
        card.head->get = get.get;
        card.gets++;
        return RM_OK;
    case RM_CTRL_EVENT_BUFFER_FLUSH:
        card.flushes++;
        return a->params_size == 0 ? RM_OK : RM_INVALID_PARAM_STRUCT;
    default:
        return RM_INVALID_COMMAND;
    }
}

static uint32_t play_map(const struct rm_map_memory *m)
{
    void *at = memory_of(m->fd, m->length);
    if (m->device != CLIENT || m->flags != RM_MAP_READ_ONLY || !at)
        return RM_INVALID_ARGUMENT;
    if (m->memory == NAME)
        card.head = at;
    else
        card.ring = at;
    return RM_OK;
}

static int play_ioctl(int fd, uint32_t cmd, void *arg)
{
    (void)fd;
    switch (RM_IOC_NUMBER(cmd)) {
    case RM_ALLOC:
        ((struct rm_alloc *)arg)->status = play_alloc(arg);
        return 0;
    case RM_CONTROL:
        ((struct rm_control *)arg)->status = play_control(arg);
        return 0;
    case RM_MAP_MEMORY:
        ((struct rm_map_memory *)arg)->status = play_map(arg);
        return 0;
    case RM_FREE:
        card.objects &= ~(1U << (((struct rm_free *)arg)->object - NAME));
        return 0;
    default:
        errno = EINVAL;
        return -1;
    }
}

/* In step with the card's, as near as two clocks are. */
static uint64_t play_clock(void)
{
    const int64_t passed = (int64_t)(card.tape.now_ns - BEGAN_NS);
    return 5 * (uint64_t)MS + (uint64_t)(passed + passed / 1000000 * card.fast_ppm) - card.slept_ns;
}

static struct bh_busy *watch_with(bool clock, uint64_t behind_ns, struct bh_err *err)
{
    const struct bh_rm rm = {{play_open, play_ioctl, play_clock}, 3, CLIENT};
    struct bh_busy *b = NULL;
    const uint32_t fail = card.fail, status = card.status;
    memset(&card, 0, sizeof(card));
    card.fail = fail;
    card.status = status;
    card.clock = clock;
    card.behind_ns = behind_ns;
    card.tape.now_ns = BEGAN_NS;
    return bh_busy_new(&rm, SUBDEVICE, NAME, &b, err) == BH_OK ? b : NULL;
}

static struct bh_busy *watch(bool clock, struct bh_err *err)
{
    return watch_with(clock, 0, err);
}

static struct bh_busy *watched(void)
{
    struct bh_busy *b = watch(true, NULL);
    if (!b)
        abort();
    return b;
}

static void over(struct bh_busy *b)
{
    bh_busy_free(b);
    if (card.head)
        (void)munmap(card.head, 4096);
    if (card.ring)
        (void)munmap(card.ring, RING_SIZE * sizeof(*card.ring));
}

static void card_says(uint8_t tag, uint32_t pid)
{
    const struct rm_switch_record r = tape_record(&card.tape, tag, pid);
    const uint32_t next = (card.head->put + 1) % RING_SIZE;
    if (next == card.head->get) {
        card.head->dropped++;
        return;
    }
    card.ring[card.head->put] = r;
    card.head->put = next;
}

static void card_turn(uint32_t pid, uint64_t ns)
{
    card_says(RM_TURN_BEGINS, pid);
    card.tape.now_ns += ns;
    card_says(RM_TURN_ENDS, pid);
    card.tape.now_ns += CHANGE_NS;
}

static struct bh_driver_busy read_of(struct bh_busy *b, uint32_t pid, uint64_t *ret_now)
{
    struct bh_driver_busy all[8];
    const size_t n = bh_busy_read(b, all, BH_COUNT_OF(all), ret_now);
    for (size_t i = 0; i < n && i < BH_COUNT_OF(all); i++)
        if (all[i].pid == pid)
            return all[i];
    return (struct bh_driver_busy){.pid = pid};
}

TEST(the_ring_is_read_round_and_round)
{
    struct bh_busy *b = watched();
    uint64_t now = 0;
    CHECK_EQ(bh_busy_read(b, NULL, 0, &now), 0);
    CHECK_EQ(now, BEGAN_NS);
    for (int i = 0; i < 30; i++) { /* 30 seconds */
        for (int k = 0; k < 200; k++) {
            card_turn(A, TURN_NS);
            card_turn(B, TURN_NS);
        }
        (void)read_of(b, A, &now);
    }
    const struct bh_driver_busy a = read_of(b, A, &now);
    CHECK_EQ(a.turns, 6000);
    CHECK_EQ(a.ns * 1000 / (card.tape.now_ns - BEGAN_NS), 481);
    CHECK_EQ(now, card.tape.now_ns);
    CHECK(card.gets == 30 && card.flushes == 32 && card.head->get == card.head->put);
    over(b);
    CHECK_EQ(card.objects, 0);
}

TEST(a_full_ring_loses_and_invents_nothing)
{
    struct bh_busy *b = watched();
    uint64_t now;
    for (int k = 0; k < RING_SIZE; k++)
        card_turn(k % 2 ? B : A, TURN_NS);
    CHECK_EQ(bh_busy_read(b, NULL, 0, &now), 0); /* whoever has it now */
    CHECK(card.head->dropped > 0);
    card_says(RM_TURN_ENDS, UINT32_MAX);
    const struct bh_driver_busy a = read_of(b, A, &now), c = read_of(b, B, &now);
    CHECK_EQ(a.turns + c.turns, RING_SIZE / 2);
    CHECK(a.ns + c.ns <= RING_SIZE / 2 * (TURN_NS + 32) && !a.on && !c.on);
    card_turn(A, TURN_NS);
    CHECK(read_of(b, A, &now).ns - a.ns < TURN_NS + 32);
    over(b);
}

TEST(a_turn_goes_on_by_the_cards_clock)
{
    struct bh_busy *b = watched();
    uint64_t now;
    card_says(RM_TURN_BEGINS, A);
    card.tape.now_ns += 60 * MS;
    const struct bh_driver_busy a = read_of(b, A, &now);
    CHECK(a.on && a.ns == 60 * MS - BH_BUSY_SETTLE_NS && a.use_permille == BH_DRIVER_USE_UNKNOWN);
    over(b);
}

/* By a clock of our own that is fast or slow, a read every 5 ms for ten seconds: asked seldom, hardly behind, never ahead, never back. */
static void check_between(int64_t fast_ppm)
{
    struct bh_busy *b = watched();
    uint64_t now, before = 0;
    card.fast_ppm = fast_ppm;
    for (int i = 0; i < 2000; i++) {
        card.tape.now_ns += 5 * MS;
        (void)bh_busy_read(b, NULL, 0, &now);
        CHECK(now <= card.tape.now_ns && now + 100000 > card.tape.now_ns && now > before);
        before = now;
    }
    CHECK(card.times > 150 && card.times <= 1 + 2000 / 10);
    over(b);
}

TEST(between_two_answers_of_the_card_our_own_clock_counts_on)
{
    check_between(0);
    check_between(500);
    check_between(-500);
}

/* Before it has said anything, and after. */
TEST(a_machine_that_slept_asks_the_card_again)
{
    struct bh_busy *b = watched();
    uint64_t now;
    for (int i = 0; i < 2; i++) {
        card.tape.now_ns += 5 * MS;
        (void)read_of(b, A, &now);
        card.tape.now_ns += 20000 * (uint64_t)MS;
        card.slept_ns += 20000 * (uint64_t)MS;
        card_turn(A, TURN_NS);
        const uint32_t turns = i ? 2 : 1, asked = card.times;
        CHECK(read_of(b, A, &now).turns == turns && now == card.tape.now_ns);
        CHECK_EQ(card.times, asked + 1);
    }
    over(b);
}

TEST(a_card_that_answers_no_more_is_asked_again)
{
    struct bh_busy *b = watched();
    uint64_t now;
    card_says(RM_TURN_BEGINS, A);
    card.tape.now_ns += 60 * MS;
    (void)read_of(b, A, &now);
    card.clock = false;
    for (int i = 0; i < 20; i++) {
        card.tape.now_ns += 10 * MS;
        (void)read_of(b, A, &now);
        CHECK(now <= card.tape.now_ns);
    }
    const uint32_t asked = card.times;
    card.clock = true;
    card.tape.now_ns += 10 * MS;
    (void)read_of(b, A, &now);
    CHECK(card.times == asked + 1 && now == card.tape.now_ns);
    over(b);
}

/* One that is alone and works for a part of the time: a read every 5 ms, a sample every 150. */
static void watch_use(uint32_t fail, uint32_t *ret)
{
    struct bh_err err;
    struct bh_busy *b;
    uint64_t now;
    card.fail = fail;
    card.status = RM_NOT_SUPPORTED;
    b = watch(true, &err);
    CHECK(b != NULL);
    samples_clear(&card.samples);
    card_says(RM_TURN_BEGINS, A);
    for (int ms = 0; ms < 2000; ms += 5) {
        card.tape.now_ns += 5 * MS;
        if (ms % 150 == 0)
            samples_add(&card.samples, card.tape.now_ns, A, 400);
        *ret = read_of(b, A, &now).use_permille;
    }
    CHECK_EQ(bh_busy_unused(b), fail ? 0 : 960);
    CHECK(card.asks >= 5 &&
          card.asks <= (fail ? 25 : 14)); /* not at each read: often until it is known or there are none */
    over(b);
    card.fail = 0;
}

TEST(the_driver_is_asked_now_and_then_what_was_work)
{
    uint32_t use = 0;
    watch_use(0, &use);
    CHECK(use >= 35 && use <= 45);
    watch_use(RM_CTRL_PERF_USE_SAMPLES, &use);
    CHECK_EQ(use, BH_DRIVER_USE_UNKNOWN);
}

/* Two by turns, each read a quarter of a second after the last. */
static uint32_t asks_in(struct bh_busy *b, int seconds)
{
    const uint32_t before = card.asks;
    uint64_t now;
    for (int i = 0; i < seconds * 4; i++) {
        for (int k = 0; k < 10; k++) {
            const uint32_t pid = k % 2 ? A : B;
            card_says(RM_TURN_BEGINS, pid);
            card.tape.now_ns += 25 * MS;
            card_says(RM_TURN_ENDS, pid);
        }
        (void)read_of(b, A, &now);
    }
    return card.asks - before;
}

TEST(the_driver_is_asked_seldom_where_nothing_follows)
{
    struct bh_busy *b = watched();
    samples_clear(&card.samples);
    CHECK(asks_in(b, 10) >= 10);
    bh_busy_ask_seldom(b, true);
    CHECK(asks_in(b, 20) <= 4);
    bh_busy_ask_seldom(b, false);
    CHECK(asks_in(b, 10) >= 10);
    over(b);
}

/* Our own clock, from the newest record on: it moves, and never ahead of what could be. */
static void check_own_clock(struct bh_busy *b)
{
    uint64_t now = 1, later;
    CHECK(b != NULL);
    CHECK(bh_busy_read(b, NULL, 0, &now) == 0);
    card_says(RM_TURN_BEGINS, A);
    (void)read_of(b, A, &now);
    CHECK(now >= BEGAN_NS / 32 * 32 && now < BEGAN_NS + UINT64_C(60000) * MS);
    card.tape.now_ns += 2 * MS;
    const struct bh_driver_busy a = read_of(b, A, &later);
    CHECK(later >= now + 2 * MS && a.on && a.ns > 0 && a.ns <= later - BEGAN_NS / 32 * 32);
    over(b);
}

TEST(without_the_cards_clock_our_own_counts_on)
{
    struct bh_err err;
    check_own_clock(watch(false, &err));
}

TEST(a_clock_that_is_not_the_records_is_not_used)
{
    struct bh_err err;
    check_own_clock(watch_with(true, BEGAN_NS - 5000, &err)); /* since the machine began, say */
    check_own_clock(watch_with(true, -(uint64_t)20000 * MS, &err));
}

TEST(a_damaged_head_is_not_followed)
{
    struct bh_busy *b = watched();
    uint64_t now;
    card_says(RM_TURN_BEGINS, A);
    card.head->put = RING_SIZE;
    CHECK_EQ(read_of(b, A, &now).turns, 0);
    card.head->put = UINT32_MAX;
    CHECK_EQ(read_of(b, A, &now).turns, 0);
    card.head->put = 1;
    CHECK_EQ(read_of(b, A, &now).turns, 1);
    over(b);
}

TEST(a_refusal_is_said_and_leaves_nothing)
{
    static const struct {
        uint32_t fail;
        const char *what;
    } steps[] = {{RM_CLASS_MEMORY_DEVICELESS, "memory for its head"},
                 {RM_CLASS_EVENT_BUFFER, "a buffer"},
                 {RM_CTRL_GR_BIND_SWITCHES, "for root"},
                 {RM_CTRL_EVENT_BUFFER_ENABLE, "switching it on"}};
    for (size_t i = 0; i < BH_COUNT_OF(steps); i++) {
        struct bh_err err = {0};
        card.fail = steps[i].fail;
        card.status = RM_INSUFFICIENT_PERMISSIONS;
        CHECK(watch(true, &err) == NULL);
        CHECK_EQ(err.code, BH_REFUSED);
        CHECK(strstr(err.msg, steps[i].what) && strstr(err.msg, "0x1b"));
        CHECK_EQ(card.objects, 0);
        for (int k = 0; k < card.n_files; k++)
            CHECK(close(card.files[k]) < 0 && errno == EBADF);
        over(NULL);
    }
    card.fail = 0;
}

TEST_MAIN
