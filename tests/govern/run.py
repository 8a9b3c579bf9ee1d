# SPDX-License-Identifier: Apache-2.0
"""bulkhead run --share: commands that share a GPU get their parts of its time, and nobody stays paused.

The real command, warden, governor and filter; the driver and its library are simulated silicon, whose scheduler runs in
real time. What a command got is what it finished, never what somebody says of it; the margins are wide, for nothing here
is about speed.

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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'gate'))
import run as gate  # noqa: E402
from run import QUIET, TENANT, bulkhead, children, comm, finish, gone, lines, node, state, until  # noqa: E402
from tap import BIN, environment, has, same  # noqa: E402

SUSPEND = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
WORK_US = '5000'
WHOLE = 200  # units a second


@contextlib.contextmanager
def shared():
    """A simulated node with a run folder of its own; nothing may be left of its governor."""
    with node() as env:
        os.mkdir('run')
        yield {**env, 'BULKHEAD_RUN_DIR': os.path.abspath('run')}
        until(lambda: not os.path.exists('run/governor.sock'))


def begin(env, *command, options=('--share', '100')):
    return subprocess.Popen([BIN, 'run', *options, '--', *QUIET, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=environment(**env))


def spin(env, *options):
    """Works until its input ends: until finish(), rate() or end()."""
    p = begin(env, TENANT, 'spin', '0', WORK_US, options=options)
    same(p.stdout.readline(), b'ready\n', p.stderr.read() if p.poll() is not None else '')
    return p


def rows(env):
    r = bulkhead('shares', '-o', 'json', **env)
    same(r.rc, 0, repr(r))
    return {row['name']: row for row in json.loads(r.out)['shares']}


def row(env, name):
    return rows(env).get(name, {})


def governors(env):
    """Those that serve our run folder, whoever started them."""
    mark = f'BULKHEAD_RUN_DIR={env["BULKHEAD_RUN_DIR"]}'.encode()
    for pid in (int(n) for n in os.listdir('/proc') if n.isdigit()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if comm(pid) == 'bulkhead-govern' and state(pid) != 'Z' and \
                    mark in pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0'):
                yield pid


def governor(env):
    return next(governors(env), None)


def warden_of(p):
    for child in children(p.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if comm(child) == 'bulkhead-warden' and state(child) != 'Z':
                return child
    return None


def done(p):
    """Units so far."""
    p.stdin.write(b'\n')
    p.stdin.flush()
    return int(p.stdout.readline().split()[-1])


def rates(*ps, seconds=4):
    """Of each, while all of them work."""
    before, began = [done(p) for p in ps], time.monotonic()
    time.sleep(seconds)
    after = [done(p) for p in ps]
    return [(b - a) / (time.monotonic() - began) for a, b in zip(before, after)]


def part(a, b):
    ra, rb = rates(a, b)
    return ra / (ra + rb)


def rate(p):
    """Of all its life, which ends here."""
    rc, out, err = finish(p)
    same(rc, 0, err)
    return float(lines(out)['rate']), err


def order(env, *words):
    r = bulkhead(*words, **env)
    same((r.rc, r.err), (0, ''), repr(r))
    return r


def advances(env, name):
    """Does it get GPU time?"""
    before = row(env, name)['busyNanos']
    time.sleep(0.3)
    return row(env, name)['busyNanos'] > before


def test_shares_are_what_is_finished():
    with shared() as env:
        a, b = spin(env, '--share', '300'), spin(env, '--share', '100')
        assert 0.6 < part(a, b) < 0.88
        rate(a), rate(b)


def test_a_cap_holds_alone():
    with shared() as env:
        p = spin(env, '--cap', '25%')
        r, = rates(p)
        assert 0.1 < r / WHOLE < 0.4, r
        rate(p)


def test_a_floor_lifts_a_small_share():
    with shared() as env:
        a, b = spin(env, '--share', '9000'), spin(env, '--share', '1', '--floor', '40%')
        assert 0.4 < part(a, b) < 0.8
        rate(a), rate(b)


def test_alone_or_beside_one_that_idles_it_has_all():
    with shared() as env:
        idle = begin(env, TENANT, 'hold', '100MiB', '1000', options=('--share', '9000', '--memory', '2GiB'))
        same(idle.stdout.readline(), b'ready\n')
        p = spin(env, '--share', '1')
        r, = rates(p, seconds=2)
        assert r > WHOLE / 8, r  # as much as a starved machine has for it; by its share it would be one in a minute
        rate(p)
        idle.terminate()
        finish(idle)


def test_what_is_shown():
    with shared() as env:
        p = spin(env, '--share', '7', '--floor', '5%', '--name', 'one', '--stats')
        until(lambda: row(env, 'one').get('deliveredPermille', 0) > 300)
        r = row(env, 'one')
        same((r['weight'], r['capPermille'], r['floorPermille'], r['latency'], r['gpu'], r['state']), (7, 0, 50, False, 0, 'runs'), r)
        same((r['pids'], r['processes']), ([r['pid']], 1), r)
        text = bulkhead('shares', **env).out
        for word in ('GPU  LEASE', 'TAMPERED', 'one', 'memory bandwidth', 'caches', 'PCIe', 'power'):
            has(text, word)
        rates(p)  # the launcher notes it now and then
        _, err = rate(p)
        for word in ('bulkhead: peak ', 'GPU 0: target 100.0%, delivered ', 'corrections'):
            has(err, word)
        assert ' of ' not in err.split(',')[0], err  # no cap on memory


def test_floors_that_do_not_fit_are_said():
    with shared() as env:
        ps = [spin(env, '--floor', '90%', '--name', name) for name in 'ab']
        until(lambda: [r['gpu'] for r in rows(env).values()] == [0, 0])
        has(bulkhead('shares', **env).out, '\nGPU 0: the floors come to 180.0% of it')
        until(lambda: {r['targetPermille'] for r in rows(env).values()} == {500})
        rate(ps.pop())
        until(lambda: 'b' not in rows(env))
        assert 'floors' not in bulkhead('shares', **env).out
        rate(ps.pop())


def noise(env):
    r = bulkhead('shares', '-o', 'json', **env)
    same(r.rc, 0, repr(r))
    return json.loads(r.out)['noise']


def test_who_slows_whom_is_said_while_they_compete():
    with shared() as env:
        a = spin(env, '--share', '300', '--name', 'a')
        until(lambda: row(env, 'a').get('deliveredPermille', 0) > 300)
        same(noise(env), [])
        # what it uses is told of one that is alone as well
        until(lambda: row(env, 'a')['uses']['multiprocessorsPermille'] is not None, seconds=60)
        assert row(env, 'a')['uses']['multiprocessorsPermille'] > 300, row(env, 'a')
        same(row(env, 'a')['uses']['pciePermille'], None)
        b = spin(env, '--share', '100', '--name', 'b')
        until(lambda: any('could use it' in line['text'] for line in noise(env)))
        # nothing crosses a simulated link, and its counter is missing
        for line in noise(env):
            same((line['gpu'], isinstance(line['text'], str)), (0, True), line)
        has('\n'.join(line['text'] for line in noise(env)), 'because missing: NVML GPM PCIE_RX_PER_SEC, NVML GPM PCIE_TX_PER_SEC (not supported by this GPU)')
        has(bulkhead('shares', **env).out, 'GPU 0: what else slows them cannot be told')
        for p in (a, b):
            p.terminate()
            finish(p)


def test_by_slices_alone_nobody_is_paused():
    with shared() as env:
        env = {**env, 'BULKHEAD_GOVERN': 'slices'}
        a, b = spin(env, '--share', '300', '--name', 'a'), spin(env, '--share', '100', '--name', 'b')
        until(lambda: row(env, 'a').get('mode') == 'slices')
        gate.refused(1, ('BULKHEAD_GOVERN=slices', 'no cap'), '--cap', '20%', '--', 'touch', 'ran', **env)
        gate.refused(1, 'BULKHEAD_GOVERN=slices', '--latency', '--', 'touch', 'ran', **env)
        until(lambda: row(env, 'a').get('busyNanos', 0) > 2e9)
        same([(r['mode'], r['pauses']) for r in rows(env).values()], [('slices', 0)] * 2, rows(env))
        assert 0.55 < part(a, b) < 0.9
        rate(a), rate(b)
        assert not os.path.exists('ran')


def test_a_wish_that_there_is_not_is_said():
    with shared() as env:
        r = bulkhead('run', '--share', '1', '--', 'touch', 'ran', **{**env, 'BULKHEAD_GOVERN': 'turns'})
        assert r.rc != 0 and not os.path.exists('ran'), repr(r)
        has(r.err, "BULKHEAD_GOVERN is 'slices' or not set, not 'turns'")


def test_a_log_that_cannot_be_written_is_refused():
    with shared() as env:
        r = bulkhead('run', '--share', '1', '--', 'true', **env, BULKHEAD_GOVERN_LOG=os.path.abspath('no/log'))
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, "/no/': No such file or directory")


def test_nobody_shares():
    with shared() as env:
        r = bulkhead('shares', **env)
        same((r.rc, r.err), (0, ''), repr(r))
        has(r.out, 'nobody shares')
        same(json.loads(bulkhead('shares', '-o', 'json', **env).out)['governed'], False)
        for verb in ('pause', 'resume', 'suspend'):
            r = bulkhead(verb, 'x', **env)
            same((r.rc, r.out, r.err.count('\n')), (4, '', 1), repr(r))
            has(r.err, 'bulkhead run --share')


def test_wrong_words_are_one_line():
    with shared() as env:
        for words, args in (
                ('--share', ['--share', '0']), ('--share', ['--share', '10001']), ('--share', ['--share', '30%']),
                ('--cap', ['--cap', '0%']), ('--cap', ['--cap', '101%']), ('--cap', ['--cap', '12.34%']), ('--floor', ['--floor', 'x']),
                (('--cap', '1%'), ['--cap', '1']), (('--floor', '50.0% or 0.5%'), ['--floor', '0.5']),
                (('--floor 30%', '--cap 20%'), ['--floor', '30%', '--cap', '20%']), ('--name', ['--name', 'x', '--memory', '1GiB']),
                ('--name', ['--share', '1', '--name', 'A b']), ('--name', ['--share', '1', '--name', '4711'])):
            gate.refused(2, words, *args, '--', 'touch', 'ran', **env)
        assert not os.path.exists('ran') and os.listdir('run') == [], 'something was started'


def test_pause_and_resume():
    with shared() as env:
        a, b = spin(env, '--share', '100', '--name', 'a'), spin(env, '--share', '100', '--name', 'b')
        until(lambda: {'a', 'b'} <= rows(env).keys())
        order(env, 'pause', 'a')
        same(row(env, 'a')['state'], 'paused')
        time.sleep(0.1)  # what was being written down when it was paused
        assert not advances(env, 'a') and advances(env, 'b'), rows(env)
        order(env, 'resume', str(row(env, 'a')['lease']))
        until(lambda: advances(env, 'a'))
        order(env, 'pause', 'b')
        for p in (b, a):
            if p is b:
                order(env, 'resume', 'b')
            rate(p)
        r = bulkhead('pause', 'nobody', **env)
        same(r.rc, 4, repr(r))


def test_a_pause_ends_with_the_governor():
    with shared() as env:
        p = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        order(env, 'pause', 'a')
        os.kill(governor(env), signal.SIGKILL)
        done(p)  # it goes on
        until(lambda: row(env, 'a'))  # with another one, which is found in its own time
        _, err = rate(p)
        has(err, 'the governor was gone, or silent; shares go on')


def test_a_cap_outlives_its_governor_where_the_next_one_is_of_slices_alone():
    with shared() as env:
        a = spin(env, '--cap', '10%', '--share', '100', '--name', 'a')
        b = spin({**env, 'BULKHEAD_GOVERN': 'slices'}, '--share', '100', '--name', 'b')
        until(lambda: row(env, 'a') and row(env, 'b'))
        first = governor(env)
        os.kill(a.pid, signal.SIGSTOP)  # so that the other one starts it
        os.kill(first, signal.SIGKILL)
        until(lambda: row(env, 'b'))
        os.kill(a.pid, signal.SIGCONT)
        until(lambda: row(env, 'a'))
        has(bulkhead('shares', **env).out, 'not by slices alone yet')
        r = bulkhead('run', '--cap', '10%', '--', 'true', **env)
        same(r.rc, 1, repr(r))
        until(lambda: row(env, 'a')['deliveredPermille'] in range(70, 131))
        for p in a, b:
            _, err = rate(p)
            same(err.count('shares go on'), 1, err)


def test_a_warden_that_dies_while_its_lease_is_paused():
    with shared() as env:
        p = spin(env, '--share', '100', '--name', 'a')
        until(lambda: row(env, 'a'))
        number = row(env, 'a')['lease']
        order(env, 'pause', 'a')
        os.kill(warden_of(p), signal.SIGKILL)
        until(lambda: row(env, 'a').get('lease') == number)
        order(env, 'resume', 'a')
        _, err = rate(p)
        has(err, 'another one took over')


def test_shares_go_on_with_another_governor():
    with shared() as env:
        a, b = spin(env, '--share', '300', '--name', 'a'), spin(env, '--share', '100', '--name', 'b')
        until(lambda: {'a', 'b'} <= rows(env).keys())
        before = {n: r['lease'] for n, r in rows(env).items()}
        os.kill(governor(env), signal.SIGKILL)
        until(lambda: governor(env) and {n: r['lease'] for n, r in rows(env).items()} == before)
        assert 0.55 < part(a, b) < 0.9
        rate(a), rate(b)


# Its own group is not without a shell, as far as the kernel can tell: so it can stop by what stops jobs.
STOPS = """
import os, signal, sys, time
os.setpgid(0, 0)
first = os.getpid()
if sys.argv[1] == 'wakes':
    if os.fork() == 0:
        time.sleep(0.5)
        os.kill(first, signal.SIGCONT)
        os._exit(0)
    os.kill(first, signal.SIGTSTP)
