/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full lease of small pieces does not make a warden large: what the ledger and its journal have in memory, counted in
 * bytes at the moment when it is most, and for each object.
 *
 * A journal has most when a half was just written anew and the one before it is still in force; the ledger's part is what
 * was ever used of its pools. How large the process itself becomes is told too, where there is no sanitizer, and not judged:
 * that depends on the allocator and on the size of a page.
 */
#include "base/choice.h"
#include "base/test.h"
#include "base/units.h"
#include "warden/journal.h"
#include "warden/ledger_state.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum {
    PROCESSES = 64,
    EACH = 438,
    OTHERS = 8,
    OBJECTS = PROCESSES * EACH,
    DEVICE = 0x5c000002,
    CHURN = 60000
};
#define CAP (UINT64_C(1) << 45)
/* 3 MiB are allowed for the whole process, and it has about 0.9 MiB with nothing in its ledger. */
#define EACH_BYTES_MAX 75
/* Where names and sizes are whatever a tenant likes, which nobody's driver does. */
#define EACH_BYTES_MAX_ANY 90

static struct {
    int fd;
    struct bh_journal *j;
    struct bh_ledger *l;
    uint64_t most, ledger_then, journal_then; /* bytes, both together, at any time */
    uint32_t last[PROCESSES];                 /* names given out */
    bool any;                                 /* names and sizes are drawn */
    uint64_t drawn, calls;
} it;

static uint64_t draw(void)
{
    return it.drawn = bh_idmap_mix(it.drawn);
}

