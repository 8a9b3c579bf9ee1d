/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_bench.c - what a durable decision costs on this machine's disk, and what reading costs beside 1,000 leases and
 * 10,000 jobs.
 *
 * A grant is one transaction as the daemon makes it: a lease is added, admitted and given its slice, its job runs. All
 * times are of time passed; the disk decides most of the grants' (a sync each), so one that syncs nothing else is
 * timed beside them. Prints percentiles, and how long opening takes with all of it. Exit status 1: something failed.
 */
#include "base/scratch.h"
#include "core/model/vocab.h"
#include "store/state_job.h"
#include "store/state_lease.h"
#include "store/state_usage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CARDS = 1000, JOBS = 10000, LEASES = 1000, READS = 2000, MANY = 16 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void must(int rc, const struct bh_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "store_bench: %s\n", err->msg);
        exit(1);
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void say(const char *what, uint64_t *ns, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ns[i];
    qsort(ns, n, sizeof(*ns), by_value);
    printf("%-34s %8.0f /s   p50 %8.3f ms   p99 %8.3f ms   max %8.3f ms\n", what,
           (double)n * 1e9 / (double)sum, (double)ns[n / 2] / 1e6, (double)ns[n * 99 / 100] / 1e6,
           (double)ns[n - 1] / 1e6);
}

static const char *card_name(uint32_t i, char buf[32])
{
    (void)snprintf(buf, 32, "GPU-%04u", i);
    return buf;
}

static const char *tenant_of(uint64_t i)
{
    static const char *const names[] = {"red", "green", "blue", "grey"};
    return names[i % 4];
}

static void furnish(struct bh_store *s, struct bh_err *err)
{
    static const char *const argv[] = {"python3", "train.py", "--epochs", "10", NULL};
    char name[32];
    must(bh_store_begin(s, err), err);
    for (uint32_t i = 0; i < CARDS; i++) {
        const struct bh_store_card card = {
            .uuid = card_name(i, name), .model = "H100", .index = i, .memory_mib = 81559, .seen_ms = 1};
        must(bh_store_card_put(s, &card, err), err);
    }
    for (uint32_t i = 0; i < JOBS + LEASES; i++) {
        const struct bh_store_job job = {.tenant = tenant_of(i),
                                         .user = "ada",
                                         .pool = "shared",
                                         .gpus = 1,
                                         .milli = 1000,
                                         .priority = BH_PRIORITY_NORMAL,
                                         .argv = argv,
                                         .submit_ms = i};
        uint64_t id;
        must(bh_store_job_add(s, &job, &id, err), err);
    }
    must(bh_store_commit(s, err), err);
}

/* Added, admitted, given a card, told to start: one decision. */
static uint64_t grant(struct bh_store *s, uint64_t job, uint32_t card, struct bh_err *err)
{
    char name[32];
    uint64_t id;
    const struct bh_store_lease lease = {
        .job = job, .tenant = tenant_of(job - 1), .mechanism = BH_MECH_WHOLE};
    const struct bh_store_grant g = {.slice = {card_name(card, name), BH_SLICE_WHOLE, "", ""}};
    must(bh_store_begin(s, err), err);
    must(bh_store_lease_add(s, &lease, 2, &id, err), err);
    must(bh_store_lease_step(s, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT, 2, "within quota", NULL, err),
         err);
    must(bh_store_lease_grant(s, id, BH_LEASE_BY_GRANT, &g, 1, 2, "first in its queue", err), err);
    must(bh_store_job_step(s, job, BH_JOB_WAITING, BH_JOB_RUNNING, 2, "", err), err);
    must(bh_store_commit(s, err), err);
    return id;
}

static void time_grants(struct bh_store *s, struct bh_err *err)
{
    static uint64_t ns[LEASES], ready[LEASES];
    for (uint32_t i = 0; i < LEASES; i++) {
        const uint64_t from = now_ns();
        const uint64_t id = grant(s, i + 1, i, err);
        ns[i] = now_ns() - from;
        must(bh_store_lease_step(s, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY, 3, "", NULL, err), err);
        ready[i] = now_ns() - from - ns[i];
    }
    say("lease grants, durable", ns, LEASES);
    say("steps to active, durable", ready, LEASES);
}

/* Several commands that share a sync, as in one turn of the daemon's loop. */
static void time_shared(struct bh_store *s, struct bh_err *err)
{
    static uint64_t ns[100];
    for (uint32_t i = 0; i < 100; i++) {
        const uint64_t from = now_ns();
        must(bh_store_begin(s, err), err);
        for (uint32_t k = 0; k < MANY; k++) {
            must(bh_store_begin(s, err), err);
            must(bh_store_job_step(s, LEASES + 1 + i * MANY + k, BH_JOB_WAITING, BH_JOB_WAITING, 4, "no room",
                                   err),
                 err);
            must(bh_store_commit(s, err), err);
        }
        must(bh_store_commit(s, err), err);
        ns[i] = now_ns() - from;
    }
    say("16 commands in one sync", ns, 100);
}

