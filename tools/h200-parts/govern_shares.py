# SPDX-License-Identifier: Apache-2.0
"""Asked and delivered: shares and caps; beside the driver's own time slicing."""
import time

from govern_work import SETTLE, Tenant, fair, percentile, shares as rows, solo, together
from table import middle

KINDS = ('long', 'short', 'sync', 'graph', 'persistent', 'torch')
DIVISIONS = {'70/30': (70, 30), '50/50': (50, 50), '90/10': (90, 10), '99/1': (99, 1), '60/30/10': (60, 30, 10), 'ten equal': (10,) * 10}
FOR = {'99/1 long': 12, 'ten equal long': 12}  # seconds that are looked at instead of six, where a share is only a few kernels of 8 ms
# name, weights, kinds
CELLS = [(f'{name} {kind}', weights, (kind,) * len(weights)) for kind in KINDS for name, weights in DIVISIONS.items()]
MIXED = [
    ('30/70 long beside sync', (30, 70), ('long', 'sync')),
    ('50/50 long beside small', (50, 50), ('long', 'small')),
    ('50/50 long beside serve', (50, 50), ('long', 'serve')),
    ('50/50 long beside steps', (50, 50), ('long', 'steps')),
    ('five equal, long beside steps', (20,) * 5, ('long',) * 4 + ('steps',)),
    ('eight equal, long beside steps', (10,) * 8, ('long',) * 7 + ('steps',)),
    ('50/50/20 long beside small', (50, 50, 20), ('long', 'long', 'small')),
]
PARTS = {'small': 200 * 0.236e-3, 'serve': 100 * 2.54e-3, 'steps': 2.54 / 10.04}  # of the card, alone
# Whether it may run beside the others is tried first; of a small share it is seen late that most of it is left.
LATER = {'50/50 long beside serve': 8.0, '50/50 long beside steps': 8.0, 'five equal, long beside steps': 12.0, 'eight equal, long beside steps': 12.0,
         '50/50/20 long beside small': 26.0}
CAPS = [(kind, cap) for kind in KINDS for cap in (10, 25, 50, 75)]


def wanted(tools, name):
    return tools.only in name


def demand(kind):
    """What it could use of the card alone."""
    return PARTS.get(kind, 1.0)


def divided(tools, weights, kinds, seconds, how, settle=SETTLE, env=lambda weight: None):
    ts = [Tenant(tools, k, seconds, how(i, w), None, f't{i}', env(w)) for i, (w, k) in enumerate(zip(weights, kinds))]
    together(tools, ts, seconds * 4 + 60)
    return [t.rate(settle, seconds) / max(solo(tools, t.kind)['rate'], 1e-9) * demand(t.kind) for t in ts], [t.points for t in ts]


def governed(_, weight):
    return ['--share', weight]


def ungoverned(_, __):
    return None


def judge(table, name, expected, got, want_sum, seconds, points, note='', **raw):
    """got: for each repeat, what each tenant had of its own rate alone."""
    mid = [middle([g[i] for g in got]) for i in range(len(expected))]
    error = max(abs(100 * (m - e)) for m, e in zip(mid, expected))
    text = ' / '.join(f'{100 * m:.1f}' for m in mid) + f'  error {error:.1f} points, sum {100 * sum(mid):.1f} %'
    text += f', from {raw["settle"]:g} s on' if raw.get('settle', SETTLE) != SETTLE else ''
    text += f', {note}' if note else ''
    ok = error <= 2.0 if raw.get('judged', True) else None
    table.row(name, text, 'within 2 points' if ok is not None else '', ok, expected=expected, got=got, mid=mid, error=error,
              sum=sum(mid), seconds=seconds, points=points, **raw)
    if want_sum and ok is not None:
        table.row(f'{name}: sum', f'{100 * sum(mid):.1f} %', 'at least 97 %', sum(mid) >= 0.97)


def shares(table, tools):
    table.begin('shares')
    cells(table, tools, CELLS)


def lending(table, tools):
    """Of unlike ones, and where one of them asks for less than its share: the other has the rest."""
    table.begin('lending')
    cells(table, tools, MIXED)
    name = '99/1 long, the small one with a floor of 30 %'
    if wanted(tools, name) and table.enough(name, 20):
        got, points = divided(tools, (99, 1), ('long', 'long'), 9, lambda i, w: ['--share', w, *(['--floor', '30%'] if i else [])])
        judge(table, name, [0.7, 0.3], [got], True, 9, [points], system='bulkhead')
    after_loading(table, tools)
    for name, weights, kinds in MIXED:
        if wanted(tools, name) and any(k in PARTS for k in kinds):
            sliced(table, tools, name, weights, kinds)


def after_loading(table, tools, weights=(40, 30, 20, 10), settle=12, seconds=20):
    """Who loads is known for doing little; then all begin to work. A latency tenant that has nothing to do makes their slices short all the same."""
    name = 'four that load and then work, beside an idle latency tenant'
    if not wanted(tools, name) or not table.enough(name, seconds + 12):
        return
    ts = [Tenant(tools, 'idle', seconds, ['--share', 50, '--latency'])]
    ts += [Tenant(tools, 'loads', seconds, ['--share', w], None, f't{i}') for i, w in enumerate(weights)]
    together(tools, ts)
    got = [t.rate(settle, seconds) / max(solo(tools, 'long')['rate'], 1e-9) for t in ts[1:]]
    judge(table, name, fair(weights), [got], False, seconds, [[t.points for t in ts[1:]]], system='bulkhead', settle=settle)


def sliced(table, tools, name, weights, kinds, seconds=6):
    """The same tenants by the driver's own slices, with nothing of ours."""
    name = f'{name}, time slicing'
    if table.enough(name, seconds + 10):
        g, p = divided(tools, weights, kinds, seconds, ungoverned)
        expected = fair(weights, demands=[demand(k) for k in kinds])
        judge(table, name, expected, [g], False, seconds, [p], system='time slicing', judged=False)


