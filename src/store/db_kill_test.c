/* SPDX-License-Identifier: Apache-2.0 */
/* A process that writes is killed, a few hundred times: what it said was written is there, and the books add up. */
#include "store/state_storm_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { ROUNDS = 200, BYTES = 1 << 16 };

/* Each turn takes the next number and says so once it is committed. */
static void write_on(const char *path, int to, uint64_t seed, uint64_t next)
{
    static uint8_t bytes[BYTES];
    const struct bh_store_options o = {.mode = BH_STORE_WRITE};
    struct storm t = {.at_ms = next};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    if (bh_store_open(path, &o, &t.s, &t.err) < 0)
        _exit(3);
    for (size_t at = 0; at + STORM_COMMAND <= sizeof(bytes); at += STORM_COMMAND, next++) {
        char text[32];
        t.c = (struct bh_choice){bytes + at, STORM_COMMAND};
        t.at_ms++;
        (void)snprintf(text, sizeof(text), "%" PRIu64, next);
        if (bh_store_begin(t.s, &t.err) < 0 || bh_store_begin(t.s, &t.err) < 0)
            _exit(4);
        if (storm_command(&t) < 0)
            bh_store_rollback(t.s);
        else if (bh_store_commit(t.s, &t.err) < 0)
            _exit(5);
        if (bh_store_note_set_text(t.s, "turn", text, &t.err) < 0 || bh_store_commit(t.s, &t.err) < 0)
            _exit(6);
        if (write(to, &next, sizeof(next)) != sizeof(next))
            _exit(7);
        bh_arena_fini(&t.arena);
    }
    _exit(0);
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
    bh_store_close(f.s);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct outcome o = {0};
        struct bh_store_note note;
        CHECK(round_of(f.at.path, seed, next, &o));
        killed += WIFSIGNALED(o.status);
        CHECK(WIFSIGNALED(o.status) || WEXITSTATUS(o.status) == 0);
        fix_open(&f);
        CHECK_EQ(bh_store_note_get(f.s, &f.arena, "turn", &note, &f.err), 0);
        CHECK_EQ(bh_uint_parse(note.value, UINT64_MAX, &o.found, &f.err), 0);
        /* at most the one that was under way is there unsaid */
        if (o.found != o.said && o.found != o.said + 1)
            printf("# seed %" PRIu64 ": said %" PRIu64 ", found %" PRIu64 "\n", seed, o.said, o.found);
        CHECK(o.found == o.said || o.found == o.said + 1);
        ahead += o.found != o.said;
        if (seed % 20 == 0 && fix_broken(f.s)) {
            printf("# seed %" PRIu64 "\n", seed);
            CHECK(false);
        }
        next = o.found + 1;
        bh_store_close(f.s);
        bh_arena_fini(&f.arena);
    }
    f.s = NULL;
    printf("# %" PRIu64 " turns, killed %" PRIu64 " times, %" PRIu64 " ahead of their word\n", next - 1,
           killed, ahead);
    CHECK(killed > ROUNDS / 2);
    CHECK(next > ROUNDS);
    fix_fini(&f);
}

TEST_MAIN
