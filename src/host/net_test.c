/* SPDX-License-Identifier: Apache-2.0 */
/* net_test.c - places and rules, in a network of the test's own. Who reaches whom is shown in tests/container/run.py. */
#include "host/net.h"

#include "base/buf.h"
#include "base/test.h"
#include "host/net_run.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bh_err err;

TEST(places)
{
    char text[BH_NET_TEXT], other[BH_NET_TEXT];
    bh_net_address(0, text);
    CHECK_STR(text, "100.126.0.2");
    bh_net_address(64999, text);
    CHECK_STR(text, "100.126.253.233");
    bh_net_port(UINT64_MAX, text);
    CHECK(strlen(text) < 16); /* as long as a name may be there */
    bh_net_port(1, text);
    bh_net_port(1 + BH_NET_SLOTS, other);
    CHECK_STR(text, other);
}

TEST(names)
{
    const char *const bad[] = {"", "a/b", "a b", "x; flush ruleset", "A", NULL};
    for (size_t i = 0; i < 6; i++) {
        const struct bh_net n = {.lease = 1, .tenant = bad[i]};
        CHECK_EQ(bh_net_attach(&n, 1, &err), BH_INVALID);
        CHECK_EQ(bh_net_detach(&n, &err), BH_INVALID);
        CHECK_EQ(bh_net_reconcile(&n, 1, &err), BH_INVALID);
    }
    const struct bh_net n = {.lease = 1, .tenant = "acme"};
    CHECK_EQ(bh_net_reconcile(&n, BH_NET_MAX + 1, &err), BH_TOO_LARGE);
}

static bool shows(const char *const *argv, const char *text)
{
    struct bh_buf out;
    bh_buf_init(&out, 1 << 20);
    const int rc = bh_run_tool(&(struct bh_run){.argv = argv, .netns = -1, .out = &out}, NULL);
    const bool found = rc == BH_OK && strstr(bh_buf_text(&out), text);
    bh_buf_fini(&out);
    return found;
}

static const char *const ruleset[] = {"nft", "list", "ruleset", NULL}, *const links[] = {"ip", "link", NULL},
                         *const speeds[] = {"tc", "qdisc", "show", NULL};

/* A process in a network namespace of its own, as a container's. */
static pid_t container(void)
{
    int ready[2];
    char c;
    if (pipe(ready) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!write(ready[1], unshare(CLONE_NEWNET) == 0 ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    const bool ok = pid > 0 && read(ready[0], &c, 1) == 1 && c == 'y';
    close(ready[0]);
    close(ready[1]);
    return ok ? pid : -1;
}

/* From the slowest that a policy may say to the fastest, of a lease with 16 GPUs. */
static void rates(pid_t pid)
{
    for (uint64_t rate = UINT64_C(8) << 20; rate <= UINT64_C(8) << 44; rate <<= 6) {
        const struct bh_net a = {.lease = 1, .tenant = "acme", .bits_per_s = rate};
        CHECK_EQ(bh_net_set_up(&err), BH_OK);
        if (bh_net_attach(&a, pid, &err) < 0)
            printf("# %s\n", err.msg);
        CHECK(shows(speeds, "tbf") && !shows(speeds, "lat 0us"));
        CHECK_EQ(bh_net_tear_down(&err), BH_OK);
    }
}

static void walk(pid_t pid)
{
    const struct bh_net a = {.lease = 1, .tenant = "acme", .may_peer = true, .bits_per_s = 1000000000};
    const struct bh_net b = {.lease = 1 + BH_NET_SLOTS, .tenant = "zeta"};
    const struct bh_net out = {.lease = 2, .tenant = "acme", .may_go_outside = true};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bh_net_set_up(&err), BH_OK);
    for (int i = 0; i < 2; i++) {
        if (bh_net_attach(&a, pid, &err) < 0)
            printf("# %s\n", err.msg);
        CHECK(shows(ruleset, "\"bhp3\" : jump t-acme") && shows(ruleset, "\"bhp3\" . 100.126.0.3"));
        CHECK(shows(links, "bulkhead L1 acme"));
    }
    CHECK_EQ(bh_net_attach(&b, pid, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "L1 acme"));
    CHECK_EQ(bh_net_detach(&b, &err), BH_OK); /* it never had one, and the other's stays */
    CHECK(shows(links, "bhp3"));
    CHECK_EQ(bh_net_attach(&out, pid, &err), BH_REFUSED);
    CHECK(strstr(err.msg, "ip_forward"));
    CHECK_EQ(bh_net_reconcile(&a, 1, &err), BH_OK);
    CHECK(shows(links, "bhp3") && shows(ruleset, "\"bhp3\" : jump t-acme"));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bh_net_detach(&a, &err), BH_OK);
    CHECK(!shows(links, "bhp3") && !shows(ruleset, "bhp3") && !shows(ruleset, "t-acme"));
    CHECK_EQ(bh_net_attach(&a, pid, &err), BH_OK);
    CHECK_EQ(bh_net_reconcile(NULL, 0, &err), BH_OK); /* of no lease that lives */
    CHECK(!shows(links, "bhp3") && shows(links, BH_NET_BRIDGE));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bh_net_tear_down(&err), BH_OK);
    CHECK(!shows(links, BH_NET_BRIDGE) && !shows(ruleset, "bulkhead"));
    CHECK_EQ(bh_net_detach(&a, &err), BH_OK); /* with no table at all */
    CHECK_EQ(bh_net_attach(&a, 0x7ffffffe, &err), BH_NOT_FOUND);
}

/* One that fails half-way leaves nothing. */
static void fail_inside(pid_t pid)
{
    const struct bh_net a = {.lease = 1, .tenant = "acme", .may_peer = true};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    const int netns = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(netns >= 0);
    const struct bh_run taken = {
        .argv = (const char *const[]){"ip", "link", "add", "eth0", "type", "bridge", NULL},
        .netns = netns,
        .enter = true};
    CHECK_EQ(bh_run_tool(&taken, &err), BH_OK);
    CHECK_EQ(bh_net_attach(&a, pid, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "ip link add bhp3"));
    CHECK(!shows(links, "bhp3") && !shows(ruleset, "bhp3") && !shows(ruleset, "t-acme"));
    const struct bh_run nowhere = {.argv = (const char *const[]){"true", NULL}, .netns = 0, .enter = true};
    CHECK_EQ(bh_run_tool(&nowhere, &err), BH_SYSTEM); /* what is no namespace cannot be entered */
    CHECK_EQ(bh_net_tear_down(&err), BH_OK);
    close(netns);
}

TEST(ports_and_rules)
{
    if (unshare(CLONE_NEWNET) < 0 || !shows(ruleset, "") || !shows(links, "lo")) {
        printf("# no network namespace, ip or nft here: only names were looked at\n");
        CHECK_EQ(bh_test_failed, 0);
        return;
    }
    const pid_t pid = container();
    CHECK(pid > 0);
    walk(pid);
    if (!bh_test_failed)
        rates(pid);
    if (!bh_test_failed)
        fail_inside(pid);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

TEST_MAIN
