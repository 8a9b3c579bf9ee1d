/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.h - making a call for somebody without lending them more than they have.
 *
 * The driver takes privilege from whoever enters it. A warden that is root would make root of every tenant.
 */
#ifndef BH_WARDEN_RIGHTS_H
#define BH_WARDEN_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Who this process is, asked once: it does not change but by what is below. */
struct bh_rights_own {
    uid_t uid;
    bool admin; /* has CAP_SYS_ADMIN in force */
};
void bh_rights_read(struct bh_rights_own *ret);

/* What was put down, to be taken up again. */
struct bh_rights {
    bool user, admin;
};

/* From here on this thread is that user, and may do what needs CAP_SYS_ADMIN only if `admin`. 0, or a negative errno
 * with nothing changed. */
int bh_rights_lay_down(const struct bh_rights_own *own, uid_t uid, bool admin, struct bh_rights *ret);
void bh_rights_take_up(const struct bh_rights *rights);

#endif
