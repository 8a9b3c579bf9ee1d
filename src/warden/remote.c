/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c - a tenant's memory and descriptors. */
#include "warden/remote.h"

#include "base/units.h"
#include "warden/peek.h"
#include "warden/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef PIDFD_THREAD /* 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

enum {
    CAP_SYS_ADMIN_BIT = 21,
    STATUS_MAX = 4096,
    ASKED_MOST = 8, /* threads that end one after the other: the next sweep asks again */
};

/* ---- memory ---- */

int bh_remote_read(uint32_t tid, uint64_t at, void *to, size_t n)
{
    const struct iovec local = {to, n}, remote = {(void *)(uintptr_t)at, n};
    ssize_t got = process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0);
    return got < 0 ? -errno : (size_t)got == n ? 0 : -EFAULT;
}

int bh_remote_write(uint32_t tid, const struct bh_remote_piece *pieces, size_t n)
{
    enum { MOST = 2 };
    struct iovec local[MOST], remote[MOST];
    size_t all = 0;
    for (size_t i = 0; i < n && i < MOST; i++) {
        /* An iovec has no const; what is sent is only read. */
        local[i] = (struct iovec){(void *)(uintptr_t)pieces[i].from, pieces[i].n};
        remote[i] = (struct iovec){(void *)(uintptr_t)pieces[i].at, pieces[i].n};
        all += pieces[i].n;
    }
    ssize_t put = process_vm_writev((pid_t)tid, local, n, remote, n, 0);
    return put < 0 ? -errno : (size_t)put == all ? 0 : -EFAULT;
}

/* ---- processes ---- */

/* Same open file? The kernel compares without telling what it is. */
static bool same_file(pid_t a, int fd_a, pid_t b, int fd_b)
{
    return syscall(SYS_kcmp, a, b, KCMP_FILE, fd_a, fd_b) == 0;
}

static bool read_status(uint32_t tid, char text[STATUS_MAX])
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, STATUS_MAX - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The which-th number of the line `\nname:`; false: there is none. */
static bool field(const char *text, const char *name, unsigned base, unsigned which, uint64_t *ret)
{
    const char *at = strstr(text, name);
    if (!at)
        return false;
    at += strlen(name);
    for (;;) {
        uint64_t v = 0;
        bool any = false;
        while (*at == ' ' || *at == '\t')
            at++;
        for (;; at++) {
            unsigned d = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                                                    : base;
            if (d >= base)
                break;
            v = v * base + d;
            any = true;
        }
        if (!any)
            return false;
        *ret = v;
        if (which-- == 0)
            return true;
    }
}

/* How many files a tenant has is its own choice. Without one of its own left the warden could not look at anybody any more. */
static int fds_for_tenants(void)
{
    enum { OWN = 64 };
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) < 0 || most.rlim_cur > INT_MAX)
        return INT_MAX;
    return most.rlim_cur > 2 * OWN ? (int)most.rlim_cur - OWN : (int)most.rlim_cur / 2;
}

int bh_remote_init(struct bh_remote *r, const struct bh_driver *driver, const struct bh_remote_hear *hear,
                   void *arg, struct bh_err *err)
{
    char text[STATUS_MAX];
    *r = (struct bh_remote){.driver = driver, .hear = *hear, .arg = arg, .self = getpid()};
    r->ordered = true;
    r->fds_most = fds_for_tenants();
    (void)(read_status((uint32_t)r->self, text) && field(text, "\nSeccomp_filters:", 10, 0, &r->filters));
    if (syscall(SYS_kcmp, r->self, r->self, KCMP_VM, 0, 0) != 0)
        return bh_fail(
            err, BH_REFUSED,
            "this kernel does not compare open files (kcmp: %s), which the memory cap needs; CONFIG_KCMP is "
            "missing, or a container's seccomp profile forbids it",
            strerror(errno));
    return BH_OK;
}

