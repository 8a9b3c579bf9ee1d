/* SPDX-License-Identifier: Apache-2.0 */
/* tier.c - the bundle of a lease, filled from its rows; and its remains. */
#include "node/mech/tier.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "host/bundle.h"
#include "host/cdi.h"
#include "host/filter.h"
#include "host/net_run.h"
#include "launch/probe.h"
#include "launch/warden.h"
#include "node/life.h"
#include "node/mech/tier_near.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
    /* Users of tenants' ranges: above all that distributions and systemd give away, below 2^31, which some tools cannot take. */
    IDS_FIRST = 0x70000000,
    IDS_LAST = 0x7fff0000,
    INSIDE_USER = 1000, /* of somebody whose number has no place inside */
    PIDS = 8192,
    MEMORY_PERCENT = 90, /* of the machine's memory that leases may take together */
};
#define MEMORY_LEAST (UINT64_C(2) * BH_GIB)

/* ---- how containers are run here ---- */

static bool is_unified(const struct bh_cgroups *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!c->at[i].unified)
            return false;
    return true;
}

static bool is_installed(const char *name)
{
    static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
    for (size_t i = 0; i < BH_COUNT_OF(folders); i++) {
        char at[64];
        (void)snprintf(at, sizeof(at), "%s/%s", folders[i], name);
        if (access(at, X_OK) == 0)
            return true;
    }
    return false;
}

static int make_folder(char ret[4000], const char *run_dir, const char *name, mode_t mode, struct bh_err *err)
{
    const int n = snprintf(ret, 4000, "%s/%s", run_dir, name);
    if (n < 0 || n >= 4000)
        return bh_fail(err, BH_TOO_LARGE, "%.200s is too long a path", run_dir);
    if (mkdir(ret, mode) < 0 && errno != EEXIST)
        return bh_fail(err, BH_SYSTEM, "%.200s: %s", ret, strerror(errno));
    return BH_OK;
}

int bh_tier_find(struct bh_containers *t, const struct bh_cgroups *cgroups, const char *run_dir,
                 struct bh_err *err)
{
    const bool crun = is_installed("crun"), runc = is_installed("runc");
    *t = (struct bh_containers){0};
    if (!cgroups)
        t->why_not = "this machine has no cgroups";
    else if (crun && is_unified(cgroups))
        t->runtime = "crun";
    else if (runc)
        t->runtime = "runc";
    else if (crun)
        t->why_not = "crun does not run beside cgroups of version 1, and runc is not installed";
    else
        t->why_not = "neither crun nor runc is installed";
    if (bh_oci_program(t->hook, sizeof(t->hook), err) < 0) {
        *t->hook = '\0';
        t->runtime = NULL;
        t->why_not = "bulkhead-oci is not installed beside this program";
    }
    const char *cdi = getenv("BULKHEAD_CDI_DIR");
    /* Engines look in one place; a daemon with a run folder of its own, as in tests, does not touch what is there. */
    if (cdi && *cdi)
        (void)snprintf(t->cdi, sizeof(t->cdi), "%s", cdi);
    else if (bh_str_eq(run_dir, "/run/bulkhead"))
        (void)snprintf(t->cdi, sizeof(t->cdi), "%s", BH_CDI_FOLDER);
    else
        (void)snprintf(t->cdi, sizeof(t->cdi), "%s/cdi", run_dir);
    int rc = make_folder(t->bundles, run_dir, "bundles", 0711, err);
    if (rc == BH_OK)
        rc = make_folder(t->containers, run_dir, "containers", 0700, err);
    return rc == BH_OK ? make_folder(t->probes, run_dir, "probes", 0700, err) : rc;
}

/* ---- users ---- */

