/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_adopt.c - a cap on the GPU memory of containers, through the seccomp listener of their runtime.
 *
 * The work is adopt.c's and the wardens'; here the words are read, and the profile is written that makes a runtime send
 * its listener.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/cap.h"
#include "cli/cli.h"
#include "host/profile.h"
#include "launch/adopt.h"
#include "launch/warden.h"
#include "wire/lease.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { OPT_MEMORY, OPT_SOCKET, OPT_VIEW, OPT_RDMA, OPT_TICK, OPT_ONCE, OPT_OWNER, OPT_PROFILE, OPT_NAME };

static const char default_socket[] = "/run/bulkhead/adopt.sock";

static const struct bh_opt opts[] = {
    [OPT_MEMORY] = {"memory", 'm', BH_OPT_TEXT, "SIZE", NULL,
                    "at most this much memory of each GPU, for each container"},
    [OPT_SOCKET] = {"socket", 's', BH_OPT_FILE, "PATH", NULL,
                    "where runtimes send to (default: /run/bulkhead/adopt.sock)"},
    [OPT_VIEW] = {"view", 0, BH_OPT_WORD, "VIEW", bh_cap_views,
                  "what it sees of a GPU: its slice (default), the card, or nothing of neighbours (private)"},
    [OPT_RDMA] =
        {"rdma", 0, BH_OPT_FLAG, NULL, NULL,
         "RDMA adapters and other devices may reach its GPU memory (GPUDirect); allocations take longer"},
    [OPT_TICK] = {"tick", 0, BH_OPT_TEXT, "MS", NULL,
                  "compare with the driver's own count this often (default: 20)"},
    [OPT_ONCE] = {"once", 0, BH_OPT_FLAG, NULL, NULL, "hold one container, and end with it"},
    [OPT_OWNER] = {"owner", 0, BH_OPT_TEXT, "UID", NULL, "this user's runtime may send, too"},
    [OPT_PROFILE] = {"profile", 0, BH_OPT_FLAG, NULL, NULL, "print the seccomp profile for the containers"},
    [OPT_NAME] = {"name", 0, BH_OPT_TEXT, "NAME", NULL,
                  "a name for the profile's containers, shown with theirs"},
    {0},
};

static int read_socket(const struct bh_cli *cli, const char **ret, struct bh_err *err)
{
    *ret = cli->value[OPT_SOCKET] ? cli->value[OPT_SOCKET] : default_socket;
    return **ret == '/'
               ? BH_OK
               : bh_fail(err, BH_INVALID,
                         "--socket %.60s: the path must begin with '/', for a runtime looks it up from its "
                         "own folder",
                         *ret);
}

/* ---- the profile ---- */

static int write_profile(struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_filter_arch *arch = bh_filter_here();
    const char *name = cli->value[OPT_NAME] ? cli->value[OPT_NAME] : "", *socket;
    struct bh_profile_mark mark = {
        .flags = bh_cap_read_view(cli->value[OPT_VIEW]) == BH_VIEW_CARD ? 0 : BH_FILTER_CONTROLS};
    static const size_t not_with[] = {OPT_MEMORY, OPT_TICK, OPT_ONCE, OPT_OWNER};
    for (size_t i = 0; i < BH_COUNT_OF(not_with); i++)
        if (cli->value[not_with[i]])
            return bh_fail(err, BH_USAGE, "--%s has no meaning with --profile", opts[not_with[i]].name);
    const int rc = read_socket(cli, &socket, err);
    if (rc < 0)
        return rc;
    if (!bh_profile_name_valid(name))
        return bh_fail(err, BH_INVALID, "--name: up to %d letters, digits, '.', '_' and '-', not '%.60s'",
                       BH_PROFILE_NAME_MAX - 1, name);
    if (!arch)
        return bh_fail(err, BH_REFUSED,
                       "the gate knows the system calls of x86-64 and AArch64; this is another "
                       "architecture");
    (void)snprintf(mark.name, sizeof(mark.name), "%s", name);
    bh_profile_write(arch, &mark, socket, &cli->out);
    return BH_OK;
}