void bh_remote_fini(struct bh_remote *r)
{
    r->ending = true;
    while (r->processes.n)
        bh_remote_forget(r, r->processes.at[r->processes.n - 1]);
    bh_remote_close_lost(r);
    bh_vec_fini(&r->processes);
    bh_vec_fini(&r->files);
    bh_vec_fini(&r->order);
}

/* Capabilities in a user namespace of its own are none on the machine. */
static bool same_user_namespace(uint32_t pid)
{
    struct stat mine, its;
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%u/ns/user", pid);
    return stat("/proc/self/ns/user", &mine) == 0 && stat(path, &its) == 0 && mine.st_ino == its.st_ino &&
           mine.st_dev == its.st_dev;
}

static void read_rights(struct bh_remote_process *p)
{
    char text[STATUS_MAX];
    uint64_t uid, caps;
    p->admin = false;
    p->uid = (uid_t)-1; /* nobody */
    if (!read_status(p->pid, text) || !field(text, "\nUid:", 10, 1, &uid) ||
        !field(text, "\nCapEff:", 16, 0, &caps))
        return;
    p->uid = (uid_t)uid;
    p->admin = (caps >> CAP_SYS_ADMIN_BIT & 1) && same_user_namespace(p->pid);
}

static struct bh_remote_process *find(const struct bh_remote *r, uint32_t pid)
{
    for (size_t i = 0; i < r->processes.n; i++)
        if (r->processes.at[i]->pid == pid)
            return r->processes.at[i];
    return NULL;
}

static struct bh_remote_process *learn(struct bh_remote *r, uint32_t tid)
{
    char text[STATUS_MAX];
    uint64_t pid;
    if (!read_status(tid, text) || !field(text, "\nTgid:", 10, 0, &pid))
        return NULL;
    struct bh_remote_process *p = find(r, (uint32_t)pid);
    if (p)
        return p;
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (pidfd >= r->fds_most) {
        close(pidfd);
        return NULL;
    }
    if (pidfd < 0)
        return NULL;
    p = bh_alloc(1, sizeof(*p));
    *p = (struct bh_remote_process){.pid = (uint32_t)pid, .pidfd = pidfd, .rights_age = r->age};
    read_rights(p);
    *bh_vec_push(&r->processes) = p;
    r->hear.learned(r->arg, p);
    return p;
}

int64_t bh_remote_tick_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct bh_remote_process *bh_remote_process(struct bh_remote *r, uint32_t tid)
{
    const size_t at = tid % BH_COUNT_OF(r->threads);
    struct bh_remote_process *p;
    const int64_t now_ns = bh_remote_tick_ns();
    /* Signal 0 reaches nobody, and says whether the thread is still of that process. */
    if (r->threads[at].tid == tid && (r->threads[at].proved_ns == now_ns ||
                                      syscall(SYS_tgkill, r->threads[at].process->pid, tid, 0) == 0)) {
        p = r->threads[at].process;
    } else {
        p = learn(r, tid);
        if (!p)
            return NULL;
        r->threads[at].tid = tid;
        r->threads[at].process = p;
    }
    r->threads[at].proved_ns = now_ns;
    /* Reading it takes longer than all the rest of a call, so not for those who do not call. */
    if (p->rights_age != r->age && (p->admin || p->uid == (uid_t)-1))
        read_rights(p);
    p->rights_age = r->age;
    return p;
}

/* ---- open files, in the kernel's order ---- */

static const uint32_t NOBODYS = UINT32_MAX;

/*
 * The kernel says of two open files also which one comes first, by an order of its own that does not change. So among
 * hundreds one is found by a few questions. Where it once did not answer, the order is not relied on again.
 */
