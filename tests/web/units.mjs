// SPDX-License-Identifier: Apache-2.0
// units.mjs - parts of the console that need no browser. Started by units.py: units.mjs FOLDER, a copy of web/ as modules.
import assert from 'node:assert/strict';
import {createHash, generateKeyPairSync, sign} from 'node:crypto';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const load = (name) => import(pathToFileURL(path.join(process.argv[2], name)).href);
globalThis.sessionStorage = {getItem: () => null}; // api.js looks for a token when it is loaded
const {checker, treeOf} = await load('chain.js');
const {pagesOf} = await load('api.js');
const f = await load('format.js');
const {latest} = await load('latest.js');
const {layers, stateOf} = await load('layers.js');
const {partsOf} = await load('silicon.js');
const tests = [];
const test = (name, run) => tests.push([name, run]);

// ---- the chain ----

const sha = (...parts) => parts.reduce((h, p) => h.update(p), createHash('sha256')).digest();
const keys = generateKeyPairSync('ed25519');
const ID = '0a0b0c0d';
const KEY = `n+${ID}+${Buffer.concat([Buffer.of(1), keys.publicKey.export({format: 'der', type: 'spki'}).subarray(-32)]).toString('base64')}`;

/** A log of n records, the first with the key; events: others than `job.submit`, by number. */
function logOf(n, events = {}) {
  let prev = Buffer.alloc(32);
  return Array.from({length: n}, (_, i) => {
    const event = events[i + 1] || (i ? 'job.submit' : 'audit.key');
    const body = JSON.stringify({event, prev: prev.toString('hex'), seq: i + 1, ...(i ? {} : {after: KEY})});
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(Buffer.byteLength(body)));
    const hash = sha(Buffer.of(0), length, body);
    prev = sha(Buffer.of(1), prev, hash);
    return {seq: i + 1, event, body, hash: hash.toString('hex')};
  });
}

