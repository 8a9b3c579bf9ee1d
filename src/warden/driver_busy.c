/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_busy.c - the ring of records that the driver fills with the turns on a card.
 *
 * The ring and its head are memory of our own client that the driver writes and we may only read. What is in it is taken out
 * one record at a time and never trusted further than to be bytes of the right size.
 *
 * A turn that goes on counts up to now, which must be known on the records' clock. The card is asked for its time before
 * the records are fetched: whatever began before that is among them. To ask takes 40 us, more than all the rest where no turn
 * changed, so for a while our own clock counts on from the answer, a little slowly, and is never ahead of the card's. Should it
 * not answer, or answer on another clock, our own counts on from the newest record.
 */
#include "warden/driver_busy.h"

#include "base/mem.h"
#include "warden/busy_book.h"
#include "warden/use_book.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    RECORDS = 8192, /* four seconds of changes every millisecond */
    PAGE = 4096,
    HEAD = 0,
    RING,
    BUFFER,
};
#define RING_BYTES ((size_t)RECORDS * sizeof(struct rm_switch_record))
#define APART_NS   (UINT64_C(10) * 1000000000) /* clocks that are further apart are two */
#define ASK_NS     (UINT64_C(50) * 1000000)
#define DRIFT_PART 1024 /* two oscillators are less than this part apart */

struct bh_busy {
    struct bh_rm rm;
    uint32_t subdevice, first_name;
    int files[2]; /* what the two pieces of memory are mapped through */
    void *maps[2];
    uint32_t get;
    uint64_t dropped;
    bool own_clock;     /* the card's time cannot be used */
    uint64_t began_ns;  /* the card's time when it began; 0: not known */
    uint64_t asked_ns;  /* its last answer; 0: none */
    uint64_t asked_at;  /* and when that had come, on our own clock */
    uint64_t newest_ns; /* the newest record; 0: there was none */
    uint64_t newest_at; /* and when it was read, on our own clock */
    struct bh_busy_book book;
    struct rm_use_samples samples;
    struct bh_use_book use;
};
_Static_assert(BUFFER + 1 == BH_BUSY_NAMES, "an object without a name");

static const size_t map_bytes[] = {[HEAD] = PAGE, [RING] = RING_BYTES};

static int refused(struct bh_err *err, const char *what, int rc)
{
    if (rc < 0)
        return bh_fail(err, BH_REFUSED, "who has the card when cannot be watched: %s: %s", what,
                       strerror(-rc));
    return bh_fail(err, BH_REFUSED, "who has the card when cannot be watched: %s: status 0x%x", what,
                   (unsigned)rc);
}

static int take_memory(struct bh_busy *b, size_t which)
{
    struct rm_memory_params params = {.size = map_bytes[which],
                                      .attr = RM_ATTR_WRITE_BACK,
                                      .attr2 = RM_ATTR2_USER_READ_ONLY,
                                      .alignment = PAGE};
    uint32_t name = b->first_name + (uint32_t)which;
    int rc = bh_rm_alloc(&b->rm, b->rm.client, &name, RM_CLASS_MEMORY_DEVICELESS, &params);
    if (rc != RM_OK)
        return rc;
    b->files[which] = b->rm.files.open("/dev/nvidiactl"); /* one mapping for each open file */
    if (b->files[which] < 0)
        return -errno;
    struct rm_map_memory map = {.client = b->rm.client,
                                .device = b->rm.client,
                                .memory = name,
                                .length = map_bytes[which],
                                .fd = b->files[which],
                                .flags = RM_MAP_READ_ONLY};
    if (b->rm.files.ioctl(b->rm.ctl, RM_IOC(RM_MAP_MEMORY, sizeof(map)), &map) < 0)
        return -errno;
    if (map.status != RM_OK)
        return (int)map.status;
    void *at = mmap(NULL, map_bytes[which], PROT_READ, MAP_SHARED, b->files[which], 0);
    if (at == MAP_FAILED)
        return -errno;
    b->maps[which] = at;
    return RM_OK;
}

