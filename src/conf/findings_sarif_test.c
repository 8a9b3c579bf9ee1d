/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader of SARIF relies on is checked in tests/cli with a JSON parser; here: hard cases of text. */
#include "base/test.h"
#include "conf/findings_fixture.h"

static bool sarif_has(const struct bh_findings_fixture *x, const char *words)
{
    struct bh_buf b;
    bh_buf_init(&b, 8 << 20);
    bh_findings_sarif(&b, &x->findings);
    bool has = strstr(bh_buf_text(&b), words) != NULL;
    bh_buf_fini(&b);
    return has;
}

TEST(paths_become_uri_references)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK(sarif_has(&x, "\"uri\": \"a%20dir/p%231.yaml\""));
    CHECK(sarif_has(&x, "\"uri\": \"stdin\""));
    x.files[0] = "/etc/bulkhead/\xc3\xa4:b.yaml";
    CHECK(sarif_has(&x, "\"uri\": \"file:///etc/bulkhead/%C3%A4%3Ab.yaml\""));
}

TEST(the_region_is_the_cause_and_the_subject_is_related)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK(sarif_has(&x, "\"region\": {\"startLine\": 22, \"startColumn\": 12}"));
    CHECK(sarif_has(&x, "\"region\": {\"startLine\": 14, \"startColumn\": 5}"));
    CHECK(sarif_has(&x, "\"relatedLocations\""));
    x.first[0].cause.line = 0;
    CHECK(!sarif_has(&x, "\"relatedLocations\""));
}

TEST(a_finding_without_a_line_has_no_region)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    x.first[0].pos = x.first[0].cause = (struct bh_pos){0};
    CHECK(!sarif_has(&x, "\"startLine\": 0"));
}

TEST(a_waived_finding_is_suppressed)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK(sarif_has(&x,
                    "{\"kind\": \"external\", \"justification\": \"waived in the policy, approved by jane@"));
    x.first[1].waived = false;
    CHECK(!sarif_has(&x, "suppressions"));
}

TEST(fingerprints_ignore_the_line)
{
    struct bh_findings_fixture x, y;
    struct bh_buf a;
    bh_findings_fixture_init(&x);
    bh_findings_fixture_init(&y);
    y.first[0].pos.line = 900;
    bh_buf_init(&a, 8 << 20);
    bh_findings_sarif(&a, &x.findings);
    char mark[17] = "";
    const char *at = strstr(bh_buf_text(&a), "bulkheadFinding/v1\": \"");
    if (at)
        memcpy(mark, at + 22, 16);
    bh_buf_fini(&a);
    CHECK_EQ(strspn(mark, "0123456789abcdef"), 16);
    CHECK(sarif_has(&y, mark));
    y.first[0].subject = "tenant:acmf";
    CHECK(!sarif_has(&y, mark));
}

TEST(unchecked_rules_and_notes_are_notifications)
{
    struct bh_findings_fixture x;
    bh_findings_fixture_init(&x);
    CHECK(sarif_has(&x, "\"message\": {\"text\": \"needs a live attestation\"}"));
    CHECK(sarif_has(&x, "\"associatedRule\": {\"id\": \"BH-007\""));
    CHECK(sarif_has(&x, "kind Gateway is passed over"));
    CHECK(!sarif_has(&x, "an error"));
}

TEST_MAIN
