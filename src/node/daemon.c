/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - the parts put together, the loop, and the end. */
#include "node/daemon.h"

#include "base/units.h"
#include "conf/file.h"
#include "host/limits.h"
#include "launch/warden.h"
#include "node/bill.h"
#include "node/daemon_chores.h"
#include "node/daemon_clock.h"
#include "node/decide.h"
#include "node/door.h"
#include "node/life.h"
#include "node/mech/mech.h"
#include "node/mech/scrub.h"
#include "node/note.h"
#include "node/ops.h"
#include "node/ponder.h"
#include "node/retain.h"
#include "node/rule.h"
#include "node/upkeep.h"
#include "node/watch/canary.h"
#include "node/watch/drift.h"
#include "store/db_cache.h"
#include "store/state_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum {
    TICK_US = 1000000,
    SHOWN_MS = 250,
    WHYS = 64, /* a tick */
    POLICY_MAX = 64 << 20,
    LOCK_TRIES = 30,
    LOCK_MS = 100,
    API_ROW = 4,
    API_MS = 10,
    /* Of what waits until nobody asks for anything; what is between the two is each lease's own (bh_daemon_idle). */
    TURN_FIRST = SD_EVENT_PRIORITY_IDLE - 1,
    TURN_LAST = SD_EVENT_PRIORITY_IDLE + 1,
    API_LAST = SD_EVENT_PRIORITY_IDLE + 2
};

uint64_t bh_daemon_now(struct bh_daemon *d)
{
    d->last_ms = bh_clock_now(&d->clock, bh_clock_read(), d->last_ms);
    return d->last_ms;
}

