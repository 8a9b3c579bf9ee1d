/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drv_test.c - the caller's side alone, against a peer that answers everything by turning its bytes over.
 *
 * What the manager makes of a request is tested with the server; here it is what leaves this process, what comes
 * back into it, and what it leaves untouched.
 */
#include "base/scratch.h"
#include "base/test.h"
#include "gpu/abi/rm.h"
#include "record/record.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the peer ---- */

enum { CONNS_MAX = 16 };
static char folder[64];
static int listener = -1, bell[2];
static pthread_t peer;
static atomic_uint n_accepted, n_closed, n_requests, delay_ms, refuse, close_after;
static struct {
    struct bh_sim_msg msg;
    unsigned char body[BH_SIM_BODY_MAX];
} last; /* read by the test only when no request is under way */

static void reply(int to, struct bh_sim_msg *m, const void *body, size_t n, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov[2] = {{m, sizeof(*m)}, {(void *)(uintptr_t)body, n}};
    struct msghdr h = {.msg_iov = iov, .msg_iovlen = 2};
    if (fd >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    (void)!sendmsg(to, &h, MSG_NOSIGNAL);
}

static void answer(int fd, struct bh_sim_msg m, size_t n)
{
    static unsigned char out[BH_SIM_BODY_MAX];
    int pair[2] = {-1, -1};
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)~last.body[i];
    if (m.op == BH_SIM_OP_OPEN && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        m.result = -errno;
    if (m.op == BH_SIM_OP_READ) {
        n = m.n_body = (uint32_t)m.d;
        memset(out, (int)(m.c >> 16), n);
    }
    if (m.op == BH_SIM_OP_WRITE)
        n = m.n_body = 0;
    if (m.op == BH_SIM_OP_STOP)
        m.result = -EPERM;
    reply(fd, &m, out, n, pair[0]);
    if (pair[0] >= 0) {
        close(pair[0]);
        close(pair[1]);
    }
}

/* false: it hung up. */
static bool serve_one(int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {&last, sizeof(last)};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    if (n < (ssize_t)sizeof(last.msg))
        return false;
    if (h.msg_controllen) {
        int got;
        memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(got));
        close(got);
    }
    n_requests++;
    const bool stays = !close_after;
    if (delay_ms)
        (void)poll(NULL, 0, (int)delay_ms);
    answer(fd, last.msg, (size_t)n - sizeof(last.msg));
    return stays;
}

