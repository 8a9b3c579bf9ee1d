/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - what is done for each request: a table of who may ask, with what, and who answers.
 *
 * Sizes are checked here; what the bytes mean is the manager's business.
 */
#include "simgpu/serve/inside.h"

#include "base/buf.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    WORDS_MAX = 512,
    ORDER_BYTES = sizeof(struct bh_sim_mig_order),
    JOURNAL_CALLS_MAX = 1 << 20,
    SOON_NS = 1000
};
#define JOURNAL_BYTES_MAX ((size_t)256 << 20)

typedef int op_fn(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r);

/* A reply whose body is the n bytes at from. */
static int reply_with(struct bh_sim_request *r, const void *from, size_t n)
{
    memcpy(r->body, from, n);
    r->msg->n_body = (uint32_t)n;
    return 0;
}

static int do_hello(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_node_view view = {0};
    (void)c;
    if (r->msg->a != BH_SIM_WIRE_VERSION)
        return -EPROTONOSUPPORT;
    bh_sim_rm_view_node(s->rm, &view);
    return reply_with(r, &view, sizeof(view));
}

/* When the process began, as the kernel counts; 0: that cannot be seen from here. Its name may hold any byte. */
static uint64_t start_of(uint32_t pid)
{
    enum { FIELDS_AFTER_NAME = 20 };
    char path[32], text[1024];
    uint64_t ticks = 0;
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    int fd = pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *at = strrchr(text, ')');
    for (int i = 0; at && i < FIELDS_AFTER_NAME; i++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    at[1 + strcspn(at + 1, " \n")] = '\0';
    return bh_uint_parse(at + 1, UINT64_MAX, &ticks, NULL) == BH_OK ? ticks : 0;
}

static int do_open(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    if (r->msg->a > BH_FILE_OTHER || r->msg->b > UINT32_MAX)
        return -ENXIO;
    c->who.start = start_of(c->who.pid);
    r->reply_fd = bh_sim_file_add(s, &c->who, (uint32_t)r->msg->a, (uint32_t)r->msg->b);
    return r->reply_fd < 0 ? r->reply_fd : 0;
}

static int do_ioctl(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_msg *m = r->msg;
    const uint32_t n_arg = m->n_arg, n_params = m->n_params;
    if (m->a > UINT32_MAX || (n_params && n_arg % 8))
        return -EINVAL;
    /* Whoever was handed the file by its opener is a user of the card too. */
    if (r->file->pid != c->who.pid && c->linked != c->who.pid) {
        bh_sim_pid_hide(s, c->linked);
        bh_sim_pid_show(s, c->who.pid);
        c->linked = c->who.pid;
    }
    if (s->journaling && s->journal.calls.n >= JOURNAL_CALLS_MAX)
        bh_sim_rm_journal(s->rm, NULL);
    return bh_sim_rm_ioctl(s->rm, r->file->id, &c->who, (uint32_t)m->a, n_arg ? r->body : NULL, n_arg,
                           n_params ? r->body + n_arg : NULL, n_params);
}

static int do_map(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct bh_sim_map map = {r->msg->a, (uint32_t)r->msg->b, (uint32_t)r->msg->c};
    return bh_sim_rm_map(s->rm, r->file->id, &c->who, &map, &r->msg->a);
}

static int do_unmap(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    (void)c;
    return bh_sim_rm_unmap(s->rm, r->file->id, r->msg->a);
}

static int do_touch(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    (void)c;
    return r->msg->b > UINT32_MAX ? -EINVAL
                                  : bh_sim_rm_touch(s->rm, r->file->id, r->msg->a, (uint32_t)r->msg->b);
}

/* A copy of a few bytes is done before the reply is sent, where nobody has the card: who waits for it need not ask again. (That
 * the card was lost since then it learns with what it asks for next.) */
static int do_submit(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_msg *m = r->msg;
    const uint32_t client = (uint32_t)m->a, channel = (uint32_t)m->b;
    (void)c;
    m->b = 0;
    const int rc = bh_sim_rm_submit(s->rm, r->file->id, client, channel, m->c, &m->a);
    if (rc == 0 && m->c <= SOON_NS) {
        bh_sim_go_on(s);
        (void)bh_sim_rm_fence(s->rm, r->file->id, client, channel, &m->b); /* lost work is told by a wait */
    }
    return rc;
}

static int do_fence(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_msg *m = r->msg;
    (void)c;
    return bh_sim_rm_fence(s->rm, r->file->id, (uint32_t)m->a, (uint32_t)m->b, &m->a);
}

static int do_wait(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct bh_sim_msg *m = r->msg;
    uint64_t done;
    int rc = bh_sim_rm_fence(s->rm, r->file->id, (uint32_t)m->a, (uint32_t)m->b, &done);
    if (rc < 0 || done >= m->c)
        return rc;
    c->waiting = true;
    c->wait_file = r->file->id;
    c->wait_client = (uint32_t)m->a;
    c->wait_channel = (uint32_t)m->b;
    c->wait_fence = m->c;
    r->defer = true;
    return 0;
}

static int do_write(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct bh_sim_msg *m = r->msg;
    (void)c;
    return bh_sim_rm_write(s->rm, r->file->id, (uint32_t)m->a, (uint32_t)m->b, m->c, r->body, r->n_body);
}

static int do_read(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_msg *m = r->msg;
    (void)c;
    if (m->d > BH_SIM_BODY_MAX)
        return -EMSGSIZE;
    int rc = bh_sim_rm_read(s->rm, r->file->id, (uint32_t)m->a, (uint32_t)m->b, m->c, r->body, (size_t)m->d);
    if (rc >= 0)
        m->n_body = (uint32_t)m->d;
    return rc;
}

static int do_fill(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct bh_sim_msg *m = r->msg;
    (void)c;
    return bh_sim_rm_fill(s->rm, r->file->id, (uint32_t)m->a, (uint32_t)m->b, m->c, (uint8_t)m->e, m->d);
}

static int do_view(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_gpu_view view = {0};
    (void)c;
    if (r->msg->a > UINT32_MAX || !bh_sim_rm_view_gpu(s->rm, (uint32_t)r->msg->a, &view))
        return -ENXIO;
    return reply_with(r, &view, sizeof(view));
}

static int do_events(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    enum { MOST = 256 };
    struct bh_sim_event events[MOST];
    const uint64_t max = r->msg->b < MOST ? r->msg->b : MOST;
    (void)c;
    size_t n = bh_sim_rm_events(s->rm, r->msg->a, events, (size_t)max);
    return reply_with(r, events, n * sizeof(events[0]));
}

static int do_mig(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_mig_order order;
    memcpy(&order, r->body, sizeof(order));
    order.status = bh_sim_rm_mig(s->rm, &c->who, &order);
    return reply_with(r, &order, sizeof(order));
}

static int do_break(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    char words[WORDS_MAX + 1] = {0};
    struct bh_err err = {0};
    (void)c;
    memcpy(words, r->body, r->n_body);
    if (bh_sim_rm_break(s->rm, words, &err) == BH_OK)
        return 0;
    (void)reply_with(r, err.msg, strlen(err.msg));
    return -EINVAL;
}

static int do_held(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct bh_sim_held held = bh_sim_rm_held(s->rm);
    (void)c;
    return reply_with(r, &held, sizeof(held));
}

void bh_sim_journal_end(struct bh_sim_server *s)
{
    if (!s->journaling)
        return;
    bh_sim_rm_journal(s->rm, NULL);
    bh_recording_fini(&s->journal);
    s->journaling = false;
}

static int journal_save(const struct bh_sim_server *s)
{
    char path[4096];
    struct bh_buf text;
    int n = snprintf(path, sizeof(path), "%s/journal.rec", s->folder);
    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    if (s->journal.calls.n >= JOURNAL_CALLS_MAX)
        return -EFBIG;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    bh_buf_init(&text, JOURNAL_BYTES_MAX);
    bh_recording_write(&text, &s->journal);
    int rc = text.full ? -EFBIG : 0;
    for (size_t done = 0; rc == 0 && done < text.n;) {
        ssize_t w = write(fd, text.at + done, text.n - done);
        if (w >= 0)
            done += (size_t)w;
        else if (errno != EINTR)
            rc = -errno;
    }
    bh_buf_fini(&text);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc < 0)
        (void)unlink(path); /* half a recording is none */
    return rc;
}

