/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - one view of every GPU of this machine, whoever made it.
 *
 * A backend fills a snapshot; everything above reads snapshots and never a vendor's library. A value that
 * could not be had says why, in words a person can act on: unknown is never zero. Strings belong to the
 * snapshot's arena. Nothing here changes a GPU: mig.h does, and asks for the right to.
 */
#ifndef BH_GPU_GPU_H
#define BH_GPU_GPU_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/model/catalog.h"

#include <stdbool.h>
#include <stdint.h>

/* A number that may be missing: why != NULL says so, and v is 0. */
struct bh_reading {
    uint64_t v;
    const char *why;
};

enum { BH_NO_ID = UINT32_MAX };

enum bh_gpu_vendor { BH_GPU_NVIDIA, BH_GPU_AMD };

/*
 * In these structs texts stand together and readings stand together: copy.c takes each run as one, so a new
 * field goes inside its run.
 */
struct bh_gpu_process {
    uint32_t pid; /* as the driver sees it: in the machine's first pid namespace */
    uint32_t gi;  /* GPU instance; BH_NO_ID: not on one */
    uint32_t ci;
    const char *kind; /* `compute`, `graphics`, `mps` */
    const char *name; /* of the command; NULL: not to be seen from here */
    const char *user; /* its name, or its number; NULL: not to be seen from here */
    struct bh_reading memory_bytes;
    struct bh_reading sm_percent, memory_percent; /* of the time, lately: multiprocessors busy, memory busy */
};

struct bh_gpu_instance {
    uint32_t gi, ci;     /* ci BH_NO_ID: a GPU instance without compute instance is no device */
    const char *profile; /* `1g.18gb`: the driver's name; NULL: unknown */
    const char *uuid;    /* `MIG-...`; NULL: no device, or unknown */
    struct bh_reading gi_profile_id;
    struct bh_reading start; /* first memory slice */
    struct bh_reading size;  /* in memory slices */
    struct bh_reading total_bytes, used_bytes, sm;
    struct bh_reading gi_cap, ci_cap; /* minors below /dev/nvidia-caps */
};

/* Are processes kept apart in time, and is local memory wiped between them? */
enum bh_gpu_isolation { BH_ISOLATION_OFF, BH_ISOLATION_ON, BH_ISOLATION_UNWIPED };

enum bh_link_remote { BH_LINK_GPU, BH_LINK_SWITCH, BH_LINK_OTHER };

/* A link between GPUs (NVLink, xGMI) that is up. */
struct bh_gpu_link {
    uint32_t link;
    uint8_t remote;         /* enum bh_link_remote */
    const char *remote_pci; /* NULL: unknown */
};

/* How two GPUs of one maker on this machine reach each other. */
struct bh_gpu_path {
    uint32_t a, b;                         /* places in `devices`, a < b */
    uint32_t n_direct;                     /* links straight between the two */
    const char *ancestor;                  /* `one PCIe switch`, `across sockets`; NULL: unknown */
    struct bh_reading read, write, nvlink; /* peer access: 1 works, 0 does not */
};

struct bh_gpu_device {
    uint32_t index;
    uint8_t vendor;                   /* enum bh_gpu_vendor */
    bool alive;                       /* false: the driver does not answer for it, and little else is known */
    const struct bh_gpu_model *model; /* NULL: not in the catalogue */
    int32_t minor, module_id, numa;   /* -1: unknown; minor: of /dev/nvidiaN, or of the DRM card */
    uint32_t fabric_health;           /* the driver's mask; 0 when fabric_state is missing */
    uint32_t fabric_error;            /* the driver's status where joining the fabric failed; 0: it did not */
    const char *trouble;              /* one sentence; NULL: none seen */
    const char *name, *uuid, *serial, *pci, *vbios, *gsp, *inforom; /* NULL: unknown */
    const char *fabric_key; /* cluster and clique of a fabric across nodes; NULL: none */
    /* GPUs that reach each other over NVLink or xGMI share one: `nvl-0`, `xgmi-8675309`; NULL: no link is up */
    const char *domain;
    const char *compute_partition, *memory_partition; /* AMD: `SPX`, `NPS1`; NULL: cannot be cut that way */
    const char *compute_partitions,
        *memory_partitions; /* what it could be set to, `SPX, DPX`; NULL: unknown */
    struct bh_reading total_bytes, used_bytes, free_bytes, reserved_bytes;
    struct bh_reading mig_mode, mig_pending;          /* 0 off, 1 on */
    struct bh_reading ecc_mode, ecc_pending;          /* 0 off, 1 on */
    struct bh_reading ecc_corrected, ecc_uncorrected; /* since the card was made */
    struct bh_reading ecc_uncorrected_now;            /* since the driver was loaded */
    struct bh_reading remapped_rows, remap_pending, remap_failed;
    struct bh_reading temperature_c, power_mw, power_limit_mw, sm_mhz, memory_mhz, util_percent,
        memory_util_percent;
    struct bh_reading throttle; /* the driver's bits; bh_throttle_words says them */
    struct bh_reading links;    /* how many links to other GPUs or switches are up */
    struct bh_reading fabric_state;
    struct bh_reading isolation;      /* AMD: enum bh_gpu_isolation */
    struct bh_reading instances_seen; /* why: they, or the devices in them, could not be listed in full */
    struct bh_reading processes_seen; /* why: the list could not be had */
    BH_VEC(struct bh_gpu_instance) instances;
    BH_VEC(struct bh_gpu_process) processes;
    BH_VEC(struct bh_gpu_link) up;
};

