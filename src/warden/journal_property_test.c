/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of random steps; whoever takes over at any of them has the ledger as it was when something last counted. */
#include "base/test.h"
#include "warden/journal.h"
#include "warden/ledger_fixture.h"
#include "warden/ledger_ops_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4000, SEEDS = 12, LOOK_EVERY = 7 };

static struct storm s;
static size_t n_looked, n_rewritten, n_followed;

static void tell_rest(void *arg, struct bh_journal *j)
{
    (void)arg;
    n_rewritten++;
    for (uint32_t i = 0; i < PROCESSES; i++)
        bh_journal_process(j, &(struct bh_journal_process){s.processes[i].pid, 1});
}

static const char *look(int fd, const struct bh_ledger *then)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    struct bh_err err;
    n_looked++;
    if (bh_journal_adopt(fd, STORM_CAP, 0, &j, &found, &err) < 0) {
        printf("# %s\n", err.msg);
        return "it could not be taken over";
    }
    const char *why = ops_differ(then, found.ledger);
    bh_journal_found_fini(&found);
    bh_journal_free(j);
    return why;
}

/*
 * Another one takes over, with all that counts, and goes on in the same half: of its ledger, and of what the records that
 * follow are differences to. What is asked of the driver meanwhile stays so: that is the tenants' part of the storm.
 */
static const char *follow(int fd, struct bh_journal **j)
{
    struct bh_journal_found found;
    struct bh_err err;
    n_followed++;
    bh_journal_free(*j);
    if (bh_journal_adopt(fd, STORM_CAP, n_followed, j, &found, &err) < 0) {
        printf("# %s\n", err.msg);
        return "it could not be gone on from";
    }
    const char *why = ops_differ(s.l, found.ledger);
    for (uint32_t g = 0; g <= LEDGER_ANYWHERE; g++) {
        found.ledger->gpus[g].reserved = s.l->gpus[g].reserved;
        found.ledger->gpus[g].peak = s.l->gpus[g].peak; /* with that */
    }
    bh_ledger_free(s.l);
    s.l = found.ledger;
    found.ledger = NULL;
    bh_journal_found_fini(&found);
    bh_journal_attach(*j, s.l, tell_rest, NULL);
    return why;
}

static const char *storm_of(uint64_t seed)
{
    static uint8_t bytes[BYTES];
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct bh_journal *j;
    int fd = memfd_create("journal-property", MFD_CLOEXEC);
    bh_choice_fill(bytes, sizeof(bytes), seed);
    storm_init(&s, &c, seed);
    if (bh_journal_new(fd, STORM_CAP, &j, NULL) < 0)
        return "no journal";
    bh_journal_attach(j, s.l, tell_rest, NULL);
    struct bh_ledger *then = ops_copy(s.l);
    const char *why = NULL;
    for (uint32_t step = 0; c.left && !s.why && !why; step++) {
        storm_step(&s);
        const uint32_t what = bh_choose(&c, 8);
        if (what < 3) {
            if (what == 0 && bh_choose(&c, 4) == 0)
                bh_journal_compact(j, BH_JOURNAL_IDLE);
            else
                bh_journal_commit(j, (enum bh_journal_stage)(what % 3));
            bh_ledger_free(then);
            then = ops_copy(s.l);
            if (bh_choose(&c, 8) == 0)
                why = follow(fd, &j);
        }
        if (!why && step % LOOK_EVERY == 0)
            why = look(fd, then);
    }
    why = why ? why : s.why;
    bh_journal_free(j);
    bh_ledger_free(then);
    const char *at_end = storm_end(&s);
    close(fd);
    return why ? why : at_end;
}

TEST(whoever_takes_over_has_what_counted)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const char *why = storm_of(seed);
        if (why)
            printf("# seed %" PRIu64 ": %s\n", seed, why);
        CHECK(!why);
    }
    printf("# looked at %zu times, written anew %zu times, gone on from %zu times\n", n_looked, n_rewritten,
           n_followed);
    CHECK(n_looked > 500 && n_rewritten > 50 && n_followed > 100);
}

TEST_MAIN
