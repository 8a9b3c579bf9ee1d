/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm.c - kill -9 and SIGSTOP, thousands of times, at tenants, wardens and launchers on simulated silicon.
 *
 *     storm BULKHEAD SEED FIRST ROUNDS
 *
 * Several leases run at once on one GPU, and one more to which nothing is done. A round picks what is hurt and how from the seed
 * and its own number, so that a round that failed can be had again. Every few rounds all tenants stand still and the
 * driver's own count must be what each of them says it holds; and each lease must be able to take what is left of its
 * cap to the byte, and not a piece more, so the gate's ledger is that count. The bystander must have gone on meanwhile.
 * Everything that is started here becomes a child of this process in the end (it is a subreaper), so what is left over cannot hide.
 */
#include "storm.h"

#include "base/mem.h"
#include "base/units.h"
#include "gpu/abi/rm.h"
#include "simgpu/drv.h"
#include "simgpu/rm/rm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LEASES = 5, /* the first is the bystander */
    BYSTANDER = 0,
    ROUNDS_BETWEEN = 8,
    PATIENCE_MS = 20000,
    LINGER = 6, /* rounds that orphans may live at most */
};
#define CAP (UINT64_C(2) << 30)

struct lease {
    struct storm_page *page;
    pid_t launcher, warden; /* 0: gone, or not seen */
    int alive;              /* hangs up with the last tenant */
    bool hurt;              /* something was done to it */
    unsigned linger;        /* rounds until what outlived the launcher is ended */
    uint64_t steps;         /* of the bystander, at the last look */
};

enum target { WORKER, NEST, GROUP, WARDEN, LAUNCHER, EVERYTHING, TARGETS };
enum way { KILLED, STOPPED, STOPPED_KILLED, WAYS };
static const char *const target_names[] = {"tenant", "first process", "whole group",
                                           "warden", "launcher",      "all at once"};
static const unsigned target_weights[] = {60, 4, 7, 15, 9, 5};

static struct {
    const char *bulkhead;
    uint64_t seed, round;
    struct lease leases[LEASES];
    uint32_t pauses;
    unsigned done[TARGETS][WAYS];
    unsigned started, looks, probes, late, gate_gone, orphans;
    bool bad;
} s;

