-- SPDX-License-Identifier: Apache-2.0
-- The state of a node. What must never be is refused here, whoever writes: the triggers say it in words, which reach
-- the caller. A released schema is never edited; what changes comes with the next number.

-- ---- words: the table of core/lease, as far as a row can break it (state_schema_test.c compares the two) ----

CREATE TABLE lease_states(
  word TEXT PRIMARY KEY,
  owned INTEGER NOT NULL,        -- may slices in use name a lease in this state?
  dirty INTEGER NOT NULL,        -- ... slices being scrubbed?
  quarantined INTEGER NOT NULL,  -- ... slices that nobody gets?
  some INTEGER NOT NULL,         -- must one?
  charged INTEGER NOT NULL,      -- does its tenant pay for what it has?
  over INTEGER NOT NULL          -- the attempt has come to its end
) STRICT, WITHOUT ROWID;
INSERT INTO lease_states(word, owned, dirty, quarantined, some, charged, over) VALUES
  ('requested',   0, 0, 0, 0, 0, 0),
  ('admitted',    0, 0, 0, 0, 0, 0),
  ('refused',     0, 0, 0, 0, 0, 1),
  ('preparing',   1, 0, 0, 1, 0, 0),
  ('active',      1, 0, 0, 1, 1, 0),
  ('parking',     1, 1, 0, 1, 1, 0),
  ('suspended',   0, 0, 0, 0, 0, 0),
  ('draining',    1, 1, 0, 0, 1, 0),
  ('failed',      1, 0, 0, 1, 0, 0),
  ('scrubbing',   0, 1, 1, 0, 0, 1),
  ('released',    0, 0, 0, 0, 0, 1),
  ('quarantined', 0, 0, 1, 1, 0, 1);

CREATE TABLE lease_moves(
  old TEXT NOT NULL REFERENCES lease_states(word),
  new TEXT NOT NULL REFERENCES lease_states(word),
  PRIMARY KEY(old, new)
) STRICT, WITHOUT ROWID;
INSERT INTO lease_moves(old, new) VALUES
  ('requested', 'admitted'), ('requested', 'refused'),
  ('admitted', 'preparing'), ('admitted', 'refused'),
  ('preparing', 'active'), ('preparing', 'failed'),
  ('active', 'parking'), ('active', 'draining'),
  ('parking', 'suspended'), ('parking', 'active'), ('parking', 'draining'),
  ('suspended', 'preparing'), ('suspended', 'draining'),
  ('draining', 'scrubbing'), ('draining', 'quarantined'),
  ('failed', 'scrubbing'), ('failed', 'quarantined'),
  ('scrubbing', 'released'), ('scrubbing', 'quarantined'),
  ('quarantined', 'scrubbing');

CREATE TABLE slice_moves(
  old TEXT NOT NULL,
  new TEXT NOT NULL,
  PRIMARY KEY(old, new)
) STRICT, WITHOUT ROWID;
INSERT INTO slice_moves(old, new) VALUES
  ('free', 'owned'), ('free', 'quarantined'),
  ('owned', 'dirty'), ('owned', 'quarantined'),
  ('dirty', 'free'), ('dirty', 'quarantined'),
  ('quarantined', 'dirty');

-- ---- notes, policies, tokens ----

