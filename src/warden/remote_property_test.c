/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random opens, duplicates, closes, forks and ends of real processes, beside a plain table of who has what: a file is the
 * same one wherever it is found, one that nobody has is let go by the next sweep, and one on which something was made is
 * not given up while anybody has it, and never before it was asked for.
 */
#include "base/choice.h"
#include "base/test.h"
#include "warden/gate_bench_fixture.h"
#include "warden/remote.h"

enum { STEPS = 600, SEEDS = 12, NUMBERS = 4, NOTHING = 0, SOMETHING_ELSE = UINT32_MAX };

static struct {
    struct bh_remote r;
    struct bh_choice c;
    uint32_t has[BENCH_TENANTS][BENCH_FDS]; /* the manager's number of the file, NOTHING or SOMETHING_ELSE */
    uint64_t id_of[1024];                   /* by that number: what it was last known as; 0: not, or let go */
    bool used[1024];
    uint64_t found, closed, forks, ends;
    bool closing; /* what is lost may be closed now */
    const char *why;
} world;

static void wrong(const char *why)
{
    if (!world.why)
        world.why = why;
}

static uint32_t draw(uint32_t n)
{
    return bh_choose(&world.c, n);
}

static bool anybody_has(uint32_t file)
{
    for (size_t t = 0; t < BENCH_TENANTS; t++)
        for (size_t i = 0; bench_lives((uint32_t)t) && i < BENCH_FDS; i++)
            if (world.has[t][i] == file)
                return true;
    return false;
}

/* ---- what it says ---- */

static void closed(void *arg, uint64_t id)
{
    (void)arg;
    for (uint32_t f = 0; f < BH_COUNT_OF(world.id_of); f++)
        if (world.id_of[f] == id) {
            world.closed++;
            world.id_of[f] = 0;
            if (world.used[f] && !world.r.ending && anybody_has(f))
                wrong("a file on which something was made was given up while somebody has it");
            if (world.used[f] && !world.r.ending && !world.closing)
                wrong("a file on which something was made was closed before it was looked at");
            world.used[f] = false;
            return;
        }
    wrong("a file was closed that was not known, or twice");
}

static void learned(void *arg, struct bh_remote_process *p)
{
    (void)arg;
    for (size_t t = 0; t < BENCH_TENANTS; t++)
        if (bench.tenants[t].pid == (pid_t)p->pid)
            return;
    wrong("a process was learned that is none of the lease's");
}

/* ---- steps ---- */

static uint32_t tenant(void)
{
    uint32_t t = draw(BENCH_TENANTS);
    for (uint32_t i = 0; i < BENCH_TENANTS && !bench_lives(t); i++)
        t = (t + 1) % BENCH_TENANTS; /* others come by forking */
    if (!bench_lives(t)) {
        bench_start(t);
        memset(world.has[t], 0, sizeof(world.has[t]));
    }
    return t;
}

static void opens(void)
{
    const uint32_t t = tenant(), i = draw(NUMBERS);
    if (draw(6) == 5) {
        int other = eventfd(0, EFD_CLOEXEC);
        if (bench_tell(t, ORDER_PUT, BENCH_FIRST_FD + (int)i, 0, other) >= 0)
            world.has[t][i] = SOMETHING_ELSE;
        close(other);
    } else if (bench_give(t, BENCH_FIRST_FD + (int)i, draw(3) ? BH_FILE_CTL : BH_FILE_UVM, 0)) {
        world.has[t][i] = bench_at(t, BENCH_FIRST_FD + (int)i)->file;
    }
}

static void dups(void)
{
    const uint32_t t = tenant(), from = draw(NUMBERS), to = draw(NUMBERS);
    if (bench_tell(t, ORDER_DUP, BENCH_FIRST_FD + (int)from, BENCH_FIRST_FD + (int)to, -1) >= 0)
        world.has[t][to] = world.has[t][from];
}

static void closes(void)
{
    const uint32_t t = tenant(), i = draw(NUMBERS);
    (void)bench_tell(t, ORDER_CLOSE, BENCH_FIRST_FD + (int)i, 0, -1);
    world.has[t][i] = NOTHING;
}

static void forks(void)
{
    const uint32_t parent = tenant();
    uint32_t child = 0;
    while (child < BENCH_TENANTS && bench_lives(child))
        child++;
    if (child == BENCH_TENANTS)
        return;
    bench_fork(parent, child);
    memcpy(world.has[child], world.has[parent], sizeof(world.has[child]));
    world.forks++;
}

