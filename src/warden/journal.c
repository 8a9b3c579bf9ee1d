/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - records in a memfd, and the one word that makes them count.
 *
 * There is one writer, and its stores are seen in their order by whoever comes after its death: a signal falls between
 * two instructions, so it is the compiler alone that must not move a record behind the word. Nobody but the wardens can
 * write there; it is read with suspicion all the same, since a successor that crashed would leave the tenants waiting.
 *
 * Records are packed (journal_pack.h), and each time that they come into force a seal is put behind them: the sum of all
 * before it. Version 1 had records of 64 bytes, with a sum in each. A half of them is read, and the first time that anything
 * is to come into force it is written anew, in the other half, as they are now; the word that puts it in force says which
 * ones they are, so also that is one store. A warden of version 1 does not go on from there.
 */
#include "warden/journal.h"

#include "base/idmap.h"
#include "warden/journal_pack.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC  UINT64_C(0x6c6e6a2d64686b62) /* bkhd-jnl */
#define PACKED (UINT64_C(1) << 63) /* in the word: its half has packed records, and it counts bytes */
#ifndef BH_JOURNAL_OLD_RECORDS     /* a test has halves that are soon full */
#define BH_JOURNAL_OLD_RECORDS (1 << 22)
#endif
enum {
    VERSION = 2,
    VERSION_OLD = 1, /* what is in force when it is taken over has records of it */
    HEAD_BYTES = 4096,
    OLD_RECORDS = BH_JOURNAL_OLD_RECORDS,
    /* a full ledger (2^20 objects and as many blocks), its claims and a million files, and none takes 64 bytes */
    HALF_BYTES = OLD_RECORDS * 64,
    SOON_BYTES = 32 << 10,   /* after which a half is written anew, unless what is there is much by itself */
    KEEP_BYTES = SOON_BYTES, /* a half that is no longer in force keeps this much memory for its next turn */
};

/* ---- records as version 1 had them ---- */

enum { OLD_SLOT = 64, OLD_SLOT_GONE, OLD_PROCESS, OLD_MAPPING }; /* kinds beside the ledger's */

