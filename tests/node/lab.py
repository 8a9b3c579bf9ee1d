# SPDX-License-Identifier: Apache-2.0
"""What the tests of the daemon share: simulated silicon, a daemon on it, callers, and a judge of its books.

The real daemon, keepers, wardens and scrubber; only the cards and the vendor's libraries are simulated.
Usage of a test file: NAME.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import contextlib
import errno
import http.client
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, Skip, environment, has, same, write  # noqa: E402,F401

DAEMON, CHECK, AUDIT = (os.path.abspath(a) for a in sys.argv[3:6])
NOBODY = 65534
GROUPS = pathlib.Path('/sys/fs/cgroup')
PRIVATE = 'BULKHEAD_TEST_PRIVATE'  # set once we have a network and mounts of our own
PATIENCE = int(os.environ.get('BULKHEAD_TEST_PATIENCE', '1'))  # times as long is waited for everything, as on an emulated machine
# A card is written and read from end to end after each lease: one of 80 GB takes more than three times as long as one of 24 GB. A test that
# does not care which cards there are has small ones; the large ones have NVLink.
SMALL, LARGE = 'A30-24GBx8', 'h100x8'

TENANTS = '''\
bulkhead: 1
tenants:
  - {name: chat, class: serving, costCenter: cc-1, quota: {model: hard, gpus: 2},
     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
  - {name: train, class: training, costCenter: cc-2,
     quota: {model: fairshare, gpus: TRAIN, max: 4, weight: 200, borrow: true},
     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
  - {name: lab, class: research, costCenter: cc-3,
     quota: {model: fairshare, gpus: 1, max: 4, weight: 100, borrow: true},
     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
  - {name: nightly, class: batch, costCenter: cc-3,
     quota: {model: fairshare, gpus: 0, max: 4, weight: 50, borrow: true},
     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
'''
POOLS = '''\
pools:
  - {name: cards, match: {gpus: [0, 1, 2, 3]}, mechanism: whole, tier: process, tenants: [chat, train, nightly]}
  - {name: shares, match: {gpus: [4, 5, 6, 7]}, mechanism: fractional, backing: gate, tier: process, tenants: [lab],
     caps: {memory: SHARE, compute: 25%}}
roles:
  - {subject: "user:root", role: operator}
  - {subject: "user:nobody", role: tenant-user, tenant: lab}
'''


def policy(train=2, share='7GiB'):
    """A share is such that four of them are more than a small card has."""
    return TENANTS.replace('TRAIN', str(train)) + POOLS.replace('SHARE', share)


def own_machine():
    """Runs again with a network that nobody else has: what is made there goes with it."""
    if os.geteuid() != 0 or os.environ.get(PRIVATE):
        return
    if subprocess.run(['unshare', '-n', '-m', 'true'], capture_output=True, check=False).returncode == 0:
        os.environ[PRIVATE] = '1'
        os.execvp('unshare', ['unshare', '-n', '-m', sys.executable, *sys.argv])


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def ok(self):
        return 200 <= self.status < 300

    @property
    def words(self):
        return self.json['error']['message']

    def __repr__(self):
        return f'{self.status} {self.body[:2000]!r}'


def call(path, method, where, body=None, uid=0, headers=None, timeout=60):
    """One request over the unix socket, as that user."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    try:
        if uid:
            os.seteuid(uid)
        try:
            s.connect(path)
        finally:
            if uid:
                os.seteuid(0)
        data = b'' if body is None else json.dumps(body).encode()
        lines = [f'{method} {where} HTTP/1.1', 'Host: bulkhead', f'Content-Length: {len(data)}',
                 *(f'{k}: {v}' for k, v in (headers or {}).items())]
        s.sendall('\r\n'.join(lines).encode() + b'\r\n\r\n' + data)
        r = http.client.HTTPResponse(s, method=method)
        r.begin()
        return Answer(r.status, r.headers, r.read())
    finally:
        s.close()


def children(pid, name):
    """Those of a process that have this name."""
    found = []
    for child in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split():
        with contextlib.suppress(OSError):
            if pathlib.Path(f'/proc/{child}/comm').read_text().strip() == name:
                found.append(int(child))
    return found


class Asked(threading.Thread):
    """A question under way."""

    def __init__(self, n, where, **kw):
        super().__init__(daemon=True)
        self.n, self.where, self.kw, self.answer = n, where, kw, None
        self.start()

    def run(self):
        self.answer = self.n.get(self.where, **self.kw)


