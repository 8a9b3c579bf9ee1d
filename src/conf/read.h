/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - text to model, one reader per language. Each says everything that is wrong into *d and goes on. */
#ifndef BH_CONF_READ_H
#define BH_CONF_READ_H

#include "conf/diag.h"
#include "conf/tree.h"
#include "core/model/policy.h"

/* The policy language (spec: docs/policy.md). p is initialised by the caller. */
void bh_policy_read(struct bh_policy *p, struct bh_tree *t, uint32_t file, struct bh_diags *d);
/* A fleet file. f is zeroed by the caller. */
void bh_fleet_read(struct bh_fleet *f, struct bh_tree *t, uint32_t file, struct bh_diags *d);

/*
 * Kubernetes: documents of many files are gathered, then judged as one cluster.
 * Trees must live until bh_kube_finish; strings that stay are copied into the policy's arena.
 */
struct bh_kube;
struct bh_kube *bh_kube_new(struct bh_policy *p, struct bh_diags *d);
void bh_kube_free(struct bh_kube *k);
void bh_kube_add(struct bh_kube *k, struct bh_tree *t, uint32_t file);
/* How a file is called, so that a bare device-plugin or mig-parted file gives its pools that name. Before finish. */
void bh_kube_name(struct bh_kube *k, uint32_t file, const char *path);
void bh_kube_finish(struct bh_kube *k); /* fills the policy */

/* Slurm: likewise over slurm.conf, gres.conf and cgroup.conf texts. */
struct bh_slurm;
struct bh_slurm *bh_slurm_new(struct bh_policy *p, struct bh_diags *d);
void bh_slurm_free(struct bh_slurm *s);
void bh_slurm_add(struct bh_slurm *s, const char *text, size_t n, uint32_t file);
void bh_slurm_finish(struct bh_slurm *s);

#endif
