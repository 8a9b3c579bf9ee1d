/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_watch.c - what is really held: looked at often, always before a refusal, and acted on.
 *
 * Some calls have to run in the tenant, where another thread may change them after they were looked at. So the driver's
 * own count has the last word: it goes into the ledger, and a lease that stays above its cap is ended. Whatever a tenant
 * gains behind the gate it has for two ticks, and then it is gone together with the tenant.
 */
#include "warden/gate_inside.h"

#include "warden/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    OVER_TICKS = 2,      /* in a row: a count taken in the middle of a call may be too high once */
    IDLE_TICKS = 25,     /* without a call: then it is quiet, ... */
    QUIET_WHOLE = 3,     /* ... and one tick in so many does more than count */
    COST_PART = 200,     /* a tick may take this part of the time, but not for longer than ... */
    STRETCH_MAX = 3,     /* ... so many ticks: with half of one more for the verdict that is 70 ms */
    MAPS_NS = 200000000, /* between two looks at everybody's mappings: the list of one can be long */
    LOST_EVERY = 64,     /* ticks at full pace: for files that nobody has and that hold nothing, ... */
    LOST_MAX = 64,       /* ... and how many of them may wait for it */
    GHOSTS_AT_ONCE = 8,  /* looked at one by one in a tick */
    COUNT_FAILURES_MAX = 3,
    UVM_FILES_MAX = 16,
    MAPPING_TICKS = 3,
    MAPPING_SOME =
        64, /* threads of a process that were granted a mapping: then those that ended are looked for, ... */
    MAPPING_LOOKS = 4,   /* ... among so many at each call, ... */
    MAPPING_MOST = 4096, /* ... and so many may there be */
    /* At threads that may be about to map: in a tick (10 to 50 us each were seen), ... */
    TICK_LOOKS = 128,
    LAST_LOOKS = 1024,   /* ... and before a refusal */
    MAP_NS = 10000000,   /* of processor time: asking for a mapping does not take so long */
    BACK_NS = 30000000,  /* of it outside of the kernel, which counts it in hundredths: then a call is over */
    AWAIT_NS = 25000000, /* before a refusal */
    COUNT_TRIES = 3,
};

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- counting ---- */

void bh_gate_pids(struct bh_gate *g)
{
    g->pids.n = 0;
    for (size_t i = 0; i < g->remote.processes.n; i++)
        *bh_vec_push(&g->pids) = g->remote.processes.at[i]->pid;
    for (size_t i = 0; i < g->ghosts.n; i++)
        *bh_vec_push(&g->pids) = g->ghosts.at[i].pid;
}

static bool count_pids(struct bh_gate *g, const uint32_t *pids, size_t n, uint64_t bytes[BH_LEDGER_GPUS])
{
    struct bh_err err;
    const size_t gpus = g->n_gpus < BH_LEDGER_GPUS ? g->n_gpus : BH_LEDGER_GPUS;
    return g->driver->count(g->counter, pids, n, bytes, gpus, &err) == BH_OK;
}

static void ghost_drop(struct bh_gate *g, size_t i)
{
    close(g->ghosts.at[i].pidfd);
    bh_link_pids_changed(g->link);
    g->ghosts.at[i] = g->ghosts.at[--g->ghosts.n];
}

/* The number was given to somebody else: what is counted for it is none of ours. */
static bool ghost_is_stranger(const struct bh_gate_ghost *ghost)
{
    return (ghost->pidfd < 0 ||
            (syscall(SYS_pidfd_send_signal, ghost->pidfd, 0, NULL, 0) < 0 && errno == ESRCH)) &&
           (kill((pid_t)ghost->pid, 0) == 0 || errno == EPERM);
}

/* A few each time: most have left nothing. */
static void ghosts_look(struct bh_gate *g)
{
    uint64_t bytes[BH_LEDGER_GPUS] = {0};
    for (size_t i = g->ghosts.n, looked = 0; i-- > 0;) {
        bool over = ghost_is_stranger(&g->ghosts.at[i]);
        if (!over && looked++ < GHOSTS_AT_ONCE && count_pids(g, &g->ghosts.at[i].pid, 1, bytes)) {
            over = true;
            for (size_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++)
                over = over && bytes[gpu] == 0;
        }
        if (over)
            ghost_drop(g, i);
    }
}

