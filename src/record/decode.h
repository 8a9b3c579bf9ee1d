/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - from an ioctl's bytes to the shape that a recording keeps.
 *
 * Whoever stands at the boundary (the recorder, the simulated driver's journal) has the number, the structure
 * as it was after the call, and a way to look behind a pointer in it. Handles become the order of making
 * here.
 */
#ifndef BH_RECORD_DECODE_H
#define BH_RECORD_DECODE_H

#include "record/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest structure an ioctl's command can name. */
enum { BH_IOCTL_BYTES_MAX = 16384 };
/* An ioctl with this command on no file is a program's word to the recorder: the argument is a mark's
 * text. */
#define BH_RECORD_MARK UINT32_C(0xb01c3ead)

/* Handles of all clients; a zeroed struct is an empty one. */
struct bh_object_slot {
    uint32_t client, handle;
    uint32_t number, class; /* number 0: gone */
    bool used;
};
struct bh_objects {
    struct bh_object_slot *slots;
    size_t n, cap;
    uint32_t made;
};
void bh_objects_fini(struct bh_objects *o);

struct bh_ioctl {
    uint8_t file, gpu; /* enum bh_call_file */
    uint32_t cmd;
    const void *bytes; /* the structure, as it is after the call */
    size_t n;          /* how much of it could be read; 0: nothing */
    int error;         /* errno of the call; 0: it returned */
    /* n bytes at an address that stood in the structure; false: they cannot be read. */
    bool (*read)(void *ctx, uint64_t address, void *to, size_t n);
    void *ctx;
};

/* How many bytes of the argument bh_ioctl_decode wants to see. */
size_t bh_ioctl_bytes(uint8_t file, uint32_t cmd);
void bh_ioctl_decode(struct bh_objects *o, const struct bh_ioctl *in, struct bh_call *ret);

/* The file that a path names; `dev` is where device files are ("/dev"). False: none of NVIDIA's. */
bool bh_call_file(const char *dev, const char *path, uint8_t *ret_file, uint8_t *ret_gpu);

#endif
