# SPDX-License-Identifier: Apache-2.0
"""One machine from a policy to leases and back: who runs, who waits, who is refused, what is left when it is over.

Usage: run.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import collections
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

import lab
from lab import LARGE, NOBODY, environment, has, node, policy, same, until, write


def finished(n):
    """Nothing is left, and the books say how it came."""
    n.quiet()
    n.nothing_left()
    n.sound()
    n.kill(signal.SIGTERM)
    n.verified()


def test_scene():
    """Four classes of tenants: work ends as it ends, somebody is refused, somebody waits, somebody makes room."""
    with node() as n:
        status = n.get('/v1/status').json
        same((status['gpus'], status['simulated'], status['policy_version']), (8, True, 1))
        same(len(n.audit(event='policy.change')), 1)
        # How work ends.
        good = n.submit('chat', '/bin/sh', '-c', 'echo $CUDA_VISIBLE_DEVICES; echo to err >&2; exit 0')
        bad = n.submit('train', '/bin/sh', '-c', 'exit 7')
        killed = n.submit('nightly', '/bin/sh', '-c', 'kill -9 $$', can_requeue=True)
        share = n.submit('lab', '/bin/sh', '-c', 'id -u; echo $BULKHEAD_TENANT', uid=NOBODY, milli=250, memory_mib=5120)
        none = n.submit('train', '/nonexistent/program')
        same([n.wait(j)[k] for j, k in ((good, 'status'), (bad, 'status'), (killed, 'signal'), (share, 'status'))],
             [0, 7, 9, 0])
        same([n.job(j)['job']['end'] for j in (good, bad, killed, share, none)][:4],
             ['exited', 'exited', 'killed', 'exited'])
        assert n.wait(none)['end'] in ('failed', 'exited'), n.job(none)
        uuid = n.get('/v1/gpus').json['gpus'][0]['uuid']
        out = n.get(f'/v1/jobs/{good}/logs').body.decode()
        assert out.startswith('GPU-') and len(out.strip()) == len(uuid), out
        same(n.get(f'/v1/jobs/{good}/logs?stream=err').body, b'to err\n')
        same(n.get(f'/v1/jobs/{share}/logs').body, f'{NOBODY}\nlab\n'.encode())
        lease = n.wait_lease(n.leases_of(good)[0], 'released')
        # The job is over when nobody is left, not when its card was proved clean.
        at = {s['to']: s['at_ms'] for s in lease['history']}
        same(n.job(good)['job']['state_ms'], at['scrubbing'])
        assert at['scrubbing'] < at['released'], at
        same(n.post(f'/v1/jobs/{good}/cancel').status, 409)
        # What it sees is its lease's to say, whatever it says itself.
        wide = n.submit('chat', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES $BULKHEAD_TENANT $MINE ${CUDA_MPS_PIPE_DIRECTORY-none}',
                        env=['CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7', 'BULKHEAD_TENANT=train', 'MINE=1',
                             'CUDA_MPS_PIPE_DIRECTORY=/tmp/other'])
        same(n.wait(wide)['status'], 0)
        same(n.get(f'/v1/jobs/{wide}/logs').body.decode(), f'{n.lease(n.leases_of(wide)[0])["lease"]["gpus"][0]} chat 1 none\n')
        same([s['to'] for s in lease['history']],
             ['admitted', 'preparing', 'active', 'draining', 'scrubbing', 'released'], 'the way of a lease')
        same([(s['verdict'], s['probed_bytes'] > s['total_bytes'] * 0.9) for s in lease['scrubs']], [('clean', True)])
        # Given and taken back, each with its record.
        first = lease['lease']['id']
        same([[(r['tenant'], r['after']) for r in n.audit(event=f'alloc.{e}', object_id=first)][:1] for e in ('grant', 'release')],
             [[('chat', lease['slices'][0]['gpu'])], [('chat', 'released')]])
        # Who is refused hears why, and the log has it.
        r = n.post('/v1/jobs', {'tenant': 'lab', 'argv': ['true'], 'pool': 'cards'})
        same(r.status, 422 if r.status == 422 else 403, repr(r))
        has(r.words, 'lab')
        denied = n.audit(event='alloc.deny')
        same(len(denied), 1)
        has(r.words, denied[0]['reason'])
        same((denied[0]['outcome'], denied[0]['tenant'], denied[0]['who']), ('denied', 'lab', 'user:root'))
        finished(n)


def test_waiting_and_its_remedy():
    with node() as n:
        held = [n.submit('chat', 'sleep', '600'), n.submit('chat', 'sleep', '600')]
        for j in held:
            n.active(j)
        late = n.submit('chat', 'true')
        why = {}

        def explained():
            why.update(n.get(f'/v1/jobs/{late}/why').json)
            return why['sentence'] and why['remedies']
        until(explained, 60, lambda: why)
        has(why['sentence'], 'quota')
        (listed,) = n.get('/v1/jobs?state=waiting').json['jobs']
        same((listed['id'], listed['why']), (late, why['sentence']), 'a list says it too')
        kinds = {r['kind'] for r in why['remedies']}
        assert kinds & {'free', 'quota', 'move', 'wait'}, why
        # The first one that somebody can carry out right now does what it says.
        free = [r for r in why['remedies'] if r['kind'] == 'free'] or [{'sentence': f'end {held[0]},'}]
        victim = next(w.strip(',') for w in free[0]['sentence'].split() if w.startswith('J'))
        assert n.post(f'/v1/jobs/{victim}/cancel').ok
        same(n.wait(late)['status'], 0)
        for j in held:
            n.post(f'/v1/jobs/{j}/cancel')
        finished(n)


def test_preempted_and_back():
    with node() as n:
        low = [n.submit('nightly', 'sh', '-c', 'test -e again && exit 3; touch again; sleep 600', can_requeue=True,
                        cwd=n.here)]
        first = n.active(low[0])
        low += [n.submit('nightly', 'sleep', '600', can_requeue=True) for _ in range(3)]
        for j in low:
            n.active(j)
        high = [n.submit('chat', 'sleep', '2'), n.submit('chat', 'sleep', '2'), n.submit('train', 'sleep', '2', gpus=2)]
        for j in high:
            same(n.wait(j)['status'], 0)
        assert n.audit(event='alloc.preempt'), 'nobody had to make room'
        n.wait(low[0])
        assert n.job(low[0])['job']['status'] == 3, n.job(low[0])
        attempts = n.leases_of(low[0])
        assert len(attempts) >= 2 and first in attempts, attempts
        for j in low[1:]:
            n.post(f'/v1/jobs/{j}/cancel')
        finished(n)


def test_cancel():
    with node() as n:
        held = [n.submit('nightly', 'sleep', '600', can_requeue=True) for _ in range(4)]
        for j in held:
            n.active(j)
        waits = n.submit('nightly', 'sleep', '600', can_requeue=True)
        r = n.post(f'/v1/jobs/{waits}/cancel', {'reason': 'not today'})
        same(r.status, 200, repr(r))
        same((n.wait(waits)['end'], n.job(waits)['job']['why']), ('cancelled', 'not today'))
        same(n.post(f'/v1/jobs/{waits}/cancel').status, 409)
        for j in held:
            assert n.post(f'/v1/jobs/{j}/cancel').ok
        same([n.wait(j)['end'] for j in held], ['cancelled'] * 4)
        same(len(n.audit(event='job.cancel')), 5)
        stubborn = n.submit('chat', 'sh', '-c', 'trap "" TERM; echo deaf; while :; do sleep 1; done')
        until(lambda: n.get(f'/v1/jobs/{stubborn}/logs').body == b'deaf\n')
        assert n.post(f'/v1/jobs/{stubborn}/cancel').ok
        same(n.wait(stubborn)['end'], 'cancelled')
        finished(n)


class Opened:
    """How often each file of a folder was opened; several times between two counts are one."""

    def __init__(self, folder):
        libc, in_open = ctypes.CDLL(None, use_errno=True), 0x20
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.fd, os.fsencode(folder), in_open) >= 0, os.strerror(ctypes.get_errno())
        self.times = collections.Counter()

    def count(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                events, at = os.read(self.fd, 65536), 0
                while at < len(events):
                    n = struct.unpack_from('=iIII', events, at)[3]
                    self.times[events[at + 16:at + 16 + n].rstrip(b'\0').decode()] += 1
                    at += 16 + n
        return self.times

    def close(self):
        os.close(self.fd)


def test_who_leaves_is_waited_for():
    """Work that takes its time to end: its keeper was told, and its end is heard of; nobody looks for it again each second."""
    with node() as n:
        stubborn = n.submit('chat', 'sh', '-c', 'trap "" TERM; echo deaf; while :; do sleep 1; done')
        until(lambda: n.get(f'/v1/jobs/{stubborn}/logs').body == b'deaf\n')
        lease = n.active(stubborn)
        with contextlib.closing(Opened(f'{n.run}/leases')) as opened:
            assert n.post(f'/v1/jobs/{stubborn}/cancel').ok
            until(lambda: opened.count() and n.state_of(stubborn) == 'ended', 120)
            times = opened.count()[f'{lease[1:]}.lock']
        at = {s['to']: s['at_ms'] for s in n.wait_lease(lease, 'released')['history']}
        same((n.job(stubborn)['job']['end'], at['scrubbing'] - at['draining'] >= 9_000), ('cancelled', True), at)
        # Who has the lock is asked when it has to leave, when it has ended, and for what it said then.
        assert 0 < times <= 6, times
        finished(n)


def test_cordon_and_drain():
    with node() as n:
        comes_back = n.submit('nightly', 'sleep', '600', can_requeue=True)
        lease = n.active(comes_back)
        gpu = n.lease(lease)['slices'][0]['gpu']
        index = next(g['index'] for g in n.get('/v1/gpus').json['gpus'] if g['uuid'] == gpu)
        for i in range(4):
            if i != index:
                assert n.post(f'/v1/gpus/{i}/cordon', {'reason': 'hot'}).ok
                gpu = n.get(f'/v1/gpus/{i}').json
                same((gpu['state'], gpu['reason'], gpu['health'], gpu['fabric']), ('cordoned', 'hot', None, None), 'shown at once')
        waits = n.submit('nightly', 'true', can_requeue=True)
        time.sleep(2)
        same(n.state_of(waits), 'waiting')
        assert n.post(f'/v1/gpus/{index}/drain', {'reason': 'to be repaired'}).ok
        n.wait_lease(lease, 'released')
        same(n.state_of(comes_back), 'waiting')
        same([g['state'] for g in n.get('/v1/gpus').json['gpus']][:4], ['cordoned'] * 4)
        n.again()  # a cordon outlives the daemon
        time.sleep(2)
        same((n.state_of(waits), n.state_of(comes_back)), ('waiting', 'waiting'))
        for i in range(4):
            assert n.post(f'/v1/gpus/{i}/uncordon').ok
        same(n.wait(waits)['status'], 0)
        n.active(comes_back)
        same([len(n.audit(event=f'gpu.{w}')) for w in ('cordon', 'drain', 'uncordon')], [3, 1, 4])
        n.post(f'/v1/jobs/{comes_back}/cancel')
        # One that may not be begun again ends.
        once = n.submit('chat', 'sleep', '600')
        lease = n.active(once)
        assert n.post(f'/v1/gpus/{n.lease(lease)["slices"][0]["gpu"]}/drain').ok
        n.wait(once)
        same(len(n.leases_of(once)), 1)
        finished(n)


def test_policy_changes():
    with node(LARGE) as n:
        jobs = [n.submit('train', 'sleep', '600') for _ in range(2)] + [n.submit('nightly', 'sleep', '600', can_requeue=True)]
        for j in jobs:
            n.active(j)
        less = policy(train=1)
        diff = n.post('/v1/policy/diff', {'text': less}).json
        same((diff['version'], diff['errors']), (1, 0))
        assert any(c['tenant'] == 'train' and c['before'] != c['after'] for c in diff['changes']), diff
        r = n.post('/v1/policy/apply', {'text': less, 'version': 7})
        same(r.status, 409)
        r = n.post('/v1/policy/apply', {'text': less, 'version': 1, 'reason': 'less for train'})
        same((r.status, r.json['version']), (200, 2))
        same(n.get('/v1/policy').json['version'], 2)
        same([g['pool'] for g in n.get('/v1/gpus').json['gpus']], ['cards'] * 4 + ['shares'] * 4)
        # A tenant that is no more: what it runs ends, what others run goes on.
        lines = policy().splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if 'nightly' in line)
        without = ''.join(lines[:at] + lines[at + 3:]).replace(', nightly]', ']')
        diff = n.post('/v1/policy/diff', {'text': without}).json
        same(diff['errors'], 0, diff)
        assert any(c['tenant'] == 'nightly' for c in diff['changes']), diff
        assert n.post('/v1/policy/apply', {'text': without, 'version': 2}).ok
        n.wait(jobs[2])
        same([n.state_of(j) for j in jobs[:2]], ['running'] * 2)
        # Who was promised what, and by whom that was changed.
        same(sorted(r['object_id'] for r in n.audit(event='tenant.create')), ['chat', 'lab', 'nightly', 'train'])
        same([(r['who'], r['tenant'], r['before'], r['after']) for r in n.audit(event='quota.set')],
             [('user:root', 'train', 'fairshare, 2 GPUs, at most 4, weight 200, borrows', 'fairshare, 1 GPUs, at most 4, weight 200, borrows'),
              ('user:root', 'train', 'fairshare, 1 GPUs, at most 4, weight 200, borrows', 'fairshare, 2 GPUs, at most 4, weight 200, borrows')])
        same([r['object_id'] for r in n.audit(event='tenant.delete')], ['nightly'])
        same([(r['object_id'], r['after']) for r in n.audit(event='rbac.grant')], [('user:root', 'operator'), ('user:nobody', 'tenant-user')])
        r = n.post('/v1/jobs', {'tenant': 'nightly', 'argv': ['true']})
        assert not r.ok, repr(r)
        # What cannot be is not applied.
        wrong = n.post('/v1/policy/apply', {'text': without.replace('mechanism: whole', 'mechanism: magic')})
        assert 400 <= wrong.status < 500, repr(wrong)
        has(wrong.words, 'magic')
        # Nor is what the rules refuse: an outsider on the kernel and the links of others, time slices for him, a driver that is not listed.
        outsider = policy().replace('{name: train,', '{name: train, domain: outside, trust: external,')
        for text, rules in ((outsider, {'BH-001', 'BH-041'}),
                            (outsider.replace('mechanism: whole', 'mechanism: timeslice, replicas: 2'), {'BH-003'}),
                            (policy().replace('{name: cards,', '{name: cards, drivers: ["535.183.01"],'), {'BH-051'})):
            diff = n.post('/v1/policy/diff', {'text': text}).json
            same(rules - {f.split(',')[0] for f in diff['findings']}, set(), diff)
            wrong = n.post('/v1/policy/apply', {'text': text})
            assert 400 <= wrong.status < 500, repr(wrong)
            has(wrong.words, 'BH-0')
        same(n.get('/v1/policy').json['version'], 3)
        refused = n.audit(event='policy.lint-fail')
        same((len(refused), {r['outcome'] for r in refused}), (4, {'denied'}))
        has(refused[-1]['reason'], 'BH-051')
        # The next daemon is given a file that differs in one thing, and that is what it writes down.
        n.kill()
        write(n.policy, without.replace('"user:nobody", role: tenant-user', '"user:nobody", role: tenant-admin'))
        n.start()
        same([(r['who'], r['object_id'], r['after']) for r in n.audit(event='rbac.grant')[2:]],
             [('service:bulkheadd', 'user:nobody', 'tenant-admin')])
        same([(r['object_id'], r['before']) for r in n.audit(event='rbac.revoke')], [('user:nobody', 'tenant-user')])
        same((len(n.audit(event='tenant.create')), n.audit(event='policy.change')[-1]['before']), (4, '3'))
        for j in jobs[:2]:
            n.post(f'/v1/jobs/{j}/cancel')
        finished(n)


def test_usage_adds_up():
    with node() as n:
        jobs = [n.submit('chat', 'sleep', '1'), n.submit('train', 'sleep', '1', gpus=2),
                n.submit('lab', 'sleep', '1', milli=250, memory_mib=1024)]
        for j in jobs:
            n.wait(j)
        n.quiet()
        rows = n.get('/v1/usage').json['usage']
        told = {r['tenant']: r['milli_ms'] for r in rows}
        want = {r['tenant']: r['v'] for r in
                n.rows('SELECT tenant, sum(milli * (to_ms - from_ms)) v FROM usage GROUP BY tenant')}
        same(told, want)
        assert set(told) == {'chat', 'train', 'lab'} and told['train'] >= 2 * 1000 * 900 and told['lab'] >= 250 * 900, told
        finished(n)


def test_daemon_killed():
    """Work goes on, is found again, and ends as it would have."""
    with node() as n:
        jobs = {n.submit('chat', 'sh', '-c', 'sleep 6; exit 5'): 5,
                n.submit('lab', 'sh', '-c', 'sleep 6; exit 6', milli=250): 6,
                n.submit('train', 'sh', '-c', 'exit 4'): 4}
        long = n.submit('chat', 'sleep', '600')
        n.active(long)
        for _ in range(3):
            n.again()
        for j, status in jobs.items():
            same((n.wait(j)['end'], n.job(j)['job']['status'], len(n.leases_of(j))), ('exited', status, 1))
        lease = n.active(long)
        n.kill()
        keeper = pathlib.Path(n.state, 'leases', lease[1:])
        # It ends while nobody looks.
        for pid in n.processes('sleep'):
            os.kill(pid, signal.SIGTERM)
        until((keeper / 'end.json').exists)
        n.start()
        same((n.wait(long)['end'], n.job(long)['job']['signal']), ('killed', 15))
        finished(n)


def test_reboot():
    with node() as n:
        comes_back = n.submit('nightly', 'sleep', '600', can_requeue=True)
        once = n.submit('chat', 'sleep', '600')
        share = n.submit('lab', 'sleep', '600', milli=250)
        before = n.active(comes_back)
        for j in (once, share):
            n.active(j)
        n.reboot()
        n.start()
        same([n.wait(j)['end'] for j in (once, share)], ['lost', 'lost'])
        after = n.active(comes_back)
        assert after != before, after
        n.wait_lease(before, 'released')
        n.post(f'/v1/jobs/{comes_back}/cancel')
        finished(n)


def test_keeper_and_work_killed():
    with node() as n:
        comes_back = n.submit('lab', 'sleep', '600', milli=250, can_requeue=True)
        once = n.submit('chat', 'sleep', '600')
        first = n.active(comes_back)
        n.active(once)
        for pid in n.processes('bulkhead-keeper'):
            with contextlib.suppress(ProcessLookupError):  # a child that had its keeper's name until a moment ago
                os.kill(pid, signal.SIGKILL)
        same(n.wait(once)['end'], 'lost')
        assert n.active(comes_back) != first
        n.post(f'/v1/jobs/{comes_back}/cancel')
        finished(n)


def test_silicon_that_does_not_clear():
    """A driver that leaves memory as it was: the test with canaries finds it, and nothing is given away."""
    with node(serve=False) as n:
        n.broken('scrub', 'off')
        n.spawn()
        same(n.process.wait(120), 1)
        has(n.log(), 'GPUs are not shared here')
        has(n.log(), 'BH-055')
        n.broken('mend')
        n.start()
        runs = n.submit('chat', 'sleep', '600')
        n.active(runs)
        same(n.wait(n.submit('lab', 'true', milli=250))['status'], 0)
        # The same on a machine where work runs: it goes on and is cleared up after, and nobody gets anything new.
        n.kill(signal.SIGTERM)
        n.broken('scrub', 'off')
        n.start()
        has(n.log(), 'BH-055')
        same(n.state_of(runs), 'running')
        r = n.post('/v1/jobs', {'tenant': 'chat', 'argv': ['true']})
        assert 400 <= r.status < 500, repr(r)
        assert n.post(f'/v1/jobs/{runs}/cancel').ok
        same(n.wait(runs)['end'], 'cancelled')
        n.kill(signal.SIGTERM)
        n.broken('mend')
        n.start()
        same(n.wait(n.submit('lab', 'true', milli=250))['status'], 0)
        finished(n)


SCRUBBER = '''#!/bin/sh
exec REAL "$@" $(test "$1" = scrub && test -e HERE/skip && echo --without-overwriting)
'''


def other_scrubber(n):
    """The same daemon beside a scrubber that can be told not to overwrite: it takes the one that stands beside it."""
    built = pathlib.Path(lab.DAEMON).parent.parent
    os.makedirs('other/node')
    os.makedirs('other/scrub')
    for name in ('keeper', 'warden', 'governor', 'oci', 'store'):
        os.symlink(built / name, f'other/{name}')
    shutil.copy(lab.DAEMON, 'other/node/bulkheadd')
    write('other/scrub/bulkhead-scrub', SCRUBBER.replace('REAL', str(built / 'scrub/bulkhead-scrub')).replace('HERE', n.here))
    os.chmod('other/scrub/bulkhead-scrub', 0o755)
    n.program = os.path.abspath('other/node/bulkheadd')


def test_quarantine_and_the_way_back():
    with node(serve=False) as n:
        other_scrubber(n)
        n.start()
        write('skip', '')
        dirty = n.submit('chat', 'true')
        same(n.wait(dirty)['status'], 0)
        lease = n.wait_lease(n.leases_of(dirty)[0], 'quarantined')
        gpu = lease['slices'][0]['gpu']
        same([s['verdict'] for s in lease['scrubs']], ['found'])
        assert n.audit(event='quarantine.set') and n.audit(event='scrub.fail')
        os.unlink('skip')
        # Three cards are left for four: one waits, and nobody gets the fourth, restart or not.
        jobs = [n.submit('train', 'sleep', '600', can_requeue=True) for _ in range(4)]
        until(lambda: sum(n.state_of(j) == 'running' for j in jobs) == 3, 120)
        n.again()
        time.sleep(2)
        same(sorted(n.state_of(j) for j in jobs), ['running'] * 3 + ['waiting'])
        same(n.rows('SELECT count(*) n FROM grants WHERE gpu = ?', gpu)[0]['n'], 1)
        until(lambda: next(g for g in n.get('/v1/gpus').json['gpus'] if g['uuid'] == gpu)['state'] == 'quarantined', 90)
        n.sound()
        # The way back is to look again, and it is taken in the same way.
        write('skip', '')
        assert n.post(f'/v1/gpus/{gpu}/uncordon', {'reason': 'looked at'}).ok
        until(lambda: len(n.lease(lease['lease']['id'])['scrubs']) == 2 and
              n.lease(lease['lease']['id'])['lease']['state'] == 'quarantined', 60)
        os.unlink('skip')
        assert n.post(f'/v1/gpus/{gpu}/uncordon', {'reason': 'reset'}).ok
        n.wait_lease(lease['lease']['id'], 'released')
        until(lambda: all(n.state_of(j) == 'running' for j in jobs), 60)
        same(len(n.audit(event='quarantine.clear')), 1)
        for j in jobs:
            n.post(f'/v1/jobs/{j}/cancel')
        finished(n)


def test_one_daemon():
    with node() as n:
        done = subprocess.run([lab.DAEMON], capture_output=True, text=True, check=False, env=n.env, timeout=120)
        same(done.returncode, 7, done.stderr)
        same(len(done.stderr.splitlines()), 1, done.stderr)
        assert n.get('/v1/health').ok
        finished(n)


def test_same_key_once():
    with node() as n:
        jobs = {n.submit('chat', 'true', headers={'Idempotency-Key': 'k1'}) for _ in range(3)}
        same(len(jobs), 1)
        n.again()
        same(n.submit('chat', 'true', headers={'Idempotency-Key': 'k1'}), jobs.pop())
        finished(n)


def test_words():
    for args, rc in ((['--nonsense'], 2), (['one'], 2)):
        done = subprocess.run([lab.DAEMON, *args], capture_output=True, text=True, check=False, env=environment(), timeout=60)
        same(done.returncode, rc, done.stderr)
    same(subprocess.run([lab.DAEMON, '--help'], capture_output=True, check=False, timeout=60, env=environment()).returncode, 0)
    with node(serve=False) as n:
        for text, words in (('bulkhead: 1\ntenants: nobody\n', 'line 2'), ('', 'bulkhead'),
                            (policy().replace('tenants: [lab]', 'tenants: [nobody]'), 'nobody')):
            bad = write('bad.yaml', text)
            n.policy = bad
            n.spawn()
            assert n.process.wait(120) != 0
            n.process = None
            has(n.log(), words)
            pathlib.Path('daemon.log').write_text('')
        n.policy = 'missing.yaml'
        n.spawn()
        assert n.process.wait(120) != 0
        n.process = None
        has(n.log(), 'missing.yaml')


if __name__ == '__main__':
    lab.tap.main(globals())
