/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openb_bench.c - the mode `bulkhead` beside `fgd` on lists that nobody published.
 *
 * Drawn lists of the shape of openb, from none of whose pods name a model to all, several lists of each kind and several
 * orders of arrival of each list; how much of the GPUs is allocated when as much was asked for as there is, in per
 * cent. A list counts as worse where the mean over its orders is lower by more than a tenth of a point: the order alone
 * moves a single run by several tenths. Exit status 1: on the whole of a kind `bulkhead` is worse by that.
 */
#include "replay/run.h"
#include "replay/synth.h"

#include <inttypes.h>
#include <stdio.h>

enum { LISTS = 4, ORDERS = 3, NODES = 300 };
#define SLACK 0.1

static double allocated(const struct bh_openb *o, enum bh_score_mode mode, uint64_t seed)
{
    const struct bh_run_setup setup = {.mode = mode, .seed = seed};
    struct bh_run_result r;
    struct bh_err err;
    if (bh_run_openb(o, &setup, &r, &err) < 0) {
        fprintf(stderr, "openb_bench: %s\n", err.msg);
        exit(2);
    }
    return r.at[100].allocated_ppm / 1e4;
}

/* Mean over the orders of one list. */
static void run_list(uint32_t spec, uint64_t list, double *ret_fgd, double *ret_ours)
{
    const struct bh_synth y = {.shape = BH_SYNTH_OPENB, .nodes = NODES, .spec = spec, .seed = list};
    struct bh_openb o = {0};
    bh_synth_openb(&y, &o);
    *ret_fgd = *ret_ours = 0;
    for (uint64_t order = 0; order < ORDERS; order++) {
        *ret_fgd += allocated(&o, BH_SCORE_FGD, 42 + order) / ORDERS;
        *ret_ours += allocated(&o, BH_SCORE_BULKHEAD, 42 + order) / ORDERS;
    }
    bh_openb_fini(&o);
}

int main(void)
{
    static const uint32_t specs[] = {0, 5, 10, 20, 33, 50, 75, 100};
    int bad = 0;
    printf("%d nodes, %d lists of each kind, %d orders of each; allocated at 100 %%, in per cent\n", NODES,
           LISTS, ORDERS);
    printf("%16s %8s %9s %11s %8s %12s\n", "pods with models", "fgd", "bulkhead", "difference", "worst",
           "worse lists");
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        double fgd = 0, ours = 0, worst = 100;
        int worse = 0;
        for (uint64_t list = 1; list <= LISTS; list++) {
            double a, b;
            run_list(specs[i], list, &a, &b);
            fgd += a / LISTS;
            ours += b / LISTS;
            worst = b - a < worst ? b - a : worst;
            worse += b - a < -SLACK;
        }
        printf("%14" PRIu32 " %% %8.2f %9.2f %+11.2f %+8.2f %9d of %d\n", specs[i], fgd, ours, ours - fgd,
               worst, worse, LISTS);
        bad |= ours - fgd < -SLACK;
    }
    return bad;
}
