/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dgram.h - datagrams from strangers, on a unix socket that anybody may send to.
 *
 * Who sends copies its bytes before it touches the socket, so that nobody ever waits for a page of its: not other senders, nor
 * whoever reads. What is left is descriptors, which may come along. Whoever takes them out of the socket closes them, and a close
 * takes as long as the file likes (a TCP connection that lingers: for hours). So datagrams with descriptors are never taken out
 * here, and a socket that may have some is not closed but left to the end of the process, when nothing lingers.
 */
#ifndef BH_WIRE_DGRAM_H
#define BH_WIRE_DGRAM_H

#include <stddef.h>
#include <sys/types.h>

/* Bytes of one datagram, which may be none and more than `max`: those are not there then. Never waits. -1 and errno: EAGAIN, there
 * is none; EPERM, it has descriptors, is left where it is, and nothing that is behind it is ever heard. */
ssize_t bh_dgram_take(int socket, void *bytes, size_t max);
/* Senders are told by EPERM that no descriptors go there, where the kernel has that (6.16). */
void bh_dgram_no_fds(int socket);
/* Nobody can send to it any more, and it is closed, or is at the end of this process. */
void bh_dgram_end(int socket);

#endif
