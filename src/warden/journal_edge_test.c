/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal at its edges: killed before, within and after each store; with no room left; with large pages. It is built with
 * small halves, and with journal_edge_fixture.h in front.
 */
#include "warden/journal_edge_fixture.h"

#include "base/test.h"
#include "warden/journal.h"
#include "warden/ledger_fixture.h"
#include "warden/ledger_ops_fixture.h"

#include <sys/stat.h>

enum { HEAD = 4096, HALF = 64 * BH_JOURNAL_OLD_RECORDS, ALL = HEAD + 2 * HALF };

/* What a successor may find. */
struct state {
    struct bh_ledger *l;
    enum bh_journal_stage stage;
    uint64_t file;
};

static struct storm s;
static struct {
    int fd, copy;
    struct bh_journal *j;
    struct state then, next; /* next: within what makes it so; else l is NULL */
    uint64_t file;
    bool armed;
    const char *why;
    size_t n_points;
    long page;
    const uint8_t *mapped;
    size_t n_removed;
    const char *wrong_removed;
} it;

/* ---- what journal.c asks ---- */

void *edge_mmap(size_t n, int protection, int flags, int fd)
{
    void *at = mmap(NULL, n, protection, flags, fd, 0);
    it.mapped = at;
    return at;
}

long edge_sysconf(int name)
{
    return name == _SC_PAGESIZE && it.page ? it.page : sysconf(name);
}

int edge_madvise(void *at, size_t n, int advice)
{
    const size_t from = (size_t)((uint8_t *)at - it.mapped), half = from >= HEAD + HALF;
    const size_t page = (size_t)edge_sysconf(_SC_PAGESIZE);
    it.n_removed++;
    if (from % page || n % page)
        it.wrong_removed = "a part of a page is given back"; /* as the kernel sees it: EINVAL, or all of it */
    if (from < HEAD + half * HALF || from + n > HEAD + (half + 1) * HALF)
        it.wrong_removed = "what is another half's is given back";
    edge_point();
    return madvise(at, n, advice);
}

/* ---- taking over a copy, for who takes over may give back what is being written ---- */

static bool copy_all(void)
{
    static uint8_t bytes[1 << 16];
    off_t at = 0;
    if (ftruncate(it.copy, 0) < 0 || ftruncate(it.copy, ALL) < 0)
        return false;
    while ((at = lseek(it.fd, at, SEEK_DATA)) >= 0) {
        const off_t end = lseek(it.fd, at, SEEK_HOLE);
        while (at < end) {
            const size_t most = (size_t)(end - at) < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
            const ssize_t n = pread(it.fd, bytes, most, at);
            if (n <= 0 || pwrite(it.copy, bytes, (size_t)n, at) != n)
                return false;
            at += n;
        }
    }
    return true;
}

static const char *is_not(const struct state *want, const struct bh_journal *j,
                          const struct bh_journal_found *found)
{
    if (bh_journal_stage(j) != want->stage)
        return "it has come to another stage";
    if ((found->slots.n ? found->slots.at[0].file : 0) != want->file)
        return "a file is another";
    return ops_differ(want->l, found->ledger);
}

enum { CALL = 0x5a };
static bool call_is_whole(struct bh_journal *j)
{
    const uint8_t *f = (const uint8_t *)bh_journal_flight(j);
    size_t n = 0;
    while (n < sizeof(struct bh_journal_flight) && f[n] == CALL)
        n++;
    return bh_journal_flight(j)->notif.id == 0 || n == sizeof(struct bh_journal_flight);
}

static const char *look(void)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    struct bh_err err;
    const uint8_t *mapped = it.mapped;
    if (!copy_all())
        return "no copy";
    const int rc = bh_journal_adopt(it.copy, STORM_CAP, 3, &j, &found, &err);
    it.mapped = mapped;
    if (rc < 0) {
        printf("# %s\n", err.msg);
        return "it could not be taken over";
    }
    const char *why = is_not(&it.then, j, &found);
    if (why && it.next.l && !is_not(&it.next, j, &found))
        why = NULL;
    if (!call_is_whole(j))
        why = "a part of a call is found";
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    return why;
}

void edge_point(void)
{
    if (!it.armed || it.why)
        return;
    it.armed = false;
    it.n_points++;
    it.why = look();
    it.armed = true;
}

/* ---- killed at every store ---- */

static void tell_file(void *arg, struct bh_journal *j)
{
    (void)arg;
    bh_journal_slot(j, &(struct bh_journal_slot){.pid = 1, .fd = 3, .file = it.file});
}

static void clear_call(void)
{
    it.armed = false;
    memset(bh_journal_flight(it.j), CALL, sizeof(struct bh_journal_flight));
    it.armed = true;
    bh_journal_clear_flight(it.j);
    if (!it.why && bh_journal_flight(it.j)->notif.id)
        it.why = "the call is still there";
}

