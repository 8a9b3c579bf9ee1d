# SPDX-License-Identifier: Apache-2.0
"""A tenant in the container of a lease, and what it cannot do.

The bundle is the real one, and so is runc. Every wall is tried again with that wall taken away: then the same attempt must succeed.

Usage: run.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-BULKHEAD-OCI PATH-TO-MAKER [TEST...]
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lib  # noqa: E402
from lib import (FIRST, both, capability, environment, fake_node, lease, made, maker, need, need_runc, no_limit, no_namespace,  # noqa: E402
                 no_user_namespace, opened, probe, same, shown, unified, until, wall)
from tap import Skip, disks, has, main, write  # noqa: E402

MIB = 1 << 20
OPEN = '''
def other():
    os.close(os.open('/dev/nvidia1', os.O_RDWR | os.O_NOCTTY))
    return True
os.close(os.open('/dev/nvidia0', os.O_RDWR | os.O_NOCTTY))   # its own can be
verdict(tried(other))
'''

FORKS = '''
def many():
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    return True
verdict(tried(many))
'''


def test_it_runs_as_it_was_asked_to():
    need_runc()
    home = os.path.abspath('home')
    os.mkdir(home)
    os.chown(home, 265536 + 1000, 265536 + 1000)
    script = '''
import json
s = {l.split(':')[0]: l.split(':', 1)[1].split() for l in open('/proc/self/status')}
open(os.path.expanduser('~/mine'), 'w').write('x')
open('/tmp/scratch', 'w').close()
print(json.dumps([os.getuid(), os.getgid(), os.getcwd(), os.environ['BULKHEAD_LEASE'], os.environ['A'], os.uname().nodename,
                  [s[k][0] for k in ('CapEff', 'CapBnd', 'CapPrm', 'CapInh', 'CapAmb', 'NoNewPrivs')], open('/proc/self/uid_map').read().split()]))
'''
    with lease(1, script, 'uid=1000', 'gid=1000', f'home={home}', 'env=A=b c=d') as c:
        rc, out, err = c.finish()
    same((rc, err), (0, ''))
    same(json.loads(out), [1000, 1000, '/home/acme', c.name, 'b c=d', c.name.lower(), ['0' * 16] * 5 + ['1'], ['0', '265536', '65536']])
    same(os.stat('home/mine').st_uid, 265536 + 1000)
    # a root file system of one's own
    for d in ('usr', 'proc', 'dev', 'sys', 'tmp', 'run', 'home', 'etc'):
        os.makedirs(f'root/{d}')
    for d in ('bin', 'lib', 'lib64', 'sbin'):
        os.symlink(f'usr/{d}', f'root/{d}')
    pathlib.Path('root/etc/mark').write_text('of the image\n')
    with lease(2, '', f'rootfs={os.path.abspath("root")}', 'mount=/usr:/usr', 'cwd=/', command=('cat', '/etc/mark')) as c:
        same(c.finish(), (0, 'of the image\n', ''))
    # and the status of the command
    with lease(3, '', command=('sh', '-c', 'exit 37')) as c:
        same(c.finish()[0], 37)


def test_another_leases_device():
    need_runc()
    mine, other = fake_node('n0', 40), fake_node('n1', 41)
    node = f'node={mine}:/dev/nvidia0'
    show = shown(other, '/dev/nvidia1', 'rw')
    wall(1, OPEN, node, without=both(show, opened(4, 41)), what='the node is not there')
    # with the node in sight it is the cgroup that refuses
    same(probe(1, OPEN, node, edit=show), 'held', 'the devices cgroup')
    # and it cannot have it by another way: a descriptor of a process that it does not see, or a path of the machine
    same(probe(1, f'verdict(tried(lambda: os.open({other!r}, os.O_RDWR) >= 0))', node), 'held')


def test_making_a_device():
    need_runc()
    script = '''
def make():
    os.mknod('/tmp/n', 0o600 | stat.S_IFCHR, os.makedev(4, 41))
    return True
verdict(tried(make))
'''
    wall(1, script, without=both(no_user_namespace, capability('CAP_MKNOD'), opened(4, 41)))


def test_anothers_processes():
    need_runc()
    mark = f'1{FIRST}'
    script = f'''
seen = False
for p in os.listdir('/proc'):
    if p.isdigit():
        try:
            seen = seen or {mark!r}.encode() in open(f'/proc/{{p}}/cmdline', 'rb').read().split(b'\\0')
        except OSError:
            pass
verdict(seen)
'''
    script = script.replace(repr(mark), f'({mark[0]!r} + {mark[1:]!r})')  # not in our own command line
    with lease(2, '', command=('sleep', mark)) as c:
        until(lambda: lib.runc('state', c.name).stdout.find(b'"running"') >= 0)
        wall(1, script, without=both(no_namespace('pid'), no_user_namespace))
        # nor can it be signalled: its number is nobody's here
        pid = json.loads(lib.runc('state', c.name).stdout)['pid']
        wall(1, f'verdict(tried(lambda: os.kill({pid}, 0) is None))',
             without=both(no_namespace('pid'), no_user_namespace, capability('CAP_KILL')), what='a signal')


def test_anothers_files():
    need_runc()
    theirs = os.path.abspath('theirs')
    os.mkdir(theirs)
    for name, mode in (('open', 0o644), ('closed', 0o600)):
        pathlib.Path(theirs, name).write_text('secret\n')
        os.chmod(pathlib.Path(theirs, name), mode)
        os.chown(pathlib.Path(theirs, name), 331072, 331072)

    def read(*paths):
        return f"verdict(any(tried(lambda: open(p).read() == 'secret\\n') for p in {paths!r}))"
    # readable for everybody, and not in sight
    wall(1, read(f'{theirs}/open', '/tmp/theirs/open'), without=shown(theirs, '/tmp/theirs', 'ro'), what='the mount namespace')
    # in sight, and another range of users
    with_it = shown(theirs, '/tmp/theirs', 'ro')
    same(probe(1, read('/tmp/theirs/closed'), edit=with_it), 'held', 'the user namespace')
    same(probe(1, read('/tmp/theirs/closed'), edit=with_it, ids=331072), 'through', 'the same users: the wall is gone')


SERVE_UNIX = '''
s = socket.socket(socket.AF_UNIX)
s.bind({0!r}.replace('@', chr(0)))
if {0!r}[0] == '/':
    os.chmod({0!r}, 0o777)
s.listen()
print('ready', flush=True)
while True:
    c = s.accept()[0]
    c.sendall(b'hello')
    c.close()
'''
CONNECT_UNIX = '''
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(name.replace('@', chr(0)))
    return s.recv(5) == b'hello'
found = False
for name in {0!r}:
    found = tried(connect) or found
verdict(found)
'''


def test_anothers_sockets():
    need_runc()
    theirs = os.path.abspath('theirs')
    os.mkdir(theirs)
    os.chmod(theirs, 0o777)
    with lease(2, SERVE_UNIX.format('/home/acme/s'), f'home={theirs}') as c:
        same(c.line(), 'ready')
        wall(1, CONNECT_UNIX.format([f'{theirs}/s', '/tmp/theirs/s']), without=shown(theirs, '/tmp/theirs', 'rw'), what='by its path')
    # a name without a path belongs to the network namespace
    name = f'@bulkhead-{FIRST}'
    with lease(2, SERVE_UNIX.format(name)) as c:
        same(c.line(), 'ready')
        same(probe(1, CONNECT_UNIX.format([name])), 'held', 'by its name')
    open_net = no_namespace('network')
    with lease(2, SERVE_UNIX.format(name), edit=open_net) as c:
        same(c.line(), 'ready')
        same(probe(1, CONNECT_UNIX.format([name]), edit=open_net), 'through', 'one network: the wall is gone')


SENDS = '''
at = '/run/bulkhead/probe'
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
changed = [what for what, fn in (('mode', lambda: os.chmod(at, 0o777)), ('owner', lambda: os.chown(at, 0, 0)), ('times', lambda: os.utime(at)),
                                 ('name', lambda: os.rename(at, at + '.old')), ('file', lambda: os.unlink(at)),
                                 ('reader', lambda: os.open(at, os.O_RDONLY)))
           if tried(lambda: fn() is None or True)]
print(changed, os.listdir('/run/bulkhead'))
verdict(tried(lambda: s.sendto(b'done 5', at) == 6))
'''


def test_a_socket_in_a_folder_that_nobody_enters():
    """The runtime shows that one file, which the tenant's users have no way to; they can send to it, and nothing else."""
    need_runc()
    os.mkdir('shut')
    os.chmod('shut', 0o700)
    private = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
    runtimes = {'runc': None}
    if shutil.which('crun'):
        runtimes['crun'] = ['unshare', '-m', 'sh', '-c', private, 'sh', 'crun', '--cgroup-manager=cgroupfs', '--root', os.path.abspath('crun-root')]
    for name, runtime in runtimes.items():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            path = os.path.abspath(f'shut/{name}')
            s.bind(path)
            os.chmod(path, 0o222)
            before = os.stat(path)
            for uid in ('0', '1000'):
                with lease(1, SENDS, f'socket={path}:/run/bulkhead/probe', f'uid={uid}', runtime=runtime) as c:
                    rc, out, err = c.finish()
                if runtime and rc != 0 and 'cgroup' in err:
                    break  # crun cannot run a container here
                same((rc, err, [x for x in out.splitlines() if not x.startswith('#')]), (0, '', ["[] ['probe']", 'through']), f'{name} {uid} {out}')
                s.settimeout(10)
                same(s.recv(100), b'done 5')
                after = os.stat(path)
                same((after.st_ino, after.st_mode, after.st_uid, after.st_mtime_ns), (before.st_ino, before.st_mode, before.st_uid, before.st_mtime_ns), name)
        os.unlink(path)


