/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maker.c - what the daemon will ask of the container tier, as a command for tests.
 *
 *     maker bundle FOLDER KEY=VALUE... -- COMMAND...
 *     maker remove FOLDER
 *     maker cdi FOLDER KEY=VALUE...            maker uncdi FOLDER LEASE        maker leases FOLDER
 *     maker net up|down|attach PID|detach|reconcile KEY=VALUE...
 *
 * Prints what failed, with the code of the failure, and exits with its status.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/bundle.h"
#include "host/cdi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct request {
    struct bh_bundle bundle;
    struct bh_net net;
    struct bh_gear gear;
    bool has_net;
};

static uint64_t number(const char *value)
{
    uint64_t v = 0;
    struct bh_err err = {0};
    if (bh_uint_parse(value, UINT64_MAX, &v, &err) < 0) {
        (void)fprintf(stderr, "maker: %s\n", err.msg);
        exit(99);
    }
    return v;
}

/* HOST:INSIDE[:w], of a node, a mount or a socket */
static int take_place(struct request *q, const char *value, char kind, struct bh_err *err)
{
    char host[2048], inside[2048];
    const size_t n = strcspn(value, ":");
    const size_t m = value[n] ? strcspn(value + n + 1, ":") : 0;
    (void)snprintf(host, sizeof(host), "%.*s", (int)n, value);
    (void)snprintf(inside, sizeof(inside), "%.*s", (int)m, value[n] ? value + n + 1 : "");
    const bool more = value[n] && value[n + 1 + m];
    if (kind == 's')
        return bh_gear_socket(&q->gear, host, inside, err);
    return kind == 'n' ? bh_gear_node(&q->gear, host, inside, more, err)
                       : bh_gear_mount(&q->gear, host, inside, more, err);
}

static int take_env(struct request *q, const char *value, struct bh_err *err)
{
    char name[2048];
    const size_t n = strcspn(value, "=");
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, value);
    return bh_gear_env(&q->gear, name, value[n] ? value + n + 1 : "", err);
}

static bool take_words(struct request *q, const char *key, const char *value)
{
    struct bh_bundle *b = &q->bundle;
    const struct {
        const char *key, **at;
    } words[] = {
        {"tenant", &b->tenant},    {"rootfs", &b->rootfs},     {"home", &b->home},
        {"cwd", &b->cwd},          {"listener", &b->listener}, {"hook", &b->hook},
        {"cpus", &b->limits.cpus}, {"mems", &b->limits.mems},
    };
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        if (bh_str_eq(key, words[i].key)) {
            *words[i].at = value;
            return true;
        }
    return false;
}

static bool take_numbers(struct request *q, const char *key, const char *value)
{
    struct bh_bundle_limits *l = &q->bundle.limits;
    const struct {
        const char *key;
        uint64_t *wide;
        uint32_t *narrow;
    } numbers[] = {
        {"lease", &q->bundle.lease, NULL},  {"uid", NULL, &q->bundle.uid},      {"gid", NULL, &q->bundle.gid},
        {"ids", NULL, &q->bundle.first_id}, {"memory", &l->memory_bytes, NULL}, {"pids", &l->pids, NULL},
        {"cpu", NULL, &l->cpu_milli},       {"rate", &q->net.bits_per_s, NULL},
    };
    for (size_t i = 0; i < BH_COUNT_OF(numbers); i++)
        if (bh_str_eq(key, numbers[i].key)) {
            const uint64_t v = number(value);
            if (numbers[i].wide)
                *numbers[i].wide = v;
            else
                *numbers[i].narrow = (uint32_t)v;
            return true;
        }
    return false;
}

static int take(struct request *q, const char *word, struct bh_err *err)
{
    char key[64];
    const size_t n = strcspn(word, "=");
    const char *value = word[n] ? word + n + 1 : "";
    (void)snprintf(key, sizeof(key), "%.*s", (int)n, word);
    if (take_words(q, key, value) || take_numbers(q, key, value))
        return BH_OK;
    if (bh_str_eq(key, "node") || bh_str_eq(key, "mount") || bh_str_eq(key, "socket"))
        return take_place(q, value, key[0], err);
    if (bh_str_eq(key, "env"))
        return take_env(q, value, err);
    if (bh_str_eq(key, "sim"))
        return bh_gear_simulated(&q->gear, value, err);
    if (bh_str_eq(key, "gpu"))
        return bh_gear_gpu(&q->gear, (uint32_t)number(value), err);
    if (bh_str_eq(key, "net")) {
        q->has_net = true;
        q->net.may_peer = strstr(value, "peers") != NULL;
        q->net.may_go_outside = strstr(value, "outside") != NULL;
        return BH_OK;
    }
    if (bh_str_eq(key, "disk")) {
        q->bundle.limits.disk_bytes_per_s = number(value);
        return bh_disks_list("", &q->bundle.limits.disks, err);
    }
    return bh_fail(err, BH_USAGE, "maker: no such word '%.100s'", word);
}

