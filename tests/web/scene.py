# SPDX-License-Identifier: Apache-2.0
"""A node for the console to show: four kinds of tenants on whole cards, shares and MIG, and somebody who waits.

Usage: scene.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
Starts it, prints one line of JSON (where it listens, tokens), and keeps it until its input ends.
"""
import json
import os
import pathlib
import socket
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'node'))
import lab  # noqa: E402

NET = 'network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}'
POLICY = f'''\
bulkhead: 1
tenants:
  - {{name: chat, class: serving, costCenter: cc-100, quota: {{model: hard, gpus: 2}}, {NET}}}
  - {{name: train, class: training, costCenter: cc-200, quota: {{model: fairshare, gpus: 2, max: 4, weight: 200, borrow: true}}, {NET}}}
  - {{name: lab, class: research, costCenter: cc-300, quota: {{model: fairshare, gpus: 2, max: 4, weight: 100, borrow: true}}, {NET}}}
  - {{name: nightly, class: batch, costCenter: cc-300, quota: {{model: fairshare, gpus: 0, max: 4, weight: 50, borrow: true}}, {NET}}}
pools:
  - {{name: cards, match: {{gpus: [0, 1, 2, 3]}}, mechanism: whole, tier: process, tenants: [chat, train, nightly]}}
  - {{name: shares, match: {{gpus: [4, 5]}}, mechanism: fractional, backing: gate, tier: process, tenants: [lab],
     caps: {{memory: 20GiB, compute: 25%}}}}
  - {{name: cut, match: {{gpus: [6, 7]}}, mechanism: mig, tier: process, tenants: [lab, train],
     profiles: [1g.10gb, 2g.20gb, 3g.40gb]}}
roles:
  - {{subject: "user:root", role: operator}}
  - {{subject: "user:nobody", role: tenant-admin, tenant: lab}}
prices: {{gpuHour: 2.50, memoryGiBHour: 0.02, currency: EUR, borrowed: 60%}}
audit: {{enabled: true, retention: 365d}}
'''


def token(n, role, tenant=None, subject='service:console-test'):
    body = {'role': role, 'subject': subject, **({'tenant': tenant} if tenant else {})}
    r = n.post('/v1/tokens', body)
    assert r.status == 201, repr(r)
    return r.json['token']


def work(n):
    """Everything that a page can show: whole cards, shares, MIG, one that waits, one that ended badly, a cordoned card."""
    sleep = ('sleep', '3600')
    # MIG first: a card that the governor already looks at is not switched over.
    jobs = [n.submit('train', *sleep, pool='cut', profile='3g.40gb', name='eval'), n.submit('lab', *sleep, pool='cut', profile='2g.20gb', name='tuning'),
            n.submit('lab', *sleep, pool='cut', profile='1g.10gb', name='quick-look')]
    for j in jobs:
        n.active(j)
    jobs += [n.submit('chat', *sleep, name='answers'), n.submit('train', *sleep, pool='cards', can_requeue=True, name='run-70b'),
             n.submit('nightly', *sleep, can_requeue=True, name='reports'),
             n.submit('lab', 'sh', '-c', 'echo step 1; echo step 2; exec sleep 3600', pool='shares', milli=250, memory_mib=20480, name='notebook'),
             n.submit('lab', *sleep, pool='shares', milli=250, memory_mib=16384, name='notebook-2')]
    for j in jobs:
        n.active(j)
    bad = n.submit('lab', 'sh', '-c', 'echo no such data >&2; exit 3', pool='shares', milli=250, memory_mib=8192, name='broken', can_requeue=True)
    n.wait(bad)
    n.submit('chat', *sleep, gpus=2, name='second-model')
    assert n.post('/v1/gpus/5/cordon', {'reason': 'fan is loud'}).ok


def serve(n):
    """The address of its console."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    n.start('--listen', f'127.0.0.1:{port}')
    return f'https://127.0.0.1:{port}'


def everything(n):
    """The node with its work: where it listens, and a token for each kind of caller."""
    url = serve(n)
    work(n)
    return {'url': url, 'operator': token(n, 'operator', subject='user:root'), 'tenant': token(n, 'tenant-admin', 'lab'), 'viewer': token(n, 'viewer')}


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        n = lab.Node(lab.LARGE, POLICY)
        try:
            print(json.dumps(everything(n)), flush=True)
            sys.stdin.read()
        finally:
            n.stop()
            os.chdir('/')


if __name__ == '__main__':
    main()
