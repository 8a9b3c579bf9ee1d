# SPDX-License-Identifier: Apache-2.0
"""Drawings from the results: asked and delivered, shares over time, latency."""
import json
import pathlib

from drawing import LEFT, WIDTH, Drawing
from table import middle


def load(folder, part):
    at = pathlib.Path(folder, f'{part}.json')
    return json.loads(at.read_text(encoding='utf-8')) if at.exists() else []


def asked(folder):
    """A row a measurement: each tenant's part after the other, and dashed where it should end."""
    rows = [r for part in ('repeats', 'shares', 'lending', 'caps', 'peers') for r in load(folder, part) if 'mid' in r]
    d = Drawing()
    for r in rows:
        at, due = 0.0, 0.0
        d.text(LEFT - 8, r['name'], anchor='end')
        for want, got in zip(r['expected'], r['mid']):
            d.bar(got - 0.004, 'bar' if r.get('system') == 'bulkhead' else 'other', at)
            at, due = at + got, due + want
            d.mark(due, 1, 'line')
        d.text(LEFT + WIDTH + 28, f'{r["error"]:.1f} points off', 'head' if r['ok'] is False else 'dim')
        d.next()
    if rows:
        d.save(pathlib.Path(folder, 'shares.svg'), 'shares of the card delivered, and asked for (dashed: where each ends)')


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
        p99 = middle([g['p99'] for g in r['got']])
        d.text(LEFT - 8, f'beside {r["beside"]} {r["kind"]}, {r["system"]}', anchor='end')
        d.bar(p99 / most, 'bar' if r['system'] == 'bulkhead' else 'other')
        d.mark(r['base'] / most, 1, 'line')
        d.text(LEFT + WIDTH + 8, f'{p99:.0f} us, x{middle(r["times"]):.2f}', 'dim')
        d.next()
    if rows:
        d.save(pathlib.Path(folder, 'latency.svg'), 'p99 of a small kernel every 5 ms (dashed: alone)')


def draw(folder):
    asked(folder)
    over_time(folder)
    waits(folder)
    return 0