class Books:
    """One moment of a node's books: the daemon goes on writing, and what is read here is all of one time."""

    def __init__(self, node):
        self.born = node.born
        self.db = sqlite3.connect(f'file:{node.state}/bulkhead.db?mode=ro', uri=True, timeout=30, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute('BEGIN')

    def rows(self, sql, *args):
        return [dict(r) for r in self.db.execute(sql, args)]

    def close(self):
        self.db.close()


class Node:
    """Simulated silicon and, most of the time, a daemon on it; all below the current folder."""

    def __init__(self, scene=SMALL, text=None):
        if os.geteuid() != 0:
            raise Skip('needs root')
        self.here = os.getcwd()
        os.chmod(self.here, 0o755)
        self.state, self.run = f'{self.here}/state', f'{self.here}/run'
        self.group = f'bh-test-{os.getpid()}'
        self.policy = write('policy.yaml', policy() if text is None else text)
        os.mkdir('h')
        done = subprocess.run([BIN, 'sim', 'start', scene], capture_output=True, text=True, check=False, timeout=120,
                              env=environment(BULKHEAD_SIM_HOME=f'{self.here}/h'))
        same(done.returncode, 0, done.stderr)
        at = f'{self.here}/h/lab'
        self.env = environment(BULKHEAD_SIM_HOME=f'{self.here}/h', BULKHEAD_SIM=at, BULKHEAD_SYSROOT=f'{at}/sysroot',
                               BULKHEAD_NVML=f'{at}/lib/libnvidia-ml.so.1', BULKHEAD_CUDA=f'{at}/lib/libcuda.so.1',
                               LD_LIBRARY_PATH=f'{at}/lib', BULKHEAD_STATE_DIR=self.state, BULKHEAD_RUN_DIR=self.run,
                               BULKHEAD_CGROUP=self.group)
        # Sanitizers look for leaks by ptrace, which the filter refuses.
        self.env['ASAN_OPTIONS'] = 'detect_leaks=0'
        self.process = None
        self.program = DAEMON
        self.more = {}
        self.starts = 0
        self.born = time.monotonic()

    # ---- the daemon ----

    def spawn(self, *words):
        self.starts += 1
        with open('daemon.log', 'ab') as log:
            self.process = subprocess.Popen([self.program, '--policy', self.policy, *words], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**self.env, **self.more})

    def start(self, *words):
        """Until it answers."""
        self.spawn(*words)
        until(self.answers, 120, self.log)
        return self

    def answers(self):
        assert self.process.poll() is None, f'the daemon ended with {self.process.returncode}: {self.log()[-2000:]}'
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get('/v1/health').ok
        return False

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        code = self.process.wait(120)
        self.process = None
        return code

    def again(self):
        self.kill()
        return self.start()

    def reboot(self):
        """All processes of it are gone, and so is what a reboot empties."""
        if self.process:
            self.kill()
        self.kill_all()
        shutil.rmtree(self.run)

    def kill_all(self):
        def killed():
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        until(killed, 60, lambda: [cmdline(p) for p in self.processes()])

    def log(self):
        return pathlib.Path(self.here, 'daemon.log').read_text(errors='replace')

    # ---- asking ----

    def ask(self, method, where, body=None, **kw):
        return call(f'{self.run}/api.sock', method, where, body, **kw)

    def get(self, where, **kw):
        return self.ask('GET', where, **kw)

    def post(self, where, body=None, **kw):
        return self.ask('POST', where, body or {}, **kw)

    def submit(self, tenant, *argv, uid=0, headers=None, **more):
        r = self.post('/v1/jobs', {'tenant': tenant, 'argv': list(argv), **more}, uid=uid, headers=headers)
        assert r.ok, repr(r)
        return r.json['id']

    def job(self, job):
        r = self.get(f'/v1/jobs/{job}')
        assert r.ok, repr(r)
        return r.json

    def lease(self, lease):
        return self.get(f'/v1/leases/{lease}').json

    def leases_of(self, job):
        return [x['id'] for x in self.job(job)['leases']]

    def state_of(self, job):
        return self.job(job)['job']['state']

    def wait(self, job, state='ended', seconds=120):
        until(lambda: self.state_of(job) == state, seconds, lambda: f'{self.job(job)}\n{self.log()[-3000:]}')
        return self.job(job)['job']

    def wait_lease(self, lease, *states, seconds=120):
        until(lambda: self.lease(lease)['lease']['state'] in states, seconds,
              lambda: f'{self.lease(lease)}\n{self.log()[-3000:]}')
        return self.lease(lease)

    def active(self, job):
        """The lease under which it runs now, once it does."""
        found = []

        def look():
            found[:] = [x['id'] for x in self.job(job)['leases'] if x['state'] == 'active']
            return found
        until(look, 120, lambda: f'{self.job(job)}\n{self.log()[-3000:]}')
        return found[0]

    def audit(self, **fields):
        """Records whose fields are these."""
        rows = []
        after = 0
        while True:
            page = self.get(f'/v1/audit?after={after}&limit=1000').json['records']
            rows += page
            if not page:
                break
            after = page[-1]['seq']
        return [r for r in rows if all(r.get(k) == v for k, v in fields.items())]

    def broken(self, *words):
        done = subprocess.run([BIN, 'sim', 'break', 'lab', *words], capture_output=True, text=True, check=False,
                              timeout=60, env=self.env)
        same(done.returncode, 0, done.stderr)

    # ---- what there is on the machine ----

    def processes(self, *names):
        """Those of this node: they name its folder in their words or their environment, or are in one of its cgroups."""
        mine = []
        for p in pathlib.Path('/proc').iterdir():
            if not p.name.isdigit() or int(p.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                comm = (p / 'comm').read_text().strip()
                if names and comm not in names:
                    continue
                text = (p / 'environ').read_bytes() + (p / 'cmdline').read_bytes()
                groups = (p / 'cgroup').read_text()
                stat = (p / 'stat').read_text().rpartition(')')[2].split()[0]
                ours = f'{self.here}/'.encode() in text or f'/{self.group}/' in groups
                if ours and stat != 'Z' and comm != 'bulkhead-sim' and not self.is_sim(p):
                    mine.append(int(p.name))
        return mine

    def is_sim(self, p):
        words = (p / 'cmdline').read_bytes().split(b'\0')
        return b'sim' in words

    def cgroups(self):
        found = []
        for root in (GROUPS, *(p for p in GROUPS.iterdir() if p.is_dir())):
            folder = root / self.group
            if folder.is_dir():
                found += [str(f) for f in folder.iterdir() if f.is_dir()]
        return found

    def drop_cgroups(self):
        for root in (GROUPS, *(p for p in GROUPS.iterdir() if p.is_dir())):
            folder = root / self.group
            if folder.is_dir():
                for f in folder.iterdir():
                    if f.is_dir():
                        with contextlib.suppress(OSError):
                            f.rmdir()
                with contextlib.suppress(OSError):
                    folder.rmdir()

    # ---- the books ----

    def rows(self, sql, *args):
        with contextlib.closing(Books(self)) as books:
            return books.rows(sql, *args)

    def sound(self):
        """What must hold at any time, looked at from outside."""
        done = subprocess.run([CHECK, f'{self.state}/bulkhead.db'], capture_output=True, text=True, check=False,
                              timeout=120, env=environment())
        same((done.returncode, done.stdout, done.stderr), (0, '', ''), 'the books')
        with contextlib.closing(Books(self)) as books:
            check_slices(books)
            check_usage(books)

    def verified(self):
        """The audit log, as somebody reads it who has the file alone."""
        done = subprocess.run([AUDIT, 'verify', f'{self.state}/bulkhead.db'], capture_output=True, text=True, check=False,
                              timeout=120, env=environment())
        same(done.returncode, 0, done.stdout + done.stderr)

    def quiet(self, seconds=180):
        """Until nothing runs, waits or is being cleared."""
        def busy():
            live = [x for x in self.get('/v1/leases?state=live').json['leases'] if x['state'] != 'quarantined']
            jobs = [j for s in ('waiting', 'running') for j in self.get(f'/v1/jobs?state={s}').json['jobs']]
            return live + jobs
        until(lambda: not busy(), seconds, lambda: f'{busy()}\n{self.log()[-4000:]}')

    def nothing_left(self):
        """Of work that is over."""
        same([p.name for p in pathlib.Path(self.run, 'leases').iterdir()], [], 'sockets and locks of leases')
        until(lambda: not self.cgroups(), 90, self.cgroups)
        until(lambda: not self.processes('bulkhead-keeper', 'bulkhead-warden', 'bulkhead-scrub'), 30,
              lambda: [cmdline(p) for p in self.processes('bulkhead-keeper', 'bulkhead-warden', 'bulkhead-scrub')])
        same(self.rows("SELECT * FROM slices WHERE state <> 'free'"), [], 'slices that are not free')
        used = [q for q in self.get('/v1/quota').json['quotas'] if q['used_milli'] or q['waiting_jobs']]
        same(used, [], 'quota in use')

    def stop(self):
        if self.process:
            self.kill(signal.SIGTERM)
        self.kill_all()
        self.drop_cgroups()
        done = subprocess.run([BIN, 'sim', 'stop', '--all'], capture_output=True, text=True, check=False, timeout=60,
                              env=self.env)
        same(done.returncode, 0, done.stderr)


class FrailNode(Node):
    """A node whose state is on a small disk where one can be had, and whose daemon has a clock and a disk that can be told to fail."""

    def __init__(self, library, scene=SMALL, text=None):
        """library: what tests/node/faults.c makes."""
        super().__init__(scene, text)
        os.mkdir('state')
        self.small = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=48m,mode=711', 'frail', self.state],
                                    capture_output=True, check=False).returncode == 0
        write('faults', '')
        with open('faults', 'r+b') as f:
            f.truncate(4096)
            self.faults = mmap.mmap(f.fileno(), 4096)
        self.more = {'LD_PRELOAD': library, 'BULKHEAD_TEST_FAULTS': os.path.abspath('faults')}
        self.env['ASAN_OPTIONS'] = 'detect_leaks=0:verify_asan_link_order=0'

    def set_faults(self, clock_ms=None, permille=0, error=errno.EIO, seed=1, passed_ms=0):
        """clock_ms: how far the clock is off; None: as it is."""
        old = struct.unpack('=q', self.faults[:8])[0]
        self.faults[:32] = struct.pack('=qIIQq', old if clock_ms is None else clock_ms, permille, error, seed, passed_ms)

    def stop(self):
        try:
            super().stop()
        finally:
            if self.small:
                subprocess.run(['umount', '-l', self.state], check=False)


