/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage_bench.c - a month's bill of 1,000 tenants: how long from the records of a node to the bytes that finance gets.
 *
 * The records are written as they would be, but in bulk and past the triggers, for nobody waits a month: two hundred leases a
 * tenant on 16 cards, an eighth of them evicted, some an instance of MIG. What is timed is what the daemon and the command do:
 * the sums of the store by tenant, user and card (with the sweep for what is stranded), and the bill as csv. Exit status 1:
 * something failed, or the sums of two ways differ.
 */
#include "report/bill.h"
#include "store/db_sql.h"
#include "store/state_usage.h"

#include "base/scratch.h"
#include "core/model/vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CARDS = 16, TENANTS = 1000, LEASES_EACH = 200, MONTH_DAYS = 30, ROUNDS = 3 };
#define MONTH_MS (UINT64_C(86400000) * MONTH_DAYS)

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void must(int rc, const struct bh_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "usage_bench: %s\n", err->msg);
        exit(1);
    }
}

static void run(struct bh_store *s, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(bh_store_handle(s), text, NULL, NULL, &why) != SQLITE_OK) {
        fprintf(stderr, "usage_bench: %s\n", why);
        exit(1);
    }
}

static int drop_one(void *arg, int n, char **values, char **names)
{
    char text[128];
    (void)n;
    (void)names;
    (void)snprintf(text, sizeof(text), "DROP TRIGGER \"%s\"", values[0]);
    run(arg, text);
    return 0;
}

static void drop_triggers(struct bh_store *s)
{
    /* In order, so that the list is made before the first of them is gone. */
    if (sqlite3_exec(bh_store_handle(s),
                     "SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY +name", drop_one, s,
                     NULL) != SQLITE_OK)
        exit(1);
}

