/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_cluster.h - what the parts of the Slurm reader share. Private to src/conf/slurm*.c.
 *
 * slurm.c makes records of lines; slurm_gres.c understands devices; slurm_map.c fills the
 * model. Which of slurm.conf, gres.conf and cgroup.conf a text is shows from its keys.
 */
#ifndef BH_CONF_SLURM_CLUSTER_H
#define BH_CONF_SLURM_CLUSTER_H

#include "base/map.h"
#include "conf/read.h"

struct bh_slurm_pair {
    const char *key, *value; /* the key in lower case */
    struct bh_pos pos;       /* of the key */
};

/* One line (with its continuations): pairs [first, first + n). */
struct bh_slurm_record {
    uint32_t first, n;
};

enum bh_slurm_kind { BH_SLURM_CONF, BH_SLURM_GRES, BH_SLURM_CGROUP };

struct bh_slurm_file {
    uint8_t kind;        /* enum bh_slurm_kind */
    struct bh_pos first; /* its first pair */
};

/* A kind of device on some nodes: a line of gres.conf, or a part of a NodeName's Gres. */
struct bh_slurm_gres {
    const char *name, *type, *nodes; /* type NULL: none; nodes NULL: every node */
    const char *profile, *model;     /* of a MIG slice; NULL: not said */
    uint64_t count;                  /* of devices on each node; 0: not said */
    uint64_t files;                  /* of gres.conf: how many devices its files are */
    bool mig;
    struct bh_pos pos;
};

struct bh_slurm {
    struct bh_policy *p;
    struct bh_diags *d;
    struct bh_arena arena;
    BH_VEC(struct bh_slurm_pair) pairs;
    BH_VEC(struct bh_slurm_record) records;
    BH_VEC(struct bh_slurm_file) files;
    BH_VEC(struct bh_slurm_gres) lines; /* of gres.conf */
    BH_VEC(struct bh_slurm_gres) nodes; /* of slurm.conf */
    bool detects;                       /* AutoDetect anywhere: the node finds its own devices */
};

/* ---- slurm.c ---- */
/* A record's pair by its key in lower case; NULL: none. */
const struct bh_slurm_pair *bh_slurm_get(const struct bh_slurm *s, const struct bh_slurm_record *r,
                                         const char *key);
/* A setting of the whole cluster (the last one written counts); NULL: not set. */
const struct bh_slurm_pair *bh_slurm_global(const struct bh_slurm *s, const char *key);
/* Is `word` in a list separated by commas? Letter case does not count. */
bool bh_slurm_has(const struct bh_slurm_pair *p, const char *word);

/* ---- slurm_gres.c ---- */
void bh_slurm_read_gres(struct bh_slurm *s); /* fills lines, nodes, detects */
void bh_slurm_check_counts(struct bh_slurm *s);

#endif
