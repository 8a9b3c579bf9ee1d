/* SPDX-License-Identifier: Apache-2.0 */
/* job_words.h - a job in the words of a command line, as the API wants it. */
#ifndef BH_CLI_JOB_WORDS_H
#define BH_CLI_JOB_WORDS_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/remote.h"

#include <stdbool.h>
#include <stddef.h>

extern const char *const bh_job_tiers[], *const bh_job_priorities[], *const bh_job_cans[];

struct bh_job_words {
    const char *tenant, *pool, *name, *tier, *priority, *profile, *image, *duration; /* NULL: not given */
    const char *gpus;   /* `2`, or `0.5` of one */
    const char *cap;    /* `25%` of the time of each */
    const char *memory; /* of each */
    const char *can;    /* some of bh_job_cans, separated by commas */
    const char *env;    /* names of variables, separated by commas; NULL: all that a job may take over */
    bool firm, dry_run;
    const char *const *argv;
    size_t n_argv;
};

/* The body of POST /v1/jobs. env: as a process has it; cwd absolute. */
int bh_job_words_json(const struct bh_job_words *w, char *const *env, const char *cwd, struct bh_buf *ret,
                      struct bh_err *err) BH_MUST_USE;

/*
 * Submits it with the environment and the folder of this process, once however often that has to be tried. *ret: its id; "" of a
 * dry run.
 */
int bh_job_submit(struct bh_remote *r, const struct bh_job_words *w, char ret[BH_REMOTE_ID_MAX],
                  struct bh_err *err) BH_MUST_USE;

#endif
