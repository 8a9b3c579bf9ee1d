# SPDX-License-Identifier: Apache-2.0
"""Every route as every kind of caller: allowed, denied, not there, and nothing of a neighbour in what is shown.

A route that the document has and this table has not fails. Usage: routes.py PATH-TO-TESTD SOURCE-ROOT
"""
import concurrent.futures
import contextlib
import gzip
import hashlib
import json
import os
import re
import sqlite3
import ssl
import time

import door as d
from door import CALLERS, door, has, judge, judge_answer, same

OK, DENIED, HIDDEN = 'ok', 'denied', 'hidden'
OF_A = ('tenant-admin', 'tenant-user', 'operator-of-a', 'viewer-of-a', 'by-group')
ALL = ('root', 'operator', 'auditor', 'viewer')


def outcome(ok=(), hidden=()):
    return {w: OK if w in ok else HIDDEN if w in hidden else DENIED for w in CALLERS}


OPEN = outcome(ok=CALLERS)
READ = outcome(ok=ALL + OF_A + ('neighbour',))  # what is shown is filtered
WHOLE = outcome(ok=ALL)                         # of the whole node, or not at all
OPERATOR = outcome(ok=('root', 'operator'))
READ_A = outcome(ok=ALL + OF_A, hidden=('neighbour',))
READ_B = outcome(ok=ALL + ('neighbour',), hidden=OF_A)
# J1 and L1 are of user 2002, the tenant's user; another user of the tenant may not touch them.
WORK_A = outcome(ok=('root', 'operator', 'operator-of-a', 'tenant-admin', 'tenant-user'), hidden=('neighbour',))
WORK_B = outcome(ok=('root', 'operator', 'neighbour'), hidden=('operator-of-a', 'tenant-admin', 'tenant-user', 'by-group'))
ANY_WORK = outcome(ok=('root', 'operator', 'operator-of-a', 'tenant-admin', 'tenant-user', 'by-group'), hidden=('neighbour',))
AUDIT = outcome(ok=('root', 'operator', 'auditor', 'operator-of-a', 'tenant-admin', 'neighbour'))

FAIL = {'reason': 'please fail'}  # what stands behind the API refuses it then: nothing changes, and it was asked
JOB_A = {'tenant': 'a', 'argv': ['true'], 'dry_run': True}
JOB_B = {**JOB_A, 'tenant': 'b'}

