/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - a command below a gate, as if there were none.
 *
 * The command runs in a child of this process, with its working folder, environment, descriptors, terminal and process
 * group; the warden runs beside it in a session of its own. This process stays between the command and whoever started
 * it: signals go through, a stop is a stop, and the end is the command's own. When this process is killed, so is the
 * command: by the kernel, or where that has forgotten it (the command changed its user), by the warden.
 */
#ifndef BH_LAUNCH_LAUNCH_H
#define BH_LAUNCH_LAUNCH_H

#include "base/err.h"
#include "wire/lease.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BH_LAUNCH_NOT_RUN = 126, BH_LAUNCH_NOT_FOUND = 127, BH_LAUNCH_SHARES = 32 };

/*
 * For a keeper: a process that hears others while the command runs, and sends no signals on. It waits for the last process of
 * the lease, for a while. `arg` is that of struct bh_launch.
 */
struct bh_launch_keep {
    bool gate; /* false: neither filter nor warden */
    int fd;    /* listened to from the beginning to the end */
    /* Something is there. Below 0, before the command runs: it is not to. */
    int (*hear)(void *arg, struct bh_err *err);
    /* All is ready; after this the command may run. Below 0: it does not. */
    int (*begin)(void *arg, struct bh_err *err);
    /* In the child, right before the command: becomes its user, goes to its place. Below 0: it does not run. */
    int (*become)(void *arg, struct bh_err *err);
    void (*runs)(void *arg, pid_t pid);
    void (*over)(void *arg); /* the command has ended: time to end what it left behind */
};

struct bh_launch {
    const char *warden; /* its program */
    char *const *argv;  /* the command, looked up in PATH; NULL-terminated */
    uint64_t cap_bytes;
    uint32_t tick_ms;            /* 0: the gate's own */
    uint32_t view;               /* enum bh_lease_view */
    bool rdma;                   /* other devices may be told of its memory */
    struct bh_lease_share share; /* of the cards' time; weight 0: nobody holds it */
    bool note_share;             /* into the result, from time to time while the command runs */
    bool wait_for_end;           /* for the last process of the lease rather than for the command alone */
    bool
        ignore_pipe; /* SIGPIPE was ignored by whoever started us, and so it is for the command; else the default */
    /* Nothing of this process stays open but its standard error: what the command closes is closed then, for whoever is at the
     * other end. Standard input and output become /dev/null here. */
    bool let_go_of_files;
    /* One line about the gate while the command runs: it died, another one took over, it could not go on. */
    void (*tell)(void *arg, const char *line);
    void *arg;
    const struct bh_launch_keep *keep; /* NULL: this is no keeper */
};

struct bh_launch_result {
    int status; /* as waitpid gives it */
    bool ended; /* `end` came */
    struct bh_lease_end end;
    /* As the governor told it last, one for each GPU that the command had work on. */
    struct bh_govern_row shares[BH_LAUNCH_SHARES];
    size_t n_shares;
};

/*
 * Runs it to its end. BH_NOT_FOUND or BH_DENIED with `*ret_exit` 127 or 126: the command could not be started. Every other
 * failure leaves it at 0; the command has not run then.
 */
int bh_launch(const struct bh_launch *l, struct bh_launch_result *ret, int *ret_exit,
              struct bh_err *err) BH_MUST_USE;

/* Ends this process the way the command ended. Returns an exit status where that was one. */
int bh_launch_end_as(int status);

#endif
