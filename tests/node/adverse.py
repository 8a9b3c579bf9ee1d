# SPDX-License-Identifier: Apache-2.0
"""Something of the machine fails: whoever runs goes on, the others get theirs, and nobody gets what somebody has.

Usage: adverse.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT FAULTS
"""
import contextlib
import errno
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import socket
import sqlite3
import struct
import sys
import threading
import time

import lab
from lab import LARGE, NOBODY, has, node, policy, same, until, write

FAULTS = os.path.abspath(sys.argv[6])
READERS = 50000  # a group, and the first of its users


def write_books(n, sql):
    """As nobody but a test does: the daemon has the file."""
    db = sqlite3.connect(f'{n.state}/bulkhead.db', timeout=30)
    with contextlib.closing(db):
        db.executescript(sql)


SLOW = '''#!/bin/sh
while test -e HERE/slow; do sleep 0.1; done
exec REAL "$@"
'''


def beside(n, folder, script):
    """The same daemon beside another program, bulkhead-FOLDER: it takes the one that stands beside it."""
    built = pathlib.Path(lab.DAEMON).parent.parent
    os.makedirs('other/node')
    os.makedirs(f'other/{folder}')
    for name in {'keeper', 'scrub', 'warden', 'governor', 'oci', 'store'} - {folder}:
        os.symlink(built / name, f'other/{name}')
    shutil.copy(lab.DAEMON, 'other/node/bulkheadd')
    program = f'{folder}/bulkhead-{folder}'
    write(f'other/{program}', script.replace('REAL', str(built / program)).replace('HERE', n.here))
    os.chmod(f'other/{program}', 0o755)
    n.program = os.path.abspath('other/node/bulkheadd')


def test_a_keeper_that_comes_late():
    """Its lease is over only when nothing can begin any more, and that cannot be said while the disk takes no file."""
    with node(serve=False) as n:
        beside(n, 'keeper', SLOW)
        n.start()
        write('slow', '')
        job = n.submit('chat', 'sh', '-c', f'touch {n.here}/ran; exec sleep 600')
        until(lambda: n.job(job)['leases'], 90, n.log)
        lease = n.leases_of(job)[0]
        begun = pathlib.Path(n.state, 'leases', lease[1:], 'begun')
        until(lambda: (begun.parent / 'keeper.json').exists(), 90, n.log)
        begun.symlink_to('nowhere')  # no file of that name can be made
        assert n.post(f'/v1/jobs/{job}/cancel').ok
        until(lambda: 'not known whether it is kept' in n.log(), 90, n.log)
        time.sleep(2.5)
        assert n.lease(lease)['lease']['state'] in ('draining', 'failed'), n.lease(lease)
        begun.unlink()
        n.wait_lease(lease, 'released')
        same(n.wait(job)['end'], 'cancelled')
        os.unlink('slow')
        until(lambda: not n.processes('sh', 'bulkhead-keeper'), 30, lambda: [lab.cmdline(p) for p in n.processes()])
        same(os.path.exists('ran'), False, 'it began after its lease was over')
        n.nothing_left()
        n.sound()


def granted_and_held(n):
    """Of each lease that runs: what it was granted, and what its keeper was told."""
    for x in n.rows("SELECT l.id, g.kind, g.mib FROM leases l JOIN grants g ON g.lease = l.id WHERE l.state IN ('preparing', 'active')"):
        f = pathlib.Path(n.state, 'leases', str(x['id']), 'keeper.json')
        if f.exists():
            yield x, json.loads(f.read_text())


def changes_meanwhile(changed):
    """Who was granted a share is held to that share, or begins anew under the other terms."""
    with node() as n:
        assert changed != policy()
        submits = [threading.Thread(target=n.submit, args=('lab', 'sleep', '600'), kwargs={'uid': NOBODY}) for _ in range(10)]
        for t in submits:
            t.start()
        for t in submits:
            t.join()
        r = n.post('/v1/policy/apply', {'text': changed})
        assert r.ok, r
        until(lambda: not n.rows("SELECT id FROM leases WHERE state IN ('preparing', 'draining', 'scrubbing', 'failed')"), 120, n.log)
        for grant, spec in granted_and_held(n):
            same(bool(spec.get('gate')), grant['kind'] == 'share', f'{grant} {spec}')
            if grant['kind'] == 'share':
                assert spec['capBytes'] <= grant['mib'] << 20, (grant, spec)
        n.sound()


def test_a_cap_that_changes_between_grant_and_begin():
    changes_meanwhile(policy(share='14GiB'))


def test_a_mechanism_that_changes_between_grant_and_begin():
    whole = policy().replace('mechanism: fractional, backing: gate', 'mechanism: whole')
    changes_meanwhile(re.sub(r',\s*caps: \{[^}]*\}', '', whole))


