# SPDX-License-Identifier: Apache-2.0
"""bulkhead adopt: containers of real runtimes below the gate.

crun and runc as the distribution has them start containers with the profile that the command prints; the warden,
the filter that libseccomp makes of the profile, and the gate are the real ones. The driver and its library are simulated silicon.

Usage: oci.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import array
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import CONTEXT_MAX, GIB, TENANT, bulkhead, gone, lines, node, state, tap, until  # noqa: E402
from tap import BIN, Result, Skip, environment, has, same, write  # noqa: E402

BUILD = str(pathlib.Path(TENANT).parents[2])
RUNTIMES = ('crun', 'runc')
SHARED = ('usr', 'bin', 'lib', 'lib64')  # of this machine, to read only: the container's programs are ours


class Adopt:
    """bulkhead adopt, running; its lines as they come."""

    def __init__(self, env, *options, memory='10GiB', path='s', view='card', limit=0):
        self.path = os.path.abspath(path)
        self.process = subprocess.Popen([*(('sh', '-c', f'ulimit -Sn {limit}; exec "$@"', 'sh') if limit else ()), BIN, 'adopt', '--memory', memory, '--socket', self.path, '--view', view, *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(**env))
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.expect('waiting for containers')

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode().rstrip('\n'))

    def expect(self, words, seconds=60):
        """The first line from now on that has these words; it and those before it are taken."""
        end = time.monotonic() + seconds
        while True:
            for i, line in enumerate(self.lines):
                if words in line:
                    del self.lines[:i + 1]
                    return line
            if time.monotonic() > end or (self.process.poll() is not None and not self.reader.is_alive()):
                err = self.process.stderr.read().decode() if self.process.poll() is not None else ''
                raise AssertionError(f'{words!r} did not come: {self.lines} {err}')
            time.sleep(0.01)

    def wardens(self):
        pid = self.process.pid
        wardens = []
        for child in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split():
            with contextlib.suppress(OSError):  # it may be gone by now
                if pathlib.Path(f'/proc/{child}/comm').read_text().strip() == 'bulkhead-warden':
                    wardens.append(int(child))
        return wardens

    def end(self, signum=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signum)
        rc = self.process.wait(timeout=60)
        self.reader.join(timeout=60)
        err = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return rc, err


@contextlib.contextmanager
def adopting(env, *options, **kw):
    a = Adopt(env, *options, **kw)
    try:
        yield a
    finally:
        if a.process.returncode is None:
            rc, err = a.end()
            same((rc, err), (0, ''))
            assert not os.path.exists(a.path), 'the socket must go'


def profile(*options, path='s', view='card'):
    r = bulkhead('adopt', '--profile', '--socket', os.path.abspath(path), '--view', view, *options)
    same((r.rc, r.err), (0, ''))
    return json.loads(r.out)


def command_of(runtime):
    program = shutil.which(runtime)
    if not program:
        raise Skip(f'{runtime} is not installed')
    if runtime == 'crun':
        # crun refuses cgroups of both versions at once, and needs none here: it is shown those of the first alone
        private = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
        program = ['unshare', '-m', 'sh', '-c', private, 'sh', program, '--cgroup-manager=disabled']
    else:
        program = [program]
    return [*program, '--root', os.path.abspath(f'{runtime}-root')]


def config(runtime, name, env, args, seccomp, uid, no_new_privileges, mapped):
    mounts = [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},
              {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['mode=755']}]
    mounts += [{'destination': f'/{d}', 'type': 'bind', 'source': f'/{d}', 'options': ['rbind', 'ro']}
               for d in SHARED if os.path.isdir(f'/{d}')]
    mounts += [{'destination': d, 'type': 'bind', 'source': d, 'options': ['rbind', 'ro']} for d in {BUILD, os.path.abspath('h')}
               if os.path.isdir(d)]
    inside = {'PATH': '/usr/bin:/bin', 'ASAN_OPTIONS': 'detect_leaks=0', **env}
    rights = {k: ['CAP_KILL', 'CAP_SYS_PTRACE'] for k in ('bounding', 'effective', 'permitted')}
    linux = {'namespaces': [{'type': t} for t in ('pid', 'mount', 'ipc', 'uts')]}
    if seccomp:
        linux['seccomp'] = seccomp
    if mapped:
        linux['namespaces'].append({'type': 'user'})
        linux['uidMappings'] = linux['gidMappings'] = [{'containerID': 0, 'hostID': 200000, 'size': 65536}]
    if runtime == 'runc':
        linux['cgroupsPath'] = f'/bulkhead-test-{os.getpid()}-{name}'
    return {'ociVersion': '1.0.2', 'hostname': name, 'root': {'path': 'rootfs'}, 'mounts': mounts, 'linux': linux,
            'process': {'terminal': False, 'user': {'uid': uid, 'gid': uid}, 'args': list(args), 'cwd': '/',
                        'env': [f'{k}={v}' for k, v in inside.items()], 'capabilities': rights,
                        'noNewPrivileges': no_new_privileges}}


class Container:
    def __init__(self, runtime, name, env, *args, seccomp=None, uid=0, no_new_privileges=False, mapped=False):
        self.base = command_of(runtime)
        self.name = name
        bundle = pathlib.Path(f'bundle-{runtime}-{name}')
        (bundle / 'rootfs').mkdir(parents=True, exist_ok=True)
        for d in (*SHARED, 'proc', 'dev'):
            (bundle / 'rootfs' / d).mkdir(exist_ok=True)
        write(bundle / 'config.json', json.dumps(config(runtime, name, env, args, seccomp, uid, no_new_privileges, mapped)))
        self.process = subprocess.Popen([*self.base, 'run', '--bundle', str(bundle), name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def line(self):
        return self.process.stdout.readline().decode().rstrip('\n')

    def finish(self, text=None):
        out, err = self.process.communicate(text.encode() if text else None, timeout=120)
        return self.process.returncode, out.decode(), err.decode()

    def execute(self, env, *args):
        words = [w for k, v in {'ASAN_OPTIONS': 'detect_leaks=0', **env}.items() for w in ('--env', f'{k}={v}')]
        return Result(subprocess.run([*self.base, 'exec', *words, self.name, *args], stdin=subprocess.DEVNULL,
                                     capture_output=True, env=environment(), timeout=120, check=False))

    def end(self):
        if self.process.poll() is None:
            subprocess.run([*self.base, 'kill', self.name, 'KILL'], capture_output=True, check=False)
            self.process.communicate(timeout=60)


@contextlib.contextmanager
def container(*args, **kw):
    c = Container(*args, **kw)
    try:
        yield c
    finally:
        c.end()


able = {}


def runtimes():
    """Those that can run a container here at all; none: a reason to skip."""
    for r in RUNTIMES:
        if r not in able:
            try:
                c = Container(r, 'probe', {}, 'true')
                rc, out, err = c.finish()
                able[r] = '' if rc == 0 else f'{r} cannot run a container here: {(out + err).strip()[-300:]}'
            except Skip as e:
                able[r] = str(e)
    working = [r for r in RUNTIMES if not able[r]]
    for r in RUNTIMES:
        if able[r]:
            print(f'# {able[r]}')
    if not working:
        raise Skip('; '.join(able.values()))
    return working


def taken_of(out):
    got = lines(out)
    has(got['error'], 'CUDA_ERROR_OUT_OF_MEMORY')
    return int(got['taken'])


def check_full(out, cap=10 * GIB):
    taken = taken_of(out)
    assert cap - CONTEXT_MAX - GIB <= taken <= cap, out


def test_the_cap_holds():
    with node() as env, adopting(env) as a:
        for runtime in runtimes():
            # the container's root, a user of it, and both of a user namespace
            for uid, nnp, mapped in ((0, False, False), (1000, False, False), (1000, True, False), (0, False, True), (1000, True, True)):
                c = Container(runtime, 'web', env, TENANT, 'fill', 'plain', seccomp=profile('--name', 'team-a'), uid=uid,
                              no_new_privileges=nnp, mapped=mapped)
                rc, out, err = c.finish()
                same((rc, err), (0, ''), f'{runtime} {uid} {nnp} {mapped}')
                check_full(out)
                m = re.fullmatch(r'web \(team-a\) pid (\d+): held at 10 GiB of each GPU', a.expect('held at'))
                assert m, a.lines
                end = re.fullmatch(rf'web \(team-a\) pid {m[1]}: ended, peak ([\d.]+) GiB of 10 GiB, (\d+) refused for memory, '
                                   r'0 denied, 0 killed', a.expect('ended'))
                assert end and 9 <= float(end[1]) <= 10 and int(end[2]) >= 1, a.lines
        same(a.lines, [])
        until(lambda: a.wardens() == [])


def test_every_process_of_a_container_counts():
    with node() as env, adopting(env) as a:
        for runtime in runtimes():
            script = f'for i in 1 2 3 4; do ({TENANT} hold 3GiB 1000; echo over) & done; wait'
            with container(runtime, 'many', env, 'sh', '-c', script, seccomp=profile()) as c:
                same(sorted(c.line() for _ in range(4)), ['over'] * 2 + ['ready'] * 2, runtime)
            a.expect('ended')


def driver_count(env):
    """What the driver itself has given to processes: by its own count, pid by pid of this machine."""
    r = bulkhead('gpus', '-o', 'json', **env)
    same(r.rc, 0, repr(r))
    found = json.loads(r.out)['gpus'][0]['processes']
    return {p['pid']: p['memoryBytes'] for p in found}


def test_two_containers_are_two_leases():
    with node() as env, adopting(env) as a:
        kinds = runtimes()
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(container(kinds[i % len(kinds)], f'c{i}', env, TENANT, 'hold', '9GiB', '1000',
                                                  seccomp=profile())) for i in range(2)]
            for c in held:
                same(c.line(), 'ready')
            count = driver_count(env)
            same(len(count), 2, count)
            for pid, used in count.items():
                assert 9 * GIB <= used <= 10 * GIB, count
                has(pathlib.Path(f'/proc/{pid}/comm').read_text(), 'tenant')
            same(len(a.wardens()), 2)
            # a third with its own full cap, beside them
            c = Container(kinds[0], 'c2', env, TENANT, 'fill', 'plain', seccomp=profile())
            rc, out, err = c.finish()
            same((rc, err), (0, ''))
            check_full(out)
            # the end of one is nothing to the other
            held[0].end()
            a.expect('c0 pid')
            until(lambda: len(a.wardens()) == 1)
            same(len(driver_count(env)), 1)
        until(lambda: a.wardens() == [])


WAITS = f'echo ready; read -r x; exec {TENANT} fill plain'


def test_adopt_is_killed_and_the_container_stays_held():
    with node() as env:
        for runtime in runtimes():
            for signum, rc in ((signal.SIGKILL, -9), (signal.SIGTERM, 0)):
                a = Adopt(env)
                with container(runtime, 'stays', env, 'sh', '-c', WAITS, seccomp=profile()) as c:
                    same(c.line(), 'ready')
                    a.expect('held at')
                    warden = a.wardens()[0]
                    same(a.end(signum), (rc, ''))
                    if rc == 0:
                        has(a.lines[-1], 'leaving: 1 container stays held')
                    assert state(warden) in 'SR', 'the warden must stay'
                    got = c.finish('go\n')
                    same(got[0], 0, got)
                    check_full(got[1])
                    gone(warden)
                # what the killed one left is replaced by the next
                same(os.path.exists('s'), rc != 0)
                with adopting(env):
                    c = Container(runtime, 'next', env, TENANT, 'fill', 'plain', seccomp=profile())
                    check_full(c.finish()[1])


def test_a_warden_is_killed():
    with node() as env:
        for runtime in runtimes():
            a = Adopt(env)
            script = f'{TENANT} hold 4GiB 1000 & echo started; read -r x; exec {TENANT} fill plain'
            with container(runtime, 'again', env, 'sh', '-c', script, seccomp=profile()) as c:
                same(sorted((c.line(), c.line())), ['ready', 'started'])
                a.expect('held at')
                os.kill(a.wardens()[0], signal.SIGKILL)
                a.expect('its warden was killed by signal 9')
                a.expect('held again')
                # what was taken before counts on
                c.say('go\n')
                out = [c.line() for _ in range(6)]
                taken = taken_of('\n'.join(out))
                assert 5 * GIB - CONTEXT_MAX - GIB <= taken <= 6 * GIB, out
            a.expect('ended')
            # with nobody to start another: refused
            with container(runtime, 'closed', env, 'sh', '-c', WAITS, seccomp=profile()) as c:
                same(c.line(), 'ready')
                a.expect('held at')
                warden = a.wardens()[0]
                a.end(signal.SIGKILL)
                os.kill(warden, signal.SIGKILL)
                gone(warden)
                rc, out, err = c.finish('go\n')
                assert rc != 0 and 'got' not in out, (rc, out, err)


def test_a_warden_that_takes_over_is_killed_too():
    with node() as env, adopting(env) as a:
        with container(runtimes()[0], 'twice', env, 'sh', '-c', WAITS, seccomp=profile()) as c:
            same(c.line(), 'ready')
            a.expect('held at')
            first = a.wardens()
            # a driver that does not answer: who takes over is not ready yet
            driver = json.loads(bulkhead('sim', 'list', '-o', 'json').out)['nodes'][0]['pid']
            os.kill(driver, signal.SIGSTOP)
            try:
                os.kill(first[0], signal.SIGKILL)
                a.expect('its warden was killed by signal 9')
                until(lambda: a.wardens() not in ([], first))
                os.kill(a.wardens()[0], signal.SIGKILL)
                a.expect('its warden was killed by signal 9')
            finally:
                os.kill(driver, signal.SIGCONT)
            a.expect('held again')
            check_full(c.finish('go\n')[1])


SHARED_MAP = ('import mmap,os; fd=os.memfd_create("x"); os.ftruncate(fd,4096); mmap.mmap(fd,4096); print("mapped")')


def python(text):
    return ('/usr/bin/python3', '-c', text)


def need_python():
    if not os.path.exists('/usr/bin/python3'):
        raise Skip('no /usr/bin/python3 for the container')


def test_no_warden_no_memory():
    need_python()
    with node() as env:
        os.mkdir('empty')
        # bulkhead sees a machine without a driver; the container has one
        with adopting({'BULKHEAD_SYSROOT': os.path.abspath('empty')}) as a:
            for runtime in runtimes():
                c = Container(runtime, 'bare', env, 'sh', '-c', f'{TENANT} fill plain; echo "status $?"', seccomp=profile())
                rc, out, err = c.finish()
                line = a.expect('not held')
                has(line, 'no NVIDIA driver is loaded')
                has(line, 'refused (ENOSYS)')
                assert rc == 0 and 'got' not in out and 'status 0' not in out, (rc, out, err)
                rc, out, err = Container(runtime, 'bare', env, *python(SHARED_MAP), seccomp=profile()).finish()
                assert rc != 0 and 'not implemented' in err, (rc, out, err)
            until(lambda: a.wardens() == [])
        # the wrong profiles
        with adopting(env, view='slice') as a:
            foreign = {**profile(view='slice'), 'listenerMetadata': 'MKNOD=/dev/null'}
            for words, seccomp in (('not one of bulkhead adopt --profile', foreign), ('--view', profile(view='card'))):
                c = Container(runtimes()[0], 'odd', env, TENANT, 'fill', 'plain', seccomp=seccomp)
                rc, out, err = c.finish()
                has(a.expect('not held'), words)
                assert rc != 0 and 'got' not in out, (rc, out, err)
        # and with nobody there at all the container does not begin
        for runtime in runtimes():
            rc, out, err = Container(runtime, 'alone', env, 'echo', 'began', seccomp=profile()).finish()
            assert rc != 0 and 'began' not in out, (rc, out, err)


def test_a_process_that_joins_gets_nothing():
    need_python()
    with node() as env, adopting(env) as a:
        for runtime in runtimes():
            with container(runtime, 'main', env, 'sh', '-c', f'{TENANT} hold 4GiB 1000 & read -r x; exec {TENANT} fill plain',
                           seccomp=profile()) as c:
                same(c.line(), 'ready')
                a.expect('main pid')
                r = c.execute(env, TENANT, 'fill', 'plain')
                assert r.rc != 0 and 'got' not in r.out, repr(r)
                has(r.err, 'OUT_OF_MEMORY')
                has(a.expect('joined'), 'it gets no GPU memory')
                # but for that it is like any other
                r = c.execute(env, *python(SHARED_MAP))
                same((r.rc, r.out), (0, 'mapped\n'), repr(r))
                same(len(driver_count(env)), 1)
                # and the container's own count is as it was
                c.say('go\n')
                out = [c.line() for _ in range(6)]
                taken = taken_of('\n'.join(out))
                assert 5 * GIB - CONTEXT_MAX - GIB <= taken <= 6 * GIB, out
            a.expect('main pid')


PROBE = '''
import ctypes, errno, mmap, os, sys
c = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    r = c.syscall(nr, *args)
    return errno.errorcode[ctypes.get_errno()] if r < 0 else 'ok'
what = sys.argv[1]
if what == 'calls':
    print(call(425, 1, 0), call(426, -1), call(427, -1), call(101, 0, 0), call(438, -1, 0, 0), call(311, 1, 0, 0, 0, 0, 0), call(440, -1))
    print(c.getpid() > 0, 'done')
elif what == 'x32':
    print('back', call(0x40000000 | 39))
else:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    code.write(bytes.fromhex('53 b8 14 00 00 00 cd 80 5b c3'))  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    print('back', ctypes.CFUNCTYPE(ctypes.c_int)(at)())
'''


def test_what_libseccomp_makes_of_the_profile():
    """The names, numbers and other architectures of the profile, in the kernel."""
    need_python()
    if os.uname().machine != 'x86_64':
        raise Skip('the numbers are those of x86-64')
    has_32_bit = subprocess.run(['/usr/bin/python3', '-c', PROBE, 'compat'], capture_output=True, check=False).returncode == 0
    with node() as env, adopting(env):
        for runtime in runtimes():
            def probe(what, runtime=runtime):
                return Container(runtime, 'probe2', {}, *python(PROBE), what, seccomp=profile()).finish()
            rc, out, err = probe('calls')
            same((rc, out), (0, 'ENOSYS ENOSYS ENOSYS EPERM EPERM EPERM EPERM\nTrue done\n'), err)
            for what in ('x32', *(['compat'] if has_32_bit else [])):
                rc, out, err = probe(what)
                same((rc, out), (128 + signal.SIGSYS, ''), f'{runtime} {what} {err}')
        if not has_32_bit:
            print('# this kernel has no 32-bit entry')


def test_the_view():
    with node() as env, adopting(env, view='slice') as a:
        for runtime in runtimes():
            c = Container(runtime, 'seen', env, TENANT, 'info', seccomp=profile(view='slice'))
            rc, out, err = c.finish()
            same((rc, err), (0, ''))
            same(int(lines(out)['total']), 10 * GIB)
            a.expect('ended')


def message(**change):
    m = {'ociVersion': '1.0.2', 'fds': ['seccompFd'], 'pid': os.getpid(), 'metadata': 'bulkhead 1',
         'state': {'ociVersion': '1.0.2', 'id': 'x', 'status': 'creating', 'pid': os.getpid(), 'bundle': '/'}}
    return json.dumps({**m, **change}).encode()


@contextlib.contextmanager
def connected(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        yield s


def send(path, data, fds=(), close=True):
    with connected(path) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
            sent = s.sendmsg([data], control) if data else 0
            while sent < len(data):
                sent += s.send(data[sent:])
            if close:
                s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            same(s.recv(1), b'', 'nothing is ever answered')


LISTENER = '''
import ctypes, os, select, struct, sys, socket, array
c = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [('n', ctypes.c_ushort), ('at', ctypes.c_void_p)]
allow = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000), 8)
c.prctl(38, 1, 0, 0, 0)
fd = c.syscall(317, 1, 8, ctypes.byref(Program(1, ctypes.addressof(allow))))
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendmsg([sys.argv[2].replace('"PID"', str(os.getpid())).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
s.recv(1)
os.close(fd)
if len(sys.argv) > 3 and os.fork() == 0: # somebody who outlives it
    os.write(1, b'%d\\n' % os.getpid())
    end = select.poll()
    end.register(0, 0) # its end alone: what is written there is the first one's to read
    end.poll()
elif len(sys.argv) > 3:
    sys.stdin.readline()
'''


class Listener:
    """A process with a filter and nothing more, sent as a runtime would; and a child of it."""

    def __init__(self, path, name, status='creating', metadata='bulkhead 1', **more):
        text = json.dumps({'fds': ['seccompFd'], 'pid': 'PID', 'metadata': metadata,
                           'state': {'id': name, 'status': status, **more}})
        self.process = subprocess.Popen([sys.executable, '-c', LISTENER, path, text, 'stay'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment())
        self.child = int(self.process.stdout.readline())

    def end_first(self):
        """The first process; its child stays."""
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()
        self.process.wait(timeout=60)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@contextlib.contextmanager
def listener(*args, **kw):
    p = Listener(*args, **kw)
    try:
        yield p
    finally:
        p.end()


def test_a_name_that_is_used_again():
    """Something of the old container is left when the new one is joined."""
    with node() as env, adopting(env) as a:
        with listener(a.path, 'web') as old:
            first = a.expect('held at')
            old.end_first()
            with listener(a.path, 'web') as new:
                has(a.expect('held at'), f'web pid {new.process.pid}:')
                with listener(a.path, 'web', 'running'):
                    line = a.expect('web pid')
                    has(line, 'joined the container; it gets no GPU memory')
                    has(line, f'pid {new.process.pid}:')
                    assert line.split(':')[0] != first.split(':')[0]
                # with two of them, the later one is meant
                with listener(a.path, 'web') as newer:
                    a.expect('held at')
                    with listener(a.path, 'web', 'running'):
                        has(a.expect('joined'), f'pid {newer.process.pid}:')


def test_nobody_writes_lines_but_adopt():
    with node() as env:
        with adopting(env) as a, listener(a.path, 'x', metadata='y\x1b[2J\x07\nprod-7 pid 1: held at 10 GiB of each GPU'):
            has(a.expect('not held'), '\\x1b[2J\\x07\\x0aprod-7 pid 1: held at')
        same([line for line in a.lines if line.startswith('prod-7') or not line.isprintable()], [])
        # nor at the end
        a = Adopt(env, '--once')
        with listener(a.path, 'x', metadata='y\x1b[2J\n'):
            a.expect('not held')
            same(a.process.wait(timeout=60), 1)
        err = a.end()[1]
        assert err.count('\n') == 1 and err.rstrip('\n').isprintable(), err


def test_files_for_many_containers():
    """The shell's soft limit is not for adopt."""
    with node() as env:
        with adopting(env, limit=40) as a, contextlib.ExitStack() as stack:
            for i in range(20):
                stack.enter_context(listener(a.path, f'c{i}'))
                has(a.expect('pid'), 'held at')
            same(len(a.wardens()), 20)


