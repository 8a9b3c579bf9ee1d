/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/synth.h"

#include "base/str.h"
#include "base/units.h"
#include "replay/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PERCENT = 100, DECILES = 10, MINUTE_S = 60 };

/* ---- words ---- */

static const char *const shape_names[BH_SYNTH_SHAPES] = {
    [BH_SYNTH_OPENB] = "openb",
    [BH_SYNTH_CHRONUS] = "chronus",
    [BH_SYNTH_GAVEL] = "gavel",
};
static const struct bh_synth defaults[BH_SYNTH_SHAPES] = {
    [BH_SYNTH_OPENB] = {.shape = BH_SYNTH_OPENB, .seed = 1, .nodes = 200},
    [BH_SYNTH_CHRONUS] =
        {.shape = BH_SYNTH_CHRONUS, .seed = 1, .jobs = 3000, .tenants = 11, .gpus = 96, .load = 115},
    [BH_SYNTH_GAVEL] =
        {.shape = BH_SYNTH_GAVEL, .seed = 1, .jobs = 1500, .tenants = 15, .gpus = 50, .load = 115},
};

/* What may be said after the shape's name; of: bits of the shapes that know the word. */
enum {
    OF_OPENB = 1 << BH_SYNTH_OPENB,
    OF_JOBS = 1 << BH_SYNTH_CHRONUS | 1 << BH_SYNTH_GAVEL,
    OF_ALL = OF_OPENB | OF_JOBS
};
static const struct word {
    const char *name;
    uint8_t of;
    uint64_t min, max;
    size_t offset;
} words[] = {
    {"nodes", OF_OPENB, 1, BH_OPENB_NODES, offsetof(struct bh_synth, nodes)},
    {"pods", OF_OPENB, 1, BH_OPENB_PODS, offsetof(struct bh_synth, pods)},
    {"spec", OF_OPENB, 0, PERCENT, offsetof(struct bh_synth, spec)},
    {"jobs", OF_JOBS, 2, BH_JOBS_MAX, offsetof(struct bh_synth, jobs)},
    {"tenants", OF_JOBS, 1, BH_JOB_TENANTS, offsetof(struct bh_synth, tenants)},
    {"gpus", OF_JOBS, 1, BH_REPLAY_GPUS_MAX, offsetof(struct bh_synth, gpus)},
    {"load", OF_JOBS, 1, 1000, offsetof(struct bh_synth, load)},
};

static int fail_word(const struct bh_synth *y, const char *word, struct bh_err *err)
{
    const char *known[BH_COUNT_OF(words) + 1];
    char list[120] = "";
    size_t n = 0, used = 0;
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        if (words[i].of >> y->shape & 1)
            known[n++] = words[i].name;
    known[n++] = "seed";
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", known[i]);
    const char *near = bh_str_nearest(word, known, n);
    if (near)
        return bh_fail(err, BH_USAGE, "'%.40s' is unknown to %s; did you mean '%s'?", word,
                       shape_names[y->shape], near);
    return bh_fail(err, BH_USAGE, "'%.40s' is unknown to %s, which takes %s", word, shape_names[y->shape],
                   list);
}

static int set_word(struct bh_synth *y, char *word, struct bh_err *err)
{
    char *equals = strchr(word, '=');
    uint64_t v;
    if (!equals)
        return bh_fail(err, BH_USAGE, "'%.40s' needs a value, as in nodes=200", word);
    *equals = '\0';
    if (bh_str_eq(word, "seed")) {
        if (bh_uint_parse(equals + 1, UINT64_MAX, &y->seed, NULL) < 0)
            return bh_fail(err, BH_USAGE, "seed needs a whole number, is '%.40s'", equals + 1);
        return BH_OK;
    }
    for (size_t i = 0; i < BH_COUNT_OF(words); i++) {
        const struct word *w = &words[i];
        if (!bh_str_eq(word, w->name) || !(w->of >> y->shape & 1))
            continue;
        if (bh_uint_parse(equals + 1, w->max, &v, NULL) < 0 || v < w->min)
            return bh_fail(err, BH_USAGE,
                           "%s needs a whole number from %" PRIu64 " to %" PRIu64 ", is '%.40s'", w->name,
                           w->min, w->max, equals + 1);
        const uint32_t value = (uint32_t)v;
        memcpy((char *)y + w->offset, &value, sizeof(value));
        return BH_OK;
    }
    return fail_word(y, word, err);
}

int bh_synth_parse(const char *s, struct bh_synth *ret, struct bh_err *err)
{
    char text[200];
    if (strlen(s) >= sizeof(text))
        return bh_fail(err, BH_USAGE, "'%.40s...' is longer than any shape is", s);
    memcpy(text, s, strlen(s) + 1);
    char *rest = strchr(text, ',');
    if (rest)
        *rest++ = '\0';
    for (size_t i = 0; i < BH_SYNTH_SHAPES; i++) {
        if (!bh_str_eq(text, shape_names[i]))
            continue;
        struct bh_synth y = defaults[i];
        int rc = BH_OK;
        while (rc == BH_OK && rest) {
            char *word = rest;
            rest = strchr(word, ',');
            if (rest)
                *rest++ = '\0';
            rc = set_word(&y, word, err);
        }
        if (rc == BH_OK)
            *ret = y;
        return rc;
    }
    return bh_fail(err, BH_USAGE, "'%.40s' is no shape; there are openb, chronus and gavel", text);
}

