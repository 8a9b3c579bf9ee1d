/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_empty.c - who is in a lease's cgroup, what they used, and how it gets empty and goes. */
#include "host/cgroup.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/cgroup_file.h"
#include "host/cgroup_parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 16, NAP_MS = 2, NAP_MS_MAX = 50, ALMOST_MS = 200 };

/* ---- walking ---- */

/* The folder of a group, to be walked; -1 with errno. */
static int open_group(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls fn with each folder right below. Takes dir. */
static void each_below(int dir, void (*fn)(int dir, const char *name, void *arg), void *arg)
{
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            fn(dirfd(d), e->d_name, arg);
    closedir(d);
}

/* ---- who ---- */

static void take_pids(const char *text, struct bh_cgroup_pids *ret)
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\n");
        char word[16];
        uint64_t pid;
        if (n && n < sizeof(word)) {
            memcpy(word, at, n);
            word[n] = '\0';
            /* 0: somebody who is not in our pid namespace. */
            if (bh_uint_parse(word, INT32_MAX, &pid, NULL) == BH_OK && pid)
                *bh_vec_push(ret) = (pid_t)pid;
        }
        at += n + (at[n] == '\n');
    }
}

struct walk {
    struct bh_cgroup_pids *pids;
    unsigned depth;
};

static void list_one(int dir, const char *name, void *arg)
{
    struct walk *w = arg;
    const int fd = open_group(dir, name);
    if (fd < 0)
        return;
    BH_AUTOFREE char *text = bh_cgroup_read_at(fd, "cgroup.procs");
    if (text)
        take_pids(text, w->pids);
    if (w->depth == DEPTH_MAX) {
        close(fd);
        return;
    }
    w->depth++;
    each_below(fd, list_one, w);
    w->depth--;
}

static int by_number(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

int bh_cgroup_list(const struct bh_cgroups *c, const char *name, struct bh_cgroup_pids *ret,
                   struct bh_err *err)
{
    struct walk w = {.pids = ret};
    const int rc = bh_cgroup_check_name(name, err);
    size_t n = 0;
    ret->n = 0;
    for (size_t i = 0; rc == BH_OK && i < c->n; i++)
        list_one(c->at[i].fd, name, &w);
    if (ret->n)
        qsort(ret->at, ret->n, sizeof(*ret->at), by_number);
    for (size_t i = 0; i < ret->n; i++)
        if (n == 0 || ret->at[n - 1] != ret->at[i])
            ret->at[n++] = ret->at[i];
    ret->n = n;
    return rc;
}

/* To whom, as just listed. */
static size_t send(const struct bh_cgroup_pids *to, int signal)
{
    size_t n = 0;
    for (size_t i = 0; i < to->n; i++)
        n += kill(to->at[i], signal) == 0;
    return n;
}

int bh_cgroup_signal(const struct bh_cgroups *c, const char *name, int signal, struct bh_err *err)
{
    struct bh_cgroup_pids pids = {0};
    const int rc = bh_cgroup_list(c, name, &pids, err);
    if (rc == BH_OK)
        (void)send(&pids, signal);
    bh_vec_fini(&pids);
    return rc;
}

/* ---- freezing, ending ---- */

int bh_cgroup_freeze(const struct bh_cgroups *c, const char *name, bool frozen, struct bh_err *err)
{
    const struct bh_cgroup_hierarchy *h = NULL;
    int rc = bh_cgroup_check_name(name, err);
    if (rc < 0)
        return rc;
    /* Where there are both, version 1 is the one that runtimes use. */
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].controllers & BH_CGROUP_FREEZER && (!h || h->unified))
            h = &c->at[i];
    if (!h)
        return bh_fail(err, BH_REFUSED, "this machine cannot freeze processes: no freezer is mounted");
    const int error = h->unified ? bh_cgroup_set(h, name, "cgroup.freeze", frozen ? "1" : "0")
                                 : bh_cgroup_set(h, name, "freezer.state", frozen ? "FROZEN" : "THAWED");
    return error ? bh_cgroup_fail(err, error, name, frozen ? "freezing it" : "thawing it") : BH_OK;
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(unsigned ms)
{
    const struct timespec t = {.tv_nsec = (long)ms * 1000000L};
    (void)nanosleep(&t, NULL);
}

/* Frozen, nobody forks and nobody goes between the list and the signal; what was sent is heard when they thaw. */
static int kill_once(const struct bh_cgroups *c, const char *name, struct bh_cgroup_pids *pids,
                     struct bh_err *err)
{
    (void)!bh_cgroup_freeze(c, name, true, NULL); /* there may be no freezer, or no group there */
    const int rc = bh_cgroup_list(c, name, pids, err);
    if (rc == BH_OK && pids->n) {
        for (size_t i = 0; i < c->n; i++)
            if (c->at[i].unified)
                (void)bh_cgroup_set(&c->at[i], name, "cgroup.kill", "1"); /* since Linux 5.14 */
        (void)send(pids, SIGKILL);
    }
    (void)!bh_cgroup_freeze(c, name, false, NULL);
    return rc;
}

