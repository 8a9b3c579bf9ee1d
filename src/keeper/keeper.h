/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - the keeper of one lease: what it knows, and what both tiers do alike.
 */
#ifndef BH_KEEPER_KEEPER_H
#define BH_KEEPER_KEEPER_H

#include "base/arena.h"
#include "base/err.h"
#include "host/cgroup.h"
#include "keeper/control.h"
#include "keeper/output.h"
#include "launch/keeper.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_KEEPER_KILL_MS = 10000 }; /* how long processes may take to die */

struct bh_keeper {
    struct bh_keeper_spec spec;
    struct bh_arena arena; /* the spec's */
    struct bh_keeper_place at;
    int folder, lock, log;
    struct bh_cgroups groups;
    int epoll;
    int timer; /* to attach, to obey, to give an account */
    struct bh_control control;
    struct bh_output out, err;
    int stdio[3]; /* the work's; -1: none */
    bool attached;
    enum bh_keeper_state state;
    pid_t work; /* 0: it does not run */
    struct bh_keeper_end end;
    char warden[4096]; /* its program */
    /* What the tier does when it is told to; work runs. */
    void (*signal)(struct bh_keeper *k, int number);
    void (*terminate)(struct bh_keeper *k); /* TERM to all of it */
    void (*kill)(struct bh_keeper *k);
    void *tier; /* what the tier itself knows */
    /* Something else in `epoll`: NULL, or called with everything else. */
    void (*more)(struct bh_keeper *k);
};

/* The socket that orders come in by. */
int bh_keeper_open_control(struct bh_keeper *k, int listener, struct bh_err *err) BH_MUST_USE;
/* Everything that is there to be heard, without waiting. BH_REFUSED: the work has been stopped before it began. */
int bh_keeper_hear(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;
/* The same, and waits for something first. */
int bh_keeper_wait(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;
bool bh_keeper_listen_to(struct bh_keeper *k, int fd);
void bh_keeper_say(struct bh_keeper *k, const char *line); /* into keeper.log */
void bh_keeper_set_state(struct bh_keeper *k, enum bh_keeper_state state);
/* The moment after which a keeper that dies leaves a lease that is lost. */
int bh_keeper_begin(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;
void bh_keeper_runs(struct bh_keeper *k, pid_t work);
void bh_keeper_set_timer(struct bh_keeper *k, uint64_t ms); /* 0: none */
/* Nobody of the lease is left in its cgroup; what does not go is said. */
void bh_keeper_empty(struct bh_keeper *k);
/* The warden's account. */
void bh_keeper_take_account(struct bh_keeper *k, const struct bh_lease_end *end);
/* Why it did not begin. */
void bh_keeper_take_failure(struct bh_keeper *k, int rc, const struct bh_err *err);
/* How the work ended, as waitpid has it. */
void bh_keeper_take_status(struct bh_keeper *k, int status);

/* ---- the tiers: run it to its end. Below 0: it did not begin. ---- */

int bh_keeper_process(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;
int bh_keeper_container(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;
int bh_keeper_external(struct bh_keeper *k, struct bh_err *err) BH_MUST_USE;

#endif
