/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drv.c - the caller's side of simulated device files.
 *
 * It lives inside other people's programs, so it takes nothing that is theirs: no signals, no memory from the heap, no
 * descriptor below 3, nothing that an exec would inherit. Requests are sent from, and replies land in, the caller's
 * own structures. A program may close descriptors it never opened, fork at any moment, or leave a call by a
 * signal handler; a connection is therefore only used while it is provably the one that was made, by this process, for
 * this node, and not in the middle of a request.
 */
#include "simgpu/drv.h"

#include "base/units.h"
#include "gpu/abi/rm.h"
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3, FOLDER_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) };
static const char socket_name[] = "/rm.sock";

struct conn {
    int fd; /* 0: none */
    pid_t pid;
    uint64_t cookie;      /* of the socket: never given to another one */
    bool busy;            /* a request was sent and its reply not taken yet */
    uint32_t patience_ms; /* as the socket has it */
    char folder[FOLDER_MAX];
};

static _Thread_local struct conn mine;
static _Thread_local char
    used[FOLDER_MAX + 1]; /* bh_sim_use; "": BULKHEAD_SIM; longer than can be: too long */
static _Thread_local uint32_t patience_ms;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

uint64_t bh_sim_socket_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t n = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &n) == 0 ? cookie : 0;
}

static bool is_ours(const struct conn *c)
{
    return c->fd > 0 && c->cookie != 0 && bh_sim_socket_cookie(c->fd) == c->cookie;
}

/* Keeps errno. A number that is somebody else's by now is left alone. */
static void drop(struct conn *c)
{
    int error = errno;
    if (is_ours(c))
        close(c->fd);
    c->fd = 0;
    c->busy = false;
    errno = error;
}

static void thread_ends(void *at)
{
    drop(at);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

/* The library goes: nobody may call thread_ends after that. */
__attribute__((destructor)) static void unload(void)
{
    if (has_key)
        (void)pthread_key_delete(key);
    has_key = false;
    drop(&mine);
}

/* The same file under a number from 3 on; standard streams that were closed stay closed. */
static int lift(int fd)
{
    if (fd < 0 || fd >= FIRST_FD)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD), error = errno;
    close(fd);
    errno = error;
    return high;
}

static const char *folder_now(void)
{
    const char *named = *used ? used : secure_getenv("BULKHEAD_SIM");
    return named ? named : "";
}

void bh_sim_use(const char *folder)
{
    (void)!memccpy(used, folder ? folder : "", '\0', FOLDER_MAX);
}

void bh_sim_patience(uint32_t ms)
{
    patience_ms = ms;
}

static void set_patience(int fd, uint32_t ms)
{
    const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static int conn_open(struct conn *c, const char *folder)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(folder);
    if (n == 0) {
        errno = ENODEV;
        return -1;
    }
    if (n + sizeof(socket_name) > sizeof(to.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(to.sun_path, folder, n);
    memcpy(to.sun_path + n, socket_name, sizeof(socket_name));
    int fd = lift(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)), rc;
    if (fd < 0)
        return -1;
    set_patience(fd, patience_ms);
    do
        rc = connect(fd, (const struct sockaddr *)&to, sizeof(to));
    while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        int error = errno;
        close(fd);
        errno = error == ENOENT || error == ENOTDIR || error == ECONNREFUSED ? ENODEV : error;
        return -1;
    }
    *c = (struct conn){
        .fd = fd, .pid = getpid(), .cookie = bh_sim_socket_cookie(fd), .patience_ms = patience_ms};
    memcpy(c->folder, folder, n + 1);
    return 0;
}

/* Makes c ready; *ret_fresh: it was connected just now. */
static int conn_ready(struct conn *c, bool *ret_fresh)
{
    const char *folder = folder_now();
    *ret_fresh = false;
    if (is_ours(c) && c->pid == getpid() && strcmp(c->folder, folder) == 0) {
        if (c->patience_ms != patience_ms)
            set_patience(c->fd, patience_ms);
        c->patience_ms = patience_ms;
        return 0;
    }
    drop(c);
    *ret_fresh = true;
    if (conn_open(c, folder) < 0)
        return -1;
    if (c == &mine) {
        (void)pthread_once(&key_once, make_key);
        if (has_key)
            (void)pthread_setspecific(key, c);
    }
    return 0;
}

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

