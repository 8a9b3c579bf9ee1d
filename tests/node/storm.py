# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: commands from several clients while everything that can break breaks.

Leases of every kind that this machine can have: whole cards and shares behind tier process, containers (runc and crun in turn), instances of MIG
and clients of MPS (a stand-in of its control program). Every round is drawn from its own number, on a machine that has been through the rounds before it; after every fifth all is
healed, everything ends, and nothing may be left. A failure prints the words that repeat its five rounds.

Usage: storm.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT FAULTS [--rounds N] [--faults N] [--seed S] [--round R]
"""
import argparse
import collections
import contextlib
import errno
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import lab
from lab import PRIVATE, FrailNode, own_machine, same, until

EPISODE = 5
CLIENTS = 3
FAULTS = os.path.abspath(sys.argv[6])
HOUR_MS = 3600 * 1000


POOLS = '''\
pools:
  - {name: cards, match: {gpus: [1, 2, 6]}, mechanism: whole, tier: process, tenants: [chat, train, nightly]}
  - {name: shares, match: {gpus: [4, 5]}, mechanism: fractional, backing: gate, tier: process, tenants: [lab],
     caps: {memory: 20GiB, compute: 25%}}
  - {name: cut, match: {gpus: [7]}, mechanism: mig, tier: process, tenants: [train, nightly], profiles: [1g.10gb, 3g.40gb]}
  - {name: mps, match: {gpus: [0]}, mechanism: mps, tier: process, tenants: [lab], caps: {memory: 20GiB, compute: 25%}}
BOXES
roles:
  - {subject: "user:root", role: operator}
  - {subject: "user:nobody", role: tenant-user, tenant: lab}
'''
BOXES = '  - {name: boxes, match: {gpus: [3]}, mechanism: whole, tier: container, tenants: [train, nightly]}'
UNIFIED = os.path.exists('/sys/fs/cgroup/cgroup.controllers')  # the daemon uses crun nowhere else
RUNTIMES = [p for p in (shutil.which('runc'), shutil.which('crun') if UNIFIED else None) if p]


def has_boxes():
    return bool(RUNTIMES and os.environ.get(PRIVATE))


def policy(train=2):
    return lab.TENANTS.replace('TRAIN', str(train)) + POOLS.replace('BOXES', BOXES if has_boxes() else '')


def words():
    p = argparse.ArgumentParser()
    p.add_argument('--rounds', type=int, default=int(os.environ.get('BH_STORM_ROUNDS', '15')))
    p.add_argument('--faults', type=int, default=3, help='of a round, at most')
    p.add_argument('--seed', type=int, default=int(os.environ.get('BH_STORM_SEED', '7')))
    p.add_argument('--round', type=int)
    return p.parse_args(sys.argv[7:])


class Machine(FrailNode):
    """With MPS, and with one of the container runtimes."""

    def __init__(self, number):
        super().__init__(FAULTS, 'partly-mig', policy())
        # One runtime and the other in turn: the daemon takes what it finds.
        self.hidden = RUNTIMES[number % 2] if has_boxes() and len(RUNTIMES) == 2 else None
        if self.hidden:
            subprocess.run(['mount', '--bind', '/dev/null', self.hidden], check=True)
        control = shutil.copy(pathlib.Path(__file__).with_name('mps_control.py'), f'{self.here}/mps-control')
        os.chmod(control, 0o755)
        self.more['BULKHEAD_MPS_CONTROL'] = control
        os.makedirs('cards')
        os.makedirs('begun')
        os.chmod('begun', 0o777)

    def stop(self):
        try:
            super().stop()
        finally:
            if self.hidden:
                subprocess.run(['umount', self.hidden], check=False)


class Book:
    """What was acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.jobs = {}  # id: may it be begun again
        self.keys = {}  # key: id
        self.cancelled = set()
        self.gpu_orders = {'cordon': 0, 'uncordon': 0, 'drain': 0}
        self.policies = set()
        self.next = 0

    def number(self):
        with self.lock:
            self.next += 1
            return self.next


def script(mark, seconds, status):
    """Work that says that it began, and that nobody else is on its cards."""
    return ['/bin/sh', '-c', f'echo x >> begun/{mark}; IFS=,; set -- $CUDA_VISIBLE_DEVICES; '
            f'[ -n "$BH_ALONE" ] || {{ sleep {seconds}; exit {status}; }}; '
            f'flock -n -E 99 cards/$1 flock -n -E 99 cards/${{2:-none$$}} sleep {seconds} || exit $?; exit {status}']


