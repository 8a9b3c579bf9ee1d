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

struct bh_nvml {
    struct bh_nvml_api api;
    void *library;
    const char *path; /* as it was asked for */
    bool simulated;
};

/* The status of a call, or NVML_FUNCTION_NOT_FOUND where the library does not have it. */
#define BH_NVML_CALL(n, fn, ...) ((n)->api.fn ? (n)->api.fn(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* Why a reading is missing, in a few words; never NULL for a status other than NVML_OK. */
const char *bh_nvml_why(struct bh_arena *a, int status);
/* v, or why it is missing. */
struct bh_reading bh_nvml_reading(struct bh_arena *a, int status, uint64_t v);
/* A string the library wrote into a buffer of `size`; NULL when status or text is no good. */
const char *bh_nvml_text(struct bh_arena *a, int status, const char *buf, size_t size);
/* `0000:18:00.0`; NULL: out of range. */
const char *bh_nvml_pci(struct bh_arena *a, int status, const struct nvml_pci_info *pci);

/* Each fills its part of *d. */
void bh_nvml_read_device(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                         struct bh_gpu_device *d);
void bh_nvml_read_memory(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                         struct bh_gpu_device *d);
void bh_nvml_read_mig(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                      struct bh_gpu_device *d);
void bh_nvml_read_links(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                        struct bh_gpu_device *d);
void bh_nvml_read_processes(const struct bh_nvml *n, nvml_device_t h, struct bh_arena *a,
                            struct bh_gpu_device *d);
/* Between all pairs; then who is in which NVLink domain. handles: one for each device, NULL where it is dead. */
void bh_nvml_read_paths(const struct bh_nvml *n, const nvml_device_t *handles, struct bh_gpu_snapshot *s);

#endif
