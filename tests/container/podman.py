# SPDX-License-Identifier: Apache-2.0
"""A lease for a container engine that is there already: podman with the lease's CDI file, on simulated silicon.

podman, conmon and runc are the distribution's; the command, the warden, the hook and the runtime wrapper are the real ones.

Usage: podman.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-BULKHEAD-OCI PATH-TO-MAKER
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lib  # noqa: E402
import engine  # noqa: E402
from engine import CDI  # noqa: E402
from lib import FIRST, OCI, TENANT, Result, Skip, environment, fake_node, gate, lease, made, maker, need, need_runc, same  # noqa: E402
from run import node  # noqa: E402
from tap import has, main, write  # noqa: E402

LEASE = FIRST + 50
INSIDE = '/run/bulkhead/tenant'


def run(*command, device=LEASE, **kw):
    return engine.run(*command, device=device, **kw)


able = []


def need_podman():
    need('podman', 'conmon', 'runc')
    os.chmod('.', 0o755)
    if not able:
        able.append(engine.why_not())
    if able[0]:
        raise Skip(able[0])


@contextlib.contextmanager
def granted(env, *words, number=LEASE):
    """A lease with its CDI file, and somebody who holds it."""
    with gate.adopting(env, path='s') as a:
        made('cdi', CDI, f'lease={number}', f'hook={OCI}', f'listener={a.path}', f'sim={env["BULKHEAD_SIM"]}',
             f'mount={TENANT}:{INSIDE}', *words)
        try:
            yield a, f'{CDI}/bulkhead-L{number}.seccomp'
        finally:
            made('uncdi', CDI, str(number))


def test_the_lease_holds():
    need_podman()
    with node() as env, granted(env, f'node={fake_node("n0", 40)}:/dev/nvidia0') as (a, profile):
        for kw in ({'options': ['--security-opt', f'seccomp={profile}']}, {'runtime': OCI},
                   {'runtime': OCI, 'options': ['--security-opt', 'seccomp=unconfined', '--user', '1000']}):
            r = run(INSIDE, 'fill', 'plain', **kw)
            same((r.rc, r.err), (0, ''), f'{kw} {r!r}')
            gate.check_full(r.out)
            has(a.expect('held at'), f'(L{LEASE})')
            a.expect('ended, peak')
        # exactly the lease: its node, its name, and no other card
        r = run('sh', '-c', 'echo $BULKHEAD_LEASE; ls /dev | grep nvidia; exec 3<>/dev/nvidia0 && echo mine', runtime=OCI)
        same((r.rc, r.out), (0, f'L{LEASE}\nnvidia0\nmine\n'), repr(r))


def refused(r, *words):
    assert r.rc != 0 and r.out == '', repr(r)
    own = [x for x in r.err.splitlines() if 'bulkhead:' in x]
    same(len(own), 1, repr(r))
    for w in (*words, f'lease L{LEASE} is not started'):
        has(own[0], w)


def test_without_the_profile_it_does_not_start():
    need_podman()
    with node() as env, granted(env) as (a, profile):
        refused(run('true'), 'is not the lease', f'--security-opt seccomp={profile}')
        refused(run('true', options=['--security-opt', 'seccomp=unconfined']), 'has no seccomp profile', profile)
        refused(run('true', options=['--privileged']), 'has no seccomp profile')
        own = ['--security-opt', f'seccomp={profile}']
        refused(run('true', options=[*own, '--cap-add', 'SYS_ADMIN']), 'CAP_SYS_ADMIN')
        # nearly the lease's
        good = json.loads(pathlib.Path(profile).read_text())
        for what, edit in (('lacks', lambda p: p['syscalls'].pop()),
                           ('has', lambda p: p['syscalls'].append({'names': ['ioctl'], 'action': 'SCMP_ACT_ALLOW'})),
                           ('listenerMetadata', lambda p: p.update(listenerMetadata='bulkhead 1 name=L1')),
                           ('architecture', lambda p: p['architectures'].append('SCMP_ARCH_X86'))):
            bad = json.loads(json.dumps(good))
            edit(bad)
            write('bad.json', json.dumps(bad))
            refused(run('true', options=['--security-opt', 'seccomp=bad.json']), what)
        # the lease's own, in another order: it is the same
        write('other.json', json.dumps({k: good[k] for k in reversed(good)}))
        r = run('true', options=['--security-opt', 'seccomp=other.json'])
        same((r.rc, r.err), (0, ''), repr(r))
        a.expect(f'(L{LEASE})')


def test_a_lease_that_has_ended():
    need_podman()
    with node() as env, granted(env) as (_, profile):
        write('kept.json', pathlib.Path(profile).read_text())
        os.unlink(profile)
        refused(run('true', options=['--security-opt', 'seccomp=kept.json']), 'has it ended?')
        r = run('true', runtime=OCI)
        assert r.rc != 0, repr(r)
        has(r.err, 'has it ended?')
    r = run('true')
    assert r.rc != 0 and 'bulkhead.dev/lease' in r.err, repr(r)


def test_others_containers_are_left_alone():
    """The wrapper as the runtime of a container without a lease, and of all that an engine asks besides."""
    need_podman()
    r = run('echo', 'here', device=None, runtime=OCI)
    same((r.rc, r.out), (0, 'here\n'), repr(r))
    done = Result(subprocess.run([OCI, '--bulkhead-runtime=/nowhere/runc', 'state', 'x'], capture_output=True, check=False, env=environment()))
    same((done.rc, done.out, done.err.count('\n')), (4, '', 1), repr(done))
    done = Result(subprocess.run([OCI, 'create', '--bundle', '/nowhere', 'x'], capture_output=True, check=False, env=environment()))
    same((done.rc, done.err), (4, 'bulkhead: /nowhere/config.json: No such file or directory\n'), repr(done))


def test_the_files():
    need('podman')
    folder = os.path.abspath('cdi')
    words = ('hook=/usr/libexec/bulkhead/bulkhead-oci', 'listener=/run/bulkhead/s')
    same(made('leases', folder), '')
    for n in (7, 18446744073709551615):
        made('cdi', folder, f'lease={n}', *words)
        made('cdi', folder, f'lease={n}', *words)
    same(sorted(made('leases', folder).split()), ['18446744073709551615', '7'])
    spec = json.loads(pathlib.Path('cdi/bulkhead-L7.json').read_text())
    same((spec['cdiVersion'], spec['kind'], [d['name'] for d in spec['devices']]), ('0.3.0', 'bulkhead.dev/lease', ['L7']))
    hook = spec['devices'][0]['containerEdits']['hooks'][0]
    same((hook['hookName'], hook['args']), ('createRuntime', ['bulkhead-oci', 'hook', '--lease', '7', '--profile', f'{folder}/bulkhead-L7.seccomp']))
    same(json.loads(pathlib.Path('cdi/bulkhead-L7.seccomp').read_text())['listenerPath'], '/run/bulkhead/s')
    # what a crash left between the two is found too, and what is not ours is not
    os.unlink('cdi/bulkhead-L7.json')
    write('cdi/bulkhead-Lx.json', '{}')
    write('cdi/other.json', '{}')
    same(sorted(made('leases', folder).split()), ['18446744073709551615', '7'])
    for _ in range(2):
        made('uncdi', folder, '7')
        made('uncdi', folder, '18446744073709551615')
    same(sorted(os.listdir('cdi')), ['bulkhead-Lx.json', 'other.json'])
    for bad, code in (((folder, 'lease=1', 'hook=x', 'listener=/s'), 'invalid'), (('relative', 'lease=1', *words), 'invalid'),
                      ((f'{folder}/a/b', 'lease=1', *words), 'not_found'), (('/' + 'x' * 600, 'lease=1', *words), 'too_large')):
        r = maker('cdi', *bad)
        same((r.rc != 0, r.err.partition(':')[0], r.err.count('\n')), (True, code, 1), f'{bad} {r!r}')


def test_our_own_container_below_the_gate():
    need_runc()
    with node() as env, gate.adopting(env, path='s') as a:
        words = (f'listener={a.path}', f'sim={env["BULKHEAD_SIM"]}', f'mount={TENANT}:{INSIDE}', 'env=ASAN_OPTIONS=detect_leaks=0')
        for uid in (0, 1000):
            with lease(1, '', *words, f'uid={uid}', command=(INSIDE, 'fill', 'plain')) as c:
                rc, out, err = c.finish(120)
                same((rc, err), (0, ''))
                gate.check_full(out)
                has(a.expect('held at'), f'({c.name})')
                a.expect('ended, peak')
        # the gate is a wall too: without its profile the card is all there is
        with lease(1, '', *words, edit=lambda config: config['linux'].pop('seccomp'), command=(INSIDE, 'fill', 'plain')) as c:
            rc, out, err = c.finish(120)
            assert gate.taken_of(out) > 20 * gate.GIB, (rc, out, err)


if __name__ == '__main__':
    lib.own_machine()
    if os.environ.get(lib.PRIVATE):
        # podman looks for CDI files in one place; ours must not be seen by others
        subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)
    main(globals())
