/* SPDX-License-Identifier: Apache-2.0 */
/*
 * excerpt.h - the line a finding is about, with a mark under the place.
 *
 * The input keeps no text, so files are read once more, each at most once. What cannot be
 * read again (a pipe, standard input, a file that has gone) simply has no excerpt.
 */
#ifndef BH_CLI_EXCERPT_H
#define BH_CLI_EXCERPT_H

#include "base/buf.h"
#include "base/mem.h"
#include "conf/input.h"

struct bh_excerpt_file {
    bool tried;
    char *text; /* NULL: cannot be read again */
    size_t n;
    BH_VEC(size_t) lines; /* where each starts */
    uint32_t last_line;   /* how far the line shown last was walked: */
    size_t last_column, last_byte;
};

struct bh_excerpts {
    const struct bh_input *in;
    struct bh_excerpt_file *files; /* one for each of in->files */
};

void bh_excerpts_init(struct bh_excerpts *e, const struct bh_input *in);
void bh_excerpts_fini(struct bh_excerpts *e);
/* Two lines, `  22 | text` and the caret; nothing where there is no such line. width: of the whole. */
void bh_excerpt_add(struct bh_excerpts *e, struct bh_pos pos, unsigned width, struct bh_buf *b);

#endif
