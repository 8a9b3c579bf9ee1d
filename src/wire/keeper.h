/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - what the daemon and the keeper of one lease say to each other, and what they leave on disk for each other.
 *
 * The daemon writes a spec and starts `bulkhead-keeper SPECFILE`, which outlives it. The keeper runs the work, answers on a
 * socket, and writes one end record. Files of a lease, in its folder (the one that the spec stands in):
 *
 *     keeper.json   the spec, written and synced before the keeper is started, never changed
 *     begun         made by the keeper before the work can begin: a lease runs at most once, whoever dies
 *     out, err      what the work wrote; out.to-N, err.to-N: the part before that (output_bytes, wire/stream.h)
 *     end.json      the end record: whole or not there
 *
 * and in the run folder, which a reboot empties: ID.lock, locked by the living keeper and by nobody else, and ID.sock.
 */
#ifndef BH_WIRE_KEEPER_H
#define BH_WIRE_KEEPER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "wire/lease.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_KEEPER_VERSION = 1,
    BH_KEEPER_SPEC_MAX = 1 << 20, /* bytes of JSON */
    BH_KEEPER_LIST_MAX = 4096,    /* words of a command, variables of an environment, devices, groups */
    BH_KEEPER_TEXT = 480,
    BH_KEEPER_REPORT =
        3, /* the descriptor on which a keeper that was asked to (--report) tells that it keeps */
};
#define BH_KEEPER_SPEC_NAME  "keeper.json"
#define BH_KEEPER_BEGUN_NAME "begun"
#define BH_KEEPER_END_NAME   "end.json"

/* ---- the spec ---- */

enum bh_keeper_tier {
    BH_KEEPER_PROCESS,
    BH_KEEPER_CONTAINER,
    BH_KEEPER_EXTERNAL, /* a container that somebody else's engine starts, with the lease's CDI file (host/cdi.h) */
};

/* A character device that a lease may use, for reading and writing; minor UINT32_MAX: all of that major. */
struct bh_keeper_device {
    uint32_t major, minor;
};

/* What a cgroup holds (host/cgroup.h). 0 and NULL: no limit of that kind. */
struct bh_keeper_limits {
    uint64_t memory_bytes; /* of the machine's memory; swap is not given on top */
    uint64_t pids;
    uint32_t cpu_milli;        /* thousandths of a processor's time */
    const char *cpus, *nodes;  /* `0-3,8`: processors, and NUMA nodes for memory */
    uint64_t disk_bytes_per_s; /* read, and write, of each disk of the machine */
    /* With `devices_held` nothing else can be opened but these, and null, zero, full, random, urandom, tty, ptmx and pts. */
    bool devices_held;
    const struct bh_keeper_device *devices;
    size_t n_devices;
};

struct bh_keeper_spec {
    uint64_t lease;
    enum bh_keeper_tier tier;
    const char *run_dir; /* where ID.lock and ID.sock are */
    const char *cgroup;  /* `bulkhead/L17`, below the root of each hierarchy */
    uint32_t grace_ms;   /* from TERM to KILL, where a STOP says nothing else */
    /* Of each of out and err: when half of it is written the file becomes out.1 and a new one begins; 0: 64 MiB. */
    uint64_t output_bytes;
    bool
        attach; /* somebody passes the work's standard input, output and error; it starts when they have come */
    /* The gate (wire/lease.h). gate false: no filter and no warden, for a GPU that is the lease's alone. */
    bool gate;
    uint64_t cap_bytes;
    uint32_t tick_ms, view;
    bool rdma; /* other devices may be told of its memory */
    struct bh_lease_share share;
    /* Tier process. */
    uint32_t uid, gid;
    const char *user; /* whose supplementary groups are taken (initgroups); NULL: `groups` are, or none */
    const uint32_t *groups;
    size_t n_groups;
    const char *cwd;         /* NULL: / */
    const char *const *argv; /* NULL-terminated; looked up in the PATH of `env` */
    const char *const *env;  /* NULL-terminated, `NAME=value`: all that there is */
    struct bh_keeper_limits limits;
    /* Tier container: limits, user and environment are the bundle's. */
    const char *const *runtime; /* NULL-terminated: the program and its options before the verb */
    const char *bundle;         /* absolute */
    const char *container;      /* its name for the runtime */
    const char *listener;       /* the socket of its seccomp profile (`listenerPath`); NULL with gate false */
    /* Both kinds of container, with a share: where the keeper listens to what they say (launch/probe.h), as the bundle or the CDI
     * file has it; NULL: nowhere. */
    const char *probe;
    /* Tier external: listener, probe and limits, and nothing else of both; the gate holds it. */
};