def open_files(pid):
    return sorted(os.readlink(f'/proc/{pid}/fd/{f}') for f in os.listdir(f'/proc/{pid}/fd'))


def test_garbage_is_refused():
    with node() as env, adopting(env) as a:
        before = open_files(a.process.pid)
        null, pipe = os.open('/dev/null', os.O_RDONLY), os.pipe()
        for words, data, fds, close in (
                ('ends in the middle', message()[:50], [null], True),
                ('no JSON', b'\x00\xff\x7fELF', [null], True),
                ('no JSON', b'GET / HTTP/1.1\r\n\r\n', [], True),
                ('no JSON', b'[' * 100000, [], True),
                ('it has no', b'{}', [null], False),
                ('with 0 descriptors', message(), [], False),
                ('with 2 descriptors', message(), [null, pipe[0]], False),
                ('more descriptors', message(), [null] * 60, False),
                ('names 2 descriptors', message(fds=['seccompFd', 'other']), [null, null], False),
                ('names 0 descriptors', message(fds=[]), [null], False),
                ('no seccomp listener', message(), [null], False),
                ('no seccomp listener', message(), [pipe[0]], False),
                ('a number was expected', message(pid=-1), [null], False),
                ('a pid is too large', message(pid=1 << 40), [null], False),
                ('more than 1024 KiB', b' ' * (1 << 21), [null], False),
                ('longer than any', message(state={'id': 'x' * 5000, 'status': 'creating'}), [null], False)):
            send(a.path, data, fds, close)
            has(a.expect('a message was refused'), words)
        # a real listener, of a process that is not there, or that has none
        for words, pid, status in (('is not there', '0', 'creating'), ('is not there', str(1 << 22), 'creating'),
                                   ('carries no system call filter', str(os.getpid()), 'creating'),
                                   ('joins a container that is not held from here', '7', 'running')):
            text = json.dumps({'fds': ['seccompFd'], 'pid': 7007, 'metadata': 'bulkhead 1',
                               'state': {'id': 'no\x1b[31m name', 'status': status}}).replace('7007', pid)
            subprocess.run([sys.executable, '-c', LISTENER, a.path, text], check=True, timeout=60, env=environment())
            line = a.expect('not held')
            has(line, words)
            has(line, 'no?[31m?name pid')
        # who only looks is not worth a word, and who says nothing is let go
        with connected(a.path):
            pass
        with connected(a.path) as silent, connected(a.path) as slow:
            slow.send(b'{"fds"')
            # nobody else waits for them
            if runtimes():
                c = Container(runtimes()[0], 'meanwhile', env, 'true', seccomp=profile())
                same(c.finish()[0], 0)
                a.expect('meanwhile pid')
            for s in (silent, slow):
                same(s.recv(1), b'')
                has(a.expect('a message was refused'), 'not whole after 5 seconds')
        until(lambda: a.wardens() == [])
        until(lambda: open_files(a.process.pid) == before)
        for fd in (null, *pipe):
            os.close(fd)
        # and it serves as before
        c = Container(runtimes()[0], 'after', env, TENANT, 'fill', 'plain', seccomp=profile())
        check_full(c.finish()[1])


