/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/rights.h"

#include "base/test.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_admin(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &head, caps) == 0 && caps[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

TEST(nothing_is_laid_down_for_an_equal)
{
    struct bh_rights r;
    struct bh_rights_own own;
    bh_rights_read(&own);
    const bool before = is_admin();
    CHECK_EQ(bh_rights_lay_down(&own, geteuid(), true, &r), 0);
    CHECK(!r.user && !r.admin);
    CHECK_EQ(is_admin(), before);
    bh_rights_take_up(&r);
    CHECK_EQ(is_admin(), before);
}

TEST(administration_goes_and_comes_back)
{
    struct bh_rights r;
    struct bh_rights_own own;
    bh_rights_read(&own);
    const bool before = is_admin();
    CHECK_EQ(bh_rights_lay_down(&own, geteuid(), false, &r), 0);
    CHECK(!is_admin());
    CHECK_EQ(r.admin, before);
    bh_rights_take_up(&r);
    CHECK_EQ(is_admin(), before);
    CHECK_EQ(bh_rights_lay_down(&own, (uid_t)-1, false, &r), 0); /* nobody is known */
    CHECK(!is_admin());
    bh_rights_take_up(&r);
    CHECK_EQ(is_admin(), before);
}

TEST(another_user_has_what_that_user_has)
{
    enum { NOBODY = 65534 };
    struct bh_rights r;
    struct bh_rights_own own;
    bh_rights_read(&own);
    const uid_t me = geteuid();
    const bool before = is_admin();
    int rc = bh_rights_lay_down(&own, NOBODY, true, &r);
    if (me != 0) {
        CHECK(rc < 0 || me == NOBODY); /* only root can */
        return;
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(geteuid(), NOBODY);
    CHECK(!is_admin());
    bh_rights_take_up(&r);
    CHECK_EQ(geteuid(), me);
    CHECK_EQ(is_admin(), before);
}

TEST_MAIN