def test_anothers_shared_memory():
    need_runc()
    key = 0x42480000 | FIRST & 0xffff
    make = f'''
c = ctypes.CDLL(None, use_errno=True)
print('ready' if c.shmget({key}, 4096, 0o1666) >= 0 else 'failed', flush=True)
time.sleep(1000)
'''
    find = f'verdict(ctypes.CDLL(None).shmget({key}, 0, 0) >= 0)'
    with lease(2, make) as c:
        same(c.line(), 'ready')
        same(probe(1, find), 'held')
    open_ipc = both(no_namespace('ipc'), no_user_namespace)
    with lease(2, make, edit=open_ipc) as c:
        same(c.line(), 'ready')
        same(probe(1, find, edit=open_ipc), 'through', 'one IPC namespace: the wall is gone')
    subprocess.run(['ipcrm', '-M', str(key)], check=True)


SERVE = '''
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', 7000))
s.listen()
print('ready', flush=True)
while True:
    c = s.accept()[0]
    c.sendall(b'hello')
    c.close()
'''
CONNECT = '''
def connect():
    s = socket.socket()
    s.settimeout(2)
    s.connect(({0!r}, 7000))
    return s.recv(5) == b'hello'
verdict(tried(connect))
'''


def test_anothers_network():
    need_runc()
    need('ip', 'nft', 'tc')
    with lease(2, SERVE, 'net=peers', tenant='zeta') as other, lease(3, SERVE, 'net=peers') as peer, \
            lease(4, SERVE, 'net=alone') as shy:
        theirs, own, alone = [address(c) for c in (other, peer, shy)]
        same(probe(1, CONNECT.format(theirs), 'net=peers'), 'held', "another tenant's")
        same(probe(1, CONNECT.format(own), 'net=peers'), 'through', 'the same tenant, and both may')
        same(probe(1, CONNECT.format(alone), 'net=peers'), 'held', 'the same tenant, and the other may not')
        same(probe(1, CONNECT.format(own), 'net=alone'), 'held', 'the same tenant, and this one may not')
        same(probe(1, CONNECT.format(own)), 'held', 'no network at all')
        # the machine itself, on the bridge
        with socket.create_server(('100.126.0.1', 7000)) as host:
            threading.Thread(target=answer, args=(host,), daemon=True).start()
            same(probe(1, CONNECT.format('100.126.0.1'), 'net=peers'), 'held', 'this machine')
            subprocess.run(['nft', 'delete', 'table', 'inet', 'bulkhead'], check=True)
            # what sets the rest up would mend it, so the tenant waits for the wall to fall
            same(late(CONNECT.format('100.126.0.1'), 'inet'), 'through', 'the machine: the wall is gone')
        same(late(CONNECT.format(theirs), 'bridge'), 'through', "another tenant's: the wall is gone")
    made('net', 'down')


