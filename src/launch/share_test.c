/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher says of governors that go and come; how it finds them is tried with real ones in tests/govern. */
#include "launch/share.h"

#include "base/test.h"
#include "wire/fds.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Who looks for one, and what it comes back with. */
static _Noreturn void finds(const void *found, int to_parent)
{
    const struct bh_lease_given *given = found;
    const int fd = STDERR_FILENO; /* any will do */
    (void)!bh_fds_send(to_parent, given, sizeof(*given), &fd, given->code < 0 ? 0 : 1, NULL);
    _exit(0);
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
    CHECK_STR(said, "the governor was gone, or silent; shares go on");
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
    CHECK(lines == 2 && strstr(said, "shares go on"));
    bh_share_asked(&l, &warden, &busy); /* another time it is news again */
    CHECK(lines == 3 && strstr(said, "it has no room"));
}

TEST(the_reason_is_the_governors)
{
    static const struct {
        int32_t code;
        const char *why;
    } reasons[] = {{BH_REFUSED, "it shares by slices alone"},
                   {BH_BUSY, "it has no room"},
                   {BH_CONFLICT, "it is of another version"},
                   {BH_INVALID, "it takes this promise for none"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct bh_share_link l = looks();
        bh_share_asked(&l, &warden, &(struct bh_lease_ask){BH_LEASE_ASK_REFUSED, reasons[i].code});
        CHECK(lines == 1 && strstr(said, reasons[i].why));
    }
}

/* What is found is handed on, with the version it takes, and not kept. */
TEST(what_is_found_goes_to_the_warden)
{
    const struct bh_lease_given found = {.version = 4}, none = {.code = BH_REFUSED, .text = "no card"};
    struct bh_share_link l = looks();
    struct bh_lease_given given;
    int pair[2], fd = -1;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const struct bh_child heard = {.fd = pair[0]};
    CHECK_EQ(bh_child_start(finds, &found, &l.seeker, NULL), BH_OK);
    bh_share_hear(&l, &heard);
    CHECK_EQ(bh_fds_recv(pair[1], &given, sizeof(given), &fd, 1, NULL), BH_OK);
    CHECK(given.code == 0 && given.version == 4 && fd >= 0);
    CHECK(l.governor == -1 && l.seeker.pid == 0 && lines == 0);
    close(fd);
    CHECK_EQ(bh_child_start(finds, &none, &l.seeker, NULL), BH_OK);
    bh_share_hear(&l, &heard);
    CHECK_EQ(bh_fds_recv(pair[1], &given, sizeof(given), NULL, 0, NULL), BH_OK);
    CHECK_EQ(given.code, BH_REFUSED);
    CHECK_STR(given.text, "no card");
    /* One that did not say. (0 is for launchers that are older.) */
    const struct bh_lease_given mute = {.version = 0};
    CHECK_EQ(bh_child_start(finds, &mute, &l.seeker, NULL), BH_OK);
    bh_share_hear(&l, &heard);
    CHECK_EQ(bh_fds_recv(pair[1], &given, sizeof(given), &fd, 1, NULL), BH_OK);
    CHECK(given.code == 0 && given.version == UINT32_MAX);
    close(fd);
    /* Nobody is there to take it just then. */
    CHECK_EQ(bh_child_start(finds, &found, &l.seeker, NULL), BH_OK);
    bh_share_hear(&l, &warden);
    CHECK_EQ(l.governor, -1);
    close(pair[0]);
    close(pair[1]);
}

/* To one whose governor is gone: not to one that was not asked for, and not each time it is tried. */
TEST(that_there_is_none_is_told_once)
{
    static const struct {
        bool asked;
        int32_t code;
        int lines;
    } steps[] = {{false, BH_REFUSED, 0}, {true, 0, 0},           {true, BH_REFUSED, 1},
                 {true, BH_REFUSED, 1},  {false, BH_REFUSED, 1}, {true, 0, 1},
                 {false, BH_REFUSED, 1}, {false, 0, 1},          {true, BH_REFUSED, 2}};
    struct bh_share_link l = looks();
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct bh_lease_given found = {.code = steps[i].code, .text = "no card"};
        l.asked = steps[i].asked;
        CHECK_EQ(bh_child_start(finds, &found, &l.seeker, NULL), BH_OK);
        bh_share_hear(&l, &warden);
        CHECK_EQ(lines, steps[i].lines);
        CHECK(!l.asked);
    }
    CHECK_STR(said,
              "the governor is gone, and another one cannot be had: no card; shares are not held for now");
}

/* Found again and again, and mute: once that may be chance, and it is told once. */
TEST(that_it_is_there_and_mute_is_told_once)
{
    const struct bh_lease_given mute = {.version = UINT32_MAX}, well = {.version = 5};
    struct bh_share_link l = looks();
    static const struct {
        bool asked, mute;
        int lines;
    } steps[] = {{false, true, 0}, {false, true, 0}, {true, true, 0},  {true, false, 0},
                 {true, true, 1},  {true, true, 1},  {true, false, 1}, {true, true, 1}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        l.asked = steps[i].asked;
        CHECK_EQ(bh_child_start(finds, steps[i].mute ? &mute : &well, &l.seeker, NULL), BH_OK);
        bh_share_hear(&l, &warden);
        CHECK_EQ(lines, steps[i].lines);
    }
    CHECK(strstr(said, "the governor does not answer") && strstr(said, "shares are not held for now"));
    l.seeker = (struct bh_child){.fd = -1, .pid = 1};
    bh_share_asked(&l, &warden, &joined); /* another time it is news again */
    CHECK(lines == 2 && l.mute == 0);
}

TEST_MAIN
