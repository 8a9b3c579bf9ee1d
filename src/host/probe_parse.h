/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse.h - small files that other software keeps on a node, as far as they decide something about
 * tenants.
 *
 * Pure: text in, facts out. The files are others' and may be cut, of another format or hostile; nothing
 * here reads past the text or takes more than one pass over it for a question.
 */
#ifndef BH_HOST_PROBE_PARSE_H
#define BH_HOST_PROBE_PARSE_H

#include "host/parse.h"

enum { BH_NODE_MINORS_MAX = 256 };

/*
 * The next `key=value` line at or after *pos; moves *pos behind it. Blanks around both and quotes around
 * the value are taken off, `#` starts a comment at the start of a line. False: no more.
 * slurm.conf, fabricmanager.cfg and the flat part of TOML are such lines.
 */
bool bh_pairs_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value);
/* The value of the last line with this key, letter case ignored; at NULL: there is none. */
struct bh_span bh_pairs_find(const char *text, const char *key);
bool bh_span_eq_nocase(struct bh_span s, const char *text);
/* Is the word in a list separated by commas? Letter case ignored. */
bool bh_span_lists(struct bh_span s, const char *word);
/* `true` and its like: yes, true, on, 1, Y. */
bool bh_span_yes(struct bh_span s);

/* `MemTotal:  24689234 kB` in /proc/meminfo, in bytes; false: it is not there. */
bool bh_meminfo_bytes(const char *text, const char *key, uint64_t *ret);
/* Does a JSON text say `"key": true` anywhere? */
bool bh_json_says_true(const char *text, const char *key);
/* Marks N in set for every `/dev/nvidiaN` the text names; how many different ones. */
size_t bh_nvidia_minors(const char *text, bool set[BH_NODE_MINORS_MAX]);

#endif
