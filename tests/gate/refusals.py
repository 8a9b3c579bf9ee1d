# SPDX-License-Identifier: Apache-2.0
"""What bulkhead run says where it cannot work: one line, what was there, what to do; and the command does not run.

Wrong words, no driver, an unknown driver, a run inside a run and a user without rights are in run.py.

Usage: refusals.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import BIN, QUIET, TENANT, bulkhead, finish, need_root, node, tap  # noqa: E402
from tap import Result, Skip, environment, has, same, write  # noqa: E402

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_SECCOMP, SYS_KCMP, EPERM, ENOSYS = 317, 312, 1, 38
# classic BPF: load a word, jump if equal, return
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000


def forbid(number, error):
    """In a child, before exec: what many container profiles do."""
    if os.uname().machine != 'x86_64':
        raise Skip('knows the numbers of x86-64 only')
    code = b''.join(struct.pack('<HBBI', *i) for i in (
        (LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error), (RETURN, 0, 0, ALLOW)))
    libc = ctypes.CDLL(None, use_errno=True)

    def now():
        filters = ctypes.create_string_buffer(code, len(code))
        program = struct.pack('<HxxxxxxQ', len(code) // 8, ctypes.addressof(filters))
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program):
            os._exit(99)
    return now


def refused(env, rc, words, binary=BIN, before=None, memory='10GiB'):
    done = Result(subprocess.run([binary, 'run', '--memory', memory, '--', 'touch', 'ran'], stdin=subprocess.DEVNULL,
                                 capture_output=True, check=False, timeout=120, env=environment(**env), preexec_fn=before))
    same((done.rc, done.out, done.err.count('\n')), (rc, '', 1), repr(done))
    assert done.err.startswith('bulkhead: '), repr(done)
    for w in words:
        has(done.err, w)
    assert not os.path.exists('ran'), 'the command ran without a gate'


def test_a_driver_without_a_gpu():
    with node('none') as env:
        refused(env, 4, ('no GPU', 'bulkhead doctor'))


def test_a_driver_of_another_branch():
    with node('old-driver') as env:
        refused(env, 1, ('535.', 'known: branch 580', 'whole GPUs and MIG instances work without it'))


def test_seccomp_is_forbidden():
    with node() as env:
        refused(env, 1, ('system call filter was refused', 'Operation not permitted', 'profile', 'allow it there'),
                before=forbid(SYS_SECCOMP, EPERM))
        refused(env, 1, ('no seccomp user notification', 'Linux 5.6'), before=forbid(SYS_SECCOMP, ENOSYS))


def test_a_gate_that_cannot_work_says_why():
    """Not what its first tenant, the self-test's own, saw of it."""
    with node() as env:
        refused(env, 1, ('no memory cap can be promised', 'does not compare open files', 'kcmp'), before=forbid(SYS_KCMP, EPERM))


def test_a_full_card_is_no_broken_gate():
    with node() as env:
        most = int(next(line.split()[1] for line in subprocess.run(
            [*QUIET, TENANT, 'info'], capture_output=True, check=True, text=True, env=environment(**env)).stdout.splitlines()
            if line.startswith('free ')))
        neighbour = subprocess.Popen([*QUIET, TENANT, 'hold', f'{(most >> 20) - 20}MiB', '1000'], stdout=subprocess.PIPE,
                                     stdin=subprocess.DEVNULL, env=environment(**env))
        try:
            same(neighbour.stdout.readline(), b'ready\n')
            refused(env, 7, ('every GPU is full', 'try again'))
        finally:
            neighbour.kill()
            neighbour.communicate()
        same(bulkhead('run', '--memory', '1GiB', '--', 'true', **env).rc, 0)


def test_caps_that_hold_nothing_or_too_little():
    with node('mixed') as env:
        # the largest card decides: a cap that one of them can reach is not refused
        same(bulkhead('run', '--memory', '79GiB', '--', 'true', **env).rc, 0)
        refused(env, 1, ('200 GiB', 'H100', 'give a smaller one'), memory='200GiB')
        refused(env, 2, ('1MiB', 'context', '600MiB or more'), memory='1MiB')


def test_no_warden():
    need_root()
    with node() as env:
        os.makedirs('there/bin')
        mine = os.path.abspath('there/bin/bulkhead')
        shutil.copy2(BIN, mine)
        refused(env, 4, ('no bulkhead-warden', os.path.abspath('there'), 'install both from one package'), binary=mine)
        # one that cannot be run is none
        os.makedirs('there/libexec/bulkhead')
        warden = write('there/libexec/bulkhead/bulkhead-warden', '#!/bin/sh\nexit 3\n')
        os.chmod(warden, 0o644)
        refused(env, 4, ('no bulkhead-warden',), binary=mine)
        # one that ends at once, and one that no kernel knows
        os.chmod(warden, 0o755)
        refused(env, 70, ('the warden ended before it was ready',), binary=mine)
        write('there/libexec/bulkhead/bulkhead-warden', 'neither a program nor a script\n')
        refused(env, 70, ('bulkhead-warden', 'Exec format error'), binary=mine)


@contextlib.contextmanager
def waiting(env, *command, before=None):
    """A run that waits for its node, which comes back at the end."""
    pid = json.loads(bulkhead('sim', 'list', '-o', 'json').out)['nodes'][0]['pid']
    os.kill(pid, signal.SIGSTOP)
    try:
        p = subprocess.Popen([BIN, 'run', '--memory', '1GiB', '--', *command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env), preexec_fn=before)
        try:
            p.wait(timeout=1)
            raise AssertionError('it did not wait for the node')
        except subprocess.TimeoutExpired:
            yield p
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_node_that_hangs_can_be_interrupted():
    """A driver may take its time at the start; Ctrl-C must not."""
    with node() as env:
        with waiting(env, 'touch', 'ran') as p:
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=60)
            same(p.returncode, -signal.SIGINT, err)
        assert not os.path.exists('ran')


def test_signals_while_a_node_hangs():
    with node() as env:
        # nohup, or a job in the background: the signal is ignored, before the command runs as after
        for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            with waiting(env, 'echo', 'ran', before=lambda s=s: signal.signal(s, signal.SIG_IGN)) as p:
                p.send_signal(s)
            same(finish(p), (0, 'ran\n', ''), s.name)
        # others are the command's, once there is one
        with waiting(env, 'sleep', '1000') as p:
            p.send_signal(signal.SIGUSR1)
        same(finish(p), (-signal.SIGUSR1, '', ''))


if __name__ == '__main__':
    tap.main({k: v for k, v in globals().items() if k.startswith('test_')})