/* The kernel tells of an end before the next call is looked at. */
static void ends(void)
{
    const uint32_t t = draw(BENCH_TENANTS);
    const uint32_t pid = (uint32_t)bench.tenants[t].pid;
    if (!bench_lives(t))
        return;
    bench_kill(t);
    memset(world.has[t], 0, sizeof(world.has[t]));
    world.ends++;
    for (size_t i = 0; i < world.r.processes.n; i++)
        if (world.r.processes.at[i]->pid == pid) {
            bh_remote_forget(&world.r, world.r.processes.at[i]);
            break;
        }
}

static void asks(void)
{
    const uint32_t t = tenant(), i = draw(NUMBERS), pid = (uint32_t)bench.tenants[t].pid;
    const uint32_t file = world.has[t][i];
    struct bh_remote_file f;
    struct bh_remote_process *p = bh_remote_process(&world.r, pid);
    if (!p || p->pid != pid) {
        wrong("a living process was not found");
        return;
    }
    int rc = bh_remote_file(&world.r, p, pid, BENCH_FIRST_FD + (int)i, &f);
    if (file == NOTHING ? rc != -EBADF : rc != 0)
        wrong("what is open there was not found, or what is not was");
    else if (file == SOMETHING_ELSE && f.id)
        wrong("somebody else's file was taken for the driver's");
    else if (rc == 0 && file != SOMETHING_ELSE) {
        world.found++;
        if (!f.id || (world.id_of[file] && world.id_of[file] != f.id))
            wrong("one file has two names");
        for (uint32_t k = 0; k < BH_COUNT_OF(world.id_of); k++)
            if (k != file && world.id_of[k] == f.id)
                wrong("two files have one name");
        world.id_of[file] = f.id;
        if (draw(2))
            world.used[file] = world.r.files.at[f.index].used = true;
    }
    if (rc == 0)
        bh_remote_release(&world.r, &f);
}

/* What the warden alone still has, it has for this long. */
static void sweeps(void)
{
    bh_remote_sweep(&world.r);
    world.closing = bh_remote_find_lost(&world.r);
    bh_remote_close_lost(&world.r);
    world.closing = false;
    bench_hang_up();
    for (size_t i = 0; i < BENCH_FILES; i++)
        if (bench.files[i].peer >= 0 && !anybody_has(bench.files[i].file))
            wrong("a file that nobody has was kept open");
}

static void finds(void)
{
    bh_remote_find_holders(&world.r);
    for (size_t t = 0; t < BENCH_TENANTS; t++)
        for (size_t i = 0; bench_lives((uint32_t)t) && i < BENCH_FDS; i++) {
            const uint32_t file = world.has[t][i];
            bool known = false;
            if (file == NOTHING || file == SOMETHING_ELSE || !world.id_of[file])
                continue;
            for (size_t k = 0; k < world.r.processes.n; k++)
                known = known || world.r.processes.at[k]->pid == (uint32_t)bench.tenants[t].pid;
            if (!known)
                wrong("a process that has a file was not found");
        }
}

static bool storm(uint64_t seed)
{
    static void (*const steps[])(void) = {opens, opens, opens,  asks,  asks,  asks, asks,   asks, asks,
                                          dups,  dups,  closes, forks, forks, ends, sweeps, finds};
    static const struct bh_remote_hear hear = {.closed = closed, .learned = learned};
    static uint8_t bytes[STEPS * 5];
    struct bh_err err;
    uint32_t step = 0;
    memset(&world, 0, sizeof(world));
    bh_choice_fill(bytes, sizeof(bytes), seed);
    world.c = (struct bh_choice){bytes, sizeof(bytes)};
    bench_begin(0);
    if (bh_remote_init(&world.r, &bench_driver, &hear, NULL, &err) < 0)
        wrong("it cannot be done here");
    for (; step < STEPS && world.c.left && !world.why; step++)
        steps[draw(BH_COUNT_OF(steps))]();
    printf("# seed %" PRIu64 ": %u steps, %" PRIu64 " found, %" PRIu64 " closed, %" PRIu64 " forks, %" PRIu64
           " ends%s%s\n",
           seed, step, world.found, world.closed, world.forks, world.ends, world.why ? ": " : "",
           world.why ? world.why : "");
    const bool reached = world.found > 20 && world.closed > 5 && world.forks && world.ends;
    bh_remote_fini(&world.r);
    for (uint32_t f = 0; f < BH_COUNT_OF(world.id_of); f++)
        if (world.id_of[f])
            wrong("a file was never closed");
    for (uint32_t t = 0; t < BENCH_TENANTS; t++)
        bench_kill(t);
    bench_hang_up();
    close(bench.listener);
    bh_sim_rm_free(bench.rm);
    return !world.why && reached;
}

TEST(it_knows_what_the_kernel_knows)
{
    uint32_t good = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        good += storm(seed);
    CHECK_EQ(good, SEEDS);
}

TEST_MAIN
