/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/out.h"

void bh_json_key_words(struct bh_json *j, const char *key, const char *const *words)
{
    bh_json_key(j, key);
    bh_json_open_flat(j, '[');
    for (; words && *words; words++)
        bh_json_str(j, *words);
    bh_json_close(j, ']');
}

static void write_finding(struct bh_json *j, const struct bh_input *in, const struct bh_finding *f)
{
    bh_json_open(j, '{');
    bh_json_key_str(j, "rule", f->rule->id);
    bh_json_key_str(j, "severity", bh_severity_str(f->rule->severity));
    bh_json_key_str(j, "subject", f->subject);
    bh_json_key_u64(j, "line", f->pos.line);
    bh_json_key_u64(j, "column", f->pos.column);
    bh_json_key_str(j, "message", f->message);
    bh_json_key_str(j, "fix", f->fix);
    bh_json_key_words(j, "refs", f->rule->refs);
    bh_json_key_bool(j, "waived", f->waived);
    bh_json_key_str(j, "file", bh_input_file(in, f->pos.file));
    if (f->object)
        bh_json_key_str(j, "object", f->object);
    if (f->cause.line) {
        bh_json_key(j, "cause");
        bh_json_open_flat(j, '{');
        if (f->cause.file != f->pos.file)
            bh_json_key_str(j, "file", bh_input_file(in, f->cause.file));
        bh_json_key_u64(j, "line", f->cause.line);
        bh_json_key_u64(j, "column", f->cause.column);
        bh_json_close(j, '}');
    }
    bh_json_key_words(j, "controls", f->rule->controls);
    if (f->waived)
        bh_json_key_str(j, "waivedBy", f->waived_by);
    bh_json_close(j, '}');
}

static void write_unchecked(struct bh_json *j, const struct bh_findings *f)
{
    bh_unchecked_vec unchecked = {0};
    bh_findings_unchecked(f, &unchecked);
    bh_json_key(j, "unchecked");
    bh_json_open(j, '[');
    for (size_t i = 0; i < unchecked.n; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "rule", unchecked.at[i].rule->id);
        bh_json_key_str(j, "reason", unchecked.at[i].reason);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_vec_fini(&unchecked);
}

static void write_input(struct bh_json *j, const struct bh_input *in)
{
    bh_json_key(j, "files");
    bh_json_open(j, '[');
    for (size_t i = 0; i < in->files.n; i++)
        bh_json_str(j, in->files.at[i]);
    bh_json_close(j, ']');
    bh_json_key(j, "notes");
    bh_json_open(j, '[');
    for (size_t i = 0; i < in->diags.at.n; i++) {
        const struct bh_diag *d = &in->diags.at.at[i];
        if (d->is_error)
            continue;
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "file", bh_input_file(in, d->pos.file));
        bh_json_key_u64(j, "line", d->pos.line);
        bh_json_key_u64(j, "column", d->pos.column);
        bh_json_key_str(j, "message", d->message);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

void bh_findings_json(struct bh_buf *out, const struct bh_findings *f)
{
    struct bh_json j;
    struct bh_findings_sum sum;
    bh_findings_sum(f, &sum);

    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_str(&j, "policy", f->in->units.n ? f->in->units.at[0]->label : NULL);
    bh_json_key_u64(&j, "errors", sum.errors);
    bh_json_key_u64(&j, "warnings", sum.warnings);
    bh_json_key_u64(&j, "infos", sum.infos);
    bh_json_key_u64(&j, "waived", sum.waived);
    bh_json_key(&j, "findings");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < f->in->units.n; i++)
        for (size_t k = 0; k < f->reports[i].findings.n; k++)
            write_finding(&j, f->in, &f->reports[i].findings.at[k]);
    bh_json_close(&j, ']');
    write_unchecked(&j, f);
    write_input(&j, f->in);
    bh_json_close(&j, '}');
}
