# SPDX-License-Identifier: Apache-2.0
"""What divides the silicon and what stands around the work, through the real daemon: containers, MIG, MPS.

The cards are simulated; runc, the kernel's namespaces, cgroups and nftables are real. MPS's control program is a stand-in
(mps_control.py): what is tested there is our side of it.

Usage: mech.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT [TEST...]
"""
import contextlib
import datetime
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import lab
from lab import NOBODY, PRIVATE, Skip, has, node, own_machine, same, until

FAULTS, TENANT = (os.path.abspath(a) for a in sys.argv[6:8])
GIB = 1 << 30
MIB = 1 << 20


def tenant(name, network='default-deny', gpus=2, domain='default', more='', rdma='none'):
    return (f'  - {{name: {name}, {more} domain: {domain}, class: research, costCenter: cc-1, quota: {{model: fairshare, gpus: {gpus}, max: 4, weight: 100, '
            f'borrow: true}}, network: {{policy: {network}, rdma: {rdma}}}, storage: {{quota: 1TiB}}}}\n')


SPEEDS = 'bandwidth: {network: 100MiB, disk: 400MiB}, '
CONTAINERS = 'bulkhead: 1\ntenants:\n' + tenant('acme', more=SPEEDS) + tenant('blue', rdma='partitioned') + '''\
pools:
  - {name: cards, match: {gpus: [0, 1, 2, 3]}, mechanism: whole, tier: container, tenants: [acme, blue]}
  - {name: shares, match: {gpus: [4, 5, 6, 7]}, mechanism: fractional, backing: gate, tier: container, tenants: [acme, blue],
     caps: {memory: 10GiB, compute: 25%}}
roles:
  - {subject: "user:root", role: operator}
  - {subject: "user:nobody", role: tenant-user, tenant: acme}
'''


def need_containers():
    if not shutil.which('runc'):
        raise Skip('runc is not installed')


def inside():
    """The tenant's program where a container sees it."""
    need_containers()
    if not os.environ.get(PRIVATE):
        raise Skip('no mount namespace can be made here')
    if not os.path.ismount('/opt'):
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/opt'], check=True)
        shutil.copy(TENANT, '/opt/tenant')
    return '/opt/tenant'


def out(n, job, stream='out'):
    return n.get(f'/v1/jobs/{job}/logs?stream={stream}').body.decode()


def ends(n, job, status=0):
    """It ends so; else what it wrote is shown."""
    j = n.wait(job)
    same((j['end'], j['status']), ('exited', status), f'{j} {out(n, job)} {out(n, job, "err")} {n.log()[-2000:]}')
    return out(n, job)


def finished(n):
    n.quiet()
    n.nothing_left()
    same(os.listdir(f'{n.run}/bundles'), [], 'bundles')
    same(os.listdir(f'{n.run}/containers'), [], 'what the runtime keeps of containers')
    same(os.listdir(f'{n.run}/probes'), [], 'where containers say what they do')
    n.sound()


def python(script):
    return ('/usr/bin/python3', '-c', script)


SEES = '''
import json, os
s = {l.split(':')[0]: l.split(':', 1)[1].split() for l in open('/proc/self/status')}
print(json.dumps({'uid': os.getuid(), 'cwd': os.getcwd(), 'map': open('/proc/self/uid_map').read().split(),
                  'caps': s['CapBnd'][0], 'pids': sorted(p for p in os.listdir('/proc') if p.isdigit()),
                  'net': sorted(os.listdir('/sys/class/net')), 'visible': os.environ['CUDA_VISIBLE_DEVICES'], 'a': os.environ.get('A'),
                  'tenant': os.environ['BULKHEAD_TENANT'], 'lease': os.environ['BULKHEAD_LEASE']}))
'''


def test_a_container_of_a_whole_card():
    need_containers()
    with node(text=CONTAINERS) as n:
        job = n.submit('acme', *python(SEES), pool='cards', env=['A=b c'], cwd='/root')
        seen = json.loads(ends(n, job))
        lease = n.leases_of(job)[0]
        first = int(seen['map'][1])
        assert first >= 65536, seen
        same(seen['map'], ['0', str(first), '65536'])
        same((seen['uid'], seen['caps'], seen['net'], seen['a'], seen['tenant'], seen['lease']),
             (0, '0' * 16, ['lo'], 'b c', 'acme', lease))
        same(len(seen['visible'].split(',')), 1)
        same(seen['pids'], ['1'])
        # A tenant's users are its own: the same ones each time, and nobody else's.
        other = json.loads(ends(n, n.submit('blue', *python(SEES), pool='cards')))
        again = json.loads(ends(n, n.submit('acme', *python(SEES), pool='cards', uid=NOBODY)))
        same(again['map'], seen['map'])
        same(again['uid'], NOBODY)
        assert abs(int(other['map'][1]) - first) >= 65536, (seen, other)
        n.again()
        same(json.loads(ends(n, n.submit('blue', *python(SEES), pool='cards')))['map'], other['map'])
        same(ends(n, n.submit('acme', '/bin/sh', '-c', 'exit 7', pool='cards'), 7), '')
        finished(n)


