/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, as a log and as a crowd. What a log line reads as is written as the same line; any sequence of
 * inputs is either refused or answered with what keeps the promises, and a second controller says the same
 * from the log alone. Input: a first byte of `g` or `s` is text; otherwise the bytes are drawn from.
 */
#include "core/govern/govern_log.h"

#include "base/choice.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60, CROWD = 12 };
static char line[BH_GOVERN_LINE_MAX], again[BH_GOVERN_LINE_MAX];

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void read_text(const uint8_t *data, size_t size)
{
    static struct bh_govern_in in;
    static struct bh_govern_out out;
    struct bh_govern_config config;
    const size_t n = size < sizeof(line) ? size : sizeof(line) - 1;

    memcpy(line, data, n);
    line[n] = '\0';
    if (bh_govern_log_read_config(line, &config, NULL) == 0) {
        must(bh_govern_log_config(&config, again, sizeof(again), NULL) == 0);
        must(strcmp(line, again) == 0);
    }
    if (bh_govern_log_read_step(line, &in, &out, NULL) == 0) {
        struct bh_govern *g = NULL;
        must(bh_govern_log_step(&in, &out, again, sizeof(again), NULL) == 0);
        must(strcmp(line, again) == 0);
        must(bh_govern_new(NULL, &g, NULL) == 0);
        const int rc = bh_govern_log_replay(g, line, NULL);
        must(rc == 0 || rc == BH_CONFLICT || rc == BH_INVALID);
        bh_govern_free(g);
    }
}

static void draw_input(struct bh_choice *c, struct bh_govern_in *in)
{
    static const uint32_t spans[] = {1, 1000, 5000, 5000, 5000, 20000, 300000, 10000000, 0};
    in->elapsed_us = spans[bh_choose(c, sizeof(spans) / sizeof(spans[0]))];
    in->n = bh_choose(c, CROWD + 1);
    in->unused_permille = bh_choose(c, 3) ? 0 : bh_choose(c, 1002);
    for (uint32_t i = 0; i < in->n; i++) {
        struct bh_govern_asked *a = &in->at[i];
        a->id = 1 + (bh_choose(c, 8) ? i : bh_choose(c, 2 * CROWD));
        a->weight = bh_choose(c, 8) ? 1 + bh_choose(c, 100) : bh_choose(c, 10002);
        a->cap_permille = bh_choose(c, 4) ? 0 : bh_choose(c, 1001);
        a->floor_permille = bh_choose(c, 6) ? 0 : bh_choose(c, 1001);
        a->latency = bh_choose(c, 10) == 0;
        a->state = (uint8_t)bh_choose(c, 3);
        a->doubt = bh_choose(c, 6) == 0;
        a->gpu_ns = bh_choose(c, 5) ? (uint64_t)bh_choose(c, 256) * in->elapsed_us * 4 : BH_GOVERN_NO_SAMPLE;
        if (bh_choose(c, 60) == 0)
            a->gpu_ns = UINT64_MAX - 1;
    }
}

static void check_output(const struct bh_govern_in *in, const struct bh_govern_out *out)
{
    uint32_t targets = 0, active = 0;
    must(out->n == in->n && out->mode < BH_GOVERN_MODES);
    for (uint32_t i = 0; i < out->n; i++) {
        const struct bh_govern_told *t = &out->at[i];
        must(t->id == in->at[i].id);
        must(t->slice_us >= 1 && t->slice_us <= 100000 && t->level <= 2);
        must(!t->paused || t->active); /* who is idle is never paused */
        must(!in->at[i].cap_permille || t->target_permille <= in->at[i].cap_permille);
        targets += t->target_permille;
        active += t->active;
    }
    must(targets <= 1000 + out->n);
    /* alone and without a cap nobody is paused */
    for (uint32_t i = 0; active == 1 && i < out->n; i++)
        must(!out->at[i].paused || in->at[i].cap_permille);
    must(out->turns || out->mode != BH_GOVERN_TURNS);
    must(out->mode == BH_GOVERN_FREE || out->n > 0);
}

static void walk(const uint8_t *data, size_t size)
{
    static struct bh_govern_in in;
    static struct bh_govern_out out;
    struct bh_choice c = {data, size};
    struct bh_govern *g = NULL, *second = NULL;

    must(bh_govern_new(NULL, &g, NULL) == 0 && bh_govern_new(NULL, &second, NULL) == 0);
    for (int i = 0; i < STEPS && c.left; i++) {
        draw_input(&c, &in);
        if (bh_govern_step(g, &in, &out, NULL) < 0)
            continue;
        check_output(&in, &out);
        must(bh_govern_log_step(&in, &out, line, sizeof(line), NULL) == 0);
        must(bh_govern_log_replay(second, line, NULL) == 0);
    }
    bh_govern_free(g);
    bh_govern_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && (data[0] == 'g' || data[0] == 's'))
        read_text(data, size);
    else
        walk(data, size);
    return 0;
}
