/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - makes the calls that a recording shows, against a simulated node.
 *
 * CUDA's start and the making of a context are some five hundred calls whose order and sizes are the driver library's
 * own. They are not written down in code: the recording of the real library is, and this walks through it. Objects
 * that the recording numbers get handles here; contents that matter (which GPU, whose memory at which address) are
 * filled in, since a recording has none.
 */
#ifndef BH_SIMGPU_CUDA_PLAY_H
#define BH_SIMGPU_CUDA_PLAY_H

#include "base/mem.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

struct bh_play_object {
    uint32_t handle, client, class; /* client: a handle */
    int fd;                         /* of the file its client was made on */
    bool live;
    uint64_t size, at; /* of memory: its bytes, and where the UVM file has it; 0: nowhere */
};
struct bh_play_file {
    int fd;
    uint8_t kind; /* enum bh_call_file */
    bool owner;   /* a client was made on it */
    bool has_gpu; /* of a UVM file: the GPU was registered with it */
};
struct bh_play_map {
    int fd; /* -1: the file is closed, the mapping stays */
    void *at;
    size_t size;
    uint64_t range;
};
struct bh_play_range {
    uint64_t at, size;
};

struct bh_play {
    const struct bh_play *base; /* what was made before it, by the process; NULL: nothing */
    uint32_t gpu, gi, ci;       /* gi UINT32_MAX: no MIG instance */
    uint32_t gpu_id;            /* the driver's own name for it, once it said so */
    uint64_t total_bytes;       /* and how much memory there is to give out */
    bool ampere;                /* classes of that generation in place of the recorded ones */
    uint8_t uuid[16];
    uint32_t last;                         /* number of the object that was made last */
    uint32_t channels;                     /* how many the UVM file knows */
    BH_VEC(struct bh_play_object) objects; /* at the number the recording gives, less one */
    BH_VEC(struct bh_play_file) files;
    BH_VEC(struct bh_play_map) maps;
    BH_VEC(struct bh_play_range) loose; /* ranges of the UVM file with no object behind them */
};

/* Calls `first` to `first + n` of the recording. 0, or an enum cuda_result: the first that must work and did not. */
int bh_play_calls(struct bh_play *p, const struct bh_recording *r, size_t first, size_t n);
/* Closes what it opened, so that the manager takes back what was made. */
void bh_play_fini(struct bh_play *p);
/* The n-th live object of a class below `client` (0: any), here or before; NULL: none. */
const struct bh_play_object *bh_play_find(const struct bh_play *p, uint32_t class, uint32_t client,
                                          uint32_t n);
int bh_play_file(const struct bh_play *p, enum bh_call_file kind); /* the newest open one; -1: none */
uint32_t bh_play_handle(void);                                     /* one that nobody has yet */
uint32_t bh_play_class(bool ampere, uint32_t class);               /* what a recorded class is called there */

/* What one UVM call is about; its structure is filled in from this. */
struct bh_uvm_call {
    uint64_t base, length, offset;
    const uint8_t *uuid;
    int ctl;
    uint32_t client, object;
};
/* One call on the UVM file: 0, a status of the resource manager, or a negative errno. */
int bh_uvm(int fd, uint32_t number, const struct bh_uvm_call *what);

#endif
