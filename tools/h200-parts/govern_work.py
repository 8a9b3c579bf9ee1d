# SPDX-License-Identifier: Apache-2.0
"""Tenants that do fixed work, started together, and how much each of them got done."""
import bisect
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

from table import run

TORCH = pathlib.Path(__file__).resolve().parent / 'inside_torch.py'
SETTLE = 3.0  # seconds that are not looked at: a controller may need one, and two more to look at who may rest
PIPE_BYTES = 1 << 20  # what it says is read when it is over, and nobody shall wait for that
alive = []


class Tenant:
    def __init__(self, tools, kind, seconds, how=(), unit=None, name='', env=None):
        """how: what `bulkhead run` is given; None: without it. unit: in microseconds; or that, and how often it says what is done, in milliseconds."""
        units = unit if isinstance(unit, tuple) else (unit,) if unit else ()
        command = ([sys.executable, TORCH, seconds] if kind == 'torch' else [tools.load, kind, seconds]) + [*units]
        prefix = [] if how is None else [tools.bulkhead, 'run', *how, '--name', name or kind, '--']
        self.library = (env or {}).get('LD_PRELOAD')
        self.kind, self.name, self.points, self.took, self.gaps, self.rest = kind, name or kind, [], [], [], {}
        if tools.log:  # a governor goes by who started it, and writes over no file
            env = {**(env or {}), 'BULKHEAD_GOVERN_LOG': f'{tools.log}-{int(time.time() * 1e3)}-{self.name}'}
        self.p = subprocess.Popen([*map(str, prefix), *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **(env or {})},
                                  pipesize=PIPE_BYTES)
        alive.append(self)

    def ready(self):
        line = self.p.stdout.readline()
        if line != 'ready\n':
            raise RuntimeError(f'{self.name} did not start: {self.p.stderr.read()[-300:].strip()}')
        if self.library and os.path.realpath(self.library) not in pathlib.Path(f'/proc/{self.p.pid}/maps').read_text(encoding='utf-8'):
            raise RuntimeError(f'{self.library} is not loaded in {self.name}: what it does says nothing of it')
        return self

    def go(self):
        with contextlib.suppress(OSError):
            self.p.stdin.write('x')
            self.p.stdin.close()

    def finish(self, timeout):
        timer = time.monotonic() + timeout
        os.set_blocking(self.p.stdout.fileno(), False)
        text = ''
        while time.monotonic() < timer:
            with contextlib.suppress(TypeError, BlockingIOError):
                text += self.p.stdout.read() or ''
            if self.p.poll() is not None:
                break
            time.sleep(0.02)
        else:
            self.end()
        with contextlib.suppress(TypeError, BlockingIOError, ValueError):
            text += self.p.stdout.read() or ''
        for line in text.splitlines():
            key, *values = line.split()
            if key in ('at', 'end'):
                self.points.append((int(values[0]) / 1e3, int(values[1])))
            elif key == 'took':
                self.took.append(int(values[0]) / 1e3)
            elif key == 'gap':
                self.gaps.append((int(values[0]), int(values[1])))
            elif values:
                self.rest[key] = values[0]
        self.end()
        return self

    def end(self):
        with contextlib.suppress(OSError):
            os.killpg(self.p.pid, signal.SIGKILL)
        self.p.wait()
        if self in alive:
            alive.remove(self)

    def done(self, at):
        """Units by then; between two points evenly: one that waits says nothing meanwhile."""
        after = bisect.bisect_right(self.points, at, key=lambda point: point[0])
        t0, u0 = self.points[after - 1] if after else (0.0, 0)
        if after == len(self.points):
            return u0
        t1, u1 = self.points[after]
        return u0 + (u1 - u0) * (at - t0) / (t1 - t0)

    def rate(self, start=SETTLE, stop=None):
        """Units a second between two times of its own; the end may be left out."""
        last = self.points[-1][0] if self.points else 0.0
        stop = last if stop is None else min(stop, last)
        return (self.done(stop) - self.done(start)) / (stop - start) if stop > start else 0.0


def end_all():
    for t in list(alive):
        t.end()


def together(tools, tenants, timeout=None):
    """All of them ready, then all of them at once, to the end."""
    try:
        for t in tenants:
            t.ready()
        for t in tenants:
            t.go()
        for t in tenants:
            t.finish(timeout or 120)
    finally:
        for t in tenants:
            t.end()
    return tenants


def solo(tools, kind, unit=None, seconds=4, settle=1.0):
    """Its rate alone, without anything of ours; measured once. settle: of its own time, which may be that of its work alone."""
    key = f'{kind}:{unit}'
    if key not in tools.solo:
        t = together(tools, [Tenant(tools, kind, seconds, None, unit)])[0]
        tools.solo[key] = {'rate': t.rate(settle), 'took': t.took}
    return tools.solo[key]


def shares(tools):
    """What `bulkhead shares` says now, by name."""
    rc, out, _ = run(tools.bulkhead, 'shares', '-o', 'json', timeout=10)
    try:
        return {row['name']: row for row in json.loads(out)['shares']} if rc == 0 else {}
    except (ValueError, KeyError, TypeError):
        return {}


class Governor:
    """Asked without a command in between, which is a process that starts and ends (src/wire/govern.h)."""
    ORDER, VERSION, PAUSE, RESUME = 8, 5, 1, 2

    def __init__(self):
        run_dir = os.environ.get('BULKHEAD_RUN_DIR') or os.environ.get('BULKHEAD_SIM') or '/run/bulkhead'
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(5)
        self.s.connect(f'{run_dir}/governor.sock')

    def order(self, what, name):
        """When it was sent and when it was answered, in nanoseconds of the machine's clock."""
        message, sent = struct.pack('=IIQII64s', self.ORDER, self.VERSION, 0, what, 0, name.encode()), time.monotonic_ns()
        self.s.send(message)
        _, code, _, text = struct.unpack('=IiQ480s', self.s.recv(1024))
        if code:
            raise RuntimeError(text.rstrip(b'\0').decode())
        return sent, time.monotonic_ns()


def rates_within(tenants, at, edge):
    """Units a second of all together in each time between two of `at`, without `edge` at both ends: what one does is told when its slice is over, so that
    within a round of an end nobody knows in which of two times something was done."""
    def done(when):
        return sum(t.done(when) for t in tenants)
    return [(done(b - edge) - done(a + edge)) / (b - a - 2 * edge) for a, b in zip(at, at[1:])]


def paired(rates):
    """Every other of them against the one after it: the mean of their ratios, and its standard error."""
    pairs = [a / max(b, 1e-9) for a, b in zip(rates[::2], rates[1::2])]
    return statistics.mean(pairs), statistics.stdev(pairs) / len(pairs) ** 0.5


def fair(weights, caps=None, demands=None):
    """Max-min division: nobody more than its cap or its demand, what is left by weight."""
    n = len(weights)
    most = [min(c, d) for c, d in zip(caps or [1.0] * n, demands or [1.0] * n)]
    given, left, open_ = [0.0] * n, 1.0, set(range(n))
    while open_ and left > 1e-12:
        total = sum(weights[i] for i in open_)
        full = {i for i in open_ if most[i] - given[i] <= left * weights[i] / total + 1e-12}
        if not full:
            for i in open_:
                given[i] += left * weights[i] / total
            break
        for i in full:
            left -= most[i] - given[i]
            given[i] = most[i]
        open_ -= full
    return given


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))] if values else float('nan')