/** RFC 6962, as it defines it: split at the largest power of two below n. */
function rootOf(leaves) {
  if (leaves.length === 1) return leaves[0];
  let k = 1;
  while (2 * k < leaves.length) k *= 2;
  return sha(Buffer.of(1), rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

function checkpointOf(log, size = log.length) {
  const text = `n\n${size}\n${rootOf(log.slice(0, size).map((r) => Buffer.from(r.hash, 'hex'))).toString('base64')}\n`;
  return {note: `${text}\n— n ${Buffer.concat([Buffer.from(ID, 'hex'), sign(null, Buffer.from(text), keys.privateKey)]).toString('base64')}\n`};
}

async function checked(log, checkpoint, page = 1000) {
  const c = checker(checkpoint);
  for (let at = 0; at < log.length; at += page) await c.add(log.slice(at, at + page));
  return c.end();
}

test('the root of a tree that grows is that of RFC 6962 at each size', async () => {
  const leaves = Array.from({length: 70}, (_, i) => sha(String(i)));
  const tree = treeOf();
  for (let n = 1; n <= leaves.length; n++) {
    await tree.add(leaves[n - 1]);
    assert.equal(Buffer.from(await tree.root()).toString('hex'), rootOf(leaves.slice(0, n)).toString('hex'), `of ${n}`);
  }
});

test('a log longer than 51,000 records is checked to its end', async () => {
  const log = logOf(51500);
  const asked = [];
  globalThis.fetch = async (url) => {
    asked.push(url);
    const after = Number(/after=(\d+)/.exec(url)?.[1] || 0);
    const records = log.slice(after, after + 1000);
    return {ok: true, json: async () => ({records, next: after + 1000 < log.length ? after + 1000 : null})};
  };
  const c = checker(checkpointOf(log));
  for await (const page of pagesOf('/v1/audit?bodies=true')) await c.add(page.records);
  const r = await c.end();
  assert.deepEqual(r, {checked: 51500, links: 51499, wrong: [], checkpoint: {size: 51500, root: true, signature: 'yes'}, whole: true});
  assert.equal(asked.length, 52);
});

test('pages of any size give the same verdict; records behind the checkpoint are checked too', async () => {
  const log = logOf(600);
  const want = await checked(log, checkpointOf(log, 513), 600);
  assert.deepEqual(want.checkpoint, {size: 513, root: true, signature: 'yes'});
  for (const page of [1, 7, 256, 257]) assert.deepEqual(await checked(log, checkpointOf(log, 513), page), want);
});

test('what was edited, taken out or cut off is found', async () => {
  const log = logOf(300);
  const point = checkpointOf(log);
  const wrong = async (change) => {
    const copy = log.map((r) => ({...r}));
    change(copy);
    return (await checked(copy, point, 100)).wrong.map((w) => `${w.seq} ${w.what}`).join('; ');
  };
  assert.match(await wrong((l) => { l[149].body += ' '; }), /^150 its text is not what was hashed; 151 it does not follow/);
  assert.match(await wrong((l) => { l[149].event = 'job.end'; }), /^150 what is shown is not what its text says$/);
  assert.match(await wrong((l) => l.splice(99, 1)), /^100 missing/);
  assert.equal(await wrong((l) => l.splice(299, 1)), '300 the signed checkpoint is of another log');
  assert.equal(await wrong((l) => l), '');
});

test('records dropped after their time are no fault where a later record says so', async () => {
  const log = logOf(300, {290: 'audit.prune'});
  const kept = [log[0], ...log.slice(200)];
  const r = await checked(kept, checkpointOf(log), 10);
  assert.deepEqual([r.wrong, r.whole, r.checkpoint], [[], false, null]);
  assert.deepEqual((await checked([log[0], ...log.slice(295)], null, 10)).wrong, [{seq: 2, what: 'missing'}]);
});

// ---- what is shown while it is on its way ----

test('the last answer stays until the next one is there, and none of another question', () => {
  const shown = latest();
  assert.deepEqual([shown('1h'), shown('1h', 'a'), shown('1h'), shown('1h', 'b'), shown('24h'), shown('1h')], [undefined, 'a', 'a', 'b', undefined, undefined]);
});

// ---- tenants ----

test('no two tenants look alike', () => {
  const looks = new Set();
  for (let i = 0; i < 300; i++) {
    looks.add(`${f.colourOf(`t${i}`)} ${f.glyphOf(`t${i}`)}`);
    assert.equal(looks.size, i + 1, `t${i}`);
    assert.equal(/\d/.test(f.glyphOf(`t${i}`)), i >= 64, `t${i}`);
  }
});

// ---- layers ----

const cardOf = (index, fabric, slices = []) => ({index, state: 'ok', health: null, fabric, slices});
const quotas = [{waiting_jobs: 3}];
const leases = [{state: 'active', mechanism: 'mig', tier: 'container'}];

test('what is seen and was not checked is not called well', () => {
  const all = layers({gpus: [cardOf(0, 'nvl-0'), cardOf(1, 'nvl-1')], leases, quotas});
  assert.deepEqual(Object.fromEntries(Object.entries(all).map(([k, v]) => [k, stateOf(v)])),
    {hardware: 'ok', fabric: 'none', scheduler: 'none', virtualization: 'none', lifecycle: 'none'});
  assert.equal(stateOf(layers({gpus: []}).hardware), 'none');
  assert.equal(stateOf(layers({}).hardware), 'none');
});

test('a card that is in no domain while others are asks for attention', () => {
  const {fabric} = layers({gpus: [cardOf(0, 'nvl-0'), cardOf(5, null)]});
  assert.equal(stateOf(fabric), 'warn');
  assert.match(fabric[1].text, /GPU 5$/);
  assert.equal(stateOf(layers({gpus: [cardOf(0, null), cardOf(5, null)]}).fabric), 'none');
});

test('a check of the doctor stands in its layer', () => {
  const doctor = [['cgroup', 'ok'], ['scrub', 'ok'], ['stranger', 'bad'], ['policy', 'ok'], ['https', 'warn'], ['something new', 'ok']].map(([layer, state]) => ({layer, state, sentence: '', mend: null}));
  assert.deepEqual(Object.fromEntries(Object.entries(layers({doctor, gpus: [cardOf(0, null)]})).map(([k, v]) => [k, stateOf(v)])),
    {hardware: 'bad', fabric: 'none', scheduler: 'ok', virtualization: 'ok', lifecycle: 'ok', node: 'warn'});
});

// ---- a card that is cut ----

/** Both lanes in units, as a letter each: i of an instance, x what cannot be used, - what is free. */
function drawn(model, memory, ...instances) {
  const units = model === 'A30' ? 4 : 8;
  const parts = partsOf({model, memory_mib: memory, others: null, slices: instances.map(([key, gib]) => ({kind: 'mig', key: `mig:${key}`, memory_mib: gib * 1011, state: 'owned', tenant: 't', milli: 0}))});
  return ['c', 'm'].map((lane) => Array.from({length: units}, (_, i) => {
    const on = parts.filter((p) => p[`${lane}0`] <= (i + 0.5) / units && (i + 0.5) / units < p[`${lane}1`]);
    assert.ok(on.length < 2, JSON.stringify(on));
    return on.length === 0 ? '-' : on[0].useless ? 'x' : 'i';
  }).join('')).join(' ');
}

test('what is left of a full card is drawn as what cannot be used', () => {
  const h100 = (...list) => drawn('H100-80GB-SXM', 81559, ...list);
  assert.equal(h100(['3g.40gb@0', 40], ['3g.40gb@4', 40]), 'iiixiiix iiiiiiii');
  assert.equal(h100(['7g.80gb@0', 80]), 'iiiiiiix iiiiiiii');
  assert.equal(h100(...[0, 1, 2, 3, 4, 5, 6].map((at) => [`1g.10gb@${at}`, 10])), 'iiiiiiix iiiiiiix');
  assert.equal(h100(...[0, 2, 4, 6].map((at) => [`1g.20gb@${at}`, 20])), 'ixixixix iiiiiiii');
  assert.equal(drawn('A30', 24576, ['2g.12gb@0', 12], ['2g.12gb@2', 12]), 'iiii iiii');
});

test('what is left of a card that is not full is free, but for the unit of compute that does not exist', () => {
  assert.equal(drawn('H100-80GB-SXM', 81559, ['3g.40gb@0', 40]), 'iii----x iiii----');
  assert.equal(drawn('A30', 24576, ['2g.12gb@0', 12]), 'ii-- ii--');
});

console.log(`1..${tests.length}`);
for (const [i, [name, run]] of tests.entries()) {
  try {
    await run();
    console.log(`ok ${i + 1} - ${name}`);
  } catch (e) {
    console.log(`not ok ${i + 1} - ${name}\n# ${String(e.stack).replaceAll('\n', '\n# ')}`);
    process.exitCode = 1;
  }
}
