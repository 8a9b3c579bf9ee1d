/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bypass.h - what the attempts to get more video memory than the cap, or more time than the share, have in common.
 *
 * Each attempt goes for about three times the cap in one way, says what it met, and then holds what it has, so that
 * whoever stands outside can ask the driver. They are tests of our own wall: run inside `bulkhead run`, on simulated
 * silicon where BULKHEAD_SIM is set and on a real card else, by the same calls. What one says goes to stdout:
 *
 *     how WORDS        what was met; several lines are one story
 *     pid NUMBER       who makes it
 *     got BYTES        what it believes to have
 *     holding          it waits for the end of stdin now
 *
 * Its status says whether it was made (0), saw what must not be (1: `bad WORDS`) or could not be made here (3:
 * `cannot WORDS`). Whether the wall held is for the driver's count to say, not for the attempt.
 */
#ifndef BH_TESTS_BYPASS_BYPASS_H
#define BH_TESTS_BYPASS_BYPASS_H

#include "gpu/abi/rm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MIB      (UINT64_C(1) << 20)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { BP_MADE = 0, BP_BAD = 1, BP_CANNOT = 3 };
enum { BP_TIMES = 3, BP_PIECES = 8 }; /* how many caps are asked for, and pieces in one */

extern struct bp {
    uint64_t cap, piece;
    const char *self;    /* this program */
    const char *outside; /* socket of the helper outside of the lease; NULL: there is none */
    bool sim;
} bp;

/* ---- saying (common.c) ---- */
void bp_how(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void bp_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void bp_cannot(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What a call came to: 0, a status of the resource manager, or a negative errno. */
const char *bp_result(int rc);
/* It must have come to this. */
void bp_expect(const char *what, int rc, int want);
void bp_who(void);
void bp_got(uint64_t bytes);
void bp_until_told(void); /* waits for the end of stdin */
int bp_hold(void);        /* says `holding`, waits, and ends well */

/* ---- the driver (device.c): a real one, or simulated silicon ---- */
int dev_open(const char *path);                 /* -1 and errno */
int dev_ioctl(int fd, uint32_t cmd, void *arg); /* 0 or a negative errno */
/* Simulated silicon only: whoever stands at the system call sees the first file, the manager the second. */
int dev_ioctl_turned(int seen, int fd, uint32_t cmd, void *arg);
void *dev_map_turned(int seen, int fd, size_t n, uint64_t *ret_range); /* NULL and errno */
/* Managed memory: a mapping of the UVM file. *range: what dev_touch takes. NULL and errno. */
void *dev_map(int fd, size_t n, int flags, uint64_t *ret_range);
int dev_touch(int uvm, const uint8_t uuid[16], void *at, size_t n, uint64_t range); /* by the GPU */

/* A client with a device and a subdevice on the first GPU. */
struct rm {
    int ctl, gpu;
    uint32_t client, device, subdevice;
    uint32_t last; /* name given last */
};
int rm_open(struct rm *r);       /* as bp_result takes it */
void rm_must_open(struct rm *r); /* or it cannot be tried */
void rm_close(struct rm *r);
int rm_alloc(struct rm *r, uint32_t parent, uint32_t *object, uint32_t class, void *params);
int rm_control(struct rm *r, uint32_t object, uint32_t command, void *params, uint32_t n);
int rm_free(struct rm *r, uint32_t client, uint32_t object);
int rm_dup(struct rm *r, uint32_t *object, uint32_t source_client, uint32_t source);
struct rm_memory_params rm_memory(uint64_t bytes); /* in the shape that the vendor's library asks in */
uint32_t rm_name(struct rm *r);
int rm_take(struct rm *r, uint64_t bytes, uint32_t *ret_object); /* ret_object may be NULL */
int rm_uuid(struct rm *r, uint8_t uuid[16]);
int rm_free_bytes(struct rm *r, uint64_t *ret); /* what the card has free, as the driver tells */

/* A UVM file that knows the GPU and an address space of the client. */
struct uvm {
    int fd;
    uint8_t uuid[16];
    uint64_t next; /* address of the next range */
};
int uvm_open(struct uvm *u, struct rm *r);
int uvm_call(int fd, uint32_t number, void *arg); /* with its status */
/* How UVM_MAP_EXTERNAL is asked; what is to be mapped stands in `memory`. */
struct uvm_map {
    uint64_t base, length, offset;
    struct {
        uint8_t uuid[16];
        uint32_t mapping, caching, format, bits, compression;
    } gpus[256];
    uint64_t n;
    int32_t ctl;
    uint32_t client, memory, status;
};
int uvm_range(struct uvm *u, const struct rm *r, uint64_t bytes,
              struct uvm_map *ret); /* a range to map into */
int uvm_map_memory(struct uvm *u, const struct rm *r, uint32_t memory, uint64_t bytes);

/* ---- asking for more and more (common.c) ---- */
typedef int bp_take_fn(void *arg, uint64_t bytes);
/* Takes pieces until one is refused or `times` caps are had; the first must be granted, or the attempt says nothing.
 * Tells what was got and why no more. */
uint64_t bp_fill(const char *how, bp_take_fn *take, void *arg);
int bp_take_rm(void *rm, uint64_t bytes);
/* The same for the ordinary call, from a client of its own. */
uint64_t bp_fill_rm(const char *how, struct rm *r);
/* Takes what the lease has, so that everything after it is beyond. */
uint64_t bp_fill_up(struct rm *r);

int bp_send_fd(int to, int fd, const void *bytes, size_t n);
int bp_receive_fd(int from, int *ret_fd, void *bytes, size_t n); /* bytes received, or -1 */
/* Asks the helper outside: its answer, and the descriptor that came along (-1: none). */
struct bp_outside {
    int32_t pid;
    uint32_t client, device;
    int32_t fd;    /* number of the open file there */
    uint64_t word; /* address of a word there */
};
void bp_ask_outside(struct bp_outside *ret, int *ret_fd);

/* ---- what changes while a call is made (races.c) ---- */
struct bp_flip {
    pthread_t thread;
    atomic_bool stop;
    volatile uint32_t *word32; /* or word64 */
    volatile uint64_t *word64;
    uint64_t values[2];
    int fd, files[2]; /* fd >= 0: no word, but this number is turned between the two files */
};
void bp_flip_begin(struct bp_flip *f);
void bp_flip_end(struct bp_flip *f);

/* ---- attempts ---- */
enum bp_flags {
    BP_REAL = 1,    /* a real card only */
    BP_OUTSIDE = 2, /* needs the helper outside */
    BP_ROOT = 4,    /* made as root; the others are made as nobody */
    BP_RAW = 8,     /* needs no vendor library: the static program makes it too */
    BP_HIDDEN = 16, /* a part of another attempt */
    BP_SHARE = 32,  /* made in a lease whose share of the time is held */
};
struct bp_attempt {
    const char *name;
    int (*fn)(void);
    unsigned flags;
    const char *what; /* with BP_REAL: why only there */
};
/* Each ends with a row without a name. */
extern const struct bp_attempt bp_forms[], bp_handles[], bp_keep[], bp_late[], bp_races[], bp_maps[],
    bp_processes[], bp_reach[], bp_outsiders[], bp_steer[], bp_cuda[];

/* helpers outside of the lease (watch.c) */
int bp_watch(void);                   /* says what of the card is used, as it changes, and who is stopped */
int bp_serve_outside(const char *at); /* hands out what a lease must not be able to use */

#endif