static void *peer_main(void *arg)
{
    struct pollfd p[CONNS_MAX] = {{.fd = listener, .events = POLLIN}, {.fd = bell[0], .events = POLLIN}};
    nfds_t n = 2;
    (void)arg;
    for (;;) {
        (void)poll(p, n, -1);
        if (p[1].revents)
            break;
        for (nfds_t i = 2; i < n; i++)
            if (p[i].revents && !serve_one(p[i].fd)) {
                close(p[i].fd);
                n_closed++;
                p[i--] = p[--n];
            }
        if (!p[0].revents)
            continue;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        n_accepted++;
        if (refuse || n == CONNS_MAX) {
            struct bh_sim_msg no = {.op = BH_SIM_OP_N_, .result = -EMFILE};
            reply(fd, &no, NULL, 0, -1);
            close(fd);
        } else {
            p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    for (nfds_t i = 2; i < n; i++)
        close(p[i].fd);
    return NULL;
}

static void peer_start(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%.60s/rm.sock", folder);
    (void)unlink(at.sun_path);
    n_accepted = n_closed = n_requests = delay_ms = refuse = close_after = 0;
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (pipe2(bell, O_CLOEXEC) < 0 || bind(listener, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
        listen(listener, 16) < 0 || pthread_create(&peer, NULL, peer_main, NULL) != 0)
        abort();
}

static void peer_stop(void)
{
    (void)!write(bell[1], "", 1);
    (void)pthread_join(peer, NULL);
    close(listener);
    close(bell[0]);
    close(bell[1]);
}

/* How many times the peer saw a hang-up, once it has seen n of them or two seconds went by. */
static unsigned closed_after(unsigned n)
{
    for (int i = 0; i < 200 && n_closed < n; i++)
        (void)poll(NULL, 0, 10);
    return n_closed;
}

static void begin(void)
{
    if (!*folder && !bh_scratch_make(folder, sizeof(folder), "drv"))
        abort();
    (void)setenv("BULKHEAD_SIM", folder, 1);
    peer_start();
}

/* ---- where there is nothing ---- */

TEST(no_node_is_no_device)
{
    struct bh_sim_node_view view;
    begin();
    peer_stop();
    CHECK(bh_sim_open("/dev/nvidiactl") < 0);
    CHECK_EQ(errno, ENODEV);
    (void)setenv("BULKHEAD_SIM", "/nowhere/at/all", 1);
    CHECK(bh_sim_hello(&view) < 0);
    CHECK_EQ(errno, ENODEV);
    (void)unsetenv("BULKHEAD_SIM");
    CHECK(bh_sim_hello(&view) < 0);
    CHECK_EQ(errno, ENODEV);
    char longer[400];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    bh_sim_use(longer);
    CHECK(bh_sim_hello(&view) < 0);
    CHECK_EQ(errno, ENAMETOOLONG);
    bh_sim_use(NULL);
}

TEST(a_path_becomes_a_kind_and_a_number)
{
    static const struct {
        const char *path;
        uint64_t kind, minor;
    } good[] = {{"/dev/nvidiactl", BH_FILE_CTL, 0},
                {"/dev/nvidia0", BH_FILE_GPU, 0},
                {"/dev/nvidia17", BH_FILE_GPU, 17},
                {"/dev/nvidia-uvm", BH_FILE_UVM, 0},
                {"/dev/nvidia-uvm-tools", BH_FILE_UVM_TOOLS, 0},
                {"/dev/nvidia-modeset", BH_FILE_MODESET, 0},
                {"/dev/nvidia-caps/nvidia-cap12", BH_FILE_CAP, 12}};
    static const char *const bad[] = {
        "/dev/nvidia", "/dev/nvidiax",          "/dev/nvidiactl2", "/dev/null", "",
        "nvidia0",     "/dev/nvidia99999999999"};
    begin();
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int fd = bh_sim_open(good[i].path);
        CHECK(fd >= 3);
        CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
        CHECK_EQ(last.msg.a, good[i].kind);
        CHECK_EQ(last.msg.b, good[i].minor);
        close(fd);
    }
    const unsigned before = n_requests;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(bh_sim_open(bad[i]) < 0);
        CHECK_EQ(errno, ENOENT);
    }
    CHECK_EQ(n_requests, before);
    peer_stop();
}

/* ---- shapes ---- */

TEST(embedded_parameters_travel_and_come_back)
{
    unsigned char params[100];
    struct rm_alloc a = {
        .client = 1, .object = 2, .class = 0x40, .params = (uintptr_t)params, .params_size = 100};
    begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    memset(params, 0x0f, sizeof(params));
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a), 0);
    CHECK_EQ(last.msg.n_arg, 48);
    CHECK_EQ(last.msg.n_params, 100);
    CHECK_EQ(last.body[48], 0x0f);
    CHECK_EQ(a.class, ~UINT32_C(0x40));
    CHECK_EQ(params[0], 0xf0);
    CHECK_EQ(params[99], 0xf0);

    struct rm_alloc_short b = {.params = (uintptr_t)params, .params_size = 8};
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(b)), &b), 0);
    CHECK(last.msg.n_arg == 32 && last.msg.n_params == 8);
    CHECK(params[7] == 0x0f && params[8] == 0xf0);

    /* Without a size it is the class that says how many there are. */
    struct rm_memory_params memory = {.size = 4096};
    a = (struct rm_alloc){.class = RM_CLASS_MEMORY_LOCAL, .params = (uintptr_t)&memory};
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(a)), &a), 0);
    CHECK(last.msg.n_arg == 48 && last.msg.n_params == sizeof(memory));
    CHECK_EQ(memory.size, ~UINT64_C(4096));
    b = (struct rm_alloc_short){.class = 0xdead, .params = (uintptr_t)params};
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_ALLOC, sizeof(b)), &b), 0);
    CHECK_EQ(last.msg.n_params, 0);

    struct rm_control c = {.params = (uintptr_t)params, .params_size = 4};
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c), 0);
    CHECK(last.msg.n_arg == 32 && last.msg.n_params == 4);

    c = (struct rm_control){.params = 0, .params_size = 4};
    CHECK_EQ(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c), 0);
    CHECK_EQ(last.msg.n_params, 0);

    /* A pointer that leads nowhere, or too much behind it, is the caller's mistake and nobody else's. */
    const unsigned before = n_requests;
    c = (struct rm_control){.params = 4096, .params_size = 64};
    CHECK(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c) < 0);
    CHECK_EQ(errno, EFAULT);
    c = (struct rm_control){.params = (uintptr_t)params, .params_size = UINT32_MAX};
    CHECK(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), &c) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(bh_sim_ioctl(fd, RM_IOC(RM_CONTROL, sizeof(c)), NULL) < 0);
    CHECK_EQ(errno, EFAULT);
    CHECK_EQ(n_requests, before);
    close(fd);
    peer_stop();
}