void bh_gate_count(struct bh_gate *g)
{
    uint64_t bytes[BH_LEDGER_GPUS] = {0};
    ghosts_look(g);
    bh_gate_pids(g);
    /* The warden has names for what was freed and is not proved to be gone. */
    *bh_vec_push(&g->pids) = (uint32_t)g->remote.self;
    if (!count_pids(g, g->pids.at, g->pids.n, bytes)) {
        g->count_failures++;
        return;
    }
    g->count_failures = 0;
    g->stats->checks++;
    for (uint32_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++) {
        bh_ledger_counted(g->ledger, gpu, bytes[gpu]);
        const uint64_t overhead = bh_ledger_sum(g->ledger, gpu).overhead;
        g->forgiven[gpu] = overhead < g->forgiven[gpu] ? overhead : g->forgiven[gpu];
    }
}

void bh_gate_forgive(struct bh_gate *g)
{
    for (uint32_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++)
        g->forgiven[gpu] = bh_ledger_sum(g->ledger, gpu).overhead;
}

/*
 * Everything that the driver counts for a process was asked for by name, and names are given at the gate (measured: what the
 * driver takes for itself is in no process's count). So what it counts beyond what was granted was obtained behind the
 * gate. Not where the warden can take no names: there the driver counts what a closed file held until it has acted. The
 * first GPU where that is so, or UINT32_MAX.
 */
static uint32_t behind_the_gate(const struct bh_gate *g, uint64_t *ret_bytes)
{
    for (uint32_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++) {
        *ret_bytes = bh_ledger_sum(g->ledger, gpu).overhead;
        if (!g->proof.cannot[gpu] && *ret_bytes > g->forgiven[gpu])
            return gpu;
    }
    return UINT32_MAX;
}

/* ---- managed memory ---- */

/*
 * Has a thread mapped what it was granted, or will it not? That is known of one that is gone, or that waits in another call.
 * Processor time says nothing where mmap itself maps: what was there before goes first, and gigabytes of it take long.
 * Where mmap does not map (simulated silicon) it does, and one that waits is given some time first. So it is where the kernel
 * does not tell in which call a thread is: in mmap it would not wait so that a signal could end that.
 */
static bool is_settled(const struct bh_gate *g, const struct bh_remote_process *p,
                       struct bh_remote_mapping *m, struct bh_thread_seen *seen)
{
    bh_thread_look(p->pid, m->tid, seen);
    if (!seen->state)
        return true;
    if (!m->looked)
        m->user_ns = seen->user_ns;
    m->looked = true;
    /* Where nothing was granted this is enough: if it were wrong, all are looked at now and then. */
    if (m->lingers && seen->user_ns >= m->user_ns + BACK_NS)
        return true;
    if (!g->driver->maps_in_mmap && seen->cpu_ns > m->cpu_ns + MAP_NS)
        return true;
    const enum bh_thread_in in = g->driver->maps_in_mmap && !strchr("R?", seen->state)
                                     ? bh_thread_in(p->pid, m->tid, SYS_mmap)
                                     : BH_THREAD_UNTOLD;
    if (in != BH_THREAD_UNTOLD)
        return in == BH_THREAD_ELSEWHERE;
    return g->ticks - m->tick > MAPPING_TICKS && !strchr("RDTt?", seen->state);
}

/* What threads of it were granted and may not have mapped yet. How many there are is a tenant's choice, so a few are looked at each
 * time, by turns: of the others it is not known, and they count. */
static uint64_t mapping(struct bh_gate *g, struct bh_remote_process *p)
{
    uint64_t bytes = 0;
    for (size_t left = p->mapping.n; left > 0 && g->map_looks; left--) {
        const size_t i = p->mapping_look < p->mapping.n ? p->mapping_look : 0;
        struct bh_remote_mapping *m = &p->mapping.at[i];
        struct bh_thread_seen seen = {.state = '?'};
        bool over = false;
        if (m->bytes || m->lingers) {
            g->map_looks--;
            const bool settled = is_settled(g, p, m, &seen);
            over = !seen.state ||
                   (settled && m->lingers); /* it does not come back, or nothing is left to be said */
            if (settled && m->lingers)
                p->let_map_tick = g->ticks;
            if (settled && m->bytes) {
                m->bytes = 0;
                m->unsettled = true;
            }
        }
        if (over)
            p->mapping.at[i] = p->mapping.at[--p->mapping.n];
        p->mapping_look = over ? i : i + 1;
    }
    for (size_t i = 0; i < p->mapping.n; i++)
        bytes += p->mapping.at[i].bytes;
    return bytes;
}

