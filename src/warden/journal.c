/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - records in a memfd, and the one word that makes them count.
 *
 * There is one writer, and its stores are seen in their order by whoever comes after its death: a signal falls between
 * two instructions, so it is the compiler alone that must not move a record behind the word. Nobody but the wardens can
 * write there; it is read with suspicion all the same, since a successor that crashed would leave the tenants waiting.
 */
#include "warden/journal.h"

#include "base/idmap.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6c6e6a2d64686b62) /* bkhd-jnl */
enum {
    VERSION = 1,
    HEAD_BYTES = 4096,
    HALF_RECORDS =
        1 << 22, /* a full ledger (2^20 objects and as many blocks), its claims and a million files */
    SOON = 1024, /* records after which a half is written anew, unless what is there is much by itself */
    KEEP_BYTES = SOON * 64, /* a half that is no longer in force keeps this much memory for its next turn */
};

enum { SLOT = 64, SLOT_GONE, PROCESS, MAPPING }; /* kinds beside the ledger's */

struct record {
    uint64_t sum;
    union {
        uint32_t kind;
        struct bh_ledger_op op;
        struct {
            uint32_t kind;
            struct bh_journal_slot slot;
        } s;
        struct {
            uint32_t kind;
            struct bh_journal_process process;
        } p;
        struct {
            uint32_t kind;
            struct bh_journal_mapping mapping;
        } m;
        uint64_t words[7];
    } u;
};
_Static_assert(sizeof(struct record) == 64, "a record is a line of the cache");
_Static_assert((int)BH_LEDGER_OP_N_ <= (int)SLOT, "the ledger's kinds run into ours");

struct head {
    uint64_t magic;
    uint32_t version, flight_bytes;
    uint64_t cap_bytes;
    _Atomic uint64_t word;
    struct bh_journal_flight flight;
    struct bh_gate_stats stats;
};
_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head is a page");

#define HALF_BYTES ((size_t)HALF_RECORDS * sizeof(struct record))
#define ALL_BYTES  (HEAD_BYTES + 2 * HALF_BYTES)

struct bh_journal {
    struct head *head;
    struct record *halves[2];
    struct bh_ledger *ledger;
    void (*rest)(void *arg, struct bh_journal *j);
    void *rest_arg;
    uint32_t half;    /* written to */
    uint32_t n;       /* records in it, counting or not */
    uint32_t counts;  /* of them */
    uint32_t rewrite; /* at this many it is written anew */
    bool full;        /* something did not fit: it is to be written anew before it counts */
};

/* half: 1 bit, stage: 2 bits, records: the rest */
static uint64_t word_of(uint32_t half, enum bh_journal_stage stage, uint32_t n)
{
    return half | (uint64_t)stage << 1 | (uint64_t)n << 3;
}

static uint64_t sum_of(const struct record *r, uint64_t place)
{
    uint64_t sum = place;
    for (size_t i = 0; i < BH_COUNT_OF(r->u.words); i++)
        sum = bh_idmap_mix(sum ^ r->u.words[i]);
    return sum;
}

static uint64_t place_of(uint32_t half, uint32_t at)
{
    return (uint64_t)half << 32 | at;
}

/* ---- writing ---- */

static struct record *put(struct bh_journal *j, struct record *r)
{
    if (j->n >= HALF_RECORDS) {
        j->full = true;
        return NULL;
    }
    r->sum = sum_of(r, place_of(j->half, j->n));
    struct record *at = &j->halves[j->half][j->n++];
    *at = *r;
    return at;
}

static void hear(void *arg, const struct bh_ledger_op *op)
{
    struct record r = {0};
    r.u.op = *op;
    (void)put(arg, &r);
}

void bh_journal_slot(struct bh_journal *j, const struct bh_journal_slot *slot)
{
    struct record r = {0};
    r.u.s.kind = SLOT;
    r.u.s.slot = *slot;
    (void)put(j, &r);
}

void bh_journal_slot_gone(struct bh_journal *j, uint32_t pid, int fd)
{
    struct record r = {0};
    r.u.s.kind = SLOT_GONE;
    r.u.s.slot.pid = pid;
    r.u.s.slot.fd = fd;
    (void)put(j, &r);
}

void bh_journal_process(struct bh_journal *j, const struct bh_journal_process *process)
{
    struct record r = {0};
    r.u.p.kind = PROCESS;
    r.u.p.process = *process;
    (void)put(j, &r);
}

void bh_journal_mapping(struct bh_journal *j, const struct bh_journal_mapping *mapping)
{
    struct record r = {0};
    r.u.m.kind = MAPPING;
    r.u.m.mapping = *mapping;
    (void)put(j, &r);
}

void bh_journal_set_stage(struct bh_journal *j, enum bh_journal_stage stage)
{
    if (bh_journal_stage(j) != BH_JOURNAL_LOST)
        atomic_store_explicit(&j->head->word, word_of(j->half, stage, j->counts), memory_order_release);
}

