# SPDX-License-Identifier: Apache-2.0
"""What the gate costs: the same program with it and without, in turns, all of them up at the same time and one working.

Every figure is a ratio or a difference within one run. The raw samples are kept; the table has the medians of the rounds' medians.
"""
import os
import pathlib
import random
import subprocess
import sys
import time

import card
from card import MIB
from table import last, middle, run as run_to_end, spread

LOOPS = pathlib.Path(__file__).resolve().parent / 'inside_loops.py'
ROUNDS = 5


def modes(tools, cap, views=('card', 'slice')):
    """Name and what stands before the command. The view has a cost of its own, so both are measured where there is one."""
    found = {'native': []}
    if not tools.has_view:
        views = (None,)
    for view in views:
        option = ['--view', view] if view else []
        found[f'gated, {view} view' if view else 'gated'] = [tools.bulkhead, 'run', '--memory', cap, *option, '--']
    return found


class Server:
    """A program that does a piece of work for each line it is sent."""

    def __init__(self, prefix, *command, timeout=300):
        self.p = subprocess.Popen([*map(str, prefix), *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.limit = card.limit(timeout, self.p)
        self.limit.__enter__()

    def say(self, line):
        self.p.stdin.write(line + '\n')
        self.p.stdin.flush()

    def hear(self):
        line = self.p.stdout.readline()
        if not line:
            raise RuntimeError(f'ended: {last(self.p.stderr.read(), 160)}')
        return line.split()

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        self.limit.__exit__(None, None, None)
        self.p.stdout.close()
        self.p.stderr.close()


def turns(names, i):
    """Nobody is always first."""
    names = list(names)
    return names[i % len(names):] + names[:i % len(names)]


def compare(table, name, unit, samples, want, judge, scale=1.0):
    """samples: {mode: [one list for each round]}; judge(native, gated) of the medians says whether it is within bounds."""
    rounds = {mode: [middle(r) / scale for r in per] for mode, per in samples.items()}
    native = middle(rounds['native'])
    for mode, values in rounds.items():
        m = middle(values)
        against = '' if mode == 'native' else f'  {m - native:+.3f} {unit}  x{m / native:.4f}'
        table.row(f'{name}, {mode}', f'{m:.3f} {unit} (rounds differ by {100 * spread(values):.1f} %){against}',
                  '' if mode == 'native' else want, None if mode == 'native' else judge(native, m), measure=name, mode=mode, unit=unit,
                  median=m, rounds=values, raw=samples[mode])


def pinned(prefix, processor):
    """Processors of a shared machine are not equal: what is compared runs on the same one."""
    return ['taskset', '-c', str(processor % (os.cpu_count() or 1)), *prefix]


def begin(tools, servers, wrap=lambda prefix: prefix):
    for mode, prefix in modes(tools, '20GiB').items():
        servers[mode] = Server(wrap(prefix), tools.gate_cuda, 'serve')
        servers[mode].hear()
        for warm in ('launch 2000', 'alloc 50'):
            servers[mode].say(warm)
            servers[mode].hear()
        servers[mode].hear()


def judge_pairs(table, name, unit, took):
    """Of work done in many short turns on one processor, in another order each time: noise comes and goes more slowly than they change,
    so each turn is held against the native one beside it."""
    dice = random.Random(1)
    for mode, values in took.items():
        ratios = [v / n for v, n in zip(values, took['native'])]
        again = sorted(middle(dice.choices(ratios, k=len(ratios))) for _ in range(500))
        native = mode == 'native'
        against = f'  x{middle(ratios):.4f} (95 % of medians drawn again: {again[12]:.4f} to {again[-13]:.4f})'
        table.row(f'{name}, {mode}', f'{middle(values):.3f} {unit}{"" if native else against}', '' if native else 'within 1 %',
                  None if native else middle(ratios) <= 1.01, measure=name, mode=mode, unit=unit, median=middle(values), raw=values)


def launches(table, tools, short):
    servers, took, dice = {}, {}, random.Random(1)
    try:
        begin(tools, servers, lambda prefix: pinned(prefix, 5))
        for _ in range(10 if short else 250):
            for mode in dice.sample(list(servers), len(servers)):
                servers[mode].say(f'launch {1000 if short else 5000}')
                took.setdefault(mode, []).append(middle([float(v) for v in servers[mode].hear()[1:]]) / 1e3)
    except (RuntimeError, BrokenPipeError) as e:
        table.row('launches', e, 'every program runs to its end', False)
        return
    finally:
        for s in servers.values():
            s.close()
    judge_pairs(table, 'empty kernel launch', 'us', took)


def calls(table, tools, short):
    allocs, servers, samples = 100 if short else 2000, {}, {}
    try:
        begin(tools, servers)
        for i in range(ROUNDS):
            for mode in turns(servers, i):
                servers[mode].say(f'alloc {allocs}')
                for _ in range(2):
                    key, *values = servers[mode].hear()
                    samples.setdefault(key, {}).setdefault(mode, []).append([float(v) for v in values])
    except (RuntimeError, BrokenPipeError) as e:
        table.row('calls', e, 'every program runs to its end', False)
        return
    finally:
        for s in servers.values():
            s.close()
    compare(table, 'cuMemAlloc 2 MiB', 'us', samples['alloc'], 'at most +10 us', lambda a, b: b <= a + 10, 1e3)
    compare(table, 'cuMemFree 2 MiB', 'us', samples['free'], '', lambda a, b: None, 1e3)


def start_up(table, tools, short):
    wall, inside = {}, {}
    dice = random.Random(2)
    for i in range(3 if short else 24):
        for mode in dice.sample(list(modes(tools, '20GiB')), len(modes(tools, '20GiB'))):
            began = time.perf_counter()
            rc, out, err = run_to_end(*pinned(modes(tools, '20GiB')[mode], 2 + i), tools.gate_cuda, 'start')
            if rc:
                table.row('start-up', f'{mode}: exit {rc}: {last(err)}', 'exit 0', False)
                return
            wall.setdefault(mode, []).append([(time.perf_counter() - began) * 1e3])
            inside.setdefault(mode, []).append([int(out.split()[1]) / 1e6])
    compare(table, 'CUDA start-up, process from start to end', 'ms', wall, 'at most +5 %', lambda a, b: b <= a * 1.05)
    compare(table, 'CUDA start-up, cuInit and context', 'ms', inside, 'at most +5 %', lambda a, b: b <= a * 1.05)


def run(table, tools, short=False):
    table.begin('cost')
    launches(table, tools, short)
    calls(table, tools, short)
    start_up(table, tools, short)


def crowd(table, tools, short=False):
    """96 processes that start at once: until the last one has its context. (Of 128, an H200 refuses some a context without
    any gate.)"""
    table.begin('crowd')
    n, repeats, up, end = (8, 2, {}, {}) if short else (96, 3, {}, {})
    ways = modes(tools, '120GiB', views=('slice',))
    warden = {}
    for i in range(repeats):
        for mode in turns(ways, i):
            if not table.enough(f'{n} processes, {mode}', max([e[0] / 1e3 for e in end.get(mode, [[20e3]])]) + 5):
                continue
            p = subprocess.Popen([*map(str, ways[mode]), tools.gate_cuda, 'crowd', str(n)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True)
            with card.limit(120, p):
                while p.poll() is None:
                    seen = card.warden_of(p.pid)
                    warden = seen if seen.get('VmHWM', 0) > warden.get('VmHWM', 0) else warden
                    time.sleep(0.2)
                out, err = p.communicate()
            said = dict(line.split() for line in out.splitlines())
            if p.returncode or said.get('up') != str(n):
                table.row(f'{n} processes, {mode}', f'exit {p.returncode}, {said.get("up")} up: {last(err)}', 'all of them', False)
                return
            up.setdefault(mode, []).append([int(said['all']) / 1e6])
            end.setdefault(mode, []).append([int(said['end']) / 1e6])
    compare(table, f'{n} processes start at once', 'ms', up, 'at most +10 %', lambda a, b: b <= a * 1.10)
    compare(table, f'{n} processes start and end', 'ms', end, '', lambda a, b: None)
    if warden:
        table.row(f'warden, {n} processes', f'at most {warden["VmHWM"]} KiB', 'under 3072 KiB', warden['VmHWM'] < 3072, warden_kib=warden)


def loops(table, tools, short=False):
    """PyTorch, as launches: for as many steps as take a tenth of a second."""
    table.begin('loops')
    servers, took, counts, dice = {}, {}, {}, random.Random(3)
    rounds, seconds = (4, 0.05) if short else (120, 0.1)
    ways = modes(tools, '20GiB', views=('slice',))
    try:
        for mode, prefix in ways.items():
            servers[mode] = Server(pinned(prefix, 7), sys.executable, LOOPS, timeout=400)
        for mode, s in servers.items():
            word = s.hear()
            if word[0] == 'skip':
                table.skip('PyTorch loops', ' '.join(word[1:]))
                return
        for work in ('train', 'infer'):
            for s in servers.values():
                s.say(f'{work} 20')
                lasted = float(s.hear()[1])
            counts[work] = max(2, int(20 * seconds / lasted))
        for _ in range(rounds):
            for work, n in counts.items():
                for mode in dice.sample(list(servers), len(servers)):
                    servers[mode].say(f'{work} {n}')
                    took.setdefault(work, {}).setdefault(mode, []).append(1e3 * float(servers[mode].hear()[1]) / n)
        wardens = {mode: card.warden_of(s.p.pid) for mode, s in servers.items() if mode != 'native'}
    except (RuntimeError, BrokenPipeError) as e:
        table.row('PyTorch loops', e, 'run to their end', False)
        return
    finally:
        for s in servers.values():
            s.close()
    for work, name in (('train', 'PyTorch training loop'), ('infer', 'PyTorch inference loop')):
        judge_pairs(table, name, 'ms a step', took[work])
    for mode, w in wardens.items():
        if w:
            table.row(f'warden, PyTorch, {mode}', f'{w["VmRSS"]} KiB, at most {w["VmHWM"]} KiB', 'under 3072 KiB',
                      w['VmHWM'] < 3 * MIB // 1024, warden_kib=w)
