# SPDX-License-Identifier: Apache-2.0
"""A warden that is killed is followed by another one, and the command does not notice.

The real command, launcher, warden and gate on simulated silicon; the wardens are killed with SIGKILL at moments picked at
random.

Usage: replace.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import (GIB, NOBODY, QUIET, TENANT, children, comm, finish, gated, gone, lines, node, start,  # noqa: E402
                 state, status_field, tap, until)
from tap import has, same  # noqa: E402

SUCCESSORS = 3  # the launcher starts so many within ten seconds
TOOK_OVER = r'bulkhead: the warden was killed by signal 9; another one took over in \d+ ms\n'
REFUSED = 'video memory is refused to the command from now on\n'


def wardens(launcher):
    found = []
    for child in children(launcher):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may be gone by now
            if comm(child) == 'bulkhead-warden' and state(child) != 'Z':
                found.append(child)
    return found


def kill_warden(p, but=0):
    """Ends the warden there is, other than the one that was killed last; None: the command has ended before."""
    found = []

    def seen():
        found[:] = [] if p.poll() is not None else [w for w in wardens(p.pid) if w != but]
        return found or p.poll() is not None

    until(seen)
    if not found:
        return None
    os.kill(found[0], signal.SIGKILL)
    return found[0]


def took_over(err, times):
    """Lines that say so, and nothing else. One that was killed while it took over is not told of, and one killed after the
    command's end is not followed."""
    assert re.fullmatch(f'({TOOK_OVER}){{0,{times}}}(bulkhead: the warden was killed by signal 9; {REFUSED})?', err), (times, err)
    return err.count('took over')


def kill_some(p, dice, longest=0.4):
    """As many as may follow one another, at random, once the command runs. How many died."""
    until(lambda: p.poll() is not None or any(not comm(c).startswith('bulkhead') for c in children(p.pid)))
    last = 0
    for n in range(SUCCESSORS):
        time.sleep(dice.random() * longest)
        last = kill_warden(p, last)
        if not last:
            return n
    return SUCCESSORS


def test_a_tenant_that_is_never_still():
    with node() as env:
        followed, seed = 0, 0
        while seed < 4 or (followed < 6 and seed < 40):  # on a quick machine the command ends before many are killed
            seed += 1
            churn = (*QUIET, TENANT, 'churn', '4000', str(seed))
            undisturbed = gated(env, *churn, cap='20GiB')
            same(undisturbed.rc, 0, repr(undisturbed))
            p = start(env, *churn, cap='20GiB')
            killed = kill_some(p, random.Random(seed))
            rc, out, err = finish(p)
            same((rc, out), (0, undisturbed.out), err)
            followed += took_over(err, killed)
        assert followed >= 6, followed


def test_filling_up_to_the_cap():
    paths = ('plain', 'small', 'vmm-released', 'async', 'array', 'managed', 'contexts')
    followed, seed = 0, -1
    with node() as env:
        while seed + 1 < len(paths) or (followed < 5 and seed < 40):
            seed += 1
            path = paths[seed % len(paths)]
            undisturbed = gated(env, *QUIET, TENANT, 'fill', path)
            p = start(env, *QUIET, TENANT, 'fill', path)
            killed = kill_some(p, random.Random(seed), 0.1)
            rc, out, err = finish(p)
            same((rc, lines(out).get('got')), (0, lines(undisturbed.out)['got']), f'{path} {err}')
            followed += took_over(err, killed)
    assert followed >= 5, followed


def test_what_was_held_stays_charged():
    with node() as env:
        os.mkfifo('go')
        hold = f'{" ".join(QUIET)} {TENANT} hold 5GiB 1000'
        script = f'{hold} & read -r x < go; {" ".join(QUIET)} {TENANT} fill plain; kill $!'
        p = start(env, 'sh', '-c', script)
        same(p.stdout.readline(), b'ready\n')
        last = 0
        for _ in range(SUCCESSORS):
            last = kill_warden(p, last)
            has(p.stderr.readline().decode(), 'took over')
        pathlib.Path('go').write_text('\n')
        rc, out, err = finish(p)
        same(rc, 0, err)
        # two contexts and 5 GiB are taken: 3 GiB fit whole
        same(int(lines(out)['got']), 3 * GIB, out)
        has(lines(out)['error'], 'CUDA_ERROR_OUT_OF_MEMORY')


def test_a_tenant_may_not_stop_who_took_over():
    """It laid root down after its first warden had started; the second one must not be its user's either."""
    with node() as env:
        script = 'echo ready; while read -r it; do kill -STOP $it 2>/dev/null; echo $?; done'
        p = start(env, 'setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', 'sh', '-c', script)
        same(p.stdout.readline(), b'ready\n')
        last = 0
        for _ in range(SUCCESSORS):
            w = next(w for w in wardens(p.pid) if w != last)
            same(status_field(w, 'Uid'), '0')
            p.stdin.write(b'%d\n' % w)
            p.stdin.flush()
            same(p.stdout.readline(), b'1\n', 'the tenant stopped its warden')
            last = kill_warden(p, last)
            has(p.stderr.readline().decode(), 'took over')
        same(finish(p)[0], 0)


def told(out):
    """But for what depends on the moment: how much the last of the others still had when one looked."""
    return sorted(line for line in out.splitlines() if not line.startswith(('free ', 'taken ')))


