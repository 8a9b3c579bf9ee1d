/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_rm.h - what the real driver and simulated silicon have in common: how its count of memory is asked for, and
 * which branches are known. It speaks to the driver directly, so that the warden needs no vendor library.
 */
#ifndef BH_WARDEN_DRIVER_RM_H
#define BH_WARDEN_DRIVER_RM_H

#include "base/err.h"
#include "warden/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bh_driver_files {
    int (*open)(const char *path); /* close-on-exec; -1 and errno */
    int (*ioctl)(int fd, uint32_t cmd, void *arg);
    uint64_t (*clock_ns)(void); /* that only goes on; NULL: the machine's */
};

/* A client of our own, and how its calls are made. They return an enum rm_status, or a negative errno. */
struct bh_rm {
    struct bh_driver_files files;
    int ctl;
    uint32_t client;
};
int bh_rm_control(const struct bh_rm *rm, uint32_t object, uint32_t command, void *params, uint32_t n);
int bh_rm_alloc(const struct bh_rm *rm, uint32_t parent, uint32_t *object, uint32_t class, void *params);

/* As open, count and close of struct bh_driver. GPUs are numbered as clients name them (class 0x80's params). */
int bh_driver_rm_open(const struct bh_driver_files *files, void **ret_self, size_t *ret_gpus,
                      struct bh_err *err) BH_MUST_USE;
int bh_driver_rm_count(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                       struct bh_err *err) BH_MUST_USE;
bool bh_driver_rm_counts(const void *self, uint32_t gpu);
uint32_t bh_driver_rm_hold(void *self, uint32_t gpu, uint32_t name, uint32_t client, uint32_t object);
uint32_t bh_driver_rm_let_go(void *self, uint32_t name);
int bh_driver_rm_held(void *self, uint32_t gpu, struct bh_driver_held *ret) BH_MUST_USE; /* 0, or BH_SYSTEM */
uint32_t bh_driver_rm_client(const void *self);
int bh_driver_rm_set_running(void *self, uint32_t gpu, const struct bh_driver_channel *at, size_t n,
                             bool running);
int bh_driver_rm_watch_busy(void *self, uint32_t gpu, struct bh_err *err) BH_MUST_USE;
size_t bh_driver_rm_busy(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max,
                         uint64_t *ret_now_ns);
void bh_driver_rm_ask_seldom(void *self, uint32_t gpu, bool seldom);
uint32_t bh_driver_rm_unused(void *self, uint32_t gpu);
void bh_driver_rm_close(void *self);
/* Its own objects on a GPU, for more of them (warden/selftest.h). false: there is no such GPU. */
struct bh_driver_rm_names {
    int ctl; /* borrowed */
    uint32_t client, device;
};
bool bh_driver_rm_names(const void *self, uint32_t gpu, struct bh_driver_rm_names *ret);
/* BH_REFUSED where the branch of this version is not in driver_branch.def. */
int bh_driver_rm_known(const char *version, struct bh_err *err) BH_MUST_USE;

#endif
