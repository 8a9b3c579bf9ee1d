-- SPDX-License-Identifier: Apache-2.0
-- What each tenant has of the cards, kept as it changes, and the slices that nobody gets by an index of their own: a node with a
-- thousand leases is asked for both all the time, and walking its slices would hold up everybody else. state_check.c adds up
-- the rows.

CREATE TABLE tenant_held(
  tenant TEXT PRIMARY KEY,
  milli INTEGER NOT NULL CHECK (milli >= 0),
  mib INTEGER NOT NULL CHECK (mib >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO tenant_held(tenant, milli, mib)
  SELECT l.tenant, sum(s.milli), sum(s.mib) FROM slices s JOIN leases l ON l.id = s.lease GROUP BY l.tenant;
CREATE TRIGGER tenant_held_new AFTER INSERT ON slices WHEN NEW.lease IS NOT NULL
BEGIN
  INSERT INTO tenant_held(tenant, milli, mib) SELECT tenant, NEW.milli, NEW.mib FROM leases WHERE id = NEW.lease
    ON CONFLICT(tenant) DO UPDATE SET milli = milli + excluded.milli, mib = mib + excluded.mib;
END;
CREATE TRIGGER tenant_held_moved AFTER UPDATE OF lease, milli, mib ON slices
WHEN NEW.lease IS NOT OLD.lease OR NEW.milli <> OLD.milli OR NEW.mib <> OLD.mib
BEGIN
  UPDATE tenant_held SET milli = milli - OLD.milli, mib = mib - OLD.mib
    WHERE tenant = (SELECT tenant FROM leases WHERE id = OLD.lease);
  INSERT INTO tenant_held(tenant, milli, mib) SELECT tenant, NEW.milli, NEW.mib FROM leases WHERE id = NEW.lease
    ON CONFLICT(tenant) DO UPDATE SET milli = milli + excluded.milli, mib = mib + excluded.mib;
END;
CREATE TRIGGER tenant_held_gone AFTER DELETE ON slices WHEN OLD.lease IS NOT NULL
BEGIN
  UPDATE tenant_held SET milli = milli - OLD.milli, mib = mib - OLD.mib
    WHERE tenant = (SELECT tenant FROM leases WHERE id = OLD.lease);
END;

CREATE INDEX slices_quarantined ON slices(gpu) WHERE state = 'quarantined';