static void make_it_count(struct bh_choice *c)
{
    const uint32_t how = bh_choose(c, 8);
    const enum bh_journal_stage stage = how ? (enum bh_journal_stage)bh_choose(c, 3) : BH_JOURNAL_IDLE;
    it.next = (struct state){ops_copy(s.l), stage, it.file};
    if (how == 0)
        clear_call();
    else if (how == 1)
        bh_journal_compact(it.j, stage);
    else
        bh_journal_commit(it.j, stage);
    bh_ledger_free(it.then.l);
    it.then = it.next;
    it.next.l = NULL;
    edge_point();
}

static void set_stage(enum bh_journal_stage stage)
{
    it.next = (struct state){it.then.l, stage, it.then.file};
    bh_journal_set_stage(it.j, stage);
    it.then = it.next;
    it.next.l = NULL;
    edge_point();
}

static bool begin(struct bh_choice *c, uint64_t seed)
{
    memset(&it, 0, sizeof(it));
    it.fd = memfd_create("journal-edge", MFD_CLOEXEC);
    it.copy = memfd_create("journal-edge-copy", MFD_CLOEXEC);
    storm_init(&s, c, seed);
    it.then.l = ops_copy(s.l);
    if (bh_journal_new(it.fd, STORM_CAP, &it.j, NULL) < 0)
        return false;
    bh_journal_attach(it.j, s.l, tell_file, NULL);
    return true;
}

static const char *end(void)
{
    it.armed = false;
    bh_journal_free(it.j);
    bh_ledger_free(it.then.l);
    close(it.fd);
    close(it.copy);
    const char *why = storm_end(&s);
    return it.why ? it.why : it.wrong_removed ? it.wrong_removed : why;
}

static const char *storm_of(uint64_t seed, size_t *n_points)
{
    static uint8_t bytes[1200];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    if (!begin(&c, seed))
        return "no journal";
    it.armed = true;
    while (c.left && !it.why && !s.why) {
        storm_step(&s);
        it.file++;
        tell_file(NULL, it.j);
        const uint32_t what = bh_choose(&c, 8);
        if (what < 3)
            make_it_count(&c);
        else if (what == 3)
            set_stage(BH_JOURNAL_ISSUING);
    }
    *n_points += it.n_points;
    return end();
}

TEST(one_killed_at_any_store_has_answered_or_not_begun)
{
    size_t n_points = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const char *why = storm_of(seed, &n_points);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
    printf("# killed %zu times\n", n_points);
    CHECK(n_points > 5000);
}

/* ---- no room ---- */

static struct {
    uint32_t first, large, last; /* records: of one byte, of many, of one byte */
    bool looks;
} told;

/* As large as one of a file can be: no field is near what it was. */
static void put_large(struct bh_journal *j, uint32_t i)
{
    const uint64_t far = i % 2 ? UINT64_C(1) << 63 : 1;
    const uint32_t near = i % 2 ? UINT32_C(1) << 31 : 1;
    bh_journal_slot(
        j,
        &(struct bh_journal_slot){
            .pid = near, .fd = i % 2 ? INT32_MAX : 1, .file = far, .kind = near, .gpu = near, .inode = far});
}

static void tell_much(void *arg, struct bh_journal *j)
{
    (void)arg;
    for (uint32_t i = 0; i < told.first; i++)
        bh_journal_process(j, &(struct bh_journal_process){1, 1});
    for (uint32_t i = 0; i < told.large; i++)
        put_large(j, i);
    for (uint32_t i = 0; i < told.last; i++)
        bh_journal_process(j, &(struct bh_journal_process){1, 1});
    if (told.looks && !it.why)
        it.why = look();
}

/* With something in force, in the half given. */
static bool begin_small(uint32_t half)
{
    static struct bh_choice none;
    told.first = told.large = told.last = 0;
    told.looks = false;
    if (!begin(&none, 1))
        return false;
    bh_journal_attach(it.j, s.l, tell_much, NULL);
    (void)bh_ledger_client(s.l, 1, 2, 3);
    bh_ledger_object(
        s.l, &(struct bh_ledger_object){.client = 3, .parent = 3, .object = 9, .gpu = 0, .bytes = 77});
    for (uint32_t i = 0; i <= half; i++)
        bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    bh_ledger_free(it.then.l);
    it.then = (struct state){ops_copy(s.l), BH_JOURNAL_IDLE, 0};
    return true;
}

static void end_small(void)
{
    bh_ledger_drop(s.l, 3, 3);
    bh_ledger_counted(s.l, 0, 0);
    (void)end();
}

static bool is_lost(void)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    struct bh_err err = {0};
    return copy_all() && bh_journal_adopt(it.copy, STORM_CAP, 3, &j, &found, &err) == BH_CONFLICT &&
           strstr(err.msg, "no room left");
}