def other_kinds():
    """Of pools whose work neither sees this folder nor has a card to itself: (tenant, what is asked for)."""
    kinds = [('train', {'pool': 'cut', 'profile': '1g.10gb'}), ('nightly', {'pool': 'cut', 'profile': '3g.40gb'}),
             ('lab', {'pool': 'mps', 'milli': 100, 'memory_mib': 4096})]
    return kinds + [('train', {'pool': 'boxes'}), ('nightly', {'pool': 'boxes'})] * has_boxes()


class Client(threading.Thread):
    """Asks for one thing after another; writes down what was answered."""

    def __init__(self, machine, book, seed, stop):
        super().__init__(daemon=True)
        self.m, self.book, self.r, self.stopped = machine, book, random.Random(seed), stop
        self.wrong = []

    def ask(self, method, where, body=None, **kw):
        try:
            return self.m.ask(method, where, body, timeout=30, **kw)
        except (OSError, http.client.HTTPException):
            return None  # nobody knows what became of it

    def job(self):
        with self.book.lock:
            return self.r.choice(sorted(self.book.jobs)) if self.book.jobs else None

    def submit(self):
        r, number = self.r, self.book.number()
        tenant = r.choice(['chat', 'train', 'nightly', 'lab', 'lab'])
        back = tenant == 'nightly' or r.random() < 0.4
        seconds = r.choice(['0', '0.1', '0.5', '2', '300'])
        body = {'tenant': tenant, 'argv': script(number, seconds, r.choice([0, 0, 3])), 'cwd': self.m.here,
                'can_requeue': back, 'name': f'n{number}'}
        if r.random() < 0.35:
            tenant, more = r.choice(other_kinds())
            back = back or tenant == 'nightly'
            body.update(more, tenant=tenant, can_requeue=back,
                        argv=['/bin/sh', '-c', f'sleep {seconds}; exit {r.choice([0, 3])}'])
            del body['cwd']
        elif tenant == 'lab':
            body.update(pool='shares', milli=250, memory_mib=r.choice([1024, 8192]))
        else:
            body['env'] = ['BH_ALONE=1']
            body['pool'] = 'cards'
            body['gpus'] = r.choice([1, 1, 1, 2])
        key = f'key-{number}' if r.random() < 0.5 else None
        for _ in range(2 if key else 1):
            a = self.ask('POST', '/v1/jobs', body, headers={'Idempotency-Key': key} if key else None)
            if a is not None and a.status == 201:
                got = a.json['id']
                with self.book.lock:
                    if self.book.keys.setdefault(key or f'none-{number}', got) != got:
                        self.wrong.append(f'{key} was answered with {got} and {self.book.keys[key]}')
                    self.book.jobs[got] = (back, number)
            elif a is not None and a.status >= 500 and a.status != 503:
                self.expect(a, 'submit')

    def expect(self, a, what):
        """Answers that a daemon in trouble may give."""
        if a.status in (500, 503):
            return
        self.wrong.append(f'{what}: {a!r}')

    def cancel(self):
        job = self.job()
        if job:
            a = self.ask('POST', f'/v1/jobs/{job}/cancel', {'reason': 'storm'})
            if a is not None and a.ok:
                with self.book.lock:
                    self.book.cancelled.add(job)

    def gpu(self):
        order = self.r.choice(['cordon', 'uncordon', 'uncordon', 'drain'])
        a = self.ask('POST', f'/v1/gpus/{self.r.randrange(8)}/{order}', {'reason': 'storm'})
        if a is not None and a.ok:
            with self.book.lock:
                self.book.gpu_orders[order] += 1

    def apply(self):
        a = self.ask('POST', '/v1/policy/apply', {'text': policy(train=self.r.choice([1, 2]))})
        if a is not None and a.ok:
            with self.book.lock:
                self.book.policies.add(a.json['version'])

    def read(self):
        job = self.job() or 'J1'
        where = self.r.choice(['/v1/status', '/v1/gpus', '/v1/jobs?limit=20&newest=true', f'/v1/jobs/{job}', f'/v1/jobs/{job}/why',
                               '/v1/leases?state=live', '/v1/usage', '/v1/quota', '/v1/audit?limit=20&newest=true',
                               f'/v1/jobs/{job}/logs'])
        a = self.ask('GET', where)
        if a is not None and a.status >= 500 and a.status not in (500, 503):
            self.wrong.append(f'{where}: {a!r}')

    def end_lease(self):
        a = self.ask('GET', '/v1/leases?state=live&limit=50')
        leases = a.json['leases'] if a is not None and a.ok else []
        if leases:
            what = self.r.choice(['end', 'pause', 'resume'])
            self.ask('POST', f'/v1/leases/{self.r.choice(leases)["id"]}/{what}', {'reason': 'storm'})

    def run(self):
        kinds = [self.submit] * 8 + [self.cancel] * 3 + [self.gpu] * 2 + [self.apply] + [self.read] * 4 + [self.end_lease]
        while not self.stopped.is_set():
            self.r.choice(kinds)()
            self.stopped.wait(self.r.random() * 0.1)


