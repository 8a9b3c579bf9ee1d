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

const pairHash = (left, right) => sha256(Uint8Array.of(1), left, right);

/**
 * The Merkle tree over leaves as they come: of each whole subtree only its root is kept, so that a log of any length takes
 * a few hashes.
 */
export function treeOf() {
  const roots = []; // the largest first: as many as the count of leaves has bits that are set
  let size = 0;
  return {
    async add(leaf) {
      let hash = leaf;
      for (let n = size++; n & 1; n >>>= 1) hash = await pairHash(roots.pop(), hash);
      roots.push(hash);
    },
    /** Over all leaves so far; the odd one goes up as it is. */
    async root() {
      let hash = roots[roots.length - 1];
      for (let i = roots.length - 2; i >= 0; i--) hash = await pairHash(roots[i], hash);
      return hash;
    },
  };
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
 * Checks a log as its pages come; nothing of a page is kept but hashes. checkpoint: fetched before the first page, or null.
 * add(records): the next ones in their order, each with `body` and `hash`; end(): there are no more, so this is the verdict.
 * What is wrong is named by the record: {checked, links, wrong: [{seq, what}], checkpoint: {size, root, signature} | null, whole}.
 */
export function checker(checkpoint) {
  const note = checkpoint ? noteOf(checkpoint.note) : null;
  const wrong = [];
  const keys = [];
  const gaps = []; // after a record of a key: right where a later record says that those between were dropped
  const tree = treeOf();
  let root = null; // when as many were seen as the checkpoint is over
  let checked = 0;
  let links = 0;
  let chain = null;
  let before = null;
  let first = null;
  let pruned = 0; // the last record that tells of dropped ones

  function follows(r, said) {
    if (!before) {
      if (r.seq === 1 && /[^0]/.test(said.prev)) wrong.push({seq: 1, what: 'the first record names one before it'});
    } else if (r.seq === before.seq + 1) {
      links++;
      if (said.prev !== hexOf(chain)) wrong.push({seq: r.seq, what: 'it does not follow the record before it'});
    } else if (KEY.test(before.event)) gaps.push({from: before.seq + 1, to: r.seq});
    else wrong.push({seq: before.seq + 1, what: 'missing'});
  }

  async function one(r, hash) {
    const said = JSON.parse(r.body);
    if (hexOf(hash) !== r.hash) wrong.push({seq: r.seq, what: 'its text is not what was hashed'});
    if (said.seq !== r.seq || said.event !== r.event) wrong.push({seq: r.seq, what: 'what is shown is not what its text says'});
    follows(r, said);
    first ??= r.seq;
    chain = await chainHash(bytesOf(said.prev), hash);
    if (r.event === 'audit.prune') pruned = r.seq;
    const key = KEY.test(said.event) ? keyOf(said.after) : null;
    if (key) keys.push(key);
    before = {seq: r.seq, event: r.event};
    checked++;
    if (!note || checked > note.size) return;
    await tree.add(hash);
    if (checked === note.size) root = await tree.root();
  }

  async function add(records, progress) {
    for (let at = 0; at < records.length; at += BATCH) {
      const batch = records.slice(at, at + BATCH);
      const hashes = await Promise.all(batch.map((r) => leafHash(r.body)));
      for (let i = 0; i < batch.length; i++) await one(batch[i], hashes[i]);
      progress?.(checked);
    }
  }

  async function end() {
    for (const g of gaps) if (pruned < g.to) wrong.push({seq: g.from, what: 'missing'});
    const whole = first === 1 && !gaps.some((g) => pruned >= g.to);
    let point = null;
    if (note && whole) {
      point = {size: note.size, root: root !== null && hexOf(root) === hexOf(note.root), signature: await signed(note, keys)};
      if (!point.root) wrong.push({seq: note.size, what: 'the signed checkpoint is of another log'});
      if (point.signature === 'no') wrong.push({seq: note.size, what: 'the checkpoint’s signature is wrong'});
    }
    return {checked, links, wrong: wrong.sort((a, b) => a.seq - b.seq), checkpoint: point, whole};
  }
  return {add, end};
}
