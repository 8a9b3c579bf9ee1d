# SPDX-License-Identifier: Apache-2.0
"""kill -9 and SIGSTOP at tenants, wardens and launchers, at random points; nothing is left, and nobody else is disturbed.

The real command, warden, filter and gate. On simulated silicon 10,000 rounds with tenants that speak to the driver
themselves (storm.c), and a few with the CUDA tenant; on a real GPU those alone, as many as asked for.

Usage: storm.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-STORM
       storm.py --real PATH-TO-BULKHEAD PATH-TO-TENANT [--rounds 300] [--seed 1] [--first 0]
BH_STORM_SEED (1), BH_STORM_FIRST (0) and BH_STORM_ROUNDS (10000) choose the storm; a round that failed is named by its number.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import storm_real  # noqa: E402

if __name__ == '__main__' and sys.argv[1] == '--real':
    storm_real.main(sys.argv[2:])

from run import BIN, TENANT, node, tap  # noqa: E402
from tap import Result, environment, same  # noqa: E402

STORM = os.path.abspath(sys.argv[4])
SEED = os.environ.get('BH_STORM_SEED', '1')
FIRST = os.environ.get('BH_STORM_FIRST', '0')
ROUNDS = os.environ.get('BH_STORM_ROUNDS', '10000')
# Those who are killed report no leaks; looking for them needs ptrace, which the filter refuses.
QUIET = {'ASAN_OPTIONS': 'detect_leaks=0'}


def files():
    """Everything in this folder but the node's own."""
    return sorted(str(p) for p in pathlib.Path('.').rglob('*') if 'h' not in p.parts)


def test_a_storm_leaves_nothing_behind():
    with node() as env:
        os.mkdir('run')
        os.chmod('run', 0o700)
        before, shm = files(), sorted(os.listdir('/dev/shm'))
        whole = environment(**{**env, **QUIET, 'BULKHEAD_RUN_DIR': os.path.abspath('run'), 'TMPDIR': os.getcwd()})
        done = Result(subprocess.run([STORM, BIN, SEED, FIRST, ROUNDS], stdin=subprocess.DEVNULL, capture_output=True,
                                     check=False, env=whole))
        for line in done.out.splitlines():
            print(f'# {line}')
        same(done.rc, 0, repr(done))
        left = [f for f in files() if f not in before and f != 'run/selftest']  # what is remembered of the self-test may stay
        same((left, sorted(os.listdir('/dev/shm'))), ([], shm))
        # the tenants are honest: a gate that ends one of them on its own account is wrong
        for trouble in ('ERROR: AddressSanitizer', 'runtime error', 'the command was killed:'):
            found = [line for line in done.err.splitlines() if trouble in line]
            same(found[:5], [], trouble)


def test_a_storm_among_cuda_programs():
    with node() as env:
        whole = environment(**{**env, **QUIET})
        s = storm_real.Storm(BIN, TENANT, storm_real.Simulated(BIN, whole), int(SEED), whole, os.getcwd())
        s.run(int(FIRST), 24)
        for line in s.table():
            print(f'# {line}')
        same(s.bad, [])
        assert s.by_pid and sum(sum(by.values()) for by in s.done.values()) == 24


if __name__ == '__main__':
    tap.main({k: v for k, v in globals().items() if k.startswith('test_')})
