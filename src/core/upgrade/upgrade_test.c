/* SPDX-License-Identifier: Apache-2.0 */
#include "core/upgrade/upgrade.h"

#include "base/test.h"
#include "base/units.h"

static const struct bh_upgrade_gpu cards[] = {
    {0, "ok", NULL}, {1, "ok", NULL}, {2, "cordoned", "a fan"}, {3, "ok", NULL}, {4, "ok", NULL}};
static const struct bh_upgrade_lease leases[] = {
    {.id = "L1", .job = "J1", .tenant = "chat", .user = "ada", .gpus = 1},
    {.id = "L2", .job = "J2", .tenant = "lab", .user = "bob", .gpus = 4, .can_requeue = true},
    {.id = "L3", .job = "J3", .tenant = "lab", .user = "bob", .gpus = 2, .end_ms = 9000},
    {.id = "L4", .job = "J4", .tenant = "lab", .user = "eve", .gpus = 8, .can_requeue = true, .idle = true},
    {.id = "L6", .job = "J6", .tenant = "lab", .user = "eve", .gpus = 2, .can_requeue = true, .idle = true},
    {.id = "L5",
     .job = "J5",
     .tenant = "lab",
     .user = "eve",
     .gpus = 2,
     .end_ms = 7000,
     .can_requeue = true,
     .firm = true},
};

static struct bh_upgrade_ask ask_of(const char *from, const char *to)
{
    struct bh_upgrade_ask ask = {.kind = BH_UPGRADE_DRIVER,
                                 .from = from,
                                 .to = to,
                                 .gpus = 31,
                                 .now_ms = 1000,
                                 .cards = cards,
                                 .n_cards = 5,
                                 .leases = leases,
                                 .n_leases = 6};
    ask.day = bh_date_parse("2026-11-15", &ask.day, NULL) == BH_OK ? ask.day : 0;
    return ask;
}

TEST(who_leaves_and_in_which_order)
{
    static const char *const order[] = {"L4", "L2", "L5", "L3", "L1", "L6"};
    static const uint8_t way[] = {BH_LEAVES_IDLE, BH_LEAVES_REQUEUE, BH_LEAVES_ENDS,
                                  BH_LEAVES_ENDS, BH_LEAVES_ASK,     BH_LEAVES_LAST};
    const struct bh_upgrade_ask ask = ask_of("580.95.05", "580.159.03");
    struct bh_upgrade u;
    size_t n = 0;
    bh_upgrade_plan(&ask, &u);
    for (size_t i = 0; i < u.steps.n; i++)
        if (u.steps.at[i].kind == BH_STEP_LEAVE && n < BH_COUNT_OF(order)) {
            CHECK_STR(u.steps.at[i].lease->id, order[n]);
            CHECK_EQ(u.steps.at[i].way, way[n]);
            CHECK(n != 1 || strcmp(u.steps.at[i].command, "bulkhead drain 2") == 0);
            CHECK(n != 4 || strcmp(u.steps.at[i].command, "bulkhead describe L1") == 0);
            n++;
        }
    CHECK_EQ(n, 6);
    CHECK_EQ(u.not_before_ms, 9000);
    CHECK_EQ(u.blockers.n, 1);
    CHECK_STR(u.blockers.at[0],
              "L1 (J1) of tenant chat must not be interrupted, and when it ends is not known: ask ada");
    CHECK_EQ(u.tenants.n, 2);
    CHECK(u.tenants.at[0].n_leases == 5 && u.tenants.at[0].n_asked == 0 && u.tenants.at[1].n_asked == 1);
    bh_upgrade_fini(&u);
}

/* Nothing is changed before everybody left, nothing is given away before it was looked at. */
TEST(steps_and_gates)
{
    static const char letters[] = {'C', 'L', 'G', 'X', 'R'}; /* in the order of enum bh_upgrade_step_kind */
    char seen[32] = "";
    const struct bh_upgrade_ask ask = ask_of("580.95.05", "580.159.03");
    struct bh_upgrade u;
    bh_upgrade_plan(&ask, &u);
    for (size_t i = 0; i < u.steps.n && i + 1 < sizeof(seen); i++)
        seen[i] = letters[u.steps.at[i].kind];
    CHECK_STR(seen, "CCCCCLLLLLLGXGRRRRR");
    CHECK_STR(u.steps.at[0].sentence,
              "GPU 4 takes nobody new; nobody is on it"); /* who is ready at once comes first */
    CHECK_STR(u.steps.at[0].command, "bulkhead cordon 4");
    CHECK_STR(u.notes.at[0], "GPU 2 is cordoned already: a fan");
    CHECK_STR(u.steps.at[18].command, "bulkhead resume 4");
    bh_upgrade_fini(&u);
}

