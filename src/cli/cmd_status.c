/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_status.c - `bulkhead` alone: what is going on.
 *
 * Where a daemon answers: who holds what, what waits and why, what is wrong. Where none does: the release, and the policy and
 * fleet files in this folder (a glance at their first lines, no judgement).
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/node_text.h"
#include "cli/remote.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_OUTPUT, OPT_VERSION }; /* output first, as in cmd_version.c, which --version runs */
enum { GLANCE_BYTES = 1 << 16, WAITS_SHOWN = 5 };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    [OPT_VERSION] = {"version", 'V', BH_OPT_FLAG, NULL, NULL, "which release this is"},
    {0},
};

struct found {
    BH_VEC(char *) policies, fleets;
};

enum look { LOOK_NEITHER, LOOK_POLICY, LOOK_FLEET };

/* Does a line at the left margin start with key and a colon? */
static bool has_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *s = text; s; s = strchr(s, '\n'), s = s ? s + 1 : NULL)
        if (strncmp(s, key, n) == 0 && s[n] == ':')
            return true;
    return false;
}

static enum look glance(const char *path)
{
    enum look look = LOOK_NEITHER;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        char *text = bh_alloc(GLANCE_BYTES + 1, 1);
        ssize_t n = read(fd, text, GLANCE_BYTES);
        if (n > 0 && has_key(text, "bulkhead"))
            look = has_key(text, "nodes") ? LOOK_FLEET : LOOK_POLICY;
        free(text);
    }
    if (fd >= 0)
        close(fd);
    return look;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void look_around(struct found *f)
{
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!bh_str_ends(e->d_name, ".yaml") && !bh_str_ends(e->d_name, ".yml"))
            continue;
        enum look look = glance(e->d_name);
        if (look == LOOK_NEITHER)
            continue;
        char *name = bh_alloc(strlen(e->d_name) + 1, 1);
        memcpy(name, e->d_name, strlen(e->d_name));
        if (look == LOOK_POLICY)
            *bh_vec_push(&f->policies) = name;
        else
            *bh_vec_push(&f->fleets) = name;
    }
    if (d)
        closedir(d);
    if (f->policies.n)
        qsort(f->policies.at, f->policies.n, sizeof(char *), by_name);
    if (f->fleets.n)
        qsort(f->fleets.at, f->fleets.n, sizeof(char *), by_name);
}

static void found_fini(struct found *f)
{
    for (size_t i = 0; i < f->policies.n; i++)
        free(f->policies.at[i]);
    for (size_t i = 0; i < f->fleets.n; i++)
        free(f->fleets.at[i]);
    bh_vec_fini(&f->policies);
    bh_vec_fini(&f->fleets);
}

static void make_next(const struct found *f, struct bh_buf *next)
{
    if (f->policies.n == 0) {
        bh_buf_str(next, "bulkhead init");
        return;
    }
    bh_buf_str(next, "bulkhead lint ");
    bh_text_shell(next, f->policies.at[0]);
    if (f->fleets.n) {
        bh_buf_str(next, " --fleet ");
        bh_text_shell(next, f->fleets.at[0]);
    }
}

static void write_names(struct bh_json *j, const char *key, char *const *at, size_t n)
{
    bh_json_key(j, key);
    bh_json_open(j, '[');
    for (size_t i = 0; i < n; i++)
        bh_json_str(j, at[i]);
    bh_json_close(j, ']');
}

