# SPDX-License-Identifier: Apache-2.0
"""Who is on a card and has no business there: found, said, stopped; and a card with somebody on it is nobody's to have.

Usage: watch.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT FAULTS TENANT
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import lab
from lab import NOBODY, has, node, same, until

TENANT = os.path.abspath(sys.argv[7])


@contextlib.contextmanager
def stranger(n, gpu, size='4GiB', user=NOBODY):
    """A process that bulkhead did not start, with memory of that card."""
    p = subprocess.Popen([TENANT, '--device', str(gpu), 'hold', size], env=n.env, stdout=subprocess.PIPE, text=True, user=user)
    try:
        same(p.stdout.readline(), 'ready\n')
        yield p
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def card_of(n, lease):
    uuid = n.lease(lease)['slices'][0]['gpu']
    return next(g for g in n.get('/v1/gpus').json['gpus'] if g['uuid'] == uuid)


def checks(n, layer):
    return [c for c in n.get('/v1/doctor').json['checks'] if c['layer'] == layer]


def test_a_card_with_somebody_on_it_is_not_clean():
    """What root runs is not stopped, and what it holds was not looked at: nobody else gets the card."""
    with node() as n:
        job = n.submit('chat', 'sleep', '600')
        lease = n.active(job)
        card = card_of(n, lease)
        with stranger(n, card['index'], user=0) as p:
            n.post(f'/v1/jobs/{job}/cancel')
            n.wait_lease(lease, 'quarantined', 'released')
            end = n.lease(lease)
            same(end['lease']['state'], 'quarantined')
            has(end['lease']['why'], f'process {p.pid} (tenant) is on it')
            same({s['verdict'] for s in end['scrubs']}, {'unknown'})
            same(p.poll(), None)
        # It is gone: a person has the card looked at again.
        until(lambda: n.post(f'/v1/gpus/{card["index"]}/uncordon').ok, 30)
        n.wait_lease(lease, 'released')
        clean = n.lease(lease)['scrubs'][-1]
        same(clean['verdict'], 'clean')
        has(clean['words'], ' % of the ')
        assert clean['probed_bytes'] / clean['total_bytes'] > 0.97, clean
        n.sound()


if __name__ == '__main__':
    lab.tap.main(globals())