static uint64_t journal_bytes(void)
{
    struct stat st;
    return fstat(it.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : UINT64_MAX / 2;
}

#define USED(v) ((v)->n * sizeof(*(v)->at))
static uint64_t ledger_bytes(void)
{
    const struct bh_ledger *l = it.l;
    uint64_t sum = USED(&l->objects) + USED(&l->blocks) + USED(&l->claims) + sizeof(*l) +
                   l->names.cap * sizeof(*l->names.slots);
    for (int k = 0; k < LEDGER_LISTS; k++)
        sum += USED(&l->owners[k].pool) + l->owners[k].ids.cap * sizeof(*l->owners[k].ids.slots);
    return sum;
}

static void look(void)
{
    const uint64_t ledger = ledger_bytes(), journal = journal_bytes();
    if (ledger + journal <= it.most)
        return;
    it.most = ledger + journal;
    it.ledger_then = ledger;
    it.journal_then = journal;
}

static void tell_rest(void *arg, struct bh_journal *j)
{
    (void)arg;
    for (uint32_t p = 0; p < PROCESSES; p++) {
        bh_journal_process(j, &(struct bh_journal_process){1000 + p, 77777 + p * 3});
        for (uint32_t f = 0; f < 4; f++)
            bh_journal_slot(j, &(struct bh_journal_slot){.pid = 1000 + p,
                                                         .fd = 3 + (int32_t)f,
                                                         .file = 1 + p * 4 + f,
                                                         .kind = f,
                                                         .inode = 900 + f});
    }
    look(); /* both halves are whole */
}

/* As the gate has it: what was changed counts with the answer, then the call is over. */
static void answer(void)
{
    bh_journal_commit(it.j, BH_JOURNAL_ANSWERED);
    bh_journal_clear_flight(it.j);
    it.calls++;
}

static uint32_t client_of(uint32_t p)
{
    return 0xc1d00000 + 7 * p;
}

static uint32_t make(uint32_t p, uint32_t parent, uint32_t class, uint64_t bytes)
{
    const uint32_t name = it.any ? (uint32_t)draw() | 1 : 0x5c000000 + ++it.last[p];
    bh_ledger_object(it.l, &(struct bh_ledger_object){.client = client_of(p),
                                                      .parent = parent,
                                                      .object = name,
                                                      .class = class,
                                                      .gpu = 0,
                                                      .bytes = bytes});
    answer();
    return name;
}

static uint64_t size(void)
{
    return it.any ? (1 + draw() % 60000) * 4096 : 2 * BH_MIB;
}

static bool begin(bool any)
{
    memset(&it, 0, sizeof(it));
    it.any = any;
    it.drawn = 1;
    it.fd = memfd_create("journal-memory-test", MFD_CLOEXEC);
    it.l = bh_ledger_new(CAP);
    if (it.fd < 0 || bh_journal_new(it.fd, CAP, &it.j, NULL) < 0)
        return false;
    bh_journal_attach(it.j, it.l, tell_rest, NULL);
    return true;
}

static void end(void)
{
    bh_journal_free(it.j);
    bh_ledger_free(it.l);
    close(it.fd);
}

static uint32_t names[PROCESSES][EACH];

/* All at once, as in a race: each makes one after the other. Then some go and others come. */
static void load(void)
{
    for (uint32_t p = 0; p < PROCESSES; p++) {
        (void)bh_ledger_client(it.l, 1000 + p, 1 + p * 4, client_of(p));
        it.last[p] = DEVICE & 0xff;
        for (uint32_t i = 0; i < OTHERS; i++)
            names[p][i] = make(p, i ? DEVICE : client_of(p), 0x0080 + i, 0);
    }
    for (uint32_t i = OTHERS; i < EACH; i++)
        for (uint32_t p = 0; p < PROCESSES; p++)
            names[p][i] = make(p, DEVICE, 0x0040, size());
    for (uint32_t n = 0; n < CHURN; n++) {
        const uint64_t r = draw();
        uint32_t p = (uint32_t)r % PROCESSES, *name = &names[p][OTHERS + (r >> 32) % (EACH - OTHERS)];
        bh_ledger_drop(it.l, client_of(p), *name);
        answer();
        *name = make(p, DEVICE, 0x0040, size());
    }
    look();
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static bool stays_small(bool any, uint64_t max)
{
    if (!begin(any))
        return false;
    const uint64_t began = now_ns();
    load();
    printf("# %llu ns a call\n", (unsigned long long)((now_ns() - began) / it.calls));
    const uint64_t n = bh_ledger_sum(it.l, 0).objects;
    printf("# %llu objects, %llu bytes for each at most: %llu KiB of the ledger, %llu KiB of the journal\n",
           (unsigned long long)n, (unsigned long long)(it.most / n),
           (unsigned long long)it.ledger_then / 1024, (unsigned long long)it.journal_then / 1024);
    const bool ok = n == OBJECTS && it.most <= n * max && !bh_ledger_check(it.l);
    end();
    return ok;
}

TEST(many_small_pieces_take_little)
{
    CHECK(stays_small(false, EACH_BYTES_MAX));
}

TEST(names_and_sizes_that_look_like_nothing_take_little_more)
{
    CHECK(stays_small(true, EACH_BYTES_MAX_ANY));
}

static uint64_t peak_kib(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            for (const char *c = line + 6; *c; c++)
                kib = *c >= '0' && *c <= '9' ? kib * 10 + (unsigned long long)(*c - '0') : kib;
    if (f)
        (void)fclose(f);
    return kib;
}

/* With the allocator set as a warden sets it. */
static void tell_peak(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 10);
    (void)mallopt(M_TOP_PAD, 4 << 10);
    if (!begin(false))
        _exit(1);
    const uint64_t before = peak_kib();
    load();
    const uint64_t after = peak_kib();
    printf("# resident: from %llu to %llu KiB, %llu bytes for each\n", (unsigned long long)before,
           (unsigned long long)after, (unsigned long long)((after - before) * 1024 / OBJECTS));
    (void)fflush(stdout);
    _exit(0);
}

TEST(how_large_the_process_becomes)
{
    int status = 1;
    if (SANITIZED) {
        printf("# not looked at: a sanitizer has most of what is resident\n");
        return;
    }
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        tell_peak();
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

TEST_MAIN