CREATE TABLE notes(
  key TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE policies(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  text TEXT NOT NULL,
  sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
  who TEXT NOT NULL,
  why TEXT NOT NULL,
  at_ms INTEGER NOT NULL CHECK (at_ms >= 0),
  active INTEGER NOT NULL CHECK (active IN (0, 1))
) STRICT;
CREATE UNIQUE INDEX policies_one_in_force ON policies(active) WHERE active = 1;
CREATE TRIGGER policies_kept BEFORE DELETE ON policies
BEGIN SELECT RAISE(ABORT, 'a policy that held is never deleted'); END;
CREATE TRIGGER policies_fixed BEFORE UPDATE ON policies
WHEN NEW.id <> OLD.id OR NEW.text IS NOT OLD.text OR NEW.sha256 IS NOT OLD.sha256 OR NEW.who <> OLD.who
  OR NEW.why <> OLD.why OR NEW.at_ms <> OLD.at_ms
BEGIN SELECT RAISE(ABORT, 'a policy that held is never changed'); END;

CREATE TABLE tokens(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
  subject TEXT NOT NULL CHECK (subject <> ''),
  role TEXT NOT NULL CHECK (role IN ('operator', 'tenant-admin', 'tenant-user', 'auditor', 'viewer')),
  tenant TEXT NOT NULL,
  created_ms INTEGER NOT NULL CHECK (created_ms >= 0),
  expires_ms INTEGER NOT NULL CHECK (expires_ms >= 0),
  revoked_ms INTEGER NOT NULL DEFAULT 0 CHECK (revoked_ms >= 0),
  CHECK ((role IN ('tenant-admin', 'tenant-user')) = (tenant <> ''))
) STRICT;
CREATE TRIGGER tokens_fixed BEFORE UPDATE ON tokens
WHEN NEW.id <> OLD.id OR NEW.sha256 IS NOT OLD.sha256 OR NEW.subject <> OLD.subject OR NEW.role <> OLD.role
  OR NEW.tenant <> OLD.tenant OR NEW.created_ms <> OLD.created_ms OR NEW.expires_ms <> OLD.expires_ms OR OLD.revoked_ms <> 0
BEGIN SELECT RAISE(ABORT, 'a token can only be revoked, once'); END;

-- ---- jobs ----

CREATE TABLE jobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL CHECK (tenant <> ''),
  user TEXT NOT NULL,
  pool TEXT NOT NULL,
  name TEXT NOT NULL,
  uid INTEGER NOT NULL CHECK (uid BETWEEN 0 AND 4294967295),
  gid INTEGER NOT NULL CHECK (gid BETWEEN 0 AND 4294967295),
  gpus INTEGER NOT NULL CHECK (gpus > 0),
  milli INTEGER NOT NULL CHECK (milli BETWEEN 1 AND 1000),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  profile TEXT NOT NULL,
  tier TEXT NOT NULL,
  priority TEXT NOT NULL,
  can INTEGER NOT NULL,
  firm INTEGER NOT NULL CHECK (firm IN (0, 1)),
  place INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
  deadline_ms INTEGER NOT NULL CHECK (deadline_ms >= 0),
  cwd TEXT NOT NULL,
  image TEXT NOT NULL,
  submit_ms INTEGER NOT NULL CHECK (submit_ms >= 0),
  state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'ended')),
  state_ms INTEGER NOT NULL CHECK (state_ms >= 0),
  ending TEXT NOT NULL CHECK (ending IN ('', 'exited', 'killed', 'refused', 'cancelled', 'failed', 'lost')),
  status INTEGER NOT NULL,
  signal INTEGER NOT NULL,
  why TEXT NOT NULL,
  argv BLOB NOT NULL,  -- each with a NUL behind it; last, since they can be large and lists leave them out
  env BLOB NOT NULL,
  CHECK ((state = 'ended') = (ending <> ''))
) STRICT;
CREATE INDEX jobs_of_tenant ON jobs(tenant, id);
CREATE INDEX jobs_live ON jobs(id) WHERE state <> 'ended';
CREATE INDEX jobs_live_of_tenant ON jobs(tenant, id) WHERE state <> 'ended';
CREATE TRIGGER jobs_begin BEFORE INSERT ON jobs WHEN NEW.state <> 'waiting'
BEGIN SELECT RAISE(ABORT, 'a job begins by waiting'); END;
CREATE TRIGGER jobs_kept BEFORE DELETE ON jobs
BEGIN SELECT RAISE(ABORT, 'a job is never deleted'); END;
CREATE TRIGGER jobs_over BEFORE UPDATE ON jobs WHEN OLD.state = 'ended'
BEGIN SELECT RAISE(ABORT, 'a job that ended stays as it is'); END;
CREATE TRIGGER jobs_fixed BEFORE UPDATE ON jobs WHEN NEW.id <> OLD.id OR NEW.tenant <> OLD.tenant
BEGIN SELECT RAISE(ABORT, 'a job keeps its id and its tenant'); END;

-- ---- cards ----