/* Before a refusal: one that runs will soon be known to have mapped, or to be at something else. Not for long: others wait. */
static void await_mappings(const struct bh_gate *g)
{
    const uint64_t until = now_ns() + AWAIT_NS;
    for (bool runs = true; runs && now_ns() < until;) {
        runs = false;
        for (size_t i = 0; i < g->remote.processes.n && !runs; i++) {
            struct bh_remote_process *p = g->remote.processes.at[i];
            for (size_t k = 0; k < p->mapping.n && !runs && now_ns() < until; k++) {
                struct bh_thread_seen seen;
                runs = p->mapping.at[k].bytes && !is_settled(g, p, &p->mapping.at[k], &seen) &&
                       seen.state == 'R';
            }
        }
        if (runs)
            (void)usleep(1000);
    }
}

/* Threads that have ended are not waited for. A few at each call, which adds one at most: so they are found sooner than they
 * come, and no call waits for a look at thousands. */
static void forget_ended(struct bh_remote_process *p)
{
    for (int looks = 0; looks < MAPPING_LOOKS && p->mapping.n; looks++) {
        struct bh_thread_seen seen = {.state = '?'};
        const size_t i = p->mapping_next < p->mapping.n ? p->mapping_next : 0;
        if (!p->mapping.at[i].bytes)
            bh_thread_look(p->pid, p->mapping.at[i].tid, &seen);
        if (!seen.state)
            p->mapping.at[i] = p->mapping.at[--p->mapping.n];
        p->mapping_next = seen.state ? i + 1 : i;
    }
}

/* One entry a thread; when there are too many nobody maps: what is not known to be mapped would be given away. */
static bool has_room_to_map(struct bh_remote_process *p)
{
    if (p->mapping.n >= MAPPING_SOME)
        forget_ended(p);
    return p->mapping.n < MAPPING_MOST;
}

struct bh_remote_mapping *bh_gate_expect(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid,
                                         uint64_t bytes)
{
    struct bh_remote_mapping *m = bh_vec_push(&p->mapping);
    struct bh_thread_seen seen = {0};
    if (!g->driver->maps_in_mmap)
        bh_thread_look(p->pid, tid, &seen);
    *m = (struct bh_remote_mapping){.tid = tid, .tick = g->ticks, .bytes = bytes, .cpu_ns = seen.most_ns};
    return m;
}

/* A shared mapping was let through, and a thread is not known to be done with it, or was a little while ago: it may have become
 * one of another file. Or a thread may still be about to map what it was granted. */
static bool may_have_mapped(const struct bh_gate *g, const struct bh_remote_process *p)
{
    for (size_t i = 0; i < p->mapping.n; i++)
        if (p->mapping.at[i].bytes || p->mapping.at[i].lingers)
            return true;
    return p->let_map && g->ticks - p->let_map_tick <= MAPPING_TICKS;
}

/* Compares what a process has mapped with what it was granted; false: it has more than it may. */
static bool look_mapped(struct bh_gate *g, struct bh_remote_process *p)
{
    int files[UVM_FILES_MAX];
    const size_t n = bh_remote_files_of(&g->remote, p, BH_FILE_UVM, files, UVM_FILES_MAX);
    if (n == 0 && !p->mapped && !p->let_map && !may_have_mapped(g, p))
        return true;
    /* Before its mappings: a thread that maps in between counts twice for a moment, the other way round not at all. */
    const uint64_t lately = mapping(g, p);
    bh_watchdog_enter(g->watchdog, p->pid);
    const int64_t now = g->driver->mapped(p->pid, files, n);
    bh_watchdog_leave(g->watchdog);
    if (now < 0)
        return true;
    const uint64_t mapped = (uint64_t)now;
    if (mapped > p->mapped) {
        if (!bh_ledger_map(g->ledger, p->pid, mapped - p->mapped))
            return false;
        p->mapped = mapped;
    } else if (p->mapped - mapped > lately) {
        /* What was granted just now may not be mapped yet. */
        bh_ledger_unmap(g->ledger, p->pid, p->mapped - mapped - lately);
        p->mapped = mapped + lately;
    }
    return true;
}

