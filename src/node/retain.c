/* SPDX-License-Identifier: Apache-2.0 */
/* retain.c - measured when a job has ended, removed when it is too old or too much. */
#include "node/retain.h"

#include "base/units.h"
#include "node/decide.h"
#include "node/life.h"
#include "node/note.h"
#include "store/state_room.h"
#include "wire/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MEASURED = 64, /* jobs in a tick */
    REMOVED = 256, /* jobs for one worker */
    LATE_S = 3600, /* a keeper that was started so long ago does not come any more */
    SWEEP_MS = LATE_S * 1000,
    BLOCK = 512
};

struct victim {
    uint64_t job, lease; /* of one job all follow each other; lease 0: it had none */
    bool is_old;
    char tenant[64];
};

struct bh_retain {
    struct bh_worker worker; /* pid 0: none is under way */
    sd_event_source *source;
    BH_VEC(struct victim) victims;
    uint64_t swept_ms;
    uint64_t keep_ms, keep_bytes; /* of a job; of a tenant */
};

/* ---- folders ---- */

static DIR *open_lease(const char *leases_dir, uint64_t lease)
{
    char path[4200];
    (void)snprintf(path, sizeof(path), "%s/%llu", leases_dir, (unsigned long long)lease);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

static uint64_t measure_folder(const char *leases_dir, uint64_t lease)
{
    DIR *dir = open_lease(leases_dir, lease);
    struct stat st;
    uint64_t sum = 0;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            sum += (uint64_t)st.st_blocks * BLOCK;
    if (dir)
        closedir(dir);
    return sum;
}

/*
 * All but what keeps a keeper that comes late from beginning (node/mech/clear.c), unless none can come any more. Then the folder, if it
 * is empty.
 */
static void empty_folder(const char *leases_dir, uint64_t lease)
{
    char path[4200];
    struct stat st;
    DIR *dir = open_lease(leases_dir, lease);
    if (!dir)
        return;
    const bool late = fstat(dirfd(dir), &st) == 0 && st.st_mtime + LATE_S > time(NULL);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (!late || strcmp(e->d_name, BH_KEEPER_BEGUN_NAME) != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0); /* a folder stays: there is none of ours */
    closedir(dir);
    (void)snprintf(path, sizeof(path), "%s/%llu", leases_dir, (unsigned long long)lease);
    (void)rmdir(path);
}

/* Nothing is in it but the mark that was left above. */
static bool is_left_over(const char *leases_dir, uint64_t lease)
{
    DIR *dir = open_lease(leases_dir, lease);
    size_t marks = 0, others = 0;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        marks += strcmp(e->d_name, BH_KEEPER_BEGUN_NAME) == 0;
        others += strcmp(e->d_name, BH_KEEPER_BEGUN_NAME) != 0 && e->d_name[0] != '.';
    }
    if (dir)
        closedir(dir);
    return marks && !others;
}

static void sweep(const char *leases_dir)
{
    DIR *dir = opendir(leases_dir);
    uint64_t lease;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
        if (bh_uint_parse(e->d_name, INT64_MAX, &lease, NULL) == BH_OK && is_left_over(leases_dir, lease))
            empty_folder(leases_dir, lease);
    if (dir)
        closedir(dir);
}

struct removing {
    const struct bh_retain *retain;
    const char *leases_dir;
    bool sweeps;
};

static void remove_work(const void *arg, struct bh_worker_result *ret)
{
    const struct removing *r = arg;
    (void)ret;
    for (size_t i = 0; i < r->retain->victims.n; i++)
        if (r->retain->victims.at[i].lease)
            empty_folder(r->leases_dir, r->retain->victims.at[i].lease);
    if (r->sweeps)
        sweep(r->leases_dir);
}

/* ---- what there is ---- */

