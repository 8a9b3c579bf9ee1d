/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/remote.h"

#include "base/test.h"
#include "warden/peek.h"
#include "warden/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* For these tests a pipe is a file of the driver. */
static struct bh_driver_file pipes_are(int fd)
{
    struct stat st;
    const bool is = fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
    return (struct bh_driver_file){.kind = is ? BH_FILE_CTL : BH_FILE_OTHER};
}

static bool may_be(const struct bh_peek *seen)
{
    return S_ISFIFO(seen->mode);
}

static const struct bh_driver driver = {.name = "pipes", .may_be = may_be, .identify = pipes_are};
static uint64_t last_closed;
static uint32_t n_closed, n_learned;

static void closed(void *arg, uint64_t file)
{
    (void)arg;
    last_closed = file;
    n_closed++;
}

static void learned(void *arg, struct bh_remote_process *p)
{
    (void)arg;
    (void)p;
    n_learned++;
}

static const struct bh_remote_hear hear = {.closed = closed, .learned = learned};
static struct bh_remote remote;

static void begin(void)
{
    struct bh_err err;
    n_closed = n_learned = 0;
    if (bh_remote_init(&remote, &driver, &hear, NULL, &err) < 0)
        abort();
}

static struct {
    int from, fd, other;
} told;

/* As a tenant: those alone are looked at who carry more of them than we do. */
static void carry_a_filter(void)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {1, all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        abort();
}

enum { MANY = 1000 };

static void *stays(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

static void have_many_threads(void)
{
    pthread_t thread;
    pthread_attr_t small;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, (size_t)64 << 10);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&thread, &small, stays, NULL) != 0)
            abort();
}

static void obey(void)
{
    char what;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(told.from, &what, 1) == 1 && what != 'x') {
        if (what == 'c')
            close(told.fd);
        if (what == 'd')
            (void)dup2(told.other, told.fd);
        if (what == 'f')
            carry_a_filter();
        if (what == 'm')
            have_many_threads();
        if (what == 'r')
            (void)close_range((unsigned)told.fd, (unsigned)told.other, 0);
        (void)!write(told.from, &what, 1);
        if (what == 't')
            return;
    }
    _exit(0);
}

static void *goes_on(void *arg)
{
    obey();
    return arg;
}

/* A child that does what it is told, one byte at a time: `c`: closes fd, `d`: puts another file there, `f`: carries a filter, `m`:
 * has many threads, `r`: closes fd to other, `t`: ends its first thread, and another one obeys from there on, `x`: ends. */
static pid_t child(int ends[2], int fd, int other)
{
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        abort();
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    told.from = ends[1];
    told.fd = fd;
    told.other = other;
    obey();
    if (pthread_create(&thread, NULL, goes_on, NULL) == 0)
        (void)syscall(SYS_exit, 0); /* it alone */
    _exit(1);
}

static bool tell(const int ends[2], char what)
{
    return write(ends[0], &what, 1) == 1 && (what == 'x' || read(ends[0], &what, 1) == 1);
}

TEST(memory_is_read_and_written_whole_or_not_at_all)
{
    const uint32_t me = (uint32_t)getpid();
    char from[16] = "sixteen letters", to[16] = {0}, second[4] = "abc", back[4] = {0};
    CHECK_EQ(bh_remote_read(me, (uintptr_t)from, to, sizeof(to)), 0);
    CHECK_STR(to, "sixteen letters");
    const struct bh_remote_piece pieces[] = {{(uintptr_t)to, "another  text  ", 16},
                                             {(uintptr_t)back, second, 4}};
    CHECK_EQ(bh_remote_write(me, pieces, 2), 0);
    CHECK_STR(to, "another  text  ");
    CHECK_STR(back, "abc");
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED && munmap(at + page, page) == 0);
    CHECK_EQ(bh_remote_read(me, (uintptr_t)at + page - 8, to, sizeof(to)), -EFAULT);
    CHECK_EQ(bh_remote_write(me, &(struct bh_remote_piece){(uintptr_t)at + page - 8, to, 16}, 1), -EFAULT);
    CHECK_EQ(mprotect(at, page, PROT_READ), 0);
    CHECK_EQ(bh_remote_write(me, &(struct bh_remote_piece){(uintptr_t)at, to, 16}, 1), -EFAULT);
    CHECK_EQ(munmap(at, page), 0);
}

