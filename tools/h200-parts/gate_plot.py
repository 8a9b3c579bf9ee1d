# SPDX-License-Identifier: Apache-2.0
"""Two drawings from the results: what each path held against the cap, and what things cost with the gate against without."""
import json
import pathlib

from drawing import LEFT, WIDTH, Drawing

GIB = 1 << 30


def load(folder, part):
    at = pathlib.Path(folder, f'{part}.json')
    return json.loads(at.read_text(encoding='utf-8')) if at.exists() else []


def held(folder):
    rows = [r for r in load(folder, 'matrix') + load(folder, 'peers') if 'beyond' in r]
    groups = {}
    for r in rows:
        key = (r.get('peer', 'bulkhead'), r['processes'], r['cap'])
        groups.setdefault(key, []).append(r)
    d = Drawing()
    for (who, n, cap), rs in groups.items():
        most = max(cap * 1.1, *[r['held'] for r in rs])
        d.text(8, f'{who}: cap {cap // GIB} GiB, {n} process{"es" if n > 1 else " at a time"}', 'head')
        d.next(1.2)
        d.mark(cap / most, len(rs), 'line')
        for r in rs:
            d.text(LEFT - 8, r['path'] + (', cleared' if r.get('cleared') else ''), anchor='end')
            d.bar(r['held'] / most, 'bad' if r['beyond'] else 'bar')
            d.text(LEFT + WIDTH + 8, f'{r["held"] / GIB:.2f} GiB' + (f', {r["beyond"] / GIB:.2f} beyond' if r['beyond'] else ''), 'dim')
            d.next()
        d.next(0.6)
    if groups:
        d.save(pathlib.Path(folder, 'held.svg'), 'memory held by the driver\'s count, against the cap')


def costs(folder):
    rows = [r for part in ('cost', 'crowd', 'loops') for r in load(folder, part) if 'measure' in r]
    d, seen = Drawing(), []
    for r in rows:
        if r['measure'] in seen:
            continue
        seen.append(r['measure'])
        modes = [x for x in rows if x['measure'] == r['measure']]
        native = next((x['median'] for x in modes if x['mode'] == 'native'), None)
        most = max(x['median'] for x in modes) * 1.05
        d.text(8, f'{r["measure"]} ({r["unit"]})', 'head')
        d.next(1.2)
        for x in modes:
            d.text(LEFT - 8, x['mode'], anchor='end')
            d.bar(x['median'] / most, 'bar' if x['mode'] == 'native' else 'other')
            against = '' if not native or x['mode'] == 'native' else f'  x{x["median"] / native:.4f}'
            d.text(LEFT + WIDTH + 8, f'{x["median"]:.3f}{against}', 'dim')
            d.next()
        d.next(0.6)
    if seen:
        d.save(pathlib.Path(folder, 'cost.svg'), 'what the gate costs')


def draw(folder):
    held(folder)
    costs(folder)
    return 0
