/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - a command with a cap on its GPU memory.
 *
 * The work is launch.c's and the warden's; here the words are read, and what cannot work is refused before anything
 * is started. For a tenant it is a job of the daemon's, which is followed to its end.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/aside.h"
#include "cli/cap.h"
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/job_words.h"
#include "cli/share.h"
#include "launch/launch.h"
#include "launch/warden.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OPT_MEMORY,
    OPT_SHARE,
    OPT_CAP,
    OPT_LATENCY,
    OPT_FLOOR,
    OPT_NAME,
    OPT_VIEW,
    OPT_RDMA,
    OPT_TICK,
    OPT_STATS,
    OPT_OUTPUT,
    OPT_TENANT,
    OPT_POOL,
    OPT_GPUS,
    OPT_PRIORITY,
    OPT_DURATION,
    OPT_ENV
};

static const struct bh_opt opts[] = {
    [OPT_MEMORY] = {"memory", 'm', BH_OPT_TEXT, "SIZE", NULL,
                    "at most this much memory of each GPU: 10GiB, 40GB"},
    [OPT_SHARE] = {"share", 's', BH_OPT_TEXT, "N", NULL,
                   "its weight among those who share a GPU's time, 1 to 10000 (default: 100)"},
    [OPT_CAP] = {"cap", 0, BH_OPT_TEXT, "PART", NULL,
                 "at most this part of each GPU's time, also where nobody else wants it: 25%"},
    [OPT_LATENCY] = {"latency", 0, BH_OPT_FLAG, NULL, NULL,
                     "it answers somebody: others are kept in slices too short to wait for"},
    [OPT_FLOOR] = {"floor", 0, BH_OPT_TEXT, "PART", NULL,
                   "at least this part of each GPU's time while it has work for it: 5%"},
    [OPT_NAME] = {"name", 0, BH_OPT_TEXT, "NAME", NULL,
                  "what bulkhead shares calls it (default: the command's name)"},
    [OPT_VIEW] = {"view", 0, BH_OPT_WORD, "VIEW", bh_cap_views,
                  "what it sees of a GPU: its slice (default), the card, or nothing of neighbours (private)"},
    [OPT_RDMA] =
        {"rdma", 0, BH_OPT_FLAG, NULL, NULL,
         "RDMA adapters and other devices may reach its GPU memory (GPUDirect); allocations take longer"},
    [OPT_TICK] = {"tick", 0, BH_OPT_TEXT, "MS", NULL,
                  "compare with the driver's own count this often (default: 20)"},
    [OPT_STATS] = {"stats", 0, BH_OPT_FLAG, NULL, NULL, "say at the end what was used and what was refused"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json,
                    "of --stats: text (default) or json"},
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL,
                    "as a job of this tenant, through the daemon: it may have to wait"},
    [OPT_POOL] = {"pool", 'p', BH_OPT_TEXT, "POOL", NULL, "of a tenant's: from this pool"},
    [OPT_GPUS] = {"gpus", 'g', BH_OPT_TEXT, "N", NULL, "of a tenant's: so many, or a part of one: 2, 0.5"},
    [OPT_PRIORITY] = {"priority", 0, BH_OPT_WORD, "WORD", bh_job_priorities,
                      "of a tenant's: low, normal (default), high or critical"},
    [OPT_DURATION] = {"duration", 'd', BH_OPT_TEXT, "TIME", NULL, "of a tenant's: it takes so long at most"},
    [OPT_ENV] = {"env", 'e', BH_OPT_TEXT, "NAMES", NULL,
                 "of a tenant's: take only these variables along (default: the shell's)"},
    {0},
};

