# SPDX-License-Identifier: Apache-2.0
"""bulkhead-keeper with a container: the runtime's container is held by the lease's gate, and its end is the lease's.

Usage: container.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-KEEPER PATH-TO-ASK
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from keeping import (BIN, GIB, KEEPER, QUIET, Skip, TENANT, alive, environment, has, in_cgroup, kill, name_of, place, same, tap,  # noqa: E402
                     until)

# The machine's programs, and wherever this was built and runs.
SHARED = sorted({d for d in ('bin', 'etc', 'lib', 'lib64', 'sbin', 'usr', 'tmp', 'var', 'root', 'opt', 'srv') if os.path.isdir(f'/{d}')} |
                {os.path.realpath(p).split('/')[1] for p in (TENANT, os.getcwd())})


def profile(*options):
    r = subprocess.run([BIN, 'adopt', '--profile', *options], capture_output=True, check=True, timeout=60, env=environment())
    return json.loads(r.stdout)


def bundle(lease_name, cgroup, args, env, seccomp):
    top = pathlib.Path(f'bundle-{lease_name}')
    for d in (*SHARED, 'proc', 'dev'):
        (top / 'rootfs' / d).mkdir(parents=True)
    mounts = [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},
              {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['mode=755']}]
    mounts += [{'destination': f'/{d}', 'type': 'bind', 'source': f'/{d}', 'options': ['rbind', 'rw']} for d in SHARED]
    linux = {'namespaces': [{'type': t} for t in ('pid', 'mount', 'uts')], 'cgroupsPath': f'/{cgroup}',
             'resources': {'pids': {'limit': 100}}}
    if seccomp:
        linux['seccomp'] = seccomp
    rights = {k: ['CAP_KILL'] for k in ('bounding', 'effective', 'permitted')}
    config = {'ociVersion': '1.0.2', 'hostname': lease_name, 'root': {'path': 'rootfs'}, 'mounts': mounts, 'linux': linux,
              'process': {'terminal': False, 'user': {'uid': 0, 'gid': 0}, 'args': list(args), 'cwd': '/',
                          'env': [f'PATH={os.environ["PATH"]}', QUIET] + [f'{k}={v}' for k, v in env.items()],
                          'capabilities': rights, 'noNewPrivileges': True}}
    (top / 'config.json').write_text(json.dumps(config))
    return str(top.resolve())


def lease(p, *args, gate=True, listener=True, **more):
    if not shutil.which('runc'):
        raise Skip('no runc')
    name = f'bulkhead-test-{os.getpid()}-{p.last + 1}'
    socket = os.path.abspath(f'l{p.last + 1}.sock')
    options = ('--socket', socket) if listener else ()
    seccomp = profile(*options, *more.pop('profile', ())) if gate and listener else None
    cgroup = f'bulkhead-test-{os.getpid()}/L{p.last + 1}'
    return p.lease(tier='container', argv=None, env=None, container=name, cgroup=cgroup,
                   runtime=[more.pop('runtime', 'runc'), '--root', os.path.abspath('runc')],
                   bundle=bundle(name, cgroup, args, p.env, seccomp), gate=gate or None, capBytes=10 * GIB if gate else None,
                   listener=socket if gate else None, **more)


def can_run(p):
    x = lease(p, 'true', gate=False)
    e = x.run()
    if e['how'] != 'exited' or e.get('status', 0):
        raise Skip(f'runc cannot run a container here: {x.text("err")[-300:]}')


def test_the_end_is_the_containers():
    with place() as p:
        can_run(p)
        for gate in (False, True):
            x = lease(p, 'sh', '-c', 'echo out; echo err >&2; sleep 1; exit 5', gate=gate)
            e = x.run()
            same((e['how'], e.get('status', 0), e.get('counted', False), x.text(), x.text('err')), ('exited', 5, gate, 'out\n', 'err\n'),
                 str(e) + x.text('keeper.log'))


def test_one_that_is_over_at_once():
    """It may have ended before anybody could hold it. It ran, so its status is the end."""
    with place() as p:
        can_run(p)
        for n in range(5):
            x = lease(p, 'sh', '-c', f'exit {n + 1}')
            e = x.run()
            same((e['how'], e['status']), ('exited', n + 1), str(e) + x.text('keeper.log'))


# A runtime whose caller stands still from before it sends the listener until after it has ended.
LATE = """#!/bin/sh
case "$*" in *" run "*) ;; *) exec runc "$@";; esac
keeper=$PPID
kill -STOP $keeper
(while read -r _ _ state _ < /proc/$$/stat && [ "$state" != Z ]; do sleep 0.05; done; kill -CONT $keeper) > watcher 2>&1 &
runc "$@"
"""


def test_one_that_is_over_before_anybody_looks():
    """Its runtime has ended, and what it sent waits to be read."""
    with place() as p:
        can_run(p)
        late = pathlib.Path('late').resolve()
        late.write_text(LATE)
        late.chmod(0o755)
        x = lease(p, 'sh', '-c', 'exit 7', runtime=str(late))
        e = x.run()
        same((e['how'], e.get('status')), ('exited', 7), str(e) + x.text('keeper.log') + x.text('err'))
        # One that fails before there is a container has sent nothing.
        x = lease(p, '/nowhere', runtime=str(late))
        same(x.run()['how'], 'notBegun')


# A runtime whose caller stands still from before it sends the listener until somebody lets it go on.
HELD_UP = """#!/bin/sh
case "$*" in *" run "*) ;; *) exec runc "$@";; esac
echo $PPID > HERE/keeper
kill -STOP $PPID
exec runc "$@"
"""


def held_up(p, *args):
    """A lease whose container runs while its keeper does not; and its keeper."""
    slow = pathlib.Path('slow').resolve()
    here = os.getcwd()
    slow.write_text(HELD_UP.replace('HERE', here))
    slow.chmod(0o755)
    x = lease(p, 'sh', '-c', f'touch {here}/ran; {" ".join(args)}', runtime=str(slow))
    starts = subprocess.Popen(x.command('start', KEEPER), env=environment(**p.env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: os.path.exists('ran'))
    return x, starts, int(pathlib.Path('keeper').read_text())


def test_one_that_came_while_nobody_looked_until_its_time_was_over():
    """The keeper had no processor: the listener waits to be read, and so does the end of the time in which it had to come."""
    with place() as p:
        can_run(p)
        p.env['BULKHEAD_CONTAINER_TIMEOUT'] = '1'
        x, starts, keeper = held_up(p, f'while ! test -e {os.getcwd()}/go; do sleep 0.1; done; exit 7')
        time.sleep(1.2)  # what is tried is that this passes
        kill(keeper, signal.SIGCONT)
        same(starts.wait(60), 0)
        x.runs()
        pathlib.Path('go').touch()
        e = x.end()
        same((e['how'], e.get('status'), e.get('counted')), ('exited', 7, True), str(e) + x.text('keeper.log') + x.text('err'))


def test_one_that_came_and_is_to_stop():
    """The order to stop it is read before its listener is. It ran, and is ended; nobody may say that it never began."""
    with place() as p:
        can_run(p)
        x, starts, keeper = held_up(p, 'exec sleep 600')
        stops = subprocess.Popen(x.command('stop', 0), env=environment(**p.env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until(lambda: 'S' in pathlib.Path(f'/proc/{stops.pid}/stat').read_text().rpartition(')')[2].split()[0])
        kill(keeper, signal.SIGCONT)
        e = x.end()
        same((starts.wait(60), stops.wait(60)), (0, 0))
        assert e['how'] in ('exited', 'killed') and e['stopped'], str(e) + x.text('keeper.log') + x.text('err')


def test_one_that_is_given_up_is_gone():
    """A runtime that is too slow: nothing of it runs afterwards."""
    with place() as p:
        can_run(p)
        p.env['BULKHEAD_CONTAINER_TIMEOUT'] = '1'
        stuck = pathlib.Path('stuck').resolve()
        stuck.write_text(f'#!/bin/sh\ncase "$*" in *" run "*) echo $$ > {os.getcwd()}/runs; exec sleep 600;; esac\n'
                         f'kill $(cat {os.getcwd()}/runs)\nexec runc "$@"\n')
        stuck.chmod(0o755)
        x = lease(p, 'true', runtime=str(stuck))
        e = x.run()
        same(e['how'], 'notBegun', str(e))
        has(e['why'], 'no listener came')


def test_a_share_is_held():
    with place() as p:
        can_run(p)
        x = lease(p, TENANT, 'hold', '2GiB', '600', share={'weight': 100, 'name': 'acme'}, profile=('--view', 'slice')).start().runs()
        until(lambda: 'ready' in x.text())
        r = subprocess.run([BIN, 'shares', '-o', 'json'], capture_output=True, check=True, timeout=60, env=environment(**p.env))
        has(r.stdout.decode(), 'acme')
        _, below = x.pids()
        for c in below:
            if name_of(c) == 'bulkhead-warden':
                kill(c)
        until(lambda: 'held again' in x.text('keeper.log'))
        same(x.ask('stop', 0).rc, 0)
        e = x.end()
        assert e['counted'] and e['peakBytes'] >= 2 * GIB, e
        # A profile that does not send what a share needs
        x = lease(p, 'sleep', '600', share={'weight': 100, 'name': 'acme'}, profile=('--view', 'card'))
        e = x.run()
        same((e['how'], e['status']), ('exited', 137), str(e))
        has(e['why'], 'seccomp profile')


# Waits for room, and tells how often there was some.
SAYS = """
import socket, sys
s, n = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), 0
while True:
    s.sendto(b'done 1', sys.argv[1])
    n += 1
    with open(sys.argv[2], 'w') as f:
        f.write(str(n))
