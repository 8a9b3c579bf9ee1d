// SPDX-License-Identifier: Apache-2.0
// who.js - what the one who looks may do. Only for what is offered: the node decides each time anew.
import {use} from './data.js';

const roles = () => use('/v1/status').data?.you.roles || [];
const has = (words, tenant) => roles().some((r) => words.includes(r.role) && (r.tenant === null || r.tenant === tenant));

export const mayOperate = () => roles().some((r) => r.role === 'operator' && r.tenant === null);
/** Sees every tenant, so also doctor, policy and the whole log. */
export const seesAll = () => roles().some((r) => r.tenant === null);
export const mayAudit = () => roles().some((r) => ['operator', 'auditor', 'tenant-admin'].includes(r.role));
export const maySubmit = (tenant) => has(['operator', 'tenant-admin', 'tenant-user'], tenant);
export const submitFor = () => (use('/v1/status').data?.tenants || []).map((t) => t.tenant).filter(maySubmit);
