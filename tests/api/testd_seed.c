/* SPDX-License-Identifier: Apache-2.0 */
/*
 * testd_seed.c - what the tests find: tenants `a` and `b`, each with a job that runs on a card of its own (J1 L1, J2 L2), one
 * that waits (J3, J4), and a half of card 2 shared by both (J5 L3 of a, J6 L4 of b).
 */
#include "testd.h"

#include "store/state_policy.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MUST(call)                                         \
    do {                                                   \
        if ((call) < 0)                                    \
            die(#call, &(struct bh_err){.msg = "failed"}); \
    } while (0)

void testd_clock(struct testd *t)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    t->view.now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    t->view.wall_ms = t->view.now_ms;
}

static uint64_t add_job(struct testd *t, const char *tenant, const char *user)
{
    static const char *const argv[] = {"train", "--secret", NULL};
    const struct bh_store_job job = {.tenant = tenant,
                                     .user = user,
                                     .pool = "shared",
                                     .name = "seed",
                                     .uid = 1000,
                                     .gid = 1000,
                                     .gpus = 1,
                                     .milli = 1000,
                                     .profile = "",
                                     .cwd = "/",
                                     .image = "",
                                     .argv = argv,
                                     .submit_ms = t->view.now_ms,
                                     .why = "waits"};
    struct bh_err err;
    uint64_t id;
    if (bh_store_job_add(t->store, &job, &id, &err) < 0)
        die("job", &err);
    return id;
}

static void make_log(struct testd *t, uint64_t lease)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/leases/%llu", t->folder, (unsigned long long)lease);
    if (mkdir(path, 0755) < 0)
        die(path, NULL);
    (void)snprintf(path, sizeof(path), "%s/leases/%llu/out", t->folder, (unsigned long long)lease);
    FILE *f = fopen(path, "we");
    if (!f || fprintf(f, "hello of L%llu\n", (unsigned long long)lease) < 0 || fclose(f) != 0)
        die(path, NULL);
}

static void run_job(struct testd *t, uint64_t job, const char *tenant, const char *user, size_t card,
                    uint32_t milli)
{
    const uint64_t now = t->view.now_ms;
    const bool whole = milli == 1000;
    const struct bh_store_lease lease = {.job = job,
                                         .tenant = tenant,
                                         .user = user,
                                         .pool = "shared",
                                         .domain = "internal",
                                         .mechanism = whole ? BH_MECH_WHOLE : BH_MECH_TIMESLICE,
                                         .stack = whole ? "whole" : "timeslice 50%",
                                         .uid = 1000,
                                         .gid = 1000,
                                         .detail = ""};
    const struct bh_store_grant grant = {.slice = {.gpu = t->gpus[card].uuid,
                                                   .kind = whole ? BH_SLICE_WHOLE : BH_SLICE_SHARE,
                                                   .key = "",
                                                   .base = ""},
                                         .milli = milli,
                                         .mib = whole ? 81920 : 40960};
    struct bh_err err;
    uint64_t id;
    int rc = bh_store_lease_add(t->store, &lease, now, &id, &err);
    if (rc == 0)
        rc = bh_store_lease_step(t->store, id, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT, now, "within its quota",
                                 NULL, &err);
    if (rc == 0)
        rc = bh_store_lease_grant(t->store, id, BH_LEASE_BY_GRANT, &grant, 1, now, "placed", &err);
    if (rc == 0)
        rc = bh_store_lease_step(t->store, id, BH_LEASE_PREPARING, BH_LEASE_BY_READY, now, "set up", NULL,
                                 &err);
    if (rc == 0)
        rc = bh_store_job_step(t->store, job, BH_JOB_WAITING, BH_JOB_RUNNING, now, "runs", &err);
    if (rc < 0)
        die("lease", &err);
    make_log(t, id);
}

static void seed(struct testd *t)
{
    struct bh_err err;
    for (size_t i = 0; i < TESTD_GPUS; i++) {
        const struct bh_store_card card = {.uuid = t->gpus[i].uuid,
                                           .model = "H100",
                                           .index = (uint32_t)i,
                                           .memory_mib = 81920,
                                           .seen_ms = t->view.now_ms,
                                           .cordon_by = "",
                                           .cordon_why = "",
                                           .health_why = ""};
        if (bh_store_card_put(t->store, &card, &err) < 0)
            die("card", &err);
    }
    run_job(t, add_job(t, "a", "2002"), "a", "2002", 0, 1000);
    run_job(t, add_job(t, "b", "2009"), "b", "2009", 1, 1000);
    (void)add_job(t, "a", "2001");
    (void)add_job(t, "b", "2009");
    run_job(t, add_job(t, "a", "2001"), "a", "2001", 2, 500);
    run_job(t, add_job(t, "b", "2009"), "b", "2009", 2, 500);
}