def address(server):
    same(server.line(), 'ready')
    slot = server.id % 65000 + 2
    return f'100.126.{slot >> 8}.{slot & 255}'


def answer(server):
    while True:
        try:
            c = server.accept()[0]
        except OSError:
            return
        c.sendall(b'hello')
        c.close()


def late(script, family, edit=None):
    """The same probe, with the table gone once its port is there."""
    with lease(1, f"print('ready', flush=True)\nsys.stdin.readline()\n{script}", 'net=peers', edit=edit) as c:
        same(c.line(), 'ready')
        subprocess.run(['nft', 'delete', 'table', family, 'bulkhead'], check=True)
        c.process.stdin.write(b'\n')
        c.process.stdin.flush()
        return c.line()


def test_a_foreign_address():
    """With every capability over its own network a tenant still sends from its own address only."""
    need_runc()
    need('ip', 'nft', 'tc')
    script = '''
subprocess.run(['ip', 'addr', 'add', '100.126.250.250/16', 'dev', 'eth0'], check=True)
def connect():
    s = socket.socket()
    s.settimeout(2)
    s.bind(('100.126.250.250', 0))
    s.connect(({0!r}, 7000))
    return s.recv(5) == b'hello'
sys.stdin.readline()
verdict(tried(connect))
'''
    admin = capability('CAP_NET_ADMIN')
    with lease(2, SERVE, 'net=peers') as peer:
        at = address(peer)
        for want in ('held', 'through'):
            with lease(1, script.format(at), 'net=peers', edit=admin) as c:
                until(lambda: 'eth0' in lib.runc('exec', c.name, 'ip', '-4', '-o', 'addr').stdout.decode())
                if want == 'through':
                    subprocess.run(['nft', 'flush', 'chain', 'bridge', 'bulkhead', 'source'], check=True)
                c.process.stdin.write(b'\n')
                c.process.stdin.flush()
                same(c.line(), want)
    made('net', 'down')


