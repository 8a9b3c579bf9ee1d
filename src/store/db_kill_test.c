/* SPDX-License-Identifier: Apache-2.0 */
/* A process that writes is killed, a few hundred times: what it said was written is there, and the books add up. */
#include "store/state_storm_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { ROUNDS = 200, BYTES = 1 << 16, FIRST = 400 };

/* A number that was noted. */
static uint64_t noted(struct bh_store *s, const char *key)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    struct bh_err err;
    uint64_t v = 0;
    if (bh_store_note_get(s, &arena, key, &note, &err) == 0 &&
        bh_uint_parse(note.value, UINT64_MAX, &v, &err) < 0)
        abort();
    bh_arena_fini(&arena);
    return v;
}

static int keep_note(struct bh_store *s, const char *key, uint64_t v, struct bh_err *err)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, v);
    return bh_store_note_set_text(s, key, text, err);
}

/* Each turn takes the next number and a millisecond. 0: it is committed, with what was given away in it. */
static int turn(struct storm *t, uint8_t *bytes, uint64_t next)
{
    t->c = (struct bh_choice){bytes, STORM_COMMAND};
    t->at_ms++;
    if (bh_store_begin(t->s, &t->err) < 0 || bh_store_begin(t->s, &t->err) < 0)
        return 4;
    if ((bytes[0] % 2 ? storm_forward(t) : storm_command(t)) < 0)
        bh_store_rollback(t->s);
    else if (bh_store_commit(t->s, &t->err) < 0)
        return 5;
    bh_arena_fini(&t->arena);
    const bool kept = keep_note(t->s, "turn", next, &t->err) == 0 &&
                      keep_note(t->s, "given", noted(t->s, "given") + storm_given(t->s), &t->err) == 0;
    return kept && bh_store_commit(t->s, &t->err) == 0 ? 0 : 6;
}

/* One after the other; each is said once it is committed. */
static void write_on(const char *path, int to, uint64_t seed, uint64_t next)
{
    static uint8_t bytes[BYTES];
    const struct bh_store_options o = {.mode = BH_STORE_WRITE};
    struct storm t = {.at_ms = next};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    if (bh_store_open(path, &o, &t.s, &t.err) < 0)
        _exit(3);
    for (size_t at = 0; at + STORM_COMMAND <= sizeof(bytes); at += STORM_COMMAND, next++) {
        const int rc = turn(&t, bytes + at, next);
        if (rc)
            _exit(rc);
        if (write(to, &next, sizeof(next)) != sizeof(next))
            _exit(7);
    }
    _exit(0);
}

/* Many of them in one commit: a store with leases in it, however slow the disk is that the rest has to wait for. */
static bool begin_with(struct storm *t, uint64_t *next)
{
    static uint8_t bytes[FIRST * STORM_COMMAND];
    bh_choice_fill(bytes, sizeof(bytes), ROUNDS + 1);
    bool good = bh_store_begin(t->s, &t->err) == 0;
    t->at_ms = *next;
    for (size_t at = 0; good && at + STORM_COMMAND <= sizeof(bytes); at += STORM_COMMAND)
        good = turn(t, bytes + at, (*next)++) == 0;
    return good && bh_store_commit(t->s, &t->err) == 0;
}

struct outcome {
    uint64_t said; /* the last turn that was */
    uint64_t found;
    int status;
};

static bool round_of(const char *path, uint64_t seed, uint64_t next, struct outcome *o)
{
    int pipes[2];
    uint64_t n;
    if (pipe(pipes) < 0)
        return false;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        write_on(path, pipes[1], seed, next);
    }
    close(pipes[1]);
    const struct timespec t = {0, (long)(seed * 7919 % 30000000)};
    /* at least one turn, then at any moment */
    o->said = next - 1;
    if (read(pipes[0], &n, sizeof(n)) == sizeof(n))
        o->said = n;
    nanosleep(&t, NULL);
    (void)kill(child, SIGKILL);
    while (read(pipes[0], &n, sizeof(n)) == sizeof(n))
        o->said = n;
    close(pipes[0]);
    return waitpid(child, &o->status, 0) == child;
}

/* What tenants are charged for, up to now, is what was given away at each moment of it. */
static bool adds_up(struct fix *f, uint64_t turn)
{
    const struct bh_store_usage_filter when = {.to_ms = turn + 2}; /* the last turn's millisecond is over */
    bh_store_usage_sums sums = {0};
    bh_store_usage_cards cards = {0};
    uint64_t charged = 0, on_cards = 0;
    const int rc = bh_store_usage_sum(f->s, &f->arena, &when, BH_USAGE_OF_GPU, &sums, &f->err);
    for (size_t i = 0; i < sums.n; i++)
        charged += sums.at[i].milli_ms;
    const int rc2 = bh_store_usage_cards_list(f->s, &f->arena, &when, &cards, &f->err);
    for (size_t i = 0; i < cards.n; i++)
        on_cards += cards.at[i].milli_ms;
    bh_vec_fini(&sums);
    bh_vec_fini(&cards);
    const uint64_t given = noted(f->s, "given");
    if (charged != given || on_cards != given)
        printf("# turn %" PRIu64 ": given %" PRIu64 ", charged %" PRIu64 ", on cards %" PRIu64 "\n", turn,
               given, charged, on_cards);
    return rc == 0 && rc2 == 0 && charged == given && on_cards == given;
}

TEST(what_a_killed_process_had_written_is_there)
{
    struct fix f;
    struct storm t = {0};
    uint64_t next = 1, killed = 0, ahead = 0;
    memset(&f, 0, sizeof(f));
    scratch_init(&f.at);
    fix_open(&f);
    t.s = f.s;
    CHECK_EQ(storm_found(&t), 0);
    CHECK(begin_with(&t, &next));
    bh_store_close(f.s);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct outcome o = {0};
        CHECK(round_of(f.at.path, seed, next, &o));
        killed += WIFSIGNALED(o.status);
        CHECK(WIFSIGNALED(o.status) || WEXITSTATUS(o.status) == 0);
        fix_open(&f);
        o.found = noted(f.s, "turn");
        /* at most the one that was under way is there unsaid */
        if (o.found != o.said && o.found != o.said + 1)
            printf("# seed %" PRIu64 ": said %" PRIu64 ", found %" PRIu64 "\n", seed, o.said, o.found);
        CHECK(o.found == o.said || o.found == o.said + 1);
        ahead += o.found != o.said;
        if (seed % 20 == 0 && fix_broken(f.s)) {
            printf("# seed %" PRIu64 "\n", seed);
            CHECK(false);
        }
        CHECK(adds_up(&f, o.found));
        next = o.found + 1;
        bh_store_close(f.s);
        bh_arena_fini(&f.arena);
    }
    f.s = NULL;
    printf("# %" PRIu64 " turns, killed %" PRIu64 " times, %" PRIu64 " ahead of their word\n", next - 1,
           killed, ahead);
    CHECK(killed > ROUNDS / 2);
    CHECK(next > FIRST + ROUNDS);
    fix_open(&f);
    CHECK(noted(f.s, "given") > 0);
    bh_store_close(f.s);
    f.s = NULL;
    fix_fini(&f);
}

TEST_MAIN
