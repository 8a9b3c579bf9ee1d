/* SPDX-License-Identifier: Apache-2.0 */
/* gate_inside.h - what the parts of the gate know of each other. Not for anybody else. */
#ifndef BH_WARDEN_GATE_INSIDE_H
#define BH_WARDEN_GATE_INSIDE_H

#include "base/mem.h"
#include "base/units.h"
#include "warden/gate.h"
#include "warden/journal.h"
#include "warden/link.h"
#include "warden/proof.h"
#include "warden/remote.h"
#include "warden/rights.h"
#include "warden/watchdog.h"

#include <linux/seccomp.h>

enum { BH_GATE_PARAMS_MAX = 512 };

/* A process that ended while something of it may be left with a child that inherited its files. */
struct bh_gate_ghost {
    uint32_t pid;
    uint64_t started;
    int pidfd; /* tells whether the number is still its own; -1: nobody had it when it was last looked for */
};

struct bh_gate {
    const struct bh_gate_config *config;
    const struct bh_driver *driver;
    struct bh_gate_stats *stats;
    struct bh_ledger *ledger;
    struct bh_journal *journal;
    bool again; /* the call was begun by a warden that died: the driver may have been asked already */
    struct bh_remote remote;
    void *counter;
    size_t n_gpus;
    int epoll, timer;
    int64_t others_ns;         /* when these were last looked at */
    uint32_t pace_ms;          /* what the timer runs at */
    uint64_t maps_ns, lost_ns; /* when everybody's mappings, and files that nobody has, were looked at last */
    uint32_t idle, ticks;      /* ticks since the last call, and ever */
    uint32_t over;             /* ticks in a row with more than may be */
    uint32_t count_failures;   /* in a row */
    uint32_t map_looks;        /* at threads that may be about to map: so many more this time */
    uint64_t forgiven[BH_LEDGER_GPUS]; /* counted beyond what was granted when this warden took over */
    struct bh_proof proof;
    struct bh_rights_own rights;
    struct bh_watchdog *watchdog;
    struct bh_link *link; /* NULL: nobody holds its share */
    BH_VEC(struct bh_gate_ghost) ghosts;
    BH_VEC(uint32_t) pids;
    uint8_t params[BH_GATE_PARAMS_MAX] __attribute__((aligned(8)));
};

/* One notification. */
struct bh_gate_call {
    const struct seccomp_notif *notif;
    struct bh_remote_process *process;
    struct bh_remote_file file;
    uint32_t tid;
    struct bh_watchdog *watchdog;
    int listener;
    struct {
        uint32_t client, object; /* what was made for it; object 0: nothing */
    } made;
};

/* What a call comes to: 0 answered, a negative errno, or this. */
enum { BH_GATE_CONTINUE = 1 };

/* gate.c */
/* The call in the journal, from the beginning to its answer. */
void bh_gate_serve_flight(struct bh_gate *g);
void bh_gate_send_answer(struct bh_gate *g, struct bh_gate_call *c); /* the one in the journal */
void bh_gate_who(struct bh_gate *g, struct bh_gate_call *c);         /* fills in its process; NULL: gone */

/* gate_adopt.c */
/* Goes on from where a warden that died was: its files and processes, what is really held, the call it was at. */
void bh_gate_adopt(struct bh_gate *g, const struct bh_journal_found *found);
void bh_gate_finish_flight(struct bh_gate *g);
/* Around each call that is asked of the driver: what it names is written down first. */
void bh_gate_issuing(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, const void *arg);
void bh_gate_issued(struct bh_gate *g, uint32_t number, void *arg);

/* gate_calls.c */
int bh_gate_ioctl(struct bh_gate *g, struct bh_gate_call *c, uint32_t cmd, uint64_t arg);
int bh_gate_mmap(struct bh_gate *g, struct bh_gate_call *c, uint64_t length);
/* The driver has made an object for this client, so the client is this file's. */
void bh_gate_note_object(struct bh_gate *g, struct bh_gate_call *c, const struct bh_ledger_object *o);
/* Nobody was left to hear the answer: what was made goes. */
void bh_gate_undo(struct bh_gate *g, struct bh_gate_call *c);

/* gate_watch.c */
/* Takes of the cap, looking again at what is really held before it says no. */
bool bh_gate_reserve(struct bh_gate *g, uint32_t gpu, uint64_t bytes);
bool bh_gate_map(struct bh_gate *g, const struct bh_gate_call *c, uint64_t bytes);
/* From now on a thread may map so much. */
bool bh_gate_let_map(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid);
struct bh_remote_mapping *bh_gate_expect(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid,
                                         uint64_t bytes);
/* A thread that calls again has mapped what it was granted, or will not. */
void bh_gate_mapped(struct bh_gate *g, struct bh_remote_process *p, uint32_t tid);
/* Have calls that were let through taken what was not granted? False: they have, and the lease was ended; or it
 * cannot be known. */
bool bh_gate_look_behind(struct bh_gate *g);
void bh_gate_pids(
    struct bh_gate *g); /* into g->pids: all processes of the lease, and those that left something */
/* All its processes are killed, for that reason. */
void bh_gate_end(struct bh_gate *g, const char *why);
/* What the driver counts beyond what was granted is no fault of the tenants'. */
void bh_gate_forgive(struct bh_gate *g);
/* Closes the files that nobody has any more, where they hold memory, or in any case. Their names go with them, so the lease
 * is counted first. True: there were some. */
bool bh_gate_close_lost(struct bh_gate *g, bool empty_too);
void bh_gate_tick(struct bh_gate *g);
/* How long after a tick the next one is, where that one took cost_ns. */
uint32_t bh_gate_pace_ms(uint32_t tick_ms, uint64_t cost_ns, bool quiet, bool over);
void bh_gate_count(struct bh_gate *g); /* the driver's count, into the ledger */
void bh_gate_wake(struct bh_gate *g);  /* a call came: the clock goes at its full pace */
void bh_gate_process_new(struct bh_gate *g, struct bh_remote_process *p);
void bh_gate_process_gone(struct bh_gate *g, struct bh_remote_process *p);

#endif
