/* SPDX-License-Identifier: Apache-2.0 */
/* gate_driver.c - a call of the tenant's, issued on its file and with its rights. */
#include "warden/gate_driver.h"

#include "gpu/abi/rm.h"
#include "warden/rights.h"

#include <errno.h>
#include <sys/ioctl.h>

int bh_gate_fetch(const struct bh_gate_call *c, uint64_t at, void *to, size_t n)
{
    bh_watchdog_enter(c->watchdog, c->tid);
    const int rc = bh_remote_read(c->tid, at, to, n);
    bh_watchdog_leave(c->watchdog);
    return rc;
}

/* The number of a thread that was killed meanwhile may be somebody else's: nothing is written there. */
int bh_gate_store_all(const struct bh_gate_call *c, const struct bh_remote_piece *pieces, size_t n)
{
    if (n == 0)
        return 0;
    if (c->listener >= 0 && ioctl(c->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->notif->id) < 0)
        return -ESRCH;
    bh_watchdog_enter(c->watchdog, c->tid);
    const int rc = bh_remote_write(c->tid, pieces, n);
    bh_watchdog_leave(c->watchdog);
    return rc;
}

int bh_gate_store(const struct bh_gate_call *c, uint64_t at, const void *from, size_t n)
{
    return bh_gate_store_all(c, &(struct bh_remote_piece){at, from, n}, 1);
}

int bh_gate_issue(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, size_t size, void *arg)
{
    struct bh_rights rights;
    /* Whose it is could not be read: then it is not done as anybody. */
    if (c->process->uid == (uid_t)-1)
        return -EPERM;
    int rc = bh_rights_lay_down(&g->rights, c->process->uid, c->process->admin, &rights);
    if (rc < 0)
        return rc;
    bh_gate_issuing(g, c, number, arg);
    rc = g->driver->ioctl(c->file.fd, RM_IOC(number, size), arg) < 0 ? -errno : 0;
    bh_gate_issued(g, number, arg);
    bh_rights_take_up(&rights);
    return rc;
}

int bh_gate_carry_out(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, size_t size,
                      void *arg)
{
    if (ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->notif->id) < 0)
        return -ESRCH;
    return bh_gate_issue(g, c, number, size, arg);
}