# ---- what breaks ----

BROKEN = collections.Counter()  # what was done, of what kind; kills by whom they hit


def kill_some(m, r, *names):
    pids = m.processes(*names)
    for pid in r.sample(pids, min(len(pids), r.randint(1, 2))):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            BROKEN[f'{names[0]} killed'] += 1
    return False


def daemon_dies(m, r):
    m.kill()
    time.sleep(r.random() * 0.3)
    m.start()


def daemon_dies_twice(m, r):
    m.kill()
    m.spawn()
    time.sleep(r.random() * 0.6)
    m.kill()
    m.start()


def daemon_ends(m, _):
    m.kill(signal.SIGTERM)
    m.start()


def disk_is_full(m, r):
    if not m.small:
        return False
    room = os.statvfs(m.state)
    with contextlib.suppress(OSError), open(f'{m.state}/ballast', 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, room.f_bavail * room.f_bsize)
    time.sleep(r.random())
    if r.random() < 0.3:
        m.kill()
        time.sleep(0.1)
        os.unlink(f'{m.state}/ballast')
        m.start()
    else:
        os.unlink(f'{m.state}/ballast')
    return True


def disk_fails(m, r):
    m.set_faults(permille=r.choice([20, 200, 1000]), error=r.choice([errno.EIO, errno.ENOSPC]), seed=r.getrandbits(60))
    time.sleep(r.random())
    if r.random() < 0.3:
        m.kill()
        m.set_faults()
        m.start()
    m.set_faults()


def driver_fails(m, r):
    m.broken('calls', 'fail', str(r.choice([51, 2, 999])), 'every', str(r.choice([1, 3, 7])))
    time.sleep(r.random() * 2)
    m.broken('mend')


def clock_jumps(m, r):
    m.set_faults(clock_ms=r.choice([-48, -1, 1, 48]) * HOUR_MS)
    time.sleep(r.random() * 0.5)
    if r.random() < 0.5:
        m.kill()
        m.set_faults(clock_ms=r.choice([-48, 0, 1]) * HOUR_MS)
        m.start()


def machine_reboots(m, _):
    m.reboot()
    m.start()


def runtime_dies(m, r):
    """While it makes, starts or removes a container, if there is one in the next moment; else whoever is in one."""
    if not has_boxes():
        return False
    end = time.monotonic() + r.random()
    while time.monotonic() < end:
        kill_some(m, r, 'runc', 'crun', 'runc:[2:INIT]', 'runc:[1:CHILD]')
        time.sleep(0.02)
    return False


KINDS = [daemon_dies, daemon_dies, daemon_dies_twice, daemon_ends, disk_is_full, disk_fails, driver_fails, clock_jumps,
         machine_reboots, lambda m, r: kill_some(m, r, 'bulkhead-keeper'), lambda m, r: kill_some(m, r, 'bulkhead-warden'),
         lambda m, r: kill_some(m, r, 'sleep', 'flock', 'sh'), lambda m, r: kill_some(m, r, 'bulkhead-scrub'),
         lambda m, r: kill_some(m, r, 'bulkhead-govern'), lambda m, r: kill_some(m, r, 'mps-control'), runtime_dies, runtime_dies]


def one_round(m, book, seed, faults):
    r = random.Random(seed)
    stop = threading.Event()
    clients = [Client(m, book, f'{seed}-{i}', stop) for i in range(CLIENTS)]
    for c in clients:
        c.start()
    try:
        for _ in range(r.randint(1, faults)):
            time.sleep(r.random() * 0.8)
            kind = r.choice(KINDS)
            if kind(m, r) is not False:  # else nothing, or counted by whom it hit
                BROKEN[kind.__name__.replace('_', ' ')] += 1
        time.sleep(r.random() * 0.3)
    finally:
        stop.set()
        for c in clients:
            c.join(120)
    same([w for c in clients for w in c.wrong], [], 'answers')
    until(m.answers, 60, m.log)
    m.sound()
    known = {f'J{x["id"]}' for x in m.rows('SELECT id FROM jobs')}
    same(sorted(set(book.jobs) - known), [], 'acknowledged jobs that are not there')