/* ---- openb ---- */

/* How many of about a thousand, and what. */
static const struct node_kind {
    uint32_t weight, n_gpus, cpu_milli;
    uint64_t mem_mib;
    const char *model;
} node_kinds[] = {
    {549, 8, 96000, 393216, "G2"},     {387, 2, 104000, 524288, "T4"},    {107, 2, 16000, 122880, "P100"},
    {39, 8, 128000, 786432, "G3"},     {28, 4, 32000, 131072, "V100M16"}, {22, 2, 64000, 262144, "P100"},
    {21, 8, 96000, 786432, "V100M32"}, {19, 1, 8000, 32768, "V100M16"},   {17, 4, 96000, 393216, "T4"},
    {9, 4, 48000, 376832, "V100M32"},  {7, 8, 64000, 262144, "V100M16"},  {5, 2, 8000, 61440, "P100"},
};
static const struct pod_kind {
    uint32_t weight;
    uint8_t n_gpus;
    uint16_t gpu_milli;
    uint32_t cpu_milli;
    uint64_t mem_mib;
} pod_kinds[] = {
    {1050, 1, 810, 3152, 5600},   {860, 1, 1000, 11300, 49152}, {530, 1, 1000, 11400, 48128},
    {470, 1, 1000, 3152, 5600},   {390, 1, 470, 11908, 47104},  {365, 0, 0, 12500, 57344},
    {360, 1, 470, 8000, 30517},   {285, 0, 0, 32000, 49152},    {255, 1, 1000, 18708, 64512},
    {240, 1, 650, 11908, 47104},  {195, 1, 1000, 9810, 41560},  {165, 0, 0, 8000, 30517},
    {310, 1, 1000, 12000, 24576}, {150, 1, 1000, 11908, 47104}, {120, 0, 0, 15400, 51200},
    {300, 1, 320, 4000, 22888},   {110, 1, 1000, 16000, 32768}, {210, 1, 1000, 4000, 24576},
    {95, 0, 0, 16500, 51200},     {110, 1, 230, 4000, 30517},   {85, 1, 1000, 24200, 93184},
    {150, 1, 590, 3152, 5600},    {75, 1, 160, 4000, 15258},    {80, 1, 460, 6000, 6144},
    {45, 1, 370, 4152, 10600},    {44, 8, 1000, 64000, 262144}, {15, 4, 1000, 32000, 131072},
    {16, 2, 1000, 16000, 65536},
};
static const struct spec_kind {
    uint32_t weight;
    const char *models; /* as gpu_spec says them */
} spec_kinds[] = {
    {355, "T4"},
    {120, "G2"},
    {100, "P100"},
    {55, "V100M16|V100M32"},
    {26, "P100|V100M16|V100M32"},
    {20, "G2|P100|T4|V100M16|V100M32"},
    {17, "G3"},
    {12, "P100|V100M16"},
};

/* Which row of a table: weights are a row's first member, rows are `size` apart. */
static size_t draw(struct bh_rng *rng, const void *rows, size_t n, size_t size)
{
    uint32_t all = 0, w, at;
    for (size_t i = 0; i < n; i++) {
        memcpy(&w, (const char *)rows + i * size, sizeof(w));
        all += w;
    }
    at = bh_rng_below(rng, all);
    for (size_t i = 0; i + 1 < n; i++) {
        memcpy(&w, (const char *)rows + i * size, sizeof(w));
        if (at < w)
            return i;
        at -= w;
    }
    return n - 1;
}
#define DRAW(rng, rows) (&(rows)[draw((rng), (rows), BH_COUNT_OF(rows), sizeof((rows)[0]))])

static uint64_t mask_of(struct bh_openb *o, const char *models)
{
    uint64_t mask = 0;
    while (*models) {
        const size_t n = strcspn(models, "|");
        mask |= UINT64_C(1) << bh_openb_model(o, models, n);
        models += n + (models[n] == '|');
    }
    return mask;
}

static void add_pod(const struct bh_synth *y, struct bh_rng *rng, struct bh_openb *o)
{
    const struct pod_kind *k = DRAW(rng, pod_kinds);
    const bool picky = k->n_gpus && bh_rng_below(rng, PERCENT) < y->spec;
    *bh_vec_push(&o->pods) = (struct bh_openb_pod){
        .name = bh_arena_printf(&o->arena, "synth-pod-%06zu", o->pods.n),
        .cpu_milli = k->cpu_milli,
        .mem_mib = k->mem_mib,
        .n_gpus = k->n_gpus,
        .gpu_milli = k->gpu_milli,
        .models = picky ? mask_of(o, DRAW(rng, spec_kinds)->models) : 0,
    };
}

