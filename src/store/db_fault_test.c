/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store on a disk that fails at every kind of call and loses power, beside a twin on one that never does. What was
 * acknowledged is there afterwards, what was not is there as a whole or not at all, and the books add up.
 */
#include "store/db_disk_fixture.h"
#include "store/state_storm_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 24 }; /* dear */
#else
enum { SEEDS = 40 };
#endif
enum { ROUNDS = 60, TURN = 4 };

struct outcome {
    uint64_t turns, refused, hits, outages, kept, undone, opens_failed;
    const char *why;
};

struct pair {
    struct scratch at;
    char twin_path[512];
    struct disk disk, still;
    struct bh_store *main, *twin;
    struct bh_err err;
};

static int open_on(const char *path, const char *vfs, struct bh_store **ret, struct bh_err *err)
{
    const struct bh_store_options o = {.mode = BH_STORE_WRITE, .vfs = vfs};
    return bh_store_open(path, &o, ret, err);
}

/* Some commands in one transaction, each for itself; one that is refused leaves nothing. What the commit answers. */
static int turn(struct bh_store *s, const uint8_t *bytes, uint32_t n, uint64_t at_ms, uint64_t *refused,
                struct bh_err *err)
{
    int rc = bh_store_begin(s, err);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct storm t = {.s = s, .c = {bytes + (size_t)i * STORM_COMMAND, STORM_COMMAND}, .at_ms = at_ms};
        rc = bh_store_begin(s, err);
        if (rc < 0)
            break;
        rc = storm_command(&t);
        *err = t.err;
        if (rc == BH_SYSTEM || (rc < 0 && refused == NULL)) {
            bh_store_rollback(s);
        } else if (rc < 0) {
            ++*refused;
            bh_store_rollback(s);
            rc = 0;
        } else {
            rc = bh_store_commit(s, err);
        }
        bh_arena_fini(&t.arena);
    }
    if (rc == 0)
        return bh_store_commit(s, err);
    bh_store_rollback(s);
    return rc;
}

/* Whether the commit that failed happened after all; the twin follows. */
static const char *settle(struct pair *p, const uint8_t *bytes, uint32_t n, uint64_t at_ms, bool unsure,
                          struct outcome *o)
{
    struct bh_err err = {0};
    uint64_t refused = 0;
    const uint64_t found = storm_digest(p->main);
    if (found == storm_digest(p->twin)) {
        o->undone++;
        return fix_broken(p->main) ? "the books do not add up after a failure" : NULL;
    }
    if (!unsure)
        return "a commit that was undone for good is back";
    if (turn(p->twin, bytes, n, at_ms, &refused, &err) < 0)
        return "the twin failed";
    if (found != storm_digest(p->twin))
        return "what is there is neither what was nor what should be";
    o->kept++;
    return fix_broken(p->main) ? "the books do not add up after a failure" : NULL;
}

static const char *reopen(struct pair *p, struct outcome *o)
{
    bh_store_close(p->main);
    p->main = NULL;
    disk_restart(&p->disk);
    /* Opening writes too, and may fail as well. */
    disk_plan(&p->disk, (enum disk_fault)(p->disk.seed % DISK_FAULTS), p->disk.seed / 8 % 6, false);
    if (open_on(p->at.path, "failing", &p->main, &p->err) < 0) {
        o->opens_failed++;
        if (p->err.code != BH_SYSTEM)
            return "a failing disk was taken for a damaged store";
        disk_restart(&p->disk);
        if (open_on(p->at.path, "failing", &p->main, &p->err) < 0)
            return "it cannot be opened any more";
    }
    disk_plan(&p->disk, DISK_FINE, 0, false);
    return NULL;
}

static const char *rounds(struct pair *p, struct bh_choice *c, struct outcome *o)
{
    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint8_t bytes[TURN * STORM_COMMAND];
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)bh_choose(c, 256);
        const uint32_t n = 1 + bh_choose(c, TURN);
        const uint64_t at_ms = 1000 + 10 * r;
        uint64_t refused = 0, twice = 0;
        struct bh_err err = {0};
        const bool fails = bh_choose(c, 3) == 0;
        if (fails)
            disk_plan(&p->disk, (enum disk_fault)(1 + bh_choose(c, DISK_FAULTS - 1)), bh_choose(c, 48),
                      bh_choose(c, 2));
        const int rc = turn(p->main, bytes, n, at_ms, &refused, &p->err);
        const bool hit = p->disk.hit, dead = p->disk.dead;
        const bool lose = dead || bh_choose(c, 5) == 0;
        o->turns++;
        o->refused += refused;
        o->hits += fails && hit;
        o->outages += dead;
        disk_plan(&p->disk, DISK_FINE, 0, false);
        if (rc < 0 && !(fails && hit))
            return p->err.msg;
        /* acknowledged: from here on it must be there */
        if (rc == 0 && turn(p->twin, bytes, n, at_ms, &twice, &err) < 0)
            return "the twin failed";
        if (rc == 0 && refused != twice)
            return "the twin was refused something else";
        const bool unsure = bh_store_unsure(p->main);
        /* The next begin is what makes sure, as soon as the disk works. */
        if (unsure && !lose && (bh_store_begin(p->main, &p->err) < 0 || bh_store_unsure(p->main)))
            return "a sound disk, and it is still unsure";
        bh_store_rollback(p->main);
        const char *why = lose ? reopen(p, o) : NULL;
        if (!why && rc < 0)
            why = settle(p, bytes, n, at_ms, unsure && lose, o);
        else if (!why && lose && storm_digest(p->main) != storm_digest(p->twin))
            why = "something acknowledged is gone";
        if (!why && bh_choose(c, 10) == 0 && bh_store_checkpoint(p->main, &p->err) < 0)
            why = "no checkpoint on a sound disk";
        if (why)
            return why;
    }
    return fix_broken(p->main) || fix_broken(p->twin) ? "the books do not add up at the end" : NULL;
}

