/* SPDX-License-Identifier: Apache-2.0 */
/* work_text.h - jobs and leases of the daemon for people: lists, and why one waits. */
#ifndef BH_CLI_WORK_TEXT_H
#define BH_CLI_WORK_TEXT_H

#include "cli/answer.h"
#include "cli/table.h"

/* In which state each was when it was shown last: what is in another since, or is new, gets a * behind its state. */
struct bh_seen_row {
    char id[24], state[24];
};
struct bh_seen {
    BH_VEC(struct bh_seen_row) at;
    bool any; /* it was filled once */
};
void bh_seen_fini(struct bh_seen *s);

/* seen NULL: nothing is watched. */
void bh_jobs_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_jobs *jobs, uint64_t now_ms,
                  struct bh_seen *seen);
void bh_leases_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_leases *leases, uint64_t now_ms,
                    struct bh_seen *seen);
void bh_job_why_text(struct bh_cli *cli, struct bh_arena *a, const char *job, const struct bh_a_why *w,
                     uint64_t now_ms);

const char *bh_say_asked(struct bh_arena *a, const struct bh_a_job *j);     /* `2 GPUs`, `0.5 GPU, 20 GiB` */
const char *bh_say_job_state(struct bh_arena *a, const struct bh_a_job *j); /* `running`, `exited 3` */
const char *bh_say_lease_state(const struct bh_a_lease *l);                 /* `active`, `paused` */
const char *bh_say_isolation(struct bh_arena *a, const struct bh_a_lease *l); /* `timeslice 50%, process` */
/* Green, yellow or red for a word that is a state of a job, a lease, a slice, a GPU or a check. */
enum bh_paint bh_state_paint(const char *state);

#endif
