/* SPDX-License-Identifier: Apache-2.0 */
/* canary.c - when the driver is tested, on what, and what was written down of it. */
#include "node/watch/canary.h"

#include "base/str.h"
#include "node/decide.h"
#include "node/life.h"
#include "node/mech/scrub.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The kernel's own word, simulated GPUs or not: what is tested is gone with a boot. */
void bh_canary_boot(char ret[64])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, ret, 63) : 0;
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    if (!*ret)
        (void)snprintf(ret, 64, "unknown");
}

static const char *driver_of(const struct bh_daemon *d)
{
    return d->silicon.snapshot.driver ? d->silicon.snapshot.driver : "unknown";
}

struct order {
    char program[4000], gpu[96];
    bool quick;
};

static void work(const void *arg, struct bh_worker_result *ret)
{
    const struct order *o = arg;
    bh_scrub_ask(o->program, "canary", o->gpu, o->quick, ret);
}

/* Waited for: nobody is served yet. */
static void test(struct bh_daemon *d, const char *gpu, bool quick, struct bh_worker_result *ret)
{
    struct order o = {.quick = quick};
    struct bh_worker worker;
    struct bh_err err;
    (void)snprintf(o.program, sizeof(o.program), "%s", d->scrubber);
    (void)snprintf(o.gpu, sizeof(o.gpu), "%s", gpu);
    *ret = (struct bh_worker_result){.verdict = BH_SCRUB_UNKNOWN};
    if (bh_worker_start(work, &o, &worker, &err) < 0) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
        return;
    }
    bh_worker_name(&worker, "the driver is tested on %s", gpu);
    bh_worker_wait(&worker, ret);
    if (ret->code < 0)
        ret->verdict = BH_SCRUB_UNKNOWN;
}

/* The note only where it passed; the verdict in any case. */
static int write_verdict(struct bh_daemon *d, const char *gpu, const char *key, const char *value,
                         const struct bh_worker_result *r, bool cordon, struct bh_err *err)
{
    const bool clean = r->verdict == BH_SCRUB_CLEAN;
    const struct bh_audit_event e = {.event = BH_AUDIT_SELFTEST_VERDICT,
                                     .outcome = clean ? BH_AUDIT_SUCCESS : BH_AUDIT_FAILURE,
                                     .sub = "service:bulkheadd",
                                     .object_type = "gpu",
                                     .object_id = gpu,
                                     .after = bh_scrub_verdict_str((enum bh_scrub_verdict)r->verdict),
                                     .reason = r->text};
    int rc = clean ? bh_store_note_set_text(d->store, key, value, err) : BH_OK;
    if (rc == BH_OK && cordon)
        rc = bh_store_card_cordon(d->store, gpu, bh_daemon_now(d), "service:bulkheadd", r->text, err);
    return rc == BH_OK ? bh_audit_append(d->audit, &e, err) : rc;
}

static int record(struct bh_daemon *d, const char *gpu, const char *key, const char *value,
                  const struct bh_worker_result *r, bool cordon, struct bh_err *err)
{
    const int rc = bh_life_begin(d, err);
    return rc < 0 ? rc : bh_life_end(d, write_verdict(d, gpu, key, value, r, cordon, err), err);
}

/* ---- the driver ---- */

int bh_canary_driver(struct bh_daemon *d, bool *ret_shares, struct bh_err *err)
{
    const struct bh_gpu_snapshot *s = &d->silicon.snapshot;
    struct bh_worker_result result = {0};
    struct bh_arena arena = {0};
    struct bh_store_note note;
    char boot[64];
    bh_canary_boot(boot);
    const char *key = bh_arena_printf(&arena, "canary/%s/%s", driver_of(d), boot);
    int rc = bh_store_note_get(d->store, &arena, key, &note, err);
    if (rc == BH_OK) {
        (void)snprintf(d->canary, sizeof(d->canary), "%s", (const char *)note.value);
    } else if (rc == BH_NOT_FOUND && s->devices.n && s->devices.at[0].uuid) {
        test(d, s->devices.at[0].uuid, false, &result);
        if (result.verdict == BH_SCRUB_CLEAN) {
            (void)snprintf(d->canary, sizeof(d->canary), "driver %.60s: %.180s", driver_of(d), result.text);
        } else {
            (void)snprintf(d->canary_why, sizeof(d->canary_why), "%.190s", result.text);
            bh_daemon_say(d, "GPUs are not shared here: %s", result.text);
        }
        rc = record(d, s->devices.at[0].uuid, key, d->canary, &result, false, err);
    } else if (rc == BH_NOT_FOUND) {
        rc = BH_OK;
    }
    *ret_shares = *d->canary != '\0';
    bh_arena_fini(&arena);
    return rc;
}

/* ---- each card ---- */

static bool gives_shares(const struct bh_pool *p)
{
    const enum bh_mechanism m = bh_pool_effective(p);
    return m != BH_MECH_WHOLE && m != BH_MECH_MIG;
}

/* Whoever has something of it would be in the way, and might be put out by it. */
static bool is_free(struct bh_daemon *d, struct bh_arena *arena, const char *gpu)
{
    bh_store_slices slices = {0};
    struct bh_err err;
    bool yes = bh_store_slices_list(d->store, arena, gpu, 0, &slices, &err) == BH_OK;
    for (size_t i = 0; i < slices.n; i++)
        yes = yes && slices.at[i].state == BH_SLICE_FREE;
    bh_vec_fini(&slices);
    return yes;
}

static void test_card(struct bh_daemon *d, const char *gpu)
{
    struct bh_arena arena = {0};
    struct bh_worker_result result;
    struct bh_store_note note;
    struct bh_err err;
    char boot[64];
    bh_canary_boot(boot);
    const char *key = bh_arena_printf(&arena, "canary-card/%s", gpu);
    const char *value = bh_arena_printf(&arena, "%s %s", driver_of(d), boot);
    const bool known =
        bh_store_note_get(d->store, &arena, key, &note, &err) == BH_OK && bh_str_eq(note.value, value);
    if (!known && is_free(d, &arena, gpu)) {
        test(d, gpu, true, &result);
        const bool clean = result.verdict == BH_SCRUB_CLEAN;
        if (!clean)
            bh_daemon_say(d, "%s is not shared: %s", gpu, result.text);
        if (record(d, gpu, key, value, &result, !clean, &err) < 0)
            bh_decide_later(d, &err);
        else if (!clean)
            bh_decide_health(d, gpu);
    }
    bh_arena_fini(&arena);
}

void bh_canary_cards(struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && d->shares && i < p->pools.n; i++)
        for (size_t k = 0; gives_shares(&p->pools.at[i]) && k < p->pools.at[i].gpus.n; k++) {
            const char *gpu = bh_silicon_uuid(&d->silicon, p->pools.at[i].gpus.at[k]);
            if (gpu)
                test_card(d, gpu);
        }
}