static void bad(const char *fmt, ...) BH_PRINTF(1, 2);
static void bad(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("round %llu, seed %llu: ", (unsigned long long)s.round, (unsigned long long)s.seed);
    (void)vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    s.bad = true;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- processes ---- */

struct stat_line {
    char state; /* 0: there is no such process */
    uint32_t parent;
};

/* `12 (name) S 1 ...`; a name may hold anything, so from the last bracket on. */
static struct stat_line stat_of(uint32_t pid)
{
    char path[40], text[512], word[16] = {0};
    struct stat_line ret = {0};
    uint64_t parent;
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    const int fd = pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    if (!end || strlen(end) < 5)
        return ret;
    ret.state = end[2];
    for (size_t i = 0; i + 1 < sizeof(word) && end[4 + i] && end[4 + i] != ' '; i++)
        word[i] = end[4 + i];
    if (bh_uint_parse(word, UINT32_MAX, &parent, NULL) == BH_OK)
        ret.parent = (uint32_t)parent;
    return ret;
}

static bool is_alive(uint32_t pid)
{
    const char state = stat_of(pid).state;
    return state != 0 && state != 'Z' && state != 'X';
}

/* Numbers are used again: only what is still a child of this lease, or of ours, is meant. -1: there is no such. */
static int hold_process(const struct lease *l, uint32_t pid)
{
    const int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    const uint32_t parent = fd >= 0 ? stat_of(pid).parent : 0;
    if (parent && (parent == (uint32_t)getpid() || parent == (uint32_t)l->launcher ||
                   parent == atomic_load(&l->page->nest)))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The child of the launcher that is not the first tenant. With the launcher gone: the one that was seen last. */
static uint32_t warden_of(struct lease *l)
{
    char path[64], text[256];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", l->launcher, l->launcher);
    FILE *f = l->launcher ? fopen(path, "re") : NULL;
    if (f && fgets(text, sizeof(text), f))
        for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
            uint64_t pid;
            *end = '\0';
            if (bh_uint_parse(at, UINT32_MAX, &pid, NULL) == BH_OK && pid != atomic_load(&l->page->nest))
                l->warden = (pid_t)pid;
        }
    if (f)
        fclose(f);
    return (uint32_t)l->warden;
}

/* ---- leases ---- */

static _Noreturn void be_launcher(int page, int alive, bool stats)
{
    char self[] = "/proc/self/exe", verb[] = "run", memory[] = "--memory", cap[] = "2GiB", tick[] = "--tick",
         ms[] = "5", stats_word[] = "--stats", quiet[] = "--", nest[] = "nest", name[] = "bulkhead";
    char path[4096];
    char *argv[12] = {name, verb, memory, cap, tick, ms};
    size_t n = 6;
    const ssize_t length = readlink(self, path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    if (stats)
        argv[n++] = stats_word;
    argv[n++] = quiet;
    argv[n++] = path;
    argv[n++] = nest;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Both may stand where the other goes. */
    page = fcntl(page, F_DUPFD, STORM_PAGE_FD + 1);
    alive = fcntl(alive, F_DUPFD, STORM_PAGE_FD + 1);
    if (dup2(page, STORM_PAGE_FD) < 0 || dup2(alive, STORM_ALIVE_FD) < 0)
        _exit(STORM_FAILED);
    (void)close_range(STORM_PAGE_FD + 1, UINT32_MAX, 0);
    execv(s.bulkhead, argv);
    _exit(STORM_FAILED);
}

static void start_lease(struct lease *l, uint64_t seed)
{
    int alive[2];
    const int fd = memfd_create("storm", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(*l->page)) < 0 || pipe2(alive, O_CLOEXEC) < 0)
        abort();
    *l = (struct lease){.alive = alive[0]};
    l->page = mmap(NULL, sizeof(*l->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (l->page == MAP_FAILED)
        abort();
    l->page->cap_bytes = CAP;
    l->page->seed = seed;
    l->page->storm = (uint32_t)getpid();
    (void)fflush(stdout);
    l->launcher = fork();
    if (l->launcher == 0)
        be_launcher(fd, alive[1], l == &s.leases[BYSTANDER]);
    if (l->launcher < 0)
        abort();
    close(fd);
    close(alive[1]);
    s.started++;
}

static bool tenants_left(const struct lease *l)
{
    struct pollfd at = {.fd = l->alive, .events = POLLIN};
    return poll(&at, 1, 0) == 0;
}

/* What a tenant found wrong is read before the page goes. */
static void take_failures(const struct lease *l)
{
    for (size_t i = 0; i < STORM_WORKERS; i++) {
        const struct storm_worker *t = &l->page->workers[i];
        if (atomic_load(&t->failed_line))
            bad("lease %d: a tenant failed in line %u of storm_tenant.c with 0x%x", (int)(l - s.leases),
                atomic_load(&t->failed_line), atomic_load(&t->failed_with));
    }
    s.gate_gone += atomic_load(&l->page->gate_gone);
}

static void reap(void);
static void kill_tenants(struct lease *l);

static void end_lease(struct lease *l)
{
    for (const uint64_t end = now_ms() + PATIENCE_MS; l->launcher || tenants_left(l);) {
        if (now_ms() > end) {
            bad("lease %d: its processes do not end", (int)(l - s.leases));
            break;
        }
        kill_tenants(l);
        reap();
        (void)usleep(200);
    }
    take_failures(l);
    (void)munmap(l->page, sizeof(*l->page));
    close(l->alive);
    *l = (struct lease){.alive = -1};
}

static void launcher_ended(struct lease *l, int status)
{
    const bool calm = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == STORM_NO_GATE);
    if (!l->hurt && !(calm && atomic_load(&l->page->quit)))
        bad("lease %d: its launcher ended with 0x%x, and nobody had touched it", (int)(l - s.leases),
            (unsigned)status);
    l->launcher = 0;
    l->linger = 1 + (unsigned)(s.round * 7 % LINGER);
    if (tenants_left(l))
        s.orphans++;
}

/* Whoever ended: a launcher, or an orphan of one that did. */
static void reap(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < LEASES; i++) {
            struct lease *l = &s.leases[i];
            if (l->page && l->launcher == pid)
                launcher_ended(l, status);
            if (l->page && l->warden == pid)
                l->warden = 0;
        }
}

static void tend(uint64_t *random)
{
    reap();
    for (size_t i = 0; i < LEASES; i++) {
        struct lease *l = &s.leases[i];
        if (l->page && !l->launcher && (!tenants_left(l) || --l->linger == 0))
            end_lease(l);
        if (!l->page)
            start_lease(l, storm_random(random));
    }
}

/* ---- one round ---- */

/* Held before the first is hit: the second signal goes to the same ones, whoever took their place meanwhile. */
struct victims {
    int fds[STORM_WORKERS + 3];
    size_t n;
};

static void add_victim(struct victims *v, const struct lease *l, uint32_t pid)
{
    const int fd = hold_process(l, pid);
    if (fd >= 0)
        v->fds[v->n++] = fd;
}

static struct victims find_victims(struct lease *l, enum target target, size_t which)
{
    const bool all = target == EVERYTHING, group = target == GROUP || all;
    struct victims v = {.n = 0};
    if (target == NEST || group)
        add_victim(&v, l, atomic_load(&l->page->nest));
    for (size_t i = 0; i < STORM_WORKERS; i++)
        if (group || (target == WORKER && i == which))
            add_victim(&v, l, atomic_load(&l->page->workers[i].pid));
    if (target == WARDEN || all)
        add_victim(&v, l, warden_of(l));
    if (target == LAUNCHER || all)
        add_victim(&v, l, (uint32_t)l->launcher);
    return v;
}

static bool hit(const struct victims *v, int signal)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += syscall(SYS_pidfd_send_signal, v->fds[i], signal, NULL, 0) == 0;
    return n > 0;
}

