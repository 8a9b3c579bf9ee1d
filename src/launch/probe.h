/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - where the processes of a lease may say what they do: a socket of datagrams whose path they have in
 * $BULKHEAD_PROBE.
 *
 * It lies in RUN/probe, which nobody may list, under a name that nobody can guess: who knows it is of the lease, or may look into
 * the lease's processes anyway. Everybody may send to it, and nobody can open it to read. It is held here as long as the command
 * runs, whatever becomes of wardens, which read it (warden/link_probe.h). A socket and no FIFO: whoever writes to a FIFO from a
 * page that never comes holds its lock, and everybody who opens or reads it waits with them.
 *
 * A container is given that one file under a name of its own (host/bundle_gear.h), and its place on the machine is written down before
 * there is a socket: so that has a name that can be guessed, in a folder that nobody enters.
 */
#ifndef BH_LAUNCH_PROBE_H
#define BH_LAUNCH_PROBE_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>

#define BH_PROBE_VARIABLE "BULKHEAD_PROBE"
enum { BH_PROBE_DRAIN_MS = 100 };

struct bh_probe_place {
    int fd; /* bound, non-blocking; -1: there is none */
    char path[PATH_MAX];
};

/* Takes away what launchers that were killed have left there, too. */
int bh_probe_open(struct bh_probe_place *p, const char *run_dir, struct bh_err *err) BH_MUST_USE;
/* A container's, by its whole path: its folder is this user's and nobody else may enter it, else BH_DENIED. What a keeper that was
 * killed has left under that name is replaced: there is one keeper of a lease. */
int bh_probe_open_at(struct bh_probe_place *p, const char *path, struct bh_err *err) BH_MUST_USE;
/* Is it short enough for a socket? */
bool bh_probe_path_fits(const char *path);
/* In the command's process: tells it where, or that there is none. */
void bh_probe_announce(const struct bh_probe_place *p);
/* Nobody else reads it: some of what is there is thrown away, so that nobody who sends waits for ever. */
void bh_probe_drain(const struct bh_probe_place *p);
void bh_probe_close(struct bh_probe_place *p);

#endif
