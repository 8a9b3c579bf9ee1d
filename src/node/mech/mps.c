/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps.c - MPS servers: one for each trust domain, pool, set of cards and user, while somebody works there.
 *
 * A fault of one client ends all clients of its server, so nobody shares one with whom he does not share a trust domain and a pool
 * anyway. A control daemon serves the clients of one user at a time, hence the user. Each is kept by a keeper of its own
 * (launch/keeper.h): it outlives this daemon, is found again by its number, and its end is seen. It is written down (a note)
 * before it is started, and forgotten when it has ended.
 */
#include "host/mps.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "launch/keeper.h"
#include "node/mech/clear.h"
#include "node/mech/inside.h"
#include "node/note.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { START_MS = 10000, GRACE_MS = 5000, KILL_MS = 2000, FIELDS = 5 };

/* ---- where one is ---- */

static struct bh_mps parts_of(const struct bh_daemon *d, uint64_t number, uint32_t uid, uint32_t gid,
                              struct bh_arena *arena)
{
    const unsigned long long n = number;
    return (struct bh_mps){.program = d->mps,
                           .pipes = bh_arena_printf(arena, "%s/%llu.pipes", d->servers_dir, n),
                           .logs = bh_arena_printf(arena, "%s/%llu.logs", d->servers_dir, n),
                           .uid = uid,
                           .gid = gid};
}

static struct bh_keeper_place place_of(const struct bh_daemon *d, uint64_t number, struct bh_arena *arena)
{
    return (struct bh_keeper_place){
        .folder = bh_arena_printf(arena, "%s/mps/%llu", d->opt.state_dir, (unsigned long long)number),
        .run_dir = d->servers_dir,
        .lease = number};
}

static const char *cgroup_of(const struct bh_daemon *d, uint64_t number, struct bh_arena *arena)
{
    return bh_arena_printf(arena, "%s/M%llu", d->cgroup, (unsigned long long)number);
}

static const char *note_of(uint64_t number, struct bh_arena *arena)
{
    return bh_arena_printf(arena, "mps/%llu", (unsigned long long)number);
}

int bh_mech_find(struct bh_daemon *d, struct bh_err *err)
{
    char kept[4096];
    struct bh_err none;
    if (bh_mps_find(d->mps, sizeof(d->mps), &none) < 0)
        d->mps[0] = '\0';
    (void)snprintf(d->servers_dir, sizeof(d->servers_dir), "%s/mps", d->opt.run_dir);
    (void)snprintf(kept, sizeof(kept), "%s/mps", d->opt.state_dir);
    if ((mkdir(d->servers_dir, 0711) < 0 && errno != EEXIST) || (mkdir(kept, 0700) < 0 && errno != EEXIST))
        return bh_fail(err, BH_SYSTEM, "%.200s: %s", d->servers_dir, strerror(errno));
    return BH_OK;
}

/* ---- which one ---- */

static struct bh_made_server *by_number(const struct bh_daemon *d, uint64_t number)
{
    for (size_t i = 0; i < d->servers.n; i++)
        if (d->servers.at[i]->number == number && !d->servers.at[i]->gone)
            return d->servers.at[i];
    return NULL;
}

static void list_gpus(const bh_store_grants *grants, char ret[1600])
{
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < grants->n && n < 1600; i++)
        n += (size_t)snprintf(ret + n, 1600 - n, "%s%s", i ? "," : "", grants->at[i].slice.gpu);
}

/* The one that a lease's row and cards name; NULL: there is none. */
static struct bh_made_server *find(const struct bh_daemon *d, const struct bh_store_lease *row,
                                   const char *gpus)
{
    for (size_t i = 0; i < d->servers.n; i++) {
        struct bh_made_server *s = d->servers.at[i];
        if (!s->stopping && !s->gone && s->uid == row->uid && bh_str_eq(s->domain, row->domain) &&
            bh_str_eq(s->pool, row->pool) && bh_str_eq(s->gpus, gpus))
            return s;
    }
    return NULL;
}

