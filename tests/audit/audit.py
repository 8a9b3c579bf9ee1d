# SPDX-License-Identifier: Apache-2.0
"""bulkhead audit over real logs: what it shows, what it finds, and with which exit status.

Usage: audit.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-SCRIBE
"""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import ROOT, has, run, same, write  # noqa: E402

SCRIBE = os.path.abspath(sys.argv[3])
DB = 'bulkhead.db'


def scribe(*acts):
    done = subprocess.run([SCRIBE, '.', *map(str, acts)], capture_output=True, text=True, check=False)
    same((done.returncode, done.stderr), (0, ''))


def a_log():
    """45 records of two tenants, a new key in the middle, all signed."""
    scribe('add', 'red', 'alloc.grant', 12, 'add', 'blue', 'alloc.deny', 7, 'rotate', 'add', 'red', 'scrub.verify', 9, 'stop')


def tamper(*statements, guards=False):
    with contextlib.closing(sqlite3.connect(DB)) as db:
        triggers = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'audit_%'").fetchall()
        for (name,) in [] if guards else triggers:
            db.execute(f'DROP TRIGGER {name}')
        for s in statements:
            db.execute(s)
        db.commit()


def verify(*args):
    r = run('audit', 'verify', *args, '-o', 'json')
    doc = json.loads(r.out)
    same(doc['holds'], r.rc == 0)
    same(r.rc in (0, 1), True)
    return doc


def findings(doc):
    return [(f['record'], f['wrong']) for f in doc['findings'] if f['wrong'] != 'guard']


def test_a_log_holds_and_says_what_it_does_not_show():
    a_log()
    r = run('audit', 'verify', DB)
    same((r.rc, r.err), (0, ''), repr(r))
    has(r.out, 'the log holds\n')
    has(r.out, 'not shown    whose log it is')
    has(r.out, 'not shown    a log cut back')
    key = run('audit', 'key', DB)
    checkpoint = run('audit', 'checkpoint', DB)
    same((key.rc, checkpoint.rc), (0, 0))
    write('log.pub', key.out)
    write('kept.txt', checkpoint.out)
    r = run('audit', 'verify', DB, '--key', 'log.pub', '--checkpoint', 'kept.txt')
    same(r.rc, 0, repr(r))
    has(r.out, '(as given)')
    has(r.out, 'this log goes on from it')
    assert 'whose log' not in r.out


def test_this_nodes_log_is_found_by_itself():
    a_log()
    r = run('audit', 'verify', BULKHEAD_STATE_DIR=os.getcwd())
    same(r.rc, 0, repr(r))
    r = run('audit', 'verify', BULKHEAD_STATE_DIR=os.path.join(os.getcwd(), 'none'))
    same((r.rc, r.out), (4, ''), repr(r))


def test_what_was_done_to_it_is_named():
    cases = (
        (("UPDATE audit_record SET body = replace(body, 'user:ada', 'user:eve') WHERE seq = 9",), [(9, 'edited')]),
        (('DELETE FROM audit_record WHERE seq = 9',), [(9, 'missing')]),
        (('DELETE FROM audit_record WHERE seq > 30',), [(31, 'truncated')]),
        (('UPDATE audit_record SET seq = 1000 WHERE seq = 10', 'UPDATE audit_record SET seq = 10 WHERE seq = 11',
          'UPDATE audit_record SET seq = 11 WHERE seq = 1000'), [(10, 'order'), (11, 'order')]),
        (("UPDATE audit_checkpoint SET note = substr(note, 1, length(note) - 10) || 'AAAAAAAA=' || char(10) WHERE size = 2",),
         [(2, 'forged')]),
        (("UPDATE audit_checkpoint SET note = '' WHERE size = 2",), [(2, 'checkpoint')]),
        (("UPDATE audit_record SET tenant = 'blue' WHERE seq = 5",), [(5, 'column')]),
    )
    for statements, want in cases:
        for old in pathlib.Path('.').iterdir():
            old.unlink()
        a_log()
        tamper(*statements)
        doc = verify(DB)
        same(doc['holds'], False, statements[0])
        got = findings(doc)
        same([w for w in want if w not in got], [], f'{statements[0]}: {got}')
        assert any(f['wrong'] == 'guard' for f in doc['findings']), doc
        text = run('audit', 'verify', DB)
        same(text.rc, 1)
        has(text.out, 'the log does not hold\n')


def test_the_tables_refuse_a_change():
    a_log()
    for statement in ("UPDATE audit_record SET body = ''", 'DELETE FROM audit_record', 'DELETE FROM audit_checkpoint',
                      'UPDATE audit_head SET size = 1'):
        try:
            tamper(statement, guards=True)
        except sqlite3.IntegrityError:
            continue
        raise AssertionError(statement)
    same(run('audit', 'verify', DB).rc, 0)


