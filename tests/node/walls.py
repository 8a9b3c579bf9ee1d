# SPDX-License-Identifier: Apache-2.0
"""Which device nodes work of tier process can open: its own cards', whoever it is; nobody else's, root or not.

Nodes of a terminal stand for those of the cards, below the simulated machine's root; the wall in front of them (the cgroup's
devices) is the real one. What holds a whole card and an MPS server is this and nothing else, so each is tried by opening.

Usage: walls.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import json
import os
import pathlib
import shutil

import lab
from lab import Skip, has, node, same, until

CARDS = 8
FIRST = 40  # minor of the first
TRIES = '''
import errno, json, os
def tried(name):
    try:
        os.close(os.open('DEV/' + name, os.O_RDWR | os.O_NOCTTY))
        return 'opens'
    except OSError as e:
        return errno.errorcode[e.errno]
WHAT = json.dumps({n: tried(n) for n in sorted(os.listdir('DEV')) if n.startswith('nvidia') and not os.path.isdir('DEV/' + n)})
'''


def nodes(n):
    """The folder with one for each card and those that all have."""
    dev = pathlib.Path(n.here, 'h/lab/sysroot/dev')
    dev.mkdir(exist_ok=True)
    for i, name in enumerate([f'nvidia{k}' for k in range(CARDS)] + ['nvidiactl', 'nvidia-uvm']):
        (dev / name).unlink(missing_ok=True)
        os.mknod(dev / name, 0o666 | 0o020000, os.makedev(4, FIRST + i))
        os.chmod(dev / name, 0o666)
    try:
        os.close(os.open(dev / 'nvidia0', os.O_RDWR | os.O_NOCTTY))
    except OSError as e:
        raise Skip(f'no device that could stand for a GPU can be opened here: {e}') from e
    return dev


def expected(n, *gpus):
    by_uuid = {g['uuid']: g['index'] for g in n.get('/v1/gpus').json['gpus']}
    mine = {'nvidiactl', 'nvidia-uvm', *(f'nvidia{by_uuid[g]}' for g in gpus)}
    return {name: 'opens' if name in mine else 'EPERM' for name in
            sorted([f'nvidia{k}' for k in range(CARDS)] + ['nvidiactl', 'nvidia-uvm'])}


SPEEDS = '''
group = {c: l.strip().split(':')[2] for l in open('/proc/self/cgroup') for c in l.split(':')[1].split(',')}
old = '/sys/fs/cgroup/blkio' + group.get('blkio', '') + '/blkio.throttle.%s_bps_device'
new = '/sys/fs/cgroup' + group.get('', '') + '/io.max'
print(json.dumps([open(old % way).read() for way in ('read', 'write')] if 'blkio' in group else [open(new).read()]))
'''


def expected_speeds(rate):
    """What the group's files say of each disk, on cgroups of version 1 and of version 2."""
    if os.path.isdir('/sys/fs/cgroup/blkio'):
        return [''.join(f'{d} {rate}\n' for d in lab.tap.disks())] * 2
    return [''.join(f'{d} rbps={rate} wbps={rate} riops=max wiops=max\n' for d in lab.tap.disks())]


def test_a_process_opens_its_own_cards():
    """And uses disks as fast as its class may, for each of them."""
    classes = 'classes: [{name: steady, bandwidth: {disk: 500MiB, network: 1GiB}}]\n'
    with node(serve=False, text=lab.policy().replace('class: training', 'class: steady') + classes) as n:
        dev = nodes(n)
        n.start()
        script = TRIES.replace('DEV', str(dev)) + 'print(WHAT)' + SPEEDS
        for gpus in (1, 2):
            job = n.submit('train', '/usr/bin/python3', '-c', script, gpus=gpus)
            same(n.wait(job)['status'], 0, n.get(f'/v1/jobs/{job}/logs?stream=err').body)
            lease = n.lease(n.leases_of(job)[0])
            want = expected(n, *(s['gpu'] for s in lease['slices']))
            same(sum(v == 'opens' for v in want.values()), gpus + 2)
            opened, speeds = n.get(f'/v1/jobs/{job}/logs').body.decode().splitlines()
            same(json.loads(opened), want)
            same(json.loads(speeds), expected_speeds((500 << 20) // 1000 * 1000 * gpus))
        has([c['sentence'] for c in n.get('/v1/doctor').json['checks']],
            'the network speed of train is not held in pool cards, which is of tier process')
        n.quiet()


MPS = '''\
bulkhead: 1
tenants:
  - {name: acme, class: research, costCenter: cc-1, quota: {model: fairshare, gpus: 2, max: 4, weight: 100, borrow: true},
     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
pools:
  - {name: mps, match: {gpus: [3]}, mechanism: mps, tier: process, tenants: [acme], caps: {memory: 20GiB, compute: 25%}}
roles:
  - {subject: "user:root", role: operator}
'''


def test_a_server_opens_its_own_card():
    with node(text=MPS, serve=False) as n:
        dev = nodes(n)
        real = shutil.copy(pathlib.Path(__file__).with_name('mps_control.py'), f'{n.here}/real-control')
        os.chmod(real, 0o755)
        program = lab.write('mps-control', '#!/usr/bin/python3\nimport sys\n' + TRIES.replace('DEV', str(dev)) + f'''
if '-f' in sys.argv:
    with open(os.environ['CUDA_MPS_LOG_DIRECTORY'] + '/tried', 'w') as f:
        f.write(WHAT)
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
''')
        os.chmod(program, 0o755)
        n.more = {'BULKHEAD_MPS_CONTROL': os.path.abspath(program)}
        n.start()
        job = n.submit('acme', '/bin/sh', '-c', 'echo $CUDA_MPS_PIPE_DIRECTORY; exec sleep 600', milli=100, memory_mib=8192)
        until(lambda: n.get(f'/v1/jobs/{job}/logs').body.strip(), 60, n.log)
        logs = n.get(f'/v1/jobs/{job}/logs').body.decode().strip().replace('.pipes', '.logs')
        gpu = n.get('/v1/gpus').json['gpus'][3]['uuid']
        same(json.loads(pathlib.Path(logs, 'tried').read_text()), expected(n, gpu))
        assert n.post(f'/v1/jobs/{job}/cancel').ok
        n.quiet()


if __name__ == '__main__':
    lab.tap.main(globals())
