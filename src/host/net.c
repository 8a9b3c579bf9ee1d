/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - ports of leases on the bridge, and the rules between them.
 *
 * Two tables. `bridge bulkhead` is between ports: a frame passes if it comes from the address that its port has, and goes to a
 * port of the same tenant's set. `inet bulkhead` is between ports and the rest: this machine, and the outside. A frame that
 * asks this machine to carry it back to the bridge would pass the first table by; it is dropped on its way in.
 *
 * On the bridge they stand at -200, as others' filters do there: at 0 the kernel hands IPv4 to br_netfilter instead, and a rule
 * of ours would see nothing.
 *
 * Who changes the rules holds a lock on the network namespace itself, so that two containers can start at once.
 */
#include "host/net.h"

#include "base/buf.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/net_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SUBNET  "100.126.0.0/16"
#define GATEWAY "100.126.0.1"
#define PORT    "bhp"
/* Its own, locally administered: else it is that of a port, and changes with them under everybody's feet. */
#define BRIDGE_MAC "02:62:68:00:00:01"
enum {
    ALIAS_MAX = 160,
    SCRIPT_MAX = 8 << 20,
    LISTING_MAX = 16 << 20,
    BURST_MIN = 1 << 17,
    BURST_MAX = 1 << 26, /* with the queue's, what fits tc's 32 bits however fast a network is */
    BURSTS_PER_S = 100,
    QUEUE_MAX = 1 << 30,
    QUEUES_PER_S = 20
};

static const char base_rules[] = "table bridge bulkhead {\n"
                                 "  set bound { type ifname . ipv4_addr\n }\n"
                                 "  map by_port { type ifname : verdict\n }\n"
                                 "  chain source {\n"
                                 "    ether type arp iifname . arp saddr ip @bound return\n"
                                 "    ether type ip iifname . ip saddr @bound return\n"
                                 "    drop\n"
                                 "  }\n"
                                 "  chain between {\n"
                                 "    type filter hook forward priority -200; policy accept;\n"
                                 "    iifname != \"" PORT "*\" oifname != \"" PORT "*\" accept\n"
                                 "    jump source\n"
                                 "    iifname vmap @by_port\n"
                                 "    drop\n"
                                 "  }\n"
                                 "  chain inward {\n"
                                 "    type filter hook input priority -200; policy accept;\n"
                                 "    iifname != \"" PORT "*\" accept\n"
                                 "    jump source\n"
                                 "    ip daddr " SUBNET " ip daddr != " GATEWAY " drop\n"
                                 "  }\n"
                                 "}\n"
                                 "table inet bulkhead {\n"
                                 "  set outside { type ipv4_addr\n }\n"
                                 "  chain input {\n"
                                 "    type filter hook input priority 0; policy accept;\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" ct state established,related accept\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" drop\n"
                                 "  }\n"
                                 "  chain forward {\n"
                                 "    type filter hook forward priority 0; policy accept;\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" oifname \"" BH_NET_BRIDGE "\" accept\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" ip daddr 169.254.0.0/16 drop\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" ip saddr @outside accept\n"
                                 "    iifname \"" BH_NET_BRIDGE "\" drop\n"
                                 "    oifname \"" BH_NET_BRIDGE "\" ct state established,related accept\n"
                                 "    oifname \"" BH_NET_BRIDGE "\" drop\n"
                                 "  }\n"
                                 "  chain leave {\n"
                                 "    type nat hook postrouting priority 100; policy accept;\n"
                                 "    ip saddr " SUBNET " oifname != \"" BH_NET_BRIDGE "\" masquerade\n"
                                 "  }\n"
                                 "}\n";
/* Added first, so that the deleting of what is not there does not fail. */
static const char no_rules[] = "add table bridge bulkhead\ndelete table bridge bulkhead\n"
                               "add table inet bulkhead\ndelete table inet bulkhead\n";

static uint32_t slot_of(uint64_t lease)
{
    return (uint32_t)(lease % BH_NET_SLOTS) + 2; /* 0 is the network's, 1 the bridge's */
}

void bh_net_address(uint64_t lease, char ret[BH_NET_TEXT])
{
    const uint32_t slot = slot_of(lease);
    (void)snprintf(ret, BH_NET_TEXT, "100.126.%u.%u", slot >> 8 & 255, slot & 255);
}