def flood(path, connections):
    """Requests without waiting for answers, as somebody who has used up what it may ask for."""
    os.setuid(NOBODY)
    requests = 200 * b'GET /v1/health HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n'

    def one():
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(path)
                    eater = threading.Thread(target=lambda: all(iter(lambda: s.recv(1 << 20), b'')), daemon=True)
                    eater.start()
                    while eater.is_alive():
                        s.sendall(requests)
            except OSError:
                time.sleep(0.01)

    for _ in range(connections):
        threading.Thread(target=one, daemon=True).start()
    time.sleep(600)


def test_who_asks_without_end_stops_nobody():
    with node() as n:
        p = multiprocessing.Process(target=flood, args=(f'{n.run}/api.sock', 8), daemon=True)
        p.start()
        try:
            time.sleep(1)
            job = n.submit('lab', 'sleep', '600', milli=100, memory_mib=256)
            until(lambda: n.rows("SELECT id FROM leases WHERE job = ? AND state = 'active'", int(job[1:])), 60, n.log)
        finally:
            p.kill()
            p.join()
        n.sound()


def ask_all(path, uid, connections):
    """One question after the other on each connection, every one of them answered."""
    os.setgroups([READERS])
    os.setgid(READERS)
    os.setuid(uid)

    def one():
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException), socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                while True:
                    s.sendall(b'GET /v1/jobs?limit=1000 HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n')
                    r = http.client.HTTPResponse(s)
                    r.begin()
                    r.read()
            time.sleep(0.05)

    for _ in range(connections):
        threading.Thread(target=one, daemon=True).start()
    time.sleep(600)


def test_many_who_ask_for_much_stop_nobody():
    """The daemon has more to answer than it has time: what was granted begins all the same, and what ended is cleared."""
    with node(text=policy() + f'  - {{subject: "group:{READERS}", role: viewer}}\n') as n:
        for _ in range(300):
            n.submit('lab', 'sleep', '600')
        crowd = [multiprocessing.Process(target=ask_all, args=(f'{n.run}/api.sock', READERS + i, 60), daemon=True) for i in range(3)]
        for p in crowd:
            p.start()
        try:
            time.sleep(2)
            r = n.ask('POST', '/v1/jobs', {'tenant': 'chat', 'argv': ['true']}, timeout=100)
            assert r.ok, r
            until(lambda: n.rows("SELECT id FROM leases WHERE job = ? AND state = 'released'", int(r.json['id'][1:])), 60, n.log)
        finally:
            for p in crowd:
                p.kill()
                p.join()
        n.sound()


def test_no_descriptor_is_no_verdict():
    """The daemon cannot open a file: what runs goes on, what ended has ended as it did."""
    with node(serve=False) as n:
        was = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, was[1]))
        try:
            n.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, was)
        same(resource.prlimit(n.process.pid, resource.RLIMIT_NOFILE), (was[1], was[1]), 'it takes all that it may have')
        job = n.submit('chat', 'sh', '-c', f'while ! test -e {n.here}/go; do sleep 0.1; done; exit 7', can_requeue=True)
        other = n.submit('train', 'sleep', '600')
        lease, stays = n.active(job), n.active(other)
        resource.prlimit(n.process.pid, resource.RLIMIT_NOFILE, (3, was[1]))
        write('go', '')
        until(lambda: 'not known whether it is kept' in n.log(), 90, n.log)
        time.sleep(1.5)
        resource.prlimit(n.process.pid, resource.RLIMIT_NOFILE, was)
        ended = n.wait(job)
        same((ended['end'], ended['status'], n.leases_of(job)), ('exited', 7, [lease]))
        same((n.state_of(other), n.active(other)), ('running', stays))
        n.wait_lease(lease, 'released')
        n.sound()


SCRUBBER = '''#!/bin/sh
test "$1" = canary && test -e HERE/broken && exit 1
exec REAL "$@"
'''