static struct outcome run(uint64_t seed)
{
    static uint8_t bytes[ROUNDS * (TURN * STORM_COMMAND + 32)];
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct pair p = {0};
    struct outcome o = {0};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    scratch_init(&p.at);
    disk_init(&p.disk, "failing", seed);
    disk_init(&p.still, "still", seed);
    (void)scratch_file(&p.at, "twin.db", p.twin_path);
    if (open_on(p.at.path, "failing", &p.main, &p.err) < 0 ||
        open_on(p.twin_path, "still", &p.twin, &p.err) < 0) {
        o.why = "a store could not be made";
    } else {
        struct storm a = {.s = p.main}, b = {.s = p.twin};
        o.why = storm_found(&a) < 0 || storm_found(&b) < 0 ? "no cards" : rounds(&p, &c, &o);
    }
    if (o.why)
        printf("# seed %" PRIu64 ", turn %" PRIu64 ": %s (%s)\n", seed, o.turns, o.why, p.err.msg);
    bh_store_close(p.main);
    bh_store_close(p.twin);
    disk_fini(&p.disk);
    disk_fini(&p.still);
    scratch_fini(&p.at);
    return o;
}

TEST(what_was_acknowledged_outlives_every_failure_of_the_disk)
{
    struct outcome all = {0};
    const char *one = getenv("BH_STORE_SEED");
    uint64_t first = 1;
    CHECK(!one || bh_uint_parse(one, UINT64_MAX, &first, NULL) == 0);
    for (uint64_t seed = first; seed <= (one ? first : SEEDS); seed++) {
        const struct outcome o = run(seed);
        CHECK(!o.why);
        all.turns += o.turns;
        all.refused += o.refused;
        all.hits += o.hits;
        all.outages += o.outages;
        all.kept += o.kept;
        all.undone += o.undone;
        all.opens_failed += o.opens_failed;
    }
    printf("# %" PRIu64 " turns, %" PRIu64 " refused commands, %" PRIu64 " failures (%" PRIu64
           " of power), %" PRIu64 " commits undone, %" PRIu64 " found again, %" PRIu64 " failures to open\n",
           all.turns, all.refused, all.hits, all.outages, all.undone, all.kept, all.opens_failed);
    /* the storm reached what it is about */
    CHECK(one ||
          (all.hits > 200 && all.outages > 30 && all.undone > 100 && all.kept > 2 && all.opens_failed > 10));
}

TEST(a_new_store_that_fails_at_any_call_can_be_made_afterwards)
{
    uint64_t failed = 0, made = 0;
    for (uint64_t after = 0; made < 3; after++) {
        struct pair p = {0};
        scratch_init(&p.at);
        disk_init(&p.disk, "failing", after);
        disk_plan(&p.disk, (enum disk_fault)(1 + after % (DISK_FAULTS - 1)), after, true);
        const int rc = open_on(p.at.path, "failing", &p.main, &p.err);
        bh_store_close(p.main);
        p.main = NULL;
        made += rc == 0 && !p.disk.hit;
        failed += rc < 0;
        disk_restart(&p.disk);
        CHECK_EQ(open_on(p.at.path, "failing", &p.main, &p.err), 0);
        CHECK_EQ(bh_store_schema_version(p.main), bh_store_schema_newest());
        CHECK_EQ(fix_broken(p.main), 0);
        CHECK_EQ(bh_store_verify(p.main, true, &p.err), 0);
        bh_store_close(p.main);
        disk_fini(&p.disk);
        scratch_fini(&p.at);
    }
    printf("# failed at %" PRIu64 " places\n", failed);
    CHECK(failed > 20);
}

TEST(a_transaction_that_the_disk_undid_takes_nothing_more)
{
    struct pair p = {0};
    struct bh_err err = {0};
    scratch_init(&p.at);
    disk_init(&p.disk, "failing", 7);
    CHECK_EQ(open_on(p.at.path, "failing", &p.main, &p.err), 0);
    CHECK_EQ(bh_store_begin(p.main, &err), 0);
    CHECK_EQ(bh_store_begin(p.main, &err), 0);
    CHECK_EQ(bh_store_note_set_text(p.main, "a", "1", &err), 0);
    /* what SQLite does by itself when a disk fails in the middle of things */
    CHECK_EQ(raw(p.main, "ROLLBACK"), 0);
    CHECK_EQ(bh_store_commit(p.main, &err), BH_SYSTEM);
    CHECK_EQ(bh_store_note_set_text(p.main, "b", "2", &err), BH_SYSTEM);
    CHECK_EQ(bh_store_begin(p.main, &err), BH_SYSTEM);
    CHECK_EQ(bh_store_commit(p.main, &err), BH_SYSTEM);
    CHECK(!bh_store_in_transaction(p.main));
    CHECK_EQ(number(p.main, "SELECT count(*) FROM notes"), 0);
    CHECK_EQ(bh_store_note_set_text(p.main, "c", "3", &err), 0);
    bh_store_close(p.main);
    disk_fini(&p.disk);
    scratch_fini(&p.at);
}

TEST_MAIN
