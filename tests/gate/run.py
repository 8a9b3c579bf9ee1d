# SPDX-License-Identifier: Apache-2.0
"""bulkhead run: a command below the gate is the command, and has no more memory than it was given.

The real command, warden, filter and gate; the driver and its library are simulated silicon.

Usage: run.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, Result, Skip, environment, has, same, write  # noqa: E402

TENANT = os.path.abspath(sys.argv[3])
# Sanitizers look for leaks by ptrace, which the filter refuses.
QUIET = ('env', 'ASAN_OPTIONS=detect_leaks=0')
GIB = 1 << 30
NOBODY = 65534
CONTEXT_MAX = GIB  # what a context may take of a cap; 518 MiB were measured


def need_root():
    if os.geteuid() != 0:
        raise Skip('needs root')


def bulkhead(*args, stdin=b'', prefix=(), **env):
    done = subprocess.run([*prefix, BIN, *args], input=stdin, capture_output=True, check=False, timeout=120,
                          env=environment(**{'BULKHEAD_SIM_HOME': os.path.abspath('h'), **env}))
    return Result(done)


@contextlib.contextmanager
def node(scene='h200'):
    """A simulated node; yields the environment that names it. Nothing may be left behind."""
    need_root()
    os.mkdir('h')
    os.chmod('.', 0o755)
    r = bulkhead('sim', 'start', scene)
    same(r.rc, 0, repr(r))
    at = os.path.abspath('h/lab')
    try:
        yield {'BULKHEAD_SIM_HOME': os.path.abspath('h'), 'BULKHEAD_SIM': at, 'BULKHEAD_SYSROOT': f'{at}/sysroot',
               'BULKHEAD_NVML': f'{at}/lib/libnvidia-ml.so.1', 'LD_LIBRARY_PATH': f'{at}/lib'}
    finally:
        r = bulkhead('sim', 'stop', '--all')
    same(r.rc, 0, repr(r))


def gated(env, *command, cap='10GiB', options=(), **more):
    return bulkhead('run', '--memory', cap, *options, '--', *command, **env, **more)


def start(env, *command, cap='10GiB', options=(), **kw):
    """The same, left running."""
    return subprocess.Popen([BIN, 'run', '--memory', cap, *options, '--', *command], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env), **kw)


def finish(p, stdin=None):
    out, err = p.communicate(stdin, timeout=120)
    return p.returncode, out.decode(), err.decode()


def lines(text):
    """`key value` lines of the test tenant."""
    return dict(line.split(' ', 1) for line in text.splitlines() if ' ' in line)


def children(pid):
    return [int(c) for c in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]


def comm(pid):
    return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()


def warden_of(launcher):
    found = [c for c in children(launcher) if comm(c) == 'bulkhead-warden']
    same(len(found), 1, 'wardens')
    return found[0]


def state(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return 'gone'


def until(what, seconds=60):
    began, pause = time.monotonic(), 0.01
    while not what():
        waited = time.monotonic() - began
        assert waited < seconds, 'waited in vain'
        time.sleep(pause)
        if waited > 1:
            pause = min(pause * 1.2, 0.15)  # who asks takes its processor from what is waited for


def gone(pid):
    until(lambda: state(pid) in ('gone', 'Z'))


def status_field(pid, name):
    return re.search(rf'^{name}:\s+(\S+)', pathlib.Path(f'/proc/{pid}/status').read_text(), re.M).group(1)


def refused(rc, words, *args, prefix=(), **env):
    r = bulkhead('run', *args, prefix=prefix, **env)
    same((r.rc, r.out, r.err.count('\n')), (rc, '', 1), repr(r))
    for w in words if isinstance(words, tuple) else (words,):
        has(r.err, w)


def test_the_end_is_the_commands():
    with node() as env:
        for status in (0, 1, 3, 42, 255):
            r = gated(env, 'sh', '-c', f'exit {status}')
            same((r.rc, r.out, r.err), (status, '', ''))
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1):
            r = gated(env, 'sh', '-c', f'kill -{int(s)} $$')
            same((r.rc, r.out, r.err), (-s, '', ''), s.name)


def ignored_here():
    """What whoever runs this test has us ignore, less what Python ignores itself and gives back to its children."""
    line = next(s for s in pathlib.Path('/proc/self/status').read_text().splitlines() if s.startswith('SigIgn:'))
    own = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    return f'{int(line.split()[1], 16) & ~own:016x}'


def test_words_input_folder_and_environment_are_the_commands():
    with node() as env:
        r = gated(env, 'cat', stdin=b'one\ntwo\n')
        same((r.rc, r.out, r.err), (0, 'one\ntwo\n', ''))
        r = gated(env, 'printf', '%s|', 'a b', '--memory', '-m', '--', '')
        same(r.out, 'a b|--memory|-m|--||')
        r = gated({**env, 'WORD': 'x y'}, 'sh', '-c', 'pwd; echo "$WORD"; echo to-stderr >&2')
        same((r.out, r.err), (f'{os.getcwd()}\nx y\n', 'to-stderr\n'))
        # nothing open that was not open before (ls has the folder itself open as 3), nothing blocked or ignored
        r = gated(env, 'sh', '-c', 'grep -E "^Sig(Blk|Ign)" /proc/self/status; exec ls /proc/self/fd')
        same(r.out.split(), ['SigBlk:', '0' * 16, 'SigIgn:', ignored_here(), '0', '1', '2', '3'])


def test_commands_that_cannot_be_run():
    with node() as env:
        write('plain', 'text')
        r = gated(env, 'no-such-command')
        same((r.rc, r.out, r.err), (127, '', "bulkhead: 'no-such-command': No such file or directory\n"))
        r = gated(env, './plain')
        same((r.rc, r.out, r.err), (126, '', "bulkhead: './plain': Permission denied\n"))
        r = gated(env, '/')
        same(r.rc, 126, repr(r))


def test_wrong_words_are_one_line():
    with node() as env:
        for rc, words, args in (
                (2, '--memory SIZE', ['--', 'true']), (2, 'COMMAND', ['--memory', '10GiB']),
                (2, "'10' is not a size", ['--memory', '10', '--', 'true']), (2, '--memory', ['--memory', '-1GiB', '--', 'true']),
                (2, "did you mean '--memory'?", ['--memry', '1GiB', '--', 'true']),
                (2, ('--memory 100MiB', 'context', '600MiB'), ['--memory', '100MiB', '--', 'true']),
                (2, '600MiB', ['--memory', '599MiB', '--', 'true']),
                (1, ('200 GiB', 'H200', '141 GiB'), ['--memory', '200GiB', '--', 'true']),
                (2, '--tick', ['--memory', '1GiB', '--tick', 'x', '--', 'true']),
                (2, '--tick', ['--memory', '1GiB', '--tick', '0', '--', 'true']),
                (2, '--tick', ['--memory', '1GiB', '--tick', '10001', '--', 'true'])):
            refused(rc, words, *args, **env)
        same(gated(env, 'true', cap='600MiB').rc, 0)
        same(gated(env, 'true', cap='141GiB', options=['--tick', '5']).rc, 0)


def test_machines_that_cannot():
    need_root()
    os.mkdir('empty')
    here = {'BULKHEAD_SYSROOT': os.path.abspath('empty')}
    refused(4, 'no NVIDIA driver is loaded', '--memory', '1GiB', '--', 'touch', 'ran', **here)
    with node() as env:
        r = bulkhead('sim', 'break', 'lab', 'driver', '999.10.01')
        same(r.rc, 0, repr(r))
        refused(1, '999.10.01', '--memory', '1GiB', '--', 'touch', 'ran', **env)
        same(bulkhead('sim', 'break', 'lab', 'mend').rc, 0)
        # one listener in a chain
        r = gated(env, *QUIET, BIN, 'run', '--memory', '1GiB', '--', 'touch', 'ran')
        same((r.rc, r.out, r.err.count('\n')), (5, '', 1), repr(r))
        has(r.err, 'the kernel allows one')
        # a node that went away
        gone_env = {**env, 'BULKHEAD_SIM': os.path.abspath('nowhere')}
        r = gated(gone_env, 'touch', 'ran')
        assert r.rc in (4, 70) and r.err.count('\n') == 1, repr(r)
    assert not os.path.exists('ran'), 'the command ran without a gate'


def test_not_root():
    need_root()
    who = ('setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups')
    if subprocess.run([*who, BIN, 'version'], capture_output=True, check=False).returncode != 0:
        raise Skip('somebody else cannot run the command here')
    refused(3, ('needs root', 'CAP_SYS_PTRACE', f'user {NOBODY}'), '--memory', '1GiB', '--', 'true', prefix=who)
    # What it is about is two capabilities, not the number 0.
    two = (*who, '--inh-caps=+sys_ptrace,+kill', '--ambient-caps=+sys_ptrace,+kill')
    with node() as env:
        r = bulkhead('run', '--memory', '10GiB', '--', *QUIET, TENANT, 'fill', 'plain', prefix=two, **env)
        same(r.rc, 0, repr(r))
        same(int(lines(r.out)['got']), 9 * GIB)


def test_signals_are_sent_on():
    with node() as env:
        # (not `read`: a signal that comes just before it waits is not noticed until there is something to read)
        script = 'trap "echo got $0" USR1; trap "exit 9" TERM; echo ready; while :; do sleep 0.01; done'
        p = start(env, 'sh', '-c', script, 'it')
        same(p.stdout.readline(), b'ready\n')
        p.send_signal(signal.SIGUSR1)
        same(p.stdout.readline(), b'got it\n')
        p.send_signal(signal.SIGTERM)
        same(finish(p), (9, '', ''))
        p = start(env, 'sh', '-c', 'echo ready; exec sleep 1000')
        same(p.stdout.readline(), b'ready\n')
        p.send_signal(signal.SIGHUP)
        same(finish(p), (-signal.SIGHUP, '', ''))


def test_who_kills_the_launcher_kills_the_command():
    with node() as env:
        # also where the kernel has forgotten it: after a change of user
        for who in ((), ('setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups')):
            p = start(env, *who, 'sh', '-c', 'echo $$; exec sleep 1000')
            command = int(p.stdout.readline())
            warden = warden_of(p.pid)
            p.kill()
            p.communicate(timeout=60)
            gone(command)
            gone(warden)


def test_what_the_command_closes_is_closed():
    with node() as env:
        # for who reads from it, and for who writes to it
        p = start(env, 'sh', '-c', 'exec >&- <&-; exec sleep 30')
        same((p.stdout.read(), p.poll()), (b'', None), 'it was closed before the end')
        try:
            p.stdin.write(b'x' * (1 << 20))  # more than fits
            raise AssertionError('somebody still has it open')
        except BrokenPipeError:
            p.stdin = None
        p.terminate()
        same(p.wait(timeout=60), -signal.SIGTERM)
        same(p.stderr.read(), b'')
        p.stdout.close()
        p.stderr.close()
        # and a lock that it inherited and gave up
        with open('lock', 'w', encoding='ascii') as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            p = start(env, 'sh', '-c', f'exec {f.fileno()}>&-; echo closed; exec sleep 1000', pass_fds=[f.fileno()])
            same(p.stdout.readline(), b'closed\n')
        with open('lock', 'r+', encoding='ascii') as f:
            until(lambda: locked(f))
        p.terminate()
        same(finish(p)[0], -signal.SIGTERM)


def locked(f):
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def test_a_pipe_that_was_ignored_is_ignored():
    with node() as env:
        for trap, bit in (('', 0), ("trap '' PIPE; ", 1 << signal.SIGPIPE - 1)):
            r = bulkhead('run', '--memory', '1GiB', '--', 'grep', 'SigIgn', '/proc/self/status', **env,
                         prefix=('sh', '-c', f'{trap}exec "$@"', 'sh'))
            same(int(r.out.split()[1], 16) & 1 << signal.SIGPIPE - 1, bit, repr(r))


def test_limits_are_the_commands():
    """Those of the shell are not for the warden, which serves every process of the command."""
    with node() as env:
        for words, name in (('-Sn 64', 'Max open files'), ('-St 1000', 'Max cpu time'), ('-Sv 99999999999', 'Max address space'),
                            ('-Sf 4096', 'Max file size')):
            p = subprocess.Popen(['sh', '-c', f'ulimit {words}; exec "$@"', 'sh', BIN, 'run', '-m', '1GiB', '--', 'sh', '-c',
                                  'echo ready; read -r x'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(**env))
            same(p.stdout.readline(), b'ready\n', words)
            both = [re.search(rf'^{name} +(\S+) +(\S+)', pathlib.Path(f'/proc/{pid}/limits').read_text(), re.M).groups()
                    for pid in (p.pid, warden_of(p.pid))]
            assert both[0][0] != both[0][1], (words, both)
            same(both[1][0], both[1][1], words)
            same(finish(p, b'\n'), (0, '', ''))


def test_a_warden_without_room_says_so():
    with node() as env:
        hold = f'{" ".join(QUIET)} {TENANT} hold 100MiB 1000'
        script = f'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ({hold} >/dev/null 2>&1; echo over) & done; read -r x; kill 0'
        p = subprocess.Popen(['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh', BIN, 'run', '-m', '20GiB', '--stats', '--', 'setsid', '-w',
                              'sh', '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(**env))
        same(p.stdout.readline(), b'over\n')
        _, _, err = finish(p, b'\n')
        assert re.search(r'^bulkhead: \d+ calls failed because the warden could open no more files: .*ulimit -Hn', err, re.M), err


def test_what_outlives_the_command_stays_gated():
    with node() as env:
        os.mkfifo('fifo')
        script = f'(read -r go < fifo; {" ".join(QUIET)} {TENANT} fill plain > late 2>&1) & echo $!; read -r x; exit 6'
        p = start(env, 'sh', '-c', script)
        behind = int(p.stdout.readline())
        warden = warden_of(p.pid)
        p.stdin.write(b'\n')
        p.stdin.flush()
        same(p.wait(timeout=60), 6)
        assert state(warden) in 'SR', 'the warden must stay'
        pathlib.Path('fifo').write_text('go\n')
        gone(behind)
        same(int(lines(pathlib.Path('late').read_text())['got']), 9 * GIB)
        gone(warden)
        p.communicate(timeout=60)


def test_the_cap_holds():
    with node() as env:
        for path in ('plain', 'small', 'vmm-released', 'async', 'array', 'managed', 'contexts'):
            # by the card's own numbers: in a slice the tenant would stop by itself where the slice ends
            r = gated(env, *QUIET, TENANT, 'fill', path, options=['--stats', '--view', 'card'])
            same(r.rc, 0, f'{path} {r!r}')
            got = lines(r.out)
            has(got['error'], 'CUDA_ERROR_OUT_OF_MEMORY')
            taken = int(got['taken'])
            assert 10 * GIB - CONTEXT_MAX - GIB <= taken <= 10 * GIB, f'{path} {r!r}'
            m = re.fullmatch(r'bulkhead: peak ([\d.]+) GiB of 10 GiB, (\d+) refused for memory, (\d+) denied, 0 killed, '
                             r'(\d+) calls seen\n', r.err)
            assert m and 9 <= float(m[1]) <= 10 and int(m[2]) >= 1 and int(m[4]) > 10, f'{path} {r!r}'
        # several processes share one cap: two of 3 GiB and their contexts fit, four do not
        script = f'for i in 1 2 3 4; do ({" ".join(QUIET)} {TENANT} hold 3GiB 1000; echo over) & done; wait'
        p = start(env, 'sh', '-c', script, start_new_session=True)
        try:
            same(sorted(p.stdout.readline() for _ in range(4)), [b'over\n'] * 2 + [b'ready\n'] * 2)
        finally:
            os.killpg(p.pid, signal.SIGKILL)
        has(finish(p)[2], 'CUDA_ERROR_OUT_OF_MEMORY')
        if not tap.for_others(TENANT):
            return
        # another user inside is held too, and not hindered
        r = gated(env, 'setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', *QUIET, TENANT, 'fill', 'plain')
        same(int(lines(r.out)['got']), 9 * GIB, repr(r))


def test_stats_for_programs():
    with node() as env:
        r = gated(env, *QUIET, TENANT, 'fill', 'plain', options=['--stats', '-o', 'json', '--view', 'card'])
        same((r.rc, r.err.count('\n')), (0, 1), repr(r))
        got = json.loads(r.err)
        same(list(got), ['capBytes', 'peakBytes', 'refusedForMemory', 'denied', 'killed', 'whyKilled', 'callsSeen', 'callsIssued',
                         'callsContinued', 'counts'])
        same((got['capBytes'], got['denied'], got['killed'], got['whyKilled']), (10 * GIB, 0, 0, None))
        assert 9 * GIB <= got['peakBytes'] <= 10 * GIB and got['refusedForMemory'] >= 1 and got['counts'] >= 1, got
        assert 10 < got['callsIssued'] < got['callsSeen'] and got['callsContinued'] >= 1, got
        # the command's own words on standard error come before it, and its status is its own
        r = gated(env, 'sh', '-c', 'echo mine >&2; exit 3', options=['--stats', '-o', 'json'])
        mine, stats = r.err.splitlines()
        same((r.rc, mine, json.loads(stats)['peakBytes']), (3, 'mine', 0))
        # as text it is as without -o
        same(gated(env, 'true', options=['--stats', '-o', 'text']).err.split(',')[0], 'bulkhead: peak 0 MiB of 10 GiB')
        refused(2, ('--output', '--stats'), '--memory', '1GiB', '-o', 'json', '--', 'true', **env)
        refused(2, 'json', '--memory', '1GiB', '--stats', '-o', 'yaml', '--', 'true', **env)


def test_the_warden_is_small_and_has_few_rights():
    with node() as env:
        p = start(env, 'sh', '-c', 'echo ready; read -r x')
        p.stdout.readline()
        w = warden_of(p.pid)
        caps = 1 << 5 | 1 << 7 | 1 << 19  # kill, setuid, sys_ptrace
        for field in ('CapEff', 'CapPrm'):
            same(int(status_field(w, field), 16), caps, field)
        same(int(status_field(w, 'CapInh'), 16), 0)
        same((status_field(w, 'NoNewPrivs'), status_field(w, 'Seccomp')), ('1', '0'))
        stat = pathlib.Path(f'/proc/{w}/stat').read_text().rpartition(')')[2].split()
        same((int(stat[3]), int(stat[4])), (w, 0), 'session and terminal')
        same(os.readlink(f'/proc/{w}/cwd'), '/')
        same([os.readlink(f'/proc/{w}/fd/{i}') for i in range(3)], ['/dev/null'] * 3)
        # kept by the launcher, for the next warden, and by nobody else: else a death would leave calls waiting for ever
        held = [pid for pid in (p.pid, *children(p.pid)) for f in os.listdir(f'/proc/{pid}/fd')
                if 'seccomp' in os.readlink(f'/proc/{pid}/fd/{f}')]
        same(held, [p.pid, w])
        sanitized = int(status_field(w, 'VmSize')) > 1 << 30
        rss_kib = int(status_field(w, 'VmRSS'))
        same(finish(p, b'\n')[0], 0)
        gone(w)
        assert sanitized or rss_kib < 3072, f'{rss_kib} KiB'


# ---- a terminal ----

def shell(argv, env, say, background):
    """A session leader as a shell is one: runs argv as its foreground job, tells how it stops and ends, and wakes it.
    background: it comes to the foreground when its command has been stopped."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        if not background:
            os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvpe(argv[0], argv, env)
    if background:
        until(lambda: 'T' in [state(c) for c in children(job)])
        os.tcsetpgrp(0, job)
        os.write(say, b'in front\n')
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.write(say, b'stopped\n')
            os.tcsetpgrp(0, os.getpgrp())
            time.sleep(0.05)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        else:
            os.write(say, b'ended %d\n' % os.waitstatus_to_exitcode(status))
            os._exit(0)