static struct bh_made_server *add(struct bh_daemon *d, uint64_t number)
{
    struct bh_made_server *s = bh_alloc(1, sizeof(*s));
    *s = (struct bh_made_server){.of = d, .number = number};
    *bh_vec_push(&d->servers) = s;
    return s;
}

/* A number that was never used, and what it stands for, durable. */
static int write_new(struct bh_daemon *d, const struct bh_store_lease *row, const char *gpus,
                     struct bh_arena *arena, struct bh_made_server **ret, struct bh_err *err)
{
    static const char counter[] = "mps-last";
    struct bh_store_note note;
    uint64_t last = 0;
    int rc = bh_life_begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_store_note_get(d->store, arena, counter, &note, err);
    if (rc == BH_OK)
        rc = bh_uint_parse(note.value, UINT64_MAX - 1, &last, err);
    else if (rc == BH_NOT_FOUND)
        rc = BH_OK;
    if (rc == BH_OK)
        rc = bh_store_note_set_text(d->store, counter,
                                    bh_arena_printf(arena, "%llu", (unsigned long long)last + 1), err);
    if (rc == BH_OK)
        rc = bh_store_note_set_text(
            d->store, note_of(last + 1, arena),
            bh_arena_printf(arena, "%u\n%u\n%s\n%s\n%s", row->uid, row->gid, row->domain, row->pool, gpus),
            err);
    if (rc == BH_OK)
        rc = bh_note_mps(d, BH_AUDIT_MPS_START, last + 1, gpus, err);
    rc = bh_life_end(d, rc, err);
    if (rc < 0)
        return rc;
    struct bh_made_server *s = *ret = add(d, last + 1);
    s->uid = row->uid;
    s->gid = row->gid;
    (void)snprintf(s->domain, sizeof(s->domain), "%s", row->domain);
    (void)snprintf(s->pool, sizeof(s->pool), "%s", row->pool);
    (void)snprintf(s->gpus, sizeof(s->gpus), "%s", gpus);
    return BH_OK;
}

/* What nobody in the pool may exceed. */
static void add_most(const struct bh_daemon *d, const char *pool, struct bh_mech_server *ret)
{
    for (size_t i = 0; d->book.policy && i < d->book.policy->pools.n; i++) {
        const struct bh_pool *p = &d->book.policy->pools.at[i];
        if (!bh_str_eq(p->name, pool))
            continue;
        ret->most_percent = p->cap_compute_ppm / 10000;
        ret->most_mib = p->cap_memory_bytes / BH_MIB;
    }
}

int bh_mech_mps_next(struct bh_daemon *d, struct bh_life *run, const bh_store_grants *grants,
                     struct bh_mech_server *ret, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_lease row;
    struct bh_made_server *s = NULL;
    char gpus[1600];
    if (run->terms.mechanism != BH_MECH_MPS)
        return bh_fail(err, BH_NOT_FOUND, "it needs no server");
    if (run->terms.tier != BH_TIER_PROCESS)
        return bh_fail(err, BH_REFUSED,
                       "MPS shares memory between processes, which a container of a lease keeps apart: use a "
                       "pool of tier process");
    list_gpus(grants, gpus);
    int rc = bh_store_lease_get(d->store, &arena, run->lease, &row, err);
    if (rc == BH_OK) {
        s = find(d, &row, gpus);
        rc = s ? BH_OK : write_new(d, &row, gpus, &arena, &s, err);
    }
    if (rc == BH_OK) {
        run->server = s->number;
        *ret = (struct bh_mech_server){.number = s->number, .of = d, .uid = s->uid, .gid = s->gid};
        (void)snprintf(ret->gpus, sizeof(ret->gpus), "%s", gpus);
        add_most(d, s->pool, ret);
        if (s->up)
            rc = bh_fail(err, BH_NOT_FOUND, "its server runs");
    }
    bh_arena_fini(&arena);
    return rc;
}

/* ---- starting, in a worker ---- */

static size_t count_gpus(const char *gpus)
{
    size_t n = *gpus != '\0';
    for (; *gpus; gpus++)
        n += *gpus == ',';
    return n;
}