static uint32_t order_find(struct bh_remote *r, int own, size_t *ret_place)
{
    enum { SAME, BEFORE, AFTER };
    size_t from = 0, to = r->order.n;
    while (r->ordered && from < to) {
        const size_t middle = from + (to - from) / 2;
        const long is =
            syscall(SYS_kcmp, r->self, r->self, KCMP_FILE, own, r->files.at[r->order.at[middle]].fd);
        if (is == SAME)
            return r->order.at[middle];
        r->ordered = is == BEFORE || is == AFTER;
        if (is == BEFORE)
            to = middle;
        else
            from = middle + 1;
    }
    *ret_place = r->ordered ? from : r->order.n;
    for (size_t i = 0; !r->ordered && i < r->order.n; i++)
        if (same_file(r->self, own, r->self, r->files.at[r->order.at[i]].fd))
            return r->order.at[i];
    return NOBODYS;
}

static void order_add(struct bh_remote *r, size_t place, uint32_t file)
{
    (void)bh_vec_push(&r->order);
    memmove(&r->order.at[place + 1], &r->order.at[place], (r->order.n - 1 - place) * sizeof(r->order.at[0]));
    r->order.at[place] = file;
}

static void order_remove(struct bh_remote *r, uint32_t file)
{
    size_t i = 0;
    while (r->order.at[i] != file)
        i++;
    r->order.n--;
    memmove(&r->order.at[i], &r->order.at[i + 1], (r->order.n - i) * sizeof(r->order.at[0]));
}

/* ---- descriptors ---- */

/* Of two files that are known under one number one is no longer there: the sweep will find out which. */
static bool has_slot(const struct bh_remote_process *p, int fd, uint32_t file)
{
    for (size_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i].fd == fd && p->slots.at[i].file == file)
            return true;
    return false;
}

static void add_slot(struct bh_remote *r, struct bh_remote_process *p, int fd, uint32_t file)
{
    *bh_vec_push(&p->slots) = (struct bh_remote_slot){.fd = fd, .file = file};
    if (r->hear.held)
        r->hear.held(r->arg, p, fd, &r->files.at[file]);
}

/*
 * Somebody who may have a file without ever having asked. Whoever is another user than those who did is none of the lease's: a
 * tenant may send its files to anybody, and must not decide by that who is counted and ended with it. (What such a
 * stranger keeps stays charged: warden/proof.h.)
 */
struct holder {
    uint32_t pid, tid; /* tid: whom to ask */
    uid_t uid;
    uint64_t n_fds;
};

static void take(struct bh_remote *r, uint32_t index)
{
    if (r->files.at[index].refs++ == 0)
        r->n_lost--; /* somebody has it after all */
}

/* The file under fd of that process, where it is one that is looked for; it is then held for the process. */
static void look_under(struct bh_remote *r, const struct holder *h, int fd, bool lost)
{
    for (uint32_t i = 0; i < r->files.n; i++) {
        const struct bh_remote_file *f = &r->files.at[i];
        if (!f->id || (lost && f->refs) || f->uid != h->uid || !same_file((pid_t)h->tid, fd, r->self, f->fd))
            continue;
        struct bh_remote_process *p = learn(r, h->pid);
        if (!p || has_slot(p, fd, i))
            return;
        take(r, i);
        add_slot(r, p, fd, i);
        return;
    }
}

/* Numbers that a folder of /proc has as names. */
static bool next_number(DIR *folder, uint32_t *ret)
{
    uint64_t v;
    for (const struct dirent *e; (e = readdir(folder));)
        if (bh_uint_parse(e->d_name, INT32_MAX, &v, NULL) == BH_OK) {
            *ret = (uint32_t)v;
            return true;
        }
    return false;
}

/* Its list of descriptors is for its own user alone; of somebody else's, each number that there can be is tried. */
static void find_in(struct bh_remote *r, const struct holder *h, bool lost)
{
    char path[32];
    uint32_t fd;
    (void)snprintf(path, sizeof(path), "/proc/%u/fd", h->tid);
    DIR *fds = opendir(path);
    if (!fds && errno == EACCES)
        for (uint64_t i = 0; i < h->n_fds && i < INT32_MAX; i++)
            look_under(r, h, (int)i, lost);
    while (fds && next_number(fds, &fd))
        look_under(r, h, (int)fd, lost);
    if (fds)
        (void)closedir(fds);
}

