// SPDX-License-Identifier: Apache-2.0
// dom.js - what a page looks like, as a value; the difference to what stands there is all that is touched.
//
// A node is {tag, key, props, kids}; a text is a string. Children with keys keep their elements (and so focus, selection and
// scroll) wherever they move. No markup is ever parsed from text, so what a tenant wrote stays text.

const SVG = 'http://www.w3.org/2000/svg';

/** h('div.card', {key, class, style: {}, onclick, hook: {mount, update, gone}, ...attributes}, ...children) */
export function h(tag, props, ...kids) {
  const dot = tag.indexOf('.');
  const p = props || {};
  if (dot > 0) {
    const cls = tag.slice(dot + 1).replaceAll('.', ' ');
    return {tag: tag.slice(0, dot), key: p.key, props: {...p, class: p.class ? `${cls} ${p.class}` : cls}, kids: flat(kids, [])};
  }
  return {tag, key: p.key, props: p, kids: flat(kids, [])};
}

function flat(from, to) {
  for (const k of from) {
    if (Array.isArray(k)) flat(k, to);
    else if (k !== null && k !== undefined && k !== false && k !== true) to.push(typeof k === 'object' ? k : String(k));
  }
  return to;
}

const PROPERTIES = new Set(['value', 'checked', 'selected', 'open', 'indeterminate', 'scrollTop']);

function setStyle(el, now = {}, was = {}) {
  for (const k in was) if (!(k in now)) el.style.removeProperty(k);
  for (const k in now) if (now[k] !== was[k]) el.style.setProperty(k, now[k]);
}

function setProp(el, name, now, was) {
  if (name === 'key' || name === 'hook' || now === was && name !== 'value' && name !== 'checked') return;
  if (name === 'style') setStyle(el, now || {}, was || {});
  else if (name.startsWith('on')) el[name] = now || null;
  else if (PROPERTIES.has(name)) {
    if (now !== undefined && el[name] !== now) el[name] = now;
  } else if (now === null || now === undefined || now === false) el.removeAttribute(name);
  else el.setAttribute(name, now === true ? '' : now);
}

function make(v, svg) {
  if (typeof v === 'string') return document.createTextNode(v);
  svg = svg || v.tag === 'svg';
  const el = svg ? document.createElementNS(SVG, v.tag) : document.createElement(v.tag);
  v.el = el;
  for (const k of v.kids) el.appendChild(make(k, svg));
  // After the children: a select's value needs its options.
  for (const name in v.props) setProp(el, name, v.props[name]);
  if (v.props.hook?.mount) mounted.push(v);
  return el;
}

let mounted = [];

function gone(v) {
  if (typeof v === 'string') return;
  for (const k of v.kids) gone(k);
  v.props.hook?.gone?.(v.el);
}

const isSame = (a, b) => typeof a === 'string' ? typeof b === 'string' : typeof b !== 'string' && a.tag === b.tag && a.key === b.key;

function patch(el, was, now) {
  if (was === now) return; // the same value again: whoever made it knows that nothing changed
  if (typeof now === 'string') {
    if (was !== now) el.data = now;
    return;
  }
  now.el = el;
  const svg = el.namespaceURI === SVG;
  // An element whose hook draws into it keeps what it drew.
  if (now.kids.length || was.kids.length) patchKids(el, was.kids, now.kids, svg);
  for (const name in was.props) if (!(name in now.props)) setProp(el, name, undefined, was.props[name]);
  for (const name in now.props) setProp(el, name, now.props[name], was.props[name]);
  now.props.hook?.update?.(el);
}

function patchKids(parent, was, now, svg) {
  const nodes = [...parent.childNodes];
  const keyed = new Map();
  const loose = [];
  was.forEach((v, i) => {
    if (typeof v === 'object' && v.key !== undefined) keyed.set(v.key, i);
    else loose.push(i);
  });
  const used = new Set();
  let next = 0;
  const els = now.map((v) => {
    let i = typeof v === 'object' && v.key !== undefined ? keyed.get(v.key) : undefined;
    if (typeof v === 'string' || v.key === undefined) {
      // The first of those that were not passed; one that is new here does not take the place of what follows it.
      const found = loose.findIndex((c, k) => k >= next && isSame(was[c], v));
      if (found >= 0) {
        i = loose[found];
        next = found + 1;
      }
    }
    if (i === undefined || used.has(i) || !isSame(was[i], v)) return make(v, svg);
    used.add(i);
    patch(nodes[i], was[i], v);
    return nodes[i];
  });
  was.forEach((v, i) => {
    if (used.has(i)) return;
    gone(v);
    nodes[i].remove();
  });
  let at = parent.firstChild;
  for (const el of els) {
    if (el === at) at = at.nextSibling;
    else parent.insertBefore(el, at);
  }
}

const roots = new WeakMap();

/** Makes the children of an element these. The same element again: only what changed is touched. */
export function render(el, ...kids) {
  const now = flat(kids, []);
  patchKids(el, roots.get(el) || [], now, el.namespaceURI === SVG);
  roots.set(el, now);
  const fresh = mounted;
  mounted = [];
  for (const v of fresh) v.props.hook.mount(v.el);
}

/** Forgets what was rendered into an element that is taken away with its parent. */
export function unrender(el) {
  for (const v of roots.get(el) || []) gone(v);
  roots.delete(el);
}

let root, view, waiting = false;

export function start(el, fn) {
  root = el;
  view = fn;
  redraw();
}

/** The page is drawn anew with the next frame, however often this is called before. */
export function redraw() {
  if (waiting || !root) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    render(root, view());
  });
}
