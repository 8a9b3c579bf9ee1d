# SPDX-License-Identifier: Apache-2.0
"""A lease of the daemon for a container engine that is there already: podman with the CDI file that the daemon leaves.

podman, conmon and runc are the distribution's; the cards are simulated.

Usage: cdi.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT BULKHEAD-OCI
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import lab
import mech
from lab import Skip, environment, has, same, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'container'))
import engine  # noqa: E402
from engine import CDI  # noqa: E402

OCI = os.path.abspath(sys.argv[8])


def need_podman():
    if os.geteuid() != 0 or not os.environ.get(mech.PRIVATE):
        raise Skip('needs root and a mount namespace')
    for p in ('podman', 'conmon', 'runc'):
        if not shutil.which(p):
            raise Skip(f'{p} is not installed')
    os.chmod('.', 0o755)
    why = engine.why_not()
    if why:
        raise Skip(why)


@contextlib.contextmanager
def node():
    """A daemon that leaves its files where podman looks; /run is this test's own."""
    n = lab.Node(text=mech.CONTAINERS)
    n.more['BULKHEAD_CDI_DIR'] = CDI
    with lab.node(of=n):
        yield n


def granted(n, **more):
    """A lease that waits for somebody's container: its job, its number and its files."""
    job = n.submit('acme', 'podman', pool='shares', image='cdi', milli=250, memory_mib=8192, **more)
    number = n.active(job)[1:]
    return job, number, [f'{CDI}/bulkhead-L{number}.json', f'{CDI}/bulkhead-L{number}.seccomp']


def program():
    """The tenant's program, bound into the container."""
    return ['-v', f'{mech.TENANT}:/tmp/tenant:ro']


def test_the_lease_holds():
    need_podman()
    with node() as n:
        for way in ('profile', 'runtime'):
            job, number, files = granted(n)
            same([os.path.exists(f) for f in files], [True, True])
            same(n.lease(f'L{number}')['lease']['state'], 'active')
            kw = {'options': [*program(), '--security-opt', f'seccomp={files[1]}']} if way == 'profile' else {'options': program(), 'runtime': OCI}
            r = engine.run('/tmp/tenant', 'fill', 'plain', device=number, **kw)
            same((r.rc, r.err), (0, ''), f'{way} {r!r} {n.log()[-2000:]}')
            has(r.out, 'CUDA_ERROR_OUT_OF_MEMORY')
            j = n.wait(job)
            same((j['end'], j['status']), ('exited', 0), f'{j}')
            end = json.loads(pathlib.Path(n.state, 'leases', number, 'end.json').read_text())
            assert 6 * mech.GIB <= end['peakBytes'] <= 8 * mech.GIB and end['refused'], end
            n.wait_lease(f'L{number}', 'released')
            same([os.path.exists(f) for f in files], [False, False], 'they go with the lease')
        # Without the profile nothing starts, and the lease goes on waiting.
        job, number, files = granted(n)
        r = engine.run('true', device=number)
        assert r.rc != 0, repr(r)
        has(r.err, f'lease L{number} is not started')
        same(n.state_of(job), 'running')
        same(n.post(f'/v1/jobs/{job}/cancel').ok, True)
        same(n.wait(job)['end'], 'cancelled')
        n.quiet()
        same((os.listdir(CDI), n.processes('bulkhead-keeper', 'bulkhead-warden')), ([], []))
        n.nothing_left()
        n.sound()


@contextlib.contextmanager
def held_by(words):
    """The engine, while it runs one; what fails meanwhile does not wait for it."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()) as p:
        try:
            yield p
        except BaseException:
            p.kill()
            raise


SAYS = """
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
print(os.environ['BULKHEAD_PROBE'], *sorted(set(os.listdir('/run/bulkhead')) - {'lib', 'sim'}), flush=True)
while True:
    s.sendto(b'done 5', os.environ['BULKHEAD_PROBE'])
    time.sleep(0.05)
"""


def test_it_says_what_it_does():
    need_podman()
    with node() as n:
        job, number, _ = granted(n)
        until(lambda: os.listdir(f'{n.run}/probes') == [f'L{number}'])  # before anybody comes
        words = engine.words(*engine.run_words('/usr/bin/python3', '-c', SAYS, device=number), runtime=OCI)
        with held_by(words) as p:
            same(p.stdout.readline().decode(), '/run/bulkhead/probe probe\n')
            until(lambda: mech.shares_of(n, f'L{number}').get('rateMilliPerSecond'), 60, lambda: n.log()[-2000:])
            same(n.post(f'/v1/jobs/{job}/cancel').ok, True)
            same(n.wait(job)['end'], 'cancelled')
            p.communicate(timeout=60)
        n.quiet()
        same(os.listdir(f'{n.run}/probes'), [])
        n.nothing_left()
        n.sound()


def test_the_daemon_ends_it():
    """A container in somebody else's hands is in the lease's cgroup: it goes when the lease does, whoever was killed before."""
    need_podman()
    with node() as n:
        for victim in ('nobody', 'daemon', 'keeper'):
            job, number, files = granted(n)
            words = engine.words(*engine.run_words('/tmp/tenant', 'hold', '2GiB', '600', device=number, options=program()), runtime=OCI)
            with held_by(words) as p:
                has(p.stdout.readline().decode(), 'ready')
                until(lambda: n.processes('tenant'), 90)
                (pid,) = n.processes('tenant')
                groups = {g.split(':')[1]: g.split(':')[2] for g in pathlib.Path(f'/proc/{pid}/cgroup').read_text().splitlines()}
                held = [g for name, g in groups.items() if name in ('', 'memory', 'pids', 'devices', 'cpu', 'cpuset', 'freezer')]
                same(set(held), {f'/{n.group}/L{number}'}, 'the lease\'s cgroup, not its engine\'s')
                if victim == 'daemon':
                    n.again()
                    same([os.path.exists(f) for f in files], [True, True], 'it works, and so do its files')
                    n.active(job)
                if victim == 'keeper':
                    for pid in n.processes('bulkhead-keeper'):
                        os.kill(pid, signal.SIGKILL)
                    same(n.wait(job)['end'], 'lost')
                else:
                    same(n.post(f'/v1/jobs/{job}/cancel').ok, True)
                    same(n.wait(job)['end'], 'cancelled')
                p.communicate(timeout=60)
            same(n.processes('tenant'), [], victim)
            n.wait_lease(f'L{number}', 'released')
            same(os.listdir(CDI), [], victim)
        # What a daemon that was killed left of a lease that is over goes at the next start.
        n.kill()
        for f in ('bulkhead-L999.json', 'bulkhead-L999.seccomp'):
            lab.write(f'{CDI}/{f}', '{}')
        lab.write(f'{CDI}/other.json', '{}')
        n.start()
        same(os.listdir(CDI), ['other.json'])
        os.remove(f'{CDI}/other.json')
        n.quiet()
        n.nothing_left()
        n.sound()


def test_what_cannot_be_given_so():
    need_podman()
    with node() as n:
        r = n.post('/v1/jobs', {'tenant': 'acme', 'argv': ['podman'], 'pool': 'cards', 'image': 'cdi'})
        same(r.status, 422, repr(r))
        has(r.words, 'no profile that an engine could be given')


if __name__ == '__main__':
    mech.own_machine()
    if os.environ.get(mech.PRIVATE):
        # podman looks for CDI files in one place; ours must not be seen by others
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)
    lab.tap.main(globals())