/* Its first thread is asked, or, where that has let go of its descriptors, another. False: it is nobody of a lease, or has none. */
static bool is_holder(const struct bh_remote *r, struct holder *h)
{
    char text[STATUS_MAX];
    uint64_t filters, uid;
    if (!read_status(h->pid, text) || !field(text, "\nSeccomp_filters:", 10, 0, &filters) ||
        filters <= r->filters || !field(text, "\nFDSize:", 10, 0, &h->n_fds) ||
        !field(text, "\nUid:", 10, 1, &uid))
        return false;
    h->uid = (uid_t)uid;
    h->tid = h->n_fds ? h->pid : bh_thread_living(h->pid);
    return h->n_fds ||
           (h->tid && read_status(h->tid, text) && field(text, "\nFDSize:", 10, 0, &h->n_fds) && h->n_fds);
}

/* Who has one of the files, or of the lost ones, among all processes with more filters than we have. */
static void find_holders(struct bh_remote *r, bool lost)
{
    struct holder h;
    DIR *proc = opendir("/proc");
    while (proc && (!lost || r->n_lost) && next_number(proc, &h.pid))
        if (is_holder(r, &h))
            find_in(r, &h, lost);
    if (proc)
        (void)closedir(proc);
}

void bh_remote_find_holders(struct bh_remote *r)
{
    find_holders(r, false);
}

static void close_file(struct bh_remote *r, uint32_t at)
{
    const uint64_t id = r->files.at[at].id;
    order_remove(r, at);
    close(r->files.at[at].fd);
    r->files.at[at].id = 0;
    r->hear.closed(r->arg, id);
}

static void unref(struct bh_remote *r, uint32_t at)
{
    if (--r->files.at[at].refs)
        return;
    if (r->files.at[at].used && !r->ending)
        r->n_lost++; /* what it holds keeps its name until it was looked at */
    else
        close_file(r, at);
}

bool bh_remote_find_lost(struct bh_remote *r)
{
    if (r->n_lost)
        find_holders(r, true);
    return r->n_lost > 0;
}

void bh_remote_close_lost(struct bh_remote *r)
{
    for (uint32_t i = 0; i < r->files.n && r->n_lost; i++) {
        if (!r->files.at[i].id || r->files.at[i].refs)
            continue;
        if (!r->ending && r->hear.closing)
            r->hear.closing(r->arg, &r->files.at[i]);
        r->n_lost--;
        close_file(r, i);
    }
}

static void drop_slot(struct bh_remote *r, struct bh_remote_process *p, size_t i)
{
    const uint32_t file = p->slots.at[i].file;
    if (r->hear.dropped)
        r->hear.dropped(r->arg, p, p->slots.at[i].fd);
    p->slots.at[i] = p->slots.at[--p->slots.n];
    unref(r, file);
}

void bh_remote_forget(struct bh_remote *r, struct bh_remote_process *p)
{
    while (p->slots.n)
        drop_slot(r, p, p->slots.n - 1);
    for (size_t i = 0; i < BH_COUNT_OF(r->threads); i++)
        if (r->threads[i].process == p) {
            r->threads[i].tid = 0;
            r->threads[i].process = NULL;
        }
    for (size_t i = 0; i < r->processes.n; i++)
        if (r->processes.at[i] == p) {
            r->processes.at[i] = r->processes.at[--r->processes.n];
            break;
        }
    close(p->pidfd);
    bh_vec_fini(&p->slots);
    bh_vec_fini(&p->mapping);
    free(p);
}

/* One that was put in the place of what was looked at may be anybody's. */
static void let_go(const struct bh_remote *r, uint32_t tid, int own)
{
    bh_peek_close(own, r->watchdog, tid);
}