static void let_go(struct victims *v)
{
    while (v->n)
        close(v->fds[--v->n]);
}

static void kill_tenants(struct lease *l)
{
    struct victims v = find_victims(l, GROUP, 0);
    (void)hit(&v, SIGKILL);
    let_go(&v);
}

/* False: there is no such process in this lease now, or it was going. */
static bool hurt(struct lease *l, enum target target, enum way way, uint64_t random)
{
    struct victims v = find_victims(l, target, random % STORM_WORKERS);
    const bool good = hit(&v, way == KILLED ? SIGKILL : SIGSTOP);
    if (good && way != KILLED) {
        (void)usleep((useconds_t)(random / STORM_WORKERS % 3000));
        (void)hit(&v, way == STOPPED ? SIGCONT : SIGKILL);
    }
    let_go(&v);
    l->hurt = l->hurt || good;
    s.done[target][way] += good;
    return good;
}

static void tend(uint64_t *random);

/* In the first lease from there on that has one; leases are beginning all the time. */
static void hurt_one(uint64_t *random)
{
    const uint64_t end = now_ms() + PATIENCE_MS;
    unsigned at = (unsigned)(storm_random(random) % 100);
    size_t target = 0;
    while (at >= target_weights[target])
        at -= target_weights[target++];
    const enum way way = (enum way)(storm_random(random) % WAYS);
    const size_t first = storm_random(random) % (LEASES - 1);
    const uint64_t rest = storm_random(random);
    while (now_ms() < end) {
        for (size_t i = 0; i < LEASES - 1; i++)
            if (hurt(&s.leases[1 + (first + i) % (LEASES - 1)], (enum target)target, way, rest))
                return;
        (void)usleep(500);
        tend(random);
    }
    bad("no lease has a %s any more", target_names[target]);
}

