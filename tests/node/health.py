# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with the silicon, and what the daemon does about it by itself. The cards are simulated, and so are their faults.

Usage: health.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT [TEST...]
"""
import contextlib
import errno
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import lab
from lab import LARGE, NOBODY, has, node, policy, same, until

FAULTS, TENANT = (os.path.abspath(a) for a in sys.argv[6:8])


def gpu(n, index, **kw):
    return n.get(f'/v1/gpus/{index}', **kw).json


def gpu_of(n, lease):
    """The index of the card on which a lease is."""
    uuid = n.lease(lease)['slices'][0]['gpu']
    return next(g['index'] for g in n.get('/v1/gpus').json['gpus'] if g['uuid'] == uuid)


def command(n, *words, status=0, **more):
    done = subprocess.run([lab.BIN, *words], capture_output=True, text=True, check=False, timeout=60, env={**n.env, **more})
    same(done.returncode, done.returncode if status is None else status, f'{words}: {done.stdout}{done.stderr}')
    return done.stdout + done.stderr


class Listener:
    """A stream of changes, as root hears them."""

    def __init__(self, n):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(f'{n.run}/api.sock')
        self.s.settimeout(60)
        self.s.sendall(b'GET /v1/events HTTP/1.1\r\nHost: bulkhead\r\n\r\n')
        self.text = b''

    def hears(self, *parts):
        while not all(p.encode() in self.text for p in parts):
            more = self.s.recv(65536)
            assert more, self.text
            self.text += more


def kernel_says(n, index, number, pid):
    """A line of the kernel's log, as the driver writes them."""
    pci = gpu(n, index)['pci'].rsplit('.', 1)[0]
    log = pathlib.Path(n.env['BULKHEAD_SYSROOT'], 'dev/kmsg')
    with log.open('a', encoding='ascii') as f:
        f.write(f'4,1,1,-;NVRM: Xid (PCI:{pci}): {number}, pid={pid}, name=python, Ch 00000008\n')


def pid_in(n, lease):
    """A process of the lease's, once there is one."""
    found = []

    def look():
        folders = [f for f in n.cgroups() if f.endswith(f'/{lease}')]
        found[:] = [int(p) for f in folders for p in pathlib.Path(f, 'cgroup.procs').read_text().split()]
        return found
    until(look, 90, n.log)
    return found[0]


def test_a_tenants_own_fault_ends_its_lease_alone():
    """Two on one card: who did it ends and is told; the other hears nothing and goes on."""
    with node(serve=False) as n:
        folder = pathlib.Path(n.env['BULKHEAD_SYSROOT'], 'dev')
        folder.mkdir(exist_ok=True)
        (folder / 'kmsg').write_text('')
        n.start()
        bad, good = (n.submit('lab', 'sleep', '600', milli=250, memory_mib=1024, can_requeue=True, uid=NOBODY) for _ in range(2))
        lease, beside = n.active(bad), n.active(good)
        at = gpu_of(n, lease)
        same(gpu_of(n, beside), at, 'both are on one card')
        # Nobody can tell whose it was: nobody ends.
        n.broken('gpu', str(at), 'xid', '13')
        until(lambda: n.audit(event='gpu.xid'), 60, n.log)
        has(n.audit(event='gpu.xid')[0]['reason'], 'whose of the 2 leases there it was is not known')
        same((n.active(bad), n.active(good)), (lease, beside))
        kernel_says(n, at, 31, pid_in(n, lease))
        n.broken('gpu', str(at), 'xid', '31')
        job = n.wait(bad)
        same(job['end'], 'failed', job)  # not again, though it may be: it would do the same
        has(job['why'], "Xid 31 on its GPU: a kernel touched an address that is not mapped (the application's fault)")
        history = n.lease(lease)['history']
        same([(h['to'], h['cause']) for h in history if h['to'] == 'draining'], [('draining', 'fault')])
        record = n.audit(event='gpu.xid')[1]
        same((record['tenant'], record['before'], record['after']), ('lab', 'ok', 'ok'))
        has(record['reason'], f'of {lease}')
        # The card is as it was, and so is who is beside.
        same((gpu(n, at)['state'], gpu(n, at)['reason']), ('ok', None))
        same(n.active(good), beside)
        # What only follows from an end is no fault: written down, once a minute.
        for _ in range(3):
            n.broken('gpu', str(at), 'xid', '45')
        until(lambda: n.audit(event='gpu.xid')[2:], 60, n.log)
        same(len(n.audit(event='gpu.xid')), 3)
        n.post(f'/v1/jobs/{good}/cancel')
        n.quiet()
        n.nothing_left()
        n.sound()


