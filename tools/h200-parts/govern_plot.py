# SPDX-License-Identifier: Apache-2.0
"""Drawings from the results: asked and delivered, shares over time, latency."""
import json
import pathlib

from drawing import LEFT, WIDTH, Drawing


def load(folder, part):
    at = pathlib.Path(folder, f'{part}.json')
    return json.loads(at.read_text(encoding='utf-8')) if at.exists() else []


def asked(folder):
    rows = [r for part in ('shares', 'caps', 'peers') for r in load(folder, part) if 'mid' in r]
    d = Drawing()
    for r in rows:
        d.text(8, r['name'], 'head')
        d.text(LEFT + WIDTH + 8, f'error {r["error"]:.1f} points', 'dim')
        d.next()
        for want, got in zip(r['expected'], r['mid']):
            d.text(LEFT - 8, f'{100 * want:.0f} % asked', 'dim', 'end')
            d.bar(min(1, got), 'bar' if r.get('system') == 'bulkhead' else 'other')
            d.mark(want, 1, 'line')
            d.text(LEFT + WIDTH + 8, f'{100 * got:.1f} %', 'dim')
            d.next()
        d.next(0.4)
    if rows:
        d.save(pathlib.Path(folder, 'shares.svg'), 'share of the card asked for (dashed) and delivered')


def over_time(folder):
    for r in load(folder, 'timeline'):
        if 'series' in r:
            d = Drawing()
            d.text(8, 'Share of the card, by work done: a (weight 70), b (30) from 5 to 20 s, c (100) from 12 to 24 s', 'head')
            d.next(1.2)
            d.lines([(n, [(t, 100 * s) for t, s in points]) for n, points in r['series'].items()], 220, 30, 100, 'seconds', '%')
            d.save(pathlib.Path(folder, 'timeline.svg'), 'shares while tenants come and go')


def waits(folder):
    rows = [r for r in load(folder, 'latency') if 'beside' in r]
    d, most = Drawing(), max([g['p99'] for r in rows for g in r['got']] or [1])
    for r in rows:
        p99 = sorted(g['p99'] for g in r['got'])[len(r['got']) // 2]
        d.text(LEFT - 8, f'beside {r["beside"]} {r["kind"]}, {r["system"]}', anchor='end')
        d.bar(p99 / most, 'bar' if r['system'] == 'bulkhead' else 'other')
        d.mark(r['base'] / most, 1, 'line')
        d.text(LEFT + WIDTH + 8, f'{p99:.0f} us, x{p99 / r["base"]:.2f}', 'dim')
        d.next()
    if rows:
        d.save(pathlib.Path(folder, 'latency.svg'), 'p99 of a small kernel every 5 ms (dashed: alone)')


def draw(folder):
    asked(folder)
    over_time(folder)
    waits(folder)
    return 0