CREATE TABLE cards(
  uuid TEXT PRIMARY KEY CHECK (uuid <> ''),
  model TEXT NOT NULL,
  number INTEGER NOT NULL CHECK (number >= 0),
  memory_mib INTEGER NOT NULL CHECK (memory_mib >= 0),
  seen_ms INTEGER NOT NULL CHECK (seen_ms >= 0),
  cordoned_ms INTEGER NOT NULL DEFAULT 0 CHECK (cordoned_ms >= 0),
  cordon_by TEXT NOT NULL DEFAULT '',
  cordon_why TEXT NOT NULL DEFAULT '',
  health TEXT NOT NULL DEFAULT 'ok' CHECK (health IN ('ok', 'suspect', 'bad')),
  health_ms INTEGER NOT NULL DEFAULT 0 CHECK (health_ms >= 0),
  health_why TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- ---- leases, what they were given, how they came where they are ----

CREATE TABLE leases(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES jobs(id),
  tenant TEXT NOT NULL CHECK (tenant <> ''),
  user TEXT NOT NULL,
  pool TEXT NOT NULL,
  domain TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  stack TEXT NOT NULL,
  tier TEXT NOT NULL,
  uid INTEGER NOT NULL CHECK (uid BETWEEN 0 AND 4294967295),
  gid INTEGER NOT NULL CHECK (gid BETWEEN 0 AND 4294967295),
  until_ms INTEGER NOT NULL CHECK (until_ms >= 0),
  state TEXT NOT NULL REFERENCES lease_states(word),
  paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
  created_ms INTEGER NOT NULL CHECK (created_ms >= 0),
  state_ms INTEGER NOT NULL CHECK (state_ms >= 0),
  cause TEXT NOT NULL,
  why TEXT NOT NULL,
  detail TEXT NOT NULL,
  CHECK (paused = 0 OR state IN ('active', 'parking'))
) STRICT;
CREATE INDEX leases_of_tenant ON leases(tenant, id);
CREATE INDEX leases_of_job ON leases(job, id);
CREATE INDEX leases_live ON leases(id) WHERE state NOT IN ('refused', 'released');
CREATE INDEX leases_live_of_tenant ON leases(tenant, id) WHERE state NOT IN ('refused', 'released');
CREATE UNIQUE INDEX leases_one_of_job ON leases(job)
  WHERE state NOT IN ('refused', 'scrubbing', 'released', 'quarantined');

CREATE TABLE lease_history(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease INTEGER NOT NULL REFERENCES leases(id),
  old TEXT NOT NULL,
  new TEXT NOT NULL,
  cause TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX lease_history_of_lease ON lease_history(lease, id);
CREATE TRIGGER lease_history_kept BEFORE DELETE ON lease_history
BEGIN SELECT RAISE(ABORT, 'the history of a lease is only added to'); END;
CREATE TRIGGER lease_history_fixed BEFORE UPDATE ON lease_history
BEGIN SELECT RAISE(ABORT, 'the history of a lease is only added to'); END;

-- Verdicts come before the grants they free.
CREATE TABLE scrubs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease INTEGER REFERENCES leases(id),
  gpu TEXT NOT NULL REFERENCES cards(uuid),
  kind TEXT NOT NULL CHECK (kind IN ('whole', 'mig', 'share')),
  key TEXT NOT NULL,
  base TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('clean', 'found', 'unknown')),
  method TEXT NOT NULL,
  probed_bytes INTEGER NOT NULL CHECK (probed_bytes >= 0),
  total_bytes INTEGER NOT NULL CHECK (total_bytes >= probed_bytes),
  words TEXT NOT NULL,
  at_ms INTEGER NOT NULL CHECK (at_ms >= 0)
) STRICT;
CREATE INDEX scrubs_of_slice ON scrubs(gpu, kind, key, id);
CREATE INDEX scrubs_of_lease ON scrubs(lease, id);
CREATE TRIGGER scrubs_kept BEFORE DELETE ON scrubs
BEGIN SELECT RAISE(ABORT, 'a verdict is never deleted'); END;
CREATE TRIGGER scrubs_fixed BEFORE UPDATE ON scrubs
BEGIN SELECT RAISE(ABORT, 'a verdict is never changed'); END;