# (method, pattern): [(path, body, who may, status of success)]
TABLE = {
    ('GET', '/openapi.json'): [('/openapi.json', None, OPEN, 200)],
    ('GET', '/v1/status'): [('/v1/status', None, READ, 200)],
    ('GET', '/v1/health'): [('/v1/health', None, READ, 200)],
    ('GET', '/v1/doctor'): [('/v1/doctor', None, WHOLE, 200)],
    ('GET', '/v1/fleet'): [('/v1/fleet', None, WHOLE, 200)],
    ('GET', '/metrics'): [('/metrics', None, READ, 200)],
    ('GET', '/v1/events'): [('/v1/events', None, READ, 200)],
    ('GET', '/v1/tenants'): [('/v1/tenants', None, READ, 200)],
    ('GET', '/v1/tenants/{name}'): [('/v1/tenants/a', None, READ_A, 200), ('/v1/tenants/b', None, READ_B, 200)],
    ('GET', '/v1/quota'): [('/v1/quota', None, READ, 200)],
    ('GET', '/v1/usage'): [('/v1/usage', None, READ, 200), ('/v1/usage?tenant=b', None, READ, 200),
                           ('/v1/usage?by=user', None, READ, 200), ('/v1/usage?by=gpu', None, READ, 200)],
    ('GET', '/v1/usage/records'): [('/v1/usage/records', None, READ, 200), ('/v1/usage/records?tenant=b', None, READ, 200)],
    ('GET', '/v1/gpus'): [('/v1/gpus', None, READ, 200)],
    ('GET', '/v1/gpus/{id}'): [('/v1/gpus/0', None, READ_A, 200), ('/v1/gpus/1', None, READ_B, 200),
                               ('/v1/gpus/2', None, READ, 200)],
    **{('POST', f'/v1/gpus/{{id}}/{verb}'): [(f'/v1/gpus/0/{verb}', FAIL, OPERATOR, 409)]
       for verb in ('cordon', 'uncordon', 'drain')},
    ('GET', '/v1/leases'): [('/v1/leases', None, READ, 200), ('/v1/leases?tenant=b', None, READ, 200),
                            ('/v1/leases?job=J2', None, READ, 200)],
    ('GET', '/v1/leases/{id}'): [('/v1/leases/L1', None, READ_A, 200), ('/v1/leases/L2', None, READ_B, 200)],
    **{('POST', f'/v1/leases/{{id}}/{verb}'): [(f'/v1/leases/L1/{verb}', FAIL, WORK_A, 409),
                                               (f'/v1/leases/L2/{verb}', FAIL, WORK_B, 409)]
       for verb in ('pause', 'resume', 'suspend', 'end')},
    ('GET', '/v1/jobs'): [('/v1/jobs', None, READ, 200), ('/v1/jobs?tenant=b', None, READ, 200),
                          ('/v1/jobs?user=2009', None, READ, 200)],
    ('POST', '/v1/jobs'): [('/v1/jobs', JOB_A, ANY_WORK, 200), ('/v1/jobs', JOB_B, WORK_B, 200)],
    ('GET', '/v1/jobs/{id}'): [('/v1/jobs/J1', None, READ_A, 200), ('/v1/jobs/J2', None, READ_B, 200)],
    ('POST', '/v1/jobs/{id}/cancel'): [('/v1/jobs/J1/cancel', FAIL, WORK_A, 409), ('/v1/jobs/J2/cancel', FAIL, WORK_B, 409)],
    ('GET', '/v1/jobs/{id}/logs'): [('/v1/jobs/J1/logs', None, WORK_A, 200), ('/v1/jobs/J2/logs', None, WORK_B, 200)],
    ('GET', '/v1/jobs/{id}/why'): [('/v1/jobs/J3/why', None, READ_A, 200), ('/v1/jobs/J4/why', None, READ_B, 200)],
    ('POST', '/v1/what-if'): [('/v1/what-if', {'submit': JOB_A}, ANY_WORK, 200), ('/v1/what-if', {'job': 'J4'}, WORK_B, 200)],
    ('GET', '/v1/policy'): [('/v1/policy', None, WHOLE, 200)],
    ('POST', '/v1/policy/diff'): [('/v1/policy/diff', {'text': 'x'}, OPERATOR, 200)],
    ('POST', '/v1/policy/apply'): [('/v1/policy/apply', {'text': 'x', 'version': 99}, OPERATOR, 409)],
    ('GET', '/v1/audit'): [('/v1/audit', None, AUDIT, 200)],
    ('GET', '/v1/audit/checkpoint'): [('/v1/audit/checkpoint', None, outcome(ok=('root', 'operator', 'auditor')), 200)],
    ('POST', '/v1/audit/checkpoint'): [('/v1/audit/checkpoint', None, OPERATOR, 200)],
    ('POST', '/v1/audit/rotate'): [('/v1/audit/rotate', FAIL, OPERATOR, 409)],
    ('GET', '/v1/tokens'): [('/v1/tokens', None, READ, 200)],
    ('POST', '/v1/tokens'): [('/v1/tokens', {'subject': 'service:x', 'role': 'viewer'}, OPERATOR, 201)],
    ('DELETE', '/v1/tokens/{id}'): [('/v1/tokens/T1', None, outcome(
        ok=('root', 'operator'), hidden=set(CALLERS) - {'root', 'operator', 'nobody'}), 409)],  # it is revoked already
    ('POST', '/v1/backup'): [('/v1/backup', {'name': 'taken'}, OPERATOR, 409)],
}

# What only a neighbour has: its name, jobs, leases, users, its own card.
MARKS_OF_B = re.compile(r'"b"|\bJ[246]\b|\bL[24]\b(?! cache)|"2009"|GPU-1111|hello of L[24]')
MARKS_OF_A = re.compile(r'"a"|\bJ[135]\b|\bL[13]\b|"200[12]"|GPU-0000|hello of L[13]|cc-a')


def marks_for(who):
    return MARKS_OF_B if who in OF_A else MARKS_OF_A if who == 'neighbour' else None


def first_bytes(door_, path, who):
    """The head of a stream that does not end."""
    s = d.connect(door_.path, who)
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\n\r\n'.encode())
    head = b''
    while b'\r\n\r\n' not in head:
        head += s.recv(4096)
    s.close()
    return int(head.split()[1])


def test_every_route_of_the_document_is_in_the_table():
    with door() as t:
        doc = t.document()
        served = {(m.upper(), p) for p, ms in doc['paths'].items() for m in ms}
        same(served ^ set(TABLE), set())
        same(doc['openapi'], '3.1.0')
        for p, ms in doc['paths'].items():
            for m, operation in ms.items():
                assert operation['x-roles'] or p == '/openapi.json', f'{m} {p} is for nobody'


