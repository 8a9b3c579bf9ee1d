// SPDX-License-Identifier: Apache-2.0
// signin.js - a token, pasted once; it stays in this tab and goes with it.
import {h, redraw} from './dom.js';
import {ask, setToken} from './api.js';
import {begin, session} from './data.js';
import {problem} from './parts.js';

const form = {token: '', busy: false};

async function enter(e) {
  e.preventDefault();
  form.busy = true;
  redraw();
  const token = form.token.trim();
  try {
    // Asked once before anything else is: wrong tokens are counted.
    await ask('GET', '/v1/status', null, {}, token);
    setToken(token);
    form.token = '';
    // Nothing that somebody else saw in this tab is there for the next one.
    if (session.used) location.reload();
    else begin();
  } catch (p) {
    session.problem = p;
  }
  form.busy = false;
  redraw();
}

export const signIn = () => h('main.signin', {key: 'signin', id: 'main'},
  h('form.sheet', {onsubmit: enter, 'aria-label': 'Sign in'},
    h('img', {src: '/console/icon.svg', alt: '', width: 48, height: 48}),
    h('h1', null, 'Bulkhead'),
    h('p', null, 'Who holds which GPU, what waits and why, and what keeps tenants apart.'),
    h('label.field', null, 'Token', h('input', {type: 'password', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'bh_…', value: form.token, class: 'code', oninput: (e) => {
      form.token = e.target.value;
    }})),
    session.problem && problem(session.problem),
    h('button.primary', {type: 'submit', disabled: form.busy}, form.busy ? 'Asking the node…' : 'Sign in'),
    h('div.muted.small', null, h('p', null, 'Make one on the machine itself, with a role you have:'), h('pre.code', null, 'bulkhead token create --role viewer'), h('p', null, 'It is kept for this tab only, and sent to this node only.'))));
