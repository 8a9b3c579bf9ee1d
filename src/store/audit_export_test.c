/* SPDX-License-Identifier: Apache-2.0 */
/* audit_export_test.c - what is exported verifies without the database, and what was done to the file is found. */
#include "store/audit_export.h"

#include "base/str.h"
#include "base/test.h"
#include "store/audit_fixture.h"

struct text {
    struct bh_buf all;
};

static int keep(void *arg, const char *line, size_t n, struct bh_err *err)
{
    struct text *t = arg;
    bh_buf_add(&t->all, line, n);
    return t->all.full ? bh_fail(err, BH_TOO_LARGE, "too much") : 0;
}

static bool export(struct audit_fixture *f, const struct bh_audit_export_options *o, struct text *t,
                   struct bh_audit_exported *ret)
{
    struct bh_audit_exported done;
    bh_buf_init(&t->all, 1 << 22);
    int rc = bh_audit_export(f->store, o, keep, t, &done, &f->err);
    if (ret)
        *ret = done;
    return rc == BH_OK;
}

/* How many things are wrong with it; -1: it is no export. */
static int read_back(const char *text, size_t n, struct bh_audit_verifier *v, struct audit_findings *found)
{
    struct bh_audit_import im = {.v = v};
    int rc = BH_OK;
    bh_vec_fini(&found->all);
    v->found = audit_findings_add;
    v->arg = found;
    for (const char *at = text, *end = text + n; rc == BH_OK && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t len = newline ? (size_t)(newline - at) : (size_t)(end - at);
        rc = bh_audit_import_line(&im, at, len, NULL);
        at += len + 1;
    }
    if (rc == BH_OK)
        rc = bh_audit_import_end(&im, NULL);
    bh_audit_import_fini(&im);
    bh_audit_verify_fini(v);
    return rc < 0 ? -1 : (int)v->findings;
}

static int read_plain(const struct text *t, struct audit_findings *found)
{
    struct bh_audit_verifier v = {0};
    return read_back(t->all.at, t->all.n, &v, found);
}

static bool fill(struct audit_fixture *f, unsigned n, uint64_t seed)
{
    uint8_t bytes[2048];
    struct bh_choice c = {bytes, sizeof(bytes)};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    for (unsigned i = 0; i < n; i++)
        if (audit_fixture_any(f, &c) < 0)
            return false;
    return true;
}

static const struct bh_audit_event root_user = {.sub = "user:root"};

TEST(a_whole_log_goes_out_and_verifies)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct text t;
    struct bh_audit_exported done;
    const struct bh_audit_export_options o = {0};
    CHECK_EQ(audit_fixture_init(&f, 7), 0);
    CHECK(fill(&f, 20, 1));
    CHECK_EQ(bh_audit_rotate(f.audit, &root_user, &f.err), 0);
    CHECK(fill(&f, 18, 2));
    CHECK(export(&f, &o, &t, &done));
    CHECK(done.records > 40 && done.size == done.records && done.unsigned_tail < 7);
    struct bh_audit_verifier v = {.trusted = bh_audit_current_key(f.audit)};
    CHECK_EQ(read_back(t.all.at, t.all.n, &v, &found), 0);
    CHECK_EQ(v.records, done.records);
    CHECK_EQ(v.signed_size, done.size - done.unsigned_tail);
    bh_buf_fini(&t.all);
    /* and after retention */
    uint64_t dropped;
    CHECK_EQ(bh_audit_prune(f.audit, INT64_MAX, &root_user, &dropped, &f.err), 0);
    CHECK(fill(&f, 9, 3));
    CHECK(export(&f, &o, &t, &done));
    CHECK_EQ(read_plain(&t, &found), 0);
    bh_buf_fini(&t.all);
    audit_fixture_fini(&f);
}

