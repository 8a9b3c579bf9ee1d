/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/hook.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/bundle_spec.h"
#include "host/cgroup.h"
#include "oci/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

static int take_lease(struct bh_hook *h, const char *value, struct bh_err *err)
{
    return bh_uint_parse(value, UINT64_MAX, &h->lease, err);
}
static int take_profile(struct bh_hook *h, const char *value, struct bh_err *err)
{
    h->profile = value;
    return value[0] == '/' ? BH_OK : bh_fail(err, BH_USAGE, "--profile must be an absolute path");
}
static int take_cgroup(struct bh_hook *h, const char *value, struct bh_err *err)
{
    h->cgroup = value;
    return bh_cgroup_name_valid(value) ? BH_OK
                                       : bh_fail(err, BH_USAGE, "--cgroup '%.100s' is no name of one", value);
}
static int take_network(struct bh_hook *h, const char *value, struct bh_err *err)
{
    h->net.tenant = value;
    return bh_name_valid(value) ? BH_OK
                                : bh_fail(err, BH_USAGE, "--network '%.100s' is no name of a tenant", value);
}
static int take_rate(struct bh_hook *h, const char *value, struct bh_err *err)
{
    return bh_uint_parse(value, UINT64_MAX, &h->net.bits_per_s, err);
}
static int take_peers(struct bh_hook *h, const char *value, struct bh_err *err)
{
    (void)value;
    (void)err;
    h->net.may_peer = true;
    return BH_OK;
}
static int take_outside(struct bh_hook *h, const char *value, struct bh_err *err)
{
    (void)value;
    (void)err;
    h->net.may_go_outside = true;
    return BH_OK;
}

static const struct {
    const char *name;
    bool has_value;
    int (*take)(struct bh_hook *h, const char *value, struct bh_err *err);
} options[] = {
    {"--cgroup", true, take_cgroup},    {"--lease", true, take_lease}, {"--profile", true, take_profile},
    {"--network", true, take_network},  {"--rate", true, take_rate},   {"--peers", false, take_peers},
    {"--outside", false, take_outside},
};

int bh_hook_options(int argc, char **argv, struct bh_hook *ret, struct bh_err *err)
{
    bool has_lease = false;
    *ret = (struct bh_hook){0};
    for (int i = 0; i < argc; i++) {
        size_t k = 0;
        while (k < BH_COUNT_OF(options) && !bh_str_eq(options[k].name, argv[i]))
            k++;
        if (k == BH_COUNT_OF(options))
            return bh_fail(err, BH_USAGE, "the hook has no option '%.100s'", argv[i]);
        const char *value = "";
        if (options[k].has_value && !(value = ++i < argc ? argv[i] : NULL))
            return bh_fail(err, BH_USAGE, "%s needs a value", options[k].name);
        int rc = options[k].take(ret, value, err);
        if (rc < 0)
            return rc;
        has_lease = has_lease || options[k].take == take_lease;
    }
    ret->net.lease = ret->lease;
    if (!has_lease || (!ret->profile && !ret->net.tenant))
        return bh_fail(err, BH_USAGE, "the hook needs --lease, and --profile or --network");
    return BH_OK;
}

/* ---- the verdict ---- */

static int judge_text(const char *config, size_t n, const struct bh_hook *h, struct bh_err *err)
{
    struct bh_spec spec;
    BH_AUTOFREE char *profile = NULL;
    size_t n_profile;
    int rc = bh_spec_read(config, n, &spec, err);
    if (rc < 0)
        return rc;
    if (spec.seccomp.from == spec.seccomp.to)
        return bh_fail(
            err, BH_REFUSED,
            "it has no seccomp profile, so nothing would hold it to its lease: add --security-opt seccomp=%.200s, or "
            "use bulkhead-oci as the runtime",
            h->profile);
    if (spec.has_sys_admin)
        return bh_fail(err, BH_REFUSED,
                       "it has CAP_SYS_ADMIN, with which it can reach other leases' parts of a card");
    if (spec.allows_all_devices)
        return bh_fail(err, BH_REFUSED, "it may open every device of this machine");
    rc = bh_oci_read_file(h->profile, BH_SPEC_MAX, &profile, &n_profile, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the lease's profile is not there (has it ended?)");
    rc = bh_spec_same_seccomp(profile, n_profile, config + spec.seccomp.from,
                              spec.seccomp.to - spec.seccomp.from, err);
    if (rc == BH_REFUSED && err) {
        const size_t used = strlen(err->msg);
        (void)snprintf(err->msg + used, sizeof(err->msg) - used, "; use --security-opt seccomp=%.120s",
                       h->profile);
    }
    return rc;
}

int bh_hook_judge(const struct bh_hook *h, const char *bundle, struct bh_err *err)
{
    BH_AUTOFREE char *config = NULL;
    size_t n;
    int rc = bh_oci_read_config(bundle, &config, &n, NULL, err);
    return rc < 0 ? rc : judge_text(config, n, h, err);
}

static int read_state(int fd, struct bh_spec_state *ret, struct bh_err *err)
{
    struct bh_buf text;
    char chunk[4096];
    ssize_t n;
    bh_buf_init(&text, BH_SPEC_STATE_MAX);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            bh_buf_add(&text, chunk, (size_t)n);
    int rc = n < 0 ? bh_fail(err, BH_SYSTEM, "the container's state cannot be read: %s", strerror(errno))
             : text.full ? bh_fail(err, BH_TOO_LARGE, "the container's state is longer than %d bytes",
                                   BH_SPEC_STATE_MAX)
                         : bh_spec_read_state(bh_buf_text(&text), text.n, ret, err);
    bh_buf_fini(&text);
    return rc;
}

/* Before anything of it runs: what it starts later starts in there too. */
static int join_cgroup(const struct bh_hook *h, uint64_t pid, struct bh_err *err)
{
    struct bh_cgroups groups;
    if (!pid)
        return bh_fail(err, BH_INVALID, "the container's state has no pid");
    int rc = bh_cgroups_open("", &groups, err);
    if (rc < 0)
        return rc;
    rc = bh_cgroup_join(&groups, h->cgroup, (pid_t)pid, err);
    bh_cgroups_close(&groups);
    return rc < 0 ? bh_wrap(err, rc, "it cannot be put into the lease's cgroup") : rc;
}

int bh_hook_run(const struct bh_hook *h, int state, struct bh_err *err)
{
    struct bh_spec_state s = {0};
    int rc = read_state(state, &s, err);
    if (rc == BH_OK && h->profile)
        rc = bh_hook_judge(h, s.bundle, err);
    if (rc == BH_OK && h->cgroup)
        rc = join_cgroup(h, (uint64_t)s.pid, err);
    if (rc == BH_OK && h->net.tenant)
        rc = s.pid ? bh_net_attach(&h->net, (pid_t)s.pid, err)
                   : bh_fail(err, BH_INVALID, "the container's state has no pid");
    return rc < 0 ? bh_wrap(err, rc, "container %.80s of lease L%" PRIu64 " is not started",
                            *s.id ? s.id : "?", h->lease)
                  : BH_OK;
}
