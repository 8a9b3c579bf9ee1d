/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_sim.c - simulated nodes: start, stop, list, break, and programs run on them.
 *
 * Each word after `sim` is a row of a table that also says which options it takes. Nothing here knows what a GPU
 * is; the node is made by simgpu, served by a process of its own and reached over its socket.
 */
#include "base/json.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/sim_text.h"
#include "simgpu/serve/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { OPT_NAME, OPT_SEED, OPT_FOREGROUND, OPT_ALL, OPT_OUTPUT, N_OPTS };

static const struct bh_opt opts[] = {
    [OPT_NAME] = {"name", 'n', BH_OPT_TEXT, "NAME", NULL, "start: the node's name (default: lab)"},
    [OPT_SEED] = {"seed", 0, BH_OPT_TEXT, "NUMBER", NULL,
                  "start: serial numbers and the like come from it (default: 1)"},
    [OPT_FOREGROUND] = {"foreground", 0, BH_OPT_FLAG, NULL, NULL, "start: stay until Ctrl-C"},
    [OPT_ALL] = {"all", 0, BH_OPT_FLAG, NULL, NULL, "stop: every node of yours"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json,
                    "list, scenes: text (default) or json"},
    {0},
};

static const char default_name[] = "lab";
static const char break_words[] =
    "gpu 0 lost, gpu 0 xid 79, gpu 0 ecc 2, gpu 0 hot 95, gpu 0 link 4 down, calls fail 51 every 10, "
    "calls slow 200, library fail 15 in nvmlDeviceGetMemoryInfo, mend";

/* ---- start ---- */

static void say_started(struct bh_buf *out, const struct bh_sim_place *p)
{
    char since[BH_SINCE_MAX], owner[64];
    bh_buf_printf(out, "simulated node %s: %s, %llu GPU%s, seed %llu\n", p->name, p->scene,
                  (unsigned long long)p->gpus, p->gpus == 1 ? "" : "s", (unsigned long long)p->seed);
    bh_buf_printf(out, "process %u of %s since %s, in ", (unsigned)p->pid,
                  bh_sim_owner(p->uid, owner, sizeof(owner)), bh_sim_since(p->started_s, since));
    bh_text_add(out, p->folder);
    bh_buf_str(out, "\n");
}

static void say_next(struct bh_cli *cli, const char *name)
{
    bh_cli_next(cli, "bulkhead sim run %s -- bulkhead gpus", name);
    bh_cli_next(cli, "eval \"$(bulkhead sim env %s)\"", name);
}

/* In the foreground main would write only at the end. */
static void on_ready(const struct bh_sim_place *place, void *arg)
{
    struct bh_cli *cli = arg;
    struct bh_buf said;
    bh_buf_init(&said, 4096);
    say_started(&said, place);
    fputs(bh_buf_text(&said), stdout);
    (void)fflush(stdout);
    bh_buf_fini(&said);
    say_next(cli, place->name);
    fputs(bh_buf_text(&cli->hint), stderr);
    const size_t max = cli->hint.max;
    bh_buf_fini(&cli->hint);
    bh_buf_init(&cli->hint, max);
}

static int do_start(struct bh_cli *cli, struct bh_err *err)
{
    const char *name = cli->value[OPT_NAME] ? cli->value[OPT_NAME] : default_name;
    const char *scene = cli->n_operands > 1 ? cli->operands[1] : bh_sim_scenes[0].name;
    BH_AUTOFREE struct bh_sim_node *node = bh_alloc(1, sizeof(*node));
    struct bh_sim_place place;
    uint64_t seed = 1;
    int rc = BH_OK;
    if (cli->value[OPT_SEED])
        rc = bh_uint_parse(cli->value[OPT_SEED], UINT64_MAX, &seed, err);
    if (rc < 0)
        return bh_wrap(err, rc, "--seed");
    rc = bh_sim_node_make(node, scene, seed, err);
    if (rc < 0)
        return rc;
    if (cli->value[OPT_FOREGROUND])
        return bh_sim_start_here(name, node, on_ready, cli, err);
    rc = bh_sim_start(name, node, &place, err);
    if (rc < 0)
        return rc;
    say_started(&cli->out, &place);
    say_next(cli, name);
    return BH_OK;
}