def test_a_fault_of_the_card_ends_all_who_are_on_it():
    with node() as n:
        share = {'milli': 250, 'memory_mib': 1024}
        one, again = n.submit('lab', 'sleep', '600', **share), n.submit('lab', 'sleep', '600', can_requeue=True, **share)
        fill = [n.submit('lab', 'sleep', '600', **share) for _ in range(2)]
        fifth = n.submit('lab', 'sleep', '600', **share)
        at = gpu_of(n, n.active(one))
        same({gpu_of(n, n.active(j)) for j in (again, *fill)}, {at})
        there = gpu_of(n, n.active(fifth))
        listener = Listener(n)
        assert there != at
        n.broken('gpu', str(at), 'ecc', '2')
        until(lambda: gpu(n, at)['state'] == 'quarantined', 60, lambda: gpu(n, at))
        reason = gpu(n, at)['reason']
        has(reason, 'memory error that ECC could not correct')
        has(reason, f'bulkhead resume {at}')
        same(n.audit(event='gpu.ecc')[0]['after'], 'bad')
        listener.hears('event: gpu', '"quarantined"', 'event: health', '"bad"')
        # Who may begin again does, elsewhere. Who may not has failed.
        until(lambda: len(n.leases_of(again)) == 2, 60, lambda: n.job(again))
        assert gpu_of(n, n.active(again)) != at
        same([n.wait(j)['end'] for j in (one, *fill)], ['failed'] * 3)
        has(n.job(one)['job']['why'], 'memory error that ECC could not correct')
        same(n.state_of(fifth), 'running', 'who is elsewhere')
        n.broken('gpu', str(there), 'xid', '95')
        same(n.wait(fifth)['end'], 'failed')
        has(n.job(fifth)['job']['why'], 'memory error that may have hit everybody on the GPU')
        # It stays so, also through a restart, until somebody has mended it.
        n.again()
        same([gpu(n, i)['state'] for i in (at, there)], ['quarantined', 'quarantined'])
        refused = n.post(f'/v1/gpus/{at}/uncordon')
        assert not refused.ok, refused
        has(refused.words, f'GPU {at} is still not well: 2 uncorrected memory errors')
        checks = n.get('/v1/doctor').json
        same(checks['health'], 'bad')
        has(json.dumps(checks['checks']), f'bulkhead resume {at}')
        n.broken('mend')
        for i in (at, there):
            command(n, 'resume', str(i))
            same(gpu(n, i)['state'], 'ok')
        n.post(f'/v1/jobs/{again}/cancel')
        n.quiet()
        n.nothing_left()
        n.sound()