static void one_round(uint64_t round)
{
    uint64_t random = s.seed ^ round * UINT64_C(0xd1342543de82ef95);
    s.round = round;
    tend(&random);
    (void)usleep((useconds_t)(storm_random(&random) % 2500));
    const bool two = storm_random(&random) % 8 == 0;
    hurt_one(&random);
    if (two)
        hurt_one(&random);
}

/* ---- looking ---- */

/* All that live stand still; one that died or is being born is waited for. */
static void stand_still(void)
{
    const uint64_t end = now_ms() + PATIENCE_MS;
    s.pauses++;
    for (size_t i = 0; i < LEASES; i++)
        if (s.leases[i].page)
            atomic_store(&s.leases[i].page->pause, s.pauses);
    for (size_t i = 0; i < LEASES; i++)
        for (size_t k = 0; s.leases[i].page && k < STORM_WORKERS; k++) {
            struct storm_worker *t = &s.leases[i].page->workers[k];
            for (uint32_t pid;
                 (pid = atomic_load(&t->pid)) && atomic_load(&t->ack) != s.pauses && is_alive(pid);) {
                if (now_ms() > end) {
                    bad("lease %zu: tenant %u does not answer (state %c)", i, pid, stat_of(pid).state);
                    return;
                }
                (void)usleep(100);
                reap();
            }
        }
}

static void go_on(void)
{
    for (size_t i = 0; i < LEASES; i++)
        if (s.leases[i].page)
            atomic_store(&s.leases[i].page->pause, 0);
}

static struct storm_worker *tenant_of(uint32_t pid)
{
    for (size_t i = 0; i < LEASES; i++)
        for (size_t k = 0; s.leases[i].page && k < STORM_WORKERS; k++)
            if (atomic_load(&s.leases[i].page->workers[k].pid) == pid)
                return &s.leases[i].page->workers[k];
    return NULL;
}

static void say_difference(const struct bh_sim_process_view *p, const struct storm_worker *t, char *ret,
                           size_t n)
{
    char path[40], name[32] = "gone";
    (void)snprintf(path, sizeof(path), "/proc/%u/comm", p->pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(name, sizeof(name), f))
        name[strcspn(name, "\n")] = '\0';
    if (f)
        fclose(f);
    (void)snprintf(ret, n, "the driver counts %llu bytes for process %u (%s, %s), which says %llu",
                   (unsigned long long)p->bytes, p->pid, name, t ? "a tenant" : "no tenant of a lease here",
                   t ? (unsigned long long)atomic_load(&t->held) : 0);
}

/* The driver's count against what tenants say. ret_said: the first difference. */
static bool agrees(char *ret_said, size_t n_said)
{
    struct bh_sim_gpu_view *v = bh_alloc(1, sizeof(*v));
    uint64_t counted = 0, said = 0;
    bool good = bh_sim_view(0, v) == 0;
    for (uint32_t i = 0; good && i < v->n_processes; i++) {
        const struct storm_worker *t = tenant_of(v->processes[i].pid);
        good = t && is_alive(v->processes[i].pid) && atomic_load(&t->held) == v->processes[i].bytes;
        counted += v->processes[i].bytes;
        if (!good)
            say_difference(&v->processes[i], t, ret_said, n_said);
    }
    free(v);
    for (size_t i = 0; i < LEASES; i++)
        for (size_t k = 0; s.leases[i].page && k < STORM_WORKERS; k++)
            if (is_alive(atomic_load(&s.leases[i].page->workers[k].pid)))
                said += atomic_load(&s.leases[i].page->workers[k].held);
    if (good && counted != said)
        (void)snprintf(ret_said, n_said, "the driver counts %llu bytes, the tenants say %llu",
                       (unsigned long long)counted, (unsigned long long)said);
    return good && counted == said;
}

