/* SPDX-License-Identifier: Apache-2.0 */
/* events_test.c - the ring, listeners that come back, and who hears what. */
#include "api/events.h"

#include "base/mem.h"
#include "base/test.h"

#include <stdio.h>

static const struct bh_api_grant all[] = {{BH_ROLE_VIEWER, NULL}}, of_a[] = {{BH_ROLE_TENANT_USER, "a"}};
static const struct bh_api_caller operator_ = {.grants = all, .n_grants = 1},
                                  user = {.grants = of_a, .n_grants = 1}, nobody = {.n_grants = 0};

static bool reads(const struct bh_events *e, struct bh_cursor *c, const struct bh_api_caller *by,
                  const char *want)
{
    struct bh_buf out;
    bh_buf_init(&out, 1 << 16);
    const bool any = bh_cursor_read(e, c, by, &out, 1 << 15);
    const bool same = strcmp(bh_buf_text(&out), want) == 0 && any == (*want != '\0');
    if (!same)
        printf("# got %s\n", bh_buf_text(&out));
    bh_buf_fini(&out);
    return same;
}

TEST(each_hears_what_is_his)
{
    struct bh_events e;
    bh_events_init(&e, 8, 7);
    struct bh_cursor op = bh_cursor_at(&e, NULL), mine = op, none = op;
    CHECK(reads(&e, &op, &operator_, ""));
    bh_events_add(&e, BH_API_KIND_JOB, 17, "a", "running");
    bh_events_add(&e, BH_API_KIND_LEASE, 3, "b", NULL);
    bh_events_add(&e, BH_API_KIND_GPU, 0, NULL, "lost");
    CHECK(reads(&e, &op, &operator_,
                "id: 7-1\nevent: job\ndata: {\"id\": \"J17\", \"tenant\": \"a\", \"state\": \"running\"}\n\n"
                "id: 7-2\nevent: lease\ndata: {\"id\": \"L3\", \"tenant\": \"b\"}\n\n"
                "id: 7-3\nevent: gpu\ndata: {\"id\": \"0\", \"state\": \"lost\"}\n\n"));
    CHECK(
        reads(&e, &mine, &user,
              "id: 7-1\nevent: job\ndata: {\"id\": \"J17\", \"tenant\": \"a\", \"state\": \"running\"}\n\n"));
    CHECK(reads(&e, &none, &nobody, ""));
    CHECK_EQ(mine.next, 4);
    CHECK(reads(&e, &mine, &user, ""));
    bh_events_fini(&e);
}

TEST(coming_back)
{
    static const char *const lost[] = {"6-1", "7-5", "7-99", "7-",   "-1",
                                       "x",   "",    "7",    "7-1x", "99999999999999999999-1"};
    struct bh_events e;
    bh_events_init(&e, 8, 7);
    for (uint64_t i = 1; i <= 4; i++)
        bh_events_add(&e, BH_API_KIND_HEALTH, i, NULL, NULL);
    CHECK_EQ(bh_cursor_at(&e, "7-0").next, 1);
    CHECK_EQ(bh_cursor_at(&e, "7-2").next, 3);
    CHECK(!bh_cursor_at(&e, "7-4").reset);
    for (size_t i = 0; i < BH_COUNT_OF(lost); i++) {
        const struct bh_cursor c = bh_cursor_at(&e, lost[i]);
        CHECK(c.reset && c.next == 5);
    }
    struct bh_cursor c = bh_cursor_at(&e, "x"), old = bh_cursor_at(&e, "7-0");
    CHECK(reads(&e, &c, &operator_, "id: 7-4\nevent: reset\ndata: {}\n\n"));
    CHECK(!bh_cursor_is_lost(&e, &old));
    for (uint64_t i = 5; i <= 8; i++)
        bh_events_add(&e, BH_API_KIND_HEALTH, i, NULL, NULL);
    CHECK(!bh_cursor_is_lost(&e, &old) && !bh_cursor_at(&e, "7-0").reset);
    bh_events_add(&e, BH_API_KIND_HEALTH, 9, NULL, NULL);
    CHECK(bh_cursor_is_lost(&e, &old) && bh_cursor_at(&e, "7-0").reset);
    bh_events_fini(&e);
}

TEST(no_more_than_fits)
{
    struct bh_events e;
    struct bh_buf out;
    bh_events_init(&e, 100, 1);
    struct bh_cursor c = bh_cursor_at(&e, NULL);
    for (uint64_t i = 0; i < 100; i++)
        bh_events_add(&e, BH_API_KIND_JOB, i + 1, "a", "running");
    size_t reads_ = 0;
    do {
        bh_buf_init(&out, 4096);
        CHECK(bh_cursor_read(&e, &c, &user, &out, 1024) && out.n <= 1024 && !out.full);
        bh_buf_fini(&out);
        reads_++;
    } while (c.next < e.next);
    CHECK(reads_ > 5);
    bh_events_fini(&e);
}

TEST_MAIN