static void write_json(struct bh_cli *cli, const struct found *f, const char *next)
{
    struct bh_json j;
    bh_json_init(&j, &cli->out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_str(&j, "bulkhead", BH_VERSION);
    bh_json_key_bool(&j, "daemon", false);
    write_names(&j, "policies", f->policies.at, f->policies.n);
    write_names(&j, "fleets", f->fleets.at, f->fleets.n);
    bh_json_key_str(&j, "next", next);
    bh_json_close(&j, '}');
}

static void write_row(struct bh_buf *b, const char *head, char *const *at, size_t n, const char *none)
{
    bh_buf_printf(b, "%-9s", head);
    for (size_t i = 0; i < n; i++) {
        bh_buf_str(b, i ? ", " : "");
        bh_text_add(b, at[i]);
    }
    bh_buf_printf(b, "%s\n", n ? "" : none);
}

/* ---- with a daemon ---- */

/* What this caller may not see, or what fails alone, is left out of the screen. */
static void gather(struct bh_remote *r, struct bh_status_parts *p)
{
    struct bh_a_gpus *gpus = bh_arena_alloc(&r->arena, sizeof(*gpus));
    struct bh_a_leases *leases = bh_arena_alloc(&r->arena, sizeof(*leases));
    struct bh_a_doctor *doctor = bh_arena_alloc(&r->arena, sizeof(*doctor));
    struct bh_a_jobs *jobs = bh_arena_alloc(&r->arena, sizeof(*jobs));
    if (bh_remote_get(r, "/v1/gpus", &bh_a_gpus_shape, gpus, NULL) == BH_OK)
        p->gpus = gpus;
    if (bh_remote_get(r, "/v1/leases?state=live&limit=1000", &bh_a_leases_shape, leases, NULL) == BH_OK)
        p->leases = leases;
    if (bh_remote_get(r, "/v1/doctor", &bh_a_doctor_shape, doctor, NULL) == BH_OK)
        p->doctor = doctor;
    if (bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/jobs?state=waiting&limit=%d", WAITS_SHOWN),
                      &bh_a_jobs_shape, jobs, NULL) < 0)
        return;
    bh_remote_whys(r, jobs, WAITS_SHOWN);
    p->waits = jobs;
}

static int show_node(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct bh_a_status status;
    struct bh_status_parts parts = {.status = &status};
    const int rc = bh_remote_get(r, "/v1/status", &bh_a_status_shape, &status, err);
    if (rc < 0)
        return rc;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
        return BH_OK;
    }
    gather(r, &parts);
    bh_status_text(cli, &r->arena, &parts);
    return BH_OK;
}

/* ---- without one ---- */

static int show_folder(struct bh_cli *cli)
{
    struct found f = {0};
    struct bh_buf next;
    look_around(&f);
    bh_buf_init(&next, 1u << 16);
    make_next(&f, &next);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        write_json(cli, &f, bh_buf_text(&next));
    } else {
        bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, "bulkhead " BH_VERSION);
        bh_buf_str(&cli->out, "\ndaemon   none answers here; lint, plan, explain and init need none\n");
        write_row(&cli->out, "policy", f.policies.at, f.policies.n, "none in this folder");
        write_row(&cli->out, "fleet", f.fleets.at, f.fleets.n, "none in this folder");
        bh_cli_next(cli, "%s", bh_buf_text(&next));
        if (f.policies.n) {
            next.n = 0;
            bh_buf_str(&next, "bulkheadd --policy ");
            bh_text_shell(&next, f.policies.at[0]);
            bh_cli_next(cli, "%s", bh_buf_text(&next));
        }
        bh_cli_next(cli, "bulkhead help");
    }
    bh_buf_fini(&next);
    found_fini(&f);
    return BH_EXIT_OK;
}

static int run(struct bh_cli *cli)
{
    if (cli->value[OPT_VERSION])
        return bh_cmd_version.run(cli);
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = show_node(cli, &r, &err);
    if (bh_remote_is_away(&r, rc))
        return show_folder(cli);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_status = {
    .name = "",
    .summary = "what is going on, and what to try next",
    .operands = "[COMMAND]",
    .operand_kind = BH_OPERAND_VERB,
    .examples =
        "bulkhead                                       who holds what, what waits and why, what is wrong\n"
        "bulkhead init                                  write a starter policy by answering four questions\n"
        "bulkhead lint policy.yaml                      find promises that the silicon cannot keep\n"
        "bulkhead plan policy.yaml --fleet fleet.yaml   the cheapest way to keep them\n"
        "bulkhead explain BH-020                        why a rule exists, and what to do\n",
    .text =
        "bulkhead help COMMAND tells more, and so do the manual pages bulkhead(1) and bulkhead-policy(5).\n",
    .opts = opts,
    .run = run,
};