def test_a_card_that_is_worn_or_not_as_it_was_takes_nobody_new():
    """Who is there goes on. What was found is said with the command that accepts it."""
    with node(LARGE) as n:
        share = {'milli': 250, 'memory_mib': 1024}
        job = n.submit('lab', 'sleep', '600', **share)
        lease = n.active(job)
        at, uuid = gpu_of(n, lease), gpu(n, 2)['uuid']
        same(gpu(n, 2)['fabric'], 'nvl-0')
        n.broken('gpu', str(at), 'xid', '74')
        until(lambda: gpu(n, at)['state'] == 'cordoned', 60, lambda: gpu(n, at))
        has(gpu(n, at)['reason'], 'an NVLink failed')
        same(len(n.audit(event='gpu.nvlink')), 1)
        assert gpu_of(n, n.active(n.submit('lab', 'sleep', '600', **share))) != at, 'a worn card was given away'
        # Lost: the driver says so by itself. The others show in the next look: heat, and a link less.
        n.broken('gpu', '7', 'lost')
        n.broken('gpu', '6', 'throttle', 'hot')
        n.broken('gpu', '2', 'link', '3', 'down')
        until(lambda: gpu(n, 7)['state'] in ('lost', 'quarantined'), 60, lambda: gpu(n, 7))
        has(gpu(n, 7)['reason'], 'fell off the bus')
        until(lambda: gpu(n, 6)['health'] == 'slowed down: too hot', 60, lambda: gpu(n, 6))
        until(lambda: gpu(n, 2)['state'] == 'cordoned', 60, lambda: gpu(n, 2))
        has(gpu(n, 2)['reason'], 'it is not as it was: links to other GPUs is 17, was 18; accept that with: bulkhead resume 2')
        same([(r['object_id'], r['after']) for r in n.audit(event='version.drift')], [(uuid, 'suspect')])
        # Later looks do not ask where links lead: nobody is taken to be somewhere else for that.
        fabrics = [x.split() for x in n.get('/metrics').body.decode().splitlines() if x.startswith('bulkhead_gpu_fabric_mismatch{')]
        same({value for _, value in fabrics}, {'0'}, fabrics)
        command(n, 'resume', '2')
        same(gpu(n, 2)['state'], 'ok')
        # That is how it should be now: the other way is a difference. And another driver is nobody's friend yet.
        n.broken('mend')
        n.broken('driver', '580.95.05')
        until(lambda: gpu(n, 2)['state'] == gpu(n, 0)['state'] == 'cordoned', 60, lambda: n.get('/v1/gpus').json)
        has(gpu(n, 0)['reason'], 'the driver was changed to 580.95.05 while the daemon ran on 580.159.04: restart bulkheadd')
        same(n.active(job), lease)
        waits = n.submit('lab', 'true', **share)
        # The next daemon tests the driver with canaries again, and says what it lacks.
        same(len(n.rows("SELECT key FROM notes WHERE key LIKE 'canary/%'")), 1)
        n.again()
        same([r['after'] for r in n.audit(event='driver.change')], ['580.95.05'])
        has(n.audit(event='driver.change')[0]['reason'], 'all are fixed in 580.159.03')
        same(len(n.rows("SELECT key FROM notes WHERE key LIKE 'canary/%'")), 2)
        same(gpu(n, 0)['state'], 'ok')
        has(gpu(n, 2)['reason'], 'is 18, was 17')
        same(n.wait(waits)['status'], 0)
        same(n.active(job), lease)
        checks = [c for c in n.get('/v1/doctor').json['checks'] if c['layer'] == 'driver' and c['state'] != 'ok']
        same([c['state'] for c in checks], ['warn'])
        has(checks[0]['sentence'], ' days')