def test_every_route_as_every_caller():
    with door() as t:
        doc = t.document()
        t.post('/v1/backup', {'name': 'taken'})
        same(t.post('/v1/tokens', {'subject': 'service:first', 'role': 'viewer'}).json['id'], 'T1')
        same(t.ask('DELETE', '/v1/tokens/T1').status, 200)
        for (method, pattern), cases in TABLE.items():
            for path, body, may, status in cases:
                for who, wanted in may.items():
                    what = f'{method} {path} as {who}'
                    if pattern == '/v1/events':
                        same(first_bytes(t, path, who), 200 if wanted == OK else 403, what)
                        continue
                    r = t.ask(method, path, body, who)
                    same(r.status, {OK: status, DENIED: 403, HIDDEN: 404}[wanted], f'{what}: {r!r}')
                    judge_answer(doc, method, pattern, r)
                    marks = marks_for(who)
                    if marks and pattern != '/openapi.json':
                        found = marks.search(r.body.decode())
                        # what one asked for oneself may be said back
                        assert not found or found.group().strip('"') in path + json.dumps(body), f'{what} shows {found.group()}: {r!r}'
                    if wanted == DENIED:
                        error = r.json['error']
                        same(error['code'], 'denied', what)
                        if 'needed' in error:
                            has(error['had'], f'user:{CALLERS[who][0]}' if CALLERS[who][0] else 'root')


def test_a_job_of_another_user_of_the_tenant():
    with door() as t:
        same(t.get('/v1/jobs/J1/logs', who='by-group').status, 403)
        same(t.post('/v1/jobs/J1/cancel', {}, who='by-group').status, 403)
        same(t.get('/v1/jobs/J1', who='by-group').json['argv'], [])
        same(t.get('/v1/jobs/J1', who='viewer').json['argv'], [])
        same(t.get('/v1/jobs/J1', who='auditor').json['argv'], [])
        same(t.get('/v1/jobs/J1', who='tenant-user').json['argv'], ['train', '--secret'])
        same(t.get('/v1/jobs/J1', who='tenant-admin').json['argv'], ['train', '--secret'])


def test_neighbours_are_others():
    with door() as t:
        all_, mine = t.get('/v1/status').json, t.get('/v1/status', who='tenant-user').json
        same([x['tenant'] for x in all_['tenants']], ['a', 'b'])
        same(all_['others'], None)
        same([x['tenant'] for x in mine['tenants']], ['a'])
        b = all_['tenants'][1]
        same(mine['others'], {'tenants': 1, **{k: b[k] for k in ('waiting', 'running', 'leases', 'milli', 'memory_mib')}})
        same((b['waiting'], b['running'], b['leases'], b['milli']), (1, 2, 2, 1500))
        jobs = t.get('/v1/jobs', who='tenant-user').json
        same(([j['id'] for j in jobs['jobs']], jobs['others']), (['J1', 'J3', 'J5'], 3))
        leases = t.get('/v1/leases?state=live', who='viewer-of-a').json
        same(([x['id'] for x in leases['leases']], leases['others']), (['L1', 'L3'], 2))
        gpus = t.get('/v1/gpus', who='tenant-admin').json
        same(([g['index'] for g in gpus['gpus']], gpus['others']), ([0, 2], 1))
        whole, shared = gpus['gpus']
        # How busy a shared card is tells of neighbours.
        same((whole['util_percent'], whole['used_mib'], whole['others']), (77, 4242, {'slices': 0, 'milli': 0, 'memory_mib': 0}))
        same((shared['util_percent'], shared['used_mib'], shared['power_mw']), (None, None, None))
        same((len(shared['slices']), shared['others']), (1, {'slices': 1, 'milli': 500, 'memory_mib': 40960}))
        usage = t.get('/v1/usage', who='tenant-user').json
        same({r['tenant'] for r in usage['usage']}, {'a'})
        # What neighbours had, even in one sum, is nobody's to know: any two moments can be asked for.
        assert 'others' not in usage, usage
        usage = t.get('/v1/usage?tenant=b', who='tenant-user').json
        same(usage['usage'], [])
        both = t.get('/v1/usage', who=(2008, 2008)).json
        same([(r['tenant'], r['mechanism']) for r in both['usage']],
             [('a', 'timeslice'), ('a', 'whole'), ('b', 'timeslice'), ('b', 'whole')])
        usage = t.get('/v1/usage?by=gpu', who='tenant-user').json
        same(([r['gpu'][:8] for r in usage['usage']], usage['cards']), (['GPU-0000', 'GPU-2222'], []))
        usage = t.get('/v1/usage?by=gpu', who='auditor').json
        same(([c['index'] for c in usage['cards']], {r['cost_center'] for r in usage['usage']}), ([0, 1, 2], {'cc-a', None}))


