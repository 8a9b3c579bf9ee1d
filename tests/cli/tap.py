# SPDX-License-Identifier: Apache-2.0
"""Drives the real command and speaks TAP.

A test is a function whose name starts with test_; it gets an empty folder to work in. Usage of a
test file: NAME_test.py PATH-TO-BULKHEAD SOURCE-ROOT. BH_TEST_REGENERATE=1 rewrites golden files.
"""
import difflib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import traceback

BIN = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
DAY = '2026-06-01'

# A policy with one clear mistake: a hard promise on a time-sliced pool.
BAD = '''\
bulkhead: 1
tenants:
  - name: acme
    class: serving
    quota: {model: hard, gpus: 2}
    slo: {kind: hard, metric: p99, target: 50ms}
    network: {policy: default-deny, rdma: none}
    storage: {quota: 2TiB}
    costCenter: cc-1
pools:
  - name: dev
    match: {model: H200}
    mechanism: timeslice
    replicas: 4
    caps: {memory: 20GiB}
    resource: nvidia.com/gpu.shared
    failRequestsGreaterThanOne: true
    tenants: [acme]
'''

# The same promise on silicon of its own.
GOOD = '''\
bulkhead: 1
tenants:
  - name: team-a
    class: training
    quota: {model: hard, gpus: 8}
    network: {policy: default-deny, rdma: none}
    storage: {quota: 2TiB}
    costCenter: cc-1
pools:
  - name: train
    match: {model: H200}
    mechanism: whole
    tier: container
    tenants: [team-a]
'''

FLEET = '''\
bulkhead: 1
nodes:
  - name: gpu-01
    driver: 580.159.03
    iommu: true
    acs: true
    secureBoot: true
    ecc: true
    gpus:
      - {index: 0, model: H200, fabric: A}
      - {index: 1, model: H200, fabric: A}
'''


class Result:
    def __init__(self, done):
        self.rc = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def __repr__(self):
        return f'rc {self.rc}\n--- out\n{self.out[-3000:]}\n--- err\n{self.err[-3000:]}'


def environment(**more):
    kept = ('PATH', 'HOME', 'ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS')
    keep = {k: v for k, v in os.environ.items() if k in kept}
    return {**keep, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm', **more}


def run(*args, stdin=b'', **env):
    """Run bulkhead in the current folder."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    return Result(subprocess.run([BIN, *args], input=stdin, capture_output=True, env=environment(**env), timeout=60,
                                 check=False))


def write(name, text):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def same(got, want, what=''):
    assert got == want, f'{what}\n   got {got!r}\n  want {want!r}'


def has(text, part):
    assert part in text, f"{part!r} is not in\n{str(text)[-3000:]}"


def disks():
    """`major:minor` of each disk of this machine with hardware behind it."""
    return [(d / 'dev').read_text().strip() for d in sorted(pathlib.Path('/sys/block').iterdir()) if (d / 'device').exists()]


def golden(name, got):
    """Compare with golden/NAME beside this file."""
    path = pathlib.Path(__file__).parent / 'golden' / name
    if os.environ.get('BH_TEST_REGENERATE') == '1':
        path.parent.mkdir(exist_ok=True)
        path.write_text(got)
    want = path.read_text() if path.exists() else ''
    diff = '\n'.join(difflib.unified_diff(want.splitlines(), got.splitlines(), str(path), 'got', lineterm=''))
    assert got == want, diff


class Skip(Exception):
    """What the test needs is not on this machine; says what."""


def for_others(path):
    """Can another user run it? Not from a checkout in a folder of root's alone."""
    return all(folder.stat().st_mode & 0o001 for folder in pathlib.Path(path).resolve().parents)


def need_for_others(path=BIN):
    if not for_others(path):
        raise Skip(f'another user is to run {path}, and may not enter its folder')


def main(namespace):
    # As in the foreground of a shell: what is started in the background, or by nohup, comes with these ignored, and hands that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)
    tests = [(n, f) for n, f in namespace.items() if n.startswith('test_') and callable(f)]
    bad = 0
    for i, (name, fn) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            started = time.monotonic()
            try:
                fn()
                print(f'ok {i} - {name[5:]}')
            except Skip as e:
                print(f'ok {i} - {name[5:]} # SKIP {e}')
            except Exception:  # a failing test must not hide the ones after it
                bad += 1
                for line in traceback.format_exc().splitlines():
                    print(f'# {line}')
                print(f'not ok {i} - {name[5:]}')
            print(f'# {name[5:]} took {time.monotonic() - started:.1f} s')
            os.chdir('/')
    print(f'1..{len(tests)}')
    sys.exit(1 if bad else 0)