/* The nodes of its cards and of no others. */
static size_t add_devices(const struct bh_mech_server *s, struct bh_arena *arena,
                          struct bh_keeper_device **ret)
{
    const struct bh_gpu_snapshot *all = &s->of->silicon.snapshot;
    const char *paths[BH_NODE_GPUS + 2] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    size_t n = 2, found = 0;
    for (size_t i = 0; i < all->devices.n && n < BH_COUNT_OF(paths); i++)
        if (all->devices.at[i].uuid && strstr(s->gpus, all->devices.at[i].uuid) &&
            all->devices.at[i].minor >= 0)
            paths[n++] = bh_arena_printf(arena, "/dev/nvidia%d", all->devices.at[i].minor);
    *ret = bh_arena_alloc(arena, n * sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        char host[BH_SYSPATH_MAX];
        struct stat st;
        if (bh_syspath(host, paths[i]) && stat(host, &st) == 0 && S_ISCHR(st.st_mode))
            (*ret)[found++] =
                (struct bh_keeper_device){.major = major(st.st_rdev), .minor = minor(st.st_rdev)};
    }
    return found;
}

static int start_keeper(const struct bh_mech_server *s, const struct bh_mps *m, struct bh_arena *arena,
                        struct bh_err *err)
{
    struct bh_keeper_device *devices;
    const size_t n_devices = add_devices(s, arena, &devices);
    const char *const argv[] = {m->program, "-f", NULL};
    const char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                               bh_arena_printf(arena, "CUDA_MPS_PIPE_DIRECTORY=%s", m->pipes),
                               bh_arena_printf(arena, "CUDA_MPS_LOG_DIRECTORY=%s", m->logs),
                               bh_arena_printf(arena, "CUDA_VISIBLE_DEVICES=%s", s->gpus), NULL};
    const struct bh_keeper_spec spec = {
        .lease = s->number,
        .run_dir = s->of->servers_dir,
        .cgroup = cgroup_of(s->of, s->number, arena),
        .grace_ms = GRACE_MS,
        .uid = s->uid,
        .gid = s->gid,
        .argv = argv,
        .env = env,
        .limits = {.devices_held = s->of->has_cgroups, .devices = devices, .n_devices = n_devices}};
    const struct bh_keeper_place at = place_of(s->of, s->number, arena);
    int fd = -1;
    int rc = bh_keeper_prepare(&at, &spec, err);
    if (rc == BH_OK)
        rc = bh_keeper_start(s->of->keeper, &at, &fd, err);
    if (rc < 0)
        return rc;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, START_MS) != 1) {
        close(fd);
        return bh_fail(err, BH_BUSY, "the keeper of the MPS server does not answer");
    }
    rc = bh_keeper_started(fd, err);
    return rc == BH_CONFLICT ? BH_OK : rc; /* the worker of another lease was as fast */
}

void bh_mech_mps_work(const struct bh_mech_server *s, struct bh_worker_result *ret)
{
    struct bh_arena arena = {0};
    struct bh_err err = {0};
    const struct bh_mps m = parts_of(s->of, s->number, s->uid, s->gid, &arena);
    struct bh_mps_share most = {.thread_percent = s->most_percent, .n_gpus = count_gpus(s->gpus)};
    for (size_t i = 0; i < most.n_gpus && i < BH_MPS_GPUS_MAX; i++)
        most.mib[i] = s->most_mib;
    ret->code = bh_mps_folders(&m, &err);
    if (ret->code == BH_OK)
        ret->code = start_keeper(s, &m, &arena, &err);
    if (ret->code == BH_OK)
        ret->code = bh_mps_wait(&m, START_MS, &err);
    if (ret->code == BH_OK)
        ret->code = bh_mps_limit(&m, &most, &err);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
    bh_arena_fini(&arena);
}

/* ---- ending ---- */

static bool is_used(const struct bh_daemon *d, const struct bh_made_server *s)
{
    for (size_t i = 0; i < d->runs.n; i++)
        if (d->runs.at[i]->server == s->number && bh_lease_holds_slices(d->runs.at[i]->state) &&
            d->runs.at[i]->state != BH_LEASE_SCRUBBING && d->runs.at[i]->state != BH_LEASE_QUARANTINED)
            return true;
    return false;
}

