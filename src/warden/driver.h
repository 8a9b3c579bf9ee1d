/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the driver as the gate reaches it: the real one, or simulated silicon. Nothing else in the warden knows.
 */
#ifndef BH_WARDEN_DRIVER_H
#define BH_WARDEN_DRIVER_H

#include "base/err.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_peek;

struct bh_driver_file {
    uint8_t kind; /* enum bh_call_file; BH_FILE_OTHER: not the driver's */
    uint32_t gpu; /* of BH_FILE_GPU: its minor */
};

struct bh_driver_held {
    uint64_t alone, shared;
};

/* A channel by name: whose client, and which. */
struct bh_driver_channel {
    uint32_t client, channel;
};
/* GPU time of a process since the driver was first asked, on one GPU, as the card itself wrote it down. */
struct bh_driver_busy {
    uint32_t pid;
    bool on;        /* it had the card when it was last looked */
    uint64_t ns;    /* never falls */
    uint64_t turns; /* how often it was given the card */
    /* Turns at whose end somebody else's began at once, and their time: likely cut short, which ends in time without work. */
    uint64_t cut, cut_ns;
    /* How much of its time without a change of turns was work, where somebody can tell. */
    uint32_t use_permille;
    /* There is reason to think that this is not what it was, or not all where it is not known: it must be seen alone. */
    bool doubt;
};
#define BH_DRIVER_USE_UNKNOWN UINT32_MAX

struct bh_driver {
    const char *name; /* `NVIDIA`, `simulated` */
    /* Can it be one of the driver's? Others are never duplicated: whoever serves them could make that wait. */
    bool (*may_be)(const struct bh_peek *seen);
    /* What a descriptor (the warden's own duplicate of a tenant's) is. */
    struct bh_driver_file (*identify)(int fd);
    /* Issues it as this process: pointers in arg are the warden's own. 0, or -1 and errno. */
    int (*ioctl)(int fd, uint32_t cmd, void *arg);
    /* The driver's own count of video memory of these processes on each GPU (bytes[gpu]). */
    int (*count)(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                 struct bh_err *err);
    /* Managed memory a process has mapped, which no count shows. files: its open files of that kind, as duplicates.
     * Negative: it cannot be told. */
    int64_t (*mapped)(uint32_t pid, const int *files, size_t n);
    bool
        maps_in_mmap; /* such memory is mapped by mmap itself: a thread that is in another call has done so, or will not */
    /* Is this GPU among those it counts on? One that was lost when it was opened is not. */
    bool (*counts)(const void *self, uint32_t gpu);
    /* A second name, of our own, for somebody's memory on a GPU. An enum rm_status; RM_NOT_SUPPORTED where that cannot be
     * done: memory of a GPU instance is for whoever is in it. */
    uint32_t (*hold)(void *self, uint32_t gpu, uint32_t name, uint32_t client, uint32_t object);
    uint32_t (*let_go)(void *self, uint32_t name);
    /* What is held by such names, apart: nobody else has it; others have it too. */
    int (*held)(void *self, uint32_t gpu, struct bh_driver_held *ret);
    uint32_t (*client)(const void *self); /* whom somebody's memory must be shared with for that */
    /* Pauses (or resumes) channels of anybody's on a GPU. An enum rm_status, or a negative errno. Names that are gone are
     * no failure of the others. */
    int (*set_running)(void *self, uint32_t gpu, const struct bh_driver_channel *at, size_t n, bool running);
    /* Begins to write down who has this GPU when: needs CAP_SYS_ADMIN. BH_REFUSED where it cannot. */
    int (*watch_busy)(void *self, uint32_t gpu, struct bh_err *err);
    /* What was written down up to now. Fills up to max, returns how many there are in all (0 where nobody watches, and
     * after records were lost, until it is known again who has the card); the
     * time it is of, on the card's own clock, in *ret_now_ns. */
    size_t (*busy)(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max, uint64_t *ret_now_ns);
    /* Nothing would follow from who rests while it has this GPU: what tells that is asked for seldom until further notice. NULL:
     * it costs nothing here. */
    void (*ask_seldom)(void *self, uint32_t gpu, bool seldom);
    /* Permille of the card that nobody used of late, whoever had it, and 1 at least; 0: not known. NULL: what busy tells is work. */
    uint32_t (*unused)(void *self, uint32_t gpu);
    int (*open)(void **ret_self, size_t *ret_gpus, struct bh_err *err); /* its own client, for counting */
    void (*close)(void *self);
    /* `580.159.04`. BH_REFUSED where this branch's calls are not known (driver_branch.def), naming what still works. */
    int (*check)(char version[32], struct bh_err *err);
};

extern const struct bh_driver bh_driver_nvidia, bh_driver_simulated;
/* The one this machine has: simulated where BULKHEAD_SIM is set. */
const struct bh_driver *bh_driver_here(void);

#endif
