# SPDX-License-Identifier: Apache-2.0
"""Who is on a card and has no business there: found, said, stopped; and a card with somebody on it is nobody's to have.

Usage: watch.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT FAULTS TENANT
"""
import contextlib
import datetime
import errno
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time

import lab
from lab import NOBODY, has, node, same, until

FAULTS, TENANT = (os.path.abspath(a) for a in sys.argv[6:8])


@contextlib.contextmanager
def stranger(n, gpu, size='4GiB', user=NOBODY):
    """A process that bulkhead did not start, with memory of that card."""
    p = subprocess.Popen([TENANT, '--device', str(gpu), 'hold', size], env=n.env, stdout=subprocess.PIPE, text=True, user=user)
    try:
        same(p.stdout.readline(), 'ready\n')
        yield p
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def card_of(n, lease):
    uuid = n.lease(lease)['slices'][0]['gpu']
    return next(g for g in n.get('/v1/gpus').json['gpus'] if g['uuid'] == uuid)


def checks(n, layer):
    return [c for c in n.get('/v1/doctor').json['checks'] if c['layer'] == layer]


def test_a_card_with_somebody_on_it_is_not_clean():
    """What root runs is not stopped, and what it holds was not looked at: nobody else gets the card."""
    with node() as n:
        job = n.submit('chat', 'sleep', '600')
        lease = n.active(job)
        card = card_of(n, lease)
        with stranger(n, card['index'], user=0) as p:
            n.post(f'/v1/jobs/{job}/cancel')
            n.wait_lease(lease, 'quarantined', 'released')
            end = n.lease(lease)
            same(end['lease']['state'], 'quarantined')
            has(end['lease']['why'], f'process {p.pid} (tenant) is on it')
            same({s['verdict'] for s in end['scrubs']}, {'unknown'})
            same(p.poll(), None)
        # It is gone: a person has the card looked at again.
        until(lambda: n.post(f'/v1/gpus/{card["index"]}/uncordon').ok, 90)
        n.wait_lease(lease, 'released')
        clean = n.lease(lease)['scrubs'][-1]
        same(clean['verdict'], 'clean')
        has(clean['words'], ' % of the ')
        assert clean['probed_bytes'] / clean['total_bytes'] > 0.97, clean
        n.sound()


def test_a_stranger_is_stopped():
    lab.tap.need_for_others()
    """One on a card that is somebody's is found, written down and ended; whose card it is goes on."""
    with node() as n:
        job = n.submit('chat', 'sleep', '600')
        lease = n.active(job)
        card = card_of(n, lease)
        # A lease of tier process is bounded as one of tier container is.
        files = [pathlib.Path(g, f) for g in n.cgroups() for f in ('pids.max', 'memory.max', 'memory.limit_in_bytes')]
        bounds = {f.name: f.read_text().strip() for f in files if f.exists()}
        same(bounds['pids.max'], '8192')
        most = int(bounds.get('memory.max') or bounds['memory.limit_in_bytes'])
        total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        assert most < total, (most, total)
        with stranger(n, card['index']) as p:
            until(lambda: [c for c in checks(n, 'stranger') if c['state'] == 'bad'], 90, n.log)
            bad = checks(n, 'stranger')[0]
            has(bad['sentence'], f'process {p.pid} (tenant, user {NOBODY}) is on GPU {card["index"]} with 4')
            same(n.get('/v1/health').json['health'], 'bad')
            same(p.wait(30), -signal.SIGKILL)
            until(lambda: checks(n, 'stranger')[0]['state'] == 'ok', 90)
        told = n.audit(event='gpu.stranger')
        same([(r['after'], r['object_id'], r['outcome']) for r in told], [('stopped', card['uuid'], 'denied')])
        has(told[0]['reason'], f'process {p.pid} ')
        same(n.lease(lease)['lease']['state'], 'active')
        # What a lease has is its own, and a card of no pool is nobody's business.
        same([c['state'] for c in checks(n, 'gpu')], ['ok'])
        n.sound()


