/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/findings_text.h"

#include "cli/excerpt.h"
#include "cli/load.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 4 };

static enum bh_paint paint_of(const struct bh_finding *f)
{
    if (f->waived)
        return BH_PAINT_DIM;
    return f->rule->severity == BH_SEV_ERROR     ? BH_PAINT_RED
           : f->rule->severity == BH_SEV_WARNING ? BH_PAINT_YELLOW
                                                 : BH_PAINT_CYAN;
}

static void write_head(struct bh_cli *cli, const struct bh_input *in, const struct bh_finding *f)
{
    struct bh_buf *b = &cli->out;
    bh_text_place(b, in, f->pos);
    bh_paint_add(b, cli->paint_out, paint_of(f), bh_severity_str(f->rule->severity));
    bh_buf_str(b, " ");
    bh_paint_add(b, cli->paint_out, BH_PAINT_BOLD, f->rule->id);
    bh_buf_str(b, " ");
    bh_text_add(b, f->subject);
    if (f->object) {
        bh_buf_str(b, " (");
        bh_text_add(b, f->object);
        bh_buf_str(b, ")");
    }
    if (f->waived) {
        bh_buf_str(b, " [waived by ");
        bh_text_add(b, f->waived_by ? f->waived_by : "?");
        bh_buf_str(b, "]");
    }
    bh_buf_str(b, "\n");
}

/* Where the rule looked, when that is not where the subject stands. */
static void write_cause(struct bh_buf *b, const struct bh_input *in, const struct bh_finding *f)
{
    if (!f->cause.line || (f->cause.file == f->pos.file && f->cause.line == f->pos.line))
        return;
    bh_text_blanks(b, INDENT);
    bh_buf_str(b, "cause: ");
    if (f->cause.file != f->pos.file) {
        bh_text_add(b, bh_input_file(in, f->cause.file));
        bh_buf_printf(b, ":%u:%u\n", f->cause.line, f->cause.column);
    } else {
        bh_buf_printf(b, "line %u, column %u\n", f->cause.line, f->cause.column);
    }
}

static void write_sentence(struct bh_cli *cli, const char *s, unsigned at)
{
    if (cli->is_terminal) {
        bh_text_wrap(&cli->out, s, at, INDENT, cli->width);
    } else {
        bh_text_add(&cli->out, s);
        bh_buf_str(&cli->out, "\n");
    }
}

static void write_finding(struct bh_cli *cli, struct bh_excerpts *e, const struct bh_finding *f)
{
    struct bh_buf *b = &cli->out;
    write_head(cli, e->in, f);
    bh_text_blanks(b, INDENT);
    write_sentence(cli, f->message, INDENT);
    write_cause(b, e->in, f);
    if (f->rule->severity != BH_SEV_INFO && !f->waived)
        bh_excerpt_add(e, bh_finding_where(f), cli->width, b);
    if (f->fix) {
        bh_text_blanks(b, INDENT);
        bh_paint_add(b, cli->paint_out, BH_PAINT_GREEN, "fix:");
        bh_buf_str(b, " ");
        write_sentence(cli, f->fix, INDENT + 5);
    }
}

static void write_notes(struct bh_cli *cli, const struct bh_input *in)
{
    struct bh_buf *b = &cli->out;
    for (size_t i = 0; i < in->diags.at.n; i++) {
        const struct bh_diag *d = &in->diags.at.at[i];
        if (d->is_error)
            continue;
        bh_text_place(b, in, d->pos);
        bh_paint_add(b, cli->paint_out, BH_PAINT_CYAN, "note:");
        bh_buf_str(b, " ");
        bh_text_add(b, d->message);
        bh_buf_str(b, "\n");
    }
}

/* Why a rule was not checked, in so few kinds that they are read; -o json has every reason in full. */
enum why { WHY_FLEET, WHY_FLEET_SILENT, WHY_LIVE, WHY_SILENT, N_WHY };

static enum why why_of(const struct bh_findings *f, const struct bh_unchecked *u)
{
    if (u->rule->needs == BH_NEEDS_LIVE)
        return WHY_LIVE;
    /* some rules of the policy alone need the hardware for a part of their answer, and say so */
    if (u->rule->needs == BH_NEEDS_FLEET || strstr(u->reason, "--fleet"))
        return f->in->has_fleet ? WHY_FLEET_SILENT : WHY_FLEET;
    return WHY_SILENT;
}

/* The rules of one kind on a line, each once: one may have a reason from every unit. */
static void write_why(struct bh_cli *cli, const struct bh_findings *f, const bh_unchecked_vec *v,
                      enum why why)
{
    static const char *const text[N_WHY] = {
        [WHY_FLEET] = "needs --fleet:",
        [WHY_FLEET_SILENT] = "the fleet file does not say:",
        [WHY_LIVE] = "needs a live system:",
        [WHY_SILENT] = "these files do not say:",
    };
    struct bh_buf line;
    size_t n = 0;
    bh_buf_init(&line, 1u << 16);
    bh_buf_str(&line, text[why]);
    for (size_t i = 0; i < v->n; i++) {
        bool first = why_of(f, &v->at[i]) == why;
        for (size_t k = 0; first && k < i; k++)
            first = v->at[k].rule != v->at[i].rule;
        if (first) {
            bh_buf_printf(&line, " %s", v->at[i].rule->id);
            n++;
        }
    }
    if (n) {
        bh_text_blanks(&cli->out, 2);
        bh_text_wrap(&cli->out, bh_buf_text(&line), 2, 6, cli->width);
    }
    bh_buf_fini(&line);
}

static void write_unchecked(struct bh_cli *cli, const struct bh_findings *f)
{
    bh_unchecked_vec unchecked = {0};
    bh_findings_unchecked(f, &unchecked);
    if (unchecked.n)
        bh_buf_str(&cli->out, "Not checkable from these files (-o json says why):\n");
    for (unsigned why = 0; unchecked.n && why < N_WHY; why++)
        write_why(cli, f, &unchecked, (enum why)why);
    bh_vec_fini(&unchecked);
}

static void write_count(struct bh_buf *b, uint64_t n, const char *word, const char *more)
{
    bh_buf_printf(b, "%" PRIu64 " %s%s%s", n, word, n == 1 ? "" : "s", more);
}

static void write_summary(struct bh_cli *cli, const struct bh_findings *f)
{
    struct bh_buf *b = &cli->out;
    struct bh_findings_sum sum;
    bh_findings_sum(f, &sum);
    write_count(b, sum.errors, "error", ", ");
    write_count(b, sum.warnings, "warning", ", ");
    write_count(b, sum.infos, "info", ", ");
    bh_buf_printf(b, "%" PRIu64 " waived in ", sum.waived);
    bh_text_add(b, f->in->units.at[0]->label);
    if (f->in->units.n > 1)
        bh_buf_printf(b, " and %zu more", f->in->units.n - 1);
    bh_buf_str(b, "\n");
}

void bh_findings_text(struct bh_cli *cli, const struct bh_findings *f)
{
    struct bh_excerpts e;
    bh_excerpts_init(&e, f->in);
    for (size_t i = 0; i < f->in->units.n; i++)
        for (size_t k = 0; k < f->reports[i].findings.n; k++)
            write_finding(cli, &e, &f->reports[i].findings.at[k]);
    bh_excerpts_fini(&e);
    write_notes(cli, f->in);
    write_unchecked(cli, f);
    write_summary(cli, f);
}
