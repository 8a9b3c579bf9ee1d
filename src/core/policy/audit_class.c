/* SPDX-License-Identifier: Apache-2.0 */
/* audit_class.c - classes nobody needs to keep: everything else that is left out is a hole in the books. */
#include "core/policy/audit_class.h"

#include "base/mem.h"
#include "base/str.h"

bool bh_audit_class_optional(const char *class_name)
{
    static const char *const fine[] = {"metrics", "debug", "heartbeat", "health",
                                       "scrape",  "read",  "list",      "watch"};
    for (size_t i = 0; i < BH_COUNT_OF(fine); i++)
        if (bh_str_eq_nocase(class_name, fine[i]))
            return true;
    return false;
}