static int send_all(int to, struct iovec *iov, size_t n_iov, int fd)
{
    union control control = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n_iov};
    ssize_t n;
    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    do
        n = sendmsg(to, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

/* The bytes of one reply; *ret_fd: the descriptor it carried, or -1. */
static ssize_t receive(int from, struct iovec *iov, size_t n_iov, int flags, int *ret_fd)
{
    union control control = {0};
    struct msghdr m = {.msg_iov = iov,
                       .msg_iovlen = n_iov,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_LEN(sizeof(int))}; /* not SPACE: two would fit there */
    ssize_t n;
    *ret_fd = -1;
    do
        n = recvmsg(from, &m, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
        *ret_fd = lift(*ret_fd);
    }
    if (m.msg_flags & MSG_TRUNC) {
        if (*ret_fd >= 0)
            close(*ret_fd);
        *ret_fd = -1;
        errno = EMSGSIZE;
        return -1;
    }
    return n;
}

/* A manager that has no room says so and hangs up before it was asked; what it said is still there. */
static ssize_t last_words(int from, struct iovec *iov, size_t n_iov, int *ret_fd)
{
    ssize_t n = receive(from, iov, n_iov, MSG_DONTWAIT, ret_fd);
    if (n <= 0)
        errno = ENODEV;
    return n > 0 ? n : -1;
}

static ssize_t ask(struct conn *c, struct iovec *out, struct iovec *in, size_t n_iov, int fd, int *ret_fd)
{
    bool fresh;
    int rc;
    for (;;) {
        if (conn_ready(c, &fresh) < 0)
            return -1;
        c->busy = true;
        rc = send_all(c->fd, out, n_iov, fd);
        if (rc == 0 || (errno != EPIPE && errno != ECONNRESET) || fresh)
            break;
        /* Nothing of the request arrived: a node that was started anew under this name may take it. */
        drop(c);
    }
    if (rc < 0 && errno != EPIPE && errno != ECONNRESET) {
        c->busy = false;
        return -1;
    }
    ssize_t n = rc < 0 ? 0 : receive(c->fd, in, n_iov, 0, ret_fd);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        n = last_words(c->fd, in, n_iov, ret_fd);
    c->busy = false;
    return n;
}

/*
 * One request and its reply. out and in: up to two pieces that follow the header. The reply's header replaces *msg
 * and its result becomes errno.
 */
static int talk(struct bh_sim_msg *msg, const struct iovec out[2], const struct iovec in[2], int fd,
                int *ret_fd)
{
    struct iovec to[3] = {{msg, sizeof(*msg)}, out[0], out[1]};
    struct iovec from[3] = {{msg, sizeof(*msg)}, in[0], in[1]};
    struct conn other = {0};
    /* In the middle of a request there is a signal handler, or was one that never came back. */
    struct conn *c = mine.busy && mine.pid == getpid() ? &other : &mine;
    const uint32_t op = msg->op;
    int got_fd = -1;
    ssize_t n = ask(c, to, from, 3, fd, &got_fd);
    bool whole = n >= (ssize_t)sizeof(*msg) && (msg->op == op || msg->op == BH_SIM_OP_N_) &&
                 (size_t)n - sizeof(*msg) == (size_t)msg->n_arg + msg->n_params + msg->n_body;
    if (n >= 0 && !whole)
        errno = EPROTO;
    else if (whole && msg->result < 0)
        errno = -msg->result;
    const bool good = whole && msg->op == op && msg->result >= 0;
    int error = errno;
    if (c == &other || !whole || msg->op != op)
        drop(c);
    if (got_fd >= 0 && (!good || !ret_fd))
        close(got_fd);
    else if (ret_fd)
        *ret_fd = got_fd;
    errno = error;
    return good ? 0 : -1;
}

int bh_sim_call(struct bh_sim_msg *msg, void *body, size_t body_max, int fd, int *ret_fd)
{
    const size_t n = (size_t)msg->n_arg + msg->n_params + msg->n_body;
    const struct iovec out[2] = {{body, n}, {NULL, 0}}, in[2] = {{body, body_max}, {NULL, 0}};
    return talk(msg, out, in, fd, ret_fd);
}

/* A request about an open file. A manager started anew does not know descriptors of the one before. */
static int about(int fd, struct bh_sim_msg *msg, const struct iovec out[2], const struct iovec in[2])
{
    if (fd < 0) {
        errno = EBADF;
        return -1;
    }
    if (talk(msg, out, in, fd, NULL) == 0)
        return 0;
    struct pollfd p = {.fd = fd};
    int error = errno;
    if (error == EBADF && poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
        error = ENODEV;
    errno = error;
    return -1;
}

static const struct iovec nothing[2];

static const struct {
    const char *path;
    uint8_t kind;
    bool numbered;
} devices[] = {
    {"/dev/nvidiactl", BH_FILE_CTL, false},
    {"/dev/nvidia-uvm-tools", BH_FILE_UVM_TOOLS, false},
    {"/dev/nvidia-uvm", BH_FILE_UVM, false},
    {"/dev/nvidia-modeset", BH_FILE_MODESET, false},
    {"/dev/nvidia-caps/nvidia-cap", BH_FILE_CAP, true},
    {"/dev/nvidia", BH_FILE_GPU, true},
};

int bh_sim_open(const char *path)
{
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        const size_t n = strlen(devices[i].path);
        uint64_t minor = 0;
        int fd = -1;
        if (strncmp(path, devices[i].path, n) != 0)
            continue;
        if (devices[i].numbered ? bh_uint_parse(path + n, UINT32_MAX, &minor, NULL) < 0 : path[n] != '\0')
            continue;
        struct bh_sim_msg msg = {.op = BH_SIM_OP_OPEN, .a = devices[i].kind, .b = minor};
        if (talk(&msg, nothing, nothing, -1, &fd) < 0)
            return -1;
        if (fd < 0)
            errno = EMFILE; /* this process has no number left, so the kernel dropped it on the way */
        return fd;
    }
    errno = ENOENT;
    return -1;
}

/* The UVM file's numbers carry no size. */
static const struct {
    uint32_t cmd, bytes;
} uvm_sizes[] = {
    {UVM_DEINITIALIZE, 0},
#define UVM_CALL(name, number, bytes, status) {number, bytes},
#include "gpu/abi/uvm.def"
#undef UVM_CALL
};

/* A program may leave the size of an allocation's parameters at 0 (the vendor's own library always does): the class
 * says it then. */
static uint32_t class_params(uint32_t class)
{
    static const struct {
        uint32_t class;
        int32_t bytes;
    } classes[] = {
#define CLASS(number, parents, params, kind) {number, params},
#include "simgpu/rm/classes.def"
#undef CLASS
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (classes[i].class == class && classes[i].bytes > 0)
            return (uint32_t)classes[i].bytes;
    return 0;
}

struct shape {
    uint32_t n_arg, n_params;
    void *params;
};

static struct shape shape_of(uint32_t cmd, const void *arg)
{
    struct shape s = {.n_arg = RM_IOC_SIZE(cmd)};
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof(uvm_sizes) / sizeof(uvm_sizes[0]); i++)
        if (uvm_sizes[i].cmd == cmd)
            return (struct shape){.n_arg = uvm_sizes[i].bytes};
    if (RM_IOC_NUMBER(cmd) == RM_ALLOC && s.n_arg == sizeof(struct rm_alloc)) {
        struct rm_alloc a;
        memcpy(&a, arg, sizeof(a));
        at = a.params;
        s.n_params = a.params_size ? a.params_size : class_params(a.class);
    } else if (RM_IOC_NUMBER(cmd) == RM_ALLOC && s.n_arg == sizeof(struct rm_alloc_short)) {
        struct rm_alloc_short a;
        memcpy(&a, arg, sizeof(a));
        at = a.params;
        s.n_params = a.params_size ? a.params_size : class_params(a.class);
    } else if (RM_IOC_NUMBER(cmd) == RM_CONTROL && s.n_arg == sizeof(struct rm_control)) {
        struct rm_control c;
        memcpy(&c, arg, sizeof(c));
        at = c.params;
        s.n_params = c.params_size;
    }
    s.params = (void *)(uintptr_t)at;
    if (!s.params)
        s.n_params = 0;
    return s;
}

int bh_sim_ioctl_direct(int fd, uint32_t cmd, void *arg)
{
    if (!arg) {
        errno = EFAULT;
        return -1;
    }
    const struct shape s = shape_of(cmd, arg);
    if ((uint64_t)s.n_arg + s.n_params > BH_SIM_BODY_MAX) {
        errno = EINVAL;
        return -1;
    }
    struct bh_sim_msg msg = {.op = BH_SIM_OP_IOCTL, .n_arg = s.n_arg, .n_params = s.n_params, .a = cmd};
    const struct iovec parts[2] = {{arg, s.n_arg}, {s.params, s.n_params}};
    return about(fd, &msg, parts, parts);
}

int bh_sim_ioctl(int fd, uint32_t cmd, void *arg)
{
    int rc = ioctl(fd, cmd, arg);
    return rc < 0 && errno == ENOTTY ? bh_sim_ioctl_direct(fd, cmd, arg) : rc;
}

/* The system call is made without MAP_FIXED: a socket refuses only after what stood there was unmapped. */
void *bh_sim_mmap(int fd, size_t length, int prot, int flags, uint64_t *ret_range)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MAP, .a = length, .b = (uint32_t)prot, .c = (uint32_t)flags};
    void *at = mmap(NULL, length, prot, flags & ~MAP_FIXED, fd, 0);
    if (at != MAP_FAILED || errno != ENODEV) {
        *ret_range = 0;
        return at;
    }
    if (about(fd, &msg, nothing, nothing) < 0)
        return MAP_FAILED;
    const uint64_t range = msg.a;
    at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        int error = errno;
        struct bh_sim_msg back = {.op = BH_SIM_OP_UNMAP, .a = range};
        (void)about(fd, &back, nothing, nothing);
        errno = error;
        return MAP_FAILED;
    }
    *ret_range = range;
    return at;
}