/* A governor that follows one that died does without its log, but whoever asks for one should have it. */
static int check_log(struct bh_err *err)
{
    const char *prefix = getenv("BULKHEAD_GOVERN_LOG");
    char folder[PATH_MAX];
    if (!prefix || *prefix != '/' || strlen(prefix) >= sizeof(folder))
        return BH_OK; /* the governor has a word on that */
    memcpy(folder, prefix, strlen(prefix) + 1);
    strrchr(folder, '/')[1] = '\0';
    return access(folder, W_OK | X_OK) == 0
               ? BH_OK
               : bh_fail(err, BH_USAGE, "BULKHEAD_GOVERN_LOG '%.200s': '%.200s': %s", prefix, folder,
                         strerrordesc_np(errno));
}

static int read_words(const struct bh_cli *cli, struct bh_launch *l, struct bh_err *err)
{
    const struct bh_share_words words = {.share = cli->value[OPT_SHARE],
                                         .cap = cli->value[OPT_CAP],
                                         .floor = cli->value[OPT_FLOOR],
                                         .latency = cli->value[OPT_LATENCY],
                                         .name = cli->value[OPT_NAME],
                                         .command = cli->operands[0]};
    int rc = bh_share_read(&words, &l->share, err);
    if (rc == BH_OK && l->share.weight)
        rc = check_log(err);
    l->cap_bytes = BH_CAP_NONE;
    l->note_share = l->share.weight && cli->value[OPT_STATS];
    if (rc == BH_OK && !cli->value[OPT_MEMORY] && !l->share.weight)
        rc = bh_fail(err, BH_USAGE,
                     "run needs --memory SIZE, a share (--share N, --cap, --floor, --latency) or "
                     "--tenant TENANT; see bulkhead run --help");
    if (rc == BH_OK && cli->value[OPT_MEMORY])
        rc = bh_cap_read("run", cli->value[OPT_MEMORY], &l->cap_bytes, err);
    if (rc == BH_OK)
        rc = bh_cap_read_tick(cli->value[OPT_TICK], &l->tick_ms, err);
    if (rc == BH_OK && cli->value[OPT_OUTPUT] && !cli->value[OPT_STATS])
        rc = bh_fail(err, BH_USAGE, "--output has no meaning without --stats");
    return rc;
}

struct teller {
    const struct bh_cli *cli;
    struct bh_aside aside;
};

static void tell(void *arg, const char *line)
{
    struct teller *t = arg;
    struct bh_buf text;
    bh_buf_init(&text, 4096);
    bh_cli_error(t->cli, line, &text);
    bh_aside_say(&t->aside, bh_buf_text(&text));
    bh_buf_fini(&text);
}

static void stats_share(struct bh_buf *out, const struct bh_govern_row *r)
{
    struct bh_share_text target, delivered, error;
    bh_buf_printf(out, "bulkhead: GPU %u: target %s, delivered %s, error %s, %u corrections\n", r->gpu,
                  bh_share_permille((int32_t)r->target_permille, false, &target),
                  r->seen ? bh_share_permille((int32_t)r->delivered_permille, false, &delivered) : "unknown",
                  r->seen ? bh_share_permille(r->error_permille, true, &error) : "unknown", r->corrections);
}

static void stats_text(struct bh_buf *out, const struct bh_launch *l, const struct bh_launch_result *r)
{
    const struct bh_lease_end *end = &r->end;
    struct bh_unit_text peak, cap;
    bh_buf_printf(out, "bulkhead: peak %s", bh_size_format(end->peak_bytes, &peak));
    if (l->cap_bytes != BH_CAP_NONE)
        bh_buf_printf(out, " of %s", bh_size_format(l->cap_bytes, &cap));
    bh_buf_printf(out, ", %llu refused for memory, %llu denied, %llu killed, %llu calls seen\n",
                  (unsigned long long)end->refused_memory, (unsigned long long)end->denied,
                  (unsigned long long)end->killed, (unsigned long long)end->seen);
    for (size_t i = 0; i < r->n_shares; i++)
        stats_share(out, &r->shares[i]);
    if (end->tampered)
        bh_buf_printf(out, "bulkhead: it tried %llu times to change its share from inside\n",
                      (unsigned long long)end->tampered);
}

