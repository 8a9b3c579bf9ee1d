# SPDX-License-Identifier: Apache-2.0
"""bulkhead-scrub: what it calls clean is clean, and what it cannot look at it does not call so.

Usage: run.py BULKHEAD SOURCE-ROOT BULKHEAD-SCRUB TENANT
"""
import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, Skip, environment, has, same  # noqa: E402

SCRUB, TENANT = (os.path.abspath(a) for a in sys.argv[3:5])
NEARLY_ALL = 0.9


class Card:
    def __init__(self, env):
        self.env = env
        out = self.sim('run', 'lab', '--', BIN, 'gpus', '-o', 'json').stdout
        self.uuid = 'GPU-' + out.partition('GPU-')[2].partition('"')[0]

    def sim(self, *words):
        done = subprocess.run([BIN, 'sim', *words], capture_output=True, text=True, check=False, timeout=120, env=self.env)
        same(done.returncode, 0, done.stderr)
        return done

    def ask(self, *words, env=None):
        """Verdict, share that was looked at, words."""
        done = subprocess.run([SCRUB, *words], capture_output=True, text=True, check=False, timeout=120, env=env or self.env)
        same((done.returncode, done.stderr, done.stdout.count('\n')), (0, '', 1))
        verdict, looked, total, rest = done.stdout.split(' ', 3)
        return verdict, int(looked) / max(int(total), 1), rest


@contextlib.contextmanager
def card():
    if os.geteuid() != 0:
        raise Skip('needs root')
    os.mkdir('h')
    env = environment(BULKHEAD_SIM_HOME=os.path.abspath('h'))
    same(subprocess.run([BIN, 'sim', 'start', 'h200'], capture_output=True, check=False, env=env, timeout=120).returncode, 0)
    at = os.path.abspath('h/lab')
    try:
        yield Card({**env, 'BULKHEAD_SIM': at, 'BULKHEAD_SYSROOT': f'{at}/sysroot', 'LD_LIBRARY_PATH': f'{at}/lib',
                    'BULKHEAD_NVML': f'{at}/lib/libnvidia-ml.so.1', 'BULKHEAD_CUDA': f'{at}/lib/libcuda.so.1',
                    'ASAN_OPTIONS': 'detect_leaks=0'})
    finally:
        subprocess.run([BIN, 'sim', 'stop', '--all'], capture_output=True, check=False, env=env, timeout=120)


def test_clean():
    with card() as c:
        verdict, looked, words = c.ask('scrub', c.uuid)
        same((verdict, NEARLY_ALL < looked <= 1), ('clean', True), words)
        has(words, '0 of ')


def test_canary_is_found_where_nothing_is_overwritten():
    with card() as c:
        verdict, looked, words = c.ask('scrub', c.uuid, '--without-overwriting')
        same((verdict, looked > NEARLY_ALL), ('found', True), words)
        wrong, _, pages = words.split()[:3]
        same(wrong, pages, 'every page')


def test_what_somebody_holds_is_not_called_clean():
    with card() as c:
        p = subprocess.Popen([TENANT, 'hold', '40GiB'], stdout=subprocess.PIPE, env=c.env, text=True)
        try:
            same(p.stdout.readline(), 'ready\n')
            verdict, looked, words = c.ask('scrub', c.uuid)
            same((verdict, looked < NEARLY_ALL), ('unknown', True))
            has(words, 'somebody is still there')
        finally:
            p.kill()
            p.wait()
        same(c.ask('scrub', c.uuid)[0], 'clean')


def test_the_drivers_own():
    with card() as c:
        verdict, looked, words = c.ask('canary', c.uuid)
        same((verdict, looked > NEARLY_ALL), ('clean', True), words)
        c.sim('break', 'lab', 'scrub', 'off')
        verdict, _, words = c.ask('canary', c.uuid)
        same(verdict, 'found', words)
        # What it leaves is overwritten by the other one all the same.
        same(c.ask('scrub', c.uuid)[0], 'clean')


def test_nothing_to_look_at():
    with card() as c:
        verdict, _, words = c.ask('scrub', 'GPU-00000000-0000-0000-0000-000000000000')
        same(verdict, 'unknown')
        verdict, _, words = c.ask('canary', 'nonsense')
        same(verdict, 'unknown')
        verdict, _, words = c.ask('scrub', c.uuid, env={**c.env, 'BULKHEAD_CUDA': '/nonexistent.so'})
        same(verdict, 'unknown')
        has(words, 'nonexistent')
    for args in ((), ('scrub',), ('wash', 'x'), ('canary', 'x', '--without-overwriting')):
        done = subprocess.run([SCRUB, *args], capture_output=True, text=True, check=False, timeout=60, env=environment())
        same((done.returncode, done.stdout), (2, ''))
        has(done.stderr, 'usage')


if __name__ == '__main__':
    tap.main(globals())