static int begin(struct bh_busy *b, struct bh_err *err)
{
    static const char *const pieces[] = {"memory for its head", "memory for its records"};
    uint32_t name = b->first_name + BUFFER;
    for (size_t i = HEAD; i <= RING; i++) {
        const int rc = take_memory(b, i);
        if (rc != RM_OK)
            return refused(err, pieces[i], rc);
    }
    struct rm_event_buffer_params params = {.record_size = sizeof(struct rm_switch_record),
                                            .record_count = RECORDS,
                                            .subdevice = b->subdevice,
                                            .header = b->first_name + HEAD,
                                            .records = b->first_name + RING};
    int rc = bh_rm_alloc(&b->rm, b->rm.client, &name, RM_CLASS_EVENT_BUFFER, &params);
    if (rc != RM_OK)
        return refused(err, "a buffer", rc);
    struct rm_bind_switches bind = {.buffer = name,
                                    .record_size = sizeof(struct rm_switch_record) -
                                                   offsetof(struct rm_switch_record, tag),
                                    .all_users = 1};
    rc = bh_rm_control(&b->rm, b->subdevice, RM_CTRL_GR_BIND_SWITCHES, &bind, sizeof(bind));
    if (rc != RM_OK)
        return refused(err, "all users' turns (this is for root)", rc);
    struct rm_event_buffer_enable enable = {.on = 1, .keep = RM_KEEP_OLDEST};
    rc = bh_rm_control(&b->rm, name, RM_CTRL_EVENT_BUFFER_ENABLE, &enable, sizeof(enable));
    return rc == RM_OK ? BH_OK : refused(err, "switching it on", rc);
}

static uint64_t own_ns(const struct bh_busy *b)
{
    struct timespec t;
    if (b->rm.files.clock_ns)
        return b->rm.files.clock_ns();
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &t); /* the other one may be slewed by a tenth */
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The card's time, or 0. */
static uint64_t ask_card(struct bh_busy *b)
{
    uint64_t ns = 0;
    const int rc = bh_rm_control(&b->rm, b->subdevice, RM_CTRL_TIMER_GET_TIME, &ns, sizeof(ns));
    b->asked_ns = rc == RM_OK ? ns : 0;
    b->asked_at = own_ns(b); /* after it: what the call took is left out */
    return b->asked_ns;
}

/* The same or a little before it, or 0. */
static uint64_t card_time(struct bh_busy *b)
{
    const uint64_t since = b->asked_ns ? own_ns(b) - b->asked_at : ASK_NS;
    return since < ASK_NS ? b->asked_ns + since - since / DRIFT_PART : ask_card(b);
}

int bh_busy_new(const struct bh_rm *rm, uint32_t subdevice, uint32_t first_name, struct bh_busy **ret,
                struct bh_err *err)
{
    struct bh_busy *b = bh_alloc(1, sizeof(*b));
    b->rm = *rm;
    b->subdevice = subdevice;
    b->first_name = first_name;
    b->files[HEAD] = b->files[RING] = -1;
    bh_busy_book_init(&b->book);
    bh_use_book_init(&b->use);
    b->began_ns = ask_card(b);
    const int rc = begin(b, err);
    if (rc < 0)
        bh_busy_free(b);
    else
        *ret = b;
    return rc;
}

void bh_busy_free(struct bh_busy *b)
{
    if (!b)
        return;
    /* The buffer first, which writes into the others. Those that were never made say so, and nobody minds. */
    for (uint32_t i = BH_BUSY_NAMES; i-- > 0;) {
        struct rm_free f = {.client = b->rm.client, .parent = b->rm.client, .object = b->first_name + i};
        if (i < BH_COUNT_OF(b->maps) && b->maps[i])
            (void)munmap(b->maps[i], map_bytes[i]);
        (void)b->rm.files.ioctl(b->rm.ctl, RM_IOC(RM_FREE, sizeof(f)), &f);
        if (i < BH_COUNT_OF(b->files) && b->files[i] >= 0)
            close(b->files[i]);
    }
    free(b);
}

/* Is the clock we ask the one that the records have? The first one with a name tells: it is of after we began. */
static void compare_clocks(struct bh_busy *b, const struct rm_switch_record *r, uint64_t card_ns)
{
    if (b->own_clock || b->newest_ns || r->pid == 0 || r->pid == UINT32_MAX)
        return;
    b->own_clock = card_ns == 0 || b->began_ns == 0 || r->at_ns > card_ns + APART_NS ||
                   r->at_ns + APART_NS < b->began_ns;
}