CREATE TABLE grants(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease INTEGER NOT NULL REFERENCES leases(id),
  gpu TEXT NOT NULL REFERENCES cards(uuid),
  kind TEXT NOT NULL CHECK (kind IN ('whole', 'mig', 'share')),
  key TEXT NOT NULL,
  base TEXT NOT NULL,
  milli INTEGER NOT NULL CHECK (milli BETWEEN 0 AND 1000),
  mib INTEGER NOT NULL CHECK (mib >= 0),
  proved INTEGER REFERENCES scrubs(id)
) STRICT;
CREATE INDEX grants_of_lease ON grants(lease, id);
CREATE TRIGGER grants_begin BEFORE INSERT ON grants
WHEN NEW.proved IS NOT NULL OR (SELECT state FROM leases WHERE id = NEW.lease) NOT IN ('admitted', 'suspended')
BEGIN SELECT RAISE(ABORT, 'slices are given to a lease that is admitted or suspended'); END;
CREATE TRIGGER grants_kept BEFORE DELETE ON grants
BEGIN SELECT RAISE(ABORT, 'what a lease was given is never deleted'); END;
CREATE TRIGGER grants_fixed BEFORE UPDATE ON grants
WHEN NEW.id <> OLD.id OR NEW.lease <> OLD.lease OR NEW.gpu <> OLD.gpu OR NEW.kind <> OLD.kind OR NEW.key <> OLD.key
  OR NEW.base <> OLD.base OR OLD.proved IS NOT NULL
  OR (OLD.kind <> 'share' AND (NEW.milli <> OLD.milli OR NEW.mib <> OLD.mib))
BEGIN SELECT RAISE(ABORT, 'what a lease was given stays as it was'); END;
CREATE TRIGGER grants_proof BEFORE UPDATE OF proved ON grants
WHEN NEW.proved IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM scrubs v JOIN slices s ON s.grant_id = OLD.id
  WHERE v.id = NEW.proved AND v.verdict = 'clean' AND v.lease = OLD.lease AND v.gpu = OLD.gpu AND v.kind = OLD.kind
    AND v.key = OLD.key AND s.state = 'dirty' AND v.id > s.dirtied)
BEGIN SELECT RAISE(ABORT, 'no clean verdict on the slice since it was left'); END;

-- ---- slices ----

CREATE TABLE slices(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  gpu TEXT NOT NULL REFERENCES cards(uuid),
  kind TEXT NOT NULL CHECK (kind IN ('whole', 'mig', 'share')),
  key TEXT NOT NULL,
  base TEXT NOT NULL,
  milli INTEGER NOT NULL CHECK (milli BETWEEN 0 AND 1000),
  mib INTEGER NOT NULL CHECK (mib >= 0),
  device TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('free', 'owned', 'dirty', 'quarantined')),
  lease INTEGER REFERENCES leases(id),      -- that has it, or left it as it is
  grant_id INTEGER REFERENCES grants(id),
  owner INTEGER AS (CASE state WHEN 'owned' THEN lease END) VIRTUAL,
  dirtied INTEGER NOT NULL DEFAULT 0,       -- the last verdict when it became dirty: only later ones count
  since_ms INTEGER NOT NULL CHECK (since_ms >= 0),
  why TEXT NOT NULL DEFAULT '',
  UNIQUE(gpu, kind, key),
  CHECK ((lease IS NULL) = (grant_id IS NULL)),
  CHECK (state <> 'owned' OR lease IS NOT NULL),
  CHECK (state <> 'free' OR lease IS NULL),
  CHECK ((state = 'quarantined') = (why <> '')),
  CHECK ((kind = 'whole') = (key = '')),
  CHECK (kind = 'share' OR (base = '' AND milli > 0)),
  CHECK (kind <> 'whole' OR milli = 1000)
) STRICT;
CREATE INDEX slices_of_lease ON slices(lease) WHERE lease IS NOT NULL;
CREATE UNIQUE INDEX slices_one_of_grant ON slices(grant_id) WHERE grant_id IS NOT NULL;
-- One owner of a whole card; the triggers below hold the rest.
CREATE UNIQUE INDEX slices_one_whole ON slices(gpu) WHERE kind = 'whole';

