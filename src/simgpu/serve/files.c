/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - open device files, and who has them.
 *
 * A descriptor that comes along with a request is known by its socket's cookie, a number the kernel never gives
 * twice. The manager hears of a close when the last duplicate of the caller's end is gone, wherever that was.
 */
#include "simgpu/serve/inside.h"

#include "simgpu/drv.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64, KEPT_FOR_ADMIN = 8 };

static struct bh_sim_file **bucket(struct bh_sim_server *s, uint64_t cookie)
{
    return &s->buckets[cookie % BH_SIM_FILE_BUCKETS];
}

struct bh_sim_file *bh_sim_file_find(struct bh_sim_server *s, int fd)
{
    uint64_t cookie = fd >= 0 ? bh_sim_socket_cookie(fd) : 0;
    struct bh_sim_file *f = cookie ? *bucket(s, cookie) : NULL;
    while (f && f->cookie != cookie)
        f = f->next;
    return f;
}

bool bh_sim_has_room(const struct bh_sim_server *s, const struct bh_sim_caller *who, size_t n)
{
    size_t used = s->n_conns + s->n_files + s->n_held + n;
    return used + (who->admin ? 0 : KEPT_FOR_ADMIN) <= s->max_fds;
}

/* The tree stands for the machine, but pids are the machine's own: a link leads from one to the other. */
static void link_pid(struct bh_sim_server *s, uint32_t pid, bool on)
{
    char name[16], to[32];
    if (s->proc_dir < 0)
        return;
    (void)snprintf(name, sizeof(name), "%u", pid);
    (void)snprintf(to, sizeof(to), "/proc/%u", pid);
    /* Only a process's name depends on it, so it may fail. */
    if (on)
        (void)!symlinkat(to, s->proc_dir, name);
    else
        (void)!unlinkat(s->proc_dir, name, 0);
}

void bh_sim_pid_show(struct bh_sim_server *s, uint32_t pid)
{
    if (pid == 0) /* of a pid namespace that cannot be seen from here */
        return;
    for (size_t i = 0; i < s->shown.n; i++)
        if (s->shown.at[i].pid == pid) {
            s->shown.at[i].count++;
            return;
        }
    *bh_vec_push(&s->shown) = (struct bh_sim_shown){.pid = pid, .count = 1};
    link_pid(s, pid, true);
}

void bh_sim_pid_hide(struct bh_sim_server *s, uint32_t pid)
{
    for (size_t i = 0; i < s->shown.n; i++)
        if (s->shown.at[i].pid == pid && --s->shown.at[i].count == 0) {
            s->shown.at[i] = s->shown.at[--s->shown.n];
            link_pid(s, pid, false);
            return;
        }
}

static void file_close(struct bh_sim_server *s, struct bh_sim_file *f)
{
    struct bh_sim_file **at = bucket(s, f->cookie);
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    bh_sim_rm_close(s->rm, f->id);
    s->stirred = true; /* whoever waits for work of this file will not see it done */
    bh_sim_pid_hide(s, f->pid);
    close(f->watch.fd);
    s->n_files--;
    free(f);
}

static void on_gone(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events)
{
    (void)events;
    file_close(s, (struct bh_sim_file *)w); /* watch is its first member */
}

static void close_both(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

int bh_sim_file_add(struct bh_sim_server *s, const struct bh_sim_caller *who, uint32_t kind, uint32_t minor)
{
    int pair[2];
    if (!bh_sim_has_room(s, who, 2))
        return -EMFILE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    /* Nothing is ever read from our end, so nothing may be put there: a descriptor that was, its own above all, would
     * live as long as we do. */
    (void)shutdown(pair[0], SHUT_RD);
    int64_t id = bh_sim_rm_open(s->rm, (enum bh_call_file)kind, minor, who);
    if (id <= 0) {
        close_both(pair);
        return id < 0 ? (int)id : -ENXIO;
    }
    struct bh_sim_file *f = bh_alloc(1, sizeof(*f));
    *f = (struct bh_sim_file){.watch = {on_gone, pair[0]},
                              .id = (uint32_t)id,
                              .cookie = bh_sim_socket_cookie(pair[1]),
                              .pid = who->pid};
    /* No event is asked for: a hang-up is always told. */
    struct epoll_event ev = {.data.ptr = &f->watch};
    if (f->cookie == 0 || epoll_ctl(s->ep_gone, EPOLL_CTL_ADD, pair[0], &ev) < 0) {
        close_both(pair);
        bh_sim_rm_close(s->rm, f->id);
        free(f);
        return -ENOMEM;
    }
    struct bh_sim_file **b = bucket(s, f->cookie);
    f->next = *b;
    *b = f;
    s->n_files++;
    bh_sim_pid_show(s, f->pid);
    return pair[1];
}

void bh_sim_reap(struct bh_sim_server *s)
{
    struct epoll_event ev[BATCH];
    int n;
    do {
        n = epoll_wait(s->ep_gone, ev, BATCH, 0);
        for (int i = 0; i < n; i++) {
            struct bh_sim_watch *w = ev[i].data.ptr;
            w->on(s, w, ev[i].events);
        }
    } while (n > 0); /* a caller that is gone may have had a file on its way, which is gone too then */
}

void bh_sim_files_close_all(struct bh_sim_server *s)
{
    for (size_t i = 0; i < BH_SIM_FILE_BUCKETS; i++)
        for (struct bh_sim_file *f = s->buckets[i], *next; f; f = next) {
            next = f->next;
            file_close(s, f);
        }
}