def test_time_that_has_not_come_is_not_charged():
    with door() as t:
        now = int(time.time() * 1000)
        for to in ('', f'&to_ms={now + 86400_000}'):
            usage = t.get(f'/v1/usage?from_ms={now - 86400_000}{to}', who='root').json
            assert usage['to_ms'] <= int(time.time() * 1000), usage
            assert sum(r['milli_ms'] for r in usage['usage']) <= 4 * 1000 * 600_000, usage
        # Screens that ask again at once are told the same as a moment ago, and up to when that is.
        asked = [t.get('/v1/usage', who='root').json for _ in range(30)]
        times = [u['to_ms'] for u in asked]
        assert times == sorted(times) and len(set(times)) < len(times), times
        same([u['usage'] for u, to in zip(asked, times) if to == times[0]][-1], asked[0]['usage'])
        time.sleep(0.3)
        later = t.get('/v1/usage', who='root').json
        assert times[-1] < later['to_ms'] <= int(time.time() * 1000), (times, later['to_ms'])
        usage = t.get(f'/v1/usage?from_ms={now + 3600_000}&to_ms={now + 7200_000}', who='root').json
        same((usage['usage'], usage['from_ms'], usage['to_ms']), ([], now + 3600_000, now + 3600_000))
        same(t.get(f'/v1/usage?from_ms={now + 2}&to_ms={now + 1}', who='root').status, 400)


def test_records_of_usage_come_in_pages():
    with door() as t:
        whole = t.get('/v1/usage/records', who='root').json
        same([r['lease'] for r in whole['records']], ['L1', 'L2', 'L3', 'L4'])
        pages, after = [], 0
        while after is not None:
            page = t.get(f'/v1/usage/records?limit=1&after={after}', who='tenant-user').json
            pages += [(r['lease'], r['job'], r['user'], r['milli'], r['to_ms'], r['lost']) for r in page['records']]
            after = page['next']
        same(pages, [('L1', 'J1', '2002', 1000, None, False), ('L3', 'J5', '2001', 500, None, False)])
        same(t.get('/v1/usage/records?tenant=b', who='tenant-user').json['records'], [])


def test_records_that_cannot_be_shown_are_walked_past_in_steps():
    with door() as t:
        with contextlib.closing(sqlite3.connect(f'{os.path.dirname(t.path)}/bulkhead.db')) as db, db:
            db.execute('DROP TRIGGER usage_begin')
            columns = [r[1] for r in db.execute('PRAGMA table_info(usage)')]
            changed = {'id': '1000 + i', 'tenant': "'gone'", 'to_ms': 'from_ms'}
            db.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20010)'
                       f' INSERT INTO usage({", ".join(columns)}) SELECT {", ".join(changed.get(c, c) for c in columns)}'
                       ' FROM n, (SELECT * FROM usage ORDER BY id LIMIT 1)')
        now = int(time.time() * 1000)
        page = t.get(f'/v1/usage/records?to_ms={now + 1000}', who=(2008, 2008)).json
        # Twenty pages of a thousand, of which four records are of tenants that this caller sees.
        same(([r['lease'] for r in page['records']], page['next']), (['L1', 'L2', 'L3', 'L4'], 1000 + 20_000 - 4))
        page = t.get(f'/v1/usage/records?after={page["next"]}', who=(2008, 2008)).json
        same((page['records'], page['next']), ([], None))


def test_why_names_no_neighbour():
    with door() as t:
        w = t.get('/v1/jobs/J3/why', who='tenant-user').json
        same([h['job'] for h in w['holders']], ['J1'])
        same(w['others'], {'jobs': 1, 'milli': 1000})
        same([(r['sentence'], r['touches_others']) for r in w['remedies']],
             [('J1 of a ends', False), ('others would have to give something up', True), ('in an hour', False)])
        same(len(t.get('/v1/jobs/J3/why').json['holders']), 2)


