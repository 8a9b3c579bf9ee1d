# SPDX-License-Identifier: Apache-2.0
"""Chargeback on a real daemon: bills are worked out a second time from the raw records, by other means, to the last byte.

Usage: usage.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import csv
import io
import json
import signal
import subprocess
import time
from collections import OrderedDict
from datetime import datetime, timezone

import lab
from lab import BIN, NOBODY, has, node, policy, same

GPU_HOUR, GIB_HOUR = 2_500_000, 20_000  # millionths
PRICED = policy() + 'prices: {currency: EUR, gpuHour: 2.50, memoryGiBHour: 0.02}\n'
CENTERS = {'chat': 'cc-1', 'train': 'cc-2', 'lab': 'cc-3', 'nightly': 'cc-3'}
HEAD = ('from,to,tenant,cost_center,user,gpu,mechanism,gpu_seconds,gib_seconds,lost_gpu_seconds,leases,milli_ms,mib_ms,'
        'currency,cost')


def bulkhead(n, *words, user=None):
    done = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=120, env=n.env, user=user)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def instant(ms):
    text = datetime.fromtimestamp(ms // 1000, timezone.utc).strftime('%Y-%m-%dT%H:%M:%S')
    return text + (f'.{ms % 1000:03d}' if ms % 1000 else '') + 'Z'


def name_of(record, by):
    """tenant, cost center, user, gpu, mechanism of the line that a record belongs to."""
    t, c, u, g, m = (record[k] for k in ('tenant', 'cost_center', 'user', 'gpu', 'mechanism'))
    return {'tenant': (t, c, 'all', 'all', 'all'), 'cost-center': ('all', c, 'all', 'all', 'all'),
            'gpu': ('all', 'all', 'all', g, 'all'), 'user': (t, c, u, 'all', 'all'),
            'mechanism': ('all', 'all', 'all', 'all', m), 'both': (t, c, 'all', 'all', m)}[by]


def order_of(record, by):
    """As the daemon lists them, so that lines come in the same order."""
    return (record['tenant'], record[by] if by in ('user', 'gpu') else '', record['mechanism'])


def bill(records, by, start, end):
    lines = OrderedDict()
    for r in sorted(records, key=lambda x: order_of(x, by)):
        ms = min(int(r['to_ms'] or end), end) - max(int(r['from_ms']), start)
        if ms <= 0:
            continue
        line = lines.setdefault(name_of(r, by), {'milli': 0, 'mib': 0, 'lost': 0, 'leases': set()})
        line['milli'] += int(r['milli']) * ms
        line['mib'] += int(r['mib']) * ms
        line['lost'] += int(r['milli']) * ms if r['lost'] == '1' else 0
        # A lease counts once for each row of the daemon's answer: none is of two tenants, users or mechanisms.
        line['leases'].add((r['lease'], r['gpu'] if by == 'gpu' else ''))
    out = [HEAD]
    for names, x in lines.items():
        micro = x['milli'] * GPU_HOUR // (1000 * 3600_000) + x['mib'] * GIB_HOUR // (1024 * 3600_000)
        out.append(','.join((instant(start), instant(end), *names, f'{x["milli"] // 10**6}.{x["milli"] % 10**6:06d}',
                             f'{x["mib"] // 1024000}.{x["mib"] % 1024000 * 1000 // 1024000:03d}',
                             f'{x["lost"] // 10**6}.{x["lost"] % 10**6:06d}', str(len(x['leases'])), str(x['milli']),
                             str(x['mib']), 'EUR', f'{micro // 10**6}.{micro % 10**6:06d}')))
    return '\n'.join(out) + '\n'


def history(n):
    """Whole cards and shares, a daemon that is killed, work that makes room and comes back."""
    jobs = [n.submit('chat', 'sleep', '1'), n.submit('train', 'sleep', '2', gpus=2),
            n.submit('lab', 'sleep', '1', milli=250, memory_mib=1024),
            n.submit('lab', 'sleep', '2', milli=100, memory_mib=2048, uid=NOBODY)]
    for j in jobs:
        n.wait(j)
    low = [n.submit('nightly', 'sleep', '600', can_requeue=True) for _ in range(4)]
    for j in low:
        n.active(j)
    n.again()
    high = n.submit('chat', 'sleep', '600')
    n.active(high)
    return low + [high]


def check_focus(n):
    now = datetime.now(timezone.utc)
    rows = list(csv.DictReader(io.StringIO(bulkhead(n, 'usage', '-o', 'focus'))))
    same({(r['SubAccountId'], r['SkuId'], r['BillingCurrency'], r['ChargeCategory']) for r in rows},
         {(t, s, 'EUR', 'Usage') for t in CENTERS for s in ('gpu-time', 'gpu-memory')})
    same({r['BillingPeriodStart'] for r in rows}, {now.strftime('%Y-%m-01T00:00:00Z')})
    assert all(r['ResourceId'].startswith('GPU-') and float(r['BilledCost']) >= 0 for r in rows), rows
    same({r['Tags'] for r in rows if r['SubAccountId'] == 'lab'},
         {'{"cost-center": "cc-3", "mechanism": "gate", "user": "all"}'})


def check_future(n, begin):
    """A month that is not over is charged up to now, in every form."""
    at = datetime.fromtimestamp(time.time() + 20 * 86400, timezone.utc).strftime('%Y-%m-%d')
    answer = json.loads(bulkhead(n, 'usage', *begin, '--to', at, '-o', 'json'))
    now = int(time.time() * 1000)
    assert now - 60_000 < answer['to_ms'] <= now, (answer['to_ms'], now)
    # Eight cards, since the daemon was started, are more than all that was ever granted.
    assert 0 < sum(r['milli_ms'] for r in answer['usage']) < 8 * 1000 * (now - answer['from_ms']), answer
    line = next(csv.DictReader(io.StringIO(bulkhead(n, 'usage', *begin, '--to', at, '-o', 'csv'))))
    assert line['to'] <= instant(int(time.time() * 1000)), line
    ahead = json.loads(bulkhead(n, 'usage', '--from', at, '-o', 'json', '--to', '2100-01-01'))
    same((ahead['usage'], ahead['from_ms']), ([], ahead['to_ms']))


def check_tenant(n):
    """nobody sees lab, and of the rest nothing."""
    if not lab.tap.for_others(BIN):
        return
    mine = json.loads(bulkhead(n, 'usage', '-o', 'json', user=NOBODY))
    same(({r['tenant'] for r in mine['usage']}, mine['cards']), ({'lab'}, []))
    assert 'others' not in mine, mine
    same({r['tenant'] for r in csv.DictReader(io.StringIO(bulkhead(n, 'usage', '--raw', user=NOBODY)))}, {'lab'})


def test_every_bill_from_the_raw_records():
    with node(text=PRICED) as n:
        left = history(n)
        time.sleep(1)  # times of the command are whole seconds: the last lease has to lie before the end
        start, end = n.get('/v1/status').json['started_ms'] - 3_600_000, int(time.time() * 1000)
        window = ('--from', datetime.fromtimestamp(start // 1000, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
                  '--to', datetime.fromtimestamp(end // 1000, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'))
        start, end = start // 1000 * 1000, end // 1000 * 1000
        raw = bulkhead(n, 'usage', '--raw', *window)
        records = list(csv.DictReader(io.StringIO(raw)))
        assert len(records) >= 10 and {r['tenant'] for r in records} == set(CENTERS), raw
        same({r['tenant']: r['cost_center'] for r in records}, CENTERS)
        assert any(r['lost'] == '1' for r in records) and any(not r['to_ms'] for r in records), raw
        for by in ('tenant', 'cost-center', 'gpu', 'user', 'mechanism', 'both'):
            same(bulkhead(n, 'usage', '--by', by, '-o', 'csv', *window), bill(records, by, start, end), by)
        # The books agree with what the store has been given, whoever adds it up.
        rows = n.rows('SELECT sum(milli * (min(coalesce(to_ms, ?), ?) - max(from_ms, ?))) v FROM usage WHERE from_ms < ?',
                      end, end, start, end)
        answer = json.loads(bulkhead(n, 'usage', '--by', 'gpu', '-o', 'json', *window))
        same(sum(r['milli_ms'] for r in answer['usage']), rows[0]['v'])
        same(sum(c['milli_ms'] for c in answer['cards']), rows[0]['v'])
        check_future(n, window[:2])
        text = bulkhead(n, 'usage', *window)
        has(text, 'chat')
        has(text, 'unknown whether they compute')
        check_focus(n)
        check_tenant(n)
        for j in left:
            n.post(f'/v1/jobs/{j}/cancel')
        n.quiet()
        n.sound()
        n.kill(signal.SIGTERM)


if __name__ == '__main__':
    lab.tap.main(globals())