/* Into `out` (init with max BH_KEEPER_SPEC_MAX). BH_INVALID: what the reader would refuse, or text that is not UTF-8 and so
 * cannot be said; BH_TOO_LARGE. */
int bh_keeper_spec_write(const struct bh_keeper_spec *spec, struct bh_buf *out,
                         struct bh_err *err) BH_MUST_USE;
/* All that hangs below *ret is the arena's. An unknown member is refused: it would be a promise that is not kept. */
int bh_keeper_spec_read(const char *text, size_t n, struct bh_arena *arena, struct bh_keeper_spec *ret,
                        struct bh_err *err) BH_MUST_USE;

/* ---- the end record ---- */

enum bh_keeper_how {
    BH_KEEPER_EXITED,    /* `status` */
    BH_KEEPER_KILLED,    /* `signal` */
    BH_KEEPER_NOT_BEGUN, /* the work never ran; `code` and `why` */
};

struct bh_keeper_end {
    uint64_t lease;
    enum bh_keeper_how how;
    uint32_t status; /* of a container that a signal ended, 128 + the signal: runtimes say no more */
    uint32_t signal;
    int32_t code;                  /* not begun: an enum bh_code */
    bool stopped;                  /* by a STOP, or because whoever was attached has left */
    uint64_t started_ms, ended_ms; /* since 1970; started 0: not begun */
    bool counted; /* the warden gave its account; false: without a gate, or it was given up */
    uint64_t peak_bytes, refused, denied, killed;
    uint64_t out_of_memory;     /* processes that the machine's memory limit ended */
    uint64_t output_lost_bytes; /* could not be written (a full disk); what was rotated away is not counted */
    char why[BH_KEEPER_TEXT];   /* for people; "": it ended by itself */
};

void bh_keeper_end_write(const struct bh_keeper_end *end, struct bh_buf *out);
int bh_keeper_end_read(const char *text, size_t n, struct bh_keeper_end *ret, struct bh_err *err) BH_MUST_USE;

/* ---- the socket: SOCK_SEQPACKET, one structure a message ---- */

enum bh_keeper_op {
    BH_KEEPER_STATUS = 1,
    BH_KEEPER_WATCH, /* the status now, and again after each change; the connection closes when the keeper has ended */
    BH_KEEPER_SIGNAL, /* to the first process of the work */
    BH_KEEPER_STOP, /* TERM to all its processes, KILL after the grace; from root or the keeper's own user alone */
    /* With three descriptors, from the work's user: as WATCH, and the work runs on these. If that connection closes before
     * the end, the work is stopped. */
    BH_KEEPER_ATTACH,
};

struct bh_keeper_order {
    uint32_t version, op;
    uint32_t signal;
    uint32_t grace_ms; /* of a STOP; UINT32_MAX: as in the spec */
};

enum bh_keeper_state {
    BH_KEEPER_WAITS,  /* for somebody to attach */
    BH_KEEPER_STARTS, /* governor, warden, cgroup */
    BH_KEEPER_RUNS,
    BH_KEEPER_STOPS, /* after a STOP */
    BH_KEEPER_OVER,  /* the end record is on disk */
};

struct bh_keeper_status {
    uint32_t version;
    int32_t code; /* 0, or why the order was not carried out, and the text */
    uint32_t state;
    uint32_t keeper_pid, work_pid; /* work_pid 0: it does not run */
    uint32_t how, status, signal;  /* once it is over: as in the end record */
    uint64_t started_ms;
    char text[BH_KEEPER_TEXT];
};

#endif