int bh_sim_munmap(int fd, void *at, size_t length, uint64_t range)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_UNMAP, .a = range};
    if (munmap(at, length) < 0)
        return -1;
    return range ? about(fd, &msg, nothing, nothing) : 0;
}

int bh_sim_touch(int fd, uint64_t range, uint32_t gpu)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_TOUCH, .a = range, .b = gpu};
    return about(fd, &msg, nothing, nothing);
}

int bh_sim_ring(int fd, uint32_t client, uint32_t channel, uint64_t work_ns, uint64_t *ret_fence,
                uint64_t *ret_done)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_SUBMIT, .a = client, .b = channel, .c = work_ns};
    if (about(fd, &msg, nothing, nothing) < 0)
        return -1;
    *ret_fence = msg.a;
    *ret_done = msg.b;
    return 0;
}

int bh_sim_doorbell(int fd, uint32_t client, uint32_t channel, uint64_t work_ns, uint64_t *ret_fence)
{
    uint64_t done;
    return bh_sim_ring(fd, client, channel, work_ns, ret_fence, &done);
}

int bh_sim_fence(int fd, uint32_t client, uint32_t channel, uint64_t *ret_done)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_FENCE, .a = client, .b = channel};
    if (about(fd, &msg, nothing, nothing) < 0)
        return -1;
    *ret_done = msg.a;
    return 0;
}