void bh_synth_openb(const struct bh_synth *y, struct bh_openb *ret)
{
    struct bh_rng rng = {y->seed};
    *ret = (struct bh_openb){0};
    for (uint32_t i = 0; i < y->nodes; i++) {
        /* the first is of the commonest kind, so that there is room for every pod without models */
        const struct node_kind *k = i ? DRAW(&rng, node_kinds) : &node_kinds[0];
        *bh_vec_push(&ret->nodes) = (struct bh_openb_node){
            .name = bh_arena_printf(&ret->arena, "synth-node-%06" PRIu32, i),
            .cpu_milli = k->cpu_milli,
            .n_gpus = k->n_gpus,
            .model = (uint32_t)bh_openb_model(ret, k->model, strlen(k->model)),
            .mem_mib = k->mem_mib,
        };
    }
    const uint64_t wanted = bh_openb_gpus(ret) * 1000;
    for (uint64_t milli = 0; y->pods ? ret->pods.n < y->pods : milli < wanted;) {
        add_pod(y, &rng, ret);
        const struct bh_openb_pod *p = &ret->pods.at[ret->pods.n - 1];
        milli += (uint64_t)p->gpu_milli * p->n_gpus;
    }
}

/* ---- jobs ---- */

/* Minutes at each tenth of the jobs, from the shortest to the longest; between them as likely. */
static const struct duration_kind {
    uint32_t weight; /* of 1000 jobs */
    uint32_t gpus;
    uint32_t minutes[DECILES + 1];
} durations[] =
    {
        {916, 1, {20, 23, 28, 34, 40, 57, 83, 103, 183, 334, 4317}},
        {7, 2, {20, 30, 60, 150, 300, 500, 800, 1200, 1800, 2700, 4317}},
        {38, 4, {20, 30, 86, 255, 496, 755, 1065, 1437, 1865, 2748, 4317}},
        {29, 8, {20, 38, 77, 190, 363, 697, 1342, 1755, 2711, 3444, 4317}},
        {4, 16, {24, 95, 234, 325, 637, 715, 811, 1425, 2753, 3253, 3529}},
},
  longer[] = {
      {687, 1, {20, 23, 35, 60, 100, 190, 400, 900, 2400, 6000, 60000}},
      {30, 2, {20, 30, 60, 150, 300, 500, 900, 2000, 4000, 9000, 80000}},
      {134, 4, {20, 30, 86, 255, 496, 755, 1500, 3000, 6000, 9000, 80000}},
      {125, 8, {20, 38, 77, 190, 363, 697, 1500, 3000, 6000, 9000, 80000}},
      {24, 16, {24, 95, 234, 325, 637, 900, 2000, 4000, 6000, 9000, 60000}},
};
static const uint32_t slack_percent[DECILES + 1] = {110, 140, 157, 171, 184, 197, 211, 231, 264, 312, 500};

static uint32_t draw_between(struct bh_rng *rng, const uint32_t at[DECILES + 1])
{
    const uint32_t tenth = bh_rng_below(rng, DECILES);
    return at[tenth] + bh_rng_below(rng, at[tenth + 1] - at[tenth] + 1);
}

void bh_synth_jobs(const struct bh_synth *y, struct bh_jobs *ret)
{
    const bool is_chronus = y->shape == BH_SYNTH_CHRONUS;
    struct bh_rng rng = {y->seed};
    uint64_t work = 0;
    *ret = (struct bh_jobs){0};
    for (uint32_t i = 0; i < y->tenants; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "vc%02" PRIu32, i);
        (void)bh_jobs_tenant(ret, name, strlen(name));
    }
    for (uint32_t i = 0; i < y->jobs; i++) {
        const struct duration_kind *k = is_chronus ? DRAW(&rng, durations) : DRAW(&rng, longer);
        const uint64_t seconds = (uint64_t)draw_between(&rng, k->minutes) * MINUTE_S;
        /* a few large tenants and many small ones, where the trace has that */
        uint32_t tenant = bh_rng_below(&rng, y->tenants);
        if (!is_chronus)
            tenant = bh_rng_below(&rng, tenant + 1);
        const uint64_t slack =
            is_chronus && bh_rng_below(&rng, DECILES) < 7 ? draw_between(&rng, slack_percent) : 0;
        *bh_vec_push(&ret->at) = (struct bh_job){
            .tenant = tenant,
            .gpus = k->gpus < y->gpus ? k->gpus : y->gpus,
            .duration_s = seconds,
            .deadline_s = slack ? seconds / MINUTE_S * slack / PERCENT * MINUTE_S : BH_JOB_NO_DEADLINE,
        };
        work += seconds * ret->at.at[i].gpus;
    }
    /* spread over the time in which so many GPUs could do the work */
    const uint64_t minutes = work * PERCENT / y->load / y->gpus / MINUTE_S + 1;
    for (uint32_t i = 0; i < y->jobs; i++) {
        struct bh_job *j = &ret->at.at[i];
        j->submit_s = bh_rng_next(&rng) % minutes * MINUTE_S;
        if (j->deadline_s != BH_JOB_NO_DEADLINE)
            j->deadline_s += j->submit_s;
    }
    bh_jobs_order(ret);
}
