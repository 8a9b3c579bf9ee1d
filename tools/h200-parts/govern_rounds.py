# SPDX-License-Identifier: Apache-2.0
"""What is measured five times: in rounds, in each of which every case comes once, so that what drifts (clocks, warmth, a neighbour on the machine) falls on all
of them alike. Each is held against what was done alone in its own round."""
import functools
import subprocess

from govern_peers import NO_CAPS, mps, systems
from govern_shares import capped, divided, governed, judge, ungoverned, wanted
from govern_work import SETTLE, Tenant, fair, percentile, solo, together
from table import middle

ROUNDS = 5
WEIGHTS, CAPS = (70, 30), (10, 25, 50, 75)


def in_rounds(table, tools, ways, begin=None):
    """ways: a function for each way of sharing, which yields the name and the result of each of its cases; in each round another one begins. begin: at the
    beginning of each round, its result. By name, for each round that it came in: what begin gave, and the result."""
    found = {}
    for i in range(1 if tools.short else ROUNDS):
        try:
            alone = begin() if begin else None
        except (RuntimeError, OSError) as e:
            table.row(f'alone, round {i + 1}', e, 'runs', False)
            continue
        for way in ways[i % len(ways):] + ways[:i % len(ways)]:
            try:
                for name, result in way(i):
                    found.setdefault(name, []).append((alone, result))
            except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                table.row(f'{way.__name__}, round {i + 1}', e, 'runs', False)
    return found


def way(function, system, context):
    """One of several that differ in this alone."""
    one = functools.partial(function, system, context)
    one.__name__ = system
    return one


def repeats(table, tools):
    """70/30 and caps of 8 ms kernels: by bulkhead, by the driver's own slices, by MPS and by what else is there."""
    table.begin('repeats')
    seconds, kinds = 9, ('long', 'long')
    split, cap_of = '70/30 long', {f'cap {cap} % long': cap for cap in CAPS}
    room = {split: seconds + 6, **{name: 12 for name in cap_of}}

    def cases(system, names, i):
        for name in names:
            if wanted(tools, f'{name}, {system}') and table.enough(f'{name}, {system}, round {i + 1}', room[name]):
                yield name, f'{name}, {system}'

    def bulkhead(i):
        for case, name in cases('bulkhead', room, i):
            if case == split:
                yield name, divided(tools, WEIGHTS, kinds, seconds, governed)
            else:
                rate, points, book = capped(tools, 'long', cap_of[case], 6)
                yield name, ([rate], [points], book)

    def time_slicing(i):
        for _, name in cases('time slicing', [split], i):
            yield name, divided(tools, WEIGHTS, kinds, seconds, ungoverned)

    def another(system, context, i):
        with context() as part:
            for case, name in cases(system, [split] if system in NO_CAPS else room, i):
                if case == split:
                    yield name, divided(tools, WEIGHTS, kinds, seconds, ungoverned, env=part)
                else:
                    yield name, divided(tools, [cap_of[case]], kinds[:1], 6, ungoverned, env=part)

    def alone():
        tools.solo.clear()
        return solo(tools, 'long')['rate']

    others = [way(another, *one) for one in systems(tools).items()]
    for name, rounds in in_rounds(table, tools, [bulkhead, time_slicing, *others], alone).items():
        case, system = name.split(', ')
        expected = fair(WEIGHTS) if case == split else [cap_of[case] / 100]
        got, points, book = [r[0] for _, r in rounds], [r[1] for _, r in rounds], [r[2:] for _, r in rounds]
        worst = max(abs(100 * (g - e)) for one in got for g, e in zip(one, expected))
        ours = system == 'bulkhead'
        judge(table, name, expected, got, ours and case == split, seconds, points, system=system, judged=ours, book=book, alone=[a for a, _ in rounds],
              note=f'the worst of {len(got)} rounds {worst:.1f}')


# ---- latency ----

