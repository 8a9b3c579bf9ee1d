/* SPDX-License-Identifier: Apache-2.0 */
/* findings_fixture.h - for tests of the writers: two units, three findings, made by hand. */
#ifndef BH_CONF_FINDINGS_FIXTURE_H
#define BH_CONF_FINDINGS_FIXTURE_H

#include "conf/out.h"

struct bh_findings_fixture {
    const char *files[2];
    struct bh_unit units[2], *unit_at[2];
    struct bh_finding first[2], second[1];
    struct bh_unchecked unchecked[2][2];
    struct bh_diag diags[2];
    struct bh_input in;
    struct bh_report reports[2];
    struct bh_findings findings;
};

static inline void bh_findings_fixture_init(struct bh_findings_fixture *x)
{
    const struct bh_rule *hard = bh_rule_find("BH-020"), *ecc = bh_rule_find("BH-056"),
                         *live = bh_rule_find("BH-007");
    *x = (struct bh_findings_fixture){
        .files = {"./a dir/p#1.yaml", "-"},
        .units = {{.label = "a dir/p#1.yaml"}, {.label = "Kubernetes manifests (1 file)"}},
        .first = {{.rule = hard,
                   .subject = "tenant:acme",
                   .pos = {0, 14, 5},
                   .cause = {0, 22, 12},
                   .message = "Hard SLO \"p99\" sold.",
                   .fix = "MIG"},
                  {.rule = ecc,
                   .subject = "pool:serving",
                   .pos = {0, 30, 5},
                   .message = "ECC off.",
                   .fix = "on",
                   .waived = true,
                   .waived_by = "jane@example.org"}},
        .second = {{.rule = ecc,
                    .subject = "pool:time-slicing",
                    .pos = {1, 3, 1},
                    .message = "ECC \x1b off.",
                    .object = "ConfigMap/ns/x"}},
        .unchecked = {{{live, "needs a live attestation"}, {ecc, "no fleet"}},
                      {{live, "needs a live attestation"}}},
        .diags = {{{1, 9, 2}, false, "kind Gateway is passed over"}, {{0, 1, 1}, true, "an error"}},
    };
    x->unit_at[0] = &x->units[0];
    x->unit_at[1] = &x->units[1];
    x->in.files.at = x->files;
    x->in.files.n = 2;
    x->in.units.at = x->unit_at;
    x->in.units.n = 2;
    x->in.diags.at.at = x->diags;
    x->in.diags.at.n = 2;
    x->reports[0] = (struct bh_report){.n_errors = 1, .n_waived = 1};
    x->reports[0].findings.at = x->first;
    x->reports[0].findings.n = 2;
    x->reports[0].unchecked.at = x->unchecked[0];
    x->reports[0].unchecked.n = 2;
    x->reports[1] = (struct bh_report){.n_warnings = 1};
    x->reports[1].findings.at = x->second;
    x->reports[1].findings.n = 1;
    x->reports[1].unchecked.at = x->unchecked[1];
    x->reports[1].unchecked.n = 1;
    x->findings = (struct bh_findings){&x->in, x->reports, "9.9.9"};
}

#endif