def test_what_if_changes():
    with door() as t:
        ask = {'job': 'J3', 'changes': [{'kind': 'end-job', 'job': 'J1'}]}
        same(t.post('/v1/what-if', ask, who='tenant-user').json['starts'], True)
        ask['changes'][0]['job'] = 'J2'
        same(t.post('/v1/what-if', ask, who='tenant-user').status, 404)
        for change in ({'kind': 'quota', 'tenant': 'a', 'gpus_milli': 4000}, {'kind': 'gpus', 'count': 2}):
            same(t.post('/v1/what-if', {'job': 'J3', 'changes': [change]}, who='tenant-user').status, 403)
            same(t.post('/v1/what-if', {'job': 'J3', 'changes': [change]}).status, 200)
        same(t.post('/v1/what-if', {}).status, 400)
        same(t.post('/v1/what-if', {'job': 'J3', 'submit': JOB_A}).status, 400)


def pondered(t, headers, meanwhile, who='root'):
    """The answer to a question, and something happens before it is found."""
    t.order('ponder')
    with concurrent.futures.ThreadPoolExecutor(1) as one:
        asked = one.submit(t.post, '/v1/what-if', {'job': 'J3'}, headers=headers, who=who)
        same(t.process.stdout.readline(), 'asked\n')
        meanwhile()
        t.order('tell')
        return asked.result(60)


def test_what_if_is_told_to_who_may_still_ask():
    """A token that was revoked while the answer was looked for."""
    with door() as t:
        made = t.post('/v1/tokens', {'subject': 'service:planner', 'role': 'tenant-user', 'tenant': 'a'}).json
        shown = {'Authorization': f'Bearer {made["token"]}'}
        same(pondered(t, shown, lambda: None).status, 200)
        a = pondered(t, shown, lambda: same(t.ask('DELETE', f'/v1/tokens/{made["id"]}').status, 200))
        same((a.status, 'starts' in a.json), (401, False), repr(a))
        same(pondered(t, {}, lambda: None, who='tenant-user').status, 200)


def test_audit_of_a_tenant_is_its_own():
    with door() as t:
        same({r['tenant'] for r in t.get('/v1/audit', who='tenant-admin').json['records']}, {'a'})
        every = t.get('/v1/audit').json['records']
        same({r['tenant'] for r in every}, {'a', 'b', None})
        same(t.get('/v1/audit?tenant=b', who='tenant-admin').status, 404)
        page = t.get('/v1/audit?limit=2').json
        same([r['seq'] for r in page['records']], [every[0]['seq'], every[1]['seq']])
        rest = t.get(f'/v1/audit?after={page["next"]}').json['records']
        same([r['seq'] for r in rest], [r['seq'] for r in every[2:]])
        newest = t.get('/v1/audit?newest=true&limit=1').json
        same(newest['records'][0]['seq'], every[-1]['seq'])
        same(t.get(f'/v1/audit?newest=true&limit=1&after={newest["next"]}').json['records'][0]['seq'], every[-2]['seq'])


def test_audit_gives_the_text_that_was_hashed():
    with door() as t:
        assert all('body' not in r for r in t.get('/v1/audit').json['records'])
        prev = '0' * 64
        for r in t.get('/v1/audit?bodies=true').json['records']:
            body = r['body'].encode()
            leaf = hashlib.sha256(b'\0' + len(body).to_bytes(8, 'big') + body).hexdigest()
            same((leaf, json.loads(body)['seq'], json.loads(body)['prev']), (r['hash'], r['seq'], prev))
            prev = hashlib.sha256(b'\1' + bytes.fromhex(prev) + bytes.fromhex(leaf)).hexdigest()
        # The text names addresses and sessions of others, also in a record of one's own tenant.
        refused = t.get('/v1/audit?bodies=true', who='tenant-admin')
        same((refused.status, refused.json['error']['needed']), (403, 'operator or auditor of all tenants'))
        assert all('body' not in r for r in t.get('/v1/audit?bodies=false', who='tenant-admin').json['records'])


def test_console_needs_nobody_to_be_known():
    with door('--https') as t:
        page = t.https('GET', '/')
        same((page.status, page.type), (200, 'text/html; charset=utf-8'))
        has(gzip.decompress(page.body).decode(), '/console/main.js')
        same(page.headers['X-Content-Type-Options'], 'nosniff')
        has(page.headers['Content-Security-Policy'], "default-src 'self'")
        same(t.get('/', headers={'If-None-Match': page.headers['ETag']}).status, 304)
        same([t.https('GET', p).status for p in ('/console/', '/console/none.js', '/index.html')], [401] * 3)
        same(t.https('POST', '/').status, 401)
        same(t.get('/console/none.js').status, 404)


