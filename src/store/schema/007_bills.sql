-- SPDX-License-Identifier: Apache-2.0
-- For bills: the records of one tenant in their order, so that who asks for its own reads nothing of anybody else's.
CREATE INDEX usage_by_tenant ON usage(tenant, id);
