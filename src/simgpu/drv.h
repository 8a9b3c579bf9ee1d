/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drv.h - the caller's side of simulated device files: open, ioctl, mmap and the doorbell.
 *
 * An ioctl is first issued as the system call it would be on a real node, so that whoever stands at the system
 * call boundary (seccomp) sees, answers or refuses it. Where nobody did, a socket answers ENOTTY and the request goes
 * to the resource manager as a message. The node's folder is what BULKHEAD_SIM names. Thread-safe: each thread has
 * its own connection, made anew after a fork.
 */
#ifndef BH_SIMGPU_DRV_H
#define BH_SIMGPU_DRV_H

#include "simgpu/node.h"
#include "simgpu/view.h"
#include "simgpu/wire.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All: 0 or more on success, -1 and errno otherwise, as the system calls they stand for. */

int bh_sim_open(
    const char
        *path); /* `/dev/nvidiactl`, `/dev/nvidia0`, `/dev/nvidia-uvm`; ENODEV: no node, or it is gone */
int bh_sim_ioctl(int fd, uint32_t cmd, void *arg);
/* The part of bh_sim_ioctl behind the system call: what a supervisor issues for somebody else's descriptor. Pointers
 * in arg are taken to be the caller's own. */
int bh_sim_ioctl_direct(int fd, uint32_t cmd, void *arg);
/* mmap on a device file: the system call first (ENODEV where nobody answers), then the manager is asked. The range
 * number is what bh_sim_touch and bh_sim_munmap take; the memory itself is ordinary host memory. */
void *bh_sim_mmap(int fd, size_t length, int prot, int flags, uint64_t *ret_range);
int bh_sim_munmap(int fd, void *at, size_t length, uint64_t range);
int bh_sim_touch(int fd, uint64_t range, uint32_t gpu);

int bh_sim_doorbell(int fd, uint32_t client, uint32_t channel, uint64_t work_ns, uint64_t *ret_fence);
/* The same. *ret_done: a fence that is done, at least; 0: none is known to be. */
int bh_sim_ring(int fd, uint32_t client, uint32_t channel, uint64_t work_ns, uint64_t *ret_fence,
                uint64_t *ret_done);
int bh_sim_fence(int fd, uint32_t client, uint32_t channel, uint64_t *ret_done);
int bh_sim_wait(int fd, uint32_t client, uint32_t channel, uint64_t fence); /* EIO: the work was lost */
int bh_sim_write(int fd, uint32_t client, uint32_t memory, uint64_t offset, const void *bytes, size_t n);
int bh_sim_read(int fd, uint32_t client, uint32_t memory, uint64_t offset, void *bytes, size_t n);
int bh_sim_fill(int fd, uint32_t client, uint32_t memory, uint64_t offset, uint8_t byte, uint64_t n);

int bh_sim_hello(struct bh_sim_node_view *ret);
int bh_sim_view(uint32_t gpu, struct bh_sim_gpu_view *ret);
ssize_t bh_sim_events(uint64_t after, struct bh_sim_event *ret, size_t max);
int bh_sim_mig(struct bh_sim_mig_order *order);
/* Any request; reply goes where the request was. fd -1: none. ret_fd may be NULL. For drv's own use, the command line
 * and tests. */
int bh_sim_call(struct bh_sim_msg *msg, void *body, size_t body_max, int fd, int *ret_fd);
/* How long this thread's requests wait for the node before they fail with EAGAIN; 0, as at first: for ever. */
void bh_sim_patience(uint32_t ms);
/* A number that no other socket ever has: how a descriptor is known again. 0: no socket. */
uint64_t bh_sim_socket_cookie(int fd);
/* The folder of another node than BULKHEAD_SIM's, for this thread; NULL: BULKHEAD_SIM again. */
void bh_sim_use(const char *folder);

#endif