/* The first number of the tenant's users, given once and never to another tenant. */
static int first_id(struct bh_daemon *d, struct bh_arena *arena, const char *tenant, uint32_t *ret,
                    struct bh_err *err)
{
    bh_store_notes notes = {0};
    const char *key = bh_arena_printf(arena, "ids/%s", tenant);
    uint64_t next = IDS_FIRST, found = 0;
    int rc = bh_store_notes_list(d->store, arena, "ids/", &notes, err);
    for (size_t i = 0; rc == BH_OK && i < notes.n; i++) {
        uint64_t v = 0;
        rc = bh_uint_parse(notes.at[i].value, UINT32_MAX, &v, err);
        if (bh_str_eq(notes.at[i].key, key))
            found = v;
        next = v >= next ? v + BH_BUNDLE_IDS : next;
    }
    bh_vec_fini(&notes);
    if (rc == BH_OK && !found && next > IDS_LAST)
        rc = bh_fail(err, BH_REFUSED, "no users are left for tenant %s: %d tenants had containers here",
                     tenant, (IDS_LAST - IDS_FIRST) / BH_BUNDLE_IDS + 1);
    if (rc == BH_OK && !found) { /* durable before anything is those users' */
        found = next;
        rc = bh_life_begin(d, err);
        if (rc == BH_OK)
            rc = bh_life_end(d,
                             bh_store_note_set_text(d->store, key,
                                                    bh_arena_printf(arena, "%llu", (unsigned long long)found),
                                                    err),
                             err);
    }
    *ret = (uint32_t)found;
    return rc;
}

static uint32_t inside(uint32_t id)
{
    return id < BH_BUNDLE_IDS ? id : INSIDE_USER;
}

/* ---- limits ---- */

/* Of a card, in thousandths. */
static uint64_t part_of(const struct bh_store_grant *g, const struct bh_gpu_device *gpu)
{
    const uint64_t mib = gpu->total_bytes.v / BH_MIB;
    if (g->slice.kind == BH_SLICE_SHARE)
        return g->milli;
    return g->slice.kind == BH_SLICE_MIG && mib ? g->mib * UINT64_C(1000) / mib : 1000;
}

/* As much of the machine's memory as the lease has of its GPUs, and something to work with. */
static uint64_t memory_for(uint64_t parts, size_t n_gpus)
{
    struct sysinfo s;
    if (sysinfo(&s) < 0 || !n_gpus)
        return 0;
    const uint64_t all = (uint64_t)s.totalram * s.mem_unit / 100 * MEMORY_PERCENT;
    const uint64_t bytes = all / (n_gpus * 1000) * parts;
    const uint64_t least = all < MEMORY_LEAST ? all : MEMORY_LEAST;
    return bytes > least ? bytes : least;
}

/* The same part of the processors' time; one of them at least. */
static uint32_t cpu_for(uint64_t parts, size_t n_gpus)
{
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    if (all <= 0 || !n_gpus)
        return 0;
    const uint64_t milli = (uint64_t)all * parts / n_gpus;
    return milli > 1000 ? (uint32_t)milli : 1000;
}

static const struct bh_tenant *tenant_of(const struct bh_daemon *d, const char *name)
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && i < p->tenants.n; i++)
        if (bh_str_eq(p->tenants.at[i].name, name))
            return &p->tenants.at[i];
    return NULL;
}

/* Slower than that not even a program starts in reasonable time. */
static uint64_t speed_for(uint64_t whole, uint64_t parts)
{
    const uint64_t v = whole / 1000 * parts;
    return whole && v < BH_MIB ? BH_MIB : v;
}

/* What a whole GPU of this tenant's comes with, for a lease that has so many thousandths. */
static struct bh_bandwidth bandwidth_for(const struct bh_daemon *d, const char *tenant, uint64_t parts)
{
    const struct bh_tenant *t = tenant_of(d, tenant);
    const struct bh_bandwidth whole = t ? bh_tenant_bandwidth(t) : (struct bh_bandwidth){0};
    return (struct bh_bandwidth){.network = speed_for(whole.network, parts),
                                 .disk = speed_for(whole.disk, parts)};
}

/* What a lease takes of the machine besides its GPUs. */
struct portion {
    struct bh_bundle_limits limits; /* without the list of disks */
    uint64_t net_bits_per_s;
};