bool bh_mech_gone(const struct bh_daemon *d, const struct bh_life *run)
{
    const struct bh_made_server *s = run->server ? by_number(d, run->server) : NULL;
    return !s || is_used(d, s);
}

/* It cannot go on without its server. */
static void fail(struct bh_daemon *d, struct bh_life *run)
{
    enum bh_lease_state to;
    const enum bh_lease_cause cause =
        bh_lease_next(run->state, BH_LEASE_BY_FAULT, &to) ? BH_LEASE_BY_FAULT : BH_LEASE_BY_BREAK;
    if (bh_life_leave(d, run, BH_AFTER_FAILED, cause, "the MPS server that it worked through is gone"))
        bh_clear_begin(d, run);
}

static void fail_users(struct bh_daemon *d, const struct bh_made_server *s)
{
    for (size_t i = d->runs.n; i-- > 0;) {
        struct bh_life *run = d->runs.at[i];
        if (run->server == s->number && (run->state == BH_LEASE_PREPARING || run->state == BH_LEASE_ACTIVE))
            fail(d, run);
    }
}

static int write_gone(struct bh_daemon *d, const struct bh_made_server *s, struct bh_arena *arena,
                      struct bh_err *err)
{
    int rc = bh_life_begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_store_note_remove(d->store, note_of(s->number, arena), err);
    if (rc == BH_OK)
        rc = bh_note_mps(d, BH_AUDIT_MPS_STOP, s->number, s->gpus, err);
    return bh_life_end(d, rc, err);
}

static void drop(struct bh_daemon *d, struct bh_made_server *s)
{
    for (size_t i = 0; i < d->servers.n; i++)
        if (d->servers.at[i] == s) {
            d->servers.at[i] = d->servers.at[--d->servers.n];
            break;
        }
    free(s);
}

/* Nothing of it is left but its note. Where that cannot be written it stays, and the next tick tries again. */
static void bury(struct bh_daemon *d, struct bh_made_server *s)
{
    struct bh_arena arena = {0};
    struct bh_err err;
    const int rc = write_gone(d, s, &arena, &err);
    if (rc < 0 && !s->gone)
        bh_daemon_say(d, "MPS server M%llu: %s", (unsigned long long)s->number, err.msg);
    s->gone = true;
    if (rc == BH_OK)
        drop(d, s);
    bh_arena_fini(&arena);
}

static void forget(struct bh_daemon *d, struct bh_made_server *s)
{
    struct bh_arena arena = {0};
    struct bh_err err;
    const struct bh_mps m = parts_of(d, s->number, s->uid, s->gid, &arena);
    const struct bh_keeper_place at = place_of(d, s->number, &arena);
    const char *group = cgroup_of(d, s->number, &arena);
    int rc = d->has_cgroups ? bh_cgroup_kill(&d->cgroups, group, KILL_MS, &err) : BH_OK;
    if (rc == BH_OK && d->has_cgroups)
        rc = bh_cgroup_remove(&d->cgroups, group, &err);
    bh_keeper_vanish(&at);
    bh_mps_remove(m.pipes);
    bh_mps_remove(m.logs);
    if (s->stopping) /* of one that died, its words are kept */
        bh_mps_remove(at.folder);
    bh_arena_fini(&arena);
    s->source = sd_event_source_disable_unref(s->source);
    if (rc == BH_OK) {
        bury(d, s);
        return;
    }
    /* the next start takes it up again */
    bh_daemon_say(d, "MPS server M%llu: %s", (unsigned long long)s->number, err.msg);
    drop(d, s);
}

static int on_end(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_made_server *s = arg;
    struct bh_daemon *d = s->of;
    (void)source;
    (void)fd;
    (void)events;
    if (!s->stopping)
        bh_daemon_say(d, "MPS server M%llu of pool %s has ended, and with it its work",
                      (unsigned long long)s->number, s->pool);
    fail_users(d, s);
    forget(d, s);
    return 0;
}

