-- SPDX-License-Identifier: Apache-2.0
-- For bills: which attempts had to make room. There are few of them, and every bill asks of every lease.
CREATE INDEX lease_history_evicted ON lease_history(lease) WHERE new = 'draining' AND cause = 'evict';