class Terminal:
    def __init__(self, env, *command, leads=False, background=False):
        """leads: with no shell in between."""
        try:
            os.close(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
        except OSError as e:
            raise tap.Skip(f'no terminal to be had here: {e}') from e
        hear, say = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                argv = [BIN, 'run', '--memory', '1GiB', '--', *command]
                if leads:
                    os.execvpe(argv[0], argv, environment(**env))
                shell(argv, environment(**env), say, background)
            finally:
                os._exit(99)
        os.close(say)
        self.shell = os.fdopen(hear, 'rb', 0)
        self.text = ''

    def expect(self, words):
        end = time.monotonic() + 60
        while words not in self.text:
            ready, _, _ = select.select([self.fd], [], [], 1)
            assert time.monotonic() < end, f'{words!r} did not come: {self.text!r}'
            if ready:
                self.text += os.read(self.fd, 4096).decode()
        self.text = self.text.partition(words)[2]

    def type(self, what):
        os.write(self.fd, what)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        self.shell.close()


@contextlib.contextmanager
def terminal(env, *command, **kw):
    t = Terminal(env, *command, **kw)
    try:
        yield t
    finally:
        t.close()


def test_a_terminal_is_the_commands():
    with node() as env:
        with terminal(env, 'sh', '-c', 'test -t 0 && stty size && read -r x && echo "<$x>"') as t:
            fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack('4H', 33, 77, 0, 0))
            t.type(b'words\n')
            t.expect('<words>')
            same(t.shell.readline(), b'ended 0\n')
        with terminal(env, 'cat') as t:
            t.type(b'there\n')
            t.expect('there')  # the terminal's echo
            t.expect('there')  # and cat's
            t.type(b'\x03')
            same(t.shell.readline(), b'ended -2\n')
        # one Ctrl-C is one signal, also where it is handled
        script = 'n=0; trap \'n=$((n+1)); echo int $n\' INT; trap "echo winch" WINCH; echo ready; while :; do sleep 0.05; done'
        with terminal(env, 'sh', '-c', script) as t:
            t.expect('ready')
            t.type(b'\x03')
            t.expect('int 1')
            t.type(b'\x03')
            t.expect('int 2')
            fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack('4H', 20, 40, 0, 0))
            t.expect('winch')
            t.type(b'\x1c')
            same(t.shell.readline(), b'ended -3\n')


