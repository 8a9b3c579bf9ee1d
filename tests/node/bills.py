# SPDX-License-Identifier: Apache-2.0
"""Bills over a long past: added up beside the daemon, to the last byte what the records say, and nobody waits for them.

Usage: bills.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import contextlib
import csv
import io
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import time
from datetime import datetime, timezone

import lab
from lab import NOBODY, Asked, children, node, same, until
from usage import PRICED, bill, bulkhead

ROWS = 15_000  # of each of two tenants: more than are added up in the loop (src/api/handle_usage.c)
STEP = 100     # ms from one to the next
NAME = 'bulkhead-bill'


def long_past(n):
    """A node whose chat and lab have had thousands of short leases: copies of one that each has had. From when on, in whole seconds."""
    for j in (n.submit('chat', 'true'), n.submit('lab', 'true', milli=100, memory_mib=1024, uid=NOBODY)):
        n.wait(j)
    n.quiet()
    n.kill(signal.SIGTERM)
    base = int(time.time()) * 1000 - 2 * ROWS * STEP
    with contextlib.closing(sqlite3.connect(f'{n.state}/bulkhead.db')) as db, db:
        trigger, = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'usage_begin'").fetchone()
        db.execute('DROP TRIGGER usage_begin')
        columns = [r[1] for r in db.execute('PRAGMA table_info(usage)') if r[1] != 'id']
        changed = {'from_ms': f'{base} + i * {STEP}', 'to_ms': f'{base} + i * {STEP} + 1 + i % {STEP}'}
        for tenant in ('chat', 'lab'):
            db.execute(f'WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1})'
                       f' INSERT INTO usage({", ".join(columns)}) SELECT {", ".join(changed.get(c, c) for c in columns)}'
                       ' FROM n, (SELECT * FROM usage WHERE tenant = ? ORDER BY id LIMIT 1)', (tenant,))
        db.execute(trigger)
    n.start()
    return base


def answered(n, where, **kw):
    """Past the purse of whoever asks."""
    while True:
        r = n.get(where, **kw)
        if r.status != 503 or r.headers['Retry-After'] is None:
            return r
        time.sleep(int(r.headers['Retry-After']))


def is_stopped(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'T'
    return False


def caught(n, where, ask=Asked, **kw):
    """A bill whose child was stopped while it added up, and the child."""
    for _ in range(50):
        asked = ask(n, where, **kw)
        while asked.is_alive():
            for pid in children(n.process.pid, NAME):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.05)  # it may have been over at that very moment, or be the one of the bill before
                    if asked.is_alive() and is_stopped(pid):
                        return asked, pid
                    os.kill(pid, signal.SIGCONT)
        r = asked.answer
        assert r.ok or r.status == 503, repr(r)
        if not r.ok:
            time.sleep(int(r.headers['Retry-After']))
    raise AssertionError('no bill was added up beside the daemon, or every one was over too soon')


class Leaver:
    """Somebody who may go away before he is answered."""

    def __init__(self, n, where):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f'{n.run}/api.sock')
        self.socket.sendall(f'GET {where} HTTP/1.1\r\nHost: bulkhead\r\n\r\n'.encode())
        self.socket.setblocking(False)
        self.answer = None

    def is_alive(self):
        """And waits: nothing came."""
        if self.answer:
            return False
        with contextlib.suppress(BlockingIOError):
            head = self.socket.recv(65536).decode()
            self.answer = lab.Answer(int(head.split()[1]), {'Retry-After': '5'}, head)
            self.socket.close()
        return self.answer is None

    def leave(self):
        self.socket.close()


def sums(n, by, start, end, tenant=None):
    """By tenant and user or card, of the records alone."""
    rows = n.rows('SELECT u.*, l.user FROM usage u JOIN leases l ON l.id = u.lease')
    found = {}
    for r in rows:
        ms = min(r['to_ms'] or end, end) - max(r['from_ms'], start)
        if ms > 0 and tenant in (None, r['tenant']):
            key = (r['tenant'], r['user'] if by == 'user' else None, r['gpu'] if by == 'gpu' else None, r['mechanism'])
            line = found.setdefault(key, [0, 0, set()])
            line[0] += ms * r['milli']
            line[1] += ms * r['mib']
            line[2].add(r['lease'])
    return {k: (a, b, len(c)) for k, (a, b, c) in found.items()}


def told(answer):
    assert answer.ok, repr(answer)
    return {tuple(r[k] for k in ('tenant', 'user', 'gpu', 'mechanism')): tuple(r[k] for k in ('milli_ms', 'mib_ms', 'leases'))
            for r in answer.json['usage']}


def token_of_lab(n):
    """Another caller than root, with what his question is to say."""
    made = n.post('/v1/tokens', {'subject': 'service:books', 'role': 'tenant-user', 'tenant': 'lab'}).json
    return made['id'], {'Authorization': f'Bearer {made["token"]}'}


def test_every_long_bill_from_the_raw_records():
    with node(text=PRICED) as n:
        start, end = long_past(n), int(time.time()) * 1000
        window = [x for name, ms in (('--from', start), ('--to', end))
                  for x in (name, datetime.fromtimestamp(ms // 1000, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'))]
        records = list(csv.DictReader(io.StringIO(bulkhead(n, 'usage', '--raw', *window))))
        assert len(records) >= 2 * ROWS, len(records)
        for by in ('tenant', 'cost-center', 'gpu', 'user', 'mechanism', 'both'):
            answered(n, f'/v1/usage?by=gpu&from_ms=1&to_ms={end}')  # so that there is enough in the purse
            same(bulkhead(n, 'usage', '--by', by, '-o', 'csv', *window), bill(records, by, start, end), by)
        cards = json.loads(bulkhead(n, 'usage', '--by', 'gpu', '-o', 'json', *window))['cards']
        same((len(cards), sum(c['milli_ms'] for c in cards)),
             (8, sum(int(r['milli']) * (min(int(r['to_ms'] or end), end) - int(r['from_ms'])) for r in records)))
        # Few of many are found in steps, each of which looks at so many; who goes on finds them all.
        late, asked, after, seen = start + (ROWS - 5) * STEP, 0, 0, []
        while after is not None:
            page = answered(n, f'/v1/usage/records?from_ms={late}&after={after}').json
            seen += [(r['from_ms'], r['tenant']) for r in page['records']]
            after, asked = page['next'], asked + 1
        same(seen, [(r['from_ms'], r['tenant']) for r in n.rows(
            'SELECT * FROM usage WHERE to_ms IS NULL OR to_ms > ? OR from_ms >= ? ORDER BY id', late, late)])
        assert asked > 1 and len(seen) >= 10, (asked, len(seen))


def test_nobody_waits_for_a_bill():
    """Whatever it takes; one of a caller at a time, the next ones wait; who asks for the same waits for the same."""
    with node() as n:
        start, end = long_past(n), int(time.time() * 1000)
        where = f'/v1/usage?by=user&from_ms={start}&to_ms={end}'
        asked, child = caught(n, where)
        assert n.get('/v1/health').ok and asked.is_alive()
        small = n.get(f'/v1/usage?tenant=train&from_ms={start}&to_ms={end}')
        same(told(small), {}, 'a short one of the same caller')
        job = n.submit('nightly', 'true', can_requeue=True)
        same(n.wait(job)['status'], 0)  # things are decided, written, and end
        of_cards, again = Asked(n, where.replace('user', 'gpu')), Asked(n, where)
        # Of another caller, who is told his own and is not waited for either. (Another uid would be that of all threads of this process.)
        same(told(n.get(where, headers=token_of_lab(n)[1])), sums(n, 'user', start, end, 'lab'))
        assert asked.is_alive() and of_cards.is_alive() and again.is_alive(), 'answered by a process that stands still'
        until(lambda: children(n.process.pid, NAME) == [child])  # the other caller's has said it, and ends
        os.kill(child, signal.SIGCONT)
        for a, by in ((asked, 'user'), (again, 'user'), (of_cards, 'gpu')):
            a.join(120)
            assert not a.is_alive(), a.where
            same(told(a.answer), sums(n, by, start, end), by)
        same(asked.answer.body, again.answer.body)
        same(asked.answer.body, answered(n, where).body)


def test_one_that_dies_is_told():
    with node() as n:
        start, end = long_past(n), int(time.time() * 1000)
        where = f'/v1/usage?by=user&from_ms={start}&to_ms={end}'
        asked, child = caught(n, where)
        os.kill(child, signal.SIGKILL)
        asked.join(60)
        same((asked.answer.status, asked.answer.words), (500, 'the bill could not be added up: the process that did it died'))
        assert n.get('/v1/health').ok
        same(told(answered(n, where)), sums(n, 'user', start, end))
        # Nobody waits for it any more: then nobody adds up, and the next one of the caller has its turn.
        leaver, child = caught(n, where, ask=Leaver)
        after = Asked(n, where.replace('user', 'gpu'))
        leaver.leave()
        until(lambda: child not in children(n.process.pid, NAME), 60)
        after.join(120)
        # He who left has paid, which may have been before this was asked.
        assert after.answer.ok or after.answer.status == 503, repr(after.answer)
        same(told(after.answer if after.answer.ok else answered(n, after.where)), sums(n, 'gpu', start, end))
        # With the daemon it ends, however that ends.
        asked, child = caught(n, where, ask=Leaver)
        n.kill()
        until(lambda: not os.path.exists(f'/proc/{child}'), 60)
        n.start()
        same(told(answered(n, where)), sums(n, 'user', start, end))
        asked, child = caught(n, where, ask=Leaver)
        n.kill(signal.SIGTERM)
        until(lambda: not os.path.exists(f'/proc/{child}'), 60)


def test_all_of_the_past_is_added_up_once():
    """What every screen asks for: the first who asks has it added up, and from then on it is at hand."""
    with node() as n:
        long_past(n)
        first, child = caught(n, '/v1/usage')
        screens = [first, *(Asked(n, '/v1/usage') for _ in range(5))]
        assert n.get('/v1/health').ok and all(s.is_alive() for s in screens)
        os.kill(child, signal.SIGCONT)
        for s in screens:
            s.join(120)
            same(told(s.answer), sums(n, 'tenant', 0, s.answer.json['to_ms']))
        until(lambda: not children(n.process.pid, NAME), 60)
        job = n.submit('chat', 'true')
        n.wait(job)
        for _ in range(4):
            time.sleep(0.3)  # what was told a moment ago is told again
            last = Asked(n, '/v1/usage')
            while last.is_alive():
                same(children(n.process.pid, NAME), [], 'the past is added up again')
            same(told(last.answer), sums(n, 'tenant', 0, last.answer.json['to_ms']))


def test_who_may_no_longer_see_is_not_told():
    """A token that was revoked, and roles that were taken away, while it was added up."""
    with node() as n:
        start, end = long_past(n), int(time.time() * 1000)
        where = f'/v1/usage?by=user&from_ms={start}&to_ms={end}'
        name, shown = token_of_lab(n)
        asked, child = caught(n, where, headers=shown)
        assert n.ask('DELETE', f'/v1/tokens/{name}').ok
        os.kill(child, signal.SIGCONT)
        asked.join(60)
        same((asked.answer.status, asked.answer.words), (401, 'the token is unknown, revoked or expired'))
        asked, child = caught(n, where, uid=NOBODY)
        other = lab.policy().replace('role: tenant-user, tenant: lab', 'role: tenant-user, tenant: train')
        assert n.post('/v1/policy/apply', {'text': other}).ok
        os.kill(child, signal.SIGCONT)
        asked.join(60)
        same((asked.answer.status, 'usage' in asked.answer.json), (403, False), repr(asked.answer))
        # Who may still see it is told, whatever else a policy changed.
        asked, child = caught(n, where)
        assert n.post('/v1/policy/apply', {'text': lab.policy()}).ok
        os.kill(child, signal.SIGCONT)
        asked.join(60)
        same(told(asked.answer), sums(n, 'user', start, end))


def log_bytes(n):
    return os.stat(f'{n.state}/bulkhead.db-wal').st_size


def reads(n, pid):
    """It has a moment of the books: one of the five locks of readers on the index of the log is its own."""
    inode = os.stat(f'{n.state}/bulkhead.db-shm').st_ino
    locks = [line.split() for line in pathlib.Path('/proc/locks').read_text().splitlines()]
    return any(x[1] == 'POSIX' and x[4] == str(pid) and x[5].split(':')[-1] == str(inode) and 123 <= int(x[6]) <= 127 for x in locks)


def caught_reading(n, where):
    for _ in range(50):
        asked, child = caught(n, where)
        while asked.is_alive() and not reads(n, child):
            os.kill(child, signal.SIGCONT)
            time.sleep(0.002)  # and a step further
            os.kill(child, signal.SIGSTOP)
        if asked.is_alive():
            return asked, child
        answered(n, where)
    raise AssertionError('no bill was seen to read')


def test_the_log_of_the_store_is_emptied_in_between():
    """Callers who take turns so that one of them always reads: what is written meanwhile must not pile up for ever."""
    with node() as n:
        start, end = long_past(n), int(time.time() * 1000)
        where = f'/v1/usage?by=user&from_ms={start}&to_ms={end}'
        shown = token_of_lab(n)[1]
        asked, child = caught_reading(n, where)
        long = lab.policy() + '# ' + 'x' * 700_000 + '\n# '
        for i in range(100):
            if log_bytes(n) > 40 << 20:
                break
            assert n.post('/v1/policy/apply', {'text': long + str(i)}).ok
        assert log_bytes(n) > 40 << 20, log_bytes(n)
        other = Asked(n, where, headers=shown)
        enough = time.monotonic() + 3
        while time.monotonic() < enough:
            same(children(n.process.pid, NAME), [child], 'one more begins to read before the first has ended')
        assert other.is_alive(), repr(other.answer)
        os.kill(child, signal.SIGCONT)
        for a in (asked, other):
            a.join(60)
            assert not a.is_alive(), a.where
        same(told(other.answer), sums(n, 'user', start, end, 'lab'))
        assert log_bytes(n) < 40 << 20, log_bytes(n)


class Command(subprocess.Popen):
    """What somebody types, as a question under way."""

    def __init__(self, n, where):
        super().__init__([lab.BIN, *where], env=n.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def is_alive(self):
        return self.poll() is None

    @property
    def answer(self):
        return lab.Answer(503 if self.returncode else 200, {'Retry-After': '1'}, b'')


def test_the_command_waits_for_its_bill():
    """However busy the machine is; nor does the daemon hang up on who has said nothing for so long."""
    with node() as n:
        long_past(n)
        command, child = caught(n, ['usage', '--by', 'user', '-o', 'csv', '--from', '2d'], ask=Command)
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(65)  # longer than a request may take to come, and its answer to be fetched
        assert command.is_alive(), command.communicate()
        os.kill(child, signal.SIGCONT)
        out, err = command.communicate(timeout=60)
        same((command.returncode, 'lab' in out), (0, True), err)


if __name__ == '__main__':
    lab.tap.main(globals())
