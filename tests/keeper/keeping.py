# SPDX-License-Identifier: Apache-2.0
"""What the tests of the keeper share: a place for leases, their specs, and the daemon's side of them (ask.c)."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'gate'))
from run import GIB, NOBODY, lines, node, tap, until  # noqa: E402
from tap import BIN, Result, Skip, environment, has, same  # noqa: E402

TENANT, KEEPER, ASK = (os.path.abspath(a) for a in sys.argv[3:6])
QUIET = 'ASAN_OPTIONS=detect_leaks=0'  # sanitizers look for leaks by ptrace, which the filter refuses
CGROUP = f'bulkhead-test-{os.getpid()}'


def alive(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


def hierarchies(below):
    """That path in every hierarchy: of version 1, and of version 2 beside them or alone."""
    top = pathlib.Path('/sys/fs/cgroup')
    return [*top.glob(below), *top.glob(f'*/{below}')]


def in_cgroup(name):
    """Who is in a group of that name, in any hierarchy."""
    found = set()
    for procs in hierarchies(f'{name}/cgroup.procs'):
        try:
            found |= {int(p) for p in procs.read_text().split()}
        except OSError:  # it went meanwhile
            pass
    return found


def cgroups():
    """The groups of this test that are left."""
    return sorted(str(p) for p in hierarchies(f'{CGROUP}/*') if p.is_dir())


@contextlib.contextmanager
def complaints():
    """Keepers and wardens say nothing on a terminal: what a sanitizer finds in them is written to a file, and there may be none.

    A process that is killed while leaks are looked for leaves a word of that, which is no complaint.
    """
    before = os.environ.get('ASAN_OPTIONS')
    os.environ['ASAN_OPTIONS'] = ':'.join(filter(None, (before, 'detect_stack_use_after_return=1', f'log_path={os.getcwd()}/complaint')))
    try:
        yield
    finally:
        if before is None:
            del os.environ['ASAN_OPTIONS']
        else:
            os.environ['ASAN_OPTIONS'] = before
    said = [p.read_text(errors='replace') for p in pathlib.Path.cwd().glob('complaint.*')]
    same([s for s in said if re.search('ERROR: |runtime error: ', s)], [])


@contextlib.contextmanager
def place(**more):
    """A place for leases on a simulated node. Nothing may be left there."""
    with complaints(), node() as env:
        os.mkdir('run')
        p = Place({**env, 'BULKHEAD_RUN_DIR': os.path.abspath('run'), **more})
        yield p
        p.remove()
        until(lambda: not os.path.exists('run/governor.sock'))


class Place:
    """STATE/leases and RUN/leases of a daemon."""
    def __init__(self, env):
        if not hierarchies('cgroup.procs'):
            raise Skip('no cgroup hierarchies below /sys/fs/cgroup')
        self.env = env
        os.chmod('.', 0o755)
        for d in ('s', 'r'):
            os.makedirs(d, exist_ok=True)
            os.chmod(d, 0o755)
        self.last = 0

    def lease(self, *argv, **more):
        self.last += 1
        return Lease(self, self.last, argv, more)

    def remove(self):
        """Nothing may be left."""
        same(cgroups(), [])
        same(sorted(os.listdir('r')), [])
        for top in hierarchies(CGROUP):
            top.rmdir()


class Lease:
    def __init__(self, place, number, argv, more):
        self.place, self.number = place, number
        self.folder = os.path.abspath(f's/{number}')
        self.cgroup = f'{CGROUP}/L{number}'
        os.mkdir(self.folder)
        spec = {'version': 1, 'lease': number, 'tier': 'process', 'runDir': os.path.abspath('r'), 'cgroup': self.cgroup,
                'graceMs': 500, 'gate': True, 'capBytes': 10 * GIB, 'uid': NOBODY, 'gid': NOBODY, 'argv': list(argv),
                'env': [f'PATH={os.environ["PATH"]}', QUIET] + [f'{k}={v}' for k, v in place.env.items()]}
        spec.update(more)
        self.spec = {k: v for k, v in spec.items() if v is not None}
        pathlib.Path(self.folder, 'keeper.json').write_text(json.dumps(self.spec))

    def command(self, verb, *more):
        return [ASK, self.folder, os.path.abspath('r'), str(self.number), verb, *map(str, more)]

    def ask(self, verb, *more, **kw):
        return Result(subprocess.run(self.command(verb, *more), capture_output=True, check=False, timeout=120,
                                     env=environment(**self.place.env), stdin=subprocess.DEVNULL, **kw))

    def start(self):
        r = self.ask('start', KEEPER)
        same((r.rc, r.err), (0, ''), repr(r))
        return self

    def look(self):
        r = self.ask('look')
        same(r.rc, 0, repr(r))
        return lines(r.out)

    def status(self):
        r = self.ask('status')
        return lines(r.out) if r.rc == 0 else {'state': 'none', 'text': r.err}

    def runs(self):
        until(lambda: self.status()['state'] == 'runs')
        return self

    def record(self):
        path = pathlib.Path(self.folder, 'end.json')
        return json.loads(path.read_text()) if path.exists() else None

    def end(self):
        """Its end record, waited for."""
        until(lambda: self.look()['found'] == 'ended')
        return self.record()

    def text(self, name='out'):
        path = pathlib.Path(self.folder, name)
        return path.read_text(errors='replace') if path.exists() else ''

    def run(self):
        return self.start().end()

    def empty(self):
        return Result(subprocess.run([ASK, '-', self.cgroup, '0', 'empty'], capture_output=True, check=False, timeout=60))

    def pids(self):
        """The keeper's, its children's and the work's."""
        keeper = int(self.look()['pid'])
        try:
            below = [int(c) for c in pathlib.Path(f'/proc/{keeper}/task/{keeper}/children').read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            below = []
        return keeper, below


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def name_of(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ''


def doing(pid):
    """What each thread of a process waits for: of one that should have ended by now."""
    def read(at, name):
        try:
            return (at / name).read_text().strip()
        except OSError:  # it ended meanwhile
            return ''
    said = []
    for at in sorted(pathlib.Path(f'/proc/{pid}/task').glob('*')):
        stack = ' < '.join(line.split()[-1] for line in read(at, 'stack').splitlines()[:6])
        state = read(at, 'stat').rpartition(')')[2][:2].strip()
        said.append(f'{read(at, "comm")} {at.name} {state} {read(at, "wchan")} system call {read(at, "syscall")} [{stack}]')
    return said
