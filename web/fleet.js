// SPDX-License-Identifier: Apache-2.0
// fleet.js - every GPU with its slices. Three ways to look: cards, a map for thousands, a table.
//
// Cards and map draw only what is in the window, in an island of their own: scrolling touches nothing else of the page.
import {h, redraw, render, unrender} from './dom.js';
import {post} from './api.js';
import {refresh, use} from './data.js';
import {answered, attempt, badge, confirm, empty, lookOf, tenantName, when} from './parts.js';
import {address, go, route} from './route.js';
import {grantedOf, gridOf, isCut, partsOf} from './silicon.js';
import {table} from './table.js';
import {mayOperate} from './who.js';
import * as f from './format.js';

const MANY = 96; // from here on a map is shown at first
const CARD = {width: 296, height: 164, gap: 16};
const NARROW = 0.2; // of a card: a name does not fit in there
const TILE = {size: 22, gap: 4};
const HEAD = 44;

const groupers = {
  pool: ['Pool', (g) => g.pool || 'no pool'],
  node: ['Node', (g) => g.node || 'this node'],
  fabric: ['Fabric domain', (g) => g.fabric ?? 'not known'],
  numa: ['NUMA node', (g) => g.numa === null || g.numa === undefined ? 'not known' : `NUMA ${g.numa}`],
  model: ['Model', (g) => g.model || 'unknown model'],
  state: ['State', (g) => g.state],
  none: ['Nothing', () => ''],
};

const tenantsOn = (g) => [...new Set(g.slices.map((s) => s.tenant).filter(Boolean))];
const nameOf = (g) => `GPU ${g.index}`;
const keyOf = (g) => g.uuid || `${g.node || ''}${g.index}`;
const isIll = (g) => g.state !== 'ok' || Boolean(g.health) || g.slices.some((s) => s.state === 'quarantined');

/** All that can be searched for, as one text; made once for each answer. */
const texts = new WeakMap();
function textOf(g) {
  let t = texts.get(g);
  if (!t) {
    t = [nameOf(g), g.uuid, g.model, g.pci, g.pool, g.state, g.node, g.fabric, g.layout, ...g.slices.flatMap((s) => [s.tenant, s.lease, s.key])]
      .filter(Boolean).join(' ').toLowerCase();
    texts.set(g, t);
  }
  return t;
}

// What is shown of an answer, in which order: found once, not with every frame.
let memo = {};
function arranged(data, p) {
  const want = `${p.q || ''}|${p.group || ''}|${p.ill || ''}`;
  if (memo.data === data && memo.want === want) return memo.out;
  const words = (p.q || '').toLowerCase().split(/\s+/).filter(Boolean);
  const shown = data.gpus.filter((g) => (!p.ill || isIll(g)) && words.every((w) => textOf(g).includes(w)));
  const by = (groupers[p.group] || groupers.pool)[1];
  const groups = new Map();
  for (const g of shown) {
    const k = by(g);
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(g);
  }
  const sorted = [...groups].sort(([a], [b]) => String(a).localeCompare(String(b), 'en', {numeric: true}));
  memo = {data, want, out: {shown, groups: sorted}};
  return memo.out;
}

// What is said of all of them together: found once for each answer.
const sums = new WeakMap();
function summary(data) {
  let s = sums.get(data);
  if (!s) {
    s = {ill: 0, granted: 0, tenants: new Set()};
    for (const g of data.gpus) {
      s.ill += isIll(g) ? 1 : 0;
      s.granted += grantedOf(g).milli;
      for (const x of g.slices) if (x.tenant) s.tenants.add(x.tenant);
    }
    sums.set(data, s);
  }
  return s;
}

// ---- one card ----

const narrow = (p, compute, all) => !all && (compute ? p.c1 - p.c0 : p.m1 - p.m0) < NARROW;

function partWords(p, compute, all) {
  if (p.useless) return '';
  if (narrow(p, compute, all)) return compute && p.tenant ? f.glyphOf(p.tenant) : '';
  if (!compute) return p.mig ? p.label : p.label === 'whole' || p.others ? '' : f.mib(p.slice.memory_mib);
  return `${p.state === 'quarantined' ? '✖ ' : p.tenant ? `${f.glyphOf(p.tenant)} ` : ''}${p.others ? 'others' : p.tenant || p.state}`;
}