static int portion_of(const struct bh_daemon *d, const struct bh_tier_parts *lease, struct bh_arena *arena,
                      struct portion *ret, struct bh_err *err)
{
    const bh_store_grants *grants = lease->grants;
    const size_t n_gpus = d->silicon.snapshot.devices.n;
    struct bh_near near = {.all_known = true};
    uint64_t parts = 0;
    for (size_t i = 0; i < grants->n; i++) {
        const struct bh_gpu_device *gpu = bh_silicon_device(&d->silicon, grants->at[i].slice.gpu);
        if (!gpu)
            return bh_fail(err, BH_NOT_FOUND, "%s is not among this machine's GPUs any more",
                           grants->at[i].slice.gpu);
        bh_near_add(&near, gpu);
        parts += part_of(&grants->at[i], gpu);
    }
    const struct bh_bandwidth speed = bandwidth_for(d, lease->job->tenant, parts);
    *ret = (struct portion){.limits = {.memory_bytes = memory_for(parts, n_gpus),
                                       .pids = PIDS,
                                       .cpu_milli = cpu_for(parts, n_gpus),
                                       .cpus = bh_near_cpus(arena, &near),
                                       .mems = bh_near_nodes(arena, &near),
                                       .disk_bytes_per_s = speed.disk},
                            .net_bits_per_s = speed.network * 8};
    return BH_OK;
}

bool bh_tier_can_limit(const struct bh_daemon *d, enum bh_cgroup_controller what)
{
    for (size_t i = 0; d->has_cgroups && i < d->cgroups.n; i++)
        if (d->cgroups.at[i].controllers & what)
            return true;
    return false;
}

int bh_tier_process_limits(const struct bh_daemon *d, const struct bh_tier_parts *parts,
                           struct bh_arena *arena, struct bh_keeper_limits *ret, struct bh_err *err)
{
    struct portion mine;
    const int rc = portion_of(d, parts, arena, &mine, err);
    if (rc < 0)
        return rc;
    if (bh_tier_can_limit(d, BH_CGROUP_MEMORY))
        ret->memory_bytes = mine.limits.memory_bytes;
    if (bh_tier_can_limit(d, BH_CGROUP_PIDS))
        ret->pids = mine.limits.pids;
    ret->disk_bytes_per_s =
        mine.limits.disk_bytes_per_s; /* the policy asked for it: held, or the lease does not start */
    return BH_OK;
}

/* ---- what is inside ---- */

/* A variable of ours stays ours; where libraries are is both's. */
static int add_variable(struct bh_gear *g, const char *text, struct bh_err *err)
{
    char name[256];
    const size_t n = strcspn(text, "=");
    if (n >= sizeof(name) || text[n] != '=')
        return bh_fail(err, BH_INVALID, "'%.60s' is no variable", text);
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
    for (size_t i = 0; i < g->env.n; i++) {
        if (strncmp(g->env.at[i], text, n + 1) != 0)
            continue;
        if (bh_str_eq(name, "LD_LIBRARY_PATH"))
            g->env.at[i] = bh_arena_printf(&g->arena, "%s:%s", g->env.at[i], text + n + 1);
        return BH_OK;
    }
    return bh_gear_env(g, name, text + n + 1, err);
}

static int add_devices(const struct bh_daemon *d, const struct bh_tier_parts *parts, struct bh_gear *g,
                       struct bh_err *err)
{
    int rc = BH_OK;
    const char *sim = getenv("BULKHEAD_SIM");
    if (d->view.simulated) /* its devices are a socket in that folder */
        return bh_gear_simulated(g, sim ? sim : "", err);
    for (size_t i = 0; rc == BH_OK && i < parts->grants->n; i++) {
        const struct bh_gpu_device *gpu = bh_silicon_device(&d->silicon, parts->grants->at[i].slice.gpu);
        rc = gpu && gpu->minor >= 0
                 ? bh_gear_gpu(g, (uint32_t)gpu->minor, err)
                 : bh_fail(err, BH_NOT_FOUND, "%s has no device node", parts->grants->at[i].slice.gpu);
    }
    for (size_t i = 0; rc == BH_OK && i < parts->n_caps; i++)
        rc = bh_gear_cap(g, parts->caps[i], err);
    return rc == BH_OK ? bh_gear_driver(g, d->silicon.snapshot.driver ? d->silicon.snapshot.driver : "", err)
                       : rc;
}

