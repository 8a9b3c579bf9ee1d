/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audit_record.h"

#include "base/choice.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/test.h"

static struct bh_audit_record sample(void)
{
    static const char *const rules[] = {"BH-003", "BH-076"};
    return (struct bh_audit_record){
        .is = {.event = BH_AUDIT_ALLOC_DENY,
               .outcome = BH_AUDIT_DENIED,
               .sub = "user:ada",
               .idp = "unix",
               .authn = "peercred",
               .has_uid = true,
               .uid = 0,
               .tenant = "red",
               .action = "POST /v1/jobs",
               .object_type = "job",
               .object_id = "J17",
               .before = "waiting",
               .after = "refused",
               .reason = "no \"room\"\n",
               .request_id = "r1",
               .policy_version = "3",
               .src_addr = "unix",
               .rule_ids = rules,
               .n_rule_ids = 2},
        .seq = 42,
        .utc_ns = INT64_C(1785585600000000001),
        .mono_ns = UINT64_MAX,
        .boot_id = "b",
        .host = "node1",
        .component = "bulkheadd",
        .version = "0.1.0",
    };
}

TEST(one_form_with_keys_in_order)
{
    struct bh_audit_record r = sample();
    struct bh_buf b;
    struct bh_err err;
    bh_buf_init(&b, BH_AUDIT_BODY_MAX);
    CHECK_EQ(bh_audit_encode(&r, &b, &err), 0);
    CHECK_STR(
        bh_buf_text(&b),
        "{\"action\":\"POST /v1/jobs\",\"after\":\"refused\",\"before\":\"waiting\",\"boot\":\"b\","
        "\"event\":\"alloc.deny\",\"host\":\"node1\",\"mono\":\"18446744073709551615\","
        "\"object\":{\"id\":\"J17\",\"type\":\"job\"},"
        "\"origin\":{\"component\":\"bulkheadd\",\"version\":\"0.1.0\"},\"outcome\":\"denied\",\"policy\":\"3\","
        "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\","
        "\"principal\":{\"authn\":\"peercred\",\"idp\":\"unix\",\"sub\":\"user:ada\",\"uid\":0},"
        "\"reason\":\"no \\\"room\\\"\\n\",\"request\":\"r1\",\"rules\":[\"BH-003\",\"BH-076\"],\"seq\":42,"
        "\"src\":\"unix\",\"tenant\":\"red\",\"time\":\"2026-08-01T12:00:00.000000001Z\"}");
    bh_buf_fini(&b);
}

/* Computed apart from this code: hashlib.sha256(b'\0' + len(body).to_bytes(8, 'big') + body). */
TEST(hash_and_chain_are_as_they_are_written_down)
{
    struct bh_hash h, chain, zero = {{0}};
    char hex[BH_HASH_HEX];
    bh_audit_hash("{}", 2, &h);
    CHECK_STR(bh_hash_hex(&h, hex), "f387a6754ef0e476eb5007471b999a2ca1cab036402c857257571b0a309604db");
    bh_audit_chain(&zero, &h, &chain);
    CHECK_STR(bh_hash_hex(&chain, hex), "e9e43ac48013832f952d84a0924a3866d8a0ef831af50ddfba1d1c60436b3f4f");
}

TEST(what_was_written_is_read_back)
{
    struct bh_audit_record r = sample(), back;
    struct bh_arena arena = {0};
    struct bh_buf b;
    struct bh_err err;
    bh_buf_init(&b, BH_AUDIT_BODY_MAX);
    CHECK_EQ(bh_audit_encode(&r, &b, &err), 0);
    CHECK_EQ(bh_audit_decode(b.at, b.n, &arena, &back, &err), 0);
    CHECK_EQ(back.seq, 42);
    CHECK_EQ(back.utc_ns, r.utc_ns);
    CHECK(back.mono_ns == UINT64_MAX && back.is.has_uid && back.is.uid == 0);
    CHECK_EQ(back.is.event, BH_AUDIT_ALLOC_DENY);
    CHECK_EQ(back.is.outcome, BH_AUDIT_DENIED);
    CHECK_STR(back.is.reason, "no \"room\"\n");
    CHECK_STR(back.is.rule_ids[1], "BH-076");
    CHECK(back.is.session == NULL && back.signature == NULL);
    bh_arena_fini(&arena);
    bh_buf_fini(&b);
}

TEST(every_byte_changed_is_another_record_or_none)
{
    struct bh_audit_record r = sample(), back;
    struct bh_buf b, again;
    struct bh_err err;
    bh_buf_init(&b, BH_AUDIT_BODY_MAX);
    CHECK_EQ(bh_audit_encode(&r, &b, &err), 0);
    for (size_t i = 0; i < b.n; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct bh_arena arena = {0};
            b.at[i] = (char)(b.at[i] ^ 1 << bit);
            if (bh_audit_decode(b.at, b.n, &arena, &back, &err) == BH_OK) {
                /* then it is the one form of what it says */
                bh_buf_init(&again, BH_AUDIT_BODY_MAX);
                CHECK_EQ(bh_audit_encode(&back, &again, &err), 0);
                CHECK(again.n == b.n && memcmp(again.at, b.at, b.n) == 0);
                bh_buf_fini(&again);
            }
            b.at[i] = (char)(b.at[i] ^ 1 << bit);
            bh_arena_fini(&arena);
        }
    bh_buf_fini(&b);
}

