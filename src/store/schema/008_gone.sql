-- SPDX-License-Identifier: Apache-2.0
-- What was dropped of the books (005_history.sql) in sums, so that counters made from them go on and never fall: added up row by row
-- where it is deleted, whoever does that, and so in the same transaction or not at all.

CREATE TABLE gone_usage(
  tenant TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  gpu TEXT NOT NULL,
  instance TEXT NOT NULL,                      -- the key of the instance of MIG, or of the one it is a share of; '': none
  milli_ms INTEGER NOT NULL CHECK (milli_ms >= 0),
  mib_ms INTEGER NOT NULL CHECK (mib_ms >= 0),
  PRIMARY KEY(tenant, mechanism, gpu, instance)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER gone_usage_more AFTER DELETE ON usage WHEN OLD.to_ms IS NOT NULL
BEGIN
  INSERT INTO gone_usage(tenant, mechanism, gpu, instance, milli_ms, mib_ms)
    VALUES (OLD.tenant, OLD.mechanism, OLD.gpu, CASE OLD.kind WHEN 'mig' THEN OLD.key ELSE OLD.base END,
      OLD.milli * (OLD.to_ms - OLD.from_ms), OLD.mib * (OLD.to_ms - OLD.from_ms))
    ON CONFLICT DO UPDATE SET milli_ms = milli_ms + excluded.milli_ms, mib_ms = mib_ms + excluded.mib_ms;
END;
CREATE TRIGGER gone_usage_kept BEFORE DELETE ON gone_usage
BEGIN SELECT RAISE(ABORT, 'sums of what was dropped are only added to'); END;

CREATE TABLE gone_scrubs(
  kind TEXT NOT NULL,
  verdict TEXT NOT NULL,
  n INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY(kind, verdict)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER gone_scrubs_more AFTER DELETE ON scrubs
BEGIN
  INSERT INTO gone_scrubs(kind, verdict, n) VALUES (OLD.kind, OLD.verdict, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER gone_scrubs_kept BEFORE DELETE ON gone_scrubs
BEGIN SELECT RAISE(ABORT, 'sums of what was dropped are only added to'); END;

-- Leases that had to make room, and waits by length: up to so much, in seconds, after the first minute in minutes, after the first hour in
-- hours. So a tenant has few rows, and any histogram whose bounds are such numbers can be made of them.
CREATE TABLE gone_turns(
  tenant TEXT NOT NULL,
  cause TEXT NOT NULL CHECK (cause IN ('grant', 'evict')),
  upto_ms INTEGER NOT NULL CHECK (upto_ms >= 0),
  n INTEGER NOT NULL CHECK (n > 0),
  waited_ms INTEGER NOT NULL CHECK (waited_ms >= 0),
  PRIMARY KEY(tenant, cause, upto_ms)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER gone_turns_more AFTER DELETE ON lease_history WHEN OLD.cause IN ('grant', 'evict')
BEGIN
  INSERT INTO gone_turns(tenant, cause, upto_ms, n, waited_ms)
    SELECT tenant, OLD.cause, CASE WHEN ms <= 60000 THEN (ms + 999) / 1000 * 1000
        WHEN ms <= 3600000 THEN (ms + 59999) / 60000 * 60000 ELSE (ms + 3599999) / 3600000 * 3600000 END, 1, ms
      FROM (SELECT tenant, iif(OLD.cause = 'evict', 0, max(0, OLD.at_ms - created_ms)) AS ms FROM leases WHERE id = OLD.lease)
      WHERE true
    ON CONFLICT DO UPDATE SET n = n + 1, waited_ms = waited_ms + excluded.waited_ms;
END;
CREATE TRIGGER gone_turns_kept BEFORE DELETE ON gone_turns
BEGIN SELECT RAISE(ABORT, 'sums of what was dropped are only added to'); END;