def test_what_runs_needs_no_tool():
    """The driver cannot be tested when the daemon starts again: no share is given, and those who have one keep it."""
    with node(serve=False) as n:
        beside(n, 'scrub', SCRUBBER)
        n.start()
        runs = n.submit('lab', 'sleep', '600', uid=NOBODY, milli=250, memory_mib=1024)
        waits = [n.submit('lab', 'sleep', '600', uid=NOBODY, milli=250, memory_mib=1024) for _ in range(4)]
        lease = n.active(runs)
        until(lambda: sum(n.state_of(j) == 'running' for j in waits) == 3, 90, n.log)
        (last,) = (j for j in waits if n.state_of(j) == 'waiting')
        n.kill()
        write('broken', '')
        write_books(n, "DELETE FROM notes WHERE key LIKE 'canary/%'")
        n.start()
        has(n.get(f'/v1/jobs/{last}/why').json['sentence'], 'cannot be set up here')
        r = n.post('/v1/jobs', {'tenant': 'lab', 'argv': ['true'], 'milli': 250, 'memory_mib': 1024}, uid=NOBODY)
        assert not r.ok and 'cannot be set up here' in r.words, r
        time.sleep(1.5)
        same((n.state_of(runs), n.active(runs), n.state_of(last)), ('running', lease, 'waiting'))
        os.unlink('broken')
        n.again()
        same((n.state_of(runs), n.active(runs)), ('running', lease))
        assert n.post(f'/v1/jobs/{runs}/cancel').ok
        n.active(last)
        n.sound()


def test_a_clock_that_is_set():
    """A year ahead and back again, also while the daemon starts: nobody pays for it, and nobody's token is lost by it."""
    year = 365 * 86400 * 1000
    with node(serve=False) as n:
        faults = pathlib.Path('faults')
        faults.write_bytes(bytes(4096))
        n.more = {'LD_PRELOAD': FAULTS, 'BULKHEAD_TEST_FAULTS': os.path.abspath(faults)}
        n.env['ASAN_OPTIONS'] = 'detect_leaks=0:verify_asan_link_order=0'

        def clock(ms):
            with open(faults, 'r+b') as f:
                f.write(struct.pack('=q', ms))
        n.start()
        token = n.post('/v1/tokens', {'subject': 'user:nobody', 'role': 'tenant-user', 'tenant': 'lab'}).json['token']

        def by_token():
            return n.get('/v1/jobs', uid=NOBODY, headers={'Authorization': f'Bearer {token}'}).status
        same(by_token(), 200)
        job = n.submit('chat', 'sleep', '600')
        lease = n.active(job)
        clock(year)
        until(lambda: 'ms ahead' in n.log(), 90, n.log)
        same(by_token(), 401, 'its time is over, as far as anybody can know')
        n.again()  # with the wrong time, and work that runs
        same((n.state_of(job), n.active(job)), ('running', lease))
        until(lambda: n.log().count('ms ahead') == 2, 90, n.log)
        clock(0)
        until(lambda: 'ms back' in n.log(), 90, n.log)
        same(by_token(), 200)
        assert abs(n.get('/v1/status').json['now_ms'] / 1000 - time.time()) < 60, n.get('/v1/status').json
        assert len(n.audit(event='time.step')) >= 2
        assert n.post(f'/v1/jobs/{job}/cancel').ok
        n.wait_lease(lease, 'released')
        n.sound()
        used = sum(u['milli_ms'] for u in n.get('/v1/usage').json['usage'])
        assert 0 < used <= (time.monotonic() - n.born) * 1000 * 1000, used


def test_shares_up_to_what_the_card_has():
    """The policy allows four of 20 GiB on a card, and a card of 80 GB has 79.6: the fourth goes to the next one."""
    with node(LARGE, policy(share='20GiB')) as n:
        room = n.get('/v1/gpus').json['gpus'][4]['memory_mib']
        assert room < 4 * 20480, 'the card is as large as its name, and nothing is shown here'
        jobs = [n.submit('lab', 'sleep', '600', uid=NOBODY, milli=250, memory_mib=20480) for _ in range(5)]
        for j in jobs[:4]:
            n.active(j)
        on = [n.lease(n.leases_of(j)[0])['lease']['gpus'][0] for j in jobs[:4]]
        assert max(on.count(g) for g in on) == 3, on
        same('could not be written' in n.log(), False, n.log())
        whole = n.submit('chat', 'sleep', '600')
        n.active(whole)
        assert n.lease(n.leases_of(whole)[0])['slices'][0]['memory_mib'] == room, n.lease(n.leases_of(whole)[0])
        n.sound()