/* Files of the dead are closed a moment after them. */
static void compare(void)
{
    char said[200] = "the node does not answer";
    for (const uint64_t end = now_ms() + PATIENCE_MS; !agrees(said, sizeof(said));) {
        if (now_ms() > end) {
            bad("%s", said);
            return;
        }
        reap();
        (void)usleep(500);
    }
}

/* One who lives is asked; 0: nobody does. */
static uint32_t ask_probe(struct lease *l, uint64_t *ret_bytes)
{
    uint64_t held = 0;
    uint32_t who = 0;
    for (size_t k = 0; k < STORM_WORKERS; k++) {
        struct storm_worker *t = &l->page->workers[k];
        const uint32_t pid = atomic_load(&t->pid);
        if (!is_alive(pid))
            continue;
        held += atomic_load(&t->held) + atomic_load(&t->mapped);
        who = atomic_load(&t->ack) == s.pauses ? pid : who;
    }
    *ret_bytes = CAP - held;
    if (who) {
        atomic_store(&l->page->probe.bytes, *ret_bytes);
        atomic_store(&l->page->probe.to, who);
    }
    return who;
}

/*
 * Managed memory is mapped by the tenant itself, a moment after it was granted: what was unmapped just now the gate may take
 * for what is about to be mapped, and what was mapped late (a tenant was stopped in between) it sees at its next look. So
 * it is asked again for a while; what is left of the cap must then be right to the byte.
 */
static void probe(struct lease *l)
{
    const uint64_t end = now_ms() + PATIENCE_MS;
    for (;;) {
        uint64_t bytes;
        const uint32_t who = ask_probe(l, &bytes);
        while (who && atomic_load(&l->page->probe.to) && is_alive(who) && now_ms() < end)
            (void)usleep(100);
        if (!who || !is_alive(who))
            return; /* no gate: it has left */
        const uint32_t fits = atomic_load(&l->page->probe.fits), more = atomic_load(&l->page->probe.one_more);
        const bool answered = !atomic_load(&l->page->probe.to);
        s.probes++;
        if (answered && fits == RM_OK && more == RM_NO_MEMORY)
            return;
        if (now_ms() > end) {
            bad("lease %d: %llu bytes are left of the cap; asking for them came to %d, 0x%x, for more to 0x%x",
                (int)(l - s.leases), (unsigned long long)bytes, (int)answered, fits, more);
            return;
        }
        s.late++;
        (void)usleep(2000);
    }
}

/* Nothing was done to it; where processors are scarce it may not have had one since the last look. */
static void bystander_goes_on(void)
{
    struct lease *by = &s.leases[BYSTANDER];
    const uint64_t end = now_ms() + PATIENCE_MS;
    uint64_t steps;
    do {
        steps = 0;
        for (size_t k = 0; k < STORM_WORKERS; k++)
            steps += atomic_load(&by->page->workers[k].steps);
    } while (by->launcher && steps == by->steps && now_ms() < end && usleep(100) == 0);
    if (!by->launcher || steps == by->steps)
        bad("the bystander did not go on: %llu steps", (unsigned long long)steps);
    by->steps = steps;
}

static void look(void)
{
    bystander_goes_on();
    stand_still();
    if (!s.bad)
        compare();
    for (size_t i = 0; i < LEASES && !s.bad; i++)
        if (s.leases[i].page)
            probe(&s.leases[i]);
    s.looks++;
    go_on();
}

/* ---- the whole ---- */