def test_pages():
    with door() as t:
        seen, after = [], ''
        while True:
            page = t.get(f'/v1/jobs?limit=2{after}', who='tenant-user').json
            assert len(page['jobs']) <= 2
            seen += [j['id'] for j in page['jobs']]
            if not page['next']:
                break
            after = f'&after={page["next"]}'
        same(seen, ['J1', 'J3', 'J5'])
        same([j['id'] for j in t.get('/v1/jobs?newest=true&limit=1').json['jobs']], ['J6'])
        same([j['id'] for j in t.get('/v1/jobs?state=waiting').json['jobs']], ['J3', 'J4'])
        leases = t.get('/v1/leases?limit=1', who='tenant-user').json
        same(([x['id'] for x in leases['leases']], leases['next']), (['L1'], 'L1'))
        leases = t.get('/v1/leases?limit=1&after=L1', who='tenant-user').json
        same(([x['id'] for x in leases['leases']], leases['next']), (['L3'], None))


def test_live_jobs():
    with door() as t:
        t.order('end 1')
        until_ended(t, 'J1')
        same([j['id'] for j in t.get('/v1/jobs?live=true').json['jobs']], ['J2', 'J3', 'J4', 'J5', 'J6'])
        mine = t.get('/v1/jobs?live=true', who='tenant-user').json
        same(([j['id'] for j in mine['jobs']], mine['others']), (['J3', 'J5'], 3))
        same([j['id'] for j in t.get('/v1/jobs?live=true&state=waiting').json['jobs']], ['J3', 'J4'])
        same(t.get('/v1/jobs?live=true&state=ended').status, 400)
        same(len(t.get('/v1/jobs?live=false').json['jobs']), 6)


def until_ended(t, job):
    while t.get(f'/v1/jobs/{job}').json['job']['state'] != 'ended':
        pass


def test_what_a_lease_has_and_leaves_shared():
    with door() as t:
        whole, shared = (t.get(f'/v1/leases/{x}').json for x in ('L1', 'L3'))
        same([(d['lease']['gpus'], d['lease']['milli'], d['lease']['memory_mib']) for d in (whole, shared)],
             [(['GPU-00000000-0000-0000-0000-000000000000'], 1000, 81920),
              (['GPU-22222222-2222-2222-2222-222222222222'], 500, 40960)])
        for detail in (whole, shared):
            has(detail['stays_shared'], 'host kernel')
        same(t.get('/v1/leases').json['leases'][0], whole['lease'])
        same(t.get('/v1/jobs/J1').json['leases'][0], whole['lease'])
        (pool,) = t.get('/v1/tenants/a').json['pools']
        has(pool['stays_shared'], 'memory capacity')
        gpus = t.get('/v1/gpus').json['gpus']
        same([(g['numa'], g['fabric'], g['health']) for g in gpus], [(None, None, None), (0, 'nvl-0', None), (1, 'nvl-0', None)])


def test_why_jobs_wait_in_lists():
    with door() as t:
        jobs = {j['id']: j for j in t.get('/v1/jobs').json['jobs']}
        same((jobs['J3']['why'], t.get('/v1/jobs/J3').json['job']['why']), ('1 come before it', '1 come before it'))
        assert jobs['J1']['why'] != '1 come before it', jobs['J1']


def test_commands():
    for options in ((), ('--later',)):
        with door(*options) as t:
            doc = t.document()
            r = t.post('/v1/jobs', {'tenant': 'a', 'argv': ['x'], 'gpus': 2, 'order': -3, 'can_pause': True}, who='tenant-user')
            same((r.status, r.json), (201, {'id': 'J7'}), repr(r))
            judge_answer(doc, 'POST', '/v1/jobs', r)
            j = t.get('/v1/jobs/J7', who='tenant-user').json['job']
            same((j['gpus'], j['order'], j['state'], j['user']), (2, -3, 'waiting', '2002'))
            same(t.post('/v1/jobs/J7/cancel', {'reason': 'no'}, who='tenant-user').json, {'id': 'J7'})
            same(t.get('/v1/jobs/7').json['job']['end'], 'cancelled')
            same(t.post('/v1/jobs/J7/cancel', {}, who='tenant-user').status, 409)
            same(t.post('/v1/leases/L1/pause', {}).json, {'id': 'L1'})
            same(t.get('/v1/leases/L1').json['lease']['paused'], True)
            same(t.post('/v1/gpus/1/cordon', {'reason': 'warm'}).json, {'id': 'GPU-11111111-1111-1111-1111-111111111111'})
            same(t.post('/v1/policy/apply', {'text': 'bulkhead: 1\n', 'version': 1}).json, {'version': 2})
            same(t.get('/v1/policy').json['text'], 'bulkhead: 1\n')
            same(t.get('/v1/policy?version=1').json['active'], False)
            same(t.post('/v1/backup', {'name': 'one'}).json, {'id': 'one'})


