/* SPDX-License-Identifier: Apache-2.0 */
/* sim_text.h - simulated nodes for people, for programs and for a shell. */
#ifndef BH_CLI_SIM_TEXT_H
#define BH_CLI_SIM_TEXT_H

#include "cli/cli.h"
#include "simgpu/home.h"

enum { BH_SINCE_MAX = 24 };
/* `2026-06-01T12:00:00Z`; 0 is `-`. */
const char *bh_sim_since(uint64_t started_s, char ret[BH_SINCE_MAX]);
/* The user's name, or the number where it has none. */
const char *bh_sim_owner(uint32_t uid, char *ret, size_t size);

void bh_sim_list_text(struct bh_cli *cli, const bh_sim_places *places);
void bh_sim_list_json(struct bh_buf *out, const bh_sim_places *places);
/* What makes a program use this node. was: LD_LIBRARY_PATH as it is; NULL: not set. */
enum { BH_SIM_VARS = 4 };
void bh_sim_vars(const struct bh_sim_place *place, const char *was, const char *ret_names[BH_SIM_VARS],
                 struct bh_buf ret_values[BH_SIM_VARS]);
/* The same as lines for a shell's eval. */
void bh_sim_env_text(struct bh_buf *out, const struct bh_sim_place *place, const char *was);

#endif