/* It is to be seen going on, so it has to have begun. */
static void await_bystander(void)
{
    for (const uint64_t end = now_ms() + PATIENCE_MS; now_ms() < end; (void)usleep(1000)) {
        size_t at_work = 0;
        for (size_t k = 0; k < STORM_WORKERS; k++)
            at_work += atomic_load(&s.leases[BYSTANDER].page->workers[k].steps) > 0;
        if (at_work == STORM_WORKERS)
            return;
    }
    bad("the bystander does not begin");
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Everybody is asked to end; those that nothing was done to must do so by themselves. */
static void end_all(void)
{
    const uint64_t end = now_ms() + PATIENCE_MS;
    for (size_t i = 0; i < LEASES; i++)
        if (s.leases[i].page)
            atomic_store(&s.leases[i].page->quit, 1);
    for (size_t i = 0; i < LEASES; i++) {
        struct lease *l = &s.leases[i];
        for (; l->page && l->launcher && now_ms() < end; (void)usleep(1000))
            reap();
        if (l->page && l->launcher && !l->hurt)
            bad("lease %zu does not end", i);
        l->hurt = true;
        if (l->page)
            end_lease(l);
    }
    int rc = 0;
    while ((rc = (int)waitpid(-1, NULL, WNOHANG)) >= 0 && now_ms() < end)
        (void)usleep(1000);
    if (rc >= 0)
        bad("a process is left over");
}

static void check_nothing_held(void)
{
    static const struct bh_sim_held none;
    struct bh_sim_held held = {0};
    for (const uint64_t end = now_ms() + PATIENCE_MS; now_ms() < end; (void)usleep(2000)) {
        struct bh_sim_msg m = {.op = BH_SIM_OP_HELD};
        memset(&held, 0xff, sizeof(held));
        if (bh_sim_call(&m, &held, sizeof(held), -1, NULL) == 0 && memcmp(&held, &none, sizeof(held)) == 0)
            return;
    }
    bad("the node still holds %llu files, %llu clients, %llu bytes", (unsigned long long)held.files,
        (unsigned long long)held.clients, (unsigned long long)held.bytes);
}

static void say_table(uint64_t rounds, uint64_t ms)
{
    printf("seed %llu\nrounds %llu\nseconds %llu\n", (unsigned long long)s.seed, (unsigned long long)rounds,
           (unsigned long long)ms / 1000);
    printf("%-14s %8s %16s %16s\n", "what", "kill -9", "SIGSTOP, CONT", "SIGSTOP, kill -9");
    for (size_t i = 0; i < TARGETS; i++)
        printf("%-14s %8u %16u %16u\n", target_names[i], s.done[i][KILLED], s.done[i][STOPPED],
               s.done[i][STOPPED_KILLED]);
    printf("leases started %u\nleases that outlived their launcher %u\n"
           "leases without a gate %u\nlooks %u\nprobes of the cap %u\nof these asked again %u\nleft %s\n",
           s.started, s.orphans, s.gate_gone, s.looks, s.probes, s.late, s.bad ? "see above" : "nothing");
}

static bool number(const char *text, uint64_t *ret)
{
    return bh_uint_parse(text, UINT64_MAX, ret, NULL) == BH_OK;
}

int main(int argc, char **argv)
{
    uint64_t first, rounds;
    if (argc == 2 && strcmp(argv[1], "nest") == 0)
        _exit(storm_nest());
    if (argc != 5 || !number(argv[2], &s.seed) || !number(argv[3], &first) || !number(argv[4], &rounds)) {
        fprintf(stderr, "usage: storm BULKHEAD SEED FIRST ROUNDS\n");
        return 2;
    }
    s.bulkhead = argv[1];
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    const uint64_t begun = now_ms();
    uint64_t random = s.seed;
    check_nothing_held(); /* also makes the connection, which stays open */
    const size_t files = open_files();
    tend(&random);
    await_bystander();
    for (uint64_t i = 0; i < rounds && !s.bad; i++) {
        one_round(first + i);
        if (i % ROUNDS_BETWEEN == ROUNDS_BETWEEN - 1 || i + 1 == rounds)
            look();
    }
    end_all();
    check_nothing_held();
    if (open_files() != files)
        bad("%zu descriptors are open here, %zu at the start", open_files(), files);
    say_table(rounds, now_ms() - begun);
    return s.bad;
}