static int take_all(struct request *q, int argc, char **argv, int *ret_rest, struct bh_err *err)
{
    int rc = BH_OK, i = 0;
    for (; rc == BH_OK && i < argc && !bh_str_eq(argv[i], "--"); i++)
        rc = take(q, argv[i], err);
    *ret_rest = i < argc ? i + 1 : argc;
    q->net.lease = q->bundle.lease;
    q->net.tenant = q->bundle.tenant;
    return rc;
}

static int bundle(struct request *q, const char *folder, int argc, char **argv, struct bh_err *err)
{
    int rest;
    int rc = take_all(q, argc, argv, &rest, err);
    q->bundle.gear = &q->gear;
    q->bundle.net = q->has_net ? &q->net : NULL;
    q->bundle.argv = (const char *const *)(uintptr_t)(argv + rest);
    q->bundle.n_argv = (size_t)(argc - rest);
    return rc < 0 ? rc : bh_bundle_make(&q->bundle, folder, err);
}

static int cdi(struct request *q, const char *folder, int argc, char **argv, struct bh_err *err)
{
    int rest;
    int rc = take_all(q, argc, argv, &rest, err);
    const struct bh_cdi c = {
        .lease = q->bundle.lease, .gear = &q->gear, .hook = q->bundle.hook, .listener = q->bundle.listener};
    return rc < 0 ? rc : bh_cdi_write(folder, &c, err);
}

static void print_lease(void *arg, uint64_t lease)
{
    (void)arg;
    printf("%" PRIu64 "\n", lease);
}

static int net(struct request *q, const char *verb, int argc, char **argv, struct bh_err *err)
{
    int rest;
    pid_t pid = 0;
    if (bh_str_eq(verb, "attach") && argc > 0) {
        pid = (pid_t)number(*argv++);
        argc--;
    }
    int rc = take_all(q, argc, argv, &rest, err);
    if (rc < 0)
        return rc;
    return bh_str_eq(verb, "up")          ? bh_net_set_up(err)
           : bh_str_eq(verb, "down")      ? bh_net_tear_down(err)
           : bh_str_eq(verb, "attach")    ? bh_net_attach(&q->net, pid, err)
           : bh_str_eq(verb, "detach")    ? bh_net_detach(&q->net, err)
           : bh_str_eq(verb, "reconcile") ? bh_net_reconcile(&q->net, q->has_net, err)
                                          : bh_fail(err, BH_USAGE, "maker: no net %.60s", verb);
}

int main(int argc, char **argv)
{
    struct request q = {.bundle = {.tenant = "acme", .first_id = 200000}};
    struct bh_err err = {0};
    if (argc < 3)
        return 99;
    const char *verb = argv[1], *where = argv[2];
    const int rc = bh_str_eq(verb, "bundle")   ? bundle(&q, where, argc - 3, argv + 3, &err)
                   : bh_str_eq(verb, "remove") ? bh_bundle_remove(where, &err)
                   : bh_str_eq(verb, "cdi")    ? cdi(&q, where, argc - 3, argv + 3, &err)
                   : bh_str_eq(verb, "uncdi")  ? bh_cdi_remove(where, number(argc > 3 ? argv[3] : ""), &err)
                   : bh_str_eq(verb, "leases") ? bh_cdi_list(where, print_lease, NULL, &err)
                   : bh_str_eq(verb, "net")    ? net(&q, where, argc - 3, argv + 3, &err)
                                               : bh_fail(&err, BH_USAGE, "maker: no verb %.60s", verb);
    bh_gear_fini(&q.gear);
    bh_vec_fini(&q.bundle.limits.disks);
    if (rc < 0)
        (void)fprintf(stderr, "%s: %s\n", bh_code_str(rc), err.msg);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