void bh_net_port(uint64_t lease, char ret[BH_NET_TEXT])
{
    (void)snprintf(ret, BH_NET_TEXT, PORT "%u", slot_of(lease));
}

static int check(const struct bh_net *n, struct bh_err *err)
{
    return n->tenant && bh_name_valid(n->tenant)
               ? BH_OK
               : bh_fail(err, BH_INVALID, "'%.100s' is no name of a tenant", n->tenant ? n->tenant : "");
}

/* ---- tools ---- */

#define RUN(netns_, enter_, err_, ...)                                             \
    bh_run_tool(&(struct bh_run){.argv = (const char *const[]){__VA_ARGS__, NULL}, \
                                 .netns = (netns_),                                \
                                 .enter = (enter_)},                               \
                err_)
#define IP(err_, ...)             RUN(-1, false, err_, "ip", __VA_ARGS__)
#define INSIDE(netns_, err_, ...) RUN(netns_, true, err_, __VA_ARGS__)

static int nft(const char *script, struct bh_err *err)
{
    return bh_run_tool(
        &(struct bh_run){.argv = (const char *const[]){"nft", "-f", "-", NULL}, .input = script, .netns = -1},
        err);
}

/* One piece of rules, printed. */
static int nft_printf(struct bh_err *err, const char *fmt, ...) BH_PRINTF(2, 3);
static int nft_printf(struct bh_err *err, const char *fmt, ...)
{
    char script[2048];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(script, sizeof(script), fmt, args);
    va_end(args);
    return n < (int)sizeof(script) ? nft(script, err) : bh_fail(err, BH_TOO_LARGE, "a rule is too long");
}

/* Two containers that start at once must not both make the tables. The lock is the namespace's: it needs no folder. */
static int lock(struct bh_err *err)
{
    const int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : 0;
    while (rc == 0 && flock(fd, LOCK_EX) < 0)
        rc = errno == EINTR ? 0 : -1;
    if (rc == 0)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    return bh_fail(err, BH_SYSTEM, "the network cannot be locked: %s", strerror(error));
}

/* ---- what is there ---- */

struct link {
    char name[BH_NET_TEXT], alias[ALIAS_MAX];
};

static void read_link(struct bh_json_reader *j, struct link *ret)
{
    char key[32];
    *ret = (struct link){0};
    if (!bh_json_read_open(j, '{'))
        return;
    while (bh_json_read_member(j, key, sizeof(key))) {
        if (bh_str_eq(key, "ifname"))
            (void)bh_json_read_str(j, ret->name, sizeof(ret->name));
        else if (bh_str_eq(key, "ifalias"))
            (void)bh_json_read_str(j, ret->alias, sizeof(ret->alias));
        else
            (void)bh_json_read_skip(j);
    }
}

/* `ip -j link show ...`: calls each for every link. */
static int list_links(const char *const *argv, void (*each)(void *arg, const struct link *l), void *arg,
                      struct bh_err *err)
{
    struct bh_buf text;
    struct bh_json_reader j;
    struct link l;
    bh_buf_init(&text, LISTING_MAX);
    int rc = bh_run_tool(&(struct bh_run){.argv = argv, .netns = -1, .out = &text}, err);
    if (rc == BH_OK && text.n > 0) {
        bh_json_read_init(&j, text.at, text.n);
        if (bh_json_read_open(&j, '['))
            while (bh_json_read_item(&j)) {
                read_link(&j, &l);
                if (!j.wrong && *l.name)
                    each(arg, &l);
            }
        if (!bh_json_read_end(&j))
            rc = bh_fail(err, BH_SYSTEM, "what ip prints is not understood: %s",
                         j.wrong ? j.wrong : "more than a list");
    }
    bh_buf_fini(&text);
    return rc;
}

static void keep_one(void *arg, const struct link *l)
{
    struct link *ret = arg;
    *ret = *l;
}

/* False: there is no such link. */
static bool find_link(const char *name, struct link *ret)
{
    *ret = (struct link){0};
    return list_links((const char *const[]){"ip", "-j", "link", "show", "dev", name, NULL}, keep_one, ret,
                      NULL) == BH_OK &&
           *ret->name;
}