static void take_record(struct bh_busy *b, const struct rm_switch_record *r, uint64_t card_ns)
{
    compare_clocks(b, r, card_ns);
    const uint64_t latest = b->own_clock || card_ns == 0 ? UINT64_MAX : card_ns + APART_NS;
    bh_busy_book_add(&b->book, r, latest);
    bh_use_book_note(&b->use, &b->book);
    if (r->at_ns > b->newest_ns && r->at_ns <= latest)
        b->newest_ns = r->at_ns;
}

/* The card's time, which may be known better afterwards. */
static uint64_t take_records(struct bh_busy *b, uint64_t card_ns)
{
    const struct rm_event_buffer_head *head = b->maps[HEAD];
    const uint8_t *ring = b->maps[RING];
    const uint32_t put = __atomic_load_n(&head->put, __ATOMIC_ACQUIRE);
    const uint64_t dropped = __atomic_load_n(&head->dropped, __ATOMIC_RELAXED);
    const uint32_t from = b->get;
    bool sure = b->own_clock || card_ns == 0;
    while (put < RECORDS && b->get != put) {
        struct rm_switch_record r;
        memcpy(&r, ring + (size_t)b->get * sizeof(r), sizeof(r));
        if (!sure && r.at_ns > card_ns + ASK_NS) { /* this machine slept, and the card's clock did not */
            card_ns = ask_card(b);
            sure = true;
        }
        take_record(b, &r, card_ns);
        b->get = (b->get + 1) % RECORDS;
    }
    if (dropped != b->dropped)
        bh_busy_book_lose(&b->book);
    b->dropped = dropped;
    if (b->get == from)
        return card_ns;
    struct rm_event_buffer_get get = {.get = b->get};
    (void)bh_rm_control(&b->rm, b->first_name + BUFFER, RM_CTRL_EVENT_BUFFER_GET, &get, sizeof(get));
    b->newest_at = own_ns(b);
    return card_ns;
}

/* An answer is 56 KB and takes 1.5 ms, so this is asked seldom. Where there is none, nothing is known of their use. */
static void ask_use(struct bh_busy *b, uint64_t now_ns)
{
    if (!bh_use_book_watch(&b->use, &b->book, now_ns))
        return;
    memset(&b->samples, 0, sizeof(b->samples));
    b->samples.type = RM_SAMPLES_USE;
    b->samples.bytes = sizeof(b->samples.samples);
    const int rc =
        bh_rm_control(&b->rm, b->subdevice, RM_CTRL_PERF_USE_SAMPLES, &b->samples, sizeof(b->samples));
    bh_use_book_take(&b->use, rc == RM_OK ? &b->samples : NULL, &b->book, now_ns);
}

void bh_busy_ask_seldom(struct bh_busy *b, bool seldom)
{
    bh_use_ask_seldom(&b->use.use, seldom);
}

uint32_t bh_busy_unused(const struct bh_busy *b)
{
    return bh_use_unused(&b->use.use, b->book.until_ns);
}

size_t bh_busy_read(struct bh_busy *b, struct bh_driver_busy *ret, size_t max, uint64_t *ret_now_ns)
{
    uint64_t card_ns = b->own_clock ? 0 : card_time(b);
    (void)bh_rm_control(&b->rm, b->first_name + BUFFER, RM_CTRL_EVENT_BUFFER_FLUSH, NULL, 0);
    card_ns = take_records(b, card_ns);
    uint64_t now_ns = card_ns;
    if (b->own_clock || card_ns == 0)
        now_ns = b->newest_ns ? b->newest_ns + (own_ns(b) - b->newest_at) : 0;
    bh_busy_book_look(&b->book, now_ns);
    now_ns = now_ns > b->book.until_ns ? now_ns : b->book.until_ns;
    ask_use(b, now_ns);
    *ret_now_ns = now_ns;
    const size_t n = bh_busy_book_tell(&b->book, ret, max);
    for (size_t i = 0; i < n && i < max; i++) {
        ret[i].use_permille = bh_use_book_permille(&b->use, ret[i].pid);
        ret[i].doubt = bh_use_book_doubt(&b->use, ret[i].pid);
    }
    return n;
}
