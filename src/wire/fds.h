/* SPDX-License-Identifier: Apache-2.0 */
/* fds.h - bytes and descriptors over a unix socket, whole or not at all. */
#ifndef BH_WIRE_FDS_H
#define BH_WIRE_FDS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

enum { BH_FDS_MAX = 8 };

int bh_fds_send(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds,
                struct bh_err *err) BH_MUST_USE;
/* Exactly n bytes and n_fds descriptors (close-on-exec); anything else is refused and what came is closed. */
int bh_fds_recv(int socket, void *bytes, size_t n, int *ret_fds, size_t n_fds,
                struct bh_err *err) BH_MUST_USE;
/*
 * Whatever is there, without waiting: up to max bytes, and the descriptors that came with them (close-on-exec), at most
 * BH_FDS_MAX. How many bytes; 0: the other side has closed it. BH_BUSY: nothing is there yet.
 */
ssize_t bh_fds_recv_some(int socket, void *bytes, size_t max, int ret_fds[BH_FDS_MAX], size_t *ret_n_fds,
                         struct bh_err *err) BH_MUST_USE;

#endif
