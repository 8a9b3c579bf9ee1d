# SPDX-License-Identifier: Apache-2.0
"""Leases of the real daemon on a machine with cgroups of version 2 alone, by crun and by runc.

The cards are simulated, and small: each byte of them is looked at before they go to somebody else. Everything else is real.

Usage: lease.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT [TEST...]
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'node'))
import lab  # noqa: E402
import mech  # noqa: E402
import walls  # noqa: E402
from lab import GROUPS, Skip, has, same, until  # noqa: E402

POLICY = 'bulkhead: 1\ntenants:\n' + mech.tenant('acme') + '''\
pools:
  - {name: cards, match: {gpus: [0]}, mechanism: whole, tier: container, tenants: [acme]}
  - {name: shares, match: {gpus: [1]}, mechanism: fractional, backing: gate, tier: container, tenants: [acme],
     caps: {memory: 4GiB, compute: 25%}}
  - {name: bare, match: {gpus: [2]}, mechanism: whole, tier: process, tenants: [acme]}
roles:
  - {subject: "user:root", role: operator}
'''
# Two who do not go when asked to, one of them in a session of its own.
STUBBORN = 'trap "" TERM; setsid sh -c "trap \'\' TERM; while :; do sleep 9; done" & echo ready; while :; do sleep 9; done'
kept = {}


def the_node():
    """One for all tests: a daemon's first start looks at every card."""
    if not (GROUPS / 'cgroup.controllers').exists():
        raise Skip('the cgroups here are not of version 2 alone')
    if not kept:
        kept['folder'] = tempfile.TemporaryDirectory()
        os.chdir(kept['folder'].name)
        kept['node'] = lab.Node('T4x3', POLICY)
        walls.nodes(kept['node'])
        kept['node'].start()
    os.chdir(kept['node'].here)
    return kept['node']


@contextlib.contextmanager
def without_crun(n):
    """The daemon again, where runc alone is installed."""
    hidden = sorted({os.path.realpath(p) for f in ('/usr/sbin', '/usr/bin') if os.path.exists(p := f'{f}/crun')})
    for p in hidden:
        subprocess.run(['mount', '--bind', '/dev/null', p], check=True)
    try:
        n.again()
        yield
    finally:
        for p in hidden:
            subprocess.run(['umount', p], check=True)


def group(n, lease):
    return GROUPS / n.group / lease


def says(n, lease, name):
    return (group(n, lease) / name).read_text().strip()


def opens(n, lease, *paths):
    """Which of them somebody in the lease's cgroup can open who has all else of this machine's root."""
    script = 'echo 0 >"$1"; shift; for p; do ( : <>"$p" ) && echo opens; done 2>&1'
    words = ['/bin/sh', '-c', script, 'sh', str(group(n, lease) / 'cgroup.procs'), *paths]
    said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60 * lab.PATIENCE).stdout.splitlines()
    return [x.rpartition(': ')[2] for x in said]


def began(n, *words, **more):
    job = n.submit('acme', *words, **more)
    lease = n.active(job)

    def told():
        notes = [p.read_text(errors='replace') for p in pathlib.Path(n.state, 'leases', lease[1:]).glob('*') if p.is_file()]
        return f'{n.job(job)} {notes} {n.log()[-2000:]}'
    until(lambda: n.state_of(job) == 'ended' or mech.out(n, job).startswith('ready'), 60, told)
    assert n.state_of(job) == 'running', told()
    return job, lease


def gone(n, job, lease, end='cancelled'):
    same(n.wait(job)['end'], end)
    n.wait_lease(lease, 'released')
    assert not group(n, lease).exists(), 'its cgroup is left'