/* BH_NOT_FOUND: nobody keeps it. */
static int watch(struct bh_daemon *d, struct bh_made_server *s, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_keeper_look look;
    const struct bh_keeper_place at = place_of(d, s->number, &arena);
    int rc = bh_keeper_look(&at, &look, err);
    bh_arena_fini(&arena);
    if (rc == BH_OK && look.found != BH_KEEPER_LIVES)
        rc = bh_fail(err, BH_NOT_FOUND, "the MPS server ended as soon as it had begun");
    if (rc < 0)
        return rc;
    if (sd_event_add_io(d->loop, &s->source, look.pidfd, EPOLLIN, on_end, s) < 0 ||
        sd_event_source_set_io_fd_own(s->source, 1) < 0) {
        close(look.pidfd);
        return bh_fail(err, BH_SYSTEM, "the loop takes no more");
    }
    s->up = true;
    return BH_OK;
}

/* After a restart. What cannot be known takes nobody's server away. */
static void find_again(struct bh_daemon *d, struct bh_made_server *s)
{
    struct bh_err err;
    const int rc = watch(d, s, &err);
    const bool unsure = rc < 0 && rc != BH_NOT_FOUND && rc != BH_INVALID;
    if (unsure && !s->unsure)
        bh_daemon_say(d, "MPS server M%llu: it is not known whether it runs, and asked again: %s",
                      (unsigned long long)s->number, err.msg);
    s->unsure = unsure;
    if (rc < 0 && !unsure) {
        fail_users(d, s);
        forget(d, s);
    }
}

int bh_mech_mps_made(struct bh_daemon *d, const struct bh_mech_server *order, struct bh_err *err)
{
    struct bh_made_server *s = by_number(d, order->number);
    return s ? watch(d, s, err) : bh_fail(err, BH_NOT_FOUND, "the MPS server is gone");
}

/* Who works through which, from the rows: after a start, and after the table of leases was made anew. */
static void find_users(struct bh_daemon *d)
{
    for (size_t i = 0; i < d->runs.n; i++) {
        struct bh_life *run = d->runs.at[i];
        struct bh_arena arena = {0};
        bh_store_grants grants = {0};
        struct bh_store_lease row;
        struct bh_err err;
        char gpus[1600];
        if (!run->server && bh_lease_holds_slices(run->state) &&
            bh_store_lease_get(d->store, &arena, run->lease, &row, &err) == BH_OK &&
            row.mechanism == BH_MECH_MPS &&
            bh_store_lease_grants(d->store, &arena, run->lease, &grants, &err) == BH_OK) {
            list_gpus(&grants, gpus);
            const struct bh_made_server *s = find(d, &row, gpus);
            run->server = s ? s->number : 0;
        }
        bh_vec_fini(&grants);
        bh_arena_fini(&arena);
    }
}

/* One that works and whose server nobody knows lost it while nobody looked. */
static void look_at_users(struct bh_daemon *d)
{
    bool unknown = false;
    for (size_t i = 0; i < d->runs.n; i++)
        unknown = unknown || (d->runs.at[i]->terms.mechanism == BH_MECH_MPS && !d->runs.at[i]->server &&
                              bh_lease_holds_slices(d->runs.at[i]->state));
    if (unknown)
        find_users(d);
    for (size_t i = d->runs.n; unknown && i-- > 0;)
        if (d->runs.at[i]->terms.mechanism == BH_MECH_MPS && !d->runs.at[i]->server &&
            d->runs.at[i]->state == BH_LEASE_ACTIVE)
            fail(d, d->runs.at[i]);
}