static void alias_of(const struct bh_net *n, char ret[ALIAS_MAX])
{
    (void)snprintf(ret, ALIAS_MAX, "bulkhead L%" PRIu64 " %s", n->lease, n->tenant);
}

/* ---- rules ---- */

static void print_lease(const struct bh_net *n, struct bh_buf *out)
{
    char port[BH_NET_TEXT], address[BH_NET_TEXT];
    bh_net_port(n->lease, port);
    bh_net_address(n->lease, address);
    bh_buf_printf(out, "add element bridge bulkhead bound { \"%s\" . %s }\n", port, address);
    if (n->may_go_outside)
        bh_buf_printf(out, "add element inet bulkhead outside { %s }\n", address);
    if (!n->may_peer)
        return;
    /* A set and a chain for each tenant: whoever is in neither is spoken to by nobody. */
    bh_buf_printf(out,
                  "add set bridge bulkhead p-%s { type ifname; }\n"
                  "add chain bridge bulkhead t-%s\n"
                  "flush chain bridge bulkhead t-%s\n"
                  "add rule bridge bulkhead t-%s oifname @p-%s accept\n"
                  "add element bridge bulkhead p-%s { \"%s\" }\n"
                  "add element bridge bulkhead by_port { \"%s\" : jump t-%s }\n",
                  n->tenant, n->tenant, n->tenant, n->tenant, n->tenant, n->tenant, port, port, n->tenant);
}

static int add_rules(const struct bh_net *n, struct bh_err *err)
{
    struct bh_buf script;
    bh_buf_init(&script, SCRIPT_MAX);
    print_lease(n, &script);
    const int rc = nft(bh_buf_text(&script), err);
    bh_buf_fini(&script);
    return rc;
}

/* What of it is there; each of these may be gone already. */
static int remove_rules(const struct bh_net *n, struct bh_err *err)
{
    char port[BH_NET_TEXT], address[BH_NET_TEXT];
    bh_net_port(n->lease, port);
    bh_net_address(n->lease, address);
    (void)!nft_printf(NULL, "delete element bridge bulkhead by_port { \"%s\" }\n", port);
    int rc = nft_printf(err,
                        "add element bridge bulkhead bound { \"%s\" . %s }\n"
                        "delete element bridge bulkhead bound { \"%s\" . %s }\n"
                        "add element inet bulkhead outside { %s }\n"
                        "delete element inet bulkhead outside { %s }\n"
                        "add set bridge bulkhead p-%s { type ifname; }\n"
                        "add element bridge bulkhead p-%s { \"%s\" }\n"
                        "delete element bridge bulkhead p-%s { \"%s\" }\n",
                        port, address, port, address, address, address, n->tenant, n->tenant, port, n->tenant,
                        port);
    /* Refused as a whole while another lease of the tenant still uses them. */
    if (rc == BH_OK && nft_printf(NULL,
                                  "add chain bridge bulkhead t-%s\n"
                                  "flush chain bridge bulkhead t-%s\n"
                                  "delete chain bridge bulkhead t-%s\n"
                                  "delete set bridge bulkhead p-%s\n",
                                  n->tenant, n->tenant, n->tenant, n->tenant) < 0)
        return BH_OK;
    return rc;
}

static bool has_tables(void)
{
    return RUN(-1, false, NULL, "nft", "list", "chain", "bridge", "bulkhead", "between") == BH_OK &&
           RUN(-1, false, NULL, "nft", "list", "chain", "inet", "bulkhead", "leave") == BH_OK;
}

static int write_tables(const struct bh_net *live, size_t n, struct bh_err *err)
{
    struct bh_buf script;
    bh_buf_init(&script, SCRIPT_MAX);
    bh_buf_str(&script, no_rules);
    bh_buf_str(&script, base_rules);
    for (size_t i = 0; i < n; i++)
        print_lease(&live[i], &script);
    const int rc = script.full ? bh_fail(err, BH_TOO_LARGE, "too many leases for the network's rules")
                               : nft(bh_buf_text(&script), err);
    bh_buf_fini(&script);
    return rc;
}

/* ---- bridge and ports ---- */