/* An NVSwitch that the node's driver knows (nvswitch.h). */
struct bh_gpu_switch {
    const char *pci, *bios; /* bios NULL: the driver does not say */
};

/* How the sentence of a failure starts where no real GPU failed. */
#define BH_GPU_SIMULATED "simulated: "

/* How much is asked. What is not asked is unknown, and says so. */
enum bh_gpu_depth {
    BH_GPU_ALL,
    BH_GPU_FLEET, /* not how each pair of cards reaches the other, but in which domains they are */
    BH_GPU_STATE, /* not how the cards reach each other: where links lead, paths, domains */
    BH_GPU_USERS  /* which cards there are, and who is on them */
};

struct bh_gpu_snapshot {
    struct bh_arena arena;
    uint8_t depth;       /* enum bh_gpu_depth */
    bool simulated;      /* everything in it must be shown as such; told even where reading failed */
    const char *library; /* where NVIDIA's was found; NULL: it was not */
    const char *driver, *nvml, *cuda;                          /* NVIDIA's versions; NULL: unknown */
    const char *amdgpu;                                        /* AMD's driver; NULL: none, or no version */
    struct bh_reading cc_environment, cc_feature, cc_devtools; /* confidential computing, as NVML counts */
    BH_VEC(struct bh_gpu_device) devices;
    BH_VEC(struct bh_gpu_path) paths;
    BH_VEC(struct bh_gpu_switch) switches; /* by address; not asked for by BH_GPU_USERS */
    BH_VEC(const char *) notes;            /* what could not be had for the whole machine, each said once */
};

void bh_gpu_snapshot_fini(struct bh_gpu_snapshot *s);
void bh_gpu_note(struct bh_gpu_snapshot *s, const char *fmt, ...) BH_PRINTF(2, 3);
/* Every reading of a device that is not alive says so. */
void bh_gpu_mark_dead(struct bh_gpu_device *d, const char *why);

/* One way to see GPUs. One that is not there fails with BH_NOT_FOUND and a sentence. */
struct bh_gpu_backend {
    int (*open)(void **ret_self, struct bh_err *err);
    int (*snapshot)(void *self, struct bh_gpu_snapshot *s, struct bh_err *err); /* adds to s */
    void (*close)(void *self);
    enum bh_gpu_depth depth; /* told to snapshot in s */
};

extern const struct bh_gpu_backend bh_gpu_nvml; /* libnvidia-ml.so.1, or the library BULKHEAD_NVML names */
extern const struct bh_gpu_backend bh_gpu_amd;  /* amdgpu's files below /sys */
/* All of the above; where there is none, NVIDIA's sentence. */
extern const struct bh_gpu_backend bh_gpu_machine;
/* The same, for whoever need not know all of it: the questions about pairs of cards alone are thousands where there are many. */
extern const struct bh_gpu_backend bh_gpu_machine_fleet, bh_gpu_machine_state, bh_gpu_machine_users;

/*
 * Open, read once, close, in a process of its own: a driver that hangs or a library that crashes costs this
 * process a sentence and no more. BH_BUSY: no call was answered for BULKHEAD_GPU_TIMEOUT seconds (10), or all of
 * them took six times that for each GPU. A failure leaves *ret empty but for `simulated`.
 * Not for a process that holds the library open already: a fork would share its descriptors.
 */
int bh_gpu_read(const struct bh_gpu_backend *b, struct bh_gpu_snapshot *ret, struct bh_err *err) BH_MUST_USE;
/* The same in this process, for as long as it takes. */
int bh_gpu_read_here(const struct bh_gpu_backend *b, struct bh_gpu_snapshot *ret,
                     struct bh_err *err) BH_MUST_USE;

/* Backends say what they are about to ask, so that a hang can be named; texts must be static. */
void bh_gpu_asking(const char *what);
void bh_gpu_asking_of(uint32_t gpu);             /* BH_NO_ID: the machine as a whole */
void bh_gpu_asking_simulated(bool is_simulated); /* is whoever answers from now on no vendor's library? */

/* Was this process told to use a simulated node (BULKHEAD_SIM, or the mark in BULKHEAD_SYSROOT)? */
bool bh_gpu_expects_simulated(void);
/* Puts BH_GPU_SIMULATED before a failure's sentence, once; returns rc. */
int bh_gpu_fail_simulated(int rc, struct bh_err *err);

#endif
