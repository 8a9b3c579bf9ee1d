# SPDX-License-Identifier: Apache-2.0
"""bulkhead-keeper: a lease's work has its user, its place and its limits, and how it ended is on disk whoever else has died.

The real keeper, warden, filter, gate and cgroups; the driver and its library are simulated silicon.

Usage: run.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-KEEPER PATH-TO-ASK
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from keeping import (GIB, KEEPER, NOBODY, TENANT, alive, environment, has, in_cgroup, kill, lines, name_of, place, same,  # noqa: E402
                     tap, until)


def test_the_end_is_the_works():
    with place() as p:
        for status in (0, 1, 42, 255):
            e = p.lease('sh', '-c', f'exit {status}').run()
            same((e['how'], e.get('status', 0), e.get('why', '')), ('exited', status, ''))
            assert e['counted'] and 0 < e['startedMs'] <= e['endedMs'], e
        for s in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            e = p.lease('sh', '-c', f'kill -{int(s)} $$').run()
            same((e['how'], e['signal'], 'stopped' in e), ('killed', s, False))


def test_output_environment_folder_and_user():
    with place() as p:
        os.mkdir('work')
        os.chmod('work', 0o777)
        script = 'id -u; id -g; id -G; pwd; echo $A; env | wc -l; ulimit -c; cat; ls /proc/self/fd | wc -l; echo wrong >&2; umask'
        lease = p.lease('sh', '-c', script, groups=[7, 8], gid=9, cwd=os.path.abspath('work'),
                        env=['PATH=' + os.environ['PATH'], 'A=one two'])
        same(lease.run()['how'], 'exited')
        out = lease.text().splitlines()
        # PWD is the shell's own; ls has a descriptor for the folder it lists
        same(out[:6], [str(NOBODY), '9', '9 7 8', os.path.abspath('work'), 'one two', '3'])
        same(out[7:], ['4', '0022'])
        same(lease.text('err'), 'wrong\n')
        same(oct(os.stat(f'{lease.folder}/out').st_mode & 0o777), '0o600')


def test_it_is_nobodys_child():
    with place() as p:
        lease = p.lease('sleep', '60').start().runs()
        pid = int(lease.look()['pid'])
        session = os.getsid(pid)
        assert session not in (pid, os.getsid(0)) and not alive(session), (session, pid)
        same(os.readlink(f'/proc/{pid}/cwd'), '/')
        lease.ask('stop', 0)
        lease.end()


def test_groups_of_the_user():
    with place() as p:
        lease = p.lease('id', '-G', user='root', uid=NOBODY, gid=0)
        same(lease.run()['how'], 'exited')
        same(lease.text().split()[0], '0')


def ignore_a_signal_of_the_library():
    """Number 32, as some runtimes hand it on; the C library has no call for it, the kernel has."""
    ignored = (ctypes.c_uint64 * 4)(1, 0, 0, 0)
    number = {'x86_64': 13, 'aarch64': 134}[os.uname().machine]
    same(ctypes.CDLL(None).syscall(number, 32, ctypes.byref(ignored), None, ctypes.c_size_t(8)), 0)


def test_rights_are_gone():
    ignore_a_signal_of_the_library()
    with place() as p:
        lease = p.lease('sh', '-c', 'grep -E "^(Cap(Prm|Eff)|NoNewPrivs|SigBlk|SigIgn)" /proc/self/status; cat /proc/self/oom_score_adj; '
                                    'ls /proc/1/fd; kill -9 $PPID; echo $?')
        same(lease.run()['how'], 'exited')
        got = lines(lease.text().replace('\t', ' '))
        same([int(got[k], 16) for k in ('CapPrm:', 'CapEff:', 'SigBlk:', 'SigIgn:')], [0, 0, 0, 0])
        same(got['NoNewPrivs:'], '1')
        same(lease.text().splitlines()[-1], '1')  # the keeper is not its to kill


def test_the_cap_holds_and_is_told():
    with place() as p:
        lease = p.lease(TENANT, 'fill', 'plain')
        e = lease.run()
        same((e['how'], e.get('status', 0)), ('exited', 0), lease.text('err'))
        has(lease.text(), 'CUDA_ERROR_OUT_OF_MEMORY')
        assert 8 * GIB <= e['peakBytes'] <= 10 * GIB and e['refused'] >= 1, e


def test_a_share_is_held():
    with place() as p:
        lease = p.lease(TENANT, 'fill', 'plain', share={'weight': 100, 'name': 'acme'})
        e = lease.run()
        same((e['how'], e.get('status', 0), e['counted']), ('exited', 0, True), lease.text('err') + lease.text('keeper.log'))


def test_a_lease_with_a_share_may_say_what_it_does():
    with place() as p:
        says = ("import os, socket; at = os.environ['BULKHEAD_PROBE']; "
                "[socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'done 5', at) for i in range(3)]; "
                "assert os.getuid() and not os.access(os.path.dirname(at), os.R_OK)")
        lease = p.lease('sh', '-c', f'test -S "$BULKHEAD_PROBE" && exec python3 -S -c "{says}"',
                        share={'weight': 100, 'name': 'acme'})
        e = lease.run()
        same((e['how'], e.get('status', 0)), ('exited', 0), lease.text('err') + lease.text('keeper.log'))
        lease = p.lease('sh', '-c', 'test -z "$BULKHEAD_PROBE"')
        e = lease.run()
        same((e['how'], e.get('status', 0)), ('exited', 0), lease.text('err'))


def test_without_a_gate():
    with place() as p:
        lease = p.lease('sh', '-c', 'grep -E "^(Seccomp|NoNewPrivs)" /proc/self/status; sleep 60 & exit 3', gate=None, capBytes=None)
        e = lease.run()
        same((e['how'], e['status'], 'counted' in e), ('exited', 3, False))
        got = lines(lease.text().replace('\t', ' '))
        same((got['Seccomp:'], got['NoNewPrivs:']), ('0', '1'))


def test_what_it_leaves_behind_goes_with_it():
    with place() as p:
        lease = p.lease('sh', '-c', '(setsid sleep 600 & setsid sh -c "trap : TERM; sleep 600" &) ; exit 5')
        e = lease.run()
        same((e['how'], e['status'], e['counted']), ('exited', 5, True))
        same(in_cgroup(lease.cgroup), set())


def test_limits_of_the_machine():
    with place() as p:
        lease = p.lease('tail', '/dev/zero', limits={'memoryBytes': 64 << 20})  # which keeps all of a line without an end
        e = lease.run()
        same((e['how'], e['signal'], e['outOfMemory']), ('killed', signal.SIGKILL, 1))
        has(e['why'], 'no more of the machine')
        lease = p.lease('sh', '-c', 'cat /proc/self/cgroup; cat /dev/null && echo null; cat /dev/fuse || echo no fuse',
                        limits={'pids': 20, 'cpuMilli': 1000, 'cpus': '0', 'nodes': '0', 'devicesHeld': True, 'devices': [195, 0]})
        same(lease.run()['how'], 'exited')
        has(lease.text(), lease.cgroup)
        has(lease.text(), 'null\nno fuse')
        lease = p.lease('true', limits={'cpus': '4000'})
        same(lease.run()['how'], 'notBegun')


def test_output_does_not_grow_without_end():
    with place() as p:
        lease = p.lease('sh', '-c', 'seq 1 200000', outputBytes=64 << 10, gate=None, capBytes=None)
        same(lease.run()['how'], 'exited')
        old, new = lease.text('out.1'), lease.text('out')
        assert len(old) <= 32 << 10 and len(new) <= 32 << 10, (len(old), len(new))
        all_lines = (old + new).splitlines()[1:]
        same(all_lines, [str(n) for n in range(200001 - len(all_lines), 200001)])


def test_stop():
    with place() as p:
        lease = p.lease('sleep', '600').start().runs()
        r = lease.ask('stop', 5000)
        same(r.rc, 0, repr(r))
        e = lease.end()
        same((e['how'], e['signal'], e['stopped'], e['why']), ('killed', signal.SIGTERM, True, 'stopped by an order'))
        # One that does not want to, with children that do not either
        lease = p.lease('sh', '-c', 'trap : TERM; (trap : TERM; while :; do sleep 1; done) & while :; do sleep 1; done').start().runs()
        same(lease.ask('stop', 200).rc, 0)
        e = lease.end()
        same((e['how'], e['signal'], e['stopped']), ('killed', signal.SIGKILL, True))
        # One that is stopped does not hear TERM
        lease = p.lease('sleep', '600').start().runs()
        same(lease.ask('signal', int(signal.SIGSTOP)).rc, 0)
        same(lease.ask('stop', 60000).rc, 0)
        same(lease.end()['signal'], signal.SIGTERM)


def test_signals():
    with place() as p:
        lease = p.lease('sh', '-c', 'trap "echo usr1; exit 9" USR1; echo ready; while :; do sleep 0.1; done').start().runs()
        until(lambda: lease.text() == 'ready\n')
        same(lease.ask('signal', int(signal.SIGUSR1)).rc, 0)
        same((lease.end()['status'], lease.text()), (9, 'ready\nusr1\n'))
        lease = p.lease('sleep', '600').start().runs()
        same(lease.ask('signal', 99).rc, 2)
        # What is sent to the keeper itself is for nobody.
        keeper = int(lease.look()['pid'])
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE):
            os.kill(keeper, s)
        same(lease.status()['state'], 'runs')
        same(lease.ask('stop', 0).rc, 0)
        same(lease.end()['how'], 'killed')


def test_who_may_order():
    with place() as p:
        os.chmod('r', 0o711)
        lease = p.lease('sleep', '600').start().runs()
        # the socket is the keeper's alone where nobody is to attach
        same(lease.ask('status', user=NOBODY, group=NOBODY).rc, 3)
        same(lease.ask('stop', 0).rc, 0)
        lease.end()


def test_not_begun():
    with place() as p:
        e = p.lease('/nowhere/at-all').run()
        same((e['how'], e['status'], 'startedMs' in e), ('notBegun', 127, False))
        has(e['why'], '/nowhere/at-all')
        os.mkdir('locked', 0o700)
        e = p.lease('true', cwd=os.path.abspath('locked')).run()
        same(e['how'], 'notBegun')
        has(e['why'], 'working folder')
        lease = p.lease('true')
        p.env = {}  # no simulated silicon for the warden, and no real one
        e = lease.run()
        same((e['how'], 'status' in e), ('notBegun', False))
        has(e['why'], 'driver')


def test_a_spec_that_is_wrong():
    with place() as p:
        lease = p.lease('true', what=1)
        r = lease.ask('start', KEEPER)
        same(r.rc, 2, repr(r))
        has(r.err, "unknown member 'what'")
        same(lease.look()['found'], 'never')


def test_once_and_no_more():
    with place() as p:
        lease = p.lease('sleep', '600').start().runs()
        r = lease.ask('start', KEEPER)
        same(r.rc, 5, repr(r))
        has(r.err, 'has a keeper already')
        same(lease.ask('stop', 0).rc, 0)
        lease.end()
        r = lease.ask('start', KEEPER)
        same(r.rc, 5, repr(r))
        has(r.err, 'has ended already')


def test_watching():
    with place() as p:
        lease = p.lease('sh', '-c', 'sleep 0.5; exit 4').start()
        r = lease.ask('watch')
        same(r.rc, 0, repr(r))
        states = [line.split()[1] for line in r.out.splitlines() if line.startswith('state ')]
        same(states[-1], 'over')
        has(' '.join(states), 'runs over')
        has(r.out, 'status 4')


def test_attached():
    with place() as p:
        os.chmod('r', 0o711)
        lease = p.lease('sh', '-c', 'read a; echo "got $a"; echo no >&2; exit 6', attach=True).start()
        same(lease.status()['state'], 'waits')
        client = subprocess.Popen(lease.command('attach'), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  user=NOBODY, group=NOBODY, env=environment(**p.env))
        out, err = client.communicate(b'hello\n', timeout=120)
        same((client.returncode, out, err), (6, b'got hello\n', b'no\n'))
        same(lease.end()['status'], 6)
        assert not os.path.exists(f'{lease.folder}/out')
        # Others may not, and the one who leaves takes the work with him.
        lease = p.lease('sh', '-c', 'echo ready; sleep 600', attach=True).start()
        same(lease.ask('attach', user=1, group=1).rc, 3)
        client = subprocess.Popen(lease.command('attach'), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, user=NOBODY, group=NOBODY,
                                  env=environment(**p.env))
        same(client.stdout.readline(), b'ready\n')
        same(lease.ask('attach', user=NOBODY, group=NOBODY).rc, 5)
        client.kill()
        client.wait()
        e = lease.end()
        same((e['how'], e['signal'], e['stopped'], e['why']), ('killed', signal.SIGTERM, True, 'whoever was attached has left'))
        client.stdout.close()
        # Stopped before anybody came
        lease = p.lease('true', attach=True).start()
        same(lease.ask('stop', 0).rc, 0)
        e = lease.end()
        same((e['how'], e['stopped']), ('notBegun', True))


def test_one_that_was_given_up_does_not_begin():
    """The daemon fenced the lease while its keeper was about to begin, and could not see that there is one."""
    with place() as p:
        lease = p.lease('touch', os.path.abspath('r/ran'), attach=True, uid=0, gid=0).start()
        same(lease.status()['state'], 'waits')
        pathlib.Path(lease.folder, 'begun').touch()
        lease.ask('attach')
        e = lease.end()
        same((e['how'], e['why']), ('notBegun', 'lease L1 was given up before its work began'))
        same(os.path.getsize(f'{lease.folder}/begun'), 0)


def test_a_warden_that_dies_is_followed():
    with place() as p:
        lease = p.lease(TENANT, 'hold', '2GiB', '600').start().runs()
        until(lambda: 'ready' in lease.text())
        keeper, below = lease.pids()
        warden = [c for c in below if name_of(c) == 'bulkhead-warden']
        same(len(warden), 1)
        assert warden[0] not in in_cgroup(lease.cgroup) and keeper not in in_cgroup(lease.cgroup)
        kill(warden[0])
        until(lambda: 'another one took over' in lease.text('keeper.log'))
        same(lease.ask('stop', 0).rc, 0)
        e = lease.end()
        assert e['counted'] and e['peakBytes'] >= 2 * GIB, e


def forebears():
    """Whoever is there when we are gone: one of them is given what we leave behind. It is the first process of all, or somebody who asked for it."""
    pid, found = os.getpid(), []
    while pid > 1:
        pid = int(pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[1])
        found.append(pid)
    return found


def test_the_daemon_may_die():
    """Whoever started it is long gone: `ask start` is a process that ended. Its session and group are not the keeper's."""
    with place() as p:
        lease = p.lease('sleep', '600').start().runs()
        keeper = int(lease.look()['pid'])
        stat = pathlib.Path(f'/proc/{keeper}/stat').read_text().rpartition(')')[2].split()
        assert int(stat[1]) in forebears(), 'its parent'
        assert os.getsid(keeper) != os.getsid(0)
        same(sorted(os.readlink(f'/proc/{keeper}/fd/{i}') for i in range(3)), ['/dev/null'] * 3)
        same(lease.ask('stop', 0).rc, 0)
        lease.end()