/* ---- stop ---- */

static int stop_one(struct bh_cli *cli, const struct bh_sim_place *p, struct bh_err *err)
{
    int rc = bh_sim_stop(p, err);
    if (rc == BH_OK)
        bh_buf_printf(&cli->out,
                      p->runs ? "stopped simulated node %s\n" : "removed simulated node %s, which had died\n",
                      p->name);
    return rc;
}

static int do_stop(struct bh_cli *cli, struct bh_err *err)
{
    struct bh_sim_place p;
    if (!cli->value[OPT_ALL] == (cli->n_operands < 2))
        return bh_fail(err, BH_USAGE, "stop needs a NAME or --all; bulkhead sim list shows what there is");
    if (!cli->value[OPT_ALL]) {
        int rc = bh_sim_place_find(cli->operands[1], &p, err);
        return rc < 0 ? rc : stop_one(cli, &p, err);
    }
    bh_sim_places all = {0};
    size_t n = 0;
    int rc = bh_sim_place_list(&all, err);
    for (size_t i = 0; i < all.n && rc == BH_OK; i++)
        if (all.at[i].uid == geteuid()) {
            rc = stop_one(cli, &all.at[i], err);
            n++;
        }
    if (rc == BH_OK && n == 0)
        bh_buf_str(&cli->out, "no simulated node of yours to stop\n");
    bh_vec_fini(&all);
    return rc;
}

/* ---- list, scenes ---- */

static int do_list(struct bh_cli *cli, struct bh_err *err)
{
    bh_sim_places all = {0};
    int rc = bh_sim_place_list(&all, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_sim_list_json(&cli->out, &all);
    else if (rc == BH_OK)
        bh_sim_list_text(cli, &all);
    bh_vec_fini(&all);
    return rc;
}

static void scenes_json(struct bh_buf *out)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "simulated", true);
    bh_json_key(&j, "scenes");
    bh_json_open(&j, '[');
    for (const struct bh_sim_scene *s = bh_sim_scenes; s->name; s++) {
        bh_json_open_flat(&j, '{');
        bh_json_key_str(&j, "name", s->name);
        bh_json_key_str(&j, "summary", s->summary);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}

static int do_scenes(struct bh_cli *cli, struct bh_err *err)
{
    size_t width = 0;
    (void)err;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        scenes_json(&cli->out);
        return BH_OK;
    }
    for (const struct bh_sim_scene *s = bh_sim_scenes; s->name; s++)
        width = strlen(s->name) > width ? strlen(s->name) : width;
    bh_buf_str(&cli->out, "simulated nodes that can be started\n");
    for (const struct bh_sim_scene *s = bh_sim_scenes; s->name; s++)
        bh_buf_printf(&cli->out, "  %-*s  %s\n", (int)width, s->name, s->summary);
    bh_buf_str(&cli->out, "Any model of the catalogue as well: A30-24GBx4 is four of them.\n");
    bh_cli_next(cli, "bulkhead sim start %s", bh_sim_scenes[0].name);
    return BH_OK;
}

/* ---- break, env, run ---- */

/* A node that can be used now. */
static int find_running(const char *name, struct bh_sim_place *ret, struct bh_err *err)
{
    int rc = bh_sim_place_find(name, ret, err);
    if (rc < 0 || ret->runs)
        return rc;
    return bh_fail(
        err, BH_NOT_FOUND,
        "simulated node '%s' died; bulkhead sim start --name %s %s starts it again, bulkhead sim stop %s "
        "removes what it left",
        name, name, *ret->scene ? ret->scene : "SCENE", name);
}

