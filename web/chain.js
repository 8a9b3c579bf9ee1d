// SPDX-License-Identifier: Apache-2.0
// chain.js - checks the audit log here, from the bytes that were hashed: nothing of the node's own verdict is taken.
//
//   hash_i  = SHA-256(0x00, length of body_i in 8 bytes, body_i)
//   chain_i = SHA-256(0x01, chain_(i-1), hash_i), and body_(i+1) names chain_i as `prev`
//   a checkpoint signs the root of the Merkle tree (RFC 6962) over the hashes

const utf8 = new TextEncoder();
const BATCH = 256;
const KEY = /^audit\.key(-change)?$/;

export const hexOf = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) || [], (x) => parseInt(x, 16));
const base64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

async function sha256(...parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all));
}

export async function leafHash(body) {
  const text = utf8.encode(body);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length));
  return sha256(Uint8Array.of(0), length, text);
}
const chainHash = (prev, hash) => sha256(Uint8Array.of(1), prev, hash);

/** The root over these leaves: pairs from the left, the odd one goes up as it is. */
export async function rootOf(leaves) {
  let level = leaves;
  while (level.length > 1) {
    const up = [];
    for (let i = 0; i + 1 < level.length; i += 2) up.push(sha256(Uint8Array.of(1), level[i], level[i + 1]));
    const made = await Promise.all(up);
    if (level.length % 2) made.push(level[level.length - 1]);
    level = made;
  }
  return level[0];
}

/** `name+id+base64`, as a record of a key has it. */
function keyOf(text) {
  const [, id, data] = /^[^+]+\+([0-9a-f]{8})\+(.+)$/.exec(text || '') || [];
  return id ? {id, bytes: base64(data).slice(1)} : null;
}

function noteOf(note) {
  const end = note.indexOf('\n\n') + 1;
  const [origin, size, root] = note.slice(0, end).split('\n');
  const signatures = note.slice(end + 1).split('\n').filter((l) => l.startsWith('— ')).map((l) => {
    const data = base64(l.split(' ')[2]);
    return {id: hexOf(data.slice(0, 4)), at: data.slice(4)};
  });
  return {origin, size: Number(size), root: base64(root), text: note.slice(0, end), signatures};
}

async function signed(note, keys) {
  for (const s of note.signatures) {
    const key = keys.find((k) => k.id === s.id);
    if (!key) continue;
    try {
      const k = await crypto.subtle.importKey('raw', key.bytes, {name: 'Ed25519'}, false, ['verify']);
      return await crypto.subtle.verify({name: 'Ed25519'}, k, s.at, utf8.encode(note.text)) ? 'yes' : 'no';
    } catch {
      return 'cannot';
    }
  }
  return 'unknown';
}

/**
 * Records in their order, each with `body` and `hash`; whole: all there are, from the first one on. What is wrong is named
 * by the record: {checked, links, wrong: [{seq, what}], checkpoint: {size, root, signature} | null, whole}.
 */
export async function verify(records, checkpoint, whole, progress) {
  const wrong = [];
  const leaves = [];
  const keys = [];
  const prunes = records.filter((r) => r.event === 'audit.prune').map((r) => r.seq);
  let links = 0;
  let chain = null;
  let dropped = false;
  for (let at = 0; at < records.length; at += BATCH) {
    const batch = records.slice(at, at + BATCH);
    const hashes = await Promise.all(batch.map((r) => leafHash(r.body)));
    for (let i = 0; i < batch.length; i++) {
      const r = batch[i];
      const before = at + i > 0 ? records[at + i - 1] : null;
      const said = JSON.parse(r.body);
      if (hexOf(hashes[i]) !== r.hash) wrong.push({seq: r.seq, what: 'its text is not what was hashed'});
      if (said.seq !== r.seq || said.event !== r.event) wrong.push({seq: r.seq, what: 'what is shown is not what its text says'});
      if (whole && before && r.seq !== before.seq + 1) {
        // Records of keys stay when those around them are dropped after their time, and that is recorded further on.
        if (KEY.test(before.event) && prunes.some((p) => p >= r.seq)) dropped = true;
        else wrong.push({seq: before.seq + 1, what: 'missing'});
      }
      if (!before && r.seq === 1 && /[^0]/.test(said.prev)) wrong.push({seq: 1, what: 'the first record names one before it'});
      if (chain && before && r.seq === before.seq + 1) {
        links++;
        if (said.prev !== hexOf(chain)) wrong.push({seq: r.seq, what: 'it does not follow the record before it'});
      }
      chain = await chainHash(bytesOf(said.prev), hashes[i]);
      leaves.push(hashes[i]);
      const key = KEY.test(said.event) ? keyOf(said.after) : null;
      if (key) keys.push(key);
    }
    progress?.(Math.min(records.length, at + BATCH));
  }
  let point = null;
  const all = whole && !dropped && records[0]?.seq === 1;
  if (checkpoint && all) {
    const note = noteOf(checkpoint.note);
    const ours = note.size <= leaves.length ? await rootOf(leaves.slice(0, note.size)) : null;
    point = {size: note.size, root: ours !== null && hexOf(ours) === hexOf(note.root), signature: await signed(note, keys)};
    if (!point.root) wrong.push({seq: note.size, what: 'the signed checkpoint is of another log'});
    if (point.signature === 'no') wrong.push({seq: note.size, what: 'the checkpoint’s signature is wrong'});
  }
  return {checked: records.length, links, wrong, checkpoint: point, whole: all};
}