def cmdline(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace')
    return 'gone'


def until(what, seconds=60, told=lambda: ''):
    end, pause = time.monotonic() + seconds * PATIENCE, 0.02 * PATIENCE
    while not what():
        assert time.monotonic() < end, f'waited in vain: {told()}'
        time.sleep(pause)
        pause = min(pause * 1.2, 0.15 * PATIENCE)  # to ask costs the daemon as much as what is waited for


@contextlib.contextmanager
def node(scene=SMALL, text=None, serve=True, of=None):
    """of: one that was made already."""
    n = of or Node(scene, text)
    try:
        if serve:
            n.start()
        yield n
        assert 'ERROR: AddressSanitizer' not in n.log() and 'runtime error' not in n.log(), n.log()[-6000:]
    except BaseException:
        print('# ' + n.log()[-6000:].replace('\n', '\n# '))
        raise
    finally:
        n.stop()


def check_slices(n):
    """No slice has two owners, whatever its kind; none was given on without a clean verdict in between."""
    owned = n.rows("SELECT gpu, kind, lease, milli FROM slices WHERE state = 'owned'")
    for gpu in {r['gpu'] for r in owned}:
        here = [r for r in owned if r['gpu'] == gpu]
        whole = [r for r in here if r['kind'] == 'whole']
        assert not whole or len(here) == 1, f'{gpu} has several owners: {here}'
        assert sum(r['milli'] for r in here if r['kind'] == 'share') <= 1000, f'{gpu} is given away more than once: {here}'
    # The grants of each whole card in their order: the one before was proved clean before the next one was made.
    grants = n.rows('SELECT g.id, g.lease, g.gpu, g.kind, g.proved, s.verdict FROM grants g '
                    'LEFT JOIN scrubs s ON s.id = g.proved ORDER BY g.gpu, g.id')
    for a, b in zip(grants, grants[1:]):
        if a['gpu'] == b['gpu'] and a['kind'] == b['kind'] == 'whole':
            assert a['proved'] and a['verdict'] == 'clean', f'{a} was handed on as {b}'


def check_usage(n):
    """While a lease was charged it was charged for each of its slices, without a gap, never twice, and never for more than passed."""
    sums = n.rows('SELECT lease, grant_id, sum(to_ms - from_ms) AS ms FROM usage WHERE to_ms IS NOT NULL GROUP BY grant_id')
    passed = (time.monotonic() - n.born) * 1000
    for u in sums:
        assert u['ms'] <= passed, f'L{u["lease"]} is charged for {u["ms"]} ms, and {passed:.0f} ms have passed in all'
    for lease in n.rows("SELECT id FROM leases WHERE id IN (SELECT lease FROM grants)"):
        steps = n.rows('SELECT new, at_ms FROM lease_history WHERE lease = ? ORDER BY id', lease['id'])
        begins = [s['at_ms'] for s in steps if s['new'] == 'active']
        ends = [s['at_ms'] for s in steps if s['new'] in ('scrubbing', 'quarantined')]
        uses = n.rows('SELECT grant_id, from_ms, to_ms FROM usage WHERE lease = ? ORDER BY grant_id, id', lease['id'])
        grants = n.rows('SELECT id FROM grants WHERE lease = ?', lease['id'])
        if not begins:
            same(uses, [], f'L{lease["id"]} never ran')
            continue
        for g in grants:
            mine = [u for u in uses if u['grant_id'] == g['id']]
            assert mine, f'L{lease["id"]} ran, and nobody was charged'
            same(mine[0]['from_ms'], begins[0], f'L{lease["id"]}: the first interval')
            for a, b in zip(mine, mine[1:]):
                same(a['to_ms'], b['from_ms'], f'L{lease["id"]}: one interval after the other')
            if ends:
                same(mine[-1]['to_ms'], ends[0], f'L{lease["id"]}: the last interval')