def test_firmware_of_switches():
    """It is shown, planned for, and its change is in the log, once, also where no daemon looked meanwhile."""
    with node(LARGE) as n:
        folder = pathlib.Path(n.env['BULKHEAD_SYSROOT'], 'proc/driver/nvidia-nvswitch/devices')
        was = '96.10.57.00.01'
        switches = n.get('/v1/gpus').json['switches']
        same(switches, [{'pci': f'0000:f{i}:00.0', 'firmware': was} for i in range(4)])
        same(n.get('/v1/gpus', uid=NOBODY).json['switches'], [], 'a tenant is not told')
        same(json.loads(command(n, 'gpus', '-o', 'json'))['switches'], switches)
        plan = json.loads(command(n, 'upgrade', 'plan', '--firmware', 'nvswitch=96.10.6d.00.01', '-o', 'json'))
        same((plan['from'], plan['to']), (was, '96.10.6d.00.01'))
        (folder / '0000:f1:00.0/information').write_text('BIOS Version: 96.10.6d.00.01\n')
        (folder / '0000:f2:00.0/information').write_text('BIOS Version: N/A\n')
        until(lambda: n.audit(event='firmware.change'), 90, n.log)
        n.kill()
        (folder / '0000:f2:00.0/information').write_text('BIOS Version: 96.10.6d.00.01\n')
        n.start()
        rows = [(r['object_type'], r['object_id'], r['before'], r['after']) for r in n.audit(event='firmware.change')]
        same(rows, [('nvswitch', f'0000:f{i}:00.0', was, '96.10.6d.00.01') for i in (1, 2)])
        same([s['firmware'] for s in n.get('/v1/gpus').json['switches']], [was, '96.10.6d.00.01', '96.10.6d.00.01', was])
        same(json.loads(command(n, 'upgrade', 'plan', '--firmware', 'nvswitch', '-o', 'json'))['from'], None)
        checks = json.loads(command(n, 'doctor', '-o', 'json', status=None))
        has(json.dumps(checks), 'NVSwitch 0000:f1:00.0: its firmware is not that of the others')
        n.sound()


def on_card(n, index):
    """Bytes of its memory that are in use, as the driver says."""
    return json.loads(command(n, 'gpus', '-o', 'json'))['gpus'][index]['usedBytes']


SLEEPY = policy().replace('  - {name: lab, class: research,', '  - {name: lab, class: research, idle: {sleepAfter: 2s},')


def idler(n, gib=2):
    """Work of a tenant that agreed to sleep: holds so much, idle until there is a file `now`, works until there is one `enough`. Its job and lease."""
    work = (f'{TENANT} hold {gib}GiB 600 & while ! test -e {n.here}/now; do sleep 0.5; done; '
            f'while ! test -e {n.here}/enough; do :; done; wait')
    job = n.submit('lab', '/bin/sh', '-c', work, milli=250, memory_mib=4096, env=['ASAN_OPTIONS=detect_leaks=0'])
    lease = n.active(job)
    until(lambda: on_card(n, gpu_of(n, lease)) > gib << 30, 60, lambda: f"{n.get(f'/v1/jobs/{job}/logs').body} {n.log()}")
    return job, lease


def test_who_is_idle_sleeps_and_wakes():
    """By itself where its tenant agreed to it, and by order."""
    with node(text=SLEEPY) as n:
        job, lease = idler(n)
        at = gpu_of(n, lease)
        until(lambda: n.lease(lease)['lease']['paused'], 60, n.log)
        until(lambda: on_card(n, at) < 1 << 30, 60, n.log)
        record = n.audit(event='job.suspend')
        same([(r['who'], r['object_id']) for r in record], [('service:bulkheadd', lease)])
        has(record[0]['reason'], 'the time its tenant agreed to')
        same(n.lease(lease)['lease']['state'], 'active', 'its place stays its own')
        # The next daemon knows that it sleeps, and why; its work begins again, and so it wakes.
        n.again()
        pathlib.Path(n.here, 'now').touch()
        until(lambda: not n.lease(lease)['lease']['paused'], 60, n.log)
        until(lambda: on_card(n, at) > 2 << 30, 60, n.log)
        same([r['reason'] for r in n.audit(event='job.resume')], ['it is used again'])
        pathlib.Path(n.here, 'enough').touch()
        # Who ends while it sleeps leaves nothing behind.
        until(lambda: n.lease(lease)['lease']['paused'], 120, n.log)
        n.post(f'/v1/jobs/{job}/cancel')
        same(n.wait(job)['end'], 'cancelled')
        until(lambda: not n.rows("SELECT key FROM notes WHERE key LIKE 'sleep/%'"), 60, n.log)
        n.nothing_left()
        n.sound()