static int do_break(struct bh_cli *cli, struct bh_err *err)
{
    char body[1024];
    struct bh_buf words;
    struct bh_sim_place p;
    if (cli->n_operands < 3)
        return bh_fail(err, BH_USAGE, "break needs a NAME and what is to break: %s", break_words);
    int rc = find_running(cli->operands[1], &p, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&words, 512);
    for (size_t i = 2; i < cli->n_operands; i++)
        bh_buf_printf(&words, "%s%s", i > 2 ? " " : "", cli->operands[i]);
    if (words.full || words.n == 0) {
        rc = bh_fail(err, BH_INVALID, "what is to break has 1 to 511 letters; for example: %s", break_words);
    } else {
        memcpy(body, words.at, words.n);
        rc = bh_sim_order(&p, BH_SIM_OP_BREAK, 0, body, words.n, sizeof(body), err);
    }
    if (rc == BH_OK) {
        bh_buf_printf(&cli->out, "simulated node %s: ", p.name);
        bh_text_add(&cli->out, bh_buf_text(&words));
        bh_buf_str(&cli->out, "\n");
        if (!bh_str_eq(bh_buf_text(&words), "mend"))
            bh_cli_next(cli, "bulkhead sim break %s mend", p.name);
    }
    bh_buf_fini(&words);
    return rc;
}

static int do_env(struct bh_cli *cli, struct bh_err *err)
{
    struct bh_sim_place p;
    int rc = find_running(cli->operands[1], &p, err);
    if (rc == BH_OK)
        bh_sim_env_text(&cli->out, &p, getenv("LD_LIBRARY_PATH"));
    return rc;
}

static int do_run(struct bh_cli *cli, struct bh_err *err)
{
    const char *names[BH_SIM_VARS];
    struct bh_buf values[BH_SIM_VARS];
    struct bh_sim_place p;
    int rc = find_running(cli->operands[1], &p, err);
    if (rc < 0)
        return rc;
    bh_sim_vars(&p, getenv("LD_LIBRARY_PATH"), names, values);
    bool set = true;
    for (size_t i = 0; i < BH_SIM_VARS; i++) {
        set = set && !values[i].full && setenv(names[i], bh_buf_text(&values[i]), 1) == 0;
        bh_buf_fini(&values[i]);
    }
    if (!set)
        return bh_fail(err, BH_SYSTEM, "the environment has no room for a simulated node");
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "simulated node %s: %s\n", p.name, p.scene);
    (void)signal(SIGPIPE, SIG_DFL); /* ours ignores it; the command starts as it would from the shell */
    /* execvp takes the words without const and leaves them as they are. */
    execvp(cli->operands[2], (char *const *)(uintptr_t)(cli->operands + 2));
    rc = errno;
    return bh_fail(err,
                   rc == ENOENT   ? BH_NOT_FOUND
                   : rc == EACCES ? BH_DENIED
                                  : BH_SYSTEM,
                   "'%.200s': %s", cli->operands[2], strerror(rc));
}

/* ---- the words ---- */

#define TAKES(o) (1u << (o))
static const struct word {
    const char *name, *operands;
    size_t min, max; /* operands after the word */
    unsigned takes;  /* options */
    int (*run)(struct bh_cli *cli, struct bh_err *err);
} words[] = {
    {"start", "[SCENE]", 0, 1, TAKES(OPT_NAME) | TAKES(OPT_SEED) | TAKES(OPT_FOREGROUND), do_start},
    {"stop", "NAME|--all", 0, 1, TAKES(OPT_ALL), do_stop},
    {"list", "", 0, 0, TAKES(OPT_OUTPUT), do_list},
    {"break", "NAME WORDS...", 0, BH_CLI_OPERANDS_ANY, 0, do_break},
    {"env", "NAME", 1, 1, 0, do_env},
    {"run", "NAME -- COMMAND...", 2, BH_CLI_OPERANDS_ANY, 0, do_run},
    {"scenes", "", 0, 0, TAKES(OPT_OUTPUT), do_scenes},
};

