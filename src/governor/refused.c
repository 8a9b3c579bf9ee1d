/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void bh_refused_init(struct bh_refused *r, int epoll, uint32_t first)
{
    *r =
        (struct bh_refused){.epoll = epoll, .first = first, .spare = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    for (uint32_t i = 0; i < BH_REFUSED_PLACES; i++)
        r->fds[i] = -1;
}

static void forget(struct bh_refused *r, uint32_t place)
{
    if (r->fds[place] >= 0)
        close(r->fds[place]);
    r->fds[place] = -1;
}

void bh_refused_fini(struct bh_refused *r)
{
    for (uint32_t i = 0; i < BH_REFUSED_PLACES; i++)
        forget(r, i);
    if (r->spare >= 0)
        close(r->spare);
}

bool bh_refused_send_away(struct bh_refused *r, int listener)
{
    if (r->spare >= 0)
        close(r->spare);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    r->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

void bh_refused_add(struct bh_refused *r, int fd)
{
    const uint32_t place = r->next;
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = r->first + place};
    r->next = (place + 1) % BH_REFUSED_PLACES;
    forget(r, place);
    (void)shutdown(fd, SHUT_WR);
    if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e) == 0)
        r->fds[place] = fd;
    else
        close(fd);
}

void bh_refused_hear(struct bh_refused *r, uint32_t place)
{
    char word;
    const ssize_t n = place < BH_REFUSED_PLACES && r->fds[place] >= 0
                          ? recv(r->fds[place], &word, sizeof(word), MSG_DONTWAIT)
                          : 1;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        forget(r, place);
}