def in_group(n, lease, controller, name):
    """What a file of the lease's cgroup says; '' where this machine has no such thing."""
    for path in (f'/sys/fs/cgroup/{controller}/{n.group}/{lease}/{name}', f'/sys/fs/cgroup/{n.group}/{lease}/{name}'):
        if os.path.exists(path):
            return pathlib.Path(path).read_text().strip()
    return ''


def spec_of(n, lease):
    return json.loads(pathlib.Path(n.state, 'leases', lease[1:], 'keeper.json').read_text())


def test_what_a_container_may_take():
    """The cap, the share and the machine's own limits hold inside."""
    program = inside()
    with node(text=CONTAINERS) as n:
        job = n.submit('acme', program, 'fill', 'plain', pool='shares', milli=250, memory_mib=8192, env=['ASAN_OPTIONS=detect_leaks=0'])
        has(ends(n, job), 'CUDA_ERROR_OUT_OF_MEMORY')
        lease = n.leases_of(job)[0]
        end = json.loads(pathlib.Path(n.state, 'leases', lease[1:], 'end.json').read_text())
        assert 6 * GIB <= end['peakBytes'] <= 8 * GIB and end['refused'], end
        holder = n.submit('acme', program, 'hold', '2GiB', '600', pool='shares', milli=250, env=['ASAN_OPTIONS=detect_leaks=0'])
        lease = n.active(holder)
        until(lambda: 'ready' in out(n, holder), 60, lambda: out(n, holder, 'err'))
        shares = subprocess.run([lab.BIN, 'shares', '-o', 'json'], capture_output=True, text=True, check=True, timeout=60, env=n.env)
        has(shares.stdout, lease)
        # Adapters may reach the memory of those whose policy says so.
        same(spec_of(n, lease).get('rdma', False), False)
        other = n.submit('blue', 'true', pool='shares', milli=250)
        ends(n, other)
        same(spec_of(n, n.leases_of(other)[0])['rdma'], True)
        memory = int(in_group(n, lease, 'memory', 'memory.limit_in_bytes') or in_group(n, lease, 'memory', 'memory.max'))
        assert GIB <= memory < 64 * GIB, memory
        same(in_group(n, lease, 'pids', 'pids.max'), '8192')
        if os.path.isdir('/sys/fs/cgroup/blkio'):
            # A quarter of a card has a quarter of what one comes with, and a processor at least.
            same(in_group(n, lease, 'blkio', 'blkio.throttle.write_bps_device').splitlines(), [f'{d} {(400 * MIB // 1000) * 250}' for d in lab.tap.disks()])
            same(in_group(n, lease, 'cpu', 'cpu.cfs_quota_us'), str(max(100000, os.cpu_count() * 250 // 8 * 100)))
        same(n.post(f'/v1/jobs/{holder}/cancel').ok, True)
        same(n.wait(holder)['end'], 'cancelled')
        finished(n)


# Tries what a tenant may not, tells what came of it, and then says what it does until it is told to be silent, and to speak again.
SAYS = '''
import ctypes, errno, json, os, signal, socket, sys, time
host, at = sys.argv[1], os.environ.get('BULKHEAD_PROBE')
libc = ctypes.CDLL(None, use_errno=True)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
tried = {'at': at, 'is': os.path.exists('/run/bulkhead/probe')}
def attempt(name, what, *words):
    try:
        what(*words)
        tried[name] = 'done'
    except OSError as e:
        tried[name] = errno.errorcode[e.errno]
def mount(*words):
    if libc.mount(*words) < 0:
        raise OSError(ctypes.get_errno(), 'mount')
if at:
    tried['mode'] = os.stat(at).st_mode & 0o7777
    attempt('read', os.open, at, os.O_RDONLY)
    attempt('chmod', os.chmod, at, 0o777)
    attempt('chown', os.chown, at, os.getuid(), os.getgid())
    attempt('utime', os.utime, at)
    attempt('unlink', os.unlink, at)
    attempt('rename', os.rename, at, at + '.old')
    attempt('cover', mount, b'tmpfs', os.path.dirname(at).encode(), b'tmpfs', 0, None)
    attempt('bind over', mount, b'/etc/passwd', at.encode(), None, 4096, None)
    attempt('uncover', mount, b'', at.encode(), None, 4096 | 32, None)
    attempt('take', socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind, at)
    attempt('move', os.rename, '/run/bulkhead', '/run/moved')  # the folder around it may be the tenant's, and is nobody else's
    attempt('move back', os.rename, '/run/moved', '/run/bulkhead')
    for name in os.listdir('/run/bulkhead'):  # its own is the only one that it can find
        if name not in ('lib', 'sim', 'probe'):
            tried['more'] = name
    for other in ('', '/probes', '/probe', *(f'/probes/L{i}' for i in range(1, 9))):
        attempt('host' + other, os.stat, host + other)
        attempt('host send' + other, s.sendto, b'done 1000000000', host + other)
print(json.dumps(tried), flush=True)
silent = []
signal.signal(signal.SIGUSR1, lambda *a: silent.append(1))
signal.signal(signal.SIGUSR2, lambda *a: silent.clear())
while at:
    if not silent:
        s.sendto(b'done 5', at)
    time.sleep(0.05)
'''


def shares_of(n, lease):
    r = subprocess.run([lab.BIN, 'shares', '-o', 'json'], capture_output=True, text=True, check=True, timeout=60, env=n.env)
    return next((x for x in json.loads(r.stdout)['shares'] if x['name'] == lease), {}).get('own', {})


def of_process(pid, name):
    """A file of it; '' where it has just gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/{name}').read_text()
    return ''


def in_lease(n, lease, name):
    return [p for p in n.processes(name) if f'/{n.group}/{lease}\n' in of_process(p, 'cgroup')]


def keeper_of(n, lease):
    """What it starts has its words until it is another program: that one's parent is a keeper, too."""
    found = [p for p in n.processes('bulkhead-keeper') if f'/leases/{lease[1:]}/' in lab.cmdline(p)]
    (keeper,) = [p for p in found if not any(f'PPid:\t{other}\n' in of_process(p, 'status') for other in found)]
    return keeper


def warden_of(n, lease):
    keeper = keeper_of(n, lease)
    below = [p for p in n.processes('bulkhead-warden') if f'PPid:\t{keeper}\n' in of_process(p, 'status')]
    return below[0] if below else None


def silence(n, lease, is_silent):
    for pid in in_lease(n, lease, 'python3'):
        os.kill(pid, signal.SIGUSR1 if is_silent else signal.SIGUSR2)


def test_a_container_says_what_it_does():
    """Where its pool shares time, through a socket that is its own and that it cannot change; and nothing of another's can be reached."""
    need_containers()
    with node(text=CONTAINERS) as n:
        foreign = ['BULKHEAD_PROBE=/of/somebody/else']
        jobs = [n.submit(t, *python(SAYS), n.run, pool='shares', milli=250, env=foreign, uid=uid) for t, uid in (('acme', NOBODY), ('blue', 0))]
        leases = [n.active(j) for j in jobs]
        probes = pathlib.Path(n.run, 'probes')
        same(probes.stat().st_mode & 0o7777, 0o700)
        for job, lease in zip(jobs, leases):
            until(lambda j=job: out(n, j), 60, lambda j=job: out(n, j, 'err') + n.log()[-2000:])
            tried = json.loads(out(n, job))
            same((tried.pop('at'), tried.pop('is'), tried.pop('mode')), ('/run/bulkhead/probe', True, 0o222))
            assert {tried.pop('move'), tried.pop('move back')} <= {'done', 'EACCES', 'ENOENT'}, tried
            same([k for k, v in tried.items() if v == 'done'], [], tried)
            same({v for k, v in tried.items() if k.startswith('host')}, {'ENOENT'}, tried)
            until(lambda x=lease: shares_of(n, x).get('rateMilliPerSecond'), 60, lambda j=job: out(n, j, 'err') + n.log()[-2000:])
        same(sorted(os.listdir(probes)), sorted(leases), 'whatever a tenant tried, the machine\'s are there')
        # a little more or less than a hundred a second, with what had waited for a processor: nobody added to it
        until(lambda: all(20000 < (shares_of(n, x).get('rateMilliPerSecond') or 0) < 300000 for x in leases), 60, lambda: [shares_of(n, x) for x in leases])
        # The next warden hears it, and so does the one of a keeper that a restarted daemon finds.
        silence(n, leases[0], True)
        until(lambda: not shares_of(n, leases[0]).get('rateMilliPerSecond'), 60)
        before = warden_of(n, leases[0])
        os.kill(before, signal.SIGKILL)
        until(lambda: warden_of(n, leases[0]) not in (None, before), 60)
        n.again()
        silence(n, leases[0], False)
        until(lambda: shares_of(n, leases[0]).get('rateMilliPerSecond'), 60)
        # Who has no share has none, nor what he calls so.
        same(json.loads(ends(n, n.submit('acme', *python(SAYS), n.run, pool='cards', env=foreign))), {'at': None, 'is': False})
        # It goes with the lease, and with one whose keeper was killed.
        same(n.post(f'/v1/jobs/{jobs[0]}/cancel').ok, True)
        same(n.wait(jobs[0])['end'], 'cancelled')
        same(os.listdir(probes), [leases[1]])
        os.kill(keeper_of(n, leases[1]), signal.SIGKILL)
        same(n.wait(jobs[1])['end'], 'lost')
        finished(n)


def test_an_image_is_a_folder():
    need_containers()
    with node(text=CONTAINERS) as n:
        root = pathlib.Path(n.here, 'image')
        for d in ('usr', 'proc', 'dev', 'sys', 'tmp', 'run', 'home', 'etc', 'srv'):
            (root / d).mkdir(parents=True)
        shutil.copytree('/usr/bin', root / 'usr/bin', symlinks=True, ignore=lambda _, names: [x for x in names if x not in ('cat', 'pwd')])
        shutil.copytree('/usr/lib/x86_64-linux-gnu', root / 'usr/lib/x86_64-linux-gnu', symlinks=True,
                        ignore=lambda _, names: [x for x in names if not x.startswith(('libc.so', 'ld-linux'))])
        for d in ('bin', 'lib'):
            os.symlink(f'usr/{d}', root / d)
        os.symlink('usr/lib/x86_64-linux-gnu', root / 'lib64')
        (root / 'etc/mark').write_text('of the image\n')
        same(ends(n, n.submit('acme', '/bin/cat', '/etc/mark', pool='cards', image=str(root))), 'of the image\n')
        same(ends(n, n.submit('acme', '/bin/pwd', pool='cards', image=str(root), cwd='/srv')), '/srv\n')
        # one that cannot be a root is refused in words
        (root / 'proc').rmdir()
        bad = n.wait(n.submit('acme', '/bin/cat', '/etc/mark', pool='cards', image=str(root)))
        same(bad['end'], 'failed')
        has(bad['why'], 'has no folder /proc')
        finished(n)


def test_containers_outlive_the_daemon_and_not_their_keeper():
    need_containers()
    with node(text=CONTAINERS) as n:
        kept = n.submit('acme', '/bin/sh', '-c', 'sleep 3; exit 5', pool='cards')
        lost = n.submit('acme', 'sleep', '600', pool='shares', milli=250)
        lease = n.active(lost)
        n.active(kept)
        n.again()
        ends(n, kept, 5)
        same(n.active(lost), lease)
        keepers = [p for p in n.processes('bulkhead-keeper') if f'/leases/{lease[1:]}/' in lab.cmdline(p)]
        same(len(keepers), 1, [lab.cmdline(p) for p in n.processes('bulkhead-keeper')])
        os.kill(keepers[0], signal.SIGKILL)
        same(n.wait(lost)['end'], 'lost')
        # What a reboot leaves: nothing runs, and RUN is empty.
        again = n.submit('acme', 'sleep', '600', pool='shares', milli=250)
        n.active(again)
        n.reboot()
        n.start()
        same(n.wait(again)['end'], 'lost')
        finished(n)


def test_networks():
    """None, unless the tenant's is open; and then its own leases and nobody else's."""
    need_containers()
    for program in ('ip', 'nft', 'tc'):
        if not shutil.which(program):
            raise Skip(f'{program} is not installed')
    if not os.environ.get(PRIVATE):
        raise Skip('no network namespace can be made here')
    until_then = (datetime.date.today() + datetime.timedelta(days=30)).isoformat()
    text = CONTAINERS.replace(tenant('acme', more=SPEEDS), tenant('acme', 'open', more=SPEEDS)).replace(tenant('blue'), tenant('blue', 'open'))
    text += f'waivers:\n  - {{rule: BH-073, scope: "tenant:*", approver: root, expires: {until_then}, reason: a test}}\n'
    listens = ('import socket, subprocess; s = socket.socket(); s.bind(("0.0.0.0", 7000)); s.listen(); '
               'print(subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()[0], flush=True)\n'
               'while True: c, _ = s.accept(); c.sendall(b"hello"); c.close()')
    reaches = ('import socket, sys; s = socket.socket(); s.settimeout(3)\n'
               'try: s.connect((sys.argv[1], 7000)); print("through", s.recv(9).decode())\n'
               'except OSError: print("held")')
    with node(text=text) as n:
        server = n.submit('acme', *python(listens), pool='cards')
        n.active(server)
        until(lambda: out(n, server).strip(), 60, lambda: out(n, server, 'err') + n.log())
        address = out(n, server).strip()
        limits = [x for x in subprocess.run(['tc', 'qdisc', 'show'], capture_output=True, text=True, check=True).stdout.splitlines() if 'tbf' in x]
        same(len(limits), 1, limits)
        has(limits[0], f'rate {100 * MIB // 1000 * 8}Kbit')
        same(ends(n, n.submit('acme', *python(reaches), address, pool='cards')), 'through hello\n')
        same(ends(n, n.submit('blue', *python(reaches), address, pool='cards')), 'held\n')
        n.again()  # the rules are written anew, for those that live
        same(ends(n, n.submit('acme', *python(reaches), address, pool='cards')), 'through hello\n')
        same(ends(n, n.submit('blue', *python(reaches), address, pool='cards')), 'held\n')
        n.post(f'/v1/jobs/{server}/cancel')
        n.quiet()
        ports = subprocess.run(['ip', '-o', 'link'], capture_output=True, text=True, check=True).stdout
        same([x for x in ports.splitlines() if 'bh' in x.split(':')[1] and 'bulkhead0' not in x], [], 'ports')
        same([x for x in subprocess.run(['nft', 'list', 'ruleset'], capture_output=True, text=True, check=True).stdout.splitlines()
              if '100.126.' in x and '/' not in x], [], 'rules')
        subprocess.run(['ip', 'link', 'del', 'bulkhead0'], check=True)
        finished(n)


def test_no_runtime():
    """Where no container can be run, nobody is promised one."""
    need_containers()
    if not os.environ.get(PRIVATE):
        raise Skip('no mount namespace can be made here')
    hidden = [p for f in ('/usr/sbin', '/usr/bin', '/sbin', '/bin') for r in ('runc', 'crun') if os.path.exists(p := f'{f}/{r}')]
    hidden = sorted({os.path.realpath(p) for p in hidden})
    for p in hidden:
        subprocess.run(['mount', '--bind', '/dev/null', p], check=True)
    try:
        with node(text=CONTAINERS, serve=False) as n:
            n.start()
            r = n.post('/v1/jobs', {'tenant': 'acme', 'argv': ['true'], 'pool': 'cards'})
            assert not r.ok, repr(r)
            has(r.words, 'container')
    finally:
        for p in hidden:
            subprocess.run(['umount', p], check=True)


# ---- MIG ----

def mig_policy(tier='process'):
    return 'bulkhead: 1\ntenants:\n' + tenant('acme') + tenant('blue') + f'''\
pools:
  - {{name: cut, match: {{gpus: [0]}}, mechanism: mig, tier: {tier}, tenants: [acme, blue], profiles: [1g.10gb, 3g.40gb, 7g.80gb]}}
roles:
  - {{subject: "user:root", role: operator}}
'''


def layout(n):
    """What the driver says is cut: (profile, first slice) of card 0."""
    done = subprocess.run([lab.BIN, 'gpus', '-o', 'json'], capture_output=True, text=True, check=True, timeout=60, env=n.env)
    cards = json.loads(done.stdout)
    return sorted((i['profile'], i['start']) for i in cards['gpus'][0]['instances'])


def rows(n):
    return {r['key']: r['state'] for r in n.rows("SELECT key, state FROM slices WHERE kind = 'mig' ORDER BY key")}


def test_instances_are_cut_kept_and_cut_anew():
    with node('mig', mig_policy()) as n:
        same(layout(n), [])
        quiet = ['ASAN_OPTIONS=detect_leaks=0']
        shows = ('/bin/sh', '-c', f'echo $CUDA_VISIBLE_DEVICES; {TENANT} info')
        a = n.submit('acme', *shows, profile='3g.40gb', env=quiet)
        text = ends(n, a)
        assert text.startswith('MIG-'), text
        lease = n.wait_lease(n.leases_of(a)[0], 'released')
        same((lease['lease']['mechanism'], lease['lease']['stack']), ('mig', 'mig 3g.40gb'))
        # Three of seven compute slices, in what it has, in what its tenant uses and in what it pays for.
        same((lease['slices'][0]['kind'], lease['lease']['milli']), ('mig', 428))
        [use] = n.get('/v1/usage').json['usage']
        at = {s['to']: s['at_ms'] for s in lease['history']}
        same((use['mechanism'], use['milli_ms']), ('mig', 428 * (at['scrubbing'] - at['active'])))
        [scrub] = lease['scrubs']
        same(scrub['verdict'], 'clean')
        assert 30 * GIB < scrub['total_bytes'] < 45 * GIB and scrub['probed_bytes'] > scrub['total_bytes'] * 0.9, scrub
        # It is kept: the next one of that shape gets it, and no other is cut.
        [(profile, start)] = layout(n)
        same((profile, rows(n)), ('3g.40gb', {f'mig:3g.40gb@{start}': 'free'}))
        b = n.submit('acme', *shows, profile='3g.40gb', env=quiet)
        same(ends(n, b).split()[0], text.split()[0], 'the same instance')
        # Two tenants beside each other, each in its own.
        two = [n.submit(t, TENANT, 'hold', '1GiB', '600', profile='3g.40gb', env=quiet) for t in ('acme', 'blue')]
        for j in two:
            n.active(j)
        same(len(layout(n)), 2)
        held = sorted(rows(n).values())
        same(held, ['owned', 'owned'])
        same([q['used_milli'] for q in n.get('/v1/quota').json['quotas']], [428, 428])
        n.sound()
        # Nobody's is cut anew while somebody is in it: the large one waits.
        large = n.submit('acme', *shows, profile='7g.80gb', env=quiet)
        small = n.submit('blue', *shows, profile='1g.10gb', env=quiet)
        n.again()
        for j in two:
            n.active(j)
        same(n.state_of(large), 'waiting')
        for j in two:
            n.post(f'/v1/jobs/{j}/cancel')
        ends(n, large)
        ends(n, small)
        n.quiet()
        # What is free in its way is gone, from the card and from the books alike.
        same({f'mig:{p}@{s}' for p, s in layout(n)}, set(rows(n)))
        # Each is in the log, made and taken away.
        made = [r['after'] for r in n.audit(event='mig.create')]
        gone = [r['before'] for r in n.audit(event='mig.destroy')]
        same(sorted(set(made) - set(gone)), sorted(rows(n)))
        same(len(gone) >= 2 and made[0] == f'mig:3g.40gb@{start}', True, (made, gone))
        same(n.audit(event='mig.mode'), [], 'it was on')
        n.nothing_left()
        n.sound()


MONITOR = '''\
import ctypes, os, sys
nvml, card, memory = ctypes.CDLL(os.environ['BULKHEAD_NVML']), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
assert nvml.nvmlInit_v2() == nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)) == nvml.nvmlDeviceGetMemoryInfo(card, memory) == 0
print('reads', flush=True)
sys.stdin.read()
assert nvml.nvmlShutdown() == 0
'''


@contextlib.contextmanager
def monitor(n):
    """Has card 0 open, to read it."""
    words = []
    for preload in ({}, {'LD_PRELOAD': subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True, check=True).stdout.strip()}):
        p = subprocess.Popen([sys.executable, '-c', MONITOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**n.env, **preload})
        try:
            if p.stdout.readline() == b'reads\n':
                yield p
                return
            words.append(p.stderr.read().decode())
        finally:
            p.communicate(timeout=60)
    raise AssertionError(words)


def test_who_only_reads_a_card_is_waited_for():
    with node(lab.LARGE, mig_policy()) as n:
        sleeps = ('sleep', '600')
        with monitor(n):
            # Two at once, neither of which may be in the other's way.
            late = [n.submit(t, *sleeps, profile='1g.10gb') for t in ('acme', 'blue')]
            until(lambda: n.audit(event='mig.mode'), 60, n.log)
            time.sleep(1)
            same([n.state_of(j) for j in late], ['running', 'running'], n.log())
            same(layout(n), [])
        for j in late:
            n.active(j)
        same(len(layout(n)), 2)


def test_who_reads_a_card_all_the_time_is_named_as_the_reason():
    with node(lab.LARGE, mig_policy()) as n:
        with monitor(n):
            j = n.submit('acme', 'sleep', '600', profile='1g.10gb')
            until(lambda: n.state_of(j) == 'ended', 60, n.log)
            has(n.job(j)['job']['why'], 'somebody has it open now, if only to read it; stop them first')
            same(layout(n), [])
        # The wish waits on the card, and no reset is needed once nobody is in the way.
        n.active(n.submit('acme', 'sleep', '600', profile='1g.10gb'))
        assert layout(n), n.log()


def test_instances_after_a_reboot():
    with node('mig', mig_policy()) as n:
        lost = [n.submit('acme', 'sleep', '600', profile=p) for p in ('3g.40gb', '1g.10gb')]
        for j in lost:
            n.active(j)
        before = layout(n)
        same(len(before), 2)
        n.reboot()
        for verb in (('stop', 'lab'), ('start', 'mig')):
            subprocess.run([lab.BIN, 'sim', *verb], capture_output=True, check=True, timeout=120, env=n.env)
        same(layout(n), [], 'a reboot forgets')
        n.start()
        same(layout(n), before, n.log())
        same([n.wait(j)['end'] for j in lost], ['lost', 'lost'])
        n.quiet()
        same(set(rows(n).values()), {'free'})
        n.nothing_left()
        n.sound()


def test_an_instance_that_cannot_be_cut():
    """The job ends with the driver's words; what cannot be proved clean is nobody's."""
    with node('mig', mig_policy()) as n:
        n.broken('library', 'fail', '23', 'in', 'nvmlDeviceCreateGpuInstanceWithPlacement')
        job = n.wait(n.submit('acme', 'true', profile='3g.40gb'))
        same(job['end'], 'failed', n.log())
        n.quiet()
        same(set(rows(n).values()), {'quarantined'})
        n.sound()


def test_an_instance_in_a_container():
    program = inside()
    with node('mig', mig_policy('container')) as n:
        text = ends(n, n.submit('acme', '/bin/sh', '-c', f'echo $CUDA_VISIBLE_DEVICES; {program} info', profile='3g.40gb',
                                env=['ASAN_OPTIONS=detect_leaks=0']))
        assert text.startswith('MIG-'), text
        finished(n)


# ---- MPS ----

MPS = 'bulkhead: 1\ntenants:\n' + tenant('acme') + tenant('blue', domain='outside') + '''\
pools:
  - {name: mps, match: {gpus: [0]}, mechanism: mps, tier: process, tenants: [acme], caps: {memory: 20GiB, compute: 25%}}
  - {name: blues, match: {gpus: [1]}, mechanism: mps, tier: process, tenants: [blue], caps: {memory: 20GiB, compute: 25%}}
roles:
  - {subject: "user:root", role: operator}
  - {subject: "user:nobody", role: tenant-user, tenant: acme}
'''
CLIENT = '''
import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ['CUDA_MPS_PIPE_DIRECTORY'] + '/control')
print(*(os.environ.get(k) for k in ('CUDA_MPS_PIPE_DIRECTORY', 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE', 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT')), flush=True)
s.close()
time.sleep(600)
'''


@contextlib.contextmanager
def mps_node(of=None):
    with node(text=MPS, serve=False, of=of) as n:
        program = shutil.copy(pathlib.Path(__file__).with_name('mps_control.py'), f'{n.here}/mps-control')
        os.chmod(program, 0o755)
        n.more['BULKHEAD_MPS_CONTROL'] = program
        yield n.start()


def client(n, tenant_name='acme', **kw):
    """One that works through its server: (job, its pipes, its other words)."""
    job = n.submit(tenant_name, *python(CLIENT), pool={'acme': 'mps', 'blue': 'blues'}[tenant_name], milli=100, memory_mib=8192,
                   env=['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100'], **kw)
    until(lambda: out(n, job).strip(), 60, lambda: f'{n.job(job)} {out(n, job, "err")} {n.log()[-2000:]}')
    pipes, *words = out(n, job).split()
    return job, pipes, words


def servers(n):
    return [p for p in n.processes('mps-control', 'python3') if '-f' in lab.cmdline(p).split() and f'{n.here}/mps-control' in lab.cmdline(p)]


def kill_servers(n):
    for p in servers(n):
        os.kill(p, signal.SIGKILL)


def left(n):
    """What is still there of servers: processes, folders, notes."""
    return servers(n) + os.listdir(f'{n.run}/mps') + n.rows("SELECT key FROM notes WHERE key LIKE 'mps/%'")


def over(n):
    n.quiet()
    until(lambda: not left(n), 60, lambda: f'{left(n)} {n.log()[-2000:]}')
    n.nothing_left()
    n.sound()


def test_mps_servers_are_for_those_who_trust_each_other():
    with mps_node() as n:
        one, pipes, words = client(n)
        same(words, ['10', '0=8192MB'], 'its own word on its share does not count')
        two, same_pipes, _ = client(n)
        same(same_pipes, pipes)
        # another user, and another trust domain, each have their own
        three, nobodys, _ = client(n, uid=NOBODY)
        four, blues, _ = client(n, 'blue')
        same(len({pipes, nobodys, blues}), 3)
        same(len(servers(n)), 3)
        said = pathlib.Path(pipes.replace('.pipes', '.logs'), 'control.log').read_text()
        has(said, 'set_default_active_thread_percentage 25')
        has(said, 'set_default_device_pinned_mem_limit 0 20480MB')
        uuid = n.get('/v1/gpus').json['gpus'][0]['uuid']
        has(said, f'as 0, {uuid}')
        has(pathlib.Path(nobodys.replace('.pipes', '.logs'), 'control.log').read_text(), f'as {NOBODY}, ')
        same((os.stat(nobodys).st_uid, os.stat(nobodys).st_mode & 0o777), (NOBODY, 0o700))
        lease = n.lease(n.leases_of(one)[0])['lease']
        same((lease['mechanism'], lease['stack']), ('mps', 'mps 10.0 % 8192 MiB'))
        # the last one puts out the light
        n.post(f'/v1/jobs/{one}/cancel')
        n.wait(one)
        assert os.path.isdir(pipes), 'somebody still works there'
        last = n.leases_of(four)[0]
        for j in (two, three, four):
            n.post(f'/v1/jobs/{j}/cancel')
        # Nobody has the share before its server, which had the card open, is gone.
        n.wait_lease(last, 'released')
        same([p for p in servers(n) if blues in pathlib.Path(f'/proc/{p}/environ').read_text()], [])
        over(n)
        same([len(n.audit(event=e)) for e in ('mps.start', 'mps.stop')], [3, 3])


def test_mps_more_memory_than_its_share():
    """Whatever its server let through: the driver's own count ends it."""
    with mps_node() as n:
        job = n.submit('acme', TENANT, 'hold', '12GiB', '600', pool='mps', milli=100, memory_mib=8192,
                       env=['ASAN_OPTIONS=detect_leaks=0'])
        n.active(job)
        end = n.wait(job)
        has(end['why'], "by the driver's count; its share is 8192 MiB")
        assert end['end'] in ('failed', 'killed'), end
        over(n)


def test_mps_a_server_that_dies_takes_its_work_along():
    with mps_node() as n:
        mine, pipes, _ = client(n)
        blues, _, _ = client(n, 'blue')
        [pid] = [p for p in servers(n) if pipes in pathlib.Path(f'/proc/{p}/environ').read_text()]
        os.kill(pid, signal.SIGKILL)
        job = n.wait(mine)
        same(job['end'], 'failed', str(job))
        has(job['why'], 'MPS server')
        same(n.state_of(blues), 'running', 'the others go on')
        # and the next one gets a new server
        again, fresh, _ = client(n)
        assert fresh != pipes
        for j in (again, blues):
            n.post(f'/v1/jobs/{j}/cancel')
        over(n)


def test_mps_a_server_that_goes_while_the_disk_is_full():
    """That it is gone is written when there is room again."""
    with mps_node(lab.FrailNode(FAULTS, text=MPS)) as n:
        job, _, _ = client(n)
        [pid] = servers(n)
        n.set_faults(permille=1000, error=errno.ENOSPC)
        os.kill(pid, signal.SIGKILL)
        until(lambda: 'MPS server M1: ' in n.log(), 60, n.log)
        same(len(n.rows("SELECT key FROM notes WHERE key LIKE 'mps/%'")), 1)
        n.set_faults()
        same(n.wait(job)['end'], 'failed')
        over(n)


def test_mps_and_a_daemon_that_restarts():
    with mps_node() as n:
        job, pipes, _ = client(n)
        n.again()
        same(len(servers(n)), 1)
        other, same_pipes, _ = client(n)
        same(same_pipes, pipes, 'it is found again')
        n.kill()
        kill_servers(n)
        n.start()
        for j in (job, other):
            has(n.wait(j)['why'], 'MPS server')
        over(n)


def test_mps_where_it_is_not_installed():
    with node(text=MPS) as n:
        r = n.post('/v1/jobs', {'tenant': 'acme', 'argv': ['true'], 'pool': 'mps', 'milli': 100})
        assert not r.ok, repr(r)
        has(r.words, 'mps')


if __name__ == '__main__':
    own_machine()
    only = sys.argv[8:]
    lab.tap.main({k: v for k, v in globals().items() if not only or not k.startswith('test_') or k[5:] in only})