def test_suspended_by_order():
    with node() as n:
        share = {'milli': 250, 'memory_mib': 4096, 'env': ['ASAN_OPTIONS=detect_leaks=0']}
        job = n.submit('lab', TENANT, 'hold', '2GiB', '600', **share)
        lease = n.active(job)
        at = gpu_of(n, lease)
        until(lambda: on_card(n, at) > 2 << 30, 60, lambda: n.get(f'/v1/jobs/{job}/logs').body)
        command(n, 'suspend', lease)
        assert on_card(n, at) < 1 << 30
        same(n.lease(lease)['lease']['paused'], True)
        command(n, 'resume', lease)
        assert on_card(n, at) > 2 << 30
        same(n.lease(lease)['lease']['paused'], False)
        same([len(n.audit(event=e)) for e in ('job.suspend', 'job.resume')], [1, 1])
        # Nothing on a GPU: nothing to suspend, and that is said.
        idle = n.submit('lab', 'sleep', '600', **share)
        at = f'/v1/leases/{n.active(idle)}/suspend'
        until(lambda: 'no lease' not in n.post(at).words, 60, n.log)  # it comes to the governor a moment after it began
        refused = n.post(at)
        assert not refused.ok, refused
        has(refused.words, 'nothing on a GPU')
        has(n.audit(event='job.suspend', outcome='failure')[-1]['reason'], 'nothing on a GPU')
        whole = n.submit('train', 'sleep', '600')
        refused = n.post(f'/v1/leases/{n.active(whole)}/suspend')
        has(refused.words, 'has its GPU to itself')


def share_of(n, lease):
    """As the governor says, not the books; None: it does not know it."""
    rows = json.loads(command(n, 'shares', '-o', 'json'))['shares']
    return next((r['state'] for r in rows if r['name'] == lease), None)


def is_held(n, lease):
    state = share_of(n, lease)
    assert state is not None
    return state == 'paused'


def on_a_card(n):
    job = n.submit('lab', TENANT, 'hold', '1GiB', '600', milli=250, memory_mib=4096, env=['ASAN_OPTIONS=detect_leaks=0'])
    lease = n.active(job)
    until(lambda: on_card(n, gpu_of(n, lease)) > 1 << 30, 60, n.log)
    return lease


def recorded(n):
    return [(r['event'], r['outcome']) for r in n.audit() if r['event'] in ('job.pause', 'job.resume')]


def test_paused_when_it_is_written():
    """Nobody is held without a record of who wanted it, whatever the disk does; what is ordered is done, and is in the books."""
    with node(of=lab.FrailNode(FAULTS)) as n:
        lease = on_a_card(n)
        n.set_faults(permille=1000, error=errno.ENOSPC)
        r = n.post(f'/v1/leases/{lease}/pause')
        n.set_faults()
        assert r.status >= 500, r
        same((is_held(n, lease), n.lease(lease)['lease']['paused'], recorded(n)), (False, False, []))
        until(lambda: n.post(f'/v1/leases/{lease}/pause').ok, 60, n.log)
        same((is_held(n, lease), n.lease(lease)['lease']['paused'], recorded(n)), (True, True, [('job.pause', 'success')]))
        assert n.post(f'/v1/leases/{lease}/resume').ok
        same((is_held(n, lease), n.lease(lease)['lease']['paused']), (False, False))
        same(n.rows("SELECT key FROM notes WHERE key LIKE 'order/%'"), [])
        # One that has its card to itself: refused, and nothing was ordered.
        whole = n.active(n.submit('train', 'sleep', '600'))
        same(n.post(f'/v1/leases/{whole}/pause').status, 422)
        same(len(recorded(n)), 2)
        n.sound()