static int do_journal(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    (void)c;
    if (r->msg->a == 0) {
        int rc = s->journaling ? journal_save(s) : -EINVAL;
        bh_sim_journal_end(s);
        return rc;
    }
    bh_sim_journal_end(s); /* a new one starts empty */
    s->journal = (struct bh_recording){0};
    s->journal.driver = bh_arena_str(&s->journal.arena, s->node->driver);
    s->journal.gpu = bh_arena_str(&s->journal.arena, s->node->n_gpus ? s->node->gpus[0].name : "none");
    s->journal.what =
        bh_arena_printf(&s->journal.arena, "what callers asked simulated node %s", s->node->scene);
    s->journaling = true;
    bh_sim_rm_journal(s->rm, &s->journal);
    return 0;
}

static int do_mapped(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    (void)c;
    r->msg->a = bh_sim_rm_mapped(s->rm, (uint32_t)r->msg->a);
    return 0;
}

static int do_what(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_what what;
    (void)c;
    int rc = bh_sim_rm_what(s->rm, r->file->id, &what);
    if (rc < 0)
        return rc;
    r->msg->a = what.kind;
    r->msg->b = what.minor;
    r->msg->c = what.managed_bytes;
    return 0;
}

static int do_busy(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    struct bh_sim_busy busy[BH_SIM_BUSY_MAX];
    (void)c;
    if (r->msg->a >= s->node->n_gpus)
        return -ENXIO;
    size_t n = bh_sim_rm_busy(s->rm, (uint32_t)r->msg->a, busy, BH_SIM_BUSY_MAX, &r->msg->a);
    return reply_with(r, busy, n * sizeof(busy[0]));
}

