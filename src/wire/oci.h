/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci.h - what a container runtime sends to its seccomp listener: the container process state of the OCI runtime
 * specification, one JSON object with one descriptor, on a connection of its own.
 *
 * Runtimes keep the connection open for longer than they need it (runc until it is done, crun until the container has
 * ended), so the message is over where its object is, not where the connection is.
 */
#ifndef BH_WIRE_OCI_H
#define BH_WIRE_OCI_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/fds.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BH_OCI_MESSAGE_MAX =
        1 << 20, /* it carries the container's annotations, and Kubernetes allows those 256 KiB */
    BH_OCI_TEXT_MAX = 256,
};

struct bh_oci_state {
    uint32_t pid;      /* of the process that has the filter; 0: not said (crun exec) */
    uint32_t init_pid; /* of the container's first process; 0: not said */
    char id[BH_OCI_TEXT_MAX], metadata[BH_OCI_TEXT_MAX];
    char status[32]; /* "creating": it is the container's first process; "running": one that joins it */
};

/* BH_BUSY: so far it is right, and not over. BH_INVALID says what is wrong. */
int bh_oci_parse(const char *text, size_t n, struct bh_oci_state *ret, struct bh_err *err) BH_MUST_USE;

/* A message on its way. */
struct bh_oci_message {
    struct bh_buf text;
    int fds[BH_FDS_MAX];
    size_t n_fds;
};

void bh_oci_init(struct bh_oci_message *m);
void bh_oci_fini(struct bh_oci_message *m); /* closes what came and was not taken */
/*
 * Takes what is there. BH_OK: it is whole, and *ret_listener is the caller's, proved to be a listener. BH_BUSY: more must
 * come. BH_NOT_FOUND: the other side has left without a word. Everything else: it is refused, and says why.
 */
int bh_oci_receive(struct bh_oci_message *m, int socket, struct bh_oci_state *ret, int *ret_listener,
                   struct bh_err *err) BH_MUST_USE;

#endif