def test_an_order_outlives_the_daemon():
    """It is written, and the governor has not heard of it: the next daemon carries it out."""
    with node() as n:
        lease = on_a_card(n)
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGSTOP)
        try:
            def ask():
                with contextlib.suppress(OSError, http.client.HTTPException):  # it will not be answered
                    n.post(f'/v1/leases/{lease}/pause')
            asks = threading.Thread(target=ask)
            asks.start()
            until(lambda: n.rows("SELECT key FROM notes WHERE key LIKE 'order/%'"), 60, n.log)
            os.kill(n.process.pid, signal.SIGSTOP)  # else it may see its worker die, and write that the order failed
            for worker in n.processes('bulkheadd'):
                if worker != n.process.pid:
                    os.kill(worker, signal.SIGKILL)
            n.kill()
            asks.join()
        finally:
            os.kill(governor, signal.SIGCONT)
        n.start()
        until(lambda: n.lease(lease)['lease']['paused'], 60, n.log)
        same((is_held(n, lease), recorded(n)), (True, [('job.pause', 'success')]))
        same(n.rows("SELECT key FROM notes WHERE key LIKE 'order/%'"), [])
        n.sound()


def test_an_order_that_fails_is_written():
    with node() as n:
        lease = on_a_card(n)
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGSTOP)
        try:
            r = n.post(f'/v1/leases/{lease}/pause')
        finally:
            os.kill(governor, signal.SIGCONT)
        same(r.status, 503, r)
        has(r.words, 'the order stands')
        until(lambda: n.lease(lease)['lease']['paused'], 60, n.log)
        same((is_held(n, lease), recorded(n)), (True, [('job.pause', 'success'), ('job.pause', 'failure')]))
        n.sound()


def share_of(n, lease):
    """What the governor says of it; None: it does not know it."""
    rows = json.loads(command(n, 'shares', '-o', 'json', status=None) or '{}').get('shares', [])
    return next((r['state'] for r in rows if r['name'] == lease), None)


def moves_of(n, lease):
    return [(r['event'], r['who'], r['outcome']) for r in n.audit() if r['object_id'] == lease and r['event'] in ('job.suspend', 'job.resume')]


def test_resume_goes_by_the_books():
    """Who is suspended wakes when it is resumed, whether the governor answers or has forgotten; it is never only let run."""
    with node() as n:
        lease = on_a_card(n)
        at = gpu_of(n, lease)
        for _ in range(2):  # one who sleeps may be told to again
            assert n.post(f'/v1/leases/{lease}/suspend').ok
            assert on_card(n, at) < 1 << 30
        # One that does not answer in time, and then does.
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGSTOP)
        late = threading.Timer(5.6, os.kill, (governor, signal.SIGCONT))
        late.start()
        try:
            r = n.post(f'/v1/leases/{lease}/resume')
        finally:
            late.join()
        same(r.ok, on_card(n, at) > 1 << 30, r)
        same(n.lease(lease)['lease']['paused'], not r.ok, 'the books say what is')
        until(lambda: n.post(f'/v1/leases/{lease}/resume').ok, 60, n.log)
        assert on_card(n, at) > 1 << 30
        same((n.lease(lease)['lease']['paused'], share_of(n, lease)), (False, 'idle'))
        same(n.rows("SELECT key FROM notes WHERE key LIKE 'sleep/%' OR key LIKE 'order/%'"), [])
        # One that began anew and knows of no suspension.
        r = n.post(f'/v1/leases/{lease}/suspend')
        assert r.ok, r
        os.kill(governor, signal.SIGKILL)
        until(lambda: share_of(n, lease) not in (None, 'suspended'), 60, n.log)
        assert on_card(n, at) < 1 << 30
        until(lambda: n.post(f'/v1/leases/{lease}/resume').ok, 60, n.log)
        assert on_card(n, at) > 1 << 30
        same(n.lease(lease)['lease']['paused'], False)
        n.sound()


