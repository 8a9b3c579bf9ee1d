/* SPDX-License-Identifier: Apache-2.0 */
/* What counts in a journal, what does not yet, and what is not believed. */
#include "base/test.h"
#include "warden/journal.h"
#include "warden/journal_old_fixture.h"
#include "warden/ledger_ops_fixture.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAP = 1000000, HEAD = 4096 };

static struct {
    int fd;
    struct bh_journal *j;
    struct bh_ledger *l;
    uint32_t rest; /* processes to tell */
} it;

static void tell_rest(void *arg, struct bh_journal *j)
{
    (void)arg;
    for (uint32_t i = 1; i <= it.rest; i++)
        bh_journal_process(j, &(struct bh_journal_process){i, i});
}

static bool begin(void)
{
    struct bh_err err;
    it.fd = memfd_create("journal-test", MFD_CLOEXEC);
    it.l = bh_ledger_new(CAP);
    it.rest = 0;
    if (bh_journal_new(it.fd, CAP, &it.j, &err) < 0)
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

static void take(uint32_t object, uint64_t bytes)
{
    (void)bh_ledger_client(it.l, 10, 20, 1);
    bh_ledger_object(it.l, &(struct bh_ledger_object){
                               .client = 1, .parent = 1, .object = object, .gpu = 0, .bytes = bytes});
}

/* What a successor would hold, or -1: it could not go on. */
static int64_t held_after(struct bh_err *err)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    if (bh_journal_adopt(it.fd, CAP, 5, &j, &found, err) < 0)
        return -1;
    const int64_t held = (int64_t)bh_ledger_sum(found.ledger, 0).held;
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    return held;
}

TEST(what_was_not_committed_does_not_count)
{
    struct bh_err err;
    CHECK(begin());
    CHECK_EQ(held_after(&err), 0);
    take(5, 100);
    CHECK_EQ(held_after(&err), 0);
    bh_journal_set_stage(it.j, BH_JOURNAL_ISSUING); /* says nothing about records */
    CHECK_EQ(held_after(&err), 0);
    bh_journal_commit(it.j, BH_JOURNAL_ANSWERED);
    CHECK_EQ(held_after(&err), 100);
    take(6, 11);
    bh_ledger_drop(it.l, 1, 5);
    CHECK_EQ(held_after(&err), 100);
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(&err), 11);
    end();
}

TEST(a_reservation_ends_with_who_made_it)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    CHECK(begin());
    CHECK(bh_ledger_reserve(it.l, 0, 700));
    take(5, 100);
    bh_journal_commit(it.j, BH_JOURNAL_ISSUING);
    CHECK_EQ(bh_journal_adopt(it.fd, CAP, 0, &j, &found, NULL), 0);
    CHECK_EQ(bh_ledger_sum(found.ledger, 0).reserved, 0);
    CHECK_EQ(bh_ledger_sum(found.ledger, 0).used, 100);
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    end();
}

TEST(the_call_and_how_far_it_came_are_found)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    CHECK(begin());
    struct bh_journal_flight *f = bh_journal_flight(it.j);
    f->notif.id = 77;
    f->notif.pid = 5;
    f->client = 1;
    f->object = 9;
    bh_journal_set_stage(it.j, BH_JOURNAL_ISSUING);
    bh_journal_stats(it.j)->seen = 3;
    CHECK_EQ(bh_journal_adopt(it.fd, CAP, 0, &j, &found, NULL), 0);
    CHECK_EQ(bh_journal_stage(j), BH_JOURNAL_ISSUING);
    CHECK_EQ(bh_journal_flight(j)->notif.id, 77);
    CHECK_EQ(bh_journal_flight(j)->object, 9);
    CHECK_EQ(bh_journal_stats(j)->seen, 3);
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    bh_journal_clear_flight(it.j);
    static const struct bh_journal_flight none;
    CHECK(memcmp(f, &none, sizeof(none)) == 0);
    CHECK_EQ(bh_journal_stage(it.j), BH_JOURNAL_IDLE);
    end();
}