/** Compute or memory of a card, from left to right, to scale; all: there is room for every name. */
function lane(g, parts, compute, all) {
  const [from, to] = compute ? ['c0', 'c1'] : ['m0', 'm1'];
  const used = !compute && g.used_mib > 0 ? g.used_mib / g.memory_mib : 0;
  return h('div.lane', null,
    h('span.lname', null, compute ? 'compute' : 'memory'),
    h('div.cells', null,
      parts.filter((p) => p[to] > p[from]).map((p) => h('div', {
        class: `part ${p.others ? 'others' : p.tenant ? `t${f.colourOf(p.tenant)}` : 'nobody'} s-${p.state}`,
        style: {left: `${100 * p[from]}%`, width: `${100 * (p[to] - p[from])}%`},
        title: p.useless ? `cannot be used: no ${compute ? 'memory' : 'compute'} goes with it` : `${p.others ? 'others' : p.tenant || 'nobody'} · ${p.label} · ${p.state}`,
      }, h('span', null, partWords(p, compute, all)), compute && h('span.hidden', null, ` ${narrow(p, compute, all) && !p.useless ? p.tenant || p.state : ''} ${p.others ? '' : p.label},`))),
      isCut(g) && h('div.ticks', {'aria-hidden': 'true', style: {'--units': String(gridOf(g.model).memory)}}),
      used > 0 && h('div.used', {'aria-hidden': 'true', style: {width: `${100 * used}%`}}),
      compute && parts.length === 0 && h('span.free', null, 'free')));
}
const lanes = (g, all) => {
  const parts = partsOf(g);
  return [lane(g, parts, true, all), lane(g, parts, false, all)];
};

function words(g) {
  const who = partsOf(g).filter((p) => !p.useless).map((p) => `${p.others ? 'others' : p.tenant || p.state} ${p.label}`).join(', ');
  return `${nameOf(g)}, ${g.model || 'unknown model'}, ${g.state}${g.health ? `, ${g.health}` : ''}; ${who || 'free'}`;
}

function card(g) {
  const granted = grantedOf(g);
  return h('a.gpu', {key: keyOf(g), href: address('fleet', String(g.index), route().params), class: isIll(g) ? 'ill' : ''},
    h('div.top', null, h('strong', null, nameOf(g)), h('span.muted.model', null, g.model || 'unknown model'), badge(g.state)),
    lanes(g, false),
    h('div.facts', null,
      h('span', null, `${f.mib(granted.mib)} of ${f.mib(g.memory_mib)} granted`),
      g.used_mib !== null && g.used_mib !== undefined && h('span', null, `${f.mib(g.used_mib)} used`)),
    h('div.facts.muted', null,
      g.health ? h('span.warnword', null, `▲ ${g.health}`) : [
        g.temperature_c !== null && g.temperature_c !== undefined && h('span', null, `${g.temperature_c} °C`),
        g.power_mw !== null && g.power_mw !== undefined && h('span', null, `${Math.round(g.power_mw / 1000)} W`),
        g.numa !== null && g.numa !== undefined && h('span', null, `NUMA ${g.numa}`),
        g.fabric !== null && g.fabric !== undefined && h('span', null, `fabric ${g.fabric}`)]));
}

// ---- what is in the window ----

/** Lines of a grid: heads of groups and rows of items, each with its place. */
function layout(groups, columns, size, named) {
  const lines = [];
  let y = 0;
  for (const [name, items] of groups) {
    if (named) {
      lines.push({y, high: HEAD, name, items});
      y += HEAD;
    }
    for (let i = 0; i < items.length; i += columns) {
      lines.push({y, high: size, items: items.slice(i, i + columns)});
      y += size;
    }
  }
  return {lines, high: y};
}

function firstAt(lines, y) {
  let low = 0, high = lines.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (lines[mid].y + lines[mid].high <= y) low = mid + 1;
    else high = mid;
  }
  return low;
}

const headWords = (l) => [h('h2', null, l.name), h('span.muted', null, `${f.plural(l.items.length, 'GPU')}, ${f.plural(l.items.filter((g) => g.slices.some((s) => s.state !== 'free') || g.others?.slices).length, 'in use', 'in use')}`)];