def test_a_decision_that_cannot_be_written():
    """Its job is set aside, with words, and everybody else is served."""
    with node() as n:
        write_books(n, "CREATE TRIGGER poison BEFORE INSERT ON grants WHEN NEW.kind = 'share' "
                       "BEGIN SELECT RAISE(ABORT, 'no shares today'); END")
        bad = [n.submit('lab', 'sleep', '600', uid=NOBODY, milli=250, memory_mib=1024) for _ in range(2)]
        good = n.submit('chat', 'sleep', '600')
        n.active(good)
        until(lambda: [c for c in n.get('/v1/doctor').json['checks'] if c['layer'] == 'scheduler'], 90, n.log)
        assert n.get('/v1/health').json['health'] != 'ok'
        checks = n.get('/v1/doctor').json['checks']
        same([(c['layer'], c['state']) for c in checks if c['layer'] == 'scheduler'], [('scheduler', 'warn')], checks)
        for j in bad:
            same(n.state_of(j), 'waiting')
            has(n.get(f'/v1/jobs/{j}/why').json['sentence'], 'no shares today')
            has(n.job(j)['job']['why'], 'no shares today')
            same(len(n.audit(event='alloc.deny', object_id=j)), 1, 'once, however often it is tried')
        late = n.submit('train', 'sleep', '600')
        n.active(late)
        assert n.post(f'/v1/jobs/{bad[0]}/cancel').ok
        same(n.wait(bad[0])['end'], 'cancelled')
        # Also one that has to go, and whoever comes before it.
        write_books(n, "DROP TRIGGER poison; CREATE TRIGGER poison BEFORE UPDATE OF state ON leases WHEN NEW.cause = 'evict' "
                       "BEGIN SELECT RAISE(ABORT, 'nobody goes today'); END")
        n.again()
        n.active(bad[1])
        same([c for c in n.get('/v1/doctor').json['checks'] if c['layer'] == 'scheduler'], [])
        low = [n.submit('nightly', 'sleep', '600', can_requeue=True) for _ in range(2)]
        for j in low:
            n.active(j)
        high = n.submit('chat', 'sleep', '600')
        until(lambda: 'nobody goes today' in n.log(), 90, n.log)
        same(n.state_of(high), 'waiting')
        share = n.submit('lab', 'true', uid=NOBODY, milli=250, memory_mib=1024)
        same(n.wait(share)['status'], 0)
        write_books(n, 'DROP TRIGGER poison')
        n.again()
        n.active(high)
        n.sound()


def test_a_store_that_cannot_be_asked_is_no_wrong_token():
    """Who shows a good token meanwhile is asked to come again: not turned away, not counted, not written down as a stranger."""
    with node() as n:
        token = n.post('/v1/tokens', {'subject': 'user:nobody', 'role': 'tenant-user', 'tenant': 'lab'}).json['token']

        def by_token():
            return n.get('/v1/jobs', headers={'Authorization': f'Bearer {token}'})
        write_books(n, 'ALTER TABLE tokens RENAME TO hidden')
        answers = [by_token() for _ in range(30)]
        same({r.status for r in answers}, {503}, answers[0])
        same(answers[0].headers['Retry-After'], '1')
        write_books(n, 'ALTER TABLE hidden RENAME TO tokens')
        same(by_token().status, 200)
        same(n.audit(event='auth.failure') + n.audit(event='auth.lockout'), [])


def test_who_came_in_while_nothing_could_be_written():
    """They may look; what they are seen to have done is in the log as soon as it takes anything, once. Nothing is done for them before."""
    with node(of=lab.FrailNode(FAULTS)) as n:
        token = n.post('/v1/tokens', {'subject': 'user:nobody', 'role': 'tenant-user', 'tenant': 'lab'}).json['token']
        wrong = 'bh_' + '0' * 64
        n.set_faults(permille=1000, error=errno.ENOSPC)
        same(n.get('/v1/jobs', uid=NOBODY).status, 200)
        same(n.get('/v1/jobs', headers={'Authorization': f'Bearer {token}'}).status, 200)
        same(n.get('/v1/jobs', headers={'Authorization': f'Bearer {wrong}'}).status, 401)
        refused = n.post('/v1/jobs', {'tenant': 'lab', 'argv': ['true'], 'milli': 250, 'memory_mib': 1 << 20}, uid=NOBODY)
        same(refused.status, 422, refused)
        same(n.log().count('is not recorded yet'), 1, n.log())  # however many there are
        r = n.post('/v1/jobs', {'tenant': 'lab', 'argv': ['true'], 'milli': 250, 'memory_mib': 1024}, uid=NOBODY)
        assert r.status >= 500, r
        n.set_faults()

        def came_in():
            return n.audit(event='auth.success', who='user:nobody')
        until(lambda: len(came_in()) == 2, 60, n.log)
        until(lambda: n.post('/v1/jobs', {'tenant': 'lab', 'argv': ['true'], 'milli': 250, 'memory_mib': 1024}, uid=NOBODY).ok, 60, n.log)
        same([r['object_id'] for r in came_in()], [None, 'T1'], 'each once')
        same((len(n.audit(event='auth.failure')), len(n.audit(event='alloc.deny'))), (1, 1))
        has(n.log(), 'the log takes records again: 3 more had to wait')
        n.sound()


if __name__ == '__main__':
    lab.tap.main(globals())