TEST(a_file_is_one_under_every_number_and_in_every_process)
{
    int p[2], ends[2];
    struct bh_remote_file mine, again, its, other;
    CHECK_EQ(pipe(p), 0);
    int second = dup(p[0]);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *me = bh_remote_process(&remote, (uint32_t)getpid()),
                             *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(me && it && me != it);
    CHECK(bh_remote_process(&remote, (uint32_t)pid) == it);
    CHECK_EQ(n_learned, 2);
    CHECK_EQ(it->uid, geteuid());
    CHECK_EQ(bh_remote_file(&remote, me, me->pid, p[0], &mine), 0);
    CHECK_EQ(bh_remote_file(&remote, me, me->pid, second, &again), 0);
    CHECK_EQ(bh_remote_file(&remote, it, it->pid, p[0], &its), 0);
    CHECK_EQ(bh_remote_file(&remote, me, me->pid, p[1], &other), 0);
    CHECK(mine.id != 0 && mine.id == again.id && mine.id == its.id && other.id != mine.id);
    int fds[4];
    CHECK_EQ(bh_remote_files_of(&remote, me, BH_FILE_CTL, fds, 4), 2);
    bh_remote_release(&remote, &mine);
    bh_remote_release(&remote, &again);
    bh_remote_release(&remote, &its);
    bh_remote_release(&remote, &other);
    CHECK_EQ(bh_remote_file(&remote, me, me->pid, ends[0], &other), 0); /* somebody else's */
    CHECK_EQ(other.id, 0);
    bh_remote_release(&remote, &other);
    CHECK_EQ(bh_remote_file(&remote, me, me->pid, 4000, &other), -EBADF);
    CHECK_EQ(n_closed, 0);
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    bh_remote_fini(&remote);
    CHECK_EQ(n_closed, 2);
    close(p[0]);
    close(p[1]);
    close(second);
    close(ends[0]);
    close(ends[1]);
}

TEST(what_is_closed_or_replaced_is_let_go)
{
    int p[2], q[2], ends[2];
    struct bh_remote_file f, g;
    CHECK(pipe(p) == 0 && pipe(q) == 0);
    pid_t pid = child(ends, p[0], q[0]);
    begin();
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == 0);
    bh_remote_release(&remote, &f);
    bh_remote_sweep(&remote);
    CHECK_EQ(n_closed, 0);
    CHECK(tell(ends, 'd')); /* another file under the same number: seen at once */
    CHECK_EQ(bh_remote_file(&remote, it, it->pid, p[0], &g), 0);
    CHECK(g.id != f.id);
    CHECK_EQ(n_closed, 1);
    CHECK_EQ(last_closed, f.id);
    CHECK(tell(ends, 'c'));
    bh_remote_sweep(&remote);
    CHECK_EQ(n_closed, 1); /* a call still holds it */
    bh_remote_release(&remote, &g);
    CHECK_EQ(n_closed, 2);
    CHECK_EQ(last_closed, g.id);
    CHECK_EQ(bh_remote_file(&remote, it, it->pid, p[0], &g), -EBADF);
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    for (const int64_t tick = bh_remote_tick_ns(); bh_remote_tick_ns() == tick;)
        (void)usleep(100); /* within one it is not asked for again */
    CHECK(!bh_remote_process(&remote, (uint32_t)pid));
    bh_remote_fini(&remote);
    for (size_t i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
        close(ends[i]);
    }
}