/** An element that draws itself for the part of the page that is seen. */
function island(draw) {
  let on = null;
  const seen = (el) => {
    const box = el.getBoundingClientRect();
    return {top: Math.max(0, -box.top), bottom: Math.min(box.height, innerHeight - box.top), width: el.clientWidth};
  };
  return {
    mount(el) {
      let waiting = false;
      on = () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => {
          waiting = false;
          if (el.isConnected) el.draw(el, seen(el));
        });
      };
      el.draw = draw;
      el.again = on;
      addEventListener('scroll', on, {passive: true});
      addEventListener('resize', on);
      el.draw(el, seen(el));
      // Its height is known now, and so is what of it is seen.
      el.draw(el, seen(el));
    },
    update(el) {
      el.draw = draw;
      el.draw(el, seen(el));
    },
    gone(el) {
      removeEventListener('scroll', el.again);
      removeEventListener('resize', el.again);
      unrender(el);
    },
  };
}

function cards(groups, named) {
  const draw = (el, {top, bottom, width}) => {
    const columns = Math.max(1, Math.floor((width + CARD.gap) / (CARD.width + CARD.gap)));
    const size = CARD.height + CARD.gap;
    const all = el.made?.groups === groups && el.made.columns === columns ? el.made : {groups, columns, ...layout(groups, columns, size, named)};
    el.made = all;
    el.style.height = `${all.high}px`;
    const from = firstAt(all.lines, top - 2 * size);
    const out = [];
    for (let i = from; i < all.lines.length && all.lines[i].y < bottom + 2 * size; i++) {
      const l = all.lines[i];
      // A row that was made stays as it is until there is another answer.
      l.made ??= l.name !== undefined
        ? h('div.ghead', {key: `head ${l.name}`, style: {transform: `translateY(${l.y}px)`}}, headWords(l))
        : h('div.grow', {key: keyOf(l.items[0]), style: {transform: `translateY(${l.y}px)`, 'grid-template-columns': `repeat(${columns}, minmax(0, 1fr))`}}, l.items.map(card));
      out.push(l.made);
    }
    render(el, out);
  };
  return h('div.virtual', {key: 'cards', hook: island(draw)});
}

// ---- the map ----

let paint = null; // colours of the theme, read once
export function themeChanged() {
  paint = null;
  redraw();
}
function colours() {
  if (paint) return paint;
  const css = getComputedStyle(document.documentElement);
  const of = (name) => css.getPropertyValue(name).trim();
  paint = {t: Array.from({length: f.COLOURS}, (_, i) => of(`--t${i}`)), free: of('--track'), line: of('--line'), bad: of('--bad'), warn: of('--warn'),
    text: of('--text'), muted: of('--muted'), accent: of('--accent'), others: of('--muted'), font: css.fontFamily || 'sans-serif'};
  return paint;
}

function tile(ctx, g, x, y, c, chosen) {
  const n = TILE.size;
  ctx.fillStyle = c.free;
  ctx.fillRect(x, y, n, n);
  ctx.globalAlpha = 0.85;
  for (const p of partsOf(g)) {
    if (p.c1 <= p.c0) continue;
    ctx.fillStyle = p.others ? c.others : p.tenant ? c.t[f.colourOf(p.tenant)] : c.line;
    ctx.fillRect(x + n * p.c0, y, Math.max(1, n * (p.c1 - p.c0)), n);
  }
  ctx.globalAlpha = 1;
  if (isIll(g)) {
    const bad = lookOf(g.state)[1] === 'bad';
    ctx.strokeStyle = bad ? c.bad : c.warn;
    ctx.lineWidth = 2;
    ctx.strokeRect(x + 1, y + 1, n - 2, n - 2);
    ctx.beginPath();
    ctx.moveTo(x + 5, y + 5);
    ctx.lineTo(x + n - 5, y + n - 5);
    if (bad) {
      ctx.moveTo(x + n - 5, y + 5);
      ctx.lineTo(x + 5, y + n - 5);
    }
    ctx.stroke();
  }
  if (chosen) {
    ctx.strokeStyle = c.text;
    ctx.lineWidth = 2;
    ctx.strokeRect(x - 2, y - 2, n + 4, n + 4);
  }
}

