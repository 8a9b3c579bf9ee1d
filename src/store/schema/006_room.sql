-- SPDX-License-Identifier: Apache-2.0
-- What jobs take of the disk: those that have not ended by tenant and user, so that one of them cannot fill it with what waits,
-- and what is kept of those that ended, so that the oldest of it can go. The rows of jobs stay: what drops those is 005_history.sql.

-- ---- what has not ended ----

CREATE TABLE job_loads(
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  waiting INTEGER NOT NULL CHECK (waiting >= 0),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),   -- of the commands and environments of all that have not ended
  PRIMARY KEY(tenant, user)
) STRICT, WITHOUT ROWID;
INSERT INTO job_loads(tenant, user, waiting, bytes)
  SELECT tenant, user, sum(state = 'waiting'), sum(length(argv) + length(env)) FROM jobs WHERE state <> 'ended'
  GROUP BY tenant, user;
CREATE TRIGGER job_loads_new AFTER INSERT ON jobs
BEGIN
  INSERT INTO job_loads(tenant, user, waiting, bytes)
    VALUES (NEW.tenant, NEW.user, 1, length(NEW.argv) + length(NEW.env))
    ON CONFLICT(tenant, user) DO UPDATE SET waiting = waiting + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER job_loads_moved AFTER UPDATE OF state ON jobs WHEN NEW.state <> OLD.state
BEGIN
  UPDATE job_loads SET waiting = waiting + (NEW.state = 'waiting') - (OLD.state = 'waiting'),
    bytes = bytes - iif(NEW.state = 'ended', length(OLD.argv) + length(OLD.env), 0)
    WHERE tenant = OLD.tenant AND user = OLD.user;
END;

-- ---- what is kept of those that ended: beside the rows, which lie before large blobs ----

CREATE TABLE job_remains(
  job INTEGER PRIMARY KEY REFERENCES jobs(id),
  tenant TEXT NOT NULL,
  ended_ms INTEGER NOT NULL CHECK (ended_ms >= 0),
  bytes INTEGER CHECK (bytes >= 0),            -- of its output, command and environment; NULL: not measured yet
  pruned_ms INTEGER NOT NULL DEFAULT 0 CHECK (pruned_ms >= 0)
) STRICT;
INSERT INTO job_remains(job, tenant, ended_ms) SELECT id, tenant, state_ms FROM jobs WHERE state = 'ended';
CREATE INDEX job_remains_new ON job_remains(job) WHERE bytes IS NULL;
CREATE INDEX job_remains_oldest ON job_remains(tenant, ended_ms, job) WHERE pruned_ms = 0 AND bytes IS NOT NULL;
CREATE TRIGGER job_remains_ended AFTER UPDATE OF state ON jobs WHEN NEW.state = 'ended' AND OLD.state <> 'ended'
BEGIN
  INSERT INTO job_remains(job, tenant, ended_ms) VALUES (NEW.id, NEW.tenant, NEW.state_ms);
END;
CREATE TRIGGER job_remains_kept BEFORE DELETE ON job_remains
WHEN NOT EXISTS (SELECT 1 FROM history_over WHERE job = OLD.job)
BEGIN SELECT RAISE(ABORT, 'that something of a job was removed is known as long as the job is'); END;
CREATE TRIGGER job_remains_gone BEFORE DELETE ON jobs
BEGIN
  DELETE FROM job_remains WHERE job = OLD.id;
END;
CREATE TRIGGER job_remains_once BEFORE UPDATE ON job_remains
WHEN OLD.pruned_ms <> 0 OR (OLD.bytes IS NOT NULL AND NEW.bytes IS NOT OLD.bytes)
BEGIN SELECT RAISE(ABORT, 'what is left of a job is measured once and removed once'); END;

CREATE TABLE tenant_remains(
  tenant TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tenant_remains_more AFTER UPDATE OF bytes ON job_remains WHEN OLD.bytes IS NULL AND NEW.bytes IS NOT NULL
BEGIN
  INSERT INTO tenant_remains(tenant, bytes) VALUES (NEW.tenant, NEW.bytes)
    ON CONFLICT(tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER tenant_remains_less AFTER UPDATE OF pruned_ms ON job_remains WHEN OLD.pruned_ms = 0 AND NEW.pruned_ms <> 0
BEGIN
  UPDATE tenant_remains SET bytes = bytes - NEW.bytes WHERE tenant = NEW.tenant;
END;

CREATE TRIGGER tenant_remains_gone AFTER DELETE ON job_remains WHEN OLD.pruned_ms = 0 AND OLD.bytes IS NOT NULL
BEGIN
  UPDATE tenant_remains SET bytes = bytes - OLD.bytes WHERE tenant = OLD.tenant;
END;

-- A job that ended stays as it is, but for its command and environment, which go with what it wrote.
DROP TRIGGER jobs_over;
CREATE TRIGGER jobs_over BEFORE UPDATE ON jobs WHEN OLD.state = 'ended' AND NOT (
  length(NEW.argv) = 0 AND length(NEW.env) = 0 AND NEW.id = OLD.id AND NEW.tenant = OLD.tenant AND NEW.user = OLD.user
  AND NEW.pool = OLD.pool AND NEW.name = OLD.name AND NEW.uid = OLD.uid AND NEW.gid = OLD.gid AND NEW.gpus = OLD.gpus
  AND NEW.milli = OLD.milli AND NEW.memory_mib = OLD.memory_mib AND NEW.profile = OLD.profile AND NEW.tier = OLD.tier
  AND NEW.priority = OLD.priority AND NEW.can = OLD.can AND NEW.firm = OLD.firm AND NEW.place = OLD.place
  AND NEW.duration_ms = OLD.duration_ms AND NEW.deadline_ms = OLD.deadline_ms AND NEW.cwd = OLD.cwd
  AND NEW.image = OLD.image AND NEW.submit_ms = OLD.submit_ms AND NEW.state = OLD.state AND NEW.state_ms = OLD.state_ms
  AND NEW.ending = OLD.ending AND NEW.status = OLD.status AND NEW.signal = OLD.signal AND NEW.why = OLD.why)
BEGIN SELECT RAISE(ABORT, 'a job that ended stays as it is'); END;

-- ---- tokens ----

CREATE INDEX tokens_of_subject ON tokens(subject) WHERE revoked_ms = 0;