static int get(const struct bh_remote *r, int pidfd, uint32_t tid, int fd, int *ret)
{
    int own = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    if (own < 0)
        return -errno;
    const bool same = same_file((pid_t)tid, fd, r->self, own);
    if (!same || own >= r->fds_most) {
        let_go(r, tid, own);
        return same ? -EMFILE : -EPERM;
    }
    *ret = own;
    return 0;
}

/* A process's descriptors are its first thread's; another thread may have its own, or the first one may be gone. */
static int duplicate(const struct bh_remote *r, const struct bh_remote_process *p, uint32_t tid, int fd,
                     int *ret)
{
    int rc = get(r, p->pidfd, tid, fd, ret);
    if (rc == 0 || tid == p->pid)
        return rc;
    int thread = (int)syscall(SYS_pidfd_open, (pid_t)tid, PIDFD_THREAD);
    if (thread < 0)
        return errno == EINVAL ? rc : -errno;
    rc = get(r, thread, tid, fd, ret);
    close(thread);
    return rc;
}

/* As duplicate(). *ret -1: somebody else's file, which is not duplicated. Where it cannot be looked at before, the proof is
 * what the duplicate is. */
static int duplicate_own(const struct bh_remote *r, const struct bh_remote_process *p, uint32_t tid, int fd,
                         int *ret, struct bh_driver_file *ret_what)
{
    struct bh_peek seen;
    *ret = -1;
    *ret_what = (struct bh_driver_file){.kind = BH_FILE_OTHER};
    int rc = bh_peek(tid, fd, &seen);
    if (rc < 0 ? rc != -EACCES : !r->driver->may_be(&seen))
        return rc;
    rc = duplicate(r, p, tid, fd, ret);
    if (rc < 0)
        return rc;
    bh_peek_own(*ret, &seen);
    if (r->driver->may_be(&seen))
        *ret_what = r->driver->identify(*ret);
    if (ret_what->kind == BH_FILE_OTHER) {
        let_go(r, tid, *ret);
        *ret = -1;
    }
    return 0;
}

/* Takes own: the same open file may be known under another number, or from another process. id 0: a new one's is next. */
static uint32_t adopt(struct bh_remote *r, int own, struct bh_driver_file what, uint64_t id)
{
    size_t room = 0, place = 0;
    const uint32_t known = order_find(r, own, &place);
    if (known != NOBODYS) {
        close(own);
        take(r, known);
        return known;
    }
    while (room < r->files.n && r->files.at[room].id)
        room++;
    struct bh_remote_file *f = room < r->files.n ? &r->files.at[room] : bh_vec_push(&r->files);
    *f = (struct bh_remote_file){
        .id = id ? id : ++r->last_id, .fd = own, .index = (uint32_t)room, .refs = 1, .what = what};
    order_add(r, place, (uint32_t)room);
    return (uint32_t)room;
}

static struct bh_remote_file hold(struct bh_remote *r, uint32_t index)
{
    take(r, index);
    return r->files.at[index];
}

void bh_remote_release(struct bh_remote *r, const struct bh_remote_file *f)
{
    if (f->id)
        unref(r, f->index);
}

int bh_remote_file(struct bh_remote *r, struct bh_remote_process *p, uint32_t tid, int fd,
                   struct bh_remote_file *ret)
{
    struct bh_driver_file what;
    int own;
    *ret = (struct bh_remote_file){.fd = -1, .what.kind = BH_FILE_OTHER};
    for (size_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i].fd == fd) {
            if (same_file((pid_t)tid, fd, r->self, r->files.at[p->slots.at[i].file].fd)) {
                *ret = hold(r, p->slots.at[i].file);
                return 0;
            }
            drop_slot(r, p, i);
            break;
        }
    int rc = duplicate_own(r, p, tid, fd, &own, &what);
    if (rc < 0 || own < 0)
        return rc;
    const uint32_t file = adopt(r, own, what, 0);
    r->files.at[file].uid = p->uid;
    add_slot(r, p, fd, file);
    *ret = hold(r, file);
    return 0;
}

