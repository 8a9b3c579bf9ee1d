# SPDX-License-Identifier: Apache-2.0
"""The storm with programs that use CUDA: kill -9 and SIGSTOP at tenants, wardens and launchers of several leases.

Runs on a real GPU, where nvidia-smi has the last word, and on simulated silicon. Nothing is asked of tenants: what they hold
is the driver's count, which must name living processes of ours only, must be what a tenant of known size takes, and must
never be more than a lease's cap. One lease nothing is done to; it must go on, and find its bytes unchanged.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
CAP_MIB, HOLD_MIB = 8192, 1024
SLACK_MIB = 2  # for each process, as the gate has it
LEASES = 3  # and the bystander
LOOK_EVERY = 10
PR_SET_CHILD_SUBREAPER = 36
TARGETS = {'tenant': 50, 'first process': 6, 'whole group': 10, 'warden': 16, 'launcher': 12, 'all at once': 6}
WAYS = ('kill -9', 'SIGSTOP, CONT', 'SIGSTOP, kill -9')


class Nvidia:
    """What nvidia-smi says, in MiB."""

    def ask(self, *words):
        out = subprocess.run(['nvidia-smi', '--format=csv,noheader,nounits', '-i', '0', *words], capture_output=True, check=True,
                             timeout=60).stdout.decode()
        return [line.split(', ') for line in out.splitlines() if line.strip()]

    def processes(self):
        rows = self.ask('--query-compute-apps=pid,used_memory')
        return {int(pid): int(used) for pid, used in rows if used.isdigit()}

    def used(self):
        return int(self.ask('--query-gpu=memory.used')[0][0])


class Simulated:
    """What the node's library says."""

    def __init__(self, bulkhead, env):
        self.command, self.env = [bulkhead, 'gpus', '-o', 'json'], env

    def gpu(self):
        done = subprocess.run(self.command, capture_output=True, check=True, timeout=60, env=self.env)
        return json.loads(done.stdout)['gpus'][0]

    def processes(self):
        return {p['pid']: p['memoryBytes'] // MIB for p in self.gpu()['processes']}

    def used(self):
        return self.gpu()['usedBytes'] // MIB


def stat(pid):
    """state, parent and session; None: there is no such process."""
    try:
        words = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return words[0], int(words[1]), int(words[3])


def alive(pid):
    s = stat(pid)
    return s is not None and s[0] not in 'ZX'


def comm(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    return ''


def all_pids():
    return [int(p) for p in os.listdir('/proc') if p.isdigit()]


class Lease:
    """`bulkhead run` with a shell that starts its tenants again when they end. All but the warden are one session."""

    def __init__(self, storm, number):
        self.number, self.hurt, self.over = number, False, None
        self.flag = storm.folder / f'run-{number}'
        self.said = storm.folder / f'said-{number}'
        self.flag.touch()
        self.bystander = number == 0
        tenant, say = storm.tenant, self.said
        if self.bystander:
            script = f'while [ -e {self.flag} ]; do {tenant} churn 300 7 || echo failed; echo done; done >> {say} 2>&1'
        else:
            one = f'while [ -e {self.flag} ]; do {tenant} %s > /dev/null 2>&1 || sleep 0.05; done &'
            script = one % f'hold {HOLD_MIB}MiB 1000' + one % 'churn 1000000000 5' + 'wait'
        argv = [storm.bulkhead, 'run', '--memory', f'{CAP_MIB}MiB', '--stats', '--', 'sh', '-c', script]
        self.launcher = os.fork()
        if self.launcher == 0:
            try:
                os.setsid()
                null = os.open('/dev/null', os.O_RDWR)
                log = os.open(storm.folder / f'log-{number}', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for fd, to in ((null, 0), (null, 1), (log, 2)):
                    os.dup2(fd, to)
                os.execve(argv[0], argv, storm.env)
            finally:
                os._exit(99)
        self.session, self.warden = self.launcher, None

    def members(self):
        """Living processes of its session, less the launcher, oldest first."""
        found = [p for p in all_pids() if p != self.launcher and (s := stat(p)) and s[2] == self.session and s[0] not in 'ZX']
        return sorted(found)

    def tenants(self):
        return [p for p in self.members() if comm(p) == 'tenant']

    def find_warden(self):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = pathlib.Path(f'/proc/{self.launcher}/task/{self.launcher}/children').read_text().split()
            for c in map(int, children):
                if comm(c) == 'bulkhead-warden':
                    self.warden = c
        return [self.warden] if self.warden and alive(self.warden) and comm(self.warden) == 'bulkhead-warden' else []

    def victims(self, target, rng):
        first = [p for p in self.members() if (s := stat(p)) and s[1] == self.launcher]
        launcher = [self.launcher] if self.over is None and alive(self.launcher) else []
        tenants = self.tenants()
        return {'tenant': [rng.choice(tenants)] if tenants else [], 'first process': first[:1], 'whole group': self.members(),
                'warden': self.find_warden(), 'launcher': launcher,
                'all at once': launcher + self.find_warden() + self.members()}[target]

    def end(self):
        with contextlib.suppress(FileNotFoundError):
            self.flag.unlink()
        for p in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)


class Storm:
    def __init__(self, bulkhead, tenant, truth, seed, env, folder=None):
        self.bulkhead, self.tenant, self.truth, self.seed, self.env = bulkhead, tenant, truth, seed, env
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='bh-storm-', dir=folder))
        self.done = {t: dict.fromkeys(WAYS, 0) for t in TARGETS}
        self.leases, self.numbers, self.bad, self.old, self.looks = [], 0, [], [], 0
        self.hold_mib, self.by_pid, self.rounds_done, self.most = None, True, 0, 0

    def start(self):
        lease = Lease(self, self.numbers)
        self.numbers += 1
        self.leases.append(lease)

    def reap(self):
        with contextlib.suppress(ChildProcessError):
            while (got := os.waitpid(-1, os.WNOHANG))[0]:
                for lease in self.leases:
                    if lease.launcher == got[0]:
                        lease.over = got[1]

    def tend(self):
        self.reap()
        for lease in [x for x in self.leases if x.over is not None]:
            if not lease.hurt:
                self.bad.append(f'lease {lease.number} ended with {lease.over}, and nobody had touched it')
            lease.end()
            self.leases.remove(lease)
            self.old.append(lease)
        while len(self.leases) < LEASES + 1:
            self.start()

    def hurt(self, rng):
        """One that is there now; leases are beginning all the time."""
        way = rng.choice(WAYS)
        pause = rng.random() * 0.2
        end = time.monotonic() + 60
        patience = 0.0
        target = ''
        while time.monotonic() < end:
            if time.monotonic() > patience:  # a lease may go on for long without its first process, or its launcher
                target = rng.choices(list(TARGETS), TARGETS.values())[0]
                patience = time.monotonic() + 3
            for lease in rng.sample(self.leases[1:], len(self.leases) - 1):
                pids = lease.victims(target, rng)
                if not pids or not self.signal(pids, signal.SIGKILL if way == 'kill -9' else signal.SIGSTOP):
                    continue
                lease.hurt = True
                self.done[target][way] += 1
                if way != 'kill -9':
                    time.sleep(pause)
                    self.signal(pids, signal.SIGCONT if way.endswith('CONT') else signal.SIGKILL)
                return
            time.sleep(0.02)
            self.tend()
        self.bad.append(f'there was no {target} to be hit for a minute')

    def signal(self, pids, what):
        n = 0
        for p in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, what)
                n += 1
        return n

    def ours(self):
        return {p: lease for lease in self.leases for p in lease.tenants()}

    def difference(self):
        """What the driver counts that it should not; None: nothing. Tenants are stopped meanwhile."""
        self.reap()
        mine = self.ours()
        self.signal(mine, signal.SIGSTOP)
        try:
            counted = {p: n for p, n in self.truth.processes().items() if p not in self.before}
            if not self.by_pid:
                return None
            strange = [p for p in counted if p not in mine and not (alive(p) and comm(p) in ('tenant', 'sh'))]
            if strange:
                return f'the driver counts processes that are gone: {strange}'
            for lease in self.leases:
                held = [counted[p] for p, x in mine.items() if x is lease and p in counted]
                self.most = max(self.most, sum(held))
                if sum(held) > CAP_MIB + SLACK_MIB * len(held):
                    return f'lease {lease.number} has {sum(held)} MiB of {CAP_MIB}'
            return None
        finally:
            self.signal(mine, signal.SIGCONT)

    def look(self):
        end = time.monotonic() + 20
        while (wrong := self.difference()) and time.monotonic() < end:
            time.sleep(0.1)
        if wrong:
            self.bad.append(wrong)
        said = self.leases[0].said.read_text() if self.leases[0].said.exists() else ''
        went_on, self.went_on = said.count('done'), getattr(self, 'went_on', 0)
        if 'failed' in said or self.leases[0].number != 0:
            self.bad.append(f'the bystander was disturbed: {said[-500:]}')
        self.looks += 1
        self.went_on = went_on

    def calibrate(self):
        """Is a process of known size counted under its own number here? (In a container it may not be.)"""
        self.before, self.baseline = self.truth.processes(), self.truth.used()
        p = subprocess.Popen([self.bulkhead, 'run', '--memory', f'{CAP_MIB}MiB', '--', self.tenant, 'hold', f'{HOLD_MIB}MiB'],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env)
        try:
            p.stdout.readline()
            child = [c for c in all_pids() if (s := stat(c)) and s[1] == p.pid and comm(c) == 'tenant']
            self.hold_mib = self.truth.processes().get(child[0] if child else 0)
            self.by_pid = self.hold_mib is not None
        finally:
            p.kill()
            p.communicate()
        if self.by_pid and not HOLD_MIB <= self.hold_mib <= HOLD_MIB + 1024:
            self.bad.append(f'a tenant with {HOLD_MIB} MiB is counted as {self.hold_mib}')

    def run(self, first, rounds):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.calibrate()
        files = len(os.listdir('/proc/self/fd'))
        self.tend()
        for n in range(first, first + rounds):
            rng = random.Random(self.seed * 1000003 + n)
            self.tend()
            time.sleep(rng.random() * 0.5)
            self.hurt(rng)
            self.rounds_done += 1
            if self.rounds_done % LOOK_EVERY == 0 or self.rounds_done == rounds:
                self.look()
            if self.bad:
                self.bad.append(f'round {n}, seed {self.seed}')
                break
        self.finish(files)

    def finish(self, files):
        by = self.leases[0]
        for lease in self.leases[1:]:
            lease.hurt = True
            lease.end()
        by.flag.unlink(missing_ok=True)
        self.wait(lambda: by.over is not None, 'the bystander does not end')
        said = by.said.read_text() if by.said.exists() else ''
        if by.over not in (0, None) or 'failed' in said or said.count('wrong 0') != said.count('done') or \
                said.count('refused 0') != said.count('done'):
            self.bad.append(f'the bystander ended with {by.over}: {said[-500:]}')
        for lease in self.leases + self.old:
            lease.end()
        self.wait(lambda: not self.children(), 'a process is left over')
        self.wait(lambda: not set(self.truth.processes()) - set(self.before), 'the driver still counts a process of ours')
        self.wait(lambda: self.truth.used() <= self.baseline + 16, 'the card still holds memory of ours')
        self.left = self.truth.used() - self.baseline
        if len(os.listdir('/proc/self/fd')) != files:
            self.bad.append('a descriptor is left open here')
        if not self.bad:
            shutil.rmtree(self.folder)

    def children(self):
        self.reap()
        return [p for p in all_pids() if (s := stat(p)) and s[1] == os.getpid()]

    def wait(self, what, otherwise):
        end = time.monotonic() + 30
        while not what():
            self.reap()
            if time.monotonic() > end:
                self.bad.append(otherwise)
                return
            time.sleep(0.05)

    def table(self):
        rows = [f'{"what":14} ' + ' '.join(f'{w:>16}' for w in WAYS)]
        rows += [f'{t:14} ' + ' '.join(f'{n:>16}' for n in by.values()) for t, by in self.done.items()]
        rows += [f'seed {self.seed}', f'rounds {self.rounds_done}', f'leases started {self.numbers}', f'looks {self.looks}',
                 f'bystander runs {getattr(self, "went_on", 0)}',
                 f'counted by process {"yes" if self.by_pid else "no: the driver does not show our process numbers here"}',
                 f'most that a lease held {self.most} MiB of {CAP_MIB}', f'left on the card {getattr(self, "left", "?")} MiB']
        return rows


def main(argv):
    """--real BULKHEAD TENANT [--rounds N] [--seed N] [--first N]"""
    options = {'--rounds': 300, '--seed': 1, '--first': 0}
    words = list(argv)
    for name in options:
        if name in words:
            at = words.index(name)
            options[name] = int(words[at + 1])
            del words[at:at + 2]
    bulkhead, tenant = map(os.path.abspath, words)
    s = Storm(bulkhead, tenant, Nvidia(), options['--seed'], dict(os.environ))
    begun = time.monotonic()
    s.run(options['--first'], options['--rounds'])
    print('\n'.join([*s.table(), f'seconds {time.monotonic() - begun:.0f}', *(f'BAD {b}' for b in s.bad)]))
    if s.bad:
        print(f'what leases said is in {s.folder}')
    sys.exit(1 if s.bad else 0)