/* One line, so that whoever reads the command's standard error can tell it from the rest. */
static void stats_json(struct bh_buf *out, const struct bh_launch *l, const struct bh_launch_result *r)
{
    const struct bh_lease_end *end = &r->end;
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open_flat(&j, '{');
    if (l->cap_bytes == BH_CAP_NONE)
        bh_json_key_str(&j, "capBytes", NULL);
    else
        bh_json_key_u64(&j, "capBytes", l->cap_bytes);
    bh_json_key_u64(&j, "peakBytes", end->peak_bytes);
    bh_json_key_u64(&j, "refusedForMemory", end->refused_memory);
    bh_json_key_u64(&j, "denied", end->denied);
    bh_json_key_u64(&j, "killed", end->killed);
    bh_json_key_str(&j, "whyKilled", *end->why_killed ? end->why_killed : NULL);
    bh_json_key_u64(&j, "callsSeen", end->seen);
    bh_json_key_u64(&j, "callsIssued", end->emulated);
    bh_json_key_u64(&j, "callsContinued", end->continued);
    bh_json_key_u64(&j, "counts", end->checks);
    if (l->share.weight) {
        bh_json_key_u64(&j, "tampered", end->tampered);
        bh_json_key(&j, "shares");
        bh_json_open_flat(&j, '[');
        for (size_t i = 0; i < r->n_shares; i++) {
            bh_json_open_flat(&j, '{');
            bh_share_row_json(&j, &r->shares[i]);
            bh_json_close(&j, '}');
        }
        bh_json_close(&j, ']');
    }
    bh_json_close(&j, '}');
}

/* Standard output is the command's. */
static void say_stats(const struct bh_cli *cli, const struct bh_launch *l, const struct bh_launch_result *r)
{
    struct bh_buf line;
    bh_buf_init(&line, 1u << 16);
    (bh_cli_wants(cli, OPT_OUTPUT, "json") ? stats_json : stats_text)(&line, l, r);
    fputs(bh_buf_text(&line), stderr);
    bh_buf_fini(&line);
}

/* ---- through the daemon ---- */

static volatile sig_atomic_t interrupted; /* the signal; 0: none */
static volatile sig_atomic_t n_interrupts;

static void on_interrupt(int sig)
{
    interrupted = sig;
    n_interrupts = n_interrupts + 1;
}

struct job {
    struct bh_remote r;
    struct bh_remote orders; /* of its own: what the other one said is still read */
    struct bh_follow follow;
    bool cancelled;
    int heard; /* interrupts until then */
};

/* An interrupt cancels the job, which is followed to its end; another one after that leaves it to that. */
static bool is_wanted(void *ctx)
{
    struct job *j = ctx;
    struct bh_err err;
    if (!interrupted || j->cancelled)
        return !interrupted || n_interrupts == j->heard;
    j->cancelled = true;
    (void)fprintf(stderr, "bulkhead: %s is being cancelled; once more leaves it to that\n", j->follow.job);
    if (bh_remote_order(&j->orders, "jobs", j->follow.job, "cancel", "interrupted", &err) < 0)
        (void)bh_cli_fail(j->follow.cli, &err);
    j->heard = n_interrupts; /* a terminal and its shell may both have sent one */
    return true;
}

/* As the command would have ended here. */
static int end_as(const struct bh_cli *cli, const struct bh_a_job *job)
{
    struct bh_err err;
    if (job->status != BH_ANSWER_UNKNOWN)
        return (int)(job->status & 0xff);
    if (job->signal != BH_ANSWER_UNKNOWN && job->signal > 0 && job->signal < NSIG)
        return bh_launch_end_as((int)job->signal);
    if (interrupted)
        return bh_launch_end_as(interrupted);
    const bool is_lost = bh_str_eq(job->end, "lost") || bh_str_eq(job->end, "failed");
    (void)bh_fail(&err, is_lost ? BH_SYSTEM : BH_REFUSED, "%s was %s%s%s", job->id,
                  job->end ? job->end : "ended", job->why ? ": " : "", job->why ? job->why : "");
    return bh_cli_fail(cli, &err);
}

