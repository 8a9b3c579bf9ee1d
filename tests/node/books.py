# SPDX-License-Identifier: Apache-2.0
"""The books over time: keys that change or are lost, records past their time, and the way back from a backup.

Usage: books.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import lab
from lab import AUDIT, BIN, environment, has, node, policy, same, until, write


def command(n, *words):
    done = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=60, env=n.env)
    return done.returncode, done.stdout, done.stderr


def daemon(n, *words):
    """One that is to end by itself."""
    done = subprocess.run([n.program, *words], capture_output=True, text=True, check=False, timeout=120, env=n.env)
    with open('daemon.log', 'a', encoding='utf-8') as log:
        log.write(done.stderr)
    return done.returncode, done.stderr


def verify(path):
    done = subprocess.run([AUDIT, 'verify', path], capture_output=True, text=True, check=False, timeout=120, env=environment())
    return done.returncode, done.stdout


def test_keys():
    """A new key is vouched for by the old one; one that is lost stops the daemon until it is told to go on."""
    with node() as n:
        old = pathlib.Path('state/audit.key').read_text()
        code, out, err = command(n, 'audit', 'rotate', '--reason', 'an operator left')
        same(code, 0, err)
        has(out, 'is signed with key')
        assert pathlib.Path('state/audit.key').read_text() != old
        (change,) = n.audit(event='audit.key-change')
        same((change['who'], change['reason']), ('user:root', 'an operator left'))
        n.kill(signal.SIGTERM)
        n.verified()
        os.remove('state/audit.key')
        code, err = daemon(n, '--policy', n.policy)
        same(code, 1, err)
        has(err, 'audit.key')
        n.start('--replace-audit-key')
        same(len(n.audit(event='audit.key-change')), 2)
        n.kill(signal.SIGTERM)
        code, out = verify('state/bulkhead.db')
        same(code, 1, 'nobody vouches for the second one')
        has(out, 'key')
        n.start()  # with the key that it made
        assert n.get('/v1/health').ok


def test_records_past_their_time():
    text = policy() + 'audit: {retention: 1s, exclude: [read]}\n'
    with node(text=text, serve=False) as n:
        n.start()
        for _ in range(3):
            n.post('/v1/gpus/0/cordon', {'reason': 'old'})
        n.kill(signal.SIGTERM)
        before = len(n.rows('SELECT 1 FROM audit_record'))
        time.sleep(1.5)
        n.start()
        until(lambda: n.audit(event='audit.prune'), 60, n.log)
        (prune,) = n.audit(event='audit.prune')
        has(prune['reason'], 'audit.retention')
        same((prune['who'], n.audit(reason='old')), ('service:bulkheadd', []))
        assert before > len(n.rows('SELECT 1 FROM audit_record WHERE seq <= ?', before)), 'nothing was dropped'
        has(n.log(), 'audit records were dropped')
        n.kill(signal.SIGTERM)
        n.verified()


def test_what_is_long_over():
    """Kept for ever, until the policy says otherwise; and that is said."""
    with node() as n:
        old = n.submit('chat', 'echo', 'hello')
        same(n.wait(old)['status'], 0)
        n.quiet()
        lease = n.leases_of(old)[0]
        runs = n.submit('chat', 'sleep', '600')
        n.active(runs)
        time.sleep(1.5)
        same(n.get('/v1/usage?from_ms=1').json['complete_from_ms'], None)
        r = n.post('/v1/policy/apply', {'text': policy() + 'audit: {history: 1s}\n'})
        assert r.ok, repr(r)
        n.kill(signal.SIGTERM)
        n.policy = write('policy.yaml', policy() + 'audit: {history: 1s}\n')
        n.start()
        until(lambda: n.get(f'/v1/jobs/{old}').status == 404, 60, n.log)
        (record,) = n.audit(event='history.prune')
        same((record['before'], record['who']), ('1 jobs, 1 leases and 1 intervals of usage', 'service:bulkheadd'))
        # A bill of that time lacks something, and says so.
        usage = n.get('/v1/usage?from_ms=1').json
        assert usage['to_ms'] - 600_000 < usage['complete_from_ms'] < usage['to_ms'] - 500, usage
        text = subprocess.run([BIN, 'usage'], capture_output=True, text=True, check=True, timeout=60, env=n.env).stdout
        has(text, 'not whole: of jobs that were over before')
        same((n.get(f'/v1/leases/{lease}').status, os.path.exists(f'state/leases/{lease[1:]}')), (404, False))
        n.active(runs)
        n.post(f'/v1/jobs/{runs}/cancel')
        n.quiet()
        n.sound()
        n.kill(signal.SIGTERM)
        n.verified()


def test_the_way_back():
    with node() as n:
        first = n.submit('chat', 'true')
        n.wait(first)
        n.quiet()
        same(command(n, 'backup', 'monday')[0], 0)
        later = n.submit('chat', 'true')
        n.wait(later)
        runs = n.submit('chat', 'sleep', '600')
        n.active(runs)
        backup = f'{n.state}/backups/monday'
        # Not while a daemon has it, nor while work runs that it would know nothing of.
        code, err = daemon(n, '--restore', backup)
        same(code, 7, err)
        has(err, 'is in use by process')
        n.kill(signal.SIGTERM)
        code, err = daemon(n, '--restore', backup)
        same(code, 7, err)
        has(err, 'end it first')
        n.start()
        n.post(f'/v1/jobs/{runs}/cancel')
        n.quiet()
        n.kill(signal.SIGTERM)
        known = {r['id'] for r in n.rows('SELECT id FROM jobs')}
        # What is damaged, or whose log was changed, is not taken.
        shutil.copy(backup, 'bad')
        os.chmod('bad', 0o600)
        db = sqlite3.connect('bad')
        guard, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'audit_record_fixed'").fetchone()
        db.execute('DROP TRIGGER audit_record_fixed')
        db.execute("UPDATE audit_record SET body = replace(body, 'job.submit', 'job.cancel')")
        db.execute(guard)
        db.commit()
        db.close()
        code, err = daemon(n, '--restore', os.path.abspath('bad'))
        same(code, 1, err)
        has(err, 'does not hold')
        write('half', 'SQLite format 3')
        same(daemon(n, '--restore', os.path.abspath('half'))[0], 1)
        same(daemon(n, '--restore', os.path.abspath('absent'))[0], 4)
        same({r['id'] for r in n.rows('SELECT id FROM jobs')}, known, 'nothing was changed')
        # The good one is, and says so in its own log.
        code, err = daemon(n, '--restore', backup)
        same(code, 0, err)
        same(sorted(p for p in os.listdir('state') if p.startswith('bulkhead.db') and not p.endswith('.lock')),
             ['bulkhead.db', 'bulkhead.db.replaced'])
        n.start()
        same((n.job(first)['job']['state'], n.get(f'/v1/jobs/{later}').status), ('ended', 404))
        (record,) = n.audit(event='backup.restore')
        same((record['who'], record['object_id']), ('user:root', backup))
        fresh = n.submit('chat', 'true')
        assert int(fresh[1:]) > max(known), 'an id was given twice'
        same(n.wait(fresh)['status'], 0)
        n.quiet()
        n.sound()
        n.kill(signal.SIGTERM)
        n.verified()


if __name__ == '__main__':
    lab.tap.main(globals())