def test_job_control():
    with node() as env:
        with terminal(env, 'sh', '-c', 'echo ready; read -r x; echo "<$x>"; kill -TSTP $$; echo again; exit 4') as t:
            t.expect('ready')
            t.type(b'\x1a')
            same(t.shell.readline(), b'stopped\n')
            t.type(b'on\n')
            t.expect('<on>')
            same(t.shell.readline(), b'stopped\n')
            t.expect('again')
            same(t.shell.readline(), b'ended 4\n')
        # whichever signal it stops itself with
        with terminal(env, 'sh', '-c', 'echo ready; kill -STOP $$; echo again; exit 5') as t:
            same(t.shell.readline(), b'stopped\n')
            t.expect('again')
            same(t.shell.readline(), b'ended 5\n')
        # and where nobody at the terminal saw it stop: it does not hear Ctrl-Z, and the shell must not wait for ever
        with terminal(env, 'sh', '-c', 'kill -STOP $$; echo again; exit 6', background=True) as t:
            same(t.shell.readline(), b'in front\n')
            t.type(b'\x1a')
            same(t.shell.readline(), b'stopped\n')
            t.expect('again')
            same(t.shell.readline(), b'ended 6\n')


def test_a_terminal_that_goes_away():
    with node() as env:
        t = Terminal(env, 'sh', '-c', 'echo $$; exec sleep 1000')
        t.expect('\n')
        until(lambda: 'sleep' in [comm(c) for s in children(t.pid) for c in children(s)])
        sleeper = next(c for s in children(t.pid) for c in children(s) if comm(c) == 'sleep')
        os.close(t.fd)
        gone(sleeper)
        os.waitpid(t.pid, 0)
        t.shell.close()
        # with no shell in between it is told to the leader alone, which is bulkhead run (ssh -t, a container's terminal)
        t = Terminal(env, 'sh', '-c', 'exec sleep 1000', leads=True)
        until(lambda: 'sleep' in [comm(c) for c in children(t.pid)])
        sleeper = next(c for c in children(t.pid) if comm(c) == 'sleep')
        os.close(t.fd)
        gone(sleeper)
        same(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]), -signal.SIGHUP)
        t.shell.close()


if __name__ == '__main__':
    tap.main(globals())
