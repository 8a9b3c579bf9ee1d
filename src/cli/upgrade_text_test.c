/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/upgrade_text.h"

#include "base/test.h"

static const struct bh_upgrade_gpu cards[] = {{0, "ok", NULL}};
static const struct bh_upgrade_lease leases[] = {
    {.id = "L1", .job = "J1", .tenant = "chat\033[2J", .user = "ada", .gpus = 1},
    {.id = "L2", .job = "J2", .tenant = "lab", .user = "bob", .gpus = 1, .end_ms = 86400000},
};

static struct bh_upgrade_ask ask_of(size_t first, size_t n)
{
    return (struct bh_upgrade_ask){.kind = BH_UPGRADE_DRIVER,
                                   .from = "580.95.05",
                                   .to = "580.159.03",
                                   .day = 20772, /* in November 2026 */
                                   .gpus = 1,
                                   .cards = cards,
                                   .n_cards = 1,
                                   .leases = leases + first,
                                   .n_leases = n};
}

static const char *text_of(const struct bh_upgrade_ask *ask, bool json)
{
    static char text[16384];
    struct bh_cli cli = {.width = 100};
    struct bh_arena a = {0};
    struct bh_upgrade u;
    bh_buf_init(&cli.out, sizeof(text));
    bh_upgrade_plan(ask, &u);
    if (json)
        bh_upgrade_json(&cli.out, ask, &u);
    else
        bh_upgrade_text(&cli, &a, ask, &u);
    (void)snprintf(text, sizeof(text), "%s", bh_buf_text(&cli.out));
    bh_buf_fini(&cli.out);
    bh_upgrade_fini(&u);
    bh_arena_fini(&a);
    return text;
}

TEST(for_people)
{
    struct bh_upgrade_ask ask = ask_of(0, 2);
    const char *t = text_of(&ask, false);
    CHECK(strstr(t, "driver 580.95.05 → 580.159.03") && strstr(t, "those who stand in the way were asked"));
    CHECK(strstr(t, "L1 (J1) of tenant chat\\x1b[2J must not be interrupted") && !strchr(t, '\033'));
    CHECK(strstr(t, "BULLETIN") && strstr(t, " days") && strstr(t, "no advisory"));
    CHECK(strstr(t, "bulkhead cordon 0") && strstr(t, "bulkhead resume 0"));
    ask = ask_of(1, 1);
    t = text_of(&ask, false);
    CHECK(strstr(t, "1970-01-02 00:00:00Z") && !strstr(t, "stands in the way"));
    ask = ask_of(0, 0);
    t = text_of(&ask, false);
    CHECK(strstr(t, "nobody") && strstr(t, "now"));
}

TEST(for_programs)
{
    struct bh_upgrade_ask ask = ask_of(0, 2);
    const char *t = text_of(&ask, true);
    CHECK(strstr(t, "\"ready\": false") && strstr(t, "\"change\": \"driver\"") &&
          strstr(t, "\"way\": \"ask\""));
    CHECK(strstr(t, "\"end_ms\": 86400000") && strstr(t, "\"open_after\": 0"));
    ask = ask_of(1, 1);
    ask.kind = BH_UPGRADE_FIRMWARE;
    ask.what = "vbios";
    ask.to = NULL;
    t = text_of(&ask, true);
    CHECK(strstr(t, "\"ready\": true") && strstr(t, "\"what\": \"vbios\"") && strstr(t, "\"to\": null"));
}

TEST_MAIN