TEST(firmware_of_one_card_touches_those_on_it)
{
    struct bh_upgrade_ask ask = ask_of(NULL, "96.00.A0");
    struct bh_upgrade u;
    ask.kind = BH_UPGRADE_FIRMWARE;
    ask.what = "vbios";
    ask.gpus = 1;
    bh_upgrade_plan(&ask, &u);
    CHECK_EQ(u.tenants.n, 1);
    CHECK_STR(u.tenants.at[0].name, "chat");
    CHECK_EQ(u.fixes.n, 0);
    CHECK_EQ(u.steps.n, 6);
    bh_upgrade_fini(&u);
    ask.gpus = 16;
    bh_upgrade_plan(&ask, &u);
    CHECK(u.tenants.n == 0 && u.blockers.n == 0 && u.not_before_ms == 0);
    bh_upgrade_fini(&u);
}

TEST(what_it_mends)
{
    struct bh_upgrade_ask ask = ask_of("580.95.05", "580.159.03");
    struct bh_upgrade u;
    bh_upgrade_plan(&ask, &u);
    CHECK(u.fixes.n > 0 && u.n_open_after == 0);
    for (size_t i = 0; i < u.fixes.n; i++)
        CHECK(u.fixes.at[i].days > 0 && strcmp(u.fixes.at[i].advisory->branch, "580") == 0);
    const size_t all = u.fixes.n;
    bh_upgrade_fini(&u);
    ask.to = "580.126.09"; /* some, not all */
    bh_upgrade_plan(&ask, &u);
    CHECK(u.fixes.n < all && u.n_open_after > 0);
    bh_upgrade_fini(&u);
    ask = ask_of("580.159.03", "580.95.05");
    bh_upgrade_plan(&ask, &u);
    CHECK(u.fixes.n == 0 && u.notes.n == 2);
    CHECK_STR(u.notes.at[0], "580.95.05 is older than 580.159.03");
    bh_upgrade_fini(&u);
    ask = ask_of("580.95.05", "575.51.02");
    bh_upgrade_plan(&ask, &u);
    CHECK(u.notes.n >= 2 && strstr(u.notes.at[0], "the branch of 575.51.02 gets no more fixes"));
    bh_upgrade_fini(&u);
    ask = ask_of("580.95.05", "beta");
    bh_upgrade_plan(&ask, &u);
    CHECK_EQ(u.fixes.n, 0);
    bh_upgrade_fini(&u);
}

TEST(who_does_not_accept_it)
{
    struct bh_text old = {.s = "580"};
    struct bh_tenant tenants[] = {{.name = "lab"}, {.name = "chat", .drivers = {.at = &old, .n = 1}}};
    struct bh_pool pools[] = {{.name = "cards", .drivers = {.at = &old, .n = 1}}};
    struct bh_policy policy = {.tenants = {.at = tenants, .n = 2}, .pools = {.at = pools, .n = 1}};
    struct bh_upgrade_ask ask = ask_of("580.95.05", "595.71.05");
    struct bh_upgrade u;
    ask.policy = &policy;
    ask.n_leases = 0;
    bh_upgrade_plan(&ask, &u);
    CHECK_EQ(u.blockers.n, 2);
    CHECK_STR(u.blockers.at[0],
              "tenant chat does not accept driver 595.71.05: see its `drivers` in the policy");
    CHECK_STR(u.blockers.at[1],
              "pool cards is not qualified for driver 595.71.05: see its `drivers` in the policy");
    bh_upgrade_fini(&u);
    ask.to = "580.159.03";
    bh_upgrade_plan(&ask, &u);
    CHECK_EQ(u.blockers.n, 0);
    bh_upgrade_fini(&u);
}

TEST(words)
{
    CHECK_STR(bh_upgrade_way_str(BH_LEAVES_ASK), "ask");
    CHECK_STR(bh_upgrade_step_str(BH_STEP_GATE), "gate");
    CHECK_STR(bh_upgrade_way_str(BH_LEAVES_LAST), "last");
}

TEST_MAIN