int bh_cgroup_kill(const struct bh_cgroups *c, const char *name, unsigned patience_ms, struct bh_err *err)
{
    const int64_t until = now_ms() + patience_ms;
    struct bh_cgroup_pids pids = {0};
    unsigned wait = NAP_MS;
    int rc;
    for (;;) {
        rc = kill_once(c, name, &pids, err);
        if (rc < 0 || pids.n == 0)
            break;
        if (now_ms() >= until) {
            rc = bh_fail(
                err, BH_BUSY,
                "cgroup '%.128s': %zu processes do not end, the first is %d; they may hang in a driver", name,
                pids.n, (int)pids.at[0]);
            break;
        }
        nap(wait);
        wait = wait * 2 < NAP_MS_MAX ? wait * 2 : NAP_MS_MAX;
    }
    bh_vec_fini(&pids);
    return rc;
}

/* ---- going ---- */

struct removal {
    int error; /* of the last that stayed */
    unsigned depth;
};

static void remove_one(int dir, const char *name, void *arg)
{
    struct removal *r = arg;
    if (r->depth < DEPTH_MAX) {
        const int fd = open_group(dir, name);
        r->depth++;
        if (fd >= 0)
            each_below(fd, remove_one, r);
        r->depth--;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r->error = errno;
}

/* Who was killed is not out of the group in the same instant. */
int bh_cgroup_remove(const struct bh_cgroups *c, const char *name, struct bh_err *err)
{
    const int64_t until = now_ms() + ALMOST_MS;
    struct bh_cgroup_pids pids = {0};
    struct removal r;
    const int rc = bh_cgroup_check_name(name, err);
    if (rc < 0)
        return rc;
    for (;;) {
        /* All of it or nothing: one who is about to join everywhere may be in the first only. */
        r = (struct removal){.error = bh_cgroup_list(c, name, &pids, NULL) == BH_OK && pids.n ? EBUSY : 0};
        for (size_t i = 0; !r.error && i < c->n; i++)
            remove_one(c->at[i].fd, name, &r);
        if (r.error != EBUSY || now_ms() >= until)
            break;
        nap(NAP_MS);
    }
    bh_vec_fini(&pids);
    if (r.error == EBUSY)
        return bh_fail(err, BH_BUSY, "cgroup '%.128s' is not empty", name);
    return r.error ? bh_cgroup_fail(err, r.error, name, "removing it") : BH_OK;
}

bool bh_cgroup_is_gone(const struct bh_cgroups *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (faccessat(c->at[i].fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            return false;
    return bh_cgroup_check_name(name, NULL) == BH_OK;
}

/* ---- what the kernel counted ---- */

bool bh_cgroup_memory_peak(const struct bh_cgroups *c, const char *name, uint64_t *ret_bytes)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_MEMORY);
    BH_AUTOFREE char *text =
        h ? bh_cgroup_get(h, name, h->unified ? "memory.peak" : "memory.max_usage_in_bytes") : NULL;
    if (text)
        text[strcspn(text, "\n")] = '\0';
    return text && bh_uint_parse(text, UINT64_MAX, ret_bytes, NULL) == BH_OK;
}

bool bh_cgroup_cpu_ns(const struct bh_cgroups *c, const char *name, uint64_t *ret_ns)
{
    /* On version 1 what counts stands in a hierarchy that may limit nothing. */
    for (size_t i = 0; i < c->n; i++) {
        BH_AUTOFREE char *text =
            bh_cgroup_get(&c->at[i], name, c->at[i].unified ? "cpu.stat" : "cpuacct.usage");
        if (text)
            text[c->at[i].unified ? strlen(text) : strcspn(text, "\n")] = '\0';
        if (text && !c->at[i].unified && bh_uint_parse(text, UINT64_MAX, ret_ns, NULL) == BH_OK)
            return true;
        if (text && c->at[i].unified && bh_cgroup_field(text, "usage_usec", ret_ns) &&
            *ret_ns < UINT64_MAX / 1000) {
            *ret_ns *= 1000;
            return true;
        }
    }
    return false;
}

bool bh_cgroup_out_of_memory(const struct bh_cgroups *c, const char *name, uint64_t *ret_killed)
{
    const struct bh_cgroup_hierarchy *h = bh_cgroup_holder(c, BH_CGROUP_MEMORY);
    BH_AUTOFREE char *text =
        h ? bh_cgroup_get(h, name, h->unified ? "memory.events" : "memory.oom_control") : NULL;
    return text && bh_cgroup_field(text, "oom_kill", ret_killed);
}

/* ---- what is there ---- */

struct names {
    struct bh_cgroup_names *ret;
    struct bh_arena *arena;
};

static void name_one(int dir, const char *name, void *arg)
{
    const struct names *n = arg;
    (void)dir;
    for (size_t i = 0; i < n->ret->n; i++)
        if (bh_str_eq(n->ret->at[i], name))
            return;
    *bh_vec_push(n->ret) = bh_arena_str(n->arena, name);
}

int bh_cgroup_below(const struct bh_cgroups *c, const char *name, struct bh_arena *arena,
                    struct bh_cgroup_names *ret, struct bh_err *err)
{
    struct names n = {ret, arena};
    const int rc = bh_cgroup_check_name(name, err);
    for (size_t i = 0; rc == BH_OK && i < c->n; i++) {
        const int fd = open_group(c->at[i].fd, name);
        if (fd >= 0)
            each_below(fd, name_one, &n);
    }
    return rc;
}