static int do_stop(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    (void)c;
    (void)r;
    s->stop = true;
    return 0;
}

static const struct op {
    op_fn *fn;
    bool file;                   /* about an open file */
    bool owner;                  /* only for the node's owner and root */
    bool call;                   /* a call of the driver, which may be slow */
    bool stirs;                  /* may end what somebody waits for */
    uint32_t body_min, body_max; /* bytes of the request */
} ops[BH_SIM_OP_N_] = {
    [BH_SIM_OP_HELLO] = {do_hello, .call = false},
    [BH_SIM_OP_OPEN] = {do_open, .call = true},
    [BH_SIM_OP_IOCTL] = {do_ioctl, .file = true, .call = true, .stirs = true},
    [BH_SIM_OP_MAP] = {do_map, .file = true, .call = true},
    [BH_SIM_OP_UNMAP] = {do_unmap, .file = true, .call = true},
    [BH_SIM_OP_TOUCH] = {do_touch, .file = true, .call = true},
    [BH_SIM_OP_SUBMIT] = {do_submit, .file = true, .call = true},
    [BH_SIM_OP_FENCE] = {do_fence, .file = true, .call = true},
    [BH_SIM_OP_WAIT] = {do_wait, .file = true, .call = true},
    [BH_SIM_OP_WRITE] = {do_write, .file = true, .call = true, .body_max = BH_SIM_BODY_MAX},
    [BH_SIM_OP_READ] = {do_read, .file = true, .call = true},
    [BH_SIM_OP_FILL] = {do_fill, .file = true, .call = true},
    [BH_SIM_OP_VIEW] = {do_view, .call = true},
    [BH_SIM_OP_EVENTS] = {do_events, .call = true},
    [BH_SIM_OP_MIG] = {do_mig, .call = true, .stirs = true, .body_min = ORDER_BYTES, .body_max = ORDER_BYTES},
    [BH_SIM_OP_BREAK] = {do_break, .owner = true, .stirs = true, .body_min = 1, .body_max = WORDS_MAX},
    [BH_SIM_OP_HELD] = {.fn = do_held},
    [BH_SIM_OP_JOURNAL] = {do_journal, .owner = true},
    [BH_SIM_OP_STOP] = {do_stop, .owner = true},
    [BH_SIM_OP_WHAT] = {do_what, .file = true},
    [BH_SIM_OP_MAPPED] = {.fn = do_mapped},
    [BH_SIM_OP_BUSY] = {do_busy, .owner = true, .call = true},
};

static int check(const struct op *op, const struct bh_sim_conn *c, const struct bh_sim_request *r)
{
    const struct bh_sim_msg *m = r->msg;
    if (!op)
        return -ENOSYS;
    if (op->owner && !c->who.admin)
        return -EPERM;
    if (m->n_body < op->body_min || m->n_body > op->body_max ||
        (op->fn != do_ioctl && (m->n_arg || m->n_params)))
        return -EINVAL;
    return op->file && !r->file ? -EBADF : 0;
}

void bh_sim_request_answer(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r)
{
    const struct op *op = r->msg->op < BH_SIM_OP_N_ ? &ops[r->msg->op] : NULL;
    int rc = check(op, c, r);
    r->slow = op && op->call;
    r->n_body = r->msg->n_body;
    r->msg->n_body = 0;
    if (rc == 0) {
        s->stirred = s->stirred || op->stirs;
        rc = op->fn(s, c, r);
    }
    if (rc < 0)
        r->msg->n_arg = r->msg->n_params = 0;
    r->msg->result = rc;
}
