/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_text.c - the examination for people: a line for each check, and what to do about the bad ones. */
#include "base/str.h"
#include "cli/doctor.h"
#include "core/policy/rule.h"

#include <stdio.h>
#include <string.h>

enum { STATE_COLUMN = 2, STATE_WIDTH = 11, NARROW = 72 };

static enum bh_paint paint_of(unsigned state)
{
    static const enum bh_paint paints[BH_N_CHECK_STATES] = {
        [BH_CHECK_OK] = BH_PAINT_GREEN,         [BH_CHECK_NOTE] = BH_PAINT_CYAN,
        [BH_CHECK_ATTENTION] = BH_PAINT_YELLOW, [BH_CHECK_BROKEN] = BH_PAINT_RED,
        [BH_CHECK_UNKNOWN] = BH_PAINT_CYAN,     [BH_CHECK_NONE] = BH_PAINT_DIM,
    };
    return paints[state];
}

static const char *mark_of(unsigned state)
{
    return state == BH_CHECK_NONE ? "-" : bh_check_state_str(state);
}

static void sentence(struct bh_cli *cli, const char *s, unsigned at, unsigned indent)
{
    if (cli->is_terminal) {
        bh_text_wrap(&cli->out, s, at, indent, cli->width);
    } else {
        bh_text_add(&cli->out, s);
        bh_buf_str(&cli->out, "\n");
    }
}

static unsigned id_width(const struct bh_doctor *d)
{
    size_t width = 0;
    for (size_t i = 0; i < d->results.n; i++) {
        size_t n = strlen(d->results.at[i].check->id);
        width = n > width ? n : width;
    }
    return (unsigned)width + 2;
}

static void write_remark(struct bh_cli *cli, unsigned indent, const char *word, const char *text)
{
    bh_text_blanks(&cli->out, indent);
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, word);
    bh_text_blanks(&cli->out, 6 - strlen(word));
    sentence(cli, text, indent + 6, indent + 6);
}

static void write_rules(struct bh_cli *cli, const struct bh_check *c, unsigned indent)
{
    char text[256];
    for (size_t i = 0; i < BH_CHECK_RULES_MAX && c->rules[i]; i++) {
        const struct bh_rule *rule = bh_rule_find(c->rules[i]);
        (void)snprintf(text, sizeof(text), "%s %s", c->rules[i], rule ? rule->title : "");
        write_remark(cli, indent, "rule:", text);
    }
}

static void write_result(struct bh_cli *cli, const struct bh_doctor *d, const struct bh_check_result *r,
                         unsigned width, bool verbose)
{
    unsigned indent = STATE_COLUMN + STATE_WIDTH, at = indent + width;
    const char *mark = mark_of(r->state);
    bh_text_blanks(&cli->out, STATE_COLUMN);
    bh_paint_add(&cli->out, cli->paint_out, paint_of(r->state), mark);
    bh_text_blanks(&cli->out, STATE_WIDTH - strlen(mark));
    bh_buf_str(&cli->out, r->check->id);
    bh_text_blanks(&cli->out, width - strlen(r->check->id));
    sentence(cli, r->seen, at, cli->width < NARROW ? indent : at);
    bool to_mend = r->state == BH_CHECK_ATTENTION || r->state == BH_CHECK_BROKEN;
    if (to_mend || (verbose && r->state != BH_CHECK_OK && r->state != BH_CHECK_NONE)) {
        write_rules(cli, r->check, indent);
        write_remark(cli, indent, "why:", r->check->why);
        write_remark(cli, indent, "mend:", r->mend ? r->mend : r->check->mend);
    }
    for (uint32_t i = 0; verbose && i < r->n_details; i++) {
        bh_text_blanks(&cli->out, indent + 2);
        sentence(cli, d->details.at[r->first_detail + i], indent + 2, indent + 4);
    }
}

static void write_head(struct bh_cli *cli, const struct bh_doctor *d)
{
    const struct bh_doctor_facts *f = d->f;
    struct bh_buf *b = &cli->out;
    if (bh_doctor_simulated(d)) {
        bh_paint_add(b, cli->paint_out, BH_PAINT_YELLOW, "simulated");
        bh_buf_str(b, f->gpus && !f->gpus->simulated ? ": beside a driver of this machine stands "
                                                     : ": no GPU stands behind these lines, but ");
        bh_text_add(b, bh_doctor_simulated(d));
        bh_buf_str(b, "\n");
    }
    if (f->platform->root) {
        bh_paint_add(b, cli->paint_out, BH_PAINT_YELLOW, "files");
        bh_buf_str(b, ": read below ");
        bh_text_add(b, f->platform->root);
        bh_buf_str(b, "\n");
    }
    bh_buf_str(b, "node ");
    bh_text_add(b, f->platform->hostname.text ? f->platform->hostname.text : "unknown");
    bh_buf_str(b, ", kernel ");
    bh_text_add(b, f->platform->kernel.text ? f->platform->kernel.text : "unknown");
    bh_buf_str(b, "\n");
}

