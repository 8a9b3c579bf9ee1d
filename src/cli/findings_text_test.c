/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "cli/findings_text.h"
#include "conf/findings_fixture.h"

static void text(struct bh_findings_fixture *x, bool paint, char *ret, size_t n)
{
    struct bh_cli cli = {.width = 100, .paint_out = paint};
    bh_buf_init(&cli.out, 1 << 16);
    bh_findings_text(&cli, &x->findings);
    (void)snprintf(ret, n, "%s", bh_buf_text(&cli.out));
    bh_buf_fini(&cli.out);
}

TEST(findings_read_like_a_compiler)
{
    struct bh_findings_fixture x;
    char got[4096];
    bh_findings_fixture_init(&x);
    text(&x, false, got, sizeof(got));
    CHECK_STR(got, "./a dir/p#1.yaml:14:5: error BH-020 tenant:acme\n"
                   "    Hard SLO \"p99\" sold.\n"
                   "    cause: line 22, column 12\n"
                   "    fix: MIG\n"
                   "./a dir/p#1.yaml:30:5: warning BH-056 pool:serving [waived by jane@example.org]\n"
                   "    ECC off.\n"
                   "    fix: on\n"
                   "-:3:1: warning BH-056 pool:time-slicing (ConfigMap/ns/x)\n"
                   "    ECC \\x1b off.\n"
                   "-:9:2: note: kind Gateway is passed over\n"
                   "Not checkable from these files (-o json says why):\n"
                   "  needs --fleet: BH-056\n"
                   "  needs a live system: BH-007\n"
                   "1 error, 1 warning, 0 infos, 1 waived in a dir/p#1.yaml and 1 more\n");
}

TEST(kinds_of_reason_gather_their_rules)
{
    struct bh_findings_fixture x;
    char got[4096];
    bh_findings_fixture_init(&x);
    x.unchecked[0][1].rule = bh_rule_find("BH-070");
    text(&x, false, got, sizeof(got));
    CHECK(strstr(got, "  needs a live system: BH-007 BH-070\n"));
    CHECK(!strstr(got, "--fleet"));
    /* a rule that two units could not answer for two reasons is named once */
    x.unchecked[0][1].rule = x.unchecked[0][0].rule;
    text(&x, false, got, sizeof(got));
    CHECK(strstr(got, "  needs a live system: BH-007\n"));
    x.unchecked[0][0].rule = bh_rule_find("BH-001");
    x.unchecked[0][1].rule = bh_rule_find("BH-056");
    x.in.has_fleet = true;
    text(&x, false, got, sizeof(got));
    CHECK(strstr(got, "  the fleet file does not say: BH-056\n  needs a live system: BH-007\n"
                      "  these files do not say: BH-001\n"));
}

TEST(sentences_are_folded_for_a_terminal_only)
{
    struct bh_findings_fixture x;
    struct bh_cli cli = {.width = 40, .is_terminal = true};
    bh_findings_fixture_init(&x);
    x.first[0].fix = "one two three four five six seven eight nine";
    bh_buf_init(&cli.out, 1 << 16);
    bh_findings_text(&cli, &x.findings);
    bool folded = strstr(bh_buf_text(&cli.out), "    fix: one two three four five six\n    seven") != NULL;
    bh_buf_fini(&cli.out);
    CHECK(folded);
}

TEST(colour_adds_nothing_but_colour)
{
    struct bh_findings_fixture x;
    char plain[4096], painted[4096], stripped[4096];
    size_t n = 0;
    bh_findings_fixture_init(&x);
    text(&x, false, plain, sizeof(plain));
    text(&x, true, painted, sizeof(painted));
    CHECK(strchr(painted, '\x1b') && !strchr(plain, '\x1b'));
    for (const char *s = painted; *s; s++) {
        if (*s == '\x1b')
            s += strcspn(s, "m");
        else
            stripped[n++] = *s;
    }
    stripped[n] = '\0';
    CHECK_STR(stripped, plain);
}

TEST_MAIN