-- Why a slice cannot be had now, or nothing. What is beside it counts unless it is free.
CREATE VIEW slice_obstacles AS
SELECT s.id AS slice, CASE
    WHEN EXISTS (SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.id <> s.id AND o.kind = 'whole' AND o.state <> 'free')
      THEN 'whole'
    WHEN s.kind = 'whole' AND EXISTS (SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.id <> s.id AND o.state <> 'free')
      THEN 'part'
    WHEN s.kind = 'mig' AND EXISTS (
        SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.kind = 'share' AND o.base IN ('', s.key) AND o.state <> 'free')
      THEN 'share'
    WHEN s.kind = 'share' AND s.base = '' AND EXISTS (
        SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.state <> 'free' AND (o.kind = 'mig' OR (o.kind = 'share' AND o.base <> '')))
      THEN 'mig'
    WHEN s.kind = 'share' AND s.base <> '' AND NOT EXISTS (
        SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.kind = 'mig' AND o.key = s.base AND o.state = 'free')
      THEN 'mig'
    WHEN s.kind = 'share' AND s.base <> '' AND EXISTS (
        SELECT 1 FROM slices o WHERE o.gpu = s.gpu AND o.kind = 'share' AND o.base = '' AND o.state <> 'free')
      THEN 'share'
  END AS what
FROM slices s;

-- What the shares of a card or of an instance come to, and what there is.
CREATE VIEW share_sums AS
SELECT s.gpu AS gpu, s.base AS base, sum(s.milli) AS milli, sum(s.mib) AS mib,
  CASE s.base WHEN '' THEN (SELECT memory_mib FROM cards WHERE uuid = s.gpu)
    ELSE (SELECT mib FROM slices WHERE gpu = s.gpu AND kind = 'mig' AND key = s.base) END AS room_mib
FROM slices s WHERE s.kind = 'share' AND s.state <> 'free' GROUP BY s.gpu, s.base;

-- After, so that the views see the row; what they find undoes it.
CREATE TRIGGER slices_owned_new AFTER INSERT ON slices WHEN NEW.state = 'owned'
BEGIN
  SELECT CASE (SELECT what FROM slice_obstacles WHERE slice = NEW.id)
    WHEN 'whole' THEN RAISE(ABORT, 'the whole card is in use, dirty or quarantined')
    WHEN 'mig' THEN RAISE(ABORT, 'an instance of the card is in use, dirty or quarantined, or is not there')
    WHEN 'share' THEN RAISE(ABORT, 'shares of the card are in use, dirty or quarantined') END;
  SELECT RAISE(ABORT, 'the shares come to more than there is')
    FROM share_sums WHERE gpu = NEW.gpu AND base = NEW.base AND (milli > 1000 OR mib > coalesce(room_mib, 0));
  SELECT RAISE(ABORT, 'the lease was not given this slice')
    WHERE NOT EXISTS (SELECT 1 FROM grants g WHERE g.id = NEW.grant_id AND g.lease = NEW.lease AND g.gpu = NEW.gpu
      AND g.kind = NEW.kind AND g.key = NEW.key AND g.base = NEW.base AND g.milli = NEW.milli AND g.mib = NEW.mib
      AND g.proved IS NULL);
END;
CREATE TRIGGER slices_owned AFTER UPDATE OF state ON slices WHEN NEW.state = 'owned' AND OLD.state <> 'owned'
BEGIN
  SELECT CASE (SELECT what FROM slice_obstacles WHERE slice = NEW.id)
    WHEN 'whole' THEN RAISE(ABORT, 'the whole card is in use, dirty or quarantined')
    WHEN 'part' THEN RAISE(ABORT, 'a part of the card is in use, dirty or quarantined')
    WHEN 'share' THEN RAISE(ABORT, 'shares of it, or of its card, are in use, dirty or quarantined') END;
  SELECT RAISE(ABORT, 'the lease was not given this slice')
    WHERE NOT EXISTS (SELECT 1 FROM grants g WHERE g.id = NEW.grant_id AND g.lease = NEW.lease AND g.gpu = NEW.gpu
      AND g.kind = NEW.kind AND g.key = NEW.key AND g.milli = NEW.milli AND g.mib = NEW.mib AND g.proved IS NULL);