uint64_t bh_remote_inode(const struct bh_remote_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) == 0 ? st.st_ino : 0;
}

bool bh_remote_restore(struct bh_remote *r, struct bh_remote_process *p, int fd, uint64_t id,
                       struct bh_driver_file what, uint64_t inode)
{
    struct bh_remote_file f = {.fd = -1};
    struct bh_driver_file is;
    for (size_t i = 0; i < p->slots.n; i++)
        if (p->slots.at[i].fd == fd)
            return false;
    int rc = duplicate_own(r, p, p->pid, fd, &f.fd, &is);
    const uint32_t other = rc < 0 ? bh_thread_living(p->pid) : 0;
    if (other && other != p->pid)
        rc = duplicate_own(r, p, other, fd, &f.fd, &is);
    if (rc < 0 || f.fd < 0)
        return false;
    bool good = is.kind == what.kind && is.gpu == what.gpu && bh_remote_inode(&f) == inode;
    /* One number, one open file, whoever has it. */
    for (size_t i = 0; i < r->files.n && good; i++)
        if (r->files.at[i].id == id)
            good = same_file(r->self, f.fd, r->self, r->files.at[i].fd);
    if (!good) {
        close(f.fd);
        return false;
    }
    const uint32_t file = adopt(r, f.fd, what, id);
    r->files.at[file].used = true; /* it may be */
    r->files.at[file].uid = p->uid;
    add_slot(r, p, fd, file);
    return true;
}

static bool is_over(const struct bh_remote_process *p)
{
    struct pollfd over = {.fd = p->pidfd, .events = POLLIN};
    return poll(&over, 1, 0) != 0;
}

/* Of those who were not found yet; how many are not. */
static size_t ask_all(const struct bh_remote *r, struct bh_remote_process *p, uint32_t asked)
{
    size_t n_gone = 0;
    for (size_t i = 0; i < p->slots.n; i++) {
        struct bh_remote_slot *s = &p->slots.at[i];
        s->gone = s->gone && !same_file((pid_t)asked, s->fd, r->self, r->files.at[s->file].fd);
        n_gone += s->gone;
    }
    return n_gone;
}

/*
 * Is what a process no longer has known? One of its threads is asked, which lives: where that is not sure afterwards, what it
 * said is nothing, and another is asked. One of which all threads have begun to end shows nothing, and has what was open
 * until it is over. For all numbers at once: to look for somebody who lives takes long where a tenant has many threads.
 */
static bool find_gone(const struct bh_remote *r, struct bh_remote_process *p)
{
    uint32_t asked = p->pid;
    for (size_t i = 0; i < p->slots.n; i++)
        p->slots.at[i].gone = true;
    for (int i = 0; i < ASKED_MOST && asked; i++) {
        if (ask_all(r, p, asked) == 0)
            return true;
        const uint32_t living = bh_thread_living(p->pid);
        if (living == asked)
            return true;
        asked = living;
    }
    return !asked && is_over(p);
}

void bh_remote_sweep(struct bh_remote *r)
{
    for (size_t k = 0; k < r->processes.n; k++) {
        struct bh_remote_process *p = r->processes.at[k];
        if (!find_gone(r, p))
            continue;
        for (size_t i = p->slots.n; i-- > 0;)
            if (p->slots.at[i].gone)
                drop_slot(r, p, i);
    }
}

size_t bh_remote_files_of(const struct bh_remote *r, const struct bh_remote_process *p, uint8_t kind,
                          int *ret, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < p->slots.n && n < max; i++) {
        const struct bh_remote_file *f = &r->files.at[p->slots.at[i].file];
        bool again = false;
        for (size_t k = 0; k < n; k++)
            again = again || ret[k] == f->fd; /* two numbers, one file */
        if (f->what.kind == kind && !again)
            ret[n++] = f->fd;
    }
    return n;
}
