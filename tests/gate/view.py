# SPDX-License-Identifier: Apache-2.0
"""What a command below the gate sees of the GPU: its slice, its own processes, and no neighbour.

The real command, warden and gate; the vendor's two libraries are simulated and ask the driver as theirs do.

Usage: view.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import CONTEXT_MAX, GIB, QUIET, TENANT, bulkhead, finish, gated, lines, node, start, tap  # noqa: E402
from tap import BIN, has, same  # noqa: E402

LOAD = ('temperatureC', 'powerMilliwatt', 'smMHz', 'memoryMHz', 'utilPercent', 'memoryUtilPercent', 'throttleBits')
EACH = 2 << 20  # what the ledger and the driver's count may differ by, for each process
VIEWS = ('card', 'slice', 'private')


def card(text):
    """The one GPU of `bulkhead gpus -o json`."""
    gpus = json.loads(text)['gpus']
    same(len(gpus), 1)
    return gpus[0]


def gpus(env):
    """As seen from outside."""
    r = bulkhead('gpus', '-o', 'json', **env)
    same(r.rc, 0, repr(r))
    return card(r.out)


@contextlib.contextmanager
def holding(env, size, **kw):
    """A lease of its own with one process that has taken some memory; yields what the driver says of that process."""
    p = start(env, *QUIET, TENANT, 'hold', size, start_new_session=True, **kw)
    try:
        same(p.stdout.readline(), b'ready\n')
        mine = [q for q in gpus(env)['processes'] if os.getpgid(q['pid']) == p.pid]
        same(len(mine), 1)
        yield mine[0]
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        finish(p)


def inside(env, view, script, cap='10GiB'):
    """Runs a script in a lease. Commands of it: $tenant, $gpus, and `gone` to end processes of it."""
    quiet = ' '.join(QUIET)
    words = (f'tenant="{quiet} {TENANT}"; gpus="{quiet} {BIN} gpus -o json"; '
             'gone() { kill "$@"; wait "$@" 2>/dev/null || true; }; ')
    r = gated(env, 'sh', '-ec', words + script, cap=cap, options=['--view', view] if view else [])
    same((r.rc, r.err), (0, ''), repr(r))
    return r.out


# Holds 3 GiB in a process of its own while the rest runs.
BESIDE = 'mkfifo held; $tenant hold 3GiB >held & read -r word <held; '
END = '; gone $!'


def is_consistent(c, cap):
    same(c['totalBytes'], cap)
    same(c['usedBytes'] + c['freeBytes'] + c['reservedBytes'], cap)
    same(c['reservedBytes'], 0)


def test_the_slice_is_the_whole_card():
    with node() as env:
        whole = gpus(env)
        for view in (None, 'slice', 'private'):
            seen = lines(inside(env, view, '$tenant info'))
            same(int(seen['total']), 10 * GIB, view)
            assert 10 * GIB - CONTEXT_MAX <= int(seen['free']) < 10 * GIB, (view, seen)
            c = card(inside(env, view, '$gpus'))
            is_consistent(c, 10 * GIB)
            same(c['processes'], [], view)
            assert c['usedBytes'] <= EACH, (view, c['usedBytes'])
            same((c['uuid'], c['name']), (whole['uuid'], whole['name']))
        # what it holds is what the driver says that it holds
        c = card(inside(env, 'slice', BESIDE + '$gpus' + END))
        is_consistent(c, 10 * GIB)
        same(len(c['processes']), 1)
        assert 3 * GIB <= c['processes'][0]['memoryBytes'] <= 3 * GIB + CONTEXT_MAX, c['processes']
        assert 0 <= c['usedBytes'] - c['processes'][0]['memoryBytes'] <= 2 * EACH, c


def test_two_leases_do_not_see_each_other():
    with node() as env, holding(env, '5GiB') as neighbour:
        whole = gpus(env)
        assert whole['usedBytes'] >= 5 * GIB and neighbour['memoryBytes'] >= 5 * GIB, whole
        for view in ('slice', 'private'):
            c = card(inside(env, view, BESIDE + '$gpus' + END))
            is_consistent(c, 10 * GIB)
            assert c['usedBytes'] <= 3 * GIB + CONTEXT_MAX, c['usedBytes']
            pids = [p['pid'] for p in c['processes']]
            same(len(pids), 1, view)
            assert neighbour['pid'] not in pids, pids
            os.unlink('held')
        # and there is no more free than the card has: the same cap twice is more than it
        with holding(env, '100GiB', cap='130GiB'):
            left = gpus(env)['freeBytes']
            c = card(inside(env, 'slice', '$gpus', cap='130GiB'))
            assert c['freeBytes'] <= left < 50 * GIB, (c, left)
            same(c['totalBytes'], 130 * GIB)
            c = card(inside(env, 'private', '$gpus', cap='130GiB'))
            assert c['freeBytes'] >= 130 * GIB - EACH, c


def test_in_a_pid_namespace_nobody_is_shown():
    """As in a container. What the driver would tell there of processes is not all translated."""
    with node() as env, holding(env, '5GiB'):
        for view in ('slice', 'private'):
            c = card(inside(env, view, 'unshare -p -f $gpus'))
            is_consistent(c, 10 * GIB)
            assert not c['processes'], (view, c['processes'])


def test_processes_of_one_tenant_agree():
    with node() as env:
        hold = ' '.join(f'mkfifo f{i}; $tenant hold 1GiB >f{i} & p{i}=$!; read -r word <f{i};' for i in range(4))
        same(inside(env, 'slice', f'{hold} for i in 1 2 3; do $gpus >seen.$i; done; gone $p0 $p1 $p2 $p3'), '')
        seen = [card(pathlib.Path(f'seen.{i}').read_text()) for i in (1, 2, 3)]
        for c in seen:
            is_consistent(c, 10 * GIB)
            same(len(c['processes']), 4)
            same(sorted(p['pid'] for p in c['processes']), sorted(p['pid'] for p in seen[0]['processes']))
            assert abs(c['usedBytes'] - seen[0]['usedBytes']) <= EACH, [s['usedBytes'] for s in seen]
            held = sum(p['memoryBytes'] for p in c['processes'])
            assert 0 <= c['usedBytes'] - held <= (4 + 1) * EACH, (c['usedBytes'], held)  # and who looks


def test_private_withholds_what_tells_of_load():
    with node() as env, holding(env, '1GiB'):
        for view in VIEWS:
            c = card(inside(env, view, BESIDE + '$gpus' + END))
            os.unlink('held')
            for field in LOAD:
                same(c[field] is None, view == 'private', f'{view} {field}')
            same([p['smPercent'] is None for p in c['processes']], [view == 'private'] * (2 if view == 'card' else 1), view)


def test_the_card_is_shown_to_who_is_given_it():
    with node() as env, holding(env, '5GiB') as neighbour:
        c, whole = card(inside(env, 'card', '$gpus')), gpus(env)
        for field in ('totalBytes', 'usedBytes', 'freeBytes', 'reservedBytes'):
            same(c[field], whole[field], field)
        same([p['pid'] for p in c['processes']], [neighbour['pid']])


def test_programs_run_in_every_view():
    with node() as env:
        for view in VIEWS:
            out = lines(inside(env, view, '$tenant churn 300 7; $tenant fill plain'))
            has(out['error'], 'CUDA_ERROR_OUT_OF_MEMORY')
            same(int(out['got']), 9 * GIB, view)


def test_a_wrong_view_is_one_line():
    r = bulkhead('run', '--memory', '1GiB', '--view', 'slices', '--', 'true')
    same((r.rc, r.out, r.err.count('\n')), (2, '', 1), repr(r))
    has(r.err, 'slice')


if __name__ == '__main__':
    tap.main(globals())