END;
CREATE TRIGGER slices_begin BEFORE INSERT ON slices
WHEN NOT ((NEW.kind = 'share' AND NEW.state = 'owned') OR (NEW.kind <> 'share' AND NEW.state = 'free'))
BEGIN SELECT RAISE(ABORT, 'a slice begins free, a share with its owner'); END;
CREATE TRIGGER slices_move BEFORE UPDATE OF state ON slices
WHEN NEW.state <> OLD.state AND NOT EXISTS (SELECT 1 FROM slice_moves WHERE old = OLD.state AND new = NEW.state)
BEGIN SELECT RAISE(ABORT, 'a slice goes from one owner to another only by way of dirty and a clean verdict'); END;
CREATE TRIGGER slices_share_ends BEFORE UPDATE OF state ON slices
WHEN NEW.state <> OLD.state AND OLD.state = 'free' AND OLD.kind = 'share'
BEGIN SELECT RAISE(ABORT, 'a share that is free is nobody''s again'); END;
CREATE TRIGGER slices_dirty BEFORE UPDATE OF state ON slices
WHEN NEW.state = 'dirty' AND OLD.state <> 'dirty' AND NEW.dirtied <> (SELECT coalesce(max(id), 0) FROM scrubs)
BEGIN SELECT RAISE(ABORT, 'a slice that becomes dirty has no verdict yet'); END;
CREATE TRIGGER slices_mark BEFORE UPDATE OF dirtied ON slices
WHEN NEW.dirtied <> OLD.dirtied AND NOT (NEW.state = 'dirty' AND OLD.state <> 'dirty')
BEGIN SELECT RAISE(ABORT, 'a slice is marked when it becomes dirty'); END;
CREATE TRIGGER slices_clean BEFORE UPDATE OF state ON slices WHEN NEW.state = 'free' AND OLD.state = 'dirty'
BEGIN
  SELECT RAISE(ABORT, 'a slice becomes free only by a clean verdict')
    WHERE coalesce((SELECT v.verdict FROM scrubs v WHERE v.gpu = OLD.gpu AND v.kind = OLD.kind AND v.key = OLD.key
      AND v.id > OLD.dirtied ORDER BY v.id DESC LIMIT 1), '') <> 'clean';
  SELECT RAISE(ABORT, 'a slice becomes free only by a verdict for the lease that left it')
    FROM grants WHERE id = OLD.grant_id AND proved IS NULL;
END;
-- Whoever left it stays written beside it until it is free.
CREATE TRIGGER slices_left BEFORE UPDATE OF lease, grant_id ON slices
WHEN (NEW.lease IS NOT OLD.lease OR NEW.grant_id IS NOT OLD.grant_id) AND NOT (OLD.state = 'free' OR NEW.state = 'free')
BEGIN SELECT RAISE(ABORT, 'a slice that is not free keeps the lease that has it or left it'); END;
CREATE TRIGGER slices_fixed BEFORE UPDATE ON slices
WHEN NEW.id <> OLD.id OR NEW.gpu <> OLD.gpu OR NEW.kind <> OLD.kind OR NEW.key <> OLD.key OR NEW.base <> OLD.base
  OR (NEW.mib <> OLD.mib AND NOT (OLD.state = 'free' OR (OLD.kind = 'share' AND OLD.state = 'owned')))
  OR (NEW.milli <> OLD.milli AND NOT (OLD.kind = 'share' AND OLD.state = 'owned'))
BEGIN SELECT RAISE(ABORT, 'a slice stays what it is'); END;
CREATE TRIGGER slices_size AFTER UPDATE OF milli, mib ON slices WHEN NEW.milli <> OLD.milli OR NEW.mib <> OLD.mib
BEGIN
  SELECT RAISE(ABORT, 'the shares come to more than there is')
    FROM share_sums WHERE gpu = NEW.gpu AND (milli > 1000 OR mib > coalesce(room_mib, 0));
  SELECT RAISE(ABORT, 'a share is of the size that the lease was given')
    FROM grants g WHERE g.id = NEW.grant_id AND (g.milli <> NEW.milli OR g.mib <> NEW.mib);