TEST(files_processes_and_mappings_are_found)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    CHECK(begin());
    bh_journal_process(it.j, &(struct bh_journal_process){10, 500});
    bh_journal_process(it.j, &(struct bh_journal_process){11, 501});
    bh_journal_process(it.j, &(struct bh_journal_process){10, 900}); /* the number again */
    bh_journal_slot(it.j, &(struct bh_journal_slot){.pid = 10, .fd = 3, .file = 1, .kind = 2, .gpu = 1});
    bh_journal_slot(it.j, &(struct bh_journal_slot){.pid = 10, .fd = 4, .file = 9, .inode = 8});
    bh_journal_slot(it.j, &(struct bh_journal_slot){.pid = 10, .fd = 3, .file = 2});
    bh_journal_slot_gone(it.j, 10, 4);
    bh_journal_slot_gone(it.j, 12, 4);
    bh_journal_mapping(it.j, &(struct bh_journal_mapping){10, 10, 100});
    bh_journal_mapping(it.j, &(struct bh_journal_mapping){10, 13, 200});
    bh_journal_mapping(it.j, &(struct bh_journal_mapping){10, 10, 300});
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(bh_journal_adopt(it.fd, CAP, 0, &j, &found, NULL), 0);
    CHECK_EQ(found.processes.n, 2);
    CHECK_EQ(found.processes.at[0].started, 900);
    CHECK_EQ(found.slots.n, 2);
    CHECK_EQ(found.slots.at[0].file, 2);
    CHECK_EQ(found.slots.at[1].pid, 0);
    CHECK_EQ(found.last_file, 9);
    CHECK_EQ(found.mappings.n, 2);
    CHECK_EQ(found.mappings.at[0].bytes, 300);
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    end();
}

static int64_t memory_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (int64_t)st.st_blocks * 512 : -1;
}

TEST(it_is_written_anew_and_stays_small)
{
    struct bh_err err;
    CHECK(begin());
    it.rest = 3;
    take(4, 7);
    for (uint32_t i = 0; i < 100000; i++) {
        take(5, 100 + i);
        bh_ledger_drop(it.l, 1, 5);
        bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    }
    take(5, 1);
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(&err), 8);
    CHECK(memory_of(it.fd) <= 128 << 10);
    /* one that has become large is small again when there is less to say */
    for (uint32_t i = 0; i < 60000; i++)
        take((100 + i) * 4099, 1); /* names that are far apart */
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(&err), 60008);
    CHECK(memory_of(it.fd) > 256 << 10);
    for (uint32_t i = 0; i < 60000; i++)
        bh_ledger_drop(it.l, 1, (100 + i) * 4099);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(&err), 8);
    CHECK(memory_of(it.fd) <= 128 << 10);
    end();
}

/* One byte of the memfd, and what is said then. */
static bool damaged(off_t at, uint8_t value, const char *says)
{
    struct bh_err err = {0};
    uint8_t before;
    if (pread(it.fd, &before, 1, at) != 1 || pwrite(it.fd, &value, 1, at) != 1)
        return false;
    const int64_t held = held_after(&err);
    if (pwrite(it.fd, &before, 1, at) != 1)
        return false;
    if (held != -1 || err.code != BH_CONFLICT || !strstr(err.msg, says))
        printf("# byte %lld: %lld %s\n", (long long)at, (long long)held, err.msg);
    return held == -1 && err.code == BH_CONFLICT && strstr(err.msg, says);
}

static uint8_t byte_at(off_t at)
{
    uint8_t value = 0;
    return pread(it.fd, &value, 1, at) == 1 ? value : 0xff;
}

static uint64_t word(void)
{
    uint64_t w = 0;
    return pread(it.fd, &w, sizeof(w), 24) == sizeof(w) ? w : UINT64_MAX;
}

static off_t bytes_in_force(void)
{
    return (off_t)(word() << 1 >> 4);
}

TEST(a_damaged_one_is_not_believed)
{
    struct bh_err err;
    CHECK(begin());
    take(5, 100);
    take(6, 100);
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(&err), 200);
    CHECK(damaged(0, 0, "is none"));
    CHECK(damaged(8, 99, "of version 99"));
    CHECK(damaged(16, 1, "another cap"));
    CHECK(damaged(24, 3 << 1, "no room left"));
    CHECK(damaged(28, 0xff, "records, of at most"));
    const off_t n = bytes_in_force();
    CHECK(n > 10 && n < 32);
    /* cut between two records, and within one; the last seal is at the end or nothing is whole */
    for (off_t i = 1; i < n; i++)
        CHECK(damaged(24, (uint8_t)(i << 3), "damaged: record"));
    CHECK(damaged(25, 1, "damaged: record"));
    for (off_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++)
            CHECK(damaged(HEAD + i, byte_at(HEAD + i) ^ (uint8_t)(1 << bit), "damaged: record"));
    /* far more than there is: what was never written is no record, and is not made into memory by reading all of it */
    CHECK(damaged(27, 0x60, "damaged: record"));
    CHECK(memory_of(it.fd) <= 128 << 10);
    /* of the other half, in the place of this one */
    CHECK(damaged(24, (uint8_t)(n << 3 | 1), "damaged: record"));
    uint8_t all[32];
    CHECK_EQ(pread(it.fd, all, (size_t)n, HEAD), n);
    CHECK_EQ(pwrite(it.fd, all, (size_t)n, HEAD + OLD_HALF), n);
    CHECK(damaged(24, (uint8_t)(n << 3 | 1), "damaged: record"));
    CHECK_EQ(held_after(&err), 200);
    CHECK_EQ(ftruncate(it.fd, HEAD + 64), 0);
    CHECK_EQ(held_after(&err), -1);
    CHECK(strstr(err.msg, "is none"));
    end();
}

