/* SPDX-License-Identifier: Apache-2.0 */
/* rules_surface.c - BH-072..BH-083: what a workload can reach, who may do what, what is written down. */
#include "core/policy/lint.h"

#include "base/str.h"
#include "base/units.h"
#include "core/policy/audit_class.h"
#include "core/policy/words.h"

#include <inttypes.h>

/* ---- BH-072: a workload's reach ---- */

static bool is_own_gpu(const struct bh_workload *w, const char *digits)
{
    uint64_t minor;
    if (bh_uint_parse(digits, 255, &minor, NULL) != BH_OK)
        return false;
    for (size_t i = 0; i < w->assigned.n; i++)
        if (w->assigned.at[i].index == minor)
            return true;
    return false;
}

/* nvidiactl and nvidia-uvm are needed by every tenant and carry no one's memory by themselves. */
static bool is_common_node(const char *name)
{
    static const char *const common[] = {"nvidiactl", "nvidia-uvm", "nvidia-modeset"};
    for (size_t i = 0; i < BH_COUNT_OF(common); i++)
        if (strcmp(name, common[i]) == 0)
            return true;
    return false;
}

/* A capability node of some instance; 0 to 2 are fabric, MIG configuration and MIG monitoring. */
static bool is_instance_cap(const char *name)
{
    uint64_t minor;
    return bh_str_starts(name, "nvidia-caps/nvidia-cap") &&
           bh_uint_parse(name + strlen("nvidia-caps/nvidia-cap"), 1u << 20, &minor, NULL) == BH_OK &&
           minor > 2;
}

static bool foreign_device(const struct bh_workload *w, const char *path)
{
    if (!bh_str_starts(path, "/dev/"))
        return false;
    const char *name = path + strlen("/dev/");
    if (strcmp(name, "mem") == 0 || strcmp(name, "kmem") == 0 || bh_str_starts(name, "vfio"))
        return true;
    if (!bh_str_starts(name, "nvidia") || is_common_node(name) || is_instance_cap(name))
        return false;
    return !is_own_gpu(w, name + strlen("nvidia"));
}

/* The pool that a component of the path is named after, or BH_NONE. */
static uint32_t pool_in_path(const struct bh_policy *p, const char *path)
{
    char name[64];
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n && n < sizeof(name)) {
            memcpy(name, path, n);
            name[n] = '\0';
            uint32_t pool = bh_map_find(&p->pool_by_name, name);
            if (pool != BH_MAP_NONE)
                return pool;
        }
        path += n + (path[n] == '/');
    }
    return BH_NONE;
}

/* An MPS pipe is a workload's own where its pool is an MPS pool and the path names no other pool. */
static bool foreign_pipe(const struct bh_lint *l, const struct bh_workload *w, const char *path)
{
    if (!strstr(path, "nvidia-mps") && !strstr(path, "/mps/") && !bh_str_ends(path, "/mps"))
        return false;
    if (w->pool == BH_NONE || bh_pool_effective(&l->p->pools.at[w->pool]) != BH_MECH_MPS)
        return true;
    uint32_t named = pool_in_path(l->p, path);
    return named != BH_NONE && named != w->pool;
}

static bool dangerous_mount(const char *path)
{
    static const char *const whole[] = {"/",    "/dev",       "/dev/dri", "/proc",    "/sys",
                                        "/run", "/var/run",   "/var",     "/var/lib", "/var/lib/kubelet",
                                        "/etc", "/run/nvidia"};
    for (size_t i = 0; i < BH_COUNT_OF(whole); i++)
        if (strcmp(path, whole[i]) == 0)
            return true;
    return bh_str_ends(path, "/docker.sock") || bh_str_ends(path, "/containerd.sock") ||
           bh_str_ends(path, "/crio.sock") || bh_str_starts(path, "/dev/dri/");
}

enum { PATH_SHOWN = 512 };

/* `//dev/./nvidia0/` is /dev/nvidia0: what a path means, not how it is spelt. `..` cannot be resolved and stays. */
static const char *plain_path(const char *path, char *out)
{
    size_t n = 0;
    while (*path && n + 2 < PATH_SHOWN) {
        size_t len = strcspn(path, "/");
        if (len && !(len == 1 && *path == '.')) {
            out[n++] = '/';
            for (size_t i = 0; i < len && n + 2 < PATH_SHOWN; i++)
                out[n++] = path[i];
        }
        path += len + (path[len] == '/');
    }
    if (!n)
        out[n++] = '/';
    out[n] = '\0';
    return out;
}

static bool is_foreign(const struct bh_lint *l, const struct bh_workload *w, const char *written)
{
    char out[PATH_SHOWN];
    const char *path = plain_path(written, out);
    return dangerous_mount(path) || foreign_device(w, path) || foreign_pipe(l, w, path) ||
           strstr(path, "/..");
}

