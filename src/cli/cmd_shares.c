/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_shares.c - who shares the GPUs' time, what each was promised and what each got. */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/share.h"
#include "launch/governor.h"
#include "launch/governor_at.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>

enum { OPT_OUTPUT };
enum { CELL_MAX = 96 };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static const char *const not_divided[] = {"memory bandwidth", "caches", "PCIe", "power", NULL};

enum {
    GPU,
    LEASE,
    NAME,
    USER,
    PIDS,
    STATE,
    MODE,
    WEIGHT,
    CAP,
    TARGET,
    DELIVERED,
    ERROR,
    SLICE,
    CORRECTIONS,
    TAMPERED,
    N_COLUMNS
};
static const char *const heads[N_COLUMNS] = {"GPU",       "LEASE", "NAME",   "USER",        "PIDS",
                                             "STATE",     "MODE",  "WEIGHT", "CAP",         "TARGET",
                                             "DELIVERED", "ERROR", "SLICE",  "CORRECTIONS", "TAMPERED"};

struct cells {
    char at[N_COLUMNS][CELL_MAX];
};

static int by_place(const void *a, const void *b)
{
    const struct bh_govern_row *p = a, *q = b;
    if (p->gpu != q->gpu)
        return p->gpu < q->gpu ? -1 : 1;
    return p->lease < q->lease ? -1 : p->lease > q->lease;
}

static void fill_who(struct cells *c, const struct bh_govern_row *r)
{
    struct bh_buf name;
    const struct passwd *p = getpwuid(r->uid);
    bh_buf_init(&name, CELL_MAX - 1);
    bh_text_add(&name, *r->name ? r->name : "-");
    (void)snprintf(c->at[NAME], CELL_MAX, "%s", bh_buf_text(&name));
    bh_buf_fini(&name);
    if (p && p->pw_name)
        (void)snprintf(c->at[USER], CELL_MAX, "%s", p->pw_name);
    else
        (void)snprintf(c->at[USER], CELL_MAX, "%" PRIu32, r->uid);
    bh_share_pids(r, c->at[PIDS], CELL_MAX);
}

static void fill_numbers(struct cells *c, const struct bh_govern_row *r)
{
    struct bh_share_text t;
    const bool placed = r->gpu != UINT32_MAX;
    (void)snprintf(c->at[WEIGHT], CELL_MAX, "%" PRIu32 "%s", r->weight, r->latency ? " latency" : "");
    (void)snprintf(c->at[CAP], CELL_MAX, "%s",
                   r->cap_permille ? bh_share_permille((int32_t)r->cap_permille, false, &t) : "-");
    (void)snprintf(c->at[TARGET], CELL_MAX, "%s",
                   placed ? bh_share_permille((int32_t)r->target_permille, false, &t) : "-");
    (void)snprintf(c->at[DELIVERED], CELL_MAX, "%s",
                   placed && r->seen ? bh_share_permille((int32_t)r->delivered_permille, false, &t) : "-");
    (void)snprintf(c->at[ERROR], CELL_MAX, "%s",
                   placed && r->seen ? bh_share_permille(r->error_permille, true, &t) : "-");
    if (r->slice_us)
        (void)snprintf(c->at[SLICE], CELL_MAX, "%" PRIu32 " us", r->slice_us);
    else
        (void)snprintf(c->at[SLICE], CELL_MAX, "-");
    (void)snprintf(c->at[CORRECTIONS], CELL_MAX, "%" PRIu32, r->corrections);
    (void)snprintf(c->at[TAMPERED], CELL_MAX, "%" PRIu32, r->tampered);
}

static void fill(struct cells *c, const struct bh_govern_row *r)
{
    if (r->gpu == UINT32_MAX)
        (void)snprintf(c->at[GPU], CELL_MAX, "-");
    else
        (void)snprintf(c->at[GPU], CELL_MAX, "%" PRIu32, r->gpu);
    (void)snprintf(c->at[LEASE], CELL_MAX, "%" PRIu64, r->lease);
    (void)snprintf(c->at[STATE], CELL_MAX, "%s", bh_share_state(r->state));
    (void)snprintf(c->at[MODE], CELL_MAX, "%s", bh_share_mode(r->mode));
    fill_who(c, r);
    fill_numbers(c, r);
}

static void write_line(struct bh_buf *out, const char *const *cells, const size_t *widths)
{
    for (size_t k = 0; k + 1 < N_COLUMNS; k++)
        bh_buf_printf(out, "%-*s  ", (int)widths[k], cells[k]);
    bh_buf_printf(out, "%s\n", cells[N_COLUMNS - 1]);
}

static void write_table(struct bh_buf *out, const struct bh_governor_rows *rows)
{
    BH_AUTOFREE struct cells *cells = bh_alloc(rows->n + 1, sizeof(*cells));
    size_t widths[N_COLUMNS];
    for (size_t k = 0; k < N_COLUMNS; k++)
        widths[k] = strlen(heads[k]);
    for (size_t i = 0; i < rows->n; i++) {
        fill(&cells[i], &rows->at[i]);
        for (size_t k = 0; k < N_COLUMNS; k++)
            widths[k] = strlen(cells[i].at[k]) > widths[k] ? strlen(cells[i].at[k]) : widths[k];
    }
    write_line(out, heads, widths);
    for (size_t i = 0; i < rows->n; i++) {
        const char *line[N_COLUMNS];
        for (size_t k = 0; k < N_COLUMNS; k++)
            line[k] = cells[i].at[k];
        write_line(out, line, widths);
    }
    bh_buf_str(out, "\n");
    bh_share_floors_text(out, rows->at, rows->n);
    bh_buf_str(out, "Time is divided, and nothing else:");
    for (size_t i = 0; not_divided[i]; i++)
        bh_buf_printf(out, "%s %s", i ? "," : "", not_divided[i]);
    bh_buf_str(out, " are shared as ever.\n");
}

