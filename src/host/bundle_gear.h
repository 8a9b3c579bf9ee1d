/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_gear.h - what the container of a lease is given of this machine: device nodes, files, environment.
 *
 * Collected once, and written twice: into the bundle of a container that we start (host/bundle.h), and into the CDI
 * specification for one that somebody else's runtime starts (host/cdi.h). Nothing is in it that was not added by name:
 * what is not added, the tenant does not have.
 */
#ifndef BH_HOST_BUNDLE_GEAR_H
#define BH_HOST_BUNDLE_GEAR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BH_GEAR_MAX = 512,       /* nodes, mounts and variables, each */
    BH_GEAR_PATH_MAX = 1024, /* of a path, and of a variable with its value 32 times that */
};
/* Where a container finds what we put in. Below /run, which is a file system of its own there: no image must have it. */
#define BH_GEAR_INSIDE    "/run/bulkhead"
#define BH_GEAR_LIBRARIES BH_GEAR_INSIDE "/lib"
#define BH_GEAR_PROBE     BH_GEAR_INSIDE "/probe" /* what the lease says itself (docs/governor.md) */

struct bh_gear_node {
    const char *host, *inside;
    uint32_t major, minor;
    bool is_read_only;
};
struct bh_gear_mount {
    const char *host, *inside;
    bool is_writable;
    bool is_socket; /* where its folder on the machine forbids to run what is in it, so must the container */
};
struct bh_gear {
    struct bh_arena arena; /* owns every text below */
    BH_VEC(struct bh_gear_node) nodes;
    BH_VEC(struct bh_gear_mount) mounts;
    BH_VEC(const char *) env; /* NAME=VALUE, each name once */
};

void bh_gear_fini(struct bh_gear *g); /* a zeroed one is empty */

/*
 * Each adds one thing; what is there already under the same name inside is BH_CONFLICT unless it is the same thing. Paths are
 * absolute and without `..`, else BH_INVALID; what must be on this machine and is not is BH_NOT_FOUND.
 */
int bh_gear_node(struct bh_gear *g, const char *host, const char *inside, bool is_read_only,
                 struct bh_err *err) BH_MUST_USE; /* inside: below /dev; NULL: as on the host */
int bh_gear_mount(struct bh_gear *g, const char *host, const char *inside, bool is_writable,
                  struct bh_err *err) BH_MUST_USE;
/* A socket that somebody will have made by the time that the container starts: it is not looked for now. The file alone is shown, to
 * send to and not to change. */
int bh_gear_socket(struct bh_gear *g, const char *host, const char *inside, struct bh_err *err) BH_MUST_USE;
int bh_gear_env(struct bh_gear *g, const char *name, const char *value, struct bh_err *err) BH_MUST_USE;

/* What a lease of NVIDIA's needs: nvidiactl, nvidia-uvm (once) and nvidiaN. */
int bh_gear_gpu(struct bh_gear *g, uint32_t minor, struct bh_err *err) BH_MUST_USE;
/*
 * The node that guards a GPU instance or a compute instance (gpu/caps.h has its minor). Those that let one cut cards, watch
 * others or manage the fabric are no tenant's: BH_DENIED.
 */
int bh_gear_cap(struct bh_gear *g, uint32_t cap_minor, struct bh_err *err) BH_MUST_USE;
/* The driver's user libraries of that version (`580.159.04`), and LD_LIBRARY_PATH. None found: BH_NOT_FOUND. */
int bh_gear_driver(struct bh_gear *g, const char *version, struct bh_err *err) BH_MUST_USE;
/* In their place, of a simulated node (the folder that BULKHEAD_SIM names): its libraries, its socket and its files. */
int bh_gear_simulated(struct bh_gear *g, const char *folder, struct bh_err *err) BH_MUST_USE;

/* Absolute, without `.`, `..`, empty parts, a slash at the end or control characters, and not too long. */
bool bh_gear_path_valid(const char *path);

#endif
