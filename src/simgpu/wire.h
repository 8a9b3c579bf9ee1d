/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - how the stand-in libraries reach a simulated node's resource manager.
 *
 * A SOCK_SEQPACKET connection to `rm.sock` in the node's folder, one message a request and one a reply. Whoever
 * sends is the caller: pid, uid and privilege are those of each message's sender (SCM_CREDENTIALS), as the kernel takes
 * them from whoever enters an ioctl. An open device file is a descriptor that the manager made (one end of a socket pair)
 * and passed over; every request about it carries that descriptor along, so owning the file is what counts, in
 * whichever process its duplicate ended up. When the last duplicate is closed the manager sees it hang up.
 */
#ifndef BH_SIMGPU_WIRE_H
#define BH_SIMGPU_WIRE_H

#include <stdint.h>

enum { BH_SIM_WIRE_VERSION = 2, BH_SIM_BODY_MAX = 64 * 1024 };

enum bh_sim_op {
    BH_SIM_OP_HELLO,  /* a: version. Reply body: struct bh_sim_node_view */
    BH_SIM_OP_OPEN,   /* a: enum bh_call_file, b: GPU minor. Reply carries the descriptor */
    BH_SIM_OP_IOCTL,  /* descriptor; a: command, n_arg and n_params bytes of body. Reply: the same, changed */
    BH_SIM_OP_MAP,    /* descriptor; a: length, b: prot, c: flags. Reply a: range */
    BH_SIM_OP_UNMAP,  /* descriptor; a: range */
    BH_SIM_OP_TOUCH,  /* descriptor; a: range, b: GPU */
    BH_SIM_OP_SUBMIT, /* descriptor; a: client, b: channel, c: work ns. Reply a: fence, b: one done, or 0 */
    BH_SIM_OP_FENCE,  /* descriptor; a: client, b: channel. Reply a: last fence done */
    BH_SIM_OP_WAIT,   /* descriptor; a: client, b: channel, c: fence. The reply comes when it is done */
    BH_SIM_OP_WRITE,  /* descriptor; a: client, b: memory, c: offset; body */
    BH_SIM_OP_READ,   /* descriptor; a: client, b: memory, c: offset, d: bytes. Reply body */
    BH_SIM_OP_FILL,   /* descriptor; a: client, b: memory, c: offset, d: bytes, e: the byte */
    BH_SIM_OP_VIEW,   /* a: GPU. Reply body: struct bh_sim_gpu_view */
    BH_SIM_OP_EVENTS, /* a: after, b: at most so many. Reply body: struct bh_sim_event ... */
    BH_SIM_OP_MIG,    /* body: struct bh_sim_mig_order. Reply: the same, changed */
    BH_SIM_OP_BREAK,  /* body: words. Only the node's owner. Reply body on failure: a sentence */
    BH_SIM_OP_HELD,   /* Reply body: struct bh_sim_held */
    BH_SIM_OP_JOURNAL, /* a: 1 start, 0 stop. Only the node's owner. On stop it is written to `journal.rec` */
    BH_SIM_OP_STOP,    /* only the node's owner */
    BH_SIM_OP_WHAT, /* descriptor. Reply a: enum bh_call_file, b: GPU minor, c: managed memory mapped of it */
    BH_SIM_OP_MAPPED, /* a: pid. Reply a: managed memory mapped of the files it opened */
    BH_SIM_OP_BUSY,   /* a: GPU. Only the node's owner. Reply a: now, ns; body: struct bh_sim_busy ... */
    BH_SIM_OP_N_, /* in a reply: there is no room for another caller (result says so), and the connection ends */
};

struct bh_sim_msg {
    uint32_t op;
    int32_t result; /* reply: 0 or a negative errno */
    uint32_t n_arg, n_params, n_body;
    uint32_t pad;
    uint64_t a, b, c, d, e;
    /* n_arg + n_params + n_body bytes follow */
};

#endif