def test_submitted_once_with_a_key():
    for options in ((), ('--later',)):
        with door(*options) as t:
            job = {'tenant': 'a', 'argv': ['x']}
            key = {'Idempotency-Key': 'k1'}
            same([t.post('/v1/jobs', job, who='tenant-user', headers=key).json['id'] for _ in range(3)], ['J7'] * 3)
            same(t.post('/v1/jobs', job, who='tenant-admin', headers=key).json['id'], 'J8')
            same(t.post('/v1/jobs', job, who='tenant-user').json['id'], 'J9')


def test_tokens():
    with door('--https') as t:
        r = t.post('/v1/tokens', {'role': 'tenant-user', 'tenant': 'a'}, who='tenant-user')
        same(r.status, 201, repr(r))
        token = r.json['token']
        assert re.fullmatch('bh_[0-9a-f]{64}', token)
        assert token not in str(t.get('/v1/tokens').json)
        r = t.https('GET', '/v1/jobs', token)
        same(([j['id'] for j in r.json['jobs']], r.json['others']), (['J1', 'J3', 'J5'], 3))
        same(t.https('GET', '/v1/status', token).json['you'],
             {'principal': 'user:2002', 'roles': [{'role': 'tenant-user', 'tenant': 'a'}]})
        # over the unix socket it stands for its subject too, whoever connects
        r = t.get('/v1/status', who='nobody', headers={'Authorization': f'Bearer {token}'})
        same(r.json['you']['principal'], 'user:2002')
        # it makes no tokens, and nobody gets more than he has
        same(t.https('POST', '/v1/tokens', token, {'role': 'tenant-user', 'tenant': 'a'}).code, 'denied')
        same(t.post('/v1/tokens', {'role': 'operator'}, who='tenant-user').code, 'denied')
        same(t.post('/v1/tokens', {'role': 'tenant-admin', 'tenant': 'a'}, who='tenant-user').code, 'denied')
        same(t.post('/v1/tokens', {'role': 'tenant-user', 'tenant': 'b'}, who='tenant-user').code, 'not_found')
        same(t.post('/v1/tokens', {'subject': 'service:x', 'role': 'tenant-user', 'tenant': 'a'}, who='tenant-admin').code, 'denied')
        same(t.post('/v1/tokens', {'subject': 'user:2002', 'role': 'operator'}).code, 'refused')
        same(t.post('/v1/tokens', {'subject': 'nonsense', 'role': 'operator'}).code, 'invalid')
        same(t.post('/v1/tokens', {'role': 'tenant-user'}, who='tenant-user').code, 'invalid')
        same(t.post('/v1/tokens', {'subject': 'service:x', 'role': 'viewer', 'tenant': 'a'}).code, 'invalid')
        # of a service
        service = t.post('/v1/tokens', {'subject': 'service:ci', 'role': 'operator', 'ttl_ms': 3600000}).json
        same(t.https('GET', '/v1/doctor', service['token']).status, 200)
        same([x['subject'] for x in t.get('/v1/tokens', who='tenant-user').json['tokens']], ['user:2002'])
        same(t.ask('DELETE', f'/v1/tokens/{service["id"]}', who='tenant-user').status, 404)
        same(t.ask('DELETE', f'/v1/tokens/{service["id"]}').status, 200)
        r = t.https('GET', '/v1/doctor', service['token'])
        same((r.status, r.code, r.headers['WWW-Authenticate']), (401, 'unauthenticated', 'Bearer'))
        same(t.https('GET', '/v1/status').status, 401)
        same(t.https('GET', '/openapi.json').status, 200)
        short = t.post('/v1/tokens', {'subject': 'service:x', 'role': 'viewer', 'ttl_ms': 1}).json['token']
        same(t.https('GET', '/v1/status', short).status, 401)


def test_https_is_tls_1_2_or_newer():
    with door('--https') as t:
        same(t.https('GET', '/openapi.json', version=ssl.TLSVersion.TLSv1_2).status, 200)
        same(t.https('GET', '/openapi.json', version=ssl.TLSVersion.TLSv1_3).status, 200)
        for old in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            try:
                t.https('GET', '/openapi.json', version=old)
                raise AssertionError(f'{old} was spoken')
            except (ssl.SSLError, OSError):
                pass


