/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.c - from rows to a keeper's spec.
 *
 * A tenant sees the GPUs of its lease and no others: by name (CUDA_VISIBLE_DEVICES, for convenience) and by its cgroup's
 * devices, which hold. Its environment is what it asked for and nothing of the daemon's, but for what simulated silicon needs.
 */
#include "node/spec.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "node/mech/mech.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { GRACE_MS = 10000 };

struct bh_keeper_place bh_spec_place(const struct bh_daemon *d, struct bh_arena *arena, uint64_t lease)
{
    return (struct bh_keeper_place){
        .folder = bh_arena_printf(arena, "%s/%llu", d->leases_dir, (unsigned long long)lease),
        .run_dir = d->runs_dir,
        .lease = lease};
}

const char *bh_spec_cgroup(const struct bh_daemon *d, struct bh_arena *arena, uint64_t lease)
{
    return bh_arena_printf(arena, "%s/L%llu", d->cgroup, (unsigned long long)lease);
}

/* ---- devices ---- */

struct devices {
    struct bh_arena *arena;
    struct bh_keeper_device *at;
    size_t n, cap;
};

/* One that is not there cannot be opened by anybody. */
static void add_node(struct devices *v, const char *path)
{
    char host[BH_SYSPATH_MAX];
    struct stat st;
    if (bh_syspath(host, path) && stat(host, &st) == 0 && S_ISCHR(st.st_mode))
        *bh_vec_push(v) = (struct bh_keeper_device){.major = major(st.st_rdev), .minor = minor(st.st_rdev)};
}

static int add_devices(const struct bh_daemon *d, const bh_store_grants *grants,
                       const struct bh_mech_gift *gift, struct devices *v, struct bh_err *err)
{
    static const char *const for_all[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    for (size_t i = 0; i < BH_COUNT_OF(for_all); i++)
        add_node(v, for_all[i]);
    for (size_t i = 0; i < grants->n; i++) {
        const struct bh_gpu_device *gpu = bh_silicon_device(&d->silicon, grants->at[i].slice.gpu);
        if (!gpu || gpu->minor < 0)
            return bh_fail(err, BH_NOT_FOUND, "%s is not among this machine's GPUs any more",
                           grants->at[i].slice.gpu);
        add_node(v, bh_arena_printf(v->arena, "/dev/nvidia%d", gpu->minor));
    }
    for (size_t i = 0; i < gift->n_caps; i++)
        add_node(v, bh_arena_printf(v->arena, "/dev/nvidia-caps/nvidia-cap%u", gift->caps[i]));
    return BH_OK;
}

/* ---- environment ---- */

struct words {
    const char **at;
    size_t n, cap;
};

static bool has_variable(const struct words *env, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->at[i], name, n) == 0 && env->at[i][n] == '=')
            return true;
    return false;
}

/* Where nobody said otherwise. */
static void set_variable(struct words *env, struct bh_arena *arena, const char *name, const char *value)
{
    if (value && !has_variable(env, name))
        *bh_vec_push(env) = bh_arena_printf(arena, "%s=%s", name, value);
}

/* What it asked for, where it is not ours to say. */
static void add_own(struct words *env, struct bh_arena *arena, const char *text)
{
    const size_t n = strcspn(text, "=");
    if (!has_variable(env, bh_arena_printf(arena, "%.*s", (int)n, text)))
        *bh_vec_push(env) = text;
}

/* What a job says of these is not heard: which GPUs it sees, whose server it talks to and where it is listened to is its lease's. */
static bool is_ours(const char *text)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES=", "CUDA_MPS_PIPE_DIRECTORY=", "BULKHEAD_NODE=",
                                        "BULKHEAD_PROBE=", "BULKHEAD_TENANT="};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++)
        if (bh_str_starts(text, names[i]))
            return true;
    return false;
}

