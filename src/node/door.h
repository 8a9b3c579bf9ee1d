/* SPDX-License-Identifier: Apache-2.0 */
/* door.h - where the API is reached: the unix socket, and HTTPS where the operator wants it. Private to src/node. */
#ifndef BH_NODE_DOOR_H
#define BH_NODE_DOOR_H

#include "node/cert.h"

#include <stdint.h>

/* `127.0.0.1:8443`, `[::1]:8443`: an address and a port, no names. */
struct bh_door_at {
    char address[64];
    uint16_t port;      /* 0: whichever is free */
    bool is_v6, is_any; /* any: of all addresses of the machine */
};
int bh_door_parse(const char *text, struct bh_door_at *ret, struct bh_err *err) BH_MUST_USE;

/* A socket that listens; a file of that name is replaced. */
int bh_door_unix(const char *path, int *ret_fd, struct bh_err *err) BH_MUST_USE;
/* Likewise; at->port is the one that it got. */
int bh_door_tcp(struct bh_door_at *at, int *ret_fd, struct bh_err *err) BH_MUST_USE;

#endif
