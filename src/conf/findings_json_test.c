/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "conf/findings_fixture.h"

/* Are the words all in the text, in this order? Returns the first that is not. */
static const char *missing(const char *text, const char *const *words)
{
    for (; *words; words++) {
        text = strstr(text, *words);
        if (!text)
            return *words;
        text += strlen(*words);
    }
    return "";
}

TEST(keys_stand_in_the_order_of_the_specification)
{
    static const char *const order[] = {
        "\"version\": 1",
        "\"policy\": \"a dir/p#1.yaml\"",
        "\"errors\": 1",
        "\"warnings\": 1",
        "\"infos\": 0",
        "\"waived\": 1",
        "\"findings\": [",
        "\"rule\": \"BH-020\"",
        "\"severity\": \"error\"",
        "\"subject\": \"tenant:acme\"",
        "\"line\": 14",
        "\"column\": 5",
        "\"message\": \"Hard SLO \\\"p99\\\" sold.\"",
        "\"fix\": \"MIG\"",
        "\"refs\": [\"R110\"",
        "\"waived\": false",
        "\"file\": \"./a dir/p#1.yaml\"",
        "\"cause\": {\"line\": 22, \"column\": 12}",
        "\"controls\": [",
        "\"rule\": \"BH-056\"",
        "\"waived\": true",
        "\"waivedBy\": \"jane@example.org\"",
        "\"object\": \"ConfigMap/ns/x\"",
        "\"unchecked\": [",
        "{\"rule\": \"BH-007\", \"reason\": \"needs a live attestation\"}",
        "\"files\": [",
        "\"notes\": [",
        "{\"file\": \"-\", \"line\": 9, \"column\": 2, \"message\": \"kind Gateway is passed over\"}",
        NULL};
    struct bh_findings_fixture x;
    struct bh_buf b;
    bh_findings_fixture_init(&x);
    bh_buf_init(&b, 1 << 20);
    bh_findings_json(&b, &x.findings);
    const char *lost = missing(bh_buf_text(&b), order);
    bool escaped = strstr(bh_buf_text(&b), "ECC \\u001b off.") != NULL;
    bool says_error = strstr(bh_buf_text(&b), "an error") != NULL;
    bh_buf_fini(&b);
    CHECK_STR(lost, "");
    CHECK(escaped);
    CHECK(!says_error);
}

TEST(the_same_findings_give_the_same_bytes)
{
    struct bh_findings_fixture x;
    struct bh_buf a, b;
    bh_findings_fixture_init(&x);
    bh_buf_init(&a, 1 << 20);
    bh_buf_init(&b, 1 << 20);
    bh_findings_json(&a, &x.findings);
    bh_findings_json(&b, &x.findings);
    bool same = a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    CHECK(same);
}

TEST(a_cause_in_another_file_names_it)
{
    struct bh_findings_fixture x;
    struct bh_buf b;
    bh_findings_fixture_init(&x);
    x.first[0].cause.file = 1;
    bh_buf_init(&b, 1 << 20);
    bh_findings_json(&b, &x.findings);
    bool named = strstr(bh_buf_text(&b), "\"cause\": {\"file\": \"-\", \"line\": 22") != NULL;
    bh_buf_fini(&b);
    CHECK(named);
}

TEST(no_unit_is_an_empty_report)
{
    struct bh_findings_fixture x;
    struct bh_buf b;
    bh_findings_fixture_init(&x);
    x.in.units.n = 0;
    bh_buf_init(&b, 1 << 20);
    bh_findings_json(&b, &x.findings);
    bool empty = strstr(bh_buf_text(&b), "\"policy\": null") && strstr(bh_buf_text(&b), "\"findings\": []");
    bh_buf_fini(&b);
    CHECK(empty);
}

TEST(a_buffer_too_small_is_marked_full)
{
    struct bh_findings_fixture x;
    struct bh_buf b;
    bh_findings_fixture_init(&x);
    bh_buf_init(&b, 64);
    bh_findings_json(&b, &x.findings);
    bool full = b.full;
    bh_buf_fini(&b);
    CHECK(full);
}

TEST_MAIN
