/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/out.h"

#include "base/str.h"

void bh_findings_sum(const struct bh_findings *f, struct bh_findings_sum *ret)
{
    *ret = (struct bh_findings_sum){0};
    for (size_t i = 0; i < f->in->units.n; i++) {
        ret->errors += f->reports[i].n_errors;
        ret->warnings += f->reports[i].n_warnings;
        ret->infos += f->reports[i].n_infos;
        ret->waived += f->reports[i].n_waived;
    }
}

static bool has_unchecked(const bh_unchecked_vec *v, const struct bh_unchecked *u)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->at[i].rule == u->rule && bh_str_eq(v->at[i].reason, u->reason))
            return true;
    return false;
}

void bh_findings_unchecked(const struct bh_findings *f, bh_unchecked_vec *ret)
{
    for (size_t i = 0; i < f->in->units.n; i++) {
        const struct bh_report *r = &f->reports[i];
        for (size_t k = 0; k < r->unchecked.n; k++)
            if (!has_unchecked(ret, &r->unchecked.at[k]))
                *bh_vec_push(ret) = r->unchecked.at[k];
    }
}

struct bh_pos bh_finding_where(const struct bh_finding *f)
{
    return f->cause.line ? f->cause : f->pos;
}

const char *bh_input_file(const struct bh_input *in, uint32_t file)
{
    return file < in->files.n ? in->files.at[file] : "";
}