def test_sleep_outlives_the_daemon():
    """What the daemon does by itself is written before it is done: whoever is put to sleep is known to sleep, and wakes when it is used."""
    with node(text=SLEEPY) as n:
        _, lease = idler(n)
        at = gpu_of(n, lease)
        # It dies when it has begun and has not heard what came of it.
        def stopped_halfway():
            os.kill(n.process.pid, signal.SIGSTOP)
            with contextlib.suppress(AssertionError):
                if len(n.processes('bulkheadd')) > 1:  # of its workers, this one
                    until(lambda: share_of(n, lease) == 'suspended', 5)
            if share_of(n, lease) == 'suspended':
                return True
            os.kill(n.process.pid, signal.SIGCONT)
            return False
        until(stopped_halfway, 60, n.log)
        same(n.rows('SELECT paused FROM leases')[0]['paused'], 0, 'it was to be halfway')
        n.kill()
        n.start()
        until(lambda: n.lease(lease)['lease']['paused'], 60, n.log)
        assert on_card(n, at) < 1 << 30
        same(n.rows("SELECT key FROM notes WHERE key LIKE 'order/%'"), [])
        same(moves_of(n, lease), [('job.suspend', 'service:bulkheadd', 'success')])
        # The governor dies as well, and the next one knows nothing of it.
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGKILL)
        until(lambda: share_of(n, lease), 60, n.log)
        pathlib.Path(n.here, 'now').touch()
        until(lambda: on_card(n, at) > 2 << 30, 60, n.log)
        until(lambda: not n.lease(lease)['lease']['paused'], 60, n.log)
        same(moves_of(n, lease)[-1], ('job.resume', 'service:bulkheadd', 'success'))
        n.sound()


def worked_s(n):
    """What the shells of its leases took of a processor."""
    stats = [pathlib.Path(f'/proc/{p}/stat').read_text().rpartition(')')[2].split() for p in n.processes('sh')]
    return sum(int(s[11]) for s in stats) / os.sysconf('SC_CLK_TCK')


def test_a_pause_holds_whoever_slept_in_vain():
    """It was to sleep by itself and could not; then somebody paused it. To be used does not resume it, whoever asks the books."""
    with node(text=SLEEPY) as n:
        _, lease = idler(n, 1)
        library = n.env['BULKHEAD_CUDA']
        os.rename(library, f'{library}.away')
        until(lambda: n.audit(event='job.suspend', outcome='failure'), 60, n.log)
        os.rename(f'{library}.away', library)
        until(lambda: n.post(f'/v1/leases/{lease}/pause').ok, 60, n.log)
        n.again()
        pathlib.Path(n.here, 'now').touch()
        until(lambda: worked_s(n) > 4, 120, n.log)  # the daemon looks every second
        same((is_held(n, lease), n.lease(lease)['lease']['paused'], n.audit(event='job.resume')), (True, True, []))
        assert n.post(f'/v1/leases/{lease}/resume').ok
        same((is_held(n, lease), n.lease(lease)['lease']['paused']), (False, False))
        n.sound()


def test_a_pause_outlives_the_governor():
    with node() as n:
        lease = on_a_card(n)
        assert n.post(f'/v1/leases/{lease}/pause').ok
        for _ in range(2):
            (governor,) = n.processes('bulkhead-govern')
            os.kill(governor, signal.SIGKILL)
            until(lambda: n.processes('bulkhead-govern') not in ([governor], []) and share_of(n, lease) == 'paused', 60, n.log)
            n.again()
            same(share_of(n, lease), 'paused')
        assert n.lease(lease)['lease']['paused'] and not n.audit(event='job.resume')
        assert n.post(f'/v1/leases/{lease}/resume').ok
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGKILL)
        until(lambda: n.processes('bulkhead-govern') not in ([governor], []) and share_of(n, lease), 60, n.log)
        time.sleep(8)  # longer than it takes to look
        same((is_held(n, lease), n.lease(lease)['lease']['paused']), (False, False))
        n.sound()


def test_nobody_waits_for_the_governor_in_the_loop():
    """One tenant asks again and again while it hangs: that tenant is told to wait, and all others are answered."""
    with node() as n:
        lease = on_a_card(n)
        (governor,) = n.processes('bulkhead-govern')
        answers = []

        def ask():
            r = n.post(f'/v1/leases/{lease}/resume')
            answers.append('' if r.ok else r.words)
        asks = [threading.Thread(target=ask) for _ in range(6)]
        os.kill(governor, signal.SIGSTOP)
        try:
            for a in asks:
                a.start()
            until(lambda: len(answers) >= 5, 4, n.log)  # sooner than one answer of the governor may take
            same([a for a in answers if 'is being carried out' not in a], [])
            assert n.get('/v1/health').ok
        finally:
            os.kill(governor, signal.SIGCONT)
            for a in asks:
                a.join()
        n.sound()