static int leases_of(struct bh_daemon *d, struct bh_arena *arena, uint64_t job, bh_store_leases *ret,
                     struct bh_err *err)
{
    const struct bh_store_lease_filter f = {.job = job};
    const struct bh_store_page page = {.limit = BH_STORE_PAGE_MAX};
    ret->n = 0;
    return bh_store_leases_list(d->store, arena, &f, &page, ret, err);
}

static int measure(struct bh_daemon *d, struct bh_arena *arena, const bh_store_remains *jobs,
                   struct bh_err *err)
{
    bh_store_leases leases = {0};
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < jobs->n; i++) {
        uint64_t sum = 0;
        rc = leases_of(d, arena, jobs->at[i].job, &leases, err);
        for (size_t k = 0; k < leases.n; k++)
            sum += measure_folder(d->leases_dir, leases.at[k].id);
        if (rc == BH_OK)
            rc = bh_store_remain_measure(d->store, jobs->at[i].job, sum, err);
    }
    bh_vec_fini(&leases);
    return rc;
}

static int measure_new(struct bh_daemon *d, struct bh_arena *arena, struct bh_err *err)
{
    bh_store_remains jobs = {0};
    int rc = bh_store_remains_new(d->store, arena, MEASURED, &jobs, err);
    if (rc == BH_OK && jobs.n) {
        rc = bh_life_begin(d, err);
        if (rc == BH_OK)
            rc = bh_life_end(d, measure(d, arena, &jobs, err), err);
    }
    bh_vec_fini(&jobs);
    return rc;
}

/* ---- what goes ---- */

static int choose(struct bh_daemon *d, struct bh_arena *arena, const struct bh_store_remain *job, bool is_old,
                  struct bh_err *err)
{
    struct victim v = {.job = job->job, .is_old = is_old};
    bh_store_leases leases = {0};
    const int rc = leases_of(d, arena, job->job, &leases, err);
    (void)snprintf(v.tenant, sizeof(v.tenant), "%s", job->tenant);
    for (size_t i = 0; rc == BH_OK && (i == 0 || i < leases.n); i++) {
        v.lease = leases.n ? leases.at[i].id : 0;
        *bh_vec_push(&d->retain->victims) = v;
    }
    bh_vec_fini(&leases);
    return rc;
}

static int choose_of(struct bh_daemon *d, struct bh_arena *arena, const struct bh_store_remain *tenant,
                     struct bh_err *err)
{
    const uint64_t born_ms = d->last_ms > d->retain->keep_ms ? d->last_ms - d->retain->keep_ms : 0;
    uint64_t bytes = tenant->bytes;
    bh_store_remains jobs = {0};
    int rc = BH_OK;
    if (bytes <= d->retain->keep_bytes && (!tenant->job || tenant->ended_ms >= born_ms))
        return BH_OK;
    rc = bh_store_remains_oldest(d->store, arena, tenant->tenant, REMOVED, &jobs, err);
    for (size_t i = 0; rc == BH_OK && i < jobs.n && d->retain->victims.n < REMOVED; i++) {
        const bool is_old = jobs.at[i].ended_ms < born_ms;
        if (bytes <= d->retain->keep_bytes && !is_old)
            break;
        rc = choose(d, arena, &jobs.at[i], is_old, err);
        bytes -= jobs.at[i].bytes < bytes ? jobs.at[i].bytes : bytes;
    }
    bh_vec_fini(&jobs);
    return rc;
}

static int choose_all(struct bh_daemon *d, struct bh_arena *arena, struct bh_err *err)
{
    bh_store_remains tenants = {0};
    int rc = bh_store_remains_of_tenants(d->store, arena, &tenants, err);
    d->retain->victims.n = 0;
    for (size_t i = 0; rc == BH_OK && i < tenants.n; i++)
        rc = choose_of(d, arena, &tenants.at[i], err);
    bh_vec_fini(&tenants);
    return rc;
}

