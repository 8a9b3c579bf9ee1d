/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.c - asks bulkhead-scrub, or the test of the driver, and writes the verdict down.
 *
 * The program says one line: a verdict (`clean`, `found`, `unknown`), how many bytes it looked at of how many, and words. No
 * such line, or no program, is `unknown`: nobody gets the slice.
 */
#include "node/mech/scrub.h"

#include "base/str.h"
#include "base/units.h"
#include "node/mech/vacant.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024, UNKNOWNS = 3, PATIENCE_MS = 4000 };

static void unknown(struct bh_worker_result *ret, const char *what)
{
    ret->verdict = BH_SCRUB_UNKNOWN;
    (void)snprintf(ret->text, sizeof(ret->text), "%s", what);
}

/* The first line of what a program says; false: it could not be run, or ended badly. */
static bool ask(char *const argv[], char line[LINE_MAX_BYTES])
{
    int ends[2], status = -1;
    size_t n = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        /* Nobody would read what it says, and it would hold the card. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
            _exit(127);
        (void)dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    while (pid > 0 && n < LINE_MAX_BYTES - 1) {
        const ssize_t got = read(ends[0], line + n, LINE_MAX_BYTES - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* `clean 150323855360 150323855360 71680 pages ...` */
static bool read_line(char *line, struct bh_worker_result *ret)
{
    char *word[3], *rest = line;
    for (size_t i = 0; i < BH_COUNT_OF(word); i++) {
        word[i] = rest;
        rest = strchr(rest, ' ');
        if (!rest)
            return false;
        *rest++ = '\0';
    }
    struct bh_err err;
    ret->verdict = BH_SCRUB_VERDICTS;
    for (unsigned v = 0; v < BH_SCRUB_VERDICTS; v++)
        if (strcmp(word[0], bh_scrub_verdict_str((enum bh_scrub_verdict)v)) == 0)
            ret->verdict = v;
    if (ret->verdict == BH_SCRUB_VERDICTS ||
        bh_uint_parse(word[1], UINT64_MAX, &ret->probed_bytes, &err) < 0 ||
        bh_uint_parse(word[2], UINT64_MAX, &ret->total_bytes, &err) < 0)
        return false;
    (void)snprintf(ret->text, sizeof(ret->text), "%s", rest);
    return true;
}

void bh_scrub_ask(const char *program, const char *mode, const char *gpu, bool quick,
                  struct bh_worker_result *ret)
{
    char line[LINE_MAX_BYTES], a0[4000], a1[16], a3[96], a4[] = "--quick";
    char *argv[] = {a0, a1, a3, quick ? a4 : NULL, NULL};
    (void)snprintf(a0, sizeof(a0), "%s", program);
    (void)snprintf(a1, sizeof(a1), "%s", mode);
    (void)snprintf(a3, sizeof(a3), "%s", gpu);
    if (!ask(argv, line) || !read_line(line, ret))
        unknown(ret, "the program that scrubs said nothing that could be read");
}

/* A card or an instance, of which nobody has anything before and after, and of which next to nothing is left out. */
static void scrub_vacant(const struct bh_scrub_order *o, const char *uuid, struct bh_worker_result *ret)
{
    struct bh_vacant before, after;
    char words[sizeof(ret->text)], part[160];
    bh_vacant_look(uuid, PATIENCE_MS, &before);
    if (!before.vacant) {
        ret->total_bytes = before.usable_bytes;
        unknown(ret, before.words);
        return;
    }
    bh_scrub_ask(o->program, "scrub", uuid, false, ret);
    ret->total_bytes = before.usable_bytes;
    if (ret->verdict != BH_SCRUB_CLEAN)
        return;
    const bool covered = bh_vacant_covered(&before, ret->probed_bytes, part, sizeof(part));
    (void)snprintf(words, sizeof(words), "%s; %.300s", part, ret->text);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", words);
    if (!covered)
        ret->verdict = BH_SCRUB_UNKNOWN;
    bh_vacant_look(uuid, PATIENCE_MS, &after);
    if (!after.vacant)
        unknown(ret, after.words);
}

/* One that is gone is cut again where it was: it has the same memory. */
static void scrub_instance(const struct bh_scrub_order *o, struct bh_worker_result *ret)
{
    struct bh_mech_device device;
    struct bh_err err;
    if (bh_mech_cut_here(&o->cut, &device, &err) < 0)
        unknown(ret, err.msg);
    else
        scrub_vacant(o, device.uuid, ret);
}

void bh_scrub_work(const void *order, struct bh_worker_result *ret)
{
    const struct bh_scrub_order *o = order;
    if (o->kind == BH_SLICE_MIG) {
        scrub_instance(o, ret);
        return;
    }
    if (o->kind != BH_SLICE_SHARE) {
        scrub_vacant(o, o->gpu, ret);
        return;
    }
    /* What it freed cannot be reached by anybody but the driver. */
    if (*o->canary) {
        ret->verdict = BH_SCRUB_CLEAN;
        (void)snprintf(ret->text, sizeof(ret->text), "%s", o->canary);
    } else {
        unknown(ret, "this driver was not seen to clear what it frees");
    }
}

/* ---- which slice ---- */

static void order_of(const struct bh_daemon *d, const struct bh_store_grant *g, struct bh_scrub_order *ret)
{
    *ret = (struct bh_scrub_order){.kind = (uint8_t)g->slice.kind, .grant = g->id};
    (void)snprintf(ret->gpu, sizeof(ret->gpu), "%s", g->slice.gpu);
    (void)snprintf(ret->key, sizeof(ret->key), "%s", g->slice.key);
    (void)snprintf(ret->base, sizeof(ret->base), "%s", g->slice.base);
    (void)snprintf(ret->program, sizeof(ret->program), "%s", d->scrubber);
    (void)snprintf(ret->canary, sizeof(ret->canary), "%s", d->canary);
    struct bh_err err; /* a card that is gone has no such place: the worker will say that it is not there */
    if (g->slice.kind == BH_SLICE_MIG && bh_mech_cut_of(d, &g->slice, &ret->cut, &err) < 0)
        (void)snprintf(ret->cut.gpu, sizeof(ret->cut.gpu), "%s", g->slice.gpu);
}

/* The verdict that stands against a slice since the lease left it; NULL: none. What could not be looked at may be once more. */
static const struct bh_store_scrub *verdict_on(const bh_store_scrubs *all, const struct bh_slice_name *name,
                                               uint64_t since_ms)
{
    const struct bh_store_scrub *last = NULL;
    unsigned unknowns = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct bh_store_scrub *s = &all->at[i];
        if (s->at_ms < since_ms || !bh_str_eq(s->slice.gpu, name->gpu) || !bh_str_eq(s->slice.key, name->key))
            continue;
        unknowns += s->verdict == BH_SCRUB_UNKNOWN;
        if (s->verdict == BH_SCRUB_FOUND || unknowns >= UNKNOWNS)
            last = s;
    }
    return last;
}