/* A container finds the machine's files, and simulated silicon, in its own way (tier.c). */
static void add_environment(const struct bh_daemon *d, const struct bh_store_job *job, bool as_process,
                            struct bh_arena *arena, struct words *env)
{
    /* Which silicon there is at all: a tenant on a simulated card finds it by these. */
    static const char *const of_simulation[] = {"BULKHEAD_SIM",   "BULKHEAD_SIM_HOME", "BULKHEAD_SIM_LIB",
                                                "BULKHEAD_NVML",  "BULKHEAD_CUDA",     "BULKHEAD_SYSROOT",
                                                "LD_LIBRARY_PATH"};
    for (size_t i = 0; job->env && job->env[i]; i++)
        if (!is_ours(job->env[i]))
            add_own(env, arena, job->env[i]);
    set_variable(env, arena, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set_variable(env, arena, "BULKHEAD_NODE", d->node);
    set_variable(env, arena, "BULKHEAD_TENANT", job->tenant);
    for (size_t i = 0; d->view.simulated && as_process && i < BH_COUNT_OF(of_simulation); i++)
        set_variable(env, arena, of_simulation[i], getenv(of_simulation[i]));
}

/* A vector's array into the arena, ended by NULL. */
static const char *const *ended(struct bh_arena *arena, struct words *w)
{
    const char **at = bh_arena_alloc(arena, (w->n + 1) * sizeof(*at));
    if (w->n)
        memcpy(at, w->at, w->n * sizeof(*at));
    bh_vec_fini(w);
    return at;
}

static const char *user_of(struct bh_arena *arena, uint32_t uid, struct bh_err *err)
{
    struct passwd pw, *found = NULL;
    char text[4096];
    const int rc = getpwuid_r(uid, &pw, text, sizeof(text), &found);
    if (rc == 0 && found)
        return bh_arena_str(arena, pw.pw_name);
    (void)bh_fail(err, BH_NOT_FOUND, "there is no user with the number %u on this machine%s%s", uid,
                  rc ? ": " : "", rc ? strerror(rc) : "");
    return NULL;
}

/* ---- all of it ---- */

static void add_gate(const struct bh_daemon *d, const struct bh_life *run, struct bh_keeper_spec *ret)
{
    const struct bh_terms *t = &run->terms;
    ret->gate = t->cap_bytes || t->weight;
    if (!ret->gate) /* its card is its own: there is nothing to hold */
        return;
    ret->cap_bytes = t->cap_bytes ? t->cap_bytes : UINT64_MAX;
    ret->view = t->view;
    ret->rdma = bh_tier_may_have_rdma(d, run->tenant);
    ret->share.weight = t->weight;
    ret->share.cap_permille = t->cap_permille;
    ret->share.floor_permille = t->floor_permille;
    ret->share.latency = t->latency;
    (void)snprintf(ret->share.name, sizeof(ret->share.name), "L%llu", (unsigned long long)run->lease);
}

/* Nothing but these can be opened in its cgroup. */
static int hold_devices(const struct bh_daemon *d, const struct bh_tier_parts *parts,
                        const struct bh_mech_gift *gift, struct bh_arena *arena, struct bh_keeper_spec *ret,
                        struct bh_err *err)
{
    struct devices devices = {.arena = arena};
    const int rc = add_devices(d, parts->grants, gift, &devices, err);
    ret->limits.devices_held = d->has_cgroups;
    struct bh_keeper_device *at = bh_arena_alloc(arena, (devices.n + 1) * sizeof(*at));
    if (devices.n)
        memcpy(at, devices.at, devices.n * sizeof(*at));
    ret->limits.devices = at;
    ret->limits.n_devices = devices.n;
    bh_vec_fini(&devices);
    return rc;
}

static int as_process(const struct bh_daemon *d, const struct bh_tier_parts *parts,
                      const struct bh_mech_gift *gift, struct bh_arena *arena, struct bh_keeper_spec *ret,
                      struct bh_err *err)
{
    int rc = hold_devices(d, parts, gift, arena, ret, err);
    ret->uid = parts->job->uid;
    ret->gid = parts->job->gid;
    if (rc == BH_OK) {
        ret->user = user_of(arena, ret->uid, err);
        rc = ret->user ? BH_OK : BH_NOT_FOUND;
    }
    ret->cwd = *parts->job->cwd ? parts->job->cwd : NULL;
    ret->argv = parts->job->argv;
    ret->env = parts->env;
    if (rc == BH_OK)
        rc = bh_tier_process_limits(d, parts, arena, &ret->limits, err);
    return rc;
}

/* In the order in which they need each other. */
static int as_external(struct bh_daemon *d, const struct bh_life *run, const struct bh_tier_parts *parts,
                       const struct bh_mech_gift *gift, struct bh_arena *arena, struct bh_keeper_spec *ret,
                       struct bh_err *err)
{
    const int rc = hold_devices(d, parts, gift, arena, ret, err);
    return rc == BH_OK ? bh_tier_external(d, run, parts, arena, ret, err) : rc;
}

int bh_spec_make(struct bh_daemon *d, const struct bh_life *run, struct bh_arena *arena,
                 struct bh_keeper_spec *ret, struct bh_err *err)
{
    struct bh_store_job job;
    bh_store_grants grants = {0};
    struct bh_mech_gift gift;
    struct words env = {0};
    const bool container = run->terms.tier == BH_TIER_CONTAINER;
    *ret = (struct bh_keeper_spec){.lease = run->lease,
                                   .tier = BH_KEEPER_PROCESS,
                                   .run_dir = d->runs_dir,
                                   .cgroup = bh_spec_cgroup(d, arena, run->lease),
                                   .grace_ms = GRACE_MS};
    int rc = bh_store_job_get(d->store, arena, run->job, &job, err);
    if (rc == BH_OK)
        rc = bh_store_lease_grants(d->store, arena, run->lease, &grants, err);
    if (rc == BH_OK)
        rc = bh_mech_gift(d, run, &grants, arena, &gift, err);
    if (rc == BH_OK) {
        add_gate(d, run, ret);
        for (size_t i = 0; gift.env && gift.env[i]; i++)
            *bh_vec_push(&env) = gift.env[i];
        add_environment(d, &job, !container, arena, &env);
        set_variable(&env, arena, "CUDA_VISIBLE_DEVICES", gift.visible);
        const struct bh_tier_parts parts = {.job = &job,
                                            .grants = &grants,
                                            .env = ended(arena, &env),
                                            .caps = gift.caps,
                                            .n_caps = gift.n_caps};
        if (container && bh_tier_is_external(&job))
            rc = as_external(d, run, &parts, &gift, arena, ret, err);
        else
            rc = container ? bh_tier_container(d, run, &parts, arena, ret, err)
                           : as_process(d, &parts, &gift, arena, ret, err);
    }
    bh_vec_fini(&grants);
    return rc;
}
