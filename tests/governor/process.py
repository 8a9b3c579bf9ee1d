# SPDX-License-Identifier: Apache-2.0
"""bulkhead-governor as a process: how it starts, that there is one, who is heard, how it ends.

The real program on simulated silicon, spoken to with the messages of src/wire/govern.h.

Usage: process.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-GOVERNOR
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, Result, Skip, environment, has, same  # noqa: E402
from wire import VERSION, number  # noqa: E402

GOVERNOR = os.path.abspath(sys.argv[3])
JOIN, HAS, LIST, ORDER, ANSWER, ROW, PAUSE = map(number, ('JOIN', 'HAS', 'LIST', 'ORDER', 'ANSWER', 'ROW', 'PAUSE'))
NOBODY = 65534
STARTED = []


def bulkhead(*args):
    done = subprocess.run([BIN, *args], capture_output=True, check=False, timeout=120,
                          env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h')))
    return Result(done)


@contextlib.contextmanager
def node():
    """The environment of a simulated node with a run folder of its own. Nothing of the governor may be left at the end."""
    os.mkdir('h')
    os.mkdir('run')
    os.chmod('.', 0o755)
    r = bulkhead('sim', 'start', 'h200')
    same(r.rc, 0, repr(r))
    try:
        yield environment(BULKHEAD_SIM=os.path.abspath('h/lab'), BULKHEAD_RUN_DIR=os.path.abspath('run'))
    finally:
        for p in STARTED:
            p.kill()  # only what a failed test left
        STARTED.clear()
        r = bulkhead('sim', 'stop', '--all')
    same(r.rc, 0, repr(r))
    assert not os.path.exists('run/governor.sock')


def start(env, *args, program=(GOVERNOR,), **more):
    p = subprocess.Popen([*program, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, **more)
    STARTED.append(p)
    return p


def dial(path='run/governor.sock'):
    """A connection, once somebody listens."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    for _ in range(600):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            s.connect(path)
            return s
        time.sleep(0.05)
    raise AssertionError('nobody listens')


def say_join(s, pid, name=b'train', lease=0):
    s.send(struct.pack('<8IQ64s', JOIN, VERSION, pid, 30, 0, 0, 0, 0, lease, name))
    return hear_answer(s)


def hear_answer(s):
    op, code, lease, text = struct.unpack('<IiQ480s', s.recv(4096))
    same(op, ANSWER)
    return code, lease, text.rstrip(b'\0').decode()


def order(s, op, what=0, lease=0, name=b''):
    s.send(struct.pack('<2IQ2I64s', op, VERSION, lease, what, 0, name))


def rows(s):
    """[(lease, name)] of a list."""
    found = []
    order(s, LIST)
    while True:
        m = s.recv(4096)
        if struct.unpack_from('<I', m)[0] == ANSWER:
            return found
        same(struct.unpack_from('<I', m)[0], ROW)
        found.append((struct.unpack_from('<Q', m, 8)[0], m[16:80].rstrip(b'\0')))


def end(p, rc=0):
    out, err = p.communicate(timeout=60)
    same((p.returncode, out), (rc, b''), err.decode())
    return err.decode()


def test_it_serves_and_ends_by_itself_when_the_last_has_gone():
    with node() as env:
        p = start(env)
        s, o = dial(), dial()
        same(os.stat('run/governor.sock').st_mode & 0o777, 0o600)
        same(say_join(s, os.getpid())[:2], (0, os.getpid()))
        same(rows(o), [(os.getpid(), b'train')])
        o.close()
        s.close()
        same(end(p), '')


def test_it_leaves_what_is_its_launchers():
    with node() as env:
        keep = os.open('kept', os.O_RDWR | os.O_CREAT)
        p = start(env, pass_fds=[keep])
        s = dial()
        say_join(s, 1)
        same(os.readlink(f'/proc/{p.pid}/cwd'), '/')
        same(os.getsid(p.pid), p.pid)
        names = [os.readlink(f'/proc/{p.pid}/fd/{n}') for n in os.listdir(f'/proc/{p.pid}/fd')]
        assert os.path.abspath('kept') not in names, names
        same([os.readlink(f'/proc/{p.pid}/fd/{n}') for n in range(3)], ['/dev/null'] * 3)
        s.close()
        end(p)
        os.close(keep)


def test_a_second_one_leaves_the_first_alone():
    with node() as env:
        p = start(env)
        s = dial()
        same(say_join(s, 1)[0], 0)
        for q in [start(env) for _ in range(4)]:
            end(q)
        same(rows(dial()), [(1, b'train')])
        s.close()
        end(p)


def test_of_several_at_once_one_serves():
    with node() as env:
        many = [start(env) for _ in range(6)]
        s = dial()
        same(say_join(s, 1)[0], 0)
        until = time.monotonic() + 60
        while sum(p.poll() is None for p in many) > 1 and time.monotonic() < until:
            time.sleep(0.02)
        same(sum(p.poll() is None for p in many), 1)
        s.close()
        for p in many:
            end(p)