/* The lowest that is free. */
static int next_fd(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

TEST(the_last_descriptors_are_the_wardens_own)
{
    struct rlimit before, few = {0};
    struct bh_remote_file f;
    int p[2], ends[2];
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){200, before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    begin();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(remote.fds_most, 200 - 64);
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    const int next = next_fd();
    remote.fds_most = next;
    CHECK(!bh_remote_process(&remote, (uint32_t)pid)); /* not even to know who it is */
    remote.fds_most = next + 1;
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == -EMFILE);
    for (int i = 0; i < 5000 && next_fd() != next + 1; i++)
        (void)usleep(1000); /* a thread closes it (peek.h) */
    CHECK_EQ(next_fd(), next + 1);
    remote.fds_most = next + 2;
    CHECK_EQ(bh_remote_file(&remote, it, it->pid, p[0], &f), 0);
    bh_remote_release(&remote, &f);
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    bh_remote_fini(&remote);
    for (size_t i = 0; i < 2; i++) {
        close(p[i]);
        close(ends[i]);
    }
}

TEST(a_file_on_which_something_was_made_is_kept_until_it_is_let_go)
{
    int p[2], ends[2];
    struct bh_remote_file f;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == 0);
    remote.files.at[f.index].used = true;
    bh_remote_release(&remote, &f);
    close(p[0]);
    CHECK(!bh_remote_find_lost(&remote));
    CHECK(tell(ends, 'c'));
    bh_remote_sweep(&remote);
    CHECK_EQ(n_closed, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(write(p[1], "x", 1), 1); /* it has a reader: the warden */
    CHECK(bh_remote_find_lost(&remote));
    bh_remote_close_lost(&remote);
    CHECK_EQ(n_closed, 1);
    CHECK_EQ(last_closed, f.id);
    CHECK(write(p[1], "x", 1) < 0 && errno == EPIPE);
    CHECK(!bh_remote_find_lost(&remote));
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    bh_remote_fini(&remote);
    CHECK_EQ(n_closed, 1);
    close(p[1]);
    close(ends[0]);
    close(ends[1]);
}

/* Nobody waited for it yet, and it has nothing any more. */
TEST(what_one_had_that_has_ended_is_let_go)
{
    int p[2], ends[2];
    struct bh_remote_file f;
    siginfo_t ended;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == 0);
    bh_remote_release(&remote, &f);
    CHECK(tell(ends, 'x') && waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) == 0);
    bh_remote_sweep(&remote);
    CHECK_EQ(n_closed, 1);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    bh_remote_fini(&remote);
    for (size_t i = 0; i < 2; i++) {
        close(p[i]);
        close(ends[i]);
    }
}

static void without_its_first_thread(const int ends[2], pid_t pid)
{
    struct bh_thread_seen seen = {.state = '?'};
    CHECK(tell(ends, 't'));
    for (int i = 0; i < 5000 && seen.state; i++) {
        (void)usleep(1000);
        bh_thread_look((uint32_t)pid, (uint32_t)pid, &seen);
    }
    CHECK_EQ(seen.state, '\0');
}