static int follow_job(struct bh_cli *cli, struct job *j)
{
    const char *const *v = cli->value;
    const struct bh_job_words words = {.tenant = v[OPT_TENANT],
                                       .pool = v[OPT_POOL],
                                       .gpus = v[OPT_GPUS],
                                       .cap = v[OPT_CAP],
                                       .memory = v[OPT_MEMORY],
                                       .name = v[OPT_NAME],
                                       .priority = v[OPT_PRIORITY],
                                       .duration = v[OPT_DURATION],
                                       .env = v[OPT_ENV],
                                       .argv = cli->operands,
                                       .n_argv = cli->n_operands};
    struct bh_follow_end end = {0};
    char id[BH_REMOTE_ID_MAX];
    struct bh_err err;
    int rc = bh_job_submit(&j->r, &words, id, &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    (void)sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    (void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    (void)sigaction(SIGHUP, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    bh_follow_init(&j->follow, cli, &j->r, id);
    j->follow.say = true;
    rc = bh_follow(&j->follow, is_wanted, j, &end, &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    return end.job ? end_as(cli, end.job) : bh_launch_end_as(interrupted);
}

static int run_as_job(struct bh_cli *cli)
{
    static const int local[] = {OPT_SHARE, OPT_LATENCY, OPT_FLOOR, OPT_VIEW,
                                OPT_RDMA,  OPT_TICK,    OPT_STATS, OPT_OUTPUT};
    static struct job j;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(local); i++)
        if (cli->value[local[i]]) {
            (void)bh_fail(&err, BH_USAGE, "--%s is not for a tenant's job: the policy's pool decides it",
                          opts[local[i]].name);
            return bh_cli_fail(cli, &err);
        }
    int rc = bh_remote_init(&j.r, &err);
    const int rc_orders = bh_remote_init(&j.orders, rc < 0 ? NULL : &err);
    const int status = rc < 0 || rc_orders < 0 ? bh_cli_fail(cli, &err) : follow_job(cli, &j);
    bh_remote_fini(&j.orders);
    bh_remote_fini(&j.r);
    return status;
}

/* What has a meaning only for the daemon must not be passed over in silence. */
static int check_local(const struct bh_cli *cli, struct bh_err *err)
{
    static const int remote[] = {OPT_POOL, OPT_GPUS, OPT_PRIORITY, OPT_DURATION, OPT_ENV};
    for (size_t i = 0; i < BH_COUNT_OF(remote); i++)
        if (cli->value[remote[i]])
            return bh_fail(err, BH_USAGE, "--%s goes with --tenant: the daemon gives GPUs away, to tenants",
                           opts[remote[i]].name);
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    char warden[PATH_MAX];
    struct teller teller = {.cli = cli};
    struct bh_launch l = {.warden = warden,
                          /* exec takes the words without const and leaves them as they are. */
                          .argv = (char *const *)(uintptr_t)cli->operands,
                          .view = bh_cap_read_view(cli->value[OPT_VIEW]),
                          .rdma = cli->value[OPT_RDMA] != NULL,
                          .wait_for_end = cli->value[OPT_STATS] != NULL,
                          .ignore_pipe = cli->ignore_pipe,
                          .let_go_of_files = true,
                          .tell = tell,
                          .arg = &teller};
    struct bh_launch_result result = {0};
    struct bh_err err;
    int status = 0;
    if (cli->value[OPT_TENANT])
        return run_as_job(cli);
    int rc = check_local(cli, &err);
    if (rc == BH_OK)
        rc = read_words(cli, &l, &err);
    if (rc == BH_OK)
        rc = bh_warden_rights("run", &err);
    if (rc == BH_OK && l.cap_bytes != BH_CAP_NONE)
        rc = bh_cap_check_cards(l.cap_bytes, &err);
    if (rc == BH_OK)
        rc = bh_warden_find(warden, sizeof(warden), &err);
    if (rc == BH_OK)
        rc = bh_launch(&l, &result, &status, &err);
    bh_aside_end(&teller.aside);
    if (rc < 0) {
        const int code = bh_cli_fail(cli, &err);
        return status ? status : code;
    }
    if (cli->value[OPT_STATS] && result.ended)
        say_stats(cli, &l, &result);
    return bh_launch_end_as(result.status);
}

const struct bh_cmd bh_cmd_run = {
    .name = "run",
    .summary = "a command below a cap, with a share of GPU time, or as a tenant's job",
    .operands = "-- COMMAND...",
    .operand_kind = BH_OPERAND_NONE,
    .min_operands = 1,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples = "bulkhead run --memory 10GiB -- python train.py    10 GiB of each GPU, and no more\n"
                "bulkhead run -m 20GiB --stats -- ./serve          and what it used, at the end\n"
                "bulkhead run -m 20GiB --view private -- ./serve   and it is told nothing of its neighbours\n"
                "bulkhead run --share 300 -- python train.py       three times the GPU time of one with 100\n"
                "bulkhead run --cap 25% -- ./batch                 a quarter of the GPU's time, and no more\n"
                "bulkhead run --latency -m 20GiB -- ./serve        others wait for it, and it not for them\n"
                "bulkhead run --tenant red -g 2 -- python train.py two GPUs of red's, when it is its turn\n",
    .text =
        "The cap holds for the command and everything it starts, all together, on each GPU. Nothing is\n"
        "loaded into the command: its system calls are looked at, so static programs and cleared\n"
        "environments are held too. Past the cap the driver's own out-of-memory comes back, as on a full\n"
        "card. Managed memory counts at its full size. Inside, io_uring, ptrace, set-user-id programs and\n"
        "32-bit programs do not work. A warden that is killed is followed by another one.\n"
        "\n"
        "Inside, cudaMemGetInfo, nvidia-smi and NVML show the cap as the GPU's memory and the command's own\n"
        "processes alone. --view private also withholds utilisation, power, clocks and temperature;\n"
        "--view card shows all that the driver tells.\n"
        "\n"
        "--share, --cap, --floor and --latency divide the time of each GPU among all who were started with\n"
        "one of them: by time slices that the hardware keeps, and by pauses. What one does not use the\n"
        "others get, unless they are capped. A governor is started for that, and ends with the last of\n"
        "them; bulkhead shares shows what it does. Without --memory there is no cap on memory. Programs\n"
        "started without bulkhead run take part as the driver sees fit. Time is all that is divided:\n"
        "memory bandwidth, caches, PCIe and power are shared as ever.\n"
        "\n"
        "With one of them the command may say how it fares: what it sends to the socket in $BULKHEAD_PROBE\n"
        "(unix, datagrams of lines) is shown by bulkhead shares: 'done 128' (so many units of work more are\n"
        "done, of whatever kind) and 'latency 412us' (one request took so long; ns, us, ms or s). A few a\n"
        "second will do. Nobody's share follows from it. Where the variable is not set, nobody listens.\n"
        "\n"
        "With --tenant it is a job of the daemon's: it waits for its turn and says why, runs as whoever\n"
        "asks, in this folder with this shell's environment, and what it writes is shown here. It reads\n"
        "nothing. Ctrl-C cancels it. Should this command be killed, it goes on: bulkhead logs -f JOB.\n"
        "\n"
        "Needs root without --tenant. A command that is root itself is held against mistakes, not against\n"
        "malice.\n"
        "\n"
        "Exit status: the command's own, or its signal; 127 there is no such command, 126 it cannot be run.\n"
        "Of run itself: 1 the cap cannot be held here, 2 wrong use, 3 not root, 4 no driver or no GPU,\n"
        "5 inside another run, 7 every GPU is full or the governor does not answer, 70 the warden or the\n"
        "governor did not start. With --tenant: 1 refused or cancelled, 3 not permitted, 4 no daemon or no\n"
        "such tenant, 6 past its quota for good, 70 what ran it is gone.\n",
    .opts = opts,
    .run = run,
};
