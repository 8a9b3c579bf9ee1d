-- SPDX-License-Identifier: Apache-2.0
-- How many jobs and leases there are of a tenant in a state, kept as they change: a node with ten thousand of them is
-- asked for the numbers all the time, and counting rows would hold up everybody else. state_check.c counts the rows.

CREATE TABLE job_counts(
  tenant TEXT NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 0),
  PRIMARY KEY(tenant, state)
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts(tenant, state, n) SELECT tenant, state, count(*) FROM jobs GROUP BY tenant, state;
CREATE TRIGGER job_counts_new AFTER INSERT ON jobs
BEGIN
  INSERT INTO job_counts(tenant, state, n) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT(tenant, state) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER job_counts_moved AFTER UPDATE OF state ON jobs WHEN NEW.state <> OLD.state
BEGIN
  UPDATE job_counts SET n = n - 1 WHERE tenant = OLD.tenant AND state = OLD.state;
  INSERT INTO job_counts(tenant, state, n) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT(tenant, state) DO UPDATE SET n = n + 1;
END;

CREATE TABLE lease_counts(
  tenant TEXT NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n >= 0),
  PRIMARY KEY(tenant, state)
) STRICT, WITHOUT ROWID;
INSERT INTO lease_counts(tenant, state, n) SELECT tenant, state, count(*) FROM leases GROUP BY tenant, state;
CREATE TRIGGER lease_counts_new AFTER INSERT ON leases
BEGIN
  INSERT INTO lease_counts(tenant, state, n) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT(tenant, state) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER lease_counts_moved AFTER UPDATE OF state ON leases WHEN NEW.state <> OLD.state
BEGIN
  UPDATE lease_counts SET n = n - 1 WHERE tenant = OLD.tenant AND state = OLD.state;
  INSERT INTO lease_counts(tenant, state, n) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT(tenant, state) DO UPDATE SET n = n + 1;
END;