def test_many_who_say_nothing():
    with node() as env, adopting(env) as a:
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(connected(a.path)) for _ in range(60)]
            c = Container(runtimes()[0], 'patient', env, 'true', seccomp=profile())
            same(c.finish()[0], 0)
            # the next one comes at once: the longest waiting has gone for it, not after his time
            has(a.expect('a message was refused'), 'user 0 has 16 more on the way')
            same(idle[0].recv(1), b'')
            for line in a.lines:
                assert 'not whole after' not in line, a.lines
            a.expect('patient pid')


def test_once():
    with node() as env:
        for runtime in runtimes():
            a = Adopt(env, '--once')
            c = Container(runtime, 'one', env, 'sh', '-c', WAITS, seccomp=profile())
            same(c.line(), 'ready')
            a.expect('held at')
            assert not os.path.exists('s'), 'nobody may believe that he is held'
            rc, out, err = Container(runtime, 'two', env, 'true', seccomp=profile()).finish()
            assert rc != 0, (out, err)
            check_full(c.finish('go\n')[1])
            same((a.process.wait(timeout=60), a.end()), (0, (0, '')))
            has(a.lines[-1], 'one pid')
        os.mkdir('empty')
        a = Adopt({'BULKHEAD_SYSROOT': os.path.abspath('empty')}, '--once')
        c = Container(runtimes()[0], 'none', env, 'sh', '-c', 'read -r x', seccomp=profile())
        same(a.process.wait(timeout=60), 4)
        same(c.finish('go\n')[0], 0)
        has(a.end()[1], 'no NVIDIA driver is loaded')


