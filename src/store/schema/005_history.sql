-- SPDX-License-Identifier: Apache-2.0
-- What is long over may be dropped, where the policy says so: jobs that ended before a time and whose leases were all over before it, with what
-- those were given, used and left. Only while the permit below is there; state_history.c puts it in and takes it out in one transaction, in which
-- the audit log is told.

CREATE TABLE history_permit(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  before_ms INTEGER NOT NULL CHECK (before_ms >= 0)
) STRICT;
CREATE VIEW history_over AS
SELECT j.id AS job FROM history_permit p JOIN jobs j ON j.state = 'ended' AND j.state_ms < p.before_ms
WHERE NOT EXISTS (SELECT 1 FROM leases l
  WHERE l.job = j.id AND (l.state NOT IN ('refused', 'released') OR l.state_ms >= p.before_ms));

DROP TRIGGER jobs_kept;
CREATE TRIGGER jobs_kept BEFORE DELETE ON jobs WHEN NOT EXISTS (SELECT 1 FROM history_over WHERE job = OLD.id)
BEGIN SELECT RAISE(ABORT, 'a job is deleted only with a permit, when it is long over'); END;
DROP TRIGGER leases_kept;
CREATE TRIGGER leases_kept BEFORE DELETE ON leases WHEN NOT EXISTS (SELECT 1 FROM history_over WHERE job = OLD.job)
BEGIN SELECT RAISE(ABORT, 'a lease is deleted only with a permit, when it is long over'); END;
DROP TRIGGER lease_history_kept;
CREATE TRIGGER lease_history_kept BEFORE DELETE ON lease_history
WHEN NOT EXISTS (SELECT 1 FROM leases l JOIN history_over o ON o.job = l.job WHERE l.id = OLD.lease)
BEGIN SELECT RAISE(ABORT, 'the history of a lease is only added to'); END;
DROP TRIGGER scrubs_kept;
CREATE TRIGGER scrubs_kept BEFORE DELETE ON scrubs
WHEN NOT EXISTS (SELECT 1 FROM leases l JOIN history_over o ON o.job = l.job WHERE l.id = OLD.lease)
BEGIN SELECT RAISE(ABORT, 'a verdict is deleted only with a permit, and with its lease'); END;
DROP TRIGGER grants_kept;
CREATE TRIGGER grants_kept BEFORE DELETE ON grants
WHEN NOT EXISTS (SELECT 1 FROM leases l JOIN history_over o ON o.job = l.job WHERE l.id = OLD.lease)
BEGIN SELECT RAISE(ABORT, 'what a lease was given is deleted only with a permit, and with the lease'); END;
DROP TRIGGER usage_kept;
CREATE TRIGGER usage_kept BEFORE DELETE ON usage
WHEN NOT EXISTS (SELECT 1 FROM leases l JOIN history_over o ON o.job = l.job WHERE l.id = OLD.lease)
BEGIN SELECT RAISE(ABORT, 'usage is deleted only with a permit, and with its lease'); END;

CREATE INDEX jobs_ended ON jobs(state_ms) WHERE state = 'ended';
CREATE TRIGGER job_counts_gone AFTER DELETE ON jobs
BEGIN UPDATE job_counts SET n = n - 1 WHERE tenant = OLD.tenant AND state = OLD.state; END;
CREATE TRIGGER lease_counts_gone AFTER DELETE ON leases
BEGIN UPDATE lease_counts SET n = n - 1 WHERE tenant = OLD.tenant AND state = OLD.state; END;
