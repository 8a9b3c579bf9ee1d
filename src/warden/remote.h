/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - a tenant's processes as the warden reaches them: their memory, their descriptors, who they are.
 *
 * A duplicate of a tenant's descriptor is kept for the next call, and proved before each use to be the file that the
 * calling thread has under that number now. What is kept must never be what keeps a file open: whoever holds duplicates
 * sweeps (bh_remote_sweep) often enough for a closed file to be closed.
 */
#ifndef BH_WARDEN_REMOTE_H
#define BH_WARDEN_REMOTE_H

#include "base/err.h"
#include "base/mem.h"
#include "warden/driver.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 0, or -EFAULT where any of it is not there, or what the kernel says. */
int bh_remote_read(uint32_t tid, uint64_t at, void *to, size_t n);
struct bh_remote_piece {
    uint64_t at; /* the tenant's address */
    const void *from;
    size_t n;
};
int bh_remote_write(uint32_t tid, const struct bh_remote_piece *pieces,
                    size_t n); /* up to 2, in this order */

struct bh_remote_slot {
    int fd;        /* the tenant's */
    uint32_t file; /* index */
    bool gone;     /* the sweep's: nobody who was asked has it there */
};

struct bh_remote_mapping {
    uint32_t tid, tick;
    uint64_t bytes;
    uint64_t cpu_ns;  /* the thread's processor time when it was let through, and ... */
    uint64_t user_ns; /* ... what it had of that outside of the kernel when it was looked at first */
    bool looked;
    bool unsettled; /* when the thread comes back it is looked at what it has mapped */
    bool lingers;   /* nothing was granted: a mapping of another file was let through */
};

struct bh_remote_process {
    uint32_t pid;
    int pidfd;
    uint64_t started; /* for whoever hears of it to fill in */
    uid_t uid;
    bool admin;          /* may do what needs CAP_SYS_ADMIN of the machine */
    uint32_t rights_age; /* of the two: of which age they are (bh_remote.age) */
    BH_VEC(struct bh_remote_slot) slots;
    int32_t params_apart; /* how far behind an allocation its parameters were the last time; 0: not near */
    uint64_t mapped;      /* managed memory granted */
    bool
        let_map; /* a shared mapping of another file was let through; when, or that it was over, at this tick */
    uint32_t let_map_tick;
    BH_VEC(struct bh_remote_mapping) mapping; /* of it: what threads may be about to map, one each */
    size_t mapping_next; /* of these: the next to be looked at, whether it has ended, ... */
    size_t mapping_look; /* ... and whether it has mapped */
};

struct bh_remote_file {
    uint64_t id; /* never given twice; 0: free */
    int fd;      /* the warden's duplicate */
    uint32_t index, refs;
    bool used; /* something was made on it */
    uid_t uid; /* of the last process that asked for something on it */
    struct bh_driver_file what;
};

struct bh_remote_hear {
    void (*closed)(void *arg, uint64_t file); /* no process has it any more */
    void (*learned)(void *arg, struct bh_remote_process *p);
    /* A process has this file under a number, or has it no longer. May be NULL. */
    void (*held)(void *arg, const struct bh_remote_process *p, int fd, const struct bh_remote_file *f);
    void (*dropped)(void *arg, const struct bh_remote_process *p, int fd);
    /* A lost file is about to be closed. May be NULL. */
    void (*closing)(void *arg, const struct bh_remote_file *f);
};

struct bh_remote {
    const struct bh_driver *driver;
    struct bh_remote_hear hear;
    void *arg;
    pid_t self;
    uint64_t filters;             /* system call filters on the warden itself; those of a lease carry more */
    struct bh_watchdog *watchdog; /* told where a tenant's file could make this wait; NULL: nobody */
    int fds_most;                 /* from this descriptor on they are the warden's own */
    bool ending;
    bool ordered; /* `order` can be relied on */
    uint32_t age; /* raised by whoever wants to know anew who processes are that may do more than others */
    uint64_t last_id;
    size_t n_lost; /* files with nobody who is known to have them, not closed yet */
    BH_VEC(struct bh_remote_process *) processes;
    BH_VEC(struct bh_remote_file) files;
    BH_VEC(uint32_t) order; /* of the files: as the kernel orders them */
    struct {
        uint32_t tid;
        struct bh_remote_process *process;
        int64_t proved_ns; /* when */
    } threads[1024];       /* where a thread was found last */
};

/* BH_REFUSED where the kernel cannot compare open files. */
int bh_remote_init(struct bh_remote *r, const struct bh_driver *driver, const struct bh_remote_hear *hear,
                   void *arg, struct bh_err *err) BH_MUST_USE;
void bh_remote_fini(struct bh_remote *r);

/* The last tick of the kernel's clock (10 ms at most). The kernel gives a number of a process or thread again when it has given
 * all the others, of which there are 32,768 or more: not within one tick. */
int64_t bh_remote_tick_ns(void);
/* The process of a thread. NULL: it is gone, and was a tick ago. Who one with more rights is may change (never for more): it
 * is read again where r->age is another than the last time. */
struct bh_remote_process *bh_remote_process(struct bh_remote *r, uint32_t tid);
/* Closes everything kept of it and forgets it. */
void bh_remote_forget(struct bh_remote *r, struct bh_remote_process *p);

/*
 * What the thread has open under fd, held until it is released. 0 and ret->id 0: somebody else's file. -EBADF: nothing
 * is open; -EPERM: it cannot be known (a thread with descriptors of its own, on a kernel that cannot reach them).
 */
int bh_remote_file(struct bh_remote *r, struct bh_remote_process *p, uint32_t tid, int fd,
                   struct bh_remote_file *ret);
void bh_remote_release(struct bh_remote *r, const struct bh_remote_file *f); /* somebody else's: nothing */
/* Another warden knew this file by the number `id`. false: what is there now is not that, or nothing is. */
bool bh_remote_restore(struct bh_remote *r, struct bh_remote_process *p, int fd, uint64_t id,
                       struct bh_driver_file what, uint64_t inode);
uint64_t bh_remote_inode(const struct bh_remote_file *f); /* the same for two opens of one device */
/* Drops what a process no longer has under the number it was found by. One that is ending has all until it has ended: whoever
 * closed a file here before that would find that somebody has its memory still. */
void bh_remote_sweep(struct bh_remote *r);
/*
 * Learns every process that has one of these files open: a child keeps what its parent opened, and need not ask for
 * anything.
 */
void bh_remote_find_holders(struct bh_remote *r);
/*
 * A file on which something was made and that nobody is known to have any more is lost: it stays open here, so that what was
 * made keeps its name, until whoever counts has counted and lets it be closed. Looking for somebody who has it walks over
 * all processes, so it is done for all lost files at once. True: some are lost indeed.
 */
bool bh_remote_find_lost(struct bh_remote *r);
void bh_remote_close_lost(struct bh_remote *r);
/* Its files of a kind, as the warden's duplicates: how many of them, at most max. */
size_t bh_remote_files_of(const struct bh_remote *r, const struct bh_remote_process *p, uint8_t kind,
                          int *ret, size_t max);

#endif