int bh_scrub_next(struct bh_daemon *d, const struct bh_life *run, struct bh_scrub_order *ret,
                  struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_grants grants = {0};
    bh_store_scrubs scrubs = {0};
    int rc = bh_store_lease_grants(d->store, &arena, run->lease, &grants, err);
    if (rc == BH_OK)
        rc = bh_store_scrubs_list(d->store, &arena, run->lease, NULL, &scrubs, err);
    bool found = false;
    for (size_t i = 0; rc == BH_OK && !found && i < grants.n; i++) {
        if (grants.at[i].proved)
            continue;
        const struct bh_store_scrub *before = verdict_on(&scrubs, &grants.at[i].slice, run->since_ms);
        order_of(d, &grants.at[i], ret);
        found = true;
        if (before)
            rc = bh_fail(err, BH_REFUSED, "%s of %s: %s", *ret->key ? ret->key : "memory", ret->gpu,
                         before->words);
    }
    if (rc == BH_OK && !found)
        rc = bh_fail(err, BH_NOT_FOUND, "every slice is proved clean");
    bh_vec_fini(&scrubs);
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
    return rc;
}

int bh_scrub_record(struct bh_daemon *d, struct bh_life *run, const struct bh_worker_result *result,
                    struct bh_err *err)
{
    struct bh_scrub_order o;
    int rc = bh_scrub_next(d, run, &o, err);
    if (rc < 0)
        return rc;
    const bool clean = result->code == BH_OK && result->verdict == BH_SCRUB_CLEAN;
    const struct bh_store_scrub row = {
        .lease = run->lease,
        .slice = {.gpu = o.gpu, .kind = (enum bh_slice_kind)o.kind, .key = o.key, .base = o.base},
        .verdict = result->code == BH_OK ? (enum bh_scrub_verdict)result->verdict : BH_SCRUB_UNKNOWN,
        .method = o.kind == BH_SLICE_SHARE ? "driver, tested with canaries" : "overwrite and probe",
        .probed_bytes = result->probed_bytes,
        .total_bytes = result->total_bytes,
        .words = result->text,
        .at_ms = bh_daemon_now(d)};
    const struct bh_audit_event e = {.event = clean ? BH_AUDIT_SCRUB_VERIFY : BH_AUDIT_SCRUB_FAIL,
                                     .outcome = clean ? BH_AUDIT_SUCCESS : BH_AUDIT_FAILURE,
                                     .sub = "service:bulkheadd",
                                     .tenant = run->tenant,
                                     .object_type = "gpu",
                                     .object_id = o.gpu,
                                     .reason = result->text};
    if (!clean) {
        d->checks.scrubs_failed++;
        (void)snprintf(d->checks.scrub, sizeof(d->checks.scrub), "%.90s: %.140s", o.gpu, result->text);
    }
    rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    rc = bh_store_scrub_add(d->store, &row, NULL, err);
    if (rc == BH_OK)
        rc = bh_audit_append(d->audit, &e, err);
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}