/* The pages of a half that held much are given back. */
static void release(const struct bh_journal *j, uint32_t half, uint32_t n)
{
    const size_t bytes = (size_t)n * sizeof(struct record);
    if (bytes > KEEP_BYTES)
        (void)madvise((char *)j->halves[half] + KEEP_BYTES, HALF_BYTES - KEEP_BYTES, MADV_REMOVE);
}

/* A half of changes to what is there: as seldom as memory allows, since that is held once more meanwhile. */
static uint32_t rewrite_at(uint32_t n)
{
    const uint32_t more = n / 2 > SOON / 2 ? n / 2 : SOON / 2;
    return n + more < HALF_RECORDS ? n + more : HALF_RECORDS;
}

void bh_journal_compact(struct bh_journal *j, enum bh_journal_stage stage)
{
    const uint32_t old = j->half, old_n = j->n;
    j->half = !old;
    j->n = 0;
    j->full = false;
    bh_ledger_snapshot(j->ledger, (struct bh_ledger_log){hear, j});
    j->rest(j->rest_arg, j);
    j->counts = j->n;
    j->rewrite = rewrite_at(j->n);
    bh_journal_set_stage(j, j->full ? BH_JOURNAL_LOST : stage);
    release(j, old, old_n);
}

void bh_journal_commit(struct bh_journal *j, enum bh_journal_stage stage)
{
    if (j->full || j->n >= j->rewrite) {
        bh_journal_compact(j, stage);
        return;
    }
    j->counts = j->n;
    bh_journal_set_stage(j, stage);
}

void bh_journal_clear_flight(struct bh_journal *j)
{
    struct bh_journal_flight *f = &j->head->flight;
    /* First what says that there is a call. */
    *(volatile __u64 *)&f->notif.id = 0;
    atomic_signal_fence(memory_order_seq_cst);
    memset(f, 0, sizeof(*f));
    atomic_signal_fence(memory_order_seq_cst);
    bh_journal_commit(j, BH_JOURNAL_IDLE);
}

struct bh_journal_flight *bh_journal_flight(struct bh_journal *j)
{
    return &j->head->flight;
}

struct bh_gate_stats *bh_journal_stats(struct bh_journal *j)
{
    return &j->head->stats;
}

enum bh_journal_stage bh_journal_stage(const struct bh_journal *j)
{
    return (enum bh_journal_stage)(atomic_load_explicit(&j->head->word, memory_order_acquire) >> 1 & 3);
}

void bh_journal_attach(struct bh_journal *j, struct bh_ledger *ledger,
                       void (*rest)(void *arg, struct bh_journal *j), void *arg)
{
    j->ledger = ledger;
    j->rest = rest;
    j->rest_arg = arg;
    bh_ledger_observe(ledger, (struct bh_ledger_log){hear, j});
}

/* ---- making and finding ---- */

static int fail_errno(struct bh_err *err, const char *what)
{
    return bh_fail(err, BH_SYSTEM, "the warden's journal: %s: %s", what, strerrordesc_np(errno));
}

static int map_it(int fd, struct bh_journal **ret, struct bh_err *err)
{
    char *at = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        return fail_errno(err, "mmap");
    struct bh_journal *j = bh_alloc(1, sizeof(*j));
    j->head = (struct head *)(void *)at;
    for (size_t i = 0; i < 2; i++)
        j->halves[i] = (struct record *)(void *)(at + HEAD_BYTES + i * HALF_BYTES);
    j->rewrite = SOON;
    *ret = j;
    return BH_OK;
}

int bh_journal_new(int fd, uint64_t cap_bytes, struct bh_journal **ret, struct bh_err *err)
{
    const int own = fd < 0 ? memfd_create("bulkhead-journal", MFD_CLOEXEC) : -1;
    if (fd < 0 && own < 0)
        return fail_errno(err, "memfd_create");
    int rc = ftruncate(fd < 0 ? own : fd, (off_t)ALL_BYTES) < 0 ? fail_errno(err, "ftruncate") : BH_OK;
    if (rc == BH_OK)
        rc = map_it(fd < 0 ? own : fd, ret, err);
    if (own >= 0)
        close(own); /* the mapping holds it */
    if (rc < 0)
        return rc;
    struct head *h = (*ret)->head;
    memset(h, 0, sizeof(*h));
    h->version = VERSION;
    h->flight_bytes = sizeof(h->flight);
    h->cap_bytes = cap_bytes;
    h->magic = MAGIC;
    return BH_OK;
}

void bh_journal_free(struct bh_journal *j)
{
    if (!j)
        return;
    if (j->ledger)
        bh_ledger_observe(j->ledger, (struct bh_ledger_log){0});
    (void)munmap(j->head, ALL_BYTES);
    free(j);
}

void bh_journal_found_fini(struct bh_journal_found *found)
{
    bh_ledger_free(found->ledger);
    found->ledger = NULL;
    bh_vec_fini(&found->slots);
    bh_vec_fini(&found->processes);
    bh_vec_fini(&found->mappings);
}

/* Where things are in what is found, by name. */
struct names {
    struct bh_idmap slots, processes, threads;
};

static uint64_t slot_key(const struct bh_journal_slot *s)
{
    return (uint64_t)s->pid << 32 | (uint32_t)s->fd;
}

