# SPDX-License-Identifier: Apache-2.0
"""What the driver counts, about a thousand times a second, through the vendor's library and never through the gate."""
import contextlib
import ctypes
import os
import pathlib
import signal
import threading
import time

MIB, GIB = 1 << 20, 1 << 30


class Memory(ctypes.Structure):
    _fields_ = [('total', ctypes.c_uint64), ('free', ctypes.c_uint64), ('used', ctypes.c_uint64)]


class Process(ctypes.Structure):
    _fields_ = [('pid', ctypes.c_uint32), ('used', ctypes.c_uint64), ('gi', ctypes.c_uint32), ('ci', ctypes.c_uint32)]


class Nvml:
    MOST = 512

    def __init__(self):
        self.lib = ctypes.CDLL('libnvidia-ml.so.1')
        self.device = ctypes.c_void_p()
        self.processes = (Process * self.MOST)()
        self.must(self.lib.nvmlInit_v2(), 'nvmlInit')
        self.must(self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)), 'nvmlDeviceGetHandleByIndex')

    @staticmethod
    def must(rc, call):
        if rc:
            raise RuntimeError(f'{call}: NVML error {rc}')

    def memory(self):
        m = Memory()
        self.must(self.lib.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(m)), 'nvmlDeviceGetMemoryInfo')
        return m

    def held(self, mps=False):
        """{pid: bytes}; a process of which the driver does not say how much it has is there with 0."""
        call = self.lib.nvmlDeviceGetMPSComputeRunningProcesses_v3 if mps else self.lib.nvmlDeviceGetComputeRunningProcesses_v3
        n = ctypes.c_uint32(self.MOST)
        self.must(call(self.device, ctypes.byref(n), self.processes), 'nvmlDeviceGetComputeRunningProcesses')
        found = {}
        for p in self.processes[:n.value]:
            found[p.pid] = found.get(p.pid, 0) + (0 if p.used == 2 ** 64 - 1 else p.used)
        return found


def status(pid):
    """/proc/PID/status as a dictionary, or an empty one."""
    try:
        lines = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='utf-8').splitlines()
    except OSError:
        return {}
    return dict(line.split(':\t', 1) for line in lines if ':\t' in line)


def children(pid):
    try:
        return [int(c) for c in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text(encoding='utf-8').split()]
    except OSError:
        return []


def managed_mapped():
    """Bytes that processes have mapped of the file of managed memory, by the kernel's lists."""
    total = 0
    for maps in pathlib.Path('/proc').glob('[0-9]*/maps'):
        with contextlib.suppress(OSError):
            for line in maps.read_text(encoding='utf-8', errors='replace').splitlines():
                if line.endswith('/dev/nvidia-uvm'):
                    first, end = line.split(' ', 1)[0].split('-')
                    total += int(end, 16) - int(first, 16)
    return total


def warden_of(launcher):
    """What a lease's warden has in memory, in KiB."""
    for c in children(launcher):
        s = status(c)
        if s.get('Name', '').strip() == 'bulkhead-warden':
            return {k: int(s[k].split()[0]) for k in ('VmHWM', 'VmRSS', 'RssAnon', 'RssFile', 'VmData') if k in s}
    return {}


class Watch:
    """By the driver's count, while this was open:
    held   the most that processes had, added up
    card   the most that the whole card had in use beyond what it had before, until release(): while a process ends, the card still
           has what the process no longer does
    of     the most of each process, and of each lease that was named with lease()"""

    def __init__(self, nvml):
        self.nvml, self.stop, self.released = nvml, threading.Event(), False
        self.held = self.card = self.card_to_the_end = self.samples = self.now = self.used_now = 0
        self.pids, self.leases, self.roots, self.belongs = {}, {}, {}, {}
        self.error, self.series = None, []

    def lease(self, name, launcher):
        self.roots[launcher] = name

    def release(self):
        self.released = True

    def lease_of(self, pid):
        if pid not in self.belongs:
            at, found = pid, None
            while at > 1 and not found:
                found = self.roots.get(at)
                at = int(status(at).get('PPid', '0'))
            self.belongs[pid] = found
        return self.belongs[pid]

    def look(self):
        used, held = self.nvml.memory().used - self.before, self.nvml.held()
        self.samples += 1
        self.card_to_the_end = max(self.card_to_the_end, used)
        if not self.released:
            self.card = max(self.card, used)
        now, sums = sum(held.values()), {}
        self.held, self.now, self.used_now = max(self.held, now), now, used
        for pid, n in held.items():
            self.pids[pid] = max(self.pids.get(pid, 0), n)
            if self.roots:
                name = self.lease_of(pid)
                sums[name] = sums.get(name, 0) + n
        for name, n in sums.items():
            self.leases[name] = max(self.leases.get(name, 0), n)
        at = time.monotonic() - self.began
        if not self.series or abs(now - self.series[-1][2]) > 64 * MIB or abs(used - self.series[-1][1]) > 64 * MIB:
            self.series.append((round(at, 4), used, now))

    def run(self):
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self.look()
                time.sleep(max(0.0001, 0.001 - (time.monotonic() - began)))
        except (RuntimeError, OSError, ValueError) as e:
            self.error = str(e)

    def __enter__(self):
        self.before, self.began = self.nvml.memory().used, time.monotonic()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.seconds = time.monotonic() - self.began

    def raw(self):
        """For the record: every value, and the card's and the processes' bytes whenever they moved by more than 64 MiB."""
        step = max(1, len(self.series) // 200)
        return {'held': self.held, 'card': self.card, 'card_to_the_end': self.card_to_the_end, 'samples': self.samples,
                'hertz': round(self.samples / max(self.seconds, 1e-9)), 'processes': len(self.pids), 'of': sorted(self.pids.values()),
                'series': self.series[::step], 'error': self.error}


@contextlib.contextmanager
def limit(seconds, process):
    """Ends a process and its group when it takes longer."""
    def end():
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def settle(nvml, before, seconds=10):
    """Waits until the card has given back what was used; how much it did not."""
    end = time.monotonic() + seconds
    while nvml.memory().used > before + 16 * MIB and time.monotonic() < end:
        time.sleep(0.02)
    return nvml.memory().used - before