def test_an_order_stands_until_the_lease_is_known():
    """The governor hung, and was ended: the next one hears of the leases a moment after it begins."""
    with node() as n:
        lease = on_a_card(n)
        (governor,) = n.processes('bulkhead-govern')
        os.kill(governor, signal.SIGSTOP)
        r = n.post(f'/v1/leases/{lease}/pause')
        os.kill(governor, signal.SIGKILL)
        same(r.status, 503, r)
        has(r.words, 'the order stands')
        until(lambda: n.lease(lease)['lease']['paused'], 60, n.log)
        same((is_held(n, lease), recorded(n)), (True, [('job.pause', 'success'), ('job.pause', 'failure')]))
        same(n.rows("SELECT key FROM notes WHERE key LIKE 'order/%'"), [])
        n.sound()


def test_an_upgrade_is_planned():
    """Who may begin again leaves, whose end is known is waited for, whoever else stands in the way."""
    with node() as n:
        share = {'milli': 250, 'memory_mib': 1024}
        again = n.submit('lab', 'sleep', '600', can_requeue=True, **share)
        n.active(again)
        text = command(n, 'upgrade', 'plan', '--driver', '595.71.05')
        has(text, 'lab (1 lease)')
        has(text, f'bulkhead drain {gpu_of(n, n.active(again))}')
        has(text, 'the driver was seen to clear what it frees')
        firm, timed = n.submit('train', 'sleep', '600'), n.submit('lab', 'sleep', '600', duration_ms=3600000, **share)
        leases = {j: n.active(j) for j in (again, firm, timed)}
        plan = json.loads(command(n, 'upgrade', 'plan', '--driver', '595.71.05', '-o', 'json', status=1))
        same((plan['ready'], plan['from'], plan['to']), (False, '580.159.04', '595.71.05'))
        ways = [(s['lease'], s['way']) for s in plan['steps'] if s['step'] == 'leave']
        same(ways, [(leases[timed], 'ends'), (leases[firm], 'ask'), (leases[again], 'last')])
        same(len(plan['blockers']), 1)
        has(plan['blockers'][0], f'{leases[firm]} ({firm}) of tenant train')
        same([s['step'] for s in plan['steps'] if s['step'] in ('gate', 'change')], ['gate', 'change', 'gate'])
        # Firmware of a card is that card's affair, and the inventory has it.
        at = gpu_of(n, leases[firm])
        plan = json.loads(command(n, 'upgrade', 'plan', '--firmware', 'vbios', '--gpu', str(at), '-o', 'json', status=1))
        same([t['tenant'] for t in plan['tenants']], ['train'])
        same(plan['from'], gpu(n, at)['vbios'])
        free = next(i for i in range(4) if i != at)
        command(n, 'upgrade', 'plan', '--firmware', 'inforom', '--gpu', str(free))
        has(command(n, 'describe', str(at)), 'VBIOS')
        has(command(n, 'upgrade', 'plan', status=2), '--driver, --firmware or --kernel')
        has(command(n, 'upgrade', 'go', '--kernel', '6', status=2), 'bulkhead upgrade plan')
        # A tenant does not get to see who else is there.
        if not lab.tap.for_others(lab.BIN):
            return
        as_nobody = subprocess.run([lab.BIN, 'upgrade', 'plan', '--kernel', '6.12'], capture_output=True, text=True, check=False,
                                   timeout=60, env=n.env, user=NOBODY, group=NOBODY)
        same(as_nobody.returncode, 3, as_nobody.stderr)


if __name__ == '__main__':
    only = sys.argv[8:]
    lab.tap.main({k: v for k, v in globals().items() if not only or not k.startswith('test_') or k[5:] in only})
