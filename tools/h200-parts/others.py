# SPDX-License-Identifier: Apache-2.0
"""Allocate and free for long, MPS, faults, and the suite of bypasses."""
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import card
from card import GIB, MIB
from table import gib, last, run as run_to_end, words

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def cycles(table, tools, short=False):
    """Allocate and free at 60 % of the cap, the context in it: nobody may ever be told that there is no more."""
    table.begin('cycles')
    n, limit = 2000 if short else 100000, int(10 * GIB * 0.6) - 600 * MIB
    with card.Watch(tools.nvml) as watch:
        rc, out, err = run_to_end(tools.bulkhead, 'run', '--memory', '10GiB', '--stats', '--', tools.tenant, 'cycle', n, limit,
                                  timeout=min(300, table.left()))
    said = words(out)
    near = (2 if short else 4) * GIB < watch.held <= 6 * GIB
    table.row(f'{n} cycles at 60 % of 10 GiB', f'exit {rc}, {said.get("cycles")} cycles, {said.get("refused")} refused, '
              f'held {gib(watch.held)}', '0 refused, held 4 to 6 GiB',
              rc == 0 and said.get('refused') == '0' and int(said.get('cycles', 0)) >= n and near,
              stdout=out, stderr=err[-300:], watch=watch.raw())


# ---- MPS ----