void bh_gate_mapped(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid)
{
    bool unsettled = false;
    for (size_t i = p->mapping.n; i-- > 0;)
        if (p->mapping.at[i].tid == tid) {
            unsettled |= p->mapping.at[i].unsettled;
            if (p->mapping.at[i].lingers)
                p->let_map_tick = g->ticks;
            p->mapping.at[i] = p->mapping.at[--p->mapping.n];
        }
    /* What was credited is charged again before it is given away. Where that is no longer possible the next tick says so. */
    g->map_looks = MAPPING_LOOKS;
    if (unsettled)
        (void)look_mapped(g, p);
}

/* Nothing is mapped without a call, so in between those alone are looked at who have made one. What a process has unmapped
 * is credited when all are looked at: now and then, and before a refusal. */
static bool look_all_mapped(struct bh_gate *g, bool all, uint32_t looks)
{
    const size_t n = g->remote.processes.n;
    bool good = true;
    g->map_looks = looks;
    for (size_t i = 0; i < n; i++) { /* each is the first in its turn: the looks may be gone after it */
        struct bh_remote_process *p = g->remote.processes.at[(i + g->ticks) % n];
        if (all || may_have_mapped(g, p))
            good = look_mapped(g, p) && good;
    }
    return good;
}

/* ---- granting ---- */

static void look_again(struct bh_gate *g)
{
    bh_remote_sweep(&g->remote);
    (void)bh_gate_close_lost(g, false);
    (void)bh_proof_settle(&g->proof);
    await_mappings(g);
    (void)look_all_mapped(g, true, LAST_LOOKS);
    bh_gate_count(g);
}

bool bh_gate_reserve(struct bh_gate *g, uint32_t gpu, uint64_t bytes)
{
    bool good = g->count_failures < COUNT_FAILURES_MAX && bh_ledger_reserve(g->ledger, gpu, bytes);
    if (!good) {
        look_again(g);
        bh_proof_look_at_all(&g->proof, gpu);
        good = g->count_failures == 0 && bh_ledger_reserve(g->ledger, gpu, bytes);
    }
    if (!good)
        g->stats->refused_memory++;
    return good;
}

/* Of another file, as it seems: which one it is the kernel finds out when the thread has a processor again. */
bool bh_gate_let_map(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid)
{
    if (!has_room_to_map(p))
        return false;
    p->let_map = true;
    p->let_map_tick = g->ticks;
    bh_gate_expect(g, p, tid, 0)->lingers = true;
    return true;
}

bool bh_gate_map(struct bh_gate *g, const struct bh_gate_call *c, uint64_t bytes)
{
    struct bh_remote_process *p = c->process;
    const bool room = has_room_to_map(p);
    bool good = room && g->count_failures < COUNT_FAILURES_MAX && bh_ledger_map(g->ledger, p->pid, bytes);
    if (room && !good) {
        look_again(g);
        good = g->count_failures == 0 && bh_ledger_map(g->ledger, p->pid, bytes);
    }
    if (!good) {
        g->stats->refused_memory++;
        return false;
    }
    p->mapped += bytes;
    (void)bh_gate_expect(g, p, c->tid, bytes);
    return true;
}

/* ---- ending a lease ---- */

static uint64_t kill_from(const struct bh_gate *g, size_t first)
{
    uint64_t killed = 0;
    for (size_t i = first; i < g->remote.processes.n; i++)
        killed += syscall(SYS_pidfd_send_signal, g->remote.processes.at[i]->pidfd, SIGKILL, NULL, 0) == 0;
    return killed;
}

/* Also those who never asked for anything, and hold the files of one that did. */
void bh_gate_end(struct bh_gate *g, const char *why)
{
    /* First those who are known: to find the others takes long where there are many processes with many files. */
    uint64_t killed = kill_from(g, 0);
    const size_t known = g->remote.processes.n;
    (void)syscall(SYS_pidfd_send_signal, g->config->root, SIGKILL, NULL, 0);
    bh_remote_find_holders(&g->remote);
    killed += kill_from(g, known);
    if (g->stats->killed)
        return; /* the first reason is the true one */
    g->stats->killed = killed;
    (void)snprintf(g->stats->why_killed, sizeof(g->stats->why_killed), "%s", why);
}