def cells(table, tools, which):
    for name, weights, kinds in which:
        if not wanted(tools, name):
            continue
        settle = LATER.get(name, SETTLE)
        seconds = int(settle) + (4 if tools.short else FOR.get(name, 6))
        if not table.enough(name, seconds + 12):
            continue
        try:
            got, points = divided(tools, weights, kinds, seconds, governed, settle)
        except RuntimeError as e:
            table.row(name, e, 'runs', False)
            continue
        expected = fair(weights, demands=[demand(k) for k in kinds])
        judge(table, name, expected, [got], set(kinds) == {'long'}, seconds, [points], system='bulkhead', settle=settle)


def held(tools, kind, how, seconds):
    """A tenant with the card to itself, and what it had of it by the card's own book after it had settled."""
    t = Tenant(tools, kind, seconds, how, None, 'held').ready()
    t.go()
    time.sleep(SETTLE)
    began, first = time.monotonic(), rows(tools).get('held', {})
    time.sleep(seconds - SETTLE - 0.6)
    lasted, last = time.monotonic() - began, rows(tools).get('held', {})
    t.finish(60)
    book = {'seconds': lasted, 'first': first, 'last': last}
    if 'busyNanos' in first and 'busyNanos' in last:
        book['part'] = (last['busyNanos'] - first['busyNanos']) / 1e9 / lasted
    return t, book


def capped(tools, kind, cap, seconds):
    """What it had of its rate alone; its points; and what the card's own book says."""
    t, book = held(tools, kind, ['--cap', f'{cap}%'], seconds)
    return t.rate() / max(solo(tools, kind)['rate'], 1e-9), t.points, book


def turn_of(book):
    """Seconds from one pause to the next, by how many there were."""
    pauses = book['last'].get('pauses', 0) - book['first'].get('pauses', 0)
    return book['seconds'] / pauses if pauses > 0 else 0.0


def caps(table, tools):
    table.begin('caps')
    seconds = 6
    for kind, cap in CAPS:
        name = f'cap {cap} % {kind}'
        if not wanted(tools, name) or not table.enough(name, seconds + 8):
            continue
        try:
            got, points, book = capped(tools, kind, cap, seconds)
        except RuntimeError as e:
            table.row(name, e, 'runs', False)
            continue
        judge(table, name, [cap / 100], [[got]], False, seconds, [[points]], system='bulkhead', book=[book])
        table.row(f'  {name}, by the card\'s book', f'{100 * book["part"]:.1f} % of its time' if 'part' in book else 'not said')
        if kind == 'torch':
            # Alone and at full load it meets the card's power limit, which one that rests does not: each of its seconds does more. How much more goes by how
            # long it works and rests at a time, so both rest alike.
            full = solo(tools, kind)['rate']
            steps = max(1, round(full * cap / 100 * turn_of(book)))
            rested = solo(tools, kind, (cap, steps), 8, cap / 100)['rate']
            part = got * full / max(rested, 1e-9)
            table.row(f'  {name}, of a run that rests as much by itself', f'{100 * part:.1f} %; a second of that does x{rested / full:.3f} of one at full load, in {steps} steps at a time',
                      'within 2 points', abs(100 * part - cap) <= 2.0, full=full, rested=rested, steps=steps)
    capped_beside_latency(table, tools)


def capped_beside_latency(table, tools, seconds=9):
    for cap in (25, 50):
        name = f'cap {cap} % long beside a latency tenant'
        if not wanted(tools, name) or not table.enough(name, seconds + 10):
            continue
        small, t = together(tools, [Tenant(tools, 'small', seconds, ['--share', 50, '--latency'], None, 'small'),
                                    Tenant(tools, 'long', seconds, ['--share', 50, '--cap', f'{cap}%'], None, 'held')])
        judge(table, name, [cap / 100], [[t.rate(SETTLE, seconds) / max(solo(tools, 'long')['rate'], 1e-9)]], False, seconds, [[t.points]],
              note=f'p99 of the other {percentile(small.took[int(SETTLE * 200):], 99):.0f} us', system='bulkhead', took=small.took)


def timeline(table, tools):
    """Tenants come and go: 70 alone, 30 beside it, 100 beside both, and away again."""
    table.begin('timeline')
    plan = [('a', 70, 0, 30), ('b', 30, 5, 15), ('c', 100, 12, 12)]  # name, weight, from, for so long
    began, running, said = None, {}, []
    solo(tools, 'long', 2000)
    began = time.monotonic()
    for name, weight, at, last in plan:
        t = Tenant(tools, 'long', last, ['--share', weight], 2000, name)
        running[name] = (t.ready(), at)
    began = time.monotonic()
    for name, weight, at, last in plan:
        while time.monotonic() - began < at:
            said.append((time.monotonic() - began, {n: (r['targetPermille'], r['deliveredPermille']) for n, r in rows(tools).items()}))
            time.sleep(0.2)
        running[name][0].go()
    while time.monotonic() - began < 30:
        said.append((time.monotonic() - began, {n: (r['targetPermille'], r['deliveredPermille']) for n, r in rows(tools).items()}))
        time.sleep(0.2)
    rate = solo(tools, 'long', 2000)['rate']
    series = {}
    for name, (t, at) in running.items():
        t.finish(20)
        series[name] = [(at + t1, (u1 - u0) / (t1 - t0) / rate) for (t0, u0), (t1, u1) in zip(t.points, t.points[5:]) if t1 > t0]
    table.row('tenants come and go', f'{sum(map(len, series.values()))} points', series=series, said=said)
