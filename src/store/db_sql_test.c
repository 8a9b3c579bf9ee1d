/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(what_is_bound_comes_back)
{
    static const uint8_t bytes[] = {0, 1, 255};
    struct fix f;
    struct bh_sql q;
    size_t n;
    fix_init(&f);
    CHECK_EQ(bh_sql_get(f.s, "SELECT ?1, ?2, ?3, ?4, ?5, ?6", &q, &f.err), 0);
    bh_sql_int(&q, 1, -5);
    bh_sql_uint(&q, 2, INT64_MAX);
    bh_sql_text(&q, 3, "'; DROP TABLE jobs; --");
    bh_sql_blob(&q, 4, bytes, sizeof(bytes));
    bh_sql_text(&q, 5, NULL);
    bh_sql_blob(&q, 6, NULL, 0);
    CHECK_EQ(bh_sql_step(&q, &f.err), 1);
    CHECK_EQ(bh_sql_col_int(&q, 0), -5);
    CHECK_EQ(bh_sql_col_uint(&q, 0), 0);
    CHECK_EQ(bh_sql_col_uint(&q, 1), INT64_MAX);
    CHECK_STR(bh_sql_col_text(&q, 2, &f.arena), "'; DROP TABLE jobs; --");
    const uint8_t *got = bh_sql_col_blob(&q, 3, &f.arena, &n);
    CHECK_EQ(n, 3);
    CHECK_EQ(memcmp(got, bytes, 3), 0);
    CHECK(bh_sql_col_null(&q, 4));
    CHECK(bh_sql_col_text(&q, 4, &f.arena) == NULL);
    CHECK(!bh_sql_col_null(&q, 5));
    CHECK_EQ(bh_sql_step(&q, &f.err), 0);
    fix_fini(&f);
}

TEST(a_statement_is_prepared_once_and_forgets_what_it_was_given)
{
    static const char text[] = "SELECT ?1";
    struct fix f;
    struct bh_sql a, b;
    fix_init(&f);
    CHECK_EQ(bh_sql_get(f.s, text, &a, &f.err), 0);
    bh_sql_int(&a, 1, 7);
    CHECK_EQ(bh_sql_step(&a, &f.err), 1);
    bh_sql_done(&a);
    CHECK_EQ(bh_sql_get(f.s, text, &b, &f.err), 0);
    CHECK(a.stmt == b.stmt);
    CHECK_EQ(bh_sql_step(&b, &f.err), 1);
    CHECK(bh_sql_col_null(&b, 0));
    bh_sql_done(&b);
    fix_fini(&f);
}

TEST(failures_have_their_codes)
{
    struct fix f;
    struct bh_sql q;
    uint64_t changed;
    fix_init(&f);
    CHECK_EQ(bh_sql_get(f.s, "SELECT x FROM nowhere", &q, &f.err), BH_SYSTEM);
    CHECK(strstr(f.err.msg, "nowhere"));
    CHECK_EQ(bh_sql_get(f.s, "INSERT INTO notes(key, value) VALUES (?1, ?2)", &q, &f.err), 0);
    bh_sql_text(&q, 1, "k");
    bh_sql_text(&q, 2, "not a blob");
    CHECK_EQ(bh_sql_run(&q, NULL, &f.err), BH_INVALID);
    bh_sql_text(&q, 1, "k");
    CHECK_EQ(bh_sql_run(&q, NULL, &f.err), BH_INVALID);
    bh_sql_text(&q, 1, "k");
    bh_sql_blob(&q, 2, "v", 1);
    CHECK_EQ(bh_sql_run(&q, &changed, &f.err), 0);
    CHECK_EQ(changed, 1);
    bh_sql_text(&q, 1, "k");
    bh_sql_blob(&q, 2, "v", 1);
    CHECK_EQ(bh_sql_run(&q, NULL, &f.err), BH_CONFLICT);
    CHECK_EQ(bh_sql_get(f.s, "SELECT ?1", &q, &f.err), 0);
    bh_sql_uint(&q, 1, UINT64_MAX);
    CHECK_EQ(bh_sql_step(&q, &f.err), BH_TOO_LARGE);
    CHECK_EQ(bh_sql_get(f.s, "DELETE FROM jobs", &q, &f.err), 0);
    CHECK_EQ(bh_sql_run(&q, &changed, &f.err), 0);
    CHECK_EQ(changed, 0);
    CHECK(fix_job(&f, "red"));
    CHECK_EQ(bh_sql_run(&q, NULL, &f.err), BH_CONFLICT);
    CHECK_STR(f.err.msg, "a job is deleted only with a permit, when it is long over");
    fix_fini(&f);
}

TEST_MAIN
