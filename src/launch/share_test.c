/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher says of governors that go and come; how it finds them is tried with real ones in tests/govern. */
#include "launch/share.h"

#include "base/test.h"

#include <string.h>

static char said[600];
static int lines;

static void hear(void *arg, const char *line)
{
    (void)arg;
    (void)snprintf(said, sizeof(said), "%s", line);
    lines++;
}

/* Somebody looks for one already, so that nobody is started here. */
static struct bh_share_link looks(void)
{
    lines = 0;
    said[0] = '\0';
    return (struct bh_share_link){.seeker = {.fd = -1, .pid = 1}, .governor = -1, .tell = hear};
}

static const struct bh_child warden = {.fd = -1};
static const struct bh_lease_ask gone = {.what = BH_LEASE_ASK_GONE}, joined = {.what = BH_LEASE_ASK_JOINED};

TEST(shares_go_on_when_the_next_one_has_taken_the_lease)
{
    struct bh_share_link l = looks();
    bh_share_asked(&l, &warden, &gone);
    CHECK(lines == 0 && l.asked); /* nobody knows yet */
    bh_share_asked(&l, &warden, &joined);
    CHECK_EQ(lines, 1);
    CHECK_STR(said, "the governor was gone; shares go on with another one");
}

TEST(a_refusal_is_told_once_and_as_it_is)
{
    const struct bh_lease_ask refused = {BH_LEASE_ASK_REFUSED, BH_REFUSED},
                              busy = {BH_LEASE_ASK_REFUSED, BH_BUSY};
    struct bh_share_link l = looks();
    bh_share_asked(&l, &warden, &gone);
    for (int i = 0; i < 5; i++)
        bh_share_asked(&l, &warden, &refused);
    CHECK(lines == 1 && strstr(said, "does not take this lease: it shares by slices alone") &&
          strstr(said, "not held for now"));
    bh_share_asked(&l, &warden, &joined);
    CHECK(lines == 2 && strstr(said, "go on with another one"));
    bh_share_asked(&l, &warden, &busy); /* another time it is news again */
    CHECK(lines == 3 && strstr(said, "it has no room"));
}

TEST_MAIN
