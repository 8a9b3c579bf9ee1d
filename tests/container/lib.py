# SPDX-License-Identifier: Apache-2.0
"""Containers of leases for tests: bundles by the real writer, run by the real runc.

A probe is a Python script that runs as the tenant and prints `held` or `through`. Each wall is tried twice: as it is written, and
with that wall taken out of config.json, where the same probe must come through. A test that cannot fail tests nothing.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'gate'))
import oci as gate  # noqa: E402
from run import TENANT, need_root, until  # noqa: E402
from tap import Result, Skip, environment, same, write  # noqa: E402

OCI = os.path.abspath(sys.argv[4])
MAKER = os.path.abspath(sys.argv[5])
FIRST = os.getpid() * 100  # of our leases: other tests run beside us, in the same cgroups
PRIVATE = 'BULKHEAD_TEST_PRIVATE'  # set once we have a network and mounts of our own
PROLOGUE = '''
import ctypes, os, signal, socket, stat, subprocess, sys, time
def verdict(ok):
    print('through' if ok else 'held', flush=True)
def tried(fn):
    try:
        return fn()
    except OSError as e:
        print('#', e, flush=True)
        return False
'''


def own_machine():
    """Runs again with a network and mounts that nobody else has: what is made here goes with it."""
    if os.geteuid() != 0 or os.environ.get(PRIVATE):
        return
    if subprocess.run(['unshare', '-n', '-m', 'true'], capture_output=True, check=False).returncode == 0:
        os.environ[PRIVATE] = '1'
        os.execvp('unshare', ['unshare', '-n', '-m', sys.executable, *sys.argv])


def need(*programs):
    need_root()
    if not os.environ.get(PRIVATE):
        raise Skip('no network namespace can be made here')
    for p in programs:
        if not shutil.which(p):
            raise Skip(f'{p} is not installed')


def maker(*args):
    return Result(subprocess.run([MAKER, *args], capture_output=True, env=environment(), timeout=60, check=False))


def made(*args):
    r = maker(*args)
    same((r.rc, r.err), (0, ''), repr(r))
    return r.out


def runc(*args, **kw):
    return subprocess.run(['runc', '--root', os.path.abspath('runc-root'), *args], capture_output=True, check=False,
                          timeout=120, env=environment(), **kw)


def unified():
    """Cgroups of version 2 and none of version 1."""
    return os.path.exists('/sys/fs/cgroup/cgroup.controllers')


able = []


def bare_container():
    """Why runc cannot run any container with a user namespace here; '': it can."""
    root = pathlib.Path('bare/rootfs')
    shared = [d for d in ('usr', 'bin', 'lib', 'lib64') if os.path.isdir(f'/{d}')]
    for d in (*shared, 'proc'):
        (root / d).mkdir(parents=True)
    os.chown(root, 200000, 200000)
    ids = [{'containerID': 0, 'hostID': 200000, 'size': 65536}]
    write('bare/config.json', json.dumps({
        'ociVersion': '1.0.2', 'root': {'path': 'rootfs'}, 'process': {'user': {'uid': 0, 'gid': 0}, 'args': ['true'], 'cwd': '/', 'env': ['PATH=/bin']},
        'mounts': [{'destination': '/proc', 'type': 'proc', 'source': 'proc'}] +
                  [{'destination': f'/{d}', 'type': 'bind', 'source': f'/{d}', 'options': ['rbind', 'ro']} for d in shared],
        'linux': {'namespaces': [{'type': t} for t in ('pid', 'mount', 'user')], 'uidMappings': ids, 'gidMappings': ids,
                  'cgroupsPath': f'/bulkhead-test-{FIRST}'}}))
    done = Result(runc('run', '--bundle', 'bare', f'bare{FIRST}'))
    return '' if done.rc == 0 else f'runc cannot run a container with a user namespace here: {(done.out + done.err).strip()[-300:]}'


def need_runc():
    """Whether runc can run a bundle of ours here at all; the bare one, so that a fault in ours is no reason to skip."""
    need('runc')
    os.chmod('.', 0o755)
    if not able:
        able.append(bare_container())
    if able[0]:
        raise Skip(able[0])


class Lease:
    """A container of a lease. edit: a function that takes a wall out of its config.json."""

    def __init__(self, number, script, *words, edit=None, tenant='acme', ids=None, command=None, runtime=None):
        self.id = FIRST + number
        self.name = f'L{self.id}'
        self.folder = os.path.abspath(f'bundle-{self.name}')
        self.tenant = tenant
        ids = ids or 200000 + 65536 * number
        made('bundle', self.folder, f'lease={self.id}', f'tenant={tenant}', f'ids={ids}', f'hook={OCI}', *words, '--',
             *(command or ('python3', '-c', PROLOGUE + script)))
        if edit:
            path = pathlib.Path(self.folder, 'config.json')
            config = json.loads(path.read_text())
            edit(config)
            path.write_text(json.dumps(config))
        self.base = runtime or ['runc', '--root', os.path.abspath('runc-root')]
        self.process = subprocess.Popen([*self.base, 'run', '--bundle', self.folder, self.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())

    def runtime(self, *args):
        return subprocess.run([*self.base, *args], capture_output=True, check=False, timeout=60, env=environment())

    def line(self):
        while True:
            text = self.process.stdout.readline().decode().rstrip('\n')
            if not text.startswith('#'):
                return text

    def finish(self, seconds=60):
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out.decode(), err.decode()

    def end(self):
        if self.process.poll() is None:
            self.runtime('kill', self.name, 'KILL')
            self.process.communicate(timeout=60)
        self.runtime('delete', '--force', self.name)
        made('net', 'detach', f'lease={self.id}', f'tenant={self.tenant}')
        made('remove', self.folder)
        assert not os.path.exists(self.folder), 'the bundle must go'

    def limits(self, **files):
        """What files of its cgroup say, each by its controller."""
        top = pathlib.Path('/sys/fs/cgroup')
        return [(top / ('' if unified() else k) / 'bulkhead' / self.name / f).read_text().strip() for k, f in files.items()]


@contextlib.contextmanager
def lease(*args, **kw):
    c = Lease(*args, **kw)
    try:
        yield c
    finally:
        c.end()


def probe(number, script, *words, **kw):
    """What the tenant found: `held` or `through`."""
    with lease(number, script, *words, **kw) as c:
        rc, out, err = c.finish()
        found = [x for x in out.splitlines() if x in ('held', 'through')]
        assert len(found) == 1, f'rc {rc}: {out} {err}'
        return found[0]


def wall(number, script, *words, without, what='', **kw):
    """The wall holds, and it is this one that does."""
    same(probe(number, script, *words, **kw), 'held', what)
    same(probe(number, script, *words, edit=without, **kw), 'through', f'{what}: the wall is gone, and the test did not see it')


# ---- walls, taken out ----

def no_user_namespace(config):
    linux = config['linux']
    linux['namespaces'] = [n for n in linux['namespaces'] if n['type'] != 'user']
    del linux['uidMappings'], linux['gidMappings']


def no_namespace(kind):
    def edit(config):
        linux = config['linux']
        linux['namespaces'] = [n for n in linux['namespaces'] if n['type'] != kind]
        # what cannot be mounted without it
        gone = {'network': '/sys', 'ipc': '/dev/mqueue'}.get(kind)
        config['mounts'] = [m for m in config['mounts'] if m['destination'] != gone]
    return edit


def capability(*names):
    def edit(config):
        for group in ('bounding', 'effective', 'permitted'):
            config['process']['capabilities'][group] = list(names)
    return edit


def shown(host, inside, *options):
    def edit(config):
        config['mounts'].append({'destination': inside, 'type': 'bind', 'source': host, 'options': ['rbind', *options]})
    return edit


def opened(major, minor):
    def edit(config):
        config['linux']['resources']['devices'].append(
            {'allow': True, 'type': 'c', 'major': major, 'minor': minor, 'access': 'rwm'})
    return edit


def no_limit(kind):
    def edit(config):
        del config['linux']['resources'][kind]
    return edit


def both(*edits):
    def edit(config):
        for e in edits:
            e(config)
    return edit


def fake_node(name, minor):
    """An openable character device that stands for a GPU's: each minor is one of its own."""
    path = os.path.abspath(name)
    os.mknod(path, 0o666 | 0o020000, os.makedev(4, minor))
    os.chmod(path, 0o666)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))
    except OSError as e:
        raise Skip(f'no device that could stand for a GPU can be opened here: {e}') from e
    return path


__all__ = ['FIRST', 'HERE', 'OCI', 'PRIVATE', 'Result', 'Skip', 'TENANT', 'both', 'capability', 'environment', 'fake_node', 'gate',
           'lease', 'made', 'maker', 'need', 'need_runc', 'no_limit', 'no_namespace', 'no_user_namespace', 'opened', 'own_machine',
           'probe', 're', 'runc', 'same', 'shown', 'time', 'unified', 'until', 'wall']
