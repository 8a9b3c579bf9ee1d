# SPDX-License-Identifier: Apache-2.0
"""Memory that comes and goes below a cap: nothing that fits is refused, and no odd free makes room that is not there.

The same tenant runs on a real GPU: bulkhead run --memory 10GiB --stats -- tenant cycle 100000 6GiB

Usage: cycles.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-CYCLES
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import GIB, QUIET, TENANT, finish, gated, lines, node, start, tap  # noqa: E402
from tap import has, same  # noqa: E402

RAW = os.path.abspath(sys.argv[4])
MIB = 1 << 20
CYCLES = 100000
SHARE = 0.6
CONTEXT = 600 * MIB  # a little more than one takes


def stats(err):
    m = re.search(r'bulkhead: peak ([\d.]+) (MiB|GiB) of (\S+ \S+), (\d+) refused for memory, (\d+) denied, (\d+) killed', err)
    assert m, err
    return {'peak': float(m[1]) * {'MiB': MIB, 'GiB': GIB}[m[2]], 'refused': int(m[4]), 'denied': int(m[5]), 'killed': int(m[6])}


def cycles(env, processes, cap):
    """All processes together stay at SHARE of the cap, contexts included."""
    count, each = CYCLES // 2 // processes, int((cap * SHARE - processes * CONTEXT) / processes)
    script = ' & '.join(f'{TENANT} cycle {count} {each} {seed + 1}' for seed in range(processes))
    p = start(env, 'sh', '-c', f'{script} & wait', cap=f'{cap // MIB}MiB', options=['--stats'])
    rc, out, err = finish(p)
    same(rc, 0, f'{out} {err}')
    found = [int(n) for n in re.findall(r'^refused (\d+)$', out, re.M)]
    same(found, [0] * processes, f'{out} {err}')
    done = sum(int(n) for n in re.findall(r'^cycles (\d+)$', out, re.M))
    assert done >= processes * count, out
    for kind in ('plain', 'async', 'pool'):
        assert sum(int(n) for n in re.findall(rf'^{kind} (\d+)$', out, re.M)) > done // 10, out
    most = sum(int(n) for n in re.findall(r'^most (\d+)$', out, re.M))
    assert most > processes * each * 0.8, f'not near the limit: {out}'
    s = stats(err)
    same((s['refused'], s['denied'], s['killed']), (0, 0, 0), err)
    assert s['peak'] <= cap, err
    print(f'# {processes} process(es): {done} cycles, 0 refused, peak {s["peak"] / GIB:.2f} of {cap / GIB:.0f} GiB, '
          f'{", ".join(re.findall(r"^us-per-cycle (.*)$", out, re.M))} us a cycle')


def test_nothing_that_fits_is_refused_to_one_process():
    with node() as env:
        cycles({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 1, 10 * GIB)


def test_nothing_that_fits_is_refused_to_four():
    with node() as env:
        cycles({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 4, 16 * GIB)


def test_a_refusal_is_seen():
    """The test above can fail: close to the cap the same tenant is refused, and says so."""
    with node() as env:
        r = gated(env, *QUIET, TENANT, 'cycle', '100000', '4GiB', cap='4GiB', options=['--stats'])
        same(r.rc, 1, repr(r))
        same(int(lines(r.out)['refused']), 1, repr(r))
        assert stats(r.err)['refused'] >= 1, repr(r)


def test_odd_frees_make_no_room():
    cap = 1024
    with node() as env:
        for verb, left in (('twice', cap), ('trees', cap), ('foreign', cap // 2), ('after-fork', cap), ('orphaned', cap // 2)):
            r = gated(env, *QUIET, RAW, verb, str(cap), cap=f'{cap}MiB', options=['--stats', '--tick', '5'])
            same(r.rc, 0, f'{verb} {r!r}')
            said = lines(r.out)
            same((int(said['left']) // MIB, said['status']), (left, '0x51'), f'{verb} {r!r}')
            s = stats(r.err)
            same((s['peak'] // MIB, s['killed']), (cap, 0), f'{verb} {r!r}')
            has(r.err, 'of 1 GiB')


if __name__ == '__main__':
    tap.main({k: v for k, v in globals().items() if k.startswith('test_')})