TEST(one_that_was_never_begun_is_none)
{
    struct bh_err err = {0};
    it.fd = memfd_create("journal-test", MFD_CLOEXEC);
    CHECK_EQ(held_after(&err), -1);
    CHECK_EQ(err.code, BH_CONFLICT);
    close(it.fd);
    it.fd = -1;
    CHECK_EQ(held_after(&err), -1);
    CHECK_EQ(err.code, BH_SYSTEM);
    /* one's own, which nobody can take over */
    CHECK_EQ(bh_journal_new(-1, CAP, &it.j, &err), 0);
    bh_journal_free(it.j);
}

static int64_t bytes_of_journal(void)
{
    struct stat st;
    return fstat(it.fd, &st) == 0 ? (int64_t)st.st_blocks * 512 : -1;
}

/* Ends by SIGSYS where it would give memory back. */
static void compact_until_it_gives_back(void)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_REMOVE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rows) / sizeof(rows[0]), .filter = rows};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        _exit(1);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    _exit(2);
}

TEST(a_half_gives_its_memory_back_when_it_is_not_in_force_and_not_before)
{
    enum { N = 60000, ROOM = 96 << 10 };
    struct bh_journal *j;
    struct bh_journal_found found;
    int status = 0;
    CHECK(begin());
    for (uint32_t i = 0; i < N; i++)
        take((5 + i) * 4099, 10);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    const int64_t one = bytes_of_journal();
    CHECK(one >= N * 4 && one < N * 8 + ROOM); /* names that are far apart */
    CHECK_EQ(held_after(NULL), N * 10);
    /* Killed after the other half came into force and before this one's memory goes. */
    pid_t pid = fork();
    if (pid == 0)
        compact_until_it_gives_back();
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    CHECK(bytes_of_journal() > 2 * one - ROOM);
    CHECK_EQ(held_after(NULL), N * 10);
    CHECK_EQ(bh_journal_adopt(it.fd, CAP, 5, &j, &found, NULL), 0);
    bh_journal_attach(j, found.ledger, tell_rest, NULL);
    bh_journal_compact(j, BH_JOURNAL_IDLE);
    CHECK(bytes_of_journal() < one + ROOM);
    CHECK_EQ(held_after(NULL), N * 10);
    bh_journal_free(j);
    bh_journal_found_fini(&found);
    end();
}

/* What does not count, and is much; then it is killed. */
static void write_much(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        take((5 + i) * 4099, 10);
    _exit(3);
}

TEST(what_the_one_before_did_not_give_back_is_given_back_by_the_next)
{
    enum { N = 60000, ROOM = 96 << 10 }; /* a record has three bytes or more */
    struct bh_journal *j;
    struct bh_journal_found found;
    int status = 0;
    CHECK(begin());
    for (uint32_t i = 0; i < N; i++)
        take((5 + i) * 4099, 10);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    bh_journal_compact(it.j, BH_JOURNAL_IDLE);
    CHECK(bytes_of_journal() > N * 2);
    /* What is in force is little from here on. */
    bh_ledger_process_gone(it.l, 10);
    take(5, 7);
    pid_t pid = fork();
    if (pid == 0)
        compact_until_it_gives_back();
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    CHECK(bytes_of_journal() > N * 2);
    CHECK_EQ(bh_journal_adopt(it.fd, CAP, 5, &j, &found, NULL), 0);
    CHECK(bytes_of_journal() < ROOM);
    bh_journal_free(it.j);
    bh_ledger_free(it.l);
    it.j = j;
    it.l = found.ledger;
    found.ledger = NULL;
    bh_journal_found_fini(&found);
    bh_journal_attach(it.j, it.l, tell_rest, NULL);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        write_much(N);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(bytes_of_journal() > N * 2);
    CHECK_EQ(held_after(NULL), 7);
    CHECK(bytes_of_journal() < ROOM);
    /* and it is written on as if that had never been there */
    take(6, 20);
    bh_journal_commit(it.j, BH_JOURNAL_IDLE);
    CHECK_EQ(held_after(NULL), 27);
    end();
}

/* ---- one of version 1 ---- */

