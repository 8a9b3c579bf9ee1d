/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 * 1024 };

static ssize_t write_if_ready(const char *text, size_t n)
{
    struct pollfd at = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&at, 1, 0) > 0)
        return write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
    errno = EAGAIN;
    return -1;
}

/* Whether writing waits is said of what was opened, which is the command's as well: so it is opened once more, where that can be. */
static ssize_t write_now(const char *text, size_t n)
{
    struct stat st;
    if (fstat(STDERR_FILENO, &st) < 0 || S_ISREG(st.st_mode))
        return write(STDERR_FILENO, text, n);
    if (S_ISSOCK(st.st_mode))
        return send(STDERR_FILENO, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    const int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno != ENXIO) /* somebody else's, or no /proc: as well as can be */
        return write_if_ready(text, n);
    const ssize_t wrote = fd >= 0 ? write(fd, text, n) : -1;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return wrote;
}

static void let_go(struct bh_aside *a)
{
    bh_buf_fini(&a->waiting);
    bh_buf_init(&a->waiting, MOST);
}

/* What nobody will ever read is let go. */
static void go_on(struct bh_aside *a)
{
    const ssize_t n = a->waiting.n ? write_now(a->waiting.at, a->waiting.n) : 0;
    if (n < 0 ? errno != EAGAIN && errno != EINTR : (size_t)n == a->waiting.n) {
        let_go(a);
    } else if (n > 0) {
        memmove(a->waiting.at, a->waiting.at + n, a->waiting.n - (size_t)n + 1);
        a->waiting.n -= (size_t)n;
        a->waiting.full = false;
    }
}

void bh_aside_say(struct bh_aside *a, const char *line)
{
    if (!a->waiting.max)
        let_go(a);
    go_on(a);
    bh_buf_str(&a->waiting, line);
    go_on(a);
}

void bh_aside_end(struct bh_aside *a)
{
    size_t done = 0;
    while (done < a->waiting.n) {
        const ssize_t n = write(STDERR_FILENO, a->waiting.at + done, a->waiting.n - done);
        if (n <= 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    bh_buf_fini(&a->waiting);
}
