/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/rule.h"

#include "base/err.h"
#include "base/str.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* generated from data/rules.json */
extern const struct bh_rule bh_rules[];
extern const size_t bh_rules_n;

size_t bh_rule_count(void)
{
    return bh_rules_n;
}

const struct bh_rule *bh_rule_at(size_t i)
{
    return i < bh_rules_n ? &bh_rules[i] : NULL;
}

const struct bh_rule *bh_rule_find(const char *id)
{
    uint64_t number;
    char full[16];
    if ((id[0] == 'b' || id[0] == 'B') && (id[1] == 'h' || id[1] == 'H'))
        id += 2 + (id[2] == '-');
    if (bh_uint_parse(id, 999, &number, NULL) != BH_OK)
        return NULL;
    (void)snprintf(full, sizeof(full), "BH-%03u", (unsigned)number);
    for (size_t i = 0; i < bh_rules_n; i++)
        if (strcmp(bh_rules[i].id, full) == 0)
            return &bh_rules[i];
    return NULL;
}

const char *bh_severity_str(unsigned severity)
{
    static const char *const text[] = {"error", "warning", "info"};
    return severity < sizeof(text) / sizeof(text[0]) ? text[severity] : "unknown";
}
