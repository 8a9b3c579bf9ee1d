# SPDX-License-Identifier: Apache-2.0
"""64 tenant processes on 8 simulated GPUs, killed at random with kill -9; nothing may be left behind.

Usage: storm.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT [FOLDER-WITH-BOTH-LIBRARIES]
BH_STORM_SECONDS and BH_STORM_SEED change how long (12) and which storm (1).
"""
import array
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tenants import GIB, MSG, OP_OPEN, OP_WAIT, TENANT, environment, node, same, tap  # noqa: E402

SECONDS = float(os.environ.get('BH_STORM_SECONDS', '12'))
SEED = int(os.environ.get('BH_STORM_SEED', '1'))
GPUS, TENANTS = 8, 64


class Tenant:
    """One of the 64. When it ends, by itself or not, another takes its place."""

    def __init__(self, n, rng, number):
        verbs = (['churn', str(rng.randrange(20, 2000)), str(rng.randrange(1 << 30))],
                 ['hold', f'{rng.randrange(1, 9)}GiB'], ['spin', '60', str(rng.randrange(50, 4000))],
                 ['fill', rng.choice(('vmm-released', 'async', 'graph')), f'{rng.randrange(1, 4)}GiB'],
                 ['graph'])
        self.words = ['--device', str(number % GPUS), *rng.choice(verbs)]
        self.process = subprocess.Popen(
            [TENANT, *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment(BULKHEAD_SIM=n.folder, LD_LIBRARY_PATH=n.folder + '/lib'))

    def ended_badly(self):
        """A tenant that was not killed must have ended well; None: it runs."""
        rc = self.process.poll()
        if rc is None:
            return None
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        return f'{self.words}: {rc}: {said}' if rc not in (0, -9) else ''

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def rights(fd):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]


def connect(n):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(n.folder + '/rm.sock')
    return s


def open_file(s):
    s.send(MSG.pack(OP_OPEN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    _, control, _, _ = s.recvmsg(MSG.size, socket.CMSG_SPACE(4))
    return array.array('i', control[0][2])[0]


def send_file_to_itself(n):
    """An open file, in the only queue that the node keeps for it."""
    fd = open_file(connect(n))
    end = socket.socket(fileno=os.dup(fd))
    try:
        end.sendmsg([b'x'], rights(fd))
    except BrokenPipeError:
        pass


def send_connection_to_itself(n):
    s = connect(n)
    fd = open_file(s)
    s.sendmsg([MSG.pack(OP_WAIT, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0)], rights(fd))
    try:
        s.sendmsg([b'x'], rights(s.fileno()))
        s.sendmsg([b'x'], rights(fd))
    except (BrokenPipeError, ConnectionResetError):
        pass


def send_file_with_nothing(n):
    """A message of no bytes, which carries a descriptor all the same."""
    fd = open_file(connect(n))
    connect(n).sendmsg([b''], rights(fd))


MISBEHAVIOURS = (send_file_to_itself, send_connection_to_itself, send_file_with_nothing)


def misbehave(n, how):
    """In a process that is gone with kill -9 right afterwards."""
    pid = os.fork()
    if pid == 0:
        try:
            how(n)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGKILL, how.__name__)


def storm(n, rng):
    """How many were killed, how many ended by themselves, and what went wrong."""
    alive, killed, ended, bad = [], 0, 0, []
    end = time.monotonic() + SECONDS
    try:
        for i in range(TENANTS):
            alive.append(Tenant(n, rng, i))
        while time.monotonic() < end and not bad:
            time.sleep(0.05)
            for i, t in enumerate(alive):
                trouble = t.ended_badly()
                if trouble is None:
                    continue
                ended += 1
                bad += [trouble] if trouble else []
                alive[i] = Tenant(n, rng, i)
            misbehave(n, rng.choice(MISBEHAVIOURS))
            for i in rng.sample(range(TENANTS), rng.choice((0, 1, 2, 8))):
                alive[i].kill()
                killed += 1
                alive[i] = Tenant(n, rng, i)
    finally:
        for t in alive:
            t.kill()
    return killed, ended, bad


def test_a_storm_leaves_nothing_behind():
    rng = random.Random(SEED)
    with node('h100x8') as n:
        before = n.gpus()
        killed, ended, bad = storm(n, rng)
        same(bad, [], f'seed {SEED}')
        assert killed >= 20, f'no storm: {killed} killed, {ended} ended'
        n.empty()
        after = n.gpus()
        same(len(after), GPUS)
        for a, b in zip(before, after):
            same(b['processes'], [], f'GPU {b["index"]}')
            same(b['usedBytes'], a['usedBytes'], f'GPU {b["index"]}')
        # and the node still serves
        assert int(n.tenant('--device', 7, 'fill', 'plain')['got']) > 60 * GIB


def test_what_a_tenant_sends_to_itself_goes_with_it():
    with node('h200') as n:
        for how in MISBEHAVIOURS:
            misbehave(n, how)
            n.empty()


def test_a_tenant_in_the_middle_of_its_start_is_cleaned_up():
    rng = random.Random(SEED + 1)
    with node('h100x8') as n:
        for i in range(40):
            t = Tenant(n, rng, i)
            time.sleep(rng.random() * 0.05)
            t.kill()
        n.empty()


if __name__ == '__main__':
    tap.main({k: v for k, v in globals().items() if k.startswith('test_')})