END;
CREATE TRIGGER slices_gone BEFORE DELETE ON slices
BEGIN
  SELECT RAISE(ABORT, 'a slice that is not free is not deleted') WHERE OLD.state <> 'free';
  SELECT RAISE(ABORT, 'shares of the instance are in use, dirty or quarantined') FROM slices
    WHERE OLD.kind = 'mig' AND gpu = OLD.gpu AND kind = 'share' AND base = OLD.key AND state <> 'free';
END;
CREATE TRIGGER cards_memory AFTER UPDATE OF memory_mib ON cards WHEN NEW.memory_mib <> OLD.memory_mib
BEGIN
  SELECT RAISE(ABORT, 'shares that are given come to more than the card''s memory')
    FROM share_sums WHERE gpu = NEW.uuid AND mib > coalesce(room_mib, 0);
END;
-- A verdict is about a slice that is dirty now, and about the lease that left it so.
CREATE TRIGGER scrubs_begin BEFORE INSERT ON scrubs
WHEN NOT EXISTS (SELECT 1 FROM slices s WHERE s.gpu = NEW.gpu AND s.kind = NEW.kind AND s.key = NEW.key
  AND s.base = NEW.base AND s.state = 'dirty' AND s.lease IS NEW.lease)
BEGIN SELECT RAISE(ABORT, 'a verdict is about a slice that is dirty, and about the lease that left it'); END;

-- ---- usage ----

CREATE TABLE usage(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  lease INTEGER NOT NULL REFERENCES leases(id),
  grant_id INTEGER NOT NULL REFERENCES grants(id),
  tenant TEXT NOT NULL,
  gpu TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  base TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  milli INTEGER NOT NULL CHECK (milli BETWEEN 0 AND 1000),
  mib INTEGER NOT NULL CHECK (mib >= 0),
  from_ms INTEGER NOT NULL CHECK (from_ms >= 0),
  to_ms INTEGER CHECK (to_ms >= from_ms)
) STRICT;
CREATE UNIQUE INDEX usage_one_open ON usage(grant_id) WHERE to_ms IS NULL;
CREATE INDEX usage_open_of_lease ON usage(lease) WHERE to_ms IS NULL;
CREATE INDEX usage_of_lease ON usage(lease, id);
CREATE INDEX usage_of_tenant ON usage(tenant, from_ms);
CREATE INDEX usage_closed ON usage(to_ms);
CREATE TRIGGER usage_begin BEFORE INSERT ON usage
WHEN NEW.to_ms IS NOT NULL OR NOT EXISTS (
  SELECT 1 FROM grants g JOIN leases l ON l.id = g.lease JOIN slices s ON s.grant_id = g.id
  WHERE g.id = NEW.grant_id AND g.lease = NEW.lease AND l.tenant = NEW.tenant AND l.mechanism = NEW.mechanism
    AND g.gpu = NEW.gpu AND g.kind = NEW.kind AND g.key = NEW.key AND g.base = NEW.base
    AND g.mib = NEW.mib AND s.state IN ('owned', 'dirty')
    -- Of the card: what is given of an instance is a part of the instance's part.
    AND NEW.milli = iif(g.base = '', g.milli, g.milli * (SELECT b.milli FROM slices b
      WHERE b.gpu = g.gpu AND b.kind = 'mig' AND b.key = g.base) / 1000))
BEGIN SELECT RAISE(ABORT, 'usage begins for a slice that a lease has, as it was given'); END;
CREATE TRIGGER usage_kept BEFORE DELETE ON usage
BEGIN SELECT RAISE(ABORT, 'usage is never deleted'); END;
CREATE TRIGGER usage_closes_once BEFORE UPDATE ON usage
WHEN OLD.to_ms IS NOT NULL OR NEW.to_ms IS NULL OR NEW.id <> OLD.id OR NEW.lease <> OLD.lease OR NEW.grant_id <> OLD.grant_id
  OR NEW.tenant <> OLD.tenant OR NEW.gpu <> OLD.gpu OR NEW.kind <> OLD.kind OR NEW.key <> OLD.key OR NEW.base <> OLD.base
  OR NEW.mechanism <> OLD.mechanism OR NEW.milli <> OLD.milli OR NEW.mib <> OLD.mib OR NEW.from_ms <> OLD.from_ms
