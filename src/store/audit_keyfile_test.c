/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audit_keyfile.h"

#include "base/scratch.h"
#include "base/test.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char folder[512], path[600], other[600];
};

static bool make(struct scratch *s)
{
    if (!bh_scratch_make(s->folder, sizeof(s->folder), "key"))
        return false;
    (void)snprintf(s->path, sizeof(s->path), "%s/audit.key", s->folder);
    (void)snprintf(s->other, sizeof(s->other), "%s/other", s->folder);
    return true;
}

/* Of what was made; anything else keeps the folder. */
static void clear(const struct scratch *s)
{
    (void)unlink(s->path);
    (void)unlink(s->other);
    (void)rmdir(s->folder);
}

static bool make_key(struct bh_audit_secret *k)
{
    return bh_sign_key_new(&k->secret, NULL) == BH_OK &&
           bh_audit_key_make("log", k->secret.public, &k->key, NULL) == BH_OK;
}

TEST(saved_for_its_owner_alone_and_loaded)
{
    struct scratch s;
    struct bh_audit_secret k, back;
    struct stat st;
    struct bh_err err;
    CHECK(make(&s) && make_key(&k));
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), BH_NOT_FOUND);
    const mode_t before = umask(0);
    CHECK_EQ(bh_audit_keyfile_save(s.path, &k, &err), 0);
    (void)umask(before);
    CHECK(stat(s.path, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), 0);
    CHECK(bh_audit_key_eq(&k.key, &back.key) && memcmp(&k.secret, &back.secret, sizeof(k.secret)) == 0);
    /* again, over what is there */
    CHECK(make_key(&k));
    CHECK_EQ(bh_audit_keyfile_save(s.path, &k, &err), 0);
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), 0);
    CHECK(bh_audit_key_eq(&k.key, &back.key));
    clear(&s);
    CHECK(access(s.folder, F_OK) < 0); /* nothing else was left in it */
}

TEST(a_key_that_others_may_have_read_is_refused)
{
    struct scratch s;
    struct bh_audit_secret k, back;
    struct bh_err err;
    CHECK(make(&s) && make_key(&k));
    CHECK_EQ(bh_audit_keyfile_save(s.path, &k, &err), 0);
    CHECK(chmod(s.path, 0640) == 0);
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), BH_DENIED);
    CHECK(strstr(err.msg, "0640"));
    CHECK(chmod(s.path, 0600) == 0);
    CHECK(symlink(s.path, s.other) == 0);
    CHECK_EQ(bh_audit_keyfile_load(s.other, &back, &err), BH_DENIED);
    CHECK_EQ(bh_audit_keyfile_load(s.folder, &back, &err), BH_DENIED);
    clear(&s);
}

TEST(a_file_without_a_key_is_refused)
{
    struct scratch s;
    struct bh_audit_secret back;
    struct bh_err err;
    CHECK(make(&s));
    FILE *f = fopen(s.path, "w");
    CHECK(f != NULL);
    CHECK(fputs("PRIVATE+KEY+log+00000000+AAAA\n", f) >= 0 && fchmod(fileno(f), 0600) == 0 && fclose(f) == 0);
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), BH_INVALID);
    CHECK(strstr(err.msg, "audit.key"));
    clear(&s);
}

TEST(moved_into_the_place_of_another)
{
    struct scratch s;
    struct bh_audit_secret a, b, back;
    struct bh_err err;
    CHECK(make(&s) && make_key(&a) && make_key(&b));
    CHECK_EQ(bh_audit_keyfile_save(s.path, &a, &err), 0);
    CHECK_EQ(bh_audit_keyfile_save(s.other, &b, &err), 0);
    CHECK_EQ(bh_audit_keyfile_move(s.other, s.path, &err), 0);
    CHECK_EQ(bh_audit_keyfile_load(s.path, &back, &err), 0);
    CHECK(bh_audit_key_eq(&b.key, &back.key));
    CHECK_EQ(bh_audit_keyfile_move(s.other, s.path, &err), BH_NOT_FOUND);
    clear(&s);
}

TEST_MAIN
