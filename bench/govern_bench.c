/* SPDX-License-Identifier: Apache-2.0 */
/*
 * govern_bench.c - what a step of the controller costs, against the controller one writes first.
 *
 * 8, 32 and 128 tenants: by slices, in turns (one has a cap), and beside a latency tenant. The simple one
 * takes floats: it smooths each tenant's share and scales its slice by the error, in proportion; it knows
 * no demand, no caps, no turns and no classes. In turns with ours, so that a busy machine slows both alike.
 * Prints medians in nanoseconds, the ratio, and what part of a core 200 steps a second are. Exit status 1:
 * a bound was passed.
 */
#include "core/govern/govern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, STEPS = 4000, STEPS_A_SECOND = 200 };
#define RATIO_MAX 50.0
#define CORE_MAX \
    0.002 /* of one core, with 8 tenants: the rest of one in a hundred is for sensors and actuators */

enum crowd { BY_SLICES, BY_TURNS, BESIDE, CROWDS };
static const char *const crowd_names[] = {"slices", "turns", "latency"};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* ---- the simple one ---- */

struct simple {
    double share[BH_GOVERN_TENANTS], slice_us[BH_GOVERN_TENANTS];
};

static void simple_step(struct simple *s, const struct bh_govern_in *in)
{
    double weights = 0;
    for (uint32_t i = 0; i < in->n; i++)
        weights += in->at[i].weight;
    for (uint32_t i = 0; i < in->n; i++) {
        const double target = in->at[i].weight / weights;
        const double got = (double)in->at[i].gpu_ns / (in->elapsed_us * 1000.0);
        s->share[i] += (got - s->share[i]) * 0.05;
        s->slice_us[i] *= 1 + 0.1 * (target - s->share[i]) / target;
        s->slice_us[i] = s->slice_us[i] < 200 ? 200 : s->slice_us[i] > 20000 ? 20000 : s->slice_us[i];
    }
}

/* ---- both ---- */

static void crowd_of(enum crowd crowd, uint32_t n, struct bh_govern_in *in)
{
    *in = (struct bh_govern_in){.elapsed_us = 1000000 / STEPS_A_SECOND, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        in->at[i] = (struct bh_govern_asked){.id = i + 1, .weight = 10 + i % 7, .state = BH_GOVERN_BUSY};
        in->at[i].cap_permille = crowd == BY_TURNS && i == 0 ? 5 : 0;
        in->at[i].latency = crowd == BESIDE && i == 0;
    }
}

/* Samples as the card would give them: to the holder of a turn all, else by weight, with a little noise. */
static void feed(struct bh_govern_in *in, const struct bh_govern_out *out, uint32_t step)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < in->n; i++)
        running += !out->at[i].paused;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint64_t all = (uint64_t)in->elapsed_us * 960 / (running ? running : 1);
        in->at[i].gpu_ns = out->at[i].paused ? 0 : all + (step * 2654435761u + i * 40503u) % 4096;
    }
}

static double median(double *at, size_t n)
{
    qsort(at, n, sizeof(*at), by_value);
    return at[n / 2];
}

static int measure(enum crowd crowd, uint32_t n)
{
    static struct bh_govern_in in;
    static struct bh_govern_out out;
    static struct simple simple;
    struct bh_govern *g = NULL;
    double ours[ROUNDS], theirs[ROUNDS];

    if (bh_govern_new(NULL, &g, NULL) < 0)
        return 1;
    crowd_of(crowd, n, &in);
    memset(&out, 0, sizeof(out));
    for (uint32_t i = 0; i < n; i++)
        simple.slice_us[i] = 2000;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t took = 0, took_simple = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            feed(&in, &out, step);
            const uint64_t a = now_ns();
            if (bh_govern_step(g, &in, &out, NULL) < 0)
                abort();
            const uint64_t b = now_ns();
            simple_step(&simple, &in);
            took += b - a;
            took_simple += now_ns() - b;
        }
        ours[round] = (double)took / (double)STEPS;
        theirs[round] = (double)took_simple / (double)STEPS;
    }
    bh_govern_free(g);
    const double ns = median(ours, ROUNDS), ratio = ns / median(theirs, ROUNDS),
                 core = ns * (double)STEPS_A_SECOND / 1e9;
    printf("%-8s %4" PRIu32 " tenants: %8.0f ns a step, %6.0f simple, ratio %5.1f, %.4f %% of a core\n",
           crowd_names[crowd], n, ns, median(theirs, ROUNDS), ratio, core * 100);
    if (ratio > RATIO_MAX || (n == 8 && core > CORE_MAX)) {
        printf("  over the bound (ratio %.0f, part of a core %.4f)\n", RATIO_MAX, CORE_MAX);
        return 1;
    }
    return 0;
}

int main(void)
{
    static const uint32_t sizes[] = {8, 32, 128};
    int bad = 0;
    for (enum crowd crowd = 0; crowd < CROWDS; crowd++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            bad |= measure(crowd, sizes[i]);
    }
    return bad;
}