def test_it_takes_a_listening_socket_from_its_launcher():
    with node() as env:
        at = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        at.bind(os.path.abspath('run/governor.sock'))
        at.listen(8)
        early = dial()  # before there is anybody
        p = start(env, program=('sh', '-c', f'exec "$0" 3<&{at.fileno()}', GOVERNOR), pass_fds=[at.fileno()])
        at.close()
        same(say_join(early, 9)[:2], (0, 9))
        early.close()
        end(p)


def test_it_does_not_end_while_somebody_is_about_to_connect():
    with node() as env:
        p = start(env)
        dial().close()
        with open('run/governor.lock', 'w', encoding='ascii') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            time.sleep(3)  # longer than it waits for somebody to come
            s = dial()
            same(say_join(s, 1)[0], 0)
        s.close()
        end(p)


def test_told_to_end_it_hangs_up_and_goes():
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.ExitStack() as stack:
            folder = f'for-{number}'
            os.mkdir(folder)
            os.chdir(folder)
            env = stack.enter_context(node())
            p = start(env)
            s = dial()
            same(say_join(s, 1)[0], 0)
            p.send_signal(number)
            same(s.recv(4096), b'')
            end(p)
            stack.close()
            os.chdir('..')


def test_after_a_kill_another_one_takes_its_place():
    with node() as env:
        p = start(env)
        s = dial()
        code, lease, _ = say_join(s, 77)
        same((code, lease), (0, 77))
        p.kill()
        p.wait()
        same(s.recv(4096), b'')
        assert os.path.exists('run/governor.sock')
        q = start(env)
        s = dial()
        same(say_join(s, 77, lease=77)[:2], (0, 77))
        s.close()
        end(q)
        p.communicate()


def start_and_join(env):
    p, s = start(env), dial()
    same(say_join(s, 1)[0], 0)
    return p, s


def test_one_whose_socket_is_gone_hangs_up_and_goes():
    with node() as env:
        p, s = start_and_join(env)
        os.unlink('run/governor.sock')
        end(p)
        while s.recv(4096):  # signs of life
            pass


def test_one_whose_socket_is_anothers_leaves_that_alone():
    with node() as env:
        p, s = start_and_join(env)
        shutil.rmtree('run')
        os.mkdir('run')
        q = start(env)
        t = dial()
        same(say_join(t, 1, lease=1)[0], 0)
        end(p)
        same(rows(dial()), [(1, b'train')])
        t.close()
        end(q)


def test_nonsense_ends_that_connection_alone():
    with node() as env:
        p = start(env)
        good, o = dial(), dial()
        same(say_join(good, 1)[0], 0)
        for m in (b'x', b'\0' * 4, struct.pack('<I', 99), b'\1\0\0\0' * 400, struct.pack('<5I64I', HAS, 0, 1, 1, 1, *[0] * 64)):
            bad = dial()
            bad.send(m)
            with contextlib.suppress(ConnectionResetError):
                same(bad.recv(4096), b'')
            bad.close()
        same(rows(o), [(1, b'train')])
        order(o, ORDER, PAUSE, name=b'nobody')
        has(hear_answer(o)[2], "no lease named 'nobody'")
        good.close()
        o.close()
        end(p)


def test_only_root_is_heard():
    if os.geteuid() != 0:
        raise Skip('needs root')
    with node() as env:
        p = start(env)
        s = dial()
        os.chmod('run', 0o755)
        os.chmod('run/governor.sock', 0o666)  # even then
        child = os.fork()
        if child == 0:
            os.setuid(NOBODY)
            t = dial()
            os._exit(0 if hear_answer(t)[2] == 'the governor serves root alone' and t.recv(9) == b'' else 1)
        same(os.waitpid(child, 0)[1], 0)
        s.close()
        end(p)


def test_what_is_wrong_is_said_before_it_serves():
    with node() as env:
        has(end(start(env, 'some/where.sock'), 2), 'begins with /')
        has(end(start(env, '--help'), 2), 'usage: bulkhead-governor')
        has(end(start(env, os.path.abspath('no/such/folder.sock')), 70), 'governor.lock')
        lost = {**env, 'BULKHEAD_SIM': os.path.abspath('h/none')}
        has(end(start(lost), 4), 'does not answer')


def test_the_log_is_written_where_it_is_asked_for():
    with node() as env:
        p = start({**env, 'BULKHEAD_GOVERN_LOG': os.path.abspath('log')})
        s = dial()
        same(say_join(s, 1)[0], 0)
        s.send(struct.pack('<5I64I', HAS, 0, 1, 5, 1, *[7] * 64))
        for _ in range(60):  # a few of its steps, however much this machine has to do
            time.sleep(0.05)
            if os.path.exists('log.gpu0') and os.path.getsize('log.gpu0') > 200:
                break
        s.close()
        end(p)
        lines = pathlib.Path('log.gpu0').read_text().splitlines()
        has(lines[0], 'govern 4 ')
        assert lines[1:] and all(line.startswith('step ') for line in lines[1:]), lines[:3]


def test_a_log_that_cannot_be_written_is_refused():
    with node() as env:
        for prefix, why in (('log', 'from / on'), ('/' + 'x' * 600, '479 bytes at most')):
            has(end(start({**env, 'BULKHEAD_GOVERN_LOG': prefix}), 2), why)


tap.main(globals())