static void begin_audit(struct testd *t)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/audit.key", t->folder);
    const struct bh_audit_options options = {.key_path = path, .component = "testd", .version = "0"};
    static const char *const tenants[] = {"a", "b", NULL}, *const ids[] = {"L1", "L2", "all"};
    struct bh_err err;
    if (bh_audit_open(t->store, &options, &t->audit, &err) < 0)
        die("audit", &err);
    MUST(bh_store_begin(t->store, &err));
    for (size_t i = 0; i < 3; i++) {
        const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT,
                                         .sub = "user:x",
                                         .tenant = tenants[i],
                                         .object_type = "lease",
                                         .object_id = ids[i]};
        MUST(bh_audit_append(t->audit, &e, &err));
    }
    MUST(bh_store_commit(t->store, &err));
    MUST(bh_audit_checkpoint(t->audit, &err));
}

static void fill_view(struct testd *t)
{
    static const char *const uuids[TESTD_GPUS] = {"GPU-00000000-0000-0000-0000-000000000000",
                                                  "GPU-11111111-1111-1111-1111-111111111111",
                                                  "GPU-22222222-2222-2222-2222-222222222222"};
    for (uint32_t i = 0; i < TESTD_GPUS; i++)
        t->gpus[i] = (struct bh_api_gpu){.index = i,
                                         .uuid = uuids[i],
                                         .model = "H100",
                                         .pool = "shared",
                                         .state = "ok",
                                         .layout = "whole",
                                         .fabric = i ? "nvl-0" : NULL,
                                         .numa = i ? i - 1 : UINT64_MAX,
                                         .memory_mib = 81920,
                                         .used_mib = 4242,
                                         .util_percent = 77,
                                         .temperature_c = 55,
                                         .power_mw = 300000};
    t->lives[0] = (struct bh_api_live){1, "running", 500000, 4242, 0};
    t->lives[1] = (struct bh_api_live){2, "running", 500000, 4242, 0};
    t->checks[0] = (struct bh_api_check){"store", "ok", "sound", NULL};
    t->checks[1] = (struct bh_api_check){"gpu", "warn", "one is warm", "cool it"};
    t->view = (struct bh_api_view){.policy = &t->input.units.at[0]->policy,
                                   .policy_version = 1,
                                   .fleet = t->input.has_fleet ? &t->input.fleet : NULL,
                                   .node = "testd",
                                   .version = "0",
                                   .simulated = true,
                                   .gpus = t->gpus,
                                   .n_gpus = TESTD_GPUS,
                                   .lives = t->lives,
                                   .n_lives = 2,
                                   .checks = t->checks,
                                   .n_checks = 2};
    testd_clock(t);
    t->view.started_ms = t->view.now_ms;
}

void testd_open(struct testd *t, const char *folder)
{
    const struct bh_store_options options = {.mode = BH_STORE_WRITE};
    char path[512], fleet[512];
    struct bh_err err;
    (void)snprintf(t->folder, sizeof(t->folder), "%s", folder);
    (void)snprintf(path, sizeof(path), "%s/policy.yaml", folder);
    (void)snprintf(fleet, sizeof(fleet), "%s/fleet.yaml", folder);
    const char *paths[] = {path, fleet};
    if (bh_input_load(&t->input, paths, 2, NULL, &err) < 0)
        die("policy", &err);
    if (t->input.units.n != 1 || t->input.diags.n_errors)
        die("policy", &(struct bh_err){.msg = "it is not right"});
    fill_view(t);
    (void)snprintf(path, sizeof(path), "%s/leases", folder);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/backups", folder);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/bulkhead.db", folder);
    if (bh_store_open(path, &options, &t->store, &err) < 0)
        die("store", &err);
    const struct bh_store_policy policy = {
        .text = "bulkhead: 1\n", .n = 12, .who = "user:root", .why = "first", .at_ms = t->view.now_ms};
    uint64_t version;
    if (bh_store_policy_apply(t->store, &policy, &version, &err) < 0)
        die("policy", &err);
    seed(t);
    begin_audit(t);
    testd_ops_init(t);
}

void testd_close(struct testd *t)
{
    bh_audit_close(t->audit);
    bh_store_close(t->store);
    bh_vec_fini(&t->later);
    bh_input_fini(&t->input);
}

void testd_certificate(struct bh_arena *arena, const char **ret_cert, const char **ret_key)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    gnutls_datum_t cert_pem, key_pem;
    const time_t now = time(NULL);
    MUST(gnutls_x509_privkey_init(&key));
    MUST(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                      0));
    MUST(gnutls_x509_crt_init(&crt));
    MUST(gnutls_x509_crt_set_version(crt, 3));
    MUST(gnutls_x509_crt_set_serial(crt, "\x01", 1));
    MUST(gnutls_x509_crt_set_activation_time(crt, now - 3600));
    MUST(gnutls_x509_crt_set_expiration_time(crt, now + 86400));
    MUST(gnutls_x509_crt_set_dn(crt, "CN=localhost", NULL));
    MUST(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "localhost", 9, GNUTLS_FSAN_SET));
    MUST(gnutls_x509_crt_set_key(crt, key));
    MUST(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
    MUST(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &cert_pem));
    MUST(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem));
    *ret_cert = bh_arena_strn(arena, (const char *)cert_pem.data, cert_pem.size);
    *ret_key = bh_arena_strn(arena, (const char *)key_pem.data, key_pem.size);
    gnutls_free(cert_pem.data);
    gnutls_free(key_pem.data);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}
