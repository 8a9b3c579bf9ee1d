/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_class.h - which classes of audit events a policy may leave out.
 *
 * One list for the rule that judges a policy (BH-076) and for the log that obeys it: what the rule lets through is
 * exactly what the log leaves out.
 */
#ifndef BH_CORE_POLICY_AUDIT_CLASS_H
#define BH_CORE_POLICY_AUDIT_CLASS_H

#include <stdbool.h>

/* Everything else is mandatory, whatever a policy says. Case does not matter. */
bool bh_audit_class_optional(const char *class_name);

#endif
