# SPDX-License-Identifier: Apache-2.0
"""pause, resume, suspend and the way to the governor, when something is in the way.

Whoever suspends is killed half-way, processes leave their parents, governors are stopped, slow, killed or somebody else's:
what an operator was told is what is done, and nobody stays off the card or waits for somebody who will not come.

Usage: verbs.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-SUSPEND
"""
import contextlib
import fcntl
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

spec = importlib.util.spec_from_file_location('govern_run', pathlib.Path(__file__).resolve().parent / 'run.py')
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'governor'))
from tap import BIN, environment, has, same  # noqa: E402
from wire import VERSION, number  # noqa: E402

gate, SUSPEND, TENANT = run.gate, run.SUSPEND, run.TENANT
begin, bulkhead, order, row, rows, shared, spin = run.begin, run.bulkhead, run.order, run.row, run.rows, run.shared, run.spin
children, comm, finish, governor, state, until, warden_of = (run.children, run.comm, run.finish, run.governor, run.state, run.until,
                                                             run.warden_of)
BUILD = pathlib.Path(BIN).resolve().parent.parent


def message(what, name):
    return struct.pack('<IIQII64s', number('ORDER'), VERSION, 0, number(what), 0, name.encode())


def asked(env, *words):
    """Of the program that suspends: without a lease in between."""
    done = subprocess.run([SUSPEND, *map(str, words)], env=environment(**env), capture_output=True, timeout=60, check=True, text=True)
    return done.stdout.split()[0] if done.stdout else ''


def tell(s, what, name):
    s.send(message(what, name))
    op, code = struct.unpack('<Ii', s.recv(4096)[:8])
    same(op, number('ANSWER'))
    return code


def operator():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect('run/governor.sock')
    return s


@contextlib.contextmanager
def held(env, name='a', size='32MiB', worker=False, options=('--share', '100')):
    """A lease with a process that has contents; yields its pid and how to ask for them. worker: its parent has left it."""
    os.mkfifo('in')
    command = f'ASAN_OPTIONS=detect_leaks=0 {SUSPEND} hold {size} <in >out 2>&1'
    if worker:
        command = f'(setsid sh -c "{command}" &); exec sleep 600'
    p = begin(env, 'sh', '-c', command if worker else f'exec env {command}', options=(*options, '--memory', '4GiB', '--name', name))
    ask = open('in', 'w', encoding='ascii')
    until(lambda: os.path.exists('out') and '\n' in pathlib.Path('out').read_text())
    pid = int(pathlib.Path('out').read_text().split()[1])
    until(lambda: row(env, name).get('pids') == [pid])
    answers = 0

    def total():
        nonlocal answers
        answers += 1
        ask.write('?\n')
        ask.flush()
        until(lambda: pathlib.Path('out').read_text().count('\n') > answers)
        return pathlib.Path('out').read_text().splitlines()[answers]

    try:
        yield pid, total
    finally:
        ask.close()
        p.terminate()
        p.communicate(timeout=60)


def test_a_worker_that_left_its_parent_comes_back():
    with shared() as env, held(env, worker=True) as (pid, total):
        before = total()
        same(bulkhead('suspend', 'a', **env).rc, 0)
        same((asked(env, 'state', pid), row(env, 'a')['state']), ('suspended', 'suspended'))
        same(bulkhead('resume', 'a', **env).rc, 0)
        same(asked(env, 'state', pid), 'running')
        same(total(), before)
        # also by another governor, which has to be told
        same(bulkhead('suspend', 'a', **env).rc, 0)
        os.kill(governor(env), signal.SIGKILL)
        until(lambda: row(env, 'a'))
        same(bulkhead('resume', 'a', **env).rc, 0)
        same(asked(env, 'state', pid), 'running')
        same(total(), before)


def test_what_cannot_be_brought_back_is_a_failure():
    with shared() as env, held(env) as (pid, total):
        before = total()
        same(bulkhead('suspend', 'a', **env).rc, 0)
        r = bulkhead('resume', 'a', **{**env, 'BULKHEAD_CUDA': '/nonexistent/libcuda.so.1'})
        assert r.rc not in (0, 2) and r.err.count('\n') == 1, repr(r)
        same((asked(env, 'state', pid), row(env, 'a')['state']), ('suspended', 'suspended'))
        # nor by a governor that has forgotten it
        same(bulkhead('resume', 'a', **env).rc, 0)
        same(total(), before)


