/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci.c - the container process state, read and judged.
 *
 * What comes is refused unless it is exactly what is understood: one descriptor, named as the specification names it,
 * that is a listener. Members that are not known are passed over (annotations, later versions); one that is
 * known may stand there once.
 */
#include "wire/oci.h"

#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 32, CHUNK = 16384 };

struct parse {
    struct bh_json_reader json;
    struct bh_oci_state *ret;
    size_t n_fds;
    bool has_listener;
    const char *wrong; /* with the content rather than the form; NULL: nothing */
};

static void read_pid(struct parse *p, uint32_t *ret)
{
    uint64_t v = 0;
    if (!bh_json_read_u64(&p->json, &v))
        return;
    if (v > INT32_MAX)
        p->wrong = "a pid is too large";
    *ret = (uint32_t)v;
}

static void read_fds(struct parse *p)
{
    char name[NAME_MAX_BYTES];
    if (!bh_json_read_open(&p->json, '['))
        return;
    while (bh_json_read_item(&p->json) && bh_json_read_str(&p->json, name, sizeof(name))) {
        p->n_fds++;
        p->has_listener = p->has_listener || bh_str_eq(name, "seccompFd");
    }
}

static void read_own_pid(struct parse *p)
{
    read_pid(p, &p->ret->pid);
}
static void read_init_pid(struct parse *p)
{
    read_pid(p, &p->ret->init_pid);
}
static void read_metadata(struct parse *p)
{
    (void)bh_json_read_str(&p->json, p->ret->metadata, sizeof(p->ret->metadata));
}
static void read_id(struct parse *p)
{
    (void)bh_json_read_str(&p->json, p->ret->id, sizeof(p->ret->id));
}
static void read_status(struct parse *p)
{
    (void)bh_json_read_str(&p->json, p->ret->status, sizeof(p->ret->status));
}
static void read_state(struct parse *p);

struct member {
    const char *key;
    void (*read)(struct parse *p);
    const char *missing; /* what is said when it is not there; NULL: it need not be */
};
static const struct member of_message[] = {
    {"fds", read_fds, "it has no fds"},
    {"pid", read_own_pid, "it has no pid"},
    {"metadata", read_metadata, NULL},
    {"state", read_state, "it has no state"},
};
static const struct member of_state[] = {
    {"id", read_id, "its state has no id"},
    {"status", read_status, "its state has no status"},
    {"pid", read_init_pid, NULL}, /* may be left out before there is one */
};

static void read_members(struct parse *p, const struct member *known, size_t n)
{
    char key[NAME_MAX_BYTES];
    unsigned seen = 0;
    if (!bh_json_read_open(&p->json, '{'))
        return;
    while (bh_json_read_member(&p->json, key, sizeof(key))) {
        size_t i = 0;
        while (i < n && !bh_str_eq(known[i].key, key))
            i++;
        if (i == n) {
            (void)bh_json_read_skip(&p->json);
            continue;
        }
        if (seen & 1u << i)
            p->wrong = "a member stands there twice";
        seen |= 1u << i;
        known[i].read(p);
    }
    for (size_t i = 0; i < n; i++)
        if (!(seen & 1u << i) && known[i].missing && !p->wrong)
            p->wrong = known[i].missing;
}

static void read_state(struct parse *p)
{
    read_members(p, of_state, BH_COUNT_OF(of_state));
}

int bh_oci_parse(const char *text, size_t n, struct bh_oci_state *ret, struct bh_err *err)
{
    struct parse p = {.ret = ret};
    *ret = (struct bh_oci_state){0};
    bh_json_read_init(&p.json, text, n);
    read_members(&p, of_message, BH_COUNT_OF(of_message));
    if (!bh_json_read_end(&p.json))
        return bh_fail(err, p.json.is_short ? BH_BUSY : BH_INVALID,
                       "the message is no JSON that is understood: %s", p.json.wrong);
    if (p.wrong)
        return bh_fail(err, BH_INVALID, "the message is no container process state: %s", p.wrong);
    if (p.n_fds != 1 || !p.has_listener)
        return bh_fail(err, BH_INVALID, "the message names %zu descriptors; one is understood, \"seccompFd\"",
                       p.n_fds);
    return BH_OK;
}

/* ---- as it comes ---- */

void bh_oci_init(struct bh_oci_message *m)
{
    *m = (struct bh_oci_message){0};
    bh_buf_init(&m->text, BH_OCI_MESSAGE_MAX);
}

void bh_oci_fini(struct bh_oci_message *m)
{
    for (size_t i = 0; i < m->n_fds; i++)
        close(m->fds[i]);
    m->n_fds = 0;
    bh_buf_fini(&m->text);
}

static bool is_listener(int fd)
{
    char path[64], to[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = '\0';
    return bh_str_eq(to, "anon_inode:seccomp notify");
}

/* A message that is not over ends in anything but the bracket: it need not be read from its beginning each time. */
static bool may_be_whole(const struct bh_buf *text)
{
    size_t n = text->n;
    while (n > 0 && bh_is_space(text->at[n - 1]))
        n--;
    return n > 0 && text->at[n - 1] == '}';
}

static int take(struct bh_oci_message *m, const char *bytes, size_t n, const int *fds, size_t n_fds,
                struct bh_err *err)
{
    if (m->n_fds + n_fds > BH_FDS_MAX) {
        for (size_t i = 0; i < n_fds; i++)
            close(fds[i]);
        return bh_fail(err, BH_INVALID, "the message has more descriptors than are understood");
    }
    for (size_t i = 0; i < n_fds; i++)
        m->fds[m->n_fds++] = fds[i];
    bh_buf_add(&m->text, bytes, n);
    return m->text.full
               ? bh_fail(err, BH_TOO_LARGE, "the message has more than %d KiB", BH_OCI_MESSAGE_MAX >> 10)
               : BH_OK;
}

static int finish(struct bh_oci_message *m, struct bh_oci_state *ret, int *ret_listener, struct bh_err *err)
{
    int rc = bh_oci_parse(m->text.at, m->text.n, ret, err);
    if (rc < 0)
        return rc;
    if (m->n_fds != 1)
        return bh_fail(err, BH_INVALID, "the message came with %zu descriptors, not with one", m->n_fds);
    if (!is_listener(m->fds[0]))
        return bh_fail(err, BH_INVALID, "the message's descriptor is no seccomp listener");
    *ret_listener = m->fds[0];
    m->n_fds = 0;
    return BH_OK;
}

int bh_oci_receive(struct bh_oci_message *m, int socket, struct bh_oci_state *ret, int *ret_listener,
                   struct bh_err *err)
{
    char bytes[CHUNK];
    for (;;) {
        int fds[BH_FDS_MAX];
        size_t n_fds;
        const ssize_t n = bh_fds_recv_some(socket, bytes, sizeof(bytes), fds, &n_fds, err);
        if (n < 0)
            return (int)n;
        if (n == 0) {
            if (m->text.n == 0 && m->n_fds == 0)
                return bh_fail(err, BH_NOT_FOUND, "the connection was closed without a word");
            const int rc = finish(m, ret, ret_listener, err);
            return rc == BH_BUSY ? bh_fail(err, BH_INVALID, "the message ends in the middle") : rc;
        }
        int rc = take(m, bytes, (size_t)n, fds, n_fds, err);
        if (rc == BH_OK && may_be_whole(&m->text))
            rc = finish(m, ret, ret_listener, err);
        else if (rc == BH_OK)
            continue;
        if (rc != BH_BUSY)
            return rc;
    }
}