/* As it.l is, files and all, in the half given. */
static bool old_of(struct old_journal *old, uint32_t half)
{
    *old = (struct old_journal){.fd = it.fd, .half = half};
    bh_ledger_snapshot(it.l, (struct bh_ledger_log){old_hear, old});
    old_process(old, &(struct bh_journal_process){10, 500});
    old_slot(old, OLD_SLOT,
             &(struct bh_journal_slot){.pid = 10, .fd = 3, .file = 20, .kind = 2, .gpu = 1, .inode = 8});
    old_slot(old, OLD_SLOT, &(struct bh_journal_slot){.pid = 10, .fd = 4, .file = 21});
    old_slot(old, OLD_SLOT_GONE, &(struct bh_journal_slot){.pid = 10, .fd = 4});
    old_mapping(old, &(struct bh_journal_mapping){10, 11, 300});
    old_hear(old, &(struct bh_ledger_op){.kind = BH_LEDGER_OP_MAP, .pid = 10, .bytes = 4096});
    old_commit(old, CAP, BH_JOURNAL_ISSUING);
    return !old->failed;
}

static bool begin_old(struct old_journal *old, uint32_t half)
{
    it.fd = memfd_create("journal-test", MFD_CLOEXEC);
    it.l = bh_ledger_new(CAP);
    it.j = NULL;
    it.rest = 2;
    take(5, 100);
    take(6, 11);
    bh_ledger_dup(it.l, &(struct bh_ledger_object){.client = 1, .parent = 5, .object = 7, .gpu = 0}, 1, 6);
    return old_of(old, half);
}

TEST(one_of_the_version_before_is_gone_on_from)
{
    for (uint32_t half = 0; half < 2; half++) {
        struct old_journal old;
        struct bh_journal_found found;
        struct bh_journal *j;
        struct bh_err err = {0};
        CHECK(begin_old(&old, half));
        CHECK_EQ(bh_journal_adopt(it.fd, CAP, 0, &j, &found, &err), 0);
        CHECK(bh_ledger_map(it.l, 10, 4096));
        CHECK(!ops_differ(it.l, found.ledger));
        CHECK_EQ(bh_journal_stage(j), BH_JOURNAL_ISSUING);
        CHECK_EQ(found.slots.n, 2);
        CHECK(found.slots.at[0].inode == 8 && found.slots.at[0].gpu == 1 && found.slots.at[0].kind == 2);
        CHECK_EQ(found.slots.at[1].pid, 0);
        CHECK(found.processes.n == 1 && found.processes.at[0].started == 500);
        CHECK(found.mappings.n == 1 && found.mappings.at[0].tid == 11 && found.mappings.at[0].bytes == 300);
        /* until something is to count, it is what it was: a warden of its own version could still go on */
        bh_journal_attach(j, found.ledger, tell_rest, NULL);
        bh_journal_set_stage(j, BH_JOURNAL_ANSWERED);
        bh_journal_commit(j, BH_JOURNAL_ANSWERED);
        CHECK_EQ(byte_at(8), 1);
        CHECK_EQ(word(), (uint64_t)old.n << 3 | BH_JOURNAL_ANSWERED << 1 | half);
        bh_ledger_drop(found.ledger, 1, 5);
        CHECK_EQ(held_after(&err), 111);
        /* from here on it is of this one, in the other half */
        bh_journal_commit(j, BH_JOURNAL_IDLE);
        CHECK_EQ(byte_at(8), 2);
        CHECK(word() >> 63 == 1 && (word() & 1) == !half);
        CHECK_EQ(held_after(&err), 11);
        bh_ledger_drop(found.ledger, 1, 6);
        CHECK_EQ(held_after(&err), 11);
        bh_journal_commit(j, BH_JOURNAL_IDLE);
        CHECK_EQ(held_after(&err), 0);
        bh_journal_free(j);
        bh_journal_found_fini(&found);
        end();
    }
}

/* Killed when the version was written, and the word that puts the new records in force was not. */
TEST(a_warden_killed_while_it_takes_that_over_has_not_begun)
{
    struct old_journal old;
    const uint8_t two = 2;
    struct bh_err err = {0};
    CHECK(begin_old(&old, 0));
    CHECK_EQ(held_after(&err), 111);
    CHECK_EQ(pwrite(it.fd, &two, 1, 8), 1);
    CHECK_EQ(held_after(&err), 111);
    end();
}

TEST(a_damaged_one_of_the_version_before_is_not_believed)
{
    struct old_journal old;
    CHECK(begin_old(&old, 0));
    for (off_t i = 0; i < (off_t)old.n * OLD_RECORD; i++)
        CHECK(damaged(HEAD + i, byte_at(HEAD + i) ^ 0x11, "damaged: record"));
    CHECK(damaged(24, (uint8_t)((old.n + 1) << 3), "damaged: record"));
    CHECK(damaged(28, 0xff, "records, of at most"));
    CHECK(damaged(31, 0x80, "records, of at most")); /* packed ones are of no such version */
    end();
}

TEST_MAIN
