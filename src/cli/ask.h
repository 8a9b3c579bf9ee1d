/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - a question on a terminal.
 *
 * Asked again until the answer passes; an empty line takes the default. The end of the
 * input ends the asking: nothing is ever assumed for someone who has gone.
 */
#ifndef BH_CLI_ASK_H
#define BH_CLI_ASK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

enum { BH_ANSWER_MAX = 256 };

struct bh_question {
    const char *text;                                     /* `Who are the tenants?` */
    const char *choices;                                  /* `internal, partner or external` */
    const char *fallback;                                 /* what an empty line means */
    int (*check)(const char *answer, struct bh_err *err); /* why an answer will not do */
};

/* number of n, for the one who wonders how long this takes. */
int bh_ask(FILE *in, FILE *talk, bool paint, const struct bh_question *q, unsigned number, unsigned n,
           char ret_answer[BH_ANSWER_MAX], struct bh_err *err) BH_MUST_USE;

/* Yes, or nothing happens: BH_REFUSED. can_ask false: there is nobody to be asked, and `--yes` is named (BH_USAGE). */
int bh_confirm(FILE *in, FILE *talk, bool can_ask, const char *question, struct bh_err *err) BH_MUST_USE;

#endif
