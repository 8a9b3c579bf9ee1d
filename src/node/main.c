/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - bulkheadd: its words, and how it ends. */
#include "node/bill.h"
#include "node/upkeep.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: bulkheadd [--policy FILE] [--state FOLDER] [--run FOLDER] [--name NODE]\n"
    "                 [--listen ADDRESS:PORT [--cert FILE --key FILE]]\n"
    "       bulkheadd --restore BACKUP [--state FOLDER] [--run FOLDER]\n"
    "\n"
    "Turns a policy into leases on this machine's GPUs and keeps them through anything. Runs in the\n"
    "foreground; systemd or a shell may put it elsewhere. Needs root.\n"
    "\n"
    "  --policy FILE    apply this policy where another one, or none, is in force\n"
    "  --state FOLDER   where what must not be lost is kept (default: $BULKHEAD_STATE_DIR or /var/lib/bulkhead)\n"
    "  --run FOLDER     where sockets and locks are (default: $BULKHEAD_RUN_DIR or /run/bulkhead)\n"
    "  --name NODE      what this machine is called in the policy (default: the host's name)\n"
    "  --listen AT      serve the API over HTTPS too, at 127.0.0.1:8443 or [::1]:8443 (default: unix socket only)\n"
    "  --cert FILE      HTTPS: the certificate, with those that vouch for it (PEM; default: one is made)\n"
    "  --key FILE       HTTPS: its key (PEM)\n"
    "  --restore FILE   put a backup in the place of the state, and end; no daemon and no work may run\n"
    "  --replace-audit-key   audit.key is lost: go on with a new one; the log shows that place for ever\n"
    "\n"
    "Exit status: 0 it was told to end; 1 the policy or the machine does not allow it; 2 wrong use; 3 not\n"
    "root; 4 no driver or no GPU; 5 the port is taken; 7 another bulkheadd has the state; 70 it could not go on.\n";

enum {
    OPT_POLICY = 1,
    OPT_STATE,
    OPT_RUN,
    OPT_NAME,
    OPT_LISTEN,
    OPT_CERT,
    OPT_KEY,
    OPT_RESTORE,
    OPT_REPLACE,
    OPT_HELP,
    OPT_VERSION
};
static const struct option options[] = {{"policy", required_argument, NULL, OPT_POLICY},
                                        {"state", required_argument, NULL, OPT_STATE},
                                        {"run", required_argument, NULL, OPT_RUN},
                                        {"name", required_argument, NULL, OPT_NAME},
                                        {"listen", required_argument, NULL, OPT_LISTEN},
                                        {"cert", required_argument, NULL, OPT_CERT},
                                        {"key", required_argument, NULL, OPT_KEY},
                                        {"restore", required_argument, NULL, OPT_RESTORE},
                                        {"replace-audit-key", no_argument, NULL, OPT_REPLACE},
                                        {"help", no_argument, NULL, OPT_HELP},
                                        {"version", no_argument, NULL, OPT_VERSION},
                                        {0}};

/* 0: go on; else 1 + the exit status. */
static int read_words(int argc, char **argv, struct bh_daemon_options *o, const char **ret_restore)
{
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (c) {
        case OPT_POLICY:
            o->policy_path = optarg;
            break;
        case OPT_STATE:
            o->state_dir = optarg;
            break;
        case OPT_RUN:
            o->run_dir = optarg;
            break;
        case OPT_NAME:
            o->node_name = optarg;
            break;
        case OPT_LISTEN:
            o->listen = optarg;
            break;
        case OPT_CERT:
            o->cert_path = optarg;
            break;
        case OPT_KEY:
            o->key_path = optarg;
            break;
        case OPT_RESTORE:
            *ret_restore = optarg;
            break;
        case OPT_REPLACE:
            o->replace_audit_key = true;
            break;
        case OPT_HELP:
            fputs(usage, stdout);
            return 1;
        case OPT_VERSION:
            puts("bulkheadd " BH_VERSION);
            return 1;
        default:
            fputs(usage, stderr);
            return 3;
        }
    if (optind < argc) {
        fprintf(stderr, "bulkheadd: '%s' is one word too many\n", argv[optind]);
        return 3;
    }
    if (!o->cert_path == !o->key_path && (o->listen || !o->cert_path))
        return 0;
    fputs("bulkheadd: --cert and --key go together, and with --listen\n", stderr);
    return 3;
}

static int put_back(const struct bh_daemon *d, const char *from, int rc, struct bh_err *err)
{
    if (rc == BH_OK)
        rc = bh_upkeep_restore(&d->opt, from, err);
    if (rc < 0)
        fprintf(stderr, "bulkheadd: %s\n", err->msg);
    else
        bh_daemon_say(d, "%s is the state in %s now; what was there is bulkhead.db.replaced", from,
                      d->opt.state_dir);
    return rc < 0 ? bh_code_exit(rc) : 0;
}

static const char *from_env(const char *name, const char *otherwise)
{
    const char *word = getenv(name);
    return word && *word ? word : otherwise;
}

int main(int argc, char **argv)
{
    static struct bh_daemon d;
    struct bh_err err;
    const char *restore = NULL;
    if (argc == 3 && strcmp(argv[1], BH_BILL_WORD) == 0) /* the daemon's own word, to a child of its */
        return bh_bill_child(argv[2]);
    /* two daemons on one machine, as in tests, need two */
    (void)snprintf(d.cgroup, sizeof(d.cgroup), "%s", from_env("BULKHEAD_CGROUP", "bulkhead"));
    const int words = read_words(argc, argv, &d.opt, &restore);
    if (words)
        return words - 1;
    if (!d.opt.run_dir)
        d.opt.run_dir = from_env("BULKHEAD_RUN_DIR", "/run/bulkhead");
    /* Governor and keepers look there too. What getenv gave is good until then. */
    if (setenv("BULKHEAD_RUN_DIR", d.opt.run_dir, 1) < 0)
        return 70;
    d.opt.run_dir = getenv("BULKHEAD_RUN_DIR");
    if (!d.opt.state_dir)
        d.opt.state_dir = from_env("BULKHEAD_STATE_DIR", "/var/lib/bulkhead");
    int rc = geteuid() == 0 ? BH_OK
                            : bh_fail(&err, BH_DENIED,
                                      "root is needed: tenants' processes, cgroups and GPUs are others'");
    if (restore)
        return put_back(&d, restore, rc, &err);
    if (rc == BH_OK)
        rc = bh_daemon_start(&d, &err);
    if (rc == BH_OK) {
        bh_daemon_say(&d, "serves %s with %zu GPU%s%s", d.node, d.view.n_gpus, d.view.n_gpus == 1 ? "" : "s",
                      d.view.simulated ? " (simulated)" : "");
        rc = bh_daemon_serve(&d, &err);
    }
    if (rc < 0)
        fprintf(stderr, "bulkheadd: %s\n", err.msg);
    bh_daemon_fini(&d);
    return rc < 0 ? bh_code_exit(rc) : 0;
}