def test_who_was_there_before():
    lab.tap.need_for_others()
    """Work that somebody started before there was a daemon is not ended: nobody is given its card."""
    with node(serve=False) as n:
        with stranger(n, 2, '1GiB') as p:
            n.start()
            until(lambda: n.get('/v1/gpus/2').json['state'] == 'cordoned', 90, n.log)
            has(n.get('/v1/gpus/2').json['reason'], f'process {p.pid} ')
            same([r['after'] for r in n.audit(event='gpu.stranger')], ['left alone'])
            jobs = [n.submit(t, 'sleep', '600') for t in ('chat', 'chat', 'train', 'train')]
            leases = [n.active(j) for j in jobs[:3]]
            assert 2 not in [card_of(n, x)['index'] for x in leases]
            until(lambda: 'bulkhead resume' in str(checks(n, 'stranger')[0]['mend']), 90)
            time.sleep(3)
            same(p.poll(), None)


def test_a_scrub_that_hangs():
    """It has its time; it is spoken of; the card is nobody's. Nor is one on which the driver fails its test."""
    with node(serve=False) as n:
        done = subprocess.run([lab.BIN, 'gpus', '-o', 'json'], capture_output=True, text=True, check=True, env=n.env, timeout=60)
        fifth = sorted(json.loads(done.stdout)['gpus'], key=lambda g: g['index'])[5]['uuid']
        build = pathlib.Path(n.program).parent.parent
        mine = pathlib.Path(n.here, 'b')
        for name in ('node', 'keeper', 'warden', 'governor', 'scrub', 'store', 'oci'):
            (mine / name).mkdir(parents=True)
        for at in ('node/bulkheadd', 'keeper/bulkhead-keeper', 'warden/bulkhead-warden', 'governor/bulkhead-governor',
                   'oci/bulkhead-oci', 'store/bulkhead-audit'):
            shutil.copy(build / at, mine / at)
        hangs = mine / 'scrub/bulkhead-scrub'
        hangs.write_text('#!/bin/sh\n[ "$1" = scrub ] && sleep 1000\n'
                         f'[ "$2$3" = {fifth}--quick ] && echo found 2 2 one of two pages had one && exit\necho clean 2 2 none had one\n')
        hangs.chmod(0o755)
        n.program = str(mine / 'node/bulkheadd')
        n.more = {'BULKHEAD_WORKER_TIMEOUT': '3'}
        n.start()
        card = n.get('/v1/gpus/5').json
        same((card['state'], card['reason']), ('cordoned', 'one of two pages had one'))
        # One card whole and each that is shared; not again while neither the driver nor the boot is another.
        tests = [(r['after'], r['outcome']) for r in n.audit(event='selftest.verdict')]
        same(sorted(tests), [('clean', 'success')] * 4 + [('found', 'failure')])
        n.again()
        same(len(n.audit(event='selftest.verdict')), 6, 'only the one that failed')
        n.kill()
        db = sqlite3.connect(f'{n.state}/bulkhead.db')
        boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()
        db.execute("UPDATE notes SET key = replace(key, ?, 'old'), value = CAST(replace(CAST(value AS TEXT), ?, 'old') AS BLOB)", (boot, boot))
        db.commit()
        db.close()
        n.start()
        same(len(n.audit(event='selftest.verdict')), 11)
        job = n.submit('chat', 'sleep', '600')
        lease = n.active(job)
        n.post(f'/v1/jobs/{job}/cancel')
        end = n.wait_lease(lease, 'quarantined', 'released', seconds=60)
        same(end['lease']['state'], 'quarantined')
        has(end['lease']['why'], 'not done after 3 s')
        until(lambda: 'bad' in [c['state'] for c in checks(n, 'gpu')], 90)
        same([c['state'] for c in checks(n, 'scrub')], ['warn'])
        has([c for c in checks(n, 'gpu') if c['state'] == 'bad'][0]['sentence'], 'quarantined')
        same(n.get('/v1/health').json['health'], 'bad')
        # A look at the GPUs works as ever, and so does the rest.
        other = n.submit('train', 'true')
        same(n.wait(other)['status'], 0)


