# SPDX-License-Identifier: Apache-2.0
"""The verbs that talk to a daemon, against the API with a real store and nothing behind it.

Usage: remote.py BULKHEAD SOURCE-ROOT TESTD
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
import socket
import subprocess
import sys
import termios
import threading
import time

COMMAND, TESTD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
sys.argv[1] = TESTD  # what door.py starts
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'api'))
import door as d  # noqa: E402
import tap  # noqa: E402
from door import door, has, same, write  # noqa: E402


def call(t, *args, who='root', stdin=b'', **env):
    """The command, as one of the callers of door.py, against the daemon t."""
    uid, gid = d.CALLERS[who]
    ids = {} if not uid else {'user': uid, 'group': gid, 'extra_groups': []}
    done = subprocess.run([COMMAND, *args], input=stdin, capture_output=True, timeout=60, check=False,
                          env=tap.environment(BULKHEAD_RUN_DIR=os.path.dirname(t.path), **env), **ids)
    return tap.Result(done)


def good(t, *args, **kw):
    r = call(t, *args, **kw)
    same((r.rc, r.err), (0, ''), repr(r))
    return r.out


def start(t, *args, **more):
    return subprocess.Popen([COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=tap.environment(BULKHEAD_RUN_DIR=os.path.dirname(t.path)), **more)


def test_one_screen_says_what_is_going_on():
    with door() as t:
        out = good(t)
        for words in ('testd, 3 GPUs, simulated', 'a 2002 J1', 'b 2009 J2', 'a 2001 J5 0.5 GPU, b 2009 J6 0.5 GPU', 'Waiting',
                      'too few GPUs are free', 'warn  gpu: one is warm; mend: cool it', 'user:root: operator'):
            has(out, words)
        same(max(map(len, out.splitlines())) <= 80, True, out)
        doc = json.loads(good(t, '-o', 'json'))
        d.judge(doc, {'$ref': '#/components/schemas/Status'}, t.document())


def test_a_tenant_sees_itself_and_others_without_names():
    with door() as t:
        for args in ([], ['ps'], ['leases'], ['tenants'], ['quota'], ['usage'], ['usage', '--by', 'user'],
                     ['top', '--once'], ['describe', 'J1'], ['describe', 'L3']):
            out = good(t, *args, who='tenant-user')
            assert not re.search(r'\bb\b|2009|J2\b|L2\b(?! cache)', out), out
        has(good(t, who='tenant-user'), 'others (1)')
        has(good(t, 'ps', who='tenant-user'), 'others: 3 jobs')
        r = call(t, 'describe', 'J2', who='tenant-user')
        same((r.rc, r.err), (4, "bulkhead: there is no job 'J2'\n"))


def test_json_is_the_apis():
    with door() as t:
        doc = t.document()
        for args, schema in ((['ps'], 'Jobs'), (['ps', '--all'], 'Jobs'), (['leases'], 'Leases'), (['tenants'], 'Tenants'),
                             (['tenants', 'a'], 'TenantDetail'), (['quota'], 'Quotas'), (['usage'], 'Usage'),
                             (['describe', 'J1'], 'JobDetail'), (['describe', 'L1'], 'LeaseDetail'), (['describe', '0'], 'Gpu'),
                             (['token', 'list'], 'Tokens'), (['policy', 'show'], 'Policy')):
            got = json.loads(good(t, *args, '-o', 'json'))
            d.judge(got, {'$ref': f'#/components/schemas/{schema}'}, doc, str(args))
        same([j['id'] for j in json.loads(good(t, 'ps', '-o', 'json'))['jobs']], ['J1', 'J2', 'J5', 'J6', 'J3', 'J4'])
        same([j['id'] for j in json.loads(good(t, 'ps', '-a', '-n', '2', '-o', 'json'))['jobs']], ['J6', 'J5'])


def test_lists_are_asked_for_page_by_page():
    with door() as t:
        for _ in range(1100):
            while t.post('/v1/jobs', {'tenant': 'a', 'argv': ['x']}).status == 429:
                time.sleep(0.05)  # faster than one caller may be
        same(len(json.loads(good(t, 'ps', '-n', '5000', '-o', 'json'))['jobs']), 1106)
        has(good(t, 'ps'), 'there may be more than these 200: --limit')


def test_no_daemon():
    for args in (['ps'], ['leases'], ['tenants'], ['quota'], ['usage'], ['describe', '0'], ['logs', 'J1'], ['cancel', 'J1'],
                 ['why', 'J1'], ['cordon', '0'], ['drain', '0'], ['token', 'list'], ['backup', 'x'], ['policy', 'show'],
                 ['submit', '-t', 'a', '--', 'x'], ['run', '-t', 'a', '--', 'x'], ['ps', '-w']):
        r = tap.Result(subprocess.run([COMMAND, *args], capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                                      env=tap.environment(BULKHEAD_RUN_DIR='.')))
        same((r.rc, r.out, r.err.count('\n')), (4, '', 1), f'{args}: {r!r}')
        has(r.err, 'start one: bulkheadd --policy FILE')


def test_submit_says_what_next():
    with door() as t:
        r = call(t, 'submit', '-t', 'a', '-g', '0.5', '-m', '10GiB', '-n', 'mine', '--can', 'pause,requeue', '--', 'echo', 'a b',
                 who='tenant-user', FOO='bar')
        same((r.rc, r.out, r.err), (0, 'J7\n', 'next: bulkhead logs -f J7\nnext: bulkhead why J7\n'))
        job = t.get('/v1/jobs/J7').json
        same((job['argv'], job['cwd'], job['job']['milli'], job['job']['memory_mib'], job['job']['name']),
             (['echo', 'a b'], os.getcwd(), 500, 10240, 'mine'))
        same(good(t, 'submit', '-t', 'a', '--dry-run', '--', 'x'), 'it would be taken\n')
        same(len(t.get('/v1/jobs').json['jobs']), 7)
        for args, rc, words in ((['-t', 'zz'], 4, "there is no tenant 'zz'"), ([], 2, '--tenant NAME'),
                                (['-t', 'a', '-g', '1.5'], 2, '--gpus'), (['-t', 'a', '-m', '5'], 2, '--memory')):
            r = call(t, 'submit', *args, '--', 'x')
            same((r.rc, r.out), (rc, ''), repr(r))
            has(r.err, words)
        r = call(t, 'submit', '-t', 'a', '--', 'x', who='viewer')
        same(r.rc, 3, repr(r))
        has(r.err, 'had: user:2005: viewer; next: ')


def test_why():
    with door() as t:
        r = call(t, 'why', 'J3')
        same((r.rc, r.err), (1, ''))
        for words in ('J3  room', 'too few GPUs are free', 'J1 of a: 1 GPU', 'J2 of b', 'helps    J1 of a ends'):
            has(r.out, words)
        r = call(t, 'why', '3', who='tenant-admin')
        has(r.out, 'others: 1 job with 1 GPU')
        has(r.out, 'others would have to give something up')
        r = call(t, 'why', 'J1')
        same((r.rc, r.out), (0, 'J1  not waiting\n  why      running: runs\n'))
        has(call(t, 'why', 'train').err, '--scenario FILE')


def test_cancel_and_orders_of_leases():
    with door() as t:
        same(good(t, 'cancel', 'J3', who='tenant-admin'), 'J3 is cancelled\n')
        r = call(t, 'cancel', 'J4', 'J99', 'x')
        same((r.rc, r.out), (4, 'J4 is cancelled\n'))
        has(r.err, "there is no job 'J99'")
        same(call(t, 'cancel', 'J1', '--reason', 'please fail').rc, 5)
        good(t, 'pause', 'L1')
        has(good(t, 'leases'), 'paused')
        good(t, 'resume', 'l1')
        assert 'paused' not in good(t, 'leases')
        good(t, 'suspend', 'L1')
        same(call(t, 'pause', 'L2', who='tenant-admin').rc, 4)
        r = call(t, 'pause', 'L99')
        same((r.rc, r.err), (4, "bulkhead: there is no lease 'L99'\n"))


def test_gpus_are_held_back_and_given_away_again():
    uuid = 'GPU-11111111-1111-1111-1111-111111111111'
    with door() as t:
        r = call(t, 'cordon', '1', '--reason', 'fan')
        same((r.rc, r.err), (0, 'next: bulkhead resume 1\n'))
        good(t, 'resume', uuid)
        good(t, 'resume', '1')
        r = call(t, 'drain', '1')
        same((r.rc, r.out), (2, ''))
        has(r.err, '--yes')
        same(call(t, 'drain', uuid, '-y').rc, 0)
        same(call(t, 'cordon', '1', who='viewer').rc, 3)
        same(call(t, 'cordon', '9').rc, 4)


def test_policy_is_shown_before_it_is_applied():
    with door() as t:
        write('p.yaml', d.POLICY)
        r = call(t, 'policy', 'diff', 'p.yaml')
        same((r.rc, r.err), (0, 'next: bulkhead policy apply p.yaml\n'))
        has(r.out, 'p.yaml against version 1: 1 change for 1 tenant')
        has(r.out, 'quota.gpus  2       4')
        r = call(t, 'policy', 'apply', 'p.yaml')
        same(r.rc, 2)
        has(r.err, '--yes')
        r = call(t, 'policy', 'apply', 'p.yaml', '--yes', '--reason', 'test')
        same((r.rc, r.err), (0, ''))
        has(r.out, 'version 2 is in force\n')
        same(t.get('/v1/policy').json['why'], 'test')
        # The diff of the test daemon always looks at version 1, which is in force no more.
        same(call(t, 'policy', 'apply', 'p.yaml', '--yes').rc, 5)
        r = call(t, 'policy', 'show')
        same((r.rc, r.out), (0, d.POLICY))
        same(call(t, 'policy', 'show', '--version', '1').out, 'bulkhead: 1\n')
        write('w.yaml', 'wrong: 1\n')
        same(call(t, 'policy', 'diff', 'w.yaml').rc, 2)
        same(call(t, 'policy', 'diff', 'none.yaml').rc, 4)
        r = call(t, 'policy', 'diff', '/dev/zero')  # has no end
        same(r.rc, 2)
        has(r.err, 'is larger than')
        same(call(t, 'policy', 'frob').rc, 2)


def on_terminal(t, args, typed, columns=80):
    """Runs it on a terminal of its own; what it showed, and how it ended."""
    master, slave = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(slave, fd)
        os.environ.update(BULKHEAD_RUN_DIR=os.path.dirname(t.path), COLUMNS=str(columns), TERM='xterm')
        os.execv(COMMAND, [COMMAND, *args])
    os.close(slave)
    shown = b''
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:
            piece = b''
        if not piece:
            break
        shown += piece
        if typed and typed[0][0] in shown:
            os.write(master, typed.pop(0)[1])
    os.close(master)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_people_are_asked():
    with door() as t:
        write('p.yaml', d.POLICY)
        shown, rc = on_terminal(t, ['policy', 'apply', 'p.yaml'], [(b'[y/N]', b'n\n')])
        same(rc, 1, shown)
        has(shown, 'nothing was changed')
        shown, rc = on_terminal(t, ['policy', 'apply', 'p.yaml'], [(b'[y/N]', b'yes\n')])
        same(rc, 0, shown)
        assert shown.index('quota.gpus') < shown.index('Apply it?') < shown.index('version 2 is in force')
        shown, rc = on_terminal(t, ['drain', '2'], [(b'[y/N]', b'y\n')])
        same(rc, 0, shown)
        has(shown, 'GPU 2 has to be left by: a 2001 J5 0.5 GPU, b 2009 J6 0.5 GPU. Drain it?')


def test_usage():
    with door() as t:
        out = good(t, 'usage', '--by', 'both', '-o', 'csv')
        rows = [line.split(',') for line in out.splitlines()]
        same(rows[0][:7], ['from', 'to', 'tenant', 'cost_center', 'user', 'gpu', 'mechanism'])
        same([(r[2], r[6], r[10]) for r in rows[1:]], [('a', 'timeslice', '1'), ('a', 'whole', '1'), ('b', 'timeslice', '1'), ('b', 'whole', '1')])
        same([line.split()[0] for line in good(t, 'usage').splitlines()[1:5]], ['TENANT', 'a', 'b', 'together'])
        for by, names in (('mechanism', ['timeslice', 'whole']), ('user', ['a/2001', 'a/2002', 'b/2009']),
                          ('cost-center', ['cc-a', 'none']), ('gpu', ['GPU-0000', 'GPU-2222', 'GPU-1111'])):
            lines = good(t, 'usage', '--by', by).splitlines()[2:]
            same([line.split()[0][:9 if by == 'mechanism' else 8] for line in lines[:len(names) + 1]], [*names, 'together'])
        has(good(t, 'usage'), 'Of 2 of 4 active leases it is unknown whether they compute')
        raw = good(t, 'usage', '--raw').splitlines()
        same([line.split(',')[5] for line in raw[1:]], ['L1', 'L2', 'L3', 'L4'])
        same(call(t, 'usage', '--raw', '-o', 'json').rc, 2)
        has(call(t, 'usage', '-o', 'focus').err, 'no `prices`')
        doc = json.loads(good(t, 'usage', '--from', '2026-01-01', '--to', '2026-02-01', '-o', 'json'))
        same((doc['from_ms'], doc['to_ms'], doc['usage']), (1767225600000, 1769904000000, []))
        same(call(t, 'usage', '--from', 'yesterday').rc, 2)


def test_tokens_and_backups():
    with door() as t:
        r = call(t, 'token', 'create', '--role', 'viewer', '--subject', 'service:ci', '--ttl', '1h')
        same(r.rc, 0, repr(r))
        assert re.fullmatch(r'bh_[0-9a-f]{64}\n', r.out), r.out
        has(r.err, 'this is T1')
        has(good(t, 'token', 'list'), 'holds 59m')
        same(good(t, 'token', 'revoke', 'T1'), 'T1 is revoked\n')
        has(good(t, 'token', 'list'), 'revoked')
        same(call(t, 'token', 'create').rc, 2)
        same(call(t, 'token', 'revoke', 'T9').rc, 4)
        has(good(t, 'backup', 'one'), 'backups/one')
        assert os.path.exists(os.path.join(os.path.dirname(t.path), 'backups', 'one'))
        same(call(t, 'backup', 'one').rc, 5)
        same(call(t, 'backup', 'two', who='viewer').rc, 3)


def test_logs_and_following_them():
    with door() as t:
        same(good(t, 'logs', 'J1'), 'hello of L1\n')
        same(good(t, 'logs', 'J1', '--lease', 'L1'), 'hello of L1\n')
        same(good(t, 'logs', 'J1', '--err'), '')
        same(call(t, 'logs', 'J1', who='viewer').rc, 3)
        p = start(t, 'logs', '-f', 'J1')
        same(p.stdout.readline(), 'hello of L1\n')
        t.order('write 1 more')
        same(p.stdout.readline(), 'more\n')
        t.order('write 1 last')
        t.order('end 1')
        out, err = p.communicate(timeout=30)
        same((p.returncode, out, err), (0, 'last\n', ''))


def test_run_follows_its_job_and_a_signal_cancels_it():
    with door() as t:
        p = start(t, 'run', '--tenant', 'a', '--', 'sleep', '1')
        has(p.stderr.readline(), 'J7 waits: too few GPUs are free')
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGINT)  # as a terminal and timeout(1) together do
        _, err = p.communicate(timeout=30)
        same(p.returncode, -signal.SIGINT, err)
        has(err, 'J7 is being cancelled')
        same(t.get('/v1/jobs/J7').json['job']['end'], 'cancelled')
        p = start(t, 'run', '-t', 'a', '--', 'x')
        has(p.stderr.readline(), 'J8 waits')
        t.order('end 8')
        p.communicate(timeout=30)
        same(p.returncode, 3)
        for args, words in ((['-t', 'a', '--share', '5'], "--share is not for a tenant's job"), (['--gpus', '2'], 'goes with --tenant'),
                            (['-t', 'a', '--cap', '1'], '--cap: a part of a GPU'),
                            (['-t', 'a', '--rdma'], "--rdma is not for a tenant's job")):
            r = call(t, 'run', *args, '--', 'x')
            same(r.rc, 2)
            has(r.err, words)


class Between:
    """Stands between the command and the daemon, and can go away."""

    def __init__(self, t, folder):
        os.mkdir(folder)
        self.to, self.path, self.open = t.path, f'{folder}/api.sock', []
        self.come()

    def come(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.serve, args=(self.listener,), daemon=True).start()

    def serve(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.to)
            self.open += [near, far]
            for x, y in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(x, y), daemon=True).start()

    @staticmethod
    def pump(x, y):
        try:
            while piece := x.recv(65536):
                y.sendall(piece)
            y.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def go(self):
        os.unlink(self.path)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.open:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_a_daemon_that_is_away_for_a_moment_is_waited_for():
    with door() as t:
        between = Between(t, 'between')
        p = start(between, 'run', '-t', 'a', '--', 'x')
        has(p.stderr.readline(), 'J7 waits')
        between.go()
        has(p.stderr.readline(), 'the daemon does not answer')
        t.order('end 7')
        between.come()
        p.communicate(timeout=30)
        same(p.returncode, 3)


@contextlib.contextmanager
def news(t):
    """Something happens now and then: what changed between the first look and the first event is shown with the next one."""
    over = threading.Event()

    def go_on():
        while not over.wait(0.5):
            t.order('changed job 1 a running')
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_watch_in_a_pipe_shows_it_again_when_it_changes():
    with door() as t, news(t):
        p = start(t, 'ps', '-w')
        while 'J4' not in p.stdout.readline():
            pass
        t.post('/v1/jobs', {'tenant': 'b', 'argv': ['x']})
        line = ''
        while 'J7' not in line:
            line = p.stdout.readline()
        has(line, 'waiting*')
        p.kill()
        p.communicate()
        same(call(t, 'ps', '-w', '-o', 'json').rc, 2)


def test_watch_on_a_terminal_does_not_flicker():
    with door() as t, news(t):
        later = threading.Timer(2, t.post, ('/v1/jobs', {'tenant': 'b', 'argv': ['x']}))
        later.start()
        shown, rc = on_terminal(t, ['ps', '-w'], [(b'J7', b'\x03')])
        same(rc, -signal.SIGINT, shown)
        same(shown.count('\x1b[2J'), 1)  # the screen is cleared once, at the beginning
        assert shown.count('\x1b[H') >= 2, shown
        assert all(line.endswith(('\x1b[K', '')) for line in shown.split('\r\n')), shown
        later.join()


def test_hostile_daemons():
    """Whatever comes from the socket: one line, an exit status of the list, no crash."""
    answers = [b'', b'HTTP/1.1 200 OK\r\n\r\n', b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"jobs":[',
               b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]', b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"jobs": 1}',
               b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"jobs": [{}]}', b'HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n',
               b'HTTP/1.1 404 x\r\nContent-Length: 65\r\n\r\n{"error": {"code": "not_found", "message": "\\u001b[31mred\\u0000"}}',
               b'\x00\xff' * 100, b'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n']
    calls = [[], ['ps'], ['leases'], ['tenants'], ['tenants', 'a'], ['quota'], ['usage'], ['describe', 'J1'], ['describe', 'L1'],
             ['describe', '0'], ['logs', 'J1'], ['why', 'J1'], ['token', 'list'], ['policy', 'show'], ['submit', '-t', 'a', '--', 'x'],
             ['token', 'create', '--role', 'viewer']]
    s = socket.socket(socket.AF_UNIX)
    s.bind('api.sock')
    s.listen(64)
    current = [b'']

    def serve():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.recv(65536)
            c.sendall(current[0])
            c.close()
    threading.Thread(target=serve, daemon=True).start()
    for current[0] in answers:
        for args in calls:
            r = tap.Result(subprocess.run([COMMAND, *args], capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                                          env=tap.environment(BULKHEAD_RUN_DIR='.')))
            assert r.rc in ((0, 1, 2, 3, 4, 5, 6, 7, 70)), f'{args} {current[0]!r}: {r!r}'
            assert r.rc != 0 or args == [] or args[0] == 'logs', f'{args} {current[0]!r}: {r!r}'
            assert '\x1b' not in r.out + r.err and 'anitizer' not in r.err, repr(r)
    s.close()


if __name__ == '__main__':
    tap.main(globals())