void bh_daemon_say(const struct bh_daemon *d, const char *fmt, ...)
{
    va_list ap;
    (void)d;
    va_start(ap, fmt);
    fputs("bulkheadd: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

void bh_daemon_due(struct bh_daemon *d)
{
    d->due = true;
    if (d->turn_source)
        (void)sd_event_source_set_enabled(d->turn_source, SD_EVENT_ONESHOT);
}

void bh_daemon_show(struct bh_daemon *d)
{
    struct bh_err err;
    if (bh_silicon_rows(&d->silicon, d->store, d->book.policy, &err) < 0)
        bh_daemon_say(d, "the GPUs cannot be shown: %s", err.msg);
    d->view.gpus = d->silicon.rows.at;
    d->view.n_gpus = d->silicon.rows.n;
    d->view.switches = d->silicon.switches.at;
    d->view.n_switches = d->silicon.switches.n;
    d->shown_of = bh_store_changes(d->store);
    d->shown_ms = bh_daemon_now(d);
}

int bh_daemon_take_policy(struct bh_daemon *d, struct bh_err *err)
{
    int rc = bh_rule_load(d, err);
    if (rc < 0)
        return rc;
    /* Whoever has something of the one before has it no longer. */
    d->view.policy = d->book.policy;
    d->view.policy_version = d->book.version;
    bh_upkeep_policy(d);
    bh_daemon_show(d);
    if (!d->broken_until_ms) /* else all is made anew soon, from what is written */
        rc = bh_decide_anew(d, err);
    if (rc < 0)
        return rc;
    if (d->api)
        bh_api_changed(d->api, BH_API_KIND_POLICY, d->book.version, NULL, "applied");
    return BH_OK;
}

/* ---- the loop ---- */

static void api_first(struct bh_daemon *d)
{
    if (d->api_row >= API_ROW && d->api_source)
        (void)sd_event_source_set_priority(d->api_source, SD_EVENT_PRIORITY_NORMAL);
    d->api_row = 0;
}

/* Who asks without end, or for much, must not keep everybody else's work from going on: after a few times it comes after that once. */
static void give_way(struct bh_daemon *d, uint64_t took_ms)
{
    if (d->api_row >= API_ROW) {
        api_first(d); /* nothing else was there */
        return;
    }
    d->api_row = took_ms >= API_MS ? API_ROW : d->api_row + 1;
    if (d->api_row == API_ROW)
        (void)sd_event_source_set_priority(d->api_source, API_LAST);
}

int bh_daemon_idle(struct bh_daemon *d, sd_event_source **ret, sd_event_handler_t then, void *arg)
{
    const int rc = sd_event_add_defer(d->loop, ret, then, arg);
    if (rc >= 0)
        (void)sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_IDLE);
    return rc;
}

void bh_daemon_had_turn(struct bh_daemon *d)
{
    api_first(d);
    (void)sd_event_source_set_priority(d->turn_source, TURN_FIRST);
}

static int on_turn(sd_event_source *source, void *arg)
{
    struct bh_daemon *d = arg;
    struct bh_err err;
    (void)source;
    api_first(d);
    (void)sd_event_source_set_priority(d->turn_source, TURN_LAST); /* until another had its turn */
    /* One commit a turn, so that nobody waits for two; but not for ever, where commands keep coming. */
    const bool commits = bh_store_in_transaction(d->store) || d->pending.n;
    (void)bh_ops_commit(d, &err); /* whoever asked is told */
    if (d->due && (!commits || d->put_off))
        bh_decide(d);
    d->put_off = commits && d->due;
    if (d->due && !d->broken_until_ms)
        (void)sd_event_source_set_enabled(d->turn_source, SD_EVENT_ONESHOT);
    return 0;
}

static int on_api(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_daemon *d = arg;
    (void)source;
    (void)fd;
    (void)events;
    const uint64_t now_ms = bh_daemon_now(d);
    if (now_ms > d->asked_ms + BH_DAEMON_ASKED_MS) /* what is known may be a minute old */
        d->look_deep = true;
    d->view.now_ms = d->asked_ms = now_ms;
    d->view.wall_ms = bh_clock_read().wall_ms;
    /* What was written since may be about a card: one daemon has one answer. */
    if (bh_store_changes(d->store) != d->shown_of && now_ms >= d->shown_ms + SHOWN_MS)
        bh_daemon_show(d);
    bh_api_run(d->api);
    if (d->pending.n || bh_store_in_transaction(d->store))
        bh_daemon_due(d);
    give_way(d, bh_daemon_now(d) - now_ms);
    return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *arg)
{
    struct bh_daemon *d = arg;
    d->whys_left = WHYS;
    bh_daemon_clock_tick(d);
    (void)sd_notify(0, "WATCHDOG=1");
    bh_daemon_chores_tick(d);
    (void)sd_event_source_set_time(source, usec + TICK_US);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
    struct bh_daemon *d = arg;
    (void)si;
    d->stopping = true;
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* ---- putting it together ---- */

static int make_folder(const char *path, mode_t mode, struct bh_err *err)
{
    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return BH_OK;
    return bh_fail(err, BH_SYSTEM, "%s: %s", path, strerror(errno));
}

static int make_folders(struct bh_daemon *d, struct bh_err *err)
{
    (void)snprintf(d->leases_dir, sizeof(d->leases_dir), "%s/leases", d->opt.state_dir);
    (void)snprintf(d->runs_dir, sizeof(d->runs_dir), "%s/leases", d->opt.run_dir);
    int rc = make_folder(d->opt.state_dir, 0711, err);
    if (rc == BH_OK)
        rc = make_folder(d->leases_dir, 0711, err);
    if (rc == BH_OK)
        rc = make_folder(d->opt.run_dir, 0755, err);
    return rc == BH_OK ? make_folder(d->runs_dir, 0711, err) : rc;
}

static int open_store(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const struct bh_store_options store = {.mode = BH_STORE_WRITE};
    const struct bh_audit_options audit = {.key_path =
                                               bh_arena_printf(&arena, "%s/audit.key", d->opt.state_dir),
                                           .component = "bulkheadd",
                                           .version = BH_VERSION,
                                           .replace_lost_key = d->opt.replace_audit_key};
    const char *path = bh_arena_printf(&arena, "%s/bulkhead.db", d->opt.state_dir);
    int rc = BH_BUSY;
    /* Children of a daemon that was killed may have its lock for a moment longer. */
    for (int i = 0; rc == BH_BUSY && i < LOCK_TRIES; i++) {
        if (i)
            (void)poll(NULL, 0, LOCK_MS);
        rc = bh_store_open(path, &store, &d->store, err);
    }
    if (rc == BH_OK)
        rc = bh_audit_open(d->store, &audit, &d->audit, err);
    bh_arena_fini(&arena);
    return rc;
}

static int read_silicon(struct bh_daemon *d, struct bh_err *err)
{
    int rc = bh_silicon_read(&d->silicon, d->opt.node_name, err);
    if (rc == BH_OK)
        rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    rc = bh_silicon_record(&d->silicon, d->store, bh_daemon_now(d), err);
    if (rc == BH_OK)
        rc = bh_store_commit(d->store, err);
    else
        bh_store_rollback(d->store);
    if (rc < 0)
        return rc;
    const struct bh_fleet *fleet = bh_silicon_fleet(&d->silicon);
    (void)snprintf(d->node, sizeof(d->node), "%s", fleet->nodes.at[0].name);
    d->view.fleet = fleet;
    d->view.node = d->node;
    d->view.simulated = d->silicon.snapshot.simulated;
    d->view.driver = d->silicon.snapshot.driver;
    return BH_OK;
}

/* The file that was named on the command line, where it is not what is in force already. */
static int take_policy_file(struct bh_daemon *d, struct bh_err *err)
{
    BH_AUTOFREE char *text = NULL;
    struct bh_arena arena = {0};
    struct bh_store_policy row;
    struct bh_api_diff findings = {0};
    struct bh_rule_book book;
    size_t n = 0;
    uint64_t version;
    if (!d->opt.policy_path)
        return BH_OK;
    int rc = bh_file_read(d->opt.policy_path, POLICY_MAX, &text, &n, err);
    if (rc == BH_OK && bh_store_policy_get(d->store, &arena, 0, &row, err) == BH_OK && row.n == n &&
        memcmp(row.text, text, n) == 0) {
        bh_arena_fini(&arena);
        return BH_OK;
    }
    if (rc == BH_OK)
        rc = bh_rule_read(d, text, n, &arena, &book, &findings, err);
    for (size_t i = 0; i < findings.findings.n; i++)
        bh_daemon_say(d, "%s: %s", d->opt.policy_path, findings.findings.at[i]);
    bh_vec_fini(&findings.findings);
    bh_arena_fini(&arena);
    if (rc < 0)
        return rc;
    bh_rule_fini(&book);
    rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    rc = bh_rule_store(d, "service:bulkheadd", "given at the start", text, n, &version, err);
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}

static int listen_unix(const struct bh_daemon *d, int *ret_fd, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const int rc = bh_door_unix(bh_arena_printf(&arena, "%s/api.sock", d->opt.run_dir), ret_fd, err);
    bh_arena_fini(&arena);
    return rc;
}

/* The certificate that was given, or one that is good for this host and where it listens. */
static int read_certificate(struct bh_daemon *d, const struct bh_door_at *at, struct bh_err *err)
{
    struct bh_arena arena = {0};
    char host[256] = "localhost";
    const uint64_t now_ms = bh_clock_read().wall_ms;
    int rc;
    if (gethostname(host, sizeof(host)) < 0 || !memchr(host, '\0', sizeof(host)))
        (void)snprintf(host, sizeof(host), "localhost");
    if (d->opt.cert_path)
        rc = bh_cert_load(d->opt.cert_path, d->opt.key_path, &d->cert, err);
    else
        rc = bh_cert_own(bh_arena_printf(&arena, "%s/https.pem", d->opt.state_dir), host,
                         at->is_any ? NULL : at->address, now_ms, &d->cert, err);
    bh_arena_fini(&arena);
    if (rc == BH_OK && d->cert.until_ms < now_ms)
        bh_daemon_say(d, "the certificate %s has run out: nobody who checks it will connect",
                      d->opt.cert_path);
    return rc;
}

static int listen_https(struct bh_daemon *d, struct bh_api_config *config, struct bh_err *err)
{
    struct bh_door_at at;
    if (!d->opt.listen)
        return BH_OK;
    int rc = bh_door_parse(d->opt.listen, &at, err);
    if (rc == BH_OK)
        rc = read_certificate(d, &at, err);
    if (rc == BH_OK)
        rc = bh_door_tcp(&at, &config->tcp_fd, err);
    if (rc < 0)
        return rc;
    config->cert_pem = d->cert.cert_pem;
    config->key_pem = d->cert.key_pem;
    bh_daemon_say(d, "HTTPS on https://%s%s%s:%u/, certificate SHA-256 %s%s", at.is_v6 ? "[" : "", at.address,
                  at.is_v6 ? "]" : "", at.port, d->cert.print, d->cert.made ? " (made now)" : "");
    return BH_OK;
}

static int start_api(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_api_config config = {.unix_fd = -1,
                                   .tcp_fd = -1,
                                   .store = d->store,
                                   .ops = &d->ops,
                                   .view = &d->view,
                                   .log_dir = d->leases_dir};
    bh_api_limits_init(&config.limits);
    bh_ops_init(d);
    int rc = listen_unix(d, &config.unix_fd, err);
    if (rc == BH_OK)
        rc = listen_https(d, &config, err);
    if (rc == BH_OK)
        rc = bh_api_start(&config, &d->api, err);
    if (rc < 0)
        return rc;
    if (sd_event_add_io(d->loop, &d->api_source, bh_api_fd(d->api), EPOLLIN, on_api, d) < 0)
        return bh_fail(err, BH_SYSTEM, "the loop takes no more");
    return BH_OK;
}

static int make_loop(struct bh_daemon *d, struct bh_err *err)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    uint64_t now;
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < BH_COUNT_OF(ends); i++)
        sigaddset(&blocked, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    int rc = sd_event_default(&d->loop);
    for (size_t i = 0; rc >= 0 && i < BH_COUNT_OF(ends); i++)
        rc = sd_event_add_signal(d->loop, NULL, ends[i], on_signal, d);
    if (rc >= 0)
        rc = sd_event_add_defer(d->loop, &d->turn_source, on_turn, d);
    if (rc >= 0) /* after all that came in in one turn */
        rc = sd_event_source_set_priority(d->turn_source, TURN_FIRST);
    if (rc >= 0)
        rc = sd_event_now(d->loop, CLOCK_MONOTONIC, &now);
    if (rc >= 0)
        rc = sd_event_add_time(d->loop, &d->tick_source, CLOCK_MONOTONIC, now + TICK_US, 50000, on_tick, d);
    return rc < 0 ? bh_fail(err, BH_SYSTEM, "the event loop: %s", strerror(-rc)) : BH_OK;
}

static int find_programs(struct bh_daemon *d, struct bh_err *err)
{
    int rc = bh_keeper_program(d->keeper, sizeof(d->keeper), err);
    if (rc == BH_OK)
        rc = bh_scrub_program(d->scrubber, sizeof(d->scrubber), err);
    return rc;
}

/* Where the machine is another one than it was, what runs goes on and what ends is cleared. */
static int take_up_policy(struct bh_daemon *d, struct bh_err *err)
{
    const int rc = bh_daemon_take_policy(d, err);
    if (rc != BH_REFUSED)
        return rc;
    bh_daemon_say(d, "nothing is given away, for the policy does not hold here any more: %s", err->msg);
    return BH_OK;
}

int bh_daemon_start(struct bh_daemon *d, struct bh_err *err)
{
    bool shares;
    bh_limits_raise_files(); /* one for each lease and each caller */
    bh_store_cache_apart();  /* a process is begun for each lease, and more */
    int rc = make_folders(d, err);
    if (rc == BH_OK)
        rc = find_programs(d, err);
    if (rc == BH_OK)
        rc = open_store(d, err);
    if (rc == BH_OK)
        rc = bh_daemon_clock_take_up(d, err);
    if (rc == BH_OK)
        rc = make_loop(d, err);
    if (rc < 0)
        return rc;
    d->has_cgroups = bh_cgroups_open("", &d->cgroups, err) == BH_OK;
    if (!d->has_cgroups)
        bh_daemon_say(d, "%s: tenants' processes cannot be limited or found again", err->msg);
    rc = bh_tier_find(&d->tier, d->has_cgroups ? &d->cgroups : NULL, d->opt.run_dir, err);
    if (rc == BH_OK)
        rc = bh_mech_find(d, err);
    if (rc < 0)
        return rc;
    d->view.version = BH_VERSION;
    d->view.started_ms = bh_daemon_now(d);
    rc = read_silicon(d, err);
    if (rc == BH_OK)
        rc = bh_drift_driver(d, err);
    if (rc == BH_OK)
        rc = bh_canary_driver(d, &shares, err);
    d->shares = rc == BH_OK && shares;
    if (rc == BH_OK)
        rc = take_policy_file(d, err);
    if (rc == BH_OK)
        rc = start_api(d, err);
    if (rc == BH_OK)
        rc = bh_life_load(d, err);
    if (rc == BH_OK)
        rc = take_up_policy(d, err);
    if (rc == BH_OK)
        bh_mech_restore(d);
    if (rc == BH_OK && bh_tier_reconcile(d, err) < 0)
        bh_daemon_say(d, "networks of containers may not be as they should: %s", err->msg);
    if (rc == BH_OK) {
        bh_drift_start(d);
        bh_canary_cards(d);
        bh_life_take_up(d);
        bh_health_tick(d);
        bh_watch_looked(d, &d->silicon.snapshot);
        bh_daemon_show(d);
        bh_meter_start(d);
        bh_note_node(d, true);
        d->started = true;
    }
    return rc;
}

int bh_daemon_serve(struct bh_daemon *d, struct bh_err *err)
{
    (void)sd_notifyf(0, "READY=1\nSTATUS=%zu GPUs%s", d->view.n_gpus, d->view.simulated ? ", simulated" : "");
    const int rc = sd_event_loop(d->loop);
    (void)sd_notify(0, "STOPPING=1");
    return rc < 0 ? bh_fail(err, BH_SYSTEM, "the event loop: %s", strerror(-rc)) : BH_OK;
}

/* Work goes on: keepers keep it, and the next daemon finds them. */
void bh_daemon_fini(struct bh_daemon *d)
{
    struct bh_err err;
    if (d->store && d->api)
        (void)bh_ops_commit(d, &err);
    bh_ponder_fini(d);
    bh_bill_fini(d);
    bh_retain_fini(d);
    if (d->started)
        bh_note_node(d, false);
    for (size_t i = 0; i < d->owed.rows.n; i++)
        bh_daemon_say(d, "never reached the log: %s of %s", bh_audit_names[d->owed.rows.at[i].e.event],
                      d->owed.rows.at[i].e.sub ? d->owed.rows.at[i].e.sub : "somebody");
    bh_owed_fini(&d->owed);
    bh_idmap_fini(&d->came_in);
    bh_life_free_all(d);
    bh_health_fini(d);
    bh_sleep_fini(d);
    d->look_source = sd_event_source_disable_unref(d->look_source);
    d->api_source = sd_event_source_disable_unref(d->api_source);
    bh_api_free(d->api);
    bh_cert_fini(&d->cert);
    bh_vec_fini(&d->pending);
    bh_mech_fini(d);
    bh_meter_fini(&d->meter);
    bh_watch_fini(&d->watch);
    bh_checks_fini(&d->checks);
    if (d->audit && bh_audit_stop(d->audit, &err) < 0)
        bh_daemon_say(d, "the audit log was not closed: %s", err.msg);
    bh_audit_close(d->audit);
    bh_sched_free(d->sched);
    bh_rule_fini(&d->book);
    bh_store_close(d->store);
    bh_silicon_fini(&d->silicon);
    if (d->has_cgroups)
        bh_cgroups_close(&d->cgroups);
    sd_event_source_unref(d->turn_source);
    sd_event_source_unref(d->tick_source);
    sd_event_source_disable_unref(d->chore_source);
    sd_event_unref(d->loop);
}