int bh_sim_wait(int fd, uint32_t client, uint32_t channel, uint64_t fence)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_WAIT, .a = client, .b = channel, .c = fence};
    return about(fd, &msg, nothing, nothing);
}

/* Bytes in or out, as many messages as they need. */
static int move(int fd, struct bh_sim_msg what, char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const size_t part = n - done < BH_SIM_BODY_MAX ? n - done : BH_SIM_BODY_MAX;
        struct bh_sim_msg msg = what;
        struct iovec piece[2] = {{bytes + done, part}, {NULL, 0}};
        const bool in = what.op == BH_SIM_OP_READ;
        msg.c += done;
        msg.d = part;
        msg.n_body = in ? 0 : (uint32_t)part;
        if (about(fd, &msg, in ? nothing : piece, in ? piece : nothing) < 0)
            return -1;
        done += part;
    }
    return 0;
}

int bh_sim_write(int fd, uint32_t client, uint32_t memory, uint64_t offset, const void *bytes, size_t n)
{
    /* An iovec has no const; what is sent is only read. */
    return move(fd, (struct bh_sim_msg){.op = BH_SIM_OP_WRITE, .a = client, .b = memory, .c = offset},
                (char *)(uintptr_t)bytes, n);
}

int bh_sim_read(int fd, uint32_t client, uint32_t memory, uint64_t offset, void *bytes, size_t n)
{
    return move(fd, (struct bh_sim_msg){.op = BH_SIM_OP_READ, .a = client, .b = memory, .c = offset}, bytes,
                n);
}

int bh_sim_fill(int fd, uint32_t client, uint32_t memory, uint64_t offset, uint8_t byte, uint64_t n)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_FILL, .a = client, .b = memory, .c = offset, .d = n, .e = byte};
    return about(fd, &msg, nothing, nothing);
}

/* What is asked of the node and not of a file: the reply's body must have just this size. */
static int fixed(struct bh_sim_msg *msg, void *ret, size_t n_out, size_t n)
{
    msg->n_body = (uint32_t)n_out;
    if (bh_sim_call(msg, ret, n, -1, NULL) < 0)
        return -1;
    if (msg->n_body == n)
        return 0;
    errno = EPROTO;
    return -1;
}

int bh_sim_hello(struct bh_sim_node_view *ret)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_HELLO, .a = BH_SIM_WIRE_VERSION};
    return fixed(&msg, ret, 0, sizeof(*ret));
}

int bh_sim_view(uint32_t gpu, struct bh_sim_gpu_view *ret)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_VIEW, .a = gpu};
    return fixed(&msg, ret, 0, sizeof(*ret));
}

int bh_sim_mig(struct bh_sim_mig_order *order)
{
    struct bh_sim_msg msg = {.op = BH_SIM_OP_MIG};
    return fixed(&msg, order, sizeof(*order), sizeof(*order));
}

ssize_t bh_sim_events(uint64_t after, struct bh_sim_event *ret, size_t max)
{
    const size_t most = BH_SIM_BODY_MAX / sizeof(*ret);
    struct bh_sim_msg msg = {.op = BH_SIM_OP_EVENTS, .a = after, .b = max < most ? max : most};
    if (bh_sim_call(&msg, ret, msg.b * sizeof(*ret), -1, NULL) < 0)
        return -1;
    return (ssize_t)(msg.n_body / sizeof(*ret));
}