elif os.fork() != 0:
    os.kill(first, signal.SIGTSTP)
    os.wait()
    os._exit(0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def stops(env, how):
    p = begin(env, sys.executable, '-c', STOPS, how, TENANT, 'spin', '0', WORK_US, options=('--cap', '10%', '--name', 'a'))
    same(p.stdout.readline(), b'ready\n', p.stderr.read() if p.poll() is not None else '')
    until(lambda: row(env, 'a'))
    return p


def follows_another_governor(env, p):
    os.kill(governor(env), signal.SIGKILL)
    until(lambda: governor(env) and row(env, 'a'))
    assert rates(p)[0] < 0.25 * WHOLE


def test_a_command_that_stops_and_is_woken_from_inside_is_governed_all_the_same():
    with shared() as env:
        p = stops(env, 'wakes')
        until(lambda: state(p.pid) != 'T')
        follows_another_governor(env, p)
        has(rate(p)[1], 'shares go on')


def test_a_command_that_is_stopped_while_its_child_works_is_governed_all_the_same():
    with shared() as env:
        p = stops(env, 'stays')
        until(lambda: state(p.pid) == 'T')  # as a shell has to see it
        first = next(c for c in children(p.pid) if not comm(c).startswith('bulkhead'))
        follows_another_governor(env, p)
        until(lambda: state(p.pid) == 'T')
        same(state(first), 'T')  # nobody woke it
        os.kill(warden_of(p), signal.SIGKILL)
        until(lambda: warden_of(p))
        until(lambda: state(p.pid) == 'T')
        os.kill(first, signal.SIGCONT)
        until(lambda: state(p.pid) != 'T')
        _, err = rate(p)
        has(err, 'shares go on')
        has(err, 'another one took over')


def test_a_launcher_whose_stderr_is_full_goes_on():
    with shared() as env:
        fill = 'import os, sys; os.set_blocking(2, False)\n' \
            'try:\n while True: os.write(2, b"x")\n' \
            'except BlockingIOError: os.set_blocking(2, True); os.execv(sys.argv[1], sys.argv[1:])'
        p = begin(env, sys.executable, '-c', fill, TENANT, 'spin', '0', WORK_US, options=('--cap', '10%', '--name', 'a'))
        same(p.stdout.readline(), b'ready\n')
        for _ in range(2):
            until(lambda: row(env, 'a'))
            follows_another_governor(env, p)
        _, err = rate(p)
        has(err, 'shares go on')


def test_who_kills_the_launcher_kills_the_command():
    with shared() as env:
        a, b = spin(env, '--share', '100', '--name', 'a'), spin(env, '--share', '100', '--name', 'b')
        until(lambda: {'a', 'b'} <= rows(env).keys())
        command = next(c for c in children(a.pid) if not comm(c).startswith('bulkhead'))
        a.kill()
        a.communicate(timeout=60)
        gone(command)
        rate(b)


def test_two_governors_are_one():
    with shared() as env:
        many = [begin(env, 'sleep', '1.5', options=('--share', '1')) for _ in range(6)]
        until(lambda: len(json.loads(bulkhead('shares', '-o', 'json', **env).out)['shares']) == 6)
        same(len(list(governors(env))), 1)
        for p in many:
            same(finish(p), (0, '', ''))


def test_a_card_without_slices_of_ours_when_all_is_over():
    """The view of the card is as it was asked for, and memory is capped beside the share."""
    with shared() as env:
        for view, total in (('slice', 2 << 30), ('card', None)):
            p = begin(env, TENANT, 'info', options=('--share', '5', '--memory', '2GiB', '--view', view))
            rc, out, err = finish(p)
            same((rc, err), (0, ''), out)
            shown = int(lines(out)['total'])
            assert shown == total if total else shown > 100 << 30, (view, out)


def test_suspend_and_resume():
    if not SUSPEND:
        raise gate.Skip('no program to suspend was given')
    with shared() as env:
        p = begin(env, SUSPEND, 'hold', '64MiB', options=('--share', '100', '--memory', '4GiB', '--name', 'a'))
        pid = int(p.stdout.readline().split()[1])
        until(lambda: row(env, 'a').get('pids') == [pid])

        def total():
            p.stdin.write(b'?\n')
            p.stdin.flush()
            return p.stdout.readline()

        before = total()
        has(before, b'sum ')
        r = bulkhead('suspend', 'a', **env)
        same(r.rc, 0, repr(r))
        same(row(env, 'a')['state'], 'suspended')
        # it outlives the governor, and whoever resumes finds it
        os.kill(governor(env), signal.SIGKILL)
        until(lambda: row(env, 'a'))
        r = bulkhead('resume', 'a', **env)
        same(r.rc, 0, repr(r))
        same(total(), before)
        until(lambda: row(env, 'a').get('pids') == [pid])
        p.stdin.close()
        p.stdin = None
        same(finish(p)[0], 0)


if __name__ == '__main__':
    gate.tap.main(globals())