/* ---- serving ---- */

/* Each line as it comes: a service's log, or a person who waits. */
static void tell(void *arg, const char *line)
{
    struct bh_cli *cli = arg;
    bh_text_add(&cli->out, line); /* names and profiles are chosen by others */
    bh_buf_str(&cli->out, "\n");
    (void)!bh_cli_flush(cli, STDOUT_FILENO, NULL);
    cli->out.n = 0;
}

static int read_words(const struct bh_cli *cli, struct bh_adopt *a, struct bh_err *err)
{
    uint64_t owner = geteuid();
    int rc = bh_cap_read("adopt", cli->value[OPT_MEMORY], &a->cap_bytes, err);
    if (rc == BH_OK)
        rc = bh_cap_read_tick(cli->value[OPT_TICK], &a->tick_ms, err);
    if (rc == BH_OK)
        rc = read_socket(cli, &a->socket, err);
    if (rc == BH_OK && cli->value[OPT_NAME])
        rc = bh_fail(err, BH_USAGE, "--name has no meaning without --profile");
    const char *of = cli->value[OPT_OWNER];
    if (rc == BH_OK && of && bh_uint_parse(of, UINT32_MAX - 1, &owner, NULL) < 0)
        rc = bh_fail(err, BH_INVALID, "--owner: a user's number, as id -u shows it, not '%.40s'", of);
    a->owner = (uid_t)owner;
    return rc;
}

static int serve(struct bh_cli *cli, struct bh_err *err)
{
    char warden[PATH_MAX];
    struct bh_adopt a = {.warden = warden,
                         .view = bh_cap_read_view(cli->value[OPT_VIEW]),
                         .rdma = cli->value[OPT_RDMA] != NULL,
                         .once = cli->value[OPT_ONCE] != NULL,
                         .tell = tell,
                         .arg = cli};
    int rc = read_words(cli, &a, err);
    if (rc == BH_OK)
        rc = bh_warden_rights("adopt", err);
    if (rc == BH_OK)
        rc = bh_cap_check_cards(a.cap_bytes, err);
    if (rc == BH_OK)
        rc = bh_warden_find(warden, sizeof(warden), err);
    return rc == BH_OK ? bh_adopt_serve(&a, err) : rc;
}

static int run(struct bh_cli *cli)
{
    struct bh_err err = {0};
    const int rc = cli->value[OPT_PROFILE] ? write_profile(cli, &err) : serve(cli, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_adopt = {
    .name = "adopt",
    .summary = "containers with a cap on their GPU memory",
    .operands = "",
    .operand_kind = BH_OPERAND_NONE,
    .examples = "bulkhead adopt --profile > bulkhead.json          the profile the containers get\n"
                "bulkhead adopt --memory 10GiB                     hold every container that has it\n"
                "bulkhead adopt -m 10GiB -s /run/a.sock --once     one container, and end with it\n",
    .text =
        "A container runtime (crun or runc, which Podman, Docker, containerd and CRI-O use) that starts a\n"
        "container with the profile sends its seccomp listener to the socket; each container gets a warden\n"
        "and a cap of its own. A container that cannot be held is refused GPU memory, and so is a process\n"
        "that joins one later (exec). With nobody on the socket, containers with the profile do not start.\n"
        "\n"
        "A line says which container is held, and at its end what it used. When adopt ends, its containers\n"
        "stay held by their wardens.\n"
        "\n"
        "Needs root. Give adopt and the profile the same --socket and --view.\n"
        "\n"
        "Exit status: 0 ended by a signal, or with --once with the container; 1 the cap cannot be held here,\n"
        "2 wrong use, 3 not root, 4 the socket's folder is not there, or with --once no driver or no GPU,\n"
        "5 somebody listens there already, 70 something else.\n",
    .opts = opts,
    .run = run,
};