static uint32_t half_in_force(void)
{
    uint64_t word = 0;
    return pread(it.fd, &word, sizeof(word), 24) == sizeof(word) ? (uint32_t)word & 1 : 2;
}

/* much: what is there takes most of a half by itself, so that it is not written anew before it is full. */
static const char *fill(uint32_t half, bool much)
{
    if (!begin_small(half))
        return "no journal";
    told.large = much ? HALF / 64 : 0;
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    it.then.file = much;
    const uint32_t in = half_in_force();
    for (uint32_t i = 0; i < HALF / 16; i++)
        put_large(it.j, i);
    bh_ledger_object(
        s.l, &(struct bh_ledger_object){.client = 3, .parent = 3, .object = 10, .gpu = 0, .bytes = 1});
    const char *why = look(); /* as it was */
    bh_journal_set_stage(it.j, BH_JOURNAL_ISSUING);
    it.then.stage = BH_JOURNAL_ISSUING;
    why = why ? why : look();
    bh_journal_commit(it.j, BH_JOURNAL_ANSWERED);
    if (half_in_force() != !in)
        why = "it is in the same half";
    bh_ledger_free(it.then.l);
    it.then = (struct state){ops_copy(s.l), BH_JOURNAL_ANSWERED, much};
    why = why ? why : look();
    end_small();
    return why;
}

TEST(a_half_that_is_full_is_written_anew)
{
    for (uint32_t i = 0; i < 4; i++)
        CHECK(!fill(i % 2, i / 2 != 0));
}

/* The last record is of many bytes, and begins at each of the last places. Until the word says that it is lost, what was in
 * force before is whole. */
TEST(what_has_no_room_is_lost_and_nothing_is_written_behind_the_half)
{
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t first = 0; first < 48; first++) {
            CHECK(begin_small(half));
            told.first = first;
            told.large = HALF / 32;
            told.looks = true;
            bh_journal_compact(it.j, BH_JOURNAL_IDLE);
            CHECK(!it.why);
            CHECK(is_lost());
            if (first == 0) { /* it stays so */
                told.large = 0;
                told.looks = false;
                bh_journal_compact(it.j, BH_JOURNAL_IDLE);
                bh_journal_commit(it.j, BH_JOURNAL_ANSWERED);
                bh_journal_set_stage(it.j, BH_JOURNAL_IDLE);
                CHECK(is_lost());
            }
            end_small();
        }
}

/* Byte by byte: all of it is found, until it is lost. */
TEST(a_half_is_used_to_its_end)
{
    uint32_t fits = 0, lost = 0;
    CHECK(begin_small(0));
    told.large = HALF / 42 - 3;
    for (told.last = 0; told.last < 400; told.last++) {
        bh_journal_compact(it.j, BH_JOURNAL_IDLE);
        if (bh_journal_stage(it.j) == BH_JOURNAL_LOST) {
            CHECK(is_lost());
            lost++;
            continue;
        }
        CHECK(!lost);
        it.then.file = 1;
        CHECK(!look());
        fits++;
    }
    printf("# %u times it was all there, then it was lost\n", fits);
    CHECK(fits > 10 && lost > 10);
    end_small();
}

/* ---- large pages ---- */

static int64_t memory_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (int64_t)st.st_blocks * 512 : -1;
}

TEST(pages_that_are_larger_than_the_head_are_given_back_whole)
{
    static const long pages[] = {4096, 16384, 65536};
    for (size_t p = 0; p < BH_COUNT_OF(pages); p++)
        for (uint32_t half = 0; half < 2; half++) {
            struct bh_journal *j;
            struct bh_journal_found found;
            CHECK(begin_small(half));
            it.page = pages[p];
            told.large = HALF / 48;
            bh_journal_compact(it.j, BH_JOURNAL_IDLE);
            CHECK(memory_of(it.fd) > HALF / 48 * 40);
            told.large = 0;
            const size_t before = it.n_removed;
            bh_journal_compact(it.j, BH_JOURNAL_IDLE);
            CHECK_EQ(it.n_removed, before + 1);
            CHECK(memory_of(it.fd) <= (HALF * 2) / 3);
            CHECK(!look());
            /* the same by who takes over: little counts, and much was written behind it */
            for (uint32_t i = 0; i < HALF / 48; i++)
                put_large(it.j, i);
            CHECK_EQ(bh_journal_adopt(it.fd, STORM_CAP, 1, &j, &found, NULL), 0);
            CHECK_EQ(it.n_removed, before + 5); /* two halves each, of the copy too */
            CHECK(memory_of(it.fd) <= (HALF * 2) / 3);
            CHECK(!is_not(&it.then, j, &found));
            bh_journal_found_fini(&found);
            bh_journal_free(j);
            CHECK(!look());
            CHECK(!it.wrong_removed);
            end_small();
        }
}

TEST_MAIN