BEGIN SELECT RAISE(ABORT, 'usage is closed once and never changed'); END;
CREATE TRIGGER slices_free_unpaid BEFORE UPDATE OF state ON slices WHEN NEW.state = 'free' AND OLD.state <> 'free'
BEGIN SELECT RAISE(ABORT, 'usage of a slice ends before it is free') FROM usage WHERE grant_id = OLD.grant_id AND to_ms IS NULL; END;

-- ---- leases again: what must hold when one enters a state ----

CREATE TRIGGER leases_begin BEFORE INSERT ON leases WHEN NEW.state <> 'requested' OR NEW.paused <> 0
BEGIN SELECT RAISE(ABORT, 'a lease begins by being requested'); END;
CREATE TRIGGER leases_tenant BEFORE INSERT ON leases
WHEN NOT EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND tenant = NEW.tenant AND state <> 'ended')
BEGIN SELECT RAISE(ABORT, 'a lease is for a job of its own tenant that has not ended'); END;
CREATE TRIGGER leases_kept BEFORE DELETE ON leases
BEGIN SELECT RAISE(ABORT, 'a lease is never deleted'); END;
CREATE TRIGGER leases_fixed BEFORE UPDATE ON leases
WHEN NEW.id <> OLD.id OR NEW.job <> OLD.job OR NEW.tenant <> OLD.tenant OR NEW.created_ms <> OLD.created_ms
  OR (NEW.mechanism <> OLD.mechanism AND OLD.state NOT IN ('requested', 'admitted'))
BEGIN SELECT RAISE(ABORT, 'a lease keeps its id, its job, its tenant and its mechanism'); END;
CREATE TRIGGER leases_move BEFORE UPDATE OF state ON leases
WHEN NOT EXISTS (SELECT 1 FROM lease_moves WHERE old = OLD.state AND new = NEW.state)
BEGIN SELECT RAISE(ABORT, 'no way leads from the one state of a lease to the other'); END;
CREATE TRIGGER leases_slices BEFORE UPDATE OF state ON leases
BEGIN
  SELECT RAISE(ABORT, 'a slice names the lease that may not in its new state')
    FROM slices s JOIN lease_states t ON t.word = NEW.state
    WHERE s.lease = OLD.id AND ((s.state = 'owned' AND NOT t.owned) OR (s.state = 'dirty' AND NOT t.dirty)
      OR (s.state = 'quarantined' AND NOT t.quarantined));
  SELECT RAISE(ABORT, 'a lease in this state has at least one slice') FROM lease_states t
    WHERE t.word = NEW.state AND t.some AND NOT EXISTS (SELECT 1 FROM slices WHERE lease = OLD.id);
END;
CREATE TRIGGER leases_proved BEFORE UPDATE OF state ON leases WHEN NEW.state IN ('released', 'suspended')
BEGIN
  SELECT RAISE(ABORT, 'a slice of the lease has no clean verdict') FROM grants WHERE lease = OLD.id AND proved IS NULL;
  SELECT RAISE(ABORT, 'the lease was never given a slice') WHERE NOT EXISTS (SELECT 1 FROM grants WHERE lease = OLD.id);
END;
CREATE TRIGGER leases_paid BEFORE UPDATE OF state ON leases
BEGIN
  SELECT RAISE(ABORT, 'a lease that is not charged has open usage') FROM lease_states t
    WHERE t.word = NEW.state AND NOT t.charged AND EXISTS (SELECT 1 FROM usage WHERE lease = OLD.id AND to_ms IS NULL);
  SELECT RAISE(ABORT, 'nobody pays for a slice of the lease') FROM lease_states t JOIN slices s ON s.lease = OLD.id
    WHERE t.word = NEW.state AND t.charged AND s.state IN ('owned', 'dirty')
      AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.grant_id = s.grant_id AND u.to_ms IS NULL);
END;
CREATE TRIGGER leases_history AFTER UPDATE OF state ON leases
BEGIN
  INSERT INTO lease_history(lease, old, new, cause, at_ms, why)
    VALUES (NEW.id, OLD.state, NEW.state, NEW.cause, NEW.state_ms, NEW.why);
END;