/* Lease n of tenant n % 1000, from a time that is spread over the month, for up to an hour. */
static void fill(struct bh_store *s)
{
    char text[1600];
    run(s, "BEGIN");
    (void)snprintf(
        text, sizeof(text),
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO jobs(id, tenant, user, pool, name, uid, gid, gpus, milli, memory_mib, profile, tier, priority,"
        " can, firm, place, duration_ms, deadline_ms, cwd, image, submit_ms, state, state_ms, ending, status, signal,"
        " why, argv, env) SELECT i, printf('tenant-%%04d', i %% %d), 'user-' || (i %% 7), 'p', '', 0, 0, 1, 1000, 0, '',"
        " 'process', 'normal', 0, 0, 0, 0, 0, '/', '', 0, 'ended', 0, 'exited', 0, 0, '', x'00', x'' FROM n",
        TENANTS * LEASES_EACH, TENANTS);
    run(s, text);
    run(s,
        "INSERT INTO leases(id, job, tenant, user, pool, domain, mechanism, stack, tier, uid, gid, until_ms, state,"
        " paused, created_ms, state_ms, cause, why, detail) SELECT id, id, tenant, user, 'p', '',"
        " iif(id % 4, 'whole', 'mig'), '', 'process', 0, 0, 0, 'released', 0, 0, 0, 'clean', '', '' FROM jobs");
    run(s,
        "INSERT INTO lease_history(lease, old, new, cause, at_ms, why) SELECT id, w.column1, w.column2, iif(w.column2"
        " = 'draining', iif(id % 8, 'end', 'evict'), 'ready'), 0, '' FROM leases, (VALUES ('', 'requested'),"
        " ('requested', 'admitted'), ('admitted', 'preparing'), ('preparing', 'active'), ('active', 'draining'),"
        " ('draining', 'scrubbing'), ('scrubbing', 'released')) AS w");
    (void)snprintf(
        text, sizeof(text),
        "INSERT INTO grants(id, lease, gpu, kind, key, base, milli, mib) SELECT id, id, printf('GPU-%%02d',"
        " id %% %d), iif(id %% 4, 'whole', 'mig'), iif(id %% 4, '', 'mig:1g.10gb@' || (id %% 7)), '', iif(id %% 4, 1000, 142),"
        " iif(id %% 4, 81559, 9728) FROM leases",
        CARDS);
    run(s, text);
    (void)snprintf(
        text, sizeof(text),
        "INSERT INTO usage(lease, grant_id, tenant, gpu, kind, key, base, mechanism, milli, mib, from_ms,"
        " to_ms) SELECT l.id, g.id, l.tenant, g.gpu, g.kind, g.key, '', l.mechanism, g.milli, g.mib,"
        " l.id * 7919 %% %" PRIu64 ", l.id * 7919 %% %" PRIu64 " + 1 + l.id * 31 %% 3600000"
        " FROM leases l JOIN grants g ON g.lease = l.id",
        MONTH_MS, MONTH_MS);
    run(s, text);
    run(s, "COMMIT");
}

/* Nanoseconds that passed; *ret_cpu: that the processor worked. */
static uint64_t bill_of(struct bh_store *s, enum bh_store_usage_by of, enum bh_bill_by by, size_t *ret_lines,
                        size_t *ret_bytes, uint64_t *ret_milli_ms, uint64_t *ret_cpu)
{
    static const struct bh_bill_prices prices = {"EUR", 2500000, 20000};
    const struct bh_store_usage_filter month = {.to_ms = MONTH_MS};
    bh_store_usage_sums sums = {0};
    bh_store_usage_cards cards = {0};
    struct bh_arena arena = {0};
    struct bh_buf out;
    struct bh_err err;
    const uint64_t from = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    must(bh_store_usage_sum(s, &arena, &month, of, &sums, &err), &err);
    if (of == BH_USAGE_OF_GPU)
        must(bh_store_usage_cards_list(s, &arena, &month, &cards, &err), &err);
    struct bh_bill b = {.by = by, .to_ms = MONTH_MS, .prices = &prices};
    for (size_t i = 0; i < sums.n; i++) {
        const struct bh_store_usage_sum *x = &sums.at[i];
        const struct bh_bill_line line = {.tenant = x->tenant,
                                          .user = of == BH_USAGE_OF_USER ? x->of : NULL,
                                          .gpu = of == BH_USAGE_OF_GPU ? x->of : NULL,
                                          .mechanism = bh_word(mechanism, x->mechanism),
                                          .milli_ms = x->milli_ms,
                                          .mib_ms = x->mib_ms,
                                          .lost_milli_ms = x->lost_milli_ms,
                                          .leases = x->leases};
        bh_bill_add(&b, &line);
    }
    bh_buf_init(&out, 64 << 20);
    bh_bill_csv(&b, &arena, &out);
    const uint64_t took = now_ns(CLOCK_MONOTONIC) - from;
    *ret_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    *ret_lines = b.lines.n;
    *ret_bytes = out.n;
    *ret_milli_ms = b.all.milli_ms;
    bh_buf_fini(&out);
    bh_bill_fini(&b);
    bh_vec_fini(&sums);
    bh_vec_fini(&cards);
    bh_arena_fini(&arena);
    return took;
}

static int measure(struct bh_store *s)
{
    static const struct {
        const char *what;
        enum bh_store_usage_by of;
        enum bh_bill_by by;
    } bills[] = {{"by tenant", BH_USAGE_OF_TENANT, BH_BILL_BY_TENANT},
                 {"by user", BH_USAGE_OF_USER, BH_BILL_BY_USER},
                 {"by GPU, with what is stranded", BH_USAGE_OF_GPU, BH_BILL_BY_GPU}};
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof(bills) / sizeof(*bills); i++) {
        uint64_t best = UINT64_MAX, least = UINT64_MAX, milli_ms = 0, cpu = 0;
        size_t lines = 0, bytes = 0;
        for (int k = 0; k < ROUNDS; k++) {
            const uint64_t took = bill_of(s, bills[i].of, bills[i].by, &lines, &bytes, &milli_ms, &cpu);
            best = took < best ? took : best;
            least = cpu < least ? cpu : least;
        }
        printf("%-32s %6.2f s (%.2f s of CPU)   %6zu lines   %8zu bytes   %" PRIu64 " GPU hours\n",
               bills[i].what, (double)best / 1e9, (double)least / 1e9, lines, bytes, milli_ms / 3600000000);
        if (i == 0)
            first = milli_ms;
        if (milli_ms != first) {
            fprintf(stderr, "usage_bench: two bills of one month differ\n");
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    char folder[300], path[400];
    const struct bh_store_options o = {.mode = BH_STORE_WRITE};
    struct bh_store *s;
    struct bh_err err;
    if (!bh_scratch_make(folder, sizeof(folder), "usage"))
        return 1;
    (void)snprintf(path, sizeof(path), "%s/bulkhead.db", folder);
    must(bh_store_open(path, &o, &s, &err), &err);
    for (uint32_t i = 0; i < CARDS; i++) {
        char uuid[32];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%02u", i);
        const struct bh_store_card card = {
            .uuid = uuid, .model = "H100-80GB", .index = i, .memory_mib = 81559};
        must(bh_store_card_put(s, &card, &err), &err);
    }
    drop_triggers(s);
    const uint64_t from = now_ns(CLOCK_MONOTONIC);
    fill(s);
    printf("a month of %d tenants on %d cards: %d leases, written in %.1f s\n", TENANTS, CARDS,
           TENANTS * LEASES_EACH, (double)(now_ns(CLOCK_MONOTONIC) - from) / 1e9);
    const int rc = measure(s);
    bh_store_close(s);
    return rc;
}