SMALL_SECONDS = 6
# What best effort keeps is judged beside one: of three, and of a small kernel on an eighth of the processors, it is stated.
# Beside those that rest for three quarters of their time: in the first rounds alone.
BESIDE = [('small', 1, 'lean', 2.0, 0.9), ('small', 1, 'long', 2.0, 0.9), ('small', 3, 'long', 3.0, 0), ('small', 1, 'rests', 2.0, 0),
          ('small', 3, 'rests', 3.0, 0), ('tiny', 1, 'long', 2.0, 0)]
RESTING_ROUNDS = 2
SAME_DOMAIN, SAME_DOMAIN_MOST = 'MPS 50/50', 1.3  # times what it takes alone


def waits(took):
    """Of kernels that come every 5 ms, once all have settled."""
    took = took[int(SETTLE * 200):]
    return {'p50': percentile(took, 50), 'p99': percentile(took, 99), 'took': took}


def beside(tools, small, n, kind, how_small=None, how_rest=None, env=lambda: None):
    ts = [Tenant(tools, small, SMALL_SECONDS, how_small, None, 'small', env())]
    ts += [Tenant(tools, kind, SMALL_SECONDS, how_rest, None, f'b{i}', env()) for i in range(n)]
    together(tools, ts)
    rate = solo(tools, kind)['rate']
    return {**waits(ts[0].took), 'kept': sum(t.rate() for t in ts[1:]) / rate, 'each': [t.rate() / rate for t in ts[1:]]}


def latency(table, tools):
    """A small kernel every 5 ms beside others: by the driver's own slices and by bulkhead, and inside one trust domain by MPS, where each has half of the
    processors and the kernel that must be quick fits into its own."""
    table.begin('latency')

    def each(system, which, i, **how):
        for small, n, kind, *_ in which:
            name = f'{small} kernel beside {n} {kind}, {system}'
            if kind == 'rests' and i >= RESTING_ROUNDS:
                continue
            if wanted(tools, name) and table.enough(f'{name}, round {i + 1}', SMALL_SECONDS + 8):
                yield name, beside(tools, small, n, kind, **how)

    def bulkhead(i):
        yield from each('bulkhead', BESIDE, i, how_small=['--share', 50, '--latency'], how_rest=['--share', 50])

    def time_slicing(i):
        yield from each('time slicing', BESIDE, i)

    def processors(i):
        with mps() as part:
            yield from each(SAME_DOMAIN, BESIDE[-1:], i, env=lambda: part(50))

    def another(system, context, i):
        with context() as part:
            yield from each(system, BESIDE[:-1], i, env=lambda: part(50))

    def alone():
        tools.solo.clear()
        return {small: waits(solo(tools, small, seconds=SMALL_SECONDS)['took']) for small in ('small', 'tiny')}

    libraries = {name: context for name, context in systems(tools).items() if context is not mps}
    found = in_rounds(table, tools, [time_slicing, bulkhead, processors, *(way(another, *one) for one in libraries.items())], alone)
    for small, n, kind, bound, keeps in BESIDE:
        for system in ('time slicing', 'bulkhead', SAME_DOMAIN, *libraries):
            name = f'{small} kernel beside {n} {kind}, {system}'
            rounds = found.get(name)
            if not rounds:
                continue
            times = [got['p99'] / base[small]['p99'] for base, got in rounds]
            p50, p99, kept = (middle([got[k] for _, got in rounds]) for k in ('p50', 'p99', 'kept'))
            most, least = {'bulkhead': (bound, keeps), SAME_DOMAIN: (SAME_DOMAIN_MOST, 0)}.get(system, (None, 0))
            table.row(name, f'p50 {p50:.0f} us, p99 {p99:.0f} us = x{middle(times):.2f} of alone in the same round (x{min(times):.2f} to x{max(times):.2f}); '
                      f'best effort keeps {100 * kept:.1f} %',
                      f'p99 at most x{most:g}' + (f', {100 * least:.0f} % kept' if least else '') if most else '',
                      middle(times) <= most and kept >= least if most else None, times=times, base=middle([b[small]['p99'] for b, _ in rounds]),
                      alone=[b[small] for b, _ in rounds], got=[got for _, got in rounds], system=system, beside=n, kind=f'{kind}, {small}')
