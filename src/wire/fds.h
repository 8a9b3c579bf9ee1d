/* SPDX-License-Identifier: Apache-2.0 */
/* fds.h - bytes and descriptors over a unix socket, whole or not at all. */
#ifndef BH_WIRE_FDS_H
#define BH_WIRE_FDS_H

#include "base/err.h"

#include <stddef.h>

enum { BH_FDS_MAX = 8 };

int bh_fds_send(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds,
                struct bh_err *err) BH_MUST_USE;
/* Exactly n bytes and n_fds descriptors (close-on-exec); anything else is refused and what came is closed. */
int bh_fds_recv(int socket, void *bytes, size_t n, int *ret_fds, size_t n_fds,
                struct bh_err *err) BH_MUST_USE;

#endif