static void time_sync(const char *path)
{
    static uint64_t ns[200];
    char block[4120];
    memset(block, 1, sizeof(block));
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t i = 0; fd >= 0 && i < 200; i++) {
        const uint64_t from = now_ns();
        if (pwrite(fd, block, sizeof(block), (off_t)(i * sizeof(block))) < 0 || fdatasync(fd) < 0)
            break;
        ns[i] = now_ns() - from;
    }
    if (fd >= 0)
        close(fd);
    (void)unlink(path);
    say("(one write and sync alone)", ns, 200);
}

static void time_reads(struct bh_store *s, struct bh_err *err)
{
    static uint64_t one[READS], page[READS], live[READS / 20], count[READS / 20], sum[READS / 20];
    const struct bh_store_lease_filter alive = {.states = bh_store_lease_live()};
    const struct bh_store_job_filter red = {.tenant = "red", .states = 1u << BH_JOB_WAITING, .brief = true};
    for (uint32_t i = 0; i < READS; i++) {
        struct bh_arena arena = {0};
        struct bh_store_lease l;
        bh_store_jobs jobs = {0};
        const struct bh_store_page from_there = {.after = i * 5, .limit = 100};
        uint64_t from = now_ns();
        must(bh_store_lease_get(s, &arena, 1 + i % LEASES, &l, err), err);
        one[i] = now_ns() - from;
        from = now_ns();
        must(bh_store_jobs_list(s, &arena, &red, &from_there, &jobs, err), err);
        page[i] = now_ns() - from;
        bh_vec_fini(&jobs);
        bh_arena_fini(&arena);
    }
    for (uint32_t i = 0; i < READS / 20; i++) {
        struct bh_arena arena = {0};
        bh_store_leases all = {0};
        bh_store_usage_sums sums = {0};
        const struct bh_store_page every = {.limit = LEASES};
        const struct bh_store_usage_filter when = {.to_ms = 100000};
        uint64_t n, from = now_ns();
        must(bh_store_leases_list(s, &arena, &alive, &every, &all, err), err);
        live[i] = now_ns() - from;
        from = now_ns();
        must(bh_store_jobs_count(s, &red, &n, err), err);
        count[i] = now_ns() - from;
        from = now_ns();
        must(bh_store_usage_sum(s, &arena, &when, BH_USAGE_OF_TENANT, &sums, err), err);
        sum[i] = now_ns() - from;
        bh_vec_fini(&all);
        bh_vec_fini(&sums);
        bh_arena_fini(&arena);
    }
    say("read: one lease", one, READS);
    say("read: 100 waiting jobs of a tenant", page, READS);
    say("read: 1,000 live leases", live, READS / 20);
    say("read: count a tenant's waiting jobs", count, READS / 20);
    say("read: usage by tenant", sum, READS / 20);
}

static struct bh_store *open_timed(const char *path, bool full, struct bh_err *err)
{
    const struct bh_store_options o = {.mode = BH_STORE_WRITE, .full_check = full};
    struct bh_store *s = NULL;
    const uint64_t from = now_ns();
    must(bh_store_open(path, &o, &s, err), err);
    printf("opened in %.1f ms (%s check)\n", (double)(now_ns() - from) / 1e6, full ? "full" : "quick");
    return s;
}

int main(void)
{
    char folder[300], path[400], probe[400];
    struct bh_err err = {0};
    struct bh_buf words;
    uint32_t broken = 0;
    if (!bh_scratch_make(folder, sizeof(folder), "bench"))
        return 1;
    (void)snprintf(path, sizeof(path), "%s/bulkhead.db", folder);
    (void)snprintf(probe, sizeof(probe), "%s/probe", folder);
    struct bh_store *s = open_timed(path, false, &err);
    furnish(s, &err);
    time_sync(probe);
    time_grants(s, &err);
    time_shared(s, &err);
    time_reads(s, &err);
    bh_store_close(s);
    bh_store_close(open_timed(path, false, &err));
    s = open_timed(path, true, &err);
    bh_buf_init(&words, 4096);
    const uint64_t from = now_ns();
    must(bh_store_check(s, &words, &broken, &err), &err);
    printf("books looked through in %.1f ms: %u broken\n%s", (double)(now_ns() - from) / 1e6, broken,
           bh_buf_text(&words));
    bh_buf_fini(&words);
    bh_store_close(s);
    return broken != 0;
}
