/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/upgrade_text.h"

#include "base/json.h"
#include "cli/table.h"

#include <inttypes.h>

static const char *const names[] = {
    [BH_UPGRADE_DRIVER] = "driver", [BH_UPGRADE_FIRMWARE] = "firmware", [BH_UPGRADE_KERNEL] = "kernel"};

static const char *name_of(const struct bh_upgrade_ask *ask)
{
    return ask->what ? ask->what : names[ask->kind];
}

/* ---- text ---- */

static void write_fixes(struct bh_cli *cli, struct bh_arena *a, const struct bh_upgrade *u)
{
    static const char *const heads[] = {"BULLETIN", "WORST", "SCORE", "FIXED IN", "OUT FOR"};
    struct bh_table t;
    if (!u->fixes.n)
        return;
    bh_heading(cli, "what it mends");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < u->fixes.n; i++) {
        const struct bh_advisory *x = u->fixes.at[i].advisory;
        bh_table_add(&t, bh_say_count(a, x->bulletin));
        bh_table_add(&t, x->worst_cve);
        bh_table_add(&t, bh_arena_printf(a, "%u.%u", x->cvss_tenths / 10u, x->cvss_tenths % 10u));
        bh_table_add(&t, x->fixed);
        bh_table_add(&t, bh_arena_printf(a, "%" PRId32 " days", u->fixes.at[i].days));
    }
    bh_table_write(&t, cli, 2);
    bh_table_fini(&t);
}

static void write_steps(struct bh_cli *cli, struct bh_arena *a, const struct bh_upgrade *u)
{
    static const char *const heads[] = {"", "STEP", "COMMAND", "WHAT"};
    struct bh_table t;
    bh_heading(cli, "in this order");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < u->steps.n; i++) {
        const struct bh_upgrade_step *s = &u->steps.at[i];
        const bool asks = s->kind == BH_STEP_LEAVE && s->way == BH_LEAVES_ASK;
        bh_table_add(&t, bh_say_count(a, i + 1));
        bh_table_paint(&t, bh_upgrade_step_str((enum bh_upgrade_step_kind)s->kind),
                       s->kind == BH_STEP_GATE ? BH_PAINT_CYAN
                       : asks                  ? BH_PAINT_RED
                                               : BH_PAINT_PLAIN);
        bh_table_add(&t, s->command);
        bh_table_add(&t, s->sentence);
    }
    bh_table_write(&t, cli, 2);
    bh_table_fini(&t);
}

static void write_list(struct bh_cli *cli, const char *head, const char *const *at, size_t n,
                       enum bh_paint paint)
{
    if (n)
        bh_heading(cli, head);
    for (size_t i = 0; i < n; i++) {
        bh_buf_str(&cli->out, "  ");
        bh_paint_add(&cli->out, cli->paint_out, paint, at[i]);
        bh_buf_str(&cli->out, "\n");
    }
}

void bh_upgrade_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_upgrade_ask *ask,
                     const struct bh_upgrade *u)
{
    bh_fact(cli, "change",
            bh_arena_printf(a, "%s %s → %s", name_of(ask), ask->from ? ask->from : "(not known)",
                            ask->to ? ask->to : "(not said)"));
    const char *who = u->tenants.n ? "" : "nobody";
    for (size_t i = 0; i < u->tenants.n; i++)
        who = bh_arena_printf(a, "%s%s%s (%zu lease%s)", who, i ? ", " : "", u->tenants.at[i].name,
                              u->tenants.at[i].n_leases, u->tenants.at[i].n_leases == 1 ? "" : "s");
    bh_fact(cli, "touches", who);
    bh_fact(cli, "not before",
            u->blockers.n      ? "those who stand in the way were asked"
            : u->not_before_ms ? bh_say_time(a, u->not_before_ms)
                               : "now");
    if (ask->kind == BH_UPGRADE_DRIVER && ask->to)
        bh_fact(cli, "open then",
                u->n_open_after ? bh_arena_printf(a, "%zu advisories", u->n_open_after) : "no advisory");
    write_list(cli, "stands in the way", u->blockers.at, u->blockers.n, BH_PAINT_RED);
    write_list(cli, "note", u->notes.at, u->notes.n, BH_PAINT_YELLOW);
    write_fixes(cli, a, u);
    write_steps(cli, a, u);
}

/* ---- JSON ---- */

static void json_list(struct bh_json *j, const char *key, const char *const *at, size_t n)
{
    bh_json_key(j, key);
    bh_json_open(j, '[');
    for (size_t i = 0; i < n; i++)
        bh_json_str(j, at[i]);
    bh_json_close(j, ']');
}

static void json_steps(struct bh_json *j, const struct bh_upgrade *u)
{
    bh_json_key(j, "steps");
    bh_json_open(j, '[');
    for (size_t i = 0; i < u->steps.n; i++) {
        const struct bh_upgrade_step *s = &u->steps.at[i];
        const bool leaves = s->kind == BH_STEP_LEAVE;
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "step", bh_upgrade_step_str((enum bh_upgrade_step_kind)s->kind));
        bh_json_key_str(j, "lease", leaves ? s->lease->id : NULL);
        bh_json_key_str(j, "tenant", leaves ? s->lease->tenant : NULL);
        bh_json_key_str(j, "way", leaves ? bh_upgrade_way_str((enum bh_upgrade_way)s->way) : NULL);
        bh_json_key(j, "end_ms");
        if (leaves && s->lease->end_ms)
            bh_json_u64(j, s->lease->end_ms);
        else
            bh_json_str(j, NULL);
        bh_json_key_str(j, "command", s->command);
        bh_json_key_str(j, "sentence", s->sentence);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void json_fixes(struct bh_json *j, const struct bh_upgrade *u)
{
    bh_json_key(j, "fixes");
    bh_json_open(j, '[');
    for (size_t i = 0; i < u->fixes.n; i++) {
        const struct bh_advisory *x = u->fixes.at[i].advisory;
        bh_json_open_flat(j, '{');
        bh_json_key_u64(j, "bulletin", x->bulletin);
        bh_json_key_str(j, "cves", x->cves);
        bh_json_key_fixed(j, "cvss", x->cvss_tenths, 1);
        bh_json_key_str(j, "fixed", x->fixed);
        bh_json_key_i64(j, "days", u->fixes.at[i].days);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

void bh_upgrade_json(struct bh_buf *out, const struct bh_upgrade_ask *ask, const struct bh_upgrade *u)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_str(&j, "change", names[ask->kind]);
    bh_json_key_str(&j, "what", ask->what);
    bh_json_key_str(&j, "from", ask->from);
    bh_json_key_str(&j, "to", ask->to);
    bh_json_key_bool(&j, "ready", u->blockers.n == 0);
    bh_json_key_u64(&j, "not_before_ms", u->not_before_ms);
    bh_json_key_u64(&j, "open_after", u->n_open_after);
    bh_json_key(&j, "tenants");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < u->tenants.n; i++) {
        bh_json_open_flat(&j, '{');
        bh_json_key_str(&j, "tenant", u->tenants.at[i].name);
        bh_json_key_u64(&j, "leases", u->tenants.at[i].n_leases);
        bh_json_key_u64(&j, "asked", u->tenants.at[i].n_asked);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    json_list(&j, "blockers", u->blockers.at, u->blockers.n);
    json_list(&j, "notes", u->notes.at, u->notes.n);
    json_fixes(&j, u);
    json_steps(&j, u);
    bh_json_close(&j, '}');
    bh_buf_str(out, "\n");
}
