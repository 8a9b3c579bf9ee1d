/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(a_job_comes_back_as_it_was_asked_for)
{
    struct fix f;
    struct bh_store_job j = a_job("red"), got;
    uint64_t id = 0;
    fix_init(&f);
    j.firm = true;
    j.order = -3;
    j.can = 5;
    j.deadline_ms = 77;
    j.profile = "1g.10gb";
    j.image = "img";
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), 0);
    CHECK_EQ(id, 1);
    CHECK_EQ(bh_store_job_get(f.s, &f.arena, id, &got, &f.err), 0);
    CHECK_STR(got.tenant, "red");
    CHECK_STR(got.user, "ada");
    CHECK_STR(got.name, "train");
    CHECK_STR(got.profile, "1g.10gb");
    CHECK_STR(got.image, "img");
    CHECK_STR(got.cwd, "/srv");
    CHECK_EQ(got.uid, 1000);
    CHECK_EQ(got.milli, 500);
    CHECK_EQ(got.memory_mib, 20000);
    CHECK_EQ(got.order, -3);
    CHECK_EQ(got.can, 5);
    CHECK_EQ(got.deadline_ms, 77);
    CHECK(got.firm);
    CHECK_EQ(got.priority, BH_PRIORITY_NORMAL);
    CHECK_EQ(got.state, BH_JOB_WAITING);
    CHECK_STR(got.argv[0], "python3");
    CHECK_STR(got.argv[1], "train.py");
    CHECK_STR(got.argv[2], "");
    CHECK(!got.argv[3]);
    CHECK_STR(got.env[1], "B=two words");
    CHECK(!got.env[2]);
    j.argv = j.env = NULL;
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), 0);
    CHECK_EQ(bh_store_job_get(f.s, &f.arena, id, &got, &f.err), 0);
    CHECK(!got.argv[0] && !got.env[0]);
    CHECK_EQ(bh_store_job_get(f.s, &f.arena, 99, &got, &f.err), BH_NOT_FOUND);
    fix_fini(&f);
}

TEST(what_is_no_job_is_refused)
{
    struct fix f;
    struct bh_store_job j = a_job("red");
    char *large = bh_alloc(5 << 20, 1);
    uint64_t id = 0;
    fix_init(&f);
    j.gpus = 0;
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), BH_INVALID);
    j = a_job("");
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), BH_INVALID);
    j = a_job("red");
    j.tier = 99;
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), BH_INVALID);
    j = a_job("red");
    j.submit_ms = UINT64_MAX;
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), BH_TOO_LARGE);
    j = a_job("red");
    memset(large, 'x', (5 << 20) - 1);
    const char *const argv[] = {large, NULL};
    j.argv = argv;
    CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), BH_TOO_LARGE);
    CHECK_EQ(number(f.s, "SELECT count(*) FROM jobs"), 0);
    free(large);
    fix_fini(&f);
}

TEST(a_job_steps_and_ends_once)
{
    struct fix f;
    struct bh_store_job got;
    fix_init(&f);
    const uint64_t id = fix_job(&f, "red");
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_RUNNING, BH_JOB_WAITING, 5, "", &f.err), BH_CONFLICT);
    CHECK(strstr(f.err.msg, "J1 is waiting, not running"));
    CHECK_EQ(bh_store_job_step(f.s, 99, BH_JOB_RUNNING, BH_JOB_WAITING, 5, "", &f.err), BH_NOT_FOUND);
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_WAITING, BH_JOB_ENDED, 5, "", &f.err), BH_INVALID);
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_WAITING, BH_JOB_WAITING, 5, "no room", &f.err), 0);
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_WAITING, BH_JOB_RUNNING, 6, "", &f.err), 0);
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_RUNNING, BH_JOB_WAITING, 7, "preempted", &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, id, BH_JOB_END_NONE, 0, 0, 8, "", &f.err), BH_INVALID);
    CHECK_EQ(bh_store_job_end(f.s, id, BH_JOB_END_KILLED, -1, 9, 8, "oom", &f.err), 0);
    CHECK_EQ(bh_store_job_end(f.s, id, BH_JOB_END_EXITED, 0, 0, 9, "", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_WAITING, BH_JOB_RUNNING, 9, "", &f.err), BH_CONFLICT);
    CHECK_EQ(bh_store_job_get(f.s, &f.arena, id, &got, &f.err), 0);
    CHECK_EQ(got.state, BH_JOB_ENDED);
    CHECK_EQ(got.end, BH_JOB_END_KILLED);
    CHECK_EQ(got.signal, 9);
    CHECK_EQ(got.status, -1);
    CHECK_EQ(got.state_ms, 8);
    CHECK_STR(got.why, "oom");
    CHECK_STR(bh_job_end_str(got.end), "killed");
    CHECK_STR(bh_job_state_str(got.state), "ended");
    CHECK_EQ(bh_job_state_find("running"), BH_JOB_RUNNING);
    CHECK_EQ(bh_job_state_find("asleep"), -1);
    fix_fini(&f);
}