/* Adds what of these paths is not its own, each once. */
static void reach_paths(struct bh_lint *l, const struct bh_workload *w, const bh_text_vec *paths,
                        struct bh_map *seen, struct bh_naming *names, struct bh_pos *ret_cause)
{
    for (size_t i = 0; i < paths->n; i++) {
        const struct bh_text *p = &paths->at[i];
        if (!is_foreign(l, w, p->s) || bh_map_add(seen, p->s, 0) != BH_MAP_NONE)
            continue;
        bh_naming_add(names, p->s);
        *ret_cause = ret_cause->line ? *ret_cause : p->pos;
    }
}

/* Everything it can reach; *ret_cause: the first line that says so. */
static const char *reach(struct bh_lint *l, const struct bh_workload *w, struct bh_pos *ret_cause)
{
    struct bh_naming names;
    struct bh_map seen = {0};
    bh_naming_init(&names, 6);
    if (w->privileged)
        bh_naming_add(&names, "the host (privileged)");
    if (w->host_pid)
        bh_naming_add(&names, "the host's processes (hostPID)");
    if (w->host_ipc)
        bh_naming_add(&names, "the host's shared memory (hostIPC)");
    reach_paths(l, w, &w->devices, &seen, &names, ret_cause);
    reach_paths(l, w, &w->mounts, &seen, &names, ret_cause);
    bh_map_fini(&seen);
    size_t n = names.n;
    const char *text = bh_naming_end(l, &names);
    return n ? text : NULL;
}

BH_CHECK(072)
{
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        struct bh_subject s = bh_about_workload(w);
        const char *what = reach(l, w, &s.cause);
        if (what)
            bh_found(l, s, "Workload %s can reach %s.", w->name, what);
    }
}

/* ---- BH-073, BH-074: network and storage ---- */

BH_CHECK(073)
{
    for (size_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        struct bh_subject s = bh_about_tenant(t);
        s.cause = t->network.pos;
        bool open = t->network.policy != BH_NET_DEFAULT_DENY, rdma = t->network.rdma == BH_RDMA_OPEN;
        if (t->source == BH_SOURCE_KUBERNETES && t->network.policy == BH_NET_UNSET && !rdma)
            bh_unknown(l, "the files hold no network policies to judge namespace '%s' by", t->name);
        else if (open && rdma)
            bh_found(l, s, "Tenant %s network open and RDMA not segmented.", t->name);
        else if (open)
            bh_found(l, s, "Tenant %s network open: no default-deny policy.", t->name);
        else if (rdma)
            bh_found(l, s, "Tenant %s RDMA not segmented: network policy does not cover it.", t->name);
    }
}

BH_CHECK(074)
{
    for (size_t i = 0; i < l->p->tenants.n; i++)
        if (!l->p->tenants.at[i].storage.quota_bytes)
            bh_found(l, bh_about_tenant(&l->p->tenants.at[i]), "No storage quota for %s.",
                     l->p->tenants.at[i].name);
}

/* ---- BH-075: separation of duties ---- */

static bool is_tenant_role(const struct bh_role_binding *r)
{
    return r->role == BH_ROLE_TENANT_ADMIN || r->role == BH_ROLE_TENANT_USER;
}

/* `user:ada@example.org` is the person `ada@example.org`. */
static const char *person(const char *subject)
{
    return bh_str_starts(subject, "user:") ? subject + strlen("user:") : subject;
}

static struct bh_subject about_role(const struct bh_role_binding *r)
{
    return (struct bh_subject){.kind = "role", .name = r->subject, .pos = r->pos};
}

BH_CHECK(075)
{
    struct bh_map operators = {0}, approvers = {0};
    for (uint32_t i = 0; i < l->p->roles.n; i++)
        if (l->p->roles.at[i].role == BH_ROLE_OPERATOR)
            (void)bh_map_add(&operators, person(l->p->roles.at[i].subject), i);
    for (uint32_t i = 0; i < l->p->waivers.n; i++)
        if (l->p->waivers.at[i].approver)
            (void)bh_map_add(&approvers, person(l->p->waivers.at[i].approver), i);
    for (size_t i = 0; i < l->p->roles.n; i++) {
        const struct bh_role_binding *r = &l->p->roles.at[i];
        if (!is_tenant_role(r))
            continue;
        if (bh_map_find(&operators, person(r->subject)) != BH_MAP_NONE)
            bh_found(l, about_role(r),
                     "Separation of duties missing for partitions, quotas and policy: %s is operator and %s.",
                     r->subject, bh_word(role, r->role));
        else if (bh_map_find(&approvers, person(r->subject)) != BH_MAP_NONE)
            bh_found(l, about_role(r),
                     "Separation of duties missing for waivers: %s approves them and is %s.", r->subject,
                     bh_word(role, r->role));
    }
    bh_map_fini(&operators);
    bh_map_fini(&approvers);
}

/* ---- BH-076, BH-077: the audit trail ---- */

