// SPDX-License-Identifier: Apache-2.0
// route.js - every view is an address: #/PAGE/ID?NAME=VALUE. What is chosen or filtered is in it, so that it can be sent on.
import {redraw} from './dom.js';

let cached = '';
let now = {page: 'home', id: '', params: {}};

export function route() {
  if (location.hash === cached) return now;
  cached = location.hash;
  const [path, query = ''] = cached.replace(/^#\/?/, '').split('?', 2);
  const [page, id = ''] = path.split('/');
  now = {page: page || 'home', id: decode(id), params: Object.fromEntries(new URLSearchParams(query))};
  return now;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(page, id, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== '' && v !== null && v !== undefined)).toString();
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${query ? `?${query}` : ''}`;
}

/** Changes a part of the address, where it stands: a filter is not a step to go back over. */
export function go(params) {
  const r = route();
  history.replaceState(null, '', address(r.page, r.id, {...r.params, ...params}));
  redraw();
}
