/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim_text.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>

enum { DAY_S = 24 * 60 * 60, CELL_MAX = 160 };

const char *bh_sim_since(uint64_t started_s, char ret[BH_SINCE_MAX])
{
    struct bh_unit_text day;
    const uint64_t days = started_s / DAY_S;
    const unsigned s = (unsigned)(started_s % DAY_S);
    if (started_s == 0 || days > 3000000) { /* past the year 9999: a file written by hand */
        (void)snprintf(ret, BH_SINCE_MAX, "-");
        return ret;
    }
    (void)snprintf(ret, BH_SINCE_MAX, "%.10sT%02u:%02u:%02uZ", bh_date_format((int32_t)days, &day),
                   s / 3600 % 24, s / 60 % 60, s % 60);
    return ret;
}

const char *bh_sim_owner(uint32_t uid, char *ret, size_t size)
{
    const struct passwd *p = getpwuid(uid);
    if (p && p->pw_name)
        (void)snprintf(ret, size, "%s", p->pw_name);
    else
        (void)snprintf(ret, size, "%" PRIu32, uid);
    return ret;
}

static const char *state_of(const struct bh_sim_place *p)
{
    return p->runs ? "running" : "died";
}

/* ---- the list ---- */

enum { NAME, SCENE, GPUS, SEED, STATE, OWNER, SINCE, FOLDER, N_COLUMNS };
static const char *const heads[N_COLUMNS] = {"NAME",  "SCENE", "GPUS",  "SEED",
                                             "STATE", "OWNER", "SINCE", "FOLDER"};

struct row {
    char cell[N_COLUMNS][CELL_MAX];
};

static void fill_row(struct row *r, const struct bh_sim_place *p)
{
    char since[BH_SINCE_MAX];
    (void)snprintf(r->cell[NAME], CELL_MAX, "%s", p->name);
    (void)snprintf(r->cell[SCENE], CELL_MAX, "%s", *p->scene ? p->scene : "-");
    (void)snprintf(r->cell[GPUS], CELL_MAX, "%" PRIu64, p->gpus);
    (void)snprintf(r->cell[SEED], CELL_MAX, "%" PRIu64, p->seed);
    (void)snprintf(r->cell[STATE], CELL_MAX, "%s", state_of(p));
    (void)bh_sim_owner(p->uid, r->cell[OWNER], CELL_MAX);
    (void)snprintf(r->cell[SINCE], CELL_MAX, "%s", bh_sim_since(p->started_s, since));
    (void)snprintf(r->cell[FOLDER], CELL_MAX, "%s", p->folder);
}

static void add_row(struct bh_buf *b, const struct row *r, const size_t width[N_COLUMNS], bool paint,
                    enum bh_paint state)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        bh_paint_add(b, paint && i == STATE, state, r->cell[i]);
        if (i + 1 < N_COLUMNS)
            bh_text_blanks(b, width[i] + 2 - bh_text_width(r->cell[i]));
    }
    bh_buf_str(b, "\n");
}

void bh_sim_list_text(struct bh_cli *cli, const bh_sim_places *places)
{
    size_t width[N_COLUMNS] = {0};
    BH_AUTOFREE struct row *rows = bh_alloc(places->n + 1, sizeof(*rows));
    if (places->n == 0) {
        bh_buf_str(&cli->out, "no simulated nodes\n");
        bh_cli_next(cli, "bulkhead sim start");
        return;
    }
    for (size_t i = 0; i < N_COLUMNS; i++)
        (void)snprintf(rows[0].cell[i], CELL_MAX, "%s", heads[i]);
    for (size_t i = 0; i < places->n; i++)
        fill_row(&rows[i + 1], &places->at[i]);
    for (size_t r = 0; r <= places->n; r++)
        for (size_t i = 0; i < N_COLUMNS; i++) {
            size_t n = bh_text_width(rows[r].cell[i]);
            width[i] = n > width[i] ? n : width[i];
        }
    bh_buf_printf(&cli->out, "%zu simulated node%s\n", places->n, places->n == 1 ? "" : "s");
    add_row(&cli->out, &rows[0], width, cli->paint_out, BH_PAINT_PLAIN);
    for (size_t i = 0; i < places->n; i++)
        add_row(&cli->out, &rows[i + 1], width, cli->paint_out,
                places->at[i].runs ? BH_PAINT_GREEN : BH_PAINT_RED);
    for (size_t i = 0; i < places->n; i++)
        if (!places->at[i].runs)
            bh_cli_next(cli, "bulkhead sim stop %s   removes what '%s' left when it died", places->at[i].name,
                        places->at[i].name);
}

void bh_sim_list_json(struct bh_buf *out, const bh_sim_places *places)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "simulated", true);
    bh_json_key(&j, "nodes");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < places->n; i++) {
        const struct bh_sim_place *p = &places->at[i];
        char since[BH_SINCE_MAX], owner[64];
        bh_json_open(&j, '{');
        bh_json_key_str(&j, "name", p->name);
        bh_json_key_str(&j, "scene", *p->scene ? p->scene : NULL);
        bh_json_key_u64(&j, "gpus", p->gpus);
        bh_json_key_u64(&j, "seed", p->seed);
        bh_json_key_str(&j, "state", state_of(p));
        bh_json_key_u64(&j, "pid", p->pid);
        bh_json_key_str(&j, "owner", bh_sim_owner(p->uid, owner, sizeof(owner)));
        bh_json_key_u64(&j, "uid", p->uid);
        bh_json_key_str(&j, "since", p->started_s ? bh_sim_since(p->started_s, since) : NULL);
        bh_json_key_str(&j, "folder", p->folder);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}

/* ---- the environment ---- */

void bh_sim_vars(const struct bh_sim_place *place, const char *was, const char *ret_names[BH_SIM_VARS],
                 struct bh_buf ret_values[BH_SIM_VARS])
{
    static const struct {
        const char *name, *below;
    } vars[BH_SIM_VARS] = {{"BULKHEAD_SIM", ""},
                           {"BULKHEAD_NVML", "/lib/libnvidia-ml.so.1"},
                           {"BULKHEAD_SYSROOT", "/sysroot"},
                           {"LD_LIBRARY_PATH", "/lib"}};
    for (size_t i = 0; i < BH_SIM_VARS; i++) {
        ret_names[i] = vars[i].name;
        bh_buf_init(&ret_values[i], 1u << 17);
        bh_buf_printf(&ret_values[i], "%s%s", place->folder, vars[i].below);
    }
    if (was && *was)
        bh_buf_printf(&ret_values[BH_SIM_VARS - 1], ":%s", was);
}

void bh_sim_env_text(struct bh_buf *out, const struct bh_sim_place *place, const char *was)
{
    const char *names[BH_SIM_VARS];
    struct bh_buf values[BH_SIM_VARS];
    bh_buf_printf(out, "# simulated node %s; for a shell: eval \"$(bulkhead sim env %s)\"\nexport",
                  place->name, place->name);
    bh_sim_vars(place, was, names, values);
    for (size_t i = 0; i < BH_SIM_VARS; i++) {
        bh_buf_printf(out, " %s=", names[i]);
        bh_text_shell(out, bh_buf_text(&values[i]));
        bh_buf_fini(&values[i]);
    }
    bh_buf_str(out, "\n");
}
