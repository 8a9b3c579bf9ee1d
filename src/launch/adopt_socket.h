/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt_socket.h - the socket that container runtimes send listeners to, and whom to believe about them.
 */
#ifndef BH_LAUNCH_ADOPT_SOCKET_H
#define BH_LAUNCH_ADOPT_SOCKET_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct bh_adopt_socket {
    int fd; /* -1: none */
    const char *path;
    dev_t dev; /* of the file, so that somebody else's is not removed */
    ino_t ino;
};

/*
 * Listens on `path`, which nobody but `owner` and root can connect to. What a process that died left there is replaced;
 * BH_CONFLICT: somebody listens there, or there is something that is no socket.
 */
int bh_adopt_listen(const char *path, uid_t owner, struct bh_adopt_socket *ret,
                    struct bh_err *err) BH_MUST_USE;
void bh_adopt_close(struct bh_adopt_socket *s); /* and the file, if it is still ours */

/* Who is at the other end; BH_DENIED: neither root, nor this process's user, nor `owner`. */
int bh_adopt_peer(int fd, uid_t owner, uid_t *ret, struct bh_err *err) BH_MUST_USE;
/*
 * The process that `sender` says a listener is of. BH_REFUSED: it is not there, carries no filter, or is not one that the
 * sender (unless that is root) could have started: its own, or in a user namespace of its own.
 */
int bh_adopt_process(uint32_t pid, uid_t sender, int *ret_pidfd, struct bh_err *err) BH_MUST_USE;

#endif