def test_a_suspension_that_nobody_finishes_is_none():
    with shared() as env:
        p = spin(env, '--cap', '10%', '--name', 'a')
        until(lambda: row(env, 'a'))
        s = operator()
        same(tell(s, 'SUSPEND', 'a'), 0)
        same(row(env, 'a')['state'], 'suspended')
        other = operator()
        assert tell(other, 'SUSPEND', 'a') < 0 and tell(other, 'SUSPENDED', 'a') < 0, 'somebody else is at it'
        other.close()
        same(row(env, 'a')['state'], 'suspended')
        s.close()
        until(lambda: row(env, 'a')['state'] != 'suspended')
        # what was before is put back
        order(env, 'pause', 'a')
        s = operator()
        same(tell(s, 'SUSPEND', 'a'), 0)
        same(row(env, 'a')['state'], 'suspended')
        s.close()
        until(lambda: row(env, 'a')['state'] == 'paused')
        # one that is resumed meanwhile stays so, and cannot be kept
        s = operator()
        same(tell(s, 'SUSPEND', 'a'), 0)
        order(env, 'resume', 'a')
        assert tell(s, 'SUSPENDED', 'a') < 0
        s.close()
        time.sleep(0.1)
        assert row(env, 'a')['state'] not in ('paused', 'suspended'), row(env, 'a')
        # one that is kept lasts
        s = operator()
        same((tell(s, 'SUSPEND', 'a'), tell(s, 'SUSPENDED', 'a')), (0, 0))
        s.close()
        time.sleep(0.1)
        same(row(env, 'a')['state'], 'suspended')
        p.terminate()
        finish(p)


def test_who_has_nothing_to_suspend_is_named():
    with shared() as env:
        p = begin(env, 'sleep', '600', options=('--share', '100', '--name', 'a'))
        until(lambda: row(env, 'a'))
        r = bulkhead('suspend', 'a', **env)
        same((r.rc, r.err), (4, "bulkhead: lease 'a' has nothing on a GPU that could be suspended\n"), repr(r))
        p.terminate()
        finish(p)


