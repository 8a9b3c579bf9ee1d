/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/audit_class.h"

#include "base/test.h"

TEST(what_is_not_named_is_mandatory)
{
    CHECK(bh_audit_class_optional("heartbeat"));
    CHECK(bh_audit_class_optional("Read"));
    CHECK(!bh_audit_class_optional("alloc"));
    CHECK(!bh_audit_class_optional("audit"));
    CHECK(!bh_audit_class_optional("reads"));
    CHECK(!bh_audit_class_optional(""));
}

TEST_MAIN