def test_a_keeper_that_is_killed():
    with place() as p:
        lease = p.lease('sh', '-c', '(setsid sleep 600 &); sleep 600').start().runs()
        keeper, below = lease.pids()
        work = int(lease.status()['work'])
        kill(keeper)
        until(lambda: not alive(work))  # by the kernel, though it has another user
        same(lease.look()['found'], 'lost')
        r = lease.empty()
        same(r.rc, 0, repr(r))
        same(in_cgroup(lease.cgroup), set())
        until(lambda: not any(alive(c) for c in below))  # the warden, too
        r = lease.ask('start', KEEPER)
        same(r.rc, 5, repr(r))
        has(r.err, 'was begun before')


def test_a_full_disk_loses_no_end():
    with place() as p:
        lease = p.lease('sh', '-c', f'until [ -e {os.path.abspath("go")} ]; do sleep 0.1; done; exit 3').start().runs()
        os.makedirs(f'{lease.folder}/end.json/x')  # nothing can take its place
        pathlib.Path('go').touch()
        until(lambda: 'end.json' in lease.text('keeper.log'))
        same(lease.look()['found'], 'lives')
        os.rmdir(f'{lease.folder}/end.json/x')
        os.rmdir(f'{lease.folder}/end.json')
        same(lease.end()['how'], 'exited')


if __name__ == '__main__':
    tap.main(globals())