def held(n, lease):
    """What the bundle asks for is what the kernel holds."""
    asked = json.loads(pathlib.Path(n.run, 'bundles', lease, 'config.json').read_text())['linux']['resources']
    same(says(n, lease, 'memory.max'), str(asked['memory']['limit'] // 4096 * 4096))
    same(says(n, lease, 'pids.max'), str(asked['pids']['limit']))
    with contextlib.suppress(FileNotFoundError):  # where the kernel was told not to count swap
        same(says(n, lease, 'memory.swap.max'), '0')
    for key, file in (('cpus', 'cpuset.cpus'), ('mems', 'cpuset.mems')):
        if key in asked.get('cpu', {}):
            same(says(n, lease, file), asked['cpu'][key])
    if 'quota' in asked.get('cpu', {}):
        same(says(n, lease, 'cpu.max'), f'{asked["cpu"]["quota"]} {asked["cpu"]["period"]}')
    same(opens(n, lease, '/dev/null', '/dev/tty41', '/dev/vda'), ['opens', *['Operation not permitted'] * 2])


def a_lease(n, runtime):
    job, lease = began(n, '/bin/sh', '-c', STUBBORN, pool='cards')
    same([bool(n.processes(r)) for r in ('crun', 'runc')], [runtime == 'crun', runtime == 'runc'])
    held(n, lease)
    inside = [int(p) for p in says(n, lease, 'cgroup.procs').split()]
    assert len(inside) >= 2, inside
    # A daemon that was killed finds it again, and ends it with all who are in it.
    n.again()
    same(n.active(job), lease)
    held(n, lease)
    same(n.post(f'/v1/jobs/{job}/cancel').ok, True)
    gone(n, job, lease)
    same([p for p in inside if os.path.exists(f'/proc/{p}')], [], 'who was in it')


def test_a_lease_by_crun():
    a_lease(the_node(), 'crun')


def test_the_gate():
    """The profile's listener reaches the keeper, and the cap holds."""
    program = mech.inside()
    n = the_node()
    job = n.submit('acme', program, 'fill', 'plain', pool='shares', milli=250, memory_mib=1024)
    end = n.wait(job)
    if 'kept the warden waiting' in (end['why'] or ''):
        raise Skip("an emulated processor is slower than the warden's patience with a tenant, which is 200 ms")
    same((end['end'], end['status']), ('exited', 0), f'{end} {mech.out(n, job, "err")} {n.log()[-2000:]}')
    has(mech.out(n, job), 'CUDA_ERROR_OUT_OF_MEMORY')


def test_a_keeper_that_dies():
    """The lease does not outlive it."""
    n = the_node()
    job, lease = began(n, '/bin/sh', '-c', 'echo ready; exec sleep 600', pool='shares', milli=250, memory_mib=1024)
    held(n, lease)
    [keeper] = [p for p in n.processes('bulkhead-keeper') if f'/leases/{lease[1:]}/' in lab.cmdline(p)]
    os.kill(keeper, signal.SIGKILL)
    gone(n, job, lease, 'lost')


def test_a_process():
    """Its own card's node and no other's; the limits; and it goes."""
    n = the_node()
    tries = walls.TRIES.replace('DEV', f'{n.here}/h/lab/sysroot/dev') + 'print("ready", WHAT, flush=True)\nimport time\ntime.sleep(900)'
    job, lease = began(n, *mech.python(tries), pool='bare')
    want = walls.expected(n, *(s['gpu'] for s in n.lease(lease)['slices']))
    same(sum(v == 'opens' for v in want.values()), 3)
    same(json.loads(mech.out(n, job).removeprefix('ready')), want)
    same(says(n, lease, 'pids.max'), '8192')
    assert 1 << 30 <= int(says(n, lease, 'memory.max')) < 1 << 31, says(n, lease, 'memory.max')
    same(n.post(f'/v1/jobs/{job}/cancel').ok, True)
    gone(n, job, lease)


def test_a_lease_by_runc():
    n = the_node()
    with without_crun(n):
        a_lease(n, 'runc')


def test_nothing_is_left():
    n = the_node()
    try:
        mech.finished(n)
        n.verified()
    finally:
        n.stop()
        kept['folder'].cleanup()
    assert not (GROUPS / n.group).exists(), list((GROUPS / n.group).iterdir())


if __name__ == '__main__':
    mech.own_machine()
    only = sys.argv[8:]
    lab.tap.main({k: v for k, v in globals().items() if not only or not k.startswith('test_') or k[5:] in only})
