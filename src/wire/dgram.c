/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dgram.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif
enum { QUEUE_MOST = 1 << 16 }; /* datagrams, and no kernel queues as many */

ssize_t bh_dgram_take(int socket, void *bytes, size_t max)
{
    struct iovec at = {.iov_base = bytes, .iov_len = max};
    struct msghdr m = {.msg_iov = &at, .msg_iovlen = 1};
    /* A look takes nothing out; no room for descriptors, and the flag says that there were some. */
    const ssize_t n = recvmsg(socket, &m, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    if (n >= 0 && m.msg_flags & MSG_CTRUNC) {
        errno = EPERM;
        return -1;
    }
    return n < 0 || recv(socket, NULL, 0, MSG_DONTWAIT) < 0 ? -1 : n;
}

void bh_dgram_no_fds(int socket)
{
    const int off = 0;
    (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

void bh_dgram_end(int socket)
{
    char byte;
    int left = QUEUE_MOST;
    if (shutdown(socket, SHUT_RD) < 0)
        return;
    while (left > 0 && bh_dgram_take(socket, &byte, 1) >= 0)
        left--;
    /* Shut down, and empty: nothing can be in it. */
    if (left > 0 && errno == EAGAIN)
        close(socket);
}