def test_suspend_is_killed_half_way():
    with shared() as env, held(env, size='256MiB') as (pid, total):
        before = total()
        seen = set()
        for ms in (5, 20, 40, 60, 80, 100, 130, 170, 220, 300):
            p = subprocess.Popen([BIN, 'suspend', 'a'], env=environment(**env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(ms / 1000)
            p.kill()
            p.wait()
            done = {('running', False), ('suspended', True)}

            def now():
                return asked(env, 'state', pid), row(env, 'a')['state'] == 'suspended'
            until(lambda: now() in done)
            time.sleep(0.3)  # and it stays so: nobody is still at it
            until(lambda: now() in done)
            seen.add(now())
            same(bulkhead('resume', 'a', **env).rc, 0)
            same(total(), before)
        assert ('running', False) in seen, seen


def test_who_ends_while_it_is_suspended_leaves_nothing_to_restore():
    for ms in (30, 60, 120):
        with shared() as env, held(env, size='256MiB') as (pid, _):
            parent = int(pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[1])
            os.kill(parent, signal.SIGSTOP)  # so that it is not reaped
            try:
                p = subprocess.Popen([BIN, 'suspend', 'a'], env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(ms / 1000)
                os.kill(pid, signal.SIGKILL)
                _, err = p.communicate(timeout=60)
            finally:
                os.kill(parent, signal.SIGCONT)
            assert b'no CUDA process' not in err and b'putting back failed' not in err, err
            assert p.returncode == 0 or b'ended while' in err or b'nothing on a GPU' in err, (p.returncode, err)
        for name in ('in', 'out', 'run', 'h'):
            shutil.rmtree(name) if os.path.isdir(name) else os.path.exists(name) and os.unlink(name)


def test_orders_while_governors_are_killed_reach_the_next_one():
    with shared() as env:
        p = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        for i, verb in enumerate(('pause', 'resume') * 4):
            at_once = i % 3 == 0
            if at_once:
                os.kill(governor(env), signal.SIGKILL)
            q = subprocess.Popen([BIN, verb, 'a'], env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if not at_once:
                time.sleep(0.002 * i)
                os.kill(governor(env), signal.SIGKILL)
            out, err = q.communicate(timeout=60)
            # A machine that has much to do may need longer for another governor than an order waits, and between two there is none.
            assert q.returncode == 0 and not err or q.returncode == 7 and b'repeat the command' in err or \
                q.returncode == 4 and b'nothing is governed' in err, (i, verb, q.returncode, err)
            same(out, b'')
            until(lambda: bulkhead(verb, 'a', **env).rc == 0)
            until(lambda: governor(env) and row(env, 'a'))
        p.terminate()
        finish(p)


def test_a_suspension_that_fails_leaves_it_paused():
    with shared() as env:
        p = begin(env, TENANT, 'share', '16MiB', options=('--share', '100', '--memory', '4GiB', '--name', 'a'))
        p.stdout.readline()
        until(lambda: row(env, 'a').get('pids'))
        order(env, 'pause', 'a')
        r = bulkhead('suspend', 'a', **env)
        same(r.rc, 1, repr(r))
        has(r.err, 'all was put back')
        until(lambda: row(env, 'a')['state'] == 'paused')
        r = bulkhead('suspend', 'a', **{**env, 'BULKHEAD_CUDA': '/nonexistent/libcuda.so.1'})
        assert r.rc not in (0, 2), repr(r)
        until(lambda: row(env, 'a')['state'] == 'paused')
        p.kill()
        p.communicate()


def test_a_pause_ends_also_where_the_library_hangs():
    with shared() as env:
        p = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        order(env, 'pause', 'a')
        os.mkfifo('libcuda')  # whoever opens it waits
        r = subprocess.Popen([BIN, 'resume', 'a'], env=environment(**env, BULKHEAD_CUDA=os.path.abspath('libcuda')))
        until(lambda: row(env, 'a')['state'] != 'paused')
        r.kill()
        r.wait()
        p.terminate()
        finish(p)


def test_what_outlives_the_command_stays_paused():
    with shared() as env:
        os.mkfifo('in')
        p = begin(env, 'sh', '-c', f'setsid {TENANT} spin 0 5000 <in >out 2>&1 & cat >end', options=('--share', '100', '--name', 'a'))
        with open('in', 'w', encoding='ascii'):
            until(lambda: row(env, 'a').get('pids'))
            pids = row(env, 'a')['pids']
            order(env, 'pause', 'a')
            p.stdin.close()
            p.stdin = None
            same(finish(p)[0], 0)
            time.sleep(0.5)
            same((row(env, 'a')['state'], row(env, 'a')['pids']), ('paused', pids), rows(env))
            order(env, 'resume', 'a')
            until(lambda: run.advances(env, 'a'))
        until(lambda: not rows(env))


def test_an_order_that_was_told_to_have_failed_is_not_done():
    with shared() as env:
        p = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        g = governor(env)
        os.kill(g, signal.SIGSTOP)
        r = bulkhead('pause', 'a', **env)
        same(r.rc, 7, repr(r))
        r = bulkhead('run', '--share', '5', '--', 'true', **env)
        same(r.rc, 7, repr(r))
        has(r.err, 'does not answer; it may be stopped')
        os.kill(g, signal.SIGCONT)
        until(lambda: row(env, 'a').get('lease'))
        time.sleep(0.2)
        assert row(env, 'a')['state'] != 'paused', row(env, 'a')
        p.terminate()
        finish(p)


def test_a_pause_can_be_ended_where_the_run_folder_is_removed():
    with shared() as env:
        a = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        order(env, 'pause', 'a')
        before = governor(env)
        shutil.rmtree('run')
        until(lambda: list(run.governors(env)) not in ([], [before]) and row(env, 'a'))  # another one, ...
        until(lambda: len(list(run.governors(env))) == 1)  # ... and no other
        run.done(a)  # it goes on
        order(env, 'pause', 'a')
        same(row(env, 'a')['state'], 'paused')
        order(env, 'resume', 'a')
        b = spin(env, '--share', '100', '--name', 'b')
        until(lambda: {'a', 'b'} <= rows(env).keys())
        same(len(list(run.governors(env))), 1)
        for p in (a, b):
            run.rate(p)


@contextlib.contextmanager
def locked(path='run/governor.lock'):
    """Somebody holds it who does not get on."""
    with open(path, 'a', encoding='ascii') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def test_who_waits_for_a_governor_hears_signals_and_ends():
    with shared() as env:
        with locked():
            p = begin(env, 'true')
            time.sleep(0.5)
            same(p.poll(), None)
            p.terminate()
            p.communicate(timeout=30)
            same(p.returncode, -signal.SIGTERM)
        # also while its command runs
        p = begin(env, 'sleep', '3', options=('--share', '1', '--name', 'a'))
        until(lambda: row(env, 'a'))
        with locked():
            os.kill(governor(env), signal.SIGKILL)
            out = p.communicate(timeout=30)
            same((p.returncode, out[0]), (0, b''), out)
        os.unlink('run/governor.sock')  # of the one that was killed, and nobody followed


def test_a_governor_that_takes_nobody():
    with shared() as env:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind('run/governor.sock')
        s.listen(0)
        full = operator()
        r = bulkhead('shares', **env)
        same((r.rc, r.err.count('\n')), (7, 1), repr(r))
        has(r.err, 'does not answer')
        full.close()
        s.close()
        os.unlink('run/governor.sock')


def package(text):
    """Installed files with a governor that is a script."""
    for folder in 'q/bin', 'q/libexec/bulkhead':
        os.makedirs(folder)
    shutil.copy(BIN, 'q/bin')
    shutil.copy(BUILD / 'warden/bulkhead-warden', 'q/libexec/bulkhead')
    script = pathlib.Path('q/libexec/bulkhead/bulkhead-governor')
    script.write_text(f'#!/bin/sh\n{text}\n', encoding='ascii')
    script.chmod(0o755)
    return os.path.abspath('q/bin/bulkhead')


def test_a_governor_that_takes_its_time():
    with shared() as env:
        program = package(f'sleep 7; exec {BUILD}/governor/bulkhead-governor')
        done = subprocess.run([program, 'run', '--share', '1', '--', 'echo', 'ran'], env=environment(**env), capture_output=True,
                              timeout=100, check=False)
        same((done.returncode, done.stdout, done.stderr), (0, b'ran\n', b''))


def test_a_governor_that_dies_without_a_word():
    with shared() as env:
        program = package('kill -9 $$')
        done = subprocess.run([program, 'run', '--share', '1', '--', 'touch', 'ran'], env=environment(**env), capture_output=True,
                              timeout=100, check=False)
        same((done.returncode, done.stderr.count(b'\n')), (70, 1), done)
        has(done.stderr, b'the governor was killed by signal 9 as it was started')
        assert not os.path.exists('ran') and not os.path.exists('run/governor.sock')


def test_a_governor_that_ends_as_it_is_joined_is_followed():
    with shared() as env:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind('run/governor.sock')
        s.listen(5)
        p = begin(env, 'echo', 'ran')
        c, _ = s.accept()
        c.recv(4096)
        s.close()
        os.unlink('run/governor.sock')
        c.close()
        same(finish(p), (0, 'ran\n', ''))


def test_folders_of_others():
    with shared() as env:
        os.mkdir('theirs')
        for uid, mode in ((65534, 0o755), (0, 0o777), (0, 0o1777)):
            os.chown('theirs', uid, 0)
            os.chmod('theirs', mode)
            gate.refused(3, ('theirs', 'others may write'), '--share', '1', '--', 'touch', 'ran',
                         **{**env, 'BULKHEAD_RUN_DIR': os.path.abspath('theirs')})
            same(os.listdir('theirs'), [])
        gate.refused(2, 'theirs', '--share', '1', '--', 'touch', 'ran', **{**env, 'BULKHEAD_RUN_DIR': 'theirs'})
        same(os.listdir('theirs'), [])
        # somebody else's socket in a folder of root's
        os.chmod('theirs', 0o755)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind('theirs/governor.sock')
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            s.listen(5)
            time.sleep(600)
            os._exit(0)
        try:
            s.close()
            env = {**env, 'BULKHEAD_RUN_DIR': os.path.abspath('theirs')}
            until(lambda: bulkhead('shares', **env).rc != 0)
            gate.refused(3, 'somebody else listens', '--share', '1', '--', 'touch', 'ran', **env)
            r = bulkhead('pause', 'a', **env)
            same(r.rc, 3, repr(r))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert not os.path.exists('ran')


def living(p):
    """Its warden; those that end while they are looked at are none."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return warden_of(p)


def names(p):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return sorted(comm(c) for c in children(p.pid))


def test_a_lease_whose_wardens_are_given_up_says_what_is_not_held():
    with shared() as env:
        p = begin(env, 'sleep', '600', options=('--cap', '10%', '--name', 'a'))
        dead = None
        for _ in range(4):
            until(lambda: living(p) not in (None, dead))  # noqa: B023
            dead = living(p)
            time.sleep(0.3)
            os.kill(dead, signal.SIGKILL)
        until(lambda: not rows(env))
        p.terminate()
        _, err = p.communicate(timeout=60)
        has(err.decode(), 'its share or cap of GPU time is not held')


def test_governors_that_died_leave_nothing_at_the_launcher():
    with shared() as env:
        p = begin(env, 'sleep', '600', options=('--share', '1', '--name', 'a'))
        last = None
        for _ in range(3):
            until(lambda: governor(env) not in (None, last) and row(env, 'a'))  # noqa: B023
            last = governor(env)
            os.kill(last, signal.SIGKILL)
        until(lambda: governor(env) not in (None, last) and row(env, 'a'))
        until(lambda: names(p) == ['bulkhead-warden', 'sleep'])
        same([c for c in children(p.pid) if state(c) == 'Z'], [])
        p.terminate()
        finish(p)


if __name__ == '__main__':
    gate.tap.main(globals())