struct old_record {
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
_Static_assert(sizeof(struct old_record) == 64, "it was a line of the cache");

struct head {
    uint64_t magic;
    uint32_t version, flight_bytes;
    uint64_t cap_bytes;
    _Atomic uint64_t word;
    struct bh_journal_flight flight;
    struct bh_gate_stats stats;
};
_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head is a page");

#define ALL_BYTES (HEAD_BYTES + 2 * (size_t)HALF_BYTES)

struct bh_journal {
    struct head *head;
    uint8_t *halves[2];
    struct bh_ledger *ledger;
    void (*rest)(void *arg, struct bh_journal *j);
    void *rest_arg;
    struct bh_journal_pack pack;
    uint32_t half;    /* written to */
    uint32_t n;       /* bytes in it, counting or not; of version 1: records */
    uint32_t counts;  /* of them */
    uint32_t rewrite; /* at this many it is written anew */
    bool old;         /* the half has records of version 1: nothing is added to it */
    bool full;        /* something did not fit: it is to be written anew before it counts */
};

/* half: 1 bit, stage: 2 bits, how much of it counts: the rest but for PACKED */
static uint64_t word_of(const struct bh_journal *j, enum bh_journal_stage stage)
{
    return j->half | (uint64_t)stage << 1 | (uint64_t)j->counts << 3 | (j->old ? 0 : PACKED);
}

/* ---- writing ---- */

static void put(struct bh_journal *j, const struct bh_ledger_op *op)
{
    if (j->old || j->n > HALF_BYTES - BH_JOURNAL_PACKED_MAX - BH_JOURNAL_SEAL_BYTES) {
        j->full = true;
        return;
    }
    uint8_t bytes[BH_JOURNAL_PACKED_MAX];
    const size_t n = bh_journal_pack(&j->pack, op, bytes);
    memcpy(j->halves[j->half] + j->n, bytes, n);
    j->n += (uint32_t)n;
}

/* All that was written since the last one is whole. */
static void seal(struct bh_journal *j)
{
    uint8_t bytes[BH_JOURNAL_SEAL_BYTES];
    if (j->n == j->counts)
        return;
    memcpy(j->halves[j->half] + j->n, bytes, bh_journal_pack_seal(&j->pack, bytes));
    j->n += BH_JOURNAL_SEAL_BYTES;
    j->counts = j->n;
}

static void hear(void *arg, const struct bh_ledger_op *op)
{
    put(arg, op);
}

static struct bh_ledger_op of_slot(const struct bh_journal_slot *s)
{
    return (struct bh_ledger_op){.kind = BH_JOURNAL_KIND_SLOT,
                                 .pid = s->pid,
                                 .object = (uint32_t)s->fd,
                                 .file = s->file,
                                 .class = s->kind,
                                 .gpu = s->gpu,
                                 .bytes = s->inode};
}

static struct bh_ledger_op of_process(const struct bh_journal_process *p)
{
    return (struct bh_ledger_op){.kind = BH_JOURNAL_KIND_PROCESS, .pid = p->pid, .bytes = p->started};
}

static struct bh_ledger_op of_mapping(const struct bh_journal_mapping *m)
{
    return (struct bh_ledger_op){
        .kind = BH_JOURNAL_KIND_MAPPING, .pid = m->pid, .object = m->tid, .bytes = m->bytes};
}

void bh_journal_slot(struct bh_journal *j, const struct bh_journal_slot *slot)
{
    const struct bh_ledger_op op = of_slot(slot);
    put(j, &op);
}

void bh_journal_slot_gone(struct bh_journal *j, uint32_t pid, int fd)
{
    put(j, &(struct bh_ledger_op){.kind = BH_JOURNAL_KIND_SLOT_GONE, .pid = pid, .object = (uint32_t)fd});
}

void bh_journal_process(struct bh_journal *j, const struct bh_journal_process *process)
{
    const struct bh_ledger_op op = of_process(process);
    put(j, &op);
}

void bh_journal_mapping(struct bh_journal *j, const struct bh_journal_mapping *mapping)
{
    const struct bh_ledger_op op = of_mapping(mapping);
    put(j, &op);
}

void bh_journal_set_stage(struct bh_journal *j, enum bh_journal_stage stage)
{
    if (bh_journal_stage(j) != BH_JOURNAL_LOST)
        atomic_store_explicit(&j->head->word, word_of(j, stage), memory_order_release);
}

static size_t bytes_in(const struct bh_journal *j)
{
    return (size_t)j->n * (j->old ? sizeof(struct old_record) : 1);
}

/* The pages of a half behind what is in it are given back. They may be larger than the head, and then the first and the last
 * one of a half have something of its neighbours too: only whole ones, and the kernel would round a length up by itself. */
static void release(const struct bh_journal *j, uint32_t half, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), at = HEAD_BYTES + half * (size_t)HALF_BYTES;
    const size_t from = (at + (bytes > KEEP_BYTES ? bytes : KEEP_BYTES) + page - 1) / page * page;
    const size_t to = (at + HALF_BYTES) / page * page;
    if (from < to)
        (void)madvise((uint8_t *)j->head + from, to - from, MADV_REMOVE);
}

/* As much in changes as what is there: as seldom as memory allows, since that is held once more meanwhile. */
static uint32_t rewrite_at(uint32_t n)
{
    const uint32_t more = n > SOON_BYTES / 2 ? n : SOON_BYTES / 2;
    return n < HALF_BYTES - more ? n + more : HALF_BYTES;
}

/* What an empty half begins with. */
static void pack_init(struct bh_journal_pack *pack, uint32_t half)
{
    memset(pack, 0, sizeof(*pack));
    pack->sum = half;
}

void bh_journal_compact(struct bh_journal *j, enum bh_journal_stage stage)
{
    const uint32_t old = j->half;
    const bool was_much = bytes_in(j) > KEEP_BYTES;
    j->half = !old;
    j->n = j->counts = 0;
    j->full = j->old = false;
    pack_init(&j->pack, j->half);
    bh_ledger_snapshot(j->ledger, (struct bh_ledger_log){hear, j});
    j->rest(j->rest_arg, j);
    seal(j);
    j->rewrite = rewrite_at(j->n);
    j->head->version =
        VERSION; /* before the word: who knows the old records alone must not see it with these */
    bh_journal_set_stage(j, j->full ? BH_JOURNAL_LOST : stage);
    if (was_much)
        release(j, old, 0);
}