static int write_one(struct bh_daemon *d, const struct victim *v, struct bh_err *err)
{
    const char *why =
        v->is_old ? "it is older than output is kept" : "its tenant has more than is kept for one";
    const int rc = bh_store_remain_prune(d->store, v->job, d->last_ms, err);
    if (rc == BH_NOT_FOUND) /* the job itself is long over, and went meanwhile */
        return BH_OK;
    return rc == BH_OK ? bh_note_job(d, BH_AUDIT_JOB_PRUNE, v->job, v->tenant, NULL, why, err) : rc;
}

static int write_all(struct bh_daemon *d, struct bh_err *err)
{
    const struct bh_retain *r = d->retain;
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < r->victims.n; i++)
        if (i == 0 || r->victims.at[i].job != r->victims.at[i - 1].job)
            rc = write_one(d, &r->victims.at[i], err);
    return rc;
}

static int on_removed(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_daemon *d = arg;
    struct bh_worker_result result;
    struct bh_err err;
    (void)source;
    (void)fd;
    (void)events;
    d->retain->source = sd_event_source_disable_unref(d->retain->source);
    bh_worker_finish(&d->retain->worker, &result);
    /* Where it is not written, the same are chosen again: there is nothing left to remove of them. */
    if (result.code < 0 || d->broken_until_ms || !d->retain->victims.n)
        return 0;
    (void)bh_daemon_now(d);
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_all(d, &err), &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    return 0;
}

static void start_removing(struct bh_daemon *d)
{
    struct bh_retain *r = d->retain;
    const struct removing what = {
        .retain = r, .leases_dir = d->leases_dir, .sweeps = d->last_ms >= r->swept_ms + SWEEP_MS};
    struct bh_err err;
    if (!r->victims.n && !what.sweeps)
        return;
    int rc = bh_worker_start(remove_work, &what, &r->worker, &err);
    if (rc == BH_OK && sd_event_add_io(d->loop, &r->source, r->worker.fd, EPOLLIN, on_removed, d) < 0) {
        bh_worker_kill(&r->worker);
        rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    if (rc < 0)
        bh_daemon_say(d, "what ended jobs left stays for now: %s", err.msg);
    else
        bh_worker_name(&r->worker, "removing what ended jobs left");
    if (rc == BH_OK && what.sweeps)
        r->swept_ms = d->last_ms;
}

static struct bh_retain *as_told(const struct bh_daemon *d)
{
    struct bh_retain *r = bh_alloc(1, sizeof(*r));
    const char *age = getenv("BULKHEAD_KEEP_FOR"), *size = getenv("BULKHEAD_KEEP_OUTPUT");
    struct bh_err err;
    *r = (struct bh_retain){.worker = {.fd = -1}, .keep_ms = BH_RETAIN_MS, .keep_bytes = BH_RETAIN_BYTES};
    if (age && bh_duration_parse(age, &r->keep_ms, &err) < 0)
        bh_daemon_say(d, "BULKHEAD_KEEP_FOR: %s; 7 days hold", err.msg);
    if (size && bh_size_parse(size, &r->keep_bytes, &err) < 0)
        bh_daemon_say(d, "BULKHEAD_KEEP_OUTPUT: %s; 1 GiB holds", err.msg);
    return r;
}

void bh_retain_tick(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    struct bh_err err;
    if (!d->retain)
        d->retain = as_told(d);
    if (d->broken_until_ms || d->retain->worker.pid > 0)
        return;
    int rc = measure_new(d, &arena, &err);
    if (rc == BH_OK)
        rc = choose_all(d, &arena, &err);
    bh_arena_fini(&arena);
    if (rc == BH_OK)
        start_removing(d);
    else
        bh_decide_later(d, &err);
}

void bh_retain_fini(struct bh_daemon *d)
{
    if (!d->retain)
        return;
    d->retain->source = sd_event_source_disable_unref(d->retain->source);
    bh_worker_kill(&d->retain->worker);
    bh_vec_fini(&d->retain->victims);
    free(d->retain);
    d->retain = NULL;
}
