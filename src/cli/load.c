/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load.h"

#include "conf/out.h"

#include <stdio.h>

#define TALK_MAX ((size_t)16 << 20)

void bh_text_place(struct bh_buf *b, const struct bh_input *in, struct bh_pos pos)
{
    bh_text_add(b, bh_input_file(in, pos.file));
    if (pos.line)
        bh_buf_printf(b, ":%u:%u", pos.line, pos.column);
    bh_buf_str(b, ": ");
}

/* Mistakes in what merely lay in a folder, and something is left besides. */
static bool may_judge(const struct bh_input *in)
{
    return in->diags.n_errors == in->n_set_aside && in->units.n > 0;
}

static void say_errors(const struct bh_cli *cli, const struct bh_input *in)
{
    struct bh_buf b;
    bh_buf_init(&b, TALK_MAX);
    for (size_t i = 0; i < in->diags.at.n; i++) {
        const struct bh_diag *d = &in->diags.at.at[i];
        if (!d->is_error)
            continue;
        bh_text_place(&b, in, d->pos);
        bh_text_add(&b, d->message);
        bh_buf_str(&b, "\n");
    }
    bh_paint_add(&b, cli->paint_err, BH_PAINT_RED, "bulkhead:");
    bh_buf_printf(&b, " %zu %s%s; %s\n", in->diags.n_errors, in->diags.n_errors == 1 ? "mistake" : "mistakes",
                  in->diags.cut ? " and more that are not shown" : "",
                  may_judge(in) ? "the rest of the folder was judged" : "nothing was judged");
    fputs(bh_buf_text(&b), stderr);
    bh_buf_fini(&b);
}

void bh_cli_say_notes(const struct bh_cli *cli, const struct bh_input *in)
{
    struct bh_buf b;
    bh_buf_init(&b, TALK_MAX);
    for (size_t i = 0; i < in->diags.at.n; i++) {
        const struct bh_diag *d = &in->diags.at.at[i];
        if (d->is_error)
            continue;
        bh_text_place(&b, in, d->pos);
        bh_paint_add(&b, cli->paint_err, BH_PAINT_CYAN, "note:");
        bh_buf_str(&b, " ");
        bh_text_add(&b, d->message);
        bh_buf_str(&b, "\n");
    }
    fputs(bh_buf_text(&b), stderr);
    bh_buf_fini(&b);
}

int bh_cli_load(struct bh_cli *cli, struct bh_input *in, const char *fleet)
{
    struct bh_err err;
    if (bh_input_load(in, cli->operands, cli->n_operands, fleet, &err) < 0) {
        (void)bh_cli_fail(cli, &err);
        return BH_EXIT_UNREADABLE;
    }
    if (in->diags.n_errors) {
        say_errors(cli, in);
        return may_judge(in) ? BH_EXIT_OK : BH_EXIT_UNREADABLE;
    }
    if (in->units.n == 0) {
        bh_cli_say_notes(cli, in);
        (void)bh_fail(&err, BH_INVALID,
                      "nothing to judge here: no policy, no Kubernetes manifest, no Slurm file");
        return bh_cli_fail(cli, &err);
    }
    return BH_EXIT_OK;
}