def test_processes_that_come_and_go():
    with node() as env:
        one = f'{" ".join(QUIET)} {TENANT} churn 300'
        script = f'for i in 1 2 3 4 5 6; do {one} $i & {one} 1$i & wait; done; {" ".join(QUIET)} {TENANT} fill plain'
        undisturbed = gated(env, 'sh', '-c', script, cap='20GiB')
        same(undisturbed.rc, 0, repr(undisturbed))
        p = start(env, 'sh', '-c', script, cap='20GiB')
        killed = kill_some(p, random.Random(5), 1.0)
        rc, out, err = finish(p)
        same((rc, lines(out)['got']), (0, lines(undisturbed.out)['got']), err)
        same(told(out), told(undisturbed.out))
        assert took_over(err, killed) >= 1, err


def test_the_numbers_at_the_end_are_of_all_wardens():
    with node() as env:
        p = start(env, 'sh', '-c', f'{" ".join(QUIET)} {TENANT} fill plain; echo done; read -r x', options=['--stats'])
        while p.stdout.readline() != b'done\n':
            pass
        kill_warden(p)
        has(p.stderr.readline().decode(), 'took over')
        rc, _, err = finish(p, b'\n')
        same(rc, 0, err)
        m = re.fullmatch(r'bulkhead: peak ([\d.]+) GiB of 10 GiB, (\d+) refused for memory, 0 denied, 0 killed, (\d+) calls seen\n', err)
        assert m and float(m[1]) >= 9 and int(m[2]) >= 1 and int(m[3]) > 10, err


def test_a_successor_killed_while_it_takes_over():
    with node() as env:
        p = start(env, *QUIET, TENANT, 'churn', '2000', '1', cap='20GiB')
        same(p.stdout.readline(), b'ready\n')
        first = kill_warden(p)
        second = kill_warden(p, first)  # as soon as it is there
        assert second, 'the command ended before'
        rc, out, err = finish(p)
        same((rc, lines(out)['wrong']), (0, '0'), err)
        assert re.fullmatch(f'({TOOK_OVER}){{1,2}}', err), err


def kill_until_given_up(p):
    last = 0
    for _ in range(SUCCESSORS):
        last = kill_warden(p, last)
        has(p.stderr.readline().decode(), 'took over')
    kill_warden(p, last)
    line = p.stderr.readline().decode()
    while line.startswith('tenant:'):  # it may be the first to say something
        line = p.stderr.readline().decode()
    same(line, f'bulkhead: the warden was killed by signal 9; {SUCCESSORS} others had taken over within 10 s; {REFUSED}')
    same(wardens(p.pid), [])


def test_too_many_deaths_are_the_end_of_it():
    with node() as env:
        # before the tenant has begun: it cannot begin
        p = start(env, 'sh', '-c', f'echo ready; read -r x; exec {" ".join(QUIET)} {TENANT} fill plain')
        p.stdout.readline()
        kill_until_given_up(p)
        rc, out, err = finish(p, b'\n')
        assert rc > 0 and 'got' not in out, (rc, out, err)
        # in the middle of its work: what it asks for fails, and it ends
        p = start(env, *QUIET, TENANT, 'churn', '100000000', '1')
        same(p.stdout.readline(), b'ready\n')
        kill_until_given_up(p)
        rc, out, err = finish(p)
        assert rc > 0, (rc, out, err)
        # and while it does nothing: nothing happens to it
        p = start(env, 'sh', '-c', 'echo ready; read -r x; exit 3')
        p.stdout.readline()
        kill_until_given_up(p)
        same(finish(p, b'\n'), (3, '', ''))


def test_a_journal_that_is_damaged():
    with node() as env:
        p = start(env, 'sh', '-c', f'echo ready; read -r x; exec {" ".join(QUIET)} {TENANT} fill plain')
        p.stdout.readline()
        journal = next(f'/proc/{p.pid}/fd/{f}' for f in os.listdir(f'/proc/{p.pid}/fd')
                       if 'bulkhead-journal' in os.readlink(f'/proc/{p.pid}/fd/{f}'))
        with open(journal, 'r+b') as f:
            f.write(b'\xff' * 64)
        kill_warden(p)
        line = p.stderr.readline().decode()
        has(line, 'bulkhead: the warden was killed by signal 9; another one could not take over: the warden\'s journal ')
        has(line, REFUSED)
        rc, out, err = finish(p, b'\n')
        assert rc > 0 and 'got' not in out and err.count('took over') == 0, (rc, out, err)


def test_nothing_is_left_behind():
    with node() as env:
        # the warden ends with its lease although somebody else keeps the listener
        p = start(env, 'sh', '-c', 'echo ready; read -r x')
        p.stdout.readline()
        first = kill_warden(p)
        has(p.stderr.readline().decode(), 'took over')
        (second,) = wardens(p.pid)
        assert second != first
        same(finish(p, b'\n'), (0, '', ''))
        gone(second)
        # and with the launcher, also while nobody serves
        p = start(env, *QUIET, TENANT, 'churn', '100000000', '1')
        same(p.stdout.readline(), b'ready\n')
        command = next(c for c in children(p.pid) if comm(c) == 'tenant')
        before = kill_warden(p)
        p.kill()
        p.communicate(timeout=60)
        gone(command)
        until(lambda: not [w for w in all_wardens() if w != before])


def all_wardens():
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            mine = os.path.abspath('h').encode() in pathlib.Path(f'/proc/{pid}/environ').read_bytes()
            if mine and comm(pid) == 'bulkhead-warden' and state(pid) != 'Z':
                found.append(int(pid))
        except OSError:
            continue
    return found


if __name__ == '__main__':
    tap.main(globals())
