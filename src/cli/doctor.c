/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "base/str.h"
#include "core/model/advisory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAMED_GPUS_MAX = 8, DAYS_TO_PATCH = 30, CVSS_HIGH = 70 };

const struct bh_doctor_layer bh_doctor_layers[] = {
    {"silicon", bh_checks_silicon},
    {"driver", bh_checks_driver},
    {"device nodes", bh_checks_devices},
    {"fabric", bh_checks_fabric},
    {"kernel boundary", bh_checks_kernel},
    {"containers", bh_checks_containers},
    {"virtualisation", bh_checks_virtual},
    {"scheduler", bh_checks_scheduler},
    {"MPS", bh_checks_mps},
    {"host", bh_checks_host},
    {0},
};

const char *bh_check_state_str(unsigned state)
{
    static const char *const words[BH_N_CHECK_STATES] = {
        [BH_CHECK_OK] = "ok",         [BH_CHECK_NOTE] = "note",       [BH_CHECK_ATTENTION] = "attention",
        [BH_CHECK_BROKEN] = "broken", [BH_CHECK_UNKNOWN] = "unknown", [BH_CHECK_NONE] = "not-applicable",
    };
    return words[state];
}

static const struct {
    const char *name, *word;
} modes[BH_N_MODES] = {
    {"whole GPU", "whole"},
    {"MIG", "mig"},
    {"gate", "gate"},
    {"MPS", "mps"},
    {"NVLink", "nvlink"},
    {"suspend", "suspend"},
    {"container tier", "container"},
    {"VM tier", "vm"},
    {"confidential VM tier", "cvm"},
};

const char *bh_mode_str(size_t mode)
{
    return modes[mode].name;
}

const char *bh_mode_word(size_t mode)
{
    return modes[mode].word;
}

/* ---- judging ---- */

static bool has_living_gpu(const struct bh_doctor_facts *f)
{
    for (size_t i = 0; f->gpus && i < f->gpus->devices.n; i++)
        if (f->gpus->devices.at[i].alive)
            return true;
    return false;
}

static struct bh_check_result judge_one(struct bh_doctor *d, const struct bh_check *c)
{
    if (c->needs_gpu && !has_living_gpu(d->f))
        return bh_saw(d, BH_CHECK_NONE, 0, "no GPU to look at");
    if (c->needs_live && d->f->probes->skipped)
        return bh_saw(d, BH_CHECK_UNKNOWN, c->modes, "%s", d->f->probes->skipped);
    return c->judge(d);
}

void bh_doctor_judge(struct bh_doctor *d, const struct bh_doctor_facts *f)
{
    d->f = f;
    for (const struct bh_doctor_layer *l = bh_doctor_layers; l->name; l++)
        for (const struct bh_check *c = l->checks; c->id; c++) {
            size_t before = d->details.n;
            struct bh_check_result r = judge_one(d, c);
            assert((r.takes & ~c->modes) == 0 && (r.state != BH_CHECK_OK || !r.takes));
            r.check = c;
            r.first_detail = (uint32_t)before;
            r.n_details = (uint32_t)(d->details.n - before);
            *bh_vec_push(&d->results) = r;
        }
}

void bh_doctor_fini(struct bh_doctor *d)
{
    bh_vec_fini(&d->results);
    bh_vec_fini(&d->details);
    bh_arena_fini(&d->arena);
}

/* A reason to say no outweighs one not to know. Layers stand in the order in which they build on each other. */
void bh_doctor_promises(const struct bh_doctor *d, struct bh_promise ret[BH_N_MODES])
{
    for (size_t m = 0; m < BH_N_MODES; m++) {
        ret[m] = (struct bh_promise){BH_CAN, NULL};
        for (size_t i = 0; i < d->results.n && ret[m].can != BH_CANNOT; i++) {
            const struct bh_check_result *r = &d->results.at[i];
            if (!(r->takes >> m & 1))
                continue;
            if (r->state != BH_CHECK_UNKNOWN)
                ret[m] = (struct bh_promise){BH_CANNOT, r};
            else if (ret[m].can == BH_CAN)
                ret[m] = (struct bh_promise){BH_CAN_UNKNOWN, r};
        }
    }
}

size_t bh_doctor_count(const struct bh_doctor *d, enum bh_check_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < d->results.n; i++)
        n += d->results.at[i].state == state;
    return n;
}

int bh_doctor_exit(const struct bh_doctor *d)
{
    bool bad = bh_doctor_count(d, BH_CHECK_ATTENTION) || bh_doctor_count(d, BH_CHECK_BROKEN);
    return bad ? BH_EXIT_FOUND : BH_EXIT_OK;
}

/* ---- for the judges ---- */

BH_PRINTF(2, 0) static char *format(struct bh_doctor *d, const char *fmt, va_list ap)
{
    char text[1024];
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    return bh_arena_str(&d->arena, text);
}