/* Every way to harm a file a little; the whole log is small so that each byte gets its turn. */
TEST(no_byte_of_an_export_can_be_changed)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct text t;
    const struct bh_audit_export_options whole = {0}, part = {.tenant = "red"};
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT, .tenant = "red", .sub = "user:ada"};
    CHECK_EQ(audit_fixture_init(&f, 3), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(bh_audit_checkpoint(f.audit, &f.err), 0);
    for (int k = 0; k < 2; k++) {
        CHECK(export(&f, k ? &part : &whole, &t, NULL));
        CHECK_EQ(read_plain(&t, &found), 0);
        for (size_t i = 0; i < t.all.n; i++) {
            const char was = t.all.at[i];
            /* between the pieces of a line a blank is a blank */
            if (was == '\n')
                continue;
            t.all.at[i] = (char)(was ^ 1 << (i % 7));
            if (read_plain(&t, &found) == 0) {
                printf("# %s: byte %zu, '%c' to '%c'\n", k ? "part" : "whole", i, was, t.all.at[i]);
                CHECK(false);
            }
            t.all.at[i] = was;
        }
        bh_buf_fini(&t.all);
    }
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

/* Line k out, lines k and k + 1 swapped, the file cut after line k. */
TEST(no_line_can_be_taken_out_moved_or_cut_off)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct text t;
    const struct bh_audit_export_options whole = {0}, part = {.tenant = "red"};
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT, .tenant = "red"};
    CHECK_EQ(audit_fixture_init(&f, 4), 0);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(bh_audit_checkpoint(f.audit, &f.err), 0);
    for (int k = 0; k < 2; k++) {
        CHECK(export(&f, k ? &part : &whole, &t, NULL));
        const char *line[64];
        size_t n = 0;
        for (const char *at = t.all.at; *at && n < 63; at = strchr(at, '\n') + 1)
            line[n++] = at;
        line[n] = t.all.at + t.all.n;
        CHECK(n > 10);
        for (size_t i = 0; i < n; i++) {
            struct bh_audit_verifier out = {0}, cut = {0}, moved = {0};
            struct bh_buf other;
            bh_buf_init(&other, 1 << 22);
            bh_buf_add(&other, t.all.at, (size_t)(line[i] - t.all.at));
            CHECK(i == 0 || read_back(other.at, other.n, &cut, &found) != 0);
            bh_buf_str(&other, line[i + 1]);
            CHECK(read_back(other.at, other.n, &out, &found) != 0);
            if (i + 1 < n) {
                other.n = (size_t)(line[i] - t.all.at);
                bh_buf_add(&other, line[i + 1], (size_t)(line[i + 2 <= n ? i + 2 : n] - line[i + 1]));
                bh_buf_add(&other, line[i], (size_t)(line[i + 1] - line[i]));
                bh_buf_str(&other, i + 2 <= n ? line[i + 2] : "");
                CHECK(read_back(other.at, other.n, &moved, &found) != 0);
            }
            bh_buf_fini(&other);
        }
        bh_buf_fini(&t.all);
    }
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST(a_part_holds_one_tenant_and_proves_it)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct text t;
    struct bh_audit_exported done;
    const struct bh_audit_export_options o = {.tenant = "red"};
    CHECK_EQ(audit_fixture_init(&f, 6), 0);
    CHECK(fill(&f, 30, 5));
    CHECK_EQ(bh_audit_rotate(f.audit, &root_user, &f.err), 0);
    CHECK(fill(&f, 30, 6));
    CHECK(export(&f, &o, &t, &done));
    CHECK(strstr(t.all.at, "\"tenant\":\"red\""));
    CHECK(!strstr(t.all.at, "blue"));
    CHECK(done.records > 5 && done.records < 40);
    CHECK_EQ(read_plain(&t, &found), 0);
    /* somebody else's record in it, though it is real */
    bh_buf_fini(&t.all);
    /* after retention the rest can still be proved */
    uint64_t dropped;
    CHECK_EQ(bh_audit_prune(f.audit, f.now_ns / 1000000 - 20, &root_user, &dropped, &f.err), 0);
    CHECK(dropped > 0);
    CHECK(fill(&f, 30, 7));
    CHECK(export(&f, &o, &t, &done));
    CHECK_EQ(read_plain(&t, &found), 0);
    bh_buf_fini(&t.all);
    audit_fixture_fini(&f);
}

TEST(a_part_goes_on_from_a_checkpoint_that_was_kept)
{
    struct audit_fixture f, other;
    struct audit_findings found = {0};
    struct bh_arena arena = {0};
    struct text t;
    uint64_t size;
    const char *note, *strange;
    CHECK_EQ(audit_fixture_init(&f, 6), 0);
    CHECK_EQ(audit_fixture_init(&other, 6), 0);
    CHECK(fill(&f, 20, 8));
    CHECK_EQ(bh_audit_checkpoint_find(f.store, UINT64_MAX, true, &arena, &size, &note, &f.err), 0);
    CHECK_EQ(bh_audit_checkpoint_find(other.store, UINT64_MAX, true, &arena, &size, &strange, &f.err), 0);
    CHECK(fill(&f, 20, 9));
    const struct bh_audit_export_options with = {.tenant = "red",
                                                 .from_note = note,
                                                 .n_from_note = strlen(note)},
                                         without = {.tenant = "red"};
    struct bh_audit_verifier v = {.saved_note = note, .n_saved_note = strlen(note)};
    CHECK(export(&f, &with, &t, NULL));
    CHECK_EQ(read_back(t.all.at, t.all.n, &v, &found), 0);
    CHECK(v.saved_held);
    v = (struct bh_audit_verifier){.saved_note = strange, .n_saved_note = strlen(strange)};
    CHECK(read_back(t.all.at, t.all.n, &v, &found) > 0);
    bh_buf_fini(&t.all);
    /* nothing leads from the one to the other: it is not passed over */
    CHECK(export(&f, &without, &t, NULL));
    v = (struct bh_audit_verifier){.saved_note = note, .n_saved_note = strlen(note)};
    CHECK_EQ(read_back(t.all.at, t.all.n, &v, &found), 1);
    CHECK(audit_findings_has(&found, BH_WRONG_UNPROVED, 0));
    bh_buf_fini(&t.all);
    bh_vec_fini(&found.all);
    bh_arena_fini(&arena);
    audit_fixture_fini(&f);
    audit_fixture_fini(&other);
}

TEST(a_record_of_another_tenant_does_not_pass_as_ones_own)
{
    struct audit_fixture f;
    struct audit_findings found = {0};
    struct text t;
    const struct bh_audit_export_options o = {.tenant = "red"};
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT, .tenant = "red"};
    CHECK_EQ(audit_fixture_init(&f, 6), 0);
    CHECK_EQ(audit_fixture_add(&f, &e), 0);
    CHECK_EQ(bh_audit_checkpoint(f.audit, &f.err), 0);
    CHECK(export(&f, &o, &t, NULL));
    char *name = strstr(t.all.at, "\"tenant\":\"red\"");
    CHECK(name != NULL);
    memcpy(name, "\"tenant\":\"rad\"", 14); /* the head's */
    CHECK(read_plain(&t, &found) > 0);
    CHECK(audit_findings_has(&found, BH_WRONG_ORDER, 4));
    bh_buf_fini(&t.all);
    bh_vec_fini(&found.all);
    audit_fixture_fini(&f);
}

TEST_MAIN