TEST(other_numbers_are_flat)
{
    static const struct {
        uint32_t cmd, bytes;
    } calls[] = {{RM_IOC(RM_FREE, 16), 16},
                 {RM_IOC(RM_DUP_OBJECT, 28), 28},
                 {RM_IOC(RM_CHECK_VERSION, 72), 72},
                 {UVM_INITIALIZE, 16},
                 {UVM_MM_INITIALIZE, 8},
                 {UVM_PAGEABLE_MEM_ACCESS, 8},
                 {70, 24},
                 {UVM_REGISTER_GPU, 40},
                 {UVM_UNREGISTER_GPU, 20},
                 {UVM_REGISTER_GPU_VASPACE, 32},
                 {UVM_UNREGISTER_GPU_VASPACE, 20},
                 {UVM_REGISTER_CHANNEL, 56},
                 {UVM_UNREGISTER_CHANNEL, 28},
                 {UVM_CREATE_EXTERNAL_RANGE, 24},
                 {UVM_MAP_EXTERNAL, 9264},
                 {UVM_FREE, 24},
                 {UVM_CREATE_RANGE_GROUP, 16},
                 {UVM_VALIDATE_VA_RANGE, 24},
                 {9999, 0}};
    static unsigned char arg[16384];
    begin();
    int fd = bh_sim_open("/dev/nvidia-uvm");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        memset(arg, 0, sizeof(arg));
        CHECK_EQ(bh_sim_ioctl(fd, calls[i].cmd, arg), 0);
        CHECK_EQ(last.msg.a, calls[i].cmd);
        CHECK_EQ(last.msg.n_arg, calls[i].bytes);
        CHECK_EQ(arg[calls[i].bytes], 0);
        CHECK(calls[i].bytes == 0 || arg[calls[i].bytes - 1] == 0xff);
    }
    close(fd);
    peer_stop();
}

