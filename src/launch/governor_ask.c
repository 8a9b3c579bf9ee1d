/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor_ask.c - what is asked of the governor, in the newest version of the wire that it takes, and asked again where it was killed.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "launch/governor.h"
#include "launch/governor_at.h"
#include "launch/patience.h"
#include "launch/warden.h"
#include "wire/fds.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPEAKS_MS = 300 }; /* to say which version it takes; who needs longer is asked later */

void bh_governor_all_fini(struct bh_governor_all *a)
{
    bh_vec_fini(&a->rows);
    bh_vec_fini(&a->pids);
    bh_vec_fini(&a->noise);
}

static int bad_answer(struct bh_err *err)
{
    return bh_fail(
        err, BH_CONFLICT,
        "the governor is of another version: one from before an upgrade ends with the last command "
        "it serves; if it does not, install all from one package");
}

/* Or it does not know such messages, and never answers. */
static int fail_ended(struct bh_err *err)
{
    return bh_fail(err, BH_BUSY,
                   "the governor ended before it answered; repeat the command (one that always does is of "
                   "another version)");
}

/* The next message, waited for. */
static ssize_t hear(int fd, int64_t until_ms, void *room, size_t size, struct bh_err *err)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    const int ready = poll(&at, 1, (int)bh_warden_left_ms(until_ms));
    const ssize_t n = ready == 1 ? recv(fd, room, size, MSG_TRUNC) : -1;
    if (ready == 0)
        return bh_governor_no_answer(err);
    if (n == 0 || (ready == 1 && n < 0 && errno == ECONNRESET))
        return fail_ended(err);
    if (n < 0)
        return bh_fail(err, BH_SYSTEM, "the governor: %s", strerrordesc_np(errno));
    return (size_t)n > size ? bad_answer(err) : n;
}

union said {
    uint32_t op;
    struct bh_govern_row row;
    struct bh_govern_pids pids;
    struct bh_govern_noise noise;
    struct bh_govern_answer answer;
};

/* What an older one did not send, nobody knows. */
static void fill_in(struct bh_govern_row *row, uint32_t version)
{
    if (version < 4) {
        row->sm_permille = row->dram_permille = row->pcie_permille = UINT32_MAX;
        row->power_permille = row->lowered_permille = UINT32_MAX;
    }
    if (version < 5) {
        row->own_rate_milli = UINT64_MAX;
        row->own_p50_us = row->own_p99_us = UINT32_MAX;
        row->own_garbage = 0;
    }
}

/* One of a list. false: there is no such message. */
static bool take(union said *m, size_t n, struct bh_governor_all *all)
{
    if (m->op == BH_GOVERN_ROW && n == bh_govern_row_bytes(all->version)) {
        fill_in(&m->row, all->version);
        m->row.name[sizeof(m->row.name) - 1] = '\0';
        *bh_vec_push(&all->rows) = m->row;
    } else if (n == sizeof(m->noise) && m->op == BH_GOVERN_NOISE) {
        m->noise.text[sizeof(m->noise.text) - 1] = '\0';
        *bh_vec_push(&all->noise) = m->noise;
    } else if (n == sizeof(m->pids) && m->op == BH_GOVERN_PIDS && m->pids.n <= BH_GOVERN_SOME_PIDS) {
        for (uint32_t i = 0; i < m->pids.n; i++)
            *bh_vec_push(&all->pids) = (struct bh_governor_pid){m->pids.lease, m->pids.pids[i]};
    } else {
        return false;
    }
    return true;
}