void bh_mech_tick(struct bh_daemon *d)
{
    look_at_users(d);
    for (size_t i = d->servers.n; i-- > 0;) {
        struct bh_made_server *s = d->servers.at[i];
        struct bh_arena arena = {0};
        const struct bh_keeper_order order = {
            .version = BH_KEEPER_VERSION, .op = BH_KEEPER_STOP, .grace_ms = UINT32_MAX};
        struct bh_keeper_status status;
        struct bh_err err;
        if (s->gone) {
            bury(d, s);
            continue;
        }
        if (s->unsure) {
            find_again(d, s);
            continue;
        }
        if (s->stopping || is_used(d, s))
            continue;
        const struct bh_keeper_place at = place_of(d, s->number, &arena);
        const int rc = bh_keeper_order(&at, &order, &status, &err);
        s->stopping = rc == BH_OK;
        if (rc == BH_NOT_FOUND) /* it never began */
            forget(d, s);
        else if (rc < 0)
            bh_daemon_say(d, "MPS server M%llu does not stop yet: %s", (unsigned long long)s->number,
                          err.msg);
        else if (!s->up && watch(d, s, &err) < 0)
            forget(d, s);
        bh_arena_fini(&arena);
    }
}

void bh_mech_fini(struct bh_daemon *d)
{
    for (size_t i = 0; i < d->servers.n; i++) {
        (void)sd_event_source_disable_unref(d->servers.at[i]->source);
        free(d->servers.at[i]);
    }
    bh_vec_fini(&d->servers);
    bh_vec_fini(&d->cuts);
}

/* ---- at the start ---- */

static struct bh_made_server *read_note(struct bh_daemon *d, const struct bh_store_note *note,
                                        struct bh_arena *arena)
{
    const char *field[FIELDS] = {0}, *text = note->value;
    uint64_t number, uid, gid;
    for (size_t i = 0; i < FIELDS; i++) {
        const size_t n = strcspn(text, "\n");
        field[i] = bh_arena_printf(arena, "%.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
    if (bh_uint_parse(note->key + strlen("mps/"), UINT64_MAX, &number, NULL) < 0 ||
        bh_uint_parse(field[0], UINT32_MAX, &uid, NULL) < 0 ||
        bh_uint_parse(field[1], UINT32_MAX, &gid, NULL) < 0)
        return NULL;
    struct bh_made_server *s = add(d, number);
    s->uid = (uint32_t)uid;
    s->gid = (uint32_t)gid;
    (void)snprintf(s->domain, sizeof(s->domain), "%s", field[2]);
    (void)snprintf(s->pool, sizeof(s->pool), "%s", field[3]);
    (void)snprintf(s->gpus, sizeof(s->gpus), "%s", field[4]);
    return s;
}

void bh_mech_mps_restore(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    bh_store_notes notes = {0};
    struct bh_err err;
    if (bh_store_notes_list(d->store, &arena, "mps/", &notes, &err) < 0)
        bh_daemon_say(d, "MPS servers are not known: %s", err.msg);
    for (size_t i = 0; i < notes.n; i++)
        if (!read_note(d, &notes.at[i], &arena))
            bh_daemon_say(d, "the note %s cannot be read", notes.at[i].key);
    bh_vec_fini(&notes);
    bh_arena_fini(&arena);
    if (d->servers.n)
        find_users(d);
    for (size_t i = d->servers.n; i-- > 0;)
        find_again(d, d->servers.at[i]);
}

/* ---- clients ---- */

int bh_mech_mps_gift(struct bh_daemon *d, const struct bh_life *run, const bh_store_grants *grants,
                     struct bh_arena *arena, struct bh_mech_gift *gift, struct bh_err *err)
{
    const struct bh_made_server *s = run->server ? by_number(d, run->server) : NULL;
    struct bh_mps_share share = {.n_gpus = grants->n};
    if (run->terms.mechanism != BH_MECH_MPS)
        return BH_OK;
    if (!s)
        return bh_fail(err, BH_NOT_FOUND, "its MPS server is gone");
    for (size_t i = 0; i < grants->n && i < BH_MPS_GPUS_MAX; i++) {
        const uint32_t percent = grants->at[i].milli / 10 ? grants->at[i].milli / 10 : 1;
        share.thread_percent = percent > share.thread_percent ? percent : share.thread_percent;
        share.mib[i] = grants->at[i].mib;
    }
    const struct bh_mps m = parts_of(d, s->number, s->uid, s->gid, arena);
    gift->env = bh_mps_client_env(&m, &share, arena);
    return BH_OK;
}