void bh_journal_commit(struct bh_journal *j, enum bh_journal_stage stage)
{
    if (j->full || (!j->old && j->n >= j->rewrite)) {
        bh_journal_compact(j, stage);
        return;
    }
    seal(j);
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
        j->halves[i] = (uint8_t *)at + HEAD_BYTES + i * HALF_BYTES;
    j->rewrite = SOON_BYTES;
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
    pack_init(&(*ret)->pack, 0);
    bh_journal_set_stage(*ret, BH_JOURNAL_IDLE);
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

static bool find_slot(struct bh_journal_found *found, struct names *names, const struct bh_ledger_op *op)
{
    const struct bh_journal_slot s = {.pid = op->pid,
                                      .fd = (int32_t)op->object,
                                      .file = op->file,
                                      .kind = op->class,
                                      .gpu = op->gpu,
                                      .inode = op->bytes};
    uint32_t at = bh_idmap_find(&names->slots, slot_key(&s));
    if (s.pid == 0 || s.fd < 0 || (op->kind == BH_JOURNAL_KIND_SLOT && s.file == 0))
        return false;
    if (op->kind == BH_JOURNAL_KIND_SLOT_GONE) {
        if (at != BH_IDMAP_NONE)
            found->slots.at[at].pid = 0;
        (void)bh_idmap_remove(&names->slots, slot_key(&s));
        return true;
    }
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->slots.n;
        (void)bh_vec_push(&found->slots);
        (void)bh_idmap_add(&names->slots, slot_key(&s), at);
    }
    found->slots.at[at] = s;
    if (s.file > found->last_file)
        found->last_file = s.file;
    return true;
}

static bool find_process(struct bh_journal_found *found, struct names *names, const struct bh_ledger_op *op)
{
    uint32_t at = bh_idmap_find(&names->processes, op->pid);
    if (op->pid == 0)
        return false;
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->processes.n;
        (void)bh_vec_push(&found->processes);
        (void)bh_idmap_add(&names->processes, op->pid, at);
    }
    found->processes.at[at] = (struct bh_journal_process){op->pid, op->bytes};
    return true;
}

static bool find_mapping(struct bh_journal_found *found, struct names *names, const struct bh_ledger_op *op)
{
    const uint32_t tid = op->object;
    uint32_t at = bh_idmap_find(&names->threads, tid);
    if (op->pid == 0 || tid == 0)
        return false;
    if (at == BH_IDMAP_NONE) {
        at = (uint32_t)found->mappings.n;
        (void)bh_vec_push(&found->mappings);
        (void)bh_idmap_add(&names->threads, tid, at);
    }
    found->mappings.at[at] = (struct bh_journal_mapping){op->pid, tid, op->bytes};
    return true;
}

static bool find_one(struct bh_journal_found *found, struct names *names, const struct bh_ledger_op *op)
{
    switch (op->kind) {
    case BH_JOURNAL_KIND_SEAL:
        return true;
    case BH_JOURNAL_KIND_SLOT:
    case BH_JOURNAL_KIND_SLOT_GONE:
        return find_slot(found, names, op);
    case BH_JOURNAL_KIND_PROCESS:
        return find_process(found, names, op);
    case BH_JOURNAL_KIND_MAPPING:
        return find_mapping(found, names, op);
    default:
        return bh_ledger_apply(found->ledger, op);
    }
}

static bool old_sum_is_right(const struct old_record *r, uint32_t half, uint32_t at)
{
    uint64_t sum = (uint64_t)half << 32 | at;
    for (size_t i = 0; i < BH_COUNT_OF(r->u.words); i++)
        sum = bh_idmap_mix(sum ^ r->u.words[i]);
    return r->sum == sum;
}

static struct bh_ledger_op of_old(const struct old_record *r)
{
    switch (r->u.kind) {
    case OLD_SLOT:
        return of_slot(&r->u.s.slot);
    case OLD_SLOT_GONE:
        return (struct bh_ledger_op){
            .kind = BH_JOURNAL_KIND_SLOT_GONE, .pid = r->u.s.slot.pid, .object = (uint32_t)r->u.s.slot.fd};
    case OLD_PROCESS:
        return of_process(&r->u.p.process);
    case OLD_MAPPING:
        return of_mapping(&r->u.m.mapping);
    default:
        return r->u.kind < BH_LEDGER_OP_N_ ? r->u.op : (struct bh_ledger_op){.kind = BH_LEDGER_OP_NONE};
    }
}