const cursor = {key: null};

function map(groups, shown, named) {
  const step = TILE.size + TILE.gap;
  const draw = (el, {top, bottom, width}) => {
    const columns = Math.max(1, Math.floor((width + TILE.gap) / step));
    const all = el.made?.groups === groups && el.made.columns === columns ? el.made : {groups, columns, ...layout(groups, columns, step, named)};
    el.made = all;
    el.style.height = `${Math.max(all.high, step)}px`;
    if (!el.firstChild) render(el, h('canvas', {'aria-hidden': 'true'}));
    const canvas = el.firstChild;
    const scale = devicePixelRatio || 1;
    const high = Math.min(innerHeight, Math.max(step, all.high));
    const y0 = Math.max(0, Math.min(top, all.high - high));
    const wide = Math.round(width * scale), tall = Math.round(high * scale);
    if (canvas.width !== wide || canvas.height !== tall) {
      canvas.width = wide;
      canvas.height = tall;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${high}px`;
    }
    canvas.style.transform = `translateY(${y0}px)`;
    const ctx = canvas.getContext('2d');
    const c = colours();
    ctx.setTransform(scale, 0, 0, scale, 0, -y0 * scale);
    ctx.clearRect(0, y0, width, high);
    for (let i = firstAt(all.lines, y0); i < all.lines.length && all.lines[i].y < Math.max(bottom, y0 + high); i++) {
      const l = all.lines[i];
      if (l.name !== undefined) {
        ctx.fillStyle = c.text;
        ctx.font = `600 14px ${c.font}`;
        ctx.fillText(String(l.name), 0, l.y + 30);
        const at = ctx.measureText(String(l.name)).width + 12;
        ctx.fillStyle = c.muted;
        ctx.font = `13px ${c.font}`;
        ctx.fillText(f.plural(l.items.length, 'GPU'), at, l.y + 30);
      } else l.items.forEach((g, k) => tile(ctx, g, k * step, l.y, c, keyOf(g) === cursor.key));
    }
  };
  const at = (el, e) => {
    const box = el.getBoundingClientRect();
    const y = e.clientY - box.top;
    const l = el.made?.lines[firstAt(el.made.lines, y)];
    return l && l.name === undefined ? l.items[Math.floor((e.clientX - box.left) / step)] : undefined;
  };
  const choose = (g) => {
    cursor.key = g ? keyOf(g) : null;
    redraw();
  };
  const move = (el, by) => {
    const i = shown.findIndex((g) => keyOf(g) === cursor.key);
    const next = shown[Math.max(0, Math.min(shown.length - 1, i < 0 ? 0 : i + by))];
    choose(next);
    const l = el.made.lines.find((x) => x.name === undefined && x.items.includes(next));
    const box = el.getBoundingClientRect();
    if (l && (box.top + l.y < 80 || box.top + l.y > innerHeight - 80)) scrollBy(0, box.top + l.y - innerHeight / 2);
  };
  const chosen = shown.find((g) => keyOf(g) === cursor.key);
  return [
    h('p.hint', {key: 'hint', 'aria-live': 'polite'}, chosen ? words(chosen) : 'Each square is a GPU, each band of it a slice. Point at one, or use the arrow keys; Enter opens it.'),
    h('div.virtual.map', {key: 'map', tabindex: 0, role: 'application', 'aria-label': `Map of ${f.plural(shown.length, 'GPU')}; arrow keys move, Enter opens`,
      hook: island(draw),
      onmousemove: (e) => {
        const g = at(e.currentTarget, e);
        if ((g ? keyOf(g) : null) !== cursor.key) choose(g);
      },
      onclick: (e) => {
        const g = at(e.currentTarget, e);
        if (g) location.hash = address('fleet', String(g.index), route().params);
      },
      onkeydown: (e) => {
        const by = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: e.currentTarget.made?.columns, ArrowUp: -e.currentTarget.made?.columns}[e.key];
        if (by) move(e.currentTarget, by);
        else if (e.key === 'Enter' && chosen) location.hash = address('fleet', String(chosen.index), route().params);
        else return;
        e.preventDefault();
      }}),
  ];
}

// ---- the table, and one card in full ----

const columns = [
  {key: 'gpu', label: 'GPU', get: (g) => g.index, show: (g) => h('a', {href: address('fleet', String(g.index), route().params)}, nameOf(g))},
  {key: 'model', label: 'Model', get: (g) => g.model},
  {key: 'pool', label: 'Pool', get: (g) => g.pool},
  {key: 'state', label: 'State', get: (g) => g.state, show: (g) => badge(g.state)},
  {key: 'tenants', label: 'Tenants', get: (g) => tenantsOn(g).join(' '), show: (g) => h('span.names', null, tenantsOn(g).map((t) => tenantName(t)))},
  {key: 'layout', label: 'Layout', get: (g) => g.layout},
  {key: 'granted', label: 'Granted', num: true, get: (g) => grantedOf(g).milli / 1000, show: (g) => f.percent(grantedOf(g).milli, 1000)},
  {key: 'memory_mib', label: 'Memory', num: true, get: (g) => g.memory_mib, show: (g) => f.mib(g.memory_mib)},
  {key: 'used_mib', label: 'Used', num: true, get: (g) => g.used_mib, show: (g) => f.mib(g.used_mib)},
  {key: 'temperature_c', label: '°C', num: true, get: (g) => g.temperature_c},
];

function sliceRow(s) {
  const state = s.state === 'owned' ? 'active' : s.state;
  return h('tr', {key: `${s.kind}${s.key}`}, h('td', null, s.kind === 'mig' ? s.key.replace('mig:', '') : s.kind === 'share' ? `share ${Math.round(s.milli / 10)} %` : 'whole card'),
    h('td', null, tenantName(s.tenant)), h('td', null, s.lease || '–'), h('td.num', null, f.mib(s.memory_mib)),
    h('td', null, badge(state, s.state), s.why && h('div.small', null, s.why)), h('td', null, when(s.since_ms)));
}

function orders(g) {
  if (!mayOperate()) return null;
  const held = tenantsOn(g);
  const order = (verb, title, text) => h('button', {type: 'button', class: verb === 'drain' ? 'danger' : '', onclick: () => confirm(`${title} ${nameOf(g)}?`, text, title, (reason) =>
    attempt(`${nameOf(g)}: ${verb} was ordered`, () => post(`/v1/gpus/${encodeURIComponent(g.uuid || g.index)}/${verb}`, reason ? {reason} : {})).then(() => refresh('/v1/gpus', '/v1/status')))}, title);
  return h('div.row', null,
    g.state === 'cordoned' || g.state === 'drained' || g.state === 'draining' ? order('uncordon', 'Give away again', 'The scheduler may use it again.')
      : order('cordon', 'Cordon', 'Nothing of it is given away any more. What runs there goes on.'),
    order('drain', 'Drain', held.length ? `What runs there has to leave: ${held.join(', ')}.` : 'Nobody has anything there now.'));
}

function detail(data, id) {
  const g = data.gpus.find((x) => String(x.index) === id || x.uuid === id);
  const close = () => {
    location.hash = address('fleet', '', route().params);
  };
  return h('aside.panel', {key: 'panel', 'aria-label': g ? nameOf(g) : 'GPU', hook: {mount: (el) => el.querySelector('button').focus({preventScroll: true})}, onkeydown: (e) => e.key === 'Escape' && close()},
    h('button.quiet.close', {type: 'button', onclick: close, 'aria-label': 'Close'}, '✕'),
    !g ? [h('h2', null, 'No such GPU'), empty('It is not there, or you do not see it.')] : [
      h('h2', null, `${nameOf(g)} `, badge(g.state)), h('p.muted', null, g.model || 'unknown model'),
      g.reason && h('div.notice.bad', null, g.reason), g.health && h('div.notice.warn', null, g.health),
      h('div.big', null, lanes(g, true)),
      h('dl.pairs', null, [['UUID', g.uuid], ['PCI', g.pci], ['Pool', g.pool], ['Layout', g.layout], ['NUMA', g.numa], ['Fabric', g.fabric],
        ['Memory', `${f.mib(grantedOf(g).mib)} granted, ${f.mib(g.used_mib)} used, ${f.mib(g.memory_mib)} in all`],
        ['Kernel resident', g.util_percent === null || g.util_percent === undefined ? null : `${g.util_percent} % of the time (not how much of the card computes)`],
        ['Temperature', g.temperature_c === null || g.temperature_c === undefined ? null : `${g.temperature_c} °C`],
        ['Power', g.power_mw === null || g.power_mw === undefined ? null : `${Math.round(g.power_mw / 1000)} W`]]
        .filter(([, v]) => v !== null && v !== undefined).map(([k, v]) => [h('dt', null, k), h('dd', null, String(v))])),
      h('h3', null, 'Slices'),
      h('div.scroll', {tabindex: 0, role: 'region', 'aria-label': 'Slices'}, h('table', null, h('thead', null, h('tr', null, ['Slice', 'Tenant', 'Lease', 'Memory', 'State', 'Since'].map((t) => h('th', {scope: 'col'}, t)))),
        h('tbody', null, g.slices.filter((s) => g.slices.length === 1 || s.kind !== 'whole' || s.state !== 'free').map((s) => sliceRow(s))))),
      g.others?.slices > 0 && h('p.muted', null, `Others on this card: ${f.plural(g.others.slices, 'slice')}, ${f.mib(g.others.memory_mib)}.`),
      orders(g)]);
}

function legend(data, p) {
  return h('div.legend', {role: 'group', 'aria-label': 'Tenants on these GPUs'}, [...summary(data).tenants].sort((a, b) => f.colourOf(a) - f.colourOf(b)).slice(0, 24).map((t) => {
    const on = (p.q || '').split(/\s+/).includes(t);
    return h('button.chip', {type: 'button', 'aria-pressed': String(on), class: `t${f.colourOf(t)}`, onclick: () => go({q: on ? '' : t})},
      h('span.glyph', {'aria-hidden': 'true'}, f.glyphOf(t)), ' ', t);
  }));
}

export function fleetPage() {
  const {id, params: p} = route();
  return answered(use('/v1/gpus'), (data) => {
    const {shown, groups} = arranged(data, p);
    const view = p.view || (data.gpus.length > MANY ? 'map' : 'cards');
    const named = p.group !== 'none';
    const {ill, granted} = summary(data);
    const pick = (v, text) => h('button', {type: 'button', 'aria-pressed': String(view === v), onclick: () => go({view: v})}, text);
    return h('div', {class: id ? 'with-panel' : ''},
      h('div.body', null,
        h('p.lead', null, `${f.plural(data.gpus.length, 'GPU')}, ${f.gpus(granted)} granted`, data.others ? `; ${f.count(data.others)} more that are not yours` : '', ill ? [', ', h('button.link', {type: 'button', onclick: () => go({ill: p.ill ? '' : '1'})}, `${f.plural(ill, 'needs', 'need')} attention`)] : '', '.'),
        h('div.tools', null,
          h('div.seg', {role: 'group', 'aria-label': 'View'}, pick('cards', 'Cards'), pick('map', 'Map'), pick('table', 'Table')),
          view !== 'table' && h('label.inline', null, 'Group by ', h('select', {value: p.group || 'pool', onchange: (e) => go({group: e.target.value})},
            Object.entries(groupers).map(([k, [name]]) => h('option', {value: k}, name)))),
          view !== 'table' && h('label.filter', null, h('span.hidden', null, 'Filter GPUs'), h('input', {type: 'search', placeholder: 'Filter: tenant, pool, model, lease…', value: p.q || '', 'data-filter': '', oninput: (e) => go({q: e.target.value})})),
          p.ill && h('button.chip', {type: 'button', 'aria-pressed': 'true', onclick: () => go({ill: ''})}, 'only with a problem ✕')),
        legend(data, p),
        shown.length === 0 && view !== 'table' ? empty(data.gpus.length ? 'No GPU matches.' : 'You have nothing on any GPU now.')
          : view === 'table' ? table({id: 'gpus', label: 'GPUs', one: 'GPU', columns, rows: p.ill ? shown : data.gpus, rowKey: keyOf, rowClass: (g) => isIll(g) ? 'ill' : ''})
            : view === 'map' ? map(groups, shown, named) : cards(groups, named)),
      id && detail(data, id));
  });
}