/* Where a container of this lease says what it does; NULL: it has no share, or the run folder's name is too long for it. */
static const char *probe_of(const struct bh_daemon *d, uint64_t lease, const struct bh_keeper_spec *spec,
                            struct bh_arena *arena)
{
    const char *at = bh_arena_printf(arena, "%s/L%llu", d->tier.probes, (unsigned long long)lease);
    return spec->share.weight && bh_probe_path_fits(at) ? at : NULL;
}

/* probe: on this machine; NULL: none. */
static int fill_gear(const struct bh_daemon *d, const struct bh_tier_parts *parts, const char *probe,
                     struct bh_gear *g, struct bh_err *err)
{
    int rc = add_devices(d, parts, g, err);
    if (rc == BH_OK && probe)
        rc = bh_gear_socket(g, probe, BH_GEAR_PROBE, err);
    if (rc == BH_OK && probe)
        rc = bh_gear_env(g, BH_PROBE_VARIABLE, BH_GEAR_PROBE, err);
    for (size_t i = 0; rc == BH_OK && parts->env[i]; i++)
        rc = add_variable(g, parts->env[i], err);
    return rc;
}

/* Where the work was asked to begin, if there is such a folder inside; NULL: at home. */
static const char *cwd_in(struct bh_arena *arena, const char *rootfs, const char *cwd)
{
    static const char *const seen[] = {"/usr/", "/opt/", "/etc/"};
    struct stat st;
    if (!*cwd || bh_str_eq(cwd, "/"))
        return *cwd ? cwd : NULL;
    if (rootfs)
        return stat(bh_arena_printf(arena, "%s%s", rootfs, cwd), &st) == 0 && S_ISDIR(st.st_mode) ? cwd
                                                                                                  : NULL;
    for (size_t i = 0; i < BH_COUNT_OF(seen); i++)
        if (bh_str_starts(cwd, seen[i]))
            return cwd;
    return NULL;
}

/* Does this machine forward? Nothing goes outside otherwise. The kernel's own word, simulated GPUs or not. */
static bool forwards(void)
{
    char c = '0';
    const int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDONLY | O_CLOEXEC);
    const bool yes = fd >= 0 && read(fd, &c, 1) == 1 && c == '1';
    if (fd >= 0)
        close(fd);
    return yes;
}

bool bh_tier_may_have_rdma(const struct bh_daemon *d, const char *tenant)
{
    const struct bh_tenant *t = tenant_of(d, tenant);
    return t && (t->network.rdma == BH_RDMA_PARTITIONED || t->network.rdma == BH_RDMA_OPEN);
}

/* A tenant that asked for default-deny, or for nothing, has no network at all. */
static bool may_have_net(const struct bh_daemon *d, const char *tenant, uint64_t lease, struct bh_net *ret)
{
    const struct bh_tenant *t = tenant_of(d, tenant);
    *ret = (struct bh_net){.lease = lease, .tenant = tenant, .may_peer = true, .may_go_outside = forwards()};
    return t && t->network.policy == BH_NET_OPEN;
}

static size_t count(const char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    return n;
}

static const char *const *runtime_words(const struct bh_containers *t, struct bh_arena *arena)
{
    const char *const words[] = {t->runtime, "--root", t->containers, NULL};
    const char **at = bh_arena_alloc(arena, sizeof(words));
    memcpy(at, words, sizeof(words));
    return at;
}

