/* SPDX-License-Identifier: Apache-2.0 */
/* detect.h - what kind of file this is, by what stands in it. Private to src/conf. */
#ifndef BH_CONF_DETECT_H
#define BH_CONF_DETECT_H

#include "conf/input.h"
#include "conf/tree.h"

/* Of a text that is YAML. */
enum bh_file_kind bh_detect_tree(const struct bh_tree *t);
/* Of a text that is no YAML map: does it look like slurm.conf, gres.conf or cgroup.conf? */
bool bh_detect_slurm(const char *text, size_t n);

#endif