TEST(long_copies_go_in_pieces)
{
    static unsigned char bytes[3 * BH_SIM_BODY_MAX + 5];
    begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    unsigned before = n_requests;
    CHECK_EQ(bh_sim_write(fd, 1, 2, 0, bytes, sizeof(bytes)), 0);
    CHECK_EQ(n_requests - before, 4);
    CHECK(last.msg.c == 3 * BH_SIM_BODY_MAX && last.msg.n_body == 5);
    CHECK_EQ(bh_sim_read(fd, 1, 2, 0, bytes, sizeof(bytes)), 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        CHECK_EQ(bytes[i], i / BH_SIM_BODY_MAX); /* the peer gives the offset's upper half */
    before = n_requests;
    CHECK_EQ(bh_sim_write(fd, 1, 2, 0, bytes, 0), 0);
    CHECK_EQ(n_requests, before);
    close(fd);
    peer_stop();
}

TEST(a_refusal_is_errno)
{
    struct bh_sim_msg stop = {.op = BH_SIM_OP_STOP};
    begin();
    CHECK(bh_sim_call(&stop, NULL, 0, -1, NULL) < 0);
    CHECK_EQ(errno, EPERM);
    struct bh_sim_node_view view;
    CHECK(bh_sim_hello(&view) < 0); /* the peer sends no body */
    CHECK_EQ(errno, EPROTO);
    CHECK(bh_sim_wait(-1, 0, 0, 0) < 0);
    CHECK_EQ(errno, EBADF);
    peer_stop();
}

TEST(a_full_manager_says_so)
{
    struct bh_sim_node_view view;
    begin();
    refuse = 1;
    for (int i = 0; i < 50; i++) {
        CHECK(bh_sim_hello(&view) < 0);
        CHECK_EQ(errno, EMFILE);
    }
    refuse = 0;
    CHECK(bh_sim_open("/dev/nvidiactl") >= 3);
    peer_stop();
}

/* ---- the system call comes first ---- */

static bool answer_ioctls(uint32_t action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RM_IOC(RM_FREE, 16), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* In a child of its own: the ioctl's errno under that action, 0 for success, 99 when there is no filter. */
static int ioctl_under(uint32_t action)
{
    int status;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rm_free f = {.client = 1};
        int fd = bh_sim_open("/dev/nvidiactl");
        if (!answer_ioctls(action))
            _exit(99);
        _exit(bh_sim_ioctl(fd, RM_IOC(RM_FREE, sizeof(f)), &f) == 0 ? 0 : errno);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(whoever_stands_at_the_system_call_answers)
{
    begin();
    CHECK_EQ(ioctl_under(SECCOMP_RET_ERRNO | EPERM), EPERM);
    CHECK_EQ(n_requests, 1); /* the open, and nothing behind the filter's back */
    CHECK_EQ(ioctl_under(SECCOMP_RET_ERRNO | 0), 0);
    CHECK_EQ(n_requests, 2);
    CHECK_EQ(ioctl_under(SECCOMP_RET_ALLOW), 0);
    CHECK_EQ(n_requests, 4);
    CHECK_EQ(last.msg.op, BH_SIM_OP_IOCTL);
    peer_stop();
}

TEST(a_socket_answers_every_number_we_use_with_enotty)
{
    static const uint32_t numbers[] = {RM_IOC(RM_ALLOC, 48),
                                       RM_IOC(RM_CONTROL, 32),
                                       RM_IOC(RM_SYS_PARAMS, 8),
                                       UVM_INITIALIZE,
                                       UVM_DEINITIALIZE,
                                       UVM_CREATE_RANGE_GROUP,
                                       UVM_FREE,
                                       UVM_MM_INITIALIZE};
    static unsigned char arg[128];
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        CHECK(ioctl(pair[0], numbers[i], arg) < 0);
        CHECK_EQ(errno, ENOTTY);
    }
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, pair[0], 0) == MAP_FAILED);
    CHECK_EQ(errno, ENODEV);
    close(pair[0]);
    close(pair[1]);
}

/* ---- in other people's programs ---- */

static struct bh_sim_msg fence_request(void)
{
    return (struct bh_sim_msg){.op = BH_SIM_OP_FENCE};
}

static bool ask(void)
{
    struct bh_sim_msg m = fence_request();
    return bh_sim_call(&m, NULL, 0, -1, NULL) == 0;
}

TEST(numbers_below_three_are_never_taken)
{
    int status;
    begin();
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 3; i++)
            close(i);
        int a = bh_sim_open("/dev/nvidiactl"), b = bh_sim_open("/dev/nvidia0");
        _exit(a >= 3 && b >= 3 && a != b && fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 &&
                      fcntl(2, F_GETFD) < 0
                  ? 0
                  : 1);
    }
    (void)waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    peer_stop();
}

/* The number of this thread's connection: the one whose other end is the peer's socket. */
static int connection_number(void)
{
    for (int fd = 3; fd < 64; fd++) {
        struct sockaddr_un at = {0};
        socklen_t n = sizeof(at);
        if (getpeername(fd, (struct sockaddr *)&at, &n) == 0 && n > sizeof(at.sun_family) &&
            strncmp(at.sun_path, folder, strlen(folder)) == 0)
            return fd;
    }
    return -1;
}

