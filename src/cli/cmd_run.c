/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - a command with a cap on its GPU memory.
 *
 * The work is launch.c's and the warden's; here the words are read, and what cannot work is refused before anything
 * is started.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "core/model/catalog.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

enum { OPT_MEMORY, OPT_TICK, OPT_STATS };
enum { TICK_MAX_MS = 10000, INFORMATION_MAX = 4096 };
/* A CUDA context takes 518 MiB on an H200 before the first allocation; below this no program gets as far. */
#define LEAST_BYTES (600 * BH_MIB)

static const struct bh_opt opts[] = {
    [OPT_MEMORY] = {"memory", 'm', BH_OPT_TEXT, "SIZE", NULL,
                    "at most this much memory of each GPU: 10GiB, 512MiB"},
    [OPT_TICK] = {"tick", 0, BH_OPT_TEXT, "MS", NULL,
                  "compare with the driver's own count this often (default: 20)"},
    [OPT_STATS] = {"stats", 0, BH_OPT_FLAG, NULL, NULL, "say at the end what was used and what was refused"},
    {0},
};

static int read_sizes(const struct bh_cli *cli, struct bh_launch *l, struct bh_err *err)
{
    const char *memory = cli->value[OPT_MEMORY], *tick = cli->value[OPT_TICK];
    uint64_t ms = 0;
    if (!memory)
        return bh_fail(err, BH_USAGE, "run needs --memory SIZE, for example --memory 10GiB");
    int rc = bh_size_parse(memory, &l->cap_bytes, err);
    if (rc < 0)
        return bh_wrap(err, rc, "--memory");
    if (l->cap_bytes < LEAST_BYTES)
        return bh_fail(err, BH_INVALID,
                       "--memory %.40s is less than a program needs to start: a CUDA context alone takes "
                       "several hundred MiB (518 MiB on an H200); give it 600MiB or more",
                       memory);
    if (tick)
        rc = bh_uint_parse(tick, TICK_MAX_MS, &ms, err);
    if (rc < 0)
        return bh_wrap(err, rc, "--tick");
    if (tick && ms == 0)
        return bh_fail(err, BH_INVALID, "--tick: 1 to %d milliseconds, not 0", TICK_MAX_MS);
    l->tick_ms = (uint32_t)ms;
    return BH_OK;
}

/* `Model: \t\t NVIDIA H200` of one card's file, as the catalogue knows it; NULL: it does not. */
static const struct bh_gpu_model *model_of(const char *card)
{
    char path[BH_SYSPATH_MAX];
    static const char key[] = "Model:";
    BH_AUTOFREE char *text = NULL;
    (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", card);
    if (bh_sysfile_read(path, INFORMATION_MAX, &text, NULL, NULL) < 0 || !bh_str_starts(text, key))
        return NULL;
    char *name = text + strlen(key);
    while (bh_is_space(*name))
        name++;
    name[strcspn(name, "\n")] = '\0';
    return bh_catalog_find(name);
}

/* A cap that no card can reach holds nothing, and was hardly meant. The catalogue says how large cards are: asking the
 * vendor's library would take longer than the rest of the start. A card that it does not know is not judged. */
static int check_cards(uint64_t cap_bytes, struct bh_err *err)
{
    const struct bh_gpu_model *largest = NULL;
    char folder[BH_SYSPATH_MAX];
    DIR *d = bh_syspath(folder, "/proc/driver/nvidia/gpus") ? opendir(folder) : NULL;
    bool all_known = d != NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        const struct bh_gpu_model *m = model_of(e->d_name);
        all_known = all_known && m && m->memory_mib;
        if (m && (!largest || m->memory_mib > largest->memory_mib))
            largest = m;
    }
    if (d)
        closedir(d);
    if (!all_known || !largest || cap_bytes <= largest->memory_mib * BH_MIB)
        return BH_OK;
    struct bh_unit_text asked, there;
    return bh_fail(
        err, BH_REFUSED,
        "--memory %s is more than any GPU here has: the largest is %s with %s; a cap that cannot be "
        "reached holds nothing, so give a smaller one or run the command without",
        bh_size_format(cap_bytes, &asked), largest->name,
        bh_size_format(largest->memory_mib * BH_MIB, &there));
}

static void tell(void *arg, const char *line)
{
    const struct bh_cli *cli = arg;
    struct bh_err err;
    (void)bh_fail(&err, BH_SYSTEM, "%s", line);
    (void)bh_cli_fail(cli, &err);
}

static void say_stats(const struct bh_launch *l, const struct bh_lease_end *end)
{
    struct bh_unit_text peak, cap;
    fprintf(stderr,
            "bulkhead: peak %s of %s, %llu refused for memory, %llu denied, %llu killed, %llu calls seen\n",
            bh_size_format(end->peak_bytes, &peak), bh_size_format(l->cap_bytes, &cap),
            (unsigned long long)end->refused_memory, (unsigned long long)end->denied,
            (unsigned long long)end->killed, (unsigned long long)end->seen);
}

static int run(struct bh_cli *cli)
{
    char warden[PATH_MAX];
    struct bh_launch l = {.warden = warden,
                          /* exec takes the words without const and leaves them as they are. */
                          .argv = (char *const *)(uintptr_t)cli->operands,
                          .wait_for_end = cli->value[OPT_STATS] != NULL,
                          .tell = tell,
                          .arg = cli};
    struct bh_launch_result result = {0};
    struct bh_err err;
    int status = 0;
    int rc = read_sizes(cli, &l, &err);
    if (rc == BH_OK)
        rc = bh_launch_rights(&err);
    if (rc == BH_OK)
        rc = check_cards(l.cap_bytes, &err);
    if (rc == BH_OK)
        rc = bh_launch_warden(warden, sizeof(warden), &err);
    if (rc == BH_OK)
        rc = bh_launch(&l, &result, &status, &err);
    if (rc < 0) {
        const int code = bh_cli_fail(cli, &err);
        return status ? status : code;
    }
    if (cli->value[OPT_STATS] && result.ended)
        say_stats(&l, &result.end);
    return bh_launch_end_as(result.status);
}

const struct bh_cmd bh_cmd_run = {
    .name = "run",
    .summary = "a command with a cap on its GPU memory",
    .operands = "-- COMMAND...",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead run --memory 10GiB -- python train.py    a tenth of a card, and no more\n"
                "bulkhead run -m 20GiB --stats -- ./serve          and what it used, at the end\n",
    .text =
        "The cap holds for the command and everything it starts, all together, on each GPU. Nothing is\n"
        "loaded into the command: its system calls are looked at, so static programs and cleared\n"
        "environments are held too. Past the cap the driver's own out-of-memory comes back, as on a full\n"
        "card. Managed memory counts at its full size. Inside, io_uring, ptrace, set-user-id programs and\n"
        "32-bit programs do not work.\n"
        "\n"
        "Needs root. A command that is root itself is held against mistakes, not against malice.\n"
        "\n"
        "Exit status: the command's own, or its signal; 127 there is no such command, 126 it cannot be run.\n"
        "Of run itself: 1 refused, 2 wrong use, 3 not root, 4 no driver, 5 inside another run, 70 the warden\n"
        "did not start.\n",
    .opts = opts,
    .run = run,
};