def test_every_layer_is_spoken_of():
    with node() as n:
        said = n.get('/v1/doctor').json
        layers = {c['layer']: c['state'] for c in said['checks']}
        for layer in ('store', 'audit', 'policy', 'cgroup', 'container', 'program', 'worker', 'driver', 'canary', 'gpu', 'scrub',
                      'stranger'):
            assert layer in layers, said
        same({layers[x] for x in ('audit', 'policy', 'cgroup', 'program', 'worker', 'driver', 'canary', 'gpu', 'scrub', 'stranger')},
             {'ok'}, said)
        assert all(c['sentence'] for c in said['checks']), said
        # A card that somebody took out.
        assert n.post('/v1/gpus/1/cordon', {'reason': 'it smells'}).ok
        until(lambda: checks(n, 'gpu')[0]['state'] != 'ok', 90)
        gpu = checks(n, 'gpu')
        same([(c['state'], c['mend']) for c in gpu], [('warn', 'bulkhead resume 1')])
        has(gpu[0]['sentence'], 'it smells')
        same(n.get('/v1/health').json['health'], 'warn')
        # A disk that fails.
        n.kill()
        faults = pathlib.Path(n.here, 'faults')
        faults.write_bytes(bytes(4096))
        n.more = {'LD_PRELOAD': FAULTS, 'BULKHEAD_TEST_FAULTS': str(faults),
                  'ASAN_OPTIONS': n.env['ASAN_OPTIONS'] + ':verify_asan_link_order=0'}
        n.start()
        with open(faults, 'r+b') as f:
            f.write(struct.pack('=qIIQ', 0, 1000, errno.ENOSPC, 1))
        n.post('/v1/jobs', {'tenant': 'chat', 'argv': ['true']})
        until(lambda: [c for c in checks(n, 'store') if c['state'] == 'bad'], 90, n.log)
        with open(faults, 'r+b') as f:
            f.write(bytes(24))
        until(lambda: checks(n, 'store')[0]['state'] != 'bad', 60, n.log)


def test_what_is_written_down():
    """Of the node, of who came in, of what was signed for, and of hands on another's work."""
    until_then = (datetime.date.today() + datetime.timedelta(days=30)).isoformat()
    text = lab.policy()
    text += f'waivers:\n  - {{rule: BH-073, scope: "tenant:lab", approver: jane, expires: {until_then}, reason: a test}}\n'
    with node(text=text) as n:
        same([(r['object_id'], r['after'], r['reason'], r['rules']) for r in n.audit(event='policy.waiver')],
             [('tenant:lab', f'jane, until {until_then}', 'a test', ['BH-073'])])
        same([r['object_id'] for r in n.audit(event='node.start')], [n.get('/v1/status').json['node']])
        # Whoever comes in is written down once, by name or by token.
        made = n.post('/v1/tokens', {'role': 'tenant-user', 'tenant': 'lab', 'subject': 'service:ci'})
        assert made.ok, made
        for _ in range(3):
            assert n.get('/v1/status', headers={'Authorization': f'Bearer {made.json["token"]}'}).ok
        came = n.audit(event='auth.success')
        same(sorted((r['who'], r.get('object_id')) for r in came), [('service:ci', made.json['id']), ('user:root', None)])
        # An operator ends what is another's; a user his own.
        jobs = [n.submit('lab', 'sleep', '600', uid=NOBODY, milli=100, memory_mib=1024) for _ in range(2)]
        for j in jobs:
            n.active(j)
        assert n.post(f'/v1/jobs/{jobs[0]}/cancel', uid=NOBODY).ok
        same(n.audit(event='override.work'), [])
        assert n.post(f'/v1/jobs/{jobs[1]}/cancel', {'reason': 'it is late'}).ok
        same([(r['who'], r['object_id'], r['after'], r['reason']) for r in n.audit(event='override.work')],
             [('user:root', jobs[1], 'job.cancel', 'it is late')])
        n.quiet()
        n.again()
        same(len(n.audit(event='policy.waiver')), 1, 'nothing new was signed for')
        same(len(n.audit(event='node.start')), 2)
        n.kill(signal.SIGTERM)
        n.verified()
        same(len(n.rows("SELECT 1 FROM audit_record WHERE event = 'node.stop'")), 1)


if __name__ == '__main__':
    lab.tap.main(globals())
