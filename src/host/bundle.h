/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h - the OCI bundle of one lease: a folder that runc or crun runs as it stands.
 *
 * The walls are fixed here and are no options: a user namespace on the tenant's own range of users, namespaces for processes,
 * files, IPC, names, network and cgroups, a root that cannot be written to, no capabilities and no way to gain any, no device
 * but the lease's, limits in a cgroup that it cannot see. What a caller chooses is what is inside of them.
 *
 * The folder must be one that the tenant's users can reach (mode 0711 all the way): the runtime enters it as them.
 */
#ifndef BH_HOST_BUNDLE_H
#define BH_HOST_BUNDLE_H

#include "base/buf.h"
#include "host/bundle_gear.h"
#include "host/disks.h"
#include "host/net.h"

enum {
    BH_BUNDLE_ARGS_MAX = 4096,
    BH_BUNDLE_MAX = 4 << 20, /* of config.json */
    BH_BUNDLE_IDS = 65536,   /* users of a tenant's range */
};

/* 0 or NULL: not limited. */
struct bh_bundle_limits {
    uint64_t memory_bytes; /* swap included */
    uint64_t pids;
    uint32_t cpu_milli;        /* thousandths of a core */
    const char *cpus, *mems;   /* lists as `0-3,8`: beside the GPU */
    uint64_t scratch_bytes;    /* for temporary files; 0: a quarter of the memory, or 1 GiB */
    uint64_t disk_bytes_per_s; /* read, and write, of each of the disks */
    bh_disks disks;            /* the caller's */
};

struct bh_bundle {
    uint64_t lease;
    const char *tenant; /* a name (base/units.h) */
    const char *rootfs; /* a folder; NULL: this machine's programs (/usr, /etc, ...), to read only */
    const char *home;   /* a folder of the tenant's; NULL: an empty one that goes with the container */
    const char *const *argv;
    size_t n_argv;
    const char *cwd;   /* NULL: the home */
    uint32_t uid, gid; /* inside */
    uint32_t first_id; /* the tenant's range on the host, BH_BUNDLE_IDS long; not below 65536 */
    const struct bh_gear *gear;
    struct bh_bundle_limits limits;
    const char *cgroup;       /* `a/b`; NULL: bulkhead/L<ID> */
    const char *listener;     /* the keeper's socket for seccomp's listener; NULL: no gate (whole cards) */
    unsigned profile_flags;   /* enum bh_filter_flags */
    const struct bh_net *net; /* NULL: nothing but lo */
    const char *hook;         /* bulkhead-oci; needed with a network */
    bool has_terminal;
};

/* What config.json says. BH_INVALID names what is wrong with the request. */
int bh_bundle_write(const struct bh_bundle *b, struct bh_buf *out, struct bh_err *err) BH_MUST_USE;
/*
 * The folder with it: made, or made anew. What was there under that name before is replaced; nothing is left half-written.
 */
int bh_bundle_make(const struct bh_bundle *b, const char *folder, struct bh_err *err) BH_MUST_USE;
/* Takes away what bh_bundle_make made, and nothing else; no folder is no failure. */
int bh_bundle_remove(const char *folder, struct bh_err *err) BH_MUST_USE;

#endif
