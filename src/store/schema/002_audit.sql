-- SPDX-License-Identifier: Apache-2.0
-- The audit log: records are added at the end and never changed; they go only up to a checkpoint, and only from the
-- front. The guards are for mistakes and for whoever has no more than SQL; who has the file is found by verify.

CREATE TABLE audit_head(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  origin TEXT NOT NULL,
  size INTEGER NOT NULL CHECK (size >= 0),
  chain BLOB NOT NULL CHECK (length(chain) = 32),
  edge BLOB NOT NULL,            -- of the Merkle tree of all records
  signed INTEGER NOT NULL,       -- records under the last checkpoint
  signed_ms INTEGER NOT NULL,
  cut INTEGER NOT NULL,          -- records dropped from the front
  cut_chain BLOB NOT NULL CHECK (length(cut_chain) = 32),
  cut_edge BLOB NOT NULL
) STRICT;

-- body is what was hashed; the columns beside it are for looking up, and verify compares them with it.
CREATE TABLE audit_record(
  seq INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  event TEXT NOT NULL,
  tenant TEXT,
  body TEXT NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE INDEX audit_record_tenant ON audit_record(tenant, seq) WHERE tenant IS NOT NULL;
CREATE INDEX audit_record_key ON audit_record(event, seq) WHERE event IN ('audit.key', 'audit.key-change');

CREATE TABLE audit_checkpoint(
  size INTEGER PRIMARY KEY,
  note TEXT NOT NULL
) STRICT;

-- REPLACE fires no trigger of deletion, so adding is guarded as well.
CREATE TRIGGER audit_record_order BEFORE INSERT ON audit_record
WHEN NEW.seq IS NOT (SELECT size + 1 FROM audit_head)
BEGIN SELECT RAISE(ABORT, 'audit records are added at the end of the log'); END;
CREATE TRIGGER audit_record_fixed BEFORE UPDATE ON audit_record
BEGIN SELECT RAISE(ABORT, 'audit records are never changed'); END;
CREATE TRIGGER audit_record_kept BEFORE DELETE ON audit_record
WHEN OLD.seq > (SELECT cut FROM audit_head) OR OLD.event IN ('audit.key', 'audit.key-change')
BEGIN SELECT RAISE(ABORT, 'audit records are dropped only below a checkpoint, and those of keys never'); END;

CREATE TRIGGER audit_checkpoint_order BEFORE INSERT ON audit_checkpoint
WHEN NEW.size IS NOT (SELECT size FROM audit_head) OR NEW.size <= (SELECT signed FROM audit_head)
BEGIN SELECT RAISE(ABORT, 'a checkpoint covers the whole audit log, once'); END;
CREATE TRIGGER audit_checkpoint_fixed BEFORE UPDATE ON audit_checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are never changed'); END;
CREATE TRIGGER audit_checkpoint_kept BEFORE DELETE ON audit_checkpoint
BEGIN SELECT RAISE(ABORT, 'checkpoints are never dropped'); END;

CREATE TRIGGER audit_head_one BEFORE INSERT ON audit_head
WHEN EXISTS (SELECT 1 FROM audit_head)
BEGIN SELECT RAISE(ABORT, 'an audit log begins once'); END;
CREATE TRIGGER audit_head_kept BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the head of the audit log is never dropped'); END;
CREATE TRIGGER audit_head_forward BEFORE UPDATE ON audit_head
WHEN NEW.id <> OLD.id OR NEW.origin <> OLD.origin
  OR NEW.size NOT BETWEEN OLD.size AND OLD.size + 1
  OR (NEW.size = OLD.size AND (NEW.chain <> OLD.chain OR NEW.edge <> OLD.edge))
  OR (NEW.size > OLD.size AND NOT EXISTS (SELECT 1 FROM audit_record WHERE seq = NEW.size))
  OR NEW.signed < OLD.signed
  OR (NEW.signed > OLD.signed AND NOT EXISTS (SELECT 1 FROM audit_checkpoint WHERE size = NEW.signed))
  OR NEW.cut < OLD.cut
  OR (NEW.cut > OLD.cut AND NOT EXISTS (SELECT 1 FROM audit_checkpoint WHERE size = NEW.cut))
BEGIN SELECT RAISE(ABORT, 'the head of the audit log only goes forward'); END;
