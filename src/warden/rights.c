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

static int read_caps(struct __user_cap_header_struct *head,
                     struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3])
{
    *head = (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, head, caps) == 0 ? 0 : -errno;
}

static int set_admin(bool on)
{
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    int rc = read_caps(&head, caps);
    if (rc < 0)
        return rc;
    caps[0].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
    caps[0].effective |= on ? CAP_TO_MASK(CAP_SYS_ADMIN) : 0;
    return syscall(SYS_capset, &head, caps) == 0 ? 0 : -errno;
}

void bh_rights_read(struct bh_rights_own *ret)
{
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    ret->uid = geteuid();
    /* Where it cannot be read, it is laid down each time. */
    ret->admin = read_caps(&head, caps) < 0 || (caps[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN));
}

int bh_rights_lay_down(const struct bh_rights_own *own, uid_t uid, bool admin, struct bh_rights *ret)
{
    *ret = (struct bh_rights){0};
    if (uid != own->uid && uid != (uid_t)-1) {
        int rc = set_user(uid);
        ret->user = rc == 0;
        return rc;
    }
    if (admin || !own->admin)
        return 0;
    int rc = set_admin(false);
    ret->admin = rc == 0;
    return rc;
}

void bh_rights_take_up(const struct bh_rights *rights)
{
    /* A warden that cannot become itself again could hold nothing: its tenants then fail closed. */
    if ((rights->user && set_user(getuid()) < 0) || (rights->admin && set_admin(true) < 0))
        abort();
}
