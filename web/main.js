// SPDX-License-Identifier: Apache-2.0
// main.js - the frame around the pages: where one is, who one is, whether what is shown is of now.
import {h, redraw, start} from './dom.js';
import {hasToken, setToken} from './api.js';
import {begin, beginTurn, live, stop, use} from './data.js';
import {auditPage} from './audit.js';
import {fleetPage, themeChanged} from './fleet.js';
import {homePage} from './home.js';
import {isolationPage} from './isolation.js';
import {notices, question, questionView} from './parts.js';
import {route} from './route.js';
import {signIn} from './signin.js';
import {tenantsPage} from './tenants.js';
import {workPage} from './work.js';
import {mayAudit} from './who.js';
import * as f from './format.js';

const PAGES = {
  home: ['Home', homePage, 'h'], fleet: ['Fleet', fleetPage, 'f'], tenants: ['Tenants', tenantsPage, 't'], work: ['Work', workPage, 'w'], isolation: ['Isolation', isolationPage, 'i'], audit: ['Audit', auditPage, 'a'],
};

// ---- light and dark ----

const THEMES = ['auto', 'light', 'dark'];
let theme = localStorage.getItem('bulkhead-theme') || 'auto';
function setTheme(next) {
  theme = next;
  if (next === 'auto') localStorage.removeItem('bulkhead-theme');
  else localStorage.setItem('bulkhead-theme', next);
  document.documentElement.dataset.theme = next;
  themeChanged();
}
setTheme(THEMES.includes(theme) ? theme : 'auto');
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged);

function signOut() {
  stop();
  setToken('');
  f.forgetTenants();
  location.hash = '#/home';
  redraw();
}

// ---- the frame ----

function liveness() {
  const e = use('/v1/status');
  const away = e.error && e.data;
  // Without the stream of events all is still asked for every few seconds.
  const words = away ? `no answer since ${f.clock(e.at)}` : live.state === 'live' ? 'live' : live.state === 'away' ? `of ${f.clock(e.at)}` : 'connecting…';
  return h('span', {class: `live ${away ? 'away' : live.state}`, role: 'status'}, h('span', {'aria-hidden': 'true'}, away ? '▲' : '●'), ` ${words}`);
}

function header(s) {
  const {page} = route();
  const roles = s?.you.roles.map((r) => r.tenant ? `${r.role} of ${r.tenant}` : r.role);
  return h('header', {key: 'header'},
    h('a.skip', {href: '#main', onclick: (e) => {
      e.preventDefault();
      document.getElementById('main').focus();
    }}, 'To the content'),
    h('div.bar', null,
      h('a.brand', {href: '#/home'}, h('img', {src: '/console/icon.svg', alt: '', width: 24, height: 24}), 'Bulkhead'),
      s && h('span.node', null, s.node),
      s?.simulated && h('span.badge.sim', {title: 'The silicon is simulated. Speed and isolation are not to be judged by it.'}, h('span', {'aria-hidden': 'true'}, '◇'), ' simulated'),
      h('span.grow'),
      liveness(),
      s && h('span.who', {title: [...new Set(roles)].join(', ')}, s.you.principal.replace(/^user:/, ''), h('span.muted', null, ` ${[...new Set(roles)].join(', ')}`)),
      h('button.quiet', {type: 'button', onclick: () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]), 'aria-label': `Theme: ${theme}. Change it`}, {auto: '◐', light: '☀', dark: '☾'}[theme]),
      h('button.quiet.keys', {type: 'button', onclick: () => {
        help.open = !help.open;
        redraw();
      }, 'aria-label': 'Keys'}, '?'),
      h('button.quiet', {type: 'button', onclick: signOut}, 'Sign out')),
    h('nav', {'aria-label': 'Pages'}, Object.entries(PAGES).filter(([k]) => k !== 'audit' || mayAudit()).map(([k, [name]]) => h('a', {key: k, href: `#/${k}`, 'aria-current': page === k ? 'page' : null}, name))));
}

const help = {open: false};
const KEYS = [['g then h f t w i a', 'to a page'], ['/', 'to the filter'], ['j k', 'to the next, the previous row'], ['Enter', 'opens it'], ['Esc', 'closes what is open'], ['?', 'this']];
const helpView = () => help.open && h('dialog', {key: 'help', 'aria-labelledby': 'help-title', hook: {mount: (el) => el.showModal()}, onclose: () => {
  help.open = false;
  redraw();
}}, h('form', {method: 'dialog'}, h('h2', {id: 'help-title'}, 'Keys'), h('dl.pairs', null, KEYS.map(([k, v]) => [h('dt', null, h('kbd', null, k)), h('dd', null, v)])), h('button.primary', {type: 'submit'}, 'Close')));

function view() {
  beginTurn();
  if (!hasToken()) {
    document.title = 'Bulkhead';
    return signIn();
  }
  begin();
  const s = use('/v1/status').data;
  if (s) f.knowTenants(s.tenants.map((t) => t.tenant));
  const {page} = route();
  const [name, draw] = PAGES[page] || PAGES.home;
  document.title = `${name} · ${s?.node || 'Bulkhead'}${s?.simulated ? ' (simulated)' : ''}`;
  return [header(s), h('main', {key: `main ${page}`, id: 'main', tabindex: -1, class: use('/v1/status').error && s ? 'old' : ''}, h('h1', null, name), draw()),
    h('footer', {key: 'footer'}, s ? `${s.node} · bulkheadd ${s.version} · driver ${s.driver || 'unknown'}${s.simulated ? ' · simulated silicon' : ''}` : ''),
    questionView(), helpView(),
    h('div.toasts', {key: 'toasts', role: 'status', 'aria-live': 'polite'}, notices.map((n) => h('div', {class: `toast ${n.kind}`, key: n.id}, n.text)))];
}

// ---- keys ----

let before = '';
function step(by) {
  const rows = [...document.querySelectorAll('[data-row] a:first-of-type, .problem a, a.gpu')].filter((a) => a.offsetParent !== null);
  const lines = rows.filter((a, i) => i === 0 || a.closest('[data-row], .problem, a.gpu') !== rows[i - 1].closest('[data-row], .problem, a.gpu'));
  const at = lines.findIndex((a) => a === document.activeElement);
  lines[Math.max(0, Math.min(lines.length - 1, at + by))]?.focus();
}
const ACTIONS = {
  '/': () => document.querySelector('[data-filter]')?.focus(),
  '?': () => {
    help.open = true;
    redraw();
  },
  j: () => step(1), k: () => step(-1),
  Escape: () => document.querySelector('.panel .close')?.click(),
};
addEventListener('keydown', (e) => {
  if (!hasToken() || question.now || help.open || e.ctrlKey || e.metaKey || e.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  const page = before === 'g' && Object.entries(PAGES).find(([, p]) => p[2] === e.key);
  before = e.key;
  if (page) location.hash = `#/${page[0]}`;
  else if (ACTIONS[e.key]) ACTIONS[e.key]();
  else return;
  e.preventDefault();
});

let shown = '';
addEventListener('hashchange', () => {
  // Another page begins at its top; a panel beside a list leaves the list where it is.
  if (route().page !== shown) scrollTo(0, 0);
  shown = route().page;
  redraw();
});
shown = route().page;
start(document.getElementById('app'), view);