static int make_bridge(struct bh_err *err)
{
    struct link l;
    int rc = BH_OK;
    if (!find_link(BH_NET_BRIDGE, &l))
        rc = IP(err, "link", "add", BH_NET_BRIDGE, "address", BRIDGE_MAC, "type", "bridge");
    rc = rc < 0 ? rc : IP(err, "addr", "replace", (GATEWAY "/16"), "dev", BH_NET_BRIDGE);
    return rc < 0 ? rc : IP(err, "link", "set", "dev", BH_NET_BRIDGE, "up");
}

/* Rules first: a bridge is never without them. */
static int set_up(struct bh_err *err)
{
    int rc = has_tables() ? BH_OK : write_tables(NULL, 0, err);
    return rc < 0 ? rc : make_bridge(err);
}

int bh_net_set_up(struct bh_err *err)
{
    const int held = lock(err);
    if (held < 0)
        return held;
    const int rc = set_up(err);
    close(held);
    return rc;
}

static int check_outside(struct bh_err *err)
{
    char value = '0';
    const int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, &value, 1);
        close(fd);
    }
    return value == '1'
               ? BH_OK
               : bh_fail(
                     err, BH_REFUSED,
                     "this machine forwards nothing, so no lease can go outside: set net.ipv4.ip_forward=1");
}

