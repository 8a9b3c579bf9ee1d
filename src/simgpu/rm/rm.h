/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm.h - the simulated resource manager: what the kernel driver and the card behind it would answer.
 *
 * Pure: no files, no sockets, no clock. The same node, seed and calls at the same times give the same answers,
 * so a test drives it directly and the server (simgpu/serve) only carries bytes. As in the real one, ownership
 * comes from the open file and privilege from whoever makes the call; closing a file frees every client made on
 * it, and freeing an object frees the tree below it.
 */
#ifndef BH_SIMGPU_RM_RM_H
#define BH_SIMGPU_RM_RM_H

#include "base/err.h"
#include "record/record.h"
#include "simgpu/node.h"
#include "simgpu/rm/mig.h"
#include "simgpu/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bh_sim_rm;

struct bh_sim_caller {
    uint32_t pid, uid; /* pid 0: one that cannot be seen from here */
    bool admin;        /* may do what needs CAP_SYS_ADMIN */
    uint64_t
        start; /* when it began, which tells it from others with its pid; 0: not known. Asked of who opens */
};

struct bh_sim_rm *bh_sim_rm_new(const struct bh_sim_node *node); /* node is copied */
void bh_sim_rm_free(struct bh_sim_rm *rm);
/* A number tenants cannot know, so that none can choose handles that are slow to find. Before the first call; no answer
 * depends on it. */
void bh_sim_rm_salt(struct bh_sim_rm *rm, uint64_t salt);

/* An open of /dev/nvidiactl, nvidia<minor> or nvidia-uvm. Returns a file id > 0 or a negative errno. */
int64_t bh_sim_rm_open(struct bh_sim_rm *rm, enum bh_call_file kind, uint32_t gpu,
                       const struct bh_sim_caller *who);
void bh_sim_rm_close(struct bh_sim_rm *rm, uint32_t file);

/* What an open file is, and how much managed memory is mapped of it. */
struct bh_sim_what {
    uint32_t kind, minor; /* kind: enum bh_call_file */
    uint64_t managed_bytes;
};
int bh_sim_rm_what(const struct bh_sim_rm *rm, uint32_t file, struct bh_sim_what *ret); /* or -EBADF */
/* Managed memory mapped of all files that a process opened. */
uint64_t bh_sim_rm_mapped(const struct bh_sim_rm *rm, uint32_t pid);

/*
 * One ioctl. arg: the structure, in and out. params: the bytes its embedded pointer names, in and out (NULL: none).
 * Pointers inside arg are never followed; params_size in it must equal n_params. Returns 0 or a negative errno;
 * the resource manager's own status goes into arg.
 */
int bh_sim_rm_ioctl(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who, uint32_t cmd,
                    void *arg, size_t n_arg, void *params, size_t n_params);
/* What an mmap asked for. */
struct bh_sim_map {
    uint64_t length;
    uint32_t prot, flags; /* kept in the journal */
};
/* mmap of a file. On the UVM file this reserves managed memory: bytes there count when bh_sim_rm_touch says so. */
int bh_sim_rm_map(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who,
                  const struct bh_sim_map *map, uint64_t *ret_range);
int bh_sim_rm_unmap(struct bh_sim_rm *rm, uint32_t file, uint64_t range);
int bh_sim_rm_touch(struct bh_sim_rm *rm, uint32_t file, uint64_t range, uint32_t gpu); /* -ENOMEM: no room */

/* Work for a channel of a client on this file: the doorbell. 0 or a negative errno. */
int bh_sim_rm_submit(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t channel, uint64_t work_ns,
                     uint64_t *ret_fence);
/* The last fence done; a fault of the GPU or channel gives -EIO. */
int bh_sim_rm_fence(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t channel,
                    uint64_t *ret_done);
void bh_sim_rm_advance(struct bh_sim_rm *rm, uint64_t now_ns);
uint64_t bh_sim_rm_next(const struct bh_sim_rm *rm); /* as bh_sim_sched_next, of all engines */

/* The bytes of video memory, by object. Beyond its end: -EFAULT. */
int bh_sim_rm_write(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                    const void *bytes, size_t n);
int bh_sim_rm_read(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                   void *bytes, size_t n);
int bh_sim_rm_fill(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t memory, uint64_t offset,
                   uint8_t byte, uint64_t n);

/* What the driver's library shows. false: no such GPU. */
bool bh_sim_rm_view_gpu(struct bh_sim_rm *rm, uint32_t gpu, struct bh_sim_gpu_view *ret);
/* Processes with channels on a GPU: up to max, returns how many were filled. *ret_now_ns: the time it is of. */
size_t bh_sim_rm_busy(const struct bh_sim_rm *rm, uint32_t gpu, struct bh_sim_busy *ret, size_t max,
                      uint64_t *ret_now_ns);
void bh_sim_rm_view_node(struct bh_sim_rm *rm, struct bh_sim_node_view *ret);
/* Events newer than `after` (a sequence number), at most max of them. */
size_t bh_sim_rm_events(struct bh_sim_rm *rm, uint64_t after, struct bh_sim_event *ret, size_t max);
/* Changes of the cut, for callers with `admin`; NVML statuses. in/out as in struct bh_sim_mig_order. */
int bh_sim_rm_mig(struct bh_sim_rm *rm, const struct bh_sim_caller *who, struct bh_sim_mig_order *order);

/*
 * Break or mend something, in words: `gpu 3 lost`, `gpu 0 xid 79`, `gpu 0 ecc 2`, `gpu 1 throttle power`,
 * `gpu 0 hot 95`, `gpu 2 link 4 down`, `calls fail 51 every 10`, `calls slow 200`, `scrub off`, `library fail 15
 * in nvmlDeviceGetMemoryInfo`, `driver 535.104.05`, `mend`. BH_INVALID says what is understood.
 */
int bh_sim_rm_break(struct bh_sim_rm *rm, const char *words, struct bh_err *err) BH_MUST_USE;
bool bh_sim_rm_scrubs(const struct bh_sim_rm *rm); /* freed memory is cleared: not after `scrub off` */
/* How long a call must wait before it is answered, because something was made slow. */
uint32_t bh_sim_rm_delay_ms(const struct bh_sim_rm *rm);

/* For tests and the end of a storm: what is still held. All zero after the last file is closed. */
struct bh_sim_held {
    uint64_t files, clients, objects, bytes, groups, channels, ranges, chunks;
};
struct bh_sim_held bh_sim_rm_held(const struct bh_sim_rm *rm);
/* Every invariant: owners, sums, geometry. NULL: all hold; else a sentence. */
const char *bh_sim_rm_check(const struct bh_sim_rm *rm);
/* Every call answered is added to this recording; NULL stops it. Borrowed. */
void bh_sim_rm_journal(struct bh_sim_rm *rm, struct bh_recording *journal);

#endif