def test_a_log_cut_back_whole_is_found_by_a_kept_checkpoint_only():
    scribe('add', 'red', 'alloc.grant', 20, 'checkpoint')
    pathlib.Path('then.db').write_bytes(pathlib.Path(DB).read_bytes())
    scribe('add', 'red', 'alloc.grant', 20, 'checkpoint')
    write('kept.txt', run('audit', 'checkpoint', DB).out)
    same(run('audit', 'verify', DB, '--checkpoint', 'kept.txt').rc, 0)
    same(run('audit', 'verify', 'then.db').rc, 0)
    doc = verify('then.db', '--checkpoint', 'kept.txt')
    same([w for _, w in findings(doc)], ['truncated'])


def test_another_key_or_checkpoint_is_not_taken():
    a_log()
    os.mkdir('other')
    here = os.getcwd()
    os.chdir('other')
    a_log()
    os.chdir(here)
    write('other.pub', run('audit', 'key', 'other/' + DB).out)
    write('other.txt', run('audit', 'checkpoint', 'other/' + DB).out)
    same([w for _, w in findings(verify(DB, '--key', 'other.pub'))], ['key'])
    assert 'forged' in [w for _, w in findings(verify(DB, '--checkpoint', 'other.txt'))]
    write('nonsense', 'x\n')
    for args in (('--key', 'nonsense'), ('--checkpoint', 'nonsense')):
        r = run('audit', 'verify', DB, *args)
        same((r.rc, r.out), (2, ''), repr(r))
    same(run('audit', 'verify', DB, '--key', 'missing').rc, 4)


def naive_root(hashes):
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return hashlib.sha256(b'\1' + naive_root(hashes[:k]) + naive_root(hashes[k:])).digest()