/* Every filter and both directions against the same asked of all the rows. */
TEST(lists_are_filtered_and_paged)
{
    static const char *const tenants[] = {NULL, "red", "blue", "none"}, *const users[] = {NULL, "ada", "bob"};
    struct fix f;
    bh_store_jobs every = {0};
    fix_init(&f);
    for (uint32_t i = 0; i < 60; i++) {
        struct bh_store_job j = a_job(i % 3 ? "red" : "blue");
        uint64_t id;
        j.user = i % 4 ? "ada" : "bob";
        CHECK_EQ(bh_store_job_add(f.s, &j, &id, &f.err), 0);
        if (i % 5 == 1)
            CHECK_EQ(bh_store_job_step(f.s, id, BH_JOB_WAITING, BH_JOB_RUNNING, 2, "", &f.err), 0);
        if (i % 5 > 2)
            CHECK_EQ(bh_store_job_end(f.s, id, BH_JOB_END_LOST, 0, 0, 2, "", &f.err), 0);
    }
    const struct bh_store_page whole_page = {.limit = 1000};
    CHECK_EQ(bh_store_jobs_list(f.s, &f.arena, NULL, &whole_page, &every, &f.err), 0);
    CHECK_EQ(every.n, 60);
    for (uint32_t k = 0; k < 4 * 3 * 8 * 2; k++) {
        const struct bh_store_job_filter filter = {
            .tenant = tenants[k % 4], .user = users[k / 4 % 3], .states = k / 12 % 8, .brief = k % 2};
        struct bh_store_page page = {.limit = 7, .newest = k / 96};
        uint64_t count = 0, want = 0, last = page.newest ? 61 : 0, seen = 0;
        for (size_t i = 0; i < every.n; i++) {
            const struct bh_store_job *j = &every.at[i];
            want += (!filter.tenant || strcmp(filter.tenant, j->tenant) == 0) &&
                    (!filter.user || strcmp(filter.user, j->user) == 0) &&
                    (!filter.states || filter.states >> j->state & 1);
        }
        CHECK_EQ(bh_store_jobs_count(f.s, &filter, &count, &f.err), 0);
        CHECK_EQ(count, want);
        for (;;) {
            bh_store_jobs part = {0};
            CHECK_EQ(bh_store_jobs_list(f.s, &f.arena, &filter, &page, &part, &f.err), 0);
            CHECK(part.n <= 7);
            for (size_t i = 0; i < part.n; i++) {
                const struct bh_store_job *j = &part.at[i];
                CHECK(page.newest ? j->id < last : j->id > last);
                CHECK(!filter.tenant || strcmp(filter.tenant, j->tenant) == 0);
                CHECK(!filter.states || filter.states >> j->state & 1);
                CHECK((j->argv[0] == NULL) == filter.brief);
                last = j->id;
            }
            seen += part.n;
            page.after = last;
            const bool end = part.n < 7;
            bh_vec_fini(&part);
            if (end)
                break;
        }
        CHECK_EQ(seen, want);
    }
    bh_vec_fini(&every);
    fix_fini(&f);
}

TEST_MAIN
