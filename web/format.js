// SPDX-License-Identifier: Apache-2.0
// format.js - amounts, times and names as people read them. Units are always written.

const number = new Intl.NumberFormat('en', {maximumFractionDigits: 2});
const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

export const count = (n) => whole.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
/** Thousandths of a card: `1.25`. */
export const milli = (m) => m === null || m === undefined ? '–' : number.format(m / 1000);
export const gpus = (m) => m === null || m === undefined ? 'no limit' : `${milli(m)} ${m === 1000 ? 'GPU' : 'GPUs'}`;

export function mib(n) {
  if (n === null || n === undefined) return '–';
  if (n >= 1024 * 1024) return `${number.format(n / 1024 / 1024)} TiB`;
  return n >= 1024 ? `${new Intl.NumberFormat('en', {maximumFractionDigits: 1}).format(n / 1024)} GiB` : `${count(n)} MiB`;
}

export const percent = (part, all) => all > 0 ? `${whole.format(100 * part / all)} %` : '–';

export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

const two = (n) => String(n).padStart(2, '0');
export function clock(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
export function instant(ms) {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}
export const ago = (ms, now = Date.now()) => now - ms < 2000 ? 'now' : `${span(now - ms)} ago`;

/** A UUID is known by its beginning; the whole of it is in the title and in exports. */
export const short = (text) => text ? String(text).replace(/\b((?:GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]{27}/g, '$1…') : text;

/** GPU-hours out of thousandths × milliseconds. */
const hours = (n) => n > 0 && n < 1 ? n.toLocaleString('en', {maximumSignificantDigits: 2}) : number.format(n);
export const gpuHours = (milliMs) => hours(milliMs / 1000 / 3600000);
export const gibHours = (mibMs) => hours(mibMs / 1024 / 3600000);

// ---- tenants: a colour, and a sign for those who see none ----

const GLYPHS = ['●', '■', '▲', '◆', '★', '▼', '✚', '⬟'];
export const COLOURS = GLYPHS.length;
const known = new Map();

/** In the order of the policy, so that a tenant keeps its colour. */
export function knowTenants(names) {
  for (const n of names) if (!known.has(n)) known.set(n, known.size);
}
function numberOf(tenant) {
  if (!known.has(tenant)) known.set(tenant, known.size);
  return known.get(tenant);
}
export const colourOf = (tenant) => numberOf(tenant) % COLOURS;

/** Moved on by one each time that the colours are through: 64 pairs of colour and sign; then a number tells tenants apart. */
export function glyphOf(tenant) {
  const n = numberOf(tenant);
  const round = Math.floor(n / (COLOURS * GLYPHS.length));
  return `${GLYPHS[(n + Math.floor(n / COLOURS)) % GLYPHS.length]}${round ? round + 1 : ''}`;
}
export const forgetTenants = () => known.clear();
