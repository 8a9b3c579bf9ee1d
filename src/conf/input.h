/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - from paths on a command line to things that can be judged.
 *
 * Files are told apart by content. Each policy file is a unit of its own; all
 * Kubernetes manifests together are one cluster, and all Slurm files together are
 * one. A folder stands for every .yaml, .yml, .json and .conf file below it; what merely lies
 * there need not concern us, so a file of a folder that is wrong does not keep the rest from
 * being judged. A file that was named itself does.
 */
#ifndef BH_CONF_INPUT_H
#define BH_CONF_INPUT_H

#include "conf/diag.h"
#include "core/model/policy.h"

enum bh_file_kind {
    BH_FILE_UNKNOWN,
    BH_FILE_POLICY,
    BH_FILE_FLEET,
    BH_FILE_KUBERNETES, /* also bare device-plugin and mig-parted configurations */
    BH_FILE_SLURM,
};

struct bh_unit {
    struct bh_policy policy; /* linked */
    const char *label;       /* the policy's path, `Kubernetes manifests (12 files)`, `Slurm configuration` */
    uint32_t file;           /* the first file of it */
};

struct bh_input {
    struct bh_arena arena;
    BH_VEC(const char *) files;     /* bh_pos.file indexes this */
    BH_VEC(struct bh_unit *) units; /* in the order of their first file */
    struct bh_fleet fleet;
    bool has_fleet;
    uint32_t fleet_file;   /* which of the files it came from */
    struct bh_diags diags; /* n_errors > n_set_aside: nothing may be judged */
    size_t n_set_aside;    /* errors in files of folders: what they spoil is not among the units */
};

void bh_input_fini(struct bh_input *in);
/*
 * Read everything and link it. fleet_path NULL: a fleet among `paths` is used if there is one.
 * What is wrong with the text is in in->diags; a failure here is a path that cannot be read.
 */
int bh_input_load(struct bh_input *in, const char *const *paths, size_t n, const char *fleet_path,
                  struct bh_err *err) BH_MUST_USE;

/*
 * One policy that is not a file but a text (the daemon's store), linked with a fleet that is there already (or NULL). What is
 * wrong is in *d, with file 0; errors there: *ret must not be judged. *ret is to be fini'ed in any case.
 */
void bh_policy_load_text(struct bh_policy *ret, const char *text, size_t n, const struct bh_fleet *fleet,
                         struct bh_diags *d);

#endif