/* The first GPU on which more is held than may be, or UINT32_MAX. */
static uint32_t over_cap(const struct bh_gate *g, uint64_t *ret_used)
{
    for (uint32_t gpu = 0; gpu < g->n_gpus && gpu < BH_LEDGER_GPUS; gpu++) {
        const struct bh_ledger_sum sum = bh_ledger_sum(g->ledger, gpu);
        *ret_used = sum.used - sum.reserved;
        if (*ret_used > sum.cap)
            return gpu;
    }
    return UINT32_MAX;
}

static void judge(struct bh_gate *g, bool mapped_too_much)
{
    struct bh_unit_text has, cap;
    uint64_t used = 0, unasked = 0;
    const uint32_t gpu = over_cap(g, &used), behind = behind_the_gate(g, &unasked);
    char why[sizeof(g->stats->why_killed)];
    if (gpu == UINT32_MAX && behind == UINT32_MAX && !mapped_too_much) {
        g->over = 0;
        return;
    }
    if (++g->over < OVER_TICKS)
        return;
    if (gpu != UINT32_MAX)
        (void)snprintf(
            why, sizeof(why),
            "the driver counts %s on GPU %u, more than the cap of %s: memory was obtained behind the gate",
            bh_size_format(used, &has), gpu, bh_size_format(g->config->cap_bytes, &cap));
    else if (behind != UINT32_MAX)
        (void)snprintf(
            why, sizeof(why),
            "%s on GPU %u were obtained behind the gate, by a call changed after it was let through",
            bh_size_format(unasked, &has), behind);
    else
        (void)snprintf(
            why, sizeof(why),
            "more managed memory is mapped than the cap of %s allows: it was mapped behind the gate",
            bh_size_format(g->config->cap_bytes, &cap));
    bh_gate_end(g, why);
}

/* After a count. False: the lease was ended, or nobody knows. */
static bool nothing_behind(struct bh_gate *g)
{
    char why[sizeof(g->stats->why_killed)];
    struct bh_unit_text took;
    uint64_t bytes = 0;
    if (g->count_failures)
        return false;
    if (behind_the_gate(g, &bytes) == UINT32_MAX)
        return true;
    (void)snprintf(why, sizeof(why),
                   "%s were obtained behind the gate, by a call changed after it was let through",
                   bh_size_format(bytes, &took));
    bh_gate_end(g, why);
    return false;
}

bool bh_gate_look_behind(struct bh_gate *g)
{
    for (int i = 0; i < COUNT_TRIES && (i == 0 || g->count_failures); i++)
        bh_gate_count(g);
    return nothing_behind(g);
}

/* Does any of the lost files hold memory that somebody could want? Looking for who has them takes long where there
 * are many processes, so the others can wait. */
static bool lost_hold(struct bh_gate *g)
{
    bool any = false;
    for (size_t i = 0; g->remote.n_lost && i < g->remote.files.n && !any; i++)
        any = g->remote.files.at[i].id && !g->remote.files.at[i].refs &&
              bh_proof_holds(&g->proof, g->remote.files.at[i].id);
    return any;
}

bool bh_gate_close_lost(struct bh_gate *g, bool empty_too)
{
    if (!(empty_too || lost_hold(g)) || !bh_remote_find_lost(&g->remote))
        return false;
    (void)bh_gate_look_behind(g);
    bh_remote_close_lost(&g->remote);
    return true;
}

/* ---- time, and processes that come and go ---- */

static void pace(struct bh_gate *g, uint32_t ms)
{
    const struct timespec every = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    const struct itimerspec at = {.it_interval = every, .it_value = every};
    if (ms != g->pace_ms && timerfd_settime(g->timer, 0, &at, NULL) == 0)
        g->pace_ms = ms;
}

static bool is_quiet(const struct bh_gate *g)
{
    return g->idle > IDLE_TICKS;
}

void bh_gate_wake(struct bh_gate *g)
{
    if (g->pace_ms == 0 || is_quiet(g))
        pace(g, g->config->tick_ms);
    g->idle = 0;
}