static uint64_t between(uint64_t least, uint64_t v, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static int limit(const struct bh_net *n, const char *port, int netns, struct bh_err *err)
{
    char rate[40], burst[40], queue[40];
    if (n->bits_per_s == 0)
        return BH_OK;
    const uint64_t bytes = n->bits_per_s / 8;
    const uint64_t at_once = between(BURST_MIN, bytes / BURSTS_PER_S, BURST_MAX);
    const uint64_t waiting = between(BURST_MIN, bytes / QUEUES_PER_S, QUEUE_MAX);
    (void)snprintf(rate, sizeof(rate), "%" PRIu64 "bit", n->bits_per_s);
    (void)snprintf(burst, sizeof(burst), "%" PRIu64, at_once);
    (void)snprintf(queue, sizeof(queue), "%" PRIu64, at_once + waiting);
    int rc = RUN(-1, false, err, "tc", "qdisc", "replace", "dev", port, "root", "tbf", "rate", rate, "burst",
                 burst, "limit", queue);
    return rc < 0 ? rc
                  : INSIDE(netns, err, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate,
                           "burst", burst, "limit", queue);
}

static int make_port(const struct bh_net *n, const char *port, int netns, struct bh_err *err)
{
    char alias[ALIAS_MAX], address[BH_NET_TEXT + 4];
    alias_of(n, alias);
    bh_net_address(n->lease, address);
    (void)snprintf(address + strlen(address), sizeof(address) - strlen(address), "/16");
    int rc = RUN(netns, false, err, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0",
                 "netns", BH_RUN_NETNS_PATH);
    rc = rc < 0 ? rc : IP(err, "link", "set", "dev", port, "alias", alias);
    rc = rc < 0 ? rc : IP(err, "link", "set", "dev", port, "master", BH_NET_BRIDGE);
    rc = rc < 0 ? rc : add_rules(n, err);
    rc = rc < 0 ? rc : limit(n, port, netns, err);
    rc = rc < 0 ? rc : IP(err, "link", "set", "dev", port, "up");
    rc = rc < 0 ? rc : INSIDE(netns, err, "ip", "addr", "add", address, "dev", "eth0");
    rc = rc < 0 ? rc : INSIDE(netns, err, "ip", "link", "set", "dev", "eth0", "up");
    if (rc == BH_OK && n->may_go_outside)
        rc = INSIDE(netns, err, "ip", "route", "add", "default", "via", GATEWAY);
    return rc;
}

/* BH_CONFLICT: it is another living lease's. */
static int remove_port(const struct bh_net *n, const char *port, struct bh_err *err)
{
    struct link l;
    char alias[ALIAS_MAX];
    alias_of(n, alias);
    if (!find_link(port, &l))
        return BH_OK;
    if (*l.alias && !bh_str_eq(l.alias, alias))
        return bh_fail(err, BH_CONFLICT, "the network place of L%" PRIu64 " is taken (%s is '%.80s')",
                       n->lease, port, l.alias);
    int rc = IP(err, "link", "del", "dev", port);
    /* A container that has just ended takes its port with it. */
    return rc < 0 && !find_link(port, &l) ? BH_OK : rc;
}

static int attach(const struct bh_net *n, int netns, struct bh_err *err)
{
    char port[BH_NET_TEXT];
    bh_net_port(n->lease, port);
    int rc = set_up(err);
    rc = rc < 0 ? rc : remove_port(n, port, err);
    rc = rc < 0 ? rc : remove_rules(n, err);
    if (rc < 0)
        return rc;
    rc = make_port(n, port, netns, err);
    if (rc < 0) {
        (void)!remove_port(n, port, NULL);
        (void)!remove_rules(n, NULL);
    }
    return rc;
}

int bh_net_attach(const struct bh_net *n, pid_t pid, struct bh_err *err)
{
    char path[64];
    int rc = check(n, err);
    if (rc == BH_OK && n->may_go_outside)
        rc = check_outside(err);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    const int netns = open(path, O_RDONLY | O_CLOEXEC);
    if (netns < 0)
        return bh_fail(err, BH_NOT_FOUND, "the container's process %d is gone: %s", (int)pid,
                       strerror(errno));
    const int held = lock(err);
    if (held >= 0) {
        rc = attach(n, netns, err);
        close(held);
    } else
        rc = held;
    close(netns);
    return rc;
}

int bh_net_detach(const struct bh_net *n, struct bh_err *err)
{
    char port[BH_NET_TEXT];
    int rc = check(n, err);
    if (rc < 0)
        return rc;
    const int held = lock(err);
    if (held < 0)
        return held;
    bh_net_port(n->lease, port);
    rc = remove_port(n, port, err);
    if (rc == BH_OK && has_tables())
        rc = remove_rules(n, err);
    close(held);
    return rc == BH_CONFLICT ? BH_OK : rc; /* somebody else's by now: ours is gone */
}

/* ---- all of them ---- */

struct sweep {
    const struct bh_net *live;
    size_t n;
    BH_VEC(struct link) stray;
};

static void look_at_port(void *arg, const struct link *l)
{
    struct sweep *s = arg;
    char alias[ALIAS_MAX];
    if (!bh_str_starts(l->name, PORT))
        return;
    for (size_t i = 0; i < s->n; i++) {
        alias_of(&s->live[i], alias);
        if (bh_str_eq(l->alias, alias))
            return;
    }
    *bh_vec_push(&s->stray) = *l;
}

static int sweep(const struct bh_net *live, size_t n, struct bh_err *err)
{
    struct sweep s = {.live = live, .n = n};
    struct link bridge;
    if (!find_link(BH_NET_BRIDGE, &bridge))
        return BH_OK;
    int rc = list_links((const char *const[]){"ip", "-j", "link", "show", "master", BH_NET_BRIDGE, NULL},
                        look_at_port, &s, err);
    for (size_t i = 0; rc == BH_OK && i < s.stray.n; i++)
        if ((rc = IP(err, "link", "del", "dev", s.stray.at[i].name)) < 0 &&
            !find_link(s.stray.at[i].name, &bridge))
            rc = BH_OK;
    bh_vec_fini(&s.stray);
    return rc;
}

int bh_net_reconcile(const struct bh_net *live, size_t n, struct bh_err *err)
{
    int rc = n <= BH_NET_MAX ? BH_OK
                             : bh_fail(err, BH_TOO_LARGE, "more than %d leases with a network", BH_NET_MAX);
    for (size_t i = 0; rc == BH_OK && i < n; i++)
        rc = check(&live[i], err);
    if (rc < 0)
        return rc;
    const int held = lock(err);
    if (held < 0)
        return held;
    rc = write_tables(live, n, err);
    rc = rc < 0 ? rc : make_bridge(err);
    rc = rc < 0 ? rc : sweep(live, n, err);
    close(held);
    return rc;
}

int bh_net_tear_down(struct bh_err *err)
{
    struct link l;
    const int held = lock(err);
    if (held < 0)
        return held;
    int rc = sweep(NULL, 0, err);
    if (rc == BH_OK && find_link(BH_NET_BRIDGE, &l))
        rc = IP(err, "link", "del", "dev", BH_NET_BRIDGE);
    rc = rc < 0 ? rc : nft(no_rules, err);
    close(held);
    return rc;
}
