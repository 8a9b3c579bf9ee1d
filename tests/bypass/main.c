/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - one attempt a run: bypass NAME CAP-BYTES [OUTSIDE-SOCKET].
 *
 * Settings are words and not the environment: one attempt clears that. bypass list says what there is.
 */
#include "bypass.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bp_attempt *const groups[] = {
    bp_forms, bp_handles, bp_keep, bp_late, bp_races, bp_maps, bp_processes, bp_reach, bp_outsiders, bp_steer,
#ifndef BYPASS_STATIC
    bp_cuda,
#endif
};

/* NAME FLAGS WHAT: what run.py goes by. */
static int list(void)
{
    for (size_t g = 0; g < COUNT(groups); g++)
        for (const struct bp_attempt *a = groups[g]; a->name; a++)
            if (!(a->flags & BP_HIDDEN))
                printf("%s %u %s\n", a->name, a->flags, a->what);
    return 0;
}

static const struct bp_attempt *find(const char *name)
{
    for (size_t g = 0; g < COUNT(groups); g++)
        for (const struct bp_attempt *a = groups[g]; a->name; a++)
            if (strcmp(a->name, name) == 0)
                return a;
    return NULL;
}

static int usage(void)
{
    fprintf(stderr, "usage: bypass list | watch | outside SOCKET | NAME CAP-BYTES [OUTSIDE-SOCKET]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *sim = getenv("BULKHEAD_SIM");
    bp.sim = sim && *sim;
    bp.self = argv[0];
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "watch") == 0)
        return bp_watch();
    if (argc == 3 && strcmp(argv[1], "outside") == 0)
        return bp_serve_outside(argv[2]);
    const struct bp_attempt *a = argc == 3 || argc == 4 ? find(argv[1]) : NULL;
    if (!a || bh_uint_parse(argv[2], UINT64_MAX / BP_TIMES, &bp.cap, NULL) < 0 ||
        bp.cap < BP_PIECES * 2 * MIB)
        return usage();
    bp.piece = bp.cap / BP_PIECES / (2 * MIB) * (2 * MIB);
    bp.outside = argc == 4 ? argv[3] : NULL;
    bp_who();
    return a->fn();
}