/* Never slower than that, also where nobody calls: a call that was let through takes effect when its thread gets a processor, or
 * a page, and that may be long after. */
uint32_t bh_gate_pace_ms(uint32_t tick_ms, uint64_t cost_ns, bool quiet, bool over)
{
    const uint64_t tick_ns = (uint64_t)tick_ms * 1000000;
    if (over) /* what is left is the verdict */
        return tick_ms > 1 ? tick_ms / 2 : 1;
    const uint64_t ticks = (cost_ns * COST_PART + tick_ns - 1) / tick_ns;
    return tick_ms * (uint32_t)(quiet || ticks > STRETCH_MAX ? STRETCH_MAX : ticks < 1 ? 1 : ticks);
}

/* While there is doubt, at twice the full pace; else so that it stays a small part of the time. */
static void pace_on(struct bh_gate *g, uint64_t cost_ns)
{
    g->idle = g->over ? 0 : is_quiet(g) ? g->idle : g->idle + 1;
    pace(g, bh_gate_pace_ms(g->config->tick_ms, cost_ns, is_quiet(g), g->over > 0));
}

static bool are_lost_due(struct bh_gate *g, uint64_t now)
{
    return now - g->lost_ns >= (uint64_t)LOST_EVERY * g->config->tick_ms * 1000000 ||
           g->remote.n_lost >= LOST_MAX || g->remote.processes.n == 0 || is_quiet(g) || lost_hold(g);
}

/* What was closed, and proved to be gone, since the last time. */
static void look_around(struct bh_gate *g)
{
    g->remote.age++;
    bh_remote_sweep(&g->remote);
    (void)bh_proof_settle(&g->proof);
    bh_proof_look_again(&g->proof);
}

/* False: more is mapped than may be. */
static bool look_for_mapped(struct bh_gate *g, uint64_t now)
{
    const bool all = g->over || now - g->maps_ns >= MAPS_NS;
    if (all)
        g->maps_ns = now;
    return look_all_mapped(g, all, TICK_LOOKS);
}

void bh_gate_tick(struct bh_gate *g)
{
    const uint64_t began = now_ns();
    g->ticks++;
    const bool whole = !is_quiet(g) || g->over || g->ticks % QUIET_WHOLE == 0;
    if (whole)
        look_around(g);
    const bool mapped_well = look_for_mapped(g, began);
    bh_gate_count(g);
    if (bh_watchdog_bit(g->watchdog))
        bh_gate_end(g, "a process of it kept the warden waiting for its memory");
    judge(g, !mapped_well);
    /* What these hold was open here, and so in this count. */
    if (whole && g->remote.n_lost && are_lost_due(g, began) && bh_remote_find_lost(&g->remote)) {
        g->lost_ns = began;
        (void)nothing_behind(g);
        bh_remote_close_lost(&g->remote);
    }
    pace_on(g, now_ns() - began);
}

void bh_gate_process_new(struct bh_gate *g, struct bh_remote_process *p)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    for (size_t i = g->ghosts.n; i-- > 0;)
        if (g->ghosts.at[i].pid == p->pid)
            ghost_drop(g, i);
    /* Not awaited, its end would be seen by the sweep alone, and by the number being gone. */
    (void)epoll_ctl(g->epoll, EPOLL_CTL_ADD, p->pidfd, &ev);
    bh_watchdog_add(g->watchdog, p->pidfd);
    bh_link_pids_changed(g->link);
}

void bh_gate_process_gone(struct bh_gate *g, struct bh_remote_process *p)
{
    const struct bh_gate_ghost ghost = {p->pid, p->started, fcntl(p->pidfd, F_DUPFD_CLOEXEC, 0)};
    /* By hand: a duplicate keeps it awaited. */
    (void)epoll_ctl(g->epoll, EPOLL_CTL_DEL, p->pidfd, NULL);
    bh_watchdog_remove(g->watchdog, p->pidfd);
    bh_ledger_unmap(g->ledger, p->pid, p->mapped);
    bh_remote_forget(&g->remote, p);
    bh_link_pids_changed(g->link);
    if (g->remote.n_lost)
        bh_gate_wake(g);
    /* Not before: its files are closed with it as a process, and nobody may be counted twice. */
    if (ghost.pidfd >= 0)
        *bh_vec_push(&g->ghosts) = ghost;
}