/* Sends an order and hears what comes until the answer. *ret_answered: there was one, so a failure is what it says. */
static int talk(int fd, const struct bh_govern_order *order, int64_t until_ms, struct bh_governor_all *all,
                bool *ret_answered, struct bh_err *err)
{
    union said m = {0};
    *ret_answered = false;
    int rc = bh_fds_send(fd, order, sizeof(*order), NULL, 0, NULL) < 0 ? fail_ended(err) : BH_OK;
    while (rc == BH_OK) {
        const ssize_t n = hear(fd, until_ms, &m, sizeof(m), err);
        if (n < 0)
            return (int)n;
        if (n == sizeof(m.answer) && m.op == BH_GOVERN_ANSWER) {
            m.answer.text[sizeof(m.answer.text) - 1] = '\0';
            *ret_answered = true;
            return m.answer.code < 0 ? bh_fail(err, (enum bh_code)m.answer.code, "%s", m.answer.text) : BH_OK;
        }
        if (!all || !take(&m, (size_t)n, all))
            rc = bad_answer(err);
    }
    return rc;
}

static void forget_since(const struct bh_governor_all *before, struct bh_governor_all *all)
{
    if (!all)
        return;
    all->rows.n = before->rows.n;
    all->pids.n = before->pids.n;
    all->noise.n = before->noise.n;
}

/* ret_fd NULL: the connection ends with the answer. */
static int ask_one(const struct bh_govern_order *order, int64_t until_ms, struct bh_governor_all *all,
                   int *ret_fd, bool *ret_answered, struct bh_err *err)
{
    int fd, rc = bh_governor_connect_until(until_ms, &fd, err);
    if (rc < 0)
        return rc;
    rc = talk(fd, order, until_ms, all, ret_answered, err);
    if (rc == BH_OK && ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return rc;
}

static int ask_once(const struct bh_govern_order *order, struct bh_patience *p, struct bh_governor_all *all,
                    int *ret_fd, bool *ret_answered, struct bh_err *err)
{
    const struct bh_governor_all before = all ? *all : (struct bh_governor_all){0};
    struct bh_governor_socket at;
    int rc;
    do {
        forget_since(&before, all);
        *ret_answered = false;
        rc = ask_one(order, p->until_ms, all, ret_fd, ret_answered, err);
        at = bh_governor_look();
        p->young = at.is_young;
    } while (bh_patience_again(p, rc, *ret_answered, at.is_there));
    const bool killed = p->lost && rc == BH_NOT_FOUND && !*ret_answered && at.is_there;
    return killed ? fail_ended(err) : rc;
}

/* It was not carried out, and an older version may be. (What a governor refuses for another reason it refuses again.) */
static bool next_older(int rc, bool answered, struct bh_govern_order *order)
{
    if (rc != BH_CONFLICT || !answered || order->version <= BH_GOVERN_WIRE_OLDEST)
        return false;
    order->version--;
    return true;
}

/* In the newest version that it takes, which is left in the order. */
static int ask(struct bh_govern_order *order, struct bh_patience *p, struct bh_governor_all *all, int *ret_fd,
               struct bh_err *err)
{
    const struct bh_governor_all before = all ? *all : (struct bh_governor_all){0};
    bool answered;
    int rc;
    order->version = BH_GOVERN_WIRE_VERSION;
    do {
        forget_since(&before, all);
        if (all)
            all->version = order->version;
        rc = ask_once(order, p, all, ret_fd, &answered, err);
    } while (next_older(rc, answered, order));
    return rc;
}

static int list(struct bh_governor_all *add, struct bh_patience *p, struct bh_err *err)
{
    struct bh_govern_order order = {.op = BH_GOVERN_LIST};
    const int rc = ask(&order, p, add, NULL, err);
    add->older = rc == BH_OK && order.version < BH_GOVERN_WIRE_VERSION;
    return rc;
}

int bh_governor_list(struct bh_governor_all *add, int patience_ms, struct bh_err *err)
{
    struct bh_patience p = bh_patience_of(patience_ms);
    return list(add, &p, err);
}

/* A name that is a number is taken for one. */
static int read_lease(const char *text, struct bh_govern_order *ret, struct bh_err *err)
{
    if (bh_uint_parse(text, UINT64_MAX, &ret->lease, NULL) == BH_OK && ret->lease)
        return BH_OK;
    ret->lease = 0;
    if (!*text || strlen(text) >= sizeof(ret->name))
        return bh_fail(err, BH_INVALID, "'%.80s' is neither a lease's number nor a name of one", text);
    memcpy(ret->name, text, strlen(text));
    return BH_OK;
}

static struct bh_govern_order order_of(uint64_t lease, enum bh_govern_what what)
{
    return (struct bh_govern_order){
        .op = BH_GOVERN_ORDER, .version = BH_GOVERN_WIRE_VERSION, .lease = lease, .what = (uint32_t)what};
}

int bh_governor_order(uint64_t lease, enum bh_govern_what what, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, what);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    return ask(&order, &p, NULL, NULL, err);
}