def refused(rc, words, *args, prefix=(), **env):
    done = Result(subprocess.run([*prefix, BIN, 'adopt', *args], capture_output=True, check=False, timeout=60,
                                 env=environment(**env)))
    same((done.rc, done.out, done.err.count('\n')), (rc, '', 1), repr(done))
    has(done.err, words)


def test_wrong_words_are_one_line():
    with node() as env:
        here = os.path.abspath('s')
        for rc, words, args in (
                (2, 'adopt needs --memory SIZE', []), (2, "'10' is not a size", ['-m', '10']), (2, '600MiB', ['-m', '1MiB']),
                (1, 'H200', ['-m', '200GiB', '-s', here]), (2, "begin with '/'", ['-m', '1GiB', '-s', 's']),
                (2, '1 to 107 bytes', ['-m', '1GiB', '-s', '/' + 'x' * 200]), (4, 'the folder of', ['-m', '1GiB', '-s', '/no/such/s']),
                (2, '--tick', ['-m', '1GiB', '-s', here, '--tick', '0']), (2, '--owner', ['-m', '1GiB', '-s', here, '--owner', 'me']),
                (2, '--view', ['-m', '1GiB', '-s', here, '--view', 'none']), (2, '--name', ['-m', '1GiB', '-s', here, '--name', 'a']),
                (2, '--memory', ['--profile', '-m', '1GiB']), (2, '--once', ['--profile', '--once']),
                (2, '--name', ['--profile', '--name', 'a b']), (2, "begin with '/'", ['--profile', '-s', 's'])):
            refused(rc, words, *args, **env)
        with adopting(env) as a:
            refused(5, 'somebody listens', '-m', '1GiB', '-s', here, **env)
            same(os.stat('s').st_mode & 0o777, 0o600)
            same(a.lines, [])
        write('file', 'text')
        refused(5, 'no socket', '-m', '1GiB', '-s', os.path.abspath('file'), **env)
        who = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
        if subprocess.run([*who, BIN, 'version'], capture_output=True, check=False).returncode == 0:
            refused(3, 'adopt needs root', '-m', '1GiB', '-s', here, prefix=who, **env)
        # the profile needs no rights, no driver and nobody there
        plain, controls = profile(view='card'), profile('--name', 'n', view='private')
        same(plain['listenerMetadata'], 'bulkhead 1')
        same(controls['listenerMetadata'], 'bulkhead 1 controls name=n')
        same(len(controls['syscalls']), len(plain['syscalls']) + 1)
        same(json.loads(bulkhead('adopt', '--profile').out)['listenerPath'], '/run/bulkhead/adopt.sock')


if __name__ == '__main__':
    tap.main(globals())