static struct bh_subject about_audit(const struct bh_lint *l)
{
    struct bh_pos top = {.file = l->p->tenants.n ? l->p->tenants.at[0].pos.file : 0, .line = 1, .column = 1};
    return (struct bh_subject){.kind = "audit", .pos = l->p->audit.pos.line ? l->p->audit.pos : top};
}

BH_CHECK(076)
{
    struct bh_naming names;
    if (!l->p->audit.enabled) {
        bh_found(l, about_audit(l), "Audit incomplete: it is disabled, so every class is missing.");
        return;
    }
    bh_naming_init(&names, 8);
    for (size_t i = 0; i < l->p->audit.exclude.n; i++)
        if (!bh_audit_class_optional(l->p->audit.exclude.at[i].s))
            bh_naming_add(&names, l->p->audit.exclude.at[i].s);
    size_t n = names.n;
    const char *missing = bh_naming_end(l, &names);
    if (n)
        bh_found(l, about_audit(l), "Audit incomplete: %s.", missing);
}

BH_CHECK(077)
{
    static const struct {
        uint8_t regime;
        uint16_t days;
    } kept[] = {{BH_REGIME_HIPAA, 6 * 365}, {BH_REGIME_FEDRAMP, 30 * 365 / 12}, {BH_REGIME_PCI, 365}};
    uint32_t regimes = 0;
    for (size_t i = 0; i < l->p->tenants.n; i++)
        regimes |= l->p->tenants.at[i].regimes;
    uint64_t days = l->p->audit.retention_ms / 86400000;
    for (size_t i = 0; i < BH_COUNT_OF(kept); i++)
        if (regimes >> kept[i].regime & 1 && days < kept[i].days) {
            bh_found(l, about_audit(l), "Retention %" PRIu64 " d below %s (%u d).", days,
                     bh_word(regime, kept[i].regime), kept[i].days);
            return;
        }
}

/* ---- BH-080..BH-083: claims, images, money ---- */

/* The phrase of a description that no evidence can support, or NULL. */
static const char *overclaim(const char *text)
{
    static const char *const plain[] = {
        "full isolation",  "fully isolated", "complete isolation", "completely isolated", "perfect isolation",
        "total isolation", "secure"};
    static const char *const negative[] = {"no side channels", "no side-channels", "no side channel",
                                           "free of side channels", "without side channels"};
    for (size_t i = 0; i < BH_COUNT_OF(plain); i++)
        if (bh_claims(text, plain[i]))
            return plain[i];
    for (size_t i = 0; i < BH_COUNT_OF(negative); i++)
        if (bh_mentions(text, negative[i]))
            return negative[i];
    return NULL;
}

BH_CHECK(080)
{
    for (size_t i = 0; i < l->p->pools.n; i++) {
        const struct bh_pool *pool = &l->p->pools.at[i];
        const char *phrase = overclaim(pool->description);
        if (!phrase)
            continue;
        struct bh_subject s = bh_about_pool(pool);
        s.cause = pool->description_pos;
        bh_found(l, s, "Claim not supported by evidence: \"%s\".", phrase);
    }
}

static bool image_approved(const struct bh_tenant *t, const char *image)
{
    for (size_t i = 0; image && i < t->images.n; i++)
        if (bh_str_glob(t->images.at[i].s, image))
            return true;
    return false;
}

BH_CHECK(081)
{
    for (size_t i = 0; i < l->p->workloads.n; i++) {
        const struct bh_workload *w = &l->p->workloads.at[i];
        const struct bh_tenant *t = w->tenant == BH_NONE ? NULL : &l->p->tenants.at[w->tenant];
        if (!t || !t->images.n || image_approved(t, w->image.s))
            continue;
        struct bh_subject s = bh_about_workload(w);
        s.cause = w->image.pos;
        if (w->image.s)
            bh_found(l, s, "Image %s not approved for GPU use.", w->image.s);
        else
            bh_found(l, s, "Workload %s names no image; tenant %s allows approved ones only.", w->name,
                     t->name);
    }
}

BH_CHECK(082)
{
    for (size_t i = 0; i < l->p->tenants.n; i++)
        if (!l->p->tenants.at[i].cost_center)
            bh_found(l, bh_about_tenant(&l->p->tenants.at[i]), "Usage of %s cannot be charged.",
                     l->p->tenants.at[i].name);
}

static bool sells_fractions(const struct bh_policy *p)
{
    for (size_t i = 0; i < p->pools.n; i++)
        if (p->pools.at[i].mechanism == BH_MECH_FRACTIONAL)
            return true;
    for (size_t i = 0; i < p->tenants.n; i++)
        if (p->tenants.at[i].quota.has_gpus && p->tenants.at[i].quota.gpus_milli % 1000)
            return true;
    return false;
}

BH_CHECK(083)
{
    if (l->p->prices.pos.line && sells_fractions(l->p))
        bh_found(l, (struct bh_subject){.kind = "prices", .pos = l->p->prices.pos},
                 "Fraction is a billing unit, not a boundary.");
}