def test_problems_say_what_was_needed():
    with door() as t:
        doc = t.document()
        for body, words in (
                ({'tennant': 'a', 'argv': ['x']}, "'tenant' was perhaps meant"),
                ({'argv': ['x']}, "'tenant' is missing"),
                ({'tenant': 'a', 'argv': []}, 'names no command'),
                ({'tenant': 'a', 'argv': 'x'}, 'a list of at most'),
                ({'tenant': 'a', 'argv': [1]}, 'a list of at most'),
                ({'tenant': 'a', 'argv': ['x'], 'gpus': -1}, 'a number'),
                ({'tenant': 'a', 'argv': ['x'], 'gpus': 99999}, 'from 0 to 4096'),
                ({'tenant': 'a', 'argv': ['x'], 'gpus': '1'}, 'whole number'),
                ({'tenant': 'a', 'argv': ['x'], 'tier': 'cloud'}, 'one of process'),
                ({'tenant': 'a', 'argv': ['x'], 'firm': 1}, 'true or false'),
                ({'tenant': 'a', 'argv': ['x'], 'pool': None}, 'a name'),
                ({'tenant': 'a', 'argv': ['x'], 'env': ['nothing']}, 'NAME=VALUE'),
                ({'tenant': 'a', 'argv': ['x'], 'cwd': 'here'}, 'absolute'),
                ({'tenant': 'A!', 'argv': ['x']}, 'lower-case'),
                ({'tenant': 'zz', 'argv': ['x']}, "no tenant 'zz'")):
            r = t.post('/v1/jobs', body)
            assert r.status in (400, 404), repr(r)
            has(r.json['error']['message'], words)
            judge(r.json, {'$ref': '#/components/schemas/Problem'}, doc)
        for text in ('', '{', '[]', 'null', '{"tenant":"a","tenant":"a"}', '{"tenant": "a"} x', '\xff', '{"tenant": "\\ud800"}',
                     '[' * 100, '{"a":' * 100, '{"tenant": "a", "argv": ["\\u0000"]}', '{"tenant": 1e999}'):
            same(t.ask('POST', '/v1/jobs', text.encode('latin-1')).status, 400, text)
        for path, status in (('/v1/nothing', 404), ('/v1/jobs/', 404), ('/v1//jobs', 404), ('/v1/jobs/J0', 404), ('/v1/jobs/x', 404),
                             ('/v1/jobs/J99999999999999999999', 404), ('/v1/jobs?limit=2000', 400), ('/v1/jobs?limit=x', 400),
                             ('/v1/jobs?limit=1&limit=2', 400), ('/v1/jobs?what=1', 400), ('/v1/status?x', 400),
                             ('/v1/jobs?state=sleepy', 400), ('/v1/leases?state=sleepy', 400), ('/v1/status%00x', 404),
                             ('/v1/%73tatus', 200), ('/v1/jobs?tenant=%zz', 400), ('/v1/usage?from_ms=5&to_ms=4', 400)):
            same(t.get(path).status, status, path)
        r = t.ask('PUT', '/v1/jobs', '{}')
        same((r.status, r.headers['Allow']), (405, 'GET, POST'))
        same(t.ask('GET', '/v1/status', '{"a": 1}').status, 400)


def test_metrics_of_a_tenant():
    """Who sees all gets all; a tenant gets itself, and its neighbours without names; the format is what is accepted."""
    with door() as t:
        t.get('/metrics')  # what the next one counts
        whole = t.get('/metrics', who='root').body.decode()
        for part in ('tenant="a"', 'tenant="b"', 'lease="L2"', 'bulkhead_sharing_allowed 1', 'bulkhead_http_requests_total'):
            has(whole, part)
        mine = t.get('/metrics', who='tenant-user').body.decode()
        for part in ('bulkhead_tenant_leases{tenant="a"} 1', 'bulkhead_tenant_leases{tenant="_others"} 2', 'lease="L1"',
                     'bulkhead_build_info'):
            has(mine, part)
        for part in ('"b"', 'L2', 'sharing_allowed', 'http_requests'):
            assert part not in mine, (part, mine)
        assert '# EOF' not in mine, mine
        r = t.get('/metrics', headers={'Accept': 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5'})
        has(r.headers['Content-Type'], 'application/openmetrics-text; version=1.0.0')
        assert r.body.endswith(b'\n# EOF\n'), r.body[-80:]


if __name__ == '__main__':
    d.tap.main(globals())