TEST(a_number_that_was_closed_and_given_away_is_left_alone)
{
    char byte = 0;
    int pair[2];
    begin();
    CHECK(ask());
    int fd = connection_number();
    CHECK(fd >= 3 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    /* The program closes it and gets the same number for something of its own. */
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    CHECK_EQ(dup2(pair[0], fd), fd);
    CHECK(ask());
    CHECK_EQ(write(pair[1], "x", 1), 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'x');
    CHECK_EQ(n_accepted, 2);
    CHECK(ask());
    CHECK_EQ(n_accepted, 2);
    close(fd);
    close(pair[0]);
    close(pair[1]);
    peer_stop();
}

TEST(a_child_connects_for_itself)
{
    int status;
    begin();
    CHECK(ask());
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask() && ask() ? 0 : 1);
    (void)waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(n_accepted, 2);
    CHECK(ask());
    CHECK_EQ(n_accepted, 2);
    CHECK_EQ(closed_after(1), 1);
    peer_stop();
}

static void *ask_twice(void *arg)
{
    *(bool *)arg = ask() && ask();
    return NULL;
}

TEST(a_thread_has_its_own_connection_and_takes_it_along)
{
    pthread_t t;
    bool good = false;
    begin();
    CHECK(ask());
    CHECK_EQ(pthread_create(&t, NULL, ask_twice, &good), 0);
    (void)pthread_join(t, NULL);
    CHECK(good);
    CHECK_EQ(n_accepted, 2);
    CHECK_EQ(closed_after(1), 1);
    peer_stop();
}

static atomic_uint n_signals, n_nested;

static void on_alarm(int signo)
{
    (void)signo;
    n_signals++;
}

TEST(signals_do_not_cut_a_call_short)
{
    const struct sigaction act = {.sa_handler = on_alarm}; /* no SA_RESTART */
    const struct itimerval every = {{0, 2000}, {0, 2000}}, never = {0};
    begin();
    delay_ms = 50;
    CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    bool good = true;
    for (int i = 0; i < 4; i++)
        good = good && ask();
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK(good);
    CHECK(n_signals > 0);
    CHECK_EQ(n_requests, 4);
    CHECK_EQ(n_accepted, 1);
    peer_stop();
}

static void on_nested(int signo)
{
    int error = errno;
    (void)signo;
    n_nested += ask();
    errno = error;
}

TEST(a_signal_handler_may_call_in_the_middle_of_a_call)
{
    const struct sigaction act = {.sa_handler = on_nested};
    const struct itimerval once = {.it_value = {0, 50000}};
    begin();
    CHECK(ask());
    delay_ms = 200;
    CHECK_EQ(sigaction(SIGALRM, &act, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
    struct bh_sim_msg m = {.op = BH_SIM_OP_FENCE, .a = 77};
    CHECK_EQ(bh_sim_call(&m, NULL, 0, -1, NULL), 0);
    CHECK_EQ(m.a, 77); /* its own reply, and not the handler's */
    CHECK_EQ(n_nested, 1);
    delay_ms = 0;
    CHECK(ask());
    CHECK_EQ(n_accepted, 2);
    peer_stop();
}

TEST(a_manager_that_goes_and_comes_back)
{
    begin();
    CHECK(ask());
    peer_stop();
    CHECK(!ask());
    CHECK_EQ(errno, ENODEV);
    peer_start();
    CHECK(ask());
    /* Hung up between two requests: the second finds the way again by itself. */
    close_after = 1;
    CHECK(ask());
    close_after = 0;
    CHECK_EQ(closed_after(1), 1);
    CHECK(ask());
    peer_stop();
    char path[80];
    (void)snprintf(path, sizeof(path), "%.60s/rm.sock", folder);
    (void)unlink(path);
    CHECK_EQ(rmdir(folder), 0);
}

TEST_MAIN
