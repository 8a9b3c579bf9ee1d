/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h - the NVML backend's insides, shared by its files only.
 *
 * The library is another's code of an unknown age: each call may be missing, may fail, and may tell
 * nonsense. What it writes is bounded by us, never by what it says.
 */
#ifndef BH_GPU_NVML_H
#define BH_GPU_NVML_H

#include "gpu/abi/nvml.h"
#include "gpu/gpu.h"

struct bh_nvml_api {
#define NVML_CALL(field, params, ...) int(*field) params;
#include "gpu/nvml_calls.def"
#undef NVML_CALL
};

/* The vendor's names of the calls: the one each was found under, else the newest. */
struct bh_nvml_names {
#define NVML_CALL(field, params, ...) const char *field;
#include "gpu/nvml_calls.def"
#undef NVML_CALL
};

/* A call whose struct is not the one we know; call NULL: none was met. */
struct bh_nvml_misfit {
    const char *call;
    size_t bytes; /* of our struct */
    bool is_short;
};

/* What answers showed on the way, whichever call was asked. */
struct bh_nvml_heard {
    struct bh_nvml_misfit misfit;
    bool lost; /* a call said that its GPU is; whoever asks about another GPU puts it back */
};

struct bh_nvml {
    struct bh_nvml_api api;
    struct bh_nvml_names names;
    void *library;
    char *path; /* as it was asked for */
    struct bh_nvml_heard *heard;
    bool simulated;
};

/*
 * Find the library and start it; close with bh_nvml_close. One that cannot be used gives one sentence, which starts
 * with BH_GPU_SIMULATED where it is no vendor's.
 */
int bh_nvml_open(struct bh_nvml **ret, struct bh_err *err) BH_MUST_USE;
void bh_nvml_close(struct bh_nvml *n);
/* Does this status say that a GPU has no such thing, rather than that it could not be asked? */
bool bh_nvml_lacks(int status);
/* Takes note of what a status means for all that is asked of this GPU; returns it. */
int bh_nvml_hear(const struct bh_nvml *n, int status);
/* BH_CONFLICT and a sentence where a struct did not fit; else BH_OK. */
int bh_nvml_fits(const struct bh_nvml *n, struct bh_err *err) BH_MUST_USE;

/* The status of a call, or NVML_FUNCTION_NOT_FOUND where the library does not have it. */
#define BH_NVML_CALL(n, fn, ...)                                                               \
    ((n)->api.fn ? (bh_gpu_asking((n)->names.fn), bh_nvml_hear((n), (n)->api.fn(__VA_ARGS__))) \
                 : (int)NVML_FUNCTION_NOT_FOUND)

/* Room for a struct that carries no size of its own, with known bytes in it and behind it. */
struct bh_nvml_room {
    _Alignas(16) unsigned char at[512];
};
void *bh_nvml_room_fill(struct bh_nvml_room *r);
/*
 * Copies `size` bytes to out when status is NVML_OK, and zeros otherwise. A library that wrote past them, or left the
 * four bytes at `must` as they were (must == size: not looked at), has another struct: n->heard says so.
 */
int bh_nvml_room_take(const struct bh_nvml *n, const char *call, int status, const struct bh_nvml_room *r,
                      void *out, size_t size, size_t must);
/* BH_NVML_CALL for a call whose last argument is such a struct; `field` is the last of those that are used. */
#define BH_NVML_FILL(n, fn, room, out, must, ...)                                                            \
    bh_nvml_room_take((n), (n)->names.fn, BH_NVML_CALL(n, fn, __VA_ARGS__, bh_nvml_room_fill(room)), (room), \
                      (out), sizeof(*(out)), (must))

/* Why a reading is missing, in a few words; never NULL for a status other than NVML_OK. */
const char *bh_nvml_why(struct bh_arena *a, int status);
/* v, or why it is missing. */
struct bh_reading bh_nvml_reading(struct bh_arena *a, int status, uint64_t v);
/* A string the library wrote into a buffer of `size`; NULL when status or text is no good. */
const char *bh_nvml_text(struct bh_arena *a, int status, const char *buf, size_t size);
/* `0000:18:00.0`; NULL: out of range. */
const char *bh_nvml_pci(struct bh_arena *a, int status, const struct nvml_pci_info *pci);
/* What stands behind `MIG ` in a profile's or a MIG device's name; NULL: nothing. */
const char *bh_nvml_profile_name(struct bh_arena *a, const char *buf, size_t size);

/* Each fills its part of *d. */
void bh_nvml_read_device(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                         struct bh_gpu_device *d);
void bh_nvml_read_memory(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                         struct bh_gpu_device *d);
void bh_nvml_read_mig(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                      struct bh_gpu_device *d);
/* far: where each of them leads, too. */
void bh_nvml_read_links(const struct bh_nvml *n, nvml_device_t h, bool far, struct bh_arena *a,
                        struct bh_gpu_device *d);
/* Who is on it; and with it how busy each keeps it. */
void bh_nvml_read_users(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                        struct bh_gpu_device *d);
void bh_nvml_read_processes(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                            struct bh_gpu_device *d);
/* Between all pairs; then who is in which NVLink domain. handles: one for each device, NULL where it is dead. */
void bh_nvml_read_paths(const struct bh_nvml *n, const nvml_device_t *handles, struct bh_gpu_snapshot *s);
/* The domains alone: of two that are known to be in one nothing is asked. */
void bh_nvml_read_domains(const struct bh_nvml *n, const nvml_device_t *handles, struct bh_gpu_snapshot *s);

#endif