static void write_layers(struct bh_cli *cli, const struct bh_doctor *d, bool verbose)
{
    unsigned width = id_width(d);
    const struct bh_check_result *r = d->results.at;
    for (const struct bh_doctor_layer *l = bh_doctor_layers; l->name; l++) {
        bool headed = false;
        for (const struct bh_check *c = l->checks; c->id; c++, r++) {
            if (r->state == BH_CHECK_NONE && !verbose)
                continue;
            if (!headed) {
                bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, l->name);
                bh_buf_str(&cli->out, "\n");
            }
            headed = true;
            write_result(cli, d, r, width, verbose);
        }
    }
}

/* Those that one check decided stand together: `whole GPU, MIG and gate (no driver)`. */
static void add_group(struct bh_buf *b, const struct bh_promise *p, size_t first)
{
    size_t last = first;
    for (size_t m = first; m < BH_N_MODES; m++)
        last = p[m].can == p[first].can && p[m].by == p[first].by ? m : last;
    for (size_t m = first; m <= last; m++)
        if (p[m].can == p[first].can && p[m].by == p[first].by)
            bh_buf_printf(b, "%s%s", m == first ? "" : m == last ? " and " : ", ", bh_mode_str(m));
    if (p[first].by)
        bh_buf_printf(b, " (%s)", p[first].by->because ? p[first].by->because : p[first].by->seen);
}

/* `cannot: gate (no CAP_SYS_PTRACE), VM tier (no IOMMU)` */
static void add_promises(struct bh_buf *b, const struct bh_promise *p, enum bh_can can, const char *word)
{
    size_t n = 0;
    for (size_t m = 0; m < BH_N_MODES; m++) {
        bool first = p[m].can == can;
        for (size_t k = 0; first && k < m; k++)
            first = p[k].can != can || p[k].by != p[m].by;
        if (!first)
            continue;
        if (!n)
            bh_buf_printf(b, "%s%s: ", b->n ? "; " : "", word);
        bh_buf_str(b, n++ ? ", " : "");
        add_group(b, p, m);
    }
    if (!n && can == BH_CAN)
        bh_buf_printf(b, "%s: nothing", word);
}

static void write_summary(struct bh_cli *cli, const struct bh_doctor *d)
{
    static const struct {
        enum bh_check_state state;
        const char *words[2];
    } counts[] = {
        {BH_CHECK_OK, {"ok", "ok"}},
        {BH_CHECK_NOTE, {"note", "notes"}},
        {BH_CHECK_ATTENTION, {"needs attention", "need attention"}},
        {BH_CHECK_BROKEN, {"broken", "broken"}},
        {BH_CHECK_UNKNOWN, {"unknown", "unknown"}},
    };
    struct bh_promise promises[BH_N_MODES];
    struct bh_buf line;
    for (size_t i = 0; i < BH_COUNT_OF(counts); i++) {
        size_t n = bh_doctor_count(d, counts[i].state);
        bh_buf_printf(&cli->out, "%s%zu %s", i ? ", " : "", n, counts[i].words[n != 1]);
    }
    bh_buf_str(&cli->out, "\n");
    bh_doctor_promises(d, promises);
    bh_buf_init(&line, 1u << 16);
    add_promises(&line, promises, BH_CAN, "can keep");
    add_promises(&line, promises, BH_CANNOT, "cannot");
    add_promises(&line, promises, BH_CAN_UNKNOWN, "not known");
    const bool simulated = bh_doctor_simulated(d) != NULL;
    if (simulated)
        bh_buf_str(&cli->out, "simulated: ");
    sentence(cli, bh_buf_text(&line), simulated ? 11 : 0, 2);
    bh_buf_fini(&line);
}

void bh_doctor_text(struct bh_cli *cli, const struct bh_doctor *d, bool verbose)
{
    write_head(cli, d);
    write_layers(cli, d, verbose);
    write_summary(cli, d);
}
