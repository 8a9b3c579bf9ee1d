/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi.h - a lease for whoever has a container runtime already: `podman run --device bulkhead.dev/lease=L17`.
 *
 * One file for each lease (Container Device Interface), with its device nodes, files and environment, and a hook. CDI carries no
 * seccomp profile, so that stands in a file beside it: for `--security-opt seccomp=FILE`, or put in by bulkhead-oci as the
 * runtime. The hook refuses a container that lacks it.
 */
#ifndef BH_HOST_CDI_H
#define BH_HOST_CDI_H

#include "base/buf.h"
#include "host/bundle_gear.h"

#include <stddef.h>
#include <stdint.h>

#define BH_CDI_KIND   "bulkhead.dev/lease"
#define BH_CDI_FOLDER "/var/run/cdi"
enum { BH_CDI_PATH_MAX = 512, BH_CDI_FILE_MAX = 1 << 20 };

struct bh_cdi {
    uint64_t lease;
    const struct bh_gear *gear;
    const char *hook;       /* the program bulkhead-oci, absolute */
    const char *listener;   /* where the profile's listener goes */
    const char *cgroup;     /* that its container is put into; NULL: its engine's holds it */
    unsigned profile_flags; /* enum bh_filter_flags */
};

struct bh_cdi_paths {
    char spec[BH_CDI_PATH_MAX];    /* FOLDER/bulkhead-L17.json */
    char profile[BH_CDI_PATH_MAX]; /* FOLDER/bulkhead-L17.seccomp: no ending that engines look for */
};
int bh_cdi_paths(const char *folder, uint64_t lease, struct bh_cdi_paths *ret,
                 struct bh_err *err) BH_MUST_USE;

/* The specification's text. profile: the path that its hook will look at. */
int bh_cdi_text(const struct bh_cdi *c, const char *profile, struct bh_buf *out,
                struct bh_err *err) BH_MUST_USE;
/* Profile first, then the specification; each in one piece and on disk. The folder is made where there is none. */
int bh_cdi_write(const char *folder, const struct bh_cdi *c, struct bh_err *err) BH_MUST_USE;
/* Specification first. What is not there is no failure. */
int bh_cdi_remove(const char *folder, uint64_t lease, struct bh_err *err) BH_MUST_USE;
/* Calls `each` for every lease that has a file there, for whoever reconciles. No folder: none. */
int bh_cdi_list(const char *folder, void (*each)(void *arg, uint64_t lease), void *arg,
                struct bh_err *err) BH_MUST_USE;

#endif