static bool find_slot(struct bh_journal_found *found, struct names *names, const struct record *r)
{
    const struct bh_journal_slot *s = &r->u.s.slot;
    uint32_t at = bh_idmap_find(&names->slots, slot_key(s));
    if (s->pid == 0 || s->fd < 0 || (r->u.kind == SLOT && s->file == 0))
        return false;
    if (r->u.kind == SLOT_GONE) {
        if (at != BH_IDMAP_NONE)
            found->slots.at[at].pid = 0;
        (void)bh_idmap_remove(&names->slots, slot_key(s));
        return true;
    }
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->slots.n;
        (void)bh_vec_push(&found->slots);
        (void)bh_idmap_add(&names->slots, slot_key(s), at);
    }
    found->slots.at[at] = *s;
    if (s->file > found->last_file)
        found->last_file = s->file;
    return true;
}

static bool find_process(struct bh_journal_found *found, struct names *names, const struct record *r)
{
    const struct bh_journal_process *p = &r->u.p.process;
    uint32_t at = bh_idmap_find(&names->processes, p->pid);
    if (p->pid == 0)
        return false;
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->processes.n;
        (void)bh_vec_push(&found->processes);
        (void)bh_idmap_add(&names->processes, p->pid, at);
    }
    found->processes.at[at] = *p;
    return true;
}

static bool find_mapping(struct bh_journal_found *found, struct names *names, const struct record *r)
{
    const struct bh_journal_mapping *m = &r->u.m.mapping;
    uint32_t at = bh_idmap_find(&names->threads, m->tid);
    if (m->pid == 0 || m->tid == 0)
        return false;
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->mappings.n;
        (void)bh_vec_push(&found->mappings);
        (void)bh_idmap_add(&names->threads, m->tid, at);
    }
    found->mappings.at[at] = *m;
    return true;
}

static bool find_one(struct bh_journal_found *found, struct names *names, const struct record *r)
{
    switch (r->u.kind) {
    case SLOT:
    case SLOT_GONE:
        return find_slot(found, names, r);
    case PROCESS:
        return find_process(found, names, r);
    case MAPPING:
        return find_mapping(found, names, r);
    default:
        return bh_ledger_apply(found->ledger, &r->u.op);
    }
}

static int replay(struct bh_journal *j, struct bh_journal_found *found, struct bh_err *err)
{
    struct names names = {0};
    uint32_t i;
    for (i = 0; i < j->n; i++) {
        const struct record r = j->halves[j->half][i];
        if (r.sum != sum_of(&r, place_of(j->half, i)) || !find_one(found, &names, &r))
            break;
    }
    bh_idmap_fini(&names.slots);
    bh_idmap_fini(&names.processes);
    bh_idmap_fini(&names.threads);
    if (i < j->n)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is damaged: record %u of %u cannot be", i,
                       j->n);
    const char *why = bh_ledger_check(found->ledger);
    if (why)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is damaged: it gives %s", why);
    return BH_OK;
}

static int look_at_head(struct bh_journal *j, uint64_t cap_bytes, struct bh_err *err)
{
    const struct head *h = j->head;
    const uint64_t word = atomic_load_explicit(&h->word, memory_order_acquire), n = word >> 3;
    if (h->magic != MAGIC)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is none, or was not begun");
    if (h->version != VERSION || h->flight_bytes != sizeof(h->flight))
        return bh_fail(err, BH_CONFLICT, "the warden's journal is of version %u, this warden's of %d",
                       h->version, VERSION);
    if (h->cap_bytes != cap_bytes)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is of a lease with another cap");
    if ((word >> 1 & 3) == BH_JOURNAL_LOST)
        return bh_fail(err, BH_CONFLICT, "the warden before had no room left in its journal");
    if (n > HALF_RECORDS)
        return bh_fail(err, BH_CONFLICT,
                       "the warden's journal is damaged: it has %llu records, of at most %d",
                       (unsigned long long)n, HALF_RECORDS);
    j->half = word & 1;
    j->n = j->counts = (uint32_t)n;
    return BH_OK;
}

int bh_journal_adopt(int fd, uint64_t cap_bytes, uint64_t seed, struct bh_journal **ret,
                     struct bh_journal_found *found, struct bh_err *err)
{
    struct stat st;
    struct bh_journal *j = NULL;
    *ret = NULL;
    *found = (struct bh_journal_found){0};
    if (fstat(fd, &st) < 0)
        return fail_errno(err, "fstat");
    /* Of another size, reading could run past its end. */
    if (st.st_size != (off_t)ALL_BYTES)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is none, or was not begun");
    int rc = map_it(fd, &j, err);
    if (rc < 0)
        return rc;
    rc = look_at_head(j, cap_bytes, err);
    if (rc == BH_OK) {
        found->ledger = bh_ledger_new(cap_bytes);
        bh_ledger_seed(found->ledger, seed);
        rc = replay(j, found, err);
    }
    if (rc < 0) {
        bh_journal_found_fini(found);
        bh_journal_free(j);
        return rc;
    }
    j->head->stats.why_killed[sizeof(j->head->stats.why_killed) - 1] = '\0';
    *ret = j;
    return BH_OK;
}