def mps_quit(env):
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(['nvidia-cuda-mps-control'], input='quit -t 2\n', text=True, env=env, timeout=15, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def mps_server(tools, name, prefix=()):
    """A control daemon of our own in a folder of its own; always stopped again. Yields the environment of its clients."""
    folder = os.path.join(tools.scratch, f'mps-{name}')
    env = {**os.environ, 'CUDA_MPS_PIPE_DIRECTORY': folder, 'CUDA_MPS_LOG_DIRECTORY': folder}
    os.makedirs(folder)
    with open(os.path.join(folder, 'out'), 'w', encoding='utf-8') as out:
        daemon = subprocess.Popen([*prefix, 'nvidia-cuda-mps-control', '-f'], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                  start_new_session=True)
    try:
        for _ in range(100):
            if os.path.exists(os.path.join(folder, 'control')) or daemon.poll() is not None:
                break
            time.sleep(0.05)
        yield env
    finally:
        mps_quit(env)
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(10)
        with contextlib.suppress(OSError):
            os.killpg(daemon.pid, 9)
        daemon.wait()


def names(pids):
    return {str(p): card.status(p).get('Name', 'gone').strip() for p in pids}


def client(table, tools, label, env, prefix, path='plain', inside=False):
    """Stated as seen: what a client got, and for whom the driver counts it."""
    before = tools.nvml.memory().used
    p = subprocess.Popen([*map(str, prefix), tools.tenant, 'fill', path, '30GiB', 'wait'], env=env, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    counted = mps = who = {}
    used = 0
    with card.limit(60, p):
        out = p.stdout.readline()
        if out.strip() == 'ready':
            with contextlib.suppress(BrokenPipeError):
                p.stdin.write('x')
                p.stdin.flush()
            for line in p.stdout:
                out += line
                if line.strip() == 'held':
                    break
            time.sleep(0.2)
            counted, used = tools.nvml.held(), tools.nvml.memory().used - before
            with contextlib.suppress(RuntimeError, AttributeError):
                mps = tools.nvml.held(mps=True)
            who = names({*counted, *mps})
        with contextlib.suppress(BrokenPipeError):
            p.stdin.close()
        p.stdin = None
        rest, err = p.communicate()
    said = words(out + rest)
    seen = ', '.join(f'{who.get(str(pid))} {n // MIB} MiB' for pid, n in sorted(counted.items(), key=lambda x: -x[1])) or 'nobody counted'
    ended = f'exit {p.returncode}, got {gib(int(said.get("got", 0)))}, {said.get("error", last(err, 60))}'
    table.row(label, f'{ended}, card {gib(used)}; {seen}'[:150], '', None, rc=p.returncode, got=said.get('got'), error=said.get('error'),
              card=used, counted=counted, mps=mps, names=who, stderr=err[-400:], path=path, inside=inside)


def mps(table, tools, short=False):
    del short
    table.begin('mps')
    if run_to_end('sh', '-c', 'command -v nvidia-cuda-mps-control')[0]:
        table.skip('MPS', 'there is no nvidia-cuda-mps-control')
        return
    gated = [tools.bulkhead, 'run', '--memory', '10GiB', '--stats', '--']
    with mps_server(tools, 'outside') as env:
        client(table, tools, 'server outside, client outside', env, [])
        for path in ('plain', 'vmm', 'async', 'managed'):
            client(table, tools, f'server outside, client inside, {path}', env, gated, path)
        log = pathlib.Path(env['CUDA_MPS_LOG_DIRECTORY'], 'server.log')
        table.row('log of the server', last(log.read_text(errors='replace') if log.exists() else ''), '')
    # Everything in one lease: the daemon is started by what runs inside.
    folder = os.path.join(tools.scratch, 'mps-inside')
    os.makedirs(folder)
    env = {**os.environ, 'CUDA_MPS_PIPE_DIRECTORY': folder, 'CUDA_MPS_LOG_DIRECTORY': folder}
    script = ('nvidia-cuda-mps-control -d </dev/null >/dev/null 2>&1 || exit 9; "$@"; rc=$?; '
              'echo quit | timeout 15 nvidia-cuda-mps-control >/dev/null 2>&1; exit $rc')
    for path in ('plain', 'vmm'):
        client(table, tools, f'server and client in one lease, {path}', env, [*gated, 'sh', '-c', script, 'sh'], path, inside=True)
        mps_quit(env)
    left = card.settle(tools.nvml, tools.before)
    table.row('after MPS', f'{left // MIB} MiB more in use than before', 'nothing stays', left < 64 * MIB)


# ---- faults ----

def fault_beside(table, tools, short):
    """An illegal access in one lease; two others go on and find their memory as they wrote it."""
    steps = '300' if short else '15000'
    others = [subprocess.Popen([tools.bulkhead, 'run', '--memory', '10GiB', '--', tools.tenant, 'churn', steps, str(seed)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) for seed in (1, 2)]
    for p in others:
        p.stdout.readline()
    outcomes, during = [], 0
    for _ in range(3 if short else 10):
        during += all(p.poll() is None for p in others)
        rc, out, _ = run_to_end(tools.bulkhead, 'run', '--memory', '2GiB', '--', tools.tenant, 'fault', timeout=60)
        outcomes.append((rc, words(out).get('first')))
    ends = []
    for p in others:
        with card.limit(120, p):
            out, err = p.communicate()
        ends.append({'rc': p.returncode, **words(out), 'stderr': err[-200:]})
    faulted = sum(rc == 0 and (first or '').startswith('700') for rc, first in outcomes)
    good = all(e['rc'] == 0 and e.get('wrong') == '0' and e.get('refused') == '0' for e in ends)
    table.row('illegal access in one lease, two others', f'{faulted} of {len(outcomes)} faulted, {during} of them while both others ran; '
              f'others: {[(e["rc"], e.get("wrong")) for e in ends]}', 'all fault, the others right',
              faulted == len(outcomes) and good and during > 0,
              outcomes=outcomes, others=ends)


def suite(table, name, command, timeout):
    """A suite of the tree: its status counts, what it says is kept."""
    rc, out, err = run_to_end(*command, timeout=timeout)
    failed = [line for line in out.splitlines() if line.startswith('not ok')]
    known = [line for line in out.splitlines() if '# SKIP a known way through' in line]
    passed = [line for line in out.splitlines() if line.startswith('ok ') and '# SKIP' not in line]
    skipped = [line for line in out.splitlines() if line.startswith('ok ') and '# SKIP' in line and line not in known]
    print('\n'.join(f'#     {line[:200]}' for line in out.splitlines()))
    counts = (f'{len(passed)} passed, {len(failed)} failed, {len(known)} known ways through, '
              f'{len(skipped)} not tried')
    table.row(name, f'exit {rc}, {counts if passed or failed else last(out or err)}', 'exit 0', rc == 0,
              stdout=out[-400000:], stderr=err[-4000:])


def faults(table, tools, short=False):
    table.begin('faults')
    fault_beside(table, tools, short)
    script = ROOT / 'tests/gate/storm.py'
    if not script.exists():
        table.skip('storm of kills', f'{script.name} is not there')
        return
    suite(table, 'storm of kills', [sys.executable, script, '--real', tools.bulkhead, tools.tenant, '--rounds', '20' if short else '300'],
          timeout=max(60, table.left()))


def bypass(table, tools, short=False):
    del short
    table.begin('bypass')
    script = ROOT / 'tests/bypass/run.py'
    if not script.exists():
        table.skip('bypass suite', 'tests/bypass/run.py is not there')
        return
    own = ['--table', os.path.join(table.folder, 'bypass.md')] if table.folder else []
    suite(table, 'bypass suite', [sys.executable, script, '--real', tools.bulkhead, *own], timeout=max(60, table.left()))