/* The first thread's end closes nothing. As long as it is asked nothing is there. */
TEST(a_process_has_its_files_without_its_first_thread)
{
    int p[2], ends[2];
    struct bh_remote_file f;
    static struct bh_remote next;
    struct bh_err err;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == 0);
    remote.files.at[f.index].used = true;
    bh_remote_release(&remote, &f);
    without_its_first_thread(ends, pid);
    bh_remote_sweep(&remote);
    CHECK_EQ(remote.n_lost, 0);
    /* Another warden, which takes over. */
    CHECK_EQ(bh_remote_init(&next, &driver, &hear, NULL, &err), BH_OK);
    struct bh_remote_process *again = bh_remote_process(&next, (uint32_t)pid);
    const bool found =
        again && bh_remote_restore(&next, again, p[0], f.id, f.what, bh_remote_inode(&remote.files.at[0]));
    const int by_thread = (int)syscall(SYS_pidfd_open, getpid(), O_EXCL); /* PIDFD_THREAD, 6.9 */
    CHECK(found || by_thread < 0);
    if (by_thread >= 0)
        close(by_thread);
    bh_remote_fini(&next);
    CHECK(tell(ends, 'c'));
    bh_remote_sweep(&remote);
    CHECK_EQ(remote.n_lost, 1);
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    bh_remote_fini(&remote);
    for (size_t i = 0; i < 2; i++) {
        close(p[i]);
        close(ends[i]);
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Who looks for one that lives among many threads does so once, however many files were closed. */
TEST(many_threads_and_files_do_not_keep_a_sweep)
{
    enum { FIRST = 300, FILES = 600, TRIES = 5, LIMIT = FILES / 6 };
    int p[2], ends[2];
    struct bh_remote_file f;
    uint64_t one_ns = UINT64_MAX, all_ns = 0;
    bool good = false;
    CHECK_EQ(pipe(p), 0);
    for (int try = 0; try < TRIES && !good; try++) {
        for (int i = 0; i < FILES; i++)
            CHECK_EQ(dup2(p[0], FIRST + i), FIRST + i);
        pid_t pid = child(ends, FIRST, FIRST + FILES - 1);
        begin();
        struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
        for (int i = 0; it && i < FILES; i++) {
            CHECK_EQ(bh_remote_file(&remote, it, it->pid, FIRST + i, &f), 0);
            bh_remote_release(&remote, &f);
        }
        CHECK(it && it->slots.n == FILES && tell(ends, 'm'));
        without_its_first_thread(ends, pid);
        for (int i = 0; i < TRIES; i++) {
            const uint64_t from = now_ns();
            CHECK(bh_thread_living((uint32_t)pid) != 0);
            one_ns = now_ns() - from < one_ns ? now_ns() - from : one_ns;
        }
        CHECK(tell(ends, 'r'));
        const uint64_t from = now_ns();
        bh_remote_sweep(&remote);
        all_ns = now_ns() - from;
        good = all_ns / LIMIT < one_ns;
        CHECK(it && it->slots.n == 0);
        CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
        bh_remote_fini(&remote);
        close(ends[0]);
        close(ends[1]);
    }
    printf("# one look %llu us, the sweep %llu us\n", (unsigned long long)one_ns / 1000,
           (unsigned long long)all_ns / 1000);
    CHECK(good);
    CHECK_EQ(close_range(FIRST, FIRST + FILES - 1, 0), 0);
    close(p[0]);
    close(p[1]);
}

TEST(who_never_asked_is_found_without_its_first_thread)
{
    int p[2], ends[2];
    struct bh_remote_file f;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *me = bh_remote_process(&remote, (uint32_t)getpid());
    CHECK(me && bh_remote_file(&remote, me, me->pid, p[0], &f) == 0);
    remote.files.at[f.index].used = true;
    bh_remote_release(&remote, &f);
    close(p[0]);
    bh_remote_sweep(&remote);
    CHECK_EQ(remote.n_lost, 1);
    CHECK(tell(ends, 'f'));
    without_its_first_thread(ends, pid);
    CHECK(!bh_remote_find_lost(&remote));
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    bh_remote_fini(&remote);
    close(p[1]);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_process_that_is_forgotten_takes_its_files_along)
{
    int p[2], ends[2];
    struct bh_remote_file f;
    CHECK_EQ(pipe(p), 0);
    pid_t pid = child(ends, p[0], p[1]);
    begin();
    struct bh_remote_process *it = bh_remote_process(&remote, (uint32_t)pid);
    CHECK(it && bh_remote_file(&remote, it, it->pid, p[0], &f) == 0);
    bh_remote_release(&remote, &f);
    close(p[0]);
    CHECK(tell(ends, 'x') && waitpid(pid, NULL, 0) == pid);
    /* The warden's duplicate was the last one: with it the pipe has no reader any more. */
    bh_remote_forget(&remote, it);
    CHECK_EQ(n_closed, 1);
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(write(p[1], "x", 1) < 0 && errno == EPIPE);
    bh_remote_fini(&remote);
    close(p[1]);
    close(ends[0]);
    close(ends[1]);
}

TEST_MAIN