TEST(what_is_not_the_one_form_is_refused)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"event\":\"alloc.grant\"}",
        "{\"event\":\"alloc.grant\",\"mono\":\"0\",\"outcome\":\"success\",\"seq\":1}",
        "{\"nothing\":1}",
    };
    struct bh_audit_record r;
    struct bh_err err;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++) {
        struct bh_arena arena = {0};
        CHECK_EQ(bh_audit_decode(bad[i], strlen(bad[i]), &arena, &r, &err), BH_INVALID);
        bh_arena_fini(&arena);
    }
}

TEST(odd_texts_become_clean_ones)
{
    struct bh_buf b;
    char *large = bh_alloc(10001, 1);
    memset(large, 'x', 10000);
    bh_buf_init(&b, 1 << 16);
    bh_audit_quote(&b, "a\xff\x01\x7f\xc3\xbc/\b");
    CHECK_STR(bh_buf_text(&b), "\"a\xef\xbf\xbd\\u0001\x7f\xc3\xbc/\\b\"");
    b.n = 0;
    bh_audit_clean(&b, large);
    CHECK_EQ(b.n, BH_AUDIT_TEXT_MAX);
    CHECK(bh_str_ends(bh_buf_text(&b), "xx\xe2\x80\xa6"));
    /* cleaning what is clean changes nothing, also where it was cut */
    struct bh_buf twice;
    bh_buf_init(&twice, 1 << 16);
    bh_audit_clean(&twice, bh_buf_text(&b));
    CHECK_STR(bh_buf_text(&twice), bh_buf_text(&b));
    bh_buf_fini(&twice);
    bh_buf_fini(&b);
    free(large);
}

TEST(instants_from_1970_to_9999)
{
    char t[BH_AUDIT_TIME_MAX];
    int64_t back;
    CHECK(bh_audit_time_format(0, t));
    CHECK_STR(t, "1970-01-01T00:00:00.000000000Z");
    CHECK(bh_audit_time_format(INT64_MAX, t));
    CHECK_STR(t, "2262-04-11T23:47:16.854775807Z");
    CHECK(bh_audit_time_parse(t, &back));
    CHECK_EQ(back, INT64_MAX);
    CHECK(!bh_audit_time_format(-1, t));
    CHECK(!bh_audit_time_parse("2026-08-01T12:00:00Z", &back));
    CHECK(!bh_audit_time_parse("2026-08-01T12:00:00.00000000 Z", &back));
    CHECK(!bh_audit_time_parse("9999-12-31T23:59:59.000000000Z", &back));
}

TEST(mandatory_is_what_the_rule_says)
{
    CHECK(!bh_audit_is_optional(BH_AUDIT_ALLOC_GRANT));
    CHECK(!bh_audit_is_optional(BH_AUDIT_AUDIT_CHECKPOINT));
    CHECK(bh_audit_is_optional(BH_AUDIT_READ_API));
    CHECK(bh_audit_is_optional(BH_AUDIT_HEARTBEAT_TICK));
    unsigned optional = 0;
    for (unsigned k = 0; k < BH_AUDIT_EVENTS; k++) {
        CHECK(strchr(bh_audit_names[k], '.') != NULL);
        CHECK_EQ(bh_audit_kind_find(bh_audit_names[k]), k); /* no name twice */
        optional += bh_audit_is_optional((enum bh_audit_kind)k);
    }
    CHECK_EQ(optional, 8);
    CHECK_EQ(bh_audit_kind_find("alloc.none"), BH_AUDIT_EVENTS);
}

TEST(random_records_come_back)
{
    uint8_t bytes[512];
    static const char *const texts[] = {NULL,           "",    "x", "\xe2\x82\xac", "\"", "\\u0041",
                                        "\xed\xa0\x80", "\x1f"};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_arena arena = {0};
        struct bh_buf a, b;
        struct bh_audit_record r = sample(), back;
        struct bh_err err;
        const char **at[] = {&r.is.sub,         &r.is.idp,       &r.is.tenant, &r.is.reason, &r.is.action,
                             &r.is.object_type, &r.is.object_id, &r.boot_id,   &r.signature, &r.component};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        for (size_t i = 0; i < BH_COUNT_OF(at); i++)
            *at[i] = texts[bh_choose(&c, 8)];
        r.is.has_uid = bh_choose(&c, 2);
        r.is.n_rule_ids = bh_choose(&c, 3);
        r.utc_ns = (int64_t)bh_choose(&c, UINT32_MAX) << 31;
        bh_buf_init(&a, BH_AUDIT_BODY_MAX);
        bh_buf_init(&b, BH_AUDIT_BODY_MAX);
        CHECK_EQ(bh_audit_encode(&r, &a, &err), 0);
        CHECK_EQ(bh_audit_decode(a.at, a.n, &arena, &back, &err), 0);
        CHECK_EQ(bh_audit_encode(&back, &b, &err), 0);
        CHECK_STR(bh_buf_text(&a), bh_buf_text(&b));
        bh_buf_fini(&a);
        bh_buf_fini(&b);
        bh_arena_fini(&arena);
    }
}

TEST_MAIN
