// SPDX-License-Identifier: Apache-2.0
// table.js - every table of the console: filter, order, export, keys; long ones draw only the rows that are seen.
//
// A column is {key, label, get(row), show(row)?, num?}. get gives what is sorted, filtered and exported; show what is seen.
import {h, redraw} from './dom.js';
import {go, route} from './route.js';
import * as f from './format.js';

const LONG = 150; // rows from which on it has a window of its own
const ROW = 41; // pixels; style.css holds long tables to it
const WINDOW = 560;
const places = new Map(); // id → scrollTop

function matches(row, columns, q) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((w) => {
    const not = w.startsWith('!') && w.length > 1;
    const [key, value] = w.slice(not ? 1 : 0).split(':', 2);
    const column = value !== undefined && columns.find((c) => c.key === key);
    const hit = column ? String(column.get(row) ?? '').toLowerCase().includes(value)
      : columns.some((c) => String(c.get(row) ?? '').toLowerCase().includes(w.slice(not ? 1 : 0)));
    return hit !== not;
  });
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', {numeric: true});
}

export function rowsOf({id, columns, rows}) {
  const p = route().params;
  const q = p[`${id}.q`] || '';
  const order = p[`${id}.sort`] || '';
  const column = columns.find((c) => c.key === order.replace(/^-/, ''));
  let out = q ? rows.filter((r) => matches(r, columns, q)) : rows;
  if (column) out = [...out].sort((a, b) => compare(column.get(a), column.get(b)) * (order.startsWith('-') ? -1 : 1));
  return out;
}

// ---- export ----

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A cell that a spreadsheet would take for a formula is made text. */
function cell(v) {
  const s = v === null || v === undefined ? '' : Array.isArray(v) ? v.join(' ') : String(v);
  const safe = typeof v !== 'number' && /^[=+\-@\t\r]/.test(s) ? `'${s}` : s;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
export const csvOf = (columns, rows) => [columns.map((c) => cell(c.key)), ...rows.map((r) => columns.map((c) => cell(c.get(r))))].map((l) => `${l.join(',')}\r\n`).join('');
const jsonOf = (columns, rows) => JSON.stringify(rows.map((r) => Object.fromEntries(columns.map((c) => [c.key, c.get(r) ?? null]))), null, 1);

// ---- the table ----

function tools(t, shown) {
  const key = `${t.id}.q`;
  const q = route().params[key] || '';
  return h('div.tools', null,
    h('label.filter', null, h('span.hidden', null, `Filter ${t.label}`),
      h('input', {type: 'search', placeholder: 'Filter: words, column:word, !not', value: q, 'data-filter': '', oninput: (e) => go({[key]: e.target.value})})),
    h('span.muted.grow', {role: 'status'}, q ? `${f.count(shown.length)} of ${f.count(t.rows.length)}` : f.plural(t.rows.length, t.one || 'row')),
    h('button.quiet', {type: 'button', onclick: () => save(`${t.id}.csv`, 'text/csv', csvOf(t.columns, shown)), 'aria-label': `Export ${t.label} as CSV`}, 'CSV'),
    h('button.quiet', {type: 'button', onclick: () => save(`${t.id}.json`, 'application/json', jsonOf(t.columns, shown)), 'aria-label': `Export ${t.label} as JSON`}, 'JSON'));
}

function head(t) {
  const key = `${t.id}.sort`;
  const order = route().params[key] || '';
  return h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, t.columns.map((c) => {
    const dir = order === c.key ? 'ascending' : order === `-${c.key}` ? 'descending' : 'none';
    return h('th', {role: 'columnheader', class: c.num ? 'num' : '', scope: 'col', 'aria-sort': dir},
      h('button.sort', {type: 'button', onclick: () => go({[key]: dir === 'ascending' ? `-${c.key}` : dir === 'descending' ? '' : c.key})},
        c.label, h('span', {'aria-hidden': 'true'}, dir === 'ascending' ? ' ↑' : dir === 'descending' ? ' ↓' : '')));
  })));
}

const line = (t, r, i) => h('tr', {role: 'row', key: t.rowKey(r), 'data-row': '', class: t.rowClass?.(r) || '', 'aria-rowindex': i + 2}, t.columns.map((c) => h('td', {
  role: 'cell', 'data-label': c.label, class: c.num ? 'num' : c.cls || '',
}, c.show ? c.show(r) : c.get(r) ?? h('span.muted', null, '–'))));

// A long table is scrolled through: a row of the same answer, columns and address is the same row.
const lines = new WeakMap();
function lineOnce(t, r, i) {
  const l = lines.get(r);
  if (l && l.columns === t.columns && l.i === i && l.hash === location.hash) return l.made;
  const made = line(t, r, i);
  lines.set(r, {columns: t.columns, i, hash: location.hash, made});
  return made;
}

export function table(t) {
  const shown = rowsOf(t);
  const long = shown.length > LONG;
  const top = long ? places.get(t.id) || 0 : 0;
  const first = long ? Math.max(0, Math.floor(top / ROW) - 5) : 0;
  const last = long ? Math.min(shown.length, first + Math.ceil(WINDOW / ROW) + 10) : shown.length;
  const pad = (n, key) => n > 0 && h('tr.pad', {key, 'aria-hidden': 'true'}, h('td', {colspan: t.columns.length, style: {height: `${n * ROW}px`}}));
  return h('section.table', {key: t.id, 'aria-label': t.label},
    tools(t, shown),
    shown.length === 0 ? h('p.empty', null, t.rows.length ? 'Nothing matches the filter.' : t.none || 'Nothing.')
      : h('div.scroll', {class: long ? 'long' : '', tabindex: 0, role: 'region', 'aria-label': `${t.label}, rows`, onscroll: long ? (e) => {
        places.set(t.id, e.target.scrollTop);
        redraw();
      } : null},
      h('table', {role: 'table', 'aria-rowcount': shown.length + 1, 'aria-label': t.label}, head(t),
        h('tbody', {role: 'rowgroup'}, pad(first, 'above'), shown.slice(first, last).map((r, i) => (long ? lineOnce : line)(t, r, first + i)), pad(shown.length - last, 'below')))));
}