int bh_governor_order_by(const char *lease, enum bh_govern_what what, struct bh_err *err)
{
    struct bh_govern_order order = order_of(0, what);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    const int rc = read_lease(lease, &order, err);
    return rc < 0 ? rc : ask(&order, &p, NULL, NULL, err);
}

/* By an order that it cannot carry out: nobody has that number. */
uint32_t bh_governor_speaks(void)
{
    struct bh_govern_order order = order_of(UINT64_MAX, BH_GOVERN_RESUME);
    struct bh_patience p = bh_patience_of(SPEAKS_MS);
    struct bh_err err;
    return ask(&order, &p, NULL, NULL, &err) == BH_NOT_FOUND ? order.version : UINT32_MAX;
}

int bh_governor_keep(int fd, uint32_t version, uint64_t lease, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, BH_GOVERN_SUSPENDED);
    bool answered;
    order.version = version;
    return talk(fd, &order, bh_warden_now_ms() + BH_GOVERNOR_MS, NULL, &answered, err);
}

int bh_governor_hold(uint64_t lease, int *ret_fd, uint32_t *ret_version, struct bh_err *err)
{
    struct bh_govern_order order = order_of(lease, BH_GOVERN_SUSPEND);
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    const int rc = ask(&order, &p, NULL, ret_fd, err);
    if (rc == BH_OK)
        *ret_version = order.version;
    return rc;
}

static int pick(const struct bh_governor_all *all, const struct bh_govern_order *want,
                struct bh_governor_all *add, struct bh_err *err)
{
    uint64_t found = 0;
    for (size_t i = 0; i < all->rows.n; i++) {
        const struct bh_govern_row *r = &all->rows.at[i];
        if (want->lease ? r->lease != want->lease : !bh_str_eq(r->name, want->name))
            continue;
        if (found && found != r->lease)
            return bh_fail(err, BH_CONFLICT, "several leases are called '%s': give the number", want->name);
        found = r->lease;
        *bh_vec_push(&add->rows) = *r;
    }
    for (size_t i = 0; i < all->pids.n; i++)
        if (all->pids.at[i].lease == found)
            *bh_vec_push(&add->pids) = all->pids.at[i];
    return found ? BH_OK : bh_fail(err, BH_NOT_FOUND, "no such lease");
}

int bh_governor_find(const char *lease, struct bh_governor_all *add, struct bh_err *err)
{
    struct bh_patience p = bh_patience_of(BH_GOVERNOR_MS);
    struct bh_govern_order want = {0};
    int rc = read_lease(lease, &want, err);
    bool answered;
    if (rc < 0)
        return rc;
    do {
        struct bh_governor_all all = {0};
        rc = list(&all, &p, err);
        answered = rc == BH_OK;
        if (rc == BH_OK)
            rc = pick(&all, &want, add, err);
        bh_governor_all_fini(&all);
        p.young = bh_governor_look().is_young;
    } while (answered && bh_patience_again(&p, rc, answered, false));
    return answered && rc == BH_NOT_FOUND
               ? bh_fail(err, BH_NOT_FOUND, "no lease '%.80s'; bulkhead shares lists them", lease)
               : rc;
}