int bh_tier_container(struct bh_daemon *d, const struct bh_life *run, const struct bh_tier_parts *parts,
                      struct bh_arena *arena, struct bh_keeper_spec *spec, struct bh_err *err)
{
    const struct bh_store_job *job = parts->job;
    const char *name = bh_arena_printf(arena, "L%llu", (unsigned long long)run->lease);
    const char *rootfs = *job->image ? job->image : NULL;
    struct bh_gear gear = {0};
    struct bh_net net = {0};
    struct portion mine = {0};
    if (!d->tier.runtime)
        return bh_fail(err, BH_REFUSED, "no container can be run on this machine: %s", d->tier.why_not);
    spec->tier = BH_KEEPER_CONTAINER;
    spec->runtime = runtime_words(&d->tier, arena);
    spec->bundle = bh_arena_printf(arena, "%s/%s", d->tier.bundles, name);
    spec->container = name;
    spec->listener = spec->gate ? bh_arena_printf(arena, "%s/%s.gate", d->runs_dir, name) : NULL;
    spec->probe = probe_of(d, run->lease, spec, arena);
    struct bh_bundle b = {.lease = run->lease,
                          .tenant = job->tenant,
                          .rootfs = rootfs,
                          .argv = job->argv,
                          .n_argv = count(job->argv),
                          .cwd = cwd_in(arena, rootfs, job->cwd),
                          .uid = inside(job->uid),
                          .gid = inside(job->gid),
                          .gear = &gear,
                          .cgroup = spec->cgroup,
                          .listener = spec->listener,
                          .profile_flags = spec->view || spec->share.weight ? BH_FILTER_CONTROLS : 0,
                          .net = may_have_net(d, job->tenant, run->lease, &net) ? &net : NULL,
                          .hook = d->tier.hook};
    int rc = first_id(d, arena, job->tenant, &b.first_id, err);
    if (rc == BH_OK)
        rc = portion_of(d, parts, arena, &mine, err);
    b.limits = mine.limits;
    net.bits_per_s = mine.net_bits_per_s;
    if (rc == BH_OK && b.limits.disk_bytes_per_s)
        rc = bh_disks_list("", &b.limits.disks, err);
    if (rc == BH_OK)
        rc = fill_gear(d, parts, spec->probe, &gear, err);
    if (rc == BH_OK)
        rc = bh_bundle_make(&b, spec->bundle, err);
    bh_vec_fini(&b.limits.disks);
    bh_gear_fini(&gear);
    return rc;
}

/* ---- somebody else's engine ---- */

bool bh_tier_is_external(const struct bh_store_job *job)
{
    return bh_str_eq(job->image, BH_TIER_EXTERNAL_IMAGE);
}

int bh_tier_external(struct bh_daemon *d, const struct bh_life *run, const struct bh_tier_parts *parts,
                     struct bh_arena *arena, struct bh_keeper_spec *spec, struct bh_err *err)
{
    struct bh_gear gear = {0};
    struct portion mine;
    if (!*d->tier.hook || !d->has_cgroups)
        return bh_fail(err, BH_REFUSED, "no container can be held on this machine: %s",
                       d->has_cgroups ? d->tier.why_not : "it has no cgroups");
    if (!spec->gate)
        return bh_fail(err, BH_REFUSED,
                       "a card of its own has no gate, and so no profile that an engine could be given");
    spec->tier = BH_KEEPER_EXTERNAL;
    spec->listener = bh_arena_printf(arena, "%s/L%llu.gate", d->runs_dir, (unsigned long long)run->lease);
    spec->probe = probe_of(d, run->lease, spec, arena);
    const struct bh_cdi cdi = {.lease = run->lease,
                               .gear = &gear,
                               .hook = d->tier.hook,
                               .listener = spec->listener,
                               .cgroup = spec->cgroup,
                               .profile_flags = spec->view || spec->share.weight ? BH_FILTER_CONTROLS : 0};
    int rc = portion_of(d, parts, arena, &mine, err);
    if (rc == BH_OK)
        rc = fill_gear(d, parts, spec->probe, &gear, err);
    if (rc == BH_OK)
        rc = bh_cdi_write(d->tier.cdi, &cdi, err);
    bh_gear_fini(&gear);
    if (rc < 0)
        return rc;
    spec->limits.memory_bytes = mine.limits.memory_bytes;
    spec->limits.pids = mine.limits.pids;
    spec->limits.cpu_milli = mine.limits.cpu_milli;
    spec->limits.cpus = mine.limits.cpus;
    spec->limits.nodes = mine.limits.mems;
    spec->limits.disk_bytes_per_s = mine.limits.disk_bytes_per_s;
    return BH_OK;
}

/* ---- after it ---- */

