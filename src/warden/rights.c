/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.c - effective user and capability of one thread, down and up again.
 *
 * The system calls are made bare: the C library would change every thread. With the effective user the kernel takes the
 * effective capabilities away and gives them back; the permitted ones stay.
 */
#include "warden/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set_user(uid_t uid)
{
    return syscall(SYS_setresuid, (uid_t)-1, uid, (uid_t)-1) == 0 ? 0 : -errno;
}

/* *ret_had: it was effective. */
static int set_admin(bool on, bool *ret_had)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, caps) != 0)
        return -errno;
    *ret_had = caps[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
    if (*ret_had == on)
        return 0;
    caps[0].effective ^= CAP_TO_MASK(CAP_SYS_ADMIN);
    return syscall(SYS_capset, &head, caps) == 0 ? 0 : -errno;
}

int bh_rights_lay_down(uid_t uid, bool admin, struct bh_rights *ret)
{
    *ret = (struct bh_rights){0};
    if (uid != geteuid() && uid != (uid_t)-1) {
        int rc = set_user(uid);
        ret->user = rc == 0;
        return rc;
    }
    return admin ? 0 : set_admin(false, &ret->admin);
}

void bh_rights_take_up(const struct bh_rights *rights)
{
    bool had;
    /* A warden that cannot become itself again could hold nothing: its tenants then fail closed. */
    if ((rights->user && set_user(getuid()) < 0) || (rights->admin && set_admin(true, &had) < 0))
        abort();
}
