# SPDX-License-Identifier: Apache-2.0
"""A tenant is suspended, another uses its memory, and it comes back with its contents.

The product's own code on one side and a tenant that knows nothing of it on the other; the driver and its library are
simulated silicon. Also below the gate: what left the card is credited to the lease, and charged again.

Usage: run.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-SUSPEND
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, Result, Skip, environment, has, same  # noqa: E402

TENANT, SUSPEND = (os.path.abspath(p) for p in sys.argv[3:5])
# Sanitizers look for leaks by ptrace, which the gate's filter refuses.
QUIET = 'ASAN_OPTIONS=detect_leaks=0'
MIB = 1 << 20
GIB = 1 << 30


def bulkhead(*args, **env):
    done = subprocess.run([BIN, *args], capture_output=True, check=False, timeout=120,
                          env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), **env))
    return Result(done)


@contextlib.contextmanager
def node(scene='h200'):
    """A simulated node; yields the environment that names it."""
    os.mkdir('h')
    os.chmod('.', 0o755)
    r = bulkhead('sim', 'start', scene)
    same(r.rc, 0, repr(r))
    at = os.path.abspath('h/lab')
    try:
        yield environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), BULKHEAD_SIM=at, BULKHEAD_SYSROOT=f'{at}/sysroot',
                          BULKHEAD_NVML=f'{at}/lib/libnvidia-ml.so.1', LD_LIBRARY_PATH=f'{at}/lib')
    finally:
        r = bulkhead('sim', 'stop', '--all')
    same(r.rc, 0, repr(r))


class Holder:
    """A tenant with contents."""

    def __init__(self, env, size='64MiB'):
        self.p = subprocess.Popen([SUSPEND, 'hold', size], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.read().split()[1])
        assert self.pid == self.p.pid

    def read(self):
        return self.p.stdout.readline()

    def ask(self):
        self.p.stdin.write('?\n')
        self.p.stdin.flush()

    def sum(self):
        self.ask()
        line = self.read()
        has(line, 'sum ')
        return line

    def end(self):
        self.p.stdin.close()
        same(self.p.wait(timeout=60), 0)


@contextlib.contextmanager
def holders(env, n=1, size='64MiB'):
    all_of_them = [Holder(env, size) for _ in range(n)]
    try:
        yield all_of_them if n > 1 else all_of_them[0]
        for h in all_of_them:
            h.end()
    finally:
        for h in all_of_them:
            h.p.kill()
            h.p.wait()


def order(env, verb, *pids, who=()):
    done = subprocess.run([*who, SUSPEND, verb, *map(str, pids)], env=env, capture_output=True, timeout=120, check=False)
    return Result(done)


def steps(r):
    return [line for line in r.out.splitlines() if not line.startswith('bytes')]


def done(env, verb, *pids):
    r = order(env, verb, *pids)
    same((r.rc, r.err), (0, ''), repr(r))
    return r


def state(env, pid):
    return done(env, 'state', pid).out.split()[0]


def used(env):
    """What is taken on the card, as NVML has it."""
    r = subprocess.run([BIN, 'gpus', '-o', 'json'], env=env, capture_output=True, check=True, timeout=60)
    return json.loads(r.stdout)['gpus'][0]['usedBytes']


def fill(env, *more):
    r = subprocess.run([TENANT, 'fill', 'plain', *more], env=env, capture_output=True, check=True, timeout=120, text=True)
    return dict(line.split(' ', 1) for line in r.stdout.splitlines())


def test_a_tenant_leaves_and_comes_back():
    with node() as env, holders(env) as h:
        before = h.sum()
        full = used(env)
        r = done(env, 'out', h.pid)
        same(steps(r), [f'lock {h.pid}', f'checkpoint {h.pid}'])
        same(state(env, h.pid), 'suspended')
        assert full - used(env) >= 48 * MIB, (full, used(env))
        moved = int(r.out.split('bytes ')[1].split()[0])
        assert moved >= 48 * MIB, moved
        # its calls wait
        h.ask()
        time.sleep(0.2)
        # another has all of the card meanwhile, and leaves nothing of what was there
        assert int(fill(env)['got']) > 100 * GIB
        r = done(env, 'in', h.pid)
        same(steps(r), [f'restore {h.pid}', f'unlock {h.pid}'])
        same(h.read(), before, 'the call that waited')
        same(h.sum(), before)
        same(state(env, h.pid), 'running')
        same(used(env), full)


def test_again_and_again():
    with node() as env, holders(env, size='16MiB') as h:
        before = h.sum()
        for _ in range(5):
            done(env, 'out', h.pid)
            same(steps(done(env, 'out', h.pid)), [])
            done(env, 'in', h.pid)
            same(steps(done(env, 'in', h.pid)), [])
            same(h.sum(), before)


def test_in_the_middle_of_its_work():
    """Memory of all kinds, copies and kernels at random, contents checked by the tenant itself."""
    with node() as env:
        p = subprocess.Popen([TENANT, 'churn', '1500', '7'], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        times = 0
        try:
            while p.poll() is None and times < 20:
                r = order(env, 'out', p.pid)
                if r.rc == 0:
                    done(env, 'in', p.pid)
                    times += 1
                else:
                    assert 'no CUDA process' in r.err or 'ended' in r.err, repr(r)
        finally:
            out, err = p.communicate(timeout=120)
        same(p.returncode, 0, out + err)
        assert times > 2, times


def test_a_card_that_is_full_is_tried_again():
    with node() as env, holders(env) as h:
        before = h.sum()
        done(env, 'out', h.pid)
        hog = subprocess.Popen([TENANT, 'fill', 'small', '999GiB', 'wait'], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
        try:
            same(hog.stdout.readline(), 'ready\n')
            hog.stdin.write('g')
            hog.stdin.flush()
            while hog.stdout.readline() != 'held\n':
                assert hog.poll() is None
            r = order(env, 'in', h.pid)
            same(r.rc, 7, repr(r))
            has(r.err, f'simulated: process {h.pid}: restore: CUDA_ERROR_OUT_OF_MEMORY')
            has(r.err, 'no room')
            same(state(env, h.pid), 'suspended')
        finally:
            hog.communicate('x', timeout=60)
        done(env, 'in', h.pid)
        same(h.sum(), before)


def test_several_processes_stop_together():
    with node() as env, holders(env, 3, '16MiB') as hs:
        pids = [h.pid for h in hs]
        before = [h.sum() for h in hs]
        same(steps(done(env, 'out', *pids)), [f'lock {p}' for p in pids] + [f'checkpoint {p}' for p in pids])
        same(steps(done(env, 'in', *pids)), [f'restore {p}' for p in pids] + [f'unlock {p}' for p in pids])
        same([h.sum() for h in hs], before)
        # one that is no CUDA process: nothing is begun
        r = order(env, 'out', pids[0], os.getpid())
        same((r.rc, r.out), (4, ''), repr(r))
        has(r.err, f'process {os.getpid()}: look: CUDA_ERROR_NOT_INITIALIZED')
        same(state(env, pids[0]), 'running')
        # one that cannot be moved: what was begun is put back
        lender = subprocess.Popen([TENANT, 'share', '16MiB'], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            lender.stdout.readline()
            r = order(env, 'out', pids[0], lender.pid)
            same(r.rc, 1, repr(r))
            has(r.err, f'process {lender.pid}: checkpoint: CUDA_ERROR_NOT_SUPPORTED')
            has(r.err, 'all was put back')
            same(steps(r)[-3:], [f'undo unlock {lender.pid}', f'undo restore {pids[0]}', f'undo unlock {pids[0]}'])
            same((state(env, pids[0]), state(env, lender.pid)), ('running', 'running'))
        finally:
            lender.kill()
            lender.communicate()
        same([h.sum() for h in hs], before)


def test_whoever_suspends_is_killed_or_told_to_end():
    with node() as env, holders(env, 2, '16MiB') as hs:
        pids = [h.pid for h in hs]
        before = [h.sum() for h in hs]
        r = order(env, 'dies', *pids)
        same(r.rc, -signal.SIGKILL, repr(r))
        same([state(env, p) for p in pids], ['locked', 'locked'])
        done(env, 'in', *pids)
        same([h.sum() for h in hs], before)
        r = order(env, 'interrupted', *pids)
        same(r.rc, 7, repr(r))
        has(r.err, 'interrupted (Terminated); all was put back')
        same([state(env, p) for p in pids], ['running', 'running'])
        same([h.sum() for h in hs], before)


def test_who_ends_while_suspended_is_no_trouble():
    with node() as env, holders(env, size='16MiB') as stays:
        goes = Holder(env, '16MiB')
        before = stays.sum()
        done(env, 'out', stays.pid, goes.pid)
        goes.p.kill()
        goes.p.wait()
        done(env, 'in', stays.pid, goes.pid)
        same(stays.sum(), before)


def test_another_user_may_not():
    if os.geteuid() != 0:
        raise Skip('needs root')
    nobody = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
    with node() as env, holders(env, size='16MiB') as h:
        if subprocess.run([*nobody, BIN, 'version'], capture_output=True, check=False).returncode != 0:
            raise Skip('somebody else cannot run programs here')
        r = order(env, 'out', h.pid, who=nobody)
        assert r.rc != 0, repr(r)
        same(state(env, h.pid), 'running')


def test_a_library_of_the_wrong_kind():
    with node() as env, holders(env, size='16MiB') as h:
        real = {k: v for k, v in env.items() if k not in ('BULKHEAD_SIM', 'BULKHEAD_SYSROOT')}
        r = order(real, 'out', h.pid)
        same(r.rc, 5, repr(r))
        has(r.err, 'a simulated driver library, and this is no simulated node')


class Lease:
    """A shell below the gate, and what it is told to run there."""

    def __init__(self, env, cap):
        self.p = subprocess.Popen([BIN, 'run', '--memory', cap, '--', 'env', QUIET, 'sh'], env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

    def tell(self, line):
        self.p.stdin.write(line + '\n')
        self.p.stdin.flush()

    def fill(self):
        """How much another process of the lease can have."""
        self.tell(f'{TENANT} fill small; echo over')
        said = {}
        while (line := self.p.stdout.readline()) != 'over\n':
            assert line, 'the lease ended'
            key, _, value = line.rstrip('\n').partition(' ')
            said[key] = value
        return int(said['got'])

    def end(self):
        self.p.stdin.close()
        same(self.p.wait(timeout=60), 0)


class Below:
    """A program of a lease with pipes of its own."""

    def __init__(self, lease, name, command):
        for end in 'in', 'out':
            os.mkfifo(f'{name}.{end}')
        lease.tell(f'{command} <{name}.in >{name}.out &')
        self.ask = open(f'{name}.in', 'w', encoding='ascii')
        self.say = open(f'{name}.out', encoding='ascii')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask.close()
        self.say.close()

    def tell(self, text):
        self.ask.write(text)
        self.ask.flush()

    def line(self):
        return self.say.readline()


def test_the_lease_is_credited_and_charged_again():
    if os.geteuid() != 0:
        raise Skip('needs root')
    with node() as env:
        lease = Lease(env, '2GiB')
        try:
            with Below(lease, 'holder', f'{SUSPEND} hold 64MiB') as h:
                pid = int(h.line().split()[1])
                h.tell('?\n')
                before = h.line()
                beside = lease.fill()
                assert beside > 500 * MIB, beside
                done(env, 'out', pid)
                alone = lease.fill()
                assert alone - beside >= 48 * MIB, (alone, beside)
                done(env, 'in', pid)
                same(lease.fill(), beside, 'charged again')
                h.tell('?\n')
                same(h.line(), before)
                # the cap holds for what comes back, too
                done(env, 'out', pid)
                with Below(lease, 'hog', f'{TENANT} fill small 999GiB wait') as hog:
                    same(hog.line(), 'ready\n')
                    hog.tell('g')
                    while (line := hog.line()) != 'held\n':
                        assert line, 'the hog ended'
                    r = order(env, 'in', pid)
                    same(r.rc, 7, repr(r))
                    has(r.err, 'CUDA_ERROR_OUT_OF_MEMORY')
                lease.tell('wait $!')
                same(lease.fill(), alone)
                done(env, 'in', pid)
                h.tell('?\n')
                same(h.line(), before)
            lease.tell('wait')
            lease.end()
        finally:
            lease.p.kill()
            lease.p.wait()


if __name__ == '__main__':
    tap.main(globals())
