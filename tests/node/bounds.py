# SPDX-License-Identifier: Apache-2.0
"""What one caller may take of the daemon, of its disk and of its time: others are served all the while.

Usage: bounds.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import lab
from lab import NOBODY, Asked, children, has, node, same, until


def caught(n, jobs):
    """A question whose child was stopped while it searched, and the child."""
    for job in jobs:
        asked = Asked(n, f'/v1/jobs/{job}/why')
        while asked.is_alive():
            for pid in children(n.process.pid, 'bulkhead-why'):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    # It may have been over at that very moment.
                    time.sleep(0.05)
                    if asked.is_alive():
                        return asked, pid
                    os.kill(pid, signal.SIGCONT)
        assert asked.answer.ok, repr(asked.answer)
    raise AssertionError('every search was over too soon')


def test_questions_hold_nobody_up():
    """Whatever a search takes, the loop goes on; one of a caller at a time; the same question is worked out once."""
    with node() as n:
        held = [n.submit('chat', 'sleep', '600') for _ in range(2)]
        for j in held:
            n.active(j)
        jobs = [n.submit('chat', 'true') for _ in range(30)]
        asked, child = caught(n, jobs[:-1])
        assert n.get('/v1/health').ok and asked.is_alive()
        other = n.get(f'/v1/jobs/{jobs[-1]}/why')
        same((other.status, other.headers['Retry-After'] is not None), (503, True), repr(other))
        has(other.words, 'of yours')
        other = n.post('/v1/what-if', {'job': jobs[-1], 'changes': [{'kind': 'end-job', 'job': held[0]}]})
        same(other.status, 503, repr(other))
        assert asked.is_alive(), 'it was answered by a process that stands still'
        os.kill(child, signal.SIGCONT)
        asked.join(60)
        same((asked.answer.status, asked.answer.json['tier']), (200, 'over quota'))
        assert asked.answer.json['remedies'], asked.answer.body
        # One that takes too long: what is known is said, and that the search was not over.
        asked, child = caught(n, jobs[:-1])
        ended = n.submit('nightly', 'true', can_requeue=True)
        same(n.wait(ended)['status'], 0)  # things are decided, and end, all the while
        asked.join(60)
        assert not asked.is_alive()
        if asked.answer.ok:  # by a process that stands still: what it had found by then, and that it was not over unless it was
            kinds = [r['kind'] for r in asked.answer.json['remedies']]
            assert kinds and ('unknown' not in kinds or kinds == ['unknown']), asked.answer.body
            if 'unknown' not in kinds:  # it stands still behind its answer, and nobody minds
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGCONT)
        else:  # it stood still before it knew anything
            same(asked.answer.status, 503, repr(asked.answer))
            has(asked.answer.words, 'not worked out')
        until(lambda: not children(n.process.pid, 'bulkhead-why'), 60)
        if_ = n.post('/v1/what-if', {'job': jobs[0], 'changes': [{'kind': 'end-job', 'job': held[0]}]}).json
        same(if_['starts'], True, if_)
        for j in held + jobs:
            n.post(f'/v1/jobs/{j}/cancel')
        n.quiet()


def test_what_was_dropped_is_told():
    """More than is kept: the end is there, and how much is not."""
    with node() as n:
        most = 70_000_000
        job = n.submit('chat', 'sh', '-c', f'yes 123456789012345 | head -c {most - 8}; echo the end')
        same(n.wait(job)['status'], 0)
        offset, read, dropped, last = 0, 0, 0, b''
        while True:
            r = n.get(f'/v1/jobs/{job}/logs?offset={offset}&limit=1048576&wait_ms=1000')
            assert r.ok, repr(r)
            offset = int(r.headers['Bulkhead-Next-Offset'])
            read += len(r.body)
            dropped += int(r.headers['Bulkhead-Dropped'] or 0)
            last = r.body or last
            if r.headers['Bulkhead-Ended'] == 'true':
                break
        same((read + dropped, offset), (most, most))
        assert 32 << 20 <= read <= 64 << 20 and dropped, (read, dropped)
        same(last[-8:], b'the end\n')
        done = subprocess.run([lab.BIN, 'logs', job], capture_output=True, check=False, timeout=60, env=n.env)
        same((done.returncode, len(done.stdout)), (0, read), done.stderr)
        has(done.stderr.decode(), f'{dropped} bytes of {job} are missing')
        n.quiet()


def folder_of(n, job):
    return pathlib.Path(n.state, 'leases', n.leases_of(job)[0][1:])


def test_what_ended_jobs_leave_goes():
    """The oldest of a tenant that has too much; that of all that is too old. It is recorded, and logs says so."""
    with node(serve=False) as n:
        n.more = {'BULKHEAD_KEEP_OUTPUT': '20MiB'}
        n.start()
        small = n.submit('train', 'echo', 'still here')
        big = []
        for _ in range(3):
            big.append(n.submit('chat', 'sh', '-c', 'echo $MINE; yes | head -c 9000000', env=['MINE=secret']))
            same(n.wait(big[-1])['status'], 0)
            n.wait_lease(n.leases_of(big[-1])[0], 'released')
        until(lambda: n.audit(event='job.prune', object_id=big[0]), 60, n.log)
        r = n.get(f'/v1/jobs/{big[0]}/logs')
        same(r.status, 404, repr(r))
        has(r.words, f'what {big[0]} wrote was removed')
        same([p.name for p in folder_of(n, big[0]).iterdir()], ['begun'], 'what keeps a late keeper from beginning')
        job = n.job(big[0])
        same((job['argv'], job['job']['status']), ([], 0), 'the row stays, without the words')
        for j in big[1:] + [small]:
            assert n.get(f'/v1/jobs/{j}/logs').body, j
        same(len(n.audit(event='job.prune')), 1)
        n.quiet()
        n.sound()
        # All that is older than it may be; the folders of keepers that cannot come any more go as a whole.
        n.kill(signal.SIGTERM)
        hours = time.time() - 7200
        for j in big[1:] + [small]:
            os.utime(pathlib.Path(n.state, 'leases', str(n.rows('SELECT id FROM leases WHERE job = ?', int(j[1:]))[0]['id'])),
                     (hours, hours))
        n.more = {'BULKHEAD_KEEP_FOR': '1s'}
        n.start()
        until(lambda: len(n.audit(event='job.prune')) == 4, 60, n.log)
        same(n.get(f'/v1/jobs/{small}/logs').status, 404)
        assert not folder_of(n, small).exists() and folder_of(n, big[0]).exists()
        n.sound()
        n.kill(signal.SIGTERM)
        n.verified()


def test_how_much_may_wait():
    """Of one user, and of one job; who is full says why, and others still come in."""
    with node(serve=False) as n:
        n.more = {'BULKHEAD_WAITING_JOBS': '40'}
        n.start()
        for i in range(4, 8):
            assert n.post(f'/v1/gpus/{i}/cordon').ok
        ask = {'tenant': 'lab', 'argv': ['true'], 'milli': 250}
        mine = []
        for _ in range(10):
            r = n.post('/v1/jobs', ask, uid=NOBODY)
            same(r.status, 201, repr(r))
            mine.append(r.json['id'])
        r = n.post('/v1/jobs', ask, uid=NOBODY)
        same((r.status, r.json['error']['code']), (409, 'quota_exceeded'), repr(r))
        has(r.words, '10 jobs of yours wait already')
        same(n.audit(event='alloc.deny'), [], 'no records of it: a loop would fill the log')
        assert n.post('/v1/jobs', ask).ok, 'an operator acts for others'
        n.submit('chat', 'true')
        assert n.post(f'/v1/jobs/{mine[0]}/cancel', uid=NOBODY).ok
        assert n.post('/v1/jobs', ask, uid=NOBODY).ok
        r = n.post('/v1/jobs', {**ask, 'env': [f'A{i}=' + 'x' * 1000 for i in range(200)]})
        same((r.status, r.json['error']['code']), (413, 'too_large'), repr(r))
        for j in n.get('/v1/jobs?live=true&limit=1000').json['jobs']:
            n.post(f'/v1/jobs/{j["id"]}/cancel')
        n.quiet()
        n.sound()


if __name__ == '__main__':
    lab.tap.main(globals())