"""


def test_what_it_says_is_taken_whatever_becomes_of_wardens():
    with place() as p:
        can_run(p)
        os.makedirs('probes')
        os.chmod('probes', 0o700)
        at, told = os.path.abspath('probes/L'), pathlib.Path('told')

        def said():
            return int((told.exists() and told.read_text()) or 0)
        x = lease(p, sys.executable, '-c', SAYS, at, str(told.resolve()), share={'weight': 100, 'name': 'acme'}, probe=at, profile=('--view', 'slice'))
        x.start().runs()
        until(lambda: said() > 100)
        # One after the other dies, until there is none any more. The container goes on, and nobody in it waits for a reader.
        while 'not held' not in x.text('keeper.log'):
            for c in x.pids()[1]:
                if name_of(c) == 'bulkhead-warden':
                    kill(c)
            time.sleep(0.01)
        same([c for c in x.pids()[1] if name_of(c) == 'bulkhead-warden'], [])
        before = said()
        until(lambda: said() > before + 100)
        same(os.listdir('probes'), ['L'])
        same(x.ask('stop', 0).rc, 0)
        same(x.end()['how'], 'exited')
        same(os.listdir('probes'), [])
        # One that is not to be held so does not begin.
        os.chmod('probes', 0o755)
        e = lease(p, 'true', share={'weight': 100, 'name': 'acme'}, probe=at, profile=('--view', 'slice')).run()
        same(e['how'], 'notBegun')
        has(e['why'], 'is not a folder that this user alone may enter')


def test_the_cap_holds():
    with place() as p:
        can_run(p)
        x = lease(p, TENANT, 'fill', 'plain')
        e = x.run()
        same((e['how'], e.get('status', 0)), ('exited', 0), str(e) + x.text('err') + x.text('keeper.log'))
        has(x.text(), 'CUDA_ERROR_OUT_OF_MEMORY')
        assert 8 * GIB <= e['peakBytes'] <= 10 * GIB, e


def test_stop():
    with place() as p:
        can_run(p)
        for script, status in (('trap "exit 3" TERM; echo ready; while :; do sleep 0.1; done', 3),
                               ('trap : TERM; echo ready; while :; do sleep 0.1; done', 137)):
            x = lease(p, 'sh', '-c', script).start().runs()
            until(lambda: x.text() == 'ready\n')
            same(x.ask('stop', 1000).rc, 0)
            e = x.end()
            same((e['how'], e['status'], e['stopped'], e['counted']), ('exited', status, True, True), str(e) + x.text('keeper.log'))


def test_one_that_cannot_be_held_does_not_run():
    with place() as p:
        can_run(p)
        x = lease(p, 'sh', '-c', 'sleep 600', listener=False)  # a bundle without the filter: nobody comes
        x.start()
        until(lambda: x.status()['state'] == 'starts')
        same(x.ask('stop', 0).rc, 0)
        e = x.end()
        same((e['how'], e['stopped']), ('notBegun', True))
        same(in_cgroup(x.cgroup), set())
        x = lease(p, '/nowhere')
        same(x.run()['how'], 'notBegun')
        has(x.text('err'), 'nowhere')


def test_a_warden_that_dies_is_followed():
    with place() as p:
        can_run(p)
        x = lease(p, TENANT, 'hold', '2GiB', '600').start().runs()
        until(lambda: 'ready' in x.text())
        _, below = x.pids()
        for c in below:
            if name_of(c) == 'bulkhead-warden':
                kill(c)
        until(lambda: 'held again' in x.text('keeper.log'))
        same(x.ask('stop', 0).rc, 0)
        e = x.end()
        assert e['counted'] and e['peakBytes'] >= 2 * GIB, e


def test_a_keeper_that_is_killed():
    with place() as p:
        can_run(p)
        x = lease(p, 'sh', '-c', 'sleep 600').start().runs()
        keeper, below = x.pids()
        kill(keeper)
        until(lambda: x.look()['found'] == 'lost')
        r = x.empty()
        same(r.rc, 0, repr(r))
        until(lambda: not any(alive(c) for c in below))
        for name in ('lock', 'sock'):
            os.unlink(f'r/{x.number}.{name}')
        subprocess.run(['runc', '--root', os.path.abspath('runc'), 'delete', '--force', x.spec['container']], capture_output=True, check=False)


if __name__ == '__main__':
    tap.main(globals())
