/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cert.h"

#include "base/scratch.h"
#include "base/test.h"

#include <sys/stat.h>
#include <unistd.h>

#define NOW_MS UINT64_C(1800000000000)
#define DAY_MS UINT64_C(86400000)

struct scratch {
    char folder[512], path[600], other[600];
};

static bool begin(struct scratch *s)
{
    if (!bh_scratch_make(s->folder, sizeof(s->folder), "cert"))
        return false;
    (void)snprintf(s->path, sizeof(s->path), "%s/https.pem", s->folder);
    (void)snprintf(s->other, sizeof(s->other), "%s/other", s->folder);
    return true;
}

TEST(made_once_and_found_again)
{
    struct scratch s;
    struct bh_cert first, again;
    struct stat st;
    CHECK(begin(&s));
    CHECK_EQ(bh_cert_own(s.path, "node7", "10.0.0.7", NOW_MS, &first, NULL), BH_OK);
    CHECK(first.made);
    CHECK_EQ(strlen(first.print), 95);
    CHECK_EQ(first.until_ms, NOW_MS + BH_CERT_DAYS * DAY_MS);
    CHECK(stat(s.path, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK_EQ(bh_cert_own(s.path, "node7", "10.0.0.7", NOW_MS + DAY_MS, &again, NULL), BH_OK);
    CHECK(!again.made);
    CHECK_STR(again.print, first.print);
    CHECK_STR(again.key_pem, first.key_pem);
    CHECK(!strstr(again.cert_pem, "PRIVATE"));
    bh_cert_fini(&first);
    bh_cert_fini(&again);
    CHECK(bh_scratch_remove(s.folder));
}

TEST(made_anew_when_it_is_no_good_any_more)
{
    static const struct {
        const char *host, *address;
        uint64_t at_ms;
        bool made;
    } later[] = {{"node7", "10.0.0.7", NOW_MS + 300 * DAY_MS, false},
                 {"localhost", NULL, NOW_MS, false},
                 {"node7", "127.0.0.1", NOW_MS, false},
                 {"node7", "10.0.0.7", NOW_MS + 336 * DAY_MS, true}, /* soon over */
                 {"node7", "10.0.0.7", NOW_MS + 1000 * DAY_MS, true},
                 {"node8", "10.0.0.7", NOW_MS, true},
                 {"node7", "10.0.0.8", NOW_MS, true},
                 {"node7", "fd00::7", NOW_MS, true}};
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        struct scratch s;
        struct bh_cert first, again;
        CHECK(begin(&s));
        CHECK_EQ(bh_cert_own(s.path, "node7", "10.0.0.7", NOW_MS, &first, NULL), BH_OK);
        CHECK_EQ(bh_cert_own(s.path, later[i].host, later[i].address, later[i].at_ms, &again, NULL), BH_OK);
        CHECK_EQ(again.made, later[i].made);
        CHECK_EQ(strcmp(first.print, again.print) != 0, later[i].made);
        bh_cert_fini(&first);
        bh_cert_fini(&again);
        CHECK(bh_scratch_remove(s.folder));
    }
}

TEST(a_file_that_others_may_read_is_refused)
{
    struct scratch s;
    struct bh_cert c;
    struct bh_err err;
    CHECK(begin(&s));
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &c, NULL), BH_OK);
    bh_cert_fini(&c);
    CHECK(chmod(s.path, 0640) == 0);
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &c, &err), BH_DENIED);
    CHECK(!c.cert_pem && !c.key_pem);
    CHECK(chmod(s.path, 0600) == 0);
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &c, &err), BH_OK);
    bh_cert_fini(&c);
    CHECK(rename(s.path, s.other) == 0 && symlink(s.other, s.path) == 0);
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &c, &err), BH_DENIED);
    CHECK(unlink(s.path) == 0 && bh_scratch_put(s.folder, "https.pem", "half a file"));
    CHECK(chmod(s.path, 0600) == 0);
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &c, &err), BH_OK);
    CHECK(c.made);
    bh_cert_fini(&c);
    CHECK(bh_scratch_remove(s.folder));
}

TEST(the_operators_own)
{
    struct scratch s;
    struct bh_cert one, two, c;
    struct bh_err err;
    CHECK(begin(&s));
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &one, NULL), BH_OK);
    CHECK_EQ(unlink(s.path), 0);
    CHECK_EQ(bh_cert_own(s.path, "node7", NULL, NOW_MS, &two, NULL), BH_OK);
    CHECK(bh_scratch_put(s.folder, "https.pem", one.cert_pem) &&
          bh_scratch_put(s.folder, "other", one.key_pem));
    CHECK_EQ(bh_cert_load(s.path, s.other, &c, &err), BH_OK);
    CHECK_STR(c.print, one.print);
    CHECK(!c.made);
    bh_cert_fini(&c);
    CHECK(bh_scratch_put(s.folder, "other", two.key_pem)); /* of another certificate */
    CHECK_EQ(bh_cert_load(s.path, s.other, &c, &err), BH_INVALID);
    CHECK(strstr(err.msg, "not the certificate's"));
    CHECK(bh_scratch_put(s.folder, "other", "no key"));
    CHECK_EQ(bh_cert_load(s.path, s.other, &c, &err), BH_INVALID);
    CHECK_EQ(bh_cert_load(s.other, s.other, &c, &err), BH_INVALID);
    CHECK_EQ(unlink(s.other), 0);
    CHECK_EQ(bh_cert_load(s.path, s.other, &c, &err), BH_NOT_FOUND);
    bh_cert_fini(&one);
    bh_cert_fini(&two);
    CHECK(bh_scratch_remove(s.folder));
}

TEST_MAIN
