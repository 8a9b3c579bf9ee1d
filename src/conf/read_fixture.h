/* SPDX-License-Identifier: Apache-2.0 */
/* read_fixture.h - a text read as a policy or a fleet, for the tests of the readers. Test code only. */
#ifndef BH_CONF_READ_FIXTURE_H
#define BH_CONF_READ_FIXTURE_H

#include "base/buf.h"
#include "base/test.h"
#include "conf/read.h"

struct bh_read_fixture {
    struct bh_tree tree;
    struct bh_policy policy;
    struct bh_fleet fleet;
    struct bh_diags diags;
    struct bh_buf said; /* `2:3: message` a line, notes with `note: ` */
};

static inline void bh_read_fixture_fini(struct bh_read_fixture *f)
{
    bh_policy_fini(&f->policy);
    bh_fleet_fini(&f->fleet);
    bh_diags_fini(&f->diags);
    bh_tree_fini(&f->tree);
    bh_buf_fini(&f->said);
    *f = (struct bh_read_fixture){0};
}

/* What was said, in the order it was said. */
static inline const char *bh_read_fixture_read(struct bh_read_fixture *f, const char *text, size_t n,
                                               bool as_fleet)
{
    struct bh_tree_error why;
    bh_read_fixture_fini(f);
    bh_policy_init(&f->policy, BH_SOURCE_POLICY);
    bh_buf_init(&f->said, 1 << 20);
    if (bh_tree_parse(&f->tree, text, n, &why) < 0)
        bh_diag_error(&f->diags, (struct bh_pos){0, why.line, why.column}, "%s", why.message);
    else if (as_fleet)
        bh_fleet_read(&f->fleet, &f->tree, 0, &f->diags);
    else
        bh_policy_read(&f->policy, &f->tree, 0, &f->diags);
    for (size_t i = 0; i < f->diags.at.n; i++) {
        const struct bh_diag *d = &f->diags.at.at[i];
        bh_buf_printf(&f->said, "%u:%u: %s%s\n", d->pos.line, d->pos.column,
                      d->is_error ? "" : "note: ", d->message);
    }
    return bh_buf_text(&f->said);
}

#endif