OUTSIDE = '''
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', 7000))
s.listen()
print('ready', flush=True)
while True:
    c = s.accept()[0]
    c.sendall(b'hello')
    c.close()
'''


def ip(*words):
    subprocess.run(['ip', *words], check=True)


@contextlib.contextmanager
def outside():
    """A machine beyond this one: a server at 192.0.2.2, and at the address by which clouds give out secrets."""
    with open('/proc/sys/net/ipv4/ip_forward', 'w', encoding='ascii') as f:
        f.write('1')
    p = subprocess.Popen(['unshare', '-n', sys.executable, '-c', OUTSIDE], stdout=subprocess.PIPE)
    try:
        same(p.stdout.readline(), b'ready\n')
        ip('link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(p.pid))
        ip('addr', 'add', '192.0.2.1/24', 'dev', 'out0')
        ip('link', 'set', 'out0', 'up')
        ip('route', 'add', '169.254.169.254/32', 'dev', 'out0')
        for words in (('addr', 'add', '192.0.2.2/24', 'dev', 'eth0'), ('addr', 'add', '169.254.169.254/32', 'dev', 'eth0'),
                      ('link', 'set', 'eth0', 'up'), ('route', 'add', 'default', 'via', '192.0.2.1')):
            subprocess.run(['nsenter', '-t', str(p.pid), '-n', 'ip', *words], check=True)
        yield
    finally:
        p.kill()
        p.communicate()


def test_the_outside():
    need_runc()
    need('ip', 'nft', 'tc', 'nsenter')
    route = "subprocess.run(['ip', 'route', 'add', 'default', 'via', '100.126.0.1'], check=True)\n"
    admin = capability('CAP_NET_ADMIN')
    secrets = CONNECT.format('169.254.169.254')
    with outside():
        same(probe(1, CONNECT.format('192.0.2.2'), 'net=outside'), 'through', 'it may')
        same(probe(1, CONNECT.format('192.0.2.2'), 'net=peers'), 'held', 'it may not, and has no way')
        same(probe(1, route + CONNECT.format('192.0.2.2'), 'net=peers', edit=admin), 'held', 'it has made itself a way')
        same(probe(1, secrets, 'net=outside'), 'held', "a cloud's own address")
        same(late(route + CONNECT.format('192.0.2.2'), 'inet', edit=admin), 'through', 'the wall is gone')
        same(late(route + secrets, 'inet', edit=admin), 'through', "a cloud's own address: the wall is gone")
    made('net', 'down')


def test_the_limits():
    need_runc()
    grow = f'''
if os.fork() == 0:
    b = bytearray({200 * MIB})
    os._exit(0)
verdict(os.wait()[1] == 0)
'''
    wall(1, grow, f'memory={96 * MIB}', without=no_limit('memory'), what='memory')
    wall(1, FORKS, 'pids=32', without=no_limit('pids'), what='processes')
    if os.cpu_count() > 1:
        pin = 'verdict(tried(lambda: os.sched_setaffinity(0, {1}) is None))'
        wall(1, pin, 'cpus=0', without=no_limit('cpu'), what='processors')
    with lease(1, 'print("ready", flush=True)\nsys.stdin.read()', 'cpu=250', 'cpus=0', 'mems=0', 'pids=32', f'memory={96 * MIB}') as c:
        same(c.line(), 'ready')
        same(c.limits(cpuset='cpuset.cpus', pids='pids.max') + c.limits(cpuset='cpuset.mems'), ['0', '32', '0'])
        if unified():
            same(c.limits(cpu='cpu.max', memory='memory.max'), ['25000 100000', str(96 * MIB)])
            same(c.limits(memory='memory.swap.max'), ['0'])
        else:
            same(c.limits(cpu='cpu.cfs_quota_us', memory='memory.limit_in_bytes'), ['25000', str(96 * MIB)])


def test_raising_a_limit():
    need_runc()
    kind, option, which, file = (b'cgroup2', None, '', 'memory.max') if unified() else (b'cgroup', b'memory', 'memory', 'memory.limit_in_bytes')
    script = f'''
def raise_it():
    os.mkdir('/tmp/cg')
    if ctypes.CDLL(None, use_errno=True).mount(b'none', b'/tmp/cg', {kind!r}, 0, {option!r}) != 0:
        return False
    mine = next(x.split(':', 2)[2].strip() for x in open('/proc/self/cgroup') if {which!r} in x.split(':')[1].split(','))
    open('/tmp/cg' + mine + '/{file}', 'w').write('{900 * MIB}')
    return True
verdict(tried(raise_it))
'''
    # On version 2 the kernel itself refuses it at the root of a cgroup namespace (nsdelegate).
    fallen = both(no_user_namespace, no_namespace('cgroup'), capability('CAP_SYS_ADMIN'), no_filter)
    wall(1, script, f'memory={96 * MIB}', without=fallen, what='memory')


def test_raising_a_rate():
    need_runc()
    need('ip', 'nft', 'tc')
    drop = '''
r = subprocess.run(['tc', 'qdisc', 'del', 'dev', 'eth0', 'root'], capture_output=True)
verdict(r.returncode == 0)
'''
    wall(1, drop, 'net=peers', 'rate=100000000', without=capability('CAP_NET_ADMIN'), what='network')
    made('net', 'down')


def test_the_rate_of_a_disk():
    need_runc()
    on = disks()
    if not on or not (unified() or os.path.isdir('/sys/fs/cgroup/blkio')):
        raise Skip('no disk, or no blkio cgroup, whose rate could be limited')
    with lease(1, 'print("ready", flush=True)\nsys.stdin.read()', f'disk={40 * MIB}') as c:
        same(c.line(), 'ready')
        if unified():
            same(sorted(c.limits(io='io.max')[0].splitlines()), sorted(f'{d} rbps={40 * MIB} wbps={40 * MIB} riops=max wiops=max' for d in on))
        for way in () if unified() else ('read', 'write'):
            try:
                same(sorted(c.limits(blkio=f'blkio.throttle.{way}_bps_device')[0].splitlines()), sorted(f'{d} {40 * MIB}' for d in on), way)
            except FileNotFoundError as e:
                raise Skip(f'the kernel has no {pathlib.Path(e.filename).name}') from e


def test_the_rate_of_a_network():
    need_runc()
    need('ip', 'nft', 'tc')
    with lease(1, 'print("ready", flush=True)\nsys.stdin.read()', 'net=peers', 'rate=200000000') as c:
        same(c.line(), 'ready')
        has(lib.runc('exec', c.name, 'tc', 'qdisc', 'show', 'dev', 'eth0').stdout.decode(), 'rate 200Mbit')
        has(subprocess.run(['tc', 'qdisc', 'show'], capture_output=True, check=True).stdout.decode(), 'rate 200Mbit')
    made('net', 'down')


def test_gaining_privileges():
    need_runc()
    home = os.path.abspath('home')
    os.mkdir(home)
    shutil.copy('/usr/bin/id', 'home/id')
    os.chown('home/id', 265536, 265536)
    os.chmod('home/id', 0o4755)
    script = "verdict(subprocess.run([os.path.expanduser('~/id'), '-u'], capture_output=True).stdout == b'0\\n')"

    def may_gain(config):
        config['process']['noNewPrivileges'] = False
        next(m for m in config['mounts'] if m['destination'] == '/home/acme')['options'].remove('nosuid')
    wall(1, script, 'uid=1000', 'gid=1000', f'home={home}', without=may_gain, what='set-user-id')
    mount = "os.mkdir('/tmp/m')\nverdict(ctypes.CDLL(None).mount(b'none', b'/tmp/m', b'tmpfs', 0, None) == 0)"
    wall(1, mount, without=both(capability('CAP_SYS_ADMIN'), no_filter), what='mount')
    wall(1, "verdict(tried(lambda: socket.sethostname('x') is None))", without=capability('CAP_SYS_ADMIN'), what='the name')


def no_filter(config):
    del config['linux']['seccomp']


def test_the_kernels_own():
    """Also where the card is the lease's own and there is no gate: keys, programs in the kernel, users of a namespace of its own."""
    need_runc()
    call = 'verdict(ctypes.CDLL(None, use_errno=True).syscall(%s) >= 0)'
    # As on x86_64 and aarch64.
    keyctl = {'x86_64': 250, 'aarch64': 219}[os.uname().machine]
    wall(1, call % f'{keyctl}, 0, -3, 1', without=no_filter, what='keyctl')
    wall(1, 'verdict(ctypes.CDLL(None).unshare(0x10000000) == 0)', without=no_filter, what='a namespace of users')
    # Threads and processes are made as ever, and what has no such flag is not refused.
    script = """
import threading
t = threading.Thread(target=lambda: print(subprocess.run(['true']).returncode))
t.start()
t.join()
print(ctypes.CDLL(None).unshare(0x400))
"""
    with lease(1, script) as c:
        same(c.finish(), (0, '0\n0\n', ''))


def test_the_root_is_not_written_to():
    need_runc()

    def writable(config):
        config['root']['readonly'] = False
        no_user_namespace(config)
    # runc's own root, with nothing in the way but the mount
    wall(1, "verdict(tried(lambda: open('/mark', 'w').close() is None and os.unlink('/mark') is None))", without=writable)
    wall(1, "verdict(tried(lambda: open('/proc/sys/kernel/hostname', 'w').write('x') > 0))", without=both(
        no_user_namespace, capability('CAP_SYS_ADMIN'), lambda c: c['linux'].update(readonlyPaths=[])), what='/proc/sys')


def test_crun_takes_the_same_bundle():
    """Where it can: it refuses cgroups of both versions at once, so it is shown those of the first alone."""
    need_runc()
    need('crun')
    node, other = fake_node('n0', 40), fake_node('n1', 41)
    private = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
    base = ['unshare', '-m', 'sh', '-c', private, 'sh', 'crun', '--cgroup-manager=cgroupfs', '--root', os.path.abspath('crun-root')]

    def probed(script, edit=None):
        with lease(1, script, f'node={node}:/dev/nvidia0', 'pids=32', edit=edit, runtime=base) as c:
            rc, out, err = c.finish()
            if rc != 0 and 'cgroup' in err:
                raise Skip(f'crun cannot run a container here: {err.strip()[-300:]}')
            same((rc, err), (0, ''))
            return out.splitlines()[-1]
    show = shown(other, '/dev/nvidia1', 'rw')
    same(probed(OPEN, show), 'held')
    same(probed(OPEN, both(show, opened(4, 41))), 'through')
    same(probed(FORKS), 'held')
    same(probed(FORKS, no_limit('pids')), 'through')


def test_the_same_again():
    """Made twice is made once; removed twice is removed. What is not ours stays."""
    need_runc()
    folder = os.path.abspath('b')
    for _ in range(2):
        made('bundle', folder, 'lease=1', '--', 'true')
    same(sorted(os.listdir('b')), ['config.json', 'rootfs'])
    same(os.stat('b/config.json').st_mode & 0o777, 0o600)
    write('b/mine', 'x')
    r = maker('remove', folder)
    assert r.rc != 0 and os.path.exists('b/mine'), repr(r)
    os.unlink('b/mine')
    for _ in range(2):
        made('remove', folder)
    assert not os.path.exists('b')


def test_wrong_requests():
    need('runc')
    folder = os.path.abspath('b')
    os.mkdir('root')
    for words, code in ((('tenant=a/b', '--', 'true'), 'invalid'), (('tenant=../x', '--', 'true'), 'invalid'), (('lease=1', '--'), 'invalid'),
                        (('ids=0', '--', 'true'), 'invalid'), (('ids=4294967295', '--', 'true'), 'invalid'),
                        (('uid=70000', '--', 'true'), 'invalid'), (('rootfs=/nowhere', '--', 'true'), 'not_found'),
                        (('rootfs=relative', '--', 'true'), 'invalid'), ((f'rootfs={os.path.abspath("root")}', '--', 'true'), 'not_found'),
                        (('home=/nowhere', '--', 'true'), 'not_found'), (('home=/../etc', '--', 'true'), 'invalid'),
                        (('listener=x', '--', 'true'), 'invalid'), (('cpus=0;1', '--', 'true'), 'invalid'),
                        (('net=peers', '--', 'true'), 'invalid'), (('net=peers', 'hook=/nowhere', '--', 'true'), 'not_found'), (('cwd=x', '--', 'true'), 'invalid'),
                        (('node=/etc/passwd:/dev/x', '--', 'true'), 'invalid'), (('node=/dev/null:/etc/x', '--', 'true'), 'invalid'),
                        (('node=/dev/nowhere:/dev/x', '--', 'true'), 'not_found'), (('mount=/dev/null:/x', '--', 'true'), 'invalid'),
                        (('mount=/etc:/a/../b', '--', 'true'), 'invalid'), (('env==x', '--', 'true'), 'invalid'),
                        (('sim=/nowhere', '--', 'true'), 'not_found'), (('--', *['x'] * 5000), 'too_large'),
                        ((*[f'env=A{i}=x' for i in range(600)], '--', 'true'), 'too_large')):
        r = maker('bundle', folder, *words)
        same((r.rc != 0, r.err.partition(':')[0], r.err.count('\n')), (True, code, 1), f'{words[:3]} {r!r}')
        assert not os.path.exists(folder), words[:3]


if __name__ == '__main__':
    lib.own_machine()
    only = sys.argv[6:]
    main({k: v for k, v in globals().items() if not only or not k.startswith('test_') or k[5:] in only})
