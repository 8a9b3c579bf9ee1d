/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule.h - the rules as data. Text, severity and references come from data/rules.json;
 * each has one small pure function that looks for it.
 */
#ifndef BH_CORE_POLICY_RULE_H
#define BH_CORE_POLICY_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_severity { BH_SEV_ERROR, BH_SEV_WARNING, BH_SEV_INFO };

/* What it takes to answer the rule. */
enum bh_rule_needs {
    BH_NEEDS_POLICY, /* the policy or manifests alone */
    BH_NEEDS_FLEET,  /* hardware facts as well */
    BH_NEEDS_LIVE,   /* facts no file gives: attestation, self-test results, running processes */
};

struct bh_lint;
struct bh_rule {
    const char *id; /* `BH-020` */
    uint8_t severity, needs;
    bool unwaivable;       /* ‡ in the rule book */
    bool extended;         /* + in the rule book */
    const char *title;     /* one line */
    const char *condition; /* when it speaks */
    const char
        *message; /* what a finding says, with {placeholders}; the rule's function fills in the particulars */
    const char *why;
    const char *fix;                         /* in the policy's words */
    const char *fix_kubernetes, *fix_slurm;  /* in theirs, where it differs */
    const char *unchecked;                   /* what is missing when it cannot be answered */
    const char *const *refs;                 /* `R110`, `003`, `C08`, and the controls; NULL-terminated */
    const char *const *controls;             /* `SC-39` ... NULL-terminated */
    const char *fail_example, *pass_example; /* policy text; fixtures of the test suite */
    void (*check)(struct bh_lint *l);        /* NULL: only a live system can answer */
};

size_t bh_rule_count(void);
const struct bh_rule *bh_rule_at(size_t i); /* in id order */
/* `BH-020`, `bh-20`, `20`; NULL: unknown. */
const struct bh_rule *bh_rule_find(const char *id);
const char *bh_severity_str(unsigned severity); /* `error`, `warning`, `info` */

#endif
