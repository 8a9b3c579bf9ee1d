/* SPDX-License-Identifier: Apache-2.0 */
/* gate_inside.h - what the parts of the gate know of each other. Not for anybody else. */
#ifndef BH_WARDEN_GATE_INSIDE_H
#define BH_WARDEN_GATE_INSIDE_H

#include "base/mem.h"
#include "base/units.h"
#include "warden/gate.h"
#include "warden/remote.h"

#include <linux/seccomp.h>

enum { BH_GATE_PIDS_MAX = 4096, BH_GATE_PARAMS_MAX = 512 };
#define BH_GATE_SLACK (2 * BH_MIB) /* what the driver may count beyond the cap, for each process */

/* A process that ended while something of it may be left with a child that inherited its files. */
struct bh_gate_ghost {
    uint32_t pid;
    int pidfd; /* tells whether the number is still its own */
};

struct bh_gate {
    const struct bh_gate_config *config;
    const struct bh_driver *driver;
    struct bh_gate_stats *stats;
    struct bh_ledger *ledger;
    struct bh_remote remote;
    void *counter;
    size_t n_gpus;
    int epoll, timer;
    bool fast;               /* the timer runs at tick_ms */
    uint32_t idle, ticks;    /* ticks since the last call, and ever */
    uint32_t over;           /* ticks in a row with more than may be */
    uint32_t uncounted[2];   /* calls let through that take memory by themselves, this tick and the last */
    uint32_t count_failures; /* in a row */
    BH_VEC(struct bh_gate_ghost) ghosts;
    uint32_t pids[BH_GATE_PIDS_MAX];
    uint8_t params[BH_GATE_PARAMS_MAX] __attribute__((aligned(8)));
};

/* One notification. */
struct bh_gate_call {
    const struct seccomp_notif *notif;
    struct bh_remote_process *process;
    struct bh_remote_file file;
    uint32_t tid;
    struct {
        uint32_t client, object; /* what was made for it; object 0: nothing */
    } made;
};

/* What a call comes to: 0 answered, a negative errno, or this. */
enum { BH_GATE_CONTINUE = 1 };

/* gate_calls.c */
int bh_gate_ioctl(struct bh_gate *g, struct bh_gate_call *c, uint32_t cmd, uint64_t arg);
int bh_gate_mmap(struct bh_gate *g, struct bh_gate_call *c, uint64_t length);
/* Nobody was left to hear the answer: what was made goes. */
void bh_gate_undo(struct bh_gate *g, struct bh_gate_call *c);

/* gate_watch.c */
/* Takes of the cap, looking again at what is really held before it says no. */
bool bh_gate_reserve(struct bh_gate *g, uint32_t gpu, uint64_t bytes);
bool bh_gate_map(struct bh_gate *g, const struct bh_gate_call *c, uint64_t bytes);
/* A thread that calls again has mapped what it was granted. */
void bh_gate_mapped(struct bh_remote_process *p, uint32_t tid);
/* A call that takes memory by itself is about to run; false: there is no room for one. */
bool bh_gate_room_for_more(struct bh_gate *g, uint32_t gpu);
void bh_gate_tick(struct bh_gate *g);
void bh_gate_wake(struct bh_gate *g); /* a call came: the clock goes at its full pace */
void bh_gate_process_new(struct bh_gate *g, struct bh_remote_process *p);
void bh_gate_process_gone(struct bh_gate *g, struct bh_remote_process *p);

#endif