def settle(m, book):
    """All is healed, all ends; nothing is left, and every acknowledged word is in the log."""
    m.set_faults(clock_ms=0)
    m.broken('mend')
    for i in range(8):
        until(lambda: m.post(f'/v1/gpus/{i}/uncordon').ok, 60, m.log)
    for state in ('running', 'waiting', 'running'):
        for j in m.get(f'/v1/jobs?state={state}&limit=1000').json['jobs']:
            m.post(f'/v1/jobs/{j["id"]}/cancel')
    m.quiet()
    again = [x['gpu'] for x in m.rows("SELECT DISTINCT gpu FROM slices WHERE state = 'quarantined'")]
    for gpu in again:  # what could not be looked at while the driver failed
        assert m.post(f'/v1/gpus/{gpu}/uncordon').ok
    until(lambda: not m.rows("SELECT id FROM slices WHERE state <> 'free'"), 60, lambda: m.rows("SELECT * FROM slices WHERE state <> 'free'"))
    left = lambda: [*os.listdir(f'{m.run}/mps'), *m.rows("SELECT key FROM notes WHERE key LIKE 'mps/%'")]  # noqa: E731
    until(lambda: not left(), 60, left)
    m.nothing_left()
    same([os.listdir(f'{m.run}/{d}') for d in ('bundles', 'containers', 'probes')], [[], [], []], 'what is left of containers')
    m.sound()
    check_words(m, book)
    ran = m.rows("SELECT pool, count(DISTINCT lease) n FROM lease_history h JOIN leases l ON l.id = h.lease WHERE h.new = 'active' GROUP BY pool")
    print('# leases that ran:', ', '.join(f'{x["n"]} of {x["pool"]}' for x in ran), flush=True)
    m.kill(signal.SIGTERM)
    m.verified()


def check_words(m, book):
    records = [json.loads(json.dumps(x)) for x in m.audit()]
    of = {}
    for x in records:
        of.setdefault(x['event'], []).append(x['object_id'])
    jobs = {f'J{x["id"]}': x for x in m.rows('SELECT * FROM jobs')}
    same([j for j, x in jobs.items() if x['state'] != 'ended'], [], 'jobs without an end')
    for j, (back, number) in book.jobs.items():
        same(of.get('job.submit', []).count(j), 1, f'records of the submission of {j}')
        begun = pathlib.Path('begun', str(number))
        times = len(begun.read_text().splitlines()) if begun.exists() else 0
        assert back or times <= 1, f'{j} may not be begun again, and was begun {times} times'
        assert jobs[j]['status'] != 99, f'{j} was not alone on its cards'
    for j in book.cancelled:
        assert j in of.get('job.cancel', []), f'no record of the end of {j}'
    for order, n in book.gpu_orders.items():
        assert len(of.get(f'gpu.{order}', [])) >= n, f'{n} times {order}, and fewer records'
    for v in book.policies:
        assert str(v) in of.get('policy.change', []), f'no record of policy {v}'


def episode(w, first, last, done):
    m = Machine(first // EPISODE)
    book = Book()
    try:
        m.start()
        for k in range(first, last):
            one_round(m, book, f'{w.seed}-{k}', w.faults)
            done[0] = k + 1
        settle(m, book)
        log = m.log()
        assert 'AddressSanitizer' not in log and 'runtime error' not in log, log[-6000:]
    except BaseException:
        print('# ' + m.log()[-8000:].replace('\n', '\n# '))
        keep = os.environ.get('BH_STORM_KEEP')
        if keep:  # for whoever looks into it
            shutil.copytree(m.state, keep, dirs_exist_ok=True)
            shutil.copy('daemon.log', keep)
        raise
    finally:
        m.stop()


def test_storm():
    w = words()
    first = 0 if w.round is None else w.round - w.round % EPISODE
    last = w.rounds if w.round is None else w.round + 1
    if os.geteuid() != 0:
        raise lab.Skip('needs root')
    home = os.getcwd()
    for k in range(first, last, EPISODE):
        done = [k]
        os.mkdir(f'{home}/{k}')
        os.chmod(home, 0o755)
        os.chdir(f'{home}/{k}')
        try:
            episode(w, k, min(k + EPISODE, last), done)
        except BaseException:
            print(f'# to repeat it: --seed {w.seed} --faults {w.faults} --round {done[0]}')
            raise
        print(f'# {done[0]} rounds, {sum(BROKEN.values())} faults', flush=True)
        os.chdir(home)
    print('# faults:', ', '.join(f'{n} {what}' for what, n in sorted(BROKEN.items()) if n))


if __name__ == '__main__':
    own_machine()
    lab.tap.main(globals())