struct bh_check_result bh_saw(struct bh_doctor *d, enum bh_check_state state, uint32_t takes, const char *fmt,
                              ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct bh_check_result r = {.state = (uint8_t)state, .takes = takes, .seen = format(d, fmt, ap)};
    va_end(ap);
    return r;
}

void bh_doctor_detail(struct bh_doctor *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *bh_vec_push(&d->details) = format(d, fmt, ap);
    va_end(ap);
}

const char *bh_doctor_gpus(struct bh_doctor *d, bh_gpu_question *asks, size_t *ret_n)
{
    struct bh_buf b;
    size_t n = 0;
    bh_buf_init(&b, 1024);
    for (size_t i = 0; d->f->gpus && i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *g = &d->f->gpus->devices.at[i];
        if (!g->alive || !asks(d, g))
            continue;
        if (n < NAMED_GPUS_MAX)
            bh_buf_printf(&b, "%s%" PRIu32, n ? ", " : "", g->index);
        n++;
    }
    if (n > NAMED_GPUS_MAX)
        bh_buf_printf(&b, " and %zu more", n - NAMED_GPUS_MAX);
    char *text = bh_arena_printf(&d->arena, "%s %s", n == 1 ? "GPU" : "GPUs", bh_buf_text(&b));
    bh_buf_fini(&b);
    *ret_n = n;
    return text;
}

const char *bh_doctor_simulated(const struct bh_doctor *d)
{
    const struct bh_gpu_snapshot *s = d->f->gpus;
    if (s && s->simulated)
        return s->library ? s->library : "a stand-in";
    return d->f->stand_in;
}

bool bh_doctor_amd_alone(const struct bh_doctor *d)
{
    return !d->f->gpus && d->f->gpus_err.code == BH_NOT_FOUND && d->f->amd && d->f->amd->devices.n;
}

/* bh_nvml_why's words: a reading keeps no status. */
bool bh_reading_lacks(struct bh_reading r)
{
    return r.why && bh_str_eq(r.why, "not supported by this GPU");
}

bool bh_reading_blind(struct bh_reading r)
{
    return r.why && !bh_reading_lacks(r);
}

const char *bh_doctor_param(const struct bh_doctor *d, const char *key)
{
    const struct bh_platform *p = d->f->platform;
    for (size_t i = 0; i < p->params.n; i++)
        if (bh_str_eq(p->params.at[i].key, key))
            return p->params.at[i].value;
    return NULL;
}

uint64_t bh_doctor_largest(const struct bh_doctor *d)
{
    uint64_t most = 0;
    for (size_t i = 0; d->f->gpus && i < d->f->gpus->devices.n; i++) {
        const struct bh_gpu_device *g = &d->f->gpus->devices.at[i];
        if (g->alive && !g->total_bytes.why && g->total_bytes.v > most)
            most = g->total_bytes.v;
    }
    return most;
}

bool bh_doctor_at_least(const char *a, const char *b)
{
    struct bh_version x, y;
    return bh_version_parse(a, &x, NULL) == 0 && bh_version_parse(b, &y, NULL) == 0 &&
           bh_version_compare(&x, &y) >= 0;
}

struct bh_check_result bh_doctor_advisories(struct bh_doctor *d, const char *component, const char *version)
{
    struct bh_exposure e;
    struct bh_err err;
    if (bh_advisory_check(component, version, d->f->day, &e, &err) < 0)
        return bh_saw(d, BH_CHECK_UNKNOWN, 0, "%s", err.msg);
    if (!e.n_open && !e.unpatched_branch)
        return bh_saw(d, BH_CHECK_OK, 0, "%s has every published fix", version);
    if (e.n_open)
        bh_doctor_detail(d, "open: %s", e.worst->cves);
    struct bh_check_result r;
    if (!e.n_open) {
        r = bh_saw(d, BH_CHECK_ATTENTION, 0, "%s: its branch gets no more fixes", version);
    } else {
        int32_t days = d->f->day - e.oldest->published_day;
        bool grave = e.worst->cvss_tenths >= CVSS_HIGH;
        r = bh_saw(d, grave || days > DAYS_TO_PATCH ? BH_CHECK_ATTENTION : BH_CHECK_NOTE, 0,
                   "%s: %zu %s open, the worst %s (%u.%u), the oldest for %" PRId32 " days", version,
                   e.n_open, e.n_open == 1 ? "bulletin" : "bulletins", e.worst->worst_cve,
                   e.worst->cvss_tenths / 10u, e.worst->cvss_tenths % 10u, days);
    }
    if (e.fix_version)
        r.mend = bh_arena_printf(&d->arena, "update to %s or later; until then one trust domain a node",
                                 e.fix_version);
    return r;
}