static int find_word(const char *name, const struct word **ret, struct bh_err *err)
{
    const char *names[BH_COUNT_OF(words)];
    for (size_t i = 0; i < BH_COUNT_OF(words); i++) {
        names[i] = words[i].name;
        if (bh_str_eq(words[i].name, name)) {
            *ret = &words[i];
            return BH_OK;
        }
    }
    const char *near = bh_str_nearest(name, names, BH_COUNT_OF(words));
    if (near)
        return bh_fail(err, BH_USAGE, "sim has no '%.60s'; did you mean '%s'?", name, near);
    return bh_fail(err, BH_USAGE,
                   "sim has no '%.60s'; there are start, stop, list, break, env, run and scenes", name);
}

static int check_word(const struct bh_cli *cli, const struct word *w, struct bh_err *err)
{
    const size_t n = cli->n_operands - 1;
    for (size_t i = 0; i < N_OPTS; i++)
        if (cli->value[i] && !(w->takes & TAKES(i)))
            return bh_fail(err, BH_USAGE, "sim %s takes no --%s; %s", w->name, opts[i].name,
                           w->run == do_run ? "a command with options goes behind '--'"
                                            : "see bulkhead sim --help");
    if (n < w->min)
        return bh_fail(err, BH_USAGE, "sim %s needs %s; see bulkhead sim --help", w->name, w->operands);
    if (w->max != BH_CLI_OPERANDS_ANY && n > w->max)
        return bh_fail(err, BH_USAGE, "sim %s: '%.200s' is one word too many; see bulkhead sim --help",
                       w->name, cli->operands[w->max + 1]);
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    const struct word *w = NULL;
    struct bh_err err;
    int rc = find_word(cli->operands[0], &w, &err);
    if (rc == BH_OK)
        rc = check_word(cli, w, &err);
    if (rc == BH_OK)
        rc = w->run(cli, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_sim = {
    .name = "sim",
    .summary = "a simulated node: GPUs for development and tests, without any",
    .operands = "start|stop|list|break|env|run|scenes ...",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead sim start                          a simulated node under the name lab\n"
                "bulkhead sim run lab bulkhead gpus          a command that sees its GPUs\n"
                "eval \"$(bulkhead sim env lab)\"              the same for the rest of a shell\n"
                "bulkhead sim scenes                         what else can be started\n"
                "bulkhead sim start A30-24GBx4 --name small  a second node\n"
                "bulkhead sim list                           which there are, whose, since when\n"
                "bulkhead sim break lab gpu 0 lost           something breaks; mend makes it good\n"
                "bulkhead sim stop lab                       nothing is left of it\n",
    .text =
        "  start [SCENE]            a process that stands for a machine and its cards\n"
        "  stop NAME                end it; with --all every one of yours\n"
        "  list                     all nodes: running, or died\n"
        "  break NAME WORDS...      gpu 0 lost, gpu 0 xid 79, gpu 0 ecc 2, gpu 0 hot 95, gpu 0 link 4 down,\n"
        "                           calls fail 51 every 10, calls slow 200, mend\n"
        "  env NAME                 what a shell must export to use it\n"
        "  run NAME -- COMMAND...   one command with that environment\n"
        "  scenes                   the nodes that can be started\n"
        "\n"
        "What a simulated GPU shows is called simulated wherever it is shown. It stands for silicon and the\n"
        "vendor's two libraries; speed and isolation are not to be judged by it.\n"
        "\n"
        "Exit status: 0; 2 wrong use, 3 not yours, 4 no such node or scene, 5 the name is taken,\n"
        "7 it does not stop; of run: the command's own.\n",
    .opts = opts,
    .run = run,
};
