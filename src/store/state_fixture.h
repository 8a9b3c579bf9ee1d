/* SPDX-License-Identifier: Apache-2.0 */
/* state_fixture.h - a store in a scratch folder, with cards, jobs and leases to play with. */
#ifndef BH_STORE_STATE_FIXTURE_H
#define BH_STORE_STATE_FIXTURE_H

#include "base/scratch.h"
#include "base/test.h"
#include "core/model/vocab.h"
#include "store/db_sql.h"
#include "store/state_job.h"
#include "store/state_lease.h"
#include "store/state_usage.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU_A "GPU-aaaa"
#define GPU_B "GPU-bbbb"
enum { CARD_MIB = 80000 };

struct scratch {
    char folder[400], path[480];
};

static inline void scratch_init(struct scratch *t)
{
    if (!bh_scratch_make(t->folder, sizeof(t->folder), "store"))
        abort();
    (void)snprintf(t->path, sizeof(t->path), "%s/bulkhead.db", t->folder);
}

/* The folder, with nothing in it. */
static inline void scratch_empty(const struct scratch *t)
{
    if (!bh_scratch_remove(t->folder) || mkdir(t->folder, 0700) < 0)
        abort();
}

static inline void scratch_fini(const struct scratch *t)
{
    (void)bh_scratch_remove(t->folder);
}

/* A file of the folder. */
static inline const char *scratch_file(const struct scratch *t, const char *name, char buf[512])
{
    (void)snprintf(buf, 512, "%s/%s", t->folder, name);
    return buf;
}

struct fix {
    struct scratch at;
    struct bh_store *s;
    struct bh_arena arena;
    struct bh_err err;
    uint64_t now;
};

static inline void fix_open(struct fix *f)
{
    const struct bh_store_options o = {.mode = BH_STORE_WRITE};
    if (bh_store_open(f->at.path, &o, &f->s, &f->err) < 0) {
        printf("# %s\n", f->err.msg);
        abort();
    }
}

static inline int fix_card(struct fix *f, const char *uuid, uint32_t index)
{
    const struct bh_store_card card = {
        .uuid = uuid, .model = "H100-80GB", .index = index, .memory_mib = CARD_MIB, .seen_ms = f->now};
    return bh_store_card_put(f->s, &card, &f->err);
}

/* An open store with two cards. */
static inline void fix_init(struct fix *f)
{
    memset(f, 0, sizeof(*f));
    scratch_init(&f->at);
    f->now = 1000000;
    fix_open(f);
    if (fix_card(f, GPU_A, 0) < 0 || fix_card(f, GPU_B, 1) < 0)
        abort();
}

static inline void fix_fini(struct fix *f)
{
    bh_store_close(f->s);
    bh_arena_fini(&f->arena);
    scratch_fini(&f->at);
}

static inline struct bh_store_job a_job(const char *tenant)
{
    static const char *const argv[] = {"python3", "train.py", "", NULL};
    static const char *const env[] = {"A=1", "B=two words", NULL};
    return (struct bh_store_job){.tenant = tenant,
                                 .user = "ada",
                                 .pool = "shared",
                                 .name = "train",
                                 .uid = 1000,
                                 .gid = 1001,
                                 .gpus = 1,
                                 .milli = 500,
                                 .memory_mib = 20000,
                                 .profile = "",
                                 .tier = BH_TIER_PROCESS,
                                 .priority = BH_PRIORITY_NORMAL,
                                 .cwd = "/srv",
                                 .image = "",
                                 .argv = argv,
                                 .env = env,
                                 .submit_ms = 1000};
}

static inline uint64_t fix_job(struct fix *f, const char *tenant)
{
    uint64_t id = 0;
    const struct bh_store_job job = a_job(tenant);
    return bh_store_job_add(f->s, &job, &id, &f->err) < 0 ? 0 : id;
}

static inline uint64_t fix_lease_of(struct fix *f, uint64_t job, const char *tenant)
{
    uint64_t id = 0;
    const struct bh_store_lease lease = {.job = job,
                                         .tenant = tenant,
                                         .user = "ada",
                                         .pool = "shared",
                                         .domain = tenant,
                                         .mechanism = BH_MECH_GATE,
                                         .stack = "gate",
                                         .tier = BH_TIER_PROCESS,
                                         .uid = 1000,
                                         .gid = 1001,
                                         .detail = "{}"};
    return bh_store_lease_add(f->s, &lease, f->now, &id, &f->err) < 0 ? 0 : id;
}

