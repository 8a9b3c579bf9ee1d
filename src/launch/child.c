/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - forks with one end of a connection each. */
#include "launch/child.h"

#include "wire/fds.h"
#include "wire/lease.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int bh_child_start(void (*be)(const void *arg, int to_parent), const void *arg, struct bh_child *ret,
                   struct bh_err *err)
{
    int pair[2];
    *ret = (struct bh_child){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return bh_fail(err, BH_SYSTEM, "socketpair: %s", strerrordesc_np(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        be(arg, pair[1]);
    }
    const int error = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return bh_fail(err, BH_SYSTEM, "fork: %s", strerrordesc_np(error));
    }
    *ret = (struct bh_child){.pid = pid, .fd = pair[0]};
    return BH_OK;
}

int bh_child_answer(const struct bh_child *c, const char *who, uint32_t *ret_uid, bool *ret_died,
                    struct bh_err *err)
{
    struct bh_lease_answer answer;
    const int rc = bh_fds_recv(c->fd, &answer, sizeof(answer), NULL, 0, err);
    if (ret_died)
        *ret_died = rc == BH_NOT_FOUND;
    if (rc == BH_NOT_FOUND)
        return bh_fail(err, BH_SYSTEM, "%s ended before it was ready", who);
    if (rc < 0)
        return bh_wrap(err, rc, "%s", who);
    if (ret_uid)
        *ret_uid = answer.uid;
    answer.text[sizeof(answer.text) - 1] = '\0';
    return answer.code < 0 ? bh_fail(err, (enum bh_code)answer.code, "%s", answer.text) : BH_OK;
}

void bh_child_close(struct bh_child *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

int bh_child_reap(struct bh_child *c)
{
    int status = 0;
    bh_child_close(c);
    (void)waitpid(c->pid, &status, 0);
    c->pid = 0;
    return status;
}