void bh_tier_rest(const struct bh_daemon *d, const struct bh_life *run, struct bh_tier_rest *ret)
{
    const unsigned long long id = run->lease;
    *ret = (struct bh_tier_rest){.runtime = d->tier.runtime, .lease = run->lease};
    (void)snprintf(ret->tenant, sizeof(ret->tenant), "%s", run->tenant);
    (void)snprintf(ret->bundle, sizeof(ret->bundle), "%s/L%llu", d->tier.bundles, id);
    (void)snprintf(ret->container, sizeof(ret->container), "%s/L%llu", d->tier.containers, id);
    (void)snprintf(ret->listener, sizeof(ret->listener), "%s/L%llu.gate", d->runs_dir, id);
    (void)snprintf(ret->probe, sizeof(ret->probe), "%s/L%llu", d->tier.probes, id);
    (void)snprintf(ret->cdi, sizeof(ret->cdi), "%s", d->tier.cdi);
}

bool bh_tier_left_container(const struct bh_tier_rest *r)
{
    return access(r->bundle, F_OK) == 0 || errno != ENOENT || access(r->container, F_OK) == 0 ||
           errno != ENOENT;
}

/* The runtime's notes of a container whose keeper did not live to see its end. */
static int forget_container(const struct bh_tier_rest *r, struct bh_err *err)
{
    char root[4096], name[32];
    if (!r->runtime || access(r->container, F_OK) < 0)
        return BH_OK;
    (void)snprintf(root, sizeof(root), "%.*s", (int)(strrchr(r->container, '/') - r->container),
                   r->container);
    (void)snprintf(name, sizeof(name), "L%llu", (unsigned long long)r->lease);
    const char *const words[] = {r->runtime, "--root", root, "delete", "--force", name, NULL};
    const struct bh_run tool = {.argv = words, .netns = -1};
    return bh_run_tool(&tool, err);
}

int bh_tier_clean(const struct bh_tier_rest *r, struct bh_err *err)
{
    const struct bh_net net = {.lease = r->lease, .tenant = r->tenant};
    int rc = bh_cdi_remove(r->cdi, r->lease, err);
    if (rc == BH_OK)
        rc = forget_container(r, err);
    if (rc < 0)
        return rc;
    (void)unlink(r->listener);
    (void)unlink(r->probe);
    if (access(r->bundle, F_OK) < 0)
        return BH_OK;
    if (if_nametoindex(BH_NET_BRIDGE) != 0)
        rc = bh_net_detach(&net, err);
    return rc == BH_OK ? bh_bundle_remove(r->bundle, err) : rc;
}

/* What a daemon that was killed, or a reboot, left of leases that are over. */
static void drop_cdi(void *arg, uint64_t lease)
{
    struct bh_daemon *d = arg;
    const struct bh_life *run = bh_life_of_lease(d, lease);
    struct bh_err err;
    if ((!run || !bh_lease_may_run(run->state)) && bh_cdi_remove(d->tier.cdi, lease, &err) < 0)
        bh_daemon_say(d, "the CDI file of L%llu stays: %s", (unsigned long long)lease, err.msg);
}

int bh_tier_reconcile(struct bh_daemon *d, struct bh_err *err)
{
    BH_VEC(struct bh_net) live = {0};
    if (bh_cdi_list(d->tier.cdi, drop_cdi, d, err) < 0)
        bh_daemon_say(d, "CDI files of leases that are over may be left: %s", err->msg);
    for (size_t i = 0; i < d->runs.n; i++) {
        const struct bh_life *run = d->runs.at[i];
        struct bh_tier_rest rest;
        struct bh_net net;
        bh_tier_rest(d, run, &rest);
        if (bh_lease_may_run(run->state) && access(rest.bundle, F_OK) == 0 &&
            may_have_net(d, run->tenant, run->lease, &net))
            *bh_vec_push(&live) = net;
    }
    const bool any = live.n || if_nametoindex(BH_NET_BRIDGE) != 0;
    const int rc = any ? bh_net_reconcile(live.at, live.n, err) : BH_OK;
    bh_vec_fini(&live);
    return rc;
}