static inline uint64_t fix_lease(struct fix *f, const char *tenant)
{
    const uint64_t job = fix_job(f, tenant);
    return job ? fix_lease_of(f, job, tenant) : 0;
}

static inline int fix_step(struct fix *f, uint64_t id, enum bh_lease_state from, enum bh_lease_cause cause)
{
    return bh_store_lease_step(f->s, id, from, cause, ++f->now, "because", NULL, &f->err);
}

static inline struct bh_slice_name whole(const char *gpu)
{
    return (struct bh_slice_name){.gpu = gpu, .kind = BH_SLICE_WHOLE, .key = "", .base = ""};
}

static inline struct bh_slice_name instance(const char *gpu, const char *key)
{
    return (struct bh_slice_name){.gpu = gpu, .kind = BH_SLICE_MIG, .key = key, .base = ""};
}

/* key "" to ask for one. */
static inline struct bh_slice_name share_of(const char *gpu, const char *key, const char *base)
{
    return (struct bh_slice_name){.gpu = gpu, .kind = BH_SLICE_SHARE, .key = key, .base = base};
}

/* From requested to preparing with one slice. */
static inline int fix_grant(struct fix *f, uint64_t id, struct bh_slice_name slice, uint32_t milli,
                            uint32_t mib)
{
    const struct bh_store_grant g = {.slice = slice, .milli = milli, .mib = mib};
    const int rc = fix_step(f, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT);
    return rc < 0 ? rc : bh_store_lease_grant(f->s, id, BH_LEASE_BY_GRANT, &g, 1, ++f->now, "room", &f->err);
}

static inline uint64_t fix_active(struct fix *f, const char *tenant, struct bh_slice_name slice,
                                  uint32_t milli, uint32_t mib)
{
    const uint64_t id = fix_lease(f, tenant);
    const bool ok = id && fix_grant(f, id, slice, milli, mib) == 0 &&
                    fix_step(f, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY) == 0;
    return ok ? id : 0;
}

static inline int fix_verdict(struct fix *f, uint64_t lease, struct bh_slice_name slice,
                              enum bh_scrub_verdict verdict)
{
    const struct bh_store_scrub v = {.lease = lease,
                                     .slice = slice,
                                     .verdict = verdict,
                                     .method = "overwrite+probe",
                                     .probed_bytes = 10,
                                     .total_bytes = 10,
                                     .words = "",
                                     .at_ms = ++f->now};
    return bh_store_scrub_add(f->s, &v, NULL, &f->err);
}

/* From active to scrubbing. */
static inline int fix_end(struct fix *f, uint64_t id)
{
    const int rc = fix_step(f, id, BH_LEASE_ACTIVE, BH_LEASE_BY_END);
    return rc < 0 ? rc : fix_step(f, id, BH_LEASE_DRAINING, BH_LEASE_BY_EMPTY);
}

/* How many things are broken; UINT32_MAX: it could not be asked. They are printed. */
static inline uint32_t fix_broken(struct bh_store *s)
{
    struct bh_buf words;
    struct bh_err err = {0};
    uint32_t broken = UINT32_MAX;
    bh_buf_init(&words, 1 << 16);
    if (bh_store_check(s, &words, &broken, &err) < 0)
        printf("# %s\n", err.msg);
    else if (broken)
        printf("# %s", bh_buf_text(&words));
    bh_buf_fini(&words);
    return broken;
}

/* What somebody with the file in hand would write; the code of SQLite. */
static inline int raw(struct bh_store *s, const char *text)
{
    return sqlite3_exec(bh_store_handle(s), text, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : sqlite3_extended_errcode(bh_store_handle(s));
}

static inline int64_t number(struct bh_store *s, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    int64_t v = -1;
    if (sqlite3_prepare_v2(bh_store_handle(s), text, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        v = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return v;
}

static inline bool fix_same_sums(const bh_store_usage_sums *a, const bh_store_usage_sums *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        const struct bh_store_usage_sum *x = &a->at[i], *y = &b->at[i];
        same = strcmp(x->tenant, y->tenant) == 0 && strcmp(x->of, y->of) == 0 &&
               x->mechanism == y->mechanism && x->milli_ms == y->milli_ms && x->mib_ms == y->mib_ms &&
               x->lost_milli_ms == y->lost_milli_ms && x->leases == y->leases && x->first_ms == y->first_ms;
    }
    return same;
}

#endif