/* Once for each lease: what it does on several GPUs it says in one sum. Rows are in order of GPUs, so it looks back. */
static void write_own(struct bh_buf *out, const struct bh_governor_rows *rows)
{
    bool any = false;
    for (size_t i = 0; i < rows->n; i++) {
        bool again = !bh_share_says(&rows->at[i]);
        for (size_t k = 0; !again && k < i; k++)
            again = rows->at[k].lease == rows->at[i].lease;
        if (again)
            continue;
        if (!any)
            bh_buf_str(out, "\nBy their own word, which nothing checks and no share follows:\n");
        any = true;
        bh_share_own_text(out, &rows->at[i]);
    }
}

/* Lines are the governor's, with names in them that tenants chose. */
static void write_noise(struct bh_buf *out, const struct bh_governor_noise *noise)
{
    if (noise->n)
        bh_buf_str(
            out,
            "\nWho uses what and who slows whom, judged from outside by time on the card and its counters:\n");
    for (size_t i = 0; i < noise->n; i++) {
        bh_buf_printf(out, "GPU %" PRIu32 ": ", noise->at[i].gpu);
        bh_text_add(out, noise->at[i].text);
        bh_buf_str(out, "\n");
    }
}

static void write_json_noise(struct bh_json *j, const struct bh_governor_noise *noise)
{
    bh_json_key(j, "noise");
    bh_json_open(j, '[');
    for (size_t i = 0; i < noise->n; i++) {
        bh_json_open(j, '{');
        bh_json_key_u64(j, "gpu", noise->at[i].gpu);
        bh_json_key(j, "text");
        bh_json_str(j, noise->at[i].text);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

static void write_json(struct bh_buf *out, const struct bh_governor_rows *rows,
                       const struct bh_governor_noise *noise, bool governed, bool older)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "governed", governed);
    bh_json_key_bool(&j, "older", older);
    bh_json_key(&j, "shares");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < rows->n; i++) {
        bh_json_open(&j, '{');
        bh_share_row_json(&j, &rows->at[i]);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_key(&j, "notDivided");
    bh_json_open_flat(&j, '[');
    for (size_t i = 0; not_divided[i]; i++)
        bh_json_str(&j, not_divided[i]);
    bh_json_close(&j, ']');
    write_json_noise(&j, noise);
    bh_json_close(&j, '}');
}

static int run(struct bh_cli *cli)
{
    struct bh_governor_all all = {0};
    const struct bh_governor_rows *rows = &all.rows;
    struct bh_err err;
    const int rc = bh_governor_list(&all, BH_GOVERNOR_MS, &err);
    if (rc < 0 && rc != BH_NOT_FOUND) {
        bh_governor_all_fini(&all);
        return bh_cli_fail(cli, &err);
    }
    if (rows->n)
        qsort(rows->at, rows->n, sizeof(rows->at[0]), by_place);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        write_json(&cli->out, rows, &all.noise, rc == BH_OK, all.older);
    } else if (rc == BH_OK && rows->n) {
        write_table(&cli->out, rows);
        write_own(&cli->out, rows);
        write_noise(&cli->out, &all.noise);
        if (all.older)
            bh_buf_str(
                &cli->out,
                "\nThe governor is from before an upgrade: it holds the shares, and tells less of each lease. It "
                "ends with the last command that it serves.\n");
    } else if (rc == BH_OK ? bh_governor_look().is_young : bh_governor_look().is_there) {
        /* A socket without a governor is of one that was killed; whoever is governed comes to the next one. */
        bh_buf_str(
            &cli->out,
            "the governor was killed or has just begun: whoever shares a GPU's time joins the next one "
            "within seconds; nobody does if this is still so then\n");
    } else {
        bh_buf_str(&cli->out, "nobody shares a GPU's time here; bulkhead run --share begins it\n");
    }
    bh_governor_all_fini(&all);
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_shares = {
    .name = "shares",
    .summary = "who shares the GPUs' time, what each was promised and what each got",
    .operands = "",
    .examples = "bulkhead shares            one line for each command and GPU\n"
                "bulkhead shares -o json    the same, for a program\n",
    .text =
        "Shows what was started with bulkhead run --share, --cap, --floor or --latency. TARGET is the part of\n"
        "the GPU's time that is its own now, DELIVERED what it had of the last second, ERROR how far that\n"
        "was off, with the gaps it left in its own turns. MODE is how the GPU is divided: free (nobody\n"
        "competes), slices, turns, or beside one of class latency. TAMPERED counts attempts of the command\n"
        "to change that from inside. A dash: the driver does not tell.\n"
        "\n"
        "Time is all that is divided: memory bandwidth, caches, PCIe and power are shared as ever. While\n"
        "commands compete, lines below the table say what each uses of them while it holds the GPU, who has\n"
        "the time that another could use, and who slows whom. A command is judged by its time on the GPU, by\n"
        "the driver's counters, and by how long its turns take where they end because its work does. How\n"
        "long it waits for a turn is not seen. What cannot be told is said, with the counter that is missing.\n"
        "\n"
        "A command may say itself what it does: see BULKHEAD_PROBE in bulkhead-run(1). Its own rate and\n"
        "latencies of the last five seconds are shown then, and where it was seen alone before, whether a\n"
        "second on the GPU does less work beside others. That is its own word: evidence, which nothing\n"
        "checks, and no share follows it.\n"
        "\n"
        "Exit status: 0, also where nobody shares; 3 not root, 5 the governor is of another version,\n"
        "7 it does not answer.\n",
    .opts = opts,
    .run = run,
};