def test_an_export_can_be_checked_without_any_of_our_code():
    a_log()
    r = run('audit', 'export', DB)
    same(r.rc, 0, repr(r))
    chain, hashes, roots = bytes(32), [], 0
    for line in r.out.splitlines():
        doc = json.loads(line)
        if 'record' in doc:
            body = line[line.index('"record":') + 9:-1].encode()
            h = hashlib.sha256(b'\0' + len(body).to_bytes(8, 'big') + body).digest()
            same(h.hex(), doc['hash'])
            same(doc['record']['prev'], chain.hex())
            same(doc['record']['seq'], len(hashes) + 1)
            # RFC 8785, as far as these values need it
            same(json.dumps(doc['record'], sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode(), body)
            chain = hashlib.sha256(b'\1' + chain + h).digest()
            hashes.append(h)
        elif 'checkpoint' in doc:
            origin, size, root = doc['note'].split('\n')[:3]
            assert origin.startswith('bulkhead.dev/audit/')
            same((int(size), base64.b64decode(root)), (len(hashes), naive_root(hashes)))
            roots += 1
        elif 'end' in doc:
            same((doc['end'], doc['chain']), (len(hashes), chain.hex()))
    assert roots >= 3 and len(hashes) > 30, (roots, len(hashes))


def test_an_export_verifies_on_its_own():
    a_log()
    write('log.pub', run('audit', 'key', DB).out)
    whole = run('audit', 'export', DB).out
    write('whole.jsonl', whole)
    r = run('audit', 'verify', 'whole.jsonl', '--key', 'log.pub')
    same(r.rc, 0, repr(r))
    lines = whole.splitlines(True)
    write('cut.jsonl', ''.join(lines[:-5]))
    same(verify('cut.jsonl')['holds'], False)
    write('edited.jsonl', whole.replace('user:ada', 'user:eve', 1))
    same([w for _, w in findings(verify('edited.jsonl'))], ['edited'])
    write('nonsense.jsonl', 'hello\n')
    same(run('audit', 'verify', 'nonsense.jsonl').rc, 2)
    write('empty.jsonl', '')
    same(run('audit', 'verify', 'empty.jsonl').rc, 2)


def test_a_tenant_gets_its_own_records_and_proofs():
    scribe('add', 'red', 'alloc.grant', 5, 'add', 'blue', 'alloc.grant', 30, 'checkpoint')
    write('kept.txt', run('audit', 'checkpoint', DB).out)
    scribe('add', 'blue', 'alloc.grant', 9, 'add', 'red', 'alloc.release', 5, 'checkpoint')
    r = run('audit', 'export', DB, '--tenant', 'red', '--from', 'kept.txt')
    same(r.rc, 0, repr(r))
    assert 'blue' not in r.out
    same(len(re.findall('"tenant":"red"', r.out)), 11)  # ten records and the head
    write('red.jsonl', r.out)
    same(run('audit', 'verify', 'red.jsonl').rc, 0)
    doc = verify('red.jsonl', '--checkpoint', 'kept.txt')
    same((doc['holds'], doc['keptCheckpointHolds']), (True, True))
    write('edited.jsonl', r.out.replace('alloc.release', 'alloc.grant', 1))
    same(verify('edited.jsonl')['holds'], False)
    same(run('audit', 'show', 'red.jsonl', '--event', 'alloc.release').out.count('\n'), 5)


def test_show_says_who_and_filters():
    a_log()
    r = run('audit', 'show', DB)
    same((r.rc, r.err), (0, ''))
    for line in r.out.splitlines():
        assert re.match(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  #\d+  [a-z-]+\.[a-z-]+  (success|failure|denied)  \S+', line), line
    has(r.out, 'user:ada (uid 1000)  tenant red  lease L1  BH-003\n')
    for args, n in ((('--tenant', 'red'), 21), (('--tenant', 'nobody'), 0), (('--event', 'alloc.*'), 19), (('--actor', '1000'), 28),
                    (('--actor', 'user:ada', '--tenant', 'blue'), 7), (('--since', '1h'), len(r.out.splitlines())),
                    (('--since', '2100-01-01'), 0)):
        got = run('audit', 'show', DB, *args)
        same((got.rc, len(got.out.splitlines())), (0, n), args)
        doc = json.loads(run('audit', 'show', DB, *args, '-o', 'json').out)
        same((doc['version'], len(doc['records'])), (1, n))
    same(run('audit', 'show', DB, '--since', 'soon').rc, 2)


def test_retention_leaves_a_log_that_holds():
    scribe('add', 'red', 'alloc.grant', 40, 'rotate', 'add', 'red', 'alloc.grant', 20, 'prune')
    doc = verify(DB)
    same((doc['holds'], doc['dropped'] > 40), (True, True), doc)
    write('whole.jsonl', run('audit', 'export', DB).out)
    same(run('audit', 'verify', 'whole.jsonl').rc, 0)
    has(run('audit', 'verify', DB).out, 'were dropped by retention')
    tamper('DELETE FROM audit_record WHERE event = \'audit.key\'')
    same(verify(DB)['holds'], False)


def test_what_cannot_be_recorded_is_not_committed():
    scribe('doom')
    db = sqlite3.connect(DB)
    same(db.execute("SELECT count(*) FROM notes WHERE key = 'doomed'").fetchone(), (0,))
    db.close()
    same(run('audit', 'verify', DB).rc, 0)


def test_beside_a_living_daemon_nothing_is_changed():
    a_log()
    with subprocess.Popen([SCRIBE, '.', 'add', 'red', 'alloc.grant', '3', 'hold'], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as daemon:
        same(daemon.stdout.readline(), b'holding\n')
        before = pathlib.Path(DB).read_bytes()
        for args in (('verify',), ('show',), ('export',), ('checkpoint',), ('key',)):
            same(run('audit', *args, DB).rc, 0, args)
        same(pathlib.Path(DB).read_bytes(), before)
        daemon.stdin.close()
        same(daemon.wait(), 0)


def test_words_and_options_that_do_not_go_together():
    for args, words in ((('audit',), 'needs verify'), (('audit', 'vrfy'), 'audit needs verify'),
                        (('audit', 'show', '--key', 'x'), "'--key' is not for audit show"),
                        (('audit', 'export', '--from', 'x'), '--from is for the export of one tenant'),
                        (('audit', 'verify', 'a', 'b'), "'b'")):
        r = run(*args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)


def test_the_command_links_neither_sqlite_nor_gnutls():
    out = subprocess.run(['ldd', tap.BIN], capture_output=True, text=True, check=False).stdout
    for name in ('sqlite', 'gnutls', 'nettle'):
        assert name not in out, out


def test_the_rule_and_the_log_agree_on_what_may_be_left_out():
    names = re.findall(r'BH_AUDIT_EVENT\(\w+, "([a-z-]+)\.', (ROOT / 'src/store/audit_events.def').read_text())
    optional = {'metrics', 'debug', 'heartbeat', 'health', 'scrape', 'read', 'list', 'watch'}
    for name in sorted(set(names)):
        write('p.yaml', tap.GOOD + f'audit: {{enabled: true, retention: 365d, exclude: [{name}]}}\n')
        out = run('lint', 'p.yaml', '--now', tap.DAY).out
        same('BH-076' in out, name not in optional, name)


def test_the_document_says_which_names_nothing_writes():
    """A name of the list is a promise only where some program writes it; those that none does are named in the document, all of them."""
    kinds = dict(re.findall(r'BH_AUDIT_EVENT\((\w+), "([a-z.-]+)"\)', (ROOT / 'src/store/audit_events.def').read_text()))
    sources = [p for p in (ROOT / 'src').rglob('*.[ch]') if not re.search(r'_(test|fuzz|fixture)\.', p.name)]
    used = set(re.findall(r'\bBH_AUDIT_(\w+)\b', '\n'.join(p.read_text() for p in sources)))
    text = (ROOT / 'docs/audit.md').read_text().partition('## Names that nothing writes')[2].partition('\n## ')[0]
    said = set(re.findall(r'`([a-z-]+\.[a-z-]+)`', text)) - {'policy.change', 'quota.set', 'job.submit', 'alloc.grant'}  # these are written
    same(sorted(said), sorted(name for kind, name in kinds.items() if kind not in used))


if __name__ == '__main__':
    tap.main(globals())