static int damaged(struct bh_err *err, uint32_t record, uint32_t at, uint32_t n)
{
    return bh_fail(err, BH_CONFLICT, "the warden's journal is damaged: record %u, at %u of %u, cannot be",
                   record, at, n);
}

static int replay_old(const struct bh_journal *j, struct bh_journal_found *found, struct names *names,
                      struct bh_err *err)
{
    for (uint32_t i = 0; i < j->n; i++) {
        struct old_record r;
        memcpy(&r, j->halves[j->half] + (size_t)i * sizeof(r), sizeof(r));
        const struct bh_ledger_op op = of_old(&r);
        if (!old_sum_is_right(&r, j->half, i) || !find_one(found, names, &op))
            return damaged(err, i, i, j->n);
    }
    return BH_OK;
}

/* found NULL: nothing is done, but for seeing whether every seal is right and the last one is at the end. */
static int replay_packed(struct bh_journal *j, struct bh_journal_found *found, struct names *names,
                         struct bh_err *err)
{
    struct bh_ledger_op op = {.kind = BH_JOURNAL_KIND_SEAL};
    uint32_t i = 0;
    pack_init(&j->pack, j->half);
    for (uint32_t at = 0; at < j->n; i++) {
        const size_t used = bh_journal_unpack(&j->pack, j->halves[j->half] + at, j->n - at, &op);
        if (!used || (found && !find_one(found, names, &op)))
            return damaged(err, i, at, j->n);
        at += (uint32_t)used;
    }
    return op.kind == BH_JOURNAL_KIND_SEAL ? BH_OK : damaged(err, i, j->n, j->n);
}

static int replay(struct bh_journal *j, struct bh_journal_found *found, struct bh_err *err)
{
    struct names names = {0};
    int rc = BH_OK;
    if (j->old) {
        rc = replay_old(j, found, &names, err);
    } else {
        rc = replay_packed(j, NULL, NULL, err);
        if (rc == BH_OK)
            rc = replay_packed(j, found, &names, err);
    }
    bh_idmap_fini(&names.slots);
    bh_idmap_fini(&names.processes);
    bh_idmap_fini(&names.threads);
    const char *why = rc == BH_OK ? bh_ledger_check(found->ledger) : NULL;
    if (why)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is damaged: it gives %s", why);
    return rc;
}

static int look_at_head(struct bh_journal *j, uint64_t cap_bytes, struct bh_err *err)
{
    const struct head *h = j->head;
    const uint64_t word = atomic_load_explicit(&h->word, memory_order_acquire);
    const bool old = h->version == VERSION_OLD || !(word & PACKED);
    const uint64_t n = (old ? word : word & ~PACKED) >> 3, most = old ? OLD_RECORDS : HALF_BYTES;
    if (h->magic != MAGIC)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is none, or was not begun");
    if ((h->version != VERSION && h->version != VERSION_OLD) || h->flight_bytes != sizeof(h->flight))
        return bh_fail(err, BH_CONFLICT, "the warden's journal is of version %u, this warden's of %d",
                       h->version, VERSION);
    if (h->cap_bytes != cap_bytes)
        return bh_fail(err, BH_CONFLICT, "the warden's journal is of a lease with another cap");
    if ((word >> 1 & 3) == BH_JOURNAL_LOST)
        return bh_fail(err, BH_CONFLICT, "the warden before had no room left in its journal");
    if (n > most)
        return bh_fail(err, BH_CONFLICT,
                       "the warden's journal is damaged: it has %llu %s of records, of at most %llu",
                       (unsigned long long)n, old ? "times 64 bytes" : "bytes", (unsigned long long)most);
    j->old = old;
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
    /* Who was here before may have died before it gave memory back, or with much written that does not count: nobody else
     * would know of that. */
    release(j, !j->half, 0);
    release(j, j->half, bytes_in(j));
    j->head->stats.why_killed[sizeof(j->head->stats.why_killed) - 1] = '\0';
    *ret = j;
    return BH_OK;
}
